/* SPDX-License-Identifier: MIT
 * Graphs of ONNX models: nodes, attributes, declared types. Fields that do not affect results
 * (documentation, device hints) are skipped. */
#include <limits.h>
#include <string.h>

#include "formats/onnx_internal.h"

/* Field numbers. */
enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_DESCRIPTION = 10,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE = 13,
    GRAPH_QUANTIZED = 14,
    GRAPH_SPARSE = 15
};
enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    NODE_OVERLOAD = 8
};
enum {
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_ATTRIBUTE = 6,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10,
    FUNCTION_DEFAULT = 11,
    FUNCTION_OVERLOAD = 13
};
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_S = 4,
    ATTRIBUTE_T = 5,
    ATTRIBUTE_G = 6,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_STRINGS = 9,
    ATTRIBUTE_TYPE = 20,
    ATTRIBUTE_REFERENCE = 21
};
enum { VALUE_NAME = 1, VALUE_TYPE = 2 };
enum { TYPE_TENSOR = 1, TYPE_SEQUENCE = 4, TYPE_MAP = 5, TYPE_SPARSE = 8, TYPE_OPTIONAL = 9 };
enum { TENSOR_TYPE_ELEMENT = 1, TENSOR_TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1 };
enum { DIM_VALUE = 1, DIM_NAME = 2 };

