/* SPDX-License-Identifier: MIT
 * Consecutive nodes of a host graph become one graph of ours, a run. Hosts compute the same graph
 * again and again at the same addresses, so runs are cached by addresses. */
#include "bridge/ggml/bridge_compute.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bridge/ggml/bridge_host.h"
#include "bridge/ggml/bridge_pace.h"
#include "bridge/ggml/bridge_run.h"
#include "bridge/ggml/bridge_team.h"
#include "bridge/ggml/bridge_weights.h"

enum { BUCKETS = 256, MOST_RUNS = 2048, THREAD_NUMBERS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tandem_runtime *runtime; /* opened at first use; never closed */
static bool is_useless;         /* it cannot be opened */
static bool has_devices;
static struct tnd_bridge_run *runs[BUCKETS];
static int n_runs;
static int n_threads_wanted; /* 0: the runtime's default */
static int n_threads_now;
static int n_threads_host; /* 0: unknown */
static bool is_trial;      /* computing for bridge_choice.c, between products of the host */
static struct {
    bool is_there;
    int n_threads; /* of the host */
    struct tnd_pace pace;
} paces[THREAD_NUMBERS]; /* hosts often use different numbers for prompts and generation */
static struct tnd_pace *pace = &paces[0].pace; /* for n_threads_host */

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

static bool host_has_gpu(void)
{
    return tnd_host.ggml_backend_dev_by_type(GGML_DEVICE_GPU) != NULL ||
           tnd_host.ggml_backend_dev_by_type(GGML_DEVICE_IGPU) != NULL;
}

/* By default no devices: a host with a GPU uses its memory itself. */
static const char *wanted_backends(void)
{
    const char *wanted = secure_getenv("TANDEM_BRIDGE_BACKENDS");
    if (wanted != NULL && wanted[0] != '\0') {
        return wanted;
    }
    return host_has_gpu() ? "cpu" : "auto";
}

static bool open_with(const char *backends)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    struct tandem_error error = {0};
    options.backends = strcmp(backends, "all") == 0 ? NULL : backends;
    options.log = log_line;
    options.team = tnd_bridge_team;
    options.ignore_drift = true; /* the host's threads would look like drift of ours */
    if (tandem_runtime_open(&options, &runtime, &error) != TANDEM_OK) {
        tnd_host_log(GGML_LOG_ERROR, "%s", error.text);
        return false;
    }
    has_devices = tandem_runtime_describe(runtime, &info) == TANDEM_OK && info.n_devices > 0;
    for (int i = 2; has_devices && i < tandem_runtime_backend_count(runtime); i++) {
        tnd_host_log(GGML_LOG_INFO, "computes by %s, too", tandem_runtime_backend_name(runtime, i));
    }
    tandem_runtime_pause(
        runtime); /* our own threads, if there are any, leave the CPUs to the host in between */
    n_threads_now = tandem_runtime_threads(runtime);
    return true;
}

/* Opens the runtime once: if it fails, every later attempt would fail and log again. */
static bool open_runtime(void)
{
    if (runtime == NULL && !is_useless) {
        const char *backends = wanted_backends();
        bool is_open = open_with(backends);
        if (!is_open && strcmp(backends, "cpu") != 0) {
            tnd_host_log(GGML_LOG_WARN, "the CPU alone serves, without backends '%s'", backends);
            is_open = open_with("cpu");
        }
        is_useless = !is_open;
    }
    return runtime != NULL;
}

/* ---- runs ---- */

static void drop_runs(void)
{
    for (int i = 0; i < BUCKETS; i++) {
        while (runs[i] != NULL) {
            struct tnd_bridge_run *run = runs[i];
            runs[i] = run->next;
            tnd_bridge_run_free(run);
        }
    }
    n_runs = 0;
}

/* Called when the host frees a buffer: drops everything that refers to its memory. */
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

