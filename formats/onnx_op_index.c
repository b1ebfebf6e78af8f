/* SPDX-License-Identifier: MIT
 * ONNX operators that re-index: space-to-depth, triangles, one-hot, reversed sequences, unpooling.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/onnx_op.h"

#define MAX_EXTENT (1 << 24)

/* ---- blocks and channels ---- */

/* {n, depth, h, w} of a block size; false when it is refused. */
static bool block_size(struct tnd_onnx_call *call, int64_t *out)
{
    const struct tnd_dims *shape = tnd_onnx_shape_of(call, tnd_onnx_in(call, 0));
    *out = tnd_onnx_int(call, "blocksize", 0);
    if (shape->n != 4 || *out < 1 || *out > 1 << 20) {
        (void)tnd_onnx_refuse(call, "blocks of %lld in %d dimensions, expected 4", (long long)*out,
                              shape->n);
        return false;
    }
    return true;
}

static void build_depth_to_space(struct tnd_onnx_call *call)
{
    static const int depth_first[] = {0, 3, 4, 1, 5, 2};  /* DCR */
    static const int column_first[] = {0, 1, 4, 2, 5, 3}; /* CRD */
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    const char *mode = tnd_onnx_word(call, "mode", "DCR");
    const bool is_crd = strcmp(mode, "CRD") == 0;
    int64_t b;
    if (!block_size(call, &b) || (!is_crd && strcmp(mode, "DCR") != 0) ||
        from.dims[1] % (b * b) != 0) {
        (void)tnd_onnx_refuse(call, "mode '%.20s', %lld channels", mode, (long long)from.dims[1]);
        return;
    }
    const int64_t n = from.dims[0];
    const int64_t c = from.dims[1] / (b * b);
    const int64_t h = from.dims[2];
    const int64_t w = from.dims[3];
    const struct tnd_dims split = is_crd ? (struct tnd_dims){6, {n, c, b, b, h, w}}
                                         : (struct tnd_dims){6, {n, b, b, c, h, w}};
    const int parts = tnd_net_permute(call->net, tnd_net_reshape(call->net, x, &split),
                                      is_crd ? column_first : depth_first);
    call->out[0] = tnd_net_reshape(call->net, parts, &TND_DIMS(n, c, h * b, w * b));
}

static void build_space_to_depth(struct tnd_onnx_call *call)
{
    static const int block_first[] = {0, 3, 5, 1, 2, 4};   /* DCR */
    static const int channel_first[] = {0, 1, 3, 5, 2, 4}; /* CRD */
    const int x = tnd_onnx_in(call, 0);
    const char *mode = tnd_onnx_word(call, "mode", "DCR");
    const bool is_crd = strcmp(mode, "CRD") == 0;
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    int64_t b;
    if (!block_size(call, &b) || from.dims[2] % b != 0 || from.dims[3] % b != 0 ||
        (!is_crd && strcmp(mode, "DCR") != 0)) {
        (void)tnd_onnx_refuse(call, "mode '%.20s', extents that are no multiples of the block size",
                              mode);
        return;
    }
    const int64_t h = from.dims[2] / b;
    const int64_t w = from.dims[3] / b;
    const struct tnd_dims split = {6, {from.dims[0], from.dims[1], h, b, w, b}};
    const struct tnd_dims to = {4, {from.dims[0], from.dims[1] * b * b, h, w}};
    const int parts = tnd_net_permute(call->net, tnd_net_reshape(call->net, x, &split),
                                      is_crd ? channel_first : block_first);
    call->out[0] = tnd_net_reshape(call->net, parts, &to);
}

/* ---- numbers 0, 1, 2, ... and what is compared with them ---- */

/* {rows, columns}: column - row against `diagonal`. */
static int compare_places(struct tnd_onnx_call *call, enum tandem_binary kind, int64_t rows,
                          int64_t columns, int64_t diagonal)
{
    struct tnd_net *net = call->net;
    const int first = tnd_net_scalar(net, TANDEM_DTYPE_I64, (double)diagonal);
    const int row = tnd_net_binary(net, TANDEM_BINARY_ADD, tnd_onnx_counting(call, rows), first);
    return tnd_net_binary(net, kind, tnd_net_reshape(net, row, &TND_DIMS(rows, 1)),
                          tnd_onnx_counting(call, columns));
}

