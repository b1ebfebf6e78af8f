/* SPDX-License-Identifier: MIT
 * Answers taken apart: where reasoning ends and calls begin. */
#include <string.h>

#include "tools/tandem-server/srv_calls_parts.h"

enum { MAX_WRONG = 64 /* marks without a call, behind which all is text: bounds the time */ };

bool tnd_srv_call_format_from_name(const char *name, enum srv_call_format *out)
{
    for (int i = 0; i < SRV_N_CALL_FORMATS; i++) {
        if (strcmp(tnd_srv_call_syntax((enum srv_call_format)i)->name, name) == 0) {
            *out = (enum srv_call_format)i;
            return true;
        }
    }
    return false;
}

const char *tnd_srv_call_format_name(enum srv_call_format format)
{
    return tnd_srv_call_syntax(format)->name;
}

enum srv_call_format tnd_srv_call_format_of(const char *template_text)
{
    /* the mark that says most goes first: tags stand within those of Hermes */
    static const enum srv_call_format order[] = {SRV_CALLS_DEEPSEEK, SRV_CALLS_MISTRAL,
                                                 SRV_CALLS_TAGS,     SRV_CALLS_FUNCTIONARY,
                                                 SRV_CALLS_HERMES,   SRV_CALLS_LLAMA3};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if (template_text != NULL &&
            strstr(template_text, tnd_srv_call_syntax(order[i])->of_template) != NULL) {
            return order[i];
        }
    }
    return SRV_CALLS_GENERIC;
}

const cJSON *tnd_srv_tool_find(const cJSON *tools, const char *name)
{
    const cJSON *tool = NULL;
    cJSON_ArrayForEach(tool, tools)
    {
        const cJSON *function = cJSON_GetObjectItemCaseSensitive(tool, "function");
        const cJSON *own = cJSON_GetObjectItemCaseSensitive(function, "name");
        if (cJSON_IsString(own) && strcmp(own->valuestring, name) == 0) {
            return function;
        }
    }
    return NULL;
}

/* ---- reading ---- */

static size_t without_blanks(const char *text, size_t begin, size_t end)
{
    while (end > begin && strchr(" \n\t\r", text[end - 1]) != NULL && text[end - 1] != '\0') {
        end--;
    }
    return end;
}

/* Bytes at the end of the text that may begin a mark. */
static size_t held_back(const struct srv_cursor *c, const char *mark)
{
    const size_t length = mark != NULL ? strlen(mark) : 0;
    for (size_t k = length > 0 ? length - 1 : 0; k > 0; k--) {
        if (k <= c->n - c->at && memcmp(c->text + c->n - k, mark, k) == 0) {
            return k;
        }
    }
    return 0;
}

/* The next place where a call may begin; the cursor is put behind its mark. `out_begin`: the mark,
 * or the end of what is surely no mark. */
static bool next_mark(struct srv_call_reader *r, bool is_first, size_t *out_begin)
{
    const struct srv_call_syntax *format = tnd_srv_call_syntax(r->options->format);
    struct srv_cursor bare = r->c;
    size_t held = 0, best = r->c.n;
    const char *mark = NULL;
    tnd_srv_skip_blanks(&bare);
    if (is_first && format->is_bare && bare.at < bare.n && bare.text[bare.at] == '{') {
        *out_begin = r->c.at = bare.at;
        return true;
    }
    for (int i = 0; i < 2 && format->marks[i] != NULL; i++) {
        struct srv_cursor at = r->c;
        const size_t back = held_back(&r->c, format->marks[i]);
        held = back > held ? back : held;
        if (tnd_srv_seek(&at, format->marks[i]) && at.at < best) {
            best = at.at;
            mark = format->marks[i];
        }
    }
    *out_begin = mark != NULL ? best : r->c.n - (r->is_final ? 0 : held);
    if (mark != NULL) {
        r->c.at = best;
        if (mark == format->marks[0]) { /* readers find an inner mark themselves */
            (void)tnd_srv_skip(&r->c, mark);
        }
    }
    return mark != NULL;
}

static void read_calls(struct srv_call_reader *r)
{
    const struct srv_call_syntax *format = tnd_srv_call_syntax(r->options->format);
    struct srv_answer *out = r->out;
    const size_t begin = r->c.at;
    size_t text_end = begin, mark = begin;
    bool is_short = false;
    int n_wrong = 0;
    out->content = (struct srv_span){begin, begin};
    while (!is_short && n_wrong < MAX_WRONG) {
        const int before = out->n_calls;
        const bool is_first = text_end == r->c.at && r->options->n_decided == 0;
        if (!next_mark(r, is_first, &mark)) {
            break;
        }
        const enum srv_scan scan = format->read(r);
        if (scan == SRV_SCAN_DONE) {
            text_end = r->c.at;
            out->content.end = before == 0 ? mark : out->content.end;
            continue;
        }
        tnd_srv_calls_drop(out, before);
        is_short = scan == SRV_SCAN_SHORT;
        r->c.at = mark + 1; /* the mark is text, unless more may come */
        n_wrong++;
    }
    const size_t end = (is_short && r->is_final) || n_wrong == MAX_WRONG ? r->c.n : mark;
    struct srv_span *last = out->n_calls > 0 ? &out->rest : &out->content;
    *last = (struct srv_span){out->n_calls > 0 ? text_end : begin, end};
    if (out->n_calls > 0) {
        out->content.end = without_blanks(r->c.text, out->content.begin, out->content.end);
    }
    if (!r->is_final || out->n_calls > 0) {
        last->end = without_blanks(r->c.text, last->begin, last->end);
    }
}

/* Moves behind the reasoning. False: it is not done, or nobody knows yet whether there is any. */
static bool read_reasoning(struct srv_call_reader *r)
{
    struct srv_cursor *c = &r->c;
    struct srv_span *out = &r->out->reasoning;
    struct srv_cursor at = *c;
    tnd_srv_skip_blanks(&at);
    if (!r->options->is_thinking && !tnd_srv_skip(&at, "<think>")) {
        return r->is_final || !tnd_srv_may_begin(&at, "<think>");
    }
    (void)tnd_srv_skip(&at, "<think>"); /* (written again by some) */
    tnd_srv_skip_blanks(&at);
    *c = at;
    const bool is_done = tnd_srv_seek(&at, "</think>");
    out->begin = c->at;
    out->end = is_done ? at.at : c->n - (r->is_final ? 0 : held_back(c, "</think>"));
    out->end = without_blanks(c->text, out->begin, out->end);
    r->out->is_thinking = !is_done;
    (void)tnd_srv_skip(&at, "</think>");
    tnd_srv_skip_blanks(&at);
    *c = at;
    return is_done;
}

void tnd_srv_answer_read(const struct srv_answer_options *options, const char *text, size_t n,
                         bool is_final, struct srv_answer *out)
{
    struct srv_call_reader r = {
        .options = options, .c = {text, n, options->n_decided}, .out = out, .is_final = is_final};
    *out = (struct srv_answer){.n_calls = 0};
    if (options->takes_reasoning && options->n_decided == 0 && !read_reasoning(&r)) {
        return;
    }
    if (options->has_calls) {
        read_calls(&r);
    } else {
        out->content = (struct srv_span){r.c.at, n};
    }
    for (int i = 0; i < out->n_calls; i++) {
        out->failed = out->failed || out->calls[i].arguments.failed;
    }
}

void tnd_srv_answer_free(struct srv_answer *answer)
{
    tnd_srv_calls_drop(answer, 0);
}
