/* SPDX-License-Identifier: MIT
 * SVG line charts. Sizes are in units of the view box; the page scales the charts to its width. */
#include "tools/report/report_chart.h"

#include <math.h>
#include <string.h>

#include "base/emit.h"

enum { WIDTH = 420, HEIGHT = 290, LEFT = 58, RIGHT = 14, TOP = 26, BOTTOM = 44 };

/* Drawn around the point; the page's style sets the colour. */
static const char *const markers[TND_REPORT_STYLES] = {
    "m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z",
    "m-3.3-3.3h6.6v6.6h-6.6z",
    "m0-4.4l4.4 7.6h-8.8z",
    "m0-4.8l4.8 4.8l-4.8 4.8l-4.8-4.8z",
    "m0 4.4l4.4-7.6h-8.8z",
    "m-1.6-4.6h3.2v9.2h-3.2z",
    "m-4.6-1.6h9.2v3.2h-9.2z",
    "m-4.4 0l8.8-4.4v8.8z",
    "m4.4 0l-8.8-4.4v8.8z",
    "m-4.6 0l2.3-4h4.6l2.3 4l-2.3 4h-4.6z",
    "m-4-4h3v3h2v-3h3v8h-3v-3h-2v3h-3z",
    "m-4-1h3v-3h2v3h3v2h-3v3h-2v-3h-3z",
};

static double from_log(bool is_log, double value)
{
    return is_log ? log(value) : value;
}