static struct tnd_bridge_run *get_run(const struct tnd_bridge_batch *batch,
                                      struct tandem_error *error)
{
    uint64_t hash = tnd_bridge_batch_hash(batch);
    struct tnd_bridge_run *run = runs[hash % BUCKETS];
    while (run != NULL && !tnd_bridge_run_is_of(run, batch, hash)) {
        run = run->next;
    }
    if (run != NULL) {
        return run;
    }
    if (n_runs >= MOST_RUNS) {
        drop_runs();
    }
    run = tnd_bridge_run_new(runtime, batch, on_free, error);
    if (run != NULL) {
        run->next = runs[hash % BUCKETS];
        runs[hash % BUCKETS] = run;
        n_runs++;
    }
    return run;
}

/* ---- computing ---- */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Computes on the threads that the pace has chosen from earlier runs, and records this run's
 * time. */
static enum tandem_status compute_run(struct tnd_bridge_run *run, struct tandem_error *error)
{
    int class_of_tokens = tnd_pace_class_of(run->m);
    double begin_s = now_s();
    tnd_bridge_team_set_size(is_trial ? n_threads_wanted : n_threads_host);
    tnd_bridge_team_set_way(is_trial ? TND_WAY_TEAM : tnd_pace_way(pace, class_of_tokens));
    /* a cached plan is never replaced, while the observer may stop using a device at any time */
    enum tandem_status status =
        tandem_runtime_compute(runtime, run->graph, has_devices ? NULL : run->plan, NULL, error);
    if (!run->was_computed || is_trial) {
        tnd_pace_pause(pace); /* this run packs weights */
    } else if (run->work > 0) {
        tnd_pace_note(pace, class_of_tokens, begin_s, now_s(), run->work);
    }
    return status;
}

static int compute_batch(struct tnd_bridge_batch *batch)
{
    struct tandem_error error = {0};
    if (batch->n == 0) {
        return GGML_STATUS_SUCCESS;
    }
    struct tnd_bridge_run *run = get_run(batch, &error);
    batch->n = 0;
    if (run == NULL) {
        tnd_host_log(GGML_LOG_ERROR, "%s", error.text[0] != '\0' ? error.text : "out of memory");
        return GGML_STATUS_ALLOC_FAILED;
    }
    tnd_bridge_run_copy_ids(run);
    if (compute_run(run, &error) != TANDEM_OK) {
        tnd_host_log(GGML_LOG_ERROR, "%s", error.text);
        return GGML_STATUS_FAILED;
    }
    for (int i = 0; i < run->n && !run->was_computed; i++) {
        if (run->nodes[i].kind == TND_NODE_PRODUCT) {
            tnd_weights_let_go(&run->nodes[i].product, batch->buffers[i]);
        }
    }
    run->was_computed = true;
    return GGML_STATUS_SUCCESS;
}

static int add_node(struct tnd_bridge_batch *batch, const struct ggml_tensor *node)
{
    struct tnd_node known;
    int status = GGML_STATUS_SUCCESS;
    if (tnd_node_is_view(node)) {
        return GGML_STATUS_SUCCESS;
    }
    if (!tnd_node_read(node, &known)) {
        return GGML_STATUS_FAILED;
    }
    if (!tnd_node_is_inside(node, &known)) {
        tnd_host_log(GGML_LOG_ERROR, "a node has operands outside of host memory");
        return GGML_STATUS_FAILED;
    }
    if (!tnd_bridge_batch_takes(batch, &known)) {
        status = compute_batch(batch);
    }
    batch->nodes[batch->n] = known;
    batch->buffers[batch->n] = node->src[0]->buffer;
    batch->n++;
    return status;
}

static void adapt_threads(void)
{
    int n = n_threads_wanted;
    if (n > 0 && n != n_threads_now && tandem_runtime_set_threads(runtime, n) == TANDEM_OK) {
        n_threads_now = n;
        drop_runs(); /* their plans are for the old number of threads */
    }
    int i = 0;
    while (i < THREAD_NUMBERS - 1 && paces[i].is_there && paces[i].n_threads != n_threads_host) {
        i++;
    }
    pace = &paces[i].pace;
    if (!paces[i].is_there || paces[i].n_threads != n_threads_host) {
        tnd_pace_fini(pace);
        paces[i].is_there = true;
        paces[i].n_threads = n_threads_host;
        tnd_pace_init(pace, tnd_bridge_team_is_there(), n_threads_host > n_threads_wanted);
    }
}

