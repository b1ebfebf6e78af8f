/* SPDX-License-Identifier: MIT
 * The executor: takes a run from the cache, unfolds the plan, executes it, returns the run to the
 * cache. Concurrent calls use a run each. */
#include "sched/exec.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "backends/task.h"
#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/debts.h"
#include "sched/finish.h"
#include "sched/run.h"
#include "sched/stall.h"

struct tnd_exec {
    struct tnd_pool *pool;
    const struct tnd_registry *registry;
    const struct tnd_clock *clock;
    struct tnd_run_device devices[TND_MAX_SLOTS];
    struct tnd_mirrors *mirrors;
    _Atomic int64_t may_copy;   /* bytes of weights that gradual runs may still copy; negative: none
                                 * now */
    _Atomic uint32_t execution; /* bits of enum tandem_execution; nothing else depends on it */
    pthread_mutex_t lock;       /* guards the members below; nothing is locked or called inside */
    struct tnd_run *idle;       /* most recently used first: its memory is most likely in the
                                 * cache */
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
    atomic_init(&exec->may_copy, -1); /* the first gradual run copies nothing */
    atomic_init(&exec->execution, TANDEM_EXECUTE_DEFAULT);
    for (int slot = 0; slot < TND_MAX_SLOTS; slot++) {
        pthread_mutex_init(&exec->devices[slot].lock, NULL);
        pthread_mutex_init(&exec->devices[slot].stall_lock, NULL);
    }
    if (tnd_mirrors_new(registry, &exec->mirrors, error) != TANDEM_OK) {
        (void)tnd_exec_free(exec);
        return tnd_error_set(error, TANDEM_E_MEMORY, "exec", 0, 0, "exec: out of memory");
    }
    *out_exec = exec;
    return TANDEM_OK;
}

void tnd_exec_set_clock(struct tnd_exec *exec, const struct tnd_clock *clock)
{
    exec->clock = clock;
}

uint32_t tnd_exec_free(struct tnd_exec *exec)
{
    uint32_t stalled = 0;
    if (exec == NULL) {
        return 0;
    }
    while (exec->idle != NULL) {
        struct tnd_run *run = exec->idle;
        exec->idle = run->next_idle;
        tnd_run_free(run);
    }
    for (int slot = 0; slot < TND_MAX_SLOTS; slot++) {
        pthread_mutex_destroy(&exec->devices[slot].lock);
        if (!tnd_stall_fini(&exec->devices[slot], tnd_registry_backend(exec->registry, slot))) {
            stalled |= UINT32_C(1) << slot;
        }
    }
    tnd_mirrors_free(exec->mirrors);
    pthread_mutex_destroy(&exec->lock);
    tnd_free(exec);
    return stalled;
}

void tnd_exec_set_execution(struct tnd_exec *exec, uint32_t execution)
{
    atomic_store_explicit(&exec->execution, execution, memory_order_relaxed);
}

uint32_t tnd_exec_execution(const struct tnd_exec *exec)
{
    return atomic_load_explicit(&exec->execution, memory_order_relaxed);
}

static struct tnd_run *take_run(struct tnd_exec *exec)
{
    pthread_mutex_lock(&exec->lock);
    struct tnd_run *run = exec->idle;
    if (run != NULL) {
        exec->idle = run->next_idle;
    }
    pthread_mutex_unlock(&exec->lock);
    if (run == NULL) {
        run = tnd_run_new(exec->pool);
    }
    if (run != NULL) {
        run->registry = exec->registry;
        run->devices = exec->devices;
        run->mirrors = exec->mirrors;
    }
    return run;
}

