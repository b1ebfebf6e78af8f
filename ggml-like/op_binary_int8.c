/* SPDX-License-Identifier: MIT
 * Sums and products of 8-bit integers that stand for real numbers: builder and reference. */
#include "ggml-like/binary_int8.h"

#include <math.h>

#include "base/tnd_assert.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"

enum { BYTES = 256 };

/* ---- parameters ---- */

static bool is_zero_point(int32_t zero, bool is_signed)
{
    const int32_t least = is_signed ? -128 : 0;
    return zero >= least && zero <= least + 255;
}

/* Whether products and quotients of such scales are normal numbers. */
static bool is_scale(float scale)
{
    return scale > 1e-9f && scale < 1e9f;
}

/* Whether kernels may round the result before they clamp it. */
static bool is_small(const struct tnd_binary_int8 *op)
{
    const float a = 255 * op->scale_a;
    const float b = 255 * op->scale_b;
    const float sum = op->is_product ? a * b : a + b;
    return (op->divides ? sum / op->scale_y : sum * op->scale_y) < 0x1p+21f; /* (false: NaN) */
}

bool tnd_binary_int8_is_valid(const struct tnd_binary_int8 *op)
{
    const float least = op->y_is_signed ? -128 : 0;
    const float low = op->low + (float)op->zero_y;
    const float high = op->high + (float)op->zero_y;
    return is_zero_point(op->zero_a, op->a_is_signed) &&
           is_zero_point(op->zero_b, op->b_is_signed) &&
           is_zero_point(op->zero_y, op->y_is_signed) && is_scale(op->scale_a) &&
           is_scale(op->scale_b) && is_scale(op->scale_y) && is_small(op) && low >= least &&
           low <= high && high <= least + 255 && op->low == floorf(op->low) &&
           op->high == floorf(op->high) && op->n >= 0 && op->row > 0 && op->every > 0;
}

static float combine(const struct tnd_binary_int8 *op, float a, float b)
{
    const float sum = op->is_product ? a * b : a + b;
    const float y = op->divides ? sum / op->scale_y : sum * op->scale_y;
    return y < op->low ? op->low : y > op->high ? op->high : y;
}

/* The real numbers that the bytes 0 to 255 stand for. */
static void find_values(bool is_signed, int32_t zero, float scale, float values[BYTES])
{
    for (int i = 0; i < BYTES; i++) {
        const int32_t integer = is_signed && i >= BYTES / 2 ? i - BYTES : i;
        values[i] = (float)(integer - zero) * scale;
    }
}

/* 1.5 * 2^23: adding it to a number below 2^22 rounds that to an integer, ties to even. */
#define ROUNDER 0x1.8p+23f

/* For how many values of b the two operations differ at this a. (Written so that compilers
 * vectorise it.) */
static int count_others(const struct tnd_binary_int8 *one, const struct tnd_binary_int8 *other,
                        float a, const float *b)
{
    int n = 0;
    for (int i = 0; i < BYTES; i++) {
        n += combine(one, a, b[i]) + ROUNDER != combine(other, a, b[i]) + ROUNDER;
    }
    return n;
}

void tnd_binary_int8_avoid_division(struct tnd_binary_int8 *op)
{
    float a[BYTES];
    float b[BYTES];
    if (!op->divides) {
        return;
    }
    find_values(op->a_is_signed, op->zero_a, op->scale_a, a);
    find_values(op->b_is_signed, op->zero_b, op->scale_b, b);
    const float near = 1.0f / op->scale_y;
    const float factors[] = {near, nextafterf(near, 0), nextafterf(near, INFINITY)};
    for (int f = 0; f < 3; f++) {
        struct tnd_binary_int8 other = *op;
        int n = 0;
        other.divides = false;
        other.scale_y = factors[f];
        for (int i = 0; i < BYTES && n == 0; i++) {
            n = count_others(op, &other, a[i], b);
        }
        if (n == 0) {
            *op = other;
            return;
        }
    }
}

/* ---- builder ---- */

tandem_tensor *tnd_build_binary_int8(tandem_context *context, const struct tnd_binary_int8 *op,
                                     tandem_tensor *a, tandem_tensor *b)
{
    if (!tnd_build_ready(context, TANDEM_OP_BINARY_INT8, "a", a) ||
        !tnd_build_ready(context, TANDEM_OP_BINARY_INT8, "b", b)) {
        return NULL;
    }
    const int64_t rows = op->n / op->row;
    const int64_t b_values = (rows + op->every - 1) / op->every * op->row;
    const bool fits = (int64_t)tandem_tensor_bytes(a) >= op->n;
    if (!fits || (int64_t)tandem_tensor_bytes(b) < b_values || rows * op->row != op->n) {
        return tnd_build_fail(context, TANDEM_E_SHAPE, "binary_int8", op->n, op->row,
                              "binary_int8: %s has %zu bytes, expected %lld at least, in rows of "
                              "%lld",
                              fits ? "b" : "a", tandem_tensor_bytes(fits ? b : a),
                              (long long)(fits ? b_values : op->n), (long long)op->row);
    }
    struct tnd_binary_int8 *copy =
        tnd_context_take(context, sizeof(*copy), _Alignof(struct tnd_binary_int8));
    const int64_t ne[TANDEM_MAX_DIMS] = {op->n > 0 ? (op->n + 3) / 4 : 1, 1, 1, 1};
    tandem_tensor *node =
        copy == NULL ? NULL
                     : tnd_build_node(context, TANDEM_OP_BINARY_INT8, TANDEM_TYPE_F32, ne, a, b);
    if (node == NULL) {
        return NULL;
    }
    TND_ASSERT(tnd_binary_int8_is_valid(op));
    *copy = *op;
    node->params.binary_int8 = copy;
    return node;
}

/* ---- reference ---- */

enum tandem_status tnd_ref_binary_int8(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tnd_binary_int8 *op = node->params.binary_int8;
    const uint8_t *a = node->src[0]->data;
    const uint8_t *b = node->src[1]->data;
    float a_values[BYTES];
    float b_values[BYTES];
    (void)error;
    find_values(op->a_is_signed, op->zero_a, op->scale_a, a_values);
    find_values(op->b_is_signed, op->zero_b, op->scale_b, b_values);
    for (int64_t i = 0; i < op->n; i++) {
        const int64_t at = i / (op->row * op->every) * op->row + i % op->row;
        const float y = combine(op, a_values[a[i]], b_values[b[at]]);
        ((uint8_t *)node->data)[i] = (uint8_t)((int32_t)nearbyintf(y) + op->zero_y);
    }
    return TANDEM_OK;
}
