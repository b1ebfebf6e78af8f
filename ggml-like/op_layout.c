/* SPDX-License-Identifier: MIT
 * Views and copies: builders of views, builders and reference of cpy, scatter, cont and concat. A
 * view must lie inside the bytes of its operand, so that anything inside the view is inside the
 * root's memory, too. */
#include <string.h>

#include "base/checked.h"
#include "base/tnd_status.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"
#include "ggml-like/tnd_type.h"

/* ---- views ---- */

/* Strides of a view: as given for dimensions 1 and up, dense for the rest. */
static bool view_strides(tandem_context *context, const tandem_tensor *a, int n_dims,
                         const int64_t ne[TANDEM_MAX_DIMS], const size_t *given,
                         size_t nb[TANDEM_MAX_DIMS])
{
    const size_t block_bytes = tandem_type_block_bytes(a->type);
    size_t dense_bytes;
    /* also checks that the number of values fits: strides may be 0 */
    if (!tnd_layout_dense(a->type, ne, nb, &dense_bytes)) {
        tnd_build_fail(context, TANDEM_E_OVERFLOW, "view", 0, 0,
                       "view: the extents do not fit into 63 bits");
        return false;
    }
    if (given == NULL || n_dims == 1) {
        return true;
    }
    for (int i = 1; i < TANDEM_MAX_DIMS; i++) {
        if (i < n_dims) {
            nb[i] = given[i - 1];
        } else if (!tnd_mul_size(nb[i - 1], (size_t)ne[i - 1], &nb[i])) {
            nb[i] = 0; /* from here on extents are 1, so their strides are never used */
        }
        if (nb[i] % block_bytes != 0) {
            tnd_build_fail(context, TANDEM_E_ARGUMENT, "view", (int64_t)nb[i], (int64_t)block_bytes,
                           "view: stride %zu of dimension %d is not a multiple of %zu bytes", nb[i],
                           i, block_bytes);
            return false;
        }
    }
    return true;
}

tandem_tensor *tandem_view(tandem_context *context, tandem_tensor *a, int n_dims, const int64_t *ne,
                           const size_t *nb, size_t offset_bytes)
{
    int64_t extents[TANDEM_MAX_DIMS];
    size_t strides[TANDEM_MAX_DIMS];
    size_t bytes;
    if (!tnd_build_ready(context, TANDEM_OP_VIEW, "a", a) ||
        !tnd_build_extents(context, "view", a->type, n_dims, ne, extents) ||
        !view_strides(context, a, n_dims, extents, nb, strides)) {
        return NULL;
    }
    char a_shape[TND_SHAPE_TEXT_BYTES];
    char shape[TND_SHAPE_TEXT_BYTES];
    const size_t available = tandem_tensor_bytes(a);
    if (!tnd_layout_bytes(a->type, extents, strides, &bytes) || offset_bytes > available ||
        bytes > available - offset_bytes) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "view", (int64_t)offset_bytes,
                              (int64_t)available,
                              "view: %s at byte %zu does not lie inside a %s of %zu bytes",
                              tnd_shape_text(extents, shape), offset_bytes,
                              tnd_shape_text(a->ne, a_shape), available);
    }
    if (offset_bytes % tandem_type_block_bytes(a->type) != 0) {
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, "view", (int64_t)offset_bytes,
                              (int64_t)tandem_type_block_bytes(a->type),
                              "view: offset %zu is not a multiple of %zu bytes", offset_bytes,
                              tandem_type_block_bytes(a->type));
    }
    return tnd_build_view(context, TANDEM_OP_VIEW, a, extents, strides, offset_bytes);
}

