/* SPDX-License-Identifier: MIT
 * Attributes and operands, for the builders of operators. */
#include "formats/onnx_op.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/small_float.h"
#include "base/text.h"
#include "base/tnd_assert.h"

#define MAX_COUNTED (1 << 24) /* bounds an extent when another one is 0 */

int tnd_onnx_refuse(struct tnd_onnx_call *call, const char *format, ...)
{
    char text[sizeof(call->net->error.text)];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return tnd_net_fail(call->net, TANDEM_E_UNSUPPORTED_BUILD, "%s", text);
}

/* " (float32 2x3, int64 4)": types and shapes of the operands, as far as they fit. */
static void operands_text(const struct tnd_onnx_call *call, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < call->n_in && at + 1 < size; i++) {
        char shape[160];
        const bool is_there = call->in[i] >= 0;
        (void)snprintf(shape, sizeof(shape),
                       call->in[i] == TANDEM_NET_NONE ? "none" : "a sequence");
        if (is_there) {
            (void)tnd_dims_text(tnd_onnx_shape_of(call, call->in[i]), shape);
        }
        const int n =
            snprintf(out + at, size - at, "%s%s%s%s", i > 0 ? ", " : " (",
                     is_there ? tandem_dtype_name(tnd_onnx_type_of(call, call->in[i])) : "",
                     is_there ? " " : "", shape);
        at += n > 0 ? (size_t)n : 0;
    }
    if (at > 0 && at + 1 < size) {
        (void)snprintf(out + at, size - at, ")");
    } else if (at > 0) {
        memcpy(out + size - 5, "...)", 5);
    }
}

void tnd_onnx_name_failure(struct tnd_onnx_call *call)
{
    struct tandem_error *error = &call->net->error;
    const struct tnd_onnx_node *it = call->node;
    const bool has_name = it->name[0] != '\0';
    char text[sizeof(error->text)];
    char operands[80];
    memcpy(text, error->text, sizeof(text));
    operands_text(call, operands, sizeof(operands));
    const int n = snprintf(error->text, sizeof(error->text),
                           "%.40s%s%.60s of opset %lld, %s %.60s: ", it->domain,
                           it->domain[0] != '\0' ? "." : "", it->op, (long long)call->opset,
                           has_name ? "node" : "which makes",
                           has_name            ? it->name
                           : it->n_outputs > 0 ? it->outputs[0]
                                               : "nothing");
    const size_t left = sizeof(error->text) - (size_t)n;
    const bool has_room = strlen(text) + strlen(operands) < left;
    (void)snprintf(error->text + n, left, "%.*s%s", (int)left - 1, text, has_room ? operands : "");
}

/* ---- attributes ---- */

static const struct tnd_onnx_attribute *find(const struct tnd_onnx_call *call, const char *name,
                                             int *at)
{
    for (int i = 0; i < call->node->n_attributes; i++) {
        if (strcmp(call->node->attributes[i].name, name) == 0) {
            *at = i;
            return &call->node->attributes[i];
        }
    }
    return NULL;
}

bool tnd_onnx_has(const struct tnd_onnx_call *call, const char *name)
{
    int at;
    return find(call, name, &at) != NULL;
}

/* An attribute, marked as read; NULL: absent, or of another type. */
static const struct tnd_onnx_attribute *take(struct tnd_onnx_call *call, const char *name, int type)
{
    int at;
    const struct tnd_onnx_attribute *attribute = find(call, name, &at);
    if (attribute == NULL) {
        return NULL;
    }
    if (at < 64) {
        call->were_read |= (uint64_t)1 << at;
    }
    if (attribute->type != type || attribute->reference[0] != '\0') {
        (void)tnd_onnx_refuse(call, "attribute %s has type %d, expected %d", name, attribute->type,
                              type);
        return NULL;
    }
    return attribute;
}

void tnd_onnx_pass_over(struct tnd_onnx_call *call, const char *name)
{
    int at;
    if (find(call, name, &at) != NULL && at < 64) {
        call->were_read |= (uint64_t)1 << at;
    }
}

int64_t tnd_onnx_int(struct tnd_onnx_call *call, const char *name, int64_t otherwise)
{
    const struct tnd_onnx_attribute *found = take(call, name, TND_ONNX_ATTRIBUTE_I64);
    return found != NULL ? found->i : otherwise;
}

float tnd_onnx_float(struct tnd_onnx_call *call, const char *name, float otherwise)
{
    const struct tnd_onnx_attribute *found = take(call, name, TND_ONNX_ATTRIBUTE_F32);
    return found != NULL ? found->f : otherwise;
}

const char *tnd_onnx_word(struct tnd_onnx_call *call, const char *name, const char *otherwise)
{
    const struct tnd_onnx_attribute *found = take(call, name, TND_ONNX_ATTRIBUTE_STRING);
    if (found == NULL) {
        return otherwise;
    }
    char *copy = tnd_arena_alloc(&call->net->arena, found->s.n + 1, 1);
    if (copy == NULL) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for attribute %s", name);
        return otherwise;
    }
    if (found->s.n > 0) {
        memcpy(copy, found->s.bytes, found->s.n);
    }
    copy[found->s.n] = '\0';
    return copy;
}

