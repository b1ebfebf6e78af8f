/* SPDX-License-Identifier: MIT
 * One test case in the layout of the ONNX project: model.onnx, and in each folder test_data_set_N
 * its input_N.pb and output_N.pb, tensors in the order of the model. Layout and tolerances are
 * those of onnx/backend/test/runner of onnx 1.18.0. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "tools/tandem-graph/graph_cli.h"

#define MAX_PATH_BYTES 4096
#define RTOL           1e-3 /* for floats; other types must be equal */
/* Two steps of the type: the files were rounded, or truncated, after each operation of a
 * function. */
#define RTOL_F16       (2.0 / 1024)
#define RTOL_BF16      (2.0 / 128)
#define ATOL           1e-7

/* Reads one tensor; refuses other kinds of values (a sequence, a map). */
static enum tandem_status load(const char *path, struct tnd_array **out, struct tandem_error *error)
{
    struct tnd_file file;
    struct tnd_onnx_tensor tensor;
    struct tnd_onnx_memory *memory = NULL;
    TND_TRY(tnd_file_map(path, false, &file, error));
    enum tandem_status status =
        tnd_onnx_read_tensor(file.data, file.bytes, path, &tensor, &memory, error);
    if (status == TANDEM_OK) {
        status = tnd_onnx_array(&tensor, out, error);
        tnd_onnx_memory_free(memory);
    }
    tnd_file_close(&file);
    return status;
}

/* Reads KIND_0.pb, KIND_1.pb and so on, for all values of a list without an initializer. */
static enum tandem_status load_all(const char *folder, const char *kind,
                                   const struct tnd_onnx_graph *graph,
                                   const struct tnd_onnx_value *values, int n,
                                   struct tnd_graph_arrays *out, struct tandem_error *error)
{
    char path[MAX_PATH_BYTES + 64];
    for (int i = 0; i < n && out->n < ARGS_LIST_MAX; i++) {
        if (tnd_onnx_has_initializer(graph, values[i].name)) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s_%d.pb", folder, kind, out->n);
        if (!tnd_file_exists(path)) {
            break;
        }
        if (values[i].kind != TND_ONNX_TENSOR && values[i].kind != TND_ONNX_UNSTATED) {
            return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, values[i].name, values[i].kind,
                                 TND_ONNX_TENSOR,
                                 "%s %s is a sequence, map or optional, expected a "
                                 "tensor",
                                 kind, values[i].name);
        }
        TND_TRY(load(path, &out->arrays[out->n], error));
        /* NumPy has no bfloat16: the files store its bits as integers. */
        if (values[i].type == TND_ONNX_BF16 && out->arrays[out->n]->type == TANDEM_DTYPE_U16) {
            out->arrays[out->n]->type = TANDEM_DTYPE_BF16;
        }
        out->names[out->n++] = values[i].name;
    }
    return TANDEM_OK;
}

static bool is_close(const struct tnd_array *got, const struct tnd_array *want, int64_t i)
{
    if (tnd_dtype_kind(want->type) != TND_KIND_FLOAT) {
        return tnd_array_integer(got, i) == tnd_array_integer(want, i);
    }
    const double x = tnd_array_number(got, i);
    const double y = tnd_array_number(want, i);
    const double rtol = want->type == TANDEM_DTYPE_BF16  ? RTOL_BF16
                        : want->type == TANDEM_DTYPE_F16 ? RTOL_F16
                                                         : RTOL;
    return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= ATOL + rtol * fabs(y);
}

