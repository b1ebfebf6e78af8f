/* SPDX-License-Identifier: MIT
 * How accurate predictions outside of what was measured are: cells left out of the table and
 * predicted from the rest, as a chart with error bars and as text. */
#include <math.h>

#include "tools/report/left_out.h"
#include "tools/report/report_chart.h"

/* Ratios beyond EDGE lie on the edge of the chart; more points could not be told apart. */
enum { EDGE = 4, MOST_POINTS = 300 };

static const char *const names[TND_LEFT_OUT_DISTANCES] = {"twice the range", "4 times",
                                                          "8 times and more"};

static bool is_shown(const struct tnd_left_out *list, int at)
{
    int step = list->n_cells / MOST_POINTS + 1;
    return list->cells[at].side != TND_LEFT_OUT_THREADS && at % step == 0;
}

static double within_chart(double ratio)
{
    return fmin(fmax(ratio, 1.0 / EDGE), EDGE);
}

static void draw_cell(struct tnd_chart *chart, const struct tnd_left_out_cell *cell)
{
    double us = cell->measured_us;
    double x[2] = {us, us};
    double ratio = within_chart(cell->predicted_us / us);
    double bar[2] = {within_chart((cell->predicted_us - cell->error_us) / us),
                     within_chart((cell->predicted_us + cell->error_us) / us)};
    tnd_chart_line(chart, cell->distance - 1, x, bar, 2);
    tnd_chart_marks(chart, cell->distance - 1, x, &ratio, 1);
    if (fabs(cell->predicted_us - us) > cell->error_us) {
        tnd_chart_hollow(chart, cell->distance - 1, us, ratio);
    }
}

/* "twice the range: 89 cells, median error 2.9 %, 95th percentile 21 %, 99 % within the bars". */
static void add_words(struct tnd_report *report, const struct tnd_left_out *list,
                      struct tnd_text *note)
{
    const uint32_t sides = 1u << TND_LEFT_OUT_ABOVE | 1u << TND_LEFT_OUT_BELOW;
    const char *before = "";
    for (int d = 0; d < TND_LEFT_OUT_DISTANCES; d++) {
        struct tnd_calibration c;
        if (tnd_left_out_calibration(list, sides, 1u << d, &c) != TANDEM_OK) {
            report->out.failed = true;
        } else if (c.n > 0) {
            tnd_text_printf(
                note,
                "%s%s: %d cells, median error %.1f %%, 95th percentile %.0f %%, %.0f %% "
                "within their error bars",
                before, names[d], c.n, 100 * c.median, 100 * c.p95, 100 * c.within);
            before = "; ";
        }
    }
    tnd_text_add(note, ". About 80 % should lie within. Hollow: outside of its bar.");
}

static void chart_of(struct tnd_report *report, const struct tnd_left_out *list)
{
    static const char *const title = "Predicted over measured, cells left out";
    struct tnd_text note = TND_TEXT_INIT;
    struct tnd_chart chart = {.report = report,
                              .x_title = "measured us",
                              .y_title = "predicted / measured",
                              .unit = TND_CHART_NUMBER,
                              .look = " plain",
                              .log_x = true,
                              .log_y = true};
    bool has[TND_LEFT_OUT_DISTANCES] = {false};
    for (int i = 0; i < list->n_cells; i++) {
        if (is_shown(list, i)) {
            tnd_chart_include(&chart, list->cells[i].measured_us, 1.0 / EDGE);
            tnd_chart_include(&chart, list->cells[i].measured_us, EDGE);
            has[list->cells[i].distance - 1] = true;
        }
    }
    tnd_chart_begin(
        &chart, title,
        "Each marker is a product at the largest or smallest M of its curves, predicted "
        "without that M and those near to it, with its error bar.");
    tnd_chart_guide(&chart, chart.x0, 1.0, chart.x1, 1.0);
    for (int i = 0; i < list->n_cells; i++) {
        if (is_shown(list, i)) {
            draw_cell(&chart, &list->cells[i]);
        }
    }
    for (int d = 0; d < TND_LEFT_OUT_DISTANCES; d++) {
        if (has[d]) {
            tnd_chart_legend(&chart, d, names[d], "");
        }
    }
    add_words(report, list, &note);
    report->out.failed = report->out.failed || note.failed;
    tnd_chart_end(&chart, title, tnd_text_string(&note));
    tnd_text_fini(&note);
}

void tnd_report_calibration(struct tnd_report *report, int source)
{
    struct tnd_left_out list = {0};
    bool any = false;
    if (tnd_left_out_add(report->sources[source].table, &list) != TANDEM_OK) {
        report->out.failed = true;
    }
    for (int i = 0; i < list.n_cells && !any; i++) {
        any = is_shown(&list, i);
    }
    if (any && tnd_report_fits(report)) {
        tnd_text_printf(
            &report->out,
            "<h2 id=\"right%d\">How right predictions are</h2>\n<div class=\"charts\">\n", source);
        chart_of(report, &list);
        tnd_text_add(&report->out, "</div>\n");
    }
    tnd_left_out_fini(&list);
}
