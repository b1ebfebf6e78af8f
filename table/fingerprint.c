/* SPDX-License-Identifier: MIT
 * Which machine was measured: reading this machine's identity, comparing two, and the path of this
 * machine's table. What changes times without changing the machine (RAM within a tenth, library
 * versions) does not make a table foreign; the instruction set allowed by TANDEM_CPU does. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/emit.h"
#include "base/environment.h"
#include "base/hash.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/topology.h"
#include "table/fingerprint_fields.h"
#include "table/table_cells.h"

/* First word of the build id: code without optimisation or with sanitizers has other times, and a
 * test run must not tune the installed library. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FLAVOUR "sanitized"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FLAVOUR "sanitized"
#endif
#endif
#ifndef FLAVOUR
#ifdef __OPTIMIZE__
#define FLAVOUR "optimised"
#else
#define FLAVOUR "plain"
#endif
#endif

#ifdef __clang__
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

const struct tnd_fingerprint_field tnd_fingerprint_fields[] = {
#define FIELD(kind, member, compared)                                                              \
    {#member,                                                                                      \
     TND_FIELD_##kind,                                                                             \
     compared,                                                                                     \
     offsetof(struct tnd_fingerprint, member),                                                     \
     sizeof(((struct tnd_fingerprint *)0)->member),                                                \
     NULL,                                                                                         \
     NULL},
#define IDENTITY(member, backend, key)                                                             \
    {#member,                                                                                      \
     TND_FIELD_TEXT,                                                                               \
     TND_COMPARE_EXACTLY,                                                                          \
     0,                                                                                            \
     sizeof(((struct tnd_identity *)0)->value),                                                    \
     backend,                                                                                      \
     key},
    TND_FINGERPRINT_LIST(FIELD, IDENTITY)
#undef IDENTITY
#undef FIELD
};

int tnd_fingerprint_field_count(void)
{
    return (int)(sizeof(tnd_fingerprint_fields) / sizeof(tnd_fingerprint_fields[0]));
}

void tnd_fingerprint_read(struct tnd_fingerprint *out)
{
    memset(out, 0, sizeof(*out));
    snprintf(out->cpu_model, sizeof(out->cpu_model), "%s", tnd_cpu_model());
    snprintf(out->cpu_id, sizeof(out->cpu_id), "%s", tnd_cpu_id());
    snprintf(out->isa, sizeof(out->isa), "%s", tnd_cpu_isa_name(tnd_cpu_features()));
    snprintf(out->library, sizeof(out->library), "%s", TANDEM_VERSION_STRING);
    snprintf(out->build_id, sizeof(out->build_id), "%s %s %d.%d", FLAVOUR, COMPILER, __GNUC__,
             __GNUC_MINOR__);
    struct tnd_cpu_caches caches = tnd_cpu_caches();
    out->l2_bytes = caches.l2_bytes;
    out->l3_bytes = caches.l3_bytes;
    out->ram_bytes = tnd_cpu_ram_bytes();
    struct tnd_topology *topology = tnd_alloc(sizeof(*topology));
    if (topology != NULL && tnd_topology_read(topology, NULL) == TANDEM_OK) {
        out->n_cpus = topology->n_cpus;
        out->n_cores = topology->n_cores;
        out->n_core_kinds = topology->n_core_kinds;
        out->topology_hash = topology->hash;
    }
    tnd_free(topology);
}

void tnd_fingerprint_read_all(const struct tnd_registry *registry, struct tnd_fingerprint *out)
{
    tnd_fingerprint_read(out);
    for (int slot = 1; slot < tnd_registry_count(registry); slot++) {
        struct tandem_backend_fact fact;
        tandem_backend *backend = tnd_registry_backend(registry, slot);
        for (int i = 0; backend != NULL && tnd_backend_identity(backend, i, &fact); i++) {
            (void)tnd_fingerprint_set_identity(out, tnd_registry_name(registry, slot), fact.key,
                                               fact.value);
        }
    }
}

/* ---- identities ---- */

