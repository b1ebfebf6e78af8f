/* SPDX-License-Identifier: MIT
 * Expanding a graph: one walk over the nodes in planned order. Memory is counted before and grows
 * before the run, so a walk allocates nothing. Start at tnd_expand. */
#include "sched/expand.h"

#include <string.h>

#include "backends/task.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/expand_order.h"

enum {
    TENSORS_OF_PIECE = 4,         /* view and copy of X, T, join; or T, view of Y, join */
    NODES_OF_PIECE = 3,           /* copy of X, T or the node itself, join */
    ALONE_BELOW_BYTES = 64 * 1024 /* less is copied by one thread */
};

/* What one backend computes of a product. */
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
    struct tnd_shadows *shadows;
    struct tnd_mirrors *mirrors;
    struct tandem_error *error;
    struct tnd_expansion *out;
    struct tnd_plan_item *items;
    int32_t *positions;
    uint32_t own_slots; /* bit a slot: memory of their own */
    int n_done;         /* nodes of the graph */
    int next_index;
    bool is_index_free; /* the node itself does not run: the first joining has its index */
    size_t used_bytes;  /* behind the graph's intermediate results, by this node */
    size_t most_bytes;  /* by any */
};

static enum tandem_status refuse(const struct walk *walk, int i, const char *why)
{
    return tnd_error_set(walk->error, TANDEM_E_ARGUMENT, walk->graph->nodes[i]->name, i,
                         walk->graph->n_nodes, "plan: node %d (%s) cannot be split so: %s", i,
                         tandem_op_name(walk->graph->nodes[i]->op), why);
}

/* ---- tensors and nodes ---- */

/* Appends a node. */
static void emit(struct walk *walk, struct tandem_tensor *tensor,
                 const struct tandem_plan_node *choice, struct tnd_plan_item item)
{
    int at = walk->out->graph.n_nodes++;
    walk->out->graph.nodes[at] = tensor;
    walk->out->plan->nodes[at] = *choice;
    item.n_done = walk->n_done;
    walk->items[at] = item;
    walk->positions[tensor->index] = at;
}

static struct tandem_tensor *new_tensor(struct walk *walk, const struct tandem_tensor *like)
{
    struct tandem_tensor *tensor = &walk->out->tensors[walk->out->n_tensors++];
    *tensor = *like;
    tensor->flags = TND_TENSOR_PENDING;
    tensor->previous = NULL;
    tensor->buffer = NULL;
    tensor->plan_offset = -1;
    tensor->graph = walk->graph;
    tensor->index = -1;
    tensor->n_readers = 1;
    return tensor;
}

/* A matrix of its own behind the graph's results; false when it does not fit. */
static bool place(struct walk *walk, struct tandem_tensor *tensor, int64_t ne0)
{
    size_t bytes = 0;
    size_t end = 0;
    tensor->ne[0] = ne0;
    tensor->nb[1] = (size_t)ne0 * tensor->nb[0];
    tensor->nb[2] = tensor->nb[3] = tensor->nb[1] * (size_t)tensor->ne[1];
    tensor->root = tensor;
    tensor->root_offset = 0;
    tensor->data = NULL;
    tensor->plan_offset = (int64_t)(walk->out->graph.planned_bytes + walk->used_bytes);
    tensor->index = walk->next_index++;
    if (!tnd_align_up(tandem_tensor_bytes(tensor), TND_ALIGNMENT, &bytes) ||
        !tnd_add_size(walk->used_bytes, bytes > 0 ? bytes : TND_ALIGNMENT, &walk->used_bytes) ||
        !tnd_add_size(walk->out->graph.planned_bytes, walk->used_bytes, &end) ||
        end > PTRDIFF_MAX) {
        return false;
    }
    walk->most_bytes = walk->used_bytes > walk->most_bytes ? walk->used_bytes : walk->most_bytes;
    return true;
}

/* Columns first .. first + n - 1 of a matrix of F32. */
static struct tandem_tensor *columns_of(struct walk *walk, struct tandem_tensor *matrix,
                                        int64_t first, int64_t n)
{
    struct tandem_tensor *view = new_tensor(walk, matrix);
    view->op = TANDEM_OP_VIEW;
    view->src[0] = matrix;
    view->n_src = 1;
    view->ne[0] = n;
    view->root_offset = matrix->root_offset + (size_t)first * matrix->nb[0];
    return view;
}

