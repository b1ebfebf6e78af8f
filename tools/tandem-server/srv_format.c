/* SPDX-License-Identifier: MIT
 * The output of jobs in the formats of OpenAI's chats and completions and llama.cpp's /completion,
 * as server-sent events or as a whole. */
#include <math.h>
#include <string.h>

#include "tools/tandem-server/srv_message.h"
#include "tools/tandem-server/srv_responses.h"

/* ---- parts ---- */

static const char *reason_of(const struct srv_job *job, int n_calls)
{
    return job->finish == SRV_LENGTH ? "\"length\"" : n_calls > 0 ? "\"tool_calls\"" : "\"stop\"";
}

static void add_piece(const struct srv_server *server, int32_t id, struct srv_text *out)
{
    size_t n;
    const char *bytes = tnd_srv_vocabulary_bytes(server->vocabulary, id, &n);
    tnd_srv_add_json(out, bytes, n);
}

/* Adds the bytes of a token as numbers: it may end within a character. */
static void add_bytes(const struct srv_server *server, int32_t id, struct srv_text *out)
{
    size_t n;
    const char *bytes = tnd_srv_vocabulary_bytes(server->vocabulary, id, &n);
    tnd_srv_print(out, "[");
    for (size_t i = 0; i < n; i++) {
        tnd_srv_print(out, "%s%u", i > 0 ? "," : "", (unsigned)(unsigned char)bytes[i]);
    }
    tnd_srv_print(out, "]");
}

static void add_choice(const struct srv_server *server, int32_t id, float logprob,
                       struct srv_text *out)
{
    tnd_srv_print(out, "{\"token\":");
    add_piece(server, id, out);
    tnd_srv_print(out, ",\"logprob\":");
    tnd_srv_add_number(out, (double)logprob);
    tnd_srv_print(out, ",\"bytes\":");
    add_bytes(server, id, out);
}

/* Adds {"content":[..]} of chats, or llama.cpp's array, for tokens begin .. end - 1. */
static void add_contents(const struct srv_server *server, const struct srv_job *job, size_t begin,
                         size_t end, struct srv_text *out)
{
    tnd_srv_print(out, "[");
    for (size_t i = begin; i < end; i++) {
        const struct srv_token *token = &job->tokens[i];
        tnd_srv_print(out, "%s", i > begin ? "," : "");
        add_choice(server, token->id, token->logprob, out);
        tnd_srv_print(out, ",\"top_logprobs\":[");
        for (int k = 0; k < job->params.n_top && token->top[k].id >= 0; k++) {
            tnd_srv_print(out, "%s", k > 0 ? "," : "");
            add_choice(server, token->top[k].id, token->top[k].logprob, out);
            tnd_srv_print(out, "}");
        }
        tnd_srv_print(out, "]}");
    }
    tnd_srv_print(out, "]");
}

/* Completions have four arrays instead. */
static void add_arrays(const struct srv_server *server, const struct srv_job *job, size_t begin,
                       size_t end, struct srv_text *out)
{
    tnd_srv_print(out, "{\"tokens\":[");
    for (size_t i = begin; i < end; i++) {
        tnd_srv_print(out, "%s", i > begin ? "," : "");
        add_piece(server, job->tokens[i].id, out);
    }
    tnd_srv_print(out, "],\"token_logprobs\":[");
    for (size_t i = begin; i < end; i++) {
        tnd_srv_print(out, "%s", i > begin ? "," : "");
        tnd_srv_add_number(out, (double)job->tokens[i].logprob);
    }
    tnd_srv_print(out, "],\"top_logprobs\":[");
    for (size_t i = begin; i < end; i++) {
        const struct srv_token *token = &job->tokens[i];
        tnd_srv_print(out, "%s{", i > begin ? "," : "");
        for (int k = 0; k < job->params.n_top && token->top[k].id >= 0; k++) {
            tnd_srv_print(out, "%s", k > 0 ? "," : "");
            add_piece(server, token->top[k].id, out);
            tnd_srv_print(out, ":");
            tnd_srv_add_number(out, (double)token->top[k].logprob);
        }
        tnd_srv_print(out, "}");
    }
    tnd_srv_print(out, "],\"text_offset\":[");
    for (size_t i = begin; i < end; i++) {
        tnd_srv_print(out, "%s%zu", i > begin ? "," : "", job->tokens[i].begin);
    }
    tnd_srv_print(out, "]}");
}

