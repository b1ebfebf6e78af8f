/* SPDX-License-Identifier: MIT
 * The registry of backends and the wrappers of their functions. */
#include <stdlib.h>
#include <stddef.h>
#include <string.h>

#include "backends/settings.h"
#include "base/alloc.h"
#include "tests/suite_backends.h"
#include "tests/suite_backends_stage.h"

/* ---- a backend from outside the tree ---- */

struct guest {
    tandem_backend base;
    char settings[64];
};

static enum tandem_status guest_answer; /* what its functions return */
static int guest_closes;
static bool guest_speaks;

static enum tandem_status guest_open(const struct tandem_backend_options *options,
                                     tandem_backend **out_backend, struct tandem_error *error);

static void guest_close(tandem_backend *backend)
{
    guest_closes++;
    free(backend);
}

static enum tandem_status answer(struct tandem_error *error)
{
    if (guest_answer != TANDEM_OK && guest_speaks) {
        error->status = guest_answer;
        strcpy(error->text, "guest: its own words");
    }
    return guest_answer;
}

static enum tandem_status guest_supports(tandem_backend *backend, const tandem_tensor *node,
                                         uint32_t task, struct tandem_error *error)
{
    (void)backend;
    (void)node;
    (void)task;
    return answer(error);
}

static enum tandem_status guest_run(tandem_backend *backend, const struct tandem_work *piece,
                                    struct tandem_worker *worker)
{
    (void)backend;
    (void)piece;
    return answer(worker->error);
}

static struct tandem_backend_api guest_api(void)
{
    return (struct tandem_backend_api){
        .abi = TANDEM_ABI,
        .size = sizeof(struct tandem_backend_api),
        .name = "guest",
        .kind = TANDEM_KIND_OPENCL,
        .open = guest_open,
        .close = guest_close,
        .supports = guest_supports,
        .run = guest_run,
    };
}

static struct tandem_backend_api opened_api;
static uint32_t guest_api_size; /* 0: what it is */

static enum tandem_status guest_open(const struct tandem_backend_options *options,
                                     tandem_backend **out_backend, struct tandem_error *error)
{
    if (options->settings != NULL && strcmp(options->settings, "refuse") == 0) {
        error->status = TANDEM_E_UNSUPPORTED_MACHINE;
        strcpy(error->text, "guest: no such machine");
        return TANDEM_E_UNSUPPORTED_MACHINE;
    }
    struct guest *guest = calloc(1, sizeof(*guest));
    opened_api = guest_api();
    opened_api.size = guest_api_size > 0 ? guest_api_size : opened_api.size;
    guest->base.api = &opened_api;
    if (options->settings != NULL) {
        strncpy(guest->settings, options->settings, sizeof(guest->settings) - 1);
    }
    *out_backend = &guest->base;
    return TANDEM_OK;
}

static struct tnd_registry *open_registry(const char *backends, const char *settings)
{
    struct tnd_registry_options options = {backends, settings, 4, {0}};
    struct tnd_registry *registry = NULL;
    struct tandem_error error = {0};
    (void)check_status(tnd_registry_open(&options, &registry, &error), TANDEM_OK, NULL, &error);
    return registry;
}

/* ---- tests ---- */

static void slot_0_is_none_and_slot_1_the_cpu(void)
{
    struct tnd_registry *registry = open_registry("sim", NULL);
    check_int(tnd_registry_count(registry), 3);
    check_string(tnd_registry_name(registry, 0), "none");
    check_string(tnd_registry_name(registry, 1), "cpu");
    check_string(tnd_registry_name(registry, 2), "sim");
    CU_ASSERT_PTR_NULL(tnd_registry_name(registry, 3));
    CU_ASSERT_PTR_NULL(tnd_registry_name(registry, -1));
    CU_ASSERT_PTR_NULL(tnd_registry_backend(registry, 0));
    CU_ASSERT_PTR_NOT_NULL(tnd_registry_backend(registry, 1));
    CU_ASSERT_PTR_NULL(tnd_registry_backend(registry, 3));
    check_int(tnd_registry_find(registry, "sim", NULL), 2);
    check_int(tnd_backend_kind(tnd_registry_backend(registry, 1)), TANDEM_KIND_CPU);
    tnd_registry_close(registry);
    tnd_registry_close(NULL);
}

