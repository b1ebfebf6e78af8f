/* SPDX-License-Identifier: MIT
 * Converts config.json of Hugging Face's models to the GGUF convention (names of tensors:
 * hf_names.c). Names and defaults after the configuration and modelling files of transformers
 * (llama, mistral, qwen2, qwen3) and docs/gguf.md of ggml-org/ggml. Unknown members may change
 * results and are refused: see llama-lists.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/cursor.h"
#include "formats/gguf.h"
#include "formats/hf_config.h"
#include "formats/hf_parts.h"
#include "formats/json_pull.h"
#include "formats/llama-lists.h"
#include "formats/llama_tensors.h"
#include "formats/safetensors.h"

#define LARGEST ((int64_t)1 << 62) /* no real model has larger integers */

enum where { TOP = 1, ROPE = 2, BOTH = 3, OWN = 4 };

static const struct member {
    const char *name;
    size_t offset;
    enum where where;
    bool is_integer;
} members[] = {
#define INTEGER_ROW(name, where, key) {#name, offsetof(struct tnd_hf_config, name), where, true},
    TND_CONFIG_INTEGERS(INTEGER_ROW)
#undef INTEGER_ROW
#define NUMBER_ROW(name, where, key) {#name, offsetof(struct tnd_hf_config, name), where, false},
        TND_CONFIG_NUMBERS(NUMBER_ROW)
#undef NUMBER_ROW
};
#define N_MEMBERS (sizeof(members) / sizeof(members[0]))

static const struct {
    const char *name;
    size_t offset;
} flags[] = {
#define FLAG_ROW(name) {#name, offsetof(struct tnd_hf_config, name)},
    TND_CONFIG_FLAGS(FLAG_ROW)
#undef FLAG_ROW
};

static const char *const harmless[] = {
#define HARMLESS_ROW(name, why) #name,
    TND_CONFIG_HARMLESS(HARMLESS_ROW)
#undef HARMLESS_ROW
};

static const struct {
    const char *name;
    double neutral;
} off[] = {
#define OFF_ROW(name, neutral) {#name, neutral},
    TND_CONFIG_OFF(OFF_ROW)
#undef OFF_ROW
};

/* ---- values ---- */

static enum tandem_status take_null(struct tnd_json *json, bool *out_is_null,
                                    struct tandem_error *error)
{
    *out_is_null = tnd_json_peek(json) == 'n';
    return *out_is_null ? tnd_json_skip(json, error) : TANDEM_OK;
}

/* Parses a number, or null: not stated. `is_integer`: requires an integer. */
static enum tandem_status take_number(struct tnd_json *json, const char *key, bool is_integer,
                                      int64_t *out_integer, double *out_number,
                                      struct tandem_error *error)
{
    bool is_null = false, is_whole = false;
    TND_TRY(take_null(json, &is_null, error));
    if (is_null) {
        *out_integer = TND_NOT_SAID;
        *out_number = NAN;
        return TANDEM_OK;
    }
    const char c = tnd_json_peek(json);
    if (c != '-' && (c < '0' || c > '9')) {
        return tnd_hf_refuse(json, TANDEM_E_FORMAT, key, "is no number", error);
    }
    TND_TRY(tnd_json_number(json, out_number, out_integer, &is_whole, error));
    if (is_integer && (!is_whole || *out_integer < -LARGEST || *out_integer > LARGEST)) {
        return tnd_hf_refuse(json, TANDEM_E_FORMAT, key, "is no whole number below 2^62", error);
    }
    return TANDEM_OK;
}

static enum tandem_status take_flag(struct tnd_json *json, const char *key, bool *out,
                                    struct tandem_error *error)
{
    const char c = tnd_json_peek(json);
    if (c != 't' && c != 'f') {
        return tnd_hf_refuse(json, TANDEM_E_FORMAT, key, "is neither true nor false", error);
    }
    return tnd_json_pull_bool(json, out, error);
}

/* Accepts only values of a member that do not change results: false, null, an empty object, list or
 * text, or the neutral number. */
