/* SPDX-License-Identifier: MIT
 * Launches in graphs. If graphs are switched on, launches are gathered until there are MOST of them
 * or until anything else needs the work queue; then they are sent together. A sequence of the same
 * kernels as an earlier one, with few different arguments, becomes a graph: it is created the
 * second time, and later launched after updating the nodes that differ. New sequences, and those
 * whose graph fails, are launched one by one. Source: NVIDIA's "CUDA Driver API" reference, section
 * Graph Management. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda_driver.h"
#include "base/alloc.h"

enum {
    MOST = 32,    /* launches per graph: with more, the device would wait for the first ones */
    LEAST = 4,    /* fewer are not worth a graph */
    N_GRAPHS = 64 /* cached; the least recently used one is replaced */
};

struct launch {
    struct tnd_cu_node_parameters how; /* its `arguments` are `values` when it is sent */
    const char *name;                  /* static, for messages */
    int n;
    uint64_t values[TND_CUDA_MAX_ARGUMENTS];
};

/* A sequence of launches that was seen. */
struct graph {
    uint64_t last_use; /* 0: unused */
    int n;
    struct launch *launches; /* as sent last */
    tnd_cu_graph graph;      /* both NULL until the sequence occurs a second time */
    tnd_cu_graph_exec exec;
    tnd_cu_node nodes[MOST];
};

struct tnd_cuda_batch {
    pthread_mutex_t lock; /* guards everything below */
    bool is_on;
    int n;
    struct launch launches[MOST];
    struct graph graphs[N_GRAPHS];
    uint64_t n_uses;
    /* A launch that failed after its caller returned. Since results of unknown nodes are missing,
     * all later calls fail with it. */
    int failed;
    const char *failed_kernel;
};

void tnd_cuda_batch_open(struct tnd_cuda_context *self)
{
    const struct tnd_cu_functions *cu = &self->library->cu;
    const bool is_there = cu->GraphCreate != NULL && cu->GraphDestroy != NULL &&
                          cu->GraphAddKernelNode != NULL && cu->GraphInstantiate != NULL &&
                          cu->GraphExecSetParameters != NULL && cu->GraphExecDestroy != NULL &&
                          cu->GraphLaunch != NULL;
    /* timing records events between launches, which graphs do not allow */
    self->batch = is_there && !self->has_times ? tnd_calloc(1, sizeof(*self->batch)) : NULL;
    if (self->batch != NULL) {
        pthread_mutex_init(&self->batch->lock, NULL);
    }
}

/* The driver frees a graph that still runs when it finishes. */
static void drop(const struct tnd_cuda_context *self, struct graph *graph)
{
    if (graph->exec != NULL) {
        TND_CUDA_GIVE_BACK(self, GraphExecDestroy(graph->exec));
    }
    if (graph->graph != NULL) {
        TND_CUDA_GIVE_BACK(self, GraphDestroy(graph->graph));
    }
    tnd_free(graph->launches);
    *graph = (struct graph){0};
}

static void drop_all(const struct tnd_cuda_context *self)
{
    for (int i = 0; i < N_GRAPHS; i++) {
        drop(self, &self->batch->graphs[i]);
    }
}

void tnd_cuda_batch_close(struct tnd_cuda_context *self)
{
    if (self->batch != NULL) {
        drop_all(self);
        pthread_mutex_destroy(&self->batch->lock);
        tnd_free(self->batch);
        self->batch = NULL;
    }
}

/* ---- known sequences ---- */

static bool is_same(const struct launch *a, const struct launch *b)
{
    return memcmp(a->how.grid, b->how.grid, sizeof(a->how.grid)) == 0 &&
           memcmp(a->how.block, b->how.block, sizeof(a->how.block)) == 0 &&
           a->how.shared_bytes == b->how.shared_bytes && a->n == b->n &&
           memcmp(a->values, b->values, (size_t)a->n * sizeof(a->values[0])) == 0;
}

/* Number of launches that differ from those of a graph with the same kernels; above `most`: more
 * differ, or the kernels do. */
