/* SPDX-License-Identifier: MIT
 * `fit` for the machines of a list: runs nothing, and contacts none of them. */
#ifndef TANDEM_LLAMA_FIT_MACHINES_H
#define TANDEM_LLAMA_FIT_MACHINES_H

#include "tools/report/fit_weights.h"
#include "tools/tandem-llama/cli.h"

/** Plans a model of a source for the machines of a file and prints the result. `refused`: excluded
 * divisions (struct tnd_cluster). `options`: context, type of keys and values, tokens of a prompt.
 * Errors: those of reading the list and its tables, of the model's numbers, and of prices. */
enum tandem_status tnd_fit_machines(const char *path, const tandem_source *source,
                                    const struct tnd_fit_weights *weights,
                                    const struct tnd_fit_options *options, unsigned refused,
                                    const double count[TND_FIT_PHASES], bool as_json,
                                    struct tandem_error *error);
/** Like tnd_fit_machines, for the running ranks, by their tables and measured links; rank 0 prints.
 * Collective. Errors: those of opening a runtime, NOT_FOUND (a rank has no table, or there are no
 * links). */
enum tandem_status tnd_fit_ranks(const char *table, int64_t threads, const tandem_source *source,
                                 const struct tnd_fit_options *options, unsigned refused,
                                 const double count[TND_FIT_PHASES], bool as_json,
                                 struct tandem_error *error);
/** The largest thread count that a table has times for. */
int tnd_fit_most_threads(const tandem_table *table);

#endif
