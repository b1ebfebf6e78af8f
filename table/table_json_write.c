/* SPDX-License-Identifier: MIT
 * Writer of the JSON table, version 2 (docs/table-format.md, docs/table.schema.json). Needs no
 * cJSON: the text is laid out for people, one sample a line, and every number reads back as the
 * same double. */
#include <inttypes.h>

#include "base/emit.h"
#include "table/fingerprint_fields.h"
#include "table/table_cells.h"

static const char *boolean(bool value)
{
    return value ? "true" : "false";
}

/* What only a text file knows; there when the table came from one, so that it can become one again.
 * */
static void print_text_header(struct tnd_text *out, const struct tandem_table *table)
{
    if (table->type_text[0] == '\0' && table->gpu_name[0] == '\0' && table->m_step == 0 &&
        table->gpu_kind == 0 && table->n_shapes == 0) {
        return;
    }
    tnd_text_add(out, "  \"text_header\": {\"type\": ");
    tnd_emit_json_string(out, table->type_text);
    tnd_text_printf(out, ", \"gpu_kind\": %d, \"gpu_name\": ", table->gpu_kind);
    tnd_emit_json_string(out, table->gpu_name);
    tnd_text_printf(out, ", \"m_step\": %" PRId64 ", \"shapes\": [", table->m_step);
    for (int i = 0; i < table->n_shapes; i++) {
        tnd_text_printf(out, "%s[%" PRId64 ", %" PRId64 "]", i > 0 ? ", " : "", table->shapes[i][0],
                        table->shapes[i][1]);
    }
    tnd_text_add(out, "]},\n");
}

static void print_fingerprint(struct tnd_text *out, const struct tnd_fingerprint *fingerprint)
{
    tnd_text_add(out, "  \"fingerprint\": {");
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        tnd_text_printf(out, "%s\n    \"%s\": ", i > 0 ? "," : "", field->name);
        if (field->kind == TND_FIELD_TEXT) {
            tnd_emit_json_string(out, tnd_fingerprint_string(fingerprint, field));
        } else if (field->kind == TND_FIELD_HASH) {
            tnd_text_printf(out, "\"%016" PRIx64 "\"", tnd_fingerprint_number(fingerprint, field));
        } else {
            tnd_text_printf(out, "%" PRIu64, tnd_fingerprint_number(fingerprint, field));
        }
    }
    tnd_text_add(out, "\n  },\n");
}

static void print_profile(struct tnd_text *out, const struct tnd_table_profile *profile)
{
    static const char *const names[TANDEM_STAGES] = {"init", "compute", "finalize"};
    tnd_text_add(out, "{\"name\": ");
    tnd_emit_json_string(out, profile->name);
    tnd_text_add(out, ", \"stages\": {");
    const char *before = "";
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        if (stage->backend[0] == '\0') {
            continue;
        }
        tnd_text_printf(out, "%s\n      \"%s\": {\"backend\": ", before, names[s]);
        tnd_emit_json_string(out, stage->backend);
        tnd_text_printf(out,
                        ", \"kind\": %d, \"task\": \"%s\", \"parallel\": %s, \"wait\": %s, "
                        "\"own_threads\": %s}",
                        stage->kind, tandem_task_name((enum tandem_task)stage->task),
                        boolean(stage->parallel), boolean(stage->wait),
                        boolean(stage->own_threads));
        before = ",";
    }
    tnd_text_add(out, "}}");
}

/* Samples over `what`, "m" or "bytes", one a line. */
static void print_samples(struct tnd_text *out, const char *what, const struct tnd_curve *curve)
{
    for (int i = 0; i < curve->n_samples; i++) {
        const struct tnd_sample *sample = &curve->samples[i];
        tnd_text_printf(out, "%s\n      {\"%s\": %" PRId64 ", \"median_us\": ", i > 0 ? "," : "",
                        what, sample->m);
        tnd_text_add_double(out, sample->median_us);
        tnd_text_add(out, ", \"spread_us\": ");
        tnd_text_add_double(out, sample->spread_us);
        tnd_text_printf(out, ", \"count\": %" PRIu32 ", \"when\": %" PRId64, sample->count,
                        sample->when);
        if (sample->generation != 0) {
            tnd_text_printf(out, ", \"generation\": %" PRIu32, sample->generation);
        }
        tnd_text_add_char(out, '}');
    }
}

static void print_curve(struct tnd_text *out, const struct tnd_curve *curve)
{
    static const char *const names[TANDEM_STAGES] = {"init", "compute", "finalize"};
    const struct tnd_curve_key *key = &curve->key;
    tnd_text_add(out, "{\"op\": ");
    tnd_emit_json_string(out, key->op);
    tnd_text_printf(out,
                    ", \"type\": \"%s\", \"n\": %" PRId64 ", \"k\": %" PRId64 ", \"backend\": ",
                    tandem_type_name(key->type), key->n, key->k);
    tnd_emit_json_string(out, key->backend);
    tnd_text_printf(out,
                    ", \"stage\": \"%s\", \"task\": \"%s\", \"parallel\": %s, \"own_threads\": %s, "
                    "%s\"threads\": %d, \"samples\": [",
                    names[key->stage], tandem_task_name((enum tandem_task)key->task),
                    boolean(key->parallel), boolean(key->own_threads),
                    key->warm ? "\"warm\": true, " : "", key->threads);
    print_samples(out, "m", curve);
    tnd_text_add(out, "]}");
}

