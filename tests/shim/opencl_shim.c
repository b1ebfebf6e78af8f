/* SPDX-License-Identifier: MIT
 * An OpenCL 1.2 library that forwards to the real one (libOpenCL.so.1) and fails where a test asks
 * for it (shim_control.h). A call that fails does nothing, with three exceptions: releases and
 * unmaps give up the object all the same, as drivers do; a wait that fails first waits in earnest,
 * so that no device thread writes into memory that the caller gives up; and reads which were under
 * way at that time leave poison in host memory. Source of names and types: the OpenCL 1.2
 * specification, chapters 4 and 5, and CL/cl.h. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/shim/shim_state.h"

/* Every function that is forwarded. */
#define SHIM_FUNCTIONS(X)                                                                          \
    X(clGetPlatformIDs)                                                                            \
    X(clGetPlatformInfo)                                                                           \
    X(clGetDeviceIDs)                                                                              \
    X(clGetDeviceInfo)                                                                             \
    X(clCreateContext)                                                                             \
    X(clRetainContext)                                                                             \
    X(clReleaseContext)                                                                            \
    X(clGetContextInfo)                                                                            \
    X(clCreateCommandQueue)                                                                        \
    X(clRetainCommandQueue)                                                                        \
    X(clReleaseCommandQueue)                                                                       \
    X(clGetCommandQueueInfo)                                                                       \
    X(clCreateBuffer)                                                                              \
    X(clCreateSubBuffer)                                                                           \
    X(clRetainMemObject)                                                                           \
    X(clReleaseMemObject)                                                                          \
    X(clGetMemObjectInfo)                                                                          \
    X(clCreateProgramWithSource)                                                                   \
    X(clCreateProgramWithBinary)                                                                   \
    X(clRetainProgram)                                                                             \
    X(clReleaseProgram)                                                                            \
    X(clBuildProgram)                                                                              \
    X(clCompileProgram)                                                                            \
    X(clLinkProgram)                                                                               \
    X(clGetProgramInfo)                                                                            \
    X(clGetProgramBuildInfo)                                                                       \
    X(clUnloadPlatformCompiler)                                                                    \
    X(clCreateKernel)                                                                              \
    X(clRetainKernel)                                                                              \
    X(clReleaseKernel)                                                                             \
    X(clSetKernelArg)                                                                              \
    X(clGetKernelInfo)                                                                             \
    X(clGetKernelArgInfo)                                                                          \
    X(clGetKernelWorkGroupInfo)                                                                    \
    X(clWaitForEvents)                                                                             \
    X(clGetEventInfo)                                                                              \
    X(clRetainEvent)                                                                               \
    X(clReleaseEvent)                                                                              \
    X(clCreateUserEvent)                                                                           \
    X(clSetUserEventStatus)                                                                        \
    X(clSetEventCallback)                                                                          \
    X(clGetEventProfilingInfo)                                                                     \
    X(clFlush)                                                                                     \
    X(clFinish)                                                                                    \
    X(clEnqueueReadBuffer)                                                                         \
    X(clEnqueueWriteBuffer)                                                                        \
    X(clEnqueueReadBufferRect)                                                                     \
    X(clEnqueueWriteBufferRect)                                                                    \
    X(clEnqueueCopyBuffer)                                                                         \
    X(clEnqueueCopyBufferRect)                                                                     \
    X(clEnqueueFillBuffer)                                                                         \
    X(clEnqueueMapBuffer)                                                                          \
    X(clEnqueueUnmapMemObject)                                                                     \
    X(clEnqueueMigrateMemObjects)                                                                  \
    X(clEnqueueNDRangeKernel)                                                                      \
    X(clEnqueueMarkerWithWaitList)                                                                 \
    X(clEnqueueBarrierWithWaitList)                                                                \
    X(clGetExtensionFunctionAddressForPlatform)

static struct {
#define SHIM_POINTER(name) __typeof__(name) *name;
    SHIM_FUNCTIONS(SHIM_POINTER)
#undef SHIM_POINTER
} real;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "OpenCL shim: %s\n", dlerror());
        abort();
    }
    void *address;
#define SHIM_LOAD(name)                                                                            \
    address = dlsym(library, #name);                                                               \
    memcpy(&real.name, &address, sizeof(address));
    SHIM_FUNCTIONS(SHIM_LOAD)
#undef SHIM_LOAD
}