const int64_t *tnd_onnx_ints(struct tnd_onnx_call *call, const char *name, int *n)
{
    const struct tnd_onnx_attribute *found = take(call, name, TND_ONNX_ATTRIBUTE_I64S);
    *n = found != NULL ? found->n : 0;
    return found != NULL ? found->ints : NULL;
}

const float *tnd_onnx_floats(struct tnd_onnx_call *call, const char *name, int *n)
{
    const struct tnd_onnx_attribute *found = take(call, name, TND_ONNX_ATTRIBUTE_F32S);
    *n = found != NULL ? found->n : 0;
    return found != NULL ? found->floats : NULL;
}

const struct tnd_onnx_string *tnd_onnx_strings(struct tnd_onnx_call *call, const char *name, int *n)
{
    const struct tnd_onnx_attribute *found = take(call, name, TND_ONNX_ATTRIBUTE_STRINGS);
    *n = found != NULL ? found->n : 0;
    return found != NULL ? found->strings : NULL;
}

const struct tnd_onnx_tensor *tnd_onnx_tensor_of(struct tnd_onnx_call *call, const char *name)
{
    const struct tnd_onnx_attribute *found = take(call, name, TND_ONNX_ATTRIBUTE_TENSOR);
    return found != NULL ? found->tensor : NULL;
}

const struct tnd_onnx_graph *tnd_onnx_graph_of(struct tnd_onnx_call *call, const char *name)
{
    const struct tnd_onnx_attribute *found = take(call, name, TND_ONNX_ATTRIBUTE_GRAPH);
    return found != NULL ? found->graph : NULL;
}

/* ---- operands ---- */

int tnd_onnx_in(const struct tnd_onnx_call *call, int i)
{
    return i < call->n_in ? call->in[i] : TANDEM_NET_NONE;
}

const struct tnd_dims *tnd_onnx_shape_of(const struct tnd_onnx_call *call, int value)
{
    static const struct tnd_dims none;
    return value < 0 ? &none : &tnd_net_value(call->net, value)->shape;
}

enum tandem_dtype tnd_onnx_type_of(const struct tnd_onnx_call *call, int value)
{
    return value < 0 ? TANDEM_DTYPE_F32 : tnd_net_value(call->net, value)->type;
}

void tnd_onnx_known(struct tnd_onnx_call *call, int value, const char *what, int64_t *out, int most,
                    int *n)
{
    const struct tnd_array *array = tnd_onnx_ask(call, value);
    *n = -1;
    if (array == NULL) {
        (void)tnd_onnx_refuse(call, "%s is computed while the net runs, expected a constant", what);
        return;
    }
    if (array->n > most) {
        (void)tnd_onnx_refuse(call, "%s has %lld values, expected at most %d", what,
                              (long long)array->n, most);
        return;
    }
    for (int i = 0; i < (int)array->n; i++) {
        out[i] = tnd_array_integer(array, i);
    }
    *n = (int)array->n;
}

void tnd_onnx_list(struct tnd_onnx_call *call, const char *name, int operand,
                   int64_t out[TANDEM_NET_MAX_DIMS], int *n)
{
    *n = -1;
    if (tnd_onnx_has(call, name)) {
        const int64_t *list = tnd_onnx_ints(call, name, n);
        if (*n > TANDEM_NET_MAX_DIMS) {
            (void)tnd_onnx_refuse(call, "%s has %d values", name, *n);
            *n = -1;
        } else if (*n > 0) {
            memcpy(out, list, (size_t)*n * sizeof(out[0]));
        }
    } else if (tnd_onnx_in(call, operand) != TANDEM_NET_NONE) {
        tnd_onnx_known(call, tnd_onnx_in(call, operand), name, out, TANDEM_NET_MAX_DIMS, n);
    }
}

