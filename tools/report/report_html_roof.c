/* SPDX-License-Identifier: MIT
 * Rooflines (Williams, Waterman & Patterson 2009, doi:10.1145/1498765.1498785) of a weight type:
 * the speed of its products, and the bounds by the machine's peaks. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/report/report_chart.h"

enum { N_UNITS = 3 };
static const char *const units[N_UNITS] = {"fma", "bf16", "int8"};
static const char *const unit_names[N_UNITS] = {"FMA", "bf16", "int8"};

struct roof {
    double read;           /* 1e9 bytes a second; 0: not measured */
    double peaks[N_UNITS]; /* 1e9 operations a second; 0: not measured, or not usable by the type */
    double highest;
};

/* All shapes of one profile: `n` points over the operations per byte of weights. */
struct speeds {
    const char *profile;
    int n;
    double *x, *us, *speed, *slowest, *fastest; /* in one allocation */
};
enum { ROWS = 5 };

static bool is_of_host(const struct tnd_table_profile *profile)
{
    const uint8_t kind = profile->stage[TANDEM_STAGE_COMPUTE].kind;
    return kind == TANDEM_KIND_CPU || kind == TANDEM_KIND_OPENBLAS || kind == TANDEM_KIND_HOST;
}

static struct roof roof_of(const struct tandem_table *table, enum tandem_type type, int threads)
{
    struct roof roof = {.read = tnd_table_peak(table, "read", threads)};
    const int not_for_it = tandem_type_is_quantized(type) ? 1 : 2;
    for (int i = 0; i < N_UNITS; i++) {
        roof.peaks[i] = i == not_for_it ? 0 : tnd_table_peak(table, units[i], threads);
        roof.highest = fmax(roof.highest, roof.peaks[i]);
    }
    return roof;
}

/* Operations of a product of M tokens per byte of its weights. */
static double intensity(enum tandem_type type, int64_t m)
{
    const int64_t k = tandem_type_block_values(type);
    return 2.0 * (double)k * (double)m / (double)tandem_type_row_bytes(type, k);
}

/* Adds one shape at the M of `like`. */
static void add_shape(const struct tnd_analysis *like, const struct tnd_analysis *a, int profile,
                      struct speeds *out)
{
    for (int i = 0; i < like->n_points; i++) {
        const int point = tnd_report_point_of(a, like->m[i]);
        const double us = point < 0 ? 0 : a->times[profile * a->n_points + point];
        const double operations = 2.0 * (double)a->n * (double)a->k * (double)like->m[i];
        if (us > 0) {
            const double speed = operations / us * 1e-3;
            out->slowest[i] = out->us[i] > 0 ? fmin(out->slowest[i], speed) : speed;
            out->fastest[i] = fmax(out->fastest[i], speed);
            out->speed[i] += operations;
            out->us[i] += us;
        }
    }
}

static void sum_up(const struct tnd_analyses *analyses, const struct tnd_analysis *like,
                   struct speeds *out)
{
    memset(out->x, 0, (size_t)like->n_points * ROWS * sizeof(*out->x));
    out->n = 0;
    for (int i = 0; i < analyses->n; i++) {
        const struct tnd_analysis *a = &analyses->list[i];
        for (int p = 0; p < a->n_profiles; p++) {
            if (a->type == like->type && a->threads == like->threads &&
                strcmp(a->profiles[p]->name, out->profile) == 0) {
                add_shape(like, a, p, out);
            }
        }
    }
    for (int i = 0; i < like->n_points; i++) {
        if (out->us[i] > 0) {
            out->x[out->n] = intensity(like->type, like->m[i]);
            out->slowest[out->n] = out->slowest[i];
            out->fastest[out->n] = out->fastest[i];
            out->speed[out->n++] = out->speed[i] / out->us[i] * 1e-3; /* (speed held operations) */
        }
    }
}

static void draw_roof(struct tnd_chart *chart, const struct roof *roof, struct tnd_text *note)
{
    const double first = chart->x0;
    const double last = chart->x1;
    const char *between = "Roofs: ";
    for (int i = 0; i < N_UNITS; i++) {
        const double peak = roof->peaks[i];
        if (peak > 0) {
            const double ridge = roof->read > 0 ? peak / roof->read : first;
            tnd_chart_guide(chart, fmin(fmax(ridge, first), last), peak, last, peak);
            tnd_chart_label(chart, last, peak, unit_names[i]);
            tnd_text_printf(note, "%s%s ", between, unit_names[i]);
            tnd_report_number(note, peak);
            tnd_text_add(note, " GOP/s");
            between = ", ";
        }
    }
    if (roof->read > 0) {
        const double top = roof->highest > 0 ? fmin(last, roof->highest / roof->read) : last;
        if (top > first) {
            const double middle = sqrt(first * top);
            tnd_chart_guide(chart, first, first * roof->read, top, top * roof->read);
            tnd_chart_label(chart, middle, middle * roof->read, "reading");
        }
        tnd_text_printf(note, "%sreading ", between);
        tnd_report_number(note, roof->read);
        tnd_text_add(note, " GB/s");
    }
    tnd_text_add(note, roof->read > 0 && roof->highest > 0 ? "."
                       : roof->read > 0 ? "; the peaks of computing were not measured."
                                        : "; the speed of reading was not measured.");
}

