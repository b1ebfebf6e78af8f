/* SPDX-License-Identifier: MIT
 * What goes wrong with CUDA: drivers that are too old or hide their devices, and every call that
 * fails. On the stand-in for libcuda. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda_driver.h"
#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_stream.h"
#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/fake_cuda/fake_control.h"
#include "tests/suite_opencl.h"

static struct tnd_fake fake;

bool tnd_test_cl_fake(struct tnd_fake *out)
{
    void *library = dlopen(tnd_test_cl_library(), RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        tnd_skip("optional part not built: stand-ins for CUDA, or no c++");
        return false;
    }
    void *found[] = {dlsym(library, "tnd_fake_begin"), dlsym(library, "tnd_fake_report"),
                     dlsym(library, "tnd_fake_set_memory")};
    if (found[0] == NULL || found[1] == NULL || found[2] == NULL) {
        tnd_skip("a real libcuda fails no calls when asked");
        return false;
    }
    memcpy(&out->begin, &found[0], sizeof(found[0]));
    memcpy(&out->report, &found[1], sizeof(found[1]));
    memcpy(&out->set_memory, &found[2], sizeof(found[2]));
    return true;
}

static bool find_fake(void)
{
    return tnd_test_cl_fake(&fake);
}

static enum tandem_status try_find(const char *library, struct tandem_error *error)
{
    const struct tnd_gpu_libraries libraries = {.driver = library};
    struct tnd_gpu_found *found = NULL;
    int n = 0;
    return tnd_cuda_driver.find(&libraries, &found, &n, error);
}

static void drivers_that_cannot_serve_are_told_in_one_line(void)
{
    struct tandem_error error = {0};
    check_status(try_find("/nowhere/libcuda.so.1", &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "/nowhere/libcuda.so.1", &error);
    if (!find_fake()) {
        return;
    }
    setenv("TANDEM_FAKE_CUDA_VERSION", "10020", 1);
    check_status(try_find(tnd_test_cl_library(), &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "is for CUDA 10.2, 11.2 or newer is needed", &error);
    unsetenv("TANDEM_FAKE_CUDA_VERSION");
    setenv("TANDEM_FAKE_CUDA_DEVICES", "0", 1);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    check_status(try_find(tnd_test_cl_library(), &error), TANDEM_E_UNSUPPORTED_MACHINE, "device",
                 &error);
    unsetenv("TANDEM_FAKE_CUDA_DEVICES");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* The stand-in's NVRTC is 12.9, what else the machine has at least as new as the driver here. */
static void a_compiler_newer_than_the_driver_is_not_used(void)
{
    struct tandem_error error = {0};
    struct tnd_gpu_found *found = NULL;
    char path[1024]; /* another name of the file, which is looked at anew */
    int n = 0;
    if (!find_fake()) {
        return;
    }
    const char *file = strrchr(tnd_test_cl_library(), '/');
    snprintf(path, sizeof(path), "%.*s/.%s", (int)(file - tnd_test_cl_library()),
             tnd_test_cl_library(), file);
    setenv("TANDEM_FAKE_CUDA_VERSION", "11080", 1);
    const struct tnd_gpu_libraries libraries = {.driver = path};
    check_status(tnd_cuda_driver.find(&libraries, &found, &n, &error), TANDEM_OK, NULL, &error);
    unsetenv("TANDEM_FAKE_CUDA_VERSION");
    if (n > 0 && strstr(found[0].platform_version, "prebuilt PTX 6.3") != NULL) {
        CU_ASSERT(found[0].info.is_fit); /* a pack lies beside this program */
        check_contains(found[0].info.reason, "need NVRTC (pip: nvidia-cuda-nvrtc-cu11)");
    } else if (n > 0 && strstr(found[0].platform_version, "NVRTC 11") == NULL) {
        CU_ASSERT_FALSE(found[0].info.is_fit);
        check_contains(found[0].info.reason, "is newer than the driver, which is for CUDA 11.8");
    }
    CU_ASSERT(n > 0);
    tnd_free(found);
}

static tandem_context *context;
static const tandem_tensor *constant;

