/* SPDX-License-Identifier: MIT
 * Maps fields and identities that differ to records that are invalid. Start reading at the list of
 * dependencies. */
#include "table/invalidate.h"

#include <stdio.h>
#include <string.h>

#include "backends/kinds.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "table/fingerprint_fields.h"
#include "table/records.h"
#include "table/table_filter.h"

#define HOST (TND_PART_CPU | TND_PART_LIBRARY)

/* Fields of the machine and what depends on them. The identity of a backend invalidates the records
 * that name it, and no others. Properties of a core affect all times on the host; the number of
 * cores only those of teams; TANDEM_CPU only our own kernels, since libraries choose for
 * themselves; times of a device do not depend on the host, but transfers do. */
static const struct {
    const char *field;
    uint32_t parts;
} dependencies[] = {
    {"cpu_model", HOST | TND_PART_HANDOFFS | TND_PART_TRANSFERS},
    {"cpu_id", HOST | TND_PART_HANDOFFS | TND_PART_TRANSFERS},
    {"isa", TND_PART_CPU},
    {"n_cpus", TND_PART_TEAMS | TND_PART_HANDOFFS},
    {"n_cores", TND_PART_TEAMS | TND_PART_HANDOFFS},
    {"n_core_kinds", TND_PART_TEAMS | TND_PART_HANDOFFS},
    {"l2_bytes", HOST},
    {"l3_bytes", HOST},
    {"ram_bytes", HOST | TND_PART_TRANSFERS},
    {"topology_hash", TND_PART_TEAMS | TND_PART_HANDOFFS},
    {"build_id", TND_PART_CPU | TND_PART_HANDOFFS},
};
enum { N_DEPENDENCIES = sizeof(dependencies) / sizeof(dependencies[0]) };

static uint32_t field_parts(const char *field)
{
    for (int i = 0; i < N_DEPENDENCIES; i++) {
        if (strcmp(dependencies[i].field, field) == 0) {
            return dependencies[i].parts;
        }
    }
    return 0;
}

void tnd_parts_text(const struct tnd_invalid_reason *reason, char *out, size_t bytes)
{
    static const char *const names[] = {"our kernels", "BLAS libraries", "several threads",
                                        "hand-offs", "transfers"};
    size_t n = 0;
    TND_ASSERT(bytes > 0);
    snprintf(out, bytes, "%s", reason->backend);
    for (int i = 0; i < 5 && n < bytes; i++) {
        if ((reason->parts >> i & 1) != 0) {
            int printed = snprintf(out + n, bytes - n, "%s%s", n > 0 ? ", " : "", names[i]);
            n += printed > 0 ? (size_t)printed : 0;
        }
    }
}

/* ---- what a cell depends on ---- */

static int kind_of(const struct tandem_table *table, const char *backend)
{
    for (int i = 0; i < table->n_profiles; i++) {
        for (int s = 0; s < TANDEM_STAGES; s++) {
            const struct tnd_table_stage *stage = &table->profiles[i].stage[s];
            if (stage->kind != TANDEM_KIND_NONE && strcmp(stage->backend, backend) == 0) {
                return stage->kind;
            }
        }
    }
    return (int)tnd_kind_of(backend);
}

static uint32_t backend_parts(const struct tandem_table *table, const char *backend, uint32_t team)
{
    int kind = kind_of(table, backend);
    bool is_library = kind == TANDEM_KIND_OPENBLAS || kind == TANDEM_KIND_ACCELERATE;
    return kind == TANDEM_KIND_NONE  ? UINT32_MAX
           : kind == TANDEM_KIND_CPU ? TND_PART_CPU | team
           : is_library              ? TND_PART_LIBRARY | team
                                     : 0;
}

static uint32_t profile_parts(const struct tandem_table *table, const char *name, uint32_t team)
{
    const struct tnd_table_profile *profile = tnd_table_profile(table, name);
    uint32_t parts = profile == NULL ? UINT32_MAX : 0;
    for (int s = 0; profile != NULL && s < TANDEM_STAGES; s++) {
        if (profile->stage[s].backend[0] != '\0') {
            parts |= backend_parts(table, profile->stage[s].backend, team);
        }
    }
    return parts;
}

static uint32_t team_part(const struct tnd_record_kind *kind, const void *record)
{
    bool is_team = kind->team == TND_TEAM_ALWAYS;
    for (int i = 0; i < kind->n_facts && kind->team == TND_TEAM_BY_THREADS; i++) {
        is_team = is_team || (kind->facts[i].kind == TND_FACT_THREADS &&
                              tnd_fact_whole(&kind->facts[i], record) > 1);
    }
    return is_team ? TND_PART_TEAMS : 0;
}

static uint32_t record_parts(const struct tandem_table *table, enum tnd_record which,
                             const void *record)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    uint32_t team = team_part(kind, record);
    uint32_t parts = kind->parts != 0 ? kind->parts | team : 0;
    for (int i = 0; i < kind->n_facts && kind->parts == 0; i++) {
        const struct tnd_fact *fact = &kind->facts[i];
        if (fact->kind == TND_FACT_BACKEND) {
            parts |= backend_parts(table, tnd_fact_text(fact, record), team);
        } else if (fact->kind == TND_FACT_PROFILE) {
            parts |= profile_parts(table, tnd_fact_text(fact, record), team);
        }
    }
    return parts;
}

