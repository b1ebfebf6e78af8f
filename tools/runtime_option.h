/* SPDX-License-Identifier: MIT
 * Opening a runtime as a tool's options say, for all tools. */
#ifndef TND_RUNTIME_OPTION_H
#define TND_RUNTIME_OPTION_H

#include "tandem/runtime.h"

/** Opens a runtime with `options`, after setting `device` (see device_option.h), `table` and the
 * log in them. A named table must be usable; NULL: this machine's own, "none" or "": none. Errors:
 * those of tandem_runtime_open and tandem_table_load; TABLE_FOREIGN when none of the table's times
 * is valid here. */
enum tandem_status tnd_runtime_option_open(struct tandem_runtime_options *options,
                                           const char *table, const char *device,
                                           tandem_runtime **out_runtime,
                                           struct tandem_error *error);

#endif
