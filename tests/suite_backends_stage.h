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

/* ---- memory of a device ---- */

enum { TND_TEST_LOANS = TANDEM_MAX_SRC + 2 };

/* What a node touches, on a device with memory of its own. */
struct tnd_test_loans {
    tandem_backend *backend;
    struct {
        char *host;
        size_t bytes;
        void *handle;
        bool is_weight;
    } list[TND_TEST_LOANS];
    int n;
    struct tandem_places places;
};

/** Maps and uploads operands, result and workspace; the weights of a product are prepared. Errors:
 *  those of the backend; what was lent by then is given back. */
enum tandem_status tnd_test_lend(const struct tnd_test_stage *stage, struct tnd_test_loans *loans,
                                 struct tandem_error *error);
void tnd_test_give_back(struct tnd_test_loans *loans);

/** Runs the stage to its end (submit and sync on an asynchronous device; with memory of its own
 *  everything is lent before, fetched and given back). The first error wins. */
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
