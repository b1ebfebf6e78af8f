/* SPDX-License-Identifier: MIT
 * Ensembles of trees of the domain ai.onnx.ml: all rows go down all trees at once, a level of the
 * trees after the other, by indices into lists of nodes. A leaf leads to itself.
 * Formulas: https://github.com/onnx/onnx/blob/v1.18.0/docs/Operators-ml.md#TreeEnsemble; what
 * becomes of two classes with one score is what ONNX Runtime 1.32 computes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/onnx_op.h"
#include "formats/onnx_op_ml.h"

#define MAX_LEVELS  256
#define MAX_NODES   (1 << 24)
#define MAX_WEIGHTS (1 << 27) /* of all leaves and targets */

enum mode { LEQ, LESS, GTE, GREATER, EQUAL, NOT_EQUAL, MEMBER, LEAF };

/* Lists have room for `room` nodes. */
struct forest {
    int64_t n;
    int64_t room;
    int64_t n_trees;
    int64_t n_leaves;
    int64_t n_targets;
    int levels;
    unsigned modes;   /* bit i: a node has mode i */
    bool has_missing; /* a node sends NaN to its first branch */
    int64_t *feature;
    int64_t *yes; /* a leaf: itself */
    int64_t *no;
    int64_t *leaf;  /* number of a leaf; of other nodes 0 */
    int64_t *roots; /* n_trees */
    double *value;
    uint8_t *mode;
    uint8_t *missing;
    float *weights;   /* {n_leaves, n_targets} */
    uint8_t *is_set;  /* n_targets: whether a leaf has a weight for it */
    bool is_positive; /* no weight is negative */
};

static void forest_fini(struct forest *it)
{
    void *const lists[] = {it->feature, it->yes,  it->no,      it->leaf,    it->roots,
                           it->value,   it->mode, it->missing, it->weights, it->is_set};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        tnd_free(lists[i]);
    }
}

static bool forest_init(struct tnd_onnx_call *call, struct forest *it, int64_t room)
{
    const size_t n = (size_t)room + 1;
    it->room = room;
    it->feature = tnd_calloc(n, sizeof(it->feature[0]));
    it->yes = tnd_calloc(n, sizeof(it->yes[0]));
    it->no = tnd_calloc(n, sizeof(it->no[0]));
    it->leaf = tnd_calloc(n, sizeof(it->leaf[0]));
    it->roots = tnd_calloc(n, sizeof(it->roots[0]));
    it->value = tnd_calloc(n, sizeof(it->value[0]));
    it->mode = tnd_calloc(n, sizeof(it->mode[0]));
    it->missing = tnd_calloc(n, sizeof(it->missing[0]));
    it->is_set = tnd_calloc((size_t)it->n_targets + 1, sizeof(it->is_set[0]));
    const bool has_memory = it->feature != NULL && it->yes != NULL && it->no != NULL &&
                            it->leaf != NULL && it->roots != NULL && it->value != NULL &&
                            it->mode != NULL && it->missing != NULL && it->is_set != NULL;
    if (!has_memory) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for %lld nodes", (long long)room);
    }
    return has_memory;
}

/* Room for the weights, once the number of leaves is known. */
static bool weights_init(struct tnd_onnx_call *call, struct forest *it)
{
    if (it->n_leaves < 1 || it->n_leaves > MAX_WEIGHTS / it->n_targets) {
        (void)tnd_onnx_refuse(call, "%lld leaves and %lld targets", (long long)it->n_leaves,
                              (long long)it->n_targets);
        return false;
    }
    it->is_positive = true;
    it->weights = tnd_calloc((size_t)(it->n_leaves * it->n_targets), sizeof(it->weights[0]));
    if (it->weights == NULL) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for weights");
    }
    return it->weights != NULL;
}

/* Where smallest or largest weights are wanted, those that are not there must not count. */
static void fill_weights(struct forest *it, const char *aggregate)
{
    const bool is_min = strcmp(aggregate, "MIN") == 0;
    if (is_min || strcmp(aggregate, "MAX") == 0) {
        for (int64_t i = 0; i < it->n_leaves * it->n_targets; i++) {
            it->weights[i] = is_min ? INFINITY : -INFINITY;
        }
    }
}

