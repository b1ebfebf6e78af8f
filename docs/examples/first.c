/* SPDX-License-Identifier: MIT
 * A first program: quantised weights times activations, on whatever this machine does fastest. */
#include <stdio.h>
#include <stdlib.h>

#include "tandem/tandem.h"

enum { K = 256, N = 64, M = 3 };

int main(void)
{
    struct tandem_error error;
    tandem_context *context = NULL;
    tandem_runtime *runtime = NULL;
    int result = EXIT_FAILURE;
    if (tandem_context_new(NULL, &context, &error) != TANDEM_OK ||
        tandem_runtime_open(NULL, &runtime, &error) != TANDEM_OK) {
        goto fail;
    }

    tandem_tensor *w = tandem_tensor_new_2d(context, TANDEM_TYPE_Q4_0, K, N);
    tandem_tensor *x = tandem_tensor_new_2d(context, TANDEM_TYPE_F32, K, M);
    tandem_tensor *y = tandem_mul_mat(context, w, x); /* {N, M} */
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, y);
    if (tandem_graph_finish(graph, &error) != TANDEM_OK) {
        goto fail; /* covers every builder above */
    }

    float row[K];
    float ones[K * M];
    float first;
    for (int i = 0; i < K; i++) {
        row[i] = 0.01f * (float)(i % 7);
    }
    for (int n = 0; n < N; n++) {
        char *blocks = tandem_tensor_data(w);
        tandem_quantize(TANDEM_TYPE_Q4_0, row, blocks + (size_t)n * tandem_tensor_nb(w)[1], K);
    }
    for (int i = 0; i < K * M; i++) {
        ones[i] = 1.0f;
    }
    if (tandem_tensor_set(x, 0, TANDEM_ALL, ones, &error) != TANDEM_OK) {
        goto fail;
    }

    if (tandem_runtime_compute(runtime, graph, NULL, NULL, &error) != TANDEM_OK ||
        tandem_tensor_get(y, 0, 1, &first, &error) != TANDEM_OK) {
        goto fail;
    }
    printf("y[0] = %.3f\n", (double)first);
    result = EXIT_SUCCESS;
fail:
    if (result != EXIT_SUCCESS) {
        fprintf(stderr, "%s\n", error.text);
    }
    tandem_runtime_close(runtime);
    tandem_context_free(context);
    return result;
}
