/* SPDX-License-Identifier: MIT
 * libcuda, NVRTC and cuBLAS: found at run time, loaded once for each path, never unloaded. No CUDA
 * header is needed: names, types and numbers are those of NVIDIA's "CUDA Driver API", "NVRTC" and
 * "cuBLAS" reference manuals. */
#ifndef TND_CUDA_LIBRARY_H
#define TND_CUDA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cuda/cuda_pack.h"
#include "backends/gpu/driver.h"
#include "base/tnd_status.h"

/* Handles of the driver. Addresses of device memory are numbers. */
typedef struct tnd_cu_context *tnd_cu_context;
typedef struct tnd_cu_stream *tnd_cu_stream;
typedef struct tnd_cu_event *tnd_cu_event;
typedef struct tnd_cu_module *tnd_cu_module;
typedef struct tnd_cu_function *tnd_cu_function;
typedef struct tnd_cu_graph *tnd_cu_graph;
typedef struct tnd_cu_node *tnd_cu_node;
typedef struct tnd_cu_graph_exec *tnd_cu_graph_exec;
typedef uint64_t tnd_cu_address;

/** Results and attributes that the driver uses (CUresult, CUdevice_attribute), and flags. */
enum {
    TND_CU_SUCCESS = 0,
    TND_CU_OUT_OF_MEMORY = 2,
    TND_CU_NO_DEVICE = 100,
    TND_CU_NOT_READY = 600,
    TND_CU_THREADS_OF_BLOCK = 1,
    TND_CU_BLOCK_X = 2, /* and the next two */
    TND_CU_SHARED_OF_BLOCK = 8,
    TND_CU_WARP = 10,
    TND_CU_CLOCK_KHZ = 13,
    TND_CU_MULTIPROCESSORS = 16,
    TND_CU_INTEGRATED = 18,
    TND_CU_COMPUTE_MODE = 20, /* 2: no context can be created */
    TND_CU_MAJOR = 75,
    TND_CU_MINOR = 76,
    TND_CU_STREAM_NON_BLOCKING = 1,
    TND_CU_EVENT_DISABLE_TIMING = 2
};

/* X(name, symbol, arguments): functions of CUDA 11.2, all of them required; each returns a
 * CUresult. */
#define TND_CU_FUNCTION_LIST(X)                                                                    \
    X(Init, "cuInit", (unsigned flags))                                                            \
    X(DriverGetVersion, "cuDriverGetVersion", (int *out))                                          \
    X(GetErrorName, "cuGetErrorName", (int code, const char **out))                                \
    X(DeviceGetCount, "cuDeviceGetCount", (int *out))                                              \
    X(DeviceGet, "cuDeviceGet", (int *out, int ordinal))                                           \
    X(DeviceGetName, "cuDeviceGetName", (char *out, int bytes, int device))                        \
    X(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * out, int device))                           \
    X(DeviceGetAttribute, "cuDeviceGetAttribute", (int *out, int attribute, int device))           \
    X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (tnd_cu_context * out, int device))      \
    X(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int device))                       \
    X(CtxPushCurrent, "cuCtxPushCurrent_v2", (tnd_cu_context context))                             \
    X(CtxPopCurrent, "cuCtxPopCurrent_v2", (tnd_cu_context * out))                                 \
    X(CtxSynchronize, "cuCtxSynchronize", (void))                                                  \
    X(MemAlloc, "cuMemAlloc_v2", (tnd_cu_address * out, size_t bytes))                             \
    X(MemFree, "cuMemFree_v2", (tnd_cu_address address))                                           \
    X(MemHostAlloc, "cuMemHostAlloc", (void **out, size_t bytes, unsigned flags))                  \
    X(MemFreeHost, "cuMemFreeHost", (void *host))                                                  \
    X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                     \
      (tnd_cu_address to, const void *from, size_t bytes, tnd_cu_stream stream))                   \
    X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                     \
      (void *to, tnd_cu_address from, size_t bytes, tnd_cu_stream stream))                         \
    X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                     \
      (tnd_cu_address to, tnd_cu_address from, size_t bytes, tnd_cu_stream stream))                \
    X(StreamCreate, "cuStreamCreate", (tnd_cu_stream * out, unsigned flags))                       \
    X(StreamDestroy, "cuStreamDestroy_v2", (tnd_cu_stream stream))                                 \
    X(StreamSynchronize, "cuStreamSynchronize", (tnd_cu_stream stream))                            \
    X(StreamWaitEvent, "cuStreamWaitEvent",                                                        \
      (tnd_cu_stream stream, tnd_cu_event event, unsigned flags))                                  \
    X(EventCreate, "cuEventCreate", (tnd_cu_event * out, unsigned flags))                          \
    X(EventDestroy, "cuEventDestroy_v2", (tnd_cu_event event))                                     \
    X(EventRecord, "cuEventRecord", (tnd_cu_event event, tnd_cu_stream stream))                    \
    X(EventSynchronize, "cuEventSynchronize", (tnd_cu_event event))                                \
    X(EventQuery, "cuEventQuery", (tnd_cu_event event))                                            \
    X(EventElapsedTime, "cuEventElapsedTime",                                                      \
      (float *out_ms, tnd_cu_event begin, tnd_cu_event end))                                       \
    X(ModuleLoadData, "cuModuleLoadData", (tnd_cu_module * out, const void *image))                \
    X(ModuleUnload, "cuModuleUnload", (tnd_cu_module module))                                      \
    X(ModuleGetFunction, "cuModuleGetFunction",                                                    \
      (tnd_cu_function * out, tnd_cu_module module, const char *name))                             \
    X(LaunchKernel, "cuLaunchKernel",                                                              \
      (tnd_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       tnd_cu_stream stream, void **arguments, void **extra))

