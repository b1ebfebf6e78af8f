/* SPDX-License-Identifier: MIT
 * The kind of records that record.patch adds: stored, merged by its rule, written and read. */
#include <stdio.h>
#include <string.h>

#include "table/tnd_table.h"
#include "tandem/table.h"

static char text[1 << 16];
static size_t length;

static int keep(void *user, const char *bytes, unsigned long n)
{
    (void)user;
    memcpy(text + length, bytes, n);
    length += n;
    return 0;
}

int main(void)
{
    tandem_table *table = NULL;
    tandem_table *other = NULL;
    tandem_table *back = NULL;
    struct tandem_error error = {0};
    const struct tnd_warmup first = {"cpu", 12.5, 3, 100};
    const struct tnd_warmup better = {"cpu", 11.0, 5, 50};
    const struct tnd_warmup wrong = {"cpu", -1, 1, 1};
    if (tandem_table_new(&table, &error) != TANDEM_OK ||
        tandem_table_new(&other, &error) != TANDEM_OK ||
        tnd_record_add(table, TND_RECORD_WARMUPS, &first) != TANDEM_OK ||
        tnd_record_add(table, TND_RECORD_WARMUPS, &wrong) != TANDEM_E_ARGUMENT ||
        tnd_record_add(other, TND_RECORD_WARMUPS, &better) != TANDEM_OK ||
        tandem_table_merge(table, other, &error) != TANDEM_OK || table->n_warmups != 1 ||
        tandem_table_print(table, TANDEM_TABLE_JSON, keep, NULL, &error) != TANDEM_OK ||
        tandem_table_parse(text, length, "recipe", &back, &error) != TANDEM_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    bool same = back->n_warmups == 1 && back->warmups[0].us == 11.0 &&
                back->warmups[0].count == 5 && strcmp(back->warmups[0].backend, "cpu") == 0;
    tandem_table_free(table);
    tandem_table_free(other);
    tandem_table_free(back);
    return !same;
}
