/* SPDX-License-Identifier: MIT
 * Builds one program: from the cache on disk, else from source; then caches it. */
#ifndef TND_GPU_BINARY_H
#define TND_GPU_BINARY_H

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/gpu_kernels.h"
#include "base/text.h"

struct tnd_gpu_build {
    struct tnd_gpu_text text; /* names of files in the cache begin with its name */
    uint64_t hash;            /* of dialect and source */
    const char *folder;       /* of the cache; NULL: none */
};

/** Errors: DEVICE with the compiler's first error message, MEMORY. Problems with the cache are not
 * errors. */
enum tandem_status tnd_gpu_build_program(const struct tnd_gpu_device *device,
                                         const struct tnd_gpu_build *build,
                                         struct tnd_gpu_module **out_module, bool *out_from_cache,
                                         struct tandem_error *error);

/** Path of the binary's file; also for tests. */
void tnd_gpu_build_path(const struct tnd_gpu_device *device, const struct tnd_gpu_build *build,
                        struct tnd_text *out_key, struct tnd_text *out_path);

#endif
