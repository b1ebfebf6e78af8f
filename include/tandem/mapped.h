/* SPDX-License-Identifier: MIT
 * room: base
 *
 * Model files are mapped. When another program truncates such a file, reading the missing part
 * raises the signal SIGBUS, which kills a process without a handler. A program that must survive
 * installs the guard below, or reads files instead of mapping them (struct tandem_source_options,
 * TANDEM_MAP=copy). The library never installs a handler by itself. */
#ifndef TANDEM_MAPPED_H
#define TANDEM_MAPPED_H

#include <stddef.h>

#include "tandem/status.h"

TANDEM_BEGIN_C

/** Installs a handler of SIGBUS for the process. A fault in a file that the library has mapped (at
 * most 1024 at once) then reads as zeros, and the call that read them fails with FILE and the
 * file's name: opening, computing, converting. Every other SIGBUS goes to the previous handler, or
 * kills the process as before. A second call does nothing, unless another handler was installed in
 * between. Any thread. Errors: FILE (the system refused, see `got` for its error number). */
TANDEM_API enum tandem_status tandem_guard_mapped_files(struct tandem_error *error);
/** OK as long as the guard has caught no fault in this process; afterwards FILE and the name of the
 * last damaged file. Call it before a program exits. Any thread. Errors: FILE. */
TANDEM_API enum tandem_status tandem_mapped_files_status(struct tandem_error *error);
/** Whether these bytes, wherever they are, can be relied on. Any thread. Errors: FILE (they lie, in
 *  part, in a mapped file where the guard has met a fault, or in the part of a model that a rank
 *  keeps, and were not sent to it: they read as zeros). */
TANDEM_API enum tandem_status tandem_mapped_check(const void *data, size_t bytes,
                                                  struct tandem_error *error);

TANDEM_END_C
#endif
