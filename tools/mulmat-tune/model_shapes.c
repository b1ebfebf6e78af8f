/* SPDX-License-Identifier: MIT
 * Shapes from names, lists and model files. */
#include "tools/mulmat-tune/model_shapes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/tnd_status.h"
#include "tandem/formats.h"

/* Whether a graph multiplies by the tensor: it has two dimensions and is not the embeddings, which
 * are only looked up, unless the model has no output matrix of its own and uses them for it. */
static bool is_multiplied(const tandem_source *source, const struct tandem_source_tensor *tensor)
{
    if (tensor->n_dims != 2 || tensor->ne[0] < 2 || tensor->ne[1] < 2 ||
        tensor->type == TANDEM_TYPE_I32 ||
        tandem_type_row_bytes(tensor->type, tensor->ne[0]) == 0) {
        return false;
    }
    struct tandem_source_tensor classifier;
    if (strcmp(tensor->name, "token_embd.weight") == 0) {
        return !tandem_source_find(source, "output.weight", &classifier);
    }
    return strstr(tensor->name, "embd") == NULL;
}

/* Merges equal shapes of several types. */
static void drop_types(struct tnd_shapes *shapes)
{
    int n = 0;
    for (int i = 0; i < shapes->count; i++) {
        int same = 0;
        while (same < n && (shapes->shape[same].n != shapes->shape[i].n ||
                            shapes->shape[same].k != shapes->shape[i].k)) {
            same++;
        }
        double calls = shapes->use[i].calls;
        if (same < n) {
            shapes->use[same].calls += calls;
            continue;
        }
        shapes->shape[n] = shapes->shape[i];
        shapes->use[n] = (struct tnd_shape_use){.calls = calls};
        n++;
    }
    shapes->count = n;
}

static enum tandem_status shapes_of_file(const char *path, bool keeps_types, struct tnd_shapes *out,
                                         struct tandem_error *error)
{
    tandem_source *source = NULL;
    struct tnd_shapes shapes;
    memset(&shapes, 0, sizeof(shapes));
    const char *slash = strrchr(path, '/');
    snprintf(shapes.model, sizeof(shapes.model), "%s",
             slash != NULL && slash[1] != '\0' ? slash + 1 : path);
    TND_TRY(tandem_source_open(path, &source, error));
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < tandem_source_tensor_count(source) && status == TANDEM_OK; i++) {
        struct tandem_source_tensor tensor;
        if (tandem_source_tensor_at(source, i, &tensor) && is_multiplied(source, &tensor)) {
            status = tnd_shapes_count(&shapes, tensor.type, tensor.ne[1], tensor.ne[0], 1, error);
        }
    }
    tandem_source_close(source);
    if (status == TANDEM_OK && shapes.count == 0) {
        status = tnd_error_set(error, TANDEM_E_NOT_FOUND, path, 0, 1,
                               "%.200s: no weight matrices in it", path);
    }
    if (status == TANDEM_OK && !keeps_types) {
        drop_types(&shapes);
    }
    if (status == TANDEM_OK) {
        *out = shapes;
    }
    return status;
}

enum tandem_status model_shapes(const char *text, bool keeps_types, struct tnd_shapes *out,
                                struct tandem_error *error)
{
    struct tandem_error why = {0};
    enum tandem_status status = tnd_shapes_parse(text, out, &why);
    if (status != TANDEM_OK && (access(text, F_OK) == 0 || strchr(text, '/') != NULL)) {
        return shapes_of_file(text, keeps_types, out, error);
    }
    if (status != TANDEM_OK && error != NULL) {
        *error = why;
    }
    return status;
}

enum tandem_status model_shapes_fit(const struct tnd_shapes *shapes, enum tandem_type type,
                                    struct tandem_error *error)
{
    const int64_t block = tandem_type_block_values(type);
    for (int i = 0; i < shapes->count; i++) {
        const int64_t n = shapes->shape[i].n;
        const int64_t k = shapes->shape[i].k;
        const int64_t less = k / block * block;
        char lower[48] = "";
        if (shapes->use[i].is_typed || k == less) {
            continue;
        }
        if (less > 0) {
            snprintf(lower, sizeof(lower), "%" PRId64 "x%" PRId64 " or ", n, less);
        }
        return tnd_error_set(error, TANDEM_E_FORMAT, "shapes", k, block,
                             "shape %" PRId64 "x%" PRId64
                             ": rows of %s are whole blocks of %" PRId64
                             " values, expected %s%" PRId64 "x%" PRId64,
                             n, k, tandem_type_name(type), block, lower, n, less + block);
    }
    return TANDEM_OK;
}

bool model_or_tokens(const char *command, const char *text, const char **model, struct args_ints *m)
{
    enum { MOST_TOKENS = 65536 };
    if (text[0] != '\0' && text[strspn(text, "0123456789,.+-")] != '\0') {
        *model = text;
        return true;
    }
    if (args_read_ints(text, 1, MOST_TOKENS, m)) {
        return true;
    }
    fprintf(stderr,
            "%s %s: -m '%s': expected whole numbers, separated by commas, from 1 to %d, or a "
            "model; see '%s %s --help'\n",
            args_program, command, text, MOST_TOKENS, args_program, command);
    return false;
}
