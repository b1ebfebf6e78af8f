/* SPDX-License-Identifier: MIT
 * tandem-llama bench: prompt and generation speed of one model under one runtime. */
#include <stdio.h>
#include <string.h>

#include "tools/tandem-llama/cli.h"
#include "tools/tandem-llama/speed.h"

struct bench_options {
    const char *synth;
    const char *type;
    int64_t prompt;
    int64_t gen;
    int64_t repeat;
    int64_t threads;
    const char *profile;
    const char *table;
    const char *output;
    bool help;
};

struct bench {
    struct bench_options options;
    tandem_source *source;
    struct tnd_llama_model *model;
    tandem_runtime *runtime;
    struct tnd_llama_session *session;
    struct tnd_speed prompt;
    struct tnd_speed generation;
};

static enum tandem_status open_all(struct bench *bench, const char *checkpoint,
                                   struct tandem_error *error)
{
    const struct bench_options *o = &bench->options;
    const int64_t context = o->prompt + o->gen;
    enum tandem_status status =
        checkpoint != NULL ? tnd_cli_open_source(checkpoint, o->type, &bench->source, error)
                           : tnd_cli_synthesize(o->synth, o->type != NULL ? o->type : "q4_0",
                                                context, &bench->source, error);
    if (status == TANDEM_OK) {
        status = tnd_llama_model_new(bench->source, &bench->model, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_cli_open_runtime(o->threads, o->profile, o->table, &bench->runtime, error);
    }
    if (status == TANDEM_OK) {
        status =
            tnd_llama_session_new(bench->model, bench->runtime, context, &bench->session, error);
    }
    return status;
}

static void close_all(struct bench *bench)
{
    tnd_llama_session_free(bench->session);
    tandem_runtime_close(bench->runtime);
    tnd_llama_model_free(bench->model);
    tandem_source_close(bench->source);
}

static enum tandem_status measure(struct bench *bench, struct tandem_error *error)
{
    const struct bench_options *o = &bench->options;
    const int64_t vocabulary = bench->model->hparams.vocabulary;
    enum tandem_status status = TANDEM_OK;
    for (int64_t i = -1; status == TANDEM_OK && i < o->repeat; i++) {
        /* the first round warms up */
        status = tnd_speed_prompt(bench->session, vocabulary, o->prompt,
                                  i < 0 ? NULL : &bench->prompt, error);
        if (status == TANDEM_OK && o->gen > 0) {
            status = tnd_speed_generation(bench->session, vocabulary, o->prompt, i < 0 ? 1 : o->gen,
                                          i < 0 ? NULL : &bench->generation, error);
        }
    }
    return status;
}

static void print_row(const char *format, const char *what, int64_t tokens,
                      const struct tnd_speed *speed, bool is_last)
{
    const struct tnd_speed_summary s = tnd_speed_summary(speed);
    if (strcmp(format, "json") == 0) {
        printf("    {\"what\": \"%s\", \"tokens\": %lld, \"median_tokens_per_s\": %.3f, "
               "\"low\": %.3f, \"high\": %.3f, \"samples\": %d}%s\n",
               what, (long long)tokens, s.median, s.low, s.high, speed->n, is_last ? "" : ",");
    } else if (strcmp(format, "csv") == 0) {
        printf("%s,%lld,%.3f,%.3f,%.3f,%d\n", what, (long long)tokens, s.median, s.low, s.high,
               speed->n);
    } else {
        printf("| %-10s | %6lld | %10.2f | %8.2f to %8.2f | %3d |\n", what, (long long)tokens,
               s.median, s.low, s.high, speed->n);
    }
}

static void print_result(const struct bench *bench)
{
    const struct bench_options *o = &bench->options;
    const struct tnd_llama_hparams *h = &bench->model->hparams;
    struct tandem_runtime_info info;
    tandem_runtime_describe(bench->runtime, &info);
    if (strcmp(o->output, "json") == 0) {
        printf("{\n  \"layers\": %lld, \"dim\": %lld, \"threads\": %d, \"isa\": \"%s\",\n"
               "  \"profile\": \"%s\", \"table\": %s,\n  \"results\": [\n",
               (long long)h->layers, (long long)h->dim, info.n_threads, info.isa,
               o->profile != NULL ? o->profile : "chosen",
               info.table[0] != '\0' ? "true" : "false");
    } else if (strcmp(o->output, "csv") == 0) {
        printf("what,tokens,median_tokens_per_s,low,high,samples\n");
    } else {
        printf("%lld layers, dim %lld, %s; %s, %d threads, profile %s, %s\n\n",
               (long long)h->layers, (long long)h->dim, tandem_source_format(bench->source),
               info.isa, info.n_threads, o->profile != NULL ? o->profile : "chosen",
               info.table[0] != '\0' ? "tuned" : "fixed rule");
        printf("| what       | tokens |   tokens/s |         from to       |   n |\n"
               "|------------|-------:|-----------:|----------------------:|----:|\n");
    }
    print_row(o->output, "prompt", o->prompt, &bench->prompt, o->gen == 0);
    if (o->gen > 0) {
        print_row(o->output, "generation", o->gen, &bench->generation, true);
    }
    if (strcmp(o->output, "json") == 0) {
        printf("  ]\n}\n");
    }
}

int tnd_cmd_bench(int argc, char **argv)
{
    struct bench bench = {.options = {.prompt = 128, .gen = 32, .repeat = 3, .output = "md"}};
    struct bench_options *o = &bench.options;
    const struct cli_option rows[] = {
        {"synth", CLI_TEXT, &o->synth, "SHAPE",
         "random weights: 1.1b, quick or dim,hidden,layers,heads,kv_heads,vocabulary; 1.1b"},
        {"type", CLI_TEXT, &o->type, "TYPE", "of the weights; q4_0, a checkpoint: its own"},
        {"prompt", CLI_INTEGER, &o->prompt, "N", "tokens of the prompt, one batch; 128"},
        {"gen", CLI_INTEGER, &o->gen, "N", "tokens generated; 32"},
        {"repeat", CLI_INTEGER, &o->repeat, "N", "measurements of each; 3"},
        {"threads", CLI_INTEGER, &o->threads, "N", "threads; default: one a core"},
        {"profile", CLI_TEXT, &o->profile, "NAME", "force a profile wherever it applies"},
        {"table", CLI_TEXT, &o->table, "FILE",
         "timing table; none: fixed rule; default: this machine's"},
        {"output", CLI_TEXT, &o->output, "md|json|csv", "default: md"},
        {"help", CLI_FLAG, &o->help, NULL, "this text"},
    };
    const struct cli_options options = {rows, (int)(sizeof(rows) / sizeof(rows[0]))};
    const char *checkpoint = NULL;
    int n = 0;
    if (!tnd_cli_parse(argc, argv, &options, &checkpoint, 1, &n)) {
        return 2;
    }
    if (o->help) {
        printf("usage: tandem-llama bench [CHECKPOINT] [OPTIONS]\n\n");
        tnd_cli_print_options(&options);
        return 0;
    }
    if (checkpoint != NULL && o->synth != NULL) {
        return tnd_cli_usage("bench takes a checkpoint or --synth, not both");
    }
    if (o->prompt < 1 || o->gen < 0 || o->prompt > 1000000 || o->gen > 1000000 || o->repeat < 1 ||
        o->repeat > TND_SPEED_MAX) {
        return tnd_cli_usage("bench: expected 1 or more prompt tokens and 1 to %d repeats",
                             TND_SPEED_MAX);
    }
    if (strcmp(o->output, "md") != 0 && strcmp(o->output, "json") != 0 &&
        strcmp(o->output, "csv") != 0) {
        return tnd_cli_usage("--output is md, json or csv, not '%s'", o->output);
    }
    if (o->synth == NULL) {
        o->synth = "1.1b";
    }
    struct tandem_error error = {0};
    enum tandem_status status = open_all(&bench, checkpoint, &error);
    if (status == TANDEM_OK) {
        status = measure(&bench, &error);
    }
    if (status == TANDEM_OK) {
        print_result(&bench);
    }
    close_all(&bench);
    return status == TANDEM_OK ? 0 : tnd_cli_fail(&error);
}
