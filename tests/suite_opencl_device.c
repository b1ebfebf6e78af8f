/* SPDX-License-Identifier: MIT
 * The layer below the kernels: listing and choosing devices, programs and their cache on disk,
 * launches, mirrors, resident weights, transfers. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/cl_cache.h"
#include "backends/opencl/cl_launch.h"
#include "backends/opencl/cl_memory.h"
#include "backends/opencl/cl_program.h"
#include "backends/registry.h"
#include "ggml-like/tnd_tensor.h"
#include "tandem/device.h"
#include "tests/suite_opencl.h"

extern const struct tandem_backend_api tnd_backend_opencl;
extern const struct tandem_backend_api tnd_backend_opencl1;

/* ---- devices ---- */

static void devices_are_listed_with_their_facts(void)
{
    struct tandem_device_info list[16] = {{.size = sizeof(list[0])}};
    struct tandem_error error = {0};
    int n = tandem_devices(list, 16, &error);
    CU_ASSERT(n >= 0);
    if (n == 0) {
        CU_ASSERT(error.text[0] != '\0');
        tnd_skip("opencl: %s", error.text);
        return;
    }
    check_int(tandem_devices(NULL, 0, NULL), n);
    for (int i = 0; i < n && i < 16; i++) {
        CU_ASSERT(list[i].name[0] != '\0' && list[i].platform[0] != '\0');
        check_contains(list[i].version, "OpenCL");
        CU_ASSERT(list[i].is_fit ? list[i].memory_bytes > 0 && list[i].compute_units > 0
                                 : list[i].reason[0] != '\0');
        CU_ASSERT(!list[i].is_default || (list[i].is_fit && list[i].type != TANDEM_DEVICE_CPU));
        CU_ASSERT(list[i].is_default == (list[i].reason[0] == '\0'));
    }
}

static void wrong_arguments_of_the_list_are_refused(void)
{
    struct tandem_device_info info = {.size = 8};
    struct tandem_error error = {0};
    check_int(tandem_devices(&info, 1, &error), -1);
    check_int(error.status, TANDEM_E_ABI);
    check_int(tandem_devices(&info, -1, &error), -1);
    check_int(error.status, TANDEM_E_ARGUMENT);
    check_int(tandem_devices(NULL, 1, &error), -1);
    check_string(tandem_device_type_name(TANDEM_DEVICE_CPU), "cpu");
    check_string(tandem_device_type_name(TANDEM_DEVICE_GPU), "gpu");
    check_string(tandem_device_type_name(TANDEM_DEVICE_ACCELERATOR), "accelerator");
    check_string(tandem_device_type_name(TANDEM_DEVICE_OTHER), "other");
}

static enum tandem_status try_open(const struct tandem_backend_api *api, const char *settings,
                                   bool is_asked_for, struct tandem_error *error)
{
    const struct tandem_backend_options options = {.size = sizeof(options),
                                                   .n_threads_max = 1,
                                                   .settings = settings,
                                                   .is_asked_for = is_asked_for};
    tandem_backend *backend = NULL;
    enum tandem_status status = api->open(&options, &backend, error);
    if (status == TANDEM_OK) {
        api->close(backend);
    }
    return status;
}

