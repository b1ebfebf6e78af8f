/* SPDX-License-Identifier: MIT
 * Constants of nets for graphs: read, reordered, packed; once for all nets of a store. */
#include <string.h>

#include "base/tnd_assert.h"
#include "graph/lower_internal.h"

static enum tandem_status copy_values(const void *how, const struct tnd_view *in, int n_in,
                                      struct tnd_array *out, struct tandem_error *error)
{
    const struct tnd_kernel_call copy = {.in = in, .n_in = n_in, .out = out, .error = error};
    (void)how;
    return tnd_kernel_copy(&copy);
}

struct tnd_view tnd_lower_known(const struct tnd_lowering *l, int value)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    const struct tnd_array *known = l->values[v->base].known;
    struct tnd_view view = {.type = v->type, .shape = v->shape};
    TND_ASSERT(known != NULL);
    memcpy(view.strides, v->strides, sizeof(view.strides));
    view.data = known->data == NULL
                    ? NULL
                    : (const char *)known->data + v->offset * (int64_t)tandem_dtype_bytes(v->type);
    return view;
}

enum tandem_status tnd_lower_fill(const struct tnd_lowering *l, int value)
{
    return tnd_array_fill(tnd_lower_value(l, value)->known) ? TANDEM_OK : tnd_lower_no_memory(l);
}

/* Derives a reordered copy of a constant, kept by the store. */
static enum tandem_status derive_copy(struct tnd_lowering *l, int value,
                                      const struct tnd_view *view, struct tnd_array **out)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    const struct tnd_store_operand in = {
        .array = l->values[v->base].known, .view = *view, .offset = v->offset};
    const struct tnd_store_recipe recipe = {
        .make = copy_values, .in = &in, .n_in = 1, .type = view->type, .shape = view->shape};
    TND_TRY(tnd_store_derive(l->net->store, &recipe, out, l->error));
    if (!tnd_lowered_keep(l->out, *out)) {
        return tnd_lower_no_memory(l);
    }
    return tnd_array_fill(*out) ? TANDEM_OK : tnd_lower_no_memory(l);
}

/* The array with a view's values in row-major order, and their offset in it. */
static enum tandem_status keep_view(struct tnd_lowering *l, int value, const struct tnd_view *view,
                                    const struct tnd_array **out, int64_t *offset)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    struct tnd_lower_value *base = &l->values[v->base];
    struct tnd_array *array = NULL;
    if (tnd_view_has_no_gaps(view)) {
        base->is_read = true;
        *out = base->known;
        *offset = v->offset;
        return tnd_lower_fill(l, value);
    }
    if (tnd_store_has(l->net->store, base->known)) {
        TND_TRY(derive_copy(l, value, view, &array));
    } else {
        array = tnd_lower_array(l, view->type, &view->shape);
        if (array == NULL) {
            return tnd_lower_no_memory(l);
        }
        TND_TRY(copy_values(NULL, view, 1, array, l->error));
    }
    *out = array;
    *offset = 0;
    return TANDEM_OK;
}

enum tandem_status tnd_lower_keep(struct tnd_lowering *l, int value, const struct tnd_view *view,
                                  const void **out)
{
    const struct tnd_array *array;
    int64_t offset;
    TND_TRY(keep_view(l, value, view, &array, &offset));
    *out = (const char *)array->data + offset * (int64_t)tandem_dtype_bytes(array->type);
    return TANDEM_OK;
}

enum tandem_status tnd_lower_constant(struct tnd_lowering *l, int value,
                                      const struct tnd_view *view, int n_dims, const int64_t *ne,
                                      tandem_tensor **out)
{
    const struct tnd_array *array;
    int64_t offset;
    TND_TRY(keep_view(l, value, view, &array, &offset));
    const float *data = (const float *)array->data + offset;
    *out = tnd_store_has(l->net->store, array)
               ? tnd_store_tensor((struct tnd_array *)(uintptr_t)array, offset, n_dims, ne)
               : tandem_tensor_borrow_const(l->out->context, TANDEM_TYPE_F32, n_dims, ne, data,
                                            (size_t)(array->n - offset) * sizeof(float));
    return *out != NULL ? TANDEM_OK : tnd_lower_no_memory(l);
}

struct tnd_array *tnd_lower_shared(struct tnd_lowering *l, int value, const struct tnd_view *view,
                                   enum tandem_dtype type, const struct tnd_dims *shape,
                                   const void *how, size_t n_how, bool *is_new)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    const struct tnd_store_operand in = {
        .array = l->values[v->base].known, .view = *view, .offset = v->offset};
    const struct tnd_store_recipe recipe = {
        .how = how, .n_how = n_how, .in = &in, .n_in = 1, .type = type, .shape = *shape};
    *is_new = true;
    if (!tnd_store_has(l->net->store, in.array)) {
        return tnd_lower_array(l, type, shape);
    }
    struct tnd_array *array = tnd_store_find(l->net->store, &recipe, is_new);
    return array != NULL && tnd_lowered_keep(l->out, array) &&
                   (!*is_new || tnd_array_fill(in.array))
               ? array
               : NULL;
}
