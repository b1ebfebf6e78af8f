/* SPDX-License-Identifier: MIT
 * Nets: values, constants, inputs, outputs, operations; views over values. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "graph/net_internal.h"
#include "ggml-like/net_kernels.h"

#define MAX_ITEMS (INT_MAX / 2)

struct tnd_net *tnd_net_new(void)
{
    struct tnd_net *net = tnd_calloc(1, sizeof(*net));
    if (net != NULL) {
        tnd_arena_init(&net->arena, 1 << 16, 0);
    }
    return net;
}

void tnd_net_free(struct tnd_net *net)
{
    if (net == NULL) {
        return;
    }
    for (int i = 0; i < net->n_owned; i++) {
        tnd_array_free(net->owned[i]);
    }
    tnd_vector_fini(&net->owned_vector);
    tnd_vector_fini(&net->values_vector);
    tnd_vector_fini(&net->nodes_vector);
    tnd_vector_fini(&net->inputs_vector);
    tnd_vector_fini(&net->outputs_vector);
    tnd_arena_fini(&net->arena);
    tnd_free(net);
}

static int compare_pointers(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (void *const *)a;
    const uintptr_t y = (uintptr_t) * (void *const *)b;
    return (x > y) - (x < y);
}

bool tnd_net_free_unknown(struct tnd_net *net)
{
    const void **known = tnd_calloc((size_t)net->n_values + 1, sizeof(known[0]));
    size_t n = 0;
    int kept = 0;
    if (known == NULL) {
        return false;
    }
    for (int i = 0; i < net->n_values; i++) {
        if (net->values[i].known != NULL) {
            known[n++] = net->values[i].known;
        }
    }
    qsort(known, n, sizeof(known[0]), compare_pointers);
    for (int i = 0; i < net->n_owned; i++) {
        struct tnd_array *array = net->owned[i];
        if (bsearch(&array, known, n, sizeof(known[0]), compare_pointers) != NULL) {
            net->owned[kept++] = array;
        } else {
            tnd_array_free(array);
        }
    }
    net->n_owned = kept;
    tnd_free(known);
    return true;
}

int tnd_net_fail(struct tnd_net *net, enum tandem_status status, const char *format, ...)
{
    if (net->status == TANDEM_OK) {
        char text[sizeof(net->error.text)];
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        net->status = tnd_error_set(&net->error, status, NULL, 0, 0, "%s", text);
    }
    return TANDEM_NET_NONE;
}

static int no_memory(struct tnd_net *net)
{
    return tnd_net_fail(net, TANDEM_E_MEMORY, "no memory for a net of %d values", net->n_values);
}

const struct tnd_net_value *tnd_net_value(const struct tnd_net *net, int value)
{
    TND_ASSERT(value >= 0 && value < net->n_values);
    return &net->values[value];
}

/* ---- values ---- */

/* Whether nothing may be built in a net; notes the attempt. */
static bool refuses(struct tnd_net *net)
{
    net->was_tried = true;
    return net->is_probe;
}

int tnd_net_new_value(struct tnd_net *net, enum tandem_dtype type, const struct tnd_dims *shape)
{
    if (refuses(net)) {
        return TANDEM_NET_NONE;
    }
    if (tnd_dims_values(shape) < 0) {
        char text[160];
        return tnd_net_fail(net, TANDEM_E_OVERFLOW, "a value of %s: too large",
                            tnd_dims_text(shape, text));
    }
    const struct tnd_dims extents = *shape; /* a copy: the net's values move */
    const int value = net->n_values;
    if (tnd_vector_insert(&net->values_vector, sizeof(net->values[0]), MAX_ITEMS, value) !=
        TANDEM_OK) {
        return no_memory(net);
    }
    net->values[value] = (struct tnd_net_value){
        .type = type, .shape = extents, .name = "", .base = value, .node = -1, .input = -1};
    tnd_dims_strides(&extents, net->values[value].strides);
    return value;
}

int tnd_net_constant(struct tnd_net *net, struct tnd_array *array)
{
    if (array == NULL) {
        return no_memory(net);
    }
    if (refuses(net)) {
        tnd_array_free(array);
        return TANDEM_NET_NONE;
    }
    if (net->store != NULL && !tnd_store_has(net->store, array)) {
        array = tnd_store_take(net->store, array);
        if (array == NULL) {
            return no_memory(net);
        }
    }
    const int value = net->status == TANDEM_OK ? tnd_net_new_value(net, array->type, &array->shape)
                                               : TANDEM_NET_NONE;
    if (value == TANDEM_NET_NONE || tnd_vector_insert(&net->owned_vector, sizeof(net->owned[0]),
                                                      MAX_ITEMS, net->n_owned) != TANDEM_OK) {
        tnd_array_free(array);
        return no_memory(net);
    }
    net->owned[net->n_owned - 1] = array;
    net->values[value].known = array;
    return value;
}

