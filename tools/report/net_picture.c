/* SPDX-License-Identifier: MIT
 * Turns a net into boxes and lines, and those into text for graphviz. */
#include "tools/report/net_picture.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "tandem/log.h"

/* ---- making the picture ---- */

struct taking {
    const struct tnd_net *net;
    struct tnd_picture *out;
    int *boxes; /* box of each value that is not a view; -1: none */
};

/* Label of an operation: its name, then windows or axes. */
static void name_node(const struct tnd_net_node *node, char *out, size_t room)
{
    int n = snprintf(out, room, "%s", tnd_net_node_name(node));
    const struct tnd_window *window = &node->params.window;
    for (int i = 0; (node->op == TND_NET_CONV || node->op == TND_NET_POOL) && i < window->n; i++) {
        n += snprintf(out + n, room - (size_t)n, "%s%lld", i == 0 ? " " : "x",
                      (long long)window->extent[i]);
        n = n < (int)room ? n : (int)room - 1;
    }
}

static struct tnd_picture_box *add_box(struct taking *taking, enum tnd_picture_kind kind)
{
    struct tnd_picture *out = taking->out;
    if (tnd_vector_insert(&out->boxes_vector, sizeof(out->boxes[0]), INT_MAX / 2, out->n_boxes) !=
        TANDEM_OK) {
        return NULL;
    }
    out->boxes[out->n_boxes - 1].kind = kind;
    return &out->boxes[out->n_boxes - 1];
}

/* "float32 2x3" */
static void describe(const struct tnd_net_value *v, char out[64])
{
    char shape[160];
    (void)snprintf(out, 64, "%s %.50s", tandem_dtype_name(v->type),
                   tnd_dims_text(&v->shape, shape));
}

static void copy_name(const char *name, char out[64])
{
    (void)tandem_text_visible(name, strlen(name), out, 40);
}

/* A line from what makes a value to the last box; a constant's shape goes into that box. */
static bool add_line(struct taking *taking, int value)
{
    struct tnd_picture *out = taking->out;
    struct tnd_picture_box *box = &out->boxes[out->n_boxes - 1];
    const struct tnd_net_value *v = tnd_net_value(taking->net, value);
    const int from = taking->boxes[v->base];
    if (from < 0) {
        const struct tnd_net_value *base = tnd_net_value(taking->net, v->base);
        const size_t used = strlen(box->lines[2]);
        char text[160];
        if (base->known != NULL && base->known->n == 1) {
            (void)snprintf(text, sizeof(text), "%g", tnd_array_number(base->known, 0));
        } else {
            (void)tnd_dims_text(&base->shape, text);
        }
        (void)snprintf(box->lines[2] + used, sizeof(box->lines[2]) - used, "%s%.30s",
                       used == 0 ? "by " : ", ", text);
        return true;
    }
    if (tnd_vector_insert(&out->lines_vector, sizeof(out->lines[0]), INT_MAX / 2, out->n_lines) !=
        TANDEM_OK) {
        return false;
    }
    out->lines[out->n_lines - 1] =
        (struct tnd_picture_line){from, out->n_boxes - 1, v->base != value};
    const int layer = out->boxes[from].layer + 1;
    box->layer = layer > box->layer ? layer : box->layer;
    return true;
}

static bool take_inputs(struct taking *taking)
{
    for (int i = 0; i < taking->net->n_inputs; i++) {
        const int value = taking->net->inputs[i];
        struct tnd_picture_box *box = add_box(taking, TND_PICTURE_INPUT);
        if (box == NULL) {
            return false;
        }
        copy_name(tnd_net_value(taking->net, value)->name, box->lines[0]);
        describe(tnd_net_value(taking->net, value), box->lines[1]);
        taking->boxes[value] = taking->out->n_boxes - 1;
    }
    return true;
}

static bool take_nodes(struct taking *taking)
{
    bool is_good = true;
    for (int i = 0; i < taking->net->n_nodes && is_good; i++) {
        const struct tnd_net_node *node = &taking->net->nodes[i];
        struct tnd_picture_box *box = add_box(taking, TND_PICTURE_OPERATION);
        is_good = box != NULL;
        if (is_good) {
            name_node(node, box->lines[0], sizeof(box->lines[0]));
            describe(tnd_net_value(taking->net, node->output), box->lines[1]);
        }
        for (int k = 0; k < node->n_inputs && is_good; k++) {
            is_good = add_line(taking, node->inputs[k]);
        }
        taking->boxes[node->output] = taking->out->n_boxes - 1;
    }
    return is_good;
}

