/* SPDX-License-Identifier: MIT
 * How items are shared out: all of them once, in order, with an even end. */
#include "backends/chunks.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

static void every_item_is_in_one_chunk_and_chunks_shrink_towards_the_end(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    long n_wrong = 0;
    for (int round = 0; round < 20000; round++) {
        int64_t n_items = tnd_test_rng_int(&rng, 0, round % 2 == 0 ? 40 : 5000);
        int64_t chunk = tnd_test_rng_int(&rng, 0, round % 3 == 0 ? 4 : 300);
        int count = (int)tnd_test_rng_int(&rng, 1, 9);
        int64_t most = chunk < 1 ? 1 : chunk;
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
        n_wrong += n_items > 0 && most != 1; /* nobody waits for more than an item at the end */
        n_wrong += tnd_chunk_at(i + 1, n_items, chunk, count, &begin, &end);
        n_wrong += tnd_chunk_at(INT64_MAX / 2, n_items, chunk, count, &begin, &end);
    }
    check_int(n_wrong, 0);
}

/* Workers whose speeds differ, in virtual time: each takes the next chunk when it is done. */
static void workers_end_within_one_item_of_the_slowest(void)
{
    static const int cost[3] = {10, 13, 19}; /* of one item */
    for (int count = 2; count <= 3; count++) {
        int64_t done[3] = {0};
        int64_t begin;
        int64_t end;
        for (int64_t i = 0;; i++) {
            int next = 0;
            for (int w = 1; w < count; w++) {
                next = done[w] < done[next] ? w : next;
            }
            if (!tnd_chunk_at(i, 64, 8, count, &begin, &end)) {
                break;
            }
            done[next] += (end - begin) * cost[next];
        }
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
    {"workers_end_within_one_item_of_the_slowest", workers_end_within_one_item_of_the_slowest},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_chunks[] = {
    {"chunks", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
