/* SPDX-License-Identifier: MIT
 * Summaries of tables as text. */
#include "tools/mulmat-tune/table_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "table/conv_problem.h"
#include "table/judge.h"
#include "table/fingerprint_fields.h"
#include "measure/measure_reference.h"
#include "table/table_filter.h"

/* ---- the machine ---- */

static void add_machine(struct tnd_text *out, const struct tandem_table *table)
{
    if (!table->has_fingerprint) {
        tnd_text_add(out, "machine: unknown, the file does not say\n");
        return;
    }
    tnd_text_add(out, "machine\n");
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        const char *text =
            field->kind == TND_FIELD_TEXT ? tnd_fingerprint_string(&table->fingerprint, field) : "";
        uint64_t number =
            field->kind == TND_FIELD_TEXT ? 0 : tnd_fingerprint_number(&table->fingerprint, field);
        if (field->kind == TND_FIELD_TEXT && text[0] != '\0') {
            tnd_text_printf(out, "    %-14s %s\n", field->name, text);
        } else if (field->kind == TND_FIELD_HASH && number != 0) {
            tnd_text_printf(out, "    %-14s %016" PRIx64 "\n", field->name, number);
        } else if (number != 0) {
            tnd_text_printf(out, "    %-14s %" PRIu64 "\n", field->name, number);
        }
    }
    for (int i = 0; i < table->fingerprint.n_identities; i++) {
        const struct tnd_identity *identity = &table->fingerprint.identities[i];
        if (tnd_fingerprint_field_of(identity) == NULL) {
            tnd_text_printf(out, "    %-14s %s %s\n", identity->backend, identity->key,
                            identity->value);
        }
    }
}

/* ---- groups of curves: one type, backend and task, cold or warm ---- */

struct group {
    int64_t n_cells, n_noisy, n_stale;
    int64_t n_shapes;
    int64_t shape[2]; /* the latest one; shapes of a type are adjacent in the table */
    int64_t first_m, last_m;
    int32_t threads[64];
    int n_threads;
    int64_t newest;
};

static bool same_group(const struct tnd_curve_key *a, const struct tnd_curve_key *b)
{
    return a->type == b->type && a->task == b->task && a->warm == b->warm &&
           strcmp(a->backend, b->backend) == 0 && strcmp(a->op, b->op) == 0;
}

static void add_threads(struct group *group, int32_t threads)
{
    int at = group->n_threads;
    while (at > 0 && group->threads[at - 1] > threads) {
        at--;
    }
    bool is_there = at > 0 && group->threads[at - 1] == threads;
    if (!is_there && group->n_threads < 64) {
        memmove(&group->threads[at + 1], &group->threads[at],
                (size_t)(group->n_threads - at) * sizeof(group->threads[0]));
        group->threads[at] = threads;
        group->n_threads++;
    }
}

static void add_curve(struct group *group, const struct tnd_curve *curve)
{
    if (group->n_shapes == 0 || group->shape[0] != curve->key.n ||
        group->shape[1] != curve->key.k) {
        group->n_shapes++;
        group->shape[0] = curve->key.n;
        group->shape[1] = curve->key.k;
    }
    for (int i = 0; i < curve->n_samples; i++) {
        const struct tnd_sample *sample = &curve->samples[i];
        bool is_first = group->n_cells++ == 0;
        group->n_noisy += tnd_sample_is_noisy(sample);
        group->n_stale += tnd_sample_is_stale(sample);
        group->first_m = is_first || sample->m < group->first_m ? sample->m : group->first_m;
        group->last_m = sample->m > group->last_m ? sample->m : group->last_m;
        group->newest = sample->when > group->newest ? sample->when : group->newest;
    }
    add_threads(group, curve->key.threads);
}

static void add_group(struct tnd_text *out, const struct tnd_curve_key *key,
                      const struct group *group)
{
    char m[40];
    char task[32];
    char threads[80] = "";
    size_t n = 0;
    snprintf(task, sizeof(task), "%s%s", tandem_task_name((enum tandem_task)key->task),
             key->warm ? " warm" : "");
    snprintf(m, sizeof(m), "%" PRId64 "..%" PRId64, group->first_m, group->last_m);
    for (int i = 0; i < group->n_threads && n + 12 < sizeof(threads); i++) {
        n += (size_t)snprintf(threads + n, sizeof(threads) - n, "%s%d", i > 0 ? "," : "",
                              group->threads[i]);
    }
    tnd_text_printf(out,
                    "    %-8s %-6s %-10s %-19s %6" PRId64 " %-9s %-12s %7" PRId64 " %6" PRId64
                    " %6" PRId64 "  ",
                    key->op, tandem_type_name(key->type), key->backend, task, group->n_shapes, m,
                    threads, group->n_cells, group->n_noisy, group->n_stale);
    tnd_emit_date(out, group->newest);
    tnd_text_add(out, "\n");
}

