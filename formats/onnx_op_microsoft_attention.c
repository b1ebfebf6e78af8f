/* SPDX-License-Identifier: MIT
 * Operators of the domain com.microsoft: attention as ONNX Runtime's optimiser, its quantiser and
 * its exporters of language models write it, and rotary embedding. Floats of 16 bits are computed
 * with as float32. Source of what they mean:
 * https://github.com/microsoft/onnxruntime/blob/v1.22.0/docs/ContribOperators.md */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"

/* One attention: queries, keys and values with the past in front, and what is added to scores. */
struct attention {
    int q;    /* {batch, heads, rows, size} */
    int k;    /* {batch, heads or fewer, keys, size} */
    int v;    /* {batch, heads or fewer, keys, size of a value} */
    int mask; /* broadcasts to {batch, heads, rows, keys}; TANDEM_NET_NONE: none */
    int64_t batch, heads, rows, keys;
    double scale;
    double softcap; /* 0: none */
};

static struct tnd_onnx_attribute integer(const char *name, int64_t value)
{
    return (struct tnd_onnx_attribute){
        .name = name, .type = TND_ONNX_ATTRIBUTE_I64, .reference = "", .i = value};
}

static struct tnd_onnx_attribute number(const char *name, double value)
{
    return (struct tnd_onnx_attribute){
        .name = name, .type = TND_ONNX_ATTRIBUTE_F32, .reference = "", .f = (float)value};
}

/* ---- heads ---- */

/* {batch, rows, heads * size} as {batch, heads, rows, size}. */
static int by_head(struct tnd_onnx_call *call, int value, int64_t heads)
{
    static const int axes[] = {0, 2, 1, 3};
    const struct tnd_dims from = *tnd_onnx_shape_of(call, value);
    if (value == TANDEM_NET_NONE || from.n != 3 || heads < 1 || from.dims[2] % heads != 0) {
        return tnd_onnx_refuse(call, "an operand of %d dimensions for %lld heads", from.n,
                               (long long)heads);
    }
    const struct tnd_dims split = {4, {from.dims[0], from.dims[1], heads, from.dims[2] / heads}};
    return tnd_net_permute(call->net, tnd_net_reshape(call->net, value, &split), axes);
}

/* {batch, heads, rows, size} as {batch, rows, heads * size}. */
static int joined(struct tnd_onnx_call *call, int value)
{
    static const int axes[] = {0, 2, 1, 3};
    const struct tnd_dims from = *tnd_onnx_shape_of(call, value);
    const struct tnd_dims to = {3, {from.dims[0], from.dims[2], from.dims[1] * from.dims[3]}};
    return value == TANDEM_NET_NONE
               ? value
               : tnd_net_reshape(call->net, tnd_net_permute(call->net, value, axes), &to);
}

/* Part `i` of {batch, rows, heads, parts, size}, as {batch, heads, rows, size}. */
static int packed_part(struct tnd_onnx_call *call, int value, int64_t i)
{
    static const int axes[] = {0, 2, 1, 3};
    const struct tnd_dims from = *tnd_onnx_shape_of(call, value);
    const struct tnd_dims to = {4, {from.dims[0], from.dims[1], from.dims[2], from.dims[4]}};
    const int part = tnd_net_slice(call->net, value, 3, i, 1, 1);
    return tnd_net_permute(call->net, tnd_net_reshape(call->net, part, &to), axes);
}

/* {batch, heads, rows, size} as {batch * heads, rows, size}. */
static int flat(struct tnd_onnx_call *call, int value)
{
    const struct tnd_dims from = *tnd_onnx_shape_of(call, value);
    const struct tnd_dims to = {3, {from.dims[0] * from.dims[1], from.dims[2], from.dims[3]}};
    return value == TANDEM_NET_NONE ? value : tnd_net_reshape(call->net, value, &to);
}

