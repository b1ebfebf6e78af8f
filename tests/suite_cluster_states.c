/* SPDX-License-Identifier: MIT
 * States of several ranks of which one fails alone: all refuse and go on where they can agree, or
 * all end, and the file of before stays. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/ranks.h"
#include "tandem/files.h"
#include "tests/suite_llama_naive.h"
#include "tests/support_rank_sessions.h"
#include "tests/support_ranks.h"

enum { RANKS = 3, PROMPT = 9 };

struct job;
typedef enum tandem_status (*script_fn)(struct job *job, tandem_session *session,
                                        struct tandem_error *error);
struct job {
    const tandem_model *model;
    enum tandem_division division;
    script_fn script;
    const char *path; /* of a state */
    int rank, after;  /* that fails, and how many exchanges before that */
    bool is_read;
    bool is_whole; /* nothing failed before all was done */
    size_t bytes, at;
    const char *why;
    float logits[2][NAIVE_VOCABULARY];
};

static enum tandem_status be_rank(tandem_communicator *communicator, void *user,
                                  struct tandem_error *error)
{
    struct job *job = user;
    const struct tandem_session_options options = {.division = job->division, .prompt_batch = 4};
    struct tnd_rank_session rank;
    enum tandem_status status =
        tnd_rank_session_begin(&rank, job->model, communicator, &options, error);
    if (rank.session != NULL) {
        status = job->script(job, rank.session, error);
    }
    tnd_rank_session_end(&rank);
    return status;
}

static enum tandem_status decode(tandem_session *session, int64_t begin, int64_t n,
                                 struct tandem_error *error)
{
    int32_t tokens[NAIVE_TOKENS];
    naive_tokens(tokens, NAIVE_TOKENS);
    return tandem_session_decode(session, tokens + begin, n, 0, error);
}

/* ---- all refuse ---- */

/* A state is read that does not come to a rank as it was sent; then the text goes on, as another
 * session's does that read nothing. */
static enum tandem_status refuse(struct job *job, tandem_session *session,
                                 struct tandem_error *error)
{
    struct tandem_error why;
    void *state = NULL;
    size_t n = 0;
    enum tandem_status status = decode(session, 0, PROMPT, error);
    status = status == TANDEM_OK ? tandem_file_read(job->path, (size_t)1 << 24, &state, &n, error)
                                 : status;
    if (status != TANDEM_OK) {
        return status;
    }
    status = decode(session, PROMPT, 2, error);
    tnd_ranks_damage(job->rank, job->bytes > 0 ? job->bytes : n, job->at);
    check_status(tandem_session_state_read(session, state, n, "state", &why), TANDEM_E_FORMAT,
                 job->why, &why);
    check_contains(why.text, "rank 1 on ");
    check_int(tandem_session_position(session, 0), PROMPT + 2);
    status = status == TANDEM_OK ? decode(session, PROMPT + 2, 3, error) : status;
    memcpy(job->logits[0], tandem_session_logits(session, 0), sizeof(job->logits[0]));
    status =
        status == TANDEM_OK ? tandem_session_state_read(session, state, n, "state", error) : status;
    check_int(tandem_session_position(session, 0), PROMPT); /* this time it was good */
    status = status == TANDEM_OK ? decode(session, PROMPT, 2, error) : status;
    status = status == TANDEM_OK ? decode(session, PROMPT + 2, 3, error) : status;
    memcpy(job->logits[1], tandem_session_logits(session, 0), sizeof(job->logits[1]));
    tandem_file_free(state);
    return status;
}

static enum tandem_status save(struct job *job, tandem_session *session, struct tandem_error *error)
{
    const enum tandem_status status = decode(session, 0, PROMPT, error);
    return status == TANDEM_OK ? tandem_session_save(session, job->path, error) : status;
}

static void run(struct job *job, struct tnd_rank_result *results)
{
    tnd_ranks_run(RANKS, be_rank, job, results);
}

static void check_all(struct job *job)
{
    struct tnd_rank_result results[TND_RANKS_MOST];
    run(job, results);
    for (int r = 0; r < RANKS; r++) {
        check_status(results[r].status, TANDEM_OK, NULL, &results[r].error);
    }
}

