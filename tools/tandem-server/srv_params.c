/* SPDX-License-Identifier: MIT
 * Parameters and prompts of requests; srv_members.c lists the members. */
#include "tools/tandem-server/srv_params.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/report/encoded.h"
#include "tools/tandem-server/srv_bias.h"
#include "tools/tandem-server/srv_grammar.h"
#include "tools/tandem-server/srv_members.h"

/* ---- parameters ---- */

static bool read_stops(struct srv_body *body, struct srv_params *out)
{
    const cJSON *stop = tnd_srv_body_member(body, "stop");
    const int n = stop == NULL ? 0 : cJSON_IsArray(stop) ? cJSON_GetArraySize(stop) : 1;
    const cJSON *one = cJSON_IsArray(stop) ? stop->child : stop;
    if (n > SRV_MAX_STOPS) {
        return tnd_srv_body_fault(body, "'stop' has %d strings, at most %d", n, SRV_MAX_STOPS);
    }
    for (int i = 0; i < n; i++, one = one->next) {
        const char *text = cJSON_IsString(one) ? one->valuestring : "";
        if (text[0] == '\0' || strlen(text) > SRV_MAX_STOP_BYTES) {
            return tnd_srv_body_fault(body, "'stop' must be a string, or some, of 1 to %d bytes",
                                      SRV_MAX_STOP_BYTES);
        }
        char *copy = strdup(text);
        if (copy == NULL) {
            return tnd_srv_body_fault(body, "no memory");
        }
        out->stops[out->n_stops++] = copy;
    }
    return true;
}

/* Chats have a flag and a number, completions a number, llama.cpp n_probs. */
static bool read_logprobs(struct srv_body *body, struct srv_params *out)
{
    int64_t n = 0;
    const char *name = out->style == SRV_CHAT     ? "top_logprobs"
                       : out->style == SRV_NATIVE ? "n_probs"
                                                  : "logprobs";
    if (out->style == SRV_CHAT && !tnd_srv_body_flag(body, "logprobs", &out->wants_logprobs)) {
        return false;
    }
    if (!tnd_srv_body_integer(body, name, 0, SRV_MAX_LOGPROBS, &n)) {
        return false;
    }
    if (out->style == SRV_CHAT && n > 0 && !out->wants_logprobs) {
        return tnd_srv_body_fault(body, "'top_logprobs' needs 'logprobs'");
    }
    out->n_top = (int)n;
    out->wants_logprobs = out->wants_logprobs || n > 0 ||
                          (out->style == SRV_COMPLETION && tnd_srv_body_member(body, name) != NULL);
    return true;
}

/* Values as in llama.cpp's server. */
static bool read_reasoning(struct srv_body *body, struct srv_params *out)
{
    const char *format = NULL;
    if (!tnd_srv_body_string(body, "reasoning_format", &format)) {
        return false;
    }
    out->takes_reasoning = format == NULL || strcmp(format, "none") != 0;
    return format == NULL || strcmp(format, "none") == 0 || strcmp(format, "auto") == 0 ||
           strcmp(format, "deepseek") == 0 ||
           tnd_srv_body_fault(body, "'reasoning_format' must be none, auto or deepseek");
}

static bool read_sampler(const struct srv_server *server, struct srv_body *body,
                         struct srv_params *out)
{
    double temperature = 1.0, top_p = 1.0, min_p = 0.0, penalty = 1.0;
    int64_t top_k = 0, last = 64, seed = -1;
    if (!tnd_srv_body_number(body, "temperature", 0.0, 100.0, &temperature) ||
        !tnd_srv_body_number(body, "top_p", 0.0, 1.0, &top_p) ||
        !tnd_srv_body_number(body, "min_p", 0.0, 1.0, &min_p) ||
        !tnd_srv_body_number(body, "repeat_penalty", 0.01, 100.0, &penalty) ||
        !tnd_srv_body_integer(body, "top_k", -1, INT32_MAX, &top_k) ||
        !tnd_srv_body_integer(body, "repeat_last_n", -1, SRV_MAX_REPEAT, &last) ||
        !tnd_srv_body_integer(body, "seed", -1, (int64_t)1 << 53, &seed)) {
        return false;
    }
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    out->sampler = (struct tandem_sampler_options){
        .size = sizeof(out->sampler),
        .vocabulary = server->vocabulary->n,
        .temperature = (float)temperature,
        .top_p = (float)top_p,
        .min_p = (float)min_p,
        .top_k = top_k > 0 ? top_k : 0,
        .repeat_penalty = last == 0 ? 1.0f : (float)penalty, /* penalty for no tokens */
        .repeat_last = last < 0 ? SRV_MAX_REPEAT : last,
        .seed =
            seed >= 0 ? (uint64_t)seed : (uint64_t)now.tv_nsec + (uint64_t)now.tv_sec * 1000003};
    return true;
}

