/* SPDX-License-Identifier: MIT
 * Looks and verdicts. Start at tnd_arms_choose and tnd_arms_note. */
#include "runtime/observer_arms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "tune/policy.h"

enum { NONE = TND_PLAN_KINDS, MOST_TRIES = 30 };

void tnd_arms_init(struct tnd_arms *arms)
{
    memset(arms, 0, sizeof(*arms));
    arms->scale = 1;
    pthread_mutex_init(&arms->lock, NULL);
}

void tnd_arms_fini(struct tnd_arms *arms)
{
    tnd_free(arms->classes);
    pthread_mutex_destroy(&arms->lock);
}

void tnd_arms_begin_round(struct tnd_arms *arms)
{
    pthread_mutex_lock(&arms->lock);
    arms->round++;
    pthread_mutex_unlock(&arms->lock);
}

/* ---- classes; under the lock ---- */

static struct tnd_arm_class *find(const struct tnd_arms *arms, uint64_t key)
{
    for (int i = 0; i < arms->n_classes; i++) {
        if (arms->classes[i].key == key) {
            return &arms->classes[i];
        }
    }
    return NULL;
}

/* Adds a class; if full, replaces the one unused for longest. */
static struct tnd_arm_class *add(struct tnd_arms *arms, uint64_t key)
{
    if (arms->classes == NULL) {
        arms->classes = tnd_calloc(TND_ARM_CLASSES, sizeof(arms->classes[0]));
        if (arms->classes == NULL) {
            return NULL;
        }
    }
    int at = arms->n_classes < TND_ARM_CLASSES ? arms->n_classes++ : 0;
    for (int i = at + 1; i < arms->n_classes; i++) {
        at = arms->classes[i].tick < arms->classes[at].tick ? i : at;
    }
    struct tnd_arm_class *one = &arms->classes[at];
    memset(one, 0, sizeof(*one));
    one->key = key;
    one->looked = NONE;
    return one;
}

/* ---- times ---- */

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

static int kept(const struct tnd_arm *arm)
{
    return arm->n_counted < TND_ARM_RING ? (int)arm->n_counted : TND_ARM_RING;
}

/* Value at a rank, from 0 on. */
static double ranked(const float *values, int n, int rank)
{
    float sorted[TND_ARM_RING];
    TND_ASSERT(rank >= 0 && rank < n && n <= TND_ARM_RING);
    memcpy(sorted, values, (size_t)n * sizeof(values[0]));
    qsort(sorted, (size_t)n, sizeof(sorted[0]), compare_floats);
    return (double)sorted[rank];
}

/* Median; of an even number of values the lower of the middle two, since disturbances only slow
 * down. */
static double median(const float *values, int n)
{
    return ranked(values, n, (n - 1) / 2);
}

/* Relative standard error of the median. Few samples may agree by chance. */
static double error_of(const struct tnd_arm *arm)
{
    float off[TND_ARM_RING];
    int n = kept(arm);
    double middle = median(arm->times, n);
    for (int i = 0; i < n; i++) {
        off[i] = fabsf(arm->times[i] - (float)middle);
    }
    if (ranked(arm->times, n, n / 2) > TND_OBSERVER_STALL * middle) {
        return INFINITY; /* half of the times are of another machine state */
    }
    double sigma = fmax(TND_MAD_TO_SIGMA * median(off, n) / middle, TND_OBSERVER_NOISE);
    double error = 1.25 * sigma / sqrt(n); /* the error of a median is 1.25 times that of a mean */
    return n < TND_OBSERVER_USES / 2 ? fmax(error, TND_OBSERVER_ONE / n) : error;
}

/* Current time of a plan: the median, unless its last uses agree on a change: three of them, or two
 * for a large change. */
static double now_of(const struct tnd_arm *arm)
{
    int n = kept(arm);
    if (n == 0) {
        return arm->expected_ns;
    }
    double middle = median(arm->times, n);
    float least = INFINITY;
    for (int i = 0; i < 3 && i < n; i++) {
        least = fminf(least, arm->times[(arm->n_counted - 1 - (uint32_t)i) % TND_ARM_RING]);
        double bound = i == 1 ? TND_OBSERVER_STALL : 1 + TND_DRIFT_SHARE;
        if (i > 0 && (double)least > bound * middle) {
            return (double)least;
        }
    }
    return middle;
}

