/* SPDX-License-Identifier: MIT
 * One matrix product through a runtime, for the tests of recipes: Y = X * W^T compared with a plain
 * loop. */
#ifndef RECIPE_PRODUCT_H
#define RECIPE_PRODUCT_H

#include <stdio.h>
#include <string.h>

#include "tandem/tandem.h"

enum { RECIPE_N = 8, RECIPE_K = 32, RECIPE_M = 3 };

/* Weights `bytes` of `type` are worth `values`. `profile` (NULL: the rule) has to be the one
 * in the plan. True when the result is right. */
static inline bool recipe_product_is_right(enum tandem_type type, void *bytes, size_t n_bytes,
                                           const float *values, const char *profile)
{
    static float x_data[RECIPE_M * RECIPE_K];
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    tandem_context *context = NULL;
    tandem_plan *plan = NULL;
    options.table_path = "";
    options.profile = profile;
    for (int i = 0; i < RECIPE_M * RECIPE_K; i++) {
        x_data[i] = (float)(i % 7);
    }
    if (tandem_runtime_open(&options, &runtime, &error) != TANDEM_OK ||
        tandem_context_new(NULL, &context, &error) != TANDEM_OK) {
        fprintf(stderr, "%s\n", error.text);
        return false;
    }
    tandem_tensor *w =
        tandem_tensor_borrow(context, type, 2, (int64_t[]){RECIPE_K, RECIPE_N}, bytes, n_bytes);
    tandem_tensor *x = tandem_tensor_borrow(
        context, TANDEM_TYPE_F32, 2, (int64_t[]){RECIPE_K, RECIPE_M}, x_data, sizeof(x_data));
    tandem_tensor *y = tandem_mul_mat(context, w, x);
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, y);
    if (tandem_graph_finish(graph, &error) != TANDEM_OK ||
        tandem_runtime_plan(runtime, graph, &plan, &error) != TANDEM_OK ||
        tandem_runtime_compute(runtime, graph, plan, NULL, &error) != TANDEM_OK) {
        fprintf(stderr, "%s\n", error.text);
        return false;
    }
    const float *result = tandem_tensor_data(y);
    bool right = profile == NULL || strcmp(tandem_plan_node(plan, 0)->profile, profile) == 0;
    for (int m = 0; m < RECIPE_M; m++) {
        for (int n = 0; n < RECIPE_N; n++) {
            float sum = 0;
            for (int k = 0; k < RECIPE_K; k++) {
                sum += values[n * RECIPE_K + k] * x_data[m * RECIPE_K + k];
            }
            float off = result[m * RECIPE_N + n] - sum;
            right = right && off < 0.01f && off > -0.01f;
        }
    }
    tandem_plan_free(plan);
    tandem_context_free(context);
    tandem_runtime_close(runtime);
    return right;
}

#endif
