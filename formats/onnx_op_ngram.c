/* SPDX-License-Identifier: MIT
 * TfIdfVectorizer of ONNX on integers: how often groups of numbers stand in a row, one behind the
 * other or with gaps of one length. Meaning:
 * https://github.com/onnx/onnx/blob/v1.19.0/docs/Operators.md#TfIdfVectorizer */
#include <string.h>

#include "formats/onnx_op.h"

#define MAX_LENGTH   64 /* of a group */
#define MAX_SKIPS    64
#define MAX_COMPARED (1 << 24) /* places, groups and gaps; groups and results */

struct grams {
    int x; /* {N, L} of int64 */
    int64_t rows, length;
    int64_t columns;       /* of the result */
    const int64_t *starts; /* of the groups of each length in the pool */
    int n_lengths;
    const int64_t *pool;
    int n_pool;
    const int64_t *indexes; /* of each group's result */
    int n_indexes;
    int64_t skips;
};

/* {N, groups}: how often the groups of `n` numbers stand in each row with `gap` places from one
 * number to the next. */
static int count_gap(struct tnd_onnx_call *call, const struct grams *it, const int64_t *groups,
                     int64_t n_groups, int n, int64_t gap)
{
    struct tnd_net *net = call->net;
    const int64_t places = it->length - (n - 1) * gap;
    const struct tnd_dims to = {2, {it->rows, n_groups}};
    int all = TANDEM_NET_NONE;
    for (int k = 0; k < n; k++) {
        struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_I64, &TND_DIMS(n_groups));
        for (int64_t g = 0; array != NULL && g < n_groups; g++) {
            ((int64_t *)array->data)[g] = groups[g * n + k];
        }
        const int numbers = tnd_net_reshape(net, tnd_net_slice(net, it->x, 1, k * gap, places, 1),
                                            &TND_DIMS(it->rows, places, 1));
        const int same =
            tnd_onnx_binary(call, TANDEM_BINARY_EQUAL, numbers, tnd_net_constant(net, array));
        all = k == 0 ? same : tnd_onnx_binary(call, TANDEM_BINARY_AND, all, same);
    }
    all = tnd_net_cast(net, all, TANDEM_DTYPE_F32);
    return tnd_net_reshape(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, all, 2), &to);
}

/* {groups, columns}: 1 where a group counts. */
static int places_of(struct tnd_onnx_call *call, const struct grams *it, int64_t first, int64_t n)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, &TND_DIMS(n, it->columns));
    for (int64_t g = 0; array != NULL && g < n; g++) {
        ((float *)array->data)[g * it->columns + it->indexes[first + g]] = 1.0F;
    }
    return tnd_net_constant(call->net, array);
}

/* Where the groups of a length begin in the pool, and how many there are; false: refused. */
static bool find_groups(struct tnd_onnx_call *call, const struct grams *it, int n, int64_t *first,
                        int64_t *n_groups)
{
    const int64_t begin = it->starts[n - 1];
    const int64_t end = n < it->n_lengths ? it->starts[n] : it->n_pool;
    if (begin < 0 || end < begin || end > it->n_pool || (end - begin) % n != 0 ||
        (n == 1 && begin != 0)) {
        (void)tnd_onnx_refuse(call, "groups of %d numbers at %lld to %lld of a pool of %d", n,
                              (long long)begin, (long long)end, it->n_pool);
        return false;
    }
    *first = begin;
    *n_groups = (end - begin) / n;
    return true;
}

static bool read_grams(struct tnd_onnx_call *call, struct grams *it)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const enum tandem_dtype type = tnd_onnx_type_of(call, x);
    it->starts = tnd_onnx_ints(call, "ngram_counts", &it->n_lengths);
    it->pool = tnd_onnx_ints(call, "pool_int64s", &it->n_pool);
    it->indexes = tnd_onnx_ints(call, "ngram_indexes", &it->n_indexes);
    it->skips = tnd_onnx_int(call, "max_skip_count", 0);
    if (shape.n < 1 || shape.n > 2 || it->n_pool < 1 || it->n_indexes < 1 || it->n_lengths < 1 ||
        it->n_lengths > MAX_LENGTH || it->skips < 0 || it->skips > MAX_SKIPS ||
        (type != TANDEM_DTYPE_I64 && type != TANDEM_DTYPE_I32)) {
        (void)tnd_onnx_refuse(call, "%lld gaps, a pool of %d integers, %d lengths",
                              (long long)it->skips, it->n_pool, it->n_lengths);
        return false;
    }
    it->rows = shape.n == 2 ? shape.dims[0] : 1;
    it->length = shape.dims[shape.n - 1];
    for (int i = 0; i < it->n_indexes; i++) {
        if (it->indexes[i] < 0 || it->indexes[i] >= MAX_COMPARED) {
            (void)tnd_onnx_refuse(call, "ngram_indexes has a %lld", (long long)it->indexes[i]);
            return false;
        }
        it->columns = it->indexes[i] >= it->columns ? it->indexes[i] + 1 : it->columns;
    }
    if (it->rows > MAX_COMPARED || it->length > MAX_COMPARED ||
        it->rows * it->length > MAX_COMPARED / (it->n_pool + it->skips) ||
        it->columns > MAX_COMPARED / it->n_indexes) {
        (void)tnd_onnx_refuse(call, "a pool of %d integers for this many values", it->n_pool);
        return false;
    }
    const struct tnd_dims matrix = {2, {it->rows, it->length}};
    it->x = tnd_net_reshape(call->net, tnd_net_cast(call->net, x, TANDEM_DTYPE_I64), &matrix);
    return true;
}

