/* SPDX-License-Identifier: MIT
 * Compares the plan with every fixed choice. They take turns, each round beginning with another
 * one; a ratio is the median over the rounds of the ratio within one round, so that disturbances
 * affect both sides alike. The largest of many noisy ratios is biased upwards, so each one above
 * the limit is measured again, only the two of them, and those rounds decide. */
#include "tools/tandem-llama/never_slower.h"

#include <stdio.h>
#include <string.h>

#include "tools/tandem-llama/baselines.h"
#include "tools/tandem-llama/cli.h"
#include "tools/tandem-llama/speed.h"

enum {
    PLANNED,
    RULE,
    FIRST_FIXED,
    MAX_CANDIDATES = 24,
    GENERATED = 8,
    LONGEST_PROMPT = 512,
    MAX_ROUNDS = 256
};

#define ALLOWED       1.02
#define HOPELESS      1.3  /* times the fastest of two rounds: dropped */
#define HOPELESS_ONCE 2.0  /* the same after one round */
#define DECIDE_S      40.0 /* limit for measuring one ratio again, in seconds */
#define FEWEST        9    /* minimum rounds for that */

static const int64_t prompts[] = {8, 32, 128, 512, 0}; /* 0: generation */
#define CELLS ((int)(sizeof(prompts) / sizeof(prompts[0])))

struct contest {
    const struct tnd_never_slower *wanted;
    tandem_source *source;
    tandem_model *model;
    tandem_session *session;
    tandem_runtime *planned;
    struct tnd_baselines baselines;
    int n_candidates, n_baselines; /* order: rule, baselines, profiles */
    struct tnd_baseline candidates[MAX_CANDIDATES];
    struct tandem_profile_info profiles[32];
    double ratios[MAX_CANDIDATES];              /* time of the plan over that of each candidate */
    double seconds[MAX_CANDIDATES][MAX_ROUNDS]; /* per token, of the current cell */
    int n_rounds[MAX_CANDIDATES];
    bool is_out[MAX_CANDIDATES];
};

static void add_candidate(struct contest *contest, const char *name, const char *profile,
                          tandem_runtime *runtime)
{
    contest->candidates[contest->n_candidates++] =
        (struct tnd_baseline){name, profile, profile, runtime};
}

/* Adds the rule, the baselines, and each available profile that uses no device. */
static void add_fixed(struct contest *contest)
{
    tandem_runtime *runtime = tnd_baselines_runtime(&contest->baselines);
    add_candidate(contest, "the rule", NULL, runtime);
    for (int i = 0; i < contest->baselines.n; i++) {
        contest->candidates[contest->n_candidates++] = contest->baselines.list[i];
    }
    contest->n_baselines = contest->baselines.n;
    int n = tandem_runtime_profiles(runtime, contest->profiles, 32);
    for (int i = 0; i < n && i < 32 && contest->n_candidates < MAX_CANDIDATES; i++) {
        const char *name = contest->profiles[i].name;
        if (contest->profiles[i].available && !tnd_device_option_has_profile(name) &&
            strcmp(name, "cpu") != 0) { /* it is a baseline */
            add_candidate(contest, name, name, runtime);
        }
    }
}

static enum tandem_status open_all(struct contest *contest, struct tandem_error *error)
{
    const struct tnd_never_slower *wanted = contest->wanted;
    const struct tnd_cli_runtime like = {.threads = wanted->threads, .table = wanted->table};
    const struct tandem_session_options options = {.size = sizeof(options),
                                                   .context = LONGEST_PROMPT + GENERATED};
    CLI_TRY(
        tnd_cli_synthesize(wanted->shape, wanted->type, options.context, &contest->source, error));
    CLI_TRY(tandem_model_new(contest->source, &contest->model, error));
    CLI_TRY(tnd_cli_open_runtime(&like, &contest->planned, error));
    CLI_TRY(tnd_baselines_open("all", &like, &contest->baselines, error));
    add_candidate(contest, "the plan", NULL, contest->planned);
    add_fixed(contest);
    return tandem_session_new(contest->model, contest->planned, &options, &contest->session, error);
}

static void close_all(struct contest *contest)
{
    tandem_session_free(contest->session);
    tnd_baselines_close(&contest->baselines);
    tandem_runtime_close(contest->planned);
    tandem_model_free(contest->model);
    tandem_source_close(contest->source);
}

static enum tandem_status run_once(struct contest *contest, int cell, int candidate,
                                   double *out_seconds, struct tandem_error *error)
{
    const int64_t vocabulary = tandem_model_hparams(contest->model)->vocabulary;
    const int64_t m = prompts[cell];
    struct tnd_speed speed = {.n = 0};
    if (candidate == PLANNED) { /* keeps its choices, as a program does */
        tandem_session_set_runtime(contest->session, contest->planned);
    } else {
        CLI_TRY(tnd_baseline_use(&contest->candidates[candidate], contest->session, m, error));
    }
    const enum tandem_status status =
        m > 0 ? tnd_speed_prompt(contest->session, vocabulary, 0, m, &speed, error)
              : tnd_speed_generation(contest->session, NULL, vocabulary, prompts[0], GENERATED,
                                     &speed, error);
    *out_seconds = speed.n > 0 ? 1.0 / speed.samples[0] : 0.0;
    return status;
}

