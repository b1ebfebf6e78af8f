/* SPDX-License-Identifier: MIT
 * The two backends of the sched suites. */
#include <stdlib.h>
#include <string.h>

#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

/* ---- what both do ---- */

static struct fake_backend *fake_of(tandem_backend *backend)
{
    return (struct fake_backend *)backend;
}

static void note(struct fake_backend *fake, char what, const tandem_tensor *node)
{
    if (fake->events != NULL && fake->n_events < FAKE_MAX_EVENTS) {
        fake->events[fake->n_events++] = (struct fake_event){what, node};
    }
}

static enum tandem_status supports(tandem_backend *backend, const tandem_tensor *node,
                                   uint32_t task, struct tandem_error *error)
{
    bool is_product = task == TANDEM_TASK_DEQUANTIZE_W || task == TANDEM_TASK_MUL_MAT_F32;
    if (task == TANDEM_TASK_NODE || (is_product && node->op == TANDEM_OP_MUL_MAT)) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BACKEND, backend->api->name, task, 0,
                         "%s: no such task for %s", backend->api->name, tandem_op_name(node->op));
}

static size_t workspace(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    (void)backend;
    return task == TANDEM_TASK_NODE ? 0 : tandem_tensor_bytes(node->src[0]);
}

static size_t scratch(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    (void)backend;
    return task == TANDEM_TASK_MUL_MAT_F32 ? node->src[0]->nb[1] : 0;
}

static void close_fake(tandem_backend *backend)
{
    free(fake_of(backend)->events);
    free(backend);
}

static enum tandem_status open_fake(const struct tandem_backend_api *api, tandem_backend **out)
{
    struct fake_backend *fake = calloc(1, sizeof(*fake));
    if (fake == NULL) {
        return TANDEM_E_MEMORY;
    }
    fake->backend.api = api;
    *out = &fake->backend;
    return TANDEM_OK;
}

static void copy_rows(const struct tandem_work *work, int64_t begin, int64_t end)
{
    const tandem_tensor *w = work->node->src[0];
    memcpy((char *)work->workspace + (size_t)begin * w->nb[1],
           (const char *)w->data + (size_t)begin * w->nb[1], (size_t)(end - begin) * w->nb[1]);
}

/* Rows begin..end-1 of W from the workspace, through `scratch` when there is some. */
static void multiply_rows(const struct tandem_work *work, int64_t begin, int64_t end, float *row)
{
    const tandem_tensor *node = work->node;
    int64_t n = node->ne[0];
    int64_t k = node->src[0]->ne[0];
    const float *weights = work->workspace;
    const float *x = node->src[1]->data;
    float *y = node->data;
    for (int64_t i = begin; i < end; i++) {
        memcpy(row, weights + i * k, (size_t)k * sizeof(float));
        for (int64_t j = 0; j < node->ne[1]; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) {
                sum += (double)row[l] * (double)x[j * k + l];
            }
            y[j * n + i] = (float)sum;
        }
    }
}

/* ---- fakecpu ---- */

static enum tandem_status run_node(const struct tandem_work *work, struct tandem_worker *worker)
{
    const tandem_tensor *node = work->node;
    int64_t begin;
    int64_t end;
    if (node->op != TANDEM_OP_SCALE) {
        return worker->index == 0 ? tnd_eval_ref_node((tandem_tensor *)node, worker->error)
                                  : TANDEM_OK;
    }
    const float *from = node->src[0]->data;
    float *to = node->data;
    while (worker->next(worker, tandem_tensor_elements(node), 3, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            to[i] = from[i] * node->params.factor;
        }
    }
    return TANDEM_OK;
}

