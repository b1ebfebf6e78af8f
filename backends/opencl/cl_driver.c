/* SPDX-License-Identifier: MIT
 * Implements the functions of a driver with OpenCL. A buffer is a cl_mem, an event a cl_event;
 * OpenCL keeps both until the commands that use them are over (OpenCL 1.2, sections 5.2 and 5.9),
 * so nothing here waits before releasing them. */
#include "backends/opencl/cl_driver.h"

#include <stdio.h>
#include <string.h>

#include "backends/gpu/gpu_kernels.h"
#include "base/alloc.h"

static struct tnd_cl_context *of(struct tnd_gpu_context *context)
{
    return (struct tnd_cl_context *)context;
}

static const struct tnd_cl_functions *calls(struct tnd_gpu_context *context)
{
    return &of(context)->library->cl;
}

static enum tandem_status check(const struct tnd_gpu_context *context, const char *call,
                                cl_int code, struct tandem_error *error)
{
    return tnd_cl_code_check(context->name, call, code, error);
}

/* ---- opening ---- */

static void open_clblast(struct tnd_cl_context *self, const char *path)
{
    struct tandem_error told = {0};
    if (path != NULL && strcmp(path, "off") == 0) {
        snprintf(self->base.blas_reason, sizeof(self->base.blas_reason),
                 "CLBlast is switched off by a setting");
    } else if (tnd_clblast_get(path, &self->clblast, &told) != TANDEM_OK) {
        snprintf(self->base.blas_reason, sizeof(self->base.blas_reason), "%s", told.text);
    } else {
        self->base.has_blas = true;
        self->base.has_blas_half = self->clblast->hgemm != NULL;
        self->base.has_blas_parameters = self->clblast->override_parameters != NULL;
    }
}

static enum tandem_status open_context(struct tnd_cl_context *self, cl_platform_id platform,
                                       bool with_times, struct tandem_error *error)
{
    const struct tnd_cl_functions *cl = &self->library->cl;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)platform, 0};
    cl_int code = CL_SUCCESS;
    self->context = cl->CreateContext(properties, 1, &self->id, NULL, NULL, &code);
    TND_TRY(check(&self->base, "clCreateContext", code, error));
    self->queues[TND_GPU_QUEUE_WORK] = cl->CreateCommandQueue(
        self->context, self->id, with_times ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
    return check(&self->base, "clCreateCommandQueue", code, error);
}

static void close_context(struct tnd_gpu_context *context)
{
    struct tnd_cl_context *self = of(context);
    const struct tnd_cl_functions *cl = calls(context);
    /* CLBlast's cache holds programs, and through them the context. Programs of other devices are
     * dropped, too, and built again when they are needed. */
    if (self->has_used_clblast && self->clblast->clear_cache != NULL) {
        self->clblast->clear_cache();
    }
    for (int i = TND_GPU_QUEUE_COUNT - 1; i >= 0; i--) {
        if (self->queues[i] != NULL) {
            cl->ReleaseCommandQueue(self->queues[i]);
        }
    }
    if (self->context != NULL) {
        cl->ReleaseContext(self->context);
    }
    tnd_free(self);
}

static enum tandem_status open(const struct tnd_gpu_libraries *libraries,
                               const struct tnd_gpu_found *found, bool with_times,
                               struct tnd_gpu_context **out_context, struct tandem_error *error)
{
    const struct tnd_cl_library *library = NULL;
    TND_TRY(tnd_cl_library_get(libraries->driver, &library, error));
    struct tnd_cl_context *self = tnd_calloc(1, sizeof(*self));
    if (self == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "opencl", (int64_t)sizeof(*self), 0,
                             "backend opencl: no memory");
    }
    self->base.driver = &tnd_cl_driver;
    snprintf(self->base.name, sizeof(self->base.name), "%s", found->info.name);
    self->library = library;
    self->id = (cl_device_id)found->ids[1];
    enum tandem_status status =
        open_context(self, (cl_platform_id)found->ids[0], with_times, error);
    if (status != TANDEM_OK) {
        close_context(&self->base);
        return status;
    }
    open_clblast(self, libraries->blas);
    *out_context = &self->base;
    return TANDEM_OK;
}

/* ---- memory ---- */

