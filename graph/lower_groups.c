/* SPDX-License-Identifier: MIT
 * Chooses which element-wise operations become one program, and where it runs: as its own node, or
 * as the epilogue of the node whose result it reads. */
#include <string.h>

#include "graph/lower_internal.h"

enum { NO_GROUP = -1, MANY_GROUPS = -2 };

/* ---- fused programs ---- */

void tnd_lower_plan_fuse(struct tnd_work *job)
{
    int order[TANDEM_NET_MAX_DIMS];
    int64_t strides[TND_FUSE_INPUTS][TANDEM_NET_MAX_DIMS];
    for (int i = 0; i < job->n_in; i++) {
        memcpy(strides[i], job->in[i].view.strides, sizeof(strides[i]));
    }
    tnd_net_order(&job->shape, job->layout, order);
    tnd_fuse_space(&job->space, job->n_in, &job->shape, strides, order);
    job->kind = TND_WORK_PROGRAM;
    job->n_items = job->space.n_items;
    job->is_by_reference = !tnd_fuse_is_fast(&job->fuse);
}

/* ---- groups of nodes that become one program ---- */

/* What a group would read if a node joined it: outside values, and how many are tensors. */
struct reads {
    int values[TND_FUSE_REGISTERS];
    int n, n_steps, n_tensors;
};

static void add_read(const struct tnd_lowering *l, struct reads *reads, int value)
{
    for (int i = 0; i < reads->n; i++) {
        if (reads->values[i] == value) {
            return;
        }
    }
    if (reads->n < TND_FUSE_REGISTERS) {
        reads->values[reads->n++] = value;
        reads->n_tensors += tnd_lower_value(l, value)->known == NULL;
    }
}

/* Finds the values that a group reads but does not compute. */
static void find_reads(const struct tnd_lowering *l, int group, struct reads *reads)
{
    *reads = (struct reads){.n = 0};
    for (int i = group; i >= 0 && reads->n_steps < TND_FUSE_REGISTERS; i--) {
        const struct tnd_net_node *node = &l->net->nodes[i];
        if (l->groups[i] != group) {
            continue;
        }
        reads->n_steps++;
        for (int k = 0; k < node->n_inputs; k++) {
            const struct tnd_net_value *v = tnd_net_value(l->net, node->inputs[k]);
            if (v->base != node->inputs[k] || v->node < 0 || l->groups[v->node] != group) {
                add_read(l, reads, node->inputs[k]);
            }
        }
        if (group - i > 256) {
            break; /* nodes of a group are close together */
        }
    }
}

static bool fits(const struct tnd_lowering *l, int group)
{
    struct reads reads;
    find_reads(l, group, &reads);
    return reads.n <= TND_FUSE_INPUTS && reads.n_tensors <= TANDEM_MAX_SRC &&
           reads.n_steps + reads.n <= TND_FUSE_REGISTERS;
}

/* Whether a node converts floats to bytes, which are stored rather than fused: products of integers
 * read them, and they are small. */
static bool makes_bytes(const struct tnd_net *net, const struct tnd_net_node *node)
{
    const enum tandem_dtype type = tnd_net_value(net, node->output)->type;
    return node->op == TND_NET_CAST && (type == TANDEM_DTYPE_I8 || type == TANDEM_DTYPE_U8);
}

/* Whether a value is read unchanged, or (sums of integers) reshaped as a whole. */
static bool is_read_whole(const struct tnd_lowering *l, int value)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    const int node = tnd_net_value(l->net, v->base)->node;
    struct tnd_view whole = {.shape = v->shape};
    memcpy(whole.strides, v->strides, sizeof(whole.strides));
    return v->base == value ||
           (node >= 0 && l->int8[node].is_found && l->net->nodes[node].op == TND_NET_CONTRACT &&
            v->offset == 0 && tnd_view_has_no_gaps(&whole) &&
            tnd_dims_values(&v->shape) == tnd_dims_values(&tnd_net_value(l->net, v->base)->shape));
}

/* A node joins its readers' group if all are in one group, read it unchanged, and there is room.
 * Readers follow it, so one backward pass suffices. */
