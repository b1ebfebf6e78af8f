/* SPDX-License-Identifier: MIT
 * Pass "strength": an operation gives way to a cheaper one, or to its operand, with the same bits.
 *
 * Why each is equal (floats as IEEE 754 rounds them; NaN stays NaN):
 * - x * 1, x / 1, x - 0 and pow(x, 1) are x. x + 0 is x for integers; for floats only x + -0 is
 *   (-0 + 0 is 0). x * 0 is 0 for integers alone (NaN and infinity are not 0 times 0).
 * - x * -1 is -x. x + -y is x - y, x - -y is x + y: defined so.
 * - x / c with c a power of two whose inverse the type can store is x * (1 / c): both round the
 *   same real number once.
 * - pow(x, 2) is x * x, pow(x, -1) is 1 / x: the reference computes them so. pow(x, 0) is 1, for
 *   NaN too. pow(x, 0.5) is sqrt(x) where x cannot be negative or -0, in which they differ.
 * - Twice negated or inverted bits come back. abs, sign, floor, ceil, round of what is that already
 *   change nothing; abs(-x) is abs(x).
 * - A cast to a wider type keeps the value; so the next cast may read from the narrow one, as long
 *   as both are integers or the first is to a float from a float (integers wrap on casts, floats
 *   saturate).
 * - select with one condition for all is an operand; with equal operands too.
 * - A sum of integers, a product, a largest or smallest over axes of extent 1 is its operand. (0 +
 *   -0 is 0: sums of floats stay.)
 * - Quantisation to bytes behind a dequantisation, or behind views: pass_bytes.c.
 * - One joined operand, padding by nothing, gathering by constant indices that go on in equal
 *   steps: a view. */
#include <math.h>
#include <string.h>

#include "graph/pass_internal.h"

/* ---- what cannot be negative ---- */

/* Whether every element is +0, positive or NaN. */
static bool is_not_negative(const struct tnd_net *net, int value, int depth)
{
    const int node = net->values[net->values[value].base].node;
    double c = 0;
    int64_t i = 0;
    if (tnd_match_uniform(net, value, &c, &i)) {
        return tnd_is_float(net->values[value].type) && !signbit(c);
    }
    if (node < 0 || depth == 0 || !tnd_is_float(net->values[value].type)) {
        return false;
    }
    const struct tnd_net_node *n = &net->nodes[node];
    const int kind = n->params.kind;
    switch (n->op) {
    case TND_NET_UNARY:
        return kind == TANDEM_UNARY_ABS || kind == TANDEM_UNARY_EXP || kind == TANDEM_UNARY_COSH;
    case TND_NET_BINARY:
        if (kind == TANDEM_BINARY_MUL && tnd_match_same(net, n->inputs[0], n->inputs[1])) {
            return true;
        }
        return (kind == TANDEM_BINARY_ADD || kind == TANDEM_BINARY_MUL ||
                kind == TANDEM_BINARY_DIV) &&
               is_not_negative(net, n->inputs[0], depth - 1) &&
               is_not_negative(net, n->inputs[1], depth - 1);
    case TND_NET_REDUCE:
        return kind == TANDEM_REDUCE_SUM && is_not_negative(net, n->inputs[0], depth - 1);
    default:
        return false;
    }
}

/* ---- one operand ---- */

