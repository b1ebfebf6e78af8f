/* SPDX-License-Identifier: MIT
 * Times of batches. Knows only tokens and times; predicting and measuring are in decode.c. */
#include "llama/batch_times.h"

#include <math.h>

#include "tandem/table.h"

static const double GROWTH = 0.1;    /* growth of the time per token if nothing is predicted */
static const double ELSEWHERE = 0.2; /* relative error of a time derived from another size */
static const double AGED = 0.4;      /* relative error of a time that is OLD batches old */
enum { OLD = 512 };

/* ---- sizes ---- */

static int size_of(int64_t m)
{
    int at = TND_BATCH_EXACT;
    int64_t power = TND_BATCH_EXACT;
    if (m <= TND_BATCH_EXACT) {
        return (int)(m - 1);
    }
    while (power <= m / 2 && at + 4 < TND_BATCH_SIZES) {
        power *= 2;
        at += 4;
    }
    const int64_t quarter = (m - power) / (power / 4);
    at += (int)(quarter < 3 ? quarter : 3);
    return at < TND_BATCH_SIZES ? at : TND_BATCH_SIZES - 1;
}

/* The smallest number of tokens in a size class. */
static int64_t first_of(int size)
{
    const int range = size - TND_BATCH_EXACT;
    return range < 0 ? size + 1 : ((int64_t)TND_BATCH_EXACT << (range / 4)) / 4 * (4 + range % 4);
}

/* ---- one size ---- */

void tnd_batch_time_note(struct tnd_batch_time *time, double us, int64_t age)
{
    const int64_t at = time->n > 0 ? (time->n - 1) % TND_BATCH_RING : 0;
    const bool is_second = time->n == 1;
    us = fmax(us, 1e-3); /* clocks of virtual machines can stand still */
    time->us[at] = is_second && time->us[0] < us ? time->us[0] : (float)us;
    time->n++;
    time->age = age;
}

struct tnd_batch_expected tnd_batch_time_judge(const struct tnd_batch_time *time)
{
    struct tnd_batch_expected found = {0, 0};
    const int64_t n = time->n - 1 < TND_BATCH_RING ? time->n - 1 : TND_BATCH_RING;
    if (n > 0) {
        found.us = tandem_judge_times(time->us, (int)n, &found.error_us);
    } else if (time->n == 1) {
        found = (struct tnd_batch_expected){(double)time->us[0], (double)time->us[0]};
    }
    return found;
}

/* ---- all sizes ---- */

void tnd_batch_times_note(struct tnd_batch_times *times, int64_t m, bool is_step, double us)
{
    /* It is not known how much of the time grows with m. Scaling all of it errs on the safe
     * side. */
    const int size = size_of(m);
    tnd_batch_time_note(&times->sizes[is_step][size], us * (double)first_of(size) / (double)m,
                        ++times->n);
}

/* Microseconds for m tokens; without a prediction, multiples of the time of one token. */
static double predict(const struct tnd_batch_times *times, int64_t m)
{
    const double *us = times->predicted_us;
    int i = 0;
    if (us[0] <= 0) {
        return 1 + GROWTH * (double)(m - 1);
    }
    while (i + 1 < TND_BATCH_POWERS && m >= (int64_t)2 << i && us[i + 1] > 0) {
        i++;
    }
    const double share = (double)m / (double)((int64_t)1 << i);
    const bool is_inside = i + 1 < TND_BATCH_POWERS && us[i + 1] > 0;
    return is_inside ? us[i] + fmax(us[i + 1] - us[i], 0) * (share - 1) : us[i] * share;
}

/* Ratio of the time of m tokens to that of `from`. Without a prediction, a prompt's time is rather
 * overestimated, because other texts wait for it. */
static double ratio_of(const struct tnd_batch_times *times, int64_t m, int64_t from, bool is_step)
{
    if (is_step || times->predicted_us[0] > 0) {
        return predict(times, m) / predict(times, from);
    }
    return m > from ? (double)m / (double)from : 1;
}

/* Expected time of m tokens from the measured times of one size class. The time of one token never
 * ages: if all other times are old, predictions start from it. */
static struct tnd_batch_expected tell(const struct tnd_batch_times *times, int size, int64_t m,
                                      bool is_step)
{
    const struct tnd_batch_time *time = &times->sizes[is_step][size];
    const struct tnd_batch_expected then = tnd_batch_time_judge(time);
    const bool is_other = size != size_of(m);
    const double age = size > 0 ? AGED * (double)(times->n - time->age) / OLD : 0;
    const double error = hypot(then.error_us / then.us, hypot(age, is_other ? ELSEWHERE : 0));
    const double us = then.us * (is_other ? ratio_of(times, m, first_of(size), is_step)
                                          : (double)m / (double)first_of(size));
    return (struct tnd_batch_expected){us, error * us};
}

/* Expected time from measurements of the batch's own size class and of the nearest classes with at
 * least `least` batches; {0, 0}: there are none. */
static struct tnd_batch_expected tell_all(const struct tnd_batch_times *times, int64_t m,
                                          bool is_step, int least)
{
    const struct tnd_batch_time *sizes = times->sizes[is_step];
    const int own = size_of(m);
    int low = own - 1, high = own + 1;
    double sum = 0, weights = 0;
    while (low >= 0 && sizes[low].n < least) {
        low--;
    }
    while (high < TND_BATCH_SIZES && sizes[high].n < least) {
        high++;
    }
    const int told[] = {own, low, high};
    for (int i = 0; i < 3; i++) {
        if (told[i] >= 0 && told[i] < TND_BATCH_SIZES && sizes[told[i]].n >= least) {
            const struct tnd_batch_expected one = tell(times, told[i], m, is_step);
            const double weight = one.us * one.us / (one.error_us * one.error_us);
            sum += weight * one.us;
            weights += weight;
        }
    }
    return weights > 0 ? (struct tnd_batch_expected){sum / weights, sum / weights / sqrt(weights)}
                       : (struct tnd_batch_expected){0, 0};
}

struct tnd_batch_expected tnd_batch_times_expect(const struct tnd_batch_times *times, int64_t m,
                                                 bool is_step)
{
    struct tnd_batch_expected found = tell_all(times, m, is_step, 2);
    if (found.us <= 0 && times->predicted_us[0] > 0) {
        found.us = predict(times, m);
        found.error_us = ELSEWHERE * found.us;
    }
    return found.us > 0 ? found : tell_all(times, m, is_step, 1);
}
