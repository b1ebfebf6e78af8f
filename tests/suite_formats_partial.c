/* SPDX-License-Identifier: MIT
 * Copies of which a part is there: sets of ranges, records, what opens and reads such copies. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "formats/partial.h"
#include "tandem/mapped.h"
#include "tests/support.h"

enum { SMALL = 64 };

/* ---- ranges ---- */

static struct tnd_spans random_spans(struct tnd_test_rng *rng, bool *marks)
{
    struct tnd_spans spans = TND_SPANS_INIT;
    memset(marks, 0, SMALL * sizeof(marks[0]));
    for (int64_t i = tnd_test_rng_int(rng, 0, 5); i > 0; i--) {
        const uint64_t begin = (uint64_t)tnd_test_rng_int(rng, 0, SMALL - 1);
        const uint64_t n = (uint64_t)tnd_test_rng_int(rng, 0, 11);
        const uint64_t end = begin + n < SMALL ? begin + n : SMALL;
        tnd_spans_add(&spans, begin, end);
        for (uint64_t at = begin; at < end; at++) {
            marks[at] = true;
        }
    }
    tnd_spans_tidy(&spans);
    return spans;
}

static void check_set(const struct tnd_spans *spans, const bool *marks)
{
    uint64_t n = 0;
    for (uint64_t at = 0; at < SMALL; at++) {
        CU_ASSERT_EQUAL(tnd_spans_contain(spans, at, at + 1), marks[at]);
        n += marks[at];
    }
    CU_ASSERT_EQUAL(tnd_spans_bytes(spans), n);
    for (size_t i = 1; i < spans->n; i++) {
        CU_ASSERT_TRUE(spans->list[i].begin > spans->list[i - 1].end);
    }
}

static void ranges_are_sets(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int i = 0; i < 500; i++) {
        bool a_marks[SMALL], b_marks[SMALL];
        struct tnd_spans a = random_spans(&rng, a_marks), b = random_spans(&rng, b_marks);
        struct tnd_spans rest = TND_SPANS_INIT;
        check_set(&a, a_marks);
        tnd_spans_subtract(&a, &b, &rest);
        for (int at = 0; at < SMALL; at++) {
            a_marks[at] = a_marks[at] && !b_marks[at];
        }
        check_set(&rest, a_marks);
        tnd_spans_fini(&a);
        tnd_spans_fini(&b);
        tnd_spans_fini(&rest);
    }
}

/* ---- records ---- */

static uint8_t *record(uint64_t bytes, const struct tnd_spans *present, size_t *out_n)
{
    struct tnd_partial partial;
    CU_ASSERT_FATAL(tnd_partial_new(bytes, 77, &partial, NULL) == TANDEM_OK);
    for (size_t i = 0; i < present->n; i++) {
        tnd_spans_add(&partial.present, present->list[i].begin, present->list[i].end);
    }
    for (size_t i = 0; i < partial.n_blocks; i++) {
        partial.blocks[i] = i + 1;
    }
    uint8_t *out = tnd_partial_write(&partial, out_n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    tnd_partial_fini(&partial);
    return out;
}

static void put_word(uint8_t *bytes, size_t word, uint64_t value)
{
    for (int i = 0; i < 8; i++, value >>= 8) {
        bytes[8 * word + (size_t)i] = (uint8_t)value;
    }
}

static void a_record_is_read_as_it_was_written(void)
{
    struct tnd_file_span list[] = {{0, 100}, {5000, 5001}, {2000000, 3000000}};
    const struct tnd_spans present = {list, 3, 3, false};
    struct tnd_partial partial;
    size_t n = 0;
    uint8_t *bytes = record(3000000, &present, &n);
    check_ok(tnd_partial_parse(bytes, n, "x", &partial, NULL));
    CU_ASSERT_TRUE(partial.bytes == 3000000 && partial.digest == 77 && partial.n_blocks == 3);
    CU_ASSERT_TRUE(partial.present.n == 3 && partial.blocks[2] == 3);
    CU_ASSERT_EQUAL(memcmp(partial.present.list, list, sizeof(list)), 0);
    tnd_partial_fini(&partial);
    for (size_t i = 0; i < n; i++) { /* any other byte, and any other length */
        bytes[i] ^= 1;
        check_status(tnd_partial_parse(bytes, n, "x", &partial, NULL), TANDEM_E_FORMAT, NULL, NULL);
        bytes[i] ^= 1;
        check_status(tnd_partial_parse(bytes, i, "x", &partial, NULL), TANDEM_E_FORMAT, NULL, NULL);
    }
    tnd_free(bytes);
}

/* Numbers that no writer writes, with a right digest. */
static void records_that_lie_are_refused(void)
{
    struct tnd_file_span list[] = {{10, 20}, {30, 40}};
    const struct tnd_spans present = {list, 2, 2, false};
    const struct {
        size_t word;
        uint64_t value;
    } lies[] = {
        {1, 39},                /* bytes: the ranges end behind them */
        {1, UINT64_MAX},        /* as many blocks as there cannot be */
        {3, 1},                 /* ranges */
        {3, UINT64_MAX},        /* ranges */
        {4, 20},                /* an empty range */
        {6, 20},                /* adjacent ones */
        {6, 5},                 /* ones that descend */
        {7, (uint64_t)1 << 40}, /* the end of one */
    };
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct tnd_partial partial;
        size_t n = 0;
        uint8_t *bytes = record(100, &present, &n);
        put_word(bytes, lies[i].word, lies[i].value);
        put_word(bytes, n / 8 - 1, tnd_digest(bytes, n - 8));
        check_status(tnd_partial_parse(bytes, n, "x", &partial, NULL), TANDEM_E_FORMAT, NULL, NULL);
        tnd_free(bytes);
    }
}

