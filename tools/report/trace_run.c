/* SPDX-License-Identifier: MIT
 * Reading traces in the Trace Event Format, as sched/trace.c writes them. */
#include "tools/report/trace_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/json_pull.h"

enum { MAX_EVENTS = 1 << 22, PREDICTED = 2 };

struct reading {
    struct tnd_json json;
    struct tnd_trace_run run;
    int capacity;
    bool has_predicted; /* of the current run: the next step begins a new one */
};

/* ---- the file ---- */

static enum tandem_status wrong(const struct reading *r, const char *what,
                                struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, r->json.name, r->json.at - r->json.begin, 0,
                         "%.150s: byte %lld: %s", r->json.name,
                         (long long)(r->json.at - r->json.begin), what);
}

static enum tandem_status find_lane(struct reading *r, const char *name, int *out,
                                    struct tandem_error *error)
{
    struct tnd_trace_run *run = &r->run;
    int at = 0;
    while (at < run->n_lanes && strcmp(run->lanes[at].name, name) != 0) {
        at++;
    }
    if (at == TND_TRACE_LANES) {
        return tnd_error_set(error, TANDEM_E_LIMIT, r->json.name, at + 1, TND_TRACE_LANES,
                             "%.150s: more than %d lanes in one run", r->json.name,
                             TND_TRACE_LANES);
    }
    if (at == run->n_lanes) {
        snprintf(run->lanes[run->n_lanes++].name, TND_TRACE_LANE, "%s", name);
    }
    *out = at;
    return TANDEM_OK;
}

static enum tandem_status append(struct reading *r, const struct tnd_trace_event *event,
                                 const char *lane, struct tandem_error *error)
{
    struct tnd_trace_run *run = &r->run;
    struct tnd_trace_event added = *event;
    if (r->has_predicted && !event->is_predicted) { /* the previous run has ended */
        run->n = 0;
        run->n_lanes = 0;
        r->has_predicted = false;
    }
    r->has_predicted = r->has_predicted || event->is_predicted;
    TND_TRY(find_lane(r, lane, &added.lane, error));
    if (run->n == r->capacity) {
        int capacity = r->capacity > 0 ? 2 * r->capacity : 1024;
        if (capacity > MAX_EVENTS) {
            return tnd_error_set(error, TANDEM_E_LIMIT, r->json.name, capacity, MAX_EVENTS,
                                 "%.150s: more than %d steps in one run", r->json.name, MAX_EVENTS);
        }
        void *grown = tnd_realloc(run->events, (size_t)r->capacity * sizeof(*run->events),
                                  (size_t)capacity * sizeof(*run->events));
        if (grown == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, r->json.name, capacity, 0,
                                 "%.150s: out of memory for %d steps", r->json.name, capacity);
        }
        run->events = grown;
        r->capacity = capacity;
    }
    run->events[run->n++] = added;
    return TANDEM_OK;
}

/* A text that is too long is skipped as a whole. */
static enum tandem_status read_text(struct reading *r, char *out, size_t n,
                                    struct tandem_error *error)
{
    char text[1024];
    if (tnd_json_peek(&r->json) != '"') { /* viewers allow numbers */
        snprintf(out, n, "?");
        return tnd_json_skip(&r->json, error);
    }
    TND_TRY(tnd_json_pull_string(&r->json, text, sizeof(text), error));
    snprintf(out, n, "%.*s", (int)n - 1, text);
    return TANDEM_OK;
}

static enum tandem_status read_event(struct reading *r, struct tandem_error *error)
{
    struct tnd_trace_event event = {.name = ""};
    char key[64], phase[8] = "", lane[TND_TRACE_LANE] = "?";
    double begin_us = NAN, took_us = NAN, process = 0;
    bool is_integer;
    int64_t integer;
    struct tnd_json_walk walk = {.json = &r->json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        double *number = strcmp(key, "ts") == 0    ? &begin_us
                         : strcmp(key, "dur") == 0 ? &took_us
                         : strcmp(key, "pid") == 0 ? &process
                                                   : NULL;
        if (number != NULL) {
            TND_TRY(tnd_json_number(&r->json, number, &integer, &is_integer, error));
        } else if (strcmp(key, "name") == 0) {
            TND_TRY(read_text(r, event.name, sizeof(event.name), error));
        } else if (strcmp(key, "ph") == 0) {
            TND_TRY(read_text(r, phase, sizeof(phase), error));
        } else if (strcmp(key, "tid") == 0) {
            TND_TRY(read_text(r, lane, sizeof(lane), error));
        } else {
            TND_TRY(tnd_json_skip(&r->json, error));
        }
    }
    TND_TRY(walk.status);
    if (strcmp(phase, "X") != 0) {
        return TANDEM_OK; /* metadata, such as names of processes */
    }
    if (!(fabs(begin_us) < 1e15 && took_us >= 0 && took_us < 1e15)) {
        return wrong(r, "a step without a time, expected ts and dur in microseconds", error);
    }
    event.is_predicted = process == PREDICTED;
    event.begin_us = begin_us;
    event.end_us = begin_us + took_us;
    return append(r, &event, lane, error);
}

