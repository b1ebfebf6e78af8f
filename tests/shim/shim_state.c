/* SPDX-License-Identifier: MIT
 * The shim's memory, under one mutex. Lists are plain arrays, searched from the end: what lives is
 * a few hundred objects, most of them young. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shim/shim_state.h"

struct object {
    enum tnd_shim_kind kind;
    const void *handle;
    const void *other; /* queue of an event, buffer of a mapping */
    const char *made_by;
    int64_t number;
    int64_t n_references;
};

struct reading {
    const void *queue;
    void *host;
    size_t bytes;
    int64_t number;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct tnd_shim_plan plan;
static struct tnd_shim_report counts;
static int64_t n_counted; /* calls that the plan counts */
static int64_t last_number; /* never set back: events and reads keep their order over plans */
static struct object *objects;
static size_t n_objects, max_objects;
static struct reading *readings;
static size_t n_readings, max_readings;

/* Room for one more; a test that is out of memory ends here. */
static void *grown(void *items, size_t n, size_t *max, size_t bytes)
{
    if (n < *max) {
        return items;
    }
    *max = *max > 0 ? 2 * *max : 256;
    void *larger = realloc(items, *max * bytes);
    if (larger == NULL) {
        abort();
    }
    return larger;
}

struct tnd_shim_call tnd_shim_count(const char *name)
{
    pthread_mutex_lock(&mutex);
    struct tnd_shim_call call = {name, ++last_number, CL_SUCCESS, false};
    counts.n_calls++;
    bool is_over = plan.first > 0 && n_counted >= plan.first;
    bool is_counted = plan.name == NULL || strcmp(plan.name, name) == 0;
    n_counted += is_counted;
    bool is_due = is_counted && n_counted == plan.first;
    if (is_due || (is_over && plan.is_lost)) {
        call.planned = plan.code;
        call.is_loss = is_due && plan.is_lost;
        if (counts.n_failed++ == 0) {
            snprintf(counts.failed, sizeof(counts.failed), "%s", name);
        }
    }
    pthread_mutex_unlock(&mutex);
    return call;
}

/* Index of a living object, or n_objects. Under the mutex. */
static size_t find(enum tnd_shim_kind kind, const void *handle, const void *other)
{
    for (size_t i = n_objects; i-- > 0;) {
        if (objects[i].kind == kind && objects[i].handle == handle &&
            (other == NULL || objects[i].other == other)) {
            return i;
        }
    }
    return n_objects;
}

static void add(const struct object *object)
{
    objects = grown(objects, n_objects, &max_objects, sizeof(*objects));
    objects[n_objects++] = *object;
}

static void drop(size_t i)
{
    objects[i] = objects[--n_objects];
}

void tnd_shim_made(enum tnd_shim_kind kind, const void *object, const void *queue,
                   const struct tnd_shim_call *call)
{
    if (object == NULL) {
        return;
    }
    pthread_mutex_lock(&mutex);
    add(&(struct object){kind, object, queue, call->name, call->number, 1});
    pthread_mutex_unlock(&mutex);
}

void tnd_shim_retained(enum tnd_shim_kind kind, const void *object)
{
    pthread_mutex_lock(&mutex);
    size_t i = find(kind, object, NULL);
    if (i < n_objects) {
        objects[i].n_references++;
    } else {
        counts.n_stray++;
    }
    pthread_mutex_unlock(&mutex);
}

/* Whether a buffer has a mapped range. Under the mutex. */
static bool is_mapped(const void *buffer)
{
    for (size_t i = 0; i < n_objects; i++) {
        if (objects[i].kind == TND_SHIM_MAPPING && objects[i].other == buffer) {
            return true;
        }
    }
    return false;
}

bool tnd_shim_released(enum tnd_shim_kind kind, const void *object, bool *out_is_last)
{
    pthread_mutex_lock(&mutex);
    size_t i = find(kind, object, NULL);
    bool is_alive = i < n_objects;
    *out_is_last = is_alive && --objects[i].n_references == 0;
    if (*out_is_last) {
        counts.n_stray += kind == TND_SHIM_BUFFER && is_mapped(object);
        drop(i);
    }
    counts.n_stray += !is_alive;
    pthread_mutex_unlock(&mutex);
    return is_alive;
}

void tnd_shim_held_by_others(int64_t n_references)
{
    pthread_mutex_lock(&mutex);
    counts.n_extra_held += n_references;
    pthread_mutex_unlock(&mutex);
}

void tnd_shim_built(void)
{
    pthread_mutex_lock(&mutex);
    counts.n_builds++;
    pthread_mutex_unlock(&mutex);
}

int tnd_shim_queues(cl_command_queue *out_queues, int max)
{
    int n = 0;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < n_objects && n < max; i++) {
        if (objects[i].kind == TND_SHIM_QUEUE) {
            memcpy(&out_queues[n++], &objects[i].handle, sizeof(out_queues[0]));
        }
    }
    pthread_mutex_unlock(&mutex);
    return n;
}

