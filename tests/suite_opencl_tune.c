/* SPDX-License-Identifier: MIT
 * Tile numbers: their rules, their text, and the tuner on small matrices. */
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_gemm.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_memory.h"
#include "backends/gpu/gpu_tune.h"
#include "tests/suite_opencl.h"

static const struct tnd_gpu_caps gpu = {
    .local_bytes = 49152, .max_group = 1024, .max_items = {1024, 1024, 64}};

/* ---- rules ---- */

static void default_tiles_fit_every_device(void)
{
    const size_t groups[] = {1, 8, 16, 64, 256, 1024};
    const uint64_t locals[] = {0, 2048, 16384, 32768, 65536};
    for (int i = 0; i < 6 * 5 * 2; i++) {
        struct tnd_gpu_caps caps = {.max_group = groups[i % 6], .local_bytes = locals[i / 6 % 5]};
        struct tnd_gpu_tiles tiles;
        caps.is_cpu = i >= 30;
        caps.max_items[0] = caps.max_group;
        caps.max_items[1] = caps.max_group;
        tnd_gpu_tiles_default(&caps, &tiles);
        /* Without local memory there is no tiled kernel, and none is asked for. */
        if (caps.local_bytes > 0) {
            CU_ASSERT_TRUE(tnd_gpu_tiles_fit(&caps, &tiles));
        } else {
            check_int(tiles.skinny_most, 1 << 30);
        }
    }
}

static void tiles_that_no_kernel_can_have_do_not_fit(void)
{
    static const struct {
        size_t offset;
        int32_t value;
    } broken[] = {
        {offsetof(struct tnd_gpu_tiles, matvec_lanes), 48},
        {offsetof(struct tnd_gpu_tiles, matvec_lanes), 0},
        {offsetof(struct tnd_gpu_tiles, matvec_rows), 9},
        {offsetof(struct tnd_gpu_tiles, skinny_lanes), -64},
        {offsetof(struct tnd_gpu_tiles, skinny_columns), 5},
        {offsetof(struct tnd_gpu_tiles, tile_k), 24},
        {offsetof(struct tnd_gpu_tiles, tile_m), 66},
        {offsetof(struct tnd_gpu_tiles, item_n), 3},
        {offsetof(struct tnd_gpu_tiles, item_m), 0},
        {offsetof(struct tnd_gpu_tiles, tile_n), 1 << 20},
        {offsetof(struct tnd_gpu_tiles, gemm), 63},
    };
    struct tnd_gpu_tiles tiles;
    tnd_gpu_tiles_default(&gpu, &tiles);
    CU_ASSERT_TRUE(tnd_gpu_tiles_fit(&gpu, &tiles));
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct tnd_gpu_tiles other = tiles;
        memcpy((char *)&other + broken[i].offset, &broken[i].value, sizeof(int32_t));
        CU_ASSERT_FALSE(tnd_gpu_tiles_fit(&gpu, &other));
    }
    tiles.tile_m = 256;
    tiles.tile_n = 256;
    tiles.tile_k = 64;
    tiles.item_m = 8;
    tiles.item_n = 8;
    CU_ASSERT_FALSE(tnd_gpu_tiles_fit(&gpu, &tiles)); /* 128 KiB of local memory */
}

static void tiles_of_tensor_cores_are_warps(void)
{
    static const struct {
        int32_t m, n, k, item_m, item_n;
        bool fits;
    } tiles[] = {
        {64, 64, 32, 4, 4, true},
        {16, 32, 16, 4, 4, true},
        {128, 128, 16, 8, 8, true},
        {128, 128, 32, 8, 8, false},
        /* 50 KiB of local memory */ {64, 64, 32, 4, 1, false},
        {64, 48, 32, 4, 4, false},
        {24, 64, 32, 4, 4, false},
        {64, 64, 32, 1, 4, false},
        {64, 64, 48, 4, 4, false},
        {64, 64, 64, 4, 4, true},
        {256, 128, 16, 4, 4, false}, /* 2048 work-items */
    };
    struct tnd_gpu_caps caps = gpu;
    struct tnd_gpu_tiles now;
    tnd_gpu_tiles_default(&gpu, &now);
    now.mma = 1;
    CU_ASSERT_FALSE(tnd_gpu_tiles_fit(&caps, &now)); /* there are none */
    caps.mma = true;
    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++) {
        now.tile_m = tiles[i].m;
        now.tile_n = tiles[i].n;
        now.tile_k = tiles[i].k;
        now.item_m = tiles[i].item_m;
        now.item_n = tiles[i].item_n;
        CU_ASSERT_EQUAL(tnd_gpu_tiles_fit(&caps, &now), tiles[i].fits);
    }
}

