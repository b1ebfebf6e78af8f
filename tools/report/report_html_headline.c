/* SPDX-License-Identifier: MIT
 * The headline of the HTML report: what choosing by the table gains over one profile for
 * everything, and how close that is to the machine's limits. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/emit.h"
#include "tools/report/report_parts.h"
#include "tune/roof.h"

/* Sums over all shapes of one type, at one M and thread count. */
struct headline {
    int n_shapes;
    double best_us;
    double roof_us;                          /* 0: unknown for some shape */
    double alone_us[TND_TABLE_MAX_PROFILES]; /* of each profile; 0: not for all shapes */
};

/* Lower bound of the fastest profile's time by the machine's peaks; 0: unknown. */
static double roof_of(const struct tnd_analysis *a, int profile, int point)
{
    struct tnd_curve_key key;
    tnd_stage_key(&a->profiles[profile]->stage[TANDEM_STAGE_COMPUTE], TANDEM_STAGE_COMPUTE, a->type,
                  a->n, a->k, a->threads, &key);
    const struct tnd_curve_bounds bounds = tnd_roof_of(a->table, &key, a->threads);
    return fmax(bounds.floor_us, bounds.least_per_m * (double)a->m[point]);
}

static double time_of(const struct tnd_analysis *a, const char *profile, int point)
{
    for (int p = 0; p < a->n_profiles; p++) {
        if (strcmp(a->profiles[p]->name, profile) == 0) {
            return a->times[p * a->n_points + point];
        }
    }
    return 0;
}

static bool sum_up(const struct tnd_analyses *analyses, enum tandem_type type, int threads,
                   int64_t m, struct headline *out)
{
    bool has_roof = true;
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < analyses->n; i++) {
        const struct tnd_analysis *a = &analyses->list[i];
        const int point = tnd_report_point_of(a, m);
        if (a->type != type || a->threads != threads || point < 0) {
            continue;
        }
        const int winner = tnd_winner(a->times, a->n_profiles, a->n_points, point);
        const double roof = roof_of(a, winner, point);
        has_roof = has_roof && roof > 0;
        out->best_us += a->times[winner * a->n_points + point];
        out->roof_us += roof;
        for (int p = 0; p < a->table->n_profiles; p++) {
            const double us = time_of(a, a->table->profiles[p].name, point);
            const bool is_whole = us > 0 && (out->n_shapes == 0 || out->alone_us[p] > 0);
            out->alone_us[p] = is_whole ? out->alone_us[p] + us : 0;
        }
        out->n_shapes++;
    }
    out->roof_us = has_roof ? out->roof_us : 0;
    return out->n_shapes > 0 && out->best_us > 0;
}

static void add_gain(struct tnd_text *out, const char *profile, double gain)
{
    tnd_emit_number(out, 0, gain < 9.995 ? 2 : 1, gain);
    tnd_text_add(out, " <b>");
    tnd_report_escape(out, profile);
    tnd_text_add(out, "</b>");
}

/* "M = 32: 1.5 ms, 62 % of the roof. Gain over one profile for all: 1.02 cpu-packed, 1.51 cpu." */
static void add_line(struct tnd_text *out, const struct tandem_table *table, int64_t m,
                     const struct headline *sums)
{
    tnd_text_printf(out, "<li>M = %" PRId64 ": ", m);
    tnd_report_time(out, sums->best_us);
    if (sums->roof_us > 0) {
        const double share = 100 * sums->roof_us / sums->best_us;
        if (share <= 100) {
            tnd_text_printf(out, ", %.0f %% of the roof", share);
        } else { /* the peak was measured in a slower moment, or data stayed in caches */
            tnd_text_add(out, ", faster than the roof that was measured");
        }
    }
    const char *separator = ". Gain over one profile for all: ";
    double told_us = 0; /* ascending; equal ones are printed once */
    for (int next = 0; next >= 0;) {
        next = -1;
        for (int p = 0; p < table->n_profiles; p++) {
            const double us = sums->alone_us[p];
            next = us > told_us && (next < 0 || us < sums->alone_us[next]) ? p : next;
        }
        if (next >= 0) {
            told_us = sums->alone_us[next];
            tnd_text_add(out, separator);
            add_gain(out, table->profiles[next].name, told_us / sums->best_us);
            separator = ", ";
        }
    }
    tnd_text_add(out, ".</li>\n");
}

/* Returns whether some line had a share of the roof. */
static bool of_type(struct tnd_report *report, int source, enum tandem_type type)
{
    bool has_roof = false;
    const struct tnd_analyses *analyses = &report->analyses[source];
    const struct tandem_table *table = report->sources[source].table;
    const struct tnd_analysis *longest = tnd_report_longest(analyses, type);
    struct headline sums;
    const int points[] = {0, longest->n_points / 2, longest->n_points - 1};
    const char *open = "<p>";
    for (int i = 0; i < 3; i++) {
        const int64_t m = longest->m[points[i]];
        if ((i > 0 && points[i] == points[i - 1]) ||
            !sum_up(analyses, type, longest->threads, m, &sums)) {
            continue;
        }
        if (open[0] != '\0') {
            tnd_text_printf(&report->out, "<p>Weights %s, ", tandem_type_name(type));
            tnd_text_printf(&report->out,
                            sums.n_shapes == 1 ? "one shape, "
                                               : "one product of each of %d shapes, ",
                            sums.n_shapes);
            tnd_report_thread_count(&report->out, longest);
            tnd_text_add(&report->out, ":</p>\n<ul>\n");
            open = "";
        }
        add_line(&report->out, table, m, &sums);
        has_roof = has_roof || sums.roof_us > 0;
    }
    tnd_text_add(&report->out, open[0] == '\0' ? "</ul>\n" : "");
    return has_roof;
}

void tnd_report_headline(struct tnd_report *report)
{
    struct tnd_text *out = &report->out;
    bool has_roof = false;
    tnd_text_add(out, "<section class=\"advice\" id=\"gain\">\n<h2>What tuning brings</h2>\n");
    for (int s = 0; s < report->n_sources; s++) {
        const struct tnd_analyses *analyses = &report->analyses[s];
        tnd_report_table_heading(report, s);
        for (int i = 0; i < analyses->n; i++) {
            if (tnd_report_is_first_of_type(analyses, i)) {
                has_roof = of_type(report, s, analyses->list[i].type) || has_roof;
            }
        }
    }
    tnd_text_add(out, "<p class=\"soft\">Times of the fastest profile of each shape, added up.");
    if (has_roof) {
        tnd_text_add(out, " The roof is the least time that the peaks of this machine allow: of "
                          "computing, or of reading the weights, whichever takes longer. Above "
                          "100 %: weights that the cache held, or a peak measured while the memory "
                          "was slower.");
    }
    tnd_text_add(out, "</p>\n</section>\n");
}
