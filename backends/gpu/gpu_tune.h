/* SPDX-License-Identifier: MIT
 * Measuring candidates for the tile numbers of a device. */
#ifndef TND_GPU_TUNE_H
#define TND_GPU_TUNE_H

#include "backends/gpu/gpu_tiles.h"
#include "tandem/tensor.h"

struct tnd_gpu_tune_options {
    struct tnd_tuner_options tuner; /* `timed` and `choose` may be NULL: nobody is told, and the
                                       fastest candidate of each family serves */
    bool with_half; /* try half precision for quantised weights also where what is beyond 65504
                       becomes infinite: only who knows the model asks for it */
    bool is_brief;  /* small matrices: for tests */
    bool only_launches;
};

/** Measures candidates of each family and makes the device use what `choose` wants from now on.
 *  Takes seconds to minutes: each candidate is compiled. Nothing else should run on the device.
 *  Errors: CANCELLED (by `timed`; the device keeps its numbers), ARGUMENT (chosen numbers do not
 *  fit the device), those of the device, MEMORY. One thread at a time. */
enum tandem_status tnd_gpu_tune(struct tnd_gpu_device *device,
                                const struct tnd_gpu_tune_options *options,
                                struct tandem_error *error);

/** Makes the device use numbers, "name=value,..", of which the others stay; nothing changes on
 *  errors. Errors: ARGUMENT. Any thread. */
enum tandem_status tnd_gpu_tiles_use(struct tnd_gpu_device *device, const char *numbers,
                                     struct tandem_error *error);

#endif
