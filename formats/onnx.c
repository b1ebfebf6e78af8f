/* SPDX-License-Identifier: MIT
 * ONNX models: files, the ModelProto around the graph, and ownership of memory. Field numbers:
 * github.com/onnx/onnx/blob/main/onnx/onnx.proto */
#include "formats/onnx.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "formats/mistaken.h"
#include "formats/onnx_internal.h"

/* Numbers of fields. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_DOMAIN = 4,
    MODEL_VERSION = 5,
    MODEL_DESCRIPTION = 6,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_PROPERTY = 14,
    MODEL_FUNCTION = 25
};
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { PROPERTY_KEY = 1, PROPERTY_VALUE = 2 };

/* ---- models ---- */

enum tandem_status tnd_onnx_read_opset(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                       struct tnd_onnx_opset *opset, struct tandem_error *error)
{
    *opset = (struct tnd_onnx_opset){.domain = ""};
    while (message.at < message.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number == OPSET_DOMAIN) {
            TND_TRY(tnd_onnx_text(memory, &message, &field, "an opset", &opset->domain, error));
            opset->domain = tnd_onnx_domain(opset->domain);
        } else if (field.number == OPSET_VERSION) {
            TND_TRY(tnd_onnx_number(memory, &message, &field, "an opset", &opset->version, error));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_property(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                        struct tnd_onnx_property *property,
                                        struct tandem_error *error)
{
    static const char what[] = "a property";
    *property = (struct tnd_onnx_property){.key = "", .value = ""};
    while (message.at < message.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number == PROPERTY_KEY) {
            TND_TRY(tnd_onnx_remark(memory, &message, &field, what, &property->key, error));
        } else if (field.number == PROPERTY_VALUE) {
            TND_TRY(tnd_onnx_remark(memory, &message, &field, what, &property->value, error));
        }
    }
    return TANDEM_OK;
}

/* The lists being filled while a model's fields are read. */
struct model_lists {
    struct tnd_onnx_opset *opsets;
    struct tnd_onnx_property *properties;
    struct tnd_onnx_function *functions;
};

static enum tandem_status read_model_field(struct tnd_onnx_memory *memory,
                                           const struct tnd_cursor *at,
                                           const struct tnd_wire_field *field,
                                           const struct model_lists *lists,
                                           struct tnd_onnx_model *model, struct tandem_error *error)
{
    static const char what[] = "a model";
    struct tnd_cursor inside;
    switch (field->number) {
    case MODEL_IR_VERSION:
        return tnd_onnx_number(memory, at, field, what, &model->ir_version, error);
    case MODEL_PRODUCER:
        return tnd_onnx_text(memory, at, field, what, &model->producer, error);
    case MODEL_PRODUCER_VERSION:
        return tnd_onnx_text(memory, at, field, what, &model->producer_version, error);
    case MODEL_OPSET: {
        struct tnd_onnx_opset *opset = &lists->opsets[model->n_opsets++];
        TND_TRY(tnd_onnx_inside(memory, at, field, what, &inside, error));
        TND_TRY(tnd_onnx_read_opset(memory, inside, opset, error));
        model->opset = opset->domain[0] == '\0' ? opset->version : model->opset;
        return TANDEM_OK;
    }
    case MODEL_DOMAIN:
        return tnd_onnx_remark(memory, at, field, what, &model->domain, error);
    case MODEL_VERSION:
        return tnd_onnx_number(memory, at, field, what, &model->version, error);
    case MODEL_DESCRIPTION:
        return tnd_onnx_remark(memory, at, field, what, &model->description, error);
    case MODEL_PROPERTY:
        TND_TRY(tnd_onnx_inside(memory, at, field, what, &inside, error));
        return read_property(memory, inside, &lists->properties[model->n_properties++], error);
    case MODEL_FUNCTION:
        TND_TRY(tnd_onnx_inside(memory, at, field, what, &inside, error));
        return tnd_onnx_read_function(memory, inside, &lists->functions[model->n_functions++],
                                      error);
    case MODEL_GRAPH: {
        struct tnd_onnx_graph *graph = NULL;
        TND_TRY(tnd_onnx_inside(memory, at, field, what, &inside, error));
        TND_TRY(tnd_onnx_new(memory, 1, sizeof(*graph), &graph, error));
        TND_TRY(tnd_onnx_read_graph(memory, inside, 0, graph, error));
        model->graph = graph;
        return TANDEM_OK;
    }
    default:
        return TANDEM_OK;
    }
}

/* The error of an unreadable file: what the file really is, else what is wrong with it. */
static enum tandem_status no_model(const struct tnd_onnx_memory *memory, enum tandem_status status,
                                   const struct tandem_error *why, struct tandem_error *error)
{
    const char *name = tnd_short_name(memory->file.name);
    const char *other = tnd_mistaken_for(memory->file.data, memory->file.n);
    return tnd_error_set(error, status, memory->file.name, why->got, why->limit,
                         "%s: no ONNX model, %s%.200s", name,
                         other != NULL ? "but " : "or a damaged one",
                         other != NULL ? other : tnd_text_behind(why->text, name));
}

/* Counts the fields of the whole file, which may be no model at all. */
static enum tandem_status count_fields(struct tnd_onnx_memory *memory,
                                       struct tnd_onnx_counts *counts, struct tandem_error *error)
{
    struct tandem_error why = {0};
    const enum tandem_status status = tnd_onnx_count(memory, memory->file, counts, &why);
    return status == TANDEM_OK ? TANDEM_OK : no_model(memory, status, &why, error);
}

static enum tandem_status read_model(struct tnd_onnx_memory *memory, struct tnd_onnx_model *model,
                                     struct tandem_error *error)
{
    struct tnd_onnx_counts counts;
    struct model_lists lists;
    TND_TRY(count_fields(memory, &counts, error));
    if (counts.of[MODEL_GRAPH] != 1 || counts.of[MODEL_IR_VERSION] == 0) {
        struct tandem_error why = {0};
        const enum tandem_status status =
            tnd_error_set(&why, TANDEM_E_FORMAT, memory->file.name, counts.of[MODEL_GRAPH], 1,
                          ": %d graphs and %s version of the format, expected one of both",
                          counts.of[MODEL_GRAPH], counts.of[MODEL_IR_VERSION] == 0 ? "no" : "a");
        return no_model(memory, status, &why, error);
    }
    TND_TRY(tnd_onnx_new(memory, counts.of[MODEL_OPSET], sizeof(lists.opsets[0]), &lists.opsets,
                         error));
    TND_TRY(tnd_onnx_new(memory, counts.of[MODEL_PROPERTY], sizeof(lists.properties[0]),
                         &lists.properties, error));
    model->producer = model->producer_version = model->domain = model->description = "";
    TND_TRY(tnd_onnx_new(memory, counts.of[MODEL_FUNCTION], sizeof(lists.functions[0]),
                         &lists.functions, error));
    for (struct tnd_cursor at = memory->file; at.at < at.n;) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&at, &field, error));
        TND_TRY(read_model_field(memory, &at, &field, &lists, model, error));
    }
    model->opsets = lists.opsets;
    model->properties = lists.properties;
    model->functions = lists.functions;
    return TANDEM_OK;
}

