/* SPDX-License-Identifier: MIT
 * Explanations as text and JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "backends/task.h"
#include "tune/explain.h"

/* ---- text ---- */

/* The backend of a stage; "": none. A download without a stage of the profile counts as FINALIZE.
 */
static const char *backend_of(const struct tnd_candidate *candidate,
                              const struct tnd_prediction *prediction, int s)
{
    const char *backend = candidate->profile.stage[s].backend;
    bool fetches = s == TANDEM_STAGE_FINALIZE && prediction->stage[s].us > 0;
    return backend[0] == '\0' && fetches ? prediction->moves.device : backend;
}

/* Columns of the table of candidates after the total. */
enum { TRANSFER = TANDEM_STAGES, SHARING, N_COLUMNS };

static double column_us(const struct tnd_prediction *prediction, int column)
{
    return column == TRANSFER  ? prediction->moving.us
           : column == SHARING ? prediction->sharing_us
                               : prediction->stage[column].us;
}

/* Columns to print, as bits: those that are not empty for every candidate. */
static unsigned columns_used(const struct tnd_explanation *e)
{
    unsigned used = 0;
    for (int i = 0; i < e->n_predictions; i++) {
        for (int c = 0; c < N_COLUMNS; c++) {
            used |= column_us(&e->predictions[i], c) > 0 ? 1u << c : 0;
        }
    }
    return used;
}

static void add_heading(struct tnd_text *out, unsigned used)
{
    static const char *const names[N_COLUMNS] = {[TRANSFER] = "transfer", [SHARING] = "sharing"};
    tnd_text_printf(out, "    %-20s%8s%10s%8s", "profile", "threads", "total", "+-");
    for (int c = 0; c < N_COLUMNS; c++) {
        if ((used & (1u << c)) != 0) {
            tnd_text_printf(out, "%10s",
                            names[c] != NULL ? names[c] : tandem_stage_name((enum tandem_stage)c));
        }
    }
    tnd_text_add_char(out, '\n');
}

static void add_candidate(struct tnd_text *out, const struct tnd_explanation *e,
                          const struct tnd_prediction *prediction, unsigned used)
{
    const struct tnd_candidate *candidate = &e->candidates[prediction->candidate];
    bool wins = prediction->candidate == e->choice.best.candidate &&
                prediction->threads == e->choice.best.threads;
    tnd_text_printf(out, "  %s %-20s%8d", wins ? "*" : " ", candidate->profile.name,
                    prediction->threads);
    tnd_emit_number(out, 10, 1, prediction->total.us);
    tnd_emit_error(out, 8, prediction->total.error_us);
    for (int c = 0; c < N_COLUMNS; c++) {
        if ((used & (1u << c)) != 0 && column_us(prediction, c) > 0) {
            tnd_emit_number(out, 10, 1, column_us(prediction, c));
        } else if ((used & (1u << c)) != 0) {
            tnd_text_printf(out, "%10s", "-");
        }
    }
    if (prediction->joules > 0) {
        tnd_text_printf(out, "  %.3f mJ", 1e3 * prediction->joules);
    }
    tnd_text_printf(out, "%s%s%s%s\n", prediction->total.noisy ? "  (noisy)" : "",
                    prediction->total.stale ? "  (stale: found wrong by running programs)" : "",
                    prediction->total.measured_shape ? "" : "  (from other shapes)",
                    !candidate->is_excluded ? ""
                    : candidate->verdict == TND_VERDICT_UNKNOWN
                        ? "  (never: its results were not checked)"
                        : "  (never: its results are wrong)");
}

/* Explains the column of sharing, whose name does not say enough. */
static void add_sharing(struct tnd_text *out, unsigned used)
{
    if ((used & (1u << SHARING)) != 0) {
        tnd_text_add(out, "  sharing: what several threads cost the nodes beside this one; not in "
                          "the total,\n  but it counts in the choice\n");
    }
}

