/* SPDX-License-Identifier: MIT
 * Sources of custom nodes for devices: what the node computes, printed as OpenCL C. A node without
 * one stays on the CPU. */
#include <string.h>

#include "base/hash.h"
#include "graph/lower_internal.h"

/* Constants up to this size go to a device with a node. */
enum { MAX_CONSTANT_BYTES = 64 << 20 };

/* A tensor over a constant; one for all nodes that read it. */
static tandem_tensor *constant_tensor(struct tnd_lowering *l, int base)
{
    struct tnd_lower_value *v = &l->values[base];
    const int64_t bytes = v->known->n * (int64_t)tnd_dtype_bytes(v->known->type);
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

void tnd_lower_constants(struct tnd_lowering *l, const int *values, struct tnd_job *job,
                         tandem_tensor **tensors, int *n)
{
    for (int i = 0; i < job->n_in; i++) {
        struct tnd_operand *in = &job->in[i];
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

/* The text lives as long as the lowered net. */
static const struct tnd_custom_source *keep_source(struct tnd_lowering *l,
                                                   const struct tnd_fuse_printed *printed,
                                                   const struct tnd_text *text)
{
    struct tnd_arena *arena = &l->out->arena;
    struct tnd_custom_source *source =
        tnd_arena_alloc(arena, sizeof(*source), _Alignof(struct tnd_custom_source));
    char *copy = tnd_arena_alloc(arena, text->n + 1, 1);
    if (source == NULL || copy == NULL) {
        return NULL;
    }
    memcpy(copy, text->bytes, text->n);
    copy[text->n] = '\0';
    *source = (struct tnd_custom_source){.entry = TND_PRINTED_NAME,
                                         .text = copy,
                                         .hash = tnd_hash_string(copy, 0),
                                         .n_items = tnd_fuse_print_values(printed),
                                         .has_double = tnd_fuse_print_has_double(printed)};
    return source;
}

void tnd_lower_print(struct tnd_lowering *l, const struct tnd_fuse_printed *printed,
                     tandem_tensor *node)
{
    const struct tnd_lower_kernels *kernels = l->options->kernels;
    struct tnd_text text = TND_TEXT_INIT;
    if (tnd_fuse_print_values(printed) > 0 && tnd_fuse_print(printed, TND_DIALECT_OPENCL, &text)) {
        node->params.custom.source = keep_source(l, printed, &text);
        if (kernels != NULL) {
            tnd_text_add(kernels->text, "// ---- kernel\n");
            (void)tnd_fuse_print(printed, kernels->dialect, kernels->text);
        }
    }
    tnd_text_fini(&text);
}

void tnd_lower_source(struct tnd_lowering *l, const struct tnd_job *job, tandem_tensor *node)
{
    struct tnd_fuse_printed printed = {
        .fuse = &job->fuse, .space = &job->space, .n_buffers = node->n_src};
    for (int i = 0; i < job->n_in; i++) {
        const struct tnd_operand *in = &job->in[i];
        printed.in[i] = (struct tnd_fuse_place){
            .buffer = in->src, .offset = in->offset, .value = in->view.data};
        if (in->src < 0 && !is_one_value(&in->view)) {
            return;
        }
    }
    tnd_lower_print(l, &printed, node);
}
