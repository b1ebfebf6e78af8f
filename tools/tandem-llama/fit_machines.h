/* SPDX-License-Identifier: MIT
 * `fit` for several machines of a list: nothing runs, and none of them is asked. */
#ifndef TANDEM_LLAMA_FIT_MACHINES_H
#define TANDEM_LLAMA_FIT_MACHINES_H

#include "tools/report/fit_weights.h"
#include "tools/tandem-llama/cli.h"

/** Plans a model of a source for the machines of a file and prints the result. `refused`: divisions
 *  that are not wanted (struct tnd_cluster). `options`: context,
 *  type of keys and values, tokens of a prompt. Errors: those of reading the list and its tables,
 *  of the model's numbers, and of prices. */
enum tandem_status tnd_fit_machines(const char *path, const tandem_source *source,
                                    const struct tnd_fit_weights *weights,
                                    const struct tnd_fit_options *options, unsigned refused,
                                    const double count[TND_FIT_PHASES], bool as_json,
                                    struct tandem_error *error);
/** As tnd_fit_machines, for the ranks that run, by their tables and measured links; rank 0 prints.
 *  Collective. Errors: those of opening a runtime, NOT_FOUND (a rank has no table, or there are no
 *  links). */
enum tandem_status tnd_fit_ranks(const char *table, int64_t threads, const tandem_source *source,
                                 const struct tnd_fit_options *options, unsigned refused,
                                 const double count[TND_FIT_PHASES], bool as_json,
                                 struct tandem_error *error);
/** The most threads that a table has times for. */
int tnd_fit_most_threads(const tandem_table *table);

#endif
