/* SPDX-License-Identifier: MIT
 * What stands in the place where a table is to be written is never lost: neither a file that cannot
 * be understood nor what was measured on another machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "table/table_filter.h"
#include "table/table_layers.h"
#include "tests/suite_table.h"
#include "tests/support_tune.h"

/* The name behind "kept whole as " of a note, in the folder of `path`. */
static char *backup_of(const char *path, const struct tandem_error *note)
{
    static char name[700];
    const char *at = strstr(note->text, "kept whole as ");
    const char *slash = strrchr(path, '/');
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    snprintf(name, sizeof(name), "%.*s/%s", (int)(slash - path), path,
             at + strlen("kept whole as "));
    return name;
}

static void check_same_file(const char *path, const char *bytes, size_t n)
{
    size_t found = 0;
    char *got = tnd_test_read_file(path, &found);
    CU_ASSERT_PTR_NOT_NULL(got);
    if (got != NULL) {
        check_int(found, n);
        check_bits(got, bytes, found < n ? found : n, path);
    }
    free(got);
}

static int64_t cells_of(const char *path)
{
    tandem_table *table = NULL;
    check_ok(tandem_table_load(path, &table, NULL));
    int64_t n = table != NULL ? tnd_table_count_cells(table) : -1;
    tandem_table_free(table);
    return n;
}

static tandem_table *one_time(void)
{
    tandem_table *table = tune_new();
    struct tnd_curve_key key = table_key_of("cpu", 64, 1);
    tune_add(table, &key, 1, 7);
    return table;
}

/* A file of some kilobytes as this version writes it, but for one byte. */
static char *flipped_table(size_t *out_n)
{
    tandem_table *table = table_full();
    struct tnd_text text = tune_print(table, TANDEM_TABLE_JSON);
    tandem_table_free(table);
    char *bytes = malloc(text.n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    memcpy(bytes, text.bytes, text.n);
    *out_n = text.n;
    char *number = memchr(bytes + text.n / 2, '1', text.n / 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(number);
    *number ^= 1;
    tnd_text_fini(&text);
    return bytes;
}

static void a_table_that_is_not_understood_is_kept_under_a_name_that_is_told(void)
{
    const char *path = tnd_test_temp("unread.json");
    size_t n_flipped = 0;
    char *flipped = flipped_table(&n_flipped);
    const struct {
        const char *bytes;
        size_t n;
        enum tandem_status status;
    } cases[] = {
        {"{\"version\": 3, \"curves\": [1, 2]}", 32, TANDEM_E_TABLE_VERSION},
        {flipped, n_flipped, TANDEM_E_FORMAT},
        {"{\"version\": 2,", 14, TANDEM_E_TRUNCATED},
        {"1 7B Q4_0 0 N 4096 8 4096 32\n", 29, TANDEM_E_TRUNCATED},
        {"\0\1 no table", 11, TANDEM_E_FORMAT},
    };
    tandem_table *fresh = one_time();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int adds = 0; adds < 2; adds++) {
            struct tandem_error note = {0};
            CU_ASSERT_TRUE(tnd_test_write_file(path, cases[i].bytes, cases[i].n));
            check_int(chmod(path, 0600), 0);
            check_ok(adds ? tnd_table_update_file(path, fresh, &note, NULL)
                          : tnd_table_replace_file(path, fresh, TANDEM_TABLE_JSON, &note, NULL));
            check_int(note.status, cases[i].status);
            check_contains(note.text, "unread.json.bad-20");
            struct stat facts;
            char *backup = backup_of(path, &note);
            check_same_file(backup, cases[i].bytes, cases[i].n);
            CU_ASSERT_TRUE(stat(backup, &facts) == 0 && (facts.st_mode & 0777) == 0600);
            check_int(cells_of(path), 1);
            /* Told once: what stands there now is a table. */
            check_ok(tnd_table_update_file(path, fresh, &note, NULL));
            check_int(note.status, TANDEM_OK);
        }
    }
    tandem_table_free(fresh);
    free(flipped);
}

static void an_empty_file_is_no_loss(void)
{
    const char *path = tnd_test_temp("empty.json");
    struct tandem_error note = {0};
    tandem_table *fresh = one_time();
    CU_ASSERT_TRUE(tnd_test_write_file(path, "", 0));
    check_ok(tnd_table_update_file(path, fresh, &note, NULL));
    CU_ASSERT_PTR_NULL(strstr(note.text, "kept"));
    check_int(cells_of(path), 1);
    tandem_table_free(fresh);
}

