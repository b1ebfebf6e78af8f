/* SPDX-License-Identifier: MIT
 * The three formats of the analyze report. JSON and CSV are for programs: their keys and columns
 * are fixed in docs/table-format.md. */
#include "tools/report/analyze_data.h"
#include "tools/report/analyze_energy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "tools/report/report_parts.h"
#include "tools/report/scaling.h"

static double time_of(const struct tnd_analysis *a, int profile, int point)
{
    return a->times[profile * a->n_points + point];
}

static unsigned marks_of(const struct tnd_analysis *a, int profile, int point)
{
    return a->marks[profile * a->n_points + point];
}

static int winner_at(const struct tnd_analysis *a, int point)
{
    return tnd_winner(a->times, a->n_profiles, a->n_points, point);
}

/* ---- text ---- */

static void text_begin(struct tnd_text *out, const struct tandem_table *table,
                       const struct tnd_analyze_options *options, int n_types,
                       enum tandem_type first)
{
    tnd_text_printf(out, "Timing table %.200s", options->name != NULL ? options->name : "");
    if (table->model[0] != '\0') {
        tnd_text_printf(out, ", model %s", table->model);
    }
    if (n_types == 1) {
        tnd_text_printf(out, ", weights %s", tandem_type_name(first));
    }
    if (table->has_fingerprint && table->fingerprint.cpu_model[0] != '\0') {
        tnd_text_printf(out, "\nMeasured on %s (%s)", table->fingerprint.cpu_model,
                        table->fingerprint.isa);
    }
    tnd_text_add(out, "\nTimes in microseconds; * marks the fastest way for M tokens.\n");
    if (table->version == 1) {
        tnd_text_add(
            out,
            "Measured on one thread: for more, parallel stages are divided by their number.\n");
    }
}

/* Longer names are split before their last part: cpu+openblas, -panels. */
enum { COLUMN = 12 };

static int split_of(const char *name)
{
    int split = (int)strlen(name);
    for (int i = split - 1; i > 0 && split > COLUMN; i--) {
        split = name[i] == '-' || name[i] == '+' ? i : split;
    }
    return split;
}

static int column_width(const struct tnd_analysis *a, int profile)
{
    const char *name = a->profiles[profile]->name;
    const int head = split_of(name), tail = (int)strlen(name + head);
    const int width = head > tail ? head : tail;
    return width < COLUMN ? COLUMN : width;
}

static void text_add_heading(struct tnd_text *out, const struct tnd_analysis *a)
{
    bool has_tails = false;
    tnd_text_printf(out, "%8s", "M");
    for (int p = 0; p < a->n_profiles; p++) {
        const char *name = a->profiles[p]->name;
        tnd_text_printf(out, " %*.*s ", column_width(a, p), split_of(name), name);
        has_tails = has_tails || name[split_of(name)] != '\0';
    }
    if (has_tails) {
        tnd_text_printf(out, "\n%8s", "");
    }
    for (int p = 0; p < a->n_profiles && has_tails; p++) {
        const char *name = a->profiles[p]->name;
        tnd_text_printf(out, " %*s ", column_width(a, p), name + split_of(name));
    }
    tnd_text_add_char(out, '\n');
}

static void text_add_findings(struct tnd_text *out, const struct tnd_analysis *a)
{
    int64_t first = a->m[0];
    int64_t last = a->m[a->n_points - 1];
    const char *winner = a->profiles[winner_at(a, 0)]->name;
    if (a->n_profiles == 1) {
        tnd_text_printf(out, "  Only %s was measured.\n", winner);
        return;
    }
    if (a->n_exact == 0) {
        tnd_text_printf(out,
                        "  No crossover: %s wins at every M from %" PRId64 " to %" PRId64 ".\n",
                        winner, first, last);
    }
    for (int i = 0; i < a->n_exact; i++) {
        const struct tnd_crossover *crossover = &a->exact[i];
        const bool is_clear = tnd_crossover_is_clear(crossover);
        tnd_text_add(out, "  Crossover at M = ");
        tnd_emit_number(out, 0, 2, crossover->m);
        tnd_text_printf(out, ": from M = %" PRId64 " on %s is %sfaster than %s", crossover->first_m,
                        a->profiles[crossover->to]->name, is_clear ? "" : "not clearly ",
                        a->profiles[crossover->from]->name);
        if (!is_clear) {
            tnd_text_add(out, ": no difference, a lead of ");
            tnd_emit_number(out, 0, 1, 100 * crossover->lead);
            tnd_text_add(out, " % where chance makes ");
            tnd_emit_number(out, 0, 1, 100 * crossover->least_lead);
            tnd_text_add(out, " %");
        }
        tnd_text_add(out, ".\n");
    }
}