static double x_of(const struct tnd_chart *chart, double x)
{
    double low = from_log(chart->log_x, chart->x0);
    double high = from_log(chart->log_x, chart->x1);
    return LEFT + (from_log(chart->log_x, x) - low) / (high - low) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct tnd_chart *chart, double y)
{
    double low = from_log(chart->log_y, chart->y0);
    double high = from_log(chart->log_y, chart->y1);
    double inside = fmin(fmax(y, chart->y0), chart->y1);
    return HEIGHT - BOTTOM -
           (from_log(chart->log_y, inside) - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
}

/* Larger values are no times or speeds; margins and ratios of smaller ones stay finite. */
#define EXTREME 1e30

static bool fits(bool is_log, double value)
{
    return fabs(value) <= EXTREME && (!is_log || value >= 1.0 / EXTREME);
}

static bool can_show(const struct tnd_chart *chart, double x, double y)
{
    return fits(chart->log_x, x) && fits(chart->log_y, y);
}

static const char *look_of(const struct tnd_chart *chart)
{
    return chart->look != NULL ? chart->look : "";
}

static void add_place(const struct tnd_chart *chart, double x, double y)
{
    struct tnd_text *out = &chart->report->out;
    tnd_emit_number(out, 0, 1, x_of(chart, x));
    tnd_text_add_char(out, ' ');
    tnd_emit_number(out, 0, 1, y_of(chart, y));
}

void tnd_chart_include(struct tnd_chart *chart, double x, double y)
{
    if (!can_show(chart, x, y)) {
        return;
    }
    chart->x0 = chart->has_range ? fmin(chart->x0, x) : x;
    chart->x1 = chart->has_range ? fmax(chart->x1, x) : x;
    chart->y0 = chart->has_range ? fmin(chart->y0, y) : y;
    chart->y1 = chart->has_range ? fmax(chart->y1, y) : y;
    chart->has_range = true;
}

/* ---- axes ---- */

/* Largest of 1, 2, 5 times a power of ten that is at most `value`. */
static double nice_below(double value)
{
    double ten = pow(10.0, floor(log10(value) + 1e-9));
    double part = value / ten;
    return (part >= 4.999 ? 5.0 : part >= 1.999 ? 2.0 : 1.0) * ten;
}

static void widen(bool is_log, double margin, double *low, double *high)
{
    if (is_log) {
        double factor = *high > *low * 1.0001 ? pow(*high / *low, margin) : 2.0;
        *low /= factor;
        *high *= factor;
    } else {
        double more = *high > *low ? (*high - *low) * margin : fmax(fabs(*high), 1.0) * 0.5;
        *low = *low - more;
        *high += more;
    }
}

static void add_value(struct tnd_text *out, enum tnd_chart_unit unit, double value)
{
    if (unit == TND_CHART_US) {
        tnd_report_time(out, value);
    } else {
        tnd_report_number(out, unit == TND_CHART_PERCENT ? value * 100.0 : value);
        tnd_text_add(out, unit == TND_CHART_PERCENT ? " %" : "");
    }
}

static void y_tick(const struct tnd_chart *chart, double value)
{
    struct tnd_text *out = &chart->report->out;
    tnd_text_printf(out, "<path class=\"grid\" d=\"M%d ", LEFT);
    tnd_emit_number(out, 0, 1, y_of(chart, value));
    tnd_text_printf(out, "H%d\"/><text class=\"end\" x=\"%d\" y=\"", WIDTH - RIGHT, LEFT - 6);
    tnd_emit_number(out, 0, 1, y_of(chart, value) + 4.0);
    tnd_text_add(out, "\">");
    add_value(out, chart->unit, value);
    tnd_text_add(out, "</text>\n");
}

static void x_tick(const struct tnd_chart *chart, double value)
{
    struct tnd_text *out = &chart->report->out;
    tnd_text_add(out, "<path class=\"grid\" d=\"M");
    tnd_emit_number(out, 0, 1, x_of(chart, value));
    tnd_text_printf(out, " %dV%d\"/><text class=\"mid\" x=\"", TOP, HEIGHT - BOTTOM);
    tnd_emit_number(out, 0, 1, x_of(chart, value));
    tnd_text_printf(out, "\" y=\"%d\">", HEIGHT - BOTTOM + 15);
    tnd_report_number(out, value);
    tnd_text_add(out, "</text>\n");
}

/* Ticks of a logarithmic axis: powers of `base`, every `step`-th to limit their number; below two
 * powers of ten, also 2 and 5 times those. */
static void log_ticks(const struct tnd_chart *chart, double low, double high, double base,
                      void (*tick)(const struct tnd_chart *chart, double value))
{
    static const double parts[] = {1.0, 2.0, 5.0};
    double powers = log(high / low) / log(base);
    int step = (int)ceil(powers / (base == 2.0 && high >= 9999.5 ? 6.0 : 8.0)); /* long labels */
    bool between = base == 10.0 && powers < 2.2;
    int first = (int)ceil(log(low) / log(base) - 1.0);
    int last = (int)floor(log(high) / log(base) + 1e-9);
    for (int power = first; power <= last; power++) {
        for (int i = 0; i < (between ? 3 : 1); i++) {
            double value = pow(base, power) * parts[i];
            if (power % step == 0 && value >= low * 0.9999 && value <= high * 1.0001) {
                tick(chart, value);
            }
        }
    }
}

static void linear_ticks(const struct tnd_chart *chart, double low, double high, double least,
                         void (*tick)(const struct tnd_chart *chart, double value))
{
    double step = fmax(nice_below((high - low) / 3.0), least);
    for (int i = 0; i < 12; i++) {
        double value = (ceil(low / step - 1e-9) + i) * step;
        if (value <= high * 1.0001) {
            tick(chart, value == 0.0 ? 0.0 : value);
        }
    }
}

/* A logarithmic axis over less than this factor has equidistant ticks. */
#define NARROW 6.0

static void axes(struct tnd_chart *chart)
{
    struct tnd_text *out = &chart->report->out;
    if (chart->log_x && chart->x1 > NARROW * chart->x0) {
        log_ticks(chart, chart->x0, chart->x1, 2.0, x_tick);
    } else {
        linear_ticks(chart, chart->x0, chart->x1, 1.0, x_tick);
    }
    if (chart->log_y && chart->y1 > NARROW * chart->y0) {
        log_ticks(chart, chart->y0, chart->y1, 10.0, y_tick);
    } else {
        linear_ticks(chart, chart->y0, chart->y1, 0.0, y_tick);
    }
    tnd_text_printf(out, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
                    WIDTH - RIGHT);
    tnd_text_printf(out, "<text class=\"mid name\" x=\"%d\" y=\"%d\">%s</text>\n",
                    (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, chart->x_title);
    tnd_text_printf(out, "<text class=\"name\" x=\"2\" y=\"11\">%s</text>\n", chart->y_title);
}

/* ---- figures ---- */

int tnd_figure_text_width(const char *text)
{
    int width = 0;
    for (const char *at = text; *at != '\0'; at++) {
        width += ((unsigned char)*at & 0xC0) != 0x80 ? 9 : 0; /* no continuation bytes */
    }
    return width;
}

void tnd_figure_begin(struct tnd_report *report, int width, int height, const char *title,
                      const char *text)
{
    report->n_charts++;
    tnd_text_printf(&report->out, "<figure>\n<svg role=\"img\" viewBox=\"0 0 %d %d\" aria-label=\"",
                    width, height);
    tnd_text_add(&report->out, title);
    tnd_text_add(&report->out, "\"><title>");
    tnd_text_add(&report->out, title);
    tnd_text_add(&report->out, "</title><desc>");
    tnd_text_add(&report->out, text);
    tnd_text_add(&report->out, "</desc>\n");
}

void tnd_figure_end(struct tnd_report *report, const char *title, const char *legend,
                    const char *note)
{
    struct tnd_text *out = &report->out;
    tnd_text_add(out, "</svg>\n<figcaption><b>");
    tnd_text_add(out, title);
    tnd_text_add(out, "</b> ");
    tnd_text_add(out, legend);
    if (note != NULL && note[0] != '\0') {
        tnd_text_add(out, "<span class=\"note\">");
        tnd_text_add(out, note);
        tnd_text_add(out, "</span>");
    }
    tnd_text_add(out, "</figcaption>\n</figure>\n");
}

void tnd_chart_begin(struct tnd_chart *chart, const char *title, const char *text)
{
    if (!chart->has_range) {
        chart->x0 = chart->x1 = chart->y0 = chart->y1 = 1.0;
    }
    widen(chart->log_x, 0.03, &chart->x0, &chart->x1);
    double low = chart->y0;
    widen(chart->log_y, 0.06, &chart->y0, &chart->y1);
    chart->y0 = !chart->log_y && low >= 0.0 ? 0.0 : chart->y0;
    tnd_figure_begin(chart->report, WIDTH, HEIGHT, title, text);
    axes(chart);
}

void tnd_chart_band(struct tnd_chart *chart, int style, const double *x, const double *low,
                    const double *high, int n)
{
    struct tnd_text *out = &chart->report->out;
    bool any = false;
    for (int i = 0; i < 2 * n; i++) {
        int at = i < n ? i : 2 * n - 1 - i;
        double y = i < n ? high[at] : low[at];
        if (can_show(chart, x[at], high[at])) {
            tnd_text_printf(out, any ? "L" : "<path class=\"band s%d%s\" d=\"M", style,
                            look_of(chart));
            add_place(chart, x[at], y);
            any = true;
        }
    }
    tnd_text_add(out, any ? "Z\"/>\n" : "");
}

void tnd_chart_line(struct tnd_chart *chart, int style, const double *x, const double *y, int n)
{
    struct tnd_text *out = &chart->report->out;
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (can_show(chart, x[i], y[i])) {
            tnd_text_printf(out, any ? "L" : "<path class=\"line s%d%s\" d=\"M", style,
                            look_of(chart));
            add_place(chart, x[i], y[i]);
            any = true;
        }
    }
    tnd_text_add(out, any ? "\"/>\n" : "");
}

void tnd_chart_marks(struct tnd_chart *chart, int style, const double *x, const double *y, int n)
{
    struct tnd_text *out = &chart->report->out;
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (can_show(chart, x[i], y[i])) {
            tnd_text_printf(out, any ? "M" : "<path class=\"mark s%d%s\" d=\"M", style,
                            look_of(chart));
            add_place(chart, x[i], y[i]);
            tnd_text_add(out, markers[style]);
            any = true;
        }
    }
    tnd_text_add(out, any ? "\"/>\n" : "");
}