void tnd_shim_lose_device(void)
{
    pthread_once(&once, load);
    cl_command_queue queues[16];
    int n = tnd_shim_queues(queues, 16);
    for (int i = 0; i < n; i++) {
        real.clFinish(queues[i]);
    }
    tnd_shim_settle(NULL, INT64_MAX, true);
}

static struct tnd_shim_call enter(const char *name)
{
    pthread_once(&once, load);
    struct tnd_shim_call call = tnd_shim_count(name);
    if (call.is_loss) {
        tnd_shim_lose_device();
    }
    return call;
}

/* ---- plain calls ---- */

#define FORWARD(name, parameters, arguments)                                                       \
    cl_int name parameters                                                                         \
    {                                                                                              \
        struct tnd_shim_call call = enter(#name);                                                  \
        return call.planned != CL_SUCCESS ? call.planned : real.name arguments;                    \
    }

FORWARD(clGetPlatformIDs, (cl_uint n, cl_platform_id *ids, cl_uint *out_n), (n, ids, out_n))
FORWARD(clGetPlatformInfo,
        (cl_platform_id id, cl_platform_info what, size_t n, void *value, size_t *out_n),
        (id, what, n, value, out_n))
FORWARD(clGetDeviceIDs,
        (cl_platform_id id, cl_device_type type, cl_uint n, cl_device_id *ids, cl_uint *out_n),
        (id, type, n, ids, out_n))
FORWARD(clGetDeviceInfo,
        (cl_device_id id, cl_device_info what, size_t n, void *value, size_t *out_n),
        (id, what, n, value, out_n))
FORWARD(clGetContextInfo,
        (cl_context context, cl_context_info what, size_t n, void *value, size_t *out_n),
        (context, what, n, value, out_n))
FORWARD(clGetCommandQueueInfo,
        (cl_command_queue queue, cl_command_queue_info what, size_t n, void *value, size_t *out_n),
        (queue, what, n, value, out_n))
FORWARD(clGetMemObjectInfo, (cl_mem memory, cl_mem_info what, size_t n, void *value, size_t *out_n),
        (memory, what, n, value, out_n))
FORWARD(clGetProgramInfo,
        (cl_program program, cl_program_info what, size_t n, void *value, size_t *out_n),
        (program, what, n, value, out_n))
FORWARD(clGetProgramBuildInfo,
        (cl_program program, cl_device_id id, cl_program_build_info what, size_t n, void *value,
         size_t *out_n),
        (program, id, what, n, value, out_n))
FORWARD(clUnloadPlatformCompiler, (cl_platform_id id), (id))
FORWARD(clCompileProgram,
        (cl_program program, cl_uint n, const cl_device_id *ids, const char *options,
         cl_uint n_headers, const cl_program *headers, const char **names,
         void(CL_CALLBACK *notify)(cl_program, void *), void *user),
        (program, n, ids, options, n_headers, headers, names, notify, user))
FORWARD(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t n, const void *value),
        (kernel, index, n, value))
FORWARD(clGetKernelInfo,
        (cl_kernel kernel, cl_kernel_info what, size_t n, void *value, size_t *out_n),
        (kernel, what, n, value, out_n))
FORWARD(clGetKernelArgInfo,
        (cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, size_t n, void *value,
         size_t *out_n),
        (kernel, index, what, n, value, out_n))
FORWARD(clGetKernelWorkGroupInfo,
        (cl_kernel kernel, cl_device_id id, cl_kernel_work_group_info what, size_t n, void *value,
         size_t *out_n),
        (kernel, id, what, n, value, out_n))
FORWARD(clGetEventInfo, (cl_event event, cl_event_info what, size_t n, void *value, size_t *out_n),
        (event, what, n, value, out_n))
FORWARD(clSetUserEventStatus, (cl_event event, cl_int status), (event, status))
FORWARD(clSetEventCallback,
        (cl_event event, cl_int type, void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
         void *user),
        (event, type, notify, user))
FORWARD(clGetEventProfilingInfo,
        (cl_event event, cl_profiling_info what, size_t n, void *value, size_t *out_n),
        (event, what, n, value, out_n))
FORWARD(clFlush, (cl_command_queue queue), (queue))

cl_int clBuildProgram(cl_program program, cl_uint n, const cl_device_id *ids, const char *options,
                      void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    struct tnd_shim_call call = enter("clBuildProgram");
    if (call.planned != CL_SUCCESS) {
        return call.planned;
    }
    tnd_shim_built();
    return real.clBuildProgram(program, n, ids, options, notify, user);
}

