/* SPDX-License-Identifier: MIT
 * Finding the tile numbers of a device by measuring, and keeping them: a text file beside the
 * cached programs, <device key>.tune. */
#ifndef TND_GPU_TUNE_H
#define TND_GPU_TUNE_H

#include "backends/gpu/gpu_tiles.h"
#include "tandem/tensor.h"

/** One candidate, measured. */
struct tnd_gpu_tune_step {
    const char *family; /* "matvec", "skinny", "tiled", "tensor", "border", "gemm", "half" */
    char text[96];      /* the candidate's numbers */
    double us; /* of one product; negative: the device refused the candidate, or it was wrong */
    double gflops;
    bool is_best;     /* so far, in its family */
    int index, count; /* of all steps */
};

struct tnd_gpu_tune_options {
    enum tandem_type type; /* of the weights to measure with; F32 (0): Q4_0 */
    /* Called after each candidate; false stops the tuner. NULL: none. */
    bool (*progress)(void *user, const struct tnd_gpu_tune_step *step);
    void *user;
    bool without_saving;
    bool with_half;      /* try half precision for quantised weights also where what is beyond 65504
                       becomes infinite: only who knows the model asks for it */
    bool is_brief;       /* small matrices: for tests */
    int most_candidates; /* at most so many of each family; 0: all */
};

/** Measures candidates of each family, makes the device use the best ones from now on and saves
 *  them for later opens. Takes seconds to minutes: each candidate is compiled. Nothing else should
 *  run on the device. Errors: CANCELLED (by progress; the device keeps its numbers), those of the
 *  device, FILE (not saved, but in use), MEMORY. One thread at a time. */
enum tandem_status tnd_gpu_tune(struct tnd_gpu_device *device,
                                const struct tnd_gpu_tune_options *options,
                                struct tnd_gpu_tiles *out_tiles, struct tandem_error *error);

/** Saves the numbers that the device uses; nothing when its cache is off. Errors: FILE, MEMORY. */
enum tandem_status tnd_gpu_tiles_save(const struct tnd_gpu_device *device,
                                      struct tandem_error *error);
/** Reads what was saved for this device; false when there is nothing, or nothing that fits. */
bool tnd_gpu_tiles_load(struct tnd_gpu_device *device, struct tnd_gpu_tiles *out);

#endif
