/* SPDX-License-Identifier: MIT
 * Printing errors and writing files, for all commands of mulmat-tune. */
#ifndef MULMAT_TUNE_CMD_OUTPUT_H
#define MULMAT_TUNE_CMD_OUTPUT_H

#include "table/tnd_table.h"

/** Prints "mulmat-tune: <message>" to stderr; returns 1. */
int tnd_cmd_failed(const struct tandem_error *error);
/** A tandem_write_fn for a FILE *. */
int tnd_cmd_write(void *file, const char *bytes, unsigned long n);

/** Reports on stderr which profiles share a row when `table` is written as `format`. */
void tnd_cmd_tell_shared(const tandem_table *table, enum tandem_table_format format);

#endif
