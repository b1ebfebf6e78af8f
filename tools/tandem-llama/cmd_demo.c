/* SPDX-License-Identifier: MIT
 * tandem-llama demo: the gain by planning. One synthetic model is run as other programs would, with
 * only the CPU kernels, without a table and by the plan, in turns, so that disturbances affect all
 * alike. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/tandem-llama/baselines.h"
#include "tools/tandem-llama/cli.h"
#include "tools/tandem-llama/plan_summary.h"
#include "tools/tandem-llama/speed.h"
#include "tools/say.h"

/* Baselines first, then rule and plan. */
enum { MAX_CANDIDATES = TND_BASELINES_MAX + 2 };

struct cell {
    int64_t prompt; /* tokens of one batch; 0: generation */
    double share;   /* of the time budget */
};

static const struct cell cells[] = {{8, 0.15}, {32, 0.2}, {128, 0.4}, {0, 0.25}};
#define CELLS          ((int)(sizeof(cells) / sizeof(cells[0])))
#define LONGEST_PROMPT 128
#define GENERATED      8
#define MAX_ROUNDS     9
/* unless they take much longer than the budget */
#define MIN_ROUNDS     3
/* limits for close comparisons: total rounds, and time as a multiple of the budget */
#define MOST_ROUNDS    48
#define MOST_BUDGETS   3.0
#define SURE_ROUNDS    9 /* before this many rounds, a lead below 1 / n may be chance */

struct demo {
    bool quick;
    const char *table;
    int64_t threads;
    double budget_s;
    tandem_source *source;
    tandem_model *model;
    tandem_runtime *planned;
    struct tnd_baselines baselines;
    struct tnd_baseline candidates[MAX_CANDIDATES];
    int n_candidates; /* last but one: the rule; last: the plan */
    tandem_session *session;
    struct tnd_speed speeds[CELLS][MAX_CANDIDATES];
};

static void cell_name(int cell, char *out, size_t n)
{
    if (cells[cell].prompt > 0) {
        snprintf(out, n, "prompt %lld", (long long)cells[cell].prompt);
    } else {
        snprintf(out, n, "generation");
    }
}

static enum tandem_status open_all(struct demo *demo, struct tandem_error *error)
{
    const struct tandem_session_options options = {.size = sizeof(options),
                                                   .context = LONGEST_PROMPT + GENERATED};
    const char *const shape = demo->quick ? "quick" : "1.1b";
    const double begin = tnd_cli_seconds();
    CLI_TRY(tnd_cli_synthesize(shape, "q4_0", options.context, &demo->source, error));
    CLI_TRY(tandem_model_new(demo->source, &demo->model, error));
    const struct tnd_cli_runtime like = {.threads = demo->threads, .table = demo->table};
    CLI_TRY(tnd_cli_open_runtime(&like, &demo->planned, error));
    CLI_TRY(tnd_baselines_open("all", &like, &demo->baselines, error));
    for (int i = 0; i < demo->baselines.n; i++) {
        demo->candidates[demo->n_candidates++] = demo->baselines.list[i];
    }
    demo->candidates[demo->n_candidates++] =
        (struct tnd_baseline){"no table", NULL, NULL, tnd_baselines_runtime(&demo->baselines)};
    demo->candidates[demo->n_candidates++] =
        (struct tnd_baseline){"tuned plan", NULL, NULL, demo->planned};
    CLI_TRY(tandem_session_new(demo->model, demo->planned, &options, &demo->session, error));
    const struct tandem_hparams *h = tandem_model_hparams(demo->model);
    tnd_say("made a %s llama with random weights in %.1f s: %lld layers, dim %lld, "
            "%lld tokens, q4_0\n",
            shape, tnd_cli_seconds() - begin, (long long)h->layers, (long long)h->dim,
            (long long)h->vocabulary);
    return TANDEM_OK;
}

static void close_all(struct demo *demo)
{
    tandem_session_free(demo->session);
    tnd_baselines_close(&demo->baselines);
    tandem_runtime_close(demo->planned);
    tandem_model_free(demo->model);
    tandem_source_close(demo->source);
}

static enum tandem_status measure_once(struct demo *demo, int cell, int candidate, bool is_counted,
                                       struct tandem_error *error)
{
    const int64_t vocabulary = tandem_model_hparams(demo->model)->vocabulary;
    struct tnd_speed *speed = is_counted ? &demo->speeds[cell][candidate] : NULL;
    const int64_t m = cells[cell].prompt > 0 ? cells[cell].prompt : 1;
    if (candidate == demo->n_candidates - 1) { /* keeps its choices, as a program does */
        tandem_session_set_runtime(demo->session, demo->planned);
    } else {
        CLI_TRY(tnd_baseline_use(&demo->candidates[candidate], demo->session, m, error));
    }
    if (cells[cell].prompt > 0) {
        return tnd_speed_prompt(demo->session, vocabulary, 0, cells[cell].prompt, speed, error);
    }
    return tnd_speed_generation(demo->session, NULL, vocabulary, cells[0].prompt,
                                is_counted ? GENERATED : 1, speed, error);
}

