/* SPDX-License-Identifier: MIT
 * OpenCL driver of the GPU backend: an open device with its context and queues. */
#ifndef TND_CL_DRIVER_H
#define TND_CL_DRIVER_H

#include "backends/gpu/driver.h"
#include "backends/opencl/cl_library.h"

struct tnd_cl_context {
    struct tnd_gpu_context base;
    const struct tnd_cl_library *library;
    const struct tnd_clblast_functions *clblast; /* NULL: not available or switched off */
    bool has_used_clblast;                       /* its cache refers to the context */
    cl_device_id id;
    cl_context context;
    cl_command_queue queues[TND_GPU_QUEUE_COUNT]; /* in order */
};

extern const struct tnd_gpu_driver tnd_cl_driver;

/** Implements `find` of the driver. */
enum tandem_status tnd_cl_find_devices(const struct tnd_gpu_libraries *libraries,
                                       struct tnd_gpu_found **out_found, int *out_n,
                                       struct tandem_error *error);

/* ---- cl_programs.c: the driver's functions of these names ---- */

enum tandem_status tnd_cl_compile(struct tnd_gpu_context *context, const struct tnd_gpu_text *text,
                                  struct tnd_gpu_module **out_module, struct tandem_error *error);
struct tnd_gpu_module *tnd_cl_load(struct tnd_gpu_context *context, const void *bytes, size_t n,
                                   const char *options);
void *tnd_cl_module_binary(struct tnd_gpu_context *context, struct tnd_gpu_module *module,
                           size_t *out_n);
void tnd_cl_module_free(struct tnd_gpu_context *context, struct tnd_gpu_module *module);
enum tandem_status tnd_cl_function_new(struct tnd_gpu_context *context,
                                       struct tnd_gpu_module *module, const char *name,
                                       struct tnd_gpu_function **out_function,
                                       struct tandem_error *error);
void tnd_cl_function_free(struct tnd_gpu_context *context, struct tnd_gpu_function *function);
enum tandem_status tnd_cl_argument(struct tnd_gpu_context *context,
                                   struct tnd_gpu_function *function, const char *name, int index,
                                   size_t bytes, const void *value, struct tandem_error *error);

#endif