/* One life of a device: opening, two constants, a kernel with an upload and a download, closing. */
static enum tandem_status live(struct tandem_error *error)
{
    enum { N = 64 };
    const struct tnd_gpu_options options = {.device = "0", .cache = "off"};
    struct tnd_gpu_device *device = NULL;
    float values[N] = {0};
    TND_TRY(tnd_test_cl_device_open(&options, &device, error));
    struct tnd_gpu_block *block = NULL;
    struct tnd_gpu_block *constants[2] = {NULL, NULL};
    struct tnd_gpu_launch launch;
    const size_t global = N;
    const size_t local = 16;
    uint64_t ticket = 0;
    struct tnd_gpu_blas product = {.x_at = 32, .y_at = 64, .n = 2, .m = 2, .k = 4, .end = 2};
    enum tandem_status status = tnd_gpu_map(device, sizeof(values), &block, error);
    const struct tandem_place place = {.handle = block};
    for (int i = 0; i < 2 && status == TANDEM_OK; i++) { /* in one buffer */
        status = tnd_gpu_prepare(device, constant, &constants[i], error);
    }
    if (status == TANDEM_OK) {
        status = tnd_gpu_upload(device, place, values, sizeof(values), error);
    }
    if (status == TANDEM_OK) {
        status = tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_SMOKE, NULL, error);
    }
    if (status == TANDEM_OK) {
        const struct tnd_gpu_range range = {block->buffer, 0};
        status =
            tnd_gpu_bind_smoke(&launch, range, range, local * sizeof(float), 2.0F, 3, N, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_gpu_launch_run(&launch, 1, &global, &local, error);
    }
    if (status == TANDEM_OK && device->context->has_blas) {
        product.w = product.x = product.y = block->buffer;
        status = device->driver->product(device->context, &product, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_gpu_download(device, place, values, sizeof(values), &ticket, error);
        const enum tandem_status synced =
            ticket != 0 ? tnd_gpu_sync(device, ticket, status == TANDEM_OK ? error : NULL) : status;
        status = status == TANDEM_OK ? synced : status;
    }
    if (status == TANDEM_OK) {
        CU_ASSERT_EQUAL(values[N - 1], 3.0F);
    }
    for (int i = 0; i < 2; i++) {
        tnd_gpu_give_back(device, constants[i]);
    }
    tnd_gpu_give_back(device, block);
    tnd_gpu_device_close(device);
    return status;
}

/* As many things live as before. */
static void check_lives(const struct tnd_fake_report *before, int64_t n)
{
    struct tnd_fake_report report;
    fake.report(&report);
    for (int kind = 0; kind < TND_FAKE_KIND_COUNT; kind++) {
        if (!check_int(report.n_live[kind], before->n_live[kind])) {
            fprintf(stderr, "  kind %d, call %lld\n", kind, (long long)n);
        }
    }
    check_int(report.n_wrong, 0);
}

/* Call N fails, for every N there is; each failure is told, and nothing stays alive. A call that
 * should have given something back is not told, and leaves it there. */
static void fail_each(int32_t code, bool is_lost, enum tandem_status expected)
{
    struct tnd_fake_report before;
    struct tnd_fake_report report;
    struct tandem_error error;
    bool was_seen = false;
    bool is_over = false;
    for (int64_t n = 1; n < 400 && !is_over; n++) {
        const struct tnd_fake_plan plan = {.first = n, .code = code, .is_lost = is_lost};
        fake.report(&before);
        fake.begin(&plan);
        memset(&error, 0, sizeof(error));
        const enum tandem_status status = live(&error);
        fake.report(&report);
        is_over = report.n_failed == 0;
        if (status != TANDEM_OK) {
            CU_ASSERT(error.text[0] != '\0');
            was_seen = was_seen || status == expected;
        }
        fake.begin(NULL);
        if (status != TANDEM_OK) {
            check_lives(&before, n);
        }
    }
    CU_ASSERT_TRUE(was_seen);
    CU_ASSERT_TRUE(is_over);
    check_status(live(&error), TANDEM_OK, NULL, &error); /* the driver serves again */
}

static void every_call_may_fail(void)
{
    struct tandem_error error = {0};
    struct tnd_fake_report before;
    check_ok(tandem_context_new(NULL, &context, NULL));
    constant = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (int64_t[]){64});
    if (!find_fake() || !check_status(live(&error), TANDEM_OK, NULL, &error)) {
        tandem_context_free(context);
        return;
    }
    fake.report(&before);
    check_ok(live(&error));
    check_lives(&before, 0);
    fail_each(2, false, TANDEM_E_DEVICE_MEMORY);
    fail_each(1, false, TANDEM_E_DEVICE);
    fail_each(719, true, TANDEM_E_DEVICE_LOST);
    tandem_context_free(context);
}

