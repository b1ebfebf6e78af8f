/* SPDX-License-Identifier: MIT
 * Shared by the files that read ONNX: memory owned by a model, and reading fields of messages. */
#ifndef TND_ONNX_INTERNAL_H
#define TND_ONNX_INTERNAL_H

#include "base/arena.h"
#include "base/file.h"
#include "base/vector.h"
#include "formats/onnx.h"
#include "formats/wire.h"

/* A file of external data. */
struct tnd_onnx_file {
    char *location; /* as in the model */
    struct tnd_file file;
};

struct tnd_onnx_memory {
    struct tnd_arena arena;
    struct tnd_cursor file; /* all bytes of the model file */
    struct tnd_file mapped; /* of tnd_onnx_open */
    const char *folder;     /* the model's, from realpath; NULL: no external data */
    TND_VECTOR_OF(struct tnd_onnx_file, files);
};

/** How often each field occurs in a message; higher field numbers are not counted. */
#define TND_ONNX_MAX_FIELD 32
struct tnd_onnx_counts {
    int of[TND_ONNX_MAX_FIELD];
};

/** Fails with FORMAT and the field's position in the file. `what` is the message that contains it,
 * `expected` a phrase. */
enum tandem_status tnd_onnx_broken(const struct tnd_onnx_memory *memory,
                                   const struct tnd_cursor *at, const char *what, int64_t got,
                                   const char *expected, struct tandem_error *error);

enum tandem_status tnd_onnx_count(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                  struct tnd_onnx_counts *out, struct tandem_error *error);
/** Allocates `n` zeroed items in the arena; NULL for none. */
enum tandem_status tnd_onnx_new(struct tnd_onnx_memory *memory, int64_t n, size_t item_bytes,
                                void *out, struct tandem_error *error);
/** A cursor over the message inside a field. Errors: FORMAT (the field is a number). */
enum tandem_status tnd_onnx_inside(const struct tnd_onnx_memory *memory,
                                   const struct tnd_cursor *at, const struct tnd_wire_field *field,
                                   const char *what, struct tnd_cursor *out,
                                   struct tandem_error *error);
/** Copies a field's text and terminates it. Errors: FORMAT (a number, or a zero byte inside),
 * MEMORY. */
enum tandem_status tnd_onnx_text(struct tnd_onnx_memory *memory, const struct tnd_cursor *at,
                                 const struct tnd_wire_field *field, const char *what,
                                 const char **out, struct tandem_error *error);
/** As tnd_onnx_text, for text that does not affect the computation: a zero byte ends it. */
enum tandem_status tnd_onnx_remark(struct tnd_onnx_memory *memory, const struct tnd_cursor *at,
                                   const struct tnd_wire_field *field, const char *what,
                                   const char **out, struct tandem_error *error);
/** Reads a number. Errors: FORMAT (the field is not a varint). */
enum tandem_status tnd_onnx_number(const struct tnd_onnx_memory *memory,
                                   const struct tnd_cursor *at, const struct tnd_wire_field *field,
                                   const char *what, int64_t *out, struct tandem_error *error);
/** Reads all numbers of the repeated field `number` of a message, packed or not, as little-endian
 * integers of `width` bytes. `wire` is the wire type of one number. Errors: FORMAT, TRUNCATED,
 * MEMORY. */
enum tandem_status tnd_onnx_numbers(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                    uint32_t number, uint32_t wire, size_t width,
                                    const uint8_t **out, int64_t *out_n,
                                    struct tandem_error *error);

/** onnx_graph.c: normalises a domain: "" for both spellings of ONNX's own. */
const char *tnd_onnx_domain(const char *domain);
/** Reads a GraphProto that is nested in `depth` others. */
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
