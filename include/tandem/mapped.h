/* SPDX-License-Identifier: MIT
 * room: base
 *
 * Model files are mapped. When another program cuts such a file short or writes over it, reading
 * what is gone raises the signal SIGBUS, and a process without a handler dies. A program that must
 * live asks for the guard below, or reads files in place of mapping them (struct
 * tandem_source_options, TANDEM_MAP=copy). The library never installs a handler by itself. */
#ifndef TANDEM_MAPPED_H
#define TANDEM_MAPPED_H

#include <stddef.h>

#include "tandem/status.h"

TANDEM_BEGIN_C

/** Installs a handler of SIGBUS for the process. A fault inside a file that the library has mapped
 *  (1024 at most at once) then gives zeros in place of what is gone, and the call that read them
 *  fails with FILE and the file's name: opening, computing, converting. Every other SIGBUS goes to
 *  the handler that was there before, or ends the process as before. A second call does nothing,
 *  unless another handler was installed in between. Any thread. Errors: FILE (the system refused,
 *  see `got` for its error number). */
TANDEM_API enum tandem_status tandem_guard_mapped_files(struct tandem_error *error);
/** OK as long as the guard has met no fault in this process; afterwards FILE and the name of the
 *  last file that was damaged. For programs at their end. Any thread. Errors: FILE. */
TANDEM_API enum tandem_status tandem_mapped_files_status(struct tandem_error *error);
/** Whether these bytes, wherever they are, can be relied on. Any thread. Errors: FILE (they lie, in
 *  part, in a mapped file where the guard has met a fault, or in the part of a model that a rank
 *  keeps, and were not sent to it: they read as zeros). */
TANDEM_API enum tandem_status tandem_mapped_check(const void *data, size_t bytes,
                                                  struct tandem_error *error);

TANDEM_END_C
#endif