/* Sizes of a batch, which queries, keys and values agree about; else refused. */
static bool read_sizes(struct tnd_onnx_call *call, struct attention *it)
{
    if (call->net->status != TANDEM_OK) {
        return false;
    }
    const struct tnd_dims q = *tnd_onnx_shape_of(call, it->q);
    const struct tnd_dims k = *tnd_onnx_shape_of(call, it->k);
    const struct tnd_dims v = *tnd_onnx_shape_of(call, it->v);
    if (q.n != 4 || k.n != 4 || v.n != 4 || k.dims[0] != q.dims[0] || v.dims[0] != q.dims[0] ||
        k.dims[1] < 1 || k.dims[1] != v.dims[1] || q.dims[1] % k.dims[1] != 0 ||
        k.dims[2] != v.dims[2] || k.dims[3] != q.dims[3] || q.dims[3] < 1) {
        char text[3][160];
        (void)tnd_onnx_refuse(call, "queries %s, keys %s, values %s", tnd_dims_text(&q, text[0]),
                              tnd_dims_text(&k, text[1]), tnd_dims_text(&v, text[2]));
        return false;
    }
    it->batch = q.dims[0];
    it->heads = q.dims[1];
    it->rows = q.dims[2];
    it->keys = k.dims[2];
    return true;
}

/* softmax(q k^T * scale + mask) v as {batch, rows, heads * size}, in the type of operand 0. */
static int attend(struct tnd_onnx_call *call, const struct attention *it)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims all = {4, {it->batch, it->heads, it->rows, it->keys}};
    int mask = it->mask == TANDEM_NET_NONE ? it->mask : tnd_net_expand(net, it->mask, &all);
    int y = TANDEM_NET_NONE;
    if (it->softcap > 0.0) {
        const struct tnd_onnx_attribute given[] = {number("scale", it->scale),
                                                   number("softcap", it->softcap)};
        const int in[] = {it->q, it->k, it->v, mask};
        tnd_onnx_build_as(call, "Attention", given, 2, in, 4, &y, 1);
    } else {
        const int k = tnd_onnx_for_groups(call, it->k, it->heads);
        const int v = tnd_onnx_for_groups(call, it->v, it->heads);
        const int64_t size = tnd_onnx_shape_of(call, v)->dims[3];
        const struct tnd_dims split = {4, {it->batch, it->heads, it->rows, size}};
        y = tnd_net_attention(net, flat(call, it->q), flat(call, k), flat(call, v),
                              flat(call, mask), it->scale);
        y = tnd_net_reshape(net, y, &split);
    }
    return tnd_onnx_narrow(call, joined(call, y), tnd_onnx_in(call, 0));
}

/* ---- masks ---- */

static int added(struct tnd_onnx_call *call, int mask, int more)
{
    return mask == TANDEM_NET_NONE
               ? more
               : tnd_net_formula(call->net, "mask, more?: mask + more", mask, more);
}

/* What is added to scores for a mask of 1 (keep) and 0, {batch, keys} or {batch, rows, keys}, or a
 * list {batch} of how many keys are kept. */
static int mask_of(struct tnd_onnx_call *call, int mask, const struct attention *it)
{
    struct tnd_net *net = call->net;
    const double low = (double)tnd_onnx_float(call, "mask_filter_value", -10000.0F);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, mask);
    struct tnd_dims to = {4, {it->batch, 1, 1, it->keys}};
    if (mask == TANDEM_NET_NONE) {
        return mask;
    }
    if (shape.n == 1 && shape.dims[0] == it->batch) {
        const struct tnd_dims upright = {2, {it->batch, 1}};
        const int at =
            tnd_net_cast(net, tnd_onnx_counting(call, it->keys), tnd_onnx_type_of(call, mask));
        mask = tnd_net_binary(net, TANDEM_BINARY_LESS, at, tnd_net_reshape(net, mask, &upright));
    } else if (shape.n == 3 && shape.dims[0] == it->batch && shape.dims[1] == it->rows &&
               shape.dims[2] == it->keys) {
        to.dims[2] = it->rows;
    } else if (shape.n != 2 || shape.dims[0] != it->batch || shape.dims[1] != it->keys) {
        char text[160];
        return tnd_onnx_refuse(call, "a mask %s, expected %lld, %lldx%lld or %lldx%lldx%lld",
                               tnd_dims_text(&shape, text), (long long)it->batch,
                               (long long)it->batch, (long long)it->keys, (long long)it->batch,
                               (long long)it->rows, (long long)it->keys);
    }
    mask = tnd_net_formula(net, "mask, low: (1 - float32(mask)) * low", mask, low);
    return tnd_net_reshape(net, mask, &to);
}

