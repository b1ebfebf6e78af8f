/* SPDX-License-Identifier: MIT
 * Operators of ONNX on sequences and optionals. A net has neither: a sequence is a list of values
 * of the net, known while the net is built; an optional is what it holds, or a mark that it holds
 * nothing. Meaning: https://github.com/onnx/onnx/blob/v1.19.0/docs/Operators.md#SequenceConstruct
 * and following. */
#include <string.h>

#include "formats/onnx_op.h"

#define MAX_LENGTH 65536     /* of a sequence */
#define MAX_PARTS  4096      /* of SplitToSequence */
#define MAX_VALUES (1 << 20) /* of all sequences of a model together */

const struct tnd_onnx_sequence *tnd_onnx_sequence_of(const struct tnd_onnx_call *call, int value)
{
    return value > TND_ONNX_FIRST_SEQUENCE
               ? NULL
               : &call->sequences->list[TND_ONNX_FIRST_SEQUENCE - value];
}

int tnd_onnx_add_sequence(struct tnd_net *net, struct tnd_onnx_sequences *all,
                          const struct tnd_onnx_sequence *sequence)
{
    if (tnd_vector_insert(&all->list_vector, sizeof(all->list[0]), MAX_VALUES, all->n_list) !=
        TANDEM_OK) {
        return tnd_net_fail(net, TANDEM_E_MEMORY, "no memory for a sequence");
    }
    all->n_values += sequence->n;
    all->list[all->n_list - 1] = *sequence;
    return TND_ONNX_FIRST_SEQUENCE - (all->n_list - 1);
}

/* A new sequence of `n` values, to be filled; NULL: refused. *out is its number. */
static int *add_list(struct tnd_onnx_call *call, int64_t n, int *out)
{
    struct tnd_onnx_sequences *all = call->sequences;
    *out = TANDEM_NET_NONE;
    if (n > MAX_LENGTH || all->n_values + n > MAX_VALUES) {
        (void)tnd_onnx_refuse(call, "a sequence of %lld values, expected at most %d, %d in all",
                              (long long)n, MAX_LENGTH, MAX_VALUES);
        return NULL;
    }
    int *values = tnd_arena_alloc(&call->net->arena, ((size_t)n + 1) * sizeof(int), _Alignof(int));
    if (values == NULL) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for a sequence");
        return NULL;
    }
    const struct tnd_onnx_sequence list = {.n = (int)n, .values = values};
    *out = tnd_onnx_add_sequence(call->net, all, &list);
    return *out == TANDEM_NET_NONE ? NULL : values;
}

/* Operand 0 as a sequence; NULL: refused. */
static const struct tnd_onnx_sequence *first_list(struct tnd_onnx_call *call)
{
    const struct tnd_onnx_sequence *list = tnd_onnx_sequence_of(call, tnd_onnx_in(call, 0));
    if (list == NULL || list->is_nothing) {
        (void)tnd_onnx_refuse(call, "operand 0 is no sequence");
        return NULL;
    }
    return list;
}

/* Whether an operand is a tensor. */
static bool check_tensor(struct tnd_onnx_call *call, int i)
{
    if (tnd_onnx_in(call, i) < 0) {
        (void)tnd_onnx_refuse(call, "operand %d is no tensor", i);
    }
    return tnd_onnx_in(call, i) >= 0;
}

/* The place that operand `i` says, from the end where it is negative, below `end`; -1: refused. */
static int place_of(struct tnd_onnx_call *call, int i, int end, int otherwise)
{
    int64_t at = otherwise;
    int n = 1;
    if (tnd_onnx_in(call, i) != TANDEM_NET_NONE) {
        tnd_onnx_known(call, tnd_onnx_in(call, i), "the place in the sequence", &at, 1, &n);
    }
    const struct tnd_onnx_sequence *list = tnd_onnx_sequence_of(call, tnd_onnx_in(call, 0));
    at += at < 0 && list != NULL ? list->n : 0;
    if (n != 1 || at < 0 || at >= end) {
        (void)tnd_onnx_refuse(call, "place %lld of a sequence of %d", (long long)at,
                              list != NULL ? list->n : 0);
        return -1;
    }
    return (int)at;
}

