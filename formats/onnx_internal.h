/* SPDX-License-Identifier: MIT
 * Shared by the files that read ONNX: what a model owns, and reading fields of messages. */
#ifndef TND_ONNX_INTERNAL_H
#define TND_ONNX_INTERNAL_H

#include "base/arena.h"
#include "base/file.h"
#include "base/vector.h"
#include "formats/onnx.h"
#include "formats/wire.h"

/* A file of external data. */
struct tnd_onnx_file {
    char *location; /* as the model spells it */
    struct tnd_file file;
};

struct tnd_onnx_memory {
    struct tnd_arena arena;
    struct tnd_cursor file; /* all bytes of the model */
    struct tnd_file mapped; /* of tnd_onnx_open */
    const char *folder;     /* of the model, as realpath spells it; NULL: no external data */
    TND_VECTOR_OF(struct tnd_onnx_file, files);
};

/** How often each field stands in a message; those of higher numbers are not counted. */
#define TND_ONNX_MAX_FIELD 32
struct tnd_onnx_counts {
    int of[TND_ONNX_MAX_FIELD];
};

/** Fails with FORMAT and the place of the field in the file. `what` is the message that it is part
 *  of, `expected` a phrase. */
enum tandem_status tnd_onnx_broken(const struct tnd_onnx_memory *memory,
                                   const struct tnd_cursor *at, const char *what, int64_t got,
                                   const char *expected, struct tandem_error *error);

enum tandem_status tnd_onnx_count(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                  struct tnd_onnx_counts *out, struct tandem_error *error);
/** `n` zeroed items of the arena; NULL for none. */
enum tandem_status tnd_onnx_new(struct tnd_onnx_memory *memory, int64_t n, size_t item_bytes,
                                void *out, struct tandem_error *error);
/** The message inside a field. Errors: FORMAT (the field is a number). */
enum tandem_status tnd_onnx_inside(const struct tnd_onnx_memory *memory,
                                   const struct tnd_cursor *at, const struct tnd_wire_field *field,
                                   const char *what, struct tnd_cursor *out,
                                   struct tandem_error *error);
/** A copy of a field's text that ends with a zero byte. Errors: FORMAT (a number, or a zero byte
 *  inside), MEMORY. */
enum tandem_status tnd_onnx_text(struct tnd_onnx_memory *memory, const struct tnd_cursor *at,
                                 const struct tnd_wire_field *field, const char *what,
                                 const char **out, struct tandem_error *error);
/** As tnd_onnx_text, for a text that nothing is computed by: a zero byte ends it. */
enum tandem_status tnd_onnx_remark(struct tnd_onnx_memory *memory, const struct tnd_cursor *at,
                                   const struct tnd_wire_field *field, const char *what,
                                   const char **out, struct tandem_error *error);
/** A number. Errors: FORMAT (the field is no varint). */
enum tandem_status tnd_onnx_number(const struct tnd_onnx_memory *memory,
                                   const struct tnd_cursor *at, const struct tnd_wire_field *field,
                                   const char *what, int64_t *out, struct tandem_error *error);
/** All numbers of the repeated field `number` of a message, packed or one by one: the low `width`
 *  bytes of each, little-endian. `wire` is how one of them is written. Errors: FORMAT, TRUNCATED,
 *  MEMORY. */
enum tandem_status tnd_onnx_numbers(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                    uint32_t number, uint32_t wire, size_t width,
                                    const uint8_t **out, int64_t *out_n,
                                    struct tandem_error *error);

/** onnx_graph.c: ONNX's own operators have two spellings of their domain; "" for both. */
const char *tnd_onnx_domain(const char *domain);
/** Reads a GraphProto, which lies within `depth` others. */
enum tandem_status tnd_onnx_read_graph(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                       int depth, struct tnd_onnx_graph *graph,
                                       struct tandem_error *error);
/** Reads a FunctionProto. */
enum tandem_status tnd_onnx_read_function(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                          struct tnd_onnx_function *function,
                                          struct tandem_error *error);
/** onnx.c: reads an OperatorSetIdProto. */
enum tandem_status tnd_onnx_read_opset(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                       struct tnd_onnx_opset *opset, struct tandem_error *error);
/** onnx_tensor.c: reads a TensorProto. */
enum tandem_status tnd_onnx_tensor(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                   struct tnd_onnx_tensor *out, struct tandem_error *error);

#endif