static bool read_length(const struct srv_server *server, struct srv_body *body,
                        struct srv_params *out)
{
    static const char *const names[] = {"max_tokens", "max_completion_tokens", "n_predict"};
    int64_t n = -1;
    for (int i = 0; i < 3; i++) {
        if (!tnd_srv_body_integer(body, names[i], -1, (int64_t)1 << 40, &n)) {
            return false;
        }
    }
    if (n == 0) {
        return tnd_srv_body_fault(body, "'max_tokens' must be 1 or more, or absent");
    }
    out->max_tokens = n > 0 ? n : server->max_answer;
    return true;
}

bool tnd_srv_params_read(const struct srv_server *server, struct srv_body *body,
                         enum srv_style style, struct srv_params *out)
{
    struct srv_body options = {.root = NULL};
    *out = (struct srv_params){.style = style, .tools.is_parallel = true};
    if (!tnd_srv_members_check(body, style) ||
        !tnd_srv_body_flag(body, "stream", &out->is_stream) || !read_length(server, body, out) ||
        !read_sampler(server, body, out) || !read_logprobs(body, out) ||
        !tnd_srv_bias_read(body, server->vocabulary->n, &out->bias) ||
        !tnd_srv_grammar_read(body, out) || !read_stops(body, out)) {
        return false;
    }
    if (style == SRV_CHAT && (!tnd_srv_tools_read(body, server->call_format, &out->tools) ||
                              !read_reasoning(body, out))) {
        return false;
    }
    out->frame = server->frame;
    if (out->tools.must_call && !tnd_srv_tools_force(body, out)) {
        return false;
    }
    options.root = cJSON_GetObjectItemCaseSensitive(body->root, "stream_options");
    return tnd_srv_body_flag(&options, "include_usage", &out->wants_usage) ||
           tnd_srv_body_fault(body, "'stream_options': %.100s", options.fault);
}

/* ---- prompts ---- */

bool tnd_srv_text_encode(const struct srv_server *server, struct srv_body *body, const char *text,
                         bool adds_bos, bool adds_eos, bool special, struct srv_ids *out)
{
    const struct tandem_encode_options options = {.size = sizeof(options),
                                                  .add_bos = adds_bos,
                                                  .add_eos = adds_eos,
                                                  .special_tokens = special};
    struct tandem_error error = {0};
    struct srv_ids ids = {.ids = NULL};
    const struct tnd_encoded_text all = {.text = text, .n = strlen(text), .options = &options};
    if (tnd_encoded(server->tokenizer, &all, &ids.ids, &ids.n, NULL, &error) != TANDEM_OK) {
        return tnd_srv_body_fault(body, "%.180s", error.text);
    }
    *out = ids;
    return true;
}

bool tnd_srv_ids_read(const struct srv_server *server, struct srv_body *body, const cJSON *array,
                      struct srv_ids *out)
{
    const int n = cJSON_GetArraySize(array);
    int32_t *ids = malloc(((size_t)n + 1) * sizeof(ids[0]));
    int i = 0;
    if (ids == NULL) {
        return tnd_srv_body_fault(body, "no memory for %d tokens", n);
    }
    for (const cJSON *one = array->child; one != NULL; one = one->next, i++) {
        const double value = cJSON_IsNumber(one) ? one->valuedouble : -1.0;
        if (!(value >= 0.0 && value < (double)server->vocabulary->n) ||
            value != (double)(int32_t)value) {
            free(ids);
            return tnd_srv_body_fault(body, "token %d must be a whole number from 0 to %lld", i,
                                      (long long)server->vocabulary->n - 1);
        }
        ids[i] = (int32_t)value;
    }
    *out = (struct srv_ids){.ids = ids, .n = (size_t)n};
    return true;
}

/* Reads a text: a string or an array of tokens. */
static bool read_text(const struct srv_server *server, struct srv_body *body, enum srv_style style,
                      const cJSON *prompt, struct srv_ids *out)
{
    const char *name = style == SRV_EMBEDDING ? "input" : "prompt";
    if (cJSON_IsString(prompt)) {
        return tnd_srv_text_encode(
            server, body, prompt->valuestring, tandem_tokenizer_adds_bos(server->tokenizer),
            style == SRV_EMBEDDING && tandem_tokenizer_adds_eos(server->tokenizer),
            style != SRV_EMBEDDING, out);
    }
    if (cJSON_IsArray(prompt) && cJSON_IsNumber(prompt->child)) {
        return tnd_srv_ids_read(server, body, prompt, out);
    }
    return tnd_srv_body_fault(body, "'%s' must be a string or an array of tokens", name);
}

