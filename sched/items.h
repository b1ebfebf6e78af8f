/* SPDX-License-Identifier: MIT
 * A plan as a flat list of items in the planned order: a node, or the range of a split product that
 * one backend computes, so that residency, transfers, faults and steps treat a part as
 * they treat a node. Of a product Y = X W^T split by rows of W:
 *
 *     part   T = X (rows of W)^T   on the part's backend
 *     own    its range of Y        by the node's own choice, in place where it works in host memory
 *     join   columns of Y = T      on the CPU: FINALIZE of the node
 *
 * Split by columns of W, every part reads some columns of X, each T is as large as Y, and joining
 * adds them. The T's of one node lie behind the graph's own intermediate results; all nodes use the
 * same bytes, since each is joined before the next one begins. */
#ifndef TND_ITEMS_H
#define TND_ITEMS_H

#include "backends/registry.h"
#include "ggml-like/tnd_tensor.h"
#include "tandem/profile.h"

struct tnd_mirrors;

/** Relation of an item to its node. */
enum tnd_item_role {
    TND_ITEM_WHOLE, /* a node that is not split */
    TND_ITEM_OWN,   /* the rows of the node's own choice */
    TND_ITEM_PART,  /* a part, whose result has memory of its own */
    TND_ITEM_COPY,  /* copies columns of X for a part: belongs to INIT; workers do it without a
                     * backend */
    TND_ITEM_JOIN   /* joins a part into the result: FINALIZE of the node; also without a backend */
};

struct tnd_item {
    const struct tandem_tensor *tensor; /* what it computes, with its operands */
    const struct tandem_plan_node *choice;
    int32_t node;    /* of the graph */
    int32_t part;    /* number among the parts of the node; -1: none */
    int32_t n_done;  /* nodes of the graph that are complete before it */
    int32_t from;    /* fused item whose result it reads; -1: the first one, or not fused */
    int32_t into;    /* fused item that reads its result; -1: the last one, or not fused */
    uint8_t role;    /* enum tnd_item_role */
    bool is_fetched; /* items in another memory read its result, so it is downloaded at once */
    int64_t row_begin, row_end; /* of a product: rows of its W; of a copy: columns of X */
};

/** A tensor made by splitting: T, columns of X, or the columns of Y that T is joined into. */
struct tnd_item_tensor {
    struct tandem_tensor tensor;
    union {
        struct tandem_plan_node choice; /* of a copy or a join */
        struct tandem_tensor weights;   /* of T: the part of W */
    };
};

/** Memory is reused for the next plan; zero-initialised. */
struct tnd_items {
    struct tnd_item *list;
    int n;
    const int32_t *positions; /* position in the list by tensor index; NULL: equal to the index */
    struct tnd_item_tensor *made; /* indices continue after those of the graph's nodes */
    int n_made;
    size_t planned_bytes; /* of the graph, with the parts */
    void *memory;
    size_t memory_bytes;
};

/** Lists the items of a plan of a finished graph. `mirrors` keeps copied columns of weights; NULL:
 *  the items will not run. Errors: ARGUMENT (a part that its node does not have; an order in which
 *  a node would run before one that it depends on or before one whose memory it reuses), MEMORY,
 *  OVERFLOW. */
enum tandem_status tnd_items_renew(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                   const struct tnd_registry *registry, struct tnd_mirrors *mirrors,
                                   struct tnd_items *items, struct tandem_error *error);
/** tnd_graph_bind for the graph and for the tensors made here. */
void tnd_items_bind(const struct tnd_items *items, struct tandem_graph *graph, void *buffer);
/** One worker's share of a copy or a join. */
void tnd_item_move(const struct tnd_item *item, struct tandem_worker *worker);

/** Whether the item copies or joins columns, which no backend does. */
static inline bool tnd_item_is_move(const struct tnd_item *item)
{
    return item->role >= TND_ITEM_COPY;
}

/** Position in the list of the item that computes the tensor with this index. */
static inline int tnd_item_position(const struct tnd_items *items, int index)
{
    return items->positions != NULL ? items->positions[index] : index;
}

#endif
