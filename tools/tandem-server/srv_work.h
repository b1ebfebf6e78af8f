/* SPDX-License-Identifier: MIT
 * Requests are parsed and tokenised beside the network's thread: by two threads, of which one takes
 * short bodies only, so that a long text delays neither the network nor other requests. */
#ifndef TANDEM_SERVER_SRV_WORK_H
#define TANDEM_SERVER_SRV_WORK_H

#include "tools/tandem-server/srv_server.h"

enum { SRV_SHORT_BODY = 65536 };

/** A request that becomes a reply; the caller's until it is submitted, and again once `done` was
 *  called. */
struct srv_task {
    const struct srv_server *server;
    struct srv_request request;
    struct srv_reply reply;
    void (*done)(void *user); /* on a thread of the work's */
    void *user;
    struct srv_task *next;
};

struct srv_work;

/** NULL: no memory, or no threads. */
struct srv_work *tnd_srv_work_new(void);
/** False: the work has stopped; the task stays the caller's. Any thread. */
bool tnd_srv_work_submit(struct srv_work *work, struct srv_task *task);
/** Answers what waits with 503 and ends the threads; tasks submitted later are not taken. */
void tnd_srv_work_stop(struct srv_work *work);
/** After tnd_srv_work_stop. NULL is allowed. */
void tnd_srv_work_free(struct srv_work *work);

#endif
