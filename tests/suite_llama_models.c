/* SPDX-License-Identifier: MIT
 * Every architecture against plain loops over doubles: rope and its scalings, biases, windows,
 * caches of every type, several sequences, context shift; fused attention and not. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "llama/session.h"
#include "tests/suite_llama_naive.h"
#include "tests/support_models.h"

static const struct {
    const char *name;
    struct naive_spec spec;
} models[] = {
    {"llama", {0}},
    {"llama with halves", {.has_halves = true}},
    {"llama with heads of 48", {.head_size = 48, .freq_base = 500000}},
    {"linear scaling", {.scaling = "linear", .factor = 4}},
    {"NTK scaling", {.scaling = "ntk", .factor = 8}},
    {"dynamic scaling within the context", {.scaling = "dynamic", .factor = 8}},
    {"llama 3", {.scaling = "llama3", .factor = 8, .original = 32, .freq_base = 5000}},
    {"llama 3 of a GGUF file",
     {.scaling = "llama3", .factor = 8, .original = 32, .freq_base = 5000, .has_rope_freqs = true}},
    {"yarn", {.scaling = "yarn", .factor = 4, .original = 2048}},
    {"yarn with more said",
     {.scaling = "yarn",
      .factor = 16,
      .original = 600,
      .freq_base = 5000,
      .attn_factor = 0.8,
      .has_betas = true,
      .has_halves = true}},
    {"yarn of a part of each head", {.scaling = "yarn", .factor = 8, .original = 512, .n_rot = 20}},
    {"longrope, a short session", {.scaling = "longrope", .original = 64, .attn_factor = 1.2}},
    {"longrope, a long session", {.scaling = "longrope", .original = 32, .attn_factor = 1.2}},
    {"a part of each head is rotated", {.n_rot = 16}},
    {"a part of each head, halves",
     {.n_rot = 24, .has_halves = true, .scaling = "linear", .factor = 2, .attn_factor = 1.5}},
    {"heads narrower than dim / heads", {.head_size = 16, .has_all_biases = true}},
    {"gelu", {.activation = "gelu"}},
    {"gelu by tanh", {.activation = "gelu_tanh", .has_all_biases = true}},
    {"quick gelu", {.activation = "quick_gelu"}},
    {"relu", {.activation = "relu"}},
    {"relu squared", {.activation = "relu2"}},
    {"no activation", {.activation = "linear"}},
    {"a window in the second layer",
     {.architecture = "qwen2", .has_biases = true, .window = 9, .windowed = 2}},
    {"a window in the first layer", {.window = 9, .windowed = 1}},
    {"qwen3", {.architecture = "qwen3", .has_head_norms = true, .head_size = 48}},
    {"mixtral", {.experts = 8, .used = 2, .freq_base = 1000000}},
    {"experts that are not normed", {.experts = 5, .used = 3, .normed = -1}},
    {"qwen2moe",
     {.architecture = "qwen2moe",
      .has_biases = true,
      .experts = 7,
      .used = 4,
      .expert_hidden = 40,
      .shared_hidden = 56}},
    {"qwen2moe, normed",
     {.architecture = "qwen2moe",
      .has_biases = true,
      .experts = 4,
      .used = 2,
      .expert_hidden = 48,
      .shared_hidden = 24,
      .normed = 1}},
    {"qwen3moe",
     {.architecture = "qwen3moe",
      .has_head_norms = true,
      .experts = 16,
      .used = 8,
      .expert_hidden = 32}},
    {"mistral", {.architecture = "mistral", .window = 9}},
    {"qwen2", {.architecture = "qwen2", .has_biases = true, .freq_base = 1000000}},
};
enum { N_MODELS = sizeof(models) / sizeof(models[0]), WINDOWED = N_MODELS - 2 };

/* A model, a runtime and a session. */
struct setup {
    const struct naive_spec *spec;
    tandem_source *source;
    tandem_model *model;
    tandem_runtime *runtime;
    tandem_session *session;
    int32_t tokens[NAIVE_TOKENS];
};

