/* SPDX-License-Identifier: MIT
 * Time and speed over M, with noise bands and crossovers; and the same as numbers. */
#include <inttypes.h>
#include <math.h>

#include "base/alloc.h"
#include "base/emit.h"
#include "tools/report/report_chart.h"

/* A product has 2 N K M floating-point operations; divided by microseconds and 1000 that is
 * GFLOP/s. */
static double speed(const struct tnd_analysis *a, int point, double us)
{
    return 2.0 * (double)a->n * (double)a->k * (double)a->m[point] / us * 1e-3;
}

/* The time, or the speed computed from it. */
static double shown(const struct tnd_analysis *a, bool as_speed, int point, double us)
{
    return as_speed ? speed(a, point, us) : us;
}

static void crossovers(struct tnd_chart *chart, const struct tnd_analysis *a, struct tnd_text *note)
{
    for (int i = 0; i < a->n_crossovers; i++) {
        const struct tnd_crossover *c = &a->crossovers[i];
        struct tnd_text label = TND_TEXT_INIT;
        tnd_text_add(&label, "M = ");
        tnd_report_number(&label, c->m);
        tnd_chart_vertical(chart, c->m, tnd_text_string(&label), i);
        note->failed = note->failed || label.failed;
        tnd_text_fini(&label);
        tnd_text_printf(note, "%sFrom M = %" PRId64 " on ", i > 0 ? " " : "", c->first_m);
        tnd_report_escape(note, a->profiles[c->to]->name);
        tnd_text_add(note, " is faster than ");
        tnd_report_escape(note, a->profiles[c->from]->name);
        tnd_text_add(note, ".");
    }
    if (a->n_crossovers == 0 && a->n_profiles > 1) {
        tnd_text_add(note, "No crossover: ");
        tnd_report_escape(note,
                          a->profiles[tnd_winner(a->times, a->n_profiles, a->n_points, 0)]->name);
        tnd_text_add(note, tnd_report_is_near(a)
                               ? " is the fastest throughout, or behind by too little to count."
                               : " is the fastest throughout.");
    }
}

/* `room` holds 4 * n_points numbers. */
static void profile(struct tnd_chart *chart, const struct tnd_analysis *a, bool as_speed, int p,
                    double *room)
{
    int n = a->n_points;
    double *x = room;
    double *y = room + n;
    double *low = room + 2 * n;
    double *high = room + 3 * n;
    bool has_band = false;
    for (int i = 0; i < n; i++) {
        double us = a->times[p * n + i];
        double error = a->errors[p * n + i];
        x[i] = (double)a->m[i];
        y[i] = shown(a, as_speed, i, us);
        double slow = shown(a, as_speed, i, us + error);
        double fast = shown(a, as_speed, i, fmax(us - error, us * 0.1));
        low[i] = fmin(slow, fast);
        high[i] = fmax(slow, fast);
        has_band = has_band || error > 0.0;
    }
    int style = tnd_report_style(chart->report, a->profiles[p]->name);
    if (has_band) {
        tnd_chart_band(chart, style, x, low, high, n);
    }
    tnd_chart_line(chart, style, x, y, n);
    tnd_chart_marks(chart, style, x, y, n);
    for (int i = 0; i < n; i++) {
        if (a->marks[p * n + i] != 0) {
            tnd_chart_hollow(chart, style, x[i], y[i]);
        }
    }
    tnd_chart_legend(chart, style, a->profiles[p]->name, "");
}