/* Index of the first identity that is not before (backend, key). */
static int find_identity(const struct tnd_fingerprint *fingerprint, const char *backend,
                         const char *key, bool *out_is_there)
{
    int at = 0;
    int order = -1;
    TND_ASSERT(fingerprint->n_identities >= 0 && fingerprint->n_identities <= TND_MAX_IDENTITIES);
    for (; at < fingerprint->n_identities; at++) {
        const struct tnd_identity *identity = &fingerprint->identities[at];
        order = strcmp(identity->backend, backend);
        order = order != 0 ? order : strcmp(identity->key, key);
        if (order >= 0) {
            break;
        }
    }
    *out_is_there = order == 0;
    return at;
}

const char *tnd_fingerprint_identity(const struct tnd_fingerprint *fingerprint, const char *backend,
                                     const char *key)
{
    bool is_there;
    int at = find_identity(fingerprint, backend, key, &is_there);
    return is_there ? fingerprint->identities[at].value : "";
}

bool tnd_fingerprint_set_identity(struct tnd_fingerprint *fingerprint, const char *backend,
                                  const char *key, const char *value)
{
    bool is_there;
    int at = find_identity(fingerprint, backend, key, &is_there);
    struct tnd_identity *place = &fingerprint->identities[at];
    size_t n_behind = (size_t)(fingerprint->n_identities - at) * sizeof(*place);
    struct tnd_identity fresh;
    if (value[0] == '\0') {
        memmove(place, place + is_there, n_behind - is_there * sizeof(*place));
        fingerprint->n_identities -= is_there;
        return true;
    }
    if ((!is_there && fingerprint->n_identities == TND_MAX_IDENTITIES) || backend[0] == '\0' ||
        key[0] == '\0' || strlen(backend) >= sizeof(fresh.backend) ||
        strlen(key) >= sizeof(fresh.key)) {
        return false;
    }
    memset(&fresh, 0, sizeof(fresh));
    memcpy(fresh.backend, backend, strlen(backend));
    memcpy(fresh.key, key, strlen(key));
    for (size_t n = 0; value[n] != '\0';) { /* never split a UTF-8 character */
        size_t length = tnd_emit_utf8_length(value + n);
        length = length > 0 ? length : 1;
        if (n + length >= sizeof(fresh.value)) {
            break;
        }
        memcpy(fresh.value + n, value + n, length);
        n += length;
    }
    if (!is_there) {
        memmove(place + 1, place, n_behind);
        fingerprint->n_identities++;
    }
    *place = fresh;
    return true;
}

const struct tnd_fingerprint_field *tnd_fingerprint_field_of(const struct tnd_identity *identity)
{
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        if (field->backend != NULL && strcmp(field->backend, identity->backend) == 0 &&
            strcmp(field->key, identity->key) == 0) {
            return field;
        }
    }
    return NULL;
}

/* ---- comparing ---- */

