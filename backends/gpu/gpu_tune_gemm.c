/* SPDX-License-Identifier: MIT
 * The tuner's part for libraries of products: CLBlast's rows of parameters, and half precision. */
#include <stdio.h>

#include "backends/gpu/gpu_gemm.h"
#include "backends/gpu/gpu_tune_parts.h"
#include "base/clock.h"

typedef enum tandem_status submit_gemm(struct tnd_gpu_device *device,
                                       const struct tnd_gpu_gemm *product,
                                       struct tandem_error *error);

static enum tandem_status measure_gemm(struct tnd_gpu_tuner *t, submit_gemm *submit,
                                       const struct tnd_gpu_gemm *gemm, double *out_us,
                                       struct tandem_error *error)
{
    const struct tnd_gpu_device *device = t->device;
    const struct tnd_clock *clock = tnd_clock_real();
    uint64_t best = UINT64_MAX;
    uint64_t first = clock->now_ns(clock);
    *out_us = -1;
    for (int i = 0; i < TND_GPU_TUNE_REPEATS_MOST; i++) {
        uint64_t begin = clock->now_ns(clock);
        enum tandem_status status = submit(t->device, gemm, error);
        if (status != TANDEM_OK) {
            return tnd_gpu_tune_is_refusal(status) ? TANDEM_OK : status;
        }
        TND_TRY(device->driver->finish(device->context, TND_GPU_QUEUE_WORK, error));
        uint64_t end = clock->now_ns(clock);
        best = i > 0 && end - begin < best ? end - begin : best;
        first = i == 1 ? end : first;
        if (i > 1 && end - first > TND_GPU_TUNE_BUDGET_NS) {
            break;
        }
    }
    *out_us = (double)best / 1000.0;
    return TANDEM_OK;
}

/* A row must be clearly faster than CLBlast's own choice, which cannot be had back here: after
 * other rows were tried, the device uses the best of ours until the next open. */
enum tandem_status tnd_gpu_tune_gemm(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     struct tandem_error *error)
{
    struct tnd_gpu_gemm gemm = {t->f32, p->x, p->y, p->n, p->m, p->k, 0, p->end};
    int32_t *row = &t->device->matmul->tiles.gemm;
    int32_t best_row = 0;
    double own_us = 0;
    double us = 0;
    bool is_best = false;
    if (!t->device->context->has_blas_parameters) {
        return TANDEM_OK;
    }
    tnd_gpu_tune_family(t, "gemm");
    snprintf(t->step.text, sizeof(t->step.text), "CLBlast's own parameters");
    TND_TRY(measure_gemm(t, tnd_gpu_gemm_submit, &gemm, &own_us, error));
    TND_TRY(tnd_gpu_tune_judge(t, p, own_us, &is_best, error));
    for (int32_t i = 1; i <= tnd_gpu_gemm_rows() && !tnd_gpu_tune_is_enough(t); i++) {
        if (!tnd_gpu_gemm_fits(&t->device->caps, i) ||
            tnd_gpu_gemm_choose(t->device, i, NULL) != TANDEM_OK) {
            continue;
        }
        snprintf(t->step.text, sizeof(t->step.text), "row %d", (int)i);
        TND_TRY(measure_gemm(t, tnd_gpu_gemm_submit, &gemm, &us, error));
        TND_TRY(tnd_gpu_tune_judge(t, p, us, &is_best, error));
        best_row = is_best && us < 0.97 * own_us ? i : best_row;
    }
    *row = best_row;
    return best_row > 0 ? tnd_gpu_gemm_choose(t->device, best_row, error) : TANDEM_OK;
}

enum tandem_status tnd_gpu_tune_read(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     float out[TND_GPU_TUNE_SAMPLES], struct tandem_error *error)
{
    enum { ROWS = 64, TOKENS = TND_GPU_TUNE_SAMPLES / ROWS };
    const struct tnd_gpu_device *device = t->device;
    for (size_t i = 0; i < TOKENS; i++) {
        const size_t row = (p->end - ROWS) * i / (TOKENS - 1);
        const size_t at = ((p->m - 1) * i / (TOKENS - 1) * p->n + row) * sizeof(float);
        TND_TRY(device->driver->read(device->context, TND_GPU_QUEUE_WORK, NULL, p->y.buffer,
                                     (size_t)p->y.offset + at, out + i * ROWS, ROWS * sizeof(float),
                                     NULL, error));
    }
    return TANDEM_OK;
}

double tnd_gpu_tune_error(const float want[TND_GPU_TUNE_SAMPLES],
                          const float got[TND_GPU_TUNE_SAMPLES])
{
    double squares = 0;
    double errors = 0;
    for (int i = 0; i < TND_GPU_TUNE_SAMPLES; i++) {
        squares += (double)want[i] * want[i];
        errors += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    }
    return errors / squares;
}

/* Half precision must be clearly faster, and far below the error that quantised products may have
 * (5e-4). Where sums are halves, its error grows with K. */
enum tandem_status tnd_gpu_tune_half(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     struct tandem_error *error)
{
    struct tnd_gpu_gemm gemm = {t->f32, p->x, p->y, p->n, p->m, p->k, 0, p->end};
    float want[TND_GPU_TUNE_SAMPLES];
    float got[TND_GPU_TUNE_SAMPLES];
    double single_us = 0;
    double half_us = 0;
    bool is_best = false;
    TND_TRY(measure_gemm(t, tnd_gpu_gemm_submit, &gemm, &single_us, error));
    TND_TRY(tnd_gpu_tune_read(t, p, want, error));
    TND_TRY(measure_gemm(t, tnd_gpu_gemm_submit_half, &gemm, &half_us, error));
    TND_TRY(tnd_gpu_tune_read(t, p, got, error));
    const double wrong = tnd_gpu_tune_error(want, got);
    bool is_good = half_us >= 0 && half_us < 0.9 * single_us && wrong <= 1e-4;
    tnd_gpu_tune_family(t, "half");
    snprintf(t->step.text, sizeof(t->step.text), "half precision, error %.1e", wrong);
    TND_TRY(tnd_gpu_tune_judge(t, p, half_us, &is_best, error));
    t->device->matmul->tiles.half_most = !is_good ? 0
                                         : t->device->context->blas_sums == TND_GPU_SUMS_HALF
                                             ? (int32_t)p->k
                                             : 1 << 30;
    return TANDEM_OK;
}

/* What keeps the range of floats need not be asked for. */
bool tnd_gpu_tune_has_half(const struct tnd_gpu_tuner *t)
{
    const bool is_wide = t->device->context->blas_sums == TND_GPU_SUMS_F32_OF_F32;
    return (t->options->with_half || is_wide) && tnd_gpu_gemm_has_half(t->device);
}