static struct setup setup_new(const struct naive_spec *spec,
                              const struct tandem_session_options *options)
{
    struct setup s = {.spec = spec, .source = naive_source(spec)};
    struct tandem_error error = {0};
    s.runtime = tnd_test_runtime(2, NULL);
    naive_tokens(s.tokens, NAIVE_TOKENS);
    check_status(tandem_model_new(s.source, &s.model, &error), TANDEM_OK, NULL, &error);
    check_status(tandem_session_new(s.model, s.runtime, options, &s.session, &error), TANDEM_OK,
                 NULL, &error);
    return s;
}

static void setup_free(struct setup *s)
{
    tandem_session_free(s->session);
    tandem_runtime_close(s->runtime);
    tandem_model_free(s->model);
    tandem_source_close(s->source);
}

static void check_logits(const struct setup *s, const float *got, const int32_t *tokens, int64_t n,
                         double limit, const char *what)
{
    double want[NAIVE_VOCABULARY];
    naive_logits(s->source, s->spec, tokens, n, want);
    CU_ASSERT_PTR_NOT_NULL(got);
    if (got != NULL) {
        check_nmse_double(got, want, NAIVE_VOCABULARY, limit, what);
    }
}

static void check_model(int i, bool is_unfused, int64_t batch)
{
    const struct tandem_session_options options = {.size = sizeof(options),
                                                   .is_unfused = is_unfused};
    struct setup s = setup_new(&models[i].spec, &options);
    char what[96];
    snprintf(what, sizeof(what), "%s, %s, batches of %lld", models[i].name,
             is_unfused ? "unfused" : "fused", (long long)batch);
    check_ok(tandem_session_decode(s.session, s.tokens, 30, batch, NULL));
    check_logits(&s, tandem_session_logits(s.session, 0), s.tokens, 30, 1e-9, what);
    check_ok(tandem_session_decode(s.session, s.tokens + 30, 1, 1, NULL));
    check_logits(&s, tandem_session_logits(s.session, 0), s.tokens, 31, 1e-9, what);
    setup_free(&s);
}

static void every_architecture_equals_plain_loops(void)
{
    for (int i = 0; i < N_MODELS; i++) {
        check_model(i, false, 0);
        check_model(i, false, 7);
        check_model(i, false, 1);
        check_model(i, true, 0);
        check_model(i, true, 4);
    }
}

/* Hits equal those of plain loops, and a step of one token touches only the weights of the experts
 * that it uses. */
static void the_use_of_experts_is_counted(void)
{
    for (int i = 0; i < N_MODELS; i++) {
        const struct naive_spec *spec = &models[i].spec;
        const struct tandem_session_options options = {.size = sizeof(options)};
        struct setup s = setup_new(spec, &options);
        struct tandem_expert_use use = {.layers = 0};
        double logits[NAIVE_VOCABULARY];
        check_ok(tandem_session_decode(s.session, s.tokens, 30, 7, NULL));
        check_ok(tandem_session_decode(s.session, s.tokens + 30, 1, 1, NULL));
        check_int(tandem_session_expert_use(s.session, &use), spec->experts > 0);
        if (spec->experts > 0) {
            naive_logits(s.source, spec, s.tokens, 31, logits);
            check_int(use.batches, 6);
            check_int(use.tokens, 31);
            check_int(use.experts, spec->experts);
            for (int64_t e = 0; e < use.layers * use.experts; e++) {
                check_int(use.hits[e],
                          naive_expert_hits((int)(e / use.experts), (int)(e % use.experts)));
            }
            check_int(use.bytes_last * spec->experts, use.bytes_all * spec->used);
            CU_ASSERT(use.bytes_sum > use.bytes_last && use.bytes_sum <= 6 * use.bytes_all);
        }
        setup_free(&s);
    }
}