static void add_crossing(struct tnd_text *out, const struct tnd_crossing *crossing,
                         const char *what)
{
    tnd_text_printf(out, "  %s M = %" PRId64 " on: %s instead of %s", what, crossing->m,
                    crossing->to, crossing->from);
    if (crossing->high_open) {
        tnd_text_printf(out, "; the error bars overlap from M = %" PRId64 " on\n", crossing->low);
    } else if (crossing->low < crossing->high) {
        tnd_text_printf(out, "; the error bars overlap from M = %" PRId64 " to %" PRId64 "\n",
                        crossing->low, crossing->high);
    } else {
        tnd_text_add(out, "; the error bars do not reach that far\n");
    }
}

static void add_flip(struct tnd_text *out, const struct tnd_flip *flip)
{
    if (flip->backend[0] == '\0') {
        tnd_text_printf(out, "  with at most %d thread%s: %s\n", flip->threads,
                        flip->threads == 1 ? "" : "s", flip->profile);
        return;
    }
    bool faster = flip->factor < 1;
    tnd_text_printf(out, "  if %s were ", flip->backend);
    tnd_emit_number(out, 0, 2, faster ? 1 / flip->factor : flip->factor);
    tnd_text_printf(out, " times as %s: %s\n", faster ? "fast" : "slow", flip->profile);
}

void tnd_explain_scaling(const struct tnd_explanation *e, struct tnd_text *out)
{
    tnd_text_printf(out, "%d threads: ", e->scaling.threads);
    tnd_emit_number(out, 0, 1, e->scaling.low);
    tnd_text_add(out, " to ");
    tnd_emit_number(out, 0, 1, e->scaling.high);
    tnd_text_add(out, " times one thread (so many were not measured)");
}

static void add_thin(struct tnd_text *out, const struct tnd_explanation *e)
{
    static const struct {
        unsigned bit;
        const char *text;
    } reasons[] = {
        {TND_THIN_NO_TABLE, "there is no timing table; the rule serves (the CPU kernels)"},
        {TND_THIN_NO_CELL, "the table does not cover this; the rule serves (the CPU kernels)"},
        {TND_THIN_SHAPE, "this shape was not measured; times are told from others"},
        {TND_THIN_NOISY, "the prediction of the winner is noisy"},
        {TND_THIN_LEAD, "the lead is within the error bars"},
        {TND_THIN_CANDIDATES, "not every way was measured"},
        {TND_THIN_BEYOND, "M is outside of what was measured"},
        {TND_THIN_STALE, "times behind it were found wrong by running programs"},
    };
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        bool is_too_far = reasons[i].bit == TND_THIN_BEYOND && e->choice.best.candidate < 0;
        if ((e->thin & reasons[i].bit) != 0) {
            tnd_text_printf(out, "  thin: %s%s\n", reasons[i].text,
                            is_too_far ? ", more than four times; the rule serves" : "");
        }
    }
    if (e->command[0] != '\0') {
        tnd_text_printf(out, "  to know better: %s\n", e->command);
    }
}

/* Adds the errors of the candidates' results against the reference. */
static void add_checks(struct tnd_text *out, const struct tnd_explanation *e)
{
    const char *separator = "  checked, largest squared error over the squared reference:\n    ";
    int n = 0;
    for (int w = 0; w < e->n_candidates; w++) {
        const struct tnd_candidate *candidate = &e->candidates[w];
        if (candidate->verdict != TND_VERDICT_UNKNOWN) {
            tnd_text_printf(out, "%s%s %.1e%s", separator, candidate->profile.name, candidate->nmse,
                            candidate->verdict == TND_VERDICT_WRONG ? " (too large)" : "");
            separator = ++n % 2 == 0 ? ",\n    " : ", ";
        }
    }
    tnd_text_add(out, n > 0 ? "\n" : "");
}

