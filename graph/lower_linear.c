/* SPDX-License-Identifier: MIT
 * Products of F32 as tandem_mul_mat: the right operand becomes weights of N rows of K values. */
#include <string.h>

#include "graph/lower_internal.h"

static struct tnd_view swapped(const struct tnd_view *view)
{
    struct tnd_view out = *view;
    out.shape.dims[1] = view->shape.dims[2];
    out.shape.dims[2] = view->shape.dims[1];
    out.strides[1] = view->strides[2];
    out.strides[2] = view->strides[1];
    return out;
}

/* Whether a tensor can be a view with these strides: dense rows, steps forward. */
static bool has_dense_rows(const struct tnd_view *view)
{
    if (view->shape.dims[2] > 1 && view->strides[2] != 1) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        if (view->shape.dims[i] > 1 && view->strides[i] <= 0) {
            return false;
        }
    }
    return true;
}

static void extents_of(const struct tnd_view *view, int64_t ne[3], size_t nb[2])
{
    for (int i = 0; i < 3; i++) {
        ne[i] = view->shape.dims[2 - i];
    }
    const size_t row = view->shape.dims[1] > 1 ? (size_t)view->strides[1] : (size_t)ne[0];
    nb[0] = row * sizeof(float);
    nb[1] =
        view->shape.dims[0] > 1 ? (size_t)view->strides[0] * sizeof(float) : nb[0] * (size_t)ne[1];
}

static enum tandem_status constant_matrix(struct tnd_lowering *l, int value,
                                          const struct tnd_view *view, tandem_tensor **out)
{
    const void *data;
    int64_t ne[3];
    size_t nb[2];
    TND_TRY(tnd_lower_keep(l, value, view, &data));
    extents_of(view, ne, nb);
    *out = tandem_tensor_borrow_const(l->out->context, TANDEM_TYPE_F32, 3, ne, data,
                                      (size_t)(ne[0] * ne[1] * ne[2]) * sizeof(float));
    return TANDEM_OK;
}

/* An operand {batch, rows, K} as a tensor {K, rows, batch}. */
static enum tandem_status matrix(struct tnd_lowering *l, int value, struct tnd_operand *operand,
                                 tandem_tensor *tensor, tandem_tensor **out)
{
    int64_t ne[3];
    size_t nb[2];
    if (operand->src < 0) {
        return constant_matrix(l, value, &operand->view, out);
    }
    if (!has_dense_rows(&operand->view)) {
        TND_TRY(tnd_lower_copy(l, operand, tensor, TND_LAYOUT_PLAIN, &tensor));
        tnd_dims_strides(&operand->view.shape, operand->view.strides);
        operand->offset = 0;
    }
    extents_of(&operand->view, ne, nb);
    *out = tandem_view(l->out->context, tensor, 3, ne, nb, (size_t)operand->offset * sizeof(float));
    return TANDEM_OK;
}

static enum tandem_status operand(struct tnd_lowering *l, int value, struct tnd_operand *out,
                                  tandem_tensor **tensors, int *n)
{
    if (tnd_lower_value(l, value)->known != NULL) {
        *out = (struct tnd_operand){.view = tnd_lower_known(l, value), .src = -1};
        return TANDEM_OK;
    }
    return tnd_lower_operand(l, value, false, out, tensors, n);
}

enum tandem_status tnd_lower_contract(struct tnd_lowering *l, const struct tnd_net_node *node,
                                      bool *done)
{
    const struct tnd_dims *shape = &tnd_net_value(l->net, node->output)->shape;
    const struct tnd_net_value *a = tnd_net_value(l->net, node->inputs[0]);
    struct tnd_operand x;
    struct tnd_operand w;
    tandem_tensor *tensors[2] = {NULL, NULL};
    tandem_tensor *matrices[2];
    int n = 0;
    if (a->type != TND_DTYPE_F32 || tnd_dims_values(shape) == 0 || a->shape.dims[2] == 0) {
        return TANDEM_OK;
    }
    TND_TRY(operand(l, node->inputs[0], &x, tensors, &n));
    TND_TRY(operand(l, node->inputs[1], &w, tensors, &n));
    w.view = swapped(&w.view);
    if (w.view.strides[0] == 0) {
        w.view.shape.dims[0] = 1; /* the same weights for each matrix */
    }
    TND_TRY(matrix(l, node->inputs[0], &x, x.src < 0 ? NULL : tensors[x.src], &matrices[0]));
    TND_TRY(matrix(l, node->inputs[1], &w, w.src < 0 ? NULL : tensors[w.src], &matrices[1]));
    l->values[node->output].tensors[TND_LAYOUT_PLAIN] =
        tandem_mul_mat(l->out->context, matrices[1], matrices[0]);
    *done = true;
    return tandem_context_status(l->out->context, l->error);
}
