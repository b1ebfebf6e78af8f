/* SPDX-License-Identifier: MIT
 * Members of OpenAI's API, of llama.cpp's server and of vLLM, as their documents list them
 * (2026-11). */
#include "tools/tandem-server/srv_members.h"

#include <math.h>
#include <string.h>

#define CHAT   SRV_IN_CHAT
#define TEXT   SRV_IN_COMPLETION
#define NATIVE SRV_IN_NATIVE
#define EMBED  SRV_IN_EMBEDDING
#define TEXTS  (CHAT | TEXT | NATIVE)
#define RERANK SRV_IN_RERANK
#define ALL    (TEXTS | EMBED | RERANK)
#define MOST   0x1p53

#define READ_NUMBER(name, routes, low, high)                                                       \
    {                                                                                              \
        name, routes, SRV_READ, SRV_NUMBER, low, high, NULL                                        \
    }
#define READ_INTEGER(name, routes, low, high)                                                      \
    {                                                                                              \
        name, routes, SRV_READ, SRV_INTEGER, low, high, NULL                                       \
    }
#define READ(name, routes, kind)                                                                   \
    {                                                                                              \
        name, routes, SRV_READ, kind, 0, 0, NULL                                                   \
    }
#define IGNORE(name, routes)                                                                       \
    {                                                                                              \
        name, routes, SRV_IGNORED, SRV_ANY, 0, 0, NULL                                             \
    }
/* neutral value: a number, or words */
#define REFUSE_BUT(name, routes, number, words)                                                    \
    {                                                                                              \
        name, routes, SRV_REFUSED, SRV_ANY, number, 0, words                                       \
    }
#define REFUSE(name, routes) REFUSE_BUT(name, routes, NAN, NULL)

