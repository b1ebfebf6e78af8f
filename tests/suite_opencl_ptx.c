/* SPDX-License-Identifier: MIT
 * CUDA with prebuilt kernels alone, without NVRTC: on the stand-in for libcuda. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/cuda_driver.h"
#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_program.h"
#include "backends/gpu/gpu_tune.h"
#include "base/alloc.h"
#include "base/file.h"
#include "tests/suite_opencl.h"

static void devices_say_where_their_kernels_come_from(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    if (device != NULL) {
        CU_ASSERT_STRING_EQUAL(device->info.version,
                               "compute capability 8.6, kernels: prebuilt PTX 6.3");
        check_contains(device->info.reason, "tuning and the kernels of networks need NVRTC");
        CU_ASSERT(device->context->has_fixed_programs);
        tnd_gpu_device_close(device);
    }
}

static void other_programs_are_refused_by_their_names(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    struct tandem_error error = {0};
    if (device == NULL) {
        return;
    }
    const struct tnd_gpu_variant variant = {.type = 1 + TANDEM_TYPE_Q4_0, .columns = 3};
    struct tnd_gpu_launch launch;
    struct tnd_gpu_module *module = NULL;
    check_status(
        tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_MATVEC, &variant, &error),
        TANDEM_E_DEVICE,
        "matvec with -DHAVE_FP64=1 -DHAVE_SUBGROUPS=1 -DTYPE=2 -DTYPE_q4_0=1 -DCOLUMNS=3 is "
        "not among the prebuilt kernels",
        &error);
    check_status(tnd_gpu_program_generated(device, 1, "kernel void f() {}", &module, &error),
                 TANDEM_E_DEVICE, "generated with -DHAVE_FP64=1", &error);
    tnd_gpu_device_close(device);
}

/* Nothing would work; so the device says it when it is opened. */
static void settings_that_need_other_programs_are_refused(void)
{
    const struct tnd_gpu_options options = {
        .device = "0", .cache = "off", .without_fp64 = true, .without_subgroups = true};
    struct tnd_gpu_device *device = NULL;
    struct tandem_error error = {0};
    check_status(tnd_test_cl_device_open(&options, &device, &error), TANDEM_E_DEVICE,
                 "smoke without options is not among the prebuilt kernels", &error);
}

/* A table that was measured with NVRTC stays of use. */
static void tile_numbers_of_others_change_no_program(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    struct tandem_error error = {0};
    if (device == NULL) {
        return;
    }
    const struct tnd_gpu_tiles before = device->matmul->tiles;
    check_status(tnd_gpu_tiles_use(device, "matvec_lanes=32,tile_m=32,mma=1,skinny_most=5", &error),
                 TANDEM_OK, NULL, &error);
    struct tnd_gpu_tiles now = device->matmul->tiles;
    check_int(now.skinny_most, 5);
    now.skinny_most = before.skinny_most;
    CU_ASSERT(memcmp(&now, &before, sizeof(now)) == 0);
    tnd_gpu_device_close(device);
}

struct trials {
    int n, n_timed;
};

static bool count(void *user, const struct tnd_tuner_time *time)
{
    struct trials *trials = user;
    trials->n++;
    trials->n_timed += time->n_us > 0;
    return true;
}

static void the_tuner_tries_no_other_numbers(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    struct trials trials = {0, 0};
    struct tandem_error error = {0};
    if (device == NULL) {
        return;
    }
    const struct tnd_gpu_tune_options options = {.tuner = {.timed = count, .user = &trials},
                                                 .is_brief = true};
    check_status(tnd_gpu_tune(device, &options, &error), TANDEM_OK, NULL, &error);
    CU_ASSERT(trials.n > 0);
    check_int(trials.n_timed, trials.n);
    tnd_gpu_device_close(device);
}

/* The first device that a driver finds which lies in a folder with these bytes as its pack (NULL:
 * with none), and with an NVRTC or without. */
static struct tandem_device_info look_at(const void *bytes, size_t n, bool with_nvrtc)
{
    char folder[] = "/tmp/tandem-pack-XXXXXX";
    char paths[3][64];
    char libraries[2][4096];
    char nvrtc[4096];
    struct tnd_gpu_found *found = NULL;
    int n_found = 0;
    const char *library = tnd_test_cl_library();
    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
    snprintf(paths[0], sizeof(paths[0]), "%s/libcuda.so.1", folder);
    snprintf(paths[1], sizeof(paths[1]), "%s/libnvrtc.so.12", folder);
    snprintf(paths[2], sizeof(paths[2]), "%s/" TND_CUDA_PACK_FILE, folder);
    snprintf(nvrtc, sizeof(nvrtc), "%.*s../fake_cuda/libnvrtc.so.12",
             (int)tnd_file_folder_length(library), library);
    CU_ASSERT(realpath(library, libraries[0]) != NULL && symlink(libraries[0], paths[0]) == 0);
    if (with_nvrtc) {
        CU_ASSERT(realpath(nvrtc, libraries[1]) != NULL && symlink(libraries[1], paths[1]) == 0);
    }
    if (bytes != NULL) {
        check_ok(tnd_file_write_atomic(paths[2], bytes, n, NULL));
    }
    const struct tnd_gpu_libraries asked = {.driver = paths[0]};
    check_ok(tnd_cuda_driver.find(&asked, &found, &n_found, NULL));
    CU_ASSERT_FATAL(n_found > 0);
    const struct tandem_device_info info = found[0].info;
    tnd_free(found);
    for (int i = 0; i < 3; i++) {
        unlink(paths[i]);
    }
    rmdir(folder);
    return info;
}

