/* SPDX-License-Identifier: MIT
 * The walk of a pass: where the pass would change something, builds one net from another, node by
 * node, and puts it in its place.
 *
 * Where a rule gives a view in place of a value without gaps, views of the old value are composed
 * with it. Not every pair of strides composes: then the new view is copied first, and where that is
 * all there was to begin with, the rule does not count. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "graph/net_internal.h"
#include "graph/pass_internal.h"

static bool is_base(const struct tnd_net *net, int value)
{
    return net->values[value].base == value;
}

/* Whether a value, not itself read as a view, can replace a result: all views of the result must
 * compose with it. */
bool tnd_rewrite_can_replace(const struct tnd_rewrite *rewrite, int result,
                             const struct tnd_net_value *new)
{
    const struct tnd_net *from = rewrite->from;
    int64_t offset;
    int64_t strides[TANDEM_NET_MAX_DIMS];
    for (int i = 0; i < from->n_outputs; i++) {
        if (from->outputs[i] == result) {
            return false;
        }
    }
    for (int i = from->values[result].node; i < from->n_nodes; i++) {
        for (int k = 0; k < from->nodes[i].n_inputs; k++) {
            const struct tnd_net_value *read = &from->values[from->nodes[i].inputs[k]];
            if (read->base == result && !tnd_net_compose(new, read, &offset, strides)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- values of the new net ---- */

enum { MOST_HASHED = 4096 };

/* (of the first ones alone: equal hashes are compared to the end) */
static uint64_t hash_bytes(const void *bytes, size_t n)
{
    const unsigned char *from = bytes;
    uint64_t hash = 0x9e3779b97f4a7c15U ^ n;
    n = n < MOST_HASHED ? n : MOST_HASHED;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, from + i, n - i < 8 ? n - i : 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdU;
        hash ^= hash >> 32;
    }
    return hash;
}

static bool is_equal_array(const struct tnd_array *a, const struct tnd_array *b)
{
    return a == b || (a->type == b->type && tnd_dims_is_equal(&a->shape, &b->shape) &&
                      a->data != NULL && b->data != NULL &&
                      memcmp(a->data, b->data, (size_t)a->n * tandem_dtype_bytes(a->type)) == 0);
}

/* An existing constant of the same type, shape and bytes. */
static int find_constant(struct tnd_rewrite *rewrite, int value)
{
    const struct tnd_net *from = rewrite->from;
    const struct tnd_array *array = from->values[value].known;
    const bool has_values = array->data != NULL; /* (a store has dropped those of weights) */
    const uint64_t hash =
        has_values ? hash_bytes(array->data, (size_t)array->n * tandem_dtype_bytes(array->type))
                   : (uintptr_t)array;
    for (int i = 0; i < rewrite->n_hashed; i++) {
        const struct tnd_net_value *other = &from->values[i];
        if (rewrite->map[i] != TANDEM_NET_NONE && rewrite->hashed[i] == hash && other->input < 0 &&
            other->node < 0 && other->known != NULL && is_equal_array(other->known, array)) {
            rewrite->fired++;
            tnd_store_note_same(other->known, array);
            return rewrite->map[i];
        }
    }
    rewrite->hashed[value] = hash;
    rewrite->n_hashed = value < rewrite->n_hashed ? rewrite->n_hashed : value + 1;
    return TANDEM_NET_NONE;
}

/* Maps a constant; the new net borrows its array until it takes over. */
static int map_constant(struct tnd_rewrite *rewrite, int value)
{
    const struct tnd_net_value *old = &rewrite->from->values[value];
    int new = rewrite->pass->merges_constants ? find_constant(rewrite, value) : TANDEM_NET_NONE;
    if (new == TANDEM_NET_NONE) {
        new = tnd_net_new_value(rewrite->to, old->type, &old->shape);
        if (new != TANDEM_NET_NONE) {
            rewrite->to->values[new].known = old->known;
        }
    }
    return new;
}

/* Whether a view is its whole base, unchanged. */
static bool is_all_of(const struct tnd_net_value *base, const struct tnd_dims *shape,
                      int64_t offset, const int64_t *strides)
{
    int64_t dense[TANDEM_NET_MAX_DIMS];
    bool is_all = offset == 0 && tnd_dims_is_equal(&base->shape, shape);
    tnd_dims_strides(shape, dense);
    for (int d = 0; d < shape->n; d++) {
        is_all = is_all && (shape->dims[d] == 1 || strides[d] == dense[d]);
    }
    return is_all;
}

/* Maps a base to its replacement and counts readers. */
static void set_map(struct tnd_rewrite *rewrite, int base, int new)
{
    rewrite->map[base] = new;
    if (new >= 0) {
        struct tnd_net *to = rewrite->to;
        to->values[to->values[new].base].readers += rewrite->readers[base];
    }
}

static int map_value(struct tnd_rewrite *rewrite, int value)
{
    const struct tnd_net_value *old = &rewrite->from->values[value];
    if (rewrite->map[old->base] == TANDEM_NET_NONE) {
        set_map(rewrite, old->base, map_constant(rewrite, old->base));
    }
    const int base = rewrite->map[old->base];
    if (base == TANDEM_NET_NONE || value == old->base) {
        return base;
    }
    int64_t offset;
    int64_t strides[TANDEM_NET_MAX_DIMS];
    const bool composes = tnd_net_compose(tnd_net_value(rewrite->to, base), old, &offset, strides);
    TND_ASSERT(composes);
    (void)composes;
    const int whole = rewrite->to->values[base].base;
    if (is_all_of(&rewrite->to->values[whole], &old->shape, offset, strides)) {
        return whole;
    }
    const int new = tnd_net_new_value(rewrite->to, old->type, &old->shape);
    if (new != TANDEM_NET_NONE) {
        struct tnd_net_value *view = &rewrite->to->values[new];
        view->base = whole;
        view->offset = offset;
        memcpy(view->strides, strides, sizeof(view->strides));
    }
    return new;
}

static bool map_inputs(struct tnd_rewrite *rewrite)
{
    for (int i = 0; i < rewrite->from->n_inputs; i++) {
        const int value = rewrite->from->inputs[i];
        const struct tnd_net_value *old = &rewrite->from->values[value];
        const int new = tnd_net_input(rewrite->to, old->type, &old->shape, old->name, old->known);
        if (new != TANDEM_NET_NONE) {
            rewrite->to->values[new].is_fixed = old->is_fixed;
        }
        set_map(rewrite, value, new);
    }
    return rewrite->to->status == TANDEM_OK;
}

static int keep_node(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    const struct tnd_net_value *old = &rewrite->from->values[node->output];
    const int new = tnd_net_add(rewrite->to, node->op, &node->params, in, node->n_inputs, old->type,
                                &old->shape);
    if (new != TANDEM_NET_NONE) {
        rewrite->to->values[new].known = old->known;
        tnd_net_name(rewrite->to, new, old->name);
    }
    return new;
}

/* The replacement of a node's result. */
static int successor(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in,
                     int by)
{
    if (by == TANDEM_NET_NONE) {
        return keep_node(rewrite, node, in);
    }
    if (by == TND_REWRITE_DROP) {
        rewrite->fired++;
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_value *old = &rewrite->from->values[node->output];
    TND_ASSERT(rewrite->to->values[by].type == old->type &&
               tnd_dims_is_equal(&rewrite->to->values[by].shape, &old->shape));
    (void)old;
    if (is_base(rewrite->to, by) ||
        tnd_rewrite_can_replace(rewrite, node->output, tnd_net_value(rewrite->to, by))) {
        rewrite->fired++;
        return by;
    }
    if (node->op == TND_NET_COPY) {
        return keep_node(rewrite, node, in);
    }
    rewrite->fired++;
    return tnd_net_copy(rewrite->to, by);
}

static bool rewrite_nodes(struct tnd_rewrite *rewrite)
{
    const struct tnd_net *from = rewrite->from;
    int most = 1;
    for (int i = 0; i < from->n_nodes; i++) {
        most = from->nodes[i].n_inputs > most ? from->nodes[i].n_inputs : most;
    }
    int *in = tnd_calloc((size_t)most, sizeof(in[0]));
    for (int i = 0; in != NULL && i < from->n_nodes; i++) {
        const struct tnd_net_node *node = &from->nodes[i];
        bool has_all = true; /* what reads a dropped value is dropped itself */
        for (int k = 0; k < node->n_inputs; k++) {
            const int base = from->values[node->inputs[k]].base;
            const bool is_made = from->values[base].node >= 0;
            in[k] = is_made && rewrite->map[base] == TANDEM_NET_NONE
                        ? TANDEM_NET_NONE
                        : map_value(rewrite, node->inputs[k]);
            has_all = has_all && in[k] != TANDEM_NET_NONE;
        }
        if (rewrite->to->status != TANDEM_OK) {
            break;
        }
        const int by = has_all ? rewrite->pass->rule(rewrite, node, in) : TND_REWRITE_DROP;
        set_map(rewrite, node->output,
                rewrite->to->status == TANDEM_OK ? successor(rewrite, node, in, by)
                                                 : TANDEM_NET_NONE);
    }
    tnd_free(in);
    return in != NULL && rewrite->to->status == TANDEM_OK;
}

static bool map_outputs(struct tnd_rewrite *rewrite)
{
    for (int i = 0; i < rewrite->from->n_outputs; i++) {
        const int old = rewrite->from->outputs[i];
        const int new = tnd_net_output(rewrite->to, map_value(rewrite, old));
        const char *name = rewrite->from->values[old].name;
        if (new == TANDEM_NET_NONE) {
            return false;
        }
        if (name[0] != '\0' && rewrite->to->values[new].input < 0) {
            char *copy = tnd_arena_alloc(&rewrite->to->arena, strlen(name) + 1, 1);
            if (copy == NULL) {
                return false;
            }
            memcpy(copy, name, strlen(name) + 1);
            rewrite->to->values[new].name = copy;
        }
    }
    return true;
}

/* ---- the whole net ---- */

bool tnd_rewrite_is_private(const struct tnd_rewrite *rewrite, int value)
{
    return rewrite->to->values[tnd_net_value(rewrite->to, value)->base].readers <= 1;
}

static void count_readers(struct tnd_rewrite *rewrite)
{
    const struct tnd_net *net = rewrite->from;
    for (int i = 0; i < net->n_values; i++) {
        rewrite->map[i] = TANDEM_NET_NONE;
    }
    for (int i = 0; i < net->n_outputs; i++) {
        rewrite->readers[net->outputs[i]]++;
        rewrite->is_needed[net->outputs[i]] = true;
    }
    for (int i = net->n_nodes - 1; i >= 0; i--) {
        const struct tnd_net_node *node = &net->nodes[i];
        for (int k = 0; k < node->n_inputs; k++) {
            const int base = net->values[node->inputs[k]].base;
            rewrite->readers[base]++;
            rewrite->is_needed[base] |= rewrite->is_needed[node->output];
        }
    }
}

/* The new net takes ownership of the arrays that it still reads; the others are freed. False: out
 * of memory. */
static bool take_arrays(struct tnd_net *from, struct tnd_net *to)
{
    const int had = to->n_owned;
    for (int i = 0; i < from->n_owned; i++) {
        if (tnd_vector_insert(&to->owned_vector, sizeof(to->owned[0]), INT32_MAX / 2,
                              to->n_owned) != TANDEM_OK) {
            to->n_owned = had;
            return false;
        }
        to->owned[to->n_owned - 1] = from->owned[i];
    }
    if (!tnd_net_free_unknown(to)) {
        to->n_owned = had;
        return false;
    }
    from->n_owned = 0;
    return true;
}

static bool rewrite_new(struct tnd_rewrite *rewrite, struct tnd_net *net,
                        const struct tnd_pass *pass)
{
    const size_t n = (size_t)net->n_values + 1;
    *rewrite = (struct tnd_rewrite){
        .pass = pass,
        .from = net,
        .map = tnd_calloc(n, sizeof(rewrite->map[0])),
        .readers = tnd_calloc(n, sizeof(rewrite->readers[0])),
        .is_needed = tnd_calloc(n, sizeof(rewrite->is_needed[0])),
        .hashes = tnd_calloc((size_t)net->n_nodes + 1, sizeof(rewrite->hashes[0])),
        .hashed = tnd_calloc(n, sizeof(rewrite->hashed[0])),
    };
    return rewrite->map != NULL && rewrite->readers != NULL && rewrite->is_needed != NULL &&
           rewrite->hashes != NULL && rewrite->hashed != NULL;
}

/* Starts with an empty net, and resets what was found out about the old one. */
static bool begin(struct tnd_rewrite *rewrite)
{
    const struct tnd_net *net = rewrite->from;
    rewrite->to = tnd_net_new();
    rewrite->fired = 0;
    rewrite->n_hashed = 0;
    for (int i = 0; i < net->n_values; i++) {
        rewrite->map[i] = TANDEM_NET_NONE;
        rewrite->hashed[i] = 0;
    }
    memset(rewrite->hashes, 0, (size_t)net->n_nodes * sizeof(rewrite->hashes[0]));
    if (rewrite->to != NULL) {
        rewrite->to->store = net->store;
        memcpy(rewrite->to->note, net->note, sizeof(net->note));
    }
    return rewrite->to != NULL &&
           tnd_vector_reserve(&rewrite->to->values_vector, sizeof(net->values[0]),
                              net->n_values + 1) &&
           tnd_vector_reserve(&rewrite->to->nodes_vector, sizeof(net->nodes[0]), net->n_nodes + 1);
}

/* Whether constants that a node reads are replaced. */
static bool merges_operands(struct tnd_rewrite *rewrite, const struct tnd_net_node *node)
{
    for (int k = 0; k < node->n_inputs; k++) {
        const int base = rewrite->from->values[node->inputs[k]].base;
        const struct tnd_net_value *v = &rewrite->from->values[base];
        if (v->node < 0 && v->input < 0 && rewrite->map[base] == TANDEM_NET_NONE) {
            if (find_constant(rewrite, base) != TANDEM_NET_NONE) {
                return true;
            }
            rewrite->map[base] = base;
        }
    }
    return false;
}

/* Whether the pass would change something: calls its rule for each node. */
static bool would_change(struct tnd_rewrite *rewrite)
{
    const struct tnd_net *net = rewrite->from;
    struct tnd_net probe = *net;
    bool changes = false;
    probe.is_probe = true;
    probe.was_tried = false;
    rewrite->to = &probe;
    for (int i = 0; i < net->n_values; i++) {
        probe.values[i].readers = rewrite->readers[i];
    }
    for (int i = 0; i < net->n_nodes && !changes; i++) {
        const struct tnd_net_node *node = &net->nodes[i];
        probe.n_nodes = i;
        const int by = rewrite->pass->rule(rewrite, node, node->inputs);
        const bool stays = by == TANDEM_NET_NONE ||
                           (by >= 0 && node->op == TND_NET_COPY && !is_base(net, by) &&
                            !tnd_rewrite_can_replace(rewrite, node->output, &net->values[by]));
        changes = !stays || probe.was_tried ||
                  (rewrite->pass->merges_constants && merges_operands(rewrite, node));
    }
    rewrite->to = NULL;
    return changes;
}

void tnd_rewrite_tidy(struct tnd_net *net)
{
    for (int i = 0; i < net->n_values; i++) {
        struct tnd_net_value *v = &net->values[i];
        int64_t offset;
        int64_t strides[TANDEM_NET_MAX_DIMS];
        if (v->base != i && tnd_net_compose(&net->values[v->base], v, &offset, strides)) {
            v->offset = offset;
            memcpy(v->strides, strides, sizeof(strides));
        }
    }
    for (int i = 0; i < net->n_nodes; i++) {
        int *inputs = (int *)(uintptr_t)net->nodes[i].inputs; /* (in the net's arena) */
        for (int k = 0; k < net->nodes[i].n_inputs; k++) {
            const struct tnd_net_value *v = &net->values[inputs[k]];
            if (is_all_of(&net->values[v->base], &v->shape, v->offset, v->strides)) {
                inputs[k] = v->base;
            }
        }
    }
}

static enum tandem_status run(struct tnd_net *net, const struct tnd_pass *pass, bool always,
                              int *fired, struct tandem_error *error)
{
    struct tnd_rewrite rewrite;
    bool is_good = rewrite_new(&rewrite, net, pass);
    bool changes = false;
    if (is_good) {
        count_readers(&rewrite);
        changes = always || would_change(&rewrite);
        is_good = !changes || (begin(&rewrite) && map_inputs(&rewrite) && rewrite_nodes(&rewrite) &&
                               map_outputs(&rewrite) && take_arrays(net, rewrite.to));
    }
    enum tandem_status status = TANDEM_OK;
    if (is_good && changes) {
        const struct tnd_net old = *net;
        *net = *rewrite.to;
        *rewrite.to = old;
        *fired = rewrite.fired;
        tnd_rewrite_tidy(net);
    } else if (is_good) {
        *fired = 0;
    } else if (rewrite.to != NULL && rewrite.to->status != TANDEM_OK) {
        status = rewrite.to->status;
        *error = rewrite.to->error;
    } else {
        status = tnd_error_set(error, TANDEM_E_MEMORY, pass->name, net->n_values, 0,
                               "no memory for pass %s over a net of %d values", pass->name,
                               net->n_values);
    }
    tnd_net_free(rewrite.to);
    tnd_free(rewrite.map);
    tnd_free(rewrite.readers);
    tnd_free(rewrite.is_needed);
    tnd_free(rewrite.hashes);
    tnd_free(rewrite.hashed);
    return status;
}

enum tandem_status tnd_rewrite_run(struct tnd_net *net, const struct tnd_pass *pass, int *fired,
                                   struct tandem_error *error)
{
    return run(net, pass, false, fired, error);
}

static int keep(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    (void)rewrite, (void)node, (void)in;
    return TANDEM_NET_NONE;
}

enum tandem_status tnd_rewrite_pack(struct tnd_net *net, struct tandem_error *error)
{
    static const struct tnd_pass pack = {"pack", "leaves out what nothing needs", keep, false};
    int fired;
    return run(net, &pack, true, &fired, error);
}