static void build_trilu(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const bool is_upper = tnd_onnx_int(call, "upper", 1) != 0;
    int64_t k[1] = {0};
    int n = 1;
    if (tnd_onnx_in(call, 1) != TANDEM_NET_NONE) {
        tnd_onnx_known(call, tnd_onnx_in(call, 1), "k", k, 1, &n);
    }
    if (shape.n < 2 || n != 1) {
        (void)tnd_onnx_refuse(call, "%d dimensions, %d diagonals", shape.n, n);
        return;
    }
    const int64_t limit = (int64_t)1 << 50; /* beyond all extents, and exact as a double */
    k[0] = k[0] < -limit ? -limit : k[0] > limit ? limit : k[0];
    const int stays = compare_places(call, TANDEM_BINARY_LESS_EQUAL, shape.dims[shape.n - 2],
                                     shape.dims[shape.n - 1], is_upper ? k[0] : k[0] + 1);
    const int zero = tnd_net_scalar(call->net, tnd_onnx_type_of(call, x), 0.0);
    call->out[0] = is_upper ? tnd_net_select(call->net, stays, x, zero)
                            : tnd_net_select(call->net, stays, zero, x);
}

static void build_eye_like(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const int64_t k = tnd_onnx_int(call, "k", 0);
    enum tandem_dtype type = tnd_onnx_type_of(call, x);
    const int64_t stated = tnd_onnx_int(call, "dtype", -1);
    if (shape.n != 2 || k > INT32_MAX || k < INT32_MIN ||
        (stated >= 0 && !tnd_onnx_dtype((enum tnd_onnx_type)stated, &type))) {
        (void)tnd_onnx_refuse(call, "%d dimensions, type %lld", shape.n, (long long)stated);
        return;
    }
    const int equal = compare_places(call, TANDEM_BINARY_EQUAL, shape.dims[0], shape.dims[1], k);
    call->out[0] = tnd_net_cast(call->net, equal, type);
}

static void build_one_hot(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    int indices = tnd_onnx_in(call, 0);
    const struct tnd_dims by = *tnd_onnx_shape_of(call, indices);
    int64_t depth[1];
    int n;
    int axis;
    tnd_onnx_known(call, tnd_onnx_in(call, 1), "depth", depth, 1, &n);
    if (n != 1 || depth[0] < 1 || by.n + 1 > TANDEM_NET_MAX_DIMS ||
        !tnd_onnx_axis(call, tnd_onnx_int(call, "axis", -1), by.n + 1, &axis)) {
        (void)tnd_onnx_refuse(call, "%d values of depth, %d dimensions", n, by.n);
        return;
    }
    struct tnd_dims wide = {.n = by.n + 1};
    struct tnd_dims numbers = {.n = by.n + 1};
    for (int i = 0, k = 0; i < wide.n; i++) {
        wide.dims[i] = i == axis ? 1 : by.dims[k++];
        numbers.dims[i] = i == axis ? depth[0] : 1;
    }
    indices = tnd_net_reshape(net, tnd_net_cast(net, indices, TANDEM_DTYPE_I64), &wide);
    const int places = tnd_net_reshape(net, tnd_onnx_counting(call, depth[0]), &numbers);
    const int is_on = tnd_net_formula(net, "i, place, depth: (i < 0 ? i + depth : i) == place",
                                      indices, places, (double)depth[0]);
    const int values = tnd_onnx_in(call, 2);
    static const struct tnd_dims scalar;
    if (!tnd_dims_is_equal(tnd_onnx_shape_of(call, values), &TND_DIMS(2))) {
        (void)tnd_onnx_refuse(call, "values are not two: off and on");
        return;
    }
    const int off = tnd_net_reshape(net, tnd_net_slice(net, values, 0, 0, 1, 1), &scalar);
    const int on = tnd_net_reshape(net, tnd_net_slice(net, values, 0, 1, 1, 1), &scalar);
    call->out[0] = tnd_net_select(net, is_on, on, off);
}

