/* SPDX-License-Identifier: MIT
 * Splitting answers into reasoning, content and calls. */
#include <string.h>

#include "tools/tandem-server/srv_calls_parts.h"

enum { MAX_WRONG = 64 /* marks without a call, after which everything is text: bounds the time */ };

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
    /* most specific first: the tags also occur within calls of Hermes */
    static const enum srv_call_format order[] = {
        SRV_CALLS_HARMONY, SRV_CALLS_DEEPSEEK, SRV_CALLS_KIMI,        SRV_CALLS_COMMAND,
        SRV_CALLS_MISTRAL, SRV_CALLS_TAGS,     SRV_CALLS_FUNCTIONARY, SRV_CALLS_GLM,
        SRV_CALLS_HUNYUAN, SRV_CALLS_GRANITE,  SRV_CALLS_HERMES,      SRV_CALLS_LLAMA3,
        SRV_CALLS_GLM4};
    for (size_t i = 0; template_text != NULL && i < sizeof(order) / sizeof(order[0]); i++) {
        const struct srv_call_syntax *syntax = tnd_srv_call_syntax(order[i]);
        for (int k = 0; k < 2 && syntax->signs[k] != NULL; k++) {
            if (strstr(template_text, syntax->signs[k]) != NULL) {
                return order[i];
            }
        }
    }
    return SRV_CALLS_GENERIC;
}

const struct srv_marks *tnd_srv_frame_of(const char *template_text)
{
    /* Ernie 4.5 and Granite 3.3; Hunyuan; Command R7B */
    static const struct srv_marks frames[] = {{"<response>", "</response>"},
                                              {"<answer>", "</answer>"},
                                              {"<|START_RESPONSE|>", "<|END_RESPONSE|>"}};
    for (size_t i = 0; template_text != NULL && i < sizeof(frames) / sizeof(frames[0]); i++) {
        if (strstr(template_text, frames[i].begin) != NULL) {
            return &frames[i];
        }
    }
    return NULL;
}

