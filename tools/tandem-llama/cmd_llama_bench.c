/* SPDX-License-Identifier: MIT
 * tandem-llama bench: tokens per second of prompts ("pp512") and of generation ("tg128"), each test
 * repeated after one warm-up round; mean and deviation, and how the matrix products are planned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cache_option.h"
#include "tools/tandem-llama/baselines.h"
#include "tools/tandem-llama/cli.h"
#include "tools/tandem-llama/never_slower.h"
#include "tools/op_split.h"
#include "tools/tandem-llama/plan_summary.h"
#include "tools/tandem-llama/speed.h"
#include "tools/tandem-llama/thread_compare.h"

enum { MAX_TESTS = 32 };

struct bench_options {
    const char *synth;
    const char *type;
    struct args_ints prompts;
    struct args_ints gens;
    int64_t depth;
    int64_t texts;
    int64_t repeat;
    struct tnd_cli_runtime runtime;
    struct tnd_ranks_options ranks;
    const char *cache_type;
    const char *output;
    struct args_ints against;
    const char *baselines; /* NULL: none */
    int64_t micro_batches;
    bool is_unfused;
    bool has_ops;
    bool has_no_fusion;
    bool has_no_sharing;
    bool never_slower;
};

/* One row of the result. */
struct test {
    bool is_prompt;
    int64_t n;
    struct tnd_speed speed;
    struct tnd_plan_facts plan;
    struct tnd_op_split split;
    struct tnd_thread_compare compare;
    struct tnd_speed baselines[TND_BASELINES_MAX];
    struct tandem_step_counts steps;
};

struct bench {
    struct bench_options options;
    tandem_source *source;
    tandem_model *model;
    tandem_runtime *runtime;
    tandem_session *session;
    tandem_sampler *sampler; /* with several ranks; NULL: no token is chosen */
    struct test tests[MAX_TESTS];
    int n_tests;
    struct tnd_thread_compare against; /* modifies the session's plans */
    struct tnd_baselines baselines;
    int64_t context; /* of the longest test, including earlier tokens */
    double gib;      /* size of all weights */
    double millions; /* number of weights */
};

/* ---- tests ---- */

/* Adds a test for each number but 0. False after printing an error. */
static bool add_tests(struct bench *bench, const struct args_ints *list, bool is_prompt)
{
    for (int i = 0; i < list->n; i++) {
        const int64_t n = list->values[i];
        if (n > 0 && bench->n_tests == MAX_TESTS) {
            (void)tnd_cli_usage("bench: expected at most %d tests", MAX_TESTS);
            return false;
        }
        if (n > 0) {
            struct test *test = &bench->tests[bench->n_tests++];
            test->is_prompt = is_prompt;
            test->n = n;
            const int64_t needed = bench->options.depth + n;
            bench->context = needed > bench->context ? needed : bench->context;
        }
    }
    return true;
}

static enum tandem_status open_session(struct bench *bench, struct tandem_error *error)
{
    struct tandem_session_options options = {.size = sizeof(options),
                                             .context = bench->context,
                                             .n_sequences = (int)bench->options.texts,
                                             .is_unfused = bench->options.is_unfused,
                                             .micro_batches = (int)bench->options.micro_batches};
    bench->options.ranks.n_texts = bench->options.texts;
    if (bench->against.n > 0) {
        options.adjust = tnd_thread_compare_adjust;
        options.adjust_user = &bench->against;
    }
    CLI_TRY(tnd_cache_option_read(bench->options.cache_type, bench->model, &options, error));
    CLI_TRY(tnd_ranks_session_new(bench->model, bench->runtime, &options, &bench->options.ranks,
                                  &bench->session, error));
    if (options.communicator == NULL) {
        tnd_cli_place(bench->session, bench->runtime);
    } else { /* with ranks, sends only what choosing the most likely token needs, as `run` does */
        const struct tandem_sampler_options greedy = {
            .size = sizeof(greedy), .vocabulary = tandem_model_hparams(bench->model)->vocabulary};
        CLI_TRY(tandem_sampler_new(&greedy, &bench->sampler, error));
    }
    tnd_pack_option_prepare(bench->options.runtime.pack_cache, bench->session, bench->runtime);
    return TANDEM_OK;
}

