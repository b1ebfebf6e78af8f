/* SPDX-License-Identifier: MIT
 * Checks of nodes and outputs: numbers of operands and results, and declared types of outputs.
 * Declared shapes are hints. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/onnx_op.h"

/* ---- numbers of operands and results ---- */

/* "2", "1-3" or "1-*"; returns what follows. */
static const char *read_span(const char *text, struct tnd_onnx_span *out)
{
    char *end = NULL;
    out->min = (int)strtol(text, &end, 10);
    out->max = out->min;
    if (*end == '-') {
        const bool is_open = end[1] == '*';
        out->max = is_open ? INT_MAX : (int)strtol(end + 1, &end, 10);
        end += is_open ? 2 : 0;
    }
    return end;
}

void tnd_onnx_arity(const struct tnd_onnx_op *op, int64_t opset, struct tnd_onnx_span *out_in,
                    struct tnd_onnx_span *out_out)
{
    int64_t since = 0;
    for (const char *at = op->arity; *at != '\0';) {
        struct tnd_onnx_span in;
        struct tnd_onnx_span out = {1, 1};
        at = read_span(at, &in);
        if (*at == ':') {
            since = in.min;
            at = read_span(at + 1, &in);
        }
        at = *at == '>' ? read_span(at + 1, &out) : at;
        at += *at == ' ';
        if (since <= opset) {
            *out_in = in;
            *out_out = out;
        }
    }
}

static bool check_span(struct tnd_onnx_call *call, const char *what, int n,
                       const struct tnd_onnx_span *span)
{
    if (n >= span->min && n <= span->max) {
        return true;
    }
    char most[32];
    (void)snprintf(most, sizeof(most), span->max == INT_MAX ? " or more" : " to %d", span->max);
    (void)tnd_onnx_refuse(call, "%d %s, expected %d%s", n, what, span->min,
                          span->max > span->min ? most : "");
    return false;
}

bool tnd_onnx_check_arity(struct tnd_onnx_call *call, const struct tnd_onnx_op *op)
{
    struct tnd_onnx_span in;
    struct tnd_onnx_span out;
    tnd_onnx_arity(op, call->opset, &in, &out);
    return check_span(call, "inputs", call->n_in, &in) &&
           check_span(call, "outputs", call->n_out, &out);
}

/* ---- outputs as the model states them ---- */

/* The extent of a symbolic dimension from the inputs; -1: absent, or several extents. */
static int64_t extent_by_inputs(const struct tnd_onnx_graph *graph, const struct tnd_net *net,
                                const char *name)
{
    int64_t extent = -1;
    for (int i = 0; i < graph->n_inputs; i++) {
        for (int k = 0; k < net->n_inputs; k++) {
            const struct tnd_net_value *value = tnd_net_value(net, net->inputs[k]);
            if (strcmp(graph->inputs[i].name, value->name) != 0) {
                continue;
            }
            for (int d = 0; d < graph->inputs[i].n_dims; d++) {
                const char *dim = graph->inputs[i].dims[d].name;
                if (dim == NULL || strcmp(dim, name) != 0) {
                    continue;
                }
                if (extent >= 0 && extent != value->shape.dims[d]) {
                    return -1;
                }
                extent = value->shape.dims[d];
            }
        }
    }
    return extent;
}

/* The declared extent of a dimension of output `at`; -1: none. */
static int64_t stated_extent(const struct tnd_onnx_graph *graph, const struct tnd_net *net, int at,
                             int d)
{
    const struct tnd_onnx_dim *dim = &graph->outputs[at].dims[d];
    if (dim->value >= 0 || dim->name == NULL || dim->name[0] == '\0') {
        return dim->value;
    }
    return extent_by_inputs(graph, net, dim->name);
}

/* "2xbatchx-", for messages. */
static void stated_text(const struct tnd_onnx_value *output, char *out, size_t size)
{
    size_t at = 0;
    (void)snprintf(out, size, "scalar");
    for (int i = 0; i < output->n_dims && at < size; i++) {
        const struct tnd_onnx_dim *dim = &output->dims[i];
        const char *between = i > 0 ? "x" : "";
        const int n = dim->value >= 0
                          ? snprintf(out + at, size - at, "%s%lld", between, (long long)dim->value)
                          : snprintf(out + at, size - at, "%s%.20s", between,
                                     dim->name != NULL ? dim->name : "?");
        at += n > 0 ? (size_t)n : 0;
    }
}

/* Whether an output has the declared shape, as far as there is one. `symbol` describes a named
 * extent of the inputs that differs. */
static bool has_stated_shape(const struct tnd_net *net, const struct tnd_onnx_graph *graph, int at,
                             const struct tnd_dims *shape, char *symbol, size_t size)
{
    const struct tnd_onnx_value *output = &graph->outputs[at];
    /* Exports with two branches (optimum's merged decoders) leave the other branch's output empty;
     * then its named extents mean nothing. */
    const bool is_placeholder = tnd_dims_values(shape) == 0;
    bool fits = output->n_dims < 0 || output->n_dims == shape->n;
    for (int d = 0; fits && d < output->n_dims; d++) {
        const int64_t extent = stated_extent(graph, net, at, d);
        fits =
            extent < 0 || extent == shape->dims[d] || (is_placeholder && output->dims[d].value < 0);
        if (!fits && output->dims[d].value < 0) {
            (void)snprintf(symbol, size, ", %.20s being %lld", output->dims[d].name,
                           (long long)extent);
        }
    }
    return fits;
}

bool tnd_onnx_check_output(struct tnd_net *net, const struct tnd_onnx_graph *graph, int at,
                           int value)
{
    const struct tnd_onnx_value *output = &graph->outputs[at];
    const struct tnd_dims *shape = &tnd_net_value(net, value)->shape;
    const enum tandem_dtype type = tnd_net_value(net, value)->type;
    enum tandem_dtype stated = type;
    char got[160];
    char wanted[80];
    char symbol[60] = "";
    if (output->kind != TND_ONNX_TENSOR) { /* no declared type */
        return true;
    }
    if (tnd_onnx_dtype(output->type, &stated) && stated != type) {
        (void)tnd_net_fail(net, TANDEM_E_TYPE,
                           "output '%.60s': computed is %s of %s, the model states %s",
                           output->name, tandem_dtype_name(type), tnd_dims_text(shape, got),
                           tandem_dtype_name(stated));
        return false;
    }
    /* In otherwise valid published models exporters have declared the shape of one sample. ONNX
     * Runtime warns and goes on. */
    if (!has_stated_shape(net, graph, at, shape, symbol, sizeof(symbol)) && net->note[0] == '\0') {
        stated_text(output, wanted, sizeof(wanted));
        (void)snprintf(net->note, sizeof(net->note),
                       "output '%.40s' has the shape %.60s, the model states %s%s", output->name,
                       tnd_dims_text(shape, got), wanted, symbol);
    }
    return true;
}
