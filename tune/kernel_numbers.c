/* SPDX-License-Identifier: MIT
 * Choosing numbers of kernels by their times in a table. */
#include "tune/kernel_numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tune/policy.h"

typedef const struct tnd_kernel_time kernel_time;

/* The records of a family, which are adjacent, as are those of one candidate (record-list.h). */
struct family {
    kernel_time *first;
    int n;
};

static struct family family_at(const struct tandem_table *table, int at)
{
    struct family family = {&table->kernel_times[at], 0};
    while (at + family.n < table->n_kernel_times &&
           strcmp(family.first[family.n].backend, family.first->backend) == 0 &&
           strcmp(family.first[family.n].family, family.first->family) == 0) {
        family.n++;
    }
    return family;
}

/* Number of records, from the i-th on, of its candidate. */
static int count_of(const struct family *family, int i)
{
    int n = 1;
    while (i + n < family->n &&
           strcmp(family->first[i + n].numbers, family->first[i].numbers) == 0) {
        n++;
    }
    return n;
}

static int find(const struct family *family, const char *numbers)
{
    for (int i = 0; i < family->n; i++) {
        if (strcmp(family->first[i].numbers, numbers) == 0) {
            return i;
        }
    }
    return -1;
}

static bool is_same_product(kernel_time *a, kernel_time *b)
{
    return a->type == b->type && a->n == b->n && a->k == b->k && a->m == b->m &&
           a->threads == b->threads;
}

/* Natural logarithm of b's time over a's, and its standard error. */
static double log_ratio(kernel_time *a, kernel_time *b, double *out_error)
{
    const double error_a =
        tnd_time_error(a->median_us, a->spread_us, a->count, TND_SINGLE_SHOT_ERROR);
    const double error_b =
        tnd_time_error(b->median_us, b->spread_us, b->count, TND_SINGLE_SHOT_ERROR);
    *out_error = hypot(error_a / a->median_us, error_b / b->median_us);
    return log(b->median_us / a->median_us);
}

static bool is_clear(double lead, double error)
{
    return lead > TND_RULE_LEAD && lead > TND_CLEAR_SIGMAS * error;
}

/* Mean of log_ratio over the products that the candidates at `a` and `b` share; 0 with an error of
 * 0 if they share none. `out_harm`: whether `b` is clearly slower for one of them. */
static double compare(const struct family *family, int a, int b, double *out_error, bool *out_harm)
{
    const int n_a = count_of(family, a);
    const int n_b = count_of(family, b);
    double sum = 0;
    double squares = 0;
    int n = 0;
    *out_harm = false;
    for (int i = 0; i < n_a; i++) {
        for (int j = 0; j < n_b; j++) {
            kernel_time *one = &family->first[a + i];
            kernel_time *other = &family->first[b + j];
            double error = 0;
            if (!is_same_product(one, other) || one->median_us <= 0 || other->median_us <= 0) {
                continue;
            }
            const double ratio = log_ratio(one, other, &error);
            *out_harm = *out_harm || is_clear(ratio, error);
            sum += ratio;
            squares += error * error;
            n++;
        }
    }
    *out_error = n > 0 ? sqrt(squares) / n : 0;
    return n > 0 ? sum / n : 0;
}

/* The candidate that is fastest compared with the one at `base`, ignoring errors; with `only_clear`
 * only by a clear lead. */
static int fastest(const struct family *family, int base, bool only_clear)
{
    int best = base;
    double least = 0;
    for (int i = 0; i < family->n; i += count_of(family, i)) {
        double error = 0;
        bool harm = false;
        const double mean = i != base ? compare(family, base, i, &error, &harm) : 0;
        if (mean < least && (!only_clear || (is_clear(-mean, error) && !harm))) {
            best = i;
            least = mean;
        }
    }
    return best;
}

static void choose(const struct family *family, const char *prior, char out[TND_NUMBERS_MAX])
{
    const int base = find(family, prior);
    const int best = base >= 0 ? fastest(family, base, true) : fastest(family, 0, false);
    (void)snprintf(out, TND_NUMBERS_MAX, "%s", family->first[best].numbers);
}

void tnd_kernel_numbers_choose(const struct tandem_table *table, const char *backend,
                               const char *family, const char *prior, char out[TND_NUMBERS_MAX])
{
    (void)snprintf(out, TND_NUMBERS_MAX, "%s", prior);
    for (int at = 0; at < table->n_kernel_times;) {
        const struct family one = family_at(table, at);
        if (strcmp(one.first->backend, backend) == 0 && strcmp(one.first->family, family) == 0) {
            choose(&one, prior, out);
            return;
        }
        at += one.n;
    }
}

/* Chooses and sets the numbers of one family of an open backend. */
static void use(const struct family *family, tandem_backend *backend, const struct tnd_log *log)
{
    const struct tnd_tuner *tuner = tnd_tuner_of(backend);
    char prior[TND_NUMBERS_MAX];
    char numbers[TND_NUMBERS_MAX];
    struct tandem_error error = {.text = ""};
    if (tuner == NULL) {
        return;
    }
    if (!tuner->present(backend, family->first->numbers, prior)) {
        tnd_log_line(log, TANDEM_LOG_WARN, "table", "%s has no numbers as '%s' of family %s",
                     family->first->backend, family->first->numbers, family->first->family);
        return;
    }
    choose(family, prior, numbers);
    if (strcmp(numbers, prior) == 0) {
        return;
    }
    if (tuner->use(backend, numbers, &error) == TANDEM_OK) {
        tnd_log_line(log, TANDEM_LOG_INFO, "table", "%s: %s by the table, in place of %s",
                     family->first->backend, numbers, prior);
    } else {
        tnd_log_line(log, TANDEM_LOG_WARN, "table", "%s; %s serves", error.text, prior);
    }
}

void tnd_kernel_numbers_use(const struct tandem_table *table, const struct tnd_registry *registry,
                            const struct tnd_log *log)
{
    for (int at = 0; table != NULL && at < table->n_kernel_times;) {
        const struct family family = family_at(table, at);
        const int slot = tnd_registry_find(registry, family.first->backend, NULL);
        if (slot > 0) {
            use(&family, tnd_registry_backend(registry, slot), log);
        }
        at += family.n;
    }
}