static void add_up_weights(struct bench *bench)
{
    struct tandem_source_tensor tensor;
    for (int i = 0; tandem_source_tensor_at(bench->source, i, &tensor); i++) {
        bench->gib += (double)tensor.bytes / 1073741824.0;
        bench->millions += (double)tensor.ne[0] * (double)tensor.ne[1] * (double)tensor.ne[2] / 1e6;
    }
}

static enum tandem_status open_all(struct bench *bench, const char *checkpoint,
                                   struct tandem_error *error)
{
    const struct bench_options *o = &bench->options;
    const char *path = tnd_ranks_model_path(&o->ranks, checkpoint, o->type != NULL, error);
    if (path == NULL && checkpoint != NULL) {
        return error->status;
    }
    CLI_TRY(checkpoint != NULL ? tnd_cli_open_source(path, o->type, &bench->source, error)
                               : tnd_cli_synthesize(o->synth, o->type != NULL ? o->type : "q4_0",
                                                    bench->context, &bench->source, error));
    add_up_weights(bench);
    CLI_TRY(tandem_model_new(bench->source, &bench->model, error));
    CLI_TRY(tnd_cli_open_runtime(&o->runtime, &bench->runtime, error));
    tandem_runtime_set_execution(bench->runtime,
                                 (o->has_no_fusion ? 0 : TANDEM_EXECUTE_FUSED) |
                                     (o->has_no_sharing ? 0 : TANDEM_EXECUTE_CONCURRENT));
    if (o->baselines != NULL) {
        CLI_TRY(tnd_baselines_open(o->baselines, &o->runtime, &bench->baselines, error));
    }
    return open_session(bench, error);
}

static void close_all(struct bench *bench)
{
    tandem_session_free(bench->session);
    tandem_sampler_free(bench->sampler);
    tnd_baselines_close(&bench->baselines);
    tandem_runtime_close(bench->runtime);
    tandem_model_free(bench->model);
    tandem_source_close(bench->source);
}

static enum tandem_status measure_once(struct bench *bench, const struct test *test, int64_t n,
                                       struct tnd_speed *speed, struct tandem_error *error)
{
    const int64_t vocabulary = tandem_model_hparams(bench->model)->vocabulary;
    const int64_t depth = bench->options.depth;
    const int texts = (int)bench->options.texts;
    if (!test->is_prompt && texts > 1) {
        return tnd_speed_texts(bench->session, vocabulary, texts, n, speed, error);
    }
    return test->is_prompt ? tnd_speed_prompt(bench->session, vocabulary, depth, n, speed, error)
                           : tnd_speed_generation(bench->session, bench->sampler, vocabulary, depth,
                                                  n, speed, error);
}

static enum tandem_status count_steps(struct bench *bench, struct test *test,
                                      struct tandem_error *error)
{
    tandem_graph *graph;
    tandem_plan *plan;
    enum tandem_status status =
        tandem_session_plan(bench->session, test->is_prompt ? test->n : 1, &graph, &plan, error);
    if (status == TANDEM_OK) {
        test->steps.size = sizeof(test->steps);
        status = tandem_runtime_count_steps(bench->runtime, graph, plan, &test->steps, error);
        tandem_plan_free(plan);
    }
    return status;
}

/* Measures what the plan is compared with: one sample each; only warms up without `is_counted`. */
static enum tandem_status measure_others(struct bench *bench, struct test *test, bool is_counted,
                                         struct tandem_error *error)
{
    const int64_t m = test->is_prompt ? test->n : 1;
    enum tandem_status status = TANDEM_OK;
    for (int c = 0; status == TANDEM_OK && is_counted && c < test->compare.n; c++) {
        bench->against.forced = test->compare.counts[c];
        status = measure_once(bench, test, test->n, &test->compare.speed[c], error);
    }
    bench->against.forced = 0;
    for (int b = 0; status == TANDEM_OK && b < bench->baselines.n; b++) {
        struct tnd_speed *speed = is_counted ? &test->baselines[b] : NULL;
        CLI_TRY(tnd_baseline_use(&bench->baselines.list[b], bench->session, m, error));
        status = measure_once(bench, test, is_counted ? test->n : m, speed, error);
    }
    tandem_session_set_runtime(bench->session, bench->runtime);
    return status;
}

