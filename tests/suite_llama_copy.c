/* SPDX-License-Identifier: MIT
 * What a server needs of sessions: prefixes that are copied, conversations as tokens, samplers that
 * begin anew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "llama/kv_cache.h"
#include "tests/suite_llama.h"

enum { VOCABULARY = 300, PREFIX = 150, REST = 9, N = PREFIX + REST };

struct setup {
    tandem_source *source;
    tandem_model *model;
    tandem_runtime *runtime;
    int32_t tokens[N];
};

static struct setup setup_of(enum tandem_type type)
{
    struct setup s = {.source = tnd_small_llama(type, 256)};
    s.runtime = tnd_test_runtime(2, NULL);
    check_ok(tandem_model_new(s.source, &s.model, NULL));
    for (int i = 0; i < N; i++) {
        s.tokens[i] = (i * 53 + 7) % VOCABULARY;
    }
    return s;
}

static struct setup setup_new(void)
{
    return setup_of(TANDEM_TYPE_Q8_0);
}

static void setup_free(struct setup *s)
{
    tandem_runtime_close(s->runtime);
    tandem_model_free(s->model);
    tandem_source_close(s->source);
}

static tandem_session *session_of(const struct setup *s, int n_sequences, int64_t n_cells,
                                  enum tandem_type type, bool is_unfused)
{
    const struct tandem_session_options options = {.size = sizeof(options),
                                                   .n_sequences = n_sequences,
                                                   .n_cells = n_cells,
                                                   .cache_type = type,
                                                   .is_unfused = is_unfused};
    tandem_session *session = NULL;
    check_ok(tandem_session_new(s->model, s->runtime, &options, &session, NULL));
    return session;
}

static void append(tandem_session *session, int32_t sequence, const int32_t *tokens, int64_t n)
{
    const struct tandem_batch_entry entry = {tokens, n, sequence, true};
    check_ok(tandem_session_decode_batch(session, &entry, 1, NULL));
}

/* Products in place of fused attention sum over the cells of all sequences: nearly the same, where
 * weights are floats (a difference in the last bit may round an activation to another byte). */
static void check_same(const tandem_session *got, const tandem_session *want, bool is_unfused,
                       const char *what)
{
    const float *a = tandem_session_logits(got, 2);
    const float *b = tandem_session_logits(want, 0);
    if (is_unfused) {
        check_nmse(a, b, VOCABULARY, 1e-9, what);
    } else {
        check_bits(a, b, VOCABULARY * sizeof(float), what);
    }
}

/* Texts that took cells in turns lie in blocks of their own again, as those of a fresh session. */
static void a_state_of_several_texts_goes_on_bit_for_bit(void)
{
    struct setup s = setup_new();
    tandem_session *alone = session_of(&s, 1, 0, TANDEM_TYPE_F16, false);
    tandem_session *session = session_of(&s, 3, 0, TANDEM_TYPE_F16, false);
    tandem_session *next = session_of(&s, 3, 0, TANDEM_TYPE_F16, false);
    append(session, 1, s.tokens + 5, 40);
    append(alone, 0, s.tokens, PREFIX);
    append(session, 2, s.tokens, PREFIX);
    append(session, 0, s.tokens + 1, 70);
    check_int(tandem_session_rollback(session, 1, 0), 0); /* leaves a gap */
    const size_t n = tandem_session_state_bytes(session);
    char *state = malloc(n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(state);
    check_ok(tandem_session_state_write(session, state, NULL));
    check_ok(tandem_session_state_read(next, state, n, "state", NULL));
    free(state);
    check_int(tandem_session_position(next, 2), PREFIX);
    append(next, 1, s.tokens + 9, 100);
    for (int i = 0; i < REST; i++) {
        append(alone, 0, s.tokens + PREFIX + i, 1);
        append(next, 2, s.tokens + PREFIX + i, 1);
        append(next, 0, s.tokens + i, 1);
        check_same(next, alone, false, "restored");
    }
    tandem_session_free(alone);
    tandem_session_free(session);
    tandem_session_free(next);
    setup_free(&s);
}

static void a_copied_prefix_gives_the_same_logits_bit_for_bit(void)
{
    const enum tandem_type types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_Q8_0,
                                      TANDEM_TYPE_F32, TANDEM_TYPE_Q4_0};
    for (int i = 0; i < 5; i++) {
        struct setup s = setup_of(i == 3 ? TANDEM_TYPE_F32 : TANDEM_TYPE_Q8_0);
        tandem_session *alone = session_of(&s, 3, 0, types[i], i == 3);
        tandem_session *session = session_of(&s, 3, 0, types[i], i == 3);
        append(alone, 0, s.tokens, PREFIX);
        append(alone, 0, s.tokens + PREFIX, REST);
        append(session, 0, s.tokens, PREFIX);
        append(session, 0, s.tokens + 3, REST); /* the first one goes on otherwise */
        check_ok(tandem_session_copy(session, 0, 2, PREFIX, NULL));
        check_int(tandem_session_position(session, 2), PREFIX);
        CU_ASSERT_PTR_NULL(tandem_session_logits(session, 2));
        append(session, 2, s.tokens + PREFIX, REST);
        check_same(session, alone, i == 3, "copied");
        /* neither of them hears of the other one's end */
        check_int(tandem_session_rollback(session, 0, 0), 0);
        append(session, 2, s.tokens, 1);
        append(alone, 0, s.tokens, 1);
        check_same(session, alone, i == 3, "goes on");
        tandem_session_free(session);
        tandem_session_free(alone);
        setup_free(&s);
    }
}

