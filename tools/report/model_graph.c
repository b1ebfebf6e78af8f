/* SPDX-License-Identifier: MIT
 * Graphs of models. Named sizes have the dimensions of the LLaMA paper (Touvron et al. 2023, table
 * 2) with the hidden sizes of its released weights, OpenLLaMA 3B, TinyLlama (1.1B) and quick, a
 * smaller one of our own, as in measure/models.c, which has their matrices; 8B and 70B those of
 * Llama 3 (Grattafiori et al. 2024, arXiv:2407.21783, table 3); 30B-A3B those of Qwen3-30B-A3B (its
 * config.json, and Yang et al. 2025, arXiv:2505.09388, table 2). */
#include "tools/report/model_graph.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/source.h"
#include "measure/models.h"

static const struct {
    const char *name;
    int64_t dim, hidden; /* hidden: of one expert if there are any */
    int64_t layers, heads, kv_heads, head_size, vocabulary;
    int64_t experts, used; /* per layer, and used by a token; 0: none */
} models[] = {
    {"quick", 1024, 2816, 8, 16, 4, 64, 8192, 0, 0},
    {"1.1B", 2048, 5632, 22, 32, 4, 64, 32000, 0, 0},
    {"3B", 3200, 8640, 26, 32, 32, 100, 32000, 0, 0},
    {"7B", 4096, 11008, 32, 32, 32, 128, 32000, 0, 0},
    {"8B", 4096, 14336, 32, 32, 8, 128, 128256, 0, 0},
    {"13B", 5120, 13824, 40, 40, 40, 128, 32000, 0, 0},
    {"30B", 6656, 17920, 60, 52, 52, 128, 32000, 0, 0},
    {"30B-A3B", 2048, 768, 48, 32, 4, 128, 151936, 128, 8},
    {"65B", 8192, 22016, 80, 64, 64, 128, 32000, 0, 0},
    {"70B", 8192, 28672, 80, 64, 8, 128, 128256, 0, 0},
};

enum tandem_status model_source_open(const char *name, enum tandem_type type,
                                     tandem_source **out_source, struct tandem_error *error)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        if (strcasecmp(tnd_model_name(name), models[i].name) == 0) {
            const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                                     .dim = models[i].dim,
                                                     .hidden = models[i].hidden,
                                                     .layers = models[i].layers,
                                                     .heads = models[i].heads,
                                                     .kv_heads = models[i].kv_heads,
                                                     .vocabulary = models[i].vocabulary,
                                                     .context = 4096,
                                                     .experts = models[i].experts,
                                                     .experts_used = models[i].used,
                                                     .head_size = models[i].head_size};
            return tnd_source_outline(&shape, type, out_source, error);
        }
    }
    return tandem_source_open(name, out_source, error);
}

enum tandem_status model_graphs_open(const char *name, enum tandem_type type,
                                     struct model_graphs *out, struct tandem_error *error)
{
    struct model_graphs graphs = {.source = NULL};
    TND_TRY(model_source_open(name, type, &graphs.source, error));
    enum tandem_status status = tandem_model_new(graphs.source, &graphs.model, error);
    if (status != TANDEM_OK) {
        model_graphs_close(&graphs);
        return status;
    }
    *out = graphs;
    return TANDEM_OK;
}

/* ---- hot and cold experts ---- */

/* A table from experts to their indices in the hot or the cold chain. */
static tandem_tensor *make_table(tandem_context *context, int64_t n, int64_t all, bool is_hot)
{
    const int64_t ne[] = {1, all};
    tandem_tensor *table = tandem_tensor_new(context, TANDEM_TYPE_I32, 2, ne);
    for (int64_t e = 0; table != NULL && e < all; e++) {
        ((int32_t *)tandem_tensor_data(table))[e] = (e < n) == is_hot ? (int32_t)e : -1;
    }
    return table;
}

/* A tensor with unique addresses but no memory: its values are never read. */
static tandem_tensor *stand_in(struct model_graphs *graphs, const tandem_tensor *from, int64_t n,
                               int64_t all)
{
    const size_t bytes = tandem_tensor_bytes(from) / (size_t)all * (size_t)n;
    const int64_t ne[] = {tandem_tensor_ne(from)[0], tandem_tensor_ne(from)[1], n};
    const uint8_t *data = graphs->hot_memory.data + graphs->hot_bytes;
    graphs->hot_bytes += tandem_tensor_bytes(from); /* larger than needed; stays aligned */
    return tandem_tensor_borrow_const(graphs->hot_context, tandem_tensor_type(from), 3, ne, data,
                                      bytes);
}

static void add_layer(struct model_graphs *graphs, int64_t l, int64_t n)
{
    const struct tnd_llama_layer *w = &graphs->model->layers[l];
    const int64_t all = graphs->model->hparams.experts;
    tandem_context *context = graphs->hot_context;
    struct tnd_llama_hot_layer layer = {context,
                                        stand_in(graphs, w->gate_exps, n, all),
                                        stand_in(graphs, w->up_exps, n, all),
                                        stand_in(graphs, w->down_exps, n, all),
                                        make_table(context, n, all, true),
                                        make_table(context, n, all, false),
                                        n,
                                        0,
                                        0};
    if (tandem_context_status(context, NULL) == TANDEM_OK) {
        graphs->hot[l] = layer;
    }
}

