/* SPDX-License-Identifier: MIT
 * What the ggml-like suites share. */
#ifndef TND_TESTS_SUITE_GGML_H
#define TND_TESTS_SUITE_GGML_H

#include "ggml-like/tnd_tensor.h"
#include "tests/support.h"

/** Binds a finished graph to a buffer full of garbage, computes it by the reference and drops the
 *  buffer: afterwards only outputs have values. */
enum tandem_status ggml_compute(tandem_graph *graph, struct tandem_error *error);

/** Adds `result` to a graph of its own, finishes and computes it; one check each. */
bool ggml_compute_one(tandem_context *context, tandem_tensor *result);

/** A new context; never NULL. */
tandem_context *ggml_context(void);

/** An F32 leaf with extents (0 ends the list before four) and the values 0, 1, 2, ... times
 *  `factor`. */
tandem_tensor *ggml_ramp(tandem_context *context, float factor, int64_t ne0, int64_t ne1,
                         int64_t ne2, int64_t ne3);

/** An I32 leaf of one row. */
tandem_tensor *ggml_ints(tandem_context *context, int64_t n, const int32_t *values);

/** The context holds this error, and its message contains `part`. */
#define check_context(context, wanted, part)                                                       \
    ggml_check_context((context), (wanted), (part), __FILE__, __LINE__)
void ggml_check_context(const tandem_context *context, enum tandem_status wanted, const char *part,
                        const char *file, int line);

#endif
