/* SPDX-License-Identifier: MIT
 * Models of Hugging Face: config.json and the names of tensors, both into the GGUF convention.
 * Names after the modelling files of transformers (llama, mistral, qwen2) and docs/gguf.md of
 * ggml-org/ggml. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/cursor.h"
#include "formats/json_pull.h"
#include "formats/safetensors.h"

/* X(member of config.json, key behind the architecture) */
#define INTEGER_LIST(X)                                                                            \
    X(hidden_size, "embedding_length")                                                             \
    X(intermediate_size, "feed_forward_length")                                                    \
    X(num_hidden_layers, "block_count")                                                            \
    X(num_attention_heads, "attention.head_count")                                                 \
    X(num_key_value_heads, "attention.head_count_kv")                                              \
    X(max_position_embeddings, "context_length")                                                   \
    X(vocab_size, "vocab_size")                                                                    \
    X(head_dim, "rope.dimension_count")                                                            \
    X(sliding_window, "attention.sliding_window")                                                  \
    X(original_max_position_embeddings, "rope.scaling.original_context_length")
#define NUMBER_LIST(X)                                                                             \
    X(rms_norm_eps, "attention.layer_norm_rms_epsilon")                                            \
    X(rope_theta, "rope.freq_base")                                                                \
    X(factor, "rope.scaling.factor")                                                               \
    X(low_freq_factor, "rope.scaling.low_freq_factor")                                             \
    X(high_freq_factor, "rope.scaling.high_freq_factor")

struct config {
#define INTEGER_MEMBER(name, key) int64_t name;
    INTEGER_LIST(INTEGER_MEMBER)
#undef INTEGER_MEMBER
#define NUMBER_MEMBER(name, key) double name;
    NUMBER_LIST(NUMBER_MEMBER)
#undef NUMBER_MEMBER
    char model_type[32];
    char scaling[32];
    int64_t bos;
    int64_t eos;
    bool uses_window;
};

static const struct {
    const char *name;
    size_t offset;
    const char *key;
    bool is_integer;
} members[] = {
#define INTEGER_ROW(name, key) {#name, offsetof(struct config, name), key, true},
    INTEGER_LIST(INTEGER_ROW)
#undef INTEGER_ROW
#define NUMBER_ROW(name, key) {#name, offsetof(struct config, name), key, false},
        NUMBER_LIST(NUMBER_ROW)
#undef NUMBER_ROW
};
#define N_MEMBERS (sizeof(members) / sizeof(members[0]))

/* Takes a number into a member of that name; what is no number (null, a list) is passed over. */
static enum tandem_status take_member(struct tnd_json *json, const char *key, struct config *config,
                                      struct tandem_error *error)
{
    double number = 0.0;
    int64_t integer = 0;
    bool is_integer = false;
    const char c = tnd_json_peek(json);
    if (c != '-' && (c < '0' || c > '9')) {
        return tnd_json_skip(json, error);
    }
    TND_TRY(tnd_json_number(json, &number, &integer, &is_integer, error));
    for (size_t i = 0; i < N_MEMBERS; i++) {
        char *member = (char *)config + members[i].offset;
        if (strcmp(key, members[i].name) != 0) {
            continue;
        }
        if (!members[i].is_integer) {
            memcpy(member, &number, sizeof(number));
        } else if (is_integer) {
            memcpy(member, &integer, sizeof(integer));
        }
    }
    if (is_integer && strcmp(key, "bos_token_id") == 0) {
        config->bos = integer;
    } else if (is_integer && strcmp(key, "eos_token_id") == 0) {
        config->eos = integer;
    }
    return TANDEM_OK;
}

