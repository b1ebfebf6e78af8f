/* SPDX-License-Identifier: MIT
 * Builds the nodes of an ONNX graph in order, each with the function of its operator. */

#include "formats/onnx_build.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/tnd_assert.h"
#include "base/vector.h"
#include "formats/onnx_builder.h"
#include "formats/onnx_op.h"

#define OLDEST_OPSET  6
#define NEWEST_OPSET  28
#define MAX_OPERANDS  1024
#define MAX_NARROW    4096
#define MAX_FUNCTIONS 4096
#define MAX_CALLS     64        /* nested calls of functions */
#define LEFT_OUT      (-2)      /* value of a name: an omitted operand of a function */
#define MAX_INNER     (1 << 17) /* nodes built of inner graphs, counted each time */

/* ---- names ---- */

struct tnd_onnx_name *tnd_onnx_slot_of(const struct tnd_onnx_scope *scope, const char *text)
{
    size_t i = (size_t)tnd_hash_bytes(text, strlen(text), 0) & (scope->n_slots - 1);
    while (scope->slots[i].text != NULL && strcmp(scope->slots[i].text, text) != 0) {
        i = (i + 1) & (scope->n_slots - 1);
    }
    return &scope->slots[i];
}

static int look_up(const struct tnd_onnx_scope *scope, const char *text)
{
    for (; scope != NULL; scope = scope->outer) {
        const struct tnd_onnx_name *found =
            scope->n_slots == 0 ? NULL : tnd_onnx_slot_of(scope, text);
        if (found != NULL && found->text != NULL) {
            return found->value;
        }
    }
    return TANDEM_NET_NONE;
}

static bool more_slots(struct tnd_onnx_scope *scope)
{
    struct tnd_onnx_scope wider = {.n_slots = scope->n_slots == 0 ? 64 : 2 * scope->n_slots};
    wider.slots = tnd_calloc(wider.n_slots, sizeof(wider.slots[0]));
    if (wider.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < scope->n_slots; i++) {
        if (scope->slots[i].text != NULL) {
            *tnd_onnx_slot_of(&wider, scope->slots[i].text) = scope->slots[i];
        }
    }
    tnd_free(scope->slots);
    scope->slots = wider.slots;
    scope->n_slots = wider.n_slots;
    return true;
}

bool tnd_onnx_give_name(struct tnd_onnx_builder *builder, const char *text, int value)
{
    struct tnd_onnx_scope *scope = builder->scope;
    if (2 * scope->n >= scope->n_slots && !more_slots(scope)) {
        (void)tnd_net_fail(builder->net, TANDEM_E_MEMORY, "no memory for %zu names", scope->n);
        return false;
    }
    struct tnd_onnx_name *slot = tnd_onnx_slot_of(scope, text);
    if (slot->text != NULL) {
        (void)tnd_net_fail(builder->net, TANDEM_E_FORMAT, "the value '%.80s' is made twice", text);
        return false;
    }
    *slot = (struct tnd_onnx_name){text, value};
    scope->n++;
    return true;
}

/* ---- integers of fewer than 8 bits ---- */

enum tnd_onnx_type tnd_onnx_narrow_at(const struct tnd_onnx_builder *builder, int value)
{
    for (int i = builder->n_narrow - 1; i >= 0; i--) {
        if (builder->narrow[i].value == value) {
            return builder->narrow[i].type;
        }
    }
    return TND_ONNX_UNDEFINED;
}

int tnd_onnx_narrow_as(struct tnd_onnx_builder *builder, int value, enum tnd_onnx_type type)
{
    if (value == TANDEM_NET_NONE || tnd_onnx_narrow_bits(type) == 0 ||
        tnd_onnx_narrow_at(builder, value) == type) {
        return value;
    }
    if (tnd_vector_insert(&builder->narrow_vector, sizeof(builder->narrow[0]), MAX_NARROW,
                          builder->n_narrow) != TANDEM_OK) {
        return tnd_net_fail(builder->net, TANDEM_E_LIMIT, "more than %d values of %s, or no memory",
                            MAX_NARROW, tnd_onnx_type_name((int32_t)type));
    }
    builder->narrow[builder->n_narrow - 1] = (struct tnd_onnx_narrow){value, type};
    return value;
}

