/* SPDX-License-Identifier: MIT
 * Tests of the GPU backend. They use the first OpenCL device there is, a CPU (PoCL) where there is
 * no other, and skip where there is none; with TANDEM_TEST_DRIVER=cuda the stand-in for libcuda. */
#include "tests/suite_opencl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda_driver.h"
#include "backends/opencl/cl_driver.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"

extern const struct tandem_backend_api tnd_backend_cuda; /* see backend-list.h */
extern const struct tandem_backend_api tnd_backend_opencl;

#define SUITE(name)                                                                                \
    {                                                                                              \
#name, NULL, NULL, NULL, NULL, tnd_tests_opencl_##name                                     \
    }
/* what every driver is asked */
#define COMMON                                                                                     \
    SUITE(programs), SUITE(memory), SUITE(bcml1), SUITE(matmul), SUITE(ops), SUITE(experts),       \
        SUITE(sample), SUITE(tune)

static CU_SuiteInfo of_opencl[] = {SUITE(device), COMMON, SUITE(faults), CU_SUITE_INFO_NULL};
static CU_SuiteInfo of_cuda[] = {SUITE(cuda), COMMON,        SUITE(graphs),
                                 SUITE(lies), SUITE(cublas), CU_SUITE_INFO_NULL};

/* prebuilt kernels alone: all that needs no tuning, no other settings */
static CU_SuiteInfo of_ptx[] = {SUITE(ptx),     SUITE(bcml1),  SUITE(matmul),     SUITE(ops),
                                SUITE(experts), SUITE(sample), CU_SUITE_INFO_NULL};

/* ---- the driver ---- */

static bool is_ptx;

bool tnd_test_cl_is_cuda(void)
{
    const char *driver = getenv("TANDEM_TEST_DRIVER");
    return driver != NULL && strcmp(driver, "cuda") == 0;
}

const char *tnd_test_cl_library(void)
{
    const char *real = getenv("TANDEM_TEST_LIBCUDA"); /* as tools/dev/gpu_day.sh sets it */
    return !tnd_test_cl_is_cuda() ? NULL
           : real != NULL         ? real
           : is_ptx               ? tnd_test_beside("fake_cuda_alone/libcuda.so.1")
                                  : tnd_test_beside("fake_cuda/libcuda.so.1");
}

enum tandem_status tnd_test_cl_device_open(const struct tnd_gpu_options *options,
                                           struct tnd_gpu_device **out_device,
                                           struct tandem_error *error)
{
    struct tnd_gpu_options changed = *options;
    changed.libraries.driver =
        options->libraries.driver != NULL ? options->libraries.driver : tnd_test_cl_library();
    return tnd_gpu_device_open(tnd_test_cl_is_cuda() ? &tnd_cuda_driver : &tnd_cl_driver, &changed,
                               out_device, error);
}

enum tandem_status tnd_test_cl_backend_open(const struct tandem_backend_options *options,
                                            tandem_backend **out_backend,
                                            struct tandem_error *error)
{
    if (!tnd_test_cl_is_cuda()) {
        return tnd_backend_opencl.open(options, out_backend, error);
    }
    char settings[1024];
    struct tandem_backend_options changed = *options;
    snprintf(settings, sizeof(settings), "library=%s,%s", tnd_test_cl_library(),
             options->settings != NULL ? options->settings : "");
    changed.settings = settings;
    return tnd_backend_cuda.open(&changed, out_backend, error);
}

struct tnd_gpu_device *tnd_test_cl_open(struct tnd_gpu_options options)
{
    struct tnd_gpu_device *device = NULL;
    struct tandem_error error = {0};
    if (options.device == NULL) {
        options.device = "0";
    }
    if (options.cache == NULL) {
        options.cache = "off";
    }
    enum tandem_status status = tnd_test_cl_device_open(&options, &device, &error);
    if (status == TANDEM_E_UNSUPPORTED_MACHINE) {
        tnd_skip("opencl: %s", error.text);
        return NULL;
    }
    return check_status(status, TANDEM_OK, NULL, &error) ? device : NULL;
}

struct tnd_gpu_statistics tnd_test_cl_statistics(struct tnd_gpu_device *device)
{
    struct tnd_gpu_statistics statistics;
    tnd_gpu_statistics_get(device, &statistics);
    return statistics;
}

/* ---- memory by host address ---- */

enum { MAX_RANGES = 256 };

static struct range {
    const struct tnd_gpu_device *device; /* NULL: free */
    const char *begin;
    size_t bytes;
    bool is_weight;
    struct tnd_gpu_block *block;
} ranges[MAX_RANGES];
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;

static void note(const struct tnd_gpu_device *device, const void *begin, bool is_weight,
                 struct tnd_gpu_block *block)
{
    int i = 0;
    pthread_mutex_lock(&ranges_lock);
    while (ranges[i].device != NULL) {
        CU_ASSERT_FATAL(++i < MAX_RANGES);
    }
    ranges[i] = (struct range){device, begin, block->bytes, is_weight, block};
    pthread_mutex_unlock(&ranges_lock);
}

enum tandem_status tnd_test_cl_map(struct tnd_gpu_device *device, const void *begin, size_t bytes,
                                   struct tandem_error *error)
{
    struct tnd_gpu_block *block = NULL;
    TND_TRY(tnd_gpu_map(device, bytes, &block, error));
    note(device, begin, false, block);
    return TANDEM_OK;
}

