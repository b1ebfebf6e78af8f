/* SPDX-License-Identifier: MIT
 * Requests are parsed and tokenised outside of the network thread: by two threads, one of which
 * takes only short bodies, so that a long text delays neither the network nor other requests. */
#ifndef TANDEM_SERVER_SRV_WORK_H
#define TANDEM_SERVER_SRV_WORK_H

#include "tools/tandem-server/srv_server.h"

enum { SRV_SHORT_BODY = 65536 };

/** A request to be answered; owned by the caller until it is submitted, and again once `done` was
 * called. */
struct srv_task {
    const struct srv_server *server;
    struct srv_request request;
    struct srv_reply reply;
    void (*done)(void *user); /* called on a worker thread */
    void *user;
    struct srv_task *next;
};

struct srv_work;

/** NULL: out of memory, or no threads. */
struct srv_work *tnd_srv_work_new(void);
/** False: stopped; the caller keeps the task. Any thread. */
bool tnd_srv_work_submit(struct srv_work *work, struct srv_task *task);
/** Answers waiting tasks with 503 and ends the threads; refuses later tasks. */
void tnd_srv_work_stop(struct srv_work *work);
/** Call after tnd_srv_work_stop. NULL is allowed. */
void tnd_srv_work_free(struct srv_work *work);

#endif
