/* SPDX-License-Identifier: MIT
 * Choosing the next cell. A cell's value is (calls in the user's graph) x (time) x (uncertainty),
 * reduced for profiles that lose anyway and for large M, which programs compute less often; it is
 * divided by the cost of the trial. The cells of the grid come first, so that every profile is
 * compared. */
#include "measure/adapt.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "base/alloc.h"
#include "base/tnd_status.h"
#include "measure/adapt_line.h"
#include "tune/policy.h"

struct line {
    struct tnd_adapt_line is;
    struct tnd_adapt_points points;
    int64_t m_limit; /* not measured at or above this M */
    int first;       /* line of the group; the others follow it */
    int similar;     /* the line that predicts this one until it has points; -1: none */
    bool is_stale;   /* `best` must be found again */
    bool has_best;
    struct tnd_adapt_cell best;
};

struct tnd_adapt {
    struct tnd_adapt_options options;
    int64_t *m;
    TND_VECTOR_OF(struct line, lines);
};

/* Limits for one trial. */
struct allowance {
    double left_s, longest_s;
};

enum tandem_status tnd_adapt_new(const struct tnd_adapt_options *options,
                                 struct tnd_adapt **out_adapt, struct tandem_error *error)
{
    struct tnd_adapt *adapt = tnd_calloc(1, sizeof(*adapt));
    int64_t *m = tnd_calloc((size_t)options->n_m, sizeof(m[0]));
    if (adapt == NULL || m == NULL) {
        tnd_free(adapt);
        tnd_free(m);
        return tnd_error_set(error, TANDEM_E_MEMORY, "bench", options->n_m, 0,
                             "bench: out of memory");
    }
    memcpy(m, options->m, (size_t)options->n_m * sizeof(m[0]));
    adapt->options = *options;
    adapt->m = m;
    *out_adapt = adapt;
    return TANDEM_OK;
}

void tnd_adapt_free(struct tnd_adapt *adapt)
{
    if (adapt == NULL) {
        return;
    }
    for (int i = 0; i < adapt->n_lines; i++) {
        tnd_vector_fini(&adapt->lines[i].points.points_vector);
    }
    tnd_vector_fini(&adapt->lines_vector);
    tnd_free(adapt->m);
    tnd_free(adapt);
}

enum tandem_status tnd_adapt_add_line(struct tnd_adapt *adapt, const struct tnd_adapt_line *line)
{
    int i = adapt->n_lines;
    TND_TRY(tnd_vector_insert(&adapt->lines_vector, sizeof(adapt->lines[0]), INT_MAX, i));
    bool joins = i > 0 && adapt->lines[i - 1].is.group == line->group;
    adapt->lines[i] = (struct line){.is = *line,
                                    .m_limit = INT64_MAX,
                                    .first = joins ? adapt->lines[i - 1].first : i,
                                    .similar = -1,
                                    .is_stale = true};
    return TANDEM_OK;
}

/* ---- predicted times ---- */

/* How well another line predicts this one; 0: not at all. */
static int similarity(const struct tnd_adapt_line *a, const struct tnd_adapt_line *b)
{
    return 1 + (a->profile == b->profile ? 8 : 0) + (a->type == b->type ? 4 : 0) +
           (a->group == b->group ? 2 : 0) + (a->threads == b->threads ? 1 : 0);
}

/* The line at `index` got its first point: it may now predict lines without points. */
static void introduce(struct tnd_adapt *adapt, int index)
{
    TND_ASSERT(index >= 0 && adapt->lines[index].points.n_points > 0);
    const struct line *known = &adapt->lines[index];
    for (int i = 0; i < adapt->n_lines; i++) {
        struct line *line = &adapt->lines[i];
        if (line->points.n_points == 0 &&
            (line->similar < 0 || similarity(&line->is, &known->is) >
                                      similarity(&line->is, &adapt->lines[line->similar].is))) {
            line->similar = index;
            line->is_stale = true;
        }
    }
}

static double by_similar(const struct line *line, const struct line *similar, int64_t m,
                         bool safely)
{
    TND_ASSERT(line->points.n_points == 0 && similar->points.n_points > 0);
    double us = tnd_adapt_line_us(&similar->points, m, similar->is.fixed_tokens, safely);
    double work = line->is.work / similar->is.work;
    double threads = (double)similar->is.threads / line->is.threads;
    us *= safely && work < 1 ? sqrt(work) : work; /* small products cost more than their share of
                                                   * the work */
    return safely ? TND_EXPECT_SIMILAR * us * fmax(threads, 1.0) : us * threads;
}