/* ---- memory ---- */

static struct tnd_onnx_memory *new_memory(const void *bytes, size_t n, const char *name)
{
    struct tnd_onnx_memory *memory = tnd_calloc(1, sizeof(*memory));
    if (memory != NULL) {
        tnd_arena_init(&memory->arena, n < 4096 ? 4096 : 0, 0);
        memory->file = (struct tnd_cursor){.data = bytes, .n = n, .name = name};
    }
    return memory;
}

void tnd_onnx_memory_free(struct tnd_onnx_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    for (int i = 0; i < memory->n_files; i++) {
        tnd_file_close(&memory->files[i].file);
        tnd_free(memory->files[i].location);
    }
    tnd_vector_fini(&memory->files_vector);
    tnd_file_close(&memory->mapped);
    tnd_arena_fini(&memory->arena);
    tnd_free(memory);
}

static enum tandem_status no_memory(const char *name, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, name, 0, 0, "%s: no memory for the model",
                         tnd_short_name(name));
}

/* Reads a model, which takes ownership of `memory`; on failure it is freed. */
static enum tandem_status finish(struct tnd_onnx_memory *memory, struct tnd_onnx_model **out_model,
                                 struct tandem_error *error)
{
    struct tnd_onnx_model *model = NULL;
    enum tandem_status status = tnd_onnx_new(memory, 1, sizeof(*model), &model, error);
    status = status == TANDEM_OK ? read_model(memory, model, error) : status;
    if (status != TANDEM_OK) {
        tnd_onnx_memory_free(memory);
        return status;
    }
    model->memory = memory;
    *out_model = model;
    return TANDEM_OK;
}

