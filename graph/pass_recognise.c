/* SPDX-License-Identifier: MIT
 * Pass "recognise": softmax, layer and rms norms, attention, silu and hard_swish, which exporters
 * and net_composites.c write as many operations, become one each. All but the last two a kernel
 * computes row by row, along the last dimensions alone. F32 and F64.
 *
 * Rules, s(..) being a sum and m(..) the largest value along a row of K values:
 * - exp(x - m(x)) / s(exp(x - m(x))) is softmax(x).
 * - y / sqrt(s(y * y) / K + e), or y times its reciprocal, is a norm: with y = z - s(z) / K the
 *   layer norm of z, else the rms norm of y.
 * - x / (1 + exp(-x)), or x times the inverse of that, is silu(x).
 * - x * min(max(x / 6 + 1/2, 0), 1) is hard_swish(x), with all numbers multiplied by the same one
 *   before the bounds and divided by it behind.
 * - softmax(q k * c + mask) v is attention; c, mask, or both may be missing. The mask is the same
 *   for all matrices. Nobody else reads what lies between, which no longer exists; where keys would
 *   have to be turned for the sake of a few queries, the products stay.
 *
 * Equal in exact arithmetic; roundings differ. With u half the distance from 1 to the next number,
 * each side is off from the exact result by at most (Higham, Accuracy and Stability of Numerical
 * Algorithms, chapter 3):
 * - softmax: relatively (|x - m(x)| + K + 5) u; the operations round x - m(x) before exp does.
 * - norms: relatively (K + 8) u of |y|, for layer norms with the error of y, (K + 2) u s(|z|) / K.
 * - silu: no rounding is added, and that of the inverse goes.
 * - hard_swish: 3 u |x|, as the operations, where the numbers are off by less than 2^-21.
 * - attention: the error of a score, (D + 2) u times the product of absolute values, is one of its
 *   weight, relatively; then a product of K terms.
 * That holds as long as no score overflows: attention multiplies queries by c first. A row of
 * -infinity alone gives zeros, where 0 / 0 gave NaN. */
#include <math.h>

#include "graph/pass_internal.h"

enum { FEW_QUERIES = 8 };

/* ---- rows ---- */

/* The first dimension of a shape's rows of k values; -1: none. */
static int row_dimension(const struct tnd_dims *shape, int64_t k)
{
    int64_t n = 1;
    int i = shape->n;
    while (i > 0 && n < k) {
        n *= shape->dims[--i];
    }
    return n == k ? i : -1;
}

/* Length of the rows that a node reduces: its last dimensions; 0: others. */
static int64_t row_of(const struct tnd_net *net, const struct tnd_net_node *reduce)
{
    const struct tnd_dims *shape = &net->values[reduce->inputs[0]].shape;
    int64_t k = 1;
    bool ended = false;
    for (int i = shape->n - 1; i >= 0; i--) {
        const bool is_in = (reduce->params.axes >> i & 1) != 0;
        if (shape->dims[i] == 1) {
            continue;
        }
        if (is_in && ended) {
            return 0;
        }
        k *= is_in ? shape->dims[i] : 1;
        ended = ended || !is_in;
    }
    return k;
}

/* The value that `value` repeats along rows of k values, one number per row; -1: none. */
static int row_number(const struct tnd_net *net, int value, int64_t k)
{
    const struct tnd_net_value *v = &net->values[value];
    const int first = row_dimension(&v->shape, k);
    int64_t stride = 1;
    if (first < 0 || v->offset != 0 || !tnd_net_is_row_type(v->type)) {
        return -1;
    }
    for (int i = v->shape.n - 1; i >= 0; i--) {
        if (v->shape.dims[i] == 1) {
            continue;
        }
        if (v->strides[i] != (i >= first ? 0 : stride)) {
            return -1;
        }
        stride *= i >= first ? 1 : v->shape.dims[i];
    }
    return stride == tnd_dims_values(&net->values[v->base].shape) ? v->base : -1;
}

