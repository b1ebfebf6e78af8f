/* SPDX-License-Identifier: MIT
 * Prices weights. A product is predicted as in the planner, by the best candidate of a side.
 * Experts that a pass uses are priced together, as in the planner (experts.h). */
#include "tune/fit_price.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "tune/candidates.h"
#include "tune/experts.h"
#include "tune/fit_experts.h"
#include "tune/policy.h"
#include "tune/stream_cost.h"

enum { KNOWN = 256 }; /* products whose estimates are cached */

struct known {
    int64_t n, k, m;
    int32_t type;
    int32_t side;                 /* negative: with weights in flight to the device of side -side */
    struct tnd_estimate estimate; /* us INFINITY: none */
};

/* A weight's work in a phase. */
struct work {
    int64_t n, k, m;
    double bytes; /* bytes that it reads */
};

struct pricing {
    const struct tnd_fit_weight *weights;
    int n_weights;
    const struct tnd_fit_options *options;
    struct tnd_fit_model *model;
    bool is_cpu_alone; /* no weights in flight from host memory */
    int n_known;
    struct known known[KNOWN];
    struct tnd_candidate candidates[TND_TABLE_MAX_PROFILES]; /* for the type */
    struct tnd_candidate filtered[TND_TABLE_MAX_PROFILES];
    int n_candidates;
    int32_t type; /* -1: none yet */
    /* largest weight of each group of attention */
    const struct tnd_fit_weight *best[TND_FIT_MAX_ITEMS];
};

/* ---- products ---- */

static void find_candidates(struct pricing *p, enum tandem_type type)
{
    if (p->type == (int32_t)type) {
        return;
    }
    const struct tnd_fit_options *o = p->options;
    p->type = (int32_t)type;
    p->n_candidates =
        o->registry != NULL
            ? tnd_candidates_here(o->registry, o->table, NULL, type, o->error_bound, p->candidates)
            : tnd_candidates_of_table(o->table, type, o->error_bound, p->candidates);
}

/* Filters candidates with weights in flight, or the others. */
static int filter(const struct pricing *p, bool streams, struct tnd_candidate *out)
{
    int n = 0;
    for (int i = 0; i < p->n_candidates; i++) {
        if (tnd_profile_streams(&p->candidates[i].profile) == streams) {
            out[n++] = p->candidates[i];
        }
    }
    return n;
}

static struct tnd_estimate predict(struct pricing *p, const struct known *key)
{
    const struct tnd_fit_options *o = p->options;
    const int side = key->side < 0 ? -key->side : key->side;
    struct tnd_choice choice;
    struct tnd_problem problem = {.op = "mul_mat",
                                  .type = (enum tandem_type)key->type,
                                  .n = key->n,
                                  .k = key->k,
                                  .m = key->m};
    const struct tnd_neighbours neighbours = {.is_on_side = true,
                                              .side = side > 0 ? o->devices[side] : "",
                                              .neighbour_threads = o->n_threads};
    find_candidates(p, problem.type);
    int n = filter(p, key->side < 0, p->filtered);
    tnd_choose(o->table, p->filtered, n, &problem, o->n_threads, &neighbours, NULL, NULL, &choice);
    return choice.best.candidate >= 0 ? choice.best.total : (struct tnd_estimate){.us = INFINITY};
}

static const struct tnd_estimate *product(struct pricing *p, enum tandem_type type, int side,
                                          int64_t n, int64_t k, int64_t m)
{
    struct known key = {n, k, m, (int32_t)type, side, {.us = INFINITY}};
    int at = 0;
    while (at < p->n_known && !(p->known[at].n == n && p->known[at].k == k && p->known[at].m == m &&
                                p->known[at].type == key.type && p->known[at].side == side)) {
        at++;
    }
    if (at == p->n_known) {
        key.estimate = predict(p, &key);
        at = at < KNOWN ? at : KNOWN - 1; /* when full, the last entry is replaced */
        p->known[at] = key;
        p->n_known = at + 1;
    }
    return &p->known[at].estimate;
}

/* ---- weights ---- */

static struct work work_of(const struct pricing *p, const struct tnd_fit_weight *weight,
                           enum tnd_fit_part part, enum tnd_fit_phase phase)
{
    const double texts = (double)p->model->n_texts;
    double m = phase == TND_FIT_PROMPT ? (double)p->model->prompt_tokens : texts;
    double touched = 1;
    if (weight->n_experts > 1) {
        double all = (double)weight->n_experts;
        double used = p->options->n_used > 0 ? fmin((double)p->options->n_used, all) : all;
        const struct tnd_fit_group *group =
            &p->model->groups[p->model->group_of[weight - p->weights]];
        touched = group->n_ranks > 0
                      ? tnd_fit_active_experts(p->options, group->layer, (int64_t)m)
                      : tnd_experts_active(weight->n_experts, (int64_t)used, (int64_t)m);
        touched = fmax(1, round(fmin(touched, all)));
        m = m * used / touched;
    }
    if (part == TND_FIT_OUTPUT) {
        m = phase == TND_FIT_PROMPT ? 1 : texts; /* logits of the last token alone */
    }
    double n = (double)weight->n * touched;
    struct work work = {n < 1e15 ? (int64_t)n : INT64_C(1000000000000000), weight->k,
                        m > 1 ? (int64_t)round(m) : 1, 0};
    work.bytes = (double)weight->bytes * touched / (double)weight->n_experts;
    return work;
}