static void print_moves(struct tnd_text *out, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_transfers; i++) {
        const struct tnd_transfer *transfer = &table->transfers[i];
        tnd_text_add(out, i == 0 ? ",\n  \"transfers\": [\n    " : ",\n    ");
        tnd_text_add(out, "{\"backend\": ");
        tnd_emit_json_string(out, transfer->backend);
        tnd_text_printf(out, ", \"direction\": \"%s\", \"samples\": [",
                        tnd_direction_name((enum tnd_direction)transfer->direction));
        print_samples(out, "bytes", &transfer->curve);
        tnd_text_add(out, i + 1 == table->n_transfers ? "]}]" : "]}");
    }
    for (int i = 0; i < table->n_handoffs; i++) {
        const struct tnd_handoff *handoff = &table->handoffs[i];
        tnd_text_add(out, i == 0 ? ",\n  \"handoffs\": [\n    " : ",\n    ");
        tnd_text_printf(out, "{\"threads\": %d, \"spin_us\": ", handoff->threads);
        tnd_text_add_double(out, handoff->spin_us);
        tnd_text_add(out, ", \"wake_us\": ");
        tnd_text_add_double(out, handoff->wake_us);
        tnd_text_printf(out, ", \"count\": %" PRIu32 ", \"when\": %" PRId64 "}%s", handoff->count,
                        handoff->when, i + 1 == table->n_handoffs ? "]" : "");
    }
}

static void print_checks(struct tnd_text *out, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_checks; i++) {
        const struct tnd_check *check = &table->checks[i];
        tnd_text_add(out, i == 0 ? ",\n  \"checks\": [\n    " : ",\n    ");
        tnd_text_add(out, "{\"profile\": ");
        tnd_emit_json_string(out, check->profile);
        tnd_text_printf(out,
                        ", \"type\": \"%s\", \"n\": %" PRId64 ", \"k\": %" PRId64
                        ", \"m\": %" PRId64 ", \"nmse\": ",
                        tandem_type_name(check->type), check->n, check->k, check->m);
        tnd_text_add_double(out, check->nmse);
        tnd_text_add(out, ", \"bound\": ");
        tnd_text_add_double(out, check->bound);
        tnd_text_printf(out, ", \"when\": %" PRId64 "}%s", check->when,
                        i + 1 == table->n_checks ? "]" : "");
    }
}

static void print_reference(struct tnd_text *out, const char *name,
                            const struct tnd_reference_time *time)
{
    tnd_text_printf(out, ", \"%s\": {\"fastest_us\": ", name);
    tnd_text_add_double(out, time->fastest_us);
    tnd_text_add(out, ", \"mean_us\": ");
    tnd_text_add_double(out, time->mean_us);
    tnd_text_add_char(out, '}');
}

static void print_evidence(struct tnd_text *out, const struct tandem_table *table)
{
    print_checks(out, table);
    for (int i = 0; i < table->n_slowdowns; i++) {
        const struct tnd_slowdown *slowdown = &table->slowdowns[i];
        tnd_text_add(out, i == 0 ? ",\n  \"slowdowns\": [\n    " : ",\n    ");
        tnd_text_add(out, "{\"backend\": ");
        tnd_emit_json_string(out, slowdown->backend);
        tnd_text_add(out, ", \"beside\": ");
        tnd_emit_json_string(out, slowdown->beside);
        tnd_text_add(out, ", \"factor\": ");
        tnd_text_add_double(out, slowdown->factor);
        tnd_text_printf(out, ", \"count\": %" PRIu32 ", \"when\": %" PRId64 "}%s", slowdown->count,
                        slowdown->when, i + 1 == table->n_slowdowns ? "]" : "");
    }
    for (int i = 0; i < table->n_sweeps; i++) {
        const struct tnd_sweep_state *sweep = &table->sweeps[i];
        tnd_text_add(out, i == 0 ? ",\n  \"sweeps\": [\n    " : ",\n    ");
        tnd_text_printf(out, "{\"when\": %" PRId64, sweep->when);
        print_reference(out, "before", &sweep->before);
        print_reference(out, "between", &sweep->between);
        print_reference(out, "after", &sweep->after);
        tnd_text_add(out, i + 1 == table->n_sweeps ? "}]" : "}");
    }
}

enum tandem_status tnd_table_write_json(const struct tandem_table *table, tandem_write_fn write,
                                        void *user, struct tandem_error *error)
{
    struct tnd_text out = TND_TEXT_INIT;
    tnd_text_add(&out, "{\n  \"version\": 2,\n");
    if (table->version == 1) {
        tnd_text_add(&out, "  \"from_version\": 1,\n");
    }
    tnd_text_add(&out, "  \"model\": ");
    tnd_emit_json_string(&out, table->model);
    tnd_text_add(&out, ",\n");
    print_text_header(&out, table);
    if (table->has_fingerprint) {
        print_fingerprint(&out, &table->fingerprint);
    }
    tnd_text_add(&out, "  \"profiles\": [");
    for (int i = 0; i < table->n_profiles; i++) {
        tnd_text_add(&out, i > 0 ? ",\n    " : "\n    ");
        print_profile(&out, &table->profiles[i]);
    }
    tnd_text_add(&out, "],\n  \"curves\": [");
    for (int i = 0; i < table->n_curves; i++) {
        tnd_text_add(&out, i > 0 ? ",\n    " : "\n    ");
        print_curve(&out, &table->curves[i]);
    }
    tnd_text_add_char(&out, ']');
    print_moves(&out, table);
    print_evidence(&out, table);
    tnd_text_printf(&out, ",\n  \"checksum\": \"%016" PRIx64 "\"\n}\n", tnd_table_checksum(table));
    return tnd_emit_end(&out, write, user, "JSON table", error);
}
