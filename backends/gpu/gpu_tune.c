/* SPDX-License-Identifier: MIT
 * The tuner: a short list of candidates for each family of kernels, each measured a few times on
 * the device, the present numbers first. The border between the kernels is measured with the chosen
 * tiles. */
#include "backends/gpu/gpu_tune.h"

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
/* Tall tiles: a value of X takes three numbers in local memory, a value of W mostly one. */
static const struct tile mma_candidates[] = {
    {64, 128, 32, 8, 8, 1}, {64, 128, 32, 4, 8, 1}, {128, 128, 16, 8, 8, 1},
    {128, 64, 32, 4, 8, 1}, {64, 64, 32, 4, 4, 1},  {32, 128, 32, 4, 8, 1},
};
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* On a CPU the lanes are its vectors, so a work-item has a row for itself; on GPUs never. */
static bool lanes_suit(const struct tnd_gpu_device *device, int32_t lanes)
{
    return device->caps.is_cpu == (lanes == 1);
}

/* ---- one measurement ---- */

enum { MOST_M = 128, FEW_ROWS = 8192, ANY_M = 1 << 30 };
/* Largest error of products with tensor cores against those in F32: the same as tests allow F32
 * products. */
#define MMA_ERROR_MOST 1e-11

void tnd_gpu_tune_family(struct tnd_gpu_tuner *t, const char *family, const char *names)
{
    t->family = family;
    t->names = names;
    t->prior = t->device->matmul->tiles;
    t->best_us = -1;
    t->in_family = 0;
}

bool tnd_gpu_tune_is_enough(const struct tnd_gpu_tuner *t)
{
    const int most = t->options->tuner.most_candidates;
    return most > 0 && t->in_family >= most;
}

bool tnd_gpu_tune_is_refusal(enum tandem_status status)
{
    return status == TANDEM_E_DEVICE || status == TANDEM_E_DEVICE_MEMORY;
}

