/* SPDX-License-Identifier: MIT
 * Devices worth opening: those that this machine's tables have as the fastest for some product. A
 * driver takes up to a second to load, and most processes would never use it. */
#ifndef TND_WINNERS_H
#define TND_WINNERS_H

#include "table/table_layers.h"

/** Loads the layers for a registry's machine. Errors: MEMORY, those of tnd_layers_load. */
enum tandem_status tnd_winners_load_table(const struct tnd_registry *registry,
                                          struct tnd_layers *layers, tandem_table **out_table,
                                          struct tandem_error *error);

/** Whether the planner would run some product measured on the device there, beside `n_threads`
 * threads of the CPU and including its transfers (tnd_choose). `out_key` (may be NULL): its
 * weights, `out_m`: its tokens. False if out of memory. */
bool tnd_winners_is_one(const struct tandem_table *table, const char *device, int n_threads,
                        struct tnd_curve_key *out_key, int64_t *out_m);

/** tnd_registry_open that also accepts "auto". `table_path` as in tandem_runtime_options. Errors:
 * those of tnd_registry_open. */
enum tandem_status tnd_winners_open(const struct tnd_registry_options *options,
                                    const char *table_path, int n_threads,
                                    struct tnd_registry **out_registry, struct tandem_error *error);

#endif
