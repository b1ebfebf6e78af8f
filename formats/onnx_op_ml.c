/* SPDX-License-Identifier: MIT
 * Operators of the domain ai.onnx.ml on numbers: linear and support vector models, scalers and
 * encoders, as skl2onnx writes them. Texts have no type here: labels and categories of texts are
 * refused.
 * Formulas: https://github.com/onnx/onnx/blob/v1.18.0/docs/Operators-ml.md; where it leaves
 * something open, what ONNX Runtime 1.32 computes. */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"
#include "formats/onnx_op_ml.h"

#define MAX_COMPARED (1 << 26) /* comparisons of values with keys */

/* ---- shared with trees ---- */

int tnd_onnx_ml_floats(struct tnd_onnx_call *call, const float *values,
                       const struct tnd_dims *shape)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, shape);
    if (array != NULL && array->n > 0) {
        memcpy(array->data, values, (size_t)array->n * sizeof(values[0]));
    }
    return tnd_net_constant(call->net, array);
}

int tnd_onnx_ml_rows(struct tnd_onnx_call *call, enum tandem_dtype type)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const struct tnd_dims row = {2, {1, shape.dims[0]}};
    if (shape.n != 1 && shape.n != 2) {
        return tnd_onnx_refuse(call, "features of %d dimensions, expected 2", shape.n);
    }
    return tnd_net_cast(call->net, shape.n == 1 ? tnd_net_reshape(call->net, x, &row) : x, type);
}

int tnd_onnx_ml_transformed(struct tnd_onnx_call *call, int scores, const char *how)
{
    struct tnd_net *net = call->net;
    if (strcmp(how, "NONE") == 0 || scores == TANDEM_NET_NONE) {
        return scores;
    }
    if (strcmp(how, "LOGISTIC") == 0) {
        return tnd_onnx_apply(call, "Sigmoid", NULL, 0, scores);
    }
    if (strcmp(how, "SOFTMAX") == 0) {
        return tnd_net_softmax(net, scores, tnd_onnx_shape_of(call, scores)->n - 1);
    }
    return tnd_onnx_refuse(call, "post_transform '%.20s', expected NONE, LOGISTIC or SOFTMAX", how);
}

int tnd_onnx_ml_labels(struct tnd_onnx_call *call, const char *ints, const char *texts, int *n)
{
    const int64_t *labels = tnd_onnx_ints(call, ints, n);
    if (*n == 0) {
        return tnd_onnx_refuse(
            call, tnd_onnx_has(call, texts) ? "%s: labels are texts" : "%s: no labels", texts);
    }
    return tnd_net_integers(call->net, labels, *n);
}

int tnd_onnx_ml_label_of(struct tnd_onnx_call *call, int labels, int scores)
{
    struct tnd_net *net = call->net;
    const int best = tnd_net_arg_reduce(net, true, scores, 1, false);
    const struct tnd_dims list = {1, {tnd_onnx_shape_of(call, scores)->dims[0]}};
    return tnd_net_reshape(net, tnd_net_gather(net, labels, best, 0), &list);
}

/* ---- linear models ---- */

/* {N, rows}: products of features and coefficients, plus the intercepts; *rows: their number. */
static int linear_scores(struct tnd_onnx_call *call, int64_t *rows)
{
    static const int turned[] = {1, 0};
    struct tnd_net *net = call->net;
    int n;
    int n_intercepts;
    const float *coefficients = tnd_onnx_floats(call, "coefficients", &n);
    const float *intercepts = tnd_onnx_floats(call, "intercepts", &n_intercepts);
    const int x = tnd_onnx_ml_rows(call, TANDEM_DTYPE_F32);
    const int64_t features = x == TANDEM_NET_NONE ? 0 : tnd_onnx_shape_of(call, x)->dims[1];
    if (features < 1 || n < 1 || n % features != 0 ||
        (n_intercepts != 0 && n_intercepts != n / features)) {
        return tnd_onnx_refuse(call, "%d coefficients and %d intercepts for %lld features", n,
                               n_intercepts, (long long)features);
    }
    *rows = n / features;
    const struct tnd_dims list = {1, {*rows}};
    const int w = tnd_onnx_ml_floats(call, coefficients, &TND_DIMS(*rows, features));
    const int y = tnd_net_matmul(net, x, tnd_net_permute(net, w, turned));
    return n_intercepts == 0 ? y
                             : tnd_onnx_binary(call, TANDEM_BINARY_ADD, y,
                                               tnd_onnx_ml_floats(call, intercepts, &list));
}