static enum tandem_status run_cpu(tandem_backend *backend, const struct tandem_work *work,
                                  struct tandem_worker *worker)
{
    struct fake_backend *fake = fake_of(backend);
    int64_t begin;
    int64_t end;
    if (worker->index == 0) {
        note(fake, 'r', work->node);
        if (fake->clock != NULL && fake->is_off_cpu) {
            tnd_clock_virtual_steal(fake->clock, fake->cost_ns);
        } else if (fake->clock != NULL) {
            tnd_clock_virtual_advance(fake->clock, fake->cost_ns);
        }
    }
    if (work->task == (uint32_t)fake->fail_task && worker->index == fake->fail_worker) {
        return tnd_error_set(worker->error, fake->fail_status, "fakecpu", worker->index, 0,
                             "worker %d was told to fail", worker->index);
    }
    if (work->task == TANDEM_TASK_NODE) {
        return run_node(work, worker);
    }
    if (work->task == TANDEM_TASK_DEQUANTIZE_W) {
        while (worker->next(worker, work->row_end, 2, &begin, &end)) {
            copy_rows(work, begin, end);
        }
        return TANDEM_OK;
    }
    /* Twice, to see that chunks begin again behind a barrier. */
    for (int round = 0; round < 2; round++) {
        while (worker->next(worker, work->row_end, 2, &begin, &end)) {
            multiply_rows(work, begin, end, worker->scratch);
        }
        worker->barrier(worker);
    }
    return TANDEM_OK;
}

/* ---- fakedev ---- */

static enum tandem_status submit(tandem_backend *backend, const struct tandem_work *work,
                                 uint64_t *out_ticket, struct tandem_error *error)
{
    struct fake_backend *fake = fake_of(backend);
    note(fake, 's', work->node);
    if (work->task == (uint32_t)fake->fail_task) {
        return tnd_error_set(error, fake->fail_status, "fakedev", 0, 0, "submit was told to fail");
    }
    uint64_t ticket = fake->n_tickets++ % FAKE_MAX_TICKETS;
    fake->work[ticket] = *work;
    fake->is_in_flight[ticket] = true;
    fake->n_in_flight++;
    if (fake->clock != NULL) {
        uint64_t now = fake->clock->clock.now_ns(&fake->clock->clock);
        fake->free_ns = (now > fake->free_ns ? now : fake->free_ns) + fake->cost_ns;
        fake->done_ns[ticket] = fake->free_ns;
    }
    *out_ticket = ticket;
    return TANDEM_OK;
}

static enum tandem_status sync_device(tandem_backend *backend, uint64_t ticket,
                                      struct tandem_error *error)
{
    struct fake_backend *fake = fake_of(backend);
    struct tandem_work *work = &fake->work[ticket];
    if (!fake->is_in_flight[ticket]) {
        return tnd_error_set(error, TANDEM_E_STATE, "fakedev", 0, 0, "ticket synced twice");
    }
    note(fake, 'y', work->node);
    fake->is_in_flight[ticket] = false;
    fake->n_in_flight--;
    if (fake->clock != NULL) {
        fake->clock->clock.wait_until_ns(&fake->clock->clock, fake->done_ns[ticket]);
    }
    if (fake->sync_status != TANDEM_OK) {
        return tnd_error_set(error, fake->sync_status, "fakedev", 0, 0, "sync was told to fail");
    }
    if (work->task == TANDEM_TASK_DEQUANTIZE_W) {
        copy_rows(work, 0, work->row_end);
    } else if (work->task == TANDEM_TASK_MUL_MAT_F32) {
        float *row = malloc(work->node->src[0]->nb[1]);
        multiply_rows(work, 0, work->row_end, row);
        free(row);
    } else {
        return tnd_eval_ref_node((tandem_tensor *)work->node, error);
    }
    return TANDEM_OK;
}

static enum tandem_status open_cpu(const struct tandem_backend_options *options,
                                   tandem_backend **out_backend, struct tandem_error *error);
static enum tandem_status open_device(const struct tandem_backend_options *options,
                                      tandem_backend **out_backend, struct tandem_error *error);

static bool is_same_work(tandem_backend *backend, const tandem_tensor *a, const tandem_tensor *b,
                         uint32_t task)
{
    (void)backend;
    return task == TANDEM_TASK_DEQUANTIZE_W && a->src[0] == b->src[0];
}

static const struct tandem_backend_api cpu_api = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "fakecpu",
    .kind = TANDEM_KIND_CPU,
    .open = open_cpu,
    .close = close_fake,
    .supports = supports,
    .workspace = workspace,
    .scratch = scratch,
    .run = run_cpu,
    .is_same_work = is_same_work,
};

static const struct tandem_backend_api device_api = {
    .abi = TANDEM_ABI,
    .size = sizeof(struct tandem_backend_api),
    .name = "fakedev",
    .kind = TANDEM_KIND_SIM,
    .open = open_device,
    .close = close_fake,
    .supports = supports,
    .workspace = workspace,
    .scratch = scratch,
    .submit = submit,
    .sync = sync_device,
};