static enum tandem_status take_off(struct tnd_json *json, const char *key, double neutral,
                                   struct tandem_error *error)
{
    double number = neutral;
    int64_t integer;
    const char c = tnd_json_peek(json);
    const char *begin = json->at;
    if (c == '-' || (c >= '0' && c <= '9')) {
        TND_TRY(take_number(json, key, false, &integer, &number, error));
    } else {
        TND_TRY(tnd_json_skip(json, error));
        const size_t n = (size_t)(json->at - begin);
        const bool is_empty = (c == '{' || c == '[' || c == '"') && n == 2;
        number = c == 'n' || c == 'f' || is_empty ? neutral : NAN;
    }
    return number == neutral ? TANDEM_OK
                             : tnd_hf_refuse(json, TANDEM_E_UNSUPPORTED_BUILD, key,
                                             "asks for what this version does not compute", error);
}

/* Parses a token, or null. */
static enum tandem_status take_token(struct tnd_json *json, const char *key,
                                     struct tnd_end_tokens *tokens, struct tandem_error *error)
{
    int64_t token = TND_NOT_SAID;
    double number;
    TND_TRY(take_number(json, key, true, &token, &number, error));
    if (token != TND_NOT_SAID && tokens->n == TND_MAX_END_TOKENS) {
        return tnd_hf_refuse(json, TANDEM_E_LIMIT, key, "has more than 64 tokens", error);
    }
    if (token != TND_NOT_SAID && token >= 0 && token <= INT32_MAX) { /* others cannot be tokens */
        tokens->ids[tokens->n++] = (int32_t)token;
    }
    return TANDEM_OK;
}

/* Parses a token, a list of tokens, or null. */
static enum tandem_status take_tokens(struct tnd_json *json, const char *key,
                                      struct tnd_end_tokens *out, struct tandem_error *error)
{
    struct tnd_json_walk walk = {.json = json, .error = error};
    out->n = 0;
    if (tnd_json_peek(json) != '[') {
        return take_token(json, key, out, error);
    }
    while (tnd_json_next_item(&walk)) {
        TND_TRY(take_token(json, key, out, error));
    }
    return walk.status;
}

/* Parses hidden_act: sets our name of a supported activation; NULL: silu. */
static enum tandem_status take_activation(struct tnd_json *json, struct tnd_hf_config *config,
                                          struct tandem_error *error)
{
    static const char *const names[][2] = {
        {"silu", NULL},
        {"swish", NULL},
        {"gelu", "gelu"},
        {"gelu_python", "gelu"},
        {"gelu_new", "gelu_tanh"},
        {"gelu_fast", "gelu_tanh"},
        {"gelu_accurate", "gelu_tanh"},
        {"gelu_pytorch_tanh", "gelu_tanh"},
        {"gelu_python_tanh", "gelu_tanh"},
        {"relu", "relu"},
        {"relu2", "relu2"},
        {"quick_gelu", "quick_gelu"},
        {"linear", "linear"},
    };
    char name[64];
    char why[128];
    if (tnd_json_peek(json) != '"') {
        return tnd_hf_refuse(json, TANDEM_E_FORMAT, "hidden_act", "is no text", error);
    }
    TND_TRY(tnd_json_pull_string(json, name, sizeof(name), error));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i][0]) == 0) {
            config->activation = names[i][1];
            return TANDEM_OK;
        }
    }
    snprintf(why, sizeof(why), "is %.40s, which this version does not compute", name);
    return tnd_hf_refuse(json, TANDEM_E_UNSUPPORTED_BUILD, "hidden_act", why, error);
}

static enum tandem_status take_layer_types(struct tnd_json *json, struct tnd_hf_config *config,
                                           struct tandem_error *error)
{
    char name[64];
    char why[128];
    bool is_null = false;
    TND_TRY(take_null(json, &is_null, error));
    if (is_null) {
        return TANDEM_OK;
    }
    if (tnd_json_peek(json) != '[') {
        return tnd_hf_refuse(json, TANDEM_E_FORMAT, "layer_types", "is no list", error);
    }
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_item(&walk)) {
        TND_TRY(tnd_json_pull_string(json, name, sizeof(name), error));
        const bool is_windowed = strcmp(name, "sliding_attention") == 0;
        if (walk.i == TND_HF_MAX_LAYERS || (!is_windowed && strcmp(name, "full_attention") != 0)) {
            snprintf(why, sizeof(why), "has %.40s, expected full_attention or sliding_attention",
                     walk.i == TND_HF_MAX_LAYERS ? "more than 4096 layers" : name);
            return tnd_hf_refuse(json, TANDEM_E_UNSUPPORTED_BUILD, "layer_types", why, error);
        }
        config->windowed[walk.i] = is_windowed;
    }
    config->n_layer_types = walk.n;
    return walk.status;
}

