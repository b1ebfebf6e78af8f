/* SPDX-License-Identifier: MIT
 * The list of mapped files, as the handler of SIGBUS sees it: see tandem/mapped.h. */
#ifndef TND_MAPPED_H
#define TND_MAPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/spans.h"
#include "base/tnd_status.h"
#include "tandem/mapped.h"

/** Adds a mapping to the list. Beyond 1024 mappings it is not listed: faults in it are not caught.
 * `info` is the stat of the open file. Any thread. */
void tnd_mapped_add(const void *data, size_t bytes, const char *path, const struct stat *info);
/** Time of a file's last change of contents (mtime): nanoseconds since 1970. */
int64_t tnd_mapped_changed_ns(const struct stat *info);
/** Removes a mapping from the list; call before it is unmapped. */
void tnd_mapped_leave(const void *data);
/** Marks the file mapped at `data` as incomplete: only the bytes in `present` are there, and more
 * may be written. tandem_mapped_check then refuses reads of other bytes, and does not count changes
 * of the file as faults. `present` is borrowed until the mapping is removed. False: the mapping is
 * not listed. One thread at a time. */
bool tnd_mapped_set_present(const void *data, const struct tnd_spans *present);

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

/** Whether tandem_mapped_check could find a fault in this process; a cheap check. Any thread. */
bool tnd_mapped_has_faults(void);
/** As tandem_mapped_check, for a whole mapping given by its first byte. Also FILE if the file has
 * been changed or replaced since it was listed. Reads the last byte if the handler is installed, to
 * trigger a fault now rather than later. */
enum tandem_status tnd_mapped_check_file(const void *data, struct tandem_error *error);

#endif
