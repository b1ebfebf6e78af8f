/* SPDX-License-Identifier: MIT
 * Prompts by layers and generated tokens by rows, on ranks that are threads: golden texts, and keys
 * and values that are where the next batch needs them, by the bits of one rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite_llama_naive.h"
#include "tests/support_rank_sessions.h"
#include "tests/support_ranks.h"

enum { PROMPT = 20, STEPS = 3, AGAIN = 12, STATE = 1 << 18, TEXT = 2048, WORDS = 512, LONG = 60 };

struct job;
typedef enum tandem_status (*script_fn)(struct job *job, tandem_session *session,
                                        struct tandem_error *error);
struct job {
    const tandem_model *model;
    struct tandem_session_options options;
    script_fn script;
    int64_t batch; /* of prompts */
    bool has_edits;
    float logits[3][NAIVE_VOCABULARY];
    char *states[3]; /* {STATE}: behind the prompt, behind steps, behind another prompt */
    size_t n[3];
    const tandem_tokenizer *tokenizer;
    char text[TEXT];
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

/* ---- keys and values ---- */

/* Decodes n tokens for two texts, the second one shorter, and keeps logits and state. */
static enum tandem_status decode(struct job *job, tandem_session *session, int i, int64_t n,
                                 struct tandem_error *error)
{
    int32_t tokens[NAIVE_TOKENS];
    naive_tokens(tokens, NAIVE_TOKENS);
    enum tandem_status status = TANDEM_OK;
    for (int64_t at = 0; at < n && status == TANDEM_OK; at += job->batch) {
        const int64_t left = n - at < job->batch ? n - at : job->batch;
        const struct tandem_batch_entry entries[] = {
            {.tokens = tokens + at, .n = left, .sequence = 0, .wants_logits = true},
            {.tokens = tokens + at + 1, .n = (left + 1) / 2, .sequence = 1, .wants_logits = true}};
        status = tandem_session_decode_batch(session, entries, 2, error);
    }
    job->n[i] = tandem_session_state_bytes(session);
    if (status != TANDEM_OK || job->n[i] > STATE) {
        return status != TANDEM_OK ? status : TANDEM_E_LIMIT;
    }
    memcpy(job->logits[i], tandem_session_logits(session, 0), sizeof(job->logits[i]));
    return tandem_session_state_write(session, job->states[i], error);
}

/* A text loses some of its first tokens, so that the others move, and the other one its newest, and
 * is then that text from the start. */
static enum tandem_status edit(const struct job *job, tandem_session *session,
                               struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    if (job->has_edits) {
        status = tandem_session_shift(session, 0, 2, 5, error);
        (void)tandem_session_rollback(session, 1, 7);
        (void)tandem_session_rollback(session, 1, 0);
        status = status == TANDEM_OK ? tandem_session_copy(session, 0, 1, 14, error) : status;
    }
    return status;
}

/* A prompt, some tokens, another prompt. */
static enum tandem_status talk(struct job *job, tandem_session *session, struct tandem_error *error)
{
    enum tandem_status status = decode(job, session, 0, PROMPT, error);
    for (int i = 0; i < STEPS && status == TANDEM_OK; i++) {
        status = decode(job, session, 1, 1, error);
    }
    status = status == TANDEM_OK ? edit(job, session, error) : status;
    return status == TANDEM_OK ? decode(job, session, 2, AGAIN, error) : status;
}

/* The same of one rank, which goes on from the state that others had before the second prompt. */
static enum tandem_status talk_alone(struct job *job, tandem_session *session,
                                     struct tandem_error *error)
{
    enum tandem_status status = decode(job, session, 0, PROMPT, error);
    status = status == TANDEM_OK ? tandem_session_state_read(session, job->states[1], job->n[1],
                                                             "a state of ranks", error)
                                 : status;
    status = status == TANDEM_OK ? edit(job, session, error) : status;
    return status == TANDEM_OK ? decode(job, session, 2, AGAIN, error) : status;
}

static void alloc_states(struct job *job)
{
    for (int i = 0; i < 3; i++) {
        job->states[i] = calloc(1, STATE);
        CU_ASSERT_PTR_NOT_NULL_FATAL(job->states[i]);
    }
}

static void free_states(struct job *job)
{
    for (int i = 0; i < 3; i++) {
        free(job->states[i]);
    }
}

struct ranks {
    int count;
    const double *rows, *layers; /* shares */
    bool is_alone;               /* rank 0 has all rows: all bits are its own */
    bool has_whole_experts, has_edits;
};