/* Parses a list of 1 for each layer that rotates and 0 for others, or null. */
static enum tandem_status take_rotated(struct tnd_json *json, struct tnd_hf_config *config,
                                       struct tandem_error *error)
{
    bool is_null = false;
    double number;
    TND_TRY(take_null(json, &is_null, error));
    if (is_null) {
        return TANDEM_OK;
    }
    if (tnd_json_peek(json) != '[') {
        return tnd_hf_refuse(json, TANDEM_E_FORMAT, "no_rope_layers", "is no list", error);
    }
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_item(&walk)) {
        int64_t rotates = TND_NOT_SAID;
        TND_TRY(take_number(json, "no_rope_layers", true, &rotates, &number, error));
        if (walk.i == TND_HF_MAX_LAYERS || rotates < 0 || rotates > 1) {
            return tnd_hf_refuse(json, TANDEM_E_FORMAT, "no_rope_layers",
                                 "is no list of at most 4096 ones and zeros", error);
        }
        config->rotated[walk.i] = rotates == 1;
    }
    config->n_rotated = walk.n;
    return walk.status;
}

/* ---- members ---- */

static enum tandem_status take_object(const struct tnd_config_reader *reader, enum where where,
                                      struct tandem_error *error);

/* Parses the architectures: a text classifier returns scores. */
static enum tandem_status take_architectures(struct tnd_json *json, struct tnd_hf_config *config,
                                             struct tandem_error *error)
{
    static const char suffix[] = "ForSequenceClassification";
    char name[128];
    if (tnd_json_peek(json) != '[') {
        return tnd_json_skip(json, error);
    }
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_item(&walk)) {
        TND_TRY(tnd_json_pull_string(json, name, sizeof(name), error));
        const size_t n = strlen(name), n_suffix = sizeof(suffix) - 1;
        if (n >= n_suffix && strcmp(name + n - n_suffix, suffix) == 0) {
            config->pooling = TANDEM_POOLING_RANK;
        }
    }
    return walk.status;
}

/* Parses DeepSeek V2's method of choosing experts. */
static enum tandem_status take_method(struct tnd_json *json, struct tnd_hf_config *config,
                                      struct tandem_error *error)
{
    char name[64] = "";
    if (tnd_json_peek(json) == '"') {
        TND_TRY(tnd_json_pull_string(json, name, sizeof(name), error));
    }
    config->ignores_groups = strcmp(name, "greedy") == 0;
    return config->ignores_groups || strcmp(name, "group_limited_greedy") == 0
               ? TANDEM_OK
               : tnd_hf_refuse(json, TANDEM_E_UNSUPPORTED_BUILD, "topk_method",
                               "is neither greedy nor group_limited_greedy", error);
}

/* Parses a text that must be one of two, or null, which leaves `out_is_second` unchanged. */
static enum tandem_status take_choice(struct tnd_json *json, const char *key, const char *first,
                                      const char *second, bool *out_is_second,
                                      struct tandem_error *error)
{
    char name[64] = "";
    char why[128];
    bool is_null = false;
    TND_TRY(take_null(json, &is_null, error));
    if (is_null) {
        return TANDEM_OK;
    }
    if (tnd_json_peek(json) != '"') {
        return tnd_hf_refuse(json, TANDEM_E_FORMAT, key, "is no text", error);
    }
    TND_TRY(tnd_json_pull_string(json, name, sizeof(name), error));
    *out_is_second = second[0] != '\0' && strcmp(name, second) == 0;
    snprintf(why, sizeof(why), "is not %s%s%s", first, second[0] != '\0' ? " or " : "", second);
    return *out_is_second || strcmp(name, first) == 0
               ? TANDEM_OK
               : tnd_hf_refuse(json, TANDEM_E_UNSUPPORTED_BUILD, key, why, error);
}

/* Parses members that are texts, most of which have one supported value; ModernBERT's
 * classifier_pooling is that of the first token or the mean. */
