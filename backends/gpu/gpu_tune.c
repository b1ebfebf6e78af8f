/* SPDX-License-Identifier: MIT
 * The tuner: a short list of candidates for each family of kernels, each measured a few times on
 * the device; the fastest wins. What M is tiled follows from the winners. */
#include "backends/gpu/gpu_tune.h"

#include <stdio.h>
#include <string.h>

#include "backends/gpu/gpu_gemm.h"
#include "backends/gpu/gpu_graphs.h"
#include "backends/gpu/gpu_memory.h"
#include "backends/gpu/gpu_tune_parts.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "tandem/tensor.h"

/* ---- candidates ---- */

struct lanes {
    int32_t lanes, rows, columns;
};
static const struct lanes matvec_candidates[] = {
    {1, 1, 1},  {1, 2, 1},  {1, 4, 1},  {16, 1, 1}, {16, 2, 1},  {32, 1, 1},  {32, 2, 1},
    {32, 4, 1}, {64, 1, 1}, {64, 2, 1}, {64, 4, 1}, {128, 1, 1}, {128, 2, 1}, {256, 1, 1},
};
static const struct lanes skinny_candidates[] = {
    {1, 1, 4},  {1, 1, 8},  {1, 2, 4},  {1, 2, 8},  {1, 4, 4},  {16, 1, 8}, {16, 2, 8}, {32, 1, 4},
    {32, 1, 8}, {32, 2, 4}, {32, 2, 8}, {32, 4, 4}, {64, 1, 4}, {64, 1, 8}, {64, 2, 8}, {128, 1, 8},
};
struct tile {
    int32_t m, n, k, item_m, item_n, mma;
};
static const struct tile tile_candidates[] = {
    {64, 64, 32, 4, 4, 0},  {64, 64, 16, 4, 4, 0},   {64, 64, 32, 8, 4, 0},  {128, 64, 16, 8, 4, 0},
    {64, 128, 16, 8, 4, 0}, {128, 128, 16, 8, 8, 0}, {64, 128, 32, 8, 8, 0}, {32, 64, 32, 4, 4, 0},
    {32, 128, 32, 4, 8, 0}, {16, 128, 32, 4, 8, 0},
};
/* Tall ones: a value of X is three numbers in local memory, one of W mostly one. */
static const struct tile mma_candidates[] = {
    {64, 128, 32, 8, 8, 1}, {64, 128, 32, 4, 8, 1}, {128, 128, 16, 8, 8, 1},
    {128, 64, 32, 4, 8, 1}, {64, 64, 32, 4, 4, 1},  {32, 128, 32, 4, 8, 1},
};
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Lanes of a CPU are its vectors: there one work-item has a row for itself. On GPUs never. */
static bool lanes_suit(const struct tnd_gpu_device *device, int32_t lanes)
{
    return device->caps.is_cpu == (lanes == 1);
}

/* ---- one measurement ---- */

enum { MOST_M = 128, FEW_ROWS = 8192 };
/* Of products on tensor cores against those in F32: what tests allow F32 products. */
#define MMA_ERROR_MOST 1e-11

void tnd_gpu_tune_family(struct tnd_gpu_tuner *t, const char *family)
{
    t->step.family = family;
    t->best_us = -1;
    t->in_family = 0;
}

bool tnd_gpu_tune_is_enough(const struct tnd_gpu_tuner *t)
{
    return t->options->most_candidates > 0 && t->in_family >= t->options->most_candidates;
}

bool tnd_gpu_tune_is_refusal(enum tandem_status status)
{
    return status == TANDEM_E_DEVICE || status == TANDEM_E_DEVICE_MEMORY;
}

