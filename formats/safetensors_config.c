/* SPDX-License-Identifier: MIT
 * Models of Hugging Face: config.json into the GGUF convention (names of tensors: hf_names.c).
 * Names and defaults after the configuration and modelling files of transformers (llama, mistral,
 * qwen2, qwen3) and docs/gguf.md of ggml-org/ggml. Members that may change results and are not
 * known are refused: see llama-lists.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/cursor.h"
#include "formats/gguf.h"
#include "formats/hf_config.h"
#include "formats/json_pull.h"
#include "formats/llama-lists.h"
#include "formats/llama_tensors.h"
#include "formats/safetensors.h"

#define LARGEST       ((int64_t)1 << 62) /* of a whole number that anybody means */
#define DEFAULT_THETA 10000.0
#define MIXTRAL_THETA 1e6

enum where { TOP = 1, ROPE = 2, BOTH = 3 };

static const struct member {
    const char *name;
    size_t offset;
    enum where where;
    const char *key;
    bool is_integer;
} members[] = {
#define INTEGER_ROW(name, where, key)                                                              \
    {#name, offsetof(struct tnd_hf_config, name), where, key, true},
    TND_CONFIG_INTEGERS(INTEGER_ROW)
#undef INTEGER_ROW
#define NUMBER_ROW(name, where, key)                                                               \
    {#name, offsetof(struct tnd_hf_config, name), where, key, false},
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

/* What transformers takes where config.json does not say. */
static const struct family {
    const char *model_type;
    const char *architecture; /* in the GGUF convention */
    int64_t kv_heads, head_dim, context, window, bos, eos;
    bool has_window_by_layer; /* use_sliding_window, max_window_layers, layer_types */
    bool may_have_attention_bias, may_have_mlp_bias;
    /* of mixtures: experts, those that a token uses, widths; 0: the member belongs to others */
    int64_t experts, used, expert_hidden, shared_hidden;
} families[] = {
    {"llama", "llama", TND_NOT_SAID, TND_NOT_SAID, 2048, TND_NOT_SAID, 1, 2, false, true, true, 0,
     0, 0, 0},
    {"mistral", "llama", 8, TND_NOT_SAID, 131072, 4096, 1, 2, false, false, false, 0, 0, 0, 0},
    {"mixtral", "llama", 8, TND_NOT_SAID, 131072, TND_NOT_SAID, 1, 2, false, false, false, 8, 2, 0,
     0},
    {"qwen2", "qwen2", 32, TND_NOT_SAID, 32768, 4096, TND_NOT_SAID, TND_NOT_SAID, true, false,
     false, 0, 0, 0, 0},
    {"qwen3", "qwen3", 32, 128, 32768, 4096, TND_NOT_SAID, TND_NOT_SAID, true, true, false, 0, 0, 0,
     0},
    {"qwen2_moe", "qwen2moe", 16, TND_NOT_SAID, 32768, 4096, TND_NOT_SAID, TND_NOT_SAID, true,
     false, false, 60, 4, 1408, 5632},
    {"qwen3_moe", "qwen3moe", 4, TND_NOT_SAID, 32768, 4096, TND_NOT_SAID, TND_NOT_SAID, true, true,
     false, 128, 8, 768, 0},
};

/* The experts of Mixtral are as wide as intermediate_size says. */
static bool is_mixtral(const struct family *family)
{
    return family->experts > 0 && family->expert_hidden == 0;
}

/* A file that is read, of a family. */
struct reader {
    struct tnd_json *json;
    const struct family *family;
    struct tnd_hf_config *config;
};

static enum tandem_status refuse(const struct tnd_json *json, enum tandem_status status,
                                 const char *member, const char *why, struct tandem_error *error)
{
    return tnd_error_set(error, status, member, 0, 0, "%s: member \"%.60s\" %.120s",
                         tnd_short_name(json->name), member, why);
}

/* ---- values ---- */

static enum tandem_status take_null(struct tnd_json *json, bool *out_is_null,
                                    struct tandem_error *error)
{
    *out_is_null = tnd_json_peek(json) == 'n';
    return *out_is_null ? tnd_json_skip(json, error) : TANDEM_OK;
}

/* A number, or null: not said. `is_integer`: a whole one is expected. */
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
        return refuse(json, TANDEM_E_FORMAT, key, "is no number", error);
    }
    TND_TRY(tnd_json_number(json, out_number, out_integer, &is_whole, error));
    if (is_integer && (!is_whole || *out_integer < -LARGEST || *out_integer > LARGEST)) {
        return refuse(json, TANDEM_E_FORMAT, key, "is no whole number below 2^62", error);
    }
    return TANDEM_OK;
}

static enum tandem_status take_flag(struct tnd_json *json, const char *key, bool *out,
                                    struct tandem_error *error)
{
    const char c = tnd_json_peek(json);
    if (c != 't' && c != 'f') {
        return refuse(json, TANDEM_E_FORMAT, key, "is neither true nor false", error);
    }
    return tnd_json_pull_bool(json, out, error);
}

/* A member that must leave results as they are: false, null, nothing, or its neutral number. */
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
                             : refuse(json, TANDEM_E_UNSUPPORTED_BUILD, key,
                                      "asks for what this version does not compute", error);
}

