/* SPDX-License-Identifier: MIT
 * Products whose weights stay in host memory and travel to the device for each use
 * (sched/stream.h): which candidates that leaves, and what it costs. While a product is computed,
 * the weights of the next one travel: in a row of them each takes the longer of both. */
#ifndef TND_STREAM_COST_H
#define TND_STREAM_COST_H

#include "tune/candidates.h"

/** Whether the weights of the profile's products travel. */
bool tnd_profile_streams(const struct tnd_table_profile *profile);

/** Adds what the machine of a table can do with weights in flight: a twin of each candidate that
 *  runs as a whole on a device of which the table knows uploads. Returns how many there are. */
int tnd_stream_twins(const struct tandem_table *table, struct tnd_candidate *candidates, int n);

/** Leaves the candidates for a weight: where a device has room for it, or it may change, none that
 *  streams; on devices (`refused`: bit a slot) that had no room, those that stream alone. Returns
 *  how many are left. */
int tnd_stream_filter(struct tnd_candidate *candidates, int n, uint32_t refused, bool is_constant);

/** Adds the weights' way to what the stages take with weights on the device: what it takes longer
 *  than COMPUTE, and for a product alone (`is_alone`) all of it, since nothing hides it. In a row
 *  times the device's slow-down beside its own transfers, where bench measured it. Profiles that do
 *  not stream stay as they are. */
void tnd_stream_add(const struct tandem_table *table, const struct tnd_table_profile *profile,
                    enum tandem_type type, int64_t n, int64_t k, bool is_alone,
                    struct tnd_estimate *compute, struct tnd_estimate *total);

/** The crossover of a product in a row of many: the least M from which the streaming profile takes
 *  less time than the profile `host` on `threads` threads, by their estimates; 0: at no M up to
 *  `most`, or nothing is known. */
int64_t tnd_stream_crossover(const struct tandem_table *table,
                             const struct tnd_table_profile *streaming,
                             const struct tnd_table_profile *host, enum tandem_type type, int64_t n,
                             int64_t k, int threads, int64_t most);

#endif