const struct srv_marks *tnd_srv_reasoning_at(int i)
{
    /* most families; Mistral; Command R7B */
    static const struct srv_marks marks[] = {{"<think>", "</think>"},
                                             {"[THINK]", "[/THINK]"},
                                             {"<|START_THINKING|>", "<|END_THINKING|>"}};
    return i < (int)(sizeof(marks) / sizeof(marks[0])) ? &marks[i] : NULL;
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

size_t tnd_srv_without_blanks(const char *text, size_t begin, size_t end)
{
    while (end > begin && strchr(" \n\t\r", text[end - 1]) != NULL && text[end - 1] != '\0') {
        end--;
    }
    return end;
}

void tnd_srv_spans_add(struct srv_spans *spans, size_t begin, size_t end)
{
    if (end > begin && spans->n == SRV_MAX_SPANS) {
        spans->items[spans->n - 1].end = end;
    } else if (end > begin) {
        spans->items[spans->n++] = (struct srv_span){begin, end};
    }
}

size_t tnd_srv_held_back(const struct srv_cursor *c, const char *mark)
{
    const size_t length = mark != NULL ? strlen(mark) : 0;
    for (size_t k = length > 0 ? length - 1 : 0; k > 0; k--) {
        if (k <= c->n - c->at && memcmp(c->text + c->n - k, mark, k) == 0) {
            return k;
        }
    }
    return 0;
}

/* Whether the text at the cursor calls a function of the request by its bare name. `out_may`: it
 * might, once there is more text. */
static bool names_a_tool(const struct srv_call_reader *r, const struct srv_cursor *c, bool *out_may)
{
    const cJSON *tool = NULL;
    cJSON_ArrayForEach(tool, r->options->tools)
    {
        const cJSON *function = cJSON_GetObjectItemCaseSensitive(tool, "function");
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(function, "name");
        struct srv_cursor at = *c;
        if (!cJSON_IsString(name)) {
            continue;
        }
        if (!tnd_srv_skip(&at, name->valuestring)) {
            *out_may = *out_may || tnd_srv_may_begin(&at, name->valuestring);
            continue;
        }
        tnd_srv_skip_blanks(&at);
        *out_may = *out_may || at.at == at.n;
        if (at.at < at.n && at.text[at.at] == '{') {
            return true;
        }
    }
    return false;
}

/* Finds the next place where a call may begin; moves the cursor past its mark. `out_begin`: the
 * mark, or the end of what is certainly no mark. */
static bool next_mark(struct srv_call_reader *r, bool is_first, size_t *out_begin)
{
    const struct srv_call_syntax *format = tnd_srv_call_syntax(r->options->format);
    struct srv_cursor bare = r->c;
    size_t held = 0, best = r->c.n;
    const char *mark = NULL;
    bool may = false;
    tnd_srv_skip_blanks(&bare);
    if (is_first &&
        ((format->bare == SRV_BARE_OBJECT && bare.at < bare.n && bare.text[bare.at] == '{') ||
         (format->bare == SRV_BARE_NAME && names_a_tool(r, &bare, &may)))) {
        *out_begin = r->c.at = bare.at;
        return true;
    }
    if (may && !r->is_final) {
        *out_begin = r->c.at;
        return false;
    }
    for (int i = 0; i < 2 && format->marks[i] != NULL; i++) {
        struct srv_cursor at = r->c;
        const size_t back = tnd_srv_held_back(&r->c, format->marks[i]);
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

/* Text within a frame that turned out to be no call is content, and the frame's end is no longer
 * searched; `begin`: where that text begins. */
static void leave_frame(struct srv_answer *out, size_t begin)
{
    const struct srv_spans *content = &out->content;
    out->in_frame =
        out->in_frame && !(content->n > 0 && content->items[content->n - 1].end > begin);
}

/* Moves past the end of the frame around the calls. False: it may come with more text. */
static bool end_frame(struct srv_call_reader *r)
{
    struct srv_cursor at = r->c;
    tnd_srv_skip_blanks(&at);
    if (tnd_srv_skip(&at, r->options->frame->end)) {
        r->c = at;
        return true;
    }
    return r->is_final || !tnd_srv_may_begin(&at, r->options->frame->end);
}

static void read_calls(struct srv_call_reader *r)
{
    const struct srv_call_syntax *format = tnd_srv_call_syntax(r->options->format);
    struct srv_answer *out = r->out;
    const size_t begin = r->c.at;
    size_t text_begin = begin, mark = begin;
    bool is_short = false;
    int n_wrong = 0;
    while (!is_short && n_wrong < MAX_WRONG) {
        const int before = out->n_calls;
        const bool is_first = text_begin == r->c.at && (r->options->n_decided == 0 || before > 0);
        if (!next_mark(r, is_first, &mark)) {
            break;
        }
        const enum srv_scan scan = format->read(r);
        if (scan == SRV_SCAN_DONE) {
            tnd_srv_spans_add(&out->content, text_begin,
                              tnd_srv_without_blanks(r->c.text, text_begin, mark));
            text_begin = r->c.at;
            leave_frame(out, begin);
            if (out->in_frame && !end_frame(r)) {
                mark = text_begin;
                break;
            }
            text_begin = r->c.at;
            continue;
        }
        tnd_srv_calls_drop(out, before);
        is_short = scan == SRV_SCAN_SHORT;
        r->c.at = mark + 1; /* the mark is text, unless there is more to come */
        n_wrong++;
    }
    size_t end = (is_short && r->is_final) || n_wrong == MAX_WRONG ? r->c.n : mark;
    if (!r->is_final || out->n_calls > 0) {
        end = tnd_srv_without_blanks(r->c.text, text_begin, end);
    }
    tnd_srv_spans_add(&out->content, text_begin, end);
}

/* The marks of reasoning that begins at the cursor, which moves past them; NULL: none. `out_may`:
 * there might be one, once there is more text. */
static const struct srv_marks *begin_reasoning(struct srv_call_reader *r, bool *out_may)
{
    const struct srv_marks *marks = r->options->thinking;
    *out_may = false;
    tnd_srv_skip_blanks(&r->c);
    if (marks != NULL) {
        *out_may = tnd_srv_may_begin(&r->c, marks->begin);
        (void)tnd_srv_skip(&r->c, marks->begin); /* (some models write it again) */
        return *out_may && !r->is_final ? NULL : marks;
    }
    for (int i = 0; (marks = tnd_srv_reasoning_at(i)) != NULL; i++) {
        if (tnd_srv_skip(&r->c, marks->begin)) {
            return marks;
        }
        *out_may = *out_may || tnd_srv_may_begin(&r->c, marks->begin);
    }
    return NULL;
}

/* Moves past the reasoning. False: it is incomplete, or it is unknown yet whether there is any. */
static bool read_reasoning(struct srv_call_reader *r)
{
    const struct srv_cursor before = r->c;
    struct srv_cursor *c = &r->c;
    bool may = false;
    const struct srv_marks *marks = begin_reasoning(r, &may);
    if (marks == NULL) {
        *c = before;
        return r->is_final || !may;
    }
    tnd_srv_skip_blanks(c);
    struct srv_cursor at = *c;
    const bool is_done = tnd_srv_seek(&at, marks->end);
    const size_t held = r->is_final ? 0 : tnd_srv_held_back(c, marks->end);
    tnd_srv_spans_add(&r->out->reasoning, c->at,
                      tnd_srv_without_blanks(c->text, c->at, is_done ? at.at : c->n - held));
    r->out->is_thinking = !is_done;
    (void)tnd_srv_skip(&at, marks->end);
    tnd_srv_skip_blanks(&at);
    *c = at;
    return is_done;
}

/* Moves past the frame, whose text is content, or to calls within it. False: neither is there, or
 * it is unknown yet whether there is a frame. */
static bool read_frame(struct srv_call_reader *r)
{
    const struct srv_call_syntax *format = tnd_srv_call_syntax(r->options->format);
    const struct srv_marks *frame = r->options->frame;
    const char *const marks[] = {frame->end, r->options->has_calls ? format->marks[0] : NULL};
    struct srv_cursor *c = &r->c, at = r->c;
    if (r->options->n_decided == 0) {
        tnd_srv_skip_blanks(&at);
        if (!tnd_srv_skip(&at, frame->begin)) {
            return r->is_final || !tnd_srv_may_begin(&at, frame->begin);
        }
        tnd_srv_skip_blanks(&at);
        *c = at;
    }
    const char *found = NULL;
    size_t held = 0;
    at.at = c->n;
    for (int i = 0; i < 2 && marks[i] != NULL; i++) {
        struct srv_cursor mark = *c;
        const size_t back = r->is_final ? 0 : tnd_srv_held_back(c, marks[i]);
        held = back > held ? back : held;
        if (tnd_srv_seek(&mark, marks[i]) && mark.at < at.at) {
            at = mark;
            found = marks[i];
        }
    }
    const size_t end = found != NULL ? at.at : c->n - held;
    const size_t text_end = tnd_srv_without_blanks(c->text, c->at, end);
    tnd_srv_spans_add(&r->out->content, c->at, text_end);
    r->out->in_frame = true;
    c->at = text_end; /* blanks before text that is no call belong to the text */
    if (found == frame->end) {
        (void)tnd_srv_skip(&at, frame->end);
        tnd_srv_skip_blanks(&at);
        c->at = at.at;
        if (at.at < at.n) { /* otherwise more blanks may come */
            r->out->in_frame = false;
            r->out->n_decided = at.at;
        }
    }
    return found != NULL;
}

static void read_answer(struct srv_call_reader *r)
{
    const struct srv_answer_options *options = r->options;
    const bool is_begin = options->n_decided == 0;
    if (options->format == SRV_CALLS_HARMONY && (options->takes_reasoning || options->has_calls)) {
        tnd_srv_harmony_read(r);
        return;
    }
    if (options->takes_reasoning && is_begin && !read_reasoning(r)) {
        return;
    }
    if (options->frame != NULL && (is_begin || options->in_frame) && !read_frame(r)) {
        return;
    }
    const size_t begin = r->c.at;
    if (options->has_calls) {
        read_calls(r);
    } else {
        tnd_srv_spans_add(&r->out->content, begin, r->c.n);
    }
    leave_frame(r->out, begin);
}

void tnd_srv_answer_read(const struct srv_answer_options *options, const char *text, size_t n,
                         bool is_final, struct srv_answer *out)
{
    struct srv_call_reader r = {
        .options = options, .c = {text, n, options->n_decided}, .out = out, .is_final = is_final};
    *out = (struct srv_answer){.n_calls = 0};
    read_answer(&r);
    const struct srv_spans *content = &out->content;
    const size_t told = content->n > 0 ? content->items[content->n - 1].end : options->n_decided;
    out->n_decided = told > out->n_decided ? told : out->n_decided;
    if (out->n_calls > 0) { /* the next reading restarts before all calls */
        out->n_decided = options->n_decided;
        out->in_frame = options->in_frame;
    }
    for (int i = 0; i < out->n_calls; i++) {
        out->failed = out->failed || out->calls[i].arguments.failed;
    }
}

void tnd_srv_answer_free(struct srv_answer *answer)
{
    tnd_srv_calls_drop(answer, 0);
}
