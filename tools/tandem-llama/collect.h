/* SPDX-License-Identifier: MIT
 * Sums, over tokens, the squares of the activations that a model's matrices are multiplied by. They
 * are read by a backend of the program's own: INIT of its profile "collect" reads the activations
 * of each product, and COMPUTE is the CPU's. */
#ifndef TANDEM_LLAMA_COLLECT_H
#define TANDEM_LLAMA_COLLECT_H

#include "formats/importance.h"
#include "tandem/runtime.h"

/** Adds the backend to a runtime and forces its profile. Only one per process at a time. */
enum tandem_status tnd_collect_begin(tandem_runtime *runtime, struct tandem_error *error);
/** The sums so far, borrowed; in the order of first use. False: out of memory. */
bool tnd_collect_sums(const struct tnd_importance_sums **out, int *out_n);
/** Frees the sums. */
void tnd_collect_end(void);

#endif