uint64_t tnd_fingerprint_number(const struct tnd_fingerprint *fingerprint,
                                const struct tnd_fingerprint_field *field)
{
    const char *at = (const char *)fingerprint + field->offset;
    if (field->kind == TND_FIELD_COUNT) {
        int32_t value;
        memcpy(&value, at, sizeof(value));
        return value > 0 ? (uint64_t)value : 0;
    }
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

const char *tnd_fingerprint_string(const struct tnd_fingerprint *fingerprint,
                                   const struct tnd_fingerprint_field *field)
{
    TND_ASSERT(field->kind == TND_FIELD_TEXT);
    return field->backend != NULL
               ? tnd_fingerprint_identity(fingerprint, field->backend, field->key)
               : (const char *)fingerprint + field->offset;
}

bool tnd_fingerprint_set_string(struct tnd_fingerprint *fingerprint,
                                const struct tnd_fingerprint_field *field, const char *text)
{
    if (field->backend != NULL) {
        return tnd_fingerprint_set_identity(fingerprint, field->backend, field->key, text);
    }
    char *at = (char *)fingerprint + field->offset;
    memset(at, 0, field->bytes);
    snprintf(at, field->bytes, "%s", text);
    return true;
}

void tnd_fingerprint_copy_field(struct tnd_fingerprint *to, const struct tnd_fingerprint *from,
                                const struct tnd_fingerprint_field *field)
{
    if (field->kind == TND_FIELD_TEXT) {
        (void)tnd_fingerprint_set_string(to, field, tnd_fingerprint_string(from, field));
    } else {
        memcpy((char *)to + field->offset, (const char *)from + field->offset, field->bytes);
    }
}

static bool same_text(const char *a, const char *b, enum tnd_field_comparison how)
{
    if (a[0] == '\0' || b[0] == '\0') {
        return true;
    }
    if (how == TND_COMPARE_FIRST_WORD) {
        size_t length = strcspn(a, " ");
        return length == strcspn(b, " ") && memcmp(a, b, length) == 0;
    }
    return strcmp(a, b) == 0;
}

static bool same_number(uint64_t a, uint64_t b, enum tnd_field_comparison how)
{
    if (a == 0 || b == 0) {
        return true;
    }
    uint64_t difference = a > b ? a - b : b - a;
    /* The RAM that firmware and kernel reserve differs from boot to boot. */
    return how == TND_COMPARE_ROUGHLY ? difference <= (a > b ? a : b) / 10 : difference == 0;
}

bool tnd_fingerprint_same_field(const struct tnd_fingerprint *table,
                                const struct tnd_fingerprint *machine,
                                const struct tnd_fingerprint_field *field,
                                struct tandem_error *error)
{
    if (field->compared == TND_COMPARE_NOT) {
        return true;
    }
    if (field->kind == TND_FIELD_TEXT) {
        const char *a = tnd_fingerprint_string(table, field);
        const char *b = tnd_fingerprint_string(machine, field);
        return same_text(a, b, field->compared) ||
               tnd_error_set(error, TANDEM_E_TABLE_FOREIGN, field->name, 0, 0,
                             "table: measured with %s '%.80s', this machine has '%.80s'",
                             field->name, a, b) == TANDEM_OK;
    }
    uint64_t a = tnd_fingerprint_number(table, field);
    uint64_t b = tnd_fingerprint_number(machine, field);
    return same_number(a, b, field->compared) ||
           tnd_error_set(error, TANDEM_E_TABLE_FOREIGN, field->name, (int64_t)a, (int64_t)b,
                         "table: measured with %s %" PRIu64 ", this machine has %" PRIu64,
                         field->name, a, b) == TANDEM_OK;
}

bool tnd_fingerprint_same_identity(const struct tnd_identity *table,
                                   const struct tnd_fingerprint *machine,
                                   struct tandem_error *error)
{
    const char *value = tnd_fingerprint_identity(machine, table->backend, table->key);
    return same_text(table->value, value, TND_COMPARE_EXACTLY) ||
           tnd_error_set(error, TANDEM_E_TABLE_FOREIGN, table->backend, 0, 0,
                         "table: measured with %s %s '%.80s', this machine has '%.80s'",
                         table->backend, table->key, table->value, value) == TANDEM_OK;
}

enum tandem_status tnd_fingerprint_compare(const struct tnd_fingerprint *table,
                                           const struct tnd_fingerprint *machine,
                                           struct tandem_error *error)
{
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        if (!tnd_fingerprint_same_field(table, machine, &tnd_fingerprint_fields[i], error)) {
            return TANDEM_E_TABLE_FOREIGN;
        }
    }
    for (int i = 0; i < table->n_identities; i++) {
        if (!tnd_fingerprint_same_identity(&table->identities[i], machine, error)) {
            return TANDEM_E_TABLE_FOREIGN;
        }
    }
    return TANDEM_OK;
}

enum tandem_status tandem_table_check(const tandem_table *table, struct tandem_error *error)
{
    TND_REQUIRE(table, "table", error);
    if (!table->has_fingerprint) {
        return TANDEM_OK;
    }
    struct tnd_fingerprint machine;
    tnd_fingerprint_read(&machine);
    return tnd_fingerprint_compare(&table->fingerprint, &machine, error);
}

/* Keeps the larger of two values that compare as equal; an unknown one is the smallest. */
static void merge_field(const struct tnd_fingerprint_field *field, struct tnd_fingerprint *to,
                        const struct tnd_fingerprint *from)
{
    bool larger =
        field->kind == TND_FIELD_TEXT
            ? strcmp(tnd_fingerprint_string(from, field), tnd_fingerprint_string(to, field)) > 0
            : tnd_fingerprint_number(from, field) > tnd_fingerprint_number(to, field);
    if (larger) {
        tnd_fingerprint_copy_field(to, from, field);
    }
}