static void build_linear_regressor(struct tnd_onnx_call *call)
{
    int64_t rows = 0;
    const int64_t targets = tnd_onnx_int(call, "targets", 1);
    const char *how = tnd_onnx_word(call, "post_transform", "NONE");
    const int y = linear_scores(call, &rows);
    if (y != TANDEM_NET_NONE && rows != targets) {
        (void)tnd_onnx_refuse(call, "%lld rows of coefficients for %lld targets", (long long)rows,
                              (long long)targets);
        return;
    }
    call->out[0] = tnd_onnx_ml_transformed(call, y, how);
}

/* One row of coefficients for two labels gives the second label's score. */
static void build_linear_classifier(struct tnd_onnx_call *call)
{
    int64_t rows = 0;
    int n_labels;
    const char *how = tnd_onnx_word(call, "post_transform", "NONE");
    const int labels =
        tnd_onnx_ml_labels(call, "classlabels_ints", "classlabels_strings", &n_labels);
    (void)tnd_onnx_int(call, "multi_class", 0); /* post_transform determines the result */
    int scores = linear_scores(call, &rows);
    if (scores == TANDEM_NET_NONE || rows != n_labels) {
        (void)tnd_onnx_refuse(call, "%lld rows of coefficients for %d labels", (long long)rows,
                              n_labels);
        return;
    }
    call->out[0] = tnd_onnx_ml_label_of(call, labels, scores);
    if (call->n_out > 1) {
        call->out[1] = tnd_onnx_ml_transformed(call, scores, how);
    }
}

/* ---- support vectors ---- */

/* {N, vectors}: the kernel between each row and each vector. */
static int kernel(struct tnd_onnx_call *call, int x, int vectors)
{
    static const int turned[] = {1, 0};
    struct tnd_net *net = call->net;
    const char *type = tnd_onnx_word(call, "kernel_type", "LINEAR");
    int n;
    const float *params = tnd_onnx_floats(call, "kernel_params", &n);
    const double gamma = n > 0 ? (double)params[0] : 0.0;
    const double shift = n > 1 ? (double)params[1] : 0.0;
    const double degree = n > 2 ? (double)params[2] : 0.0;
    const int other = tnd_net_permute(net, vectors, turned);
    const int product = tnd_net_matmul(net, x, other);
    if (strcmp(type, "LINEAR") == 0 || product == TANDEM_NET_NONE) {
        return product;
    }
    if (strcmp(type, "RBF") == 0) { /* exp(-gamma |x - v|^2), of differences: they do not cancel */
        const struct tnd_dims *a = tnd_onnx_shape_of(call, x);
        const struct tnd_dims *b = tnd_onnx_shape_of(call, vectors);
        const struct tnd_dims rows = {3, {a->dims[0], 1, a->dims[1]}};
        const struct tnd_dims columns = {3, {1, b->dims[0], b->dims[1]}};
        const struct tnd_dims to = {2, {a->dims[0], b->dims[0]}};
        const int gap = tnd_onnx_binary(call, TANDEM_BINARY_SUB, tnd_net_reshape(net, x, &rows),
                                        tnd_net_reshape(net, vectors, &columns));
        const int square = tnd_onnx_binary(call, TANDEM_BINARY_MUL, gap, gap);
        const int sum =
            tnd_net_reshape(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, square, 4), &to);
        return tnd_net_formula(net, "sum, gamma: exp(sum * -gamma)", sum, gamma);
    }
    const bool is_power = strcmp(type, "POLY") == 0;
    if (!is_power && strcmp(type, "SIGMOID") != 0) {
        return tnd_onnx_refuse(call, "kernel_type '%.20s'", type);
    }
    return tnd_net_formula(net,
                           is_power ? "x, gamma, shift, degree: pow(x * gamma + shift, degree)"
                                    : "x, gamma, shift, degree: tanh(x * gamma + shift)",
                           product, gamma, shift, degree);
}

