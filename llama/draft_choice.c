/* SPDX-License-Identifier: MIT
 * How many tokens to draft: what is expected to be accepted against what a larger batch takes. */
#include "llama/draft.h"

#include "llama/llama_error.h"

/* A measured time counts for so many batches; then it is measured again where it may matter. */
enum { FRESH = 512, TRIES = 2 };
static const double NEW_SHARE = 0.2; /* of a measured time in the mean */
static const double TOKEN_SHARE =
    0.07;                              /* of one token in the mean: with more, chance ends drafts */
static const double GROWTH = 0.1;      /* of the time with each token, where nothing is known */
static const double LEAST_GAIN = 1.02; /* a draft that gains less is not worth its risk */
static const double FEW = 0.02;        /* acceptance stays above, so that it can come back */

static bool is_known(const struct tnd_draft_times *times, int64_t m)
{
    return m <= TND_DRAFT_SIZES && times->n[m] >= TRIES &&
           (m == 1 || times->n_steps - times->step[m] < FRESH);
}

/* How many times as long as a batch of one token. */
static double ratio_of(const struct tnd_draft_times *times, int64_t m)
{
    const int64_t at = m < TND_DRAFT_SIZES ? m : TND_DRAFT_SIZES;
    const double ratio = times->ratio[at] > 0 ? times->ratio[at] : 1 + GROWTH * (double)(at - 1);
    return ratio * (double)m / (double)at;
}

double tnd_draft_expect(const struct tnd_draft_times *times, int64_t m)
{
    int64_t low = m < TND_DRAFT_SIZES ? m : TND_DRAFT_SIZES;
    if (is_known(times, m)) {
        return times->us[m];
    }
    while (low > 0 && !is_known(times, low)) {
        low--;
    }
    int64_t high = m + 1;
    while (high <= TND_DRAFT_SIZES && !is_known(times, high)) {
        high++;
    }
    if (low > 0) {
        const double us = times->us[low] * ratio_of(times, m) / ratio_of(times, low);
        const bool is_bounded = high <= TND_DRAFT_SIZES && times->us[high] < us;
        return is_bounded ? times->us[high] : us;
    }
    return high <= TND_DRAFT_SIZES ? times->us[high] * ratio_of(times, m) / ratio_of(times, high)
                                   : 0;
}

void tnd_draft_note(struct tnd_draft_times *times, int64_t m, double us)
{
    times->n_steps++;
    if (m < 1 || m > TND_DRAFT_SIZES) {
        return;
    }
    double *mean = &times->us[m];
    if (times->n[m] < TRIES) { /* a first use may prepare something */
        *mean = times->n[m] == 0 || us < *mean ? us : *mean;
    } else {
        const double bounded = us < 2 * *mean ? us : 2 * *mean; /* a disturbance is not believed */
        *mean += NEW_SHARE * (bounded - *mean);
    }
    times->n[m]++;
    times->step[m] = times->n_steps;
}

void tnd_draft_learn(struct tnd_draft_hope *hope, bool was_right)
{
    const double mean = 1.0 / (double)(2 + hope->n++); /* what was hoped for first counts as one */
    const double share = mean > TOKEN_SHARE ? mean : TOKEN_SHARE;
    hope->acceptance += share * ((was_right ? 1.0 : 0.0) - hope->acceptance);
    hope->acceptance = hope->acceptance < FEW ? FEW : hope->acceptance;
}

void tnd_draft_choose(const struct tnd_draft_times *times,
                      const struct tnd_draft_hope *const *hopes, const int *room, int n, int64_t m,
                      int *out)
{
    int drafted[TND_LLAMA_MAX_SEQUENCES] = {0};
    double chance[TND_LLAMA_MAX_SEQUENCES]; /* that the next token of the draft is accepted */
    double expected = n;
    int64_t n_drafted = 0;
    double best = LEAST_GAIN * (double)n / tnd_draft_expect(times, m);
    LLAMA_ASSERT(n <= TND_LLAMA_MAX_SEQUENCES);
    for (int i = 0; i < n; i++) {
        out[i] = 0;
        chance[i] = hopes[i]->acceptance;
    }
    for (;;) { /* one more token where it is likeliest; times may have steps: all sizes are tried */
        int at = -1;
        for (int i = 0; i < n; i++) {
            at = drafted[i] < room[i] && (at < 0 || chance[i] > chance[at]) ? i : at;
        }
        if (at < 0 || m + n_drafted >= TND_DRAFT_SIZES) {
            return;
        }
        expected += chance[at];
        chance[at] *= hopes[at]->acceptance;
        drafted[at]++;
        n_drafted++;
        const double us =
            tnd_draft_expect(times, m + n_drafted) + times->draft_us * (double)n_drafted;
        if (us > 0 && expected / us > best) {
            best = expected / us;
            for (int i = 0; i < n; i++) {
                out[i] = drafted[i];
            }
        }
    }
}

int tnd_draft_look_up(const int32_t *text, int64_t n, int most, int32_t *out)
{
    enum { LEAST = 2, LONGEST = 16 };
    int64_t best = -1;
    int best_length = LEAST - 1;
    for (int64_t i = n - 2; i >= LEAST - 1 && best_length < LONGEST; i--) {
        int length = 0;
        while (length < LONGEST && length <= i && text[i - length] >= 0 &&
               text[i - length] == text[n - 1 - length]) {
            length++;
        }
        if (length > best_length) {
            best_length = length;
            best = i + 1;
        }
    }
    for (int k = 0; best >= 0 && k < most; k++) { /* behind its end the text repeats itself */
        out[k] = best + k < n ? text[best + k] : out[best + k - n];
        if (out[k] < 0) {
            return k;
        }
    }
    return best >= 0 ? most : 0;
}
