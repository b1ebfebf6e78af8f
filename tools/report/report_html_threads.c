/* SPDX-License-Identifier: MIT
 * Speed-up and efficiency over threads, stage by stage, with the curve that thread_model.c fits. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/report/report_chart.h"
#include "tools/report/scaling.h"

enum { MAX_STEPS = 65 };

static const char *const stage_names[TANDEM_STAGES] = {" INIT", " COMPUTE", " FINALIZE"};

static void draw(struct tnd_chart *chart, const struct tnd_analysis *a,
                 const struct tnd_stage_scaling *line, int64_t m, int style, bool efficiency)
{
    double x[MAX_STEPS];
    double y[MAX_STEPS];
    int n = 0;
    double first = line->counts[0];
    double last = line->counts[line->n - 1];
    double step = fmax(1.0, ceil((last - first) / (MAX_STEPS - 1)));
    for (double threads = first; threads <= last && n < MAX_STEPS; threads += step) {
        double us;
        if (tnd_scaling_time(a, line, m, (int)threads, &us)) {
            x[n] = threads;
            y[n++] = tnd_scaling_gain(line, efficiency, threads, us);
        }
    }
    tnd_chart_line(chart, style, x, y, n);
    double at[TND_REPORT_COUNTS];
    for (int i = 0; i < line->n; i++) {
        at[i] = tnd_scaling_gain(line, efficiency, line->counts[i], line->us[i]);
    }
    tnd_chart_marks(chart, style, line->counts, at, line->n);
    if (line->enough + 1 < line->n) { /* unknown at the last one: more might pay */
        tnd_chart_ring(chart, style, line->counts[line->enough], at[line->enough]);
    }
    tnd_chart_legend(chart, style, line->profile->name, stage_names[line->stage]);
}

/* States where more threads stop paying. */
static void add_enough(struct tnd_text *note, const struct tnd_stage_scaling *lines, int n_lines)
{
    int n = 0;
    for (int l = 0; l < n_lines; l++) {
        const struct tnd_stage_scaling *line = &lines[l];
        if (line->enough + 1 < line->n) {
            tnd_text_add(note, n++ > 0 ? ", "
                                       : "Ring: more threads do not pay (less than 5 % to gain): ");
            tnd_report_escape(note, line->profile->name);
            tnd_text_printf(note, "%s from %d on", stage_names[line->stage],
                            (int)line->counts[line->enough]);
        }
    }
    tnd_text_add(note, n == 0         ? "Each thread that was measured pays."
                       : n == n_lines ? "."
                                      : ". Elsewhere each that was measured pays.");
}

/* Notes a speed-up larger than the factor of threads. */
static void add_above_ideal(struct tnd_text *note, const struct tnd_stage_scaling *lines,
                            int n_lines)
{
    int n = 0;
    for (int l = 0; l < n_lines; l++) {
        if (tnd_scaling_is_above_ideal(&lines[l])) {
            tnd_text_add(note, n++ > 0 ? ", " : " Above ideal: ");
            tnd_report_escape(note, lines[l].profile->name);
            tnd_text_add(note, stage_names[lines[l].stage]);
        }
    }
    tnd_text_add(note, n > 0 ? "; noise on one thread, or caches that several threads fill." : "");
}

static void chart_of(struct tnd_report *report, const struct tnd_analysis *a,
                     const struct tnd_stage_scaling *lines, int n_lines, int64_t m, bool efficiency)
{
    struct tnd_chart chart = {.report = report,
                              .x_title = "threads",
                              .y_title = efficiency ? "efficiency" : "speed-up",
                              .unit = efficiency ? TND_CHART_PERCENT : TND_CHART_NUMBER};
    struct tnd_text note = TND_TEXT_INIT;
    double most = 1.0;
    for (int l = 0; l < n_lines; l++) {
        const struct tnd_stage_scaling *line = &lines[l];
        for (int i = 0; i < line->n; i++) {
            tnd_chart_include(&chart, line->counts[i],
                              tnd_scaling_gain(line, efficiency, line->counts[i], line->us[i]));
            most = fmax(most, line->counts[i] / line->counts[0]);
        }
    }
    add_enough(&note, lines, n_lines);
    add_above_ideal(&note, lines, n_lines);
    tnd_chart_include(&chart, chart.x0, efficiency ? 1.0 : most);
    double first = chart.x0;
    double last = chart.x1;
    struct tnd_text title = TND_TEXT_INIT;
    tnd_text_printf(&title, "%s over threads at M = %" PRId64 ", ",
                    efficiency ? "Efficiency" : "Speed-up", m);
    tnd_report_shape(&title, a);
    tnd_chart_begin(&chart, tnd_text_string(&title),
                    "Markers are measured, lines fitted; the dotted line is ideal scaling, a ring "
                    "marks where more threads stop paying.");
    tnd_chart_guide(&chart, first, 1.0, last, efficiency ? 1.0 : last / first);
    for (int l = 0; l < n_lines; l++) {
        chart.look = lines[l].stage == TANDEM_STAGE_COMPUTE ? "" : " thin";
        draw(&chart, a, &lines[l], m, tnd_report_style(report, lines[l].profile->name), efficiency);
    }
    report->out.failed = report->out.failed || title.failed || note.failed;
    tnd_chart_end(&chart, tnd_text_string(&title), tnd_text_string(&note));
    tnd_text_fini(&title);
    tnd_text_fini(&note);
}

void tnd_report_threads(struct tnd_report *report, const struct tnd_analysis *a)
{
    struct tnd_stage_scaling lines[TND_SCALING_MAX];
    for (int i = 0; i < 2; i++) {
        int64_t m = a->m[i == 0 ? 0 : a->n_points - 1];
        int n = i == 1 && a->n_points == 1 ? 0 : tnd_scalings(a, m, lines);
        if (n > 0 && tnd_report_fits(report)) {
            chart_of(report, a, lines, n, m, false);
            chart_of(report, a, lines, n, m, true);
        }
    }
}