enum tnd_onnx_type tnd_onnx_narrow_of(const struct tnd_onnx_call *call, int value)
{
    return tnd_onnx_narrow_at(call->builder, value);
}

int tnd_onnx_set_narrow(struct tnd_onnx_call *call, int value, enum tnd_onnx_type type)
{
    return tnd_onnx_narrow_as(call->builder, value, type);
}

int tnd_onnx_narrowed(struct tnd_onnx_call *call, int value, enum tnd_onnx_type type)
{
    const int bits = tnd_onnx_narrow_bits(type);
    enum tandem_dtype kept = TANDEM_DTYPE_U8;
    (void)tnd_onnx_dtype(type, &kept);
    value = tnd_net_cast(call->net, value, kept);
    if (kept == TANDEM_DTYPE_U8) {
        value = tnd_onnx_with(call, TANDEM_BINARY_AND, value, (double)((1 << bits) - 1));
    } else { /* extends the sign of the low bits */
        value = tnd_onnx_with(call, TANDEM_BINARY_SHIFT_LEFT, value, (double)(8 - bits));
        value = tnd_onnx_with(call, TANDEM_BINARY_SHIFT_RIGHT, value, (double)(8 - bits));
    }
    return tnd_onnx_narrow_as(call->builder, value, type);
}

/* Checks whether an operator supports its narrow operands; *keeps: its results are narrow, too. */
static bool check_narrow(struct tnd_onnx_call *call, bool *keeps)
{
    static const char *const moves[] = {"Identity", "Reshape",   "Transpose", "Squeeze",
                                        "Flatten",  "Unsqueeze", "Gather",    "Slice"};
    static const char *const known[] = {"Cast", "CastLike", "DequantizeLinear", "QuantizeLinear",
                                        "Shape"};
    bool is_good = false;
    *keeps = false;
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        *keeps = *keeps || strcmp(call->node->op, moves[i]) == 0;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        is_good = is_good || strcmp(call->node->op, known[i]) == 0;
    }
    for (int i = 0; i < call->n_in && !is_good; i++) {
        const enum tnd_onnx_type type = tnd_onnx_narrow_at(call->builder, call->in[i]);
        if (type != TND_ONNX_UNDEFINED && !(*keeps && i == 0)) {
            (void)tnd_onnx_refuse(call, "operand %d is of %s", i,
                                  tnd_onnx_type_name((int32_t)type));
            return false;
        }
    }
    return true;
}

/* ---- constants ---- */

bool tnd_onnx_has_initializer(const struct tnd_onnx_graph *graph, const char *name)
{
    bool has = false;
    for (int i = 0; i < graph->n_initializers && !has; i++) {
        has = strcmp(graph->initializers[i].name, name) == 0;
    }
    return has;
}

static bool add_initializers(struct tnd_onnx_builder *builder, const struct tnd_onnx_graph *graph)
{
    if (graph->n_sparse > 0) {
        (void)tnd_net_fail(builder->net, TANDEM_E_UNSUPPORTED_BUILD,
                           "graph '%.60s' has %d sparse initializers, expected dense ones",
                           graph->name, graph->n_sparse);
        return false;
    }
    for (int i = 0; i < graph->n_initializers; i++) {
        struct tnd_array *array = NULL;
        const enum tandem_status status = tnd_onnx_shared_array(
            &graph->initializers[i], builder->net->store, &array, &builder->net->error);
        if (status != TANDEM_OK) {
            builder->net->status = status;
            return false;
        }
        const int value = tnd_onnx_narrow_as(builder, tnd_net_constant(builder->net, array),
                                             graph->initializers[i].type);
        if (value == TANDEM_NET_NONE ||
            !tnd_onnx_give_name(builder, graph->initializers[i].name, value)) {
            return false;
        }
    }
    return true;
}

/* ---- nodes ---- */