static int rule_unary(struct tnd_net *to, const struct tnd_net_node *node, const int *in)
{
    const int kind = node->params.kind;
    const struct tnd_net_node *inner = tnd_match(to, in[0], TND_NET_UNARY, -1);
    if (inner == NULL || to->values[in[0]].base != in[0]) {
        return TANDEM_NET_NONE;
    }
    const int first = inner->params.kind;
    switch (kind) {
    case TANDEM_UNARY_NEG:
        return first == kind ? inner->inputs[0] : TANDEM_NET_NONE;
    case TANDEM_UNARY_NOT: /* on floats: a test for 0 */
        return first == kind && !tnd_is_float(to->values[in[0]].type) ? inner->inputs[0]
                                                                      : TANDEM_NET_NONE;
    case TANDEM_UNARY_ABS:
        if (first == TANDEM_UNARY_NEG && tnd_is_float(to->values[in[0]].type)) {
            return tnd_net_unary(to, TANDEM_UNARY_ABS, inner->inputs[0]);
        }
        return first == TANDEM_UNARY_ABS ? in[0] : TANDEM_NET_NONE;
    case TANDEM_UNARY_SIGN:
        return first == TANDEM_UNARY_SIGN ? in[0] : TANDEM_NET_NONE;
    case TANDEM_UNARY_FLOOR:
    case TANDEM_UNARY_CEIL:
    case TANDEM_UNARY_ROUND:
        return first == TANDEM_UNARY_FLOOR || first == TANDEM_UNARY_CEIL ||
                       first == TANDEM_UNARY_ROUND
                   ? in[0]
                   : TANDEM_NET_NONE;
    default:
        return TANDEM_NET_NONE;
    }
}

/* Whether a type represents all values of another, integers to integers, floats to floats. */
static bool holds_all(enum tandem_dtype wide, enum tandem_dtype narrow)
{
    const enum tnd_dtype_kind a = tnd_dtype_kind(wide);
    const enum tnd_dtype_kind b = tnd_dtype_kind(narrow);
    const size_t na = tandem_dtype_bytes(wide);
    const size_t nb = tandem_dtype_bytes(narrow);
    if (b == TND_KIND_FLOAT || a == TND_KIND_FLOAT) {
        return a == b && na > nb;
    }
    return a != TND_KIND_LOGICAL && b != TND_KIND_LOGICAL && na > nb &&
           (a == b || b == TND_KIND_UNSIGNED);
}

static int rule_cast(struct tnd_net *to, const struct tnd_net_node *node, const int *in,
                     enum tandem_dtype type)
{
    (void)node;
    const struct tnd_net_node *inner = tnd_match(to, in[0], TND_NET_CAST, -1);
    if (inner == NULL || to->values[in[0]].base != in[0]) {
        return TANDEM_NET_NONE;
    }
    const int x = inner->inputs[0];
    return holds_all(to->values[in[0]].type, to->values[x].type) ? tnd_net_cast(to, x, type)
                                                                 : TANDEM_NET_NONE;
}

/* ---- two operands ---- */

/* Whether a type stores a number exactly, as a normal one. */
static bool stores(enum tandem_dtype type, double number)
{
    union tnd_values strip = {.f64 = {number}};
    uint64_t room = 0;
    tnd_values_store(type, TND_LANE_F64, &strip, 1, &room);
    tnd_values_load(type, &room, 1, 1, TND_LANE_F64, &strip);
    const double least = type == TANDEM_DTYPE_F16   ? 0x1p-14
                         : type == TANDEM_DTYPE_F64 ? 0x1p-1022
                                                    : 0x1p-126;
    return strip.f64[0] == number && fabs(number) >= least && isfinite(number);
}

