/* SPDX-License-Identifier: MIT
 * Measuring a session. Times do not depend on which tokens are decoded. */
#include "tools/tandem-llama/speed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/tandem-llama/cli.h"

static int32_t some_token(int64_t i, int64_t vocabulary)
{
    return (int32_t)((i * 7919 + 1) % vocabulary);
}

static void add_sample(struct tnd_speed *speed, int64_t n, double seconds)
{
    if (speed != NULL && speed->n < TND_SPEED_MAX && seconds > 0.0) {
        speed->samples[speed->n++] = (double)n / seconds;
    }
}

/* Leaves exactly n_past tokens in the session. Decodes them if it has fewer, or has dropped some
 * that a sliding window passed. */
static enum tandem_status keep_past(tandem_session *session, int64_t vocabulary, int64_t n_past,
                                    struct tandem_error *error)
{
    return tandem_session_rollback(session, 0, n_past) == n_past
               ? TANDEM_OK
               : tnd_speed_prompt(session, vocabulary, 0, n_past, NULL, error);
}

enum tandem_status tnd_speed_prompt(tandem_session *session, int64_t vocabulary, int64_t n_past,
                                    int64_t n, struct tnd_speed *speed, struct tandem_error *error)
{
    CLI_TRY(keep_past(session, vocabulary, n_past, error));
    int32_t *tokens = calloc((size_t)n, sizeof(tokens[0]));
    if (tokens == NULL) {
        return tnd_cli_error(error, TANDEM_E_MEMORY, "no memory", "tokens");
    }
    for (int64_t i = 0; i < n; i++) {
        tokens[i] = some_token(n_past + i, vocabulary);
    }
    const double begin = tnd_cli_seconds();
    const enum tandem_status status = tandem_session_decode(session, tokens, n, 0, error);
    const double seconds = tnd_cli_seconds() - begin;
    free(tokens);
    if (status == TANDEM_OK) {
        add_sample(speed, n, seconds);
    }
    return status;
}

enum tandem_status tnd_speed_generation(tandem_session *session, tandem_sampler *sampler,
                                        int64_t vocabulary, int64_t n_past, int64_t n,
                                        struct tnd_speed *speed, struct tandem_error *error)
{
    enum tandem_status status = keep_past(session, vocabulary, n_past, error);
    const double begin = tnd_cli_seconds();
    for (int64_t i = 0; status == TANDEM_OK && i < n; i++) {
        const int32_t token = some_token(n_past + i, vocabulary);
        (void)tandem_session_sample_with(session, 0, sampler, NULL);
        status = tandem_session_decode(session, &token, 1, 1, error);
    }
    if (status == TANDEM_OK) {
        add_sample(speed, n, tnd_cli_seconds() - begin);
    }
    return status;
}

/* Batch i of n: every n-th text, with `token`. */
static enum tandem_status begin_texts(tandem_session *session, int i, int n, int n_texts,
                                      int32_t token, struct tandem_error *error)
{
    struct tandem_batch_entry entries[TND_SPEED_TEXTS];
    int64_t n_entries = 0;
    for (int text = i; text < n_texts; text += n) {
        entries[n_entries++] = (struct tandem_batch_entry){&token, 1, text, true};
    }
    return tandem_session_begin_batch(session, entries, n_entries, error);
}

enum tandem_status tnd_speed_texts(tandem_session *session, int64_t vocabulary, int n_texts,
                                   int64_t n, struct tnd_speed *speed, struct tandem_error *error)
{
    const int64_t batches = tandem_session_batches_in_flight(session, n_texts);
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < n_texts; i++) {
        (void)tandem_session_rollback(session, i, 0);
    }
    const double begin = tnd_cli_seconds();
    for (int64_t k = 0; status == TANDEM_OK && k < batches * (n + 1); k++) {
        status = k < batches ? TANDEM_OK : tandem_session_end_batch(session, error);
        if (status == TANDEM_OK && k < batches * n) {
            status = begin_texts(session, (int)(k % batches), (int)batches, n_texts,
                                 some_token(k / batches, vocabulary), error);
        }
    }
    if (status == TANDEM_OK) {
        add_sample(speed, n_texts * n, tnd_cli_seconds() - begin);
    }
    return status;
}

struct tnd_speed_summary tnd_speed_summary(const struct tnd_speed *speed)
{
    struct tnd_speed sorted = *speed;
    struct tnd_speed_summary summary = {0};
    summary.median = tnd_cli_median(sorted.samples, sorted.n);
    if (sorted.n > 0) {
        summary.low = sorted.samples[0];
        summary.high = sorted.samples[sorted.n - 1];
        for (int i = 0; i < sorted.n; i++) {
            summary.mean += sorted.samples[i] / sorted.n;
        }
        for (int i = 0; sorted.n > 1 && i < sorted.n; i++) {
            const double off = sorted.samples[i] - summary.mean;
            summary.deviation += off * off / (sorted.n - 1);
        }
        summary.deviation = sqrt(summary.deviation);
    }
    return summary;
}

struct tnd_speed_ratio tnd_speed_compare(const struct tnd_speed *speed,
                                         const struct tnd_speed *planned)
{
    double ratios[TND_SPEED_MAX];
    struct tnd_speed_ratio out = {.n = speed->n < planned->n ? speed->n : planned->n};
    for (int i = 0; i < out.n; i++) {
        ratios[i] = planned->samples[i] / speed->samples[i];
    }
    out.median = tnd_cli_median_between(ratios, out.n, &out.low, &out.high);
    return out;
}

double tnd_speed_print_ratio(const char *test, const char *other, const struct tnd_speed *speed,
                             const struct tnd_speed *planned)
{
    const struct tnd_speed_ratio ratio = tnd_speed_compare(speed, planned);
    printf("  %s: %.2f tokens/s %s; planned is %.3f x as fast (%.3f .. %.3f, %d rounds)\n", test,
           tnd_speed_summary(speed).median, other, ratio.median, ratio.low, ratio.high, ratio.n);
    return ratio.median;
}