static void build_svm_regressor(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    int n;
    int n_values;
    int n_rho;
    const float *coefficients = tnd_onnx_floats(call, "coefficients", &n);
    const float *vectors = tnd_onnx_floats(call, "support_vectors", &n_values);
    const float *rho = tnd_onnx_floats(call, "rho", &n_rho);
    const int64_t supports = tnd_onnx_int(call, "n_supports", 0);
    const bool is_one_class = tnd_onnx_int(call, "one_class", 0) != 0;
    const char *how = tnd_onnx_word(call, "post_transform", "NONE");
    const int x = tnd_onnx_ml_rows(call, TANDEM_DTYPE_F32);
    const int64_t features = x == TANDEM_NET_NONE ? 0 : tnd_onnx_shape_of(call, x)->dims[1];
    const int64_t wanted = supports > 0 ? supports : features;
    if (features < 1 || n != wanted || n_rho != 1 || supports < 0 ||
        (supports > 0 && (n_values % features != 0 || n_values / features != supports))) {
        (void)tnd_onnx_refuse(call, "%d coefficients of %lld vectors of %lld features", n,
                              (long long)supports, (long long)features);
        return;
    }
    const struct tnd_dims column = {2, {wanted, 1}};
    const struct tnd_dims shape = {2, {supports, features}};
    const int weights =
        supports > 0 ? kernel(call, x, tnd_onnx_ml_floats(call, vectors, &shape)) : x;
    if (supports == 0) {
        (void)tnd_onnx_word(call, "kernel_type", "LINEAR");
        (void)tnd_onnx_floats(call, "kernel_params", &n_values);
    }
    int y = tnd_net_matmul(net, weights, tnd_onnx_ml_floats(call, coefficients, &column));
    y = tnd_onnx_with(call, TANDEM_BINARY_ADD, y, (double)rho[0]);
    if (is_one_class) {
        y = tnd_net_formula(net, "y: float32(y > 0) * 2 - 1", y);
    }
    call->out[0] = tnd_onnx_ml_transformed(call, y, how);
}

/* Coefficients that decide between pairs of labels. */
struct pairs {
    int n_labels;
    int64_t n; /* pairs (i, j), i < j, in this order */
    int64_t vectors;
    const int64_t *by_label;   /* number of vectors per label; a label's vectors are contiguous */
    const float *coefficients; /* {labels - 1, vectors} */
};

/* {vectors, pairs}: what each vector counts in the score of a pair, which is above 0 for the first
 * label. Row j - 1 of the coefficients is of label i against j, row i of j against i. */
static int pair_weights(struct tnd_onnx_call *call, const struct pairs *it)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, &TND_DIMS(it->vectors, it->n));
    float *weights = array == NULL ? NULL : array->data;
    int64_t v = 0;
    for (int own = 0; weights != NULL && own < it->n_labels; own++) {
        for (int64_t end = v + it->by_label[own]; v < end; v++) {
            int64_t pair = 0;
            for (int i = 0; i < it->n_labels; i++) {
                for (int j = i + 1; j < it->n_labels; j++, pair++) {
                    const int row = own == i ? j - 1 : i;
                    weights[v * it->n + pair] =
                        own == i || own == j ? it->coefficients[row * it->vectors + v] : 0.0F;
                }
            }
        }
    }
    return tnd_net_constant(call->net, array);
}

