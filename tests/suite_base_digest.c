/* SPDX-License-Identifier: MIT
 * Digests: of bytes, which files rely on, and of mapped files, which are kept as long as the system
 * says the same of a file, and no longer. */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/mapped_digest.h"
#include "tests/suite_base.h"

static void fill(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)(i * 2654435761u >> 9);
    }
}

/* Files have these numbers: whoever changes them raises the versions of their formats. */
static void digests_are_those_that_files_have(void)
{
    uint8_t bytes[1000];
    fill(bytes, sizeof(bytes));
    check_int((int64_t)tnd_digest(bytes, 0), INT64_C(137324163246333102));
    check_int((int64_t)tnd_digest(bytes, 5), INT64_C(5158881397770965619));
    check_int((int64_t)tnd_digest(bytes, 64), INT64_C(-3332982455381658504));
    check_int((int64_t)tnd_digest(bytes, 1000), INT64_C(-5802274599169867214));
    check_int((int64_t)tnd_digest_add(1, 2), INT64_C(7705166553151981825));
}

static void every_changed_bit_changes_the_digest(void)
{
    uint8_t bytes[200], moved[203];
    fill(bytes, sizeof(bytes));
    for (size_t n = 0; n < sizeof(bytes); n++) {
        const uint64_t whole = tnd_digest(bytes, n);
        memcpy(moved + 3, bytes, n);
        CU_ASSERT_TRUE(tnd_digest(moved + 3, n) == whole); /* at any address */
        for (size_t bit = 0; bit<8 * n; bit += n> 70 ? 13 : 1) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            CU_ASSERT_TRUE(tnd_digest(bytes, n) != whole);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        CU_ASSERT_TRUE(n == 0 || tnd_digest(bytes, n - 1) != whole);
    }
    memset(bytes, 0, sizeof(bytes));
    CU_ASSERT_TRUE(tnd_digest(bytes, 8) != tnd_digest(bytes, 9));
    CU_ASSERT_TRUE(tnd_digest(bytes, 63) != tnd_digest(bytes, 64));
}

static void what_a_file_of_digests_holds_is_read_for_that_file_alone(void)
{
    enum { N = 3, BYTES = TND_DIGESTS_HEADER_BYTES + 24 * N };
    const struct tnd_mapped_file file = {
        .bytes = 1000, .device = 1, .file = 2, .changed_ns = 3, .facts_changed_ns = 4};
    const struct tnd_part_digest parts[N] = {{0, 10, 77}, {10, 20, 78}, {64, 900, 79}};
    uint8_t bytes[BYTES];
    tnd_digests_write(&file, parts, N, bytes);
    check_int((int64_t)tnd_digests_check(bytes, BYTES, &file), N);
    for (size_t i = 0; i < N; i++) {
        const struct tnd_part_digest part = tnd_digests_part(bytes, i);
        CU_ASSERT_TRUE(part.offset == parts[i].offset && part.bytes == parts[i].bytes &&
                       part.digest == parts[i].digest);
    }
    for (size_t n = 0; n < BYTES; n++) {
        check_int((int64_t)tnd_digests_check(bytes, n, &file), 0);
        bytes[n] ^= 32;
        check_int((int64_t)tnd_digests_check(bytes, BYTES, &file), 0);
        bytes[n] ^= 32;
    }
    for (int i = 0; i < 5; i++) {
        struct tnd_mapped_file other = file;
        other.bytes += i == 0;
        other.device += i == 1;
        other.file += i == 2;
        other.changed_ns += i == 3;
        other.facts_changed_ns += i == 4;
        check_int((int64_t)tnd_digests_check(bytes, BYTES, &other), 0);
    }
}

/* The only file in a folder; its name goes to `out`. */
static int only_file(const char *folder, char out[1024])
{
    int n = 0;
    DIR *open = opendir(folder);
    for (const struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;) {
        if (entry->d_name[0] != '.') {
            snprintf(out, 1024, "%s/%s", folder, entry->d_name);
            n++;
        }
    }
    if (open != NULL) {
        closedir(open);
    }
    return n;
}

/* That it was kept is seen by what is kept: a wrong number under a right checksum. */
static void digests_of_a_large_file_are_kept_until_it_changes(void)
{
    enum { BYTES = 200000, PART = 100000 };
    uint8_t *bytes = malloc(BYTES);
    char folder[512], path[600], other[600], kept[1024] = "";
    struct tnd_mapped_file found;
    struct tnd_file file;
    snprintf(folder, sizeof(folder), "%s-%ld", tnd_test_temp("digests"), (long)getpid());
    snprintf(path, sizeof(path), "%s", tnd_test_temp("digested"));
    snprintf(other, sizeof(other), "%s", tnd_test_temp("digested-next"));
    fill(bytes, BYTES);
    CU_ASSERT_TRUE(tnd_test_write_file(path, bytes, BYTES));
    tnd_mapped_digests_set(folder, 1);
    check_ok(tnd_file_map(path, false, &file, NULL));
    if (!tnd_mapped_find(file.data, BYTES, &found)) {
        tnd_skip("files are not mapped on this system");
        tnd_file_close(&file);
        tnd_mapped_digests_set(NULL, 0);
        free(bytes);
        return;
    }
    const uint64_t whole = tnd_digest(bytes + 7, PART);
    CU_ASSERT_TRUE(tnd_mapped_digest(file.data + 7, PART) == whole);
    tnd_mapped_digests_keep(file.data);
    check_int(only_file(folder, kept), 1);
    const struct tnd_part_digest wrong = {7, PART, 4711};
    uint8_t lie[TND_DIGESTS_HEADER_BYTES + 24];
    tnd_digests_write(&found, &wrong, 1, lie);
    tnd_file_close(&file);
    CU_ASSERT_TRUE(tnd_test_write_file(kept, lie, sizeof(lie)));
    check_ok(tnd_file_map(path, false, &file, NULL));
    CU_ASSERT_TRUE(tnd_mapped_digest(file.data + 7, PART) == 4711);
    CU_ASSERT_TRUE(tnd_mapped_digest(file.data + 8, PART) == tnd_digest(bytes + 8, PART));
    tnd_file_close(&file);
    /* A file of the same size and contents, but another one. */
    CU_ASSERT_TRUE(tnd_test_write_file(other, bytes, BYTES) && rename(other, path) == 0);
    check_ok(tnd_file_map(path, false, &file, NULL));
    CU_ASSERT_TRUE(tnd_mapped_digest(file.data + 7, PART) == whole);
    tnd_file_close(&file);
    tnd_mapped_digests_set(NULL, 0);
    while (only_file(folder, kept) > 0) {
        CU_ASSERT_TRUE_FATAL(remove(kept) == 0);
    }
    rmdir(folder);
    free(bytes);
}

CU_TestInfo tnd_tests_base_digest[] = {
    {"digests_are_those_that_files_have", digests_are_those_that_files_have},
    {"every_changed_bit_changes_the_digest", every_changed_bit_changes_the_digest},
    {"what_a_file_of_digests_holds_is_read_for_that_file_alone",
     what_a_file_of_digests_holds_is_read_for_that_file_alone},
    {"digests_of_a_large_file_are_kept_until_it_changes",
     digests_of_a_large_file_are_kept_until_it_changes},
    CU_TEST_INFO_NULL,
};
