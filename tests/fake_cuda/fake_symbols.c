/* SPDX-License-Identifier: MIT
 * cuGetProcAddress: the newest version of an entry point by its name without version. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/fake_cuda/fake_state.h"

#define EXPORT __attribute__((visibility("default")))

static int find(const char *symbol, void **out)
{
    Dl_info self;
    char name[80];
    /* Of this library: the process may have other ones of these names. */
    void *library = dladdr((void *)(uintptr_t)find, &self) != 0
                        ? dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD)
                        : NULL;
    *out = NULL;
    if (library == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    snprintf(name, sizeof(name), "%s_v2", symbol);
    *out = dlsym(library, name);
    *out = *out != NULL ? *out : dlsym(library, symbol);
    dlclose(library);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT int cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags);
EXPORT int cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags)
{
    (void)version;
    (void)flags;
    return find(symbol, out);
}

EXPORT int cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                               int *out_status);
EXPORT int cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                               int *out_status)
{
    const int code = cuGetProcAddress(symbol, out, version, flags);
    if (out_status != NULL) {
        *out_status = code == CUDA_SUCCESS ? 0 : 1;
    }
    return CUDA_SUCCESS;
}