static bool add_weight(struct tnd_onnx_call *call, struct forest *it, int64_t leaf, int64_t target,
                       double weight)
{
    if (target < 0 || target >= it->n_targets) {
        (void)tnd_onnx_refuse(call, "a weight of target %lld of %lld", (long long)target,
                              (long long)it->n_targets);
        return false;
    }
    float *to = &it->weights[leaf * it->n_targets + target];
    *to = (isinf(*to) ? 0.0F : *to) + (float)weight;
    it->is_set[target] = 1;
    it->is_positive = it->is_positive && weight >= 0.0;
    return true;
}

/* How many levels there are below the roots; refused where nodes lead in circles. */
static bool count_levels(struct tnd_onnx_call *call, struct forest *it)
{
    int *depth = tnd_calloc((size_t)it->n, sizeof(depth[0]));
    bool goes_on = depth != NULL;
    for (int i = 0; i <= MAX_LEVELS && goes_on; i++) {
        goes_on = false;
        for (int64_t k = 0; k < it->n; k++) {
            const int64_t next[] = {it->yes[k], it->no[k]};
            for (int b = 0; b < 2; b++) {
                if (it->mode[k] != LEAF && depth[next[b]] <= depth[k] && depth[k] <= MAX_LEVELS) {
                    depth[next[b]] = depth[k] + 1;
                    it->levels = depth[k] + 1 > it->levels ? depth[k] + 1 : it->levels;
                    goes_on = true;
                }
            }
        }
    }
    if (depth == NULL) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for nodes");
    } else if (goes_on || it->levels > MAX_LEVELS) {
        (void)tnd_onnx_refuse(call, "more than %d levels, or nodes in a circle", MAX_LEVELS);
    }
    tnd_free(depth);
    return call->net->status == TANDEM_OK;
}

/* ---- lists of numbers ---- */

/* Numbers of an attribute of floats, or of a tensor. */
struct numbers {
    const float *floats;
    struct tnd_array *array;
    int64_t n;
};

static bool read_numbers(struct tnd_onnx_call *call, const char *name, const char *tensor_name,
                         struct numbers *out)
{
    int n = 0;
    *out = (struct numbers){.n = 0};
    if (tensor_name != NULL && tnd_onnx_has(call, tensor_name)) {
        const struct tnd_onnx_tensor *tensor = tnd_onnx_tensor_of(call, tensor_name);
        if (tensor == NULL || tensor->n_values > MAX_NODES ||
            tnd_onnx_array(tensor, &out->array, NULL) != TANDEM_OK) {
            (void)tnd_onnx_refuse(call, "%s is no list of numbers", tensor_name);
            return false;
        }
        out->n = out->array->n;
        return true;
    }
    if (name != NULL) {
        out->floats = tnd_onnx_floats(call, name, &n);
        out->n = n;
    }
    return call->net->status == TANDEM_OK;
}

static double number_at(const struct numbers *it, int64_t i)
{
    return it->array != NULL ? tnd_array_number(it->array, i) : (double)it->floats[i];
}

/* ---- nodes of TreeEnsembleClassifier and Regressor ---- */

/* A node's names, to be found by. */
struct named {
    int64_t tree;
    int64_t node;
    int64_t at;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a;
    const struct named *y = b;
    return x->tree != y->tree ? (x->tree > y->tree) - (x->tree < y->tree)
                              : (x->node > y->node) - (x->node < y->node);
}

static int64_t find_named(const struct named *list, int64_t n, int64_t tree, int64_t node)
{
    const struct named key = {tree, node, 0};
    const struct named *found = bsearch(&key, list, (size_t)n, sizeof(key), compare_named);
    return found != NULL ? found->at : -1;
}

/* What lists of one kind of ensemble are called. */
struct names {
    const char *trees;
    const char *nodes;
    const char *ids;
    const char *weights;
    const char *weights_tensor;
};

