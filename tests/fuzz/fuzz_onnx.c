/* SPDX-License-Identifier: MIT
 * Any bytes as an ONNX model: an error with a message, or a net, which runs on inputs of zeros
 * where it is small: by the reference, and lowered after all passes. Then the same in parts, with a
 * store for their constants: the first ones, on answers of zeros. */
#include <stdlib.h>
#include <string.h>

#include "formats/onnx_build.h"
#include "graph/lower.h"
#include "graph/pass.h"
#include "tests/fuzz/mutate_protobuf.h"
#include "tests/fuzz/small_runtime.h"

#define MAX_VALUES (1 << 16) /* of all values of a net that is run */
#define MAX_INPUTS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_with(data, size, max_size, seed, mutate_protobuf);
}

static bool is_small(const struct tnd_net *net)
{
    int64_t n = 0;
    for (int i = 0; i < net->n_values && n <= MAX_VALUES; i++) {
        n += tnd_dims_values(&net->values[i].shape) > MAX_VALUES
                 ? MAX_VALUES + 1
                 : tnd_dims_values(&net->values[i].shape);
    }
    return n <= MAX_VALUES && net->n_inputs <= MAX_INPUTS && net->n_outputs <= MAX_INPUTS;
}

static void run(const struct tnd_net *net)
{
    struct tnd_array *in[MAX_INPUTS] = {0};
    struct tnd_array *out[MAX_INPUTS] = {0};
    struct tandem_error error = {.text = ""};
    bool has_memory = true;
    for (int i = 0; i < net->n_inputs; i++) {
        const struct tnd_net_value *value = tnd_net_value(net, net->inputs[i]);
        in[i] = tnd_array_new(value->type, &value->shape);
        has_memory = has_memory && in[i] != NULL;
    }
    if (has_memory && tnd_net_run(net, in, out, &error) != TANDEM_OK && error.text[0] == '\0') {
        abort();
    }
    for (int i = 0; i < MAX_INPUTS; i++) {
        tnd_array_free(in[i]);
        tnd_array_free(out[i]);
    }
}

/* Passes and lowering fail for want of memory alone, the graph as the reference did. */
static void run_lowered(struct tnd_net *net)
{
    struct tandem_error error = {.text = ""};
    struct tnd_lowered *lowered = NULL;
    if (tnd_net_optimize(net, TND_PASSES_ALL, NULL, &error) != TANDEM_OK ||
        tnd_net_check(net, &error) != TANDEM_OK ||
        tnd_net_lower(net, &lowered, &error) != TANDEM_OK) {
        if (error.text[0] == '\0') {
            abort();
        }
        return;
    }
    (void)tandem_runtime_compute(small_runtime(), tnd_lowered_graph(lowered), NULL, NULL, &error);
    tnd_lowered_free(lowered);
}

/* Texts that nothing is computed by end with a zero byte. */
static void read_remarks(const struct tnd_onnx_model *model)
{
    size_t n = strlen(model->producer) + strlen(model->domain) + strlen(model->description) +
               strlen(model->graph->description);
    for (int i = 0; i < model->n_properties; i++) {
        n += strlen(model->properties[i].key) + strlen(model->properties[i].value);
    }
    if (n > SIZE_MAX / 2) {
        abort();
    }
}

static void free_left(struct tnd_onnx_part *part)
{
    for (int i = 0; i < part->n_left; i++) {
        tnd_array_free(part->left[i].known);
    }
    tnd_vector_fini(&part->left_vector);
}

/* Builds part after part, each on answers that are 0. */
static void build_parts(const struct tnd_onnx_model *model)
{
    enum { MOST = 4 };
    struct tnd_onnx_part parts[MOST] = {{.first = 0}};
    const struct tnd_array *answers[MOST];
    struct tnd_array *owned[MOST] = {NULL};
    struct tnd_store *store = tnd_store_new();
    bool goes_on = store != NULL;
    int n = 0;
    int first = 0; /* the answers of the part */
    for (; goes_on && n < MOST; n++) {
        struct tnd_onnx_part *part = &parts[n];
        const struct tnd_onnx_build_options options = {.store = store, .part = part};
        struct tandem_error error = {.text = ""};
        struct tnd_net *net = NULL;
        if (n > 0 && parts[n - 1].stopped == parts[n - 1].first) {
            part->first = parts[n - 1].first;
            part->carried = parts[n - 1].carried;
            part->n_carried = parts[n - 1].n_carried;
        } else if (n > 0) {
            part->first = parts[n - 1].stopped;
            part->carried = parts[n - 1].left;
            part->n_carried = parts[n - 1].n_left;
            first = n - 1;
        }
        part->answers = answers + first;
        part->n_answers = n - first;
        if (tnd_onnx_build(model, &options, &net, &error) != TANDEM_OK) {
            goes_on = error.text[0] != '\0' && net == NULL ? false : (abort(), false);
            continue;
        }
        goes_on = !part->is_last && is_small(net);
        if (goes_on) {
            const struct tnd_net_value *asked = tnd_net_value(net, net->outputs[0]);
            answers[n] = owned[n] = tnd_array_new(asked->type, &asked->shape);
            goes_on = owned[n] != NULL;
        }
        if (is_small(net)) {
            run(net);
            run_lowered(net);
        }
        tnd_net_free(net);
        tnd_store_sweep(store);
    }
    for (int i = 0; i < n; i++) {
        free_left(&parts[i]);
        tnd_array_free(owned[i]);
    }
    tnd_store_free(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tnd_onnx_build_options options;
    struct tandem_error error = {.text = ""};
    struct tnd_onnx_model *model = NULL;
    struct tnd_net *net = NULL;
    if (tnd_onnx_read(data, size, "fuzz", &model, &error) != TANDEM_OK) {
        return error.text[0] != '\0' && model == NULL ? 0 : (abort(), 0);
    }
    read_remarks(model);
    build_parts(model);
    if (tnd_onnx_build(model, &options, &net, &error) != TANDEM_OK) {
        tnd_onnx_close(model);
        return error.text[0] != '\0' && net == NULL ? 0 : (abort(), 0);
    }
    tnd_onnx_close(model);
    if (is_small(net)) {
        run(net);
        run_lowered(net);
    }
    tnd_net_free(net);
    return 0;
}
