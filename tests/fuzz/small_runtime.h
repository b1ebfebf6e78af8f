/* SPDX-License-Identifier: MIT
 * The runtime that fuzz targets of models share: the CPU, one thread, no table. */
#ifndef TND_TESTS_FUZZ_SMALL_RUNTIME_H
#define TND_TESTS_FUZZ_SMALL_RUNTIME_H

#include <stdlib.h>

#include "tandem/runtime.h"

static inline tandem_runtime *small_runtime(void)
{
    static tandem_runtime *runtime;
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu";
    if (runtime == NULL && tandem_runtime_open(&options, &runtime, NULL) != TANDEM_OK) {
        abort();
    }
    return runtime;
}

#endif