/* A token, or a list of tokens, or null. */
static enum tandem_status take_tokens(struct tnd_json *json, const char *key,
                                      struct tnd_end_tokens *out, struct tandem_error *error)
{
    struct tnd_end_tokens tokens = {.n = 0};
    double number;
    bool more = true;
    const bool is_list = tnd_json_peek(json) == '[';
    if (is_list) {
        TND_TRY(tnd_json_take(json, '[', error));
    }
    for (int i = 0; is_list || i == 0; i++) {
        int64_t token = TND_NOT_SAID;
        if (is_list) {
            TND_TRY(tnd_json_more(json, ']', i, &more, error));
            if (!more) {
                break;
            }
        }
        TND_TRY(take_number(json, key, true, &token, &number, error));
        if (token != TND_NOT_SAID && tokens.n == TND_MAX_END_TOKENS) {
            return refuse(json, TANDEM_E_LIMIT, key, "has more than 64 tokens", error);
        }
        if (token != TND_NOT_SAID && token >= 0 &&
            token <= INT32_MAX) { /* others are never chosen */
            tokens.ids[tokens.n++] = (int32_t)token;
        }
    }
    *out = tokens;
    return TANDEM_OK;
}

/* Names of hidden_act that are computed: ours; NULL: silu. */
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
        return refuse(json, TANDEM_E_FORMAT, "hidden_act", "is no text", error);
    }
    TND_TRY(tnd_json_pull_string(json, name, sizeof(name), error));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i][0]) == 0) {
            config->activation = names[i][1];
            return TANDEM_OK;
        }
    }
    snprintf(why, sizeof(why), "is %.40s, which this version does not compute", name);
    return refuse(json, TANDEM_E_UNSUPPORTED_BUILD, "hidden_act", why, error);
}

static enum tandem_status take_layer_types(struct tnd_json *json, struct tnd_hf_config *config,
                                           struct tandem_error *error)
{
    char name[64];
    char why[128];
    bool more = false, is_null = false;
    TND_TRY(take_null(json, &is_null, error));
    if (is_null) {
        return TANDEM_OK;
    }
    if (tnd_json_peek(json) != '[') {
        return refuse(json, TANDEM_E_FORMAT, "layer_types", "is no list", error);
    }
    TND_TRY(tnd_json_take(json, '[', error));
    for (int64_t i = 0;; i++) {
        TND_TRY(tnd_json_more(json, ']', i, &more, error));
        if (!more) {
            config->n_layer_types = i;
            return TANDEM_OK;
        }
        TND_TRY(tnd_json_pull_string(json, name, sizeof(name), error));
        const bool is_windowed = strcmp(name, "sliding_attention") == 0;
        if (i == TND_HF_MAX_LAYERS || (!is_windowed && strcmp(name, "full_attention") != 0)) {
            snprintf(why, sizeof(why), "has %.40s, expected full_attention or sliding_attention",
                     i == TND_HF_MAX_LAYERS ? "more than 4096 layers" : name);
            return refuse(json, TANDEM_E_UNSUPPORTED_BUILD, "layer_types", why, error);
        }
        config->windowed[i] = is_windowed;
    }
}

