/* SPDX-License-Identifier: MIT
 * Operations of nets that have a source: each text is built once and kept while the device is open,
 * most recently used first. */
#include <string.h>

#include "backends/gpu/gpu_ops_parts.h"
#include "backends/gpu/gpu_program.h"
#include "base/alloc.h"
#include "ggml-like/work.h"

enum { MAX_GENERATED = 4096 }; /* kept; a program beyond is built in the place of the oldest one */

struct tnd_gpu_generated {
    struct tnd_gpu_generated *next;
    uint64_t hash;
    char *text;
    struct tnd_gpu_module *program;
    struct tnd_gpu_function *kernel;
};

enum tandem_status tnd_gpu_work_supports(const struct tnd_gpu_device *device,
                                         const tandem_tensor *node, struct tandem_error *error)
{
    const struct tnd_work_source *source = node->params.work->source;
    if (source == NULL) {
        return tnd_gpu_ops_refuse(device, node, "has no source for devices", error);
    }
    if (device->context->has_fixed_programs) {
        return tnd_gpu_ops_refuse(device, node, "needs a compiler, there are prebuilt kernels only",
                                  error);
    }
    if (source->has_double && !device->caps.fp64) {
        return tnd_gpu_ops_refuse(device, node, "needs double, which the device has not", error);
    }
    return TANDEM_OK;
}

static void release(const struct tnd_gpu_device *device, struct tnd_gpu_generated *one)
{
    device->driver->function_free(device->context, one->kernel);
    device->driver->module_free(device->context, one->program);
    tnd_free(one->text);
    tnd_free(one);
}

void tnd_gpu_work_close(struct tnd_gpu_device *device)
{
    while (device->ops != NULL && device->ops->generated != NULL) {
        struct tnd_gpu_generated *one = device->ops->generated;
        device->ops->generated = one->next;
        release(device, one);
    }
}

static enum tandem_status build(struct tnd_gpu_device *device, const char *entry,
                                const struct tnd_work_text *text, struct tnd_gpu_generated *one,
                                struct tandem_error *error)
{
    one->hash = text->hash;
    one->text = tnd_strdup(text->text);
    if (one->text == NULL) {
        return tnd_gpu_no_memory(device, 0, error);
    }
    TND_TRY(tnd_gpu_program_generated(device, text->hash, text->text, &one->program, error));
    return device->driver->function_new(device->context, one->program, entry, &one->kernel, error);
}

static void drop_oldest(struct tnd_gpu_device *device)
{
    struct tnd_gpu_generated **at = &device->ops->generated;
    int n = 0;
    for (; *at != NULL; at = &(*at)->next) {
        if (++n > MAX_GENERATED) {
            struct tnd_gpu_generated *one = *at;
            *at = one->next;
            release(device, one);
            return;
        }
    }
}

static enum tandem_status find(struct tnd_gpu_device *device, struct tnd_work_source *source,
                               struct tnd_gpu_generated **out, struct tandem_error *error)
{
    struct tnd_gpu_generated **at = &device->ops->generated;
    const struct tnd_work_text *text = tnd_work_text(source);
    if (text == NULL) {
        return tnd_gpu_no_memory(device, 0, error);
    }
    while (*at != NULL && ((*at)->hash != text->hash || strcmp((*at)->text, text->text) != 0)) {
        at = &(*at)->next;
    }
    struct tnd_gpu_generated *one = *at;
    if (one == NULL) {
        one = tnd_calloc(1, sizeof(*one));
        if (one == NULL) {
            return tnd_gpu_no_memory(device, 0, error);
        }
        const enum tandem_status status = build(device, source->entry, text, one, error);
        if (status != TANDEM_OK) {
            release(device, one);
            return status;
        }
    } else {
        *at = one->next;
    }
    one->next = device->ops->generated;
    device->ops->generated = one;
    drop_oldest(device);
    *out = one;
    return TANDEM_OK;
}

/* Arguments 2 * i and 2 * i + 1. */
static enum tandem_status bind(const struct tnd_gpu_device *device,
                               const struct tnd_gpu_generated *one, int i,
                               struct tnd_gpu_range range, struct tandem_error *error)
{
    TND_TRY(device->driver->argument(device->context, one->kernel, TND_GPU_GENERATED, 2 * i,
                                     sizeof(range.buffer), &range.buffer, error));
    return device->driver->argument(device->context, one->kernel, TND_GPU_GENERATED, 2 * i + 1,
                                    sizeof(range.offset), &range.offset, error);
}

enum tandem_status tnd_gpu_work(struct tnd_gpu_device *device, const struct tandem_work *work,
                                struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    struct tnd_work_source *source = node->params.work->source;
    const size_t local = tnd_gpu_ops_group(device);
    const size_t global = ((size_t)source->n_items + local - 1) / local * local;
    struct tnd_gpu_generated *one = NULL;
    struct tnd_gpu_range y;
    struct tnd_gpu_range range;
    TND_TRY(find(device, source, &one, error));
    TND_TRY(tnd_gpu_operand(device, work, -1, &y, error));
    TND_TRY(bind(device, one, 0, y, error));
    for (int i = 0; i < node->n_src; i++) {
        TND_TRY(tnd_gpu_ops_find(device, work, i, y, &range, error));
        TND_TRY(bind(device, one, 1 + i, range, error));
    }
    TND_TRY(device->driver->launch(device->context, one->kernel, TND_GPU_GENERATED, 1, &global,
                                   &local, NULL, error));
    return tnd_gpu_launched(device, error);
}
