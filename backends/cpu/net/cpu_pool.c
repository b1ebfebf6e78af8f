/* SPDX-License-Identifier: MIT
 * Pools of F32, and the largest ones of bytes: strips of channels, in the layout in which they
 * come. */
#include <math.h>

#include "backends/cpu/net/cpu_net.h"

struct place {
    int64_t begin[TANDEM_NET_MAX_WINDOW]; /* of the window in the input */
    int64_t image, at;                    /* where the result goes, in values */
};

static struct place place_of(const struct tnd_work *work, const int64_t *strides, int64_t item)
{
    const struct tnd_window *window = &work->params->window;
    struct place place = {.at = 0};
    for (int i = window->n - 1; i >= 0; i--) {
        const int64_t at = item % work->shape.dims[2 + i];
        item /= work->shape.dims[2 + i];
        place.begin[i] = at * window->stride[i] - window->begin[i];
        place.at += at * strides[2 + i];
    }
    place.image = item;
    place.at += item * strides[0];
    return place;
}

enum { MOST_ROWS = 64 };

/* A walk over the taps of a window. */
struct walk {
    int64_t tap[TANDEM_NET_MAX_WINDOW];
    bool is_done;
};

/* Where the channels begin that the next taps of a place see, at most `most`. */
static int next_rows(const struct tnd_work *work, const struct tnd_view *x,
                     const struct place *place, struct walk *walk, int most, const void **out)
{
    const struct tnd_window *window = &work->params->window;
    const int64_t bytes = (int64_t)tandem_dtype_bytes(work->type);
    int n = 0;
    while (!walk->is_done && n < most) {
        int64_t at = place->image * x->strides[0];
        bool is_inside = true;
        int i;
        for (int d = 0; d < window->n; d++) {
            const int64_t where = place->begin[d] + walk->tap[d] * window->dilation[d];
            is_inside = is_inside && where >= 0 && where < x->shape.dims[2 + d];
            at += where * x->strides[2 + d];
        }
        if (is_inside) {
            out[n++] = (const char *)x->data + at * bytes;
        }
        for (i = window->n - 1; i >= 0 && ++walk->tap[i] == window->extent[i]; i--) {
            walk->tap[i] = 0;
        }
        walk->is_done = i < 0;
    }
    return n;
}

/* What a window found so far of some channels, and one more place. Loops of constant length take
 * most of the channels that lie side by side: compilers vectorise these. */
static void take(float *restrict best, const float *restrict x, int n, int64_t stride)
{
    if (n == TND_LANES && stride == 1) {
        for (int c = 0; c < TND_LANES; c++) {
            best[c] = ((best[c] > x[c]) | (best[c] != best[c])) ? best[c] : x[c];
        }
        return;
    }
    for (int c = 0; c < n; c++) {
        const float v = x[c * stride];
        best[c] = best[c] > v || best[c] != best[c] ? best[c] : v;
    }
}

static void add(double *restrict sums, const float *restrict x, int n, int64_t stride)
{
    if (n == TND_LANES && stride == 1) {
        for (int c = 0; c < TND_LANES; c++) {
            sums[c] += (double)x[c];
        }
        return;
    }
    for (int c = 0; c < n; c++) {
        sums[c] += (double)x[c * stride];
    }
}

/* Some channels of one place. */
static void pool_strip(const struct tnd_work *work, const struct tnd_view *x,
                       const struct place *place, int64_t channel, int n, float *best, double *sums)
{
    const int64_t stride = x->strides[1];
    const void *rows[MOST_ROWS];
    struct walk walk = {.is_done = false};
    for (int c = 0; c < n; c++) {
        best[c] = -INFINITY;
        sums[c] = 0;
    }
    for (int n_rows; (n_rows = next_rows(work, x, place, &walk, MOST_ROWS, rows)) > 0;) {
        for (int i = 0; i < n_rows; i++) {
            const float *values = (const float *)rows[i] + channel * stride;
            if (work->params->kind == TANDEM_POOL_MAX) {
                take(best, values, n, stride);
            } else {
                add(sums, values, n, stride);
            }
        }
    }
}

