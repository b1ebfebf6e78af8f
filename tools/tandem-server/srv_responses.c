/* SPDX-License-Identifier: MIT
 * /v1/responses: responses as a whole and as events. */
#include "tools/tandem-server/srv_responses.h"

#include <stdio.h>
#include <string.h>

#include "tools/tandem-server/srv_message.h"

static const char *text_of(const struct srv_job *job)
{
    return job->text.bytes != NULL ? job->text.bytes : "";
}

static const char *id_of(const struct srv_job *job)
{
    const char *dash = strchr(job->id, '-');
    return dash != NULL ? dash + 1 : job->id;
}

/* ---- items of the output ---- */

static void add_reasoning(const struct srv_job *job, const struct srv_answer *answer,
                          struct srv_text *out)
{
    tnd_srv_print(out,
                  "{\"type\":\"reasoning\",\"id\":\"rs_%s\",\"summary\":[],\"content\":[{\"type\":"
                  "\"reasoning_text\",\"text\":",
                  id_of(job));
    (void)tnd_srv_message_add_spans(text_of(job), &answer->reasoning, 0, out);
    tnd_srv_print(out, "}]}");
}

static void add_part(const struct srv_job *job, const struct srv_spans *spans, struct srv_text *out)
{
    tnd_srv_print(out, "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":");
    (void)tnd_srv_message_add_spans(text_of(job), spans, 0, out);
    tnd_srv_print(out, "}");
}

static void add_message(const struct srv_job *job, const struct srv_answer *answer,
                        struct srv_text *out)
{
    tnd_srv_print(out,
                  "{\"type\":\"message\",\"id\":\"msg_%s\",\"status\":\"%s\",\"role\":"
                  "\"assistant\",\"content\":[",
                  id_of(job), answer != NULL ? "completed" : "in_progress");
    if (answer != NULL) {
        add_part(job, &answer->content, out);
    }
    tnd_srv_print(out, "]}");
}

static void add_call(const struct srv_job *job, const struct srv_answer *answer, int i,
                     bool is_done, struct srv_text *out)
{
    const struct srv_call *call = &answer->calls[i];
    char id[41];
    tnd_srv_call_id(job, call, i, id);
    tnd_srv_print(out, "{\"type\":\"function_call\",\"id\":\"fc_%s_%d\",\"call_id\":", id_of(job),
                  i);
    tnd_srv_add_json_text(out, id);
    tnd_srv_print(out, ",\"name\":");
    tnd_srv_add_json_text(out, call->name);
    tnd_srv_print(out, ",\"arguments\":");
    tnd_srv_add_json(out, call->arguments.bytes, is_done ? call->arguments.n : 0);
    tnd_srv_print(out, ",\"status\":\"%s\"}", is_done ? "completed" : "in_progress");
}

/* Every output without calls contains a message. */
static bool has_message(const struct srv_answer *answer)
{
    return answer->content.n > 0 || answer->n_calls == 0;
}

static int count_calls(const struct srv_job *job, const struct srv_answer *answer)
{
    return answer->n_calls > 1 && !job->params.tools.is_parallel ? 1 : answer->n_calls;
}

/* ---- the response ---- */

static void add_output(const struct srv_job *job, const struct srv_answer *answer,
                       struct srv_text *out)
{
    bool is_first = true;
    if (answer->reasoning.n > 0) {
        add_reasoning(job, answer, out);
        is_first = false;
    }
    if (has_message(answer)) {
        tnd_srv_print(out, "%s", is_first ? "" : ",");
        add_message(job, answer, out);
        is_first = false;
    }
    for (int i = 0; i < count_calls(job, answer); i++) {
        tnd_srv_print(out, "%s", is_first && i == 0 ? "" : ",");
        add_call(job, answer, i, true, out);
    }
}

/* `answer` NULL: it has just begun. */
static void add_response(const struct srv_server *server, const struct srv_job *job,
                         const struct srv_answer *answer, struct srv_text *out)
{
    const bool is_cut = answer != NULL && job->finish == SRV_LENGTH;
    tnd_srv_print(out,
                  "{\"id\":\"resp_%s\",\"object\":\"response\",\"created_at\":%lld,\"status\":"
                  "\"%s\",\"error\":null,\"incomplete_details\":%s,\"instructions\":null,"
                  "\"metadata\":{},\"parallel_tool_calls\":%s,\"previous_response_id\":null,"
                  "\"tool_choice\":\"%s\",\"tools\":[],\"temperature\":%.4g,\"top_p\":%.4g,"
                  "\"truncation\":\"disabled\",\"model\":",
                  id_of(job), (long long)job->created,
                  answer == NULL ? "in_progress"
                  : is_cut       ? "incomplete"
                                 : "completed",
                  is_cut ? "{\"reason\":\"max_output_tokens\"}" : "null",
                  job->params.tools.is_parallel ? "true" : "false",
                  job->params.tools.must_call ? "required" : "auto",
                  (double)job->params.sampler.temperature, (double)job->params.sampler.top_p);
    tnd_srv_add_json_text(out, server->model_name);
    tnd_srv_print(out, ",\"output\":[");
    if (answer != NULL) {
        add_output(job, answer, out);
    }
    tnd_srv_print(out, "],\"usage\":");
    if (answer == NULL) {
        tnd_srv_print(out, "null}");
        return;
    }
    tnd_srv_print(out,
                  "{\"input_tokens\":%lld,\"input_tokens_details\":{\"cached_tokens\":%lld},"
                  "\"output_tokens\":%lld,\"output_tokens_details\":{\"reasoning_tokens\":0},"
                  "\"total_tokens\":%lld}}",
                  (long long)job->n_prompt, (long long)job->times.n_cached,
                  (long long)job->n_generated, (long long)(job->n_prompt + job->n_generated));
}

void tnd_srv_response_add(const struct srv_server *server, const struct srv_job *job,
                          struct srv_text *out)
{
    const struct srv_answer_options options = tnd_srv_message_options(job);
    struct srv_answer answer;
    tnd_srv_answer_read(&options, text_of(job), job->text.n, true, &answer);
    add_response(server, job, &answer, out);
    out->failed = out->failed || answer.failed;
    tnd_srv_answer_free(&answer);
}

/* ---- events ---- */

struct teller {
    const struct srv_server *server;
    const struct srv_job *job;
    struct srv_reader *reader;
    struct srv_text *out;
};

/* Begins an event; end_event closes its braces. */
static void begin_event(struct teller *t, const char *type)
{
    tnd_srv_print(t->out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d", type, type,
                  t->reader->n_events++);
}

static void end_event(struct teller *t)
{
    tnd_srv_print(t->out, "}\n\n");
}

static void tell_response(struct teller *t, const char *type, const struct srv_answer *answer)
{
    begin_event(t, type);
    tnd_srv_print(t->out, ",\"response\":");
    add_response(t->server, t->job, answer, t->out);
    end_event(t);
}

static void begin_item_event(struct teller *t, const char *type)
{
    begin_event(t, type);
    tnd_srv_print(t->out, ",\"output_index\":%d,\"item\":", t->reader->n_items);
}

/* Begins an event about the message's text, with the members that these have in common. */
static void begin_text_event(struct teller *t, const char *type)
{
    begin_event(t, type);
    tnd_srv_print(t->out, ",\"item_id\":\"msg_%s\",\"output_index\":%d,\"content_index\":0",
                  id_of(t->job), t->reader->n_items);
}

static void begin_message(struct teller *t, const struct srv_answer *answer)
{
    const struct srv_spans none = {.n = 0};
    if (answer->reasoning.n > 0) {
        begin_item_event(t, "response.output_item.added");
        add_reasoning(t->job, answer, t->out);
        end_event(t);
        begin_item_event(t, "response.output_item.done");
        add_reasoning(t->job, answer, t->out);
        end_event(t);
        t->reader->n_items++;
    }
    if (!has_message(answer)) {
        return;
    }
    begin_item_event(t, "response.output_item.added");
    add_message(t->job, NULL, t->out);
    end_event(t);
    begin_text_event(t, "response.content_part.added");
    tnd_srv_print(t->out, ",\"part\":");
    add_part(t->job, &none, t->out);
    end_event(t);
    t->reader->has_message = true;
}

static void end_message(struct teller *t, const struct srv_answer *answer)
{
    begin_text_event(t, "response.output_text.done");
    tnd_srv_print(t->out, ",\"logprobs\":[],\"text\":");
    (void)tnd_srv_message_add_spans(text_of(t->job), &answer->content, 0, t->out);
    end_event(t);
    begin_text_event(t, "response.content_part.done");
    tnd_srv_print(t->out, ",\"part\":");
    add_part(t->job, &answer->content, t->out);
    end_event(t);
    begin_item_event(t, "response.output_item.done");
    add_message(t->job, answer, t->out);
    end_event(t);
    t->reader->n_items++;
}

static void tell_call(struct teller *t, const struct srv_answer *answer, int i)
{
    static const char *const types[] = {"response.function_call_arguments.delta",
                                        "response.function_call_arguments.done"};
    const struct srv_call *call = &answer->calls[i];
    begin_item_event(t, "response.output_item.added");
    add_call(t->job, answer, i, false, t->out);
    end_event(t);
    for (int k = 0; k < 2; k++) {
        begin_event(t, types[k]);
        tnd_srv_print(
            t->out,
            ",\"item_id\":\"fc_%s_%d\",\"output_index\":%d,\"name\":\"%s\",\"%s\":", id_of(t->job),
            i, t->reader->n_items, call->name, k == 0 ? "delta" : "arguments");
        tnd_srv_add_json(t->out, call->arguments.bytes, call->arguments.n);
        end_event(t);
    }
    begin_item_event(t, "response.output_item.done");
    add_call(t->job, answer, i, true, t->out);
    end_event(t);
    t->reader->n_items++;
}

static void tell_text(struct teller *t, const struct srv_answer *answer)
{
    struct srv_reader *reader = t->reader;
    const struct srv_spans *content = &answer->content;
    if (content->n == 0 || content->items[content->n - 1].end <= reader->n_content) {
        return;
    }
    if (!reader->has_message) {
        begin_message(t, answer);
    }
    begin_text_event(t, "response.output_text.delta");
    tnd_srv_print(t->out, ",\"logprobs\":[],\"delta\":");
    reader->n_content =
        tnd_srv_message_add_spans(text_of(t->job), content, reader->n_content, t->out);
    end_event(t);
}

void tnd_srv_response_add_events(const struct srv_server *server, const struct srv_job *job,
                                 struct srv_reader *reader, size_t n, bool is_final,
                                 struct srv_text *out)
{
    const struct srv_answer_options options = tnd_srv_message_options(job);
    struct teller t = {server, job, reader, out};
    struct srv_answer answer;
    tnd_srv_answer_read(&options, text_of(job), n, is_final, &answer);
    if (reader->n_events == 0) {
        tell_response(&t, "response.created", NULL);
        tell_response(&t, "response.in_progress", NULL);
    }
    tell_text(&t, &answer);
    if (is_final) {
        if (!reader->has_message) {
            begin_message(&t, &answer);
        }
        if (reader->has_message) {
            end_message(&t, &answer);
        }
        for (int i = 0; i < count_calls(job, &answer); i++) {
            tell_call(&t, &answer, i);
        }
        tell_response(&t, job->finish == SRV_LENGTH ? "response.incomplete" : "response.completed",
                      &answer);
    }
    out->failed = out->failed || answer.failed;
    tnd_srv_answer_free(&answer);
}
