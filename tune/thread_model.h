/* SPDX-License-Identifier: MIT
 * Time over thread counts: t(n) = a + b / n + c * n with a, b, c >= 0 (a: serial part, b: divisible
 * work, c: what each thread more costs), fitted to measured counts; beyond them a range after
 * G. Amdahl, Validity of the single processor approach, 1967. */
#ifndef TND_THREAD_MODEL_H
#define TND_THREAD_MODEL_H

struct tnd_thread_time {
    double us;
    double low_us, high_us; /* outside of the measured counts a range about us, else us */
};

/** Time at `threads` from `n` >= 1 measured times at ascending thread counts: exact at measured
 *  counts, between two of them the fitted curve plus what it misses at both, linearly. No time is
 *  less than  t(n0) * n0 / threads  for a measured n0 < threads: no speed-up is superlinear. Beyond
 *  the last count the range is Amdahl's, for serial shares about the fitted one. Of one
 *  count alone the time follows Amdahl's law with the serial share TND_SERIAL_PRIOR, and its own
 *  time is the end of the range. */
struct tnd_thread_time tnd_thread_model(const double *counts, const double *times, int n,
                                        double threads);

#endif