static const struct tnd_onnx_op *find_in(const struct tnd_onnx_op *const *families, size_t n,
                                         const char *name)
{
    for (size_t i = 0; i < n; i++) {
        for (const struct tnd_onnx_op *op = families[i]; op->name != NULL; op++) {
            if (strcmp(op->name, name) == 0) {
                return op;
            }
        }
    }
    return NULL;
}

#define FAMILY_ROW(name) tnd_onnx_##name,
static const struct tnd_onnx_op *const families[] = {TND_ONNX_FAMILIES(FAMILY_ROW)};
static const struct tnd_onnx_op *const of_microsoft[] = {TND_ONNX_MICROSOFT(FAMILY_ROW)};
static const struct tnd_onnx_op *const of_ml[] = {TND_ONNX_ML(FAMILY_ROW)};
static const struct tnd_onnx_op *const of_preview[] = {TND_ONNX_PREVIEW(FAMILY_ROW)};
#undef FAMILY_ROW

static const struct {
    const char *domain;
    const struct tnd_onnx_op *const *families;
    size_t n;
} domains[] = {
    {"", families, sizeof(families) / sizeof(families[0])},
    {"com.microsoft", of_microsoft, sizeof(of_microsoft) / sizeof(of_microsoft[0])},
    {"ai.onnx.ml", of_ml, sizeof(of_ml) / sizeof(of_ml[0])},
    {"ai.onnx.preview", of_preview, sizeof(of_preview) / sizeof(of_preview[0])},
};

/* Finds an operator. Some of ONNX Runtime's are the same as ONNX's; and it writes one of its own
 * without a domain. */
static const struct tnd_onnx_op *find_op(const char *domain, const char *name)
{
    const bool is_alike =
        strcmp(domain, "com.microsoft") == 0 &&
        (strcmp(name, "QuantizeLinear") == 0 || strcmp(name, "DequantizeLinear") == 0);
    const bool is_stray = strcmp(name, "SimplifiedLayerNormalization") == 0;
    domain = is_alike ? "" : is_stray && domain[0] == '\0' ? "com.microsoft" : domain;
    for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++) {
        if (strcmp(domains[i].domain, domain) == 0) {
            return find_in(domains[i].families, domains[i].n, name);
        }
    }
    return NULL;
}

void tnd_onnx_build_as(struct tnd_onnx_call *call, const char *name,
                       const struct tnd_onnx_attribute *attributes, int n, const int *in, int n_in,
                       int *out, int n_out)
{
    const char *point = strrchr(name, '.');
    const struct tnd_onnx_op *op =
        point == NULL ? find_op("", name) : find_op("com.microsoft", point + 1);
    struct tnd_onnx_node node = *call->node;
    struct tnd_onnx_call inner = *call;
    TND_ASSERT(op != NULL);
    node.attributes = n < 0 ? node.attributes : attributes;
    node.n_attributes = n < 0 ? node.n_attributes : n;
    node.n_outputs = n_out;
    inner.node = &node;
    inner.kind = op->kind;
    inner.n_in = n_in;
    inner.n_out = n_out;
    inner.in = in;
    inner.out = out;
    inner.were_read = 0;
    if (call->net->status == TANDEM_OK) {
        op->build(&inner);
    }
    call->were_read |= n < 0 ? inner.were_read : 0;
}

int tnd_onnx_apply(struct tnd_onnx_call *call, const char *name,
                   const struct tnd_onnx_attribute *attributes, int n, int value)
{
    int out = TANDEM_NET_NONE;
    tnd_onnx_build_as(call, name, attributes, n, &value, 1, &out, 1);
    return out;
}

/* Refuses attributes that the operator did not read, and results that it did not set. */
static void check_node(struct tnd_onnx_call *call)
{
    for (int i = 0; i < call->node->n_attributes; i++) {
        if (i >= 64 || (call->were_read >> i & 1) == 0) {
            (void)tnd_onnx_refuse(call, "attribute %.60s is not known",
                                  call->node->attributes[i].name);
        }
    }
    for (int i = 0; i < call->n_out; i++) {
        if (call->node->outputs[i][0] != '\0' && call->out[i] == TANDEM_NET_NONE) {
            (void)tnd_onnx_refuse(call, "its output %d cannot be made", i);
        }
    }
}