static enum tandem_status measure(struct bench *bench, struct test *test,
                                  struct tandem_error *error)
{
    const int64_t m = test->is_prompt ? test->n : 1;
    enum tandem_status status = TANDEM_OK;
    (void)tandem_session_rollback(bench->session, 0, bench->options.depth);
    CLI_TRY(tnd_plan_summary(bench->session, m, &test->plan, error));
    if (bench->options.has_ops) {
        CLI_TRY(count_steps(bench, test, error));
    }
    CLI_TRY(measure_once(bench, test, m, NULL, error)); /* the first round warms up */
    CLI_TRY(measure_others(bench, test, false, error));
    test->compare = bench->against;
    for (int64_t i = 0; status == TANDEM_OK && i < bench->options.repeat; i++) {
        if (bench->options.has_ops) {
            tandem_session_set_timed(bench->session, tnd_op_split_add, &test->split);
        }
        status = measure_once(bench, test, test->n, &test->speed, error);
        tandem_session_set_timed(bench->session, NULL, NULL);
        if (status == TANDEM_OK) {
            status = measure_others(bench, test, true, error);
        }
    }
    return status;
}

/* ---- results ---- */

static void print_md(const struct bench *bench, const struct tandem_runtime_info *info)
{
    const struct tandem_hparams *h = tandem_model_hparams(bench->model);
    const struct bench_options *o = &bench->options;
    printf("%s, %s, %d thread%s\n%s %lldx%lld %s, %s, %.1f MiB, %.1f M parameters\n", info->cpu,
           info->isa, info->n_threads, info->n_threads == 1 ? "" : "s", h->architecture,
           (long long)h->layers, (long long)h->dim, tandem_type_name(h->weight_type),
           tandem_source_format(bench->source), 1024 * bench->gib, bench->millions);
    if (o->runtime.profile != NULL) {
        printf("profile %s\n", o->runtime.profile);
    } else if (info->table[0] != '\0') {
        int n = 0, n_by_table = 0;
        for (int i = 0; i < bench->n_tests; i++) {
            n += bench->tests[i].plan.n_products;
            n_by_table += bench->tests[i].plan.n_by_table;
        }
        printf("planned by the table %s%s\n", info->table,
               n_by_table == 0  ? ", which covers none of the products: by the rule"
               : n_by_table < n ? ", and by the rule where it has no times"
                                : "");
    } else {
        printf("planned by the rule, without a table\n");
    }
    if (o->depth > 0) {
        printf("behind %lld tokens of text\n", (long long)o->depth);
    }
    if (o->texts > 1) {
        printf("tokens are generated for %lld texts, in %d batches\n", (long long)o->texts,
               tandem_session_batches_in_flight(bench->session, (int)o->texts));
    }
    printf("\n"
           "| test    |  tokens/s           | matrix products of the plan             |\n"
           "|---------|--------------------:|-----------------------------------------|\n");
    for (int i = 0; i < bench->n_tests; i++) {
        const struct test *test = &bench->tests[i];
        const struct tnd_speed_summary s = tnd_speed_summary(&test->speed);
        char name[32];
        snprintf(name, sizeof(name), "%s%lld", test->is_prompt ? "pp" : "tg", (long long)test->n);
        printf("| %-7s | %9.2f +- %6.2f | %-39s |\n", name, s.mean, s.deviation,
               test->plan.profiles);
    }
}

