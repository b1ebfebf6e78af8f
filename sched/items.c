/* SPDX-License-Identifier: MIT
 * Listing the items of a plan: one walk over the nodes in planned order. Runs for every token:
 * memory is counted in advance, and without a schedule the cost is linear in the nodes. Start at
 * tnd_items_renew. */
#include "sched/items.h"

#include <string.h>

#include "backends/task.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/conflict.h"
#include "sched/mirrors.h"
#include "sched/plan.h"

enum {
    MOST_PARTS = TND_MAX_SLOTS,    /* of a node */
    MOST_SWAPS = 1024,             /* inversions of the order that are checked, for each node of a
                                    * graph */
    TENSORS_OF_PIECE = 3,          /* columns of X, T, the columns that T is joined into; one item
                                    * each */
    ALONE_BELOW_BYTES = 64 * 1024, /* less is copied by one worker */
    CHUNKS = 4                     /* of a copy or a join, for each worker */
};

/* The range of a product that one backend computes. */
struct piece {
    int64_t begin, end;
    const struct tandem_plan_node *choice;
    int32_t part; /* -1: the node's own */
    bool is_async;
    struct tandem_tensor *result; /* T; NULL: in place */
};

struct walk {
    struct tandem_graph *graph;
    const struct tandem_plan *plan;
    const struct tnd_registry *registry;
    struct tnd_mirrors *mirrors;
    struct tandem_error *error;
    struct tnd_items *out;
    int32_t *positions; /* NULL: no schedule */
    uint32_t own_slots; /* bit a slot: devices with memory of their own */
    int n_done;         /* nodes of the graph so far */
    size_t used_bytes;  /* after the graph's intermediate results, by this node */
    size_t most_bytes;  /* maximum of used_bytes over the nodes */
};

static enum tandem_status refuse(const struct walk *walk, int i, const char *why)
{
    return tnd_error_set(walk->error, TANDEM_E_ARGUMENT, walk->graph->nodes[i]->name, i,
                         walk->graph->n_nodes, "plan: node %d (%s) cannot be split so: %s", i,
                         tandem_op_name(walk->graph->nodes[i]->op), why);
}

static inline void begin_item(struct tnd_item *item, int i, const struct tandem_tensor *tensor,
                              const struct tandem_plan_node *choice, enum tnd_item_role role,
                              int n_done)
{
    item->tensor = tensor;
    item->choice = choice;
    item->node = i;
    item->part = -1;
    item->n_done = n_done;
    item->from = item->into = -1;
    item->role = (uint8_t)role;
    item->is_fetched = false;
    item->row_begin = 0;
    item->row_end = tensor->op == TANDEM_OP_MUL_MAT ? tensor->ne[0] : tnd_tensor_rows(tensor);
}

static struct tnd_item *add_item(struct walk *walk, int i, const struct tandem_tensor *tensor,
                                 const struct tandem_plan_node *choice, enum tnd_item_role role)
{
    struct tnd_item *item = &walk->out->list[walk->out->n];
    begin_item(item, i, tensor, choice, role, walk->n_done);
    walk->positions[tensor->index] = walk->out->n++;
    return item;
}

/* ---- parts of a product ---- */

static struct tandem_tensor *new_tensor(struct walk *walk, const struct tandem_tensor *like,
                                        int64_t ne0)
{
    struct tandem_tensor *tensor = &walk->out->made[walk->out->n_made].tensor;
    *tensor = *like;
    tensor->flags = TND_TENSOR_PENDING;
    tensor->buffer = NULL;
    tensor->plan_offset = -1;
    tensor->graph = walk->graph;
    tensor->index = walk->graph->n_nodes + walk->out->n_made++;
    tensor->n_readers = 1;
    tensor->ne[0] = ne0;
    return tensor;
}

