/* SPDX-License-Identifier: MIT
 * The public interface of models whose extents depend on computed values: they are lowered part by
 * part. A part is cached by its origin (the shapes of the caller's arrays, or another part) and by
 * the values that its first node needed. */
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "formats/onnx_public.h"
#include "graph/lower.h"
#include "graph/net_public.h"
#include "tandem/onnx_nets.h"

/* ---- what is kept ---- */

static void free_step(tandem_onnx *model, struct tnd_onnx_step *step)
{
    struct tnd_onnx_step **place = &model->steps;
    while (*place != NULL && *place != step) {
        place = &(*place)->next;
    }
    if (*place != NULL) {
        *place = step->next;
    }
    if (step->origin != NULL) {
        step->origin->n_origins--;
    }
    tandem_lowered_free(step->lowered);
    for (int i = 0; i < step->part.n_left; i++) {
        tnd_array_free(step->part.left[i].known);
    }
    for (int i = 0; i < step->n_answers; i++) {
        tnd_array_free(step->answers[i]);
    }
    tnd_vector_fini(&step->part.left_vector);
    tnd_vector_fini(&step->answers_vector);
    tnd_free(step->passes);
    tnd_free(step);
}

void tnd_onnx_drop_parts(tandem_onnx *model)
{
    while (model->steps != NULL) { /* newest first: no part reads the outputs of a newer one */
        free_step(model, model->steps);
    }
    model->at = NULL;
}

/* Frees the least recently used parts that are not the origin of others. */
static void make_room(tandem_onnx *model)
{
    for (;;) {
        struct tnd_onnx_step *oldest = NULL;
        size_t bytes = 0;
        int n = 0;
        for (struct tnd_onnx_step *step = model->steps; step != NULL; step = step->next) {
            bytes += tnd_lowered_bytes(tnd_lowered_of(step->lowered));
            n++;
            if (step->n_origins == 0 && step != model->at &&
                (oldest == NULL || step->used < oldest->used)) {
                oldest = step;
            }
        }
        if (oldest == NULL || n <= 2 * TANDEM_ONNX_KEPT ||
            (bytes <= TND_ONNX_KEPT_BYTES && n <= TND_ONNX_MOST_KEPT)) {
            return;
        }
        free_step(model, oldest);
    }
}

/* The caller's array for an input; NULL: none. */
static const struct tandem_net_array *array_for(const tandem_onnx *model, const char *name)
{
    for (int i = 0; i < model->n_inputs; i++) {
        if (strcmp(model->inputs[i].name, name) == 0) {
            return &model->inputs[i];
        }
    }
    return NULL;
}

static bool takes_arrays(const tandem_onnx *model, const struct tnd_onnx_step *step)
{
    struct tandem_net_array input;
    bool fits = true;
    for (int i = 0; fits && tandem_lowered_input(step->lowered, i, &input); i++) {
        const struct tandem_net_array *given = array_for(model, input.name);
        fits = given != NULL && given->type == input.type && given->n_dims == input.n_dims;
        for (int k = 0; fits && k < input.n_dims; k++) {
            fits = given->dims[k] == input.dims[k];
        }
    }
    return fits;
}

static bool is_equal(const struct tnd_array *a, const struct tnd_array *b)
{
    return a->type == b->type && tnd_dims_is_equal(&a->shape, &b->shape) &&
           memcmp(a->data, b->data, (size_t)a->n * tandem_dtype_bytes(a->type)) == 0;
}

static bool is_same(const tandem_onnx *model, const struct tnd_onnx_step *a,
                    const struct tnd_onnx_step *b)
{
    bool same = a->origin == b->origin && a->n_answers == b->n_answers &&
                a->for_device == b->for_device && a->chooser == b->chooser &&
                (a->passes == NULL) == (b->passes == NULL) &&
                (a->passes == NULL || strcmp(a->passes, b->passes) == 0) &&
                (a->origin != NULL || takes_arrays(model, a));
    for (int i = 0; same && i < a->n_answers; i++) {
        same = is_equal(a->answers[i], b->answers[i]);
    }
    return same;
}

/* ---- what is made ---- */

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for a part of a net");
}

/* The caller's arrays in the builder's form, which only reads their shapes. */
struct given {
    const char **names;
    const struct tnd_array **arrays;
    struct tnd_array *list;
};

static enum tandem_status describe(const tandem_onnx *model, struct given *given,
                                   struct tandem_error *error)
{
    const size_t n = (size_t)model->n_inputs + 1;
    given->names = tnd_calloc(n, sizeof(given->names[0]));
    given->arrays = tnd_calloc(n, sizeof(given->arrays[0]));
    given->list = tnd_calloc(n, sizeof(given->list[0]));
    if (given->names == NULL || given->arrays == NULL || given->list == NULL) {
        return no_memory(error);
    }
    for (int i = 0; i < model->n_inputs; i++) {
        const struct tandem_net_array *from = &model->inputs[i];
        struct tnd_array *to = &given->list[i];
        to->type = from->type;
        (void)tnd_dims_from(from->n_dims, from->dims, &to->shape); /* checked before */
        to->n = tnd_dims_values(&to->shape);
        given->names[i] = from->name;
        given->arrays[i] = to;
    }
    return TANDEM_OK;
}