enum tandem_status tnd_onnx_read(const void *bytes, size_t n, const char *name,
                                 struct tnd_onnx_model **out_model, struct tandem_error *error)
{
    struct tnd_onnx_memory *memory = new_memory(bytes, n, name);
    return memory == NULL ? no_memory(name, error) : finish(memory, out_model, error);
}

/* Sets the only folder of external data: the real folder of the model. */
static enum tandem_status set_folder(struct tnd_onnx_memory *memory, const char *path,
                                     struct tandem_error *error)
{
    char folder[PATH_MAX];
    char real[PATH_MAX];
    char *copy = NULL;
    const size_t n = tnd_file_folder_length(path);
    if (n + 2 > sizeof(folder)) {
        return tnd_error_set(error, TANDEM_E_FILE, path, (int64_t)n, PATH_MAX,
                             "%s: the path is too long", tnd_short_name(path));
    }
    memcpy(folder, path, n);
    memcpy(folder + n, ".", 2);
    if (realpath(folder, real) == NULL) {
        return tnd_error_set(error, TANDEM_E_FILE, path, errno, 0, "%s: its folder: %s",
                             tnd_short_name(path), strerror(errno));
    }
    if (strcmp(real, "/") == 0) {
        real[0] = '\0'; /* paths append a slash */
    }
    TND_TRY(tnd_onnx_new(memory, (int64_t)strlen(real) + 1, 1, &copy, error));
    memcpy(copy, real, strlen(real) + 1);
    memory->folder = copy;
    return TANDEM_OK;
}

enum tandem_status tnd_onnx_open(const char *path, struct tnd_onnx_model **out_model,
                                 struct tandem_error *error)
{
    struct tnd_file file;
    char *name = NULL;
    TND_TRY(tnd_file_map(path, false, &file, error));
    struct tnd_onnx_memory *memory = new_memory(file.data, file.bytes, path);
    if (memory == NULL) {
        tnd_file_close(&file);
        return no_memory(path, error);
    }
    memory->mapped = file;
    enum tandem_status status = set_folder(memory, path, error);
    status = status == TANDEM_OK ? tnd_onnx_new(memory, (int64_t)strlen(path) + 1, 1, &name, error)
                                 : status;
    if (status != TANDEM_OK) {
        tnd_onnx_memory_free(memory);
        return status;
    }
    memcpy(name, path, strlen(path) + 1);
    memory->file.name = name;
    struct tnd_onnx_model *model = NULL;
    TND_TRY(finish(memory, &model, error));
    status = tnd_onnx_check_files(model, error);
    if (status != TANDEM_OK) {
        tnd_onnx_close(model);
        return status;
    }
    *out_model = model;
    return TANDEM_OK;
}

void tnd_onnx_close(struct tnd_onnx_model *model)
{
    tnd_onnx_memory_free(model == NULL ? NULL : model->memory);
}

enum tandem_status tnd_onnx_check_files(const struct tnd_onnx_model *model,
                                        struct tandem_error *error)
{
    const struct tnd_onnx_memory *memory = model->memory;
    for (int i = 0; memory != NULL && i < memory->n_files; i++) {
        TND_TRY(tnd_file_check(&memory->files[i].file, error));
    }
    return memory != NULL ? tnd_file_check(&memory->mapped, error) : TANDEM_OK;
}

void tnd_onnx_unload(const struct tnd_onnx_model *model)
{
    const struct tnd_onnx_memory *memory = model->memory;
    for (int i = 0; memory != NULL && i < memory->n_files; i++) {
        tnd_file_unload(&memory->files[i].file);
    }
    if (memory != NULL) {
        tnd_file_unload(&memory->mapped);
    }
}

enum tandem_status tnd_onnx_read_tensor(const void *bytes, size_t n, const char *name,
                                        struct tnd_onnx_tensor *out_tensor,
                                        struct tnd_onnx_memory **out_memory,
                                        struct tandem_error *error)
{
    struct tnd_onnx_memory *memory = new_memory(bytes, n, name);
    if (memory == NULL) {
        return no_memory(name, error);
    }
    const enum tandem_status status = tnd_onnx_tensor(memory, memory->file, out_tensor, error);
    if (status != TANDEM_OK) {
        tnd_onnx_memory_free(memory);
        return status;
    }
    *out_memory = memory;
    return TANDEM_OK;
}
