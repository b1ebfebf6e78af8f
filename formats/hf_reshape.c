/* SPDX-License-Identifier: MIT
 * Converts tensors of Hugging Face's models to the layout of the GGUF convention, where that needs
 * a copy, as a family's row says (hf_families.c). Orders of rows: convert_hf_to_gguf.py of
 * ggml-org/llama.cpp and the modelling files of huggingface/transformers. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "formats/hf_config.h"
#include "formats/llama_tensors.h"
#include "formats/safetensors.h"
#include "ggml-like/tnd_type.h"

/* The source and its model's sizes. */
struct shaper {
    tandem_source *source;
    const struct tnd_hf_family *family;
    size_t file_bytes;
    int64_t heads, kv_heads, head_size;
};

/* Copies the part of a tensor name between "blk.N.", if any, and the last dot to `out`. False: no
 * dot, or too long. */
static bool part_of(const char *name, char *out, size_t capacity, const char **out_last)
{
    const char *rest = strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') : name - 1;
    const char *last = rest != NULL ? strrchr(rest + 1, '.') : NULL;
    if (last == NULL || (size_t)(last - rest) > capacity) {
        return false;
    }
    snprintf(out, capacity, "%.*s", (int)(last - rest - 1), rest + 1);
    *out_last = last;
    return true;
}

static int64_t value_of(const tandem_source *source, const char *architecture, const char *name)
{
    char key[96];
    int64_t value = 0;
    snprintf(key, sizeof(key), "%.60s.%s", architecture, name);
    (void)tandem_source_integer(source, key, &value);
    return value;
}

static enum tandem_status take_memory(const struct shaper *s, const struct tandem_source_tensor *t,
                                      size_t bytes, void **out, struct tandem_error *error)
{
    return tnd_source_alloc(s->source, t->name, bytes, s->file_bytes, out, error);
}

static enum tandem_status misfit(const struct tandem_source_tensor *t, const char *what,
                                 struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_SHAPE, t->name, t->ne[0], t->ne[1],
                         "llama: %.80s is %lld x %lld, which is not %s", t->name,
                         (long long)t->ne[0], (long long)t->ne[1], what);
}

/* ---- one tensor ---- */

/* Replaces the data by F32 values, with 1 added to each if `one` is 1. */
static enum tandem_status to_floats(const struct shaper *s, struct tandem_source_tensor *t,
                                    float one, struct tandem_error *error)
{
    void *memory = NULL;
    int64_t n = 1;
    size_t bytes = 0;
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        n *= t->ne[i]; /* no overflow: the tensor is in memory */
    }
    if (!tnd_mul_size((size_t)n, sizeof(float), &bytes) || tandem_type_is_quantized(t->type) ||
        t->type == TANDEM_TYPE_I32) {
        return misfit(t, "of floats", error);
    }
    TND_TRY(take_memory(s, t, bytes, &memory, error));
    float *values = memory;
    tnd_type_traits(t->type)->dequantize(t->data, values, n);
    for (int64_t i = 0; i < n; i++) {
        values[i] += one;
    }
    t->type = TANDEM_TYPE_F32;
    t->data = memory;
    t->bytes = bytes;
    return TANDEM_OK;
}

/* Transposes each matrix from {K, N} to {N, K} and keeps rows `first`, `first` + `step`, ... of the
 * result. */