static int differences(const struct graph *graph, const struct launch *launches, int n, int most)
{
    int differ = graph->last_use != 0 && graph->n == n ? 0 : most + 1;
    for (int i = 0; i < n && differ <= most; i++) {
        const bool is_kernel = graph->launches[i].how.function == launches[i].how.function;
        differ += !is_kernel ? most + 1 : !is_same(&graph->launches[i], &launches[i]);
    }
    return differ;
}

/* Finds the graph with the fewest differences, because all layers have the same kernels: so each
 * layer finds its own graph. Updating more than half of the launches costs as much as launching. */
static struct graph *find(struct tnd_cuda_batch *batch)
{
    struct graph *best = NULL;
    int most = batch->n / 2;
    for (int i = 0; i < N_GRAPHS && most >= 0; i++) {
        const int differ = differences(&batch->graphs[i], batch->launches, batch->n, most);
        if (differ <= most) {
            best = &batch->graphs[i];
            most = differ - 1;
        }
    }
    return best;
}

static void keep_sequence(struct tnd_cuda_context *self)
{
    struct tnd_cuda_batch *batch = self->batch;
    struct graph *oldest = &batch->graphs[0];
    for (int i = 1; i < N_GRAPHS; i++) {
        oldest = batch->graphs[i].last_use < oldest->last_use ? &batch->graphs[i] : oldest;
    }
    drop(self, oldest);
    oldest->launches = tnd_alloc((size_t)batch->n * sizeof(*oldest->launches));
    if (oldest->launches != NULL) { /* else the sequence is not recorded */
        memcpy(oldest->launches, batch->launches, (size_t)batch->n * sizeof(*oldest->launches));
        oldest->n = batch->n;
        oldest->last_use = ++batch->n_uses;
    }
}

/* ---- graphs ---- */

static const struct tnd_cu_node_parameters *parameters_of(struct launch *launch, void **arguments)
{
    for (int i = 0; i < launch->n; i++) {
        arguments[i] = &launch->values[i];
    }
    launch->how.arguments = arguments;
    return &launch->how;
}

/* Creates a graph of nodes in sequence, as in a queue. */
static int make(const struct tnd_cuda_context *self, struct graph *graph)
{
    void *arguments[TND_CUDA_MAX_ARGUMENTS];
    int code = TND_CU_SUCCESS;
    TND_CUDA_CALL(self, code, GraphCreate(&graph->graph, 0));
    for (int i = 0; i < graph->n && code == TND_CU_SUCCESS; i++) {
        TND_CUDA_CALL(self, code,
                      GraphAddKernelNode(&graph->nodes[i], graph->graph,
                                         i > 0 ? &graph->nodes[i - 1] : NULL, i > 0,
                                         parameters_of(&graph->launches[i], arguments)));
    }
    if (code == TND_CU_SUCCESS) {
        TND_CUDA_CALL(self, code, GraphInstantiate(&graph->exec, graph->graph, 0));
    }
    return code;
}

/* Updates the graph to the batch's launches. Its runs in the queue keep their arguments. */
static int change(const struct tnd_cuda_context *self, struct graph *graph)
{
    struct tnd_cuda_batch *batch = self->batch;
    void *arguments[TND_CUDA_MAX_ARGUMENTS];
    int code = TND_CU_SUCCESS;
    for (int i = 0; i < batch->n && code == TND_CU_SUCCESS; i++) {
        if (is_same(&graph->launches[i], &batch->launches[i])) {
            continue;
        }
        graph->launches[i] = batch->launches[i];
        if (graph->exec != NULL) {
            TND_CUDA_CALL(self, code,
                          GraphExecSetParameters(graph->exec, graph->nodes[i],
                                                 parameters_of(&graph->launches[i], arguments)));
        }
    }
    return code;
}

/* Whether the batch was sent as a graph. After one failure, graphs are switched off. */
static bool run_graph(struct tnd_cuda_context *self)
{
    struct tnd_cuda_batch *batch = self->batch;
    struct graph *graph = find(batch);
    if (graph == NULL) {
        keep_sequence(self);
        return false;
    }
    graph->last_use = ++batch->n_uses;
    int code = change(self, graph);
    if (code == TND_CU_SUCCESS && graph->exec == NULL) {
        code = make(self, graph);
    }
    if (code == TND_CU_SUCCESS) {
        TND_CUDA_CALL(self, code, GraphLaunch(graph->exec, self->streams[TND_GPU_QUEUE_WORK]));
    }
    if (code != TND_CU_SUCCESS) {
        batch->is_on = false;
        drop_all(self);
    }
    return code == TND_CU_SUCCESS;
}

