/* SPDX-License-Identifier: MIT
 * Implements the functions of a driver with CUDA. A buffer is the address of device memory, which
 * kernels receive directly. */
#include "backends/cuda/cuda_driver.h"

#include <stdio.h>
#include <string.h>

#include "backends/gpu/gpu_kernels.h"
#include "base/alloc.h"

struct tnd_gpu_event {
    tnd_cu_event begin; /* if the launch is timed; else NULL */
    tnd_cu_event end;
};

static struct tnd_cuda_context *of(struct tnd_gpu_context *context)
{
    return (struct tnd_cuda_context *)context;
}

static enum tandem_status check(struct tnd_gpu_context *context, const char *call, int code,
                                struct tandem_error *error)
{
    return tnd_cuda_check(of(context)->library, context->name, call, code, error);
}

static tnd_cu_address address_of(const struct tnd_gpu_buffer *buffer)
{
    return (tnd_cu_address)(uintptr_t)buffer;
}

static tnd_cu_stream work_of(struct tnd_gpu_context *context)
{
    return of(context)->streams[TND_GPU_QUEUE_WORK];
}

/* ---- opening ---- */

static void close_context(struct tnd_gpu_context *context)
{
    struct tnd_cuda_context *self = of(context);
    tnd_cuda_batch_close(self);
    tnd_cuda_blas_close(self);
    for (int i = 0; i < TND_GPU_QUEUE_COUNT; i++) {
        if (self->streams[i] != NULL) {
            TND_CUDA_GIVE_BACK(self, StreamDestroy(self->streams[i]));
        }
    }
    if (self->context != NULL) {
        (void)self->library->cu.DevicePrimaryCtxRelease(self->device);
    }
    tnd_free(self);
}

static enum tandem_status open_context(struct tnd_cuda_context *self, struct tandem_error *error)
{
    TND_TRY(check(&self->base, "cuDevicePrimaryCtxRetain",
                  self->library->cu.DevicePrimaryCtxRetain(&self->context, self->device), error));
    for (int i = 0; i < TND_GPU_QUEUE_COUNT; i++) {
        TND_CUDA_TRY(self, "cuStreamCreate",
                     StreamCreate(&self->streams[i], TND_CU_STREAM_NON_BLOCKING), error);
    }
    return TANDEM_OK;
}

static enum tandem_status open(const struct tnd_gpu_libraries *libraries,
                               const struct tnd_gpu_found *found, bool with_times,
                               struct tnd_gpu_context **out_context, struct tandem_error *error)
{
    const struct tnd_cuda_library *library = NULL;
    TND_TRY(tnd_cuda_library_get(libraries, &library, error));
    struct tnd_cuda_context *self = tnd_calloc(1, sizeof(*self));
    if (self == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cuda", (int64_t)sizeof(*self), 0,
                             "backend cuda: no memory");
    }
    self->base.driver = &tnd_cuda_driver;
    snprintf(self->base.name, sizeof(self->base.name), "%s", found->info.name);
    self->library = library;
    self->device = (int)found->ids[0];
    self->has_times = with_times;
    self->base.has_fixed_programs = !tnd_cuda_compiles_for(library, (int)found->ids[1]);
    const enum tandem_status status = open_context(self, error);
    if (status != TANDEM_OK) {
        close_context(&self->base);
        return status;
    }
    tnd_cuda_batch_open(self);
    tnd_cuda_blas_open(self, (int)found->ids[1]);
    *out_context = &self->base;
    return TANDEM_OK;
}

/* ---- memory ---- */

/* After this nothing uses memory that is about to be freed. */
static void wait_for_all(struct tnd_gpu_context *context)
{
    (void)tnd_cuda_submit(context, NULL);              /* (later calls report a failure) */
    TND_CUDA_GIVE_BACK(of(context), CtxSynchronize()); /* (a lost device uses no memory, either) */
}

static enum tandem_status buffer_new(struct tnd_gpu_context *context, size_t bytes,
                                     struct tnd_gpu_buffer **out_buffer, struct tandem_error *error)
{
    tnd_cu_address address = 0;
    TND_CUDA_TRY(of(context), "cuMemAlloc", MemAlloc(&address, bytes), error);
    *out_buffer = (struct tnd_gpu_buffer *)(uintptr_t)address;
    return TANDEM_OK;
}