static int mode_of(const struct tnd_onnx_string *word)
{
    static const char *const words[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
    for (int i = 0; i < 8; i++) {
        if (i != MEMBER && strlen(words[i]) == word->n &&
            memcmp(words[i], word->bytes, word->n) == 0) {
            return i;
        }
    }
    return -1;
}

/* An attribute of `wanted` integers; NULL: refused, or, where it may be missing, missing. */
static const int64_t *integers(struct tnd_onnx_call *call, const char *name, int64_t wanted,
                               bool may_miss)
{
    int n;
    const int64_t *list = tnd_onnx_ints(call, name, &n);
    if (n != wanted && !(may_miss && n == 0)) {
        (void)tnd_onnx_refuse(call, "%s has %d values, expected %lld", name, n, (long long)wanted);
        return NULL;
    }
    return n == 0 ? NULL : list;
}

/* Features, thresholds and branches; `list` has the names in order. */
static bool read_branches(struct tnd_onnx_call *call, struct forest *it, const struct named *list,
                          const int64_t *trees, const struct numbers *values)
{
    int n_modes;
    const struct tnd_onnx_string *modes = tnd_onnx_strings(call, "nodes_modes", &n_modes);
    const int64_t *features = integers(call, "nodes_featureids", it->n, false);
    const int64_t *yes = integers(call, "nodes_truenodeids", it->n, false);
    const int64_t *no = integers(call, "nodes_falsenodeids", it->n, false);
    const int64_t *missing = integers(call, "nodes_missing_value_tracks_true", it->n, true);
    if (call->net->status != TANDEM_OK || n_modes != it->n || values->n != it->n) {
        (void)tnd_onnx_refuse(call, "lists of nodes of different lengths");
        return false;
    }
    for (int64_t i = 0; i < it->n; i++) {
        const int mode = mode_of(&modes[i]);
        const bool is_leaf = mode == LEAF;
        it->mode[i] = (uint8_t)mode;
        it->feature[i] = is_leaf ? 0 : features[i];
        it->value[i] = number_at(values, i);
        it->yes[i] = is_leaf ? i : find_named(list, it->n, trees[i], yes[i]);
        it->no[i] = is_leaf ? i : find_named(list, it->n, trees[i], no[i]);
        it->missing[i] = !is_leaf && missing != NULL && missing[i] != 0;
        it->has_missing = it->has_missing || it->missing[i] != 0;
        it->modes |= is_leaf || mode < 0 ? 0 : 1U << mode;
        it->leaf[i] = is_leaf ? it->n_leaves++ : 0;
        if (mode < 0 || it->yes[i] < 0 || it->no[i] < 0) {
            (void)tnd_onnx_refuse(call, "node %lld: mode '%.*s', or a branch that is not there",
                                  (long long)i, (int)(modes[i].n < 20 ? modes[i].n : 20),
                                  (const char *)modes[i].bytes);
            return false;
        }
    }
    return true;
}

/* A tree begins at the node to which no branch leads. */
static bool find_roots(struct tnd_onnx_call *call, struct forest *it)
{
    uint8_t *is_child = tnd_calloc((size_t)it->n, 1);
    for (int64_t i = 0; is_child != NULL && i < it->n; i++) {
        if (it->mode[i] != LEAF) {
            is_child[it->yes[i]] = 1;
            is_child[it->no[i]] = 1;
        }
    }
    for (int64_t i = 0; is_child != NULL && i < it->n; i++) {
        if (is_child[i] == 0) {
            it->roots[it->n_trees++] = i;
        }
    }
    if (is_child == NULL) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for nodes");
    } else if (it->n_trees == 0) {
        (void)tnd_onnx_refuse(call, "nodes in a circle");
    }
    tnd_free(is_child);
    return call->net->status == TANDEM_OK;
}