/* Adds "  Standard errors: 1.0 to 4.2 %." */
static void text_add_errors(struct tnd_text *out, const struct tnd_analysis *a)
{
    double least = INFINITY;
    double most = 0;
    for (int i = 0; i < a->n_profiles * a->n_points; i++) {
        const double share = a->times[i] > 0 ? 100 * a->errors[i] / a->times[i] : 0;
        least = share > 0 && share < least ? share : least;
        most = share > most ? share : most;
    }
    if (most > 0) {
        tnd_text_add(out, "  Standard errors of these times: ");
        tnd_emit_error(out, 0, least);
        tnd_text_add(out, " to ");
        tnd_emit_error(out, 0, most);
        tnd_text_add(out, " %.\n");
    }
}

/* Adds "  Noisy (spread above 8 % of the median): cpu at M = 8, 16.", one line per profile. */
static void text_add_marked(struct tnd_text *out, const struct tnd_analysis *a, unsigned bit,
                            const char *what)
{
    for (int p = 0; p < a->n_profiles; p++) {
        int n = 0;
        for (int i = 0; i < a->n_points; i++) {
            if ((marks_of(a, p, i) & bit) == 0) {
                continue;
            }
            if (n == 0) {
                tnd_text_printf(out, "  %s: %s at M = ", what, a->profiles[p]->name);
            }
            tnd_text_printf(out, "%s%" PRId64, n++ > 0 ? ", " : "", a->m[i]);
        }
        tnd_text_add(out, n > 0 ? ".\n" : "");
    }
}

static void text_add_wrong(struct tnd_text *out, const struct tnd_analysis *a)
{
    struct tnd_text names = TND_TEXT_INIT;
    if (tnd_analyses_add_wrong(a->table, a->type, ", ", tnd_text_add, &names)) {
        tnd_text_printf(out, "  Left out, since their results were wrong on this machine: %s.\n",
                        tnd_text_string(&names));
    }
    out->failed = out->failed || names.failed;
    tnd_text_fini(&names);
}

/* Adds each stage's share of the time in percent. */
static void text_add_shares(struct tnd_text *out, const struct tnd_analysis *a)
{
    int points[TND_SHARE_POINTS];
    const int n = tnd_share_points(a, points);
    tnd_text_printf(out, "  Shares in %%, of ");
    for (int s = 0; s < TND_SHARES; s++) {
        tnd_text_printf(out, "%s%s", s > 0 ? " / " : "", tnd_share_names[s]);
    }
    tnd_text_add(out, ":\n");
    for (int i = 0; i < n; i++) {
        tnd_text_printf(out, "%8" PRId64, a->m[points[i]]);
        for (int p = 0; p < a->n_profiles; p++) {
            double us[TND_SHARES];
            char shares[48];
            const double total = tnd_shares(a, p, points[i], us);
            int at = 0;
            for (int s = 0; s < TND_SHARES; s++) {
                at += snprintf(shares + at, sizeof(shares) - (size_t)at, "%s%.0f", s > 0 ? "/" : "",
                               total > 0 ? 100 * us[s] / total : 0.0);
            }
            tnd_text_printf(out, " %*s ", column_width(a, p), shares);
        }
        tnd_text_add_char(out, '\n');
    }
}

