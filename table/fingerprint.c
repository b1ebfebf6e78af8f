/* SPDX-License-Identifier: MIT
 * Who was measured: reading this machine's identity, comparing two, and where this machine's table
 * lies. What changes times without changing the machine (RAM within a tenth, library versions) does
 * not make a table foreign; the instruction set after TANDEM_CPU does. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/environment.h"
#include "base/hash.h"
#include "base/tnd_status.h"
#include "sched/topology.h"
#include "table/fingerprint_fields.h"
#include "table/table_cells.h"

/* First word of the build id: code without optimisation or with sanitizers has times of its own,
 * and a test run must not tune the installed library. */
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
    {#member, TND_FIELD_##kind, compared, offsetof(struct tnd_fingerprint, member),                \
     sizeof(((struct tnd_fingerprint *)0)->member)},
    TND_FINGERPRINT_LIST(FIELD)
#undef FIELD
};

int tnd_fingerprint_field_count(void)
{
    return (int)(sizeof(tnd_fingerprint_fields) / sizeof(tnd_fingerprint_fields[0]));
}

void tnd_fingerprint_read(struct tnd_fingerprint *out)
{
    struct tnd_fingerprint read;
    memset(&read, 0, sizeof(read));
    snprintf(read.cpu_model, sizeof(read.cpu_model), "%s", tnd_cpu_model());
    snprintf(read.isa, sizeof(read.isa), "%s", tnd_cpu_isa_name(tnd_cpu_features()));
    snprintf(read.library, sizeof(read.library), "%s", TANDEM_VERSION_STRING);
    snprintf(read.build_id, sizeof(read.build_id), "%s %s %d.%d", FLAVOUR, COMPILER, __GNUC__,
             __GNUC_MINOR__);
    struct tnd_cpu_caches caches = tnd_cpu_caches();
    read.l2_bytes = caches.l2_bytes;
    read.l3_bytes = caches.l3_bytes;
    read.ram_bytes = tnd_cpu_ram_bytes();
    struct tnd_topology *topology = tnd_alloc(sizeof(*topology));
    if (topology != NULL && tnd_topology_read(topology, NULL) == TANDEM_OK) {
        read.n_cpus = topology->n_cpus;
        read.n_cores = topology->n_cores;
        read.n_core_kinds = topology->n_core_kinds;
        read.topology_hash = topology->hash;
    }
    tnd_free(topology);
    *out = read;
}

/* Takes "NAME (PLATFORM), driver VERSION, ..." apart: what stands before and behind ", driver ".
 * What is not of this form counts as the name as a whole. */
static void read_device(const char *description, struct tnd_fingerprint *out)
{
    static const char between[] = ", driver ";
    const char *driver = strstr(description, between);
    size_t length = driver != NULL ? (size_t)(driver - description) : strlen(description);
    snprintf(out->gpu, sizeof(out->gpu), "%.*s", (int)length, description);
    if (driver != NULL) {
        driver += strlen(between);
        /* CLBlast takes part in the device's times. */
        bool clblast = strstr(driver, "with CLBlast") != NULL;
        snprintf(out->driver, sizeof(out->driver), "%.*s%s", (int)strcspn(driver, ","), driver,
                 clblast ? " with CLBlast" : "");
    }
}

void tnd_fingerprint_read_all(const struct tnd_registry *registry, struct tnd_fingerprint *out)
{
    tnd_fingerprint_read(out);
    int openblas = tnd_registry_find(registry, "openblas", NULL);
    if (openblas >= 0) {
        const char *description = tnd_backend_describe(tnd_registry_backend(registry, openblas));
        snprintf(out->openblas, sizeof(out->openblas), "%s", description);
    }
    int opencl = tnd_registry_find(registry, "opencl", NULL);
    if (opencl >= 0) {
        read_device(tnd_backend_describe(tnd_registry_backend(registry, opencl)), out);
    }
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
    return (const char *)fingerprint + field->offset;
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
    /* What firmware and kernel keep of the RAM differs from boot to boot. */
    return how == TND_COMPARE_ROUGHLY ? difference <= (a > b ? a : b) / 10 : difference == 0;
}

