/* SPDX-License-Identifier: MIT
 * Batches of several texts in flight among ranks that have layers: the bits of one rank, whatever
 * else happens between the start and the end of a batch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite_llama_naive.h"
#include "tests/support_rank_sessions.h"
#include "tests/support_ranks.h"

enum { TEXTS = 5, STEPS = 6, STATE = 1 << 18 };

struct job;
typedef enum tandem_status (*script_fn)(struct job *job, tandem_session *session,
                                        struct tandem_error *error);
struct job {
    const tandem_model *model;
    struct tandem_session_options options;
    script_fn script;
    int expected; /* batches in flight for TEXTS texts */
    float logits[TEXTS][STEPS][NAIVE_VOCABULARY];
    float embeddings[TEXTS][256];
    char *state; /* {STATE} */
    size_t n;
};

static enum tandem_status be_rank(tandem_communicator *communicator, void *user,
                                  struct tandem_error *error)
{
    struct job *job = user;
    struct tnd_rank_session rank;
    enum tandem_status status =
        tnd_rank_session_begin(&rank, job->model, communicator, &job->options, error);
    if (rank.session != NULL) {
        status = job->script(job, rank.session, error);
    }
    tnd_rank_session_end(&rank);
    return status;
}

static void run(struct job *job, int count, const char *what)
{
    struct tnd_rank_result results[TND_RANKS_MOST];
    tnd_ranks_run(count, be_rank, job, results);
    for (int r = 0; r < count; r++) {
        if (!check_status(results[r].status, TANDEM_OK, NULL, &results[r].error)) {
            printf("  rank %d of %d, %s\n", r, count, what);
        }
    }
}

/* ---- texts that go on ---- */

/* Batch i of `n`: every n-th text. */
static enum tandem_status begin(tandem_session *session, int i, int n, int32_t *const *tokens,
                                const int64_t *counts, struct tandem_error *error)
{
    struct tandem_batch_entry entries[TEXTS];
    int64_t n_entries = 0;
    for (int t = i; t < TEXTS; t += n) {
        entries[n_entries++] = (struct tandem_batch_entry){
            .tokens = tokens[t], .n = counts[t], .sequence = t, .wants_logits = true};
    }
    return tandem_session_begin_batch(session, entries, n_entries, error);
}

static int32_t likeliest(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < NAIVE_VOCABULARY; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* Prompts of other lengths, and then each batch's next tokens as soon as it has ended. */
static enum tandem_status talk(struct job *job, tandem_session *session, struct tandem_error *error)
{
    const int n = job->expected;
    int32_t prompt[NAIVE_TOKENS], next[TEXTS], *tokens[TEXTS];
    int64_t counts[TEXTS];
    enum tandem_status status = TANDEM_OK;
    naive_tokens(prompt, NAIVE_TOKENS);
    for (int t = 0; t < TEXTS; t++) {
        tokens[t] = prompt + t;
        counts[t] = 3 + 2 * t;
    }
    for (int i = 0; i < n && status == TANDEM_OK; i++) {
        status = begin(session, i, n, tokens, counts, error);
    }
    for (int k = 0; k < n * STEPS && status == TANDEM_OK; k++) {
        const int i = k % n;
        status = tandem_session_end_batch(session, error);
        for (int t = i; t < TEXTS && status == TANDEM_OK; t += n) {
            const float *logits = tandem_session_logits(session, t);
            memcpy(job->logits[t][k / n], logits, sizeof(job->logits[t][0]));
            memcpy(job->embeddings[t], tandem_session_embedding(session, t),
                   (size_t)tandem_session_embedding_size(session) * sizeof(float));
            next[t] = likeliest(logits);
            tokens[t] = &next[t];
            counts[t] = 1;
        }
        if (status == TANDEM_OK && k < n * (STEPS - 1)) {
            status = begin(session, i, n, tokens, counts, error);
        }
    }
    job->n = tandem_session_state_bytes(session);
    return status != TANDEM_OK || job->n > STATE
               ? status
               : tandem_session_state_write(session, job->state, error);
}

static enum tandem_status talk_as_many(struct job *job, tandem_session *session,
                                       struct tandem_error *error)
{
    check_int(tandem_session_batches_in_flight(session, TEXTS), job->expected);
    check_int(tandem_session_batches_in_flight(session, 1), 1);
    return talk(job, session, error);
}

static void begin_job(struct job *job, const tandem_model *model, script_fn script)
{
    *job = (struct job){.model = model, .script = script, .state = calloc(1, STATE)};
    job->options = (struct tandem_session_options){.n_sequences = TEXTS,
                                                   .has_embeddings = true,
                                                   .micro_batches = 1,
                                                   .division = TANDEM_DIVIDE_LAYERS};
    CU_ASSERT_PTR_NOT_NULL_FATAL(job->state);
}

struct ranks {
    int count;
    const double *shares;
    int wanted, expected;
};

static void check_flights(const struct naive_spec *spec, const struct ranks *ranks,
                          const char *name)
{
    tandem_source *source = naive_source(spec);
    tandem_model *model = NULL;
    struct job many, one;
    char what[96];
    check_ok(tandem_model_new(source, &model, NULL));
    snprintf(what, sizeof(what), "%s, %d ranks, %d batches", name, ranks->count, ranks->expected);
    begin_job(&many, model, talk_as_many);
    begin_job(&one, model, talk);
    many.expected = one.expected = ranks->expected;
    many.options.shares = ranks->shares;
    many.options.batches_in_flight = ranks->wanted;
    run(&many, ranks->count, what);
    run(&one, 1, what);
    check_bits(many.logits, one.logits, sizeof(one.logits), what);
    check_bits(many.embeddings, one.embeddings, sizeof(one.embeddings), what);
    check_int((int)many.n, (int)one.n);
    check_bits(many.state, one.state, one.n, what);
    free(many.state);
    free(one.state);
    tandem_model_free(model);
    tandem_source_close(source);
}

static void texts_have_the_bits_of_one_rank(void)
{
    static const double first[] = {1, 0, 0}, behind[] = {0, 2, 1}, last[] = {0, 0, 1};
    static const struct ranks ranks[] = {
        {.count = 2, .expected = 2},
        {.count = 2, .wanted = 1, .expected = 1},
        {.count = 2, .wanted = 3, .expected = 3},
        {.count = 2, .wanted = 8, .expected = TEXTS},
        {.count = 3, .wanted = 4, .expected = 4},
        {.count = 3, .shares = behind, .expected = 2},
        {.count = 3, .shares = last, .expected = 1}, /* as many as have layers */
        {.count = 3, .shares = last, .wanted = 2, .expected = 2},
        {.count = 3, .shares = first, .wanted = 2, .expected = 1}, /* nobody else computes */
        {.count = 4, .expected = 2}};                              /* of two layers */
    const struct naive_spec dense = {.context = 0};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        check_flights(&dense, &ranks[i], "llama");
    }
}

