/* SPDX-License-Identifier: MIT
 * Reference of operations that move values: cpy, cont, concat. */
#include <string.h>

#include "ggml-like/eval_ref.h"
#include "ggml-like/tnd_type.h"

/* Moves i to the next value in the order of ne. */
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

enum tandem_status tnd_ref_layout(struct tandem_tensor *node, struct tandem_error *error)
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
