/* SPDX-License-Identifier: MIT
 * Allocation, arena and checked arithmetic. */
#include <stdint.h>
#include <string.h>

#include "base/vector.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/checked.h"
#include "base/rng.h"
#include "tandem/allocator.h"
#include "tests/suite_base.h"

static bool is_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static void allocations_are_aligned_counted_and_freed(void)
{
    long live = tnd_alloc_live();
    long count = tnd_alloc_count();
    void *a = tnd_alloc(0);
    unsigned char *b = tnd_calloc(7, 33);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL((uintptr_t)a % 64, 0);
    CU_ASSERT_EQUAL((uintptr_t)b % 64, 0);
    CU_ASSERT_TRUE(is_zero(b, 7 * 33));
    check_int(tnd_alloc_live() - live, 2);
    check_int(tnd_alloc_count() - count, 2);
    tnd_free(a);
    tnd_free(b);
    tnd_free(NULL);
    check_int(tnd_alloc_live(), live);
    CU_ASSERT_PTR_NULL(tnd_calloc(SIZE_MAX / 2, 3));
    CU_ASSERT_PTR_NULL(tnd_strdup(NULL));
}

static void realloc_keeps_the_contents(void)
{
    char *text = tnd_strdup("keep me");
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    text = tnd_realloc(text, 8, 5000);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    check_string(text, "keep me");
    tnd_alloc_fail_after(1);
    CU_ASSERT_PTR_NULL(tnd_realloc(text, 5000, 10000)); /* and `text` lives on */
    check_string(text, "keep me");
    tnd_free(text);
}

static void exactly_the_planned_allocation_fails(void)
{
    long live = tnd_alloc_live();
    void *got[4];
    tnd_alloc_fail_after(3);
    for (int i = 0; i < 4; i++) {
        got[i] = tnd_alloc(16);
        CU_ASSERT_EQUAL(got[i] == NULL, i == 2);
    }
    for (int i = 0; i < 4; i++) {
        tnd_free(got[i]);
    }
    tnd_alloc_fail_after(-1);
    check_int(tnd_alloc_live(), live);
}

static void arena_pieces_are_zeroed_aligned_and_apart(void)
{
    struct tnd_arena arena;
    struct tnd_rng rng;
    unsigned char *pieces[500];
    size_t sizes[500];
    long live = tnd_alloc_live();
    tnd_rng_init(&rng, tnd_test_seed());
    tnd_arena_init(&arena, 1000, 0);
    for (int round = 0; round < 4; round++) {
        int wrong = 0;
        for (int i = 0; i < 500; i++) {
            size_t alignment = (size_t)1 << tnd_rng_below(&rng, 9);
            sizes[i] = (size_t)tnd_rng_below(&rng, i % 50 == 0 ? 5000 : 90);
            pieces[i] = tnd_arena_alloc(&arena, sizes[i], alignment);
            if (pieces[i] == NULL) {
                wrong++;
                sizes[i] = 0;
                continue;
            }
            wrong += (uintptr_t)pieces[i] % alignment != 0 || !is_zero(pieces[i], sizes[i]);
            memset(pieces[i], i % 251 + 1, sizes[i]);
        }
        for (int i = 0; i < 500; i++) {
            for (size_t j = 0; j < sizes[i]; j++) {
                wrong += pieces[i][j] != i % 251 + 1;
            }
        }
        check_int(wrong, 0);
        tnd_arena_reset(&arena);
    }
    tnd_arena_fini(&arena);
    check_int(tnd_alloc_live(), live);
}