/* The plan's least gain over the candidates first .. end-1. */
static struct tnd_speed_ratio gain_over(const struct demo *demo, int cell, int first, int end)
{
    const struct tnd_speed *speeds = demo->speeds[cell];
    const struct tnd_speed *planned = &speeds[demo->n_candidates - 1];
    struct tnd_speed_ratio least = tnd_speed_compare(&speeds[first], planned);
    for (int candidate = first + 1; candidate < end; candidate++) {
        const struct tnd_speed_ratio gain = tnd_speed_compare(&speeds[candidate], planned);
        least = gain.median < least.median ? gain : least;
    }
    return least;
}

/* Whether more rounds could decide which one is faster. */
static bool is_open(const struct tnd_speed_ratio *gain)
{
    const double margin = gain->n < SURE_ROUNDS ? 1.0 / fmax(gain->n, 1) : 0.0;
    return gain->low < 1.0 + margin && gain->high > 1.0 - margin;
}

/* Rounds over all candidates, then only over the plan and the baselines without a clear difference
 * from it. Each round begins with another candidate. */
static enum tandem_status measure_round(struct demo *demo, int cell, int round, bool is_extra,
                                        struct tandem_error *error)
{
    const int n = demo->n_candidates;
    for (int turn = 0; turn < n; turn++) {
        const int candidate = (turn + round) % n;
        bool takes_part = !is_extra || candidate == n - 1;
        if (!takes_part && candidate < demo->baselines.n) {
            const struct tnd_speed *speeds = demo->speeds[cell];
            const struct tnd_speed_ratio gain =
                tnd_speed_compare(&speeds[candidate], &speeds[n - 1]);
            takes_part = speeds[candidate].n == round && is_open(&gain);
        }
        if (takes_part) {
            CLI_TRY(measure_once(demo, cell, candidate, true, error));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status measure_cell(struct demo *demo, int cell, struct tandem_error *error)
{
    const double begin_s = tnd_cli_seconds();
    const double limit_s = demo->budget_s * cells[cell].share;
    double used_s = 0.0;
    double round_s = 0.0;
    bool is_extra = false;
    int round = 0;
    for (; round < MOST_ROUNDS; round++) {
        is_extra = is_extra || round >= MAX_ROUNDS ||
                   used_s + round_s > (round < MIN_ROUNDS ? 1.6 * limit_s : limit_s);
        const struct tnd_speed_ratio gain = gain_over(demo, cell, 0, demo->baselines.n);
        if (is_extra && (!is_open(&gain) || used_s + round_s > MOST_BUDGETS * limit_s)) {
            break;
        }
        CLI_TRY(measure_round(demo, cell, round, is_extra, error));
        round_s = tnd_cli_seconds() - begin_s - used_s;
        used_s += round_s;
    }
    char name[32];
    cell_name(cell, name, sizeof(name));
    tnd_say("measured %s in %.1f s, %d rounds\n", name, used_s, round);
    return TANDEM_OK;
}

static enum tandem_status measure(struct demo *demo, struct tandem_error *error)
{
    for (int i = 0; i < demo->n_candidates; i++) { /* warms up threads, caches, page faults */
        CLI_TRY(measure_once(demo, 0, i, false, error));
    }
    for (int cell = 0; cell < CELLS; cell++) {
        CLI_TRY(measure_cell(demo, cell, error));
    }
    return TANDEM_OK;
}

static double median_of(const struct demo *demo, int cell, int candidate)
{
    return tnd_speed_summary(&demo->speeds[cell][candidate]).median;
}

/* Together less than 80 columns. */
enum { NAME_WIDTH = 23, SPEED_WIDTH = 10 };

static void print_speeds(const char *name, const double speeds[CELLS], const char *unit)
{
    printf("| %-*s |", NAME_WIDTH, name);
    for (int cell = 0; cell < CELLS; cell++) {
        printf(" %*.2f%s |", SPEED_WIDTH - (int)strlen(unit), speeds[cell], unit);
    }
    printf("\n");
}

static void print_gain(const struct demo *demo, const char *name, int first, int end)
{
    double gains[CELLS];
    for (int cell = 0; cell < CELLS; cell++) {
        gains[cell] = gain_over(demo, cell, first, end).median;
    }
    print_speeds(name, gains, "x");
}

static void print_gain_interval(const struct demo *demo, const char *name, int first, int end)
{
    printf("| %-*s |", NAME_WIDTH, name);
    for (int cell = 0; cell < CELLS; cell++) {
        const struct tnd_speed_ratio gain = gain_over(demo, cell, first, end);
        char between[32];
        snprintf(between, sizeof(between), "%.2f-%.2f", gain.low, gain.high);
        printf(" %*s |", SPEED_WIDTH, between);
    }
    printf("\n");
}

static int find(const struct demo *demo, const char *name)
{
    int i = 0;
    while (i < demo->n_candidates - 1 && strcmp(demo->candidates[i].name, name) != 0) {
        i++;
    }
    return i;
}

/* Prints the tuned plan for each cell. */
static enum tandem_status print_plans(struct demo *demo, struct tandem_error *error)
{
    tandem_session_set_runtime(demo->session, demo->planned);
    printf("\nmatrix products by profile in the tuned plan:\n");
    for (int cell = 0; cell < CELLS; cell++) {
        struct tnd_plan_facts plan;
        char name[32];
        (void)tandem_session_rollback(demo->session, 0, 0);
        CLI_TRY(tnd_plan_summary(demo->session, cells[cell].prompt > 0 ? cells[cell].prompt : 1,
                                 &plan, error));
        cell_name(cell, name, sizeof(name));
        printf("  %-10s %s; planned in %.1f us\n", name, plan.profiles, plan.took_us);
    }
    return TANDEM_OK;
}

static void print_head(void)
{
    printf("| %-*s |", NAME_WIDTH, "");
    for (int cell = 0; cell < CELLS; cell++) {
        char head[32];
        cell_name(cell, head, sizeof(head));
        printf(" %*s |", SPEED_WIDTH, head);
    }
    printf("\n|-------------------------|");
    for (int cell = 0; cell < CELLS; cell++) {
        printf("-----------:|");
    }
    printf("\n");
}

static void print_result(const struct demo *demo)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    struct tandem_error error = {0};
    const int cpu = find(demo, "cpu");
    tandem_runtime_describe(demo->planned, &info);
    printf("\n%s, %s, %d threads; tokens/s, median\n\n", info.cpu, info.isa, info.n_threads);
    print_head();
    for (int candidate = 0; candidate < demo->n_candidates; candidate++) {
        double speeds[CELLS];
        for (int cell = 0; cell < CELLS; cell++) {
            speeds[cell] = median_of(demo, cell, candidate);
        }
        print_speeds(demo->candidates[candidate].name, speeds, "");
    }
    print_gain(demo, "plan over best baseline", 0, demo->baselines.n);
    print_gain_interval(demo, "  with 95 % between", 0, demo->baselines.n);
    print_gain(demo, "plan over cpu", cpu, cpu + 1);
    printf("\ngains: medians of the ratios within each round\n");
    for (int i = 0; i < demo->baselines.n; i++) {
        const char *name = demo->baselines.list[i].name;
        printf("%s: %s\n", name, tnd_baseline_words(name));
    }
    if (tandem_runtime_table_status(demo->planned, &error) != TANDEM_OK) {
        printf(
            "There is no timing table (%s): the plan is the rule. Run mulmat-tune bench first.\n",
            error.text);
    } else {
        printf("no table: the rule, which serves until this machine was measured\n"
               "timing table: %s\n",
               info.table);
    }
}

int tnd_cmd_demo(int argc, char **argv)
{
    struct demo demo = {.budget_s = 0.0};
    const struct args_option rows[] = {
        {"quick", ARGS_FLAG, &demo.quick, 0, 0, NULL, "a smaller model"},
        {"table", ARGS_STRING, &demo.table, 0, 0, "FILE",
         "timing table; default: this machine's own"},
        {"threads", ARGS_INT, &demo.threads, 0, 1024, "N", "threads; default: one a core"},
        {"budget", ARGS_NUMBER, &demo.budget_s, 0, 1e6, "SECONDS",
         "of measuring; 36, with --quick 10"},
    };
    const struct args_command command = {
        "demo",         "", "Compares what other programs do, the CPU kernels and the plan.",
        CLI_ROWS(rows), 0,  0};
    const int result = args_parse(&command, argc, argv, NULL, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    if (!(demo.budget_s > 0.0)) {
        demo.budget_s = demo.quick ? 10.0 : 36.0;
    }
    struct tandem_error error = {0};
    enum tandem_status status = open_all(&demo, &error);
    if (status == TANDEM_OK) {
        status = measure(&demo, &error);
    }
    if (status == TANDEM_OK) {
        print_result(&demo);
        status = print_plans(&demo, &error);
    }
    close_all(&demo);
    return status == TANDEM_OK ? 0 : tnd_cli_fail(&error);
}