const char *tnd_onnx_domain(const char *domain)
{
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* ---- types of values ---- */

static enum tandem_status read_dim(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                   struct tnd_onnx_dim *dim, struct tandem_error *error)
{
    dim->value = -1;
    while (message.at < message.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number == DIM_NAME) {
            TND_TRY(tnd_onnx_text(memory, &message, &field, "a dimension", &dim->name, error));
        } else if (field.number == DIM_VALUE) {
            TND_TRY(tnd_onnx_number(memory, &message, &field, "a dimension", &dim->value, error));
            /* some exporters write -1 for an unknown extent */
            if (dim->value < -1) {
                return tnd_onnx_broken(memory, &message, "an extent", dim->value, "at least 0",
                                       error);
            }
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_shape(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                     struct tnd_onnx_value *value, struct tandem_error *error)
{
    struct tnd_onnx_counts counts;
    struct tnd_onnx_dim *dims = NULL;
    TND_TRY(tnd_onnx_count(memory, message, &counts, error));
    const int n = counts.of[SHAPE_DIM];
    if (n > TND_ONNX_MAX_DIMS) {
        return tnd_onnx_broken(memory, &message, "the number of dimensions", n, "at most 32",
                               error);
    }
    TND_TRY(tnd_onnx_new(memory, n, sizeof(dims[0]), &dims, error));
    for (int i = 0; message.at < message.n;) {
        struct tnd_wire_field field;
        struct tnd_cursor dim;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number == SHAPE_DIM) {
            TND_TRY(tnd_onnx_inside(memory, &message, &field, "a shape", &dim, error));
            TND_TRY(read_dim(memory, dim, &dims[i++], error));
        }
    }
    value->dims = dims;
    value->n_dims = n;
    return TANDEM_OK;
}

static enum tandem_status read_tensor_type(struct tnd_onnx_memory *memory,
                                           struct tnd_cursor message, struct tnd_onnx_value *value,
                                           struct tandem_error *error)
{
    while (message.at < message.n) {
        struct tnd_wire_field field;
        struct tnd_cursor shape;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number == TENSOR_TYPE_ELEMENT) {
            int64_t type = 0;
            TND_TRY(tnd_onnx_number(memory, &message, &field, "a type", &type, error));
            if (type < 0 || type > TND_ONNX_LAST_TYPE) {
                return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, value->name, type,
                                     TND_ONNX_LAST_TYPE,
                                     "%s: '%.60s' has the type number %lld, expected 1 to %d",
                                     tnd_short_name(memory->file.name), value->name,
                                     (long long)type, TND_ONNX_LAST_TYPE);
            }
            value->type = (enum tnd_onnx_type)type;
        } else if (field.number == TENSOR_TYPE_SHAPE) {
            TND_TRY(tnd_onnx_inside(memory, &message, &field, "a type", &shape, error));
            TND_TRY(read_shape(memory, shape, value, error));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_type(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                    struct tnd_onnx_value *value, struct tandem_error *error)
{
    while (message.at < message.n) {
        struct tnd_wire_field field;
        struct tnd_cursor inside;
        TND_TRY(tnd_wire_next(&message, &field, error));
        switch (field.number) {
        case TYPE_TENSOR:
            TND_TRY(tnd_onnx_inside(memory, &message, &field, "a type", &inside, error));
            TND_TRY(read_tensor_type(memory, inside, value, error));
            value->kind = TND_ONNX_TENSOR;
            break;
        case TYPE_SEQUENCE:
            value->kind = TND_ONNX_SEQUENCE;
            break;
        case TYPE_MAP:
            value->kind = TND_ONNX_MAP;
            break;
        case TYPE_SPARSE:
            value->kind = TND_ONNX_SPARSE;
            break;
        case TYPE_OPTIONAL:
            value->kind = TND_ONNX_OPTIONAL;
            break;
        default:
            break;
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_value(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                     struct tnd_onnx_value *value, struct tandem_error *error)
{
    *value = (struct tnd_onnx_value){.name = "", .n_dims = -1};
    while (message.at < message.n) {
        struct tnd_wire_field field;
        struct tnd_cursor type;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number == VALUE_NAME) {
            TND_TRY(tnd_onnx_text(memory, &message, &field, "a value", &value->name, error));
        } else if (field.number == VALUE_TYPE) {
            TND_TRY(tnd_onnx_inside(memory, &message, &field, "a value", &type, error));
            TND_TRY(read_type(memory, type, value, error));
        }
    }
    return TANDEM_OK;
}

/* ---- attributes ---- */

static enum tandem_status read_strings(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                       int n, struct tnd_onnx_attribute *attribute,
                                       struct tandem_error *error)
{
    struct tnd_onnx_string *strings = NULL;
    TND_TRY(tnd_onnx_new(memory, n, sizeof(strings[0]), &strings, error));
    for (int i = 0; message.at < message.n;) {
        struct tnd_wire_field field;
        struct tnd_cursor inside;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number == ATTRIBUTE_STRINGS) {
            TND_TRY(tnd_onnx_inside(memory, &message, &field, "an attribute", &inside, error));
            strings[i++] = (struct tnd_onnx_string){field.bytes, field.n};
        }
    }
    attribute->strings = strings;
    attribute->n = n;
    return TANDEM_OK;
}

/* Reads the list of the attribute's type. */
static enum tandem_status read_list(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                    const struct tnd_onnx_counts *counts,
                                    struct tnd_onnx_attribute *attribute,
                                    struct tandem_error *error)
{
    const uint8_t *bytes = NULL;
    int64_t n = 0;
    if (attribute->type == TND_ONNX_ATTRIBUTE_STRINGS) {
        return read_strings(memory, message, counts->of[ATTRIBUTE_STRINGS], attribute, error);
    }
    if (attribute->type == TND_ONNX_ATTRIBUTE_I64S) {
        TND_TRY(tnd_onnx_numbers(memory, message, ATTRIBUTE_INTS, TND_WIRE_VARINT, 8, &bytes, &n,
                                 error));
        attribute->ints = (const int64_t *)(const void *)bytes;
    } else if (attribute->type == TND_ONNX_ATTRIBUTE_F32S) {
        TND_TRY(tnd_onnx_numbers(memory, message, ATTRIBUTE_FLOATS, TND_WIRE_4_BYTES, 4, &bytes, &n,
                                 error));
        attribute->floats = (const float *)(const void *)bytes;
    }
    if (n > INT_MAX / 2) {
        return tnd_onnx_broken(memory, &message, "the length of an attribute's list", n,
                               "less than 2^30", error);
    }
    attribute->n = (int)n;
    return TANDEM_OK;
}

static enum tandem_status read_inner_graph(struct tnd_onnx_memory *memory,
                                           struct tnd_cursor message, int depth,
                                           struct tnd_onnx_attribute *attribute,
                                           struct tandem_error *error)
{
    struct tnd_onnx_graph *graph = NULL;
    if (depth >= TND_ONNX_MAX_NESTED) {
        return tnd_onnx_broken(memory, &message, "the depth of graphs within graphs", depth + 1,
                               "at most 16", error);
    }
    TND_TRY(tnd_onnx_new(memory, 1, sizeof(*graph), &graph, error));
    TND_TRY(tnd_onnx_read_graph(memory, message, depth + 1, graph, error));
    attribute->graph = graph;
    return TANDEM_OK;
}

/* Reads a single value. */
static enum tandem_status read_single(struct tnd_onnx_memory *memory, const struct tnd_cursor *at,
                                      const struct tnd_wire_field *field, int depth,
                                      struct tnd_onnx_attribute *attribute,
                                      struct tandem_error *error)
{
    static const char what[] = "an attribute";
    struct tnd_cursor inside;
    int64_t number = 0;
    switch (field->number) {
    case ATTRIBUTE_NAME:
        return tnd_onnx_text(memory, at, field, what, &attribute->name, error);
    case ATTRIBUTE_REFERENCE:
        return tnd_onnx_text(memory, at, field, what, &attribute->reference, error);
    case ATTRIBUTE_TYPE:
        TND_TRY(tnd_onnx_number(memory, at, field, what, &number, error));
        if (number < 0 || number > TND_ONNX_ATTRIBUTE_LAST) {
            return tnd_onnx_broken(memory, at, "an attribute's type", number, "0 to 14", error);
        }
        attribute->type = (int)number;
        return TANDEM_OK;
    case ATTRIBUTE_I:
        return tnd_onnx_number(memory, at, field, what, &attribute->i, error);
    case ATTRIBUTE_F: {
        const uint32_t bits = (uint32_t)field->value;
        memcpy(&attribute->f, &bits, sizeof(bits));
        return field->wire == TND_WIRE_4_BYTES
                   ? TANDEM_OK
                   : tnd_onnx_broken(memory, at, "the wire type of a float", field->wire, "5",
                                     error);
    }
    case ATTRIBUTE_S:
        TND_TRY(tnd_onnx_inside(memory, at, field, what, &inside, error));
        attribute->s = (struct tnd_onnx_string){field->bytes, field->n};
        return TANDEM_OK;
    case ATTRIBUTE_T: {
        struct tnd_onnx_tensor *tensor = NULL;
        TND_TRY(tnd_onnx_inside(memory, at, field, what, &inside, error));
        TND_TRY(tnd_onnx_new(memory, 1, sizeof(*tensor), &tensor, error));
        TND_TRY(tnd_onnx_tensor(memory, inside, tensor, error));
        attribute->tensor = tensor;
        return TANDEM_OK;
    }
    case ATTRIBUTE_G:
        TND_TRY(tnd_onnx_inside(memory, at, field, what, &inside, error));
        return read_inner_graph(memory, inside, depth, attribute, error);
    default:
        return TANDEM_OK;
    }
}

/* The type by the member that is present: files of the first versions do not state it. */
static int type_by_member(const struct tnd_onnx_counts *counts)
{
    static const struct {
        int field;
        int type;
    } members[] = {
        {ATTRIBUTE_F, TND_ONNX_ATTRIBUTE_F32},     {ATTRIBUTE_I, TND_ONNX_ATTRIBUTE_I64},
        {ATTRIBUTE_S, TND_ONNX_ATTRIBUTE_STRING},  {ATTRIBUTE_T, TND_ONNX_ATTRIBUTE_TENSOR},
        {ATTRIBUTE_G, TND_ONNX_ATTRIBUTE_GRAPH},   {ATTRIBUTE_FLOATS, TND_ONNX_ATTRIBUTE_F32S},
        {ATTRIBUTE_INTS, TND_ONNX_ATTRIBUTE_I64S}, {ATTRIBUTE_STRINGS, TND_ONNX_ATTRIBUTE_STRINGS}};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (counts->of[members[i].field] > 0) {
            return members[i].type;
        }
    }
    return 0;
}

static enum tandem_status read_attribute(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                         int depth, struct tnd_onnx_attribute *attribute,
                                         struct tandem_error *error)
{
    struct tnd_onnx_counts counts;
    TND_TRY(tnd_onnx_count(memory, message, &counts, error));
    *attribute = (struct tnd_onnx_attribute){.name = "", .reference = ""};
    attribute->type = type_by_member(&counts);
    for (struct tnd_cursor at = message; at.at < at.n;) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&at, &field, error));
        TND_TRY(read_single(memory, &at, &field, depth, attribute, error));
    }
    const bool is_missing =
        (attribute->type == TND_ONNX_ATTRIBUTE_TENSOR && attribute->tensor == NULL) ||
        (attribute->type == TND_ONNX_ATTRIBUTE_GRAPH && attribute->graph == NULL);
    if (is_missing && attribute->reference[0] == '\0') {
        return tnd_onnx_broken(memory, &message, "the type of an attribute without its value",
                               attribute->type, "a tensor or a graph", error);
    }
    return read_list(memory, message, &counts, attribute, error);
}

