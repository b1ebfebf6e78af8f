/* SPDX-License-Identifier: MIT
 * Operators of ONNX: attention and rotary embedding. Floats of 16 bits are computed with as
 * float32. */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"

/* ---- attention ---- */

struct attention {
    int q; /* {batch, heads, rows, head}, as the next two */
    int k;
    int v;
    int scores; /* {batch, heads, rows, keys} */
    int shown;  /* the scores that the fourth result shows */
};

int tnd_onnx_with_past(struct tnd_onnx_call *call, int past, int now)
{
    const int both[] = {past, now};
    if (past == TANDEM_NET_NONE) {
        return now;
    }
    if (tnd_onnx_shape_of(call, past)->n != 4) {
        return tnd_onnx_refuse(call, "past keys or values that are not of 4 dimensions");
    }
    return tnd_net_concat(call->net, both, 2, 2);
}

/* An operand as {batch, heads, rows, head}. 3 dimensions are {batch, rows, heads * head}, as
 * ONNX specifies since release 1.19; the test data of 1.18, with the same opset, split them
 * differently. */
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
    static const int turned[] = {0, 2, 1, 3};
    const struct tnd_dims to = {4, {from.dims[0], from.dims[1], heads, from.dims[2] / heads}};
    return tnd_net_permute(call->net, tnd_net_reshape(call->net, x, &to), turned);
}

int tnd_onnx_for_groups(struct tnd_onnx_call *call, int x, int64_t heads)
{
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    if (x == TANDEM_NET_NONE || from.dims[1] == heads) {
        return x;
    }
    const struct tnd_dims split = {5, {from.dims[0], from.dims[1], 1, from.dims[2], from.dims[3]}};
    struct tnd_dims wide = split;
    const struct tnd_dims joined = {4, {from.dims[0], heads, from.dims[2], from.dims[3]}};
    wide.dims[2] = heads / from.dims[1];
    x = tnd_net_expand(call->net, tnd_net_reshape(call->net, x, &split), &wide);
    return tnd_net_reshape(call->net, x, &joined);
}

/* As tnd_onnx_for_groups, but one head stays as it is: products broadcast it. */
static int for_groups(struct tnd_onnx_call *call, int x, int64_t heads)
{
    return tnd_onnx_shape_of(call, x)->dims[1] == 1 ? x : tnd_onnx_for_groups(call, x, heads);
}

static bool read_operands(struct tnd_onnx_call *call, struct attention *it)
{
    const int64_t q_heads = tnd_onnx_int(call, "q_num_heads", 0);
    const int64_t kv_heads = tnd_onnx_int(call, "kv_num_heads", 0);
    it->q = with_heads(call, tnd_onnx_in(call, 0), q_heads);
    it->k = with_heads(call, tnd_onnx_in(call, 1), kv_heads);
    it->v = with_heads(call, tnd_onnx_in(call, 2), kv_heads);
    const int counts = tnd_onnx_in(call, 6);
    if (counts != TANDEM_NET_NONE && tnd_onnx_in(call, 4) != TANDEM_NET_NONE) {
        (void)tnd_onnx_refuse(call, "counts of keys beside keys of before");
    }
    if (call->net->status != TANDEM_OK) {
        return false;
    }
    const int64_t of_q = tnd_onnx_shape_of(call, it->q)->dims[1];
    const int64_t of_k = tnd_onnx_shape_of(call, it->k)->dims[1];
    if (of_k != tnd_onnx_shape_of(call, it->v)->dims[1] || of_k < 1 || of_q % of_k != 0) {
        (void)tnd_onnx_refuse(call, "%lld heads of queries, %lld of keys", (long long)of_q,
                              (long long)of_k);
        return false;
    }
    it->k = tnd_onnx_with_past(call, tnd_onnx_in(call, 4), it->k);
    it->v = tnd_onnx_with_past(call, tnd_onnx_in(call, 5), it->v);
    return call->net->status == TANDEM_OK;
}

/* Keeps scores where `is_seen` is true, else -inf. */
static int hide(struct tnd_onnx_call *call, int scores, int is_seen)
{
    return tnd_net_select(call->net, is_seen, scores,
                          tnd_onnx_scalar(call, scores, -(double)INFINITY));
}

static int both(struct tnd_onnx_call *call, int a, int b)
{
    return a == TANDEM_NET_NONE ? b : tnd_onnx_binary(call, TANDEM_BINARY_AND, a, b);
}

/* Numbers 0, 1, .. as {n} or, `is_column`, {n, 1}. */
static int places(struct tnd_onnx_call *call, int64_t n, bool is_column)
{
    const struct tnd_dims shape = {is_column ? 2 : 1, {n, 1}};
    return tnd_net_reshape(call->net, tnd_onnx_counting(call, n), &shape);
}

