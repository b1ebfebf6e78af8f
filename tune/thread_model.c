/* SPDX-License-Identifier: MIT
 * Least-squares fit of t(n) = a + b/n + c*n with coefficients >= 0. */
#include "tune/thread_model.h"

#include <math.h>
#include <stdbool.h>

#include "base/tnd_assert.h"
#include "tune/policy.h"

/* Value of the i-th term of the model. */
static double term(int i, double threads)
{
    return i == 0 ? 1.0 : i == 1 ? 1.0 / threads : threads;
}

static double model(const double coefficient[3], double threads)
{
    return coefficient[0] + coefficient[1] / threads + coefficient[2] * threads;
}

/* Solves the normal equations of the terms in `subset` (bit i: term i) by Gaussian elimination with
 * pivoting. False when they are singular or a coefficient is negative. */
static bool solve(const double *counts, const double *times, int n, unsigned subset, double out[3])
{
    int index[3];
    int size = 0;
    for (int i = 0; i < 3; i++) {
        if (subset & (1u << i)) {
            index[size++] = i;
        }
    }
    double a[3][4] = {{0.0}};
    for (int p = 0; p < n; p++) {
        /* Relative errors count, not absolute ones: 1 thread must not outweigh 16. */
        double weight = 1.0 / (times[p] * times[p] + 1e-12);
        for (int i = 0; i < size; i++) {
            for (int j = 0; j < size; j++) {
                a[i][j] += weight * term(index[i], counts[p]) * term(index[j], counts[p]);
            }
            a[i][size] += weight * term(index[i], counts[p]) * times[p];
        }
    }
    for (int column = 0; column < size; column++) {
        int pivot = column;
        for (int row = column + 1; row < size; row++) {
            pivot = fabs(a[row][column]) > fabs(a[pivot][column]) ? row : pivot;
        }
        double largest = a[pivot][column];
        if (!(fabs(largest) > 1e-12 * fabs(a[0][0]) + 1e-300)) {
            return false;
        }
        for (int j = 0; j <= size; j++) {
            double swapped = a[pivot][j];
            a[pivot][j] = a[column][j];
            a[column][j] = swapped;
        }
        for (int row = 0; row < size; row++) {
            double factor = row == column ? 0.0 : a[row][column] / largest;
            for (int j = column; j <= size; j++) {
                a[row][j] -= factor * a[column][j];
            }
        }
    }
    double found[3] = {0.0, 0.0, 0.0};
    for (int i = 0; i < size; i++) {
        found[index[i]] = a[i][size] / a[i][i];
        if (!(found[index[i]] >= 0.0) || !isfinite(found[index[i]])) {
            return false;
        }
    }
    for (int i = 0; i < 3; i++) {
        out[i] = found[i];
    }
    return true;
}

/* Fits every set of terms and keeps, of those without negative coefficients, the one with the least
 * error: exact for three terms, without a general solver. A set has at most as many terms as there
 * are points. */
static void fit(const double *counts, const double *times, int n, double out[3])
{
    TND_ASSERT(n >= 2);
    static const unsigned subsets[] = {2, 1, 4, 3, 6, 5, 7}; /* b; a; c; a b; b c; a c; a b c */
    static const int sizes[] = {1, 1, 1, 2, 2, 2, 3};
    double best = HUGE_VAL;
    out[0] = times[n - 1];
    out[1] = 0.0;
    out[2] = 0.0;
    for (int s = 0; s < 7; s++) {
        double prediction[3];
        if (sizes[s] > n || !solve(counts, times, n, subsets[s], prediction)) {
            continue;
        }
        double error = 0.0;
        for (int p = 0; p < n; p++) {
            double miss = (model(prediction, counts[p]) - times[p]) / (times[p] + 1e-6);
            error += miss * miss;
        }
        if (error < best * (1.0 - 1e-9) - 1e-18) {
            best = error;
            for (int i = 0; i < 3; i++) {
                out[i] = prediction[i];
            }
        }
    }
}