static void add_groups(struct tnd_text *out, const struct tandem_table *table)
{
    tnd_text_printf(out, "cells\n    %-8s %-6s %-10s %-19s %6s %-9s %-12s %7s %6s %6s  newest\n",
                    "op", "type", "backend", "task", "shapes", "M", "threads", "cells", "noisy",
                    "stale");
    for (int i = 0; i < table->n_curves; i++) {
        const struct tnd_curve_key *key = &table->curves[i].key;
        struct group group = {0};
        bool is_first = true;
        for (int j = 0; j < i && is_first; j++) {
            is_first = !same_group(&table->curves[j].key, key);
        }
        for (int j = i; j < table->n_curves && is_first; j++) {
            if (same_group(&table->curves[j].key, key)) {
                add_curve(&group, &table->curves[j]);
            }
        }
        if (is_first) {
            add_group(out, key, &group);
        }
    }
}

static void add_moves(struct tnd_text *out, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_transfers; i++) {
        const struct tnd_transfer *transfer = &table->transfers[i];
        const struct tnd_sample *last = &transfer->curve.samples[transfer->curve.n_samples - 1];
        tnd_text_printf(
            out, "%s    %-10s %-8s %d cells, %.3g GB/s at %" PRId64 " bytes\n",
            i == 0 ? "transfers\n" : "", transfer->backend,
            tnd_direction_name((enum tnd_direction)transfer->direction), transfer->curve.n_samples,
            last->median_us > 0 ? (double)last->m / last->median_us / 1e3 : 0.0, last->m);
    }
    for (int i = 0; i < table->n_handoffs; i++) {
        const struct tnd_handoff *handoff = &table->handoffs[i];
        tnd_text_printf(out, "%s    %d threads: %.3g us to workers that spin, %.3g us asleep\n",
                        i == 0 ? "hand-offs\n" : "", handoff->threads, handoff->spin_us,
                        handoff->wake_us);
    }
}

/* Adds one line per profile and type. */
static void add_checks(struct tnd_text *out, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_checks; i++) {
        const struct tnd_check *check = &table->checks[i];
        bool is_first = i == 0 || check[-1].type != check->type ||
                        strcmp(check[-1].profile, check->profile) != 0;
        double nmse = 0;
        if (i == 0) {
            tnd_text_add(out, "results (error against double precision)\n");
        }
        if (is_first) {
            bool is_wrong =
                tnd_table_check(table, check->profile, check->type, 0, &nmse) == TND_VERDICT_WRONG;
            tnd_text_printf(out, "    %-24s %-6s %-5s %8.2g, allowed %.0e  ", check->profile,
                            tandem_type_name(check->type), is_wrong ? "WRONG" : "right", nmse,
                            check->bound);
            tnd_emit_date(out, check->when);
            tnd_text_add(out, "\n");
        }
    }
}

static void add_peaks(struct tnd_text *out, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_peaks; i++) {
        const struct tnd_peak *peak = &table->peaks[i];
        bool reads = strcmp(peak->unit, "read") == 0 || strcmp(peak->unit, "cache") == 0 ||
                     strncmp(peak->unit, "numa-", 5) == 0;
        tnd_text_printf(out, "%s    %-10s %3d %s %8.4g %s\n", i == 0 ? "peaks of this CPU\n" : "",
                        peak->unit, peak->threads, peak->threads > 1 ? "threads" : "thread ",
                        peak->rate, reads ? "GB/s" : "Gop/s");
    }
}

static void add_slowdowns(struct tnd_text *out, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_slowdowns; i++) {
        const struct tnd_slowdown *slowdown = &table->slowdowns[i];
        tnd_text_printf(out, "%s    %-10s takes %.2f times as long while %s works\n",
                        i == 0 ? "beside each other\n" : "", slowdown->backend, slowdown->factor,
                        slowdown->beside);
    }
}

static void add_sweeps(struct tnd_text *out, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_sweeps; i++) {
        const struct tnd_sweep_state *sweep = &table->sweeps[i];
        char text[160];
        bool is_unsteady = tnd_sweep_state_text(sweep, text, sizeof(text));
        tnd_text_add(out, i == 0 ? "the machine while it was measured\n    " : "    ");
        tnd_emit_date(out, sweep->when);
        tnd_text_printf(out, " %s\n", is_unsteady ? text : "steady");
    }
}

static void add_programs(struct tnd_text *out, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_programs; i++) {
        const struct tnd_program_time *one = &table->programs[i];
        const uint32_t tokens = one->prompt + one->generated;
        tnd_text_add(out, i == 0 ? "other programs' own times\n    " : "    ");
        tnd_emit_date(out, one->when);
        tnd_text_printf(
            out, " %s %s, %s: %s of %u tokens, -t %d -ub %" PRId64 " -ngl %u: %.4g tokens/s\n",
            one->program, one->version, one->backends, one->generated > 0 ? "generation" : "prompt",
            tokens, one->threads, one->ubatch, one->layers,
            one->median_us > 0 ? 1e6 * tokens / one->median_us : 0.0);
    }
}