enum tandem_status tnd_fingerprint_compare(const struct tnd_fingerprint *table,
                                           const struct tnd_fingerprint *machine,
                                           struct tandem_error *error)
{
    for (int i = 0; i < tnd_fingerprint_field_count(); i++) {
        const struct tnd_fingerprint_field *field = &tnd_fingerprint_fields[i];
        if (field->compared == TND_COMPARE_NOT) {
            continue;
        }
        if (field->kind == TND_FIELD_TEXT) {
            const char *a = tnd_fingerprint_string(table, field);
            const char *b = tnd_fingerprint_string(machine, field);
            if (!same_text(a, b, field->compared)) {
                return tnd_error_set(error, TANDEM_E_TABLE_FOREIGN, field->name, 0, 0,
                                     "table: measured with %s '%.80s', this machine has '%.80s'",
                                     field->name, a, b);
            }
            continue;
        }
        uint64_t a = tnd_fingerprint_number(table, field);
        uint64_t b = tnd_fingerprint_number(machine, field);
        if (!same_number(a, b, field->compared)) {
            return tnd_error_set(error, TANDEM_E_TABLE_FOREIGN, field->name, (int64_t)a, (int64_t)b,
                                 "table: measured with %s %" PRIu64 ", this machine has %" PRIu64,
                                 field->name, a, b);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tandem_table_check(const tandem_table *table, struct tandem_error *error)
{
    if (!table->has_fingerprint) {
        return TANDEM_OK;
    }
    struct tnd_fingerprint machine;
    tnd_fingerprint_read(&machine);
    return tnd_fingerprint_compare(&table->fingerprint, &machine, error);
}

/* Of two values that count as the same, the larger; an unknown one is the smallest. */
static void merge_field(const struct tnd_fingerprint_field *field, struct tnd_fingerprint *to,
                        const struct tnd_fingerprint *from)
{
    bool larger =
        field->kind == TND_FIELD_TEXT
            ? strcmp(tnd_fingerprint_string(from, field), tnd_fingerprint_string(to, field)) > 0
            : tnd_fingerprint_number(from, field) > tnd_fingerprint_number(to, field);
    if (larger) {
        memcpy((char *)to + field->offset, (const char *)from + field->offset, field->bytes);
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
    /* "Roughly" is no equivalence: a chain of tables would merge in one order and not in
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
    return TANDEM_OK;
}

/* Only what stands still between two runs and does not depend on which backends are open. */
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
    hash = tnd_hash_string(fingerprint->isa, hash);
    return tnd_hash_bytes(fingerprint->build_id, strcspn(fingerprint->build_id, " "), hash);
}

/* ---- where ---- */

enum tandem_status tandem_table_default_path(char *out, size_t n, struct tandem_error *error)
{
    const char *named = tnd_environment(TND_ENVIRONMENT_TABLE);
    const char *cache =
        getenv("XDG_CACHE_HOME"); /* relative paths are invalid: XDG Base Directory 0.8 */
    const char *home = getenv("HOME");
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
        struct tnd_fingerprint machine;
        tnd_fingerprint_read(&machine);
        length = snprintf(path, sizeof(path), "%s%s/tandem/%016" PRIx64 ".json",
                          has_cache ? cache : home, has_cache ? "" : "/.cache",
                          tnd_fingerprint_hash(&machine));
    }
    if (length < 0 || (size_t)length >= n || (size_t)length >= sizeof(path)) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "path", length, (int64_t)n,
                             "table: its path takes %d bytes, there is room for %zu", length + 1,
                             n);
    }
    memcpy(out, path, (size_t)length + 1);
    return TANDEM_OK;
}
