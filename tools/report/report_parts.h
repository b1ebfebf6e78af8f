/* SPDX-License-Identifier: MIT
 * Shared by the files of the HTML report: the report, its sections, and how names, numbers and
 * colours are written. Only report_*.c include it. */
#ifndef TND_REPORT_PARTS_H
#define TND_REPORT_PARTS_H

#include "base/text.h"
#include "tools/report/analyze_data.h"
#include "tools/report/report_html.h"

enum {
    TND_REPORT_STYLES = 12,  /* colours, dashes and markers of profiles */
    TND_REPORT_CHARTS = 240, /* at most; the page says what it left out */
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

/* ---- queries: report_find.c ---- */

/** Whether a and b are of one shape and weight type. */
bool tnd_report_same_shape(const struct tnd_analysis *a, const struct tnd_analysis *b);
/** Whether this analysis is the first of its weight type. */
bool tnd_report_is_first_of_type(const struct tnd_analyses *analyses, int i);
/** The analysis with the most threads, then with the most points, of a type that has at least
 * one. */
const struct tnd_analysis *tnd_report_longest(const struct tnd_analyses *analyses,
                                              enum tandem_type type);
/** Index of the first analysis after `first` with another shape. */
int tnd_report_shape_end(const struct tnd_analyses *analyses, int first);
/** Time of the fastest profile at a point. */
double tnd_report_best(const struct tnd_analysis *a, int point);
/** Number of cells with any of these bits of enum tnd_analysis_mark. */
int64_t tnd_report_marks(const struct tnd_analysis *a, unsigned bits);
/** Index of M among the points, or -1. */
int tnd_report_point_of(const struct tnd_analysis *a, int64_t m);
/** Whether the lead of the fastest profile is within the errors of both times. */
bool tnd_report_within_noise(const struct tnd_analysis *a, int point);
/** Whether, at some point, the fastest profile is not the one to keep (tnd_crossovers). */
bool tnd_report_is_near(const struct tnd_analysis *a);
/** Sums of the fastest times over a type's shapes at the first (or last) M, for each measured
 * thread count, ascending: counts to out_counts, microseconds to out_us. Returns how many. */
int tnd_report_total_us(const struct tnd_analyses *analyses, enum tandem_type type, bool last_m,
                        int out_counts[TND_REPORT_COUNTS], double out_us[TND_REPORT_COUNTS]);
/** Index of the smallest thread count within 5 % of the fastest. */
int tnd_report_enough(const double *us, int n);

/* ---- writing: report_text.c ---- */

/** Adds a heading with number and name of a table, if the report has several. */
void tnd_report_table_heading(struct tnd_report *report, int source);
/** Escapes text for elements and attributes; invalid UTF-8 and unprintable characters are
 * replaced. */
void tnd_report_escape(struct tnd_text *out, const char *string);
/** Adds three significant digits without an exponent. */
void tnd_report_number(struct tnd_text *out, double value);
/** Like tnd_report_number, with a unit: "12.3 us", "4 ms", "1.5 s". */
void tnd_report_time(struct tnd_text *out, double us);
/** Adds "4096 x 11008, q4_0". */
void tnd_report_shape(struct tnd_text *out, const struct tnd_analysis *a);
void tnd_report_thread_count(struct tnd_text *out, const struct tnd_analysis *a);
/** Style of a profile; a name has the same style on the whole page. */
int tnd_report_style(const struct tnd_report *report, const char *profile);
/** Whether one more chart fits; counts those that do not. */
bool tnd_report_fits(struct tnd_report *report);

#endif
