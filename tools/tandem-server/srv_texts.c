/* SPDX-License-Identifier: MIT
 * Routes that create jobs, and those of the tokenizer. */
#include <stdlib.h>
#include <string.h>

#include "tools/tandem-server/srv_members.h"
#include "tools/tandem-server/srv_params.h"
#include "tools/tandem-server/srv_responses.h"
#include "tools/tandem-server/srv_routes.h"

/* Maximum number of tokens of a text: limited by the context and the cache. */
static int64_t most_tokens(const struct srv_server *server)
{
    const int64_t context = tnd_srv_engine_context(server->engine);
    const int64_t cells = server->n_cells / SRV_BLOCK * SRV_BLOCK;
    return context < cells ? context : cells;
}

static void refuse(struct srv_reply *reply, const struct srv_body *body)
{
    tnd_srv_reply_error(reply, body->is_large ? 413 : 400, "%s", body->fault);
}

static void submit(const struct srv_server *server, struct srv_job *job, struct srv_reply *reply)
{
    job->deadline = job->times.arrived + server->max_seconds;
    switch (tnd_srv_engine_submit(server->engine, job)) {
    case SRV_TAKEN:
        reply->job = job;
        return;
    case SRV_QUEUE_FULL:
        tnd_srv_reply_error(reply, 503, "too many requests wait; try again later");
        break;
    case SRV_CLOSING:
        tnd_srv_reply_error(reply, 503, "the server ends");
        break;
    }
    tnd_srv_job_unref(job);
}

/* Whether all texts of a prompt have tokens, but not too many. */
static bool check_prompt(const struct srv_ids *prompt, int64_t most, struct srv_reply *reply)
{
    int64_t begin = 0;
    for (int i = 0; i == 0 || i < prompt->n_texts; i++) {
        const int64_t n = (prompt->ends != NULL ? prompt->ends[i] : (int64_t)prompt->n) - begin;
        if (n == 0) {
            tnd_srv_reply_error(reply, 400, "the prompt is empty");
            return false;
        }
        if (n > most) {
            tnd_srv_reply_error(reply, 400, "the prompt has %lld tokens, at most %lld",
                                (long long)n, (long long)most);
            return false;
        }
        begin += n;
    }
    return true;
}

/* Creates a job from parameters and a prompt, and takes ownership of both. */
static void make_job(const struct srv_server *server, struct srv_params *params,
                     struct srv_ids *prompt, struct srv_reply *reply)
{
    const int64_t most = most_tokens(server);
    params->is_whole = tandem_model_hparams(server->model)->is_encoder;
    if (!check_prompt(prompt, most - (params->style != SRV_EMBEDDING), reply)) {
        return;
    }
    struct srv_job *job = tnd_srv_job_new(params, prompt);
    if (job == NULL) {
        tnd_srv_reply_error(reply, 500, "no memory for the request");
        return;
    }
    *params = (struct srv_params){0}; /* now owned by the job, like the prompt */
    *prompt = (struct srv_ids){0};
    const int64_t left = most - job->n_prompt;
    job->params.max_tokens = job->params.max_tokens < left ? job->params.max_tokens : left;
    submit(server, job, reply);
}

/* ---- several choices ---- */

/* Copies one text of a prompt, which may have several. False: out of memory. */
static bool copy_text(const struct srv_ids *all, int text, struct srv_ids *out)
{
    const int64_t begin = all->ends != NULL && text > 0 ? all->ends[text - 1] : 0;
    const int64_t end = all->ends != NULL ? all->ends[text] : (int64_t)all->n;
    *out = (struct srv_ids){.n = (size_t)(end - begin), .thinking = all->thinking};
    out->ids = malloc((out->n + 1) * sizeof(out->ids[0]));
    if (out->ids != NULL && out->n > 0) {
        memcpy(out->ids, all->ids + begin, out->n * sizeof(out->ids[0]));
    }
    return out->ids != NULL;
}

/* Makes the text of a job begin with its prompt. */
static bool echo_prompt(const struct srv_server *server, struct srv_job *job)
{
    struct tandem_token_stream stream = tandem_token_stream_begin(server->tokenizer, true);
    char bytes[1024];
    const bool has_bos =
        job->n_prompt > 0 && job->prompt[0] == tandem_tokenizer_bos(server->tokenizer);
    for (int64_t i = has_bos; i < job->n_prompt; i++) {
        const size_t n = tandem_token_stream_next(&stream, job->prompt[i], bytes, sizeof(bytes));
        tnd_srv_add(&job->text, bytes, n <= sizeof(bytes) ? n : 0);
    }
    tnd_srv_add(&job->text, bytes, tandem_token_stream_end(&stream, bytes, sizeof(bytes)));
    job->n_ready = job->text.n;
    return !job->text.failed;
}

