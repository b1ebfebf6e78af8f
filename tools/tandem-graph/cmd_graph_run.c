/* SPDX-License-Identifier: MIT
 * tandem-graph run: computes a model's outputs, from .npy or .npz files to .npy or .npz files. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "tools/new_file.h"
#include "tools/tandem-graph/graph_cli.h"

struct run {
    const char *model_path;
    const char *folder;
    bool overwrites;
    struct args_strings inputs, dims;
    struct tnd_graph_runtime how;
    const char *pass_names;
    struct tandem_onnx_dim sizes[ARGS_LIST_MAX];
    struct tnd_graph_arrays in, out;
    tandem_onnx *model;
    tandem_runtime *runtime;
    struct tnd_text path; /* of an output file */
};

static bool is_archive(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".npz") == 0;
}

/* Loads the arrays of an archive, which must all be named after inputs. */
static enum tandem_status load_archive(struct run *run, const char *path,
                                       struct tandem_error *error)
{
    const struct tnd_onnx_graph *graph = run->model->model->graph;
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

/* Loads "NAME=FILE.npy"; a name may contain '=', so the input's name decides where it ends. */
static enum tandem_status load_input(struct run *run, const char *word, struct tandem_error *error)
{
    const struct tnd_onnx_graph *graph = run->model->model->graph;
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

/* Checks --dim against the dimensions of the inputs. */
static enum tandem_status check_dims(const struct run *run, struct tandem_error *error)
{
    const struct tnd_onnx_graph *graph = run->model->model->graph;
    TND_TRY(tnd_onnx_check_dims(graph, run->sizes, run->dims.n, error));
    for (int i = 0; i < graph->n_inputs; i++) {
        for (int k = 0; k < run->in.n; k++) {
            const struct tnd_dims *shape = &run->in.arrays[k]->shape;
            const bool is_it = strcmp(run->in.names[k], graph->inputs[i].name) == 0;
            for (int d = 0; is_it && d < graph->inputs[i].n_dims && d < shape->n; d++) {
                const char *name = graph->inputs[i].dims[d].name;
                for (int n = 0; name != NULL && n < run->dims.n; n++) {
                    if (strcmp(run->sizes[n].name, name) == 0 &&
                        run->sizes[n].extent != shape->dims[d]) {
                        return tnd_error_set(
                            error, TANDEM_E_SHAPE, name, shape->dims[d], run->sizes[n].extent,
                            "input %.80s: its dimension %d (%.40s) is %lld, --dim says %lld",
                            run->in.names[k], d, name, (long long)shape->dims[d],
                            (long long)run->sizes[n].extent);
                    }
                }
            }
        }
    }
    return TANDEM_OK;
}

static const char *output_name(const struct run *run, int i)
{
    const char *stated = run->model->model->graph->outputs[i].name;
    return stated[0] != '\0' ? stated : "_";
}

/* NAME.npy in the folder, or the archive. Characters that would lead to another folder become
 * '_'. */
static const char *output_path(struct run *run, int i)
{
    struct tnd_text *out = &run->path;
    tnd_text_clear(out);
    if (is_archive(run->folder)) {
        tnd_text_add(out, run->folder);
        return tnd_text_string(out);
    }
    const char *name = output_name(run, i);
    tnd_text_printf(out, "%s/", run->folder);
    for (int k = 0; name[k] != '\0'; k++) {
        tnd_text_add_char(out, name[k] == '/' || (k == 0 && name[k] == '.') ? '_' : name[k]);
    }
    tnd_text_add(out, ".npy");
    return tnd_text_string(out);
}

/* Called before computing. Two outputs may map to one file, and an output may overwrite an
 * input. */
static enum tandem_status check_paths(void *user, struct tandem_error *error)
{
    struct run *run = user;
    tnd_text_printf(&run->path, is_archive(run->folder) ? "%s" : "%s/x", run->folder);
    TND_TRY(tnd_file_make_folders(tnd_text_string(&run->path), error));
    for (int i = 0; i < run->model->model->graph->n_outputs; i++) {
        const char *path = output_path(run, i);
        if (run->path.failed) {
            return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for a file's name");
        }
        TND_TRY(tnd_new_file_check(path, run->overwrites, error));
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

static enum tandem_status save(struct run *run, struct tandem_error *error)
{
    if (is_archive(run->folder)) {
        return save_archive(run, error);
    }
    for (int i = 0; i < run->out.n; i++) {
        char shape[160];
        const char *path = output_path(run, i);
        TND_TRY(tnd_npy_save(path, run->out.arrays[i], error));
        printf("%s: %s %s\n", path, tandem_dtype_name(run->out.arrays[i]->type),
               tnd_dims_text(&run->out.arrays[i]->shape, shape));
    }
    return TANDEM_OK;
}

static enum tandem_status run_model(struct run *run, struct tandem_error *error)
{
    struct tnd_graph_call call = {.passes = run->pass_names, .ready = check_paths, .user = run};
    TND_TRY(tnd_dim_option_read(&run->dims, run->sizes, error));
    TND_TRY(tandem_onnx_open(run->model_path, &run->model, error));
    for (int i = 0; i < run->inputs.n; i++) {
        TND_TRY(load_input(run, run->inputs.values[i], error));
    }
    TND_TRY(check_dims(run, error));
    TND_TRY(tnd_graph_open_runtime(&run->how, &run->runtime, error));
    call.model = run->model;
    call.runtime = run->runtime;
    TND_TRY(tnd_graph_compute(&call, &run->in, &run->out, error));
    return save(run, error);
}

static void release(struct run *run)
{
    tandem_onnx_close(run->model);
    tandem_runtime_close(run->runtime);
    tnd_text_fini(&run->path);
    tnd_graph_arrays_free(&run->in);
    tnd_graph_arrays_free(&run->out);
    tnd_dim_option_free(&run->dims, run->sizes);
}

int tnd_cmd_graph_run(int argc, char **argv)
{
    struct run run = {.path = TND_TEXT_INIT};
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
    unsigned passes;
    const int result = args_parse(&command, argc, argv, &run.model_path, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    if (run.pass_names == NULL && run.how.is_reference) {
        run.pass_names = "none";
    }
    if (!tnd_graph_passes(run.pass_names, &passes)) {
        return ARGS_WRONG;
    }
    if (run.folder == NULL || run.folder[0] == '\0') {
        fputs("tandem-graph run: --output is missing, expected a folder; see 'tandem-graph run "
              "--help'\n",
              stderr);
        return ARGS_WRONG;
    }
    const enum tandem_status status = run_model(&run, &error);
    release(&run);
    return status == TANDEM_OK ? 0 : tnd_graph_fail(&error);
}
