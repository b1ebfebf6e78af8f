/* SPDX-License-Identifier: MIT
 * Operators of ONNX: attention and rotary embedding. Floats of 16 bits are computed with as
 * float32. */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"

static int bin(struct tnd_onnx_call *call, enum tnd_binary kind, int a, int b)
{
    return tnd_net_binary(call->net, kind, a, b);
}

/* ---- attention ---- */

struct attention {
    int q; /* {batch, heads, rows, head}, as the next two */
    int k;
    int v;
    int scores; /* {batch, heads, rows, keys} */
    int shown;  /* the scores that the fourth result shows */
};

/* The keys or values of before, and those of now. */
static int with_past(struct tnd_onnx_call *call, int past, int now)
{
    const int both[] = {past, now};
    if (past == TND_NET_NONE) {
        return now;
    }
    if (tnd_onnx_shape_of(call, past)->n != 4) {
        return tnd_onnx_refuse(call, "past keys or values that are not of 4 dimensions");
    }
    return tnd_net_concat(call->net, both, 2, 2);
}

/* Releases of onnx after 1.18 have changed what attention of opset 23 means; where a model may mean
 * either it is refused. Newer opsets mean what the later releases say. */
enum { CLEAR_OPSET = 24 };

/* An operand as {batch, heads, rows, head}. Where the heads of 3 dimensions lie is said in two
 * ways: onnx 1.18 cuts {rows, heads * head} without turning it, later releases turn it. Both are
 * the same for one head and for one row. */
static int with_heads(struct tnd_onnx_call *call, int x, int64_t heads)
{
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    if (from.n == 4) {
        return x;
    }
    if (from.n != 3 || heads < 1 || from.dims[2] % heads != 0) {
        return tnd_onnx_refuse(call, "an operand of %d dimensions and %lld heads", from.n,
                               (long long)heads);
    }
    if (heads > 1 && from.dims[1] > 1 && call->opset < CLEAR_OPSET) {
        return tnd_onnx_refuse(call, "%lld heads in 3 dimensions: onnx leaves open where they lie",
                               (long long)heads);
    }
    static const int turned[] = {0, 2, 1, 3};
    const struct tnd_dims to = {4, {from.dims[0], from.dims[1], heads, from.dims[2] / heads}};
    return tnd_net_permute(call->net, tnd_net_reshape(call->net, x, &to), turned);
}

/* Keys or values of fewer heads than queries: each serves a group of them, one after the other. */
static int for_groups(struct tnd_onnx_call *call, int x, int64_t q_heads)
{
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    if (x == TND_NET_NONE || from.dims[1] == q_heads || from.dims[1] == 1) {
        return x;
    }
    const struct tnd_dims split = {5, {from.dims[0], from.dims[1], 1, from.dims[2], from.dims[3]}};
    struct tnd_dims wide = split;
    const struct tnd_dims joined = {4, {from.dims[0], q_heads, from.dims[2], from.dims[3]}};
    wide.dims[2] = q_heads / from.dims[1];
    x = tnd_net_expand(call->net, tnd_net_reshape(call->net, x, &split), &wide);
    return tnd_net_reshape(call->net, x, &joined);
}

static bool read_operands(struct tnd_onnx_call *call, struct attention *it)
{
    const int64_t q_heads = tnd_onnx_int(call, "q_num_heads", 0);
    const int64_t kv_heads = tnd_onnx_int(call, "kv_num_heads", 0);
    it->q = with_heads(call, tnd_onnx_in(call, 0), q_heads);
    it->k = with_heads(call, tnd_onnx_in(call, 1), kv_heads);
    it->v = with_heads(call, tnd_onnx_in(call, 2), kv_heads);
    if (call->net->status != TANDEM_OK) {
        return false;
    }
    const int64_t of_q = tnd_onnx_shape_of(call, it->q)->dims[1];
    const int64_t of_k = tnd_onnx_shape_of(call, it->k)->dims[1];
    const bool fits =
        of_q == of_k || of_k == 1 || (call->opset >= CLEAR_OPSET && of_k > 0 && of_q % of_k == 0);
    if (of_k != tnd_onnx_shape_of(call, it->v)->dims[1] || !fits) {
        (void)tnd_onnx_refuse(call,
                              "%lld heads of queries, %lld of keys: which ones belong "
                              "together onnx leaves open",
                              (long long)of_q, (long long)of_k);
        return false;
    }
    it->k = with_past(call, tnd_onnx_in(call, 4), it->k);
    it->v = with_past(call, tnd_onnx_in(call, 5), it->v);
    return call->net->status == TANDEM_OK;
}

