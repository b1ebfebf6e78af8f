/* SPDX-License-Identifier: MIT
 * Hash of the contents of a JSON table. It is stored in the file, so that a flipped digit is
 * noticed. What is hashed, in which order, is part of the format: docs/table-format.md. */
#include <string.h>

#include "base/hash.h"
#include "base/emit.h"
#include "table/fingerprint_fields.h"
#include "table/records.h"
#include "table/table_cells.h"

/* Hashes the string as the file has it: '?' for each byte that is not UTF-8. */
static uint64_t add_string(uint64_t hash, const char *string)
{
    while (*string != '\0') {
        size_t n = tnd_emit_utf8_length(string);
        hash = tnd_hash_bytes(n > 0 ? string : "?", n > 0 ? n : 1, hash);
        string += n > 0 ? n : 1;
    }
    return tnd_hash_bytes("", 1, hash);
}

/* Little-endian on every machine. */
static uint64_t add_number(uint64_t hash, uint64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
    return tnd_hash_bytes(bytes, sizeof(bytes), hash);
}

static uint64_t add_double(uint64_t hash, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return add_number(hash, bits);
}

static uint64_t add_header(uint64_t hash, const struct tandem_table *table)
{
    hash = add_number(hash, (uint64_t)table->version);
    hash = add_string(hash, table->model);
    hash = add_string(hash, table->type_text);
    hash = add_string(hash, table->gpu_name);
    hash = add_number(hash, table->gpu_kind);
    hash = add_number(hash, (uint64_t)table->m_step);
    for (int i = 0; i < table->n_shapes; i++) {
        hash = add_number(hash, (uint64_t)table->shapes[i][0]);
        hash = add_number(hash, (uint64_t)table->shapes[i][1]);
    }
    hash = add_number(hash, table->has_fingerprint);
    for (int i = 0; table->has_fingerprint && i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        if (tnd_fingerprint_field_is_later(field)) {
            continue;
        }
        hash = field->kind == TND_FIELD_TEXT
                   ? add_string(hash, tnd_fingerprint_string(&table->fingerprint, field))
                   : add_number(hash, tnd_fingerprint_number(&table->fingerprint, field));
    }
    for (int i = 0; table->has_fingerprint && i < table->fingerprint.n_identities; i++) {
        const struct tnd_identity *identity = &table->fingerprint.identities[i];
        if (tnd_fingerprint_field_of(identity) == NULL) {
            hash = add_string(hash, identity->backend);
            hash = add_string(hash, identity->key);
            hash = add_string(hash, identity->value);
        }
    }
    return hash;
}

static uint64_t add_profile(uint64_t hash, const struct tnd_table_profile *profile)
{
    hash = add_string(hash, profile->name);
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        hash = add_string(hash, stage->backend);
        if (stage->backend[0] != '\0') {
            hash = add_number(hash, stage->kind);
            hash = add_string(hash, tandem_task_name((enum tandem_task)stage->task));
            hash = add_number(hash, (uint64_t)stage->parallel | (uint64_t)stage->wait << 1 |
                                        (uint64_t)stage->own_threads << 2);
        }
    }
    return hash;
}

/* The flags of a record are hashed as one number, one bit each. */
static uint64_t flags_of(const struct tnd_record_kind *kind, const void *record)
{
    uint64_t flags = 0;
    for (int i = 0; i < kind->n_facts; i++) {
        const struct tnd_fact *fact = &kind->facts[i];
        if (tnd_fact_form(fact->kind) == TND_FORM_FLAG) {
            flags |= (uint64_t)tnd_fact_whole(fact, record) << (fact->kind - TND_FACT_FLAG_0);
        }
    }
    return flags;
}

static uint64_t add_pair(uint64_t hash, const struct tnd_fact *fact, const void *record)
{
    struct tnd_reference_time pair;
    memcpy(&pair, (const char *)record + fact->offset, sizeof(pair));
    return add_double(add_double(hash, pair.fastest_us), pair.mean_us);
}

static uint64_t add_fact(uint64_t hash, const struct tnd_record_kind *kind,
                         const struct tnd_fact *fact, const void *record)
{
    switch (tnd_fact_form(fact->kind)) {
    case TND_FORM_TEXT:
        return fact->kind == TND_FACT_DEVICE && tnd_fact_is_left_out(fact, record)
                   ? hash
                   : add_string(hash, tnd_fact_text(fact, record));
    case TND_FORM_REAL:
        if (fact->kind == TND_FACT_JOULES && tnd_fact_is_left_out(fact, record)) {
            return hash;
        }
        return add_double(hash, tnd_fact_real(fact, record));
    case TND_FORM_PAIR:
        return add_pair(hash, fact, record);
    case TND_FORM_FLAG: /* all together, at the place of the first one */
        return fact->kind == TND_FACT_FLAG_0 ? add_number(hash, flags_of(kind, record)) : hash;
    default:
        break;
    }
    int64_t value = tnd_fact_whole(fact, record);
    if (fact->kind == TND_FACT_TASK) {
        return add_string(hash, tandem_task_name((enum tandem_task)value));
    }
    const bool is_skipped = fact->kind == TND_FACT_GENERATION || fact->kind == TND_FACT_MARK;
    return is_skipped && value == 0 ? hash : add_number(hash, (uint64_t)value);
}

static uint64_t add_record(uint64_t hash, const struct tnd_record_kind *kind, const void *record)
{
    const struct tnd_fact *facts[TND_MAX_FACTS];
    int n = tnd_facts_in_files(kind, facts);
    for (int i = 0; i < n; i++) {
        hash = add_fact(hash, kind, facts[i], record);
    }
    if (kind->samples != 0) {
        const struct tnd_vector *samples =
            (const struct tnd_vector *)((const char *)record + kind->samples);
        for (int i = 0; i < samples->n; i++) {
            hash =
                add_record(hash, &tnd_sample_kind, (const struct tnd_sample *)samples->items + i);
        }
    }
    return hash;
}

/* Hashes the records in their sorted order; for curves a sum, so that their order does not
 * matter. */
static uint64_t add_records(uint64_t hash, const struct tandem_table *table, enum tnd_record kind)
{
    bool is_sum = kind == TND_RECORD_CURVES;
    uint64_t sum = 0;
    for (int i = 0; i < tnd_record_list_const(table, kind)->n; i++) {
        const void *record = tnd_record_at(table, kind, i);
        sum += is_sum ? add_record(0, &tnd_record_kinds[kind], record) : 0;
        hash = is_sum ? hash : add_record(hash, &tnd_record_kinds[kind], record);
    }
    return is_sum ? add_number(hash, sum) : hash;
}

uint64_t tnd_table_checksum(const struct tandem_table *table)
{
    uint64_t hash = add_header(0, table);
    for (int i = 0; i < table->n_profiles; i++) {
        hash = add_profile(hash, &table->profiles[i]);
    }
    for (int kind = 0; kind < TND_RECORD_LATER; kind++) { /* empty lists do not change the hash */
        hash = add_records(hash, table, (enum tnd_record)kind);
    }
    return hash;
}

uint64_t tnd_table_checksum_later(const struct tandem_table *table)
{
    const char *cpu_id = table->fingerprint.cpu_id;
    uint64_t hash = table->has_fingerprint && cpu_id[0] != '\0' ? add_string(0, cpu_id) : 0;
    for (int kind = TND_RECORD_LATER; kind < TND_RECORD_KINDS; kind++) {
        hash = add_records(hash, table, (enum tnd_record)kind);
    }
    return hash;
}