/* -infinity where a row does not see a key, 0 elsewhere. Row i sees keys up to `last` + i, at most
 * `window` of them (0: all). `last` {batch, 1} or one number, of int64. */
static int seen_mask(struct tnd_onnx_call *call, const struct attention *it, int last,
                     int64_t window)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims upright = {
        4, {tnd_onnx_shape_of(call, last)->n == 0 ? 1 : it->batch, 1, 1, 1}};
    const int keys = tnd_onnx_counting(call, it->keys);
    int own = tnd_net_reshape(net, tnd_onnx_counting(call, it->rows), &TND_DIMS(it->rows, 1));
    own = tnd_onnx_binary(call, TANDEM_BINARY_ADD, own, tnd_net_reshape(net, last, &upright));
    const int seen = tnd_net_formula(
        net, window > 0 ? "key, own, n: key <= own & own - n < key" : "key, own, n: key <= own",
        keys, own, (double)window);
    return tnd_net_select(net, seen, tnd_net_scalar(net, TANDEM_DTYPE_F32, 0.0),
                          tnd_net_scalar(net, TANDEM_DTYPE_F32, -INFINITY));
}

/* The mask of attribute `unidirectional`: rows are the last ones of the keys. */
static int causal(struct tnd_onnx_call *call, const struct attention *it)
{
    if (tnd_onnx_int(call, "unidirectional", 0) == 0) {
        return TANDEM_NET_NONE;
    }
    const double before = (double)(it->keys - it->rows);
    return seen_mask(call, it, tnd_net_scalar(call->net, TANDEM_DTYPE_I64, before), 0);
}

static double scale_of(struct tnd_onnx_call *call, const struct attention *it)
{
    const double given = (double)tnd_onnx_float(call, "scale", 0.0F);
    return given != 0.0 ? given : 1.0 / sqrt((double)tnd_onnx_shape_of(call, it->q)->dims[3]);
}

/* ---- Attention and QAttention ---- */

/* Keys (0) or values (1) of {2, batch, heads, past, size}. */
static int past_part(struct tnd_onnx_call *call, int past, int64_t i)
{
    struct tnd_dims to = *tnd_onnx_shape_of(call, past);
    if (past == TANDEM_NET_NONE) {
        return past;
    }
    if (to.n != 5 || to.dims[0] != 2) {
        return tnd_onnx_refuse(call, "a past that is not {2, batch, heads, tokens, size}");
    }
    to.n = 4;
    memmove(to.dims, to.dims + 1, 4 * sizeof(to.dims[0]));
    return tnd_net_reshape(call->net, tnd_net_slice(call->net, past, 0, i, 1, 1), &to);
}

/* Keys and values as the next call wants them, {2, batch, heads, tokens, size}. */
static int present_of(struct tnd_onnx_call *call, const struct attention *it)
{
    const struct tnd_dims from = *tnd_onnx_shape_of(call, it->k);
    struct tnd_dims to = {5, {1, from.dims[0], from.dims[1], from.dims[2], from.dims[3]}};
    if (call->net->status != TANDEM_OK ||
        !tnd_dims_is_equal(&from, tnd_onnx_shape_of(call, it->v))) {
        return tnd_onnx_refuse(call, "a past of keys and values of two sizes");
    }
    const int both[] = {tnd_net_reshape(call->net, it->k, &to),
                        tnd_net_reshape(call->net, it->v, &to)};
    return tnd_net_concat(call->net, both, 2, 0);
}