/* {N, labels}: number of pairs that each label wins. */
static int pair_votes(struct tnd_onnx_call *call, const struct pairs *it, int scores)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, &TND_DIMS(it->n, it->n_labels));
    struct tnd_array *base = tnd_array_new(TANDEM_DTYPE_F32, &TND_DIMS(it->n_labels));
    int64_t pair = 0;
    for (int i = 0; array != NULL && base != NULL && i < it->n_labels; i++) {
        ((float *)base->data)[i] = (float)i; /* second in i pairs, which it wins if nobody else */
        for (int j = i + 1; j < it->n_labels; j++, pair++) {
            ((float *)array->data)[pair * it->n_labels + i] = 1.0F;
            ((float *)array->data)[pair * it->n_labels + j] = -1.0F;
        }
    }
    const int moves = tnd_net_constant(call->net, array);
    const int first = tnd_net_constant(call->net, base);
    const int wins = tnd_net_cast(
        call->net,
        tnd_onnx_binary(call, TANDEM_BINARY_LESS, tnd_onnx_scalar(call, scores, 0.0), scores),
        TANDEM_DTYPE_F32);
    return tnd_onnx_binary(call, TANDEM_BINARY_ADD, tnd_net_matmul(call->net, wins, moves), first);
}

#define MAX_LABELS  1024
#define MAX_WEIGHTS (1 << 26) /* of vectors and pairs */

static bool read_pairs(struct tnd_onnx_call *call, struct pairs *it, int64_t features)
{
    int n;
    int n_coefficients;
    int n_values;
    bool is_positive = true;
    it->by_label = tnd_onnx_ints(call, "vectors_per_class", &n);
    it->coefficients = tnd_onnx_floats(call, "coefficients", &n_coefficients);
    (void)tnd_onnx_floats(call, "support_vectors", &n_values);
    it->n = (int64_t)it->n_labels * (it->n_labels - 1) / 2;
    if (n != it->n_labels || n < 2 || n > MAX_LABELS || features < 1) {
        (void)tnd_onnx_refuse(call, "vectors of %d labels for %d labels and %lld features", n,
                              it->n_labels, (long long)features);
        return false;
    }
    for (int i = 0; i < n && it->vectors <= n_values; i++) {
        it->vectors += it->by_label[i] >= 0 && it->by_label[i] <= n_values ? it->by_label[i]
                                                                           : (int64_t)n_values + 1;
    }
    for (int i = 0; i < n_coefficients; i++) {
        is_positive = is_positive && it->coefficients[i] >= 0;
    }
    if (it->vectors < 1 || it->vectors > n_values || it->vectors * features != n_values ||
        it->vectors * (n - 1) != n_coefficients || it->vectors * it->n > MAX_WEIGHTS) {
        (void)tnd_onnx_refuse(call, "%d values of %lld vectors with %d coefficients", n_values,
                              (long long)it->vectors, n_coefficients);
        return false;
    }
    if (is_positive && n == 2) { /* (runtimes then have a rule of their own) */
        (void)tnd_onnx_refuse(call, "no coefficient of two labels is below 0");
    }
    return call->net->status == TANDEM_OK;
}