static bool read_weights(struct tnd_onnx_call *call, struct forest *it, const struct named *list,
                         const struct names *names, const char *aggregate)
{
    struct numbers weights;
    if (!read_numbers(call, names->weights, names->weights_tensor, &weights) ||
        !weights_init(call, it)) {
        tnd_array_free(weights.array);
        return false;
    }
    const int64_t *trees = integers(call, names->trees, weights.n, false);
    const int64_t *nodes = integers(call, names->nodes, weights.n, false);
    const int64_t *ids = integers(call, names->ids, weights.n, false);
    fill_weights(it, aggregate);
    for (int64_t i = 0; i < weights.n && call->net->status == TANDEM_OK; i++) {
        const int64_t at = find_named(list, it->n, trees[i], nodes[i]);
        if (at < 0 || it->mode[at] != LEAF) {
            (void)tnd_onnx_refuse(call, "a weight of a node that is no leaf");
            break;
        }
        (void)add_weight(call, it, it->leaf[at], ids[i], number_at(&weights, i));
    }
    tnd_array_free(weights.array);
    return call->net->status == TANDEM_OK;
}

static bool read_named_forest(struct tnd_onnx_call *call, struct forest *it,
                              const struct names *names, const char *aggregate)
{
    struct numbers values = {.n = 0};
    int n;
    const int64_t *nodes = tnd_onnx_ints(call, "nodes_nodeids", &n);
    const int64_t *trees = integers(call, "nodes_treeids", n, false);
    int ignored;
    (void)tnd_onnx_floats(call, "nodes_hitrates", &ignored);
    (void)tnd_onnx_tensor_of(call, "nodes_hitrates_as_tensor");
    if (trees == NULL || n < 1 || n > MAX_NODES || !forest_init(call, it, n)) {
        (void)tnd_onnx_refuse(call, "%d nodes", n);
        return false;
    }
    struct named *list = tnd_calloc((size_t)n, sizeof(list[0]));
    if (list == NULL) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for %d nodes", n);
        return false;
    }
    it->n = n;
    for (int64_t i = 0; i < n; i++) {
        list[i] = (struct named){trees[i], nodes[i], i};
    }
    qsort(list, (size_t)n, sizeof(list[0]), compare_named);
    const bool is_good = read_numbers(call, "nodes_values", "nodes_values_as_tensor", &values) &&
                         read_branches(call, it, list, trees, &values) && find_roots(call, it) &&
                         count_levels(call, it) && read_weights(call, it, list, names, aggregate);
    tnd_array_free(values.array);
    tnd_free(list);
    return is_good;
}

/* ---- down the trees ---- */

/* A constant list of a value for each node. */
static int node_list(struct tnd_onnx_call *call, enum tandem_dtype type, const void *values,
                     int64_t n)
{
    struct tnd_array *array = tnd_array_new(type, &TND_DIMS(n));
    if (array != NULL) {
        memcpy(array->data, values, (size_t)n * tandem_dtype_bytes(type));
    }
    return tnd_net_constant(call->net, array);
}

/* Constants of the nodes. */
struct lists {
    int feature;
    int value;
    int mode;
    int yes;
    int no;
    int missing;
};

static int answers(struct tnd_onnx_call *call, const struct forest *it, const struct lists *lists,
                   int x, int at)
{
    static const char *const questions[] = {
        [LEQ] = "x, bound: x <= bound",   [LESS] = "x, bound: x < bound",
        [GTE] = "x, bound: x >= bound",   [GREATER] = "x, bound: x > bound",
        [EQUAL] = "x, bound: x == bound", [NOT_EQUAL] = "x, bound: !(x == bound)"};
    struct tnd_net *net = call->net;
    const int feature =
        tnd_net_gather_elements(net, x, tnd_net_gather(net, lists->feature, at, 0), 1);
    const int number = tnd_net_gather(net, lists->value, at, 0);
    int answer = TANDEM_NET_NONE;
    for (int mode = LEQ; mode <= NOT_EQUAL; mode++) {
        if ((it->modes >> mode & 1) == 0) {
            continue;
        }
        const int one = tnd_net_formula(net, questions[mode], feature, number);
        if (it->modes == 1U << mode) {
            answer = one;
            break;
        }
        const int both = tnd_net_formula(net, "answer, own, mode: answer & own == mode", one,
                                         tnd_net_gather(net, lists->mode, at, 0), (double)mode);
        answer = answer == TANDEM_NET_NONE ? both
                                           : tnd_onnx_binary(call, TANDEM_BINARY_OR, answer, both);
    }
    if (it->has_missing) {
        const int missing = tnd_net_gather(net, lists->missing, at, 0);
        answer = tnd_net_formula(net, "answer, x, missing: answer | is_nan(x) & missing", answer,
                                 feature, missing);
    }
    return answer;
}