static void caches_of_16_8_and_4_bits_keep_the_logits_near(void)
{
    const struct {
        enum tandem_type type;
        double limit;
    } caches[] = {{TANDEM_TYPE_F32, 1e-9},
                  {TANDEM_TYPE_F16, 1e-5},
                  {TANDEM_TYPE_Q8_0, 2e-3},
                  {TANDEM_TYPE_Q4_0, 0.2}};
    for (int c = 0; c < 4; c++) {
        for (int is_unfused = 0; is_unfused < (c < 2 ? 2 : 1); is_unfused++) {
            const struct tandem_session_options options = {.size = sizeof(options),
                                                           .cache_type = caches[c].type,
                                                           .is_unfused = is_unfused != 0};
            struct setup s = setup_new(&models[0].spec, &options);
            check_ok(tandem_session_decode(s.session, s.tokens, NAIVE_TOKENS, 9, NULL));
            check_logits(&s, tandem_session_logits(s.session, 0), s.tokens, NAIVE_TOKENS,
                         caches[c].limit, tandem_type_name(caches[c].type));
            setup_free(&s);
        }
    }
}

static void caches_that_cannot_be_are_refused(void)
{
    tandem_session *session = NULL;
    struct tandem_error error = {0};
    const struct tandem_session_options fine = {.size = sizeof(fine)};
    struct setup s = setup_new(&models[2].spec, &fine); /* heads of 48 */
    const struct tandem_session_options blocks = {.size = sizeof(blocks),
                                                  .cache_type = TANDEM_TYPE_Q8_0};
    check_status(tandem_session_new(s.model, s.runtime, &blocks, &session, &error),
                 TANDEM_E_ARGUMENT, "heads of 48 values cannot be stored as q8_0", &error);
    const struct tandem_session_options other = {.size = sizeof(other),
                                                 .cache_type = TANDEM_TYPE_Q4_1};
    check_status(tandem_session_new(s.model, s.runtime, &other, &session, &error),
                 TANDEM_E_ARGUMENT, "q4_1", &error);
    const struct tandem_session_options halves = {.size = sizeof(halves),
                                                  .cache_type = TANDEM_TYPE_Q4_0};
    check_status(tandem_session_new(s.model, s.runtime, &halves, &session, &error),
                 TANDEM_E_ARGUMENT, "heads of 48 values cannot be stored as q4_0", &error);
    const struct tandem_session_options many = {.size = sizeof(many), .n_sequences = 128};
    check_status(tandem_session_new(s.model, s.runtime, &many, &session, &error), TANDEM_E_ARGUMENT,
                 "128 sequences", &error);
    setup_free(&s);
    s = setup_new(&models[0].spec, &fine);
    const struct tandem_session_options turned = {
        .size = sizeof(turned), .cache_type = TANDEM_TYPE_Q8_0, .is_unfused = true};
    check_status(tandem_session_new(s.model, s.runtime, &turned, &session, &error),
                 TANDEM_E_ARGUMENT, "not fused needs f32 or f16", &error);
    CU_ASSERT_PTR_NULL(session);
    setup_free(&s);
}

/* ---- windows ---- */

static void a_window_rotates_through_a_small_cache(void)
{
    /* window 9, cells for 12 tokens, 40 tokens: each cell is used several times */
    const struct tandem_session_options options = {.size = sizeof(options), .n_cells = 12};
    struct setup s = setup_new(&models[WINDOWED].spec, &options);
    for (int64_t n = 0; n < NAIVE_TOKENS; n += 2) {
        check_ok(tandem_session_decode(s.session, s.tokens + n, 2, 2, NULL));
        check_logits(&s, tandem_session_logits(s.session, 0), s.tokens, n + 2, 1e-9, "rotating");
    }
    check_int(tandem_session_position(s.session, 0), NAIVE_TOKENS);
    /* what the window has lost cannot be gone back to, what it still has can */
    check_int(tandem_session_rollback(s.session, 0, NAIVE_TOKENS - 2), NAIVE_TOKENS - 2);
    check_ok(tandem_session_decode(s.session, s.tokens + NAIVE_TOKENS - 2, 2, 1, NULL));
    check_logits(&s, tandem_session_logits(s.session, 0), s.tokens, NAIVE_TOKENS, 1e-9, "rewound");
    check_int(tandem_session_rollback(s.session, 0, 20), 0);
    check_int(tandem_session_position(s.session, 0), 0);
    check_ok(tandem_session_decode(s.session, s.tokens, 11, 0, NULL));
    check_logits(&s, tandem_session_logits(s.session, 0), s.tokens, 11, 1e-9, "again");
    setup_free(&s);
}

