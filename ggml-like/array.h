/* SPDX-License-Identifier: MIT
 * Arrays of a net: type, shape, values; and views, through which kernels read them. */
#ifndef TND_ARRAY_H
#define TND_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tandem/net-list.h"

/** One row a type: X(NAME, C type that stores a value, "text", kind). */
#define TND_DTYPE_LIST(X)                                                                          \
    X(F32, float, "float32", FLOAT)                                                                \
    X(F64, double, "float64", FLOAT)                                                               \
    X(F16, uint16_t, "float16", FLOAT)                                                             \
    X(BF16, uint16_t, "bfloat16", FLOAT)                                                           \
    X(I8, int8_t, "int8", SIGNED)                                                                  \
    X(I16, int16_t, "int16", SIGNED)                                                               \
    X(I32, int32_t, "int32", SIGNED)                                                               \
    X(I64, int64_t, "int64", SIGNED)                                                               \
    X(U8, uint8_t, "uint8", UNSIGNED)                                                              \
    X(U16, uint16_t, "uint16", UNSIGNED)                                                           \
    X(U32, uint32_t, "uint32", UNSIGNED)                                                           \
    X(U64, uint64_t, "uint64", UNSIGNED)                                                           \
    X(BOOL, uint8_t, "bool", LOGICAL)                                                              \
    X(F8E4M3FN, uint8_t, "float8e4m3fn", FLOAT)                                                    \
    X(F8E4M3FNUZ, uint8_t, "float8e4m3fnuz", FLOAT)                                                \
    X(F8E5M2, uint8_t, "float8e5m2", FLOAT)                                                        \
    X(F8E5M2FNUZ, uint8_t, "float8e5m2fnuz", FLOAT)                                                \
    X(F8E8M0, uint8_t, "float8e8m0", FLOAT)                                                        \
    X(F4E2M1, uint8_t, "float4e2m1", FLOAT)                                                        \
    X(F6E2M3, uint8_t, "float6e2m3", FLOAT)                                                        \
    X(F6E3M2, uint8_t, "float6e3m2", FLOAT)

#define TND_DTYPE_COUNT(name, number) +1
enum { TND_N_DTYPES = TANDEM_DTYPE_LIST(TND_DTYPE_COUNT) };
#undef TND_DTYPE_COUNT
enum tnd_dtype_kind { TND_KIND_FLOAT, TND_KIND_SIGNED, TND_KIND_UNSIGNED, TND_KIND_LOGICAL };

enum tnd_dtype_kind tnd_dtype_kind(enum tandem_dtype type);
/** The layout of one-byte floats; NULL for other types. Static storage. */
const struct tnd_small_float *tnd_dtype_small(enum tandem_dtype type);

/** Extents, the slowest dimension first. */
struct tnd_dims {
    int n;
    int64_t dims[TANDEM_NET_MAX_DIMS];
};
/** Extents as an argument: tnd_net_reshape(net, x, &TND_DIMS(batch, 1, n)). */
#define TND_DIMS(...)                                                                              \
    ((const struct tnd_dims){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})

/** Number of values; -1 if it does not fit into 64 bits. */
int64_t tnd_dims_values(const struct tnd_dims *shape);
bool tnd_dims_is_equal(const struct tnd_dims *a, const struct tnd_dims *b);
/** Strides of a dense array, in values. */
void tnd_dims_strides(const struct tnd_dims *shape, int64_t *out);
/** "2x3x4"; "scalar". `out` has 160 bytes. */
const char *tnd_dims_text(const struct tnd_dims *shape, char *out);

struct tnd_array;

/** Owner of arrays that several others use. */
struct tnd_array_keeper {
    void (*give_back)(struct tnd_array *array);
    bool (*fill)(struct tnd_array *array); /* computes `data` again; false: impossible */
};

/** Values in row-major order, without gaps. */
struct tnd_array {
    enum tandem_dtype type;
    struct tnd_dims shape;
    int64_t n;                             /* values */
    void *data;                            /* NULL: dropped; tnd_array_fill computes it again */
    const struct tnd_array_keeper *keeper; /* NULL: whoever holds the array owns it */
};

/** A zeroed array, owned by the caller; NULL if memory is short or the size does not fit. */
struct tnd_array *tnd_array_new(enum tandem_dtype type, const struct tnd_dims *shape);
/** Frees an array, or returns it to its keeper. NULL is allowed. */
void tnd_array_free(struct tnd_array *array);
/** Makes sure that the values are in memory: computes them again if the keeper has dropped them.
 * False if that fails. */
static inline bool tnd_array_fill(const struct tnd_array *array)
{
    return array->data != NULL || array->keeper->fill((struct tnd_array *)array);
}
/** Value `i` as an integer (truncated), and as a number. */
int64_t tnd_array_integer(const struct tnd_array *array, int64_t i);
double tnd_array_number(const struct tnd_array *array, int64_t i);

/** A strided view of an array. */
struct tnd_view {
    enum tandem_dtype type;
    struct tnd_dims shape;
    int64_t strides[TANDEM_NET_MAX_DIMS]; /* in values */
    const void *data;                     /* of the value at index 0 */
};

/** Whether the values of a view lie in row-major order. */
bool tnd_view_has_no_gaps(const struct tnd_view *view);

/** The type that kernels compute in: float for floats of up to 32 bits, else double, int64_t or
 * uint64_t. */
enum tnd_lane { TND_LANE_F32, TND_LANE_F64, TND_LANE_I64, TND_LANE_U64, TND_N_LANES };

/** Values that kernels handle at a time. */
#define TND_LANES 64

/** A strip of values in the type that kernels compute in. */
union tnd_values {
    float f32[TND_LANES];
    double f64[TND_LANES];
    int64_t i64[TND_LANES];
    uint64_t u64[TND_LANES];
};

enum tnd_lane tnd_lane_of(enum tandem_dtype type);
/** Loads `n` values, at most TND_LANES, that are `stride` values apart, converted as by a C
 * cast. */
void tnd_values_load(enum tandem_dtype type, const void *from, int64_t stride, int n,
                     enum tnd_lane lane, union tnd_values *out);
/** Stores `n` values without gaps. Floats become 64-bit integers by truncation (out of range: the
 * nearest; NaN: 0; negative to unsigned: wrapped around); narrower integers keep the low bits.
 * Every value but 0 is true. */
void tnd_values_store(enum tandem_dtype type, enum tnd_lane lane, const union tnd_values *from,
                      int n, void *out);

/** Casts `n` floats to a type and back, in place. */
void tnd_values_cast(enum tandem_dtype type, float *values, int n);

/** Walks over all values of a shape, row by row of its last dimension. */
struct tnd_walk {
    struct tnd_dims shape;
    int64_t at[TANDEM_NET_MAX_DIMS];
    int64_t row; /* index of the row */
    bool is_done;
};
void tnd_walk_begin(struct tnd_walk *walk, const struct tnd_dims *shape);
void tnd_walk_next(struct tnd_walk *walk);
/** Values per row: the last extent, 1 for scalars. */
int64_t tnd_walk_row(const struct tnd_walk *walk);
/** Address of the current row in a view of the same shape. */
const void *tnd_walk_place(const struct tnd_walk *walk, const struct tnd_view *view);

#endif