static void backends_that_are_not_open_have_a_reason(void)
{
    struct tnd_registry *registry = open_registry("", NULL);
    const char *reason = NULL;
    check_int(tnd_registry_count(registry), 2);
    check_int(tnd_registry_find(registry, "sim", &reason), -1);
    check_contains(reason, "not asked for");
    check_int(tnd_registry_find(registry, "abacus", &reason), -1);
    check_contains(reason, "known");
    tnd_registry_close(registry);
}

static void the_default_is_everything_but_the_pretended_device(void)
{
    struct tnd_registry *registry = open_registry(NULL, NULL);
    check_int(tnd_registry_find(registry, "sim", NULL), -1);
    const char *reason = NULL;
    if (tnd_registry_find(registry, "openblas", &reason) < 0) {
        CU_ASSERT_TRUE(strlen(reason) > 0);
    }
    tnd_registry_close(registry);
}

static void unknown_names_are_refused(void)
{
    struct tnd_registry *registry = NULL;
    struct tandem_error error = {0};
    struct tnd_registry_options names = {"sim, abacus", NULL, 1, {0}};
    (void)check_status(tnd_registry_open(&names, &registry, &error), TANDEM_E_NOT_FOUND, "'abacus'",
                       &error);
    struct tnd_registry_options settings = {NULL, "sim:latency_us=1;abacus:beads=7", 1, {0}};
    (void)check_status(tnd_registry_open(&settings, &registry, &error), TANDEM_E_NOT_FOUND,
                       "abacus", &error);
    CU_ASSERT_PTR_NULL(registry);
}

static void wrong_settings_are_an_error_with_key_and_value(void)
{
    struct tnd_registry *registry = NULL;
    struct tandem_error error = {0};
    struct tnd_registry_options options = {"sim", "sim:latency_us=soon", 1, {0}};
    (void)check_status(tnd_registry_open(&options, &registry, &error), TANDEM_E_ARGUMENT,
                       "latency_us is 'soon'", &error);
    options.settings = "sim:colour=red";
    (void)check_status(tnd_registry_open(&options, &registry, &error), TANDEM_E_ARGUMENT,
                       "colour=red", &error);
    options.settings = "openblas:threads=3";
    options.backends = "openblas";
    (void)check_status(tnd_registry_open(&options, &registry, &error), TANDEM_E_ARGUMENT,
                       "threads=3", &error);
    CU_ASSERT_PTR_NULL(registry);
}

static void settings_are_split_by_backend_and_pair(void)
{
    char part[16] = "";
    size_t n = 0;
    CU_ASSERT_TRUE(
        tnd_settings_of("sim:a=1,b=2; openblas:path=/x", "openblas", part, sizeof(part), &n));
    check_string(part, "path=/x");
    check_int(n, strlen("path=/x"));
    CU_ASSERT_FALSE(tnd_settings_of("simple:a=1", "sim", part, sizeof(part), &n));
    CU_ASSERT_FALSE(tnd_settings_of(NULL, "sim", part, sizeof(part), &n));
    const char *text = " a=1 ,, b , c==";
    struct tnd_setting pair;
    CU_ASSERT_TRUE(tnd_settings_next(&text, &pair));
    CU_ASSERT_TRUE(tnd_setting_is(&pair, "a") && tnd_setting_value_is(&pair, "1"));
    CU_ASSERT_TRUE(tnd_settings_next(&text, &pair));
    CU_ASSERT_TRUE(tnd_setting_is(&pair, "b") && tnd_setting_value_is(&pair, ""));
    CU_ASSERT_TRUE(tnd_settings_next(&text, &pair));
    CU_ASSERT_TRUE(tnd_setting_is(&pair, "c") && tnd_setting_value_is(&pair, "="));
    CU_ASSERT_FALSE(tnd_settings_next(&text, &pair));
}