/** A launch as a node of a graph (CUDA_KERNEL_NODE_PARAMS_v1). */
struct tnd_cu_node_parameters {
    tnd_cu_function function;
    unsigned grid[3], block[3], shared_bytes;
    void **arguments;
    void **extra;
};

/* Graphs of launches, CUDA 11.4: all of these functions exist, or none is used. */
#define TND_CU_GRAPH_LIST(X)                                                                       \
    X(GraphCreate, "cuGraphCreate", (tnd_cu_graph * out, unsigned flags))                          \
    X(GraphDestroy, "cuGraphDestroy", (tnd_cu_graph graph))                                        \
    X(GraphAddKernelNode, "cuGraphAddKernelNode",                                                  \
      (tnd_cu_node * out, tnd_cu_graph graph, const tnd_cu_node *after, size_t n_after,            \
       const struct tnd_cu_node_parameters *parameters))                                           \
    X(GraphInstantiate, "cuGraphInstantiateWithFlags",                                             \
      (tnd_cu_graph_exec * out, tnd_cu_graph graph, unsigned long long flags))                     \
    X(GraphExecSetParameters, "cuGraphExecKernelNodeSetParams",                                    \
      (tnd_cu_graph_exec exec, tnd_cu_node node, const struct tnd_cu_node_parameters *parameters)) \
    X(GraphExecDestroy, "cuGraphExecDestroy", (tnd_cu_graph_exec exec))                            \
    X(GraphLaunch, "cuGraphLaunch", (tnd_cu_graph_exec exec, tnd_cu_stream stream))

/** NVRTC; each returns an nvrtcResult, except GetErrorString. */
typedef struct tnd_nvrtc_program *tnd_nvrtc_program;
#define TND_NVRTC_FUNCTION_LIST(X)                                                                 \
    X(Version, "nvrtcVersion", (int *out_major, int *out_minor))                                   \
    X(CreateProgram, "nvrtcCreateProgram",                                                         \
      (tnd_nvrtc_program * out, const char *text, const char *name, int n_headers,                 \
       const char *const *headers, const char *const *header_names))                               \
    X(DestroyProgram, "nvrtcDestroyProgram", (tnd_nvrtc_program * program))                        \
    X(CompileProgram, "nvrtcCompileProgram",                                                       \
      (tnd_nvrtc_program program, int n_options, const char *const *options))                      \
    X(GetProgramLogSize, "nvrtcGetProgramLogSize", (tnd_nvrtc_program program, size_t * out))      \
    X(GetProgramLog, "nvrtcGetProgramLog", (tnd_nvrtc_program program, char *out))                 \
    X(GetCUBINSize, "nvrtcGetCUBINSize", (tnd_nvrtc_program program, size_t * out))                \
    X(GetCUBIN, "nvrtcGetCUBIN", (tnd_nvrtc_program program, char *out))