/* {N, trees}: the leaf of each row in each tree. */
static int leaves_of(struct tnd_onnx_call *call, const struct forest *it, int x)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims shape = {2, {tnd_onnx_shape_of(call, x)->dims[0], it->n_trees}};
    const enum tandem_dtype type = tnd_onnx_type_of(call, x);
    const struct lists lists = {
        .feature = node_list(call, TANDEM_DTYPE_I64, it->feature, it->n),
        .value = tnd_net_cast(net, node_list(call, TANDEM_DTYPE_F64, it->value, it->n), type),
        .mode = node_list(call, TANDEM_DTYPE_U8, it->mode, it->n),
        .yes = node_list(call, TANDEM_DTYPE_I64, it->yes, it->n),
        .no = node_list(call, TANDEM_DTYPE_I64, it->no, it->n),
        .missing = node_list(call, TANDEM_DTYPE_BOOL, it->missing, it->n)};
    int at = tnd_net_expand(net, node_list(call, TANDEM_DTYPE_I64, it->roots, it->n_trees), &shape);
    for (int level = 0; level < it->levels && net->status == TANDEM_OK; level++) {
        const int answer = answers(call, it, &lists, x, at);
        at = tnd_net_select(net, answer, tnd_net_gather(net, lists.yes, at, 0),
                            tnd_net_gather(net, lists.no, at, 0));
    }
    return tnd_net_gather(net, node_list(call, TANDEM_DTYPE_I64, it->leaf, it->n), at, 0);
}

/* {N, targets}: what the trees say together. */
static int scores_of(struct tnd_onnx_call *call, const struct forest *it, const char *aggregate)
{
    struct tnd_net *net = call->net;
    const int in = tnd_onnx_in(call, 0);
    const bool is_double = tnd_onnx_type_of(call, in) == TANDEM_DTYPE_F64;
    const int x = tnd_onnx_ml_rows(call, is_double ? TANDEM_DTYPE_F64 : TANDEM_DTYPE_F32);
    const struct tnd_dims table = {2, {it->n_leaves, it->n_targets}};
    if (x == TANDEM_NET_NONE) {
        return x;
    }
    const struct tnd_dims to = {2, {tnd_onnx_shape_of(call, x)->dims[0], it->n_targets}};
    for (int64_t i = 0; i < it->n; i++) {
        if (it->feature[i] < 0 || it->feature[i] >= tnd_onnx_shape_of(call, x)->dims[1]) {
            return tnd_onnx_refuse(call, "feature %lld", (long long)it->feature[i]);
        }
    }
    const bool is_mean = strcmp(aggregate, "AVERAGE") == 0;
    const bool is_sum = strcmp(aggregate, "SUM") == 0 || is_mean;
    const enum tandem_reduce kind = is_sum                          ? TANDEM_REDUCE_SUM
                                    : strcmp(aggregate, "MIN") == 0 ? TANDEM_REDUCE_MIN
                                                                    : TANDEM_REDUCE_MAX;
    if (!is_sum && kind == TANDEM_REDUCE_MAX && strcmp(aggregate, "MAX") != 0) {
        return tnd_onnx_refuse(call, "aggregate_function '%.20s'", aggregate);
    }
    const int weights = tnd_net_gather(net, tnd_onnx_ml_floats(call, it->weights, &table),
                                       leaves_of(call, it, x), 0);
    const int y = tnd_net_reshape(net, tnd_net_reduce(net, kind, weights, 2), &to);
    return is_mean ? tnd_onnx_with(call, TANDEM_BINARY_DIV, y, (double)it->n_trees) : y;
}