static bool find_operands(struct tnd_onnx_call *call, int *in)
{
    for (int i = 0; i < call->node->n_inputs; i++) {
        const char *name = call->node->inputs[i];
        in[i] = name[0] == '\0' ? LEFT_OUT : look_up(call->builder->scope, name);
        if (in[i] == LEFT_OUT) {
            in[i] = TANDEM_NET_NONE;
        } else if (in[i] == TANDEM_NET_NONE) {
            (void)tnd_net_fail(call->net, TANDEM_E_FORMAT,
                               "it reads '%.60s', which nothing in front of it makes", name);
            return false;
        }
    }
    return true;
}

static bool build_nodes(struct tnd_onnx_builder *builder, const struct tnd_onnx_graph *graph);
static int find_output(struct tnd_onnx_builder *builder, const struct tnd_onnx_graph *graph, int i);

/* The model's function that a node calls; NULL: none. */
static const struct tnd_onnx_function *find_function(const struct tnd_onnx_model *model,
                                                     const struct tnd_onnx_node *node)
{
    const char *overload = node->overload != NULL ? node->overload : "";
    for (int i = 0; i < model->n_functions; i++) {
        const struct tnd_onnx_function *it = &model->functions[i];
        if (strcmp(it->name, node->op) == 0 && strcmp(it->domain, node->domain) == 0 &&
            strcmp(it->overload, overload) == 0) {
            return it;
        }
    }
    return NULL;
}

static const struct tnd_onnx_attribute *find_attribute(const struct tnd_onnx_attribute *list, int n,
                                                       const char *name)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

/* Copies a function's node with attribute references replaced by values; references without a value
 * are dropped. False: out of memory. */
static bool resolve(struct tnd_onnx_builder *builder, const struct tnd_onnx_node *node,
                    struct tnd_onnx_node *out)
{
    const struct tnd_onnx_frame *frame = builder->frame;
    bool has_reference = false;
    for (int i = 0; i < node->n_attributes; i++) {
        has_reference = has_reference || node->attributes[i].reference[0] != '\0';
    }
    *out = *node;
    if (frame == NULL || !has_reference) {
        return true;
    }
    struct tnd_onnx_attribute *list =
        tnd_arena_alloc(&builder->net->arena, (size_t)node->n_attributes * sizeof(list[0]),
                        _Alignof(struct tnd_onnx_attribute));
    if (list == NULL) {
        (void)tnd_net_fail(builder->net, TANDEM_E_MEMORY, "no memory for attributes");
        return false;
    }
    out->attributes = list;
    out->n_attributes = 0;
    for (int i = 0; i < node->n_attributes; i++) {
        const struct tnd_onnx_attribute *it = &node->attributes[i];
        const struct tnd_onnx_attribute *given = it;
        if (it->reference[0] != '\0') {
            given =
                find_attribute(frame->node->attributes, frame->node->n_attributes, it->reference);
            given = given != NULL ? given
                                  : find_attribute(frame->function->defaults,
                                                   frame->function->n_defaults, it->reference);
        }
        if (given != NULL) {
            list[out->n_attributes] = *given;
            list[out->n_attributes++].name = it->name;
        }
    }
    return true;
}

