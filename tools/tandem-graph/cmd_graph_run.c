/* SPDX-License-Identifier: MIT
 * tandem-graph run: a model's outputs, from .npy and .npz files to such files. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "tools/new_file.h"
#include "tools/tandem-graph/graph_cli.h"

struct run {
    const char *path;
    const char *folder;
    bool overwrites;
    struct args_strings inputs, dims;
    struct tnd_graph_runtime how;
    const char *pass_names;
    unsigned passes;
    struct tandem_onnx_dim sizes[ARGS_LIST_MAX];
    struct tnd_graph_arrays in, out;
    struct tnd_onnx_model *model;
    struct tnd_net *net;
    tandem_runtime *runtime;
};

static bool is_archive(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".npz") == 0;
}

/* The arrays of an archive that have the names of inputs; all of them must. */
static enum tandem_status load_archive(struct run *run, const char *path,
                                       struct tandem_error *error)
{
    const struct tnd_onnx_graph *graph = run->model->graph;
    struct tnd_npz npz = {.n = 0};
    TND_TRY(tnd_npz_open(path, &npz, error));
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < npz.n && status == TANDEM_OK; i++) {
        int k = 0;
        while (k < graph->n_inputs && strcmp(graph->inputs[k].name, npz.names[i]) != 0) {
            k++;
        }
        if (k == graph->n_inputs || run->in.n == ARGS_LIST_MAX) {
            status = tnd_error_set(error, TANDEM_E_ARGUMENT, npz.names[i], i, npz.n,
                                   "%.120s: array %.60s has the name of no input, expected those "
                                   "that inspect lists",
                                   path, npz.names[i]);
        } else {
            run->in.arrays[run->in.n] = npz.arrays[i];
            run->in.names[run->in.n++] = graph->inputs[k].name;
            npz.arrays[i] = NULL;
        }
    }
    tnd_npz_free(&npz);
    return status;
}

/* "NAME=FILE.npy"; names may hold '=' themselves: a name of the model that fits is taken. */
static enum tandem_status load_input(struct run *run, const char *word, struct tandem_error *error)
{
    const struct tnd_onnx_graph *graph = run->model->graph;
    for (int i = 0; i < graph->n_inputs; i++) {
        const char *name = graph->inputs[i].name;
        const size_t n = strlen(name);
        if (n > 0 && strncmp(word, name, n) == 0 && word[n] == '=' && run->in.n < ARGS_LIST_MAX) {
            TND_TRY(tnd_npy_open(word + n + 1, &run->in.arrays[run->in.n], error));
            run->in.names[run->in.n++] = name;
            return TANDEM_OK;
        }
    }
    if (is_archive(word)) {
        return load_archive(run, word, error);
    }
    return tnd_error_set(error, TANDEM_E_ARGUMENT, word, 0, 0,
                         "--input '%.200s': expected FILE.npz, or NAME=FILE.npy with a name of the "
                         "model's inputs, which inspect lists",
                         word);
}

static const char *output_name(const struct run *run, int i)
{
    const char *name = tnd_net_value(run->net, run->net->outputs[i])->name;
    const char *stated = run->model->graph->outputs[i].name;
    return stated[0] != '\0' ? stated : name;
}

/* NAME.npy in the folder, or the archive. What would lead to another folder stands as '_'. */
static void output_path(const struct run *run, int i, struct tnd_text *out)
{
    if (is_archive(run->folder)) {
        tnd_text_clear(out);
        tnd_text_add(out, run->folder);
        return;
    }
    const char *name = output_name(run, i);
    tnd_text_clear(out);
    tnd_text_printf(out, "%s/", run->folder);
    for (int k = 0; name[k] != '\0'; k++) {
        tnd_text_add_char(out, name[k] == '/' || (k == 0 && name[k] == '.') ? '_' : name[k]);
    }
    tnd_text_add(out, ".npy");
}

/* Two names may become one file, and an input may lie where an output goes. */
static enum tandem_status check_paths(const struct run *run, struct tnd_text *path,
                                      struct tandem_error *error)
{
    for (int i = 0; i < run->net->n_outputs; i++) {
        output_path(run, i, path);
        if (path->failed) {
            return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for a file's name");
        }
        TND_TRY(tnd_new_file_check(tnd_text_string(path), run->overwrites, error));
    }
    return TANDEM_OK;
}

