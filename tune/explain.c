/* SPDX-License-Identifier: MIT
 * Explains choices with the planner's own candidates. */
#include "tune/explain.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/task.h"
#include "base/alloc.h"
#include "base/tnd_status.h"
#include "tune/policy.h"
#include "tune/stream_cost.h"

enum { MOST_THREADS_TOLD = 40 }; /* most thread counts in a command */

const char *tnd_explain_profile(const struct tnd_explanation *explanation,
                                const struct tnd_prediction *prediction)
{
    return prediction->candidate >= 0 ? explanation->candidates[prediction->candidate].profile.name
                                      : "";
}

/* ---- the table as a whole ---- */

static void scale_curve(struct tnd_curve *curve, double factor)
{
    for (int s = 0; s < curve->n_samples; s++) {
        curve->samples[s].median_us *= factor;
        curve->samples[s].spread_us *= factor;
        curve->samples[s].error_us *= factor;
        curve->samples[s].fit_us *= factor;
        curve->samples[s].joules *= factor; /* at the same power */
    }
}

bool tnd_table_scale(struct tandem_table *table, const char *backend, double factor)
{
    const char *part = strchr(backend, '.');
    size_t length = strcspn(backend, ".");
    bool found = false;
    for (int i = 0; i < table->n_curves && part == NULL; i++) {
        if (strcmp(table->curves[i].key.backend, backend) == 0) {
            scale_curve(&table->curves[i], factor);
            found = true;
        }
    }
    for (int i = 0; i < table->n_transfers && part != NULL; i++) {
        struct tnd_transfer *transfer = &table->transfers[i];
        if (strcmp(part, ".transfer") == 0 && strlen(transfer->backend) == length &&
            memcmp(transfer->backend, backend, length) == 0) {
            scale_curve(&transfer->curve, factor);
            found = true;
        }
    }
    return found;
}

int64_t tnd_table_largest_m(const struct tandem_table *table, enum tandem_type type)
{
    int64_t largest = 0;
    for (int i = 0; table != NULL && i < table->n_curves; i++) {
        const struct tnd_curve *curve = &table->curves[i];
        if (strcmp(curve->key.op, "mul_mat") == 0 && curve->key.type == type &&
            curve->n_samples > 0 && curve->samples[curve->n_samples - 1].m > largest) {
            largest = curve->samples[curve->n_samples - 1].m;
        }
    }
    return largest;
}

/* ---- candidates ---- */

struct collector {
    struct tnd_explanation *explanation;
    int capacity;
};

static void collect(void *user, const struct tnd_prediction *prediction)
{
    struct collector *collector = user;
    struct tnd_explanation *e = collector->explanation;
    if (e->n_predictions < collector->capacity) {
        e->predictions[e->n_predictions++] = *prediction;
    }
}

static int compare_candidates(const void *left, const void *right)
{
    const struct tnd_prediction *a = left;
    const struct tnd_prediction *b = right;
    if (a->cautious_us != b->cautious_us) {
        return a->cautious_us < b->cautious_us ? -1 : 1;
    }
    return a->candidate != b->candidate ? a->candidate - b->candidate : a->threads - b->threads;
}

/* Moves the winner to the front: a tie may have been decided for a candidate that is not the
 * cheapest. */
static void put_winner_first(struct tnd_explanation *e)
{
    struct tnd_prediction *list = e->predictions;
    int at = 0;
    while (at < e->n_predictions && (list[at].candidate != e->choice.best.candidate ||
                                     list[at].threads != e->choice.best.threads)) {
        at++;
    }
    if (at > 0 && at < e->n_predictions) {
        memmove(list + 1, list, (size_t)at * sizeof(*list));
        list[0] = e->choice.best;
    }
}

static int count_thread_counts(const struct tandem_table *table, int n_threads)
{
    int n = 1;
    for (int threads = 1; threads < n_threads; n++) {
        threads = tnd_next_thread_count(table, threads, n_threads);
    }
    return n;
}

/* Neighbours of a product in host memory. */
static struct tnd_neighbours neighbours_of(const struct tnd_explanation *e, int n_threads)
{
    return (struct tnd_neighbours){
        .side = "", .neighbour_threads = n_threads, .is_warm = e->is_warm};
}

