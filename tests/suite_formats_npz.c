/* SPDX-License-Identifier: MIT
 * Arrays in .npz archives: those that NumPy 2 wrote (tests/fuzz/corpus/npz: a, three float32, and
 * b.c, an int64), our own, and broken ones. */
#include <stdlib.h>
#include <string.h>

#include "formats/npz.h"
#include "tests/support.h"

#define STORED   "tests/fuzz/corpus/npz/stored"
#define DEFLATED "tests/fuzz/corpus/npz/deflated"

static void check_known(const struct tnd_npz *npz)
{
    check_int(npz->n, 2);
    check_string(npz->names[0], "a");
    check_string(npz->names[1], "b.c");
    check_int(npz->arrays[0]->type, TANDEM_DTYPE_F32);
    check_int(npz->arrays[0]->n, 3);
    CU_ASSERT_EQUAL(tnd_array_number(npz->arrays[0], 2), 3.0);
    check_int(npz->arrays[1]->type, TANDEM_DTYPE_I64);
    check_int(npz->arrays[1]->shape.n, 0);
    check_int(tnd_array_integer(npz->arrays[1], 0), 7);
}

static void what_numpy_writes_is_read(void)
{
    struct tandem_error error = {.text = ""};
    struct tnd_npz npz = {.n = 0};
    check_status(tnd_npz_open(STORED, &npz, &error), TANDEM_OK, NULL, &error);
    check_known(&npz);
    tnd_npz_free(&npz);
#ifdef TND_HAVE_ZLIB
    check_status(tnd_npz_open(DEFLATED, &npz, &error), TANDEM_OK, NULL, &error);
    check_known(&npz);
    tnd_npz_free(&npz);
#else
    check_status(tnd_npz_open(DEFLATED, &npz, &error), TANDEM_E_UNSUPPORTED_BUILD, "with zlib",
                 &error);
#endif
}

static void what_is_written_reads_back_the_same(void)
{
    struct tandem_error error = {.text = ""};
    const char *path = tnd_test_temp("written.npz");
    struct tnd_npz npz = {.n = 0}, back = {.n = 0}, none = {.n = 0};
    check_ok(tnd_npz_open(STORED, &npz, &error));
    check_status(tnd_npz_save(path, &npz, &error), TANDEM_OK, NULL, &error);
    check_status(tnd_npz_open(path, &back, &error), TANDEM_OK, NULL, &error);
    check_known(&back);
    tnd_npz_free(&back);
    npz.arrays[1]->type = TANDEM_DTYPE_BF16;
    check_status(tnd_npz_save(path, &npz, &error), TANDEM_E_UNSUPPORTED_BUILD, "bfloat16", &error);
    check_status(tnd_npz_open(path, &back, &error), TANDEM_OK, NULL,
                 &error); /* it is the old one */
    check_ok(tnd_npz_save(path, &none, &error));
    tnd_npz_free(&back);
    check_status(tnd_npz_open(path, &back, &error), TANDEM_OK, NULL, &error);
    check_int(back.n, 0);
    tnd_npz_free(&back);
    tnd_npz_free(&npz);
}

/* Where a text stands; the archive has it. */
static size_t find(const unsigned char *bytes, size_t n, const char *what, size_t length)
{
    size_t at = 0;
    while (at + length < n && memcmp(bytes + at, what, length) != 0) {
        at++;
    }
    return at;
}

static void check_refused(const unsigned char *bytes, size_t n, enum tandem_status status,
                          const char *part)
{
    struct tandem_error error = {.text = ""};
    struct tnd_npz npz = {.n = 0};
    check_status(tnd_npz_read(bytes, n, "x.npz", &npz, &error), status, part, &error);
    tnd_npz_free(&npz);
}

