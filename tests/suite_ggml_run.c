/* SPDX-License-Identifier: MIT
 * What the ggml-like suites share. */
#include <stdlib.h>
#include <string.h>

#include "tests/suite_ggml.h"

enum tandem_status ggml_compute(tandem_graph *graph, struct tandem_error *error)
{
    if (graph == NULL) {
        return TANDEM_E_ARGUMENT;
    }
    const size_t bytes = graph->planned_bytes + TND_ALIGNMENT;
    void *buffer = aligned_alloc(TND_ALIGNMENT, bytes);
    if (buffer == NULL) {
        return TANDEM_E_MEMORY;
    }
    memset(buffer, 0xff, bytes); /* not a number, in every float */
    tnd_graph_bind(graph, buffer);
    const enum tandem_status status = tnd_eval_ref_graph(graph, error);
    free(buffer);
    return status;
}

bool ggml_compute_one(tandem_context *context, tandem_tensor *result)
{
    struct tandem_error error = {0};
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, result);
    if (tandem_graph_finish(graph, &error) != TANDEM_OK) {
        check_string(error.text, "finished");
        return false;
    }
    return check_ok(ggml_compute(graph, &error));
}

tandem_context *ggml_context(void)
{
    tandem_context *context = NULL;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &context, NULL), TANDEM_OK);
    return context;
}

tandem_tensor *ggml_ramp(tandem_context *context, float factor, int64_t ne0, int64_t ne1,
                         int64_t ne2, int64_t ne3)
{
    const int64_t ne[4] = {ne0, ne1, ne2, ne3};
    int n_dims = 1;
    while (n_dims < 4 && ne[n_dims] != 0) {
        n_dims++;
    }
    tandem_tensor *tensor = tandem_tensor_new(context, TANDEM_TYPE_F32, n_dims, ne);
    CU_ASSERT_PTR_NOT_NULL_FATAL(tensor);
    float *values = tandem_tensor_data(tensor);
    for (int64_t i = 0; i < tandem_tensor_elements(tensor); i++) {
        values[i] = (float)i * factor;
    }
    return tensor;
}

tandem_tensor *ggml_ints(tandem_context *context, int64_t n, const int32_t *values)
{
    tandem_tensor *tensor = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(tensor);
    memcpy(tandem_tensor_data(tensor), values, (size_t)n * sizeof(*values));
    return tensor;
}

void ggml_check_context(const tandem_context *context, enum tandem_status wanted, const char *part,
                        const char *file, int line)
{
    struct tandem_error error = {0};
    tnd_check_status(tandem_context_status(context, &error), wanted, part, &error, "context", file,
                     line);
}
