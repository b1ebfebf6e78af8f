/* SPDX-License-Identifier: MIT
 * Devices in tables and plans: profiles of OpenCL, transfers, placement. A made-up backend stands
 * under the name of the device; nothing is run on it. */
#include <stdio.h>
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

/* ---- transfers and hand-offs in tables ---- */

static void add_transfer(tandem_table *table, const char *backend, enum tnd_direction direction,
                         int64_t bytes, double us, uint32_t count)
{
    struct tnd_sample sample = {bytes, us, us / 100, count, 7};
    check_ok(tnd_table_add_transfer(table, backend, direction, &sample));
}

static void add_handoff(tandem_table *table, int threads, double spin_us, double wake_us)
{
    struct tnd_handoff handoff = {threads, spin_us, wake_us, 5, 7};
    check_ok(tnd_table_add_handoff(table, &handoff));
}

static void transfers_and_hand_offs_are_kept_in_json(void)
{
    tandem_table *table = tune_new();
    add_transfer(table, "opencl1", TND_UPLOAD, 4096, 5.5, 9);
    add_transfer(table, "opencl", TND_DOWNLOAD, 1 << 20, 300, 9);
    add_transfer(table, "opencl", TND_DOWNLOAD, 4096, 20.25, 9);
    add_transfer(table, "opencl", TND_UPLOAD, 4096, 10.125, 9);
    add_handoff(table, 4, 0.75, 55);
    add_handoff(table, 2, 0.5, 50);
    struct tnd_text text = tune_print(table, TANDEM_TABLE_JSON);
    check_contains(text.bytes, "\"handoffs\": [\n    {\"threads\": 2, \"spin_us\": 0.5");
    tandem_table *again = tune_parse(text.bytes);
    struct tnd_text printed = tune_print(again, TANDEM_TABLE_JSON);
    check_string(printed.bytes, text.bytes);
    check_int(again->n_transfers, 3);
    const struct tnd_curve *curve = tnd_table_transfer(again, "opencl", TND_DOWNLOAD);
    CU_ASSERT_PTR_NOT_NULL_FATAL(curve);
    check_int(curve->n_samples, 2);
    check_int(curve->samples[0].m, 4096);
    CU_ASSERT_EQUAL(curve->samples[0].median_us, 20.25);
    CU_ASSERT_PTR_NULL(tnd_table_transfer(again, "cpu", TND_UPLOAD));
    /* A digit that flipped is noticed here too. */
    char *digit = strstr(text.bytes, "20.25");
    *digit = '3';
    tandem_table *none = NULL;
    struct tandem_error error;
    check_status(tandem_table_parse(text.bytes, text.n, "t", &none, &error), TANDEM_E_FORMAT,
                 "checksum", &error);
    tnd_text_fini(&text);
    tnd_text_fini(&printed);
    tandem_table_free(again);
    tandem_table_free(table);
}

static void what_is_no_transfer_is_refused_with_its_place(void)
{
    static const char *const bad[][2] = {
        {"\"transfers\": 3", "transfers"},
        {"\"transfers\": [{\"backend\": \"opencl\", \"direction\": \"sideways\", \"samples\": []}]",
         "upload or download"},
        {"\"transfers\": [{\"backend\": \"opencl\", \"direction\": \"upload\", \"samples\": "
         "[{\"m\": 1, \"median_us\": 1}]}]",
         "transfers[0].samples[0].bytes"},
        {"\"transfers\": [{\"backend\": \"opencl\", \"direction\": \"upload\", \"samples\": "
         "[{\"bytes\": 1, \"median_us\": -1}]}]",
         "transfers[0].samples[0].median_us"},
        {"\"handoffs\": [{\"threads\": 1, \"spin_us\": 1, \"wake_us\": 1}]", "handoffs[0].threads"},
        {"\"handoffs\": [{\"threads\": 2, \"spin_us\": 1}]", "handoffs[0].wake_us"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[512];
        tandem_table *table = NULL;
        struct tandem_error error;
        snprintf(text, sizeof(text), "{\"version\": 2, \"profiles\": [], \"curves\": [], %s}",
                 bad[i][0]);
        check_status(tandem_table_parse(text, strlen(text), "t", &table, &error), TANDEM_E_FORMAT,
                     bad[i][1], &error);
    }
}

static void transfers_merge_by_count_and_age_in_any_order(void)
{
    tandem_table *a = tune_new();
    tandem_table *b = tune_new();
    tandem_table *other = NULL;
    add_transfer(a, "opencl", TND_UPLOAD, 4096, 10, 9);
    add_transfer(b, "opencl", TND_UPLOAD, 4096, 12, 20);
    add_transfer(b, "opencl", TND_UPLOAD, 8192, 15, 1);
    add_handoff(a, 2, 0.5, 50);
    add_handoff(b, 2, 0.25, 60);
    check_ok(tandem_table_copy(a, &other, NULL));
    check_ok(tandem_table_merge(a, b, NULL));
    check_ok(tandem_table_merge(b, other, NULL));
    check_ok(tandem_table_merge(b, a, NULL));
    struct tnd_text one = tune_print(a, TANDEM_TABLE_JSON);
    struct tnd_text two = tune_print(b, TANDEM_TABLE_JSON);
    check_string(one.bytes, two.bytes);
    CU_ASSERT_EQUAL(tnd_table_transfer(a, "opencl", TND_UPLOAD)->samples[0].median_us, 12);
    CU_ASSERT_EQUAL(a->handoffs[0].spin_us, 0.25);
    tnd_text_fini(&one);
    tnd_text_fini(&two);
    tandem_table_free(a);
    tandem_table_free(b);
    tandem_table_free(other);
}

static CU_TestInfo table_tests[] = {
    {"transfers and hand-offs are kept in JSON", transfers_and_hand_offs_are_kept_in_json},
    {"what is no transfer is refused with its place",
     what_is_no_transfer_is_refused_with_its_place},
    {"transfers merge by count and age in any order",
     transfers_merge_by_count_and_age_in_any_order},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo profile_tests[] = {
    {"the profiles of a device name its stages", the_profiles_of_a_device_name_its_stages},
    {"a profile resolves where its device is open and else says why",
     a_profile_resolves_where_its_device_is_open_and_else_says_why},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_devices[];
CU_SuiteInfo suites_tune_devices[] = {
    {"device profiles", NULL, NULL, set_up, tear_down, profile_tests},
    {"transfers in tables", NULL, NULL, NULL, NULL, table_tests},
    CU_SUITE_INFO_NULL,
};
