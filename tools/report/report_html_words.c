/* SPDX-License-Identifier: MIT
 * The recommendation at the top of the HTML report: which profile wins where, how many threads are
 * worth using, from which M another candidate pays. */
#include <inttypes.h>
#include <string.h>

#include "base/emit.h"
#include "measure/measure_reference.h"
#include "tools/report/report_parts.h"
#include "tune/policy.h"

static void add_code(struct tnd_text *out, const char *name)
{
    tnd_text_add(out, "<b>");
    tnd_report_escape(out, name);
    tnd_text_add(out, "</b>");
}

/* ---- threads ---- */

static void add_threads(struct tnd_text *out, const struct tnd_analyses *analyses,
                        enum tandem_type type, bool last_m)
{
    int counts[TND_REPORT_COUNTS];
    double us[TND_REPORT_COUNTS];
    int n = tnd_report_total_us(analyses, type, last_m, counts, us);
    if (n < 2 || !(us[0] > 0.0)) {
        return;
    }
    int at = tnd_report_enough(us, n);
    tnd_text_printf(out, "<p>%s: use <b>%d thread%s</b>",
                    last_m ? "Long prompts (largest M measured)"
                           : "Few tokens (smallest M "
                             "measured)",
                    counts[at], counts[at] == 1 ? "" : "s");
    if (at > 0) {
        tnd_text_add(out, ", ");
        tnd_report_number(out, us[0] / us[at]);
        tnd_text_printf(out, " times as fast as %d", counts[0]);
        if (us[0] / us[at] * counts[0] > (1 + TND_RULE_LEAD) * counts[at]) {
            tnd_text_add(out, " (more than the threads explain: noise or caches)");
        }
    }
    if (at + 1 < n) {
        tnd_text_printf(out, "; %d threads %s", counts[n - 1],
                        us[n - 1] > us[at] ? "are slower" : "gain less than 5 % more");
    }
    tnd_text_add(out, ".</p>\n");
}

/* ---- what wins ---- */

static int winner_at(const struct tnd_analysis *a, int point)
{
    return tnd_winner(a->times, a->n_profiles, a->n_points, point);
}

static int first_winner(const struct tnd_analysis *a)
{
    return winner_at(a, 0);
}

static void add_winners(struct tnd_text *out, const struct tnd_analysis *a)
{
    const int64_t first = a->m[0];
    const int64_t last = a->n_crossovers > 0 ? a->crossovers[0].first_m - 1 : a->m[a->n_points - 1];
    add_code(out, a->profiles[first_winner(a)]->name);
    if (a->n_profiles == 1) {
        tnd_text_add(out, " (nothing else was measured)");
    } else if (a->n_crossovers == 0) {
        tnd_text_printf(out, " at every M from %" PRId64 " to %" PRId64, first, last);
    } else if (last > first) {
        tnd_text_printf(out, " from M = %" PRId64 " to %" PRId64, first, last);
    } else {
        tnd_text_printf(out, " at M = %" PRId64, first);
    }
    for (int i = 0; i < a->n_crossovers; i++) {
        tnd_text_printf(out, ", from <b>M = %" PRId64 "</b> on ", a->crossovers[i].first_m);
        add_code(out, a->profiles[a->crossovers[i].to]->name);
    }
    if (tnd_report_is_near(a)) {
        tnd_text_add(out, "; now and then another profile leads by too little to count");
    }
}

/* Whether both recommend the same single profile, over the same M. */
static bool one_for_all(const struct tnd_analysis *a, const struct tnd_analysis *b)
{
    return a->n_crossovers == 0 && b->n_crossovers == 0 &&
           tnd_report_is_near(a) == tnd_report_is_near(b) &&
           strcmp(a->profiles[first_winner(a)]->name, b->profiles[first_winner(b)]->name) == 0 &&
           (a->n_profiles == 1) == (b->n_profiles == 1) && a->m[0] == b->m[0] &&
           a->m[a->n_points - 1] == b->m[b->n_points - 1];
}

static bool is_for(const struct tnd_analysis *a, enum tandem_type type, int threads)
{
    return a->type == type && a->threads == threads;
}

/* Adds one item per finding; shapes with the same finding share it. */
static void add_items(struct tnd_text *out, const struct tnd_analyses *analyses,
                      enum tandem_type type, int threads)
{
    for (int i = 0; i < analyses->n; i++) {
        const struct tnd_analysis *a = &analyses->list[i];
        bool said = !is_for(a, type, threads);
        for (int j = 0; j < i && !said; j++) {
            const struct tnd_analysis *before = &analyses->list[j];
            said = is_for(before, type, threads) && one_for_all(before, a);
        }
        if (said) {
            continue;
        }
        tnd_text_printf(out, "<li>%" PRId64 " \u00d7 %" PRId64, a->n, a->k);
        for (int j = i + 1; j < analyses->n; j++) {
            const struct tnd_analysis *other = &analyses->list[j];
            if (is_for(other, type, threads) && one_for_all(a, other)) {
                tnd_text_printf(out, ", %" PRId64 " \u00d7 %" PRId64, other->n, other->k);
            }
        }
        tnd_text_add(out, ": ");
        add_winners(out, a);
        tnd_text_add(out, ".</li>\n");
    }
}

