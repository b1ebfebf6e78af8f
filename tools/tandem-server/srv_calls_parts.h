/* SPDX-License-Identifier: MIT
 * Between srv_calls.c, which finds where calls begin, and srv_call_formats.c, which reads them. */
#ifndef TANDEM_SERVER_SRV_CALLS_PARTS_H
#define TANDEM_SERVER_SRV_CALLS_PARTS_H

#include "tools/tandem-server/srv_calls.h"
#include "tools/tandem-server/srv_scan.h"

/** What reads: an answer, and where. */
struct srv_call_reader {
    const struct srv_answer_options *options;
    struct srv_cursor c;
    struct srv_answer *out;
    bool is_final;
};

struct srv_call_syntax {
    const char *name;
    const char *marks[2];    /* that begin calls; the cursor is put behind the first kind */
    bool is_bare;            /* an answer that is a JSON object may be a call too */
    const char *of_template; /* a text of templates */
    /** Reads calls behind a mark: all of them, or none. */
    enum srv_scan (*read)(struct srv_call_reader *r);
};

const struct srv_call_syntax *tnd_srv_call_syntax(enum srv_call_format format);
/** Forgets calls from number n on. */
void tnd_srv_calls_drop(struct srv_answer *answer, int n);

#endif
