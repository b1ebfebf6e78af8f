/* SPDX-License-Identifier: MIT
 * The tuner's part for libraries of products: CLBlast's rows of parameters, and half precision. */
#include "backends/gpu/gpu_gemm.h"
#include "backends/gpu/gpu_tune_parts.h"
#include "base/clock.h"

typedef enum tandem_status submit_gemm(struct tnd_gpu_device *device,
                                       const struct tnd_gpu_gemm *product,
                                       struct tandem_error *error);

static enum tandem_status measure_gemm(struct tnd_gpu_tuner *t, submit_gemm *submit,
                                       const struct tnd_gpu_gemm *gemm,
                                       struct tnd_gpu_tune_times *out, struct tandem_error *error)
{
    const struct tnd_gpu_device *device = t->device;
    const struct tnd_clock *clock = tnd_clock_real();
    uint64_t first = clock->now_ns(clock);
    out->n = 0;
    out->error = -1;
    for (int i = 0; i < TND_GPU_TUNE_REPEATS_MOST; i++) {
        uint64_t begin = clock->now_ns(clock);
        enum tandem_status status = submit(t->device, gemm, error);
        if (status != TANDEM_OK) {
            out->n = 0;
            return tnd_gpu_tune_is_refusal(status) ? TANDEM_OK : status;
        }
        TND_TRY(device->driver->finish(device->context, TND_GPU_QUEUE_WORK, error));
        uint64_t end = clock->now_ns(clock);
        if (i > 0) {
            out->us[out->n++] = (float)(end - begin) / 1000.0F;
        }
        first = i == 1 ? end : first;
        if (i > 1 && end - first > TND_GPU_TUNE_BUDGET_NS) {
            break;
        }
    }
    return TANDEM_OK;
}

/* CLBlast's own choice is measured first, because it cannot be restored after a row was tried: if
 * it wins, the device uses another row until it is opened again. */
enum tandem_status tnd_gpu_tune_gemm(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     struct tandem_error *error)
{
    struct tnd_gpu_gemm gemm = {t->f32, p->x, p->y, p->n, p->m, p->k, 0, p->end};
    struct tnd_gpu_product told = *p;
    struct tnd_gpu_tune_times times;
    if (!t->device->context->has_blas_parameters) {
        return TANDEM_OK;
    }
    told.type = TANDEM_TYPE_F32;
    tnd_gpu_tune_family(t, "gemm", "gemm");
    struct tnd_gpu_tiles tiles = t->prior;
    tiles.gemm = 0;
    TND_TRY(measure_gemm(t, tnd_gpu_gemm_submit, &gemm, &times, error));
    TND_TRY(tnd_gpu_tune_tell(t, &tiles, &told, &times, error));
    for (int32_t i = 1; i <= tnd_gpu_gemm_rows() && !tnd_gpu_tune_is_enough(t); i++) {
        if (!tnd_gpu_gemm_fits(&t->device->caps, i) ||
            tnd_gpu_gemm_choose(t->device, i, NULL) != TANDEM_OK) {
            continue;
        }
        tiles.gemm = i;
        TND_TRY(measure_gemm(t, tnd_gpu_gemm_submit, &gemm, &times, error));
        TND_TRY(tnd_gpu_tune_tell(t, &tiles, &told, &times, error));
    }
    TND_TRY(tnd_gpu_tune_end(t, error));
    const int32_t row = t->device->matmul->tiles.gemm;
    return row > 0 ? tnd_gpu_gemm_choose(t->device, row, error) : TANDEM_OK;
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

/* Half precision is a candidate if its error is far below what quantised products are allowed
 * (5e-4). If sums are halves, its error grows with K. */
#define HALF_ERROR_MOST 1e-4
enum tandem_status tnd_gpu_tune_half(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     struct tandem_error *error)
{
    struct tnd_gpu_gemm gemm = {t->f32, p->x, p->y, p->n, p->m, p->k, 0, p->end};
    float want[TND_GPU_TUNE_SAMPLES];
    float got[TND_GPU_TUNE_SAMPLES];
    struct tnd_gpu_tune_times times;
    const bool is_half = t->device->context->blas_sums == TND_GPU_SUMS_HALF;
    tnd_gpu_tune_family(t, "half", "half_most");
    struct tnd_gpu_tiles tiles = t->prior;
    tiles.half_most = 0;
    TND_TRY(measure_gemm(t, tnd_gpu_gemm_submit, &gemm, &times, error));
    TND_TRY(tnd_gpu_tune_read(t, p, want, error));
    TND_TRY(tnd_gpu_tune_tell(t, &tiles, p, &times, error));
    TND_TRY(measure_gemm(t, tnd_gpu_gemm_submit_half, &gemm, &times, error));
    if (times.n > 0) {
        TND_TRY(tnd_gpu_tune_read(t, p, got, error));
        times.error = tnd_gpu_tune_error(want, got);
        times.n = times.error <= HALF_ERROR_MOST ? times.n : 0;
    }
    tiles.half_most = is_half ? (int32_t)p->k : 1 << 30;
    TND_TRY(tnd_gpu_tune_tell(t, &tiles, p, &times, error));
    return tnd_gpu_tune_end(t, error);
}

/* What keeps the range of floats need not be asked for. */
bool tnd_gpu_tune_has_half(const struct tnd_gpu_tuner *t)
{
    const bool is_wide = t->device->context->blas_sums == TND_GPU_SUMS_F32_OF_F32;
    return (t->options->with_half || is_wide) && tnd_gpu_gemm_has_half(t->device);
}
