/* SPDX-License-Identifier: MIT
 * Writing traces in the Trace Event Format ("Trace Event Format", Chromium project: complete
 * events, "ph": "X", times in microseconds). A row ("tid") for each lane: what a backend computes,
 * and for either direction of its transfers; predicted spans are a process of their own. */
#include "sched/trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

enum { MAX_BYTES = 256 << 20 };

struct tnd_trace {
    char *path;
    pthread_mutex_t lock; /* guards the members below */
    struct tnd_text text;
    uint64_t origin_ns; /* begin of the first step */
    bool has_origin;
    bool has_names; /* of the two processes */
};

enum tandem_status tnd_trace_new(const char *path, struct tnd_trace **out_trace,
                                 struct tandem_error *error)
{
    struct tnd_trace *trace = tnd_calloc(1, sizeof(*trace));
    char *copy = tnd_strdup(path);
    if (trace == NULL || copy == NULL || pthread_mutex_init(&trace->lock, NULL) != 0) {
        tnd_free(trace);
        tnd_free(copy);
        return tnd_error_set(error, TANDEM_E_MEMORY, "trace", 0, 0, "trace: out of memory");
    }
    trace->path = copy;
    *out_trace = trace;
    return TANDEM_OK;
}

/* Names come from programs and files; characters that could break JSON or a viewer become '_'. */
static void add_name(struct tnd_text *text, const char *name)
{
    for (; *name != '\0'; name++) {
        bool plain = *name >= ' ' && *name <= '~' && *name != '"' && *name != '\\';
        tnd_text_add_char(text, plain ? *name : '_');
    }
}

/* Processes of the viewer: measured and predicted times. */
enum { MEASURED = 1, PREDICTED = 2 };

struct event {
    const char *what; /* prefix of the operation's name */
    const struct tandem_tensor *node;
    int part; /* -1: none */
    int stage;
    int process;
    int slot;
    enum tandem_lane lane;
    double begin_us, took_us;
};

/* Starts an event; the caller adds its arguments. */
static void add_event(struct tnd_text *text, const struct tnd_registry *registry,
                      const struct event *event)
{
    static const char *const lanes[TANDEM_LANES] = {"", " upload", " download"};
    const char *backend = tnd_registry_name(registry, event->slot);
    tnd_text_add(text, text->n > 0 ? ",\n{\"name\":\"" : "{\"name\":\"");
    tnd_text_add(text, event->what);
    add_name(text, tandem_op_name(event->node->op));
    tnd_text_add(text, " ");
    add_name(text, event->node->name);
    if (event->part >= 0) {
        tnd_text_printf(text, " part %d", event->part);
    }
    tnd_text_printf(text, "\",\"cat\":\"%s%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":\"%s%s\",\"ts\":",
                    tandem_stage_name((enum tandem_stage)event->stage),
                    event->lane != TANDEM_LANE_COMPUTE ? ",transfer" : "", event->process,
                    backend != NULL ? backend : "none", lanes[event->lane]);
    tnd_text_add_double(text, event->begin_us);
    tnd_text_add(text, ",\"dur\":");
    tnd_text_add_double(text, event->took_us);
}

/* With several NUMA nodes: adds the rows at which the share of each node begins, and the end. */
static void add_node_rows(struct tnd_text *text, struct tnd_pool *pool, int n_threads,
                          int64_t n_rows)
{
    int64_t rows[TND_CHUNK_NODES + 1];
    int n = tnd_pool_node_rows(pool, n_threads, n_rows, rows);
    for (int i = 0; n > 0 && i <= n; i++) {
        tnd_text_printf(text, "%s%" PRId64 "%s", i == 0 ? ",\"cpu_node_rows\":[" : ",", rows[i],
                        i == n ? "]" : "");
    }
}

