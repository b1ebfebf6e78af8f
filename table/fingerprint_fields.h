/* SPDX-License-Identifier: MIT
 * The fields of a fingerprint as a list, so that comparing, merging, hashing and the JSON file walk
 * the same rows. Adding a field: one row here, one member in tnd_table.h. */
#ifndef TND_FINGERPRINT_FIELDS_H
#define TND_FINGERPRINT_FIELDS_H

#include "table/tnd_table.h"

enum tnd_field_kind { TND_FIELD_TEXT, TND_FIELD_COUNT, TND_FIELD_BYTES, TND_FIELD_HASH };

enum tnd_field_comparison {
    TND_COMPARE_NOT, /* for people only */
    TND_COMPARE_EXACTLY,
    TND_COMPARE_ROUGHLY, /* within a tenth */
    TND_COMPARE_FIRST_WORD
};

/* X(kind, member, comparison), in the order in which differences are told. */
#define TND_FINGERPRINT_LIST(X)                                                                    \
    X(TEXT, cpu_model, TND_COMPARE_EXACTLY)                                                        \
    X(TEXT, isa, TND_COMPARE_EXACTLY)                                                              \
    X(COUNT, n_cpus, TND_COMPARE_EXACTLY)                                                          \
    X(COUNT, n_cores, TND_COMPARE_EXACTLY)                                                         \
    X(COUNT, n_core_kinds, TND_COMPARE_EXACTLY)                                                    \
    X(BYTES, l2_bytes, TND_COMPARE_EXACTLY)                                                        \
    X(BYTES, l3_bytes, TND_COMPARE_EXACTLY)                                                        \
    X(BYTES, ram_bytes, TND_COMPARE_ROUGHLY)                                                       \
    X(HASH, topology_hash, TND_COMPARE_EXACTLY)                                                    \
    X(TEXT, openblas, TND_COMPARE_EXACTLY)                                                         \
    X(TEXT, gpu, TND_COMPARE_EXACTLY)                                                              \
    X(TEXT, driver, TND_COMPARE_EXACTLY)                                                           \
    X(TEXT, build_id, TND_COMPARE_FIRST_WORD)                                                      \
    X(TEXT, library, TND_COMPARE_NOT)

struct tnd_fingerprint_field {
    const char *name;
    enum tnd_field_kind kind;
    enum tnd_field_comparison compared;
    size_t offset;
    size_t bytes;
};

extern const struct tnd_fingerprint_field tnd_fingerprint_fields[];
int tnd_fingerprint_field_count(void);
/** Value of a field that is no text; 0 when unknown. */
uint64_t tnd_fingerprint_number(const struct tnd_fingerprint *fingerprint,
                                const struct tnd_fingerprint_field *field);
const char *tnd_fingerprint_string(const struct tnd_fingerprint *fingerprint,
                                   const struct tnd_fingerprint_field *field);

#endif
