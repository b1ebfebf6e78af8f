/* SPDX-License-Identifier: MIT
 * Sources of nodes for devices, printed as OpenCL C when a device asks. A node without one stays on
 * the CPU. */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "graph/lower_internal.h"

/* Larger constants do not go to a device with a node. */
enum { MAX_CONSTANT_BYTES = 64 << 20 };

/* A tensor over a constant; one for all nodes that read it. */
static tandem_tensor *constant_tensor(struct tnd_lowering *l, int base)
{
    struct tnd_lower_value *v = &l->values[base];
    const int64_t bytes = v->known->n * (int64_t)tandem_dtype_bytes(v->known->type);
    const int64_t units = bytes / 4;
    if (v->tensors[TND_LAYOUT_PLAIN] == NULL && bytes > 0 && bytes % 4 == 0 &&
        bytes <= MAX_CONSTANT_BYTES && (uintptr_t)v->known->data % 4 == 0) {
        v->tensors[TND_LAYOUT_PLAIN] = tandem_tensor_borrow_const(
            l->out->context, TANDEM_TYPE_F32, 1, &units, v->known->data, (size_t)bytes);
    }
    return v->tensors[TND_LAYOUT_PLAIN];
}

static bool is_one_value(const struct tnd_view *view)
{
    for (int d = 0; d < view->shape.n; d++) {
        if (view->shape.dims[d] > 1 && view->strides[d] != 0) {
            return false;
        }
    }
    return true;
}

void tnd_lower_constants(struct tnd_lowering *l, const int *values, struct tnd_operand *operands,
                         int n_operands, tandem_tensor **tensors, int *n)
{
    for (int i = 0; i < n_operands; i++) {
        struct tnd_operand *in = &operands[i];
        const int base = tnd_net_value(l->net, values[i])->base;
        int at = 0;
        if (in->src >= 0 || is_one_value(&in->view) || *n == TANDEM_MAX_SRC) {
            continue;
        }
        tandem_tensor *tensor = constant_tensor(l, base);
        while (at < *n && tensors[at] != tensor) {
            at++;
        }
        if (tensor != NULL) {
            tensors[at] = tensor;
            *n += at == *n;
            in->src = at;
        }
    }
}

/* A source, and the program from which it is printed. */
struct tnd_lowered_source {
    struct tnd_work_source base; /* the first member */
    struct tnd_lowered_source *next;
    struct tnd_fuse_printed printed;
    struct tnd_fuse_space space;
    struct tnd_printed_window window;
};

static struct tnd_work_text *print_source(const struct tnd_work_source *base)
{
    const struct tnd_lowered_source *source = (const struct tnd_lowered_source *)base;
    struct tnd_text text = TND_TEXT_INIT;
    struct tnd_work_text *out = NULL;
    if (tnd_fuse_print(&source->printed, TND_DIALECT_OPENCL, &text)) {
        const size_t n =
            text.n + 8 - text.n % 8; /* whole words, to hash them; the last byte is 0 */
        out = tnd_calloc(1, sizeof(*out) + n);
        if (out != NULL) {
            memcpy(out->text, text.bytes, text.n);
            out->hash = tnd_hash_words(out->text, n);
        }
    }
    tnd_text_fini(&text);
    return out;
}

void tnd_lowered_free_texts(struct tnd_lowered *lowered)
{
    for (struct tnd_lowered_source *it = lowered->sources; it != NULL; it = it->next) {
        tnd_free(atomic_load(&it->base.text));
    }
}

