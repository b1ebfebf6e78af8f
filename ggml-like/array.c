/* SPDX-License-Identifier: MIT
 * Arrays, shapes, and strips: values that kernels load, compute with and store together. */
#include "ggml-like/array.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/small_float.h"
#include "base/tnd_assert.h"

static const struct {
    const char *text;
    size_t bytes;
    enum tnd_dtype_kind kind;
} dtypes[TND_N_DTYPES] = {
#define DTYPE_ROW(name, store, text, kind)                                                         \
    [TANDEM_DTYPE_##name] = {text, sizeof(store), TND_KIND_##kind},
    TND_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

const char *tandem_dtype_name(enum tandem_dtype type)
{
    return (unsigned)type < TND_N_DTYPES ? dtypes[type].text : "unknown";
}

size_t tandem_dtype_bytes(enum tandem_dtype type)
{
    return (unsigned)type < TND_N_DTYPES ? dtypes[type].bytes : 0;
}

enum tnd_dtype_kind tnd_dtype_kind(enum tandem_dtype type)
{
    return dtypes[type].kind;
}

const struct tnd_small_float *tnd_dtype_small(enum tandem_dtype type)
{
    static const struct tnd_small_float small[TND_N_DTYPES] = {
#define SMALL_ROW(name, exponent, mantissa, bias, special)                                         \
    [TANDEM_DTYPE_##name] = {exponent, mantissa, bias, special},
        TND_SMALL_FLOAT_LIST(SMALL_ROW)
#undef SMALL_ROW
    };
    return (unsigned)type < TND_N_DTYPES && small[type].exponent > 0 ? &small[type] : NULL;
}

/* ---- shapes ---- */

int64_t tnd_dims_values(const struct tnd_dims *shape)
{
    int64_t n = 1;
    bool is_empty = false;
    for (int i = 0; i < shape->n; i++) {
        /* The other extents must multiply without overflow even in an empty array: strides and
         * shapes of parts are such products. */
        const bool is_zero = shape->dims[i] == 0;
        if (shape->dims[i] < 0 || !tnd_mul_i64(n, is_zero ? 1 : shape->dims[i], &n)) {
            return -1;
        }
        is_empty |= is_zero;
    }
    return n > INT64_MAX / 64 ? -1 : is_empty ? 0 : n;
}

bool tnd_dims_is_equal(const struct tnd_dims *a, const struct tnd_dims *b)
{
    return a->n == b->n && memcmp(a->dims, b->dims, (size_t)a->n * sizeof(a->dims[0])) == 0;
}

void tnd_dims_strides(const struct tnd_dims *shape, int64_t *out)
{
    int64_t stride = 1;
    for (int i = shape->n - 1; i >= 0; i--) {
        out[i] = stride;
        stride *= shape->dims[i];
    }
}

const char *tnd_dims_text(const struct tnd_dims *shape, char *out)
{
    size_t at = 0;
    (void)snprintf(out, 160, "scalar");
    for (int i = 0; i < shape->n; i++) {
        const int n =
            snprintf(out + at, 160 - at, "%s%lld", i > 0 ? "x" : "", (long long)shape->dims[i]);
        at += n > 0 && (size_t)n < 160 - at ? (size_t)n : 0;
    }
    return out;
}

/* ---- arrays ---- */

struct tnd_array *tnd_array_new(enum tandem_dtype type, const struct tnd_dims *shape)
{
    const int64_t n = tnd_dims_values(shape);
    struct tnd_array *array = n < 0 ? NULL : tnd_calloc(1, sizeof(*array));
    void *data = array == NULL ? NULL : tnd_calloc((size_t)n + (n == 0), tandem_dtype_bytes(type));
    if (data == NULL) {
        tnd_free(array);
        return NULL;
    }
    *array = (struct tnd_array){.type = type, .shape = *shape, .n = n, .data = data};
    return array;
}

void tnd_array_free(struct tnd_array *array)
{
    if (array != NULL && array->keeper != NULL) {
        array->keeper->give_back(array);
    } else if (array != NULL) {
        tnd_free(array->data);
        tnd_free(array);
    }
}

int64_t tnd_array_integer(const struct tnd_array *array, int64_t i)
{
    union tnd_values strip;
    TND_ASSERT(i >= 0 && i < array->n);
    tnd_values_load(array->type, (const char *)array->data + (size_t)i * dtypes[array->type].bytes,
                    1, 1, TND_LANE_I64, &strip);
    return strip.i64[0];
}

double tnd_array_number(const struct tnd_array *array, int64_t i)
{
    union tnd_values strip;
    TND_ASSERT(i >= 0 && i < array->n);
    tnd_values_load(array->type, (const char *)array->data + (size_t)i * dtypes[array->type].bytes,
                    1, 1, TND_LANE_F64, &strip);
    return strip.f64[0];
}

/* ---- strips ---- */

enum tnd_lane tnd_lane_of(enum tandem_dtype type)
{
    switch (type) {
    case TANDEM_DTYPE_F32:
    case TANDEM_DTYPE_F16:
    case TANDEM_DTYPE_BF16:
        return TND_LANE_F32;
    case TANDEM_DTYPE_F64:
        return TND_LANE_F64;
    case TANDEM_DTYPE_U64:
        return TND_LANE_U64;
    default:
        return tnd_dtype_small(type) != NULL ? TND_LANE_F32 : TND_LANE_I64;
    }
}

/* Float to integer: truncates and saturates; NaN is 0. */
static int64_t to_i64(double value)
{
    if (!(value > -9223372036854775808.0)) {
        return isnan(value) ? 0 : INT64_MIN;
    }
    return value < 9223372036854775808.0 ? (int64_t)value : INT64_MAX;
}

static uint64_t to_u64(double value)
{
    if (!(value > 0.0)) {
        /* Negative values wrap around, as in the casts of other programs. */
        return (uint64_t)to_i64(value);
    }
    return value < 18446744073709551616.0 ? (uint64_t)value : UINT64_MAX;
}

/* One loop for each pair of a stored type and a lane type. */
#define LOAD_LOOP(store, member, expression)                                                       \
    for (int i = 0; i < n; i++) {                                                                  \
        const store v = values[(int64_t)i * stride];                                               \
        out->member[i] = (expression);                                                             \
    }                                                                                              \
    break
#define LOAD_ALL(store, expression_f32, expression_f64, expression_i64, expression_u64)            \
    do {                                                                                           \
        const store *values = from;                                                                \
        switch (lane) {                                                                            \
        case TND_LANE_F32:                                                                         \
            LOAD_LOOP(store, f32, expression_f32);                                                 \
        case TND_LANE_F64:                                                                         \
            LOAD_LOOP(store, f64, expression_f64);                                                 \
        case TND_LANE_I64:                                                                         \
            LOAD_LOOP(store, i64, expression_i64);                                                 \
        default:                                                                                   \
            LOAD_LOOP(store, u64, expression_u64);                                                 \
        }                                                                                          \
    } while (0)

#define LOAD_INTEGERS(store) LOAD_ALL(store, (float)v, (double)v, (int64_t)v, (uint64_t)v)
#define LOAD_FLOATS(store, widen)                                                                  \
    LOAD_ALL(store, widen(v), (double)widen(v), to_i64((double)widen(v)), to_u64((double)widen(v)))

static void load_small(struct tnd_small_float small, const void *from, int64_t stride, int n,
                       enum tnd_lane lane, union tnd_values *out)
{
#define WIDEN(v) tnd_small_to_f32(small, v)
    LOAD_FLOATS(uint8_t, WIDEN);
#undef WIDEN
}

void tnd_values_load(enum tandem_dtype type, const void *from, int64_t stride, int n,
                     enum tnd_lane lane, union tnd_values *out)
{
    TND_ASSERT(n >= 0 && n <= TND_LANES);
    switch (type) {
    case TANDEM_DTYPE_F32:
        LOAD_ALL(float, v, (double)v, to_i64((double)v), to_u64((double)v));
        break;
    case TANDEM_DTYPE_F64:
        LOAD_ALL(double, (float)v, v, to_i64(v), to_u64(v));
        break;
    case TANDEM_DTYPE_F16:
        LOAD_FLOATS(uint16_t, tnd_f16_to_f32);
        break;
    case TANDEM_DTYPE_BF16:
        LOAD_FLOATS(uint16_t, tnd_bf16_to_f32);
        break;
    case TANDEM_DTYPE_I8:
        LOAD_INTEGERS(int8_t);
        break;
    case TANDEM_DTYPE_I16:
        LOAD_INTEGERS(int16_t);
        break;
    case TANDEM_DTYPE_I32:
        LOAD_INTEGERS(int32_t);
        break;
    case TANDEM_DTYPE_I64:
        LOAD_INTEGERS(int64_t);
        break;
    case TANDEM_DTYPE_U8:
    case TANDEM_DTYPE_BOOL:
        LOAD_INTEGERS(uint8_t);
        break;
    case TANDEM_DTYPE_U16:
        LOAD_INTEGERS(uint16_t);
        break;
    case TANDEM_DTYPE_U32:
        LOAD_INTEGERS(uint32_t);
        break;
    case TANDEM_DTYPE_U64:
        LOAD_INTEGERS(uint64_t);
        break;
    default:
        load_small(*tnd_dtype_small(type), from, stride, n, lane, out);
        break;
    }
}

/* Converts a lane to each of the types that are stored. */
static double lane_number(enum tnd_lane lane, const union tnd_values *from, int i)
{
    switch (lane) {
    case TND_LANE_F32:
        return (double)from->f32[i];
    case TND_LANE_F64:
        return from->f64[i];
    case TND_LANE_I64:
        return (double)from->i64[i];
    default:
        return (double)from->u64[i];
    }
}

/* Integers become float in one rounding; through double there would be two. */
static float lane_f32(enum tnd_lane lane, const union tnd_values *from, int i)
{
    switch (lane) {
    case TND_LANE_F32:
        return from->f32[i];
    case TND_LANE_F64:
        return (float)from->f64[i];
    case TND_LANE_I64:
        return (float)from->i64[i];
    default:
        return (float)from->u64[i];
    }
}

static uint64_t lane_bits(enum tnd_lane lane, const union tnd_values *from, int i, bool is_unsigned)
{
    switch (lane) {
    case TND_LANE_F32:
        return is_unsigned ? to_u64((double)from->f32[i]) : (uint64_t)to_i64((double)from->f32[i]);
    case TND_LANE_F64:
        return is_unsigned ? to_u64(from->f64[i]) : (uint64_t)to_i64(from->f64[i]);
    case TND_LANE_I64:
        return (uint64_t)from->i64[i];
    default:
        return from->u64[i];
    }
}

#define STORE_ALL(store, expression)                                                               \
    do {                                                                                           \
        store *values = out;                                                                       \
        for (int i = 0; i < n; i++) {                                                              \
            values[i] = (store)(expression);                                                       \
        }                                                                                          \
    } while (0)

/* The common case, integers from lanes of integers; false: it is another case. */
static bool store_integers(enum tandem_dtype type, enum tnd_lane lane, const union tnd_values *from,
                           int n, void *out)
{
    if (lane != TND_LANE_I64 && lane != TND_LANE_U64) {
        return false;
    }
    switch (type) {
    case TANDEM_DTYPE_I8:
    case TANDEM_DTYPE_U8:
        STORE_ALL(uint8_t, from->u64[i]);
        return true;
    case TANDEM_DTYPE_I16:
    case TANDEM_DTYPE_U16:
        STORE_ALL(uint16_t, from->u64[i]);
        return true;
    case TANDEM_DTYPE_I32:
    case TANDEM_DTYPE_U32:
        STORE_ALL(uint32_t, from->u64[i]);
        return true;
    case TANDEM_DTYPE_BOOL:
        STORE_ALL(uint8_t, from->u64[i] != 0);
        return true;
    case TANDEM_DTYPE_I64:
    case TANDEM_DTYPE_U64:
        STORE_ALL(uint64_t, from->u64[i]);
        return true;
    default:
        return false;
    }
}

void tnd_values_store(enum tandem_dtype type, enum tnd_lane lane, const union tnd_values *from,
                      int n, void *out)
{
    if (store_integers(type, lane, from, n, out)) {
        return;
    }
    switch (type) {
    case TANDEM_DTYPE_F32:
        STORE_ALL(float, lane_f32(lane, from, i));
        break;
    case TANDEM_DTYPE_F64:
        STORE_ALL(double, lane_number(lane, from, i));
        break;
    case TANDEM_DTYPE_F16:
        STORE_ALL(uint16_t, tnd_f32_to_f16(lane_f32(lane, from, i)));
        break;
    case TANDEM_DTYPE_BF16:
        STORE_ALL(uint16_t, tnd_f32_to_bf16(lane_f32(lane, from, i)));
        break;
    case TANDEM_DTYPE_I8:
    case TANDEM_DTYPE_U8:
        STORE_ALL(uint8_t, lane_bits(lane, from, i, type == TANDEM_DTYPE_U8));
        break;
    case TANDEM_DTYPE_I16:
    case TANDEM_DTYPE_U16:
        STORE_ALL(uint16_t, lane_bits(lane, from, i, type == TANDEM_DTYPE_U16));
        break;
    case TANDEM_DTYPE_I32:
    case TANDEM_DTYPE_U32:
        STORE_ALL(uint32_t, lane_bits(lane, from, i, type == TANDEM_DTYPE_U32));
        break;
    case TANDEM_DTYPE_BOOL:
        STORE_ALL(uint8_t, lane_number(lane, from, i) != 0.0);
        break;
    case TANDEM_DTYPE_I64:
    case TANDEM_DTYPE_U64:
        STORE_ALL(uint64_t, lane_bits(lane, from, i, type == TANDEM_DTYPE_U64));
        break;
    default:
        STORE_ALL(uint8_t, tnd_small_from_f32(*tnd_dtype_small(type), lane_f32(lane, from, i)));
        break;
    }
}

void tnd_values_cast(enum tandem_dtype type, float *values, int n)
{
    for (int at = 0; at < n; at += TND_LANES) {
        const int now = n - at < TND_LANES ? n - at : TND_LANES;
        union tnd_values lanes;
        char stored[TND_LANES * sizeof(uint64_t)];
        memcpy(lanes.f32, values + at, (size_t)now * sizeof(float));
        tnd_values_store(type, TND_LANE_F32, &lanes, now, stored);
        tnd_values_load(type, stored, 1, now, TND_LANE_F32, &lanes);
        memcpy(values + at, lanes.f32, (size_t)now * sizeof(float));
    }
}

/* ---- walks ---- */

bool tnd_view_has_no_gaps(const struct tnd_view *view)
{
    int64_t stride = 1;
    for (int i = view->shape.n - 1; i >= 0; i--) {
        if (view->shape.dims[i] > 1 && view->strides[i] != stride) {
            return false;
        }
        stride *= view->shape.dims[i];
    }
    return true;
}

void tnd_walk_begin(struct tnd_walk *walk, const struct tnd_dims *shape)
{
    *walk = (struct tnd_walk){.shape = *shape, .is_done = tnd_dims_values(shape) == 0};
}

void tnd_walk_next(struct tnd_walk *walk)
{
    walk->row++;
    for (int i = walk->shape.n - 2; i >= 0; i--) {
        if (++walk->at[i] < walk->shape.dims[i]) {
            return;
        }
        walk->at[i] = 0;
    }
    walk->is_done = true;
}

int64_t tnd_walk_row(const struct tnd_walk *walk)
{
    return walk->shape.n == 0 ? 1 : walk->shape.dims[walk->shape.n - 1];
}

const void *tnd_walk_place(const struct tnd_walk *walk, const struct tnd_view *view)
{
    int64_t at = 0;
    for (int i = 0; i < walk->shape.n - 1; i++) {
        at += walk->at[i] * view->strides[i];
    }
    return (const char *)view->data + at * (int64_t)tandem_dtype_bytes(view->type);
}