/* ---- nodes and graphs ---- */

struct node_lists {
    const char **inputs;
    const char **outputs;
    struct tnd_onnx_attribute *attributes;
};

static enum tandem_status read_node_field(struct tnd_onnx_memory *memory,
                                          const struct tnd_cursor *at,
                                          const struct tnd_wire_field *field, int depth,
                                          const struct node_lists *lists,
                                          struct tnd_onnx_node *node, struct tandem_error *error)
{
    static const char what[] = "a node";
    struct tnd_cursor inside;
    switch (field->number) {
    case NODE_INPUT:
        return tnd_onnx_text(memory, at, field, what, &lists->inputs[node->n_inputs++], error);
    case NODE_OUTPUT:
        return tnd_onnx_text(memory, at, field, what, &lists->outputs[node->n_outputs++], error);
    case NODE_NAME:
        return tnd_onnx_text(memory, at, field, what, &node->name, error);
    case NODE_OP:
        return tnd_onnx_text(memory, at, field, what, &node->op, error);
    case NODE_DOMAIN:
        TND_TRY(tnd_onnx_text(memory, at, field, what, &node->domain, error));
        node->domain = tnd_onnx_domain(node->domain);
        return TANDEM_OK;
    case NODE_OVERLOAD:
        return tnd_onnx_text(memory, at, field, what, &node->overload, error);
    case NODE_ATTRIBUTE:
        TND_TRY(tnd_onnx_inside(memory, at, field, what, &inside, error));
        return read_attribute(memory, inside, depth, &lists->attributes[node->n_attributes++],
                              error);
    default:
        return TANDEM_OK;
    }
}

