/* SPDX-License-Identifier: MIT
 * A graph with views and a cache: two tokens go through a small feed-forward block, their results
 * are appended to a cache, and a later node reads the whole cache. Explained in docs/graphs.md. */
#include <stdio.h>
#include <stdlib.h>

#include "tandem/tandem.h"

enum { DIM = 64, HIDDEN = 256, TOKENS = 2, CACHE_ROWS = 8, PAST = 3 };

/* A leaf whose values all are `value`. */
static tandem_tensor *filled(tandem_context *context, const char *name, int64_t ne0, int64_t ne1,
                             float value)
{
    tandem_tensor *tensor = tandem_tensor_new_2d(context, TANDEM_TYPE_F32, ne0, ne1);
    float *values = tandem_tensor_data(tensor);
    for (int64_t i = 0; i < tandem_tensor_elements(tensor); i++) {
        values[i] = value;
    }
    return tandem_tensor_set_name(tensor, name);
}

static int to_stdout(void *user, const char *bytes, unsigned long n)
{
    (void)user;
    return fwrite(bytes, 1, n, stdout) == n ? 0 : 1;
}

int main(void)
{
    struct tandem_error error;
    struct tandem_memory_report memory = TANDEM_MEMORY_REPORT_INIT;
    tandem_context *weights = NULL; /* lives as long as the model */
    tandem_context *step = NULL;    /* lives for one graph */
    tandem_runtime *runtime = NULL;
    int result = EXIT_FAILURE;
    if (tandem_context_new(NULL, &weights, &error) != TANDEM_OK ||
        tandem_context_new(NULL, &step, &error) != TANDEM_OK ||
        tandem_runtime_open(NULL, &runtime, &error) != TANDEM_OK) {
        goto fail;
    }

    tandem_tensor *up = filled(weights, "up", DIM, HIDDEN, 0.01f);          /* {DIM, HIDDEN} */
    tandem_tensor *down = filled(weights, "down", HIDDEN, DIM, 0.02f);      /* {HIDDEN, DIM} */
    tandem_tensor *cache = filled(weights, "cache", DIM, CACHE_ROWS, 0.0f); /* {DIM, CACHE_ROWS} */
    tandem_tensor *x = filled(step, "x", DIM, TOKENS, 1.0f);                /* {DIM, TOKENS} */

    /* y = x + down * silu(up * norm(x)) */
    tandem_tensor *h = tandem_rms_norm(step, x, 1e-5f);
    h = tandem_silu(step, tandem_mul_mat(step, up, h)); /* {HIDDEN, TOKENS} */
    tandem_tensor *y = tandem_add(step, tandem_mul_mat(step, down, h), x);

    /* rows PAST .. PAST + TOKENS - 1 of the cache; a view computes nothing */
    const int64_t fresh_ne[2] = {DIM, TOKENS};
    const size_t row_bytes = tandem_tensor_nb(cache)[1];
    tandem_tensor *fresh = tandem_view(step, cache, 2, fresh_ne, NULL, PAST * row_bytes);
    tandem_tensor *written = tandem_cpy(step, y, fresh);

    /* built behind the copy, so it sees the new rows */
    const int64_t filled_ne[2] = {DIM, PAST + TOKENS};
    tandem_tensor *seen = tandem_view(step, cache, 2, filled_ne, NULL, 0);
    tandem_tensor *scores = tandem_mul_mat(step, seen, y);
    tandem_tensor_set_name(scores, "scores");

    tandem_graph *graph = tandem_graph_new(step);
    tandem_graph_add(graph, written);
    tandem_graph_add(graph, scores);
    if (tandem_graph_finish(graph, &error) != TANDEM_OK) {
        goto fail; /* the first error of any builder above */
    }
    tandem_graph_print(graph, to_stdout, NULL);
    tandem_graph_memory(graph, &memory);
    printf("%d results share %zu bytes instead of %zu\n", memory.n_results, memory.planned_bytes,
           memory.sum_bytes);

    if (tandem_runtime_compute(runtime, graph, NULL, NULL, &error) != TANDEM_OK) {
        goto fail;
    }
    const float *values = tandem_tensor_data(scores); /* {PAST + TOKENS, TOKENS} */
    printf("old row %.1f, new row %.1f\n", (double)values[0], (double)values[PAST]);
    result = EXIT_SUCCESS;
fail:
    if (result != EXIT_SUCCESS) {
        fprintf(stderr, "%s\n", error.text);
    }
    tandem_runtime_close(runtime);
    tandem_context_free(step);
    tandem_context_free(weights);
    return result;
}
