/* SPDX-License-Identifier: MIT
 * The list of mapped files, as the handler of SIGBUS sees it: see tandem/mapped.h. */
#ifndef TND_MAPPED_H
#define TND_MAPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/tnd_status.h"
#include "tandem/mapped.h"

/** Adds a mapping to the list. Beyond 1024 mappings it is not listed: faults in it are not caught.
 * `info` is the stat of the open file. Any thread. */
void tnd_mapped_add(const void *data, size_t bytes, const char *path, const struct stat *info);
/** Time of a file's last change of contents (mtime): nanoseconds since 1970. */
int64_t tnd_mapped_changed_ns(const struct stat *info);
/** Removes a mapping from the list; call before it is unmapped. */
void tnd_mapped_leave(const void *data);

/** A listed mapping and its file, as they were when it was listed. */
struct tnd_mapped_file {
    const uint8_t *data;
    size_t bytes;
    dev_t device;
    ino_t file;
    int64_t changed_ns;
    int64_t facts_changed_ns; /* ctime: last change of contents or metadata */
    const char *path;         /* "" when it was too long; valid as long as the mapping */
    char name[256];           /* without folder; truncated */
};
/** Finds the mapping that contains all of these bytes. False: there is none, or a fault was caught
 * in it. Any thread, while the mapping lives. */
bool tnd_mapped_find(const void *data, size_t bytes, struct tnd_mapped_file *out);

/** Whether the handler has caught a fault in this process. Costs one load. Any thread. */
bool tnd_mapped_has_faults(void);
/** FILE when a fault was caught in some of these bytes: they read as zeros. Any thread. */
enum tandem_status tnd_mapped_check(const void *data, size_t bytes, struct tandem_error *error);
/** Like tnd_mapped_check, for a whole mapping given by its first byte; FILE also when its file was
 * changed or replaced since. If the handler is installed, reads the last byte so that a truncated
 * file faults now. */
enum tandem_status tnd_mapped_check_file(const void *data, struct tandem_error *error);

#endif