/* ---- members ---- */

static enum tandem_status take_object(const struct reader *reader, enum where where,
                                      struct tandem_error *error);

/* A number of the lists. `out_is_known` is false for another member. */
static enum tandem_status take_member(const struct reader *reader, const char *key,
                                      enum where where, bool *out_is_known,
                                      struct tandem_error *error)
{
    *out_is_known = true;
    for (size_t i = 0; i < N_MEMBERS; i++) {
        struct tnd_hf_config *config = reader->config;
        char *member = (char *)config + members[i].offset;
        int64_t integer;
        double number;
        if (strcmp(key, members[i].name) != 0 || (members[i].where & where) == 0) {
            continue;
        }
        TND_TRY(take_number(reader->json, key, members[i].is_integer, &integer, &number, error));
        if (members[i].is_integer) {
            memcpy(member, &integer, sizeof(integer));
        } else if (where == ROPE && strcmp(key, "rope_theta") == 0) {
            config->rope_theta_inside = number;
        } else if (where == ROPE && strcmp(key, "original_max_position_embeddings") == 0) {
            config->original_inside = number;
        } else {
            memcpy(member, &number, sizeof(number));
        }
        return TANDEM_OK;
    }
    for (size_t i = 0; where == TOP && i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (strcmp(key, flags[i].name) == 0) {
            return take_flag(reader->json, key, (bool *)((char *)reader->config + flags[i].offset),
                             error);
        }
    }
    *out_is_known = false;
    return TANDEM_OK;
}

static enum tandem_status take_rope(const struct reader *reader, const char *key,
                                    struct tandem_error *error)
{
    struct tnd_json *json = reader->json;
    bool is_null = false;
    TND_TRY(take_null(json, &is_null, error));
    if (is_null) {
        return TANDEM_OK;
    }
    if (tnd_json_peek(json) != '{') {
        return refuse(json, TANDEM_E_FORMAT, key, "is no object", error);
    }
    const char *begin = json->at;
    TND_TRY(take_object(reader, ROPE, error));
    reader->config->n_ropes += json->at - begin > 2 ? 1 : 0;
    return reader->config->n_ropes < 2
               ? TANDEM_OK
               : refuse(json, TANDEM_E_FORMAT, key, "says once more how rope is scaled", error);
}

/* What is in no list, or must leave results as they are. */
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
                   : refuse(json, TANDEM_E_UNSUPPORTED_BUILD, key,
                            "is not known to this version, and may change results", error);
}

static bool is_one_of(const char *key, const char *a, const char *b)
{
    return strcmp(key, a) == 0 || strcmp(key, b) == 0;
}

/* LongRoPE's divisors. */
static enum tandem_status take_factors(struct tnd_json *json, const char *key, float *out,
                                       int64_t *out_n, struct tandem_error *error)
{
    bool more = false;
    if (tnd_json_peek(json) != '[') {
        return refuse(json, TANDEM_E_FORMAT, key, "is no list", error);
    }
    TND_TRY(tnd_json_take(json, '[', error));
    for (int64_t i = 0;; i++) {
        int64_t integer = 0;
        double number = 0.0;
        TND_TRY(tnd_json_more(json, ']', i, &more, error));
        if (!more) {
            *out_n = i;
            return TANDEM_OK;
        }
        if (i == TND_HF_MAX_FACTORS) {
            return refuse(json, TANDEM_E_LIMIT, key, "has more than 1024 numbers", error);
        }
        TND_TRY(take_number(json, key, false, &integer, &number, error));
        if (!(number > 0.0) || !(number <= 1e30)) {
            return refuse(json, TANDEM_E_FORMAT, key, "has a number that is no divisor", error);
        }
        out[i] = (float)number;
    }
}

