/* SPDX-License-Identifier: MIT
 * The rule for products, and exceptions by measured times. */
#include "bridge/ggml/bridge_verdicts.h"

#include <math.h>

/* Standard errors of their difference by which two times must differ, and the least difference.
 * Unit: standard errors; share. Why: as for all measurements (docs/tuning.md, Trust them); repeated
 * measurements differ by 2 %. Test: verdicts_leave_the_rule_for_what_is_clear. */
static const double CLEAR_SIGMAS = 3;
static const double CLEAR_SHARE = 0.02;
/* Standard error below which more measuring is useless, since drift alone causes 1 %. Unit: share.
 * Why: three such errors of both times are 6 %. Test: verdicts_know_when_measuring_is_over. */
static const double SMALL_ERROR = 0.015;

int tnd_verdicts_kind(bool has_experts, int64_t k)
{
    enum { SHORT = 768 };
    return (has_experts ? 1 : 0) + (k < SHORT ? 2 : 0);
}

static bool is_clearly_less(const struct tnd_bridge_time *a, const struct tnd_bridge_time *b)
{
    const double lead_us = b->us - a->us;
    return a->us > 0 && b->us > 0 && lead_us > CLEAR_SHARE * b->us &&
           lead_us > CLEAR_SIGMAS * hypot(a->error_us, b->error_us);
}

static bool is_settled(const struct tnd_bridge_time *a, const struct tnd_bridge_time *b)
{
    return is_clearly_less(a, b) || is_clearly_less(b, a) ||
           (a->us > 0 && b->us > 0 && a->error_us < SMALL_ERROR * a->us &&
            b->error_us < SMALL_ERROR * b->us);
}

bool tnd_times_are_settled(const struct tnd_bridge_times *times)
{
    const bool is_ours = times->ours.us < times->plain.us;
    return is_settled(&times->ours, &times->plain) &&
           is_settled(is_ours ? &times->ours : &times->plain, &times->loaded);
}

/* Packed kernels are faster with several tokens, and with one token if packed weights take less
 * memory than the host reads; plain floats take the same, and starting our threads costs extra. */
static bool rule(enum tandem_type type, int class_of_tokens)
{
    const bool is_float =
        type == TANDEM_TYPE_F32 || type == TANDEM_TYPE_F16 || type == TANDEM_TYPE_BF16;
    return class_of_tokens > 0 || !is_float;
}

bool tnd_verdict_judge(struct tnd_bridge_verdict *out, enum tandem_type type,
                       const struct tnd_bridge_times times[TND_TOKEN_CLASSES])
{
    bool gains = false;
    bool loses = false;
    bool is_over = true;
    for (int i = 0; i < TND_TOKEN_CLASSES; i++) {
        const struct tnd_bridge_times *at = &times[i];
        out->is_faster[i] = rule(type, i) ? !is_clearly_less(&at->plain, &at->ours)
                                          : is_clearly_less(&at->ours, &at->plain);
        const struct tnd_bridge_time *with_us = out->is_faster[i] ? &at->ours : &at->plain;
        gains = gains || out->is_faster[i];
        loses = loses || is_clearly_less(&at->loaded, with_us);
        is_over = is_over && tnd_times_are_settled(at);
    }
    out->is_placed = gains && !loses; /* weights there are slow for the host's own kernels */
    return is_over;
}
