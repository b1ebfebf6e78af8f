/* SPDX-License-Identifier: MIT
 * Each stage's share of the time: stacked bars for a few M, one bar per profile. */
#include <inttypes.h>

#include "base/emit.h"
#include "tools/report/report_chart.h"
#include "tools/report/scaling.h"

enum { WIDTH = 420, MOST_LEFT = 230, TIME_WIDTH = 68, ROW = 19 };

/* Room for the longest name, up to a limit; longer names are squeezed. */
static int left_of(const struct tnd_analysis *a)
{
    int left = 60;
    for (int p = 0; p < a->n_profiles; p++) {
        const int width = tnd_figure_text_width(a->profiles[p]->name) + 8;
        left = width > left ? width : left;
    }
    return left < MOST_LEFT ? left : MOST_LEFT;
}

static void bar(struct tnd_report *report, const struct tnd_analysis *a, int p, int point, int left,
                int y)
{
    const char *name = a->profiles[p]->name;
    const int room = WIDTH - left - TIME_WIDTH;
    static const char *const classes[TND_SHARES] = {"i0", "i1", "i2", "move"};
    struct tnd_text *out = &report->out;
    double us[TND_SHARES];
    double total = tnd_shares(a, p, point, us);
    tnd_text_printf(out, "<text class=\"end row\" x=\"%d\" y=\"%d\"", left - 6, y + 12);
    if (tnd_figure_text_width(name) + 8 > left) {
        tnd_text_printf(out, " textLength=\"%d\" lengthAdjust=\"spacingAndGlyphs\"", left - 8);
    }
    tnd_text_add_char(out, '>');
    tnd_report_escape(out, name);
    tnd_text_add(out, "</text>");
    double at = left;
    for (int s = 0; s < TND_SHARES && total > 0.0; s++) {
        double width = us[s] / total * room;
        if (us[s] > 0.0) {
            tnd_text_printf(out, "<rect class=\"bar %s\" y=\"%d\" height=\"14\" x=\"", classes[s],
                            y);
            tnd_emit_number(out, 0, 1, at);
            tnd_text_add(out, "\" width=\"");
            tnd_emit_number(out, 0, 1, width);
            tnd_text_printf(out, "\"><title>%s ", tnd_share_names[s]);
            tnd_report_time(out, us[s]);
            tnd_text_add(out, ", ");
            tnd_emit_number(out, 0, 1, 100.0 * us[s] / total);
            tnd_text_add(out, " %</title></rect>");
        }
        at += width;
    }
    tnd_text_printf(out, "<text class=\"row\" x=\"%d\" y=\"%d\">", left + room + 6, y + 12);
    tnd_report_time(out, total);
    tnd_text_add(out, "</text>\n");
}

void tnd_report_shares(struct tnd_report *report, const struct tnd_analysis *a)
{
    if (!tnd_report_fits(report)) {
        return;
    }
    int points[TND_SHARE_POINTS];
    int n_groups = tnd_share_points(a, points);
    const int left = left_of(a);
    int height = n_groups * (a->n_profiles * ROW + 22) + 6;
    struct tnd_text title = TND_TEXT_INIT;
    tnd_text_add(&title, "Stage shares, ");
    tnd_report_shape(&title, a);
    tnd_text_add(&title, ", ");
    tnd_report_thread_count(&title, a);
    tnd_figure_begin(report, WIDTH, height, tnd_text_string(&title),
                     "Stacked bars: the share of INIT, COMPUTE and FINALIZE in the time of each "
                     "profile, with the whole time at the end of the bar.");
    int y = 0;
    for (int g = 0; g < n_groups; g++) {
        tnd_text_printf(&report->out,
                        "<text class=\"name\" x=\"%d\" y=\"%d\">M = %" PRId64 "</text>\n", left,
                        y + 14, a->m[points[g]]);
        y += 20;
        for (int p = 0; p < a->n_profiles; p++, y += ROW) {
            bar(report, a, p, points[g], left, y);
        }
        y += 2;
    }
    struct tnd_text legend = TND_TEXT_INIT;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        tnd_text_printf(&legend,
                        "<span class=\"key\"><svg viewBox=\"0 0 34 12\" aria-hidden=\"true\"><rect "
                        "class=\"bar i%d\" x=\"1\" y=\"1\" width=\"32\" height=\"10\"/></svg>%s"
                        "</span> ",
                        s, tnd_share_names[s]);
    }
    if (a->table->n_transfers > 0) {
        tnd_text_add(&legend,
                     "<span class=\"key\"><svg viewBox=\"0 0 34 12\" aria-hidden=\"true\"><rect "
                     "class=\"bar move\" x=\"1\" y=\"1\" width=\"32\" height=\"10\"/></svg>"
                     "transfers</span> ");
    }
    report->out.failed = report->out.failed || title.failed || legend.failed;
    tnd_figure_end(report, tnd_text_string(&title), tnd_text_string(&legend),
                   "INIT prepares (dequantizes or quantizes), COMPUTE multiplies.");
    tnd_text_fini(&title);
    tnd_text_fini(&legend);
}
