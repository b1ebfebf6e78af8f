/* SPDX-License-Identifier: MIT
 * Counts which experts a session's tokens use: the routers' choices are outputs of each graph and
 * are counted after its run, on any backend. */
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/session.h"

static int64_t bytes_of(const tandem_tensor *tensor)
{
    return (int64_t)tandem_tensor_bytes(tensor);
}

enum tandem_status tnd_llama_experts_init(struct tnd_llama_expert_counts *counts,
                                          const tandem_model *model, struct tandem_error *error)
{
    const size_t layers = (size_t)model->hparams.layers;
    const size_t experts = (size_t)model->hparams.experts;
    if (experts == 0) {
        return TANDEM_OK;
    }
    counts->ids = calloc(layers * TND_LLAMA_MICRO_BATCHES, sizeof(counts->ids[0]));
    counts->hits = calloc(layers * experts, sizeof(counts->hits[0]));
    counts->expert_bytes = calloc(layers, sizeof(counts->expert_bytes[0]));
    counts->is_used = calloc(experts, 1);
    if (counts->ids == NULL || counts->hits == NULL || counts->expert_bytes == NULL ||
        counts->is_used == NULL) {
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", model->hparams.experts, 0,
                              "llama: no memory to count %lld experts",
                              (long long)model->hparams.experts);
    }
    for (size_t l = 0; l < layers; l++) {
        const struct tnd_llama_layer *w = &model->layers[l];
        const int64_t bytes =
            bytes_of(w->gate_exps) + bytes_of(w->up_exps) + bytes_of(w->down_exps);
        counts->expert_bytes[l] = bytes / model->hparams.experts;
        counts->bytes_all += bytes;
    }
    return TANDEM_OK;
}

void tnd_llama_experts_fini(struct tnd_llama_expert_counts *counts)
{
    free(counts->ids);
    free(counts->hits);
    free(counts->expert_bytes);
    free(counts->is_used);
}

void tnd_llama_experts_forget(tandem_session *session)
{
    const size_t n = (size_t)session->model->hparams.layers * TND_LLAMA_MICRO_BATCHES;
    if (session->experts.ids != NULL) {
        memset(session->experts.ids, 0, n * sizeof(session->experts.ids[0]));
    }
}

/* Counts the tokens of a micro-batch in a layer; `ids`: {used, m}. */
static void count_layer(tandem_session *session, int64_t layer, const tandem_tensor *ids)
{
    struct tnd_llama_expert_counts *counts = &session->experts;
    struct tnd_llama_hot *hot = &session->hot;
    const int64_t experts = session->model->hparams.experts;
    const int32_t *values = tandem_tensor_data(ids);
    for (int64_t i = 0; i < tandem_tensor_elements(ids); i++) {
        LLAMA_ASSERT(values[i] >= 0 && values[i] < experts); /* top_k returns valid indices */
        const int64_t expert = layer * experts + values[i];
        const int64_t bytes = counts->is_used[values[i]] != 0 ? 0 : counts->expert_bytes[layer];
        counts->hits[expert]++;
        hot->recent[expert]++;
        counts->bytes_last += bytes;
        counts->cold_bytes_last += hot->whole[layer] || hot->now[expert] != 0 ? 0 : bytes;
        counts->is_used[values[i]] = 1;
    }
}

void tnd_llama_experts_count(tandem_session *session, const struct tnd_llama_batch *batch)
{
    struct tnd_llama_expert_counts *counts = &session->experts;
    const int64_t layers = session->model->hparams.layers;
    const int64_t experts = session->model->hparams.experts;
    if (experts == 0) {
        return;
    }
    counts->bytes_last = counts->cold_bytes_last = 0;
    for (int64_t l = 0; l < layers; l++) {
        memset(counts->is_used, 0, (size_t)experts);
        for (int i = 0; i < batch->split->n; i++) {
            count_layer(session, l, counts->ids[i * layers + l]);
        }
    }
    counts->batches++;
    counts->tokens += batch->m;
    counts->bytes_sum += counts->bytes_last;
    counts->cold_bytes_sum += counts->cold_bytes_last;
    tnd_llama_hot_count(&session->hot, batch->m);
}

bool tandem_session_expert_use(const tandem_session *session, struct tandem_expert_use *out)
{
    if (session == NULL || out == NULL || session->experts.hits == NULL) {
        return false;
    }
    const struct tnd_llama_expert_counts *counts = &session->experts;
    *out = (struct tandem_expert_use){.layers = session->model->hparams.layers,
                                      .experts = session->model->hparams.experts,
                                      .hits = counts->hits,
                                      .batches = counts->batches,
                                      .tokens = counts->tokens,
                                      .bytes_all = counts->bytes_all,
                                      .bytes_last = counts->bytes_last,
                                      .bytes_sum = counts->bytes_sum};
    return true;
}