static void architectures_go_in_flight(void)
{
    static const struct ranks two = {.count = 2, .expected = 2},
                              three = {.count = 3, .wanted = 4, .expected = 4};
    static const struct naive_spec specs[] = {
        {.architecture = "qwen2", .has_biases = true, .window = 9, .windowed = 2},
        {.experts = 8, .used = 2},
        {.architecture = "qwen3", .has_head_norms = true, .head_size = 48}};
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        check_flights(&specs[i], &two, "an architecture");
        check_flights(&specs[i], &three, "an architecture");
    }
}

/* A transport that cannot post has one batch after the other. */
static void without_posts_batches_follow_each_other(void)
{
    static const struct ranks two = {.count = 2, .wanted = 3, .expected = 1};
    const struct naive_spec dense = {.context = 0};
    tnd_ranks_set_posts(false);
    check_flights(&dense, &two, "no posts");
    tnd_ranks_set_posts(true);
}

/* ---- other calls in between ---- */

static enum tandem_status interrupt(struct job *job, tandem_session *session,
                                    struct tandem_error *error)
{
    int32_t tokens[NAIVE_TOKENS];
    naive_tokens(tokens, NAIVE_TOKENS);
    struct tandem_batch_entry entries[TEXTS];
    for (int t = 0; t < TEXTS; t++) {
        entries[t] = (struct tandem_batch_entry){tokens + t, 8, t, true};
    }
    enum tandem_status status = tandem_session_begin_batch(session, &entries[0], 2, error);
    check_status(tandem_session_state_write(session, job->state, error), TANDEM_E_ARGUMENT,
                 "a state is saved while 1 batches", error);
    check_status(tandem_session_decode_batch(session, &entries[1], 1, error), TANDEM_E_ARGUMENT,
                 "sequence 1 is in a batch that was begun", error);
    check_status(tandem_session_begin_batch(session, &entries[1], 2, error), TANDEM_E_ARGUMENT,
                 "sequence 1 is in a batch that was begun", error);
    check_status(tandem_session_decode(session, tokens, 1, 0, error), TANDEM_E_ARGUMENT,
                 "sequence 0 is in a batch that was begun", error);
    tandem_graph *graph = NULL; /* a plan computes nothing, so it need not wait */
    tandem_plan *plan = NULL;
    check_status(tandem_session_plan(session, 2, &graph, &plan, error), TANDEM_OK, NULL, error);
    tandem_plan_free(plan);
    status =
        status == TANDEM_OK ? tandem_session_begin_batch(session, &entries[2], 1, error) : status;
    /* a whole batch, before the results of the others are asked for */
    status =
        status == TANDEM_OK ? tandem_session_decode_batch(session, &entries[3], 1, error) : status;
    check_int((int)tandem_session_rollback(session, 0, 5), 5);
    status = status == TANDEM_OK ? tandem_session_shift(session, 2, 1, 3, error) : status;
    status = status == TANDEM_OK ? tandem_session_copy(session, 1, 4, 6, error) : status;
    for (int i = 0; i < 2 && status == TANDEM_OK; i++) {
        status = tandem_session_end_batch(session, error);
    }
    check_status(tandem_session_end_batch(session, error), TANDEM_E_ARGUMENT, "none was begun",
                 error);
    for (int t = 0; t < TEXTS && status == TANDEM_OK; t++) {
        entries[t].n = 1;
        if (t < 4) { /* the last one is a copy */
            memcpy(job->logits[t][0], tandem_session_logits(session, t), sizeof(job->logits[t][0]));
        }
    }
    for (int i = 0; i < 2 && status == TANDEM_OK; i++) {
        status = tandem_session_begin_batch(session, &entries[3 * i], i == 0 ? 3 : 2, error);
    }
    for (int i = 0; i < 2 && status == TANDEM_OK; i++) {
        status = tandem_session_end_batch(session, error);
    }
    for (int t = 0; t < TEXTS && status == TANDEM_OK; t++) {
        memcpy(job->logits[t][1], tandem_session_logits(session, t), sizeof(job->logits[t][1]));
        entries[t].n = 1;
    }
    job->n = tandem_session_state_bytes(session);
    status = status == TANDEM_OK ? tandem_session_state_write(session, job->state, error) : status;
    for (int t = 0; t < TEXTS && status == TANDEM_OK; t++) { /* left in flight */
        status = tandem_session_begin_batch(session, &entries[t], 1, error);
    }
    return status;
}