static void copies_that_cannot_be_are_refused_and_change_nothing(void)
{
    struct setup s = setup_new();
    struct tandem_error error = {0};
    tandem_session *session = session_of(&s, 3, 200, TANDEM_TYPE_F32, false);
    append(session, 0, s.tokens, 120);
    const struct {
        int32_t from, to;
        int64_t n;
    } wrong[] = {{0, 0, 5}, {0, 3, 5}, {-1, 1, 5}, {0, 1, 0}, {0, 1, 121}, {1, 2, 1}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        check_status(tandem_session_copy(session, wrong[i].from, wrong[i].to, wrong[i].n, &error),
                     TANDEM_E_ARGUMENT, "cannot be copied", &error);
    }
    check_status(tandem_session_copy(session, 0, 1, 120, &error), TANDEM_E_LIMIT,
                 "120 more tokens do not fit: 80 of 200 cells are free", &error);
    check_int(tandem_session_position(session, 1), 0);
    check_ok(tandem_session_copy(session, 0, 1, 80, &error));
    check_status(tandem_session_copy(session, 0, 1, 80, &error), TANDEM_E_ARGUMENT, NULL, &error);
    check_int(tandem_session_rollback(session, 1, 0), 0);
    append(session, 2, s.tokens, 80); /* its cells are free again */
    tandem_session_free(session);
    setup_free(&s);
}

/* Sequences whose cells were taken in turns, many at a time, see what they would see alone. */
static void logits_do_not_depend_on_what_stands_beside(void)
{
    struct setup s = setup_new();
    tandem_session *alone = session_of(&s, 2, 0, TANDEM_TYPE_F32, false);
    tandem_session *session = session_of(&s, 8, 0, TANDEM_TYPE_F32, false);
    for (int32_t q = 0; q < 8; q++) {
        append(session, q, s.tokens + q, 50);
    }
    append(alone, 0, s.tokens + 5, 50);
    for (int64_t i = 0; i < 90; i++) {
        for (int32_t q = 0; q < 8; q++) {
            append(session, q, s.tokens + 50 + i, 1);
        }
        append(alone, 0, s.tokens + 50 + i, 1);
    }
    check_bits(tandem_session_logits(session, 5), tandem_session_logits(alone, 0),
               VOCABULARY * sizeof(float), "beside others");
    tandem_session_free(session);
    tandem_session_free(alone);
    setup_free(&s);
}