static enum tandem_status take_object(struct tnd_json *json, struct config *config, int depth,
                                      struct tandem_error *error)
{
    char key[128];
    bool more = false;
    TND_TRY(tnd_json_take(json, '{', error));
    for (int64_t i = 0;; i++) {
        TND_TRY(tnd_json_more(json, '}', i, &more, error));
        if (!more) {
            return TANDEM_OK;
        }
        TND_TRY(tnd_json_key(json, key, sizeof(key), error));
        const char c = tnd_json_peek(json);
        if (c == '"' && depth == 0 && strcmp(key, "model_type") == 0) {
            TND_TRY(
                tnd_json_pull_string(json, config->model_type, sizeof(config->model_type), error));
        } else if (c == '"' && depth == 1 &&
                   (strcmp(key, "type") == 0 || strcmp(key, "rope_type") == 0)) {
            TND_TRY(tnd_json_pull_string(json, config->scaling, sizeof(config->scaling), error));
        } else if (c == '{' && depth == 0 &&
                   (strcmp(key, "rope_scaling") == 0 || strcmp(key, "rope_parameters") == 0)) {
            TND_TRY(take_object(json, config, 1, error));
        } else if (depth == 0 && strcmp(key, "use_sliding_window") == 0) {
            TND_TRY(tnd_json_pull_bool(json, &config->uses_window, error));
        } else {
            TND_TRY(take_member(json, key, config, error));
        }
    }
}

static void forget_scaling(struct config *c)
{
    c->scaling[0] = '\0';
    c->factor = 0.0;
    c->low_freq_factor = 0.0;
    c->high_freq_factor = 0.0;
    c->original_max_position_embeddings = 0;
}

/* What config.json leaves to the default of its model. */
static void fill_defaults(struct config *c)
{
    c->num_key_value_heads =
        c->num_key_value_heads == 0 ? c->num_attention_heads : c->num_key_value_heads;
    if (c->head_dim == 0 && c->num_attention_heads > 0) {
        c->head_dim = c->hidden_size / c->num_attention_heads;
    }
    c->rope_theta = c->rope_theta == 0.0 ? 10000.0 : c->rope_theta;
    c->rms_norm_eps = c->rms_norm_eps == 0.0 ? 1e-6 : c->rms_norm_eps;
    c->sliding_window = c->uses_window ? c->sliding_window : 0;
    if (c->scaling[0] == '\0' || strcmp(c->scaling, "default") == 0) {
        forget_scaling(c);
    }
}

/* ---- scaling of rope ---- */

static bool can_be(const struct tnd_llama3_rope *rope)
{
    return rope->factor >= 1e-3 && rope->factor <= 1e6 && rope->base > 0.0 &&
           rope->head_size >= 2 && rope->head_size <= 65536 && rope->head_size % 2 == 0 &&
           rope->low > 0.0 && rope->high > rope->low && rope->high <= 1e6 && rope->original >= 1.0;
}

enum tandem_status tnd_safetensors_add_divisors(tandem_source *source,
                                                const struct tnd_llama3_rope *rope,
                                                struct tandem_error *error)
{
    const char *name = "rope_freqs.weight";
    const int64_t n = rope->head_size / 2;
    const size_t bytes = (size_t)n * sizeof(float);
    void *memory = NULL;
    if (!can_be(rope)) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_source_alloc(source, name, bytes, 0, &memory, error));
    const struct tandem_hparams h = {.n_rot = rope->head_size,
                                     .freq_base = (float)rope->base,
                                     .rope_factor = rope->factor,
                                     .rope_low = rope->low,
                                     .rope_high = rope->high,
                                     .rope_original = rope->original};
    tandem_hparams_divisors(&h, memory);
    return tnd_source_add(source, name, TANDEM_TYPE_F32, 1, &n, memory, bytes, error);
}

/* Converts what the convention has no words for into what it has: NTK's into the base, llama 3's
 * into divisors. The base of "dynamic" grows for texts beyond the context only, which no session
 * decodes. Others, and numbers that cannot be, stay for the model to judge. */
static enum tandem_status convert_scaling(tandem_source *source, struct config *c,
                                          struct tandem_error *error)
{
    const double n = (double)c->head_dim;
    const struct tnd_llama3_rope rope = {.head_size = c->head_dim,
                                         .base = c->rope_theta,
                                         .factor = c->factor,
                                         .low = c->low_freq_factor,
                                         .high = c->high_freq_factor,
                                         .original = (double)c->original_max_position_embeddings};
    if (strcmp(c->scaling, "dynamic") == 0) {
        forget_scaling(c);
    } else if (strcmp(c->scaling, "ntk") == 0 && c->factor >= 1e-3 && c->factor <= 1e6 &&
               c->head_dim > 2 && c->head_dim <= 65536) {
        c->rope_theta *= pow(c->factor, n / (n - 2.0));
        forget_scaling(c);
    } else if (strcmp(c->scaling, "llama3") == 0 && can_be(&rope)) {
        TND_TRY(tnd_safetensors_add_divisors(source, &rope, error));
        forget_scaling(c);
    }
    return TANDEM_OK;
}