static void what_one_rank_cannot_read_all_refuse(void)
{
    const struct naive_spec spec = {.context = 0};
    tandem_source *source = naive_source(&spec);
    struct job job = {.path = tnd_test_temp("state"), .rank = 1};
    tandem_model *model = NULL;
    check_ok(tandem_model_new(source, &model, NULL));
    job.model = model;
    for (int d = TANDEM_DIVIDE_ROWS; d <= TANDEM_DIVIDE_MIXED; d++) {
        job.division = (enum tandem_division)d;
        job.script = save;
        check_all(&job);
        job.script = refuse;
        job.bytes = 0; /* the state itself */
        job.at = 200;
        job.why = "is damaged: the checksum differs";
        check_all(&job);
        check_bits(job.logits[0], job.logits[1], sizeof(job.logits[0]), "after a state");
        job.bytes = sizeof(struct tnd_llama_order);
        job.at = offsetof(struct tnd_llama_order, n) + 5; /* how long the state is */
        job.why = "tells a state of";
        check_all(&job);
        check_bits(job.logits[0], job.logits[1], sizeof(job.logits[0]), "after an order");
    }
    tandem_model_free(model);
    tandem_source_close(source);
}

/* ---- all end ---- */

static enum tandem_status lose(struct job *job, tandem_session *session, struct tandem_error *error)
{
    enum tandem_status status = decode(session, 0, PROMPT + 1, error);
    if (status != TANDEM_OK) {
        return status;
    }
    tnd_ranks_let_die(job->rank, job->after);
    status = job->is_read ? tandem_session_load(session, job->path, error)
                          : tandem_session_save(session, job->path, error);
    job->is_whole = status == TANDEM_OK;
    tnd_ranks_let_die(-1, 0);
    return status;
}

/* Whether a file is what it was. */
static bool is_same(const char *path, const void *bytes, size_t n)
{
    void *now = NULL;
    size_t n_now = 0;
    const bool is_same = tandem_file_read(path, (size_t)1 << 24, &now, &n_now, NULL) == TANDEM_OK &&
                         n_now == n && memcmp(now, bytes, n) == 0;
    tandem_file_free(now);
    return is_same;
}

/* Lets a rank die in each of its exchanges, until it is none of this state's. */
static void lose_everywhere(struct job *job)
{
    void *before = NULL;
    size_t n = 0;
    check_ok(tandem_file_read(job->path, (size_t)1 << 24, &before, &n, NULL));
    job->is_whole = false;
    for (job->after = 0; !job->is_whole && job->after < 100; job->after++) {
        struct tnd_rank_result results[TND_RANKS_MOST];
        char who[16];
        run(job, results);
        if (job->is_whole) {
            break;
        }
        snprintf(who, sizeof(who), "rank %d", job->rank);
        for (int r = 0; r < RANKS; r++) {
            check_status(results[r].status, TANDEM_E_RANK, "did not take part", &results[r].error);
        }
        check_contains(results[0].error.text, who);
        check_contains(results[0].error.text,
                       job->is_read ? "while a state was read" : "while a state was saved");
        CU_ASSERT_TRUE(is_same(job->path, before, n));
    }
    CU_ASSERT_TRUE(job->is_whole && job->after > 0);
    tandem_file_free(before);
}

static void a_rank_that_dies_with_a_state_ends_all(void)
{
    const struct naive_spec spec = {.context = 0};
    tandem_source *source = naive_source(&spec);
    struct job job = {.path = tnd_test_temp("lost")};
    tandem_model *model = NULL;
    check_ok(tandem_model_new(source, &model, NULL));
    job.model = model;
    for (int d = TANDEM_DIVIDE_ROWS; d <= TANDEM_DIVIDE_MIXED; d++) {
        job.division = (enum tandem_division)d;
        for (job.rank = 0; job.rank < RANKS; job.rank++) {
            job.script = save;
            check_all(&job);
            job.script = lose;
            job.is_read = true;
            lose_everywhere(&job);
            job.is_read = false;
            lose_everywhere(&job);
        }
    }
    tandem_model_free(model);
    tandem_source_close(source);
}

static CU_TestInfo tests[] = {
    {"what one rank cannot read all refuse", what_one_rank_cannot_read_all_refuse},
    {"a rank that dies with a state ends all", a_rank_that_dies_with_a_state_ends_all},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_cluster_states[];
CU_SuiteInfo suites_cluster_states[] = {
    {"states of ranks", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
