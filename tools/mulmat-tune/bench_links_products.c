/* SPDX-License-Identifier: MIT
 * Slow-down of products by messages: the CPUs that compute also copy messages and drive the
 * transport. All ranks do the same: some products, and as many again while messages go to the next
 * rank and arrive from the previous one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/tnd_status.h"
#include "tandem/tandem.h"
#include "tools/mulmat-tune/bench_links.h"

enum {
    SIZE = 2048,       /* N and K */
    TOKENS = 8,        /* M */
    BYTES = 32768,     /* of a message: shorter than those that block their sender */
    MESSAGES = 8,      /* in a round */
    ROUNDS = 15,       /* the median counts */
    MOST_PRODUCTS = 64 /* in a round */
};

struct beside {
    tandem_communicator *communicator;
    int rank, count;
    char *bytes; /* {BYTES} */
    tandem_runtime *runtime;
    tandem_context *context;
    tandem_graph *graph;
};

static double now_us(void)
{
    return (double)tnd_clock_real()->now_ns(tnd_clock_real()) / 1e3;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static enum tandem_status open_product(struct beside *b, struct tandem_error *error)
{
    const struct tandem_runtime_options options = {
        .size = sizeof(options), .table_path = "", .backends = "cpu"};
    int beside = 0;
    for (int i = 0; i < b->count; i++) {
        beside += strcmp(tandem_communicator_host(b->communicator, i),
                         tandem_communicator_host(b->communicator, b->rank)) == 0;
    }
    TND_TRY(tandem_context_new(NULL, &b->context, error));
    TND_TRY(tandem_runtime_open(&options, &b->runtime, error));
    const int threads = tandem_runtime_threads(b->runtime) / beside;
    TND_TRY(tandem_runtime_set_threads(b->runtime, threads > 1 ? threads : 1));
    tandem_tensor *w = tandem_tensor_new_2d(b->context, TANDEM_TYPE_Q4_0, SIZE, SIZE);
    tandem_tensor *x = tandem_tensor_new_2d(b->context, TANDEM_TYPE_F32, SIZE, TOKENS);
    b->graph = tandem_graph_new(b->context);
    tandem_graph_add(b->graph, tandem_mul_mat(b->context, w, x));
    return tandem_graph_finish(b->graph, error); /* reports failures of all builders above */
}

static enum tandem_status compute(const struct beside *b, int n, double *out_us,
                                  struct tandem_error *error)
{
    const double begin_us = now_us();
    for (int i = 0; i < n; i++) {
        TND_TRY(tandem_runtime_compute(b->runtime, b->graph, NULL, NULL, error));
    }
    *out_us = now_us() - begin_us;
    return TANDEM_OK;
}

static enum tandem_status post_all(const struct beside *b, struct tandem_error *error)
{
    const int next = (b->rank + 1) % b->count;
    enum tandem_status status = tandem_communicator_barrier(b->communicator, error);
    for (int i = 0; i < MESSAGES && status == TANDEM_OK; i++) {
        status = tandem_communicator_post(b->communicator, next, b->bytes, BYTES, error);
    }
    return status;
}

static enum tandem_status receive_all(const struct beside *b, struct tandem_error *error)
{
    const int before = (b->rank + b->count - 1) % b->count;
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < MESSAGES && status == TANDEM_OK; i++) {
        status = tandem_communicator_receive(b->communicator, before, b->bytes, BYTES, error);
    }
    return status == TANDEM_OK ? tandem_communicator_barrier(b->communicator, error) : status;
}

/* Number of products that take about as long as the messages. */
static enum tandem_status count_products(const struct beside *b, int *out_n,
                                         struct tandem_error *error)
{
    double product_us = INFINITY, messages_us = INFINITY, us;
    for (int i = 0; i < 3; i++) {
        TND_TRY(compute(b, 1, &us, error)); /* the first one plans */
        product_us = fmin(product_us, us);
        const double begin_us = now_us();
        TND_TRY(post_all(b, error));
        TND_TRY(receive_all(b, error));
        messages_us = fmin(messages_us, now_us() - begin_us);
    }
    *out_n = (int)fmin(ceil(messages_us / fmax(product_us, 1)), MOST_PRODUCTS);
    return TANDEM_OK;
}

static enum tandem_status measure(const struct beside *b, double *out_factor,
                                  struct tandem_error *error)
{
    double alone_us[ROUNDS], beside_us[ROUNDS];
    int n;
    TND_TRY(count_products(b, &n, error));
    for (int i = 0; i < ROUNDS; i++) {
        TND_TRY(compute(b, n, &alone_us[i], error));
        TND_TRY(post_all(b, error));
        TND_TRY(compute(b, n, &beside_us[i], error));
        TND_TRY(receive_all(b, error));
    }
    qsort(alone_us, ROUNDS, sizeof(alone_us[0]), compare);
    qsort(beside_us, ROUNDS, sizeof(beside_us[0]), compare);
    *out_factor = fmax(1, beside_us[ROUNDS / 2] / fmax(alone_us[ROUNDS / 2], 1));
    return TANDEM_OK;
}

/* Stores the largest factor of all ranks on rank 0. */
static enum tandem_status keep(const struct beside *b, double factor, tandem_table *table,
                               struct tandem_error *error)
{
    struct tnd_slowdown slowdown = {
        .backend = "cpu", .beside = "links", .count = ROUNDS, .when = (int64_t)time(NULL)};
    double *factors = calloc((size_t)b->count, sizeof(factors[0]));
    size_t *each = calloc((size_t)b->count, sizeof(each[0]));
    enum tandem_status status = TANDEM_E_MEMORY;
    if (factors != NULL && each != NULL) {
        for (int i = 0; i < b->count; i++) {
            each[i] = sizeof(factor);
        }
        status = tandem_communicator_gather(b->communicator, &factor, each, factors, error);
    }
    if (status == TANDEM_OK && b->rank == 0) {
        for (int i = 0; i < b->count; i++) {
            slowdown.factor = fmax(slowdown.factor, factors[i]);
        }
        status = tnd_table_add_slowdown(table, &slowdown);
    }
    free(factors);
    free(each);
    return status;
}

enum tandem_status bench_links_products(tandem_communicator *communicator, tandem_table *table,
                                        struct tandem_error *error)
{
    struct beside b = {.communicator = communicator,
                       .rank = tandem_communicator_rank(communicator),
                       .count = tandem_communicator_count(communicator),
                       .bytes = calloc(1, BYTES)};
    double factor = 1;
    if (!tandem_communicator_can_post(communicator)) {
        free(b.bytes);
        return TANDEM_OK;
    }
    enum tandem_status status = b.bytes != NULL ? open_product(&b, error) : TANDEM_E_MEMORY;
    status = status == TANDEM_OK ? measure(&b, &factor, error) : status;
    status = status == TANDEM_OK ? keep(&b, factor, table, error) : status;
    if (status != TANDEM_OK && tandem_communicator_error(communicator) == NULL) {
        const struct tandem_error why = {.status = status, .text = "products beside messages"};
        tandem_communicator_fail(communicator, &why); /* the others wait for this rank */
    }
    tandem_runtime_close(b.runtime);
    tandem_context_free(b.context);
    free(b.bytes);
    return status;
}