/* A matrix after the graph's results; NULL when it does not fit. */
static struct tandem_tensor *new_matrix(struct walk *walk, const struct tandem_tensor *like,
                                        int64_t ne0)
{
    size_t bytes = 0;
    size_t end = 0;
    struct tandem_tensor *tensor = new_tensor(walk, like, ne0);
    tensor->nb[1] = (size_t)ne0 * tensor->nb[0];
    tensor->nb[2] = tensor->nb[3] = tensor->nb[1] * (size_t)tensor->ne[1];
    tensor->root = tensor;
    tensor->root_offset = 0;
    tensor->data = NULL;
    tensor->plan_offset = (int64_t)(walk->out->planned_bytes + walk->used_bytes);
    if (!tnd_align_up(tandem_tensor_bytes(tensor), TND_ALIGNMENT, &bytes) ||
        !tnd_add_size(walk->used_bytes, bytes > 0 ? bytes : TND_ALIGNMENT, &walk->used_bytes) ||
        !tnd_add_size(walk->out->planned_bytes, walk->used_bytes, &end) || end > PTRDIFF_MAX) {
        return NULL;
    }
    walk->most_bytes = walk->used_bytes > walk->most_bytes ? walk->used_bytes : walk->most_bytes;
    return tensor;
}

/* An item for workers without a backend; on the threads of the node if there is enough to do. */
static struct tnd_item *add_move(struct walk *walk, int i, struct tandem_tensor *tensor,
                                 const struct piece *piece, enum tnd_item_role role)
{
    const struct tandem_plan_node *own = &walk->plan->nodes[i];
    struct tandem_plan_node *choice = &walk->out->made[tensor->index - walk->graph->n_nodes].choice;
    const bool is_alone = tandem_tensor_bytes(tensor) < ALONE_BELOW_BYTES || own->n_threads < 1;
    memset(choice, 0, sizeof(*choice));
    memcpy(choice->profile, "cpu", 4);
    choice->n_threads = is_alone ? 1 : own->n_threads;
    choice->reason = own->reason;
    choice->stage[TANDEM_STAGE_COMPUTE] = (struct tandem_task_config){
        .backend = TANDEM_BACKEND_CPU, .task = TANDEM_TASK_NODE, .parallel = choice->n_threads > 1};
    tensor->op = TANDEM_OP_CONT;
    struct tnd_item *item = add_item(walk, i, tensor, choice, role);
    item->part = piece->part;
    return item;
}

/* Whether the choice can write a range of rows directly into the whole result: in host memory, by
 * tasks that honour row ranges. */
static bool runs_in_place(const struct walk *walk, const struct tandem_plan_node *choice)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        unsigned slot = choice->stage[s].backend;
        if (slot != TANDEM_BACKEND_NONE &&
            (slot >= TND_MAX_SLOTS || (walk->own_slots >> slot & 1) != 0 ||
             tnd_task_is(choice->stage[s].task, TND_TASK_WHOLE))) {
            return false;
        }
    }
    return true;
}

static enum tandem_status find_pieces(const struct walk *walk, int i,
                                      const struct tandem_plan_part *parts, int n,
                                      struct piece *pieces)
{
    const struct tandem_tensor *node = walk->graph->nodes[i];
    const struct tandem_tensor *w = node->src[0];
    bool is_rows = parts[0].split == TANDEM_SPLIT_ROWS;
    if (n > MOST_PARTS || !tnd_mul_mat_is_plain(node) ||
        (w->root->flags & TND_TENSOR_CONSTANT) == 0 || w->root->buffer == NULL) {
        return refuse(walk, i, "it is no product with constant weights, or has too many parts");
    }
    int64_t block = is_rows ? 1 : tandem_type_block_values(w->type);
    struct tandem_plan_part own;
    if (!tnd_plan_own_part(walk->plan, i, is_rows ? w->ne[1] : w->ne[0], &own)) {
        return refuse(walk, i, "the parts leave no range to the node, or several, or are too long");
    }
    for (int p = 0; p <= n; p++) {
        const struct tandem_plan_part *part = p < n ? &parts[p] : &own;
        const struct tandem_plan_node *choice = p < n ? &part->choice : &walk->plan->nodes[i];
        const tandem_backend *backend =
            tnd_registry_backend(walk->registry, choice->stage[TANDEM_STAGE_COMPUTE].backend);
        pieces[p] = (struct piece){.begin = part->begin,
                                   .end = part->end,
                                   .choice = choice,
                                   .part = p < n ? p : -1,
                                   .is_async = backend != NULL && tnd_backend_is_async(backend)};
        if (part->begin % block != 0 || part->end % block != 0) {
            return refuse(walk, i, "its columns are no whole blocks of the weights");
        }
    }
    return TANDEM_OK;
}

