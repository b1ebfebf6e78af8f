/* SPDX-License-Identifier: MIT
 * Launches in graphs: the same bits as one by one, whatever changes from token to token and
 * whichever call fails; the cost of a launch, and the choice that follows from it. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu_graphs.h"
#include "backends/gpu/gpu_launch.h"
#include "backends/gpu/gpu_matmul_state.h"
#include "backends/gpu/gpu_tune.h"
#include "tests/fake_cuda/fake_control.h"
#include "tests/suite_opencl.h"

enum { LAYERS = 12, STEPS = 7, CELLS = 64, BYTES = CELLS * 4, TOKENS = 9 };

static struct tnd_fake fake;

static bool find_fake(void)
{
    const char *file = tnd_test_cl_library();
    void *library = file != NULL ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *found[] = {library != NULL ? dlsym(library, "tnd_fake_begin") : NULL,
                     library != NULL ? dlsym(library, "tnd_fake_report") : NULL};
    if (found[0] == NULL || found[1] == NULL) {
        tnd_skip("graphs are CUDA's, and its stand-in is not here");
        return false;
    }
    memcpy(&fake.begin, &found[0], sizeof(found[0]));
    memcpy(&fake.report, &found[1], sizeof(found[1]));
    return true;
}

/* Layers of the same kernels, each on blocks of its own; what belongs to the place of a token
 * changes, and the number of cells grows. */
static enum tandem_status compute_token(struct tnd_gpu_device *device,
                                        struct tnd_gpu_block *blocks[LAYERS], int token,
                                        struct tandem_error *error)
{
    const size_t local = 16;
    for (int i = 0; i < LAYERS * STEPS; i++) {
        const int layer = i / STEPS;
        const struct tnd_gpu_range from = {blocks[layer > 0 ? layer - 1 : 0]->buffer, 0};
        const struct tnd_gpu_range to = {blocks[layer]->buffer, 0};
        const bool is_place = i % STEPS == 3;
        const size_t global = is_place ? ((size_t)token + 15) / 16 * 16 + 16 : CELLS;
        struct tnd_gpu_launch launch;
        TND_TRY(tnd_gpu_launch_begin(&launch, device, TND_GPU_SOURCE_SMOKE, NULL, error));
        TND_TRY(tnd_gpu_bind_smoke(&launch, is_place ? to : from, to, local * sizeof(float),
                                   is_place ? 0.5F : 0.25F, is_place ? token : i,
                                   (uint32_t)(is_place ? token + 1 : CELLS), error));
        TND_TRY(tnd_gpu_launch_run(&launch, 1, &global, &local, error));
    }
    return TANDEM_OK;
}

/* A text of up to TOKENS tokens; `out`: all layers after each of them. One layer gets other memory
 * on the way. */
static enum tandem_status compute_text(struct tnd_gpu_device *device, int tokens, float *out,
                                       struct tandem_error *error)
{
    struct tnd_gpu_block *blocks[LAYERS] = {NULL};
    float ones[CELLS];
    uint64_t ticket = 0;
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < CELLS; i++) {
        ones[i] = 1.0F + (float)i;
    }
    for (int i = 0; i < LAYERS && status == TANDEM_OK; i++) {
        status = tnd_gpu_map(device, BYTES, &blocks[i], error);
    }
    for (int token = 0; token < tokens && status == TANDEM_OK; token++) {
        if (token == 5) {
            tnd_gpu_give_back(device, blocks[3]);
            blocks[3] = NULL;
            status = tnd_gpu_map(device, 2 * BYTES, &blocks[3], error);
        }
        for (int i = 0; i < LAYERS && status == TANDEM_OK && token % 5 == 0; i++) {
            status =
                tnd_gpu_upload(device, (struct tandem_place){blocks[i], 0}, ones, BYTES, error);
        }
        if (status == TANDEM_OK) {
            status = compute_token(device, blocks, token, error);
        }
        for (int i = 0; i < LAYERS && status == TANDEM_OK; i++) {
            status = tnd_gpu_download(device, (struct tandem_place){blocks[i], 0},
                                      out + (token * LAYERS + i) * CELLS, BYTES, &ticket, error);
        }
        if (status == TANDEM_OK) {
            status = tnd_gpu_sync(device, ticket, error);
        }
    }
    for (int i = 0; i < LAYERS; i++) {
        tnd_gpu_give_back(device, blocks[i]);
    }
    return status;
}

enum { ALL = TOKENS * LAYERS * CELLS };

