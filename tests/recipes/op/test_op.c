/* SPDX-License-Identifier: MIT
 * The operation that op.patch adds: computed by the reference and by the CPU backend. */
#include <stdio.h>

#include "ggml-like/tnd_tensor.h"
#include "tandem/tandem.h"

enum { N = 21 };

static bool is_right(const float *y)
{
    bool right = true;
    for (int i = 0; i < N; i++) {
        right = right && y[i] == (i < 10 ? (float)(10 - i) : (float)(i - 10));
    }
    return right;
}

int main(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    tandem_context *context = NULL;
    static float values[N];
    options.table_path = "";
    for (int i = 0; i < N; i++) {
        values[i] = (float)(i - 10);
    }
    if (tandem_runtime_open(&options, &runtime, &error) != TANDEM_OK ||
        tandem_context_new(NULL, &context, &error) != TANDEM_OK) {
        return 1;
    }
    tandem_tensor *a =
        tandem_tensor_borrow(context, TANDEM_TYPE_F32, 1, (int64_t[]){N}, values, sizeof(values));
    tandem_tensor *y = tandem_abs(context, a);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, y);
    if (tandem_graph_finish(graph, &error) != TANDEM_OK ||
        tandem_runtime_compute(runtime, graph, NULL, NULL, &error) != TANDEM_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    bool right = is_right(tandem_tensor_data(y));
    right = tnd_eval_ref_node(y, &error) == TANDEM_OK && right && is_right(tandem_tensor_data(y));
    tandem_context_free(context);
    tandem_runtime_close(runtime);
    return !right;
}
