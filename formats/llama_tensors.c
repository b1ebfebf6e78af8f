/* SPDX-License-Identifier: MIT
 * Names, extents and values of Llama-like models, from the list in llama_tensors.h, and the check
 * that a source has them. */
#include "formats/llama_tensors.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"

struct role_row {
    const char *name;
    bool layered;
    size_t ne0; /* offsets of the extents in struct tnd_llama_dims */
    size_t ne1;
    enum tnd_llama_group group;
};

static const struct role_row role_rows[TND_LLAMA_ALL_ROLES] = {
#define ROLE_ROW(role, name, layered, ne0, ne1, group)                                             \
    [TND_LLAMA_##role] = {name, layered, offsetof(struct tnd_llama_dims, ne0),                     \
                          offsetof(struct tnd_llama_dims, ne1), TND_LLAMA_GROUP_##group},
    TND_LLAMA_TENSOR_LIST(ROLE_ROW) TND_LLAMA_EXTRA_LIST(ROLE_ROW)
#undef ROLE_ROW
};

static int64_t extent(const struct tnd_llama_dims *dims, size_t offset)
{
    return *(const int64_t *)((const char *)dims + offset);
}

int64_t tnd_llama_role_count(enum tnd_llama_role role, const struct tnd_llama_dims *dims)
{
    const enum tnd_llama_group group = role_rows[role].group;
    const uint64_t of_all = TND_HAS(ALL) | TND_HAS(OUTPUT) | TND_HAS(ATTN_NORM) |
                            TND_HAS(FFN_NORM) | TND_HAS(QKV) | TND_HAS(FINAL_NORM);
    const uint64_t made =
        of_all | (dims->experts > 0 ? TND_HAS(ROUTER) | TND_HAS(EXPERTS)
                                    : TND_HAS(FFN) | TND_HAS(FFN_W1) | TND_HAS(FFN_UP));
    const bool is_made = (made >> group & 1) != 0;
    return !is_made ? 0 : role_rows[role].layered ? dims->layers : 1;
}

int tnd_llama_role_extents(enum tnd_llama_role role, const struct tnd_llama_dims *dims,
                           int64_t ne[3])
{
    const bool has_experts = role_rows[role].group == TND_LLAMA_GROUP_EXPERTS;
    const bool has_heads = role_rows[role].group == TND_LLAMA_GROUP_LATENT_HEADS;
    ne[0] = extent(dims, role_rows[role].ne0);
    ne[1] = extent(dims, role_rows[role].ne1);
    ne[2] = has_experts ? dims->experts : has_heads ? dims->heads : 1;
    if (has_experts || has_heads) {
        return 3;
    }
    return role_rows[role].ne1 == offsetof(struct tnd_llama_dims, one) ? 1 : 2;
}

static const char *name_of(enum tnd_llama_role role, int64_t layer, char out[TANDEM_MAX_NAME])
{
    if (role_rows[role].layered) {
        snprintf(out, TANDEM_MAX_NAME, "blk.%lld.%s", (long long)layer, role_rows[role].name);
    } else {
        snprintf(out, TANDEM_MAX_NAME, "%s", role_rows[role].name);
    }
    return out;
}

enum tandem_status tnd_llama_add(tandem_source *source, enum tnd_llama_role role, int64_t layer,
                                 const struct tnd_llama_dims *dims, enum tandem_type type,
                                 const void *data, size_t bytes, struct tandem_error *error)
{
    char name[TANDEM_MAX_NAME];
    int64_t ne[3];
    const int n_dims = tnd_llama_role_extents(role, dims, ne);
    return tnd_source_add(source, name_of(role, layer, name), type, n_dims, ne, data, bytes, error);
}

enum tandem_status tnd_llama_set_values(tandem_source *source, const struct tnd_llama_dims *dims,
                                        struct tandem_error *error)
{
    const struct {
        const char *key;
        int64_t value;
    } integers[] = {
        {"llama.embedding_length", dims->dim},
        {"llama.block_count", dims->layers},
        {"llama.feed_forward_length", dims->hidden},
        {"llama.attention.head_count", dims->heads},
        {"llama.attention.head_count_kv", dims->kv_heads},
        {"llama.rope.dimension_count", dims->head_size},
        {"llama.context_length", dims->context},
        {"llama.vocab_size", dims->vocabulary},
        {"llama.expert_count", dims->experts},
        {"llama.expert_used_count", dims->experts_used},
    };
    const size_t n = sizeof(integers) / sizeof(integers[0]) - (dims->experts > 0 ? 0 : 2);
    TND_TRY(tnd_source_set_text(source, "general.architecture", "llama", error));
    for (size_t i = 0; i < n; i++) {
        TND_TRY(tnd_source_set_integer(source, integers[i].key, integers[i].value, error));
    }
    if (dims->heads * dims->head_size != dims->dim) {
        TND_TRY(
            tnd_source_set_integer(source, "llama.attention.key_length", dims->head_size, error));
        TND_TRY(
            tnd_source_set_integer(source, "llama.attention.value_length", dims->head_size, error));
    }
    TND_TRY(tnd_source_set_number(source, "llama.attention.layer_norm_rms_epsilon", 1e-5, error));
    return tnd_source_set_number(source, "llama.rope.freq_base", 10000.0, error);
}

static bool can_be(const struct tnd_llama3_rope *rope)
{
    return rope->factor >= 1e-3 && rope->factor <= 1e6 && rope->base > 0.0 &&
           rope->head_size >= 2 && rope->head_size <= 65536 && rope->head_size % 2 == 0 &&
           rope->low > 0.0 && rope->high > rope->low && rope->high <= 1e6 && rope->original >= 1.0;
}

enum tandem_status tnd_llama_add_divisors(tandem_source *source, const struct tnd_llama3_rope *rope,
                                          struct tandem_error *error)
{
    const char *name = "rope_freqs.weight";
    const int64_t n = rope->head_size / 2;
    const size_t bytes = (size_t)n * sizeof(float);
    void *memory = NULL;
    if (!can_be(rope)) {
        return tnd_error_set(error, TANDEM_E_FORMAT, name, 0, 0,
                             "scaling of rope as in llama 3: factor %g, low %g, high %g, original "
                             "context %g, base %g and a head size of %lld do not fit together, or "
                             "are not all said",
                             rope->factor, rope->low, rope->high, rope->original, rope->base,
                             (long long)rope->head_size);
    }
    TND_TRY(tnd_source_alloc(source, name, bytes, 0, &memory, error));
    const struct tandem_hparams h = {.n_rot = rope->head_size,
                                     .freq_base = (float)rope->base,
                                     .rope_scaling = TANDEM_ROPE_LLAMA3,
                                     .rope_factor = rope->factor,
                                     .rope_low = rope->low,
                                     .rope_high = rope->high,
                                     .rope_original = rope->original};
    tandem_hparams_divisors(&h, memory);
    return tnd_source_add(source, name, TANDEM_TYPE_F32, 1, &n, memory, bytes, error);
}

static const char *const longrope_names[] = {"rope_factors_short.weight",
                                             "rope_factors_long.weight"};

enum tandem_status tnd_llama_add_longrope(tandem_source *source, const float *short_factors,
                                          const float *long_factors, int64_t n,
                                          struct tandem_error *error)
{
    const size_t bytes = (size_t)n * sizeof(float);
    for (int i = 0; i < 2; i++) {
        void *memory = NULL;
        TND_TRY(tnd_source_alloc(source, longrope_names[i], bytes, 0, &memory, error));
        memcpy(memory, i == 0 ? short_factors : long_factors, bytes);
        TND_TRY(tnd_source_add(source, longrope_names[i], TANDEM_TYPE_F32, 1, &n, memory, bytes,
                               error));
    }
    return TANDEM_OK;
}

/* ---- what a source has ---- */

static bool has_experts(const struct tandem_hparams *h, int64_t layer)
{
    return h->experts > 0 && layer >= h->dense_layers;
}

/* Whether a layer needs, may have or must lack a group. Prediction layers have the last layer's
 * groups and more; the first layer may lack some. */
static enum tnd_llama_promise promise_of(const struct tandem_hparams *h, int64_t layer, int group,
                                         enum tnd_llama_promise promises[2][TND_LLAMA_GROUPS])
{
    const bool is_ahead = layer >= h->layers;
    return group == TND_LLAMA_GROUP_NEXTN       ? is_ahead ? TND_LLAMA_NEEDED : TND_LLAMA_ABSENT
           : group == TND_LLAMA_GROUP_NEXTN_OWN ? is_ahead ? TND_LLAMA_OPTIONAL : TND_LLAMA_ABSENT
           : group == TND_LLAMA_GROUP_ATTN_NORM && layer == 0 && h->is_first_bare
               ? TND_LLAMA_ABSENT
               : promises[has_experts(h, layer)][group];
}

/* Role of a tensor name among those that the model may have; TND_LLAMA_ALL_ROLES: none. */
static enum tnd_llama_role role_of(const char *name, int64_t layers, const struct tandem_hparams *h,
                                   enum tnd_llama_promise promises[2][TND_LLAMA_GROUPS])
{
    char wanted[TANDEM_MAX_NAME];
    long long layer = 0;
    int rest = 0;
    if (sscanf(name, "blk.%9lld.%n", &layer, &rest) != 1 || rest == 0 || layer < 0) {
        layer = 0;
    }
    for (int r = 0; r < TND_LLAMA_ALL_ROLES && layer < layers; r++) {
        if (promise_of(h, layer, role_rows[r].group, promises) != TND_LLAMA_ABSENT &&
            strcmp(name + (role_rows[r].layered ? rest : 0), role_rows[r].name) == 0 &&
            strcmp(name, name_of((enum tnd_llama_role)r, layer, wanted)) == 0) {
            return (enum tnd_llama_role)r;
        }
    }
    return TND_LLAMA_ALL_ROLES;
}

static enum tandem_status check_extents(const struct tandem_source_tensor *t, bool is_vector,
                                        bool is_float, const int64_t ne[3],
                                        struct tandem_error *error)
{
    if (t->ne[0] != ne[0] || t->ne[1] != ne[1] || t->ne[3] != 1 || (is_vector && t->n_dims != 1)) {
        return tnd_error_set(error, TANDEM_E_SHAPE, t->name, t->ne[0], ne[0],
                             "llama: %.80s is %lld x %lld, expected %lld x %lld", t->name,
                             (long long)t->ne[0], (long long)t->ne[1], (long long)ne[0],
                             (long long)ne[1]);
    }
    if (t->ne[2] != ne[2]) {
        return tnd_error_set(error, TANDEM_E_SHAPE, t->name, t->ne[2], ne[2],
                             "llama: %.80s has %lld matrices, expected %lld", t->name,
                             (long long)t->ne[2], (long long)ne[2]);
    }
    if (is_float ? t->type != TANDEM_TYPE_F32 : t->type == TANDEM_TYPE_I32) {
        return tnd_error_set(error, TANDEM_E_TYPE, t->name, t->type, 0,
                             "llama: %.80s is of type %s, expected %s", t->name,
                             tandem_type_name(t->type),
                             is_float ? "f32"
                                      : "a type of weights (whole numbers are weights that were "
                                        "quantised in a way that this version does not know)");
    }
    return TANDEM_OK;
}

/* The quantisation method of which a tensor name is typical; "": none. Facts: the checkpoints that
 * AutoGPTQ, AutoAWQ, bitsandbytes and compressed-tensors write. */
static const char *quantised_by(const char *name)
{
    static const char *const rows[][2] = {
        {".qweight", " (weights quantised by GPTQ or AWQ)"},
        {".qzeros", " (weights quantised by GPTQ or AWQ)"},
        {".scales", " (weights quantised by GPTQ or AWQ)"},
        {".g_idx", " (weights quantised by GPTQ)"},
        {".SCB", " (weights quantised by bitsandbytes, 8 bits)"},
        {".weight_format", " (weights quantised by bitsandbytes, 8 bits)"},
        {".absmax", " (weights quantised by bitsandbytes, 4 bits)"},
        {".quant_map", " (weights quantised by bitsandbytes, 4 bits)"},
        {".quant_state.", " (weights quantised by bitsandbytes, 4 bits)"},
        {".weight_packed", " (weights quantised, compressed-tensors)"},
        {"_scale_inv", " (weights quantised, FP8)"},
        {"_scale", " (weights quantised, FP8 or int8)"},
        {"_zero_point", " (weights quantised, int8)"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strstr(name, rows[i][0]) != NULL) {
            return rows[i][1];
        }
    }
    return "";
}

static enum tandem_status check_divisors(const struct tandem_source_tensor *t, int64_t n,
                                         struct tandem_error *error)
{
    TND_TRY(check_extents(t, true, true, (const int64_t[]){n, 1, 1}, error));
    for (int64_t i = 0; i < n; i++) {
        float factor;
        memcpy(&factor, (const char *)t->data + (size_t)i * sizeof(factor), sizeof(factor));
        if (!(factor > 0.0f) || isinf(factor)) {
            return tnd_error_set(error, TANDEM_E_FORMAT, t->name, i, n,
                                 "llama: value %lld of %s is %g, expected a finite number above 0",
                                 (long long)i, t->name, (double)factor);
        }
    }
    return TANDEM_OK;
}

static bool is_longrope_name(const char *name)
{
    return strcmp(name, longrope_names[0]) == 0 || strcmp(name, longrope_names[1]) == 0;
}

static enum tandem_status check_tensor(const struct tandem_source_tensor *t,
                                       const struct tnd_llama_dims *dims,
                                       const struct tandem_hparams *h,
                                       enum tnd_llama_promise promises[2][TND_LLAMA_GROUPS],
                                       struct tandem_error *error)
{
    const bool is_longrope = h->rope_scaling == TANDEM_ROPE_LONGROPE;
    if (is_longrope ? is_longrope_name(t->name) : strcmp(t->name, "rope_freqs.weight") == 0) {
        return check_divisors(t, h->n_rot / 2, error);
    }
    const enum tnd_llama_role role = role_of(t->name, dims->layers + dims->nextn, h, promises);
    if (role == TND_LLAMA_ALL_ROLES) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, t->name, 0, 0,
                             "llama: the model has a tensor %.80s%s, which this version does not "
                             "compute with",
                             t->name, quantised_by(t->name));
    }
    int64_t ne[3];
    const int n_dims = tnd_llama_role_extents(role, dims, ne);
    /* in Hugging Face's files the gate of a shared expert is a matrix of one row */
    const bool is_vector = n_dims == 1 && role != TND_LLAMA_FFN_GATE_INP_SHEXP;
    const uint64_t floats = TND_HAS(HEAD_NORMS) | TND_HAS(EXPERT_BIAS);
    const bool is_float = is_vector || (floats >> role_rows[role].group & 1) != 0;
    return check_extents(t, is_vector, is_float, ne, error);
}

