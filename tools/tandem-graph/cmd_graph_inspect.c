/* SPDX-License-Identifier: MIT
 * tandem-graph inspect: inputs, outputs and operators of a model, and its net. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tandem/log.h"
#include "tools/op_split.h"
#include "tools/tandem-graph/graph_cli.h"

/* Names come from the file: prints them without control characters. */
static void print_name(const char *name)
{
    char visible[512];
    (void)tandem_text_visible(name, strlen(name), visible, sizeof(visible));
    printf("%s", visible);
}

static void print_value(const char *what, const struct tnd_onnx_value *value)
{
    const char *type = tnd_onnx_type_name(value->type);
    printf("  %-6s ", what);
    print_name(value->name);
    printf(" %s [", type != NULL ? type : "of no known type");
    for (int i = 0; i < value->n_dims; i++) {
        printf("%s", i > 0 ? ", " : "");
        if (value->dims[i].value >= 0) {
            printf("%lld", (long long)value->dims[i].value);
        } else {
            print_name(value->dims[i].name != NULL ? value->dims[i].name : "?");
        }
    }
    printf(value->n_dims < 0 ? "shape not stated]\n" : "]\n");
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Prints operators with counts, by name. */
static enum tandem_status print_operators(const struct tnd_onnx_graph *graph,
                                          struct tandem_error *error)
{
    const char **names = tnd_calloc((size_t)graph->n_nodes + 1, sizeof(*names));
    if (names == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, graph->n_nodes, 0,
                             "no memory for the names of %d operators", graph->n_nodes);
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        names[i] = graph->nodes[i].op;
    }
    qsort(names, (size_t)graph->n_nodes, sizeof(*names), compare_texts);
    printf("\n%d nodes\n", graph->n_nodes);
    for (int i = 0, begin = 0; i < graph->n_nodes; i++) {
        if (i + 1 == graph->n_nodes || strcmp(names[i], names[i + 1]) != 0) {
            printf("  %6d ", i + 1 - begin);
            print_name(names[i]);
            printf("\n");
            begin = i + 1;
        }
    }
    tnd_free(names);
    return TANDEM_OK;
}

static void print_model(const struct tnd_onnx_model *model)
{
    const struct tnd_onnx_graph *graph = model->graph;
    double values = 0, bytes = 0;
    for (int i = 0; i < graph->n_initializers; i++) {
        values += (double)graph->initializers[i].n_values;
        bytes += (double)graph->initializers[i].bytes;
    }
    printf("opset %lld, IR version %lld, made by ", (long long)model->opset,
           (long long)model->ir_version);
    print_name(model->producer[0] != '\0' ? model->producer : "an unnamed producer");
    printf("\n%.0f parameters in %.0f bytes\n\n", values, bytes);
    for (int i = 0; i < graph->n_inputs; i++) {
        if (!tnd_onnx_has_initializer(graph, graph->inputs[i].name)) {
            print_value("input", &graph->inputs[i]);
        }
    }
    for (int i = 0; i < graph->n_outputs; i++) {
        print_value("output", &graph->outputs[i]);
    }
}

/* Prints the net, or which open shape or unknown operator prevents one. */
static void print_net(const struct tnd_onnx_model *model, const struct tandem_onnx_dim *dims,
                      int n_dims)
{
    const struct tnd_onnx_node *stopped;
    struct tandem_error error = {.text = ""};
    struct tnd_net *net = NULL;
    struct tnd_lowered *lowered = NULL;
    int counts[TND_N_NET_OPS] = {0};
    if (tnd_graph_build(model, dims, n_dims, &net, &stopped, &error) != TANDEM_OK) {
        printf("\nnot built as it is: %s\n", error.text);
        return;
    }
    for (int i = 0; i < net->n_nodes; i++) {
        counts[net->nodes[i].op]++;
    }
    printf("\n%d operations of the net\n", net->n_nodes);
    for (int i = 0; i < TND_N_NET_OPS; i++) {
        if (counts[i] > 0) {
            printf("  %6d %s\n", counts[i], tnd_net_op_name((enum tnd_net_op)i));
        }
    }
    tnd_graph_tell_part(stdout, stopped);
    const struct tnd_lower_options options = {.gives_up = net};
    unsigned passes;
    (void)tnd_passes_read(NULL, &passes); /* all, as when running */
    if (tnd_net_optimize(net, passes, NULL, &error) == TANDEM_OK &&
        tnd_net_lower_with(net, &options, &lowered, &error) == TANDEM_OK) {
        tnd_op_split_print_slow(tnd_lowered_graph(lowered), stdout);
        tnd_lowered_free(lowered);
    } else {
        printf("\nnot lowered: %s\n", error.text);
    }
    tnd_net_free(net);
}

int tnd_cmd_graph_inspect(int argc, char **argv)
{
    struct args_strings dims = {.n = 0};
    const struct args_option options[] = {
        {"dim", ARGS_STRINGS, &dims, 0, 0, "NAME=N", "extent of a dimension with a name"},
    };
    const struct args_command command = {
        "inspect",
        "MODEL.onnx",
        "Prints inputs, outputs and operators of an ONNX model, and which operations it becomes.",
        options,
        1,
        1,
        1};
    static struct tandem_onnx_dim sizes[ARGS_LIST_MAX];
    const char *path = NULL;
    struct tnd_onnx_model *model = NULL;
    struct tandem_error error = {.text = ""};
    const int result = args_parse(&command, argc, argv, &path, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    enum tandem_status status = tnd_dim_option_read(&dims, sizes, &error);
    if (status == TANDEM_OK) {
        status = tnd_onnx_open(path, &model, &error);
    }
    if (status == TANDEM_OK) {
        print_model(model);
        status = print_operators(model->graph, &error);
    }
    if (status == TANDEM_OK) {
        print_net(model, sizes, dims.n);
    }
    tnd_onnx_close(model);
    tnd_dim_option_free(&dims, sizes);
    return status == TANDEM_OK ? 0 : tnd_graph_fail(&error);
}
