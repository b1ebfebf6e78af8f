/* SPDX-License-Identifier: MIT
 * tandem-graph tune: measures the convolutions of a model by every method, and adds the
 * times to the timing table. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "runtime/tnd_runtime.h"
#include "table/records.h"
#include "table/table_layers.h"
#include "tools/say.h"
#include "tools/tandem-graph/conv_book.h"
#include "tools/tandem-graph/graph_cli.h"

/* Each convolution is visited twice, with the others between, and the faster median counts:
 * disturbances last for seconds and only ever slow down. */
enum { MAX_TIMES = 200, MIN_TIMES = 3, ROUNDS = 2 };

struct tune {
    const char *path, *file;
    double budget_s;
    struct args_strings dims;
    struct tnd_graph_runtime how;
    struct tandem_onnx_dim sizes[ARGS_LIST_MAX];
    struct tnd_onnx_model *model;
    struct tnd_net *net;
    struct tnd_lowered *lowered; /* the whole model */
    tandem_runtime *runtime;
    tandem_table *fresh;
    struct tnd_conv_shape *shapes; /* of the model, no two alike */
    int n_shapes;
};

/* One method of one convolution. */
struct trial {
    struct tnd_lowered *lowered;
    int n;
    double us[MAX_TIMES];
};

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory to measure a convolution");
}

/* ---- one convolution ---- */

static struct tnd_array *random_weights(const struct tnd_dims *dims)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, dims);
    struct tnd_rng rng;
    tnd_rng_init(&rng, 1);
    for (int64_t i = 0; array != NULL && i < array->n; i++) {
        ((float *)array->data)[i] = tnd_rng_float(&rng) * 2.0f - 1.0f;
    }
    return array;
}

/* A net of this convolution alone, as much padding behind as in front. */
static struct tnd_net *net_of(const struct tnd_conv_shape *shape)
{
    struct tnd_net *net = tnd_net_new();
    struct tnd_window window = {.n = shape->n, .groups = shape->groups};
    struct tnd_dims x = {.n = shape->n + 2, .dims = {shape->images, shape->channels}};
    struct tnd_dims w = {.n = shape->n + 2,
                         .dims = {shape->filters, shape->channels / shape->groups}};
    for (int i = 0; i < shape->n; i++) {
        const int64_t seen = (shape->result[i] - 1) * shape->stride[i] +
                             (shape->window[i] - 1) * shape->dilation[i] + 1;
        const int64_t begin = shape->padding[i];
        window.extent[i] = shape->window[i];
        window.stride[i] = shape->stride[i];
        window.dilation[i] = shape->dilation[i];
        window.begin[i] = begin;
        window.end[i] = begin > 0 && seen > 2 * begin ? begin : 0;
        x.dims[2 + i] = seen > begin + window.end[i] ? seen - begin - window.end[i] : 1;
        w.dims[2 + i] = shape->window[i];
    }
    if (net != NULL) {
        const int input = tnd_net_input(net, TANDEM_DTYPE_F32, &x, "x", NULL);
        const int weights = tnd_net_constant(net, random_weights(&w));
        (void)tnd_net_output(net, tnd_net_conv(net, input, weights, &window));
    }
    return net;
}

static void prefer(void *user, const struct tnd_conv_shape *shape, double us[TND_CONV_METHODS])
{
    (void)shape;
    us[*(const enum tnd_conv_method *)user] = 1;
}

static enum tandem_status prepare(const struct tnd_net *net, enum tnd_conv_method method,
                                  struct trial *trial, struct tandem_error *error)
{
    const struct tnd_lower_options options = {
        .conv_times = prefer, .user = &method, .is_last = true};
    TND_TRY(tnd_net_lower_with(net, &options, &trial->lowered, error));
    const struct tnd_conv_choice *choice = tnd_lowered_conv(trial->lowered, 0);
    if (choice == NULL || choice->method != method) { /* it does not exist for this shape */
        tnd_lowered_free(trial->lowered);
        trial->lowered = NULL;
        return TANDEM_OK;
    }
    float *x = tnd_lowered_input(trial->lowered, 0);
    const int64_t n = tnd_dims_values(&tnd_net_value(net, net->inputs[0])->shape);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(i % 17) - 8;
    }
    return TANDEM_OK;
}

/* The first computation plans and warms up, it does not count. */
static enum tandem_status compute(const struct tune *tune, struct trial *trial, bool counts,
                                  struct tandem_error *error)
{
    const double begin = tnd_graph_now_ns();
    TND_TRY(tandem_runtime_compute(tune->runtime, tnd_lowered_graph(trial->lowered), NULL, NULL,
                                   error));
    if (counts) {
        trial->us[trial->n++] = (tnd_graph_now_ns() - begin) / 1e3;
    }
    return TANDEM_OK;
}