static enum tandem_status transpose(const struct shaper *s, const struct tandem_source_tensor *t,
                                    int64_t first, int64_t step, struct tandem_source_tensor *out,
                                    struct tandem_error *error)
{
    const size_t size = tandem_type_block_bytes(t->type);
    const int64_t k = t->ne[1];
    const int64_t n = t->ne[0] / step;
    void *memory = NULL;
    if (tandem_type_block_values(t->type) != 1 || t->ne[0] % step != 0 || t->ne[3] != 1 ||
        t->n_dims < 2) {
        return misfit(t, "a matrix that can be transposed", error);
    }
    const size_t bytes = t->bytes / (size_t)step;
    TND_TRY(take_memory(s, t, bytes, &memory, error));
    for (int64_t e = 0; e < t->ne[2]; e++) {
        const char *from = (const char *)t->data + (size_t)(e * t->ne[0] * k) * size;
        char *to = (char *)memory + (size_t)(e * n * k) * size;
        for (int64_t row = 0; row < n; row++) {
            for (int64_t i = 0; i < k; i++) {
                memcpy(to + (size_t)(row * k + i) * size,
                       from + (size_t)(i * t->ne[0] + row * step + first) * size, size);
            }
        }
    }
    *out = *t;
    out->ne[0] = k;
    out->ne[1] = n;
    out->data = memory;
    out->bytes = bytes;
    return TANDEM_OK;
}

/* Keeps every `step`-th value of each row, starting with value `first`. */
static enum tandem_status take_each(const struct shaper *s, const struct tandem_source_tensor *t,
                                    int64_t first, int64_t step, struct tandem_source_tensor *out,
                                    struct tandem_error *error)
{
    *out = *t;
    TND_TRY(to_floats(s, out, 0.0f, error));
    const float *from = out->data;
    float *to = (float *)(uintptr_t)out->data;
    int64_t n = 0;
    for (int64_t i = first; i < t->ne[0] * t->ne[1]; i += step) {
        to[n++] = from[i];
    }
    if (t->ne[0] % step != 0) {
        return misfit(t, "of pairs", error);
    }
    out->ne[0] /= step;
    out->bytes = (size_t)n * sizeof(float);
    return TANDEM_OK;
}

/* Reorders rows grouped by KV head (queries, key, value) to all queries, all keys, all values. */
static enum tandem_status group(const struct shaper *s, struct tandem_source_tensor *t,
                                struct tandem_error *error)
{
    const int64_t rows = t->n_dims == 1 ? t->ne[0] : t->ne[1];
    const int64_t in_group = s->kv_heads > 0 ? s->heads / s->kv_heads : 0;
    void *memory = NULL;
    if (in_group < 1 || s->heads % s->kv_heads != 0 || s->head_size < 1 ||
        s->head_size > rows / (in_group + 2) || t->ne[2] != 1 || t->ne[3] != 1 ||
        rows % ((in_group + 2) * s->head_size) != 0 ||
        rows / ((in_group + 2) * s->head_size) != s->kv_heads) {
        return misfit(t, "of the rows of all heads", error);
    }
    TND_TRY(take_memory(s, t, t->bytes, &memory, error));
    const size_t head = t->bytes / (size_t)rows * (size_t)s->head_size;
    for (int64_t j = 0; j < s->kv_heads; j++) {
        for (int64_t i = 0; i < in_group + 2; i++) {
            const int64_t to = i < in_group    ? j * in_group + i
                               : i == in_group ? s->heads + j
                                               : s->heads + s->kv_heads + j;
            memcpy((char *)memory + (size_t)to * head,
                   (const char *)t->data + (size_t)(j * (in_group + 2) + i) * head, head);
        }
    }
    t->data = memory;
    return TANDEM_OK;
}

/* ---- all of them ---- */

static bool is_norm(const char *part)
{
    return strstr(part, "norm") != NULL;
}

/* Drops the rows before `first`. */
static enum tandem_status drop_rows(struct tandem_source_tensor *t, int64_t first,
                                    struct tandem_error *error)
{
    if (t->n_dims != 2 || t->ne[1] <= first) {
        return misfit(t, "of more positions than are left out", error);
    }
    const size_t row = t->bytes / (size_t)t->ne[1];
    t->data = (const char *)t->data + (size_t)first * row;
    t->bytes -= (size_t)first * row;
    t->ne[1] -= first;
    return TANDEM_OK;
}

