/* SPDX-License-Identifier: MIT
 * The plan against every fixed choice. Each has a runtime of its own and they take turns, each
 * round beginning with another one; a ratio is the median over the rounds of the ratio within one
 * round, so that whatever else the machine does meets both sides alike. */
#include "tools/tandem-llama/never_slower.h"

#include <stdio.h>
#include <string.h>

#include "tools/tandem-llama/cli.h"
#include "tools/tandem-llama/speed.h"

enum { PLANNED, RULE, FIRST_PROFILE, MOST_WAYS = 16, GENERATED = 8, LONGEST_PROMPT = 512 };

#define ALLOWED  1.02
#define HOPELESS 1.3 /* times as long as the fastest of the first round: not run again */

static const int64_t prompts[] = {8, 32, 128, 512, 0}; /* 0: generation */
#define CELLS ((int)(sizeof(prompts) / sizeof(prompts[0])))

struct contest {
    const struct tnd_never_slower *wanted;
    tandem_source *source;
    tandem_model *model;
    tandem_session *session;
    int n_ways;
    char names[MOST_WAYS][48];
    tandem_runtime *runtimes[MOST_WAYS];
    double seconds[MOST_WAYS][TND_SPEED_MAX]; /* of the cell that is measured, a token */
    bool is_out[MOST_WAYS];
};

static enum tandem_status add_way(struct contest *contest, const char *name, const char *table,
                                  const char *profile, struct tandem_error *error)
{
    const struct tnd_cli_runtime wanted = {
        .threads = contest->wanted->threads, .profile = profile, .table = table};
    snprintf(contest->names[contest->n_ways], sizeof(contest->names[0]), "%s", name);
    return tnd_cli_open_runtime(&wanted, &contest->runtimes[contest->n_ways++], error);
}

/* Every profile that is there, but for those of devices. */
static enum tandem_status add_profiles(struct contest *contest, struct tandem_error *error)
{
    struct tandem_profile_info profiles[32];
    int n = tandem_runtime_profiles(contest->runtimes[RULE], profiles, 32);
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < n && i < 32 && contest->n_ways < MOST_WAYS; i++) {
        const char *name = profiles[i].name;
        if (status == TANDEM_OK && profiles[i].available && strstr(name, "opencl") == NULL &&
            strstr(name, "clblast") == NULL) {
            status = add_way(contest, name, "none", name, error);
        }
    }
    return status;
}

static enum tandem_status open_all(struct contest *contest, struct tandem_error *error)
{
    const struct tnd_never_slower *wanted = contest->wanted;
    const struct tandem_session_options options = {.size = sizeof(options),
                                                   .context = LONGEST_PROMPT + GENERATED};
    enum tandem_status status =
        tnd_cli_synthesize(wanted->shape, wanted->type, options.context, &contest->source, error);
    if (status == TANDEM_OK) {
        status = tandem_model_new(contest->source, &contest->model, error);
    }
    if (status == TANDEM_OK) {
        status = add_way(contest, "the plan", wanted->table, NULL, error);
    }
    if (status == TANDEM_OK) {
        status = add_way(contest, "fixed rule", "none", NULL, error);
    }
    if (status == TANDEM_OK) {
        status = add_profiles(contest, error);
    }
    if (status == TANDEM_OK) {
        status = tandem_session_new(contest->model, contest->runtimes[PLANNED], &options,
                                    &contest->session, error);
    }
    return status;
}

static void close_all(struct contest *contest)
{
    tandem_session_free(contest->session);
    for (int way = 0; way < contest->n_ways; way++) {
        tandem_runtime_close(contest->runtimes[way]);
    }
    tandem_model_free(contest->model);
    tandem_source_close(contest->source);
}

static enum tandem_status run_once(struct contest *contest, int cell, int way, double *out_seconds,
                                   struct tandem_error *error)
{
    const int64_t vocabulary = tandem_model_hparams(contest->model)->vocabulary;
    struct tnd_speed speed = {.n = 0};
    tandem_session_set_runtime(contest->session, contest->runtimes[way]);
    const enum tandem_status status =
        prompts[cell] > 0
            ? tnd_speed_prompt(contest->session, vocabulary, prompts[cell], &speed, error)
            : tnd_speed_generation(contest->session, vocabulary, prompts[0], GENERATED, &speed,
                                   error);
    *out_seconds = speed.n > 0 ? 1.0 / speed.samples[0] : 0.0;
    return status;
}

