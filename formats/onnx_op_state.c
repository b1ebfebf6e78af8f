/* SPDX-License-Identifier: MIT
 * Operators of ONNX that carry a state from one call to the next: linear attention, causal
 * convolution, caches that are written in place.
 * Formulas: https://github.com/onnx/onnx/blob/main/docs/Operators.md#LinearAttention,
 * #CausalConvWithState and #TensorScatter (release 1.23) */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"

#define MAX_STEPS 2048 /* tokens that linear attention is unrolled for */

/* ---- linear attention ---- */

struct linear {
    int64_t batch;
    int64_t steps;
    int64_t heads; /* of keys and values */
    int64_t group; /* query heads that share one of them */
    int64_t key;   /* values of a key, of a value */
    int64_t value;
    bool is_gated;
    bool is_delta;
    int q;     /* {batch, steps, heads, group, key} */
    int k;     /* {batch, steps, heads, 1, key} */
    int v;     /* {batch, steps, heads, 1, value} */
    int decay; /* exp of it, {batch, steps, heads, key or 1, 1} */
    int beta;  /* {batch, steps, heads or 1, 1, 1} */
    double scale;
};

/* An operand {batch, steps, values} with other dimensions behind the second. */
static int unpacked(struct tnd_onnx_call *call, int operand, const struct linear *it, int64_t a,
                    int64_t b, int64_t c)
{
    const int x = tnd_onnx_in(call, operand);
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    const struct tnd_dims to = {5, {it->batch, it->steps, a, b, c}};
    if (from.n != 3 || from.dims[0] != it->batch || from.dims[1] != it->steps ||
        from.dims[2] != a * b * c) {
        return tnd_onnx_refuse(call, "operand %d is not of %lldx%lldx%lld", operand,
                               (long long)it->batch, (long long)it->steps, (long long)(a * b * c));
    }
    return tnd_net_reshape(call->net, tnd_onnx_wide(call, x), &to);
}

static bool read_rule(struct tnd_onnx_call *call, struct linear *it)
{
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
    const char *rule = tnd_onnx_word(call, "update_rule", "gated_delta");
    int found = 0;
    while (found < 4 && strcmp(rules[found], rule) != 0) {
        found++;
    }
    it->is_gated = (found & 1) != 0;
    it->is_delta = (found & 2) != 0;
    if (found == 4 || it->is_gated != (tnd_onnx_in(call, 4) != TANDEM_NET_NONE) ||
        it->is_delta != (tnd_onnx_in(call, 5) != TANDEM_NET_NONE)) {
        (void)tnd_onnx_refuse(call, "update_rule '%.20s' with these operands", rule);
        return false;
    }
    return true;
}

static bool read_linear(struct tnd_onnx_call *call, struct linear *it)
{
    const struct tnd_dims q = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 0));
    const struct tnd_dims v = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 2));
    const int64_t q_heads = tnd_onnx_int(call, "q_num_heads", 0);
    const double scale = (double)tnd_onnx_float(call, "scale", 0.0F);
    it->heads = tnd_onnx_int(call, "kv_num_heads", 0);
    (void)tnd_onnx_int(call, "chunk_size", 64); /* (how it may be computed, not what) */
    if (q.n != 3 || v.n != 3 || it->heads < 1 || q_heads < 1 || q_heads % it->heads != 0 ||
        q.dims[2] < q_heads || q.dims[2] % q_heads != 0 || v.dims[2] % it->heads != 0 ||
        q.dims[1] < 1 || q.dims[1] > MAX_STEPS) {
        (void)tnd_onnx_refuse(call, "%lld and %lld heads, at most %d steps", (long long)q_heads,
                              (long long)it->heads, MAX_STEPS);
        return false;
    }
    it->batch = q.dims[0];
    it->steps = q.dims[1];
    it->group = q_heads / it->heads;
    it->key = q.dims[2] / q_heads;
    it->value = v.dims[2] / it->heads;
    it->scale = scale != 0.0 ? scale : 1.0 / sqrt((double)it->key);
    return read_rule(call, it);
}

static bool read_parts(struct tnd_onnx_call *call, struct linear *it)
{
    it->q = unpacked(call, 0, it, it->heads, it->group, it->key);
    it->k = unpacked(call, 1, it, it->heads, 1, it->key);
    it->v = unpacked(call, 2, it, it->heads, 1, it->value);
    if (it->is_gated) {
        const struct tnd_dims *shape = tnd_onnx_shape_of(call, tnd_onnx_in(call, 4));
        const bool is_by_head = shape->n == 3 && shape->dims[2] == it->heads;
        const int decay = unpacked(call, 4, it, it->heads, is_by_head ? 1 : it->key, 1);
        it->decay = tnd_net_unary(call->net, TANDEM_UNARY_EXP, decay);
    }
    if (it->is_delta) {
        const struct tnd_dims *shape = tnd_onnx_shape_of(call, tnd_onnx_in(call, 5));
        const bool is_shared = shape->n == 3 && shape->dims[2] == 1;
        it->beta = unpacked(call, 5, it, is_shared ? 1 : it->heads, 1, 1);
    }
    it->q = tnd_onnx_with(call, TANDEM_BINARY_MUL, it->q, it->scale);
    return call->net->status == TANDEM_OK;
}