static const struct srv_member rows[] = {
    /* input */
    READ("messages", CHAT, SRV_ANY),
    READ("prompt", TEXT | NATIVE, SRV_ANY),
    READ("input", EMBED, SRV_ANY),
    READ("encoding_format", EMBED, SRV_STRING),
    READ("query", RERANK, SRV_STRING),
    READ("documents", RERANK, SRV_ANY),
    READ_INTEGER("top_n", RERANK, 1, SRV_MAX_TEXTS),
    READ("return_documents", RERANK, SRV_FLAG),
    READ_INTEGER("max_tokens", TEXTS, -1, 0x1p40),
    READ_INTEGER("max_completion_tokens", TEXTS, -1, 0x1p40),
    READ_INTEGER("n_predict", TEXTS, -1, 0x1p40),
    READ("stop", TEXTS, SRV_ANY),
    READ("stream", TEXTS, SRV_FLAG),
    READ("stream_options", TEXTS, SRV_ANY),
    READ("response_format", TEXTS, SRV_ANY),
    READ("logprobs", CHAT, SRV_FLAG),
    READ_INTEGER("logprobs", TEXT, 0, SRV_MAX_LOGPROBS),
    READ_INTEGER("top_logprobs", CHAT, 0, SRV_MAX_LOGPROBS),
    READ_INTEGER("n_probs", NATIVE, 0, SRV_MAX_LOGPROBS),
    /* sampling */
    READ_NUMBER("temperature", TEXTS, 0, 100),
    READ_NUMBER("top_p", TEXTS, 0, 1),
    READ_NUMBER("min_p", TEXTS, 0, 1),
    READ_INTEGER("top_k", TEXTS, -1, INT32_MAX),
    READ_NUMBER("repeat_penalty", TEXTS, 0.01, 100),
    READ_INTEGER("repeat_last_n", TEXTS, -1, SRV_MAX_REPEAT),
    READ_INTEGER("seed", TEXTS, -1, MOST),
    READ_NUMBER("presence_penalty", TEXTS, -2, 2),
    READ_NUMBER("frequency_penalty", TEXTS, -2, 2),
    REFUSE_BUT("repetition_penalty", TEXTS, 1, NULL),
    READ("logit_bias", TEXTS, SRV_ANY),
    READ("ignore_eos", TEXTS, SRV_FLAG),
    REFUSE_BUT("typical_p", TEXTS, 1, NULL),
    REFUSE_BUT("top_n_sigma", TEXTS, -1, NULL),
    REFUSE_BUT("tfs_z", TEXTS, 1, NULL),
    REFUSE_BUT("top_a", TEXTS, 0, NULL),
    REFUSE_BUT("min_keep", TEXTS, 0, NULL),
    REFUSE_BUT("mirostat", TEXTS, 0, NULL),
    IGNORE("mirostat_tau", TEXTS), /* only used with refused members */
    IGNORE("mirostat_eta", TEXTS),
    REFUSE_BUT("dynatemp_range", TEXTS, 0, NULL),
    IGNORE("dynatemp_exponent", TEXTS),
    REFUSE_BUT("xtc_probability", TEXTS, 0, NULL),
    IGNORE("xtc_threshold", TEXTS),
    REFUSE_BUT("dry_multiplier", TEXTS, 0, NULL),
    IGNORE("dry_base", TEXTS),
    IGNORE("dry_allowed_length", TEXTS),
    IGNORE("dry_penalty_last_n", TEXTS),
    IGNORE("dry_sequence_breakers", TEXTS),
    REFUSE("samplers", TEXTS),
    REFUSE("sampler_seq", TEXTS),
    REFUSE("penalize_nl", TEXTS),
    REFUSE("allowed_token_ids", TEXTS),
    REFUSE("bad_words", TEXTS),
    REFUSE_BUT("min_tokens", TEXTS, 0, NULL),
    REFUSE("use_beam_search", TEXTS),
    REFUSE_BUT("length_penalty", TEXTS, 1, NULL),
    REFUSE("logits_processors", TEXTS),
    /* restrictions of the output */
    READ("grammar", TEXTS, SRV_STRING),
    REFUSE("grammar_lazy", TEXTS),
    REFUSE("grammar_triggers", TEXTS),
    READ("json_schema", TEXTS, SRV_ANY),
    READ("guided_json", TEXTS, SRV_ANY),
    READ("guided_regex", TEXTS, SRV_STRING),
    READ("guided_choice", TEXTS, SRV_ANY),
    READ("guided_grammar", TEXTS, SRV_STRING),
    REFUSE("guided_whitespace_pattern", TEXTS),
    READ("structured_outputs", TEXTS, SRV_ANY),
    REFUSE("structural_tag", TEXTS),
    REFUSE("regex", TEXTS),
    REFUSE("ebnf", TEXTS),
    READ("tools", CHAT, SRV_ANY),
    READ("tool_choice", CHAT, SRV_ANY),
    READ("parallel_tool_calls", CHAT, SRV_FLAG),
    REFUSE("tools", TEXT | NATIVE),
    REFUSE_BUT("tool_choice", TEXT | NATIVE, NAN, "none|auto"),
    IGNORE("parallel_tool_calls", TEXT | NATIVE),
    REFUSE("functions", TEXTS),
    REFUSE_BUT("function_call", TEXTS, NAN, "none|auto"),
    /* begin and end of a text, and extra output */
    READ_INTEGER("n", CHAT | TEXT, 1, SRV_MAX_CHOICES),
    REFUSE_BUT("n", NATIVE, 1, NULL),
    REFUSE_BUT("n_cmpl", TEXTS, 1, NULL),
    REFUSE_BUT("best_of", TEXTS, 1, NULL),
    READ("echo", TEXT, SRV_FLAG),
    REFUSE("echo", CHAT | NATIVE),
    REFUSE("suffix", TEXTS),
    REFUSE("stop_token_ids", TEXTS),
    REFUSE("include_stop_str_in_output", TEXTS),
    REFUSE_BUT("t_max_predict_ms", TEXTS, 0, NULL),
    REFUSE_BUT("n_indent", TEXTS, 0, NULL),
    REFUSE("post_sampling_probs", TEXTS),
    REFUSE("prompt_logprobs", TEXTS),
    REFUSE("response_fields", TEXTS),
    REFUSE("return_progress", TEXTS),
    REFUSE_BUT("truncate_prompt_tokens", ALL, -1, NULL),
    REFUSE("dimensions", EMBED),
    REFUSE_BUT("input_type", EMBED, NAN, NULL),
    /* chats */
    REFUSE("chat_template", CHAT),
    READ("chat_template_kwargs", CHAT, SRV_ANY),
    READ("enable_thinking", CHAT, SRV_FLAG),
    REFUSE("continue_final_message", CHAT),
    READ("documents", CHAT, SRV_ANY),
    READ("reasoning_effort", CHAT, SRV_STRING),
    REFUSE("reasoning", CHAT),
    READ("reasoning_format", CHAT, SRV_STRING),
    REFUSE_BUT("modalities", CHAT, NAN, "text"),
    REFUSE("audio", CHAT),
    REFUSE("web_search_options", CHAT),
    REFUSE_BUT("verbosity", CHAT, NAN, "medium"),
    REFUSE("image_data", TEXTS),
    REFUSE("multimodal_data", TEXTS),
    REFUSE("lora", ALL),
    /* without effect on the text */
    IGNORE("model", ALL),
    IGNORE("user", ALL),
    IGNORE("metadata", ALL),
    IGNORE("store", ALL),
    IGNORE("service_tier", ALL),
    IGNORE("safety_identifier", ALL),
    IGNORE("prompt_cache_key", ALL),
    IGNORE("prompt_cache_retention", ALL),
    IGNORE("prediction", CHAT), /* only an optimisation */
    IGNORE("cache_prompt", TEXTS),
    IGNORE("id_slot", TEXTS),
    IGNORE("slot_id", TEXTS),
    IGNORE("n_keep", TEXTS), /* for shifting the context, which this server never does */
    IGNORE("n_discard", TEXTS),
    IGNORE("n_cache_reuse", TEXTS),
    IGNORE("return_tokens", TEXTS),
    IGNORE("timings_per_token", TEXTS),
    IGNORE("t_max_prompt_ms", TEXTS), /* llama.cpp's server ignores it too */
    IGNORE("priority", ALL),
    IGNORE("request_id", ALL),
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct srv_member *tnd_srv_member_row(int i)
{
    return i >= 0 && i < N_ROWS ? &rows[i] : NULL;
}

/* Whether `word` is in the '|'-separated list. */
static bool is_word_of(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, word, n) == 0 && (at[n] == '|' || at[n] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Whether a value has the same effect as leaving the member out. */
static bool is_neutral(const struct srv_member *row, const cJSON *item)
{
    if (cJSON_IsNumber(item)) {
        return item->valuedouble == row->low;
    }
    if (cJSON_IsString(item)) {
        return item->valuestring[0] == '\0' || is_word_of(row->neutral, item->valuestring);
    }
    for (const cJSON *one = item->child; one != NULL; one = one->next) {
        if (!cJSON_IsArray(item) || !cJSON_IsString(one) ||
            !is_word_of(row->neutral, one->valuestring)) {
            return false;
        }
    }
    return !cJSON_IsTrue(item);
}

static bool has_kind(struct srv_body *body, const struct srv_member *row)
{
    double number;
    int64_t integer;
    bool flag;
    const char *string;
    switch (row->kind) {
    case SRV_NUMBER:
        return tnd_srv_body_number(body, row->name, row->low, row->high, &number);
    case SRV_INTEGER:
        return tnd_srv_body_integer(body, row->name, (int64_t)row->low, (int64_t)row->high,
                                    &integer);
    case SRV_FLAG:
        return tnd_srv_body_flag(body, row->name, &flag);
    case SRV_STRING:
        return tnd_srv_body_string(body, row->name, &string);
    default:
        return true;
    }
}

static bool check_one(struct srv_body *body, const cJSON *item, enum srv_style style)
{
    bool is_elsewhere = false;
    if (cJSON_GetObjectItemCaseSensitive(body->root, item->string) != item) {
        return tnd_srv_body_fault(body, "'%.60s' is there twice", item->string);
    }
    for (int i = 0; i < N_ROWS; i++) {
        const struct srv_member *row = &rows[i];
        if (strcmp(row->name, item->string) != 0) {
            continue;
        }
        if ((row->routes & 1u << style) == 0) {
            is_elsewhere = true;
            continue;
        }
        return row->use == SRV_IGNORED ||
               (row->use == SRV_READ
                    ? has_kind(body, row)
                    : is_neutral(row, item) ||
                          tnd_srv_body_fault(body, "'%s' is not supported", row->name));
    }
    return tnd_srv_body_fault(
        body, is_elsewhere ? "'%.60s' is not a member of this request" : "'%.60s' is unknown",
        item->string);
}

bool tnd_srv_members_check(struct srv_body *body, enum srv_style style)
{
    for (const cJSON *item = body->root->child; item != NULL; item = item->next) {
        if (!cJSON_IsNull(item) && !check_one(body, item, style)) {
            return false;
        }
    }
    return true;
}
