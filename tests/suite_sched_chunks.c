/* SPDX-License-Identifier: MIT
 * How items are shared out: all of them once, in stretches, with an even end. */
#include <string.h>

#include "backends/chunks.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

enum { PLAYERS = 9 };

static void every_item_is_in_one_chunk_and_chunks_shrink_towards_the_end(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    long n_wrong = 0;
    for (int round = 0; round < 20000; round++) {
        int64_t n_items = tnd_test_rng_int(&rng, 0, round % 2 == 0 ? 40 : 5000);
        int64_t chunk = tnd_test_rng_int(&rng, 0, round % 3 == 0 ? 4 : 300);
        int count = (int)tnd_test_rng_int(&rng, 1, 9);
        int64_t whole = chunk < 1 ? 1 : chunk;
        int64_t most = whole;
        int64_t covered = 0;
        int64_t begin = 0;
        int64_t end = 0;
        int64_t i = 0;
        for (; tnd_chunk_at(i, n_items, chunk, count, &begin, &end); i++) {
            n_wrong += begin != covered || end <= begin || end - begin > most || end > n_items;
            most = end - begin;
            covered = end;
        }
        n_wrong += covered != n_items;
        /* nobody waits for more than an item at the end; one worker waits for nobody */
        n_wrong += n_items > 0 && count > 1 && most != 1;
        n_wrong += count == 1 && i != (n_items + whole - 1) / whole;
        n_wrong += tnd_chunk_at(i + 1, n_items, chunk, count, &begin, &end);
        n_wrong += tnd_chunk_at(INT64_MAX / 2, n_items, chunk, count, &begin, &end);
    }
    check_int(n_wrong, 0);
}

/* Workers whose speeds differ, in virtual time: each takes the next chunk when it is done. */
static void play(int count, int64_t n_items, int64_t chunk, uint64_t loop, const int *cost,
                 struct tnd_chunk_cursor *cursors, uint8_t *times, int64_t *done)
{
    bool is_home[PLAYERS] = {false};
    for (int n_home = 0; n_home < count;) {
        int64_t begin;
        int64_t end;
        int next = -1;
        for (int w = 0; w < count; w++) {
            next = !is_home[w] && (next < 0 || done[w] < done[next]) ? w : next;
        }
        if (!tnd_chunk_next(cursors, next, count, loop, n_items, chunk, &begin, &end)) {
            is_home[next] = true;
            n_home++;
            continue;
        }
        for (int64_t i = begin; i < end; i++) {
            times[i]++;
        }
        done[next] += (end - begin) * cost[next];
    }
}

static void every_item_is_handed_out_once_in_each_loop(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    struct tnd_chunk_cursor cursors[PLAYERS];
    long n_wrong = 0;
    memset(cursors, 0, sizeof(cursors));
    for (int loop = 1; loop <= 5000; loop++) {
        int64_t n_items = tnd_test_rng_int(&rng, 0, loop % 2 == 0 ? 40 : 1000);
        int count = (int)tnd_test_rng_int(&rng, 1, PLAYERS);
        uint8_t times[1000] = {0};
        int64_t done[PLAYERS] = {0};
        int cost[PLAYERS];
        for (int w = 0; w < count; w++) {
            cost[w] = (int)tnd_test_rng_int(&rng, 1, 20);
        }
        play(count, n_items, tnd_test_rng_int(&rng, 0, 100), (uint64_t)loop, cost, cursors, times,
             done);
        for (int64_t i = 0; i < n_items; i++) {
            n_wrong += times[i] != 1;
        }
    }
    check_int(n_wrong, 0);
}

/* The first chunks of a worker are one stretch: a stream. */
static void a_worker_begins_with_a_range_of_its_own(void)
{
    struct tnd_chunk_cursor cursors[3];
    memset(cursors, 0, sizeof(cursors));
    for (int w = 0; w < 3; w++) {
        int64_t at = w * 40;
        int64_t begin;
        int64_t end;
        while (at < (w + 1) * 40) {
            CU_ASSERT_TRUE_FATAL(tnd_chunk_next(cursors, w, 3, 7, 120, 8, &begin, &end));
            check_int(begin, at);
            at = end;
        }
        check_int(at, (w + 1) * 40);
    }
}

static void more_items_than_can_be_counted_are_taken_in_greater_chunks(void)
{
    struct tnd_chunk_cursor cursors[2];
    int64_t n_items = INT64_C(1) << 40;
    int64_t taken = 0;
    int64_t begin;
    int64_t end;
    memset(cursors, 0, sizeof(cursors));
    while (tnd_chunk_next(cursors, 0, 2, 1, n_items, 1, &begin, &end)) {
        taken += end - begin;
    }
    CU_ASSERT(taken == n_items);
}

static void workers_end_within_one_item_of_the_slowest(void)
{
    static const int cost[3] = {10, 13, 19}; /* of one item */
    for (int count = 2; count <= 3; count++) {
        struct tnd_chunk_cursor cursors[3];
        uint8_t times[64] = {0};
        int64_t done[3] = {0};
        memset(cursors, 0, sizeof(cursors));
        play(count, 64, 8, 1, cost, cursors, times, done);
        int64_t first = done[0];
        int64_t last = done[0];
        for (int w = 1; w < count; w++) {
            first = done[w] < first ? done[w] : first;
            last = done[w] > last ? done[w] : last;
        }
        CU_ASSERT(last - first <= cost[count - 1]);
    }
}

static CU_TestInfo tests[] = {
    {"every_item_is_in_one_chunk_and_chunks_shrink_towards_the_end",
     every_item_is_in_one_chunk_and_chunks_shrink_towards_the_end},
    {"every_item_is_handed_out_once_in_each_loop", every_item_is_handed_out_once_in_each_loop},
    {"a_worker_begins_with_a_range_of_its_own", a_worker_begins_with_a_range_of_its_own},
    {"more_items_than_can_be_counted_are_taken_in_greater_chunks",
     more_items_than_can_be_counted_are_taken_in_greater_chunks},
    {"workers_end_within_one_item_of_the_slowest", workers_end_within_one_item_of_the_slowest},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_chunks[] = {
    {"chunks", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