/* By the driver's own count. */
static void constants_take_one_buffer_of_the_driver(void)
{
    enum { N = 7 }; /* 16 KiB and a gap each */
    const struct tnd_gpu_options options = {.device = "0", .cache = "off"};
    struct tnd_gpu_device *device = NULL;
    struct tnd_gpu_block *blocks[N];
    struct tnd_fake_report before, report;
    if (!find_fake() || !check_ok(tnd_test_cl_device_open(&options, &device, NULL))) {
        return;
    }
    check_ok(tandem_context_new(NULL, &context, NULL));
    constant = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, (int64_t[]){4096});
    fake.report(&before);
    for (int i = 0; i < N; i++) {
        check_ok(tnd_gpu_prepare(device, constant, &blocks[i], NULL));
    }
    fake.report(&report);
    check_int(report.n_live[TND_FAKE_MEMORY], before.n_live[TND_FAKE_MEMORY] + 1);
    for (int i = 0; i < N; i++) {
        tnd_gpu_give_back(device, blocks[i]);
    }
    fake.report(&report);
    check_int(report.n_live[TND_FAKE_MEMORY], before.n_live[TND_FAKE_MEMORY]);
    tnd_gpu_device_close(device);
    tandem_context_free(context);
}

/* ---- queues beside each other ---- */

enum { FLOATS = 2048, BYTES = FLOATS * sizeof(float) };

/* Work on the second half of `result`, which `weight` goes into. */
static enum tandem_status work_on(struct tnd_gpu_device *device, struct tnd_gpu_block *result,
                                  struct tnd_gpu_block *weight, struct tandem_error *error)
{
    tandem_tensor node = {.type = TANDEM_TYPE_F32,
                          .ne = {FLOATS / 2, 1, 1, 1},
                          .nb = {4, BYTES / 2, BYTES / 2, BYTES / 2}};
    const struct tandem_places places = {.result = {result, BYTES / 2}, .src = {{weight, 0}}};
    const struct tandem_work work = {.node = &node, .places = &places};
    const struct tnd_gpu_range from = {weight->buffer, 0};
    const struct tnd_gpu_range to = {result->buffer, BYTES / 2};
    const size_t global = FLOATS / 2;
    const size_t local = 16;
    struct tnd_gpu_launch launch;
    TND_TRY(tnd_gpu_stream_begin_work(device, &work, error));
    TND_TRY(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_SMOKE, NULL, error));
    TND_TRY(
        tnd_gpu_bind_smoke(&launch, from, to, local * sizeof(float), 2.0F, 3, FLOATS / 2, error));
    TND_TRY(tnd_gpu_launch_run(&launch, 1, &global, &local, error));
    return tnd_gpu_stream_end_work(device, &work, error);
}

/* Works, weights in flight, uploads and downloads of the same bytes in all orders. */
static enum tandem_status cross(struct tnd_gpu_device *device, struct tnd_gpu_block *result,
                                struct tnd_gpu_block *weight, float *back,
                                struct tandem_error *error)
{
    const struct tandem_place all = {result, 0};
    const struct tandem_place slot = {weight, 0};
    float values[FLOATS] = {1.0F};
    uint64_t ticket = 0;
    TND_TRY(tnd_gpu_upload(device, slot, values, BYTES, error));
    TND_TRY(tnd_gpu_upload(device, all, values, BYTES, error));
    TND_TRY(work_on(device, result, weight, error));
    for (int i = 0; i < 2; i++) {
        TND_TRY(tnd_gpu_stream(device, slot, values, BYTES, error));
        TND_TRY(work_on(device, result, weight, error));
        TND_TRY(tnd_gpu_download(device, all, back, BYTES, &ticket, error));
        values[0] += 1.0F;
    }
    TND_TRY(work_on(device, result, weight, error));
    TND_TRY(tnd_gpu_download(device, all, back, BYTES, &ticket, error));
    TND_TRY(tnd_gpu_upload(device, all, values, BYTES, error));
    TND_TRY(tnd_gpu_stream(device, slot, values, BYTES, error));
    TND_TRY(tnd_gpu_download(device, slot, back + FLOATS, BYTES, &ticket, error));
    TND_TRY(tnd_gpu_stream(device, slot, values, BYTES, error));
    TND_TRY(work_on(device, result, weight, error));
    TND_TRY(tnd_gpu_download(device, all, back, BYTES, &ticket, error));
    return tnd_gpu_sync(device, ticket, error);
}

static struct tnd_gpu_device *open_checked(struct tnd_gpu_block *blocks[2])
{
    struct tnd_gpu_device *device = NULL;
    setenv("TANDEM_FAKE_CUDA_CHECK", "1", 1);
    device = find_fake() ? tnd_test_cl_open((struct tnd_gpu_options){.device = "0"}) : NULL;
    for (int i = 0; i < 2 && device != NULL; i++) {
        check_ok(tnd_gpu_map(device, BYTES, &blocks[i], NULL));
    }
    return device;
}