/* Number of keys of each sample of the batch, {batch, 1, 1, 1}; TANDEM_NET_NONE: all. */
static int key_counts(struct tnd_onnx_call *call, const struct tnd_dims *scores)
{
    const struct tnd_dims to = {4, {scores->dims[0], 1, 1, 1}};
    return tnd_net_reshape(call->net, tnd_onnx_in(call, 6), &to);
}

/* Which keys a row sees: from `left` positions before its own to `right` after it (-1: all).
 * Positions count from the first key; rows are the last ones of a sample's keys, or follow the
 * past. */
static int window(struct tnd_onnx_call *call, const struct tnd_dims *scores, int64_t left,
                  int64_t right)
{
    const int past = tnd_onnx_in(call, 4);
    const int keys = places(call, scores->dims[3], false);
    int rows = places(call, scores->dims[2], true);
    int seen = TANDEM_NET_NONE;
    if (past != TANDEM_NET_NONE) {
        rows = tnd_onnx_with(call, TANDEM_BINARY_ADD, rows,
                             (double)tnd_onnx_shape_of(call, past)->dims[2]);
    } else if (tnd_onnx_in(call, 6) != TANDEM_NET_NONE) {
        const int counts = key_counts(call, scores);
        rows = tnd_onnx_binary(
            call, TANDEM_BINARY_ADD, rows,
            tnd_onnx_with(call, TANDEM_BINARY_SUB, counts, (double)scores->dims[2]));
    }
    if (right >= 0) {
        const int last = tnd_onnx_with(call, TANDEM_BINARY_ADD, rows, (double)right);
        seen = tnd_onnx_binary(call, TANDEM_BINARY_LESS_EQUAL, keys, last);
    }
    if (left >= 0) {
        const int first = tnd_onnx_with(call, TANDEM_BINARY_SUB, rows, (double)left);
        seen = both(call, seen, tnd_onnx_binary(call, TANDEM_BINARY_LESS_EQUAL, first, keys));
    }
    return seen;
}

/* Which keys rows see, by the attributes and the numbers of keys; TANDEM_NET_NONE: all. */
static int seen_keys(struct tnd_onnx_call *call, const struct tnd_dims *scores)
{
    const int64_t most = 1 << 30; /* beyond all positions */
    int64_t left = tnd_onnx_int(call, "left_window_size", -1);
    int64_t right = tnd_onnx_int(call, "right_window_size", -1);
    right = tnd_onnx_int(call, "is_causal", 0) != 0 ? 0 : right;
    if (left < -1 || right < -1) {
        return tnd_onnx_refuse(call, "a window from %lld to %lld", (long long)left,
                               (long long)right);
    }
    left = left > most ? -1 : left;
    right = right > most ? -1 : right;
    int seen = left >= 0 || right >= 0 ? window(call, scores, left, right) : TANDEM_NET_NONE;
    if (tnd_onnx_in(call, 6) != TANDEM_NET_NONE) {
        const int keys = places(call, scores->dims[3], false);
        seen = both(call, seen,
                    tnd_onnx_binary(call, TANDEM_BINARY_LESS, keys, key_counts(call, scores)));
    }
    return seen;
}

/* Pads a mask for fewer keys than there are; the others are hidden. */
static int padded_mask(struct tnd_onnx_call *call, int given, int64_t keys)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, given);
    const int64_t begin[TANDEM_NET_MAX_DIMS] = {0};
    int64_t end[TANDEM_NET_MAX_DIMS] = {0};
    if (shape.n < 1 || shape.dims[shape.n - 1] >= keys) {
        return given;
    }
    const bool is_logical = tnd_onnx_type_of(call, given) == TANDEM_DTYPE_BOOL;
    end[shape.n - 1] = keys - shape.dims[shape.n - 1];
    return tnd_net_pad(call->net, TANDEM_PAD_CONSTANT, given, begin, end,
                       tnd_onnx_scalar(call, given, is_logical ? 0.0 : -(double)INFINITY));
}

static int mask(struct tnd_onnx_call *call, int scores)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, scores);
    const int seen = seen_keys(call, &shape);
    int given = tnd_onnx_in(call, 3);
    scores = seen == TANDEM_NET_NONE ? scores : hide(call, scores, seen);
    if (given == TANDEM_NET_NONE) {
        return scores;
    }
    const bool is_logical = tnd_onnx_type_of(call, given) == TANDEM_DTYPE_BOOL;
    given = tnd_net_expand(call->net, padded_mask(call, given, shape.dims[3]), &shape);
    return is_logical
               ? hide(call, scores, given)
               : tnd_onnx_binary(call, TANDEM_BINARY_ADD, scores,
                                 tnd_net_cast(call->net, given, tnd_onnx_type_of(call, scores)));
}

