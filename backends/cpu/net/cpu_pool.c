/* SPDX-License-Identifier: MIT
 * Pools of F32: strips of channels, in the layout in which they come. */
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
    const struct tnd_window *window = &work->params->window;
    int64_t tap[TANDEM_NET_MAX_WINDOW] = {0};
    int i;
    for (int c = 0; c < n; c++) {
        best[c] = -INFINITY;
        sums[c] = 0;
    }
    do {
        int64_t at = place->image * x->strides[0] + channel * x->strides[1];
        bool is_inside = true;
        for (int d = 0; d < window->n; d++) {
            const int64_t where = place->begin[d] + tap[d] * window->dilation[d];
            is_inside = is_inside && where >= 0 && where < x->shape.dims[2 + d];
            at += where * x->strides[2 + d];
        }
        if (is_inside && work->params->kind == TANDEM_POOL_MAX) {
            take(best, (const float *)x->data + at, n, x->strides[1]);
        } else if (is_inside) {
            add(sums, (const float *)x->data + at, n, x->strides[1]);
        }
        for (i = window->n - 1; i >= 0 && ++tap[i] == window->extent[i]; i--) {
            tap[i] = 0;
        }
    } while (i >= 0);
}

enum { MAX_TAPS = 64 };

/* Where the values are that the window of a place sees; at most MAX_TAPS. */
static int find_taps(const struct tnd_work *work, const struct tnd_view *x,
                     const struct place *place, const float **out)
{
    const struct tnd_window *window = &work->params->window;
    int64_t tap[TANDEM_NET_MAX_WINDOW] = {0};
    int n = 0;
    int i;
    do {
        int64_t at = place->image * x->strides[0];
        bool is_inside = true;
        for (int d = 0; d < window->n; d++) {
            const int64_t where = place->begin[d] + tap[d] * window->dilation[d];
            is_inside = is_inside && where >= 0 && where < x->shape.dims[2 + d];
            at += where * x->strides[2 + d];
        }
        if (is_inside) {
            out[n++] = (const float *)x->data + at;
        }
        for (i = window->n - 1; i >= 0 && ++tap[i] == window->extent[i]; i--) {
            tap[i] = 0;
        }
    } while (i >= 0);
    return n;
}

/* The largest values of one place, channels last, as far as the vectors of the CPU divide the
 * channels. Returns how many channels. */
static int64_t pool_wide(const struct tnd_conv_kernel *kernel, const struct tnd_work *work,
                         const struct tnd_view *x, const struct place *place, float *y)
{
    const int64_t n_channels = work->shape.dims[1] / kernel->channels * kernel->channels;
    const float *taps[MAX_TAPS];
    const int n = find_taps(work, x, place, taps);
    for (int64_t channel = 0; n > 0 && channel < n_channels; channel += kernel->channels) {
        kernel->largest(taps, n, channel, y + channel);
    }
    return n > 0 ? n_channels : 0;
}

/* Whether pool_wide can. */
static bool is_wide(const struct tnd_work *work)
{
    const struct tnd_window *window = &work->params->window;
    int64_t taps = 1;
    for (int i = 0; i < window->n && taps <= MAX_TAPS; i++) {
        taps *= window->extent[i];
    }
    return work->layout == TND_LAYOUT_LAST && work->params->kind == TANDEM_POOL_MAX &&
           taps <= MAX_TAPS;
}

enum tandem_status tnd_cpu_work_pool(const struct tnd_cpu_kernels *kernels,
                                     const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_work *work = node->params.work;
    int64_t strides[TANDEM_NET_MAX_DIMS];
    struct tnd_view x;
    float *y = tandem_tensor_data(node);
    const bool wide = is_wide(work);
    tnd_work_views(work, node, &x);
    tnd_net_strides(&work->shape, work->layout, strides);
    for (int64_t item = begin; item < end; item++) {
        const struct place place = place_of(work, strides, item);
        int64_t channel = !wide ? 0 : pool_wide(&kernels->conv, work, &x, &place, y + place.at);
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
