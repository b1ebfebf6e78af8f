/* SPDX-License-Identifier: MIT
 * Reference kernels, element by element: copies, casts, unary and binary functions, select. They
 * work on strips of values, each in its lane type. */
#include <math.h>
#include <string.h>

#include "base/lanes_math.h"
#include "ggml-like/fuse_code.h"
#include "ggml-like/net_kernels.h"
#include "ggml-like/quant.h"
#include "ggml-like/scalar-list.h"

/* ---- copies and casts ---- */

static void run_copy(const struct tnd_strip_job *job, const union tnd_values *in, int n,
                     union tnd_values *out)
{
    (void)job;
    (void)n;
    *out = in[0];
}

/* ---- one value ---- */

static float unary_f32(int kind, float v)
{
    switch ((enum tandem_unary)kind) {
#define CASE(name, expression)                                                                     \
    case name:                                                                                     \
        return (float)(expression);
        TND_UNARY_FLOAT_LIST(CASE, f)
#undef CASE
    }
    return v;
}

static double unary_f64(int kind, double v)
{
    switch ((enum tandem_unary)kind) {
#define CASE(name, expression)                                                                     \
    case name:                                                                                     \
        return (double)(expression);
        TND_UNARY_FLOAT_LIST(CASE, )
#undef CASE
    }
    return v;
}

/* Applies a function of numbers to an integer, whose lane type is `lane`. */
static void unary_by_double(int kind, enum tnd_lane lane, double v, union tnd_values *out)
{
    const double result = unary_f64(kind, v);
    tnd_values_load(TANDEM_DTYPE_F64, &result, 1, 1, lane, out);
}

/* Functions that are defined on integers; the others are computed in double. */
static int64_t unary_i64(int kind, int64_t v)
{
    union tnd_values other;
    switch ((enum tandem_unary)kind) {
    case TANDEM_UNARY_NEG:
        return (int64_t)(0 - (uint64_t)v);
    case TANDEM_UNARY_ABS:
        return v < 0 ? (int64_t)(0 - (uint64_t)v) : v;
    case TANDEM_UNARY_SIGN:
        return (v > 0) - (v < 0);
    case TANDEM_UNARY_NOT:
        return ~v;
    case TANDEM_UNARY_FLOOR:
    case TANDEM_UNARY_CEIL:
    case TANDEM_UNARY_ROUND:
        return v;
    case TANDEM_UNARY_IS_NAN:
    case TANDEM_UNARY_IS_INF:
        return 0;
    default:
        unary_by_double(kind, TND_LANE_I64, (double)v, &other);
        return other.i64[0];
    }
}

static uint64_t unary_u64(int kind, uint64_t v)
{
    union tnd_values other;
    switch ((enum tandem_unary)kind) {
    case TANDEM_UNARY_NEG:
        return 0 - v;
    case TANDEM_UNARY_SIGN:
        return v != 0;
    case TANDEM_UNARY_NOT:
        return ~v;
    case TANDEM_UNARY_ABS:
    case TANDEM_UNARY_FLOOR:
    case TANDEM_UNARY_CEIL:
    case TANDEM_UNARY_ROUND:
        return v;
    case TANDEM_UNARY_IS_NAN:
    case TANDEM_UNARY_IS_INF:
        return 0;
    default:
        unary_by_double(kind, TND_LANE_U64, (double)v, &other);
        return other.u64[0];
    }
}

static void run_unary(const struct tnd_strip_job *job, const union tnd_values *in, int n,
                      union tnd_values *out)
{
    for (int i = 0; i < n; i++) {
        switch (job->lanes[0]) {
        case TND_LANE_F32:
            out->f32[i] = unary_f32(job->kind, in->f32[i]);
            break;
        case TND_LANE_F64:
            out->f64[i] = unary_f64(job->kind, in->f64[i]);
            break;
        case TND_LANE_I64:
            out->i64[i] = unary_i64(job->kind, in->i64[i]);
            break;
        default:
            out->u64[i] = unary_u64(job->kind, in->u64[i]);
            break;
        }
    }
}

