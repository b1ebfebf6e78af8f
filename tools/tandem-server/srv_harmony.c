/* SPDX-License-Identifier: MIT
 * Answers of gpt-oss: messages, each with a channel, written as
 *   <|start|>assistant to=functions.NAME<|channel|>CHANNEL to=.. <|constrain|>json<|message|>BODY
 * and ended by <|end|>, <|call|> or <|return|>; the first one has no <|start|>assistant. Analysis
 * is reasoning, messages to functions are calls, all others are content. After "OpenAI harmony
 * response format", cookbook.openai.com/article/harmony. */
#include <string.h>

#include "tools/tandem-server/srv_calls_parts.h"

enum { MAX_HEADER = 256 /* bytes; a longer header without <|message|> is text */ };

static const char message_mark[] = "<|message|>";
/* Models may leave out <|end|>, so the next header also ends a body. */
static const char *const end_marks[] = {"<|end|>", "<|call|>", "<|return|>", "<|start|>",
                                        "<|channel|>"};
enum { N_ENDS = sizeof(end_marks) / sizeof(end_marks[0]), N_OWN_ENDS = 3 };

struct header {
    struct srv_span channel, recipient; /* empty: none */
};

/* Finds the end of the body that begins at the cursor. False: not there yet. */
static bool find_end(const struct srv_call_reader *r, size_t from, size_t *out_end)
{
    struct srv_cursor at = {r->c.text, r->c.n, from};
    size_t held = 0;
    for (; tnd_srv_seek(&at, "<|"); at.at++) {
        for (int i = 0; i < N_ENDS; i++) {
            struct srv_cursor mark = at;
            if (tnd_srv_skip(&mark, end_marks[i])) {
                *out_end = at.at;
                return true;
            }
        }
    }
    for (int i = 0; i < N_ENDS; i++) {
        const size_t back = tnd_srv_held_back(&r->c, end_marks[i]);
        held = back > held ? back : held;
    }
    *out_end = r->c.n - (r->is_final ? 0 : held);
    return false;
}

/* The word after `name` in the header. */
static struct srv_span word_of(const struct srv_cursor *header, const char *name)
{
    struct srv_cursor at = *header;
    if (!tnd_srv_seek(&at, name)) {
        return (struct srv_span){0, 0};
    }
    (void)tnd_srv_skip(&at, name);
    struct srv_span word = {at.at, at.at};
    while (word.end < at.n && memchr(" <\n", at.text[word.end], 3) == NULL) {
        word.end++;
    }
    return word;
}

/* Moves past a header. WRONG: there is none, the cursor stays. */
static enum srv_scan read_header(struct srv_call_reader *r, struct header *out)
{
    static const char *const begins[] = {"<|start|>", "<|channel|>", message_mark, " to=", "to="};
    const struct srv_cursor *c = &r->c;
    bool is_header = false, may = false;
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        struct srv_cursor at = *c;
        is_header = is_header || tnd_srv_skip(&at, begins[i]);
        may = may || tnd_srv_may_begin(c, begins[i]);
    }
    if (!is_header) {
        return may && !r->is_final ? SRV_SCAN_SHORT : SRV_SCAN_WRONG;
    }
    struct srv_cursor header = *c;
    const bool is_long = c->n - c->at > MAX_HEADER;
    header.n = is_long ? c->at + MAX_HEADER : c->n;
    struct srv_cursor end = header;
    if (!tnd_srv_seek(&end, message_mark)) {
        return is_long ? SRV_SCAN_WRONG : SRV_SCAN_SHORT;
    }
    header.n = end.at;
    *out = (struct header){word_of(&header, "<|channel|>"), word_of(&header, "to=")};
    r->c.at = end.at + sizeof(message_mark) - 1;
    return SRV_SCAN_DONE;
}

static bool is_word(const struct srv_call_reader *r, struct srv_span word, const char *name)
{
    const size_t n = strlen(name);
    return word.end - word.begin == n && memcmp(r->c.text + word.begin, name, n) == 0;
}

/* Reads a call whose body ends at `end`. SHORT: there may be more of it. */
static enum srv_scan read_call(struct srv_call_reader *r, struct srv_span name, size_t end,
                               bool is_whole)
{
    struct srv_cursor body = {r->c.text, end, r->c.at};
    tnd_srv_skip_blanks(&body);
    const size_t begin = body.at;
    const enum srv_scan scan = tnd_srv_scan_value(&body);
    if (scan == SRV_SCAN_SHORT && !is_whole && !r->is_final) {
        return SRV_SCAN_SHORT;
    }
    if (scan != SRV_SCAN_DONE || r->c.text[begin] != '{' ||
        !tnd_srv_call_take(r, name, (struct srv_span){begin, body.at})) {
        return SRV_SCAN_WRONG;
    }
    r->c.at = body.at;
    return SRV_SCAN_DONE;
}

/* Reads the body of a message. False: it is incomplete. */
static bool read_body(struct srv_call_reader *r, const struct header *header, size_t from)
{
    static const char functions[] = "functions.";
    struct srv_answer *out = r->out;
    struct srv_span name = header->recipient;
    size_t end;
    const bool is_whole = find_end(r, from, &end);
    if (r->options->has_calls && name.end - name.begin > sizeof(functions) - 1 &&
        memcmp(r->c.text + name.begin, functions, sizeof(functions) - 1) == 0) {
        name.begin += sizeof(functions) - 1;
        if (read_call(r, name, end, is_whole) == SRV_SCAN_SHORT) {
            return false;
        }
    }
    const bool is_reasoning =
        r->options->takes_reasoning && is_word(r, header->channel, "analysis");
    tnd_srv_spans_add(is_reasoning ? &out->reasoning : &out->content, r->c.at,
                      tnd_srv_without_blanks(r->c.text, r->c.at, end));
    out->is_thinking = is_reasoning && !is_whole;
    r->c.at = end;
    for (int i = 0; i < N_OWN_ENDS && is_whole; i++) {
        if (tnd_srv_skip(&r->c, end_marks[i])) {
            break;
        }
    }
    return is_whole;
}

void tnd_srv_harmony_read(struct srv_call_reader *r)
{
    bool has_more = true, is_within = r->options->n_decided > 0; /* .. of a message */
    while (has_more && r->c.at < r->c.n) {
        struct header header = {{0, 0}, {0, 0}};
        const size_t begin = r->c.at;
        const enum srv_scan scan = is_within ? SRV_SCAN_WRONG : read_header(r, &header);
        if (scan == SRV_SCAN_SHORT) {
            return; /* an incomplete header belongs to no part */
        }
        /* text without a header is content, as is a header that never ends */
        has_more =
            read_body(r, &header, scan == SRV_SCAN_WRONG && !is_within ? begin + 1 : r->c.at);
        is_within = false;
    }
}
