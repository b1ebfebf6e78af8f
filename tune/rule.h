/* SPDX-License-Identifier: MIT
 * The rule: what is done without a table, or outside of it. It has to be right on every machine, so
 * it knows the CPU kernels alone: they are always there and use all threads. */
#ifndef TND_RULE_H
#define TND_RULE_H

#include "table/problem.h"
#include "table/tnd_table.h"
#include "tandem/ops.h"
#include "tune/policy.h"

/** Names of the profiles for matrix products on a CPU (tnd_cpu_id; "": unknown), static storage;
 *  the first one that can run serves. NULL behind the last. Packed weights: measured (Zen 4, two
 *  threads, 6 types, 5 shapes, 1 to 512 tokens), they take at most 1.06 times as long as the
 *  fastest profile in 141 of 150 cells, 1.2 times at worst, and a quarter of the time of the rows
 *  at best. Before them pairs of BF16 on AMD's CPUs, where they have twice the rate of FMA (Zen 4
 *  and 5); on Intel's half of it, by libxsmm's benchmarks (tpp-mlir, pull request 1025). Any
 *  thread. */
const char *tnd_rule_profile(const char *cpu_id, int i);
/** The place of a profile among those to which a tie goes: all but the last one, which only stands
 *  in. INT_MAX when it is none of them. */
int tnd_rule_rank(const char *cpu_id, const char *profile);
/** Whether a profile of the rule rounds activations, so that an error bound rules it out unless a
 *  check has found its error below. */
bool tnd_rule_rounds(const char *profile);

/** Threads for a node: 1 when its work is too small to pay for handing it to others, else
 *  n_threads. `handoff_us`: what that was measured to cost; 0: unknown. */
int tnd_rule_threads(const tandem_tensor *node, int n_threads, double handoff_us);
/** As tnd_rule_threads, for a matrix product, of at most n_threads. A single token only reads the
 *  weights, for which one thread a core is enough: no more than `n_cores` (0: unknown). */
int tnd_rule_product_threads(const tandem_tensor *node, int n_threads, int n_cores,
                             double handoff_us);
/** As tnd_rule_product_threads, for a plain product that is no node yet. */
int tnd_rule_problem_threads(const struct tnd_problem *problem, int n_threads, int n_cores,
                             double handoff_us);

/** Whether a graph's products are so long that threads which share their CPUs with other programs
 *  gain more by all of them than they lose by waiting for each other. */
bool tnd_rule_is_long(const tandem_graph *graph);

/** What a node takes by the rule's idea of a core, and no less than its bytes take at the bandwidth
 *  of `table` (may be NULL); within a factor of a few. 0: nothing, or nobody knows (custom). */
double tnd_rule_us(const struct tandem_table *table, const tandem_tensor *node, int n_threads);

#endif