void *clGetExtensionFunctionAddressForPlatform(cl_platform_id id, const char *name)
{
    struct tnd_shim_call call = enter("clGetExtensionFunctionAddressForPlatform");
    return call.planned != CL_SUCCESS ? NULL
                                      : real.clGetExtensionFunctionAddressForPlatform(id, name);
}

/* ---- making, retaining, releasing ---- */

#define MAKE(type, name, kind, parameters, arguments)                                              \
    type name parameters                                                                           \
    {                                                                                              \
        struct tnd_shim_call call = enter(#name);                                                  \
        cl_int code = call.planned;                                                                \
        type made = NULL;                                                                          \
        if (code == CL_SUCCESS) {                                                                  \
            made = real.name arguments;                                                            \
            tnd_shim_made(kind, made, NULL, &call);                                                \
        }                                                                                          \
        if (out_code != NULL) {                                                                    \
            *out_code = code;                                                                      \
        }                                                                                          \
        return made;                                                                               \
    }

MAKE(cl_context, clCreateContext, TND_SHIM_CONTEXT,
     (const cl_context_properties *properties, cl_uint n, const cl_device_id *ids,
      void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
      cl_int *out_code),
     (properties, n, ids, notify, user, &code))
MAKE(cl_command_queue, clCreateCommandQueue, TND_SHIM_QUEUE,
     (cl_context context, cl_device_id id, cl_command_queue_properties properties,
      cl_int *out_code),
     (context, id, properties, &code))
MAKE(cl_mem, clCreateBuffer, TND_SHIM_BUFFER,
     (cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *out_code),
     (context, flags, bytes, host, &code))
MAKE(cl_mem, clCreateSubBuffer, TND_SHIM_BUFFER,
     (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
      cl_int *out_code),
     (buffer, flags, type, info, &code))
MAKE(cl_program, clCreateProgramWithSource, TND_SHIM_PROGRAM,
     (cl_context context, cl_uint n, const char **texts, const size_t *lengths, cl_int *out_code),
     (context, n, texts, lengths, &code))
MAKE(cl_program, clCreateProgramWithBinary, TND_SHIM_PROGRAM,
     (cl_context context, cl_uint n, const cl_device_id *ids, const size_t *lengths,
      const unsigned char **binaries, cl_int *statuses, cl_int *out_code),
     (context, n, ids, lengths, binaries, statuses, &code))
MAKE(cl_program, clLinkProgram, TND_SHIM_PROGRAM,
     (cl_context context, cl_uint n, const cl_device_id *ids, const char *options,
      cl_uint n_programs, const cl_program *programs,
      void(CL_CALLBACK *notify)(cl_program, void *), void *user, cl_int *out_code),
     (context, n, ids, options, n_programs, programs, notify, user, &code))
MAKE(cl_kernel, clCreateKernel, TND_SHIM_KERNEL,
     (cl_program program, const char *kernel_name, cl_int *out_code),
     (program, kernel_name, &code))
MAKE(cl_event, clCreateUserEvent, TND_SHIM_EVENT, (cl_context context, cl_int *out_code),
     (context, &code))

#define RETAIN(name, kind, type)                                                                   \
    cl_int name(type object)                                                                       \
    {                                                                                              \
        struct tnd_shim_call call = enter(#name);                                                  \
        if (call.planned != CL_SUCCESS) {                                                          \
            return call.planned;                                                                   \
        }                                                                                          \
        tnd_shim_retained(kind, object);                                                           \
        return real.name(object);                                                                  \
    }

RETAIN(clRetainContext, TND_SHIM_CONTEXT, cl_context)
RETAIN(clRetainCommandQueue, TND_SHIM_QUEUE, cl_command_queue)
RETAIN(clRetainMemObject, TND_SHIM_BUFFER, cl_mem)
RETAIN(clRetainProgram, TND_SHIM_PROGRAM, cl_program)
RETAIN(clRetainKernel, TND_SHIM_KERNEL, cl_kernel)
RETAIN(clRetainEvent, TND_SHIM_EVENT, cl_event)

/* What is not alive is not handed on: the real library may crash on it. */
#define RELEASE(name, kind, type, invalid)                                                         \
    cl_int name(type object)                                                                       \
    {                                                                                              \
        struct tnd_shim_call call = enter(#name);                                                  \
        bool is_last;                                                                              \
        if (!tnd_shim_released(kind, object, &is_last)) {                                          \
            return invalid;                                                                        \
        }                                                                                          \
        cl_int code = real.name(object);                                                           \
        return call.planned != CL_SUCCESS ? call.planned : code;                                   \
    }

RELEASE(clReleaseCommandQueue, TND_SHIM_QUEUE, cl_command_queue, CL_INVALID_COMMAND_QUEUE)
RELEASE(clReleaseMemObject, TND_SHIM_BUFFER, cl_mem, CL_INVALID_MEM_OBJECT)
RELEASE(clReleaseProgram, TND_SHIM_PROGRAM, cl_program, CL_INVALID_PROGRAM)
RELEASE(clReleaseKernel, TND_SHIM_KERNEL, cl_kernel, CL_INVALID_KERNEL)
RELEASE(clReleaseEvent, TND_SHIM_EVENT, cl_event, CL_INVALID_EVENT)

/* References to a context beside the last one of the caller. Whoever has one keeps the context, and
 * all that belongs to it, alive. Threads of a driver may still be at the end of a command that is
 * over: they get a moment. */
static int64_t others_references(cl_context context)
{
    const struct timespec millisecond = {0, 1000000};
    cl_uint n = 1;
    for (int i = 0; i < 500; i++) {
        real.clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof(n), &n, NULL);
        if (n <= 1) {
            break;
        }
        nanosleep(&millisecond, NULL);
    }
    return (int64_t)n - 1;
}

cl_int clReleaseContext(cl_context context)
{
    struct tnd_shim_call call = enter("clReleaseContext");
    bool is_last;
    if (!tnd_shim_released(TND_SHIM_CONTEXT, context, &is_last)) {
        return CL_INVALID_CONTEXT;
    }
    if (is_last) {
        tnd_shim_held_by_others(others_references(context));
    }
    cl_int code = real.clReleaseContext(context);
    return call.planned != CL_SUCCESS ? call.planned : code;
}

/* ---- waiting ---- */

cl_int clFinish(cl_command_queue queue)
{
    struct tnd_shim_call call = enter("clFinish");
    cl_int code = real.clFinish(queue);
    code = call.planned != CL_SUCCESS ? call.planned : code;
    tnd_shim_settle(queue, INT64_MAX, code != CL_SUCCESS);
    return code;
}

cl_int clWaitForEvents(cl_uint n, const cl_event *events)
{
    struct tnd_shim_call call = enter("clWaitForEvents");
    cl_int code = real.clWaitForEvents(n, events);
    code = call.planned != CL_SUCCESS ? call.planned : code;
    for (cl_uint i = 0; i < n; i++) {
        const void *queue;
        int64_t number;
        if (tnd_shim_event(events[i], &queue, &number) && queue != NULL) {
            tnd_shim_settle(queue, number, code != CL_SUCCESS);
        }
    }
    return code;
}

/* ---- enqueueing ---- */

/* A command went into the queue, or failed to. */
static cl_int enqueued(cl_int code, cl_command_queue queue, cl_event *event,
                       const struct tnd_shim_call *call)
{
    if (code == CL_SUCCESS && event != NULL) {
        tnd_shim_made(TND_SHIM_EVENT, *event, queue, call);
    }
    return code;
}

#define ENQUEUE(name, parameters, arguments)                                                       \
    cl_int name parameters                                                                         \
    {                                                                                              \
        struct tnd_shim_call call = enter(#name);                                                  \
        return enqueued(call.planned != CL_SUCCESS ? call.planned : real.name arguments, queue,    \
                        event, &call);                                                             \
    }

ENQUEUE(clEnqueueCopyBuffer,
        (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_at, size_t to_at, size_t bytes,
         cl_uint n, const cl_event *waits, cl_event *event),
        (queue, from, to, from_at, to_at, bytes, n, waits, event))
ENQUEUE(clEnqueueCopyBufferRect,
        (cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_at, const size_t *to_at,
         const size_t *region, size_t from_row, size_t from_slice, size_t to_row, size_t to_slice,
         cl_uint n, const cl_event *waits, cl_event *event),
        (queue, from, to, from_at, to_at, region, from_row, from_slice, to_row, to_slice, n, waits,
         event))
ENQUEUE(clEnqueueFillBuffer,
        (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_bytes,
         size_t at, size_t bytes, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, buffer, pattern, pattern_bytes, at, bytes, n, waits, event))
ENQUEUE(clEnqueueMigrateMemObjects,
        (cl_command_queue queue, cl_uint n_memory, const cl_mem *memory,
         cl_mem_migration_flags flags, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, n_memory, memory, flags, n, waits, event))
ENQUEUE(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint n_dims, const size_t *offset,
         const size_t *global, const size_t *local, cl_uint n, const cl_event *waits,
         cl_event *event),
        (queue, kernel, n_dims, offset, global, local, n, waits, event))
ENQUEUE(clEnqueueMarkerWithWaitList,
        (cl_command_queue queue, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, n, waits, event))
ENQUEUE(clEnqueueBarrierWithWaitList,
        (cl_command_queue queue, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, n, waits, event))

/* A blocking command on an in-order queue: everything before it is over. */
static cl_int blocked(cl_int code, cl_bool is_blocking, cl_command_queue queue,
                      const struct tnd_shim_call *call)
{
    if (code == CL_SUCCESS && is_blocking) {
        tnd_shim_settle(queue, call->number, false);
    }
    return code;
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking, size_t at,
                            size_t bytes, const void *host, cl_uint n, const cl_event *waits,
                            cl_event *event)
{
    struct tnd_shim_call call = enter("clEnqueueWriteBuffer");
    cl_int code = call.planned;
    if (code == CL_SUCCESS) {
        code = real.clEnqueueWriteBuffer(queue, buffer, is_blocking, at, bytes, host, n, waits,
                                         event);
    }
    return blocked(enqueued(code, queue, event, &call), is_blocking, queue, &call);
}

cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking,
                                const size_t *at, const size_t *host_at, const size_t *region,
                                size_t row, size_t slice, size_t host_row, size_t host_slice,
                                const void *host, cl_uint n, const cl_event *waits,
                                cl_event *event)
{
    struct tnd_shim_call call = enter("clEnqueueWriteBufferRect");
    cl_int code = call.planned;
    if (code == CL_SUCCESS) {
        code = real.clEnqueueWriteBufferRect(queue, buffer, is_blocking, at, host_at, region, row,
                                             slice, host_row, host_slice, host, n, waits, event);
    }
    return blocked(enqueued(code, queue, event, &call), is_blocking, queue, &call);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking, size_t at,
                           size_t bytes, void *host, cl_uint n, const cl_event *waits,
                           cl_event *event)
{
    struct tnd_shim_call call = enter("clEnqueueReadBuffer");
    cl_int code = call.planned;
    if (code == CL_SUCCESS) {
        code = real.clEnqueueReadBuffer(queue, buffer, is_blocking, at, bytes, host, n, waits,
                                        event);
    } else {
        tnd_shim_poison(host, bytes);
    }
    if (code == CL_SUCCESS && !is_blocking) {
        tnd_shim_reading(queue, host, bytes, &call);
    }
    return blocked(enqueued(code, queue, event, &call), is_blocking, queue, &call);
}

/* Rectangles are not poisoned: their rows lie apart. */
cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking,
                               const size_t *at, const size_t *host_at, const size_t *region,
                               size_t row, size_t slice, size_t host_row, size_t host_slice,
                               void *host, cl_uint n, const cl_event *waits, cl_event *event)
{
    struct tnd_shim_call call = enter("clEnqueueReadBufferRect");
    cl_int code = call.planned;
    if (code == CL_SUCCESS) {
        code = real.clEnqueueReadBufferRect(queue, buffer, is_blocking, at, host_at, region, row,
                                            slice, host_row, host_slice, host, n, waits, event);
    }
    return blocked(enqueued(code, queue, event, &call), is_blocking, queue, &call);
}

void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool is_blocking,
                         cl_map_flags flags, size_t at, size_t bytes, cl_uint n,
                         const cl_event *waits, cl_event *event, cl_int *out_code)
{
    struct tnd_shim_call call = enter("clEnqueueMapBuffer");
    cl_int code = call.planned;
    void *address = NULL;
    if (code == CL_SUCCESS) {
        address = real.clEnqueueMapBuffer(queue, buffer, is_blocking, flags, at, bytes, n, waits,
                                          event, &code);
    }
    if (code == CL_SUCCESS) {
        tnd_shim_mapped(buffer, address, &call);
    }
    blocked(enqueued(code, queue, event, &call), is_blocking, queue, &call);
    if (out_code != NULL) {
        *out_code = code;
    }
    return address;
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void *address, cl_uint n,
                               const cl_event *waits, cl_event *event)
{
    struct tnd_shim_call call = enter("clEnqueueUnmapMemObject");
    bool is_planned = call.planned != CL_SUCCESS;
    tnd_shim_unmapped(memory, address);
    cl_int code = real.clEnqueueUnmapMemObject(queue, memory, address, n, waits,
                                               is_planned ? NULL : event);
    return enqueued(is_planned ? call.planned : code, queue, event, &call);
}
