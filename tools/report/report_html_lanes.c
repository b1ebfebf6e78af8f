/* SPDX-License-Identifier: MIT
 * A run lane by lane: predicted above measured times, and the critical path. */
#include <math.h>

#include "base/emit.h"
#include "tools/report/report_chart.h"
#include "tools/report/trace_run.h"

enum { WIDTH = 900, LEFT = 120, RIGHT = 30, TOP = 8, ROW = 46, BAR = 15, AXIS = 30, MAX_TICKS = 8 };

/* Bars narrower than this, in units of the picture, are merged with their neighbours. */
#define NARROW 0.35

struct lanes {
    struct tnd_report *report;
    const struct tnd_trace_run *run;
    double scale; /* units of the picture per microsecond */
};

static double x_of(const struct lanes *lanes, double us)
{
    return LEFT + us * lanes->scale;
}

static void add_bar(struct lanes *lanes, const char *style, int y, int height, double begin_us,
                    double end_us)
{
    struct tnd_text *out = &lanes->report->out;
    tnd_text_printf(out, "<rect class=\"%s\" y=\"%d\" height=\"%d\" x=\"", style, y, height);
    tnd_emit_number(out, 0, 2, x_of(lanes, begin_us));
    tnd_text_add(out, "\" width=\"");
    tnd_emit_number(out, 0, 2, fmax((end_us - begin_us) * lanes->scale, NARROW));
    tnd_text_add(out, "\"/>\n");
}

/* Draws the events of one lane and kind as bars; indistinguishable ones become one. */
static void add_bars(struct lanes *lanes, int lane, bool is_predicted, bool is_critical,
                     const char *style, int y, int height)
{
    const struct tnd_trace_run *run = lanes->run;
    double begin_us = 0;
    double end_us = -1;
    for (int i = 0; i < run->n; i++) {
        const struct tnd_trace_event *event = &run->events[i];
        if (event->lane != lane || event->is_predicted != is_predicted ||
            (is_critical && !event->is_critical)) {
            continue;
        }
        bool joins = end_us >= begin_us && (event->begin_us - end_us) * lanes->scale < NARROW &&
                     ((event->end_us - event->begin_us) * lanes->scale < 2 * NARROW ||
                      event->begin_us < end_us || is_critical);
        if (!joins && end_us >= begin_us) {
            add_bar(lanes, style, y, height, begin_us, end_us);
        }
        begin_us = joins ? begin_us : event->begin_us;
        end_us = joins ? fmax(end_us, event->end_us) : event->end_us;
    }
    if (end_us >= begin_us) {
        add_bar(lanes, style, y, height, begin_us, end_us);
    }
}

static void add_lane(struct lanes *lanes, int lane)
{
    struct tnd_text *out = &lanes->report->out;
    const struct tnd_trace_lane *of = &lanes->run->lanes[lane];
    int y = TOP + lane * ROW;
    tnd_text_printf(out, "<text class=\"end row\" x=\"%d\" y=\"%d\">", LEFT - 6, y + BAR + 6);
    tnd_report_escape(out, of->name);
    tnd_text_add(out, "</text>\n");
    add_bars(lanes, lane, true, false, "bar i0", y, BAR);
    add_bars(lanes, lane, false, false, "bar i1", y + BAR + 2, BAR);
    add_bars(lanes, lane, false, true, "s1", y + 2 * BAR + 4, 4);
}

/* Distance of ticks: 1, 2 or 5 times a power of ten. */
static double tick_of(double us)
{
    double unit = pow(10, floor(log10(us / MAX_TICKS)));
    double part = us / MAX_TICKS / unit;
    return unit * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static void add_axis(struct lanes *lanes, double us, int bottom)
{
    struct tnd_text *out = &lanes->report->out;
    double tick_us = tick_of(us);
    for (int i = 0; i * tick_us <= us; i++) {
        tnd_text_add(out, "<path class=\"grid\" d=\"M");
        tnd_emit_number(out, 0, 1, x_of(lanes, i * tick_us));
        tnd_text_printf(out, " %dV%d\"/><text class=\"mid\" y=\"%d\" x=\"", TOP, bottom,
                        bottom + 16);
        tnd_emit_number(out, 0, 1, x_of(lanes, i * tick_us));
        tnd_text_add(out, "\">");
        tnd_report_time(out, i * tick_us);
        tnd_text_add(out, "</text>\n");
    }
}

static void add_share(struct tnd_text *out, const char *name, double us, double whole_us)
{
    tnd_text_add(out, "<tr><td>");
    tnd_report_escape(out, name);
    tnd_text_add(out, "</td><td>");
    tnd_report_time(out, us);
    tnd_text_add(out, "</td><td>");
    tnd_report_number(out, 100 * us / whole_us);
    tnd_text_add(out, " %</td></tr>\n");
}

static void add_path(struct lanes *lanes, double whole_us)
{
    const struct tnd_trace_run *run = lanes->run;
    struct tnd_text *out = &lanes->report->out;
    tnd_text_printf(out,
                    "<h3>Critical path: %d of %d steps</h3>\n<div class=\"scroll\"><table><thead>"
                    "<tr><th>lane</th><th>on the path</th><th>share</th></tr></thead><tbody>\n",
                    run->n_critical, run->n_measured);
    for (int i = 0; i < run->n_lanes; i++) {
        if (run->lanes[i].critical_us > 0) {
            add_share(out, run->lanes[i].name, run->lanes[i].critical_us, whole_us);
        }
    }
    add_share(out, "between steps", run->waiting_us, whole_us);
    tnd_text_add(out,
                 "</tbody></table></div>\n<p class=\"soft\">From the step that ended last back "
                 "to the one that ended last before it began, and so on: what shortens the run "
                 "if it becomes faster.</p>\n");
}

void tnd_report_lanes(struct tnd_report *report, const struct tnd_trace_run *run)
{
    struct lanes lanes = {.report = report, .run = run};
    double us = fmax(fmax(run->took_us, run->predicted_us), 1e-3);
    int bottom = TOP + run->n_lanes * ROW;
    struct tnd_text note = TND_TEXT_INIT;
    lanes.scale = (WIDTH - LEFT - RIGHT) / us;
    tnd_text_add(&report->out, "<h2 id=\"lanes\">A run, lane by lane</h2>\n");
    tnd_figure_begin(report, WIDTH, bottom + AXIS, "A run, lane by lane",
                     "For each lane bars over time: predicted ones hatched, measured ones filled "
                     "below, and below those a thin line where the lane is on the critical path.");
    add_axis(&lanes, us, bottom);
    for (int i = 0; i < run->n_lanes; i++) {
        add_lane(&lanes, i);
    }
    tnd_text_add(&note, "Hatched: predicted; filled: measured; thin line: on the critical path. "
                        "Measured ");
    tnd_report_time(&note, run->took_us);
    if (run->predicted_us > 0) {
        tnd_text_add(&note, ", predicted ");
        tnd_report_time(&note, run->predicted_us);
    } else {
        tnd_text_add(&note, "; the plan predicts no lanes, since no device worked beside the CPU");
    }
    tnd_text_add(&note, ".");
    report->out.failed = report->out.failed || note.failed;
    tnd_figure_end(report, "A run, lane by lane.", "", tnd_text_string(&note));
    tnd_text_fini(&note);
    add_path(&lanes, fmax(run->took_us, 1e-3));
}
