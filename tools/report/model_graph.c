/* SPDX-License-Identifier: MIT
 * Graphs of models. Those known by name have the dimensions of the LLaMA paper (Touvron et al.
 * 2023, table 2) with the hidden sizes of its released weights, OpenLLaMA 3B, TinyLlama (1.1B) and
 * quick, its little sister, as in measure/models.c, which knows their matrices; 8B and 70B those of
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
    int64_t dim, hidden; /* hidden: of one expert where there are some */
    int64_t layers, heads, kv_heads, head_size, vocabulary;
    int64_t experts, used; /* in a layer, and of them by a token; 0: none */
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
    struct model_graphs graphs = {NULL, NULL};
    TND_TRY(model_source_open(name, type, &graphs.source, error));
    enum tandem_status status = tandem_model_new(graphs.source, &graphs.model, error);
    if (status != TANDEM_OK) {
        model_graphs_close(&graphs);
        return status;
    }
    *out = graphs;
    return TANDEM_OK;
}

void model_graphs_close(struct model_graphs *graphs)
{
    tandem_model_free(graphs->model);
    tandem_source_close(graphs->source);
}

/* Positions past .. past + m - 1 of one text, behind cells that are taken. */
static enum tandem_status build(const struct model_graphs *graphs, int64_t m, int64_t past,
                                int32_t *numbers, struct model_graph *graph,
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
                                    .n_outputs = 1};
    struct tnd_llama_forward forward;
    for (int64_t i = 0; i < m + past; i++) {
        positions[i] = (int32_t)i;
        zeros[i] = 0;
    }
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
                                     struct model_graph *out, struct tandem_error *error)
{
    struct model_graph graph;
    memset(&graph, 0, sizeof(graph));
    int32_t *numbers = tnd_calloc((size_t)(m + past), 2 * sizeof(*numbers));
    if (numbers == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "graph", m, 0, "graph: out of memory");
    }
    enum tandem_status status = build(graphs, m, past, numbers, &graph, error);
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