/* Adds base values, one a target or none. */
static int with_base(struct tnd_onnx_call *call, int scores, int64_t wanted)
{
    struct numbers base;
    if (!read_numbers(call, "base_values", "base_values_as_tensor", &base)) {
        return TANDEM_NET_NONE;
    }
    int y = scores;
    if (base.n != 0 && base.n != wanted) {
        y = tnd_onnx_refuse(call, "%lld base values, expected %lld", (long long)base.n,
                            (long long)wanted);
    } else if (base.n != 0) {
        const int value =
            base.array != NULL
                ? tnd_net_cast(call->net,
                               node_list(call, base.array->type, base.array->data, base.n),
                               TANDEM_DTYPE_F32)
                : tnd_onnx_ml_floats(call, base.floats, &TND_DIMS(base.n));
        y = tnd_onnx_binary(call, TANDEM_BINARY_ADD, scores, value);
    }
    tnd_array_free(base.array);
    return y;
}

/* ---- operators ---- */

static void build_regressor(struct tnd_onnx_call *call)
{
    static const struct names names = {"target_treeids", "target_nodeids", "target_ids",
                                       "target_weights", "target_weights_as_tensor"};
    const char *aggregate = tnd_onnx_word(call, "aggregate_function", "SUM");
    const char *how = tnd_onnx_word(call, "post_transform", "NONE");
    struct forest it = {.n_targets = tnd_onnx_int(call, "n_targets", 1)};
    if (it.n_targets < 1 || it.n_targets > 1 << 20) {
        (void)tnd_onnx_refuse(call, "%lld targets", (long long)it.n_targets);
        return;
    }
    if (read_named_forest(call, &it, &names, aggregate)) {
        const int scores = with_base(call, scores_of(call, &it, aggregate), it.n_targets);
        call->out[0] = tnd_onnx_ml_transformed(call, scores, how);
    }
    forest_fini(&it);
}

/* Two classes with one score, of {N, 1}: where no weight is negative it is a probability, else how
 * far a row is on the side of the second class. */
static void give_binary(struct tnd_onnx_call *call, const struct forest *it, int score, int labels,
                        const char *how)
{
    struct tnd_net *net = call->net;
    const bool is_logistic = strcmp(how, "LOGISTIC") == 0;
    const double bound = it->is_positive ? 0.5 : 0.0;
    const int above = tnd_net_formula(net, "score, bound: int64(score > bound)", score, bound);
    const struct tnd_dims list = {1, {tnd_onnx_shape_of(call, score)->dims[0]}};
    const int at = tnd_net_reshape(net, above, &list);
    const char *text = it->is_positive && !is_logistic ? "score: 1 - score" : "score: -score";
    const int other = tnd_net_formula(net, text, score);
    const int both[] = {other, score};
    call->out[0] = tnd_net_gather(net, labels, at, 0);
    if (call->n_out > 1 && net->status == TANDEM_OK) {
        const int y = tnd_net_concat(net, both, 2, 1);
        call->out[1] = is_logistic ? tnd_onnx_ml_transformed(call, y, how) : y;
    }
}

static void give_classes(struct tnd_onnx_call *call, const struct forest *it, int labels,
                         const char *how)
{
    int64_t n_set = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < it->n_targets; i++) {
        n_set += it->is_set[i];
        last = it->is_set[i] != 0 ? i : last;
    }
    int scores = scores_of(call, it, "SUM");
    if (it->n_targets == 2 && n_set == 1) {
        scores = tnd_net_slice(call->net, scores, 1, last, 1, 1);
        give_binary(call, it, with_base(call, scores, 1), labels, how);
        return;
    }
    scores = with_base(call, scores, it->n_targets);
    if (scores != TANDEM_NET_NONE) {
        call->out[0] = tnd_onnx_ml_label_of(call, labels, scores);
    }
    if (call->n_out > 1) {
        call->out[1] = tnd_onnx_ml_transformed(call, scores, how);
    }
}

static void build_classifier(struct tnd_onnx_call *call)
{
    static const struct names names = {"class_treeids", "class_nodeids", "class_ids",
                                       "class_weights", "class_weights_as_tensor"};
    const char *how = tnd_onnx_word(call, "post_transform", "NONE");
    int n;
    const int labels = tnd_onnx_ml_labels(call, "classlabels_int64s", "classlabels_strings", &n);
    struct forest it = {.n_targets = n};
    if (labels == TANDEM_NET_NONE || n > 1 << 20) {
        return;
    }
    if (read_named_forest(call, &it, &names, "SUM")) {
        give_classes(call, &it, labels, how);
    }
    forest_fini(&it);
}

