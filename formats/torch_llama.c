/* SPDX-License-Identifier: MIT
 * Names and values of llamas as Meta and llama2.c save them. Facts: ModelArgs and the modules of
 * llama/model.py (meta-llama/llama, meta-llama/llama3); model.py and train.py of
 * karpathy/llama2.c. */
#include "formats/torch_llama.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/json_pull.h"
#include "formats/llama_tensors.h"

enum { PARAMS_BYTES = 1 << 20 };

/* ---- names ---- */

static const char embedding_name[] = "tok_embeddings.weight";
static const char compiled_prefix[] = "_orig_mod."; /* of torch.compile */

static bool text_is(const struct tnd_pickle_value *value, const char *text)
{
    return value->kind == TND_PICKLE_TEXT && value->n == strlen(text) &&
           memcmp(value->text, text, value->n) == 0;
}

static const struct tnd_pickle_value *look_up(const struct tnd_pickle_value *dict, const char *key)
{
    for (uint32_t i = 0; dict->kind == TND_PICKLE_DICT && i + 1 < dict->n; i += 2) {
        if (text_is(dict->items[i], key)) {
            return dict->items[i + 1];
        }
    }
    return NULL;
}

static bool has_embedding(const struct tnd_pickle_value *dict)
{
    char compiled[64];
    snprintf(compiled, sizeof(compiled), "%s%s", compiled_prefix, embedding_name);
    return look_up(dict, embedding_name) != NULL || look_up(dict, compiled) != NULL;
}

const struct tnd_pickle_value *tnd_torch_llama_weights(const struct tnd_pickle_value *root)
{
    const struct tnd_pickle_value *inner = tnd_torch_state_dict(root);
    return has_embedding(root) ? root : has_embedding(inner) ? inner : NULL;
}

const struct tnd_pickle_value *tnd_torch_state_dict(const struct tnd_pickle_value *root)
{
    static const char *const names[] = {"state_dict", "model_state_dict", "model"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct tnd_pickle_value *inner = look_up(root, names[i]);
        if (inner != NULL && inner->kind == TND_PICKLE_DICT) {
            return inner;
        }
    }
    return root;
}

bool tnd_torch_llama_name(const char *name, char *out, size_t capacity)
{
    static const char *const whole[][2] = {{embedding_name, "token_embd.weight"},
                                           {"norm.weight", "output_norm.weight"},
                                           {"output.weight", "output.weight"}};
    static const char *const layers[][2] = {
        {"attention.wq", "attn_q"},      {"attention.wk", "attn_k"},
        {"attention.wv", "attn_v"},      {"attention.wo", "attn_output"},
        {"feed_forward.w1", "ffn_gate"}, {"feed_forward.w2", "ffn_down"},
        {"feed_forward.w3", "ffn_up"},   {"attention_norm", "attn_norm"},
        {"ffn_norm", "ffn_norm"}};
    char part[64];
    int layer = 0;
    int end = 0;
    if (strncmp(name, compiled_prefix, sizeof(compiled_prefix) - 1) == 0) {
        name += sizeof(compiled_prefix) - 1;
    }
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        if (strcmp(name, whole[i][0]) == 0) {
            snprintf(out, capacity, "%s", whole[i][1]);
            return true;
        }
    }
    snprintf(out, capacity, "%s", name);
    if (sscanf(name, "layers.%9d.%63[a-z0-9_.]%n", &layer, part, &end) == 2 && name[end] == '\0') {
        for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
            const size_t n = strlen(layers[i][0]);
            if (strncmp(part, layers[i][0], n) == 0 && strcmp(part + n, ".weight") == 0) {
                snprintf(out, capacity, "blk.%d.%s.weight", layer, layers[i][1]);
                return true;
            }
        }
    }
    return strcmp(name, "rope.freqs") != 0 && strncmp(name, "freqs_", 6) != 0; /* we compute them */
}

/* ---- values ---- */

/* NaN: not said. */
struct params {
    double dim, n_layers, n_heads, n_kv_heads, head_dim, vocab_size, hidden_dim, norm_eps,
        rope_theta, max_seq_len, sliding_window, use_scaled_rope, rope_scaling_factor,
        rope_high_freq_factor;
};

static const struct {
    const char *name;
    size_t offset;
} members[] = {
#define MEMBER(name)                                                                               \
    {                                                                                              \
#name, offsetof(struct params, name)                                                       \
    }
    MEMBER(dim),
    MEMBER(n_layers),
    MEMBER(n_heads),
    MEMBER(n_kv_heads),
    MEMBER(head_dim),
    MEMBER(vocab_size),
    MEMBER(hidden_dim),
    MEMBER(norm_eps),
    MEMBER(rope_theta),
    MEMBER(max_seq_len),
    MEMBER(sliding_window),
    MEMBER(use_scaled_rope),
    MEMBER(rope_scaling_factor),
    MEMBER(rope_high_freq_factor),
#undef MEMBER
};
#define N_MEMBERS (sizeof(members) / sizeof(members[0]))

