/* SPDX-License-Identifier: MIT
 * libOpenCL and libclblast: found at run time, loaded once for each path, never unloaded. All calls
 * go through these tables, and all results through tnd_gpu_check. */
#ifndef TND_CL_LIBRARY_H
#define TND_CL_LIBRARY_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stddef.h>

#include "base/tnd_status.h"

/* X(name without "cl", required): OpenCL 1.2 and nothing later. */
#define TND_CL_FUNCTION_LIST(X)                                                                    \
    X(GetPlatformIDs, true)                                                                        \
    X(GetPlatformInfo, true)                                                                       \
    X(GetDeviceIDs, true)                                                                          \
    X(GetDeviceInfo, true)                                                                         \
    X(CreateContext, true)                                                                         \
    X(ReleaseContext, true)                                                                        \
    X(CreateCommandQueue, true)                                                                    \
    X(ReleaseCommandQueue, true)                                                                   \
    X(CreateProgramWithSource, true)                                                               \
    X(CreateProgramWithBinary, true)                                                               \
    X(BuildProgram, true)                                                                          \
    X(GetProgramInfo, true)                                                                        \
    X(GetProgramBuildInfo, true)                                                                   \
    X(ReleaseProgram, true)                                                                        \
    X(CreateKernel, true)                                                                          \
    X(SetKernelArg, true)                                                                          \
    X(ReleaseKernel, true)                                                                         \
    X(CreateBuffer, true)                                                                          \
    X(ReleaseMemObject, true)                                                                      \
    X(EnqueueNDRangeKernel, true)                                                                  \
    X(EnqueueReadBuffer, true)                                                                     \
    X(EnqueueWriteBuffer, true)                                                                    \
    X(EnqueueCopyBuffer, true)                                                                     \
    X(EnqueueMapBuffer, true)                                                                      \
    X(EnqueueUnmapMemObject, true)                                                                 \
    X(EnqueueMarkerWithWaitList, true)                                                             \
    X(EnqueueBarrierWithWaitList, true)                                                            \
    X(WaitForEvents, true)                                                                         \
    X(GetEventInfo, true)                                                                          \
    X(GetEventProfilingInfo, true)                                                                 \
    X(ReleaseEvent, true)                                                                          \
    X(Flush, true)                                                                                 \
    X(Finish, true)

/** One pointer for each function: `library->cl.EnqueueReadBuffer(...)`. */
struct tnd_cl_functions {
#define TND_CL_MEMBER(name, required) __typeof__(cl##name) *name;
    TND_CL_FUNCTION_LIST(TND_CL_MEMBER)
#undef TND_CL_MEMBER
};

/* Own declarations of what is used of CLBlast's C interface (clblast_c.h, github.com/CNugteren/
 * CLBlast, Apache-2.0): the values of its enums and the types of its functions. Offsets and leading
 * dimensions count elements; results are codes of OpenCL or CLBlast's own, -1024 and below. */
enum {
    TND_CLBLAST_ROW_MAJOR = 101,
    TND_CLBLAST_NO_TRANS = 111,
    TND_CLBLAST_TRANS = 112,
    TND_CLBLAST_PRECISION_HALF = 16,
    TND_CLBLAST_PRECISION_SINGLE = 32
};

typedef int tnd_clblast_sgemm(int layout, int a_transpose, int b_transpose, size_t m, size_t n,
                              size_t k, float alpha, cl_mem a, size_t a_offset, size_t a_ld,
                              cl_mem b, size_t b_offset, size_t b_ld, float beta, cl_mem c,
                              size_t c_offset, size_t c_ld, cl_command_queue *queue,
                              cl_event *event);
typedef int tnd_clblast_hgemm(int layout, int a_transpose, int b_transpose, size_t m, size_t n,
                              size_t k, cl_half alpha, cl_mem a, size_t a_offset, size_t a_ld,
                              cl_mem b, size_t b_offset, size_t b_ld, cl_half beta, cl_mem c,
                              size_t c_offset, size_t c_ld, cl_command_queue *queue,
                              cl_event *event);
typedef int tnd_clblast_override(cl_device_id device, const char *kernel, int precision,
                                 size_t n_parameters, const char **names, const size_t *values);
typedef int tnd_clblast_clear_cache(void);

/** CLBlast's functions, or all NULL. */
struct tnd_clblast_functions {
    tnd_clblast_sgemm *sgemm;
    tnd_clblast_hgemm *hgemm;
    tnd_clblast_override *override_parameters; /* optional */
    tnd_clblast_clear_cache *clear_cache;      /* optional: frees what is cached for all devices */
};

struct tnd_cl_library {
    struct tnd_cl_functions cl;
    char path[256]; /* file of libOpenCL */
};

/** Loads libOpenCL: the file `path`, or the usual names when NULL; the same one for the same path.
 *  Lives until the process ends. Errors: UNSUPPORTED_MACHINE. Any thread. */
enum tandem_status tnd_cl_library_get(const char *path, const struct tnd_cl_library **out_library,
                                      struct tandem_error *error);

/** As tnd_cl_library_get, for CLBlast. */
enum tandem_status tnd_clblast_get(const char *path,
                                   const struct tnd_clblast_functions **out_functions,
                                   struct tandem_error *error);

/** "CL_OUT_OF_RESOURCES" for a code of OpenCL or CLBlast. Static. */
const char *tnd_cl_code_name(cl_int code);

/** OK for CL_SUCCESS, else DEVICE, DEVICE_LOST or DEVICE_MEMORY and a message with the device,
 *  the call and the code. */
enum tandem_status tnd_cl_code_check(const char *device, const char *call, cl_int code,
                                     struct tandem_error *error);

#endif
