/* SPDX-License-Identifier: MIT
 * Any bytes as a JSON table: an error or a table, which can be written, read again, merged and
 * reported on. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tools/report/analyze.h"
#include "table/tnd_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int collect(void *user, const char *bytes, unsigned long n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

static void check_round_trip(const tandem_table *table)
{
    struct tnd_text first = TND_TEXT_INIT;
    struct tnd_text second = TND_TEXT_INIT;
    tandem_table *again = NULL;
    if (tandem_table_print(table, TANDEM_TABLE_JSON, collect, &first, NULL) != TANDEM_OK ||
        tandem_table_parse(first.bytes, first.n, "again", &again, NULL) != TANDEM_OK ||
        tandem_table_print(again, TANDEM_TABLE_JSON, collect, &second, NULL) != TANDEM_OK ||
        strcmp(tnd_text_string(&first), tnd_text_string(&second)) != 0 ||
        tandem_table_merge(again, table, NULL) != TANDEM_OK) {
        abort();
    }
    tandem_table_free(again);
    tnd_text_fini(&first);
    tnd_text_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tandem_table *table = NULL;
    if (size == 0 || data[0] != '{') {
        return 0; /* fuzz_table_text.c */
    }
    if (tandem_table_parse((const char *)data, size, "fuzz", &table, NULL) != TANDEM_OK) {
        return 0;
    }
    check_round_trip(table);
    struct tnd_text report = TND_TEXT_INIT;
    struct tnd_analyze_options options = {TND_ANALYZE_JSON, "fuzz", NULL, 0, TANDEM_TYPE_NUMBERS};
    (void)tnd_analyze(table, &options, collect, &report, NULL);
    (void)tandem_table_print(table, TANDEM_TABLE_TEXT, collect, &report, NULL);
    tnd_text_fini(&report);
    tandem_table_free(table);
    return 0;
}
