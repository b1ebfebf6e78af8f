/* SPDX-License-Identifier: MIT
 * Memory plan: random records never overlap, and the result is near the lower bound. */
#include <stdlib.h>

#include "base/alloc.h"
#include "ggml-like/memplan.h"
#include "tests/support.h"

#define MOST_USAGES 400

/* Records sorted by first step; sizes and lives of several kinds. */
static int random_usages(struct tnd_test_rng *rng, struct tnd_usage *usages, int n_steps)
{
    const int64_t life = tnd_test_rng_int(rng, 0, 1) != 0 ? 3 : n_steps;
    const int64_t size = tnd_test_rng_int(rng, 1, 40);
    int n = 0;
    for (int step = 0; step < n_steps; step++) {
        for (int64_t i = tnd_test_rng_int(rng, 0, 3); i > 0 && n < MOST_USAGES; i--) {
            const int64_t last = step + tnd_test_rng_int(rng, 0, life);
            const size_t scale = tnd_test_rng_int(rng, 0, 9) == 0 ? 65536 : 64;
            usages[n++] = (struct tnd_usage){(size_t)tnd_test_rng_int(rng, 1, size) * scale, step,
                                             (int)(last < n_steps ? last : n_steps - 1), 0};
        }
    }
    return n;
}

static bool is_sound(const struct tnd_usage *usages, int n, size_t total)
{
    for (int i = 0; i < n; i++) {
        const struct tnd_usage *a = &usages[i];
        if (a->offset % 64 != 0 || a->offset + a->bytes > total) {
            return false;
        }
        for (int j = 0; j < i; j++) {
            const struct tnd_usage *b = &usages[j];
            if (a->first <= b->last && b->first <= a->last && a->offset < b->offset + b->bytes &&
                b->offset < a->offset + a->bytes) {
                return false;
            }
        }
    }
    return true;
}

/* Largest sum of bytes that live at one step: no plan can need less. */
static size_t lower_bound(const struct tnd_usage *usages, int n, int n_steps)
{
    size_t bound = 0;
    for (int step = 0; step < n_steps; step++) {
        size_t live = 0;
        for (int i = 0; i < n; i++) {
            live += usages[i].first <= step && step <= usages[i].last ? usages[i].bytes : 0;
        }
        bound = live > bound ? live : bound;
    }
    return bound;
}

static void records_that_live_together_never_share_a_byte(void)
{
    struct tnd_usage usages[MOST_USAGES];
    const int rounds = 100 * tnd_effort();
    double excess = 0.0;
    for (int round = 0; round < rounds; round++) {
        struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + (uint64_t)round);
        const int n_steps = (int)tnd_test_rng_int(&rng, 1, 150);
        const int n = random_usages(&rng, usages, n_steps);
        size_t sum = 0;
        for (int i = 0; i < n; i++) {
            sum += usages[i].bytes;
        }
        size_t total = 1;
        check_ok(tnd_memplan(usages, n, n_steps, &total));
        CU_ASSERT(is_sound(usages, n, total));
        const size_t bound = lower_bound(usages, n, n_steps);
        CU_ASSERT(total >= bound && total <= sum);
        excess += bound == 0 ? 0.0 : (double)(total - bound) / (double)bound;
    }
    /* a quarter above the bound on average would say that the heuristics are broken */
    CU_ASSERT(excess / rounds < 0.25);
}

static void a_chain_needs_the_two_results_that_meet(void)
{
    struct tnd_usage usages[1000];
    size_t total = 0;
    for (int i = 0; i < 1000; i++) {
        usages[i] = (struct tnd_usage){4096, i, i < 999 ? i + 1 : i, 0};
    }
    check_ok(tnd_memplan(usages, 1000, 1000, &total));
    check_int(total, 2 * 4096);
}

static void no_records_need_no_bytes(void)
{
    size_t total = 1;
    check_ok(tnd_memplan(NULL, 0, 10, &total));
    check_int(total, 0);
}

static void large_plans_are_made_in_bounded_work(void)
{
    enum { N = 200000 };
    struct tnd_usage *usages = calloc(N, sizeof(*usages));
    CU_ASSERT_PTR_NOT_NULL_FATAL(usages);
    size_t total = 0;
    /* all born before anything dies, in sizes that leave gaps: the worst case for searching */
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int i = 0; i < N; i++) {
        const int last = i < N / 2 ? N / 2 + (int)tnd_test_rng_int(&rng, 0, N / 2 - 1) : i;
        usages[i] = (struct tnd_usage){(size_t)tnd_test_rng_int(&rng, 1, 1000) * 64, i, last, 0};
    }
    check_ok(tnd_memplan(usages, N, N, &total));
    CU_ASSERT(total > 0);
    free(usages);
}

static void plans_are_the_same_every_time(void)
{
    struct tnd_usage first[MOST_USAGES];
    struct tnd_usage second[MOST_USAGES];
    size_t totals[2] = {0, 1};
    struct tnd_test_rng rng = tnd_test_rng_new(7);
    const int n = random_usages(&rng, first, 100);
    for (int i = 0; i < n; i++) {
        second[i] = first[i];
    }
    check_ok(tnd_memplan(first, n, 100, &totals[0]));
    check_ok(tnd_memplan(second, n, 100, &totals[1]));
    check_int(totals[0], totals[1]);
    for (int i = 0; i < n; i++) {
        CU_ASSERT_EQUAL(first[i].offset, second[i].offset);
    }
}

static void failing_allocations_leave_a_status_or_a_plan(void)
{
    struct tnd_usage usages[MOST_USAGES];
    struct tnd_test_rng rng = tnd_test_rng_new(3);
    const int n = random_usages(&rng, usages, 120);
    const long live = tnd_alloc_live();
    for (long fail = 1; fail < 4; fail++) {
        size_t total = 12345;
        tnd_alloc_fail_after(fail);
        const enum tandem_status status = tnd_memplan(usages, n, 120, &total);
        tnd_alloc_fail_after(-1);
        if (status == TANDEM_OK) {
            CU_ASSERT(is_sound(usages, n, total));
        } else {
            CU_ASSERT_EQUAL(status, TANDEM_E_MEMORY);
            check_int(total, 12345);
        }
    }
    check_int(tnd_alloc_live(), live);
}

static CU_TestInfo memplan_tests[] = {
    {"records_that_live_together_never_share_a_byte",
     records_that_live_together_never_share_a_byte},
    {"a_chain_needs_the_two_results_that_meet", a_chain_needs_the_two_results_that_meet},
    {"no_records_need_no_bytes", no_records_need_no_bytes},
    {"large_plans_are_made_in_bounded_work", large_plans_are_made_in_bounded_work},
    {"plans_are_the_same_every_time", plans_are_the_same_every_time},
    {"failing_allocations_leave_a_status_or_a_plan", failing_allocations_leave_a_status_or_a_plan},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_ggml_memplan[] = {
    {"memplan", NULL, NULL, NULL, NULL, memplan_tests},
    CU_SUITE_INFO_NULL,
};