static enum tandem_status find_candidates(const struct tnd_explain_options *options,
                                          struct tnd_explanation *e, struct tandem_error *error)
{
    int capacity = e->n_candidates * count_thread_counts(options->table, e->n_threads);
    e->predictions = tnd_calloc((size_t)capacity + 1, sizeof(e->predictions[0]));
    if (e->predictions == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "explain", capacity, 0,
                             "explain: out of memory for %d candidates", capacity);
    }
    struct collector collector = {e, capacity};
    struct tnd_neighbours neighbours = neighbours_of(e, e->n_threads);
    tnd_choose(options->table, e->candidates, e->n_candidates, &e->problem, e->n_threads,
               &neighbours, collect, &collector, &e->choice);
    qsort(e->predictions, (size_t)e->n_predictions, sizeof(e->predictions[0]), compare_candidates);
    put_winner_first(e);
    if (e->choice.second.candidate >= 0 && e->choice.best.cautious_us > 0) {
        e->margin = e->choice.second.cautious_us / e->choice.best.cautious_us - 1;
    }
    return TANDEM_OK;
}

static const struct tnd_prediction *prediction_of(const struct tnd_explanation *e, int candidate,
                                                  int threads)
{
    for (int i = 0; i < e->n_predictions; i++) {
        if (e->predictions[i].candidate == candidate && e->predictions[i].threads == threads) {
            return &e->predictions[i];
        }
    }
    return NULL;
}

static void find_scaling(struct tnd_explanation *e)
{
    int candidate = e->choice.best.candidate;
    const struct tnd_prediction *one = prediction_of(e, candidate, 1);
    const struct tnd_prediction *all = prediction_of(e, candidate, e->n_threads);
    if (one == NULL || all == NULL || all->total.below_us + all->total.above_us <= 0) {
        return;
    }
    e->scaling.threads = e->n_threads;
    e->scaling.low = one->total.us / (all->total.us + all->total.above_us);
    e->scaling.high = one->total.us / (all->total.us - all->total.below_us);
}

/* ---- crossings over M ---- */

static struct tnd_choice choose_at(const struct tandem_table *table,
                                   const struct tnd_explanation *e, int64_t m, int n_threads)
{
    struct tnd_problem problem = e->problem;
    struct tnd_choice choice;
    problem.m = m;
    struct tnd_neighbours neighbours = neighbours_of(e, n_threads);
    tnd_choose(table, e->candidates, e->n_candidates, &problem, n_threads, &neighbours, NULL, NULL,
               &choice);
    return choice;
}

static int winner_at(const struct tandem_table *table, const struct tnd_explanation *e, int64_t m)
{
    return choose_at(table, e, m, e->n_threads).best.candidate;
}

/* Next M to examine: every M up to 64, then steps of 3 %; a profile that wins only within a step is
 * missed. */
static int64_t step_at(int64_t m)
{
    return m < 64 ? 1 : m / 32;
}

/* Bisects between `inside`, where `candidate` wins, and `outside`, where it does not: returns the M
 * farthest from inside at which it still wins. */