static void close_checked(struct tnd_gpu_device *device, struct tnd_gpu_block *blocks[2])
{
    for (int i = 0; i < 2; i++) {
        tnd_gpu_give_back(device, blocks[i]);
    }
    tnd_gpu_device_close(device);
    unsetenv("TANDEM_FAKE_CUDA_CHECK");
    fake.begin(NULL);
}

/* Crosses once without wait `n`, on a device of its own, which may be lost by that. False: there
 * are fewer waits. */
static bool leave_out(int n)
{
    const struct tnd_fake_plan plan = {
        .first = n, .code = TND_FAKE_FORGET, .name = "cuStreamWaitEvent"};
    struct tnd_gpu_block *blocks[2] = {NULL};
    struct tnd_fake_report report;
    float back[2 * FLOATS];
    struct tnd_gpu_device *device = open_checked(blocks);
    if (device == NULL) {
        return false;
    }
    fake.begin(&plan);
    (void)cross(device, blocks[0], blocks[1], back, NULL);
    for (int i = 0; i < TND_GPU_QUEUE_COUNT; i++) { /* what nobody waited for is seen too */
        (void)device->driver->finish(device->context, (enum tnd_gpu_queue)i, NULL);
    }
    fake.report(&report);
    close_checked(device, blocks);
    if ((report.n_wrong > 0) != (report.n_failed > 0)) {
        fprintf(stderr, "  wait %d: %s\n", n, report.wrong);
        CU_FAIL("a wait is not needed, or its lack not seen");
    }
    return report.n_failed > 0;
}

/* Each wait between queues is left out in turn, and each time the stand-in sees that it is missing:
 * none is there for nothing, and nothing is without one. */
static void each_wait_between_queues_is_needed(void)
{
    struct tnd_gpu_block *blocks[2] = {NULL};
    struct tnd_gpu_device *device = open_checked(blocks);
    struct tnd_fake_report report;
    float back[2 * FLOATS];
    if (device == NULL) {
        return;
    }
    fake.begin(NULL);
    check_ok(cross(device, blocks[0], blocks[1], back, NULL));
    fake.report(&report);
    if (!check_int(report.n_wrong, 0)) {
        fprintf(stderr, "  %s\n", report.wrong);
    }
    CU_ASSERT_EQUAL(back[0], 3.0F);
    CU_ASSERT_EQUAL(back[FLOATS], 3.0F);
    CU_ASSERT_EQUAL(back[FLOATS / 2], 9.0F); /* 3 * 2 + 3 */
    close_checked(device, blocks);
    int n_waits = 0;
    while (n_waits < 50 && leave_out(n_waits + 1)) {
        n_waits++;
    }
    CU_ASSERT(n_waits >= 10);
}

/* What does not touch the bytes of a download does not wait for it. */
static void works_run_beside_downloads_of_other_bytes(void)
{
    struct tnd_gpu_block *blocks[2] = {NULL};
    struct tnd_gpu_device *device = open_checked(blocks);
    const struct tnd_fake_plan plan = {
        .first = 1, .code = TND_FAKE_FORGET, .name = "cuStreamWaitEvent"};
    struct tnd_fake_report report;
    float values[FLOATS] = {0};
    uint64_t ticket = 0;
    if (device == NULL) {
        return;
    }
    check_ok(tnd_gpu_upload(device, (struct tandem_place){blocks[1], 0}, values, BYTES, NULL));
    check_ok(tnd_gpu_upload(device, (struct tandem_place){blocks[0], 0}, values, BYTES, NULL));
    check_ok(tnd_gpu_download(device, (struct tandem_place){blocks[0], 0}, values, BYTES / 2,
                              &ticket, NULL));
    fake.begin(&plan);
    check_ok(work_on(device, blocks[0], blocks[1], NULL));
    fake.report(&report);
    check_int(report.n_failed, 0); /* no wait was put into the queue */
    check_ok(tnd_gpu_sync(device, ticket, NULL));
    fake.report(&report);
    check_int(report.n_wrong, 0);
    close_checked(device, blocks);
}

CU_TestInfo tnd_tests_opencl_cuda[] = {
    {"drivers that cannot serve are told in one line",
     drivers_that_cannot_serve_are_told_in_one_line},
    {"a compiler newer than the driver is not used", a_compiler_newer_than_the_driver_is_not_used},
    {"every call may fail", every_call_may_fail},
    {"constants take one buffer of the driver", constants_take_one_buffer_of_the_driver},
    {"each wait between queues is needed", each_wait_between_queues_is_needed},
    {"works run beside downloads of other bytes", works_run_beside_downloads_of_other_bytes},
    CU_TEST_INFO_NULL,
};
