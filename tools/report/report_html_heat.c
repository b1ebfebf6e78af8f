/* SPDX-License-Identifier: MIT
 * Heat maps: the fastest profile for each shape and M, one map per weight type and thread count. */
#include <inttypes.h>

#include "base/emit.h"
#include "tools/report/report_chart.h"

enum { WIDTH = 420, LEAST_LEFT = 80, ROW = 24, TOP = 22, MAX_COLUMNS = 11, MAX_ROWS = 64 };

struct map {
    const struct tnd_analysis *rows[MAX_ROWS];
    int n_rows;
    int64_t m[MAX_COLUMNS];
    int n_columns;
    bool has_blanks; /* some cells were not measured */
};

static void add_shape(struct tnd_text *out, const struct tnd_analysis *a)
{
    tnd_text_printf(out, "%" PRId64 " \u00d7 %" PRId64, a->n, a->k);
}

static int left_of(const struct map *map)
{
    int left = LEAST_LEFT;
    for (int r = 0; r < map->n_rows; r++) {
        struct tnd_text shape = TND_TEXT_INIT;
        add_shape(&shape, map->rows[r]);
        const int width = tnd_figure_text_width(tnd_text_string(&shape)) + 6;
        left = width > left ? width : left;
        tnd_text_fini(&shape);
    }
    return left;
}

/* The M of the row with the most points, evenly thinned out; in most tables all rows have the
 * same. */
static void choose_columns(struct map *map)
{
    const struct tnd_analysis *most = map->rows[0];
    for (int r = 1; r < map->n_rows; r++) {
        most = map->rows[r]->n_points > most->n_points ? map->rows[r] : most;
    }
    map->n_columns = most->n_points < MAX_COLUMNS ? most->n_points : MAX_COLUMNS;
    for (int c = 0; c < map->n_columns; c++) {
        int at = map->n_columns == 1
                     ? 0
                     : (int)((int64_t)c * (most->n_points - 1) / (map->n_columns - 1));
        map->m[c] = most->m[at];
    }
}

static void add_lead(struct tnd_text *out, const struct tnd_analysis *a, int point)
{
    int winner = tnd_winner(a->times, a->n_profiles, a->n_points, point);
    double best = tnd_report_best(a, point);
    double second = 0.0;
    for (int p = 0; p < a->n_profiles; p++) {
        double us = a->times[p * a->n_points + point];
        second = p != winner && (second == 0.0 || us < second) ? us : second;
    }
    if (second > 0.0 && best > 0.0) {
        tnd_text_add(out, ", the next takes ");
        tnd_report_number(out, second / best);
        tnd_text_add(out, " times as long");
    }
    tnd_text_add(out, tnd_report_within_noise(a, point) ? " (within noise)" : "");
}

static bool cell(struct tnd_report *report, const struct tnd_analysis *a, int64_t m, double x,
                 double width, int y, unsigned *seen)
{
    struct tnd_text *out = &report->out;
    int point = tnd_report_point_of(a, m);
    if (point < 0) {
        return false;
    }
    const char *name = a->profiles[tnd_winner(a->times, a->n_profiles, a->n_points, point)]->name;
    int style = tnd_report_style(report, name);
    *seen |= 1u << style;
    tnd_text_printf(out, "<g><title>");
    tnd_report_shape(out, a);
    tnd_text_printf(out, ", M = %" PRId64 ": ", m);
    tnd_report_escape(out, name);
    add_lead(out, a, point);
    tnd_text_printf(out, "</title><rect class=\"cell s%d%s\" y=\"%d\" height=\"%d\" x=\"", style,
                    tnd_report_within_noise(a, point) ? " noise" : "", y, ROW);
    tnd_emit_number(out, 0, 1, x);
    tnd_text_add(out, "\" width=\"");
    tnd_emit_number(out, 0, 1, width);
    tnd_text_add(out, "\"/><text class=\"letter\" x=\"");
    tnd_emit_number(out, 0, 1, x + width / 2.0);
    tnd_text_printf(out, "\" y=\"%d\">%c%s</text></g>\n", y + 16, 'A' + style,
                    tnd_report_within_noise(a, point) ? "~" : "");
    return true;
}

