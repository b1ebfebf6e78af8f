/* SPDX-License-Identifier: MIT
 * Hyper-parameters of Llama-like models, from a source's values (keys of the GGUF convention, which
 * start with the architecture's name) or from a shape. All checks of them are here and in
 * llama_tensors.c; every use and conversion of a source as a model passes them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "formats/gguf.h"
#include "formats/llama-lists.h"
#include "formats/llama_tensors.h"

#define MAX_HEAD_SIZE 65536
#define MAX_LATENT    65536

/* A source and the architecture with which its keys start. */
struct reader {
    const tandem_source *source;
    const struct tnd_llama_architecture *architecture;
    char key[96];    /* the key read last */
    int64_t own_key; /* latent attention: unrotated values per head's key */
};

static const char *key_of(struct reader *reader, const char *name)
{
    snprintf(reader->key, sizeof(reader->key), "%s.%s", reader->architecture->name, name);
    return reader->key;
}

/* ---- the checks ---- */

static enum tandem_status check_count(const char *name, enum tandem_status status, const char *what,
                                      int64_t value, struct tandem_error *error)
{
    if (value >= 1 && value <= INT32_MAX) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, status, what, value, INT32_MAX,
                         "%s: %s is %lld, expected 1 to 2147483647", name, what, (long long)value);
}

/* Checks that heads divide evenly and that RoPE has whole pairs. Fills q_dim and kv_dim. */
static enum tandem_status check_heads(const char *name, enum tandem_status status,
                                      struct tandem_hparams *h, struct tandem_error *error)
{
    if (h->heads % h->kv_heads != 0) {
        return tnd_error_set(error, status, name, h->kv_heads, h->heads,
                             "%s: number of KV heads is %lld, expected a divisor of the number of "
                             "heads, which is %lld",
                             name, (long long)h->kv_heads, (long long)h->heads);
    }
    if (h->head_size % 2 != 0 || h->head_size > MAX_HEAD_SIZE) {
        return tnd_error_set(error, status, name, h->head_size, MAX_HEAD_SIZE,
                             "%s: head size is %lld, expected an even number of at most %d", name,
                             (long long)h->head_size, MAX_HEAD_SIZE);
    }
    if (h->n_rot % 2 != 0 || h->n_rot > h->head_size) {
        return tnd_error_set(error, status, name, h->n_rot, h->head_size,
                             "%s: %lld values of a head are rotated, expected an even number of at "
                             "most the head size %lld",
                             name, (long long)h->n_rot, (long long)h->head_size);
    }
    if (!tnd_mul_i64(h->heads, h->head_size, &h->q_dim) || h->q_dim > INT32_MAX) {
        return tnd_error_set(error, status, name, h->heads, h->head_size,
                             "%s: %lld heads of %lld values are more than 2147483647", name,
                             (long long)h->heads, (long long)h->head_size);
    }
    h->kv_dim = h->kv_heads * h->head_size; /* no more than q_dim */
    return TANDEM_OK;
}

static struct tnd_llama_dims dims_of(const struct tandem_hparams *h)
{
    return (struct tnd_llama_dims){.dim = h->dim,
                                   .q_dim = h->kv_latent > 0 ? h->heads * h->value_size : h->q_dim,
                                   .kv_dim = h->kv_dim,
                                   .hidden = h->hidden,
                                   .vocabulary = h->vocabulary,
                                   .one = 1,
                                   .qkv_dim = h->q_dim + 2 * h->kv_dim,
                                   .hidden_2 = 2 * h->hidden,
                                   .dim_2 = 2 * h->dim,
                                   .nextn = h->nextn_layers,
                                   .layers = h->layers,
                                   .heads = h->heads,
                                   .kv_heads = h->kv_heads,
                                   .context = h->context,
                                   .head_size = h->head_size,
                                   .experts = h->experts,
                                   .experts_used = h->experts_used,
                                   .expert_hidden = h->expert_hidden,
                                   .shared_hidden = h->shared_hidden,
                                   .token_types = h->token_types,
                                   .labels = h->labels,
                                   .q_latent = h->q_latent,
                                   .kv_latent = h->kv_latent,
                                   .value_size = h->value_size};
}

static enum tandem_status check_used(const char *name, enum tandem_status status, int64_t used,
                                     int64_t experts, struct tandem_error *error)
{
    return used >= 1 && used <= experts ? TANDEM_OK
                                        : tnd_error_set(error, status, name, used, experts,
                                                        "%s: a token uses %lld of %lld experts",
                                                        name, (long long)used, (long long)experts);
}

