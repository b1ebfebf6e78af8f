/* SPDX-License-Identifier: MIT
 * Any bytes as a line of llama-bench: an error with a message, or a record that a table takes, that
 * comes back from a file, and that advice is made of. */
#include <stdlib.h>
#include <string.h>

#include "table/records.h"
#include "tests/fuzz/mutate_json.h"
#include "tools/report/advise.h"
#include "tools/report/llama_bench.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mutate_line(struct mutation *m)
{
    mutate_json(m, 0, m->n);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_with(data, size, max_size, seed, mutate_line);
}

static int collect(void *user, const char *bytes, unsigned long n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

static void must(bool good)
{
    if (!good) {
        abort();
    }
}

static void advise(const tandem_table *table, const struct tnd_program_time *time)
{
    static struct tnd_advise_model model;
    struct tnd_text out = TND_TEXT_INIT;
    struct tnd_advice advice;
    const struct tnd_advise_request request = {table, &model, 8e9, 4096};
    memset(&model, 0, sizeof(model));
    model.bytes = time->bytes;
    model.weights = time->weights;
    model.n_layers = 4;
    model.output_bytes = 1;
    tnd_advise(&request, &advice);
    tnd_advise_text(&request, &advice, &out);
    tnd_advise_json(&request, &advice, "", &out);
    tnd_text_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tnd_program_time time;
    struct tandem_error error = {.text = ""};
    if (tnd_llama_bench_read((const char *)data, size, 100, &time, &error) != TANDEM_OK) {
        must(error.text[0] != '\0');
        return 0;
    }
    tandem_table *table = NULL;
    tandem_table *again = NULL;
    struct tnd_text text = TND_TEXT_INIT;
    must(tandem_table_new(&table, NULL) == TANDEM_OK);
    must(tnd_record_add(table, TND_RECORD_PROGRAMS, &time) == TANDEM_OK);
    must(tandem_table_print(table, TANDEM_TABLE_JSON, collect, &text, NULL) == TANDEM_OK);
    must(tandem_table_parse(text.bytes, text.n, "again", &again, &error) == TANDEM_OK);
    must(again->n_programs == 1 && memcmp(&again->programs[0], &time, sizeof(time)) == 0);
    advise(again, &time);
    tandem_table_free(table);
    tandem_table_free(again);
    tnd_text_fini(&text);
    return 0;
}