/* Index of each value: length - 1 - i within the sequence, i after its end. */
static void build_reverse_sequence(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int x = tnd_onnx_in(call, 0);
    const int lengths = tnd_net_cast(net, tnd_onnx_in(call, 1), TANDEM_DTYPE_I64);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const int64_t time = tnd_onnx_int(call, "time_axis", 0);
    const int64_t batch = tnd_onnx_int(call, "batch_axis", 1);
    if (shape.n < 2 || time + batch != 1 || time * batch != 0 ||
        tnd_onnx_shape_of(call, lengths)->n != 1 ||
        tnd_onnx_shape_of(call, lengths)->dims[0] != shape.dims[batch]) {
        (void)tnd_onnx_refuse(call, "axes %lld and %lld of %d dimensions", (long long)time,
                              (long long)batch, shape.n);
        return;
    }
    struct tnd_dims along = {.n = shape.n};
    struct tnd_dims across = {.n = shape.n};
    for (int i = 0; i < shape.n; i++) {
        along.dims[i] = i == time ? shape.dims[i] : 1;
        across.dims[i] = i == batch ? shape.dims[i] : 1;
    }
    const int place = tnd_net_reshape(net, tnd_onnx_counting(call, shape.dims[time]), &along);
    const int length = tnd_net_reshape(net, lengths, &across);
    const int index =
        tnd_net_formula(net, "i, length: i < length ? length - 1 - i : i", place, length);
    call->out[0] = tnd_net_gather_elements(net, x, tnd_net_expand(net, index, &shape), (int)time);
}

/* ---- what is chosen by known conditions ---- */

/* Row-major indices of the true elements of a computed value, {count}: only the count is asked for,
 * so that a net in parts serves all values with the same count. TANDEM_NET_NONE: refused. */
static int true_places(struct tnd_onnx_call *call, int x)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims flat = {1, {tnd_dims_values(tnd_onnx_shape_of(call, x))}};
    const int truth =
        tnd_net_cast(net, tnd_net_cast(net, tnd_net_reshape(net, x, &flat), TANDEM_DTYPE_BOOL),
                     TANDEM_DTYPE_I64);
    int64_t count = 0;
    int n = 1;
    tnd_onnx_known(call, tnd_net_reduce(net, TANDEM_REDUCE_SUM, truth, 1U), "the number of places",
                   &count, 1, &n);
    if (n != 1 || count < 0 || count > flat.dims[0]) {
        return TANDEM_NET_NONE;
    }
    if (count == 0) {
        return tnd_net_integers(net, NULL, 0);
    }
    return tnd_net_slice(net, tnd_net_arg_sort(net, truth, 0, true), 0, 0, count, 1);
}

static void build_compress(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    int x = tnd_onnx_in(call, 0);
    const struct tnd_array *condition = tnd_net_known(net, tnd_onnx_in(call, 1));
    int axis = 0;
    if (!tnd_onnx_has(call, "axis")) {
        const struct tnd_dims flat = {1, {tnd_dims_values(tnd_onnx_shape_of(call, x))}};
        x = tnd_net_reshape(net, x, &flat);
    } else if (!tnd_onnx_axis(call, tnd_onnx_int(call, "axis", 0), tnd_onnx_shape_of(call, x)->n,
                              &axis)) {
        return;
    }
    if (condition == NULL) {
        call->out[0] = tnd_net_gather(net, x, true_places(call, tnd_onnx_in(call, 1)), axis);
        return;
    }
    int64_t n = 0;
    struct tnd_array *list = tnd_array_new(TANDEM_DTYPE_I64, &TND_DIMS(condition->n));
    for (int64_t i = 0; list != NULL && i < condition->n; i++) {
        if (tnd_array_integer(condition, i) != 0) {
            ((int64_t *)list->data)[n++] = i;
        }
    }
    const int indices = tnd_net_constant(net, list);
    call->out[0] = tnd_net_gather(net, x, tnd_net_slice(net, indices, 0, 0, n, 1), axis);
}

