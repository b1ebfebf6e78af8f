/* SPDX-License-Identifier: MIT
 * Shared by gpu_tune.c (our kernels) and gpu_tune_gemm.c (libraries) alone. */
#ifndef TND_GPU_TUNE_PARTS_H
#define TND_GPU_TUNE_PARTS_H

#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_tune.h"

enum {
    TND_GPU_TUNE_REPEATS_MOST = 13, /* the first is dropped: it compiles or loads */
    TND_GPU_TUNE_SAMPLES = 1024,
    TND_GPU_TUNE_GEMM_ROWS = 4096,
    TND_GPU_TUNE_BUDGET_NS = 150000000 /* per candidate, after its first two runs */
};

/* Times of a product, run by run. */
struct tnd_gpu_tune_times {
    float us[TND_GPU_TUNE_REPEATS_MOST];
    int n;        /* 0: the device refused the candidate, or it was wrong */
    double error; /* of struct tnd_tuner_time */
};

struct tnd_gpu_tuner {
    struct tnd_gpu_device *device;
    const struct tnd_gpu_tune_options *options;
    struct tnd_gpu_product product; /* the largest; families take parts of it */
    struct tnd_gpu_range f32;       /* weights of the library's product */
    const float *want;              /* samples that a candidate must match; NULL: not checked */
    const char *family, *names;     /* of its numbers: "tile_m,tile_n" */
    struct tnd_gpu_tiles prior;     /* when the family began */
    double best_us;                 /* of the family, if there is no `choose`; negative: none yet */
    char best[TND_NUMBERS_MAX];
    int in_family; /* candidates measured */
    int index, count;
};

/** Begins a family. */
void tnd_gpu_tune_family(struct tnd_gpu_tuner *t, const char *family, const char *names);
/** Whether as many candidates of the family were measured as the options want. */
bool tnd_gpu_tune_is_enough(const struct tnd_gpu_tuner *t);
/** Whether a failure means that the candidate cannot run here, not that the device is lost. */
bool tnd_gpu_tune_is_refusal(enum tandem_status status);
/** Reports the times of `tiles`. Errors: CANCELLED. */
enum tandem_status tnd_gpu_tune_tell(struct tnd_gpu_tuner *t, const struct tnd_gpu_tiles *tiles,
                                     const struct tnd_gpu_product *product,
                                     const struct tnd_gpu_tune_times *times,
                                     struct tandem_error *error);
/** Ends a family: makes the device use the chosen numbers. Errors: ARGUMENT. */
enum tandem_status tnd_gpu_tune_end(struct tnd_gpu_tuner *t, struct tandem_error *error);

/** Samples of Y as it is now, of several tokens and rows; Y {n, m} has at least 64 rows. */
enum tandem_status tnd_gpu_tune_read(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     float out[TND_GPU_TUNE_SAMPLES], struct tandem_error *error);
/** Relative squared error: sum of squared differences over sum of squares of `want`. */
double tnd_gpu_tune_error(const float want[TND_GPU_TUNE_SAMPLES],
                          const float got[TND_GPU_TUNE_SAMPLES]);

/** Rows of W of the library's product. */
static inline uint32_t tnd_gpu_tune_gemm_n(const struct tnd_gpu_product *p)
{
    return p->n < TND_GPU_TUNE_GEMM_ROWS ? p->n : TND_GPU_TUNE_GEMM_ROWS;
}

/** Measures what a launch takes, by itself and in graphs: nanoseconds of the host and the device
 *  together, in a row of small kernels of which every eighth has other arguments than the last
 *  time. The setting decides whether graphs serve, or else their number does. */
enum tandem_status tnd_gpu_tune_launches(struct tnd_gpu_tuner *t, struct tandem_error *error);

/** Measures rows of parameters for CLBlast; nothing where it takes none. */
enum tandem_status tnd_gpu_tune_gemm(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     struct tandem_error *error);
/** Whether half precision is possible and should be tried. */
bool tnd_gpu_tune_has_half(const struct tnd_gpu_tuner *t);
/** Finds out whether the library multiplies well in half precision. */
enum tandem_status tnd_gpu_tune_half(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     struct tandem_error *error);

#endif