/* Expected current time of a plan that does not serve: that of its last look, or the predicted one,
 * scaled by how the serving plan has changed since: by load, a device that has become slow, or a
 * device that differs from the table. */
static double expected_of(const struct tnd_arm *arm, const struct tnd_arm *serving)
{
    const double serving_ns = now_of(serving);
    const double then_ns = arm->used_ns > 0 ? arm->beside_ns : serving->predicted_ns;
    const double ratio = then_ns > 0 ? serving_ns / then_ns : 1;
    const bool is_alike = arm->on_device && serving->on_device;
    double ns = arm->expected_ns > 0 ? arm->expected_ns : serving_ns;
    return ns * (is_alike ? ratio : arm->used_ns > 0 ? fmin(ratio, 1) : 1);
}

/* ---- looks ---- */

/* Time of the plan for the CPU alone, which computes after a plan is given up; INFINITY: there is
 * none. */
static double fallback_ns(const struct tnd_arm_class *one)
{
    const struct tnd_arm *serving = &one->arms[one->serving];
    double ns = INFINITY;
    for (int i = 0; i < TND_PLAN_KINDS; i++) {
        const struct tnd_arm *arm = &one->arms[i];
        if (arm->is_open && !arm->on_device) {
            ns = fmin(ns, arm == serving ? now_of(arm) : expected_of(arm, serving));
        }
    }
    return ns;
}

/* Time limit of a use in a look, after which the plan has lost. At least the time of the CPU, which
 * computes the graph afterwards, so that giving up at most doubles the cost. A first use, which may
 * build kernels and move weights, gets the time predicted for that in addition; the limit doubles
 * each time it was not enough. */
static double look_limit_ns(const struct tnd_arm_class *one, const struct tnd_arm *arm,
                            int64_t tokens)
{
    const double ns = (double)tokens *
                      fmax(TND_OBSERVER_STALL * now_of(&one->arms[one->serving]), fallback_ns(one));
    return arm->used_ns > 0 ? ns : ldexp(ns + arm->entry_ns, arm->n_tries);
}

/* Forgets times older than a day. */
static void forget_old(struct tnd_arm_class *one, uint64_t now_ns)
{
    for (int kind = 0; kind < TND_PLAN_KINDS; kind++) {
        struct tnd_arm *arm = &one->arms[kind];
        if (arm->used_ns > 0 && now_ns > arm->used_ns + TND_OBSERVER_OLD_NS) {
            arm->expected_ns = arm->predicted_ns;
            arm->beside_ns = 0;
            arm->used_ns = 0;
            arm->n_uses = arm->n_counted = 0;
        }
    }
}

/* Whether the serving plan takes longer than at the last look. */
static bool is_slow(const struct tnd_arm_class *one)
{
    const struct tnd_arm *serving = &one->arms[one->serving];
    return kept(serving) > 1 && serving->beside_ns > 0 &&
           now_of(serving) > (1 + TND_DRIFT_SHARE) * serving->beside_ns;
}

/* Whether the kind served before and became slow: it gets a few looks without credit, since that
 * may pass. */
static bool is_left(const struct tnd_arm_class *one, int kind)
{
    return one->rest < TND_OBSERVER_REST && kind == one->left;
}

/* Chooses the plan for a look: of those whose credit suffices, the one that has waited longest; if
 * the serving plan has become slow, the fastest one. */
static int find_look(const struct tnd_arm_class *one, int64_t tokens)
{
    const struct tnd_arm *serving = &one->arms[one->serving];
    const double serving_ns = now_of(serving);
    const double most_ns = TND_OBSERVER_HOARD * serving_ns * (double)tokens;
    const double again_ns = (fallback_ns(one) - serving_ns) * (double)tokens;
    const bool slow = is_slow(one);
    int best = NONE;
    double best_rank = 0;
    if (!slow && one->looked_at > 0 && one->n_uses < one->looked_at + one->rest) {
        return NONE;
    }
    for (int kind = 0; kind < TND_PLAN_KINDS; kind++) {
        const struct tnd_arm *arm = &one->arms[kind];
        double ns = expected_of(arm, serving);
        double gain_ns = (serving_ns - ns) * (double)tokens; /* of a use */
        double entry_ns = arm->used_ns == 0 ? arm->entry_ns : 0;
        double most_loss_ns = look_limit_ns(one, arm, tokens) + again_ns; /* if it is given up */
        double loss_ns = fmin(2 * fmax(-gain_ns, 0), arm->on_device ? most_loss_ns : INFINITY);
        double cost_ns = loss_ns + fmax(entry_ns - TND_OBSERVER_HOARD * fmax(gain_ns, 0), 0);
        bool is_free = is_left(one, kind);
        bool is_paid = is_free || fmin(cost_ns, most_ns) <= arm->credit_ns;
        double rank = is_free ? -1 : slow ? ns : (double)arm->used_ns;
        if (arm->is_open && kind != one->serving && (is_paid || (slow && 2 * ns < serving_ns)) &&
            (best == NONE || rank < best_rank)) {
            best = kind;
            best_rank = rank;
        }
    }
    return best;
}

