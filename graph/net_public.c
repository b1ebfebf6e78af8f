/* SPDX-License-Identifier: MIT
 * The public interface of nets: handles, and builders that check every argument. */
#include "graph/net_public.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/text.h"

bool tnd_dims_from(int n_dims, const int64_t *dims, struct tnd_dims *out)
{
    if (n_dims < 0 || n_dims > TANDEM_NET_MAX_DIMS || (dims == NULL && n_dims > 0)) {
        return false;
    }
    *out = (struct tnd_dims){.n = n_dims};
    for (int i = 0; i < n_dims; i++) {
        if (dims[i] < 0) {
            return false;
        }
        out->dims[i] = dims[i];
    }
    return true;
}

struct tandem_net_array tnd_net_array_of(const struct tnd_net *net, int value)
{
    const struct tnd_net_value *v = tnd_net_value(net, value);
    struct tandem_net_array out = {.name = "", .type = v->type, .n_dims = v->shape.n, .data = NULL};
    memcpy(out.dims, v->shape.dims, sizeof(out.dims));
    out.bytes = (size_t)tnd_dims_values(&v->shape) * tandem_dtype_bytes(v->type);
    return out;
}

/* ---- the handle ---- */

enum tandem_status tandem_net_new(tandem_net **out_net, struct tandem_error *error)
{
    TND_REQUIRE(out_net, "net_new", error);
    tandem_net *net = tnd_calloc(1, sizeof(*net));
    struct tnd_net *inner = tnd_net_new();
    if (net == NULL || inner == NULL) {
        tnd_free(net);
        tnd_net_free(inner);
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for a net");
    }
    net->net = inner;
    tnd_arena_init(&net->arena, 1 << 12, 0);
    *out_net = net;
    return TANDEM_OK;
}

void tandem_net_free(tandem_net *net)
{
    if (net == NULL) {
        return;
    }
    tnd_net_free(net->net);
    for (int i = 0; i < net->n_known; i++) {
        tnd_array_free(net->known[i]);
    }
    tnd_vector_fini(&net->known_vector);
    tnd_vector_fini(&net->outputs_vector);
    tnd_arena_fini(&net->arena);
    tnd_free(net);
}

static enum tandem_status check_built(const tandem_net *net, const char *call,
                                      struct tandem_error *error)
{
    TND_REQUIRE(net, call, error);
    return net->net != NULL
               ? TANDEM_OK
               : tnd_error_set(error, TANDEM_E_STATE, "net", 0, 0,
                               "%s: the net was lowered, expected one that was not", call);
}

enum tandem_status tandem_net_status(const tandem_net *net, struct tandem_error *error)
{
    TND_TRY(check_built(net, "net_status", error));
    if (net->net->status != TANDEM_OK && error != NULL) {
        *error = net->net->error;
    }
    return net->net->status;
}

void tandem_net_clear_error(tandem_net *net)
{
    if (net != NULL && net->net != NULL && net->net->status != TANDEM_E_MEMORY) {
        net->net->status = TANDEM_OK;
        net->n_outputs = net->net->n_outputs; /* drops the name of an output that failed */
    }
}

bool tandem_net_value(const tandem_net *net, int value, struct tandem_net_array *out)
{
    if (net == NULL || net->net == NULL || out == NULL || value < 0 ||
        value >= net->net->n_values) {
        return false;
    }
    *out = tnd_net_array_of(net->net, value);
    return true;
}

enum tandem_status tandem_net_print(const tandem_net *net, tandem_write_fn write, void *user)
{
    struct tnd_text text = TND_TEXT_INIT;
    enum tandem_status status = write == NULL ? TANDEM_E_ARGUMENT : TANDEM_OK;
    TND_TRY(status);
    TND_TRY(check_built(net, "net_print", NULL));
    tnd_net_print(net->net, &text);
    if (text.failed) {
        status = TANDEM_E_MEMORY;
    } else if (write(user, tnd_text_string(&text), (unsigned long)text.n) != 0) {
        status = TANDEM_E_FILE;
    }
    tnd_text_fini(&text);
    return status;
}