/* The source lives as long as the lowered net, as the node's job does. */
static struct tnd_work_source *keep_source(struct tnd_lowering *l, const struct tnd_work *job,
                                           const struct tnd_fuse_printed *printed)
{
    struct tnd_lowered_source *source =
        tnd_arena_alloc(&l->out->arena, sizeof(*source), _Alignof(struct tnd_lowered_source));
    struct tnd_fuse *fuse = NULL;
    if (printed->fuse != &job->fuse) {
        fuse = tnd_arena_alloc(&l->out->arena, sizeof(*fuse), _Alignof(struct tnd_fuse));
    }
    if (source == NULL || (printed->fuse != &job->fuse && fuse == NULL)) {
        return NULL;
    }
    *source = (struct tnd_lowered_source){
        .base = {.entry = TND_PRINTED_NAME,
                 .n_items = tnd_fuse_print_values(printed),
                 .has_double = tnd_fuse_print_has_double(printed),
                 .print = print_source},
        .next = l->out->sources,
        .printed = *printed,
        .space = *printed->space,
    };
    source->printed.space = &source->space;
    if (fuse != NULL) {
        *fuse = *printed->fuse;
        source->printed.fuse = fuse;
    }
    if (printed->window != NULL) {
        source->window = *printed->window;
        source->printed.window = &source->window;
    }
    l->out->sources = source;
    return &source->base;
}

void tnd_lower_print(struct tnd_lowering *l, const struct tnd_fuse_printed *printed,
                     tandem_tensor *node)
{
    const struct tnd_lower_kernels *kernels = l->options->kernels;
    if (tnd_fuse_print_values(printed) > 0 && tnd_fuse_can_print(printed)) {
        node->params.work->source = keep_source(l, node->params.work, printed);
        if (kernels != NULL) {
            tnd_text_add(kernels->text, "// ---- kernel\n");
            (void)tnd_fuse_print(printed, kernels->dialect, kernels->text);
        }
    }
}

/* False: an operand is not a tensor. */
static bool find_places(const struct tnd_operand *operands, int n, struct tnd_fuse_printed *printed)
{
    for (int i = 0; i < n; i++) {
        const struct tnd_operand *in = &operands[i];
        printed->in[i] = (struct tnd_fuse_place){
            .buffer = in->src, .offset = in->offset, .value = in->view.data};
        if (in->src < 0 && !is_one_value(&in->view)) {
            return false;
        }
    }
    return true;
}

void tnd_lower_source(struct tnd_lowering *l, const struct tnd_work *job, tandem_tensor *node)
{
    struct tnd_fuse_printed printed = {
        .fuse = &job->fuse, .space = &job->space, .n_buffers = node->n_src};
    if (find_places(job->in, job->n_in, &printed)) {
        tnd_lower_print(l, &printed, node);
    }
}

void tnd_lower_window(struct tnd_lowering *l, const struct tnd_printed_window *window, int64_t rows,
                      int64_t columns, const struct tnd_epilogue *epilogue, tandem_tensor *node)
{
    struct tnd_fuse copy = {.n_inputs = 0};
    struct tnd_fuse_space space = {.shape = {2, {rows, columns}}};
    struct tnd_fuse_printed printed = {
        .fuse = &copy, .space = &space, .n_buffers = node->n_src, .window = window};
    const int x = tnd_fuse_input(&copy, TANDEM_DTYPE_F32);
    (void)tnd_fuse_step(&copy, TND_NET_COPY, 0, TANDEM_DTYPE_F32, &x, 1);
    printed.in[0].buffer = -1;
    if (epilogue != NULL) {
        printed.fuse = &epilogue->fuse;
        printed.self = epilogue->matrix.self;
        for (int i = 0; i < epilogue->fuse.n_inputs; i++) {
            memcpy(space.strides[i], epilogue->matrix.strides[i], sizeof(int64_t[2]));
        }
        if (!find_places(epilogue->in, epilogue->fuse.n_inputs, &printed)) {
            return;
        }
    }
    tnd_lower_print(l, &printed, node);
}

tandem_tensor *tnd_lower_weights(struct tnd_lowering *l, const struct tnd_array *array)
{
    const size_t bytes = (size_t)array->n * sizeof(float);
    return bytes > MAX_CONSTANT_BYTES
               ? NULL
               : tandem_tensor_borrow_const(l->out->context, TANDEM_TYPE_F32, 1, &array->n,
                                            array->data, bytes);
}
