/* SPDX-License-Identifier: MIT
 * The public interface of ONNX models: their declared inputs and outputs, their nets, and lowered
 * nets cached by sets of extents. */
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "formats/onnx_public.h"
#include "graph/net_public.h"
#include "tandem/onnx_nets.h"

/* ---- opening ---- */

static enum tandem_status adopt(struct tnd_onnx_model *model, tandem_onnx **out,
                                struct tandem_error *error)
{
    tandem_onnx *handle = tnd_calloc(1, sizeof(*handle));
    struct tnd_store *store = tnd_store_new();
    if (handle == NULL || store == NULL) {
        tnd_free(handle);
        tnd_store_free(store);
        tnd_onnx_close(model);
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for a model");
    }
    handle->model = model;
    handle->store = store;
    *out = handle;
    return TANDEM_OK;
}

enum tandem_status tandem_onnx_open(const char *path, tandem_onnx **out_model,
                                    struct tandem_error *error)
{
    struct tnd_onnx_model *model = NULL;
    TND_REQUIRE(path, "onnx_open", error);
    TND_REQUIRE(out_model, "onnx_open", error);
    TND_TRY(tnd_onnx_open(path, &model, error));
    return adopt(model, out_model, error);
}

enum tandem_status tandem_onnx_read(const void *bytes, size_t n, const char *name,
                                    tandem_onnx **out_model, struct tandem_error *error)
{
    struct tnd_onnx_model *model = NULL;
    TND_REQUIRE(bytes, "onnx_read", error);
    TND_REQUIRE(out_model, "onnx_read", error);
    TND_TRY(tnd_onnx_read(bytes, n, name != NULL ? name : "memory", &model, error));
    return adopt(model, out_model, error);
}

static void drop(struct tnd_onnx_kept *kept)
{
    tandem_lowered_free(kept->lowered);
    tnd_free(kept->dims);
    *kept = (struct tnd_onnx_kept){.dims = NULL};
}

void tandem_onnx_close(tandem_onnx *model)
{
    if (model == NULL) {
        return;
    }
    for (int i = 0; i < model->n_kept; i++) {
        drop(&model->kept[i]);
    }
    tnd_vector_fini(&model->kept_vector);
    tnd_onnx_drop_parts(model);
    tnd_store_free(model->store);
    tnd_onnx_close(model->model);
    tnd_free(model);
}

/* ---- what a model states ---- */

static void describe(const struct tnd_onnx_value *value, struct tandem_onnx_value *out)
{
    const char *name = tnd_onnx_type_name((int32_t)value->type);
    *out = (struct tandem_onnx_value){
        .name = value->name, .type_name = name != NULL ? name : "undefined", .n_dims = -1};
    out->has_type = value->kind == TND_ONNX_TENSOR && tnd_onnx_dtype(value->type, &out->type);
    for (int i = 0; value->n_dims <= TANDEM_NET_MAX_DIMS && i < value->n_dims; i++) {
        out->dims[i].name = value->dims[i].name;
        out->dims[i].extent = value->dims[i].value;
    }
    out->n_dims = value->n_dims <= TANDEM_NET_MAX_DIMS ? value->n_dims : -1;
}

int tandem_onnx_input_count(const tandem_onnx *model)
{
    int n = 0;
    for (int i = 0; model != NULL && i < model->model->graph->n_inputs; i++) {
        n += !tnd_onnx_has_initializer(model->model->graph, model->model->graph->inputs[i].name);
    }
    return n;
}

int tandem_onnx_output_count(const tandem_onnx *model)
{
    return model != NULL ? model->model->graph->n_outputs : 0;
}

bool tandem_onnx_input(const tandem_onnx *model, int i, struct tandem_onnx_value *out)
{
    if (model == NULL || i < 0 || out == NULL) {
        return false;
    }
    const struct tnd_onnx_graph *graph = model->model->graph;
    for (int k = 0; k < graph->n_inputs; k++) {
        if (!tnd_onnx_has_initializer(graph, graph->inputs[k].name) && i-- == 0) {
            describe(&graph->inputs[k], out);
            return true;
        }
    }
    return false;
}