static bool take_outputs(struct taking *taking, const char *const *names)
{
    bool is_good = true;
    for (int i = 0; i < taking->net->n_outputs && is_good; i++) {
        struct tnd_picture_box *box = add_box(taking, TND_PICTURE_OUTPUT);
        is_good = box != NULL;
        if (is_good) {
            if (names != NULL) {
                copy_name(names[i], box->lines[0]);
            } else {
                (void)snprintf(box->lines[0], sizeof(box->lines[0]), "output %d", i);
            }
            is_good = add_line(taking, taking->net->outputs[i]);
        }
    }
    return is_good;
}

enum tandem_status tnd_picture_take(const struct tnd_net *net, const char *title,
                                    const char *const *names, struct tnd_picture *out,
                                    struct tandem_error *error)
{
    const int64_t n = (int64_t)net->n_inputs + net->n_nodes + net->n_outputs;
    if (n > TND_PICTURE_MAX) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "picture", n, TND_PICTURE_MAX,
                             "a picture of %lld boxes, expected at most %d", (long long)n,
                             TND_PICTURE_MAX);
    }
    struct taking taking = {net, out, tnd_alloc(((size_t)net->n_values + 1) * sizeof(int))};
    bool is_good = taking.boxes != NULL;
    for (int i = 0; is_good && i < net->n_values; i++) {
        taking.boxes[i] = -1;
    }
    (void)snprintf(out->title, sizeof(out->title), "%s: %d operation%s", title, net->n_nodes,
                   net->n_nodes == 1 ? "" : "s");
    is_good =
        is_good && take_inputs(&taking) && take_nodes(&taking) && take_outputs(&taking, names);
    tnd_free(taking.boxes);
    return is_good ? TANDEM_OK
                   : tnd_error_set(error, TANDEM_E_MEMORY, "picture", n, 0,
                                   "no memory for a picture of %lld boxes", (long long)n);
}

void tnd_picture_fini(struct tnd_picture *picture)
{
    tnd_vector_fini(&picture->boxes_vector);
    tnd_vector_fini(&picture->lines_vector);
}

/* ---- graphviz ---- */

/* Escapes quotes and backslashes for a quoted string of graphviz. */
static void add_quoted(struct tnd_text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            tnd_text_add_char(out, '\\');
        }
        tnd_text_add_char(out, *text);
    }
}

static void add_boxes(const struct tnd_picture *picture, int number, struct tnd_text *out)
{
    static const char *const styles[] = {
        [TND_PICTURE_INPUT] = "shape=box style=\"rounded,filled\" fillcolor=\"#dcecff\"",
        [TND_PICTURE_OPERATION] = "shape=box style=filled fillcolor=\"#f6f6f6\"",
        [TND_PICTURE_OUTPUT] = "shape=box style=\"rounded,filled\" fillcolor=\"#ddf3dd\""};
    for (int i = 0; i < picture->n_boxes; i++) {
        const struct tnd_picture_box *box = &picture->boxes[i];
        tnd_text_printf(out, "    b%d_%d [%s label=\"", number, i, styles[box->kind]);
        for (int k = 0; k < 3 && (k == 0 || box->lines[k][0] != '\0'); k++) {
            tnd_text_add(out, k > 0 ? "\\n" : "");
            add_quoted(out, box->lines[k]);
        }
        tnd_text_add(out, "\"];\n");
    }
    for (int i = 0; i < picture->n_lines; i++) {
        const struct tnd_picture_line *line = &picture->lines[i];
        tnd_text_printf(out, "    b%d_%d -> b%d_%d%s;\n", number, line->from, number, line->to,
                        line->is_view ? " [style=dashed]" : "");
    }
}

void tnd_picture_dot(const struct tnd_picture *pictures, int n, struct tnd_text *out)
{
    tnd_text_add(out, "digraph net {\n  node [fontname=\"Helvetica\" fontsize=10];\n");
    for (int i = 0; i < n; i++) {
        tnd_text_printf(out, "  subgraph cluster_%d {\n    label=\"", i);
        add_quoted(out, pictures[i].title);
        tnd_text_add(out, "\";\n");
        add_boxes(&pictures[i], i, out);
        tnd_text_add(out, "  }\n");
    }
    tnd_text_add(out, "}\n");
}
