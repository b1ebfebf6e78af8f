/* SPDX-License-Identifier: MIT
 * Sums and their like over F32, several values at a time. */
#include <math.h>
#include <string.h>

#include "graph/lower_internal.h"

enum { ITEM_VALUES = 8192 };

/* ---- reducing ---- */

struct reduce {
    int kind;
    struct tnd_view inner; /* what is reduced; `data` is set when it runs */
    struct tnd_dims kept;
    int64_t strides[TANDEM_NET_MAX_DIMS]; /* of the operand along `kept` */
    int width;                            /* results side by side: of a strip, or 1 */
    int64_t row_units, n_units, item_units;
};

/* (`a` first: NaN stays) */
#define LARGER(a, b)  ((a) > (b) || (a) != (a) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define PLUS(a, b)    ((a) + (b))
#define TIMES(a, b)   ((a) * (b))

/* A row of one result: eight sums, so that additions need not wait for each other. */
#define ROW(name, COMBINE, neutral)                                                                \
    static double name(const float *x, int64_t n, int64_t stride)                                  \
    {                                                                                              \
        double sum[8];                                                                             \
        for (int k = 0; k < 8; k++) {                                                              \
            sum[k] = (neutral);                                                                    \
        }                                                                                          \
        int64_t i = 0;                                                                             \
        if (stride == 1) {                                                                         \
            for (; i + 8 <= n; i += 8) {                                                           \
                for (int k = 0; k < 8; k++) {                                                      \
                    const double v = (double)x[i + k];                                             \
                    sum[k] = COMBINE(sum[k], v);                                                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            const double v = (double)x[i * stride];                                                \
            sum[0] = COMBINE(sum[0], v);                                                           \
        }                                                                                          \
        for (int k = 1; k < 8; k++) {                                                              \
            sum[0] = COMBINE(sum[0], sum[k]);                                                      \
        }                                                                                          \
        return sum[0];                                                                             \
    }
ROW(row_sum, PLUS, 0.0)
ROW(row_product, TIMES, 1.0)
ROW(row_largest, LARGER, -(double)INFINITY)
ROW(row_smallest, SMALLER, (double)INFINITY)

/* Several results, whose values lie side by side. */
#define STRIP(name, COMBINE)                                                                       \
    static void name(double *restrict sums, const float *restrict x, int n)                        \
    {                                                                                              \
        for (int k = 0; k < n; k++) {                                                              \
            const double v = (double)x[k];                                                         \
            sums[k] = COMBINE(sums[k], v);                                                         \
        }                                                                                          \
    }
STRIP(strip_sum, PLUS)
STRIP(strip_product, TIMES)
STRIP(strip_largest, LARGER)
STRIP(strip_smallest, SMALLER)

static const struct {
    double neutral;
    double (*row)(const float *x, int64_t n, int64_t stride);
    void (*strip)(double *restrict sums, const float *restrict x, int n);
} reducers[] = {[TANDEM_REDUCE_SUM] = {0.0, row_sum, strip_sum},
                [TANDEM_REDUCE_PROD] = {1.0, row_product, strip_product},
                [TANDEM_REDUCE_MAX] = {-(double)INFINITY, row_largest, strip_largest},
                [TANDEM_REDUCE_MIN] = {(double)INFINITY, row_smallest, strip_smallest}};

static double combine(int kind, double a, double b)
{
    return kind == TANDEM_REDUCE_SUM    ? a + b
           : kind == TANDEM_REDUCE_PROD ? a * b
           : kind == TANDEM_REDUCE_MAX  ? LARGER(a, b)
                                        : SMALLER(a, b);
}

static double reduce_row(int kind, const float *row, int64_t n, int64_t stride)
{
    const struct tnd_strip_kernel *kernel = tnd_strip_kernel(0);
    if (stride == 1 && (kind == TANDEM_REDUCE_MAX || kind == TANDEM_REDUCE_MIN)) {
        return (double)(kind == TANDEM_REDUCE_MAX ? kernel->largest : kernel->smallest)(row, n);
    }
    return reducers[kind].row(row, n, stride);
}

static void reduce_unit(const struct reduce *reduce, const float *x, float *y, int n)
{
    double sums[TND_LANES];
    struct tnd_walk walk;
    struct tnd_view inner = reduce->inner;
    const int64_t stride = inner.shape.n == 0 ? 0 : inner.strides[inner.shape.n - 1];
    inner.data = x;
    for (int k = 0; k < n; k++) {
        sums[k] = reducers[reduce->kind].neutral;
    }
    for (tnd_walk_begin(&walk, &inner.shape); !walk.is_done; tnd_walk_next(&walk)) {
        const float *row = tnd_walk_place(&walk, &inner);
        if (reduce->width == 1) {
            const double part = reduce_row(reduce->kind, row, tnd_walk_row(&walk), stride);
            sums[0] = combine(reduce->kind, sums[0], part);
            continue;
        }
        if (reduce->kind == TANDEM_REDUCE_SUM) {
            tnd_strip_kernel(0)->add_rows(row, stride, tnd_walk_row(&walk), n, sums);
            continue;
        }
        for (int64_t i = 0; i < tnd_walk_row(&walk); i++) {
            reducers[reduce->kind].strip(sums, row + i * stride, n);
        }
    }
    for (int k = 0; k < n; k++) {
        y[k] = (float)sums[k];
    }
}

static enum tandem_status run_reduce(const struct tnd_work *work, const tandem_tensor *node,
                                     int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
    const struct reduce *reduce = job->more;
    const int last = reduce->kept.n - 1;
    struct tnd_view view;
    tnd_job_views(job, node, &view);
    for (int64_t unit = begin * reduce->item_units;
         unit < end * reduce->item_units && unit < reduce->n_units; unit++) {
        const int64_t column = unit % reduce->row_units * reduce->width;
        const int64_t left = reduce->kept.dims[last] - column;
        int64_t rest = unit / reduce->row_units;
        float *y = (float *)tandem_tensor_data(node) + rest * reduce->kept.dims[last] + column;
        int64_t at = column * reduce->strides[last];
        for (int d = last - 1; d >= 0; d--) {
            at += rest % reduce->kept.dims[d] * reduce->strides[d];
            rest /= reduce->kept.dims[d];
        }
        reduce_unit(reduce, (const float *)view.data + at, y,
                    (int)(left < reduce->width ? left : reduce->width));
    }
    return TANDEM_OK;
}

/* Dimensions that stay and those that go, without those of one value. */
static void split_axes(struct reduce *reduce, const struct tnd_view *x, unsigned axes)
{
    reduce->inner = (struct tnd_view){.type = x->type};
    for (int i = 0; i < x->shape.n; i++) {
        if (x->shape.dims[i] == 1) {
            continue;
        }
        if (axes >> i & 1) {
            reduce->inner.shape.dims[reduce->inner.shape.n] = x->shape.dims[i];
            reduce->inner.strides[reduce->inner.shape.n++] = x->strides[i];
        } else {
            reduce->kept.dims[reduce->kept.n] = x->shape.dims[i];
            reduce->strides[reduce->kept.n++] = x->strides[i];
        }
    }
    if (reduce->kept.n == 0) {
        reduce->kept = (struct tnd_dims){1, {1}};
        reduce->strides[0] = 0;
    }
}

static void plan_reduce(struct reduce *reduce)
{
    const int last = reduce->kept.n - 1;
    const int64_t inner = tnd_dims_values(&reduce->inner.shape);
    const bool is_strip = reduce->kept.dims[last] > 1 && reduce->strides[last] == 1;
    reduce->width = is_strip ? TND_LANES : 1;
    reduce->row_units = (reduce->kept.dims[last] + reduce->width - 1) / reduce->width;
    const int64_t row = reduce->kept.dims[last] > 0 ? reduce->kept.dims[last] : 1;
    reduce->n_units = tnd_dims_values(&reduce->kept) / row * reduce->row_units;
    const int64_t values = inner * reduce->width;
    reduce->item_units = values < ITEM_VALUES ? ITEM_VALUES / (values > 0 ? values : 1) : 1;
}

/* The same for devices: a copy whose last dimensions one result takes together. */
static void print_source(struct tnd_lowering *l, const struct tnd_job *job,
                         const struct reduce *reduce, tandem_tensor *node)
{
    const struct tnd_view *inner = &reduce->inner;
    const struct tnd_operand *in = &job->in[0];
    struct tnd_fuse fuse = {.n_inputs = 0};
    struct tnd_fuse_space space = {.shape = reduce->kept};
    const struct tnd_fuse_printed printed = {.fuse = &fuse,
                                             .space = &space,
                                             .in = {{.buffer = in->src, .offset = in->offset}},
                                             .n_buffers = node->n_src,
                                             .n_reduced = inner->shape.n,
                                             .reduce = (enum tandem_reduce)reduce->kind};
    if (in->src < 0 || reduce->kept.n + inner->shape.n > TANDEM_NET_MAX_DIMS) {
        return;
    }
    const int x = tnd_fuse_input(&fuse, TANDEM_DTYPE_F32);
    (void)tnd_fuse_step(&fuse, TND_NET_COPY, 0, TANDEM_DTYPE_F32, &x, 1);
    memcpy(space.strides[0], reduce->strides, sizeof(reduce->strides));
    for (int d = 0; d < inner->shape.n; d++) {
        space.strides[0][space.shape.n] = inner->strides[d];
        space.shape.dims[space.shape.n++] = inner->shape.dims[d];
    }
    tnd_lower_print(l, &printed, node);
}

enum tandem_status tnd_lower_reduce(struct tnd_lowering *l, const struct tnd_net_node *node,
                                    bool *done)
{
    const struct tnd_net_value *out = tnd_net_value(l->net, node->output);
    struct tnd_job *job = tnd_lower_job(l, 1);
    struct reduce *reduce =
        tnd_arena_alloc(&l->out->arena, sizeof(*reduce), _Alignof(struct reduce));
    tandem_tensor *tensors[1];
    int n = 0;
    if (job == NULL || reduce == NULL) {
        return tnd_lower_no_memory(l);
    }
    if (out->type != TANDEM_DTYPE_F32 || tnd_dims_values(&out->shape) == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_lower_operand(l, node->inputs[0], true, &job->in[0], tensors, &n));
    reduce->kind = node->params.kind;
    split_axes(reduce, &job->in[0].view, node->params.axes);
    plan_reduce(reduce);
    job->op = node->op;
    job->type = out->type;
    job->shape = out->shape;
    job->more = reduce;
    job->work.n_items = (reduce->n_units + reduce->item_units - 1) / reduce->item_units;
    job->work.run = run_reduce;
    *done = true;
    tandem_tensor **made = &l->values[node->output].tensors[TND_LAYOUT_PLAIN];
    TND_TRY(tnd_lower_emit(l, job, tensors, n, made));
    print_source(l, job, reduce, *made);
    return TANDEM_OK;
}
