/* SPDX-License-Identifier: MIT
 * Lowers nets to graphs of tensors: which nodes there are, tensors of values in the layouts that
 * readers want, jobs. */
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"
#include "graph/lower_internal.h"
#include "graph/net_internal.h"

enum tandem_status tnd_lower_no_memory(const struct tnd_lowering *l)
{
    return tnd_error_set(l->error, TANDEM_E_MEMORY, NULL, l->net->n_nodes, 0,
                         "no memory to lower a net of %d nodes", l->net->n_nodes);
}

const struct tnd_lower_value *tnd_lower_value(const struct tnd_lowering *l, int value)
{
    return &l->values[tnd_net_value(l->net, value)->base];
}

/* Number of F32 that hold the bytes of values; at least 1. */
static bool units_of(enum tandem_dtype type, const struct tnd_dims *shape, int64_t *out)
{
    const int64_t values = tnd_dims_values(shape);
    const int64_t bytes = (int64_t)tandem_dtype_bytes(type);
    if (values < 0) {
        return false;
    }
    *out = values == 0 ? 1 : (values * bytes + 3) / 4;
    return true;
}

/* ---- jobs ---- */

struct tnd_work *tnd_lower_job(struct tnd_lowering *l, int n_in)
{
    struct tnd_work *job = tnd_arena_alloc(&l->out->arena, sizeof(*job), _Alignof(struct tnd_work));
    struct tnd_operand *in = tnd_arena_alloc(&l->out->arena, (size_t)(n_in + 1) * sizeof(*in),
                                             _Alignof(struct tnd_operand));
    if (job == NULL || in == NULL) {
        return NULL;
    }
    job->in = in;
    job->n_in = n_in;
    job->split = -1;
    job->fault = &l->out->fault;
    return job;
}

bool tnd_lowered_keep(struct tnd_lowered *lowered, struct tnd_array *array)
{
    if (tnd_vector_insert(&lowered->owned_vector, sizeof(lowered->owned[0]), INT_MAX / 2,
                          lowered->n_owned) != TANDEM_OK) {
        tnd_array_free(array);
        return false;
    }
    lowered->owned[lowered->n_owned - 1] = array;
    return true;
}

struct tnd_array *tnd_lower_array(struct tnd_lowering *l, enum tandem_dtype type,
                                  const struct tnd_dims *shape)
{
    struct tnd_array *array = tnd_array_new(type, shape);
    return array != NULL && tnd_lowered_keep(l->out, array) ? array : NULL;
}

/* Amount of work: multiply-adds of products and windows, else the larger count of operand and
 * result values. */
static double values_of(const struct tnd_work *job)
{
    const double out = (double)tnd_dims_values(&job->shape);
    const double in = job->n_in == 0 ? 0 : (double)tnd_dims_values(&job->in[0].view.shape);
    const struct tnd_dims *w = job->n_in > 1 ? &job->in[1].view.shape : NULL;
    double window = 1;
    switch (w == NULL && job->op != TND_NET_POOL ? TND_NET_COPY : job->op) {
    case TND_NET_CONTRACT:
        return out * (double)w->dims[1];
    case TND_NET_CONV:
        return w->dims[0] == 0 ? out : out * (double)tnd_dims_values(w) / (double)w->dims[0];
    case TND_NET_POOL:
        for (int i = 0; i < job->params->window.n; i++) {
            window *= (double)job->params->window.extent[i];
        }
        return out * window;
    case TND_NET_RECURRENT:
        return in * (double)job->shape.dims[3];
    default:
        return in > out ? in : out;
    }
}

