/* SPDX-License-Identifier: MIT
 * tandem-graph svg: a picture of a model's net before and after passes; drawn by graphviz if it is
 * installed, else by a simple layout of our own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_stream.h"
#include "tools/new_file.h"
#include "tools/report/net_picture.h"
#include "tools/run_program.h"
#include "tools/tandem-graph/graph_cli.h"
#include "tools/say.h"

enum { BEFORE, AFTER, PICTURES, MAX_DOT_BOXES = 1500, MAX_PATH_BYTES = 4096 };
#define DOT_SECONDS 20.0

struct svg {
    const char *path, *to, *pass_names;
    bool is_plain, is_dot, overwrites;
    unsigned passes;
    struct args_strings dims;
    struct tandem_onnx_dim sizes[ARGS_LIST_MAX];
    struct tnd_onnx_model *model;
    struct tnd_net *net;
    const struct tnd_onnx_node *stopped; /* NULL: the net is the whole model */
    struct tnd_picture pictures[PICTURES];
    struct tnd_text text;
};

/* ---- graphviz ---- */

/* Finds the program `dot` in PATH. */
static bool find_dot(char out[MAX_PATH_BYTES])
{
    const char *at = getenv("PATH");
    while (at != NULL && *at != '\0') {
        const size_t n = strcspn(at, ":");
        const int length = snprintf(out, MAX_PATH_BYTES, "%.*s/dot", (int)n, at);
        if (n > 0 && at[0] == '/' && length < MAX_PATH_BYTES && access(out, X_OK) == 0) {
            return true;
        }
        at += n + (at[n] == ':');
    }
    return false;
}