int tnd_net_scalar(struct tnd_net *net, enum tandem_dtype type, double value)
{
    const struct tnd_dims scalar = {0};
    struct tnd_array *array = tnd_array_new(type, &scalar);
    if (array != NULL) {
        union tnd_values strip;
        strip.f64[0] = value;
        tnd_values_store(type, TND_LANE_F64, &strip, 1, array->data);
    }
    return tnd_net_constant(net, array);
}

int tnd_net_integers(struct tnd_net *net, const int64_t *values, int64_t n)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_I64, &TND_DIMS(n));
    if (array != NULL && n > 0) {
        memcpy(array->data, values, (size_t)n * sizeof(values[0]));
    }
    return tnd_net_constant(net, array);
}

static bool push(struct tnd_vector *list, int value)
{
    if (tnd_vector_insert(list, sizeof(value), MAX_ITEMS, list->n) != TANDEM_OK) {
        return false;
    }
    ((int *)list->items)[list->n - 1] = value;
    return true;
}

void tnd_net_name(struct tnd_net *net, int value, const char *name)
{
    if (value == TANDEM_NET_NONE || net->status != TANDEM_OK) {
        return;
    }
    struct tnd_net_value *v = &net->values[net->values[value].base];
    if (v->node >= 0 && v->name[0] == '\0' && name[0] != '\0') {
        char *copy = tnd_arena_alloc(&net->arena, strlen(name) + 1, 1);
        if (copy != NULL) { /* (else it has none) */
            memcpy(copy, name, strlen(name) + 1);
            v->name = copy;
        }
    }
}

void tnd_net_name_since(struct tnd_net *net, int first, const char *kind, const char *name)
{
    const size_t bytes = strlen(kind) + strlen(name) + 2;
    char *text = NULL;
    for (int i = first; i < net->n_values; i++) {
        struct tnd_net_value *v = &net->values[i];
        if (v->node < 0 || v->name[0] != '\0') {
            continue;
        }
        if (text == NULL) {
            text = tnd_arena_alloc(&net->arena, bytes, 1);
            if (text == NULL) { /* (then they have none) */
                return;
            }
            (void)snprintf(text, bytes, "%s %s", kind, name);
        }
        v->name = text;
    }
}

int tnd_net_input(struct tnd_net *net, enum tandem_dtype type, const struct tnd_dims *shape,
                  const char *name, const struct tnd_array *known)
{
    const int value =
        net->status == TANDEM_OK ? tnd_net_new_value(net, type, shape) : TANDEM_NET_NONE;
    if (value == TANDEM_NET_NONE) {
        return value;
    }
    char *copy = tnd_arena_alloc(&net->arena, strlen(name) + 1, 1);
    if (copy == NULL || !push(&net->inputs_vector, value)) {
        return no_memory(net);
    }
    memcpy(copy, name, strlen(name) + 1);
    net->values[value].name = copy;
    net->values[value].input = net->n_inputs - 1;
    net->values[value].known = known;
    return value;
}

int tnd_net_output(struct tnd_net *net, int value)
{
    if (value != TANDEM_NET_NONE && tnd_net_value(net, value)->base != value) {
        value = tnd_net_copy(net, value);
    }
    if (value == TANDEM_NET_NONE) {
        return value;
    }
    return push(&net->outputs_vector, value) ? value : no_memory(net);
}

int tnd_net_add(struct tnd_net *net, enum tnd_net_op op, const struct tnd_net_params *params,
                const int *inputs, int n_inputs, enum tandem_dtype type,
                const struct tnd_dims *shape)
{
    for (int i = 0; i < n_inputs; i++) {
        if (inputs[i] == TANDEM_NET_NONE) {
            return TANDEM_NET_NONE;
        }
    }
    if (net->status != TANDEM_OK || refuses(net)) {
        return TANDEM_NET_NONE;
    }
    const int value = tnd_net_new_value(net, type, shape);
    int *list = tnd_arena_alloc(&net->arena, (size_t)n_inputs * sizeof(int), sizeof(int));
    if (value == TANDEM_NET_NONE || (list == NULL && n_inputs > 0) ||
        tnd_vector_insert(&net->nodes_vector, sizeof(net->nodes[0]), MAX_ITEMS, net->n_nodes) !=
            TANDEM_OK) {
        return no_memory(net);
    }
    memcpy(list, inputs, (size_t)n_inputs * sizeof(int));
    net->nodes[net->n_nodes - 1] = (struct tnd_net_node){
        .op = op, .n_inputs = n_inputs, .inputs = list, .output = value, .params = *params};
    net->values[value].node = net->n_nodes - 1;
    return value;
}

