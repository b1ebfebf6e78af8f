/* SPDX-License-Identifier: MIT
 * Launches of kernels, programs and their cache on disk. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/gpu/gpu_cache.h"
#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_memory.h"
#include "backends/gpu/gpu_program.h"
#include "backends/gpu/gpu_trim.h"
#include "tests/suite_opencl.h"

/* ---- launches ---- */

enum { N_SMOKE = 1000 };

/* y = 2 x + 3 + flags, in mirrors. False after a complaint. */
static bool run_smoke(struct tnd_gpu_device *device, int flags)
{
    float memory[2 * N_SMOKE];
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    tnd_test_fill(&rng, memory, 2 * N_SMOKE);
    struct tnd_gpu_range x = {0};
    struct tnd_gpu_range y = {0};
    struct tandem_error error = {0};
    uint64_t ticket = 0;
    bool good =
        check_ok(tnd_test_cl_map(device, memory, sizeof(memory), NULL)) &&
        check_ok(tnd_test_cl_upload(device, memory, N_SMOKE * sizeof(float), NULL)) &&
        check_ok(tnd_test_cl_find(device, memory, N_SMOKE * sizeof(float), &x, NULL)) &&
        check_ok(tnd_test_cl_find(device, memory + N_SMOKE, N_SMOKE * sizeof(float), &y, NULL));
    struct tnd_gpu_launch launch;
    const struct tnd_gpu_variant variant = {.flags = flags};
    const size_t local = 16;
    const size_t global = (N_SMOKE + 15) / 16 * 16;
    good =
        good &&
        check_status(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_SMOKE, &variant, &error),
                     TANDEM_OK, NULL, &error) &&
        check_ok(
            tnd_gpu_bind_smoke(&launch, x, y, local * sizeof(float), 2.0F, 3, N_SMOKE, NULL)) &&
        check_ok(tnd_gpu_launch_run(&launch, 1, &global, &local, NULL)) &&
        check_ok(tnd_test_cl_download(device, memory + N_SMOKE, N_SMOKE * sizeof(float), &ticket,
                                      NULL)) &&
        check_ok(tnd_gpu_sync(device, ticket, NULL));
    int n_wrong = 0;
    for (int i = 0; good && i < N_SMOKE; i++) {
        n_wrong += memory[N_SMOKE + i] != memory[i] * 2.0F + (float)(3 + flags);
    }
    check_int(n_wrong, 0);
    tnd_test_cl_give_back(device, memory);
    return good && n_wrong == 0;
}

static void a_kernel_runs_with_typed_arguments(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    if (device == NULL) {
        return;
    }
    CU_ASSERT(run_smoke(device, 0));
    CU_ASSERT(run_smoke(device, 5));
    CU_ASSERT(run_smoke(device, 0));
    const struct tnd_gpu_statistics statistics = tnd_test_cl_statistics(device);
    check_int(statistics.programs_compiled, 2);
    check_int(statistics.programs_loaded, 0);
    check_int(statistics.launches, 3);
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
}

static void launches_that_cannot_run_are_refused(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    if (device == NULL) {
        return;
    }
    struct tnd_gpu_launch launch;
    struct tnd_gpu_range none = {0};
    struct tandem_error error = {0};
    size_t global = 17;
    const size_t local = 16;
    check_ok(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_SMOKE, NULL, NULL));
    check_ok(tnd_gpu_bind_smoke(&launch, none, none, 64, 1, 0, 0, NULL));
    check_status(tnd_gpu_launch_run(&launch, 1, &global, &local, &error), TANDEM_E_STATE, "17",
                 &error);
    CU_ASSERT(launch.handle == NULL);
    check_ok(tnd_gpu_bind_smoke(&launch, none, none, 64, 1, 0, 0, NULL));
    global = 0;
    check_ok(tnd_gpu_launch_run(&launch, 1, &global, &local, NULL));
    check_status(tnd_gpu_launch_take(&launch,
                                     TND_GPU_KERNEL_COUNT - 1 == TND_GPU_KERNEL_SMOKE
                                         ? 0
                                         : TND_GPU_KERNEL_COUNT - 1,
                                     &error),
                 TANDEM_E_STATE, "is not in smoke.cl", &error);
    check_ok(tnd_gpu_bind_smoke(&launch, none, none, 64, 1, 0, 0, NULL));
    tnd_gpu_launch_drop(&launch);
    tnd_gpu_launch_drop(&launch);
    check_int(tnd_test_cl_statistics(device).launches, 0);
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
}