static tnd_vec polynomial(int kind, tnd_vec x)
{
    switch (kind) {
#define CASE(name, expression)                                                                     \
    case TANDEM_UNARY_##name:                                                                      \
        return expression;
        TND_CODE_FUNCTION_LIST(CASE)
#undef CASE
    default:
        return x;
    }
}

/* Functions that fused programs compute by a polynomial use the same polynomial here, so the bits
 * equal those of programs on any instruction set. Accuracy: base/lanes_math.h. */
static void run_polynomial(const struct tnd_strip_job *job, const union tnd_values *in, int n,
                           union tnd_values *out)
{
    memcpy(out->f32, in->f32, (size_t)n * sizeof(float));
    memset(out->f32 + n, 0, (size_t)(TND_LANES - n) * sizeof(float));
    for (int i = 0; i < n; i += TND_VEC_LANES) {
        tnd_vec_store(out->f32 + i, polynomial(job->kind, tnd_vec_load(out->f32 + i)));
    }
}

static void run_not(const struct tnd_strip_job *job, const union tnd_values *in, int n,
                    union tnd_values *out)
{
    (void)job;
    for (int i = 0; i < n; i++) {
        out->i64[i] = in->i64[i] == 0;
    }
}

/* ---- two values ---- */

/* Inlined so that a kind known at the call leaves only its expression. */
#define INLINED inline __attribute__((always_inline))

#define FLOAT_BINARY(name, real, suffix)                                                           \
    static real floor_mod##suffix(real a, real b)                                                  \
    {                                                                                              \
        const real rest = fmod##suffix(a, b);                                                      \
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;                               \
    }                                                                                              \
    static INLINED real name(enum tandem_binary kind, real a, real b)                              \
    {                                                                                              \
        switch (kind) {                                                                            \
            TND_BINARY_FLOAT_LIST(CASE, suffix)                                                    \
        default:                                                                                   \
            return 0; /* kinds for bits: tnd_net_binary refuses them */                            \
        }                                                                                          \
    }
#define CASE(name, expression)                                                                     \
    case name:                                                                                     \
        return (expression);
FLOAT_BINARY(binary_f32, float, f)
FLOAT_BINARY(binary_f64, double, )
#undef CASE

static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base) {
        result *= exponent & 1 ? base : 1;
    }
    return result;
}

/* Wrapping arithmetic, the same for signed and unsigned integers. */
static INLINED uint64_t binary_bits(enum tandem_binary kind, uint64_t a, uint64_t b, unsigned bits)
{
    switch (kind) {
    case TANDEM_BINARY_ADD:
        return a + b;
    case TANDEM_BINARY_SUB:
        return a - b;
    case TANDEM_BINARY_MUL:
        return a * b;
    case TANDEM_BINARY_AND:
        return a & b;
    case TANDEM_BINARY_OR:
        return a | b;
    case TANDEM_BINARY_XOR:
        return a ^ b;
    case TANDEM_BINARY_SHIFT_LEFT:
        return b >= bits ? 0 : a << b;
    case TANDEM_BINARY_SHIFT_RIGHT:
        return b >= bits ? 0 : a >> b;
    default:
        return 0;
    }
}

static INLINED uint64_t binary_u64(enum tandem_binary kind, uint64_t a, uint64_t b, unsigned bits)
{
    switch (kind) {
    case TANDEM_BINARY_DIV:
        return b == 0 ? 0 : a / b;
    case TANDEM_BINARY_MOD:
    case TANDEM_BINARY_FMOD:
        return b == 0 ? 0 : a % b;
    case TANDEM_BINARY_POW:
        return power(a, b);
    case TANDEM_BINARY_MAX:
        return a > b ? a : b;
    case TANDEM_BINARY_MIN:
        return a < b ? a : b;
    default:
        return binary_bits(kind, a, b, bits);
    }
}