enum tandem_status tnd_llama_dims_from(const struct tandem_llama_shape *shape, const char *name,
                                       enum tandem_status status, struct tnd_llama_dims *out_dims,
                                       struct tandem_error *error)
{
    struct tandem_hparams h = {.dim = shape->dim,
                               .hidden = shape->hidden,
                               .layers = shape->layers,
                               .heads = shape->heads,
                               .kv_heads = shape->kv_heads,
                               .vocabulary = shape->vocabulary,
                               .context = shape->context,
                               .experts = shape->experts,
                               .experts_used = shape->experts_used,
                               .expert_hidden = shape->experts > 0 ? shape->hidden : 0};
    TND_TRY(check_count(name, status, "dim", h.dim, error));
    TND_TRY(check_count(name, status, "hidden dim", h.hidden, error));
    TND_TRY(check_count(name, status, "number of layers", h.layers, error));
    TND_TRY(check_count(name, status, "number of heads", h.heads, error));
    TND_TRY(check_count(name, status, "number of KV heads", h.kv_heads, error));
    TND_TRY(check_count(name, status, "vocabulary", h.vocabulary, error));
    TND_TRY(check_count(name, status, "context", h.context, error));
    if (shape->head_size == 0 && h.dim % h.heads != 0) {
        return tnd_error_set(error, status, name, h.heads, h.dim,
                             "%s: number of heads is %lld, expected a divisor of dim, which is "
                             "%lld",
                             name, (long long)h.heads, (long long)h.dim);
    }
    if (h.experts != 0) {
        TND_TRY(check_count(name, status, "number of experts", h.experts, error));
        TND_TRY(check_used(name, status, h.experts_used, h.experts, error));
    }
    h.head_size = shape->head_size != 0 ? shape->head_size : h.dim / h.heads;
    TND_TRY(check_count(name, status, "head size", h.head_size, error));
    h.n_rot = h.head_size;
    TND_TRY(check_heads(name, status, &h, error));
    *out_dims = dims_of(&h);
    return TANDEM_OK;
}

/* ---- reading ---- */

/* Reads a required integer, 1 to 2^31 - 1. */
static enum tandem_status read_count(struct reader *reader, const char *name, int64_t *out,
                                     struct tandem_error *error)
{
    int64_t value;
    const char *key = key_of(reader, name);
    if (!tandem_source_integer(reader->source, key, &value)) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, key, 0, 0, "llama: the model has no %s",
                             key);
    }
    TND_TRY(check_count("llama", TANDEM_E_FORMAT, key, value, error));
    *out = value;
    return TANDEM_OK;
}

/* As read_count, with a default for files without the key. */
static enum tandem_status read_count_or(struct reader *reader, const char *name, int64_t otherwise,
                                        int64_t *out, struct tandem_error *error)
{
    const char *key = key_of(reader, name);
    *out = otherwise;
    (void)tandem_source_integer(reader->source, key, out);
    return check_count("llama", TANDEM_E_FORMAT, key, *out, error);
}

/* Checks the value of the key read last. */
static enum tandem_status check_range(const struct reader *reader, int64_t value, int64_t low,
                                      int64_t high, struct tandem_error *error)
{
    return value >= low && value <= high
               ? TANDEM_OK
               : tnd_error_set(error, TANDEM_E_FORMAT, reader->key, value, high,
                               "llama: %s is %lld, expected %lld to %lld", reader->key,
                               (long long)value, (long long)low, (long long)high);
}

static double read_number(struct reader *reader, const char *name, double otherwise)
{
    double value = otherwise;
    int64_t whole;
    const char *key = key_of(reader, name);
    if (!tandem_source_number(reader->source, key, &value) &&
        tandem_source_integer(reader->source, key, &whole)) {
        value = (double)whole;
    }
    return value;
}

static enum tandem_status refuse_number(const char *key, double value, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, key, 0, 0,
                         "llama: key %.80s is %g, which this version does not compute", key, value);
}

static enum tandem_status find_architecture(struct reader *reader, struct tandem_error *error)
{
    const char *name = "not said: GGUF files have general.architecture, others need their "
                       "config.json beside them";
    if (tandem_source_text(reader->source, "general.architecture", &name)) {
        reader->architecture = tnd_llama_architecture_of(name);
    }
    return reader->architecture != NULL
               ? TANDEM_OK
               : tnd_error_set(
                     error, TANDEM_E_FORMAT, "general.architecture", 0, 0,
                     "llama: the model's architecture is %.100s; expected one of those in "
                     "docs/architectures.md, such as llama, qwen3 or gemma3",
                     name);
}

/* Reads latent attention: a key consists of n_rot rotated values that all heads share, and the
 * latent vector; the heads' projections of it are applied to queries and outputs instead
 * (arXiv:2405.04434, section 2.1). */
