/* SPDX-License-Identifier: MIT
 * Time over thread counts: t(n) = a + b / n + c * n with a, b, c >= 0 (a: serial part, b: divisible
 * work, c: cost of each further thread), fitted to measured counts; beyond them a range after G.
 * Amdahl, Validity of the single processor approach, 1967. */
#ifndef TND_THREAD_MODEL_H
#define TND_THREAD_MODEL_H

struct tnd_thread_time {
    double us;
    /* range about `us` outside of the measured counts; else both are `us` */
    double low_us, high_us;
};

/** Time at `threads` from `n` >= 1 times measured at ascending thread counts: exact at measured
 * counts; between two of them, the fitted curve plus its linearly interpolated residuals at both.
 * No time is below t(n0) * n0 / threads for a measured n0 < threads: no speed-up is superlinear.
 * Beyond the last count the range is that of Amdahl's law for serial shares about the fitted one.
 * With a single count the time follows Amdahl's law with the serial share TND_SERIAL_PRIOR, and the
 * count's own time is one end of the range. */
struct tnd_thread_time tnd_thread_model(const double *counts, const double *times, int n,
                                        double threads);

#endif