/* ---- sequences ---- */

static void build_construct(struct tnd_onnx_call *call)
{
    int *values = add_list(call, call->n_in, call->out);
    for (int i = 0; values != NULL && i < call->n_in && check_tensor(call, i); i++) {
        values[i] = call->in[i];
    }
}

/* (the type counts for nobody: nothing is in it) */
static void build_empty(struct tnd_onnx_call *call)
{
    (void)tnd_onnx_int(call, "dtype", TND_ONNX_F32);
    (void)add_list(call, 0, call->out);
}

static void build_at(struct tnd_onnx_call *call)
{
    const struct tnd_onnx_sequence *list = first_list(call);
    const int at = list == NULL ? -1 : place_of(call, 1, list->n, list->n);
    call->out[0] = at < 0 ? TANDEM_NET_NONE : list->values[at];
}

static void build_length(struct tnd_onnx_call *call)
{
    const struct tnd_onnx_sequence *list = first_list(call);
    call->out[0] = list == NULL ? TANDEM_NET_NONE
                                : tnd_net_scalar(call->net, TANDEM_DTYPE_I64, (double)list->n);
}

static void build_insert(struct tnd_onnx_call *call)
{
    const struct tnd_onnx_sequence *found = first_list(call);
    const int at =
        found == NULL || !check_tensor(call, 1) ? -1 : place_of(call, 2, found->n + 1, found->n);
    if (at < 0) {
        return;
    }
    const struct tnd_onnx_sequence list = *found; /* (a new one moves them) */
    int *values = add_list(call, list.n + 1, call->out);
    if (values != NULL) {
        memcpy(values, list.values, (size_t)at * sizeof(int));
        values[at] = tnd_onnx_in(call, 1);
        memcpy(values + at + 1, list.values + at, (size_t)(list.n - at) * sizeof(int));
    }
}

static void build_erase(struct tnd_onnx_call *call)
{
    const struct tnd_onnx_sequence *found = first_list(call);
    const int at = found == NULL ? -1 : place_of(call, 1, found->n, found->n - 1);
    if (at < 0) {
        return;
    }
    const struct tnd_onnx_sequence list = *found;
    int *values = add_list(call, list.n - 1, call->out);
    if (values != NULL) {
        memcpy(values, list.values, (size_t)at * sizeof(int));
        memcpy(values + at, list.values + at + 1, (size_t)(list.n - at - 1) * sizeof(int));
    }
}

/* ---- to sequences and back ---- */

/* A value without an axis of extent 1, or with one more. */
static int with_axis(struct tnd_onnx_call *call, int value, int axis, bool adds)
{
    struct tnd_dims shape = *tnd_onnx_shape_of(call, value);
    int64_t *at = shape.dims + axis;
    if (adds && shape.n == TANDEM_NET_MAX_DIMS) {
        return tnd_onnx_refuse(call, "more than %d dimensions", TANDEM_NET_MAX_DIMS);
    }
    if (adds) {
        memmove(at + 1, at, (size_t)(shape.n - axis) * sizeof(*at));
        *at = 1;
        shape.n++;
    } else {
        shape.n--;
        memmove(at, at + 1, (size_t)(shape.n - axis) * sizeof(*at));
    }
    return tnd_net_reshape(call->net, value, &shape);
}

/* The lengths of the parts along an axis of `extent`; their number, -1: refused. `by` is one length
 * for all parts, or a list. */