/* T = X (part of W)^T. */
static enum tandem_status compute_piece(struct walk *walk, int i, enum tandem_split split,
                                        struct piece *piece)
{
    struct tandem_tensor *node = walk->graph->nodes[i];
    struct tandem_tensor *x = node->src[1];
    const int64_t n = piece->end - piece->begin;
    if (split == TANDEM_SPLIT_COLUMNS && (x = new_matrix(walk, node->src[1], n)) != NULL) {
        x->src[0] = node->src[1];
        x->n_src = 1;
        struct tnd_item *copy = add_move(walk, i, x, piece, TND_ITEM_COPY);
        copy->row_begin = piece->begin;
        copy->row_end = piece->end;
    }
    struct tandem_tensor *range = &walk->out->made[walk->out->n_made].weights;
    piece->result = new_matrix(walk, node, split == TANDEM_SPLIT_ROWS ? n : node->ne[0]);
    if (x == NULL || piece->result == NULL) {
        return tnd_error_set(walk->error, TANDEM_E_OVERFLOW, "plan", i, 0,
                             "plan: the parts of node %d do not fit into the address space", i);
    }
    if (!tnd_mirrors_range(walk->mirrors, node->src[0], split, piece->begin, piece->end, true,
                           range)) {
        return tnd_error_set(walk->error, TANDEM_E_MEMORY, "plan", n, 0,
                             "plan: out of memory for a part of the weight %s", node->src[0]->name);
    }
    piece->result->src[0] = range;
    piece->result->src[1] = x;
    add_item(walk, i, piece->result, piece->choice, TND_ITEM_PART)->part = piece->part;
    return TANDEM_OK;
}

/* Joins columns of Y = T; for sums, Y = T + T', then Y = Y + T''. The first item that writes to Y
 * represents the node. */
static void join_pieces(struct walk *walk, int i, bool is_rows, const struct piece *pieces, int n)
{
    struct tandem_tensor *node = walk->graph->nodes[i];
    struct tandem_tensor *sum = is_rows ? NULL : pieces[0].result;
    bool is_first = pieces[n - 1].result != NULL;
    for (int p = is_rows ? 0 : 1; p < n; p++) {
        const struct piece *piece = &pieces[p];
        if (piece->result == NULL) {
            continue;
        }
        struct tandem_tensor *join = new_tensor(walk, node, piece->result->ne[0]);
        join->root_offset += is_rows ? (size_t)piece->begin * node->nb[0] : 0;
        join->src[0] = piece->result;
        join->src[1] = sum;
        join->n_src = is_rows ? 1 : 2;
        sum = is_rows ? NULL : node;
        (void)add_move(walk, i, join, piece, TND_ITEM_JOIN);
        if (is_first) {
            walk->positions[node->index] = walk->out->n - 1;
            is_first = false;
        }
    }
}

static enum tandem_status list_split(struct walk *walk, int i, const struct tandem_plan_part *parts,
                                     int n)
{
    struct piece pieces[MOST_PARTS + 1];
    enum tandem_split split = (enum tandem_split)parts[0].split;
    walk->used_bytes = 0;
    TND_TRY(find_pieces(walk, i, parts, n, pieces));
    bool in_place = split == TANDEM_SPLIT_ROWS && runs_in_place(walk, pieces[n].choice);
    for (int pass = 0; pass < 2; pass++) { /* asynchronous devices first */
        for (int p = 0; p <= n; p++) {
            if (pieces[p].is_async != (pass == 0)) {
                continue;
            }
            if (p < n || !in_place) {
                TND_TRY(compute_piece(walk, i, split, &pieces[p]));
                continue;
            }
            struct tnd_item *own =
                add_item(walk, i, walk->graph->nodes[i], pieces[p].choice, TND_ITEM_OWN);
            own->row_begin = pieces[p].begin;
            own->row_end = pieces[p].end;
        }
    }
    join_pieces(walk, i, split == TANDEM_SPLIT_ROWS, pieces, n + 1);
    return TANDEM_OK;
}

/* ---- the order ---- */

/* Custom operations must keep their order: their functions may share any data. */
static bool may_change_places(const struct tandem_tensor *a, const struct tandem_tensor *b)
{
    return (a->op != TANDEM_OP_CUSTOM || b->op != TANDEM_OP_CUSTOM) && !tnd_nodes_conflict(a, b);
}

