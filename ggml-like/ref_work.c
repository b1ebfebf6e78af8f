/* SPDX-License-Identifier: MIT
 * Reference of the operations of nets: plain kernels of net_*.c on views, sums in double precision,
 * programs step by step. It only knows the description of the work, not how backends compute it. */
#include <math.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/work.h"

typedef enum tandem_status work_fn(const struct tnd_work *work, struct tandem_tensor *node,
                                   struct tandem_error *error);

/* ---- by the kernel of the operation ---- */

/* The kernel writes dimensions in order; a result with another layout is copied to it. */
static enum tandem_status by_kernel(const struct tnd_work *work, struct tandem_tensor *node,
                                    struct tandem_error *error)
{
    struct tnd_view views[TND_WORK_OPERANDS];
    struct tnd_array result = {.type = work->type,
                               .shape = work->shape,
                               .n = tnd_dims_values(&work->shape),
                               .data = node->data};
    struct tnd_array *plain =
        work->layout == TND_LAYOUT_PLAIN ? NULL : tnd_array_new(work->type, &work->shape);
    const size_t bytes = tandem_dtype_bytes(work->type);
    char *behind = (char *)node->data + (size_t)result.n * bytes;
    const struct tnd_kernel_call call = {.params = work->params,
                                         .in = views,
                                         .n_in = work->n_in,
                                         .out = plain != NULL ? plain : &result,
                                         .scratch = work->scratch > 0 ? behind : NULL,
                                         .error = error};
    if (work->layout != TND_LAYOUT_PLAIN && plain == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, node->name, result.n, 0, "no memory");
    }
    tnd_work_views(work, node, views);
    const enum tandem_status status = tnd_net_kernel(work->op)(&call);
    if (status == TANDEM_OK && plain != NULL) {
        struct tnd_view in = {.type = work->type, .data = plain->data};
        int64_t strides[TANDEM_NET_MAX_DIMS];
        int order[TANDEM_NET_MAX_DIMS];
        tnd_dims_strides(&work->shape, strides);
        tnd_net_order(&work->shape, work->layout, order);
        in.shape.n = result.shape.n;
        for (int d = 0; d < in.shape.n; d++) {
            in.shape.dims[d] = work->shape.dims[order[d]];
            in.strides[d] = strides[order[d]];
        }
        result.shape = in.shape;
        (void)tnd_kernel_copy(&(struct tnd_kernel_call){.in = &in, .n_in = 1, .out = &result});
    }
    tnd_array_free(plain);
    return tnd_work_failed(work, status, error);
}

/* ---- programs ---- */

/* Address and stride of a program's operand. */
struct strip_operand {
    const void *from;
    int64_t stride;
};

/* Computes `n` result values, at most TND_LANES. */
static void run_strip(const struct tnd_fuse *fuse, const struct strip_operand *in, int n, void *out)
{
    union tnd_values registers[TND_FUSE_REGISTERS];
    union tnd_values *result = registers;
    enum tandem_dtype type = fuse->inputs[0];
    for (int i = 0; i < fuse->n_inputs; i++) {
        tnd_values_load(fuse->inputs[i], in[i].from, in[i].stride, n, tnd_lane_of(fuse->inputs[i]),
                        &registers[i]);
    }
    for (int s = 0; s < fuse->n_steps; s++) {
        const struct tnd_fuse_step *step = &fuse->steps[s];
        union tnd_values operands[3];
        char stored[sizeof(union tnd_values)];
        type = step->type;
        result = &registers[fuse->n_inputs + s];
        for (int k = 0; k < step->n_in; k++) {
            operands[k] = registers[step->in[k]];
        }
        step->job.run(&step->job, operands, n, result);
        tnd_values_store(type, step->job.out_lane, result, n, stored);
        tnd_values_load(type, stored, 1, n, tnd_lane_of(type), result);
    }
    tnd_values_store(type, tnd_lane_of(type), result, n, out);
}