static enum tandem_status read_latent(struct reader *reader, struct tandem_hparams *h,
                                      int64_t *out_own_key, struct tandem_error *error)
{
    int64_t said = 1, key = 0, width = 0;
    TND_TRY(read_count(reader, "attention.head_count", &h->heads, error));
    TND_TRY(read_count(reader, "attention.kv_lora_rank", &h->kv_latent, error));
    (void)tandem_source_integer(reader->source, key_of(reader, "attention.q_lora_rank"),
                                &h->q_latent);
    TND_TRY(check_range(reader, h->q_latent, 0, MAX_LATENT, error));
    TND_TRY(read_count(reader, "rope.dimension_count", &h->n_rot, error));
    TND_TRY(check_range(reader, h->n_rot, 2, MAX_HEAD_SIZE / 2, error));
    TND_TRY(read_count(reader, "attention.key_length_mla", &key, error));
    TND_TRY(check_range(reader, key, h->n_rot + 1, MAX_HEAD_SIZE, error));
    TND_TRY(read_count(reader, "attention.value_length_mla", &h->value_size, error));
    TND_TRY(check_range(reader, h->value_size, 1, MAX_HEAD_SIZE, error));
    TND_TRY(read_count_or(reader, "attention.head_count_kv", 1, &said, error));
    TND_TRY(check_range(reader, said, 1, 1, error));
    width = h->kv_latent + h->n_rot;
    TND_TRY(read_count_or(reader, "attention.key_length", width, &said, error));
    TND_TRY(check_range(reader, said, width, width, error));
    TND_TRY(read_count_or(reader, "attention.value_length", h->kv_latent, &said, error));
    TND_TRY(check_range(reader, said, h->kv_latent, h->kv_latent, error));
    h->kv_heads = 1;
    h->head_size = width;
    *out_own_key = key - h->n_rot;
    return check_heads("llama", TANDEM_E_FORMAT, h, error);
}

static enum tandem_status read_heads(struct reader *reader, struct tandem_hparams *h,
                                     struct tandem_error *error)
{
    TND_TRY(read_count(reader, "attention.head_count", &h->heads, error));
    TND_TRY(read_count_or(reader, "attention.head_count_kv", h->heads, &h->kv_heads, error));
    if (h->dim % h->heads != 0) { /* then dim / heads is no default */
        TND_TRY(read_count(reader, "attention.key_length", &h->head_size, error));
    } else {
        TND_TRY(
            read_count_or(reader, "attention.key_length", h->dim / h->heads, &h->head_size, error));
    }
    TND_TRY(read_count_or(reader, "rope.dimension_count", h->head_size, &h->n_rot, error));
    return check_heads("llama", TANDEM_E_FORMAT, h, error);
}

/* Reads groups of experts; 0 or 1 groups: experts are chosen among all. */
static enum tandem_status read_groups(struct reader *reader, struct tandem_hparams *h,
                                      struct tandem_error *error)
{
    int64_t groups = 0, used = 0;
    (void)tandem_source_integer(reader->source, key_of(reader, "expert_group_used_count"), &used);
    (void)tandem_source_integer(reader->source, key_of(reader, "expert_group_count"), &groups);
    if (groups == 0 || (groups == 1 && used <= 1)) {
        return TANDEM_OK;
    }
    const int64_t least = h->router == TANDEM_ROUTER_SIGMOID ? 2 : 1; /* a score needs two */
    TND_TRY(check_range(reader, groups, 1, h->experts / least, error));
    if (h->experts % groups != 0 || used < 1 || used > groups ||
        h->experts / groups * used < h->experts_used) {
        return tnd_error_set(error, TANDEM_E_FORMAT, reader->key, groups, used,
                             "llama: %s is %lld, of which a token takes %lld: they do not fit "
                             "together with %lld experts, of which it takes %lld",
                             reader->key, (long long)groups, (long long)used, (long long)h->experts,
                             (long long)h->experts_used);
    }
    h->expert_groups = groups;
    h->expert_groups_used = used;
    return TANDEM_OK;
}

/* Reads how a router weighs experts, and which layers have one. */
static enum tandem_status read_router(struct reader *reader, struct tandem_hparams *h,
                                      struct tandem_error *error)
{
    const struct tnd_llama_architecture *a = reader->architecture;
    int64_t gating = a->router == TANDEM_ROUTER_SIGMOID ? 2 : 1; /* llama.cpp's numbers */
    int64_t shared = 1;
    h->router = a->router;
    h->expert_scale = (float)read_number(reader, "expert_weights_scale", 1.0);
    if (!isfinite(h->expert_scale)) {
        return refuse_number(reader->key, (double)h->expert_scale, error);
    }
    (void)tandem_source_integer(reader->source, key_of(reader, "leading_dense_block_count"),
                                &h->dense_layers);
    if (h->dense_layers < 0 || h->dense_layers > h->layers) {
        return tnd_error_set(error, TANDEM_E_FORMAT, reader->key, h->dense_layers, h->layers,
                             "llama: %s is %lld of %lld layers", reader->key,
                             (long long)h->dense_layers, (long long)h->layers);
    }
    (void)tandem_source_integer(reader->source, key_of(reader, "expert_gating_func"), &gating);
    if (a->may_have_sigmoid && gating == 2) {
        h->router = TANDEM_ROUTER_SIGMOID;
    }
    if (gating != (h->router == TANDEM_ROUTER_SIGMOID ? 2 : 1)) {
        return refuse_number(reader->key, (double)gating, error);
    }
    if (a->is_latent) {
        TND_TRY(read_groups(reader, h, error));
    }
    if ((a->has & TND_HAS(SHARED_SHARE)) == 0 && h->shared_hidden > 0) { /* joined into one */
        (void)tandem_source_integer(reader->source, key_of(reader, "expert_shared_count"), &shared);
        if (shared < 0 || shared > 1024 || h->expert_hidden > INT32_MAX / 1024) {
            return refuse_number(reader->key, (double)shared, error);
        }
        h->shared_hidden = shared * h->expert_hidden;
    }
    return TANDEM_OK;
}