/* Whether the graph gives the same results in this order, in which each node occurs once. Nodes
 * that conflict by memory must keep their order, and so must custom ones. Only inverted pairs are
 * checked: orders of a schedule move few nodes. */
static enum tandem_status check_order(const struct walk *walk, const int32_t *order)
{
    const struct tandem_graph *graph = walk->graph;
    int32_t *largest = walk->positions; /* memory that is not used yet */
    int64_t n_left = MOST_SWAPS * (int64_t)graph->n_nodes;
    for (int at = 0; at < graph->n_nodes; at++) {
        int32_t node = order[at];
        largest[at] = at > 0 && largest[at - 1] > node ? largest[at - 1] : node;
        /* Earlier in this order, but later in the graph. */
        for (int before = at - 1; before >= 0 && largest[before] > node; before--) {
            if (order[before] < node) {
                continue;
            }
            if (n_left-- == 0) {
                return tnd_error_set(walk->error, TANDEM_E_ARGUMENT, "plan", at, graph->n_nodes,
                                     "plan: its order moves too many nodes too far");
            }
            if (!may_change_places(graph->nodes[order[before]], graph->nodes[node])) {
                return tnd_error_set(walk->error, TANDEM_E_ARGUMENT, "plan", order[before], node,
                                     "plan: its order has node %d before node %d, which it needs "
                                     "or whose memory it takes over",
                                     (int)order[before], (int)node);
            }
        }
    }
    return TANDEM_OK;
}

/* Bit mask of the devices with memory of their own that stages run on; bit 0: host memory. */
static uint32_t memories_of(const struct walk *walk, const struct tnd_item *item)
{
    uint32_t memories = 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        unsigned slot = item->choice->stage[s].backend;
        bool is_own = (walk->own_slots >> slot % 32 & 1) != 0;
        memories |= slot == TANDEM_BACKEND_NONE ? 0 : UINT32_C(1) << (is_own ? slot % 32 : 0);
    }
    return memories;
}

/* Marks results that are read in another memory than the one where they are computed. */
static void find_fetched(const struct walk *walk)
{
    for (int i = 0; i < walk->out->n; i++) {
        const struct tnd_item *item = &walk->out->list[i];
        uint32_t here = memories_of(walk, item);
        for (int s = 0; s < item->tensor->n_src; s++) {
            const struct tandem_tensor *src = item->tensor->src[s];
            if (src != NULL && tnd_graph_computes(walk->graph, src->root)) {
                struct tnd_item *from = &walk->out->list[walk->positions[src->root->index]];
                from->is_fetched = from->is_fetched || (here & ~memories_of(walk, from)) != 0;
            }
        }
    }
}

/* ---- all of it ---- */

/* Allocates arrays for the longest list that the plan can lead to. */
static enum tandem_status reserve(struct walk *walk, bool is_scheduled)
{
    struct tnd_items *out = walk->out;
    size_t n_pieces = 2 * (size_t)tandem_plan_part_count(walk->plan); /* with the nodes' own */
    size_t n = (size_t)walk->graph->n_nodes + TENSORS_OF_PIECE * n_pieces;
    size_t bytes = 0;
    size_t list, made, positions;
    if (n > INT32_MAX / (1 + TANDEM_STAGES) ||
        !tnd_add_array(n, sizeof(struct tnd_item), &bytes, &list) ||
        !tnd_add_array(TENSORS_OF_PIECE * n_pieces, sizeof(struct tnd_item_tensor), &bytes,
                       &made) ||
        !tnd_add_array(is_scheduled ? n : 0, sizeof(int32_t), &bytes, &positions)) {
        return tnd_error_set(walk->error, TANDEM_E_OVERFLOW, "plan", (int64_t)n, INT32_MAX,
                             "plan: too many parts");
    }
    if (!tnd_reserve(&out->memory, &out->memory_bytes,
                     bytes > 0 ? bytes : 1)) { /* a graph may be empty */
        return tnd_error_set(walk->error, TANDEM_E_MEMORY, "plan", (int64_t)n, 0,
                             "plan: out of memory for %zu nodes", n);
    }
    char *base = out->memory;
    out->list = (struct tnd_item *)(void *)(base + list);
    out->made = (struct tnd_item_tensor *)(void *)(base + made);
    walk->positions = is_scheduled ? (int32_t *)(void *)(base + positions) : NULL;
    out->positions = walk->positions;
    return TANDEM_OK;
}

