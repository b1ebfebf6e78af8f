/* SPDX-License-Identifier: MIT
 * Running one task of a backend on plain threads, or on a device and in its memory; random
 * tensors. */
#include "tests/suite_backends_stage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/tnd_status.h"

enum { MAX_WORKERS = 16, MAX_LOOPS = 8 };

/* Guarded memory is for one thread at a time; stages may run on several. */
static pthread_mutex_t guarded_lock = PTHREAD_MUTEX_INITIALIZER;

static void *guarded_alloc(size_t bytes)
{
    pthread_mutex_lock(&guarded_lock);
    void *memory = tnd_guarded_alloc(bytes, 64);
    pthread_mutex_unlock(&guarded_lock);
    return memory;
}

static void guarded_free(void *memory)
{
    pthread_mutex_lock(&guarded_lock);
    tnd_guarded_free(memory);
    pthread_mutex_unlock(&guarded_lock);
}

/* ---- workers ---- */

struct shared {
    tandem_backend *backend;
    const struct tandem_work *work;
    _Atomic int64_t next[MAX_LOOPS]; /* a loop each, with barriers between them */
    pthread_barrier_t barrier;
};

struct worker {
    struct tandem_worker base; /* first: `next` gets a pointer to it */
    struct shared *shared;
    int loop;
    struct tandem_error error;
    enum tandem_status status;
    pthread_t thread;
};

static bool next_chunk(struct tandem_worker *base, int64_t n_items, int64_t chunk,
                       int64_t *out_begin, int64_t *out_end)
{
    struct worker *worker = (struct worker *)base;
    int64_t begin =
        atomic_fetch_add_explicit(&worker->shared->next[worker->loop], chunk, memory_order_relaxed);
    if (begin >= n_items) {
        return false;
    }
    *out_begin = begin;
    *out_end = begin + chunk < n_items ? begin + chunk : n_items;
    return true;
}

static void barrier(struct tandem_worker *base)
{
    struct worker *worker = (struct worker *)base;
    pthread_barrier_wait(&worker->shared->barrier);
    worker->loop = worker->loop + 1 < MAX_LOOPS ? worker->loop + 1 : 0;
}

static void *work(void *user)
{
    struct worker *worker = user;
    worker->status = tnd_backend_run(worker->shared->backend, worker->shared->work, &worker->base);
    return NULL;
}

static enum tandem_status run_workers(const struct tnd_test_stage *stage,
                                      const struct tandem_work *piece, int count,
                                      struct tandem_error *error)
{
    struct shared shared = {.backend = stage->backend, .work = piece, .next = {0}};
    pthread_barrier_init(&shared.barrier, NULL, (unsigned)count);
    struct worker *workers = calloc((size_t)count, sizeof(*workers));
    size_t scratch = tnd_backend_scratch(stage->backend, stage->node, stage->task);
    for (int i = 0; i < count; i++) {
        struct worker *worker = &workers[i];
        worker->shared = &shared;
        worker->base.index = i;
        worker->base.count = count;
        worker->base.own_threads = stage->own_threads > 0 ? stage->own_threads : 1;
        worker->base.scratch = guarded_alloc(scratch > 0 ? scratch : 1);
        worker->base.scratch_bytes = scratch;
        worker->base.error = &worker->error;
        worker->base.next = next_chunk;
        worker->base.barrier = barrier;
    }
    for (int i = 1; i < count; i++) {
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    work(&workers[0]);
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < count; i++) {
        if (i > 0) {
            pthread_join(workers[i].thread, NULL);
        }
        if (workers[i].status != TANDEM_OK && status == TANDEM_OK) {
            status = workers[i].status;
            if (error != NULL) {
                *error = workers[i].error;
            }
        }
        guarded_free(workers[i].base.scratch);
    }
    pthread_barrier_destroy(&shared.barrier);
    free(workers);
    return status;
}

/* ---- devices ---- */

/* Lends what a tensor lies in, or host memory alone (no tensor), once; tells where it lies. */
static enum tandem_status lend(struct tnd_test_loans *loans, const tandem_tensor *tensor,
                               void *memory, size_t bytes, bool is_weight,
                               struct tandem_place *out_place, struct tandem_error *error)
{
    char *host = tensor != NULL ? tensor->root->data : memory;
    bytes = tensor != NULL ? tandem_tensor_bytes(tensor->root) : bytes;
    void *handle = NULL;
    if (bytes == 0) {
        return TANDEM_OK;
    }
    for (int i = 0; i < loans->n && handle == NULL; i++) {
        handle = loans->list[i].host == host ? loans->list[i].handle : NULL;
    }
    if (handle == NULL && is_weight) {
        TND_TRY(tnd_backend_prepare(loans->backend, tensor, &handle, error));
    }
    is_weight = handle != NULL;
    if (handle == NULL) {
        TND_TRY(tnd_backend_map(loans->backend, bytes, &handle, error));
    }
    *out_place =
        (struct tandem_place){handle, tensor != NULL ? (size_t)((char *)tensor->data - host) : 0};
    for (int i = 0; i < loans->n; i++) {
        if (loans->list[i].handle == handle) {
            return TANDEM_OK;
        }
    }
    loans->list[loans->n].host = host;
    loans->list[loans->n].bytes = bytes;
    loans->list[loans->n].handle = handle;
    loans->list[loans->n++].is_weight = is_weight;
    return is_weight ? TANDEM_OK
                     : tnd_backend_upload(loans->backend, (struct tandem_place){handle, 0}, host,
                                          bytes, error);
}

