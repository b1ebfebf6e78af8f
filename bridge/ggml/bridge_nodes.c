/* SPDX-License-Identifier: MIT
 * Layouts of op_params as published with ggml 0.25.3: RMS_NORM {eps}, SCALE {factor, bias}, UNARY
 * {which}, GLU {which, swapped}, ROPE {0, n_dims, mode, 0, original context, base, scale,
 * ext_factor, attn_factor, beta_fast, beta_slow, 4 sections, offset}; all others are 0. Releases of
 * 2025 have the same, without the offset. Modes of ROPE: 0 adjacent pairs, 2 halves. */
#include "bridge/ggml/bridge_nodes.h"

#include <string.h>

#include "bridge/ggml/bridge_host.h"
#include "tandem/tensor.h"

enum {
    ROPE_N_DIMS = 1,
    ROPE_MODE = 2,
    ROPE_ORIGINAL = 4,
    ROPE_BASE = 5,
    ROPE_SCALE = 6,
    ROPE_EXT = 7,
    ROPE_ATTENTION = 8,
    ROPE_BETA_SLOW = 10
};
enum { ROPE_ADJACENT = 0, ROPE_HALVES = 2 };
enum { STEPS_TO_PRODUCT = 12 };
static const int64_t MOST_VALUES = INT64_C(1) << 31;

/* Names as returned by ggml_op_desc: the operation, or the kind of UNARY or GLU. */
static const char *const names[TND_NODE_KINDS] = {
    [TND_NODE_ADD] = "ADD",           [TND_NODE_MUL] = "MUL",     [TND_NODE_SCALE] = "SCALE",
    [TND_NODE_RMS_NORM] = "RMS_NORM", [TND_NODE_SILU] = "SILU",   [TND_NODE_GELU] = "GELU",
    [TND_NODE_SWIGLU] = "SWIGLU",     [TND_NODE_GEGLU] = "GEGLU", [TND_NODE_ROPE] = "ROPE"};

static float float_of(const struct ggml_tensor *node, int i)
{
    float value;
    memcpy(&value, &node->op_params[i], sizeof(value));
    return value;
}

/* Whether all parameters from `first` on are 0. */
static bool is_rest_zero(const struct ggml_tensor *node, int first)
{
    for (int i = first; i < GGML_OP_PARAM_WORDS; i++) {
        if (node->op_params[i] != 0) {
            return false;
        }
    }
    return true;
}

/* ---- operands ---- */

/* Reads a dense tensor with 4-byte values and extents whose product cannot overflow. */
static bool read_values(const struct ggml_tensor *tensor, int type, struct tnd_node_values *out)
{
    int64_t n = 1;
    if (tensor == NULL || tensor->type != type) {
        return false;
    }
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        if (tensor->ne[i] < 1 || tensor->ne[i] >= MOST_VALUES ||
            tensor->nb[i] != sizeof(float) * (size_t)n) {
            return false;
        }
        n *= tensor->ne[i];
        if (n >= MOST_VALUES) {
            return false;
        }
        out->ne[i] = tensor->ne[i];
    }
    out->data = tensor->data;
    return true;
}

static bool has_same_extents(const struct tnd_node_values *a, const struct tnd_node_values *b)
{
    return memcmp(a->ne, b->ne, sizeof(a->ne)) == 0;
}

/* Whether `b` has rows as long as those of `a`, and as many, or fewer that are repeated. */
static bool is_repeated(const struct tnd_node_values *a, const struct tnd_node_values *b)
{
    bool is_good = a->ne[0] == b->ne[0];
    for (int i = 1; i < GGML_MAX_DIMS; i++) {
        is_good = is_good && (b->ne[i] == a->ne[i] || b->ne[i] == 1);
    }
    return is_good;
}

size_t tnd_node_values_bytes(const struct tnd_node_values *values)
{
    return values->data == NULL ? 0
                                : sizeof(float) * (size_t)values->ne[0] * (size_t)values->ne[1] *
                                      (size_t)values->ne[2] * (size_t)values->ne[3];
}

/* ---- reading ---- */

static bool read_rope(const struct ggml_tensor *node, struct tnd_node *out)
{
    const int32_t *params = node->op_params;
    const struct tnd_node_values *a = &out->operands[0];
    struct tnd_node_values *positions = &out->operands[1];
    struct tnd_node_values *factors = &out->operands[2];
    out->n_rot = params[ROPE_N_DIMS];
    out->is_halves = params[ROPE_MODE] == ROPE_HALVES;
    out->freq_base = float_of(node, ROPE_BASE);
    out->freq_scale = float_of(node, ROPE_SCALE);
    if ((params[ROPE_MODE] != ROPE_ADJACENT && params[ROPE_MODE] != ROPE_HALVES) ||
        out->n_rot < 2 || out->n_rot % 2 != 0 || out->n_rot > a->ne[0] || params[0] != 0 ||
        params[3] != 0 || !(out->freq_base > 0) || !(out->freq_scale > 0) ||
        params[ROPE_EXT] != 0 || float_of(node, ROPE_ATTENTION) != 1.0f ||
        !is_rest_zero(node, ROPE_BETA_SLOW + 1) || a->ne[3] != 1 ||
        !read_values(node->src[1], TANDEM_TYPE_I32, positions) || positions->ne[0] != a->ne[2] ||
        positions->ne[1] * positions->ne[2] * positions->ne[3] != 1) {
        return false;
    }
    return node->src[2] == NULL || (read_values(node->src[2], TANDEM_TYPE_F32, factors) &&
                                    factors->ne[0] == out->n_rot / 2 &&
                                    factors->ne[1] * factors->ne[2] * factors->ne[3] == 1);
}