static void end_look(struct tnd_arm_class *one)
{
    one->looked = NONE;
    one->looked_at = one->n_uses;
    one->rest =
        one->rest > 0 && one->rest < TND_OBSERVER_REST / 2 ? 2 * one->rest : TND_OBSERVER_REST;
}

/* Alternates with the serving plan after the first use, so that a slow machine slows both. */
static enum tnd_plan_kind take_turn(struct tnd_arm_class *one, int64_t tokens)
{
    struct tnd_arm *serving = &one->arms[one->serving];
    if (one->looked != NONE && !one->is_slow && is_slow(one)) { /* its times are of two machines */
        end_look(one);
    }
    if (one->looked == NONE && serving->n_counted > 0) {
        one->is_slow = is_slow(one);
        one->looked = (uint8_t)find_look(one, tokens);
        one->n_beside = one->n_handed = 0;
        if (one->looked != NONE && is_slow(one)) { /* its earlier times no longer hold */
            bool is_stall = now_of(serving) > TND_OBSERVER_STALL * serving->beside_ns;
            serving->times[0] = serving->times[(serving->n_counted - 1) % TND_ARM_RING];
            serving->n_counted = is_stall ? 1 : 0; /* other programs may cost a factor of two */
        }
    }
    if (one->looked == NONE) {
        return one->serving;
    }
    struct tnd_arm *arm = &one->arms[one->looked];
    if (one->n_handed == 0) {
        arm->n_uses = arm->n_counted = 0;
        one->before_ns = arm->expected_ns;
    }
    if (arm->n_counted > one->n_beside) {
        return one->serving;
    }
    if (++one->n_handed == UINT8_MAX) { /* the plan is not used, or a device refuses its weights */
        arm->is_open = false;
        end_look(one);
        return one->serving;
    }
    return one->looked;
}

/* Time limit of a computation; 0: none. Nothing is given up if there is no plan for the CPU alone;
 * nor is the first use of the serving plan, whose time is unknown. */
static double limit_of(const struct tnd_arm_class *one, enum tnd_plan_kind kind, int64_t tokens)
{
    const struct tnd_arm *arm = &one->arms[kind];
    const struct tnd_arm *serving = &one->arms[one->serving];
    if (!isfinite(fallback_ns(one)) || !arm->on_device || serving->used_ns == 0) {
        return 0;
    }
    if (kind != one->serving) {
        return look_limit_ns(one, arm, tokens);
    }
    return TND_OBSERVER_STALL * now_of(arm) * (double)tokens + TND_OBSERVER_STALL_NS;
}

uint64_t tnd_arms_limit(struct tnd_arms *arms, uint64_t key, enum tnd_plan_kind kind,
                        int64_t tokens)
{
    pthread_mutex_lock(&arms->lock);
    const struct tnd_arm_class *one = find(arms, key);
    const double limit_ns = one != NULL ? limit_of(one, kind, tokens) : 0;
    pthread_mutex_unlock(&arms->lock);
    return limit_ns < 1e18 ? (uint64_t)limit_ns : 0; /* tables may contain anything, even NaN */
}

bool tnd_arms_choose(struct tnd_arms *arms, uint64_t key, int64_t tokens, uint64_t now_ns,
                     enum tnd_plan_kind *out_kind)
{
    pthread_mutex_lock(&arms->lock);
    struct tnd_arm_class *one = find(arms, key);
    bool is_known = one != NULL && one->round == arms->round;
    if (is_known) {
        one->tick = ++arms->tick;
        forget_old(one, now_ns);
        *out_kind = take_turn(one, tokens);
    }
    pthread_mutex_unlock(&arms->lock);
    return is_known;
}