static void legend(struct tnd_report *report, const struct tandem_table *table, unsigned seen,
                   struct tnd_text *out)
{
    for (int p = 0; p < table->n_profiles; p++) {
        int style = tnd_report_style(report, table->profiles[p].name);
        if ((seen >> style & 1u) != 0) {
            tnd_text_printf(out,
                            "<span class=\"key\"><svg viewBox=\"0 0 34 12\" aria-hidden=\"true\">"
                            "<rect class=\"cell s%d\" x=\"6\" width=\"22\" height=\"12\"/><text "
                            "class=\"letter\" x=\"17\" y=\"10\">%c</text></svg>",
                            style, 'A' + style);
            tnd_report_escape(out, table->profiles[p].name);
            tnd_text_add(out, "</span> ");
        }
    }
}

static void draw(struct tnd_report *report, struct map *map)
{
    struct tnd_text *out = &report->out;
    const struct tnd_analysis *first = map->rows[0];
    const int left = left_of(map);
    choose_columns(map);
    struct tnd_text title = TND_TEXT_INIT;
    tnd_text_printf(&title, "Fastest profile, %s, ", tandem_type_name(first->type));
    tnd_report_thread_count(&title, first);
    tnd_figure_begin(report, WIDTH, TOP + map->n_rows * ROW + 4, tnd_text_string(&title),
                     "Rows are shapes N x K, columns are M. The letter names the fastest profile.");
    double width = (double)(WIDTH - left - 2) / map->n_columns;
    unsigned seen = 0;
    tnd_text_printf(out, "<text class=\"end\" x=\"%d\" y=\"15\">N \u00d7 K, M:</text>", left - 6);
    for (int c = 0; c < map->n_columns; c++) {
        tnd_text_add(out, "<text class=\"mid\" y=\"15\" x=\"");
        tnd_emit_number(out, 0, 1, left + width * (c + 0.5));
        tnd_text_printf(out, "\">%" PRId64 "</text>", map->m[c]);
    }
    for (int r = 0; r < map->n_rows; r++) {
        const struct tnd_analysis *a = map->rows[r];
        int y = TOP + r * ROW;
        tnd_text_printf(out, "\n<text class=\"end row\" x=\"%d\" y=\"%d\">", left - 6, y + 16);
        add_shape(out, a);
        tnd_text_add(out, "</text>\n");
        for (int c = 0; c < map->n_columns; c++) {
            const double x = left + width * c;
            map->has_blanks = !cell(report, a, map->m[c], x, width, y, &seen) || map->has_blanks;
        }
    }
    struct tnd_text keys = TND_TEXT_INIT;
    legend(report, first->table, seen, &keys);
    out->failed = out->failed || title.failed || keys.failed;
    tnd_figure_end(report, tnd_text_string(&title), tnd_text_string(&keys),
                   map->has_blanks
                       ? "Pale with ~: the lead is within the noise. Blank: not measured."
                       : "Pale with ~: the lead is within the noise.");
    tnd_text_fini(&title);
    tnd_text_fini(&keys);
}

void tnd_report_heat(struct tnd_report *report, int source)
{
    const struct tnd_analyses *analyses = &report->analyses[source];
    for (int i = 0; i < analyses->n; i++) {
        const struct tnd_analysis *first = &analyses->list[i];
        bool done = false;
        for (int j = 0; j < i && !done; j++) {
            const struct tnd_analysis *before = &analyses->list[j];
            done = before->type == first->type && before->threads == first->threads;
        }
        if (done || !tnd_report_fits(report)) {
            continue;
        }
        struct map map = {.n_rows = 0};
        for (int j = i; j < analyses->n && map.n_rows < MAX_ROWS; j++) {
            const struct tnd_analysis *a = &analyses->list[j];
            if (a->type == first->type && a->threads == first->threads) {
                map.rows[map.n_rows++] = a;
            }
        }
        draw(report, &map);
    }
}
