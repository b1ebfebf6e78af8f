/* SPDX-License-Identifier: MIT
 * The tensor type that type.patch adds: known by name, exact for its own values, and multiplied
 * although no kernel knows it. */
#include <stdio.h>

#include "tandem/tandem.h"

enum { N = 8, K = 32, M = 3 };

int main(void)
{
    enum tandem_type type;
    float values[N * K];
    float back[N * K];
    signed char bytes[N * K];
    if (!tandem_type_from_name("s8", &type) || type != TANDEM_TYPE_S8 ||
        !tandem_type_is_quantized(type)) {
        return 1;
    }
    for (int i = 0; i < N * K; i++) {
        values[i] = (float)(i % 41 - 20) / 16.0f;
    }
    if (tandem_quantize(type, values, bytes, N * K) != TANDEM_OK ||
        tandem_dequantize(type, bytes, back, N * K) != TANDEM_OK) {
        return 1;
    }
    for (int i = 0; i < N * K; i++) {
        if (back[i] != values[i]) {
            return 1;
        }
    }
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.table_path = "";
    tandem_runtime *runtime = NULL;
    tandem_context *context = NULL;
    struct tandem_error error = {0};
    static float x_data[M * K];
    for (int i = 0; i < M * K; i++) {
        x_data[i] = (float)(i % 7);
    }
    if (tandem_runtime_open(&options, &runtime, &error) != TANDEM_OK ||
        tandem_context_new(NULL, &context, &error) != TANDEM_OK) {
        return 1;
    }
    tandem_tensor *w =
        tandem_tensor_borrow(context, type, 2, (int64_t[]){K, N}, bytes, sizeof(bytes));
    tandem_tensor *x = tandem_tensor_borrow(context, TANDEM_TYPE_F32, 2, (int64_t[]){K, M}, x_data,
                                            sizeof(x_data));
    tandem_tensor *y = tandem_mul_mat(context, w, x);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, y);
    if (tandem_graph_finish(graph, &error) != TANDEM_OK ||
        tandem_runtime_compute(runtime, graph, NULL, NULL, &error) != TANDEM_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    const float *result = tandem_tensor_data(y);
    int wrong = 0;
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++) {
                sum += values[n * K + k] * x_data[m * K + k];
            }
            float off = result[m * N + n] - sum;
            wrong += off > 0.01f || off < -0.01f;
        }
    }
    tandem_context_free(context);
    tandem_runtime_close(runtime);
    return wrong != 0;
}