static void add_convolutions(struct tnd_text *out, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_convolutions; i++) {
        const struct tnd_conv_time *one = &table->convolutions[i];
        struct tnd_conv_shape shape;
        char problem[TND_CONV_PROBLEM_MAX];
        tnd_text_add(out, i == 0 ? "convolutions\n" : "");
        if (tnd_conv_shape_of(one, &shape)) {
            tnd_conv_problem_print(&shape, one->device[0] != '\0' ? 0 : one->threads,
                                   TND_CONV_METHODS, problem, sizeof(problem));
            tnd_text_printf(out, "    %s:%s%s%s %.1f us\n", problem, one->method,
                            one->device[0] != '\0' ? " on " : "", one->device, one->median_us);
        } else {
            tnd_text_printf(out, "    %s of window %s, which is none\n", one->method, one->window);
        }
    }
}

static void add_hosted(struct tnd_text *out, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_hosted; i++) {
        const struct tnd_hosted_time *one = &table->hosted[i];
        const double error_us =
            tnd_time_error(one->median_us, one->spread_us, one->count, TND_SINGLE_SHOT_ERROR);
        if (i == 0 || strcmp(one->program, one[-1].program) != 0) {
            tnd_text_printf(out, "products inside of %s\n", one->program);
        }
        tnd_text_printf(out, "    %s:n%" PRId64 ":k%" PRId64 ":m%" PRId64,
                        tandem_type_name(one->type), one->n, one->k, one->m);
        if (one->experts > 0) {
            tnd_text_printf(out, " %u of %u experts", one->used, one->experts);
        }
        tnd_text_printf(out, ", threads %d: %s %.1f +- %.1f us, %u times of ", one->threads,
                        one->kernels, one->median_us, error_us, one->count);
        tnd_emit_date(out, one->when);
        tnd_text_add(out, one->disturbed != 0 ? ", disturbed\n" : "\n");
    }
}

static void add_kernel_times(struct tnd_text *out, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_kernel_times; i++) {
        const struct tnd_kernel_time *one = &table->kernel_times[i];
        const double error_us =
            tnd_time_error(one->median_us, one->spread_us, one->count, TND_SINGLE_SHOT_ERROR);
        if (i == 0 || strcmp(one->backend, one[-1].backend) != 0 ||
            strcmp(one->family, one[-1].family) != 0) {
            tnd_text_printf(out, "numbers of kernels: %s of %s\n", one->family, one->backend);
        }
        tnd_text_printf(out, "    %s, %s:n%" PRId64 ":k%" PRId64 ":m%" PRId64, one->numbers,
                        tandem_type_name(one->type), one->n, one->k, one->m);
        tnd_text_printf(out, ", threads %d: %.1f +- %.1f us, %u times of ", one->threads,
                        one->median_us, error_us, one->count);
        tnd_emit_date(out, one->when);
        tnd_text_add(out, "\n");
    }
}

void tnd_show_table(struct tnd_text *out, const struct tandem_table *table)
{
    add_machine(out, table);
    tnd_text_add(out, "profiles\n   ");
    for (int i = 0; i < table->n_profiles; i++) {
        tnd_text_printf(out, " %s", table->profiles[i].name);
    }
    tnd_text_add(out, "\n");
    add_groups(out, table);
    add_moves(out, table);
    add_peaks(out, table);
    add_slowdowns(out, table);
    add_checks(out, table);
    add_sweeps(out, table);
    add_programs(out, table);
    add_convolutions(out, table);
    add_hosted(out, table);
    add_kernel_times(out, table);
    tnd_text_printf(out, "%" PRId64 " cells in all\n", tnd_table_count_cells(table));
}

/* ---- layers ---- */

void tnd_show_layers(struct tnd_text *out, const struct tnd_layers *layers)
{
    for (int i = 0; i < layers->n; i++) {
        const struct tnd_layer *layer = &layers->layers[i];
        tnd_text_printf(out, "%-7s %s\n", tnd_layer_origin_name(layer->origin), layer->path);
        if (!layer->is_there) {
            tnd_text_add(out, "        is not there\n");
        } else if (layer->serves && layer->n_invalid == 0) {
            tnd_text_printf(out, "        serves: %" PRId64 " cells\n", layer->n_cells);
        } else if (layer->serves) {
            tnd_text_printf(out, "        serves: %" PRId64 " of %" PRId64 " cells; %s\n",
                            layer->n_cells - layer->n_invalid, layer->n_cells, layer->error.text);
        } else {
            tnd_text_printf(out, "        does not serve: %s\n", layer->error.text);
        }
    }
}

void tnd_show_invalid(struct tnd_text *out, const struct tnd_invalid_report *report)
{
    for (int i = 0; i < report->n; i++) {
        const struct tnd_invalid_reason *reason = &report->reasons[i];
        char parts[96];
        tnd_parts_text(reason, parts, sizeof(parts));
        tnd_text_printf(out, "    %s: invalidates %s, %" PRId64 " cells\n", reason->text, parts,
                        reason->n_cells);
    }
}
