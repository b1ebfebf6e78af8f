/* SPDX-License-Identifier: MIT
 * Moves values between layouts and types: cpy, scatter, cont, concat. Source and destination are
 * traversed in the order of ne; a run is a span that lies within one row of both. */
#include <string.h>

#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

enum { BUFFER = 256 }; /* values that are converted at a time */

/* Source or destination: a strided block of values of a type that is not quantised. */
struct side {
    enum tandem_type type;
    char *data;
    int64_t ne[TANDEM_MAX_DIMS];
    size_t nb[TANDEM_MAX_DIMS];
};

/* Position of one value. */
struct place {
    int64_t i[TANDEM_MAX_DIMS];
    char *at;
};

static struct side side_of(const struct tandem_tensor *tensor)
{
    struct side side = {.type = tensor->type, .data = tensor->data};
    memcpy(side.ne, tensor->ne, sizeof(side.ne));
    memcpy(side.nb, tensor->nb, sizeof(side.nb));
    return side;
}

/* Merges dimensions that are contiguous in memory, for longer runs. */
static void merge_dimensions(struct side *side)
{
    int n = 0;
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        int64_t extent = side->ne[i];
        if (extent == 1) {
            continue;
        }
        if (n > 0 && side->nb[i] == (size_t)side->ne[n - 1] * side->nb[n - 1]) {
            side->ne[n - 1] *= extent;
            continue;
        }
        side->nb[n] = side->nb[i];
        side->ne[n++] = extent;
    }
    for (; n < TANDEM_MAX_DIMS; n++) {
        side->ne[n] = 1;
        side->nb[n] = 0;
    }
}

static struct place place_of(const struct side *side, int64_t index)
{
    struct place place = {.at = side->data};
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        place.i[i] = index % side->ne[i];
        index /= side->ne[i];
        place.at += (size_t)place.i[i] * side->nb[i];
    }
    return place;
}

/* Advances by `n` values within the current row. */
static void advance(const struct side *side, struct place *place, int64_t n)
{
    TND_ASSERT(0 < n && place->i[0] + n <= side->ne[0]);
    place->i[0] += n;
    place->at += (size_t)n * side->nb[0];
    for (int i = 0; i + 1 < TANDEM_MAX_DIMS && place->i[i] == side->ne[i]; i++) {
        place->i[i] = 0;
        place->at -= (size_t)side->ne[i] * side->nb[i];
        place->i[i + 1]++;
        place->at += side->nb[i + 1];
    }
}

/* ---- one run ---- */

/* Moves `n` values of `bytes` (2 or 4) bytes. */
static void move_values(char *dst, size_t dst_step, const char *src, size_t src_step, size_t bytes,
                        int64_t n)
{
    if (dst_step == bytes && src_step == bytes) {
        memcpy(dst, src, (size_t)n * bytes);
    } else if (bytes == 4) {
        for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) {
            memcpy(dst, src, 4);
        }
    } else {
        for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) {
            memcpy(dst, src, 2);
        }
    }
}

/* Loads at most BUFFER values as floats into `out`. */
static void load_floats(const struct tnd_cpu_kernels *kernels, enum tandem_type type,
                        const char *src, size_t step, int64_t n, float *out)
{
    uint16_t halves[BUFFER];
    TND_ASSERT(n <= BUFFER && tandem_type_block_values(type) == 1);
    if (type == TANDEM_TYPE_F32) {
        move_values((char *)out, sizeof(float), src, step, sizeof(float), n);
        return;
    }
    move_values((char *)halves, sizeof(halves[0]), src, step, sizeof(halves[0]), n);
    kernels->dequantize[type](halves, out, n);
}

static void store_floats(const struct tnd_cpu_kernels *kernels, enum tandem_type type,
                         const float *values, char *dst, size_t step, int64_t n)
{
    uint16_t halves[BUFFER];
    if (type == TANDEM_TYPE_F32) {
        move_values(dst, step, (const char *)values, sizeof(float), sizeof(float), n);
        return;
    }
    kernels->quantize[type](values, halves, n);
    move_values(dst, step, (const char *)halves, sizeof(halves[0]), sizeof(halves[0]), n);
}

static void copy_run(const struct tnd_cpu_kernels *kernels, const struct side *from,
                     const char *src, const struct side *to, char *dst, int64_t n)
{
    if (from->type == to->type) { /* every bit is kept */
        move_values(dst, to->nb[0], src, from->nb[0], tandem_type_block_bytes(to->type), n);
        return;
    }
    for (int64_t i = 0; i < n; i += BUFFER) {
        float values[BUFFER];
        int64_t part = n - i < BUFFER ? n - i : BUFFER;
        load_floats(kernels, from->type, src + (size_t)i * from->nb[0], from->nb[0], part, values);
        store_floats(kernels, to->type, values, dst + (size_t)i * to->nb[0], to->nb[0], part);
    }
}