static void text_add_scaling(struct tnd_text *out, const struct tnd_analysis *a, int64_t m)
{
    struct tnd_stage_scaling lines[TND_SCALING_MAX];
    const int n = tnd_scalings(a, m, lines);
    if (n > 0) {
        tnd_text_printf(out, "  Thread scaling at M = %" PRId64 ", speed-up (efficiency):\n", m);
    }
    for (int l = 0; l < n; l++) {
        const struct tnd_stage_scaling *line = &lines[l];
        tnd_text_printf(out, "    %s %s:", line->profile->name, tnd_share_names[line->stage]);
        const int first = line->n > 1 ? 1 : 0; /* the first count is the base of the comparison */
        for (int i = first; i < line->n; i++) {
            tnd_text_printf(out, "%s %.0f thread%s ", i > first ? "," : "", line->counts[i],
                            line->counts[i] == 1 ? "" : "s");
            tnd_emit_number(out, 0, 2, tnd_scaling_gain(line, false, line->counts[i], line->us[i]));
            tnd_text_add(out, " (");
            tnd_emit_number(out, 0, 0,
                            100 * tnd_scaling_gain(line, true, line->counts[i], line->us[i]));
            tnd_text_add(out, " %)");
        }
        if (line->enough + 1 < line->n) { /* unknown at the last one: more might pay */
            tnd_text_printf(out, "; more than %.0f do not pay", line->counts[line->enough]);
        }
        tnd_text_add(out,
                     tnd_scaling_is_above_ideal(line) ? "; above ideal: noise or caches\n" : "\n");
    }
}

static void text_add_shape(struct tnd_text *out, const struct tnd_analysis *a)
{
    text_add_scaling(out, a, a->m[0]);
    if (a->n_points > 1) {
        text_add_scaling(out, a, a->m[a->n_points - 1]);
    }
}

static void text_add(struct tnd_text *out, const struct tnd_analysis *a, int index, int n_types)
{
    (void)index;
    tnd_text_printf(out, "\nN %" PRId64 " x K %" PRId64, a->n, a->k);
    if (n_types > 1) {
        tnd_text_printf(out, ", %s", tandem_type_name(a->type));
    }
    tnd_text_printf(out, ", %d thread%s%s\n", a->threads, a->threads == 1 ? "" : "s",
                    a->measured_threads ? "" : " (not measured, estimated)");
    text_add_heading(out, a);
    for (int i = 0; i < a->n_points; i++) {
        int winner = winner_at(a, i);
        tnd_text_printf(out, "%8" PRId64, a->m[i]);
        for (int p = 0; p < a->n_profiles; p++) {
            tnd_text_add_char(out, ' ');
            tnd_emit_number(out, column_width(a, p), 1, time_of(a, p, i));
            tnd_text_add_char(out, p == winner ? '*' : ' ');
        }
        tnd_text_add_char(out, '\n');
    }
    text_add_findings(out, a);
    text_add_errors(out, a);
    text_add_shares(out, a);
    tnd_analyze_energy_text(out, a);
    text_add_marked(out, a, TND_MARK_NOISY, "Noisy (spread above 8 % of the median)");
    text_add_marked(out, a, TND_MARK_STALE, "Stale (found wrong while programs ran)");
    text_add_marked(out, a, TND_MARK_CONTRADICTED,
                    "Contradicted, since more tokens took less (the time is fitted)");
    text_add_wrong(out, a);
}

static void text_end(struct tnd_text *out, const struct tnd_text *crossovers)
{
    (void)out;
    (void)crossovers;
}

const struct tnd_analyze_printer tnd_analyze_text = {text_begin, text_add, text_end, NULL,
                                                     text_add_shape};

/* ---- JSON ---- */

static void json_begin(struct tnd_text *out, const struct tandem_table *table,
                       const struct tnd_analyze_options *options, int n_types,
                       enum tandem_type first)
{
    tnd_text_add(out, "{\n  \"table\": ");
    tnd_emit_json_string(out, options->name != NULL ? options->name : "");
    tnd_text_printf(out, ",\n  \"version\": %d,\n  \"model\": ", table->version);
    tnd_emit_json_string(out, table->model);
    tnd_text_add(out, ",\n  \"type\": ");
    if (n_types == 1) {
        tnd_emit_json_string(out, tandem_type_name(first));
    } else {
        tnd_text_add(out, "null");
    }
    tnd_text_add(out, ",\n  \"profiles\": [");
    for (int p = 0; p < table->n_profiles; p++) {
        tnd_text_add(out, p > 0 ? ", " : "");
        tnd_emit_json_string(out, table->profiles[p].name);
    }
    tnd_text_add(out, "],\n  \"shapes\": [");
}