static double fastest_of(const struct contest *contest, int candidate, int n)
{
    double fastest = contest->seconds[candidate][0];
    for (int i = 1; i < n; i++) {
        fastest =
            contest->seconds[candidate][i] < fastest ? contest->seconds[candidate][i] : fastest;
    }
    return fastest;
}

/* Drops candidates that are far behind; after one round, which may have been disturbed, only by a
 * larger factor. */
static void drop_slow(struct contest *contest, int n)
{
    double fastest = fastest_of(contest, PLANNED, n);
    for (int candidate = RULE; candidate < contest->n_candidates; candidate++) {
        const double seconds = fastest_of(contest, candidate, contest->n_rounds[candidate]);
        fastest = seconds < fastest ? seconds : fastest;
    }
    for (int candidate = FIRST_FIXED; candidate < contest->n_candidates; candidate++) {
        const double seconds = fastest_of(contest, candidate, contest->n_rounds[candidate]);
        contest->is_out[candidate] = seconds > (n == 1 ? HOPELESS_ONCE : HOPELESS) * fastest;
    }
}

/* Median of the ratios over the rounds, and its interval, as tnd_cli_median_between. */
static double ratio_to(const struct contest *contest, int candidate, int n, double *out_low,
                       double *out_high)
{
    double ratios[MAX_ROUNDS];
    for (int i = 0; i < n; i++) {
        ratios[i] = contest->seconds[PLANNED][i] / contest->seconds[candidate][i];
    }
    return tnd_cli_median_between(ratios, n, out_low, out_high);
}

/* Measures only the plan and one fixed choice, in turns, until it is clear on which side of the
 * limit the ratio lies. */
static enum tandem_status decide(struct contest *contest, int cell, int candidate,
                                 struct tandem_error *error)
{
    const double begin = tnd_cli_seconds();
    bool is_known = false;
    for (int n = 0; n < MAX_ROUNDS && !is_known; n++) {
        for (int turn = 0; turn < 2; turn++) {
            const int which = (turn + n) % 2 == 0 ? PLANNED : candidate;
            CLI_TRY(run_once(contest, cell, which, &contest->seconds[which][n], error));
        }
        double low, high;
        contest->ratios[candidate] = ratio_to(contest, candidate, n + 1, &low, &high);
        contest->n_rounds[candidate] = n + 1;
        is_known = n + 1 >= FEWEST &&
                   (low > ALLOWED || high < ALLOWED || tnd_cli_seconds() - begin > DECIDE_S);
    }
    return TANDEM_OK;
}

static enum tandem_status measure_cell(struct contest *contest, int cell,
                                       struct tandem_error *error)
{
    const int rounds = (int)contest->wanted->rounds;
    memset(contest->is_out, 0, sizeof(contest->is_out));
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < contest->n_candidates; i++) {
            const int candidate = (i + round) % contest->n_candidates;
            if (!contest->is_out[candidate]) {
                CLI_TRY(
                    run_once(contest, cell, candidate, &contest->seconds[candidate][round], error));
                contest->n_rounds[candidate] = round + 1;
            }
        }
        if (round < 2) {
            drop_slow(contest, round + 1);
        }
    }
    for (int candidate = RULE; candidate < contest->n_candidates; candidate++) {
        double low, high;
        contest->ratios[candidate] =
            ratio_to(contest, candidate, contest->n_rounds[candidate], &low, &high);
    }
    for (int candidate = RULE; candidate < contest->n_candidates; candidate++) {
        if (contest->ratios[candidate] > ALLOWED) {
            CLI_TRY(decide(contest, cell, candidate, error));
        }
    }
    return TANDEM_OK;
}

/* Among first .. end-1, the candidate over which the plan has the smallest lead. */
static int best_of(const struct contest *contest, int first, int end)
{
    int best = first;
    for (int candidate = first + 1; candidate < end; candidate++) {
        best = contest->ratios[candidate] > contest->ratios[best] ? candidate : best;
    }
    return best;
}

/* Prints a cell; returns its ratio to the best fixed choice. */
static double print_cell(const struct contest *contest, int cell)
{
    const int best = best_of(contest, RULE, contest->n_candidates);
    const int other = best_of(contest, FIRST_FIXED, FIRST_FIXED + contest->n_baselines);
    const double worst = contest->ratios[best];
    char name[32] = "generation";
    if (prompts[cell] > 0) {
        snprintf(name, sizeof(name), "prompt %lld", (long long)prompts[cell]);
    }
    printf("%-11s the plan takes", name);
    for (int candidate = RULE; candidate < contest->n_candidates; candidate++) {
        printf("%s %.3f of %s (%d)", candidate == RULE ? "" : ",", contest->ratios[candidate],
               contest->candidates[candidate].name, contest->n_rounds[candidate]);
    }
    printf("\n%-11s gain over the best baseline (%s) %.2fx; best fixed choice: %s, of which the "
           "plan takes %.3f%s\n",
           "", contest->candidates[other].name, 1.0 / contest->ratios[other],
           contest->candidates[best].name, worst, worst > ALLOWED ? " TOO SLOW" : "");
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
    static struct contest contest; /* static: its samples are too large for some stacks */
    struct tandem_error error = {.text = ""};
    double worst = 0.0;
    contest = (struct contest){.wanted = wanted};
    enum tandem_status status = open_all(&contest, &error);
    if (status == TANDEM_OK && tandem_runtime_table_status(contest.planned, &error) != TANDEM_OK) {
        status = error.status; /* without a table, the rule would be compared with itself */
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
