/* SPDX-License-Identifier: MIT
 * Copies of a part of a file, as ranks keep them: whatever happens to copy and record, a copy never
 * claims bytes that it does not hold, and gets what it lacks. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "tests/support.h"
#include "tools/report/ranks_copy.h"

enum { MIB = 1 << 20, BYTES = 3 * MIB + 123, HEAD = 4096, N_SPANS = 4 };

static uint8_t *contents; /* of rank 0's file {BYTES} */
static const struct tnd_file_span kept[N_SPANS] = {
    {0, HEAD}, {MIB - 10, MIB + 10}, {2 * MIB, 2 * MIB + 4000}, {3 * MIB, BYTES}};

static struct tnd_spans spans_of(const struct tnd_file_span *list, size_t n)
{
    struct tnd_spans spans = TND_SPANS_INIT;
    for (size_t i = 0; i < n; i++) {
        tnd_spans_add(&spans, list[i].begin, list[i].end);
    }
    return spans;
}

static bool find_copy(struct tnd_ranks_copy *out, char why[TND_RANKS_WHY])
{
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", tnd_test_temp("copies"));
    *out = (struct tnd_ranks_copy){.file = -1, .offer = {BYTES, 5, HEAD}};
    return tnd_ranks_copy_find(out, folder, "m.gguf", "the test", why);
}

static struct tnd_ranks_copy found(void)
{
    struct tnd_ranks_copy copy;
    char why[TND_RANKS_WHY];
    CU_ASSERT_TRUE_FATAL(find_copy(&copy, why));
    return copy;
}