tandem_tensor *tandem_reshape(tandem_context *context, tandem_tensor *a, int n_dims,
                              const int64_t *ne)
{
    int64_t extents[TANDEM_MAX_DIMS];
    size_t strides[TANDEM_MAX_DIMS];
    size_t bytes;
    if (!tnd_build_ready(context, TANDEM_OP_RESHAPE, "a", a) ||
        !tnd_build_extents(context, "reshape", a->type, n_dims, ne, extents)) {
        return NULL;
    }
    char a_shape[TND_SHAPE_TEXT_BYTES];
    char shape[TND_SHAPE_TEXT_BYTES];
    if (!tandem_tensor_is_contiguous(a)) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "reshape", 0, 0,
                              "reshape: a %s is not contiguous: use cont",
                              tnd_shape_text(a->ne, a_shape));
    }
    if (!tnd_layout_dense(a->type, extents, strides, &bytes) || bytes != tandem_tensor_bytes(a)) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "reshape", 0, tandem_tensor_elements(a),
                              "reshape: %s has not as many values as a %s",
                              tnd_shape_text(extents, shape), tnd_shape_text(a->ne, a_shape));
    }
    return tnd_build_view(context, TANDEM_OP_RESHAPE, a, extents, strides, 0);
}

static tandem_tensor *permuted(tandem_context *context, enum tandem_op op, tandem_tensor *a,
                               const int axes[TANDEM_MAX_DIMS])
{
    const char *name = tandem_op_name(op);
    int64_t ne[TANDEM_MAX_DIMS];
    size_t nb[TANDEM_MAX_DIMS];
    unsigned int seen = 0;
    if (!tnd_build_ready(context, op, "a", a)) {
        return NULL;
    }
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        if (axes[i] < 0 || axes[i] >= TANDEM_MAX_DIMS || (seen & (1u << axes[i])) != 0) {
            return tnd_build_fail(context, TANDEM_E_ARGUMENT, name, axes[i], TANDEM_MAX_DIMS - 1,
                                  "%s: axes %d %d %d %d are no permutation of 0 to 3", name,
                                  axes[0], axes[1], axes[2], axes[3]);
        }
        seen |= 1u << axes[i];
        ne[axes[i]] = a->ne[i];
        nb[axes[i]] = a->nb[i];
    }
    if (axes[0] != 0 && tandem_type_is_quantized(a->type)) {
        return tnd_build_fail(context, TANDEM_E_TYPE, name, a->type, 0,
                              "%s: a is %s, whose blocks must stay in dimension 0", name,
                              tandem_type_name(a->type));
    }
    return tnd_build_view(context, op, a, ne, nb, 0);
}

tandem_tensor *tandem_permute(tandem_context *context, tandem_tensor *a, int axis0, int axis1,
                              int axis2, int axis3)
{
    const int axes[TANDEM_MAX_DIMS] = {axis0, axis1, axis2, axis3};
    return permuted(context, TANDEM_OP_PERMUTE, a, axes);
}

tandem_tensor *tandem_transpose(tandem_context *context, tandem_tensor *a)
{
    const int axes[TANDEM_MAX_DIMS] = {1, 0, 2, 3};
    return permuted(context, TANDEM_OP_TRANSPOSE, a, axes);
}

/* ---- copies ---- */

static bool is_float_type(enum tandem_type type)
{
    return type == TANDEM_TYPE_F32 || type == TANDEM_TYPE_F16 || type == TANDEM_TYPE_BF16;
}

/* Whether no two values of the tensor overlap in memory. Sorted by stride, each stride must step
 * over everything that the smaller ones span; other layouts without overlap are refused, too. */
static bool has_distinct_values(const tandem_tensor *tensor)
{
    int order[TANDEM_MAX_DIMS] = {0, 1, 2, 3};
    for (int i = 1; i < TANDEM_MAX_DIMS; i++) {
        for (int j = i; j > 0 && tensor->nb[order[j]] < tensor->nb[order[j - 1]]; j--) {
            int swap = order[j];
            order[j] = order[j - 1];
            order[j - 1] = swap;
        }
    }
    size_t span = tandem_type_block_bytes(tensor->type);
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        const int dim = order[i];
        int64_t extent = tensor->ne[dim];
        if (dim == 0) {
            extent /= tandem_type_block_values(tensor->type);
        }
        if (extent <= 1) {
            continue;
        }
        if (tensor->nb[dim] < span) {
            return false;
        }
        span += (size_t)(extent - 1) * tensor->nb[dim]; /* within the tensor's bytes */
    }
    return true;
}