/* Amdahl's law: the part of one thread's time that remains on `threads`. */
static double amdahl(double serial_share, double threads)
{
    return serial_share + (1.0 - serial_share) / threads;
}

/* The time at `threads`, of which `known_us` was measured at `known`. */
static double scaled(double known_us, double known, double serial_share, double threads)
{
    return known_us * amdahl(serial_share, threads) / amdahl(serial_share, known);
}

/* Least time at `threads` by Amdahl's law, from each smaller measured count. */
static double least_time(const double *counts, const double *times, int n, double serial_share,
                         double threads)
{
    double least = 0.0;
    for (int i = 0; i < n && counts[i] < threads; i++) {
        least = fmax(least, scaled(times[i], counts[i], serial_share, threads));
    }
    return least;
}

/* The fitted curve plus its residuals: interpolated between two counts, else that of the nearest.
 */
static double along(const double *counts, const double *times, int n, const double coefficient[3],
                    double threads)
{
    int above = 0;
    while (above < n && counts[above] < threads) {
        above++;
    }
    int below = above == 0 ? 0 : above - 1;
    above = above == n ? n - 1 : above;
    double miss_below = times[below] - model(coefficient, counts[below]);
    double miss_above = times[above] - model(coefficient, counts[above]);
    double span = counts[above] - counts[below];
    double part = span > 0.0 ? (threads - counts[below]) / span : 0.0;
    return model(coefficient, threads) + miss_below + part * (miss_above - miss_below);
}

static struct tnd_thread_time above_all(const double *counts, const double *times, int n,
                                        double threads)
{
    double known = counts[n - 1];
    double known_us = times[n - 1];
    double coefficient[3] = {known_us, 0.0, 0.0};
    double serial = 0.0;
    if (n > 1) {
        fit(counts, times, n, coefficient);
        double one = coefficient[0] + coefficient[1];
        serial = one > 0.0 ? coefficient[0] / one : 1.0;
    }
    double prior = TND_SERIAL_PRIOR / fmax(known - 1.0, 1.0);
    double most = n > 1 ? fmin(1.0, 2.0 * serial + prior) : 1.0;
    struct tnd_thread_time out;
    out.low_us = least_time(counts, times, n, fmax(serial / 2.0, TND_SERIAL_LEAST), threads);
    out.high_us = scaled(known_us, known, most, threads) + coefficient[2] * (threads - known);
    out.high_us = fmax(out.high_us, out.low_us);
    out.us = n > 1 ? along(counts, times, n, coefficient, threads)
                   : scaled(known_us, known, TND_SERIAL_PRIOR, threads);
    out.us = fmin(fmax(out.us, out.low_us), out.high_us);
    return out;
}

/* Range for fewer threads than were measured: at best as fast, at worst by Amdahl's law without a
 * serial part. */
static struct tnd_thread_time below_all(const double *counts, const double *times, double threads)
{
    struct tnd_thread_time out;
    out.low_us = times[0];
    out.us = scaled(times[0], counts[0], TND_SERIAL_PRIOR, threads);
    out.high_us = times[0] * counts[0] / threads;
    return out;
}

struct tnd_thread_time tnd_thread_model(const double *counts, const double *times, int n,
                                        double threads)
{
    TND_ASSERT(n >= 1 && threads >= 1);
    for (int i = 0; i < n; i++) {
        if (counts[i] == threads) {
            return (struct tnd_thread_time){times[i], times[i], times[i]};
        }
    }
    if (threads > counts[n - 1]) {
        return above_all(counts, times, n, threads);
    }
    if (threads < counts[0]) {
        return below_all(counts, times, threads);
    }
    double coefficient[3];
    fit(counts, times, n, coefficient);
    double us = fmax(along(counts, times, n, coefficient, threads),
                     least_time(counts, times, n, 0.0, threads));
    return (struct tnd_thread_time){us, us, us};
}