static void all_parts_of_a_backends_settings_count(void)
{
    const char *all = "sim:a=1,b=2; openblas:path=/x;sim:c=3";
    char part[16] = "";
    char small[9];
    size_t n = 0;
    CU_ASSERT_TRUE(tnd_settings_of(all, "sim", part, sizeof(part), &n));
    check_string(part, "a=1,b=2,c=3");
    check_int(n, strlen(part));
    memset(small, 'x', sizeof(small));
    CU_ASSERT_TRUE(tnd_settings_of(all, "sim", small, sizeof(small) - 1, &n));
    check_int(n, strlen("a=1,b=2,c=3")); /* the caller sees that it was too long */
    check_int(small[8], 'x');
    struct tnd_registry *registry = NULL;
    struct tandem_error error;
    struct tnd_registry_options options = {"sim", "sim:latency_us=1;sim:colour=red", 1, {0}};
    (void)check_status(tnd_registry_open(&options, &registry, &error), TANDEM_E_ARGUMENT,
                       "colour=red", &error);
}

static void a_backend_from_outside_is_added_with_its_settings(void)
{
    struct tnd_registry *registry = open_registry("", NULL);
    struct tandem_backend_api api = guest_api();
    struct tandem_error error = {0};
    guest_closes = 0;
    (void)check_status(tnd_registry_add(registry, &api, "x=1", &error), TANDEM_OK, NULL, &error);
    check_int(tnd_registry_find(registry, "guest", NULL), 2);
    check_string(((struct guest *)tnd_registry_backend(registry, 2))->settings, "x=1");
    (void)check_status(tnd_registry_add(registry, &api, NULL, &error), TANDEM_E_EXISTS, "guest",
                       &error);
    tnd_registry_close(registry);
    check_int(guest_closes, 1);
}

static void a_backend_built_for_another_interface_is_refused(void)
{
    struct tnd_registry *registry = open_registry("", NULL);
    struct tandem_error error = {0};
    struct tandem_backend_api api = guest_api();
    api.abi = TANDEM_ABI + 1;
    (void)check_status(tnd_registry_add(registry, &api, NULL, &error), TANDEM_E_ABI, "interface 2",
                       &error);
    api = guest_api();
    api.size = (uint32_t)offsetof(struct tandem_backend_api, supports);
    (void)check_status(tnd_registry_add(registry, &api, NULL, &error), TANDEM_E_ABI, "bytes",
                       &error);
    api = guest_api();
    api.size = (uint32_t)sizeof(api) + 8;
    (void)check_status(tnd_registry_add(registry, &api, NULL, &error), TANDEM_OK, NULL, &error);
    tnd_registry_close(registry);
}

static bool never_called(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    (void)type;
    (void)out;
    CU_FAIL("a function behind the struct was called");
    return i < 0;
}

/* What stands in memory behind an older, shorter struct is none of its functions. */
static void an_older_backend_lacks_what_was_added_since(void)
{
    struct tnd_registry *registry = open_registry("", NULL);
    struct tandem_error error = {0};
    struct tandem_backend_api api = guest_api();
    struct tandem_backend_fact fact;
    api.size = (uint32_t)offsetof(struct tandem_backend_api, prepare);
    api.memory = TANDEM_MEMORY_OWN;
    api.profile = never_called;
    guest_api_size = api.size;
    (void)check_ok(tnd_registry_add(registry, &api, NULL, &error));
    tandem_backend *backend = tnd_registry_backend(registry, 2);
    CU_ASSERT_FALSE(tnd_backend_is_own(backend));
    CU_ASSERT_FALSE(tnd_backend_identity(backend, 0, &fact));
    check_string(tnd_backend_describe(backend), "guest");
    tnd_registry_close(registry);
    guest_api_size = 0;
}

/* ---- kinds, devices and profiles ---- */

static int n_boards;

static int list_boards(struct tandem_device_info *out, int n, struct tandem_error *error)
{
    (void)out;
    (void)n;
    (void)error;
    return n_boards;
}

static enum tandem_status open_board(const struct tandem_backend_options *options,
                                     tandem_backend **out_backend, struct tandem_error *error)
{
    if (options->device >= n_boards) {
        error->status = TANDEM_E_UNSUPPORTED_MACHINE;
        strcpy(error->text, "no such board");
        return TANDEM_E_UNSUPPORTED_MACHINE;
    }
    return guest_open(options, out_backend, error);
}

static bool board_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    *out = (struct tandem_backend_profile){.name = i == 0 ? "board" : "board+*", .what = "a board"};
    out->compute.task = type != TANDEM_TYPE_I32 ? TANDEM_TASK_MUL_MAT_F32 : TANDEM_TASK_NONE;
    out->compute.place = i == 0 ? TANDEM_ON_SELF : TANDEM_ON_LIBRARY;
    return i < 2;
}