static bool byte_ranges_meet(const tandem_tensor *a, const tandem_tensor *b)
{
    const size_t a_bytes = tandem_tensor_bytes(a);
    const size_t b_bytes = tandem_tensor_bytes(b);
    return a->root == b->root && a_bytes > 0 && b_bytes > 0 &&
           a->root_offset < b->root_offset + b_bytes && b->root_offset < a->root_offset + a_bytes;
}

static bool cpy_types_fit(const tandem_tensor *a, const tandem_tensor *b)
{
    if (is_float_type(a->type) && is_float_type(b->type)) {
        return true;
    }
    if (a->type == TANDEM_TYPE_F32 && tandem_type_is_quantized(b->type)) {
        return true;
    }
    return a->type == TANDEM_TYPE_I32 && b->type == TANDEM_TYPE_I32;
}

/* Whether `b` may be written while `operand` is read. */
static bool may_write(tandem_context *context, enum tandem_op op, const tandem_tensor *b,
                      const tandem_tensor *operand, const char *role)
{
    const char *name = tandem_op_name(op);
    char shape[TND_SHAPE_TEXT_BYTES];
    char b_shape[TND_SHAPE_TEXT_BYTES];
    if ((b->root->flags & TND_TENSOR_READ_ONLY) != 0) {
        tnd_build_fail(context, TANDEM_E_ARGUMENT, name, 0, 0,
                       "%s: the memory of b %s was borrowed as const", name,
                       tnd_shape_text(b->ne, b_shape));
        return false;
    }
    if (!has_distinct_values(b) || byte_ranges_meet(operand, b)) {
        tnd_build_fail(context, TANDEM_E_ARGUMENT, name, 0, 0, "%s: b %s overlaps itself or %s %s",
                       name, tnd_shape_text(b->ne, b_shape), role,
                       tnd_shape_text(operand->ne, shape));
        return false;
    }
    return true;
}

tandem_tensor *tandem_cpy(tandem_context *context, tandem_tensor *a, tandem_tensor *b)
{
    if (!tnd_build_ready(context, TANDEM_OP_CPY, "a", a) ||
        !tnd_build_ready(context, TANDEM_OP_CPY, "b", b)) {
        return NULL;
    }
    char a_shape[TND_SHAPE_TEXT_BYTES];
    char b_shape[TND_SHAPE_TEXT_BYTES];
    if (!cpy_types_fit(a, b)) {
        return tnd_build_fail(context, TANDEM_E_TYPE, "cpy", a->type, b->type,
                              "cpy: cannot convert %s to %s", tandem_type_name(a->type),
                              tandem_type_name(b->type));
    }
    if (tandem_tensor_elements(a) != tandem_tensor_elements(b)) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "cpy", tandem_tensor_elements(a),
                              tandem_tensor_elements(b), "cpy: a %s has %lld values, b %s has %lld",
                              tnd_shape_text(a->ne, a_shape), (long long)tandem_tensor_elements(a),
                              tnd_shape_text(b->ne, b_shape), (long long)tandem_tensor_elements(b));
    }
    /* blocks are made of whole rows: same extents, and rows of `a` dense */
    if (tandem_type_is_quantized(b->type) &&
        (memcmp(a->ne, b->ne, sizeof(a->ne)) != 0 || a->nb[0] != sizeof(float))) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "cpy", a->ne[0], b->ne[0],
                              "cpy: to %s needs dense rows and equal shapes, a is %s, b is %s",
                              tandem_type_name(b->type), tnd_shape_text(a->ne, a_shape),
                              tnd_shape_text(b->ne, b_shape));
    }
    if (!may_write(context, TANDEM_OP_CPY, b, a, "a")) {
        return NULL;
    }
    tandem_tensor *node = tnd_build_view(context, TANDEM_OP_CPY, b, b->ne, b->nb, 0);
    if (node != NULL) {
        node->src[0] = a;
        node->src[1] = b;
        node->n_src = 2;
    }
    return node;
}