/* Adds the memory that the winner needs. */
static void add_memory(struct tnd_text *out, const struct tnd_explanation *e)
{
    const struct tnd_table_profile *winner = &e->candidates[e->choice.best.candidate].profile;
    if (tnd_task_is(winner->stage[TANDEM_STAGE_COMPUTE].task, TND_TASK_USES_PACKED)) {
        double bytes =
            (double)e->problem.n * (double)tandem_type_row_bytes(e->problem.type, e->problem.k);
        tnd_text_printf(out, "  memory: %s keeps the weights in a layout of its own, about ",
                        winner->name);
        tnd_emit_number(out, 0, 1, bytes / 1048576.0);
        tnd_text_add(out, " MiB\n");
    }
}

static void add_winner(struct tnd_text *out, const struct tnd_explanation *e)
{
    const struct tnd_prediction *best = &e->choice.best;
    const char *second = tnd_explain_profile(e, &e->choice.second);
    tnd_text_printf(out, "  wins: %s on %d thread%s", tnd_explain_profile(e, best), best->threads,
                    best->threads == 1 ? "" : "s");
    if (e->choice.second.candidate < 0) {
        tnd_text_add(out, ", the only way with times\n");
    } else if (e->margin >= 0) {
        tnd_text_add(out, ", ");
        tnd_emit_number(out, 0, 1, 100 * e->margin);
        tnd_text_printf(out, " %% ahead of %s (a quarter of the errors counted)\n", second);
    } else {
        tnd_text_printf(out, ", as without a table: %s looks ", second);
        tnd_emit_number(out, 0, 1, -100 * e->margin);
        tnd_text_add(out, " % faster, too little to be sure\n");
    }
}

/* Says that the rule decided between thread counts, if it did. */
static void add_thread_tie(const struct tnd_explanation *e, struct tnd_text *out)
{
    const struct tnd_prediction *best = &e->choice.best;
    for (int i = 0; i < e->n_predictions; i++) {
        const struct tnd_prediction *other = &e->predictions[i];
        if (other->candidate == best->candidate && other->cautious_us < best->cautious_us) {
            tnd_text_printf(
                out,
                "  threads: %d as without a table, since this one can hardly tell %d from %d\n",
                best->threads, other->threads, best->threads);
            return;
        }
    }
}

void tnd_explain_text(const struct tnd_explanation *e, struct tnd_text *out)
{
    char name[TND_PROBLEM_MAX];
    tnd_problem_print(&e->problem, name, sizeof(name));
    tnd_text_printf(out, "%s, at most %d thread%s (microseconds)\n", name, e->n_threads,
                    e->n_threads == 1 ? "" : "s");
    const unsigned used = columns_used(e);
    if (e->n_predictions > 0) {
        add_heading(out, used);
    }
    for (int i = 0; i < e->n_predictions; i++) {
        add_candidate(out, e, &e->predictions[i], used);
    }
    add_sharing(out, used);
    if (e->choice.best.candidate >= 0) {
        add_winner(out, e);
        add_thread_tie(e, out);
        add_memory(out, e);
    }
    if (e->scaling.threads > 0) {
        tnd_text_add(out, "  ");
        tnd_explain_scaling(e, out);
        tnd_text_add_char(out, '\n');
    }
    if (e->below.found) {
        add_crossing(out, &e->below, "from");
    }
    if (e->above.found) {
        add_crossing(out, &e->above, "from");
    } else if (e->choice.second.candidate >= 0) {
        tnd_text_printf(out, "  no other profile wins behind it, up to M = %" PRId64 "\n",
                        e->m_limit);
    }
    if (e->stream_m > 0) {
        tnd_text_printf(out, "  weights without room on the device: %s from M = %" PRId64 "\n",
                        e->stream_profile, e->stream_m);
    }
    for (int i = 0; i < e->n_flips; i++) {
        add_flip(out, &e->flips[i]);
    }
    add_checks(out, e);
    add_thin(out, e);
}

