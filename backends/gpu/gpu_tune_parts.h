/* SPDX-License-Identifier: MIT
 * Shared by gpu_tune.c (our kernels) and gpu_tune_gemm.c (libraries) alone. */
#ifndef TND_GPU_TUNE_PARTS_H
#define TND_GPU_TUNE_PARTS_H

#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_tune.h"

enum {
    TND_GPU_TUNE_REPEATS_MOST = 12,
    TND_GPU_TUNE_SAMPLES = 1024,
    TND_GPU_TUNE_GEMM_ROWS = 4096,
    TND_GPU_TUNE_BUDGET_NS = 150000000 /* of a candidate, after its first two runs */
};

struct tnd_gpu_tuner {
    struct tnd_gpu_device *device;
    const struct tnd_gpu_tune_options *options;
    struct tnd_gpu_product product; /* the largest; families take parts of it */
    struct tnd_gpu_range f32;       /* weights of the library's product */
    const float *want; /* samples that a candidate must have; NULL: none are looked at */
    struct tnd_gpu_tune_step step;
    double best_us; /* of the family */
    int in_family;  /* candidates measured */
};

/** Begins a family: nothing is measured of it yet. */
void tnd_gpu_tune_family(struct tnd_gpu_tuner *t, const char *family);
/** Whether as many candidates of the family were measured as the options want. */
bool tnd_gpu_tune_is_enough(const struct tnd_gpu_tuner *t);
/** Failures that mean "this candidate cannot run here" and not "the device is gone". */
bool tnd_gpu_tune_is_refusal(enum tandem_status status);
/** Whether a candidate of `us` (negative: refused) is the family's best; tells progress. Errors:
 *  CANCELLED. */
enum tandem_status tnd_gpu_tune_judge(struct tnd_gpu_tuner *t,
                                      const struct tnd_gpu_product *product, double us,
                                      bool *out_is_best, struct tandem_error *error);

/** Samples of Y as it is now, of several tokens and rows; Y {n, m} has at least 64 rows. */
enum tandem_status tnd_gpu_tune_read(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     float out[TND_GPU_TUNE_SAMPLES], struct tandem_error *error);
/** Squares of the differences over squares of `want`. */
double tnd_gpu_tune_error(const float want[TND_GPU_TUNE_SAMPLES],
                          const float got[TND_GPU_TUNE_SAMPLES]);

/** Rows of W of the library's product. */
static inline uint32_t tnd_gpu_tune_gemm_n(const struct tnd_gpu_product *p)
{
    return p->n < TND_GPU_TUNE_GEMM_ROWS ? p->n : TND_GPU_TUNE_GEMM_ROWS;
}

/** Finds the row of parameters for CLBlast; nothing where it takes none. */
enum tandem_status tnd_gpu_tune_gemm(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     struct tandem_error *error);
/** Whether half precision is to be tried, and can be. */
bool tnd_gpu_tune_has_half(const struct tnd_gpu_tuner *t);
/** Finds out whether the library multiplies well in half precision. */
enum tandem_status tnd_gpu_tune_half(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     struct tandem_error *error);

#endif