static void buffer_free(struct tnd_gpu_context *context, struct tnd_gpu_buffer *buffer)
{
    if (buffer != NULL) {
        wait_for_all(context);
        TND_CUDA_GIVE_BACK(of(context), MemFree(address_of(buffer)));
    }
}

static enum tandem_status pinned_new(struct tnd_gpu_context *context, size_t bytes,
                                     struct tnd_gpu_buffer **out_pinned, void **out_host,
                                     struct tandem_error *error)
{
    void *host = NULL;
    TND_CUDA_TRY(of(context), "cuMemHostAlloc", MemHostAlloc(&host, bytes, 0), error);
    *out_pinned = host;
    *out_host = host;
    return TANDEM_OK;
}

static void pinned_free(struct tnd_gpu_context *context, struct tnd_gpu_buffer *pinned, void *host)
{
    if (pinned != NULL) {
        wait_for_all(context);
        TND_CUDA_GIVE_BACK(of(context), MemFreeHost(host));
    }
}

/* ---- queues and events ---- */

/* Sends gathered launches to their queue. */
static enum tandem_status submit(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                                 struct tandem_error *error)
{
    return which == TND_GPU_QUEUE_WORK ? tnd_cuda_submit(context, error) : TANDEM_OK;
}

static enum tandem_status finish(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                                 struct tandem_error *error)
{
    TND_TRY(submit(context, which, error));
    TND_CUDA_TRY(of(context), "cuStreamSynchronize", StreamSynchronize(of(context)->streams[which]),
                 error);
    return TANDEM_OK;
}

static void event_free(struct tnd_gpu_context *context, struct tnd_gpu_event *event)
{
    if (event != NULL) {
        if (event->begin != NULL) {
            TND_CUDA_GIVE_BACK(of(context), EventDestroy(event->begin));
        }
        if (event->end != NULL) {
            TND_CUDA_GIVE_BACK(of(context), EventDestroy(event->end));
        }
        tnd_free(event);
    }
}

static enum tandem_status event_new(struct tnd_gpu_context *context, bool is_timed,
                                    struct tnd_gpu_event **out_event, struct tandem_error *error)
{
    struct tnd_gpu_event *event = tnd_calloc(1, sizeof(*event));
    const unsigned flags = of(context)->has_times ? 0 : TND_CU_EVENT_DISABLE_TIMING;
    int code = TND_CU_SUCCESS;
    if (event == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, context->name, (int64_t)sizeof(*event), 0,
                             "backend cuda: no memory");
    }
    if (is_timed) {
        TND_CUDA_CALL(of(context), code, EventCreate(&event->begin, flags));
    }
    if (code == TND_CU_SUCCESS) {
        TND_CUDA_CALL(of(context), code, EventCreate(&event->end, flags));
    }
    if (code != TND_CU_SUCCESS) {
        event_free(context, event);
        return check(context, "cuEventCreate", code, error);
    }
    *out_event = event;
    return TANDEM_OK;
}

static enum tandem_status mark(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                               struct tnd_gpu_event **out_event, struct tandem_error *error)
{
    struct tnd_gpu_event *event = NULL;
    int code = TND_CU_SUCCESS;
    TND_TRY(submit(context, which, error));
    TND_TRY(event_new(context, false, &event, error));
    TND_CUDA_CALL(of(context), code, EventRecord(event->end, of(context)->streams[which]));
    if (code != TND_CU_SUCCESS) {
        event_free(context, event);
        return check(context, "cuEventRecord", code, error);
    }
    *out_event = event;
    return TANDEM_OK;
}

static enum tandem_status await(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                                struct tnd_gpu_event *event, struct tandem_error *error)
{
    TND_TRY(submit(context, which, error));
    TND_CUDA_TRY(of(context), "cuStreamWaitEvent",
                 StreamWaitEvent(of(context)->streams[which], event->end, 0), error);
    return TANDEM_OK;
}

