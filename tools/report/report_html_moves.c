/* SPDX-License-Identifier: MIT
 * Costs besides the stages: transfers to and from devices, handing work to other threads, backends
 * that slow each other down. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/report/report_chart.h"

static double gbps(const struct tnd_sample *sample)
{
    return (double)sample->m / sample->median_us * 1e-3;
}

static void draw_transfer(struct tnd_chart *chart, const struct tnd_transfer *transfer, int style,
                          double *x, double *y)
{
    char name[48];
    int n = transfer->curve.n_samples;
    for (int i = 0; i < n; i++) {
        x[i] = (double)transfer->curve.samples[i].m / 1024.0;
        y[i] = gbps(&transfer->curve.samples[i]);
    }
    tnd_chart_line(chart, style, x, y, n);
    tnd_chart_marks(chart, style, x, y, n);
    snprintf(name, sizeof(name), "%s %s", transfer->backend,
             tnd_direction_name((enum tnd_direction)transfer->direction));
    tnd_chart_legend(chart, style, name, "");
}

static void transfers(struct tnd_report *report, const struct tandem_table *table)
{
    struct tnd_chart chart = {.report = report,
                              .x_title = "KiB moved at once",
                              .y_title = "GB/s",
                              .unit = TND_CHART_NUMBER,
                              .log_x = true,
                              .log_y = true,
                              .look = " plain"};
    int most = 1;
    for (int t = 0; t < table->n_transfers; t++) {
        const struct tnd_curve *curve = &table->transfers[t].curve;
        most = curve->n_samples > most ? curve->n_samples : most;
        for (int i = 0; i < curve->n_samples; i++) {
            tnd_chart_include(&chart, (double)curve->samples[i].m / 1024.0,
                              gbps(&curve->samples[i]));
        }
    }
    double *room = tnd_calloc((size_t)most * 2, sizeof(*room));
    if (room == NULL) {
        report->out.failed = true;
        return;
    }
    tnd_chart_begin(&chart, "Transfers between host and devices",
                    "Rate over the bytes that are moved at once, one line a device and direction.");
    for (int t = 0; t < table->n_transfers; t++) {
        draw_transfer(&chart, &table->transfers[t], t % TND_REPORT_STYLES, room, room + most);
    }
    tnd_chart_end(&chart, "Transfers between host and devices",
                  "Small transfers pay the latency: their rate is low.");
    tnd_free(room);
}

static void handoffs(struct tnd_text *out, const struct tandem_table *table)
{
    tnd_text_add(out, "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">threads</th>"
                      "<th scope=\"col\">hand-off, spinning</th><th scope=\"col\">hand-off, "
                      "asleep</th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < table->n_handoffs; i++) {
        const struct tnd_handoff *handoff = &table->handoffs[i];
        tnd_text_printf(out, "<tr><th scope=\"row\">%d</th><td>", (int)handoff->threads);
        tnd_report_time(out, handoff->spin_us);
        tnd_text_add(out, "</td><td>");
        tnd_report_time(out, handoff->wake_us);
        tnd_text_add(out, "</td></tr>\n");
    }
    tnd_text_add(out, "</tbody></table></div>\n<p class=\"soft\">Until all threads have the work "
                      "and are back.</p>\n");
}

static void slowdowns(struct tnd_text *out, const struct tandem_table *table)
{
    tnd_text_add(out, "<ul>\n");
    for (int i = 0; i < table->n_slowdowns; i++) {
        const struct tnd_slowdown *slowdown = &table->slowdowns[i];
        tnd_text_add(out, "<li>While ");
        tnd_report_escape(out, slowdown->beside);
        bool is_stream = strcmp(slowdown->backend, slowdown->beside) == 0;
        tnd_text_add(out, is_stream ? " is sent weights, " : " works, ");
        tnd_report_escape(out, slowdown->backend);
        if (fabs(slowdown->factor - 1) < 0.005) {
            tnd_text_add(out, " takes as long as alone.</li>\n");
        } else {
            tnd_text_add(out, " takes ");
            tnd_report_number(out, slowdown->factor);
            tnd_text_add(out, " times as long.</li>\n");
        }
    }
    tnd_text_add(out, "</ul>\n");
}

static int count_launches(const struct tandem_table *table)
{
    int n = 0;
    for (int i = 0; i < table->n_kernel_times; i++) {
        n += tnd_is_launch_time(&table->kernel_times[i]);
    }
    return n;
}

static void launches(struct tnd_text *out, const struct tandem_table *table)
{
    tnd_text_add(out, "<ul>\n");
    for (int i = 0; i < table->n_kernel_times; i++) {
        const struct tnd_kernel_time *one = &table->kernel_times[i];
        if (tnd_is_launch_time(one)) {
            tnd_text_add(out, "<li>A launch on ");
            tnd_report_escape(out, one->backend);
            tnd_text_add(out, ", ");
            tnd_report_escape(out, one->numbers);
            tnd_text_add(out, ", takes ");
            tnd_report_time(out, one->median_us);
            tnd_text_add(out, ".</li>\n");
        }
    }
    tnd_text_add(out, "</ul>\n");
}

void tnd_report_moves(struct tnd_report *report, int source)
{
    const struct tandem_table *table = report->sources[source].table;
    const int n_launches = count_launches(table);
    if (table->n_transfers + table->n_handoffs + table->n_slowdowns + n_launches == 0) {
        return;
    }
    tnd_text_printf(&report->out, "<h2 id=\"moves%d\">Moving and waiting", source);
    if (report->n_sources > 1) {
        tnd_text_add(&report->out, ": ");
        tnd_report_escape(&report->out, report->sources[source].name);
    }
    tnd_text_add(&report->out, "</h2>\n");
    if (table->n_transfers > 0 && tnd_report_fits(report)) {
        tnd_text_add(&report->out, "<div class=\"charts\">\n");
        transfers(report, table);
        tnd_text_add(&report->out, "</div>\n");
    }
    if (table->n_handoffs > 0) {
        handoffs(&report->out, table);
    }
    if (table->n_slowdowns > 0) {
        slowdowns(&report->out, table);
    }
    if (n_launches > 0) {
        launches(&report->out, table);
    }
}

/* ---- of one shape ---- */