static void add_logprobs(const struct srv_server *server, const struct srv_job *job, size_t begin,
                         size_t end, struct srv_text *out)
{
    if (!job->params.wants_logprobs || begin == end) {
        tnd_srv_print(out, "null");
    } else if (job->params.style == SRV_CHAT) {
        tnd_srv_print(out, "{\"content\":");
        add_contents(server, job, begin, end, out);
        tnd_srv_print(out, "}");
    } else {
        add_arrays(server, job, begin, end, out);
    }
}

/* Adds the usage of all choices of a request, which have ended; a prompt counts once. */
static void add_usage(const struct srv_job *job, struct srv_text *out)
{
    int64_t n_prompt = 0;
    int64_t n_generated = 0;
    int64_t n_cached = 0;
    for (const struct srv_job *one = job->first; one != NULL; one = one->sibling) {
        n_prompt += one->repeats_prompt ? 0 : one->n_prompt;
        n_cached += one->repeats_prompt ? 0 : one->times.n_cached;
        n_generated += one->n_generated;
    }
    tnd_srv_print(out,
                  "{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,\"total_tokens\":%lld,"
                  "\"prompt_tokens_details\":{\"cached_tokens\":%lld}}",
                  (long long)n_prompt, (long long)n_generated, (long long)(n_prompt + n_generated),
                  (long long)n_cached);
}

/* Adds timings in llama.cpp's format. */
static void add_timings(const struct srv_job *job, struct srv_text *out)
{
    const struct srv_times *t = &job->times;
    const int64_t n_prompt = job->n_prompt - t->n_cached;
    const double prompt = t->prompted > t->began ? t->prompted - t->began : 0.0;
    const double text = t->prompted > 0.0 && t->ended > t->prompted ? t->ended - t->prompted : 0.0;
    tnd_srv_print(out,
                  "{\"queue_ms\":%.3f,\"cache_n\":%lld,\"prompt_n\":%lld,\"prompt_ms\":%.3f,"
                  "\"prompt_per_second\":%.3f,\"predicted_n\":%lld,\"predicted_ms\":%.3f,"
                  "\"predicted_per_second\":%.3f}",
                  t->began > 0.0 ? 1e3 * (t->began - t->arrived) : 0.0, (long long)t->n_cached,
                  (long long)n_prompt, 1e3 * prompt, prompt > 0.0 ? (double)n_prompt / prompt : 0.0,
                  (long long)job->n_generated, 1e3 * text,
                  text > 0.0 ? (double)job->n_generated / text : 0.0);
}

static void add_head(const struct srv_server *server, const struct srv_job *job, const char *object,
                     struct srv_text *out)
{
    tnd_srv_print(out,
                  "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", job->first->id,
                  object, (long long)job->first->created);
    tnd_srv_add_json_text(out, server->model_name);
}

/* Adds the final members of llama.cpp's format. */
static void add_native_end(const struct srv_server *server, const struct srv_job *job,
                           struct srv_text *out)
{
    static const char *const types[] = {"none", "eos", "word", "limit"};
    tnd_srv_print(out, ",\"stop\":true,\"model\":");
    tnd_srv_add_json_text(out, server->model_name);
    tnd_srv_print(out,
                  ",\"tokens_predicted\":%lld,\"tokens_evaluated\":%lld,\"tokens_cached\":%lld,"
                  "\"truncated\":false,\"stop_type\":\"%s\",\"stopping_word\":",
                  (long long)job->n_generated, (long long)job->n_prompt,
                  (long long)job->times.n_cached,
                  types[job->finish <= SRV_LENGTH ? job->finish : 0]);
    tnd_srv_add_json_text(out, job->stopped_by != NULL ? job->stopped_by : "");
    tnd_srv_print(out, ",\"timings\":");
    add_timings(job, out);
}

static void add_native_tokens(const struct srv_server *server, const struct srv_job *job,
                              size_t begin, size_t end, struct srv_text *out)
{
    tnd_srv_print(out, ",\"tokens\":[");
    for (size_t i = begin; i < end; i++) {
        tnd_srv_print(out, "%s%d", i > begin ? "," : "", (int)job->tokens[i].id);
    }
    tnd_srv_print(out, "]");
    if (job->params.wants_logprobs) {
        tnd_srv_print(out, ",\"completion_probabilities\":");
        add_contents(server, job, begin, end, out);
    }
}

/* ---- whole ---- */