/* The operation of op-list.h for an operation of a net. */
static enum tandem_op row_of(const struct tnd_work *job)
{
    static const enum tandem_op rows[TND_N_NET_OPS] = {
        [TND_NET_COPY] = TANDEM_OP_MOVE,
        [TND_NET_CAST] = TANDEM_OP_PROGRAM,
        [TND_NET_UNARY] = TANDEM_OP_PROGRAM,
        [TND_NET_BINARY] = TANDEM_OP_PROGRAM,
        [TND_NET_SELECT] = TANDEM_OP_PROGRAM,
        [TND_NET_REDUCE] = TANDEM_OP_REDUCE,
        [TND_NET_ARG_REDUCE] = TANDEM_OP_REDUCE,
        [TND_NET_CONTRACT] = TANDEM_OP_CONTRACT,
        [TND_NET_CONCAT] = TANDEM_OP_MOVE,
        [TND_NET_PAD] = TANDEM_OP_MOVE,
        [TND_NET_GATHER] = TANDEM_OP_MOVE,
        [TND_NET_GATHER_ELEMENTS] = TANDEM_OP_MOVE,
        [TND_NET_SCATTER_ELEMENTS] = TANDEM_OP_MOVE,
        [TND_NET_SCAN] = TANDEM_OP_REDUCE,
        [TND_NET_ARG_SORT] = TANDEM_OP_REDUCE,
        [TND_NET_CONV] = TANDEM_OP_CONV,
        [TND_NET_POOL] = TANDEM_OP_POOL,
        [TND_NET_SOFTMAX] = TANDEM_OP_REDUCE,
        [TND_NET_NORM] = TANDEM_OP_REDUCE,
        [TND_NET_ATTENTION] = TANDEM_OP_REDUCE,
        [TND_NET_RECURRENT] = TANDEM_OP_RECURRENT,
    };
    const bool is_one = job->fuse.n_steps == 1;
    return job->fuse.n_steps > 1 ? TANDEM_OP_PROGRAM
                                 : rows[is_one ? job->fuse.steps[0].op : job->op];
}

/* A function counts as three simple steps. */
static double amount_of_program(const struct tnd_work *job)
{
    double steps = 1;
    for (int i = 0; i < job->fuse.n_steps; i++) {
        const struct tnd_fuse_step *step = &job->fuse.steps[i];
        steps += step->op == TND_NET_UNARY && tnd_strip_function_of(step->kind) >= 0 ? 3 : 0;
    }
    return steps * (double)tnd_dims_values(&job->shape);
}

static double amount_of(const struct tnd_work *job)
{
    const bool has_sums =
        job->op == TND_NET_CONTRACT || job->op == TND_NET_CONV || job->op == TND_NET_RECURRENT;
    const double values = job->fuse.n_steps > 0 ? amount_of_program(job) : values_of(job);
    return values *
           (job->is_by_reference ? TND_WORK_REFERENCE * (has_sums ? TND_WORK_SUMS : 1) : 1);
}

/* Marks a node as computed by the reference kernel, for reports of what is slow. */
static enum tandem_status mark_reference(struct tnd_lowering *l, struct tnd_work *job,
                                         const tandem_tensor *node)
{
    const enum tandem_dtype type = job->n_in > 0 ? job->in[0].view.type : job->type;
    struct tnd_text text = TND_TEXT_INIT;
    tnd_text_printf(&text, "%s of %s", node->name, tandem_dtype_name(type));
    if (job->name != NULL && job->name[0] != '\0') {
        tnd_text_printf(&text, " (%s)", job->name);
    }
    char *what = tnd_arena_alloc(&l->out->arena, text.n + 1, 1);
    if (what != NULL && !text.failed) {
        memcpy(what, text.bytes, text.n);
        job->what = what;
        job->reference_values = values_of(job);
    }
    tnd_text_fini(&text);
    return job->what != NULL ? TANDEM_OK : tnd_lower_no_memory(l);
}