static bool reserve_hot(struct model_graphs *graphs)
{
    size_t bytes = 0;
    if (graphs->hot != NULL) {
        return true;
    }
    for (int64_t l = 0; l < graphs->model->hparams.layers; l++) {
        const struct tnd_llama_layer *w = &graphs->model->layers[l];
        bytes += tandem_tensor_bytes(w->gate_exps) + tandem_tensor_bytes(w->up_exps) +
                 tandem_tensor_bytes(w->down_exps);
    }
    if (tnd_file_reserve(bytes, &graphs->hot_memory, NULL) != TANDEM_OK ||
        tandem_context_new(NULL, &graphs->hot_context, NULL) != TANDEM_OK) {
        return false;
    }
    graphs->hot = tnd_calloc((size_t)graphs->model->hparams.layers, sizeof(graphs->hot[0]));
    return graphs->hot != NULL;
}

const void *model_graphs_add_hot(void *user, const void *data, int64_t n)
{
    struct model_graphs *graphs = user;
    const int64_t layers = graphs->model->hparams.layers;
    if (graphs->model->hparams.experts == 0 || !reserve_hot(graphs)) {
        return NULL;
    }
    for (int64_t l = 0; l < layers; l++) {
        const struct tnd_llama_layer *w = &graphs->model->layers[l];
        const bool is_gate = w->gate_exps != NULL && tandem_tensor_data(w->gate_exps) == data;
        const bool is_up = w->up_exps != NULL && tandem_tensor_data(w->up_exps) == data;
        const bool is_down = w->down_exps != NULL && tandem_tensor_data(w->down_exps) == data;
        if (!is_gate && !is_up && !is_down) {
            continue;
        }
        if (graphs->hot[l].context == NULL) {
            add_layer(graphs, l, n);
        }
        const struct tnd_llama_hot_layer *hot = &graphs->hot[l];
        return hot->context == NULL ? NULL
                                    : tandem_tensor_data(is_gate ? hot->gate_exps
                                                         : is_up ? hot->up_exps
                                                                 : hot->down_exps);
    }
    return NULL;
}

enum tandem_status model_graphs_place(struct model_graphs *graphs,
                                      const char *(*place_of)(void *user, const void *data),
                                      void *user, struct tandem_error *error)
{
    const size_t layers = (size_t)graphs->model->hparams.layers;
    tnd_free(graphs->stages.of_layer);
    graphs->stages.of_layer = tnd_calloc(layers + 1, sizeof(graphs->stages.of_layer[0]));
    if (graphs->stages.of_layer == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "graph", (int64_t)layers, 0,
                             "graph: out of memory");
    }
    graphs->has_places = tnd_llama_find_stages(graphs->model, place_of, user, &graphs->stages) != 0;
    return TANDEM_OK;
}

void model_graphs_close(struct model_graphs *graphs)
{
    tnd_free(graphs->stages.of_layer);
    tandem_context_free(graphs->hot_context);
    tnd_free(graphs->hot);
    tnd_file_close(&graphs->hot_memory);
    tandem_model_free(graphs->model);
    tandem_source_close(graphs->source);
}

/* Positions past .. past + m - 1 of one text, after `past` occupied cells. */
static enum tandem_status build(const struct model_graphs *graphs, int64_t m, int64_t past,
                                int n_micro, int32_t *numbers, struct model_graph *graph,
                                struct tandem_error *error)
{
    struct tnd_llama_kv_options options = {.n_cells = m + past, .type = TANDEM_TYPE_F16};
    int32_t *positions = numbers;
    int32_t *zeros = numbers + m + past;
    int32_t last = (int32_t)m - 1;
    struct tnd_llama_batch batch = {.m = m,
                                    .tokens = zeros,
                                    .positions = positions + past,
                                    .sequences = zeros,
                                    .outputs = &last,
                                    .n_outputs = 1,
                                    .hot = graphs->hot};
    struct tnd_llama_forward forward;
    struct tnd_llama_split split;
    for (int64_t i = 0; i < m + past; i++) {
        positions[i] = (int32_t)i;
        zeros[i] = 0;
    }
    tnd_llama_cut(&batch, &graphs->stages, graphs->has_places ? n_micro : 1, &split);
    batch.split = &split;
    TND_TRY(tandem_context_new(NULL, &graph->context, error));
    TND_TRY(tnd_llama_kv_cache_init(&graph->cache, &graphs->model->hparams, &options, error));
    if (past > 0) {
        TND_TRY(tnd_llama_kv_cache_take(&graph->cache, zeros, positions, past, error));
    }
    TND_TRY(tnd_llama_kv_cache_take(&graph->cache, zeros, batch.positions, m, error));
    TND_TRY(
        tnd_llama_forward(graphs->model, &graph->cache, &batch, graph->context, &forward, error));
    graph->graph = forward.graph;
    return TANDEM_OK;
}

enum tandem_status model_graph_build(const struct model_graphs *graphs, int64_t m, int64_t past,
                                     int n_micro, struct model_graph *out,
                                     struct tandem_error *error)
{
    struct model_graph graph;
    memset(&graph, 0, sizeof(graph));
    int32_t *numbers = tnd_calloc((size_t)(m + past), 2 * sizeof(*numbers));
    if (numbers == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "graph", m, 0, "graph: out of memory");
    }
    enum tandem_status status = build(graphs, m, past, n_micro, numbers, &graph, error);
    tnd_free(numbers);
    if (status != TANDEM_OK) {
        model_graph_fini(&graph);
        return status;
    }
    *out = graph;
    return TANDEM_OK;
}

void model_graph_fini(struct model_graph *graph)
{
    tnd_llama_kv_cache_fini(&graph->cache);
    tandem_context_free(graph->context);
}