static enum tandem_status read_node(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                    int depth, struct tnd_onnx_node *node,
                                    struct tandem_error *error)
{
    struct tnd_onnx_counts counts;
    struct node_lists lists;
    TND_TRY(tnd_onnx_count(memory, message, &counts, error));
    TND_TRY(tnd_onnx_new(memory, counts.of[NODE_INPUT], sizeof(char *), &lists.inputs, error));
    TND_TRY(tnd_onnx_new(memory, counts.of[NODE_OUTPUT], sizeof(char *), &lists.outputs, error));
    TND_TRY(tnd_onnx_new(memory, counts.of[NODE_ATTRIBUTE], sizeof(lists.attributes[0]),
                         &lists.attributes, error));
    *node = (struct tnd_onnx_node){.name = "", .op = "", .domain = "", .overload = ""};
    for (struct tnd_cursor at = message; at.at < at.n;) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&at, &field, error));
        TND_TRY(read_node_field(memory, &at, &field, depth, &lists, node, error));
    }
    node->inputs = lists.inputs;
    node->outputs = lists.outputs;
    node->attributes = lists.attributes;
    if (node->op[0] == '\0') {
        return tnd_onnx_broken(memory, &message, "the length of an operator's name", 0,
                               "at least 1", error);
    }
    return TANDEM_OK;
}

