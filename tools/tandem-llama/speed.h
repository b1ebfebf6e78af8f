/* SPDX-License-Identifier: MIT
 * Measuring a session: tokens per second of a prompt and of generation. */
#ifndef TANDEM_LLAMA_SPEED_H
#define TANDEM_LLAMA_SPEED_H

#include "tandem/llama.h"

#define TND_SPEED_MAX   64  /* samples of one measurement */
#define TND_SPEED_TEXTS 127 /* at once */

/** Samples of one thing, in tokens per second. */
struct tnd_speed {
    double samples[TND_SPEED_MAX];
    int n;
};

struct tnd_speed_summary {
    double mean;
    double deviation; /* standard deviation of the samples; 0 for one */
    double median;
    double low;
    double high;
};

struct tnd_speed_ratio {
    double median, low, high;
    int n; /* rounds */
};

/** Feeds a prompt of n tokens in one batch to a session behind its first n_past tokens (which are
 *  decoded without being measured where it lacks some) and adds a sample. */
enum tandem_status tnd_speed_prompt(tandem_session *session, int64_t vocabulary, int64_t n_past,
                                    int64_t n, struct tnd_speed *speed, struct tandem_error *error);
/** Feeds n tokens one by one, likewise. `sampler`: would choose the next ones, so that no logits
 *  are sent; NULL: all logits. */
enum tandem_status tnd_speed_generation(tandem_session *session, tandem_sampler *sampler,
                                        int64_t vocabulary, int64_t n_past, int64_t n,
                                        struct tnd_speed *speed, struct tandem_error *error);
/** Feeds n tokens to each of so many texts, which begin empty and go on at the same time; tokens of
 *  all of them count. All logits are sent. */
enum tandem_status tnd_speed_texts(tandem_session *session, int64_t vocabulary, int n_texts,
                                   int64_t n, struct tnd_speed *speed, struct tandem_error *error);
/** Mean, deviation, median and extremes; all 0 without samples. */
struct tnd_speed_summary tnd_speed_summary(const struct tnd_speed *speed);
/** How many times as fast `planned` is as `speed`: the median of the ratios within each round, so
 *  that whatever else the machine does meets both alike, and its interval
 *  (tnd_cli_median_between). */
struct tnd_speed_ratio tnd_speed_compare(const struct tnd_speed *speed,
                                         const struct tnd_speed *planned);
/** "  pp8: 12.3 tokens/s OTHER; planned is 2.31 x as fast (2.20 .. 2.41, 3 rounds)": as
 *  tnd_speed_compare. Returns the ratio. */
double tnd_speed_print_ratio(const char *test, const char *other, const struct tnd_speed *speed,
                             const struct tnd_speed *planned);

#endif