/* Creates the job of choice `i`; each prompt has `n` choices. Reads the parameters from the body
 * again, since each job owns its own. NULL: the reason is in `reply`. */
static struct srv_job *make_choice(const struct srv_server *server, struct srv_body *body,
                                   enum srv_style style, const struct srv_ids *prompts, int i,
                                   int64_t n, struct srv_reply *reply)
{
    const int64_t most = most_tokens(server);
    struct srv_params params = {.style = style};
    struct srv_ids prompt = {0};
    struct srv_job *job = NULL;
    bool echoes = false;
    if (!tnd_srv_params_read(server, body, style, &params) ||
        !tnd_srv_body_flag(body, "echo", &echoes)) {
        refuse(reply, body);
    } else if (echoes && params.wants_logprobs) {
        tnd_srv_reply_error(reply, 400, "'echo' with 'logprobs' is not supported");
    } else if (!copy_text(prompts, i / (int)n, &prompt)) {
        tnd_srv_reply_error(reply, 500, "no memory for the request");
    } else if (check_prompt(&prompt, most - 1, reply)) {
        params.sampler.seed += (uint64_t)i; /* so that choices differ */
        job = tnd_srv_job_new(&params, &prompt);
        if (job == NULL) {
            tnd_srv_reply_error(reply, 500, "no memory for the request");
        }
    }
    if (job == NULL) {
        tnd_srv_params_free(&params);
        tnd_srv_ids_free(&prompt);
        return NULL;
    }
    const int64_t left = most - job->n_prompt;
    job->params.max_tokens = job->params.max_tokens < left ? job->params.max_tokens : left;
    job->index = i;
    job->repeats_prompt = i % n > 0;
    if (echoes && !echo_prompt(server, job)) {
        tnd_srv_reply_error(reply, 500, "no memory for the request");
        tnd_srv_job_unref(job);
        return NULL;
    }
    return job;
}

/* Submits all choices to the engine; if one is refused, cancels all. */
static void submit_all(const struct srv_server *server, struct srv_job *first,
                       struct srv_reply *reply)
{
    for (struct srv_job *job = first; job != NULL; job = job->sibling) {
        struct srv_reply one = {0};
        submit(server, tnd_srv_job_ref(job), &one);
        if (one.job == NULL) {
            tnd_srv_job_cancel(first);
            tnd_srv_job_unref(first);
            *reply = one;
            return;
        }
        tnd_srv_job_unref(one.job); /* the previous choice holds its reference */
    }
    reply->job = first;
}

static void make_choices(const struct srv_server *server, struct srv_body *body,
                         enum srv_style style, const struct srv_ids *prompts, int64_t n,
                         struct srv_reply *reply)
{
    const int64_t n_all = n * (prompts->n_texts > 0 ? prompts->n_texts : 1);
    struct srv_job *first = NULL;
    struct srv_job *last = NULL;
    if (n_all > SRV_MAX_CHOICES) {
        tnd_srv_reply_error(reply, 400, "%lld choices, at most %d", (long long)n_all,
                            SRV_MAX_CHOICES);
        return;
    }
    for (int i = 0; i < n_all; i++) {
        struct srv_job *job = make_choice(server, body, style, prompts, i, n, reply);
        if (job == NULL) {
            tnd_srv_job_unref(first);
            return;
        }
        *(last != NULL ? &last->sibling : &first) = job;
        job->first = first;
        last = job;
    }
    submit_all(server, first, reply);
}

/* Frees what a route has read. */
static void drop(struct srv_body *body, struct srv_ids *ids)
{
    tnd_srv_ids_free(ids);
    tnd_srv_body_free(body);
}