/* Scores where a truth value says so, -inf elsewhere. */
static int hide(struct tnd_onnx_call *call, int scores, int is_seen)
{
    return tnd_net_select(call->net, is_seen, scores,
                          tnd_onnx_scalar(call, scores, -(double)INFINITY));
}

/* A row sees keys up to its own place, which is behind those of the past. */
static int hide_later(struct tnd_onnx_call *call, int scores)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, scores);
    const struct tnd_dims column = {2, {shape.dims[2], 1}};
    const int past = tnd_onnx_in(call, 4);
    int rows = tnd_net_reshape(call->net, tnd_onnx_counting(call, shape.dims[2]), &column);
    if (past != TND_NET_NONE) {
        const double n = (double)tnd_onnx_shape_of(call, past)->dims[2];
        rows = tnd_onnx_with(call, TND_BINARY_ADD, rows, n);
    }
    return hide(call, scores,
                bin(call, TND_BINARY_LESS_EQUAL, tnd_onnx_counting(call, shape.dims[3]), rows));
}

static int mask(struct tnd_onnx_call *call, int scores)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, scores);
    const bool is_causal = tnd_onnx_int(call, "is_causal", 0) != 0;
    int given = tnd_onnx_in(call, 3);
    if (is_causal && given != TND_NET_NONE && call->opset < CLEAR_OPSET) {
        return tnd_onnx_refuse(call, "is_causal beside a mask");
    }
    if (is_causal) {
        scores = hide_later(call, scores);
    }
    if (given == TND_NET_NONE) {
        return scores;
    }
    const bool is_logical = tnd_onnx_type_of(call, given) == TND_DTYPE_BOOL;
    given = tnd_net_expand(call->net, given, &shape);
    return is_logical ? hide(call, scores, given)
                      : bin(call, TND_BINARY_ADD, scores,
                            tnd_net_cast(call->net, given, tnd_onnx_type_of(call, scores)));
}

static int softmax(struct tnd_onnx_call *call, int x)
{
    struct tnd_net *net = call->net;
    const int most = tnd_net_reduce(net, TND_REDUCE_MAX, x, 8);
    const int e = tnd_net_unary(net, TND_UNARY_EXP, bin(call, TND_BINARY_SUB, x, most));
    return bin(call, TND_BINARY_DIV, e, tnd_net_reduce(net, TND_REDUCE_SUM, e, 8));
}