/* {batch, steps, a, b, c} -> {batch, a, b, c} of one step. */
static int at_step(struct tnd_onnx_call *call, int value, int64_t step)
{
    struct tnd_dims shape = *tnd_onnx_shape_of(call, value);
    if (value == TANDEM_NET_NONE) {
        return value;
    }
    value = tnd_net_slice(call->net, value, 1, step, 1, 1);
    memmove(shape.dims + 1, shape.dims + 2, 3 * sizeof(shape.dims[0]));
    shape.n = 4;
    return tnd_net_reshape(call->net, value, &shape);
}

/* One step: S decays, takes in the key times the value, or times what it does not yet give for the
 * key, and is read by the queries. Gives S. */
static int linear_step(struct tnd_onnx_call *call, const struct linear *it, int state, int64_t step,
                       int *out)
{
    static const int turned[] = {0, 1, 3, 2};
    struct tnd_net *net = call->net;
    const int k = at_step(call, it->k, step);
    int v = at_step(call, it->v, step);
    if (it->is_gated) {
        state = tnd_net_binary(net, TANDEM_BINARY_MUL, state, at_step(call, it->decay, step));
    }
    if (it->is_delta) {
        const int beta = at_step(call, it->beta, step);
        v = tnd_net_formula(net, "v, known, beta: beta * (v - known)", v,
                            tnd_net_matmul(net, k, state), beta);
    }
    state = tnd_net_formula(net, "state, k, v: state + k * v", state,
                            tnd_net_permute(net, k, turned), v);
    const struct tnd_dims row = {3, {it->batch, 1, it->heads * it->group * it->value}};
    *out = tnd_net_reshape(net, tnd_net_matmul(net, at_step(call, it->q, step), state), &row);
    return state;
}

static void build_linear(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    struct linear it = {0};
    int rows[MAX_STEPS];
    if (!read_linear(call, &it) || !read_parts(call, &it)) {
        return;
    }
    const enum tandem_dtype type = tnd_onnx_type_of(call, tnd_onnx_in(call, 0));
    const int past = tnd_onnx_in(call, 3);
    const struct tnd_dims shape = {4, {it.batch, it.heads, it.key, it.value}};
    int state = past != TANDEM_NET_NONE
                    ? tnd_onnx_wide(call, past)
                    : tnd_net_expand(net, tnd_onnx_scalar(call, it.q, 0.0), &shape);
    if (past != TANDEM_NET_NONE && !tnd_dims_is_equal(tnd_onnx_shape_of(call, past), &shape)) {
        (void)tnd_onnx_refuse(call, "a state that does not fit the heads");
        return;
    }
    for (int64_t i = 0; i < it.steps && net->status == TANDEM_OK; i++) {
        state = linear_step(call, &it, state, i, &rows[i]);
    }
    if (net->status == TANDEM_OK) {
        call->out[0] = tnd_net_cast(net, tnd_net_concat(net, rows, (int)it.steps, 1), type);
    }
    if (call->n_out > 1) {
        const enum tandem_dtype kept =
            past != TANDEM_NET_NONE ? tnd_onnx_type_of(call, past) : type;
        call->out[1] = tnd_net_cast(net, state, kept);
    }
}

/* ---- causal convolution ---- */

/* The values of before, or zeros, in front of those of now. */
static int with_past(struct tnd_onnx_call *call, int x, int64_t past_length)
{
    static const int64_t none[TANDEM_NET_MAX_DIMS];
    const int64_t begin[TANDEM_NET_MAX_DIMS] = {0, 0, past_length};
    const int past = tnd_onnx_in(call, 3);
    const struct tnd_dims *shape = tnd_onnx_shape_of(call, x);
    const struct tnd_dims wanted = {3, {shape->dims[0], shape->dims[1], past_length}};
    if (past == TANDEM_NET_NONE) {
        return tnd_net_pad(call->net, TANDEM_PAD_CONSTANT, x, begin, none,
                           tnd_onnx_scalar(call, x, 0.0));
    }
    if (!tnd_dims_is_equal(tnd_onnx_shape_of(call, past), &wanted)) {
        return tnd_onnx_refuse(call, "a state that does not fit the window");
    }
    const int both[] = {past, x};
    return tnd_net_concat(call->net, both, 2, 2);
}

