/* SPDX-License-Identifier: MIT
 * Models on ranks that are threads: golden texts, logits against plain loops over doubles, shares
 * that are not equal, ranks that have nothing of a block, everything that sessions do, and what is
 * refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite_llama_naive.h"
#include "tests/support_ranks.h"

enum { TEXT = 2048, STEPS = 60, WORDS = 512, STATE = 1 << 20 };

/* What rank 0 does with a session of all ranks. `out`: {values} of the job. */
struct job;
typedef enum tandem_status (*script_fn)(const struct job *job, tandem_session *session,
                                        struct tandem_error *error);
struct job {
    const tandem_model *model;
    const tandem_model *other; /* of the last rank; NULL: the same */
    const tandem_tokenizer *tokenizer;
    struct tandem_session_options options;
    int n_threads;
    script_fn script;
    const int32_t *tokens;
    float *out;
    char *text;
};

static enum tandem_status be_rank(tandem_communicator *communicator, void *user,
                                  struct tandem_error *error)
{
    const struct job *job = user;
    const int rank = tandem_communicator_rank(communicator);
    struct tandem_runtime_options of_runtime = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_session_options options = job->options;
    tandem_runtime *runtime = NULL;
    tandem_session *session = NULL;
    of_runtime.n_threads = job->n_threads;
    of_runtime.table_path = "";
    enum tandem_status status = tandem_runtime_open(&of_runtime, &runtime, error);
    if (status != TANDEM_OK) {
        return status;
    }
    if (rank > 0) {
        const bool is_last = rank == tandem_communicator_count(communicator) - 1;
        status = tandem_session_follow(is_last && job->other != NULL ? job->other : job->model,
                                       runtime, communicator, error);
    } else {
        options.communicator = communicator;
        status = tandem_session_new(job->model, runtime, &options, &session, error);
        status = status == TANDEM_OK ? job->script(job, session, error) : status;
        tandem_session_free(session);
        if (status == TANDEM_OK || tandem_communicator_error(communicator) == NULL) {
            (void)tandem_session_dismiss(communicator, NULL);
        }
    }
    tandem_runtime_close(runtime);
    return status;
}

/* Runs a job; checks that all ranks have done what they should. */
static void run(struct job *job, int count, const char *what)
{
    struct tnd_rank_result results[TND_RANKS_MOST];
    job->n_threads = job->n_threads == 0 ? 1 : job->n_threads;
    job->options.size = sizeof(job->options);
    tnd_ranks_run(count, be_rank, job, results);
    for (int r = 0; r < count; r++) {
        if (!check_status(results[r].status, TANDEM_OK, NULL, &results[r].error)) {
            printf("  rank %d of %d, %s\n", r, count, what);
        }
    }
}

/* ---- golden texts ---- */

static enum tandem_status write_text(const struct job *job, tandem_session *session,
                                     struct tandem_error *error)
{
    struct tandem_sampler_options of_sampler = TANDEM_SAMPLER_OPTIONS_INIT;
    struct tandem_generator_options wanted = TANDEM_GENERATOR_OPTIONS_INIT;
    tandem_sampler *sampler = NULL;
    tandem_generator *generator = NULL;
    int32_t ids[16];
    size_t n_ids = 0, at = 0, n = 0;
    bool more = true;
    of_sampler.vocabulary = tandem_model_hparams(job->model)->vocabulary;
    enum tandem_status status =
        tandem_tokenizer_encode(job->tokenizer, "Zoo", 3, true, ids, 16, &n_ids, error);
    status = status == TANDEM_OK ? tandem_sampler_new(&of_sampler, &sampler, error) : status;
    wanted.session = session;
    wanted.sampler = sampler;
    wanted.tokenizer = job->tokenizer;
    wanted.prompt = ids;
    wanted.n_prompt = (int64_t)n_ids;
    wanted.steps = STEPS;
    status = status == TANDEM_OK ? tandem_generator_new(&wanted, &generator, error) : status;
    while (status == TANDEM_OK && more && at < TEXT - 2) {
        status = tandem_generator_next(generator, job->text + at, TEXT - 2 - at, &n, &more, error);
        at += n;
    }
    job->text[at] = '\n';
    job->text[at + 1] = '\0';
    /* (the generator has left choices alone) */
    status = status == TANDEM_OK && job->out != NULL
                 ? tandem_session_decode(session, ids, 1, 0, error)
                 : status;
    const float *logits = tandem_session_logits(session, 0);
    if (status == TANDEM_OK && logits != NULL && job->out != NULL) {
        memcpy(job->out, logits, WORDS * sizeof(logits[0]));
    }
    tandem_generator_free(generator);
    tandem_sampler_free(sampler);
    return status;
}

