/* SPDX-License-Identifier: MIT
 * Shared by suites of nets whose kernels are printed, or run on a device. */
#ifndef TND_SUITE_GRAPH_H
#define TND_SUITE_GRAPH_H

#include "base/text.h"
#include "tandem/runtime.h"

/** A runtime whose OpenCL device takes all that it can; NULL after a skip. */
tandem_runtime *graph_test_device(void);
/** How many nodes of the graph's plan run on the device. */
int graph_test_on_device(tandem_runtime *runtime, const tandem_graph *graph);
/** Whether the system has a compiler called cc; false after a skip. */
bool graph_test_has_compiler(void);
/** C as a library for dlopen; NULL, and a failed assertion, when it cannot be made. */
void *graph_test_compile(const struct tnd_text *text);

#endif