/* ---- batches ---- */

int tnd_cuda_launch(const struct tnd_cuda_context *self, const struct tnd_cu_node_parameters *how)
{
    int code = TND_CU_SUCCESS;
    TND_CUDA_CALL(self, code,
                  LaunchKernel(how->function, how->grid[0], how->grid[1], how->grid[2],
                               how->block[0], how->block[1], how->block[2], how->shared_bytes,
                               self->streams[TND_GPU_QUEUE_WORK], how->arguments, NULL));
    return code;
}

/* Called under the lock. */
static void submit(struct tnd_cuda_context *self)
{
    struct tnd_cuda_batch *batch = self->batch;
    void *arguments[TND_CUDA_MAX_ARGUMENTS];
    const bool is_done = batch->n >= LEAST && batch->is_on && run_graph(self);
    for (int i = 0; i < batch->n && !is_done && batch->failed == TND_CU_SUCCESS; i++) {
        batch->failed = tnd_cuda_launch(self, parameters_of(&batch->launches[i], arguments));
        batch->failed_kernel = batch->launches[i].name;
    }
    batch->n = 0;
}

/* Reports a failed launch. Called under the lock. */
static enum tandem_status told(struct tnd_cuda_context *self, struct tandem_error *error)
{
    char call[96] = "";
    if (self->batch->failed != TND_CU_SUCCESS) {
        snprintf(call, sizeof(call), "cuLaunchKernel of %s", self->batch->failed_kernel);
    }
    return tnd_cuda_check(self->library, self->base.name, call, self->batch->failed, error);
}

enum tandem_status tnd_cuda_submit(struct tnd_gpu_context *context, struct tandem_error *error)
{
    struct tnd_cuda_context *self = (struct tnd_cuda_context *)context;
    if (self->batch == NULL) {
        return TANDEM_OK;
    }
    pthread_mutex_lock(&self->batch->lock);
    submit(self);
    const enum tandem_status status = told(self, error);
    pthread_mutex_unlock(&self->batch->lock);
    return status;
}

bool tnd_cuda_gather(struct tnd_cuda_context *self, const struct tnd_gpu_function *function,
                     const char *name, const struct tnd_cu_node_parameters *how,
                     enum tandem_status *out_status, struct tandem_error *error)
{
    struct tnd_cuda_batch *batch = self->batch;
    if (batch == NULL) {
        return false;
    }
    pthread_mutex_lock(&batch->lock);
    const bool is_on = batch->is_on;
    if (is_on) {
        struct launch *launch = &batch->launches[batch->n++];
        launch->how = *how;
        launch->name = name;
        launch->n = function->n;
        memcpy(launch->values, function->values, (size_t)function->n * sizeof(launch->values[0]));
    }
    if (is_on && batch->n == MOST) {
        submit(self);
    }
    *out_status = told(self, error);
    pthread_mutex_unlock(&batch->lock);
    return is_on || *out_status != TANDEM_OK;
}

/* Sends gathered launches, switches graphs on or off, and drops all existing ones. */
static bool forget(struct tnd_gpu_context *context, bool stays, bool on)
{
    struct tnd_cuda_context *self = (struct tnd_cuda_context *)context;
    if (self->batch == NULL) {
        return false;
    }
    pthread_mutex_lock(&self->batch->lock);
    submit(self);
    self->batch->is_on = stays ? self->batch->is_on : on;
    drop_all(self);
    pthread_mutex_unlock(&self->batch->lock);
    return on;
}

bool tnd_cuda_use_graphs(struct tnd_gpu_context *context, bool on)
{
    return forget(context, false, on);
}

void tnd_cuda_forget_graphs(struct tnd_gpu_context *context)
{
    (void)forget(context, true, false);
}