/* ---- arguments ---- */

static int wrong(struct tnd_net *net, const char *call, const char *what, int64_t got)
{
    return tnd_net_fail(net, TANDEM_E_ARGUMENT, "%s: %s is %lld, expected one that there is", call,
                        what, (long long)got);
}

/* The net if a builder may continue with these values, else NULL. */
static struct tnd_net *ready(tandem_net *net, const char *call, const int *values, int n)
{
    if (net == NULL || net->net == NULL || net->net->status != TANDEM_OK) {
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        if (values[i] < 0 || values[i] >= net->net->n_values) {
            (void)wrong(net->net, call, "a value", values[i]);
            return NULL;
        }
    }
    return net->net;
}

/* Checks an axis of a value and makes it non-negative. */
static bool take_axis(struct tnd_net *net, const char *call, int value, int *axis)
{
    const int n = tnd_net_value(net, value)->shape.n;
    if (*axis < -n || *axis >= n) {
        (void)wrong(net, call, "an axis", *axis);
        return false;
    }
    *axis += *axis < 0 ? n : 0;
    return true;
}

/* Checks a list of axes and converts it to a set; empty: all. */
static bool take_axes(struct tnd_net *net, const char *call, int value, const int *axes, int n,
                      unsigned *out)
{
    *out = axes == NULL && n == 0 ? (1U << tnd_net_value(net, value)->shape.n) - 1U : 0;
    if (n < 0 || (axes == NULL && n > 0)) {
        (void)wrong(net, call, "the number of axes", n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        int axis = axes[i];
        if (!take_axis(net, call, value, &axis)) {
            return false;
        }
        *out |= 1U << axis;
    }
    return true;
}

static bool take_kind(struct tnd_net *net, const char *call, unsigned kind, unsigned n)
{
    if (kind >= n) {
        (void)wrong(net, call, "a kind", (int64_t)kind);
    }
    return kind < n;
}

static bool take_shape(struct tnd_net *net, const char *call, int n_dims, const int64_t *dims,
                       struct tnd_dims *out)
{
    const bool is_good = tnd_dims_from(n_dims, dims, out);
    if (!is_good) {
        (void)tnd_net_fail(net, TANDEM_E_ARGUMENT, "%s: %d extents, expected 0 to %d, none below 0",
                           call, n_dims, TANDEM_NET_MAX_DIMS);
    }
    return is_good;
}

/* ---- where values come from and go to ---- */

int tandem_net_input(tandem_net *net, enum tandem_dtype type, int n_dims, const int64_t *dims,
                     const char *name)
{
    struct tnd_net *to = ready(net, "net_input", NULL, 0);
    struct tnd_dims shape;
    if (to == NULL || !take_kind(to, "net_input", (unsigned)type, TND_N_DTYPES) ||
        !take_shape(to, "net_input", n_dims, dims, &shape)) {
        return TANDEM_NET_NONE;
    }
    return tnd_net_input(to, type, &shape, name != NULL ? name : "", NULL);
}

int tandem_net_constant(tandem_net *net, enum tandem_dtype type, int n_dims, const int64_t *dims,
                        const void *data)
{
    struct tnd_net *to = ready(net, "net_constant", NULL, 0);
    struct tnd_dims shape;
    if (to == NULL || !take_kind(to, "net_constant", (unsigned)type, TND_N_DTYPES) ||
        !take_shape(to, "net_constant", n_dims, dims, &shape)) {
        return TANDEM_NET_NONE;
    }
    struct tnd_array *array = tnd_array_new(type, &shape);
    if (array != NULL && array->n > 0 && data == NULL) {
        tnd_array_free(array);
        return tnd_net_fail(to, TANDEM_E_ARGUMENT, "net_constant: data is NULL");
    }
    if (array != NULL && array->n > 0) {
        memcpy(array->data, data, (size_t)array->n * tandem_dtype_bytes(type));
    }
    return tnd_net_constant(to, array);
}

int tandem_net_scalar(tandem_net *net, enum tandem_dtype type, double value)
{
    struct tnd_net *to = ready(net, "net_scalar", NULL, 0);
    if (to == NULL || !take_kind(to, "net_scalar", (unsigned)type, TND_N_DTYPES)) {
        return TANDEM_NET_NONE;
    }
    return tnd_net_scalar(to, type, value);
}

bool tnd_net_name_output(tandem_net *net, const char *name)
{
    const size_t bytes = strlen(name) + 1;
    char *copy = tnd_arena_alloc(&net->arena, bytes, 1);
    if (copy == NULL || tnd_vector_insert(&net->outputs_vector, sizeof(net->outputs[0]),
                                          INT_MAX / 2, net->n_outputs) != TANDEM_OK) {
        return false;
    }
    memcpy(copy, name, bytes);
    net->outputs[net->n_outputs - 1] = copy;
    return true;
}

bool tnd_net_keep(tandem_net *net, struct tnd_array *array)
{
    if (tnd_vector_insert(&net->known_vector, sizeof(net->known[0]), INT_MAX / 2, net->n_known) !=
        TANDEM_OK) {
        tnd_array_free(array);
        return false;
    }
    net->known[net->n_known - 1] = array;
    return true;
}

int tandem_net_output(tandem_net *net, int value, const char *name)
{
    struct tnd_net *to = ready(net, "net_output", &value, 1);
    if (to == NULL) {
        return TANDEM_NET_NONE;
    }
    if (!tnd_net_name_output(net, name != NULL ? name : "")) {
        return tnd_net_fail(to, TANDEM_E_MEMORY, "no memory for the name of an output");
    }
    return tnd_net_output(to, value);
}

/* ---- views ---- */

int tandem_net_permute(tandem_net *net, int value, const int *axes)
{
    struct tnd_net *to = ready(net, "net_permute", &value, 1);
    int order[TANDEM_NET_MAX_DIMS];
    unsigned seen = 0;
    if (to == NULL) {
        return TANDEM_NET_NONE;
    }
    const int n = tnd_net_value(to, value)->shape.n;
    if (axes == NULL && n > 0) {
        return tnd_net_fail(to, TANDEM_E_ARGUMENT, "net_permute: axes is NULL");
    }
    for (int i = 0; i < n; i++) {
        order[i] = axes[i];
        if (!take_axis(to, "net_permute", value, &order[i])) {
            return TANDEM_NET_NONE;
        }
        if (seen >> order[i] & 1) {
            return wrong(to, "net_permute", "an axis given twice", order[i]);
        }
        seen |= 1U << order[i];
    }
    return tnd_net_permute(to, value, order);
}

int tandem_net_reshape(tandem_net *net, int value, int n_dims, const int64_t *dims)
{
    struct tnd_net *to = ready(net, "net_reshape", &value, 1);
    struct tnd_dims shape;
    if (to == NULL || !take_shape(to, "net_reshape", n_dims, dims, &shape)) {
        return TANDEM_NET_NONE;
    }
    return tnd_net_reshape(to, value, &shape);
}

int tandem_net_expand(tandem_net *net, int value, int n_dims, const int64_t *dims)
{
    struct tnd_net *to = ready(net, "net_expand", &value, 1);
    struct tnd_dims shape;
    if (to == NULL || !take_shape(to, "net_expand", n_dims, dims, &shape)) {
        return TANDEM_NET_NONE;
    }
    return tnd_net_expand(to, value, &shape);
}

int tandem_net_slice(tandem_net *net, int value, int axis, int64_t start, int64_t count,
                     int64_t step)
{
    struct tnd_net *to = ready(net, "net_slice", &value, 1);
    if (to == NULL || !take_axis(to, "net_slice", value, &axis)) {
        return TANDEM_NET_NONE;
    }
    const int64_t n = tnd_net_value(to, value)->shape.dims[axis];
    const bool is_inside = count >= 0 && start >= 0 && start < n;
    /* by division: a product could overflow */
    const int64_t room = !is_inside ? 0
                         : step > 0 ? (n - 1 - start) / step + 1
                         : step < 0 ? (step < -start ? 0 : start / -step) + 1
                                    : 0;
    if (step == 0 || count < 0 || (count > 0 && count > room)) {
        return tnd_net_fail(to, TANDEM_E_ARGUMENT,
                            "net_slice: %lld values from %lld by %lld of %lld, expected fewer",
                            (long long)count, (long long)start, (long long)step, (long long)n);
    }
    return tnd_net_slice(to, value, axis, start, count, step);
}

int tandem_net_reindex(tandem_net *net, int value, int n_dims, const int64_t *dims,
                       tandem_reindex_fn fn, void *user, const char *name)
{
    struct tnd_net *to = ready(net, "net_reindex", &value, 1);
    struct tnd_dims shape;
    if (to == NULL || !take_shape(to, "net_reindex", n_dims, dims, &shape)) {
        return TANDEM_NET_NONE;
    }
    if (fn == NULL) {
        return tnd_net_fail(to, TANDEM_E_ARGUMENT, "net_reindex: the function is NULL");
    }
    return tnd_net_reindex(to, value, &shape, fn, user, name != NULL ? name : "");
}

/* ---- value by value ---- */

int tandem_net_cast(tandem_net *net, int value, enum tandem_dtype type)
{
    struct tnd_net *to = ready(net, "net_cast", &value, 1);
    if (to == NULL || !take_kind(to, "net_cast", (unsigned)type, TND_N_DTYPES)) {
        return TANDEM_NET_NONE;
    }
    return tnd_net_cast(to, value, type);
}

int tandem_net_unary(tandem_net *net, enum tandem_unary kind, int value)
{
    struct tnd_net *to = ready(net, "net_unary", &value, 1);
    return to == NULL || !take_kind(to, "net_unary", (unsigned)kind, TND_N_UNARY)
               ? TANDEM_NET_NONE
               : tnd_net_unary(to, kind, value);
}

int tandem_net_binary(tandem_net *net, enum tandem_binary kind, int a, int b)
{
    const int both[] = {a, b};
    struct tnd_net *to = ready(net, "net_binary", both, 2);
    return to == NULL || !take_kind(to, "net_binary", (unsigned)kind, TND_N_BINARY)
               ? TANDEM_NET_NONE
               : tnd_net_binary(to, kind, a, b);
}

int tandem_net_select(tandem_net *net, int condition, int a, int b)
{
    const int all[] = {condition, a, b};
    struct tnd_net *to = ready(net, "net_select", all, 3);
    return to == NULL ? TANDEM_NET_NONE : tnd_net_select(to, condition, a, b);
}

/* ---- along axes ---- */

int tandem_net_reduce(tandem_net *net, enum tandem_reduce kind, int value, const int *axes,
                      int n_axes, bool keeps)
{
    struct tnd_net *to = ready(net, "net_reduce", &value, 1);
    unsigned set;
    if (to == NULL || !take_kind(to, "net_reduce", (unsigned)kind, TND_N_REDUCE) ||
        !take_axes(to, "net_reduce", value, axes, n_axes, &set)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_dims from = tnd_net_value(to, value)->shape;
    const int whole = tnd_net_reduce(to, kind, value, set);
    struct tnd_dims shape = {.n = 0};
    for (int i = 0; i < from.n; i++) {
        if ((set >> i & 1) == 0) {
            shape.dims[shape.n++] = from.dims[i];
        }
    }
    return keeps ? whole : tnd_net_reshape(to, whole, &shape);
}

int tandem_net_arg_reduce(tandem_net *net, bool is_max, int value, int axis)
{
    struct tnd_net *to = ready(net, "net_arg_reduce", &value, 1);
    return to == NULL || !take_axis(to, "net_arg_reduce", value, &axis)
               ? TANDEM_NET_NONE
               : tnd_net_arg_reduce(to, is_max, value, axis, false);
}

int tandem_net_scan(tandem_net *net, int value, int axis)
{
    struct tnd_net *to = ready(net, "net_scan", &value, 1);
    return to == NULL || !take_axis(to, "net_scan", value, &axis)
               ? TANDEM_NET_NONE
               : tnd_net_scan(to, value, axis, false, false);
}

int tandem_net_arg_sort(tandem_net *net, int value, int axis, bool largest_first)
{
    struct tnd_net *to = ready(net, "net_arg_sort", &value, 1);
    return to == NULL || !take_axis(to, "net_arg_sort", value, &axis)
               ? TANDEM_NET_NONE
               : tnd_net_arg_sort(to, value, axis, largest_first);
}

int tandem_net_softmax(tandem_net *net, int value, int axis)
{
    struct tnd_net *to = ready(net, "net_softmax", &value, 1);
    return to == NULL || !take_axis(to, "net_softmax", value, &axis)
               ? TANDEM_NET_NONE
               : tnd_net_softmax(to, value, axis);
}

int tandem_net_norm(tandem_net *net, enum tandem_norm kind, int value, const int *axes, int n_axes,
                    double epsilon)
{
    struct tnd_net *to = ready(net, "net_norm", &value, 1);
    unsigned set;
    if (to == NULL || !take_kind(to, "net_norm", (unsigned)kind, TND_N_NORM) ||
        !take_axes(to, "net_norm", value, axes, n_axes, &set)) {
        return TANDEM_NET_NONE;
    }
    return tnd_net_norm(to, kind, value, set, epsilon);
}

/* ---- products and windows ---- */

int tandem_net_matmul(tandem_net *net, int a, int b)
{
    const int both[] = {a, b};
    struct tnd_net *to = ready(net, "net_matmul", both, 2);
    return to == NULL ? TANDEM_NET_NONE : tnd_net_matmul(to, a, b);
}

int tandem_net_attention(tandem_net *net, int q, int k, int v, int mask, double scale)
{
    const int all[] = {q, k, v, mask};
    struct tnd_net *to = ready(net, "net_attention", all, mask == TANDEM_NET_NONE ? 3 : 4);
    return to == NULL ? TANDEM_NET_NONE : tnd_net_attention(to, q, k, v, mask, scale);
}

/* Checks a window over the dimensions after the first two of `x`; a convolution's has the extents
 * of its weights `w`. */
static bool take_window(struct tnd_net *net, const char *call, const struct tandem_window *given,
                        int x, int w, struct tnd_window *out)
{
    struct tandem_window window = TANDEM_WINDOW_INIT;
    struct tandem_error error;
    const struct tnd_dims *shape = &tnd_net_value(net, x)->shape;
    const struct tnd_dims *weights = w == TANDEM_NET_NONE ? shape : &tnd_net_value(net, w)->shape;
    if (tnd_options_read(given, "tandem_window", &window, sizeof(window), &error) != TANDEM_OK) {
        (void)tnd_net_fail(net, error.status, "%s: %.150s", call, error.text);
        return false;
    }
    if (shape->n < 3 || shape->n > 2 + TANDEM_NET_MAX_WINDOW || weights->n != shape->n) {
        char text[160];
        (void)tnd_net_fail(net, TANDEM_E_SHAPE, "%s: operand of %s, expected 3 to 5 dimensions",
                           call, tnd_dims_text(shape->n < 3 ? shape : weights, text));
        return false;
    }
    *out = (struct tnd_window){.n = shape->n - 2, .groups = window.groups == 0 ? 1 : window.groups};
    for (int i = 0; i < out->n; i++) {
        out->extent[i] = w == TANDEM_NET_NONE ? window.extent[i] : weights->dims[2 + i];
        out->stride[i] = window.stride[i] == 0 ? 1 : window.stride[i];
        out->dilation[i] = window.dilation[i] == 0 ? 1 : window.dilation[i];
        out->begin[i] = window.before[i];
        out->end[i] = window.after[i];
    }
    return true;
}

int tandem_net_conv(tandem_net *net, int x, int w, const struct tandem_window *window)
{
    const int both[] = {x, w};
    struct tnd_net *to = ready(net, "net_conv", both, 2);
    struct tnd_window inner;
    return to == NULL || !take_window(to, "net_conv", window, x, w, &inner)
               ? TANDEM_NET_NONE
               : tnd_net_conv(to, x, w, &inner);
}

int tandem_net_pool(tandem_net *net, enum tandem_pool kind, int x,
                    const struct tandem_window *window)
{
    struct tnd_net *to = ready(net, "net_pool", &x, 1);
    struct tnd_window inner;
    return to == NULL || !take_kind(to, "net_pool", (unsigned)kind, TND_N_POOL) ||
                   !take_window(to, "net_pool", window, x, TANDEM_NET_NONE, &inner)
               ? TANDEM_NET_NONE
               : tnd_net_pool(to, kind, x, &inner);
}

/* ---- moving values ---- */

int tandem_net_concat(tandem_net *net, const int *values, int n, int axis)
{
    struct tnd_net *to = ready(net, "net_concat", values, values == NULL ? 0 : n);
    if (to == NULL) {
        return TANDEM_NET_NONE;
    }
    if (values == NULL || n < 1) {
        return wrong(to, "net_concat", "the number of values", n);
    }
    return !take_axis(to, "net_concat", values[0], &axis) ? TANDEM_NET_NONE
                                                          : tnd_net_concat(to, values, n, axis);
}

int tandem_net_pad(tandem_net *net, enum tandem_pad mode, int value, const int64_t *before,
                   const int64_t *after, int constant)
{
    const int both[] = {value, constant};
    const bool has_constant = mode == TANDEM_PAD_CONSTANT;
    struct tnd_net *to = ready(net, "net_pad", both, has_constant ? 2 : 1);
    if (to == NULL || !take_kind(to, "net_pad", (unsigned)mode, TND_N_PAD)) {
        return TANDEM_NET_NONE;
    }
    if (before == NULL || after == NULL) {
        return tnd_net_fail(to, TANDEM_E_ARGUMENT, "net_pad: places are NULL");
    }
    if (has_constant && tnd_dims_values(&tnd_net_value(to, constant)->shape) != 1) {
        return tnd_net_fail(to, TANDEM_E_SHAPE, "net_pad: the constant is not one value");
    }
    return tnd_net_pad(to, mode, value, before, after, constant);
}

int tandem_net_gather(tandem_net *net, int value, int indices, int axis)
{
    const int both[] = {value, indices};
    struct tnd_net *to = ready(net, "net_gather", both, 2);
    return to == NULL || !take_axis(to, "net_gather", value, &axis)
               ? TANDEM_NET_NONE
               : tnd_net_gather(to, value, indices, axis);
}

int tandem_net_gather_elements(tandem_net *net, int value, int indices, int axis)
{
    const int both[] = {value, indices};
    struct tnd_net *to = ready(net, "net_gather_elements", both, 2);
    return to == NULL || !take_axis(to, "net_gather_elements", value, &axis)
               ? TANDEM_NET_NONE
               : tnd_net_gather_elements(to, value, indices, axis);
}

int tandem_net_scatter_elements(tandem_net *net, enum tandem_scatter kind, int value, int indices,
                                int updates, int axis)
{
    const int all[] = {value, indices, updates};
    struct tnd_net *to = ready(net, "net_scatter_elements", all, 3);
    return to == NULL || !take_kind(to, "net_scatter_elements", (unsigned)kind, TND_N_SCATTER) ||
                   !take_axis(to, "net_scatter_elements", value, &axis)
               ? TANDEM_NET_NONE
               : tnd_net_scatter_elements(to, kind, value, indices, updates, axis);
}