/* Whether `a` can be scattered to `b` by `ids`. */
static bool scatter_fits(tandem_context *context, const tandem_tensor *a, const tandem_tensor *b,
                         const tandem_tensor *ids)
{
    char a_shape[TND_SHAPE_TEXT_BYTES];
    char b_shape[TND_SHAPE_TEXT_BYTES];
    if (b->type == TANDEM_TYPE_I32 || ids->type != TANDEM_TYPE_I32) {
        tnd_build_fail(context, TANDEM_E_TYPE, "scatter", b->type, ids->type,
                       "scatter: b is %s, expected a type of floats, and ids %s, expected i32",
                       tandem_type_name(b->type), tandem_type_name(ids->type));
        return false;
    }
    if (a->ne[0] != b->ne[0] || a->ne[1] != b->ne[1] || a->ne[3] != 1 || b->ne[3] != 1 ||
        a->nb[0] != sizeof(float) || b->nb[0] != tandem_type_block_bytes(b->type)) {
        tnd_build_fail(context, TANDEM_E_SHAPE, "scatter", a->ne[0], b->ne[0],
                       "scatter: matrices of a %s do not fit into b %s, or rows are not dense",
                       tnd_shape_text(a->ne, a_shape), tnd_shape_text(b->ne, b_shape));
        return false;
    }
    if (ids->ne[0] != a->ne[2] || tandem_tensor_elements(ids) != ids->ne[0] ||
        ids->nb[0] != sizeof(int32_t)) {
        tnd_build_fail(context, TANDEM_E_SHAPE, "scatter", ids->ne[0], a->ne[2],
                       "scatter: ids %s has no index for each of %lld matrices",
                       tnd_shape_text(ids->ne, a_shape), (long long)a->ne[2]);
        return false;
    }
    return true;
}

tandem_tensor *tandem_scatter(tandem_context *context, tandem_tensor *a, tandem_tensor *b,
                              tandem_tensor *ids)
{
    const enum tandem_op op = TANDEM_OP_SCATTER;
    if (!tnd_build_ready_f32(context, op, "a", a) || !tnd_build_ready(context, op, "b", b) ||
        !tnd_build_ready(context, op, "ids", ids) || !scatter_fits(context, a, b, ids) ||
        !may_write(context, op, b, a, "a") || !may_write(context, op, b, ids, "ids")) {
        return NULL;
    }
    tandem_tensor *node = tnd_build_view(context, op, b, b->ne, b->nb, 0);
    if (node != NULL) {
        node->src[0] = a;
        node->src[1] = b;
        node->src[2] = ids;
        node->n_src = 3;
    }
    return node;
}

tandem_tensor *tandem_cont(tandem_context *context, tandem_tensor *a)
{
    if (!tnd_build_ready(context, TANDEM_OP_CONT, "a", a)) {
        return NULL;
    }
    if (tandem_type_is_quantized(a->type)) {
        return tnd_build_fail(context, TANDEM_E_TYPE, "cont", a->type, 0,
                              "cont: a is %s, expected a type that is not quantised",
                              tandem_type_name(a->type));
    }
    return tnd_build_node(context, TANDEM_OP_CONT, a->type, a->ne, a, NULL);
}

tandem_tensor *tandem_concat(tandem_context *context, tandem_tensor *a, tandem_tensor *b, int dim)
{
    if (!tnd_build_ready_f32(context, TANDEM_OP_CONCAT, "a", a) ||
        !tnd_build_ready_f32(context, TANDEM_OP_CONCAT, "b", b)) {
        return NULL;
    }
    if (dim < 0 || dim >= TANDEM_MAX_DIMS) {
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, "concat", dim, TANDEM_MAX_DIMS - 1,
                              "concat: dim is %d, expected 0 to 3", dim);
    }
    int64_t ne[TANDEM_MAX_DIMS];
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        char a_shape[TND_SHAPE_TEXT_BYTES];
        char b_shape[TND_SHAPE_TEXT_BYTES];
        if (i != dim && a->ne[i] != b->ne[i]) {
            return tnd_build_fail(context, TANDEM_E_SHAPE, "concat", b->ne[i], a->ne[i],
                                  "concat: a %s and b %s differ in ne[%d]",
                                  tnd_shape_text(a->ne, a_shape), tnd_shape_text(b->ne, b_shape),
                                  i);
        }
        ne[i] = a->ne[i];
    }
    /* extents are at most a quarter of INT64_MAX (tnd_layout_dense): the sum fits */
    ne[dim] += b->ne[dim];
    tandem_tensor *node = tnd_build_node(context, TANDEM_OP_CONCAT, TANDEM_TYPE_F32, ne, a, b);
    if (node != NULL) {
        node->params.concat_dim = dim;
    }
    return node;
}

