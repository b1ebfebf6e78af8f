/* SPDX-License-Identifier: MIT
 * One of two ranks has a pretended device with memory of its own, and a table by which that is
 * faster: it keeps what it has room for of the rank's own part, and the logits stay what they are.
 */
#include <stdio.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "runtime/tnd_runtime.h"
#include "tandem/tandem.h"
#include "tests/suite_llama_naive.h"
#include "tests/support_ranks.h"
#include "tests/support_tune.h"

enum { WITH_DEVICE = 1, PROMPT = 30 };

struct job {
    const tandem_model *model;
    enum tandem_division division;
    const char *settings; /* of the device; NULL: there is none */
    bool only_if_needed;
    float logits[NAIVE_VOCABULARY];
    struct tandem_place_info placed; /* on the rank with the device */
    struct tnd_sim_statistics used;
};

/* All shapes that weights of a part may have; the device takes a tenth of the time. */
static tandem_table *make_table(void)
{
    tandem_table *table = tune_new();
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "cpu" : tune_sim_names[0];
        const enum tandem_task task = tune_add_profile(table, name);
        for (int64_t n = 32; n <= 256; n += 32) {
            for (int64_t k = 32; k <= 256; k += 32) {
                const double us = (i == 0 ? 1 : 0.1) * (double)(n * k);
                tune_add_rate(table, name, task, n, k, us, 0.01 * us);
            }
        }
    }
    tune_add_link(table, tune_sim_names[0], 1, 10000);
    return table;
}

static enum tandem_status open_runtime(const struct job *job, bool has_device,
                                       struct tandem_backend_api *api, tandem_runtime **out,
                                       struct tandem_error *error)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu";
    enum tandem_status status = tandem_runtime_open(&options, out, error);
    if (status != TANDEM_OK || !has_device) {
        return status;
    }
    *api = tune_sim_api(0);
    status = tandem_runtime_add_backend(*out, api, job->settings, error);
    tandem_table *table = make_table();
    status = status == TANDEM_OK ? tandem_runtime_set_table(*out, table, error) : status;
    tandem_table_free(table);
    return status;
}

/* A prompt, and a token behind it. */
static enum tandem_status lead(struct job *job, tandem_runtime *runtime,
                               tandem_communicator *communicator, struct tandem_error *error)
{
    const struct tandem_session_options options = {.size = sizeof(options),
                                                   .communicator = communicator,
                                                   .prompt_batch = PROMPT,
                                                   .division = job->division};
    struct tandem_place_options how = TANDEM_PLACE_OPTIONS_INIT;
    int32_t tokens[NAIVE_TOKENS];
    tandem_session *session = NULL;
    how.only_if_needed = job->only_if_needed;
    naive_tokens(tokens, NAIVE_TOKENS);
    enum tandem_status status = tandem_session_new(job->model, runtime, &options, &session, error);
    if (status == TANDEM_OK && job->settings != NULL) {
        status = tandem_session_place(session, &how, error);
    }
    for (int i = 0; i < 2 && status == TANDEM_OK; i++) {
        status = tandem_session_decode(session, tokens + i * PROMPT, i == 0 ? PROMPT : 1, 0, error);
    }
    if (status == TANDEM_OK) {
        memcpy(job->logits, tandem_session_logits(session, 0), sizeof(job->logits));
    }
    tandem_session_free(session);
    (void)tandem_session_dismiss(communicator, NULL);
    return status;
}

static enum tandem_status be_rank(tandem_communicator *communicator, void *user,
                                  struct tandem_error *error)
{
    struct job *job = user;
    const int rank = tandem_communicator_rank(communicator);
    const bool has_device = rank == WITH_DEVICE && job->settings != NULL;
    struct tandem_backend_api api;
    struct tnd_runtime_parts parts;
    tandem_runtime *runtime = NULL;
    enum tandem_status status = open_runtime(job, has_device, &api, &runtime, error);
    if (status == TANDEM_OK) {
        status = rank == 0 ? lead(job, runtime, communicator, error)
                           : tandem_session_follow(job->model, runtime, communicator, error);
    }
    if (status == TANDEM_OK && has_device) {
        tnd_runtime_parts(runtime, &parts);
        tnd_sim_statistics(
            tnd_registry_backend(parts.registry, tandem_runtime_backend_count(runtime) - 1),
            &job->used);
        status = tandem_runtime_placement(runtime, &job->placed);
    }
    tandem_runtime_close(runtime);
    return status;
}