struct graph_lists {
    struct tnd_onnx_node *nodes;
    struct tnd_onnx_tensor *initializers;
    struct tnd_onnx_value *inputs;
    struct tnd_onnx_value *outputs;
    struct tnd_onnx_value *values;
};

static enum tandem_status read_graph_field(struct tnd_onnx_memory *memory,
                                           const struct tnd_cursor *at,
                                           const struct tnd_wire_field *field, int depth,
                                           const struct graph_lists *lists,
                                           struct tnd_onnx_graph *graph, struct tandem_error *error)
{
    struct tnd_cursor inside;
    if (field->number == GRAPH_NAME) {
        return tnd_onnx_text(memory, at, field, "a graph", &graph->name, error);
    }
    if (field->number >= TND_ONNX_MAX_FIELD) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_onnx_inside(memory, at, field, "a graph", &inside, error));
    switch (field->number) {
    case GRAPH_DESCRIPTION:
        return tnd_onnx_remark(memory, at, field, "a graph", &graph->description, error);
    case GRAPH_NODE:
        return read_node(memory, inside, depth, &lists->nodes[graph->n_nodes++], error);
    case GRAPH_INITIALIZER:
        return tnd_onnx_tensor(memory, inside, &lists->initializers[graph->n_initializers++],
                               error);
    case GRAPH_INPUT:
        return read_value(memory, inside, &lists->inputs[graph->n_inputs++], error);
    case GRAPH_OUTPUT:
        return read_value(memory, inside, &lists->outputs[graph->n_outputs++], error);
    case GRAPH_VALUE:
        return read_value(memory, inside, &lists->values[graph->n_values++], error);
    default:
        return TANDEM_OK;
    }
}

enum tandem_status tnd_onnx_read_graph(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                       int depth, struct tnd_onnx_graph *graph,
                                       struct tandem_error *error)
{
    struct tnd_onnx_counts counts;
    struct graph_lists lists;
    TND_TRY(tnd_onnx_count(memory, message, &counts, error));
    const int *of = counts.of;
    TND_TRY(tnd_onnx_new(memory, of[GRAPH_NODE], sizeof(lists.nodes[0]), &lists.nodes, error));
    TND_TRY(tnd_onnx_new(memory, of[GRAPH_INITIALIZER], sizeof(lists.initializers[0]),
                         &lists.initializers, error));
    TND_TRY(tnd_onnx_new(memory, of[GRAPH_INPUT], sizeof(lists.inputs[0]), &lists.inputs, error));
    TND_TRY(
        tnd_onnx_new(memory, of[GRAPH_OUTPUT], sizeof(lists.outputs[0]), &lists.outputs, error));
    TND_TRY(tnd_onnx_new(memory, of[GRAPH_VALUE], sizeof(lists.values[0]), &lists.values, error));
    *graph = (struct tnd_onnx_graph){.name = "",
                                     .description = "",
                                     .n_sparse = of[GRAPH_SPARSE],
                                     .n_quantized = of[GRAPH_QUANTIZED]};
    while (message.at < message.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&message, &field, error));
        TND_TRY(read_graph_field(memory, &message, &field, depth, &lists, graph, error));
    }
    graph->nodes = lists.nodes;
    graph->initializers = lists.initializers;
    graph->inputs = lists.inputs;
    graph->outputs = lists.outputs;
    graph->values = lists.values;
    return TANDEM_OK;
}

/* ---- functions ---- */