/* By the CPU, on the threads of the node where there is enough to do. */
static struct tandem_plan_node host_choice(const struct tandem_plan_node *own,
                                           const struct tandem_tensor *node)
{
    struct tandem_plan_node choice;
    memset(&choice, 0, sizeof(choice));
    bool is_alone = tandem_tensor_bytes(node) < ALONE_BELOW_BYTES;
    memcpy(choice.profile, "cpu", 4);
    choice.n_threads = is_alone || own->n_threads < 1 ? 1 : own->n_threads;
    choice.reason = own->reason;
    choice.stage[TANDEM_STAGE_COMPUTE].backend = TANDEM_BACKEND_CPU;
    choice.stage[TANDEM_STAGE_COMPUTE].task = TANDEM_TASK_NODE;
    choice.stage[TANDEM_STAGE_COMPUTE].parallel = choice.n_threads > 1;
    return choice;
}

/* ---- pieces ---- */

static bool is_async(const struct walk *walk, const struct tandem_plan_node *choice)
{
    const tandem_backend *backend =
        tnd_registry_backend(walk->registry, choice->stage[TANDEM_STAGE_COMPUTE].backend);
    return backend != NULL && tnd_backend_is_async(backend);
}

/* Whether the choice computes a range of rows within the whole result: in host memory, by tasks
 * that look at their rows. */
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
    if (n > TND_MAX_PARTS || !tnd_mul_mat_is_plain(node) ||
        (w->root->flags & TND_TENSOR_CONSTANT) == 0 || w->root->buffer == NULL) {
        return refuse(walk, i, "it is no product with constant weights, or has too many parts");
    }
    int64_t all = is_rows ? w->ne[1] : w->ne[0];
    int64_t block = is_rows ? 1 : tandem_type_block_values(w->type);
    struct tandem_plan_part own;
    if (!tnd_plan_own_part(walk->plan, i, all, &own)) {
        return refuse(walk, i, "the parts leave no range to the node, or several, or are too long");
    }
    for (int p = 0; p <= n; p++) {
        const struct tandem_plan_part *part = p < n ? &parts[p] : &own;
        pieces[p] = (struct piece){
            .begin = part->begin,
            .end = part->end,
            .choice = p < n ? &part->choice : &walk->plan->nodes[i],
            .part = p < n ? p : -1,
        };
        pieces[p].is_async = is_async(walk, pieces[p].choice);
        if (pieces[p].begin % block != 0 || pieces[p].end % block != 0) {
            return refuse(walk, i, "its columns are no whole blocks of the weights");
        }
    }
    return TANDEM_OK;
}

/* Columns of X for a piece, dense. */
static bool take_columns(struct walk *walk, int i, const struct piece *piece,
                         struct tandem_tensor **out_x)
{
    struct tandem_tensor *node = walk->graph->nodes[i];
    struct tandem_tensor *view =
        columns_of(walk, node->src[1], piece->begin, piece->end - piece->begin);
    struct tandem_tensor *copy = new_tensor(walk, view);
    copy->op = TANDEM_OP_CONT;
    copy->src[0] = view;
    copy->n_src = 1;
    if (!place(walk, copy, view->ne[0])) {
        return false;
    }
    struct tandem_plan_node choice = host_choice(&walk->plan->nodes[i], copy);
    emit(walk, copy, &choice,
         (struct tnd_plan_item){.node = i,
                                .part = piece->part,
                                .role = TND_ITEM_COPY,
                                .row_end = tnd_tensor_rows(copy)});
    *out_x = copy;
    return true;
}