static void score(struct tnd_onnx_call *call, struct attention *it)
{
    static const int swap[] = {0, 1, 3, 2};
    struct tnd_net *net = call->net;
    const int64_t mode = tnd_onnx_int(call, "qk_matmul_output_mode", 0);
    const double softcap = (double)tnd_onnx_float(call, "softcap", 0.0F);
    const double head = (double)tnd_onnx_shape_of(call, it->q)->dims[3];
    const double scale = tnd_onnx_has(call, "scale") ? (double)tnd_onnx_float(call, "scale", 1.0F)
                                                     : 1.0 / sqrt(head);
    const int64_t heads = tnd_onnx_shape_of(call, it->q)->dims[1];
    const int k = tnd_net_permute(net, tnd_onnx_wide(call, for_groups(call, it->k, heads)), swap);
    int x = tnd_onnx_with(call, TND_BINARY_MUL, tnd_onnx_wide(call, it->q), sqrt(scale));
    x = tnd_net_matmul(net, x, tnd_onnx_with(call, TND_BINARY_MUL, k, sqrt(scale)));
    it->shown = x;
    if (softcap > 0.0) {
        x = tnd_net_unary(net, TND_UNARY_TANH, tnd_onnx_with(call, TND_BINARY_DIV, x, softcap));
        x = tnd_onnx_with(call, TND_BINARY_MUL, x, softcap);
    }
    it->shown = mode == 1 ? x : it->shown;
    x = mask(call, x);
    it->shown = mode == 2 ? x : it->shown;
    x = x == TND_NET_NONE ? x : softmax(call, x);
    it->shown = mode == 3 ? x : it->shown;
    it->scores = x;
    const bool has_mask =
        tnd_onnx_in(call, 3) != TND_NET_NONE || tnd_onnx_int(call, "is_causal", 0) != 0;
    const bool is_open = call->opset < CLEAR_OPSET && call->n_out > 3 && has_mask &&
                         (mode == 1 || (mode == 2 && softcap > 0.0));
    if (mode < 0 || mode > 3 || is_open) {
        (void)tnd_onnx_refuse(call,
                              is_open ? "qk_matmul_output_mode %lld beside a mask: onnx "
                                        "leaves open what it shows"
                                      : "qk_matmul_output_mode %lld",
                              (long long)mode);
    }
}

/* {batch, heads, rows, head} -> {batch, rows, heads * head} */
static int joined_heads(struct tnd_onnx_call *call, int y)
{
    static const int swap[] = {0, 2, 1, 3};
    const struct tnd_dims *from = tnd_onnx_shape_of(call, y);
    if (y == TND_NET_NONE) {
        return y;
    }
    const struct tnd_dims to = {3, {from->dims[0], from->dims[2], from->dims[1] * from->dims[3]}};
    return tnd_net_reshape(call->net, tnd_net_permute(call->net, y, swap), &to);
}

static void build_attention(struct tnd_onnx_call *call)
{
    struct attention it = {0};
    const int64_t precision = tnd_onnx_int(call, "softmax_precision", 1);
    if (precision != 1 && precision != 10 && precision != 16) {
        (void)tnd_onnx_refuse(call, "softmax_precision %lld, expected float32 or less",
                              (long long)precision);
        return;
    }
    if (!read_operands(call, &it)) {
        return;
    }
    const enum tnd_dtype type = tnd_onnx_type_of(call, it.q);
    score(call, &it);
    const int64_t heads = tnd_onnx_shape_of(call, it.q)->dims[1];
    int y =
        tnd_net_matmul(call->net, it.scores, tnd_onnx_wide(call, for_groups(call, it.v, heads)));
    y = tnd_onnx_shape_of(call, tnd_onnx_in(call, 0))->n == 3 ? joined_heads(call, y) : y;
    const int results[] = {tnd_net_cast(call->net, y, type), it.k, it.v,
                           tnd_net_cast(call->net, it.shown, type)};
    memcpy(call->out, results, (size_t)(call->n_out < 4 ? call->n_out : 4) * sizeof(results[0]));
}

/* ---- rotary embedding ---- */

/* A view of {batch, a, b, head}, whose last dimension begins to turn. */
struct rotary {
    int x;
    int64_t half; /* pairs that turn */
    int64_t step; /* from one value of a kind to the next: 2 where the pairs are interleaved */
    bool has_rows_first; /* {batch, rows, heads, head} */
};

/* Sines or cosines of each row, as they broadcast with the operand. */
static int angles(struct tnd_onnx_call *call, const struct rotary *it, int list)
{
    const int positions = tnd_onnx_in(call, 3);
    if (positions != TND_NET_NONE && tnd_onnx_shape_of(call, list)->n == 2) {
        list = tnd_net_gather(call->net, list, positions, 0);
    }
    const struct tnd_dims from = *tnd_onnx_shape_of(call, list);
    if (from.n != 3 || from.dims[2] < it->half) {
        return tnd_onnx_refuse(call, "angles of %d dimensions, fewer than %lld of them", from.n,
                               (long long)it->half);
    }
    struct tnd_dims to = {4, {from.dims[0], 1, from.dims[1], it->half}};
    if (it->has_rows_first) {
        to.dims[1] = from.dims[1];
        to.dims[2] = 1;
    }
    list = tnd_net_slice(call->net, list, 2, 0, it->half, 1);
    return tnd_net_reshape(call->net, tnd_onnx_wide(call, list), &to);
}