static enum tandem_status read_events(struct reading *r, struct tandem_error *error)
{
    struct tnd_json_walk walk = {.json = &r->json, .error = error};
    while (tnd_json_next_item(&walk)) {
        TND_TRY(read_event(r, error));
    }
    return walk.status;
}

static enum tandem_status read_file(struct reading *r, struct tandem_error *error)
{
    char key[64];
    bool found = false;
    struct tnd_json_walk walk = {.json = &r->json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        if (!found && strcmp(key, "traceEvents") == 0) {
            found = true;
            TND_TRY(read_events(r, error));
        } else {
            TND_TRY(tnd_json_skip(&r->json, error));
        }
    }
    TND_TRY(walk.status);
    TND_TRY(tnd_json_end(&r->json, error));
    return found ? TANDEM_OK : wrong(r, "no traceEvents, expected a file of TANDEM_TRACE", error);
}

/* ---- the run ---- */

static int compare(const void *left, const void *right)
{
    const struct tnd_trace_event *a = left;
    const struct tnd_trace_event *b = right;
    if (a->is_predicted != b->is_predicted) {
        return a->is_predicted ? 1 : -1;
    }
    return a->begin_us != b->begin_us ? (a->begin_us < b->begin_us ? -1 : 1)
           : a->end_us != b->end_us   ? (a->end_us < b->end_us ? -1 : 1)
                                      : a->lane - b->lane;
}

static void set_times(struct tnd_trace_run *run)
{
    double begin_us = INFINITY;
    for (int i = 0; i < run->n; i++) {
        begin_us = fmin(begin_us, run->events[i].begin_us);
    }
    for (int i = 0; i < run->n; i++) {
        struct tnd_trace_event *event = &run->events[i];
        event->begin_us -= begin_us;
        event->end_us -= begin_us;
        if (event->is_predicted) {
            run->predicted_us = fmax(run->predicted_us, event->end_us);
        } else {
            run->n_measured++;
            run->took_us = fmax(run->took_us, event->end_us);
            run->lanes[event->lane].busy_us += event->end_us - event->begin_us;
        }
    }
}

struct end {
    double us;
    int event;
};

static int compare_ends(const void *left, const void *right)
{
    const struct end *a = left;
    const struct end *b = right;
    return a->us != b->us ? (a->us < b->us ? -1 : 1) : a->event - b->event;
}

/* Number of ends among the first `n` that are at most `us`. */
static int count_ended(const struct end *ends, int n, double us)
{
    int low = 0;
    while (low < n) {
        int middle = low + (n - low) / 2;
        if (ends[middle].us <= us) {
            low = middle + 1;
        } else {
            n = middle;
        }
    }
    return low;
}

static enum tandem_status find_critical(struct tnd_trace_run *run)
{
    struct end *ends = tnd_alloc((size_t)run->n_measured * sizeof(*ends));
    if (ends == NULL) {
        return TANDEM_E_MEMORY;
    }
    for (int i = 0; i < run->n_measured; i++) {
        ends[i] = (struct end){run->events[i].end_us, i};
    }
    qsort(ends, (size_t)run->n_measured, sizeof(*ends), compare_ends);
    for (int left = run->n_measured; left > 0;) {
        struct tnd_trace_event *event = &run->events[ends[left - 1].event];
        event->is_critical = true;
        run->n_critical++;
        run->lanes[event->lane].critical_us += event->end_us - event->begin_us;
        left = count_ended(ends, left - 1, event->begin_us); /* (excludes an empty step itself) */
        run->waiting_us += event->begin_us - (left > 0 ? ends[left - 1].us : 0);
    }
    tnd_free(ends);
    return TANDEM_OK;
}

enum tandem_status tnd_trace_run_read(const char *bytes, size_t n, const char *name,
                                      struct tnd_trace_run *out, struct tandem_error *error)
{
    struct reading r = {.json = {bytes, bytes, bytes + n, name}};
    enum tandem_status status = read_file(&r, error);
    if (status == TANDEM_OK) {
        if (r.run.n > 0) {
            qsort(r.run.events, (size_t)r.run.n, sizeof(*r.run.events), compare);
        }
        set_times(&r.run);
        if (r.run.n_measured == 0) {
            status = tnd_error_set(error, TANDEM_E_NOT_FOUND, name, 0, 1,
                                   "%.150s: no measured step in it, expected one at least", name);
        }
    }
    if (status == TANDEM_OK) {
        status = find_critical(&r.run);
        if (status != TANDEM_OK) {
            (void)tnd_error_set(error, status, name, r.run.n, 0, "%.150s: out of memory", name);
        }
    }
    if (status != TANDEM_OK) {
        tnd_trace_run_fini(&r.run);
        return status;
    }
    *out = r.run;
    return TANDEM_OK;
}

void tnd_trace_run_fini(struct tnd_trace_run *run)
{
    tnd_free(run->events);
    *run = (struct tnd_trace_run){.n = 0};
}
