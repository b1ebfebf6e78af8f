/* SPDX-License-Identifier: MIT
 * Names, numbers, units and styles of the HTML report. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/emit.h"
#include "tools/report/report_parts.h"

/* Characters that change the direction of text could disguise a name. */
static bool turns_text(const char *at)
{
    const unsigned char *c = (const unsigned char *)at;
    return c[0] == 0xE2 &&
           ((c[1] == 0x80 && (c[2] == 0x8E || c[2] == 0x8F || (c[2] >= 0xA8 && c[2] <= 0xAE))) ||
            (c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9));
}

void tnd_report_escape(struct tnd_text *out, const char *string)
{
    for (const char *at = string; *at != '\0';) {
        size_t n = tnd_emit_utf8_length(at);
        bool control = (unsigned char)*at < 0x20 || *at == 0x7F ||
                       (n == 2 && (unsigned char)at[0] == 0xC2 && (unsigned char)at[1] < 0xA0);
        if (n == 0 || control || turns_text(at)) {
            tnd_text_add_char(out, '?');
        } else if (n == 1 && strchr("<>&\"'", *at) != NULL) {
            tnd_text_printf(out, "&#%d;", *at);
        } else {
            tnd_text_add_bytes(out, at, n);
        }
        at += n > 0 ? n : 1;
    }
}

void tnd_report_table_heading(struct tnd_report *report, int source)
{
    if (report->n_sources < 2) {
        return;
    }
    tnd_text_printf(&report->out, "<h3>Table %d: ", source + 1);
    tnd_report_escape(&report->out, report->sources[source].name);
    tnd_text_add(&report->out, "</h3>\n");
}

void tnd_report_number(struct tnd_text *out, double value)
{
    double size = fabs(value);
    int decimals = size == 0.0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    if (size > 0.0 && size < 0.0995) {
        decimals = size >= 0.00995 ? 4 : 6;
    }
    struct tnd_text number = TND_TEXT_INIT;
    tnd_emit_number(&number, 0, decimals, value);
    while (decimals > 0 && number.n > 1 && number.bytes[number.n - 1] == '0') {
        number.n--;
        decimals--;
    }
    if (number.n > 1 && number.bytes[number.n - 1] == '.') {
        number.n--;
    }
    if (!number.failed) {
        tnd_text_add_bytes(out, number.bytes, number.n);
    }
    out->failed = out->failed || number.failed;
    tnd_text_fini(&number);
}

void tnd_report_time(struct tnd_text *out, double us)
{
    bool is_us = us < 999.5;
    bool is_ms = !is_us && us < 999.5e3;
    tnd_report_number(out, is_us ? us : is_ms ? us * 1e-3 : us * 1e-6);
    tnd_text_add(out, is_us ? " \u00b5s" : is_ms ? " ms" : " s");
}

void tnd_report_shape(struct tnd_text *out, const struct tnd_analysis *a)
{
    tnd_text_printf(out, "%" PRId64 " \u00d7 %" PRId64 ", %s", a->n, a->k,
                    tandem_type_name(a->type));
}

void tnd_report_thread_count(struct tnd_text *out, const struct tnd_analysis *a)
{
    tnd_text_printf(out, "%d thread%s%s", a->threads, a->threads == 1 ? "" : "s",
                    a->measured_threads ? "" : " (estimated)");
}

int tnd_report_style(const struct tnd_report *report, const char *profile)
{
    const char *seen[TND_REPORT_STYLES];
    int n = 0;
    for (int s = 0; s < report->n_sources; s++) {
        const struct tandem_table *table = report->sources[s].table;
        for (int p = 0; p < table->n_profiles; p++) {
            const char *name = table->profiles[p].name;
            int at = 0;
            while (at < n && strcmp(seen[at], name) != 0) {
                at++;
            }
            if (at == n && n < TND_REPORT_STYLES) {
                seen[n++] = name;
            }
            if (strcmp(name, profile) == 0) {
                return at < TND_REPORT_STYLES ? at : TND_REPORT_STYLES - 1;
            }
        }
    }
    return 0;
}

bool tnd_report_fits(struct tnd_report *report)
{
    if (report->n_charts < TND_REPORT_CHARTS) {
        return true;
    }
    report->n_left_out++;
    return false;
}