/* ---- TreeEnsemble ---- */

/* Leaves have lists of their own; they become nodes behind the others. */
struct plain {
    int64_t n; /* nodes with branches */
    int64_t n_leaves;
    const int64_t *features;
    const int64_t *yes;
    const int64_t *no;
    const int64_t *yes_is_leaf;
    const int64_t *no_is_leaf;
    const int64_t *missing;
    struct numbers modes;
    struct numbers splits;
    struct numbers members; /* of sets, a NaN behind each */
};

/* The node that a branch leads to; -1: there is none. */
static int64_t branch_of(const struct plain *it, int64_t to, bool is_leaf)
{
    return to < 0 || to >= (is_leaf ? it->n_leaves : it->n) ? -1 : is_leaf ? it->n + to : to;
}

/* A node that asks whether a feature is in a set becomes one node for each member, behind all
 * others. `next`: where the set's numbers begin. */
static bool add_members(struct tnd_onnx_call *call, struct forest *it, const struct plain *plain,
                        int64_t i, int64_t *next)
{
    const int64_t no = it->no[i];
    int64_t at = i;
    bool is_first = true;
    for (; *next < plain->members.n && !isnan(number_at(&plain->members, *next)); ++*next) {
        if (!is_first) {
            const int64_t more = it->n++;
            it->feature[more] = it->feature[i];
            it->yes[more] = it->yes[i];
            it->missing[more] = it->missing[i];
            it->no[at] = more;
            at = more;
        }
        it->mode[at] = EQUAL;
        it->value[at] = number_at(&plain->members, *next);
        it->no[at] = no;
        is_first = false;
    }
    if (is_first || *next >= plain->members.n) {
        (void)tnd_onnx_refuse(call, "an empty set of members, or none");
        return false;
    }
    ++*next;
    it->modes |= 1U << EQUAL;
    return true;
}

static bool fill_plain(struct tnd_onnx_call *call, struct forest *it, const struct plain *plain)
{
    int64_t next = 0;
    it->n = plain->n + plain->n_leaves;
    it->n_leaves = plain->n_leaves;
    for (int64_t i = plain->n; i < it->n; i++) {
        it->mode[i] = LEAF;
        it->yes[i] = it->no[i] = i;
        it->leaf[i] = i - plain->n;
    }
    for (int64_t i = 0; i < plain->n; i++) {
        const double mode = number_at(&plain->modes, i);
        it->feature[i] = plain->features[i];
        it->value[i] = number_at(&plain->splits, i);
        it->yes[i] = branch_of(plain, plain->yes[i], plain->yes_is_leaf[i] != 0);
        it->no[i] = branch_of(plain, plain->no[i], plain->no_is_leaf[i] != 0);
        it->missing[i] = plain->missing != NULL && plain->missing[i] != 0;
        it->has_missing = it->has_missing || it->missing[i] != 0;
        if (!(mode >= LEQ && mode <= MEMBER) || it->yes[i] < 0 || it->no[i] < 0) {
            (void)tnd_onnx_refuse(call, "node %lld: mode %.3g, or a branch that is not there",
                                  (long long)i, mode);
            return false;
        }
        it->mode[i] = (uint8_t)mode;
        if (it->mode[i] != MEMBER) {
            it->modes |= 1U << it->mode[i];
        } else if (!add_members(call, it, plain, i, &next)) {
            return false;
        }
    }
    return true;
}