static void arena_keeps_its_memory_over_a_reset(void)
{
    struct tnd_arena *arena = tnd_arena_new(4096, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(arena);
    for (int round = 0; round < 3; round++) {
        long count = tnd_alloc_count();
        size_t bytes = tnd_arena_bytes(arena);
        for (int i = 0; i < 20; i++) {
            CU_ASSERT_PTR_NOT_NULL(tnd_arena_alloc(arena, i == 7 ? 9000 : 700, 64));
        }
        if (round > 0) {
            check_int(tnd_alloc_count(), count);
            check_int(tnd_arena_bytes(arena), bytes);
        }
        tnd_arena_reset(arena);
    }
    tnd_arena_free(arena);
    tnd_arena_free(NULL);
}

static void arena_obeys_its_limit_and_survives_reaching_it(void)
{
    struct tnd_arena arena;
    tnd_arena_init(&arena, 1000, 3000);
    size_t total = 0;
    while (tnd_arena_alloc(&arena, 100, 1) != NULL) {
        total += 100;
        CU_ASSERT_FATAL(total <= 3000);
    }
    CU_ASSERT_TRUE(total >= 2000);
    CU_ASSERT_TRUE(tnd_arena_bytes(&arena) <= 3000);
    CU_ASSERT_PTR_NULL(tnd_arena_alloc(&arena, SIZE_MAX, 64));
    CU_ASSERT_PTR_NULL(tnd_arena_alloc(&arena, SIZE_MAX - 50, 4096));
    tnd_arena_reset(&arena);
    CU_ASSERT_PTR_NOT_NULL(tnd_arena_alloc(&arena, 100, 1));
    tnd_arena_fini(&arena);
}

static void arena_without_memory_says_so_and_goes_on(void)
{
    struct tnd_arena arena;
    long live = tnd_alloc_live();
    tnd_alloc_fail_after(1);
    CU_ASSERT_PTR_NULL(tnd_arena_new(0, 0));
    tnd_arena_init(&arena, 256, 0);
    for (long n = 1; n <= 4; n++) {
        tnd_alloc_fail_after(n);
        int failures = 0;
        for (int i = 0; i < 8; i++) {
            failures += tnd_arena_alloc(&arena, 150, 8) == NULL ? 1 : 0;
        }
        check_int(failures, 1);
        tnd_arena_fini(&arena);
    }
    tnd_alloc_fail_after(-1);
    check_int(tnd_alloc_live(), live);
}

static void checked_arithmetic_notices_every_overflow(void)
{
    size_t size = 42;
    int64_t wide = 42;
    CU_ASSERT_TRUE(tnd_add_size(SIZE_MAX - 1, 1, &size) && size == SIZE_MAX);
    CU_ASSERT_TRUE(tnd_mul_size(SIZE_MAX / 2, 2, &size) && size == SIZE_MAX - 1);
    CU_ASSERT_TRUE(tnd_align_up(65, 64, &size) && size == 128);
    CU_ASSERT_TRUE(tnd_align_up(0, 64, &size) && size == 0);
    CU_ASSERT_TRUE(tnd_align_up(SIZE_MAX - 63, 64, &size) && size == SIZE_MAX - 63);
    CU_ASSERT_TRUE(tnd_add_i64(INT64_MIN, INT64_MAX, &wide) && wide == -1);
    CU_ASSERT_TRUE(tnd_mul_i64(INT64_MIN / 2, 2, &wide) && wide == INT64_MIN);
    size = 42;
    wide = 42;
    CU_ASSERT_FALSE(tnd_add_size(SIZE_MAX, 1, &size));
    CU_ASSERT_FALSE(tnd_mul_size(SIZE_MAX / 2 + 1, 2, &size));
    CU_ASSERT_FALSE(tnd_align_up(SIZE_MAX - 62, 64, &size));
    CU_ASSERT_FALSE(tnd_add_i64(INT64_MAX, 1, &wide));
    CU_ASSERT_FALSE(tnd_mul_i64(INT64_MIN, -1, &wide));
    CU_ASSERT_TRUE(size == 42 && wide == 42);
}

static void a_list_grows_and_keeps_what_it_has(void)
{
    int *items = NULL;
    size_t n = 0, capacity = 0;
    for (; n < 100; n++) {
        CU_ASSERT_FATAL(tnd_grow(&items, n, &capacity, sizeof(items[0])));
        items[n] = (int)n;
    }
    for (size_t i = 0; i < n; i++) {
        check_int(items[i], (int)i);
    }
    while (n < capacity) {
        items[n++] = 0;
    }
    const int *before = items;
    const size_t capacity_before = capacity;
    tnd_alloc_fail_after(1);
    CU_ASSERT(!tnd_grow(&items, n, &capacity, sizeof(items[0])));
    tnd_alloc_fail_after(-1);
    CU_ASSERT(items == before && capacity == capacity_before);
    CU_ASSERT(!tnd_grow(&items, n, &capacity, SIZE_MAX / n)); /* more bytes than there can be */
    tnd_free(items);
}

static int taken;
static int offset; /* bytes that the next piece is off its alignment */
static unsigned char pool[64 * 8] __attribute__((aligned(64)));

static void *take(void *user, size_t bytes, size_t alignment)
{
    CU_ASSERT_PTR_EQUAL(user, pool);
    CU_ASSERT_EQUAL(alignment, 64);
    return bytes <= 64 && taken < 8 ? &pool[64 * taken++ + offset] : NULL;
}

static void give_back(void *user, void *memory)
{
    CU_ASSERT_PTR_EQUAL(user, pool);
    CU_ASSERT_PTR_NOT_NULL(memory);
    taken--;
}

static void the_program_may_bring_its_own_allocator(void)
{
    struct tandem_allocator allocator = TANDEM_ALLOCATOR_INIT;
    struct tandem_error error;
    long live = tnd_alloc_live();
    check_status(tandem_set_allocator(&allocator, &error), TANDEM_E_ARGUMENT, "allocate is NULL",
                 &error);
    allocator.allocate = take;
    check_status(tandem_set_allocator(&allocator, &error), TANDEM_E_ARGUMENT, "release is NULL",
                 &error);
    allocator.release = give_back;
    allocator.user = pool;
    allocator.size = 0;
    check_status(tandem_set_allocator(&allocator, &error), TANDEM_E_ABI, "_INIT", &error);
    allocator.size = sizeof(allocator);
    if (live != 0) {
        return; /* another test has left something, and says so itself */
    }
    void *before = tnd_alloc(8);
    check_status(tandem_set_allocator(&allocator, &error), TANDEM_E_STATE, "1 pieces", &error);
    tnd_free(before);
    check_ok(tandem_set_allocator(&allocator, &error));
    unsigned char *zeroed = tnd_calloc(8, 8);
    CU_ASSERT_PTR_EQUAL(zeroed, pool);
    char *text = tnd_strdup("here");
    text = tnd_realloc(text, 5, 60);
    check_string(text, "here");
    CU_ASSERT_PTR_NULL(tnd_alloc(65));
    offset = 8;
    CU_ASSERT_PTR_NULL(tnd_alloc(8)); /* not aligned: given back at once */
    offset = 0;
    check_status(tandem_set_allocator(NULL, &error), TANDEM_E_STATE, "2 pieces", &error);
    tnd_free(text);
    tnd_free(zeroed);
    check_int(taken, 0);
    check_ok(tandem_set_allocator(NULL, NULL));
    void *after = tnd_alloc(65);
    CU_ASSERT_PTR_NOT_NULL(after);
    tnd_free(after);
    check_int(tnd_alloc_live(), 0);
}

CU_TestInfo tnd_tests_base_memory[] = {
    {"a_list_grows_and_keeps_what_it_has", a_list_grows_and_keeps_what_it_has},
    {"allocations_are_aligned_counted_and_freed", allocations_are_aligned_counted_and_freed},
    {"realloc_keeps_the_contents", realloc_keeps_the_contents},
    {"exactly_the_planned_allocation_fails", exactly_the_planned_allocation_fails},
    {"the_program_may_bring_its_own_allocator", the_program_may_bring_its_own_allocator},
    {"arena_pieces_are_zeroed_aligned_and_apart", arena_pieces_are_zeroed_aligned_and_apart},
    {"arena_keeps_its_memory_over_a_reset", arena_keeps_its_memory_over_a_reset},
    {"arena_obeys_its_limit_and_survives_reaching_it",
     arena_obeys_its_limit_and_survives_reaching_it},
    {"arena_without_memory_says_so_and_goes_on", arena_without_memory_says_so_and_goes_on},
    {"checked_arithmetic_notices_every_overflow", checked_arithmetic_notices_every_overflow},
    CU_TEST_INFO_NULL,
};
