/* SPDX-License-Identifier: MIT
 * room: ggml-like
 *
 * Tensors and the contexts that own them.
 *
 * A tensor is a typed, strided view with up to 4 dimensions; ne[0] runs fastest. In matrix products
 * weights W are N x K (ne = {K, N}), activations X are M x K (ne = {K, M}) and the result
 * Y = X * W^T is M x N (ne = {N, M}).
 *
 * A context is an arena: tensors, graphs and names made in it die with it. One thread at a time may
 * use a context; different contexts are independent. */
#ifndef TANDEM_TENSOR_H
#define TANDEM_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tandem/status.h"
#include "tandem/type-list.h"

TANDEM_BEGIN_C

#define TANDEM_MAX_DIMS   4  /**< dimensions of a tensor */
#define TANDEM_MAX_SRC    5  /**< operands of an operation */
#define TANDEM_MAX_NAME   64 /**< bytes of a name, its end included */
#define TANDEM_MAX_CHAINS 16 /**< chains of a context */

/** Tensor type; numbers as in ggml, except BCML1. */
enum tandem_type {
#define TANDEM_TYPE_ENUM(name, number, text, block_values, block_bytes) TANDEM_TYPE_##name = number,
    TANDEM_TYPE_LIST(TANDEM_TYPE_ENUM)
#undef TANDEM_TYPE_ENUM
        TANDEM_TYPE_NUMBERS = 256 /**< upper bound of type numbers */
};

/** Owns the memory of tensors and graphs. */
typedef struct tandem_context tandem_context;
/** Owned by its context: there is no call that frees a tensor. */
typedef struct tandem_tensor tandem_tensor;

/* ---- types ---- */

/** "q4_0" and the like; "unknown" for a number that is no type. Static storage. Never fails. Any
 *  thread. */
TANDEM_API const char *tandem_type_name(enum tandem_type type);

/** Finds a type by name, in upper or lower case. Never fails: returns false and leaves `out` when
 *  there is none or a pointer is NULL. Any thread. */
TANDEM_API bool tandem_type_from_name(const char *name, enum tandem_type *out);

/** Whether the number is a type of this library. Never fails. Any thread. */
TANDEM_API bool tandem_type_is_valid(enum tandem_type type);

/** Whether the type stores values in blocks of more than one (Q4_0 to Q6_K, BCML1). Never fails.
 *  Any thread. */
TANDEM_API bool tandem_type_is_quantized(enum tandem_type type);

/** Values in one block: 1, 32 or 256; 0 for a number that is no type. Never fails. Any thread. */
TANDEM_API int64_t tandem_type_block_values(enum tandem_type type);

/** Bytes of one block; 0 for a number that is no type. Never fails. Any thread. */
TANDEM_API size_t tandem_type_block_bytes(enum tandem_type type);

/** Bytes of `n` values, or 0 when `n` is negative, not a multiple of the block or too large. Never
 *  fails. Any thread. */
TANDEM_API size_t tandem_type_row_bytes(enum tandem_type type, int64_t n);

/** Converts `n` values from `src` (type's block layout) to float. Bit-identical to ggml's scalar
 * code. `n` is a multiple of the block. Errors: TYPE for I32, ARGUMENT. Any thread. */
TANDEM_API enum tandem_status tandem_dequantize(enum tandem_type type, const void *src, float *dst,
                                                int64_t n);

/** Converts `n` floats into the type's blocks. NaN and infinities in the input result in arbitrary
 * blocks, but never in undefined behaviour. Errors: TYPE for I32, ARGUMENT. Any thread. */
TANDEM_API enum tandem_status tandem_quantize(enum tandem_type type, const float *src, void *dst,
                                              int64_t n);

/* ---- contexts ---- */

/** Options of tandem_context_new. */
struct tandem_context_options {
    size_t size;        /**< sizeof(struct tandem_context_options); 0 is an error */
    size_t chunk_bytes; /**< the arena grows by this much at least; 0: 1 MiB */
    size_t limit_bytes; /**< the arena never grows beyond this; 0: no limit */
};
#define TANDEM_CONTEXT_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_context_options), 0, 0                                                \
    }

/** Creates an empty context, which the caller owns. `options` is read during the call; NULL:
 *  defaults. Any thread. Errors: ARGUMENT (`out_context` is NULL), ABI, MEMORY. */
TANDEM_API enum tandem_status tandem_context_new(const struct tandem_context_options *options,
                                                 tandem_context **out_context,
                                                 struct tandem_error *error);