/* In base64: the little-endian floats. */
static void add_vector(const float *values, int64_t n, bool is_base64, struct srv_text *out)
{
    if (is_base64) {
        tnd_srv_add_base64(out, values, (size_t)n * sizeof(values[0]));
        return;
    }
    tnd_srv_print(out, "[");
    for (int64_t i = 0; i < n; i++) {
        tnd_srv_print(out, "%s", i > 0 ? "," : "");
        tnd_srv_add_number(out, (double)values[i]);
    }
    tnd_srv_print(out, "]");
}

static void add_embedding(const struct srv_server *server, const struct srv_job *job,
                          struct srv_text *out)
{
    const int64_t n = job->n_embedding;
    tnd_srv_print(out, "{\"object\":\"list\",\"data\":[");
    for (int text = 0; text == 0 || text < job->texts.n_texts; text++) {
        tnd_srv_print(out, "%s{\"object\":\"embedding\",\"index\":%d,\"embedding\":",
                      text > 0 ? "," : "", text);
        add_vector(job->embeddings + n * text, n, job->params.is_base64, out);
        tnd_srv_print(out, "}");
    }
    tnd_srv_print(out, "],\"model\":");
    tnd_srv_add_json_text(out, server->model_name);
    tnd_srv_print(out, ",\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}}", job->texts.n,
                  job->texts.n);
}

/* Adds the best documents first; scores as probabilities, which clients use as thresholds. */
static void add_ranks(const struct srv_server *server, const struct srv_job *job,
                      struct srv_text *out)
{
    bool is_told[SRV_MAX_TEXTS] = {false};
    tnd_srv_print(out, "{\"object\":\"list\",\"results\":[");
    for (int64_t k = 0; k < job->params.n_best && k < job->texts.n_texts; k++) {
        int best = -1;
        for (int i = 0; i < job->texts.n_texts; i++) {
            if (!is_told[i] && (best < 0 || job->embeddings[i] > job->embeddings[best])) {
                best = i;
            }
        }
        is_told[best] = true;
        tnd_srv_print(out, "%s{\"index\":%d,\"relevance_score\":", k > 0 ? "," : "", best);
        tnd_srv_add_number(out, 1.0 / (1.0 + exp(-(double)job->embeddings[best])));
        tnd_srv_print(out, "}");
    }
    tnd_srv_print(out, "],\"model\":");
    tnd_srv_add_json_text(out, server->model_name);
    tnd_srv_print(out, ",\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}}", job->texts.n,
                  job->texts.n);
}

/* A choice of a chat or completion. */
static void add_whole_choice(const struct srv_server *server, const struct srv_job *job,
                             struct srv_text *out)
{
    const bool is_chat = job->params.style == SRV_CHAT;
    int n_calls = 0;
    tnd_srv_print(out, "%s{\"index\":%d,%s", job->index > 0 ? "," : "", job->index,
                  is_chat ? "\"message\":" : "\"text\":");
    if (is_chat) {
        n_calls = tnd_srv_message_add(job, out);
    } else {
        tnd_srv_add_json(out, job->text.bytes, job->text.n);
    }
    tnd_srv_print(out, ",\"logprobs\":");
    add_logprobs(server, job, 0, job->n_tokens, out);
    tnd_srv_print(out, ",\"finish_reason\":%s}", reason_of(job, n_calls));
}

static void add_whole(const struct srv_server *server, const struct srv_job *job,
                      struct srv_text *out)
{
    const bool is_chat = job->params.style == SRV_CHAT;
    if (job->params.is_response) {
        tnd_srv_response_add(server, job, out);
        return;
    }
    if (job->params.style == SRV_EMBEDDING) {
        (job->params.is_rerank ? add_ranks : add_embedding)(server, job, out);
        return;
    }
    if (job->params.style == SRV_NATIVE) {
        tnd_srv_print(out, "{\"content\":");
        tnd_srv_add_json(out, job->text.bytes, job->text.n);
        add_native_tokens(server, job, 0, job->n_tokens, out);
        add_native_end(server, job, out);
        tnd_srv_print(out, "}");
        return;
    }
    add_head(server, job, is_chat ? "chat.completion" : "text_completion", out);
    tnd_srv_print(out, ",\"choices\":[");
    for (const struct srv_job *one = job; one != NULL; one = one->sibling) {
        add_whole_choice(server, one, out);
    }
    tnd_srv_print(out, "],\"usage\":");
    add_usage(job, out);
    tnd_srv_print(out, ",\"timings\":");
    add_timings(job, out);
    tnd_srv_print(out, "}");
}