static double expect_us(const struct tnd_adapt *adapt, const struct line *line, int64_t m,
                        bool safely)
{
    TND_ASSERT(line->is.threads >= 1 && m >= 1);
    const struct tnd_adapt_points *points = &line->points;
    if (points->n_points == 0) {
        return line->similar >= 0
                   ? by_similar(line, &adapt->lines[line->similar], m, safely)
                   : line->is.work * ((double)m + TND_WEIGHT_READ_TOKENS) / TND_SLOWEST_MADDS * 1e6;
    }
    double us = tnd_adapt_line_us(points, m, line->is.fixed_tokens, safely);
    return safely ? TND_EXPECT_SAFELY * us : us;
}

double tnd_adapt_expect_us(const struct tnd_adapt *adapt, int line, int64_t m, bool safely)
{
    TND_ASSERT(line >= 0 && line < adapt->n_lines);
    return expect_us(adapt, &adapt->lines[line], m, safely);
}

/* ---- the value of a cell ---- */

/* The fastest known line of the group at m; NULL: none was measured. */
static const struct line *fastest_at(const struct tnd_adapt *adapt, const struct line *of,
                                     int64_t m, double *out_us)
{
    TND_ASSERT(of->first >= 0 && of->first < adapt->n_lines);
    const struct line *best = NULL;
    for (int i = of->first; i < adapt->n_lines && adapt->lines[i].first == of->first; i++) {
        const struct line *line = &adapt->lines[i];
        if (line->points.n_points == 0) {
            continue;
        }
        double us = expect_us(adapt, line, m, false);
        if (best == NULL || us < *out_us) {
            best = line;
            *out_us = us;
        }
    }
    return best;
}

/* Relevance of a line at m if its time were `us`. */
static double relevance_if(const struct tnd_adapt *adapt, const struct line *line, int64_t m,
                           double us)
{
    double best_us = 0;
    if (fastest_at(adapt, line, m, &best_us) == NULL || us <= 0) {
        return 1.0;
    }
    return fmax(fmin(best_us / us * (best_us / us), 1.0), TND_RELEVANCE_LEAST);
}

static double relevance(const struct tnd_adapt *adapt, const struct line *line, int64_t m)
{
    return relevance_if(adapt, line, m, expect_us(adapt, line, m, false));
}

static bool is_crossing(const struct tnd_adapt *adapt, const struct line *line, int64_t low,
                        int64_t high)
{
    double us;
    return (fastest_at(adapt, line, low, &us) == line) !=
           (fastest_at(adapt, line, high, &us) == line);
}

/* Cells without which a profile cannot be judged: a few M on the largest thread count, fewer on one
 * thread; of a grid that the user asked for, all of it. */
static bool must_be_measured(const struct tnd_adapt *adapt, const struct line *line, int i)
{
    TND_ASSERT(i >= 0 && i < adapt->options.n_m);
    int n = adapt->options.n_m;
    if (adapt->options.is_fixed) {
        return true;
    }
    if (line->is.threads == adapt->options.most_threads) {
        return i < n - 1 || n < 3;
    }
    return line->is.threads == 1 && (i == 0 || i == n / 2 || i == n - 2);
}

static bool is_better(const struct tnd_adapt_cell *a, const struct tnd_adapt_cell *b)
{
    return a->rank > b->rank || (a->rank == b->rank && a->score > b->score);
}

/* Makes the cell the best of the line if it is affordable and more valuable. */
static void consider(const struct tnd_adapt *adapt, struct line *line,
                     const struct allowance *allowance, struct tnd_adapt_cell cell)
{
    TND_ASSERT(cell.m >= 1 && cell.uncertainty >= 0);
    if (cell.m >= line->m_limit) {
        return;
    }
    double matters = relevance(adapt, line, cell.m);
    if (cell.rank == 0 && cell.uncertainty * matters < adapt->options.tolerance) {
        return;
    }
    cell.line = (int)(line - adapt->lines);
    cell.expected_us = expect_us(adapt, line, cell.m, true);
    cell.cost_s = adapt->options.cost_s(adapt->options.user, cell.line, cell.m, cell.expected_us);
    if (cell.cost_s > allowance->left_s || cell.cost_s > allowance->longest_s) {
        return;
    }
    double us = expect_us(adapt, line, cell.m, false);
    cell.score = line->is.calls * matters * cell.uncertainty * us /
                 pow((double)cell.m, TND_RARER_WITH_M) / cell.cost_s;
    if (!line->has_best || is_better(&cell, &line->best)) {
        line->best = cell;
        line->has_best = true;
    }
}

static bool is_known_elsewhere(const struct tnd_adapt *adapt, const struct line *line)
{
    for (int i = line->first; i < adapt->n_lines && adapt->lines[i].first == line->first; i++) {
        const struct line *other = &adapt->lines[i];
        if (other->points.n_points > 0 && other->is.profile == line->is.profile) {
            return true;
        }
    }
    return false;
}