/* Best of several runs; *out_us is negative when the device refuses the candidate. */
static enum tandem_status measure(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *product,
                                  double *out_us, struct tandem_error *error)
{
    const struct tnd_clock *clock = tnd_clock_real();
    struct tnd_gpu_launch launch;
    struct tnd_gpu_shape shape;
    int64_t best = INT64_MAX;
    uint64_t begin = 0;
    *out_us = -1;
    enum tandem_status status = tnd_gpu_product_bind(t->device, product, &launch, &shape, error);
    if (status != TANDEM_OK) {
        return tnd_gpu_tune_is_refusal(status) ? TANDEM_OK : status;
    }
    for (int i = 0; i < TND_GPU_TUNE_REPEATS_MOST && status == TANDEM_OK; i++) {
        int64_t ns = 0;
        status = tnd_gpu_launch_time(&launch, shape.n_dims, shape.global, shape.local, &ns, error);
        /* The first run compiles or loads, the second finds caches as they will be. */
        begin = i == 1 ? clock->now_ns(clock) : begin;
        best = i > 0 && status == TANDEM_OK && ns < best ? ns : best;
        if (i > 1 && clock->now_ns(clock) - begin > TND_GPU_TUNE_BUDGET_NS) {
            break;
        }
    }
    tnd_gpu_launch_drop(&launch);
    if (status != TANDEM_OK) {
        return tnd_gpu_tune_is_refusal(status) ? TANDEM_OK : status;
    }
    *out_us = (double)best / 1000.0;
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_tune_judge(struct tnd_gpu_tuner *t,
                                      const struct tnd_gpu_product *product, double us,
                                      bool *out_is_best, struct tandem_error *error)
{
    double flop = 2.0 * product->k * product->m * (product->end - product->begin);
    *out_is_best = us >= 0 && (t->best_us < 0 || us < t->best_us);
    t->best_us = *out_is_best ? us : t->best_us;
    t->step.us = us;
    t->step.gflops = us > 0 ? flop / us / 1000.0 : 0;
    t->step.is_best = *out_is_best;
    t->step.index++;
    t->in_family++;
    if (t->options->progress != NULL && !t->options->progress(t->options->user, &t->step)) {
        return tnd_error_set(error, TANDEM_E_CANCELLED, t->device->name, t->step.index,
                             t->step.count, "tuning of %s was stopped", t->device->name);
    }
    return TANDEM_OK;
}

/* Measures the numbers that the device uses now, and keeps the best of a family in `best`. */
static enum tandem_status try_tiles(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *product,
                                    struct tnd_gpu_tiles *best, struct tandem_error *error)
{
    double us = 0;
    bool is_best = false;
    TND_TRY(measure(t, product, &us, error));
    if (t->want != NULL && us >= 0) {
        float got[TND_GPU_TUNE_SAMPLES];
        TND_TRY(tnd_gpu_tune_read(t, product, got, error));
        const double wrong = tnd_gpu_tune_error(t->want, got);
        const size_t n = strlen(t->step.text);
        snprintf(t->step.text + n, sizeof(t->step.text) - n, ", error %.1e", wrong);
        us = wrong <= MMA_ERROR_MOST ? us : -1; /* not-a-number is no candidate either */
    }
    TND_TRY(tnd_gpu_tune_judge(t, product, us, &is_best, error));
    if (is_best) {
        *best = t->device->matmul->tiles;
    }
    return TANDEM_OK;
}

/* ---- families ---- */

static enum tandem_status tune_matvec(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    struct tnd_gpu_tiles *now = &t->device->matmul->tiles;
    struct tnd_gpu_tiles best = *now;
    struct tnd_gpu_product product = t->product;
    product.m = 1;
    tnd_gpu_tune_family(t, "matvec");
    for (int i = 0; i < COUNT(matvec_candidates) && !tnd_gpu_tune_is_enough(t); i++) {
        const struct lanes *c = &matvec_candidates[i];
        *now = best;
        now->matvec_lanes = c->lanes;
        now->matvec_rows = c->rows;
        if (lanes_suit(t->device, c->lanes) && tnd_gpu_tiles_fit(&t->device->caps, now)) {
            snprintf(t->step.text, sizeof(t->step.text), "lanes %d rows %d", c->lanes, c->rows);
            TND_TRY(try_tiles(t, &product, &best, error));
        }
    }
    *now = best;
    return TANDEM_OK;
}

static enum tandem_status tune_skinny(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    struct tnd_gpu_tiles *now = &t->device->matmul->tiles;
    struct tnd_gpu_tiles best = *now;
    struct tnd_gpu_product product = t->product;
    product.m = 8;
    tnd_gpu_tune_family(t, "skinny");
    t->device->matmul->family = TND_GPU_FAMILY_SKINNY;
    for (int i = 0; i < COUNT(skinny_candidates) && !tnd_gpu_tune_is_enough(t); i++) {
        const struct lanes *c = &skinny_candidates[i];
        *now = best;
        now->skinny_lanes = c->lanes;
        now->skinny_rows = c->rows;
        now->skinny_columns = c->columns;
        if (lanes_suit(t->device, c->lanes) && tnd_gpu_tiles_fit(&t->device->caps, now)) {
            snprintf(t->step.text, sizeof(t->step.text), "lanes %d rows %d columns %d", c->lanes,
                     c->rows, c->columns);
            TND_TRY(try_tiles(t, &product, &best, error));
        }
    }
    *now = best;
    return TANDEM_OK;
}

static enum tandem_status tune_tiles(struct tnd_gpu_tuner *t, const struct tile *candidates, int n,
                                     struct tnd_gpu_tiles *best, struct tandem_error *error)
{
    struct tnd_gpu_tiles *now = &t->device->matmul->tiles;
    struct tnd_gpu_product product = t->product;
    product.end = product.end < FEW_ROWS ? product.end : FEW_ROWS;
    t->in_family = 0;
    t->device->matmul->family = TND_GPU_FAMILY_TILED;
    for (int i = 0; i < n && !tnd_gpu_tune_is_enough(t); i++) {
        const struct tile *c = &candidates[i];
        *now = *best;
        now->tile_m = c->m;
        now->tile_n = c->n;
        now->tile_k = c->k;
        now->item_m = c->item_m;
        now->item_n = c->item_n;
        now->mma = c->mma;
        if (tnd_gpu_tiles_fit(&t->device->caps, now)) {
            snprintf(t->step.text, sizeof(t->step.text), "tile %d x %d x %d, %d x %d an item%s",
                     c->m, c->n, c->k, c->item_m, c->item_n, c->mma ? ", tensor cores" : "");
            TND_TRY(try_tiles(t, &product, best, error));
        }
    }
    *now = *best;
    return TANDEM_OK;
}

/* Tensor cores have to compute what the best tile without them does, and faster. */
static enum tandem_status tune_tiled(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    struct tnd_gpu_tiles best = t->device->matmul->tiles;
    struct tnd_gpu_product product = t->product;
    float want[TND_GPU_TUNE_SAMPLES];
    double us = 0;
    tnd_gpu_tune_family(t, "tiled");
    TND_TRY(tune_tiles(t, tile_candidates, COUNT(tile_candidates), &best, error));
    product.end = product.end < FEW_ROWS ? product.end : FEW_ROWS;
    if (t->device->caps.mma) {
        TND_TRY(measure(t, &product, &us, error));
    }
    if (!t->device->caps.mma || us < 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_gpu_tune_read(t, &product, want, error));
    t->step.family = "tensor";
    t->want = want;
    enum tandem_status status = tune_tiles(t, mma_candidates, COUNT(mma_candidates), &best, error);
    t->want = NULL;
    return status;
}

/* The largest M that the skinny kernel is the faster one for. */
static enum tandem_status tune_border(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    struct tnd_gpu_matmul *matmul = t->device->matmul;
    int32_t most = 1;
    for (uint32_t m = 4; m <= t->product.m; m *= 2) {
        struct tnd_gpu_product product = t->product;
        double skinny = 0;
        double tiled = 0;
        bool is_best = false;
        product.m = m;
        product.end = product.end < FEW_ROWS ? product.end : FEW_ROWS;
        matmul->family = TND_GPU_FAMILY_SKINNY;
        TND_TRY(measure(t, &product, &skinny, error));
        matmul->family = TND_GPU_FAMILY_TILED;
        TND_TRY(measure(t, &product, &tiled, error));
        bool is_skinny = skinny >= 0 && (tiled < 0 || skinny <= tiled);
        tnd_gpu_tune_family(t, "border");
        snprintf(t->step.text, sizeof(t->step.text), "M %u: skinny %.0f us, tiled %.0f us",
                 (unsigned)m, skinny, tiled);
        TND_TRY(tnd_gpu_tune_judge(t, &product, is_skinny ? skinny : tiled, &is_best, error));
        if (!is_skinny) {
            break;
        }
        most = m >= MOST_M ? 1 << 30 : (int32_t)m;
    }
    matmul->tiles.skinny_most = most;
    return TANDEM_OK;
}

static enum tandem_status tune_launches(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    const struct tnd_gpu_tiles *now = &t->device->matmul->tiles;
    bool is_best = false;
    TND_TRY(tnd_gpu_tune_launches(t->device, error));
    tnd_gpu_tune_family(t, "launch");
    snprintf(t->step.text, sizeof(t->step.text), "in a row; in a graph %.2f us%s",
             (double)now->graph_ns * 1e-3, now->graph_ns == 0 ? " (none)" : "");
    const struct tnd_gpu_product nothing = {0};
    return tnd_gpu_tune_judge(t, &nothing, (double)now->launch_ns * 1e-3, &is_best, error);
}

/* ---- operands ---- */

/* Fills a buffer with copies of a chunk, which is no matter to the kernels. */
static enum tandem_status fill(struct tnd_gpu_tuner *t, struct tnd_gpu_range range, size_t bytes,
                               const void *chunk, size_t chunk_bytes, struct tandem_error *error)
{
    const struct tnd_gpu_device *device = t->device;
    for (size_t at = 0; at < bytes; at += chunk_bytes) {
        size_t n = bytes - at < chunk_bytes ? bytes - at : chunk_bytes;
        TND_TRY(device->driver->write(device->context, TND_GPU_QUEUE_WORK, NULL, range.buffer,
                                      (size_t)range.offset + at, chunk, n, NULL, error));
    }
    return TANDEM_OK;
}

enum { CHUNK_ROWS = 16 };

static enum tandem_status fill_operands(struct tnd_gpu_tuner *t, float *values, void *blocks,
                                        struct tandem_error *error)
{
    struct tnd_gpu_product *p = &t->product;
    int64_t n = (int64_t)CHUNK_ROWS * p->k;
    size_t row_bytes = tandem_type_row_bytes(p->type, p->k);
    size_t float_bytes = sizeof(float) * p->k;
    bool has_gemm = t->device->context->has_blas;
    struct tnd_rng rng;
    tnd_rng_init(&rng, 1);
    for (int64_t i = 0; i < n; i++) {
        values[i] = tnd_rng_float(&rng) - 0.5F;
    }
    TND_TRY(tandem_quantize(p->type, values, blocks, n));
    TND_TRY(tnd_gpu_scratch(t->device, TND_GPU_SCRATCH_TUNE_W, row_bytes * p->n, &p->w, error));
    TND_TRY(tnd_gpu_scratch(t->device, TND_GPU_SCRATCH_TUNE_X, float_bytes * p->m, &p->x, error));
    TND_TRY(tnd_gpu_scratch(t->device, TND_GPU_SCRATCH_TUNE_Y, sizeof(float) * p->n * p->m, &p->y,
                            error));
    TND_TRY(tnd_gpu_scratch(t->device, TND_GPU_SCRATCH_TUNE_F32,
                            has_gemm ? float_bytes * tnd_gpu_tune_gemm_n(p) : 16, &t->f32, error));
    TND_TRY(fill(t, p->w, row_bytes * p->n, blocks, row_bytes * CHUNK_ROWS, error));
    TND_TRY(fill(t, p->x, float_bytes * p->m, values, float_bytes * CHUNK_ROWS, error));
    return has_gemm ? fill(t, t->f32, float_bytes * tnd_gpu_tune_gemm_n(p), values,
                           float_bytes * CHUNK_ROWS, error)
                    : TANDEM_OK;
}

/* Weights that are larger than the caches of GPUs; little on CPUs, whose kernels take longer. */
static enum tandem_status make_operands(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    const struct tnd_gpu_tune_options *options = t->options;
    const struct tnd_gpu_caps *caps = &t->device->caps;
    bool is_large = !caps->is_cpu && caps->global_bytes >= (uint64_t)4 << 30;
    struct tnd_gpu_product *p = &t->product;
    p->type = options->type != TANDEM_TYPE_F32 ? options->type : TANDEM_TYPE_Q4_0;
    p->k = options->is_brief ? 256 : caps->is_cpu ? 2048 : 4096;
    p->n = options->is_brief ? 64 : is_large ? 65536 : caps->is_cpu ? 1024 : 4096;
    p->m = options->is_brief ? 16 : MOST_M;
    p->end = p->n;
    size_t n = (size_t)CHUNK_ROWS * p->k;
    float *values = tnd_alloc(n * sizeof(float));
    void *blocks = tnd_alloc(CHUNK_ROWS * tandem_type_row_bytes(p->type, p->k));
    enum tandem_status status =
        values != NULL && blocks != NULL
            ? fill_operands(t, values, blocks, error)
            : tnd_error_set(error, TANDEM_E_MEMORY, t->device->name, (int64_t)n, 0,
                            "tuning of %s: no memory", t->device->name);
    tnd_free(values);
    tnd_free(blocks);
    return status;
}

/* ---- the whole ---- */

static int count_steps(const struct tnd_gpu_device *device)
{
    int count = COUNT(tile_candidates) + 7; /* M 4 to 128 of the border, launches */
    for (int i = 0; i < COUNT(matvec_candidates); i++) {
        count += lanes_suit(device, matvec_candidates[i].lanes);
    }
    for (int i = 0; i < COUNT(skinny_candidates); i++) {
        count += lanes_suit(device, skinny_candidates[i].lanes);
    }
    count += device->caps.mma ? COUNT(mma_candidates) : 0;
    count += device->context->has_blas_parameters ? 1 + tnd_gpu_gemm_rows() : 0;
    return count + (device->context->has_blas_half ? 1 : 0);
}

static enum tandem_status tune_all(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    TND_TRY(make_operands(t, error));
    TND_TRY(tune_matvec(t, error));
    TND_TRY(tune_skinny(t, error));
    TND_TRY(tune_tiled(t, error));
    TND_TRY(tune_border(t, error));
    TND_TRY(tune_launches(t, error));
    struct tnd_gpu_product gemm = t->product;
    gemm.n = tnd_gpu_tune_gemm_n(&gemm);
    gemm.end = gemm.n;
    TND_TRY(tnd_gpu_tune_gemm(t, &gemm, error));
    return tnd_gpu_tune_has_half(t) ? tnd_gpu_tune_half(t, &gemm, error) : TANDEM_OK;
}

enum tandem_status tnd_gpu_tune(struct tnd_gpu_device *device,
                                const struct tnd_gpu_tune_options *options,
                                struct tnd_gpu_tiles *out_tiles, struct tandem_error *error)
{
    struct tnd_gpu_tuner t = {.device = device, .options = options};
    struct tnd_gpu_tiles before = device->matmul->tiles;
    enum tnd_gpu_family family = device->matmul->family;
    t.step.count = count_steps(device);
    pthread_mutex_lock(&device->submit_lock);
    device->matmul->family = TND_GPU_FAMILY_AUTO;
    enum tandem_status status = tune_all(&t, error);
    device->matmul->family = family;
    if (status != TANDEM_OK) {
        device->matmul->tiles = before;
    }
    pthread_mutex_unlock(&device->submit_lock);
    TND_TRY(status);
    if (out_tiles != NULL) {
        *out_tiles = device->matmul->tiles;
    }
    return options->without_saving ? TANDEM_OK : tnd_gpu_tiles_save(device, error);
}
