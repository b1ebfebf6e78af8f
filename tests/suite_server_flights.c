/* SPDX-License-Identifier: MIT
 * The engine with batches in flight among ranks that have layers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite_server.h"
#include "tests/support_ranks.h"

enum { JOBS = 3, FIRST = 64 /* tokens of a prompt beside texts, before times are known */ };

static tandem_communicator *leads; /* of the session to be opened */

static enum tandem_status open_session(const tandem_model *model, tandem_runtime *runtime,
                                       struct tandem_session_options *options,
                                       const struct tnd_ranks_options *ranks,
                                       tandem_session **out_session, struct tandem_error *error)
{
    (void)ranks;
    options->communicator = leads;
    options->division = TANDEM_DIVIDE_LAYERS;
    return tandem_session_new(model, runtime, options, out_session, error);
}

static void ask_ids(const struct tnd_served *s, int n, int n_predict, struct srv_reply *reply)
{
    char body[2048];
    int at = snprintf(body, sizeof(body), "{\"n_predict\":%d,\"temperature\":0,\"prompt\":[1",
                      n_predict);
    for (int i = 1; i < n; i++) {
        at += snprintf(body + at, sizeof(body) - (size_t)at, ",%d", 300 + (i * n) % 100);
    }
    snprintf(body + at, sizeof(body) - (size_t)at, "]}");
    tnd_ask(s, "/completion", body, reply);
    CU_ASSERT_PTR_NOT_NULL_FATAL(reply->job);
}

/* A step, in which no text gets more tokens than those that go on may wait for. */
static void step(const struct tnd_served *s)
{
    struct srv_slot before[SRV_MAX_PARALLEL], after[SRV_MAX_PARALLEL];
    const int n = tnd_srv_engine_slots(s->server.engine, before, SRV_MAX_PARALLEL);
    CU_ASSERT_TRUE(tnd_srv_engine_step(s->server.engine));
    (void)tnd_srv_engine_slots(s->server.engine, after, SRV_MAX_PARALLEL);
    for (int i = 0; i < n; i++) {
        CU_ASSERT_TRUE(after[i].n_tokens - before[i].n_tokens <= FIRST);
    }
}

/* Two prompts come while a text goes on, and all three are cancelled at last. */
static void talk(const struct tnd_served *s)
{
    struct srv_reply replies[JOBS];
    ask_ids(s, 3, 200, &replies[0]);
    while (replies[0].job->n_generated < 3) {
        step(s);
    }
    ask_ids(s, 200, 20, &replies[1]);
    ask_ids(s, 190, 20, &replies[2]);
    for (int i = 0; i < 1000 && replies[2].job->n_generated < 3; i++) {
        step(s);
    }
    CU_ASSERT_TRUE(replies[2].job->n_generated >= 3);
    tnd_srv_engine_stop(s->server.engine, 0.0);
    for (int i = 0; i < JOBS; i++) {
        CU_ASSERT_TRUE(tnd_srv_job_is_done(replies[i].job));
        tnd_srv_reply_free(&replies[i]);
    }
}

static enum tandem_status be_rank(tandem_communicator *communicator, void *user,
                                  struct tandem_error *error)
{
    struct tnd_served s = *(const struct tnd_served *)user;
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    options.n_threads = 1;
    options.table_path = "";
    enum tandem_status status = tandem_runtime_open(&options, &runtime, error);
    if (status == TANDEM_OK && tandem_communicator_rank(communicator) > 0) {
        status = tandem_session_follow(s.model, runtime, communicator, error);
    } else if (status == TANDEM_OK) {
        const struct srv_engine_options of_engine = {.model = s.model,
                                                     .runtime = runtime,
                                                     .tokenizer = s.tokenizer,
                                                     .vocabulary = &s.vocabulary,
                                                     .context = 256,
                                                     .n_cells = 1024,
                                                     .n_parallel = 4,
                                                     .max_queue = JOBS,
                                                     .delay_ms = 1e-3,
                                                     .open_session = open_session};
        leads = communicator;
        status = tnd_srv_engine_new(&of_engine, &s.server.engine, error);
        if (status == TANDEM_OK) {
            talk(&s);
            tnd_srv_engine_free(s.server.engine);
        }
        (void)tandem_session_dismiss(communicator, NULL);
    }
    tandem_runtime_close(runtime);
    return status;
}

static void texts_wait_for_prompts_of_no_batch(void)
{
    struct tnd_rank_result results[3];
    struct tnd_served served;
    if (!tnd_served_open(&served, NULL)) {
        return;
    }
    for (int count = 2; count <= 3; count++) {
        tnd_ranks_run(count, be_rank, &served, results);
        for (int r = 0; r < count; r++) {
            check_status(results[r].status, TANDEM_OK, NULL, &results[r].error);
        }
    }
    tnd_served_close(&served);
}

static CU_TestInfo tests[] = {
    {"texts wait for prompts of no batch", texts_wait_for_prompts_of_no_batch},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_server_flights[];
CU_SuiteInfo suites_server_flights[] = {
    {"batches in flight", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