/* ---- sequences ---- */

static void sequences_in_one_batch_do_not_see_each_other(void)
{
    for (int is_unfused = 0; is_unfused < 2; is_unfused++) {
        const struct tandem_session_options options = {
            .size = sizeof(options), .n_sequences = 3, .is_unfused = is_unfused != 0};
        struct setup s = setup_new(&models[is_unfused ? WINDOWED : 0].spec, &options);
        const int32_t *texts[] = {s.tokens, s.tokens + 5, s.tokens + 11};
        const int64_t lengths[] = {6, 1, 9};
        int64_t position[3] = {0};
        for (int round = 0; round < 3; round++) {
            struct tandem_batch_entry entries[3];
            for (int i = 0; i < 3; i++) { /* in another order each time */
                const int q = (i + round) % 3;
                entries[i] =
                    (struct tandem_batch_entry){texts[q] + position[q], lengths[q], q, true};
                position[q] += lengths[q];
            }
            check_ok(tandem_session_decode_batch(s.session, entries, 3, NULL));
            for (int q = 0; q < 3; q++) {
                check_int(tandem_session_position(s.session, q), position[q]);
                check_logits(&s, tandem_session_logits(s.session, q), texts[q], position[q], 1e-9,
                             "sequences");
            }
        }
        /* one of them begins anew, the others go on, in cells that lie apart now */
        check_int(tandem_session_rollback(s.session, 0, 0), 0);
        const struct tandem_batch_entry more[] = {{s.tokens + 20, 19, 0, true},
                                                  {texts[2] + 27, 2, 2, true}};
        check_ok(tandem_session_decode_batch(s.session, more, 2, NULL));
        check_logits(&s, tandem_session_logits(s.session, 0), s.tokens + 20, 19, 1e-9, "anew");
        check_logits(&s, tandem_session_logits(s.session, 2), texts[2], 29, 1e-9, "on");
        setup_free(&s);
    }
}

static void a_window_that_moved_on_has_no_prefix_to_copy(void)
{
    const struct tandem_session_options options = {
        .size = sizeof(options), .n_sequences = 2, .n_cells = 24};
    struct setup s = setup_new(&models[WINDOWED].spec, &options);
    struct tandem_error error = {0};
    check_ok(tandem_session_decode(s.session, s.tokens, 20, 4, NULL));
    check_status(tandem_session_copy(s.session, 0, 1, 10, &error), TANDEM_E_NOT_FOUND, "window",
                 &error);
    check_int(tandem_session_position(s.session, 1), 0);
    check_ok(tandem_session_copy(s.session, 0, 1, 20, NULL));
    const struct tandem_batch_entry more = {s.tokens + 20, 3, 1, true};
    check_ok(tandem_session_decode_batch(s.session, &more, 1, NULL));
    check_logits(&s, tandem_session_logits(s.session, 1), s.tokens, 23, 1e-9, "behind a window");
    setup_free(&s);
}