static void check_phases(const struct naive_spec *spec, const struct ranks *ranks,
                         enum tandem_type cache, bool is_unfused, const char *name)
{
    tandem_source *source = naive_source(spec);
    tandem_model *model = NULL;
    struct job many = {.script = talk, .batch = PROMPT, .has_edits = ranks->has_edits};
    char what[96];
    check_ok(tandem_model_new(source, &model, NULL));
    snprintf(what, sizeof(what), "%s, phases of %d ranks%s", name, ranks->count,
             is_unfused ? ", unfused" : "");
    many.model = model;
    many.options = (struct tandem_session_options){.cache_type = cache,
                                                   .is_unfused = is_unfused,
                                                   .n_sequences = 2,
                                                   .micro_batches = 1,
                                                   .division = TANDEM_DIVIDE_MIXED,
                                                   .shares = ranks->rows,
                                                   .layer_shares = ranks->layers,
                                                   .prompt_batch = 3,
                                                   .has_whole_experts = ranks->has_whole_experts};
    struct job one = many;
    alloc_states(&many);
    alloc_states(&one);
    run(&many, ranks->count, what);
    one.script = ranks->is_alone ? talk : talk_alone;
    one.n[1] = many.n[1];
    memcpy(one.states[1], many.states[1], STATE);
    run(&one, 1, what);
    for (int i = 0; i < 3; i += ranks->is_alone ? 1 : 2) {
        check_bits(many.logits[i], one.logits[i], sizeof(one.logits[i]), what);
        check_int((int)many.n[i], (int)one.n[i]);
        check_bits(many.states[i], one.states[i], one.n[i], what);
    }
    free_states(&many);
    free_states(&one);
    tandem_model_free(model);
    tandem_source_close(source);
}

/* Each of these leaves something to one rank: layers, heads, both, or neither. */
static void keys_and_values_are_where_the_next_batch_needs_them(void)
{
    static const double one_first[] = {1, 0, 0}, all_first[] = {1, 0, 0, 0}, one_last[] = {0, 0, 1},
                        two[] = {0, 2, 1}, first_two[] = {3, 1, 0};
    static const struct ranks ranks[] = {
        {.count = 2},
        {.count = 3},
        {.count = 4},
        {.count = 7},
        {.count = 3, .rows = two, .layers = first_two},
        {.count = 3, .rows = one_first, .layers = one_last, .is_alone = true},
        {.count = 4, .rows = all_first, .is_alone = true},
        {.count = 3, .rows = one_last, .layers = one_first},
        {.count = 3, .rows = first_two, .layers = two}};
    const struct naive_spec dense = {.context = 0};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        check_phases(&dense, &ranks[i], TANDEM_TYPE_F32, false, "llama");
    }
    check_phases(&dense, &ranks[1], TANDEM_TYPE_F16, true, "llama, F16");
    check_phases(&dense, &ranks[4], TANDEM_TYPE_F16, false, "llama, F16");
    check_phases(&dense, &ranks[0], TANDEM_TYPE_Q8_0, false, "llama, Q8_0");
    check_phases(&dense, &ranks[1], TANDEM_TYPE_Q4_0, false, "llama, Q4_0");
}

static void texts_that_are_shifted_and_copied_go_on_by_layers(void)
{
    static const double two[] = {0, 2, 1}, last[] = {0, 0, 1}, first[] = {1, 0, 0};
    static const struct ranks ranks[] = {
        {.count = 2, .has_edits = true},
        {.count = 3, .rows = two, .has_edits = true},
        {.count = 3, .rows = last, .layers = first, .has_edits = true},
        {.count = 3, .rows = first, .layers = last, .is_alone = true, .has_edits = true}};
    const struct naive_spec dense = {.context = 0};
    for (int i = 0; i < 4; i++) {
        check_phases(&dense, &ranks[i], TANDEM_TYPE_F32, i == 1, "edits");
        check_phases(&dense, &ranks[i], TANDEM_TYPE_F16, false, "edits, F16");
    }
}

