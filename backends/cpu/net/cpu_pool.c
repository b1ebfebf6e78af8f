/* SPDX-License-Identifier: MIT
 * Pools of F32, and maximum pools of bytes: strips of channels, in the layout of the input. */
#include <math.h>

#include "backends/cpu/net/cpu_net.h"
#include "base/lanes.h"

struct place {
    int64_t begin[TANDEM_NET_MAX_WINDOW]; /* start of the window in the input */
    int64_t image, at;                    /* destination in the result, in values */
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

/* Iterates over the taps of a window. */
struct walk {
    int64_t tap[TANDEM_NET_MAX_WINDOW];
    bool is_done;
};

/* Addresses of the channels that a position's next taps read, at most `most`. */
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

/* ---- adjacent positions together ---- */

enum { POOL_VALUES = 512, POOL_CHANNELS = 64 /* of a block */ };

/* Some adjacent positions along the last dimension, and some channels of each. */
struct block {
    int n_places, n_channels;
    union { /* by the kind of pool */
        float best[POOL_VALUES];
        double sums[POOL_VALUES];
    };
};

/* Element-wise maximum; the first one among equals stays, and so does NaN. */
static void take_run(float *restrict best, const float *restrict x, int64_t n)
{
    int64_t i = 0;
    for (; i + TND_VEC_LANES <= n; i += TND_VEC_LANES) {
        tnd_vec_store(best + i, tnd_vec_max(tnd_vec_load(best + i), tnd_vec_load(x + i)));
    }
    for (; i < n; i++) {
        best[i] = best[i] > x[i] || best[i] != best[i] ? best[i] : x[i];
    }
}

/* One tap of `n` positions from `first` on, `step` values apart. */
static void take_tap(struct block *block, int64_t first, int64_t n, const float *x, int64_t step)
{
    float *best = block->best + first * block->n_channels;
    if (step == block->n_channels) {
        take_run(best, x, n * step);
        return;
    }
    if (block->n_channels == 1) {
        for (int64_t i = 0; i < n; i++) {
            const float v = x[i * step];
            best[i] = best[i] > v || best[i] != best[i] ? best[i] : v;
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        take_run(best + i * block->n_channels, x + i * step, block->n_channels);
    }
}

static void add_tap(struct block *block, int64_t first, int64_t n, const float *x, int64_t step)
{
    double *sums = block->sums + first * block->n_channels;
    for (int64_t i = 0; i < n; i++) {
        for (int c = 0; c < block->n_channels; c++) {
            sums[i * block->n_channels + c] += (double)x[i * step + c];
        }
    }
}

/* The taps along the last dimension; `values` is at its index 0. `begin`: start of the window of
 * the block's first position. */
static void take_row(const struct tnd_work *work, struct block *block, const struct tnd_view *x,
                     const float *values, int64_t begin)
{
    const struct tnd_window *window = &work->params->window;
    const int last = window->n - 1;
    const int64_t extent = x->shape.dims[2 + last];
    const int64_t stride = window->stride[last];
    const int64_t step = x->strides[2 + last];
    for (int64_t tap = 0; tap < window->extent[last]; tap++) {
        const int64_t at = begin + tap * window->dilation[last];
        const int64_t first = at < 0 ? (-at + stride - 1) / stride : 0;
        int64_t end = at < extent ? (extent - at + stride - 1) / stride : 0;
        end = end < block->n_places ? end : block->n_places;
        if (first < end) {
            const float *from = values + (at + first * stride) * step;
            (work->params->kind == TANDEM_POOL_MAX ? take_tap : add_tap)(block, first, end - first,
                                                                         from, stride * step);
        }
    }
}

/* Pools a block that begins at `place`, channels from `channel` on. */
static void pool_block(const struct tnd_work *work, struct block *block, const struct tnd_view *x,
                       const struct place *place, int64_t channel)
{
    const struct tnd_window *window = &work->params->window;
    const int last = window->n - 1;
    struct walk walk = {.is_done = false};
    for (int i = 0; i < block->n_places * block->n_channels; i++) {
        if (work->params->kind == TANDEM_POOL_MAX) {
            block->best[i] = -INFINITY;
        } else {
            block->sums[i] = 0;
        }
    }
    while (!walk.is_done) {
        int64_t at = place->image * x->strides[0] + channel * x->strides[1];
        bool is_inside = true;
        int i = last - 1;
        for (int d = 0; d < last; d++) {
            const int64_t where = place->begin[d] + walk.tap[d] * window->dilation[d];
            is_inside = is_inside && where >= 0 && where < x->shape.dims[2 + d];
            at += where * x->strides[2 + d];
        }
        if (is_inside) {
            take_row(work, block, x, (const float *)x->data + at, place->begin[last]);
        }
        for (; i >= 0 && ++walk.tap[i] == window->extent[i]; i--) {
            walk.tap[i] = 0;
        }
        walk.is_done = i < 0;
    }
}

/* Pools `n` adjacent positions along the last dimension from `place` on; `strides`: of the
 * result. */
static void pool_places(const struct tnd_work *work, const struct tnd_view *x,
                        const int64_t *strides, struct place place, int64_t n, float *y)
{
    const int last = work->params->window.n - 1;
    const int64_t channels = work->shape.dims[1];
    const bool is_wide = x->strides[1] == 1 && channels > 1;
    const int64_t n_channels = !is_wide ? 1 : channels < POOL_CHANNELS ? channels : POOL_CHANNELS;
    struct block block;
    for (int64_t done = 0; done < n; done += block.n_places) {
        const int64_t left = n - done;
        block.n_places = (int)(left < POOL_VALUES / n_channels ? left : POOL_VALUES / n_channels);
        for (int64_t channel = 0; channel < channels; channel += block.n_channels) {
            block.n_channels =
                (int)(channels - channel < n_channels ? channels - channel : n_channels);
            pool_block(work, &block, x, &place, channel);
            for (int i = 0; i < block.n_places; i++) {
                const int first = i * block.n_channels;
                float *to = y + place.at + i * strides[2 + last] + channel * strides[1];
                for (int c = 0; c < block.n_channels; c++) {
                    to[c * strides[1]] = work->params->kind == TANDEM_POOL_MAX
                                             ? block.best[first + c]
                                             : (float)block.sums[first + c];
                }
            }
        }
        place.at += block.n_places * strides[2 + last];
        place.begin[last] += block.n_places * work->params->window.stride[last];
    }
}

/* ---- maximum, channels last ---- */

/* Whether all taps along the last dimension lie inside. */
static bool is_in_row(const struct tnd_work *work, const struct tnd_view *x,
                      const struct place *place)
{
    const struct tnd_window *window = &work->params->window;
    const int last = window->n - 1;
    const int64_t begin = place->begin[last];
    return begin >= 0 &&
           begin + (window->extent[last] - 1) * window->dilation[last] < x->shape.dims[2 + last];
}

static void take_largest(const struct tnd_conv_kernel *kernel, const void *const *rows, int n,
                         int64_t n_channels, float *y)
{
    const int64_t last = n_channels - kernel->channels;
    for (int64_t at = 0; at < n_channels; at += kernel->channels) {
        const int64_t channel = at < last ? at : last;
        kernel->largest((const float *const *)rows, n, channel, y + channel);
    }
}

/* Pools `n` adjacent positions along the last dimension from `place` on, channels last; none if one
 * vector of the CPU holds all channels. Returns how many. The last vector of channels is moved back
 * to be full: where two vectors overlap, both give the same result. Within a row, a position's taps
 * are those of the previous one, shifted. */
static int64_t pool_wide(const struct tnd_conv_kernel *kernel, const struct tnd_work *work,
                         const struct tnd_view *x, struct place place, int64_t n, float *y)
{
    const int last = work->params->window.n - 1;
    const int64_t n_channels = work->shape.dims[1];
    const int64_t step = work->params->window.stride[last] * x->strides[2 + last];
    const void *rows[MOST_ROWS + 1];
    int n_rows = 0;
    bool is_kept = false; /* `rows` are the previous position's taps, all inside */
    if (n_channels < kernel->channels) {
        return 0;
    }
    for (int64_t i = 0; i < n; i++, y += n_channels) {
        const bool is_inside = is_in_row(work, x, &place);
        struct walk walk = {.is_done = is_kept && is_inside};
        for (int k = 0; walk.is_done && k < n_rows; k++) {
            rows[k] = (const float *)rows[k] + step;
        }
        n_rows = walk.is_done ? n_rows : next_rows(work, x, &place, &walk, MOST_ROWS, rows);
        is_kept = is_inside && walk.is_done;
        for (int64_t c = 0; n_rows == 0 && c < n_channels; c++) {
            y[c] = -INFINITY;
        }
        if (n_rows > 0) {
            take_largest(kernel, rows, n_rows, n_channels, y);
        }
        while (!walk.is_done) {
            rows[0] = y; /* maximum so far */
            take_largest(kernel, rows, 1 + next_rows(work, x, &place, &walk, MOST_ROWS, rows + 1),
                         n_channels, y);
        }
        place.begin[last] += work->params->window.stride[last];
    }
    return n;
}

/* As pool_wide for bytes, any layout, all channels. */
static void pool_bytes(const struct tnd_conv_kernel *kernel, const struct tnd_work *work,
                       const struct tnd_view *x, const struct place *place, int64_t stride,
                       uint8_t *y)
{
    const uint8_t flip = work->type == TANDEM_DTYPE_I8 ? 128 : 0; /* to compare as uint8_t */
    const int64_t n_channels = work->shape.dims[1];
    const bool is_wide = work->layout == TND_LAYOUT_LAST;
    const void *rows[MOST_ROWS + 1];
    struct walk walk = {.is_done = false};
    int n_before = 0;
    for (int64_t c = 0; c < n_channels; c++) { /* the smallest byte, if there is no tap */
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
    const int64_t row = work->shape.dims[1 + work->params->window.n];
    for (int64_t item = begin, n; item < end; item += n) {
        const struct place place = place_of(work, strides, item);
        const int64_t left = row - item % row;
        n = left < end - item ? left : end - item;
        if (work->type != TANDEM_DTYPE_F32) {
            n = 1;
            pool_bytes(&kernels->conv, work, &x, &place, strides[1], (uint8_t *)y + place.at);
        } else if (!is_wide || pool_wide(&kernels->conv, work, &x, place, n, y + place.at) == 0) {
            pool_places(work, &x, strides, place, n, y);
        }
    }
    return TANDEM_OK;
}
