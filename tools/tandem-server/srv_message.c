/* SPDX-License-Identifier: MIT
 * The assistant's message of a chat. */
#include "tools/tandem-server/srv_message.h"

#include <stdio.h>
#include <string.h>

struct srv_answer_options tnd_srv_message_options(const struct srv_job *job)
{
    const struct srv_params *params = &job->params;
    return (struct srv_answer_options){.has_calls = params->tools.list != NULL,
                                       .format = params->tools.format,
                                       .tools = params->tools.list,
                                       .takes_reasoning = params->takes_reasoning,
                                       .thinking = job->texts.thinking,
                                       .frame = params->frame};
}

/* Nine letters and digits, as Mistral's templates require; FNV-1a of the job's id. */
void tnd_srv_call_id(const struct srv_job *job, const struct srv_call *call, int i, char *out)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    uint64_t hash = 14695981039346656037u + (uint64_t)i;
    if (call->id[0] != '\0') {
        memcpy(out, call->id, strlen(call->id) + 1);
        return;
    }
    for (const char *at = job->id; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    }
    for (int k = 0; k < 9; k++, hash /= 36) {
        out[k] = digits[hash % 36];
    }
    out[9] = '\0';
}

static void add_call(const struct srv_job *job, const struct srv_call *call, int i, bool has_index,
                     struct srv_text *out)
{
    char id[41];
    tnd_srv_call_id(job, call, i, id);
    tnd_srv_print(out, "%s{", i > 0 && !has_index ? "," : "");
    if (has_index) {
        tnd_srv_print(out, "\"index\":%d,", i);
    }
    tnd_srv_print(out, "\"id\":");
    tnd_srv_add_json_text(out, id);
    tnd_srv_print(out, ",\"type\":\"function\",\"function\":{\"name\":");
    tnd_srv_add_json_text(out, call->name);
    tnd_srv_print(out, ",\"arguments\":");
    tnd_srv_add_json(out, call->arguments.bytes, call->arguments.n);
    tnd_srv_print(out, "}}");
}

/* Concatenates the pieces from byte `begin` on. */
static void join(const char *text, const struct srv_spans *spans, size_t begin,
                 struct srv_text *out)
{
    for (int i = 0; i < spans->n; i++) {
        const size_t from = begin > spans->items[i].begin ? begin : spans->items[i].begin;
        if (spans->items[i].end > from) {
            tnd_srv_add(out, text + from, spans->items[i].end - from);
        }
    }
}

size_t tnd_srv_message_add_spans(const char *text, const struct srv_spans *spans, size_t begin,
                                 struct srv_text *out)
{
    struct srv_text joined = {0};
    join(text, spans, begin, &joined);
    tnd_srv_add_json(out, joined.bytes, joined.n);
    out->failed = out->failed || joined.failed;
    tnd_srv_text_free(&joined);
    return spans->n > 0 ? spans->items[spans->n - 1].end : 0;
}

/* Drops calls after the first if the request allows only one at a time. */
static int count_calls(const struct srv_job *job, const struct srv_answer *answer)
{
    return answer->n_calls > 1 && !job->params.tools.is_parallel ? 1 : answer->n_calls;
}

int tnd_srv_message_add(const struct srv_job *job, struct srv_text *out)
{
    const struct srv_answer_options options = tnd_srv_message_options(job);
    const char *text = job->text.bytes != NULL ? job->text.bytes : "";
    struct srv_answer answer;
    tnd_srv_answer_read(&options, text, job->text.n, true, &answer);
    const int n = count_calls(job, &answer);
    tnd_srv_print(out, "{\"role\":\"assistant\",\"content\":");
    if (n > 0 && answer.content.n == 0) {
        tnd_srv_print(out, "null");
    } else {
        (void)tnd_srv_message_add_spans(text, &answer.content, 0, out);
    }
    if (answer.reasoning.n > 0) {
        tnd_srv_print(out, ",\"reasoning_content\":");
        (void)tnd_srv_message_add_spans(text, &answer.reasoning, 0, out);
    }
    for (int i = 0; i < n; i++) {
        tnd_srv_print(out, "%s", i == 0 ? ",\"tool_calls\":[" : "");
        add_call(job, &answer.calls[i], i, false, out);
        tnd_srv_print(out, "%s", i == n - 1 ? "]" : "");
    }
    tnd_srv_print(out, "}");
    out->failed = out->failed || answer.failed;
    tnd_srv_answer_free(&answer);
    return n;
}

/* Adds what is new in some pieces as one member. */
static void add_new(const char *name, const char *text, const struct srv_spans *spans,
                    size_t *io_told, struct srv_text *out)
{
    if (spans->n > 0 && spans->items[spans->n - 1].end > *io_told) {
        tnd_srv_print(out, "%s\"%s\":", out->n > 0 ? "," : "", name);
        *io_told = tnd_srv_message_add_spans(text, spans, *io_told, out);
    }
}

void tnd_srv_message_add_delta(const struct srv_job *job, struct srv_reader *reader, size_t n,
                               bool is_final, struct srv_text *out)
{
    struct srv_answer_options options = tnd_srv_message_options(job);
    const char *text = job->text.bytes != NULL ? job->text.bytes : "";
    struct srv_answer answer;
    struct srv_text delta = {0};
    options.n_decided = reader->n_decided;
    options.in_frame = reader->in_frame;
    tnd_srv_answer_read(&options, text, n, is_final, &answer);
    add_new("reasoning_content", text, &answer.reasoning, &reader->n_reasoning, &delta);
    add_new("content", text, &answer.content, &reader->n_content, &delta);
    reader->n_decided = answer.n_decided;
    reader->in_frame = answer.in_frame;
    const int n_calls = count_calls(job, &answer);
    for (int i = reader->n_calls; i < n_calls; i++) {
        tnd_srv_print(&delta, "%s%s", delta.n > 0 && i == reader->n_calls ? "," : "",
                      i == reader->n_calls ? "\"tool_calls\":[" : ",");
        add_call(job, &answer.calls[i], i, true, &delta);
        tnd_srv_print(&delta, "%s", i == n_calls - 1 ? "]" : "");
    }
    reader->n_calls = n_calls > reader->n_calls ? n_calls : reader->n_calls;
    tnd_srv_add(out, delta.bytes, delta.n);
    out->failed = out->failed || delta.failed || answer.failed;
    tnd_srv_text_free(&delta);
    tnd_srv_answer_free(&answer);
}
