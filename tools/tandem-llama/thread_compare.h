/* SPDX-License-Identifier: MIT
 * Compares plans with their own thread counts against plans with the same thread count for all
 * nodes, in turns, so that disturbances affect both alike. */
#ifndef TANDEM_LLAMA_THREAD_COMPARE_H
#define TANDEM_LLAMA_THREAD_COMPARE_H

#include <stdint.h>

#include "tools/tandem-llama/speed.h"

enum { TND_COMPARE_MAX = 8 };

/** Thread counts to compare with; n is 0: no comparison. */
struct tnd_thread_compare {
    int counts[TND_COMPARE_MAX];
    int n;
    int forced; /* thread count for new plans; 0: as planned */
    struct tnd_speed speed[TND_COMPARE_MAX];
};

/** For tandem_session_options: sets `forced` threads for each node. `user` is the comparison. */
void tnd_thread_compare_adjust(void *user, const tandem_graph *graph, tandem_plan *plan);
/** Prints one line per thread count, as tnd_speed_print_ratio. */
void tnd_thread_compare_print(const struct tnd_thread_compare *compare, const char *test,
                              const struct tnd_speed *planned);

#endif