static void chart_of(struct tnd_report *report, const struct tnd_analysis *a, bool as_speed,
                     double *room)
{
    struct tnd_chart chart = {.report = report,
                              .x_title = "M (tokens)",
                              .y_title = as_speed ? "GFLOP/s" : "time of one product",
                              .unit = as_speed ? TND_CHART_NUMBER : TND_CHART_US,
                              .log_x = true,
                              .log_y = true};
    for (int i = 0; i < a->n_profiles * a->n_points; i++) {
        int point = i % a->n_points;
        tnd_chart_include(&chart, (double)a->m[point], shown(a, as_speed, point, a->times[i]));
    }
    struct tnd_text title = TND_TEXT_INIT;
    tnd_text_add(&title, as_speed ? "Speed over M, " : "Time over M, ");
    tnd_report_shape(&title, a);
    tnd_text_add(&title, ", ");
    tnd_report_thread_count(&title, a);
    struct tnd_text note = TND_TEXT_INIT;
    tnd_chart_begin(
        &chart, tnd_text_string(&title),
        "Both axes are logarithmic. One line a profile; the band around it is the median "
        "plus and minus the median absolute deviation.");
    for (int p = 0; p < a->n_profiles; p++) {
        profile(&chart, a, as_speed, p, room);
    }
    crossovers(&chart, a, &note);
    if (tnd_report_marks(a, UINT8_MAX) > 0) {
        tnd_text_add(&note, " Hollow: noisy or stale.");
    }
    report->out.failed = report->out.failed || title.failed || note.failed;
    tnd_chart_end(&chart, tnd_text_string(&title), tnd_text_string(&note));
    tnd_text_fini(&title);
    tnd_text_fini(&note);
}

void tnd_report_curves(struct tnd_report *report, const struct tnd_analysis *a)
{
    if (!tnd_report_fits(report)) {
        return;
    }
    double *room = tnd_calloc((size_t)a->n_points * 4, sizeof(*room));
    if (room == NULL) {
        report->out.failed = true;
        return;
    }
    chart_of(report, a, false, room);
    chart_of(report, a, true, room);
    tnd_free(room);
}

static void numbers_row(struct tnd_text *out, const struct tnd_analysis *a, int point)
{
    int winner = tnd_winner(a->times, a->n_profiles, a->n_points, point);
    tnd_text_printf(out, "<tr><th scope=\"row\">%" PRId64 "</th>", a->m[point]);
    for (int p = 0; p < a->n_profiles; p++) {
        int at = p * a->n_points + point;
        tnd_text_add(out, p == winner ? "<td class=\"best\">* " : "<td>");
        tnd_report_time(out, a->times[at]);
        if (a->errors[at] > 0.0 && a->times[at] > 0.0) {
            tnd_text_add(out, " \u00b1 ");
            tnd_emit_number(out, 0, 1, 100.0 * a->errors[at] / a->times[at]);
            tnd_text_add(out, " %");
        }
        tnd_text_add(out, (a->marks[at] & TND_MARK_NOISY) != 0 ? ", noisy" : "");
        tnd_text_add(out, (a->marks[at] & TND_MARK_STALE) != 0 ? ", stale" : "");
        tnd_text_add(out, (a->marks[at] & TND_MARK_CONTRADICTED) != 0 ? ", contradicted" : "");
        tnd_text_add(out, "</td>");
    }
    tnd_text_add(out, "</tr>\n");
}

void tnd_report_numbers(struct tnd_report *report, const struct tnd_analysis *a)
{
    struct tnd_text *out = &report->out;
    tnd_text_add(out, "<details><summary>Numbers: ");
    tnd_report_thread_count(out, a);
    tnd_text_add(out,
                 "</summary>\n<div class=\"scroll\"><table><thead><tr><th scope=\"col\">M</th>");
    for (int p = 0; p < a->n_profiles; p++) {
        tnd_text_add(out, "<th scope=\"col\">");
        tnd_report_escape(out, a->profiles[p]->name);
        tnd_text_add(out, "</th>");
    }
    tnd_text_add(out, "</tr></thead>\n<tbody>\n");
    for (int i = 0; i < a->n_points; i++) {
        numbers_row(out, a, i);
    }
    tnd_text_add(out, "</tbody></table></div>\n<p class=\"soft\">* fastest. \u00b1 median absolute "
                      "deviation, where it is known; noisy: above 8 %. Stale: found wrong while "
                      "programs ran, to be measured anew.</p></details>\n");
}