static void print_ops(const struct bench *bench)
{
    printf("\ntime by operation\n");
    for (int i = 0; i < bench->n_tests; i++) {
        const struct test *test = &bench->tests[i];
        printf("  %s%lld: ", test->is_prompt ? "pp" : "tg", (long long)test->n);
        tnd_op_split_print(&test->split);
    }
    printf("\nsteps of one graph\n");
    for (int i = 0; i < bench->n_tests; i++) {
        const struct test *test = &bench->tests[i];
        printf("  %s%lld: %d steps in %d groups, %d of them of several threads\n",
               test->is_prompt ? "pp" : "tg", (long long)test->n, test->steps.n_steps,
               test->steps.n_groups, test->steps.n_parallel);
    }
}

static void print_comparison(const struct bench *bench)
{
    printf("\nthe plan's thread counts against the same for every node, in turns\n");
    for (int i = 0; i < bench->n_tests; i++) {
        const struct test *test = &bench->tests[i];
        char name[32];
        snprintf(name, sizeof(name), "%s%lld", test->is_prompt ? "pp" : "tg", (long long)test->n);
        tnd_thread_compare_print(&test->compare, name, &test->speed);
    }
}

/* The gain is relative to the best of them, since each may be bad at something. */
static void print_baselines(const struct bench *bench)
{
    printf("\nwhat other programs do, in turns with the plan\n");
    for (int b = 0; b < bench->baselines.n; b++) {
        const char *name = bench->baselines.list[b].name;
        printf("  %s: %s\n", name, tnd_baseline_words(name));
    }
    for (int i = 0; i < bench->n_tests; i++) {
        const struct test *test = &bench->tests[i];
        int best = 0;
        double least = 0.0;
        char name[32];
        snprintf(name, sizeof(name), "%s%lld", test->is_prompt ? "pp" : "tg", (long long)test->n);
        for (int b = 0; b < bench->baselines.n; b++) {
            char other[48];
            snprintf(other, sizeof(other), "by %s", bench->baselines.list[b].name);
            const double ratio =
                tnd_speed_print_ratio(name, other, &test->baselines[b], &test->speed);
            best = b == 0 || ratio < least ? b : best;
            least = b == 0 || ratio < least ? ratio : least;
        }
        printf("  %s: gain over the best of them (%s) %.3f x\n", name,
               bench->baselines.list[best].name, least);
    }
}

/* Prints a quoted CSV field; quotes in it are doubled (RFC 4180). */
static void print_csv_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            putchar('"');
        }
        putchar(*text);
    }
    putchar('"');
}

static void print_csv(const struct bench *bench, const struct tandem_runtime_info *info)
{
    const struct tandem_hparams *h = tandem_model_hparams(bench->model);
    const char *profile = bench->options.runtime.profile;
    printf("test,tokens,mean_tokens_per_s,deviation,median,low,high,samples,threads,architecture,"
           "layers,dim,type,gib,millions,isa,cpu,profile,table,plan,depth\n");
    for (int i = 0; i < bench->n_tests; i++) {
        const struct test *test = &bench->tests[i];
        const struct tnd_speed_summary s = tnd_speed_summary(&test->speed);
        printf("%s,%lld,%.3f,%.3f,%.3f,%.3f,%.3f,%d,%d,%s,%lld,%lld,%s,%.4f,%.3f,%s,",
               test->is_prompt ? "prompt" : "generation", (long long)test->n, s.mean, s.deviation,
               s.median, s.low, s.high, test->speed.n, info->n_threads, h->architecture,
               (long long)h->layers, (long long)h->dim, tandem_type_name(h->weight_type),
               bench->gib, bench->millions, info->isa);
        print_csv_text(info->cpu);
        printf(",%s,", profile != NULL ? profile : "chosen");
        print_csv_text(info->table);
        putchar(',');
        print_csv_text(test->plan.profiles);
        printf(",%lld\n", (long long)bench->options.depth);
    }
}

/* Prints a JSON string; its contents are ours or a file's name. */
static void print_json_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            printf("\\%c", *text);
        } else if ((unsigned char)*text < 0x20) {
            printf("\\u%04x", (unsigned)(unsigned char)*text);
        } else {
            putchar(*text);
        }
    }
    putchar('"');
}