/* The coordinates {dimensions, n} of what is not 0 in a computed value. */
static void place_coordinates(struct tnd_onnx_call *call, int x)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const int places = true_places(call, x);
    int64_t strides[TANDEM_NET_MAX_DIMS];
    int rows[TANDEM_NET_MAX_DIMS];
    tnd_dims_strides(&shape, strides);
    if (places == TANDEM_NET_NONE || shape.n == 0) {
        (void)tnd_onnx_refuse(call, "the extent of its result depends on values");
        return;
    }
    const struct tnd_dims row = {2, {1, tnd_onnx_shape_of(call, places)->dims[0]}};
    for (int d = 0; d < shape.n; d++) {
        const int64_t numbers[] = {strides[d], shape.dims[d]};
        int at = places;
        for (int i = 0; i < 2 && row.dims[1] > 0; i++) {
            const struct tnd_dims scalar = {0};
            const int number = tnd_net_reshape(net, tnd_net_integers(net, &numbers[i], 1), &scalar);
            at = tnd_net_binary(net, i == 0 ? TANDEM_BINARY_DIV : TANDEM_BINARY_MOD, at, number);
        }
        rows[d] = tnd_net_reshape(net, at, &row);
    }
    call->out[0] = tnd_net_concat(net, rows, shape.n, 0);
}

static void build_non_zero(struct tnd_onnx_call *call)
{
    const struct tnd_array *values = tnd_net_known(call->net, tnd_onnx_in(call, 0));
    int64_t n = 0;
    if (values == NULL) {
        place_coordinates(call, tnd_onnx_in(call, 0));
        return;
    }
    for (int64_t i = 0; i < values->n; i++) {
        n += tnd_array_number(values, i) != 0.0;
    }
    struct tnd_array *places = tnd_array_new(TANDEM_DTYPE_I64, &TND_DIMS(values->shape.n, n));
    int64_t strides[TANDEM_NET_MAX_DIMS];
    tnd_dims_strides(&values->shape, strides);
    for (int64_t i = 0, k = 0; places != NULL && i < values->n; i++) {
        if (tnd_array_number(values, i) != 0.0) {
            for (int d = 0; d < values->shape.n; d++) {
                ((int64_t *)places->data)[d * n + k] = i / strides[d] % values->shape.dims[d];
            }
            k++;
        }
    }
    call->out[0] = tnd_net_constant(call->net, places);
}

/* ---- what is there once ---- */

struct row {
    const struct tnd_array *array; /* {rows, values of a row} */
    int64_t at;
};

/* Orders by value; NaN after all numbers, and equal to itself. */
static int compare_values(const struct tnd_array *array, int64_t a, int64_t b)
{
    if (tnd_dtype_kind(array->type) == TND_KIND_FLOAT) {
        const double x = tnd_array_number(array, a);
        const double y = tnd_array_number(array, b);
        return x != x || y != y ? (x != x) - (y != y) : (x > y) - (x < y);
    }
    const int64_t x = tnd_array_integer(array, a);
    const int64_t y = tnd_array_integer(array, b);
    return array->type == TANDEM_DTYPE_U64
               ? ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y)
               : (x > y) - (x < y);
}

static int compare_rows(const struct row *x, const struct row *y)
{
    const int64_t n = x->array->shape.dims[1];
    int order = 0;
    for (int64_t i = 0; i < n && order == 0; i++) {
        order = compare_values(x->array, x->at * n + i, y->at * n + i);
    }
    return order;
}

static int compare_rows_in_order(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    const int order = compare_rows(x, y);
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

/* Finds distinct rows: the first index of each, the distinct row that each row equals, and how
 * often each occurs. Returns their number. */
static int64_t find_unique(struct row *rows, int64_t n, bool is_sorted, int64_t *first,
                           int64_t *which, int64_t *counts)
{
    int64_t found = 0;
    qsort(rows, (size_t)n, sizeof(rows[0]), compare_rows_in_order);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || compare_rows(&rows[i - 1], &rows[i]) != 0) {
            first[found++] = rows[i].at;
        }
        which[rows[i].at] = first[found - 1]; /* for now */
    }
    if (!is_sorted) { /* in the order of the rows */
        found = 0;
        for (int64_t i = 0; i < n; i++) {
            if (which[i] == i) {
                first[found++] = i;
            }
        }
    }
    int64_t *number = counts; /* of each row that is a first one */
    for (int64_t i = 0; i < found; i++) {
        number[first[i]] = i;
    }
    for (int64_t i = 0; i < n; i++) {
        which[i] = number[which[i]];
    }
    memset(counts, 0, (size_t)n * sizeof(counts[0]));
    for (int64_t i = 0; i < n; i++) {
        counts[which[i]]++;
    }
    return found;
}