static int inverse_of(struct tnd_net *to, enum tandem_dtype type, double c, int x)
{
    int exponent = 0;
    if (!isfinite(c) || c == 0 || fabs(frexp(c, &exponent)) != 0.5 || !stores(type, 1 / c)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_dims shape = to->values[x].shape;
    return tnd_net_binary(to, TANDEM_BINARY_MUL, x, tnd_pass_number(to, type, 1 / c, &shape));
}

static int rule_power(struct tnd_net *to, double c, int x)
{
    const enum tandem_dtype type = to->values[x].type;
    const struct tnd_dims shape = to->values[x].shape;
    if (c == 1) {
        return x;
    }
    if (c == 0) {
        return tnd_pass_number(to, type, 1, &shape);
    }
    if (c == 2) {
        return tnd_net_binary(to, TANDEM_BINARY_MUL, x, x);
    }
    if (c == -1 && tnd_is_float(type)) {
        return tnd_net_unary(to, TANDEM_UNARY_RECIPROCAL, x);
    }
    if (c == 0.5 && is_not_negative(to, x, 8)) {
        return tnd_net_unary(to, TANDEM_UNARY_SQRT, x);
    }
    return TANDEM_NET_NONE;
}

/* A rule for x and a number; `is_first`: x is the left operand, else the right. */
static int rule_number(struct tnd_net *to, int kind, int x, double c, bool is_first)
{
    const enum tandem_dtype type = to->values[x].type;
    const struct tnd_dims shape = to->values[x].shape;
    const bool is_float = tnd_is_float(type);
    switch (kind) {
    case TANDEM_BINARY_ADD:
        return c == 0 && (!is_float || signbit(c)) ? x : TANDEM_NET_NONE;
    case TANDEM_BINARY_SUB:
        return is_first && c == 0 && (!is_float || !signbit(c)) ? x : TANDEM_NET_NONE;
    case TANDEM_BINARY_MUL:
        if (c == 0 && !is_float) {
            return tnd_pass_number(to, type, 0, &shape);
        }
        if (c == -1 && tnd_dtype_kind(type) != TND_KIND_UNSIGNED) {
            return tnd_net_unary(to, TANDEM_UNARY_NEG, x);
        }
        return c == 1 ? x : TANDEM_NET_NONE;
    case TANDEM_BINARY_DIV:
        if (!is_first) {
            return TANDEM_NET_NONE;
        }
        return c == 1 ? x : is_float ? inverse_of(to, type, c, x) : TANDEM_NET_NONE;
    case TANDEM_BINARY_POW:
        return is_first ? rule_power(to, c, x) : TANDEM_NET_NONE;
    default:
        return TANDEM_NET_NONE;
    }
}

/* The operand of a negation of floats; TANDEM_NET_NONE. */
static int negated(const struct tnd_net *to, int value)
{
    const struct tnd_net_node *node = tnd_match(to, value, TND_NET_UNARY, TANDEM_UNARY_NEG);
    return node != NULL && to->values[value].base == value ? node->inputs[0] : TANDEM_NET_NONE;
}

static int rule_binary(struct tnd_net *to, const struct tnd_net_node *node, const int *in)
{
    const int kind = node->params.kind;
    double c = 0;
    int64_t i = 0;
    int by = TANDEM_NET_NONE;
    if (to->values[in[0]].type == TANDEM_DTYPE_BOOL) {
        return by;
    }
    if (tnd_match_uniform(to, in[1], &c, &i)) {
        by = rule_number(to, kind, in[0], c, true);
    } else if (tnd_match_uniform(to, in[0], &c, &i)) {
        by = rule_number(to, kind, in[1], c, false);
    }
    if (by == TANDEM_NET_NONE && (kind == TANDEM_BINARY_ADD || kind == TANDEM_BINARY_SUB)) {
        const int right = negated(to, in[1]);
        const int left = kind == TANDEM_BINARY_ADD ? negated(to, in[0]) : TANDEM_NET_NONE;
        const bool adds = kind == TANDEM_BINARY_ADD;
        if (right != TANDEM_NET_NONE) {
            by = tnd_net_binary(to, adds ? TANDEM_BINARY_SUB : TANDEM_BINARY_ADD, in[0], right);
        } else if (left != TANDEM_NET_NONE) {
            by = tnd_net_binary(to, TANDEM_BINARY_SUB, in[1], left);
        }
    }
    return by;
}

/* ---- others ---- */

static int rule_select(struct tnd_net *to, const int *in)
{
    double number = 0;
    int64_t condition = 0;
    if (tnd_match_same(to, in[1], in[2])) {
        return in[1];
    }
    return tnd_match_uniform(to, in[0], &number, &condition) ? in[condition != 0 ? 1 : 2]
                                                             : TANDEM_NET_NONE;
}

static int rule_reduce(const struct tnd_net *to, const struct tnd_net_node *node, const int *in)
{
    const struct tnd_net_value *x = &to->values[in[0]];
    for (int i = 0; i < x->shape.n; i++) {
        if ((node->params.axes >> i & 1) != 0 && x->shape.dims[i] != 1) {
            return TANDEM_NET_NONE;
        }
    }
    return node->params.kind == TANDEM_REDUCE_SUM && tnd_is_float(x->type) ? TANDEM_NET_NONE
                                                                           : in[0];
}

static int rule_pad(const struct tnd_net *to, const struct tnd_net_node *node,
                    const struct tnd_dims *shape, const int *in)
{
    for (int i = 0; i < shape->n; i++) {
        if (node->params.begin[i] != 0) {
            return TANDEM_NET_NONE;
        }
    }
    return tnd_dims_is_equal(&to->values[in[0]].shape, shape) ? in[0] : TANDEM_NET_NONE;
}

/* Whether indices are start, start + step, ..., all in range. */
static bool read_steps(const struct tnd_net *to, int indices, int64_t extent, int64_t *start,
                       int64_t *count, int64_t *step)
{
    const struct tnd_net_value *v = &to->values[indices];
    *count = tnd_dims_values(&v->shape);
    if (!tnd_match_constant(to, indices) || v->shape.n > 1 || *count < 1 || *count > 4096) {
        return false;
    }
    const struct tnd_array *array = to->values[v->base].known;
    const int64_t stride = v->shape.n == 0 ? 0 : v->strides[0];
    int64_t last = 0;
    if (!tnd_array_fill(array)) {
        return false;
    }
    *step = 1;
    for (int64_t i = 0; i < *count; i++) {
        int64_t at = tnd_array_integer(array, v->offset + i * stride);
        at += at < 0 ? extent : 0;
        if (at < 0 || at >= extent || (i > 1 && at - last != *step)) {
            return false;
        }
        *start = i == 0 ? at : *start;
        *step = i == 1 ? at - last : *step;
        last = at;
    }
    return *step != 0;
}

static int rule_gather(struct tnd_net *to, const struct tnd_net_node *node,
                       const struct tnd_dims *shape, const int *in)
{
    const int axis = node->params.axis;
    const bool drops = to->values[in[1]].shape.n == 0;
    int64_t start = 0;
    int64_t count = 0;
    int64_t step = 0;
    if (!read_steps(to, in[1], to->values[in[0]].shape.dims[axis], &start, &count, &step)) {
        return TANDEM_NET_NONE;
    }
    const int part = tnd_net_slice(to, in[0], axis, start, count, step);
    return drops ? tnd_net_reshape(to, part, shape) : part;
}

int tnd_pass_strength(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    struct tnd_net *to = rewrite->to;
    const struct tnd_net_value *result = &rewrite->from->values[node->output];
    switch (node->op) {
    case TND_NET_UNARY:
        return rule_unary(to, node, in);
    case TND_NET_CAST: {
        const int bytes = tnd_rule_to_byte(rewrite, node, in);
        return bytes != TANDEM_NET_NONE ? bytes : rule_cast(to, node, in, result->type);
    }
    case TND_NET_CONTRACT:
        return tnd_rule_of_bytes(rewrite, node, in);
    case TND_NET_BINARY:
        return rule_binary(to, node, in);
    case TND_NET_SELECT:
        return rule_select(to, in);
    case TND_NET_REDUCE:
        return rule_reduce(to, node, in);
    case TND_NET_CONCAT:
        return node->n_inputs == 1 ? in[0] : TANDEM_NET_NONE;
    case TND_NET_PAD:
        return rule_pad(to, node, &result->shape, in);
    case TND_NET_GATHER:
        return rule_gather(to, node, &result->shape, in);
    default:
        return TANDEM_NET_NONE;
    }
}
