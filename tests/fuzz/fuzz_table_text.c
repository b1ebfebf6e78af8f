/* SPDX-License-Identifier: MIT
 * Any bytes as a text table: an error or a table, which can be written, read again and asked for
 * estimates. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tune/estimate.h"
#include "table/tnd_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int collect(void *user, const char *bytes, unsigned long n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

/* A text table that was read can be written, and then reads as itself. */
static void check_round_trip(const tandem_table *table)
{
    struct tnd_text first = TND_TEXT_INIT;
    struct tnd_text second = TND_TEXT_INIT;
    tandem_table *again = NULL;
    if (tandem_table_print(table, TANDEM_TABLE_TEXT, collect, &first, NULL) != TANDEM_OK ||
        tandem_table_parse(first.bytes, first.n, "again", &again, NULL) != TANDEM_OK ||
        tandem_table_print(again, TANDEM_TABLE_TEXT, collect, &second, NULL) != TANDEM_OK ||
        strcmp(tnd_text_string(&first), tnd_text_string(&second)) != 0) {
        abort();
    }
    tandem_table_free(again);
    tnd_text_fini(&first);
    tnd_text_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tandem_table *table = NULL;
    struct tandem_error error;
    if (size > 0 && data[0] == '{') {
        return 0; /* fuzz_table_json.c */
    }
    if (tandem_table_parse((const char *)data, size, "fuzz", &table, &error) != TANDEM_OK) {
        return error.text[0] != '\0' ? 0 : -1;
    }
    for (int p = 0; p < table->n_profiles; p++) {
        struct tnd_estimate out;
        const struct tnd_curve_key *key = &table->curves[0].key;
        (void)tnd_estimate_profile(table, &table->profiles[p], key->type, key->n + 1, key->k, 77, 3,
                                   &out, NULL);
    }
    check_round_trip(table);
    tandem_table_free(table);
    return 0;
}
