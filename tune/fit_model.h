/* SPDX-License-Identifier: MIT
 * Turns a model's weights into a problem of fit.h: groups of a layer (attention with its keys and
 * values, feed-forward, experts), each with its predicted time on every side for a prompt and for a
 * generated token. Knows weights only by their GGUF names. docs/placing-weights.md lists what is
 * priced and what is not. */
#ifndef TND_FIT_MODEL_H
#define TND_FIT_MODEL_H

#include "backends/registry.h"
#include "table/tnd_table.h"
#include "tune/fit.h"

enum tnd_fit_phase { TND_FIT_PROMPT, TND_FIT_GENERATION, TND_FIT_PHASES };

/* In the order in which a layer computes them. */
enum tnd_fit_part {
    TND_FIT_EMBEDDING, /* a look-up of rows: stays in host memory */
    TND_FIT_ATTENTION, /* with the layer's keys and values */
    TND_FIT_FFN,       /* with the router and shared experts */
    TND_FIT_EXPERTS,   /* routed experts; one group a layer, several if their use is known */
    TND_FIT_OUTPUT,
    TND_FIT_OTHER, /* unknown name: a group of its own */
    TND_FIT_PARTS
};

struct tnd_fit_weight {
    const char *name; /* GGUF: "blk.0.attn_q.weight"; NULL: unknown */
    enum tandem_type type;
    int64_t k, n;      /* W is n x k; vectors have n = 1 and a price of 0 */
    int64_t n_experts; /* matrices of n x k; 1: not an expert weight */
    int64_t bytes;     /* of all experts together */
};

struct tnd_fit_options {
    const struct tandem_table *table;
    const struct tnd_registry *registry; /* of the devices; NULL: all profiles of the table */
    double error_bound;                  /* as for tnd_planner_set_error_bound */
    int n_threads;                       /* of the CPU */
    int n_devices;                       /* at most TND_FIT_SIDES - 1 */
    const char *devices[TND_FIT_SIDES];  /* name of each device in the table, at [side] */
    int64_t memory[TND_FIT_SIDES];       /* bytes of each device, at [side] */
    int64_t budget[TND_FIT_SIDES];       /* limit for weights, keys and values; 0: unknown */
    int64_t n_used;                      /* experts that a token uses; 0: all */
    int64_t prompt_tokens;               /* of a pass; 0: TND_FIT_PROMPT_TOKENS */
    int64_t n_texts;      /* texts that get a token in a pass of generation; 0: one */
    int64_t context;      /* capacity of the KV cache in tokens */
    bool returns_to_host; /* results of each group are downloaded to the host, and uploaded again */
    enum tandem_type cache_type;
    /* {use_experts, use_layers}: fraction of tokens that use each expert, 0 to 1; NULL: all experts
     * are equally likely, and those of a layer stay together */
    const double *expert_use;
    int64_t use_experts, use_layers;
    const uint8_t *hot_now; /* as expert_use; not 0: a device keeps the expert */
};

struct tnd_fit_group {
    enum tnd_fit_part part;
    int32_t layer; /* -1: before the layers; n_layers: after them */
    int32_t n_weights;
    int64_t bytes;       /* of the weights */
    int64_t cache_bytes; /* keys and values of the layer */
    /* This group's range in the layer's experts sorted by use; 0, 0: all. */
    int32_t first_rank, n_ranks;
    /* INFINITY: not possible. Side 0: by the CPU, or by a device with the weights in flight. */
    double us[TND_FIT_PHASES][TND_FIT_SIDES];
    double error_us[TND_FIT_PHASES][TND_FIT_SIDES];
    double cpu_us[TND_FIT_PHASES]; /* by the CPU alone */
    double cpu_error_us[TND_FIT_PHASES];
};

struct tnd_fit_model {
    int n_sides;
    bool returns_to_host; /* as in struct tnd_fit_options */
    int64_t prompt_tokens, n_texts;
    int64_t fixed_bytes; /* of each device: the reserve, results, a matrix in F32 */
    int32_t n_layers;
    int n_groups;
    struct tnd_fit_group *groups; /* in the order of the computation */
    int32_t *group_of; /* group of each weight; for split experts the first group of the layer */
    int32_t *ranks;    /* {use_experts, use_layers}: experts of each layer, the most used ones
                          first; NULL: they stay together */
    int64_t n_ranked;  /* experts per layer in `ranks` */
    double largest_us[TND_FIT_PHASES][TND_FIT_SIDES]; /* of a side's largest product */
    double move_us[TND_FIT_PHASES][TND_FIT_SIDES][TND_FIT_SIDES];
    int64_t capacity[TND_FIT_SIDES]; /* for weights, keys and values */
};

/** Parses a name such as "blk.3.attn_q.weight". Unknown names: OTHER, layer -1. */
enum tnd_fit_part tnd_fit_part_of(const char *name, int32_t *out_layer);
/** "attention" and so on; static. */
const char *tnd_fit_part_name(enum tnd_fit_part part);

/** Prices all groups. Without an output matrix the embedding is also the output matrix. Free `out`
 * with tnd_fit_model_fini. Errors: NOT_FOUND (the table has no times for the CPU, or for too many
 * of the weights; the message says which), ARGUMENT (invalid sizes), LIMIT (groups), MEMORY. */
enum tandem_status tnd_fit_model_new(const struct tnd_fit_weight *weights, int n_weights,
                                     const struct tnd_fit_options *options,
                                     struct tnd_fit_model *out, struct tandem_error *error);
/** `model` may be all zeros. */
void tnd_fit_model_fini(struct tnd_fit_model *model);

/** Builds the problem of a model for this many prompts and generated tokens. Fills `items`
 * (n_groups entries), which `out` borrows. */
void tnd_fit_model_problem(const struct tnd_fit_model *model, const double count[TND_FIT_PHASES],
                           struct tnd_fit_item *items, struct tnd_fit_problem *out);

/** Time of moves before and after a group on `side` that no other group accounts for: from
 * `before`, the side of the previous group, or from host memory and back. */
double tnd_fit_moved_us(const struct tnd_fit_model *model, enum tnd_fit_phase phase, int before,
                        int side);
/** Time of a phase with groups on these sides, and its error bar. INFINITY: not possible. */
double tnd_fit_model_us(const struct tnd_fit_model *model, const uint8_t *sides,
                        enum tnd_fit_phase phase, double *out_error_us);

/** Lists the hot experts of a layer: fills `out_experts` (use_experts entries) and returns their
 * number; 0: none, or all. They are the most used ones; if several devices hold some, those of the
 * device that has the most used one. */
int64_t tnd_fit_hot_experts(const struct tnd_fit_model *model, const uint8_t *sides, int32_t layer,
                            int32_t *out_experts, int *out_side);

/** Time of a phase with the present placement: experts hot as in `options->hot_now`, all other
 * groups, and those of layers without hot experts, on `sides`, which is changed. The device of a
 * layer's hot experts is the side of its first group of experts. */
double tnd_fit_now_us(const struct tnd_fit_model *model, const struct tnd_fit_options *options,
                      uint8_t *sides, enum tnd_fit_phase phase);

/** Time of a phase, and its error bar, on the CPU alone. */
double tnd_fit_model_cpu_us(const struct tnd_fit_model *model, enum tnd_fit_phase phase,
                            double *out_error_us);

#endif
