/* SPDX-License-Identifier: MIT
 * Several tables side by side: how much faster each one is than the first, over M. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/emit.h"
#include "tools/report/report_chart.h"

/* What one chart compares. */
struct pair {
    const struct tnd_analyses *base;
    const struct tnd_analyses *other;
    enum tandem_type type;
    int threads;
};

static const struct tnd_analysis *find(const struct tnd_analyses *analyses,
                                       const struct tnd_analysis *like)
{
    for (int i = 0; i < analyses->n; i++) {
        const struct tnd_analysis *a = &analyses->list[i];
        if (tnd_report_same_shape(a, like) && a->threads == like->threads) {
            return a;
        }
    }
    return NULL;
}

/* Ratios at the M that both have; returns their number. x and y have room for a->n_points
 * numbers. */
static int ratios(const struct tnd_analysis *base, const struct tnd_analysis *other, double *x,
                  double *y)
{
    int n = 0;
    for (int i = 0; i < base->n_points; i++) {
        int j = tnd_report_point_of(other, base->m[i]);
        if (j >= 0 && tnd_report_best(base, i) > 0.0 && tnd_report_best(other, j) > 0.0) {
            x[n] = (double)base->m[i];
            y[n++] = tnd_report_best(base, i) / tnd_report_best(other, j);
        }
    }
    return n;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Visits each shape of the pair; `all` collects the ratios. False when out of memory. */
static bool each_shape(const struct pair *pair, struct tnd_chart *chart, bool drawing, double **all,
                       int *n_all)
{
    int style = 0;
    for (int i = 0; i < pair->base->n; i++) {
        const struct tnd_analysis *base = &pair->base->list[i];
        const struct tnd_analysis *other =
            base->type == pair->type && base->threads == pair->threads ? find(pair->other, base)
                                                                       : NULL;
        if (other == NULL) {
            continue;
        }
        double *x = tnd_calloc((size_t)base->n_points * 2, sizeof(*x));
        size_t old = (size_t)*n_all * sizeof(**all);
        double *more = x == NULL || drawing
                           ? NULL
                           : tnd_realloc(*all, old, old + (size_t)base->n_points * sizeof(*more));
        if (x == NULL || (!drawing && more == NULL)) {
            tnd_free(x);
            return false;
        }
        double *y = x + base->n_points;
        int n = ratios(base, other, x, y);
        if (drawing && n > 0) {
            char name[64];
            snprintf(name, sizeof(name), "%" PRId64 " \u00d7 %" PRId64, base->n, base->k);
            tnd_chart_line(chart, style, x, y, n);
            tnd_chart_marks(chart, style, x, y, n);
            tnd_chart_legend(chart, style, name, "");
        }
        style = n > 0 ? (style + 1) % TND_REPORT_STYLES : style;
        *all = drawing ? *all : more;
        for (int p = 0; p < n && !drawing; p++) {
            (*all)[(*n_all)++] = y[p];
            tnd_chart_include(chart, x[p], y[p]);
        }
        tnd_free(x);
    }
    return true;
}

static void add_finding(struct tnd_text *out, const double *sorted, int n)
{
    tnd_text_add(out, "In the median ");
    tnd_report_number(out, sorted[n / 2]);
    tnd_text_add(out, " times as fast (from ");
    tnd_report_number(out, sorted[0]);
    tnd_text_add(out, " to ");
    tnd_report_number(out, sorted[n - 1]);
    tnd_text_add(out, "), each with its own fastest profile. Above 1: faster than the first.");
}

static void chart_of(struct tnd_report *report, const struct pair *pair, int source)
{
    struct tnd_chart chart = {.report = report,
                              .x_title = "M (tokens)",
                              .y_title = "times as fast",
                              .log_x = true,
                              .log_y = true,
                              .look = " plain"};
    double *all = NULL;
    int n = 0;
    bool ok = each_shape(pair, &chart, false, &all, &n);
    if (ok && n > 0) {
        qsort(all, (size_t)n, sizeof(*all), compare_doubles);
        tnd_chart_include(&chart, chart.x0, 1.0);
        struct tnd_text title = TND_TEXT_INIT;
        struct tnd_text note = TND_TEXT_INIT;
        tnd_text_printf(&title, "Table %d against table 1, %s, %d thread%s", source + 1,
                        tandem_type_name(pair->type), pair->threads, pair->threads == 1 ? "" : "s");
        add_finding(&note, all, n);
        tnd_chart_begin(&chart, tnd_text_string(&title),
                        "Ratio of the fastest times over M, one line a shape; the dotted line is "
                        "the first table.");
        tnd_chart_guide(&chart, chart.x0, 1.0, chart.x1, 1.0);
        ok = each_shape(pair, &chart, true, &all, &n);
        report->out.failed = report->out.failed || title.failed || note.failed;
        tnd_chart_end(&chart, tnd_text_string(&title), tnd_text_string(&note));
        tnd_text_fini(&title);
        tnd_text_fini(&note);
    }
    report->out.failed = report->out.failed || !ok;
    tnd_free(all);
}

static bool was_before(const struct tnd_analyses *analyses, int i)
{
    for (int j = 0; j < i; j++) {
        if (analyses->list[j].type == analyses->list[i].type &&
            analyses->list[j].threads == analyses->list[i].threads) {
            return true;
        }
    }
    return false;
}

void tnd_report_compare(struct tnd_report *report)
{
    struct tnd_text *out = &report->out;
    int charts_before = report->n_charts;
    tnd_text_add(out, "<h2 id=\"compare\">Comparison</h2>\n<ol>\n");
    for (int s = 0; s < report->n_sources; s++) {
        tnd_text_add(out, "<li>");
        tnd_report_escape(out, report->sources[s].name);
        tnd_text_add(out, "</li>\n");
    }
    tnd_text_add(out, "</ol>\n<div class=\"charts\">\n");
    const struct tnd_analyses *base = &report->analyses[0];
    for (int s = 1; s < report->n_sources; s++) {
        for (int i = 0; i < base->n; i++) {
            if (!was_before(base, i) && tnd_report_fits(report)) {
                struct pair pair = {base, &report->analyses[s], base->list[i].type,
                                    base->list[i].threads};
                chart_of(report, &pair, s);
            }
        }
    }
    tnd_text_add(out, "</div>\n");
    if (report->n_charts == charts_before) {
        tnd_text_add(out, "<p>The tables have no shape, weight type, thread count and M in common: "
                          "nothing can be compared.</p>\n");
    }
}
