/* SPDX-License-Identifier: MIT
 * tandem-graph optimize: the effect of the passes on a model's net, as counts or as text. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/tandem-graph/graph_cli.h"

/* What to print. */
struct shown {
    const char *kernels; /* dialect; NULL: none */
    bool has_text;       /* the net before and after each pass that changed it */
    int fired[TND_N_PASSES];
    struct tnd_text before;
};

static void show(void *context, const struct tnd_net *net, const struct tnd_pass *pass, int round,
                 int fired)
{
    struct shown *shown = context;
    if (fired < 0) {
        tnd_text_clear(&shown->before);
        if (shown->has_text) {
            tnd_net_print(net, &shown->before);
        }
        return;
    }
    shown->fired[pass - tnd_passes] += fired;
    if (fired > 0 && shown->has_text) {
        struct tnd_text after = TND_TEXT_INIT;
        tnd_net_print(net, &after);
        printf("\n---- before %s, round %d\n%s---- after %s: changed %d\n%s", pass->name, round,
               tnd_text_string(&shown->before), pass->name, fired, tnd_text_string(&after));
        tnd_text_fini(&after);
    }
}

static const char *const dialects[TND_N_DIALECTS] = {
    [TND_DIALECT_C] = "c", [TND_DIALECT_OPENCL] = "cl", [TND_DIALECT_CUDA] = "cuda"};

/* TND_N_DIALECTS: unknown name. */
static enum tnd_dialect find_dialect(const char *name)
{
    int i = 0;
    while (i < TND_N_DIALECTS && strcmp(dialects[i], name) != 0) {
        i++;
    }
    return (enum tnd_dialect)i;
}

static enum tandem_status print_kernels(const struct tnd_net *net, const char *dialect,
                                        struct tandem_error *error)
{
    struct tnd_text text = TND_TEXT_INIT;
    const struct tnd_lower_kernels kernels = {find_dialect(dialect), &text};
    const struct tnd_lower_options options = {.kernels = &kernels, .for_device = true};
    struct tnd_lowered *lowered = NULL;
    const enum tandem_status status = tnd_net_lower_with(net, &options, &lowered, error);
    if (status == TANDEM_OK) {
        printf("%s", tnd_text_string(&text));
    }
    tnd_lowered_free(lowered);
    tnd_text_fini(&text);
    return status;
}

static enum tandem_status optimize(const char *path, const struct tandem_onnx_dim *sizes,
                                   int n_sizes, unsigned passes, struct shown *shown,
                                   struct tandem_error *error)
{
    const struct tnd_onnx_node *stopped;
    const struct tnd_pass_dump dump = {show, shown};
    struct tnd_onnx_model *model = NULL;
    struct tnd_net *net = NULL;
    enum tandem_status status = tnd_onnx_open(path, &model, error);
    if (status == TANDEM_OK) {
        status = tnd_graph_build(model, sizes, n_sizes, &net, &stopped, error);
    }
    if (status == TANDEM_OK) {
        const int n_before = net->n_nodes;
        tnd_graph_tell_part(stderr, stopped);
        status = tnd_net_optimize(net, passes, &dump, error);
        printf("%s%d operations before, %d after\n", shown->has_text ? "\n" : "", n_before,
               net->n_nodes);
    }
    if (status == TANDEM_OK && shown->kernels != NULL) {
        status = print_kernels(net, shown->kernels, error);
    }
    tnd_net_free(net);
    tnd_onnx_close(model);
    return status;
}

int tnd_cmd_graph_optimize(int argc, char **argv)
{
    struct args_strings dims = {.n = 0};
    struct shown shown = {.before = TND_TEXT_INIT};
    const char *names = NULL;
    char what[512];
    const struct args_option options[] = {
        {"dim", ARGS_STRINGS, &dims, 0, 0, "NAME=N", "extent of a dimension with a name"},
        {"dump", ARGS_FLAG, &shown.has_text, 0, 0, NULL, "the net before and after each pass"},
        TND_GRAPH_PASSES_ROW(&names),
        {"kernels", ARGS_STRING, &shown.kernels, 0, 0, "DIALECT",
         "the generated kernels as c, cl (OpenCL C) or cuda"},
    };
    snprintf(what, sizeof(what),
             "Runs the passes over a model's net until none changes anything, and says how often "
             "each did.\nThey run in this order: %s.",
             tnd_graph_pass_names());
    const struct args_command command = {"optimize", "MODEL.onnx", what, options, 4, 1, 1};
    static struct tandem_onnx_dim sizes[ARGS_LIST_MAX];
    const char *path = NULL;
    struct tandem_error error = {.text = ""};
    unsigned passes = 0;
    const int result = args_parse(&command, argc, argv, &path, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    if (!tnd_graph_passes(names, &passes)) {
        return ARGS_WRONG;
    }
    if (shown.kernels != NULL && find_dialect(shown.kernels) == TND_N_DIALECTS) {
        fprintf(stderr, "tandem-graph: --kernels %s: expected c, cl or cuda\n", shown.kernels);
        return ARGS_WRONG;
    }
    enum tandem_status status = tnd_dim_option_read(&dims, sizes, &error);
    if (status == TANDEM_OK) {
        status = optimize(path, sizes, dims.n, passes, &shown, &error);
    }
    for (int i = 0; i < TND_N_PASSES && shown.kernels == NULL && status == TANDEM_OK; i++) {
        if (passes & TND_PASS_BIT(i)) {
            printf("  %-9s %6d  %s\n", tnd_passes[i].name, shown.fired[i], tnd_passes[i].what);
        }
    }
    tnd_dim_option_free(&dims, sizes);
    tnd_text_fini(&shown.before);
    return status == TANDEM_OK ? 0 : tnd_graph_fail(&error);
}