static struct tandem_backend_api board_api(void)
{
    struct tandem_backend_api api = guest_api();
    api.name = "board";
    api.open = open_board;
    api.devices = list_boards;
    api.profile = board_profile;
    return api;
}

static int find_profile(const struct tnd_registry *registry, const char *name)
{
    const struct tnd_profiles *profiles = tnd_registry_profiles(registry);
    for (int i = 0; i < profiles->n; i++) {
        if (strcmp(profiles->list[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static void every_device_of_a_kind_is_opened_and_has_the_profiles_of_its_kind(void)
{
    struct tnd_registry *registry = open_registry("", NULL);
    struct tandem_backend_api api = board_api();
    struct tandem_error error = {0};
    int before = tnd_registry_profiles(registry)->n;
    n_boards = 12;
    (void)check_ok(tnd_registry_add(registry, &api, NULL, &error));
    check_int(tnd_registry_count(registry), 2 + 12);
    check_int(tnd_registry_find(registry, "board", NULL), 2);
    check_int(tnd_registry_find(registry, "board11", NULL), 13);
    check_string(tnd_backend_describe(tnd_registry_backend(registry, 13)), "board11");
    check_int(tnd_registry_profiles(registry)->n, before + 24);
    int last = find_profile(registry, "board+openblas@board11");
    CU_ASSERT_FATAL(last > 0);
    const struct tnd_profile *profile = &tnd_registry_profiles(registry)->list[last];
    check_string(profile->device, "board11");
    check_string(profile->library->name, "openblas");
    tnd_registry_close(registry);
}

static void names_of_devices_are_those_of_their_kind_with_a_number(void)
{
    static const struct {
        const char *name;
        int index;
    } cases[] = {{"opencl", 0},    {"opencl1", 1},   {"opencl15", 15}, {"opencl16", -1},
                 {"opencl0", -1},  {"opencl01", -1}, {"openclx", -1},  {"opencl1x", -1},
                 {"openblas", -1}, {"open", -1},     {"", -1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_int(tnd_device_index("opencl", cases[i].name, strlen(cases[i].name)), cases[i].index);
    }
    char name[TND_BACKEND_NAME];
    tnd_device_name("thirteen-char", 15, name);
    check_string(name, "thirteen-char15");
    struct tnd_profile found;
    const struct tnd_profiles *built_in = tnd_profiles_built_in();
    CU_ASSERT_TRUE(tnd_profiles_find(built_in, "opencl+openblas@opencl7", &found));
    check_string(found.device, "opencl7");
    CU_ASSERT_FALSE(tnd_profiles_find(built_in, "opencl@openblas1", &found));
    CU_ASSERT_FALSE(tnd_profiles_find(built_in, "opencl@opencl", &found));
    CU_ASSERT_FALSE(tnd_profiles_find(built_in, "cpu-packed@", &found));
    check_string(built_in->list[0].name, "cpu");
}

static bool one_setting(int i, struct tandem_backend_setting *out)
{
    *out = (struct tandem_backend_setting){"x", "NUMBER", "anything"};
    return i == 0;
}

static void a_setting_that_a_backend_does_not_list_is_refused(void)
{
    struct tnd_registry *registry = open_registry("", NULL);
    struct tandem_backend_api api = guest_api();
    struct tandem_error error = {0};
    api.setting = one_setting;
    (void)check_status(tnd_registry_add(registry, &api, "x=1,y=2", &error), TANDEM_E_ARGUMENT,
                       "'y=2' is not known, expected x=NUMBER", &error);
    (void)check_ok(tnd_registry_add(registry, &api, "x=1", &error));
    tnd_registry_close(registry);
}

static void a_backend_without_what_is_needed_is_refused(void)
{
    struct tnd_registry *registry = open_registry("", NULL);
    struct tandem_error error = {0};
    struct tandem_backend_api api = guest_api();
    api.run = NULL;
    (void)check_status(tnd_registry_add(registry, &api, NULL, &error), TANDEM_E_ARGUMENT, "lacks",
                       &error);
    api = guest_api();
    api.supports = NULL;
    (void)check_status(tnd_registry_add(registry, &api, NULL, &error), TANDEM_E_ARGUMENT, "lacks",
                       &error);
    static const char *const names[] = {"", "none", "a:b", "a b", "a+b", "a@b", "fourteen-chars"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        api = guest_api();
        api.name = names[i];
        (void)check_status(tnd_registry_add(registry, &api, NULL, &error), TANDEM_E_ARGUMENT,
                           "name", &error);
    }
    api = guest_api();
    (void)check_status(tnd_registry_add(registry, &api, "refuse", &error),
                       TANDEM_E_UNSUPPORTED_MACHINE, "no such machine", &error);
    check_int(tnd_registry_count(registry), 2);
    tnd_registry_close(registry);
}

static bool profile_that_finalizes(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    (void)type;
    out->name = "guest";
    out->what = "a product and what nobody would run behind it";
    out->compute.task = TANDEM_TASK_NODE;
    out->finalize.task = TANDEM_TASK_FINALIZE;
    return i == 0;
}

/* The library itself fetches results, of backends with memory of their own. */
static void a_profile_whose_finalize_nobody_would_run_is_refused(void)
{
    struct tandem_error error = {0};
    struct tnd_registry *registry = open_registry("", NULL);
    struct tandem_backend_api api = guest_api();
    api.profile = profile_that_finalizes;
    (void)check_status(tnd_registry_add(registry, &api, NULL, &error), TANDEM_E_ARGUMENT,
                       "FINALIZE of profile guest", &error);
    tnd_registry_close(registry);
}

static void slots_run_out_with_a_clear_error(void)
{
    struct tnd_registry *registry = open_registry("", NULL);
    struct tandem_error error = {0};
    struct tandem_backend_api apis[15];
    char names[15][8];
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < 15; i++) {
        apis[i] = guest_api();
        strcpy(names[i], "g0");
        names[i][1] = (char)('a' + i);
        apis[i].name = names[i];
        status = tnd_registry_add(registry, &apis[i], NULL, &error);
    }
    (void)check_status(status, TANDEM_E_LIMIT, "slots", &error);
    check_int(tnd_registry_count(registry), 16);
    tnd_registry_close(registry);
}

static void missing_functions_have_defaults(void)
{
    struct tnd_registry *registry = open_registry("", NULL);
    struct tandem_backend_api api = guest_api();
    struct tandem_error error = {0};
    (void)check_ok(tnd_registry_add(registry, &api, NULL, &error));
    tandem_backend *backend = tnd_registry_backend(registry, 2);
    tandem_context *context = NULL;
    (void)check_ok(tandem_context_new(NULL, &context, &error));
    tandem_tensor *node = tnd_test_product(context, TANDEM_TYPE_F32, 2, 2, 2, 1);
    check_string(tnd_backend_describe(backend), "guest");
    CU_ASSERT_FALSE(tnd_backend_is_async(backend));
    check_int(tnd_backend_workspace(backend, node, TANDEM_TASK_NODE), 0);
    check_int(tnd_backend_scratch(backend, node, TANDEM_TASK_NODE), 0);
    uint64_t ticket = 77;
    struct tandem_work piece = {.node = node,
                                .task = TANDEM_TASK_NODE,
                                .row_begin = 0,
                                .row_end = 2,
                                .workspace = NULL,
                                .workspace_bytes = 0};
    (void)check_status(tnd_backend_submit(backend, &piece, &ticket, &error), TANDEM_E_STATE,
                       "no asynchronous device", &error);
    check_int(ticket, 77);
    (void)check_status(tnd_backend_sync(backend, 1, &error), TANDEM_E_STATE, NULL, &error);
    void *handle = &handle;
    (void)check_ok(tnd_backend_prepare(backend, node->src[0], &handle, &error));
    CU_ASSERT_PTR_NULL(handle);
    tnd_backend_forget(backend, handle);
    (void)check_status(tnd_backend_supports(backend, node, TANDEM_TASK_NONE, &error),
                       TANDEM_E_UNSUPPORTED_BACKEND, "none", &error);
    tandem_context_free(context);
    tnd_registry_close(registry);
}

static void every_failure_gets_a_status_and_a_text(void)
{
    struct tnd_registry *registry = open_registry("", NULL);
    struct tandem_backend_api api = guest_api();
    struct tandem_error error = {0};
    (void)check_ok(tnd_registry_add(registry, &api, NULL, &error));
    tandem_backend *backend = tnd_registry_backend(registry, 2);
    guest_answer = TANDEM_E_DEVICE;
    guest_speaks = true;
    (void)check_status(tnd_backend_supports(backend, NULL, TANDEM_TASK_NODE, &error),
                       TANDEM_E_DEVICE, "its own words", &error);
    guest_speaks = false;
    (void)check_status(tnd_backend_supports(backend, NULL, TANDEM_TASK_NODE, &error),
                       TANDEM_E_DEVICE, "backend guest: supports failed", &error);
    guest_answer = (enum tandem_status)4711;
    (void)check_status(tnd_backend_supports(backend, NULL, TANDEM_TASK_NODE, &error),
                       TANDEM_E_DEVICE, "4711", &error);
    struct tandem_worker worker = {.count = 1, .own_threads = 1, .error = &error};
    struct tandem_work piece = {0};
    (void)check_status(tnd_backend_run(backend, &piece, &worker), TANDEM_E_DEVICE,
                       "run returned 4711", &error);
    CU_ASSERT_PTR_EQUAL(worker.error, &error);
    worker.error = NULL;
    (void)check_status(tnd_backend_run(backend, &piece, &worker), TANDEM_E_DEVICE, NULL, NULL);
    guest_answer = TANDEM_OK;
    tnd_registry_close(registry);
}

static void opening_survives_every_failing_allocation(void)
{
    long live = tnd_alloc_live();
    for (long nth = 1; nth < 64; nth++) {
        struct tnd_registry_options options = {"sim", NULL, 2, {0}};
        struct tnd_registry *registry = NULL;
        struct tandem_error error = {0};
        tnd_alloc_fail_after(nth);
        enum tandem_status status = tnd_registry_open(&options, &registry, &error);
        tnd_alloc_fail_after(-1);
        if (status == TANDEM_OK) {
            tnd_registry_close(registry);
            check_int(tnd_alloc_live(), live);
            return;
        }
        check_int(status, TANDEM_E_MEMORY);
        CU_ASSERT_PTR_NULL(registry);
        check_int(tnd_alloc_live(), live);
    }
    CU_FAIL("never opened");
}

static void tasks_have_their_pinned_names(void)
{
    check_string(tandem_task_name(TANDEM_TASK_QUANTIZE_X), "quantize_x");
    check_string(tandem_task_name(TANDEM_TASK_MUL_MAT_F32), "mul_mat_f32");
    check_string(tandem_task_name((enum tandem_task)99), "unknown");
}

CU_TestInfo tnd_tests_registry[] = {
    {"slot 0 is none and slot 1 the cpu", slot_0_is_none_and_slot_1_the_cpu},
    {"backends that are not open have a reason", backends_that_are_not_open_have_a_reason},
    {"the default is everything but the pretended device",
     the_default_is_everything_but_the_pretended_device},
    {"unknown names are refused", unknown_names_are_refused},
    {"wrong settings are an error with key and value",
     wrong_settings_are_an_error_with_key_and_value},
    {"settings are split by backend and pair", settings_are_split_by_backend_and_pair},
    {"all parts of a backend's settings count", all_parts_of_a_backends_settings_count},
    {"a backend from outside is added with its settings",
     a_backend_from_outside_is_added_with_its_settings},
    {"a backend built for another interface is refused",
     a_backend_built_for_another_interface_is_refused},
    {"an older backend lacks what was added since", an_older_backend_lacks_what_was_added_since},
    {"every device of a kind is opened and has the profiles of its kind",
     every_device_of_a_kind_is_opened_and_has_the_profiles_of_its_kind},
    {"names of devices are those of their kind with a number",
     names_of_devices_are_those_of_their_kind_with_a_number},
    {"a setting that a backend does not list is refused",
     a_setting_that_a_backend_does_not_list_is_refused},
    {"a backend without what is needed is refused", a_backend_without_what_is_needed_is_refused},
    {"a profile whose FINALIZE nobody would run is refused",
     a_profile_whose_finalize_nobody_would_run_is_refused},
    {"slots run out with a clear error", slots_run_out_with_a_clear_error},
    {"missing functions have defaults", missing_functions_have_defaults},
    {"every failure gets a status and a text", every_failure_gets_a_status_and_a_text},
    {"opening survives every failing allocation", opening_survives_every_failing_allocation},
    {"tasks have their pinned names", tasks_have_their_pinned_names},
    CU_TEST_INFO_NULL,
};
