/* SPDX-License-Identifier: MIT
 * Measuring a session: tokens per second for prompts and generation. */
#ifndef TANDEM_LLAMA_SPEED_H
#define TANDEM_LLAMA_SPEED_H

#include "tandem/llama.h"

#define TND_SPEED_MAX   64  /* samples of a measurement */
#define TND_SPEED_TEXTS 127 /* at the same time */

/** Samples of a measurement, in tokens per second. */
struct tnd_speed {
    double samples[TND_SPEED_MAX];
    int n;
};

struct tnd_speed_summary {
    double mean;
    double deviation; /* standard deviation; 0 for a single sample */
    double median;
    double low;
    double high;
};

struct tnd_speed_ratio {
    double median, low, high;
    int n; /* number of rounds */
};

/** Decodes a prompt of n tokens in one batch after the first n_past tokens (missing ones are
 * decoded first, unmeasured), and adds a sample. */
enum tandem_status tnd_speed_prompt(tandem_session *session, int64_t vocabulary, int64_t n_past,
                                    int64_t n, struct tnd_speed *speed, struct tandem_error *error);
/** Decodes n tokens one by one, as above. `sampler` chooses the next token (ranks then send no
 * logits); NULL: all logits are sent. */
enum tandem_status tnd_speed_generation(tandem_session *session, tandem_sampler *sampler,
                                        int64_t vocabulary, int64_t n_past, int64_t n,
                                        struct tnd_speed *speed, struct tandem_error *error);
/** Decodes n tokens for each of `n_texts` texts, which begin empty and run at the same time; counts
 * the tokens of all of them. All logits are sent. */
enum tandem_status tnd_speed_texts(tandem_session *session, int64_t vocabulary, int n_texts,
                                   int64_t n, struct tnd_speed *speed, struct tandem_error *error);
/** Mean, deviation, median and extremes; all 0 without samples. */
struct tnd_speed_summary tnd_speed_summary(const struct tnd_speed *speed);
/** Speed of `planned` relative to `speed`: the median of the ratios within each round, so that
 * disturbances affect both alike, and its interval (tnd_cli_median_between). */
struct tnd_speed_ratio tnd_speed_compare(const struct tnd_speed *speed,
                                         const struct tnd_speed *planned);
/** Prints "  pp8: 12.3 tokens/s OTHER; planned is 2.31 x as fast (2.20 .. 2.41, 3 rounds)", as
 * computed by tnd_speed_compare. Returns the ratio. */
double tnd_speed_print_ratio(const char *test, const char *other, const struct tnd_speed *speed,
                             const struct tnd_speed *planned);

#endif
