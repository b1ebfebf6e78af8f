/* SPDX-License-Identifier: MIT
 * Measures messages between two ranks, back and forth and in both directions at once, while the
 * others wait; then all-reduce and all-gather of all ranks. Every rank has the same list of sizes;
 * the rank that measures announces the number of repetitions.
 *
 * Each repetition is two operations, of which half the time counts. A single all-reduce is
 * misleading: of two ranks, the one that comes first waits longer than the link takes, and the
 * other one finds the message already there; then they change places. */
#include "tools/mulmat-tune/bench_links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/tnd_status.h"
#include "table/tnd_table.h"
#include "tandem/communicator.h"
#include "tools/say.h"

enum {
    SIZES = 8, /* 8 bytes to 16 MiB */
    MOST_REPEATS = 200,
    SHORT = 4096, /* bytes; longer messages are repeated less */
    WARM = 3,     /* warm-up repetitions */
    END = 80
};
#define SIZE_US 1e6   /* budget for one size; at least two repetitions run */
#define WAIT_S  600.0 /* the others wait while all pairs measure */

struct end {
    char name[END];
};

/* State of the measurement. */
struct links {
    tandem_communicator *communicator;
    int rank, count;
    struct end *ends; /* {count} */
    char *bytes;      /* {largest size} */
    char *all;        /* {count * largest size} */
    size_t *each;     /* {count} */
    tandem_table *table;
};

static size_t size_of(int i)
{
    return (size_t)8 << 3 * i;
}

/* Number of repetitions, by the time of a first one, which does not count. */
static int32_t repeats_of(int i, double first_us)
{
    const double most = size_of(i) <= SHORT ? MOST_REPEATS : size_of(i) <= 262144 ? 40 : 8;
    const double n = SIZE_US / (first_us > 1 ? first_us : 1);
    return (int32_t)(n < 1 ? 1 : n < most ? n : most);
}

