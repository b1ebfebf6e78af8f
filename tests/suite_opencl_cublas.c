/* SPDX-License-Identifier: MIT
 * What goes wrong with cuBLAS: it is not there, too old or too new, cannot be made, or a product
 * fails. On the stand-in; the toolkit's library, where it is installed, for its symbols. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/cuda_driver.h"
#include "base/alloc.h"
#include "tests/fake_cuda/fake_control.h"
#include "tests/suite_opencl.h"

enum { N = 3, M = 2, K = 4, X_AT = 48, Y_AT = 80, BYTES = 104 };

static struct tnd_fake fake;
static struct tnd_fake_report before;

static bool begin(void)
{
    if (!tnd_test_cl_fake(&fake)) {
        return false;
    }
    fake.begin(NULL);
    fake.report(&before);
    return true;
}

/* As many things live as at the begin, and no rule was broken. */
static void end(void)
{
    struct tnd_fake_report report;
    fake.report(&report);
    for (int kind = 0; kind < TND_FAKE_KIND_COUNT; kind++) {
        check_int(report.n_live[kind], before.n_live[kind]);
    }
    if (!check_int(report.n_wrong, 0)) {
        fprintf(stderr, "  %s\n", report.wrong);
    }
    fake.begin(NULL);
}

static void check_without(const char *blas, const char *reason)
{
    struct tnd_gpu_device *device =
        tnd_test_cl_open((struct tnd_gpu_options){.libraries.blas = blas});
    if (device != NULL) {
        CU_ASSERT(!device->context->has_blas && !device->context->has_blas_half);
        check_contains(device->context->blas_reason, reason);
        check_contains(device->text, "without cuBLAS");
    }
    tnd_gpu_device_close(device);
}

/* The stand-in's file under a name of its own, which is looked at anew. */
static const char *another_name(const char *file)
{
    static char path[256];
    static int n;
    const char *library = tnd_test_cl_library();
    snprintf(path, sizeof(path), "%.*s/", (int)(strrchr(library, '/') - library), library);
    for (int i = 0; i < n; i++) {
        strcat(path, "./");
    }
    n++;
    strcat(path, file);
    return path;
}

static void without_cublas_a_device_opens_and_says_why(void)
{
    struct tnd_gpu_found *found = NULL;
    int n = 0;
    if (!begin()) {
        return;
    }
    check_without("off", "switched off by a setting");
    check_without("/nowhere/libcublas.so.12", "/nowhere/libcublas.so.12");
    check_without(another_name("libnvrtc.so.12"), "has no function cublas");
    setenv("TANDEM_FAKE_CUBLAS_VERSION", "10.2", 1);
    check_without(another_name("libcublas.so.12"), "cuBLAS 10.2 is too old, 11.0 or newer");
    setenv("TANDEM_FAKE_CUBLAS_VERSION", "14.0", 1);
    const char *newer = another_name("libcublas.so.12");
    check_without(newer, "cuBLAS 14.0 is newer than the driver, which is for CUDA 12.9");
    const struct tnd_gpu_libraries libraries = {.driver = tnd_test_cl_library(), .blas = newer};
    check_ok(tnd_cuda_driver.find(&libraries, &found, &n, NULL));
    CU_ASSERT(n > 0 && found[0].info.is_fit);
    check_contains(found[0].info.reason, "our kernels serve for cuBLAS: cuBLAS 14.0 is newer than");
    tnd_free(found);
    setenv("TANDEM_FAKE_CUBLAS_VERSION", "2147483647.0", 1);
    check_without(another_name("libcublas.so.12"), "tells no version");
    unsetenv("TANDEM_FAKE_CUBLAS_VERSION");
    end();
}

/* Y {N, M} of W and X, all 1, in one block. */
static enum tandem_status multiply(struct tnd_gpu_device *device, struct tnd_gpu_block *block,
                                   size_t y_at, struct tandem_error *error)
{
    const struct tnd_gpu_blas call = {.w = block->buffer,
                                      .x = block->buffer,
                                      .y = block->buffer,
                                      .x_at = X_AT,
                                      .y_at = y_at,
                                      .n = N,
                                      .m = M,
                                      .k = K,
                                      .end = N};
    TND_TRY(device->driver->product(device->context, &call, error));
    return device->driver->finish(device->context, TND_GPU_QUEUE_WORK, error);
}

