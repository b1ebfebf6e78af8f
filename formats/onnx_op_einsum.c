/* SPDX-License-Identifier: MIT
 * ONNX's Einsum, by permutations, diagonals, sums and matrix products. */
#include <string.h>

#include "formats/onnx_op.h"

#define MAX_TERMS 16

/* The dimensions of a term, as numbers: letters are 0 to 51, those of "..." the last ones. */
struct term {
    int n;
    int ids[TANDEM_NET_MAX_DIMS];
};

#define N_IDS (52 + TANDEM_NET_MAX_DIMS)

struct operand {
    int value;
    struct term term;
};

static int letter_id(char letter)
{
    return letter >= 'a' && letter <= 'z'   ? letter - 'a'
           : letter >= 'A' && letter <= 'Z' ? 26 + letter - 'A'
                                            : -1;
}

/* Reads a term up to a comma, an arrow or the end. `rank`: dimensions of its operand, -1: of the
 * result, whose "..." has `n_open` dimensions. */
static const char *read_term(struct tnd_onnx_call *call, const char *at, int rank, int n_open,
                             struct term *out)
{
    int n_letters = 0;
    const char *end = at;
    for (; *end != '\0' && *end != ',' && strncmp(end, "->", 2) != 0; end++) {
        n_letters += letter_id(*end) >= 0;
    }
    out->n = 0;
    while (at < end) {
        int n_new = 1;
        int first = letter_id(*at);
        if (strncmp(at, "...", 3) == 0) {
            n_new = rank < 0 ? n_open : rank - n_letters;
            first = N_IDS - n_new;
            at += 2;
        } else if (*at == ' ') {
            n_new = 0;
        }
        if (first < (*at == ' ' ? -1 : 0) || n_new < 0 || out->n + n_new > TANDEM_NET_MAX_DIMS) {
            (void)tnd_onnx_refuse(call, "its equation cannot be read at '%.20s'", at);
            return NULL;
        }
        for (int i = 0; i < n_new; i++) {
            out->ids[out->n++] = first + i;
        }
        at++;
    }
    if (rank >= 0 && out->n != rank) {
        (void)tnd_onnx_refuse(call, "a term of %d dimensions for an operand of %d", out->n, rank);
        return NULL;
    }
    return end;
}

