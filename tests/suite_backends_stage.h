/* SPDX-License-Identifier: MIT
 * Running one task of a backend without the executor: a few threads, a counter, a barrier. And
 * tensors with random values. For the backends suites. */
#ifndef TND_TESTS_SUITE_BACKENDS_STAGE_H
#define TND_TESTS_SUITE_BACKENDS_STAGE_H

#include "backends/registry.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/support.h"

struct tnd_test_stage {
    tandem_backend *backend;
    tandem_tensor *node;
    enum tandem_task task;
    int64_t row_begin, row_end; /* both 0: all rows */
    int n_workers;              /* 0: 1 */
    int own_threads;            /* 0: 1 */
    void *workspace;
    size_t workspace_bytes;
    void *prepared; /* what the backend made of the weight; NULL: nothing */
};

/** Runs the stage to its end (submit and sync on an asynchronous device). The first error wins. */
enum tandem_status tnd_test_run_stage(const struct tnd_test_stage *stage,
                                      struct tandem_error *error);

/** A leaf with random values in [-1, 1). `ne` has 4 extents. */
tandem_tensor *tnd_test_leaf(tandem_context *context, enum tandem_type type, const int64_t *ne,
                             struct tnd_test_rng *rng);
/** Finishes a graph of one node, so that it has memory; NULL after a failed assertion. */
tandem_tensor *tnd_test_node(tandem_context *context, tandem_tensor *result);
/** A plain product of weights {k, n} and activations {k, m}. */
tandem_tensor *tnd_test_product(tandem_context *context, enum tandem_type type, int64_t n,
                                int64_t k, int64_t m, uint64_t seed);
/** Rows that a work of the whole node has. */
int64_t tnd_test_rows(const tandem_tensor *node);
/** Fills a node's result with a value that no result has. */
void tnd_test_spoil(tandem_tensor *node);

#endif