enum tandem_status tnd_lower_emit(struct tnd_lowering *l, struct tnd_work *job,
                                  tandem_tensor *const *tensors, int n, tandem_tensor **out)
{
    tandem_context *context = l->out->context;
    int64_t units;
    tandem_tensor *one = NULL; /* a node has one operand at least */
    if (n == 0) {
        one = tandem_tensor_new_1d(context, TANDEM_TYPE_F32, 1);
        tensors = &one;
        n = 1;
    }
    if (!units_of(job->type, &job->shape, &units)) {
        return tnd_lower_no_memory(l);
    }
    units += (int64_t)((size_t)job->n_items * job->scratch / sizeof(float));
    if (job->amount <= 0) {
        job->amount = amount_of(job);
    }
    *out = tnd_build_work(context, job->row != TANDEM_OP_NONE ? job->row : row_of(job), units,
                          tensors, n, job);
    const enum tnd_net_op op = job->fuse.n_steps == 1 ? job->fuse.steps[0].op : job->op;
    const bool is_named = job->name != NULL && strncmp(job->name, "reindex ", 8) == 0;
    *out = tandem_tensor_set_name(*out, is_named                ? job->name /* by a user's map */
                                        : job->fuse.n_steps > 1 ? "fused"
                                                                : tnd_net_op_name(op));
    if (*out == NULL) {
        return tandem_context_status(context, l->error);
    }
    if (job->fuse.n_steps > 0) {
        tnd_lower_source(l, job, *out);
    }
    return job->is_by_reference ? mark_reference(l, job, *out) : TANDEM_OK;
}

enum tandem_status tnd_lower_copy(struct tnd_lowering *l, const struct tnd_operand *from,
                                  tandem_tensor *tensor, enum tnd_net_layout layout,
                                  tandem_tensor **out)
{
    struct tnd_work *job = tnd_lower_job(l, 1);
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    job->in[0] = *from;
    job->in[0].src = tensor == NULL ? -1 : 0;
    job->type = from->view.type;
    job->shape = from->view.shape;
    job->layout = layout;
    const int in = tnd_fuse_input(&job->fuse, job->type);
    (void)tnd_fuse_step(&job->fuse, TND_NET_COPY, 0, job->type, &in, 1);
    tnd_lower_plan_fuse(job);
    return tnd_lower_emit(l, job, &tensor, tensor == NULL ? 0 : 1, out);
}

/* ---- operands ---- */

static struct tnd_operand whole(const struct tnd_lowering *l, int base, enum tnd_net_layout layout)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, base);
    struct tnd_operand operand = {.view = {.type = v->type, .shape = v->shape}};
    tnd_net_strides(&v->shape, layout, operand.view.strides);
    return operand;
}

static enum tandem_status convert(struct tnd_lowering *l, int value, const struct tnd_operand *from,
                                  tandem_tensor *tensor, enum tnd_net_layout layout,
                                  tandem_tensor **out)
{
    struct tnd_lowered *lowered = l->out;
    if (tnd_vector_insert(&lowered->conversions_vector, sizeof(lowered->conversions[0]),
                          INT_MAX / 2, lowered->n_conversions) != TANDEM_OK) {
        return tnd_lower_no_memory(l);
    }
    lowered->conversions[lowered->n_conversions - 1] =
        (struct tnd_conversion){.shape = from->view.shape,
                                .is_last = layout == TND_LAYOUT_LAST,
                                .name = tnd_net_value(l->net, value)->name};
    return tnd_lower_copy(l, from, tensor, layout, out);
}

const struct tnd_conversion *tnd_lowered_conversion(const struct tnd_lowered *lowered, int i)
{
    return i >= 0 && i < lowered->n_conversions ? &lowered->conversions[i] : NULL;
}

enum tandem_status tnd_lower_tensor(struct tnd_lowering *l, int value, enum tnd_net_layout layout,
                                    tandem_tensor **out)
{
    struct tnd_lower_value *v = &l->values[value];
    if (v->tensors[layout] == NULL) {
        const enum tnd_net_layout other =
            layout == TND_LAYOUT_PLAIN ? TND_LAYOUT_LAST : TND_LAYOUT_PLAIN;
        const struct tnd_operand from = whole(l, value, other);
        TND_ASSERT(v->tensors[other] != NULL);
        TND_TRY(convert(l, value, &from, v->tensors[other], layout, &v->tensors[layout]));
    }
    *out = v->tensors[layout];
    return TANDEM_OK;
}

bool tnd_lower_view_last(const struct tnd_lowering *l, int value, int64_t *offset, int64_t *strides)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    const struct tnd_lower_value *base = &l->values[v->base];
    struct tnd_net_value last = {.shape = tnd_net_value(l->net, v->base)->shape};
    int64_t first;
    int64_t steps[TANDEM_NET_MAX_DIMS];
    tnd_net_strides(&last.shape, TND_LAYOUT_LAST, last.strides);
    if (base->tensors[TND_LAYOUT_LAST] == NULL || base->tensors[TND_LAYOUT_PLAIN] != NULL ||
        v->shape.n <= 2 || !tnd_net_compose(&last, v, &first, steps) ||
        (steps[1] != 1 && steps[v->shape.n - 1] != 1)) {
        return false;
    }
    *offset = first;
    memcpy(strides, steps, sizeof(steps));
    return true;
}

