/* SPDX-License-Identifier: MIT
 * Building one program: from the cache on disk, else from source and then into the cache. */
#ifndef TND_GPU_BINARY_H
#define TND_GPU_BINARY_H

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/gpu_kernels.h"
#include "base/text.h"

struct tnd_gpu_build {
    const char *name;    /* of the source; files in the cache begin with it */
    uint64_t hash;       /* of dialect and source */
    const char *dialect; /* what stands in front of the source */
    const char *text;    /* of the source, terminated */
    const char *options; /* of the compiler */
    const char *folder;  /* of the cache; NULL: none */
};

/** Errors: DEVICE with the compiler's first complaint, MEMORY. Troubles with the cache are none. */
enum tandem_status tnd_gpu_build_program(const struct tnd_gpu_device *device,
                                         const struct tnd_gpu_build *build, cl_program *out_program,
                                         bool *out_from_cache, struct tandem_error *error);

/** Path of the binary's file. For tests too. */
void tnd_gpu_build_path(const struct tnd_gpu_device *device, const struct tnd_gpu_build *build,
                        struct tnd_text *out_key, struct tnd_text *out_path);

#endif
