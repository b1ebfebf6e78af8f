/* SPDX-License-Identifier: MIT
 * Internals of tensors and graphs, for the rooms that compute (backends, sched, tune): the internal
 * twin of tandem/tensor.h and tandem/graph.h. Everything here is set while the graph is built and
 * read-only while it computes, except `data` of intermediate results, which tnd_graph_bind sets. */
#ifndef TND_TENSOR_H
#define TND_TENSOR_H

#include "ggml-like/buffer.h"
#include "tandem/graph.h"

/** Parameters of an operation; `op` says which member is valid. */
union tnd_op_params {
    float factor; /* SCALE */
    struct {
        float low, high;
    } clamp;              /* CLAMP */
    float eps;            /* RMS_NORM, NORM */
    int64_t n_past;       /* DIAG_MASK_INF */
    int concat_dim;       /* CONCAT */
    int sample_steps;     /* SAMPLE: enum tandem_sample_steps */
    float soft_max_scale; /* SOFT_MAX */
    struct {
        enum tandem_rope_pairs pairs;
        int64_t n_rot; /* resolved: never 0 */
        float freq_base;
        float freq_scale;
    } rope; /* ROPE: defaults already filled in */
    struct {
        float scale;
        float cap;                             /* of scores; 0: none */
        bool has_sinks;                        /* they are the last operand */
        int64_t window;                        /* of an I32 mask; INT64_MAX: no bound */
    } attention;                               /* ATTENTION */
    const struct tnd_conv_int8 *conv_int8;     /* CONV_INT8, PRODUCT_INT8; in the context */
    const struct tnd_binary_int8 *binary_int8; /* BINARY_INT8: likewise */
    struct {
        tandem_custom_fn fn;
        void *user;
        int64_t n_items;
    } custom;              /* CUSTOM */
    struct tnd_work *work; /* of the family `work`: ggml-like/work.h */
};

enum tnd_tensor_flags {
    TND_TENSOR_OUTPUT = 1,  /* added to a graph by the user: has memory of its own */
    TND_TENSOR_PENDING = 2, /* a node, or a view of one: has no values before a graph computes it */
    TND_TENSOR_CONSTANT = 4,   /* of a root: TANDEM_ROLE_CONSTANT */
    TND_TENSOR_STATE = 8,      /* of a root: TANDEM_ROLE_STATE */
    TND_TENSOR_READ_ONLY = 16, /* of a root: over memory that the program lent as const */
    TND_TENSOR_RANGE = 32,     /* of a root: a part of a constant weight; see sched/mirrors.h */
    TND_TENSOR_LAZY = 64       /* of a state: TANDEM_ROLE_LAZY_STATE */
};

struct tandem_tensor {
    enum tandem_type type;
    enum tandem_op op;
    uint32_t flags;
    int n_src;
    int64_t ne[TANDEM_MAX_DIMS];
    size_t nb[TANDEM_MAX_DIMS];
    struct tandem_tensor *src[TANDEM_MAX_SRC];
    struct tandem_tensor *root; /* tensor whose memory this is: itself unless a view (or cpy) */
    size_t root_offset;         /* bytes from root->data to data */
    void *data;                 /* NULL for an intermediate result that is not bound */
    struct tnd_buffer *buffer;  /* of a root with memory of its own; else NULL */
    int64_t plan_offset; /* byte offset in the graph's shared buffer; -1: has memory of its own */
    union tnd_op_params params;
    struct tandem_context *context;
    char name[TANDEM_MAX_NAME];
    struct tandem_graph *graph;     /* that computes it; NULL until it is reached from an output */
    struct tandem_tensor *previous; /* pending tensor built before this one in the context */
    int64_t sequence;               /* order of building in the context; 0 for leaves */
    int32_t index;                  /* index in graph->nodes; views: -1 */
    int32_t n_readers; /* of a root: how often nodes of its graph read it, through views too */
    int32_t chain;     /* tandem_context_set_chain */
};

struct tandem_graph {
    struct tandem_context *context;
    struct tandem_tensor **nodes; /* execution order; view operations are not nodes */
    int n_nodes;
    struct tandem_tensor **views; /* views of intermediate results, operands before users */
    int n_views;
    bool finished;
    bool runs_once; /* tandem_graph_set_runs_once */
    uint64_t serial; /* never used twice in a process; 0: not finished */
    void *bound_to;  /* buffer of the last bind */
    bool is_bound;
    size_t planned_bytes; /* size of the shared buffer of intermediate results */
    struct tandem_memory_report memory;
    struct tandem_tensor *latest; /* the output built last, from which graph.c walks back */
    int n_pending;                /* tensors that are marked but not visited yet */
    int n_chains;                 /* one more than the largest chain of a node */
};

