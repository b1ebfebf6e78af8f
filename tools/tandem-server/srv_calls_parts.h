/* SPDX-License-Identifier: MIT
 * Shared by srv_calls.c, which finds where calls begin, and srv_call_formats.c and srv_harmony.c,
 * which read them. */
#ifndef TANDEM_SERVER_SRV_CALLS_PARTS_H
#define TANDEM_SERVER_SRV_CALLS_PARTS_H

#include "tools/tandem-server/srv_calls.h"
#include "tools/tandem-server/srv_scan.h"

/** State of a reader. */
struct srv_call_reader {
    const struct srv_answer_options *options;
    struct srv_cursor c;
    struct srv_answer *out;
    bool is_final;
};

/** What else than a mark can begin a call at the start of an answer. */
enum srv_bare {
    SRV_BARE_NONE,
    SRV_BARE_OBJECT, /* a JSON object */
    SRV_BARE_NAME    /* the name of a function of the request, followed by an object */
};

struct srv_call_syntax {
    const char *name;
    const char *marks[2]; /* marks that begin calls; the cursor is moved past the first kind */
    enum srv_bare bare;
    const char *signs[2]; /* substrings of templates */
    /** Reads calls after a mark: all of them, or none. */
    enum srv_scan (*read)(struct srv_call_reader *r);
};

const struct srv_call_syntax *tnd_srv_call_syntax(enum srv_call_format format);
/** Adds a call of `name` with `arguments`: a JSON object, or a string that contains one. False,
 * without adding it: name or arguments are invalid, or there are too many calls. */
bool tnd_srv_call_take(struct srv_call_reader *r, struct srv_span name, struct srv_span arguments);
/** Appends a piece, unless it is empty. */
void tnd_srv_spans_add(struct srv_spans *spans, size_t begin, size_t end);
/** The end of text {[begin, end)} without trailing blanks. */
size_t tnd_srv_without_blanks(const char *text, size_t begin, size_t end);
/** Number of bytes at the end of the text that may begin the mark. */
size_t tnd_srv_held_back(const struct srv_cursor *c, const char *mark);
/** Reads messages of gpt-oss: reasoning, content and calls. */
void tnd_srv_harmony_read(struct srv_call_reader *r);
/** Removes calls from index n on. */
void tnd_srv_calls_drop(struct srv_answer *answer, int n);

#endif
