/* SPDX-License-Identifier: MIT
 * Devices in tables and plans: profiles of OpenCL, transfers, placement. A made-up backend stands
 * under the name of the device; nothing is run on it. */
#include <stdlib.h>
#include <string.h>

#include "backends/registry.h"
#include "tests/suite_tune.h"
#include "tune/planner.h"
#include "tune/profiles.h"

/* ---- a device that accepts works and never does them ---- */

static const struct tandem_backend_api device_api;

static enum tandem_status device_open(const struct tandem_backend_options *options,
                                      tandem_backend **out_backend, struct tandem_error *error)
{
    (void)options;
    (void)error;
    *out_backend = calloc(1, sizeof(**out_backend));
    (*out_backend)->api = &device_api;
    return TANDEM_OK;
}

static void device_close(tandem_backend *backend)
{
    free(backend);
}

static enum tandem_status device_supports(tandem_backend *backend, const tandem_tensor *node,
                                          uint32_t task, struct tandem_error *error)
{
    (void)backend;
    (void)node;
    (void)task;
    (void)error;
    return TANDEM_OK;
}

static enum tandem_status device_submit(tandem_backend *backend, const struct tandem_work *work,
                                        uint64_t *out_ticket, struct tandem_error *error)
{
    (void)backend;
    (void)work;
    (void)out_ticket;
    (void)error;
    return TANDEM_E_DEVICE;
}

static enum tandem_status device_sync(tandem_backend *backend, uint64_t ticket,
                                      struct tandem_error *error)
{
    (void)backend;
    (void)ticket;
    (void)error;
    return TANDEM_OK;
}

static enum tandem_status device_map(tandem_backend *backend, void *begin, size_t bytes,
                                     struct tandem_error *error)
{
    (void)backend;
    (void)begin;
    (void)bytes;
    (void)error;
    return TANDEM_OK;
}

static void device_unmap(tandem_backend *backend, void *begin)
{
    (void)backend;
    (void)begin;
}

static enum tandem_status device_upload(tandem_backend *backend, const void *begin, size_t bytes,
                                        struct tandem_error *error)
{
    (void)backend;
    (void)begin;
    (void)bytes;
    (void)error;
    return TANDEM_OK;
}

static enum tandem_status device_download(tandem_backend *backend, void *begin, size_t bytes,
                                          uint64_t *out_ticket, struct tandem_error *error)
{
    (void)backend;
    (void)begin;
    (void)bytes;
    (void)error;
    *out_ticket = 1;
    return TANDEM_OK;
}

static const struct tandem_backend_api device_api = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "opencl",
    .kind = TANDEM_KIND_OPENCL,
    .open = device_open,
    .close = device_close,
    .supports = device_supports,
    .submit = device_submit,
    .sync = device_sync,
    .memory = TANDEM_MEMORY_OWN,
    .map = device_map,
    .unmap = device_unmap,
    .upload = device_upload,
    .download = device_download,
};

static struct tnd_registry *registry;

static void set_up(void)
{
    struct tnd_registry_options options;
    memset(&options, 0, sizeof(options));
    options.backends = "openblas";
    options.n_threads_max = 8;
    check_ok(tnd_registry_open(&options, &registry, NULL));
    check_ok(tnd_registry_add(registry, &device_api, NULL, NULL));
}

static void tear_down(void)
{
    tnd_registry_close(registry);
}

/* ---- profiles ---- */

static void the_profiles_of_a_device_name_its_stages(void)
{
    static const struct {
        const char *profile;
        const char *init, *compute;
        enum tandem_task compute_task;
        enum tandem_backend_kind compute_kind;
    } want[] = {
        {"opencl", "", "opencl", TANDEM_TASK_NODE, TANDEM_KIND_OPENCL},
        {"cpu+clblast", "cpu", "opencl", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_CLBLAST},
        {"opencl+clblast", "opencl", "opencl", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_CLBLAST},
        {"opencl+openblas", "opencl", "openblas", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_OPENBLAS},
        {"opencl@opencl1", "", "opencl1", TANDEM_TASK_NODE, TANDEM_KIND_OPENCL},
        {"cpu+clblast@opencl1", "cpu", "opencl1", TANDEM_TASK_MUL_MAT_F32, TANDEM_KIND_CLBLAST},
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct tnd_table_profile found;
        memset(&found, 0, sizeof(found));
        CU_ASSERT_TRUE(
            tnd_profile_describe(tnd_profile_find(want[i].profile), TANDEM_TYPE_Q4_0, &found));
        const struct tnd_table_stage *init = &found.stage[TANDEM_STAGE_INIT];
        const struct tnd_table_stage *compute = &found.stage[TANDEM_STAGE_COMPUTE];
        check_string(init->backend, want[i].init);
        check_string(compute->backend, want[i].compute);
        check_int(init->task, want[i].init[0] != '\0' ? TANDEM_TASK_DEQUANTIZE_W : 0);
        check_int(compute->task, want[i].compute_task);
        check_int(compute->kind, want[i].compute_kind);
        CU_ASSERT_TRUE(compute->wait);
        CU_ASSERT_FALSE(compute->parallel);
        check_int(found.stage[TANDEM_STAGE_FINALIZE].kind, 0);
        /* F32 weights need no INIT, indices are no weights. */
        CU_ASSERT_TRUE(
            tnd_profile_describe(tnd_profile_find(want[i].profile), TANDEM_TYPE_F32, &found));
        check_string(found.stage[TANDEM_STAGE_INIT].backend, "");
        CU_ASSERT_FALSE(
            tnd_profile_describe(tnd_profile_find(want[i].profile), TANDEM_TYPE_I32, &found));
    }
}

static void a_profile_resolves_where_its_device_is_open_and_else_says_why(void)
{
    struct tandem_task_config stages[TANDEM_STAGES];
    struct tnd_table_profile profile;
    char reason[128] = "";
    int slot = tnd_registry_find(registry, "opencl", NULL);
    CU_ASSERT_TRUE(
        tnd_profile_describe(tnd_profile_find("cpu+clblast"), TANDEM_TYPE_Q4_0, &profile));
    CU_ASSERT_TRUE(tnd_profile_resolve(&profile, registry, stages, reason, sizeof(reason)));
    check_int(stages[TANDEM_STAGE_INIT].backend, TANDEM_BACKEND_CPU);
    CU_ASSERT_TRUE(stages[TANDEM_STAGE_INIT].parallel);
    check_int(stages[TANDEM_STAGE_COMPUTE].backend, slot);
    CU_ASSERT_TRUE(stages[TANDEM_STAGE_COMPUTE].wait);
    CU_ASSERT_TRUE(
        tnd_profile_describe(tnd_profile_find("opencl@opencl1"), TANDEM_TYPE_Q4_0, &profile));
    CU_ASSERT_FALSE(tnd_profile_resolve(&profile, registry, stages, reason, sizeof(reason)));
    check_contains(reason, "opencl1");
}

static CU_TestInfo profile_tests[] = {
    {"the profiles of a device name its stages", the_profiles_of_a_device_name_its_stages},
    {"a profile resolves where its device is open and else says why",
     a_profile_resolves_where_its_device_is_open_and_else_says_why},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_devices[];
CU_SuiteInfo suites_tune_devices[] = {
    {"device profiles", NULL, NULL, set_up, tear_down, profile_tests},
    CU_SUITE_INFO_NULL,
};