static enum tandem_status take_text(const struct tnd_config_reader *reader, const char *key,
                                    bool *out_is_known, struct tandem_error *error)
{
    char only[64];
    bool is_second = false;
    *out_is_known = true;
    if (tnd_hf_alias(reader->family->texts, key, only, sizeof(only))) {
        return take_choice(reader->json, key, only, "", &is_second, error);
    }
    if (tnd_llama_lists(reader->family->own, key) && strcmp(key, "classifier_pooling") == 0) {
        return take_choice(reader->json, key, "cls", "mean", &reader->config->scores_mean, error);
    }
    *out_is_known = false;
    return TANDEM_OK;
}

/* Parses a number of the lists. `out_is_known` is set to false for other members. */
static enum tandem_status take_member(const struct tnd_config_reader *reader, const char *key,
                                      enum where where, bool *out_is_known,
                                      struct tandem_error *error)
{
    *out_is_known = true;
    for (size_t i = 0; i < N_MEMBERS; i++) {
        struct tnd_hf_config *config = reader->config;
        char *member = (char *)config + members[i].offset;
        int64_t integer;
        double number;
        const bool is_here = members[i].where == OWN
                                 ? where == TOP && tnd_llama_lists(reader->family->own, key)
                                 : (members[i].where & where) != 0;
        if (strcmp(key, members[i].name) != 0 || !is_here) {
            continue;
        }
        TND_TRY(take_number(reader->json, key, members[i].is_integer, &integer, &number, error));
        if (members[i].is_integer) {
            memcpy(member, &integer, sizeof(integer));
        } else if (where == ROPE && strcmp(key, "rope_theta") == 0) {
            config->rope_theta_inside = number;
        } else if (where == ROPE && strcmp(key, "original_max_position_embeddings") == 0) {
            config->original_inside = number;
        } else if (where == ROPE && strcmp(key, "partial_rotary_factor") == 0) {
            config->partial_inside = number;
        } else {
            memcpy(member, &number, sizeof(number));
        }
        return TANDEM_OK;
    }
    for (size_t i = 0; where == TOP && i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (strcmp(key, flags[i].name) == 0 && (!tnd_llama_lists(TND_CONFIG_OWN_FLAGS, key) ||
                                                tnd_llama_lists(reader->family->own, key))) {
            return take_flag(reader->json, key, (bool *)((char *)reader->config + flags[i].offset),
                             error);
        }
    }
    *out_is_known = false;
    return TANDEM_OK;
}

static bool is_one_of(const char *key, const char *a, const char *b)
{
    return strcmp(key, a) == 0 || strcmp(key, b) == 0;
}

/* Parses the RoPE of layers with a window, which has its own base and no scaling (Gemma 3). */
static enum tandem_status take_window_rope(const struct tnd_config_reader *reader,
                                           struct tandem_error *error)
{
    struct tnd_json *json = reader->json;
    char key[128];
    char type[32] = "default";
    int64_t integer;
    double number = NAN;
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        if (strcmp(key, "rope_theta") == 0) {
            TND_TRY(take_number(json, key, false, &integer, &number, error));
        } else if (is_one_of(key, "rope_type", "type") && tnd_json_peek(json) == '"') {
            TND_TRY(tnd_json_pull_string(json, type, sizeof(type), error));
        } else {
            return tnd_hf_refuse(json, TANDEM_E_UNSUPPORTED_BUILD, key,
                                 "of rope in layers with a window is not known", error);
        }
    }
    TND_TRY(walk.status);
    reader->config->rope_local_base_freq =
        isnan(number) ? reader->config->rope_local_base_freq : number;
    return strcmp(type, "default") == 0
               ? TANDEM_OK
               : tnd_hf_refuse(json, TANDEM_E_UNSUPPORTED_BUILD, "rope_type",
                               "scales rope in layers with a window", error);
}

static enum tandem_status take_rope(const struct tnd_config_reader *reader, const char *key,
                                    struct tandem_error *error)
{
    struct tnd_json *json = reader->json;
    bool is_null = false;
    TND_TRY(take_null(json, &is_null, error));
    if (is_null) {
        return TANDEM_OK;
    }
    if (tnd_json_peek(json) != '{') {
        return tnd_hf_refuse(json, TANDEM_E_FORMAT, key, "is no object", error);
    }
    const char *begin = json->at;
    TND_TRY(take_object(reader, ROPE, error));
    reader->config->n_ropes += json->at - begin > 2 ? 1 : 0;
    return reader->config->n_ropes < 2 ? TANDEM_OK
                                       : tnd_hf_refuse(json, TANDEM_E_FORMAT, key,
                                                       "says once more how rope is scaled", error);
}

