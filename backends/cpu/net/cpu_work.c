/* SPDX-License-Identifier: MIT
 * Operations of nets: drivers by kind of work, including those that need no kernels of an
 * instruction set except look-ups. */
#include <string.h>

#include "backends/cpu/net/cpu_net.h"
#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_status.h"

/* y += a[0] * row 0 + .. + a[3] * row 3. */
static void add_rows(const float a[4], const float *const rows[4], int64_t n, float *restrict y)
{
    const float *restrict r0 = rows[0];
    const float *restrict r1 = rows[1];
    const float *restrict r2 = rows[2];
    const float *restrict r3 = rows[3];
    for (int64_t i = 0; i < n; i++) {
        y[i] += (a[0] * r0[i] + a[1] * r1[i]) + (a[2] * r2[i] + a[3] * r3[i]);
    }
}

/* Computes `n` columns of one row of the result, starting from 0. */
static void sum_rows(const float *x, int64_t step, int64_t k, const float *w, int64_t row,
                     int64_t n, float *y)
{
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) {
        const float a[4] = {x[i * step], x[(i + 1) * step], x[(i + 2) * step], x[(i + 3) * step]};
        const float *const rows[4] = {w + i * row, w + (i + 1) * row, w + (i + 2) * row,
                                      w + (i + 3) * row};
        add_rows(a, rows, n, y);
    }
    for (; i < k; i++) {
        for (int64_t c = 0; c < n; c++) {
            y[c] += x[i * step] * w[i * row + c];
        }
    }
}

enum tandem_status tnd_cpu_work_few_rows(const struct tnd_cpu_kernels *kernels,
                                         const struct tandem_tensor *node, int64_t begin,
                                         int64_t end)
{
    const struct tnd_work *work = node->params.work;
    (void)kernels;
    const int64_t m = work->shape.dims[1];
    const int64_t n = work->shape.dims[2];
    const int64_t blocks = (n + TND_FEW_COLUMNS - 1) / TND_FEW_COLUMNS;
    struct tnd_view in[2];
    tnd_work_views(work, node, in);
    for (int64_t item = begin; item < end; item++) {
        const int64_t batch = item / blocks;
        const int64_t first = item % blocks * TND_FEW_COLUMNS;
        const int64_t columns = n - first < TND_FEW_COLUMNS ? n - first : TND_FEW_COLUMNS;
        const float *x = (const float *)in[0].data + batch * in[0].strides[0];
        const float *w = (const float *)in[1].data + batch * in[1].strides[0] + first;
        for (int64_t i = 0; i < m; i++) {
            float *y = (float *)tandem_tensor_data(node) + (batch * m + i) * n + first;
            memset(y, 0, (size_t)columns * sizeof(float));
            sum_rows(x + i * in[0].strides[1], in[0].strides[2], in[0].shape.dims[2], w,
                     in[1].strides[1], columns, y);
        }
    }
    return TANDEM_OK;
}

/* ---- bytes ---- */

enum tandem_status tnd_cpu_work_table(const struct tnd_cpu_kernels *kernels,
                                      const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_work *work = node->params.work;
    const uint8_t *table = work->of.table;
    const uint8_t *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    uint8_t *y = tandem_tensor_data(node);
    const int64_t n = tnd_dims_values(&work->shape);
    const int64_t last = end * TND_TABLE_ITEM < n ? end * TND_TABLE_ITEM : n;
    const int64_t first = begin * TND_TABLE_ITEM;
    kernels->strip->look_up(table, x + first, y + first, last - first);
    return TANDEM_OK;
}

/* ---- everything else ---- */

enum tandem_status tnd_cpu_work_range(const struct tnd_cpu_kernels *kernels,
                                      const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_work *work = node->params.work;
    (void)kernels;
    struct tnd_view views[TND_WORK_OPERANDS];
    struct tandem_error error = {0};
    int64_t strides[TANDEM_NET_MAX_DIMS];
    struct tnd_array out = {
        .type = work->type, .shape = work->shape, .data = tandem_tensor_data(node)};
    tnd_work_views(work, node, views);
    if (work->split >= 0) {
        for (int i = 0; i < work->n_in; i++) {
            const int d = tnd_work_moves_with(work, i, work->split);
            if (d >= 0) {
                views[i].shape.dims[d] = end - begin;
                views[i].data =
                    (const char *)views[i].data +
                    begin * views[i].strides[d] * (int64_t)tandem_dtype_bytes(views[i].type);
            }
        }
        tnd_dims_strides(&work->shape, strides);
        out.shape.dims[work->split] = end - begin;
        out.data = (char *)out.data +
                   begin * strides[work->split] * (int64_t)tandem_dtype_bytes(work->type);
    }
    out.n = tnd_dims_values(&out.shape);
    char *scratch = (char *)tandem_tensor_data(node) +
                    (size_t)tnd_dims_values(&work->shape) * tandem_dtype_bytes(work->type) +
                    (size_t)begin * work->scratch;
    const struct tnd_kernel_call call = {.params = work->params,
                                         .in = views,
                                         .n_in = work->n_in,
                                         .out = &out,
                                         .scratch = work->scratch > 0 ? scratch : NULL,
                                         .error = &error};
    return tnd_work_failed(work, tnd_net_kernel(work->op)(&call), &error);
}

/* ---- the operation ---- */

#define DRIVER(name, function) [TND_WORK_##name] = tnd_cpu_work_##function,
static tnd_cpu_work_fn *const drivers[TND_N_WORK_KINDS] = {TND_WORK_KIND_LIST(DRIVER)};
#undef DRIVER

/* NULL: the number of items is the work's. */
static int64_t (*const items_of[TND_N_WORK_KINDS])(const struct tnd_cpu_kernels *,
                                                   const struct tnd_work *) = {
    [TND_WORK_PROGRAM] = tnd_cpu_items_program,
    [TND_WORK_CONV] = tnd_cpu_items_conv,
    [TND_WORK_WINOGRAD] = tnd_cpu_items_winograd};

enum tandem_status tnd_cpu_work(const struct tnd_cpu_kernels *kernels,
                                const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tnd_work *work = node->params.work;
    if (work->kind == TND_WORK_RECURRENT) {
        tnd_cpu_recurrent(kernels, node, worker);
        return TANDEM_OK;
    }
    const int64_t n_items =
        items_of[work->kind] != NULL ? items_of[work->kind](kernels, work) : work->n_items;
    const int64_t chunk = n_items / ((int64_t)worker->count * 4);
    int64_t begin;
    int64_t end;
    while (worker->next(worker, n_items, chunk > 0 ? chunk : 1, &begin, &end)) {
        const enum tandem_status status = drivers[work->kind](kernels, node, begin, end);
        if (status != TANDEM_OK) {
            return tnd_error_set(worker->error, status, node->name, begin, end,
                                 "%s: %s in items %lld to %lld", tandem_op_name(node->op),
                                 tandem_status_name(status), (long long)begin, (long long)end - 1);
        }
    }
    return TANDEM_OK;
}