/* Reads the number of experts and their width. Older Qwen files without the key of the width have
 * feed_forward_length / expert_used_count. */
static enum tandem_status read_experts(struct reader *reader, struct tandem_hparams *h,
                                       struct tandem_error *error)
{
    const struct tnd_llama_architecture *a = reader->architecture;
    int64_t normed = a->has_normed_experts;
    const char *key = key_of(reader, "expert_count");
    (void)tandem_source_integer(reader->source, key, &h->experts);
    if (h->experts != 0 && !a->may_have_experts && !a->must_have_experts) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, key, h->experts, 0,
                             "llama: key %s asks for what this version does not compute", key);
    }
    if (h->experts == 0 && !a->must_have_experts) {
        return TANDEM_OK;
    }
    TND_TRY(read_count(reader, "expert_count", &h->experts, error));
    TND_TRY(read_count(reader, "expert_used_count", &h->experts_used, error));
    char what[128];
    snprintf(what, sizeof(what), "llama: key %s", key_of(reader, "expert_used_count"));
    TND_TRY(check_used(what, TANDEM_E_FORMAT, h->experts_used, h->experts, error));
    TND_TRY(read_count_or(reader, "expert_feed_forward_length",
                          a->must_have_experts ? h->hidden / h->experts_used : h->hidden,
                          &h->expert_hidden, error));
    if ((a->has & TND_HAS(SHARED)) != 0) {
        TND_TRY(read_count_or(reader, "expert_shared_feed_forward_length", h->hidden,
                              &h->shared_hidden, error));
    }
    (void)tandem_source_integer(reader->source, key_of(reader, "expert_weights_norm"), &normed);
    h->has_normed_experts = normed != 0;
    return read_router(reader, h, error);
}

static enum tandem_status read_activation(struct reader *reader, struct tandem_hparams *h,
                                          struct tandem_error *error)
{
    static const char *const names[] = {
        [TANDEM_ACTIVATION_SILU] = "silu",           [TANDEM_ACTIVATION_GELU] = "gelu",
        [TANDEM_ACTIVATION_GELU_TANH] = "gelu_tanh", [TANDEM_ACTIVATION_QUICK_GELU] = "quick_gelu",
        [TANDEM_ACTIVATION_RELU] = "relu",           [TANDEM_ACTIVATION_RELU2] = "relu2",
        [TANDEM_ACTIVATION_LINEAR] = "linear",       [TANDEM_ACTIVATION_CLAMPED] = "clamped",
    };
    const char *name = names[reader->architecture->activation];
    (void)tandem_source_text(reader->source, key_of(reader, "hidden_activation"), &name);
    (void)tandem_source_text(reader->source, "tandem.activation", &name);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            h->activation = (enum tandem_activation)i;
            return TANDEM_OK;
        }
    }
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, "activation", 0, 0,
                         "llama: the activation is %.40s, which is not known", name);
}

/* Reads a bool per layer; `out` is unchanged without such a list. */
static enum tandem_status read_layers(const struct reader *reader, const char *key, int64_t layers,
                                      const uint8_t **out, struct tandem_error *error)
{
    const struct tnd_source_value *value =
        tnd_source_value_of(reader->source, key, TND_VALUE_ARRAY);
    if (value == NULL) {
        return TANDEM_OK;
    }
    if (value->array->item_type != TND_GGUF_BOOL || value->array->count != layers) {
        return tnd_error_set(error, TANDEM_E_FORMAT, value->key, value->array->count, layers,
                             "llama: %s has %lld items, expected a truth value for each of %lld "
                             "layers",
                             value->key, (long long)value->array->count, (long long)layers);
    }
    *out = value->array->bytes;
    return TANDEM_OK;
}

/* Reads the window, and the layers that have it if there is a list of them. */
static enum tandem_status read_window(struct reader *reader, struct tandem_hparams *h,
                                      struct tandem_error *error)
{
    int64_t window = 0;
    (void)tandem_source_integer(reader->source, key_of(reader, "attention.sliding_window"),
                                &window);
    /* layers with a window differ in more than the window: they must be known */
    const bool is_kind = reader->architecture->is_rotated_in_windows ||
                         reader->architecture->window_freq_base != 0.0f ||
                         reader->architecture->has_plain_windows;
    window = window > INT32_MAX ? INT32_MAX : window;
    h->window = window > 0 && (is_kind || window < h->context) ? window : 0;
    if (h->window == 0) {
        return TANDEM_OK;
    }
    int64_t period = reader->architecture->window_period;
    (void)tandem_source_integer(reader->source, key_of(reader, "attention.sliding_window_pattern"),
                                &period);
    if (period < 0 || period > INT32_MAX) {
        return refuse_number(reader->key, (double)period, error);
    }
    TND_TRY(read_layers(reader, key_of(reader, "attention.sliding_window_pattern"), h->layers,
                        &h->windowed, error));
    h->window_period = h->windowed != NULL ? 0 : period;
    h->has_wide_first = reader->architecture->has_wide_first;
    return TANDEM_OK;
}

