/* SPDX-License-Identifier: MIT
 * The tuner's part for CLBlast: rows of parameters, and half precision. */
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

/* CLBlast's own choice comes first: it cannot be had back once a row was tried, so where it serves
 * the device uses another row until the next open. */
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

/* Some results as they are in Y now. */
static enum tandem_status read_results(struct tnd_gpu_tuner *t, struct tnd_gpu_range y, float *out,
                                       size_t n, struct tandem_error *error)
{
    const struct tnd_gpu_device *device = t->device;
    return device->driver->read(device->context, TND_GPU_QUEUE_WORK, NULL, y.buffer,
                                (size_t)y.offset, out, n * sizeof(float), NULL, error);
}

/* Half precision is a candidate where its error is far below what quantised products may have
 * (5e-4); it grows with K. */
enum tandem_status tnd_gpu_tune_half(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *p,
                                     struct tandem_error *error)
{
    enum { N = 1024 };
    struct tnd_gpu_gemm gemm = {t->f32, p->x, p->y, p->n, p->m, p->k, 0, p->end};
    size_t n = p->n * p->m < N ? p->n * p->m : N;
    float want[N];
    float got[N];
    double squares = 0;
    double errors = 0;
    struct tnd_gpu_tune_times times;
    tnd_gpu_tune_family(t, "half", "half_most");
    struct tnd_gpu_tiles tiles = t->prior;
    tiles.half_most = 0;
    TND_TRY(measure_gemm(t, tnd_gpu_gemm_submit, &gemm, &times, error));
    TND_TRY(read_results(t, p->y, want, n, error));
    TND_TRY(tnd_gpu_tune_tell(t, &tiles, p, &times, error));
    TND_TRY(measure_gemm(t, tnd_gpu_gemm_submit_half, &gemm, &times, error));
    TND_TRY(read_results(t, p->y, got, n, error));
    for (size_t i = 0; i < n; i++) {
        squares += (double)want[i] * want[i];
        errors += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    }
    if (errors <= 1e-4 * squares) {
        tiles.half_most = (int32_t)p->k;
        TND_TRY(tnd_gpu_tune_tell(t, &tiles, p, &times, error));
    }
    return tnd_gpu_tune_end(t, error);
}

bool tnd_gpu_tune_has_half(const struct tnd_gpu_tuner *t)
{
    return t->options->with_half && t->device->caps.fp16 && t->device->context->has_blas_half;
}
