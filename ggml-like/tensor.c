/* SPDX-License-Identifier: MIT
 * Contexts, tensors and their accessors. Knows no operation; the op_*.c files build on
 * tensor_internal.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/options.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/tensor_internal.h"

/* ---- contexts ---- */

uint64_t tnd_new_serial(void)
{
    static _Atomic uint64_t last;
    /* relaxed: only uniqueness of the numbers matters */
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

enum tandem_status tandem_context_new(const struct tandem_context_options *options,
                                      tandem_context **out_context, struct tandem_error *error)
{
    struct tandem_context_options settings = TANDEM_CONTEXT_OPTIONS_INIT;
    if (out_context == NULL) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "context", 0, 0,
                             "context: out_context is NULL");
    }
    TND_TRY(tnd_options_read(options, "context", &settings, sizeof(settings), error));
    tandem_context *context = tnd_calloc(1, sizeof(*context));
    if (context == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "context", 0, (int64_t)sizeof(*context),
                             "context: no memory for %zu bytes", sizeof(*context));
    }
    tnd_arena_init(&context->arena, settings.chunk_bytes, settings.limit_bytes);
    context->serial = tnd_new_serial();
    *out_context = context;
    return TANDEM_OK;
}

void tandem_context_free(tandem_context *context)
{
    if (context != NULL) {
        tnd_buffer_release_all(context->handles);
        tnd_arena_fini(&context->arena);
        tnd_free(context);
    }
}

void tandem_context_reset(tandem_context *context)
{
    if (context != NULL) {
        tnd_buffer_release_all(context->handles);
        context->handles = NULL;
        tnd_arena_reset(&context->arena);
        context->last_pending = NULL;
        context->n_pending = 0;
        context->chain = 0;
        context->serial = tnd_new_serial();
        memset(&context->error, 0, sizeof(context->error));
    }
}

uint64_t tnd_context_serial(const tandem_context *context)
{
    return context->serial;
}

void tandem_context_set_chain(tandem_context *context, int chain)
{
    if (context != NULL && chain >= 0 && chain < TANDEM_MAX_CHAINS) {
        context->chain = chain;
    }
}

enum tandem_status tandem_context_status(const tandem_context *context, struct tandem_error *error)
{
    if (context == NULL) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "context", 0, 0, "context is NULL");
    }
    if (context->error.status != TANDEM_OK && error != NULL) {
        *error = context->error;
    }
    return context->error.status;
}

void tandem_context_clear_error(tandem_context *context)
{
    if (context != NULL) {
        memset(&context->error, 0, sizeof(context->error));
    }
}

size_t tandem_context_bytes(const tandem_context *context)
{
    return context == NULL ? 0 : tnd_arena_bytes(&context->arena);
}

void *tnd_context_take(tandem_context *context, size_t bytes, size_t alignment)
{
    void *memory = tnd_arena_alloc(&context->arena, bytes, alignment);
    if (memory == NULL) {
        tnd_build_fail(context, TANDEM_E_MEMORY, "context",
                       (int64_t)tnd_arena_bytes(&context->arena), (int64_t)bytes,
                       "context: no memory for %zu bytes more", bytes);
    }
    return memory;
}

struct tandem_tensor *tnd_build_fail(tandem_context *context, enum tandem_status status,
                                     const char *where, int64_t got, int64_t limit,
                                     const char *format, ...)
{
    if (context != NULL && context->error.status == TANDEM_OK) {
        char text[sizeof(context->error.text)];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        tnd_error_set(&context->error, status, where, got, limit, "%s", text);
    }
    return NULL;
}

/* ---- shapes and strides ---- */

const char *tnd_shape_text(const int64_t *ne, char text[TND_SHAPE_TEXT_BYTES])
{
    int n_dims = TANDEM_MAX_DIMS;
    while (n_dims > 1 && ne[n_dims - 1] == 1) {
        n_dims--;
    }
    size_t used = (size_t)snprintf(text, TND_SHAPE_TEXT_BYTES, "{");
    for (int i = 0; i < n_dims; i++) {
        used += (size_t)snprintf(text + used, TND_SHAPE_TEXT_BYTES - used, "%s%lld",
                                 i == 0 ? "" : ", ", (long long)ne[i]);
    }
    snprintf(text + used, TND_SHAPE_TEXT_BYTES - used, "}");
    return text;
}