static enum tandem_status shape_one(const struct shaper *s, struct tandem_source_tensor *t,
                                    const char *part, const char *last, struct tandem_error *error)
{
    const bool is_weight = strcmp(last, ".weight") == 0;
    struct tandem_source_tensor changed;
    if (s->family->adds_one && is_weight && is_norm(part)) {
        return to_floats(s, t, 1.0f, error);
    }
    if (is_norm(part) && t->type != TANDEM_TYPE_F32 && t->type != TANDEM_TYPE_I32) {
        return to_floats(s, t, 0.0f, error);
    }
    if (s->source->hf_unused_positions > 0 && strcmp(part, "position_embd") == 0) {
        TND_TRY(drop_rows(t, s->source->hf_unused_positions, error));
    }
    if (is_weight && tnd_llama_lists(s->family->transposes, part)) {
        TND_TRY(transpose(s, t, 0, 1, &changed, error));
        *t = changed;
    }
    return s->family->groups_qkv && strcmp(part, "attn_qkv") == 0 ? group(s, t, error) : TANDEM_OK;
}

/* Replaces tensor `i` by one with another part of the name; `is_more`: adds it instead. */
static enum tandem_status put(const struct shaper *s, size_t i, const char *part, const char *last,
                              const struct tandem_source_tensor *tensor, bool is_more,
                              struct tandem_error *error)
{
    char name[TANDEM_MAX_NAME];
    const char *old = s->source->tensors[i].name;
    const char *rest = strncmp(old, "blk.", 4) == 0 ? strchr(old + 4, '.') + 1 : old;
    snprintf(name, sizeof(name), "%.*s%.60s%.20s", (int)(rest - old), old, part, last);
    if (is_more) {
        return tnd_source_add(s->source, name, tensor->type, tensor->n_dims, tensor->ne,
                              tensor->data, tensor->bytes, error);
    }
    char *copy = tnd_alloc(strlen(name) + 1);
    if (copy == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, name, 0, 0, "llama: no memory for a name");
    }
    strcpy(copy, name);
    tnd_free((void *)(uintptr_t)old);
    s->source->tensors[i] = *tensor;
    s->source->tensors[i].name = copy;
    return TANDEM_OK;
}

/* Splits alternating gate and up columns of experts; the other matrix of an expert is only
 * transposed. */
static enum tandem_status part_experts(const struct shaper *s, size_t i, const char *part,
                                       const char *last, struct tandem_error *error)
{
    struct tandem_source_tensor tensor = s->source->tensors[i];
    struct tandem_source_tensor gate, up;
    const bool is_weight = strcmp(last, ".weight") == 0;
    if (strcmp(part, "down_exps_t") == 0) {
        TND_TRY(transpose(s, &tensor, 0, 1, &gate, error));
        return put(s, i, "ffn_down_exps", last, &gate, false, error);
    }
    if (strcmp(part, "ffn_down_exps") == 0 && !is_weight) {
        TND_TRY(to_floats(s, &tensor, 0.0f, error));
        return put(s, i, part, last, &tensor, false, error);
    }
    if (strcmp(part, "gate_up_exps") != 0) {
        return TANDEM_OK;
    }
    TND_TRY(is_weight ? transpose(s, &tensor, 0, 2, &gate, error)
                      : take_each(s, &tensor, 0, 2, &gate, error));
    TND_TRY(is_weight ? transpose(s, &tensor, 1, 2, &up, error)
                      : take_each(s, &tensor, 1, 2, &up, error));
    TND_TRY(put(s, i, "ffn_up_exps", last, &up, true, error));
    return put(s, i, "ffn_gate_exps", last, &gate, false, error);
}

/* Splits attn_qkv by rows into attn_q, attn_k and attn_v. */
static enum tandem_status split_qkv(const struct shaper *s, size_t i, const char *last,
                                    struct tandem_error *error)
{
    static const char *const names[] = {"attn_q", "attn_k", "attn_v"};
    const struct tandem_source_tensor whole = s->source->tensors[i];
    const int dim = whole.n_dims == 1 ? 0 : 1;
    const int64_t heads[] = {s->heads, s->kv_heads, s->kv_heads};
    const size_t head = whole.bytes / (size_t)(s->heads + 2 * s->kv_heads);
    size_t at = 0;
    for (int part = 0; part < 3; part++) {
        struct tandem_source_tensor one = whole;
        one.ne[dim] = heads[part] * s->head_size;
        one.data = (const char *)whole.data + at;
        one.bytes = head * (size_t)heads[part];
        at += one.bytes;
        TND_TRY(put(s, i, names[part], last, &one, part > 0, error));
    }
    return TANDEM_OK;
}