static void a_launch_can_be_timed(void)
{
    for (int with_profiling = 0; with_profiling < 2; with_profiling++) {
        struct tnd_gpu_device *device =
            tnd_test_cl_open((struct tnd_gpu_options){.with_profiling = with_profiling});
        if (device == NULL) {
            return;
        }
        struct tnd_gpu_launch launch;
        struct tnd_gpu_range place = {0};
        int64_t ns = -1;
        const size_t global = 64;
        check_ok(tnd_gpu_scratch(device, 0, 512, &place, NULL));
        struct tnd_gpu_range second = {place.buffer, 256};
        check_ok(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_SMOKE, NULL, NULL));
        check_ok(tnd_gpu_bind_smoke(&launch, place, second, 256, 1, 0, 64, NULL));
        check_ok(tnd_gpu_launch_time(&launch, 1, &global, &global, &ns, NULL));
        CU_ASSERT(ns >= 0);
        check_ok(tnd_gpu_launch_time(&launch, 1, &global, &global, &ns, NULL));
        tnd_gpu_launch_drop(&launch);
        tnd_gpu_device_close(device);
        tnd_test_cl_closed(device);
    }
}

/* ---- the cache ---- */

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
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){.cache = folder});
    if (device == NULL) {
        return false;
    }
    CU_ASSERT(run_smoke(device, 0));
    const struct tnd_gpu_statistics statistics = tnd_test_cl_statistics(device);
    check_int(statistics.programs_compiled, n_compiled);
    check_int(statistics.programs_loaded, n_loaded);
    CU_ASSERT(statistics.build_ns > 0);
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
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
    tnd_gpu_cache_write("another key", good, n, &foreign);
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
    tnd_gpu_cache_write(key, "this is no program", 18, &file);
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
    tnd_gpu_cache_write("key", "payload", 7, &file);
    CU_ASSERT_FATAL(!file.failed);
    check_ok(tnd_gpu_cache_read(file.bytes, file.n, "key", &payload, &n, NULL));
    check_int(n, 7);
    check_bits(payload, "payload", 7, "payload");
    check_status(tnd_gpu_cache_read(file.bytes, file.n, "kez", &payload, &n, &error),
                 TANDEM_E_NOT_FOUND, "another", &error);
    check_status(tnd_gpu_cache_read(file.bytes, file.n, "key1", &payload, &n, &error),
                 TANDEM_E_NOT_FOUND, "another", &error);
    for (size_t i = 0; i < file.n; i++) {
        CU_ASSERT(tnd_gpu_cache_read(file.bytes, i, "key", &payload, &n, NULL) != TANDEM_OK);
        file.bytes[i] ^= 0x10;
        CU_ASSERT(tnd_gpu_cache_read(file.bytes, file.n, "key", &payload, &n, NULL) != TANDEM_OK);
        file.bytes[i] ^= 0x10;
    }
    tnd_text_fini(&file);
}