static enum tandem_status list_scheduled(struct walk *walk)
{
    const struct tandem_graph *graph = walk->graph;
    const int32_t *order = tandem_plan_order(walk->plan);
    walk->out->n = 0;
    walk->own_slots = tnd_registry_own_slots(walk->registry);
    if (!tnd_align_up(graph->planned_bytes, TND_ALIGNMENT, &walk->out->planned_bytes)) {
        return tnd_error_set(walk->error, TANDEM_E_OVERFLOW, "plan", 0, 0, "plan: too many bytes");
    }
    if (order != NULL) {
        TND_TRY(check_order(walk, order));
    }
    for (; walk->n_done < graph->n_nodes; walk->n_done++) {
        const struct tandem_plan_part *parts;
        const int i = order != NULL ? order[walk->n_done] : walk->n_done;
        const int n_parts = tnd_plan_parts_of(walk->plan, i, &parts);
        if (n_parts > 0) {
            TND_TRY(list_split(walk, i, parts, n_parts));
        } else {
            (void)add_item(walk, i, graph->nodes[i], &walk->plan->nodes[i], TND_ITEM_WHOLE);
        }
    }
    walk->out->planned_bytes += walk->most_bytes;
    find_fetched(walk);
    return TANDEM_OK;
}

enum tandem_status tnd_items_renew(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                   const struct tnd_registry *registry, struct tnd_mirrors *mirrors,
                                   struct tnd_items *items, struct tandem_error *error)
{
    /* Only tnd_items_bind changes the graph, and only runs of the graph call it. */
    struct walk walk = {.graph = (struct tandem_graph *)(uintptr_t)graph,
                        .plan = plan,
                        .registry = registry,
                        .mirrors = mirrors,
                        .error = error,
                        .out = items};
    const bool is_scheduled = tnd_plan_is_scheduled(plan);
    items->n_made = 0;
    TND_ASSERT(graph->finished && plan->n_nodes == graph->n_nodes);
    TND_TRY(reserve(&walk, is_scheduled));
    if (is_scheduled) {
        return list_scheduled(&walk);
    }
    struct tnd_item *list = items->list;
    for (int i = 0; i < graph->n_nodes; i++) {
        begin_item(&list[i], i, graph->nodes[i], &plan->nodes[i], TND_ITEM_WHOLE, i);
    }
    items->n = graph->n_nodes;
    items->planned_bytes = graph->planned_bytes;
    return TANDEM_OK;
}

void tnd_items_bind(const struct tnd_items *items, struct tandem_graph *graph, void *buffer)
{
    tnd_graph_bind(graph, buffer);
    for (int i = 0; i < items->n_made; i++) {
        struct tandem_tensor *tensor = &items->made[i].tensor;
        tensor->data = tensor->plan_offset >= 0 ? (char *)buffer + tensor->plan_offset
                                                : (char *)tensor->root->data + tensor->root_offset;
    }
}

void tnd_item_move(const struct tnd_item *item, struct tandem_worker *worker)
{
    const struct tandem_tensor *to = item->tensor;
    const struct tandem_tensor *from = to->src[0];
    const struct tandem_tensor *sum = to->n_src > 1 ? to->src[1] : NULL;
    const int64_t n = to->ne[0];
    const int64_t chunk = to->ne[1] / (CHUNKS * (int64_t)worker->count) + 1;
    int64_t begin, end;
    while (worker->next(worker, to->ne[1], chunk, &begin, &end)) {
        for (int64_t row = begin; row < end; row++) {
            float *y = (float *)(void *)((char *)to->data + (size_t)row * to->nb[1]);
            const float *x =
                (const float *)(const void *)((const char *)from->data + (size_t)row * from->nb[1]);
            x += item->role == TND_ITEM_COPY ? item->row_begin : 0;
            if (sum == NULL) {
                memcpy(y, x, (size_t)n * sizeof(*y));
                continue;
            }
            const float *s =
                (const float *)(const void *)((const char *)sum->data + (size_t)row * sum->nb[1]);
            for (int64_t i = 0; i < n; i++) {
                y[i] = s[i] + x[i];
            }
        }
    }
}