bool tnd_layout_dense(enum tandem_type type, const int64_t ne[TANDEM_MAX_DIMS],
                      size_t nb[TANDEM_MAX_DIMS], size_t *out_bytes)
{
    const int64_t block_values = tandem_type_block_values(type);
    size_t stride = tandem_type_block_bytes(type);
    bool is_empty = false;
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        /* extents of 0 count as 1 here, so that strides of empty tensors are valid, too */
        size_t extent = ne[i] > 0 ? (size_t)ne[i] : 1;
        is_empty = is_empty || ne[i] == 0;
        nb[i] = stride;
        if (i == 0) {
            extent = (extent + (size_t)block_values - 1) / (size_t)block_values;
        }
        /* a quarter, because Q2_K stores 256 values in 84 bytes and the number of values must fit,
         * too */
        if (!tnd_mul_size(stride, extent, &stride) || stride > PTRDIFF_MAX / 4) {
            return false;
        }
    }
    *out_bytes = is_empty ? 0 : stride;
    return true;
}

bool tnd_layout_bytes(enum tandem_type type, const int64_t ne[TANDEM_MAX_DIMS],
                      const size_t nb[TANDEM_MAX_DIMS], size_t *out_bytes)
{
    size_t bytes = tandem_type_block_bytes(type);
    bool is_empty = false;
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        is_empty = is_empty || ne[i] == 0;
        size_t steps = ne[i] > 0 ? (size_t)ne[i] - 1 : 0;
        if (i == 0) {
            steps /= (size_t)tandem_type_block_values(type);
        }
        size_t span;
        if (!tnd_mul_size(steps, nb[i], &span) || !tnd_add_size(bytes, span, &bytes) ||
            bytes > PTRDIFF_MAX) {
            return false;
        }
    }
    *out_bytes = is_empty ? 0 : bytes;
    return true;
}

bool tnd_build_extents(tandem_context *context, const char *what, enum tandem_type type, int n_dims,
                       const int64_t *given, int64_t ne[TANDEM_MAX_DIMS])
{
    if (!tandem_type_is_valid(type)) {
        tnd_build_fail(context, TANDEM_E_ARGUMENT, what, type, 0, "%s: %d is no tensor type", what,
                       (int)type);
        return false;
    }
    if (given == NULL || n_dims < 1 || n_dims > TANDEM_MAX_DIMS) {
        tnd_build_fail(context, TANDEM_E_ARGUMENT, what, n_dims, TANDEM_MAX_DIMS,
                       given == NULL ? "%s: ne is NULL, n_dims is %d"
                                     : "%s: n_dims is %d, expected 1 to 4",
                       what, n_dims);
        return false;
    }
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        ne[i] = i < n_dims ? given[i] : 1;
        if (ne[i] < 0) {
            tnd_build_fail(context, TANDEM_E_SHAPE, what, ne[i], 0,
                           "%s: ne[%d] is %lld, expected 0 or more", what, i, (long long)ne[i]);
            return false;
        }
    }
    if (ne[0] % tandem_type_block_values(type) != 0) {
        tnd_build_fail(context, TANDEM_E_SHAPE, what, ne[0], tandem_type_block_values(type),
                       "%s: ne[0] is %lld, not a multiple of %s's block of %lld", what,
                       (long long)ne[0], tandem_type_name(type),
                       (long long)tandem_type_block_values(type));
        return false;
    }
    return true;
}

/* ---- making tensors ---- */

/* A tensor without memory and operands that is not in the list of pending tensors. */
static struct tandem_tensor *tensor_take(tandem_context *context, enum tandem_op op,
                                         enum tandem_type type, const int64_t *ne, const size_t *nb)
{
    struct tandem_tensor *tensor =
        tnd_context_take(context, sizeof(*tensor), _Alignof(struct tandem_tensor));
    if (tensor == NULL) {
        return NULL;
    }
    tensor->type = type;
    tensor->op = op;
    memcpy(tensor->ne, ne, sizeof(tensor->ne));
    memcpy(tensor->nb, nb, sizeof(tensor->nb));
    tensor->root = tensor;
    tensor->plan_offset = -1;
    tensor->index = -1;
    tensor->context = context;
    tensor->chain = context->chain;
    return tensor;
}

bool tnd_tensor_take_buffer(struct tandem_tensor *root)
{
    TND_ASSERT(root->root == root && root->buffer == NULL);
    root->buffer =
        tnd_context_take(root->context, sizeof(*root->buffer), _Alignof(struct tnd_buffer));
    return root->buffer != NULL;
}