static void make_text(const struct srv_server *server, const struct srv_request *request,
                      enum srv_style style, bool is_response, struct srv_reply *reply)
{
    struct srv_body body;
    struct srv_params params = {.style = style};
    struct srv_ids prompt = {0};
    int64_t n = 1;
    bool echoes = false;
    if (tandem_model_hparams(server->model)->is_encoder) {
        tnd_srv_reply_error(reply, 501, "'%.100s' is an encoder, which writes no texts",
                            server->model_name);
        return;
    }
    if (!tnd_srv_body_read(&body, request->body, request->n) ||
        (is_response && !tnd_srv_responses_read(&body)) ||
        !tnd_srv_params_read(server, &body, style, &params) ||
        !tnd_srv_prompt_read(server, &body, style, &prompt) ||
        (style != SRV_NATIVE && !tnd_srv_body_integer(&body, "n", 1, SRV_MAX_CHOICES, &n)) ||
        !tnd_srv_body_flag(&body, "echo", &echoes)) {
        refuse(reply, &body);
    } else if (n > 1 || prompt.n_texts > 0 || echoes) {
        make_choices(server, &body, style, &prompt, n, reply);
    } else {
        params.is_response = is_response;
        make_job(server, &params, &prompt, reply);
    }
    tnd_srv_params_free(&params);
    drop(&body, &prompt);
}

void tnd_srv_chat_completions(const struct srv_server *server, const struct srv_request *request,
                              struct srv_reply *reply)
{
    make_text(server, request, SRV_CHAT, false, reply);
}

void tnd_srv_responses(const struct srv_server *server, const struct srv_request *request,
                       struct srv_reply *reply)
{
    make_text(server, request, SRV_CHAT, true, reply);
}

void tnd_srv_completions(const struct srv_server *server, const struct srv_request *request,
                         struct srv_reply *reply)
{
    make_text(server, request, SRV_COMPLETION, false, reply);
}

void tnd_srv_completion(const struct srv_server *server, const struct srv_request *request,
                        struct srv_reply *reply)
{
    make_text(server, request, SRV_NATIVE, false, reply);
}

void tnd_srv_embeddings(const struct srv_server *server, const struct srv_request *request,
                        struct srv_reply *reply)
{
    struct srv_body body;
    struct srv_ids prompt = {0};
    struct srv_params params = {
        .style = SRV_EMBEDDING,
        .sampler = {.size = sizeof(params.sampler), .vocabulary = server->vocabulary->n}};
    const char *format = NULL;
    if (tandem_model_hparams(server->model)->pooling == TANDEM_POOLING_RANK) {
        tnd_srv_reply_error(reply, 501, "'%.100s' gives scores, not vectors: use /v1/rerank",
                            server->model_name);
        return;
    }
    if (tnd_srv_body_read(&body, request->body, request->n) &&
        tnd_srv_members_check(&body, SRV_EMBEDDING) &&
        tnd_srv_body_string(&body, "encoding_format", &format) &&
        (format == NULL || strcmp(format, "float") == 0 || strcmp(format, "base64") == 0 ||
         tnd_srv_body_fault(&body, "'encoding_format' must be float or base64")) &&
        tnd_srv_prompt_read(server, &body, SRV_EMBEDDING, &prompt)) {
        params.is_base64 = format != NULL && format[0] == 'b';
        make_job(server, &params, &prompt, reply);
    } else {
        refuse(reply, &body);
    }
    drop(&body, &prompt);
}

void tnd_srv_rerank(const struct srv_server *server, const struct srv_request *request,
                    struct srv_reply *reply)
{
    const struct tandem_hparams *h = tandem_model_hparams(server->model);
    struct srv_body body;
    struct srv_ids pairs = {0};
    struct srv_params params = {
        .style = SRV_EMBEDDING,
        .is_rerank = true,
        .n_best = SRV_MAX_TEXTS,
        .sampler = {.size = sizeof(params.sampler), .vocabulary = server->vocabulary->n}};
    bool returns_documents = false;
    if (h->pooling != TANDEM_POOLING_RANK || h->labels != 1) {
        tnd_srv_reply_error(reply, 501, "'%.100s' has no head that ranks texts by one score",
                            server->model_name);
        return;
    }
    if (tnd_srv_body_read(&body, request->body, request->n) &&
        tnd_srv_members_check(&body, SRV_RERANK) &&
        tnd_srv_body_integer(&body, "top_n", 1, SRV_MAX_TEXTS, &params.n_best) &&
        tnd_srv_body_flag(&body, "return_documents", &returns_documents) &&
        (!returns_documents ||
         tnd_srv_body_fault(&body, "'return_documents' must be false: results have indices")) &&
        tnd_srv_pairs_read(server, &body, &pairs)) {
        make_job(server, &params, &pairs, reply);
    } else {
        refuse(reply, &body);
    }
    drop(&body, &pairs);
}

/* ---- the tokenizer ---- */

enum { MAX_REPLY_TOKENS = 1 << 20 };

