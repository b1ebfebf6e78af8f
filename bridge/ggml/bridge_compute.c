/* SPDX-License-Identifier: MIT
 * Products that follow one another in a graph of the host become one graph of ours: `run`. Hosts
 * compute the same graph over and over at the same addresses, so runs are kept by these. */
#include "bridge/ggml/bridge_compute.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/ggml/bridge_host.h"
#include "bridge/ggml/bridge_team.h"
#include "bridge/ggml/bridge_weights.h"

enum { MOST_PRODUCTS = 16 /* of a run */, BUCKETS = 256, MOST_RUNS = 2048 };

struct run {
    struct run *next;
    uint64_t hash;
    int n;
    struct tnd_product products[MOST_PRODUCTS];
    tandem_context *context;
    tandem_graph *graph;
    tandem_plan *plan;
    bool was_computed;
    int32_t *ids[MOST_PRODUCTS]; /* dense copies, made for each computation; NULL: plain, or the
                                    same as those of a product before */
};
/* Products that are gathered for a run, and where their weights lie. */
struct batch {
    int n;
    struct tnd_product products[MOST_PRODUCTS];
    struct ggml_backend_buffer *buffers[MOST_PRODUCTS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tandem_runtime *runtime; /* opened at first use, for the rest of the process */
static struct run *runs[BUCKETS];
static int n_runs;
static int n_threads_wanted; /* 0: as the runtime has */
static int n_threads_now;

/* ---- the runtime ---- */

static void log_line(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    (void)user;
    (void)room;
    tnd_host_log(level == TANDEM_LOG_ERROR  ? GGML_LOG_ERROR
                 : level == TANDEM_LOG_WARN ? GGML_LOG_WARN
                                            : GGML_LOG_INFO,
                 "%s", text);
}

static bool open_runtime(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    if (runtime != NULL) {
        return true;
    }
    options.backends = "cpu"; /* devices belong to the host */
    options.log = log_line;
    options.team = tnd_bridge_team;
    options.ignore_drift = true; /* the host's threads would be taken for slowness of ours */
    if (tandem_runtime_open(&options, &runtime, &error) != TANDEM_OK) {
        tnd_host_log(GGML_LOG_ERROR, "%s", error.text);
        return false;
    }
    tandem_runtime_pause(
        runtime); /* threads of our own, if there are, leave the CPUs to the host */
    n_threads_now = tandem_runtime_threads(runtime);
    return true;
}

/* ---- runs ---- */

static void free_run(struct run *run)
{
    tandem_plan_free(run->plan);
    tandem_context_free(run->context);
    for (int i = 0; i < run->n; i++) {
        free(run->ids[i]);
    }
    free(run);
}

static void drop_runs(void)
{
    for (int i = 0; i < BUCKETS; i++) {
        while (runs[i] != NULL) {
            struct run *run = runs[i];
            runs[i] = run->next;
            free_run(run);
        }
    }
    n_runs = 0;
}

/* The host frees a buffer: nothing of ours may point into it any more. */
static void on_free(struct ggml_backend_buffer *buffer)
{
    pthread_mutex_lock(&lock);
    drop_runs();
    void (*free_buffer)(struct ggml_backend_buffer *) = tnd_weights_forget(runtime, buffer);
    pthread_mutex_unlock(&lock);
    buffer->free_buffer = free_buffer;
    if (free_buffer != NULL) {
        free_buffer(buffer);
    }
}

/* {ne0, rows} of plain products, {ne0, rows of a token, tokens} of experts. */
static tandem_tensor *borrow(const struct run *run, int i, int64_t ne0, int64_t of_token,
                             void *data)
{
    const struct tnd_product *product = &run->products[i];
    bool is_plain = product->n_experts == 0;
    return tandem_tensor_borrow(
        run->context, TANDEM_TYPE_F32, is_plain ? 2 : 3,
        (const int64_t[]){ne0, is_plain ? product->m : of_token, product->m}, data,
        sizeof(float) * (size_t)ne0 * (size_t)(of_token * product->m));
}

/* Products of one X share its tensor, and so what is prepared of it. */
static tandem_tensor *tensor_of_x(struct run *run, tandem_tensor **xs, int i)
{
    const struct tnd_product *product = &run->products[i];
    for (int j = 0; j < i; j++) {
        const struct tnd_product *other = &run->products[j];
        if (other->x == product->x && other->k == product->k && other->m == product->m &&
            other->n_used_x == product->n_used_x &&
            (other->n_experts == 0) == (product->n_experts == 0)) {
            return xs[j];
        }
    }
    union {
        const void *from;
        void *to;
    } x = {product->x}; /* nobody writes to it: it is an operand of products alone */
    return borrow(run, i, product->k, product->n_used_x, x.to);
}

static bool has_same_ids(const struct tnd_product *a, const struct tnd_product *b)
{
    return a->ids == b->ids && a->ids_stride == b->ids_stride && a->n_used == b->n_used &&
           a->m == b->m;
}

/* NULL: no memory. */
static tandem_tensor *tensor_of_ids(struct run *run, tandem_tensor **ids, int i)
{
    const struct tnd_product *product = &run->products[i];
    for (int j = 0; j < i; j++) {
        if (ids[j] != NULL && has_same_ids(&run->products[j], product)) {
            return ids[j];
        }
    }
    size_t bytes = sizeof(int32_t) * (size_t)(product->n_used * product->m);
    run->ids[i] = malloc(bytes);
    return run->ids[i] == NULL
               ? NULL
               : tandem_tensor_borrow(run->context, TANDEM_TYPE_I32, 2,
                                      (const int64_t[]){product->n_used, product->m}, run->ids[i],
                                      bytes);
}

static void copy_ids(struct run *run)
{
    for (int i = 0; i < run->n; i++) {
        const struct tnd_product *product = &run->products[i];
        const char *from = product->ids;
        for (int64_t m = 0; run->ids[i] != NULL && m < product->m; m++) {
            memcpy(run->ids[i] + m * product->n_used, from + m * product->ids_stride,
                   sizeof(int32_t) * (size_t)product->n_used);
        }
    }
}

static enum tandem_status build(struct run *run, const struct batch *batch,
                                struct tandem_error *error)
{
    struct tandem_context_options options = TANDEM_CONTEXT_OPTIONS_INIT;
    tandem_tensor *xs[MOST_PRODUCTS];
    tandem_tensor *ids[MOST_PRODUCTS] = {NULL};
    options.chunk_bytes = 8192;
    enum tandem_status status = tandem_context_new(&options, &run->context, error);
    if (status != TANDEM_OK) {
        return status;
    }
    run->graph = tandem_graph_new(run->context);
    for (int i = 0; i < batch->n; i++) {
        const struct tnd_product *product = &batch->products[i];
        tandem_tensor *w = tnd_weights_get(product, batch->buffers[i], on_free);
        ids[i] = product->n_experts > 0 ? tensor_of_ids(run, ids, i) : NULL;
        if (w == NULL || (product->n_experts > 0 && ids[i] == NULL)) {
            return TANDEM_E_MEMORY;
        }
        xs[i] = tensor_of_x(run, xs, i);
        tandem_tensor *y = borrow(run, i, product->n, product->n_used, product->y);
        tandem_tensor *node = product->n_experts > 0
                                  ? tandem_mul_mat_id(run->context, w, xs[i], ids[i])
                                  : tandem_mul_mat(run->context, w, xs[i]);
        tandem_graph_add(run->graph, tandem_cpy(run->context, node, y));
    }
    status = tandem_graph_finish(run->graph, error);
    return status == TANDEM_OK ? tandem_runtime_plan(runtime, run->graph, &run->plan, error)
                               : status;
}

static uint64_t hash_of(const struct batch *batch)
{
    uint64_t hash = (uint64_t)batch->n;
    for (int i = 0; i < batch->n; i++) {
        const struct tnd_product *p = &batch->products[i];
        const uint64_t parts[] = {(uintptr_t)p->w,   (uintptr_t)p->x, (uintptr_t)p->y,
                                  (uintptr_t)p->ids, (uint64_t)p->m,  (uint64_t)p->n_used};
        for (size_t j = 0; j < sizeof(parts) / sizeof(parts[0]); j++) {
            hash = (hash ^ parts[j]) * UINT64_C(0x9E3779B97F4A7C15);
            hash ^= hash >> 32;
        }
    }
    return hash;
}

static struct run *find_run(const struct batch *batch, uint64_t hash)
{
    for (struct run *run = runs[hash % BUCKETS]; run != NULL; run = run->next) {
        if (run->hash == hash && run->n == batch->n &&
            memcmp(run->products, batch->products, (size_t)batch->n * sizeof(batch->products[0])) ==
                0) {
            return run;
        }
    }
    return NULL;
}

static struct run *get_run(const struct batch *batch, struct tandem_error *error)
{
    uint64_t hash = hash_of(batch);
    struct run *run = find_run(batch, hash);
    if (run != NULL) {
        return run;
    }
    if (n_runs >= MOST_RUNS) {
        drop_runs();
    }
    run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return NULL;
    }
    run->hash = hash;
    run->n = batch->n;
    memcpy(run->products, batch->products, (size_t)batch->n * sizeof(batch->products[0]));
    if (build(run, batch, error) != TANDEM_OK) {
        free_run(run);
        return NULL;
    }
    run->next = runs[hash % BUCKETS];
    runs[hash % BUCKETS] = run;
    n_runs++;
    return run;
}

/* ---- computing ---- */

static int compute_batch(struct batch *batch)
{
    struct tandem_error error = {0};
    if (batch->n == 0) {
        return GGML_STATUS_SUCCESS;
    }
    struct run *run = get_run(batch, &error);
    batch->n = 0;
    if (run == NULL) {
        tnd_host_log(GGML_LOG_ERROR, "%s", error.text[0] != '\0' ? error.text : "out of memory");
        return GGML_STATUS_ALLOC_FAILED;
    }
    copy_ids(run);
    if (tandem_runtime_compute(runtime, run->graph, run->plan, NULL, &error) != TANDEM_OK) {
        tnd_host_log(GGML_LOG_ERROR, "%s", error.text);
        return GGML_STATUS_FAILED;
    }
    for (int i = 0; i < run->n && !run->was_computed; i++) {
        tnd_weights_let_go(&run->products[i], batch->buffers[i]);
    }
    run->was_computed = true;
    return GGML_STATUS_SUCCESS;
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* Whether a product must wait for one of the batch: it reads or overwrites its memory. */
static bool depends_on(const struct batch *batch, const struct tnd_product *product)
{
    size_t x_bytes = tnd_product_x_bytes(product);
    size_t y_bytes = tnd_product_y_bytes(product);
    for (int i = 0; i < batch->n; i++) {
        const struct tnd_product *other = &batch->products[i];
        size_t other_y = tnd_product_y_bytes(other);
        if (overlap(product->x, x_bytes, other->y, other_y) ||
            overlap(product->ids, tnd_product_ids_bytes(product), other->y, other_y) ||
            overlap(product->y, y_bytes, other->y, other_y) ||
            overlap(product->y, y_bytes, other->x, tnd_product_x_bytes(other))) {
            return true;
        }
    }
    return false;
}

static int add_node(struct batch *batch, const struct ggml_tensor *node)
{
    struct tnd_product product;
    int status = GGML_STATUS_SUCCESS;
    if (!tnd_product_read(node, &product)) {
        return tnd_product_is_named(tnd_host.ggml_op_name(node->op)) ? GGML_STATUS_FAILED
                                                                     : GGML_STATUS_SUCCESS;
    }
    if (!tnd_product_is_inside(node, &product)) {
        tnd_host_log(GGML_LOG_ERROR, "a product has operands outside of host memory");
        return GGML_STATUS_FAILED;
    }
    if (batch->n == MOST_PRODUCTS || depends_on(batch, &product)) {
        status = compute_batch(batch);
    }
    batch->products[batch->n] = product;
    batch->buffers[batch->n] = node->src[0]->buffer;
    batch->n++;
    return status;
}

static void adapt_threads(void)
{
    int n = n_threads_wanted;
    if (n > 0 && n != n_threads_now && tandem_runtime_set_threads(runtime, n) == TANDEM_OK) {
        n_threads_now = n;
        drop_runs(); /* their plans are for the old number */
    }
}

static int compute_nodes(struct ggml_cgraph *graph)
{
    struct batch batch = {.n = 0};
    int status = GGML_STATUS_SUCCESS;
    int n = tnd_host.ggml_graph_n_nodes(graph);
    for (int i = 0; i < n && status == GGML_STATUS_SUCCESS; i++) {
        status = add_node(&batch, tnd_host.ggml_graph_node(graph, i));
    }
    return status == GGML_STATUS_SUCCESS ? compute_batch(&batch) : status;
}

int tnd_bridge_compute(struct ggml_cgraph *graph)
{
    int status = GGML_STATUS_FAILED;
    pthread_mutex_lock(&lock);
    if (open_runtime()) {
        adapt_threads();
        tandem_runtime_resume(runtime);
        status = compute_nodes(graph);
        tandem_runtime_pause(runtime);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* As the host has, up to one a core; 0: as many as that. */
static void want_threads(int n_threads)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    int most = tandem_runtime_describe(runtime, &info) == TANDEM_OK ? info.n_cores : 1;
    n_threads_wanted = n_threads > 0 && n_threads < most ? n_threads : most;
    tnd_bridge_team_set_size(n_threads > 0 ? n_threads : n_threads_wanted);
}

void tnd_bridge_set_threads(int n_threads)
{
    pthread_mutex_lock(&lock);
    if (n_threads > 0 && open_runtime()) {
        want_threads(n_threads);
    }
    pthread_mutex_unlock(&lock);
}

int tnd_bridge_describe(struct tandem_runtime_info *out)
{
    int n_threads = 0;
    pthread_mutex_lock(&lock);
    if (open_runtime() && tandem_runtime_describe(runtime, out) == TANDEM_OK) {
        if (n_threads_wanted == 0) {
            want_threads(0);
        }
        n_threads = n_threads_wanted;
    }
    pthread_mutex_unlock(&lock);
    return n_threads;
}
