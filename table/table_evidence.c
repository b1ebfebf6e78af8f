/* SPDX-License-Identifier: MIT
 * What speaks for and against the times of a table: checked results, slow-downs beside each other,
 * the machine's state while it was measured. The merge rule is a total order for each, as in
 * table.c. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "table/table_cells.h"

static bool is_name(const char *name, size_t n)
{
    return name[0] != '\0' && memchr(name, '\0', n) != NULL;
}

static int compare_numbers(double a, double b)
{
    return a < b ? -1 : a > b;
}

/* ---- checks ---- */

static int compare_checks(const struct tnd_check *a, const struct tnd_check *b)
{
    const int64_t numbers[4][2] = {
        {(int64_t)a->type, (int64_t)b->type}, {a->n, b->n}, {a->k, b->k}, {a->m, b->m}};
    int order = strcmp(a->profile, b->profile);
    for (int i = 0; i < 4 && order == 0; i++) {
        order = numbers[i][0] < numbers[i][1] ? -1 : numbers[i][0] > numbers[i][1];
    }
    return order;
}

/* The newer outcome; of two at the same time the worse one. */
static bool check_wins(const struct tnd_check *a, const struct tnd_check *b)
{
    if (a->when != b->when) {
        return a->when > b->when;
    }
    int order = compare_numbers(a->nmse, b->nmse);
    return order != 0 ? order > 0 : a->bound < b->bound;
}

static bool is_check(const struct tnd_check *check)
{
    const int64_t extents[] = {check->m, check->n, check->k};
    bool valid = is_name(check->profile, sizeof(check->profile)) && check->nmse >= 0 &&
                 check->nmse <= TND_CHECK_NOT_FINITE && check->bound >= 0 &&
                 check->bound <= TND_CHECK_NOT_FINITE;
    for (int i = 0; i < 3; i++) {
        valid = valid && extents[i] >= 1 && extents[i] <= TND_TABLE_MAX_EXTENT;
    }
    return valid;
}

