/* SPDX-License-Identifier: MIT
 * Graphs of launches: nodes with a copy of their arguments, each behind the one before it, and
 * copies of a whole graph that run as often as they are launched. Other graphs are not
 * supported. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/fake_entry.h"
#include "tests/fake_cuda/fake_launch.h"

/* CUDA_KERNEL_NODE_PARAMS_v1. */
struct parameters {
    struct tnd_fake_function *function;
    unsigned grid[3], block[3], shared_bytes;
    void **arguments;
    void **extra;
};
struct node {
    struct node *next;
    struct parameters parameters;
    struct tnd_fake_values taken;
};
/* A graph, or one that can run. */
struct graph {
    struct graph *next;
    bool can_run;
    struct node *nodes, **end;
    const struct graph *of; /* what it was made of, while that lives */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all graphs */
static struct graph *graphs;

static void take(struct node *node, const struct parameters *parameters)
{
    node->parameters = *parameters;
    node->parameters.arguments = NULL;
    tnd_fake_values_take(parameters->function, parameters->arguments, &node->taken);
}

static struct graph *new_graph(bool can_run)
{
    struct graph *graph = calloc(1, sizeof(*graph));
    if (graph != NULL) {
        graph->can_run = can_run;
        graph->end = &graph->nodes;
        graph->next = graphs;
        graphs = graph;
        tnd_fake_live(can_run ? TND_FAKE_GRAPH_EXEC : TND_FAKE_GRAPH, 1);
    }
    return graph;
}

static struct node *add(struct graph *graph)
{
    struct node *node = calloc(1, sizeof(*node));
    if (node != NULL) {
        *graph->end = node;
        graph->end = &node->next;
    }
    return node;
}

/* A handle of this kind that lives. */
static struct graph *known(const struct graph *handle, bool can_run)
{
    struct graph *at = graphs;
    while (at != NULL && (at != handle || at->can_run != can_run)) {
        at = at->next;
    }
    if (at == NULL) {
        tnd_fake_wrong("a graph that is not there", 0);
    }
    return at;
}

static int destroy(struct graph *handle, bool can_run)
{
    pthread_mutex_lock(&lock);
    struct graph *graph = known(handle, can_run);
    for (struct graph **at = &graphs; graph != NULL && *at != NULL;) {
        if (*at == graph) {
            *at = graph->next;
        } else {
            (*at)->of = (*at)->of == graph ? NULL : (*at)->of;
            at = &(*at)->next;
        }
    }
    for (struct node *node = graph != NULL ? graph->nodes : NULL; node != NULL;) {
        struct node *next = node->next;
        free(node);
        node = next;
    }
    free(graph);
    pthread_mutex_unlock(&lock);
    if (graph != NULL) {
        tnd_fake_live(can_run ? TND_FAKE_GRAPH_EXEC : TND_FAKE_GRAPH, -1);
    }
    return graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT int cuGraphCreate(struct graph **out, unsigned flags)
{
    ENTER();
    CHECK(flags == 0, CUDA_ERROR_INVALID_VALUE);
    pthread_mutex_lock(&lock);
    *out = new_graph(false);
    pthread_mutex_unlock(&lock);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT int cuGraphDestroy(struct graph *graph)
{
    const int code = tnd_fake_enter_call(__func__, false);
    const int destroyed = destroy(graph, false);
    return code != CUDA_SUCCESS ? code : destroyed;
}

EXPORT int cuGraphExecDestroy(struct graph *exec)
{
    const int code = tnd_fake_enter_call(__func__, false);
    const int destroyed = destroy(exec, true);
    return code != CUDA_SUCCESS ? code : destroyed;
}

EXPORT int cuGraphAddKernelNode(struct node **out, struct graph *handle, struct node *const *after,
                                size_t n_after, const struct parameters *parameters)
{
    ENTER();
    CHECK(parameters->function != NULL && parameters->extra == NULL, CUDA_ERROR_INVALID_VALUE);
    pthread_mutex_lock(&lock);
    struct graph *graph = known(handle, false);
    struct node *last = graph != NULL ? graph->nodes : NULL;
    while (last != NULL && last->next != NULL) {
        last = last->next;
    }
    const bool is_chain = last == NULL ? n_after == 0 : n_after == 1 && after[0] == last;
    struct node *node = graph != NULL && is_chain ? add(graph) : NULL;
    if (node != NULL) {
        take(node, parameters);
        *out = node;
    }
    pthread_mutex_unlock(&lock);
    return node != NULL    ? CUDA_SUCCESS
           : graph == NULL ? CUDA_ERROR_INVALID_HANDLE
                           : CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT int cuGraphInstantiateWithFlags(struct graph **out, struct graph *handle,
                                       unsigned long long flags)
{
    ENTER();
    CHECK(flags == 0, CUDA_ERROR_INVALID_VALUE);
    pthread_mutex_lock(&lock);
    const struct graph *graph = known(handle, false);
    struct graph *exec = graph != NULL ? new_graph(true) : NULL;
    for (struct node *node = exec != NULL ? graph->nodes : NULL; node != NULL; node = node->next) {
        struct node *copy = add(exec);
        if (copy == NULL) {
            abort();
        }
        copy->parameters = node->parameters;
        copy->taken = node->taken;
    }
    if (exec != NULL) {
        exec->of = graph;
        *out = exec;
    }
    pthread_mutex_unlock(&lock);
    return exec != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* `node` is one of the graph that `handle` was made of. */
EXPORT int cuGraphExecKernelNodeSetParams(struct graph *handle, struct node *node,
                                          const struct parameters *parameters)
{
    ENTER();
    CHECK(parameters->function != NULL && parameters->extra == NULL, CUDA_ERROR_INVALID_VALUE);
    pthread_mutex_lock(&lock);
    struct graph *exec = known(handle, true);
    const struct node *at = exec != NULL && exec->of != NULL ? exec->of->nodes : NULL;
    struct node *copy = exec != NULL ? exec->nodes : NULL;
    while (at != NULL && at != node) {
        at = at->next;
        copy = copy->next;
    }
    if (at != NULL) {
        take(copy, parameters);
    } else {
        tnd_fake_wrong("a node that is not the graph's", 0);
    }
    pthread_mutex_unlock(&lock);
    return at != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT int cuGraphLaunch(struct graph *handle, struct tnd_fake_stream *stream)
{
    ENTER();
    CHECK(tnd_fake_is_stream(stream), CUDA_ERROR_INVALID_HANDLE);
    tnd_fake_count_graph();
    pthread_mutex_lock(&lock);
    struct graph *exec = known(handle, true);
    int code = exec != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    for (struct node *node = exec != NULL ? exec->nodes : NULL;
         node != NULL && code == CUDA_SUCCESS; node = node->next) {
        for (int i = 0; i < TND_FAKE_MAX_ARGUMENTS; i++) { /* (nodes were copied) */
            node->taken.arguments[i] = &node->taken.values[i];
        }
        code = tnd_fake_launch_push(node->parameters.function, node->parameters.grid,
                                    node->parameters.block, node->parameters.shared_bytes, stream,
                                    node->taken.arguments);
    }
    pthread_mutex_unlock(&lock);
    return code;
}
