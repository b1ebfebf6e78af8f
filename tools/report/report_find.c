/* SPDX-License-Identifier: MIT
 * Queries of the analyses that several sections of the HTML report use. */
#include <string.h>

#include "tools/report/report_parts.h"
#include "base/tnd_assert.h"
#include "tune/policy.h"

bool tnd_report_same_shape(const struct tnd_analysis *a, const struct tnd_analysis *b)
{
    return a->type == b->type && a->n == b->n && a->k == b->k;
}

bool tnd_report_is_first_of_type(const struct tnd_analyses *analyses, int i)
{
    int first = 0;
    while (analyses->list[first].type != analyses->list[i].type) {
        first++;
    }
    return first == i;
}

const struct tnd_analysis *tnd_report_longest(const struct tnd_analyses *analyses,
                                              enum tandem_type type)
{
    const struct tnd_analysis *longest = NULL;
    for (int i = 0; i < analyses->n; i++) {
        const struct tnd_analysis *a = &analyses->list[i];
        if (a->type == type &&
            (longest == NULL || a->threads > longest->threads ||
             (a->threads == longest->threads && a->n_points > longest->n_points))) {
            longest = a;
        }
    }
    TND_ASSERT(longest != NULL);
    return longest;
}

int tnd_report_shape_end(const struct tnd_analyses *analyses, int first)
{
    TND_ASSERT(first >= 0 && first < analyses->n);
    int end = first + 1;
    while (end < analyses->n &&
           tnd_report_same_shape(&analyses->list[first], &analyses->list[end])) {
        end++;
    }
    return end;
}

double tnd_report_best(const struct tnd_analysis *a, int point)
{
    TND_ASSERT(point >= 0 && point < a->n_points);
    int winner = tnd_winner(a->times, a->n_profiles, a->n_points, point);
    return a->times[winner * a->n_points + point];
}

int64_t tnd_report_marks(const struct tnd_analysis *a, unsigned bits)
{
    int64_t n = 0;
    for (int i = 0; i < a->n_profiles * a->n_points; i++) {
        n += (a->marks[i] & bits) != 0;
    }
    return n;
}

int tnd_report_point_of(const struct tnd_analysis *a, int64_t m)
{
    for (int i = 0; i < a->n_points; i++) {
        if (a->m[i] == m) {
            return i;
        }
    }
    return -1;
}

bool tnd_report_within_noise(const struct tnd_analysis *a, int point)
{
    int winner = tnd_winner(a->times, a->n_profiles, a->n_points, point);
    int first = winner * a->n_points + point;
    for (int p = 0; p < a->n_profiles; p++) {
        int at = p * a->n_points + point;
        if (p != winner && a->times[at] - a->times[first] < a->errors[at] + a->errors[first]) {
            return true;
        }
    }
    return false;
}

bool tnd_report_is_near(const struct tnd_analysis *a)
{
    int kept = tnd_winner(a->times, a->n_profiles, a->n_points, 0);
    for (int i = 0, c = 0; i < a->n_points; i++) {
        while (c < a->n_crossovers && a->crossovers[c].first_m <= a->m[i]) {
            kept = a->crossovers[c++].to;
        }
        if (tnd_winner(a->times, a->n_profiles, a->n_points, i) != kept) {
            return true;
        }
    }
    return false;
}

int tnd_report_total_us(const struct tnd_analyses *analyses, enum tandem_type type, bool last_m,
                        int out_counts[TND_REPORT_COUNTS], double out_us[TND_REPORT_COUNTS])
{
    int n = 0;
    for (int i = 0; i < analyses->n; i++) {
        const struct tnd_analysis *a = &analyses->list[i];
        if (a->type != type || !a->measured_threads) {
            continue;
        }
        int at = 0;
        while (at < n && out_counts[at] < a->threads) {
            at++;
        }
        if (at == n || out_counts[at] != a->threads) {
            if (n == TND_REPORT_COUNTS) {
                continue;
            }
            memmove(&out_counts[at + 1], &out_counts[at], (size_t)(n - at) * sizeof(*out_counts));
            memmove(&out_us[at + 1], &out_us[at], (size_t)(n - at) * sizeof(*out_us));
            out_counts[at] = a->threads;
            out_us[at] = 0.0;
            n++;
        }
        out_us[at] += tnd_report_best(a, last_m ? a->n_points - 1 : 0);
    }
    return n;
}

int tnd_report_enough(const double *us, int n)
{
    TND_ASSERT(n > 0);
    double least = us[0];
    for (int i = 1; i < n; i++) {
        least = us[i] < least ? us[i] : least;
    }
    int at = 0;
    while (us[at] > (1 + TND_NOISY_FRAC / 2) * least) {
        at++;
    }
    return at;
}