static enum tandem_status ref_program(const struct tnd_work *work, struct tandem_tensor *node,
                                      struct tandem_error *error)
{
    const struct tnd_fuse_space *space = &work->space;
    const int64_t stride_at = space->shape.n - 1;
    const size_t bytes = tandem_dtype_bytes(work->type);
    struct tnd_view views[TND_WORK_OPERANDS];
    struct tnd_walk walk;
    char *out = node->data;
    (void)error;
    tnd_work_views(work, node, views);
    for (int i = 0; i < work->n_in; i++) {
        views[i].shape = space->shape;
        memcpy(views[i].strides, space->strides[i], sizeof(views[i].strides));
    }
    for (tnd_walk_begin(&walk, &space->shape); !walk.is_done; tnd_walk_next(&walk)) {
        const int64_t row = tnd_walk_row(&walk);
        for (int64_t at = 0; at < row; at += TND_LANES) {
            struct strip_operand in[TND_FUSE_INPUTS];
            const int n = row - at < TND_LANES ? (int)(row - at) : TND_LANES;
            for (int i = 0; i < work->n_in; i++) {
                in[i].stride = views[i].strides[stride_at];
                in[i].from = (const char *)tnd_walk_place(&walk, &views[i]) +
                             at * in[i].stride * (int64_t)tandem_dtype_bytes(work->fuse.inputs[i]);
            }
            run_strip(&work->fuse, in, n, out);
            out += (size_t)n * bytes;
        }
    }
    return TANDEM_OK;
}

/* Applies the epilogue, if there is one, to result value (row, column). */
static float finish(const struct tnd_epilogue *epilogue, const struct tandem_tensor *node,
                    int64_t row, int64_t column, float value)
{
    struct strip_operand in[TND_FUSE_INPUTS];
    float result = value;
    for (int i = 0; epilogue != NULL && i < epilogue->fuse.n_inputs; i++) {
        const int64_t *strides = epilogue->matrix.strides[i];
        in[i] = (struct strip_operand){i == epilogue->matrix.self
                                           ? &value
                                           : tnd_work_values(&epilogue->in[i], node) +
                                                 row * strides[0] + column * strides[1],
                                       1};
    }
    if (epilogue != NULL) {
        run_strip(&epilogue->fuse, in, 1, &result);
    }
    return result;
}

static enum tandem_status ref_table(const struct tnd_work *work, struct tandem_tensor *node,
                                    struct tandem_error *error)
{
    const uint8_t *x = node->src[0]->data;
    (void)error;
    for (int64_t i = tnd_dims_values(&work->shape) - 1; i >= 0; i--) {
        ((uint8_t *)node->data)[i] = work->of.table[x[i]];
    }
    return TANDEM_OK;
}

/* ---- convolutions, channels last ---- */

/* The values that tap `tap` reads for output position `pixel`; NULL: in the padding. */
static const float *seen(const struct tnd_conv *conv, const float *x, int64_t pixel, int64_t tap)
{
    int64_t at[TANDEM_NET_MAX_WINDOW];
    bool is_inside = true;
    for (int i = conv->n - 1; i >= 0; i--) {
        at[i] = pixel % conv->out[i] * conv->stride[i] - conv->begin[i] +
                tap % conv->taps[i] * conv->dilation[i];
        is_inside = is_inside && at[i] >= 0 && at[i] < conv->in[i];
        pixel /= conv->out[i];
        tap /= conv->taps[i];
    }
    for (int i = 0; i < conv->n; i++) {
        pixel = pixel * conv->in[i] + at[i];
    }
    return is_inside ? x + pixel * conv->all_channels : NULL;
}

/* A filter's weight; `at`: its index among the filter's weights, tap by tap. */
static float packed_weight(const struct tnd_conv *conv, int64_t filter, int64_t at)
{
    const bool is_depthwise = tnd_conv_is_depthwise(conv);
    if (conv->is_few) {
        const int64_t row = filter * conv->n_taps + at / conv->run;
        return conv->packed[row * tnd_conv_few_row(conv->run) + at % conv->run];
    }
    const int64_t group = is_depthwise ? 0 : filter / conv->filters;
    const int64_t in_group = is_depthwise ? filter : filter % conv->filters;
    const int64_t panel = group * tnd_conv_panels(conv->filters) + in_group / TND_CONV_PANEL;
    return conv->packed[(panel * conv->n_taps * conv->run + at) * TND_CONV_PANEL +
                        in_group % TND_CONV_PANEL];
}

/* `plain`: filters {M, C, taps}; NULL: weights are packed. */
static void sum_windows(const struct tnd_conv *conv, struct tandem_tensor *node, const float *x,
                        const float *plain)
{
    float *y = node->data;
    for (int64_t i = 0; i < conv->n_pixels * conv->all_filters; i++) {
        const int64_t pixel = i / conv->all_filters;
        const int64_t filter = i % conv->all_filters;
        const int64_t channel = filter / conv->filters * conv->channels;
        double sum = 0;
        for (int64_t t = 0; t < conv->n_taps; t++) {
            const float *from = seen(conv, x, pixel, t);
            for (int64_t c = 0; from != NULL && c < conv->run; c++) {
                const float w = plain != NULL
                                    ? plain[(filter * conv->channels + c) * conv->n_taps + t]
                                    : packed_weight(conv, filter, t * conv->run + c);
                sum += (double)from[channel + c] * (double)w;
            }
        }
        y[i] = finish(conv->epilogue, node, pixel, filter, (float)sum);
    }
}