static bool check_function(struct tnd_onnx_call *call, const struct tnd_onnx_function *function)
{
    struct tnd_onnx_builder *builder = call->builder;
    const int64_t opset = function->opset;
    builder->n_inner += function->graph.n_nodes + 1;
    for (int i = 0; i < call->node->n_attributes; i++) {
        const char *name = call->node->attributes[i].name;
        bool is_known = find_attribute(function->defaults, function->n_defaults, name) != NULL;
        for (int k = 0; k < function->n_names; k++) {
            is_known = is_known || strcmp(function->names[k], name) == 0;
        }
        if (!is_known) {
            (void)tnd_onnx_refuse(call, "attribute %.60s is not known", name);
        }
    }
    if (call->n_in > function->graph.n_inputs || call->n_out > function->graph.n_outputs) {
        (void)tnd_onnx_refuse(call, "%d inputs and %d outputs, its function has %d and %d",
                              call->n_in, call->n_out, function->graph.n_inputs,
                              function->graph.n_outputs);
    } else if ((builder->frame != NULL && builder->frame->depth >= MAX_CALLS) ||
               builder->n_inner > MAX_INNER) {
        (void)tnd_onnx_refuse(call, "more than %d functions inside each other, or %d nodes",
                              MAX_CALLS, MAX_INNER);
    } else if (opset != 0 && (opset < OLDEST_OPSET || opset > NEWEST_OPSET)) {
        (void)tnd_onnx_refuse(call, "its function is of opset %lld, expected %d to %d",
                              (long long)opset, OLDEST_OPSET, NEWEST_OPSET);
    }
    return call->net->status == TANDEM_OK;
}

/* Builds the nodes of a function in place of the calling node. They see only its operands. */
static void build_function(struct tnd_onnx_call *call, const struct tnd_onnx_function *function)
{
    struct tnd_onnx_builder *builder = call->builder;
    const struct tnd_onnx_graph *graph = &function->graph;
    const struct tnd_onnx_builder before = *builder;
    struct tnd_onnx_scope inner = {.outer = NULL};
    const struct tnd_onnx_frame frame = {function, call->node,
                                         builder->frame == NULL ? 1 : builder->frame->depth + 1};
    if (!check_function(call, function)) {
        return;
    }
    builder->scope = &inner;
    builder->frame = &frame;
    builder->opset = function->opset != 0 ? function->opset : builder->opset;
    bool is_good = true;
    for (int i = 0; is_good && i < graph->n_inputs; i++) {
        const int value = tnd_onnx_in(call, i);
        is_good = tnd_onnx_give_name(builder, graph->inputs[i].name,
                                     value == TANDEM_NET_NONE ? LEFT_OUT : value);
    }
    is_good = is_good && build_nodes(builder, graph);
    for (int i = 0; is_good && i < call->n_out; i++) {
        call->out[i] =
            call->node->outputs[i][0] == '\0' ? TANDEM_NET_NONE : find_output(builder, graph, i);
        is_good = call->net->status == TANDEM_OK;
    }
    builder->scope = before.scope;
    builder->frame = before.frame;
    builder->opset = before.opset;
    tnd_free(inner.slots);
}

/* Names the results of a node. */
static void name_results(struct tnd_onnx_call *call)
{
    for (int i = 0; call->net->status == TANDEM_OK && i < call->n_out; i++) {
        if (call->node->outputs[i][0] != '\0') {
            (void)tnd_onnx_give_name(call->builder, call->node->outputs[i], call->out[i]);
        }
    }
}

/* Builds the call's node; `in` has room for its operands. */
static void build_call(struct tnd_onnx_call *call, int *in)
{
    const struct tnd_onnx_node *node = call->node;
    const struct tnd_onnx_function *function = find_function(call->builder->model, node);
    const struct tnd_onnx_op *op = function != NULL ? NULL : find_op(node->domain, node->op);
    if (op == NULL && function == NULL) {
        (void)tnd_onnx_refuse(call, strcmp(node->domain, "com.microsoft.nchwc") == 0
                                        ? "a layout of the CPU that ONNX Runtime saved this file "
                                          "on; save it with ORT_ENABLE_EXTENDED"
                                        : "the operator is not known");
        return;
    }
    if (node->n_inputs > MAX_OPERANDS || node->n_outputs > MAX_OPERANDS) {
        (void)tnd_onnx_refuse(call, "more than 1024 operands");
        return;
    }
    for (int i = 0; i < node->n_outputs; i++) {
        call->out[i] = TANDEM_NET_NONE;
    }
    call->n_out = node->n_outputs;
    if (!find_operands(call, in)) {
        return;
    }
    call->n_in = node->n_inputs;
    if (function != NULL) {
        build_function(call, function);
        name_results(call);
        return;
    }
    if (!tnd_onnx_check_arity(call, op) || !tnd_onnx_check_sequences(call, op)) {
        return;
    }
    bool keeps_narrow = false;
    if (call->builder->n_narrow > 0 && !check_narrow(call, &keeps_narrow)) {
        return;
    }
    call->kind = op->kind;
    op->build(call);
    if (call->net->status == TANDEM_OK) {
        check_node(call);
    }
    if (keeps_narrow) {
        call->out[0] = tnd_onnx_narrow_as(call->builder, call->out[0],
                                          tnd_onnx_narrow_at(call->builder, tnd_onnx_in(call, 0)));
    }
    name_results(call);
}