static enum tandem_status grow_checks(struct tandem_table *table)
{
    if (table->n_checks == TND_TABLE_MAX_CHECKS) {
        return TANDEM_E_LIMIT;
    }
    if (table->n_checks == table->check_capacity) {
        int capacity = table->check_capacity == 0 ? 32 : table->check_capacity * 2;
        struct tnd_check *grown =
            tnd_realloc(table->checks, (size_t)table->check_capacity * sizeof(*grown),
                        (size_t)capacity * sizeof(*grown));
        if (grown == NULL) {
            return TANDEM_E_MEMORY;
        }
        table->checks = grown;
        table->check_capacity = capacity;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_table_add_check(struct tandem_table *table, const struct tnd_check *check)
{
    if (!is_check(check)) {
        return TANDEM_E_ARGUMENT;
    }
    int at = table->n_checks; /* they mostly come in order */
    while (at > 0 && compare_checks(&table->checks[at - 1], check) >= 0) {
        at--;
    }
    if (at < table->n_checks && compare_checks(&table->checks[at], check) == 0) {
        table->checks[at] = check_wins(check, &table->checks[at]) ? *check : table->checks[at];
        return TANDEM_OK;
    }
    TND_TRY(grow_checks(table));
    memmove(&table->checks[at + 1], &table->checks[at],
            (size_t)(table->n_checks - at) * sizeof(*check));
    table->checks[at] = *check;
    table->n_checks++;
    return TANDEM_OK;
}

enum tnd_verdict tnd_table_check(const struct tandem_table *table, const char *profile,
                                 enum tandem_type type, double bound, double *out_nmse)
{
    enum tnd_verdict verdict = TND_VERDICT_UNKNOWN;
    double largest = 0;
    for (int i = 0; i < table->n_checks; i++) {
        const struct tnd_check *check = &table->checks[i];
        if (check->type != type || strcmp(check->profile, profile) != 0) {
            continue;
        }
        bool is_wrong = check->nmse > (bound > 0 ? bound : check->bound);
        verdict = is_wrong || verdict == TND_VERDICT_WRONG ? TND_VERDICT_WRONG : TND_VERDICT_RIGHT;
        largest = fmax(largest, check->nmse);
    }
    if (verdict != TND_VERDICT_UNKNOWN && out_nmse != NULL) {
        *out_nmse = largest;
    }
    return verdict;
}

/* ---- slow-downs ---- */

static int compare_pair(const struct tnd_slowdown *slowdown, const char *backend,
                        const char *beside)
{
    int order = strcmp(slowdown->backend, backend);
    return order != 0 ? order : strcmp(slowdown->beside, beside);
}

/* Index of the first that is not before the pair. */
static int find_slowdown(const struct tandem_table *table, const char *backend, const char *beside)
{
    int at = 0;
    while (at < table->n_slowdowns && compare_pair(&table->slowdowns[at], backend, beside) < 0) {
        at++;
    }
    return at;
}

static bool slowdown_wins(const struct tnd_slowdown *a, const struct tnd_slowdown *b)
{
    const struct tnd_sample one = {1, a->factor, 0, a->count, a->when, 0};
    const struct tnd_sample two = {1, b->factor, 0, b->count, b->when, 0};
    return tnd_sample_wins(&one, &two);
}

enum tandem_status tnd_table_add_slowdown(struct tandem_table *table,
                                          const struct tnd_slowdown *slowdown)
{
    if (!is_name(slowdown->backend, sizeof(slowdown->backend)) ||
        !is_name(slowdown->beside, sizeof(slowdown->beside)) || !(slowdown->factor >= 1.0) ||
        slowdown->factor > TND_TABLE_MAX_FACTOR) {
        return TANDEM_E_ARGUMENT;
    }
    int at = find_slowdown(table, slowdown->backend, slowdown->beside);
    struct tnd_slowdown *there = &table->slowdowns[at];
    if (at < table->n_slowdowns && compare_pair(there, slowdown->backend, slowdown->beside) == 0) {
        *there = slowdown_wins(slowdown, there) ? *slowdown : *there;
        return TANDEM_OK;
    }
    if (table->n_slowdowns == TND_TABLE_MAX_SLOWDOWNS) {
        return TANDEM_E_LIMIT;
    }
    memmove(there + 1, there, (size_t)(table->n_slowdowns - at) * sizeof(*there));
    *there = *slowdown;
    table->n_slowdowns++;
    return TANDEM_OK;
}

bool tnd_table_slowdown(const struct tandem_table *table, const char *backend, const char *beside,
                        double *out_factor)
{
    int at = find_slowdown(table, backend, beside);
    if (at == table->n_slowdowns || compare_pair(&table->slowdowns[at], backend, beside) != 0) {
        return false;
    }
    *out_factor = table->slowdowns[at].factor;
    return true;
}

/* ---- states of the machine ---- */

/* Newest first; those of the same time by their numbers, the larger first. */
static int compare_sweeps(const struct tnd_sweep_state *a, const struct tnd_sweep_state *b)
{
    if (a->when != b->when) {
        return a->when > b->when ? -1 : 1;
    }
    const double numbers[6][2] = {{a->before.fastest_us, b->before.fastest_us},
                                  {a->before.mean_us, b->before.mean_us},
                                  {a->between.fastest_us, b->between.fastest_us},
                                  {a->between.mean_us, b->between.mean_us},
                                  {a->after.fastest_us, b->after.fastest_us},
                                  {a->after.mean_us, b->after.mean_us}};
    int order = 0;
    for (int i = 0; i < 6 && order == 0; i++) {
        order = compare_numbers(numbers[i][1], numbers[i][0]);
    }
    return order;
}

static bool is_reference(const struct tnd_reference_time *time)
{
    return tnd_table_is_time(time->fastest_us) && tnd_table_is_time(time->mean_us);
}

/* The first of a list that grows by union: associative, as long as all are kept in one order. */
enum tandem_status tnd_table_add_sweep(struct tandem_table *table,
                                       const struct tnd_sweep_state *sweep)
{
    if (!is_reference(&sweep->before) || !is_reference(&sweep->between) ||
        !is_reference(&sweep->after)) {
        return TANDEM_E_ARGUMENT;
    }
    int at = 0;
    while (at < table->n_sweeps && compare_sweeps(&table->sweeps[at], sweep) < 0) {
        at++;
    }
    bool is_there = at < table->n_sweeps && compare_sweeps(&table->sweeps[at], sweep) == 0;
    if (is_there || at == TND_TABLE_MAX_SWEEPS) {
        return TANDEM_OK;
    }
    int n_behind = table->n_sweeps - at - (table->n_sweeps == TND_TABLE_MAX_SWEEPS ? 1 : 0);
    memmove(&table->sweeps[at + 1], &table->sweeps[at], (size_t)n_behind * sizeof(*sweep));
    table->sweeps[at] = *sweep;
    table->n_sweeps = at + 1 + n_behind;
    return TANDEM_OK;
}

/* ---- as a whole ---- */

enum tandem_status tnd_table_merge_evidence(struct tandem_table *table,
                                            const struct tandem_table *other)
{
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < other->n_checks && status == TANDEM_OK; i++) {
        status = tnd_table_add_check(table, &other->checks[i]);
    }
    for (int i = 0; i < other->n_slowdowns && status == TANDEM_OK; i++) {
        status = tnd_table_add_slowdown(table, &other->slowdowns[i]);
    }
    for (int i = 0; i < other->n_sweeps && status == TANDEM_OK; i++) {
        status = tnd_table_add_sweep(table, &other->sweeps[i]);
    }
    return status;
}

void tnd_table_drop_evidence(struct tandem_table *table)
{
    table->checks = NULL;
    table->n_checks = 0;
    table->check_capacity = 0;
    table->n_slowdowns = 0;
    table->n_sweeps = 0;
}

void tnd_table_clear_evidence(struct tandem_table *table)
{
    tnd_free(table->checks);
    tnd_table_drop_evidence(table);
}