static enum tandem_status buffer_new(struct tnd_gpu_context *context, size_t bytes,
                                     struct tnd_gpu_buffer **out_buffer, struct tandem_error *error)
{
    cl_int code = CL_SUCCESS;
    cl_mem buffer =
        calls(context)->CreateBuffer(of(context)->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    TND_TRY(check(context, "clCreateBuffer", code, error));
    *out_buffer = (struct tnd_gpu_buffer *)buffer;
    return TANDEM_OK;
}

static void buffer_free(struct tnd_gpu_context *context, struct tnd_gpu_buffer *buffer)
{
    if (buffer != NULL) {
        calls(context)->ReleaseMemObject((cl_mem)buffer);
    }
}

static struct tnd_gpu_buffer *buffer_share(struct tnd_gpu_context *context, const void *pages,
                                           size_t bytes)
{
    cl_int code = CL_SUCCESS;
    cl_mem buffer =
        calls(context)->CreateBuffer(of(context)->context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR,
                                     bytes, (void *)(uintptr_t)pages, &code);
    return code == CL_SUCCESS ? (struct tnd_gpu_buffer *)buffer : NULL;
}

static enum tandem_status pinned_new(struct tnd_gpu_context *context, size_t bytes,
                                     struct tnd_gpu_buffer **out_pinned, void **out_host,
                                     struct tandem_error *error)
{
    const struct tnd_cl_functions *cl = calls(context);
    cl_int code = CL_SUCCESS;
    cl_mem pinned =
        cl->CreateBuffer(of(context)->context, CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &code);
    TND_TRY(check(context, "clCreateBuffer of pinned memory", code, error));
    void *host = cl->EnqueueMapBuffer(of(context)->queues[TND_GPU_QUEUE_WORK], pinned, CL_TRUE,
                                      CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &code);
    if (code != CL_SUCCESS) {
        cl->ReleaseMemObject(pinned);
        return check(context, "clEnqueueMapBuffer", code, error);
    }
    *out_pinned = (struct tnd_gpu_buffer *)pinned;
    *out_host = host;
    return TANDEM_OK;
}

static void pinned_free(struct tnd_gpu_context *context, struct tnd_gpu_buffer *pinned, void *host)
{
    const struct tnd_cl_functions *cl = calls(context);
    if (pinned != NULL) {
        cl_command_queue queue = of(context)->queues[TND_GPU_QUEUE_WORK];
        cl->EnqueueUnmapMemObject(queue, (cl_mem)pinned, host, 0, NULL, NULL);
        cl->Finish(queue);
        cl->ReleaseMemObject((cl_mem)pinned);
    }
}

/* ---- copies ---- */

/* Each queue but the work queue has one user at a time, see driver.h. */
static enum tandem_status get_queue(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                                    cl_command_queue *out_queue, struct tandem_error *error)
{
    struct tnd_cl_context *self = of(context);
    if (self->queues[which] == NULL) {
        cl_int code = CL_SUCCESS;
        cl_command_queue queue =
            calls(context)->CreateCommandQueue(self->context, self->id, 0, &code);
        TND_TRY(check(context, "clCreateCommandQueue for copies", code, error));
        self->queues[which] = queue;
    }
    *out_queue = self->queues[which];
    return TANDEM_OK;
}

static enum tandem_status write(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                                struct tnd_gpu_event *after, struct tnd_gpu_buffer *to, size_t at,
                                const void *from, size_t bytes, struct tnd_gpu_event **out_event,
                                struct tandem_error *error)
{
    cl_command_queue queue = NULL;
    cl_event event = NULL;
    const cl_event before = (cl_event)after;
    TND_TRY(get_queue(context, which, &queue, error));
    TND_TRY(check(context, "clEnqueueWriteBuffer",
                  calls(context)->EnqueueWriteBuffer(
                      queue, (cl_mem)to, out_event == NULL, at, bytes, from, before != NULL,
                      before != NULL ? &before : NULL, out_event != NULL ? &event : NULL),
                  error));
    if (out_event != NULL) {
        *out_event = (struct tnd_gpu_event *)event;
    }
    return TANDEM_OK;
}

static enum tandem_status read(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                               struct tnd_gpu_event *after, struct tnd_gpu_buffer *from, size_t at,
                               void *to, size_t bytes, struct tnd_gpu_event **out_event,
                               struct tandem_error *error)
{
    cl_command_queue queue = NULL;
    cl_event event = NULL;
    const cl_event before = (cl_event)after;
    TND_TRY(get_queue(context, which, &queue, error));
    TND_TRY(check(context, "clEnqueueReadBuffer",
                  calls(context)->EnqueueReadBuffer(
                      queue, (cl_mem)from, out_event == NULL, at, bytes, to, before != NULL,
                      before != NULL ? &before : NULL, out_event != NULL ? &event : NULL),
                  error));
    if (out_event != NULL) {
        *out_event = (struct tnd_gpu_event *)event;
    }
    return TANDEM_OK;
}

static enum tandem_status copy(struct tnd_gpu_context *context, struct tnd_gpu_buffer *from,
                               size_t from_at, struct tnd_gpu_buffer *to, size_t to_at,
                               size_t bytes, struct tandem_error *error)
{
    return check(context, "clEnqueueCopyBuffer",
                 calls(context)->EnqueueCopyBuffer(of(context)->queues[TND_GPU_QUEUE_WORK],
                                                   (cl_mem)from, (cl_mem)to, from_at, to_at, bytes,
                                                   0, NULL, NULL),
                 error);
}

/* ---- queues and events ---- */

static enum tandem_status flush(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                                struct tandem_error *error)
{
    return check(context, "clFlush", calls(context)->Flush(of(context)->queues[which]), error);
}

static enum tandem_status finish(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                                 struct tandem_error *error)
{
    cl_command_queue queue = of(context)->queues[which];
    return queue == NULL ? TANDEM_OK
                         : check(context, "clFinish", calls(context)->Finish(queue), error);
}

static enum tandem_status mark(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                               struct tnd_gpu_event **out_event, struct tandem_error *error)
{
    cl_event event = NULL;
    TND_TRY(check(
        context, "clEnqueueMarkerWithWaitList",
        calls(context)->EnqueueMarkerWithWaitList(of(context)->queues[which], 0, NULL, &event),
        error));
    *out_event = (struct tnd_gpu_event *)event;
    return TANDEM_OK;
}

/* A wait is a command of its own in a queue (OpenCL 1.2, section 5.10), so launches need not know
 * of it. */
static enum tandem_status await(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                                struct tnd_gpu_event *event, struct tandem_error *error)
{
    const cl_event before = (cl_event)event;
    return check(
        context, "clEnqueueBarrierWithWaitList",
        calls(context)->EnqueueBarrierWithWaitList(of(context)->queues[which], 1, &before, NULL),
        error);
}

static enum tandem_status event_wait(struct tnd_gpu_context *context, struct tnd_gpu_event *event,
                                     struct tandem_error *error)
{
    const cl_event one = (cl_event)event;
    return check(context, "clWaitForEvents", calls(context)->WaitForEvents(1, &one), error);
}

static enum tandem_status event_check(struct tnd_gpu_context *context, struct tnd_gpu_event *event,
                                      bool *out_is_over, struct tandem_error *error)
{
    cl_int state = CL_COMPLETE;
    cl_int code = calls(context)->GetEventInfo((cl_event)event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                               sizeof(state), &state, NULL);
    *out_is_over = code != CL_SUCCESS || state <= CL_COMPLETE; /* below CL_COMPLETE: it failed */
    return code != CL_SUCCESS
               ? check(context, "clGetEventInfo", code, error)
               : check(context, "clEnqueueReadBuffer", state < 0 ? state : CL_SUCCESS, error);
}

static enum tandem_status event_ns(struct tnd_gpu_context *context, struct tnd_gpu_event *begin,
                                   struct tnd_gpu_event *end, int64_t *out_ns,
                                   struct tandem_error *error)
{
    const struct tnd_cl_functions *cl = calls(context);
    const cl_event events[] = {(cl_event)(begin != NULL ? begin : end), (cl_event)end};
    const cl_profiling_info ends[] = {begin != NULL ? CL_PROFILING_COMMAND_END
                                                    : CL_PROFILING_COMMAND_START,
                                      CL_PROFILING_COMMAND_END};
    cl_ulong ns[2] = {0, 0};
    TND_TRY(event_wait(context, end, error));
    for (int i = 0; i < 2; i++) {
        TND_TRY(check(context, "clGetEventProfilingInfo",
                      cl->GetEventProfilingInfo(events[i], ends[i], sizeof(ns[i]), &ns[i], NULL),
                      error));
    }
    *out_ns = ns[1] > ns[0] ? (int64_t)(ns[1] - ns[0]) : 0;
    return TANDEM_OK;
}

static void event_free(struct tnd_gpu_context *context, struct tnd_gpu_event *event)
{
    if (event != NULL) {
        calls(context)->ReleaseEvent((cl_event)event);
    }
}

/* ---- launches and products ---- */

static enum tandem_status launch(struct tnd_gpu_context *context, struct tnd_gpu_function *function,
                                 const char *name, int n_dims, const size_t *global,
                                 const size_t *local, struct tnd_gpu_event **out_event,
                                 struct tandem_error *error)
{
    cl_event event = NULL;
    cl_int code = calls(context)->EnqueueNDRangeKernel(
        of(context)->queues[TND_GPU_QUEUE_WORK], (cl_kernel)function, (cl_uint)n_dims, NULL, global,
        local, 0, NULL, out_event != NULL ? &event : NULL);
    if (code != CL_SUCCESS) {
        char call[96];
        snprintf(call, sizeof(call), "clEnqueueNDRangeKernel of %s", name);
        return check(context, call, code, error);
    }
    if (out_event != NULL) {
        *out_event = (struct tnd_gpu_event *)event;
    }
    return TANDEM_OK;
}

static enum tandem_status product(struct tnd_gpu_context *context, const struct tnd_gpu_blas *p,
                                  struct tandem_error *error)
{
    enum { HALF_ONE = 0x3C00 }; /* 1.0 in half precision */
    const struct tnd_clblast_functions *clblast = of(context)->clblast;
    cl_command_queue queue = of(context)->queues[TND_GPU_QUEUE_WORK];
    const size_t element = p->is_half ? sizeof(cl_half) : sizeof(float);
    const size_t n = p->end - p->begin;
    const size_t w_at = (size_t)p->w_at / element + p->begin * p->k;
    const size_t x_at = (size_t)p->x_at / element;
    const size_t y_at = (size_t)p->y_at / element + p->begin;
    cl_mem w = (cl_mem)p->w;
    cl_mem x = (cl_mem)p->x;
    cl_mem y = (cl_mem)p->y;
    of(context)->has_used_clblast = true;
    if (p->is_half) {
        return check(context, "CLBlastHgemm",
                     clblast->hgemm(TND_CLBLAST_ROW_MAJOR, TND_CLBLAST_NO_TRANS, TND_CLBLAST_TRANS,
                                    p->m, n, p->k, HALF_ONE, x, x_at, p->k, w, w_at, p->k, 0, y,
                                    y_at, p->n, &queue, NULL),
                     error);
    }
    return check(context, "CLBlastSgemm",
                 clblast->sgemm(TND_CLBLAST_ROW_MAJOR, TND_CLBLAST_NO_TRANS, TND_CLBLAST_TRANS,
                                p->m, n, p->k, 1.0F, x, x_at, p->k, w, w_at, p->k, 0.0F, y, y_at,
                                p->n, &queue, NULL),
                 error);
}

static enum tandem_status override_parameters(struct tnd_gpu_context *context, size_t n,
                                              const char **names, const size_t *values,
                                              struct tandem_error *error)
{
    return check(context, "CLBlastOverrideParameters",
                 of(context)->clblast->override_parameters(
                     of(context)->id, "Xgemm", TND_CLBLAST_PRECISION_SINGLE, n, names, values),
                 error);
}

const struct tnd_gpu_driver tnd_cl_driver = {
    .name = "opencl",
    .blas_setting = "clblast",
    .blas_name = "CLBlast",
    .launches_per_flush = 16,
    .dialect = TND_GPU_SOURCE_DIALECT_OPENCL,
    .find = tnd_cl_find_devices,
    .open = open,
    .close = close_context,
    .buffer_new = buffer_new,
    .buffer_free = buffer_free,
    .buffer_share = buffer_share,
    .buffer_unshare = buffer_free,
    .pinned_new = pinned_new,
    .pinned_free = pinned_free,
    .write = write,
    .read = read,
    .copy = copy,
    .flush = flush,
    .finish = finish,
    .mark = mark,
    .await = await,
    .event_wait = event_wait,
    .event_check = event_check,
    .event_ns = event_ns,
    .event_free = event_free,
    .compile = tnd_cl_compile,
    .load = tnd_cl_load,
    .module_binary = tnd_cl_module_binary,
    .module_free = tnd_cl_module_free,
    .function_new = tnd_cl_function_new,
    .function_free = tnd_cl_function_free,
    .argument = tnd_cl_argument,
    .launch = launch,
    .product = product,
    .override_parameters = override_parameters,
};