static void print_json(const struct bench *bench, const struct tandem_runtime_info *info)
{
    const struct tandem_hparams *h = tandem_model_hparams(bench->model);
    printf("{\n  \"architecture\": \"%s\", \"layers\": %lld, \"dim\": %lld, \"type\": \"%s\",\n"
           "  \"gib\": %.4f, \"millions\": %.3f, \"threads\": %d, \"isa\": \"%s\",\n  \"cpu\": ",
           h->architecture, (long long)h->layers, (long long)h->dim,
           tandem_type_name(h->weight_type), bench->gib, bench->millions, info->n_threads,
           info->isa);
    print_json_text(info->cpu);
    printf(",\n  \"profile\": ");
    print_json_text(bench->options.runtime.profile != NULL ? bench->options.runtime.profile
                                                           : "chosen");
    printf(",\n  \"table\": ");
    print_json_text(info->table);
    printf(",\n  \"depth\": %lld,\n  \"results\": [\n", (long long)bench->options.depth);
    for (int i = 0; i < bench->n_tests; i++) {
        const struct test *test = &bench->tests[i];
        const struct tnd_speed_summary s = tnd_speed_summary(&test->speed);
        printf("    {\"what\": \"%s\", \"tokens\": %lld, \"mean_tokens_per_s\": %.3f, "
               "\"deviation\": %.3f, \"median_tokens_per_s\": %.3f, \"low\": %.3f, \"high\": %.3f, "
               "\"samples\": %d, \"plan\": \"%s\"}%s\n",
               test->is_prompt ? "prompt" : "generation", (long long)test->n, s.mean, s.deviation,
               s.median, s.low, s.high, test->speed.n, test->plan.profiles,
               i + 1 < bench->n_tests ? "," : "");
    }
    printf("  ]\n}\n");
}

static int run(struct bench *bench, const char *checkpoint)
{
    struct tandem_error error = {0};
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    enum tandem_status status = open_all(bench, checkpoint, &error);
    for (int i = 0; status == TANDEM_OK && i < bench->n_tests; i++) {
        status = measure(bench, &bench->tests[i], &error);
    }
    if (status == TANDEM_OK) {
        tandem_runtime_describe(bench->runtime, &info);
        if (strcmp(bench->options.output, "json") == 0) {
            print_json(bench, &info);
        } else if (strcmp(bench->options.output, "csv") == 0) {
            print_csv(bench, &info);
        } else {
            print_md(bench, &info);
            if (bench->options.has_ops) {
                print_ops(bench);
            }
            if (bench->against.n > 0) {
                print_comparison(bench);
            }
            if (bench->baselines.n > 0) {
                print_baselines(bench);
            }
        }
    }
    close_all(bench);
    return status == TANDEM_OK ? 0 : tnd_cli_fail(&error);
}

/* False after printing an error. */
static bool check_options(struct bench *bench, const char *checkpoint)
{
    struct bench_options *o = &bench->options;
    if (checkpoint != NULL && o->synth != NULL) {
        (void)tnd_cli_usage("bench takes a model file or --synth, not both");
        return false;
    }
    if (strcmp(o->output, "md") != 0 && strcmp(o->output, "json") != 0 &&
        strcmp(o->output, "csv") != 0) {
        (void)tnd_cli_usage("--output is md, json or csv, not '%s'", o->output);
        return false;
    }
    if (o->texts > 1 && o->depth > 0) {
        (void)tnd_cli_usage("--texts begin empty, and so take no --depth");
        return false;
    }
    if (o->against.n > TND_COMPARE_MAX) {
        (void)tnd_cli_usage("--against-threads: expected at most %d thread counts",
                            TND_COMPARE_MAX);
        return false;
    }
    if (o->baselines != NULL && !tnd_baselines_check(o->baselines)) {
        return false;
    }
    bench->against.n = o->against.n;
    for (int i = 0; i < o->against.n; i++) {
        bench->against.counts[i] = (int)o->against.values[i];
    }
    o->synth = o->synth == NULL ? "1.1b" : o->synth;
    if (!add_tests(bench, &o->prompts, true) || !add_tests(bench, &o->gens, false)) {
        return false;
    }
    if (bench->n_tests == 0) {
        (void)tnd_cli_usage("bench: nothing to measure");
        return false;
    }
    return true;
}