struct trained {
    tandem_source *source;
    tandem_model *model;
    tandem_tokenizer *tokenizer;
    char *want;
};

static bool open_trained(struct trained *t)
{
    const char *model = tnd_test_data("llama/stories260K.bin");
    const char *tokenizer = tnd_test_data("llama/tok512.bin");
    const char *golden = tnd_test_data("llama/golden-zoo-t0-n60.txt");
    *t = (struct trained){.source = NULL};
    if (model == NULL || tokenizer == NULL || golden == NULL) {
        return false;
    }
    t->want = tnd_test_read_file(golden, NULL);
    return check_ok(tandem_source_open(model, &t->source, NULL)) &&
           check_ok(tandem_model_new(t->source, &t->model, NULL)) &&
           check_ok(tandem_tokenizer_open(tokenizer, WORDS, &t->tokenizer, NULL));
}

static void close_trained(struct trained *t)
{
    tandem_tokenizer_close(t->tokenizer);
    tandem_model_free(t->model);
    tandem_source_close(t->source);
    free(t->want);
}

/* 4 heads of keys and 172 rows: of 7 ranks some have nothing of a block. */
static void any_number_of_ranks_writes_the_golden_text(void)
{
    const int counts[] = {1, 2, 3, 4, 7};
    struct trained t;
    if (open_trained(&t)) {
        for (int i = 0; i < 5; i++) {
            char text[TEXT] = "";
            float logits[WORDS];
            struct job job = {.model = t.model,
                              .tokenizer = t.tokenizer,
                              .script = write_text,
                              .n_threads = 1 + i % 2,
                              .text = text,
                              .out = logits};
            run(&job, counts[i], "golden text");
            check_string(text, t.want);
        }
    }
    close_trained(&t);
}

static void unequal_shares_write_the_golden_text(void)
{
    static const double shares[][4] = {{3, 1}, {1, 5}, {0, 1, 1}, {1, 0, 2}, {0.1, 0.2, 0.3, 0.4}};
    const int counts[] = {2, 2, 3, 3, 4};
    struct trained t;
    if (open_trained(&t)) {
        for (int i = 0; i < 5; i++) {
            char text[TEXT] = "";
            struct job job = {.model = t.model,
                              .tokenizer = t.tokenizer,
                              .options = {.shares = shares[i]},
                              .script = write_text,
                              .text = text};
            run(&job, counts[i], "golden text, unequal shares");
            check_string(text, t.want);
        }
    }
    close_trained(&t);
}

static void the_same_ranks_give_the_same_bits_on_any_number_of_threads(void)
{
    struct trained t;
    if (open_trained(&t)) {
        float logits[2][WORDS];
        for (int i = 0; i < 2; i++) {
            char text[TEXT] = "";
            struct job job = {.model = t.model,
                              .tokenizer = t.tokenizer,
                              .script = write_text,
                              .n_threads = 1 + 2 * i,
                              .text = text,
                              .out = logits[i]};
            run(&job, 3, "bits");
        }
        check_bits(logits[0], logits[1], sizeof(logits[0]), "logits");
    }
    close_trained(&t);
}

/* ---- architectures ---- */