void tnd_chart_hollow(struct tnd_chart *chart, int style, double x, double y)
{
    if (can_show(chart, x, y)) {
        tnd_text_printf(&chart->report->out, "<path class=\"mark hollow s%d%s\" d=\"M", style,
                        look_of(chart));
        add_place(chart, x, y);
        tnd_text_printf(&chart->report->out, "%s\"/>\n", markers[style]);
    }
}

void tnd_chart_ring(struct tnd_chart *chart, int style, double x, double y)
{
    if (can_show(chart, x, y)) {
        tnd_text_printf(&chart->report->out, "<path class=\"ring s%d%s\" d=\"M", style,
                        look_of(chart));
        add_place(chart, x, y);
        tnd_text_add(&chart->report->out, "m-8 0a8 8 0 1 0 16 0a8 8 0 1 0-16 0z\"/>\n");
    }
}

void tnd_chart_guide(struct tnd_chart *chart, double x0, double y0, double x1, double y1)
{
    if (can_show(chart, x0, y0) && can_show(chart, x1, y1)) {
        tnd_text_add(&chart->report->out, "<path class=\"guide\" d=\"M");
        add_place(chart, x0, y0);
        tnd_text_add(&chart->report->out, "L");
        add_place(chart, x1, y1);
        tnd_text_add(&chart->report->out, "\"/>\n");
    }
}