/* The known values of an operand as rows along an axis, or one value per row; NULL: refused. */
static const struct tnd_array *known_rows(struct tnd_onnx_call *call, int x, int axis, bool is_flat)
{
    struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    int axes[TANDEM_NET_MAX_DIMS];
    for (int i = 0; i < shape.n; i++) {
        axes[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    }
    const int64_t n = tnd_dims_values(&shape);
    const int64_t rows = is_flat ? n : shape.dims[axis];
    x = is_flat ? x : tnd_net_permute(call->net, x, axes);
    x = tnd_net_reshape(call->net, x, &TND_DIMS(rows, rows > 0 ? n / rows : 0));
    const struct tnd_array *known = x == TANDEM_NET_NONE ? NULL : tnd_onnx_ask(call, x);
    if (known == NULL) {
        (void)tnd_onnx_refuse(call, "the extent of its result depends on values");
    }
    return known;
}

static void give_unique(struct tnd_onnx_call *call, int x, int axis, const struct tnd_array *known,
                        struct row *rows)
{
    const int64_t n = known->shape.dims[0];
    const bool is_sorted = tnd_onnx_int(call, "sorted", 1) != 0;
    struct tnd_array *lists[3];
    bool has_memory = true;
    for (int i = 0; i < 3; i++) {
        lists[i] = tnd_array_new(TANDEM_DTYPE_I64, &TND_DIMS(n));
        has_memory = has_memory && lists[i] != NULL;
    }
    int64_t found = 0;
    if (has_memory) {
        for (int64_t i = 0; i < n; i++) {
            rows[i] = (struct row){known, i};
        }
        found = find_unique(rows, n, is_sorted, lists[0]->data, lists[1]->data, lists[2]->data);
    }
    for (int i = 0; i < 3; i++) { /* NULL arrays are the net's error */
        int value = tnd_net_constant(call->net, lists[i]);
        value = i == 1 ? value : tnd_net_slice(call->net, value, 0, 0, found, 1);
        if (i == 0) {
            call->out[0] = tnd_net_gather(call->net, x, value, axis);
        }
        if (i + 1 < call->n_out) {
            call->out[i + 1] = value;
        }
    }
}

static void build_unique(struct tnd_onnx_call *call)
{
    int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const bool is_flat = !tnd_onnx_has(call, "axis");
    int axis = 0;
    if (!is_flat && !tnd_onnx_axis(call, tnd_onnx_int(call, "axis", 0), shape.n, &axis)) {
        return;
    }
    const struct tnd_array *known = known_rows(call, x, axis, is_flat);
    if (known == NULL) {
        return;
    }
    if (known->n == 0) {
        (void)tnd_onnx_refuse(call, "no values");
        return;
    }
    x = is_flat ? tnd_net_reshape(call->net, x, &TND_DIMS(tnd_dims_values(&shape))) : x;
    struct row *rows = tnd_calloc((size_t)known->shape.dims[0], sizeof(rows[0]));
    if (rows != NULL) {
        give_unique(call, x, axis, known, rows);
    } else {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for %lld rows",
                           (long long)known->shape.dims[0]);
    }
    tnd_free(rows);
}

/* Crops or zero-pads to a shape, around the centre. */
static void build_center_crop_pad(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    int64_t wanted[TANDEM_NET_MAX_DIMS];
    int n;
    int n_axes;
    const int64_t *axes = tnd_onnx_ints(call, "axes", &n_axes);
    tnd_onnx_known(call, tnd_onnx_in(call, 1), "the shape", wanted, TANDEM_NET_MAX_DIMS, &n);
    if (n != (axes != NULL ? n_axes : shape.n)) {
        (void)tnd_onnx_refuse(call, "a shape of %d values", n);
        return;
    }
    for (int i = 0; i < n; i++) {
        int64_t begin[TANDEM_NET_MAX_DIMS] = {0};
        int64_t end[TANDEM_NET_MAX_DIMS] = {0};
        int axis;
        if (!tnd_onnx_axis(call, axes != NULL ? axes[i] : i, shape.n, &axis) || wanted[i] < 0 ||
            wanted[i] > 1 << 24) {
            (void)tnd_onnx_refuse(call, "a dimension of %lld", (long long)wanted[i]);
            return;
        }
        const int64_t more = wanted[i] - shape.dims[axis];
        if (more < 0) {
            x = tnd_net_slice(net, x, axis, -more / 2, wanted[i], 1);
            continue;
        }
        begin[axis] = more / 2;
        end[axis] = more - more / 2;
        const int zero = tnd_net_scalar(net, tnd_onnx_type_of(call, x), 0.0);
        x = more == 0 ? x : tnd_net_pad(net, TANDEM_PAD_CONSTANT, x, begin, end, zero);
    }
    call->out[0] = x;
}

