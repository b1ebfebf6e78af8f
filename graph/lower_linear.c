/* SPDX-License-Identifier: MIT
 * F32 products as tandem_mul_mat: the right operand becomes weights of N rows of K values. A
 * computed matrix that would be transposed for only a few rows is read in place instead. */
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

/* Whether a tensor can be a view with these strides: dense rows, positive strides. */
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
    int64_t ne[3];
    size_t nb[2];
    extents_of(view, ne, nb);
    return tnd_lower_constant(l, value, view, 3, ne, out);
}

enum tandem_status tnd_lower_matrix(struct tnd_lowering *l, int value, struct tnd_operand *operand,
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

/* ---- few rows ---- */

/* Transposing a matrix costs more than multiplying it by this many rows. */
enum { FEW_ROWS = 8 };

/* Whether a computed matrix {batch, K, N} has dense rows of N but not of K, and few rows use it. */
static bool has_few_rows(const struct tnd_operand *w, int64_t rows)
{
    const struct tnd_view turned = swapped(&w->view);
    return rows <= FEW_ROWS && w->src >= 0 && w->view.strides[2] == 1 && !has_dense_rows(&turned);
}

/* Prints the source for devices: sums of products, operands read in place. */
static void print_few(struct tnd_lowering *l, const struct tnd_work *job, tandem_tensor *node)
{
    const struct tnd_operand *x = &job->in[0];
    const struct tnd_operand *w = &job->in[1];
    const int in[] = {0, 1};
    struct tnd_fuse fuse = {.n_inputs = 0};
    const struct tnd_fuse_space space = {
        .shape = {4,
                  {job->shape.dims[0], job->shape.dims[1], job->shape.dims[2],
                   x->view.shape.dims[2]}},
        .strides = {{x->view.strides[0], x->view.strides[1], 0, x->view.strides[2]},
                    {w->view.strides[0], 0, 1, w->view.strides[1]}}};
    const struct tnd_fuse_printed printed = {
        .fuse = &fuse,
        .space = &space,
        .in = {{.buffer = x->src, .offset = x->offset}, {.buffer = w->src, .offset = w->offset}},
        .n_buffers = node->n_src,
        .n_reduced = 1,
        .reduce = TANDEM_REDUCE_SUM};
    if (x->src < 0) {
        return;
    }
    (void)tnd_fuse_input(&fuse, TANDEM_DTYPE_F32);
    (void)tnd_fuse_input(&fuse, TANDEM_DTYPE_F32);
    (void)tnd_fuse_step(&fuse, TND_NET_BINARY, TANDEM_BINARY_MUL, TANDEM_DTYPE_F32, in, 2);
    tnd_lower_print(l, &printed, node);
}

static enum tandem_status lower_few(struct tnd_lowering *l, const struct tnd_net_node *node,
                                    const struct tnd_operand *x, const struct tnd_operand *w,
                                    tandem_tensor *const *tensors, int n)
{
    struct tnd_work *job = tnd_lower_job(l, 2);
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    job->op = node->op;
    job->params = &node->params;
    job->type = TANDEM_DTYPE_F32;
    job->shape = tnd_net_value(l->net, node->output)->shape;
    job->in[0] = *x;
    job->in[1] = *w;
    job->n_items =
        job->shape.dims[0] * ((job->shape.dims[2] + TND_FEW_COLUMNS - 1) / TND_FEW_COLUMNS);
    job->kind = TND_WORK_FEW_ROWS;
    tandem_tensor **made = &l->values[node->output].tensors[TND_LAYOUT_PLAIN];
    TND_TRY(tnd_lower_emit(l, job, tensors, n, made));
    print_few(l, job, *made);
    return TANDEM_OK;
}

/* ---- lowering ---- */

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
    if (a->type != TANDEM_DTYPE_F32 || tnd_dims_values(shape) == 0 || a->shape.dims[2] == 0) {
        return TANDEM_OK;
    }
    TND_TRY(operand(l, node->inputs[0], &x, tensors, &n));
    TND_TRY(operand(l, node->inputs[1], &w, tensors, &n));
    *done = true;
    if (has_few_rows(&w, shape->dims[1])) {
        l->values[a->base].is_read = true; /* relevant for constants */
        return lower_few(l, node, &x, &w, tensors, n);
    }
    w.view = swapped(&w.view);
    if (w.view.strides[0] == 0) {
        w.view.shape.dims[0] = 1; /* the same weights for each matrix */
    }
    TND_TRY(
        tnd_lower_matrix(l, node->inputs[0], &x, x.src < 0 ? NULL : tensors[x.src], &matrices[0]));
    TND_TRY(
        tnd_lower_matrix(l, node->inputs[1], &w, w.src < 0 ? NULL : tensors[w.src], &matrices[1]));
    l->values[node->output].tensors[TND_LAYOUT_PLAIN] =
        tandem_mul_mat(l->out->context, matrices[1], matrices[0]);
    return tandem_context_status(l->out->context, l->error);
}