/* Scores of pairs; of two labels both, with opposite signs. */
static void build_svm_classifier(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    struct pairs it = {.vectors = 0};
    int n_values;
    int n_rho;
    const int labels =
        tnd_onnx_ml_labels(call, "classlabels_ints", "classlabels_strings", &it.n_labels);
    const float *vectors = tnd_onnx_floats(call, "support_vectors", &n_values);
    const float *rho = tnd_onnx_floats(call, "rho", &n_rho);
    const char *how = tnd_onnx_word(call, "post_transform", "NONE");
    const int x = tnd_onnx_ml_rows(call, TANDEM_DTYPE_F32);
    if (x == TANDEM_NET_NONE || !read_pairs(call, &it, tnd_onnx_shape_of(call, x)->dims[1])) {
        return;
    }
    if (tnd_onnx_has(call, "prob_a") || tnd_onnx_has(call, "prob_b")) {
        (void)tnd_onnx_refuse(call, "its probabilities are not computed: export it without them");
        return;
    }
    if (n_rho != it.n || strcmp(how, "NONE") != 0) {
        (void)tnd_onnx_refuse(call,
                              "%d values of rho and post_transform '%.20s', expected %d and NONE",
                              n_rho, how, (int)it.n);
        return;
    }
    const struct tnd_dims shape = {2, {it.vectors, tnd_onnx_shape_of(call, x)->dims[1]}};
    const struct tnd_dims list = {1, {it.n}};
    const int near = kernel(call, x, tnd_onnx_ml_floats(call, vectors, &shape));
    const int sums = tnd_net_matmul(net, near, pair_weights(call, &it));
    const int scores =
        tnd_onnx_binary(call, TANDEM_BINARY_ADD, sums, tnd_onnx_ml_floats(call, rho, &list));
    if (scores == TANDEM_NET_NONE) {
        return;
    }
    call->out[0] = tnd_onnx_ml_label_of(call, labels, pair_votes(call, &it, scores));
    if (call->n_out > 1) {
        const int both[] = {tnd_net_unary(net, TANDEM_UNARY_NEG, scores), scores};
        call->out[1] = it.n_labels == 2 ? tnd_net_concat(net, both, 2, 1) : scores;
    }
}

/* ---- scalers ---- */

/* A list of one number, or one per feature, shaped to broadcast along the last dimension. */
static int by_feature(struct tnd_onnx_call *call, const char *name, int x)
{
    int n;
    const float *list = tnd_onnx_floats(call, name, &n);
    const struct tnd_dims *shape = tnd_onnx_shape_of(call, x);
    const int64_t features = shape->n > 0 ? shape->dims[shape->n - 1] : 1;
    if (n < 1 || (n != 1 && n != features)) {
        return tnd_onnx_refuse(call, "%s has %d values for %lld features", name, n,
                               (long long)features);
    }
    return tnd_onnx_ml_floats(call, list, &TND_DIMS(n));
}

static void build_scaler(struct tnd_onnx_call *call)
{
    const int x = tnd_net_cast(call->net, tnd_onnx_in(call, 0), TANDEM_DTYPE_F32);
    const int offset = by_feature(call, "offset", x);
    const int scale = by_feature(call, "scale", x);
    call->out[0] =
        tnd_net_formula(call->net, "x, offset, scale: (x - offset) * scale", x, offset, scale);
}

/* Rows whose norm is 0 stay as they are. */
static void build_normalizer(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int x = tnd_net_cast(net, tnd_onnx_in(call, 0), TANDEM_DTYPE_F32);
    const int rank = tnd_onnx_shape_of(call, x)->n;
    const char *norm = tnd_onnx_word(call, "norm", "MAX");
    if (rank < 1) {
        (void)tnd_onnx_refuse(call, "no dimensions");
        return;
    }
    const unsigned last = 1U << (rank - 1);
    int by = TANDEM_NET_NONE;
    if (strcmp(norm, "MAX") == 0) {
        by = tnd_net_reduce(net, TANDEM_REDUCE_MAX, x, last);
    } else if (strcmp(norm, "L1") == 0) {
        by = tnd_net_reduce(net, TANDEM_REDUCE_SUM, tnd_net_unary(net, TANDEM_UNARY_ABS, x), last);
    } else if (strcmp(norm, "L2") == 0) {
        const int squares = tnd_onnx_binary(call, TANDEM_BINARY_MUL, x, x);
        by = tnd_net_unary(net, TANDEM_UNARY_SQRT,
                           tnd_net_reduce(net, TANDEM_REDUCE_SUM, squares, last));
    } else {
        (void)tnd_onnx_refuse(call, "norm '%.20s'", norm);
        return;
    }
    call->out[0] = tnd_onnx_divided(call, x, by);
}

