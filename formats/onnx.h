/* SPDX-License-Identifier: MIT
 * ONNX models: the messages of onnx.proto (https://github.com/onnx/onnx, release 1.18.0). Checks
 * only the format; does not know operators. Names and small values are copied, raw data stays in
 * the bytes of the file. */
#ifndef TND_ONNX_H
#define TND_ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tnd_status.h"

#define TND_ONNX_MAX_DIMS   32 /* of a tensor or declared shape */
#define TND_ONNX_MAX_NESTED 16 /* nesting of graphs and of types */

/** X(NAME, number, "text", bits of a value). Numbers of TensorProto.DataType. */
#define TND_ONNX_TYPE_LIST(X)                                                                      \
    X(F32, 1, "float32", 32)                                                                       \
    X(U8, 2, "uint8", 8)                                                                           \
    X(I8, 3, "int8", 8)                                                                            \
    X(U16, 4, "uint16", 16)                                                                        \
    X(I16, 5, "int16", 16)                                                                         \
    X(I32, 6, "int32", 32)                                                                         \
    X(I64, 7, "int64", 64)                                                                         \
    X(STRING, 8, "string", 0)                                                                      \
    X(BOOL, 9, "bool", 8)                                                                          \
    X(F16, 10, "float16", 16)                                                                      \
    X(F64, 11, "float64", 64)                                                                      \
    X(U32, 12, "uint32", 32)                                                                       \
    X(U64, 13, "uint64", 64)                                                                       \
    X(COMPLEX64, 14, "complex64", 64)                                                              \
    X(COMPLEX128, 15, "complex128", 128)                                                           \
    X(BF16, 16, "bfloat16", 16)                                                                    \
    X(F8E4M3FN, 17, "float8e4m3fn", 8)                                                             \
    X(F8E4M3FNUZ, 18, "float8e4m3fnuz", 8)                                                         \
    X(F8E5M2, 19, "float8e5m2", 8)                                                                 \
    X(F8E5M2FNUZ, 20, "float8e5m2fnuz", 8)                                                         \
    X(U4, 21, "uint4", 4)                                                                          \
    X(I4, 22, "int4", 4)                                                                           \
    X(F4E2M1, 23, "float4e2m1", 4)                                                                 \
    X(F8E8M0, 24, "float8e8m0", 8)                                                                 \
    X(U2, 25, "uint2", 2)                                                                          \
    X(I2, 26, "int2", 2)                                                                           \
    X(F6E2M3, 27, "float6e2m3", 6)                                                                 \
    X(F6E3M2, 28, "float6e3m2", 6)
#define TND_ONNX_LAST_TYPE TND_ONNX_F6E3M2

enum tnd_onnx_type {
    TND_ONNX_UNDEFINED = 0,
#define TND_ONNX_TYPE_ENUM(name, number, text, bits) TND_ONNX_##name = number,
    TND_ONNX_TYPE_LIST(TND_ONNX_TYPE_ENUM)
#undef TND_ONNX_TYPE_ENUM
};

/** Name of a type; "undefined" for 0, NULL for an unknown number. */
const char *tnd_onnx_type_name(int32_t type);

/** Bytes of a text, not terminated; it may contain zero bytes. */
struct tnd_onnx_string {
    const uint8_t *bytes;
    size_t n;
};

struct tnd_onnx_tensor {
    const char *name;
    enum tnd_onnx_type type;
    int n_dims;          /* 0: a scalar */
    const int64_t *dims; /* slowest first */
    int64_t n_values;    /* the product of dims */
    /** n_values little-endian values without gaps; values of 2 to 6 bits are packed, the first in
     * the lowest bits. Not necessarily aligned. NULL for strings and for no values. */
    const uint8_t *data;
    size_t bytes;
    const struct tnd_onnx_string *strings; /* n_values strings, for TND_ONNX_STRING */
};

struct tnd_onnx_graph;

/** Numbers of AttributeProto.AttributeType. Lists of tensors, graphs and types, and sparse tensors,
 * have names but are not read. */
enum tnd_onnx_attribute_type {
    TND_ONNX_ATTRIBUTE_F32 = 1,
    TND_ONNX_ATTRIBUTE_I64 = 2,
    TND_ONNX_ATTRIBUTE_STRING = 3,
    TND_ONNX_ATTRIBUTE_TENSOR = 4,
    TND_ONNX_ATTRIBUTE_GRAPH = 5,
    TND_ONNX_ATTRIBUTE_F32S = 6,
    TND_ONNX_ATTRIBUTE_I64S = 7,
    TND_ONNX_ATTRIBUTE_STRINGS = 8,
    TND_ONNX_ATTRIBUTE_LAST = 14
};

struct tnd_onnx_attribute {
    const char *name;
    int type;              /* enum tnd_onnx_attribute_type; above it, up to LAST: not read */
    const char *reference; /* the function's attribute that provides the value; usually "" */
    int64_t i;
    float f;
    struct tnd_onnx_string s;
    int n; /* length of the list */
    const int64_t *ints;
    const float *floats;
    const struct tnd_onnx_string *strings;
    const struct tnd_onnx_tensor *tensor;
    const struct tnd_onnx_graph *graph;
};