/* Members of rope_scaling and rope_parameters that are no numbers. */
static enum tandem_status take_rope_member(struct tnd_json *json, const char *key,
                                           struct tnd_hf_config *config, struct tandem_error *error)
{
    const char c = tnd_json_peek(json);
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

static enum tandem_status take_one(const struct reader *reader, const char *key, enum where where,
                                   struct tandem_error *error)
{
    struct tnd_json *json = reader->json;
    struct tnd_hf_config *config = reader->config;
    struct tnd_end_tokens bos;
    bool is_known = false;
    TND_TRY(take_member(reader, key, where, &is_known, error));
    if (is_known) {
        return TANDEM_OK;
    }
    if (where == ROPE) {
        return take_rope_member(json, key, config, error);
    }
    if (is_one_of(key, "rope_scaling", "rope_parameters")) {
        return take_rope(reader, key, error);
    }
    if (strcmp(key, "hidden_act") == 0) {
        return take_activation(json, config, error);
    }
    if (strcmp(key, "layer_types") == 0) {
        return take_layer_types(json, config, error);
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

static enum tandem_status take_object(const struct reader *reader, enum where where,
                                      struct tandem_error *error)
{
    char key[128];
    bool more = false;
    TND_TRY(tnd_json_take(reader->json, '{', error));
    for (int64_t i = 0;; i++) {
        TND_TRY(tnd_json_more(reader->json, '}', i, &more, error));
        if (!more) {
            return TANDEM_OK;
        }
        TND_TRY(tnd_json_key(reader->json, key, sizeof(key), error));
        TND_TRY(take_one(reader, key, where, error));
    }
}

/* What the other members are to be read by: the model's type. Weights that are quantised are
 * refused whatever the type is. */
static enum tandem_status take_type(struct tnd_json *json, char *out_type, size_t capacity,
                                    struct tandem_error *error)
{
    char key[128];
    bool more = false;
    TND_TRY(tnd_json_take(json, '{', error));
    for (int64_t i = 0;; i++) {
        TND_TRY(tnd_json_more(json, '}', i, &more, error));
        if (!more) {
            return tnd_json_end(json, error);
        }
        TND_TRY(tnd_json_key(json, key, sizeof(key), error));
        const char c = tnd_json_peek(json);
        if (c == '"' && strcmp(key, "model_type") == 0) {
            TND_TRY(tnd_json_pull_string(json, out_type, capacity, error));
        } else if (c == '{' && (is_one_of(key, "quantization_config", "compression_config") ||
                                strcmp(key, "quantization") == 0)) {
            TND_TRY(tnd_hf_refuse_quantized(json, key, error));
        } else {
            TND_TRY(tnd_json_skip(json, error));
        }
    }
}

/* ---- into the convention ---- */

/* Which layers have the window; none: the member is taken back. */
static enum tandem_status resolve_windows(const struct reader *reader, struct tandem_error *error)
{
    struct tnd_hf_config *c = reader->config;
    const bool by_layer = reader->family->has_window_by_layer;
    int64_t n_windowed = 0;
    if (c->n_layer_types > 0 && c->n_layer_types != c->num_hidden_layers) {
        return refuse(reader->json, TANDEM_E_FORMAT, "layer_types",
                      "has another number of layers than num_hidden_layers", error);
    }
    c->sliding_window = by_layer && !c->use_sliding_window ? TND_NOT_SAID : c->sliding_window;
    for (int64_t i = 0; i < c->num_hidden_layers && i < TND_HF_MAX_LAYERS; i++) {
        if (c->n_layer_types == 0) {
            c->windowed[i] =
                c->sliding_window != TND_NOT_SAID && (!by_layer || i >= c->max_window_layers);
        }
        n_windowed += c->windowed[i];
    }
    if (c->n_layer_types > 0 && n_windowed > 0 &&
        (!by_layer || c->sliding_window == TND_NOT_SAID)) {
        return refuse(reader->json, TANDEM_E_UNSUPPORTED_BUILD, "layer_types",
                      "has sliding_attention, and no window is said to be used", error);
    }
    if (by_layer && n_windowed == 0) {
        c->sliding_window = TND_NOT_SAID;
    }
    if (c->sliding_window != TND_NOT_SAID && c->sliding_window < 1) {
        return refuse(reader->json, TANDEM_E_FORMAT, "sliding_window", "is less than 1", error);
    }
    c->n_layer_types = by_layer && n_windowed > 0 && n_windowed < c->num_hidden_layers
                           ? c->num_hidden_layers
                           : 0; /* from here on: to be told */
    return c->n_layer_types <= TND_HF_MAX_LAYERS
               ? TANDEM_OK
               : refuse(reader->json, TANDEM_E_LIMIT, "num_hidden_layers", "is more than 4096",
                        error);
}

/* Members that every family needs, and those that this one does not have: transformers passes over
 * them without a word. */
static enum tandem_status check_family(const struct reader *reader, struct tandem_error *error)
{
    const struct tnd_hf_config *c = reader->config;
    const struct family *family = reader->family;
    const struct {
        const char *name;
        bool is_foreign;
    } rows[] = {
        {"attention_bias", c->attention_bias && !family->may_have_attention_bias},
        {"mlp_bias", c->mlp_bias && !family->may_have_mlp_bias},
        {"sliding_window",
         strcmp(family->model_type, "llama") == 0 && c->sliding_window != TND_NOT_SAID},
        {"use_sliding_window",
         c->use_sliding_window && (!family->has_window_by_layer || family->experts > 0)},
        {"num_local_experts", family->experts == 0 && c->num_local_experts > 0},
        {"num_experts", family->experts == 0 && c->num_experts > 0},
        {"num_experts_per_tok", family->used == 0 && c->num_experts_per_tok > 0},
        {"moe_intermediate_size", family->expert_hidden == 0 && c->moe_intermediate_size > 0},
        {"shared_expert_intermediate_size",
         family->shared_hidden == 0 && c->shared_expert_intermediate_size > 0},
        {"norm_topk_prob", family->expert_hidden == 0 && c->norm_topk_prob},
        {"qkv_bias", family->shared_hidden == 0 && c->qkv_bias},
    };
    const struct {
        const char *name;
        int64_t value;
    } needed[] = {
        {"hidden_size", c->hidden_size},
        {"intermediate_size", c->intermediate_size},
        {"num_hidden_layers", c->num_hidden_layers},
        {"num_attention_heads", c->num_attention_heads},
        {"vocab_size", c->vocab_size},
        {"max_position_embeddings", c->max_position_embeddings},
    };
    if (isnan(c->rms_norm_eps)) {
        return refuse(reader->json, TANDEM_E_NOT_FOUND, "rms_norm_eps", "is missing", error);
    }
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (needed[i].value == TND_NOT_SAID) {
            return refuse(reader->json, TANDEM_E_NOT_FOUND, needed[i].name, "is missing", error);
        }
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].is_foreign) {
            return refuse(reader->json, TANDEM_E_UNSUPPORTED_BUILD, rows[i].name,
                          "is on, and models of this model_type do not have it", error);
        }
    }
    return TANDEM_OK;
}