static void an_entry_gets_logits_only_where_it_wants_them(void)
{
    const struct tandem_session_options options = {.size = sizeof(options), .n_sequences = 3};
    struct setup s = setup_new(&models[0].spec, &options);
    const int32_t *texts[] = {s.tokens, s.tokens + 5, s.tokens + 11};
    const struct tandem_batch_entry entries[] = {
        {texts[0], 4, 0, true}, {texts[1], 3, 1, false}, {texts[2], 5, 2, true}};
    check_ok(tandem_session_decode_batch(s.session, entries, 3, NULL));
    check_logits(&s, tandem_session_logits(s.session, 0), texts[0], 4, 1e-9, "first");
    check_logits(&s, tandem_session_logits(s.session, 2), texts[2], 5, 1e-9, "third");
    CU_ASSERT_PTR_NULL(tandem_session_logits(s.session, 1));
    const struct tandem_batch_entry rest[] = {{texts[0] + 4, 2, 0, false},
                                              {texts[1] + 3, 2, 1, true}};
    check_ok(tandem_session_decode_batch(s.session, rest, 2, NULL));
    CU_ASSERT_PTR_NULL(tandem_session_logits(s.session, 0));
    check_logits(&s, tandem_session_logits(s.session, 1), texts[1], 5, 1e-9, "second");
    /* a sequence that does not exist */
    CU_ASSERT_PTR_NULL(tandem_session_logits(s.session, 3));
    CU_ASSERT_PTR_NULL(tandem_session_logits(s.session, -1));
    check_int(tandem_session_position(s.session, 3), 0);
    check_int(tandem_session_rollback(s.session, -1, 0), 0);
    setup_free(&s);
}

static void batch_entries_that_do_not_fit_are_refused(void)
{
    const struct tandem_session_options options = {
        .size = sizeof(options), .n_sequences = 2, .n_cells = 20};
    struct setup s = setup_new(&models[0].spec, &options);
    struct tandem_error error = {0};
    const struct tandem_batch_entry twice[] = {{s.tokens, 2, 1, true}, {s.tokens, 2, 1, true}};
    check_status(tandem_session_decode_batch(s.session, twice, 2, &error), TANDEM_E_ARGUMENT,
                 "batch entry 1 has 2 tokens for sequence 1", &error);
    const struct tandem_batch_entry outside[] = {{s.tokens, 2, 2, true}};
    check_status(tandem_session_decode_batch(s.session, outside, 1, &error), TANDEM_E_ARGUMENT,
                 "sequence 2", &error);
    const struct tandem_batch_entry empty[] = {{s.tokens, 0, 0, true}};
    check_status(tandem_session_decode_batch(s.session, empty, 1, &error), TANDEM_E_ARGUMENT,
                 "0 tokens", &error);
    const struct tandem_batch_entry large[] = {{s.tokens, 11, 0, true}, {s.tokens, 10, 1, true}};
    check_status(tandem_session_decode_batch(s.session, large, 2, &error), TANDEM_E_LIMIT,
                 "21 more tokens do not fit: 20 of 20 cells are free", &error);
    check_int(tandem_session_position(s.session, 1), 0);
    check_ok(tandem_session_decode_batch(s.session, large, 1, NULL));
    setup_free(&s);
}

/* ---- shift ---- */

/* The key of a token in a layer as floats; returns how many. */
static int64_t key_of(const tandem_session *session, int layer, int64_t position, float *out)
{
    const struct tnd_llama_kv_cache *cache = &session->cache;
    const int64_t n = cache->head_size * cache->kv_heads;
    const char *rows = tandem_tensor_data(cache->keys[layer]);
    for (int64_t cell = 0; cell < cache->n_used; cell++) {
        if (cache->orders[cell] == position) {
            check_ok(tandem_dequantize(
                cache->type, rows + (size_t)cell * tandem_type_row_bytes(cache->type, n), out, n));
            return n;
        }
    }
    return 0;
}