static void advise(struct tnd_report *report, const struct tnd_analyses *analyses,
                   enum tandem_type type)
{
    struct tnd_text *out = &report->out;
    int most = 0;
    int least = 0;
    for (int i = 0; i < analyses->n; i++) {
        const struct tnd_analysis *a = &analyses->list[i];
        if (a->type == type) {
            most = a->threads > most ? a->threads : most;
            least = least == 0 || a->threads < least ? a->threads : least;
        }
    }
    tnd_text_printf(out, "<h3>Weights %s</h3>\n", tandem_type_name(type));
    add_threads(out, analyses, type, false);
    add_threads(out, analyses, type, true);
    for (int threads = most; threads > 0; threads = threads == most && least < most ? least : 0) {
        tnd_text_printf(out, "<p>Fastest with %d thread%s, by shape N \u00d7 K:</p>\n<ul>\n",
                        threads, threads == 1 ? "" : "s");
        add_items(out, analyses, type, threads);
        tnd_text_add(out, "</ul>\n");
    }
}

/* Adds what the table says about its own reliability. */
static void add_uncertainties(struct tnd_text *out, const struct tandem_table *table,
                              const struct tnd_analyses *analyses)
{
    int64_t cells = 0;
    int64_t noisy = 0;
    int64_t stale = 0;
    for (int i = 0; i < analyses->n; i++) {
        const struct tnd_analysis *a = &analyses->list[i];
        cells += (int64_t)a->n_profiles * a->n_points;
        noisy += tnd_report_marks(a, TND_MARK_NOISY);
        stale += tnd_report_marks(a, TND_MARK_STALE);
    }
    if (noisy > 0) {
        tnd_text_printf(out,
                        "<p class=\"soft\">%" PRId64 " of %" PRId64
                        " times are noisy (spread above "
                        "8 %%): hollow in the charts.</p>\n",
                        noisy, cells);
    }
    if (stale > 0) {
        tnd_text_printf(out,
                        "<p>%" PRId64 " of %" PRId64 " times were found wrong while programs ran; "
                        "<b>mulmat-tune bench</b> measures them anew.</p>\n",
                        stale, cells);
    }
    for (int i = 0; i < table->n_sweeps; i++) {
        char text[160];
        if (tnd_sweep_state_text(&table->sweeps[i], text, sizeof(text))) {
            tnd_text_add(out, "<p>While it was measured, ");
            tnd_report_escape(out, text);
            tnd_text_add(out, ".</p>\n");
        }
    }
}

/* Adds profiles that are excluded on this machine. */
static void add_wrong(struct tnd_text *out, const struct tandem_table *table, enum tandem_type type)
{
    struct tnd_text names = TND_TEXT_INIT;
    if (tnd_analyses_add_wrong(table, type, ", ", add_code, &names)) {
        tnd_text_add(out, "<p>Left out, since their results were <b>wrong</b> on this machine: ");
        tnd_text_add(out, tnd_text_string(&names));
        tnd_text_add(out, ".</p>\n");
    }
    out->failed = out->failed || names.failed;
    tnd_text_fini(&names);
}

static void add_noise(struct tnd_text *out, const struct tnd_analyses *analyses)
{
    int64_t cells = 0;
    int64_t close = 0;
    for (int i = 0; i < analyses->n; i++) {
        const struct tnd_analysis *a = &analyses->list[i];
        for (int p = 0; p < a->n_points; p++) {
            cells++;
            close += tnd_report_within_noise(a, p) ? 1 : 0;
        }
    }
    if (close > 0) {
        tnd_text_printf(out,
                        "<p class=\"soft\">In %" PRId64 " of %" PRId64
                        " cells the lead of the fastest is within the noise: there either choice "
                        "is as good.</p>\n",
                        close, cells);
    }
}

void tnd_report_words(struct tnd_report *report)
{
    struct tnd_text *out = &report->out;
    tnd_text_add(out, "<section class=\"advice\" id=\"advice\">\n<h2>What to use</h2>\n");
    for (int s = 0; s < report->n_sources; s++) {
        const struct tnd_analyses *analyses = &report->analyses[s];
        tnd_report_table_heading(report, s);
        for (int i = 0; i < analyses->n; i++) {
            if (tnd_report_is_first_of_type(analyses, i)) {
                advise(report, analyses, analyses->list[i].type);
                add_wrong(out, report->sources[s].table, analyses->list[i].type);
            }
        }
        if (report->sources[s].table->version == 1) {
            tnd_text_add(out, "<p class=\"soft\">Measured on one thread. For other counts parallel "
                              "stages are divided by their number: an estimate.</p>\n");
        }
        add_noise(out, analyses);
        add_uncertainties(out, report->sources[s].table, analyses);
    }
    tnd_text_add(out, "</section>\n");
}