/* What follows the product `all`, {batch, tokens, values}: queries, keys and values, in this order,
 * beside each other. */
static void attend_projected(struct tnd_onnx_call *call, int all, int mask, int past, int bias)
{
    struct tnd_net *net = call->net;
    const int64_t heads = tnd_onnx_int(call, "num_heads", 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, all);
    int n_sizes = 0;
    const int64_t *given = tnd_onnx_ints(call, "qkv_hidden_sizes", &n_sizes);
    const int64_t third = shape.n == 3 ? shape.dims[2] / 3 : 0;
    const int64_t sizes[] = {n_sizes == 3 ? given[0] : third, n_sizes == 3 ? given[1] : third,
                             n_sizes == 3 ? given[2] : third};
    int part[3];
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        if (heads < 1 || shape.n != 3 || sizes[i] < 1 || sizes[i] > shape.dims[2] - at ||
            sizes[i] % heads != 0 || (n_sizes != 0 && n_sizes != 3) || sizes[0] != sizes[1]) {
            (void)tnd_onnx_refuse(call, "%lld heads, or sizes that do not fit its weights",
                                  (long long)heads);
            return;
        }
        part[i] = by_head(call, tnd_net_slice(net, all, 2, at, sizes[i], 1), heads);
        at += sizes[i];
    }
    if (tnd_onnx_int(call, "do_rotary", 0) != 0 ||
        tnd_onnx_int(call, "past_present_share_buffer", 0) != 0) {
        (void)tnd_onnx_refuse(call, "turned keys, or a past in a buffer that is shared");
        return;
    }
    past = tnd_onnx_wide(call, past);
    struct attention it = {.q = part[0],
                           .k = tnd_onnx_with_past(call, past_part(call, past, 0), part[1]),
                           .v = tnd_onnx_with_past(call, past_part(call, past, 1), part[2])};
    if (!read_sizes(call, &it)) {
        return;
    }
    it.scale = scale_of(call, &it);
    it.mask = added(call, mask_of(call, mask, &it), causal(call, &it));
    it.mask = added(call, it.mask, tnd_onnx_wide(call, bias));
    call->out[0] = attend(call, &it);
    if (call->n_out > 1) {
        call->out[1] = tnd_onnx_narrow(call, present_of(call, &it), tnd_onnx_in(call, 0));
    }
}

/* input {batch, tokens, in}, weights {in, queries + keys + values}, bias, mask, past, bias of
 * scores. */
static void build_attention(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int bias = tnd_onnx_in(call, 2);
    int all = tnd_net_matmul(net, tnd_onnx_wide(call, tnd_onnx_in(call, 0)),
                             tnd_onnx_wide(call, tnd_onnx_in(call, 1)));
    all = added(call, all, tnd_onnx_wide(call, bias));
    attend_projected(call, all, tnd_onnx_in(call, 3), tnd_onnx_in(call, 4), tnd_onnx_in(call, 5));
}

/* As build_attention, of integers: input, weights, bias, both scales, mask, both zero points,
 * past. */
static void build_integer_attention(struct tnd_onnx_call *call)
{
    const int in[] = {tnd_onnx_in(call, 0), tnd_onnx_in(call, 1), tnd_onnx_in(call, 3),
                      tnd_onnx_in(call, 4), tnd_onnx_in(call, 6), tnd_onnx_in(call, 7),
                      tnd_onnx_in(call, 2)};
    int all = TANDEM_NET_NONE;
    tnd_onnx_build_as(call, "com.microsoft.MatMulIntegerToFloat", NULL, 0, in, 7, &all, 1);
    /* (results are floats as the scale is, not integers as operand 0) */
    struct tnd_onnx_call inner = *call;
    inner.in = in + 2;
    inner.n_in = 1;
    attend_projected(&inner, all, tnd_onnx_in(call, 5), tnd_onnx_in(call, 8), TANDEM_NET_NONE);
    call->were_read |= inner.were_read;
}

/* ---- MultiHeadAttention ---- */