/* Reads what depends on the layer or position: RoPE and its bases, scales and caps. */
static enum tandem_status read_scales(struct reader *reader, struct tandem_hparams *h,
                                      struct tandem_error *error)
{
    const struct tnd_llama_architecture *a = reader->architecture;
    int64_t is_parallel = a->is_parallel;
    const double root = a->scales_embedding ? sqrt((double)h->dim) : 1.0;
    const bool is_wide = a->wide_layers > 0 && h->layers == a->wide_layers;
    const double wide = is_wide ? 1.0 / sqrt((double)h->dim / (double)h->heads) : 0.0;
    const struct {
        const char *name;
        double otherwise;
        float *out;
    } rows[] = {
        {"embedding_scale", root, &h->embedding_scale},
        {"residual_scale", 1.0, &h->residual_scale},
        {"logit_scale", 1.0, &h->logit_scale},
        {"attention.scale", wide, &h->attention_scale},
        {"attn_logit_softcapping", 0.0, &h->attention_cap},
        {"final_logit_softcapping", 0.0, &h->logit_cap},
        {"rope.freq_base_swa", (double)a->window_freq_base, &h->window_freq_base},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double value = read_number(reader, rows[i].name, NAN);
        if (isnan(value) && tnd_llama_lists(a->needs, rows[i].name)) {
            return tnd_error_set(error, TANDEM_E_NOT_FOUND, reader->key, 0, 0,
                                 "llama: the model has no %s", reader->key);
        }
        value = isnan(value) ? rows[i].otherwise : value;
        if (!(fabs(value) <= 1e30) || (value < 0.0 && i >= 4)) {
            return refuse_number(reader->key, value, error);
        }
        *rows[i].out = (float)value;
    }
    if (a->is_latent) {
        const double amount = read_number(reader, "rope.scaling.yarn_log_multiplier", 0.0);
        const double factor = read_number(reader, "rope.scaling.factor", 1.0);
        const double grown = factor > 1.0 ? 1.0 + amount * log(factor) : 1.0;
        if (!(fabs(amount) <= 1e3)) {
            return refuse_number("rope.scaling.yarn_log_multiplier", amount, error);
        }
        h->attention_scale = (float)(grown * grown / sqrt((double)(reader->own_key + h->n_rot)));
    }
    if (a->divides_logits && h->logit_scale == 0.0f) {
        return refuse_number("logit_scale", 0.0, error);
    }
    h->logit_scale = a->divides_logits ? 1.0f / h->logit_scale : h->logit_scale;
    (void)tandem_source_integer(reader->source, key_of(reader, "use_parallel_residual"),
                                &is_parallel);
    h->is_parallel = is_parallel != 0;
    h->norm = a->norm;
    h->norms_after_rope = a->norms_after_rope;
    h->is_rotated_in_windows = a->is_rotated_in_windows;
    h->has_sinks = (a->has & TND_HAS(SINKS)) != 0;
    h->rope_period = a->rope_period;
    TND_TRY(read_layers(reader, "tandem.rope.layers", h->layers, &h->rotated, error));
    h->rope_period = h->rotated != NULL ? 0 : h->rope_period;
    return TANDEM_OK;
}

/* Rows of a tensor: the vocabulary in files of converters that do not state it. */
static int64_t rows_of(const tandem_source *source, const char *name)
{
    struct tandem_source_tensor found;
    return tandem_source_find(source, name, &found) ? found.ne[1] : 0;
}

/* Reads the pooling, and other values of encoders. */
static enum tandem_status read_pooling(struct reader *reader, struct tandem_hparams *h,
                                       struct tandem_error *error)
{
    const char *types = "tokenizer.ggml.token_type_count";
    int64_t pooling = TANDEM_POOLING_NONE, scores = TANDEM_POOLING_CLS;
    h->is_encoder = reader->architecture->is_encoder;
    (void)tandem_source_integer(reader->source, key_of(reader, "pooling_type"), &pooling);
    if (pooling < TANDEM_POOLING_NONE || pooling > TANDEM_POOLING_RANK ||
        (!h->is_encoder && pooling != TANDEM_POOLING_NONE && pooling != TANDEM_POOLING_LAST)) {
        return refuse_number(reader->key, (double)pooling, error);
    }
    h->pooling = (enum tandem_pooling)pooling;
    h->is_first_bare = reader->architecture->is_first_bare;
    (void)tandem_source_integer(reader->source, "tandem.scores_of_mean", &scores);
    (void)tandem_source_integer(reader->source, key_of(reader, "classifier.pooling_type"), &scores);
    if (scores != TANDEM_POOLING_MEAN && scores != TANDEM_POOLING_CLS) {
        return refuse_number(reader->key, (double)scores, error);
    }
    h->scores_mean = scores == TANDEM_POOLING_MEAN;
    if ((reader->architecture->has & TND_HAS(TOKEN_TYPES)) != 0) {
        const int64_t rows = rows_of(reader->source, "token_types.weight");
        int64_t said = rows;
        (void)tandem_source_integer(reader->source, types, &said);
        if (rows > 0 && said != rows) {
            return tnd_error_set(error, TANDEM_E_SHAPE, types, said, rows,
                                 "llama: %s is %lld, and token_types.weight has %lld rows", types,
                                 (long long)said, (long long)rows);
        }
        h->token_types = rows > 0 ? rows : 1;
    }
    h->labels = pooling == TANDEM_POOLING_RANK ? rows_of(reader->source, "cls.output.weight") : 0;
    return TANDEM_OK;
}

