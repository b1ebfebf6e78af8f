/* SPDX-License-Identifier: MIT
 * The operator that onnx_op.patch adds, in a model of one node. */
#include <stdio.h>

#include "tandem/nets.h"
#include "tandem/onnx_nets.h"
#include "tandem/tandem.h"

/* ModelProto (onnx.proto3): opset 17, y = Cube(x) of float32 {3}. */
static const unsigned char model_bytes[] = {
    0x08, 8,  0x42, 2, 0x10, 17,                                           /* versions */
    0x3a, 36,                                                              /* graph: */
    0x0a, 12, 0x0a, 1, 'x',  0x12, 1,    'y', 0x22, 4, 'C', 'u', 'b', 'e', /* node */
    0x5a, 15, 0x0a, 1, 'x',  0x12, 10,                                     /* input, its type: */
    0x0a, 8,  0x08, 1, 0x12, 4,    0x0a, 2,   0x08, 3,                     /* float32 {3} */
    0x62, 3,  0x0a, 1, 'y'};                                               /* output */

int main(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    tandem_onnx *model = NULL;
    tandem_lowered *lowered = NULL;
    struct tandem_net_array y = {0};
    static const float x[3] = {-2.0f, 0.5f, 3.0f};
    options.table_path = "";
    if (tandem_runtime_open(&options, &runtime, &error) != TANDEM_OK ||
        tandem_onnx_read(model_bytes, sizeof(model_bytes), NULL, &model, &error) != TANDEM_OK ||
        tandem_onnx_lower(model, NULL, 0, &lowered, &error) != TANDEM_OK ||
        tandem_lowered_set_input(lowered, 0, x, sizeof(x), &error) != TANDEM_OK ||
        tandem_runtime_compute(runtime, tandem_lowered_graph(lowered), NULL, NULL, &error) !=
            TANDEM_OK ||
        !tandem_lowered_output(lowered, 0, &y)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    const float *values = y.data;
    const bool right = values[0] == -8.0f && values[1] == 0.125f && values[2] == 27.0f;
    tandem_onnx_close(model);
    tandem_runtime_close(runtime);
    return !right;
}
