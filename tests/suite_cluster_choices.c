/* SPDX-License-Identifier: MIT
 * Tokens that ranks choose together from their likeliest ones: those that a sampler chooses from
 * all logits, whatever it asks for, and whether logits were sent. A prompt comes first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite_llama.h"
#include "tests/support_models.h"
#include "tests/support_ranks.h"

enum { VOCABULARY = 2500, STEPS = 12, TEXTS = 2, PROMPT = 3 };

/* What a text asks for, and whether rank 0 gets its logits all the same. */
struct ask {
    const char *name;
    float temperature, top_p, min_p, penalty;
    int64_t top_k;
    bool has_mask;
    int grammar; /* 1 + its number; 0: none */
    enum { NEVER, SOMETIMES, ALWAYS } sends_logits;
};

static const struct ask asks[] = {
    {.name = "the likeliest"},
    {.name = "top-k", .temperature = 1.0f, .top_k = 40},
    {.name = "all three", .temperature = 1.5f, .top_k = 50, .top_p = 0.9f, .min_p = 0.05f},
    {.name = "top-p, narrow", .temperature = 0.05f, .top_p = 0.9f},
    {.name = "top-p, wide", .temperature = 2.0f, .top_p = 0.95f, .sends_logits = ALWAYS},
    {.name = "top-p between", .temperature = 0.3f, .top_p = 0.8f, .sends_logits = SOMETIMES},
    {.name = "min-p", .temperature = 0.3f, .min_p = 0.2f, .sends_logits = SOMETIMES},
    {.name = "min-p and top-p",
     .temperature = 0.1f,
     .top_p = 0.9f,
     .min_p = 0.1f,
     .sends_logits = SOMETIMES},
    {.name = "temperature alone", .temperature = 1.0f, .sends_logits = ALWAYS},
    {.name = "a large k", .temperature = 1.0f, .top_k = 400, .sends_logits = ALWAYS},
    {.name = "a penalty", .temperature = 0.0f, .penalty = 1.3f},
    {.name = "a penalty, top-k", .temperature = 1.0f, .top_k = 20, .penalty = 1.3f},
    {.name = "a mask", .has_mask = true},
    {.name = "a mask, top-k", .temperature = 1.0f, .top_k = 40, .has_mask = true},
    {.name = "a grammar", .grammar = 1},
    {.name = "a grammar that ends",
     .temperature = 1.0f,
     .top_k = 9,
     .grammar = 2,
     .sends_logits = SOMETIMES},
    {.name = "a grammar, all",
     .temperature = 1.0f,
     .top_k = 40,
     .top_p = 0.9f,
     .penalty = 1.1f,
     .has_mask = true,
     .grammar = 1},
};
enum { N_ASKS = sizeof(asks) / sizeof(asks[0]) };

struct choices {
    int32_t tokens[TEXTS][STEPS];
    float probabilities[TEXTS][STEPS];
    int n_logits; /* how often rank 0 had logits */
};

struct job {
    const tandem_model *model;
    const tandem_tokenizer *tokenizer;
    tandem_grammar *const *grammars;
    const tandem_token_trie *trie;
    const double *shares, *layer_shares;
    enum tandem_division division; /* mixed: the first tokens of both texts go by layers */
    const struct ask *asks[TEXTS];
    bool is_asked;
    struct choices *out;
};

static tandem_sampler *sampler_of(const struct job *job, int text)
{
    const struct ask *ask = job->asks[text];
    const struct tandem_sampler_options o = {.size = sizeof(o),
                                             .vocabulary = VOCABULARY,
                                             .temperature = ask->temperature,
                                             .top_p = ask->top_p,
                                             .min_p = ask->min_p,
                                             .repeat_penalty = ask->penalty,
                                             .top_k = ask->top_k,
                                             .seed = 7 + (uint64_t)text};
    tandem_sampler *sampler = NULL;
    check_ok(tandem_sampler_new(&o, &sampler, NULL));
    check_ok(ask->has_mask ? tandem_sampler_keep_utf8(sampler, job->tokenizer, NULL) : TANDEM_OK);
    check_ok(ask->grammar > 0 ? tandem_sampler_set_grammar(sampler, job->grammars[ask->grammar - 1],
                                                           job->trie, NULL)
                              : TANDEM_OK);
    return sampler;
}