/* Splits each head's rows into those of its key and of its value, as two tensors of matrices. The
 * keys' matrices are transposed, as they are multiplied with queries. */
static enum tandem_status split_latent(const struct shaper *s, size_t i, const char *last,
                                       struct tandem_error *error)
{
    const struct tandem_source_tensor whole = s->source->tensors[i];
    const int64_t key = value_of(s->source, s->family->architecture, "attention.key_length_mla") -
                        value_of(s->source, s->family->architecture, "rope.dimension_count");
    const int64_t value =
        value_of(s->source, s->family->architecture, "attention.value_length_mla");
    struct tandem_source_tensor keys, values = whole;
    void *memory = NULL;
    if (whole.n_dims != 2 || key < 1 || value < 1 || s->heads < 1 || whole.ne[1] % s->heads != 0 ||
        whole.ne[1] / s->heads != key + value || tandem_type_block_values(whole.type) != 1) {
        return misfit(&whole, "of a key and a value for each head", error);
    }
    const size_t row = whole.bytes / (size_t)whole.ne[1];
    TND_TRY(take_memory(s, &whole, whole.bytes, &memory, error));
    char *of_keys = memory;
    char *of_values = of_keys + (size_t)(s->heads * key) * row;
    for (int64_t head = 0; head < s->heads; head++) {
        const char *from = (const char *)whole.data + (size_t)(head * (key + value)) * row;
        memcpy(of_keys + (size_t)(head * key) * row, from, (size_t)key * row);
        memcpy(of_values + (size_t)(head * value) * row, from + (size_t)key * row,
               (size_t)value * row);
    }
    values.n_dims = 3;
    values.ne[2] = s->heads;
    values.ne[1] = key;
    values.data = of_keys;
    values.bytes = (size_t)(s->heads * key) * row;
    TND_TRY(transpose(s, &values, 0, 1, &keys, error));
    values.ne[1] = value;
    values.data = of_values;
    values.bytes = (size_t)(s->heads * value) * row;
    TND_TRY(put(s, i, "attn_v_b", last, &values, true, error));
    return put(s, i, "attn_k_b", last, &keys, false, error);
}

static enum tandem_status shape(struct shaper *s, struct tandem_error *error)
{
    const size_t n = s->source->n_tensors; /* tensors added in the loop are final */
    const struct tnd_llama_architecture *a = tnd_llama_architecture_of(s->family->architecture);
    const bool splits = s->family->groups_qkv && (a->has & TND_HAS(FUSED_QKV)) == 0;
    for (size_t i = 0; i < n; i++) {
        char part[64], other[64];
        const char *last;
        struct tandem_source_tensor tensor = s->source->tensors[i];
        if (!part_of(tensor.name, part, sizeof(part), &last)) {
            continue;
        }
        char ending[24];
        snprintf(ending, sizeof(ending), "%.23s", last);
        TND_TRY(shape_one(s, &tensor, part, ending, error));
        s->source->tensors[i] = tensor;
        if (s->family->parts_experts) {
            TND_TRY(part_experts(s, i, part, ending, error));
        }
        if (s->family->is_latent && strcmp(part, "attn_kv_b") == 0) {
            TND_TRY(split_latent(s, i, ending, error));
        } else if (splits && strcmp(part, "attn_qkv") == 0) {
            TND_TRY(split_qkv(s, i, ending, error));
        } else if (tnd_hf_alias(s->family->renames, part, other, sizeof(other))) {
            tensor = s->source->tensors[i];
            TND_TRY(put(s, i, other, ending, &tensor, false, error));
        }
    }
    return TANDEM_OK;
}