/* Both halves, joined as they lay. */
static int join(struct tnd_onnx_call *call, const struct rotary *it, int a, int b)
{
    const int both[] = {a, b};
    if (it->step == 1 || a == TND_NET_NONE || b == TND_NET_NONE) {
        return tnd_net_concat(call->net, both, 2, 3);
    }
    struct tnd_dims pair = *tnd_onnx_shape_of(call, a);
    struct tnd_dims flat = pair;
    pair.dims[pair.n++] = 1;
    flat.dims[3] *= 2;
    const int split[] = {tnd_net_reshape(call->net, a, &pair),
                         tnd_net_reshape(call->net, b, &pair)};
    return tnd_net_reshape(call->net, tnd_net_concat(call->net, split, 2, 4), &flat);
}

static int turn(struct tnd_onnx_call *call, const struct rotary *it)
{
    struct tnd_net *net = call->net;
    const int64_t head = tnd_onnx_shape_of(call, it->x)->dims[3];
    const int cosine = angles(call, it, tnd_onnx_in(call, 1));
    const int sine = angles(call, it, tnd_onnx_in(call, 2));
    const int a = tnd_net_slice(net, it->x, 3, 0, it->half, it->step);
    const int b = tnd_net_slice(net, it->x, 3, it->step == 1 ? it->half : 1, it->half, it->step);
    const int real = bin(call, TND_BINARY_SUB, bin(call, TND_BINARY_MUL, cosine, a),
                         bin(call, TND_BINARY_MUL, sine, b));
    const int other = bin(call, TND_BINARY_ADD, bin(call, TND_BINARY_MUL, sine, a),
                          bin(call, TND_BINARY_MUL, cosine, b));
    const int turned = join(call, it, real, other);
    if (2 * it->half == head) {
        return turned;
    }
    const int parts[] = {turned,
                         tnd_net_slice(net, it->x, 3, 2 * it->half, head - 2 * it->half, 1)};
    return tnd_net_concat(net, parts, 2, 3);
}

static void build_rotary(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const int64_t heads = tnd_onnx_int(call, "num_heads", 0);
    const int64_t turning = tnd_onnx_int(call, "rotary_embedding_dim", 0);
    struct tnd_dims split = shape;
    if (shape.n == 3 && heads > 0 && shape.dims[2] % heads == 0) {
        split = (struct tnd_dims){4, {shape.dims[0], shape.dims[1], heads, shape.dims[2] / heads}};
    }
    const int64_t n = turning == 0 ? split.dims[3] : turning;
    if (split.n != 4 || n < 2 || n > split.dims[3] || n % 2 != 0) {
        (void)tnd_onnx_refuse(call, "%d dimensions, %lld heads, %lld values that turn", shape.n,
                              (long long)heads, (long long)n);
        return;
    }
    const struct rotary it = {.x = tnd_net_reshape(call->net, tnd_onnx_wide(call, x), &split),
                              .half = n / 2,
                              .step = tnd_onnx_int(call, "interleaved", 0) != 0 ? 2 : 1,
                              .has_rows_first = shape.n == 3};
    if (it.x != TND_NET_NONE) {
        call->out[0] = tnd_net_cast(call->net, tnd_net_reshape(call->net, turn(call, &it), &shape),
                                    tnd_onnx_type_of(call, x));
    }
}

const struct tnd_onnx_op tnd_onnx_attention[] = {
    {"Attention", build_attention, 0, "3-6>1-4"},
    {"RotaryEmbedding", build_rotary, 0, "3-4"},
    {NULL, NULL, 0, NULL},
};