/* Numbers of 0 or 1 that say which tensors there must be. */
static enum tandem_status add_promises(tandem_source *source, const struct reader *reader,
                                       struct tandem_error *error)
{
    const struct tnd_hf_config *c = reader->config;
    const bool has_qkv_bias =
        c->attention_bias || c->qkv_bias || strcmp(reader->family->architecture, "qwen2") == 0;
    TND_TRY(tnd_source_set_integer(source, "tandem.has.attention_bias", has_qkv_bias, error));
    TND_TRY(tnd_source_set_integer(source, "tandem.has.attention_output_bias", c->attention_bias,
                                   error));
    TND_TRY(tnd_source_set_integer(source, "tandem.has.feed_forward_bias", c->mlp_bias, error));
    return c->tie_word_embeddings ? TANDEM_OK /* and may be there all the same */
                                  : tnd_source_set_integer(source, "tandem.has.output", 1, error);
}

static enum tandem_status add_tokens(tandem_source *source, const struct tnd_hf_config *c,
                                     struct tandem_error *error)
{
    if (c->bos != TND_NOT_SAID) {
        TND_TRY(tnd_source_set_integer(source, "tokenizer.ggml.bos_token_id", c->bos, error));
    }
    if (c->ends.n == 0) {
        return TANDEM_OK;
    }
    uint8_t bytes[4 * TND_MAX_END_TOKENS];
    for (int i = 0; i < c->ends.n; i++) {
        for (int b = 0; b < 4; b++) {
            bytes[4 * i + b] = (uint8_t)((uint32_t)c->ends.ids[i] >> (8 * b));
        }
    }
    TND_TRY(tnd_source_set_integer(source, "tokenizer.ggml.eos_token_id", c->ends.ids[0], error));
    return tnd_source_set_array(source, "tandem.end_tokens", TND_GGUF_U32, c->ends.n, bytes,
                                4 * (size_t)c->ends.n, true, error);
}

