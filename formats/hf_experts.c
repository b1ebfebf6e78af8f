/* SPDX-License-Identifier: MIT
 * Hugging Face's models store each expert's matrix as a tensor; the GGUF convention stores a
 * layer's as one tensor {K, N, experts}. Joins them after all tensors of a model have been read. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/vector.h"
#include "formats/cursor.h"
#include "formats/safetensors.h"

/* A name made by tnd_safetensors_map_name: blk.LAYER.KIND.EXPERT.weight. */
struct expert_name {
    long long layer, expert;
    char kind[16]; /* ffn_gate, ffn_up, ffn_down */
};

static bool parse(const char *name, struct expert_name *out)
{
    char again[96];
    if (sscanf(name, "blk.%9lld.%15[a-z_].%6lld.", &out->layer, out->kind, &out->expert) != 3) {
        return false;
    }
    snprintf(again, sizeof(again), "blk.%lld.%s.%lld.weight", out->layer, out->kind, out->expert);
    return strcmp(name, again) == 0 &&
           (strcmp(out->kind, "ffn_gate") == 0 || strcmp(out->kind, "ffn_up") == 0 ||
            strcmp(out->kind, "ffn_down") == 0);
}

/* Joined tensors, until the source's list may change. */
struct joined {
    struct tandem_source_tensor tensor; /* the first expert's, with the data and bytes of all */
    struct expert_name name;
};

static enum tandem_status find_expert(const tandem_source *source, const struct expert_name *first,
                                      int64_t expert, const struct tandem_source_tensor *like,
                                      struct tandem_source_tensor *out, struct tandem_error *error)
{
    char name[96];
    snprintf(name, sizeof(name), "blk.%lld.%s.%lld.weight", first->layer, first->kind,
             (long long)expert);
    if (!tandem_source_find(source, name, out)) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, name, expert, 0,
                             "llama: the model has no tensor %s", name);
    }
    if (out->type != like->type || out->n_dims != 2 || out->ne[0] != like->ne[0] ||
        out->ne[1] != like->ne[1] || out->bytes != like->bytes) {
        return tnd_error_set(error, TANDEM_E_SHAPE, name, out->ne[0], like->ne[0],
                             "llama: %s has another type or other extents than the same matrix of "
                             "expert 0",
                             name);
    }
    return TANDEM_OK;
}

static enum tandem_status join(tandem_source *source, struct joined *joined, int64_t experts,
                               size_t file_bytes, struct tandem_error *error)
{
    const struct tandem_source_tensor first = joined->tensor;
    struct tandem_source_tensor one;
    void *memory = NULL;
    size_t bytes = 0;
    for (int64_t e = 0; e < experts; e++) { /* ends at the first missing */
        TND_TRY(find_expert(source, &joined->name, e, &first, &one, error));
    }
    if (!tnd_mul_size(first.bytes, (size_t)experts, &bytes)) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, first.name, experts, 0,
                             "llama: the bytes of all experts as %s do not fit into 64 bits",
                             first.name);
    }
    TND_TRY(tnd_source_alloc(source, first.name, bytes, file_bytes, &memory, error));
    for (int64_t e = 0; e < experts; e++) {
        TND_TRY(find_expert(source, &joined->name, e, &first, &one, error));
        memcpy((char *)memory + (size_t)e * first.bytes, one.data, first.bytes);
    }
    joined->tensor.data = memory;
    joined->tensor.bytes = bytes;
    joined->tensor.ne[2] = experts;
    return TANDEM_OK;
}

static enum tandem_status join_all(tandem_source *source, int64_t experts, struct joined **out,
                                   size_t *out_n, struct tandem_error *error)
{
    size_t capacity = 0;
    size_t file_bytes = source->block_bytes;
    for (size_t i = 0; i < source->n_tensors; i++) {
        file_bytes += source->tensors[i].bytes; /* no overflow: the tensors are in memory */
    }
    for (size_t i = 0; i < source->n_tensors; i++) {
        struct joined one = {.tensor = source->tensors[i]};
        if (!parse(one.tensor.name, &one.name) || one.name.expert != 0) {
            continue;
        }
        if (!tnd_grow(out, *out_n, &capacity, sizeof(one))) {
            return tnd_error_set(error, TANDEM_E_MEMORY, one.tensor.name, 0, 0,
                                 "llama: no memory for the list of experts");
        }
        TND_TRY(join(source, &one, experts, file_bytes, error));
        (*out)[(*out_n)++] = one;
    }
    return TANDEM_OK;
}

/* Removes joined experts from the list; others are refused by name later. */
static void drop_single(tandem_source *source, int64_t experts)
{
    struct expert_name name;
    size_t kept = 0;
    for (size_t i = 0; i < source->n_tensors; i++) {
        struct tandem_source_tensor *tensor = &source->tensors[i];
        if (parse(tensor->name, &name) && name.expert < experts) {
            tnd_free((void *)(uintptr_t)tensor->name);
        } else {
            source->tensors[kept++] = *tensor;
        }
    }
    source->n_tensors = kept;
    tnd_free(source->by_name);
    source->by_name = NULL;
    source->n_by_name = 0;
}

enum tandem_status tnd_hf_join_experts(tandem_source *source, struct tandem_error *error)
{
    const char *architecture = "";
    char key[96];
    int64_t experts = 0;
    struct joined *joined = NULL;
    size_t n = 0;
    (void)tandem_source_text(source, "general.architecture", &architecture);
    snprintf(key, sizeof(key), "%.60s.expert_count", architecture);
    if (!tandem_source_integer(source, key, &experts) || experts < 1) {
        return TANDEM_OK;
    }
    tnd_source_index(source);
    enum tandem_status status = join_all(source, experts, &joined, &n, error);
    if (status == TANDEM_OK) {
        drop_single(source, experts);
    }
    for (size_t i = 0; i < n && status == TANDEM_OK; i++) {
        char name[96];
        snprintf(name, sizeof(name), "blk.%lld.%s_exps.weight", joined[i].name.layer,
                 joined[i].name.kind);
        status = tnd_source_add(source, name, joined[i].tensor.type, 3, joined[i].tensor.ne,
                                joined[i].tensor.data, joined[i].tensor.bytes, error);
    }
    tnd_free(joined);
    return status == TANDEM_OK ? tnd_source_check(source, error) : status;
}