/* Refuses members that are in no list, and values that would change results. */
static enum tandem_status take_other(struct tnd_json *json, const char *key,
                                     struct tandem_error *error)
{
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (strcmp(key, harmless[i]) == 0) {
            return tnd_json_skip(json, error);
        }
    }
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
        if (strcmp(key, off[i].name) == 0) {
            return take_off(json, key, off[i].neutral, error);
        }
    }
    bool is_null = false;
    TND_TRY(take_null(json, &is_null, error));
    return is_null ? TANDEM_OK
                   : tnd_hf_refuse(json, TANDEM_E_UNSUPPORTED_BUILD, key,
                                   "is not known to this version, and may change results", error);
}

/* LongRoPE's divisors. */
static enum tandem_status take_factors(struct tnd_json *json, const char *key, float *out,
                                       int64_t *out_n, struct tandem_error *error)
{
    if (tnd_json_peek(json) != '[') {
        return tnd_hf_refuse(json, TANDEM_E_FORMAT, key, "is no list", error);
    }
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_item(&walk)) {
        int64_t integer = 0;
        double number = 0.0;
        if (walk.i == TND_HF_MAX_FACTORS) {
            return tnd_hf_refuse(json, TANDEM_E_LIMIT, key, "has more than 1024 numbers", error);
        }
        TND_TRY(take_number(json, key, false, &integer, &number, error));
        if (!(number > 0.0) || !(number <= 1e30)) {
            return tnd_hf_refuse(json, TANDEM_E_FORMAT, key, "has a number that is no divisor",
                                 error);
        }
        out[walk.i] = (float)number;
    }
    *out_n = walk.n;
    return walk.status;
}

/* Parses the members of rope_scaling and rope_parameters that are not numbers. */
static enum tandem_status take_rope_member(const struct tnd_config_reader *reader, const char *key,
                                           struct tandem_error *error)
{
    struct tnd_json *json = reader->json;
    struct tnd_hf_config *config = reader->config;
    const char c = tnd_json_peek(json);
    if (reader->family->window_theta != 0.0 && c == '{' &&
        is_one_of(key, "full_attention", "sliding_attention")) {
        return key[0] == 'f' ? take_object(reader, ROPE, error) : take_window_rope(reader, error);
    }
    if (is_one_of(key, "type", "rope_type") && c == '"') {
        char *out = strcmp(key, "type") == 0 ? config->older_scaling : config->scaling;
        return tnd_json_pull_string(json, out, sizeof(config->scaling), error);
    }
    if (strcmp(key, "short_factor") == 0 && c != 'n') {
        return take_factors(json, key, config->short_factor, &config->n_short, error);
    }
    if (strcmp(key, "long_factor") == 0 && c != 'n') {
        return take_factors(json, key, config->long_factor, &config->n_long, error);
    }
    if (strcmp(key, "truncate") == 0) {
        bool truncates = true;
        TND_TRY(take_flag(json, key, &truncates, error));
        config->keeps_fractions = !truncates;
        return TANDEM_OK;
    }
    return take_other(json, key, error);
}

static bool is_quantized(const char *key)
{
    return is_one_of(key, "quantization_config", "compression_config") ||
           strcmp(key, "quantization") == 0;
}