/* ---- reference ---- */

/* Advances i to the next value in the order of ne. */
static void step(const struct tandem_tensor *tensor, int64_t i[TANDEM_MAX_DIMS])
{
    for (int dim = 0; dim < TANDEM_MAX_DIMS; dim++) {
        if (++i[dim] < tensor->ne[dim]) {
            return;
        }
        i[dim] = 0;
    }
}

/* Copies one value between types that are not quantised; the same type keeps every bit. */
static void copy_value(const struct tandem_tensor *from, const char *source,
                       const struct tandem_tensor *to, char *target)
{
    if (from->type == to->type) {
        memcpy(target, source, tandem_type_block_bytes(to->type));
        return;
    }
    float value;
    tnd_type_traits(from->type)->dequantize(source, &value, 1);
    tnd_type_traits(to->type)->quantize(&value, target, 1);
}

static void copy_values(const struct tandem_tensor *a, const struct tandem_tensor *b)
{
    int64_t i[TANDEM_MAX_DIMS] = {0};
    int64_t j[TANDEM_MAX_DIMS] = {0};
    for (int64_t n = tandem_tensor_elements(a); n > 0; n--) {
        copy_value(a, tnd_ref_at(a, i[0], i[1], i[2], i[3]), b,
                   tnd_ref_at(b, j[0], j[1], j[2], j[3]));
        step(a, i);
        step(b, j);
    }
}

static void quantize_rows(const struct tandem_tensor *a, const struct tandem_tensor *b)
{
    for (int64_t i3 = 0; i3 < b->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < b->ne[2]; i2++) {
            for (int64_t i1 = 0; i1 < b->ne[1]; i1++) {
                tnd_type_traits(b->type)->quantize(
                    (const float *)(void *)tnd_ref_at(a, 0, i1, i2, i3),
                    tnd_ref_at(b, 0, i1, i2, i3), b->ne[0]);
            }
        }
    }
}

static void concat(const struct tandem_tensor *node)
{
    const struct tandem_tensor *a = node->src[0];
    const int dim = node->params.concat_dim;
    int64_t i[TANDEM_MAX_DIMS] = {0};
    for (int64_t n = tandem_tensor_elements(node); n > 0; n--) {
        int64_t j[TANDEM_MAX_DIMS];
        memcpy(j, i, sizeof(j));
        const struct tandem_tensor *from = a;
        if (i[dim] >= a->ne[dim]) {
            from = node->src[1];
            j[dim] -= a->ne[dim];
        }
        copy_value(from, tnd_ref_at(from, j[0], j[1], j[2], j[3]), node,
                   tnd_ref_at(node, i[0], i[1], i[2], i[3]));
        step(node, i);
    }
}

enum tandem_status tnd_ref_copy(struct tandem_tensor *node, struct tandem_error *error)
{
    (void)error;
    if (node->op == TANDEM_OP_CONCAT) {
        concat(node);
    } else if (tandem_type_is_quantized(node->type) && tandem_tensor_elements(node) > 0) {
        quantize_rows(node->src[0], node);
    } else {
        copy_values(node->src[0], node);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_ref_scatter(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tandem_tensor *a = node->src[0];
    const int32_t *ids = node->src[2]->data;
    for (int64_t i = 0; i < a->ne[2]; i++) {
        if (ids[i] < 0 || ids[i] >= node->ne[2]) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, node->name, ids[i], node->ne[2],
                                 "scatter: index %lld is %d, expected 0 to %lld", (long long)i,
                                 (int)ids[i], (long long)node->ne[2] - 1);
        }
    }
    for (int64_t i = 0; i < a->ne[2] && tandem_tensor_elements(a) > 0; i++) {
        for (int64_t k = 0; k < a->ne[1]; k++) {
            tnd_type_traits(node->type)
                ->quantize((const float *)(void *)tnd_ref_at(a, 0, k, i, 0),
                           tnd_ref_at(node, 0, k, ids[i], 0), a->ne[0]);
        }
    }
    return TANDEM_OK;
}