/* Appends a text and frees it. */
static bool append_text(struct srv_body *body, struct srv_ids *text, struct srv_ids *out)
{
    int32_t *ids = realloc(out->ids, (out->n + text->n + 1) * sizeof(ids[0]));
    if (ids == NULL) {
        tnd_srv_ids_free(text);
        return tnd_srv_body_fault(body, "no memory for the texts");
    }
    if (text->n > 0) {
        memcpy(ids + out->n, text->ids, text->n * sizeof(ids[0]));
    }
    out->ids = ids;
    out->n += text->n;
    out->ends[out->n_texts++] = (int64_t)out->n;
    tnd_srv_ids_free(text);
    return true;
}

static bool read_texts(const struct srv_server *server, struct srv_body *body, enum srv_style style,
                       const cJSON *array, struct srv_ids *out)
{
    const int n = cJSON_GetArraySize(array);
    const int most = style == SRV_EMBEDDING ? SRV_MAX_TEXTS : SRV_MAX_CHOICES;
    struct srv_ids text = {0};
    if (n > most) {
        return tnd_srv_body_fault(body, "'%s' has %d texts, at most %d",
                                  style == SRV_EMBEDDING ? "input" : "prompt", n, most);
    }
    out->ends = calloc((size_t)n, sizeof(out->ends[0]));
    if (out->ends == NULL) {
        return tnd_srv_body_fault(body, "no memory for %d texts", n);
    }
    for (const cJSON *one = array->child; one != NULL; one = one->next) {
        if (!read_text(server, body, style, one, &text) || !append_text(body, &text, out)) {
            return false;
        }
    }
    return true;
}

/* Appends the query with a document: a string, or {"text": ..}. */
static bool append_pair(const struct srv_server *server, struct srv_body *body, const char *query,
                        const cJSON *document, struct srv_ids *out)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(document, "text");
    const char *text = cJSON_GetStringValue(member != NULL ? member : document);
    struct tandem_error error = {0};
    size_t second = 0;
    if (text == NULL) {
        return tnd_srv_body_fault(body, "'documents' must be an array of texts");
    }
    struct srv_ids pair = {.ids = NULL};
    const struct tnd_encoded_text both = {
        .text = query, .n = strlen(query), .second = text, .n_second = strlen(text)};
    if (tnd_encoded(server->tokenizer, &both, &pair.ids, &pair.n, &second, &error) != TANDEM_OK) {
        return tnd_srv_body_fault(body, "%.180s", error.text);
    }
    out->seconds[out->n_texts] = (int64_t)second;
    return append_text(body, &pair, out);
}

bool tnd_srv_pairs_read(const struct srv_server *server, struct srv_body *body, struct srv_ids *out)
{
    const char *query = NULL;
    const cJSON *documents = tnd_srv_body_member(body, "documents");
    const int n = cJSON_IsArray(documents) ? cJSON_GetArraySize(documents) : 0;
    if (!tnd_srv_body_string(body, "query", &query)) {
        return false;
    }
    if (query == NULL || n < 1 || n > SRV_MAX_TEXTS) {
        return tnd_srv_body_fault(body, "expected a 'query' and 1 to %d 'documents', got %d",
                                  SRV_MAX_TEXTS, n);
    }
    out->ends = calloc((size_t)n, sizeof(out->ends[0]));
    out->seconds = calloc((size_t)n, sizeof(out->seconds[0]));
    if (out->ends == NULL || out->seconds == NULL) {
        return tnd_srv_body_fault(body, "no memory for %d texts", n);
    }
    for (const cJSON *one = documents->child; one != NULL; one = one->next) {
        if (!append_pair(server, body, query, one, out)) {
            return false;
        }
    }
    return true;
}

bool tnd_srv_prompt_read(const struct srv_server *server, struct srv_body *body,
                         enum srv_style style, struct srv_ids *out)
{
    if (style == SRV_CHAT) {
        return tnd_srv_messages_read(server, body, out);
    }
    const cJSON *prompt = tnd_srv_body_member(body, style == SRV_EMBEDDING ? "input" : "prompt");
    const bool has_texts =
        cJSON_IsArray(prompt) && prompt->child != NULL && !cJSON_IsNumber(prompt->child);
    if (has_texts && style != SRV_NATIVE) {
        return read_texts(server, body, style, prompt, out);
    }
    return read_text(server, body, style,
                     has_texts && prompt->child->next == NULL ? prompt->child : prompt, out);
}