static enum tandem_status take_one(const struct tnd_config_reader *reader, const char *key,
                                   enum where where, struct tandem_error *error)
{
    struct tnd_json *json = reader->json;
    struct tnd_hf_config *config = reader->config;
    struct tnd_end_tokens bos;
    bool is_known = false;
    if (where == TOP && (tnd_llama_lists(reader->family->ignores, key) ||
                         (is_quantized(key) && tnd_json_peek(json) == '{'))) {
        return tnd_json_skip(json, error); /* take_type has parsed quantization_config */
    }
    if (where == TOP && tnd_llama_lists(reader->family->lacks, key)) {
        return take_other(json, key, error);
    }
    char ours[128];
    key =
        where == TOP && tnd_hf_alias(reader->family->aliases, key, ours, sizeof(ours)) ? ours : key;
    TND_TRY(take_member(reader, key, where, &is_known, error));
    if (is_known) {
        return TANDEM_OK;
    }
    if (where == ROPE) {
        return take_rope_member(reader, key, error);
    }
    if (is_one_of(key, "rope_scaling", "rope_parameters")) {
        return take_rope(reader, key, error);
    }
    if (strcmp(key, "hidden_act") == 0) {
        return take_activation(json, config, error);
    }
    if (strcmp(key, "topk_method") == 0 && tnd_llama_lists(reader->family->own, key)) {
        return take_method(json, config, error);
    }
    if (reader->family->is_encoder && strcmp(key, "architectures") == 0) {
        return take_architectures(json, config, error);
    }
    TND_TRY(take_text(reader, key, &is_known, error));
    if (is_known) {
        return TANDEM_OK;
    }
    if (strcmp(key, "layer_types") == 0) {
        return take_layer_types(json, config, error);
    }
    if (strcmp(key, "no_rope_layers") == 0 && tnd_llama_lists(reader->family->own, key)) {
        return take_rotated(json, config, error);
    }
    if (strcmp(key, "eos_token_id") == 0) {
        return take_tokens(json, key, &config->ends, error);
    }
    if (strcmp(key, "bos_token_id") == 0) {
        TND_TRY(take_tokens(json, key, &bos, error));
        config->bos = bos.n > 0 ? bos.ids[0] : TND_NOT_SAID;
        return TANDEM_OK;
    }
    return strcmp(key, "model_type") == 0 ? tnd_json_skip(json, error)
                                          : take_other(json, key, error);
}

static enum tandem_status take_object(const struct tnd_config_reader *reader, enum where where,
                                      struct tandem_error *error)
{
    char key[128];
    struct tnd_json_walk walk = {.json = reader->json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        TND_TRY(take_one(reader, key, where, error));
    }
    return walk.status;
}

/* The model_type of an object of config.json. */
struct type {
    char name[64];
    const char *at; /* the object; NULL: none */
};

/* Finds the model's type, and its text part's if it has one. Unknown quantised weights are refused
 * whatever the type is. */
static enum tandem_status take_type(struct tnd_json *json, struct type *out, struct type *out_text,
                                    struct tnd_hf_quantized *out_quantized,
                                    struct tandem_error *error)
{
    *out = (struct type){.at = json->at};
    char key[128];
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        const char c = tnd_json_peek(json);
        if (c == '"' && strcmp(key, "model_type") == 0) {
            TND_TRY(tnd_json_pull_string(json, out->name, sizeof(out->name), error));
        } else if (c == '{' && is_quantized(key)) {
            TND_TRY(tnd_hf_read_quantized(json, key, out_quantized, error));
        } else if (c == '{' && out_text != NULL && strcmp(key, "text_config") == 0) {
            TND_TRY(take_type(json, out_text, NULL, out_quantized, error));
        } else {
            TND_TRY(tnd_json_skip(json, error));
        }
    }
    return walk.status;
}

/* Refuses members that transformers ignores in the text part of a model. */
static enum tandem_status check_text(const struct tnd_config_reader *reader,
                                     struct tandem_error *error)
{
    const struct tnd_hf_config *c = reader->config;
    const bool is_capped = !isnan(c->final_logit_softcapping);
    return !is_capped && (isnan(c->logit_scale) || c->logit_scale == 1.0)
               ? TANDEM_OK
               : tnd_hf_refuse(reader->json, TANDEM_E_UNSUPPORTED_BUILD,
                               is_capped ? "final_logit_softcapping" : "logit_scale",
                               "of text_config is passed over by transformers", error);
}

/* Parses the members of the text part. */
static enum tandem_status take_text_config(const struct tnd_config_reader *reader, const char *text,
                                           struct tandem_error *error)
{
    const char *usual = tnd_hf_text_defaults(reader->family->model_type);
    if (usual != NULL) {
        struct tnd_json json = {usual, usual, usual + strlen(usual), reader->json->name};
        const struct tnd_config_reader of_usual = {&json, reader->family, reader->config};
        TND_TRY(take_object(&of_usual, TOP, error));
    }
    reader->json->at = text;
    TND_TRY(take_object(reader, TOP, error));
    return check_text(reader, error);
}

