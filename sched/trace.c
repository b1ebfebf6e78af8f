/* SPDX-License-Identifier: MIT
 * Writing traces in the Trace Event Format ("Trace Event Format", Chromium project: complete
 * events, "ph": "X", times in microseconds). One lane ("tid") a backend. */
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

/* Names come from programs and files; what JSON or a viewer could stumble over becomes '_'. */
static void add_name(struct tnd_text *text, const char *name)
{
    for (; *name != '\0'; name++) {
        bool plain = *name >= ' ' && *name <= '~' && *name != '"' && *name != '\\';
        tnd_text_add_char(text, plain ? *name : '_');
    }
}

static void add_step(struct tnd_trace *trace, const struct tandem_graph *graph,
                     const struct tnd_registry *registry, const struct tnd_step_time *time)
{
    TND_ASSERT(time->node >= 0 && time->node < graph->n_nodes && time->kind <= TND_STEP_STREAM);
    const struct tandem_tensor *node = graph->nodes[time->node];
    struct tnd_text *text = &trace->text;
    const char *backend = tnd_registry_name(registry, time->backend);
    double begin_us = (double)(int64_t)(time->begin_ns - trace->origin_ns) / 1000.0;
    double took_us = (double)(time->end_ns - time->begin_ns) / 1000.0;
    static const char *const transfers[] = {"", "upload for ", "download for ",
                                            "stream of weights for "};
    tnd_text_add(text, text->n > 0 ? ",\n{\"name\":\"" : "{\"name\":\"");
    tnd_text_add(text, transfers[time->kind]);
    add_name(text, tandem_op_name(node->op));
    tnd_text_add(text, " ");
    add_name(text, node->name);
    tnd_text_printf(text, "\",\"cat\":\"%s%s\",\"ph\":\"X\",\"pid\":1,\"tid\":\"%s\",\"ts\":",
                    tandem_stage_name((enum tandem_stage)time->stage),
                    time->kind != TND_STEP_WORK ? ",transfer" : "",
                    backend != NULL ? backend : "none");
    tnd_text_add_double(text, begin_us);
    tnd_text_add(text, ",\"dur\":");
    tnd_text_add_double(text, took_us);
    if (time->kind != TND_STEP_WORK) {
        tnd_text_printf(text, ",\"args\":{\"bytes\":%zu}}", time->bytes);
        return;
    }
    tnd_text_printf(text, ",\"args\":{\"ne\":[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]}}",
                    node->ne[0], node->ne[1], node->ne[2], node->ne[3]);
}

void tnd_trace_add(struct tnd_trace *trace, const struct tandem_graph *graph,
                   const struct tnd_registry *registry, const struct tnd_step_time *times, int n)
{
    pthread_mutex_lock(&trace->lock);
    if (!trace->has_origin && n > 0) {
        trace->origin_ns = times[0].begin_ns;
        trace->has_origin = true;
    }
    for (int i = 0; i < n && trace->text.n < MAX_BYTES; i++) {
        add_step(trace, graph, registry, &times[i]);
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
