/* SPDX-License-Identifier: MIT
 * Two tables of anybody, divided by a zero byte, merged: refused with a reason, or a table that can
 * be written and read again, and that merging the same once more does not change. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "table/tnd_table.h"
#include "tests/fuzz/mutate_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One of the two tables. */
static void mutate_half(struct mutation *m)
{
    const uint8_t *middle = memchr(m->data, '\0', m->n);
    const size_t at = middle != NULL ? (size_t)(middle - m->data) : m->n;
    if (pick(m, 2) == 0 || at + 1 >= m->n) {
        mutate_json(m, 0, at);
    } else {
        mutate_json(m, at + 1, m->n);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_with(data, size, max_size, seed, mutate_half);
}

static int collect(void *user, const char *bytes, unsigned long n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

static struct tnd_text print(const tandem_table *table)
{
    struct tnd_text text = TND_TEXT_INIT;
    if (tandem_table_print(table, TANDEM_TABLE_JSON, collect, &text, NULL) != TANDEM_OK) {
        abort();
    }
    return text;
}

/* Adds `other` to `table`; false: refused. */
static bool merge(tandem_table *table, const tandem_table *other)
{
    struct tandem_error error = {.text = ""};
    const enum tandem_status status = tandem_table_merge(table, other, &error);
    if (status != TANDEM_OK && error.text[0] == '\0') {
        abort();
    }
    return status == TANDEM_OK;
}

static void check_merged(tandem_table *sum, const tandem_table *b)
{
    tandem_table *read = NULL;
    struct tnd_text first = print(sum);
    if (tandem_table_parse(first.bytes, first.n, "merged", &read, NULL) != TANDEM_OK) {
        abort();
    }
    struct tnd_text again = print(read);
    if (strcmp(first.bytes, again.bytes) != 0 || !merge(read, b) || !merge(read, sum)) {
        abort();
    }
    struct tnd_text twice = print(read);
    if (strcmp(first.bytes, twice.bytes) != 0) {
        abort(); /* merging is idempotent */
    }
    tnd_text_fini(&first);
    tnd_text_fini(&again);
    tnd_text_fini(&twice);
    tandem_table_free(read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tandem_table *a = NULL, *b = NULL;
    const uint8_t *middle = size > 0 ? memchr(data, '\0', size) : NULL;
    const size_t at = middle != NULL ? (size_t)(middle - data) : 0;
    if (middle != NULL && tandem_table_parse((const char *)data, at, "a", &a, NULL) == TANDEM_OK &&
        tandem_table_parse((const char *)middle + 1, size - at - 1, "b", &b, NULL) == TANDEM_OK &&
        merge(a, b)) {
        check_merged(a, b);
    }
    tandem_table_free(a);
    tandem_table_free(b);
    return 0;
}