/* Whether two values are the same numbers in the same order. */
static bool is_same(const struct tnd_net *net, int a, int b)
{
    return tnd_match_same(net, a, b) || (net->values[a].base == net->values[b].base &&
                                         tnd_match_whole(net, a) && tnd_match_whole(net, b));
}

/* Whether dimensions [first, last) of a view can be counted as one. */
static bool merges(const struct tnd_net_value *v, int first, int last)
{
    int64_t next = -1;
    for (int i = last - 1; i >= first; i--) {
        if (v->shape.dims[i] != 1) {
            if (next >= 0 && v->strides[i] != next) {
                return false;
            }
            next = v->strides[i] * v->shape.dims[i];
        }
    }
    return true;
}

/* A value as a view {1, rows, k}; TANDEM_NET_NONE: strides cannot express it. */
static int as_rows(struct tnd_net *net, int value, int64_t k)
{
    const struct tnd_net_value *v = &net->values[value];
    const int first = row_dimension(&v->shape, k);
    const int64_t n = tnd_dims_values(&v->shape);
    if (first < 0 || n <= 0 || !tnd_net_is_row_type(v->type) || !merges(v, 0, first) ||
        !merges(v, first, v->shape.n)) {
        return TANDEM_NET_NONE;
    }
    return tnd_net_reshape(net, value, &TND_DIMS(1, n / k, k));
}

static int as_before(struct tnd_net *net, int value, int like)
{
    const struct tnd_dims shape = net->values[like].shape; /* a copy: values move */
    return tnd_net_reshape(net, value, &shape);
}

/* ---- softmax ---- */

static int softmax(struct tnd_net *to, const struct tnd_net_node *node, const int *in)
{
    const struct tnd_net_node *e = tnd_match(to, in[0], TND_NET_UNARY, TANDEM_UNARY_EXP);
    const struct tnd_net_node *less =
        e == NULL ? NULL : tnd_match(to, e->inputs[0], TND_NET_BINARY, TANDEM_BINARY_SUB);
    if (node->params.kind != TANDEM_BINARY_DIV || less == NULL) {
        return TANDEM_NET_NONE;
    }
    for (int64_t k = 1, i = to->values[in[0]].shape.n - 1; i >= 0; i--) {
        k *= to->values[in[0]].shape.dims[i];
        const int sums = k > 0 ? row_number(to, in[1], k) : -1;
        const struct tnd_net_node *sum = tnd_match(to, sums, TND_NET_REDUCE, TANDEM_REDUCE_SUM);
        if (sum == NULL || row_of(to, sum) != k ||
            tnd_match(to, sum->inputs[0], TND_NET_UNARY, TANDEM_UNARY_EXP) != e) {
            continue;
        }
        const int tops = row_number(to, less->inputs[1], k);
        const struct tnd_net_node *top = tnd_match(to, tops, TND_NET_REDUCE, TANDEM_REDUCE_MAX);
        const int x = less->inputs[0];
        if (top == NULL || row_of(to, top) != k || !is_same(to, top->inputs[0], x)) {
            return TANDEM_NET_NONE;
        }
        const int rows = as_rows(to, x, k);
        return rows == TANDEM_NET_NONE ? rows : as_before(to, tnd_net_row_softmax(to, rows), in[0]);
    }
    return TANDEM_NET_NONE;
}

/* ---- numbers ---- */

/* The other operand and the number of an operation with a number; false: it is none. */
static bool with_number(const struct tnd_net *net, const struct tnd_net_node *node, bool swaps,
                        int *other, double *number)
{
    int64_t integer;
    for (int i = 1; i >= (swaps ? 0 : 1); i--) {
        if (tnd_match_uniform(net, node->inputs[i], number, &integer)) {
            *other = node->inputs[1 - i];
            return true;
        }
    }
    return false;
}

/* ---- norms ---- */

