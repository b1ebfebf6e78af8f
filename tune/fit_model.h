/* SPDX-License-Identifier: MIT
 * A model's weights as a problem of fit.h: groups of a layer (attention with its keys and values,
 * feed-forward, experts), each with its predicted time on every side for a prompt and for a
 * generated token. Knows weights by their GGUF names alone. docs/placing-weights.md tells what is
 * priced and what is not. */
#ifndef TND_FIT_MODEL_H
#define TND_FIT_MODEL_H

#include "backends/registry.h"
#include "table/tnd_table.h"
#include "tune/fit.h"

enum tnd_fit_phase { TND_FIT_PROMPT, TND_FIT_GENERATION, TND_FIT_PHASES };

/* In the order in which a layer computes them. */
enum tnd_fit_part {
    TND_FIT_EMBEDDING, /* rows are looked up in it: stays in host memory */
    TND_FIT_ATTENTION, /* and the layer's keys and values */
    TND_FIT_FFN,       /* the router and shared experts too */
    TND_FIT_EXPERTS,   /* of which a token uses some; by use several groups a layer */
    TND_FIT_OUTPUT,
    TND_FIT_OTHER, /* a name that says nothing: a group of its own */
    TND_FIT_PARTS
};

struct tnd_fit_weight {
    const char *name; /* GGUF: "blk.0.attn_q.weight"; NULL: says nothing */
    enum tandem_type type;
    int64_t k, n;      /* W is n x k; vectors have n = 1 and are priced as nothing */
    int64_t n_experts; /* matrices of n x k; 1: it is no expert weight */
    int64_t bytes;     /* of all of it */
};

struct tnd_fit_options {
    const struct tandem_table *table;
    const struct tnd_registry *registry; /* whose devices they are; NULL: all of the table */
    double error_bound;                  /* of candidates, as tnd_planner_set_error_bound */
    int n_threads;                       /* of the CPU */
    int n_devices;                       /* at most TND_FIT_SIDES - 1 */
    const char *devices[TND_FIT_SIDES];  /* names of sides 1 .., as in the table, at [side] */
    int64_t memory[TND_FIT_SIDES];       /* bytes of each device, at [side] */
    int64_t budget[TND_FIT_SIDES]; /* of them for weights, keys and values at most; 0: unknown */
    int64_t n_used;                /* experts that a token uses; 0: all */
    int64_t prompt_tokens;         /* of a pass; 0: TND_FIT_PROMPT_TOKENS */
    int64_t n_texts;               /* that get a token in a pass of generation; 0: one */
    int64_t context;               /* tokens that keys and values have room for */
    bool returns_to_host; /* results of each group go to host memory, and come from there */
    enum tandem_type cache_type;
    /* {use_experts, use_layers}: of all tokens, those that use each expert, 0 to 1; NULL: all
     * experts are as likely, and those of a layer stay together */
    const double *expert_use;
    int64_t use_experts, use_layers;
    const uint8_t *hot_now; /* the same extents: not 0 for those that a device keeps already */
};

struct tnd_fit_group {
    enum tnd_fit_part part;
    int32_t layer; /* -1: before the layers; n_layers: behind them */
    int32_t n_weights;
    int64_t bytes;               /* of the weights */
    int64_t cache_bytes;         /* keys and values of the layer */
    int32_t first_rank, n_ranks; /* of a layer's experts by use: those of this group; 0, 0: all */
    double us[TND_FIT_PHASES][TND_FIT_SIDES]; /* INFINITY: not there. In host memory: by the CPU, or
                                                 on a device to which the weights travel */
    double error_us[TND_FIT_PHASES][TND_FIT_SIDES];
    double cpu_us[TND_FIT_PHASES]; /* by the CPU alone */
    double cpu_error_us[TND_FIT_PHASES];
};

struct tnd_fit_model {
    int n_sides;
    bool returns_to_host; /* as in options */
    int64_t prompt_tokens, n_texts;
    int64_t fixed_bytes; /* of each device: the reserve, results, a matrix in F32 */
    int32_t n_layers;
    int n_groups;
    struct tnd_fit_group *groups; /* in the order of the computation */
    int32_t *group_of; /* of each weight; of experts apart the first group of the layer */
    int32_t *ranks;    /* {use_experts, use_layers}: experts of each layer, the most used ones
                          first; NULL: they stay together */
    int64_t n_ranked;  /* experts of a layer, of `ranks` */
    double largest_us[TND_FIT_PHASES][TND_FIT_SIDES]; /* of a side's largest product */
    double move_us[TND_FIT_PHASES][TND_FIT_SIDES][TND_FIT_SIDES];
    int64_t capacity[TND_FIT_SIDES]; /* for weights, keys and values */
};

/** Reads "blk.3.attn_q.weight". A name that says nothing: OTHER, layer -1. */
enum tnd_fit_part tnd_fit_part_of(const char *name, int32_t *out_layer);
/** "attention" and so on; static. */
const char *tnd_fit_part_name(enum tnd_fit_part part);

/** Prices all groups. Without an output matrix the embedding is the output matrix as well. `out` is
 *  ended with tnd_fit_model_fini. Errors: NOT_FOUND (the table has no times for the CPU, or for too
 *  much of the weights: says which), ARGUMENT (sizes that cannot be), LIMIT (groups), MEMORY. */
enum tandem_status tnd_fit_model_new(const struct tnd_fit_weight *weights, int n_weights,
                                     const struct tnd_fit_options *options,
                                     struct tnd_fit_model *out, struct tandem_error *error);
/** A zeroed one is allowed. */
void tnd_fit_model_fini(struct tnd_fit_model *model);

/** The problem of a model, for this many prompts and generated tokens. `items` (n_groups entries)
 *  is filled, and lent to the problem. */
void tnd_fit_model_problem(const struct tnd_fit_model *model, const double count[TND_FIT_PHASES],
                           struct tnd_fit_item *items, struct tnd_fit_problem *out);

/** What the moves before and behind a group on a side take that no other group accounts for:
 *  from `before`, the side of the group before it, or from host memory and back to it. */
double tnd_fit_moved_us(const struct tnd_fit_model *model, enum tnd_fit_phase phase, int before,
                        int side);
/** Time of a phase when groups are so placed, and its error bar. INFINITY: it cannot be. */
double tnd_fit_model_us(const struct tnd_fit_model *model, const uint8_t *sides,
                        enum tnd_fit_phase phase, double *out_error_us);

/** Which experts of a layer a device keeps apart from the others: fills `out_experts` (use_experts
 *  entries) and returns their number; 0: none, or all. They are the most used ones; where devices
 *  share them, those of the device with the very most used ones count. */
int64_t tnd_fit_hot_experts(const struct tnd_fit_model *model, const uint8_t *sides, int32_t layer,
                            int32_t *out_experts, int *out_side);

/** Time of a phase when experts are hot as `options` say (hot_now), and the other groups, and those
 *  of layers without hot experts, have `sides`, which is changed. The device of a layer's hot
 *  experts is the side of its first group of experts. */
double tnd_fit_now_us(const struct tnd_fit_model *model, const struct tnd_fit_options *options,
                      uint8_t *sides, enum tnd_fit_phase phase);

/** The same when there is no device at all. */
double tnd_fit_model_cpu_us(const struct tnd_fit_model *model, enum tnd_fit_phase phase,
                            double *out_error_us);

#endif