/* Adds `n` values of the bias, from `first` on, to an operand {batch, rows, n}. */
static int biased(struct tnd_onnx_call *call, int value, int64_t first)
{
    const int bias = tnd_onnx_in(call, 3);
    const struct tnd_dims *shape = tnd_onnx_shape_of(call, value);
    const struct tnd_dims *whole = tnd_onnx_shape_of(call, bias);
    value = tnd_onnx_wide(call, value);
    if (value == TANDEM_NET_NONE || bias == TANDEM_NET_NONE) {
        return value;
    }
    if (whole->n != 1 || shape->dims[2] > whole->dims[0] - first) {
        return tnd_onnx_refuse(call, "a bias of fewer values than queries, keys and values have");
    }
    return tnd_onnx_binary(
        call, TANDEM_BINARY_ADD, value,
        tnd_onnx_wide(call, tnd_net_slice(call->net, bias, 0, first, shape->dims[2], 1)));
}

/* Keys (1) or values (2) that are not packed: {batch, keys, heads * size}, to which the bias is
 * added, or {batch, heads, keys, size}, as they are. */
static int other_operand(struct tnd_onnx_call *call, int i, int64_t heads, int64_t first)
{
    const int value = tnd_onnx_in(call, i);
    return tnd_onnx_shape_of(call, value)->n == 4
               ? tnd_onnx_wide(call, value)
               : by_head(call, biased(call, value, first), heads);
}

static bool read_heads(struct tnd_onnx_call *call, struct attention *it)
{
    const int64_t heads = tnd_onnx_int(call, "num_heads", 0);
    const int q = tnd_onnx_in(call, 0);
    const int k = tnd_onnx_in(call, 1);
    const struct tnd_dims of_q = *tnd_onnx_shape_of(call, q);
    const struct tnd_dims of_k = *tnd_onnx_shape_of(call, k);
    const bool has_packed = of_q.n == 5 || of_k.n == 5;
    if (has_packed && tnd_onnx_in(call, 3) != TANDEM_NET_NONE) {
        (void)tnd_onnx_refuse(call, "a bias of packed operands");
    } else if (of_q.n == 5 && k == TANDEM_NET_NONE && of_q.dims[3] == 3) {
        const int wide = tnd_onnx_wide(call, q);
        it->q = packed_part(call, wide, 0);
        it->k = packed_part(call, wide, 1);
        it->v = packed_part(call, wide, 2);
    } else if (of_k.n == 5 && of_k.dims[3] == 2 && tnd_onnx_in(call, 2) == TANDEM_NET_NONE) {
        const int wide = tnd_onnx_wide(call, k);
        it->q = by_head(call, tnd_onnx_wide(call, q), heads);
        it->k = packed_part(call, wide, 0);
        it->v = packed_part(call, wide, 1);
    } else if (of_q.n == 3 && k != TANDEM_NET_NONE && tnd_onnx_in(call, 2) != TANDEM_NET_NONE) {
        it->q = by_head(call, biased(call, q, 0), heads);
        it->k = other_operand(call, 1, heads, of_q.dims[2]);
        it->v = other_operand(call, 2, heads, 2 * of_q.dims[2]);
    } else {
        (void)tnd_onnx_refuse(call, "queries of %d dimensions, keys of %d", of_q.n, of_k.n);
    }
    it->k = tnd_onnx_with_past(call, tnd_onnx_wide(call, tnd_onnx_in(call, 6)), it->k);
    it->v = tnd_onnx_with_past(call, tnd_onnx_wide(call, tnd_onnx_in(call, 7)), it->v);
    return read_sizes(call, it);
}

/* query, key, value, bias, mask, bias of scores, past keys, past values. */
static void build_multi_head(struct tnd_onnx_call *call)
{
    struct attention it = {.mask = TANDEM_NET_NONE};
    if (!read_heads(call, &it)) {
        return;
    }
    it.scale = scale_of(call, &it);
    it.mask = added(call, mask_of(call, tnd_onnx_in(call, 4), &it), causal(call, &it));
    it.mask = added(call, it.mask, tnd_onnx_wide(call, tnd_onnx_in(call, 5)));
    call->out[0] = attend(call, &it);
    for (int i = 1; i < call->n_out; i++) {
        call->out[i] = tnd_onnx_narrow(call, i == 1 ? it.k : it.v, tnd_onnx_in(call, 0));
    }
}