/* The value of which a value is the mean, along rows of *k values; -1: none. */
static int mean_of(const struct tnd_net *net, int value, int64_t *k)
{
    const struct tnd_net_node *by = tnd_match(net, value, TND_NET_BINARY, -1);
    const bool is_product = by != NULL && by->params.kind == TANDEM_BINARY_MUL;
    int sum;
    double number;
    if (by == NULL || (by->params.kind != TANDEM_BINARY_DIV && !is_product) ||
        !with_number(net, by, is_product, &sum, &number)) {
        return -1;
    }
    const struct tnd_net_node *reduce = tnd_match(net, sum, TND_NET_REDUCE, TANDEM_REDUCE_SUM);
    *k = reduce == NULL ? 0 : row_of(net, reduce);
    const double n = is_product ? number * (double)*k : number / (double)*k;
    return *k > 0 && fabs(n - 1) < 0x1p-22 ? reduce->inputs[0] : -1;
}

/* The value of which a value is the reciprocal, or square root; -1: none. */
static int inverse_of(const struct tnd_net *net, int value)
{
    const struct tnd_net_node *one = tnd_match(net, value, TND_NET_UNARY, TANDEM_UNARY_RECIPROCAL);
    const struct tnd_net_node *div = tnd_match(net, value, TND_NET_BINARY, TANDEM_BINARY_DIV);
    double number;
    int64_t integer;
    if (one != NULL) {
        return one->inputs[0];
    }
    return div != NULL && tnd_match_uniform(net, div->inputs[0], &number, &integer) && number == 1
               ? div->inputs[1]
               : -1;
}

/* The squares of which `value` is the root of mean plus epsilon; -1: none. */
static int root_of_mean(const struct tnd_net *net, int value, int64_t *k, double *epsilon)
{
    const struct tnd_net_node *root = tnd_match(net, value, TND_NET_UNARY, TANDEM_UNARY_SQRT);
    int mean = root == NULL ? -1 : root->inputs[0];
    const struct tnd_net_node *sum = tnd_match(net, mean, TND_NET_BINARY, TANDEM_BINARY_ADD);
    *epsilon = 0;
    return mean >= 0 && (sum == NULL || with_number(net, sum, true, &mean, epsilon)) &&
                   *epsilon >= 0 && *epsilon <= 1
               ? mean_of(net, mean, k)
               : -1;
}

/* The norm of `y` whose root is `by`, repeated along rows; `divides`: else it is the inverse. */
static int norm(struct tnd_net *to, int y, int by, bool divides)
{
    const struct tnd_dims shape = to->values[y].shape;
    double epsilon;
    int64_t k = 1;
    int64_t found;
    for (int i = shape.n - 1; i >= 0; i--) {
        k *= shape.dims[i];
        int root = k > 0 ? row_number(to, by, k) : -1;
        root = divides || root < 0 ? root : inverse_of(to, root);
        const int squares = root < 0 ? -1 : root_of_mean(to, root, &found, &epsilon);
        const struct tnd_net_node *square =
            tnd_match(to, squares, TND_NET_BINARY, TANDEM_BINARY_MUL);
        if (square == NULL || found != k || !is_same(to, square->inputs[0], y) ||
            !is_same(to, square->inputs[1], y)) {
            continue;
        }
        const struct tnd_net_node *less = tnd_match(to, y, TND_NET_BINARY, TANDEM_BINARY_SUB);
        const int means = less == NULL ? -1 : row_number(to, less->inputs[1], k);
        const int z = means < 0 ? -1 : mean_of(to, means, &found);
        const bool is_layer = z >= 0 && found == k && is_same(to, z, less->inputs[0]);
        const int rows = as_rows(to, is_layer ? less->inputs[0] : y, k);
        return rows == TANDEM_NET_NONE
                   ? rows
                   : as_before(to,
                               tnd_net_row_norm(to, is_layer ? TANDEM_NORM_LAYER : TANDEM_NORM_RMS,
                                                rows, epsilon),
                               y);
    }
    return TANDEM_NET_NONE;
}

/* ---- silu ---- */