/** Frees the context and everything made in it: tensors, graphs, names. No graph of it may be
 *  computing, and no graph elsewhere may read its tensors later. NULL is allowed. Never fails. One
 *  thread at a time. */
TANDEM_API void tandem_context_free(tandem_context *context);

/** Drops everything made in the context, its error too, and keeps the memory: later tensors
 * allocate only what exceeds it. NULL is allowed. Never fails. One thread at a time. */
TANDEM_API void tandem_context_reset(tandem_context *context);

/** First error met by a builder in this context, or TANDEM_OK. Copies the details to `error`.
 *  A builder given NULL records ARGUMENT; in a context with an error, builders return NULL and
 *  record nothing more. One thread at a time. Errors: the recorded one; ARGUMENT for NULL. */
TANDEM_API enum tandem_status tandem_context_status(const tandem_context *context,
                                                    struct tandem_error *error);

/** Clears the recorded error: builders work again. What was made before it stays; what failed was
 * never made. NULL is allowed. Never fails. One thread at a time. */
TANDEM_API void tandem_context_clear_error(tandem_context *context);

/** Results of operations that are built from now on belong to a chain, 0 to TANDEM_MAX_CHAINS - 1;
 * 0 unless set, and after a reset. Intermediate results share memory only within their chain:
 * chains of one graph that do not depend on each other, such as micro-batches that go through
 * several devices, can run at once. Values are the same; memory is the sum over the chains. NULL
 * and other numbers are ignored. Never fails. One thread at a time. */
TANDEM_API void tandem_context_set_chain(tandem_context *context, int chain);

/** Bytes allocated by the context; 0 for NULL. Never fails. One thread at a time. */
TANDEM_API size_t tandem_context_bytes(const tandem_context *context);

/* ---- making tensors ---- */

/** A tensor with zeroed storage of its own in the context (64-byte aligned). `ne` has `n_dims`
 *  extents, each at least 0 (missing ones are 1), and is copied; ne[0] is a multiple of the type's
 *  block. One thread at a time per context. Errors: returns NULL and records ARGUMENT, SHAPE,
 *  OVERFLOW or MEMORY in the context. */
TANDEM_API tandem_tensor *tandem_tensor_new(tandem_context *context, enum tandem_type type,
                                            int n_dims, const int64_t *ne);

/** tandem_tensor_new with one dimension of `ne0` values, and with two: `ne1` rows of `ne0`
 *  values. One thread at a time per context. Errors: as tandem_tensor_new. */
TANDEM_API tandem_tensor *tandem_tensor_new_1d(tandem_context *context, enum tandem_type type,
                                               int64_t ne0);
TANDEM_API tandem_tensor *tandem_tensor_new_2d(tandem_context *context, enum tandem_type type,
                                               int64_t ne0, int64_t ne1);

/** A contiguous tensor over memory of the caller, which it borrows: `data` (at least `bytes` long)
 * must outlive the tensor. `data` needs only the alignment of the type; 64 bytes are fastest. One
 * thread at a time per context. Errors: records TRUNCATED when `bytes` is too small, else as
 * tandem_tensor_new. */
TANDEM_API tandem_tensor *tandem_tensor_borrow(tandem_context *context, enum tandem_type type,
                                               int n_dims, const int64_t *ne, void *data,
                                               size_t bytes);

/** tandem_tensor_borrow over read-only memory, such as the weights of a mapped model file. The
 * tensor has TANDEM_ROLE_CONSTANT from the beginning; tandem_cpy into it records ARGUMENT,
 * tandem_tensor_set returns STATE. One thread at a time per context. Errors: as
 * tandem_tensor_borrow. */
TANDEM_API tandem_tensor *tandem_tensor_borrow_const(tandem_context *context, enum tandem_type type,
                                                     int n_dims, const int64_t *ne,
                                                     const void *data, size_t bytes);

/** Gives a tensor a name for messages, plans and dumps. It is copied; names longer than
 * TANDEM_MAX_NAME - 1 bytes are truncated. Returns `tensor`; NULL is allowed. Never fails. One
 * thread at a time per tensor. */
TANDEM_API tandem_tensor *tandem_tensor_set_name(tandem_tensor *tensor, const char *name);

/** Who may change the values of a tensor that no graph computes. A promise that lets devices keep
 *  their copies from one computation to the next. */