/* ---- copies ---- */

/* A marked copy of a model with what `spans` has, and its record. */
static const char *write_copy(const uint8_t *bytes, size_t n, const struct tnd_spans *spans)
{
    static char path[512], name[520];
    uint8_t *copy = calloc(1, n);
    size_t n_record = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    for (size_t i = 0; i < spans->n; i++) {
        memcpy(copy + spans->list[i].begin, bytes + spans->list[i].begin,
               (size_t)(spans->list[i].end - spans->list[i].begin));
    }
    copy[TND_PARTIAL_MARK_AT] |= TND_PARTIAL_MARK;
    snprintf(path, sizeof(path), "%s", tnd_test_temp("copy.gguf"));
    snprintf(name, sizeof(name), "%s" TND_PARTIAL_RECORD, path);
    uint8_t *words = record(n, spans, &n_record);
    CU_ASSERT_TRUE(tnd_test_write_file(path, copy, n));
    CU_ASSERT_TRUE(tnd_test_write_file(name, words, n_record));
    tnd_free(words);
    free(copy);
    return path;
}

static void a_copy_is_opened_by_ranks_alone_and_tells_what_it_lacks(void)
{
    const struct tandem_llama_shape shape = {sizeof(shape), 64, 96, 2, 2, 2, 96, 32, 0, 0, 0};
    struct tandem_error error = {.text = ""};
    tandem_source *source = NULL, *made = NULL;
    struct tandem_source_tensor tensor;
    uint64_t identity;
    size_t n = 0;
    char whole[512];
    snprintf(whole, sizeof(whole), "%s", tnd_test_temp("whole.gguf"));
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_Q8_0, 1, &made, NULL));
    check_ok(tandem_source_save_gguf(made, whole, NULL, NULL));
    uint8_t *bytes = tnd_test_read_file(whole, &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    struct tnd_file_span list[] = {{0, n / 2}};
    const struct tnd_spans half = {list, 1, 1, false};
    const char *path = write_copy(bytes, n, &half);
    check_status(tandem_source_open(path, &source, &error), TANDEM_E_FORMAT, "part of a model",
                 &error);
    tnd_source_takes_parts = true;
    check_ok(tandem_source_open(path, &source, &error));
    CU_ASSERT_TRUE(tandem_source_tensor_at(source, 0, &tensor));
    check_ok(tandem_mapped_check(tensor.data, tensor.bytes, &error));
    CU_ASSERT_TRUE(
        tandem_source_tensor_at(source, tandem_source_tensor_count(source) - 1, &tensor));
    check_status(tandem_mapped_check(tensor.data, tensor.bytes, &error), TANDEM_E_FILE,
                 "this rank keeps", &error);
    tandem_source *other = NULL;
    check_status(tandem_source_convert(source, TANDEM_TYPE_F32, &other, &error), TANDEM_E_FILE,
                 "this rank keeps", &error);
    check_status(tandem_source_identity(source, &identity, &error), TANDEM_E_FILE,
                 "this rank keeps", &error);
    check_status(tandem_source_save_gguf(source, whole, NULL, &error), TANDEM_E_FILE, "' in ",
                 &error);

    /* The rest comes. */
    list[0].end = n;
    (void)write_copy(bytes, n, &half);
    check_ok(tnd_source_see_parts(source, path, &error));
    check_ok(tandem_mapped_check(tensor.data, tensor.bytes, &error));
    CU_ASSERT_EQUAL(memcmp(tensor.data, (const uint8_t *)bytes + n - tensor.bytes, 16), 0);
    tandem_source_close(source);
    source = NULL;

    /* A record of another file, or none. */
    list[0].end = 5;
    size_t n_record = 0;
    uint8_t *words = record(n + 1, &half, &n_record);
    char name[520];
    snprintf(name, sizeof(name), "%s" TND_PARTIAL_RECORD, path);
    CU_ASSERT_TRUE(tnd_test_write_file(name, words, n_record));
    tnd_free(words);
    check_status(tandem_source_open(path, &source, &error), TANDEM_E_FILE, "does not belong",
                 &error);
    (void)remove(name);
    check_status(tandem_source_open(path, &source, &error), TANDEM_E_FILE, "record", &error);
    tnd_source_takes_parts = false;
    tandem_source_close(made);
    free(bytes);
}

static CU_TestInfo tests[] = {
    {"ranges are sets", ranges_are_sets},
    {"a record is read as it was written", a_record_is_read_as_it_was_written},
    {"records that lie are refused", records_that_lie_are_refused},
    {"a copy is opened by ranks alone and tells what it lacks",
     a_copy_is_opened_by_ranks_alone_and_tells_what_it_lacks},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_formats_partial[];
CU_SuiteInfo suites_formats_partial[] = {
    {"partial copies", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