bool tnd_shim_event(const void *event, const void **out_queue, int64_t *out_number)
{
    pthread_mutex_lock(&mutex);
    size_t i = find(TND_SHIM_EVENT, event, NULL);
    bool is_known = i < n_objects;
    if (is_known) {
        *out_queue = objects[i].other;
        *out_number = objects[i].number;
    }
    pthread_mutex_unlock(&mutex);
    return is_known;
}

void tnd_shim_mapped(const void *buffer, const void *address, const struct tnd_shim_call *call)
{
    tnd_shim_made(TND_SHIM_MAPPING, address, buffer, call);
}

void tnd_shim_unmapped(const void *buffer, const void *address)
{
    pthread_mutex_lock(&mutex);
    size_t i = find(TND_SHIM_MAPPING, address, buffer);
    if (i < n_objects) {
        drop(i);
    } else {
        counts.n_stray++;
    }
    pthread_mutex_unlock(&mutex);
}

void tnd_shim_reading(const void *queue, void *host, size_t bytes, const struct tnd_shim_call *call)
{
    pthread_mutex_lock(&mutex);
    readings = grown(readings, n_readings, &max_readings, sizeof(*readings));
    readings[n_readings++] = (struct reading){queue, host, bytes, call->number};
    pthread_mutex_unlock(&mutex);
}

void tnd_shim_poison(void *host, size_t bytes)
{
    /* As floats: not a number; as integers: far out of every range. */
    memset(host, 0xFF, bytes);
}

void tnd_shim_settle(const void *queue, int64_t number, bool is_poisoned)
{
    pthread_mutex_lock(&mutex);
    for (size_t i = n_readings; i-- > 0;) {
        if ((queue == NULL || readings[i].queue == queue) && readings[i].number <= number) {
            if (is_poisoned) {
                tnd_shim_poison(readings[i].host, readings[i].bytes);
            }
            readings[i] = readings[--n_readings];
        }
    }
    pthread_mutex_unlock(&mutex);
}

/* ---- control ---- */

TND_SHIM_EXPORT void tnd_shim_begin(const struct tnd_shim_plan *new_plan);
TND_SHIM_EXPORT void tnd_shim_report(struct tnd_shim_report *out_report);
TND_SHIM_EXPORT void tnd_shim_forget(void);

void tnd_shim_begin(const struct tnd_shim_plan *new_plan)
{
    pthread_mutex_lock(&mutex);
    plan = new_plan != NULL ? *new_plan : (struct tnd_shim_plan){0};
    counts = (struct tnd_shim_report){0};
    n_counted = 0;
    pthread_mutex_unlock(&mutex);
}

void tnd_shim_report(struct tnd_shim_report *out_report)
{
#define KIND_TEXT(name, text) text,
    static const char *const kinds[] = {TND_SHIM_KIND_LIST(KIND_TEXT)};
#undef KIND_TEXT
    pthread_mutex_lock(&mutex);
    struct tnd_shim_report report = counts;
    size_t n = 0;
    for (size_t i = 0; i < n_objects; i++) {
        const struct object *object = &objects[i];
        report.n_live[object->kind]++;
        if (n + 80 < sizeof(report.leaks)) {
            int printed = snprintf(report.leaks + n, sizeof(report.leaks) - n,
                                   "%s%s of %s (call %lld)", n > 0 ? ", " : "", kinds[object->kind],
                                   object->made_by, (long long)object->number);
            n += printed > 0 ? (size_t)printed : 0;
        }
    }
    pthread_mutex_unlock(&mutex);
    *out_report = report;
}

void tnd_shim_forget(void)
{
    pthread_mutex_lock(&mutex);
    n_objects = 0;
    n_readings = 0;
    pthread_mutex_unlock(&mutex);
}
