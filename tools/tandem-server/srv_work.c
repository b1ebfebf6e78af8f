/* SPDX-License-Identifier: MIT
 * Threads that parse requests. */
#include "tools/tandem-server/srv_work.h"

#include <pthread.h>
#include <stdlib.h>

enum { N_THREADS = 2 };

struct task_list {
    struct srv_task *first, *last;
};

struct srv_work {
    pthread_t threads[N_THREADS];
    int n_threads;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t news;
    struct task_list any, brief; /* brief: short bodies */
    bool has_stopped;
};

static struct srv_task *take(struct task_list *list)
{
    struct srv_task *task = list->first;
    if (task != NULL) {
        list->first = task->next;
        list->last = list->first != NULL ? list->last : NULL;
    }
    return task;
}

static struct srv_task *wait_for_task(struct srv_work *work, bool only_brief, bool *out_is_late)
{
    struct srv_task *task = NULL;
    pthread_mutex_lock(&work->mutex);
    for (;;) {
        task = only_brief ? NULL : take(&work->any);
        task = task != NULL ? task : take(&work->brief);
        if (task != NULL || work->has_stopped) {
            break;
        }
        (void)pthread_cond_wait(&work->news, &work->mutex);
    }
    *out_is_late = work->has_stopped;
    pthread_mutex_unlock(&work->mutex);
    return task;
}

static void serve(struct srv_work *work, bool only_brief)
{
    bool is_late;
    struct srv_task *task;
    while ((task = wait_for_task(work, only_brief, &is_late)) != NULL) {
        if (is_late) {
            task->reply = (struct srv_reply){0};
            tnd_srv_reply_error(&task->reply, 503, "the server ends");
        } else {
            tnd_srv_answer(task->server, &task->request, &task->reply);
        }
        task->done(task->user);
    }
}

static void *serve_any(void *user)
{
    serve(user, false);
    return NULL;
}

static void *serve_brief(void *user)
{
    serve(user, true);
    return NULL;
}

struct srv_work *tnd_srv_work_new(void)
{
    void *(*const loops[N_THREADS])(void *) = {serve_any, serve_brief};
    struct srv_work *work = calloc(1, sizeof(*work));
    if (work == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&work->mutex, NULL); /* (cannot fail without attributes) */
    (void)pthread_cond_init(&work->news, NULL);
    while (work->n_threads < N_THREADS && pthread_create(&work->threads[work->n_threads], NULL,
                                                         loops[work->n_threads], work) == 0) {
        work->n_threads++;
    }
    if (work->n_threads < N_THREADS) {
        tnd_srv_work_stop(work);
        tnd_srv_work_free(work);
        return NULL;
    }
    return work;
}

bool tnd_srv_work_submit(struct srv_work *work, struct srv_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&work->mutex);
    const bool is_taken = !work->has_stopped;
    if (is_taken) {
        struct task_list *list = task->request.n > SRV_SHORT_BODY ? &work->any : &work->brief;
        *(list->first != NULL ? &list->last->next : &list->first) = task;
        list->last = task;
        (void)pthread_cond_broadcast(&work->news);
    }
    pthread_mutex_unlock(&work->mutex);
    return is_taken;
}

void tnd_srv_work_stop(struct srv_work *work)
{
    pthread_mutex_lock(&work->mutex);
    work->has_stopped = true;
    (void)pthread_cond_broadcast(&work->news);
    pthread_mutex_unlock(&work->mutex);
    for (int i = 0; i < work->n_threads; i++) {
        (void)pthread_join(work->threads[i], NULL);
    }
    work->n_threads = 0;
}

void tnd_srv_work_free(struct srv_work *work)
{
    if (work != NULL) {
        (void)pthread_cond_destroy(&work->news);
        (void)pthread_mutex_destroy(&work->mutex);
        free(work);
    }
}