bool tnd_lower_lies_last(const struct tnd_lowering *l, int value)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    int64_t offset;
    int64_t strides[TANDEM_NET_MAX_DIMS];
    int64_t last[TANDEM_NET_MAX_DIMS];
    if (tnd_dims_values(&v->shape) != tnd_dims_values(&tnd_net_value(l->net, v->base)->shape) ||
        !tnd_lower_view_last(l, value, &offset, strides)) {
        return false;
    }
    tnd_net_strides(&v->shape, TND_LAYOUT_LAST, last);
    for (int i = 0; i < v->shape.n; i++) {
        if (v->shape.dims[i] > 1 && strides[i] != last[i]) {
            return false;
        }
    }
    return offset == 0;
}

enum tandem_status tnd_lower_operand(struct tnd_lowering *l, int value, bool takes_last,
                                     struct tnd_operand *out, tandem_tensor **tensors, int *n)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    struct tnd_lower_value *base = &l->values[v->base];
    *out = (struct tnd_operand){
        .view = {.type = v->type, .shape = v->shape}, .src = -1, .offset = v->offset};
    memcpy(out->view.strides, v->strides, sizeof(out->view.strides));
    if (base->known != NULL) {
        TND_TRY(tnd_lower_fill(l, value));
        out->view = tnd_lower_known(l, value);
        base->is_read = true;
        return TANDEM_OK;
    }
    const bool is_view = v->base != value;
    const bool is_last =
        takes_last && (is_view ? tnd_lower_view_last(l, value, &out->offset, out->view.strides)
                               : base->tensors[TND_LAYOUT_LAST] != NULL);
    tandem_tensor *tensor;
    TND_TRY(tnd_lower_tensor(l, v->base, is_last ? TND_LAYOUT_LAST : TND_LAYOUT_PLAIN, &tensor));
    if (is_last && !is_view) {
        tnd_net_strides(&v->shape, TND_LAYOUT_LAST, out->view.strides);
    }
    out->src = 0;
    while (out->src < *n && tensors[out->src] != tensor) {
        out->src++;
    }
    if (out->src == *n) {
        tensors[(*n)++] = tensor;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_lower_last(struct tnd_lowering *l, int value, tandem_tensor **out)
{
    struct tnd_operand from;
    tandem_tensor *tensors[1];
    int n = 0;
    if (tnd_net_value(l->net, value)->base == value) {
        return tnd_lower_tensor(l, value, TND_LAYOUT_LAST, out);
    }
    if (tnd_lower_lies_last(l, value)) {
        *out = tnd_lower_value(l, value)->tensors[TND_LAYOUT_LAST];
        return TANDEM_OK;
    }
    TND_TRY(tnd_lower_operand(l, value, true, &from, tensors, &n));
    return convert(l, value, &from, tensors[0], TND_LAYOUT_LAST, out);
}

/* ---- constants ---- */

static void find_needed(struct tnd_lowering *l)
{
    const struct tnd_net *net = l->net;
    for (int i = 0; i < net->n_outputs; i++) {
        l->values[net->outputs[i]].is_needed = true;
    }
    for (int i = net->n_nodes - 1; i >= 0; i--) {
        const struct tnd_net_node *node = &net->nodes[i];
        if (l->values[node->output].known != NULL) {
            l->values[node->output].is_needed = false;
        }
        int own[TND_LOWER_READS];
        const int *inputs;
        const int n = tnd_lower_reads(l, i, own, &inputs);
        for (int k = 0; k < n && l->values[node->output].is_needed; k++) {
            l->values[tnd_net_value(net, inputs[k])->base].is_needed = true;
        }
    }
}

/* Computes a node whose operands are all known. */
static enum tandem_status fold_node(struct tnd_lowering *l, const struct tnd_net_node *node,
                                    struct tnd_array **arrays)
{
    struct tnd_array *values = NULL;
    TND_TRY(tnd_net_compute(l->net, node, arrays, &values, l->error));
    if (!tnd_lowered_keep(l->out, values)) {
        return tnd_lower_no_memory(l);
    }
    arrays[node->output] = values;
    l->values[node->output].known = values;
    l->values[node->output].owned = l->out->n_owned;
    return TANDEM_OK;
}

static enum tandem_status fold_constants(struct tnd_lowering *l)
{
    const struct tnd_net *net = l->net;
    struct tnd_array **arrays = tnd_calloc((size_t)net->n_values + 1, sizeof(arrays[0]));
    enum tandem_status status = arrays == NULL ? tnd_lower_no_memory(l) : TANDEM_OK;
    for (int i = 0; i < net->n_values; i++) {
        const struct tnd_net_value *v = tnd_net_value(net, i);
        l->values[i].known = v->input < 0 || v->is_fixed ? v->known : NULL;
    }
    find_needed(l);
    for (int i = 0; status == TANDEM_OK && i < net->n_nodes; i++) {
        const struct tnd_net_node *node = &net->nodes[i];
        bool is_known = l->values[node->output].is_needed;
        for (int k = 0; k < node->n_inputs && is_known; k++) {
            is_known = tnd_lower_value(l, node->inputs[k])->known != NULL;
        }
        status = is_known ? fold_node(l, node, arrays) : TANDEM_OK;
    }
    tnd_free(arrays);
    if (status == TANDEM_OK) {
        for (int i = 0; i < net->n_values; i++) {
            l->values[i].is_needed = false;
        }
        status = l->options->for_device ? TANDEM_OK : tnd_lower_find_tables(l);
        if (!l->options->for_device) {
            tnd_lower_find_pairs(l);
        }
        tnd_lower_find_int8(l);
        find_needed(l);
    }
    return status;
}

/* ---- nodes ---- */

/* Lowers operands `first` to `first + n - 1` of a node, preceded by `before` (NULL: none). */
static enum tandem_status lower_part(struct tnd_lowering *l, const struct tnd_net_node *node,
                                     int first, int n, const struct tnd_operand *before,
                                     enum tnd_net_layout layout, tandem_tensor **tensor,
                                     const struct tnd_dims *shape)
{
    const int more = before != NULL;
    tandem_tensor *tensors[TANDEM_MAX_SRC] = {*tensor};
    int n_tensors = more;
    struct tnd_work *job = tnd_lower_job(l, n + more);
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    job->op = node->op;
    job->name = tnd_net_value(l->net, node->output)->name;
    job->params = &node->params;
    job->type = tnd_net_value(l->net, node->output)->type;
    job->shape = *shape;
    if (more) {
        job->in[0] = *before;
    }
    for (int i = 0; i < n; i++) {
        TND_TRY(tnd_lower_operand(l, node->inputs[first + i], layout == TND_LAYOUT_LAST,
                                  &job->in[more + i], tensors, &n_tensors));
    }
    if (l->options->for_device) {
        tnd_lower_constants(l, node->inputs + first, job->in + more, n, tensors, &n_tensors);
    }
    if (layout == TND_LAYOUT_LAST && !tnd_lower_turn(l, job, layout)) {
        return tnd_lower_no_memory(l);
    }
    tnd_lower_ranges(job);
    TND_TRY(tnd_lower_emit(l, job, tensors, n_tensors, tensor));
    tnd_lower_print_move(l, job, *tensor);
    return TANDEM_OK;
}

/* Joins more operands than a node may have in several steps. */
static enum tandem_status lower_concat(struct tnd_lowering *l, const struct tnd_net_node *node,
                                       enum tnd_net_layout layout)
{
    const int axis = node->params.axis;
    struct tnd_dims shape = tnd_net_value(l->net, node->output)->shape;
    tandem_tensor **tensor = &l->values[node->output].tensors[layout];
    struct tnd_operand before;
    shape.dims[axis] = 0;
    for (int i = 0; i < node->n_inputs;) {
        const int most = i == 0 ? TANDEM_MAX_SRC : TANDEM_MAX_SRC - 1;
        const int n = node->n_inputs - i < most ? node->n_inputs - i : most;
        before = (struct tnd_operand){
            .view = {.type = tnd_net_value(l->net, node->output)->type, .shape = shape}};
        tnd_net_strides(&shape, layout, before.view.strides);
        for (int k = i; k < i + n; k++) {
            shape.dims[axis] += tnd_net_value(l->net, node->inputs[k])->shape.dims[axis];
        }
        TND_TRY(lower_part(l, node, i, n, i == 0 ? NULL : &before, layout, tensor, &shape));
        i += n;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_lower_node(struct tnd_lowering *l, const struct tnd_net_node *node)
{
    bool done = false;
    if (l->int8[node - l->net->nodes].is_found) {
        return tnd_lower_sums(l, node);
    }
    if (node->op == TND_NET_CONTRACT) {
        TND_TRY(tnd_lower_contract(l, node, &done));
    } else if (node->op == TND_NET_CONV) {
        TND_TRY(tnd_lower_conv(l, node, &done));
    } else if (node->op == TND_NET_POOL) {
        TND_TRY(tnd_lower_pool(l, node, &done));
    } else if (node->op == TND_NET_REDUCE) {
        TND_TRY(tnd_lower_reduce(l, node, &done));
    } else if (node->op == TND_NET_RECURRENT) {
        TND_TRY(tnd_lower_recurrent(l, node, &done));
    } else if (node->op >= TND_NET_SOFTMAX) {
        TND_TRY(tnd_lower_rows(l, node, &done));
    }
    if (done) {
        return TANDEM_OK;
    }
    const enum tnd_net_layout layout = tnd_lower_moves_layout(l, node);
    if (node->op == TND_NET_CONCAT) {
        return lower_concat(l, node, layout);
    }
    return lower_part(l, node, 0, node->n_inputs, NULL, layout,
                      &l->values[node->output].tensors[layout],
                      &tnd_net_value(l->net, node->output)->shape);
}

static enum tandem_status lower_nodes(struct tnd_lowering *l)
{
    int *steps = tnd_calloc((size_t)l->net->n_values + 1, sizeof(steps[0]));
    enum tandem_status status = steps == NULL ? tnd_lower_no_memory(l) : TANDEM_OK;
    for (int i = 0; status == TANDEM_OK && i < l->net->n_nodes; i++) {
        const struct tnd_net_node *node = &l->net->nodes[i];
        if (!l->values[node->output].is_needed || l->groups[i] != i || l->tails[i] >= 0) {
            continue; /* lowered with its group */
        }
        status = l->tables[i].values != NULL      ? tnd_lower_look_up(l, node)
                 : l->pairs[i].is_found           ? tnd_lower_pair(l, node)
                 : tnd_lower_is_elementwise(node) ? tnd_lower_group(l, i, steps)
                                                  : tnd_lower_node(l, node);
    }
    tnd_free(steps);
    return status;
}

/* ---- inputs and outputs ---- */

static enum tandem_status lower_inputs(struct tnd_lowering *l)
{
    const struct tnd_net *net = l->net;
    for (int i = 0; i < net->n_inputs; i++) {
        const struct tnd_net_value *v = tnd_net_value(net, net->inputs[i]);
        int64_t units;
        if (!units_of(v->type, &v->shape, &units)) {
            return tnd_lower_no_memory(l);
        }
        tandem_tensor *tensor = tandem_tensor_new_1d(l->out->context, TANDEM_TYPE_F32, units);
        l->out->inputs[i] = tandem_tensor_set_name(tensor, v->name);
        l->values[net->inputs[i]]
            .tensors[l->options->is_last ? TND_LAYOUT_LAST : TND_LAYOUT_PLAIN] = tensor;
    }
    return TANDEM_OK;
}

/* Copies outputs that no node computes. */
static enum tandem_status lower_outputs(struct tnd_lowering *l)
{
    const struct tnd_net *net = l->net;
    for (int i = 0; i < net->n_outputs; i++) {
        const int value = net->outputs[i];
        const struct tnd_lower_value *v = &l->values[value];
        if (v->known == NULL && tnd_net_value(net, value)->node >= 0) {
            TND_TRY(tnd_lower_tensor(l, value,
                                     l->options->is_last ? TND_LAYOUT_LAST : TND_LAYOUT_PLAIN,
                                     &l->out->outputs[i]));
        } else {
            struct tnd_operand from = whole(l, value, TND_LAYOUT_PLAIN);
            TND_TRY(v->known != NULL ? tnd_lower_fill(l, value) : TANDEM_OK);
            from.src = v->known != NULL ? -1 : 0;
            from.view.data = v->known != NULL ? v->known->data : NULL;
            l->values[value].is_read = v->known != NULL;
            TND_TRY(tnd_lower_copy(l, &from, v->known != NULL ? NULL : v->tensors[TND_LAYOUT_PLAIN],
                                   TND_LAYOUT_PLAIN, &l->out->outputs[i]));
        }
        tandem_graph_add(l->out->graph, l->out->outputs[i]);
    }
    return tandem_context_status(l->out->context, l->error);
}

/* ---- the whole ---- */

enum { WORTH_TRIMMING = 1 << 20 }; /* bytes: a net for other extents would free no weights */

/* Frees constants that are only read in packed form. */
static void free_unread(struct tnd_lowering *l, struct tnd_net *net)
{
    for (int i = 0; i < net->n_values; i++) {
        if (!l->values[i].is_read && net->values[i].input < 0) {
            net->values[i].known = NULL;
        }
    }
    const size_t before = tnd_alloc_live_bytes();
    (void)tnd_net_free_unknown(net); /* out of memory: they are kept */
    if (before - tnd_alloc_live_bytes() >= WORTH_TRIMMING) {
        tnd_alloc_trim();
    }
}

static enum tandem_status lower_all(struct tnd_lowering *l)
{
    TND_TRY(tandem_context_new(NULL, &l->out->context, l->error));
    l->out->graph = tandem_graph_new(l->out->context);
    TND_TRY(fold_constants(l));
    tnd_lower_find_groups(l);
    TND_TRY(lower_inputs(l));
    TND_TRY(lower_nodes(l));
    TND_TRY(lower_outputs(l));
    return tandem_graph_finish(l->out->graph, l->error);
}

enum tandem_status tnd_net_lower(const struct tnd_net *net, struct tnd_lowered **out,
                                 struct tandem_error *error)
{
    const struct tnd_lower_options none = {.chooser = NULL};
    return tnd_net_lower_with(net, &none, out, error);
}

enum tandem_status tnd_net_lower_with(const struct tnd_net *net,
                                      const struct tnd_lower_options *options,
                                      struct tnd_lowered **out, struct tandem_error *error)
{
    if (net->status != TANDEM_OK) {
        if (error != NULL) {
            *error = net->error;
        }
        return net->status;
    }
    struct tnd_lowered *lowered = tnd_calloc(1, sizeof(*lowered));
    struct tnd_lower_options answered = *options;
    struct tnd_lowering l = {.out = lowered,
                             .net = net,
                             .options = &answered,
                             .values = tnd_calloc((size_t)net->n_values + 1, sizeof(l.values[0])),
                             .groups = tnd_calloc((size_t)net->n_nodes + 1, sizeof(l.groups[0])),
                             .tails = tnd_calloc((size_t)net->n_nodes + 1, sizeof(l.tails[0])),
                             .int8 = tnd_calloc((size_t)net->n_nodes + 1, sizeof(l.int8[0])),
                             .tables = tnd_calloc((size_t)net->n_nodes + 1, sizeof(l.tables[0])),
                             .pairs = tnd_calloc((size_t)net->n_nodes + 1, sizeof(l.pairs[0])),
                             .error = error};
    enum tandem_status status = TANDEM_E_MEMORY;
    if (lowered != NULL) {
        lowered->net = net;
        tnd_arena_init(&lowered->arena, 1 << 16, 0);
        lowered->inputs = tnd_calloc((size_t)net->n_inputs + 1, sizeof(lowered->inputs[0]));
        lowered->outputs = tnd_calloc((size_t)net->n_outputs + 1, sizeof(lowered->outputs[0]));
    }
    const bool has_memory = lowered != NULL && lowered->inputs != NULL &&
                            lowered->outputs != NULL && l.values != NULL && l.groups != NULL &&
                            l.tails != NULL && l.int8 != NULL && l.tables != NULL &&
                            l.pairs != NULL;
    status = has_memory ? tnd_lower_begin_convs(&l, &answered.for_device) : tnd_lower_no_memory(&l);
    status = status == TANDEM_OK ? lower_all(&l) : status;
    for (int i = 0; status == TANDEM_OK && i < net->n_values; i++) {
        if (l.values[i].owned > 0 && !l.values[i].is_read) { /* packed in another form */
            tnd_array_free(lowered->owned[l.values[i].owned - 1]);
            lowered->owned[l.values[i].owned - 1] = NULL;
        }
    }
    if (status == TANDEM_OK && options->gives_up != NULL) {
        free_unread(&l, options->gives_up);
    }
    tnd_free(l.values);
    tnd_free(l.groups);
    tnd_free(l.tails);
    tnd_free(l.int8);
    tnd_free(l.tables);
    tnd_free(l.pairs);
    if (status != TANDEM_OK) {
        tnd_lowered_free(lowered);
        return status;
    }
    *out = lowered;
    return TANDEM_OK;
}

void tnd_lowered_free(struct tnd_lowered *lowered)
{
    if (lowered == NULL) {
        return;
    }
    tandem_context_free(lowered->context);
    for (int i = 0; i < lowered->n_owned; i++) {
        tnd_array_free(lowered->owned[i]);
    }
    tnd_vector_fini(&lowered->owned_vector);
    tnd_vector_fini(&lowered->convs_vector);
    tnd_vector_fini(&lowered->conversions_vector);
    tnd_lowered_free_texts(lowered);
    tnd_arena_fini(&lowered->arena);
    tnd_free(lowered->inputs);
    tnd_free(lowered->outputs);
    tnd_free(lowered);
}

size_t tnd_lowered_bytes(const struct tnd_lowered *lowered)
{
    size_t bytes = tandem_context_bytes(lowered->context) + tnd_arena_bytes(&lowered->arena) +
                   lowered->graph->planned_bytes;
    for (int i = 0; i < lowered->n_owned; i++) {
        const struct tnd_array *array = lowered->owned[i];
        if (array != NULL && array->keeper == NULL) {
            bytes += (size_t)array->n * tandem_dtype_bytes(array->type);
        }
    }
    return bytes;
}

tandem_graph *tnd_lowered_graph(const struct tnd_lowered *lowered)
{
    return lowered->graph;
}

void *tnd_lowered_input(const struct tnd_lowered *lowered, int i)
{
    TND_ASSERT(i >= 0 && i < lowered->net->n_inputs);
    return tandem_tensor_data(lowered->inputs[i]);
}

const void *tnd_lowered_output(const struct tnd_lowered *lowered, int i)
{
    TND_ASSERT(i >= 0 && i < lowered->net->n_outputs);
    return tandem_tensor_data(lowered->outputs[i]);
}

enum tandem_status tnd_lowered_set_input(struct tnd_lowered *lowered, int i,
                                         const struct tnd_array *array, struct tandem_error *error)
{
    TND_TRY(tnd_net_check_input(lowered->net, i, array, error));
    memcpy(tnd_lowered_input(lowered, i), array->data,
           (size_t)array->n * tandem_dtype_bytes(array->type));
    return TANDEM_OK;
}

enum tandem_status tnd_lowered_get_output(const struct tnd_lowered *lowered, int i,
                                          struct tnd_array **out, struct tandem_error *error)
{
    const struct tnd_net_value *v = tnd_net_value(lowered->net, lowered->net->outputs[i]);
    struct tnd_array *array = tnd_array_new(v->type, &v->shape);
    if (array == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, v->name, i, 0, "no memory for output %d", i);
    }
    memcpy(array->data, tnd_lowered_output(lowered, i),
           (size_t)array->n * tandem_dtype_bytes(array->type));
    *out = array;
    return TANDEM_OK;
}
