/* SPDX-License-Identifier: MIT
 * Chooses among a program's own candidates with the observer's arms (observer_arms.h). */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/tnd_status.h"
#include "runtime/observer_arms.h"
#include "tandem/runtime.h"
#include "tune/policy.h"

_Static_assert((int)TANDEM_MAX_CANDIDATES == (int)TND_PLAN_KINDS,
               "each one is a plan to the observer");

struct tandem_candidates {
    struct tnd_arms arms;
};

enum tandem_status tandem_candidates_new(double share, tandem_candidates **out_candidates,
                                         struct tandem_error *error)
{
    TND_REQUIRE(out_candidates, "candidates_new", error);
    if (!(share > 0 && share <= 0.5)) {
        return tnd_error_set(
            error, TANDEM_E_ARGUMENT, "share", 0, 0,
            "candidates: a share of %g of the time for trials, expected above 0 and at "
            "most 0.5",
            share);
    }
    tandem_candidates *candidates = tnd_calloc(1, sizeof(*candidates));
    if (candidates == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "candidates", 0, 0,
                             "candidates: out of memory");
    }
    tnd_arms_init(&candidates->arms);
    candidates->arms.scale = share / TND_OBSERVER_SHARE;
    *out_candidates = candidates;
    return TANDEM_OK;
}

void tandem_candidates_free(tandem_candidates *candidates)
{
    if (candidates != NULL) {
        tnd_arms_fini(&candidates->arms);
        tnd_free(candidates);
    }
}

int tandem_candidates_choose(tandem_candidates *candidates, uint64_t key, int64_t amount,
                             double now_s)
{
    enum tnd_plan_kind kind;
    const bool is_known =
        candidates != NULL && key != 0 && amount > 0 && now_s >= 0 &&
        tnd_arms_choose(&candidates->arms, key, amount, (uint64_t)(now_s * 1e9), &kind);
    return is_known ? (int)kind : 0;
}

enum tandem_status tandem_candidates_note(tandem_candidates *candidates, uint64_t key,
                                          const double *guesses, int n, int candidate,
                                          int64_t amount, double us, double now_s,
                                          struct tandem_error *error)
{
    struct tnd_arm_class class_now;
    TND_REQUIRE(candidates, "candidates_note", error);
    TND_REQUIRE(guesses, "candidates_note", error);
    if (key == 0 || n < 1 || n > TANDEM_MAX_CANDIDATES || candidate < 0 || candidate >= n ||
        amount < 1 || !(us >= 0 && us < 1e12) || !(now_s >= 0 && now_s < 1e9) ||
        !(guesses[candidate] > 0)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "candidate", candidate, n,
                             "candidates: %d of %d, %g us for %lld, guessed as %g", candidate, n,
                             us, (long long)amount,
                             candidate >= 0 && candidate < n ? guesses[candidate] : 0);
    }
    if (!tnd_arms_get(&candidates->arms, key, &class_now)) {
        struct tnd_arm_offer offers[TND_PLAN_KINDS] = {{.is_open = true, .us = us}};
        for (int i = 0; i < n; i++) {
            offers[i].is_open = guesses[i] > 0;
            offers[i].us = us * guesses[i] / guesses[candidate];
        }
        offers[0].is_open = true; /* it is used first */
        TND_TRY(tnd_arms_offer(&candidates->arms, key, amount, offers));
    }
    (void)tnd_arms_note(&candidates->arms, key, (enum tnd_plan_kind)candidate, amount,
                        (uint64_t)(us * 1e3), false, (uint64_t)(now_s * 1e9), &class_now);
    return TANDEM_OK;
}