static enum tandem_status ref_conv(const struct tnd_work *work, struct tandem_tensor *node,
                                   struct tandem_error *error)
{
    (void)error;
    sum_windows(work->of.conv, node, node->src[0]->data, NULL);
    return TANDEM_OK;
}

static enum tandem_status ref_winograd(const struct tnd_work *work, struct tandem_tensor *node,
                                       struct tandem_error *error)
{
    const struct tnd_winograd *w = work->of.winograd;
    (void)error;
    sum_windows(&w->conv, node, node->src[w->src]->data, w->plain);
    return TANDEM_OK;
}

/* B' d B for each tile and channel; B': 1 0 -1 0, 0 1 1 0, 0 -1 1 0, 0 1 0 -1. */
static enum tandem_status ref_winograd_in(const struct tnd_work *work, struct tandem_tensor *node,
                                          struct tandem_error *error)
{
    static const int b[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
    const struct tnd_winograd *w = work->of.winograd;
    const struct tnd_conv *conv = &w->conv;
    const float *x = node->src[0]->data;
    (void)error;
    for (int64_t i = 0; i < w->n_tiles * conv->channels; i++) {
        const int64_t c = i % conv->channels;
        int64_t at[2];
        double d[16];
        const int64_t image = tnd_winograd_place(w, i / conv->channels, at);
        for (int p = 0; p < 16; p++) {
            const int64_t line = at[0] + p / 4 - conv->begin[0];
            const int64_t column = at[1] + p % 4 - conv->begin[1];
            const bool is_inside =
                line >= 0 && line < conv->in[0] && column >= 0 && column < conv->in[1];
            d[p] =
                !is_inside
                    ? 0
                    : (double)
                          x[((image * conv->in[0] + line) * conv->in[1] + column) * conv->channels +
                            c];
        }
        for (int p = 0; p < 16; p++) {
            double sum = 0;
            for (int k = 0; k < 16; k++) {
                sum += b[p / 4][k / 4] * b[p % 4][k % 4] == 0
                           ? 0
                           : b[p / 4][k / 4] * b[p % 4][k % 4] * d[k];
            }
            ((float *)node->data)[p * w->step + i / conv->channels * w->row + c] = (float)sum;
        }
    }
    return TANDEM_OK;
}

static enum tandem_status ref_columns(const struct tnd_work *work, struct tandem_tensor *node,
                                      struct tandem_error *error)
{
    const struct tnd_conv *conv = work->of.conv;
    const int64_t k = conv->n_taps * conv->channels;
    float *y = node->data;
    (void)error;
    for (int64_t i = tnd_dims_values(&work->shape) - 1; i >= 0; i--) {
        const int64_t group = i / k / conv->n_pixels;
        const float *from =
            seen(conv, node->src[0]->data, i / k % conv->n_pixels, i % k / conv->channels);
        y[i] = from == NULL ? 0 : from[group * conv->channels + i % conv->channels];
    }
    return TANDEM_OK;
}

static enum tandem_status ref_pad_rows(const struct tnd_work *work, struct tandem_tensor *node,
                                       struct tandem_error *error)
{
    const struct tnd_work_rows *rows = work->of.rows;
    const float *x = node->src[0]->data;
    (void)error;
    for (int64_t i = tnd_dims_values(&work->shape) - 1; i >= 0; i--) {
        const int64_t at = i % rows->width - rows->front;
        ((float *)node->data)[i] =
            at >= 0 && at < rows->row ? x[i / rows->width * rows->row + at] : 0;
    }
    return TANDEM_OK;
}

/* ---- the operation ---- */

#define ref_join     by_kernel
#define ref_gather   by_kernel
#define ref_pick     by_kernel
#define ref_pad      by_kernel
#define ref_range    by_kernel
#define ref_reduce   by_kernel
#define ref_pool     by_kernel
#define ref_few_rows by_kernel

enum tandem_status tnd_ref_work(struct tandem_tensor *node, struct tandem_error *error)
{
#define KIND(name, function) [TND_WORK_##name] = ref_##function,
    static work_fn *const kinds[TND_N_WORK_KINDS] = {TND_WORK_KIND_LIST(KIND)[TND_WORK_RECURRENT] =
                                                         by_kernel};
#undef KIND
    const struct tnd_work *work = node->params.work;
    struct tandem_error own = {0};
    return kinds[work->kind](work, node, error != NULL ? error : &own);
}
