/* SPDX-License-Identifier: MIT
 * The graph of a llama's forward pass, for planning: of a model file, or of a named model size
 * without weights. */
#ifndef TND_MODEL_GRAPH_H
#define TND_MODEL_GRAPH_H

#include "base/file.h"
#include "llama/model.h"

struct model_graphs {
    struct tnd_llama_stages stages; /* of placed layers; none at first */
    bool has_places;                /* layers lie on several devices: passes may be split */
    tandem_source *source;
    tandem_model *model;
    struct tnd_llama_hot_layer *hot; /* {layers}; NULL: experts stay together */
    tandem_context *hot_context;
    struct tnd_file hot_memory; /* reserved addresses */
    size_t hot_bytes;           /* bytes of hot_memory in use */
};

/* One pass. */
struct model_graph {
    tandem_context *context;
    struct tnd_llama_kv_cache cache;
    tandem_graph *graph;
};

/** `name`: 7B and the like, without weights, of type `type`; else a file in any format that
 * formats/ reads. The caller closes the source. Errors: those of the readers. */
enum tandem_status model_source_open(const char *name, enum tandem_type type,
                                     tandem_source **out_source, struct tandem_error *error);

/** `name`: 7B and the like, with weights of `type`; else a file in any format that formats/ reads,
 * with its own types. End `out` with model_graphs_close. Errors: NOT_FOUND, those of the
 * readers. */
enum tandem_status model_graphs_open(const char *name, enum tandem_type type,
                                     struct model_graphs *out, struct tandem_error *error);
/** Zeroed ones are allowed. */
void model_graphs_close(struct model_graphs *graphs);

/** Makes all later passes keep the first `n` experts of a weight, given by its data, apart from the
 * others: returns the data of a weight that represents them, or NULL when out of memory. All
 * weights of a layer's experts get the same `n`, less than all of them. `graphs`: model_graphs. */
const void *model_graphs_add_hot(void *graphs, const void *data, int64_t n);

/** Sets where layers lie, as tnd_llama_find_stages does. Errors: MEMORY. */
enum tandem_status model_graphs_place(struct model_graphs *graphs,
                                      const char *(*place_of)(void *user, const void *data),
                                      void *user, struct tandem_error *error);

/** The pass of `m` tokens after `past` earlier ones in `n_micro` micro-batches (1: whole), with
 * logits of the last token. End `out` with model_graph_fini. */
enum tandem_status model_graph_build(const struct model_graphs *graphs, int64_t m, int64_t past,
                                     int n_micro, struct model_graph *out,
                                     struct tandem_error *error);
void model_graph_fini(struct model_graph *graph);

#endif