/* A batch that is refused, too, is the one that samplers count for. */
static void be_refused(tandem_session *session, tandem_sampler *const *samplers)
{
    const int32_t token = 1;
    const struct tandem_batch_entry twice[] = {{&token, 1, 0, true}, {&token, 1, 0, true}};
    for (int i = 0; i < TEXTS; i++) {
        check_ok(tandem_session_sample_with(session, i, samplers[i], NULL));
    }
    (void)check_status(tandem_session_begin_batch(session, twice, 2, NULL), TANDEM_E_ARGUMENT, NULL,
                       NULL);
}

/* Each text by a sampler of its own. */
static enum tandem_status write_texts(const struct job *job, tandem_session *session,
                                      struct tandem_error *error)
{
    static const int32_t prompts[TEXTS][PROMPT] = {{1, 300, 9}, {7, 2400, 40}};
    tandem_sampler *samplers[TEXTS];
    int32_t next[TEXTS];
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < TEXTS; i++) {
        samplers[i] = sampler_of(job, i);
    }
    be_refused(session, samplers);
    for (int step = 0; step < STEPS && status == TANDEM_OK; step++) {
        struct tandem_batch_entry entries[TEXTS];
        for (int i = 0; i < TEXTS; i++) {
            entries[i] = step == 0 ? (struct tandem_batch_entry){prompts[i], PROMPT, i, true}
                                   : (struct tandem_batch_entry){&next[i], 1, i, true};
            if (job->is_asked) {
                check_ok(tandem_session_sample_with(session, i, samplers[i], NULL));
            }
        }
        status = tandem_session_decode_batch(session, entries, TEXTS, error);
        for (int i = 0; i < TEXTS && status == TANDEM_OK; i++) {
            job->out->n_logits += tandem_session_logits(session, i) != NULL;
            CU_ASSERT_PTR_NOT_NULL(tandem_session_embedding(session, i));
            next[i] =
                tandem_session_sample(session, i, samplers[i], &job->out->probabilities[i][step]);
            job->out->tokens[i][step] = next[i];
            tandem_sampler_accept(samplers[i], next[i], true);
            next[i] = next[i] < 0 ? 0 : next[i]; /* a grammar has ended */
        }
    }
    tandem_sampler_free(samplers[0]);
    tandem_sampler_free(samplers[1]);
    return status;
}

static enum tandem_status be_rank(tandem_communicator *communicator, void *user,
                                  struct tandem_error *error)
{
    const struct job *job = user;
    struct tandem_runtime_options of_runtime = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_session_options options = TANDEM_SESSION_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    tandem_session *session = NULL;
    of_runtime.n_threads = 1;
    of_runtime.table_path = "";
    enum tandem_status status = tandem_runtime_open(&of_runtime, &runtime, error);
    if (status == TANDEM_OK && tandem_communicator_rank(communicator) > 0) {
        status = tandem_session_follow(job->model, runtime, communicator, error);
    } else if (status == TANDEM_OK) {
        options.communicator = communicator;
        options.shares = job->shares;
        options.layer_shares = job->layer_shares;
        options.division = job->division;
        options.prompt_batch = TEXTS * PROMPT;
        options.n_sequences = TEXTS;
        options.has_embeddings = true;
        options.context = 32;
        status = tandem_session_new(job->model, runtime, &options, &session, error);
        status = status == TANDEM_OK ? write_texts(job, session, error) : status;
        tandem_session_free(session);
        (void)tandem_session_dismiss(communicator, NULL);
    }
    tandem_runtime_close(runtime);
    return status;
}

