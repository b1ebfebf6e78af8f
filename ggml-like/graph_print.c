/* SPDX-License-Identifier: MIT
 * A graph as text, one line a node. */
#include <stdio.h>

#include "ggml-like/tensor_internal.h"

#define LINE_BYTES  512
#define LABEL_BYTES (TANDEM_MAX_NAME + 16)

/* The tensor's name, or its kind and node number. */
static const char *label(const struct tandem_tensor *tensor, char text[LABEL_BYTES])
{
    if (tensor->name[0] != '\0') {
        snprintf(text, LABEL_BYTES, "%s", tensor->name);
    } else if (tensor->index >= 0) {
        snprintf(text, LABEL_BYTES, "%%%d", (int)tensor->index);
    } else {
        snprintf(text, LABEL_BYTES, "%s",
                 tensor->op == TANDEM_OP_NONE ? "leaf" : tandem_op_name(tensor->op));
    }
    return text;
}

/* Where the result lies. */
static void memory_text(const struct tandem_tensor *node, char text[LABEL_BYTES])
{
    char root[LABEL_BYTES];
    if (node->root != node) {
        snprintf(text, LABEL_BYTES, "in %s", label(node->root, root));
    } else if (node->plan_offset >= 0) {
        snprintf(text, LABEL_BYTES, "at %lld", (long long)node->plan_offset);
    } else {
        snprintf(text, LABEL_BYTES, "output");
    }
}

static size_t node_line(const struct tandem_tensor *node, int i, char line[LINE_BYTES])
{
    char shape[TND_SHAPE_TEXT_BYTES];
    char name[LABEL_BYTES];
    char memory[LABEL_BYTES];
    memory_text(node, memory);
    int used = snprintf(line, LINE_BYTES, "%5d %-13s %-20s %-5s %-24s %-14s (", i,
                        tandem_op_name(node->op), label(node, name), tandem_type_name(node->type),
                        tnd_shape_text(node->ne, shape), memory);
    for (int j = 0; j < node->n_src; j++) {
        used += snprintf(line + used, LINE_BYTES - (size_t)used, "%s%s", j == 0 ? "" : ", ",
                         label(node->src[j], name));
        if (used >= LINE_BYTES - 3) {
            used = LINE_BYTES - 3;
            break;
        }
    }
    used += snprintf(line + used, LINE_BYTES - (size_t)used, ")\n");
    return (size_t)used;
}

enum tandem_status tandem_graph_print(const tandem_graph *graph, tandem_write_fn write, void *user)
{
    if (graph == NULL || write == NULL) {
        return TANDEM_E_ARGUMENT;
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        char line[LINE_BYTES];
        const size_t bytes = node_line(graph->nodes[i], i, line);
        if (write(user, line, bytes) != 0) {
            return TANDEM_E_FILE;
        }
    }
    return TANDEM_OK;
}