/* The x of a value 1 + exp(-x); -1: none. Values in between have no other readers. */
static int logistic_of(const struct tnd_rewrite *rewrite, int value)
{
    const struct tnd_net *net = rewrite->to;
    const struct tnd_net_node *sum = tnd_match(net, value, TND_NET_BINARY, TANDEM_BINARY_ADD);
    int power;
    double number;
    if (sum == NULL || !tnd_rewrite_is_private(rewrite, value) ||
        !with_number(net, sum, true, &power, &number) || number != 1 ||
        !tnd_rewrite_is_private(rewrite, power)) {
        return -1;
    }
    const struct tnd_net_node *e = tnd_match(net, power, TND_NET_UNARY, TANDEM_UNARY_EXP);
    const struct tnd_net_node *neg =
        e == NULL ? NULL : tnd_match(net, e->inputs[0], TND_NET_UNARY, TANDEM_UNARY_NEG);
    return neg == NULL ? -1 : neg->inputs[0];
}

/* Matches x / (1 + exp(-x)), or x times the reciprocal. */
static int silu(const struct tnd_rewrite *rewrite, int x, int by, bool divides)
{
    struct tnd_net *to = rewrite->to;
    if (!divides) {
        by = tnd_rewrite_is_private(rewrite, by) ? inverse_of(to, by) : -1;
    }
    const int of = by < 0 ? -1 : logistic_of(rewrite, by);
    return of < 0 || !is_same(to, of, x) ? TANDEM_NET_NONE
                                         : tnd_net_unary(to, TANDEM_UNARY_SILU, x);
}

/* ---- hard_swish ---- */

/* A value as clamp(x * scale + offset, low, high) * factor. */
struct bounded {
    int x;
    double scale, offset, low, high, factor;
};

/* The operand of an operation of `kind` with a number, if its result has no other readers; -1:
 * none. */
static int peel(const struct tnd_rewrite *rewrite, int value, int kind, double *number)
{
    const struct tnd_net_node *node = tnd_match(rewrite->to, value, TND_NET_BINARY, kind);
    int other;
    return node != NULL &&
                   with_number(rewrite->to, node, kind != TANDEM_BINARY_DIV, &other, number) &&
                   tnd_rewrite_is_private(rewrite, value)
               ? other
               : -1;
}

/* Removes multiplications and divisions by numbers. */
static int peel_factor(const struct tnd_rewrite *rewrite, int value, double *factor)
{
    double number;
    int inner = peel(rewrite, value, TANDEM_BINARY_MUL, &number);
    const bool divides = inner < 0;
    inner = divides ? peel(rewrite, value, TANDEM_BINARY_DIV, &number) : inner;
    *factor = inner < 0 ? 1 : divides ? 1 / number : number;
    return inner < 0 ? value : inner;
}

static bool read_bounded(const struct tnd_rewrite *rewrite, int value, struct bounded *out)
{
    value = peel_factor(rewrite, value, &out->factor);
    const int bounded = peel(rewrite, value, TANDEM_BINARY_MIN, &out->high);
    if (bounded >= 0) {
        value = peel(rewrite, bounded, TANDEM_BINARY_MAX, &out->low);
    } else {
        value = peel(rewrite, value, TANDEM_BINARY_MAX, &out->low);
        value = value < 0 ? -1 : peel(rewrite, value, TANDEM_BINARY_MIN, &out->high);
    }
    value = value < 0 ? -1 : peel(rewrite, value, TANDEM_BINARY_ADD, &out->offset);
    out->x = value < 0 ? -1 : peel_factor(rewrite, value, &out->scale);
    return value >= 0;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 0x1p-21 * b;
}

/* x times bounds of x, times a number. */
static int by_bounds(const struct tnd_rewrite *rewrite, int x, int bounds, double factor)
{
    struct bounded b;
    if (!read_bounded(rewrite, bounds, &b) || !is_same(rewrite->to, b.x, x) || b.low != 0) {
        return TANDEM_NET_NONE;
    }
    factor *= b.factor;
    return is_near(b.high * factor, 1) && is_near(b.offset * factor, 0.5) &&
                   is_near(b.scale * factor, 1.0 / 6)
               ? tnd_net_unary(rewrite->to, TANDEM_UNARY_HARD_SWISH, x)
               : TANDEM_NET_NONE;
}