static void run(struct job *job, int count, bool is_asked, struct choices *out)
{
    struct tnd_rank_result results[TND_RANKS_MOST];
    memset(out, 0, sizeof(*out));
    job->is_asked = is_asked;
    job->out = out;
    tnd_ranks_run(count, be_rank, job, results);
    for (int r = 0; r < count; r++) {
        (void)check_status(results[r].status, TANDEM_OK, NULL, &results[r].error);
    }
}

static void compare(const struct choices *got, const struct choices *want)
{
    check_bits(got->tokens, want->tokens, sizeof(got->tokens), "tokens");
    check_bits(got->probabilities, want->probabilities, sizeof(got->probabilities),
               "probabilities");
}

/* (By layers rank 0 gets all logits.) */
static void check_choices(struct job *job, int count)
{
    const int by_rows = job->division == TANDEM_DIVIDE_MIXED ? STEPS - 1 : STEPS;
    struct choices want, got;
    const int n_before = (int)CU_get_number_of_failures();
    int least = 0, most = 0;
    run(job, count, false, &want);
    run(job, count, true, &got);
    compare(&got, &want);
    for (int i = 0; i < TEXTS; i++) {
        least += job->asks[i]->sends_logits == ALWAYS ? STEPS : STEPS - by_rows;
        most += job->asks[i]->sends_logits != NEVER ? STEPS : STEPS - by_rows;
    }
    check_int(want.n_logits, TEXTS * STEPS);
    CU_ASSERT_TRUE(count == 1 || (got.n_logits >= least && got.n_logits <= most));
    if ((int)CU_get_number_of_failures() > n_before) {
        printf("  %s, %s, %d ranks, %d times logits\n", job->asks[0]->name, job->asks[1]->name,
               count, got.n_logits);
    }
}

/* `is_odd`: rows of the vocabulary's matrix are there twice, far from one another, so that logits
 * of different ranks are equal; one row is no number. */
static tandem_source *make_source(bool is_odd)
{
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 64,
                                             .hidden = 64,
                                             .layers = 1,
                                             .heads = 4,
                                             .kv_heads = 4,
                                             .vocabulary = VOCABULARY,
                                             .context = 64};
    tandem_source *source = NULL;
    struct tandem_source_tensor tensor;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 3, &source, NULL));
    for (int i = 0; is_odd && tandem_source_tensor_at(source, i, &tensor); i++) {
        if (strcmp(tensor.name, "output.weight") == 0) {
            float *rows = (float *)(uintptr_t)tensor.data;
            const size_t half = (size_t)64 * VOCABULARY / 2;
            memcpy(rows + half, rows, half * sizeof(rows[0]));
            rows[64 * 5] = NAN;
        }
    }
    return source;
}

struct world {
    tandem_source *source;
    tandem_model *model;
    tandem_tokenizer *tokenizer;
    tandem_grammar *grammars[2];
    tandem_token_trie *trie;
};

static struct job open_world(struct world *w, bool is_odd)
{
    static const char *const texts[] = {"[a-f]{2}(x[0-9]+y|[g-p])*", "[a-f]{3,5}(x[0-9]+)?y"};
    const char *path = tnd_test_temp("choices-tokens.bin");
    *w = (struct world){.source = make_source(is_odd)};
    CU_ASSERT_TRUE_FATAL(tnd_model_write_tokenizer(path, VOCABULARY));
    check_ok(tandem_tokenizer_open(path, 0, &w->tokenizer, NULL));
    check_ok(tandem_model_new(w->source, &w->model, NULL));
    for (int i = 0; i < 2; i++) {
        const struct tandem_grammar_options o = {.size = sizeof(o),
                                                 .kind = TANDEM_GRAMMAR_REGEX,
                                                 .text = texts[i],
                                                 .n = strlen(texts[i])};
        check_ok(tandem_grammar_new(&o, &w->grammars[i], NULL));
    }
    check_ok(tandem_token_trie_new(w->tokenizer, VOCABULARY, NULL, 0, &w->trie, NULL));
    return (struct job){
        .model = w->model, .tokenizer = w->tokenizer, .grammars = w->grammars, .trie = w->trie};
}