/* Prices a product with weights in flight from host memory to a device, transfers of X and Y
 * included; replaces `io_best` if that is faster. */
static void stream(struct pricing *p, const struct tnd_fit_weight *weight, const struct work *work,
                   struct tnd_estimate *io_best)
{
    const struct tnd_fit_options *o = p->options;
    for (int side = 1; side <= o->n_devices; side++) {
        struct tnd_estimate one = *product(p, weight->type, -side, work->n, work->k, work->m);
        struct tnd_estimate x =
            tnd_estimate_transfer(o->table, o->devices[side], TND_UPLOAD, 4 * work->k * work->m);
        struct tnd_estimate y =
            tnd_estimate_transfer(o->table, o->devices[side], TND_DOWNLOAD, 4 * work->n * work->m);
        one.us += x.us + y.us;
        one.error_us += x.error_us + y.error_us;
        *io_best = one.us < io_best->us ? one : *io_best;
    }
}

/* A side's time for some work; experts one by one if their product is too large for the table. */
static struct tnd_estimate time_of(struct pricing *p, const struct tnd_fit_weight *weight, int side,
                                   const struct work *work)
{
    bool may_stream = side == 0 && !p->is_cpu_alone && weight->n_experts == 1;
    struct tnd_estimate one = *product(p, weight->type, side, work->n, work->k, work->m);
    if (isinf(one.us) && work->n > weight->n) {
        double times = (double)work->n / (double)weight->n;
        one = *product(p, weight->type, side, weight->n, work->k, work->m);
        one.us *= times;
        one.error_us *= times;
    }
    if (may_stream && isfinite(one.us)) {
        stream(p, weight, work, &one);
    }
    return one;
}

/* Sums of one side and phase. */
struct sums {
    double timed_bytes, guessed_bytes;
    double rate_bytes, rate_us; /* bytes and time of the largest product with a time */
    const struct tnd_fit_weight *guessed;
};

static bool is_product(const struct pricing *p, int i)
{
    int32_t group = p->model->group_of[i];
    return p->weights[i].n > 1 && p->model->groups[group].part != TND_FIT_EMBEDDING;
}

static void add(struct tnd_fit_group *group, enum tnd_fit_phase phase, int side, double us,
                double error_us)
{
    group->us[phase][side] += us;
    group->error_us[phase][side] += error_us;
}

static void price_timed(struct pricing *p, enum tnd_fit_phase phase, int side, struct sums *sums)
{
    for (int i = 0; i < p->n_weights; i++) {
        const struct tnd_fit_weight *weight = &p->weights[i];
        struct tnd_fit_group *group = &p->model->groups[p->model->group_of[i]];
        if (!is_product(p, i)) {
            continue;
        }
        struct work work = work_of(p, weight, group->part, phase);
        struct tnd_estimate one = time_of(p, weight, side, &work);
        if (isinf(one.us)) {
            sums->guessed_bytes += work.bytes;
            sums->guessed = sums->guessed == NULL ? weight : sums->guessed;
            continue;
        }
        add(group, phase, side, one.us, one.error_us);
        sums->timed_bytes += work.bytes;
        if (work.bytes > sums->rate_bytes && group->part != TND_FIT_OUTPUT) {
            sums->rate_bytes = work.bytes;
            sums->rate_us = one.us;
        }
    }
}

/* Prices weights without a time at the time per byte of the largest product that has one. */
static void price_guessed(struct pricing *p, enum tnd_fit_phase phase, int side,
                          const struct sums *sums)
{
    for (int i = 0; i < p->n_weights && sums->guessed != NULL; i++) {
        const struct tnd_fit_weight *weight = &p->weights[i];
        struct tnd_fit_group *group = &p->model->groups[p->model->group_of[i]];
        if (!is_product(p, i)) {
            continue;
        }
        struct work work = work_of(p, weight, group->part, phase);
        if (isinf(time_of(p, weight, side, &work).us)) {
            double us = sums->rate_bytes > 0 ? work.bytes * sums->rate_us / sums->rate_bytes : 0;
            add(group, phase, side, us, TND_FIT_GUESS_ERROR * us);
        }
    }
}

/* ---- keys and values ---- */