static void a_shift_turns_keys_to_their_new_positions(void)
{
    const enum tandem_type types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_Q8_0};
    const double limits[] = {1e-8, 1e-4, 1e-2};
    for (int i = 0; i < N_MODELS; i++) {
        for (int c = 0; c < (i == 0 ? 3 : 1); c++) {
            /* the first layer's keys depend on token and position alone: after forgetting tokens 2
             * to 6 the cache must hold what the text without them gives */
            const struct tandem_session_options options = {.size = sizeof(options),
                                                           .cache_type = types[c]};
            struct setup s = setup_new(&models[i].spec, &options);
            struct setup t = setup_new(&models[i].spec, &options);
            int32_t shorter[NAIVE_TOKENS];
            float got[1024], want[1024];
            memcpy(shorter, s.tokens, 2 * sizeof(shorter[0]));
            memcpy(shorter + 2, s.tokens + 7, 5 * sizeof(shorter[0]));
            check_ok(tandem_session_decode(s.session, s.tokens, 12, 0, NULL));
            check_ok(tandem_session_shift(s.session, 0, 2, 5, NULL));
            check_int(tandem_session_position(s.session, 0), 7);
            check_ok(tandem_session_decode(t.session, shorter, 7, 0, NULL));
            for (int64_t position = 0; position < 7; position++) {
                const int64_t n = key_of(s.session, 0, position, got);
                CU_ASSERT(n > 0);
                check_int(key_of(t.session, 0, position, want), n);
                check_nmse(got, want, n, limits[c], models[i].name);
            }
            check_ok(tandem_session_decode(s.session, s.tokens, 3, 0, NULL));
            check_int(tandem_session_position(s.session, 0), 10);
            setup_free(&s);
            setup_free(&t);
        }
    }
}

static void a_shift_of_what_is_not_there_is_refused(void)
{
    const struct tandem_session_options options = {.size = sizeof(options)};
    struct setup s = setup_new(&models[0].spec, &options);
    struct tandem_error error = {0};
    check_ok(tandem_session_decode(s.session, s.tokens, 10, 0, NULL));
    check_status(tandem_session_shift(s.session, 0, 5, 6, &error), TANDEM_E_ARGUMENT,
                 "6 tokens behind the first 5", &error);
    check_status(tandem_session_shift(s.session, 0, -1, 2, &error), TANDEM_E_ARGUMENT, NULL,
                 &error);
    check_status(tandem_session_shift(s.session, 1, 0, 2, &error), TANDEM_E_ARGUMENT, NULL, &error);
    check_ok(tandem_session_shift(s.session, 0, 4, 6, NULL)); /* the end: nothing to turn */
    check_int(tandem_session_position(s.session, 0), 4);
    check_ok(tandem_session_decode(s.session, s.tokens + 4, 1, 0, NULL));
    check_logits(&s, tandem_session_logits(s.session, 0), s.tokens, 5, 1e-9, "after the shift");
    setup_free(&s);
}

/* ---- files ---- */

/* Logits of a model file equal those of plain loops over the source that it was made of. */
static void check_file(const char *path, const tandem_source *made, const struct naive_spec *spec,
                       float *out, const char *what)
{
    const struct tandem_session_options options = {.size = sizeof(options)};
    struct setup s = {.spec = spec, .runtime = tnd_test_runtime(2, NULL)};
    double want[NAIVE_VOCABULARY];
    naive_tokens(s.tokens, NAIVE_TOKENS);
    naive_logits(made, spec, s.tokens, 31, want);
    check_ok(tandem_source_open(path, &s.source, NULL));
    check_ok(tandem_model_new(s.source, &s.model, NULL));
    check_ok(tandem_session_new(s.model, s.runtime, &options, &s.session, NULL));
    check_ok(tandem_session_decode(s.session, s.tokens, 31, 0, NULL));
    memcpy(out, tandem_session_logits(s.session, 0), NAIVE_VOCABULARY * sizeof(float));
    check_nmse_double(out, want, NAIVE_VOCABULARY, 1e-9, what);
    setup_free(&s);
}

/* Models of Hugging Face say the scaling of rope in config.json; a GGUF file says it so that other
 * programs know it too: llama 3's as divisors, NTK's in the base. */
