/* SPDX-License-Identifier: MIT
 * Drivers that lie: of how many devices there are, of their numbers, memory and names; that cannot
 * begin; whose device is reset. Each is refused or survived with one clear line. On the stand-in
 * for libcuda. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda_driver.h"
#include "backends/gpu/gpu_facts.h"
#include "backends/gpu/gpu_launch.h"
#include "base/alloc.h"
#include "tests/fake_cuda/fake_control.h"
#include "tests/suite_opencl.h"

static struct tnd_fake fake;

static bool find_fake(void)
{
    void *library = dlopen(tnd_test_cl_library(), RTLD_NOW | RTLD_LOCAL);
    void *found[] = {library != NULL ? dlsym(library, "tnd_fake_begin") : NULL,
                     library != NULL ? dlsym(library, "tnd_fake_report") : NULL,
                     library != NULL ? dlsym(library, "tnd_fake_set_memory") : NULL};
    if (found[0] == NULL || found[1] == NULL || found[2] == NULL) {
        tnd_skip("optional part not built: stand-ins for CUDA, or no c++");
        return false;
    }
    memcpy(&fake.begin, &found[0], sizeof(found[0]));
    memcpy(&fake.report, &found[1], sizeof(found[1]));
    memcpy(&fake.set_memory, &found[2], sizeof(found[2]));
    return true;
}

/* The list under a lie: variable NAME=VALUE. */
static enum tandem_status find_with(const char *name, const char *value, const char *library,
                                    struct tnd_gpu_found **out_found, int *out_n,
                                    struct tandem_error *error)
{
    const struct tnd_gpu_libraries libraries = {.driver = library};
    setenv(name, value, 1);
    const enum tandem_status status =
        tnd_gpu_find_devices(&tnd_cuda_driver, &libraries, out_found, out_n, error);
    unsetenv(name);
    return status;
}

static void drivers_that_cannot_begin_say_why(void)
{
    static const struct {
        int code;
        const char *part;
    } rows[] = {{100, "cuInit: CUDA_ERROR_NO_DEVICE); CUDA_VISIBLE_DEVICES is ''"},
                {802, "cuInit: CUDA_ERROR_SYSTEM_NOT_READY); the fabric manager"},
                {803, "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH); libcuda and the kernel's"},
                {804, "cuInit: CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE); this libcuda"},
                {999, "cuInit: CUDA_ERROR_UNKNOWN); the kernel's module"},
                {-7, "cuInit: an unknown code)"}};
    char path[1024]; /* another name of the file, which is begun anew */
    if (!find_fake()) {
        return;
    }
    const char *file = strrchr(tnd_test_cl_library(), '/');
    snprintf(path, sizeof(path), "%.*s/./.%s", (int)(file - tnd_test_cl_library()),
             tnd_test_cl_library(), file);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct tnd_fake_plan plan = {.first = 1, .code = rows[i].code, .name = "cuInit"};
        struct tandem_error error = {0};
        struct tnd_gpu_found *found = NULL;
        int n = 0;
        fake.begin(&plan);
        check_status(find_with("CUDA_VISIBLE_DEVICES", "", path, &found, &n, &error),
                     TANDEM_E_UNSUPPORTED_MACHINE, rows[i].part, &error);
        CU_ASSERT_PTR_NULL(strchr(error.text, '\n'));
        CU_ASSERT_PTR_NULL(found);
    }
    fake.begin(NULL);
}

static void versions_that_are_no_numbers_are_refused(void)
{
    static const char *const versions[] = {"0", "-2147483648", "11010"};
    char path[1024];
    if (!find_fake()) {
        return;
    }
    const char *file = strrchr(tnd_test_cl_library(), '/');
    snprintf(path, sizeof(path), "%.*s/././.%s", (int)(file - tnd_test_cl_library()),
             tnd_test_cl_library(), file);
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct tandem_error error = {0};
        struct tnd_gpu_found *found = NULL;
        int n = 0;
        check_status(find_with("TANDEM_FAKE_CUDA_VERSION", versions[i], path, &found, &n, &error),
                     TANDEM_E_UNSUPPORTED_MACHINE, "11.2 or newer is needed", &error);
    }
}

static void counts_that_cannot_be_are_refused(void)
{
    static const char *const counts[] = {"-1", "-2147483648", "0", "65", "2147483647"};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && find_fake(); i++) {
        struct tandem_error error = {0};
        struct tnd_gpu_found *found = NULL;
        int n = 0;
        check_status(find_with("TANDEM_FAKE_CUDA_DEVICES", counts[i], tnd_test_cl_library(), &found,
                               &n, &error),
                     TANDEM_E_UNSUPPORTED_MACHINE, counts[i], &error);
        check_contains(error.text, "expected 1 to 64");
        CU_ASSERT_PTR_NULL(found);
    }
}