/* Members without effect on results: training, speed, and those implied by the tensors. */
static const char *const harmless[] = {"multiple_of", "ffn_dim_multiplier",  "max_batch_size",
                                       "dropout",     "model_parallel_size", "flash"};

static enum tandem_status set_member(struct params *params, const char *path, const char *name,
                                     bool is_number, double value, struct tandem_error *error)
{
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (strcmp(name, harmless[i]) == 0) {
            return TANDEM_OK;
        }
    }
    for (size_t i = 0; i < N_MEMBERS; i++) {
        if (strcmp(name, members[i].name) == 0 && is_number) {
            memcpy((char *)params + members[i].offset, &value, sizeof(value));
            return TANDEM_OK;
        }
    }
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, name, 0, 0,
                         "%s: member \"%.60s\" is not known to this version, or is no number, and "
                         "may change results",
                         tnd_short_name(path), name);
}

static enum tandem_status read_arguments(const struct tnd_pickle_value *arguments, const char *path,
                                         struct params *params, struct tandem_error *error)
{
    for (uint32_t i = 0; arguments->kind == TND_PICKLE_DICT && i + 1 < arguments->n; i += 2) {
        const struct tnd_pickle_value *key = arguments->items[i];
        const struct tnd_pickle_value *value = arguments->items[i + 1];
        const bool is_number =
            value->kind == TND_PICKLE_INTEGER || value->kind == TND_PICKLE_NUMBER;
        char name[64];
        if (key->kind == TND_PICKLE_TEXT && value->kind != TND_PICKLE_NONE) {
            snprintf(name, sizeof(name), "%.*s", (int)(key->n < 63 ? key->n : 63), key->text);
            TND_TRY(set_member(
                params, path, name, is_number,
                value->kind == TND_PICKLE_INTEGER ? (double)value->integer : value->number, error));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_json(struct tnd_json *json, struct params *params,
                                    struct tandem_error *error)
{
    char key[64];
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        const char c = tnd_json_peek(json);
        double number = 0.0;
        int64_t integer = 0;
        bool is_integer = false;
        bool is_true = false;
        if (c == '-' || (c >= '0' && c <= '9')) {
            TND_TRY(tnd_json_number(json, &number, &integer, &is_integer, error));
            TND_TRY(set_member(params, json->name, key, true, number, error));
        } else if (c == 't' || c == 'f') {
            TND_TRY(tnd_json_pull_bool(json, &is_true, error));
            TND_TRY(set_member(params, json->name, key, true, is_true ? 1.0 : 0.0, error));
        } else {
            TND_TRY(tnd_json_skip(json, error));
            TND_TRY(c == 'n' ? TANDEM_OK : set_member(params, json->name, key, false, 0.0, error));
        }
    }
    TND_TRY(walk.status);
    return tnd_json_end(json, error);
}

static enum tandem_status read_params(const char *path, struct params *params,
                                      struct tandem_error *error)
{
    char beside[PATH_MAX];
    struct tnd_file file;
    const char *slash = strrchr(path, '/');
    const int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    if (snprintf(beside, sizeof(beside), "%.*sparams.json", folder, path) >= PATH_MAX ||
        !tnd_file_exists(beside)) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_file_read(beside, PARAMS_BYTES, &file, error));
    const char *text = (const char *)file.data;
    struct tnd_json json = {text, text, text + file.bytes, beside};
    const enum tandem_status status = read_json(&json, params, error);
    tnd_file_close(&file);
    return status;
}

static bool is_whole(double value)
{
    return value >= -9e15 && value <= 9e15 && value == floor(value);
}

/* A value as a positive count; 0: it is none. */
static int64_t whole(double value)
{
    return is_whole(value) && value >= 1.0 && value <= 1e9 ? (int64_t)value : 0;
}

static int64_t count_layers(const tandem_source *source)
{
    struct tandem_source_tensor t;
    char name[64];
    int64_t n = 0;
    do {
        snprintf(name, sizeof(name), "blk.%lld.attn_norm.weight", (long long)n);
    } while (tandem_source_find(source, name, &t) && ++n > 0);
    return n;
}

/* Positions of the training, which Meta's files do not say: llama 3 (base 500000), 3.1 (scaled),
 * 1 (epsilon 1e-6), 2. */
static int64_t context_of(const struct params *p)
{
    const int64_t said = whole(p->max_seq_len);
    return said > 0                   ? said
           : p->use_scaled_rope > 0.0 ? 131072
           : p->rope_theta > 1e5      ? 8192
           : p->norm_eps > 5e-6       ? 4096
                                      : 2048;
}

/* Adds llama.`key` where `value` is said. Whether it can be, tandem_source_hparams judges. */
static enum tandem_status add_count(tandem_source *source, const char *path, const char *key,
                                    double value, struct tandem_error *error)
{
    char full[96];
    if (isnan(value)) {
        return TANDEM_OK;
    }
    if (!is_whole(value)) {
        return tnd_error_set(error, TANDEM_E_FORMAT, path, 0, 0,
                             "%s: %g for %s, expected a whole number", tnd_short_name(path), value,
                             key);
    }
    snprintf(full, sizeof(full), "llama.%s", key);
    return tnd_source_set_integer(source, full, (int64_t)value, error);
}

/* Checks a number that the tensors imply, too; 0 and less: not stated. */
static enum tandem_status check_same(const char *path, const char *what, double said, int64_t found,
                                     struct tandem_error *error)
{
    return whole(said) == 0 || whole(said) == found
               ? TANDEM_OK
               : tnd_error_set(error, TANDEM_E_FORMAT, path, found, whole(said),
                               "%s: says %s %lld, the tensors have %lld", tnd_short_name(path),
                               what, (long long)whole(said), (long long)found);
}

/* The numbers of apply_scaling in llama3/model.py, where params.json does not say others. */
static enum tandem_status add_scaling(const struct params *p, int64_t head_size, double base,
                                      tandem_source *source, struct tandem_error *error)
{
    const struct tnd_llama3_rope rope = {
        head_size,
        base,
        isnan(p->rope_scaling_factor) ? 8.0 : p->rope_scaling_factor,
        1.0,
        isnan(p->rope_high_freq_factor) ? 4.0 : p->rope_high_freq_factor,
        8192.0};
    return tnd_llama_add_divisors(source, &rope, error);
}

static enum tandem_status add_values(const struct params *p, const char *path,
                                     const struct tandem_source_tensor *embd, int64_t hidden,
                                     tandem_source *source, struct tandem_error *error)
{
    const int64_t heads = whole(p->n_heads);
    const int64_t head_size = whole(p->head_dim) > 0 ? whole(p->head_dim)
                              : heads > 0            ? embd->ne[0] / heads
                                                     : 0;
    const double base = isnan(p->rope_theta) ? 10000.0 : p->rope_theta;
    const struct {
        const char *key;
        double value;
    } counts[] = {
        {"embedding_length", (double)embd->ne[0]},
        {"vocab_size", (double)embd->ne[1]},
        {"feed_forward_length", hidden > 0 ? (double)hidden : NAN},
        {"block_count", (double)count_layers(source)},
        {"attention.head_count", p->n_heads},
        {"attention.head_count_kv", isnan(p->n_kv_heads) ? p->n_heads : p->n_kv_heads},
        {"attention.key_length", p->head_dim},
        {"attention.value_length", p->head_dim},
        {"attention.sliding_window", p->sliding_window},
        {"rope.dimension_count", head_size > 0 ? (double)head_size : NAN},
        {"context_length", (double)context_of(p)},
    };
    TND_TRY(check_same(path, "n_layers", p->n_layers, count_layers(source), error));
    TND_TRY(check_same(path, "vocab_size", p->vocab_size, embd->ne[1], error));
    TND_TRY(check_same(path, "hidden_dim", p->hidden_dim, hidden, error));
    TND_TRY(tnd_source_set_text(source, "general.architecture", "llama", error));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        TND_TRY(add_count(source, path, counts[i].key, counts[i].value, error));
    }
    TND_TRY(tnd_source_set_number(source, "llama.attention.layer_norm_rms_epsilon",
                                  isnan(p->norm_eps) ? 1e-5 : p->norm_eps, error));
    TND_TRY(tnd_source_set_number(source, "llama.rope.freq_base", base, error));
    return p->use_scaled_rope > 0.0 ? add_scaling(p, head_size, base, source, error) : TANDEM_OK;
}

