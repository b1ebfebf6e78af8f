/* SPDX-License-Identifier: MIT
 * The files that are mapped, as the handler of SIGBUS sees them: see tandem/mapped.h. */
#ifndef TND_MAPPED_H
#define TND_MAPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/spans.h"
#include "base/tnd_status.h"
#include "tandem/mapped.h"

/** Takes a mapping into the list until it is left. Beyond 1024 of them it is not listed: faults in
 *  it are not caught. `info` is what the system said of the open file. Any thread. */
void tnd_mapped_add(const void *data, size_t bytes, const char *path, const struct stat *info);
/** When the file's contents were changed last, as the system says: nanoseconds since 1970. */
int64_t tnd_mapped_changed_ns(const struct stat *info);
/** Before the mapping ends. */
void tnd_mapped_leave(const void *data);
/** Of the file that `data` is the first byte of, these bytes alone are there, and others may come:
 *  tandem_mapped_check tells who reads what is not there, and that the file changes is no fault.
 *  `present` is borrowed while the mapping stays. False: the mapping is not listed. One thread at a
 *  time. */
bool tnd_mapped_set_present(const void *data, const struct tnd_spans *present);

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

/** Whether tandem_mapped_check may find anything in this process. Costs a look. Any thread. */
bool tnd_mapped_has_faults(void);
/** As tandem_mapped_check, for a whole mapping that is given by its first byte; FILE also when its
 *  file has been changed or replaced since. Reads the last byte when the guard is there, to meet a
 *  fault now. */
enum tandem_status tnd_mapped_check_file(const void *data, struct tandem_error *error);

#endif
