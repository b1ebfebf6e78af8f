/* SPDX-License-Identifier: MIT
 * Any bytes as a list of machines: an error with a message, or machines with names and tables whose
 * links take a time. */
#include <math.h>
#include <stdlib.h>

#include "tests/fuzz/mutate_json.h"
#include "tools/report/machines_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mutate_list(struct mutation *m)
{
    mutate_json(m, 0, m->n);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_with(data, size, max_size, seed, mutate_list);
}

static void must(bool good)
{
    if (!good) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tnd_machines machines;
    struct tandem_error error = {.text = ""};
    if (tnd_machines_read((const char *)data, size, "list", &machines, &error) != TANDEM_OK) {
        must(error.text[0] != '\0');
        return 0;
    }
    must(machines.n >= 1 && machines.n <= TND_CLUSTER_MOST);
    for (int i = 0; i < machines.n; i++) {
        const struct tnd_machine *one = &machines.list[i];
        must(one->name[0] != '\0' && one->table[0] != '\0' && one->memory >= 0 &&
             one->threads >= 0);
        for (int j = 0; j < machines.n; j++) {
            const double us = tnd_cluster_link_us(&machines.links[i * machines.n + j], 4096);
            must(i == j || (isfinite(us) && us >= 0));
        }
    }
    tnd_machines_fini(&machines);
    return 0;
}
