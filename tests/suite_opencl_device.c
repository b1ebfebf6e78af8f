/* SPDX-License-Identifier: MIT
 * Listing and choosing devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_program.h"
#include "backends/registry.h"
#include "tandem/device.h"
#include "tests/suite_opencl.h"

extern const struct tandem_backend_api tnd_backend_opencl;

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

static enum tandem_status try_open(int device, const char *settings, bool is_asked_for,
                                   struct tandem_error *error)
{
    const struct tandem_backend_api *api = &tnd_backend_opencl;
    const struct tandem_backend_options options = {.size = sizeof(options),
                                                   .n_threads_max = 1,
                                                   .settings = settings,
                                                   .is_asked_for = is_asked_for,
                                                   .device = device};
    tandem_backend *backend = NULL;
    enum tandem_status status = api->open(&options, &backend, error);
    if (status == TANDEM_OK) {
        api->close(backend);
    }
    return status;
}

static void a_device_is_chosen_by_index_name_and_environment(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){0});
    if (device == NULL) {
        return;
    }
    char name[64];
    char settings[128];
    snprintf(name, sizeof(name), "%.12s", device->info.name);
    name[strcspn(name, ",")] = '\0';
    tnd_gpu_device_close(device);
    struct tandem_error error = {0};
    snprintf(settings, sizeof(settings), "device=%s,cache=off", name);
    check_ok(try_open(0, settings, false, NULL));
    check_status(try_open(0, "device=no such device", false, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "no such device", &error);
    check_status(try_open(0, "device=999", false, &error), TANDEM_E_UNSUPPORTED_MACHINE, "999",
                 &error);
    check_status(try_open(0, "device=none", true, &error), TANDEM_E_UNSUPPORTED_MACHINE, "none",
                 &error);
    setenv("TANDEM_DEVICE", "none", 1);
    check_status(try_open(0, NULL, true, &error), TANDEM_E_UNSUPPORTED_MACHINE, "TANDEM_DEVICE",
                 &error);
    check_status(try_open(1, NULL, true, &error), TANDEM_E_UNSUPPORTED_MACHINE, "TANDEM_DEVICE",
                 &error);
    setenv("TANDEM_DEVICE", "0", 1);
    check_ok(try_open(0, "cache=off", false, NULL));
    check_status(try_open(1, NULL, true, &error), TANDEM_E_UNSUPPORTED_MACHINE,
                 "names no device for it", &error);
    setenv("TANDEM_DEVICE", "999,0", 1);
    check_ok(try_open(1, "cache=off", false, NULL));
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
    check_status(try_open(0, NULL, false, &error), TANDEM_E_UNSUPPORTED_MACHINE, "asked for",
                 &error);
    check_ok(try_open(0, "cache=off", true, NULL));
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
    check_status(try_open(0, "colour=red", true, &error), TANDEM_E_ARGUMENT, "colour", &error);
    check_status(try_open(0, "fp16=perhaps", true, &error), TANDEM_E_ARGUMENT, "fp16", &error);
    check_status(try_open(0, "budget=much", true, &error), TANDEM_E_ARGUMENT, "budget", &error);
    check_status(try_open(0, "library=/nowhere/libOpenCL.so", true, &error),
                 TANDEM_E_UNSUPPORTED_MACHINE, "/nowhere/libOpenCL.so", &error);
    struct tnd_gpu_device *device =
        tnd_test_cl_open((struct tnd_gpu_options){.libraries.blas = "/nowhere/libclblast.so"});
    if (device != NULL) {
        CU_ASSERT(!device->context->has_blas);
        check_contains(device->context->blas_reason, "/nowhere/libclblast.so");
        tnd_gpu_device_close(device);
    }
}

static void switches_take_capabilities_away(void)
{
    struct tnd_gpu_device *device =
        tnd_test_cl_open((struct tnd_gpu_options){.without_fp16 = true,
                                                  .without_fp64 = true,
                                                  .without_subgroups = true,
                                                  .without_unified = true,
                                                  .libraries.blas = "off"});
    if (device == NULL) {
        return;
    }
    CU_ASSERT(!device->caps.fp16 && !device->caps.fp64 && !device->caps.subgroups);
    CU_ASSERT(!device->caps.unified && !device->context->has_blas);
    struct tnd_text options = TND_TEXT_INIT;
    const struct tnd_gpu_variant variant = {.type = 1 + TANDEM_TYPE_Q4_0, .rows = 4};
    tnd_gpu_program_options(device, &variant, &options);
    const char *text = tnd_text_string(&options);
    check_contains(text, " -DTYPE_q4_0=1");
    check_contains(text, " -DTYPE=2 ");
    check_contains(text, " -DROWS=4");
    CU_ASSERT(strstr(text, "HAVE_FP16") == NULL && strstr(text, "COLUMNS") == NULL);
    tnd_text_fini(&options);
    tnd_gpu_device_close(device);
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
    CU_TEST_INFO_NULL,
};