enum tandem_status tnd_torch_llama_values(const struct tnd_pickle_value *root, const char *path,
                                          tandem_source *source, struct tandem_error *error)
{
    struct params params;
    struct tandem_source_tensor embd;
    struct tandem_source_tensor gate = {.ne = {0}};
    const struct tnd_pickle_value *arguments = look_up(root, "model_args");
    for (size_t i = 0; i < N_MEMBERS; i++) {
        const double not_said = NAN;
        memcpy((char *)&params + members[i].offset, &not_said, sizeof(not_said));
    }
    if (arguments != NULL) {
        TND_TRY(read_arguments(arguments, path, &params, error));
    }
    TND_TRY(read_params(path, &params, error));
    if (!tandem_source_find(source, "token_embd.weight", &embd)) {
        return TANDEM_OK;
    }
    if (whole(params.dim) > 0 && whole(params.dim) != embd.ne[0]) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, path, embd.ne[0], whole(params.dim),
                             "%s: its embeddings have %lld values of %lld: it is one of several "
                             "parts of a model, which this version does not put together",
                             tnd_short_name(path), (long long)embd.ne[0],
                             (long long)whole(params.dim));
    }
    (void)tandem_source_find(source, "blk.0.ffn_gate.weight", &gate);
    return add_values(&params, path, &embd, gate.ne[1], source, error);
}