static void other_calls_wait_for_batches_in_flight(void)
{
    static const double behind[] = {0, 2, 1};
    const struct naive_spec dense = {.context = 0};
    tandem_source *source = naive_source(&dense);
    tandem_model *model = NULL;
    struct job one, many;
    check_ok(tandem_model_new(source, &model, NULL));
    begin_job(&one, model, interrupt);
    run(&one, 1, "one rank");
    for (int count = 2; count <= 3; count++) {
        begin_job(&many, model, interrupt);
        many.options.shares = count == 3 ? behind : NULL;
        run(&many, count, "other calls");
        check_bits(many.logits, one.logits, sizeof(one.logits), "logits");
        check_bits(many.state, one.state, one.n, "state");
        free(many.state);
    }
    free(one.state);
    tandem_model_free(model);
    tandem_source_close(source);
}

/* As many as may be, and one more. */
static enum tandem_status begin_all(struct job *job, tandem_session *session,
                                    struct tandem_error *error)
{
    const int32_t token = 1;
    enum tandem_status status = TANDEM_OK;
    (void)job;
    for (int t = 0; t < TANDEM_BATCHES_IN_FLIGHT && status == TANDEM_OK; t++) {
        const struct tandem_batch_entry entry = {&token, 1, t, true};
        status = tandem_session_begin_batch(session, &entry, 1, error);
    }
    const struct tandem_batch_entry last = {&token, 1, TANDEM_BATCHES_IN_FLIGHT, true};
    check_status(tandem_session_begin_batch(session, &last, 1, error), TANDEM_E_ARGUMENT,
                 "expected an end of one", error);
    return status;
}

static void there_is_a_most(void)
{
    const struct naive_spec dense = {.context = 0};
    tandem_source *source = naive_source(&dense);
    tandem_model *model = NULL;
    struct job job;
    struct tandem_error error;
    struct tandem_session_options wrong = TANDEM_SESSION_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    tandem_session *session = NULL;
    check_ok(tandem_model_new(source, &model, NULL));
    begin_job(&job, model, begin_all);
    job.options.n_sequences = TANDEM_BATCHES_IN_FLIGHT + 1;
    run(&job, 2, "all that may be");
    check_ok(tandem_runtime_open(NULL, &runtime, NULL));
    wrong.batches_in_flight = TANDEM_BATCHES_IN_FLIGHT + 1;
    check_status(tandem_session_new(model, runtime, &wrong, &session, &error), TANDEM_E_ARGUMENT,
                 "9 batches in flight", &error);
    tandem_runtime_close(runtime);
    free(job.state);
    tandem_model_free(model);
    tandem_source_close(source);
}

static CU_TestInfo tests[] = {
    {"texts have the bits of one rank", texts_have_the_bits_of_one_rank},
    {"architectures go in flight", architectures_go_in_flight},
    {"without posts batches follow each other", without_posts_batches_follow_each_other},
    {"other calls wait for batches in flight", other_calls_wait_for_batches_in_flight},
    {"there is a most", there_is_a_most},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_cluster_flights[];
CU_SuiteInfo suites_cluster_flights[] = {
    {"batches in flight", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