static const struct {
    const char *name;
    struct naive_spec spec;
} models[] = {
    {"llama", {0}},
    {"heads of 48, all biases", {.head_size = 48, .has_all_biases = true}},
    {"gelu", {.activation = "gelu_tanh"}},
    {"windows", {.architecture = "qwen2", .has_biases = true, .window = 9, .windowed = 2}},
    {"a window in all layers", {.window = 9}},
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
enum { N_MODELS = sizeof(models) / sizeof(models[0]) };

/* A batch, a token; then the last ones once more; out {2, vocabulary}. */
static enum tandem_status decode_some(const struct job *job, tandem_session *session,
                                      struct tandem_error *error)
{
    enum tandem_status status = tandem_session_decode(session, job->tokens, 30, 12, error);
    status = status == TANDEM_OK ? tandem_session_decode(session, job->tokens + 30, 1, 1, error)
                                 : status;
    if (status != TANDEM_OK) {
        return status;
    }
    memcpy(job->out, tandem_session_logits(session, 0), NAIVE_VOCABULARY * sizeof(float));
    const int64_t at = tandem_session_rollback(session, 0, 29); /* 0, where a window has moved on */
    status = tandem_session_decode(session, job->tokens + at, 31 - at, 5, error);
    if (status == TANDEM_OK) {
        memcpy(job->out + NAIVE_VOCABULARY, tandem_session_logits(session, 0),
               NAIVE_VOCABULARY * sizeof(float));
    }
    return status;
}

static void check_model_of(int i, int count, struct tandem_session_options options, double limit)
{
    int32_t tokens[NAIVE_TOKENS];
    float got[2 * NAIVE_VOCABULARY] = {0};
    double want[NAIVE_VOCABULARY];
    char what[96];
    tandem_source *source = naive_source(&models[i].spec);
    struct job job = {.options = options, .script = decode_some, .tokens = tokens, .out = got};
    tandem_model *model = NULL;
    check_ok(tandem_model_new(source, &model, NULL));
    naive_tokens(tokens, NAIVE_TOKENS);
    naive_logits(source, &models[i].spec, tokens, 31, want);
    snprintf(what, sizeof(what), "%s, %d ranks%s%s", models[i].name, count,
             options.is_unfused ? ", unfused" : "",
             options.has_whole_experts ? ", experts whole" : "");
    job.model = model;
    run(&job, count, what);
    check_nmse_double(got, want, NAIVE_VOCABULARY, limit, what);
    check_nmse_double(got + NAIVE_VOCABULARY, want, NAIVE_VOCABULARY, limit, what);
    tandem_model_free(model);
    tandem_source_close(source);
}

static void check_model(int i, int count, bool is_unfused, enum tandem_type cache, double limit)
{
    const struct tandem_session_options options = {.is_unfused = is_unfused, .cache_type = cache};
    check_model_of(i, count, options, limit);
}

/* Of 7 ranks some have no expert; shared experts go by rows. */
static void experts_whole_on_ranks_equal_plain_loops(void)
{
    static const double shares[][3] = {{1, 3, 1}, {0, 1, 1}, {5, 0, 2}};
    static const int counts[] = {1, 2, 3, 4, 7};
    for (int i = N_MODELS - 2; i < N_MODELS; i++) {
        struct tandem_session_options options = {.has_whole_experts = true};
        for (int c = 0; c < 5; c++) {
            check_model_of(i, counts[c], options, 1e-9);
        }
        for (int s = 0; s < 3; s++) {
            options.shares = shares[s];
            check_model_of(i, 3, options, 1e-9);
        }
    }
}

static void architectures_on_ranks_equal_plain_loops(void)
{
    for (int i = 0; i < N_MODELS; i++) {
        for (int count = 2; count <= 3; count++) {
            check_model(i, count, false, TANDEM_TYPE_F32, 1e-9);
            check_model(i, count, true, TANDEM_TYPE_F32, 1e-9);
        }
    }
    check_model(0, 7, false, TANDEM_TYPE_F32, 1e-9);
    check_model(6, 7, false, TANDEM_TYPE_F32, 1e-9);
    check_model(0, 2, false, TANDEM_TYPE_F16, 1e-5);
    check_model(0, 2, false, TANDEM_TYPE_Q8_0, 2e-3);
}

/* ---- what sessions do ---- */

/* Several texts in a batch, a copy, a shift: out as on one rank. */
static enum tandem_status do_all(const struct job *job, tandem_session *session,
                                 struct tandem_error *error)
{
    const int32_t *t = job->tokens;
    const struct tandem_batch_entry entries[] = {
        {.tokens = t, .n = 9, .sequence = 0, .wants_logits = true},
        {.tokens = t + 5, .n = 4, .sequence = 2, .wants_logits = true}};
    const struct tandem_batch_entry more = {
        .tokens = t + 20, .n = 2, .sequence = 1, .wants_logits = true};
    const int32_t wrong = NAIVE_VOCABULARY;
    if (tandem_session_decode(session, &wrong, 1, 0, NULL) != TANDEM_E_ARGUMENT) {
        return TANDEM_E_STATE;
    }
    enum tandem_status status = tandem_session_decode_batch(session, entries, 2, error);
    status = status == TANDEM_OK ? tandem_session_copy(session, 0, 1, 6, error) : status;
    status = status == TANDEM_OK ? tandem_session_decode_batch(session, &more, 1, error) : status;
    status = status == TANDEM_OK ? tandem_session_shift(session, 0, 2, 3, error) : status;
    status = status == TANDEM_OK ? tandem_session_decode(session, t + 30, 1, 0, error) : status;
    for (int i = 0; i < 3 && status == TANDEM_OK; i++) {
        memcpy(job->out + i * NAIVE_VOCABULARY, tandem_session_logits(session, i),
               NAIVE_VOCABULARY * sizeof(float));
    }
    return status;
}

/* By layers nothing is added up in another order: the bits of one rank. */
static void sessions_on_ranks_do_what_sessions_do(void)
{
    static const struct {
        int count;
        enum tandem_division division;
        bool has_embeddings;
    } cases[] = {{1, TANDEM_DIVIDE_ROWS, false},  {2, TANDEM_DIVIDE_ROWS, false},
                 {3, TANDEM_DIVIDE_ROWS, true},   {2, TANDEM_DIVIDE_LAYERS, false},
                 {3, TANDEM_DIVIDE_LAYERS, true}, {2, TANDEM_DIVIDE_MIXED, true},
                 {3, TANDEM_DIVIDE_MIXED, false}};
    const struct naive_spec spec = {.context = 0};
    float want[3 * NAIVE_VOCABULARY] = {0};
    int32_t tokens[NAIVE_TOKENS];
    tandem_source *source = naive_source(&spec);
    tandem_model *model = NULL;
    check_ok(tandem_model_new(source, &model, NULL));
    naive_tokens(tokens, NAIVE_TOKENS);
    for (int i = 0; i < 7; i++) {
        float got[3 * NAIVE_VOCABULARY] = {0};
        struct job job = {.model = model,
                          .options = {.n_sequences = 3,
                                      .division = cases[i].division,
                                      .prompt_batch = 2,
                                      .has_embeddings = cases[i].has_embeddings},
                          .script = do_all,
                          .tokens = tokens,
                          .out = i == 0 ? want : got};
        run(&job, cases[i].count, "sequences, copies, shifts");
        if (cases[i].division == TANDEM_DIVIDE_LAYERS) {
            check_bits(got, want, sizeof(want), "sequences, copies, shifts, by layers");
        } else if (i > 0) {
            check_nmse(got, want, 3 * NAIVE_VOCABULARY, 1e-9, "sequences, copies, shifts");
        }
    }
    tandem_model_free(model);
    tandem_source_close(source);
}

/* ---- saved states ---- */

/* Decodes the first tokens and writes the state to job->text, of STATE bytes; or, where one is
 * there, reads that. Then decodes the others, and leaves the logits in job->out. */
static enum tandem_status save_or_load(const struct job *job, tandem_session *session,
                                       struct tandem_error *error)
{
    enum { FIRST = NAIVE_TOKENS / 2 };
    size_t n;
    memcpy(&n, job->text, sizeof(n));
    enum tandem_status status = TANDEM_OK;
    if (n == 0) {
        status = tandem_session_decode(session, job->tokens, FIRST, 0, error);
        n = tandem_session_state_bytes(session);
        if (n + sizeof(n) > STATE) {
            return TANDEM_E_LIMIT;
        }
        memcpy(job->text, &n, sizeof(n));
        status = status == TANDEM_OK
                     ? tandem_session_state_write(session, job->text + sizeof(n), error)
                     : status;
    } else {
        char *state = job->text + sizeof(n);
        state[n / 2] ^= 1; /* damage is found before another rank is told */
        check_status(tandem_session_state_read(session, state, n, "state", NULL), TANDEM_E_FORMAT,
                     NULL, NULL);
        state[n / 2] ^= 1;
        status = tandem_session_state_read(session, state, n, "state", error);
        check_int(tandem_session_position(session, 0), FIRST);
    }
    if (status == TANDEM_OK) {
        status =
            tandem_session_decode(session, job->tokens + FIRST, NAIVE_TOKENS - FIRST, 0, error);
    }
    const float *logits = tandem_session_logits(session, 0);
    if (status == TANDEM_OK && logits != NULL) {
        memcpy(job->out, logits,
               (size_t)tandem_model_hparams(job->model)->vocabulary * sizeof(logits[0]));
    }
    return status;
}

/* With each type of cache; what one number of ranks has saved, another one reads. */
static void a_state_goes_from_any_ranks_to_any_others(void)
{
    enum { CASES = 14 };
    const enum tandem_division rows = TANDEM_DIVIDE_ROWS, layers = TANDEM_DIVIDE_LAYERS,
                               mixed = TANDEM_DIVIDE_MIXED;
    static const enum tandem_type types[CASES] = {
        TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_Q8_0, TANDEM_TYPE_F16, TANDEM_TYPE_F32,
        TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_Q8_0, TANDEM_TYPE_F16, TANDEM_TYPE_F32,
        TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_Q8_0, TANDEM_TYPE_F16};
    static const int counts[CASES][2] = {{2, 2}, {2, 1}, {1, 3}, {3, 2}, {7, 1}, {2, 2}, {2, 1},
                                         {1, 3}, {3, 2}, {2, 7}, {3, 3}, {3, 1}, {2, 7}, {1, 3}};
    const enum tandem_division divisions[CASES][2] = {
        {rows, rows},     {rows, rows},     {rows, rows},     {rows, rows},   {rows, rows},
        {layers, layers}, {layers, layers}, {layers, layers}, {layers, rows}, {rows, layers},
        {mixed, mixed},   {mixed, rows},    {layers, mixed},  {rows, mixed}};
    const struct naive_spec spec = {.context = 0};
    float saved[WORDS], loaded[WORDS];
    int32_t tokens[NAIVE_TOKENS];
    tandem_source *source = naive_source(&spec);
    tandem_model *model = NULL;
    char *state = calloc(1, STATE);
    check_ok(tandem_model_new(source, &model, NULL));
    naive_tokens(tokens, NAIVE_TOKENS);
    const int64_t n = tandem_model_hparams(model)->vocabulary;
    for (size_t i = 0; state != NULL && n <= WORDS && i < CASES; i++) {
        struct job job = {.model = model, .script = save_or_load, .tokens = tokens, .text = state};
        job.options.cache_type = types[i];
        job.options.is_unfused = i % 5 == 3; /* values are transposed */
        job.options.prompt_batch = 2;
        memset(state, 0, STATE);
        job.out = saved;
        job.options.division = divisions[i][0];
        run(&job, counts[i][0], "saves");
        job.out = loaded;
        job.options.division = divisions[i][1];
        run(&job, counts[i][1], "loads");
        if (!check_nmse(loaded, saved, n, 1e-4, "logits behind a state")) {
            printf("  %d ranks save, %d load\n", counts[i][0], counts[i][1]);
        }
    }
    free(state);
    tandem_model_free(model);
    tandem_source_close(source);
}

/* ---- layers in sequence ---- */

/* 5 layers: of 7 ranks some have none, and so has rank 0 by some shares, which samples all the
 * same. */
static void layers_in_sequence_write_the_golden_text(void)
{
    static const double shares[][4] = {{3, 1}, {1, 9}, {0, 1}, {0, 1, 1}, {1, 0, 2}, {1, 2, 1, 1}};
    const int counts[] = {2, 2, 2, 3, 3, 4, 1, 2, 3, 4, 7};
    struct trained t;
    if (open_trained(&t)) {
        float first[WORDS] = {0};
        for (int i = 0; i < 11; i++) {
            char text[TEXT] = "";
            float logits[WORDS];
            struct job job = {.model = t.model,
                              .tokenizer = t.tokenizer,
                              .options = {.division = TANDEM_DIVIDE_LAYERS},
                              .script = write_text,
                              .n_threads = 1 + i % 2,
                              .text = text,
                              .out = i == 0 ? first : logits};
            job.options.shares = i < 6 ? shares[i] : NULL;
            run(&job, counts[i], "golden text, layers in sequence");
            check_string(text, t.want);
            check_bits(job.out, first, sizeof(first), "logits, layers in sequence");
        }
    }
    close_trained(&t);
}

enum { CUT = 10 };

/* A batch in micro-batches of CUT tokens, a token, and a batch whose logits nobody reads. One rank
 * decodes them one behind the other. */
static enum tandem_status decode_cut(const struct job *job, tandem_session *session,
                                     struct tandem_error *error)
{
    const bool is_alone = job->options.micro_batches == 1;
    enum tandem_status status =
        tandem_session_decode(session, job->tokens, 3 * CUT, is_alone ? CUT : 3 * CUT, error);
    if (status == TANDEM_OK) {
        memcpy(job->out, tandem_session_logits(session, 0), NAIVE_VOCABULARY * sizeof(float));
        status = tandem_session_decode(session, job->tokens + 30, 8, is_alone ? 2 : 4, error);
    }
    if (status == TANDEM_OK) {
        memcpy(job->out + NAIVE_VOCABULARY, tandem_session_logits(session, 0),
               NAIVE_VOCABULARY * sizeof(float));
    }
    return status;
}

static void check_layers(int i, int count, const double *shares, bool is_unfused,
                         enum tandem_type cache)
{
    float want[2 * NAIVE_VOCABULARY] = {0}, got[2 * NAIVE_VOCABULARY] = {0};
    int32_t tokens[NAIVE_TOKENS];
    char what[96];
    tandem_source *source = naive_source(&models[i].spec);
    tandem_model *model = NULL;
    struct job job = {.options = {.is_unfused = is_unfused, .cache_type = cache},
                      .script = decode_cut,
                      .tokens = tokens};
    check_ok(tandem_model_new(source, &model, NULL));
    naive_tokens(tokens, NAIVE_TOKENS);
    snprintf(what, sizeof(what), "%s, layers of %d ranks%s", models[i].name, count,
             is_unfused ? ", unfused" : "");
    job.model = model;
    job.out = want;
    job.options.micro_batches = 1;
    run(&job, 1, what);
    job.out = got;
    job.options.micro_batches = 3;
    job.options.division = TANDEM_DIVIDE_LAYERS;
    job.options.shares = shares;
    run(&job, count, what);
    if (models[i].spec.window > 0 && models[i].spec.windowed == 0) { /* in other cells */
        check_nmse(got, want, NAIVE_VOCABULARY, 1e-9, what);
    } else {
        check_bits(got, want, sizeof(want[0]) * NAIVE_VOCABULARY, what);
    }
    check_nmse(got + NAIVE_VOCABULARY, want + NAIVE_VOCABULARY, NAIVE_VOCABULARY,
               cache == TANDEM_TYPE_F32 ? 1e-9 : 1e-3, what); /* (other cuts) */
    tandem_model_free(model);
    tandem_source_close(source);
}

static void layers_in_sequence_give_the_bits_of_one_rank(void)
{
    static const double last[] = {0, 0, 1}, first[] = {2, 0, 0}, none_first[] = {0, 1, 1};
    for (int i = 0; i < N_MODELS; i++) {
        check_layers(i, 2, NULL, false, TANDEM_TYPE_F32);
        check_layers(i, 3, none_first, true, TANDEM_TYPE_F32);
    }
    check_layers(0, 3, NULL, false, TANDEM_TYPE_F16);
    check_layers(6, 3, last, false, TANDEM_TYPE_F32);
    check_layers(0, 3, first, false, TANDEM_TYPE_Q8_0);
}

/* Bytes of keys and values of rank 0. */
static enum tandem_status tell_cache(const struct job *job, tandem_session *session,
                                     struct tandem_error *error)
{
    struct tandem_cache_info info = {.bytes = 0};
    (void)error;
    CU_ASSERT_TRUE(tandem_session_cache(session, 0, &info));
    job->out[0] = (float)info.bytes;
    job->out[1] = (float)tandem_session_cache_bytes(session);
    return TANDEM_OK;
}

static void a_rank_keeps_keys_and_values_of_its_layers(void)
{
    const struct naive_spec spec = {.context = 4096};
    const double shares[][2] = {{1, 1}, {0, 1}};
    float all[2] = {0};
    tandem_source *source = naive_source(&spec);
    tandem_model *model = NULL;
    check_ok(tandem_model_new(source, &model, NULL));
    struct job job = {.model = model, .script = tell_cache, .out = all};
    run(&job, 1, "cache of one rank");
    for (int i = 0; i < 2; i++) { /* one of two layers, and none */
        float part[2] = {0};
        job.out = part;
        job.options.division = TANDEM_DIVIDE_LAYERS;
        job.options.shares = shares[i];
        run(&job, 2, "cache of a rank");
        CU_ASSERT_EQUAL(part[0], all[0] / 2 * (float)(1 - i));
        CU_ASSERT_TRUE(part[1] < all[1]);
    }
    tandem_model_free(model);
    tandem_source_close(source);
}

/* ---- what is refused ---- */

static bool yes(void *user)
{
    (void)user;
    return true;
}

static enum tandem_status ask_for_too_much(const struct job *job, tandem_session *session,
                                           struct tandem_error *error)
{
    struct tandem_draft_options draft = TANDEM_DRAFT_OPTIONS_INIT;
    (void)error;
    const bool is_right =
        tandem_session_set_draft(session, &draft, NULL) == TANDEM_E_UNSUPPORTED_BUILD;
    tandem_session_set_cancel(session, yes, NULL);
    return is_right && tandem_session_decode(session, job->tokens, 2, 0, NULL) == TANDEM_E_CANCELLED
               ? TANDEM_OK
               : TANDEM_E_STATE;
}

static void what_ranks_cannot_do_yet_is_refused(void)
{
    const struct naive_spec spec = {.context = 0};
    const double none[] = {0, 0}, below[] = {1, -1};
    struct tnd_rank_result results[TND_RANKS_MOST];
    int32_t tokens[NAIVE_TOKENS];
    tandem_source *source = naive_source(&spec);
    tandem_model *model = NULL;
    check_ok(tandem_model_new(source, &model, NULL));
    naive_tokens(tokens, NAIVE_TOKENS);
    struct job job = {.model = model, .script = ask_for_too_much, .tokens = tokens};
    run(&job, 2, "refusals");
    for (int i = 0; i < 2; i++) {
        job.options.shares = i == 0 ? none : below;
        tnd_ranks_run(2, be_rank, &job, results);
        check_status(results[0].status, TANDEM_E_ARGUMENT, "shares of ranks", &results[0].error);
        check_ok(results[1].status);
    }
    job.options.shares = NULL;
    job.options.division = (enum tandem_division)3;
    tnd_ranks_run(2, be_rank, &job, results);
    check_status(results[0].status, TANDEM_E_ARGUMENT, "division 3", &results[0].error);
    check_ok(results[1].status);
    job.options.division = TANDEM_DIVIDE_LAYERS;
    job.options.micro_batches = 9;
    tnd_ranks_run(2, be_rank, &job, results);
    check_status(results[0].status, TANDEM_E_ARGUMENT, "9 micro-batches", &results[0].error);
    check_ok(results[1].status);
    tandem_model_free(model);
    tandem_source_close(source);
}

static void another_model_file_is_refused_with_its_rank(void)
{
    const struct naive_spec specs[] = {{.context = 0}, {.context = 128}};
    struct tnd_rank_result results[TND_RANKS_MOST];
    int32_t tokens[NAIVE_TOKENS];
    tandem_source *sources[2];
    tandem_model *both[2] = {NULL};
    naive_tokens(tokens, NAIVE_TOKENS);
    for (int i = 0; i < 2; i++) {
        sources[i] = naive_source(&specs[i]);
        check_ok(tandem_model_new(sources[i], &both[i], NULL));
    }
    struct job job = {.model = both[0],
                      .other = both[1],
                      .options = {.size = sizeof(job.options)},
                      .n_threads = 1,
                      .script = ask_for_too_much,
                      .tokens = tokens};
    tnd_ranks_run(3, be_rank, &job, results);
    check_status(results[0].status, TANDEM_E_FORMAT, "rank 2 on", &results[0].error);
    check_contains(results[0].error.text, "has another model file than rank 0");
    for (int i = 0; i < 2; i++) {
        tandem_model_free(both[i]);
        tandem_source_close(sources[i]);
    }
}

/* ---- failures ---- */

/* Rank 1 opens its session as it should, and leaves then. */
static enum tandem_status die_early(tandem_communicator *communicator, void *user,
                                    struct tandem_error *error)
{
    if (tandem_communicator_rank(communicator) != 1) {
        return be_rank(communicator, user, error);
    }
    const struct tandem_error why = {.status = TANDEM_E_STATE, .text = "done"};
    tandem_communicator_fail(communicator, &why);
    return TANDEM_OK;
}

static enum tandem_status decode_on(const struct job *job, tandem_session *session,
                                    struct tandem_error *error)
{
    return tandem_session_decode(session, job->tokens, 5, 0, error);
}

static void a_rank_that_dies_ends_the_others(void)
{
    const struct naive_spec spec = {.context = 0};
    struct tnd_rank_result results[TND_RANKS_MOST];
    int32_t tokens[NAIVE_TOKENS];
    tandem_source *source = naive_source(&spec);
    tandem_model *model = NULL;
    check_ok(tandem_model_new(source, &model, NULL));
    naive_tokens(tokens, NAIVE_TOKENS);
    struct job job = {.model = model,
                      .options = {.size = sizeof(job.options)},
                      .n_threads = 1,
                      .script = decode_on,
                      .tokens = tokens};
    for (int division = TANDEM_DIVIDE_ROWS; division <= TANDEM_DIVIDE_MIXED; division++) {
        job.options.division = (enum tandem_division)division;
        tnd_ranks_run(3, die_early, &job, results);
        check_status(results[0].status, TANDEM_E_RANK, "did not take part", &results[0].error);
        check_status(results[2].status, TANDEM_E_RANK, "did not take part", &results[2].error);
    }
    tandem_model_free(model);
    tandem_source_close(source);
}

static CU_TestInfo tests[] = {
    {"any number of ranks writes the golden text", any_number_of_ranks_writes_the_golden_text},
    {"unequal shares write the golden text", unequal_shares_write_the_golden_text},
    {"the same ranks give the same bits on any number of threads",
     the_same_ranks_give_the_same_bits_on_any_number_of_threads},
    {"experts whole on ranks equal plain loops", experts_whole_on_ranks_equal_plain_loops},
    {"architectures on ranks equal plain loops", architectures_on_ranks_equal_plain_loops},
    {"sessions on ranks do what sessions do", sessions_on_ranks_do_what_sessions_do},
    {"a state goes from any ranks to any others", a_state_goes_from_any_ranks_to_any_others},
    {"layers in sequence write the golden text", layers_in_sequence_write_the_golden_text},
    {"layers in sequence give the bits of one rank", layers_in_sequence_give_the_bits_of_one_rank},
    {"a rank keeps keys and values of its layers", a_rank_keeps_keys_and_values_of_its_layers},
    {"what ranks cannot do yet is refused", what_ranks_cannot_do_yet_is_refused},
    {"another model file is refused with its rank", another_model_file_is_refused_with_its_rank},
    {"a rank that dies ends the others", a_rank_that_dies_ends_the_others},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_cluster_models[] = {
    {"models on ranks", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
