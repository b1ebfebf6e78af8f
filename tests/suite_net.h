/* SPDX-License-Identifier: MIT
 * Shared by the suites of public nets. */
#ifndef TND_SUITE_NET_H
#define TND_SUITE_NET_H

#include "tandem/tandem.h"
#include "tests/support.h"

/** Two threads, the CPU alone, no table. */
static inline tandem_runtime *net_test_runtime(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    options.n_threads = 2;
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    return runtime;
}

#endif
