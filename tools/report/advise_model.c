/* SPDX-License-Identifier: MIT
 * Reading a model's sizes from the names and extents of its tensors, which are those of GGUF files
 * (docs/gguf.md of the ggml project). */
#include "tools/report/advise_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"

/* Layer of "blk.12.ffn_up.weight"; -1: none. */
static int layer_of(const char *name)
{
    int layer = -1;
    int length = 0;
    if (sscanf(name, "blk.%6d.%n", &layer, &length) != 1 || length == 0) {
        return -1;
    }
    return layer;
}

/* 0 for a missing number and an implausible one. */
static int64_t integer_of(const tandem_source *source, const char *architecture, const char *key)
{
    char whole[96];
    int64_t value = 0;
    snprintf(whole, sizeof(whole), "%s.%s", architecture, key);
    return tandem_source_integer(source, whole, &value) && value > 0 && value < 1 << 24 ? value : 0;
}

static enum tandem_status add_product(struct tnd_advise_model *out,
                                      const struct tandem_source_tensor *tensor, bool of_experts,
                                      struct tandem_error *error)
{
    if (tensor->ne[0] < 2 || tensor->ne[1] < 2 || tensor->type == TANDEM_TYPE_I32) {
        return TANDEM_OK;
    }
    return tnd_shapes_count(of_experts ? &out->experts_of : &out->dense, tensor->type,
                            tensor->ne[1], tensor->ne[0], 1, error);
}

static enum tandem_status add_to_layer(struct tnd_advise_model *out, int index,
                                       const struct tandem_source_tensor *tensor,
                                       struct tandem_error *error)
{
    if (index >= TND_ADVISE_LAYERS) {
        return tnd_error_set(error, TANDEM_E_LIMIT, tensor->name, index, TND_ADVISE_LAYERS,
                             "%.100s: more than %d layers", tensor->name, TND_ADVISE_LAYERS);
    }
    struct tnd_advise_layer *layer = &out->layers[index];
    const bool of_experts = tensor->n_dims == 3;
    const int64_t bytes = (int64_t)tensor->bytes;
    out->n_layers = index >= out->n_layers ? index + 1 : out->n_layers;
    if (of_experts) {
        layer->expert_bytes += bytes;
    } else {
        layer->dense_bytes += bytes;
    }
    if (strstr(tensor->name, ".attn_k.weight") != NULL ||
        strstr(tensor->name, ".attn_v.weight") != NULL) {
        layer->kv_values += tensor->ne[1];
    }
    return tensor->n_dims >= 2 ? add_product(out, tensor, of_experts, error) : TANDEM_OK;
}

static enum tandem_status add_tensor(struct tnd_advise_model *out,
                                     const struct tandem_source_tensor *tensor, bool is_tied,
                                     struct tandem_error *error)
{
    const int index = layer_of(tensor->name);
    int64_t weights = 1;
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        weights *= tensor->ne[i];
    }
    out->weights += weights;
    out->bytes += (int64_t)tensor->bytes;
    if (index >= 0) {
        return add_to_layer(out, index, tensor, error);
    }
    const bool is_embedding = strcmp(tensor->name, "token_embd.weight") == 0;
    if (is_embedding) {
        out->embedding_bytes += (int64_t)tensor->bytes;
    }
    if (!is_embedding || is_tied) {
        out->output_bytes += (int64_t)tensor->bytes;
    }
    const bool is_output = strcmp(tensor->name, "output.weight") == 0 || (is_embedding && is_tied);
    return is_output ? add_product(out, tensor, false, error) : TANDEM_OK;
}

/* If keys and values share a matrix with the queries, computes their widths from the metadata. */
static void complete_kv(const tandem_source *source, struct tnd_advise_model *out)
{
    const int64_t dim = integer_of(source, out->architecture, "embedding_length");
    const int64_t heads = integer_of(source, out->architecture, "attention.head_count");
    const int64_t kv_heads = integer_of(source, out->architecture, "attention.head_count_kv");
    const int64_t key = integer_of(source, out->architecture, "attention.key_length");
    const int64_t value = integer_of(source, out->architecture, "attention.value_length");
    const int64_t head = heads > 0 ? dim / heads : 0;
    const int64_t width =
        (kv_heads > 0 ? kv_heads : heads) * ((key > 0 ? key : head) + (value > 0 ? value : head));
    for (int i = 0; i < out->n_layers; i++) {
        if (out->layers[i].kv_values == 0) {
            out->layers[i].kv_values = width;
        }
    }
}

enum tandem_status tnd_advise_model_read(const tandem_source *source, const char *name,
                                         struct tnd_advise_model *out, struct tandem_error *error)
{
    const char *architecture = "llama";
    struct tandem_source_tensor tensor;
    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "%s", name);
    (void)tandem_source_text(source, "general.architecture", &architecture);
    snprintf(out->architecture, sizeof(out->architecture), "%s", architecture);
    out->experts = integer_of(source, out->architecture, "expert_count");
    out->experts_used = integer_of(source, out->architecture, "expert_used_count");
    out->context = integer_of(source, out->architecture, "context_length");
    const bool is_tied = !tandem_source_find(source, "output.weight", &tensor);
    for (int i = 0; i < tandem_source_tensor_count(source); i++) {
        if (tandem_source_tensor_at(source, i, &tensor)) {
            TND_TRY(add_tensor(out, &tensor, is_tied, error));
        }
    }
    if (out->n_layers == 0 || out->weights <= 0 || out->bytes <= 0) {
        return tnd_error_set(
            error, TANDEM_E_FORMAT, name, out->n_layers, 1,
            "%.200s: no weights of layers in it, expected tensors named blk.0. and "
            "so on",
            name);
    }
    if (out->experts_used < 1 || out->experts_used > out->experts) {
        out->experts_used = out->experts;
    }
    complete_kv(source, out);
    return TANDEM_OK;
}

double tnd_advise_active_bytes(const struct tnd_advise_model *model)
{
    const double used =
        model->experts > 0 ? (double)model->experts_used / (double)model->experts : 1.0;
    double bytes = (double)model->output_bytes;
    for (int i = 0; i < model->n_layers; i++) {
        bytes +=
            (double)model->layers[i].dense_bytes + used * (double)model->layers[i].expert_bytes;
    }
    return bytes;
}

double tnd_advise_kv_bytes(const struct tnd_advise_layer *layer, int64_t context,
                           enum tandem_type cache)
{
    const double value =
        (double)tandem_type_block_bytes(cache) / (double)tandem_type_block_values(cache);
    return value * (double)layer->kv_values * (double)context;
}