/* HTTP status and reason of a job that ended without a result; 0: it has one. */
static int fault_of(const struct srv_job *job, const char **out_why)
{
    *out_why = job->finish == SRV_TIMEOUT     ? "the request took longer than it may"
               : job->finish == SRV_CANCELLED ? "the server ends, or nobody reads"
                                              : job->fault;
    return job->finish == SRV_FAILED                                 ? 500
           : job->finish == SRV_TIMEOUT                              ? 504
           : job->finish == SRV_CANCELLED || job->finish == SRV_LOST ? 503
                                                                     : 0;
}

bool tnd_srv_read_whole(const struct srv_server *server, struct srv_job *job,
                        struct srv_reply *reply)
{
    const char *why;
    const struct srv_job *failed = NULL;
    for (struct srv_job *one = job->sibling; one != NULL; one = one->sibling) {
        if (!tnd_srv_job_is_done(one)) {
            return false;
        }
        failed = failed == NULL && fault_of(one, &why) != 0 ? one : failed;
    }
    pthread_mutex_lock(&job->mutex);
    const bool is_done = job->finish != SRV_RUNNING;
    int status = fault_of(job, &why);
    if (status == 0 && failed != NULL) {
        status = fault_of(failed, &why);
    }
    if (is_done && status != 0) {
        tnd_srv_reply_error(reply, status, "%s", why);
    } else if (is_done) {
        reply->status = 200;
        reply->type = "application/json";
        add_whole(server, job, &reply->body);
    }
    pthread_mutex_unlock(&job->mutex);
    if (reply->body.failed) {
        tnd_srv_reply_error(reply, 500, "no memory for the reply");
    }
    return is_done;
}

/* ---- streams ---- */

/* Tokens with log-probabilities are long: what a slow reader missed is sent in several events. */
enum { MAX_EVENT_TOKENS = 64 };

/* Adds an event in llama.cpp's format. */
static void add_native_event(const struct srv_server *server, const struct srv_job *job,
                             const struct srv_reader *reader, size_t n_tokens, size_t n_bytes,
                             bool is_end, struct srv_text *out)
{
    const char *text = job->text.bytes != NULL ? job->text.bytes + reader->n_bytes : "";
    tnd_srv_print(out, "data: {\"content\":");
    tnd_srv_add_json(out, text, n_bytes - reader->n_bytes);
    add_native_tokens(server, job, reader->n_tokens, n_tokens, out);
    if (is_end) {
        add_native_end(server, job, out);
    } else {
        tnd_srv_print(out, ",\"stop\":false");
    }
    tnd_srv_print(out, "}\n\n");
}

/* Adds an event with new output: `what` is a member of the choice. */
static void add_choice_event(const struct srv_server *server, const struct srv_job *job,
                             const struct srv_reader *reader, const struct srv_text *what,
                             size_t n_tokens, bool is_end, struct srv_text *out)
{
    const bool is_chat = job->params.style == SRV_CHAT;
    tnd_srv_print(out, "data: ");
    add_head(server, job, is_chat ? "chat.completion.chunk" : "text_completion", out);
    tnd_srv_print(out, ",\"choices\":[{\"index\":%d,%s", job->index,
                  is_chat ? "\"delta\":{" : "\"text\":");
    tnd_srv_add(out, what->bytes, what->n);
    out->failed = out->failed || what->failed;
    tnd_srv_print(out, "%s,\"logprobs\":", is_chat ? "}" : "");
    add_logprobs(server, job, reader->n_tokens, n_tokens, out);
    tnd_srv_print(out, ",\"finish_reason\":%s}]",
                  is_end ? reason_of(job, reader->n_calls) : "null");
    tnd_srv_print(out, "%s}\n\n", job->params.wants_usage ? ",\"usage\":null" : "");
}

/* Adds an event with text up to n_bytes, if there is any; at the end with its reason. */
static void add_event(const struct srv_server *server, const struct srv_job *job,
                      struct srv_reader *reader, size_t n_bytes, size_t n_tokens, bool is_end,
                      struct srv_text *out)
{
    struct srv_text what = {0};
    if (job->params.style == SRV_NATIVE) {
        add_native_event(server, job, reader, n_tokens, n_bytes, is_end, out);
        return;
    }
    if (job->params.style == SRV_COMPLETION) {
        const char *text = job->text.bytes != NULL ? job->text.bytes + reader->n_bytes : "";
        tnd_srv_add_json(&what, text, n_bytes - reader->n_bytes);
    } else if (!is_end) {
        tnd_srv_message_add_delta(job, reader, n_bytes,
                                  job->finish != SRV_RUNNING && n_bytes == job->n_ready, &what);
    }
    if (is_end || what.n > 0 || n_tokens > reader->n_tokens) {
        add_choice_event(server, job, reader, &what, n_tokens, is_end, out);
    }
    tnd_srv_text_free(&what);
}