/* ---- text ---- */

static void tiles_are_read_as_they_were_written(void)
{
    struct tnd_gpu_tiles tiles;
    struct tnd_gpu_tiles again;
    char text[TND_NUMBERS_MAX];
    tnd_gpu_tiles_default(&gpu, &tiles);
    again = tiles;
    tiles.gemm = 3;
    tiles.skinny_most = 48;
    CU_ASSERT_TRUE(tnd_gpu_tiles_print(&tiles, "skinny_most,gemm", text));
    check_string(text, "skinny_most=48,gemm=3");
    check_ok(tnd_gpu_tiles_read(text, "some device", &again, NULL));
    check_bits(&again, &tiles, sizeof(tiles), "tiles");
    struct tandem_error error = {.text = ""};
    check_status(tnd_gpu_tiles_read("tile_m=7", "some device", &again, &error), TANDEM_E_ARGUMENT,
                 "some device: 'tile_m=7': tile_m is '7', expected 8 to 256", &error);
}

/* ---- the tuner ---- */

static struct tnd_gpu_device *open_device(const char *cache)
{
    const struct tnd_gpu_options options = {.device = "0", .cache = cache};
    struct tnd_gpu_device *device = NULL;
    struct tandem_error error = {0};
    enum tandem_status status = tnd_test_cl_device_open(&options, &device, &error);
    if (status == TANDEM_E_UNSUPPORTED_MACHINE) {
        tnd_skip("opencl: %s", error.text);
        return NULL;
    }
    return check_status(status, TANDEM_OK, NULL, &error) ? device : NULL;
}

struct listener {
    int n, stop_after, refused, families, tensor;
};

static bool listen_to(void *user, const struct tnd_tuner_time *time)
{
    struct listener *listener = user;
    CU_ASSERT(time->numbers[0] != '\0' && time->index <= time->count);
    listener->n++;
    listener->refused += time->n_us == 0;
    listener->tensor += strstr(time->numbers, "mma=1") != NULL && time->error >= 0;
    return listener->n != listener->stop_after;
}

/* The fastest serves, but for the border. */
static void choose_any(void *user, const char *family, const char *prior, char out[TND_NUMBERS_MAX])
{
    struct listener *listener = user;
    CU_ASSERT(family[0] != '\0' && prior[0] != '\0');
    listener->families++;
    if (strcmp(family, "border") == 0) {
        strcpy(out, "skinny_most=8");
    }
}

static struct tnd_gpu_tune_options brief_options(struct listener *listener)
{
    return (struct tnd_gpu_tune_options){
        .tuner = {.timed = listen_to, .choose = choose_any, .user = listener, .most_candidates = 2},
        .is_brief = true};
}

static void chosen_tiles_are_used_and_can_be_used_again(void)
{
    struct tnd_gpu_device *device = open_device("off");
    if (device == NULL) {
        return;
    }
    struct listener listener = {.n = 0};
    const struct tnd_gpu_tune_options options = brief_options(&listener);
    struct tandem_error error = {.text = ""};
    device->context->has_blas = false;
    device->context->has_blas_half = false;
    device->context->has_blas_parameters = false; /* its kernels take seconds each to build */
    check_status(tnd_gpu_tune(device, &options, &error), TANDEM_OK, NULL, &error);
    CU_ASSERT(listener.n > 6 && listener.refused == 0);
    CU_ASSERT_EQUAL(listener.tensor > 0, device->caps.mma); /* compared, and not refused */
    check_int(listener.families, 5);
    CU_ASSERT_TRUE(tnd_gpu_tiles_fit(&device->caps, &device->matmul->tiles));
    check_int(device->matmul->tiles.skinny_most, 8);
    struct tnd_gpu_tiles tiles = device->matmul->tiles;
    check_status(tnd_gpu_tiles_use(device, "skinny_most=16,matvec_rows=3", &error), TANDEM_OK, NULL,
                 &error);
    tiles.skinny_most = 16;
    tiles.matvec_rows = 3;
    check_bits(&device->matmul->tiles, &tiles, sizeof(tiles), "in use");
    check_status(tnd_gpu_tiles_use(device, "tile_k=17", &error), TANDEM_E_ARGUMENT,
                 "cannot run kernels with tile_k=17", &error);
    check_bits(&device->matmul->tiles, &tiles, sizeof(tiles), "as before");
    tnd_gpu_device_close(device);
}