/* Several runs with the device's present numbers. */
static enum tandem_status measure(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *product,
                                  struct tnd_gpu_tune_times *out, struct tandem_error *error)
{
    const struct tnd_clock *clock = tnd_clock_real();
    struct tnd_gpu_launch launch;
    struct tnd_gpu_shape shape;
    uint64_t begin = 0;
    out->n = 0;
    out->error = -1;
    enum tandem_status status = tnd_gpu_product_bind(t->device, product, &launch, &shape, error);
    if (status != TANDEM_OK) {
        return tnd_gpu_tune_is_refusal(status) ? TANDEM_OK : status;
    }
    for (int i = 0; i < TND_GPU_TUNE_REPEATS_MOST && status == TANDEM_OK; i++) {
        int64_t ns = 0;
        status = tnd_gpu_launch_time(&launch, shape.n_dims, shape.global, shape.local, &ns, error);
        /* The first run compiles or loads, the second warms up caches. */
        begin = i == 1 ? clock->now_ns(clock) : begin;
        if (i > 0 && status == TANDEM_OK) {
            out->us[out->n++] = (float)ns / 1000.0F;
        }
        if (i > 1 && clock->now_ns(clock) - begin > TND_GPU_TUNE_BUDGET_NS) {
            break;
        }
    }
    tnd_gpu_launch_drop(&launch);
    if (status != TANDEM_OK) {
        out->n = 0;
        return tnd_gpu_tune_is_refusal(status) ? TANDEM_OK : status;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_tune_tell(struct tnd_gpu_tuner *t, const struct tnd_gpu_tiles *tiles,
                                     const struct tnd_gpu_product *product,
                                     const struct tnd_gpu_tune_times *times,
                                     struct tandem_error *error)
{
    const struct tnd_tuner_options *options = &t->options->tuner;
    char numbers[TND_NUMBERS_MAX] = "";
    double us = times->n > 0 ? times->us[0] : -1;
    for (int i = 1; i < times->n; i++) {
        us = times->us[i] < us ? times->us[i] : us;
    }
    t->index++;
    t->in_family++;
    if (!tnd_gpu_tiles_print(tiles, t->names, numbers)) {
        return TANDEM_OK; /* nobody could name the candidate */
    }
    if (us >= 0 && (t->best_us < 0 || us < t->best_us)) {
        t->best_us = us;
        memcpy(t->best, numbers, sizeof(numbers));
    }
    const struct tnd_tuner_time time = {.family = t->family,
                                        .numbers = numbers,
                                        .type = product->type,
                                        .n = product->end - product->begin,
                                        .k = product->k,
                                        .m = product->m,
                                        .threads = 1,
                                        .us = times->us,
                                        .n_us = times->n,
                                        .error = times->error,
                                        .index = t->index,
                                        .count = t->count};
    if (options->timed != NULL && !options->timed(options->user, &time)) {
        return tnd_error_set(error, TANDEM_E_CANCELLED, t->device->name, t->index, t->count,
                             "tuning of %s was stopped", t->device->name);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_gpu_tune_end(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    const struct tnd_tuner_options *options = &t->options->tuner;
    struct tnd_gpu_tiles chosen = t->prior;
    char prior[TND_NUMBERS_MAX];
    if (t->best_us >= 0 && tnd_gpu_tiles_print(&t->prior, t->names, prior)) {
        if (options->choose != NULL) {
            options->choose(options->user, t->family, prior, t->best);
        }
        TND_TRY(tnd_gpu_tiles_read(t->best, t->device->name, &chosen, error));
    }
    t->device->matmul->tiles = chosen;
    return TANDEM_OK;
}

/* Measures the device's present numbers, if it can run them. */
static enum tandem_status try_tiles(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *product,
                                    struct tandem_error *error)
{
    const struct tnd_gpu_tiles *now = &t->device->matmul->tiles;
    struct tnd_gpu_tune_times times;
    if (!tnd_gpu_tiles_fit(&t->device->caps, now)) {
        return TANDEM_OK;
    }
    TND_TRY(measure(t, product, &times, error));
    if (t->want != NULL && times.n > 0) {
        float got[TND_GPU_TUNE_SAMPLES];
        TND_TRY(tnd_gpu_tune_read(t, product, got, error));
        times.error = tnd_gpu_tune_error(t->want, got);
        times.n = times.error <= MMA_ERROR_MOST ? times.n : 0; /* nor is not-a-number right */
    }
    return tnd_gpu_tune_tell(t, now, product, &times, error);
}

/* As try_tiles for a candidate, unless it equals the previous numbers, which are measured first. */
static enum tandem_status try_other(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *product,
                                    struct tandem_error *error)
{
    const bool is_known = t->device->context->has_fixed_programs ||
                          memcmp(&t->device->matmul->tiles, &t->prior, sizeof(t->prior)) == 0;
    return is_known ? TANDEM_OK : try_tiles(t, product, error);
}

/* ---- families ---- */

static enum tandem_status tune_matvec(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    struct tnd_gpu_tiles *now = &t->device->matmul->tiles;
    struct tnd_gpu_product product = t->product;
    product.m = 1;
    tnd_gpu_tune_family(t, "matvec", "matvec_lanes,matvec_rows");
    TND_TRY(try_tiles(t, &product, error));
    for (int i = 0; i < COUNT(matvec_candidates) && !tnd_gpu_tune_is_enough(t); i++) {
        const struct lanes *c = &matvec_candidates[i];
        *now = t->prior;
        now->matvec_lanes = c->lanes;
        now->matvec_rows = c->rows;
        if (lanes_suit(t->device, c->lanes)) {
            TND_TRY(try_other(t, &product, error));
        }
    }
    return tnd_gpu_tune_end(t, error);
}

static enum tandem_status tune_skinny(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    struct tnd_gpu_tiles *now = &t->device->matmul->tiles;
    struct tnd_gpu_product product = t->product;
    product.m = 8;
    tnd_gpu_tune_family(t, "skinny", "skinny_lanes,skinny_rows,skinny_columns");
    t->device->matmul->family = TND_GPU_FAMILY_SKINNY;
    TND_TRY(try_tiles(t, &product, error));
    for (int i = 0; i < COUNT(skinny_candidates) && !tnd_gpu_tune_is_enough(t); i++) {
        const struct lanes *c = &skinny_candidates[i];
        *now = t->prior;
        now->skinny_lanes = c->lanes;
        now->skinny_rows = c->rows;
        now->skinny_columns = c->columns;
        if (lanes_suit(t->device, c->lanes)) {
            TND_TRY(try_other(t, &product, error));
        }
    }
    return tnd_gpu_tune_end(t, error);
}

/* Measures candidates with or without tensor cores; previous numbers of that kind come first. */
static enum tandem_status tune_tiles(struct tnd_gpu_tuner *t, const struct tnd_gpu_product *product,
                                     const struct tile *candidates, int n,
                                     struct tandem_error *error)
{
    struct tnd_gpu_tiles *now = &t->device->matmul->tiles;
    t->in_family = 0;
    if (t->prior.mma == candidates[0].mma) {
        *now = t->prior;
        TND_TRY(try_tiles(t, product, error));
    }
    for (int i = 0; i < n && !tnd_gpu_tune_is_enough(t); i++) {
        const struct tile *c = &candidates[i];
        *now = t->prior;
        now->tile_m = c->m;
        now->tile_n = c->n;
        now->tile_k = c->k;
        now->item_m = c->item_m;
        now->item_n = c->item_n;
        now->mma = c->mma;
        TND_TRY(try_other(t, product, error));
    }
    return TANDEM_OK;
}

/* Products with tensor cores must agree with those of the best tile without them. */
static enum tandem_status tune_tiled(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    struct tnd_gpu_tiles *now = &t->device->matmul->tiles;
    struct tnd_gpu_product product = t->product;
    struct tnd_gpu_tune_times times = {.n = 0};
    float want[TND_GPU_TUNE_SAMPLES];
    product.end = product.end < FEW_ROWS ? product.end : FEW_ROWS;
    tnd_gpu_tune_family(t, "tiled", "tile_m,tile_n,tile_k,item_m,item_n,mma");
    t->device->matmul->family = TND_GPU_FAMILY_TILED;
    TND_TRY(tune_tiles(t, &product, tile_candidates, COUNT(tile_candidates), error));
    if (t->device->caps.mma && t->best_us >= 0) {
        *now = t->prior;
        TND_TRY(tnd_gpu_tiles_read(t->best, t->device->name, now, error));
        TND_TRY(measure(t, &product, &times, error));
    }
    if (times.n > 0) {
        TND_TRY(tnd_gpu_tune_read(t, &product, want, error));
        t->want = want;
        enum tandem_status status =
            tune_tiles(t, &product, mma_candidates, COUNT(mma_candidates), error);
        t->want = NULL;
        TND_TRY(status);
    }
    return tnd_gpu_tune_end(t, error);
}

/* Finds the largest M for which the skinny kernel is faster. Both kernels are measured at each M; a
 * border's time at an M is that of the kernel that it selects. */
static enum tandem_status tune_border(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    static const int32_t borders[] = {1, 4, 8, 16, 32, 64, ANY_M};
    struct tnd_gpu_matmul *matmul = t->device->matmul;
    matmul->family = TND_GPU_FAMILY_AUTO;
    tnd_gpu_tune_family(t, "border", "skinny_most");
    for (uint32_t m = 4; m <= t->product.m; m *= 2) {
        struct tnd_gpu_product product = t->product;
        struct tnd_gpu_tune_times skinny;
        struct tnd_gpu_tune_times tiled;
        struct tnd_gpu_tiles tiles = t->prior;
        product.m = m;
        product.end = product.end < FEW_ROWS ? product.end : FEW_ROWS;
        matmul->tiles.skinny_most = ANY_M;
        TND_TRY(measure(t, &product, &skinny, error));
        matmul->tiles.skinny_most = 1;
        TND_TRY(measure(t, &product, &tiled, error));
        for (int i = 0; i < COUNT(borders); i++) {
            tiles.skinny_most = borders[i];
            const bool is_skinny = m <= (uint32_t)borders[i];
            TND_TRY(tnd_gpu_tune_tell(t, &tiles, &product, is_skinny ? &skinny : &tiled, error));
        }
    }
    return tnd_gpu_tune_end(t, error);
}

/* ---- operands ---- */

/* Fills a buffer with copies of a chunk; values do not affect the kernels' times. */
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

/* Weights larger than GPU caches; small ones on CPUs, whose kernels take longer. */
static enum tandem_status make_operands(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    const struct tnd_gpu_tune_options *options = t->options;
    const enum tandem_type type = options->tuner.type;
    const struct tnd_gpu_caps *caps = &t->device->caps;
    bool is_large = !caps->is_cpu && caps->global_bytes >= (uint64_t)4 << 30;
    struct tnd_gpu_product *p = &t->product;
    p->type = type != TANDEM_TYPE_F32 ? type : TANDEM_TYPE_Q4_0;
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
    /* previous numbers, and M 4 to 128 of the borders */
    int count = COUNT(tile_candidates) + 3 + 6 * 7;
    for (int i = 0; i < COUNT(matvec_candidates); i++) {
        count += lanes_suit(device, matvec_candidates[i].lanes);
    }
    for (int i = 0; i < COUNT(skinny_candidates); i++) {
        count += lanes_suit(device, skinny_candidates[i].lanes);
    }
    count += device->caps.mma ? COUNT(mma_candidates) : 0;
    count += device->driver->use_graphs != NULL ? 2 : 1;
    count += device->context->has_blas_parameters ? 1 + tnd_gpu_gemm_rows() : 0;
    return count + (device->context->has_blas_half ? 2 : 0);
}

static enum tandem_status tune_all(struct tnd_gpu_tuner *t, struct tandem_error *error)
{
    TND_TRY(tnd_gpu_tune_launches(t, error));
    if (t->options->only_launches) {
        return TANDEM_OK;
    }
    TND_TRY(make_operands(t, error));
    TND_TRY(tune_matvec(t, error));
    TND_TRY(tune_skinny(t, error));
    TND_TRY(tune_tiled(t, error));
    TND_TRY(tune_border(t, error));
    struct tnd_gpu_product gemm = t->product;
    gemm.n = tnd_gpu_tune_gemm_n(&gemm);
    gemm.end = gemm.n;
    TND_TRY(tnd_gpu_tune_gemm(t, &gemm, error));
    return tnd_gpu_tune_has_half(t) ? tnd_gpu_tune_half(t, &gemm, error) : TANDEM_OK;
}

enum tandem_status tnd_gpu_tune(struct tnd_gpu_device *device,
                                const struct tnd_gpu_tune_options *options,
                                struct tandem_error *error)
{
    struct tnd_gpu_tuner t = {.device = device, .options = options};
    struct tnd_gpu_tiles before = device->matmul->tiles;
    enum tnd_gpu_family family = device->matmul->family;
    t.count = count_steps(device);
    pthread_mutex_lock(&device->submit_lock);
    device->matmul->family = TND_GPU_FAMILY_AUTO;
    enum tandem_status status = tune_all(&t, error);
    device->matmul->family = family;
    if (status != TANDEM_OK) {
        device->matmul->tiles = before;
    }
    tnd_gpu_choose_graphs(device);
    pthread_mutex_unlock(&device->submit_lock);
    return status;
}

/* Resets the numbers that select programs to their defaults; the others are kept. */
static void keep_programs(const struct tnd_gpu_device *device, struct tnd_gpu_tiles *io_tiles)
{
    const struct tnd_gpu_tiles given = *io_tiles;
    tnd_gpu_tiles_default(&device->caps, io_tiles);
    io_tiles->skinny_most = given.skinny_most;
    io_tiles->gemm = given.gemm;
    io_tiles->graphs = given.graphs;
}

enum tandem_status tnd_gpu_tiles_use(struct tnd_gpu_device *device, const char *numbers,
                                     struct tandem_error *error)
{
    struct tnd_gpu_tiles *now = &device->matmul->tiles;
    pthread_mutex_lock(&device->submit_lock);
    struct tnd_gpu_tiles tiles = *now;
    enum tandem_status status = tnd_gpu_tiles_read(numbers, device->name, &tiles, error);
    if (status == TANDEM_OK && !tnd_gpu_tiles_fit(&device->caps, &tiles)) {
        status = tnd_error_set(error, TANDEM_E_ARGUMENT, device->name, 0, 0,
                               "%s cannot run kernels with %s", device->name, numbers);
    }
    if (device->context->has_fixed_programs) {
        keep_programs(device, &tiles);
    }
    if (status == TANDEM_OK) {
        if (tiles.gemm > 0 && tiles.gemm != now->gemm && device->context->has_blas_parameters) {
            /* a failure is harmless: the library's own parameters work, too */
            (void)tnd_gpu_gemm_choose(device, tiles.gemm, NULL);
        }
        *now = tiles;
        tnd_gpu_choose_graphs(device);
    }
    pthread_mutex_unlock(&device->submit_lock);
    return status;
}