static void run(struct job *job)
{
    struct tnd_rank_result results[2];
    job->placed = (struct tandem_place_info)TANDEM_PLACE_INFO_INIT;
    memset(&job->used, 0, sizeof(job->used));
    tnd_ranks_run(2, be_rank, job, results);
    for (int r = 0; r < 2; r++) {
        check_status(results[r].status, TANDEM_OK, NULL, &results[r].error);
    }
}

static void check_same(const struct job *job, const float *want, const char *what)
{
    check_nmse(job->logits, want, NAIVE_VOCABULARY, 1e-9, what);
}

static void a_rank_keeps_of_its_part_what_its_device_has_room_for(void)
{
    static const enum tandem_division divisions[] = {TANDEM_DIVIDE_ROWS, TANDEM_DIVIDE_LAYERS,
                                                     TANDEM_DIVIDE_MIXED};
    const struct naive_spec spec = {.context = 0};
    tandem_source *source = naive_source(&spec);
    struct job job = {.only_if_needed = true};
    tandem_model *model = NULL;
    check_ok(tandem_model_new(source, &model, NULL));
    job.model = model;
    for (int d = 0; d < 3; d++) {
        float want[NAIVE_VOCABULARY];
        job.division = divisions[d];
        job.settings = NULL;
        run(&job);
        memcpy(want, job.logits, sizeof(want));
        /* all of it has room: nothing is decided, and all of it goes there */
        job.settings = "budget=100000000";
        run(&job);
        check_same(&job, want, "all of a part on a device");
        check_int(job.placed.n_weights, 0);
        CU_ASSERT_TRUE(job.used.weight_uploads > 0);
        /* a part of it; of rows and layers beside each other, none */
        job.settings = "budget=200000";
        run(&job);
        check_same(&job, want, "some of a part on a device");
        CU_ASSERT_TRUE(job.placed.n_weights > 0 && job.placed.placed_bytes <= 200000);
        const bool is_mixed = divisions[d] == TANDEM_DIVIDE_MIXED;
        CU_ASSERT_EQUAL(job.placed.n_placed > 0, !is_mixed);
        CU_ASSERT_EQUAL(job.used.weight_uploads > 0, !is_mixed);
        if ((job.placed.n_placed > 0) == is_mixed) {
            printf("  division %d: %d of %d weights\n", d, job.placed.n_placed,
                   job.placed.n_weights);
        }
    }
    tandem_model_free(model);
    tandem_source_close(source);
}

/* Rank 0 says which rank cannot, and all go on as before. */
static void a_rank_that_cannot_place_its_part_is_named(void)
{
    const struct naive_spec spec = {.context = 0};
    tandem_source *source = naive_source(&spec);
    struct tnd_rank_result results[2];
    tandem_model *model = NULL;
    check_ok(tandem_model_new(source, &model, NULL));
    struct job job = {.model = model,
                      .settings = "",
                      .placed = TANDEM_PLACE_INFO_INIT}; /* nobody knows its memory */
    tnd_ranks_run(2, be_rank, &job, results);
    check_status(results[0].status, TANDEM_E_ARGUMENT, "rank 1 on", &results[0].error);
    check_status(results[0].status, TANDEM_E_ARGUMENT, "memory of simown", &results[0].error);
    check_ok(results[1].status);
    tandem_model_free(model);
    tandem_source_close(source);
}

static CU_TestInfo tests[] = {
    {"a rank keeps of its part what its device has room for",
     a_rank_keeps_of_its_part_what_its_device_has_room_for},
    {"a rank that cannot place its part is named", a_rank_that_cannot_place_its_part_is_named},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_cluster_devices[];
CU_SuiteInfo suites_cluster_devices[] = {
    {"devices of ranks", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