static int bounded_by_either(const struct tnd_rewrite *rewrite, const int *in, double factor)
{
    const int out = by_bounds(rewrite, in[0], in[1], factor);
    return out == TANDEM_NET_NONE ? by_bounds(rewrite, in[1], in[0], factor) : out;
}

/* Matches a product of x and a clamped x, perhaps multiplied or divided by a number afterwards. */
static int hard_swish(const struct tnd_rewrite *rewrite, const struct tnd_net_node *node,
                      const int *in)
{
    const struct tnd_net *to = rewrite->to;
    const bool divides = node->params.kind == TANDEM_BINARY_DIV;
    const struct tnd_net_node mapped = {.inputs = in};
    const int out = divides ? TANDEM_NET_NONE : bounded_by_either(rewrite, in, 1);
    double number;
    int value;
    if (out != TANDEM_NET_NONE || !with_number(to, &mapped, !divides, &value, &number)) {
        return out;
    }
    const struct tnd_net_node *product = tnd_match(to, value, TND_NET_BINARY, TANDEM_BINARY_MUL);
    return product != NULL && tnd_rewrite_is_private(rewrite, value)
               ? bounded_by_either(rewrite, product->inputs, divides ? 1 / number : number)
               : TANDEM_NET_NONE;
}

/* ---- attention ---- */

/* A mask {.., M, N} that is the same for all matrices, as {1, M, N}; TANDEM_NET_NONE: it is not. */
static int as_mask(struct tnd_net *net, int value, int64_t m, int64_t n)
{
    const struct tnd_dims shape = net->values[value].shape;
    int out = value;
    if (shape.n < 2 || shape.dims[shape.n - 2] != m || shape.dims[shape.n - 1] != n) {
        return TANDEM_NET_NONE;
    }
    for (int i = 0; i < shape.n - 2; i++) {
        if (shape.dims[i] != 1 && net->values[value].strides[i] != 0) {
            return TANDEM_NET_NONE;
        }
    }
    for (int i = 0; i < shape.n - 2; i++) {
        out = tnd_net_slice(net, out, i, 0, 1, 1);
    }
    return tnd_net_reshape(net, out, &TND_DIMS(1, m, n));
}

/* The operands of softmax(scores). */
struct scores {
    const struct tnd_net_node *product;
    int mask; /* TANDEM_NET_NONE: none */
    double scale;
};

static bool read_scores(const struct tnd_rewrite *rewrite, int value, struct scores *out)
{
    const struct tnd_net *to = rewrite->to;
    const struct tnd_net_node *sum = tnd_match(to, value, TND_NET_BINARY, TANDEM_BINARY_ADD);
    *out = (struct scores){.mask = TANDEM_NET_NONE, .scale = 1};
    if (sum != NULL) {
        const bool is_first = tnd_match(to, sum->inputs[0], TND_NET_CONTRACT, -1) != NULL ||
                              tnd_match(to, sum->inputs[0], TND_NET_BINARY, -1) != NULL;
        out->mask = sum->inputs[is_first ? 1 : 0];
        value = sum->inputs[is_first ? 0 : 1];
        if (!tnd_rewrite_is_private(rewrite, value)) {
            return false;
        }
    }
    const struct tnd_net_node *by = tnd_match(to, value, TND_NET_BINARY, -1);
    if (by != NULL) {
        const bool is_product = by->params.kind == TANDEM_BINARY_MUL;
        if ((!is_product && by->params.kind != TANDEM_BINARY_DIV) ||
            !with_number(to, by, is_product, &value, &out->scale) ||
            !tnd_rewrite_is_private(rewrite, value)) {
            return false;
        }
        out->scale = is_product ? out->scale : 1 / out->scale;
    }
    out->product = tnd_match(to, value, TND_NET_CONTRACT, -1);
    return out->product != NULL && isfinite(out->scale) && isfinite((float)out->scale);
}

