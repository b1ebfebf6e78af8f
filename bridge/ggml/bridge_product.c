/* SPDX-License-Identifier: MIT
 * Checks of what the host hands over. Sizes are bounded before they are multiplied. */
#include "bridge/ggml/bridge_product.h"

#include <string.h>

#include "bridge/ggml/bridge_host.h"
#include "tandem/tensor.h"

enum { TYPE_F32 = TANDEM_TYPE_F32 };
static const int64_t MOST_VALUES = INT64_C(1) << 31; /* of an extent of a matrix */

static bool is_dense(const struct ggml_tensor *tensor, size_t row_bytes)
{
    return row_bytes != 0 && tensor->nb[1] == row_bytes &&
           tensor->nb[2] == tensor->nb[1] * (size_t)tensor->ne[1] &&
           tensor->nb[3] == tensor->nb[2] * (size_t)tensor->ne[2];
}

/* Extents that can be multiplied without overflow: rows altogether fit an extent, too. */
static bool has_sane_extents(const struct ggml_tensor *tensor)
{
    int64_t rows = 1;
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        if (tensor->ne[i] < 1 || tensor->ne[i] >= MOST_VALUES) {
            return false;
        }
        rows *= i > 0 ? tensor->ne[i] : 1;
        if (rows >= MOST_VALUES) {
            return false;
        }
    }
    return true;
}

static bool is_f32_matrix(const struct ggml_tensor *tensor)
{
    return tensor->type == TYPE_F32 && tensor->nb[0] == sizeof(float) && has_sane_extents(tensor) &&
           is_dense(tensor, tandem_type_row_bytes(TANDEM_TYPE_F32, tensor->ne[0]));
}

static bool is_weight_matrix(const struct ggml_tensor *tensor)
{
    if (tensor->type < 0 || tensor->type >= TANDEM_TYPE_NUMBERS || tensor->view_src != NULL ||
        !tandem_type_is_valid((enum tandem_type)tensor->type) || tensor->type == TANDEM_TYPE_I32 ||
        tensor->type == TANDEM_TYPE_BCML1 || !has_sane_extents(tensor)) {
        return false;
    }
    enum tandem_type type = (enum tandem_type)tensor->type;
    return tensor->ne[2] == 1 && tensor->ne[3] == 1 &&
           tensor->nb[0] == tandem_type_block_bytes(type) &&
           is_dense(tensor, tandem_type_row_bytes(type, tensor->ne[0]));
}

static bool asks_for_more(const struct ggml_tensor *node)
{
    for (int i = 0; i < GGML_OP_PARAM_WORDS; i++) {
        if (node->op_params[i] != 0) {
            return true;
        }
    }
    return false;
}

bool tnd_product_read(const struct ggml_tensor *node, struct tnd_product *out)
{
    const char *name = tnd_host.ggml_op_name(node->op);
    const struct ggml_tensor *w = node->src[0];
    const struct ggml_tensor *x = node->src[1];
    if (name == NULL || strcmp(name, "MUL_MAT") != 0 || w == NULL || x == NULL ||
        asks_for_more(node) || !is_weight_matrix(w) || !is_f32_matrix(x) || !is_f32_matrix(node)) {
        return false;
    }
    if (x->ne[0] != w->ne[0] || node->ne[0] != w->ne[1] || node->ne[1] != x->ne[1] ||
        node->ne[2] != x->ne[2] || node->ne[3] != x->ne[3]) {
        return false;
    }
    *out = (struct tnd_product){w->type, w->ne[1], w->ne[0],  x->ne[1] * x->ne[2] * x->ne[3],
                                w->data, x->data,  node->data};
    return true;
}

size_t tnd_product_w_bytes(const struct tnd_product *product)
{
    return tandem_type_row_bytes((enum tandem_type)product->type, product->k) * (size_t)product->n;
}

size_t tnd_product_x_bytes(const struct tnd_product *product)
{
    return sizeof(float) * (size_t)product->k * (size_t)product->m;
}

size_t tnd_product_y_bytes(const struct tnd_product *product)
{
    return sizeof(float) * (size_t)product->n * (size_t)product->m;
}

bool tnd_product_has_weights(const struct ggml_tensor *node)
{
    struct ggml_backend_buffer *buffer = node->src[0]->buffer;
    if (buffer == NULL ||
        !tnd_host.ggml_backend_buft_is_host(tnd_host.ggml_backend_buffer_get_type(buffer))) {
        return false;
    }
    return tnd_host.ggml_backend_buffer_get_usage(buffer) == GGML_USAGE_WEIGHTS ||
           tnd_host.ggml_backend_buffer_get_size(buffer) == 0;
}

static bool lies_in_buffer(const struct ggml_tensor *tensor, const void *data, size_t bytes)
{
    struct ggml_backend_buffer *buffer = tensor->buffer;
    if (buffer == NULL && tensor->view_src != NULL) {
        buffer = tensor->view_src->buffer;
    }
    if (buffer == NULL || data == NULL ||
        !tnd_host.ggml_backend_buft_is_host(tnd_host.ggml_backend_buffer_get_type(buffer))) {
        return false;
    }
    size_t size = tnd_host.ggml_backend_buffer_get_size(buffer);
    uintptr_t base = size > 0 ? (uintptr_t)tnd_host.ggml_backend_buffer_get_base(buffer) : 0;
    uintptr_t offset = (uintptr_t)data - base;
    return base != 0 && (uintptr_t)data >= base && offset <= size && bytes <= size - offset;
}

bool tnd_product_is_inside(const struct ggml_tensor *node, const struct tnd_product *product)
{
    return lies_in_buffer(node->src[0], product->w, tnd_product_w_bytes(product)) &&
           lies_in_buffer(node->src[1], product->x, tnd_product_x_bytes(product)) &&
           lies_in_buffer(node, product->y, tnd_product_y_bytes(product));
}