static int part_lengths(struct tnd_onnx_call *call, int by, int64_t extent, int64_t *out)
{
    const bool is_list = by != TANDEM_NET_NONE && tnd_onnx_shape_of(call, by)->n > 0;
    int64_t sum = 0;
    int n = 1;
    out[0] = 1;
    if (by != TANDEM_NET_NONE) {
        tnd_onnx_known(call, by, "the lengths of the parts", out, MAX_PARTS, &n);
    }
    if (!is_list && n == 1 && out[0] > 0) {
        const int64_t each = out[0];
        const int64_t parts = extent / each + (extent % each != 0);
        n = parts <= MAX_PARTS ? (int)parts : -1;
        for (int i = 0; i < n; i++) {
            out[i] = i < n - 1 ? each : extent - i * each;
        }
    }
    for (int i = 0; i < n; i++) {
        sum += out[i] >= 0 && out[i] <= extent ? out[i] : extent + 1;
    }
    if (n < 0 || sum != extent || (!is_list && n == 1 && out[0] == 0)) {
        (void)tnd_onnx_refuse(call, "parts that do not fit the extent of %lld, or more than %d",
                              (long long)extent, MAX_PARTS);
        return -1;
    }
    return n;
}

static void build_split(struct tnd_onnx_call *call)
{
    int64_t lengths[MAX_PARTS];
    const int x = tnd_onnx_in(call, 0);
    const int by = tnd_onnx_in(call, 1);
    const bool drops = tnd_onnx_int(call, "keepdims", 1) == 0 && by == TANDEM_NET_NONE;
    const int64_t stated = tnd_onnx_int(call, "axis", 0);
    int axis;
    if (!check_tensor(call, 0) || (by != TANDEM_NET_NONE && !check_tensor(call, 1)) ||
        !tnd_onnx_axis(call, stated, tnd_onnx_shape_of(call, x)->n, &axis)) {
        return;
    }
    const int n = part_lengths(call, by, tnd_onnx_shape_of(call, x)->dims[axis], lengths);
    int *values = n < 0 ? NULL : add_list(call, n, call->out);
    int64_t at = 0;
    for (int i = 0; values != NULL && i < n; i++) {
        values[i] = tnd_net_slice(call->net, x, axis, at, lengths[i], 1);
        values[i] = drops ? with_axis(call, values[i], axis, false) : values[i];
        at += lengths[i];
    }
}

static void build_concat(struct tnd_onnx_call *call)
{
    const struct tnd_onnx_sequence *list = first_list(call);
    const bool adds = tnd_onnx_int(call, "new_axis", 0) != 0;
    const int64_t stated = tnd_onnx_int(call, "axis", 0);
    int axis;
    if (list == NULL || list->n == 0) {
        (void)tnd_onnx_refuse(call, "an empty sequence");
        return;
    }
    const int rank = tnd_onnx_shape_of(call, list->values[0])->n;
    int *parts = tnd_arena_alloc(&call->net->arena, (size_t)list->n * sizeof(int), _Alignof(int));
    if (parts == NULL || !tnd_onnx_axis(call, stated, rank + (adds ? 1 : 0), &axis)) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for %d parts", list->n);
        return;
    }
    for (int i = 0; i < list->n; i++) {
        parts[i] = list->values[i];
        if (tnd_onnx_narrow_of(call, parts[i]) != TND_ONNX_UNDEFINED ||
            tnd_onnx_shape_of(call, parts[i])->n != rank) {
            (void)tnd_onnx_refuse(call, "value %d has %d dimensions or few bits, the first has %d",
                                  i, tnd_onnx_shape_of(call, parts[i])->n, rank);
            return;
        }
        parts[i] = adds ? with_axis(call, parts[i], axis, true) : parts[i];
    }
    call->out[0] = tnd_net_concat(call->net, parts, list->n, axis);
}

/* ---- SequenceMap ---- */

/* The operands of the body for round `i`: values of sequences of one length, others as they are. */
static bool round_operands(struct tnd_onnx_call *call, int n, int i, int *in)
{
    for (int k = 0; k < call->n_in; k++) {
        const struct tnd_onnx_sequence *list = tnd_onnx_sequence_of(call, tnd_onnx_in(call, k));
        if (list != NULL && list->n != n) {
            (void)tnd_onnx_refuse(call, "operand %d has %d values, the first has %d", k, list->n,
                                  n);
            return false;
        }
        in[k] = list != NULL ? list->values[i] : tnd_onnx_in(call, k);
    }
    return true;
}