enum tandem_role {
    TANDEM_ROLE_INPUT,     /**< the program, between any two computations (default) */
    TANDEM_ROLE_CONSTANT,  /**< nobody: weights. The memory stays valid while the context lives */
    TANDEM_ROLE_STATE,     /**< only graphs of one runtime, such as a KV cache; the program reads or
                            * changes the values only after tandem_runtime_fetch */
    TANDEM_ROLE_LAZY_STATE /**< like TANDEM_ROLE_STATE, and the program can recompute the newest
                            * values: a device need not download what the last TANDEM_STATE_DEBT - 1
                            * computations wrote, which saves small downloads. If the device is then
                            * lost, graphs with the tensor fail with DEVICE_LOST until
                            * tandem_runtime_fetch was called with `will_change`; the values are
                            * then those that reached the host last */
};
/** Maximum number of computations until what they wrote into a TANDEM_ROLE_LAZY_STATE is on the
 * host. */
#define TANDEM_STATE_DEBT 16
/** Sets the role of a tensor that is neither a result nor a view, before a graph computes with it;
 *  others keep theirs. NULL is allowed. Returns `tensor`. Never fails. One thread at a time per
 *  tensor. */
TANDEM_API tandem_tensor *tandem_tensor_set_role(tandem_tensor *tensor, enum tandem_role role);

/* ---- values ---- */

/** As a number of values: all remaining ones. */
#define TANDEM_ALL (-1)

/** Copies `n` values (TANDEM_ALL: the rest), from the value `first` on in the order of ne, from
 * `values` into a tensor; in the tensor's own type and block layout, without gaps in `values`. The
 * tensor may be a strided view. `first` and `n` are multiples of the type's block. Does not update
 * copies on devices: call tandem_runtime_fetch before for TANDEM_ROLE_STATE, tandem_runtime_forget
 * for TANDEM_ROLE_CONSTANT. One thread at a time per tensor, while no graph computes with it.
 * Errors: ARGUMENT (NULL, range, part of a block), STATE (an intermediate result, or memory
 * borrowed as const). */
TANDEM_API enum tandem_status tandem_tensor_set(tandem_tensor *tensor, int64_t first, int64_t n,
                                                const void *values, struct tandem_error *error);

/** Copies values of a leaf, or of an output of a finished graph, to `out_values`. Any thread while
 * nobody changes the tensor. Errors: ARGUMENT, STATE, as for tandem_tensor_set. */
TANDEM_API enum tandem_status tandem_tensor_get(const tandem_tensor *tensor, int64_t first,
                                                int64_t n, void *out_values,
                                                struct tandem_error *error);

/* ---- properties of tensors (any thread while nobody changes them) ---- */

/** Type of the values; F32 for NULL. Never fails. Any thread. */
TANDEM_API enum tandem_type tandem_tensor_type(const tandem_tensor *tensor);
/** Extents, fastest first; 4 entries, missing dimensions are 1. Lives as long as the tensor; NULL
 *  for NULL. Never fails. Any thread. */
TANDEM_API const int64_t *tandem_tensor_ne(const tandem_tensor *tensor);
/** Strides in bytes; nb[0] is the size of a block, nb[1] the distance between two rows. 4 entries.
 * Lives as long as the tensor; NULL for NULL. Never fails. Any thread. */
TANDEM_API const size_t *tandem_tensor_nb(const tandem_tensor *tensor);
/** The name, or "". Lives as long as the tensor and changes with tandem_tensor_set_name. Never
 *  fails. Any thread. */
TANDEM_API const char *tandem_tensor_name(const tandem_tensor *tensor);
/** Name of the operation that makes the tensor: "none" for a leaf, else "mul_mat" and the like.
 *  Static storage. Never fails. Any thread. */
TANDEM_API const char *tandem_tensor_op_name(const tandem_tensor *tensor);
/** i-th operand of the operation, from 0 on; NULL when there is none. Never fails. Any thread. */
TANDEM_API tandem_tensor *tandem_tensor_src(const tandem_tensor *tensor, int i);
/** The memory of the values, or NULL for a result that has none yet. Outputs of a finished graph
 * have memory of their own; other results only while the graph computes. Owned by the context, or
 * by the lender. Never fails. Any thread. */
TANDEM_API void *tandem_tensor_data(const tandem_tensor *tensor);
/** Count of values: the product of the extents; 0 for NULL. Never fails. Any thread. */
TANDEM_API int64_t tandem_tensor_elements(const tandem_tensor *tensor);
/** Bytes from the first value to the end of the last one, strides included; 0 for NULL. Never
 * fails. Any thread. */
TANDEM_API size_t tandem_tensor_bytes(const tandem_tensor *tensor);
/** Whether values lie without gaps in the order of ne. Never fails. Any thread. */
TANDEM_API bool tandem_tensor_is_contiguous(const tandem_tensor *tensor);

TANDEM_END_C
#endif
