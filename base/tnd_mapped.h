/* SPDX-License-Identifier: MIT
 * The files that are mapped, as the handler of SIGBUS sees them: see tandem/mapped.h. */
#ifndef TND_MAPPED_H
#define TND_MAPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/tnd_status.h"
#include "tandem/mapped.h"

/** Takes a mapping into the list until it is left. Beyond 1024 of them it is not listed: faults in
 *  it are not caught. `info` is what the system said of the open file. Any thread. */
void tnd_mapped_add(const void *data, size_t bytes, const char *path, const struct stat *info);
/** When the file's contents were changed last, as the system says: nanoseconds since 1970. */
int64_t tnd_mapped_changed_ns(const struct stat *info);
/** Before the mapping ends. */
void tnd_mapped_leave(const void *data);

/** A listed mapping and the file behind it, as they were when it was taken into the list. */
struct tnd_mapped_file {
    const uint8_t *data;
    size_t bytes;
    dev_t device;
    ino_t file;
    int64_t changed_ns;
    int64_t facts_changed_ns; /* last change of anything that the system says of it: ctime */
    const char *path;         /* "" when it is too long; valid while the mapping stays */
    char name[256];           /* without folder; cut */
};
/** The mapping that holds all of these bytes. False: none does, or a fault was met in it. Any
 *  thread while the mapping stays. */
bool tnd_mapped_find(const void *data, size_t bytes, struct tnd_mapped_file *out);

/** Whether the guard has met a fault in this process. Costs a look. Any thread. */
bool tnd_mapped_has_faults(void);
/** FILE when these bytes lie, in part, where a fault was met: what was read of them were zeros.
 *  Any thread. */
enum tandem_status tnd_mapped_check(const void *data, size_t bytes, struct tandem_error *error);
/** As tnd_mapped_check, for a whole mapping that is given by its first byte; FILE also when its
 *  file has been changed or replaced since. Reads the last byte when the guard is there, to meet a
 *  fault now. */
enum tandem_status tnd_mapped_check_file(const void *data, struct tandem_error *error);

#endif