/* Who is hopeless after the first round runs no more. */
static void drop_slow(struct contest *contest)
{
    double fastest = contest->seconds[0][0];
    for (int way = 1; way < contest->n_ways; way++) {
        const double seconds = contest->seconds[way][0];
        fastest = seconds < fastest ? seconds : fastest;
    }
    for (int way = FIRST_PROFILE; way < contest->n_ways; way++) {
        contest->is_out[way] = contest->seconds[way][0] > HOPELESS * fastest;
    }
}

static enum tandem_status measure_cell(struct contest *contest, int cell,
                                       struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    memset(contest->is_out, 0, sizeof(contest->is_out));
    for (int64_t round = 0; round < contest->wanted->rounds; round++) {
        for (int turn = 0; turn < contest->n_ways && status == TANDEM_OK; turn++) {
            const int way = (turn + (int)round) % contest->n_ways;
            if (!contest->is_out[way]) {
                status = run_once(contest, cell, way, &contest->seconds[way][round], error);
            }
        }
        if (round == 0) {
            drop_slow(contest);
        }
    }
    return status;
}

/* How many times as long the plan takes as a way. */
static double ratio_to(const struct contest *contest, int way)
{
    double ratios[TND_SPEED_MAX];
    const int n = contest->is_out[way] ? 1 : (int)contest->wanted->rounds;
    for (int i = 0; i < n; i++) {
        ratios[i] = contest->seconds[PLANNED][i] / contest->seconds[way][i];
    }
    return tnd_cli_median(ratios, n);
}

/* Returns the ratio to the best fixed choice. */
static double print_cell(const struct contest *contest, int cell)
{
    double worst = 0.0;
    int best = RULE;
    char name[32] = "generation";
    if (prompts[cell] > 0) {
        snprintf(name, sizeof(name), "prompt %lld", (long long)prompts[cell]);
    }
    printf("%-11s the plan takes", name);
    for (int way = RULE; way < contest->n_ways; way++) {
        const double ratio = ratio_to(contest, way);
        printf("%s %.3f of %s%s", way == RULE ? "" : ",", ratio, contest->names[way],
               contest->is_out[way] ? " (one round)" : "");
        if (ratio > worst) {
            worst = ratio;
            best = way;
        }
    }
    printf("\n%-11s gain over the fixed rule %.2fx; best fixed choice: %s, of which the plan takes "
           "%.3f%s\n",
           "", 1.0 / ratio_to(contest, RULE), contest->names[best], worst,
           worst > ALLOWED ? " TOO SLOW" : "");
    fflush(stdout);
    return worst;
}

static enum tandem_status run(struct contest *contest, double *out_worst,
                              struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    for (int way = 0; way < contest->n_ways && status == TANDEM_OK; way++) {
        double seconds; /* packing, page faults: twice, since generation may run another way */
        status = run_once(contest, 0, way, &seconds, error);
        if (status == TANDEM_OK) {
            status = run_once(contest, CELLS - 1, way, &seconds, error);
        }
    }
    for (int cell = 0; cell < CELLS && status == TANDEM_OK; cell++) {
        status = measure_cell(contest, cell, error);
        if (status == TANDEM_OK) {
            const double worst = print_cell(contest, cell);
            *out_worst = worst > *out_worst ? worst : *out_worst;
        }
    }
    return status;
}

int tnd_never_slower_run(const struct tnd_never_slower *wanted)
{
    static struct contest contest; /* its samples are too many for the stack of some */
    struct tandem_error error = {.text = ""};
    double worst = 0.0;
    contest = (struct contest){.wanted = wanted};
    enum tandem_status status = open_all(&contest, &error);
    if (status == TANDEM_OK &&
        tandem_runtime_table_status(contest.runtimes[PLANNED], &error) != TANDEM_OK) {
        status = error.status; /* the fixed rule would be compared with itself */
    }
    if (status == TANDEM_OK) {
        status = run(&contest, &worst, &error);
    }
    close_all(&contest);
    if (status != TANDEM_OK) {
        return tnd_cli_fail(&error);
    }
    printf("at worst the plan takes %.3f of the best fixed choice; allowed is %.2f\n", worst,
           ALLOWED);
    return worst > ALLOWED ? 1 : 0;
}
