/* SPDX-License-Identifier: MIT
 * The plan against every fixed choice. Each has a runtime of its own and they take turns, each
 * round beginning with another one; a ratio is the median over the rounds of the ratio within one
 * round, so that whatever else the machine does meets both sides alike. */
#include "tools/tandem-llama/never_slower.h"

#include <stdio.h>
#include <string.h>

#include "tools/tandem-llama/cli.h"
#include "tools/tandem-llama/speed.h"

enum { PLANNED, RULE, FIRST_PROFILE, MAX_CANDIDATES = 16, GENERATED = 8, LONGEST_PROMPT = 512 };

#define ALLOWED  1.02
#define HOPELESS 1.3 /* times as long as the fastest of the first round: not run again */

static const int64_t prompts[] = {8, 32, 128, 512, 0}; /* 0: generation */
#define CELLS ((int)(sizeof(prompts) / sizeof(prompts[0])))

struct contest {
    const struct tnd_never_slower *wanted;
    tandem_source *source;
    tandem_model *model;
    tandem_session *session;
    int n_candidates;
    char names[MAX_CANDIDATES][48];
    tandem_runtime *runtimes[MAX_CANDIDATES];
    double seconds[MAX_CANDIDATES][TND_SPEED_MAX]; /* of the cell that is measured, a token */
    bool is_out[MAX_CANDIDATES];
};

static enum tandem_status add_candidate(struct contest *contest, const char *name,
                                        const char *table, const char *profile,
                                        struct tandem_error *error)
{
    const struct tnd_cli_runtime wanted = {
        .threads = contest->wanted->threads, .profile = profile, .table = table};
    snprintf(contest->names[contest->n_candidates], sizeof(contest->names[0]), "%s", name);
    return tnd_cli_open_runtime(&wanted, &contest->runtimes[contest->n_candidates++], error);
}

/* Every profile that is there, but for those of devices. */
static enum tandem_status add_profiles(struct contest *contest, struct tandem_error *error)
{
    struct tandem_profile_info profiles[32];
    int n = tandem_runtime_profiles(contest->runtimes[RULE], profiles, 32);
    for (int i = 0; i < n && i < 32 && contest->n_candidates < MAX_CANDIDATES; i++) {
        const char *name = profiles[i].name;
        if (profiles[i].available && !tnd_device_option_has_profile(name)) {
            CLI_TRY(add_candidate(contest, name, "none", name, error));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status open_all(struct contest *contest, struct tandem_error *error)
{
    const struct tnd_never_slower *wanted = contest->wanted;
    const struct tandem_session_options options = {.size = sizeof(options),
                                                   .context = LONGEST_PROMPT + GENERATED};
    CLI_TRY(
        tnd_cli_synthesize(wanted->shape, wanted->type, options.context, &contest->source, error));
    CLI_TRY(tandem_model_new(contest->source, &contest->model, error));
    CLI_TRY(add_candidate(contest, "the plan", wanted->table, NULL, error));
    CLI_TRY(add_candidate(contest, "fixed rule", "none", NULL, error));
    CLI_TRY(add_profiles(contest, error));
    return tandem_session_new(contest->model, contest->runtimes[PLANNED], &options,
                              &contest->session, error);
}

static void close_all(struct contest *contest)
{
    tandem_session_free(contest->session);
    for (int candidate = 0; candidate < contest->n_candidates; candidate++) {
        tandem_runtime_close(contest->runtimes[candidate]);
    }
    tandem_model_free(contest->model);
    tandem_source_close(contest->source);
}

static enum tandem_status run_once(struct contest *contest, int cell, int candidate,
                                   double *out_seconds, struct tandem_error *error)
{
    const int64_t vocabulary = tandem_model_hparams(contest->model)->vocabulary;
    struct tnd_speed speed = {.n = 0};
    tandem_session_set_runtime(contest->session, contest->runtimes[candidate]);
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
    for (int candidate = 1; candidate < contest->n_candidates; candidate++) {
        const double seconds = contest->seconds[candidate][0];
        fastest = seconds < fastest ? seconds : fastest;
    }
    for (int candidate = FIRST_PROFILE; candidate < contest->n_candidates; candidate++) {
        contest->is_out[candidate] = contest->seconds[candidate][0] > HOPELESS * fastest;
    }
}

static enum tandem_status measure_cell(struct contest *contest, int cell,
                                       struct tandem_error *error)
{
    memset(contest->is_out, 0, sizeof(contest->is_out));
    for (int64_t round = 0; round < contest->wanted->rounds; round++) {
        for (int i = 0; i < contest->n_candidates; i++) {
            const int candidate = (i + (int)round) % contest->n_candidates;
            if (!contest->is_out[candidate]) {
                CLI_TRY(
                    run_once(contest, cell, candidate, &contest->seconds[candidate][round], error));
            }
        }
        if (round == 0) {
            drop_slow(contest);
        }
    }
    return TANDEM_OK;
}

/* How many times as long the plan takes as a candidate. */
static double ratio_to(const struct contest *contest, int candidate)
{
    double ratios[TND_SPEED_MAX];
    const int n = contest->is_out[candidate] ? 1 : (int)contest->wanted->rounds;
    for (int i = 0; i < n; i++) {
        ratios[i] = contest->seconds[PLANNED][i] / contest->seconds[candidate][i];
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
    for (int candidate = RULE; candidate < contest->n_candidates; candidate++) {
        const double ratio = ratio_to(contest, candidate);
        printf("%s %.3f of %s%s", candidate == RULE ? "" : ",", ratio, contest->names[candidate],
               contest->is_out[candidate] ? " (one round)" : "");
        if (ratio > worst) {
            worst = ratio;
            best = candidate;
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
    for (int i = 0; i < contest->n_candidates; i++) {
        double seconds; /* packing, page faults: twice, since generation may use other profiles */
        CLI_TRY(run_once(contest, 0, i, &seconds, error));
        CLI_TRY(run_once(contest, CELLS - 1, i, &seconds, error));
    }
    for (int cell = 0; cell < CELLS; cell++) {
        CLI_TRY(measure_cell(contest, cell, error));
        const double worst = print_cell(contest, cell);
        *out_worst = worst > *out_worst ? worst : *out_worst;
    }
    return TANDEM_OK;
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