static void build_binarizer(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const double threshold = (double)tnd_onnx_float(call, "threshold", 0.0F);
    const enum tandem_dtype wide = tnd_dtype_kind(tnd_onnx_type_of(call, x)) == TND_KIND_FLOAT
                                       ? tnd_onnx_type_of(call, x)
                                       : TANDEM_DTYPE_F64;
    const int number = tnd_net_cast(call->net, x, wide);
    const int above =
        tnd_net_formula(call->net, "number, bound: number > bound", number, threshold);
    call->out[0] = tnd_net_cast(call->net, above, tnd_onnx_type_of(call, x));
}

/* Integers, one or one per feature, as a constant of a value's type. */
static int integers_by_feature(struct tnd_onnx_call *call, const char *name, int x)
{
    int n;
    const int64_t *list = tnd_onnx_ints(call, name, &n);
    const struct tnd_dims *shape = tnd_onnx_shape_of(call, x);
    const int64_t features = shape->n > 0 ? shape->dims[shape->n - 1] : 1;
    if (n < 1 || (n != 1 && n != features)) {
        return tnd_onnx_refuse(call, "%s has %d values for %lld features", name, n,
                               (long long)features);
    }
    return tnd_net_cast(call->net, tnd_net_integers(call->net, list, n), tnd_onnx_type_of(call, x));
}

static void build_imputer(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int x = tnd_onnx_in(call, 0);
    const bool is_float = tnd_dtype_kind(tnd_onnx_type_of(call, x)) == TND_KIND_FLOAT;
    const float missing = tnd_onnx_float(call, "replaced_value_float", 0.0F);
    const int64_t missing_integer = tnd_onnx_int(call, "replaced_value_int64", 0);
    int is_missing;
    int other;
    if (is_float) {
        is_missing = isnan(missing) ? tnd_net_unary(net, TANDEM_UNARY_IS_NAN, x)
                                    : tnd_onnx_binary(call, TANDEM_BINARY_EQUAL, x,
                                                      tnd_onnx_scalar(call, x, (double)missing));
        other = tnd_net_cast(net, by_feature(call, "imputed_value_floats", x),
                             tnd_onnx_type_of(call, x));
    } else {
        const int number = tnd_net_integers(net, &missing_integer, 1);
        is_missing = tnd_onnx_binary(call, TANDEM_BINARY_EQUAL, x,
                                     tnd_net_cast(net, number, tnd_onnx_type_of(call, x)));
        other = integers_by_feature(call, "imputed_value_int64s", x);
    }
    call->out[0] = tnd_net_select(net, is_missing, other, x);
}

/* ---- encoders ---- */

/* A constant of the list that one of three attributes has: floats, integers, a tensor. `n`: its
 * count, 0 where there is none. */
static int list_of(struct tnd_onnx_call *call, const char *const names[4], int *n)
{
    *n = 0;
    if (tnd_onnx_has(call, names[0])) {
        const float *list = tnd_onnx_floats(call, names[0], n);
        const struct tnd_dims shape = {1, {*n}};
        return tnd_onnx_ml_floats(call, list, &shape);
    }
    if (tnd_onnx_has(call, names[1])) {
        const int64_t *list = tnd_onnx_ints(call, names[1], n);
        return tnd_net_integers(call->net, list, *n);
    }
    if (tnd_onnx_has(call, names[2])) {
        const struct tnd_onnx_tensor *tensor = tnd_onnx_tensor_of(call, names[2]);
        struct tnd_array *array = NULL;
        if (tensor == NULL || tnd_onnx_array(tensor, &array, NULL) != TANDEM_OK) {
            return tnd_onnx_refuse(call, "%s is no tensor of numbers", names[2]);
        }
        *n = array->n <= 1 << 24 ? (int)array->n : 0;
        const struct tnd_dims shape = {1, {array->n}};
        return tnd_net_reshape(call->net, tnd_net_constant(call->net, array), &shape);
    }
    return tnd_onnx_refuse(call, tnd_onnx_has(call, names[3]) ? "%s are texts" : "no %s", names[3]);
}

