/* SPDX-License-Identifier: MIT
 * Members that a request may have: one table has for each of them the routes, the valid values, and
 * whether it is read, ignored or refused. Unknown members are refused too, as by OpenAI: a member
 * that asks for something must not be dropped silently. */
#ifndef TANDEM_SERVER_SRV_MEMBERS_H
#define TANDEM_SERVER_SRV_MEMBERS_H

#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_job.h"

/** Routes, as bits. */
enum {
    SRV_IN_CHAT = 1 << SRV_CHAT,
    SRV_IN_COMPLETION = 1 << SRV_COMPLETION,
    SRV_IN_NATIVE = 1 << SRV_NATIVE,
    SRV_IN_EMBEDDING = 1 << SRV_EMBEDDING,
    SRV_IN_RERANK = 1 << SRV_RERANK
};

enum srv_member_kind { SRV_NUMBER, SRV_INTEGER, SRV_FLAG, SRV_STRING, SRV_ANY };

enum srv_member_use {
    SRV_READ,    /* affects the computation or the output */
    SRV_IGNORED, /* has no effect here, whatever its value */
    SRV_REFUSED  /* asks for a missing feature: only a neutral value is accepted */
};

struct srv_member {
    const char *name;
    unsigned routes;
    enum srv_member_use use;
    enum srv_member_kind kind;
    double low, high;    /* range of numbers that are read; of refused ones `low` is neutral */
    const char *neutral; /* of refused strings: neutral words, separated by '|' */
};

/** Whether the route accepts all members of a body. False: the fault is in `body`. */
bool tnd_srv_members_check(struct srv_body *body, enum srv_style style);
/** The i-th row; NULL after the last. */
const struct srv_member *tnd_srv_member_row(int i);

#endif
