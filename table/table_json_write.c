/* SPDX-License-Identifier: MIT
 * Writer of the JSON table, version 2 (docs/table-format.md, docs/table.schema.json). Does not need
 * cJSON: the layout is for people, one sample a line, and every number reads back as the same
 * double. */
#include <inttypes.h>

#include "base/emit.h"
#include "table/fingerprint_fields.h"
#include "table/record_json.h"
#include "table/table_cells.h"

static const char *boolean(bool value)
{
    return value ? "true" : "false";
}

/* Facts that only text tables have; present if the table came from one, so that it can be written
 * as one again. */
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
        if (tnd_fingerprint_field_is_later(field) &&
            tnd_fingerprint_string(fingerprint, field)[0] == '\0') {
            continue;
        }
        tnd_text_printf(out, "%s\n    \"%s\": ", i > 0 ? "," : "", field->name);
        if (field->kind == TND_FIELD_TEXT) {
            tnd_emit_json_string(out, tnd_fingerprint_string(fingerprint, field));
        } else if (field->kind == TND_FIELD_HASH) {
            tnd_text_printf(out, "\"%016" PRIx64 "\"", tnd_fingerprint_number(fingerprint, field));
        } else {
            tnd_text_printf(out, "%" PRIu64, tnd_fingerprint_number(fingerprint, field));
        }
    }
    const char *before = ",\n    \"identities\": [";
    for (int i = 0; i < fingerprint->n_identities; i++) {
        const struct tnd_identity *identity = &fingerprint->identities[i];
        if (tnd_fingerprint_field_of(identity) == NULL) {
            tnd_text_printf(out, "%s\n      {\"backend\": ", before);
            tnd_emit_json_string(out, identity->backend);
            tnd_text_add(out, ", \"key\": ");
            tnd_emit_json_string(out, identity->key);
            tnd_text_add(out, ", \"value\": ");
            tnd_emit_json_string(out, identity->value);
            tnd_text_add_char(out, '}');
            before = ",";
        }
    }
    tnd_text_add(out, before[1] == '\0' ? "]\n  },\n" : "\n  },\n");
}

static void print_profile(struct tnd_text *out, const struct tnd_table_profile *profile)
{
    tnd_text_add(out, "{\"name\": ");
    tnd_emit_json_string(out, profile->name);
    tnd_text_add(out, ", \"stages\": {");
    const char *before = "";
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        if (stage->backend[0] == '\0') {
            continue;
        }
        tnd_text_printf(out, "%s\n      \"%s\": {\"backend\": ", before, tnd_stage_names[s]);
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
    tnd_text_add_char(&out, ']');
    for (int kind = 0; kind < TND_RECORD_KINDS; kind++) {
        tnd_record_print_json(&out, table, (enum tnd_record)kind);
    }
    const uint64_t later = tnd_table_checksum_later(table);
    if (later != 0) {
        tnd_text_printf(&out, ",\n  \"checksum_later\": \"%016" PRIx64 "\"", later);
    }
    tnd_text_printf(&out, ",\n  \"checksum\": \"%016" PRIx64 "\"\n}\n", tnd_table_checksum(table));
    return tnd_emit_end(&out, write, user, "JSON table", error);
}