/* The stand-in has 8 devices: the others do not answer, and are listed so. */
static void devices_that_are_not_there_are_not_fit(void)
{
    struct tandem_error error = {0};
    struct tnd_gpu_found *found = NULL;
    int n = 0;
    if (!find_fake() || !check_status(find_with("TANDEM_FAKE_CUDA_DEVICES", "10",
                                                tnd_test_cl_library(), &found, &n, &error),
                                      TANDEM_OK, NULL, &error)) {
        return;
    }
    check_int(n, 10);
    for (int i = 0; i < n; i++) {
        CU_ASSERT_EQUAL(found[i].info.is_fit, i < 8);
    }
    check_contains(found[9].info.reason, "does not answer the driver: code 101");
    tnd_free(found);
}

static void numbers_that_cannot_be_make_a_device_unfit(void)
{
    static const struct {
        const char *name, *value, *reason;
    } rows[] = {
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "10=0", "warps have 0 threads"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "10=-32", "warps have 0 threads"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "10=64", "warps have 64 threads"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "16=0", "has 0 compute units"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "16=-4", "has 0 compute units"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "1=0", "blocks are too small: 0 threads"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "1=-2147483648", "blocks are too small: 0 threads"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "2=0", "less than 16 items"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "4=0", "three dimensions"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "8=-1", "0 bytes of shared memory"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "75=0", "compute capability is 0.6"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "75=2147483647", "no number that there is"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "76=2147483647", "no number that there is"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "20=2", "forbids all programs"},
        {"TANDEM_FAKE_CUDA_SAID_MEMORY", "0", "too little memory: 0 bytes"},
        {"TANDEM_FAKE_CUDA_SAID_MEMORY", "9223372036854775808", "has 9223372036854775808 bytes"},
        {"TANDEM_FAKE_CUDA_SAID_MEMORY", "18446744073709551615", "has 18446744073709551615 bytes"},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "1=2147483647", NULL}, /* (limited) */
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "8=2147483647", NULL},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "13=2147483647", NULL},
        {"TANDEM_FAKE_CUDA_ATTRIBUTE", "16=2147483647", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && find_fake(); i++) {
        struct tandem_error error = {0};
        struct tnd_gpu_found *found = NULL;
        int n = 0;
        if (!check_status(
                find_with(rows[i].name, rows[i].value, tnd_test_cl_library(), &found, &n, &error),
                TANDEM_OK, NULL, &error)) {
            continue;
        }
        if (rows[i].reason != NULL) {
            CU_ASSERT_FALSE(found[0].info.is_fit);
            check_contains(found[0].info.reason, rows[i].reason);
        } else {
            CU_ASSERT_TRUE(found[0].info.is_fit);
            CU_ASSERT(found[0].caps.max_group <= 65536 && found[0].caps.compute_units <= 65536);
            CU_ASSERT(found[0].caps.local_bytes <= found[0].caps.global_bytes);
        }
        tnd_free(found);
    }
}

static void names_become_one_line(void)
{
    static const char *const names[] = {"", "GPU\x1b[2J\nnext line", "half a \xc3", "\xff\xfe"};
    static const char *const wanted[] = {"nameless", "GPU?[2J?next line", "half a ?", "??"};
    char endless[400];
    struct tnd_gpu_found *found = NULL;
    int n = 0;
    if (!find_fake()) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        if (check_ok(find_with("TANDEM_FAKE_CUDA_NAME", names[i], tnd_test_cl_library(), &found, &n,
                               NULL))) {
            CU_ASSERT_STRING_EQUAL(found[0].info.name, wanted[i]);
            tnd_free(found);
        }
    }
    memset(endless, 'x', sizeof(endless));
    endless[sizeof(endless) - 1] = '\0';
    if (check_ok(
            find_with("TANDEM_FAKE_CUDA_NAME", endless, tnd_test_cl_library(), &found, &n, NULL))) {
        check_int((int64_t)strlen(found[0].info.name), sizeof(found[0].info.name) - 1);
        tnd_free(found);
    }
}

/* What a kernel makes of ones in a block of a device. */
static void check_serves(struct tnd_gpu_device *device)
{
    enum { N = 64 };
    struct tnd_gpu_block *block = NULL;
    struct tnd_gpu_launch launch;
    float values[N] = {0};
    const size_t global = N;
    const size_t local = 16;
    uint64_t ticket = 0;
    if (!check_ok(tnd_gpu_map(device, sizeof(values), &block, NULL))) {
        return;
    }
    const struct tandem_place place = {.handle = block};
    const struct tnd_gpu_range range = {block->buffer, 0};
    check_ok(tnd_gpu_upload(device, place, values, sizeof(values), NULL));
    check_ok(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_SMOKE, NULL, NULL));
    check_ok(tnd_gpu_bind_smoke(&launch, range, range, local * sizeof(float), 2.0F, 3, N, NULL));
    check_ok(tnd_gpu_launch_run(&launch, 1, &global, &local, NULL));
    check_ok(tnd_gpu_download(device, place, values, sizeof(values), &ticket, NULL));
    check_ok(tnd_gpu_sync(device, ticket, NULL));
    CU_ASSERT_EQUAL(values[N - 1], 3.0F);
    tnd_gpu_give_back(device, block);
}

