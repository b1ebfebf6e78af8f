/* SPDX-License-Identifier: MIT
 * Programs and kernels of OpenCL. A module is a cl_program, a function a cl_kernel. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/cl_driver.h"
#include "base/alloc.h"

enum { MAX_BINARY_BYTES = 256 << 20 };

static const struct tnd_cl_context *of(const struct tnd_gpu_context *context)
{
    return (const struct tnd_cl_context *)context;
}

/* ---- what the compiler says ---- */

static enum tandem_status refuse_build(const struct tnd_cl_context *self, const char *name,
                                       cl_program program, cl_int code, struct tandem_error *error)
{
    const struct tnd_cl_functions *cl = &self->library->cl;
    char complaint[128] = "no log";
    size_t n = 0;
    if (code != CL_BUILD_PROGRAM_FAILURE) {
        return tnd_cl_code_check(self->base.name, "clBuildProgram", code, error);
    }
    if (cl->GetProgramBuildInfo(program, self->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &n) ==
            CL_SUCCESS &&
        n > 0 && n < MAX_BINARY_BYTES) {
        char *log = tnd_calloc(1, n + 1);
        if (log != NULL && cl->GetProgramBuildInfo(program, self->id, CL_PROGRAM_BUILD_LOG, n, log,
                                                   NULL) == CL_SUCCESS) {
            tnd_gpu_first_complaint(log, complaint, sizeof(complaint));
        }
        tnd_free(log);
    }
    return tnd_error_set(error, TANDEM_E_DEVICE, self->base.name, code, 0,
                         "opencl device '%.40s': clBuildProgram failed for %s.cl: %s",
                         self->base.name, name, complaint);
}

enum tandem_status tnd_cl_compile(struct tnd_gpu_context *context, const struct tnd_gpu_text *text,
                                  struct tnd_gpu_module **out_module, struct tandem_error *error)
{
    const struct tnd_cl_context *self = of(context);
    const struct tnd_cl_functions *cl = &self->library->cl;
    const char *texts[] = {text->dialect, text->text};
    cl_int code = CL_SUCCESS;
    cl_program program = cl->CreateProgramWithSource(self->context, 2, texts, NULL, &code);
    TND_TRY(tnd_cl_code_check(self->base.name, "clCreateProgramWithSource", code, error));
    code = cl->BuildProgram(program, 1, &self->id, text->options, NULL, NULL);
    if (code != CL_SUCCESS) {
        enum tandem_status status = refuse_build(self, text->name, program, code, error);
        cl->ReleaseProgram(program);
        return status;
    }
    *out_module = (struct tnd_gpu_module *)program;
    return TANDEM_OK;
}

/* ---- binaries ---- */

struct tnd_gpu_module *tnd_cl_load(struct tnd_gpu_context *context, const void *bytes, size_t n,
                                   const char *options)
{
    const struct tnd_cl_context *self = of(context);
    const struct tnd_cl_functions *cl = &self->library->cl;
    const unsigned char *binary = bytes;
    cl_int code = CL_SUCCESS;
    cl_int its_code = CL_SUCCESS;
    cl_program program =
        cl->CreateProgramWithBinary(self->context, 1, &self->id, &n, &binary, &its_code, &code);
    if (code != CL_SUCCESS) {
        return NULL;
    }
    if (its_code != CL_SUCCESS ||
        cl->BuildProgram(program, 1, &self->id, options, NULL, NULL) != CL_SUCCESS) {
        cl->ReleaseProgram(program);
        return NULL;
    }
    return (struct tnd_gpu_module *)program;
}

void *tnd_cl_module_binary(struct tnd_gpu_context *context, struct tnd_gpu_module *module,
                           size_t *out_n)
{
    const struct tnd_cl_functions *cl = &of(context)->library->cl;
    cl_program program = (cl_program)module;
    size_t n = 0;
    if (cl->GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(n), &n, NULL) != CL_SUCCESS ||
        n == 0 || n > MAX_BINARY_BYTES) {
        return NULL;
    }
    unsigned char *binary = tnd_alloc(n);
    if (binary != NULL && cl->GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary,
                                             NULL) != CL_SUCCESS) {
        tnd_free(binary);
        return NULL;
    }
    *out_n = n;
    return binary;
}

void tnd_cl_module_free(struct tnd_gpu_context *context, struct tnd_gpu_module *module)
{
    if (module != NULL) {
        of(context)->library->cl.ReleaseProgram((cl_program)module);
    }
}

/* ---- kernels ---- */

enum tandem_status tnd_cl_function_new(struct tnd_gpu_context *context,
                                       struct tnd_gpu_module *module, const char *name,
                                       struct tnd_gpu_function **out_function,
                                       struct tandem_error *error)
{
    cl_int code = CL_SUCCESS;
    cl_kernel kernel = of(context)->library->cl.CreateKernel((cl_program)module, name, &code);
    TND_TRY(tnd_cl_code_check(context->name, "clCreateKernel", code, error));
    *out_function = (struct tnd_gpu_function *)kernel;
    return TANDEM_OK;
}

void tnd_cl_function_free(struct tnd_gpu_context *context, struct tnd_gpu_function *function)
{
    if (function != NULL) {
        of(context)->library->cl.ReleaseKernel((cl_kernel)function);
    }
}

enum tandem_status tnd_cl_argument(struct tnd_gpu_context *context,
                                   struct tnd_gpu_function *function, const char *name, int index,
                                   size_t bytes, const void *value, struct tandem_error *error)
{
    cl_int code =
        of(context)->library->cl.SetKernelArg((cl_kernel)function, (cl_uint)index, bytes, value);
    if (code == CL_SUCCESS) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_DEVICE, context->name, code, 0,
                         "opencl device '%.60s': clSetKernelArg failed with %s (%d) for argument "
                         "%d of kernel %s",
                         context->name, tnd_cl_code_name(code), (int)code, index, name);
}