static void put_run(struct tnd_exec *exec, struct tnd_run *run)
{
    pthread_mutex_lock(&exec->lock);
    run->next_idle = exec->idle;
    exec->idle = run;
    pthread_mutex_unlock(&exec->lock);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Has a backend of the host make its copy of a weight, as long as this run may still copy bytes;
 * NULL: there is no copy. Copies that need no memory, such as those in a mapped cache file, are not
 * counted. */
static void *make_copy(struct tnd_exec *exec, int slot, const struct tandem_tensor *weight,
                       int64_t *io_left)
{
    tandem_backend *backend = tnd_registry_backend(exec->registry, slot);
    const size_t before = tnd_backend_prepared_bytes(backend);
    void *made = tnd_mirrors_make(exec->mirrors, slot, weight);
    const bool takes_memory = made != NULL && tnd_backend_prepared_bytes(backend) != before;
    *io_left -= takes_memory ? (int64_t)tandem_tensor_bytes(weight) : 0;
    return made;
}

/* Copies of weights for the backends that compute with them. Where there is no copy, because memory
 * ran out or because a later run makes it, products read the rows, with bitwise equal results. Each
 * gradual run adds a share of its weights to what the next one may copy. */
static void prepare_copies(struct tnd_exec *exec, struct tnd_run *run)
{
    /* Number of tokens after which packing has saved what it costs: 20 to 140 (Zen 5, 1.1B llama,
     * depending on the type and on how fast the system provides memory). With 8, 4 tokens took 1.3
     * to 1.8 times as long; with 64, 64 tokens took up to 1.4 times. */
    enum { GRADUAL_RUNS = 32 };
    const bool is_gradual = run->options->packs_gradually;
    int64_t left = atomic_load_explicit(&exec->may_copy, memory_order_relaxed);
    const int64_t begun_with = left;
    int64_t all = 0;
    bool is_put_off = false;
    for (int i = 0; i < run->steps->n_steps && run->steps->uses_prepared; i++) {
        struct tnd_step *step = &run->steps->steps[i];
        if (step->kind != TND_STEP_WORK || !tnd_task_is(step->task, TND_TASK_USES_PACKED)) {
            continue;
        }
        const struct tandem_tensor *weight = tnd_run_item_of(run, step)->tensor->src[0];
        all += (int64_t)tandem_tensor_bytes(weight);
        step->prepared = tnd_mirrors_prepared(exec->mirrors, step->backend, weight);
        step->reads_rows_first = step->prepared == NULL && is_gradual && begun_with < 0;
        if (step->prepared == NULL && (!is_gradual || left >= 0)) {
            const int64_t before = left;
            step->prepared = make_copy(exec, step->backend, weight, &left);
            step->reads_rows_first = !is_gradual && left != before;
        } else {
            is_put_off = is_put_off || step->prepared == NULL;
        }
    }
    if (run->options->out_is_packing != NULL) {
        *run->options->out_is_packing = is_gradual && (is_put_off || left != begun_with);
    }
    if (is_gradual) {
        left = is_put_off ? left + all / GRADUAL_RUNS : 0;
        atomic_store_explicit(&exec->may_copy, left, memory_order_relaxed);
    }
}

/* The plan is unfolded, and its mirrors are held. */
static enum tandem_status run_steps(struct tnd_exec *exec, struct tnd_run *run,
                                    struct tnd_exec_failure *out_failure,
                                    struct tandem_error *error)
{
    /* The pool may shrink before this run starts: it then runs with fewer workers, never with
     * more. */
    int n_workers = smaller(run->steps->n_workers, tnd_pool_size(exec->pool));
    TND_ASSERT(n_workers >= 1);
    TND_TRY(tnd_run_reserve(run, n_workers, error));
    tnd_items_bind(&run->steps->items, run->graph, run->intermediates.base);
    prepare_copies(exec, run);
    if (run->steps->residency != NULL) {
        TND_TRY(tnd_stall_check(run, out_failure, error));
        TND_TRY(tnd_run_attach(run, out_failure, error));
    }
    return tnd_run_execute(run, n_workers, out_failure, error);
}

/* Where leaves share bytes with states of other graphs, devices drop their mirrors of these. */
static enum tandem_status renew_steps(struct tnd_exec *exec, struct tnd_run *run,
                                      const struct tandem_graph *graph,
                                      const struct tandem_plan *plan, uint32_t execution,
                                      struct tandem_error *error)
{
    TND_TRY(tnd_debts_check(exec->mirrors, graph, error));
    enum tandem_status status =
        tnd_steps_renew(graph, plan, exec->registry, exec->mirrors, execution, &run->steps, error);
    if (status == TANDEM_E_BUSY) {
        (void)tnd_debts_collect(exec->mirrors, exec->registry, exec->devices, 0, NULL, 0, NULL);
        tnd_mirrors_drop_slot(exec->mirrors, 0);
        TND_TRY(tnd_debts_check(exec->mirrors, graph, error));
        status = tnd_steps_renew(graph, plan, exec->registry, exec->mirrors, execution, &run->steps,
                                 error);
    }
    return status;
}

static enum tandem_status run_graph(struct tnd_exec *exec, struct tnd_run *run,
                                    struct tandem_graph *graph, const struct tandem_plan *plan,
                                    const struct tnd_exec_run_options *options,
                                    struct tandem_error *error)
{
    struct tnd_exec_failure failure = {TND_FAILURE_NONE, 0, true, -1};
    uint32_t execution = options->is_plain ? 0 : tnd_exec_execution(exec);
    TND_TRY(renew_steps(exec, run, graph, plan, execution, error));
    run->keeps_subnormals = (execution & TANDEM_EXECUTE_SUBNORMALS) != 0;
    run->clock = exec->clock;
    run->graph = graph;
    run->options = options;
    run->n_begun = 0;
    run->has_collected = false;
    enum tandem_status status = run_steps(exec, run, &failure, error);
    if (status != TANDEM_OK && run->steps->residency != NULL) {
        tnd_debts_collect_failed(run);
    }
    tnd_run_detach(run, status == TANDEM_OK);
    if (status != TANDEM_OK && options->out_failure != NULL) {
        failure.can_repeat = tnd_run_can_repeat(run, &failure.not_repeated_node);
        *options->out_failure = failure;
    }
    return status;
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
    if (options == NULL) {
        options = &no_options;
    }
    if (options->out_n_times != NULL) {
        *options->out_n_times = 0;
    }
    if (options->out_is_packing != NULL) {
        *options->out_is_packing = false;
    }
    if (options->out_failure != NULL) {
        *options->out_failure = (struct tnd_exec_failure){TND_FAILURE_NONE, 0, true, -1};
    }
    enum tandem_status status = run_graph(exec, run, graph, plan, options, error);
    put_run(exec, run);
    return status;
}

enum tandem_status tnd_exec_finish(struct tnd_exec *exec, const struct tandem_graph *graph,
                                   const struct tandem_plan *plan, bool experts,
                                   bool (*progress)(void *user, uint64_t done, uint64_t all),
                                   void *user, struct tandem_error *error)
{
    const struct tnd_finish_options options = {exec->pool, exec->registry, exec->mirrors,
                                               experts,    progress,       user};
    return tnd_finish_weights(&options, graph, plan, error);
}

/* ---- what devices keep ---- */

static enum tandem_status collect(struct tnd_exec *exec, int slot, const struct tandem_tensor *root,
                                  struct tandem_error *error)
{
    return tnd_debts_collect(exec->mirrors, exec->registry, exec->devices, slot,
                             root != NULL ? root->data : NULL,
                             root != NULL ? tandem_tensor_bytes(root) : 0, error);
}

enum tandem_status tnd_exec_fetch(struct tnd_exec *exec, const struct tandem_tensor *root,
                                  bool will_change, struct tandem_error *error)
{
    /* Runs download everything else that they wrote before they end. */
    (void)(root->data != NULL ? collect(exec, 0, root, NULL) : TANDEM_OK);
    if (will_change && root->buffer != NULL) {
        atomic_store_explicit(&root->buffer->is_lost, false, memory_order_relaxed);
    }
    if (will_change && tnd_mirrors_state_slots(exec->mirrors) != 0) {
        tnd_mirrors_spoil(exec->mirrors, root);
    }
    return tnd_debts_check_root(root, error);
}

void tnd_exec_forget(struct tnd_exec *exec, const struct tandem_tensor *root)
{
    (void)collect(exec, 0, root, NULL);
    tnd_mirrors_forget(exec->mirrors, root);
}

void tnd_exec_drop_device(struct tnd_exec *exec, int slot)
{
    (void)collect(exec, slot, NULL, NULL);
    tnd_mirrors_drop_slot(exec->mirrors, slot);
}

bool tnd_exec_has_refused(struct tnd_exec *exec)
{
    return tnd_mirrors_has_refused(exec->mirrors);
}

uint32_t tnd_exec_refused_by(struct tnd_exec *exec, const struct tandem_tensor *weight)
{
    uint32_t refused = 0;
    for (int slot = 1; slot < TND_MAX_SLOTS && tnd_exec_has_refused(exec); slot++) {
        bool is_one = weight->buffer != NULL && tnd_mirrors_is_refused(exec->mirrors, slot, weight);
        refused |= is_one ? UINT32_C(1) << slot : 0;
    }
    return refused;
}

bool tnd_exec_is_refused(struct tnd_exec *exec, int slot, const struct tandem_tensor *node,
                         bool streams)
{
    for (int i = streams; i < node->n_src && slot > 0 && tnd_exec_has_refused(exec); i++) {
        const struct tandem_tensor *root = node->src[i] != NULL ? node->src[i]->root : NULL;
        if (root != NULL && (root->flags & TND_TENSOR_CONSTANT) != 0 &&
            tnd_mirrors_is_refused(exec->mirrors, slot, root)) {
            return true;
        }
    }
    return false;
}

bool tnd_exec_is_part_refused(struct tnd_exec *exec, int slot, const struct tandem_tensor *node,
                              const struct tandem_plan_part *part)
{
    struct tandem_tensor range;
    return slot > 0 && node->src[0] != NULL && node->src[0]->root->buffer != NULL &&
           tnd_exec_has_refused(exec) &&
           tnd_mirrors_range(exec->mirrors, node->src[0], (enum tandem_split)part->split,
                             part->begin, part->end, false, &range) &&
           tnd_mirrors_is_refused(exec->mirrors, slot, &range);
}

void tnd_exec_drop_orphans(struct tnd_exec *exec)
{
    tnd_mirrors_drop_orphans(exec->mirrors);
}

int tnd_exec_mirror_count(struct tnd_exec *exec)
{
    return tnd_mirrors_count(exec->mirrors);
}
