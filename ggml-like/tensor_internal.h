/* SPDX-License-Identifier: MIT
 * Shared by the files of this room: the context behind the public handle, and the steps that all
 * builders take. Other rooms use tnd_tensor.h. */
#ifndef TND_TENSOR_INTERNAL_H
#define TND_TENSOR_INTERNAL_H

#include "base/arena.h"
#include "ggml-like/tnd_tensor.h"

struct tandem_context {
    struct tnd_arena arena;
    struct tandem_tensor *last_pending; /* head of the list by tandem_tensor.previous */
    int64_t n_pending;                  /* pending tensors built so far: the next sequence number */
    struct tandem_error error;          /* first error; status TANDEM_OK: none */
    uint64_t serial;                    /* tnd_context_serial */
    struct tnd_handle *handles;         /* of all buffers; see buffer.h */
    int32_t chain;                      /* of tensors built from now on */
};

/** Room for a shape as text: four 64-bit numbers, braces and commas. */
#define TND_SHAPE_TEXT_BYTES 96
/** "{64, 512}" without trailing extents of 1. Returns `text`. */
const char *tnd_shape_text(const int64_t *ne, char text[TND_SHAPE_TEXT_BYTES]);

/** Records an error unless the context has one already. Returns NULL, for builders to return. */
struct tandem_tensor *tnd_build_fail(tandem_context *context, enum tandem_status status,
                                     const char *where, int64_t got, int64_t limit,
                                     const char *format, ...) __attribute__((format(printf, 6, 7)));

/** Allocates `bytes` from the context, aligned and zeroed; without memory it records MEMORY and
 * returns NULL. */
void *tnd_context_take(tandem_context *context, size_t bytes, size_t alignment);

/** Creates the buffer of a root; without memory it records MEMORY and returns false. */
bool tnd_tensor_take_buffer(struct tandem_tensor *root);

/** Whether a builder may go on: the context has no error, and the operand can be used in it.
 * `role` is the operand's name in messages. */
bool tnd_build_ready(tandem_context *context, enum tandem_op op, const char *role,
                     const tandem_tensor *operand);
/** tnd_build_ready, and the operand is F32 with dense rows. */
bool tnd_build_ready_f32(tandem_context *context, enum tandem_op op, const char *role,
                         const tandem_tensor *operand);
/** tnd_build_ready, and `w` can be used as weights: any type but I32, rows dense. */
bool tnd_build_ready_weights(tandem_context *context, enum tandem_op op, const tandem_tensor *w);

/** Whether the tensor has values already: it is not computed, or an output of a finished graph. */
bool tnd_tensor_has_values(const tandem_tensor *tensor);

/** Fills `ne` with the given extents, then ones. Records ARGUMENT or SHAPE. */
bool tnd_build_extents(tandem_context *context, const char *what, enum tandem_type type, int n_dims,
                       const int64_t *given, int64_t ne[TANDEM_MAX_DIMS]);

/** Dense strides of a shape and the bytes that it takes; false on overflow. */
bool tnd_layout_dense(enum tandem_type type, const int64_t ne[TANDEM_MAX_DIMS],
                      size_t nb[TANDEM_MAX_DIMS], size_t *out_bytes);

/** Bytes from the first to the end of the last value; false on overflow. */
bool tnd_layout_bytes(enum tandem_type type, const int64_t ne[TANDEM_MAX_DIMS],
                      const size_t nb[TANDEM_MAX_DIMS], size_t *out_bytes);

/** A number that is unique in the process; not 0. */
uint64_t tnd_new_serial(void);

/** A new dense result of an operation, without memory. `src1` may be NULL. */
struct tandem_tensor *tnd_build_node(tandem_context *context, enum tandem_op op,
                                     enum tandem_type type, const int64_t ne[TANDEM_MAX_DIMS],
                                     tandem_tensor *src0, tandem_tensor *src1);

/** A new tensor over the memory of `a`, `offset` bytes behind its start; the caller has checked
 *  that it lies inside. For views and for CPY. */
struct tandem_tensor *tnd_build_view(tandem_context *context, enum tandem_op op, tandem_tensor *a,
                                     const int64_t ne[TANDEM_MAX_DIMS],
                                     const size_t nb[TANDEM_MAX_DIMS], size_t offset);

#endif
