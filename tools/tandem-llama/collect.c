/* SPDX-License-Identifier: MIT
 * A backend that sums squares of activations. */
#include "tools/tandem-llama/collect.h"

#include <stdlib.h>
#include <string.h>

#include "tandem/backend.h"
#include "tandem/version.h"

/* INIT runs on one thread, one node after the other. */
static struct {
    struct tnd_importance_sums *sums;
    int n, capacity;
    bool is_short_of_memory;
} collected;

static struct tnd_importance_sums *add_matrix(const tandem_tensor *w)
{
    const int64_t *ne = tandem_tensor_ne(w);
    const int64_t matrices = ne[2] * ne[3];
    if (collected.n == collected.capacity) {
        const int capacity = 2 * collected.capacity + 64;
        struct tnd_importance_sums *more =
            realloc(collected.sums, (size_t)capacity * sizeof(more[0]));
        if (more == NULL) {
            return NULL;
        }
        collected.sums = more;
        collected.capacity = capacity;
    }
    struct tnd_importance_sums *sums = &collected.sums[collected.n];
    *sums =
        (struct tnd_importance_sums){.name = strdup(tandem_tensor_name(w)),
                                     .columns = ne[0],
                                     .matrices = matrices,
                                     .squares = calloc((size_t)(ne[0] * matrices), sizeof(double)),
                                     .tokens = calloc((size_t)matrices, sizeof(int64_t))};
    if (sums->name == NULL || sums->squares == NULL || sums->tokens == NULL) {
        return NULL; /* freed when the program ends */
    }
    collected.n++;
    return sums;
}

static struct tnd_importance_sums *matrix_of(const tandem_tensor *w)
{
    for (int i = 0; i < collected.n; i++) {
        if (strcmp(collected.sums[i].name, tandem_tensor_name(w)) == 0) {
            return &collected.sums[i];
        }
    }
    return add_matrix(w);
}

static void add_row(struct tnd_importance_sums *sums, int64_t matrix, const void *row)
{
    double *squares = (double *)sums->squares + matrix * sums->columns;
    const float *x = row;
    for (int64_t i = 0; i < sums->columns; i++) {
        squares[i] += (double)x[i] * (double)x[i];
    }
    ((int64_t *)sums->tokens)[matrix]++;
}

/* Adds the activations expert by expert: slot u of token t goes to expert ids[u, t]. */
static void add_experts(const tandem_tensor *node, struct tnd_importance_sums *sums)
{
    const tandem_tensor *x = tandem_tensor_src(node, 1);
    const tandem_tensor *ids = tandem_tensor_src(node, 2);
    const int64_t *extents = tandem_tensor_ne(ids);
    const size_t *strides = tandem_tensor_nb(x);
    for (int64_t t = 0; t < extents[1]; t++) {
        for (int64_t u = 0; u < extents[0]; u++) {
            int32_t expert;
            memcpy(&expert,
                   (const char *)tandem_tensor_data(ids) + (size_t)t * tandem_tensor_nb(ids)[1] +
                       (size_t)u * tandem_tensor_nb(ids)[0],
                   sizeof(expert));
            if (expert >= 0 && expert < sums->matrices) {
                add_row(sums, expert,
                        (const char *)tandem_tensor_data(x) +
                            (size_t)(u % tandem_tensor_ne(x)[1]) * strides[1] +
                            (size_t)t * strides[2]);
            }
        }
    }
}

static enum tandem_status run(tandem_backend *backend, const struct tandem_work *work,
                              struct tandem_worker *worker)
{
    const tandem_tensor *x = tandem_tensor_src(work->node, 1);
    struct tnd_importance_sums *sums = matrix_of(tandem_tensor_src(work->node, 0));
    (void)backend;
    (void)worker;
    if (sums == NULL) {
        collected.is_short_of_memory = true;
        return TANDEM_OK;
    }
    if (tandem_tensor_op(work->node) == TANDEM_OP_MUL_MAT_ID) {
        add_experts(work->node, sums);
        return TANDEM_OK;
    }
    for (int64_t t = 0; t < tandem_tensor_ne(x)[1]; t++) {
        add_row(sums, 0, (const char *)tandem_tensor_data(x) + (size_t)t * tandem_tensor_nb(x)[1]);
    }
    return TANDEM_OK;
}

/* ---- the backend ---- */

static bool profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    *out = (struct tandem_backend_profile){
        .name = "collect", .what = "sums squares of activations, then the CPU multiplies"};
    if (type != TANDEM_TYPE_I32) {
        out->init.task = TANDEM_TASK_QUANTIZE_X;
        out->compute =
            (struct tandem_profile_stage){TANDEM_TASK_NODE, TANDEM_ON_CPU, true, false, false, 0};
    }
    return i == 0;
}

/* Leaves out the output matrix, which sees only the last tokens, and products with keys, which are
 * not weights. */
static enum tandem_status supports(tandem_backend *backend, const tandem_tensor *node,
                                   uint32_t task, struct tandem_error *error)
{
    static const char weight[] = ".weight";
    const enum tandem_op op = tandem_tensor_op(node);
    (void)backend;
    (void)error;
    if (task != TANDEM_TASK_QUANTIZE_X || (op != TANDEM_OP_MUL_MAT && op != TANDEM_OP_MUL_MAT_ID)) {
        return TANDEM_E_UNSUPPORTED_BACKEND;
    }
    const tandem_tensor *w = tandem_tensor_src(node, 0);
    const tandem_tensor *x = tandem_tensor_src(node, 1);
    const size_t n = strlen(tandem_tensor_name(w));
    const bool is_weight = n > sizeof(weight) &&
                           strcmp(tandem_tensor_name(w) + n - strlen(weight), weight) == 0 &&
                           strncmp(tandem_tensor_name(w), "blk.", 4) == 0;
    return is_weight && tandem_tensor_type(x) == TANDEM_TYPE_F32 ? TANDEM_OK
                                                                 : TANDEM_E_UNSUPPORTED_BACKEND;
}

static const struct tandem_backend_api api;
static tandem_backend the_backend = {&api};

static enum tandem_status open_it(const struct tandem_backend_options *options,
                                  tandem_backend **out_backend, struct tandem_error *error)
{
    (void)options;
    (void)error;
    *out_backend = &the_backend;
    return TANDEM_OK;
}

static void close_it(tandem_backend *backend)
{
    (void)backend;
}

static const struct tandem_backend_api api = {.abi = TANDEM_ABI,
                                              .size = sizeof(api),
                                              .name = "collect",
                                              .kind = TANDEM_KIND_HOST,
                                              .open = open_it,
                                              .close = close_it,
                                              .supports = supports,
                                              .run = run,
                                              .profile = profile};

enum tandem_status tnd_collect_begin(tandem_runtime *runtime, struct tandem_error *error)
{
    const enum tandem_status status = tandem_runtime_add_backend(runtime, &api, NULL, error);
    return status == TANDEM_OK ? tandem_runtime_force_profile(runtime, "collect", error) : status;
}

bool tnd_collect_sums(const struct tnd_importance_sums **out, int *out_n)
{
    *out = collected.sums;
    *out_n = collected.n;
    return !collected.is_short_of_memory;
}

void tnd_collect_end(void)
{
    for (int i = 0; i < collected.n; i++) {
        free((char *)collected.sums[i].name);
        free((double *)collected.sums[i].squares);
        free((int64_t *)collected.sums[i].tokens);
    }
    free(collected.sums);
    memset(&collected, 0, sizeof(collected));
}