static enum tandem_status save_archive(struct run *run, struct tandem_error *error)
{
    char shape[160];
    char *names[ARGS_LIST_MAX];
    for (int i = 0; i < run->out.n; i++) {
        names[i] = (char *)output_name(run, i);
    }
    const struct tnd_npz npz = {run->out.n, names, run->out.arrays};
    TND_TRY(tnd_npz_save(run->folder, &npz, error));
    for (int i = 0; i < run->out.n; i++) {
        printf("%s: %s: %s %s\n", run->folder, names[i],
               tandem_dtype_name(run->out.arrays[i]->type),
               tnd_dims_text(&run->out.arrays[i]->shape, shape));
    }
    return TANDEM_OK;
}

static enum tandem_status save(struct run *run, struct tnd_text *path, struct tandem_error *error)
{
    if (is_archive(run->folder)) {
        return save_archive(run, error);
    }
    for (int i = 0; i < run->out.n; i++) {
        char shape[160];
        output_path(run, i, path);
        TND_TRY(tnd_npy_save(tnd_text_string(path), run->out.arrays[i], error));
        printf("%s: %s %s\n", tnd_text_string(path), tandem_dtype_name(run->out.arrays[i]->type),
               tnd_dims_text(&run->out.arrays[i]->shape, shape));
    }
    return TANDEM_OK;
}

static enum tandem_status run_model(struct run *run, struct tnd_text *path,
                                    struct tandem_error *error)
{
    TND_TRY(tnd_dim_option_read(&run->dims, run->sizes, error));
    TND_TRY(tnd_onnx_open(run->path, &run->model, error));
    for (int i = 0; i < run->inputs.n; i++) {
        TND_TRY(load_input(run, run->inputs.values[i], error));
    }
    TND_TRY(tnd_graph_build(run->model, &run->in, run->sizes, run->dims.n, run->passes, &run->net,
                            error));
    tnd_text_printf(path, is_archive(run->folder) ? "%s" : "%s/x", run->folder);
    TND_TRY(tnd_file_make_folders(tnd_text_string(path), error));
    TND_TRY(check_paths(run, path, error));
    TND_TRY(tnd_graph_open_runtime(&run->how, &run->runtime, error));
    TND_TRY(tnd_graph_compute(run->net, run->runtime, &run->in, &run->out, error));
    return save(run, path, error);
}

static void release(struct run *run)
{
    tandem_runtime_close(run->runtime);
    tnd_net_free(run->net);
    tnd_onnx_close(run->model);
    tnd_graph_arrays_free(&run->in);
    tnd_graph_arrays_free(&run->out);
    tnd_dim_option_free(&run->dims, run->sizes);
}

int tnd_cmd_graph_run(int argc, char **argv)
{
    struct run run = {.folder = NULL};
    const struct args_option options[] = {
        {"input", ARGS_STRINGS, &run.inputs, 0, 0, "NAME=FILE", "values of an input, or FILE.npz"},
        {"dim", ARGS_STRINGS, &run.dims, 0, 0, "NAME=N", "extent of a dimension with a name"},
        {"output", ARGS_STRING, &run.folder, 0, 0, "DIR",
         "folder for NAME.npy of outputs, or FILE.npz"},
        TND_NEW_FILE_OPTION(run.overwrites),
        TND_GRAPH_PASSES_ROW(&run.pass_names),
        TND_GRAPH_RUNTIME_ROWS(&run.how),
    };
    const struct args_command command = {"run",
                                         "MODEL.onnx",
                                         "Computes the outputs of an ONNX model. Give --input once "
                                         "for each input without values of\n"
                                         "its own.",
                                         options,
                                         (int)(sizeof(options) / sizeof(options[0])),
                                         1,
                                         1};
    struct tandem_error error = {.text = ""};
    struct tnd_text path = TND_TEXT_INIT;
    const int result = args_parse(&command, argc, argv, &run.path, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    if (!tnd_graph_passes(run.pass_names == NULL && run.how.is_reference ? "none" : run.pass_names,
                          &run.passes)) {
        return ARGS_WRONG;
    }
    if (run.folder == NULL || run.folder[0] == '\0') {
        fputs("tandem-graph run: --output is missing, expected a folder; see 'tandem-graph run "
              "--help'\n",
              stderr);
        return ARGS_WRONG;
    }
    const enum tandem_status status = run_model(&run, &path, &error);
    release(&run);
    tnd_text_fini(&path);
    return status == TANDEM_OK ? 0 : tnd_graph_fail(&error);
}