static void a_stopped_tuner_leaves_the_tiles_as_they_were(void)
{
    struct tnd_gpu_device *device = open_device("off");
    if (device == NULL) {
        return;
    }
    struct listener listener = {.stop_after = 2};
    const struct tnd_gpu_tune_options options = brief_options(&listener);
    struct tandem_error error = {.text = ""};
    struct tnd_gpu_tiles before = device->matmul->tiles;
    check_status(tnd_gpu_tune(device, &options, &error), TANDEM_E_CANCELLED, "stopped", &error);
    check_int(listener.n, 2);
    check_bits(&device->matmul->tiles, &before, sizeof(before), "tiles");
    tnd_gpu_device_close(device);
}

struct spoiler {
    struct tnd_gpu_device *device;
    int agreed, wrong;
    char last[TND_NUMBERS_MAX]; /* that was wrong */
};

/* Once results of tensor cores were right, X is another one. */
static bool spoil_tensor_cores(void *user, const struct tnd_tuner_time *time)
{
    struct spoiler *spoiler = user;
    struct tnd_gpu_device *device = spoiler->device;
    static float other[4096];
    struct tnd_gpu_range x = {NULL, 0};
    if (strstr(time->numbers, "mma=1") == NULL) {
        return true;
    }
    if (time->n_us == 0) {
        CU_ASSERT(time->error > 1e-3);
        spoiler->wrong++;
        strcpy(spoiler->last, time->numbers);
        return true;
    }
    spoiler->agreed++;
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        other[i] = (float)i;
    }
    check_ok(tnd_gpu_scratch(device, TND_GPU_SCRATCH_TUNE_X, sizeof(other), &x, NULL));
    check_ok(device->driver->write(device->context, TND_GPU_QUEUE_WORK, NULL, x.buffer,
                                   (size_t)x.offset, other, sizeof(other), NULL, NULL));
    return true;
}

static void tensor_cores_with_other_results_are_no_candidates(void)
{
    struct tnd_gpu_device *device = open_device("off");
    if (device == NULL) {
        return;
    }
    struct spoiler spoiler = {.device = device};
    const struct tnd_gpu_tune_options options = {
        .tuner = {.timed = spoil_tensor_cores, .user = &spoiler, .most_candidates = 2},
        .is_brief = true};
    char chosen[TND_NUMBERS_MAX];
    device->context->has_blas = false;
    device->context->has_blas_half = false;
    device->context->has_blas_parameters = false;
    check_ok(tnd_gpu_tune(device, &options, NULL));
    check_int(spoiler.agreed, device->caps.mma);
    check_int(spoiler.wrong, device->caps.mma);
    CU_ASSERT_TRUE(tnd_gpu_tiles_print(&device->matmul->tiles,
                                       "tile_m,tile_n,tile_k,item_m,item_n,mma", chosen));
    CU_ASSERT_STRING_NOT_EQUAL(chosen, spoiler.last);
    tnd_gpu_device_close(device);
}

CU_TestInfo tnd_tests_opencl_tune[] = {
    {"default tiles fit every device", default_tiles_fit_every_device},
    {"tiles that no kernel can have do not fit", tiles_that_no_kernel_can_have_do_not_fit},
    {"tiles of tensor cores are warps", tiles_of_tensor_cores_are_warps},
    {"tiles are read as they were written", tiles_are_read_as_they_were_written},
    {"chosen tiles are used and can be used again", chosen_tiles_are_used_and_can_be_used_again},
    {"tensor cores with other results are no candidates",
     tensor_cores_with_other_results_are_no_candidates},
    {"a stopped tuner leaves the tiles as they were",
     a_stopped_tuner_leaves_the_tiles_as_they_were},
    CU_TEST_INFO_NULL,
};