/* A file of so many bytes, changed `hours` after the year 2001. */
static void make_file(const char *folder, const char *name, size_t bytes, int hours)
{
    char path[512];
    static const char zeros[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const struct timespec times[2] = {{978307200 + hours * 3600, 0}, {978307200 + hours * 3600, 0}};
    CU_ASSERT(tnd_test_write_file(path, zeros, bytes));
    CU_ASSERT(utimensat(AT_FDCWD, path, times, 0) == 0);
}

static bool has_file(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void binaries_that_were_used_least_recently_are_removed(void)
{
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", tnd_test_temp("trim"));
    CU_ASSERT_FATAL(mkdir(folder, 0777) == 0);
    make_file(folder, "smoke-0123456789abcdef.bin", 1000, 3);
    make_file(folder, "matvec-0123456789abcdef.bin", 1000, 1);
    make_file(folder, "tiled-0123456789abcdef.bin", 1000, 2);
    /* Whatever else is there is not ours. */
    static const char *const others[] = {
        "llama-0123456789abcdef.bin",     "model.bin",
        "smoke-0123456789abcde.bin",      "smoke-0123456789abcdef0.bin",
        "smoke-0123456789abcdef.bin.old", "0123456789abcdef.tune"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        make_file(folder, others[i], 4000, 0);
    }
    make_file(folder, "tandem-0123456789abcdef.tmp", 1000, 0); /* a killed writer's */
    tnd_gpu_trim(folder, 3000);
    CU_ASSERT(!has_file(folder, "tandem-0123456789abcdef.tmp"));
    CU_ASSERT(has_file(folder, "matvec-0123456789abcdef.bin"));
    tnd_gpu_trim(folder, 2999);
    CU_ASSERT(!has_file(folder, "matvec-0123456789abcdef.bin"));
    CU_ASSERT(has_file(folder, "tiled-0123456789abcdef.bin"));
    tnd_gpu_trim(folder, 1000);
    CU_ASSERT(!has_file(folder, "tiled-0123456789abcdef.bin"));
    CU_ASSERT(has_file(folder, "smoke-0123456789abcdef.bin"));
    tnd_gpu_trim(folder, 0);
    CU_ASSERT(!has_file(folder, "smoke-0123456789abcdef.bin"));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        CU_ASSERT(has_file(folder, others[i]));
    }
    tnd_gpu_trim("/nowhere", 0);
}

/* Loading counts as use. */
static void a_binary_that_is_loaded_becomes_young(void)
{
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", tnd_test_temp("young"));
    char paths[4][512];
    if (!run_with_cache(folder, 1, 0) || list_files(folder, paths, 4) != 1) {
        return;
    }
    const struct timespec times[2] = {{978307200, 0}, {978307200, 0}};
    struct stat status = {0};
    CU_ASSERT(utimensat(AT_FDCWD, paths[0], times, 0) == 0);
    run_with_cache(folder, 0, 1);
    CU_ASSERT(stat(paths[0], &status) == 0 && status.st_mtim.tv_sec > times[0].tv_sec);
}

/* PoCL's own cache serves better than binaries that nobody has asked for. */
static void pocl_keeps_binaries_only_where_it_is_told_to(void)
{
    char folder[512];
    char old[512];
    char paths[4][512];
    const char *cache = getenv("XDG_CACHE_HOME");
    struct tnd_gpu_device *device = NULL;
    struct tandem_error error = {0};
    snprintf(old, sizeof(old), "%s", cache != NULL ? cache : "");
    snprintf(folder, sizeof(folder), "%s", tnd_test_temp("pocl"));
    setenv("XDG_CACHE_HOME", folder, 1);
    /* Not by tnd_test_cl_open, which switches the cache off. */
    enum tandem_status status =
        tnd_test_cl_device_open(&(struct tnd_gpu_options){.device = "0"}, &device, &error);
    if (cache != NULL) {
        setenv("XDG_CACHE_HOME", old, 1);
    } else {
        unsetenv("XDG_CACHE_HOME");
    }
    if (status == TANDEM_E_UNSUPPORTED_MACHINE) {
        tnd_skip("opencl: %s", error.text);
        return;
    }
    CU_ASSERT_FATAL(check_status(status, TANDEM_OK, NULL, &error));
    bool is_pocl = device->caps.is_cpu && strstr(device->info.platform, "Portable") != NULL;
    check_contains(tnd_gpu_programs_folder(device), "pocl");
    CU_ASSERT(run_smoke(device, 0));
    check_int(tnd_test_cl_statistics(device).programs_compiled, 1);
    tnd_gpu_device_close(device);
    tnd_test_cl_closed(device);
    strcat(folder, tnd_test_cl_is_cuda() ? "/tandem/cuda" : "/tandem/opencl");
    check_int(list_files(folder, paths, 4), is_pocl ? 0 : 1);
}

CU_TestInfo tnd_tests_opencl_programs[] = {
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
    {"binaries that were used least recently are removed",
     binaries_that_were_used_least_recently_are_removed},
    {"a binary that is loaded becomes young", a_binary_that_is_loaded_becomes_young},
    {"PoCL keeps binaries only where it is told to", pocl_keeps_binaries_only_where_it_is_told_to},
    CU_TEST_INFO_NULL,
};