enum tandem_status tnd_fingerprint_merge(struct tandem_table *table,
                                         const struct tandem_table *other,
                                         struct tandem_error *error)
{
    if (!other->has_fingerprint) {
        return TANDEM_OK;
    }
    if (!table->has_fingerprint) {
        table->fingerprint = other->fingerprint;
        table->has_fingerprint = true;
        return TANDEM_OK;
    }
    /* "Roughly equal" is not transitive: a chain of tables would merge in one order and not in
     * another. */
    struct tnd_fingerprint exact = other->fingerprint;
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        if (field->compared == TND_COMPARE_ROUGHLY) {
            memset((char *)&exact + field->offset, 0, field->bytes);
        }
    }
    TND_TRY(tnd_fingerprint_compare(&table->fingerprint, &exact, error));
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        merge_field(&tnd_fingerprint_fields[i], &table->fingerprint, &other->fingerprint);
    }
    for (int i = 0; i < other->fingerprint.n_identities; i++) {
        const struct tnd_identity *identity = &other->fingerprint.identities[i];
        if (!tnd_fingerprint_set_identity(&table->fingerprint, identity->backend, identity->key,
                                          identity->value)) {
            return tnd_error_set(error, TANDEM_E_LIMIT, identity->backend, TND_MAX_IDENTITIES, 0,
                                 "merging tables: more than %d facts of backends",
                                 TND_MAX_IDENTITIES);
        }
    }
    return TANDEM_OK;
}

/* Hashes only what does not change between two runs or with the set of open backends. */
uint64_t tnd_fingerprint_hash(const struct tnd_fingerprint *fingerprint)
{
    uint64_t hash = 0;
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        if (field->compared == TND_COMPARE_EXACTLY && field->kind != TND_FIELD_TEXT) {
            uint64_t value = tnd_fingerprint_number(fingerprint, field);
            hash = tnd_hash_bytes(&value, sizeof(value), hash);
        }
    }
    hash = tnd_hash_string(fingerprint->cpu_model, hash);
    hash = tnd_hash_string(fingerprint->cpu_id, hash);
    hash = tnd_hash_string(fingerprint->isa, hash);
    return tnd_hash_bytes(fingerprint->build_id, strcspn(fingerprint->build_id, " "), hash);
}

uint64_t tnd_fingerprint_here(void)
{
    struct tnd_fingerprint machine;
    tnd_fingerprint_read(&machine);
    return tnd_fingerprint_hash(&machine);
}

/* ---- paths ---- */

enum tandem_status tandem_table_default_path(char *out, size_t n, struct tandem_error *error)
{
    const char *named = tnd_environment(TND_ENVIRONMENT_TABLE);
    const char *cache = secure_getenv("XDG_CACHE_HOME"); /* XDG: ignore relative paths */
    const char *home = secure_getenv("HOME");
    char path[4096];
    int length;
    if (named != NULL && strcmp(named, "none") == 0) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, "TANDEM_TABLE", 0, 0,
                             "table: TANDEM_TABLE says that there is none");
    }
    if (named != NULL) {
        length = snprintf(path, sizeof(path), "%s", named);
    } else {
        bool has_cache = cache != NULL && cache[0] == '/';
        if (!has_cache && (home == NULL || home[0] == '\0')) {
            return tnd_error_set(
                error, TANDEM_E_NOT_FOUND, "HOME", 0, 0,
                "table: neither HOME nor XDG_CACHE_HOME is set; TANDEM_TABLE can name "
                "the file");
        }
        length =
            snprintf(path, sizeof(path), "%s%s/tandem/%016" PRIx64 ".json",
                     has_cache ? cache : home, has_cache ? "" : "/.cache", tnd_fingerprint_here());
    }
    if (length < 0 || (size_t)length >= n || (size_t)length >= sizeof(path)) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "path", length, (int64_t)n,
                             "table: its path takes %d bytes, there is room for %zu", length + 1,
                             n);
    }
    memcpy(out, path, (size_t)length + 1);
    return TANDEM_OK;
}