/* ---- known values ---- */

/* Marks the values from which `value` is computed; false: some are not known. Nodes are in order,
 * so one backward pass suffices. */
static bool mark_needed(const struct tnd_net *net, int value, bool *is_needed)
{
    is_needed[net->values[value].base] = true;
    for (int i = net->values[value].base; i >= 0; i--) {
        const struct tnd_net_value *v = &net->values[i];
        if (!is_needed[i] || v->known != NULL) {
            continue;
        }
        if (v->node < 0) {
            return false;
        }
        const struct tnd_net_node *node = &net->nodes[v->node];
        for (int k = 0; k < node->n_inputs; k++) {
            is_needed[net->values[node->inputs[k]].base] = true;
        }
    }
    return true;
}

static bool keep_known(struct tnd_net *net, int value, struct tnd_array *array)
{
    if (tnd_vector_insert(&net->owned_vector, sizeof(net->owned[0]), MAX_ITEMS, net->n_owned) !=
        TANDEM_OK) {
        tnd_array_free(array);
        (void)no_memory(net);
        return false;
    }
    net->owned[net->n_owned - 1] = array;
    net->values[value].known = array;
    return true;
}

static bool compute_known(struct tnd_net *net, const bool *is_needed, int last)
{
    for (int i = 0; i <= last; i++) {
        if (!is_needed[i] || net->values[i].known != NULL) {
            net->values[i].is_fixed |= is_needed[i] && net->values[i].input >= 0;
            continue;
        }
        struct tnd_array *array = NULL;
        const enum tandem_status status =
            tnd_net_compute(net, &net->nodes[net->values[i].node], NULL, &array, &net->error);
        if (status != TANDEM_OK) {
            net->status = status;
            return false;
        }
        if (!keep_known(net, i, array)) {
            return false;
        }
    }
    return true;
}

struct tnd_array *tnd_net_share(const struct tnd_net *net, const struct tnd_array *array)
{
    if (tnd_store_has(net->store, array)) {
        tnd_store_hold((struct tnd_array *)(uintptr_t)array);
        return (struct tnd_array *)(uintptr_t)array;
    }
    struct tnd_array *copy = tnd_array_new(array->type, &array->shape);
    if (copy != NULL) {
        memcpy(copy->data, array->data, (size_t)array->n * tandem_dtype_bytes(array->type));
    }
    return copy;
}

const struct tnd_array *tnd_net_answer(struct tnd_net *net, int value,
                                       const struct tnd_array *array)
{
    struct tnd_array *copy = tnd_net_share(net, array);
    if (copy == NULL) {
        (void)no_memory(net);
        return NULL;
    }
    return keep_known(net, value, copy) ? net->values[value].known : NULL;
}

/* Builders read the values: loads them if a store has dropped them. */
static const struct tnd_array *filled(struct tnd_net *net, const struct tnd_array *array)
{
    if (!tnd_array_fill(array)) {
        (void)no_memory(net);
        return NULL;
    }
    return array;
}

const struct tnd_array *tnd_net_known(struct tnd_net *net, int value)
{
    if (value == TANDEM_NET_NONE || net->status != TANDEM_OK) {
        return NULL;
    }
    const int base = net->values[value].base;
    if (base == value && net->values[value].known != NULL) {
        net->values[value].is_fixed = net->values[value].input >= 0;
        return filled(net, net->values[value].known);
    }
    bool *is_needed = tnd_calloc((size_t)base + 1, sizeof(*is_needed));
    if (is_needed == NULL) {
        (void)no_memory(net);
        return NULL;
    }
    const bool is_known = mark_needed(net, value, is_needed) && compute_known(net, is_needed, base);
    tnd_free(is_needed);
    if (!is_known || base == value) {
        return is_known ? filled(net, net->values[base].known) : NULL;
    }
    const int copy = tnd_net_copy(net, value);
    return tnd_net_known(net, copy);
}
