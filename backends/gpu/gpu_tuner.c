/* SPDX-License-Identifier: MIT
 * The tuner of an open OpenCL backend, for programs that know no particular device. */
#include "backends/gpu/gpu_tune.h"
#include "backends/opencl/opencl.h"
#include "backends/tuner.h"
#include "base/tnd_status.h"

static bool tell(void *user, const struct tnd_gpu_tune_step *step)
{
    const struct tnd_tuner_options *options = user;
    const struct tnd_tuner_step told = {step->family,  step->text,  step->us,   step->gflops,
                                        step->is_best, step->index, step->count};
    return options->progress(options->user, &told);
}

static enum tandem_status tune(tandem_backend *backend, const struct tnd_tuner_options *options,
                               struct tandem_error *error)
{
    const struct tnd_gpu_tune_options wanted = {.type = options->type,
                                                .progress = tell,
                                                .user = (void *)(uintptr_t)options,
                                                .without_saving = options->without_saving,
                                                .most_candidates = options->most_candidates};
    struct tnd_gpu_tiles tiles;
    TND_TRY(tnd_gpu_tune(tnd_opencl_device(backend), &wanted, &tiles, error));
#define TELL(member, least, most, what) options->found(options->user, #member, (int)tiles.member);
    TND_GPU_TILE_LIST(TELL)
#undef TELL
    return TANDEM_OK;
}

extern const struct tandem_backend_api tnd_backend_opencl;
extern const struct tnd_tuner tnd_tuner_opencl;
const struct tnd_tuner tnd_tuner_opencl = {&tnd_backend_opencl, tune};