/* ---- rotary embedding ---- */

/* Turns a value by the caches of cosines and sines; `heads` 0: as their width says. */
static int turned(struct tnd_onnx_call *call, int value, int cosines, int sines, int positions,
                  int64_t heads)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, value);
    const struct tnd_dims cache = *tnd_onnx_shape_of(call, cosines);
    const bool is_interleaved = tnd_onnx_int(call, "interleaved", 0) != 0 ||
                                tnd_onnx_int(call, "rotary_interleaved", 0) != 0;
    int y = TANDEM_NET_NONE;
    if (cache.n != 2 || cache.dims[1] < 1 || (shape.n != 3 && shape.n != 4)) {
        return tnd_onnx_refuse(call, "%d dimensions, angles of %d", shape.n, cache.n);
    }
    const int64_t turning = 2 * cache.dims[1];
    heads = heads == 0 && shape.n == 3 ? shape.dims[2] / turning : heads;
    const struct tnd_onnx_attribute given[] = {integer("interleaved", is_interleaved),
                                               integer("num_heads", heads),
                                               integer("rotary_embedding_dim", turning)};
    const int in[] = {value, cosines, sines, positions};
    tnd_onnx_build_as(call, "RotaryEmbedding", given, 3, in, 4, &y, 1);
    return y;
}

/* input, positions {batch, rows} or the first one {1}, cosines, sines. */
static void build_rotary(struct tnd_onnx_call *call)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 0));
    const int64_t rows = shape.dims[shape.n == 4 ? 2 : 1];
    const struct tnd_dims all = {2, {shape.dims[0], rows}};
    int positions = tnd_onnx_in(call, 1);
    const struct tnd_dims by = *tnd_onnx_shape_of(call, positions);
    if (shape.n < 3 || shape.n > 4 || positions == TANDEM_NET_NONE ||
        tnd_onnx_int(call, "is_packed_batching", 0) != 0 ||
        tnd_onnx_float(call, "scale", 1.0F) != 1.0F) {
        (void)tnd_onnx_refuse(call, "packed batches, a scale, or %d dimensions", shape.n);
        return;
    }
    if (by.n < 2 && tnd_dims_values(&by) == 1) {
        const struct tnd_dims one = {0, {0}};
        positions =
            tnd_onnx_binary(call, TANDEM_BINARY_ADD, tnd_net_reshape(call->net, positions, &one),
                            tnd_onnx_counting(call, rows));
        positions = tnd_net_expand(call->net, positions, &all);
    } else if (!tnd_dims_is_equal(&by, &all)) {
        (void)tnd_onnx_refuse(call, "positions that are neither {1} nor {batch, rows}");
        return;
    }
    (void)tnd_onnx_int(call, "rotary_embedding_dim", 0); /* (the caches' width says it) */
    call->out[0] = turned(call, tnd_onnx_in(call, 0), tnd_onnx_in(call, 2), tnd_onnx_in(call, 3),
                          positions, tnd_onnx_int(call, "num_heads", 0));
}

/* ---- GroupQueryAttention ---- */

/* How the tokens of a call lie behind those of before. */
struct timeline {
    int64_t past;  /* tokens that the buffers of before have room for */
    int64_t total; /* tokens of before and now, of the longest text */
    int64_t room;  /* tokens that the results have room for */
    int before;    /* tokens of before: one number, or {batch, 1}, of int64 */
    int64_t known; /* the same where it is one number for all texts; else -1 */
};

