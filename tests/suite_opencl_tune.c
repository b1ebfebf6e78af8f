/* SPDX-License-Identifier: MIT
 * Tile numbers: their rules, their files, hostile ones too, and the tuner on small matrices. */
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_gemm.h"
#include "backends/gpu/gpu_matmul_state.h"
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

/* ---- files ---- */

static void tune_files_are_read_as_they_were_written(void)
{
    struct tnd_gpu_tiles tiles;
    struct tnd_gpu_tiles again;
    struct tnd_text text = TND_TEXT_INIT;
    tnd_gpu_tiles_default(&gpu, &tiles);
    tiles.gemm = 3;
    tiles.skinny_most = 48;
    tnd_gpu_tiles_print(&tiles, "Some device, 3 words", &text);
    check_ok(tnd_gpu_tiles_read(text.bytes, text.n, "x.tune", &again, NULL));
    check_bits(&again, &tiles, sizeof(tiles), "tiles");
    for (size_t n = 0; n + 1 < text.n; n++) { /* cut anywhere: an error, nothing else */
        struct tandem_error error = {.text = ""};
        check_status(tnd_gpu_tiles_read(text.bytes, n, "x.tune", &again, &error), TANDEM_E_FORMAT,
                     "x.tune: line", &error);
    }
    tnd_text_fini(&text);
}

static void broken_tune_files_are_refused_with_a_place(void)
{
    static const struct {
        const char *text, *part;
    } broken[] = {
        {"", "line 1 column 1: expected \"tandem-opencl-tiles 2\""},
        {"tandem-opencl-tiles 1\nend\n", "tandem-opencl-tiles 2"},
        {"tandem-opencl-tiles 2\nend\n", "all numbers"},
        {"tandem-opencl-tiles 2\nmatvec_lanes\n", "line 2 column 13: expected a number in"},
        {"tandem-opencl-tiles 2\nmatvec_lanes 0\n", "a number in"},
        {"tandem-opencl-tiles 2\nmatvec_lanes 99999999999999999999\n", "a number in"},
        {"tandem-opencl-tiles 2\nmatvec_lanes 1 1\n", "the end of the line"},
        {"tandem-opencl-tiles 2\nmatvec_lanes 1\nmatvec_lanes 1\n", "line 3"},
        {"tandem-opencl-tiles 2\ndevice x\nnonsense 1\n", "line 3 column 9: expected the name"},
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct tandem_error error = {.text = ""};
        struct tnd_gpu_tiles tiles;
        check_status(
            tnd_gpu_tiles_read(broken[i].text, strlen(broken[i].text), "f", &tiles, &error),
            TANDEM_E_FORMAT, broken[i].part, &error);
    }
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
    int n, stop_after, refused, best, tensor;
};

static bool listen_to(void *user, const struct tnd_gpu_tune_step *step)
{
    struct listener *listener = user;
    CU_ASSERT(step->text[0] != '\0' && step->index <= step->count);
    listener->n++;
    listener->refused += step->us < 0;
    listener->best += step->is_best;
    listener->tensor += strcmp(step->family, "tensor") == 0 && strstr(step->text, "error") != NULL;
    return listener->n != listener->stop_after;
}

static void tuned_tiles_are_saved_and_used_by_the_next_open(void)
{
    const char *cache = tnd_test_temp("tuned");
    struct tnd_gpu_device *device = open_device(cache);
    if (device == NULL) {
        return;
    }
    struct listener listener = {.n = 0};
    const struct tnd_gpu_tune_options options = {
        .progress = listen_to, .user = &listener, .is_brief = true, .most_candidates = 1};
    struct tandem_error error = {.text = ""};
    struct tnd_gpu_tiles tiles = {0};
    device->context->has_blas = false;
    device->context->has_blas_parameters = false; /* its kernels take seconds each to build */
    check_status(tnd_gpu_tune(device, &options, &tiles, &error), TANDEM_OK, NULL, &error);
    CU_ASSERT(listener.n > 3 && listener.refused == 0 && listener.best >= 3);
    check_int(listener.tensor, device->caps.mma); /* compared, and not refused */
    CU_ASSERT_TRUE(tnd_gpu_tiles_fit(&device->caps, &tiles));
    check_bits(&device->matmul->tiles, &tiles, sizeof(tiles), "in use");
    tnd_gpu_device_close(device);
    device = open_device(cache);
    if (device != NULL) {
        check_bits(&device->matmul->tiles, &tiles, sizeof(tiles), "after the next open");
    }
    tnd_gpu_device_close(device);
}

static void a_stopped_tuner_leaves_the_tiles_as_they_were(void)
{
    struct tnd_gpu_device *device = open_device("off");
    if (device == NULL) {
        return;
    }
    struct listener listener = {.stop_after = 2};
    const struct tnd_gpu_tune_options options = {
        .progress = listen_to, .user = &listener, .is_brief = true, .most_candidates = 1};
    struct tandem_error error = {.text = ""};
    struct tnd_gpu_tiles before = device->matmul->tiles;
    check_status(tnd_gpu_tune(device, &options, NULL, &error), TANDEM_E_CANCELLED, "stopped",
                 &error);
    check_int(listener.n, 2);
    check_bits(&device->matmul->tiles, &before, sizeof(before), "tiles");
    tnd_gpu_device_close(device);
}

CU_TestInfo tnd_tests_opencl_tune[] = {
    {"default tiles fit every device", default_tiles_fit_every_device},
    {"tiles that no kernel can have do not fit", tiles_that_no_kernel_can_have_do_not_fit},
    {"tiles of tensor cores are warps", tiles_of_tensor_cores_are_warps},
    {"tune files are read as they were written", tune_files_are_read_as_they_were_written},
    {"broken tune files are refused with a place", broken_tune_files_are_refused_with_a_place},
    {"tuned tiles are saved and used by the next open",
     tuned_tiles_are_saved_and_used_by_the_next_open},
    {"a stopped tuner leaves the tiles as they were",
     a_stopped_tuner_leaves_the_tiles_as_they_were},
    CU_TEST_INFO_NULL,
};