/* Whether a tensor belongs to an output head of an encoder that embeddings do not need: the
 * family's `drops`, and the classifier unless the model gives scores. */
static bool is_dropped(const struct tnd_hf_family *family, bool is_ranked, const char *name)
{
    for (const char *at = family->drops; at != NULL && *at != '\0';) {
        const size_t n = strcspn(at, " ");
        if (strncmp(name, at, n) == 0) {
            return true;
        }
        at += n + strspn(at + n, " ");
    }
    return family->is_encoder && !is_ranked && strncmp(name, "cls.", 4) == 0;
}

static void drop_heads(const struct shaper *s)
{
    tandem_source *source = s->source;
    const bool is_ranked =
        value_of(source, s->family->architecture, "pooling_type") == TANDEM_POOLING_RANK;
    size_t n = 0;
    for (size_t i = 0; i < source->n_tensors; i++) {
        if (is_dropped(s->family, is_ranked, source->tensors[i].name)) {
            tnd_free((void *)(uintptr_t)source->tensors[i].name);
        } else {
            source->tensors[n++] = source->tensors[i];
        }
    }
    source->n_tensors = n;
}

/* Counts prediction layers (MTP) after the last layer: transformers ignores them, and many files
 * lack them whatever config.json says. The convention's block_count includes them. */
static enum tandem_status count_nextn(tandem_source *source, const struct tnd_hf_family *family,
                                      struct tandem_error *error)
{
    char name[96];
    struct tandem_source_tensor found;
    const struct tnd_llama_architecture *a = tnd_llama_architecture_of(family->architecture);
    const int64_t layers = value_of(source, family->architecture, "block_count");
    int64_t n = 0;
    do {
        snprintf(name, sizeof(name), "blk.%lld.nextn.eh_proj.weight", (long long)(layers + n));
    } while (tnd_llama_lists(a->keys, "nextn_predict_layers") && layers > 0 &&
             tandem_source_find(source, name, &found) && ++n < layers);
    snprintf(name, sizeof(name), "%.60s.block_count", family->architecture);
    for (size_t i = 0; n > 0 && i < source->n_values; i++) {
        source->values[i].integer += strcmp(source->values[i].key, name) == 0 ? n : 0;
    }
    snprintf(name, sizeof(name), "%.60s.nextn_predict_layers", family->architecture);
    return n > 0 ? tnd_source_set_integer(source, name, n, error) : TANDEM_OK;
}

enum tandem_status tnd_hf_finish(tandem_source *source, struct tandem_error *error)
{
    struct shaper s = {.source = source, .family = source->hf};
    TND_TRY(tnd_hf_unpack(source, error));
    TND_TRY(tnd_hf_join_experts(source, error));
    if (s.family == NULL) {
        return TANDEM_OK;
    }
    drop_heads(&s);
    for (size_t i = 0; i < source->n_tensors; i++) {
        s.file_bytes += 2 * source->tensors[i].bytes; /* no overflow: the tensors are in memory */
    }
    s.file_bytes += source->block_bytes;
    s.heads = value_of(source, s.family->architecture, "attention.head_count");
    s.kv_heads = value_of(source, s.family->architecture, "attention.head_count_kv");
    s.kv_heads = s.kv_heads > 0 ? s.kv_heads : s.heads;
    s.head_size = value_of(source, s.family->architecture, "attention.key_length");
    if (s.head_size == 0 && s.heads > 0) {
        s.head_size = value_of(source, s.family->architecture, "embedding_length") / s.heads;
    }
    TND_TRY(shape(&s, error));
    TND_TRY(count_nextn(source, s.family, error));
    tnd_free(source->by_name);
    source->by_name = NULL;
    source->n_by_name = 0;
    TND_TRY(tnd_source_check_names(source, "config.json", error)); /* names have changed */
    return tnd_source_check(source, error);
}