static void a_device_is_chosen_by_index_name_and_environment(void)
{
    struct tnd_cl_device *device = tnd_test_cl_open((struct tnd_cl_options){0});
    if (device == NULL) {
        return;
    }
    char name[64];
    char settings[128];
    snprintf(name, sizeof(name), "%.12s", device->info.name);
    name[strcspn(name, ",")] = '\0';
    tnd_cl_device_close(device);
    struct tandem_error error = {0};
    snprintf(settings, sizeof(settings), "device=%s,cache=off", name);
    check_ok(try_open(&tnd_backend_opencl, settings, false, NULL));
    check_status(try_open(&tnd_backend_opencl, "device=no such device", false, &error),
                 TANDEM_E_UNSUPPORTED_MACHINE, "no such device", &error);
    check_status(try_open(&tnd_backend_opencl, "device=999", false, &error),
                 TANDEM_E_UNSUPPORTED_MACHINE, "999", &error);
    check_status(try_open(&tnd_backend_opencl, "device=none", true, &error),
                 TANDEM_E_UNSUPPORTED_MACHINE, "none", &error);
    setenv("TANDEM_DEVICE", "none", 1);
    check_status(try_open(&tnd_backend_opencl, NULL, true, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "TANDEM_DEVICE", &error);
    check_status(try_open(&tnd_backend_opencl1, NULL, true, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "TANDEM_DEVICE", &error);
    setenv("TANDEM_DEVICE", "0", 1);
    check_ok(try_open(&tnd_backend_opencl, "cache=off", false, NULL));
    check_status(try_open(&tnd_backend_opencl1, NULL, true, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "names no device for it", &error);
    setenv("TANDEM_DEVICE", "999,0", 1);
    check_ok(try_open(&tnd_backend_opencl1, "cache=off", false, NULL));
    unsetenv("TANDEM_DEVICE");
}

static void a_cpu_is_opened_only_when_it_is_asked_for(void)
{
    struct tandem_device_info list[16] = {{.size = sizeof(list[0])}};
    int n = tandem_devices(list, 16, NULL);
    int n_default = 0;
    for (int i = 0; i < n && i < 16; i++) {
        n_default += list[i].is_default;
    }
    if (n <= 0 || n_default > 0) {
        tnd_skip("opencl: not a machine with a CPU device alone");
        return;
    }
    struct tandem_error error = {0};
    unsetenv("TANDEM_DEVICE");
    check_status(try_open(&tnd_backend_opencl, NULL, false, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "asked for", &error);
    check_ok(try_open(&tnd_backend_opencl, "cache=off", true, NULL));
    const struct tnd_registry_options options = {"opencl,opencl1", "opencl:cache=off", 1, {0}};
    struct tnd_registry *registry = NULL;
    if (!check_ok(tnd_registry_open(&options, &registry, NULL))) {
        return;
    }
    const char *reason = NULL;
    CU_ASSERT(tnd_registry_find(registry, "opencl", NULL) > 0);
    check_int(tnd_registry_find(registry, "opencl1", &reason), n > 1 ? 3 : -1);
    tnd_registry_close(registry);
}

static void unknown_settings_and_missing_libraries_are_told(void)
{
    struct tandem_error error = {0};
    check_status(try_open(&tnd_backend_opencl, "colour=red", true, &error), TANDEM_E_ARGUMENT,
                 "colour", &error);
    check_status(try_open(&tnd_backend_opencl, "fp16=perhaps", true, &error), TANDEM_E_ARGUMENT,
                 "fp16", &error);
    check_status(try_open(&tnd_backend_opencl, "budget=much", true, &error), TANDEM_E_ARGUMENT,
                 "budget", &error);
    check_status(try_open(&tnd_backend_opencl, "library=/nowhere/libOpenCL.so", true, &error),
                 TANDEM_E_UNSUPPORTED_MACHINE, "/nowhere/libOpenCL.so", &error);
    struct tnd_cl_device *device =
        tnd_test_cl_open((struct tnd_cl_options){.clblast = "/nowhere/libclblast.so"});
    if (device != NULL) {
        CU_ASSERT(device->clblast == NULL);
        check_contains(device->clblast_reason, "/nowhere/libclblast.so");
        tnd_cl_device_close(device);
    }
}

static void switches_take_capabilities_away(void)
{
    struct tnd_cl_device *device =
        tnd_test_cl_open((struct tnd_cl_options){.without_fp16 = true,
                                                 .without_fp64 = true,
                                                 .without_subgroups = true,
                                                 .without_unified = true,
                                                 .clblast = "off"});
    if (device == NULL) {
        return;
    }
    CU_ASSERT(!device->caps.fp16 && !device->caps.fp64 && !device->caps.subgroups);
    CU_ASSERT(!device->caps.unified && device->clblast == NULL);
    struct tnd_text options = TND_TEXT_INIT;
    const struct tnd_cl_variant variant = {.type = 1 + TANDEM_TYPE_Q4_0, .rows = 4};
    tnd_cl_program_options(device, &variant, &options);
    const char *text = tnd_text_string(&options);
    check_contains(text, " -DTYPE_q4_0=1");
    check_contains(text, " -DTYPE=2 ");
    check_contains(text, " -DROWS=4");
    CU_ASSERT(strstr(text, "HAVE_FP16") == NULL && strstr(text, "COLUMNS") == NULL);
    tnd_text_fini(&options);
    tnd_cl_device_close(device);
}

/* ---- programs ---- */

enum { N_SMOKE = 1000 };

/* y = 2 x + 3 + flags, in mirrors. False after a complaint. */
static bool run_smoke(struct tnd_cl_device *device, int flags)
{
    float memory[2 * N_SMOKE];
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tnd_test_fill(&rng, memory, 2 * N_SMOKE);
    struct tnd_cl_range x = {0};
    struct tnd_cl_range y = {0};
    struct tandem_error error = {0};
    uint64_t ticket = 0;
    bool good = check_ok(tnd_cl_map(device, memory, sizeof(memory), NULL)) &&
                check_ok(tnd_cl_upload(device, memory, N_SMOKE * sizeof(float), NULL)) &&
                check_ok(tnd_cl_find(device, memory, N_SMOKE * sizeof(float), &x, NULL)) &&
                check_ok(tnd_cl_find(device, memory + N_SMOKE, N_SMOKE * sizeof(float), &y, NULL));
    struct tnd_cl_launch launch;
    const struct tnd_cl_variant variant = {.flags = flags};
    const size_t local = 16;
    const size_t global = (N_SMOKE + 15) / 16 * 16;
    good =
        good &&
        check_status(tnd_cl_launch_begin(&launch, device, TND_CL_SOURCE_SMOKE, &variant, &error),
                     TANDEM_OK, NULL, &error) &&
        check_ok(tnd_cl_bind_smoke(&launch, x, y, local * sizeof(float), 2.0F, 3, N_SMOKE, NULL)) &&
        check_ok(tnd_cl_launch_run(&launch, 1, &global, &local, NULL)) &&
        check_ok(
            tnd_cl_download(device, memory + N_SMOKE, N_SMOKE * sizeof(float), &ticket, NULL)) &&
        check_ok(tnd_cl_sync(device, ticket, NULL));
    int n_wrong = 0;
    for (int i = 0; good && i < N_SMOKE; i++) {
        n_wrong += memory[N_SMOKE + i] != memory[i] * 2.0F + (float)(3 + flags);
    }
    check_int(n_wrong, 0);
    tnd_cl_unmap(device, memory);
    return good && n_wrong == 0;
}

static void a_kernel_runs_with_typed_arguments(void)
{
    struct tnd_cl_device *device = tnd_test_cl_open((struct tnd_cl_options){0});
    if (device == NULL) {
        return;
    }
    CU_ASSERT(run_smoke(device, 0));
    CU_ASSERT(run_smoke(device, 5));
    CU_ASSERT(run_smoke(device, 0));
    const struct tnd_cl_statistics statistics = tnd_test_cl_statistics(device);
    check_int(statistics.programs_compiled, 2);
    check_int(statistics.programs_loaded, 0);
    check_int(statistics.launches, 3);
    tnd_cl_device_close(device);
}

static void launches_that_cannot_run_are_refused(void)
{
    struct tnd_cl_device *device = tnd_test_cl_open((struct tnd_cl_options){0});
    if (device == NULL) {
        return;
    }
    struct tnd_cl_launch launch;
    struct tnd_cl_range none = {0};
    struct tandem_error error = {0};
    size_t global = 17;
    const size_t local = 16;
    check_ok(tnd_cl_launch_begin(&launch, device, TND_CL_SOURCE_SMOKE, NULL, NULL));
    check_ok(tnd_cl_bind_smoke(&launch, none, none, 64, 1, 0, 0, NULL));
    check_status(tnd_cl_launch_run(&launch, 1, &global, &local, &error), TANDEM_E_STATE, "17",
                 &error);
    CU_ASSERT(launch.handle == NULL);
    check_ok(tnd_cl_bind_smoke(&launch, none, none, 64, 1, 0, 0, NULL));
    global = 0;
    check_ok(tnd_cl_launch_run(&launch, 1, &global, &local, NULL));
    check_status(tnd_cl_launch_take(
                     &launch,
                     TND_CL_KERNEL_COUNT - 1 == TND_CL_KERNEL_SMOKE ? 0 : TND_CL_KERNEL_COUNT - 1,
                     &error),
                 TANDEM_E_STATE, "is not in smoke.cl", &error);
    size_t max_group = 0;
    size_t multiple = 0;
    uint64_t local_bytes = 0;
    check_ok(tnd_cl_bind_smoke(&launch, none, none, 64, 1, 0, 0, NULL));
    check_ok(tnd_cl_launch_limits(&launch, &multiple, &max_group, &local_bytes, NULL));
    CU_ASSERT(multiple > 0 && max_group >= 16);
    tnd_cl_launch_drop(&launch);
    tnd_cl_launch_drop(&launch);
    check_int(tnd_test_cl_statistics(device).launches, 0);
    tnd_cl_device_close(device);
}

static void a_launch_can_be_timed(void)
{
    for (int with_profiling = 0; with_profiling < 2; with_profiling++) {
        struct tnd_cl_device *device =
            tnd_test_cl_open((struct tnd_cl_options){.with_profiling = with_profiling});
        if (device == NULL) {
            return;
        }
        struct tnd_cl_launch launch;
        struct tnd_cl_range place = {0};
        int64_t ns = -1;
        const size_t global = 64;
        check_ok(tnd_cl_scratch(device, 0, 512, &place, NULL));
        struct tnd_cl_range second = {place.buffer, 256};
        check_ok(tnd_cl_launch_begin(&launch, device, TND_CL_SOURCE_SMOKE, NULL, NULL));
        check_ok(tnd_cl_bind_smoke(&launch, place, second, 256, 1, 0, 64, NULL));
        check_ok(tnd_cl_launch_time(&launch, 1, &global, &global, &ns, NULL));
        CU_ASSERT(ns >= 0);
        check_ok(tnd_cl_launch_time(&launch, 1, &global, &global, &ns, NULL));
        tnd_cl_launch_drop(&launch);
        tnd_cl_device_close(device);
    }
}

/* Paths of the files in a folder; the number of them. */
static int list_files(const char *folder, char (*paths)[512], int n_max)
{
    DIR *dir = opendir(folder);
    int n = 0;
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.' && n < n_max) {
            snprintf(paths[n++], sizeof(paths[0]), "%s/%s", folder, entry->d_name);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return n;
}

/* Runs smoke with this cache and checks how many programs were compiled and loaded. */
static bool run_with_cache(const char *folder, int n_compiled, int n_loaded)
{
    struct tnd_cl_device *device = tnd_test_cl_open((struct tnd_cl_options){.cache = folder});
    if (device == NULL) {
        return false;
    }
    CU_ASSERT(run_smoke(device, 0));
    const struct tnd_cl_statistics statistics = tnd_test_cl_statistics(device);
    check_int(statistics.programs_compiled, n_compiled);
    check_int(statistics.programs_loaded, n_loaded);
    CU_ASSERT(statistics.build_ns > 0);
    tnd_cl_device_close(device);
    return true;
}

static void a_second_start_compiles_nothing(void)
{
    char folder[512];
    snprintf(folder, sizeof(folder), "%s/deep/er", tnd_test_temp("second-start"));
    char paths[4][512];
    if (!run_with_cache(folder, 1, 0)) {
        return;
    }
    check_int(list_files(folder, paths, 4), 1);
    run_with_cache(folder, 0, 1);
    run_with_cache("off", 1, 0);
    check_int(list_files(folder, paths, 4), 1);
}

static void damaged_and_foreign_cache_files_are_built_anew(void)
{
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", tnd_test_temp("damaged"));
    char paths[4][512];
    if (!run_with_cache(folder, 1, 0) || list_files(folder, paths, 4) != 1) {
        return;
    }
    size_t n = 0;
    char *good = tnd_test_read_file(paths[0], &n);
    char *bytes = good != NULL ? malloc(n) : NULL;
    CU_ASSERT_FATAL(bytes != NULL && n > 64);
    const size_t places[] = {0, 8, 16, 24, 40, n / 2, n - 1};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        memcpy(bytes, good, n);
        bytes[places[i]] ^= 1;
        CU_ASSERT(tnd_test_write_file(paths[0], bytes, n));
        run_with_cache(folder, 1, 0);
        run_with_cache(folder, 0, 1);
    }
    /* Cut, empty, and whole but of another program. */
    CU_ASSERT(tnd_test_write_file(paths[0], good, n - 7));
    run_with_cache(folder, 1, 0);
    CU_ASSERT(tnd_test_write_file(paths[0], good, 0));
    run_with_cache(folder, 1, 0);
    struct tnd_text foreign = TND_TEXT_INIT;
    tnd_cl_cache_write("another key", good, n, &foreign);
    CU_ASSERT(tnd_test_write_file(paths[0], foreign.bytes, foreign.n));
    run_with_cache(folder, 1, 0);
    run_with_cache(folder, 0, 1);
    tnd_text_fini(&foreign);
    free(bytes);
    free(good);
}

/* A whole file of the right key whose payload the driver does not take. */
static void a_binary_that_the_driver_refuses_is_built_anew(void)
{
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", tnd_test_temp("refused"));
    char paths[4][512];
    if (!run_with_cache(folder, 1, 0) || list_files(folder, paths, 4) != 1) {
        return;
    }
    size_t n = 0;
    char *good = tnd_test_read_file(paths[0], &n);
    CU_ASSERT_FATAL(good != NULL && n > 32);
    uint64_t key_n = 0;
    memcpy(&key_n, good + 8, sizeof(key_n));
    char key[4096] = "";
    CU_ASSERT_FATAL(key_n < sizeof(key) && 32 + key_n < n);
    memcpy(key, good + 32, key_n);
    struct tnd_text file = TND_TEXT_INIT;
    tnd_cl_cache_write(key, "this is no program", 18, &file);
    CU_ASSERT(tnd_test_write_file(paths[0], file.bytes, file.n));
    run_with_cache(folder, 1, 0);
    tnd_text_fini(&file);
    free(good);
}

static void a_cache_that_cannot_be_written_does_no_harm(void)
{
    const char *file = tnd_test_temp("a-file");
    char folder[512];
    CU_ASSERT(tnd_test_write_file(file, "x", 1));
    snprintf(folder, sizeof(folder), "%s/below", file);
    run_with_cache(folder, 1, 0);
}

static void cache_files_tell_damage_and_keys_apart(void)
{
    struct tnd_text file = TND_TEXT_INIT;
    struct tandem_error error = {0};
    const void *payload = NULL;
    size_t n = 0;
    tnd_cl_cache_write("key", "payload", 7, &file);
    CU_ASSERT_FATAL(!file.failed);
    check_ok(tnd_cl_cache_read(file.bytes, file.n, "key", &payload, &n, NULL));
    check_int(n, 7);
    check_bits(payload, "payload", 7, "payload");
    check_status(tnd_cl_cache_read(file.bytes, file.n, "kez", &payload, &n, &error),
                 TANDEM_E_NOT_FOUND, "another", &error);
    check_status(tnd_cl_cache_read(file.bytes, file.n, "key1", &payload, &n, &error),
                 TANDEM_E_NOT_FOUND, "another", &error);
    for (size_t i = 0; i < file.n; i++) {
        CU_ASSERT(tnd_cl_cache_read(file.bytes, i, "key", &payload, &n, NULL) != TANDEM_OK);
        file.bytes[i] ^= 0x10;
        CU_ASSERT(tnd_cl_cache_read(file.bytes, file.n, "key", &payload, &n, NULL) != TANDEM_OK);
        file.bytes[i] ^= 0x10;
    }
    tnd_text_fini(&file);
}

CU_TestInfo tnd_tests_opencl_device[] = {
    {"devices are listed with their facts", devices_are_listed_with_their_facts},
    {"wrong arguments of the list are refused", wrong_arguments_of_the_list_are_refused},
    {"a device is chosen by index, name and environment",
     a_device_is_chosen_by_index_name_and_environment},
    {"a CPU is opened only when it is asked for", a_cpu_is_opened_only_when_it_is_asked_for},
    {"unknown settings and missing libraries are told",
     unknown_settings_and_missing_libraries_are_told},
    {"switches take capabilities away", switches_take_capabilities_away},
    {"a kernel runs with typed arguments", a_kernel_runs_with_typed_arguments},
    {"launches that cannot run are refused", launches_that_cannot_run_are_refused},
    {"a launch can be timed", a_launch_can_be_timed},
    {"a second start compiles nothing", a_second_start_compiles_nothing},
    {"damaged and foreign cache files are built anew",
     damaged_and_foreign_cache_files_are_built_anew},
    {"a binary that the driver refuses is built anew",
     a_binary_that_the_driver_refuses_is_built_anew},
    {"a cache that cannot be written does no harm", a_cache_that_cannot_be_written_does_no_harm},
    {"cache files tell damage and keys apart", cache_files_tell_damage_and_keys_apart},
    CU_TEST_INFO_NULL,
};