static enum tandem_status event_wait(struct tnd_gpu_context *context, struct tnd_gpu_event *event,
                                     struct tandem_error *error)
{
    TND_CUDA_TRY(of(context), "cuEventSynchronize", EventSynchronize(event->end), error);
    return TANDEM_OK;
}

static enum tandem_status event_check(struct tnd_gpu_context *context, struct tnd_gpu_event *event,
                                      bool *out_is_over, struct tandem_error *error)
{
    int code = TND_CU_SUCCESS;
    TND_CUDA_CALL(of(context), code, EventQuery(event->end));
    *out_is_over = code != TND_CU_NOT_READY;
    return check(context, "cuEventQuery", code == TND_CU_NOT_READY ? TND_CU_SUCCESS : code, error);
}

static enum tandem_status event_ns(struct tnd_gpu_context *context, struct tnd_gpu_event *begin,
                                   struct tnd_gpu_event *end, int64_t *out_ns,
                                   struct tandem_error *error)
{
    const tnd_cu_event from = begin != NULL ? begin->end : end->begin;
    float ms = 0;
    TND_TRY(event_wait(context, end, error));
    TND_CUDA_TRY(of(context), "cuEventElapsedTime", EventElapsedTime(&ms, from, end->end), error);
    *out_ns = ms > 0 && ms < 1e12F ? (int64_t)((double)ms * 1e6) : 0;
    return TANDEM_OK;
}

/* ---- copies ---- */

/* Ends a copy: waits for it, or creates an event. If that fails, the copy has begun anyway and
 * reads or writes `host`, so a failure waits, too. */
static enum tandem_status end_copy(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                                   struct tnd_gpu_event **out_event, struct tandem_error *error)
{
    if (out_event == NULL) {
        return finish(context, which, error);
    }
    const enum tandem_status status = mark(context, which, out_event, error);
    if (status != TANDEM_OK) {
        (void)finish(context, which, NULL);
    }
    return status;
}

/* Prepares a queue for a copy with the host: sends gathered launches, waits for `after`. */
static enum tandem_status begin_copy(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                                     struct tnd_gpu_event *after, struct tandem_error *error)
{
    TND_TRY(submit(context, which, error));
    return after != NULL ? await(context, which, after, error) : TANDEM_OK;
}

static enum tandem_status write(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                                struct tnd_gpu_event *after, struct tnd_gpu_buffer *to, size_t at,
                                const void *from, size_t bytes, struct tnd_gpu_event **out_event,
                                struct tandem_error *error)
{
    TND_TRY(begin_copy(context, which, after, error));
    TND_CUDA_TRY(of(context), "cuMemcpyHtoDAsync",
                 MemcpyHtoDAsync(address_of(to) + at, from, bytes, of(context)->streams[which]),
                 error);
    return end_copy(context, which, out_event, error);
}

static enum tandem_status read(struct tnd_gpu_context *context, enum tnd_gpu_queue which,
                               struct tnd_gpu_event *after, struct tnd_gpu_buffer *from, size_t at,
                               void *to, size_t bytes, struct tnd_gpu_event **out_event,
                               struct tandem_error *error)
{
    TND_TRY(begin_copy(context, which, after, error));
    TND_CUDA_TRY(of(context), "cuMemcpyDtoHAsync",
                 MemcpyDtoHAsync(to, address_of(from) + at, bytes, of(context)->streams[which]),
                 error);
    return end_copy(context, which, out_event, error);
}

static enum tandem_status copy(struct tnd_gpu_context *context, struct tnd_gpu_buffer *from,
                               size_t from_at, struct tnd_gpu_buffer *to, size_t to_at,
                               size_t bytes, struct tandem_error *error)
{
    TND_TRY(tnd_cuda_submit(context, error));
    TND_CUDA_TRY(of(context), "cuMemcpyDtoDAsync",
                 MemcpyDtoDAsync(address_of(to) + to_at, address_of(from) + from_at, bytes,
                                 work_of(context)),
                 error);
    return TANDEM_OK;
}

/* ---- launches ---- */

enum { LOCAL_ALIGN = 16 };