static void close_world(struct world *w)
{
    tandem_token_trie_free(w->trie);
    tandem_grammar_free(w->grammars[0]);
    tandem_grammar_free(w->grammars[1]);
    tandem_model_free(w->model);
    tandem_tokenizer_close(w->tokenizer);
    tandem_source_close(w->source);
}

/* Each way of asking, beside itself, and beside the one behind it. */
static void ranks_choose_what_the_sampler_would(void)
{
    static const int counts[] = {2, 3};
    for (int is_odd = 0; is_odd < 2; is_odd++) {
        struct world world;
        struct job job = open_world(&world, is_odd != 0);
        for (int i = 0; i < N_ASKS; i++) {
            job.asks[0] = &asks[i];
            job.asks[1] = &asks[(i + is_odd) % N_ASKS];
            check_choices(&job, counts[(i + is_odd) % 2]);
        }
        close_world(&world);
    }
}

static void any_number_of_ranks_and_shares_choose_alike(void)
{
    static const double shares[][7] = {{1},
                                       {3, 1},
                                       {0, 1, 1},
                                       {1, 0, 2},
                                       {5, 0, 0, 1},
                                       {1, 1, 1, 1, 1, 1, 1},
                                       {0.01, 1, 0, 2, 1, 1, 0.5}};
    static const int counts[] = {1, 2, 3, 3, 4, 7, 7};
    struct world world;
    struct job job = open_world(&world, true);
    for (int i = 0; i < 7; i++) {
        job.shares = shares[i];
        for (int a = 2; a < N_ASKS; a += 4) {
            job.asks[0] = &asks[a + i % 2];
            job.asks[1] = &asks[(a + 3) % N_ASKS];
            check_choices(&job, counts[i]);
        }
    }
    close_world(&world);
}

/* Where rank 0 has all rows, it chooses alone, by logits of the bits of one rank. */
static void mixed_ranks_choose_alike(void)
{
    static const double shares[][4] = {{1, 1}, {0, 2, 1}, {1, 1, 1, 1}, {1, 0, 0}},
                        layer_shares[][4] = {{1, 0}, {1, 0, 1}, {0, 0, 1, 1}, {0, 1, 1}};
    static const int counts[] = {2, 3, 4, 3};
    struct world world;
    struct job job = open_world(&world, true);
    for (int i = 0; i < 4; i++) {
        struct choices one, alone;
        job.division = TANDEM_DIVIDE_MIXED;
        job.shares = shares[i];
        job.layer_shares = layer_shares[i];
        for (int a = 0; a < N_ASKS && i < 3; a++) {
            job.asks[0] = &asks[a];
            job.asks[1] = &asks[(a + i) % N_ASKS];
            check_choices(&job, counts[i]);
        }
        if (i == 3) {
            run(&job, counts[i], true, &alone);
            job.division = TANDEM_DIVIDE_ROWS;
            job.shares = NULL;
            run(&job, 1, true, &one);
            compare(&alone, &one);
            check_int(alone.n_logits, TEXTS * STEPS);
        }
    }
    close_world(&world);
}

static CU_TestInfo tests[] = {
    {"ranks choose what the sampler would", ranks_choose_what_the_sampler_would},
    {"any number of ranks and shares choose alike", any_number_of_ranks_and_shares_choose_alike},
    {"mixed ranks choose alike", mixed_ranks_choose_alike},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_cluster_choices[];
CU_SuiteInfo suites_cluster_choices[] = {
    {"choices among ranks", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