/* Writes a token of each of n sequences into an empty cache, in layer 0. */
static void write_rows(const struct setup *s, struct tnd_llama_kv_cache *cache, int64_t n,
                       bool at_once)
{
    static const int32_t sequences[] = {0, 1, 2, 3, 4, 5, 6, 7}, positions[8];
    tandem_context *c = NULL;
    tandem_plan *plan = NULL;
    const int64_t ne[] = {cache->head_size, cache->kv_heads, n};
    check_ok(tnd_llama_kv_cache_take(cache, sequences, positions, n, NULL));
    CU_ASSERT_EQUAL(tnd_llama_kv_is_scattered(cache), n > 3);
    check_ok(tandem_context_new(NULL, &c, NULL));
    tandem_tensor *rows[2];
    for (int i = 0; i < 2; i++) {
        rows[i] = tandem_tensor_new(c, TANDEM_TYPE_F32, 3, ne);
        float *values = tandem_tensor_data(rows[i]);
        for (int64_t k = 0; k < tandem_tensor_elements(rows[i]); k++) {
            values[k] = (float)((k * 7919 + i) % 1013) / 1000.0f - 0.5f;
        }
    }
    tandem_tensor *cells = tandem_tensor_new(c, TANDEM_TYPE_I32, 1, &n);
    memcpy(tandem_tensor_data(cells), cache->taken, (size_t)n * sizeof(int32_t));
    tandem_graph *graph = tandem_graph_new(c);
    tnd_llama_kv_write(cache, graph, c, 0, rows[0], rows[1], at_once ? cells : NULL);
    check_ok(tandem_graph_finish(graph, NULL));
    check_int(tandem_graph_node_count(graph), at_once ? 2 : 2 * n);
    check_ok(tandem_runtime_plan(s->runtime, graph, &plan, NULL));
    check_ok(tandem_runtime_compute(s->runtime, graph, plan, NULL, NULL));
    tandem_plan_free(plan);
    tandem_context_free(c);
}

static void keys_written_at_once_are_those_written_run_by_run(void)
{
    const enum tandem_type types[] = {TANDEM_TYPE_F32, TANDEM_TYPE_F16, TANDEM_TYPE_Q8_0,
                                      TANDEM_TYPE_Q4_0};
    struct setup s = setup_new();
    for (int i = 0; i < 4; i++) {
        const struct tnd_llama_kv_options options = {
            .n_cells = 600, .type = types[i], .has_blocks = true};
        struct tnd_llama_kv_cache caches[2];
        for (int k = 0; k < 2; k++) {
            check_ok(
                tnd_llama_kv_cache_init(&caches[k], tandem_model_hparams(s.model), &options, NULL));
            write_rows(&s, &caches[k], 8, k == 1);
        }
        check_bits(tandem_tensor_data(caches[1].keys[0]), tandem_tensor_data(caches[0].keys[0]),
                   tandem_tensor_bytes(caches[0].keys[0]), "keys");
        check_bits(tandem_tensor_data(caches[1].values[0]), tandem_tensor_data(caches[0].values[0]),
                   tandem_tensor_bytes(caches[0].values[0]), "values");
        tnd_llama_kv_cache_fini(&caches[0]);
        tnd_llama_kv_cache_fini(&caches[1]);
    }
    setup_free(&s);
}

/* The classifier, applied to the embedding, gives the logits. */
static void embeddings_are_what_the_classifier_gets(void)
{
    struct setup s = setup_new();
    const struct tandem_session_options options = {
        .size = sizeof(options), .n_sequences = 3, .has_embeddings = true};
    tandem_session *session = NULL;
    struct tandem_source_tensor found;
    float weights[256], logits[VOCABULARY];
    check_ok(tandem_session_new(s.model, s.runtime, &options, &session, NULL));
    CU_ASSERT_PTR_NULL(tandem_session_embedding(session, 0));
    const struct tandem_batch_entry entries[] = {
        {s.tokens, 5, 0, true}, {s.tokens + 9, 7, 1, false}, {s.tokens + 30, 3, 2, true}};
    check_ok(tandem_session_decode_batch(session, entries, 3, NULL));
    CU_ASSERT_PTR_NULL(tandem_session_embedding(session, 1));
    if (!tandem_source_find(s.source, "output.weight", &found)) {
        CU_ASSERT_TRUE_FATAL(tandem_source_find(s.source, "token_embd.weight", &found));
    }
    for (int32_t q = 0; q < 3; q += 2) {
        const float *x = tandem_session_embedding(session, q);
        for (int64_t i = 0; i < VOCABULARY; i++) {
            const char *row = (const char *)found.data + (size_t)i * (found.bytes / VOCABULARY);
            double sum = 0.0;
            check_ok(tandem_dequantize(found.type, row, weights, 256));
            for (int k = 0; k < 256; k++) {
                sum += (double)weights[k] * (double)x[k];
            }
            logits[i] = (float)sum;
        }
        check_nmse(tandem_session_logits(session, q), logits, VOCABULARY, 1e-3, "embedding");
    }
    tandem_session_free(session);
    setup_free(&s);
}