/* ---- the way back from MaxPool ---- */

/* The input shape of a pool with these attributes, as far as they determine it. */
static bool shape_before_pool(struct tnd_onnx_call *call, struct tnd_dims *shape)
{
    int n, n_strides, n_pads;
    const int64_t *kernel = tnd_onnx_ints(call, "kernel_shape", &n);
    const int64_t *strides = tnd_onnx_ints(call, "strides", &n_strides);
    const int64_t *pads = tnd_onnx_ints(call, "pads", &n_pads);
    if (n < 1 || n != shape->n - 2 || (n_strides != 0 && n_strides != n) ||
        (n_pads != 0 && n_pads != 2 * n)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        const int64_t step = n_strides > 0 ? strides[i] : 1;
        const int64_t begin = n_pads > 0 ? pads[i] : 0;
        const int64_t end = n_pads > 0 ? pads[n + i] : 0;
        int64_t *extent = &shape->dims[2 + i];
        if (*extent < 1 || *extent > MAX_EXTENT || kernel[i] < 1 || kernel[i] > MAX_EXTENT ||
            step < 1 || step > MAX_EXTENT || begin < 0 || begin > MAX_EXTENT || end < 0 ||
            end > MAX_EXTENT) {
            return false;
        }
        *extent = (*extent - 1) * step + kernel[i] - begin - end;
        if (*extent < 1 || *extent > MAX_EXTENT) {
            return false;
        }
    }
    return true;
}

/* A shape operand must equal that implied by the attributes: otherwise runtimes differ in which of
 * them the indices refer to (https://github.com/onnx/onnx/issues/5398). */
static void build_max_unpool(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int x = tnd_onnx_in(call, 0);
    struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const struct tnd_dims flat = {1, {tnd_dims_values(&shape)}};
    if (!tnd_dims_is_equal(&shape, tnd_onnx_shape_of(call, tnd_onnx_in(call, 1))) ||
        !shape_before_pool(call, &shape)) {
        (void)tnd_onnx_refuse(call, "%d dimensions with indices or windows that do not fit",
                              shape.n);
        return;
    }
    struct tnd_dims wanted = shape;
    if (tnd_onnx_in(call, 2) != TANDEM_NET_NONE) {
        tnd_onnx_known(call, tnd_onnx_in(call, 2), "the shape", wanted.dims, TANDEM_NET_MAX_DIMS,
                       &wanted.n);
    }
    const struct tnd_dims all = {1, {tnd_dims_values(&shape)}};
    if (!tnd_dims_is_equal(&wanted, &shape) || all.dims[0] < 0) {
        (void)tnd_onnx_refuse(call, "another shape than that which the windows tell");
        return;
    }
    const int zero = tnd_onnx_scalar(call, x, 0.0);
    const int places = tnd_net_cast(net, tnd_onnx_in(call, 1), TANDEM_DTYPE_I64);
    const int y = tnd_net_scatter_elements(net, TANDEM_SCATTER_SET, tnd_net_expand(net, zero, &all),
                                           tnd_net_reshape(net, places, &flat),
                                           tnd_net_reshape(net, x, &flat), 0);
    call->out[0] = tnd_net_reshape(net, y, &shape);
}

const struct tnd_onnx_op tnd_onnx_index[] = {
    {"CenterCropPad", build_center_crop_pad, 0, "2"},
    {"Compress", build_compress, 0, "2"},
    {"DepthToSpace", build_depth_to_space, 0, "1"},
    {"EyeLike", build_eye_like, 0, "1"},
    {"MaxUnpool", build_max_unpool, 0, "2-3"},
    {"NonZero", build_non_zero, 0, "1"},
    {"OneHot", build_one_hot, 0, "3"},
    {"ReverseSequence", build_reverse_sequence, 0, "2"},
    {"SpaceToDepth", build_space_to_depth, 0, "1"},
    {"Trilu", build_trilu, 0, "1-2"},
    {"Unique", build_unique, 0, "1>1-4"},
    {NULL, NULL, 0, NULL},
};