/* A tebibyte is promised and 32 MiB are there: what has no room says so, the rest goes on. */
static void memory_that_is_only_promised_is_told_when_it_is_needed(void)
{
    const struct tnd_gpu_options options = {.device = "0", .cache = "off"};
    struct tnd_gpu_device *device = NULL;
    struct tnd_gpu_block *block = NULL;
    struct tandem_error error = {0};
    if (!find_fake()) {
        return;
    }
    fake.set_memory(32 << 20);
    setenv("TANDEM_FAKE_CUDA_SAID_MEMORY", "1099511627776", 1);
    if (check_status(tnd_test_cl_device_open(&options, &device, &error), TANDEM_OK, NULL, &error)) {
        check_int(tnd_test_cl_statistics(device).budget_bytes, (int64_t)1099511627776 / 5 * 4);
        check_status(tnd_gpu_map(device, (size_t)1 << 30, &block, &error), TANDEM_E_DEVICE_MEMORY,
                     "cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY", &error);
        check_status(tnd_gpu_map(device, SIZE_MAX / 2, &block, &error), TANDEM_E_DEVICE_MEMORY,
                     "it takes up to 1099511627776", &error);
        check_serves(device);
        tnd_gpu_device_close(device);
    }
    unsetenv("TANDEM_FAKE_CUDA_SAID_MEMORY");
    fake.set_memory(256 << 20);
}

/* Two slices of one GPU have one name. */
static void slices_of_a_gpu_with_one_name_serve_both(void)
{
    struct tnd_gpu_device *devices[3] = {NULL};
    const struct tnd_gpu_options options[3] = {
        {.device = "0", .cache = "off"},
        {.device = "1", .cache = "off"},
        {.device = "mig 1g", .skip = 1, .cache = "off"}, /* the second that has this in its name */
    };
    struct tandem_error error = {0};
    if (!find_fake()) {
        return;
    }
    setenv("TANDEM_FAKE_CUDA_DEVICES", "2", 1);
    setenv("TANDEM_FAKE_CUDA_NAME", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 1);
    for (int i = 0; i < 3; i++) {
        check_status(tnd_test_cl_device_open(&options[i], &devices[i], &error), TANDEM_OK, NULL,
                     &error);
    }
    for (int i = 0; i < 3 && devices[2] != NULL; i++) {
        CU_ASSERT_STRING_EQUAL(devices[i]->identity, devices[0]->identity);
        check_serves(devices[i]);
    }
    const struct tnd_gpu_options third = {.device = "mig 1g", .skip = 2, .cache = "off"};
    struct tnd_gpu_device *none = NULL;
    check_status(tnd_test_cl_device_open(&third, &none, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "none of 2 devices fits 'mig 1g'", &error);
    for (int i = 0; i < 3; i++) {
        tnd_gpu_device_close(devices[i]);
    }
    unsetenv("TANDEM_FAKE_CUDA_DEVICES");
    unsetenv("TANDEM_FAKE_CUDA_NAME");
}

/* The codes that a context gives for good when its device was reset beneath it. */
static void a_device_that_is_reset_serves_again_when_it_is_opened_anew(void)
{
    static const int codes[] = {4, 46, 201, 999};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]) && find_fake(); i++) {
        const struct tnd_fake_plan plan = {.first = 1, .code = codes[i], .is_lost = true};
        struct tnd_fake_report report;
        struct tandem_error error = {0};
        struct tnd_gpu_block *block = NULL;
        struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){.device = "0"});
        if (device == NULL) {
            return;
        }
        check_serves(device);
        fake.begin(&plan);
        check_status(tnd_gpu_map(device, 64, &block, &error), TANDEM_E_DEVICE_LOST, "cuMemAlloc",
                     &error);
        CU_ASSERT_PTR_NULL(strchr(error.text, '\n'));
        check_status(tnd_gpu_map(device, 64, &block, &error), TANDEM_E_DEVICE_LOST, NULL, &error);
        tnd_gpu_device_close(device);
        fake.begin(NULL);
        fake.report(&report);
        for (int kind = 0; kind < TND_FAKE_KIND_COUNT; kind++) {
            check_int(report.n_live[kind], 0);
        }
        device = tnd_test_cl_open((struct tnd_gpu_options){.device = "0"});
        if (device != NULL) {
            check_serves(device);
            tnd_gpu_device_close(device);
        }
    }
}

CU_TestInfo tnd_tests_opencl_lies[] = {
    {"drivers that cannot begin say why", drivers_that_cannot_begin_say_why},
    {"versions that are no numbers are refused", versions_that_are_no_numbers_are_refused},
    {"counts that cannot be are refused", counts_that_cannot_be_are_refused},
    {"devices that are not there are not fit", devices_that_are_not_there_are_not_fit},
    {"numbers that cannot be make a device unfit", numbers_that_cannot_be_make_a_device_unfit},
    {"names become one line", names_become_one_line},
    {"memory that is only promised is told when it is needed",
     memory_that_is_only_promised_is_told_when_it_is_needed},
    {"slices of a GPU with one name serve both", slices_of_a_gpu_with_one_name_serve_both},
    {"a device that is reset serves again when it is opened anew",
     a_device_that_is_reset_serves_again_when_it_is_opened_anew},
    CU_TEST_INFO_NULL,
};
