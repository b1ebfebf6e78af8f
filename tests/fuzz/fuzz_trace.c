/* SPDX-License-Identifier: MIT
 * Any bytes as a trace: an error with a message, or a run whose critical path ends with it. */
#include <math.h>
#include <stdlib.h>

#include "tests/fuzz/mutate_json.h"
#include "tools/report/trace_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mutate_trace(struct mutation *m)
{
    mutate_json(m, 0, m->n);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_with(data, size, max_size, seed, mutate_trace);
}

static void must(bool good)
{
    if (!good) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tnd_trace_run run;
    struct tandem_error error = {.text = ""};
    if (tnd_trace_run_read((const char *)data, size, "trace", &run, &error) != TANDEM_OK) {
        must(error.text[0] != '\0');
        return 0;
    }
    double on_path_us = run.waiting_us;
    for (int i = 0; i < run.n_lanes; i++) {
        on_path_us += run.lanes[i].critical_us;
    }
    must(run.n_critical >= 1 && run.n_critical <= run.n_measured && run.n_measured <= run.n);
    must(fabs(on_path_us - run.took_us) <= 1e-6 * (run.took_us + 1e15));
    tnd_trace_run_fini(&run);
    return 0;
}
