/* SPDX-License-Identifier: MIT
 * tandem-llama run: text goes to stdout as it comes, everything else to stderr. Steps are counted
 * as llama2.c counts them: one a position, the beginning token at position 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tandem-llama/cli.h"
#include "llama/generate.h"

struct run_options {
    const char *tokenizer;
    const char *prompt;
    int64_t steps;
    double temperature;
    double top_p;
    int64_t seed;
    int64_t threads;
    const char *profile;
    const char *table;
    int64_t batch;
    const char *type;
    bool print_plan;
    bool print_stats;
    bool help;
};

/* Everything that a run opens. */
struct run {
    struct run_options options;
    tandem_source *source;
    struct tnd_llama_model *model;
    tandem_tokenizer *tokenizer;
    tandem_runtime *runtime;
    struct tnd_llama_session *session;
    struct tnd_llama_sampler *sampler;
    int32_t *prompt; /* ids, the beginning token first */
    int64_t n_prompt;
    int64_t n_fed; /* of them, as far as the steps go */
    double prompt_seconds;
    double generation_seconds;
};

static enum tandem_status encode_prompt(struct run *run, struct tandem_error *error)
{
    const size_t n_bytes = strlen(run->options.prompt);
    size_t n = 0;
    run->prompt = calloc(n_bytes + 3, sizeof(run->prompt[0]));
    if (run->prompt == NULL) {
        error->status = TANDEM_E_MEMORY;
        snprintf(error->text, sizeof(error->text), "no memory for a prompt of %zu bytes", n_bytes);
        return TANDEM_E_MEMORY;
    }
    const enum tandem_status status = tandem_tokenizer_encode(
        run->tokenizer, run->options.prompt, n_bytes, true, run->prompt, n_bytes + 3, &n, error);
    run->n_prompt = (int64_t)n;
    return status;
}