struct tnd_onnx_node {
    const char *name; /* may be "" */
    const char *op;
    const char *domain;   /* "" for the operators of ONNX itself, also if spelt "ai.onnx" */
    const char *overload; /* which function of this name; usually "" */
    int n_inputs;
    int n_outputs;
    int n_attributes;
    const char *const *inputs; /* "": left out */
    const char *const *outputs;
    const struct tnd_onnx_attribute *attributes;
};

/** Kinds of values: the members of TypeProto. */
enum tnd_onnx_kind {
    TND_ONNX_UNSTATED,
    TND_ONNX_TENSOR,
    TND_ONNX_SEQUENCE,
    TND_ONNX_MAP,
    TND_ONNX_OPTIONAL,
    TND_ONNX_SPARSE
};

struct tnd_onnx_dim {
    int64_t value;    /* -1: not known */
    const char *name; /* name of a symbolic dimension; NULL: none */
};

struct tnd_onnx_value {
    const char *name;
    enum tnd_onnx_kind kind;
    enum tnd_onnx_type type;         /* element type of a tensor; UNDEFINED for other kinds */
    int n_dims;                      /* -1: no declared shape */
    const struct tnd_onnx_dim *dims; /* slowest first */
};

struct tnd_onnx_graph {
    const char *name;
    const char *description;
    int n_nodes;
    int n_initializers;
    int n_inputs;
    int n_outputs;
    int n_values;                      /* declared types of intermediate values */
    int n_sparse;                      /* sparse initializers: not read */
    int n_quantized;                   /* annotations of quantised tensors: not read */
    const struct tnd_onnx_node *nodes; /* in the order of the file */
    const struct tnd_onnx_tensor *initializers;
    const struct tnd_onnx_value *inputs;
    const struct tnd_onnx_value *outputs;
    const struct tnd_onnx_value *values;
};

struct tnd_onnx_opset {
    const char *domain;
    int64_t version;
};

/** A metadata property set by the model's author: "names", "stride" etc. */
struct tnd_onnx_property {
    const char *key;
    const char *value;
};

/** An operator that the model defines itself. */
struct tnd_onnx_function {
    const char *name;
    const char *domain;
    const char *overload;
    int64_t opset;               /* version of ONNX's own operators; 0: none stated */
    struct tnd_onnx_graph graph; /* without declared types and initializers */
    int n_names;                 /* attributes without default */
    const char *const *names;
    int n_defaults; /* attributes with default */
    const struct tnd_onnx_attribute *defaults;
};

/** A model; owns everything that it points to. */
struct tnd_onnx_model {
    int64_t ir_version;
    const char *producer;
    const char *producer_version;
    const char *domain;
    const char *description;
    int64_t version;
    int n_properties;
    const struct tnd_onnx_property *properties;
    int n_opsets;
    const struct tnd_onnx_opset *opsets;
    int n_functions;
    const struct tnd_onnx_function *functions;
    int64_t opset; /* version of ONNX's own operators; 0: none stated */
    const struct tnd_onnx_graph *graph;
    struct tnd_onnx_memory *memory; /* private */
};

/** Maps a model file and its files of external data, which must lie in its folder or below. Errors:
 * FILE, FORMAT, TRUNCATED, LIMIT, MEMORY, OVERFLOW, UNSUPPORTED_BUILD (a type of values that is not
 * in the list). */
enum tandem_status tnd_onnx_open(const char *path, struct tnd_onnx_model **out_model,
                                 struct tandem_error *error);
/** As tnd_onnx_open, from bytes that the model borrows. `name` is used in messages. External data
 * is refused: FORMAT. */
enum tandem_status tnd_onnx_read(const void *bytes, size_t n, const char *name,
                                 struct tnd_onnx_model **out_model, struct tandem_error *error);
void tnd_onnx_close(struct tnd_onnx_model *model);
/** Call after reading mapped files. FILE: a file was truncated meanwhile (base/tnd_mapped.h). */
enum tandem_status tnd_onnx_check_files(const struct tnd_onnx_model *model,
                                        struct tandem_error *error);
/** Releases the memory of mapped files; it is paged in again when read. */
void tnd_onnx_unload(const struct tnd_onnx_model *model);

/** Reads a file with a single tensor (.pb), such as ONNX's test data. `out_memory` owns the tensor;
 * free it with tnd_onnx_memory_free. Errors: those of tnd_onnx_read. */
enum tandem_status tnd_onnx_read_tensor(const void *bytes, size_t n, const char *name,
                                        struct tnd_onnx_tensor *out_tensor,
                                        struct tnd_onnx_memory **out_memory,
                                        struct tandem_error *error);
void tnd_onnx_memory_free(struct tnd_onnx_memory *memory);

#endif