int tnd_cmd_bench(int argc, char **argv)
{
    static struct bench bench; /* static: its samples are too large for some stacks */
    bench = (struct bench){.options = {.prompts = {2, {128, 512}},
                                       .gens = {2, {32, 128}},
                                       .texts = 1,
                                       .repeat = 3,
                                       .output = "md"}};
    struct bench_options *o = &bench.options;
    const struct args_option rows[] = {
        {"synth", ARGS_STRING, &o->synth, 0, 0, "SHAPE",
         "1.1b, quick, 1b-moe, dim,ffn,layers,heads,kv,words[,experts,used]; 1.1b"},
        {"type", ARGS_STRING, &o->type, 0, 0, "TYPE",
         "of the weights; q4_0, a model file: its own"},
        {"prompt", ARGS_INTS, &o->prompts, 0, 1e6, "N,N",
         "tokens of prompts, each one batch; 128,512"},
        {"gen", ARGS_INTS, &o->gens, 0, 1e6, "N,N", "tokens generated; 32,128"},
        {"depth", ARGS_INT, &o->depth, 0, 1e6, "N", "tokens of text ahead of what is measured; 0"},
        {"texts", ARGS_INT, &o->texts, 1, TND_SPEED_TEXTS, "N",
         "texts that generate at the same time, all of whose tokens count; 1"},
        {"repeat", ARGS_INT, &o->repeat, 1, TND_SPEED_MAX, "N", "measurements of each; 3"},
        TND_RANKS_ROWS(&o->ranks),
        TND_RUNTIME_ROWS(&o->runtime),
        {"cache", ARGS_STRING, &o->cache_type, 0, 0, "TYPE",
         "of keys and values: " TND_CACHE_OPTION_TYPES "; f32"},
        {"micro-batches", ARGS_INT, &o->micro_batches, 0, 8, "N",
         "parts of a prompt in turn on devices or ranks; 1: never; 0: planned"},
        {"unfused", ARGS_FLAG, &o->is_unfused, 0, 0, NULL, "attention by two products; to compare"},
        {"no-fusion", ARGS_FLAG, &o->has_no_fusion, 0, 0, NULL,
         "small nodes one by one; to compare"},
        {"no-sharing", ARGS_FLAG, &o->has_no_sharing, 0, 0, NULL,
         "no barrier shared by nodes that could; to compare"},
        {"ops", ARGS_FLAG, &o->has_ops, 0, 0, NULL, "say which operations the time went to (md)"},
        {"against-threads", ARGS_INTS, &o->against, 1, 1024, "N,N",
         "compare with N threads for every node, in turns (md)"},
        {"baselines", ARGS_STRING, &o->baselines, 0, 0, "LIST",
         "all or blas-32,one-thread,cpu,gpu: what other programs do, in turns (md)"},
        {"never-slower", ARGS_FLAG, &o->never_slower, 0, 0, NULL,
         "fail when the plan is slower than a fixed choice by 2 %"},
        {"output", ARGS_STRING, &o->output, 0, 0, "md|json|csv", "default: md"},
    };
    const struct args_command command = {
        "bench", "[MODEL]", "Measures prompt and generation speed.", CLI_ROWS(rows), 0, 1};
    const char *checkpoint = NULL;
    const int result = args_parse(&command, argc, argv, &checkpoint, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    if (o->never_slower && o->depth > 0) {
        return tnd_cli_usage("--never-slower measures its own texts and takes no --depth");
    }
    if (o->never_slower && checkpoint == NULL) {
        const struct tnd_never_slower wanted = {.shape = o->synth != NULL ? o->synth : "1.1b",
                                                .type = o->type != NULL ? o->type : "q4_0",
                                                .table = o->runtime.table,
                                                .threads = o->runtime.threads,
                                                .rounds = o->repeat};
        return tnd_never_slower_run(&wanted);
    }
    return check_options(&bench, checkpoint) ? run(&bench, checkpoint) : 2;
}