/* What comes from rank 0; the record does not say it yet. */
static void put(struct tnd_ranks_copy *copy, struct tnd_file_span span)
{
    char why[TND_RANKS_WHY];
    const size_t n = (size_t)(span.end - span.begin);
    char *bytes = malloc(n);
    struct tnd_spans spans = spans_of(&span, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    memcpy(bytes, contents + span.begin, n);
    CU_ASSERT_TRUE(tnd_ranks_copy_begin(copy, &spans, why));
    CU_ASSERT_TRUE(tnd_ranks_copy_put(copy, span.begin, bytes, n, why));
    tnd_spans_fini(&spans);
    free(bytes);
}

static void keep(struct tnd_ranks_copy *copy)
{
    char why[TND_RANKS_WHY];
    CU_ASSERT_TRUE(tnd_ranks_copy_keep(copy, why));
}

/* What the copy claims it holds. */
static void check_true(const struct tnd_ranks_copy *copy)
{
    size_t n = 0;
    uint8_t *bytes = copy->partial.present.n > 0 ? tnd_test_read_file(copy->path, &n) : NULL;
    for (size_t i = 0; i < copy->partial.present.n; i++) {
        const struct tnd_file_span span = copy->partial.present.list[i];
        CU_ASSERT_TRUE_FATAL(bytes != NULL && span.end <= n);
        bytes[TND_PARTIAL_MARK_AT] &= (uint8_t)~TND_PARTIAL_MARK;
        CU_ASSERT_EQUAL(
            memcmp(bytes + span.begin, contents + span.begin, (size_t)(span.end - span.begin)), 0);
    }
    free(bytes);
}

/* All of `kept` comes, as far as it lacks. */
static void complete(struct tnd_ranks_copy *copy)
{
    struct tnd_spans wanted = spans_of(kept, N_SPANS), missing = TND_SPANS_INIT;
    tnd_spans_subtract(&wanted, &copy->partial.present, &missing);
    for (size_t i = 0; i < missing.n; i++) {
        put(copy, missing.list[i]);
    }
    keep(copy);
    check_true(copy);
    for (size_t i = 0; i < N_SPANS; i++) {
        CU_ASSERT_TRUE(tnd_spans_contain(&copy->partial.present, kept[i].begin, kept[i].end));
    }
    tnd_spans_fini(&wanted);
    tnd_spans_fini(&missing);
}

static bool has(const struct tnd_ranks_copy *copy, int i)
{
    return tnd_spans_contain(&copy->partial.present, kept[i].begin, kept[i].end);
}

/* Nothing there yet. */
static struct tnd_ranks_copy begin(void)
{
    char name[PATH_MAX + 16];
    struct tnd_ranks_copy copy;
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    contents = malloc(BYTES);
    CU_ASSERT_PTR_NOT_NULL_FATAL(contents);
    for (size_t i = 0; i < BYTES; i++) {
        contents[i] = (uint8_t)tnd_test_rng_int(&rng, 1, 255);
    }
    contents[TND_PARTIAL_MARK_AT] = 0;
    copy = found();
    snprintf(name, sizeof(name), "%s" TND_PARTIAL_RECORD, copy.path);
    (void)remove(copy.path);
    (void)remove(name);
    tnd_ranks_copy_close(&copy);
    return found();
}

static void end(struct tnd_ranks_copy *copy)
{
    tnd_ranks_copy_close(copy);
    free(contents);
}

static void what_two_jobs_keep_is_found_and_what_was_interrupted_comes_again(void)
{
    struct tnd_ranks_copy first = begin();
    struct tnd_ranks_copy second = found();
    put(&first, kept[0]);
    put(&second, kept[1]);
    put(&first, kept[2]);
    keep(&second);
    keep(&first);
    put(&second, kept[3]); /* and the job is killed */
    tnd_ranks_copy_close(&second);
    tnd_ranks_copy_look(&first);
    CU_ASSERT_TRUE(has(&first, 0) && has(&first, 1) && has(&first, 2) && !has(&first, 3));
    tnd_ranks_copy_close(&first);
    first = found();
    CU_ASSERT_TRUE(has(&first, 0) && has(&first, 1) && has(&first, 2) && !has(&first, 3));
    complete(&first);
    end(&first);
}

/* A record of `kept` that was changed, with a right sum. */
static void write_lie(int lie, const char *path)
{
    static const struct tnd_file_span more = {MIB + 500, MIB + 900};
    char name[PATH_MAX + 16];
    struct tnd_partial partial;
    size_t n = 0;
    check_ok(tnd_partial_read(path, &partial, NULL));
    switch (lie) {
    case 0: /* zeros are said to be there */
        tnd_spans_add(&partial.present, more.begin, more.end);
        tnd_spans_tidy(&partial.present);
        break;
    case 1: /* all of them */
        tnd_spans_fini(&partial.present);
        tnd_spans_add(&partial.present, 0, BYTES);
        break;
    case 2:
        partial.blocks[1] ^= 1;
        break;
    case 3: /* a block of nothing */
        partial.blocks[2] = 0;
        break;
    case 4:
        partial.digest++;
        break;
    default: /* another size, of as many blocks */
        partial.bytes++;
        break;
    }
    snprintf(name, sizeof(name), "%s" TND_PARTIAL_RECORD, path);
    uint8_t *bytes = tnd_partial_write(&partial, &n);
    CU_ASSERT_TRUE(bytes != NULL && tnd_test_write_file(name, bytes, n));
    tnd_free(bytes);
    tnd_partial_fini(&partial);
}

static void a_record_that_lies_is_not_believed(void)
{
    for (int lie = 0; lie < 6; lie++) {
        struct tnd_ranks_copy copy = begin();
        complete(&copy);
        write_lie(lie, copy.path);
        tnd_ranks_copy_close(&copy);
        copy = found();
        check_true(&copy);
        CU_ASSERT_EQUAL(has(&copy, 0), lie == 0 || lie == 2 || lie == 3);
        CU_ASSERT_EQUAL(has(&copy, 3), lie < 4); /* a block of its own, of which all is there */
        complete(&copy);
        end(&copy);
    }
}

static void a_copy_that_was_cut_gets_what_is_gone(void)
{
    static const int64_t sizes[] = {0, 1, HEAD, MIB - 5, MIB + 5, 2 * MIB + 1, BYTES - 1};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct tnd_ranks_copy copy = begin();
        complete(&copy);
        CU_ASSERT_EQUAL(truncate(copy.path, (off_t)sizes[i]), 0);
        tnd_ranks_copy_close(&copy);
        copy = found();
        check_true(&copy);
        CU_ASSERT_EQUAL(has(&copy, 0), sizes[i] >= MIB + 5);
        CU_ASSERT_FALSE(has(&copy, 3));
        complete(&copy);
        end(&copy);
    }
}

static CU_TestInfo tests[] = {
    {"what two jobs keep is found, and what was interrupted comes again",
     what_two_jobs_keep_is_found_and_what_was_interrupted_comes_again},
    {"a record that lies is not believed", a_record_that_lies_is_not_believed},
    {"a copy that was cut gets what is gone", a_copy_that_was_cut_gets_what_is_gone},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_copies[];
CU_SuiteInfo suites_report_copies[] = {
    {"copies", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