static enum tandem_status compute(enum tnd_gpu_graphs graphs, int tokens, float *out,
                                  struct tandem_error *error)
{
    struct tnd_gpu_device *device = NULL;
    const struct tnd_gpu_options options = {.device = "0", .cache = "off", .graphs = graphs};
    memset(out, 0, ALL * sizeof(*out));
    TND_TRY(tnd_test_cl_device_open(&options, &device, error));
    const enum tandem_status status = compute_text(device, tokens, out, error);
    tnd_gpu_device_close(device);
    return status;
}

static void launches_in_graphs_give_the_bits_of_plain_ones(void)
{
    static float plain[ALL], graph[ALL];
    struct tnd_fake_report before, report;
    struct tandem_error error = {0};
    if (!find_fake()) {
        return;
    }
    setenv("TANDEM_FAKE_CUDA_CHECK", "1", 1);
    fake.begin(NULL);
    fake.report(&before);
    check_status(compute(TND_GPU_GRAPHS_OFF, TOKENS, plain, &error), TANDEM_OK, NULL, &error);
    fake.report(&report);
    check_int(report.n_graphs, 0);
    check_int(report.n_launches, TOKENS * LAYERS * STEPS);
    fake.begin(NULL);
    check_status(compute(TND_GPU_GRAPHS_ON, TOKENS, graph, &error), TANDEM_OK, NULL, &error);
    fake.report(&report);
    if (!check_int(report.n_wrong, 0)) {
        fprintf(stderr, "  %s\n", report.wrong);
    }
    CU_ASSERT(report.n_graphs >= 2 * TOKENS && report.n_launches < TOKENS * LAYERS * STEPS / 2);
    CU_ASSERT_EQUAL(memcmp(plain, graph, sizeof(plain)), 0);
    CU_ASSERT(plain[ALL - 1] != plain[ALL - 1 - LAYERS * CELLS] || plain[ALL - 1] != 0);
    for (int kind = 0; kind < TND_FAKE_KIND_COUNT; kind++) {
        check_int(report.n_live[kind], before.n_live[kind]);
    }
    unsetenv("TANDEM_FAKE_CUDA_CHECK");
}

/* Each call of graphs fails, at the first and at a later call: launches go one by one. */
static void graphs_that_fail_are_replaced_by_launches(void)
{
    static const char *const names[] = {"cuGraphCreate", "cuGraphAddKernelNode",
                                        "cuGraphInstantiateWithFlags",
                                        "cuGraphExecKernelNodeSetParams", "cuGraphLaunch"};
    static float plain[ALL], got[ALL];
    struct tandem_error error = {0};
    if (!find_fake()) {
        return;
    }
    check_status(compute(TND_GPU_GRAPHS_OFF, TOKENS, plain, &error), TANDEM_OK, NULL, &error);
    for (int i = 0; i < 10; i++) {
        struct tnd_fake_plan plan = {.first = i % 2 == 0 ? 1 : 3, .code = i % 4 < 2 ? 801 : 2};
        struct tnd_fake_report before, report;
        snprintf(plan.name, sizeof(plan.name), "%s", names[i / 2]);
        fake.report(&before);
        fake.begin(&plan);
        check_status(compute(TND_GPU_GRAPHS_ON, TOKENS, got, &error), TANDEM_OK, NULL, &error);
        fake.report(&report);
        check_int(report.n_failed, 1);
        check_int(report.n_wrong, 0);
        CU_ASSERT_EQUAL(memcmp(plain, got, sizeof(plain)), 0);
        for (int kind = 0; kind < TND_FAKE_KIND_COUNT; kind++) {
            check_int(report.n_live[kind], before.n_live[kind]);
        }
    }
    fake.begin(NULL);
}

/* A launch that fails behind its caller's back is told, to whoever comes next; a lost device leaves
 * nothing. Not every call, but all kinds of them. */
