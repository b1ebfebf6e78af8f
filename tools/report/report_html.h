/* SPDX-License-Identifier: MIT
 * One self-contained HTML page about one or several tables: recommendations, and charts that show
 * why. The page explains itself to its readers. */
#ifndef TND_REPORT_HTML_H
#define TND_REPORT_HTML_H

#include "tools/report/analyze.h"
#include "tools/report/trace_run.h"

enum { TND_REPORT_MAX_SOURCES = 8 };

struct tnd_report_source {
    const struct tandem_table *table;
    const char *name; /* name of the file, untrusted */
};

/** Prints the page; `options` as for tnd_analyze, but format and name are ignored. The others are
 * compared with the first source. `run` is shown lane by lane; NULL: none. Errors: TABLE (nothing
 * to report on), MEMORY, LIMIT (sources), FILE (`write` stopped). */
enum tandem_status tnd_report_html(const struct tnd_report_source *sources, int n_sources,
                                   const struct tnd_analyze_options *options,
                                   const struct tnd_trace_run *run, tandem_write_fn write,
                                   void *user, struct tandem_error *error);

#endif