/* ---- samplers ---- */

static void a_renewed_sampler_draws_as_a_new_one(void)
{
    struct tandem_sampler_options options = {
        .size = sizeof(options), .vocabulary = 64, .temperature = 1.0f, .seed = 5};
    struct tandem_error error = {0};
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    float logits[64];
    tandem_sampler *used = tnd_test_sampler(64, 0.5f, 0.5f, 9);
    tandem_sampler *fresh = NULL;
    tnd_test_fill(&rng, logits, 64);
    for (int i = 0; i < 9; i++) {
        tandem_sampler_accept(used, tandem_sampler_sample(used, logits), true);
    }
    options.repeat_last = 500;
    options.repeat_penalty = 1.5f;
    check_ok(tandem_sampler_new(&options, &fresh, NULL));
    check_ok(tandem_sampler_renew(used, &options, NULL));
    for (int i = 0; i < 600; i++) {
        const int32_t want = tandem_sampler_sample(fresh, logits);
        check_int(tandem_sampler_sample(used, logits), want);
        tandem_sampler_accept(used, want, true);
        tandem_sampler_accept(fresh, want, true);
    }
    options.vocabulary = 65;
    check_status(tandem_sampler_renew(used, &options, &error), TANDEM_E_ARGUMENT, "65", &error);
    options.vocabulary = 64;
    options.temperature = -1.0f;
    check_status(tandem_sampler_renew(used, &options, &error), TANDEM_E_ARGUMENT, NULL, &error);
    tandem_sampler_free(used);
    tandem_sampler_free(fresh);
}

/* ---- memory ---- */

enum { LONG_CONTEXT = 131072 };

/* Bytes of this process that are in memory; 0: the system does not say. */
static int64_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long long all = 0, resident = 0;
    if (file == NULL) {
        return 0;
    }
    const int n = fscanf(file, "%lld %lld", &all, &resident);
    (void)fclose(file);
    return n == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

/* By how much the process grows over a session that knows 131,072 tokens and holds `n` of them. */
static int64_t grows_by(const tandem_model *model, tandem_runtime *runtime, enum tandem_type type,
                        int64_t n)
{
    const struct tandem_session_options options = {.size = sizeof(options), .cache_type = type};
    static int32_t tokens[4096];
    struct tandem_error error = {0};
    tandem_session *session = NULL;
    const int64_t before = resident_bytes();
    check_status(tandem_session_new(model, runtime, &options, &session, &error), TANDEM_OK, NULL,
                 &error);
    check_int(tandem_session_context(session), LONG_CONTEXT);
    check_status(tandem_session_decode(session, tokens, n, 64, &error), TANDEM_OK, NULL, &error);
    const int64_t after = resident_bytes();
    tandem_session_free(session);
    return after - before;
}

/* The cache is reserved at once, and the system gives memory where something is written: cells are
 * taken from the first one on, so that a session grows without copies. */