/* What a device without NVRTC says when `bytes` lie in the place of the pack. */
static void check_reason(const void *bytes, size_t n, const char *reason)
{
    const struct tandem_device_info info = look_at(bytes, n, false);
    CU_ASSERT_FALSE(info.is_fit);
    check_contains(info.reason, reason);
}

static bool read_pack(struct tnd_file *out)
{
    char path[4096];
    const char *library = tnd_test_cl_library();
    snprintf(path, sizeof(path), "%.*s" TND_CUDA_PACK_FILE, (int)tnd_file_folder_length(library),
             library);
    return tnd_file_exists(library) && check_ok(tnd_file_read(path, 0, out, NULL));
}

/* NVRTC 13 has left out the oldest GPUs, and 12.4 does not know those of 2025. */
static void the_pack_serves_where_nvrtc_does_not_compile_for_the_device(void)
{
    struct tnd_file pack = {0};
    if (!read_pack(&pack)) {
        return;
    }
    setenv("TANDEM_FAKE_CUDA_VERSION", "12040", 1);
    setenv("TANDEM_FAKE_NVRTC_ONLY", "75", 1);
    struct tandem_device_info info = look_at(pack.data, pack.bytes, true);
    CU_ASSERT_TRUE(info.is_fit);
    check_contains(info.version, "kernels: prebuilt PTX 6.3");
    setenv("TANDEM_FAKE_NVRTC_ONLY", "86", 1);
    info = look_at(pack.data, pack.bytes, true);
    CU_ASSERT_TRUE(info.is_fit);
    check_contains(info.version, "kernels: NVRTC 12.9");
    setenv("TANDEM_FAKE_CUDA_VERSION", "11020", 1); /* as the other tests need it */
    unsetenv("TANDEM_FAKE_NVRTC_ONLY");
    tnd_file_close(&pack);
}

static void a_pack_that_is_wrong_is_told_and_not_used(void)
{
    struct tnd_file file = {0};
    if (!read_pack(&file)) {
        return;
    }
    struct tnd_cuda_packed none = {0};
    struct tnd_text other = TND_TEXT_INIT;
    unsigned char *bytes = malloc(file.bytes);
    memcpy(bytes, file.data, file.bytes);
    check_reason(bytes, file.bytes - 1, "do not have the hash of the header");
    bytes[file.bytes / 2] ^= 1;
    check_reason(bytes, file.bytes,
                 "no NVRTC for it, and pack of kernels: the contents do not have");
    check_reason("", 0, "no header of version 1");
    tnd_cuda_pack_write(&none, 0, 1 + tnd_cuda_pack_sources(), 63, 60, &other);
    check_reason(other.bytes, other.n, "made for another version of the library");
    tnd_text_clear(&other);
    tnd_cuda_pack_write(&none, 0, tnd_cuda_pack_sources(), 80, 60, &other);
    check_reason(other.bytes, other.n, "the driver is older than the prebuilt kernels (PTX 8.0)");
    tnd_text_clear(&other);
    tnd_cuda_pack_write(&none, 0, tnd_cuda_pack_sources(), 63, 900, &other);
    check_reason(other.bytes, other.n, "prebuilt kernels are for compute capability 90.0 on");
    tnd_text_clear(&other);
    tnd_cuda_pack_write(&none, 0, tnd_cuda_pack_sources(), 1U << 31, 60, &other);
    check_reason(other.bytes, other.n, "no version of PTX or of a GPU");
    tnd_text_fini(&other);
    free(bytes);
    tnd_file_close(&file);
}

CU_TestInfo tnd_tests_opencl_ptx[] = {
    {"devices say where their kernels come from", devices_say_where_their_kernels_come_from},
    {"other programs are refused by their names", other_programs_are_refused_by_their_names},
    {"settings that need other programs are refused",
     settings_that_need_other_programs_are_refused},
    {"tile numbers of others change no program", tile_numbers_of_others_change_no_program},
    {"the tuner tries no other numbers", the_tuner_tries_no_other_numbers},
    {"a pack that is wrong is told and not used", a_pack_that_is_wrong_is_told_and_not_used},
    {"the pack serves where NVRTC does not compile for the device",
     the_pack_serves_where_nvrtc_does_not_compile_for_the_device},
    CU_TEST_INFO_NULL};
