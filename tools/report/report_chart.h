/* SPDX-License-Identifier: MIT
 * Line charts as SVG: axes with ticks, lines with markers, bands, vertical marks, a legend. */
#ifndef TND_REPORT_CHART_H
#define TND_REPORT_CHART_H

#include "tools/report/report_parts.h"

enum tnd_chart_unit { TND_CHART_NUMBER, TND_CHART_US, TND_CHART_PERCENT };

struct tnd_chart {
    struct tnd_report *report;
    const char *x_title;
    const char *y_title;
    enum tnd_chart_unit unit; /* of y */
    bool log_x, log_y;
    const char *look;      /* CSS classes besides the style: " plain" (no profile), " thin"; NULL:
                       * none */
    double x0, x1, y0, y1; /* the range of the data, see tnd_chart_include */
    bool has_range;
    struct tnd_text legend;
};

/** Widens the range; ignores values that a logarithmic axis cannot show. */
void tnd_chart_include(struct tnd_chart *chart, double x, double y);
/** Opens a figure. `title` and `text` (a description of the chart) are markup. */
void tnd_chart_begin(struct tnd_chart *chart, const char *title, const char *text);
void tnd_chart_band(struct tnd_chart *chart, int style, const double *x, const double *low,
                    const double *high, int n);
void tnd_chart_line(struct tnd_chart *chart, int style, const double *x, const double *y, int n);
/** Draws markers of a style at the points. */
void tnd_chart_marks(struct tnd_chart *chart, int style, const double *x, const double *y, int n);
/** Draws a hollow marker over a point that is not reliable. */
void tnd_chart_hollow(struct tnd_chart *chart, int style, double x, double y);
/** Draws a ring around a point. */
void tnd_chart_ring(struct tnd_chart *chart, int style, double x, double y);
/** Draws a plain line that is not a profile: ideal scaling, ratio 1. */
void tnd_chart_guide(struct tnd_chart *chart, double x0, double y0, double x1, double y1);
/** Writes a label that ends above a point. */
void tnd_chart_label(struct tnd_chart *chart, double x, double y, const char *label);
/** Draws a vertical line with a label; `row` 0, 1, ... keeps adjacent labels apart. */
void tnd_chart_vertical(struct tnd_chart *chart, double x, const char *label, int row);
/** Adds a line to the legend; `name` is untrusted. */
void tnd_chart_legend(struct tnd_chart *chart, int style, const char *name, const char *suffix);
/** Closes the figure with its caption: title, legend, note (markup, may be NULL). */
void tnd_chart_end(struct tnd_chart *chart, const char *title, const char *note);

/** Upper bound of a text's width, in units of a figure that is 420 wide, on a phone too. */
int tnd_figure_text_width(const char *text);
/** Opens another kind of figure: <svg> of this size with title and description. */
void tnd_figure_begin(struct tnd_report *report, int width, int height, const char *title,
                      const char *text);
void tnd_figure_end(struct tnd_report *report, const char *title, const char *legend,
                    const char *note);

#endif