/* {N, columns}: all lengths and gaps together. */
static int count_all(struct tnd_onnx_call *call, const struct grams *it, int64_t least,
                     int64_t most)
{
    const struct tnd_dims shape = {2, {it->rows, it->columns}};
    int64_t done = 0;
    int sum = tnd_net_expand(call->net, tnd_net_scalar(call->net, TANDEM_DTYPE_F32, 0.0), &shape);
    for (int n = 1; n <= it->n_lengths; n++) {
        int64_t first = 0;
        int64_t n_groups = 0;
        if (!find_groups(call, it, n, &first, &n_groups) || done + n_groups > it->n_indexes) {
            return tnd_onnx_refuse(call, "more groups than ngram_indexes has");
        }
        for (int64_t gap = 1; gap <= it->skips + 1 && n_groups > 0; gap++) {
            if (n < least || n > most || it->length - (n - 1) * gap < 1 || (n == 1 && gap > 1)) {
                continue;
            }
            const int counts = count_gap(call, it, it->pool + first, n_groups, n, gap);
            const int where = places_of(call, it, done, n_groups);
            sum = tnd_onnx_binary(call, TANDEM_BINARY_ADD, sum,
                                  tnd_net_matmul(call->net, counts, where));
        }
        done += n_groups;
    }
    return done == it->n_indexes ? sum
                                 : tnd_onnx_refuse(call, "%lld groups for %d ngram_indexes",
                                                   (long long)done, it->n_indexes);
}

static void build_tf_idf(struct tnd_onnx_call *call)
{
    struct grams it = {.columns = 0};
    int n_weights;
    const float *weights = tnd_onnx_floats(call, "weights", &n_weights);
    const char *mode = tnd_onnx_word(call, "mode", "");
    const int64_t least = tnd_onnx_int(call, "min_gram_length", 1);
    const int64_t most = tnd_onnx_int(call, "max_gram_length", 1);
    const bool is_tf = strcmp(mode, "TF") == 0;
    const bool is_idf = strcmp(mode, "IDF") == 0;
    if (!read_grams(call, &it)) {
        return;
    }
    if (least < 1 || most < least || most > it.n_lengths ||
        (!is_tf && !is_idf && strcmp(mode, "TFIDF") != 0)) {
        (void)tnd_onnx_refuse(call, "mode '%.20s' of groups of %lld to %lld", mode,
                              (long long)least, (long long)most);
        return;
    }
    /* the text gives each group a weight, ONNX Runtime each result: the same where they agree */
    bool agrees = n_weights == 0 || (n_weights == it.n_indexes && it.columns == it.n_indexes);
    for (int i = 0; i < it.n_indexes && n_weights > 0; i++) {
        agrees = agrees && it.indexes[i] == i;
    }
    int y = count_all(call, &it, least, most);
    if (!agrees || y == TANDEM_NET_NONE) {
        (void)tnd_onnx_refuse(call, "%d weights of groups in another order", n_weights);
        return;
    }
    if (is_idf) {
        y = tnd_onnx_with(call, TANDEM_BINARY_MIN, y, 1.0);
    }
    if (!is_tf && n_weights > 0) {
        const struct tnd_dims list = {1, {n_weights}};
        struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, &list);
        if (array != NULL) {
            memcpy(array->data, weights, (size_t)n_weights * sizeof(weights[0]));
        }
        y = tnd_onnx_binary(call, TANDEM_BINARY_MUL, y, tnd_net_constant(call->net, array));
    }
    const bool is_list = tnd_onnx_shape_of(call, tnd_onnx_in(call, 0))->n == 1;
    call->out[0] = is_list ? tnd_net_reshape(call->net, y, &TND_DIMS(it.columns)) : y;
}

const struct tnd_onnx_op tnd_onnx_ngram[] = {
    {"TfIdfVectorizer", build_tf_idf, 0, "1"},
    {NULL, NULL, 0, NULL},
};