static int64_t bisect(const struct tandem_table *table, const struct tnd_explanation *e,
                      int candidate, int64_t inside, int64_t outside)
{
    while (llabs(outside - inside) > 1) {
        int64_t middle = inside + (outside - inside) / 2;
        if (winner_at(table, e, middle) == candidate) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    return inside;
}

/* Best prediction of one candidate at m. */
static struct tnd_prediction best_of(const struct tandem_table *table,
                                     const struct tnd_explanation *e, int candidate, int64_t m)
{
    struct tnd_problem problem = e->problem;
    struct tnd_choice choice;
    problem.m = m;
    struct tnd_neighbours neighbours = neighbours_of(e, e->n_threads);
    tnd_choose(table, &e->candidates[candidate], 1, &problem, e->n_threads, &neighbours, NULL, NULL,
               &choice);
    return choice.best;
}

/* Whether the error bars of both candidates overlap at m. */
static bool overlap_at(const struct tandem_table *table, const struct tnd_explanation *e, int a,
                       int b, int64_t m)
{
    struct tnd_prediction one = best_of(table, e, a, m);
    struct tnd_prediction two = best_of(table, e, b, m);
    return one.candidate >= 0 && two.candidate >= 0 &&
           fabs(one.total.us - two.total.us) <= one.total.error_us + two.total.error_us;
}

/* Fills in the crossing at m, from `from` to `to`, with the interval in which error bars overlap.
 */
static void fill_crossing(const struct tandem_table *table, const struct tnd_explanation *e,
                          int from, int to, int64_t m, struct tnd_crossing *out)
{
    out->found = true;
    out->m = out->low = out->high = m;
    memcpy(out->from, e->candidates[from].profile.name, sizeof(out->from));
    memcpy(out->to, e->candidates[to].profile.name, sizeof(out->to));
    for (int64_t at = m - 1; at >= 1 && overlap_at(table, e, from, to, at); at -= step_at(at)) {
        out->low = at;
    }
    int64_t at = m;
    while (at <= e->m_limit && overlap_at(table, e, from, to, at)) {
        out->high = at;
        at += step_at(at);
    }
    out->high_open = at > e->m_limit;
}

static void find_crossings(const struct tandem_table *table, struct tnd_explanation *e)
{
    int candidate = e->choice.best.candidate;
    int64_t m = e->problem.m;
    for (int64_t at = m; at > 1;) {
        int64_t next = at - step_at(at) > 1 ? at - step_at(at) : 1;
        int other = winner_at(table, e, next);
        if (other != candidate) {
            at = bisect(table, e, candidate, at, next);
            other = winner_at(table, e, at - 1);
            if (other >= 0) {
                fill_crossing(table, e, other, candidate, at, &e->below);
            }
            break;
        }
        at = next;
    }
    for (int64_t at = m; at < e->m_limit;) {
        int64_t next = at + step_at(at);
        int other = winner_at(table, e, next);
        if (other != candidate) {
            at = bisect(table, e, candidate, at, next) + 1;
            other = winner_at(table, e, at);
            if (other >= 0) {
                fill_crossing(table, e, candidate, other, at, &e->above);
            }
            break;
        }
        at = next;
    }
}

/* ---- flips ---- */

/* `backend`: the array of a table's stage, or NULL. */
static void add_flip(struct tnd_explanation *e, const char *backend, double factor, int threads,
                     int candidate)
{
    if (e->n_flips < TND_EXPLAIN_MAX_FLIPS) {
        struct tnd_flip *flip = &e->flips[e->n_flips++];
        if (backend != NULL) {
            memcpy(flip->backend, backend, sizeof(flip->backend));
        }
        flip->factor = factor;
        flip->threads = threads;
        memcpy(flip->profile, e->candidates[candidate].profile.name, sizeof(flip->profile));
    }
}

/* A candidate's time on a backend, weighted as it is compared. */
static double share_of(const struct tnd_explanation *e, const struct tnd_prediction *prediction,
                       const char *backend)
{
    double us = 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage =
            &e->candidates[prediction->candidate].profile.stage[s];
        if (strcmp(stage->backend, backend) == 0 && !tnd_task_is(stage->task, TND_TASK_FETCHES)) {
            us += tnd_cautious_us(&prediction->stage[s], prediction->total.noisy);
        }
    }
    return us * prediction->weight;
}

/* Adds the factor on a backend's times at which best and second, on their thread counts, take
 * equally long. */
static void add_backend_flip(struct tnd_explanation *e, const char *backend)
{
    const struct tnd_prediction *best = &e->choice.best;
    const struct tnd_prediction *second = &e->choice.second;
    for (int i = 0; i < e->n_flips; i++) {
        if (strcmp(e->flips[i].backend, backend) == 0) {
            return;
        }
    }
    double difference = share_of(e, best, backend) - share_of(e, second, backend);
    if (fabs(difference) > 1e-9 * best->cautious_us) {
        double factor = 1 + (second->cautious_us - best->cautious_us) / difference;
        if (factor > 0) {
            add_flip(e, backend, factor, 0, second->candidate);
        }
    }
}