static bool check_number(struct srv_body *body, const struct srv_ids *ids)
{
    body->is_large = ids->n > MAX_REPLY_TOKENS;
    return !body->is_large || tnd_srv_body_fault(body, "the text has %zu tokens, at most %d",
                                                 ids->n, MAX_REPLY_TOKENS);
}

static void add_ids(const struct srv_server *server, const struct srv_ids *ids, bool with_pieces,
                    struct srv_text *out)
{
    tnd_srv_print(out, "{\"tokens\":[");
    for (size_t i = 0; i < ids->n; i++) {
        size_t n;
        const char *bytes = tnd_srv_vocabulary_bytes(server->vocabulary, ids->ids[i], &n);
        tnd_srv_print(out, with_pieces ? "%s{\"id\":%d,\"piece\":" : "%s%d", i > 0 ? "," : "",
                      (int)ids->ids[i]);
        if (with_pieces) {
            tnd_srv_add_json(out, bytes, n);
            tnd_srv_print(out, "}");
        }
    }
    tnd_srv_print(out, "]}");
}

void tnd_srv_tokenize(const struct srv_server *server, const struct srv_request *request,
                      struct srv_reply *reply)
{
    struct srv_body body;
    struct srv_ids ids = {0};
    const char *content = NULL;
    bool adds_special = false, parses_special = true, with_pieces = false;
    if (tnd_srv_body_read(&body, request->body, request->n) &&
        tnd_srv_body_string(&body, "content", &content) &&
        tnd_srv_body_flag(&body, "add_special", &adds_special) &&
        tnd_srv_body_flag(&body, "parse_special", &parses_special) &&
        tnd_srv_body_flag(&body, "with_pieces", &with_pieces) &&
        (content != NULL || tnd_srv_body_fault(&body, "'content' is missing")) &&
        tnd_srv_text_encode(
            server, &body, content, adds_special && tandem_tokenizer_adds_bos(server->tokenizer),
            adds_special && tandem_tokenizer_adds_eos(server->tokenizer), parses_special, &ids) &&
        check_number(&body, &ids)) {
        add_ids(server, &ids, with_pieces, &reply->body);
    } else {
        refuse(reply, &body);
    }
    drop(&body, &ids);
}

/* Adds the text of tokens as a string; `shows_special`: special ones, too. */
static void add_text(const struct srv_server *server, const struct srv_ids *ids, bool shows_special,
                     struct srv_text *out)
{
    struct tandem_token_stream stream = tandem_token_stream_begin(server->tokenizer, true);
    struct srv_text text = {0};
    char bytes[1024];
    stream.shows_special = shows_special;
    for (size_t i = 0; i < ids->n; i++) {
        const size_t n = tandem_token_stream_next(&stream, ids->ids[i], bytes, sizeof(bytes));
        tnd_srv_add(&text, bytes, n <= sizeof(bytes) ? n : 0);
    }
    tnd_srv_add(&text, bytes, tandem_token_stream_end(&stream, bytes, sizeof(bytes)));
    tnd_srv_add_json(out, text.bytes != NULL ? text.bytes : "", text.n);
    out->failed = out->failed || text.failed;
    tnd_srv_text_free(&text);
}

void tnd_srv_detokenize(const struct srv_server *server, const struct srv_request *request,
                        struct srv_reply *reply)
{
    struct srv_body body;
    struct srv_ids ids = {0};
    const bool is_read = tnd_srv_body_read(&body, request->body, request->n);
    const cJSON *tokens = is_read ? tnd_srv_body_member(&body, "tokens") : NULL;
    if (is_read &&
        (cJSON_IsArray(tokens) || tnd_srv_body_fault(&body, "'tokens' must be an array")) &&
        tnd_srv_ids_read(server, &body, tokens, &ids)) {
        tnd_srv_print(&reply->body, "{\"content\":");
        add_text(server, &ids, true, &reply->body);
        tnd_srv_print(&reply->body, "}");
    } else {
        refuse(reply, &body);
    }
    drop(&body, &ids);
}

void tnd_srv_apply_template(const struct srv_server *server, const struct srv_request *request,
                            struct srv_reply *reply)
{
    struct srv_body body;
    struct srv_ids ids = {0};
    if (tnd_srv_body_read(&body, request->body, request->n) &&
        tnd_srv_messages_read(server, &body, &ids)) {
        tnd_srv_print(&reply->body, "{\"prompt\":");
        add_text(server, &ids, true, &reply->body);
        tnd_srv_print(&reply->body, "}");
    } else {
        refuse(reply, &body);
    }
    drop(&body, &ids);
}
