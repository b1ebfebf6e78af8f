/* SPDX-License-Identifier: MIT
 * Ordering, adding and merging records, for every kind by its facts. Merging keeps the larger of
 * two values in a total order, so it is associative, commutative and idempotent. */
#include "table/records.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "table/invalidate.h"
#include "table/table_cells.h"

/* ---- the list as data ---- */

#define FACT(type, member, kind, role, place)                                                      \
    {#member,                                                                                      \
     TND_FACT_##kind,                                                                              \
     TND_##role,                                                                                   \
     place,                                                                                        \
     offsetof(struct type, member),                                                                \
     sizeof(((struct type *)0)->member)},

static inline int order_whole(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static inline int order_real(double a, double b)
{
    return a < b ? -1 : a > b;
}

static inline int order_pair(struct tnd_reference_time a, struct tnd_reference_time b)
{
    int order = order_real(a.fastest_us, b.fastest_us);
    return order != 0 ? order : order_real(a.mean_us, b.mean_us);
}

/* The first fact that differs decides. */
/* clang-format off */
#define ORDER(member)                                                                              \
    _Generic(a->member, const char *: strcmp, struct tnd_reference_time: order_pair,               \
             double: order_real, default: order_whole)(a->member, b->member)
/* clang-format on */
#define BY_KEY(type, member, kind, role, place)                                                    \
    if (TND_##role == TND_KEY || TND_##role == TND_KEY_DOWN) {                                     \
        int order = ORDER(member);                                                                 \
        if (order != 0) {                                                                          \
            return TND_##role == TND_KEY ? order : -order;                                         \
        }                                                                                          \
    }
#define BY_VALUE(type, member, kind, role, place)                                                  \
    if (TND_##role == TND_LARGER || TND_##role == TND_SMALLER) {                                   \
        int order = ORDER(member);                                                                 \
        if (order != 0) {                                                                          \
            return TND_##role == TND_LARGER ? order : -order;                                      \
        }                                                                                          \
    }
#define FUNCTIONS(id, list, record, facts, type, ...)                                              \
    static const struct tnd_fact list##_facts[] = {facts(FACT)};                                   \
    static int compare_##list(const void *x, const void *y)                                        \
    {                                                                                              \
        const struct type *a = x;                                                                  \
        const struct type *b = y;                                                                  \
        facts(BY_KEY) return 0;                                                                    \
    }                                                                                              \
    static int prefer_##list(const void *x, const void *y)                                         \
    {                                                                                              \
        const struct type *a = x;                                                                  \
        const struct type *b = y;                                                                  \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        facts(BY_VALUE) return 0;                                                                  \
    }
TND_RECORD_LIST(FUNCTIONS)
FUNCTIONS(POINTS, points, tnd_sample, TND_SAMPLE_FACTS, tnd_sample, )

#define N_FACTS(facts) (int)(sizeof(facts) / sizeof(facts[0]))

const struct tnd_record_kind tnd_record_kinds[TND_RECORD_KINDS] = {
#define ROW(id, list, record, facts, type, samples, over, limit, kept, layers, parts, team)        \
    {#list,                                                                                        \
     offsetof(struct tandem_table, list##_vector),                                                 \
     sizeof(struct record),                                                                        \
     list##_facts,                                                                                 \
     N_FACTS(list##_facts),                                                                        \
     compare_##list,                                                                               \
     prefer_##list,                                                                                \
     samples,                                                                                      \
     over,                                                                                         \
     limit,                                                                                        \
     kept,                                                                                         \
     layers,                                                                                       \
     parts,                                                                                        \
     TND_TEAM_##team},
    TND_RECORD_LIST(ROW)
#undef ROW
};

const struct tnd_record_kind tnd_sample_kind = {.name = "samples",
                                                .bytes = sizeof(struct tnd_sample),
                                                .facts = points_facts,
                                                .n_facts = N_FACTS(points_facts),
                                                .compare = compare_points,
                                                .prefer = prefer_points,
                                                .limit = TND_TABLE_MAX_SAMPLES};

static const struct {
    enum tnd_fact_form form;
    double low, high;
} fact_kinds[] = {
#define KIND(kind, form, low, high) {TND_FORM_##form, low, high},
    TND_FACT_KIND_LIST(KIND)
#undef KIND
};

enum tnd_fact_form tnd_fact_form(enum tnd_fact_kind kind)
{
    return fact_kinds[kind].form;
}

void tnd_fact_range(enum tnd_fact_kind kind, double *out_low, double *out_high)
{
    *out_low = fact_kinds[kind].low;
    *out_high = fact_kinds[kind].high;
}

static bool is_key(const struct tnd_fact *fact)
{
    return fact->role == TND_KEY || fact->role == TND_KEY_DOWN;
}

bool tnd_fact_is_optional(const struct tnd_fact *fact)
{
    return fact->kind == TND_FACT_COUNT || fact->kind == TND_FACT_GENERATION ||
           fact->kind == TND_FACT_MARK || fact->kind == TND_FACT_SPREAD ||
           fact->kind == TND_FACT_DEVICE || fact->kind == TND_FACT_JOULES ||
           tnd_fact_form(fact->kind) == TND_FORM_FLAG ||
           (fact->kind == TND_FACT_WHEN && !is_key(fact));
}

bool tnd_fact_is_left_out(const struct tnd_fact *fact, const void *record)
{
    if (fact->kind == TND_FACT_JOULES) {
        return tnd_fact_real(fact, record) == 0;
    }
    if (fact->kind == TND_FACT_DEVICE) {
        return tnd_fact_text(fact, record)[0] == '\0';
    }
    return (fact->kind == TND_FACT_GENERATION || fact->kind == TND_FACT_MARK ||
            fact->kind == TND_FACT_FLAG_1) &&
           tnd_fact_whole(fact, record) == 0;
}

const char *tnd_fact_name(const struct tnd_fact *fact, const char *over)
{
    return over != NULL && strcmp(fact->name, "m") == 0 ? over : fact->name;
}

int tnd_facts_in_files(const struct tnd_record_kind *kind,
                       const struct tnd_fact *out[TND_MAX_FACTS])
{
    TND_ASSERT(kind->n_facts <= TND_MAX_FACTS);
    for (int i = 0; i < kind->n_facts; i++) {
        TND_ASSERT(kind->facts[i].place >= 0 && kind->facts[i].place < kind->n_facts);
        out[kind->facts[i].place] = &kind->facts[i];
    }
    return kind->n_facts;
}

/* ---- values ---- */

const char *tnd_fact_text(const struct tnd_fact *fact, const void *record)
{
    TND_ASSERT(tnd_fact_form(fact->kind) == TND_FORM_TEXT);
    return (const char *)record + fact->offset;
}

int64_t tnd_fact_whole(const struct tnd_fact *fact, const void *record)
{
    const char *at = (const char *)record + fact->offset;
    uint8_t byte;
    uint32_t word;
    int64_t value;
    switch (fact->bytes) {
    case sizeof(byte):
        memcpy(&byte, at, sizeof(byte));
        return byte;
    case sizeof(word):
        memcpy(&word, at, sizeof(word));
        return word;
    default:
        TND_ASSERT(fact->bytes == sizeof(value));
        memcpy(&value, at, sizeof(value));
        return value;
    }
}

void tnd_fact_set_whole(const struct tnd_fact *fact, void *record, int64_t value)
{
    char *at = (char *)record + fact->offset;
    uint8_t byte = (uint8_t)value;
    uint32_t word = (uint32_t)value;
    const void *from = fact->bytes == sizeof(byte)   ? (const void *)&byte
                       : fact->bytes == sizeof(word) ? (const void *)&word
                                                     : (const void *)&value;
    memcpy(at, from, fact->bytes);
}

double tnd_fact_real(const struct tnd_fact *fact, const void *record)
{
    double value;
    TND_ASSERT(fact->bytes == sizeof(value));
    memcpy(&value, (const char *)record + fact->offset, sizeof(value));
    return value;
}

static bool is_time(double us)
{
    return isfinite(us) && us >= 0.0 && us <= TND_TABLE_MAX_US;
}

static bool is_valid_fact(const struct tnd_fact *fact, const void *record)
{
    double low = fact_kinds[fact->kind].low;
    double high = fact_kinds[fact->kind].high;
    const char *text = (const char *)record + fact->offset;
    struct tnd_reference_time pair;
    switch (tnd_fact_form(fact->kind)) {
    case TND_FORM_TEXT:
        return (text[0] != '\0' || tnd_fact_is_optional(fact)) &&
               memchr(text, '\0', fact->bytes) != NULL;
    case TND_FORM_WHOLE:
    case TND_FORM_CHOICE:
        return (double)tnd_fact_whole(fact, record) >= low &&
               (double)tnd_fact_whole(fact, record) <= high;
    case TND_FORM_REAL: /* NaN is in no range */
        return tnd_fact_real(fact, record) >= low && tnd_fact_real(fact, record) <= high;
    case TND_FORM_PAIR:
        memcpy(&pair, text, sizeof(pair));
        return is_time(pair.fastest_us) && is_time(pair.mean_us);
    default:
        return true;
    }
}

static bool is_valid(const struct tnd_record_kind *kind, const void *record)
{
    for (int i = 0; i < kind->n_facts; i++) {
        if (!is_valid_fact(&kind->facts[i], record)) {
            return false;
        }
    }
    return true;
}

/* ---- lists ---- */

struct tnd_vector *tnd_record_list(struct tandem_table *table, enum tnd_record kind)
{
    TND_ASSERT(kind < TND_RECORD_KINDS);
    return (struct tnd_vector *)((char *)table + tnd_record_kinds[kind].list);
}

const struct tnd_vector *tnd_record_list_const(const struct tandem_table *table,
                                               enum tnd_record kind)
{
    TND_ASSERT(kind < TND_RECORD_KINDS);
    return (const struct tnd_vector *)((const char *)table + tnd_record_kinds[kind].list);
}

const void *tnd_record_at(const struct tandem_table *table, enum tnd_record kind, int at)
{
    return tnd_vector_at(tnd_record_list_const(table, kind), tnd_record_kinds[kind].bytes, at);
}

struct tnd_vector *tnd_record_samples(enum tnd_record kind, void *record)
{
    size_t at = tnd_record_kinds[kind].samples;
    return at != 0 ? (struct tnd_vector *)((char *)record + at) : NULL;
}

/* Index of the first item that is not before `key`. */
static inline int lower_bound(const struct tnd_vector *list, size_t bytes,
                              int (*compare)(const void *a, const void *b), const void *key)
{
    int low = 0;
    int high = list->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (compare((const char *)list->items + (size_t)middle * bytes, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct tnd_vector *list, const struct tnd_record_kind *kind, int at,
                  const void *key)
{
    return at < list->n && kind->compare(tnd_vector_at(list, kind->bytes, at), key) == 0;
}

static int compare_facts(const struct tnd_fact *fact, const void *a, const void *b)
{
    switch (tnd_fact_form(fact->kind)) {
    case TND_FORM_TEXT:
        return strcmp(tnd_fact_text(fact, a), tnd_fact_text(fact, b));
    case TND_FORM_REAL:
        return order_real(tnd_fact_real(fact, a), tnd_fact_real(fact, b));
    default:
        return order_whole(tnd_fact_whole(fact, a), tnd_fact_whole(fact, b));
    }
}

int tnd_record_compare_first(const struct tnd_record_kind *kind, const void *a, const void *b,
                             int n)
{
    int order = 0;
    TND_ASSERT(n <= kind->n_facts);
    for (int i = 0; i < n && order == 0; i++) {
        TND_ASSERT(kind->facts[i].role == TND_KEY);
        order = compare_facts(&kind->facts[i], a, b);
    }
    return order;
}

int tnd_record_lower_bound(const struct tandem_table *table, enum tnd_record which, const void *key,
                           int n_facts)
{
    const struct tnd_vector *list = tnd_record_list_const(table, which);
    int low = 0;
    int high = list->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (tnd_record_compare_first(&tnd_record_kinds[which], tnd_record_at(table, which, middle),
                                     key, n_facts) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int tnd_table_lower_bound(const struct tandem_table *table, const struct tnd_curve_key *key)
{
    return lower_bound(&table->curves_vector, sizeof(struct tnd_curve), compare_curves, key);
}

static bool is_same_shape(const struct tnd_curve_key *a, const struct tnd_curve_key *b)
{
    return a->n == b->n && a->k == b->k && a->type == b->type && strcmp(a->op, b->op) == 0;
}

/* A shape has few curves: search from it in growing steps, then between the last two. */
int tnd_table_next_shape(const struct tandem_table *table, int at)
{
    TND_ASSERT(at >= 0 && at < table->n_curves);
    const struct tnd_curve_key *shape = &table->curves[at].key;
    int step = 1;
    while (step < table->n_curves - at && is_same_shape(&table->curves[at + step].key, shape)) {
        step *= 2;
    }
    int low = at + step / 2; /* of the same shape */
    int high = step < table->n_curves - at ? at + step : table->n_curves;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (is_same_shape(&table->curves[middle].key, shape)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

int tnd_curve_key_compare(const struct tnd_curve_key *a, const struct tnd_curve_key *b)
{
    return compare_curves(a, b);
}

const struct tnd_curve *tnd_table_find(const struct tandem_table *table,
                                       const struct tnd_curve_key *key)
{
    int i = tnd_table_lower_bound(table, key);
    bool found = i < table->n_curves && compare_curves(&table->curves[i].key, key) == 0;
    return found ? &table->curves[i] : NULL;
}

const void *tnd_record_find(const struct tandem_table *table, enum tnd_record which,
                            const void *key)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    const struct tnd_vector *list = tnd_record_list_const(table, which);
    int at = lower_bound(list, kind->bytes, kind->compare, key);
    return is_at(list, kind, at, key) ? tnd_vector_at(list, kind->bytes, at) : NULL;
}

/* Inserts a copy of the record at index `at`, without its samples. */
static enum tandem_status insert_facts(struct tnd_vector *list, const struct tnd_record_kind *kind,
                                       int at, const void *record)
{
    TND_TRY(tnd_vector_insert(list, kind->bytes, kind->limit, at));
    size_t bytes = kind->samples != 0 ? kind->samples : kind->bytes; /* facts come before samples */
    memcpy(tnd_vector_at(list, kind->bytes, at), record, bytes);
    return TANDEM_OK;
}

/* Inserts a record without samples into a sorted list by the merge rule. Tries the end first:
 * records mostly arrive in order. */
static enum tandem_status put(struct tnd_vector *list, const struct tnd_record_kind *kind,
                              const void *record)
{
    int at = list->n;
    if (at > 0 && kind->compare(tnd_vector_at(list, kind->bytes, at - 1), record) >= 0) {
        at = lower_bound(list, kind->bytes, kind->compare, record);
    }
    if (!is_at(list, kind, at, record)) {
        return insert_facts(list, kind, at, record);
    }
    if (kind->prefer(record, tnd_vector_at(list, kind->bytes, at)) > 0) {
        memcpy(tnd_vector_at(list, kind->bytes, at), record, kind->bytes);
    }
    return TANDEM_OK;
}

static void keep_first(struct tnd_vector *list, const struct tnd_record_kind *kind)
{
    list->n = kind->kept > 0 && list->n > kind->kept ? kind->kept : list->n;
}

enum tandem_status tnd_record_add(struct tandem_table *table, enum tnd_record which,
                                  const void *record)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    struct tnd_vector *list = tnd_record_list(table, which);
    TND_ASSERT(kind->samples == 0);
    if (!is_valid(kind, record)) {
        return TANDEM_E_ARGUMENT;
    }
    TND_TRY(put(list, kind, record));
    keep_first(list, kind);
    return TANDEM_OK;
}

static enum tandem_status check_cell(const struct tnd_record_kind *kind, const void *record,
                                     const struct tnd_sample *sample)
{
    bool valid = is_valid(kind, record) && is_valid(&tnd_sample_kind, sample);
    return valid ? TANDEM_OK : TANDEM_E_ARGUMENT;
}

enum tandem_status tnd_cell_add(struct tandem_table *table, enum tnd_record which,
                                const void *record, const struct tnd_sample *sample)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    struct tnd_vector *list = tnd_record_list(table, which);
    TND_ASSERT(kind->samples != 0);
    TND_TRY(check_cell(kind, record, sample));
    int at = lower_bound(list, kind->bytes, kind->compare, record);
    if (!is_at(list, kind, at, record)) {
        TND_TRY(insert_facts(list, kind, at, record));
    }
    struct tnd_vector *samples = tnd_record_samples(which, tnd_vector_at(list, kind->bytes, at));
    enum tandem_status status = put(samples, &tnd_sample_kind, sample);
    if (samples->n == 0) { /* a curve is never empty, not even after a failure */
        tnd_vector_remove(list, kind->bytes, at);
    }
    return status;
}

enum tandem_status tnd_cell_append(struct tandem_table *table, enum tnd_record which,
                                   const void *record, const struct tnd_sample *sample)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    struct tnd_vector *list = tnd_record_list(table, which);
    TND_TRY(check_cell(kind, record, sample));
    if (list->n == 0 || !is_at(list, kind, list->n - 1, record)) {
        TND_TRY(insert_facts(list, kind, list->n, record));
    }
    return put(tnd_record_samples(which, tnd_vector_at(list, kind->bytes, list->n - 1)),
               &tnd_sample_kind, sample);
}

/* ---- joining ---- */

/* Merges record `from` into `to`; `from` stays. */
static enum tandem_status join(enum tnd_record which, void *to, const void *from)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    if (kind->samples == 0) {
        if (kind->prefer(from, to) > 0) {
            memcpy(to, from, kind->bytes);
        }
        return TANDEM_OK;
    }
    const struct tnd_vector *source =
        (const struct tnd_vector *)((const char *)from + kind->samples);
    const struct tnd_sample *samples = source->items;
    for (int i = 0; i < source->n; i++) {
        TND_TRY(put(tnd_record_samples(which, to), &tnd_sample_kind, &samples[i]));
    }
    return TANDEM_OK;
}

static void free_samples(enum tnd_record which, void *record)
{
    struct tnd_vector *samples = tnd_record_samples(which, record);
    if (samples != NULL) {
        tnd_vector_fini(samples);
    }
}

enum tandem_status tnd_record_sort(struct tandem_table *table, enum tnd_record which)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    struct tnd_vector *list = tnd_record_list(table, which);
    enum tandem_status status = TANDEM_OK;
    int kept = 0;
    if (list->n == 0) {
        return TANDEM_OK;
    }
    qsort(list->items, (size_t)list->n, kind->bytes, kind->compare);
    for (int i = 1; i < list->n; i++) {
        void *before = tnd_vector_at(list, kind->bytes, kept);
        void *record = tnd_vector_at(list, kind->bytes, i);
        if (kind->compare(before, record) != 0) {
            memmove(tnd_vector_at(list, kind->bytes, ++kept), record, kind->bytes);
            continue;
        }
        status = status == TANDEM_OK ? join(which, before, record) : status;
        free_samples(which, record);
    }
    list->n = kept + 1;
    keep_first(list, kind);
    return status;
}

/* Appends a copy of the record, with samples of its own. */
static enum tandem_status copy_to_end(struct tnd_vector *list, enum tnd_record which,
                                      const void *record)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    TND_TRY(insert_facts(list, kind, list->n, record));
    return join(which, tnd_vector_at(list, kind->bytes, list->n - 1), record);
}

enum tandem_status tnd_record_append(struct tandem_table *table, enum tnd_record which,
                                     const void *record)
{
    return is_valid(&tnd_record_kinds[which], record)
               ? copy_to_end(tnd_record_list(table, which), which, record)
               : TANDEM_E_ARGUMENT;
}

enum tandem_status tnd_record_merge(struct tandem_table *out, const struct tandem_table *a,
                                    const struct tandem_table *b, enum tnd_record which)
{
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    struct tnd_vector *list = tnd_record_list(out, which);
    int n_a = tnd_record_list_const(a, which)->n;
    int n_b = tnd_record_list_const(b, which)->n;
    int i = 0;
    int j = 0;
    while (i < n_a || j < n_b) {
        const void *one = i < n_a ? tnd_record_at(a, which, i) : NULL;
        const void *two = j < n_b ? tnd_record_at(b, which, j) : NULL;
        int order = one == NULL ? 1 : two == NULL ? -1 : kind->compare(one, two);
        TND_TRY(copy_to_end(list, which, order <= 0 ? one : two));
        if (order == 0) {
            TND_TRY(join(which, tnd_vector_at(list, kind->bytes, list->n - 1), two));
        }
        i += order <= 0;
        j += order >= 0;
    }
    keep_first(list, kind);
    return TANDEM_OK;
}

void tnd_record_forget(struct tandem_table *table)
{
    for (int kind = 0; kind < TND_RECORD_KINDS; kind++) {
        *tnd_record_list(table, (enum tnd_record)kind) = (struct tnd_vector){0};
    }
}

void tnd_record_clear(struct tandem_table *table)
{
    for (int kind = 0; kind < TND_RECORD_KINDS; kind++) {
        struct tnd_vector *list = tnd_record_list(table, (enum tnd_record)kind);
        for (int i = 0; i < list->n; i++) {
            free_samples((enum tnd_record)kind,
                         tnd_vector_at(list, tnd_record_kinds[kind].bytes, i));
        }
        tnd_vector_fini(list);
    }
}