static void build_map(struct tnd_onnx_call *call)
{
    enum { MOST = 64 };
    const struct tnd_onnx_graph *body = tnd_onnx_graph_of(call, "body");
    const struct tnd_onnx_sequence *first = first_list(call);
    int in[MOST];
    int out[MOST];
    int *values[MOST];
    if (first == NULL || body == NULL || call->n_in > MOST || call->n_out > MOST) {
        (void)tnd_onnx_refuse(call, "no body, or more than %d operands or results", MOST);
        return;
    }
    const int n = first->n;
    for (int k = 0; k < call->n_out; k++) {
        values[k] = add_list(call, n, &call->out[k]);
        if (values[k] == NULL) {
            return;
        }
        memset(values[k], 0, (size_t)n * sizeof(int));
    }
    for (int i = 0; i < n; i++) {
        if (!round_operands(call, n, i, in) ||
            !tnd_onnx_inner(call, body, in, call->n_in, out, call->n_out)) {
            return;
        }
        for (int k = 0; k < call->n_out; k++) {
            if (out[k] < 0) {
                (void)tnd_onnx_refuse(call, "its result %d is no tensor", k);
                return;
            }
            values[k][i] = out[k];
        }
    }
}

/* ---- optionals ---- */

static void build_optional(struct tnd_onnx_call *call)
{
    tnd_onnx_pass_over(call, "type");
    call->out[0] = tnd_onnx_in(call, 0);
    if (call->out[0] == TANDEM_NET_NONE && add_list(call, 0, call->out) != NULL) {
        call->sequences->list[call->sequences->n_list - 1].is_nothing = true;
    }
}

static bool is_nothing(const struct tnd_onnx_call *call, int value)
{
    const struct tnd_onnx_sequence *list = tnd_onnx_sequence_of(call, value);
    return value == TANDEM_NET_NONE || (list != NULL && list->is_nothing);
}

static void build_has_element(struct tnd_onnx_call *call)
{
    call->out[0] = tnd_net_scalar(call->net, TANDEM_DTYPE_BOOL,
                                  is_nothing(call, tnd_onnx_in(call, 0)) ? 0.0 : 1.0);
}

static void build_get_element(struct tnd_onnx_call *call)
{
    call->out[0] = is_nothing(call, tnd_onnx_in(call, 0))
                       ? tnd_onnx_refuse(call, "the optional holds nothing")
                       : tnd_onnx_in(call, 0);
}

const struct tnd_onnx_op tnd_onnx_sequence[] = {
    {"SequenceConstruct", build_construct, 0, "1-*"},
    {"SequenceEmpty", build_empty, 0, "0"},
    {"SequenceAt", build_at, 0, "2"},
    {"SequenceLength", build_length, 0, "1"},
    {"SequenceInsert", build_insert, 0, "2-3"},
    {"SequenceErase", build_erase, 0, "1-2"},
    {"SplitToSequence", build_split, 0, "1-2"},
    {"ConcatFromSequence", build_concat, 0, "1"},
    {"SequenceMap", build_map, 0, "1-*>1-*"},
    {"Optional", build_optional, 0, "0-1"},
    {"OptionalHasElement", build_has_element, 0, "1 18:0-1"},
    {"OptionalGetElement", build_get_element, 0, "1"},
    {NULL, NULL, 0, NULL},
};

bool tnd_onnx_check_sequences(struct tnd_onnx_call *call, const struct tnd_onnx_op *op)
{
    static const char *const others[] = {"Identity", "If", "Loop"};
    call->takes_sequences = false;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        call->takes_sequences |= strcmp(op->name, others[i]) == 0;
    }
    for (const struct tnd_onnx_op *it = tnd_onnx_sequence; it->name != NULL; it++) {
        call->takes_sequences |= it == op;
    }
    for (int i = 0; i < call->n_in && !call->takes_sequences; i++) {
        if (tnd_onnx_sequence_of(call, call->in[i]) != NULL) {
            (void)tnd_onnx_refuse(call, "operand %d is a sequence or optional", i);
        }
    }
    return call->net->status == TANDEM_OK;
}