static double now_us(void)
{
    return (double)tnd_clock_real()->now_ns(tnd_clock_real()) / 1e3;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Times of one kind of operation. */
struct times {
    double us[SIZES][MOST_REPEATS];
    int32_t n[SIZES]; /* repetitions */
    struct tnd_sample samples[SIZES];
};

/* Median and median absolute deviation; sorts `values`. */
static struct tnd_sample summarise(double *values, int n, int size)
{
    struct tnd_sample sample = {
        .m = (int64_t)size_of(size), .count = (uint32_t)n, .when = (int64_t)time(NULL)};
    qsort(values, (size_t)n, sizeof(values[0]), compare);
    sample.median_us = values[n / 2];
    for (int i = 0; i < n; i++) {
        values[i] = values[i] > sample.median_us ? values[i] - sample.median_us
                                                 : sample.median_us - values[i];
    }
    qsort(values, (size_t)n, sizeof(values[0]), compare);
    sample.spread_us = values[n / 2];
    return sample;
}

/* Medians, corrected for rare outliers that they hide: a lost frame costs hundreds of times the
 * latency, and a token waits for so many messages that it meets one. The mean excess over all short
 * messages is added to each. */
static void summarise_all(struct times *times)
{
    double lost_us = 0;
    int n = 0;
    for (int i = 0; i < SIZES; i++) {
        double sum_us = 0;
        for (int r = 0; r < times->n[i]; r++) {
            sum_us += times->us[i][r];
        }
        times->samples[i] = summarise(times->us[i], times->n[i], i);
        if (size_of(i) <= SHORT) {
            lost_us += sum_us - times->n[i] * times->samples[i].median_us;
            n += times->n[i];
        }
    }
    for (int i = 0; i < SIZES && lost_us > 0; i++) {
        times->samples[i].median_us += lost_us / n;
    }
}

/* ---- two ranks ---- */

typedef enum tandem_status (*pair_fn)(struct links *l, int other, bool is_first, size_t bytes,
                                      struct tandem_error *error);

/* Sends one message and receives one back. */
static enum tandem_status to_and_fro(struct links *l, int other, bool is_first, size_t bytes,
                                     struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    if (is_first) {
        status = tandem_communicator_send(l->communicator, other, l->bytes, bytes, error);
    }
    if (status == TANDEM_OK) {
        status = tandem_communicator_receive(l->communicator, other, l->all, bytes, error);
    }
    if (status == TANDEM_OK && !is_first) {
        status = tandem_communicator_send(l->communicator, other, l->bytes, bytes, error);
    }
    return status;
}

/* Sends and receives at the same time, twice. */
static enum tandem_status in_both_directions(struct links *l, int other, bool is_first,
                                             size_t bytes, struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    (void)is_first;
    memset(l->each, 0, (size_t)l->count * sizeof(l->each[0]));
    l->each[other] = bytes;
    for (int i = 0; i < 2 && status == TANDEM_OK; i++) {
        status = tandem_communicator_all_to_all(l->communicator, l->bytes, l->each, l->all, l->each,
                                                error);
    }
    return status;
}

static enum tandem_status measure_pair(struct links *l, pair_fn exchange, int other, bool is_first,
                                       struct times *times, struct tandem_error *error)
{
    for (int i = 0; i < SIZES; i++) {
        times->n[i] = 1;
        for (int r = -1; r < times->n[i]; r++) {
            const double begin_us = now_us();
            TND_TRY(exchange(l, other, is_first, size_of(i), error));
            const double us = now_us() - begin_us;
            if (r < 0 && is_first) {
                times->n[i] = repeats_of(i, us);
                TND_TRY(tandem_communicator_send(l->communicator, other, &times->n[i],
                                                 sizeof(times->n[i]), error));
            } else if (r < 0) {
                TND_TRY(tandem_communicator_receive(l->communicator, other, &times->n[i],
                                                    sizeof(times->n[i]), error));
                times->n[i] = times->n[i] < 1 || times->n[i] > MOST_REPEATS ? 1 : times->n[i];
            }
            times->us[i][r < 0 ? 0 : r] = us / 2;
        }
    }
    summarise_all(times);
    return TANDEM_OK;
}

static enum tandem_status add(struct links *l, const char *kind, int ranks, const char *from,
                              const char *to, const struct tnd_sample *samples,
                              struct tandem_error *error)
{
    struct tnd_link link = {.ranks = ranks};
    snprintf(link.kind, sizeof(link.kind), "%s", kind);
    snprintf(link.transport, sizeof(link.transport), "%s",
             tandem_communicator_name(l->communicator));
    snprintf(link.from, sizeof(link.from), "%s", from);
    snprintf(link.to, sizeof(link.to), "%s", to);
    for (int i = 0; i < SIZES; i++) {
        const enum tandem_status status =
            tnd_cell_add(l->table, TND_RECORD_LINKS, &link, &samples[i]);
        if (status != TANDEM_OK) {
            return tnd_error_set(error, status, "links", i, SIZES,
                                 "links: the time of %lld bytes cannot be kept: %s",
                                 (long long)samples[i].m, tandem_status_text(status));
        }
    }
    return TANDEM_OK;
}

/* Ranks a < b measure: rank a keeps the time, rank 0 adds it to the table. */
static enum tandem_status pair(struct links *l, const char *kind, pair_fn exchange, int a, int b,
                               struct tandem_error *error)
{
    struct times times;
    struct tnd_sample *const samples = times.samples;
    TND_TRY(tandem_communicator_barrier(l->communicator, error));
    if (l->rank == b) {
        return measure_pair(l, exchange, a, false, &times, error);
    }
    if (l->rank == a) {
        TND_TRY(measure_pair(l, exchange, b, true, &times, error));
        if (a != 0) {
            return tandem_communicator_send(l->communicator, 0, samples, sizeof(times.samples),
                                            error);
        }
    } else if (l->rank == 0) {
        TND_TRY(
            tandem_communicator_receive(l->communicator, a, samples, sizeof(times.samples), error));
    }
    return l->rank == 0 ? add(l, kind, 2, l->ends[a].name, l->ends[b].name, samples, error)
                        : TANDEM_OK;
}

/* ---- all ranks ---- */

static enum tandem_status together(struct links *l, bool is_sum, size_t bytes,
                                   struct tandem_error *error)
{
    if (is_sum) {
        return tandem_communicator_all_reduce(l->communicator, (float *)(void *)l->bytes,
                                              bytes / sizeof(float), error);
    }
    for (int i = 0; i < l->count; i++) {
        l->each[i] = bytes;
    }
    return tandem_communicator_all_gather(l->communicator, l->bytes, l->each, l->all, error);
}

static enum tandem_status measure_together(struct links *l, bool is_sum, struct tandem_error *error)
{
    struct times times;
    TND_TRY(tandem_communicator_barrier(l->communicator, error));
    for (int i = 0; i < SIZES; i++) {
        times.n[i] = 1;
        for (int r = -1; r < times.n[i]; r++) {
            const double begin_us = now_us();
            TND_TRY(together(l, is_sum, size_of(i), error));
            TND_TRY(together(l, is_sum, size_of(i), error));
            const double us = now_us() - begin_us;
            if (r < 0) {
                times.n[i] = repeats_of(i, us);
                TND_TRY(tandem_communicator_broadcast(l->communicator, &times.n[i],
                                                      sizeof(times.n[i]), error));
                times.n[i] = times.n[i] < 1 || times.n[i] > MOST_REPEATS ? 1 : times.n[i];
            }
            times.us[i][r < 0 ? 0 : r] = us / 2;
        }
    }
    summarise_all(&times);
    return l->rank == 0 ? add(l, is_sum ? "all-reduce" : "all-gather", l->count, l->ends[0].name,
                              "all", times.samples, error)
                        : TANDEM_OK;
}

static enum tandem_status measure_all(struct links *l, const char *end, struct tandem_error *error)
{
    struct end own = {""};
    snprintf(own.name, sizeof(own.name), "%s", end);
    for (int i = 0; i < l->count; i++) {
        l->each[i] = sizeof(own);
    }
    TND_TRY(tandem_communicator_all_gather(l->communicator, &own, l->each, l->ends, error));
    for (int i = 0; i < l->count; i++) {
        l->ends[i].name[END - 1] = '\0';
    }
    for (int a = 0; a < l->count; a++) {
        for (int b = a + 1; b < l->count; b++) {
            TND_TRY(pair(l, "message", to_and_fro, a, b, error));
            TND_TRY(pair(l, "both directions", in_both_directions, a, b, error));
        }
    }
    TND_TRY(measure_together(l, true, error));
    TND_TRY(measure_together(l, false, error));
    return bench_links_products(l->communicator, l->table, error);
}

enum tandem_status bench_links(const char *end, tandem_table *table, bool *out_is_first,
                               struct tandem_error *error)
{
    struct links l = {.table = table};
    if (tandem_communicator_launched() < 2) {
        return tnd_error_set(error, TANDEM_E_STATE, "links", tandem_communicator_launched(), 2,
                             "links are measured between ranks: mpirun -np 2 mulmat-tune bench "
                             "--links (docs/cluster.md)");
    }
    TND_TRY(tandem_communicator_open(&l.communicator, error));
    l.rank = tandem_communicator_rank(l.communicator);
    l.count = tandem_communicator_count(l.communicator);
    const size_t largest = size_of(SIZES - 1);
    l.ends = calloc((size_t)l.count, sizeof(l.ends[0]));
    l.each = calloc((size_t)l.count, sizeof(l.each[0]));
    l.bytes = calloc(1, largest);
    l.all = calloc((size_t)l.count, largest);
    enum tandem_status status = TANDEM_E_MEMORY;
    if (l.ends == NULL || l.each == NULL || l.bytes == NULL || l.all == NULL) {
        const struct tandem_error why = {.status = status, .text = "no memory"};
        tandem_communicator_fail(l.communicator, &why);
        status = tnd_error_set(error, status, "links", l.count, 0,
                               "links: no memory for messages of %zu bytes of %d ranks", largest,
                               l.count);
    } else {
        tandem_communicator_set_limit(l.communicator, WAIT_S);
        status = measure_all(&l, end, error);
    }
    free(l.ends);
    free(l.each);
    free(l.bytes);
    free(l.all);
    tandem_communicator_close(l.communicator);
    *out_is_first = l.rank == 0;
    return status;
}