static void find_groups(struct tnd_lowering *l)
{
    const struct tnd_net *net = l->net;
    for (int i = 0; i < net->n_values; i++) {
        l->values[i].group = NO_GROUP;
    }
    for (int i = 0; i < net->n_outputs; i++) {
        l->values[net->outputs[i]].group = MANY_GROUPS;
    }
    for (int i = net->n_nodes - 1; i >= 0; i--) {
        const struct tnd_net_node *node = &net->nodes[i];
        l->groups[i] = i;
        if (!l->values[node->output].is_needed) {
            continue;
        }
        const int readers = l->values[node->output].group;
        if (tnd_lower_is_elementwise(node) && !makes_bytes(net, node) && readers >= 0 &&
            readers - i < 256 && !tnd_lower_is_of_bytes(l, i) &&
            !tnd_lower_is_of_bytes(l, readers)) {
            l->groups[i] = readers;
            l->groups[i] = fits(l, readers) ? readers : i;
        }
        int own[TND_LOWER_READS];
        const int *inputs;
        const int n = tnd_lower_reads(l, i, own, &inputs);
        for (int k = 0; k < n; k++) {
            const int base = tnd_net_value(net, inputs[k])->base;
            struct tnd_lower_value *v = &l->values[base];
            const int group = tnd_lower_is_elementwise(node) && is_read_whole(l, inputs[k])
                                  ? l->groups[i]
                                  : MANY_GROUPS;
            v->group = v->group == NO_GROUP || v->group == group ? group : MANY_GROUPS;
        }
    }
}

/* The layout of a program's result: channels last if an operand has them so, or contiguous. */
static enum tnd_net_layout group_layout(const struct tnd_lowering *l, const struct reads *reads,
                                        const struct tnd_dims *shape)
{
    for (int i = 0; i < reads->n; i++) {
        int64_t offset;
        int64_t strides[TANDEM_NET_MAX_DIMS];
        if (tnd_dims_is_equal(&tnd_net_value(l->net, reads->values[i])->shape, shape) &&
            (tnd_lower_lies_last(l, reads->values[i]) ||
             (tnd_lower_view_last(l, reads->values[i], &offset, strides) && strides[1] == 1))) {
            return TND_LAYOUT_LAST;
        }
    }
    return TND_LAYOUT_PLAIN;
}

static int register_of(const struct reads *reads, const int *steps, int value)
{
    for (int i = 0; i < reads->n; i++) {
        if (reads->values[i] == value) {
            return i;
        }
    }
    return steps[value];
}

/* Writes the program of a group; `steps` has room for a register per value. */
static void write_program(const struct tnd_lowering *l, int group, const struct reads *reads,
                          int *steps, struct tnd_fuse *fuse)
{
    for (int i = 0; i < reads->n; i++) {
        (void)tnd_fuse_input(fuse, tnd_net_value(l->net, reads->values[i])->type);
    }
    for (int i = group > 256 ? group - 256 : 0; i <= group; i++) {
        const struct tnd_net_node *node = &l->net->nodes[i];
        int in[3];
        if (l->groups[i] != group) {
            continue;
        }
        for (int k = 0; k < node->n_inputs; k++) {
            in[k] = register_of(reads, steps, node->inputs[k]);
        }
        steps[node->output] =
            tnd_fuse_step(fuse, node->op, node->params.kind,
                          tnd_net_value(l->net, node->output)->type, in, node->n_inputs);
    }
}

/* ---- epilogues ---- */

/* Finds the last convolution whose result is read only by the group, unchanged. Its node waits
 * until the group is lowered, which may become its epilogue. */
static void find_tail(struct tnd_lowering *l, int group)
{
    const struct tnd_net_value *result = tnd_net_value(l->net, l->net->nodes[group].output);
    struct reads reads;
    int tail = -1;
    find_reads(l, group, &reads);
    bool is_f32 = result->type == TANDEM_DTYPE_F32;
    int sums = -1; /* of 8-bit integers */
    for (int i = 0; i < reads.n; i++) {
        const struct tnd_net_value *v = tnd_net_value(l->net, reads.values[i]);
        const int made = tnd_net_value(l->net, v->base)->node;
        is_f32 = is_f32 && v->type == TANDEM_DTYPE_F32;
        if (made > sums && l->int8[made].is_found && l->values[v->base].group == group &&
            tnd_dims_is_equal(&v->shape, &result->shape)) {
            sums = made;
        }
        if (v->base == reads.values[i] && v->node > tail && l->values[v->base].group == group &&
            l->net->nodes[v->node].op == TND_NET_CONV && l->values[v->base].known == NULL &&
            tnd_dims_is_equal(&v->shape, &result->shape)) {
            tail = v->node;
        }
    }
    if (sums >= 0) {
        l->tails[sums] = group;
    } else if (tail >= 0 && is_f32) {
        l->tails[tail] = group;
    }
}

static void find_tails(struct tnd_lowering *l)
{
    for (int i = 0; i < l->net->n_nodes; i++) {
        const struct tnd_net_node *node = &l->net->nodes[i];
        l->tails[i] = -1;
        if (tnd_lower_is_elementwise(node) && l->groups[i] == i &&
            l->values[node->output].is_needed && !tnd_lower_is_of_bytes(l, i)) {
            find_tail(l, i);
        }
    }
}

