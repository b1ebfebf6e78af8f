/* SPDX-License-Identifier: MIT
 * Pools of F32: strips of channels, in the layout in which they come. */
#include <math.h>
#include <string.h>

#include "graph/lower_internal.h"

struct place {
    int64_t begin[TANDEM_NET_MAX_WINDOW]; /* of the window in the input */
    int64_t image, at;                    /* where the result goes, in values */
};

static struct place place_of(const struct tnd_job *job, const int64_t *strides, int64_t item)
{
    const struct tnd_window *window = &job->params->window;
    struct place place = {.at = 0};
    for (int i = window->n - 1; i >= 0; i--) {
        const int64_t at = item % job->shape.dims[2 + i];
        item /= job->shape.dims[2 + i];
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
static void pool_strip(const struct tnd_job *job, const struct tnd_view *x,
                       const struct place *place, int64_t channel, int n, float *best, double *sums)
{
    const struct tnd_window *window = &job->params->window;
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
        if (is_inside && job->params->kind == TANDEM_POOL_MAX) {
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
static int find_taps(const struct tnd_job *job, const struct tnd_view *x, const struct place *place,
                     const float **out)
{
    const struct tnd_window *window = &job->params->window;
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
static int64_t pool_wide(const struct tnd_job *job, const struct tnd_view *x,
                         const struct place *place, float *y)
{
    const struct tnd_conv_kernel *kernel = job->more;
    const int64_t n_channels = job->shape.dims[1] / kernel->channels * kernel->channels;
    const float *taps[MAX_TAPS];
    const int n = find_taps(job, x, place, taps);
    for (int64_t channel = 0; n > 0 && channel < n_channels; channel += kernel->channels) {
        kernel->largest(taps, n, channel, y + channel);
    }
    return n > 0 ? n_channels : 0;
}

/* Whether pool_wide can. */
static bool is_wide(const struct tnd_job *job)
{
    const struct tnd_window *window = &job->params->window;
    int64_t taps = 1;
    for (int i = 0; i < window->n && taps <= MAX_TAPS; i++) {
        taps *= window->extent[i];
    }
    return job->layout == TND_LAYOUT_LAST && job->params->kind == TANDEM_POOL_MAX &&
           taps <= MAX_TAPS;
}

static enum tandem_status run_pool(const struct tnd_work *work, const tandem_tensor *node,
                                   int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
    int64_t strides[TANDEM_NET_MAX_DIMS];
    struct tnd_view x;
    float *y = tandem_tensor_data(node);
    tnd_job_views(job, node, &x);
    tnd_lower_strides(&job->shape, job->layout, strides);
    for (int64_t item = begin; item < end; item++) {
        const struct place place = place_of(job, strides, item);
        int64_t channel = job->more == NULL ? 0 : pool_wide(job, &x, &place, y + place.at);
        for (; channel < job->shape.dims[1]; channel += TND_LANES) {
            float best[TND_LANES];
            double sums[TND_LANES];
            const int64_t left = job->shape.dims[1] - channel;
            const int n = (int)(left < TND_LANES ? left : TND_LANES);
            pool_strip(job, &x, &place, channel, n, best, sums);
            for (int c = 0; c < n; c++) {
                y[place.at + (channel + c) * strides[1]] =
                    job->params->kind == TANDEM_POOL_MAX ? best[c] : (float)sums[c];
            }
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_lower_pool(struct tnd_lowering *l, const struct tnd_net_node *node,
                                  bool *done)
{
    const struct tnd_net_value *out = tnd_net_value(l->net, node->output);
    struct tnd_job *job = tnd_lower_job(l, 1);
    tandem_tensor *tensors[1];
    int n = 0;
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    if (out->type != TANDEM_DTYPE_F32 || node->params.kind == TANDEM_POOL_ARG_MAX ||
        tnd_dims_values(&out->shape) == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_lower_operand(l, node->inputs[0], true, &job->in[0], tensors, &n));
    job->op = node->op;
    job->params = &node->params;
    job->type = out->type;
    job->shape = out->shape;
    const bool is_last = tnd_lower_value(l, node->inputs[0])->tensors[TND_LAYOUT_LAST] != NULL;
    job->layout = is_last ? TND_LAYOUT_LAST : TND_LAYOUT_PLAIN;
    job->work.n_items = tnd_dims_values(&out->shape) / out->shape.dims[1];
    job->work.run = run_pool;
    job->more = is_wide(job) ? tnd_conv_kernel_best() : NULL;
    *done = true;
    tandem_tensor **made = &l->values[node->output].tensors[job->layout];
    TND_TRY(tnd_lower_emit(l, job, tensors, n, made));
    tnd_lower_print_pool(l, job, *made);
    return TANDEM_OK;
}