static bool read_timeline(struct tnd_onnx_call *call, int64_t batch, int64_t rows,
                          struct timeline *out)
{
    const struct tnd_dims past = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 3));
    const struct tnd_dims lengths = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 5));
    const struct tnd_dims column = {2, {batch, 1}};
    int64_t total = 0;
    int n = 0;
    tnd_onnx_known(call, tnd_onnx_in(call, 6), "its total_sequence_length", &total, 1, &n);
    if (call->net->status != TANDEM_OK) {
        return false;
    }
    out->past = tnd_onnx_in(call, 3) == TANDEM_NET_NONE || past.n != 4 ? 0 : past.dims[2];
    out->total = total;
    out->room = total > out->past ? total : out->past;
    if (n != 1 || total < rows || total - rows > out->past || tnd_dims_values(&lengths) != batch) {
        (void)tnd_onnx_refuse(call,
                              "%lld tokens in all, %lld of now and room for %lld of before, or "
                              "lengths that are not one a text",
                              (long long)total, (long long)rows, (long long)out->past);
        return false;
    }
    /* A first call has nothing before it, however short its texts are. The only text of a batch is
     * its longest. */
    out->known = total == rows ? 0 : batch == 1 ? total - rows : -1;
    out->before = tnd_net_scalar(call->net, TANDEM_DTYPE_I64, (double)out->known);
    if (out->known < 0) {
        const int last = tnd_net_cast(call->net, tnd_onnx_in(call, 5), TANDEM_DTYPE_I64);
        out->before = tnd_net_reshape(
            call->net, tnd_onnx_with(call, TANDEM_BINARY_SUB, last, (double)(rows - 1)), &column);
    }
    return true;
}

/* Tokens of now {batch, heads, rows, size} written behind those of before. */
static int written(struct tnd_onnx_call *call, const struct timeline *time, int past, int now)
{
    static const int64_t none[4] = {0};
    struct tnd_net *net = call->net;
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, now);
    if (time->known == 0 && time->room == shape.dims[2]) {
        return now;
    }
    if (time->known > 0 && time->known == time->past) {
        return tnd_onnx_with_past(call, past, now);
    }
    const struct tnd_dims empty = {4, {shape.dims[0], shape.dims[1], time->room, shape.dims[3]}};
    const int64_t more[4] = {0, 0, time->room - time->past, 0};
    int room = past == TANDEM_NET_NONE || time->past == 0
                   ? tnd_net_expand(net, tnd_onnx_scalar(call, now, 0.0), &empty)
                   : tnd_net_pad(net, TANDEM_PAD_CONSTANT, past, none, more,
                                 tnd_onnx_scalar(call, now, 0.0));
    const struct tnd_dims list = {1, {shape.dims[0]}};
    const int first = tnd_net_expand(
        net, time->known >= 0 ? time->before : tnd_net_reshape(net, time->before, &list), &list);
    const int in[] = {room, now, first};
    int y = TANDEM_NET_NONE;
    tnd_onnx_build_as(call, "TensorScatter", NULL, 0, in, 3, &y, 1);
    return y;
}

/* Queries and keys turned by their positions: those that the node gives, or behind the past. */
static void turn(struct tnd_onnx_call *call, const struct timeline *time, struct attention *it)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, it->q);
    int positions = tnd_onnx_in(call, 9);
    if (positions == TANDEM_NET_NONE) {
        positions = tnd_onnx_binary(call, TANDEM_BINARY_ADD, time->before,
                                    tnd_onnx_counting(call, shape.dims[2]));
        positions = tnd_net_expand(call->net, positions, &TND_DIMS(shape.dims[0], shape.dims[2]));
    }
    const int cosines = tnd_onnx_in(call, 7);
    const int sines = tnd_onnx_in(call, 8);
    it->q = turned(call, it->q, cosines, sines, positions, 0);
    it->k = turned(call, it->k, cosines, sines, positions, 0);
}

