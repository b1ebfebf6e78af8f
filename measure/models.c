/* SPDX-License-Identifier: MIT
 * Model sizes and their matrices. Dimensions: LLaMA paper (Touvron et al. 2023, table 2) with the
 * hidden sizes of its released weights; 3B is OpenLLaMA 3B; 1.1B is TinyLlama; quick is a smaller
 * one that is fast to measure, for the demo. */
#include "measure/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/tnd_status.h"

struct model {
    const char *name;
    int64_t dim, kv_dim, hidden, vocabulary, layers;
};

static const struct model models[] = {
    {"quick", 1024, 256, 2816, 8192, 16},  {"1.1B", 2048, 256, 5632, 32000, 22},
    {"3B", 3200, 3200, 8640, 32000, 26},   {"7B", 4096, 4096, 11008, 32000, 32},
    {"13B", 5120, 5120, 13824, 32000, 40}, {"30B", 6656, 6656, 17920, 32000, 60},
    {"65B", 8192, 8192, 22016, 32000, 80},
};
enum { N_MODELS = sizeof(models) / sizeof(models[0]) };

static const char model_names[] = "quick, 1.1B, 3B, 7B, 13B, 30B, 65B";

static void add_shape(struct tnd_shapes *shapes, int64_t n, int64_t k, double calls)
{
    for (int i = 0; i < shapes->count; i++) {
        if (shapes->shape[i].n == n && shapes->shape[i].k == k) {
            shapes->use[i].calls += calls;
            return;
        }
    }
    shapes->shape[shapes->count].n = n;
    shapes->shape[shapes->count].k = k;
    shapes->use[shapes->count].calls = calls;
    shapes->count++;
}

static void shapes_of_model(const struct model *model, struct tnd_shapes *out)
{
    double layers = (double)model->layers;
    memset(out, 0, sizeof(*out));
    snprintf(out->model, sizeof(out->model), "%s", model->name);
    add_shape(out, model->dim, model->dim, 2 * layers);    /* query and output projections */
    add_shape(out, model->kv_dim, model->dim, 2 * layers); /* key and value projections */
    add_shape(out, model->dim, model->hidden, layers);     /* down projection */
    add_shape(out, model->hidden, model->dim, 2 * layers); /* gate and up projections */
    add_shape(out, model->vocabulary, model->dim, 1);      /* classifier */
}

enum tandem_status tnd_shapes_count(struct tnd_shapes *shapes, enum tandem_type type, int64_t n,
                                    int64_t k, double calls, struct tandem_error *error)
{
    for (int i = 0; i < shapes->count; i++) {
        if (shapes->shape[i].n == n && shapes->shape[i].k == k && shapes->use[i].is_typed &&
            shapes->use[i].type == type) {
            shapes->use[i].calls += calls;
            return TANDEM_OK;
        }
    }
    if (shapes->count == TND_MAX_SHAPES) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "shapes", shapes->count, TND_MAX_SHAPES,
                             "shapes: more than %d different weights", TND_MAX_SHAPES);
    }
    shapes->shape[shapes->count] = (struct tnd_shape){n, k};
    shapes->use[shapes->count] = (struct tnd_shape_use){calls, true, type};
    shapes->count++;
    return TANDEM_OK;
}

/* Parses one "NxK" and moves the cursor past it. */
static bool parse_shape(const char **cursor, struct tnd_shape *out)
{
    char *end;
    if (**cursor < '1' || **cursor > '9') {
        return false;
    }
    long long n = strtoll(*cursor, &end, 10);
    if ((*end != 'x' && *end != 'X') || end[1] < '1' || end[1] > '9') {
        return false;
    }
    long long k = strtoll(end + 1, &end, 10);
    if (n > 1 << 24 || k > 1 << 24) {
        return false;
    }
    out->n = n;
    out->k = k;
    *cursor = end;
    return true;
}

const char *tnd_model_name(const char *name)
{
    return strcasecmp(name, "64B") == 0 ? "65B" : name;
}

enum tandem_status tnd_shapes_parse(const char *text, struct tnd_shapes *out,
                                    struct tandem_error *error)
{
    for (int i = 0; i < N_MODELS; i++) {
        if (strcasecmp(tnd_model_name(text), models[i].name) == 0) {
            shapes_of_model(&models[i], out);
            return TANDEM_OK;
        }
    }
    if (text[0] < '0' || text[0] > '9' || strchr(text, 'x') == NULL) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, text, 0, 0,
                             "model '%.64s' is neither a file nor known; known are %s, and shapes "
                             "as NxK,NxK",
                             text, model_names);
    }
    struct tnd_shapes shapes;
    memset(&shapes, 0, sizeof(shapes));
    snprintf(shapes.model, sizeof(shapes.model), "custom");
    const char *cursor = text;
    for (;;) {
        struct tnd_shape shape;
        if (!parse_shape(&cursor, &shape)) {
            return tnd_error_set(
                error, TANDEM_E_FORMAT, text, cursor - text, 0,
                "shapes '%.64s': expected NxK (up to 16777216 each) at character %d", text,
                (int)(cursor - text) + 1);
        }
        if (shapes.count == TND_MAX_SHAPES) {
            return tnd_error_set(error, TANDEM_E_LIMIT, text, shapes.count, TND_MAX_SHAPES,
                                 "shapes: more than %d", TND_MAX_SHAPES);
        }
        add_shape(&shapes, shape.n, shape.k, 1);
        if (*cursor == '\0') {
            *out = shapes;
            return TANDEM_OK;
        }
        if (*cursor++ != ',') {
            cursor--;
            return tnd_error_set(error, TANDEM_E_FORMAT, text, cursor - text, 0,
                                 "shapes '%.64s': expected ',' at character %d", text,
                                 (int)(cursor - text) + 1);
        }
    }
}