void tnd_chart_label(struct tnd_chart *chart, double x, double y, const char *label)
{
    struct tnd_text *out = &chart->report->out;
    if (can_show(chart, x, y)) {
        tnd_text_add(out, "<text class=\"crosses end\" x=\"");
        tnd_emit_number(out, 0, 1, x_of(chart, x));
        tnd_text_add(out, "\" y=\"");
        tnd_emit_number(out, 0, 1, y_of(chart, y) - 4.0);
        tnd_text_printf(out, "\">%s</text>\n", label);
    }
}

void tnd_chart_vertical(struct tnd_chart *chart, double x, const char *label, int row)
{
    struct tnd_text *out = &chart->report->out;
    double at = x_of(chart, x);
    bool left = at > WIDTH - 90;
    tnd_text_add(out, "<path class=\"cross\" d=\"M");
    tnd_emit_number(out, 0, 1, at);
    tnd_text_printf(out, " %dV%d\"/><text class=\"crosses%s\" x=\"", TOP, HEIGHT - BOTTOM,
                    left ? " end" : "");
    tnd_emit_number(out, 0, 1, left ? at - 4.0 : at + 4.0);
    tnd_text_printf(out, "\" y=\"%d\">", TOP + 11 + 13 * (row % 4));
    tnd_text_add(out, label);
    tnd_text_add(out, "</text>\n");
}

void tnd_chart_legend(struct tnd_chart *chart, int style, const char *name, const char *suffix)
{
    tnd_text_printf(
        &chart->legend,
        "<span class=\"key\"><svg viewBox=\"0 0 34 12\" aria-hidden=\"true\">"
        "<path class=\"line s%d%s\" d=\"M1 6H33\"/><path class=\"mark s%d%s\" d=\"M17 6%s\"/>"
        "</svg>",
        style, look_of(chart), style, look_of(chart), markers[style]);
    tnd_report_escape(&chart->legend, name);
    tnd_text_add(&chart->legend, suffix);
    tnd_text_add(&chart->legend, "</span> ");
}

void tnd_chart_end(struct tnd_chart *chart, const char *title, const char *note)
{
    chart->report->out.failed = chart->report->out.failed || chart->legend.failed;
    tnd_figure_end(chart->report, title, tnd_text_string(&chart->legend), note);
    tnd_text_fini(&chart->legend);
}