static void failures_of_launches_that_wait_are_told(void)
{
    enum { FEW = 3 };
    static float plain[ALL], got[ALL];
    static const int codes[] = {1, 719};
    struct tandem_error error = {0};
    bool was_seen = false;
    if (!find_fake()) {
        return;
    }
    check_status(compute(TND_GPU_GRAPHS_OFF, FEW, plain, &error), TANDEM_OK, NULL, &error);
    for (int i = 0; i < 2; i++) {
        bool is_over = false;
        for (int64_t n = 1; !is_over && n < 4000; n += 101) {
            const struct tnd_fake_plan plan = {.first = n, .code = codes[i], .is_lost = i == 1};
            struct tnd_fake_report before, report;
            fake.report(&before);
            fake.begin(&plan);
            memset(&error, 0, sizeof(error));
            const enum tandem_status status = compute(TND_GPU_GRAPHS_ON, FEW, got, &error);
            fake.report(&report);
            is_over = report.n_failed == 0;
            fake.begin(NULL);
            if (status == TANDEM_OK) {
                CU_ASSERT_EQUAL(memcmp(plain, got, sizeof(plain)), 0);
            } else {
                CU_ASSERT(error.text[0] != '\0');
                was_seen = was_seen || strstr(error.text, "cuLaunchKernel of smoke") != NULL;
            }
            for (int kind = 0; kind < TND_FAKE_KIND_COUNT && status != TANDEM_OK; kind++) {
                check_int(report.n_live[kind], before.n_live[kind]);
            }
        }
        CU_ASSERT_TRUE(is_over);
    }
    const struct tnd_fake_plan plan = {.first = 40, .code = 1, .name = "cuLaunchKernel"};
    fake.begin(&plan);
    check_status(compute(TND_GPU_GRAPHS_ON, FEW, got, &error), TANDEM_E_DEVICE,
                 "cuLaunchKernel of smoke failed with CUDA_ERROR_INVALID_VALUE", &error);
    fake.begin(NULL);
}

/* Where there are graphs they are off until numbers say otherwise; a setting says more. */
static void graphs_are_used_where_numbers_say_so(void)
{
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){.device = "0"});
    if (device == NULL) {
        return;
    }
    const bool has_graphs = device->driver->use_graphs != NULL;
    CU_ASSERT_FALSE(device->uses_graphs);
    check_ok(tnd_gpu_tiles_use(device, "graphs=1", NULL)); /* as of a table */
    CU_ASSERT_EQUAL(device->uses_graphs, has_graphs);
    device->graphs = TND_GPU_GRAPHS_OFF;
    tnd_gpu_choose_graphs(device);
    CU_ASSERT_FALSE(device->uses_graphs);
    device->graphs = TND_GPU_GRAPHS_ON;
    check_ok(tnd_gpu_tiles_use(device, "graphs=0", NULL));
    CU_ASSERT_EQUAL(device->uses_graphs, has_graphs);
    check_status(tnd_gpu_tiles_use(device, "graphs=2", NULL), TANDEM_E_ARGUMENT, NULL, NULL);
    tnd_gpu_device_close(device);
}

/* What a tuner was told of launches, and what it has chosen. */
struct told {
    const char *choice;
    int n;
};

static bool hear(void *user, const struct tnd_tuner_time *time)
{
    struct told *told = user;
    check_string(time->family, "launches");
    check_string(time->numbers, told->n == 0 ? "graphs=0" : "graphs=1");
    check_int(time->n_us, 12);
    for (int i = 0; i < time->n_us; i++) {
        CU_ASSERT_TRUE(time->us[i] > 0);
    }
    told->n++;
    return true;
}

static void choose_as_told(void *user, const char *family, const char *prior,
                           char out[TND_NUMBERS_MAX])
{
    const struct told *told = user;
    check_string(family, "launches");
    CU_ASSERT_TRUE(strncmp(prior, "graphs=", 7) == 0);
    snprintf(out, TND_NUMBERS_MAX, "%s", told->choice);
}

static void the_cost_of_launches_is_measured_both_ways(void)
{
    static const char *const choices[] = {"graphs=1", "graphs=0"};
    struct tnd_gpu_device *device = tnd_test_cl_open((struct tnd_gpu_options){.device = "0"});
    if (device == NULL) {
        return;
    }
    const bool has_graphs = device->driver->use_graphs != NULL;
    for (int i = 0; i < 2; i++) {
        struct told told = {.choice = choices[i]};
        const struct tnd_gpu_tune_options options = {
            .tuner = {.timed = hear, .choose = choose_as_told, .user = &told},
            .only_launches = true};
        check_ok(tnd_gpu_tune(device, &options, NULL));
        check_int(told.n, has_graphs ? 2 : 1);
        CU_ASSERT_EQUAL(device->uses_graphs, has_graphs && i == 0);
    }
    tnd_gpu_device_close(device);
}

CU_TestInfo tnd_tests_opencl_graphs[] = {
    {"launches in graphs give the bits of plain ones",
     launches_in_graphs_give_the_bits_of_plain_ones},
    {"graphs that fail are replaced by launches", graphs_that_fail_are_replaced_by_launches},
    {"failures of launches that wait are told", failures_of_launches_that_wait_are_told},
    {"graphs are used where numbers say so", graphs_are_used_where_numbers_say_so},
    {"the cost of launches is measured both ways", the_cost_of_launches_is_measured_both_ways},
    CU_TEST_INFO_NULL,
};
