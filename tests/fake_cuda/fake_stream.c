/* SPDX-License-Identifier: MIT
 * Streams and events. One lock and one condition serve all: there are few of them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake_cuda/fake_state.h"

struct task {
    struct task *next;
    tnd_fake_task run;
    void *data;
    uint64_t position;
    struct tnd_fake_command command;
};
struct tnd_fake_stream {
    struct tnd_fake_stream *next;
    pthread_t thread;
    int slot;                   /* in clocks; older streams that share it are idle */
    struct tnd_fake_clock last; /* of the newest task */
    struct task *first, **end;
    uint64_t n_pushed, n_done;
    bool is_blocking, is_over;
};
struct tnd_fake_event {
    struct tnd_fake_event *next;
    uint64_t n_recorded, n_done;
    int n_tasks;                /* that point to it */
    bool is_freed;              /* then the last of them frees it */
    struct tnd_fake_clock last; /* when it was recorded */
    int64_t ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all streams and events */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct tnd_fake_stream *streams, *of_all; /* of_all: the default one */
static struct tnd_fake_event *events;
static struct tnd_fake_clock host; /* what the program has waited for */
static uint64_t n_positions;
static int n_streams; /* ever made */
static _Thread_local struct tnd_fake_command *command_now;

struct tnd_fake_command *tnd_fake_command(void)
{
    static _Thread_local struct tnd_fake_command none;
    return command_now != NULL ? command_now : &none;
}

static bool is_checked(void)
{
    const char *check = getenv("TANDEM_FAKE_CUDA_CHECK");
    return check != NULL && strcmp(check, "1") == 0;
}

static void *work(void *argument)
{
    struct tnd_fake_stream *stream = argument;
    pthread_mutex_lock(&lock);
    while (!stream->is_over || stream->first != NULL) {
        struct task *task = stream->first;
        if (task == NULL) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        stream->first = task->next;
        stream->end = stream->first == NULL ? &stream->first : stream->end;
        pthread_mutex_unlock(&lock);
        task->command.number =
            task->command.is_checked ? tnd_fake_command_number(stream->slot, task->position) : 0;
        command_now = &task->command;
        task->run(task->data);
        command_now = NULL;
        free(task);
        pthread_mutex_lock(&lock);
        stream->n_done++;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

struct tnd_fake_stream *tnd_fake_stream_new(bool is_blocking)
{
    struct tnd_fake_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return NULL;
    }
    stream->end = &stream->first;
    stream->is_blocking = is_blocking;
    if (pthread_create(&stream->thread, NULL, work, stream) != 0) {
        free(stream);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    stream->next = streams;
    streams = stream;
    stream->slot = n_streams++ % TND_FAKE_MAX_STREAMS;
    pthread_mutex_unlock(&lock);
    return stream;
}

void tnd_fake_stream_free(struct tnd_fake_stream *stream)
{
    pthread_mutex_lock(&lock);
    for (struct tnd_fake_stream **at = &streams; *at != NULL; at = &(*at)->next) {
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    }
    stream->is_over = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    free(stream);
}

bool tnd_fake_is_stream(const struct tnd_fake_stream *stream)
{
    bool found = stream == NULL;
    pthread_mutex_lock(&lock);
    for (const struct tnd_fake_stream *at = streams; at != NULL && !found; at = at->next) {
        found = at == stream && at != of_all;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* Under the lock: until all tasks that are there now are done. */
static void wait_for(struct tnd_fake_stream *stream)
{
    const uint64_t until = stream->n_pushed;
    const struct tnd_fake_clock last = stream->last;
    while (stream->n_done < until) {
        pthread_cond_wait(&changed, &lock);
    }
    tnd_fake_join(&host, &last);
}

static void wait_for_all(bool blocking_only)
{
    /* From the begin after each wait: streams come and go meanwhile. */
    for (struct tnd_fake_stream *at = streams; at != NULL;) {
        if ((at->is_blocking || !blocking_only) && at->n_done < at->n_pushed) {
            pthread_cond_wait(&changed, &lock);
            at = streams;
        } else {
            if (at->n_done == at->n_pushed) {
                tnd_fake_join(&host, &at->last);
            }
            at = at->next;
        }
    }
}

static void make_default(void)
{
    of_all = tnd_fake_stream_new(true);
}

static struct tnd_fake_stream *or_default(struct tnd_fake_stream *stream)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (stream != NULL) {
        return stream;
    }
    pthread_once(&once, make_default);
    return of_all;
}

void tnd_fake_push(struct tnd_fake_stream *stream, tnd_fake_task run, void *data)
{
    struct task *task = calloc(1, sizeof(*task));
    struct tnd_fake_stream *to = or_default(stream);
    if (task == NULL || to == NULL) {
        abort();
    }
    *task = (struct task){NULL, run, data, 0, {0}};
    pthread_mutex_lock(&lock);
    if (stream == NULL) {
        wait_for_all(true);
    }
    task->position = ++n_positions;
    task->command.is_checked = is_checked();
    tnd_fake_join(&to->last, &host);
    task->command.before = to->last;
    to->last.seen[to->slot] = task->position;
    *to->end = task;
    to->end = &task->next;
    to->n_pushed++;
    pthread_cond_broadcast(&changed);
    if (stream == NULL) {
        wait_for(to);
    }
    pthread_mutex_unlock(&lock);
}

void tnd_fake_wait(struct tnd_fake_stream *stream)
{
    pthread_mutex_lock(&lock);
    if (stream != NULL) {
        wait_for(stream);
    } else {
        wait_for_all(true);
    }
    pthread_mutex_unlock(&lock);
}

void tnd_fake_wait_all(void)
{
    pthread_mutex_lock(&lock);
    wait_for_all(false);
    pthread_mutex_unlock(&lock);
}

bool tnd_fake_is_done(struct tnd_fake_stream *stream)
{
    pthread_mutex_lock(&lock);
    const bool is_done = stream == NULL || stream->n_done == stream->n_pushed;
    if (stream != NULL && is_done) {
        tnd_fake_join(&host, &stream->last);
    }
    pthread_mutex_unlock(&lock);
    return is_done;
}

/* ---- events ---- */

struct tnd_fake_event *tnd_fake_event_new(void)
{
    struct tnd_fake_event *event = calloc(1, sizeof(*event));
    if (event != NULL) {
        pthread_mutex_lock(&lock);
        event->next = events;
        events = event;
        pthread_mutex_unlock(&lock);
    }
    return event;
}

/* Under the lock: one task less points to it. */
static void let_go(struct tnd_fake_event *event)
{
    event->n_tasks--;
    pthread_cond_broadcast(&changed);
    if (event->n_tasks == 0 && event->is_freed) {
        free(event);
    }
}

/* Never waits. */
void tnd_fake_event_free(struct tnd_fake_event *event)
{
    pthread_mutex_lock(&lock);
    for (struct tnd_fake_event **at = &events; *at != NULL; at = &(*at)->next) {
        if (*at == event) {
            *at = event->next;
            break;
        }
    }
    event->n_tasks++;
    event->is_freed = true;
    let_go(event);
    pthread_mutex_unlock(&lock);
}

bool tnd_fake_is_event(const struct tnd_fake_event *event)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct tnd_fake_event *at = events; at != NULL && !found; at = at->next) {
        found = at == event;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void happen(void *data)
{
    struct tnd_fake_event *event = data;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&lock);
    event->ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    event->n_done++;
    let_go(event);
    pthread_mutex_unlock(&lock);
}

void tnd_fake_event_record(struct tnd_fake_event *event, struct tnd_fake_stream *stream)
{
    pthread_mutex_lock(&lock);
    event->n_recorded++;
    event->n_tasks++;
    event->last = stream != NULL ? stream->last : host;
    pthread_mutex_unlock(&lock);
    tnd_fake_push(stream, happen, event);
}

struct hold {
    struct tnd_fake_event *event;
    uint64_t until;
};

static void hold(void *data)
{
    struct hold *held = data;
    pthread_mutex_lock(&lock);
    while (held->event->n_done < held->until) {
        pthread_cond_wait(&changed, &lock);
    }
    let_go(held->event);
    pthread_mutex_unlock(&lock);
    free(held);
}

void tnd_fake_event_hold(struct tnd_fake_event *event, struct tnd_fake_stream *stream)
{
    struct hold *held = malloc(sizeof(*held));
    if (held == NULL) {
        abort();
    }
    pthread_mutex_lock(&lock);
    *held = (struct hold){event, event->n_recorded};
    event->n_tasks++;
    if (stream != NULL) {
        tnd_fake_join(&stream->last, &event->last);
    }
    pthread_mutex_unlock(&lock);
    tnd_fake_push(stream, hold, held);
}

void tnd_fake_event_wait(struct tnd_fake_event *event)
{
    pthread_mutex_lock(&lock);
    const uint64_t until = event->n_recorded;
    const struct tnd_fake_clock last = event->last;
    event->n_tasks++; /* it may be freed meanwhile */
    while (event->n_done < until) {
        pthread_cond_wait(&changed, &lock);
    }
    tnd_fake_join(&host, &last);
    let_go(event);
    pthread_mutex_unlock(&lock);
}

bool tnd_fake_event_is_done(struct tnd_fake_event *event)
{
    pthread_mutex_lock(&lock);
    const bool is_done = event->n_done == event->n_recorded;
    if (is_done) {
        tnd_fake_join(&host, &event->last);
    }
    pthread_mutex_unlock(&lock);
    return is_done;
}

bool tnd_fake_event_times(const struct tnd_fake_event *from, const struct tnd_fake_event *to,
                          float *out_ms)
{
    pthread_mutex_lock(&lock);
    const bool are_done = from->n_done > 0 && to->n_done > 0 && from->n_done == from->n_recorded &&
                          to->n_done == to->n_recorded;
    *out_ms = (float)(to->ns - from->ns) * 1e-6f;
    pthread_mutex_unlock(&lock);
    return are_done;
}
