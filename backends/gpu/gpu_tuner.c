/* SPDX-License-Identifier: MIT
 * The tuner of an open GPU backend, for programs that know no particular device. */
#include "backends/gpu/gpu_backend.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_tune.h"
#include "base/tnd_status.h"

bool tnd_gpu_backend_present(tandem_backend *backend, const char *names, char out[TND_NUMBERS_MAX])
{
    return tnd_gpu_tiles_print(&tnd_gpu_device_of(backend)->matmul->tiles, names, out);
}

enum tandem_status tnd_gpu_backend_use(tandem_backend *backend, const char *numbers,
                                       struct tandem_error *error)
{
    return tnd_gpu_tiles_use(tnd_gpu_device_of(backend), numbers, error);
}

enum tandem_status tnd_gpu_backend_tune(tandem_backend *backend,
                                        const struct tnd_tuner_options *options,
                                        struct tandem_error *error)
{
    return tnd_gpu_tune(tnd_gpu_device_of(backend),
                        &(struct tnd_gpu_tune_options){.tuner = *options}, error);
}

enum tandem_status tnd_gpu_backend_launches(tandem_backend *backend,
                                            const struct tnd_tuner_options *options,
                                            struct tandem_error *error)
{
    return tnd_gpu_tune(tnd_gpu_device_of(backend),
                        &(struct tnd_gpu_tune_options){.tuner = *options, .only_launches = true},
                        error);
}