static enum tandem_status open_all(struct run *run, const char *checkpoint,
                                   struct tandem_error *error)
{
    const struct run_options *o = &run->options;
    enum tandem_status status = tnd_cli_open_source(checkpoint, o->type, &run->source, error);
    if (status == TANDEM_OK) {
        status = tnd_llama_model_new(run->source, &run->model, error);
    }
    if (status == TANDEM_OK) {
        status = tandem_tokenizer_open(o->tokenizer, run->model->hparams.vocabulary,
                                       &run->tokenizer, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_cli_open_runtime(o->threads, o->profile, o->table, &run->runtime, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_llama_session_new(run->model, run->runtime, o->steps, &run->session, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_llama_sampler_new(run->model->hparams.vocabulary, (float)o->temperature,
                                       (float)o->top_p, (uint64_t)o->seed, &run->sampler, error);
    }
    if (status == TANDEM_OK) {
        status = encode_prompt(run, error);
    }
    return status;
}

static void close_all(struct run *run)
{
    free(run->prompt);
    tnd_llama_sampler_free(run->sampler);
    tnd_llama_session_free(run->session);
    tandem_runtime_close(run->runtime);
    tandem_tokenizer_close(run->tokenizer);
    tnd_llama_model_free(run->model);
    tandem_source_close(run->source);
}

/* Prints a piece of text. A control character alone, on which a terminal would act, is left out, as
 * llama2.c does; the bytes of other scripts pass. */
static void print_piece(const char *text, size_t n)
{
    const unsigned char first = n > 0 ? (unsigned char)text[0] : 0;
    const bool is_space = first == ' ' || (first >= '\t' && first <= '\r');
    if (n == 1 && (first < 0x20 || first == 0x7f) && !is_space) {
        return;
    }
    fwrite(text, 1, n, stdout);
    fflush(stdout);
}

static enum tandem_status generate(struct run *run, struct tandem_error *error)
{
    struct tnd_llama_generator generator = {.session = run->session,
                                            .sampler = run->sampler,
                                            .tokenizer = run->tokenizer,
                                            .prompt = run->prompt,
                                            .n_prompt = run->n_prompt,
                                            .steps = run->options.steps};
    char text[1024];
    size_t n = 0;
    bool more = true;
    double begin = tnd_cli_seconds();
    enum tandem_status status = tnd_llama_generate_begin(&generator, run->options.batch, error);
    run->n_fed = tnd_llama_session_position(run->session);
    run->prompt_seconds = tnd_cli_seconds() - begin;
    if (status == TANDEM_OK && run->n_fed < run->n_prompt) {
        fprintf(stderr,
                "tandem-llama: note: the prompt has %lld tokens, %lld steps end inside it\n",
                (long long)run->n_prompt, (long long)generator.steps);
    }
    begin = tnd_cli_seconds();
    while (status == TANDEM_OK && more && !ferror(stdout)) { /* nobody reads: stop */
        status = tnd_llama_generate_next(&generator, text, sizeof(text), &n, &more, error);
        if (status == TANDEM_OK) {
            print_piece(text, n);
        }
        if (tnd_llama_session_position(run->session) > run->n_fed) { /* one plan of each kind */
            tnd_llama_session_print_plans(run->session, NULL, NULL);
        }
    }
    run->generation_seconds = tnd_cli_seconds() - begin;
    return status;
}

static void print_speed(const char *what, int64_t n, double seconds)
{
    if (n > 0 && seconds > 0.0) {
        fprintf(stderr, "%s: %lld tokens in %.3f s, %.1f tokens/s\n", what, (long long)n, seconds,
                (double)n / seconds);
    }
}

static void print_timing(const struct run *run)
{
    print_speed("prompt", run->n_fed, run->prompt_seconds);
    print_speed("generation", tnd_llama_session_position(run->session) - run->n_fed,
                run->generation_seconds);
    if (run->options.print_stats) {
        struct tandem_runtime_info info;
        tandem_runtime_describe(run->runtime, &info);
        fprintf(stderr, "model: %s, %lld layers, dim %lld\n", tandem_source_format(run->source),
                (long long)run->model->hparams.layers, (long long)run->model->hparams.dim);
        fprintf(stderr, "machine: %s, %s, %s\nthreads: %d\ntable: %s\n", info.cpu, info.isa,
                info.topology, info.n_threads, info.table[0] != '\0' ? info.table : "none");
        fprintf(stderr, "memory of graphs: %zu bytes\n",
                tnd_llama_session_graph_bytes(run->session));
    }
}

int tnd_cmd_run(int argc, char **argv)
{
    struct run run = {
        .options = {.prompt = "", .steps = 256, .temperature = 1.0, .top_p = 0.9, .seed = 1}};
    struct run_options *o = &run.options;
    const struct cli_option rows[] = {
        {"t", CLI_TEXT, &o->tokenizer, "FILE", "tokenizer (needed)"},
        {"p", CLI_TEXT, &o->prompt, "TEXT", "text to continue; default: none"},
        {"n", CLI_INTEGER, &o->steps, "N",
         "steps, the beginning token counted; 256; 0: as many as fit"},
        {"temp", CLI_NUMBER, &o->temperature, "T",
         "temperature; 0: always the likeliest token; 1.0"},
        {"top-p", CLI_NUMBER, &o->top_p, "P", "draw from the likeliest tokens that sum to P; 0.9"},
        {"seed", CLI_INTEGER, &o->seed, "S", "of the random numbers; 1"},
        {"threads", CLI_INTEGER, &o->threads, "N", "threads; default: one a core"},
        {"profile", CLI_TEXT, &o->profile, "NAME", "force a profile wherever it applies"},
        {"table", CLI_TEXT, &o->table, "FILE",
         "timing table; none: fixed rule; default: this machine's"},
        {"batch", CLI_INTEGER, &o->batch, "N",
         "prompt tokens at a time; default: all; 1: one by one"},
        {"type", CLI_TEXT, &o->type, "TYPE", "convert the weights first (q4_0, f16, ...)"},
        {"plan", CLI_FLAG, &o->print_plan, NULL, "print the plans to stderr"},
        {"stats", CLI_FLAG, &o->print_stats, NULL, "print machine, table and memory to stderr"},
        {"help", CLI_FLAG, &o->help, NULL, "this text"},
    };
    const struct cli_options options = {rows, (int)(sizeof(rows) / sizeof(rows[0]))};
    const char *checkpoint = NULL;
    int n = 0;
    if (!tnd_cli_parse(argc, argv, &options, &checkpoint, 1, &n)) {
        return 2;
    }
    if (o->help) {
        printf("usage: tandem-llama run CHECKPOINT -t TOKENIZER [OPTIONS]\n\n");
        tnd_cli_print_options(&options);
        return 0;
    }
    if (n != 1 || o->tokenizer == NULL) {
        return tnd_cli_usage("run needs a checkpoint and -t TOKENIZER");
    }
    struct tandem_error error = {0};
    enum tandem_status status = open_all(&run, checkpoint, &error);
    if (status == TANDEM_OK) {
        if (o->print_plan) {
            tnd_llama_session_print_plans(run.session, tnd_cli_write, stderr);
        }
        status = generate(&run, &error);
        printf("\n");
        fflush(stdout);
    }
    if (status == TANDEM_OK) {
        print_timing(&run);
    }
    close_all(&run);
    return status == TANDEM_OK ? 0 : tnd_cli_fail(&error);
}