/* Queries, keys and values of now: three operands, or one that holds them beside each other. */
static bool read_grouped(struct tnd_onnx_call *call, struct attention *it)
{
    const int64_t heads = tnd_onnx_int(call, "num_heads", 0);
    const int64_t kv_heads = tnd_onnx_int(call, "kv_num_heads", 0);
    const int q = tnd_onnx_wide(call, tnd_onnx_in(call, 0));
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, q);
    if (shape.n != 3 || heads < 1 || kv_heads < 1 || heads > shape.dims[2] ||
        kv_heads > shape.dims[2] ||
        (tnd_onnx_in(call, 1) == TANDEM_NET_NONE) != (tnd_onnx_in(call, 2) == TANDEM_NET_NONE)) {
        (void)tnd_onnx_refuse(call, "queries of %d dimensions, %lld heads, %lld of keys", shape.n,
                              (long long)heads, (long long)kv_heads);
        return false;
    }
    if (tnd_onnx_in(call, 1) != TANDEM_NET_NONE) {
        it->q = by_head(call, q, heads);
        it->k = by_head(call, tnd_onnx_wide(call, tnd_onnx_in(call, 1)), kv_heads);
        it->v = by_head(call, tnd_onnx_wide(call, tnd_onnx_in(call, 2)), kv_heads);
    } else {
        const int64_t size = shape.dims[2] / (heads + 2 * kv_heads);
        const int64_t at[] = {0, heads * size, (heads + kv_heads) * size};
        it->q = by_head(call, tnd_net_slice(call->net, q, 2, at[0], heads * size, 1), heads);
        it->k = by_head(call, tnd_net_slice(call->net, q, 2, at[1], kv_heads * size, 1), kv_heads);
        it->v = by_head(call, tnd_net_slice(call->net, q, 2, at[2], kv_heads * size, 1), kv_heads);
    }
    return read_sizes(call, it);
}

/* query, key, value, past keys, past values, length - 1 of each text, the longest length, cosines,
 * sines, positions, bias of scores. */
static void build_grouped(struct tnd_onnx_call *call)
{
    struct attention it = {.mask = TANDEM_NET_NONE};
    struct timeline time;
    const int64_t window = tnd_onnx_int(call, "local_window_size", -1);
    if (tnd_onnx_int(call, "smooth_softmax", 0) > 0 || tnd_onnx_in(call, 11) != TANDEM_NET_NONE) {
        (void)tnd_onnx_refuse(call, "sinks of heads");
        return;
    }
    if (!read_grouped(call, &it) || !read_timeline(call, it.batch, it.rows, &time)) {
        return;
    }
    if (tnd_onnx_int(call, "do_rotary", 0) != 0) {
        turn(call, &time, &it);
    }
    const int k = written(call, &time, tnd_onnx_wide(call, tnd_onnx_in(call, 3)), it.k);
    const int v = written(call, &time, tnd_onnx_wide(call, tnd_onnx_in(call, 4)), it.v);
    it.k = tnd_net_slice(call->net, k, 2, 0, time.total, 1);
    it.v = tnd_net_slice(call->net, v, 2, 0, time.total, 1);
    if (!read_sizes(call, &it)) {
        return;
    }
    it.scale = scale_of(call, &it);
    it.softcap = (double)tnd_onnx_float(call, "softcap", 0.0F);
    it.mask = added(call, seen_mask(call, &it, time.before, window > 0 ? window : 0),
                    tnd_onnx_wide(call, tnd_onnx_in(call, 10)));
    call->out[0] = attend(call, &it);
    for (int i = 1; i < call->n_out; i++) {
        call->out[i] = tnd_onnx_narrow(call, i == 1 ? k : v, tnd_onnx_in(call, 0));
    }
}

const struct tnd_onnx_op tnd_onnx_microsoft_attention[] = {
    {"Attention", build_attention, 0, "2-6>1-2"},
    {"QAttention", build_integer_attention, 0, "5-9>1-2"},
    {"MultiHeadAttention", build_multi_head, 0, "1-8>1-3"},
    {"GroupQueryAttention", build_grouped, 0, "7-12>1-3"},
    {"RotaryEmbedding", build_rotary, 0, "4"},
    {NULL, NULL, 0, NULL},
};