/* Turns a group's reads into operands of an epilogue of `self`, one of them. */
static enum tandem_status epilogue_operands(struct tnd_lowering *l, const struct reads *reads,
                                            int self, const struct tnd_dims *shape,
                                            struct tnd_lower_epilogue *waiting, bool *fits)
{
    struct tnd_epilogue *epilogue = waiting->of;
    int64_t strides[TND_FUSE_INPUTS][TANDEM_NET_MAX_DIMS];
    for (int i = 0; i < reads->n; i++) {
        if (i != self) {
            TND_TRY(tnd_lower_operand(l, reads->values[i], true, &epilogue->in[i], waiting->tensors,
                                      &waiting->n_tensors));
            memcpy(strides[i], epilogue->in[i].view.strides, sizeof(strides[i]));
        }
    }
    if (l->options->for_device) {
        tnd_lower_constants(l, reads->values, epilogue->in, reads->n, waiting->tensors,
                            &waiting->n_tensors);
    }
    *fits = tnd_fuse_matrix(&epilogue->matrix, self, reads->n, shape, strides);
    return TANDEM_OK;
}

/* Lowers a convolution that waited for its group, with the group as epilogue if possible. */
static enum tandem_status lower_tail(struct tnd_lowering *l, int tail, int group,
                                     const struct reads *reads, int *steps, bool *done)
{
    const struct tnd_net_node *node = &l->net->nodes[tail];
    const int output = l->net->nodes[group].output;
    struct tnd_epilogue *epilogue =
        tnd_arena_alloc(&l->out->arena, sizeof(*epilogue), _Alignof(struct tnd_epilogue));
    bool fits = false;
    int self = 0;
    if (epilogue == NULL) {
        return tnd_lower_no_memory(l);
    }
    while (tnd_net_value(l->net, reads->values[self])->base != node->output) {
        self++;
    }
    struct tnd_lower_epilogue waiting = {.of = epilogue,
                                         .n_dims = tnd_net_value(l->net, output)->shape.n};
    epilogue->in[self].src = -1;
    TND_TRY(
        epilogue_operands(l, reads, self, &tnd_net_value(l->net, output)->shape, &waiting, &fits));
    write_program(l, group, reads, steps, &epilogue->fuse);
    epilogue->matrix.self = self;
    l->epilogue = fits || l->int8[tail].is_found ? &waiting : NULL;
    const enum tandem_status status = tnd_lower_node(l, node);
    l->epilogue = NULL;
    TND_TRY(status);
    *done = waiting.is_taken;
    if (*done) {
        memcpy(l->values[output].tensors, l->values[node->output].tensors,
               sizeof(l->values[output].tensors));
        memset(l->values[node->output].tensors, 0, sizeof(l->values[node->output].tensors));
    }
    return TANDEM_OK;
}

/* ---- the whole ---- */

void tnd_lower_find_groups(struct tnd_lowering *l)
{
    find_groups(l);
    find_tails(l);
}

enum tandem_status tnd_lower_group(struct tnd_lowering *l, int group, int *steps)
{
    const struct tnd_net_node *node = &l->net->nodes[group];
    const struct tnd_net_value *result = tnd_net_value(l->net, node->output);
    struct reads reads;
    tandem_tensor *tensors[TANDEM_MAX_SRC];
    int n_tensors = 0;
    find_reads(l, group, &reads);
    for (int i = 0; i < reads.n; i++) {
        const int base = tnd_net_value(l->net, reads.values[i])->base;
        const int made = tnd_net_value(l->net, base)->node;
        bool done = false;
        if (made >= 0 && l->tails[made] == group) {
            TND_TRY(lower_tail(l, made, group, &reads, steps, &done));
        }
        if (done) {
            return TANDEM_OK;
        }
    }
    struct tnd_work *job = tnd_lower_job(l, reads.n);
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    job->name = result->name;
    job->type = result->type;
    job->shape = result->shape;
    job->layout = group_layout(l, &reads, &result->shape);
    for (int i = 0; i < reads.n; i++) {
        TND_TRY(tnd_lower_operand(l, reads.values[i], true, &job->in[i], tensors, &n_tensors));
    }
    tnd_lower_constants(l, reads.values, job->in, reads.n, tensors, &n_tensors);
    write_program(l, group, &reads, steps, &job->fuse);
    tnd_lower_plan_fuse(job);
    return tnd_lower_emit(l, job, tensors, n_tensors,
                          &l->values[node->output].tensors[job->layout]);
}