/* T = X (part of W)^T. */
static enum tandem_status compute_piece(struct walk *walk, int i, enum tandem_split split,
                                        struct piece *piece)
{
    struct tandem_tensor *node = walk->graph->nodes[i];
    struct tandem_tensor *w = NULL;
    struct tandem_tensor *x = node->src[1];
    int64_t n_rows = split == TANDEM_SPLIT_ROWS ? piece->end - piece->begin : node->ne[0];
    TND_TRY(tnd_shadows_take(walk->shadows, walk->mirrors, node->src[0], split, piece->begin,
                             piece->end, &w, walk->error));
    bool fits = split == TANDEM_SPLIT_ROWS || take_columns(walk, i, piece, &x);
    struct tandem_tensor *t = new_tensor(walk, node);
    if (!fits || !place(walk, t, n_rows)) {
        return tnd_error_set(walk->error, TANDEM_E_OVERFLOW, "plan", i, 0,
                             "plan: the parts of node %d do not fit into the address space", i);
    }
    t->src[0] = w;
    t->src[1] = x;
    piece->result = t;
    emit(walk, t, piece->choice,
         (struct tnd_plan_item){
             .node = i, .part = piece->part, .role = TND_ITEM_PART, .row_end = n_rows});
    return TANDEM_OK;
}

/* ---- joining ---- */

static void emit_join(struct walk *walk, int i, struct tandem_tensor *join, int32_t part)
{
    struct tandem_plan_node choice = host_choice(&walk->plan->nodes[i], join);
    join->index = walk->is_index_free ? walk->graph->nodes[i]->index : walk->next_index++;
    walk->is_index_free = false;
    emit(walk, join, &choice,
         (struct tnd_plan_item){
             .node = i, .part = part, .role = TND_ITEM_JOIN, .row_end = tnd_tensor_rows(join)});
}

/* Columns of Y = T. */
static void join_rows(struct walk *walk, int i, const struct piece *piece)
{
    struct tandem_tensor *node = walk->graph->nodes[i];
    struct tandem_tensor *to = columns_of(walk, node, piece->begin, piece->end - piece->begin);
    struct tandem_tensor *join = new_tensor(walk, to);
    join->op = TANDEM_OP_CPY;
    join->src[0] = piece->result;
    join->src[1] = to;
    join->n_src = 2;
    emit_join(walk, i, join, piece->part);
}

/* Y = T + T', then Y = Y + T''. */
static void join_sum(struct walk *walk, int i, const struct piece *pieces, int n)
{
    struct tandem_tensor *node = walk->graph->nodes[i];
    struct tandem_tensor *sum = pieces[0].result;
    for (int p = 1; p < n; p++) {
        struct tandem_tensor *join = new_tensor(walk, node);
        join->op = TANDEM_OP_ADD;
        join->src[0] = sum;
        join->src[1] = pieces[p].result;
        emit_join(walk, i, join, pieces[p].part);
        sum = join;
    }
}

static enum tandem_status expand_split(struct walk *walk, int i,
                                       const struct tandem_plan_part *parts, int n)
{
    struct piece pieces[TND_MAX_PARTS + 1];
    enum tandem_split split = (enum tandem_split)parts[0].split;
    bool is_rows = split == TANDEM_SPLIT_ROWS;
    walk->used_bytes = 0;
    TND_TRY(find_pieces(walk, i, parts, n, pieces));
    bool in_place = is_rows && runs_in_place(walk, pieces[n].choice);
    walk->is_index_free = !in_place;
    for (int pass = 0; pass < 2; pass++) { /* devices that go on by themselves first */
        for (int p = 0; p <= n; p++) {
            if (pieces[p].is_async != (pass == 0)) {
                continue;
            }
            if (p < n || !in_place) {
                TND_TRY(compute_piece(walk, i, split, &pieces[p]));
                continue;
            }
            emit(walk, walk->graph->nodes[i], pieces[p].choice,
                 (struct tnd_plan_item){.node = i,
                                        .part = -1,
                                        .role = TND_ITEM_OWN,
                                        .row_begin = pieces[p].begin,
                                        .row_end = pieces[p].end});
        }
    }
    for (int p = 0; p <= n && is_rows; p++) {
        if (pieces[p].result != NULL) {
            join_rows(walk, i, &pieces[p]);
        }
    }
    if (!is_rows) {
        join_sum(walk, i, pieces, n + 1);
    }
    return TANDEM_OK;
}

