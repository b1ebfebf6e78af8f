/* SPDX-License-Identifier: MIT
 * CUDA driver of the GPU backend: an open device with its primary context and streams. */
#ifndef TND_CUDA_DRIVER_H
#define TND_CUDA_DRIVER_H

#include <pthread.h>

#include "backends/cuda/cuda_library.h"
#include "backends/gpu/driver.h"

struct tnd_cuda_context {
    struct tnd_gpu_context base;
    const struct tnd_cuda_library *library;
    int device;
    bool has_times;
    tnd_cu_context context; /* the primary context, shared with other code in the process */
    tnd_cu_stream streams[TND_GPU_QUEUE_COUNT];
    struct tnd_cuda_batch *batch; /* NULL: no graphs, every launch is sent immediately */
    tnd_cublas blas;              /* if has_blas; uses the work queue's stream */
};

/** A kernel and the arguments that were set so far. */
enum { TND_CUDA_MAX_ARGUMENTS = 64 };
struct tnd_gpu_function {
    tnd_cu_function handle;
    int n;
    uint64_t values[TND_CUDA_MAX_ARGUMENTS];
    size_t local_bytes[TND_CUDA_MAX_ARGUMENTS]; /* of those in local memory; 0: another argument */
};

/** `code` = the result of a call with the device's context current. Afterwards the previous
 * context, which may be another library's, is current again. */
#define TND_CUDA_CALL(self, code, call)                                                            \
    do {                                                                                           \
        const struct tnd_cu_functions *const cu = &(self)->library->cu;                            \
        tnd_cu_context popped = NULL;                                                              \
        code = cu->CtxPushCurrent((self)->context);                                                \
        if (code == TND_CU_SUCCESS) {                                                              \
            code = cu->call;                                                                       \
            (void)cu->CtxPopCurrent(&popped);                                                      \
        }                                                                                          \
    } while (0)

/** The same; returns a failure to the caller. `text` names the call. */
#define TND_CUDA_TRY(self, text, call, error)                                                      \
    do {                                                                                           \
        int of_call = TND_CU_SUCCESS;                                                              \
        TND_CUDA_CALL(self, of_call, call);                                                        \
        TND_TRY(tnd_cuda_check((self)->library, (self)->base.name, text, of_call, error));         \
    } while (0)

/** As TND_CUDA_CALL for calls that free something: they run even if the context cannot be entered,
 * because a lost device still has memory, and streams that would keep running. */
#define TND_CUDA_GIVE_BACK(self, call)                                                             \
    do {                                                                                           \
        const struct tnd_cu_functions *const cu = &(self)->library->cu;                            \
        tnd_cu_context popped = NULL;                                                              \
        const bool is_inside = cu->CtxPushCurrent((self)->context) == TND_CU_SUCCESS;              \
        (void)cu->call;                                                                            \
        if (is_inside) {                                                                           \
            (void)cu->CtxPopCurrent(&popped);                                                      \
        }                                                                                          \
    } while (0)

extern const struct tnd_gpu_driver tnd_cuda_driver;

/** Implements `find` of the driver. */
enum tandem_status tnd_cuda_find_devices(const struct tnd_gpu_libraries *libraries,
                                         struct tnd_gpu_found **out_found, int *out_n,
                                         struct tandem_error *error);

/** As tnd_cuda_find_devices, with a library that is loaded already. */
enum tandem_status tnd_cuda_list(const struct tnd_cuda_library *library,
                                 struct tnd_gpu_found **out_found, int *out_n,
                                 struct tandem_error *error);

/* ---- cuda_graph.c ---- */

void tnd_cuda_batch_open(struct tnd_cuda_context *self);
void tnd_cuda_batch_close(struct tnd_cuda_context *self);
/** Gathers a launch to send it later; false: the caller has to launch it. `name` is static. */
bool tnd_cuda_gather(struct tnd_cuda_context *self, const struct tnd_gpu_function *function,
                     const char *name, const struct tnd_cu_node_parameters *how,
                     enum tandem_status *out_status, struct tandem_error *error);
/** Sends gathered launches. Call it before anything else is added to the work queue or waits for
 * it. */
enum tandem_status tnd_cuda_submit(struct tnd_gpu_context *context, struct tandem_error *error);
/** Adds one launch to the work queue; returns its CUDA code. */
int tnd_cuda_launch(const struct tnd_cuda_context *self, const struct tnd_cu_node_parameters *how);
/** Implements use_graphs of the driver. */
bool tnd_cuda_use_graphs(struct tnd_gpu_context *context, bool on);
/** After this no graph refers to any kernel. */
void tnd_cuda_forget_graphs(struct tnd_gpu_context *context);
/* ---- cuda_blas.c ---- */

/** Creates the device's handle, or records why that is impossible. */
void tnd_cuda_blas_open(struct tnd_cuda_context *self, int capability);
void tnd_cuda_blas_close(struct tnd_cuda_context *self);
enum tandem_status tnd_cuda_product(struct tnd_gpu_context *context,
                                    const struct tnd_gpu_blas *product, struct tandem_error *error);

/* ---- cuda_programs.c: the driver's functions of these names ---- */

enum tandem_status tnd_cuda_compile(struct tnd_gpu_context *context,
                                    const struct tnd_gpu_text *text,
                                    struct tnd_gpu_module **out_module, struct tandem_error *error);
struct tnd_gpu_module *tnd_cuda_load(struct tnd_gpu_context *context, const void *bytes, size_t n,
                                     const char *options);
void *tnd_cuda_module_binary(struct tnd_gpu_context *context, struct tnd_gpu_module *module,
                             size_t *out_n);
void tnd_cuda_module_free(struct tnd_gpu_context *context, struct tnd_gpu_module *module);
enum tandem_status tnd_cuda_function_new(struct tnd_gpu_context *context,
                                         struct tnd_gpu_module *module, const char *name,
                                         struct tnd_gpu_function **out_function,
                                         struct tandem_error *error);
void tnd_cuda_function_free(struct tnd_gpu_context *context, struct tnd_gpu_function *function);
enum tandem_status tnd_cuda_argument(struct tnd_gpu_context *context,
                                     struct tnd_gpu_function *function, const char *name, int index,
                                     size_t bytes, const void *value, struct tandem_error *error);

#endif