static void architectures_go_by_layers_and_by_rows(void)
{
    static const struct {
        const char *name;
        struct naive_spec spec;
    } models[] = {
        {"heads of 48, all biases", {.head_size = 48, .has_all_biases = true}},
        {"windows", {.architecture = "qwen2", .has_biases = true, .window = 9, .windowed = 2}},
        {"a window in all layers", {.window = 30}},
        {"qwen3", {.architecture = "qwen3", .has_head_norms = true, .head_size = 48}},
        {"mixtral", {.experts = 8, .used = 2}},
        {"qwen2moe",
         {.architecture = "qwen2moe",
          .has_biases = true,
          .experts = 7,
          .used = 4,
          .expert_hidden = 40,
          .shared_hidden = 96}},
    };
    const struct ranks two = {.count = 2}, three = {.count = 3},
                       whole = {.count = 3, .has_whole_experts = true};
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        check_phases(&models[i].spec, &two, TANDEM_TYPE_F32, false, models[i].name);
        check_phases(&models[i].spec, &three, TANDEM_TYPE_F32, i % 2 == 0, models[i].name);
        if (models[i].spec.experts > 0) {
            check_phases(&models[i].spec, &whole, TANDEM_TYPE_F32, false, models[i].name);
        }
    }
}

/* ---- golden texts ---- */

static enum tandem_status write_text(struct job *job, tandem_session *session,
                                     struct tandem_error *error)
{
    struct tandem_sampler_options of_sampler = TANDEM_SAMPLER_OPTIONS_INIT;
    struct tandem_generator_options wanted = TANDEM_GENERATOR_OPTIONS_INIT;
    tandem_sampler *sampler = NULL;
    tandem_generator *generator = NULL;
    int32_t ids[16];
    size_t n_ids = 0, at = 0, n = 0;
    bool more = true;
    of_sampler.vocabulary = WORDS;
    enum tandem_status status =
        tandem_tokenizer_encode(job->tokenizer, "Zoo", 3, true, ids, 16, &n_ids, error);
    status = status == TANDEM_OK ? tandem_sampler_new(&of_sampler, &sampler, error) : status;
    wanted.session = session;
    wanted.sampler = sampler;
    wanted.tokenizer = job->tokenizer;
    wanted.prompt = ids;
    wanted.n_prompt = (int64_t)n_ids;
    wanted.steps = LONG;
    CU_ASSERT_TRUE((int64_t)n_ids >= job->options.prompt_batch);
    status = status == TANDEM_OK ? tandem_generator_new(&wanted, &generator, error) : status;
    while (status == TANDEM_OK && more && at < TEXT - 2) {
        status = tandem_generator_next(generator, job->text + at, TEXT - 2 - at, &n, &more, error);
        at += n;
    }
    job->text[at] = '\n';
    job->text[at + 1] = '\0';
    tandem_generator_free(generator);
    tandem_sampler_free(sampler);
    return status;
}

/* 5 layers, 4 heads of keys: of 7 ranks some have none of either. */
static void prompts_by_layers_and_tokens_by_rows_write_the_golden_text(void)
{
    static const double shares[][4] = {{3, 1}, {0, 1, 1}, {1, 0, 2}, {1, 2, 1, 1}};
    const int counts[] = {2, 3, 3, 4, 1, 2, 3, 4, 7};
    const char *path = tnd_test_data("llama/stories260K.bin");
    const char *of_tokenizer = tnd_test_data("llama/tok512.bin");
    const char *golden = tnd_test_data("llama/golden-zoo-t0-n60.txt");
    tandem_tokenizer *tokenizer = NULL;
    tandem_model *model = NULL;
    if (path == NULL || of_tokenizer == NULL || golden == NULL) {
        return;
    }
    char *want = tnd_test_read_file(golden, NULL);
    check_ok(tandem_tokenizer_open(of_tokenizer, WORDS, &tokenizer, NULL));
    check_ok(tandem_model_load(path, &model, NULL));
    for (int i = 0; i < 9 && model != NULL; i++) {
        struct job job = {.model = model, .script = write_text, .tokenizer = tokenizer};
        job.options.division = TANDEM_DIVIDE_MIXED;
        job.options.prompt_batch = 2;
        job.options.shares = i < 4 ? shares[i] : NULL;
        job.options.layer_shares = i == 3 ? shares[3 - i] : NULL;
        run(&job, counts[i], "golden text, phases");
        check_string(job.text, want);
    }
    free(want);
    tandem_model_free(model);
    tandem_tokenizer_close(tokenizer);
}

static CU_TestInfo tests[] = {
    {"prompts by layers and tokens by rows write the golden text",
     prompts_by_layers_and_tokens_by_rows_write_the_golden_text},
    {"keys and values are where the next batch needs them",
     keys_and_values_are_where_the_next_batch_needs_them},
    {"texts that are shifted and copied go on by layers",
     texts_that_are_shifted_and_copied_go_on_by_layers},
    {"architectures go by layers and by rows", architectures_go_by_layers_and_by_rows},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_cluster_phases[];
CU_SuiteInfo suites_cluster_phases[] = {
    {"phases", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
