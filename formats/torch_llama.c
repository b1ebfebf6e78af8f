/* SPDX-License-Identifier: MIT
 * Names and values of llamas as Meta and llama2.c save them. Facts: ModelArgs and the modules of
 * llama/model.py (meta-llama/llama, meta-llama/llama3); model.py and train.py of
 * karpathy/llama2.c. */
#include "formats/torch_llama.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "formats/json_pull.h"
#include "formats/safetensors.h"

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
    const struct tnd_pickle_value *model = look_up(root, "model");
    return has_embedding(root) ? root : model != NULL && has_embedding(model) ? model : NULL;
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

/* 0: not said. */
struct params {
    double dim, n_heads, n_kv_heads, norm_eps, rope_theta, max_seq_len, use_scaled_rope;
};

static const struct {
    const char *name;
    size_t offset;
} members[] = {
#define MEMBER(name)                                                                               \
    {                                                                                              \
#name, offsetof(struct params, name)                                                       \
    }
    MEMBER(dim),        MEMBER(n_heads),     MEMBER(n_kv_heads),      MEMBER(norm_eps),
    MEMBER(rope_theta), MEMBER(max_seq_len), MEMBER(use_scaled_rope),
#undef MEMBER
};
#define N_MEMBERS (sizeof(members) / sizeof(members[0]))

static void set_member(struct params *params, const char *name, double value)
{
    for (size_t i = 0; i < N_MEMBERS; i++) {
        if (strcmp(name, members[i].name) == 0) {
            memcpy((char *)params + members[i].offset, &value, sizeof(value));
        }
    }
}

static void read_arguments(const struct tnd_pickle_value *arguments, struct params *params)
{
    for (size_t i = 0; i < N_MEMBERS; i++) {
        const struct tnd_pickle_value *value = look_up(arguments, members[i].name);
        if (value != NULL && value->kind == TND_PICKLE_INTEGER) {
            set_member(params, members[i].name, (double)value->integer);
        } else if (value != NULL && value->kind == TND_PICKLE_NUMBER) {
            set_member(params, members[i].name, value->number);
        }
    }
}

static enum tandem_status read_json(struct tnd_json *json, struct params *params,
                                    struct tandem_error *error)
{
    char key[64];
    bool more = false;
    TND_TRY(tnd_json_take(json, '{', error));
    for (int64_t i = 0;; i++) {
        TND_TRY(tnd_json_more(json, '}', i, &more, error));
        if (!more) {
            return tnd_json_end(json, error);
        }
        TND_TRY(tnd_json_key(json, key, sizeof(key), error));
        const char c = tnd_json_peek(json);
        double number = 0.0;
        int64_t integer = 0;
        bool is_integer = false;
        bool is_true = false;
        if (c == '-' || (c >= '0' && c <= '9')) {
            TND_TRY(tnd_json_number(json, &number, &integer, &is_integer, error));
            set_member(params, key, number);
        } else if (c == 't' || c == 'f') {
            TND_TRY(tnd_json_pull_bool(json, &is_true, error));
            set_member(params, key, is_true ? 1.0 : 0.0);
        } else {
            TND_TRY(tnd_json_skip(json, error));
        }
    }
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

/* A count that a value may be: 0 when it is none. */
static int64_t whole(double value)
{
    return value >= 1.0 && value <= 1e9 ? (int64_t)value : 0;
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

static enum tandem_status add_values(const struct params *p,
                                     const struct tandem_source_tensor *embd, int64_t hidden,
                                     tandem_source *source, struct tandem_error *error)
{
    const int64_t heads = whole(p->n_heads);
    const int64_t kv_heads = whole(p->n_kv_heads);
    const struct {
        const char *key;
        int64_t value; /* 0: not known */
    } integers[] = {
        {"llama.embedding_length", embd->ne[0]},
        {"llama.vocab_size", embd->ne[1]},
        {"llama.feed_forward_length", hidden},
        {"llama.block_count", count_layers(source)},
        {"llama.attention.head_count", heads},
        {"llama.attention.head_count_kv", kv_heads > 0 ? kv_heads : heads},
        {"llama.rope.dimension_count", heads > 0 ? embd->ne[0] / heads : 0},
        {"llama.context_length", context_of(p)},
    };
    TND_TRY(tnd_source_set_text(source, "general.architecture", "llama", error));
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++) {
        if (integers[i].value > 0) {
            TND_TRY(tnd_source_set_integer(source, integers[i].key, integers[i].value, error));
        }
    }
    TND_TRY(tnd_source_set_number(source, "llama.attention.layer_norm_rms_epsilon",
                                  p->norm_eps > 0.0 ? p->norm_eps : 1e-5, error));
    TND_TRY(tnd_source_set_number(source, "llama.rope.freq_base",
                                  p->rope_theta > 0.0 ? p->rope_theta : 10000.0, error));
    if (p->use_scaled_rope > 0.0) { /* the numbers of apply_scaling in llama3/model.py */
        const struct tnd_llama3_rope rope = {heads > 0 ? embd->ne[0] / heads : 0,
                                             p->rope_theta > 0.0 ? p->rope_theta : 10000.0,
                                             8.0,
                                             1.0,
                                             4.0,
                                             8192.0};
        return tnd_safetensors_add_divisors(source, &rope, error);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_torch_llama_values(const struct tnd_pickle_value *root, const char *path,
                                          tandem_source *source, struct tandem_error *error)
{
    struct params params = {0};
    struct tandem_source_tensor embd;
    struct tandem_source_tensor gate = {.ne = {0}};
    const struct tnd_pickle_value *arguments = look_up(root, "model_args");
    if (arguments != NULL) {
        read_arguments(arguments, &params);
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
    return add_values(&params, &embd, gate.ne[1], source, error);
}