/* ---- JSON ---- */

static void add_json_number(struct tnd_text *out, const char *key, double value)
{
    tnd_text_printf(out, "\"%s\": ", key);
    tnd_text_add_double(out, value);
}

static void json_candidate(struct tnd_text *out, const struct tnd_explanation *e,
                           const struct tnd_prediction *prediction)
{
    const struct tnd_candidate *candidate = &e->candidates[prediction->candidate];
    tnd_text_add(out, "{\"profile\": ");
    tnd_emit_json_string(out, candidate->profile.name);
    tnd_text_printf(out, ", \"threads\": %d, ", prediction->threads);
    add_json_number(out, "us", prediction->total.us);
    tnd_text_add(out, ", ");
    add_json_number(out, "error_us", prediction->total.error_us);
    if (prediction->joules > 0) {
        tnd_text_add(out, ", ");
        add_json_number(out, "joules", prediction->joules);
    }
    if (prediction->sharing_us > 0) {
        tnd_text_add(out, ", ");
        add_json_number(out, "sharing_us", prediction->sharing_us);
    }
    tnd_text_printf(out,
                    ", \"measured_shape\": %s, \"noisy\": %s, \"stale\": %s, "
                    "\"check\": \"%s\", \"barred\": %s, \"stages\": [",
                    prediction->total.measured_shape ? "true" : "false",
                    prediction->total.noisy ? "true" : "false",
                    prediction->total.stale ? "true" : "false",
                    candidate->verdict == TND_VERDICT_UNKNOWN ? "unknown"
                    : candidate->verdict == TND_VERDICT_RIGHT ? "right"
                                                              : "wrong",
                    candidate->is_excluded ? "true" : "false");
    const char *separator = "";
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const char *backend = backend_of(candidate, prediction, s);
        if (backend[0] != '\0') {
            tnd_text_printf(out, "%s{\"stage\": \"%s\", \"backend\": ", separator,
                            tandem_stage_name((enum tandem_stage)s));
            tnd_emit_json_string(out, backend);
            tnd_text_add(out, ", ");
            add_json_number(out, "us", prediction->stage[s].us);
            tnd_text_add(out, ", ");
            add_json_number(out, "error_us", prediction->stage[s].error_us);
            tnd_text_add_char(out, '}');
            separator = ", ";
        }
    }
    tnd_text_add(out, "]");
    if (prediction->moving.us > 0) {
        tnd_text_add(out, ", ");
        add_json_number(out, "transfer_us", prediction->moving.us);
        tnd_text_add(out, ", ");
        add_json_number(out, "transfer_error_us", prediction->moving.error_us);
    }
    tnd_text_add_char(out, '}');
}

static void json_crossover(struct tnd_text *out, const char *key,
                           const struct tnd_crossing *crossing)
{
    tnd_text_printf(out, "\"%s\": ", key);
    if (!crossing->found) {
        tnd_text_add(out, "null");
        return;
    }
    tnd_text_printf(out, "{\"m\": %" PRId64 ", \"low\": %" PRId64 ", \"high\": ", crossing->m,
                    crossing->low);
    if (crossing->high_open) {
        tnd_text_add(out, "null");
    } else {
        tnd_text_printf(out, "%" PRId64, crossing->high);
    }
    tnd_text_add(out, ", \"from\": ");
    tnd_emit_json_string(out, crossing->from);
    tnd_text_add(out, ", \"to\": ");
    tnd_emit_json_string(out, crossing->to);
    tnd_text_add_char(out, '}');
}