/* ---- the largest values, channels side by side ---- */

/* Of one place, channels last: all channels where one vector of the CPU has them, else none.
 * Returns how many. The last vector begins so early that it is full: what two vectors find of a
 * channel is the same. */
static int64_t pool_wide(const struct tnd_conv_kernel *kernel, const struct tnd_work *work,
                         const struct tnd_view *x, const struct place *place, float *y)
{
    const int64_t n_channels = work->shape.dims[1];
    const int64_t last = n_channels - kernel->channels;
    const void *rows[MOST_ROWS + 1];
    struct walk walk = {.is_done = false};
    int n_before = 0; /* rows in front: what was found so far */
    if (last < 0) {
        return 0;
    }
    for (int n; (n = next_rows(work, x, place, &walk, MOST_ROWS, rows + n_before)) > 0;) {
        for (int64_t at = 0; at < n_channels; at += kernel->channels) {
            const int64_t channel = at < last ? at : last;
            kernel->largest((const float *const *)rows, n + n_before, channel, y + channel);
        }
        n_before = 1;
        rows[0] = y;
    }
    return n_before > 0 ? n_channels : 0;
}

/* The same of bytes, in any layout: all channels. */
static void pool_bytes(const struct tnd_conv_kernel *kernel, const struct tnd_work *work,
                       const struct tnd_view *x, const struct place *place, int64_t stride,
                       uint8_t *y)
{
    const uint8_t flip = work->type == TANDEM_DTYPE_I8 ? 128 : 0; /* in the order of uint8_t */
    const int64_t n_channels = work->shape.dims[1];
    const bool is_wide = work->layout == TND_LAYOUT_LAST;
    const void *rows[MOST_ROWS + 1];
    struct walk walk = {.is_done = false};
    int n_before = 0;
    for (int64_t c = 0; c < n_channels; c++) { /* (the least byte, if there is no tap) */
        y[c * stride] = flip;
    }
    for (int n; (n = next_rows(work, x, place, &walk, MOST_ROWS, rows + n_before)) > 0;) {
        if (is_wide) {
            kernel->largest_bytes((const uint8_t *const *)rows, n + n_before, n_channels, flip, y);
            n_before = 1;
            rows[0] = y;
            continue;
        }
        for (int64_t c = 0; c < n_channels; c++) {
            uint8_t best = y[c * stride] ^ flip;
            for (int i = 0; i < n; i++) {
                const uint8_t v = ((const uint8_t *)rows[i])[c * x->strides[1]] ^ flip;
                best = best > v ? best : v;
            }
            y[c * stride] = best ^ flip;
        }
    }
}

enum tandem_status tnd_cpu_work_pool(const struct tnd_cpu_kernels *kernels,
                                     const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_work *work = node->params.work;
    int64_t strides[TANDEM_NET_MAX_DIMS];
    struct tnd_view x;
    float *y = tandem_tensor_data(node);
    const bool is_wide = work->layout == TND_LAYOUT_LAST && work->params->kind == TANDEM_POOL_MAX;
    tnd_work_views(work, node, &x);
    tnd_net_strides(&work->shape, work->layout, strides);
    for (int64_t item = begin; item < end; item++) {
        const struct place place = place_of(work, strides, item);
        if (work->type != TANDEM_DTYPE_F32) {
            pool_bytes(&kernels->conv, work, &x, &place, strides[1], (uint8_t *)y + place.at);
            continue;
        }
        int64_t channel = !is_wide ? 0 : pool_wide(&kernels->conv, work, &x, &place, y + place.at);
        for (; channel < work->shape.dims[1]; channel += TND_LANES) {
            float best[TND_LANES];
            double sums[TND_LANES];
            const int64_t left = work->shape.dims[1] - channel;
            const int n = (int)(left < TND_LANES ? left : TND_LANES);
            pool_strip(work, &x, &place, channel, n, best, sums);
            for (int c = 0; c < n; c++) {
                y[place.at + (channel + c) * strides[1]] =
                    work->params->kind == TANDEM_POOL_MAX ? best[c] : (float)sums[c];
            }
        }
    }
    return TANDEM_OK;
}