void tnd_test_give_back(struct tnd_test_loans *loans)
{
    while (loans->n > 0) {
        loans->n--;
        if (loans->list[loans->n].is_weight) {
            tnd_backend_forget(loans->backend, loans->list[loans->n].handle);
        } else {
            tnd_backend_unmap(loans->backend, loans->list[loans->n].handle);
        }
    }
}

enum tandem_status tnd_test_lend(const struct tnd_test_stage *stage, struct tnd_test_loans *loans,
                                 struct tandem_error *error)
{
    const tandem_tensor *node = stage->node;
    *loans = (struct tnd_test_loans){.backend = stage->backend};
    enum tandem_status status = lend(loans, node, NULL, 0, false, &loans->places.result, error);
    for (int i = 0; i < node->n_src && status == TANDEM_OK; i++) {
        const tandem_tensor *src = node->src[i];
        if (src != NULL) {
            bool is_weight = i == 0 && node->op == TANDEM_OP_MUL_MAT && src->root == src;
            status = lend(loans, src, NULL, 0, is_weight, &loans->places.src[i], error);
        }
    }
    if (status == TANDEM_OK) {
        status = lend(loans, NULL, stage->workspace, stage->workspace_bytes, false,
                      &loans->places.workspace, error);
    }
    if (status != TANDEM_OK) {
        tnd_test_give_back(loans);
    }
    return status;
}

/* Everything that was lent comes back, so that what a work must not touch can be compared. */
static enum tandem_status fetch(const struct tnd_test_loans *loans, uint64_t ticket,
                                struct tandem_error *error)
{
    for (int i = 0; i < loans->n; i++) {
        if (!loans->list[i].is_weight) {
            TND_TRY(tnd_backend_download(
                loans->backend, (struct tandem_place){loans->list[i].handle, 0},
                loans->list[i].host, loans->list[i].bytes, &ticket, error));
        }
    }
    return tnd_backend_sync(loans->backend, ticket, error);
}

static enum tandem_status run_on_device(const struct tnd_test_stage *stage,
                                        struct tandem_work *piece, struct tandem_error *error)
{
    struct tnd_test_loans loans = {.n = 0};
    uint64_t ticket = 0;
    if (tnd_backend_is_own(stage->backend)) {
        TND_TRY(tnd_test_lend(stage, &loans, error));
        piece->places = &loans.places;
    }
    enum tandem_status status = tnd_backend_submit(stage->backend, piece, &ticket, error);
    if (status == TANDEM_OK) {
        status = tnd_backend_is_own(stage->backend)
                     ? fetch(&loans, ticket, error)
                     : tnd_backend_sync(stage->backend, ticket, error);
    }
    tnd_test_give_back(&loans);
    return status;
}

int64_t tnd_test_rows(const tandem_tensor *node)
{
    return node->op == TANDEM_OP_MUL_MAT ? node->ne[0] : tnd_tensor_rows(node);
}

enum tandem_status tnd_test_run_stage(const struct tnd_test_stage *stage,
                                      struct tandem_error *error)
{
    bool whole = stage->row_begin == 0 && stage->row_end == 0;
    struct tandem_work piece = {.node = stage->node,
                                .task = (uint32_t)stage->task,
                                .row_begin = stage->row_begin,
                                .row_end = whole ? tnd_test_rows(stage->node) : stage->row_end,
                                .workspace = stage->workspace,
                                .workspace_bytes = stage->workspace_bytes,
                                .prepared = stage->prepared};
    if (tnd_backend_is_async(stage->backend)) {
        return run_on_device(stage, &piece, error);
    }
    int count = stage->n_workers < 1 ? 1 : stage->n_workers;
    return run_workers(stage, &piece, count < MAX_WORKERS ? count : MAX_WORKERS, error);
}

/* ---- tensors ---- */

tandem_tensor *tnd_test_leaf(tandem_context *context, enum tandem_type type, const int64_t *ne,
                             struct tnd_test_rng *rng)
{
    tandem_tensor *leaf = tandem_tensor_new(context, type, TANDEM_MAX_DIMS, ne);
    int64_t n = leaf != NULL ? tandem_tensor_elements(leaf) : 0;
    if (n == 0) {
        return leaf;
    }
    float *values = malloc((size_t)n * sizeof(float));
    tnd_test_fill(rng, values, n);
    (void)check_ok(tandem_quantize(type, values, leaf->data, n));
    free(values);
    return leaf;
}

tandem_tensor *tnd_test_node(tandem_context *context, tandem_tensor *result)
{
    struct tandem_error error = {0};
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, result);
    bool finished = check_status(tandem_graph_finish(graph, &error), TANDEM_OK, NULL, &error);
    return finished ? result : NULL;
}

tandem_tensor *tnd_test_product(tandem_context *context, enum tandem_type type, int64_t n,
                                int64_t k, int64_t m, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    tandem_tensor *w = tnd_test_leaf(context, type, (int64_t[]){k, n, 1, 1}, &rng);
    tandem_tensor *x = tnd_test_leaf(context, TANDEM_TYPE_F32, (int64_t[]){k, m, 1, 1}, &rng);
    return tnd_test_node(context, tandem_mul_mat(context, w, x));
}

void tnd_test_spoil(tandem_tensor *node)
{
    memset(node->data, 0x7B, tandem_tensor_bytes(node));
}
