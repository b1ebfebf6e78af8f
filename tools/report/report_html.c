/* SPDX-License-Identifier: MIT
 * The page: head, recommendation, comparison, then each table with its heat maps and shapes. It
 * loads nothing from outside, and its content security policy forbids that even to markup smuggled
 * in through a table. */
#include "tools/report/report_html.h"

#include <string.h>

#include <inttypes.h>

#include "base/alloc.h"
#include "tandem/version.h"
#include "base/emit.h"
#include "tools/report/report_parts.h"

static void head(struct tnd_report *report)
{
    struct tnd_text *out = &report->out;
    tnd_text_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                      "style-src 'unsafe-inline'\">\n<title>Timing report: ");
    tnd_report_escape(out, report->sources[0].name);
    tnd_text_add(out, "</title>\n<style>\n");
    tnd_report_style_sheet(out);
    tnd_text_add(out, "</style>\n</head>\n<body>\n");
    tnd_text_add(out,
                 "<svg class=\"defs\" aria-hidden=\"true\"><defs>"
                 "<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
                 "patternTransform=\"rotate(45)\"><rect class=\"paper\" width=\"6\" height=\"6\"/>"
                 "<path class=\"hatch\" d=\"M0 0V6\"/></pattern>"
                 "<pattern id=\"dots\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
                 "<rect class=\"paper\" width=\"5\" height=\"5\"/><circle class=\"dot\" cx=\"2.5\" "
                 "cy=\"2.5\" r=\"1.5\"/></pattern></defs></svg>\n<header>\n<h1>Matrix products: "
                 "what to use when</h1>\n");
}

static void add_part(struct tnd_text *out, const char *part)
{
    if (part[0] != '\0') {
        tnd_text_add(out, ", ");
        tnd_report_escape(out, part);
    }
}

static void machine(struct tnd_text *out, const struct tandem_table *table)
{
    const struct tnd_fingerprint *print = &table->fingerprint;
    if (table->model[0] != '\0') {
        tnd_text_add(out, ", shapes of model ");
        tnd_report_escape(out, table->model);
    }
    if (table->has_fingerprint && print->cpu_model[0] != '\0') {
        tnd_text_add(out, ", machine ");
        tnd_report_escape(out, print->cpu_model);
        tnd_text_printf(out, ", %d CPU%s", (int)print->n_cpus, print->n_cpus == 1 ? "" : "s");
        add_part(out, print->isa);
        for (int i = 0; i < print->n_identities; i++) {
            bool is_device = strcmp(print->identities[i].key, "device") == 0;
            add_part(out, is_device ? print->identities[i].value : "");
        }
    }
}

/* Adds the dates of the times, and the versions of libraries and drivers. */
static void versions(struct tnd_text *out, const struct tandem_table *table)
{
    const struct tnd_fingerprint *print = &table->fingerprint;
    int64_t first = 0;
    int64_t last = 0;
    for (int c = 0; c < table->n_curves; c++) {
        for (int s = 0; s < table->curves[c].n_samples; s++) {
            const int64_t when = table->curves[c].samples[s].when;
            first = when > 0 && (first == 0 || when < first) ? when : first;
            last = when > last ? when : last;
        }
    }
    tnd_text_add(out, "<p class=\"soft\">Measured ");
    tnd_text_add(out, last == 0 ? "at an " : "");
    tnd_emit_date(out, first);
    tnd_text_add(out, last == 0 ? " time" : "");
    if (last / 86400 != first / 86400) {
        tnd_text_add(out, " to ");
        tnd_emit_date(out, last);
    }
    for (int i = 0; i < print->n_identities; i++) {
        const struct tnd_identity *identity = &print->identities[i];
        if (strcmp(identity->key, "library") == 0) {
            add_part(out, identity->value);
        } else if (strcmp(identity->key, "driver") == 0) {
            add_part(out, identity->backend);
            add_part(out, identity->value);
        }
    }
    tnd_text_add(out, "</p>\n");
}

static void sources(struct tnd_report *report)
{
    struct tnd_text *out = &report->out;
    for (int s = 0; s < report->n_sources; s++) {
        tnd_text_add(out, "<p>");
        if (report->n_sources > 1) {
            tnd_text_printf(out, "Table %d: ", s + 1);
        }
        tnd_report_escape(out, report->sources[s].name);
        machine(out, report->sources[s].table);
        tnd_text_add(out, "</p>\n");
        versions(out, report->sources[s].table);
    }
    tnd_text_add(
        out, "<p class=\"soft\">Weights of N \u00d7 K (N rows of K numbers) times M columns, one a "
             "token. Times are medians.</p>\n<nav aria-label=\"Contents\">"
             "<a href=\"#gain\">What tuning brings</a> <a href=\"#advice\">What to use</a> ");
    tnd_text_add(out, report->n_sources > 1 ? "<a href=\"#compare\">Comparison</a> " : "");
    for (int s = 0; s < report->n_sources; s++) {
        tnd_text_printf(out, "<a href=\"#map%d\">Fastest profiles", s);
        if (report->n_sources > 1) {
            tnd_text_printf(out, " %d", s + 1);
        }
        tnd_text_printf(out, "</a> <a href=\"#shapes%d\">Shapes", s);
        if (report->n_sources > 1) {
            tnd_text_printf(out, " %d", s + 1);
        }
        tnd_text_add(out, "</a> ");
    }
    tnd_text_add(out, "</nav>\n</header>\n<main>\n");
}

