/* SPDX-License-Identifier: MIT
 * Time over thread counts: t(n) = a + b / n + c * n with a, b, c >= 0 (a: serial part, b: divisible
 * work, c: what each thread more costs), fitted to measured counts. */
#ifndef TND_THREAD_MODEL_H
#define TND_THREAD_MODEL_H

/** Time at `threads` from `n` >= 1 measured times at ascending thread counts: exact at measured
 *  counts, between two of them the fitted curve plus what it misses at both, linearly. Positive
 *  times stay positive. One count alone tells nothing of the others: its time is returned. */
double tnd_thread_model(const double *counts, const double *times, int n, double threads);

#endif