static void a_long_context_takes_memory_for_the_tokens_that_are_there(void)
{
    static const struct {
        enum tandem_type type;
        int64_t token_bytes; /* keys and values of a layer */
    } rows[] = {{TANDEM_TYPE_F16, 2 * 512 * 2},
                {TANDEM_TYPE_Q8_0, 2 * 512 / 32 * 34},
                {TANDEM_TYPE_Q4_0, 2 * 512 / 32 * 18},
                {TANDEM_TYPE_F32, 2 * 512 * 4}};
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 512,
                                             .hidden = 64,
                                             .layers = 4,
                                             .heads = 8,
                                             .kv_heads = 8,
                                             .vocabulary = 64,
                                             .context = LONG_CONTEXT};
    tandem_source *source = NULL;
    tandem_model *model = NULL;
    if (resident_bytes() == 0) {
        return;
    }
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, NULL));
    check_ok(tandem_model_new(source, &model, NULL));
    tandem_runtime *runtime = tnd_test_runtime(1, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int64_t whole = rows[i].token_bytes * shape.layers * LONG_CONTEXT;
        const int64_t spare = whole / 4; /* for work space, and the shadows of AddressSanitizer */
        const int64_t few = grows_by(model, runtime, rows[i].type, 128);
        const int64_t more = grows_by(model, runtime, rows[i].type, 1024);
        CU_ASSERT_TRUE(few < spare);
        CU_ASSERT_TRUE(more < spare);
    }
    tandem_runtime_close(runtime);
    tandem_model_free(model);
    tandem_source_close(source);
}

/* Whether huge pages were asked for where `at` lies; -1: the system does not say. */
static int has_huge_pages(const void *at)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    bool is_here = false;
    int found = -1;
    while (file != NULL && found < 0 && fgets(line, sizeof(line), file) != NULL) {
        unsigned long long begin, end;
        if (sscanf(line, "%llx-%llx ", &begin, &end) == 2) {
            is_here = begin <= (uintptr_t)at && (uintptr_t)at < end;
        } else if (is_here && strncmp(line, "VmFlags:", 8) == 0) {
            found = strstr(line, " hg") != NULL;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

static void a_long_text_gets_huge_pages_and_a_short_one_does_not(void)
{
    enum { CELLS = 65536, LONG = CELLS / 4 };
    static int32_t sequences[LONG], positions[LONG]; /* all of sequence 0 */
    struct setup s = setup_new();
    const struct tnd_llama_kv_options options = {.n_cells = CELLS, .type = TANDEM_TYPE_F32};
    struct tnd_llama_kv_cache cache;
    check_ok(tnd_llama_kv_cache_init(&cache, tandem_model_hparams(s.model), &options, NULL));
    for (int i = 0; i < LONG; i++) {
        positions[i] = i;
    }
    char *keys = tandem_tensor_data(cache.keys[0]);
    const char *inside = keys + tandem_tensor_bytes(cache.keys[0]) / 2;
    const int before = has_huge_pages(inside);
    check_ok(tnd_llama_kv_cache_take(&cache, sequences, positions, 8, NULL));
    check_int(has_huge_pages(inside), before);
    keys[0] = 7; /* pages that are there keep what they hold */
    check_ok(tnd_llama_kv_cache_take(&cache, sequences, positions + 8, LONG - 8, NULL));
    check_int(keys[0], 7);
    if (before != 0 || access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) {
        tnd_skip("no /proc/self/smaps without huge pages (%d)", before);
    } else {
        check_int(has_huge_pages(inside), 1);
    }
    tnd_llama_kv_cache_fini(&cache);
    setup_free(&s);
}

static CU_TestInfo tests[] = {
    {"a_state_of_several_texts_goes_on_bit_for_bit", a_state_of_several_texts_goes_on_bit_for_bit},
    {"a_copied_prefix_gives_the_same_logits_bit_for_bit",
     a_copied_prefix_gives_the_same_logits_bit_for_bit},
    {"copies_that_cannot_be_are_refused_and_change_nothing",
     copies_that_cannot_be_are_refused_and_change_nothing},
    {"logits_do_not_depend_on_what_stands_beside", logits_do_not_depend_on_what_stands_beside},
    {"keys_written_at_once_are_those_written_run_by_run",
     keys_written_at_once_are_those_written_run_by_run},
    {"embeddings_are_what_the_classifier_gets", embeddings_are_what_the_classifier_gets},
    {"a_long_context_takes_memory_for_the_tokens_that_are_there",
     a_long_context_takes_memory_for_the_tokens_that_are_there},
    {"a_long_text_gets_huge_pages_and_a_short_one_does_not",
     a_long_text_gets_huge_pages_and_a_short_one_does_not},
    {"a_renewed_sampler_draws_as_a_new_one", a_renewed_sampler_draws_as_a_new_one},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_llama_copy[];
CU_SuiteInfo suites_llama_copy[] = {
    {"copy", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