/* Adds all thread counts [first, end) of one shape. */
static void shape(struct tnd_report *report, const struct tnd_analyses *analyses, int first,
                  int end)
{
    struct tnd_text *out = &report->out;
    tnd_text_add(out, "<h3>");
    tnd_report_shape(out, &analyses->list[first]);
    tnd_text_add(out, "</h3>\n<div class=\"charts\">\n");
    for (int i = end - 1; i >= first; i--) {
        tnd_report_curves(report, &analyses->list[i]);
    }
    tnd_report_threads(report, &analyses->list[end - 1]);
    tnd_report_shares(report, &analyses->list[end - 1]);
    tnd_report_transfer_shares(report, &analyses->list[end - 1]);
    tnd_text_add(out, "</div>\n");
    for (int i = end - 1; i >= first; i--) {
        tnd_report_numbers(report, &analyses->list[i]);
    }
}

static void one_table(struct tnd_report *report, int source)
{
    struct tnd_text *out = &report->out;
    const struct tnd_analyses *analyses = &report->analyses[source];
    tnd_text_printf(out, "<h2 id=\"map%d\">Fastest profiles", source);
    if (report->n_sources > 1) {
        tnd_text_add(out, ": ");
        tnd_report_escape(out, report->sources[source].name);
    }
    tnd_text_add(out, "</h2>\n<div class=\"charts\">\n");
    tnd_report_heat(report, source);
    tnd_report_roof(report, source);
    tnd_text_add(out, "</div>\n");
    tnd_report_moves(report, source);
    tnd_report_calibration(report, source);
    tnd_text_printf(out, "<h2 id=\"shapes%d\">Shapes", source);
    if (report->n_sources > 1) {
        tnd_text_add(out, ": ");
        tnd_report_escape(out, report->sources[source].name);
    }
    tnd_text_add(out, "</h2>\n");
    for (int i = 0; i < analyses->n && report->n_charts < TND_REPORT_CHARTS;) {
        int end = tnd_report_shape_end(analyses, i);
        shape(report, analyses, i, end);
        i = end;
    }
}

static void page(struct tnd_report *report, const struct tnd_trace_run *run)
{
    struct tnd_text *out = &report->out;
    head(report);
    sources(report);
    tnd_report_headline(report);
    tnd_report_words(report);
    if (report->n_sources > 1) {
        tnd_report_compare(report);
    }
    if (run != NULL) {
        tnd_report_lanes(report, run);
    }
    for (int s = 0; s < report->n_sources; s++) {
        one_table(report, s);
    }
    if (report->n_charts >= TND_REPORT_CHARTS) {
        tnd_text_add(out,
                     "<p>More was measured than a page can show; --type and --threads choose a "
                     "part.</p>\n");
    }
    tnd_text_add(out, "</main>\n<footer class=\"soft\"><p>Made by mulmat-tune analyze, "
                      "Tandem " TANDEM_VERSION_STRING ".</p></footer>\n</body>\n</html>\n");
}

enum tandem_status tnd_report_html(const struct tnd_report_source *tables, int n_sources,
                                   const struct tnd_analyze_options *options,
                                   const struct tnd_trace_run *run, tandem_write_fn write,
                                   void *user, struct tandem_error *error)
{
    if (n_sources < 1 || n_sources > TND_REPORT_MAX_SOURCES) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "report", n_sources, TND_REPORT_MAX_SOURCES,
                             "a report needs 1 to %d tables, got %d", TND_REPORT_MAX_SOURCES,
                             n_sources);
    }
    struct tnd_analyses analyses[TND_REPORT_MAX_SOURCES] = {{0}};
    struct tnd_report report = {.n_sources = n_sources, .sources = tables, .analyses = analyses};
    enum tandem_status status = TANDEM_OK;
    for (int s = 0; s < n_sources && status == TANDEM_OK; s++) {
        struct tnd_analyze_options own = *options;
        own.name = tables[s].name;
        status = tnd_analyses_make(tables[s].table, &own, &analyses[s], error);
    }
    if (status == TANDEM_OK) {
        page(&report, run);
        status = tnd_emit_end(&report.out, write, user, tables[0].name, error);
    }
    tnd_text_fini(&report.out);
    for (int s = 0; s < n_sources; s++) {
        tnd_analyses_free(&analyses[s]);
    }
    return status;
}