/* Puts a tensor at the head of the context's list; graphs run in the order of this list. */
static void tensor_set_pending(struct tandem_tensor *tensor)
{
    tandem_context *context = tensor->context;
    tensor->flags |= TND_TENSOR_PENDING;
    tensor->previous = context->last_pending;
    tensor->sequence = ++context->n_pending;
    context->last_pending = tensor;
}

static struct tandem_tensor *leaf_new(tandem_context *context, enum tandem_type type, int n_dims,
                                      const int64_t *given, size_t *out_bytes)
{
    int64_t ne[TANDEM_MAX_DIMS];
    size_t nb[TANDEM_MAX_DIMS];
    if (context == NULL || context->error.status != TANDEM_OK ||
        !tnd_build_extents(context, "tensor", type, n_dims, given, ne)) {
        return NULL;
    }
    if (!tnd_layout_dense(type, ne, nb, out_bytes)) {
        char shape[TND_SHAPE_TEXT_BYTES];
        return tnd_build_fail(context, TANDEM_E_OVERFLOW, "tensor", 0, 0,
                              "tensor: the bytes of %s %s do not fit into 63 bits",
                              tandem_type_name(type), tnd_shape_text(ne, shape));
    }
    struct tandem_tensor *tensor = tensor_take(context, TANDEM_OP_NONE, type, ne, nb);
    return tensor != NULL && tnd_tensor_take_buffer(tensor) ? tensor : NULL;
}

tandem_tensor *tandem_tensor_new(tandem_context *context, enum tandem_type type, int n_dims,
                                 const int64_t *ne)
{
    size_t bytes = 0;
    struct tandem_tensor *tensor = leaf_new(context, type, n_dims, ne, &bytes);
    if (tensor == NULL) {
        return NULL;
    }
    tensor->data = tnd_context_take(context, bytes > 0 ? bytes : TND_ALIGNMENT, TND_ALIGNMENT);
    return tensor->data != NULL ? tensor : NULL;
}

tandem_tensor *tandem_tensor_new_1d(tandem_context *context, enum tandem_type type, int64_t ne0)
{
    return tandem_tensor_new(context, type, 1, &ne0);
}

tandem_tensor *tandem_tensor_new_2d(tandem_context *context, enum tandem_type type, int64_t ne0,
                                    int64_t ne1)
{
    return tandem_tensor_new(context, type, 2, (const int64_t[]){ne0, ne1});
}

tandem_tensor *tandem_tensor_borrow_const(tandem_context *context, enum tandem_type type,
                                          int n_dims, const int64_t *ne, const void *data,
                                          size_t bytes)
{
    /* cpy and tandem_tensor_set refuse tensors with this flag, so nothing is written to `data` */
    tandem_tensor *tensor = tandem_tensor_borrow(context, type, n_dims, ne, (void *)data, bytes);
    if (tensor != NULL) {
        tensor->flags |= TND_TENSOR_READ_ONLY | TND_TENSOR_CONSTANT;
    }
    return tensor;
}

tandem_tensor *tandem_tensor_borrow(tandem_context *context, enum tandem_type type, int n_dims,
                                    const int64_t *ne, void *data, size_t bytes)
{
    size_t needed = 0;
    struct tandem_tensor *tensor = leaf_new(context, type, n_dims, ne, &needed);
    if (tensor == NULL) {
        return NULL;
    }
    if (data == NULL) {
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, "tensor", 0, 0,
                              "tensor: the memory to borrow is NULL");
    }
    if (bytes < needed) {
        char shape[TND_SHAPE_TEXT_BYTES];
        return tnd_build_fail(
            context, TANDEM_E_TRUNCATED, "tensor", (int64_t)bytes, (int64_t)needed,
            "tensor: %s %s needs %zu bytes, the borrowed memory has %zu", tandem_type_name(type),
            tnd_shape_text(tensor->ne, shape), needed, bytes);
    }
    tensor->data = data;
    return tensor;
}

struct tandem_tensor *tnd_build_node(tandem_context *context, enum tandem_op op,
                                     enum tandem_type type, const int64_t ne[TANDEM_MAX_DIMS],
                                     tandem_tensor *src0, tandem_tensor *src1)
{
    size_t nb[TANDEM_MAX_DIMS];
    size_t bytes;
    if (!tnd_layout_dense(type, ne, nb, &bytes)) {
        char shape[TND_SHAPE_TEXT_BYTES];
        return tnd_build_fail(context, TANDEM_E_OVERFLOW, tandem_op_name(op), 0, 0,
                              "%s: the bytes of the result %s do not fit into 63 bits",
                              tandem_op_name(op), tnd_shape_text(ne, shape));
    }
    struct tandem_tensor *node = tensor_take(context, op, type, ne, nb);
    if (node != NULL) {
        node->src[0] = src0;
        node->src[1] = src1;
        node->n_src = src1 != NULL ? 2 : 1;
        tensor_set_pending(node);
    }
    return node;
}

