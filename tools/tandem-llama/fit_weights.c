/* SPDX-License-Identifier: MIT
 * Lists of weights. */
#include "tools/tandem-llama/fit_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/model_graph.h"
#include "tools/tandem-llama/cli.h"

static enum tandem_status reserve(struct tnd_fit_weights *weights, size_t n, bool has_names,
                                  struct tandem_error *error)
{
    weights->list = calloc(n + 1, sizeof(weights->list[0]));
    weights->names = has_names ? calloc(n + 1, sizeof(weights->names[0])) : NULL;
    return weights->list != NULL && (!has_names || weights->names != NULL)
               ? TANDEM_OK
               : tnd_cli_error(error, TANDEM_E_MEMORY, "no memory for the list of weights of",
                               "fit");
}

/* ---- a model that is known by name ---- */

enum { ROLES = 13, OUTSIDE = 3 };

static void add(struct tnd_fit_weights *weights, const char *name, int64_t layer,
                enum tandem_type type, int64_t k, int64_t n, int64_t n_experts)
{
    if (k == 0 || n == 0 || n_experts == 0) {
        return; /* this model has none */
    }
    if (n == 1 || k % tandem_type_block_values(type) != 0) {
        type = TANDEM_TYPE_F32;
    }
    struct tnd_fit_weight *weight = &weights->list[weights->n];
    char *text = weights->names[weights->n++];
    if (layer >= 0) {
        snprintf(text, sizeof(weights->names[0]), "blk.%lld.%s", (long long)layer, name);
    } else {
        snprintf(text, sizeof(weights->names[0]), "%s", name);
    }
    *weight = (struct tnd_fit_weight){
        text, type, k, n, n_experts, (int64_t)tandem_type_row_bytes(type, k) * n * n_experts};
}

/* Norms and routers are F32, as converters leave them. */
static void add_layer(struct tnd_fit_weights *weights, const struct model_shape *m, int64_t layer,
                      enum tandem_type type)
{
    const int64_t q = m->heads * m->head_size;
    const int64_t kv = m->kv_heads * m->head_size;
    const int64_t dense = m->experts == 0 ? m->hidden : 0;
    add(weights, "attn_norm.weight", layer, TANDEM_TYPE_F32, m->dim, 1, 1);
    add(weights, "attn_q.weight", layer, type, m->dim, q, 1);
    add(weights, "attn_k.weight", layer, type, m->dim, kv, 1);
    add(weights, "attn_v.weight", layer, type, m->dim, kv, 1);
    add(weights, "attn_output.weight", layer, type, q, m->dim, 1);
    add(weights, "ffn_norm.weight", layer, TANDEM_TYPE_F32, m->dim, 1, 1);
    add(weights, "ffn_gate.weight", layer, type, m->dim, dense, 1);
    add(weights, "ffn_up.weight", layer, type, m->dim, dense, 1);
    add(weights, "ffn_down.weight", layer, type, dense, m->dim, 1);
    add(weights, "ffn_gate_inp.weight", layer, TANDEM_TYPE_F32, m->dim, m->experts, 1);
    add(weights, "ffn_gate_exps.weight", layer, type, m->dim, m->hidden, m->experts);
    add(weights, "ffn_up_exps.weight", layer, type, m->dim, m->hidden, m->experts);
    add(weights, "ffn_down_exps.weight", layer, type, m->hidden, m->dim, m->experts);
}

static enum tandem_status list_shape(const struct model_shape *shape, enum tandem_type type,
                                     struct tnd_fit_weights *weights, struct tandem_error *error)
{
    CLI_TRY(reserve(weights, (size_t)shape->layers * ROLES + OUTSIDE, true, error));
    add(weights, "token_embd.weight", -1, type, shape->dim, shape->vocabulary, 1);
    for (int64_t layer = 0; layer < shape->layers; layer++) {
        add_layer(weights, shape, layer, type);
    }
    add(weights, "output_norm.weight", -1, TANDEM_TYPE_F32, shape->dim, 1, 1);
    add(weights, "output.weight", -1, type, shape->dim, shape->vocabulary, 1);
    weights->n_used = shape->used;
    return TANDEM_OK;
}

/* ---- a model file ---- */

static int64_t used_experts(const tandem_source *source)
{
    const char *architecture = NULL;
    char key[96];
    int64_t used = 0;
    if (tandem_source_text(source, "general.architecture", &architecture)) {
        snprintf(key, sizeof(key), "%.40s.expert_used_count", architecture);
        (void)tandem_source_integer(source, key, &used);
    }
    return used > 0 ? used : 0;
}

static enum tandem_status list_source(struct tnd_fit_weights *weights, struct tandem_error *error)
{
    const int n = tandem_source_tensor_count(weights->source);
    CLI_TRY(reserve(weights, (size_t)n, false, error));
    struct tandem_source_tensor tensor;
    for (int i = 0; i < n && tandem_source_tensor_at(weights->source, i, &tensor); i++) {
        weights->list[weights->n++] =
            (struct tnd_fit_weight){tensor.name,
                                    tensor.type,
                                    tensor.ne[0],
                                    tensor.n_dims > 1 ? tensor.ne[1] : 1,
                                    tensor.n_dims > 2 ? tensor.ne[2] : 1,
                                    tensor.bytes <= INT64_MAX ? (int64_t)tensor.bytes : INT64_MAX};
    }
    weights->n_used = used_experts(weights->source);
    return TANDEM_OK;
}

/* ---- both ---- */

/* Sums that do not fit, of hostile files, are refused where weights are priced. */
static void count_bytes(struct tnd_fit_weights *weights)
{
    double most = 0;
    double all = 0;
    double of_type[256] = {0};
    for (int i = 0; i < weights->n; i++) {
        const struct tnd_fit_weight *weight = &weights->list[i];
        double *sum = &of_type[(unsigned)weight->type % 256];
        *sum += (double)weight->bytes;
        all += (double)weight->bytes;
        if (*sum > most) {
            most = *sum;
            weights->type = weight->type;
        }
    }
    weights->bytes = all < 9e18 ? (int64_t)all : INT64_MAX;
}

enum tandem_status tnd_fit_weights_open(const char *model, enum tandem_type type,
                                        struct tnd_fit_weights *out, struct tandem_error *error)
{
    struct tnd_fit_weights weights = {.n = 0};
    const struct model_shape *shape = model_shape_of(model);
    enum tandem_status status = TANDEM_OK;
    if (shape != NULL) {
        status = list_shape(shape, type, &weights, error);
    } else {
        status = tandem_source_open(model, &weights.source, error);
        status = status == TANDEM_OK ? list_source(&weights, error) : status;
    }
    if (status != TANDEM_OK) {
        tnd_fit_weights_fini(&weights);
        return status;
    }
    count_bytes(&weights);
    *out = weights;
    return TANDEM_OK;
}

void tnd_fit_weights_fini(struct tnd_fit_weights *weights)
{
    free(weights->list);
    free(weights->names);
    tandem_source_close(weights->source);
    memset(weights, 0, sizeof(*weights));
}