static void scalings_of_rope_go_from_config_json_into_gguf(void)
{
    static const struct {
        const char *name;
        struct naive_spec spec;
        const char *config;
        const char *key; /* of the scaling's type in the GGUF file; NULL: none */
    } rows[] = {
        {"linear",
         {.scaling = "linear", .factor = 4},
         "\"type\":\"linear\",\"factor\":4.0",
         "linear"},
        {"NTK", {.scaling = "ntk", .factor = 8}, "\"type\":\"ntk\",\"factor\":8.0", NULL},
        {"dynamic", {0}, "\"type\":\"dynamic\",\"factor\":8.0", NULL},
        {"llama 3",
         {.scaling = "llama3", .factor = 8, .original = 32, .freq_base = 5000},
         "\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
         "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":32",
         NULL},
        {"yarn, by its older name",
         {.scaling = "yarn", .factor = 4, .original = 2048},
         "\"type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":2048",
         "yarn"},
        {"yarn with more said, where rope_type counts",
         {.scaling = "yarn",
          .factor = 16,
          .original = 600,
          .has_betas = true,
          .attn_factor = 1.5 / (1.0 + 0.1 * 2.772588722239781)},
         "\"rope_type\":\"yarn\",\"factor\":16,\"original_max_position_embeddings\":600,"
         "\"beta_fast\":20,\"beta_slow\":2,\"attention_factor\":1.5,\"type\":\"linear\"",
         "yarn"},
        {"longrope",
         {.scaling = "longrope", .original = 32, .attn_factor = 1.0954451150103321},
         "\"rope_type\":\"longrope\",\"original_max_position_embeddings\":32,"
         "\"short_factor\":[1,1.03125,1.0625,1.09375,1.125,1.15625,1.1875,1.21875,1.25,1.28125,"
         "1.3125,1.34375,1.375,1.40625,1.4375,1.46875],\"long_factor\":[1.5,1.75,2,2.25,2.5,2.75,3,"
         "3.25,3.5,3.75,4,4.25,4.5,4.75,5,5.25]",
         "longrope"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char more[512];
        float theirs[NAIVE_VOCABULARY], ours[NAIVE_VOCABULARY], again[NAIVE_VOCABULARY];
        struct tandem_source_tensor t;
        tandem_source *source = NULL;
        const char *key = NULL;
        const char *file = tnd_test_temp("model.safetensors");
        const char *saved = tnd_test_temp("saved.gguf");
        const struct naive_spec *spec = &rows[i].spec;
        tandem_source *made = naive_source(spec);
        snprintf(more, sizeof(more), "\"rope_scaling\":{%s}", rows[i].config);
        CU_ASSERT_TRUE(tnd_model_write_safetensors(made, file, 0, 1));
        CU_ASSERT_TRUE(tnd_model_write_config(made, tnd_test_temp("config.json"), more));
        check_file(file, made, spec, theirs, rows[i].name);
        check_ok(tandem_source_open(file, &source, NULL));
        check_ok(tandem_source_save_gguf(source, saved, NULL, NULL));
        tandem_source_close(source);
        remove(tnd_test_temp("config.json"));
        check_file(saved, made, spec, ours, rows[i].name);
        check_nmse(ours, theirs, NAIVE_VOCABULARY, 1e-11, rows[i].name);
        check_ok(tandem_source_open(saved, &source, NULL));
        (void)tandem_source_text(source, "llama.rope.scaling.type", &key);
        CU_ASSERT((key == NULL) == (rows[i].key == NULL));
        CU_ASSERT_EQUAL(tandem_source_find(source, "rope_freqs.weight", &t), i == 3);
        check_ok(tandem_source_save_gguf(source, tnd_test_temp("again.gguf"), NULL, NULL));
        tandem_source_close(source);
        check_file(tnd_test_temp("again.gguf"), made, spec, again, rows[i].name);
        check_bits(again, ours, sizeof(again), rows[i].name);
        tandem_source_close(made);
    }
}

/* ---- metadata ---- */

static void models_of_other_kinds_are_refused(void)
{
    struct tandem_error error = {0};
    tandem_model *model = NULL;
    const struct {
        struct naive_spec spec;
        enum tandem_status status;
        const char *part;
    } bad[] = {
        {{.architecture = "mamba"}, TANDEM_E_FORMAT, "architecture is mamba"},
        {{.architecture = "qwen2"}, TANDEM_E_NOT_FOUND, "no tensor blk.0.attn_q.bias"},
        {{.scaling = "su", .factor = 2}, TANDEM_E_UNSUPPORTED_BUILD, "'su' is not known"},
        {{.scaling = "yarn", .factor = 2}, TANDEM_E_FORMAT, "original_context_length is 0"},
        {{.scaling = "yarn", .factor = 2, .original = 9, .freq_base = 1},
         TANDEM_E_FORMAT,
         "rope.freq_base is 1"},
        {{.scaling = "linear", .factor = 2, .original = 9, .attn_factor = 1e9},
         TANDEM_E_FORMAT,
         "attn_factor is 1e+09"},
        {{.scaling = "linear"}, TANDEM_E_FORMAT, "rope.scaling.factor is 0"},
        {{.scaling = "llama3", .factor = 8}, TANDEM_E_FORMAT, "original_context_length is 0"},
        {{.head_size = 33}, TANDEM_E_FORMAT, "head size is 33"},
        {{.activation = "mish"}, TANDEM_E_UNSUPPORTED_BUILD, "activation is mish"},
        {{.architecture = "qwen3"}, TANDEM_E_NOT_FOUND, "no tensor blk.0.attn_q_norm.weight"},
        {{.has_head_norms = true}, TANDEM_E_UNSUPPORTED_BUILD, "tensor blk.0.attn_q_norm.weight"},
        {{.freq_base = -1.0}, TANDEM_E_FORMAT, "rope.freq_base is -1"},
        {{.freq_base = NAN}, TANDEM_E_FORMAT, "rope.freq_base"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tandem_source *source = naive_source(&bad[i].spec);
        check_status(tandem_model_new(source, &model, &error), bad[i].status, bad[i].part, &error);
        tandem_source_close(source);
    }
    CU_ASSERT_PTR_NULL(model);
}

static CU_TestInfo models_tests[] = {
    {"every_architecture_equals_plain_loops", every_architecture_equals_plain_loops},
    {"the_use_of_experts_is_counted", the_use_of_experts_is_counted},
    {"caches_of_16_8_and_4_bits_keep_the_logits_near",
     caches_of_16_8_and_4_bits_keep_the_logits_near},
    {"caches_that_cannot_be_are_refused", caches_that_cannot_be_are_refused},
    {"a_window_rotates_through_a_small_cache", a_window_rotates_through_a_small_cache},
    {"sequences_in_one_batch_do_not_see_each_other", sequences_in_one_batch_do_not_see_each_other},
    {"a_window_that_moved_on_has_no_prefix_to_copy", a_window_that_moved_on_has_no_prefix_to_copy},
    {"an_entry_gets_logits_only_where_it_wants_them",
     an_entry_gets_logits_only_where_it_wants_them},
    {"batch_entries_that_do_not_fit_are_refused", batch_entries_that_do_not_fit_are_refused},
    {"a_shift_turns_keys_to_their_new_positions", a_shift_turns_keys_to_their_new_positions},
    {"a_shift_of_what_is_not_there_is_refused", a_shift_of_what_is_not_there_is_refused},
    {"scalings_of_rope_go_from_config_json_into_gguf",
     scalings_of_rope_go_from_config_json_into_gguf},
    {"models_of_other_kinds_are_refused", models_of_other_kinds_are_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_models[] = {
    {"models", NULL, NULL, NULL, NULL, models_tests},
    CU_SUITE_INFO_NULL,
};