/* Reads the prediction layers (MTP), which block_count includes even if the converted checkpoint
 * had none. */
static enum tandem_status read_nextn(struct reader *reader, struct tandem_hparams *h,
                                     struct tandem_error *error)
{
    const char *key = key_of(reader, "nextn_predict_layers");
    struct tandem_source_tensor t;
    char name[TANDEM_MAX_NAME];
    int64_t n = 0;
    if (!tnd_llama_lists(reader->architecture->keys, "nextn_predict_layers") ||
        !tandem_source_integer(reader->source, key, &n)) {
        return TANDEM_OK;
    }
    if (n < 0 || n >= h->layers) {
        return tnd_error_set(error, TANDEM_E_FORMAT, key, n, h->layers - 1,
                             "llama: %s is %lld, expected 0 to %lld, less than block_count", key,
                             (long long)n, (long long)h->layers - 1);
    }
    h->layers -= n;
    snprintf(name, sizeof(name), "blk.%lld.attn_norm.weight", (long long)h->layers);
    h->nextn_layers = tandem_source_find(reader->source, name, &t) ? n : 0;
    return TANDEM_OK;
}

static enum tandem_status read_all(struct reader *reader, struct tandem_hparams *h,
                                   struct tandem_error *error)
{
    TND_TRY(read_count(reader, "embedding_length", &h->dim, error));
    TND_TRY(read_count(reader, "feed_forward_length", &h->hidden, error));
    TND_TRY(read_count(reader, "block_count", &h->layers, error));
    TND_TRY(read_nextn(reader, h, error));
    TND_TRY(read_experts(reader, h, error));
    TND_TRY(reader->architecture->is_latent ? read_latent(reader, h, &reader->own_key, error)
                                            : read_heads(reader, h, error));
    TND_TRY(read_count(reader, "context_length", &h->context, error));
    TND_TRY(read_count_or(reader, "vocab_size", rows_of(reader->source, "token_embd.weight"),
                          &h->vocabulary, error));
    TND_TRY(read_window(reader, h, error));
    TND_TRY(read_activation(reader, h, error));
    TND_TRY(read_scales(reader, h, error));
    TND_TRY(read_pooling(reader, h, error));
    h->norm_eps =
        (float)read_number(reader,
                           h->norm == TANDEM_LLAMA_LAYER_NORM ? "attention.layer_norm_epsilon"
                                                              : "attention.layer_norm_rms_epsilon",
                           NAN);
    if (isnan(h->norm_eps)) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, reader->key, 0, 0,
                             "llama: the model has no %s, a number that each norm adds",
                             reader->key);
    }
    if (!(h->norm_eps >= 0.0f) || !isfinite(h->norm_eps)) {
        return tnd_error_set(error, TANDEM_E_FORMAT, reader->key, 0, 0,
                             "llama: %s is %g, expected a number of 0 or more", reader->key,
                             (double)h->norm_eps);
    }
    h->rope_pairs = reader->architecture->pairs;
    return tnd_llama_read_rope(reader->source, h, error);
}

/* ---- keys ---- */

enum key_kind {
    KEY_INTEGER = 1 << TND_VALUE_INTEGER,
    KEY_NUMBER = 1 << TND_VALUE_INTEGER | 1 << TND_VALUE_NUMBER,
    KEY_TEXT = 1 << TND_VALUE_TEXT,
    KEY_ARRAY = 1 << TND_VALUE_ARRAY,
    KEY_LAYERS = 1 << TND_VALUE_ARRAY | 1 << TND_VALUE_INTEGER /* or a period */
};

static const struct {
    const char *name;
    unsigned kinds;
} used_keys[] =
    {
#define KEY_ROW(name, kind, why) {name, KEY_##kind},
        TND_LLAMA_KEYS(KEY_ROW)
#undef KEY_ROW
},
  own_keys[] = {
#define OWN_ROW(name, kind) {name, KEY_##kind},
      TND_OWN_KEYS(OWN_ROW)
#undef OWN_ROW
};