/* Reads everything after the first operand; `out->kind` is set already. */
static bool read_rest(const struct ggml_tensor *node, struct tnd_node *out)
{
    const struct tnd_node_values *a = &out->operands[0];
    struct tnd_node_values *b = &out->operands[1];
    bool has_b = node->src[1] != NULL && read_values(node->src[1], TANDEM_TYPE_F32, b);
    switch (out->kind) {
    case TND_NODE_ADD:
    case TND_NODE_MUL:
        return has_b && is_repeated(a, b) && is_rest_zero(node, 0);
    case TND_NODE_SWIGLU:
    case TND_NODE_GEGLU:
        return has_b && has_same_extents(a, b) && is_rest_zero(node, 1);
    case TND_NODE_SILU:
    case TND_NODE_GELU:
        return node->src[1] == NULL && is_rest_zero(node, 1);
    case TND_NODE_SCALE:
    case TND_NODE_RMS_NORM:
        out->number = float_of(node, 0);
        return node->src[1] == NULL && is_rest_zero(node, 1);
    default:
        return false;
    }
}

static bool read_operation(const struct ggml_tensor *node, int kind, struct tnd_node *out)
{
    out->kind = kind;
    return read_values(node, TANDEM_TYPE_F32, &out->y) &&
           read_values(node->src[0], TANDEM_TYPE_F32, &out->operands[0]) &&
           has_same_extents(&out->y, &out->operands[0]) &&
           (kind == TND_NODE_ROPE ? read_rope(node, out)
                                  : read_rest(node, out) && node->src[2] == NULL);
}

static int kind_of(const struct ggml_tensor *node)
{
    const char *name = tnd_host.ggml_op_desc(node);
    int kind = name == NULL ? TND_NODE_KINDS : TND_NODE_ADD;
    while (kind < TND_NODE_KINDS && strcmp(name, names[kind]) != 0) {
        kind++;
    }
    return kind;
}

bool tnd_node_read(const struct ggml_tensor *node, struct tnd_node *out)
{
    memset(out, 0, sizeof(*out));
    if (!tnd_product_is_named(tnd_host.ggml_op_name(node->op))) {
        int kind = kind_of(node);
        return kind < TND_NODE_KINDS && read_operation(node, kind, out);
    }
    out->kind = TND_NODE_PRODUCT;
    return tnd_product_read(node, &out->product) && read_values(node, TANDEM_TYPE_F32, &out->y) &&
           read_values(node->src[1], TANDEM_TYPE_F32, &out->operands[0]);
}

bool tnd_node_is_view(const struct ggml_tensor *node)
{
    static const char *const views[] = {"NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE"};
    const char *name = tnd_host.ggml_op_name(node->op);
    for (size_t i = 0; name != NULL && i < sizeof(views) / sizeof(views[0]); i++) {
        if (strcmp(name, views[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool tnd_node_is_inside(const struct ggml_tensor *node, const struct tnd_node *known)
{
    if (known->kind == TND_NODE_PRODUCT) {
        return tnd_product_is_inside(node, &known->product);
    }
    bool is_inside = tnd_lies_in_buffer(node, node->data, tnd_node_values_bytes(&known->y));
    for (int i = 0; i < TND_NODE_OPERANDS && node->src[i] != NULL; i++) {
        const struct tnd_node_values *operand = &known->operands[i];
        is_inside = is_inside &&
                    tnd_lies_in_buffer(node->src[i], operand->data, tnd_node_values_bytes(operand));
    }
    return is_inside;
}

/* Follows the first operand; for binary operations also the second one, if the first leads to no
 * product: one of two operands is often older. Chains of nodes are short. */
const struct ggml_tensor *tnd_node_find_product(const struct ggml_tensor *node)
{
    const struct ggml_tensor *others[STEPS_TO_PRODUCT];
    int n_others = 0;
    for (int i = 0; i < STEPS_TO_PRODUCT && node != NULL; i++) {
        struct tnd_node known;
        if (tnd_product_is_named(tnd_host.ggml_op_name(node->op))) {
            return node;
        }
        bool is_read = tnd_node_read(node, &known);
        if (is_read && known.kind != TND_NODE_ROPE && node->src[1] != NULL) {
            others[n_others++] = node->src[1];
        }
        node = is_read || tnd_node_is_view(node) ? node->src[0] : NULL;
        if (node == NULL && n_others > 0) {
            node = others[--n_others];
        }
    }
    return NULL;
}
