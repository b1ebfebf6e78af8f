/* SPDX-License-Identifier: MIT
 * Squares of what the matrices of a model are multiplied by, summed over tokens. A backend of the
 * program's own sees them: INIT of its profile "collect" reads the activations of each product, and
 * COMPUTE is the CPU's. */
#ifndef TANDEM_LLAMA_COLLECT_H
#define TANDEM_LLAMA_COLLECT_H

#include "formats/importance.h"
#include "tandem/runtime.h"

/** Adds the backend to a runtime and forces its profile. One at a time in the process. */
enum tandem_status tnd_collect_begin(tandem_runtime *runtime, struct tandem_error *error);
/** What was collected so far, borrowed; in the order of first use. False: memory ran out. */
bool tnd_collect_sums(const struct tnd_importance_sums **out, int *out_n);
/** Frees it. */
void tnd_collect_end(void);

#endif