static void the_table_of_another_machine_is_kept_whole(void)
{
    const char *path = tnd_test_temp("shared-home.json");
    struct tandem_error note = {0};
    tandem_table *fresh = one_time();
    tandem_table *other = table_full();
    CU_ASSERT_TRUE(strcmp(other->fingerprint.cpu_model, fresh->fingerprint.cpu_model) != 0);
    struct tnd_text text = tune_print(other, TANDEM_TABLE_JSON);
    CU_ASSERT_TRUE(tnd_test_write_file(path, text.bytes, text.n));
    check_ok(tnd_table_update_file(path, fresh, &note, NULL));
    check_int(note.status, TANDEM_E_TABLE_FOREIGN);
    check_contains(note.text, "shared-home.json.other-20");
    check_same_file(backup_of(path, &note), tnd_text_string(&text), text.n);
    CU_ASSERT_TRUE(cells_of(path) >= 1);
    check_ok(tnd_table_update_file(path, fresh, &note, NULL));
    check_int(note.status, TANDEM_OK);
    tnd_text_fini(&text);
    tandem_table_free(fresh);
    tandem_table_free(other);
}

/* Neither read nor known what it is: it stays, and the caller hears why. */
static void what_cannot_be_read_is_not_replaced(void)
{
    const char *path = tnd_test_temp("closed.json");
    struct tandem_error error;
    tandem_table *fresh = one_time();
    check_int(symlink(path, path), 0); /* a ring: no user can open it */
    check_status(tnd_table_update_file(path, fresh, NULL, &error), TANDEM_E_FILE, "not replaced",
                 &error);
    check_status(tnd_table_replace_file(path, fresh, TANDEM_TABLE_TEXT, NULL, &error),
                 TANDEM_E_FILE, "not replaced", &error);
    check_int(error.got, ELOOP);
    unlink(path);
    if (geteuid() != 0) { /* who may read everything cannot be kept out */
        CU_ASSERT_TRUE(tnd_test_write_file(path, "{\"version\": 3}", 14));
        check_int(chmod(path, 0), 0);
        check_status(tnd_table_update_file(path, fresh, NULL, &error), TANDEM_E_FILE,
                     "not replaced", &error);
        check_int(chmod(path, 0600), 0);
        check_same_file(path, "{\"version\": 3}", 14);
    }
    tandem_table_free(fresh);
}

static void a_table_where_every_user_may_write_is_not_used_unless_it_is_named(void)
{
    char folder[500], path[600];
    char *old_cache = getenv("XDG_CACHE_HOME") != NULL ? strdup(getenv("XDG_CACHE_HOME")) : NULL;
    char *old_table = getenv("TANDEM_TABLE") != NULL ? strdup(getenv("TANDEM_TABLE")) : NULL;
    struct tandem_error error;
    struct tnd_layers *layers = NULL;
    struct tnd_fingerprint machine;
    tandem_table *fresh = one_time(), *found = NULL;
    snprintf(folder, sizeof(folder), "%s", tnd_test_temp("open-cache"));
    CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0755), 0);
    setenv("XDG_CACHE_HOME", folder, 1);
    unsetenv("TANDEM_TABLE");
    tnd_fingerprint_read(&machine);
    check_ok(tnd_table_own_path(path, sizeof(path), NULL));
    check_ok(tnd_table_update_file(path, fresh, NULL, NULL));
    check_int(chmod(folder, 0777), 0);
    check_status(tnd_table_own_path(path, sizeof(path), &error), TANDEM_E_FILE, "open-cache",
                 &error);
    for (int asked = 0; asked < 2; asked++) {
        check_ok(tnd_layers_find(asked ? path : NULL, &layers, NULL));
        CU_ASSERT_EQUAL(tnd_layers_load(layers, &machine, &found, NULL) == TANDEM_OK, asked);
        const struct tnd_layer *layer = &layers->layers[layers->n - 1];
        CU_ASSERT_TRUE(layer->is_there);
        CU_ASSERT_EQUAL(strstr(layer->error.text, "every user may write") != NULL, !asked);
        tandem_table_free(found);
        found = NULL;
        tnd_free(layers);
    }
    setenv("TANDEM_TABLE", path, 1);
    check_ok(tnd_table_own_path(path, sizeof(path), NULL));
    unsetenv("TANDEM_TABLE");
    if (old_table != NULL) {
        setenv("TANDEM_TABLE", old_table, 1);
    }
    unsetenv("XDG_CACHE_HOME");
    if (old_cache != NULL) {
        setenv("XDG_CACHE_HOME", old_cache, 1);
    }
    free(old_cache);
    free(old_table);
    tandem_table_free(fresh);
}

static CU_TestInfo tests[] = {
    {"a table where every user may write is not used unless it is named",
     a_table_where_every_user_may_write_is_not_used_unless_it_is_named},
    {"a table that is not understood is kept under a name that is told",
     a_table_that_is_not_understood_is_kept_under_a_name_that_is_told},
    {"an empty file is no loss", an_empty_file_is_no_loss},
    {"the table of another machine is kept whole", the_table_of_another_machine_is_kept_whole},
    {"what cannot be read is not replaced", what_cannot_be_read_is_not_replaced},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_table_backup[];
CU_SuiteInfo suites_table_backup[] = {
    {"keeping what cannot be used", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
