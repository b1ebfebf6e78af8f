/* SPDX-License-Identifier: MIT
 * The rule: choices without a table, or outside of its range. It has to work on every machine, so
 * it uses only the CPU kernels, which are always available and use all threads. */
#ifndef TND_RULE_H
#define TND_RULE_H

#include "table/problem.h"
#include "table/tnd_table.h"
#include "tandem/ops.h"
#include "tune/policy.h"

/** Names of the profiles for matrix products on a CPU (tnd_cpu_id; "": unknown), static storage, in
 * order of preference; NULL after the last one. Packed weights: measured (Zen 4, two threads, 6
 * types, 5 shapes, 1 to 512 tokens), they take at most 1.06 times as long as the fastest profile in
 * 141 of 150 cells, 1.2 times at worst, and a quarter of the time of unpacked rows at best. On
 * AMD's CPUs pairs of BF16 come first, which have twice the rate of FMA (Zen 4 and 5); on Intel's
 * they have half of it, by libxsmm's benchmarks (tpp-mlir, pull request 1025). Any thread. */
const char *tnd_rule_profile(const char *cpu_id, int i);
/** Index of a profile in the rule's order, by which ties are broken. INT_MAX for the last profile,
 * which is a fallback, and for all others. */
int tnd_rule_rank(const char *cpu_id, const char *profile);
/** Whether a profile of the rule rounds activations, so that an error bound excludes it until a
 * check has found its error within the bound. */
bool tnd_rule_rounds(const char *profile);

/** Threads for a node: 1 if its work is too small to hand out, else n_threads. `handoff_us`:
 * measured cost of a hand-off; 0: unknown. */
int tnd_rule_threads(const tandem_tensor *node, int n_threads, double handoff_us);
/** Like tnd_rule_threads, for a matrix product. A single token is limited by reading the weights,
 * which one thread per core saturates: at most `n_cores` threads (0: unknown). */
int tnd_rule_product_threads(const tandem_tensor *node, int n_threads, int n_cores,
                             double handoff_us);
/** Like tnd_rule_product_threads, for a plain product without a node. */
int tnd_rule_problem_threads(const struct tnd_problem *problem, int n_threads, int n_cores,
                             double handoff_us);

/** Whether a graph's products are so long that, with other programs on the same CPUs, using all
 * threads gains more than waiting for the slowest one costs. */
bool tnd_rule_is_long(const tandem_graph *graph);

/** Rough time of a node by the rule's speed of a core, and at least the time of its bytes at the
 * bandwidth of `table` (may be NULL); right within a factor of a few. 0: no work, or unknown
 * (custom). */
double tnd_rule_us(const struct tandem_table *table, const tandem_tensor *node, int n_threads);

#endif
