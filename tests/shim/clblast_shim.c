/* SPDX-License-Identifier: MIT
 * The functions of CLBlast's C interface that a backend may use, forwarded to libclblast.so.1 and
 * failed like those of OpenCL. What CLBlast itself asks of OpenCL goes to the real library and is
 * not counted. Source of names and types: CLBlast's documentation, doc/api.md, release 1.5.3. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shim/shim_state.h"

#define GEMM_PARAMETERS(scalar)                                                                    \
    int layout, int a_transpose, int b_transpose, size_t m, size_t n, size_t k, scalar alpha,      \
        cl_mem a, size_t a_at, size_t a_ld, cl_mem b, size_t b_at, size_t b_ld, scalar beta,       \
        cl_mem c, size_t c_at, size_t c_ld, cl_command_queue *queue, cl_event *event
#define GEMM_ARGUMENTS                                                                             \
    layout, a_transpose, b_transpose, m, n, k, alpha, a, a_at, a_ld, b, b_at, b_ld, beta, c, c_at, \
        c_ld, queue, event
#define GEMV_PARAMETERS(scalar)                                                                    \
    int layout, int a_transpose, size_t m, size_t n, scalar alpha, cl_mem a, size_t a_at,          \
        size_t a_ld, cl_mem x, size_t x_at, size_t x_step, scalar beta, cl_mem y, size_t y_at,     \
        size_t y_step, cl_command_queue *queue, cl_event *event
#define GEMV_ARGUMENTS                                                                             \
    layout, a_transpose, m, n, alpha, a, a_at, a_ld, x, x_at, x_step, beta, y, y_at, y_step,       \
        queue, event
#define SIZE_PARAMETERS                                                                            \
    int layout, int a_transpose, int b_transpose, size_t m, size_t n, size_t k, size_t a_at,       \
        size_t a_ld, size_t b_at, size_t b_ld, size_t c_at, size_t c_ld, cl_command_queue *queue,  \
        size_t *out_bytes
#define SIZE_ARGUMENTS                                                                             \
    layout, a_transpose, b_transpose, m, n, k, a_at, a_ld, b_at, b_ld, c_at, c_ld, queue, out_bytes

TND_SHIM_EXPORT int CLBlastSgemm(GEMM_PARAMETERS(float));
TND_SHIM_EXPORT int CLBlastHgemm(GEMM_PARAMETERS(cl_half));
TND_SHIM_EXPORT int CLBlastSgemv(GEMV_PARAMETERS(float));
TND_SHIM_EXPORT int CLBlastSgemmWithTempBuffer(GEMM_PARAMETERS(float), cl_mem temporary);
TND_SHIM_EXPORT int CLBlastHgemmWithTempBuffer(GEMM_PARAMETERS(cl_half), cl_mem temporary);
TND_SHIM_EXPORT int CLBlastSGemmTempBufferSize(SIZE_PARAMETERS);
TND_SHIM_EXPORT int CLBlastHGemmTempBufferSize(SIZE_PARAMETERS);
TND_SHIM_EXPORT int CLBlastClearCache(void);
TND_SHIM_EXPORT int CLBlastFillCache(cl_device_id device);
TND_SHIM_EXPORT int CLBlastOverrideParameters(cl_device_id device, const char *kernel,
                                              int precision, size_t n, const char **names,
                                              const size_t *values);

#define SHIM_FUNCTIONS(X)                                                                          \
    X(CLBlastSgemm)                                                                                \
    X(CLBlastHgemm)                                                                                \
    X(CLBlastSgemv)                                                                                \
    X(CLBlastSgemmWithTempBuffer)                                                                  \
    X(CLBlastHgemmWithTempBuffer)                                                                  \
    X(CLBlastSGemmTempBufferSize)                                                                  \
    X(CLBlastHGemmTempBufferSize)                                                                  \
    X(CLBlastClearCache)                                                                           \
    X(CLBlastFillCache)                                                                            \
    X(CLBlastOverrideParameters)

static struct {
#define SHIM_POINTER(name) __typeof__(name) *name;
    SHIM_FUNCTIONS(SHIM_POINTER)
#undef SHIM_POINTER
} real;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    void *library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
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

static struct tnd_shim_call enter(const char *name)
{
    pthread_once(&once, load);
    struct tnd_shim_call call = tnd_shim_count(name);
    if (call.is_loss) {
        tnd_shim_lose_device();
    }
    return call;
}

static int ended(int code, cl_command_queue *queue, cl_event *event,
                 const struct tnd_shim_call *call)
{
    if (code == CL_SUCCESS && event != NULL) {
        tnd_shim_made(TND_SHIM_EVENT, *event, *queue, call);
    }
    return code;
}

#define ROUTINE(name, parameters, arguments)                                                       \
    int name parameters                                                                            \
    {                                                                                              \
        struct tnd_shim_call call = enter(#name);                                                  \
        return ended(call.planned != CL_SUCCESS ? call.planned : real.name arguments, queue,       \
                     event, &call);                                                                \
    }
#define FORWARD(name, parameters, arguments)                                                       \
    int name parameters                                                                            \
    {                                                                                              \
        struct tnd_shim_call call = enter(#name);                                                  \
        return call.planned != CL_SUCCESS ? call.planned : real.name arguments;                    \
    }

ROUTINE(CLBlastSgemm, (GEMM_PARAMETERS(float)), (GEMM_ARGUMENTS))
ROUTINE(CLBlastHgemm, (GEMM_PARAMETERS(cl_half)), (GEMM_ARGUMENTS))
ROUTINE(CLBlastSgemv, (GEMV_PARAMETERS(float)), (GEMV_ARGUMENTS))
ROUTINE(CLBlastSgemmWithTempBuffer, (GEMM_PARAMETERS(float), cl_mem temporary),
        (GEMM_ARGUMENTS, temporary))
ROUTINE(CLBlastHgemmWithTempBuffer, (GEMM_PARAMETERS(cl_half), cl_mem temporary),
        (GEMM_ARGUMENTS, temporary))
FORWARD(CLBlastSGemmTempBufferSize, (SIZE_PARAMETERS), (SIZE_ARGUMENTS))
FORWARD(CLBlastHGemmTempBufferSize, (SIZE_PARAMETERS), (SIZE_ARGUMENTS))

/* Gives up what it holds, like the releases of OpenCL, whatever it returns. */
int CLBlastClearCache(void)
{
    struct tnd_shim_call call = enter("CLBlastClearCache");
    int code = real.CLBlastClearCache();
    return call.planned != CL_SUCCESS ? call.planned : code;
}

FORWARD(CLBlastFillCache, (cl_device_id device), (device))
FORWARD(CLBlastOverrideParameters,
        (cl_device_id device, const char *kernel, int precision, size_t n, const char **names,
         const size_t *values),
        (device, kernel, precision, n, names, values))