/* Softmax of each row, computed in `precision`; a row that sees no key gives zeros. */
static int softmax(struct tnd_onnx_call *call, int x, enum tandem_dtype precision)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const enum tandem_dtype type = tnd_onnx_type_of(call, x);
    if (x == TANDEM_NET_NONE) {
        return x;
    }
    const struct tnd_dims rows = {3, {shape.dims[0] * shape.dims[1], shape.dims[2], shape.dims[3]}};
    x = tnd_net_reshape(net, tnd_net_cast(net, x, precision), &rows);
    return tnd_net_cast(net, tnd_net_reshape(net, tnd_net_row_softmax(net, x), &shape), type);
}

/* Products of queries and keys, each scaled by the square root of the scale. */
static int products(struct tnd_onnx_call *call, const struct attention *it)
{
    static const int swap[] = {0, 1, 3, 2};
    struct tnd_net *net = call->net;
    const struct tnd_dims *q = tnd_onnx_shape_of(call, it->q);
    const double scale = tnd_onnx_has(call, "scale") ? (double)tnd_onnx_float(call, "scale", 1.0F)
                                                     : 1.0 / sqrt((double)q->dims[3]);
    const int64_t heads = q->dims[1];
    const int k = tnd_net_permute(net, tnd_onnx_wide(call, for_groups(call, it->k, heads)), swap);
    const int x = tnd_onnx_with(call, TANDEM_BINARY_MUL, tnd_onnx_wide(call, it->q), sqrt(scale));
    return tnd_net_matmul(net, x, tnd_onnx_with(call, TANDEM_BINARY_MUL, k, sqrt(scale)));
}

static void score(struct tnd_onnx_call *call, struct attention *it, enum tandem_dtype precision)
{
    const int64_t mode = tnd_onnx_int(call, "qk_matmul_output_mode", 0);
    const double softcap = (double)tnd_onnx_float(call, "softcap", 0.0F);
    int x = products(call, it);
    it->shown = x;
    if (softcap > 0.0) {
        x = tnd_net_formula(call->net, "x, cap: tanh(x / cap) * cap", x, softcap);
    }
    it->shown = mode == 1 ? x : it->shown;
    x = mask(call, x);
    it->shown = mode == 2 ? x : it->shown;
    x = softmax(call, x, precision);
    it->shown = mode == 3 ? x : it->shown;
    it->scores = x;
    if (mode < 0 || mode > 3) {
        (void)tnd_onnx_refuse(call, "qk_matmul_output_mode %lld", (long long)mode);
    }
}

/* {batch, heads, rows, head} -> {batch, rows, heads * head} */
static int joined_heads(struct tnd_onnx_call *call, int y)
{
    static const int swap[] = {0, 2, 1, 3};
    const struct tnd_dims *from = tnd_onnx_shape_of(call, y);
    if (y == TANDEM_NET_NONE) {
        return y;
    }
    const struct tnd_dims to = {3, {from->dims[0], from->dims[2], from->dims[1] * from->dims[3]}};
    return tnd_net_reshape(call->net, tnd_net_permute(call->net, y, swap), &to);
}

static void build_attention(struct tnd_onnx_call *call)
{
    struct attention it = {0};
    const int64_t precision = tnd_onnx_int(call, "softmax_precision", 1);
    enum tandem_dtype wide = TANDEM_DTYPE_F32;
    if (precision < 0 || precision > TND_ONNX_BF16 ||
        !tnd_onnx_dtype((enum tnd_onnx_type)precision, &wide) ||
        tnd_dtype_kind(wide) != TND_KIND_FLOAT) {
        (void)tnd_onnx_refuse(call, "softmax_precision %lld, expected floats",
                              (long long)precision);
        return;
    }
    if (!read_operands(call, &it)) {
        return;
    }
    const enum tandem_dtype type = tnd_onnx_type_of(call, it.q);
    const bool is_double = type == TANDEM_DTYPE_F64 || wide == TANDEM_DTYPE_F64;
    score(call, &it, is_double ? TANDEM_DTYPE_F64 : TANDEM_DTYPE_F32);
    const int64_t heads = tnd_onnx_shape_of(call, it.q)->dims[1];
    int y =
        tnd_net_matmul(call->net, it.scores, tnd_onnx_wide(call, for_groups(call, it.v, heads)));
    y = tnd_onnx_shape_of(call, tnd_onnx_in(call, 0))->n == 3 ? joined_heads(call, y) : y;
    const int results[] = {tnd_net_cast(call->net, y, type), it.k, it.v,
                           tnd_net_cast(call->net, it.shown, type)};
    memcpy(call->out, results, (size_t)(call->n_out < 4 ? call->n_out : 4) * sizeof(results[0]));
}