/* ---- invalidating ---- */

/* State of the filter; a cell counts for the first reason that invalidates it. */
struct search {
    const struct tandem_table *table;
    struct tnd_invalid_report *report;
};

/* Whether the record names the backend or a profile that uses it; an unknown profile may use it. */
static bool names_backend(const struct tandem_table *table, const struct tnd_record_kind *kind,
                          const void *record, const char *backend)
{
    for (int i = 0; i < kind->n_facts; i++) {
        const struct tnd_fact *fact = &kind->facts[i];
        if ((fact->kind == TND_FACT_BACKEND || fact->kind == TND_FACT_DEVICE) &&
            strcmp(tnd_fact_text(fact, record), backend) == 0) {
            return true;
        }
        if (fact->kind == TND_FACT_PROFILE) {
            const struct tnd_table_profile *profile =
                tnd_table_profile(table, tnd_fact_text(fact, record));
            bool is_there = profile == NULL;
            for (int s = 0; s < TANDEM_STAGES && !is_there; s++) {
                is_there = strcmp(profile->stage[s].backend, backend) == 0;
            }
            return is_there;
        }
    }
    return false;
}

static bool keep(void *user, enum tnd_record kind, const void *record,
                 const struct tnd_sample *sample)
{
    const struct search *search = user;
    struct tnd_invalid_report *report = search->report;
    uint32_t parts = record_parts(search->table, kind, record);
    (void)sample;
    for (int i = 0; i < report->n; i++) {
        const struct tnd_invalid_reason *reason = &report->reasons[i];
        bool depends =
            reason->backend[0] != '\0'
                ? names_backend(search->table, &tnd_record_kinds[kind], record, reason->backend)
                : (reason->parts & parts) != 0;
        if (depends) {
            bool is_cell = tnd_record_kinds[kind].kept == 0;
            report->reasons[i].n_cells += is_cell;
            report->n_cells += is_cell;
            return false;
        }
    }
    return true;
}

static bool is_known(const struct tnd_fingerprint *fingerprint,
                     const struct tnd_fingerprint_field *field)
{
    return field->kind == TND_FIELD_TEXT ? tnd_fingerprint_string(fingerprint, field)[0] != '\0'
                                         : tnd_fingerprint_number(fingerprint, field) != 0;
}

static void add_reason(struct tnd_invalid_report *out, const char *field, const char *backend,
                       const struct tandem_error *error)
{
    TND_ASSERT(out->n < TND_MAX_REASONS);
    struct tnd_invalid_reason *reason = &out->reasons[out->n++];
    snprintf(reason->field, sizeof(reason->field), "%s", field);
    snprintf(reason->backend, sizeof(reason->backend), "%s", backend != NULL ? backend : "");
    snprintf(reason->text, sizeof(reason->text), "%s", error->text);
    reason->parts = field_parts(field);
}

static void find_reasons(const struct tnd_fingerprint *table, const struct tnd_fingerprint *machine,
                         struct tnd_invalid_report *out)
{
    struct tandem_error error = {0};
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        if (!tnd_fingerprint_same_field(table, machine, field, &error)) {
            add_reason(out, field->name, field->backend, &error);
        }
    }
    for (int i = 0; i < table->n_identities; i++) {
        const struct tnd_identity *identity = &table->identities[i];
        if (tnd_fingerprint_field_of(identity) == NULL &&
            !tnd_fingerprint_same_identity(identity, machine, &error)) {
            add_reason(out, identity->backend, identity->backend, &error);
        }
    }
}

/* Fields that the machine knows replace those of the table. */
static void take_over(struct tnd_fingerprint *table, const struct tnd_fingerprint *machine)
{
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        if (is_known(machine, &tnd_fingerprint_fields[i])) {
            tnd_fingerprint_copy_field(table, machine, &tnd_fingerprint_fields[i]);
        }
    }
    for (int i = 0; i < machine->n_identities; i++) {
        const struct tnd_identity *identity = &machine->identities[i];
        (void)tnd_fingerprint_set_identity(table, identity->backend, identity->key,
                                           identity->value);
    }
}

void tnd_table_invalidate(struct tandem_table *table, const struct tnd_fingerprint *machine,
                          struct tnd_invalid_report *out_report)
{
    memset(out_report, 0, sizeof(*out_report));
    if (table->has_fingerprint) {
        struct search search = {table, out_report};
        find_reasons(&table->fingerprint, machine, out_report);
        if (out_report->n > 0) {
            tnd_table_remove(table, keep, &search);
        }
        take_over(&table->fingerprint, machine);
    }
}

enum tandem_status tnd_invalid_error(const struct tnd_invalid_report *report,
                                     struct tandem_error *error)
{
    if (report->n == 0) {
        return TANDEM_OK;
    }
    const struct tnd_invalid_reason *first = &report->reasons[0];
    char parts[96];
    char more[48] = "";
    tnd_parts_text(first, parts, sizeof(parts));
    if (report->n > 1) {
        snprintf(more, sizeof(more), "; %d more fields differ", report->n - 1);
    }
    return tnd_error_set(error, TANDEM_E_TABLE_FOREIGN, first->field, report->n_cells, 0,
                         "%s: %lld cells are invalid (%s)%s", first->text,
                         (long long)report->n_cells, parts, more);
}