/* Describes ZipMap's list of maps as the matrix that replaces it: float32, a column per label. */
static void describe_maps(const struct tnd_onnx_graph *graph, struct tandem_onnx_value *out)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tnd_onnx_node *node = &graph->nodes[i];
        if (strcmp(node->op, "ZipMap") != 0 || node->n_outputs != 1 || node->n_attributes != 1 ||
            strcmp(node->outputs[0], out->name) != 0) {
            continue;
        }
        const struct tnd_onnx_attribute *labels = &node->attributes[0];
        out->has_type = true;
        out->type = TANDEM_DTYPE_F32;
        out->type_name = tandem_dtype_name(out->type);
        out->n_dims = 2;
        out->dims[0].extent = -1;
        out->dims[1].extent = labels->n;
    }
}

bool tandem_onnx_output(const tandem_onnx *model, int i, struct tandem_onnx_value *out)
{
    if (i < 0 || i >= tandem_onnx_output_count(model) || out == NULL) {
        return false;
    }
    const struct tnd_onnx_value *output = &model->model->graph->outputs[i];
    describe(output, out);
    if (output->kind == TND_ONNX_SEQUENCE) {
        describe_maps(model->model->graph, out);
    }
    return true;
}

bool tandem_onnx_meta(const tandem_onnx *model, struct tandem_onnx_meta *out)
{
    if (model == NULL || out == NULL) {
        return false;
    }
    const struct tnd_onnx_model *from = model->model;
    *out = (struct tandem_onnx_meta){.producer = from->producer,
                                     .producer_version = from->producer_version,
                                     .domain = from->domain,
                                     .description = from->description,
                                     .graph_name = from->graph->name,
                                     .graph_description = from->graph->description,
                                     .version = from->version,
                                     .n_properties = from->n_properties};
    return true;
}

bool tandem_onnx_property(const tandem_onnx *model, int i, const char **out_key,
                          const char **out_value)
{
    if (model == NULL || i < 0 || i >= model->model->n_properties || out_key == NULL ||
        out_value == NULL) {
        return false;
    }
    *out_key = model->model->properties[i].key;
    *out_value = model->model->properties[i].value;
    return true;
}

/* ---- nets ---- */

/* The options' arrays in the builder's form; the net borrows them. */
struct given {
    const char **names;
    const struct tnd_array **arrays;
};

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for a net");
}

static enum tandem_status take_array(const struct tandem_net_array *from, tandem_net *net,
                                     const struct tnd_array **out, struct tandem_error *error)
{
    struct tnd_dims shape;
    const enum tandem_dtype type = from->type;
    if (from->name == NULL || (unsigned)type >= TND_N_DTYPES ||
        !tnd_dims_from(from->n_dims, from->dims, &shape)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "arrays", 0, 0,
                             "onnx_net: an array without name, type or shape");
    }
    struct tnd_array *array = tnd_array_new(type, &shape);
    if (array == NULL || !tnd_net_keep(net, array)) {
        return no_memory(error);
    }
    const size_t bytes = (size_t)array->n * tandem_dtype_bytes(type);
    if (bytes != from->bytes || (bytes > 0 && from->data == NULL)) {
        return tnd_error_set(error, TANDEM_E_SHAPE, from->name, (int64_t)from->bytes,
                             (int64_t)bytes, "onnx_net: array %.80s has %zu bytes, expected %zu",
                             from->name, from->data != NULL ? from->bytes : 0, bytes);
    }
    if (bytes > 0) {
        memcpy(array->data, from->data, bytes);
    }
    *out = array;
    return TANDEM_OK;
}

