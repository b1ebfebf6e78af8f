/* SPDX-License-Identifier: MIT
 * The fields of a fingerprint as a list, so that comparing, merging, hashing and the JSON file use
 * the same rows. Adding a field: one row here, one member in tnd_table.h. */
#ifndef TND_FINGERPRINT_FIELDS_H
#define TND_FINGERPRINT_FIELDS_H

#include "table/tnd_table.h"

enum tnd_field_kind { TND_FIELD_TEXT, TND_FIELD_COUNT, TND_FIELD_BYTES, TND_FIELD_HASH };

enum tnd_field_comparison {
    TND_COMPARE_NOT, /* only shown to people */
    TND_COMPARE_EXACTLY,
    TND_COMPARE_ROUGHLY, /* within a tenth */
    TND_COMPARE_FIRST_WORD
};

/* X(kind, member, comparison), in the order in which differences are reported; I(member, backend,
 * key) are identities of two backends that are members of their own in files, since the first
 * version. */
#define TND_FINGERPRINT_LIST(X, I)                                                                 \
    X(TEXT, cpu_model, TND_COMPARE_EXACTLY)                                                        \
    X(TEXT, cpu_id, TND_COMPARE_EXACTLY)                                                           \
    X(TEXT, isa, TND_COMPARE_EXACTLY)                                                              \
    X(COUNT, n_cpus, TND_COMPARE_EXACTLY)                                                          \
    X(COUNT, n_cores, TND_COMPARE_EXACTLY)                                                         \
    X(COUNT, n_core_kinds, TND_COMPARE_EXACTLY)                                                    \
    X(BYTES, l2_bytes, TND_COMPARE_EXACTLY)                                                        \
    X(BYTES, l3_bytes, TND_COMPARE_EXACTLY)                                                        \
    X(BYTES, ram_bytes, TND_COMPARE_ROUGHLY)                                                       \
    X(HASH, topology_hash, TND_COMPARE_EXACTLY)                                                    \
    I(openblas, "openblas", "library")                                                             \
    I(gpu, "opencl", "device")                                                                     \
    I(driver, "opencl", "driver")                                                                  \
    X(TEXT, build_id, TND_COMPARE_FIRST_WORD)                                                      \
    X(TEXT, library, TND_COMPARE_NOT)

struct tnd_fingerprint_field {
    const char *name;
    enum tnd_field_kind kind;
    enum tnd_field_comparison compared;
    size_t offset;
    size_t bytes;
    const char *backend, *key; /* of a field that is an identity; else NULL */
};

extern const struct tnd_fingerprint_field tnd_fingerprint_fields[];
int tnd_fingerprint_field_count(void);
/** Whether older versions do not know the field: it is written only if it has a value, and hashed
 * into checksum_later. */
static inline bool tnd_fingerprint_field_is_later(const struct tnd_fingerprint_field *field)
{
    return field->offset == offsetof(struct tnd_fingerprint, cpu_id);
}
/** Value of a field that is not a text; 0 when unknown. */
uint64_t tnd_fingerprint_number(const struct tnd_fingerprint *fingerprint,
                                const struct tnd_fingerprint_field *field);
const char *tnd_fingerprint_string(const struct tnd_fingerprint *fingerprint,
                                   const struct tnd_fingerprint_field *field);
/** Sets a text field; false when the text is too long. */
bool tnd_fingerprint_set_string(struct tnd_fingerprint *fingerprint,
                                const struct tnd_fingerprint_field *field, const char *text);
/** Copies one field from another fingerprint. */
void tnd_fingerprint_copy_field(struct tnd_fingerprint *to, const struct tnd_fingerprint *from,
                                const struct tnd_fingerprint_field *field);
/** The field that represents this identity in files, or NULL. */
const struct tnd_fingerprint_field *tnd_fingerprint_field_of(const struct tnd_identity *identity);
/** Whether both agree in this field. If not, the error gets both values. */
bool tnd_fingerprint_same_field(const struct tnd_fingerprint *table,
                                const struct tnd_fingerprint *machine,
                                const struct tnd_fingerprint_field *field,
                                struct tandem_error *error);
/** Whether the machine does not contradict this identity of the table. If it does, the error gets
 * both values. */
bool tnd_fingerprint_same_identity(const struct tnd_identity *table,
                                   const struct tnd_fingerprint *machine,
                                   struct tandem_error *error);

#endif
