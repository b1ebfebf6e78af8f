/* SPDX-License-Identifier: MIT
 * The executor: unfold, take a run from the cache, run it, put it back. Concurrent calls have a
 * run each. */
#include "sched/exec.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "sched/run.h"

struct tnd_exec {
    struct tnd_pool *pool;
    const struct tnd_registry *registry;
    const struct tnd_clock *clock;
    pthread_mutex_t lock; /* guards the members below; nothing is locked or called inside */
    struct tnd_run *idle; /* last one used first: its memory is the warmest */
    size_t bytes;         /* of all runs, idle or not, as of the end of their last run */
};

enum tandem_status tnd_exec_new(struct tnd_pool *pool, const struct tnd_registry *registry,
                                const struct tnd_clock *clock, struct tnd_exec **out_exec,
                                struct tandem_error *error)
{
    struct tnd_exec *exec = tnd_calloc(1, sizeof(*exec));
    if (exec == NULL || pthread_mutex_init(&exec->lock, NULL) != 0) {
        tnd_free(exec);
        return tnd_error_set(error, TANDEM_E_MEMORY, "exec", 0, 0, "exec: out of memory");
    }
    exec->pool = pool;
    exec->registry = registry;
    exec->clock = clock;
    *out_exec = exec;
    return TANDEM_OK;
}

void tnd_exec_free(struct tnd_exec *exec)
{
    if (exec == NULL) {
        return;
    }
    while (exec->idle != NULL) {
        struct tnd_run *run = exec->idle;
        exec->idle = run->next_idle;
        tnd_run_free(run);
    }
    pthread_mutex_destroy(&exec->lock);
    tnd_free(exec);
}

static struct tnd_run *take_run(struct tnd_exec *exec)
{
    pthread_mutex_lock(&exec->lock);
    struct tnd_run *run = exec->idle;
    if (run != NULL) {
        exec->idle = run->next_idle;
    }
    pthread_mutex_unlock(&exec->lock);
    return run != NULL ? run : tnd_run_new(exec->pool);
}

static void put_run(struct tnd_exec *exec, struct tnd_run *run, size_t bytes_before)
{
    pthread_mutex_lock(&exec->lock);
    exec->bytes += tnd_run_bytes(run) - bytes_before; /* wraps rightly when it shrank */
    run->next_idle = exec->idle;
    exec->idle = run;
    pthread_mutex_unlock(&exec->lock);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static enum tandem_status run_graph(struct tnd_exec *exec, struct tnd_run *run,
                                    struct tandem_graph *graph, const struct tandem_plan *plan,
                                    const struct tnd_exec_run_options *options,
                                    struct tandem_error *error)
{
    TND_TRY(tnd_steps_renew(graph, plan, exec->registry, &run->steps, error));
    run->registry = exec->registry;
    run->clock = exec->clock;
    run->graph = graph;
    run->options = options;
    /* The pool may shrink before its turn comes: it then runs with fewer workers, never with
     * more. */
    int n_workers = smaller(run->steps->n_workers, tnd_pool_size(exec->pool));
    TND_TRY(tnd_run_reserve(run, n_workers, error));
    tnd_graph_bind(graph, run->intermediates.base);
    return tnd_run_execute(run, n_workers, error);
}

enum tandem_status tnd_exec_run(struct tnd_exec *exec, struct tandem_graph *graph,
                                const struct tandem_plan *plan,
                                const struct tnd_exec_run_options *options,
                                struct tandem_error *error)
{
    static const struct tnd_exec_run_options no_options;
    struct tnd_run *run = take_run(exec);
    if (run == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "exec", 0, 0, "exec: out of memory for a run");
    }
    size_t bytes_before = tnd_run_bytes(run);
    if (options == NULL) {
        options = &no_options;
    }
    if (options->out_n_times != NULL) {
        *options->out_n_times = 0;
    }
    enum tandem_status status = run_graph(exec, run, graph, plan, options, error);
    put_run(exec, run, bytes_before);
    return status;
}

size_t tnd_exec_bytes(const struct tnd_exec *exec)
{
    struct tnd_exec *unlocked = (struct tnd_exec *)exec; /* the mutex is no part of the value */
    pthread_mutex_lock(&unlocked->lock);
    size_t bytes = exec->bytes;
    pthread_mutex_unlock(&unlocked->lock);
    return bytes;
}