static void json_winner(struct tnd_text *out, const char *key, const struct tnd_explanation *e,
                        const struct tnd_prediction *prediction)
{
    tnd_text_printf(out, "\"%s\": ", key);
    if (prediction->candidate < 0) {
        tnd_text_add(out, "null");
        return;
    }
    tnd_text_add(out, "{\"profile\": ");
    tnd_emit_json_string(out, tnd_explain_profile(e, prediction));
    tnd_text_printf(out, ", \"threads\": %d, ", prediction->threads);
    add_json_number(out, "us", prediction->total.us);
    tnd_text_add(out, ", ");
    add_json_number(out, "error_us", prediction->total.error_us);
    tnd_text_add_char(out, '}');
}

static void json_flips(struct tnd_text *out, const struct tnd_explanation *e)
{
    tnd_text_add(out, "\"flips\": [");
    for (int i = 0; i < e->n_flips; i++) {
        const struct tnd_flip *flip = &e->flips[i];
        tnd_text_add(out, i > 0 ? ", {" : "{");
        if (flip->backend[0] != '\0') {
            tnd_text_add(out, "\"backend\": ");
            tnd_emit_json_string(out, flip->backend);
            tnd_text_add(out, ", ");
            add_json_number(out, "factor", flip->factor);
        } else {
            tnd_text_printf(out, "\"threads\": %d", flip->threads);
        }
        tnd_text_add(out, ", \"profile\": ");
        tnd_emit_json_string(out, flip->profile);
        tnd_text_add_char(out, '}');
    }
    tnd_text_add_char(out, ']');
}

static void json_thin(struct tnd_text *out, unsigned thin)
{
    static const char *const names[] = {"no_table", "no_cell", "shape",  "noisy",
                                        "lead",     "ways",    "beyond", "stale"};
    const char *separator = "";
    tnd_text_add(out, "\"thin\": [");
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((thin & (1u << i)) != 0) {
            tnd_text_printf(out, "%s\"%s\"", separator, names[i]);
            separator = ", ";
        }
    }
    tnd_text_add_char(out, ']');
}

void tnd_explain_json(const struct tnd_explanation *e, const char *indent, struct tnd_text *out)
{
    char name[TND_PROBLEM_MAX];
    tnd_problem_print(&e->problem, name, sizeof(name));
    tnd_text_printf(out, "%s{\"problem\": \"%s\", \"max_threads\": %d,\n%s ", indent, name,
                    e->n_threads, indent);
    json_winner(out, "winner", e, &e->choice.best);
    tnd_text_add(out, ", ");
    json_winner(out, "second", e, &e->choice.second);
    tnd_text_add(out, ", ");
    add_json_number(out, "margin", e->margin);
    if (e->scaling.threads > 0) {
        tnd_text_printf(out, ", \"scaling\": {\"threads\": %d, ", e->scaling.threads);
        add_json_number(out, "low", e->scaling.low);
        tnd_text_add(out, ", ");
        add_json_number(out, "high", e->scaling.high);
        tnd_text_add_char(out, '}');
    }
    tnd_text_printf(out, ",\n%s ", indent);
    json_crossover(out, "below", &e->below);
    tnd_text_add(out, ", ");
    json_crossover(out, "above", &e->above);
    tnd_text_printf(out, ", \"m_limit\": %" PRId64 ",\n%s ", e->m_limit, indent);
    if (e->stream_m > 0) {
        tnd_text_add(out, "\"stream\": {\"profile\": ");
        tnd_emit_json_string(out, e->stream_profile);
        tnd_text_printf(out, ", \"m\": %" PRId64 "}, ", e->stream_m);
    }
    json_flips(out, e);
    tnd_text_add(out, ", ");
    json_thin(out, e->thin);
    tnd_text_add(out, ", \"command\": ");
    tnd_emit_json_string(out, e->command);
    tnd_text_printf(out, ",\n%s \"candidates\": [", indent);
    for (int i = 0; i < e->n_predictions; i++) {
        tnd_text_printf(out, "%s\n%s  ", i > 0 ? "," : "", indent);
        json_candidate(out, e, &e->predictions[i]);
    }
    tnd_text_printf(out, "\n%s ]}", indent);
}