struct tandem_tensor *tnd_build_view(tandem_context *context, enum tandem_op op, tandem_tensor *a,
                                     const int64_t ne[TANDEM_MAX_DIMS],
                                     const size_t nb[TANDEM_MAX_DIMS], size_t offset)
{
    struct tandem_tensor *view = tensor_take(context, op, a->type, ne, nb);
    if (view == NULL) {
        return NULL;
    }
    view->src[0] = a;
    view->n_src = 1;
    if (ne[0] == 1) {
        view->nb[0] =
            tandem_type_block_bytes(a->type); /* never used, and so the row counts as dense */
    }
    view->root = a->root; /* never a view itself */
    view->root_offset = a->root_offset + offset;
    if (a->data != NULL) {
        view->data = (char *)a->data + offset;
    }
    if ((a->flags & TND_TENSOR_PENDING) != 0 || op == TANDEM_OP_CPY ||
        op == TANDEM_OP_SCATTER) {
        tensor_set_pending(view);
    }
    return view;
}

/* ---- checks of operands that all builders share ---- */

bool tnd_tensor_has_values(const tandem_tensor *tensor)
{
    if ((tensor->flags & TND_TENSOR_PENDING) == 0) {
        return true;
    }
    return tensor->graph != NULL && tensor->graph->finished && tensor->data != NULL &&
           tensor->root->plan_offset < 0;
}

bool tnd_build_ready(tandem_context *context, enum tandem_op op, const char *role,
                     const tandem_tensor *operand)
{
    if (context == NULL || context->error.status != TANDEM_OK) {
        return false;
    }
    const char *name = tandem_op_name(op);
    if (operand == NULL) {
        tnd_build_fail(context, TANDEM_E_ARGUMENT, name, 0, 0, "%s: operand %s is NULL", name,
                       role);
        return false;
    }
    if (operand->context != context && !tnd_tensor_has_values(operand)) {
        tnd_build_fail(context, TANDEM_E_ARGUMENT, name, 0, 0,
                       "%s: operand %s%s%s is an uncomputed result of another context", name, role,
                       operand->name[0] != '\0' ? " " : "", operand->name);
        return false;
    }
    return true;
}

bool tnd_build_ready_f32(tandem_context *context, enum tandem_op op, const char *role,
                         const tandem_tensor *operand)
{
    if (!tnd_build_ready(context, op, role, operand)) {
        return false;
    }
    const char *name = tandem_op_name(op);
    if (operand->type != TANDEM_TYPE_F32) {
        tnd_build_fail(context, TANDEM_E_TYPE, name, operand->type, TANDEM_TYPE_F32,
                       "%s: %s is %s, expected f32", name, role, tandem_type_name(operand->type));
        return false;
    }
    if (operand->nb[0] != sizeof(float)) {
        char shape[TND_SHAPE_TEXT_BYTES];
        tnd_build_fail(context, TANDEM_E_SHAPE, name, (int64_t)operand->nb[0], sizeof(float),
                       "%s: rows of %s %s are not dense (nb[0] is %zu): use cont", name, role,
                       tnd_shape_text(operand->ne, shape), operand->nb[0]);
        return false;
    }
    return true;
}

/* ---- accessors ---- */

tandem_tensor *tandem_tensor_set_name(tandem_tensor *tensor, const char *name)
{
    if (tensor != NULL) {
        size_t length = name == NULL ? 0 : strnlen(name, TANDEM_MAX_NAME - 1);
        if (length > 0) {
            memcpy(tensor->name, name, length);
        }
        tensor->name[length] = '\0';
    }
    return tensor;
}

static _Atomic uint64_t role_changes;

uint64_t tnd_role_changes(void)
{
    return atomic_load_explicit(&role_changes, memory_order_acquire);
}

