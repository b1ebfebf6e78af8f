/* SPDX-License-Identifier: MIT
 * bench-draft: tokens per second with and without drafts, in turns, for given shares of correct
 * drafts. Models have random weights, so the text is given: after each token comes the draft
 * model's likeliest one with the requested probability, else a random one. For drafts from the
 * text, a text that repeats itself has the same effect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/arguments.h"
#include "tandem/formats.h"
#include "tandem/llama.h"

enum { TOKENS_MAX = 4096, ROUNDS_MAX = 64, VOCABULARY = 32000, PERIOD = 48, N_CASES = 5 };

static const char *usage =
    "usage: bench-draft [--big N] [--tokens N] [--rounds N] [--threads N]\n"
    "  --big 1      a llama of 1.1 billion weights, 40 million draft; 0: of 120 million (default)\n"
    "  --tokens N   of a sample (256)\n"
    "  --rounds N   samples of each, in turns (5)\n"
    "  --threads N  0: the default\n";

static const struct {
    const char *name;
    bool has_model;
    int percent; /* percentage of tokens that equal the draft */
} cases[N_CASES] = {{"a draft model, 80 % right", true, 80},
                    {"a draft model, 50 % right", true, 50},
                    {"a draft model, 10 % right", true, 10},
                    {"a text that repeats itself", false, 100},
                    {"a text that does not", false, 0}};

struct bench {
    tandem_source *sources[2];
    tandem_model *models[2];
    tandem_runtime *runtime;
    tandem_session *plain, *drafting, *drafts;
    int tokens, rounds;
    int32_t text[TOKENS_MAX];
    uint64_t random;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void must(enum tandem_status status, const struct tandem_error *error)
{
    if (status != TANDEM_OK) {
        fprintf(stderr, "bench-draft: %s\n", error->text);
        exit(1);
    }
}

static int below(struct bench *b, int n)
{
    b->random = b->random * 6364136223846793005u + 1442695040888963407u;
    return (int)((b->random >> 33) % (uint64_t)n);
}

static void open_model(struct bench *b, int i, int64_t dim, int64_t layers)
{
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = dim,
                                             .hidden = dim * 11 / 4,
                                             .layers = layers,
                                             .heads = dim / 64,
                                             .kv_heads = 4,
                                             .vocabulary = VOCABULARY,
                                             .context = TOKENS_MAX};
    struct tandem_error error;
    must(tandem_source_synthesize(&shape, TANDEM_TYPE_Q4_0, 1, &b->sources[i], &error), &error);
    must(tandem_model_new(b->sources[i], &b->models[i], &error), &error);
}

static tandem_session *open_session(struct bench *b, int model)
{
    const struct tandem_session_options options = {.size = sizeof(options),
                                                   .cache_type = TANDEM_TYPE_F16};
    struct tandem_error error;
    tandem_session *session;
    must(tandem_session_new(b->models[model], b->runtime, &options, &session, &error), &error);
    return session;
}

static int32_t likeliest(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < VOCABULARY; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* The text of a case. */
static void write_text(struct bench *b, int c)
{
    struct tandem_error error;
    (void)tandem_session_rollback(b->drafts, 0, 0);
    for (int i = 0; i < b->tokens; i++) {
        b->text[i] = below(b, VOCABULARY);
        if (i > 0 && cases[c].has_model && below(b, 100) < cases[c].percent) {
            b->text[i] = likeliest(tandem_session_logits(b->drafts, 0));
        } else if (i >= PERIOD && !cases[c].has_model && below(b, 100) < cases[c].percent) {
            b->text[i] = b->text[i - PERIOD];
        }
        if (cases[c].has_model) {
            must(tandem_session_decode(b->drafts, &b->text[i], 1, 0, &error), &error);
        }
    }
    (void)tandem_session_rollback(b->drafts, 0, 0);
}

static double run(struct bench *b, tandem_session *session)
{
    struct tandem_error error;
    (void)tandem_session_rollback(session, 0, 0);
    must(tandem_session_decode(session, b->text, PERIOD, 0, &error), &error);
    const double begin = now_ms();
    for (int i = PERIOD; i < b->tokens; i++) {
        must(tandem_session_decode(session, &b->text[i], 1, 0, &error), &error);
    }
    return (now_ms() - begin) / (b->tokens - PERIOD);
}

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(values[0]), by_value);
    return values[n / 2];
}

static void run_case(struct bench *b, int c)
{
    const struct tandem_draft_options options = {.size = sizeof(options),
                                                 .model = cases[c].has_model ? b->drafts : NULL};
    double plain[ROUNDS_MAX], drafting[ROUNDS_MAX], gain[ROUNDS_MAX];
    struct tandem_draft_info info = {0};
    struct tandem_error error;
    write_text(b, c);
    (void)run(b, b->plain); /* warms up */
    must(tandem_session_set_draft(b->drafting, &options, &error), &error);
    for (int r = 0; r < b->rounds; r++) {
        plain[r] = run(b, b->plain);
        drafting[r] = run(b, b->drafting);
        gain[r] = plain[r] / drafting[r];
    }
    (void)tandem_session_draft_info(b->drafting, &info);
    must(tandem_session_set_draft(b->drafting, NULL, &error), &error);
    printf("%-28s %10.1f %10.1f %8.2f %10.1f %8.0f\n", cases[c].name,
           1e3 / median(plain, b->rounds), 1e3 / median(drafting, b->rounds),
           median(gain, b->rounds),
           info.batches > 0 ? (double)info.tokens / (double)info.batches : 0.0,
           info.drafted > 0 ? 100.0 * (double)info.accepted / (double)info.drafted : 0.0);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct bench b = {.random = 1};
    struct tnd_bench_number numbers[] = {{"--big", 0, 1, 0},
                                         {"--tokens", PERIOD + 1, TOKENS_MAX, 256},
                                         {"--rounds", 1, ROUNDS_MAX, 5},
                                         {"--threads", 0, 1024, 0}};
    struct tandem_runtime_options runtime = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error;
    tnd_bench_arguments(argc, argv, usage, numbers, 4);
    const bool is_big = numbers[0].value > 0;
    b.tokens = (int)numbers[1].value;
    b.rounds = (int)numbers[2].value;
    runtime.n_threads = (int)numbers[3].value;
    open_model(&b, 0, is_big ? 2048 : 1024, is_big ? 22 : 8);
    open_model(&b, 1, is_big ? 512 : 256, 2);
    must(tandem_runtime_open(&runtime, &b.runtime, &error), &error);
    b.plain = open_session(&b, 0);
    b.drafting = open_session(&b, 0);
    b.drafts = open_session(&b, 1);
    printf("%-28s %10s %10s %8s %10s %8s\n", "", "tokens/s", "drafting", "gain", "a batch",
           "right %");
    for (int c = 0; c < N_CASES; c++) {
        run_case(&b, c);
    }
    tandem_session_free(b.plain);
    tandem_session_free(b.drafting);
    tandem_session_free(b.drafts);
    tandem_runtime_close(b.runtime);
    for (int i = 0; i < 2; i++) {
        tandem_model_free(b.models[i]);
        tandem_source_close(b.sources[i]);
    }
    return 0;
}
