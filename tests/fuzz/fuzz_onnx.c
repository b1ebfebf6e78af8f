/* SPDX-License-Identifier: MIT
 * Any bytes as an ONNX model: an error with a message, or a net, which runs on inputs of zeros
 * where it is small. */
#include <stdlib.h>

#include "formats/onnx_build.h"
#include "tests/fuzz/mutate_protobuf.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tnd_onnx_build_options options;
    struct tandem_error error = {.text = ""};
    struct tnd_onnx_model *model = NULL;
    struct tnd_net *net = NULL;
    if (tnd_onnx_read(data, size, "fuzz", &model, &error) != TANDEM_OK) {
        return error.text[0] != '\0' && model == NULL ? 0 : (abort(), 0);
    }
    if (tnd_onnx_build(model, &options, &net, &error) != TANDEM_OK) {
        tnd_onnx_close(model);
        return error.text[0] != '\0' && net == NULL ? 0 : (abort(), 0);
    }
    tnd_onnx_close(model);
    if (is_small(net)) {
        run(net);
    }
    tnd_net_free(net);
    return 0;
}