tandem_tensor *tandem_tensor_set_role(tandem_tensor *tensor, enum tandem_role role)
{
    if (tensor != NULL && tensor->root == tensor && tensor->op == TANDEM_OP_NONE) {
        tensor->flags &= ~(uint32_t)(TND_TENSOR_CONSTANT | TND_TENSOR_STATE | TND_TENSOR_LAZY);
        tensor->flags |= role == TANDEM_ROLE_CONSTANT     ? TND_TENSOR_CONSTANT
                         : role == TANDEM_ROLE_STATE      ? TND_TENSOR_STATE
                         : role == TANDEM_ROLE_LAZY_STATE ? TND_TENSOR_STATE | TND_TENSOR_LAZY
                                                          : 0U;
        atomic_fetch_add_explicit(&role_changes, 1, memory_order_release);
    }
    return tensor;
}

enum tandem_type tandem_tensor_type(const tandem_tensor *tensor)
{
    return tensor == NULL ? TANDEM_TYPE_F32 : tensor->type;
}

const int64_t *tandem_tensor_ne(const tandem_tensor *tensor)
{
    return tensor == NULL ? NULL : tensor->ne;
}

const size_t *tandem_tensor_nb(const tandem_tensor *tensor)
{
    return tensor == NULL ? NULL : tensor->nb;
}

const char *tandem_tensor_name(const tandem_tensor *tensor)
{
    return tensor == NULL ? "" : tensor->name;
}

tandem_tensor *tandem_tensor_src(const tandem_tensor *tensor, int i)
{
    return tensor == NULL || i < 0 || i >= tensor->n_src ? NULL : tensor->src[i];
}

void *tandem_tensor_data(const tandem_tensor *tensor)
{
    if (tensor == NULL) {
        return NULL;
    }
    if (tensor->data == NULL && tensor->root->data != NULL) {
        /* a view that no graph reaches, of a result that got memory after the view was built */
        return (char *)tensor->root->data + tensor->root_offset;
    }
    return tensor->data;
}

int64_t tandem_tensor_elements(const tandem_tensor *tensor)
{
    /* cannot overflow: tnd_layout_dense has checked it when the tensor was built */
    return tensor == NULL ? 0 : tensor->ne[0] * tensor->ne[1] * tensor->ne[2] * tensor->ne[3];
}

size_t tandem_tensor_bytes(const tandem_tensor *tensor)
{
    if (tensor == NULL || tensor->ne[0] == 0) {
        return 0;
    }
    /* cannot overflow: the tensor's builder has checked the layout */
    size_t bytes = tandem_type_block_bytes(tensor->type);
    bytes += (size_t)((tensor->ne[0] - 1) / tandem_type_block_values(tensor->type)) * tensor->nb[0];
    for (int i = 1; i < TANDEM_MAX_DIMS; i++) {
        if (tensor->ne[i] == 0) {
            return 0;
        }
        bytes += (size_t)(tensor->ne[i] - 1) * tensor->nb[i];
    }
    return bytes;
}

bool tandem_tensor_is_contiguous(const tandem_tensor *tensor)
{
    if (tensor == NULL) {
        return false;
    }
    const int64_t values = tandem_type_block_values(tensor->type);
    size_t dense = tandem_type_block_bytes(tensor->type);
    /* the stride of an extent of one block or row is never used */
    bool is_dense = tensor->ne[0] <= values || tensor->nb[0] == dense;
    bool is_empty = tensor->ne[0] == 0;
    /* called for every node of every run, mostly with types without blocks, which need no
     * division */
    dense *= (size_t)(values == 1 ? tensor->ne[0] : tensor->ne[0] / values);
    for (int i = 1; i < TANDEM_MAX_DIMS; i++) {
        is_empty = is_empty || tensor->ne[i] == 0;
        is_dense = is_dense && (tensor->ne[i] <= 1 || tensor->nb[i] == dense);
        dense *= (size_t)tensor->ne[i];
    }
    return is_dense || is_empty;
}

int64_t tnd_tensor_rows(const struct tandem_tensor *tensor)
{
    return tensor->ne[1] * tensor->ne[2] * tensor->ne[3];
}

bool tnd_mul_mat_is_plain(const struct tandem_tensor *node)
{
    if (node == NULL || node->op != TANDEM_OP_MUL_MAT) {
        return false;
    }
    const struct tandem_tensor *w = node->src[0]; /* {K, N} */
    const struct tandem_tensor *x = node->src[1]; /* {K, M} */
    return w->op == TANDEM_OP_NONE && w->ne[2] == 1 && w->ne[3] == 1 && x->ne[2] == 1 &&
           x->ne[3] == 1 && tandem_tensor_is_contiguous(w) && tandem_tensor_is_contiguous(x);
}