static bool read_plain(struct tnd_onnx_call *call, struct plain *it)
{
    int n;
    it->features = tnd_onnx_ints(call, "nodes_featureids", &n);
    it->n = n;
    it->yes = integers(call, "nodes_truenodeids", n, false);
    it->no = integers(call, "nodes_falsenodeids", n, false);
    it->yes_is_leaf = integers(call, "nodes_trueleafs", n, false);
    it->no_is_leaf = integers(call, "nodes_falseleafs", n, false);
    it->missing = integers(call, "nodes_missing_value_tracks_true", n, true);
    (void)tnd_onnx_tensor_of(call, "nodes_hitrates");
    const bool is_good = call->net->status == TANDEM_OK && n > 0 &&
                         read_numbers(call, NULL, "nodes_modes", &it->modes) &&
                         read_numbers(call, NULL, "nodes_splits", &it->splits) &&
                         read_numbers(call, NULL, "membership_values", &it->members) &&
                         it->modes.n == n && it->splits.n == n;
    if (!is_good) {
        (void)tnd_onnx_refuse(call, "lists of nodes of different lengths");
    }
    return is_good;
}

static bool read_plain_forest(struct tnd_onnx_call *call, struct forest *it, struct plain *plain,
                              const char *aggregate)
{
    struct numbers weights = {.n = 0};
    int n_roots;
    int n_leaves;
    const int64_t *roots = tnd_onnx_ints(call, "tree_roots", &n_roots);
    const int64_t *targets = tnd_onnx_ints(call, "leaf_targetids", &n_leaves);
    plain->n_leaves = n_leaves;
    bool is_good = read_plain(call, plain) && read_numbers(call, NULL, "leaf_weights", &weights) &&
                   weights.n == n_leaves && n_leaves > 0 && n_roots > 0 && n_roots <= plain->n;
    if (!is_good) {
        (void)tnd_onnx_refuse(call, "%d roots, %d leaves with %lld weights", n_roots, n_leaves,
                              (long long)weights.n);
    }
    is_good = is_good && forest_init(call, it, plain->n + n_leaves + plain->members.n) &&
              fill_plain(call, it, plain) && weights_init(call, it);
    if (is_good) {
        fill_weights(it, aggregate);
    }
    for (int64_t i = 0; is_good && i < n_roots; i++) {
        is_good = roots[i] >= 0 && roots[i] < plain->n;
        it->roots[it->n_trees++] = roots[i];
    }
    if (!is_good) {
        (void)tnd_onnx_refuse(call, "a root that is not there");
    }
    is_good = is_good && count_levels(call, it);
    for (int64_t i = 0; is_good && i < n_leaves; i++) {
        is_good = add_weight(call, it, i, targets[i], number_at(&weights, i));
    }
    tnd_array_free(weights.array);
    return is_good;
}

static void build_ensemble(struct tnd_onnx_call *call)
{
    static const char *const aggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                             "PROBIT"};
    const int64_t aggregate = tnd_onnx_int(call, "aggregate_function", 1);
    const int64_t how = tnd_onnx_int(call, "post_transform", 0);
    struct forest it = {.n_targets = tnd_onnx_int(call, "n_targets", 1)};
    struct plain plain = {.n = 0};
    if (aggregate < 0 || aggregate > 3 || how < 0 || how > 4 || it.n_targets < 1 ||
        it.n_targets > 1 << 20) {
        (void)tnd_onnx_refuse(call, "aggregate_function %lld, post_transform %lld, %lld targets",
                              (long long)aggregate, (long long)how, (long long)it.n_targets);
        return;
    }
    if (read_plain_forest(call, &it, &plain, aggregates[aggregate])) {
        const int scores = tnd_onnx_ml_transformed(
            call, scores_of(call, &it, aggregates[aggregate]), transforms[how]);
        call->out[0] =
            tnd_net_cast(call->net, scores, tnd_onnx_type_of(call, tnd_onnx_in(call, 0)));
    }
    tnd_array_free(plain.modes.array);
    tnd_array_free(plain.splits.array);
    tnd_array_free(plain.members.array);
    forest_fini(&it);
}

const struct tnd_onnx_op tnd_onnx_ml_tree[] = {
    {"TreeEnsemble", build_ensemble, 0, "1"},
    {"TreeEnsembleClassifier", build_classifier, 0, "1>1-2"},
    {"TreeEnsembleRegressor", build_regressor, 0, "1"},
    {NULL, NULL, 0, NULL},
};
