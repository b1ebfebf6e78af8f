/* SPDX-License-Identifier: MIT
 * Plans with their own thread counts against plans in which every node has the same number of
 * threads, measured in turns so that a noisy machine hits both alike. */
#ifndef TANDEM_LLAMA_THREAD_COMPARE_H
#define TANDEM_LLAMA_THREAD_COMPARE_H

#include <stdint.h>

#include "tools/tandem-llama/speed.h"

enum { TND_COMPARE_MAX = 8 };

/** Thread counts to compare with; 0 of them: no comparison. */
struct tnd_thread_compare {
    int counts[TND_COMPARE_MAX];
    int n;
    int forced; /* of the plans that are made now; 0: as planned */
    struct tnd_speed speed[TND_COMPARE_MAX];
};

/** For tandem_session_options: gives each node `forced` threads. `user` is the comparison. */
void tnd_thread_compare_adjust(void *user, const tandem_graph *graph, tandem_plan *plan);
/** A line for each thread count, as tnd_speed_print_ratio. */
void tnd_thread_compare_print(const struct tnd_thread_compare *compare, const char *test,
                              const struct tnd_speed *planned);

#endif
