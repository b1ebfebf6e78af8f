/* SPDX-License-Identifier: MIT
 * Report on a table: times of every profile, the winner at each M, crossovers, for each shape and
 * thread count. */
#ifndef TND_ANALYZE_H
#define TND_ANALYZE_H

#include "table/tnd_table.h"

enum tnd_analyze_format { TND_ANALYZE_TEXT, TND_ANALYZE_JSON, TND_ANALYZE_CSV };

struct tnd_analyze_options {
    enum tnd_analyze_format format;
    const char *name;   /* name of the table in the report */
    const int *threads; /* thread counts; NULL: the measured ones */
    int n_threads;
    enum tandem_type type; /* TANDEM_TYPE_NUMBERS: all */
};

/** Prints the report. Errors: TABLE (nothing to report on), MEMORY, FILE (`write` stopped). */
enum tandem_status tnd_analyze(const struct tandem_table *table,
                               const struct tnd_analyze_options *options, tandem_write_fn write,
                               void *user, struct tandem_error *error);

#endif
