/* SPDX-License-Identifier: MIT
 * Shared by the commands that compute: opening a runtime whose log goes to stderr, and parsing
 * lists of types. */
#ifndef MULMAT_TUNE_OPEN_RUNTIME_H
#define MULMAT_TUNE_OPEN_RUNTIME_H

#include "runtime/tnd_runtime.h"
#include "measure/measure.h"

/** Opens a runtime; `table_path` as in struct tandem_runtime_options; n_threads 0: default;
 *  `device` as in tools/device_option.h. */
enum tandem_status tnd_cmd_open_runtime(const char *table_path, int n_threads, const char *profile,
                                        const char *device, tandem_runtime **out_runtime,
                                        struct tandem_error *error);

/** Parses "q4_0,f16" or "all" (every type that weights may have), at most `capacity` types. Errors:
 * NOT_FOUND, LIMIT. */
enum tandem_status tnd_cmd_parse_types(const char *text, enum tandem_type *out_types, int capacity,
                                       int *out_n, struct tandem_error *error);

/** Sets what plans made with `table` minimise: "time", "energy" or "edp"; `objective` NULL: time.
 * `table` NULL: there is none. Errors: ARGUMENT, TABLE (no joules), NOT_FOUND (no table). */
enum tandem_status tnd_cmd_aim(const char *objective, tandem_table *table,
                               struct tandem_error *error);
#define TND_OBJECTIVE_OPTION_HELP                                                                  \
    "what is aimed at: time, energy or edp (energy times time); the last two need joules in the "  \
    "table (default: time)"

/** Options for measuring with the parts of a runtime. */
struct tnd_measure_options tnd_cmd_measure_options(const struct tnd_runtime_parts *parts);

/** Reports on stderr what happened to the old table (tnd_table_update_file); nothing for OK. */
void tnd_cmd_show_note(const struct tandem_error *note);

/** Adds `table` to this machine's own table at its default path (tnd_table_update_file); `out_path`
 * gets the path. Reports on stderr what happened to the old one. */
enum tandem_status tnd_cmd_update_own_table(const tandem_table *table, char *out_path, size_t n,
                                            struct tandem_error *error);

#endif