/** Whether the graph computes the tensor, so that it is not one of its leaves. */
static inline bool tnd_graph_computes(const struct tandem_graph *graph,
                                      const struct tandem_tensor *tensor)
{
    return tensor->op != TANDEM_OP_NONE && tensor->graph == graph;
}

/** Number of values from which on a reference kernel dominates a graph's time: about 30 us. */
#define TND_REFERENCE_HOT 4096.0

/** The part of a graph that reference kernels compute: nodes of nets without a fast kernel. */
struct tnd_reference_work {
    int n;                            /* nodes */
    int n_hot;                        /* those with TND_REFERENCE_HOT values or more */
    const struct tandem_tensor *most; /* the node with most values; NULL if n is 0 */
};
struct tnd_reference_work tnd_graph_reference_work(const struct tandem_graph *graph);

/** Gives every intermediate result and view its address inside `buffer` (planned_bytes, 64-byte
 *  aligned; may be NULL when planned_bytes is 0). The caller keeps `buffer` until the next bind. */
void tnd_graph_bind(struct tandem_graph *graph, void *buffer);

/** How often a role of any tensor was set in this process. Facts derived from a graph stay valid
 * as long as this number does not change. Any thread. */
uint64_t tnd_role_changes(void);

/** A context's number, unique in the process and renewed at each reset. It tells a tensor apart
 * from a later one at the same address. */
uint64_t tnd_context_serial(const struct tandem_context *context);

/** Alignment of all rows of 64 bytes and more. */
#define TND_ALIGNMENT 64

/** A row of tandem/op-list.h. */
enum tnd_op_family {
#define TND_OP_FAMILY(family) TND_OP_##family,
    TANDEM_OP_FAMILIES(TND_OP_FAMILY)
#undef TND_OP_FAMILY
};
enum tnd_op_cost {
    TND_COST_NOTHING,
    TND_COST_PRODUCT,
    TND_COST_ATTENTION,
    TND_COST_SUMS,
    TND_COST_EXPONENTIALS,
    TND_COST_VALUES,
    TND_COST_USER
};
struct tnd_op_traits {
    const char *name;
    enum tnd_op_family family;
    enum tnd_op_cost cost;
    enum tandem_op representative;
    bool splits_rows;
};
const struct tnd_op_traits *tnd_op_traits(enum tandem_op op);

/** Whether the operation only views a part of its operand's memory. */
bool tnd_op_is_view(enum tandem_op op);

/** Whether the result of the operation may overwrite its first operand in place (same layout,
 * never shifted) if nothing else reads the operand. Kernels of these operations must allow it, so
 * no `restrict` between result and first operand. */
bool tnd_op_may_run_in_place(enum tandem_op op);

/** Whether row i of the result depends on row i of each operand only. */
bool tnd_op_is_row_wise(enum tandem_op op);

/** Product of ne[1..3]. */
int64_t tnd_tensor_rows(const struct tandem_tensor *tensor);

/** The mask or the orders of an ATTENTION node; NULL: none. */
const struct tandem_tensor *tnd_attention_mask_of(const struct tandem_tensor *node);
/** The sinks of an ATTENTION node, its last operand; NULL: none. */
const struct tandem_tensor *tnd_attention_sinks_of(const struct tandem_tensor *node);

/** Number of values by which a node's time is estimated: its own; for a scatter, those of its
 * first operand; for an operation of nets, an equivalent number. */
int64_t tnd_node_values(const struct tandem_tensor *node);
/** The node's work in the unit of its operation's cost: multiply-adds, or values. */
double tnd_node_work(const struct tandem_tensor *node);
/** Whether a mul_mat node has plain weights: W is a two-dimensional, dense leaf, X and the result
 * are dense matrices. Only these are planned by table; attention products are never split. */
bool tnd_mul_mat_is_plain(const struct tandem_tensor *node);

/** Computes one node in double precision on one thread, slowly: the oracle of all tests and the
 * arithmetic of the sim backend. All operands and the node must have data. Errors: those of custom
 * callbacks, ARGUMENT for a bad row index, MEMORY. */
enum tandem_status tnd_eval_ref_node(struct tandem_tensor *node, struct tandem_error *error);
/** Computes all nodes of a finished and bound graph. */
enum tandem_status tnd_eval_ref_graph(struct tandem_graph *graph, struct tandem_error *error);

#endif