static const struct {
    const char *name;
    double neutral;
} off_keys[] = {
#define OFF_ROW(name, neutral) {name, neutral},
    TND_LLAMA_OFF_KEYS(OFF_ROW)
#undef OFF_ROW
};

static enum tandem_status refuse_key(const struct tnd_source_value *value,
                                     enum tandem_status status, const char *why,
                                     struct tandem_error *error)
{
    return tnd_error_set(error, status, value->key, value->integer, 0, "llama: key %.80s %s",
                         value->key, why);
}

/* Checks a key of the architecture; `name` is the rest. */
static enum tandem_status check_key(const struct reader *reader, const struct tandem_hparams *h,
                                    const struct tnd_source_value *value, const char *name,
                                    struct tandem_error *error)
{
    if (tnd_llama_lists(reader->architecture->keys, name)) {
        return (KEY_NUMBER >> value->kind & 1) != 0
                   ? TANDEM_OK
                   : refuse_key(value, TANDEM_E_FORMAT, "has a value of another kind", error);
    }
    const double number = value->kind == TND_VALUE_INTEGER ? (double)value->integer : value->number;
    for (size_t i = 0; i < sizeof(off_keys) / sizeof(off_keys[0]); i++) {
        if (strcmp(name, off_keys[i].name) == 0) {
            return (KEY_NUMBER >> value->kind & 1) != 0 && number == off_keys[i].neutral
                       ? TANDEM_OK
                       : refuse_key(value, TANDEM_E_UNSUPPORTED_BUILD,
                                    "asks for what this version does not compute", error);
        }
    }
    for (size_t i = 0; i < sizeof(used_keys) / sizeof(used_keys[0]); i++) {
        if (strcmp(name, used_keys[i].name) != 0) {
            continue;
        }
        const bool is_period = used_keys[i].kinds == KEY_LAYERS && value->kind == TND_VALUE_INTEGER;
        if ((used_keys[i].kinds >> value->kind & 1) == 0 ||
            (is_period && reader->architecture->window_period == 0)) {
            return refuse_key(value, TANDEM_E_FORMAT, "has a value of another kind", error);
        }
        if ((strcmp(name, "attention.causal") == 0 && value->integer != !h->is_encoder) ||
            (strcmp(name, "attention.value_length") == 0 && h->kv_latent == 0 &&
             value->integer != h->head_size)) {
            return refuse_key(value, TANDEM_E_UNSUPPORTED_BUILD,
                              "asks for what this version does not compute", error);
        }
        return TANDEM_OK;
    }
    return refuse_key(value, TANDEM_E_UNSUPPORTED_BUILD,
                      "is not known to this version, and may change results", error);
}

/* Checks keys of the architecture, and our own. Other keys do not affect the computation. */
static enum tandem_status check_keys(const struct reader *reader, const struct tandem_hparams *h,
                                     struct tandem_error *error)
{
    const size_t n = strlen(h->architecture);
    for (size_t i = 0; i < reader->source->n_values; i++) {
        const struct tnd_source_value *value = &reader->source->values[i];
        if (strncmp(value->key, h->architecture, n) == 0 && value->key[n] == '.') {
            TND_TRY(check_key(reader, h, value, value->key + n + 1, error));
        } else if (strncmp(value->key, "tandem.", 7) == 0) {
            bool is_known = false;
            for (size_t k = 0; k < sizeof(own_keys) / sizeof(own_keys[0]); k++) {
                is_known = is_known || (strcmp(value->key, own_keys[k].name) == 0 &&
                                        (own_keys[k].kinds >> value->kind & 1) != 0);
            }
            if (!is_known) {
                return refuse_key(value, TANDEM_E_UNSUPPORTED_BUILD,
                                  "is not known to this version, and may change results", error);
            }
        }
    }
    return TANDEM_OK;
}

/* Groups that layers without experts lack, and groups that layers with experts lack. */
#define OF_EXPERTS                                                                                 \
    (TND_HAS(ROUTER) | TND_HAS(EXPERTS) | TND_HAS(SHARED) | TND_HAS(SHARED_SHARE) |                \
     TND_HAS(EXPERT_BIAS) | TND_HAS(CHOICE_BIAS))
#define OF_DENSE                                                                                   \
    (TND_HAS(FFN) | TND_HAS(FFN_W1) | TND_HAS(FFN_UP) | TND_HAS(FUSED_FFN) | TND_HAS(FFN_BIAS) |   \
     TND_HAS(FFN_W1_BIAS))

