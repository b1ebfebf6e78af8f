/* SPDX-License-Identifier: MIT
 * Uses small integers, so that sums are exact in any order. */
#include "bridge/ggml/bridge_selftest.h"

#include "bridge/ggml/bridge_host.h"
#include "tandem/tensor.h"

enum { N = 16, K = 64, M = 3, EXPERTS = 4, USED = 2 };
static const int32_t IDS[USED * M] = {2, 0, 3, 2, 0, 3}; /* expert 1 is not used */

struct parts {
    struct ggml_context *weights;
    struct ggml_context *others;
    struct ggml_backend_buffer *weight_buffer;
    struct ggml_backend_buffer *other_buffer;
    struct ggml_object *backend;
};

static void free_parts(struct parts *parts)
{
    if (parts->backend != NULL) {
        tnd_host.ggml_backend_free(parts->backend);
    }
    if (parts->weight_buffer != NULL) {
        tnd_host.ggml_backend_buffer_free(parts->weight_buffer);
    }
    if (parts->other_buffer != NULL) {
        tnd_host.ggml_backend_buffer_free(parts->other_buffer);
    }
    if (parts->weights != NULL) {
        tnd_host.ggml_free(parts->weights);
    }
    if (parts->others != NULL) {
        tnd_host.ggml_free(parts->others);
    }
}

static void fill(struct ggml_tensor *tensor, int n, int factor)
{
    float values[K * N * EXPERTS];
    for (int i = 0; i < n; i++) {
        values[i] = (float)(i * factor % 11 - 5);
    }
    tnd_host.ggml_backend_tensor_set(tensor, values, 0, sizeof(float) * (size_t)n);
}

/* Row `row` of W, counted through all experts, times row `m` of X. */
static float sum_of(int row, int m)
{
    int sum = 0;
    for (int k = 0; k < K; k++) {
        sum += ((row * K + k) * 7 % 11 - 5) * ((m * K + k) * 5 % 11 - 5);
    }
    return (float)sum;
}

static bool is_right(const struct ggml_tensor *y)
{
    float got[N * M];
    tnd_host.ggml_backend_tensor_get(y, got, 0, sizeof(got));
    for (int i = 0; i < N * M; i++) {
        if (!(got[i] == sum_of(i % N, i / N))) {
            return false;
        }
    }
    return true;
}

static bool is_right_of_experts(const struct ggml_tensor *y)
{
    float got[N * USED * M];
    tnd_host.ggml_backend_tensor_get(y, got, 0, sizeof(got));
    for (int i = 0; i < N * USED * M; i++) {
        if (!(got[i] == sum_of(IDS[i / N] * N + i % N, i / N / USED))) {
            return false;
        }
    }
    return true;
}

static bool compute(struct parts *parts, struct ggml_object *device,
                    struct ggml_object *buffer_type)
{
    struct ggml_tensor *w = tnd_host.ggml_new_tensor_2d(parts->weights, 0, K, N);
    struct ggml_tensor *x = tnd_host.ggml_new_tensor_2d(parts->others, 0, K, M);
    struct ggml_tensor *y = tnd_host.ggml_mul_mat(parts->others, w, x);
    struct ggml_tensor *ws = tnd_host.ggml_new_tensor_3d(parts->weights, 0, K, N, EXPERTS);
    struct ggml_tensor *xs = tnd_host.ggml_new_tensor_3d(parts->others, 0, K, 1, M);
    struct ggml_tensor *ids = tnd_host.ggml_new_tensor_2d(parts->others, TANDEM_TYPE_I32, USED, M);
    struct ggml_tensor *ys = tnd_host.ggml_mul_mat_id(parts->others, ws, xs, ids);
    struct ggml_cgraph *graph = tnd_host.ggml_new_graph(parts->others);
    tnd_host.ggml_build_forward_expand(graph, y);
    tnd_host.ggml_build_forward_expand(graph, ys);
    parts->weight_buffer =
        tnd_host.ggml_backend_alloc_ctx_tensors_from_buft(parts->weights, buffer_type);
    parts->other_buffer =
        tnd_host.ggml_backend_alloc_ctx_tensors_from_buft(parts->others, buffer_type);
    parts->backend = tnd_host.ggml_backend_dev_init(device, NULL);
    if (parts->weight_buffer == NULL || parts->other_buffer == NULL || parts->backend == NULL) {
        return false;
    }
    tnd_host.ggml_backend_buffer_set_usage(parts->weight_buffer, GGML_USAGE_WEIGHTS);
    fill(w, K * N, 7);
    fill(ws, K * N * EXPERTS, 7);
    fill(x, K * M, 5);
    fill(xs, K * M, 5);
    tnd_host.ggml_backend_tensor_set(ids, IDS, 0, sizeof(IDS));
    return tnd_host.ggml_backend_graph_compute(parts->backend, graph) == GGML_STATUS_SUCCESS &&
           is_right(y) && is_right_of_experts(ys);
}

bool tnd_bridge_selftest(struct ggml_object *device, struct ggml_object *buffer_type)
{
    static const struct ggml_init_params small = {1 << 20, NULL, true};
    struct parts parts = {.weights = tnd_host.ggml_init(small),
                          .others = tnd_host.ggml_init(small)};
    bool is_good =
        parts.weights != NULL && parts.others != NULL && compute(&parts, device, buffer_type);
    free_parts(&parts);
    return is_good;
}