static int attention(const struct tnd_rewrite *rewrite, const int *in)
{
    static const int turned[] = {0, 2, 1};
    static const int matrices[] = {1, 0, 2};
    struct tnd_net *to = rewrite->to;
    const struct tnd_net_node *weights = tnd_match(to, in[0], TND_NET_SOFTMAX, -1);
    struct scores scores;
    if (weights == NULL || !tnd_rewrite_is_private(rewrite, in[0]) ||
        !tnd_rewrite_is_private(rewrite, weights->inputs[0]) ||
        !read_scores(rewrite, weights->inputs[0], &scores)) {
        return TANDEM_NET_NONE;
    }
    const int q = scores.product->inputs[0];
    const int k = scores.product->inputs[1]; /* {B, D, N} */
    const struct tnd_dims shape = to->values[scores.product->output].shape;
    const struct tnd_net_value *of_v = &to->values[in[1]];
    const bool lie_as_rows = to->values[k].strides[1] == 1 && of_v->strides[2] == 1;
    if (!tnd_dims_is_equal(&to->values[in[0]].shape, &shape) ||
        to->values[weights->output].shape.dims[2] != shape.dims[2] ||
        tnd_dims_values(&shape) == 0 || tnd_dims_values(&of_v->shape) == 0 ||
        to->values[k].shape.dims[1] == 0 || (shape.dims[1] <= FEW_QUERIES && !lie_as_rows)) {
        return TANDEM_NET_NONE;
    }
    int mask = TANDEM_NET_NONE;
    if (scores.mask != TANDEM_NET_NONE) {
        mask = as_mask(to, scores.mask, shape.dims[1], shape.dims[2]);
        if (mask == TANDEM_NET_NONE) {
            return TANDEM_NET_NONE;
        }
    }
    const int keys = tnd_net_permute(to, k, turned);
    return tnd_net_permute(to, tnd_net_row_attention(to, q, keys, in[1], mask, scores.scale),
                           matrices);
}

/* x^3 as products, which round twice where the power rounds once: GELU by tanh has it. */
static int cube(struct tnd_net *to, const int *in)
{
    double c = 0;
    int64_t i = 0;
    return tnd_match_uniform(to, in[1], &c, &i) && c == 3
               ? tnd_net_binary(to, TANDEM_BINARY_MUL,
                                tnd_net_binary(to, TANDEM_BINARY_MUL, in[0], in[0]), in[0])
               : TANDEM_NET_NONE;
}

int tnd_pass_recognise(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    struct tnd_net *to = rewrite->to;
    if (!tnd_net_is_row_type(to->values[in[0]].type)) {
        return TANDEM_NET_NONE;
    }
    if (node->op == TND_NET_CONTRACT) {
        return attention(rewrite, in);
    }
    if (node->op == TND_NET_BINARY && node->params.kind == TANDEM_BINARY_POW) {
        return cube(to, in);
    }
    if (node->op != TND_NET_BINARY ||
        (node->params.kind != TANDEM_BINARY_DIV && node->params.kind != TANDEM_BINARY_MUL)) {
        return TANDEM_NET_NONE;
    }
    const bool divides = node->params.kind == TANDEM_BINARY_DIV;
    int out = softmax(to, node, in);
    out = out == TANDEM_NET_NONE ? norm(to, in[0], in[1], divides) : out;
    out = out == TANDEM_NET_NONE && !divides ? norm(to, in[1], in[0], false) : out;
    out = out == TANDEM_NET_NONE ? silu(rewrite, in[0], in[1], divides) : out;
    out = out == TANDEM_NET_NONE && !divides ? silu(rewrite, in[1], in[0], false) : out;
    return out == TANDEM_NET_NONE ? hard_swish(rewrite, node, in) : out;
}
