/* SPDX-License-Identifier: MIT
 * Products of two computed matrices of 8-bit integers: builder and reference. */
#include "ggml-like/product_int8.h"

#include "base/checked.h"
#include "base/tnd_assert.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"

/* ---- builder ---- */

/* Bytes from the tensor's start to the end of a matrix's last value. False: overflow. */
static bool reach_of(const struct tnd_int8_matrix *matrix, int64_t n, int64_t rows, int64_t columns,
                     int64_t *out)
{
    const int64_t extents[] = {n, rows, columns};
    const int64_t strides[] = {matrix->product, matrix->row, matrix->column};
    *out = matrix->offset + 1;
    for (int i = 0; i < 3; i++) {
        int64_t part;
        if (strides[i] < 0 || !tnd_mul_i64(extents[i] - 1, strides[i], &part) ||
            !tnd_add_i64(*out, part, out)) {
            return false;
        }
    }
    return matrix->offset >= 0;
}

static bool has_bytes(tandem_context *context, const char *role, const tandem_tensor *tensor,
                      int64_t bytes)
{
    if (!tnd_build_ready(context, TANDEM_OP_PRODUCT_INT8, role, tensor)) {
        return false;
    }
    if ((int64_t)tandem_tensor_bytes(tensor) < bytes) {
        tnd_build_fail(context, TANDEM_E_SHAPE, "product_int8",
                       (int64_t)tandem_tensor_bytes(tensor), bytes,
                       "product_int8: %s has %zu bytes, expected %lld at least", role,
                       tandem_tensor_bytes(tensor), (long long)bytes);
        return false;
    }
    return true;
}

static bool are_operands(tandem_context *context, const struct tnd_product_int8 *product,
                         const tandem_tensor *x, const tandem_tensor *w,
                         const tandem_tensor *filters, const tandem_tensor *zero_x,
                         const tandem_tensor *zero_w)
{
    const struct tnd_conv_int8 *sums = &product->sums;
    const int64_t rows = sums->images / product->n;
    int64_t x_bytes;
    int64_t w_bytes;
    int64_t values;
    if (!reach_of(&product->x, product->n, rows, sums->channels, &x_bytes) ||
        !reach_of(&product->w, product->n, sums->channels, sums->filters, &w_bytes) ||
        !tnd_mul_i64(sums->images, sums->filters, &values) || values > INT64_MAX / 8) {
        tnd_build_fail(context, TANDEM_E_SHAPE, "product_int8", sums->images, 0,
                       "product_int8: more values than fit into 64 bits, or a step backwards");
        return false;
    }
    return has_bytes(context, "x", x, x_bytes) && has_bytes(context, "w", w, w_bytes) &&
           has_bytes(context, "filters", filters,
                     tnd_int8_padded_filters(sums) * (int64_t)sizeof(struct tnd_int8_filter)) &&
           (zero_x == NULL || has_bytes(context, "zero_x", zero_x, 1)) &&
           (zero_w == NULL || has_bytes(context, "zero_w", zero_w, 1));
}

tandem_tensor *tnd_build_product_int8(tandem_context *context,
                                      const struct tnd_product_int8 *product, tandem_tensor *x,
                                      tandem_tensor *w, tandem_tensor *filters,
                                      tandem_tensor *zero_x, tandem_tensor *zero_w)
{
    const struct tnd_conv_int8 *sums = &product->sums;
    const int64_t bytes = sums->result >= TND_INT8_S8 ? 1 : 4;
    TND_ASSERT(product->n > 0 && sums->images > 0 && sums->images % product->n == 0);
    TND_ASSERT(sums->n == 0 && sums->groups == 1 && sums->channels > 0 && sums->filters > 0);
    TND_ASSERT(product->x.column == 1);
    if (!are_operands(context, product, x, w, filters, zero_x, zero_w)) {
        return NULL;
    }
    struct tnd_product_int8 *copy =
        tnd_context_take(context, sizeof(*copy), _Alignof(struct tnd_product_int8));
    const int64_t ne[TANDEM_MAX_DIMS] = {(sums->images * sums->filters * bytes + 3) / 4, 1, 1, 1};
    tandem_tensor *node =
        copy == NULL ? NULL
                     : tnd_build_node(context, TANDEM_OP_PRODUCT_INT8, TANDEM_TYPE_F32, ne, x, w);
    if (node == NULL) {
        return NULL;
    }
    *copy = *product;
    node->params.conv_int8 = &copy->sums;
    copy->has_zeros[0] = zero_x != NULL;
    copy->has_zeros[1] = zero_w != NULL;
    node->src[node->n_src++] = filters;
    for (int i = 0; i < 2; i++) {
        if (copy->has_zeros[i]) {
            node->src[node->n_src++] = i == 0 ? zero_x : zero_w;
        }
    }
    return node;
}

/* ---- reference ---- */

static int value_at(const struct tandem_tensor *tensor, int64_t at, bool is_signed)
{
    return is_signed ? ((const int8_t *)tensor->data)[at] : ((const uint8_t *)tensor->data)[at];
}

int32_t tnd_product_int8_zero_x(const struct tandem_tensor *node)
{
    const struct tnd_product_int8 *p = tnd_product_int8_of(node);
    return p->has_zeros[0] ? value_at(node->src[3], 0, p->sums.x_is_signed) : p->sums.zero_x;
}

int32_t tnd_product_int8_zero_w(const struct tandem_tensor *node)
{
    const struct tnd_product_int8 *p = tnd_product_int8_of(node);
    const int at = p->has_zeros[0] ? 4 : 3;
    return p->has_zeros[1] ? value_at(node->src[at], 0, p->w_is_signed) : p->zero_w;
}

static int64_t sum_of(const struct tandem_tensor *node, int64_t product, int64_t row,
                      int64_t column)
{
    const struct tnd_product_int8 *p = tnd_product_int8_of(node);
    const int32_t zero_x = tnd_product_int8_zero_x(node);
    const int32_t zero_w = tnd_product_int8_zero_w(node);
    const int64_t x = p->x.offset + product * p->x.product + row * p->x.row;
    const int64_t w = p->w.offset + product * p->w.product + column * p->w.column;
    int64_t sum = 0;
    for (int64_t k = 0; k < p->sums.channels; k++) {
        sum += (int64_t)(value_at(node->src[0], x + k, p->sums.x_is_signed) - zero_x) *
               (value_at(node->src[1], w + k * p->w.row, p->w_is_signed) - zero_w);
    }
    return sum;
}

enum tandem_status tnd_ref_product_int8(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tnd_product_int8 *p = tnd_product_int8_of(node);
    const struct tnd_int8_filter *filters = node->src[2]->data;
    const int64_t rows = p->sums.images / p->n;
    (void)error;
    for (int64_t row = 0; row < p->sums.images; row++) {
        for (int64_t f = 0; f < p->sums.filters; f++) {
            tnd_int8_write(node, row * p->sums.filters + f, sum_of(node, row / rows, row % rows, f),
                           &filters[f]);
        }
    }
    return TANDEM_OK;
}