static bool build_node(struct tnd_onnx_builder *builder, const struct tnd_onnx_node *node)
{
    int in[MAX_OPERANDS];
    int out[MAX_OPERANDS];
    struct tnd_net *net = builder->net;
    const int first = net->n_values;
    struct tnd_onnx_node resolved;
    if (!resolve(builder, node, &resolved)) {
        return false;
    }
    struct tnd_onnx_call call = {.builder = builder,
                                 .net = net,
                                 .node = &resolved,
                                 .opset = builder->opset,
                                 .in = in,
                                 .out = out,
                                 .sequences = &builder->sequences};
    build_call(&call, in);
    if (net->status == TANDEM_OK) {
        tnd_net_name_since(net, first, node->op,
                           node->name[0] != '\0' ? node->name
                           : node->n_outputs > 0 ? node->outputs[0]
                                                 : "");
    } else if (!builder->is_named) { /* else a node of an inner graph named it */
        tnd_onnx_name_failure(&call);
        builder->is_named = true;
    }
    return net->status == TANDEM_OK;
}

static bool build_nodes(struct tnd_onnx_builder *builder, const struct tnd_onnx_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        if (!build_node(builder, &graph->nodes[i])) {
            return false;
        }
    }
    return true;
}

static int find_output(struct tnd_onnx_builder *builder, const struct tnd_onnx_graph *graph, int i)
{
    const int value = look_up(builder->scope, graph->outputs[i].name);
    return value >= 0 || value <= TND_ONNX_FIRST_SEQUENCE
               ? value
               : tnd_net_fail(builder->net, TANDEM_E_FORMAT, "nothing makes the output '%.60s'",
                              graph->outputs[i].name);
}

static bool check_inner(struct tnd_onnx_call *call, const struct tnd_onnx_graph *graph, int n_in,
                        int n_out)
{
    call->builder->n_inner += graph->n_nodes + 1;
    if (graph->n_inputs != n_in || graph->n_outputs != n_out) {
        (void)tnd_onnx_refuse(call, "its graph has %d inputs and %d outputs, expected %d and %d",
                              graph->n_inputs, graph->n_outputs, n_in, n_out);
    } else if (call->builder->n_inner > MAX_INNER) {
        (void)tnd_onnx_refuse(call, "more than %d nodes of graphs inside it", MAX_INNER);
    }
    return call->net->status == TANDEM_OK;
}

bool tnd_onnx_inner(struct tnd_onnx_call *call, const struct tnd_onnx_graph *graph, const int *in,
                    int n_in, int *out, int n_out)
{
    struct tnd_onnx_builder *builder = call->builder;
    struct tnd_onnx_scope inner = {.outer = builder->scope};
    if (!check_inner(call, graph, n_in, n_out)) {
        return false;
    }
    builder->scope = &inner;
    bool is_good = true;
    for (int i = 0; is_good && i < n_in; i++) {
        is_good = tnd_onnx_give_name(builder, graph->inputs[i].name, in[i]);
    }
    is_good = is_good && add_initializers(builder, graph) && build_nodes(builder, graph);
    for (int i = 0; is_good && i < graph->n_outputs; i++) {
        out[i] = find_output(builder, graph, i);
        is_good = out[i] != TANDEM_NET_NONE;
        if (is_good && !call->takes_sequences && tnd_onnx_sequence_of(call, out[i]) != NULL) {
            (void)tnd_onnx_refuse(call, "result %d of its graph is a sequence", i);
            is_good = false;
        }
    }
    builder->scope = inner.outer;
    tnd_free(inner.slots);
    return is_good;
}