/* The methods in turns, so that what disturbs for a while disturbs all of them. */
static enum tandem_status measure_in_turns(const struct tune *tune, struct trial *trials,
                                           double end_ns, struct tandem_error *error)
{
    for (int i = -1; i < MAX_TIMES && (i < MIN_TIMES || tnd_graph_now_ns() < end_ns); i++) {
        for (int method = 0; method < TND_CONV_METHODS; method++) {
            if (trials[method].lowered != NULL) {
                TND_TRY(compute(tune, &trials[method], i >= 0, error));
            }
        }
    }
    return TANDEM_OK;
}

static enum tandem_status keep(const struct tune *tune, const struct tnd_conv_shape *shape,
                               enum tnd_conv_method method, struct trial *trial,
                               struct tandem_error *error)
{
    struct tnd_conv_time record;
    double apart[MAX_TIMES];
    tnd_conv_book_key(shape, method, tandem_runtime_threads(tune->runtime), &record);
    tnd_graph_sort(trial->us, trial->n);
    record.median_us = trial->us[trial->n / 2];
    for (int i = 0; i < trial->n; i++) {
        const double x = trial->us[i] - record.median_us;
        apart[i] = x < 0 ? -x : x;
    }
    tnd_graph_sort(apart, trial->n);
    record.spread_us = apart[trial->n / 2];
    record.count = (uint32_t)trial->n;
    record.when = (int64_t)time(NULL);
    const struct tnd_conv_time *before =
        tnd_record_find(tune->fresh, TND_RECORD_CONVOLUTIONS, &record);
    if (before != NULL && before->median_us <= record.median_us) {
        return TANDEM_OK;
    }
    return tnd_record_add(tune->fresh, TND_RECORD_CONVOLUTIONS, &record) == TANDEM_OK
               ? TANDEM_OK
               : no_memory(error);
}

static enum tandem_status measure_shape(const struct tune *tune, const struct tnd_conv_shape *shape,
                                        double end_ns, struct tandem_error *error)
{
    struct trial *trials = tnd_calloc(TND_CONV_METHODS, sizeof(trials[0]));
    struct tnd_net *net = net_of(shape);
    enum tandem_status status = trials == NULL || net == NULL ? no_memory(error) : TANDEM_OK;
    for (int method = 0; method < TND_CONV_METHODS && status == TANDEM_OK; method++) {
        status = prepare(net, (enum tnd_conv_method)method, &trials[method], error);
    }
    if (status == TANDEM_OK) {
        status = measure_in_turns(tune, trials, end_ns, error);
    }
    for (int method = 0; method < TND_CONV_METHODS && status == TANDEM_OK; method++) {
        if (trials[method].n > 0) {
            status = keep(tune, shape, (enum tnd_conv_method)method, &trials[method], error);
        }
    }
    for (int method = 0; trials != NULL && method < TND_CONV_METHODS; method++) {
        tnd_lowered_free(trials[method].lowered);
    }
    tnd_free(trials);
    tnd_net_free(net);
    return status;
}

/* ---- the model ---- */

static bool is_same(const struct tnd_conv_shape *a, const struct tnd_conv_shape *b)
{
    struct tnd_conv_time x;
    struct tnd_conv_time y;
    tnd_conv_book_key(a, TND_CONV_DIRECT, 1, &x);
    tnd_conv_book_key(b, TND_CONV_DIRECT, 1, &y);
    return tnd_record_kinds[TND_RECORD_CONVOLUTIONS].compare(&x, &y) == 0;
}

static enum tandem_status list_shapes(struct tune *tune, struct tandem_error *error)
{
    int n = 0;
    while (tnd_lowered_conv(tune->lowered, n) != NULL) {
        n++;
    }
    tune->shapes = tnd_calloc((size_t)n + 1, sizeof(tune->shapes[0]));
    if (tune->shapes == NULL) {
        return no_memory(error);
    }
    for (int i = 0; i < n; i++) {
        const struct tnd_conv_shape *shape = &tnd_lowered_conv(tune->lowered, i)->shape;
        int k = 0;
        while (k < tune->n_shapes && !is_same(&tune->shapes[k], shape)) {
            k++;
        }
        if (k == tune->n_shapes) {
            tune->shapes[tune->n_shapes++] = *shape;
        }
    }
    return TANDEM_OK;
}

static enum tandem_status open_all(struct tune *tune, struct tandem_error *error)
{
    const struct tnd_graph_arrays none = {.n = 0};
    struct tnd_runtime_parts parts;
    TND_TRY(tnd_graph_dims(&tune->dims, tune->sizes, error));
    TND_TRY(tnd_onnx_open(tune->path, &tune->model, error));
    TND_TRY(tnd_graph_open_runtime(&tune->how, &tune->runtime, error));
    TND_TRY(tnd_graph_build(tune->model, &none, tune->sizes, tune->dims.n, TND_PASSES_ALL,
                            &tune->net, error));
    TND_TRY(tnd_net_lower(tune->net, &tune->lowered, error));
    TND_TRY(tandem_table_new(&tune->fresh, error));
    tnd_runtime_parts(tune->runtime, &parts);
    tnd_fingerprint_read_all(parts.registry, &tune->fresh->fingerprint);
    return list_shapes(tune, error);
}