/* Adds the nearest thread limits below and above at which another profile wins. */
static void add_thread_flips(const struct tandem_table *table, struct tnd_explanation *e)
{
    int candidate = e->choice.best.candidate;
    for (int threads = e->n_threads / 2; threads >= 1; threads /= 2) {
        int other = choose_at(table, e, e->problem.m, threads).best.candidate;
        if (other >= 0 && other != candidate) {
            add_flip(e, NULL, 0, threads, other);
            break;
        }
    }
    for (int threads = 2 * e->n_threads; threads <= 8 * e->n_threads; threads *= 2) {
        int other = choose_at(table, e, e->problem.m, threads).best.candidate;
        if (other >= 0 && other != candidate) {
            add_flip(e, NULL, 0, threads, other);
            break;
        }
    }
}

static void find_flips(const struct tandem_table *table, struct tnd_explanation *e)
{
    const struct tnd_prediction *const both[2] = {&e->choice.best, &e->choice.second};
    for (int i = 0; i < 2 && e->choice.second.candidate >= 0; i++) {
        for (int s = 0; s < TANDEM_STAGES; s++) {
            const char *backend = e->candidates[both[i]->candidate].profile.stage[s].backend;
            if (backend[0] != '\0') {
                add_backend_flip(e, backend);
            }
        }
    }
    add_thread_flips(table, e);
}

/* ---- thin data ---- */

/* Candidates without any prediction; `out_only` is the last of them. */
static int count_unmeasured(const struct tnd_explanation *e, int *out_only)
{
    int n = 0;
    for (int w = 0; w < e->n_candidates; w++) {
        bool found = false;
        for (int i = 0; i < e->n_predictions && !found; i++) {
            found = e->predictions[i].candidate == w;
        }
        if (!found) {
            n++;
            *out_only = w;
        }
    }
    return n;
}

static void find_thin(const struct tandem_table *table, struct tnd_explanation *e)
{
    const struct tnd_prediction *best = &e->choice.best;
    const struct tnd_prediction *second = &e->choice.second;
    int only;
    if (table == NULL) {
        e->thin = TND_THIN_NO_TABLE;
        return;
    }
    if (best->candidate < 0) {
        e->thin = e->choice.is_beyond ? TND_THIN_BEYOND : TND_THIN_NO_CELL;
        return;
    }
    bool pair = second->candidate >= 0;
    e->thin |= !best->total.measured_shape || (pair && !second->total.measured_shape)
                   ? TND_THIN_SHAPE
                   : 0u;
    e->thin |= best->total.noisy ? TND_THIN_NOISY : 0u;
    e->thin |=
        pair && second->total.us - second->total.error_us < best->total.us + best->total.error_us
            ? TND_THIN_LEAD
            : 0u;
    e->thin |= best->total.stale || (pair && second->total.stale) ? TND_THIN_STALE : 0u;
    e->thin |= count_unmeasured(e, &only) > 0 ? TND_THIN_CANDIDATES : 0u;
    e->thin |= best->total.outside > 0 ? TND_THIN_BEYOND : 0u;
}

static void add_numbers(struct tnd_explanation *e, const char *option, const int64_t *numbers,
                        int n)
{
    size_t used = strlen(e->command);
    for (int i = 0; i < n && used < sizeof(e->command); i++) {
        int added = snprintf(e->command + used, sizeof(e->command) - used, "%s%" PRId64,
                             i == 0 ? option : ",", numbers[i]);
        used += added > 0 ? (size_t)added : 0;
    }
}

static int add_sorted(int64_t *numbers, int n, int64_t number)
{
    int at = 0;
    while (at < n && numbers[at] < number) {
        at++;
    }
    if (at < n && numbers[at] == number) {
        return n;
    }
    memmove(&numbers[at + 1], &numbers[at], (size_t)(n - at) * sizeof(numbers[0]));
    numbers[at] = number;
    return n + 1;
}

/* Writes the command that measures what is missing: the whole shape if it is unknown, else this M
 * and the nearest crossing. */