/* Adds the first event, with the role. */
static void add_begin(const struct srv_server *server, const struct srv_job *job,
                      const struct srv_reader *reader, struct srv_text *out)
{
    struct srv_text what = {0};
    tnd_srv_print(&what, "\"role\":\"assistant\",\"content\":\"\"");
    add_choice_event(server, job, reader, &what, 0, false, out);
    tnd_srv_text_free(&what);
}

static void add_fault(const struct srv_job *job, struct srv_text *out)
{
    const char *why;
    const int status = fault_of(job, &why);
    tnd_srv_print(out,
                  "data: {\"error\":{\"code\":%d,\"type\":\"server_error\",\"param\":null,"
                  "\"message\":",
                  status);
    tnd_srv_add_json_text(out, why);
    tnd_srv_print(out, "}}\n\n");
}

static void add_end(const struct srv_server *server, const struct srv_job *job,
                    struct srv_reader *reader, struct srv_text *out)
{
    const char *why;
    if (fault_of(job, &why) != 0) {
        add_fault(job, out);
        return;
    }
    add_event(server, job, reader, reader->n_bytes, reader->n_tokens, true, out);
    if (job->params.style == SRV_NATIVE || job->sibling != NULL) {
        return;
    }
    if (job->params.wants_usage) {
        tnd_srv_print(out, "data: ");
        add_head(server, job,
                 job->params.style == SRV_CHAT ? "chat.completion.chunk" : "text_completion", out);
        tnd_srv_print(out, ",\"choices\":[],\"usage\":");
        add_usage(job, out);
        tnd_srv_print(out, ",\"timings\":");
        add_timings(job, out);
        tnd_srv_print(out, "}\n\n");
    }
    tnd_srv_print(out, "data: [DONE]\n\n");
}

/* Adds new events of a response; the last one contains the whole response. */
static void add_response_events(const struct srv_server *server, const struct srv_job *job,
                                struct srv_reader *reader, struct srv_text *out)
{
    const char *why;
    const bool is_done = job->finish != SRV_RUNNING;
    if (fault_of(job, &why) == 0 && !reader->has_ended) {
        tnd_srv_response_add_events(server, job, reader, job->n_ready, is_done, out);
    } else if (!reader->has_ended) {
        tnd_srv_print(out, "event: error\n");
        add_fault(job, out);
    }
    reader->has_ended = is_done;
}

bool tnd_srv_read_stream(const struct srv_server *server, struct srv_job *job,
                         struct srv_reader *reader, struct srv_text *out)
{
    pthread_mutex_lock(&job->mutex);
    const bool is_done = job->finish != SRV_RUNNING;
    if (job->params.is_response) {
        add_response_events(server, job, reader, out);
        pthread_mutex_unlock(&job->mutex);
        return is_done;
    }
    if (!reader->has_begun && job->params.style == SRV_CHAT) {
        add_begin(server, job, reader, out);
    }
    reader->has_begun = true;
    size_t n_tokens = reader->n_tokens;
    while (n_tokens < job->n_tokens && n_tokens < reader->n_tokens + MAX_EVENT_TOKENS &&
           job->tokens[n_tokens].end <= job->n_ready) {
        n_tokens++;
    }
    const bool has_more = n_tokens < job->n_tokens && job->tokens[n_tokens].end <= job->n_ready;
    const size_t n_bytes = has_more ? job->tokens[n_tokens - 1].end : job->n_ready;
    if (n_bytes > reader->n_bytes || n_tokens > reader->n_tokens ||
        (is_done && !reader->has_ended && job->params.style == SRV_CHAT)) {
        add_event(server, job, reader, n_bytes, n_tokens, false, out);
        reader->n_bytes = n_bytes;
        reader->n_tokens = n_tokens;
    }
    if (is_done && !has_more && !reader->has_ended) {
        add_end(server, job, reader, out);
        reader->has_ended = true;
    }
    pthread_mutex_unlock(&job->mutex);
    return is_done && !has_more;
}