/* Adds one profile to the chart's range. */
static void include(struct tnd_chart *chart, const struct speeds *speeds)
{
    for (int i = 0; i < speeds->n; i++) {
        tnd_chart_include(chart, speeds->x[i], speeds->slowest[i]);
        tnd_chart_include(chart, speeds->x[i], speeds->fastest[i]);
    }
}

static void draw_profile(struct tnd_chart *chart, const struct speeds *speeds)
{
    if (speeds->n > 0) {
        const int style = tnd_report_style(chart->report, speeds->profile);
        tnd_chart_band(chart, style, speeds->x, speeds->slowest, speeds->fastest, speeds->n);
        tnd_chart_line(chart, style, speeds->x, speeds->speed, speeds->n);
        tnd_chart_marks(chart, style, speeds->x, speeds->speed, speeds->n);
        tnd_chart_legend(chart, style, speeds->profile, "");
    }
}

/* Includes or draws each profile of the host. */
static void each_profile(struct tnd_chart *chart, const struct tnd_analyses *analyses,
                         const struct tnd_analysis *like, struct speeds *speeds, bool draws)
{
    for (int p = 0; p < like->table->n_profiles; p++) {
        if (is_of_host(&like->table->profiles[p])) {
            speeds->profile = like->table->profiles[p].name;
            sum_up(analyses, like, speeds);
            if (draws) {
                draw_profile(chart, speeds);
            } else {
                include(chart, speeds);
            }
        }
    }
}

static void chart_of(struct tnd_report *report, const struct tnd_analyses *analyses,
                     const struct tnd_analysis *like, struct speeds *speeds)
{
    struct tnd_chart chart = {.report = report,
                              .x_title = "operations for each byte of weights",
                              .y_title = "GOP/s",
                              .log_x = true,
                              .log_y = true};
    each_profile(&chart, analyses, like, speeds, false);
    if (!chart.has_range) {
        return; /* only devices, whose peaks are not measured */
    }
    const struct roof roof = roof_of(like->table, like->type, like->threads);
    tnd_chart_include(&chart, chart.x1, roof.highest);
    tnd_chart_include(&chart, chart.x0, chart.x0 * roof.read);
    struct tnd_text title = TND_TEXT_INIT;
    struct tnd_text note = TND_TEXT_INIT;
    tnd_text_printf(&title, "Roofline, weights %s, ", tandem_type_name(like->type));
    tnd_report_thread_count(&title, like);
    tnd_chart_begin(&chart, tnd_text_string(&title),
                    "Both axes are logarithmic. One marker an M, all shapes together; the band "
                    "goes from the slowest shape to the fastest. Dotted: what the measured peaks "
                    "allow.");
    each_profile(&chart, analyses, like, speeds, true);
    draw_roof(&chart, &roof, &note);
    report->out.failed = report->out.failed || title.failed || note.failed;
    tnd_chart_end(&chart, tnd_text_string(&title), tnd_text_string(&note));
    tnd_text_fini(&title);
    tnd_text_fini(&note);
}

void tnd_report_roof(struct tnd_report *report, int source)
{
    const struct tnd_analyses *analyses = &report->analyses[source];
    const struct tandem_table *table = report->sources[source].table;
    if (tnd_table_peak(table, "fma", 1) == 0 && tnd_table_peak(table, "read", 1) == 0) {
        tnd_text_add(&report->out, "<p class=\"soft\">No rooflines: this table has no peaks of its "
                                   "machine. mulmat-tune bench measures them.</p>\n");
        return;
    }
    for (int i = 0; i < analyses->n; i++) {
        if (!tnd_report_is_first_of_type(analyses, i) || !tnd_report_fits(report)) {
            continue;
        }
        const struct tnd_analysis *like = tnd_report_longest(analyses, analyses->list[i].type);
        const size_t n = (size_t)like->n_points;
        double *room = tnd_calloc(n * ROWS, sizeof(*room));
        if (room == NULL) {
            report->out.failed = true;
            return;
        }
        struct speeds speeds = {.x = room,
                                .us = room + n,
                                .speed = room + 2 * n,
                                .slowest = room + 3 * n,
                                .fastest = room + 4 * n};
        chart_of(report, analyses, like, &speeds);
        tnd_free(room);
    }
}