static int compute_nodes(struct ggml_cgraph *graph)
{
    struct tnd_bridge_batch batch;
    batch.n = 0;
    int status = GGML_STATUS_SUCCESS;
    int n = tnd_host.ggml_graph_n_nodes(graph);
    for (int i = 0; i < n && status == GGML_STATUS_SUCCESS; i++) {
        status = add_node(&batch, tnd_host.ggml_graph_node(graph, i));
    }
    return status == GGML_STATUS_SUCCESS ? compute_batch(&batch) : status;
}

int tnd_bridge_compute(struct ggml_cgraph *graph, bool is_a_trial)
{
    int status = GGML_STATUS_FAILED;
    pthread_mutex_lock(&lock);
    if (open_runtime()) {
        is_trial = is_a_trial;
        adapt_threads();
        tandem_runtime_resume(runtime);
        status = compute_nodes(graph);
        tandem_runtime_pause(runtime);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- weights while they are loaded ---- */

/* Smaller matrices are packed by their first use, several at a time: the system maps single ones
 * with small pages, and packing those of a 107M model one by one cost generation 15 %. */
static const size_t LEAST_PACKED_BYTES = (size_t)2 << 20;

static void want_threads(int n_threads);

static void pack(struct ggml_backend_buffer *buffer, const struct tnd_product *product)
{
    if (n_threads_wanted == 0) {
        want_threads(0);
    }
    tnd_bridge_team_set_size(n_threads_wanted);
    tnd_bridge_team_set_way(TND_WAY_TEAM);
    tandem_runtime_resume(runtime);
    tnd_weights_pack(runtime, product, buffer, on_free);
    tandem_runtime_pause(runtime);
    tnd_pace_pause(pace);
}

void tnd_bridge_weights_mapped(struct ggml_backend_buffer *buffer, const struct ggml_tensor *tensor)
{
    struct tnd_product product;
    if (!tnd_product_of_weights(tensor, &product) ||
        tnd_product_w_bytes(&product) < LEAST_PACKED_BYTES || !tnd_weights_is_mapped(&product)) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (open_runtime()) {
        pack(buffer, &product);
    }
    pthread_mutex_unlock(&lock);
}

void tnd_bridge_weights_set(struct ggml_backend_buffer *buffer, const struct ggml_tensor *tensor,
                            size_t offset, size_t size)
{
    struct tnd_product product;
    pthread_mutex_lock(&lock);
    if (runtime != NULL &&
        tnd_weights_forget_bytes(runtime, buffer, (const char *)tensor->data + offset, size)) {
        drop_runs();
    }
    if (offset == 0 && tnd_product_of_weights(tensor, &product) && size >= LEAST_PACKED_BYTES &&
        size == tnd_product_w_bytes(&product) && open_runtime()) {
        pack(buffer, &product);
    }
    pthread_mutex_unlock(&lock);
}

/* As many threads as the host uses, at most one per core; 0: one per core. */
static void want_threads(int n_threads)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    int most = tandem_runtime_describe(runtime, &info) == TANDEM_OK ? info.n_cores : 1;
    n_threads_wanted = n_threads > 0 && n_threads < most ? n_threads : most;
    n_threads_host = n_threads > 0 ? n_threads : n_threads_wanted;
}

void tnd_bridge_set_threads(int n_threads)
{
    pthread_mutex_lock(&lock);
    if (n_threads > 0 && open_runtime()) {
        want_threads(n_threads);
    }
    pthread_mutex_unlock(&lock);
}

tandem_runtime *tnd_bridge_runtime(void)
{
    pthread_mutex_lock(&lock);
    (void)open_runtime();
    pthread_mutex_unlock(&lock);
    return runtime;
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