/* Sets which groups of tensors are required and which are not allowed. [1]: layers with experts. */
static void read_promises(const struct reader *reader, const struct tandem_hparams *h,
                          enum tnd_llama_promise out[2][TND_LLAMA_GROUPS])
{
    static const struct {
        const char *key; /* stored from config.json */
        uint64_t groups;
    } said[] = {
        {"tandem.has.output", TND_HAS(OUTPUT)},
        {"tandem.has.attention_bias", TND_HAS(QKV_BIAS) | TND_HAS(FUSED_QKV_BIAS)},
        {"tandem.has.attention_output_bias", TND_HAS(OUTPUT_BIAS)},
        {"tandem.has.feed_forward_bias", TND_HAS(FFN_BIAS) | TND_HAS(FFN_W1_BIAS)},
        {"tandem.has.head_norm", TND_HAS(HEAD_NORM) | TND_HAS(HEAD_NORMS) | TND_HAS(WIDE_NORM)},
        {"tandem.has.second_norm", TND_HAS(SECOND_NORM)},
        {"tandem.has.feed_forward_norm", TND_HAS(FFN_NORM) | TND_HAS(FFN_NORM_BIAS)}};
    const struct tnd_llama_architecture *a = reader->architecture;
    uint64_t needed = TND_HAS(ALL) | TND_HAS(FINAL_NORM) | TND_HAS(ATTN_NORM) | TND_HAS(FFN_NORM) |
                      TND_HAS(QKV) | TND_HAS(FFN) | TND_HAS(FFN_W1) | TND_HAS(FFN_UP) |
                      TND_HAS(ROUTER) | TND_HAS(EXPERTS);
    const bool is_llama =
        a->norm == TANDEM_LLAMA_RMS_NORM && (a->has & TND_HAS(SINKS)) == 0 && !a->is_latent;
    uint64_t allowed = TND_HAS(OUTPUT); /* and biases for llama */
    allowed |= is_llama ? TND_HAS(QKV_BIAS) | TND_HAS(OUTPUT_BIAS) | TND_HAS(FFN_BIAS) |
                              TND_HAS(FFN_W1_BIAS)
                        : 0;
    needed = (needed | a->has) & ~a->lacks & ~a->may;
    if (h->pooling == TANDEM_POOLING_RANK) {
        needed |= TND_HAS(RANK) | (a->has_normed_scores ? TND_HAS(RANK_NORM) : TND_HAS(RANK_BIAS));
    }
    if (a->is_latent) {
        needed |= h->q_latent > 0 ? TND_HAS(LATENT_Q) : TND_HAS(OWN_Q);
        needed |= h->router == TANDEM_ROUTER_SIGMOID ? TND_HAS(CHOICE_BIAS) : 0;
    }
    allowed = (allowed | a->may) & ~a->lacks;
    if (h->is_parallel && (a->has & TND_HAS(FFN_NORM_BIAS)) == 0) { /* one norm for both */
        allowed |= needed & TND_HAS(FFN_NORM);
        needed &= ~TND_HAS(FFN_NORM);
    }
    if (h->shared_hidden == 0) {
        needed &= ~(TND_HAS(SHARED) | TND_HAS(SHARED_SHARE));
    }
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        const uint64_t groups = said[i].groups & (allowed | needed);
        int64_t has;
        if (tandem_source_integer(reader->source, said[i].key, &has)) {
            needed = has != 0 ? needed | groups : needed & ~groups;
            allowed &= ~groups;
        }
    }
    for (int kind = 0; kind < 2; kind++) {
        const uint64_t lacks = kind == 0 ? OF_EXPERTS : OF_DENSE;
        for (int group = 0; group < TND_LLAMA_GROUPS; group++) {
            const uint64_t bit = (uint64_t)1 << group;
            out[kind][group] = (needed & ~lacks & bit) != 0    ? TND_LLAMA_NEEDED
                               : (allowed & ~lacks & bit) != 0 ? TND_LLAMA_OPTIONAL
                                                               : TND_LLAMA_ABSENT;
        }
    }
}

enum tandem_status tandem_source_hparams(const tandem_source *source,
                                         struct tandem_hparams *out_hparams,
                                         struct tandem_error *error)
{
    struct tandem_hparams h = {.size = sizeof(h)};
    struct reader reader = {.source = source};
    enum tnd_llama_promise promises[2][TND_LLAMA_GROUPS];
    struct tandem_source_tensor first;
    TND_REQUIRE(source, "source hparams", error);
    TND_REQUIRE(out_hparams, "source hparams", error);
    TND_TRY(find_architecture(&reader, error));
    h.architecture = reader.architecture->name;
    h.has_biases = (reader.architecture->has & TND_HAS(QKV_BIAS)) != 0;
    h.embedding_scale = h.residual_scale = h.logit_scale = h.expert_scale = 1.0f;
    TND_TRY(read_all(&reader, &h, error));
    struct tnd_llama_dims dims = dims_of(&h);
    dims.own_key = reader.own_key;
    dims.own_q_dim = h.heads * (reader.own_key + h.n_rot); /* factors below 2^31 */
    TND_TRY(check_keys(&reader, &h, error));
    read_promises(&reader, &h, promises);
    TND_TRY(tnd_llama_check_tensors(source, &dims, &h, promises, error));
    if (tandem_source_find(source, "blk.0.attn_q.weight", &first) ||
        tandem_source_find(source, "blk.0.attn_q_b.weight", &first) ||
        tandem_source_find(source, "blk.0.attn_qkv.weight", &first)) {
        h.weight_type = first.type;
    }
    *out_hparams = h;
    return TANDEM_OK;
}