static enum tandem_status open_cpu(const struct tandem_backend_options *options,
                                   tandem_backend **out_backend, struct tandem_error *error)
{
    (void)options;
    (void)error;
    return open_fake(&cpu_api, out_backend);
}

static enum tandem_status open_device(const struct tandem_backend_options *options,
                                      tandem_backend **out_backend, struct tandem_error *error)
{
    (void)options;
    (void)error;
    return open_fake(&device_api, out_backend);
}

/* ---- all of it ---- */

void fakes_open(struct fakes *fakes, int n_threads, int64_t spin_limit,
                struct tnd_clock_virtual *clock)
{
    struct tnd_registry_options registry_options = {.backends = "cpu", .n_threads_max = 64};
    struct tnd_pool_options pool_options = {
        .n_threads = n_threads, .n_cpus = 2, .spin_limit = spin_limit};
    memset(fakes, 0, sizeof(*fakes));
    CU_ASSERT_EQUAL_FATAL(tnd_registry_open(&registry_options, &fakes->registry, NULL), TANDEM_OK);
    CU_ASSERT_EQUAL_FATAL(tnd_registry_add(fakes->registry, &cpu_api, NULL, NULL), TANDEM_OK);
    CU_ASSERT_EQUAL_FATAL(tnd_registry_add(fakes->registry, &device_api, NULL, NULL), TANDEM_OK);
    fakes->cpu_slot = tnd_registry_find(fakes->registry, "fakecpu", NULL);
    fakes->device_slot = tnd_registry_find(fakes->registry, "fakedev", NULL);
    fakes->cpu = fake_of(tnd_registry_backend(fakes->registry, fakes->cpu_slot));
    fakes->device = fake_of(tnd_registry_backend(fakes->registry, fakes->device_slot));
    fakes->cpu->clock = clock;
    fakes->device->clock = clock;
    CU_ASSERT_EQUAL_FATAL(tnd_pool_new(&pool_options, &fakes->pool, NULL), TANDEM_OK);
    CU_ASSERT_EQUAL_FATAL(tnd_exec_new(fakes->pool, fakes->registry,
                                       clock != NULL ? &clock->clock : tnd_clock_real(),
                                       &fakes->exec, NULL),
                          TANDEM_OK);
}

void fakes_close(struct fakes *fakes)
{
    check_int(fakes->device->n_in_flight, 0);
    tnd_exec_free(fakes->exec);
    tnd_pool_free(fakes->pool);
    tnd_registry_close(fakes->registry);
}

void fake_plan_node(tandem_plan *plan, int i, int slot, int n_threads)
{
    struct tandem_plan_node node = *tandem_plan_node(plan, i);
    struct tandem_task_config config = {
        .backend = (uint8_t)slot, .task = TANDEM_TASK_NODE, .parallel = n_threads > 1};
    memset(node.stage, 0, sizeof(node.stage));
    node.stage[TANDEM_STAGE_COMPUTE] = config;
    node.n_threads = n_threads;
    tandem_plan_set_node(plan, i, &node);
}

void fake_plan_product(tandem_plan *plan, int i, int init_slot, int compute_slot, int n_threads)
{
    fake_plan_node(plan, i, compute_slot, n_threads);
    struct tandem_plan_node node = *tandem_plan_node(plan, i);
    node.stage[TANDEM_STAGE_INIT] = node.stage[TANDEM_STAGE_COMPUTE];
    node.stage[TANDEM_STAGE_INIT].backend = (uint8_t)init_slot;
    node.stage[TANDEM_STAGE_INIT].task = TANDEM_TASK_DEQUANTIZE_W;
    node.stage[TANDEM_STAGE_COMPUTE].task = TANDEM_TASK_MUL_MAT_F32;
    tandem_plan_set_node(plan, i, &node);
}

tandem_plan *fake_plan(const tandem_graph *graph, int slot, int n_threads)
{
    tandem_plan *plan = NULL;
    CU_ASSERT_EQUAL_FATAL(tandem_plan_new(tandem_graph_node_count(graph), &plan, NULL), TANDEM_OK);
    for (int i = 0; i < tandem_graph_node_count(graph); i++) {
        fake_plan_node(plan, i, slot, n_threads);
    }
    return plan;
}