static enum tandem_status expand_node(struct walk *walk, int i)
{
    const struct tandem_plan_part *parts;
    struct tandem_tensor *node = walk->graph->nodes[i];
    int n = tnd_plan_parts_of(walk->plan, i, &parts);
    if (n > 0) {
        TND_TRY(expand_split(walk, i, parts, n));
    } else {
        int64_t n_rows = node->op == TANDEM_OP_MUL_MAT ? node->ne[0] : tnd_tensor_rows(node);
        emit(walk, node, &walk->plan->nodes[i],
             (struct tnd_plan_item){
                 .node = i, .part = -1, .role = TND_ITEM_WHOLE, .row_end = n_rows});
    }
    walk->n_done++;
    return TANDEM_OK;
}

/* ---- memory ---- */

/* Room for `n` members at the end of *io_bytes; false when that does not fit into a size. */
static bool add_array(size_t n, size_t bytes, size_t *io_bytes, size_t *out_at)
{
    size_t all;
    return tnd_align_up(*io_bytes, TND_ALIGNMENT, out_at) && tnd_mul_size(n, bytes, &all) &&
           tnd_add_size(*out_at, all, io_bytes);
}

static enum tandem_status out_of_memory(struct tandem_error *error, size_t n)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, "plan", (int64_t)n, 0,
                         "plan: out of memory for %zu nodes", n);
}

static enum tandem_status reserve_plan(struct tnd_expansion *out, size_t n,
                                       struct tandem_error *error)
{
    if (out->plan == NULL || (size_t)out->plan_capacity < n) {
        tandem_plan_free(out->plan);
        out->plan = NULL;
        TND_TRY(tandem_plan_new((int)(n + n / 2), &out->plan, error));
        out->plan_capacity = out->plan->n_nodes;
    }
    return TANDEM_OK;
}

/* Arrays for the largest graph that the plan may lead to. */
static enum tandem_status reserve(struct walk *walk, int32_t **out_largest)
{
    struct tnd_expansion *out = walk->out;
    size_t n_pieces = 2 * (size_t)tandem_plan_part_count(walk->plan); /* with the nodes' own */
    size_t n = (size_t)walk->graph->n_nodes + NODES_OF_PIECE * n_pieces;
    size_t bytes = 0;
    size_t nodes, items, positions, largest, tensors;
    if (n > INT32_MAX / 2 || !add_array(n, sizeof(struct tandem_tensor *), &bytes, &nodes) ||
        !add_array(n, sizeof(struct tnd_plan_item), &bytes, &items) ||
        !add_array(n, sizeof(int32_t), &bytes, &positions) ||
        !add_array(n, sizeof(int32_t), &bytes, &largest) ||
        !add_array(n_pieces, TENSORS_OF_PIECE * sizeof(struct tandem_tensor), &bytes, &tensors)) {
        return tnd_error_set(walk->error, TANDEM_E_OVERFLOW, "plan", (int64_t)n, INT32_MAX,
                             "plan: too many parts");
    }
    TND_TRY(reserve_plan(out, n, walk->error));
    if (bytes > out->memory_bytes) {
        tnd_free(out->memory);
        out->memory_bytes = 0;
        out->memory = tnd_alloc(bytes + bytes / 2);
        if (out->memory == NULL) {
            return out_of_memory(walk->error, n);
        }
        out->memory_bytes = bytes + bytes / 2;
    }
    char *base = out->memory;
    out->graph.nodes = (struct tandem_tensor **)(void *)(base + nodes);
    out->tensors = (struct tandem_tensor *)(void *)(base + tensors);
    walk->items = (struct tnd_plan_item *)(void *)(base + items);
    walk->positions = (int32_t *)(void *)(base + positions);
    *out_largest = (int32_t *)(void *)(base + largest);
    return TANDEM_OK;
}

static void begin(struct walk *walk)
{
    struct tnd_expansion *out = walk->out;
    struct tandem_tensor **nodes = out->graph.nodes;
    out->graph = *walk->graph;
    out->graph.nodes = nodes;
    out->graph.n_nodes = 0;
    out->graph.views = NULL;
    out->graph.n_views = 0;
    out->graph.source = walk->graph;
    out->graph.positions = walk->positions;
    out->graph.planned_bytes = walk->graph->planned_bytes;
    out->n_tensors = 0;
    out->plan->items = walk->items;
    walk->next_index = walk->graph->n_nodes;
    walk->own_slots = tnd_registry_own_slots(walk->registry);
}

