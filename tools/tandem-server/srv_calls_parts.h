/* SPDX-License-Identifier: MIT
 * Between srv_calls.c, which finds where calls begin, and srv_call_formats.c and srv_harmony.c,
 * which read them. */
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

/** What begins a call at the start of an answer, beside the marks. */
enum srv_bare {
    SRV_BARE_NONE,
    SRV_BARE_OBJECT, /* of JSON */
    SRV_BARE_NAME    /* of a function of the request, with an object behind it */
};

struct srv_call_syntax {
    const char *name;
    const char *marks[2]; /* that begin calls; the cursor is put behind the first kind */
    enum srv_bare bare;
    const char *signs[2]; /* texts of templates */
    /** Reads calls behind a mark: all of them, or none. */
    enum srv_scan (*read)(struct srv_call_reader *r);
};

const struct srv_call_syntax *tnd_srv_call_syntax(enum srv_call_format format);
/** Adds a call of the function `name` with `arguments`: an object of JSON, or a text that holds
 *  one. False: the name or the arguments are none, or there are too many calls: nothing is
 *  added. */
bool tnd_srv_call_take(struct srv_call_reader *r, struct srv_span name, struct srv_span arguments);
/** Appends a piece; an empty one is left out. */
void tnd_srv_spans_add(struct srv_spans *spans, size_t begin, size_t end);
/** The end of text {[begin, end)} without blanks behind it. */
size_t tnd_srv_without_blanks(const char *text, size_t begin, size_t end);
/** Bytes at the end of the text that may begin the mark. */
size_t tnd_srv_held_back(const struct srv_cursor *c, const char *mark);
/** Reads messages of gpt-oss: reasoning, content and calls. */
void tnd_srv_harmony_read(struct srv_call_reader *r);
/** Forgets calls from number n on. */
void tnd_srv_calls_drop(struct srv_answer *answer, int n);

#endif
