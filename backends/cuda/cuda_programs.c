/* SPDX-License-Identifier: MIT
 * Programs and kernels of CUDA: compiles text to device binaries with NVRTC, loads binaries as
 * modules. Kernels have C names, by which they are found. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda_driver.h"
#include "base/alloc.h"

enum { MAX_BINARY_BYTES = 256 << 20, MAX_OPTIONS = 64, MAX_OPTION_BYTES = 4096 };

struct tnd_gpu_module {
    tnd_cu_module handle;
    void *binary; /* NULL: ownership was passed on, or it was loaded from a file */
    size_t n;
};

static const struct tnd_cuda_context *of(const struct tnd_gpu_context *context)
{
    return (const struct tnd_cuda_context *)context;
}

/* ---- modules ---- */

/* Takes ownership of `binary` (tnd_alloc), even if it fails. */
static enum tandem_status make_module(const struct tnd_cuda_context *self, const void *image,
                                      void *binary, size_t n, struct tnd_gpu_module **out_module,
                                      struct tandem_error *error)
{
    struct tnd_gpu_module *module = tnd_calloc(1, sizeof(*module));
    if (module == NULL) {
        tnd_free(binary);
        return tnd_error_set(error, TANDEM_E_MEMORY, self->base.name, (int64_t)sizeof(*module), 0,
                             "backend cuda: no memory");
    }
    *module = (struct tnd_gpu_module){NULL, binary, n};
    int code = TND_CU_SUCCESS;
    TND_CUDA_CALL(self, code, ModuleLoadData(&module->handle, image));
    if (code != TND_CU_SUCCESS) {
        tnd_free(binary);
        tnd_free(module);
        return tnd_cuda_check(self->library, self->base.name, "cuModuleLoadData", code, error);
    }
    *out_module = module;
    return TANDEM_OK;
}

struct tnd_gpu_module *tnd_cuda_load(struct tnd_gpu_context *context, const void *bytes, size_t n,
                                     const char *options)
{
    struct tnd_gpu_module *module = NULL;
    (void)options; /* (the binary was compiled with them) */
    return make_module(of(context), bytes, NULL, n, &module, NULL) == TANDEM_OK ? module : NULL;
}

void *tnd_cuda_module_binary(struct tnd_gpu_context *context, struct tnd_gpu_module *module,
                             size_t *out_n)
{
    void *binary = module->binary;
    (void)context;
    module->binary = NULL;
    *out_n = module->n;
    return binary;
}

void tnd_cuda_module_free(struct tnd_gpu_context *context, struct tnd_gpu_module *module)
{
    if (module != NULL) {
        tnd_cuda_forget_graphs(context);
        TND_CUDA_GIVE_BACK(of(context), ModuleUnload(module->handle));
        tnd_free(module->binary);
        tnd_free(module);
    }
}

/* ---- the compiler ---- */

static void read_complaint(const struct tnd_nvrtc_functions *nvrtc, tnd_nvrtc_program program,
                           char *out, size_t bytes)
{
    size_t n = 0;
    char *log = nvrtc->GetProgramLogSize(program, &n) == 0 && n > 0 && n < MAX_BINARY_BYTES
                    ? tnd_calloc(1, n + 1)
                    : NULL;
    if (log != NULL && nvrtc->GetProgramLog(program, log) == 0) {
        tnd_gpu_first_complaint(log, out, bytes);
    }
    tnd_free(log);
}

/* Splits `options` into words for NVRTC; -1: too many or too long. They point into `buffer`. */
static int split(const char *options, char buffer[MAX_OPTION_BYTES], const char **out)
{
    int n = 0;
    if (strlen(options) >= MAX_OPTION_BYTES) {
        return -1;
    }
    strcpy(buffer, options);
    for (char *at = buffer + strspn(buffer, " "); *at != '\0'; at += strspn(at, " ")) {
        if (n == MAX_OPTIONS) {
            return -1;
        }
        out[n++] = at;
        at += strcspn(at, " ");
        if (*at != '\0') {
            *at++ = '\0';
        }
    }
    return n;
}

static enum tandem_status refuse(const struct tnd_cuda_context *self,
                                 const struct tnd_gpu_text *text, const char *call, int code,
                                 const char *why, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_DEVICE, self->base.name, code, 0,
                         "cuda device '%.40s': %s failed with %d for %s: %.128s", self->base.name,
                         call, code, text->name, why);
}

static enum tandem_status take_binary(const struct tnd_cuda_context *self,
                                      const struct tnd_gpu_text *text, tnd_nvrtc_program program,
                                      struct tnd_gpu_module **out_module,
                                      struct tandem_error *error)
{
    const struct tnd_nvrtc_functions *nvrtc = &self->library->nvrtc;
    size_t n = 0;
    int code = nvrtc->GetCUBINSize(program, &n);
    if (code != 0 || n == 0 || n > MAX_BINARY_BYTES) {
        return refuse(self, text, "nvrtcGetCUBINSize", code, "no binary", error);
    }
    char *binary = tnd_alloc(n);
    if (binary == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, self->base.name, (int64_t)n, 0,
                             "backend cuda: no memory for a program");
    }
    code = nvrtc->GetCUBIN(program, binary);
    if (code != 0) {
        tnd_free(binary);
        return refuse(self, text, "nvrtcGetCUBIN", code, "no binary", error);
    }
    return make_module(self, binary, binary, n, out_module, error);
}