/* Writes the input of dot to a temporary file. */
static bool write_input(const struct tnd_text *text, char path[MAX_PATH_BYTES])
{
    const char *folder = getenv("TMPDIR");
    (void)snprintf(path, MAX_PATH_BYTES, "%.3000s/tandem-graph-XXXXXX",
                   folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    const int file = mkstemp(path);
    FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
    if (stream == NULL) {
        return false;
    }
    const bool is_whole = fwrite(tnd_text_string(text), 1, text->n, stream) == text->n;
    return fclose(stream) == 0 && is_whole;
}

/* Draws by graphviz; false, after a note on stderr, if that fails. */
static bool draw_by_dot(struct svg *svg)
{
    char program[MAX_PATH_BYTES], input[MAX_PATH_BYTES], format[] = "-Tsvg";
    struct tnd_run_result result = {.code = -1};
    struct tandem_error error = {.text = ""};
    struct tnd_text text = TND_TEXT_INIT;
    const int n = svg->pictures[BEFORE].n_boxes + svg->pictures[AFTER].n_boxes;
    if (svg->is_plain || !find_dot(program)) {
        return false;
    }
    if (n > MAX_DOT_BOXES) {
        tnd_say("tandem-graph: note: %d boxes are more than graphviz is asked to draw (%d): plain "
                "layout\n",
                n, MAX_DOT_BOXES);
        return false;
    }
    tnd_picture_dot(svg->pictures, PICTURES, &text);
    bool is_drawn = !text.failed && write_input(&text, input);
    if (is_drawn) {
        char *const argv[] = {program, format, input, NULL};
        const enum tandem_status status = tnd_run_program(argv, DOT_SECONDS, &result, &error);
        is_drawn = status == TANDEM_OK && result.code == 0 && result.out.n > 0 &&
                   strstr(tnd_text_string(&result.out), "<svg") != NULL;
        if (is_drawn) {
            tnd_text_add_bytes(&svg->text, tnd_text_string(&result.out), result.out.n);
        } else {
            tnd_say("tandem-graph: note: %s drew nothing (%s%s): plain layout\n", program,
                    result.is_late ? "it took too long" : error.text, result.said);
        }
        if (status == TANDEM_OK) {
            tnd_run_fini(&result);
        }
        (void)unlink(input);
    }
    tnd_text_fini(&text);
    return is_drawn;
}

/* ---- the command ---- */

/* Names of the net's outputs, borrowed; "" for those of a part. NULL when out of memory. */
static const char **output_names(const struct svg *svg)
{
    const char **names = tnd_calloc((size_t)svg->net->n_outputs + 1, sizeof(*names));
    for (int i = 0; names != NULL && i < svg->net->n_outputs; i++) {
        names[i] = svg->stopped != NULL ? "" : svg->model->graph->outputs[i].name;
    }
    return names;
}

static enum tandem_status take_pictures(struct svg *svg, struct tandem_error *error)
{
    const char **names = output_names(svg);
    enum tandem_status status =
        tnd_picture_take(svg->net, "as the model has it", names, &svg->pictures[BEFORE], error);
    if (status == TANDEM_OK) {
        status = tnd_net_optimize(svg->net, svg->passes, NULL, error);
    }
    if (status == TANDEM_OK) {
        status =
            tnd_picture_take(svg->net, "after the passes", names, &svg->pictures[AFTER], error);
    }
    tnd_free(names);
    return status;
}

static enum tandem_status save(const struct svg *svg, struct tandem_error *error)
{
    struct tnd_file_stream stream;
    if (svg->text.failed) {
        return tnd_error_set(error, TANDEM_E_MEMORY, svg->to, 0, 0, "no memory for a picture");
    }
    if (svg->to == NULL) {
        return fwrite(tnd_text_string(&svg->text), 1, svg->text.n, stdout) == svg->text.n
                   ? TANDEM_OK
                   : tnd_error_set(error, TANDEM_E_FILE, NULL, 0, 0,
                                   "the picture could not be written to the standard output");
    }
    TND_TRY(tnd_new_file_check(svg->to, svg->overwrites, error));
    TND_TRY(tnd_file_stream_open(svg->to, false, &stream, error));
    const enum tandem_status status =
        tnd_file_stream_write(&stream, tnd_text_string(&svg->text), svg->text.n, error);
    if (status != TANDEM_OK) {
        tnd_file_stream_abandon(&stream);
        return status;
    }
    return tnd_file_stream_commit(&stream, error);
}

static enum tandem_status make(struct svg *svg, struct tandem_error *error)
{
    TND_TRY(tnd_dim_option_read(&svg->dims, svg->sizes, error));
    TND_TRY(tnd_onnx_open(svg->path, &svg->model, error));
    TND_TRY(tnd_graph_build(svg->model, svg->sizes, svg->dims.n, &svg->net, &svg->stopped, error));
    tnd_graph_tell_part(stderr, svg->stopped);
    TND_TRY(take_pictures(svg, error));
    if (svg->is_dot) {
        tnd_picture_dot(svg->pictures, PICTURES, &svg->text);
    } else if (!draw_by_dot(svg)) {
        tnd_picture_svg(svg->pictures, PICTURES, &svg->text);
    }
    return save(svg, error);
}

static void release(struct svg *svg)
{
    tnd_net_free(svg->net);
    tnd_onnx_close(svg->model);
    tnd_picture_fini(&svg->pictures[BEFORE]);
    tnd_picture_fini(&svg->pictures[AFTER]);
    tnd_text_fini(&svg->text);
    tnd_dim_option_free(&svg->dims, svg->sizes);
}

int tnd_cmd_graph_svg(int argc, char **argv)
{
    static struct svg svg = {.text = TND_TEXT_INIT};
    const struct args_option options[] = {
        {"o", ARGS_STRING, &svg.to, 0, 0, "FILE", "the picture; default: standard output"},
        TND_NEW_FILE_OPTION(svg.overwrites),
        {"dim", ARGS_STRINGS, &svg.dims, 0, 0, "NAME=N", "extent of a dimension with a name"},
        {"plain", ARGS_FLAG, &svg.is_plain, 0, 0, NULL, "our own layout, also beside graphviz"},
        {"dot", ARGS_FLAG, &svg.is_dot, 0, 0, NULL, "graphviz's text instead of a picture"},
        TND_GRAPH_PASSES_ROW(&svg.pass_names),
    };
    const struct args_command command = {
        "svg",
        "MODEL.onnx",
        "Draws a model's net before and after the passes, as SVG: by graphviz's dot, where it is "
        "installed,\nelse by a plain layout. Dashed lines are views. Constants are not drawn.",
        options,
        (int)(sizeof(options) / sizeof(options[0])),
        1,
        1};
    struct tandem_error error = {.text = ""};
    const int result = args_parse(&command, argc, argv, &svg.path, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    if (!tnd_graph_passes(svg.pass_names, &svg.passes)) {
        return ARGS_WRONG;
    }
    const enum tandem_status status = make(&svg, &error);
    release(&svg);
    return status == TANDEM_OK ? 0 : tnd_graph_fail(&error);
}