/* {values, keys}: whether a value equals a key. NaN equals NaN. */
static int key_matches(struct tnd_onnx_call *call, int x, int keys, int64_t n)
{
    struct tnd_net *net = call->net;
    const int64_t values = tnd_dims_values(tnd_onnx_shape_of(call, x));
    if (n < 1 || values < 0 || values > MAX_COMPARED / n) {
        return tnd_onnx_refuse(call, "%lld keys, expected 1 or more and fewer than %d comparisons",
                               (long long)n, MAX_COMPARED);
    }
    x = tnd_net_reshape(net, x, &TND_DIMS(values, 1));
    keys = tnd_net_reshape(net, keys, &TND_DIMS(1, n));
    const int equal = tnd_onnx_binary(call, TANDEM_BINARY_EQUAL, x, keys);
    if (tnd_dtype_kind(tnd_onnx_type_of(call, x)) != TND_KIND_FLOAT) {
        return equal;
    }
    return tnd_net_formula(net, "equal, x, key: equal | is_nan(x) & is_nan(key)", equal, x, keys);
}

/* A label encoder's result for values without a key. */
static int default_of(struct tnd_onnx_call *call, int values)
{
    const bool is_float = tnd_dtype_kind(tnd_onnx_type_of(call, values)) == TND_KIND_FLOAT;
    const float number = tnd_onnx_float(call, "default_float", -0.0F);
    const int64_t integer = tnd_onnx_int(call, "default_int64", -1);
    const struct tnd_onnx_tensor *tensor =
        tnd_onnx_has(call, "default_tensor") ? tnd_onnx_tensor_of(call, "default_tensor") : NULL;
    static const struct tnd_dims scalar;
    struct tnd_array *array = NULL;
    (void)tnd_onnx_word(call, "default_string", "");
    if (tensor == NULL) {
        return is_float
                   ? tnd_onnx_scalar(call, values, (double)number)
                   : tnd_net_cast(call->net,
                                  tnd_net_reshape(
                                      call->net, tnd_net_integers(call->net, &integer, 1), &scalar),
                                  tnd_onnx_type_of(call, values));
    }
    if (tensor->n_values != 1 || tnd_onnx_array(tensor, &array, NULL) != TANDEM_OK) {
        return tnd_onnx_refuse(call, "default_tensor is not one number");
    }
    return tnd_net_cast(call->net,
                        tnd_net_reshape(call->net, tnd_net_constant(call->net, array), &scalar),
                        tnd_onnx_type_of(call, values));
}

/* Of duplicate keys the last one counts. */
static void build_label_encoder(struct tnd_onnx_call *call)
{
    static const char *const of_keys[] = {"keys_floats", "keys_int64s", "keys_tensor",
                                          "keys_strings"};
    static const char *const of_values[] = {"values_floats", "values_int64s", "values_tensor",
                                            "values_strings"};
    struct tnd_net *net = call->net;
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    int n;
    int n_values;
    const int keys = list_of(call, of_keys, &n);
    const int values = list_of(call, of_values, &n_values);
    if (net->status != TANDEM_OK || n != n_values) {
        (void)tnd_onnx_refuse(call, "%d keys and %d values", n, n_values);
        return;
    }
    const int matches = key_matches(call, x, tnd_net_cast(net, keys, tnd_onnx_type_of(call, x)), n);
    const int at =
        tnd_net_arg_reduce(net, true, tnd_net_cast(net, matches, TANDEM_DTYPE_U8), 1, true);
    const int found = tnd_net_cast(
        net, tnd_net_reduce(net, TANDEM_REDUCE_MAX, tnd_net_cast(net, matches, TANDEM_DTYPE_U8), 2),
        TANDEM_DTYPE_BOOL);
    const int y =
        tnd_net_select(net, found, tnd_net_gather(net, values, at, 0), default_of(call, values));
    call->out[0] = tnd_net_reshape(net, y, &shape);
}