/* Share of the time that is not in the stages. */
static double share_of_transfers(const struct tnd_analysis *a, int p, int point)
{
    const double *stage = a->stages[p * a->n_points + point];
    double total = a->times[p * a->n_points + point];
    double rest = total - (stage[0] + stage[1] + stage[2]);
    return total > 0 && rest > 1e-6 * total ? rest / total : 0; /* only rounding is left */
}

static bool moves_anything(const struct tnd_analysis *a, int p)
{
    for (int i = 0; i < a->n_points; i++) {
        if (share_of_transfers(a, p, i) > 0) {
            return true;
        }
    }
    return false;
}

void tnd_report_transfer_shares(struct tnd_report *report, const struct tnd_analysis *a)
{
    struct tnd_chart chart = {.report = report,
                              .x_title = "M (tokens)",
                              .y_title = "share of transfers",
                              .unit = TND_CHART_PERCENT,
                              .log_x = true};
    bool any = false;
    for (int p = 0; p < a->n_profiles; p++) {
        any = any || moves_anything(a, p);
    }
    double *room = any ? tnd_calloc((size_t)a->n_points * 2, sizeof(*room)) : NULL;
    if (room == NULL || !tnd_report_fits(report)) {
        report->out.failed = report->out.failed || (any && room == NULL);
        tnd_free(room);
        return;
    }
    struct tnd_text title = TND_TEXT_INIT;
    tnd_text_add(&title, "Transfer shares over M, ");
    tnd_report_shape(&title, a);
    tnd_chart_include(&chart, (double)a->m[0], 0);
    tnd_chart_include(&chart, (double)a->m[a->n_points - 1], 1);
    tnd_chart_begin(
        &chart, tnd_text_string(&title),
        "The part of each profile's time that moves operands and results, when both are "
        "in host memory before and after.");
    double *y = room + a->n_points;
    for (int p = 0; p < a->n_profiles; p++) {
        if (moves_anything(a, p)) {
            for (int i = 0; i < a->n_points; i++) {
                room[i] = (double)a->m[i];
                y[i] = share_of_transfers(a, p, i);
            }
            int style = tnd_report_style(report, a->profiles[p]->name);
            tnd_chart_line(&chart, style, room, y, a->n_points);
            tnd_chart_marks(&chart, style, room, y, a->n_points);
            tnd_chart_legend(&chart, style, a->profiles[p]->name, "");
        }
    }
    report->out.failed = report->out.failed || title.failed;
    tnd_chart_end(&chart, tnd_text_string(&title),
                  "With X and the result in host memory; inside a graph they may stay on the "
                  "device.");
    tnd_text_fini(&title);
    tnd_free(room);
}
