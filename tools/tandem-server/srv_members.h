/* SPDX-License-Identifier: MIT
 * The members that a request may have: one table says for each of them where it may stand, what
 * values it takes, and whether it is read, ignored or refused. What is in no row is refused too, as
 * OpenAI does: a member that asks for something must not be dropped in silence. */
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
    SRV_READ,    /* changes what is computed or told */
    SRV_IGNORED, /* changes nothing here, whatever its value */
    SRV_REFUSED  /* would change something that is not there: only a neutral value is taken */
};

struct srv_member {
    const char *name;
    unsigned routes;
    enum srv_member_use use;
    enum srv_member_kind kind;
    double low, high;    /* of numbers that are read; of refused ones `low` is the neutral value */
    const char *neutral; /* of refused strings: words that say nothing, parted by '|' */
};

/** Whether all members of a body may stand there. False: `body` has the fault. */
bool tnd_srv_members_check(struct srv_body *body, enum srv_style style);
/** The i-th row; NULL behind the last. */
const struct srv_member *tnd_srv_member_row(int i);

#endif
