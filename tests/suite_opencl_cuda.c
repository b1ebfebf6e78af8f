/* SPDX-License-Identifier: MIT
 * What goes wrong with CUDA: drivers that are too old or hide their devices, and every call that
 * fails. On the stand-in for libcuda. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda_driver.h"
#include "backends/gpu/gpu_launch.h"
#include "tests/fake_cuda/fake_control.h"
#include "tests/suite_opencl.h"

static struct tnd_fake fake;

static bool find_fake(void)
{
    void *library = dlopen(tnd_test_cl_library(), RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        tnd_skip("optional part not built: stand-ins for CUDA, or no c++");
        return false;
    }
    void *found[] = {dlsym(library, "tnd_fake_begin"), dlsym(library, "tnd_fake_report")};
    CU_ASSERT_FATAL(found[0] != NULL && found[1] != NULL);
    memcpy(&fake.begin, &found[0], sizeof(found[0]));
    memcpy(&fake.report, &found[1], sizeof(found[1]));
    return true;
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
        if (!is_lost && status != TANDEM_OK) {
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

CU_TestInfo tnd_tests_opencl_cuda[] = {
    {"drivers that cannot serve are told in one line",
     drivers_that_cannot_serve_are_told_in_one_line},
    {"every call may fail", every_call_may_fail},
    {"constants take one buffer of the driver", constants_take_one_buffer_of_the_driver},
    CU_TEST_INFO_NULL,
};