static enum tandem_status take_options(const struct tandem_onnx_options *options, tandem_net *net,
                                       struct given *given, struct tandem_error *error)
{
    if (options->n_dims < 0 || options->n_arrays < 0 ||
        (options->n_dims > 0 && options->dims == NULL) ||
        (options->n_arrays > 0 && options->arrays == NULL)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "options", options->n_dims,
                             options->n_arrays, "onnx_net: %d extents and %d arrays are not there",
                             options->n_dims, options->n_arrays);
    }
    given->names = tnd_calloc((size_t)options->n_arrays + 1, sizeof(*given->names));
    given->arrays = tnd_calloc((size_t)options->n_arrays + 1, sizeof(*given->arrays));
    if (given->names == NULL || given->arrays == NULL) {
        return no_memory(error);
    }
    for (int i = 0; i < options->n_dims; i++) {
        if (options->dims[i].name == NULL || options->dims[i].extent < 0) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, "dims", options->dims[i].extent, 0,
                                 "onnx_net: dimension %d has no name, or %lld values", i,
                                 (long long)options->dims[i].extent);
        }
    }
    for (int i = 0; i < options->n_arrays; i++) {
        TND_TRY(take_array(&options->arrays[i], net, &given->arrays[i], error));
        given->names[i] = options->arrays[i].name;
    }
    return TANDEM_OK;
}

