/* SPDX-License-Identifier: MIT
 * Weights in flight: products whose weights stay in host memory and are uploaded for each use
 * (sched/stream.h). Filters the candidates and prices them. While one product is computed, the
 * weights of the next one are uploaded, so that in a sequence each product costs the longer of the
 * two. */
#ifndef TND_STREAM_COST_H
#define TND_STREAM_COST_H

#include "tune/candidates.h"

/** Whether the profile uses weights in flight. */
bool tnd_profile_streams(const struct tnd_table_profile *profile);

/** Adds candidates with weights in flight: a twin of each candidate that runs completely on a
 * device with known upload times. Returns the new number of candidates. */
int tnd_stream_twins(const struct tandem_table *table, struct tnd_candidate *candidates, int n);

/** Filters the candidates for a weight. Removes streaming ones on devices that have room for it, or
 * all if the weight may change; on devices without room (`refused`: bit a slot) only streaming ones
 * remain. Returns the new number of candidates. */
int tnd_stream_filter(struct tnd_candidate *candidates, int n, uint32_t refused, bool is_constant);

/** Adds the weights' upload to the times of stages measured with weights on the device: the time by
 * which it exceeds COMPUTE, or, for a product alone (`is_alone`), all of it, since nothing hides
 * it. In a sequence the longer of both is multiplied by the device's slow-down beside its own
 * transfers, if measured. Profiles that do not stream stay unchanged. */
void tnd_stream_add(const struct tandem_table *table, const struct tnd_table_profile *profile,
                    enum tandem_type type, int64_t n, int64_t k, bool is_alone,
                    struct tnd_estimate *compute, struct tnd_estimate *total);

/** The crossover of a product in a long sequence: the least M at which the streaming profile is
 * estimated to be faster than the profile `host` on `threads` threads; 0: at no M up to `most`, or
 * unknown. */
int64_t tnd_stream_crossover(const struct tandem_table *table,
                             const struct tnd_table_profile *streaming,
                             const struct tnd_table_profile *host, enum tandem_type type, int64_t n,
                             int64_t k, int threads, int64_t most);

#endif