static enum tandem_status build(tandem_onnx *model, struct tnd_onnx_step *step, tandem_net *net,
                                struct tandem_error *error)
{
    struct given given = {.names = NULL};
    struct tnd_net *inner = NULL;
    step->part.answers = (const struct tnd_array *const *)step->answers;
    step->part.n_answers = step->n_answers;
    if (step->origin != NULL) {
        step->part.first = step->origin->part.stopped;
        step->part.carried = step->origin->part.left;
        step->part.n_carried = step->origin->part.n_left;
    }
    enum tandem_status status = describe(model, &given, error);
    if (status == TANDEM_OK) {
        const struct tnd_onnx_build_options options = {.n_arrays = model->n_inputs,
                                                       .array_names = given.names,
                                                       .arrays = given.arrays,
                                                       .store = model->store,
                                                       .part = &step->part};
        status = tnd_onnx_build(model->model, &options, &inner, error);
    }
    tnd_free(given.names);
    tnd_free(given.arrays);
    tnd_free(given.list);
    TND_TRY(status);
    tnd_net_free(net->net);
    net->net = inner;
    for (int i = 0; i < inner->n_outputs; i++) {
        if (!tnd_net_name_output(net,
                                 step->part.is_last ? model->model->graph->outputs[i].name : "")) {
            return no_memory(error);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status make(tandem_onnx *model, struct tnd_onnx_step *step,
                               struct tandem_error *error)
{
    struct tandem_lower_options how = TANDEM_LOWER_OPTIONS_INIT;
    tandem_net *net = NULL;
    how.for_device = step->for_device;
    how.passes = step->passes;
    how.chooser = step->chooser;
    TND_TRY(tandem_net_new(&net, error));
    net->is_kept = model->keeps_nets;
    enum tandem_status status = build(model, step, net, error);
    status = status == TANDEM_OK ? tandem_net_lower(net, &how, &step->lowered, error) : status;
    tandem_net_free(net);
    status = status == TANDEM_OK ? tnd_onnx_check_files(model->model, error) : status;
    tnd_onnx_unload(model->model);
    tnd_store_sweep(model->store);
    return status;
}

/* Finds the cached part equal to `wanted`, which is then freed, or builds `wanted`. */
static enum tandem_status find(tandem_onnx *model, struct tnd_onnx_step *wanted,
                               struct tnd_onnx_step **out, struct tandem_error *error)
{
    for (struct tnd_onnx_step *step = model->steps; step != NULL; step = step->next) {
        if (is_same(model, step, wanted)) {
            wanted->origin = NULL;
            free_step(model, wanted);
            *out = step;
            return TANDEM_OK;
        }
    }
    if (wanted->origin != NULL) {
        wanted->origin->n_origins++;
    }
    const enum tandem_status status = make(model, wanted, error);
    if (status != TANDEM_OK) {
        free_step(model, wanted);
        return status;
    }
    wanted->next = model->steps;
    model->steps = wanted;
    *out = wanted;
    return TANDEM_OK;
}

static struct tnd_onnx_step *new_step(struct tnd_onnx_step *origin,
                                      const struct tandem_lower_options *how)
{
    const char *passes = how->passes;
    struct tnd_onnx_step *step = tnd_calloc(1, sizeof(*step));
    if (step == NULL) {
        return NULL;
    }
    step->origin = origin;
    step->for_device = how->for_device;
    step->chooser = how->chooser;
    if (passes != NULL) {
        step->passes = tnd_alloc(strlen(passes) + 1);
        if (step->passes == NULL) {
            tnd_free(step);
            return NULL;
        }
        memcpy(step->passes, passes, strlen(passes) + 1);
    }
    return step;
}

static bool add_answer(struct tnd_onnx_step *step, struct tnd_array *answer)
{
    if (answer == NULL || tnd_vector_insert(&step->answers_vector, sizeof(step->answers[0]),
                                            INT_MAX / 2, step->n_answers) != TANDEM_OK) {
        tnd_array_free(answer);
        return false;
    }
    step->answers[step->n_answers - 1] = answer;
    return true;
}

static struct tnd_array *copy_of(const struct tnd_array *array)
{
    struct tnd_array *copy = tnd_array_new(array->type, &array->shape);
    if (copy != NULL) {
        memcpy(copy->data, array->data, (size_t)array->n * tandem_dtype_bytes(array->type));
    }
    return copy;
}

/* ---- computing ---- */

/* Sets a part's inputs, and makes it the current one. */
static enum tandem_status enter(tandem_onnx *model, struct tnd_onnx_step *step,
                                tandem_lowered **out_part, struct tandem_error *error)
{
    struct tandem_net_array input;
    struct tandem_net_array from = {.data = NULL};
    int at = 0; /* index of the carried value */
    for (int i = 0; tandem_lowered_input(step->lowered, i, &input); i++) {
        if (step->origin == NULL) {
            const struct tandem_net_array *given = array_for(model, input.name);
            from.data = given != NULL ? given->data : NULL;
            from.bytes = given != NULL ? given->bytes : 0;
        } else {
            while (step->part.carried[at].output < 0) {
                at++;
            }
            (void)tandem_lowered_output(step->origin->lowered, step->part.carried[at++].output,
                                        &from);
        }
        if (from.bytes != input.bytes || (from.data == NULL && input.bytes > 0)) {
            return tnd_error_set(error, TANDEM_E_SHAPE, input.name, (int64_t)from.bytes,
                                 (int64_t)input.bytes, "input %.80s: %zu bytes, expected %zu",
                                 input.name, from.bytes, input.bytes);
        }
        if (input.bytes > 0) {
            memcpy(input.data, from.data, input.bytes);
        }
    }
    step->used = ++model->clock;
    model->at = step;
    make_room(model);
    *out_part = step->lowered;
    return TANDEM_OK;
}

static enum tandem_status check_inputs(const struct tandem_net_array *inputs, int n,
                                       struct tandem_error *error)
{
    struct tnd_dims shape;
    for (int i = 0; i < n; i++) {
        if (inputs == NULL || inputs[i].name == NULL || (unsigned)inputs[i].type >= TND_N_DTYPES ||
            !tnd_dims_from(inputs[i].n_dims, inputs[i].dims, &shape) ||
            tnd_dims_values(&shape) < 0) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, "inputs", i, n,
                                 "onnx_begin: an array without name, type or shape");
        }
    }
    return TANDEM_OK;
}

enum tandem_status tandem_onnx_begin(tandem_onnx *model, const struct tandem_net_array *inputs,
                                     int n_inputs, const struct tandem_lower_options *options,
                                     tandem_lowered **out_part, struct tandem_error *error)
{
    struct tandem_lower_options how = TANDEM_LOWER_OPTIONS_INIT;
    struct tnd_onnx_step *step = NULL;
    TND_REQUIRE(model, "onnx_begin", error);
    TND_REQUIRE(out_part, "onnx_begin", error);
    TND_TRY(tnd_options_read(options, "tandem_lower_options", &how, sizeof(how), error));
    TND_TRY(check_inputs(inputs, n_inputs, error));
    model->inputs = inputs;
    model->n_inputs = n_inputs;
    model->at = NULL;
    struct tnd_onnx_step *wanted = new_step(NULL, &how);
    if (wanted == NULL) {
        return no_memory(error);
    }
    TND_TRY(find(model, wanted, &step, error));
    return enter(model, step, out_part, error);
}

enum tandem_status tandem_onnx_next(tandem_onnx *model, tandem_lowered **out_part,
                                    struct tandem_error *error)
{
    struct tandem_net_array asked;
    struct tnd_dims shape;
    struct tnd_onnx_step *step = NULL;
    TND_REQUIRE(model, "onnx_next", error);
    TND_REQUIRE(out_part, "onnx_next", error);
    struct tnd_onnx_step *at = model->at;
    *out_part = NULL;
    if (at == NULL) {
        return tnd_error_set(error, TANDEM_E_STATE, "onnx_next", 0, 0,
                             "onnx_next: no part was computed, expected onnx_begin before");
    }
    if (at->part.is_last) {
        return TANDEM_OK;
    }
    const struct tandem_lower_options how = {.size = sizeof(how),
                                             .passes = at->passes,
                                             .for_device = at->for_device,
                                             .chooser = at->chooser};
    /* the part may end at its first node, which then needs more values */
    const bool is_more = at->part.stopped == at->part.first;
    struct tnd_onnx_step *wanted = new_step(is_more ? at->origin : at, &how);
    bool is_good = wanted != NULL;
    for (int i = 0; is_good && is_more && i < at->n_answers; i++) {
        is_good = add_answer(wanted, copy_of(at->answers[i]));
    }
    (void)tandem_lowered_output(at->lowered, 0, &asked);
    (void)tnd_dims_from(asked.n_dims, asked.dims, &shape);
    struct tnd_array *answer = is_good ? tnd_array_new(asked.type, &shape) : NULL;
    if (answer != NULL && asked.bytes > 0) {
        memcpy(answer->data, asked.data, asked.bytes);
    }
    if (!is_good || !add_answer(wanted, answer)) {
        if (wanted != NULL) {
            wanted->origin = NULL;
            free_step(model, wanted);
        }
        return no_memory(error);
    }
    TND_TRY(find(model, wanted, &step, error));
    return enter(model, step, out_part, error);
}