/* Used if there is no compiler. The driver caches what it compiles from PTX. */
static enum tandem_status load_prebuilt(const struct tnd_cuda_context *self,
                                        const struct tnd_gpu_text *text,
                                        struct tnd_gpu_module **out_module,
                                        struct tandem_error *error)
{
    struct tandem_error told = {0};
    char *ptx = NULL;
    const enum tandem_status status =
        tnd_cuda_pack_text(&self->library->pack, tnd_cuda_pack_key(text), &ptx, &told);
    if (status == TANDEM_E_NOT_FOUND) {
        const char *defines = strstr(text->options, " -D");
        return tnd_error_set(error, TANDEM_E_DEVICE, self->base.name, 0, 0,
                             "cuda device '%.40s': %s with%.150s is not among the prebuilt kernels",
                             self->base.name, text->name,
                             defines != NULL ? defines : "out options");
    }
    if (status != TANDEM_OK) {
        return refuse(self, text, "reading prebuilt kernels", (int)status, told.text, error);
    }
    const enum tandem_status made = make_module(self, ptx, NULL, 0, out_module, error);
    tnd_free(ptx);
    return made;
}

enum tandem_status tnd_cuda_compile(struct tnd_gpu_context *context,
                                    const struct tnd_gpu_text *text,
                                    struct tnd_gpu_module **out_module, struct tandem_error *error)
{
    static const char main_text[] =
        "#include \"dialect\"\nextern \"C\" {\n#include \"kernels\"\n}\n";
    static const char *const names[] = {"dialect", "kernels"};
    const struct tnd_cuda_context *self = of(context);
    const struct tnd_nvrtc_functions *nvrtc = &self->library->nvrtc;
    const char *const texts[] = {text->dialect, text->text};
    const char *options[MAX_OPTIONS];
    char buffer[MAX_OPTION_BYTES];
    char complaint[128] = "no log";
    tnd_nvrtc_program program = NULL;
    if (self->base.has_fixed_programs) {
        return load_prebuilt(self, text, out_module, error);
    }
    const int n = split(text->options, buffer, options);
    if (n < 0) {
        return refuse(self, text, "nvrtcCompileProgram", 0, "too many options", error);
    }
    int code = nvrtc->CreateProgram(&program, main_text, "main.cu", 2, texts, names);
    if (code != 0) {
        return refuse(self, text, "nvrtcCreateProgram", code, "no program", error);
    }
    code = nvrtc->CompileProgram(program, n, options);
    enum tandem_status status = TANDEM_OK;
    if (code == 0) {
        status = take_binary(self, text, program, out_module, error);
    } else {
        read_complaint(nvrtc, program, complaint, sizeof(complaint));
        status = refuse(self, text, "nvrtcCompileProgram", code, complaint, error);
    }
    (void)nvrtc->DestroyProgram(&program);
    return status;
}

/* ---- kernels ---- */

enum tandem_status tnd_cuda_function_new(struct tnd_gpu_context *context,
                                         struct tnd_gpu_module *module, const char *name,
                                         struct tnd_gpu_function **out_function,
                                         struct tandem_error *error)
{
    const struct tnd_cuda_context *self = of(context);
    struct tnd_gpu_function *function = tnd_calloc(1, sizeof(*function));
    if (function == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, context->name, (int64_t)sizeof(*function), 0,
                             "backend cuda: no memory");
    }
    int code = TND_CU_SUCCESS;
    TND_CUDA_CALL(self, code, ModuleGetFunction(&function->handle, module->handle, name));
    if (code != TND_CU_SUCCESS) {
        tnd_free(function);
        return tnd_cuda_check(self->library, context->name, "cuModuleGetFunction", code, error);
    }
    *out_function = function;
    return TANDEM_OK;
}

void tnd_cuda_function_free(struct tnd_gpu_context *context, struct tnd_gpu_function *function)
{
    (void)context;
    tnd_free(function);
}

enum tandem_status tnd_cuda_argument(struct tnd_gpu_context *context,
                                     struct tnd_gpu_function *function, const char *name, int index,
                                     size_t bytes, const void *value, struct tandem_error *error)
{
    if (index < 0 || index >= TND_CUDA_MAX_ARGUMENTS ||
        (value != NULL && bytes > sizeof(function->values[0]))) {
        return tnd_error_set(error, TANDEM_E_DEVICE, context->name, index, TND_CUDA_MAX_ARGUMENTS,
                             "cuda device '%.60s': argument %d of kernel %s has %zu bytes, "
                             "expected up to %zu, and up to %d arguments",
                             context->name, index, name, bytes, sizeof(function->values[0]),
                             TND_CUDA_MAX_ARGUMENTS);
    }
    function->n = function->n > index ? function->n : index + 1;
    function->values[index] = 0;
    function->local_bytes[index] = value != NULL ? 0 : bytes;
    if (value != NULL) {
        memcpy(&function->values[index], value, bytes);
    }
    return TANDEM_OK;
}