/* What was measured is kept even where the rest failed or had no time. */
static enum tandem_status save(const struct tune *tune, struct tandem_error *error)
{
    char path[4096];
    struct tandem_error note = {.text = ""};
    if (tune->file != NULL) {
        snprintf(path, sizeof(path), "%s", tune->file);
    } else {
        TND_TRY(tnd_table_own_path(path, sizeof(path), error));
    }
    TND_TRY(tnd_table_update_file(path, tune->fresh, &note, error));
    if (note.status != TANDEM_OK) {
        tnd_say("tandem-graph: note: table: %s\n", note.text);
    }
    printf("added to %s\n", path);
    return TANDEM_OK;
}

static void print_times(const struct tune *tune)
{
    const struct tnd_conv_book book = {.table = tune->fresh,
                                       .threads = tandem_runtime_threads(tune->runtime)};
    for (int i = 0; i < tune->n_shapes; i++) {
        double us[TND_CONV_METHODS] = {-1, -1, -1};
        char text[256];
        tnd_conv_book_text(&tune->shapes[i], text, sizeof(text));
        tnd_conv_book_times((void *)(uintptr_t)&book, &tune->shapes[i], us);
        printf("%s:", text);
        for (int method = 0; method < TND_CONV_METHODS; method++) {
            if (us[method] >= 0) {
                printf("  %s %.1f us", tnd_conv_method_name((enum tnd_conv_method)method),
                       us[method]);
            }
        }
        printf("\n");
    }
}

static enum tandem_status measure(struct tune *tune, struct tandem_error *error)
{
    TND_TRY(open_all(tune, error));
    const double begin = tnd_graph_now_ns();
    const double end = begin + tune->budget_s * 1e9;
    enum tandem_status status = TANDEM_OK;
    const int all = ROUNDS * tune->n_shapes;
    int n = 0;
    for (; n < all && status == TANDEM_OK && (n == 0 || tnd_graph_now_ns() < end); n++) {
        const double now = tnd_graph_now_ns();
        tnd_say("convolution %d of %d, visit %d, %.1f of %.0f s\n", n % tune->n_shapes + 1,
                tune->n_shapes, n / tune->n_shapes + 1, (now - begin) / 1e9, tune->budget_s);
        status = measure_shape(tune, &tune->shapes[n % tune->n_shapes],
                               now + (end - now) / (all - n), error);
    }
    if (status == TANDEM_OK && n < tune->n_shapes) {
        tnd_say("the time was too short for %d of %d convolutions\n", tune->n_shapes - n,
                tune->n_shapes);
    }
    print_times(tune);
    if (tune->fresh->n_convolutions > 0) {
        struct tandem_error later;
        const enum tandem_status saved = save(tune, status == TANDEM_OK ? error : &later);
        status = status == TANDEM_OK ? saved : status;
    } else if (status == TANDEM_OK) {
        printf("no convolution of float32 with constant weights\n");
    }
    return status;
}

static void release(struct tune *tune)
{
    tandem_table_free(tune->fresh);
    tnd_lowered_free(tune->lowered);
    tandem_runtime_close(tune->runtime);
    tnd_net_free(tune->net);
    tnd_onnx_close(tune->model);
    tnd_free(tune->shapes);
    for (int i = 0; i < tune->dims.n; i++) {
        tnd_free((char *)tune->sizes[i].name);
    }
}

int tnd_cmd_graph_tune(int argc, char **argv)
{
    static struct tune tune;
    const struct args_option options[] = {
        {"dim", ARGS_STRINGS, &tune.dims, 0, 0, "NAME=N", "extent of a dimension with a name"},
        {"budget", ARGS_NUMBER, &tune.budget_s, 0, 86400, "SECONDS", "how long, in all; 30"},
        {"threads", ARGS_INT, &tune.how.threads, 0, 4096, "N", "threads; default: one a core"},
        {"table", ARGS_STRING, &tune.how.table, 0, 0, "FILE",
         "timing table, for products; none: the rule; default: this machine's"},
        {"file", ARGS_STRING, &tune.file, 0, 0, "FILE.json",
         "add the times to this table; default: this machine's"},
    };
    const struct args_command command = {
        "tune",
        "MODEL.onnx",
        "Measures the convolutions of a model by every method, and adds the times to "
        "the\n"
        "timing table. Run and bench then take the fastest method. Keep the machine idle "
        "meanwhile.",
        options,
        (int)(sizeof(options) / sizeof(options[0])),
        1,
        1};
    struct tandem_error error = {.text = ""};
    tune = (struct tune){.budget_s = 30};
    const int result = args_parse(&command, argc, argv, &tune.path, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    const enum tandem_status status = measure(&tune, &error);
    release(&tune);
    return status == TANDEM_OK ? 0 : tnd_graph_fail(&error);
}
