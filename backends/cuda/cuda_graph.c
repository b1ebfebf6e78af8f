/* SPDX-License-Identifier: MIT
 * Launches in graphs. Where they are switched on, launches gather until there are MOST of them or
 * until anything else wants the queue of works, and then go to the driver as one. A sequence of
 * kernels that came before, with few arguments that differ, becomes a graph: the second time it is
 * made, from then on it is launched after those nodes were changed that differ. A sequence that is
 * new, or whose graph fails, is launched one by one. Facts of the calls: NVIDIA's "CUDA Driver API"
 * reference, section Graph Management. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda_driver.h"
#include "base/alloc.h"

enum {
    MOST = 32,    /* launches of a graph: the device waits no longer for the first of them */
    LEAST = 4,    /* fewer are not worth a graph */
    N_GRAPHS = 64 /* kept; the one whose last use is longest ago makes room */
};

struct launch {
    struct tnd_cu_node_parameters how; /* its arguments: `values`, when it is sent */
    const char *name;                  /* static, for messages */
    int n;
    uint64_t values[TND_CUDA_MAX_ARGUMENTS];
};

/* A sequence that was seen. */
struct graph {
    uint64_t last_use; /* 0: no sequence */
    int n;
    struct launch *launches; /* as they were last */
    tnd_cu_graph graph;      /* both NULL until the sequence comes a second time */
    tnd_cu_graph_exec exec;
    tnd_cu_node nodes[MOST];
};

struct tnd_cuda_batch {
    pthread_mutex_t lock; /* guards all below */
    bool is_on;
    int n;
    struct launch launches[MOST];
    struct graph graphs[N_GRAPHS];
    uint64_t n_uses;
    /* A launch that failed after its caller had left: nobody knows whose results are missing, so
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
    /* times of works are taken between launches */
    self->batch = is_there && !self->has_times ? tnd_calloc(1, sizeof(*self->batch)) : NULL;
    if (self->batch != NULL) {
        pthread_mutex_init(&self->batch->lock, NULL);
    }
}

/* A launched graph that still runs is freed by the driver when it is over. */
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

/* ---- what came before ---- */

static bool is_same(const struct launch *a, const struct launch *b)
{
    return memcmp(a->how.grid, b->how.grid, sizeof(a->how.grid)) == 0 &&
           memcmp(a->how.block, b->how.block, sizeof(a->how.block)) == 0 &&
           a->how.shared_bytes == b->how.shared_bytes && a->n == b->n &&
           memcmp(a->values, b->values, (size_t)a->n * sizeof(a->values[0])) == 0;
}

/* Launches that differ from those of a graph of the same kernels; above `most`: more than that, or
 * other kernels. */
static int differences(const struct graph *graph, const struct launch *launches, int n, int most)
{
    int differ = graph->last_use != 0 && graph->n == n ? 0 : most + 1;
    for (int i = 0; i < n && differ <= most; i++) {
        const bool is_kernel = graph->launches[i].how.function == launches[i].how.function;
        differ += !is_kernel ? most + 1 : !is_same(&graph->launches[i], &launches[i]);
    }
    return differ;
}

/* Layers have the same kernels: each finds the graph that was its own, by what differs least. More
 * than half of the arguments anew cost as much as launches. */
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
    if (oldest->launches != NULL) { /* else it stays unknown */
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

/* One behind the other, as they would stand in the queue. */
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

/* The launches of a batch become those of the graph. Runs of it that stand in the queue keep what
 * they had. */
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

/* Whether the batch went as a graph. One failure, and there are no graphs any more. */
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

/* Under the lock. */
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

/* Under the lock. */
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

/* Switches graphs on or off once what was gathered is sent, and forgets all there are. */
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