/* Prices attention over keys and values at the rate of the layer's largest attention product. A
 * generated token reads them for half of the context. A prompt's M tokens see M / 2 of each other
 * on average: 2 M M times the queries' width in operations, of 2 M N K. */
static void price_caches(struct pricing *p, enum tnd_fit_phase phase, int side)
{
    const struct tnd_fit_weight **best = p->best;
    for (int i = 0; i < p->n_weights; i++) {
        int32_t g = p->model->group_of[i];
        if (p->model->groups[g].part == TND_FIT_ATTENTION && p->weights[i].n > 1 &&
            (best[g] == NULL || p->weights[i].bytes > best[g]->bytes)) {
            best[g] = &p->weights[i];
        }
    }
    for (int g = 0; g < p->model->n_groups; g++) {
        struct tnd_fit_group *group = &p->model->groups[g];
        if (best[g] == NULL || group->cache_bytes == 0 || best[g]->bytes == 0) {
            continue;
        }
        struct work work = work_of(p, best[g], group->part, phase);
        struct tnd_estimate one = time_of(p, best[g], side, &work);
        double share =
            phase == TND_FIT_GENERATION
                ? 0.5 * (double)p->model->n_texts * (double)group->cache_bytes / work.bytes
                : (double)p->model->prompt_tokens / (double)work.k;
        if (isfinite(one.us)) {
            add(group, phase, side, share * one.us, share * one.error_us);
        }
    }
}

/* ---- all groups ---- */

/* Excludes all groups from a side that has no times for too many of the weights. */
static void leave_out(struct pricing *p, enum tnd_fit_phase phase, int side)
{
    for (int g = 0; g < p->model->n_groups; g++) {
        p->model->groups[g].us[phase][side] = INFINITY;
    }
}

static enum tandem_status price_side(struct pricing *p, enum tnd_fit_phase phase, int side,
                                     struct tandem_error *error)
{
    struct sums sums = {0};
    price_timed(p, phase, side, &sums);
    double all = sums.timed_bytes + sums.guessed_bytes;
    bool is_unknown = sums.guessed_bytes > TND_FIT_MOST_GUESSED * all;
    if (is_unknown && side == 0) {
        const struct tnd_fit_weight *weight = sums.guessed;
        return tnd_error_set(
            error, TANDEM_E_NOT_FOUND, "fit", (int64_t)weight->type, 0,
            "fit: the table has no times of the CPU for %.0f %% of the weights that %s touches, as "
            "'%.64s' (%s, %" PRId64 "x%" PRId64 "); mulmat-tune bench measures them",
            100 * sums.guessed_bytes / all,
            phase == TND_FIT_PROMPT ? "a prompt" : "a generated token",
            weight->name != NULL ? weight->name : "", tandem_type_name(weight->type), weight->n,
            weight->k);
    }
    if (is_unknown) {
        leave_out(p, phase, side);
        return TANDEM_OK;
    }
    p->model->largest_us[phase][side] = sums.rate_us;
    price_guessed(p, phase, side, &sums);
    price_caches(p, phase, side);
    for (int g = 0; g < p->model->n_groups && side > 0; g++) {
        if (p->model->groups[g].part == TND_FIT_EMBEDDING) {
            p->model->groups[g].us[phase][side] = INFINITY;
        }
    }
    return TANDEM_OK;
}

/* Prices side 0 for machines without a device; it is priced again for the others. */
static enum tandem_status price_cpu_alone(struct pricing *p, struct tandem_error *error)
{
    p->is_cpu_alone = true;
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        TND_TRY(price_side(p, (enum tnd_fit_phase)phase, 0, error));
        for (int g = 0; g < p->model->n_groups; g++) {
            struct tnd_fit_group *group = &p->model->groups[g];
            group->cpu_us[phase] = group->us[phase][0];
            group->cpu_error_us[phase] = group->error_us[phase][0];
            group->us[phase][0] = 0;
            group->error_us[phase][0] = 0;
        }
    }
    p->is_cpu_alone = false;
    return TANDEM_OK;
}

enum tandem_status tnd_fit_price(const struct tnd_fit_weight *weights, int n_weights,
                                 const struct tnd_fit_options *options, struct tnd_fit_model *model,
                                 struct tandem_error *error)
{
    struct pricing *p = tnd_calloc(1, sizeof(*p));
    if (p == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "fit", n_weights, 0,
                             "fit: out of memory for the prices of %d weights", n_weights);
    }
    p->weights = weights;
    p->n_weights = n_weights;
    p->options = options;
    p->model = model;
    p->type = -1;
    enum tandem_status status = price_cpu_alone(p, error);
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        for (int side = 0; side < model->n_sides && status == TANDEM_OK; side++) {
            status = price_side(p, (enum tnd_fit_phase)phase, side, error);
        }
    }
    tnd_free(p);
    return status;
}