static void damaged_archives_are_refused(void)
{
    size_t n = 0;
    unsigned char *bytes = (unsigned char *)tnd_test_read_file(STORED, &n);
    unsigned char *copy = malloc(n);
    CU_ASSERT_TRUE_FATAL(bytes != NULL && copy != NULL);
    const size_t first = find(bytes, n, "PK\1\2", 4);
    for (size_t cut = 0; cut < n; cut++) {
        struct tnd_npz npz = {.n = 0};
        CU_ASSERT_NOT_EQUAL(tnd_npz_read(bytes, cut, "x.npz", &npz, NULL), TANDEM_OK);
    }
    memcpy(copy, bytes, n);
    copy[first - 1] ^= 1; /* the last value in front of the directory */
    check_refused(copy, n, TANDEM_E_FORMAT, "checksum");
    memcpy(copy, bytes, n);
    copy[first + 46] = 'z'; /* the name, and then its end */
    copy[first + 46 + 2] = 'm';
    check_refused(copy, n, TANDEM_E_FORMAT, "no NAME.npy");
    memcpy(copy, bytes, n);
    copy[first + 46] = '\0'; /* a name of no letters before its end */
    check_refused(copy, n, TANDEM_E_FORMAT, "no NAME.npy");
    memcpy(copy, bytes, n);
    memmove(copy + first + 46, copy + first + 47, n - first - 47); /* nothing but ".npy" */
    copy[first + 28] = 4;
    copy[n - 1 - 22 + 12]--; /* bytes of the directory */
    check_refused(copy, n - 1, TANDEM_E_FORMAT, "no NAME.npy");
    memcpy(copy, bytes, n);
    copy[first + 20 + 4 + 3] = copy[first + 20 + 3] = 0x7F; /* sizes of 2 GiB */
    check_refused(copy, n, TANDEM_E_TRUNCATED, "data of an entry");
    free(copy);
    free(bytes);
}

/* Forty entries of the directory name the same bytes. */
static void entries_that_share_bytes_are_refused(void)
{
    enum { MANY = 40, ENTRY = 46 + 5 };
    size_t n = 0;
    unsigned char *bytes = (unsigned char *)tnd_test_read_file(STORED, &n);
    unsigned char *copy = malloc(n + MANY * ENTRY);
    CU_ASSERT_TRUE_FATAL(bytes != NULL && copy != NULL);
    const size_t first = find(bytes, n, "PK\1\2", 4);
    memcpy(copy, bytes, first);
    for (size_t i = 0; i < MANY; i++) {
        memcpy(copy + first + i * ENTRY, bytes + first, ENTRY);
        copy[first + i * ENTRY + 46] = (unsigned char)('0' + i);
    }
    memcpy(copy + first + MANY * ENTRY, bytes + n - 22, 22);
    unsigned char *end = copy + first + MANY * ENTRY;
    end[8] = end[10] = MANY;
    end[12] = MANY * ENTRY & 255;
    end[13] = MANY * ENTRY >> 8;
    check_refused(copy, first + MANY * ENTRY + 22, TANDEM_E_FORMAT, "shares its bytes");
    free(copy);
    free(bytes);
}

#ifdef TND_HAVE_ZLIB
static void a_bomb_is_refused_before_anything_is_unpacked(void)
{
    size_t n = 0;
    unsigned char *bytes = (unsigned char *)tnd_test_read_file(DEFLATED, &n);
    const size_t first = find(bytes, n, "PK\1\2", 4);
    bytes[first + 24 + 3] = 0x7F; /* 2 GiB come out of a few bytes */
    check_refused(bytes, n, TANDEM_E_LIMIT, "expected at most");
    free(bytes);
}
#endif

/* (The sanitizers look.) */
static void any_byte_may_be_wrong(void)
{
    static const char *const paths[] = {STORED, DEFLATED};
    for (int i = 0; i < 2; i++) {
        size_t n = 0;
        unsigned char *bytes = (unsigned char *)tnd_test_read_file(paths[i], &n);
        for (size_t at = 0; at < n; at++) {
            for (int k = 0; k < 3; k++) {
                struct tandem_error error = {.text = ""};
                struct tnd_npz npz = {.n = 0};
                const unsigned char old = bytes[at];
                bytes[at] = (unsigned char)(k == 0 ? old ^ 1 : k == 1 ? 255 : old + 64);
                const enum tandem_status status = tnd_npz_read(bytes, n, "x.npz", &npz, &error);
                CU_ASSERT_TRUE(status == TANDEM_OK || error.text[0] != '\0');
                tnd_npz_free(&npz);
                bytes[at] = old;
            }
        }
        free(bytes);
    }
}

static CU_TestInfo tests_npz[] = {
    {"what NumPy writes is read", what_numpy_writes_is_read},
    {"what is written reads back the same", what_is_written_reads_back_the_same},
    {"damaged archives are refused", damaged_archives_are_refused},
    {"entries that share bytes are refused", entries_that_share_bytes_are_refused},
#ifdef TND_HAVE_ZLIB
    {"a bomb is refused before anything is unpacked",
     a_bomb_is_refused_before_anything_is_unpacked},
#endif
    {"any byte may be wrong", any_byte_may_be_wrong},
    CU_TEST_INFO_NULL,
};

/* clang-format off */
CU_SuiteInfo suites_formats_npz[] = {
    {.pName = "npz", .pTests = tests_npz},
    CU_SUITE_INFO_NULL,
};
/* clang-format on */