enum tandem_status tnd_arms_offer(struct tnd_arms *arms, uint64_t key, int64_t tokens,
                                  const struct tnd_arm_offer *offers)
{
    TND_ASSERT(offers[TND_PLAN_BEST].is_open && tokens > 0);
    pthread_mutex_lock(&arms->lock);
    struct tnd_arm_class *one = find(arms, key);
    one = one != NULL ? one : add(arms, key);
    for (int kind = 0; one != NULL && kind < TND_PLAN_KINDS; kind++) {
        struct tnd_arm *arm = &one->arms[kind];
        double ns = offers[kind].us * 1e3 / (double)tokens;
        /* the serving plan is known; others may have become different plans */
        bool is_known = kind == one->serving && arm->n_counted > 0;
        arm->expected_ns = is_known ? arm->expected_ns : ns;
        arm->beside_ns = is_known ? arm->beside_ns : 0;
        arm->is_open = offers[kind].is_open;
        arm->on_device = offers[kind].on_device;
        arm->predicted_ns = ns;
        arm->entry_ns = offers[kind].entry_us * 1e3;
    }
    if (one != NULL) {
        one->round = arms->round;
        one->looked = NONE;
        one->looked_at = 0;
        one->serving = one->arms[one->serving].is_open ? one->serving : TND_PLAN_BEST;
    }
    pthread_mutex_unlock(&arms->lock);
    return one != NULL ? TANDEM_OK : TANDEM_E_MEMORY;
}

/* ---- verdicts ---- */

/* A slow device slows all plans on it: adjusts the expected times of those not in use. */
static void tell_others(struct tnd_arm_class *one, const struct tnd_arm *arm,
                        const struct tnd_arm *serving)
{
    const double ratio = one->before_ns > 0 ? arm->expected_ns / one->before_ns : 1;
    if (!arm->on_device || serving->on_device || ratio < TND_OBSERVER_STALL) {
        return;
    }
    for (int kind = 0; kind < TND_PLAN_KINDS; kind++) {
        struct tnd_arm *other = &one->arms[kind];
        other->expected_ns *= other->on_device && other->used_ns == 0 ? ratio : 1;
    }
}

/* Compares the plan in a look with the serving plan, after each of its times. */
static enum tnd_arm_news judge(struct tnd_arm_class *one)
{
    struct tnd_arm *arm = &one->arms[one->looked];
    struct tnd_arm *serving = &one->arms[one->serving];
    if (kept(serving) == 0) {
        return TND_ARM_NOTHING;
    }
    double serving_ns = median(serving->times, kept(serving));
    double lead = log(serving_ns / arm->expected_ns);
    double error = hypot(error_of(arm), error_of(serving));
    bool is_last = arm->n_counted >= TND_OBSERVER_USES / 2;
    bool is_first = one->looked_at == 0;
    /* A single time far above that of the last look may be due to another program. */
    bool is_odd = arm->n_counted == 1 && arm->beside_ns > 0 &&
                  arm->expected_ns > TND_OBSERVER_STALL * one->before_ns;
    if ((fabs(lead) < TND_CLEAR_SIGMAS * error && !is_last) || is_odd) {
        return TND_ARM_NOTHING;
    }
    arm->beside_ns = serving->beside_ns = serving_ns;
    int looked = one->looked;
    tell_others(one, arm, serving);
    end_look(one);
    if (lead < fmax(TND_OBSERVER_NOISE, TND_CLEAR_SIGMAS / 2 * error)) {
        return is_first ? TND_ARM_STAYS : TND_ARM_NOTHING;
    }
    serving->expected_ns = serving_ns;
    serving->beside_ns = arm->beside_ns = arm->expected_ns;
    one->serving = (uint8_t)looked;
    one->left = (uint8_t)(serving - one->arms);
    one->rest = one->is_slow ? TND_OBSERVER_USES / 2 : one->rest; /* the slowness may pass soon */
    return TND_ARM_CHANGES;
}

/* Adds credit for plans that do not serve. The first one is larger, so that wrong predictions are
 * found soon. */