static INLINED int64_t binary_i64(enum tandem_binary kind, int64_t a, int64_t b, unsigned bits)
{
    switch (kind) {
    case TANDEM_BINARY_DIV:
        return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
    case TANDEM_BINARY_FMOD:
        return b == 0 || b == -1 ? 0 : a % b;
    case TANDEM_BINARY_MOD: {
        const int64_t rest = b == 0 || b == -1 ? 0 : a % b;
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    case TANDEM_BINARY_POW:
        return b >= 0 ? (int64_t)power((uint64_t)a, (uint64_t)b)
                      : (a == 1    ? 1
                         : a == -1 ? (b % 2 == 0 ? 1 : -1)
                                   : 0);
    case TANDEM_BINARY_MAX:
        return a > b ? a : b;
    case TANDEM_BINARY_MIN:
        return a < b ? a : b;
    case TANDEM_BINARY_SHIFT_RIGHT: /* the sign is handled later */
        return (uint64_t)b >= bits ? (a < 0 ? -1 : 0) : a < 0 ? ~(~a >> b) : a >> b;
    default:
        return (int64_t)binary_bits(kind, (uint64_t)a, (uint64_t)b, bits);
    }
}

/* Cheap kinds have a loop of their own, without a switch per value. */
#define STRIP_LOOP(name, member, expression)                                                       \
    case name:                                                                                     \
        for (int i = 0; i < n; i++) {                                                              \
            const enum tandem_binary of = name;                                                    \
            out->member[i] = (expression);                                                         \
        }                                                                                          \
        break;
#define STRIP_ALL(member, expression)                                                              \
    switch (kind) {                                                                                \
        STRIP_LOOP(TANDEM_BINARY_ADD, member, expression)                                          \
        STRIP_LOOP(TANDEM_BINARY_SUB, member, expression)                                          \
        STRIP_LOOP(TANDEM_BINARY_MUL, member, expression)                                          \
        STRIP_LOOP(TANDEM_BINARY_DIV, member, expression)                                          \
        STRIP_LOOP(TANDEM_BINARY_MAX, member, expression)                                          \
        STRIP_LOOP(TANDEM_BINARY_MIN, member, expression)                                          \
    default:                                                                                       \
        for (int i = 0; i < n; i++) {                                                              \
            const enum tandem_binary of = kind;                                                    \
            out->member[i] = (expression);                                                         \
        }                                                                                          \
    }                                                                                              \
    break;

void tnd_binary_strip(enum tandem_binary kind, enum tnd_lane lane, const union tnd_values *a,
                      const union tnd_values *b, int n, unsigned bits, union tnd_values *out)
{
    switch (lane) {
    case TND_LANE_F32:
        STRIP_ALL(f32, binary_f32(of, a->f32[i], b->f32[i]))
    case TND_LANE_F64:
        STRIP_ALL(f64, binary_f64(of, a->f64[i], b->f64[i]))
    case TND_LANE_I64:
        STRIP_ALL(i64, binary_i64(of, a->i64[i], b->i64[i], bits))
    default:
        STRIP_ALL(u64, binary_u64(of, a->u64[i], b->u64[i], bits))
    }
}

static void run_binary(const struct tnd_strip_job *job, const union tnd_values *in, int n,
                       union tnd_values *out)
{
    tnd_binary_strip((enum tandem_binary)job->kind, job->lanes[0], &in[0], &in[1], n, job->bits,
                     out);
}

#define COMPARE(member)                                                                            \
    for (int i = 0; i < n && job->kind == TANDEM_BINARY_EQUAL; i++) {                              \
        out->i64[i] = in[0].member[i] == in[1].member[i];                                          \
    }                                                                                              \
    for (int i = 0; i < n && job->kind == TANDEM_BINARY_LESS; i++) {                               \
        out->i64[i] = in[0].member[i] < in[1].member[i];                                           \
    }                                                                                              \
    for (int i = 0; i < n && job->kind > TANDEM_BINARY_LESS; i++) {                                \
        out->i64[i] = in[0].member[i] <= in[1].member[i];                                          \
    }                                                                                              \
    break

static void run_compare(const struct tnd_strip_job *job, const union tnd_values *in, int n,
                        union tnd_values *out)
{
    switch (job->lanes[0]) {
    case TND_LANE_F32:
        COMPARE(f32);
    case TND_LANE_F64:
        COMPARE(f64);
    case TND_LANE_I64:
        COMPARE(i64);
    default:
        COMPARE(u64);
    }
}

/* ---- choice ---- */

static void run_select(const struct tnd_strip_job *job, const union tnd_values *in, int n,
                       union tnd_values *out)
{
    for (int i = 0; i < n; i++) {
        const union tnd_values *from = &in[in[0].i64[i] != 0 ? 1 : 2];
        if (job->out_lane == TND_LANE_F32) {
            out->f32[i] = from->f32[i];
        } else {
            out->u64[i] = from->u64[i];
        }
    }
}

/* ---- whole arrays ---- */

struct tnd_strip_job tnd_strip_job_of(enum tnd_net_op op, int kind, enum tandem_dtype in,
                                      enum tandem_dtype out)
{
    const enum tnd_lane lane = tnd_lane_of(in);
    struct tnd_strip_job job = {.lanes = {lane, lane},
                                .out_lane = lane,
                                .kind = kind,
                                .bits = (unsigned)tandem_dtype_bytes(in) * 8,
                                .run = run_copy};
    if (op == TND_NET_UNARY) {
        job.run = kind == TANDEM_UNARY_NOT && in == TANDEM_DTYPE_BOOL        ? run_not
                  : lane == TND_LANE_F32 && tnd_strip_function_of(kind) >= 0 ? run_polynomial
                                                                             : run_unary;
    } else if (op == TND_NET_BINARY) {
        const bool compares = kind >= TANDEM_BINARY_EQUAL;
        job.out_lane = compares ? TND_LANE_I64 : lane;
        job.run = compares ? run_compare : run_binary;
    } else if (op == TND_NET_SELECT) {
        job.lanes[1] = job.lanes[2] = job.out_lane = tnd_lane_of(out);
        job.run = run_select;
    }
    return job;
}

/* Address of value `first` of the current row of a view. */
static const void *strip_place(const struct tnd_walk *walk, const struct tnd_view *view,
                               int64_t first)
{
    const int64_t stride = view->shape.n == 0 ? 0 : view->strides[view->shape.n - 1];
    return (const char *)tnd_walk_place(walk, view) +
           first * stride * (int64_t)tandem_dtype_bytes(view->type);
}

static int64_t row_stride(const struct tnd_view *view)
{
    return view->shape.n == 0 ? 0 : view->strides[view->shape.n - 1];
}

static enum tandem_status run_strips(const struct tnd_kernel_call *call,
                                     const struct tnd_strip_job *job)
{
    struct tnd_walk walk;
    union tnd_values in[3];
    union tnd_values out;
    char *to = call->out->data;
    const size_t bytes = tandem_dtype_bytes(call->out->type);
    for (tnd_walk_begin(&walk, &call->out->shape); !walk.is_done; tnd_walk_next(&walk)) {
        const int64_t row = tnd_walk_row(&walk);
        for (int64_t at = 0; at < row; at += TND_LANES) {
            const int n = (int)(row - at < TND_LANES ? row - at : TND_LANES);
            for (int i = 0; i < call->n_in; i++) {
                tnd_values_load(call->in[i].type, strip_place(&walk, &call->in[i], at),
                                row_stride(&call->in[i]), n, job->lanes[i], &in[i]);
            }
            job->run(job, in, n, &out);
            tnd_values_store(call->out->type, job->out_lane, &out, n, to);
            to += (size_t)n * bytes;
        }
    }
    return TANDEM_OK;
}

/* ---- weights of whole networks, computed when a net is lowered ---- */

/* Widens bytes to int32; false: the operand is not bytes, or has gaps. */
static bool widen_bytes(const struct tnd_view *in, const struct tnd_array *out)
{
    int32_t *to = out->data;
    if (out->type != TANDEM_DTYPE_I32 || !tnd_view_has_no_gaps(in) ||
        (in->type != TANDEM_DTYPE_I8 && in->type != TANDEM_DTYPE_U8)) {
        return false;
    }
    for (int64_t i = 0; in->type == TANDEM_DTYPE_I8 && i < out->n; i++) {
        to[i] = ((const int8_t *)in->data)[i];
    }
    for (int64_t i = 0; in->type == TANDEM_DTYPE_U8 && i < out->n; i++) {
        to[i] = ((const uint8_t *)in->data)[i];
    }
    return true;
}

/* Copies 4-byte values into another order, in blocks that stay in the cache while they are read by
 * columns; false: not applicable. */
static bool turn_words(const struct tnd_view *in, const struct tnd_array *out)
{
    enum { BLOCK = 32 };
    const int last = in->shape.n - 1;
    if (in->type != out->type || tandem_dtype_bytes(in->type) != 4 || last < 1 || out->n == 0) {
        return false;
    }
    const int64_t rows = in->shape.dims[last - 1];
    const int64_t columns = in->shape.dims[last];
    struct tnd_dims outer = in->shape;
    struct tnd_walk walk;
    uint32_t *to = out->data;
    outer.n = last;
    outer.dims[last - 1] = 1; /* (one value per row for each matrix) */
    for (tnd_walk_begin(&walk, &outer); !walk.is_done; tnd_walk_next(&walk), to += rows * columns) {
        const uint32_t *from = tnd_walk_place(&walk, in);
        for (int64_t r0 = 0; r0 < rows; r0 += BLOCK) {
            for (int64_t c0 = 0; c0 < columns; c0 += BLOCK) {
                for (int64_t r = r0; r < r0 + BLOCK && r < rows; r++) {
                    for (int64_t c = c0; c < c0 + BLOCK && c < columns; c++) {
                        to[r * columns + c] =
                            from[r * in->strides[last - 1] + c * in->strides[last]];
                    }
                }
            }
        }
    }
    return true;
}

/* Subtracts one number from int32 values; false: not applicable. */
static bool subtract_number(const struct tnd_kernel_call *call)
{
    const struct tnd_view *a = &call->in[0];
    const struct tnd_view *b = &call->in[1];
    if (call->params->kind != TANDEM_BINARY_SUB || a->type != TANDEM_DTYPE_I32 ||
        !tnd_view_has_no_gaps(a) || call->out->n == 0) {
        return false;
    }
    for (int i = 0; i < b->shape.n; i++) {
        if (b->shape.dims[i] > 1 && b->strides[i] != 0) {
            return false;
        }
    }
    const uint32_t less = *(const uint32_t *)b->data;
    for (int64_t i = 0; i < call->out->n; i++) {
        ((uint32_t *)call->out->data)[i] = ((const uint32_t *)a->data)[i] - less;
    }
    return true;
}

enum tandem_status tnd_kernel_copy(const struct tnd_kernel_call *call)
{
    const struct tnd_view *in = &call->in[0];
    const struct tnd_array *out = call->out;
    const struct tnd_strip_job job = tnd_strip_job_of(TND_NET_COPY, 0, in->type, out->type);
    const bool is_dense = tnd_view_has_no_gaps(in);
    if (widen_bytes(in, out)) {
        return TANDEM_OK;
    }
    if (is_dense && in->type == out->type) {
        memcpy(out->data, in->data, (size_t)out->n * tandem_dtype_bytes(in->type));
        return TANDEM_OK;
    }
    if (turn_words(in, out)) {
        return TANDEM_OK;
    }
    if (is_dense && in->type == TANDEM_DTYPE_F16 && out->type == TANDEM_DTYPE_F32) {
        tnd_dequantize_F16(in->data, out->data, out->n); /* (can be all weights of a net) */
        return TANDEM_OK;
    }
    return run_strips(call, &job);
}

enum tandem_status tnd_kernel_unary(const struct tnd_kernel_call *call)
{
    const struct tnd_strip_job job =
        tnd_strip_job_of(TND_NET_UNARY, call->params->kind, call->in[0].type, call->out->type);
    return run_strips(call, &job);
}

enum tandem_status tnd_kernel_binary(const struct tnd_kernel_call *call)
{
    const struct tnd_strip_job job =
        tnd_strip_job_of(TND_NET_BINARY, call->params->kind, call->in[0].type, call->out->type);
    return subtract_number(call) ? TANDEM_OK : run_strips(call, &job);
}

enum tandem_status tnd_kernel_select(const struct tnd_kernel_call *call)
{
    const struct tnd_strip_job job =
        tnd_strip_job_of(TND_NET_SELECT, 0, call->in[0].type, call->out->type);
    return run_strips(call, &job);
}
