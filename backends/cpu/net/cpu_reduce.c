/* SPDX-License-Identifier: MIT
 * Reductions of F32, several values at a time. */
#include <math.h>

#include "backends/cpu/net/cpu_net.h"

/* (`a` comes first: NaN stays) */
#define LARGER(a, b)  ((a) > (b) || (a) != (a) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define PLUS(a, b)    ((a) + (b))
#define TIMES(a, b)   ((a) * (b))

/* Reduces a row to one result with eight partial results, for independent dependency chains. */
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

/* Several adjacent results at once. */
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

static double reduce_row(const struct tnd_strip_kernel *kernel, int kind, const float *row,
                         int64_t n, int64_t stride)
{
    if (stride == 1 && (kind == TANDEM_REDUCE_MAX || kind == TANDEM_REDUCE_MIN)) {
        return (double)(kind == TANDEM_REDUCE_MAX ? kernel->largest : kernel->smallest)(row, n);
    }
    return reducers[kind].row(row, n, stride);
}

static void reduce_unit(const struct tnd_strip_kernel *kernel, const struct tnd_work_reduce *reduce,
                        const float *x, float *y, int n)
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
            const double part = reduce_row(kernel, reduce->kind, row, tnd_walk_row(&walk), stride);
            sums[0] = combine(reduce->kind, sums[0], part);
            continue;
        }
        if (reduce->kind == TANDEM_REDUCE_SUM) {
            kernel->add_rows(row, stride, tnd_walk_row(&walk), n, sums);
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

enum tandem_status tnd_cpu_work_reduce(const struct tnd_cpu_kernels *kernels,
                                       const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_work *work = node->params.work;
    const struct tnd_work_reduce *reduce = work->of.reduce;
    const int last = reduce->kept.n - 1;
    struct tnd_view view;
    tnd_work_views(work, node, &view);
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
        reduce_unit(kernels->strip, reduce, (const float *)view.data + at, y,
                    (int)(left < reduce->width ? left : reduce->width));
    }
    return TANDEM_OK;
}