static struct tnd_gpu_device *open_with_block(struct tnd_gpu_block **out_block)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){.device = "0"});
    float ones[Y_AT / sizeof(float)];
    for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
        ones[i] = 1.0F;
    }
    if (device != NULL) {
        CU_ASSERT_TRUE_FATAL(device->context->has_blas);
        check_ok(tnd_gpu_map(device, BYTES, out_block, NULL));
        check_ok(
            tnd_gpu_upload(device, (struct tandem_place){*out_block, 0}, ones, sizeof(ones), NULL));
        (void)device->driver->finish(device->context, TND_GPU_QUEUE_WORK, NULL);
    }
    return device;
}

static void each_call_of_cublas_may_fail(void)
{
    static const struct {
        const char *call;
        int32_t code;
        const char *text;
    } cases[] = {
        {"cublasCreate_v2", 1, "cublasCreate failed with CUBLAS_STATUS_NOT_INITIALIZED (1)"},
        {"cublasCreate_v2", 3, "cublasCreate failed with CUBLAS_STATUS_ALLOC_FAILED (3)"},
        {"cublasCreate_v2", 8, "cublasCreate failed with CUBLAS_STATUS_ARCH_MISMATCH (8)"},
        {"cublasSetStream_v2", 7, "cublasSetStream failed with CUBLAS_STATUS_INVALID_VALUE (7)"},
        {"cublasGemmEx", 3, "cublasGemmEx failed with CUBLAS_STATUS_ALLOC_FAILED (3)"},
        {"cublasGemmEx", 11, "cublasGemmEx failed with CUBLAS_STATUS_MAPPING_ERROR (11)"},
        {"cublasGemmEx", 13, "cublasGemmEx failed with CUBLAS_STATUS_EXECUTION_FAILED (13)"},
        {"cublasGemmEx", 14, "cublasGemmEx failed with CUBLAS_STATUS_INTERNAL_ERROR (14)"},
        {"cublasGemmEx", 15, "cublasGemmEx failed with CUBLAS_STATUS_NOT_SUPPORTED (15)"},
        {"cublasGemmEx", 16, "cublasGemmEx failed with CUBLAS_STATUS_LICENSE_ERROR (16)"},
        {"cublasGemmEx", -7, "cublasGemmEx failed with an unknown status (-7)"},
        {"cublasDestroy_v2", 1, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && begin(); i++) {
        struct tnd_fake_plan plan = {.first = 1, .code = cases[i].code};
        snprintf(plan.name, sizeof(plan.name), "%s", cases[i].call);
        fake.begin(&plan);
        if (strcmp(cases[i].call, "cublasGemmEx") != 0) {
            struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
            CU_ASSERT_PTR_NOT_NULL_FATAL(device);
            CU_ASSERT_EQUAL(device->context->has_blas, cases[i].text == NULL);
            check_contains(device->context->blas_reason,
                           cases[i].text != NULL ? cases[i].text : "");
            tnd_gpu_device_close(device);
        } else {
            struct tnd_gpu_block *block = NULL;
            struct tandem_error error = {0};
            struct tnd_gpu_device *device = open_with_block(&block);
            check_status(multiply(device, block, Y_AT, &error),
                         cases[i].code == 3 ? TANDEM_E_DEVICE_MEMORY : TANDEM_E_DEVICE,
                         cases[i].text, &error);
            check_ok(multiply(device, block, Y_AT, NULL)); /* the next one */
            tnd_gpu_give_back(device, block);
            tnd_gpu_device_close(device);
        }
        struct tnd_fake_report report;
        fake.report(&report);
        check_int(report.n_failed, 1);
        end();
    }
}

/* cuBLAS itself says only that something failed. */
static void a_device_that_is_lost_in_a_product_is_told_as_lost(void)
{
    const struct tnd_fake_plan plan = {
        .first = 1, .code = 719, .is_lost = true, .name = "cublasGemmEx"};
    struct tnd_gpu_block *block = NULL;
    struct tandem_error error = {0};
    struct tnd_gpu_device *device = begin() ? open_with_block(&block) : NULL;
    if (device == NULL) {
        return;
    }
    fake.begin(&plan);
    check_status(multiply(device, block, Y_AT, &error), TANDEM_E_DEVICE_LOST,
                 "cublasGemmEx failed with CUDA_ERROR_LAUNCH_FAILED (719)", &error);
    tnd_gpu_give_back(device, block);
    tnd_gpu_device_close(device);
    end();
}

static void a_handle_without_room_leaves_the_device_without_cublas(void)
{
    enum { TOTAL = 64 << 20 };
    struct tnd_gpu_device *first = NULL;
    struct tnd_gpu_block *block = NULL;
    if (!begin()) {
        return;
    }
    fake.set_memory(TOTAL);
    first = tnd_test_cl_open((struct tnd_gpu_options){0});
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    check_ok(tnd_gpu_map(first, TOTAL - (100 << 10), &block, NULL)); /* a handle takes 64 KiB */
    check_without(NULL, "CUBLAS_STATUS_ALLOC_FAILED");
    tnd_gpu_give_back(first, block);
    tnd_gpu_device_close(first);
    fake.set_memory(256 << 20);
    end();
}

/* That the stand-in would see it. */
static void products_that_break_a_rule_are_caught(void)
{
    struct tnd_gpu_block *block = NULL;
    struct tnd_fake_report report;
    struct tnd_gpu_device *device = begin() ? open_with_block(&block) : NULL;
    if (device == NULL) {
        return;
    }
    check_status(multiply(device, block, BYTES, NULL), TANDEM_E_DEVICE_LOST, NULL, NULL);
    fake.report(&report);
    check_contains(report.wrong, "cublasGemmEx: touches memory that is not the device's");
    fake.begin(NULL);
    setenv("TANDEM_FAKE_CUDA_CHECK", "1", 1);
    const struct tnd_gpu_blas unwritten = {.w = block->buffer,
                                           .x = block->buffer,
                                           .y = block->buffer,
                                           .x_at = Y_AT,
                                           .n = 1,
                                           .m = 1,
                                           .k = K,
                                           .end = 1};
    (void)device->driver->product(device->context, &unwritten, NULL);
    (void)device->driver->finish(device->context, TND_GPU_QUEUE_WORK, NULL);
    unsetenv("TANDEM_FAKE_CUDA_CHECK");
    fake.report(&report);
    check_contains(report.wrong, "cublasGemmEx: reads what nobody has written");
    fake.begin(NULL);
    tnd_gpu_give_back(device, block);
    tnd_gpu_device_close(device);
    end();
}

/* Its functions are those that we look up, and without a GPU it makes no handle. */
static void the_toolkits_cublas_has_our_functions(void)
{
    static const char path[] = "/usr/local/cuda/lib64/libcublas.so.13";
    if (!begin()) {
        return;
    }
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (access(path, R_OK) != 0 || driver != NULL) {
        tnd_skip("no cuBLAS 13 of a toolkit here, or a driver that would serve it");
        return;
    }
    setenv("TANDEM_FAKE_CUDA_VERSION", "13000", 1);
    check_without(path, "cublasCreate failed with CUBLAS_STATUS_NOT_INITIALIZED (1)");
    unsetenv("TANDEM_FAKE_CUDA_VERSION");
    end();
}

CU_TestInfo tnd_tests_opencl_cublas[] = {
    {"without cuBLAS a device opens and says why", without_cublas_a_device_opens_and_says_why},
    {"each call of cuBLAS may fail", each_call_of_cublas_may_fail},
    {"a device that is lost in a product is told as lost",
     a_device_that_is_lost_in_a_product_is_told_as_lost},
    {"a handle without room leaves the device without cuBLAS",
     a_handle_without_room_leaves_the_device_without_cublas},
    {"products that break a rule are caught", products_that_break_a_rule_are_caught},
    {"the toolkit's cuBLAS has our functions", the_toolkits_cublas_has_our_functions},
    CU_TEST_INFO_NULL,
};
