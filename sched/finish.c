/* SPDX-License-Identifier: MIT
 * Finishing weights before their first use: the rows of each weight are handed out in blocks. With
 * several NUMA nodes, each node's rows go to its own workers first, as in products later. */
#include "sched/finish.h"

#include <stdatomic.h>

#include "backends/task.h"
#include "base/tnd_status.h"

/* A weight that workers finish. */
struct finishing {
    tandem_backend *backend;
    void *handle;
    const struct tnd_pool *pool;
    int n_ranges; /* one, or one a NUMA node */
    int64_t ends[TND_CHUNK_NODES];
    atomic_int_least64_t next[TND_CHUNK_NODES];
};

static void finish_on_worker(void *user, int index, int count)
{
    struct finishing *finishing = user;
    const struct tnd_chunk_nodes *nodes = count > 1 ? tnd_pool_nodes(finishing->pool) : NULL;
    const int own = nodes != NULL ? nodes->node[index] : 0;
    for (int r = 0; r < finishing->n_ranges; r++) {
        const int range = (own + r) % finishing->n_ranges;
        const int64_t end = finishing->ends[range];
        for (int64_t row; (row = atomic_fetch_add(&finishing->next[range], TND_NODE_ROWS)) < end;) {
            const int64_t n = end - row < TND_NODE_ROWS ? end - row : TND_NODE_ROWS;
            tnd_backend_finish(finishing->backend, finishing->handle, row, n, own);
        }
    }
}

static enum tandem_status finish_weight(struct tnd_pool *pool, int n_threads,
                                        const struct tandem_tensor *weight,
                                        struct finishing *finishing)
{
    int64_t begins[TND_CHUNK_NODES + 1] = {0};
    const int64_t rows = weight->ne[1] * weight->ne[2];
    const int n = weight->ne[2] == 1 ? tnd_pool_node_rows(pool, n_threads, rows, begins) : 0;
    finishing->n_ranges = n > 1 ? n : 1;
    for (int r = 0; r < finishing->n_ranges; r++) {
        atomic_init(&finishing->next[r], n > 1 ? begins[r] : 0);
        finishing->ends[r] = n > 1 ? begins[r + 1] : rows;
    }
    return tnd_pool_run(pool, n_threads, finish_on_worker, finishing);
}

/* The weight of a product, if a backend of the host computes with a prepared copy; else NULL. */
static const struct tandem_tensor *prepared_weight(const struct tnd_finish_options *options,
                                                   const struct tandem_graph *graph,
                                                   const struct tandem_plan *plan, int i)
{
    const struct tandem_task_config *compute = &plan->nodes[i].stage[TANDEM_STAGE_COMPUTE];
    const struct tandem_tensor *weight = graph->nodes[i]->src[0];
    const bool is_one = compute->backend >= TANDEM_BACKEND_CPU && weight != NULL &&
                        tnd_task_is(compute->task, TND_TASK_USES_PACKED) &&
                        (options->experts || weight->ne[2] == 1) && weight->buffer != NULL;
    return is_one ? weight : NULL;
}

enum tandem_status tnd_finish_weights(const struct tnd_finish_options *options,
                                      const struct tandem_graph *graph,
                                      const struct tandem_plan *plan, struct tandem_error *error)
{
    uint64_t all = 0;
    uint64_t done = 0;
    /* All copies are allocated first: adjacent memory gets huge pages if it is mapped before it is
     * touched. */
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tandem_tensor *weight = prepared_weight(options, graph, plan, i);
        if (weight != NULL) {
            const int slot = plan->nodes[i].stage[TANDEM_STAGE_COMPUTE].backend;
            (void)tnd_mirrors_make(options->mirrors, slot, weight);
            all += tandem_tensor_bytes(weight);
        }
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tandem_tensor *weight = prepared_weight(options, graph, plan, i);
        if (weight == NULL) {
            continue;
        }
        const int slot = plan->nodes[i].stage[TANDEM_STAGE_COMPUTE].backend;
        struct finishing finishing = {.backend = tnd_registry_backend(options->registry, slot),
                                      .handle =
                                          tnd_mirrors_prepared(options->mirrors, slot, weight),
                                      .pool = options->pool};
        if (finishing.handle != NULL) {
            TND_TRY(finish_weight(options->pool, plan->nodes[i].n_threads, weight, &finishing));
        }
        done += tandem_tensor_bytes(weight);
        if (options->progress != NULL && !options->progress(options->user, done, all)) {
            return tnd_error_set(error, TANDEM_E_CANCELLED, "prepare", 0, 0, "prepare: cancelled");
        }
    }
    return TANDEM_OK;
}
