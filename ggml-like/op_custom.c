/* SPDX-License-Identifier: MIT
 * Nodes that a user's callback computes: builder and reference. */
#include "base/tnd_status.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"

tandem_tensor *tandem_custom(tandem_context *context, int n_dims, const int64_t *ne,
                             tandem_tensor *const *src, int n_src, int64_t n_items,
                             tandem_custom_fn fn, void *user)
{
    int64_t extents[TANDEM_MAX_DIMS];
    if (context == NULL || context->error.status != TANDEM_OK) {
        return NULL;
    }
    if (src == NULL || n_src < 1 || n_src > TANDEM_MAX_SRC) {
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, "custom", n_src, TANDEM_MAX_SRC,
                              "custom: n_src is %d, expected 1 to %d operands", n_src,
                              TANDEM_MAX_SRC);
    }
    for (int i = 0; i < n_src; i++) {
        static const char *const roles[TANDEM_MAX_SRC] = {"src[0]", "src[1]", "src[2]", "src[3]",
                                                          "src[4]"};
        if (!tnd_build_ready(context, TANDEM_OP_CUSTOM, roles[i], src[i])) {
            return NULL;
        }
    }
    if (fn == NULL || n_items < 0) {
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, "custom", n_items, 0,
                              fn == NULL ? "custom: the callback is NULL (n_items is %lld)"
                                         : "custom: n_items is %lld, expected 0 or more",
                              (long long)n_items);
    }
    if (!tnd_build_extents(context, "custom", TANDEM_TYPE_F32, n_dims, ne, extents)) {
        return NULL;
    }
    tandem_tensor *node =
        tnd_build_node(context, TANDEM_OP_CUSTOM, TANDEM_TYPE_F32, extents, src[0], NULL);
    if (node != NULL) {
        for (int i = 0; i < n_src; i++) {
            node->src[i] = src[i];
        }
        node->n_src = n_src;
        node->params.custom.fn = fn;
        node->params.custom.user = user;
        node->params.custom.n_items = n_items;
    }
    return node;
}

enum tandem_status tnd_ref_custom(struct tandem_tensor *node, struct tandem_error *error)
{
    const enum tandem_status status =
        node->params.custom.fn(node->params.custom.user, node, 0, node->params.custom.n_items);
    if (status != TANDEM_OK) {
        return tnd_error_set(error, status, node->name, 0, 0, "custom: the callback returned %s",
                             tandem_status_name(status));
    }
    return TANDEM_OK;
}