static void add_credits(struct tnd_arms *arms, struct tnd_arm_class *one, double ns, bool is_first)
{
    int n = -1; /* does not count the serving plan */
    for (int kind = 0; kind < TND_PLAN_KINDS; kind++) {
        n += one->arms[kind].is_open;
    }
    double share_ns = n > 0 ? arms->scale * TND_OBSERVER_SHARE / n * ns : 0;
    if (is_first && n > 0) {
        double left_ns = TND_OBSERVER_GRANT_NS - arms->granted_ns;
        share_ns = fmin(arms->scale * TND_OBSERVER_GRANT_USES * ns, left_ns / 2 / n);
        arms->granted_ns += n * share_ns;
        one->is_granted = true;
    }
    for (int kind = 0; kind < TND_PLAN_KINDS; kind++) {
        double *credit_ns = &one->arms[kind].credit_ns;
        *credit_ns = fmin(*credit_ns + share_ns, TND_OBSERVER_HOARD * ns);
    }
}

/* Records the time; returns whether it counts. */
static bool take(struct tnd_arms *arms, struct tnd_arm_class *one, enum tnd_plan_kind kind,
                 double ns, double tokens, bool is_cut, uint64_t now_ns)
{
    struct tnd_arm *arm = &one->arms[kind];
    struct tnd_arm *serving = &one->arms[one->serving];
    const double serving_ns = kept(serving) > 0 ? now_of(serving) : 0;
    const bool is_serving = kind == one->serving;
    const bool is_new = arm->used_ns == 0; /* includes packing and moving weights */
    const bool is_first = arm->n_uses++ == 0;
    const bool is_vain = is_new && is_cut; /* its later speed is unknown */
    arm->used_ns = is_vain ? 0 : now_ns | 1;
    if (is_serving) {
        one->n_beside += one->looked != NONE && one->arms[one->looked].n_counted > 0;
        if (arm->n_counted > 0) {
            add_credits(arms, one, ns * tokens, false);
        }
    } else if (!is_left(one, (int)kind)) {
        /* of a first use at most the expected time is charged: the rest is paid once */
        double more_ns = fmax(ns + (is_cut ? fallback_ns(one) : 0) - serving_ns, 0) * tokens;
        more_ns = is_new && !is_cut ? fmin(more_ns, arm->entry_ns) : more_ns;
        arm->credit_ns = fmax(arm->credit_ns - more_ns, 0);
    }
    if (is_vain) {
        arm->n_tries += arm->n_tries < MOST_TRIES;
        arm->expected_ns = fmax(arm->expected_ns, ns - arm->entry_ns / tokens);
        end_look(one);
        return false;
    }
    /* A first use counts if the plan was faster than the serving one in spite of it, or if it was
     * the first use of any plan and much too slow. */
    bool is_clear =
        !is_serving && (ns < serving_ns || (!is_new && ns > TND_OBSERVER_STALL * serving_ns));
    if (is_first && !is_clear && !is_cut) {
        return false;
    }
    arm->times[arm->n_counted++ % TND_ARM_RING] = (float)ns;
    arm->expected_ns = median(arm->times, kept(arm));
    if (is_serving && !one->is_granted) {
        add_credits(arms, one, ns * tokens, true);
        arm->beside_ns = ns;
    }
    return true;
}

enum tnd_arm_news tnd_arms_note(struct tnd_arms *arms, uint64_t key, enum tnd_plan_kind kind,
                                int64_t tokens, uint64_t ns, bool is_cut, uint64_t now_ns,
                                struct tnd_arm_class *out)
{
    enum tnd_arm_news news = TND_ARM_NOTHING;
    TND_ASSERT(tokens > 0 && kind < TND_PLAN_KINDS);
    pthread_mutex_lock(&arms->lock);
    struct tnd_arm_class *one = find(arms, key);
    if (one != NULL && one->arms[kind].is_open) {
        int before = one->serving;
        int looked = one->looked;
        one->n_uses++;
        bool counts = take(arms, one, kind, (double)(ns | 1) / (double)tokens, (double)tokens,
                           is_cut, now_ns);
        if (counts && (int)kind == looked) {
            news = judge(one);
            *out = *one;
            out->looked = (uint8_t)(news == TND_ARM_CHANGES ? before : looked);
        }
    }
    pthread_mutex_unlock(&arms->lock);
    return news;
}

bool tnd_arms_get(struct tnd_arms *arms, uint64_t key, struct tnd_arm_class *out)
{
    pthread_mutex_lock(&arms->lock);
    const struct tnd_arm_class *one = find(arms, key);
    if (one != NULL) {
        *out = *one;
    }
    pthread_mutex_unlock(&arms->lock);
    return one != NULL;
}