static void build_causal_conv(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int x = tnd_onnx_in(call, 0);
    const int w = tnd_onnx_in(call, 1);
    const int bias = tnd_onnx_in(call, 2);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const struct tnd_dims filter = *tnd_onnx_shape_of(call, w);
    const char *activation = tnd_onnx_word(call, "activation", "none");
    const bool is_silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (shape.n != 3 || filter.n != 3 || filter.dims[0] != shape.dims[1] || filter.dims[1] != 1 ||
        filter.dims[2] < 1 || (!is_silu && strcmp(activation, "none") != 0)) {
        (void)tnd_onnx_refuse(call, "activation '%.20s', or operands that do not fit", activation);
        return;
    }
    const int64_t kept = filter.dims[2] - 1;
    const struct tnd_window window = {
        .n = 1, .extent = {kept + 1}, .stride = {1}, .dilation = {1}, .groups = shape.dims[1]};
    const int all = with_past(call, x, kept);
    int y = tnd_net_conv(net, tnd_onnx_wide(call, all), tnd_onnx_wide(call, w), &window);
    if (bias != TANDEM_NET_NONE) {
        const struct tnd_dims column = {2, {shape.dims[1], 1}};
        y = tnd_onnx_binary(call, TANDEM_BINARY_ADD, y,
                            tnd_net_reshape(net, tnd_onnx_wide(call, bias), &column));
    }
    y = is_silu ? tnd_net_unary(net, TANDEM_UNARY_SILU, y) : y;
    call->out[0] = tnd_onnx_narrow(call, y, x);
    if (call->n_out > 1) {
        call->out[1] = tnd_net_slice(net, all, 2, shape.dims[2], kept, 1);
    }
}

/* ---- caches ---- */

/* Where along the axis each value is written, as it broadcasts with the update. */
static int write_places(struct tnd_onnx_call *call, const struct tnd_dims *update, int axis,
                        int64_t capacity, bool is_circular)
{
    struct tnd_net *net = call->net;
    const int first = tnd_onnx_in(call, 2);
    struct tnd_dims along = {.n = update->n};
    struct tnd_dims across = {.n = update->n};
    for (int i = 0; i < update->n; i++) {
        along.dims[i] = i == axis ? update->dims[i] : 1;
        across.dims[i] = i == 0 ? update->dims[0] : 1;
    }
    int place = tnd_net_reshape(net, tnd_onnx_counting(call, update->dims[axis]), &along);
    if (first != TANDEM_NET_NONE) {
        place = tnd_onnx_binary(
            call, TANDEM_BINARY_ADD, place,
            tnd_net_reshape(net, tnd_net_cast(net, first, TANDEM_DTYPE_I64), &across));
    }
    place = is_circular ? tnd_onnx_with(call, TANDEM_BINARY_MOD, place, (double)capacity) : place;
    return tnd_net_expand(net, place, update);
}

static void build_tensor_scatter(struct tnd_onnx_call *call)
{
    const int cache = tnd_onnx_in(call, 0);
    const int update = tnd_onnx_in(call, 1);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, cache);
    struct tnd_dims now = *tnd_onnx_shape_of(call, update);
    const struct tnd_dims written = now;
    const char *mode = tnd_onnx_word(call, "mode", "linear");
    const bool is_circular = strcmp(mode, "circular") == 0;
    int axis;
    if (!tnd_onnx_axis(call, tnd_onnx_int(call, "axis", -2), shape.n, &axis)) {
        return;
    }
    const bool fits = axis > 0 && now.n == shape.n && now.dims[axis] <= shape.dims[axis];
    now.dims[axis] = shape.dims[axis];
    if (!fits || !tnd_dims_is_equal(&now, &shape) ||
        (!is_circular && strcmp(mode, "linear") != 0)) {
        (void)tnd_onnx_refuse(call, "mode '%.20s', or an update that does not fit", mode);
        return;
    }
    const int places = write_places(call, &written, axis, shape.dims[axis], is_circular);
    call->out[0] =
        tnd_net_scatter_elements(call->net, TANDEM_SCATTER_SET, cache, places, update, axis);
}

const struct tnd_onnx_op tnd_onnx_state[] = {
    {"CausalConvWithState", build_causal_conv, 0, "2-4>1-2"},
    {"LinearAttention", build_linear, 0, "3-6>1-2"},
    {"TensorScatter", build_tensor_scatter, 0, "2-3"},
    {NULL, NULL, 0, NULL},
};
