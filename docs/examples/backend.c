/* SPDX-License-Identifier: MIT
 * A backend as a plugin: products of two dense matrices, row by row, by the public interface alone.
 * Explained in docs/add-a-backend.md. Build and use:
 *   cc -shared -fPIC -o example-backend.so backend.c $(pkg-config --cflags tandem)
 *   mulmat-tune profiles --plugin ./example-backend.so */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tandem/backend.h"
#include "tandem/version.h"

const struct tandem_backend_api *tandem_backend_plugin(void); /* TANDEM_PLUGIN_SYMBOL */

/* An open backend: the library's part comes first. */
struct example {
    tandem_backend base;
    char revision[32];
};

static enum tandem_status fail(struct tandem_error *error, enum tandem_status status,
                               const char *why)
{
    if (error != NULL) {
        memset(error, 0, sizeof(*error));
        error->status = status;
        snprintf(error->text, sizeof(error->text), "backend example: %s", why);
    }
    return status;
}

/* ---- what the kind says of itself ---- */

static bool example_setting(int i, struct tandem_backend_setting *out)
{
    *out = (struct tandem_backend_setting){"revision", "TEXT", "which revision it says it is"};
    return i == 0;
}

/* "example" decodes weights while it multiplies. "cpu+example" finds them in F32 in the workspace,
 * where INIT on the CPU has left them; weights that are F32 need no INIT. */
static bool example_profile(int i, enum tandem_type type, struct tandem_backend_profile *out)
{
    memset(out, 0, sizeof(*out));
    out->name = i == 0 ? "example" : "cpu+example";
    out->what = i == 0 ? "the plugin of docs/examples, weights decoded row by row"
                       : "weights to F32 on the CPU, then the plugin of docs/examples";
    if (type != TANDEM_TYPE_I32) {
        out->compute.task = i == 0 ? TANDEM_TASK_NODE : TANDEM_TASK_MUL_MAT_F32;
        out->compute.parallel = true;
    }
    if (i == 1 && type != TANDEM_TYPE_I32 && type != TANDEM_TYPE_F32) {
        out->init.task = TANDEM_TASK_DEQUANTIZE_W;
        out->init.place = TANDEM_ON_CPU;
        out->init.parallel = true;
    }
    return i == 0 || i == 1;
}

/* ---- opening ---- */

static const struct tandem_backend_api api;

static enum tandem_status example_open(const struct tandem_backend_options *options,
                                       tandem_backend **out_backend, struct tandem_error *error)
{
    static const char key[] = "revision=";
    const char *settings = options->settings != NULL ? options->settings : "";
    struct example *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return fail(error, TANDEM_E_MEMORY, "no memory");
    }
    /* The library has checked the key against example_setting. */
    snprintf(self->revision, sizeof(self->revision), "%s",
             strncmp(settings, key, sizeof(key) - 1) == 0 ? settings + sizeof(key) - 1 : "1");
    self->base.api = &api;
    *out_backend = &self->base;
    return TANDEM_OK;
}

static void example_close(tandem_backend *backend)
{
    free(backend);
}

/* When this changes, times that were measured before are void. */
static bool example_identity(tandem_backend *backend, int i, struct tandem_backend_fact *out)
{
    *out = (struct tandem_backend_fact){"revision", ((struct example *)backend)->revision};
    return i == 0;
}

/* ---- what can be run ---- */

static bool is_matrix(const tandem_tensor *tensor)
{
    const int64_t *ne = tandem_tensor_ne(tensor);
    return ne[2] == 1 && ne[3] == 1 && tandem_tensor_is_contiguous(tensor);
}

/* Y {N, M} = X {K, M} * W^T {K, N}. */
static enum tandem_status example_supports(tandem_backend *backend, const tandem_tensor *node,
                                           uint32_t task, struct tandem_error *error)
{
    (void)backend;
    if ((task != TANDEM_TASK_NODE && task != TANDEM_TASK_MUL_MAT_F32) ||
        strcmp(tandem_tensor_op_name(node), "mul_mat") != 0) {
        return fail(error, TANDEM_E_UNSUPPORTED_BACKEND, "multiplies matrices, nothing else");
    }
    const tandem_tensor *w = tandem_tensor_src(node, 0);
    const tandem_tensor *x = tandem_tensor_src(node, 1);
    if (!is_matrix(w) || !is_matrix(x) || !is_matrix(node) ||
        tandem_tensor_type(w) == TANDEM_TYPE_I32 || tandem_tensor_type(x) != TANDEM_TYPE_F32) {
        return fail(error, TANDEM_E_UNSUPPORTED_BACKEND,
                    "takes dense matrices, activations in F32");
    }
    return TANDEM_OK;
}