enum tandem_status tnd_test_cl_prepare(struct tnd_gpu_device *device, const tandem_tensor *weight,
                                       struct tandem_error *error)
{
    struct tnd_gpu_block *block = NULL;
    TND_TRY(tnd_gpu_prepare(device, weight, &block, error));
    note(device, weight->data, true, block);
    return TANDEM_OK;
}

void tnd_test_cl_give_back(struct tnd_gpu_device *device, const void *begin)
{
    struct tnd_gpu_block *block = NULL;
    pthread_mutex_lock(&ranges_lock);
    for (int i = 0; i < MAX_RANGES && block == NULL; i++) {
        if (ranges[i].device == device && ranges[i].begin == begin) {
            block = ranges[i].block;
            ranges[i].device = NULL;
        }
    }
    pthread_mutex_unlock(&ranges_lock);
    tnd_gpu_give_back(device, block);
}

void tnd_test_cl_closed(const struct tnd_gpu_device *device)
{
    for (int i = 0; i < MAX_RANGES; i++) {
        ranges[i].device = ranges[i].device == device ? NULL : ranges[i].device;
    }
}

struct tandem_place tnd_test_cl_place(const struct tnd_gpu_device *device, const void *address)
{
    struct tandem_place place = {NULL, 0};
    bool is_mirror = false;
    pthread_mutex_lock(&ranges_lock);
    for (int i = 0; i < MAX_RANGES && !is_mirror; i++) {
        const struct range *range = &ranges[i];
        const char *at = address;
        if (range->device == device && at >= range->begin && at < range->begin + range->bytes) {
            place = (struct tandem_place){range->block, (size_t)(at - range->begin)};
            is_mirror = !range->is_weight;
        }
    }
    pthread_mutex_unlock(&ranges_lock);
    return place;
}

enum tandem_status tnd_test_cl_find(struct tnd_gpu_device *device, const void *address,
                                    size_t bytes, struct tnd_gpu_range *out_range,
                                    struct tandem_error *error)
{
    return tnd_gpu_find(device, tnd_test_cl_place(device, address), bytes, out_range, error);
}

struct tandem_places tnd_test_cl_places(const struct tnd_gpu_device *device,
                                        const struct tandem_work *work)
{
    struct tandem_places places = {.result = tnd_test_cl_place(device, work->node->data),
                                   .workspace = tnd_test_cl_place(device, work->workspace)};
    for (int i = 0; i < work->node->n_src; i++) {
        if (work->node->src[i] != NULL) {
            places.src[i] = tnd_test_cl_place(device, work->node->src[i]->data);
        }
    }
    return places;
}

enum tandem_status tnd_test_cl_upload(struct tnd_gpu_device *device, const void *begin,
                                      size_t bytes, struct tandem_error *error)
{
    return tnd_gpu_upload(device, tnd_test_cl_place(device, begin), begin, bytes, error);
}

enum tandem_status tnd_test_cl_download(struct tnd_gpu_device *device, void *begin, size_t bytes,
                                        uint64_t *out_ticket, struct tandem_error *error)
{
    return tnd_gpu_download(device, tnd_test_cl_place(device, begin), begin, bytes, out_ticket,
                            error);
}

/* Tests with tile numbers or settings of their own: their programs are not prebuilt. */
static bool needs_compiler(const char *name)
{
    static const char *const names[] = {"lanes match the double reference",
                                        "tiles match the double reference",
                                        "tensor cores match the double reference",
                                        "subgroups match the double reference",
                                        "subgroups that do not build are done without",
                                        "float products match the double reference",
                                        "row ranges make their rows only",
                                        "bits do not depend on row ranges or repetition",
                                        "rotary angles are right far into a text",
                                        "operations match the reference without extensions",
                                        "experts on lanes match the double reference",
                                        "experts in tiles match the double reference",
                                        "experts on tensor cores match the double reference",
                                        "hard values stay where they are used",
                                        "a row has the bits of a plain product"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void leave_out_what_needs_a_compiler(void)
{
    for (CU_SuiteInfo *suite = of_ptx; suite->pName != NULL; suite++) {
        CU_TestInfo *to = suite->pTests;
        for (const CU_TestInfo *from = to; from->pName != NULL; from++) {
            if (!needs_compiler(from->pName)) {
                *to++ = *from;
            }
        }
        *to = (CU_TestInfo)CU_TEST_INFO_NULL;
    }
}

/* The same binary under the name suite_opencl-cuda runs on the stand-in for libcuda, and as
 * suite_opencl-ptx without NVRTC: for that driver each one is too new. */
int main(int argc, char **argv)
{
    const char *name = argc > 0 && strrchr(argv[0], '-') != NULL ? strrchr(argv[0], '-') : "";
    is_ptx = strcmp(name, "-ptx") == 0;
    if (is_ptx || strcmp(name, "-cuda") == 0) {
        setenv("TANDEM_TEST_DRIVER", "cuda", 1);
    }
    if (is_ptx) {
        setenv("TANDEM_FAKE_CUDA_VERSION", "11020", 1);
        leave_out_what_needs_a_compiler();
    }
    return tnd_suites_run(argc, argv,
                          is_ptx                  ? of_ptx
                          : tnd_test_cl_is_cuda() ? of_cuda
                                                  : of_opencl,
                          NULL);
}