/* Copies values `begin` to `end - 1` in the order of ne. */
static void copy_range(const struct tnd_cpu_kernels *kernels, const struct side *from,
                       const struct side *to, int64_t begin, int64_t end)
{
    if (begin >= end) {
        return;
    }
    struct place src = place_of(from, begin);
    struct place dst = place_of(to, begin);
    for (int64_t left = end - begin; left > 0;) {
        int64_t run = from->ne[0] - src.i[0];
        int64_t dst_run = to->ne[0] - dst.i[0];
        run = run < dst_run ? run : dst_run;
        run = run < left ? run : left;
        copy_run(kernels, from, src.at, to, dst.at, run);
        advance(from, &src, run);
        advance(to, &dst, run);
        left -= run;
    }
}

/* ---- nodes ---- */

/* F32 to blocks: whole rows, same extents. */
static void quantize_rows(const struct tnd_cpu_kernels *kernels, const struct tandem_tensor *node,
                          struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0];
    int64_t n_rows = node->ne[0] > 0 ? tnd_tensor_rows(node) : 0;
    int64_t chunk = tnd_rows_chunk(n_rows, node->ne[0], worker->count);
    int64_t begin, end;
    while (worker->next(worker, n_rows, chunk, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            struct tnd_row row = tnd_row_of(node, i);
            kernels->quantize[node->type](tnd_row_f32(a, row),
                                          tnd_row_at(node, row.i1, row.i2, row.i3), node->ne[0]);
        }
    }
}

/* The part of concat's result that one operand fills. */
static struct side part_of(const struct tandem_tensor *node, const struct tandem_tensor *operand,
                           int64_t offset)
{
    struct side part = side_of(node);
    int dim = node->params.concat_dim;
    TND_ASSERT(0 <= offset && offset + operand->ne[dim] <= node->ne[dim]);
    part.ne[dim] = operand->ne[dim];
    part.data += (size_t)offset * part.nb[dim];
    return part;
}

enum tandem_status tnd_cpu_copy(const struct tnd_cpu_kernels *kernels,
                                const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0];
    struct side from[2] = {side_of(a)};
    struct side to[2] = {side_of(node)};
    int64_t n[2] = {tandem_tensor_elements(a), 0};
    if (tandem_type_is_quantized(node->type)) {
        quantize_rows(kernels, node, worker);
        return TANDEM_OK;
    }
    if (node->op == TANDEM_OP_CONCAT) {
        const struct tandem_tensor *b = node->src[1];
        to[0] = part_of(node, a, 0);
        from[1] = side_of(b);
        to[1] = part_of(node, b, a->ne[node->params.concat_dim]);
        n[1] = tandem_tensor_elements(b);
    }
    for (int i = 0; i < 2; i++) {
        merge_dimensions(&from[i]);
        merge_dimensions(&to[i]);
    }
    int64_t begin, end;
    int64_t total = n[0] + n[1];
    while (worker->next(worker, total, tnd_rows_chunk(total, 1, worker->count), &begin, &end)) {
        copy_range(kernels, &from[0], &to[0], begin, end < n[0] ? end : n[0]);
        copy_range(kernels, &from[1], &to[1], (begin > n[0] ? begin : n[0]) - n[0], end - n[0]);
    }
    return TANDEM_OK;
}

/* Workers divide the rows of a matrix, and process their rows in all matrices, so that the last of
 * equal indices wins. */
enum tandem_status tnd_cpu_scatter(const struct tnd_cpu_kernels *kernels,
                                   const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tandem_tensor *a = node->src[0];
    const int32_t *ids = node->src[2]->data;
    const int64_t m = a->ne[0] > 0 ? a->ne[2] : 0;
    for (int64_t i = 0; i < m; i++) {
        if (ids[i] < 0 || ids[i] >= node->ne[2]) {
            return tnd_error_set(worker->error, TANDEM_E_ARGUMENT, node->name, ids[i], node->ne[2],
                                 "scatter: index %lld is %d, expected 0 to %lld", (long long)i,
                                 (int)ids[i], (long long)node->ne[2] - 1);
        }
    }
    const int64_t chunk = tnd_rows_chunk(a->ne[1], m * a->ne[0], worker->count);
    int64_t begin, end;
    while (worker->next(worker, a->ne[1], chunk, &begin, &end)) {
        for (int64_t i = 0; i < m; i++) {
            for (int64_t k = begin; k < end; k++) {
                const float *from = (const float *)(void *)tnd_row_at(a, k, i, 0);
                char *to = tnd_row_at(node, k, ids[i], 0);
                if (node->type == TANDEM_TYPE_F32) {
                    memcpy(to, from, (size_t)a->ne[0] * sizeof(from[0]));
                } else {
                    kernels->quantize[node->type](from, to, a->ne[0]);
                }
            }
        }
    }
    return TANDEM_OK;
}