/* An unknown category gives zeros, even if the model declares it an error. */
static void build_one_hot_encoder(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    int n;
    const int64_t *list = tnd_onnx_ints(call, "cats_int64s", &n);
    const int x = tnd_net_cast(net, tnd_onnx_in(call, 0), TANDEM_DTYPE_I64);
    struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    (void)tnd_onnx_int(call, "zeros", 1);
    if (n < 1 || shape.n == TANDEM_NET_MAX_DIMS) {
        (void)tnd_onnx_refuse(call, tnd_onnx_has(call, "cats_strings")
                                        ? "cats_strings: categories are texts"
                                        : "no categories");
        return;
    }
    shape.dims[shape.n++] = n;
    const int matches = key_matches(call, x, tnd_net_integers(net, list, n), n);
    call->out[0] = tnd_net_reshape(net, tnd_net_cast(net, matches, TANDEM_DTYPE_F32), &shape);
}

/* Selects columns by index; a 1-dimensional operand is one row. */
static void build_extractor(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    int x = tnd_onnx_in(call, 0);
    const int at = tnd_onnx_in(call, 1);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const struct tnd_dims list = {1, {tnd_dims_values(tnd_onnx_shape_of(call, at))}};
    if (shape.n < 1) {
        (void)tnd_onnx_refuse(call, "no dimensions");
        return;
    }
    x = shape.n == 1 ? tnd_net_reshape(net, x, &TND_DIMS(1, shape.dims[0])) : x;
    call->out[0] =
        tnd_net_gather(net, x, tnd_net_reshape(net, at, &list), shape.n == 1 ? 1 : shape.n - 1);
}

#define MAX_JOINED 1024

static void build_vectorizer(struct tnd_onnx_call *call)
{
    int parts[MAX_JOINED];
    int n;
    (void)tnd_onnx_ints(call, "inputdimensions", &n); /* known from the operands */
    for (int i = 0; i < call->n_in && i < MAX_JOINED; i++) {
        const struct tnd_dims *shape = tnd_onnx_shape_of(call, tnd_onnx_in(call, i));
        const struct tnd_dims row = {2, {1, shape->dims[0]}};
        parts[i] =
            tnd_net_cast(call->net,
                         shape->n == 1 ? tnd_net_reshape(call->net, tnd_onnx_in(call, i), &row)
                                       : tnd_onnx_in(call, i),
                         TANDEM_DTYPE_F32);
    }
    if (call->n_in > MAX_JOINED) {
        (void)tnd_onnx_refuse(call, "more than %d operands", MAX_JOINED);
        return;
    }
    if (call->net->status == TANDEM_OK) {
        call->out[0] = tnd_net_concat(call->net, parts, call->n_in, 1);
    }
}

/* Nets have no maps: the values stay a matrix with a column per label. */
static void build_zip_map(struct tnd_onnx_call *call)
{
    int n;
    (void)tnd_onnx_ints(call, "classlabels_int64s", &n);
    (void)tnd_onnx_strings(call, "classlabels_strings", &n);
    call->out[0] = tnd_onnx_in(call, 0);
}

const struct tnd_onnx_op tnd_onnx_ml[] = {
    {"ArrayFeatureExtractor", build_extractor, 0, "2"},
    {"Binarizer", build_binarizer, 0, "1"},
    {"FeatureVectorizer", build_vectorizer, 0, "1-*"},
    {"Imputer", build_imputer, 0, "1"},
    {"LabelEncoder", build_label_encoder, 0, "1"},
    {"LinearClassifier", build_linear_classifier, 0, "1>1-2"},
    {"LinearRegressor", build_linear_regressor, 0, "1"},
    {"Normalizer", build_normalizer, 0, "1"},
    {"OneHotEncoder", build_one_hot_encoder, 0, "1"},
    {"SVMClassifier", build_svm_classifier, 0, "1>1-2"},
    {"SVMRegressor", build_svm_regressor, 0, "1"},
    {"Scaler", build_scaler, 0, "1"},
    {"ZipMap", build_zip_map, 0, "1"},
    {NULL, NULL, 0, NULL},
};
