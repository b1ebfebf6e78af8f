/* SPDX-License-Identifier: MIT
 * Spectrograms in double precision. Two windows, which are real, share one complex transform. */
#include "formats/mel.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { WINDOW = 400, HALF = WINDOW / 2, FREQUENCIES = HALF + 1, MAX_PRIME = 5 };
#define PI         3.14159265358979323846
#define MAX_FRAMES (1 << 20)
#define FLOOR      1e-10 /* of powers, before the logarithm */
#define RANGE      8.0   /* below the largest logarithm */

struct number {
    double re, im;
};

/* Tables, and memory for one transform. */
struct mel {
    struct number roots[WINDOW]; /* exp(-2 pi i k / WINDOW) */
    double window[WINDOW];
    double filters[TND_MEL_MAX_BINS][FREQUENCIES];
    struct number in[WINDOW], out[WINDOW];
    double powers[2][FREQUENCIES];
};

static struct number times(struct number a, struct number b)
{
    return (struct number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* ---- the transform (Cooley and Tukey 1965): n = p m, by p transforms of m values ---- */

static int least_factor(int n)
{
    return n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : n % 5 == 0 ? 5 : n;
}

/* Values `step` apart, n of them; WINDOW = n step. 400 has the factors 2 and 5. */
static void transform(const struct mel *mel, const struct number *in, int step, int n,
                      struct number *out)
{
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    const int p = least_factor(n), m = n / p;
    for (int r = 0; r < p; r++) {
        transform(mel, in + r * step, step * p, m, out + r * m);
    }
    for (int k = 0; k < m; k++) {
        struct number part[MAX_PRIME];
        for (int r = 0; r < p; r++) {
            part[r] = times(out[r * m + k], mel->roots[r * k * step % WINDOW]);
        }
        for (int q = 0; q < p; q++) {
            struct number sum = part[0];
            for (int r = 1; r < p; r++) {
                const struct number term = times(part[r], mel->roots[r * q * m * step % WINDOW]);
                sum.re += term.re;
                sum.im += term.im;
            }
            out[q * m + k] = sum;
        }
    }
}

/* ---- tables ---- */

/* Slaney's scale: even up to 1000 Hz, where it is 15, then by the logarithm; and back. */
static double mel_of(double hertz)
{
    return hertz < 1000.0 ? hertz * 3.0 / 200.0 : 15.0 + log(hertz / 1000.0) * 27.0 / log(6.4);
}

static double hertz_of(double mel)
{
    return mel < 15.0 ? mel * 200.0 / 3.0 : 1000.0 * exp((mel - 15.0) * log(6.4) / 27.0);
}

/* Triangles between neighbours that are evenly spaced on the scale. */
static void make_filters(struct mel *mel, int bins)
{
    const double top = mel_of(TND_MEL_RATE / 2.0);
    for (int b = 0; b < bins; b++) {
        const double low = hertz_of(top * b / (bins + 1));
        const double middle = hertz_of(top * (b + 1) / (bins + 1));
        const double high = hertz_of(top * (b + 2) / (bins + 1));
        for (int f = 0; f < FREQUENCIES; f++) {
            const double at = (double)f * TND_MEL_RATE / WINDOW;
            const double up = (at - low) / (middle - low);
            const double down = (high - at) / (high - middle);
            const double least = up < down ? up : down;
            mel->filters[b][f] = least > 0 ? least * 2.0 / (high - low) : 0.0;
        }
    }
}

static void make_tables(struct mel *mel, int bins)
{
    for (int i = 0; i < WINDOW; i++) {
        const double angle = 2 * PI * i / WINDOW;
        mel->roots[i] = (struct number){cos(angle), -sin(angle)};
        mel->window[i] = 0.5 - 0.5 * cos(angle);
    }
    make_filters(mel, bins);
}

/* ---- frames ---- */

/* Sample `i` of `total`, mirrored at both ends (the ends themselves once); zeros behind the `n`
 * that there are. */
static double sample_at(const float *samples, int64_t n, int64_t total, int64_t i)
{
    i = i < 0 ? -i : i;
    i = i >= total ? 2 * (total - 1) - i : i;
    return i >= 0 && i < n ? (double)samples[i] : 0.0;
}

/* The powers of frame `t` and the next one. */
static void find_powers(struct mel *mel, const float *samples, int64_t n, int64_t total, int64_t t)
{
    for (int i = 0; i < WINDOW; i++) {
        const int64_t at = t * TND_MEL_HOP - HALF + i;
        mel->in[i].re = sample_at(samples, n, total, at) * mel->window[i];
        mel->in[i].im = sample_at(samples, n, total, at + TND_MEL_HOP) * mel->window[i];
    }
    transform(mel, mel->in, 1, WINDOW, mel->out);
    for (int k = 0; k < FREQUENCIES; k++) {
        const struct number a = mel->out[k], b = mel->out[(WINDOW - k) % WINDOW];
        const double re = (a.re + b.re) / 2, im = (a.im - b.im) / 2;
        const double re2 = (a.im + b.im) / 2, im2 = (b.re - a.re) / 2;
        mel->powers[0][k] = re * re + im * im;
        mel->powers[1][k] = re2 * re2 + im2 * im2;
    }
}

static double log_power(const struct mel *mel, int bin, int which)
{
    double sum = 0;
    for (int f = 0; f < FREQUENCIES; f++) {
        sum += mel->filters[bin][f] * mel->powers[which][f];
    }
    return log10(sum > FLOOR ? sum : FLOOR);
}

static void compute(struct mel *mel, const float *samples, int64_t n, int bins, int64_t frames,
                    float *out)
{
    double most = -HUGE_VAL;
    for (int64_t t = 0; t < frames; t += 2) {
        find_powers(mel, samples, n, frames * TND_MEL_HOP, t);
        for (int b = 0; b < bins; b++) {
            for (int which = 0; which < 2 && t + which < frames; which++) {
                const double value = log_power(mel, b, which);
                most = value > most ? value : most;
                out[b * frames + t + which] = (float)value;
            }
        }
    }
    for (int64_t i = 0; i < bins * frames; i++) {
        const double value = (double)out[i] > most - RANGE ? (double)out[i] : most - RANGE;
        out[i] = (float)((value + 4.0) / 4.0);
    }
}

enum tandem_status tnd_mel(const float *samples, int64_t n, int bins, int64_t frames,
                           struct tnd_array **out, struct tandem_error *error)
{
    frames = frames == 0 ? (n + TND_MEL_HOP - 1) / TND_MEL_HOP : frames;
    if (bins < 1 || bins > TND_MEL_MAX_BINS || frames < 2 || frames > MAX_FRAMES) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, NULL, frames, MAX_FRAMES,
                             "a spectrogram of %d bins and %lld frames, expected 1 to %d and 2 to "
                             "%d",
                             bins, (long long)frames, TND_MEL_MAX_BINS, MAX_FRAMES);
    }
    const struct tnd_dims shape = {3, {1, bins, frames}};
    struct mel *mel = tnd_calloc(1, sizeof(*mel));
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, &shape);
    if (mel == NULL || array == NULL) {
        tnd_free(mel);
        tnd_array_free(array);
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, frames, 0,
                             "no memory for a spectrogram of %lld frames", (long long)frames);
    }
    make_tables(mel, bins);
    compute(mel, samples, n, bins, frames, array->data);
    tnd_free(mel);
    *out = array;
    return TANDEM_OK;
}