static void consider_grid(const struct tnd_adapt *adapt, struct line *line,
                          const struct allowance *allowance)
{
    const struct tnd_adapt_points *points = &line->points;
    bool is_new_profile = points->n_points == 0 && !is_known_elsewhere(adapt, line);
    for (int i = 0; i < adapt->options.n_m; i++) {
        int64_t m = adapt->m[i];
        int at = tnd_adapt_find(points, m);
        if (at >= 0 && points->points[at].m == m) {
            continue;
        }
        double uncertainty = tnd_adapt_gap_uncertainty(points, m);
        if (points->n_points == 0 && !is_new_profile) {
            uncertainty = TND_UNCERTAIN_THREADS;
        }
        struct tnd_adapt_cell cell = {.m = m, .uncertainty = uncertainty, .is_new = true};
        cell.rank = !must_be_measured(adapt, line, i) ? 0 : line->is.is_of_rule ? 3 : 2;
        consider(adapt, line, allowance, cell);
    }
}

static void consider_gaps(const struct tnd_adapt *adapt, struct line *line,
                          const struct allowance *allowance)
{
    const struct tnd_adapt_points *points = &line->points;
    for (int i = 0; i + 1 < points->n_points && !adapt->options.is_fixed; i++) {
        int64_t low = points->points[i].m;
        int64_t high = points->points[i + 1].m;
        struct tnd_adapt_cell cell = {.m = tnd_adapt_middle(low, high), .is_new = true};
        if (cell.m > 0) {
            cell.uncertainty = tnd_adapt_gap_uncertainty(points, cell.m) *
                               (is_crossing(adapt, line, low, high) ? TND_CROSSOVER_WEIGHT : 1.0);
            consider(adapt, line, allowance, cell);
        }
    }
}

/* Time of the profile at exactly this M on the next smaller (-1) or larger (1) thread count that
 * was measured there; 0: there is none. */
static double beside(const struct tnd_adapt *adapt, const struct line *line, int64_t m, int side)
{
    double us = 0;
    int nearest = 0;
    for (int i = line->first; i < adapt->n_lines && adapt->lines[i].first == line->first; i++) {
        const struct line *other = &adapt->lines[i];
        const int away = side * (other->is.threads - line->is.threads);
        const int at = tnd_adapt_find(&other->points, m);
        if (other->is.profile == line->is.profile && away > 0 && (nearest == 0 || away < nearest) &&
            at >= 0 && other->points.points[at].m == m) {
            nearest = away;
            us = other->points.points[at].us;
        }
    }
    return us;
}

/* Fraction of a point's time that may be a disturbance, judged by other thread counts: one count is
 * not much slower than both fewer and more threads. Negative: none. */
static double thread_outlier(const struct tnd_adapt *adapt, const struct line *line,
                             const struct tnd_adapt_point *point)
{
    const double fewer_us = beside(adapt, line, point->m, -1);
    const double more_us = beside(adapt, line, point->m, 1);
    if (fewer_us <= 0 || more_us <= 0 || point->us <= 0) {
        return 0;
    }
    return 1 - fmax(fewer_us, more_us) * (1 + TND_CREDIBLE_STEP) / point->us;
}

static void consider_repeats(const struct tnd_adapt *adapt, struct line *line,
                             const struct allowance *allowance)
{
    for (int i = 0; i < line->points.n_points; i++) {
        const struct tnd_adapt_point *point = &line->points.points[i];
        if (point->trials < adapt->options.max_trials) {
            double excess =
                fmax(tnd_adapt_outlier(&line->points, i), thread_outlier(adapt, line, point));
            double outlier = excess / point->trials;
            struct tnd_adapt_cell cell = {
                .m = point->m, .uncertainty = fmax(tnd_adapt_point_uncertainty(point), outlier)};
            bool is_wanted = adapt->options.is_fixed && point->trials < 2;
            bool is_outlier = (outlier > TND_NOISY_FRAC ||
                               (point->is_noisy && point->trials < TND_TRIALS_NOISY)) &&
                              relevance_if(adapt, line, point->m, (1 - excess) * point->us) >
                                  TND_REMEASURE_RELEVANCE;
            cell.rank = is_wanted || is_outlier ? 1 : 0;
            consider(adapt, line, allowance, cell);
        }
    }
}

static void find_best(const struct tnd_adapt *adapt, struct line *line,
                      const struct allowance *allowance)
{
    line->has_best = false;
    consider_grid(adapt, line, allowance);
    consider_gaps(adapt, line, allowance);
    consider_repeats(adapt, line, allowance);
    line->is_stale = false;
}