static enum tandem_status add_values(tandem_source *source, const struct reader *reader,
                                     struct tandem_error *error)
{
    const struct tnd_hf_config *config = reader->config;
    const char *architecture = reader->family->architecture;
    char key[128];
    TND_TRY(tnd_source_set_text(source, "general.architecture", architecture, error));
    for (size_t i = 0; i < N_MEMBERS; i++) {
        const char *member = (const char *)config + members[i].offset;
        int64_t integer = 0;
        double number = 0.0;
        if (members[i].key == NULL) {
            continue;
        }
        snprintf(key, sizeof(key), "%s.%s", architecture, members[i].key);
        memcpy(members[i].is_integer ? (void *)&integer : (void *)&number, member, 8);
        if (members[i].is_integer && integer != TND_NOT_SAID) {
            TND_TRY(tnd_source_set_integer(source, key, integer, error));
        } else if (!members[i].is_integer && !isnan(number)) {
            TND_TRY(tnd_source_set_number(source, key, number, error));
        }
    }
    if (tnd_hf_head_size(config) > 0) { /* all of a head is rotated */
        snprintf(key, sizeof(key), "%s.rope.dimension_count", architecture);
        TND_TRY(tnd_source_set_integer(source, key, tnd_hf_head_size(config), error));
    }
    TND_TRY(tnd_hf_add_scaling(source, architecture, config, error));
    if (config->n_layer_types > 0) {
        snprintf(key, sizeof(key), "%s.attention.sliding_window_pattern", architecture);
        TND_TRY(tnd_source_set_array(source, key, TND_GGUF_BOOL, config->n_layer_types,
                                     config->windowed, (size_t)config->n_layer_types, true, error));
    }
    if (reader->family->expert_hidden > 0) {
        snprintf(key, sizeof(key), "%s.expert_weights_norm", architecture);
        TND_TRY(tnd_source_set_integer(source, key, config->norm_topk_prob, error));
    }
    if (config->activation != NULL) {
        TND_TRY(tnd_source_set_text(source, "tandem.activation", config->activation, error));
    }
    TND_TRY(add_tokens(source, config, error));
    TND_TRY(add_promises(source, reader, error));
    return tnd_source_set_text(source, "tandem.rope.pairs", "halves", error);
}

static void set_expert_defaults(const struct family *family, struct tnd_hf_config *out)
{
    const bool has_width = family->expert_hidden > 0;
    const bool has_shared = family->shared_hidden > 0;
    out->num_experts_per_tok = family->used > 0 ? family->used : TND_NOT_SAID;
    out->moe_intermediate_size = has_width ? family->expert_hidden : TND_NOT_SAID;
    out->shared_expert_intermediate_size = has_shared ? family->shared_hidden : TND_NOT_SAID;
    out->qkv_bias = has_shared;
}

/* The number of experts has two names, of which later versions of transformers write the first for
 * every family. Members that say nothing here, such as experts of a model without any (0: there are
 * none), are forgotten. */