bool tnd_onnx_axis(struct tnd_onnx_call *call, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank) {
        (void)tnd_onnx_refuse(call, "axis %lld of %d dimensions", (long long)axis, rank);
        return false;
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

/* ---- building ---- */

int tnd_onnx_scalar(struct tnd_onnx_call *call, int like, double number)
{
    return like == TANDEM_NET_NONE
               ? like
               : tnd_net_scalar(call->net, tnd_onnx_type_of(call, like), number);
}

int tnd_onnx_with(struct tnd_onnx_call *call, enum tandem_binary kind, int value, double number)
{
    return tnd_net_binary(call->net, kind, value, tnd_onnx_scalar(call, value, number));
}

int tnd_onnx_small_float(struct tnd_onnx_call *call, int value, enum tandem_dtype type,
                         bool saturates)
{
    const struct tnd_small_float small = *tnd_dtype_small(type);
    const double most = (double)tnd_small_to_f32(small, (uint8_t)tnd_small_most(small));
    if (tnd_onnx_type_of(call, value) == type || small.special == TND_SMALL_NUMBERS) {
        return tnd_net_cast(call->net, value, type);
    }
    value = tnd_net_cast(call->net, value, TANDEM_DTYPE_F32);
    if (saturates) {
        value = tnd_onnx_with(call, TANDEM_BINARY_MIN, value, most);
        value = small.special == TND_SMALL_SCALE
                    ? value
                    : tnd_onnx_with(call, TANDEM_BINARY_MAX, value, -most);
    } else if (small.special == TND_SMALL_SCALE) {
        const int is_below = tnd_onnx_with(call, TANDEM_BINARY_LESS, value, 0x1p-127);
        value =
            tnd_net_select(call->net, is_below, tnd_onnx_scalar(call, value, (double)NAN), value);
    }
    return tnd_net_cast(call->net, value, type);
}

void tnd_onnx_formula(struct tnd_onnx_call *call, const char *text)
{
    struct tnd_term terms[TND_FORMULA_TERMS];
    const char *at = text;
    int n = 0;
    for (; *at != ':'; n++) {
        char name[16];
        double usual = 0.0;
        at += strspn(at, ", ");
        const size_t n_name = strcspn(at, " ,:");
        const size_t all = strcspn(at, ",:");
        if (n_name == all) {
            terms[n] = tnd_term_value(tnd_onnx_wide(call, tnd_onnx_in(call, n)));
        } else {
            const char *number = at + strcspn(at, "=") + 2;
            snprintf(name, sizeof(name), "%.*s", (int)n_name, at);
            (void)tnd_text_to_double(number, all - (size_t)(number - at), &usual);
            terms[n] = tnd_term_number((double)tnd_onnx_float(call, name, (float)usual));
        }
        at += all;
    }
    call->out[0] =
        tnd_onnx_narrow(call, tnd_net_formula_of(call->net, text, terms, n), tnd_onnx_in(call, 0));
}

int tnd_onnx_divided(struct tnd_onnx_call *call, int x, int by)
{
    return tnd_net_formula(call->net, "x, by: x / (by == 0 ? 1 : by)", x, by);
}

int tnd_onnx_counting(struct tnd_onnx_call *call, int64_t n)
{
    const struct tnd_dims list = {1, {n}};
    if (n > MAX_COUNTED) {
        return tnd_onnx_refuse(call, "a list of %lld numbers, expected at most %d", (long long)n,
                               MAX_COUNTED);
    }
    struct tnd_array *numbers = tnd_array_new(TANDEM_DTYPE_I64, &list);
    for (int64_t i = 0; numbers != NULL && i < n; i++) {
        ((int64_t *)numbers->data)[i] = i;
    }
    return tnd_net_constant(call->net, numbers);
}

int tnd_onnx_wide(struct tnd_onnx_call *call, int value)
{
    const enum tandem_dtype type = tnd_onnx_type_of(call, value);
    return type == TANDEM_DTYPE_F16 || type == TANDEM_DTYPE_BF16
               ? tnd_net_cast(call->net, value, TANDEM_DTYPE_F32)
               : value;
}

int tnd_onnx_narrow(struct tnd_onnx_call *call, int value, int like)
{
    const enum tandem_dtype type = tnd_onnx_type_of(call, like);
    const bool is_half = type == TANDEM_DTYPE_F16 || type == TANDEM_DTYPE_BF16;
    if (value < 0 || !is_half || tnd_onnx_type_of(call, value) != TANDEM_DTYPE_F32) {
        return tnd_net_cast(call->net, value, type);
    }
    const struct tnd_net_params may_go = {.kind = TND_CAST_MAY_GO};
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, value); /* (a copy: the net moves) */
    return tnd_net_add(call->net, TND_NET_CAST, &may_go, &value, 1, type, &shape);
}

/* Aligns the dimensions of `value` with an axis of `to` by appending extents of 1. */
static int at_axis(struct tnd_onnx_call *call, int value, const struct tnd_dims *to, int64_t axis)
{
    struct tnd_dims shape = *tnd_onnx_shape_of(call, value);
    int at;
    if (!tnd_onnx_axis(call, axis, to->n, &at)) {
        return TANDEM_NET_NONE;
    }
    while (shape.n < to->n - at) {
        shape.dims[shape.n++] = 1;
    }
    return tnd_net_reshape(call->net, value, &shape);
}

int tnd_onnx_second(struct tnd_onnx_call *call)
{
    int b = tnd_onnx_in(call, 1);
    if (call->opset >= 7 || b == TANDEM_NET_NONE) {
        return b;
    }
    const struct tnd_dims *to = tnd_onnx_shape_of(call, tnd_onnx_in(call, 0));
    const bool has_axis = tnd_onnx_has(call, "axis");
    const int64_t axis = tnd_onnx_int(call, "axis", 0);
    if (tnd_onnx_int(call, "broadcast", 0) == 0) {
        return tnd_dims_is_equal(to, tnd_onnx_shape_of(call, b))
                   ? b
                   : tnd_onnx_refuse(call, "operands of two shapes, but broadcast is 0");
    }
    b = has_axis ? at_axis(call, b, to, axis) : b;
    return tnd_net_expand(call->net, b, to);
}