static enum tandem_status add_values(tandem_source *source, const struct config *config,
                                     const char *architecture, struct tandem_error *error)
{
    char key[128];
    TND_TRY(tnd_source_set_text(source, "general.architecture", architecture, error));
    for (size_t i = 0; i < N_MEMBERS; i++) {
        const char *member = (const char *)config + members[i].offset;
        int64_t integer = 0;
        double number = 0.0;
        snprintf(key, sizeof(key), "%s.%s", architecture, members[i].key);
        memcpy(members[i].is_integer ? (void *)&integer : (void *)&number, member, 8);
        if (members[i].is_integer && integer != 0) {
            TND_TRY(tnd_source_set_integer(source, key, integer, error));
        } else if (!members[i].is_integer && number != 0.0) {
            TND_TRY(tnd_source_set_number(source, key, number, error));
        }
    }
    if (config->scaling[0] != '\0') {
        snprintf(key, sizeof(key), "%s.rope.scaling.type", architecture);
        TND_TRY(tnd_source_set_text(source, key, config->scaling, error));
    }
    if (config->bos >= 0) {
        TND_TRY(tnd_source_set_integer(source, "tokenizer.ggml.bos_token_id", config->bos, error));
    }
    if (config->eos >= 0) {
        TND_TRY(tnd_source_set_integer(source, "tokenizer.ggml.eos_token_id", config->eos, error));
    }
    return tnd_source_set_text(source, "tandem.rope.pairs", "halves", error);
}

enum tandem_status tnd_safetensors_read_config(const void *bytes, size_t n, const char *path,
                                               tandem_source *source, bool *out_is_model,
                                               struct tandem_error *error)
{
    static const char *const models[][2] = {
        {"llama", "llama"}, {"mistral", "llama"}, {"qwen2", "qwen2"}};
    const char *text = bytes;
    struct tnd_json json = {text, text, text + n, path};
    struct config config = {.bos = -1, .eos = -1, .uses_window = true};
    TND_TRY(take_object(&json, &config, 0, error));
    TND_TRY(tnd_json_end(&json, error));
    *out_is_model = false;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        if (strcmp(config.model_type, models[i][0]) == 0) {
            fill_defaults(&config);
            TND_TRY(convert_scaling(source, &config, error));
            *out_is_model = true;
            return add_values(source, &config, models[i][1], error);
        }
    }
    return TANDEM_OK;
}

/* ---- names ---- */

static const struct name_row {
    const char *theirs;
    const char *ours;
} whole_names[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};
/* Behind model.layers.N. up to the last part (weight, bias). */
static const struct name_row layer_names[] = {
    {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};

bool tnd_safetensors_map_name(const char *name, char *out, size_t capacity)
{
    static const char prefix[] = "model.layers.";
    for (size_t i = 0; i < sizeof(whole_names) / sizeof(whole_names[0]); i++) {
        if (strcmp(name, whole_names[i].theirs) == 0) {
            snprintf(out, capacity, "%s", whole_names[i].ours);
            return true;
        }
    }
    snprintf(out, capacity, "%s", name);
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0) {
        return true;
    }
    const char *number = name + sizeof(prefix) - 1;
    const size_t digits = strspn(number, "0123456789");
    const char *rest = number + digits + 1;
    const char *last = strrchr(name, '.');
    if (digits == 0 || digits > 9 || number[digits] != '.' || last < rest) {
        return true;
    }
    for (size_t i = 0; i < sizeof(layer_names) / sizeof(layer_names[0]); i++) {
        if (strlen(layer_names[i].theirs) == (size_t)(last - rest) &&
            strncmp(rest, layer_names[i].theirs, (size_t)(last - rest)) == 0) {
            snprintf(out, capacity, "blk.%.*s.%s%s", (int)digits, number, layer_names[i].ours,
                     last);
            return true;
        }
    }
    return strstr(rest, "rotary_emb.inv_freq") == NULL; /* a table that we compute */
}
