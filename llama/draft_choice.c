/* SPDX-License-Identifier: MIT
 * How many tokens to draft: expected acceptance against the time of a larger batch. */
#include "llama/draft.h"

#include "llama/llama_error.h"

static const double TOKEN_SHARE = 0.07; /* of a token in the mean: with more, chance ends drafts */
static const double LEAST_GAIN = 1.02;  /* least gain that is worth the risk */
static const double FEW = 0.02;         /* lower bound of the acceptance, so that it can recover */

void tnd_draft_learn(struct tnd_draft_hope *hope, bool was_right)
{
    const double mean = 1.0 / (double)(2 + hope->n++); /* the initial estimate counts as one */
    const double share = mean > TOKEN_SHARE ? mean : TOKEN_SHARE;
    hope->acceptance += share * ((was_right ? 1.0 : 0.0) - hope->acceptance);
    hope->acceptance = hope->acceptance < FEW ? FEW : hope->acceptance;
}

void tnd_draft_choose(const struct tnd_batch_times *times, double draft_us,
                      const struct tnd_draft_hope *const *hopes, const int *room, int n, int64_t m,
                      int *out)
{
    int drafted[TND_LLAMA_MAX_SEQUENCES] = {0};
    double chance[TND_LLAMA_MAX_SEQUENCES]; /* that the draft's next token is accepted */
    double expected = n;
    int64_t n_drafted = 0;
    double best = LEAST_GAIN * (double)n / tnd_batch_times_expect(times, m, true).us;
    LLAMA_ASSERT(n <= TND_LLAMA_MAX_SEQUENCES);
    for (int i = 0; i < n; i++) {
        out[i] = 0;
        chance[i] = hopes[i]->acceptance;
    }
    for (;;) { /* adds the likeliest token; all sizes are tried, because times may have steps */
        int at = -1;
        for (int i = 0; i < n; i++) {
            at = drafted[i] < room[i] && (at < 0 || chance[i] > chance[at]) ? i : at;
        }
        if (at < 0 || m + n_drafted >= TND_DRAFT_BATCH) {
            return;
        }
        expected += chance[at];
        chance[at] *= hopes[at]->acceptance;
        drafted[at]++;
        n_drafted++;
        const double us =
            tnd_batch_times_expect(times, m + n_drafted, true).us + draft_us * (double)n_drafted;
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
    for (int k = 0; best >= 0 && k < most; k++) { /* beyond its end, the text repeats itself */
        out[k] = best + k < n ? text[best + k] : out[best + k - n];
        if (out[k] < 0) {
            return k;
        }
    }
    return best >= 0 ? most : 0;
}
