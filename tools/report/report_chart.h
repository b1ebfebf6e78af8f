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
    const char *look; /* classes beside the style: " plain" where no profile is drawn, whose colours
                         are taken; " thin"; NULL: none */
    double x0, x1, y0, y1; /* the range of the data, see tnd_chart_include */
    bool has_range;
    struct tnd_text legend;
};

/** Widens the range; what a logarithmic axis cannot show is passed over. */
void tnd_chart_include(struct tnd_chart *chart, double x, double y);
/** Opens a figure. `title` and `text` (what the chart shows, in words) are markup. */
void tnd_chart_begin(struct tnd_chart *chart, const char *title, const char *text);
void tnd_chart_band(struct tnd_chart *chart, int style, const double *x, const double *low,
                    const double *high, int n);
void tnd_chart_line(struct tnd_chart *chart, int style, const double *x, const double *y, int n);
/** Markers of a style at the points. */
void tnd_chart_marks(struct tnd_chart *chart, int style, const double *x, const double *y, int n);
/** A hollow marker over that of a point: it is not to be trusted. */
void tnd_chart_hollow(struct tnd_chart *chart, int style, double x, double y);
/** A ring around a point. */
void tnd_chart_ring(struct tnd_chart *chart, int style, double x, double y);
/** A plain line that is no profile: ideal scaling, ratio 1. */
void tnd_chart_guide(struct tnd_chart *chart, double x0, double y0, double x1, double y1);
/** A word that ends above a point. */
void tnd_chart_label(struct tnd_chart *chart, double x, double y, const char *label);
/** A vertical line with a label; `row` 0, 1, .. keeps neighbours apart. */
void tnd_chart_vertical(struct tnd_chart *chart, double x, const char *label, int row);
/** A line of the legend; `name` is not trusted. */
void tnd_chart_legend(struct tnd_chart *chart, int style, const char *name, const char *suffix);
/** Closes the figure with its caption: title, legend, note (markup, may be NULL). */
void tnd_chart_end(struct tnd_chart *chart, const char *title, const char *note);

/** What a line of text takes at most, in units of a figure that is 420 wide, on a phone too. */
int tnd_figure_text_width(const char *text);
/** A figure of any other kind: opens <svg> of this size with title and description. */
void tnd_figure_begin(struct tnd_report *report, int width, int height, const char *title,
                      const char *text);
void tnd_figure_end(struct tnd_report *report, const char *title, const char *legend,
                    const char *note);

#endif