/* ---- attention with graphs of its own ---- */

/* Applies an inner graph of the node to a value, keeping type and shape; without such a graph
 * returns the value. */
static int modified(struct tnd_onnx_call *call, const char *name, int x)
{
    if (x == TANDEM_NET_NONE || !tnd_onnx_has(call, name)) {
        return x;
    }
    const struct tnd_onnx_graph *graph = tnd_onnx_graph_of(call, name);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    int y = TANDEM_NET_NONE;
    if (graph == NULL || !tnd_onnx_inner(call, graph, &x, 1, &y, 1)) {
        return TANDEM_NET_NONE;
    }
    return tnd_dims_is_equal(tnd_onnx_shape_of(call, y), &shape) &&
                   tnd_onnx_type_of(call, y) == tnd_onnx_type_of(call, x)
               ? y
               : tnd_onnx_refuse(call, "%s gives another type or shape than it takes", name);
}

static void build_flex_attention(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    struct attention it = {0};
    const enum tandem_dtype type = tnd_onnx_type_of(call, tnd_onnx_in(call, 0));
    const int64_t precision = tnd_onnx_int(call, "softmax_precision", 0);
    enum tandem_dtype wide = type == TANDEM_DTYPE_F64 ? TANDEM_DTYPE_F64 : TANDEM_DTYPE_F32;
    if (precision < 0 || precision > TND_ONNX_BF16 ||
        (precision != 0 && !tnd_onnx_dtype((enum tnd_onnx_type)precision, &wide)) ||
        tnd_dtype_kind(wide) != TND_KIND_FLOAT || tnd_dtype_kind(type) != TND_KIND_FLOAT) {
        (void)tnd_onnx_refuse(call, "softmax_precision %lld, expected floats",
                              (long long)precision);
        return;
    }
    if (!read_operands(call, &it)) {
        return;
    }
    const int64_t heads = tnd_onnx_shape_of(call, it.q)->dims[1];
    int x = modified(call, "score_mod", tnd_net_cast(net, products(call, &it), wide));
    x = softmax(call, x, wide == TANDEM_DTYPE_F64 ? TANDEM_DTYPE_F64 : TANDEM_DTYPE_F32);
    x = modified(call, "prob_mod", tnd_net_cast(net, x, wide));
    const int y = tnd_net_matmul(
        net, tnd_onnx_wide(call, x),
        tnd_net_cast(net, for_groups(call, it.v, heads),
                     wide == TANDEM_DTYPE_F64 ? TANDEM_DTYPE_F64 : TANDEM_DTYPE_F32));
    call->out[0] = tnd_net_cast(net, y, type);
}

const struct tnd_onnx_op tnd_onnx_preview[] = {
    {"FlexAttention", build_flex_attention, 0, "3"},
    {NULL, NULL, 0, NULL},
};

/* ---- rotary embedding ---- */

/* A view {batch, a, b, head} whose last dimension is rotated, from its start. */
struct rotary {
    int x;
    int64_t half;        /* rotated pairs */
    int64_t step;        /* step between first (or second) values of pairs: 2 if interleaved */
    bool has_rows_first; /* {batch, rows, heads, head} */
};

/* Sines or cosines of each row, as they broadcast with the operand. */
static int angles(struct tnd_onnx_call *call, const struct rotary *it, int list)
{
    const int positions = tnd_onnx_in(call, 3);
    if (positions != TANDEM_NET_NONE && tnd_onnx_shape_of(call, list)->n == 2) {
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

/* Joins both halves in their original order. */
static int join(struct tnd_onnx_call *call, const struct rotary *it, int a, int b)
{
    const int both[] = {a, b};
    if (it->step == 1 || a == TANDEM_NET_NONE || b == TANDEM_NET_NONE) {
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
    const int real = tnd_net_formula(net, "cos, sin, a, b: cos * a - sin * b", cosine, sine, a, b);
    const int other = tnd_net_formula(net, "cos, sin, a, b: sin * a + cos * b", cosine, sine, a, b);
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
    if (it.x != TANDEM_NET_NONE) {
        call->out[0] = tnd_net_cast(call->net, tnd_net_reshape(call->net, turn(call, &it), &shape),
                                    tnd_onnx_type_of(call, x));
    }
}

const struct tnd_onnx_op tnd_onnx_attention[] = {
    {"Attention", build_attention, 0, "3-6>1-4 24:3-7>1-4"},
    {"RotaryEmbedding", build_rotary, 0, "3-4"},
    {NULL, NULL, 0, NULL},
};