bool tnd_adapt_next(struct tnd_adapt *adapt, double left_s, double longest_s,
                    struct tnd_adapt_cell *out)
{
    const struct allowance allowance = {left_s, longest_s};
    const struct tnd_adapt_cell *best = NULL;
    for (int i = 0; i < adapt->n_lines; i++) {
        struct line *line = &adapt->lines[i];
        /* A best cell found with more time left remains the best if it still fits. */
        if (line->is_stale || (line->has_best && line->best.cost_s > left_s)) {
            find_best(adapt, line, &allowance);
        }
        if (line->has_best && (best == NULL || is_better(&line->best, best))) {
            best = &line->best;
        }
    }
    if (best != NULL) {
        *out = *best;
    }
    return best != NULL;
}

/* ---- reports of the caller ---- */

void tnd_adapt_touch(struct tnd_adapt *adapt, int line)
{
    TND_ASSERT(line >= 0 && line < adapt->n_lines);
    int first = adapt->lines[line].first;
    for (int i = first; i < adapt->n_lines && adapt->lines[i].first == first; i++) {
        adapt->lines[i].is_stale = true;
    }
}

enum tandem_status tnd_adapt_done(struct tnd_adapt *adapt, const struct tnd_adapt_cell *cell,
                                  const struct tnd_stage_time *total)
{
    TND_ASSERT(cell->line >= 0 && cell->line < adapt->n_lines && cell->m >= 1);
    struct line *line = &adapt->lines[cell->line];
    bool is_first = line->points.n_points == 0;
    TND_TRY(tnd_adapt_put(&line->points, cell->m, total));
    if (is_first) {
        introduce(adapt, cell->line);
    }
    tnd_adapt_touch(adapt, cell->line);
    return TANDEM_OK;
}

void tnd_adapt_stop_at(struct tnd_adapt *adapt, int line, int64_t m)
{
    TND_ASSERT(line >= 0 && line < adapt->n_lines);
    struct line *stopped = &adapt->lines[line];
    stopped->m_limit = m < stopped->m_limit ? m : stopped->m_limit;
    stopped->is_stale = true;
}

/* ---- progress ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double trial_s(const struct tnd_adapt *adapt, const struct line *line, int64_t m)
{
    return adapt->options.cost_s(adapt->options.user, (int)(line - adapt->lines), m,
                                 expect_us(adapt, line, m, false));
}

static void add_line_state(const struct tnd_adapt *adapt, const struct line *line,
                           struct tnd_adapt_state *state)
{
    bool can_measure = line->m_limit > adapt->m[0];
    state->unknown_lines += line->points.n_points == 0 && can_measure ? 1 : 0;
    for (int i = 0; i < adapt->options.n_m && adapt->m[i] < line->m_limit; i++) {
        int at = tnd_adapt_find(&line->points, adapt->m[i]);
        bool known = at >= 0 && line->points.points[at].m == adapt->m[i];
        if (must_be_measured(adapt, line, i)) {
            int trials = known ? line->points.points[at].trials : 0;
            state->unmeasured += known ? 0 : 1;
            state->pending_s += trials < 2 ? (2 - trials) * trial_s(adapt, line, adapt->m[i]) : 0.0;
        }
    }
    for (int i = 0; i < line->points.n_points; i++) {
        state->cells++;
        state->trials += line->points.points[i].trials;
    }
}

enum tandem_status tnd_adapt_state(const struct tnd_adapt *adapt, struct tnd_adapt_state *out)
{
    struct tnd_adapt_state state = {0};
    for (int i = 0; i < adapt->n_lines; i++) {
        add_line_state(adapt, &adapt->lines[i], &state);
    }
    double *uncertainties = tnd_calloc((size_t)state.cells * 2 + 1, sizeof(uncertainties[0]));
    int n = 0;
    if (uncertainties == NULL) {
        return TANDEM_E_MEMORY;
    }
    for (int i = 0; i < adapt->n_lines; i++) {
        const struct tnd_adapt_points *points = &adapt->lines[i].points;
        for (int p = 0; p < points->n_points; p++) {
            uncertainties[n++] = tnd_adapt_point_uncertainty(&points->points[p]);
            if (p + 1 < points->n_points && points->points[p + 1].m - points->points[p].m > 1) {
                uncertainties[n++] = tnd_adapt_gap_uncertainty(points, points->points[p].m + 1);
            }
        }
    }
    if (n > 0) {
        qsort(uncertainties, (size_t)n, sizeof(uncertainties[0]), compare_doubles);
        state.median_uncertainty = uncertainties[n / 2];
    }
    tnd_free(uncertainties);
    *out = state;
    return TANDEM_OK;
}