static enum tandem_status resolve_experts(const struct reader *reader, struct tandem_error *error)
{
    const struct family *family = reader->family;
    struct tnd_hf_config *c = reader->config;
    const int64_t other = c->num_experts;
    c->num_experts = TND_NOT_SAID;
    if (family->experts == 0) {
        c->num_local_experts = c->num_experts_per_tok = c->moe_intermediate_size = TND_NOT_SAID;
        c->shared_expert_intermediate_size = TND_NOT_SAID;
        return TANDEM_OK;
    }
    if (other != TND_NOT_SAID && c->num_local_experts != TND_NOT_SAID &&
        other != c->num_local_experts) {
        return refuse(reader->json, TANDEM_E_FORMAT, "num_experts",
                      "is another number than num_local_experts", error);
    }
    c->num_local_experts = other != TND_NOT_SAID                  ? other
                           : c->num_local_experts != TND_NOT_SAID ? c->num_local_experts
                                                                  : family->experts;
    return TANDEM_OK;
}

static void set_defaults(const struct family *family, struct tnd_hf_config *out)
{
    *out = (struct tnd_hf_config){
        .rope_theta_inside = NAN, .original_inside = NAN, .attn_factor = NAN, .bos = family->bos};
    for (size_t i = 0; i < N_MEMBERS; i++) {
        const int64_t integer = TND_NOT_SAID;
        const double number = NAN;
        memcpy((char *)out + members[i].offset,
               members[i].is_integer ? (const void *)&integer : (const void *)&number, 8);
    }
    out->num_key_value_heads = family->kv_heads;
    out->head_dim = family->head_dim;
    out->max_position_embeddings = family->context;
    out->sliding_window = family->window;
    out->max_window_layers = 28;
    out->rms_norm_eps = is_mixtral(family) ? 1e-5 : 1e-6;
    set_expert_defaults(family, out);
    if (family->eos != TND_NOT_SAID) {
        out->ends = (struct tnd_end_tokens){{(int32_t)family->eos}, 1};
    }
}

enum tandem_status tnd_safetensors_read_ends(const void *bytes, size_t n, const char *path,
                                             struct tnd_end_tokens *out, struct tandem_error *error)
{
    const char *text = bytes;
    struct tnd_json json = {text, text, text + n, path};
    char key[128];
    bool more = false;
    TND_TRY(tnd_json_take(&json, '{', error));
    for (int64_t i = 0;; i++) {
        TND_TRY(tnd_json_more(&json, '}', i, &more, error));
        if (!more) {
            return tnd_json_end(&json, error);
        }
        TND_TRY(tnd_json_key(&json, key, sizeof(key), error));
        if (strcmp(key, "eos_token_id") == 0) {
            TND_TRY(take_tokens(&json, key, out, error));
        } else { /* how tokens are chosen: options of the program, not of the model */
            TND_TRY(tnd_json_skip(&json, error));
        }
    }
}

enum tandem_status tnd_safetensors_read_config(const void *bytes, size_t n, const char *path,
                                               const struct tnd_end_tokens *ends,
                                               tandem_source *source, bool *out_is_model,
                                               struct tandem_error *error)
{
    const char *text = bytes;
    struct tnd_json json = {text, text, text + n, path};
    struct tnd_hf_config config;
    struct reader reader = {.json = &json, .config = &config};
    char type[64] = "";
    TND_TRY(take_type(&json, type, sizeof(type), error));
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (strcmp(type, families[i].model_type) == 0) {
            reader.family = &families[i];
        }
    }
    *out_is_model = reader.family != NULL;
    if (reader.family == NULL) { /* whoever wants a llama says what it is */
        return type[0] == '\0' ? TANDEM_OK
                               : tnd_source_set_text(source, "general.architecture", type, error);
    }
    json.at = json.begin;
    set_defaults(reader.family, &config);
    TND_TRY(take_object(&reader, TOP, error));
    if (ends != NULL && ends->n > 0) { /* generation_config.json counts before config.json */
        config.ends = *ends;
    }
    TND_TRY(check_family(&reader, error));
    TND_TRY(resolve_experts(&reader, error));
    TND_TRY(resolve_windows(&reader, error));
    tnd_hf_resolve_rope(&config, is_mixtral(reader.family) ? MIXTRAL_THETA : DEFAULT_THETA);
    TND_TRY(tnd_hf_convert_scaling(source, &config, error));
    return add_values(source, &reader, error);
}