static bool reads_workspace(const tandem_tensor *node, uint32_t task)
{
    return task == TANDEM_TASK_MUL_MAT_F32 &&
           tandem_tensor_type(tandem_tensor_src(node, 0)) != TANDEM_TYPE_F32;
}

static size_t example_workspace(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    if (example_supports(backend, node, task, NULL) != TANDEM_OK || !reads_workspace(node, task)) {
        return 0;
    }
    return (size_t)tandem_tensor_elements(tandem_tensor_src(node, 0)) * sizeof(float);
}

/* One row of weights in F32. */
static size_t example_scratch(tandem_backend *backend, const tandem_tensor *node, uint32_t task)
{
    return example_supports(backend, node, task, NULL) == TANDEM_OK
               ? (size_t)tandem_tensor_ne(tandem_tensor_src(node, 0))[0] * sizeof(float)
               : 0;
}

/* ---- running ---- */

static float dot(const float *a, const float *b, int64_t n)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* Row `n` of the weights as K floats: in place, in the workspace, or decoded into scratch. */
static const float *weight_row(const struct tandem_work *work, const struct tandem_worker *worker,
                               int64_t n)
{
    const tandem_tensor *w = tandem_tensor_src(work->node, 0);
    int64_t k = tandem_tensor_ne(w)[0];
    const char *row = (const char *)tandem_tensor_data(w) + (size_t)n * tandem_tensor_nb(w)[1];
    if (reads_workspace(work->node, work->task)) {
        return (const float *)work->workspace + n * k;
    }
    if (tandem_tensor_type(w) == TANDEM_TYPE_F32) {
        return (const float *)row;
    }
    bool decoded = tandem_dequantize(tandem_tensor_type(w), row, worker->scratch, k) == TANDEM_OK;
    return decoded ? worker->scratch : NULL;
}

/* Called by all workers at once; each takes rows of W, which are columns of Y, until none is left.
 * Each element is one sum in a fixed order: its bits depend neither on threads nor on ranges. */
static enum tandem_status example_run(tandem_backend *backend, const struct tandem_work *work,
                                      struct tandem_worker *worker)
{
    const tandem_tensor *x = tandem_tensor_src(work->node, 1);
    const int64_t *ne = tandem_tensor_ne(work->node); /* {N, M} */
    int64_t k = tandem_tensor_ne(x)[0];
    const float *activations = tandem_tensor_data(x);
    float *y = tandem_tensor_data(work->node);
    int64_t begin = 0;
    int64_t end = 0;
    (void)backend;
    while (worker->next(worker, work->row_end - work->row_begin, 16, &begin, &end)) {
        for (int64_t n = work->row_begin + begin; n < work->row_begin + end; n++) {
            const float *row = weight_row(work, worker, n);
            if (row == NULL) {
                return fail(worker->error, TANDEM_E_UNSUPPORTED_BACKEND, "cannot decode weights");
            }
            for (int64_t m = 0; m < ne[1]; m++) {
                y[m * ne[0] + n] = dot(row, activations + m * k, k);
            }
        }
    }
    return TANDEM_OK;
}

static const struct tandem_backend_api api = {
    .abi = TANDEM_ABI,
    .size = sizeof(api),
    .name = "example",
    .kind = TANDEM_KIND_HOST,
    .open = example_open,
    .close = example_close,
    .supports = example_supports,
    .workspace = example_workspace,
    .scratch = example_scratch,
    .run = example_run,
    .identity = example_identity,
    .profile = example_profile,
    .setting = example_setting,
};

const struct tandem_backend_api *tandem_backend_plugin(void)
{
    return &api;
}
