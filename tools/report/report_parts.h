/* SPDX-License-Identifier: MIT
 * What the files of the HTML report share: the report itself, its sections, and how names, numbers
 * and colours are written. Nobody outside report_*.c includes it. */
#ifndef TND_REPORT_PARTS_H
#define TND_REPORT_PARTS_H

#include "base/text.h"
#include "tools/report/analyze_data.h"
#include "tools/report/report_html.h"

enum {
    TND_REPORT_STYLES = 12,  /* colour, dash and marker of a profile */
    TND_REPORT_CHARTS = 240, /* more of them no reader looks at: the page says what it left out */
    TND_REPORT_COUNTS = 64   /* thread counts of one stage */
};

struct tnd_report {
    struct tnd_text out;
    int n_sources;
    const struct tnd_report_source *sources;
    struct tnd_analyses *analyses; /* [n_sources] */
    int n_charts;
    int n_left_out;
};

/* ---- sections: report_html_*.c ---- */

void tnd_report_style_sheet(struct tnd_text *out);
void tnd_report_headline(struct tnd_report *report);
void tnd_report_words(struct tnd_report *report);
void tnd_report_heat(struct tnd_report *report, int source);
void tnd_report_curves(struct tnd_report *report, const struct tnd_analysis *a);
void tnd_report_threads(struct tnd_report *report, const struct tnd_analysis *a);
void tnd_report_shares(struct tnd_report *report, const struct tnd_analysis *a);
void tnd_report_transfer_shares(struct tnd_report *report, const struct tnd_analysis *a);
void tnd_report_roof(struct tnd_report *report, int source);
void tnd_report_moves(struct tnd_report *report, int source);
void tnd_report_calibration(struct tnd_report *report, int source);
void tnd_report_numbers(struct tnd_report *report, const struct tnd_analysis *a);
void tnd_report_compare(struct tnd_report *report);
void tnd_report_lanes(struct tnd_report *report, const struct tnd_trace_run *run);

/* ---- what they find: report_find.c ---- */

/** Whether a and b are of one shape and weight type. */
bool tnd_report_same_shape(const struct tnd_analysis *a, const struct tnd_analysis *b);
/** Whether no analysis in front of this one is of its weight type. */
bool tnd_report_is_first_of_type(const struct tnd_analyses *analyses, int i);
/** The analysis with the most threads, and among those with the most points, of a type that has
 *  one at least. */
const struct tnd_analysis *tnd_report_longest(const struct tnd_analyses *analyses,
                                              enum tandem_type type);
/** First analysis behind `first` that is of another shape. */
int tnd_report_shape_end(const struct tnd_analyses *analyses, int first);
/** Time of the fastest profile at a point. */
double tnd_report_best(const struct tnd_analysis *a, int point);
/** Cells with any of these bits of enum tnd_analysis_mark. */
int64_t tnd_report_marks(const struct tnd_analysis *a, unsigned bits);
/** Index of M among the points, or -1. */
int tnd_report_point_of(const struct tnd_analysis *a, int64_t m);
/** Whether the lead of the fastest is within what both times may be off. */
bool tnd_report_within_noise(const struct tnd_analysis *a, int point);
/** Whether at some point another profile than the one to keep (tnd_crossovers) is the fastest. */
bool tnd_report_is_near(const struct tnd_analysis *a);
/** The same (first, last) M and thread counts in ascending order that were measured for a type;
 *  sums of the fastest times over the shapes, in microseconds, go to out_us. Returns how many. */
int tnd_report_total_us(const struct tnd_analyses *analyses, enum tandem_type type, bool last_m,
                        int out_counts[TND_REPORT_COUNTS], double out_us[TND_REPORT_COUNTS]);
/** Index of the smallest thread count within 5 % of the fastest. */
int tnd_report_enough(const double *us, int n);

/* ---- writing: report_text.c ---- */

/** A heading with number and name of a table, where a report has several. */
void tnd_report_table_heading(struct tnd_report *report, int source);
/** Text for elements and attributes: markup characters escaped, what is no UTF-8 or no printable
 *  character replaced. */
void tnd_report_escape(struct tnd_text *out, const char *string);
/** Three significant digits without an exponent. */
void tnd_report_number(struct tnd_text *out, double value);
/** As tnd_report_number, with a unit: "12.3 us", "4 ms", "1.5 s". */
void tnd_report_time(struct tnd_text *out, double us);
/** "4096 x 11008, q4_0". */
void tnd_report_shape(struct tnd_text *out, const struct tnd_analysis *a);
void tnd_report_thread_count(struct tnd_text *out, const struct tnd_analysis *a);
/** Style of a profile: one name has one style on the whole page. */
int tnd_report_style(const struct tnd_report *report, const char *profile);
/** Whether one more chart fits; counts what does not. */
bool tnd_report_fits(struct tnd_report *report);

#endif
