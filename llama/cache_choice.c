/* SPDX-License-Identifier: MIT
 * Chooses the type of keys and values by memory, rounding error and predicted time of attention. */
#include "llama/cache_choice.h"

#include <math.h>
#include <stdlib.h>

#include "llama/llama_error.h"

/* Rounding errors: sum of squared errors over sum of squares, for normally distributed values in
 * blocks of 32. Measured; test: errors_of_caches_are_what_is_said. */
static const struct {
    enum tandem_type type;
    double error;
} types[TND_CACHE_CHOICES] = {
    {TANDEM_TYPE_F16, 5e-8},
    {TANDEM_TYPE_Q8_0, 4e-5},
    {TANDEM_TYPE_Q4_0, 8e-3},
};

/* Types with larger errors are only used if nothing else fits. Why: with Q8_0 attention keeps the
 * leading digits, while Q4_0 changes what a model writes (docs/running-a-model.md). */
static const double MOST_ERROR = 1e-4;
/* Share of attention's time that a less exact type must save. Why: less is within a table's
 * noise. */
static const double LEAST_GAIN = 0.1;
/* Cells for which attention is predicted; its time is proportional to them. Why: tables have times
 * of attention over 2,048. */
enum { MOST_CELLS = 2048 };

/* Predicts one token's attention over n cells of a layer. */
static enum tandem_status predict(const struct tandem_hparams *h, tandem_runtime *runtime,
                                  enum tandem_type type, int64_t n, double *out_us,
                                  struct tandem_error *error)
{
    const int64_t kv_heads = h->kv_heads > 0 ? h->kv_heads : 1;
    const int64_t q_ne[] = {h->head_size, 1, h->heads};
    const int64_t k_ne[] = {h->head_size, n, kv_heads};
    struct tandem_prediction prediction = {0};
    tandem_context *c = NULL;
    LLAMA_TRY(tandem_context_new(NULL, &c, error));
    tandem_tensor *q = tandem_tensor_new(c, TANDEM_TYPE_F32, 3, q_ne);
    tandem_tensor *k = tandem_tensor_new(c, type, 3, k_ne);
    tandem_graph *graph = tandem_graph_new(c);
    tandem_graph_add(graph, tandem_attention(c, q, k, k, NULL, 1.0f));
    enum tandem_status status = tandem_context_status(c, error);
    status = status == TANDEM_OK ? tandem_graph_finish(graph, error) : status;
    status =
        status == TANDEM_OK ? tandem_runtime_predict(runtime, graph, &prediction, error) : status;
    tandem_context_free(c);
    *out_us = prediction.us;
    return status;
}

static int64_t bytes_of(const struct tandem_hparams *h, enum tandem_type type, int64_t n_cells)
{
    const int64_t kv_heads = h->kv_heads > 0 ? h->kv_heads : 1;
    const double bytes = 2.0 * (double)tandem_type_row_bytes(type, h->head_size) *
                         (double)kv_heads * (double)n_cells *
                         (double)(h->is_encoder ? 0 : h->layers);
    return bytes < 9e18 ? (int64_t)bytes : INT64_MAX;
}

int tnd_llama_pick_cache(const struct tandem_cache_info *list, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        if (!list[i].fits || (best >= 0 && list[i].error > MOST_ERROR)) {
            continue;
        }
        const bool is_known = best >= 0 && list[i].attention_us > 0 && list[best].attention_us > 0;
        if (best < 0 ||
            (is_known && list[i].attention_us < list[best].attention_us * (1 - LEAST_GAIN))) {
            best = i;
        }
    }
    for (int i = 0; best < 0 && i < n; i++) {
        best = i + 1 == n || list[i].bytes < list[i + 1].bytes ? i : -1;
    }
    return best;
}

enum tandem_status tnd_llama_choose_cache(const tandem_model *model, tandem_runtime *runtime,
                                          int64_t n_cells, int64_t n_positions, bool is_unfused,
                                          int64_t memory, struct tnd_llama_cache_choices *out,
                                          enum tandem_type *out_type, struct tandem_error *error)
{
    const struct tandem_hparams *h = tandem_model_hparams(model);
    const int64_t half = n_positions / 2 > 0 ? n_positions / 2 : 1;
    const int64_t n = half < MOST_CELLS ? half : MOST_CELLS;
    out->n = 0;
    for (int i = 0; i < TND_CACHE_CHOICES; i++) {
        const enum tandem_type type = types[i].type;
        struct tandem_cache_info *info = &out->list[out->n];
        if (h->head_size % tandem_type_block_values(type) != 0 ||
            (is_unfused && tandem_type_is_quantized(type))) {
            continue;
        }
        *info = (struct tandem_cache_info){.type = type,
                                           .is_planned = true,
                                           .bytes = bytes_of(h, type, n_cells),
                                           .error = types[i].error};
        info->fits = memory == 0 || info->bytes <= memory;
        if (tandem_runtime_table_status(runtime, NULL) == TANDEM_OK) {
            LLAMA_TRY(predict(h, runtime, type, n, &info->attention_us, error));
            info->attention_us *= (double)h->layers * (double)half / (double)n;
        }
        out->n++;
    }
    const int chosen = tnd_llama_pick_cache(out->list, out->n);
    out->list[chosen].is_chosen = true;
    *out_type = out->list[chosen].type;
    return TANDEM_OK;
}

void tnd_llama_cache_given(const struct tnd_llama_kv_cache *cache,
                           struct tnd_llama_cache_choices *out)
{
    const double row = (double)tandem_type_row_bytes(cache->type, cache->head_size);
    double bytes = 0;
    for (int64_t l = cache->begin; l < cache->end; l++) {
        bytes += 2.0 * row * (double)tnd_llama_kv_heads_of(cache, l) * (double)cache->n_cells;
    }
    out->n = 1;
    out->list[0] = (struct tandem_cache_info){
        .type = cache->type, .is_chosen = true, .fits = true, .bytes = (int64_t)bytes};
    for (int i = 0; i < TND_CACHE_CHOICES; i++) {
        if (types[i].type == cache->type) {
            out->list[0].error = types[i].error;
        }
    }
}