/* Replaces arguments in local memory by offsets from its start; returns their total size. */
static unsigned place_local(struct tnd_gpu_function *function)
{
    size_t bytes = 0;
    for (int i = 0; i < function->n; i++) {
        if (function->local_bytes[i] > 0) {
            function->values[i] = bytes;
            bytes += (function->local_bytes[i] + LOCAL_ALIGN - 1) / LOCAL_ALIGN * LOCAL_ALIGN;
        }
    }
    return (unsigned)(bytes < UINT32_MAX ? bytes : UINT32_MAX);
}

static int launch_now(struct tnd_gpu_context *context, struct tnd_gpu_function *function,
                      struct tnd_cu_node_parameters *how, struct tnd_gpu_event *event)
{
    void *arguments[TND_CUDA_MAX_ARGUMENTS];
    int code = TND_CU_SUCCESS;
    for (int i = 0; i < function->n; i++) {
        arguments[i] = &function->values[i];
    }
    how->arguments = arguments;
    if (event != NULL && event->begin != NULL) {
        TND_CUDA_CALL(of(context), code, EventRecord(event->begin, work_of(context)));
    }
    if (code == TND_CU_SUCCESS) {
        code = tnd_cuda_launch(of(context), how);
    }
    if (code == TND_CU_SUCCESS && event != NULL) {
        TND_CUDA_CALL(of(context), code, EventRecord(event->end, work_of(context)));
    }
    how->arguments = NULL; /* ends the list of arguments */
    return code;
}

static enum tandem_status launch(struct tnd_gpu_context *context, struct tnd_gpu_function *function,
                                 const char *name, int n_dims, const size_t *global,
                                 const size_t *local, struct tnd_gpu_event **out_event,
                                 struct tandem_error *error)
{
    struct tnd_cu_node_parameters how = {
        .function = function->handle, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    struct tnd_gpu_event *event = NULL;
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < n_dims; i++) {
        const size_t groups = global[i] / local[i];
        if (groups > (i == 0 ? INT32_MAX : UINT16_MAX)) {
            return tnd_error_set(error, TANDEM_E_DEVICE, context->name, (int64_t)groups, 0,
                                 "cuda device '%.60s': kernel %s: %zu blocks in dimension %d",
                                 context->name, name, groups, i);
        }
        how.grid[i] = (unsigned)groups;
        how.block[i] = (unsigned)local[i];
    }
    how.shared_bytes = place_local(function);
    if (out_event != NULL) {
        TND_TRY(tnd_cuda_submit(context, error));
        TND_TRY(event_new(context, of(context)->has_times, &event, error));
    } else if (tnd_cuda_gather(of(context), function, name, &how, &status, error)) {
        return status;
    }
    const int code = launch_now(context, function, &how, event);
    if (code != TND_CU_SUCCESS) {
        char call[96];
        event_free(context, event);
        snprintf(call, sizeof(call), "cuLaunchKernel of %s", name);
        return check(context, call, code, error);
    }
    if (out_event != NULL) {
        *out_event = event;
    }
    return TANDEM_OK;
}

const struct tnd_gpu_driver tnd_cuda_driver = {
    .name = "cuda",
    .blas_setting = "cublas",
    .blas_name = "cuBLAS",
    .dialect = TND_GPU_SOURCE_DIALECT_CUDA,
    .find = tnd_cuda_find_devices,
    .open = open,
    .close = close_context,
    .buffer_new = buffer_new,
    .buffer_free = buffer_free,
    /* no buffer_share: not all systems can register pages of a file that is mapped read-only, and
     * only integrated GPUs would gain from it */
    .pinned_new = pinned_new,
    .pinned_free = pinned_free,
    .write = write,
    .read = read,
    .copy = copy,
    .flush = submit, /* streams start by themselves */
    .finish = finish,
    .mark = mark,
    .await = await,
    .event_wait = event_wait,
    .event_check = event_check,
    .event_ns = event_ns,
    .event_free = event_free,
    .compile = tnd_cuda_compile,
    .load = tnd_cuda_load,
    .module_binary = tnd_cuda_module_binary,
    .module_free = tnd_cuda_module_free,
    .function_new = tnd_cuda_function_new,
    .function_free = tnd_cuda_function_free,
    .argument = tnd_cuda_argument,
    .launch = launch,
    .use_graphs = tnd_cuda_use_graphs,
    .product = tnd_cuda_product,
};
