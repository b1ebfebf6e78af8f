/* SPDX-License-Identifier: MIT
 * Validates nodes that the host passes in. Sizes are bounded before they are multiplied. */
#include "bridge/ggml/bridge_product.h"

#include <string.h>

#include "bridge/ggml/bridge_host.h"
#include "tandem/tensor.h"

enum { TYPE_F32 = TANDEM_TYPE_F32 };
static const int64_t MOST_VALUES = INT64_C(1) << 31; /* per extent of a matrix */

static bool is_dense(const struct ggml_tensor *tensor, size_t row_bytes)
{
    return row_bytes != 0 && tensor->nb[1] == row_bytes &&
           tensor->nb[2] == tensor->nb[1] * (size_t)tensor->ne[1] &&
           tensor->nb[3] == tensor->nb[2] * (size_t)tensor->ne[2];
}

/* Whether extents can be multiplied without overflow, and the number of all rows is in range,
 * too. */
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

/* Whether it is one matrix, or one per expert. */
static bool is_weights(const struct ggml_tensor *tensor)
{
    if (tensor->type < 0 || tensor->type >= TANDEM_TYPE_NUMBERS || tensor->view_src != NULL ||
        !tandem_type_is_valid((enum tandem_type)tensor->type) || tensor->type == TANDEM_TYPE_I32 ||
        tensor->type == TANDEM_TYPE_BCML1 || !has_sane_extents(tensor)) {
        return false;
    }
    enum tandem_type type = (enum tandem_type)tensor->type;
    return tensor->ne[3] == 1 && tensor->nb[0] == tandem_type_block_bytes(type) &&
           is_dense(tensor, tandem_type_row_bytes(type, tensor->ne[0]));
}

/* Whether it holds rows of ids, often the beginnings of longer rows. */
static bool is_ids(const struct ggml_tensor *tensor)
{
    return tensor->type == TANDEM_TYPE_I32 && tensor->nb[0] == sizeof(int32_t) &&
           has_sane_extents(tensor) && tensor->ne[2] == 1 && tensor->ne[3] == 1 &&
           tensor->nb[1] % sizeof(int32_t) == 0 && tensor->nb[1] < (size_t)MOST_VALUES &&
           tensor->nb[1] >= sizeof(int32_t) * (size_t)tensor->ne[0];
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

static bool is_plain(const struct ggml_tensor *w, const struct ggml_tensor *x,
                     const struct ggml_tensor *y)
{
    return w->ne[2] == 1 && y->ne[1] == x->ne[1] && y->ne[2] == x->ne[2] && y->ne[3] == x->ne[3];
}

static bool is_of_experts(const struct ggml_tensor *x, const struct ggml_tensor *ids,
                          const struct ggml_tensor *y)
{
    return ids != NULL && is_ids(ids) && y->ne[1] == ids->ne[0] && y->ne[2] == ids->ne[1] &&
           y->ne[3] == 1 && x->ne[2] == y->ne[2] && x->ne[3] == 1 &&
           (x->ne[1] == 1 || x->ne[1] == y->ne[1]);
}

bool tnd_product_is_named(const char *name)
{
    return name != NULL && (strcmp(name, "MUL_MAT") == 0 || strcmp(name, "MUL_MAT_ID") == 0);
}

bool tnd_product_read(const struct ggml_tensor *node, struct tnd_product *out)
{
    const struct ggml_tensor *w = node->src[0];
    const struct ggml_tensor *x = node->src[1];
    const struct ggml_tensor *ids = node->src[2];
    const char *name = tnd_host.ggml_op_name(node->op);
    if (!tnd_product_is_named(name) || w == NULL || x == NULL || asks_for_more(node) ||
        !is_weights(w) || !is_f32_matrix(x) || !is_f32_matrix(node) || x->ne[0] != w->ne[0] ||
        node->ne[0] != w->ne[1]) {
        return false;
    }
    *out = (struct tnd_product){.type = w->type, .n = w->ne[1], .k = w->ne[0]};
    out->w = w->data;
    out->x = x->data;
    out->y = node->data;
    out->n_used = 1;
    out->n_used_x = 1;
    if (strcmp(name, "MUL_MAT") == 0) {
        out->m = x->ne[1] * x->ne[2] * x->ne[3];
        return is_plain(w, x, node);
    }
    if (!is_of_experts(x, ids, node)) {
        return false;
    }
    out->m = x->ne[2];
    out->n_experts = w->ne[2];
    out->n_used = ids->ne[0];
    out->n_used_x = x->ne[1];
    out->ids = ids->data;
    out->ids_stride = (int64_t)ids->nb[1];
    return true;
}

bool tnd_product_of_weights(const struct ggml_tensor *w, struct tnd_product *out)
{
    if (!is_weights(w) || w->ne[2] != 1 || w->ne[1] < 2 || w->data == NULL) {
        return false;
    }
    *out = (struct tnd_product){.type = w->type, .n = w->ne[1], .k = w->ne[0], .m = 1};
    out->w = w->data;
    out->n_used = 1;
    out->n_used_x = 1;
    return true;
}

size_t tnd_product_w_bytes(const struct tnd_product *product)
{
    size_t matrix =
        tandem_type_row_bytes((enum tandem_type)product->type, product->k) * (size_t)product->n;
    return product->n_experts > 0 ? matrix * (size_t)product->n_experts : matrix;
}

size_t tnd_product_x_bytes(const struct tnd_product *product)
{
    return sizeof(float) * (size_t)product->k * (size_t)(product->m * product->n_used_x);
}

size_t tnd_product_y_bytes(const struct tnd_product *product)
{
    return sizeof(float) * (size_t)product->n * (size_t)(product->m * product->n_used);
}

size_t tnd_product_ids_bytes(const struct tnd_product *product)
{
    return product->n_experts == 0 ? 0
                                   : (size_t)product->ids_stride * (size_t)(product->m - 1) +
                                         sizeof(int32_t) * (size_t)product->n_used;
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

bool tnd_lies_in_buffer(const struct ggml_tensor *tensor, const void *data, size_t bytes)
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
    return tnd_lies_in_buffer(node->src[0], product->w, tnd_product_w_bytes(product)) &&
           tnd_lies_in_buffer(node->src[1], product->x, tnd_product_x_bytes(product)) &&
           tnd_lies_in_buffer(node, product->y, tnd_product_y_bytes(product)) &&
           (product->n_experts == 0 ||
            tnd_lies_in_buffer(node->src[2], product->ids, tnd_product_ids_bytes(product)));
}