static bool has_id(const struct term *term, int id)
{
    for (int i = 0; i < term->n; i++) {
        if (term->ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* Replaces repeated letters of a term by the diagonal. */
static int take_diagonals(struct tnd_onnx_call *call, int value, struct term *term)
{
    for (int i = 0; i < term->n; i++) {
        for (int k = term->n - 1; k > i; k--) {
            const struct tnd_dims *shape = tnd_onnx_shape_of(call, value);
            if (term->ids[k] != term->ids[i]) {
                continue;
            }
            if (value == TANDEM_NET_NONE || shape->dims[i] != shape->dims[k]) {
                return tnd_onnx_refuse(call, "a letter stands for %lld and %lld values",
                                       (long long)shape->dims[i], (long long)shape->dims[k]);
            }
            value = tnd_net_diagonal(call->net, value, i, k);
            term->n--;
            memmove(&term->ids[k], &term->ids[k + 1], (size_t)(term->n - k) * sizeof(int));
        }
    }
    return value;
}

/* Sums over the dimensions of a term that neither the result nor other operands need. */
static int sum_alone(struct tnd_onnx_call *call, int value, struct term *term,
                     const bool *is_needed)
{
    unsigned axes = 0;
    struct tnd_dims left = {0};
    struct term kept = {0};
    if (value == TANDEM_NET_NONE) {
        return value;
    }
    for (int i = 0; i < term->n; i++) {
        if (!is_needed[term->ids[i]]) {
            axes |= 1u << i;
        } else {
            left.dims[left.n++] = tnd_onnx_shape_of(call, value)->dims[i];
            kept.ids[kept.n++] = term->ids[i];
        }
    }
    if (axes != 0) {
        value = tnd_net_reshape(call->net,
                                tnd_net_reduce(call->net, TANDEM_REDUCE_SUM, value, axes), &left);
    }
    *term = kept;
    return value;
}

/* Permutes a value's dimensions to the order of `to`; missing ones get an extent of 1. */
static int arrange(struct tnd_onnx_call *call, int value, const struct term *term,
                   const struct term *to)
{
    int axes[TANDEM_NET_MAX_DIMS];
    struct tnd_dims shape = {.n = to->n};
    int n = 0;
    if (value == TANDEM_NET_NONE) {
        return value;
    }
    for (int i = 0; i < to->n; i++) {
        shape.dims[i] = 1;
        for (int k = 0; k < term->n; k++) {
            if (term->ids[k] == to->ids[i]) {
                axes[n++] = k;
                shape.dims[i] = tnd_onnx_shape_of(call, value)->dims[k];
            }
        }
    }
    return tnd_net_reshape(call->net, tnd_net_permute(call->net, value, axes), &shape);
}

/* Dimensions of two operands by their role in the product. */
struct roles {
    struct term batch, rows, columns, summed;
};

static void push_id(struct term *term, int id)
{
    term->ids[term->n++] = id;
}

static void find_roles(const struct term *a, const struct term *b, const bool *is_needed,
                       struct roles *out)
{
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < a->n; i++) {
        const bool is_shared = has_id(b, a->ids[i]);
        push_id(!is_shared             ? &out->rows
                : is_needed[a->ids[i]] ? &out->batch
                                       : &out->summed,
                a->ids[i]);
    }
    for (int i = 0; i < b->n; i++) {
        if (!has_id(a, b->ids[i])) {
            push_id(&out->columns, b->ids[i]);
        }
    }
}

static void append(struct term *term, const struct term *more)
{
    for (int i = 0; i < more->n && term->n < TANDEM_NET_MAX_DIMS; i++) {
        push_id(term, more->ids[i]);
    }
}

/* A value as a matrix of the dimensions in groups[1] and groups[2] for each of those in groups[0],
 * which are broadcast to `batch`. */
static int as_matrices(struct tnd_onnx_call *call, int value, const struct term *term,
                       const struct term *const *groups, const struct tnd_dims *batch)
{
    struct term all = {0};
    append(&all, groups[0]);
    append(&all, groups[1]);
    append(&all, groups[2]);
    value = arrange(call, value, term, &all);
    struct tnd_dims wide = *tnd_onnx_shape_of(call, value);
    struct tnd_dims flat = *batch;
    if (value == TANDEM_NET_NONE || batch->n + 2 > TANDEM_NET_MAX_DIMS) {
        return value == TANDEM_NET_NONE ? value : tnd_onnx_refuse(call, "more than 8 dimensions");
    }
    memcpy(wide.dims, batch->dims, (size_t)batch->n * sizeof(int64_t));
    value = tnd_net_expand(call->net, value, &wide);
    flat.dims[flat.n++] = 1;
    flat.dims[flat.n++] = 1;
    for (int i = batch->n; i < wide.n; i++) {
        flat.dims[flat.n - (i < batch->n + groups[1]->n ? 2 : 1)] *= wide.dims[i];
    }
    return tnd_net_reshape(call->net, value, &flat);
}

static int64_t extent_of_id(struct tnd_onnx_call *call, int value, const struct term *term, int id)
{
    for (int i = 0; i < term->n; i++) {
        if (term->ids[i] == id) {
            return tnd_onnx_shape_of(call, value)->dims[i];
        }
    }
    return 1;
}

/* Extents of dimensions that both operands have; 1 is broadcast. */
static bool shared_extents(struct tnd_onnx_call *call, const struct operand *a,
                           const struct operand *b, const struct term *ids, struct tnd_dims *out)
{
    out->n = ids->n;
    for (int i = 0; i < ids->n; i++) {
        const int64_t ea = extent_of_id(call, a->value, &a->term, ids->ids[i]);
        const int64_t eb = extent_of_id(call, b->value, &b->term, ids->ids[i]);
        if (ea != eb && ea != 1 && eb != 1) {
            (void)tnd_onnx_refuse(call, "a letter stands for %lld and %lld values", (long long)ea,
                                  (long long)eb);
            return false;
        }
        out->dims[i] = ea == 1 ? eb : ea;
    }
    return true;
}

/* Multiplies two operands, result in `a`: dimensions that both have and no other operand needs are
 * summed. */
static void multiply(struct tnd_onnx_call *call, struct operand *a, const struct operand *b,
                     const bool *is_needed)
{
    struct roles roles;
    struct tnd_dims batch = {0};
    struct tnd_dims summed = {0};
    find_roles(&a->term, &b->term, is_needed, &roles);
    if (!shared_extents(call, a, b, &roles.batch, &batch) ||
        !shared_extents(call, a, b, &roles.summed, &summed)) {
        return;
    }
    struct tnd_dims out = batch;
    struct term all = roles.batch;
    append(&all, &roles.rows);
    append(&all, &roles.columns);
    if (all.n != roles.batch.n + roles.rows.n + roles.columns.n) {
        (void)tnd_onnx_refuse(call, "more than 8 dimensions");
        return;
    }
    for (int i = batch.n; i < all.n; i++) {
        const struct operand *from = i < batch.n + roles.rows.n ? a : b;
        out.dims[out.n++] = extent_of_id(call, from->value, &from->term, all.ids[i]);
    }
    const struct term *const left[] = {&roles.batch, &roles.rows, &roles.summed};
    const struct term *const right[] = {&roles.batch, &roles.summed, &roles.columns};
    const int x = as_matrices(call, a->value, &a->term, left, &batch);
    const int y = as_matrices(call, b->value, &b->term, right, &batch);
    a->value = tnd_net_reshape(call->net, tnd_net_matmul(call->net, x, y), &out);
    a->term = all;
}

/* The result's term if the equation has none: letters that occur once, sorted. */
static void implied_result(const struct operand *operands, int n, int n_open, struct term *out)
{
    out->n = 0;
    for (int i = 0; i < n_open; i++) {
        push_id(out, N_IDS - n_open + i);
    }
    for (int k = 0; k < 52; k++) { /* capital letters come first */
        const int id = (k + 26) % 52;
        int count = 0;
        for (int i = 0; i < n; i++) {
            for (int d = 0; d < operands[i].term.n; d++) {
                count += operands[i].term.ids[d] == id;
            }
        }
        if (count == 1 && out->n < TANDEM_NET_MAX_DIMS) {
            push_id(out, id);
        }
    }
}

static bool read_equation(struct tnd_onnx_call *call, struct operand *operands, struct term *result)
{
    const char *at = tnd_onnx_word(call, "equation", "");
    int n_open = 0;
    for (int i = 0; i < call->n_in; i++) {
        const int rank = tnd_onnx_shape_of(call, tnd_onnx_in(call, i))->n;
        at = read_term(call, at, rank, 0, &operands[i].term);
        if (at == NULL || (*at == ',') != (i + 1 < call->n_in)) {
            (void)tnd_onnx_refuse(call, "its equation has other than %d terms", call->n_in);
            return false;
        }
        at += *at == ',';
        int open = 0;
        for (int d = 0; d < operands[i].term.n; d++) {
            open += operands[i].term.ids[d] >= 52;
        }
        n_open = open > n_open ? open : n_open;
    }
    if (*at == '\0') {
        implied_result(operands, call->n_in, n_open, result);
        return true;
    }
    at = read_term(call, at + 2, -1, n_open, result);
    return at != NULL && *at == '\0';
}

/* Marks dimensions that the result or an operand from `first` on needs. */
static void find_needed(const struct operand *operands, int first, int n, const struct term *result,
                        bool *out)
{
    memset(out, 0, N_IDS * sizeof(out[0]));
    for (int i = 0; i < result->n; i++) {
        out[result->ids[i]] = true;
    }
    for (int i = first; i < n; i++) {
        for (int d = 0; d < operands[i].term.n; d++) {
            out[operands[i].term.ids[d]] = true;
        }
    }
}

/* Operands are multiplied one after the other; dimensions no longer needed are summed at once. */
static void build_einsum(struct tnd_onnx_call *call)
{
    struct operand operands[MAX_TERMS];
    struct term result;
    bool is_needed[N_IDS];
    if (call->n_in < 1 || call->n_in > MAX_TERMS) {
        (void)tnd_onnx_refuse(call, "%d operands, expected 1 to %d", call->n_in, MAX_TERMS);
        return;
    }
    if (!read_equation(call, operands, &result)) {
        return;
    }
    for (int i = 0; i < call->n_in; i++) {
        operands[i].value = take_diagonals(call, tnd_onnx_in(call, i), &operands[i].term);
    }
    struct operand *all = &operands[0];
    for (int i = 1; i < call->n_in && call->net->status == TANDEM_OK; i++) {
        find_needed(operands, i, call->n_in, &result, is_needed);
        all->value = sum_alone(call, all->value, &all->term, is_needed);
        find_needed(operands, i + 1, call->n_in, &result, is_needed);
        bool is_shared[N_IDS];
        memcpy(is_shared, is_needed, sizeof(is_shared));
        for (int d = 0; d < all->term.n; d++) {
            is_shared[all->term.ids[d]] = true;
        }
        operands[i].value = sum_alone(call, operands[i].value, &operands[i].term, is_shared);
        multiply(call, all, &operands[i], is_needed);
    }
    find_needed(operands, call->n_in, call->n_in, &result, is_needed);
    all->value = sum_alone(call, all->value, &all->term, is_needed);
    if (call->net->status == TANDEM_OK && all->term.n != result.n) {
        (void)tnd_onnx_refuse(call, "the result has a letter that no operand has");
        return;
    }
    call->out[0] = arrange(call, all->value, &all->term, &result);
}

const struct tnd_onnx_op tnd_onnx_einsum[] = {
    {"Einsum", build_einsum, 0, "1-*"},
    {NULL, NULL, 0, NULL},
};
