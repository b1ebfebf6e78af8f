/* SPDX-License-Identifier: MIT
 * Operations of nets that bring a source along: each text is built once and kept while the device
 * is open, the newest use first. */
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
    cl_program program;
    cl_kernel kernel;
};

enum tandem_status tnd_gpu_work_supports(const struct tnd_gpu_device *device,
                                         const tandem_tensor *node, struct tandem_error *error)
{
    const struct tnd_work_source *source = node->params.work->source;
    if (source == NULL) {
        return tnd_gpu_ops_refuse(node, "has no source for devices", error);
    }
    if (source->has_double && !device->caps.fp64) {
        return tnd_gpu_ops_refuse(node, "needs double, which the device has not", error);
    }
    return TANDEM_OK;
}

static void release(const struct tnd_gpu_device *device, struct tnd_gpu_generated *one)
{
    if (one->kernel != NULL) {
        device->library->cl.ReleaseKernel(one->kernel);
    }
    if (one->program != NULL) {
        device->library->cl.ReleaseProgram(one->program);
    }
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

static enum tandem_status build(struct tnd_gpu_device *device, const struct tnd_work_source *source,
                                struct tnd_gpu_generated *one, struct tandem_error *error)
{
    cl_int code = CL_SUCCESS;
    one->hash = source->hash;
    one->text = tnd_strdup(source->text);
    if (one->text == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, device->name, 0, 0,
                             "backend opencl: no memory");
    }
    TND_TRY(tnd_gpu_program_generated(device, source->hash, source->text, &one->program, error));
    one->kernel = device->library->cl.CreateKernel(one->program, source->entry, &code);
    return tnd_gpu_check(device, "clCreateKernel", code, error);
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

static enum tandem_status find(struct tnd_gpu_device *device, const struct tnd_work_source *source,
                               struct tnd_gpu_generated **out, struct tandem_error *error)
{
    struct tnd_gpu_generated **at = &device->ops->generated;
    while (*at != NULL && ((*at)->hash != source->hash || strcmp((*at)->text, source->text) != 0)) {
        at = &(*at)->next;
    }
    struct tnd_gpu_generated *one = *at;
    if (one == NULL) {
        one = tnd_calloc(1, sizeof(*one));
        if (one == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, device->name, 0, 0,
                                 "backend opencl: no memory");
        }
        const enum tandem_status status = build(device, source, one, error);
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
static enum tandem_status bind(const struct tnd_gpu_device *device, cl_kernel kernel, int i,
                               struct tnd_gpu_range range, struct tandem_error *error)
{
    const cl_ulong at = range.offset;
    cl_int code =
        device->library->cl.SetKernelArg(kernel, (cl_uint)(2 * i), sizeof(cl_mem), &range.buffer);
    if (code == CL_SUCCESS) {
        code = device->library->cl.SetKernelArg(kernel, (cl_uint)(2 * i + 1), sizeof(at), &at);
    }
    return tnd_gpu_check(device, "clSetKernelArg of a generated kernel", code, error);
}

enum tandem_status tnd_gpu_work(struct tnd_gpu_device *device, const struct tandem_work *work,
                                struct tandem_error *error)
{
    const tandem_tensor *node = work->node;
    const struct tnd_work_source *source = node->params.work->source;
    const size_t local = tnd_gpu_ops_group(device);
    const size_t global = ((size_t)source->n_items + local - 1) / local * local;
    struct tnd_gpu_generated *one = NULL;
    struct tnd_gpu_range y;
    struct tnd_gpu_range range;
    TND_TRY(find(device, source, &one, error));
    TND_TRY(tnd_gpu_operand(device, work, -1, &y, error));
    TND_TRY(bind(device, one->kernel, 0, y, error));
    for (int i = 0; i < node->n_src; i++) {
        TND_TRY(tnd_gpu_ops_find(device, work, i, y, &range, error));
        TND_TRY(bind(device, one->kernel, 1 + i, range, error));
    }
    TND_TRY(tnd_gpu_check(device, "clEnqueueNDRangeKernel of a generated kernel",
                          device->library->cl.EnqueueNDRangeKernel(
                              device->queue, one->kernel, 1, NULL, &global, &local, 0, NULL, NULL),
                          error));
    return tnd_gpu_launched(device, error);
}