static enum tandem_status build(const tandem_onnx *model, const struct tandem_onnx_options *options,
                                struct tnd_store *store, tandem_net *net,
                                struct tandem_error *error)
{
    struct given given = {.names = NULL};
    struct tnd_net *inner = NULL;
    enum tandem_status status = take_options(options, net, &given, error);
    if (status == TANDEM_OK) {
        const struct tnd_onnx_build_options inner_options = {.n_dims = options->n_dims,
                                                             .dims = options->dims,
                                                             .n_arrays = options->n_arrays,
                                                             .array_names = given.names,
                                                             .arrays = given.arrays,
                                                             .store = store};
        status = tnd_onnx_build(model->model, &inner_options, &inner, error);
    }
    tnd_free(given.names);
    tnd_free(given.arrays);
    TND_TRY(status);
    tnd_net_free(net->net);
    net->net = inner;
    for (int i = 0; i < inner->n_outputs; i++) {
        if (!tnd_net_name_output(net, model->model->graph->outputs[i].name)) {
            return no_memory(error);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tandem_onnx_net(const tandem_onnx *model,
                                   const struct tandem_onnx_options *options, tandem_net **out_net,
                                   struct tandem_error *error)
{
    struct tandem_onnx_options merged = TANDEM_ONNX_OPTIONS_INIT;
    tandem_net *net = NULL;
    TND_REQUIRE(model, "onnx_net", error);
    TND_REQUIRE(out_net, "onnx_net", error);
    TND_TRY(tnd_options_read(options, "tandem_onnx_options", &merged, sizeof(merged), error));
    TND_TRY(tandem_net_new(&net, error));
    const enum tandem_status status = build(model, &merged, NULL, net, error);
    if (status != TANDEM_OK) {
        tandem_net_free(net);
        return status;
    }
    *out_net = net;
    return TANDEM_OK;
}

/* ---- what is kept ---- */

/* Whether names and extents are the same, in any order. */
static bool is_same(const struct tnd_onnx_kept *kept, const struct tandem_onnx_dim *dims,
                    int n_dims)
{
    bool is_same = kept->lowered != NULL && kept->n_dims == n_dims;
    for (int i = 0; is_same && i < n_dims; i++) {
        int k = 0;
        while (k < n_dims && (kept->dims[k].extent != dims[i].extent ||
                              strcmp(kept->dims[k].name, dims[i].name) != 0)) {
            k++;
        }
        is_same = k < n_dims;
    }
    return is_same;
}

static bool copy_dims(struct tnd_onnx_kept *kept, const struct tandem_onnx_dim *dims, int n_dims)
{
    size_t bytes = (size_t)n_dims * sizeof(dims[0]) + 1;
    for (int i = 0; i < n_dims; i++) {
        bytes += strlen(dims[i].name) + 1;
    }
    kept->dims = tnd_alloc(bytes);
    if (kept->dims == NULL) {
        return false;
    }
    char *at = (char *)(kept->dims + n_dims);
    for (int i = 0; i < n_dims; i++) {
        const size_t n = strlen(dims[i].name) + 1;
        memcpy(at, dims[i].name, n);
        kept->dims[i] = (struct tandem_onnx_dim){.name = at, .extent = dims[i].extent};
        at += n;
    }
    kept->n_dims = n_dims;
    return true;
}

static enum tandem_status make(const tandem_onnx *model, const struct tandem_onnx_dim *dims,
                               int n_dims, struct tnd_onnx_kept *out, struct tandem_error *error)
{
    struct tandem_onnx_options options = TANDEM_ONNX_OPTIONS_INIT;
    struct tandem_lower_options how = TANDEM_LOWER_OPTIONS_INIT;
    tandem_net *net = NULL;
    options.dims = dims;
    options.n_dims = n_dims;
    how.chooser = model->chooser;
    TND_TRY(tandem_net_new(&net, error));
    enum tandem_status status = build(model, &options, model->store, net, error);
    status = status == TANDEM_OK ? tandem_net_lower(net, &how, &out->lowered, error) : status;
    tandem_net_free(net);
    if (status == TANDEM_OK) { /* (values that were read again as well) */
        status = tnd_onnx_check_files(model->model, error);
    }
    tnd_onnx_unload(model->model);
    if (status == TANDEM_OK && !copy_dims(out, dims, n_dims)) {
        status = no_memory(error);
    }
    if (status != TANDEM_OK) {
        drop(out);
    }
    return status;
}

void tandem_onnx_set_chooser(tandem_onnx *model, const tandem_chooser *chooser)
{
    if (model != NULL) {
        model->chooser = chooser;
    }
}

/* Bytes used only by one set of extents. */
static size_t bytes_of(const struct tnd_onnx_kept *kept)
{
    return tnd_lowered_bytes(tnd_lowered_of(kept->lowered));
}

/* Frees the least recently used sets: as few as possible of those above TANDEM_ONNX_KEPT. */
static void make_room(tandem_onnx *model)
{
    size_t bytes = 0;
    for (int i = 0; i < model->n_kept; i++) {
        bytes += bytes_of(&model->kept[i]);
    }
    while (model->n_kept > TANDEM_ONNX_KEPT &&
           (bytes > TND_ONNX_KEPT_BYTES || model->n_kept > TND_ONNX_MOST_KEPT)) {
        int oldest = 0;
        for (int i = 1; i < model->n_kept; i++) {
            oldest = model->kept[i].used < model->kept[oldest].used ? i : oldest;
        }
        bytes -= bytes_of(&model->kept[oldest]);
        drop(&model->kept[oldest]);
        tnd_vector_remove(&model->kept_vector, sizeof(model->kept[0]), oldest);
    }
}

enum tandem_status tandem_onnx_lower(tandem_onnx *model, const struct tandem_onnx_dim *dims,
                                     int n_dims, tandem_lowered **out_lowered,
                                     struct tandem_error *error)
{
    TND_REQUIRE(model, "onnx_lower", error);
    TND_REQUIRE(out_lowered, "onnx_lower", error);
    for (int i = 0; i < n_dims; i++) {
        TND_REQUIRE(dims, "onnx_lower", error);
        TND_REQUIRE(dims[i].name, "onnx_lower", error);
    }
    for (int i = 0; i < model->n_kept; i++) {
        struct tnd_onnx_kept *kept = &model->kept[i];
        if (is_same(kept, dims, n_dims)) {
            kept->used = ++model->clock;
            *out_lowered = kept->lowered;
            return TANDEM_OK;
        }
    }
    struct tnd_onnx_kept made = {.used = ++model->clock};
    const enum tandem_status status = make(model, dims, n_dims, &made, error);
    tnd_store_sweep(model->store);
    TND_TRY(status);
    if (tnd_vector_insert(&model->kept_vector, sizeof(made), INT_MAX / 2, model->n_kept) !=
        TANDEM_OK) {
        drop(&made);
        return no_memory(error);
    }
    model->kept[model->n_kept - 1] = made;
    make_room(model);
    *out_lowered = made.lowered;
    return TANDEM_OK;
}