static void json_add_point(struct tnd_text *out, const struct tnd_analysis *a, int point)
{
    tnd_text_printf(out, "{\"m\": %" PRId64 ", \"winner\": ", a->m[point]);
    tnd_emit_json_string(out, a->profiles[winner_at(a, point)]->name);
    tnd_text_add(out, ", \"times\": {");
    for (int p = 0; p < a->n_profiles; p++) {
        static const char *const keys[TND_SHARES] = {"init_us", "compute_us", "finalize_us",
                                                     "transfer_us"};
        double us[TND_SHARES];
        tnd_text_add(out, p > 0 ? ", " : "");
        tnd_emit_json_string(out, a->profiles[p]->name);
        tnd_text_add(out, ": {\"total_us\": ");
        tnd_text_add_double(out, tnd_shares(a, p, point, us));
        for (int s = 0; s < TND_SHARES; s++) {
            tnd_text_printf(out, ", \"%s\": ", keys[s]);
            tnd_text_add_double(out, us[s]);
        }
        tnd_text_add(out, ", \"spread_us\": ");
        tnd_text_add_double(out, a->spreads[p * a->n_points + point]);
        tnd_text_add(out, ", \"error_us\": ");
        tnd_text_add_double(out, a->errors[p * a->n_points + point]);
        if (a->joules[p * a->n_points + point] > 0) {
            tnd_text_add(out, ", \"joules\": ");
            tnd_text_add_double(out, a->joules[p * a->n_points + point]);
        }
        const unsigned marks = marks_of(a, p, point);
        tnd_text_printf(out, ", \"noisy\": %s, \"stale\": %s, \"contradicted\": %s}",
                        (marks & TND_MARK_NOISY) != 0 ? "true" : "false",
                        (marks & TND_MARK_STALE) != 0 ? "true" : "false",
                        (marks & TND_MARK_CONTRADICTED) != 0 ? "true" : "false");
    }
    tnd_text_add_char(out, '}');
    tnd_analyze_energy_json(out, a, point);
    tnd_text_add_char(out, '}');
}

static void json_add(struct tnd_text *out, const struct tnd_analysis *a, int index, int n_types)
{
    (void)n_types;
    tnd_text_printf(out,
                    "%s\n    {\"type\": \"%s\", \"n\": %" PRId64 ", \"k\": %" PRId64
                    ", \"threads\": %d, \"measured_threads\": %s, \"wrong_profiles\": [",
                    index > 0 ? "," : "", tandem_type_name(a->type), a->n, a->k, a->threads,
                    a->measured_threads ? "true" : "false");
    (void)tnd_analyses_add_wrong(a->table, a->type, ", ", tnd_emit_json_string, out);
    tnd_text_add(out, "], \"points\": [");
    for (int i = 0; i < a->n_points; i++) {
        tnd_text_add(out, i > 0 ? ",\n      " : "\n      ");
        json_add_point(out, a, i);
    }
    tnd_text_add(out, "]}");
}

static void json_crossovers(struct tnd_text *out, const struct tnd_analysis *a, int n_types)
{
    for (int i = 0; i < a->n_exact; i++) {
        const struct tnd_crossover *crossover = &a->exact[i];
        tnd_text_add(out, out->n > 0 ? ",\n    {" : "\n    {");
        if (n_types > 1) {
            tnd_text_printf(out, "\"type\": \"%s\", ", tandem_type_name(a->type));
        }
        tnd_text_printf(out,
                        "\"n\": %" PRId64 ", \"k\": %" PRId64 ", \"threads\": %d, \"from\": ", a->n,
                        a->k, a->threads);
        tnd_emit_json_string(out, a->profiles[crossover->from]->name);
        tnd_text_add(out, ", \"to\": ");
        tnd_emit_json_string(out, a->profiles[crossover->to]->name);
        tnd_text_add(out, ", \"m\": ");
        tnd_emit_number(out, 0, 2, crossover->m);
        tnd_text_printf(out, ", \"first_m\": %" PRId64 ", \"clear\": %s}", crossover->first_m,
                        tnd_crossover_is_clear(crossover) ? "true" : "false");
    }
}

