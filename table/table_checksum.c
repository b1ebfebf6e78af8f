/* SPDX-License-Identifier: MIT
 * Hash of what a JSON table says. It stands in the file, so that a flipped digit is noticed and not
 * believed. What is hashed, in which order, is part of the format: docs/table-format.md. */
#include <string.h>

#include "base/hash.h"
#include "base/emit.h"
#include "table/fingerprint_fields.h"
#include "table/table_cells.h"

/* As it stands in the file, where a byte that is not UTF-8 is a '?'. */
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
        hash = field->kind == TND_FIELD_TEXT
                   ? add_string(hash, tnd_fingerprint_string(&table->fingerprint, field))
                   : add_number(hash, tnd_fingerprint_number(&table->fingerprint, field));
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

static uint64_t add_samples(uint64_t hash, const struct tnd_curve *curve)
{
    for (int i = 0; i < curve->n_samples; i++) {
        const struct tnd_sample *sample = &curve->samples[i];
        hash = add_number(hash, (uint64_t)sample->m);
        hash = add_double(hash, sample->median_us);
        hash = add_double(hash, sample->spread_us);
        hash = add_number(hash, sample->count);
        hash = add_number(hash, (uint64_t)sample->when);
        if (sample->generation != 0) {
            hash = add_number(hash, sample->generation);
        }
    }
    return hash;
}

static uint64_t add_curve(uint64_t hash, const struct tnd_curve *curve)
{
    const struct tnd_curve_key *key = &curve->key;
    hash = add_string(hash, key->op);
    hash = add_number(hash, key->type);
    hash = add_number(hash, (uint64_t)key->n);
    hash = add_number(hash, (uint64_t)key->k);
    hash = add_string(hash, key->backend);
    hash = add_number(hash, key->stage);
    hash = add_string(hash, tandem_task_name((enum tandem_task)key->task));
    hash = add_number(hash, (uint64_t)key->parallel | (uint64_t)key->warm << 1 |
                                (uint64_t)key->own_threads << 2);
    hash = add_number(hash, (uint64_t)key->threads);
    return add_samples(hash, curve);
}

/* In the order in which they are sorted: by backend and direction, by threads. */
static uint64_t add_moves(uint64_t hash, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_transfers; i++) {
        hash = add_string(hash, table->transfers[i].backend);
        hash = add_number(hash, table->transfers[i].direction);
        hash = add_samples(hash, &table->transfers[i].curve);
    }
    for (int i = 0; i < table->n_handoffs; i++) {
        const struct tnd_handoff *handoff = &table->handoffs[i];
        hash = add_number(hash, (uint64_t)handoff->threads);
        hash = add_double(hash, handoff->spin_us);
        hash = add_double(hash, handoff->wake_us);
        hash = add_number(hash, handoff->count);
        hash = add_number(hash, (uint64_t)handoff->when);
    }
    return hash;
}

static uint64_t add_reference(uint64_t hash, const struct tnd_reference_time *time)
{
    return add_double(add_double(hash, time->fastest_us), time->mean_us);
}

/* In the order in which they are sorted. */
static uint64_t add_evidence(uint64_t hash, const struct tandem_table *table)
{
    for (int i = 0; i < table->n_checks; i++) {
        const struct tnd_check *check = &table->checks[i];
        hash = add_string(hash, check->profile);
        hash = add_number(hash, check->type);
        hash = add_number(hash, (uint64_t)check->n);
        hash = add_number(hash, (uint64_t)check->k);
        hash = add_number(hash, (uint64_t)check->m);
        hash = add_double(hash, check->nmse);
        hash = add_double(hash, check->bound);
        hash = add_number(hash, (uint64_t)check->when);
    }
    for (int i = 0; i < table->n_slowdowns; i++) {
        const struct tnd_slowdown *slowdown = &table->slowdowns[i];
        hash = add_string(hash, slowdown->backend);
        hash = add_string(hash, slowdown->beside);
        hash = add_double(hash, slowdown->factor);
        hash = add_number(hash, slowdown->count);
        hash = add_number(hash, (uint64_t)slowdown->when);
    }
    for (int i = 0; i < table->n_sweeps; i++) {
        const struct tnd_sweep_state *sweep = &table->sweeps[i];
        hash = add_number(hash, (uint64_t)sweep->when);
        hash = add_reference(hash, &sweep->before);
        hash = add_reference(hash, &sweep->between);
        hash = add_reference(hash, &sweep->after);
    }
    return hash;
}

uint64_t tnd_table_checksum(const struct tandem_table *table)
{
    uint64_t hash = add_header(0, table);
    for (int i = 0; i < table->n_profiles; i++) {
        hash = add_profile(hash, &table->profiles[i]);
    }
    /* A sum, so that the order of the curves means nothing. */
    uint64_t curves = 0;
    for (int i = 0; i < table->n_curves; i++) {
        curves += add_curve(0, &table->curves[i]);
    }
    hash = add_moves(add_number(hash, curves), table); /* nothing added where there are none */
    return add_evidence(hash, table);                  /* the same */
}