/* Parses members outside the text part. */
static enum tandem_status take_whole(const struct tnd_config_reader *reader,
                                     const struct tnd_hf_whole *whole, struct tandem_error *error)
{
    struct tnd_json *json = reader->json;
    char key[128];
    bool *is_tied = &reader->config->tie_word_embeddings;
    *is_tied = whole->is_tied || (whole->is_tied_by_text && *is_tied);
    json->at = json->begin;
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        const bool is_token = is_one_of(key, "bos_token_id", "eos_token_id");
        const bool is_taken =
            is_token || is_quantized(key) || is_one_of(key, "model_type", "tie_word_embeddings");
        const bool is_left = is_token && tnd_json_peek(json) == 'n'; /* text_config's counts */
        TND_TRY(is_left || tnd_hf_is_of_other_parts(key) ? tnd_json_skip(json, error)
                : is_taken                               ? take_one(reader, key, TOP, error)
                                                         : take_other(json, key, error));
    }
    return walk.status;
}

/* Stores the type of a model that we cannot read, for the message when a language model is
 * needed. */
static enum tandem_status tell_other(tandem_source *source, const struct type *type,
                                     const struct type *text, struct tandem_error *error)
{
    char name[192];
    const bool is_taken = tnd_llama_architecture_of(type->name) != NULL; /* a GGUF name */
    if (text->at != NULL && text->name[0] != '\0') {
        snprintf(name, sizeof(name), "%s of more than text (text_config is of %s)", type->name,
                 text->name);
    } else {
        snprintf(name, sizeof(name), "%s%s", type->name,
                 text->at != NULL ? " of more than text (text_config)"
                 : is_taken       ? " of config.json"
                                  : "");
    }
    return type->name[0] == '\0' ? TANDEM_OK
                                 : tnd_source_set_text(source, "general.architecture", name, error);
}

/* The text part's family; NULL: unsupported. */
static const struct tnd_hf_family *text_family(const struct tnd_hf_whole *whole,
                                               const struct type *text)
{
    const char *name = text->name[0] != '\0' ? text->name : whole->text;
    const struct tnd_hf_family *family = tnd_hf_family_of(name);
    return family == NULL || family->is_encoder ||
                   (whole->has_one_text && strcmp(name, whole->text) != 0)
               ? NULL
               : family;
}

enum tandem_status tnd_safetensors_read_ends(const void *bytes, size_t n, const char *path,
                                             struct tnd_end_tokens *out, struct tandem_error *error)
{
    const char *text = bytes;
    struct tnd_json json = {text, text, text + n, path};
    char key[128];
    struct tnd_json_walk walk = {.json = &json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        if (strcmp(key, "eos_token_id") == 0) {
            TND_TRY(take_tokens(&json, key, out, error));
        } else { /* sampling: options of programs, not of the model */
            TND_TRY(tnd_json_skip(&json, error));
        }
    }
    TND_TRY(walk.status);
    return tnd_json_end(&json, error);
}

enum tandem_status tnd_safetensors_read_config(const void *bytes, size_t n, const char *path,
                                               const struct tnd_end_tokens *ends,
                                               tandem_source *source, bool *out_is_model,
                                               struct tandem_error *error)
{
    const char *text = bytes;
    struct tnd_json json = {text, text, text + n, path};
    struct tnd_hf_config config;
    struct tnd_config_reader reader = {.json = &json, .config = &config};
    struct type type, part = {.at = NULL};
    TND_TRY(take_type(&json, &type, &part, &source->hf_quantized, error));
    TND_TRY(tnd_json_end(&json, error));
    const struct tnd_hf_whole *whole = part.at != NULL ? tnd_hf_whole_of(type.name) : NULL;
    reader.family = whole != NULL ? text_family(whole, &part) : tnd_hf_family_of(type.name);
    *out_is_model = reader.family != NULL;
    if (reader.family == NULL) {
        return tell_other(source, &type, &part, error);
    }
    source->hf = reader.family;
    source->hf_whole = whole;
    tnd_hf_set_defaults(reader.family, &config);
    json.at = json.begin;
    if (whole != NULL) {
        TND_TRY(take_text_config(&reader, part.at, error));
        TND_TRY(take_whole(&reader, whole, error));
        TND_TRY(tnd_source_set_text(source, "general.text_of", whole->model_type, error));
    } else {
        TND_TRY(take_object(&reader, TOP, error));
    }
    if (ends != NULL && ends->n > 0) { /* generation_config.json overrides config.json */
        config.ends = *ends;
    }
    TND_TRY(tnd_hf_resolve(&reader, error));
    TND_TRY(tnd_hf_convert_scaling(source, &config, error));
    return tnd_hf_add_values(source, &reader, error);
}
