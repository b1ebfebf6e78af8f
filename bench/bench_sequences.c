/* SPDX-License-Identifier: MIT
 * bench-sequences: tokens per second of 1, 8, 32 and 64 texts that get one token each per step,
 * beside a prompt of as many tokens, in turns. (The prompt computes logits of its last token only.)
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/arguments.h"
#include "tandem/formats.h"
#include "tandem/llama.h"

enum { N_COUNTS = 4, MOST = 64, ROUNDS_MAX = 64 };
static const int COUNTS[N_COUNTS] = {1, 8, 32, 64};

static const char *usage =
    "usage: bench-sequences [--big N] [--depth N] [--steps N] [--rounds N] [--threads N]\n"
    "  --big 1      a llama of 1.1 billion weights; 0: of 120 million (default)\n"
    "  --depth N    tokens that each text begins with, at least (64)\n"
    "  --steps N    a sample (16)\n"
    "  --rounds N   samples of each, in turns (5)\n"
    "  --threads N  0: the default\n";

struct bench {
    tandem_source *source;
    tandem_model *model;
    tandem_runtime *runtime;
    tandem_session *session;
    int depth, steps, rounds;
    int32_t tokens[4096];
    double step_ms[N_COUNTS][ROUNDS_MAX], prompt_ms[N_COUNTS][ROUNDS_MAX];
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
        fprintf(stderr, "bench-sequences: %s\n", error->text);
        exit(1);
    }
}

static void open_all(struct bench *b, bool is_big, int threads)
{
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = is_big ? 2048 : 1024,
                                             .hidden = is_big ? 5632 : 2816,
                                             .layers = is_big ? 22 : 8,
                                             .heads = is_big ? 32 : 16,
                                             .kv_heads = 4,
                                             .vocabulary = 32000,
                                             .context = 4096};
    struct tandem_error error;
    struct tandem_runtime_options runtime = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_session_options session = TANDEM_SESSION_OPTIONS_INIT;
    must(tandem_source_synthesize(&shape, TANDEM_TYPE_Q4_0, 1, &b->source, &error), &error);
    must(tandem_model_new(b->source, &b->model, &error), &error);
    runtime.n_threads = threads;
    must(tandem_runtime_open(&runtime, &b->runtime, &error), &error);
    session.n_sequences = MOST;
    session.cache_type = TANDEM_TYPE_F16; /* as tandem-server's */
    session.n_cells = MOST * (int64_t)(2 * b->depth + 128);
    must(tandem_session_new(b->model, b->runtime, &session, &b->session, &error), &error);
}

/* Starts n texts of depth to 2 * depth tokens. */
static void begin_texts(struct bench *b, int n)
{
    struct tandem_error error;
    for (int s = 0; s < MOST; s++) {
        const struct tandem_batch_entry entry = {b->tokens + s, b->depth + s * b->depth / MOST, s,
                                                 false};
        (void)tandem_session_rollback(b->session, s, 0);
        if (s < n) {
            must(tandem_session_decode_batch(b->session, &entry, 1, &error), &error);
        }
    }
}

static double run_steps(struct bench *b, int n)
{
    struct tandem_batch_entry entries[MOST];
    struct tandem_error error;
    double begin = 0;
    begin_texts(b, n);
    for (int step = -2; step < b->steps; step++) { /* two warm up */
        begin = step == 0 ? now_ms() : begin;
        for (int s = 0; s < n; s++) {
            entries[s] = (struct tandem_batch_entry){b->tokens + step + 2 + s, 1, s, true};
        }
        must(tandem_session_decode_batch(b->session, entries, n, &error), &error);
    }
    return (now_ms() - begin) / b->steps;
}

/* Runs a prompt of n tokens after depth others. */
static double run_prompt(struct bench *b, int n)
{
    struct tandem_error error;
    double begin = 0;
    begin_texts(b, 1);
    for (int i = -2; i < 4; i++) {
        begin = i == 0 ? now_ms() : begin;
        must(tandem_session_decode(b->session, b->tokens, n, 0, &error), &error);
        (void)tandem_session_rollback(b->session, 0, b->depth);
    }
    return (now_ms() - begin) / 4;
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

static void print(struct bench *b)
{
    printf("%-10s %10s %12s %16s %10s\n", "texts", "ms a step", "tokens/s", "prompt tokens/s",
           "share");
    for (int c = 0; c < N_COUNTS; c++) {
        const double step = median(b->step_ms[c], b->rounds);
        const double prompt = median(b->prompt_ms[c], b->rounds);
        printf("%-10d %10.2f %12.1f %16.1f %9.0f%%\n", COUNTS[c], step, 1e3 * COUNTS[c] / step,
               1e3 * COUNTS[c] / prompt, 100 * prompt / step);
    }
}

int main(int argc, char **argv)
{
    struct bench *b = calloc(1, sizeof(*b));
    struct tnd_bench_number numbers[] = {{"--big", 0, 1, 0},
                                         {"--depth", 1, 1024, 64},
                                         {"--steps", 1, 1000, 16},
                                         {"--rounds", 1, ROUNDS_MAX, 5},
                                         {"--threads", 0, 1024, 0}};
    tnd_bench_arguments(argc, argv, usage, numbers, 5);
    if (b == NULL) {
        return 1;
    }
    b->depth = (int)numbers[1].value;
    b->steps = (int)numbers[2].value;
    b->rounds = (int)numbers[3].value;
    for (int i = 0; i < 4096; i++) {
        b->tokens[i] = (int32_t)((i * 7919 + 1) % 32000);
    }
    open_all(b, numbers[0].value > 0, (int)numbers[4].value);
    for (int round = 0; round < b->rounds; round++) {
        for (int c = 0; c < N_COUNTS; c++) {
            b->step_ms[c][round] = run_steps(b, COUNTS[c]);
            b->prompt_ms[c][round] = run_prompt(b, COUNTS[c]);
        }
    }
    print(b);
    tandem_session_free(b->session);
    tandem_runtime_close(b->runtime);
    tandem_model_free(b->model);
    tandem_source_close(b->source);
    free(b);
    return 0;
}