static void add_step(struct tnd_trace *trace, const struct tandem_graph *graph,
                     const struct tnd_registry *registry, const struct tandem_plan *plan,
                     struct tnd_pool *pool, const struct tnd_step_time *time)
{
    TND_ASSERT(time->node >= 0 && time->node < graph->n_nodes && time->kind <= TND_STEP_STREAM);
    static const char *const transfers[] = {"", "upload for ", "download for ",
                                            "stream of weights for "};
    static const enum tandem_lane lanes[] = {TANDEM_LANE_COMPUTE, TANDEM_LANE_UPLOAD,
                                             TANDEM_LANE_DOWNLOAD, TANDEM_LANE_UPLOAD};
    const struct tandem_tensor *node = graph->nodes[time->node];
    bool is_join = time->kind == TND_STEP_WORK && time->role == TND_ITEM_JOIN;
    const struct event event = {
        .what = is_join ? "join of " : transfers[time->kind],
        .node = node,
        .part = time->part,
        .stage = time->stage,
        .process = MEASURED,
        .slot = time->backend,
        .lane = lanes[time->kind],
        .begin_us = (double)(int64_t)(time->begin_ns - trace->origin_ns) / 1000.0,
        .took_us = (double)(time->end_ns - time->begin_ns) / 1000.0,
    };
    add_event(&trace->text, registry, &event);
    if (time->kind != TND_STEP_WORK) {
        tnd_text_printf(&trace->text, ",\"args\":{\"bytes\":%zu}}", time->bytes);
        return;
    }
    tnd_text_printf(&trace->text,
                    ",\"args\":{\"ne\":[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]",
                    node->ne[0], node->ne[1], node->ne[2], node->ne[3]);
    if (graph->n_chains > 1) {
        tnd_text_printf(&trace->text, ",\"chain\":%d", (int)node->chain);
    }
    if (plan != NULL && pool != NULL && node->op == TANDEM_OP_MUL_MAT &&
        time->backend == TANDEM_BACKEND_CPU && time->stage == TANDEM_STAGE_COMPUTE) {
        add_node_rows(&trace->text, pool, plan->nodes[time->node].n_threads, node->src[0]->ne[1]);
    }
    tnd_text_add(&trace->text, "}}");
}

/* Adds a predicted span; its times count from the start of the run. */
static void add_span(struct tnd_trace *trace, const struct tandem_graph *graph,
                     const struct tnd_registry *registry, const struct tandem_plan_span *span,
                     uint64_t begin_ns)
{
    const struct event event = {
        .what = "",
        .node = graph->nodes[span->node],
        .part = span->part,
        .stage = span->stage,
        .process = PREDICTED,
        .slot = span->backend,
        .lane = (enum tandem_lane)span->lane,
        .begin_us =
            (double)(int64_t)(begin_ns - trace->origin_ns) / 1000.0 + (double)span->begin_us,
        .took_us = (double)span->end_us - (double)span->begin_us,
    };
    add_event(&trace->text, registry, &event);
    tnd_text_add(&trace->text, "}");
}

/* Adds the names of the two processes, before the first predicted span. */
static void add_names(struct tnd_trace *trace)
{
    static const char *const names[] = {"measured", "predicted"};
    for (int i = 0; i < 2 && !trace->has_names; i++) {
        tnd_text_add(&trace->text, trace->text.n > 0 ? ",\n" : "");
        tnd_text_printf(&trace->text,
                        "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,"
                        "\"args\":{\"name\":\"%s\"}}",
                        MEASURED + i, names[i]);
    }
    trace->has_names = true;
}

void tnd_trace_add(struct tnd_trace *trace, const struct tandem_graph *graph,
                   const struct tandem_plan *plan, const struct tnd_registry *registry,
                   struct tnd_pool *pool, const struct tnd_step_time *times, int n)
{
    pthread_mutex_lock(&trace->lock);
    if (!trace->has_origin && n > 0) {
        trace->origin_ns = times[0].begin_ns;
        trace->has_origin = true;
    }
    for (int i = 0; i < n && trace->text.n < MAX_BYTES; i++) {
        add_step(trace, graph, registry, plan, pool, &times[i]);
    }
    int n_spans = plan != NULL && n > 0 ? tandem_plan_span_count(plan) : 0;
    for (int i = 0; i < n_spans && trace->text.n < MAX_BYTES; i++) {
        add_names(trace);
        add_span(trace, graph, registry, tandem_plan_span(plan, i), times[0].begin_ns);
    }
    pthread_mutex_unlock(&trace->lock);
}

enum tandem_status tnd_trace_close(struct tnd_trace *trace, struct tandem_error *error)
{
    if (trace == NULL) {
        return TANDEM_OK;
    }
    struct tnd_text file = TND_TEXT_INIT;
    tnd_text_add(&file, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    tnd_text_add_bytes(&file, tnd_text_string(&trace->text), trace->text.n);
    tnd_text_add(&file, "\n]}\n");
    enum tandem_status status;
    if (trace->text.failed || file.failed) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, trace->path, 0, 0, "trace: out of memory");
    } else {
        status = tnd_file_write_atomic(trace->path, file.bytes, file.n, error);
    }
    tnd_text_fini(&file);
    tnd_text_fini(&trace->text);
    pthread_mutex_destroy(&trace->lock);
    tnd_free(trace->path);
    tnd_free(trace);
    return status;
}