static void write_command(const struct tandem_table *table, struct tnd_explanation *e)
{
    int64_t m[4];
    int64_t threads[MOST_THREADS_TOLD];
    int n_m = 0;
    int n_threads = 0;
    int only = 0;
    if (e->thin == 0) {
        return;
    }
    snprintf(e->command, sizeof(e->command),
             "mulmat-tune bench --model %" PRId64 "x%" PRId64 " --type %s", e->problem.n,
             e->problem.k, tandem_type_name(e->problem.type));
    if ((e->thin & (TND_THIN_NO_TABLE | TND_THIN_NO_CELL | TND_THIN_SHAPE | TND_THIN_CANDIDATES)) ==
        0) {
        const struct tnd_crossing *crossing = e->above.found ? &e->above : &e->below;
        n_m = add_sorted(m, n_m, e->problem.m);
        if (crossing->found && (e->thin & TND_THIN_LEAD) != 0) {
            n_m = add_sorted(m, n_m, crossing->low);
            n_m = add_sorted(m, n_m, crossing->m);
            n_m = add_sorted(m, n_m, crossing->high);
        }
        add_numbers(e, " -m ", m, n_m);
    }
    for (int t = 1;; t = tnd_next_thread_count(table, t, e->n_threads)) {
        threads[n_threads++] = t;
        if (t >= e->n_threads || n_threads == MOST_THREADS_TOLD) {
            break;
        }
    }
    add_numbers(e, " --threads ", threads, n_threads);
    if (e->thin == TND_THIN_CANDIDATES && count_unmeasured(e, &only) == 1) {
        size_t used = strlen(e->command);
        snprintf(e->command + used, sizeof(e->command) - used, " --profile %s",
                 e->candidates[only].profile.name);
    }
}

/* ---- explaining ---- */

/* The first M at which weights in flight beat every profile of the host on all threads; 0: none. */
static int64_t crossover_of(const struct tandem_table *table, const struct tnd_explanation *e,
                            const struct tnd_table_profile *streaming)
{
    int64_t m = 1;
    bool any = false;
    for (int i = 0; i < e->n_predictions && m > 0; i++) {
        const struct tnd_prediction *one = &e->predictions[i];
        if (one->moves.device[0] == '\0' && !e->candidates[one->candidate].is_excluded) {
            int64_t from = tnd_stream_crossover(
                table, streaming, &e->candidates[one->candidate].profile, e->problem.type,
                e->problem.n, e->problem.k, one->threads, e->m_limit);
            m = from > m || from == 0 ? from : m;
            any = true;
        }
    }
    return any ? m : 0;
}

static void find_stream(const struct tandem_table *table, struct tnd_explanation *e)
{
    for (int i = 0; i < e->n_candidates; i++) {
        const struct tnd_table_profile *profile = &e->candidates[i].profile;
        if (!tnd_profile_streams(profile)) {
            continue;
        }
        int64_t m = crossover_of(table, e, profile);
        if (e->stream_profile[0] == '\0' || (m > 0 && (e->stream_m == 0 || m < e->stream_m))) {
            memcpy(e->stream_profile, profile->name, sizeof(e->stream_profile));
            e->stream_m = m;
        }
    }
}

enum tandem_status tnd_explain(const struct tnd_explain_options *options,
                               struct tnd_explanation *out, struct tandem_error *error)
{
    struct tnd_explanation e;
    memset(&e, 0, sizeof(e));
    e.problem = options->problem;
    e.problem.threads = 0;
    e.problem.profile[0] = '\0';
    e.n_threads = options->n_threads > 1 ? options->n_threads : 1;
    e.is_warm = options->is_warm;
    if (options->registry != NULL) {
        e.n_candidates = tnd_candidates_here(options->registry, options->table, options->node,
                                             e.problem.type, options->error_bound, e.candidates);
    } else if (options->table != NULL) {
        e.n_candidates = tnd_candidates_of_table(options->table, e.problem.type,
                                                 options->error_bound, e.candidates);
    }
    TND_TRY(find_candidates(options, &e, error));
    int64_t largest = tnd_table_largest_m(options->table, e.problem.type);
    e.m_limit = 4 * (largest > e.problem.m ? largest : e.problem.m);
    if (e.choice.best.candidate >= 0) {
        find_scaling(&e);
        find_crossings(options->table, &e);
        find_flips(options->table, &e);
        find_stream(options->table, &e);
    }
    find_thin(options->table, &e);
    write_command(options->table, &e);
    *out = e;
    return TANDEM_OK;
}

void tnd_explanation_fini(struct tnd_explanation *explanation)
{
    tnd_free(explanation->predictions);
    explanation->predictions = NULL;
    explanation->n_predictions = 0;
}