/* Bits of the devices with memory of their own that stages run on; 1: in host memory. */
static uint32_t memories_of(const struct walk *walk, int i)
{
    uint32_t memories = 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        unsigned slot = walk->out->plan->nodes[i].stage[s].backend;
        bool is_own = (walk->own_slots >> slot % 32 & 1) != 0;
        memories |= slot == TANDEM_BACKEND_NONE ? 0 : UINT32_C(1) << (is_own ? slot % 32 : 0);
    }
    return memories;
}

/* Results that are read in another memory than where they are made. */
static void find_fetched(struct walk *walk)
{
    const struct tandem_graph *graph = &walk->out->graph;
    for (int i = 0; i < graph->n_nodes; i++) {
        uint32_t here = memories_of(walk, i);
        for (int s = 0; s < graph->nodes[i]->n_src; s++) {
            const struct tandem_tensor *src = graph->nodes[i]->src[s];
            if (src != NULL && tnd_graph_computes(graph, src->root)) {
                int from = tnd_graph_position(graph, src->root->index);
                struct tnd_plan_item *item = &walk->items[from];
                item->is_fetched = item->is_fetched || (here & ~memories_of(walk, from)) != 0;
            }
        }
    }
}

static enum tandem_status expand(struct walk *walk)
{
    int32_t *largest = NULL;
    const int32_t *order = tandem_plan_order(walk->plan);
    size_t planned_bytes;
    if (!tnd_align_up(walk->graph->planned_bytes, TND_ALIGNMENT, &planned_bytes)) {
        return out_of_memory(walk->error, 0);
    }
    TND_TRY(reserve(walk, &largest));
    begin(walk);
    walk->out->graph.planned_bytes = planned_bytes;
    if (order != NULL) {
        TND_TRY(tnd_order_check(walk->graph, order, largest, walk->error));
    }
    for (int at = 0; at < walk->graph->n_nodes; at++) {
        TND_TRY(expand_node(walk, order != NULL ? order[at] : at));
    }
    walk->out->graph.planned_bytes += walk->most_bytes;
    walk->out->plan->n_nodes = walk->out->graph.n_nodes;
    TND_ASSERT(walk->next_index == walk->out->graph.n_nodes);
    find_fetched(walk);
    return TANDEM_OK;
}

enum tandem_status tnd_expand(const struct tandem_graph *graph, const struct tandem_plan *plan,
                              const struct tnd_registry *registry, struct tnd_shadows *shadows,
                              struct tnd_mirrors *mirrors, struct tnd_expansion **io_expansion,
                              struct tandem_error *error)
{
    TND_ASSERT(tnd_plan_is_scheduled(plan));
    if (!graph->finished || plan->n_nodes != graph->n_nodes) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", plan->n_nodes, graph->n_nodes,
                             "plan: it has %d nodes, the graph has %d", plan->n_nodes,
                             graph->n_nodes);
    }
    if (*io_expansion == NULL) {
        *io_expansion = tnd_calloc(1, sizeof(**io_expansion));
        if (*io_expansion == NULL) {
            return out_of_memory(error, (size_t)graph->n_nodes);
        }
    }
    /* Changed by tnd_expansion_bind alone, which only runs of the graph call. */
    struct walk walk = {.graph = (struct tandem_graph *)(uintptr_t)graph,
                        .plan = plan,
                        .registry = registry,
                        .shadows = shadows,
                        .mirrors = mirrors,
                        .error = error,
                        .out = *io_expansion};
    return expand(&walk);
}

void tnd_expansion_bind(struct tnd_expansion *expansion, void *buffer)
{
    tnd_graph_bind(expansion->graph.source, buffer);
    for (int i = 0; i < expansion->n_tensors; i++) {
        struct tandem_tensor *tensor = &expansion->tensors[i];
        if (tensor->plan_offset >= 0) {
            tensor->data = (char *)buffer + tensor->plan_offset;
        } else { /* views, whose roots are older */
            tensor->data = (char *)tensor->root->data + tensor->root_offset;
        }
    }
}

void tnd_expansion_free(struct tnd_expansion *expansion)
{
    if (expansion != NULL) {
        tandem_plan_free(expansion->plan);
        tnd_free(expansion->memory);
        tnd_free(expansion);
    }
}