/* ---- models ---- */

/* Whether a model declares an opset of ONNX's own operators; one that only uses other domains need
 * not. */
static bool has_opset(const struct tnd_onnx_model *model)
{
    bool needs_opset = model->graph->n_nodes == 0;
    for (int i = 0; i < model->graph->n_nodes; i++) {
        needs_opset = needs_opset || model->graph->nodes[i].domain[0] == '\0';
    }
    return (model->opset >= OLDEST_OPSET && model->opset <= NEWEST_OPSET) ||
           (model->opset == 0 && !needs_opset);
}

static bool build_graph(struct tnd_onnx_builder *builder, const struct tnd_onnx_model *model)
{
    const struct tnd_onnx_graph *graph = model->graph;
    if (model->n_functions > MAX_FUNCTIONS) { /* lookup per node is linear */
        (void)tnd_net_fail(builder->net, TANDEM_E_LIMIT, "%d functions, expected at most %d",
                           model->n_functions, MAX_FUNCTIONS);
        return false;
    }
    if (!has_opset(model)) {
        (void)tnd_net_fail(builder->net, TANDEM_E_UNSUPPORTED_BUILD,
                           "the model is of opset %lld, expected %d to %d", (long long)model->opset,
                           OLDEST_OPSET, NEWEST_OPSET);
        return false;
    }
    struct tnd_onnx_part *part = builder->options->part;
    const int first = part != NULL ? part->first : 0;
    if (!add_initializers(builder, graph) ||
        !(first == 0 ? tnd_onnx_add_inputs(builder, graph) : tnd_onnx_add_carried(builder, part))) {
        return false;
    }
    for (int i = first; i < graph->n_nodes; i++) {
        if (build_node(builder, &graph->nodes[i])) {
            continue;
        }
        if (builder->asked != TANDEM_NET_NONE) {
            part->stopped = i;
            tnd_onnx_end_part(builder, graph);
        }
        return false;
    }
    if (part != NULL) {
        part->is_last = true;
    }
    for (int i = 0; i < graph->n_outputs; i++) {
        const int value = find_output(builder, graph, i);
        if (value <= TND_ONNX_FIRST_SEQUENCE) {
            (void)tnd_net_fail(builder->net, TANDEM_E_UNSUPPORTED_BUILD,
                               "output '%.60s' is a sequence or optional, expected a tensor",
                               graph->outputs[i].name);
        }
        if (value < 0 || !tnd_onnx_check_output(builder->net, graph, i, value) ||
            tnd_net_output(builder->net, value) == TANDEM_NET_NONE) {
            return false;
        }
    }
    return true;
}

enum tandem_status tnd_onnx_build(const struct tnd_onnx_model *model,
                                  const struct tnd_onnx_build_options *options,
                                  struct tnd_net **out_net, struct tandem_error *error)
{
    struct tnd_onnx_scope scope = {0};
    struct tnd_onnx_builder builder = {.net = tnd_net_new(),
                                       .model = model,
                                       .options = options,
                                       .opset = model->opset,
                                       .scope = &scope,
                                       .main = &scope,
                                       .asked = TANDEM_NET_NONE};
    builder.opset = model->opset == 0 ? NEWEST_OPSET : model->opset;
    *out_net = NULL;
    if (builder.net == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for a net");
    }
    builder.net->store = options->store;
    (void)build_graph(&builder, model);
    enum tandem_status status = builder.net->status;
    if (status != TANDEM_OK && error != NULL) {
        *error = builder.net->error;
    }
    status = status == TANDEM_OK ? tnd_onnx_check_files(model, error) : status;
    tnd_onnx_unload(model); /* constants have been copied: the file's are unaligned */
    tnd_free(scope.slots);
    tnd_vector_fini(&builder.narrow_vector);
    tnd_vector_fini(&builder.sequences.list_vector);
    if (status == TANDEM_OK) {
        *out_net = builder.net;
        return TANDEM_OK;
    }
    tnd_net_free(builder.net);
    return status;
}