/** Missing before CUDA 11.2: compute capabilities that NVRTC compiles for; 86 is 8.6. */
#define TND_NVRTC_KNOWN_LIST(X)                                                                    \
    X(GetNumSupportedArchs, "nvrtcGetNumSupportedArchs", (int *out))                               \
    X(GetSupportedArchs, "nvrtcGetSupportedArchs", (int *out))

/** cuBLAS; each returns a cublasStatus_t. `which`: 0 is the major version, 1 the minor one. GemmEx
 * is C = alpha * A * B + beta * C in column order; sums and factors have the compute type since
 * 11.0. */
typedef struct tnd_cublas *tnd_cublas;
#define TND_CUBLAS_FUNCTION_LIST(X)                                                                \
    X(GetProperty, "cublasGetProperty", (int which, int *out))                                     \
    X(Create, "cublasCreate_v2", (tnd_cublas * out))                                               \
    X(Destroy, "cublasDestroy_v2", (tnd_cublas handle))                                            \
    X(SetStream, "cublasSetStream_v2", (tnd_cublas handle, tnd_cu_stream stream))                  \
    X(GemmEx, "cublasGemmEx",                                                                      \
      (tnd_cublas handle, int a_transpose, int b_transpose, int m, int n, int k,                   \
       const void *alpha, const void *a, int a_type, int a_ld, const void *b, int b_type,          \
       int b_ld, const void *beta, void *c, int c_type, int c_ld, int compute_type,                \
       int algorithm))

#define TND_CUDA_MEMBER(name, symbol, arguments) int(*name) arguments;
struct tnd_cu_functions {
    TND_CU_FUNCTION_LIST(TND_CUDA_MEMBER)
    TND_CU_GRAPH_LIST(TND_CUDA_MEMBER)
};
struct tnd_nvrtc_functions {
    TND_NVRTC_FUNCTION_LIST(TND_CUDA_MEMBER)
    TND_NVRTC_KNOWN_LIST(TND_CUDA_MEMBER)
};
struct tnd_cublas_functions {
    TND_CUBLAS_FUNCTION_LIST(TND_CUDA_MEMBER)
};
#undef TND_CUDA_MEMBER

struct tnd_cuda_library {
    struct tnd_cu_functions cu;
    struct tnd_nvrtc_functions nvrtc; /* if `has_compiler` */
    struct tnd_cublas_functions blas; /* if `has_blas` */
    struct tnd_cuda_pack pack;        /* if `has_pack` */
    bool has_compiler, has_blas;
    bool has_pack;             /* prebuilt kernels, for devices without a compiler */
    int n_known, known[64];    /* compute capabilities that NVRTC supports; n 0: unknown */
    char compiler_reason[128]; /* why there are no kernels if nothing compiles them */
    char blas_reason[192];
    int version;       /* of the driver: 12040 is CUDA 12.4 */
    int nvrtc_version; /* likewise, also of an unsuitable NVRTC; 0: none found */
    int blas_version;
    char path[256]; /* path of libcuda */
};

/** Loads libcuda (the file `driver`, or the usual name if NULL) and initialises it. Then looks for
 * NVRTC and cuBLAS (`blas`: a file, NULL: the usual names, "off": none), beside libcuda, by the
 * usual names, then in the folders of Python's packages; and for the pack of prebuilt kernels.
 * Valid until the process ends. Errors: UNSUPPORTED_MACHINE with what is missing. Any thread. */
enum tandem_status tnd_cuda_library_get(const struct tnd_gpu_libraries *libraries,
                                        const struct tnd_cuda_library **out_library,
                                        struct tandem_error *error);

/** Whether NVRTC can compile kernels for devices of this compute capability; 86 is 8.6. */
bool tnd_cuda_compiles_for(const struct tnd_cuda_library *library, int capability);

/** Whether the context is unusable after this code, by the driver's reference. */
bool tnd_cuda_is_lost(int code);

/** OK for success; else DEVICE, DEVICE_LOST or DEVICE_MEMORY, with a message that names device,
 * call and code. */
enum tandem_status tnd_cuda_check(const struct tnd_cuda_library *library, const char *device,
                                  const char *call, int code, struct tandem_error *error);

#endif
