/* SPDX-License-Identifier: MIT
 * What a table knows besides its cells: transfers between host and devices, and the cost of handing
 * work to other threads. The same merge rule as in table.c. */
#include <string.h>

#include "base/alloc.h"
#include "table/table_cells.h"

const char *tnd_direction_name(enum tnd_direction direction)
{
    return direction == TND_UPLOAD ? "upload" : "download";
}

/* ---- transfers ---- */

static int compare_transfer(const struct tnd_transfer *transfer, const char *backend, int direction)
{
    int order = strcmp(transfer->backend, backend);
    return order != 0 ? order : (int)transfer->direction - direction;
}

/* Index of the first transfer that is not before (backend, direction). */
static int find_transfer(const struct tandem_table *table, const char *backend, int direction)
{
    int at = 0;
    while (at < table->n_transfers &&
           compare_transfer(&table->transfers[at], backend, direction) < 0) {
        at++;
    }
    return at;
}

const struct tnd_curve *tnd_table_transfer(const struct tandem_table *table, const char *backend,
                                           enum tnd_direction direction)
{
    int at = find_transfer(table, backend, (int)direction);
    bool found = at < table->n_transfers &&
                 compare_transfer(&table->transfers[at], backend, (int)direction) == 0;
    return found ? &table->transfers[at].curve : NULL;
}

enum tandem_status tnd_table_add_transfer(struct tandem_table *table, const char *backend,
                                          enum tnd_direction direction,
                                          const struct tnd_sample *sample)
{
    size_t length = strlen(backend);
    if (length == 0 || length >= sizeof(table->transfers[0].backend) || sample->m < 1 ||
        sample->m > TND_TABLE_MAX_EXTENT || direction >= TND_DIRECTIONS ||
        !tnd_table_is_time(sample->median_us) || !tnd_table_is_time(sample->spread_us)) {
        return TANDEM_E_ARGUMENT;
    }
    int at = find_transfer(table, backend, (int)direction);
    struct tnd_transfer *transfer = &table->transfers[at];
    if (at < table->n_transfers && compare_transfer(transfer, backend, (int)direction) == 0) {
        return tnd_curve_put(&transfer->curve, sample);
    }
    if (table->n_transfers == TND_TABLE_MAX_TRANSFERS) {
        return TANDEM_E_LIMIT;
    }
    struct tnd_transfer fresh = {.direction = (uint8_t)direction};
    memcpy(fresh.backend, backend, length);
    enum tandem_status status = tnd_curve_put(&fresh.curve, sample);
    if (status == TANDEM_OK) { /* a curve is never empty, not even after a failure */
        memmove(transfer + 1, transfer, (size_t)(table->n_transfers - at) * sizeof(*transfer));
        *transfer = fresh;
        table->n_transfers++;
    }
    return status;
}

/* ---- hand-offs ---- */

static bool handoff_wins(const struct tnd_handoff *a, const struct tnd_handoff *b)
{
    const struct tnd_sample one = {1, a->spin_us, a->wake_us, a->count, a->when, 0};
    const struct tnd_sample two = {1, b->spin_us, b->wake_us, b->count, b->when, 0};
    return tnd_sample_wins(&one, &two);
}

enum tandem_status tnd_table_add_handoff(struct tandem_table *table,
                                         const struct tnd_handoff *handoff)
{
    if (handoff->threads < 2 || handoff->threads > TND_TABLE_MAX_THREADS ||
        !tnd_table_is_time(handoff->spin_us) || !tnd_table_is_time(handoff->wake_us)) {
        return TANDEM_E_ARGUMENT;
    }
    int at = 0;
    while (at < table->n_handoffs && table->handoffs[at].threads < handoff->threads) {
        at++;
    }
    struct tnd_handoff *there = &table->handoffs[at];
    if (at < table->n_handoffs && there->threads == handoff->threads) {
        *there = handoff_wins(handoff, there) ? *handoff : *there;
        return TANDEM_OK;
    }
    if (table->n_handoffs == TND_TABLE_MAX_HANDOFFS) {
        return TANDEM_E_LIMIT;
    }
    memmove(there + 1, there, (size_t)(table->n_handoffs - at) * sizeof(*there));
    *there = *handoff;
    table->n_handoffs++;
    return TANDEM_OK;
}

/* ---- as a whole ---- */

enum tandem_status tnd_table_merge_moves(struct tandem_table *table,
                                         const struct tandem_table *other)
{
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < other->n_transfers; i++) {
        const struct tnd_transfer *from = &other->transfers[i];
        for (int s = 0; s < from->curve.n_samples && status == TANDEM_OK; s++) {
            status = tnd_table_add_transfer(
                table, from->backend, (enum tnd_direction)from->direction, &from->curve.samples[s]);
        }
    }
    for (int i = 0; i < other->n_handoffs && status == TANDEM_OK; i++) {
        status = tnd_table_add_handoff(table, &other->handoffs[i]);
    }
    return status;
}

void tnd_table_drop_moves(struct tandem_table *table)
{
    table->n_transfers = 0;
    table->n_handoffs = 0;
}

void tnd_table_clear_moves(struct tandem_table *table)
{
    for (int i = 0; i < table->n_transfers; i++) {
        tnd_free(table->transfers[i].curve.samples);
    }
    tnd_table_drop_moves(table);
}