enum tandem_status tnd_llama_check_tensors(const tandem_source *source,
                                           const struct tnd_llama_dims *dims,
                                           const struct tandem_hparams *h,
                                           enum tnd_llama_promise promises[2][TND_LLAMA_GROUPS],
                                           struct tandem_error *error)
{
    struct tandem_source_tensor t;
    char name[TANDEM_MAX_NAME];
    const int64_t layers = dims->layers + dims->nextn;
    for (int64_t layer = 0; layer < layers; layer++) { /* ends at the first layer missing */
        for (int r = 0; r < TND_LLAMA_ALL_ROLES; r++) {
            if (promise_of(h, layer, role_rows[r].group, promises) == TND_LLAMA_NEEDED &&
                (layer == 0 || role_rows[r].layered) &&
                !tandem_source_find(source, name_of((enum tnd_llama_role)r, layer, name), &t)) {
                return tnd_error_set(error, TANDEM_E_NOT_FOUND, name, 0, 0,
                                     "llama: the model has no tensor %s", name);
            }
        }
    }
    for (int i = 0; h->rope_scaling == TANDEM_ROPE_LONGROPE && i < 2; i++) {
        if (!tandem_source_find(source, longrope_names[i], &t)) {
            return tnd_error_set(error, TANDEM_E_NOT_FOUND, longrope_names[i], 0, 0,
                                 "llama: the model has no tensor %s", longrope_names[i]);
        }
    }
    for (int i = 0; tandem_source_tensor_at(source, i, &t); i++) {
        TND_TRY(check_tensor(&t, dims, h, promises, error));
    }
    return TANDEM_OK;
}