static void json_end(struct tnd_text *out, const struct tnd_text *crossovers)
{
    tnd_text_add(out, "\n  ],\n  \"crossovers\": [");
    tnd_text_add(out, tnd_text_string(crossovers));
    tnd_text_add(out, crossovers->n > 0 ? "\n  ]\n}\n" : "]\n}\n");
}

const struct tnd_analyze_printer tnd_analyze_json = {json_begin, json_add, json_end,
                                                     json_crossovers, NULL};

/* ---- CSV: one line per profile and M ---- */

static void csv_begin(struct tnd_text *out, const struct tandem_table *table,
                      const struct tnd_analyze_options *options, int n_types,
                      enum tandem_type first)
{
    (void)table;
    (void)options;
    (void)n_types;
    (void)first;
    tnd_text_add(out, "type,n,k,threads,m,profile,init_us,compute_us,finalize_us,total_us,wins,"
                      "transfer_us,spread_us,noisy,stale,error_us,crossover_m\n");
}

/* Quotes a name as RFC 4180 requires; it may come from a file. */
static void csv_add_name(struct tnd_text *out, const char *name)
{
    if (strpbrk(name, ",\"\r\n") == NULL) {
        tnd_text_add(out, name);
        return;
    }
    tnd_text_add_char(out, '"');
    for (const char *c = name; *c != '\0'; c++) {
        tnd_text_add(out, *c == '"' ? "\"" : "");
        tnd_text_add_char(out, *c);
    }
    tnd_text_add_char(out, '"');
}

/* The crossover at which the profile, which wins at this point but not at the previous one,
 * overtook the other. */
static void csv_add_crossover(struct tnd_text *out, const struct tnd_analysis *a, int profile,
                              int point)
{
    for (int i = 0; i < a->n_exact; i++) {
        const struct tnd_crossover *crossover = &a->exact[i];
        if (crossover->to == profile && point > 0 && crossover->m >= (double)a->m[point - 1] &&
            crossover->m < (double)a->m[point]) {
            tnd_emit_number(out, 0, 2, crossover->m);
        }
    }
}

static void csv_add(struct tnd_text *out, const struct tnd_analysis *a, int index, int n_types)
{
    (void)index;
    (void)n_types;
    for (int i = 0; i < a->n_points; i++) {
        int winner = winner_at(a, i);
        for (int p = 0; p < a->n_profiles; p++) {
            tnd_text_printf(out, "%s,%" PRId64 ",%" PRId64 ",%d,%" PRId64 ",",
                            tandem_type_name(a->type), a->n, a->k, a->threads, a->m[i]);
            csv_add_name(out, a->profiles[p]->name);
            double us[TND_SHARES];
            (void)tnd_shares(a, p, i, us);
            for (int s = 0; s < TANDEM_STAGES; s++) {
                tnd_text_add_char(out, ',');
                tnd_emit_number(out, 0, 3, us[s]);
            }
            tnd_text_add_char(out, ',');
            tnd_emit_number(out, 0, 3, time_of(a, p, i));
            tnd_text_printf(out, ",%d,", p == winner ? 1 : 0);
            tnd_emit_number(out, 0, 3, us[TANDEM_STAGES]);
            tnd_text_add_char(out, ',');
            tnd_emit_number(out, 0, 3, a->spreads[p * a->n_points + i]);
            tnd_text_printf(out, ",%d,%d,", (marks_of(a, p, i) & TND_MARK_NOISY) != 0,
                            (marks_of(a, p, i) & TND_MARK_STALE) != 0);
            tnd_emit_number(out, 0, 3, a->errors[p * a->n_points + i]);
            tnd_text_add_char(out, ',');
            csv_add_crossover(out, a, p, i);
            tnd_text_add_char(out, '\n');
        }
    }
}

const struct tnd_analyze_printer tnd_analyze_csv = {csv_begin, csv_add, text_end, NULL, NULL};