/* Whether an output matches; `reason` gets the difference. */
static bool is_same(const char *name, const struct tnd_array *got, const struct tnd_array *want,
                    struct tandem_error *reason)
{
    char a[160], b[160];
    if (got->type != want->type || !tnd_dims_is_equal(&got->shape, &want->shape)) {
        tnd_error_set(reason, TANDEM_E_SHAPE, name, 0, 0, "output %s is %s %s, expected %s %s",
                      name, tandem_dtype_name(got->type), tnd_dims_text(&got->shape, a),
                      tandem_dtype_name(want->type), tnd_dims_text(&want->shape, b));
        return false;
    }
    for (int64_t i = 0; i < got->n; i++) {
        if (!is_close(got, want, i)) {
            tnd_error_set(reason, TANDEM_E_ARGUMENT, name, i, got->n,
                          "value %lld of output %s is %.9g, expected %.9g", (long long)i, name,
                          tnd_array_number(got, i), tnd_array_number(want, i));
            return false;
        }
    }
    return true;
}

static enum tnd_case_status compare(const struct tnd_onnx_graph *graph,
                                    const struct tnd_graph_arrays *got,
                                    const struct tnd_graph_arrays *want,
                                    struct tandem_error *reason)
{
    if (got->n != want->n || want->n != graph->n_outputs) {
        tnd_error_set(reason, TANDEM_E_FILE, NULL, want->n, graph->n_outputs,
                      "%d output files are there, expected %d", want->n, graph->n_outputs);
        return TND_CASE_REFUSED;
    }
    for (int i = 0; i < want->n; i++) {
        if (!is_same(graph->outputs[i].name, got->arrays[i], want->arrays[i], reason)) {
            return TND_CASE_FAILED;
        }
    }
    return TND_CASE_PASSED;
}

static enum tandem_status note_ready(void *user, struct tandem_error *error)
{
    (void)error;
    *(bool *)user = true;
    return TANDEM_OK;
}

/* Runs one folder of test data. An error counts as refused (unsupported shapes and operators) or
 * failed (wrong values). */
static enum tnd_case_status run_set(const struct tnd_graph_call *call, const char *folder,
                                    struct tandem_error *reason)
{
    const struct tnd_onnx_graph *graph = call->model->model->graph;
    struct tnd_graph_arrays in = {.n = 0}, want = {.n = 0}, got = {.n = 0};
    enum tnd_case_status result = TND_CASE_REFUSED;
    bool is_built = false;
    struct tnd_graph_call told = *call;
    told.ready = note_ready;
    told.user = &is_built;
    if (load_all(folder, "input", graph, graph->inputs, graph->n_inputs, &in, reason) ==
            TANDEM_OK &&
        load_all(folder, "output", graph, graph->outputs, graph->n_outputs, &want, reason) ==
            TANDEM_OK) {
        const enum tandem_status status = tnd_graph_compute(&told, &in, &got, reason);
        result = status == TANDEM_OK ? compare(graph, &got, &want, reason)
                 : is_built && status != TANDEM_E_UNSUPPORTED_BUILD ? TND_CASE_FAILED
                                                                    : TND_CASE_REFUSED;
    }
    tnd_graph_arrays_free(&in);
    tnd_graph_arrays_free(&want);
    tnd_graph_arrays_free(&got);
    return result;
}

enum tnd_case_status tnd_graph_case(const char *folder, tandem_runtime *runtime,
                                    struct tandem_error *reason)
{
    char path[MAX_PATH_BYTES];
    struct tnd_graph_call call = {.runtime = runtime, .passes = runtime != NULL ? NULL : "none"};
    enum tnd_case_status result = TND_CASE_PASSED;
    int n_sets = 0;
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    if (tandem_onnx_open(path, &call.model, reason) != TANDEM_OK) {
        return TND_CASE_REFUSED;
    }
    for (; result == TND_CASE_PASSED; n_sets++) {
        snprintf(path, sizeof(path), "%s/test_data_set_%d", folder, n_sets);
        if (!tnd_file_exists(path)) {
            break;
        }
        result = run_set(&call, path, reason);
    }
    if (n_sets == 0) {
        tnd_error_set(reason, TANDEM_E_FILE, folder, 0, 1,
                      "no folder test_data_set_0 is there, expected test data");
        result = TND_CASE_REFUSED;
    }
    tandem_onnx_close(call.model);
    return result;
}