struct function_lists {
    struct tnd_onnx_value *inputs;
    struct tnd_onnx_value *outputs;
    struct tnd_onnx_node *nodes;
    const char **names;
    struct tnd_onnx_attribute *defaults;
};

static enum tandem_status
read_function_field(struct tnd_onnx_memory *memory, const struct tnd_cursor *at,
                    const struct tnd_wire_field *field, const struct function_lists *lists,
                    struct tnd_onnx_function *function, struct tandem_error *error)
{
    static const char what[] = "a function";
    struct tnd_onnx_graph *graph = &function->graph;
    struct tnd_cursor inside;
    struct tnd_onnx_opset opset;
    switch (field->number) {
    case FUNCTION_NAME:
        return tnd_onnx_text(memory, at, field, what, &function->name, error);
    case FUNCTION_DOMAIN:
        TND_TRY(tnd_onnx_text(memory, at, field, what, &function->domain, error));
        function->domain = tnd_onnx_domain(function->domain);
        return TANDEM_OK;
    case FUNCTION_OVERLOAD:
        return tnd_onnx_text(memory, at, field, what, &function->overload, error);
    case FUNCTION_INPUT:
        return tnd_onnx_text(memory, at, field, what, &lists->inputs[graph->n_inputs++].name,
                             error);
    case FUNCTION_OUTPUT:
        return tnd_onnx_text(memory, at, field, what, &lists->outputs[graph->n_outputs++].name,
                             error);
    case FUNCTION_ATTRIBUTE:
        return tnd_onnx_text(memory, at, field, what, &lists->names[function->n_names++], error);
    case FUNCTION_NODE:
        TND_TRY(tnd_onnx_inside(memory, at, field, what, &inside, error));
        return read_node(memory, inside, 0, &lists->nodes[graph->n_nodes++], error);
    case FUNCTION_OPSET:
        TND_TRY(tnd_onnx_inside(memory, at, field, what, &inside, error));
        TND_TRY(tnd_onnx_read_opset(memory, inside, &opset, error));
        function->opset = opset.domain[0] == '\0' ? opset.version : function->opset;
        return TANDEM_OK;
    case FUNCTION_DEFAULT:
        TND_TRY(tnd_onnx_inside(memory, at, field, what, &inside, error));
        return read_attribute(memory, inside, 0, &lists->defaults[function->n_defaults++], error);
    default:
        return TANDEM_OK;
    }
}

enum tandem_status tnd_onnx_read_function(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                          struct tnd_onnx_function *function,
                                          struct tandem_error *error)
{
    struct tnd_onnx_counts counts;
    struct function_lists lists;
    TND_TRY(tnd_onnx_count(memory, message, &counts, error));
    const int *of = counts.of;
    TND_TRY(
        tnd_onnx_new(memory, of[FUNCTION_INPUT], sizeof(lists.inputs[0]), &lists.inputs, error));
    TND_TRY(
        tnd_onnx_new(memory, of[FUNCTION_OUTPUT], sizeof(lists.outputs[0]), &lists.outputs, error));
    TND_TRY(tnd_onnx_new(memory, of[FUNCTION_NODE], sizeof(lists.nodes[0]), &lists.nodes, error));
    TND_TRY(
        tnd_onnx_new(memory, of[FUNCTION_ATTRIBUTE], sizeof(lists.names[0]), &lists.names, error));
    TND_TRY(tnd_onnx_new(memory, of[FUNCTION_DEFAULT], sizeof(lists.defaults[0]), &lists.defaults,
                         error));
    *function =
        (struct tnd_onnx_function){.name = "", .domain = "", .overload = "", .graph = {.name = ""}};
    while (message.at < message.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&message, &field, error));
        TND_TRY(read_function_field(memory, &message, &field, &lists, function, error));
    }
    function->graph.name = function->name;
    function->graph.nodes = lists.nodes;
    function->graph.inputs = lists.inputs;
    function->graph.outputs = lists.outputs;
    function->names = lists.names;
    function->defaults = lists.defaults;
    return TANDEM_OK;
}
