/* SPDX-License-Identifier: MIT
 * GridSample of ONNX: values between the places of a picture, which are gathered and weighed; and
 * AffineGrid, which makes such places: a product with those of a whole picture.
 * Formulas: https://github.com/onnx/onnx/blob/v1.18.0/docs/Operators.md#GridSample */
#include <string.h>

#include "formats/onnx_op.h"

enum mode { NEAREST, LINEAR, CUBIC };
enum padding { ZEROS, BORDER, REFLECTION };

#define MAX_TAPS   4         /* neighbours along an axis */
#define MAX_PLACES (1 << 22) /* of a grid that an operator makes */

struct grid {
    enum mode mode;
    enum padding padding;
    bool is_aligned; /* -1 and 1 are the middles of the first and last value, not their borders */
    int n;           /* spatial axes */
    int64_t extents[TANDEM_NET_MAX_WINDOW];
    int64_t batch;
    int64_t channels;
    int64_t places; /* of a result */
};

/* One neighbour of each place, {batch, places}. */
struct tap {
    int index;     /* int64 */
    int weight;    /* TANDEM_NET_NONE: 1 */
    int is_inside; /* TANDEM_NET_NONE: always */
};

static int clamped(struct tnd_onnx_call *call, int x, double last)
{
    return tnd_net_formula(call->net, "x, last: min(max(x, 0), last)", x, last);
}

/* ---- places ---- */

/* Thrown back at the borders until it lies between them. */
static int reflected(struct tnd_onnx_call *call, const struct grid *grid, int x, double extent)
{
    const double low = grid->is_aligned ? 0.0 : -0.5;
    const double length = grid->is_aligned ? extent - 1.0 : extent;
    if (length == 0.0) {
        return clamped(call, x, 0.0);
    }
    const double turn = 2.0 * length;
    const int t = tnd_net_formula(call->net, "x, low, turn: (x - low) % turn", x, low, turn);
    return tnd_net_formula(call->net, "t, low, turn: min(t, turn - t) + low", t, low, turn);
}

static int padded(struct tnd_onnx_call *call, const struct grid *grid, int x, double extent)
{
    return grid->padding == ZEROS    ? x
           : grid->padding == BORDER ? clamped(call, x, extent - 1.0)
                                     : reflected(call, grid, x, extent);
}

/* Where in an axis the places lie: from -1 to 1 in the grid, from 0 in the result. */
static int places_of(struct tnd_onnx_call *call, const struct grid *grid, int axis)
{
    const struct tnd_dims list = {3, {grid->batch, grid->places, grid->n}};
    const struct tnd_dims flat = {2, {grid->batch, grid->places}};
    const double extent = (double)grid->extents[axis];
    int x = tnd_net_reshape(call->net, tnd_onnx_wide(call, tnd_onnx_in(call, 1)), &list);
    x = tnd_net_reshape(call->net, tnd_net_slice(call->net, x, 2, grid->n - 1 - axis, 1, 1), &flat);
    x = tnd_net_formula(call->net,
                        grid->is_aligned ? "x, extent: (x + 1) * ((extent - 1) / 2)"
                                         : "x, extent: (x + 1) * (extent / 2) - 0.5",
                        x, extent);
    x = grid->mode == NEAREST ? tnd_net_unary(call->net, TANDEM_UNARY_ROUND, x) : x;
    /* (cubic curves go on behind the border, as PyTorch and ONNX Runtime have it) */
    return grid->mode == CUBIC && grid->padding == BORDER ? x : padded(call, grid, x, extent);
}

/* ---- neighbours ---- */

/* The weight of neighbour `i` at a distance behind the first place in front. Cubic: Keys'
 * convolution (1981) with a = -0.75, of a distance up to 1, and up to 2. */
static int weight_of(struct tnd_onnx_call *call, const struct grid *grid, int distance, int i)
{
    static const char *const linear[] = {"x: 1 - x", "x: x"};
    static const char *const cubic[MAX_TAPS] = {"x: x + 1", "x: x", "x: 1 - x", "x: 1 - x + 1"};
    if (grid->mode == LINEAR) {
        return tnd_net_formula(call->net, linear[i], distance);
    }
    const int x = tnd_net_formula(call->net, cubic[i], distance);
    return tnd_net_formula(call->net,
                           i == 1 || i == 2 ? "x: (x * 1.25 - 2.25) * x * x + 1"
                                            : "x: ((x * -0.75 + 3.75) * x - 6) * x + 3",
                           x);
}

/* The neighbours along an axis; gives their number. */
static int taps_of(struct tnd_onnx_call *call, const struct grid *grid, int axis,
                   struct tap taps[MAX_TAPS])
{
    struct tnd_net *net = call->net;
    const double last = (double)grid->extents[axis] - 1.0;
    const int x = places_of(call, grid, axis);
    const int first = grid->mode == NEAREST ? x : tnd_net_unary(net, TANDEM_UNARY_FLOOR, x);
    const int distance = tnd_onnx_binary(call, TANDEM_BINARY_SUB, x, first);
    const int n = grid->mode == NEAREST ? 1 : grid->mode == LINEAR ? 2 : 4;
    for (int i = 0; i < n; i++) {
        const int at =
            tnd_onnx_with(call, TANDEM_BINARY_ADD, first, grid->mode == CUBIC ? i - 1 : i);
        const int inside = padded(call, grid, at, last + 1.0);
        const int index = clamped(call, inside, last);
        taps[i] =
            (struct tap){.index = tnd_net_cast(net, index, TANDEM_DTYPE_I64),
                         .weight = n == 1 ? TANDEM_NET_NONE : weight_of(call, grid, distance, i),
                         .is_inside = grid->padding == ZEROS
                                          ? tnd_onnx_binary(call, TANDEM_BINARY_EQUAL, index, at)
                                          : TANDEM_NET_NONE};
    }
    return n;
}

/* The values at one neighbour of each place, as much as they count: {batch, channels, places}. */
static int weighed(struct tnd_onnx_call *call, const struct grid *grid, int x,
                   const struct tap *tap)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims row = {3, {grid->batch, 1, grid->places}};
    const struct tnd_dims all = {3, {grid->batch, grid->channels, grid->places}};
    const int index = tnd_net_expand(net, tnd_net_reshape(net, tap->index, &row), &all);
    int y = tnd_net_gather_elements(net, x, index, 2);
    if (tap->is_inside != TANDEM_NET_NONE) {
        y = tnd_net_select(net, tnd_net_reshape(net, tap->is_inside, &row), y,
                           tnd_onnx_scalar(call, y, 0.0));
    }
    if (tap->weight != TANDEM_NET_NONE) {
        const int weight = tnd_net_cast(net, tap->weight, tnd_onnx_type_of(call, x));
        y = tnd_onnx_binary(call, TANDEM_BINARY_MUL, y, tnd_net_reshape(net, weight, &row));
    }
    return y;
}

static int both(struct tnd_onnx_call *call, enum tandem_binary kind, int a, int b)
{
    return a == TANDEM_NET_NONE ? b : b == TANDEM_NET_NONE ? a : tnd_onnx_binary(call, kind, a, b);
}

/* The sum over all neighbours: each one of the first axis with each one of the next ones. */
static int sum_taps(struct tnd_onnx_call *call, const struct grid *grid, int x)
{
    struct tap taps[TANDEM_NET_MAX_WINDOW][MAX_TAPS];
    int n = 0, all = 1, sum = TANDEM_NET_NONE;
    for (int axis = 0; axis < grid->n; axis++) {
        n = taps_of(call, grid, axis, taps[axis]);
        all *= n;
    }
    for (int i = 0; i < all && call->net->status == TANDEM_OK; i++) {
        struct tap tap = taps[0][i % n];
        for (int axis = 1, rest = i / n; axis < grid->n; axis++, rest /= n) {
            const struct tap *more = &taps[axis][rest % n];
            tap.index = tnd_net_formula(call->net, "index, next, extent: index * extent + next",
                                        tap.index, more->index, (double)grid->extents[axis]);
            tap.weight = both(call, TANDEM_BINARY_MUL, tap.weight, more->weight);
            tap.is_inside = both(call, TANDEM_BINARY_AND, tap.is_inside, more->is_inside);
        }
        sum = both(call, TANDEM_BINARY_ADD, sum, weighed(call, grid, x, &tap));
    }
    return sum;
}

/* ---- reading ---- */

static int one_of(struct tnd_onnx_call *call, const char *name, const char *otherwise,
                  const char *const *words)
{
    const char *word = tnd_onnx_word(call, name, otherwise);
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(word, words[i]) == 0) {
            return i;
        }
    }
    (void)tnd_onnx_refuse(call, "%s '%.40s' is not known", name, word);
    return 0;
}

static bool read_grid(struct tnd_onnx_call *call, struct grid *grid)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const old_modes[] = {"nearest", "bilinear", "bicubic", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    const struct tnd_dims *from = tnd_onnx_shape_of(call, tnd_onnx_in(call, 0));
    const struct tnd_dims *to = tnd_onnx_shape_of(call, tnd_onnx_in(call, 1));
    const bool is_old = call->opset < 20;
    *grid = (struct grid){.mode = (enum mode)one_of(call, "mode", is_old ? "bilinear" : "linear",
                                                    is_old ? old_modes : modes),
                          .padding = (enum padding)one_of(call, "padding_mode", "zeros", paddings),
                          .is_aligned = tnd_onnx_int(call, "align_corners", 0) != 0,
                          .n = from->n - 2,
                          .places = 1};
    if (from->n < 3 || from->n > TANDEM_NET_MAX_WINDOW + 2 || to->n != from->n ||
        to->dims[to->n - 1] != grid->n || to->dims[0] != from->dims[0]) {
        (void)tnd_onnx_refuse(call, "a picture of %d dimensions, a grid of %d that does not fit it",
                              from->n, to->n);
        return false;
    }
    grid->batch = from->dims[0];
    grid->channels = from->dims[1];
    for (int i = 0; i < grid->n; i++) {
        grid->extents[i] = from->dims[2 + i];
        if (grid->extents[i] < 1 || grid->extents[i] > 1 << 20 || to->dims[1 + i] > 1 << 20) {
            (void)tnd_onnx_refuse(call, "%lld values along axis %d, expected 1 to 2^20",
                                  (long long)grid->extents[i], 2 + i);
            return false;
        }
        grid->places *= to->dims[1 + i];
    }
    return call->net->status == TANDEM_OK;
}

static void build_grid_sample(struct tnd_onnx_call *call)
{
    struct grid grid;
    if (!read_grid(call, &grid)) {
        return;
    }
    const int x = tnd_onnx_in(call, 0);
    const enum tandem_dtype type = tnd_onnx_type_of(call, x);
    if (grid.mode != NEAREST && tnd_dtype_kind(type) != TND_KIND_FLOAT) {
        (void)tnd_onnx_refuse(call, "values of %s between others", tandem_dtype_name(type));
        return;
    }
    struct tnd_dims flat = {3, {grid.batch, grid.channels, 1}};
    struct tnd_dims to = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 1));
    for (int i = 0; i < grid.n; i++) {
        flat.dims[2] *= grid.extents[i];
    }
    memmove(to.dims + 2, to.dims + 1, (size_t)grid.n * sizeof(to.dims[0]));
    to.dims[1] = grid.channels;
    const int y = sum_taps(call, &grid, tnd_net_reshape(call->net, tnd_onnx_wide(call, x), &flat));
    call->out[0] = tnd_net_cast(call->net, tnd_net_reshape(call->net, y, &to), type);
}

/* ---- AffineGrid ---- */

/* {places, n + 1}: x, y, (z,) 1 of each place of a picture, from -1 to 1. */
static int all_places(struct tnd_onnx_call *call, const int64_t *extents, int n, int64_t places,
                      bool is_aligned)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F64, &TND_DIMS(places, n + 1));
    for (int64_t i = 0; array != NULL && i < places; i++) {
        double *row = (double *)array->data + i * (n + 1);
        int64_t rest = i;
        row[n] = 1.0;
        for (int k = 0; k < n; k++) {
            const int64_t extent = extents[n - 1 - k];
            const double place = (double)(rest % extent);
            row[k] = is_aligned ? 2.0 * place / (double)(extent - 1) - 1.0
                                : (2.0 * place + 1.0) / (double)extent - 1.0;
            rest /= extent;
        }
    }
    return tnd_net_constant(call->net, array);
}

static void build_affine_grid(struct tnd_onnx_call *call)
{
    static const int turned[] = {0, 2, 1};
    struct tnd_net *net = call->net;
    const int theta = tnd_onnx_in(call, 0);
    const enum tandem_dtype type = tnd_onnx_type_of(call, theta);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, theta);
    const bool is_aligned = tnd_onnx_int(call, "align_corners", 0) != 0;
    int64_t size[TANDEM_NET_MAX_DIMS];
    int n;
    tnd_onnx_known(call, tnd_onnx_in(call, 1), "the size", size, TANDEM_NET_MAX_DIMS, &n);
    int64_t places = 1;
    bool fits = (n == 4 || n == 5) && shape.n == 3 && shape.dims[0] == size[0] &&
                shape.dims[1] == n - 2 && shape.dims[2] == n - 1;
    struct tnd_dims to = {n, {shape.dims[0]}};
    for (int i = 2; fits && i < n; i++) {
        fits = size[i] > (is_aligned ? 1 : 0) && size[i] <= MAX_PLACES / places;
        places *= fits ? size[i] : 1;
        to.dims[i - 1] = size[i];
    }
    if (!fits) {
        (void)tnd_onnx_refuse(call, "a size of %d values, which does not fit", n);
        return;
    }
    to.dims[n - 1] = n - 2;
    const int wide = tnd_onnx_wide(call, theta);
    const int all = tnd_net_cast(net, all_places(call, size + 2, n - 2, places, is_aligned),
                                 tnd_onnx_type_of(call, wide));
    const int grid = tnd_net_matmul(net, all, tnd_net_permute(net, wide, turned));
    call->out[0] = tnd_net_cast(net, tnd_net_reshape(net, grid, &to), type);
}

const struct tnd_onnx_op tnd_onnx_sample[] = {
    {"AffineGrid", build_affine_grid, 0, "2"},
    {"GridSample", build_grid_sample, 0, "2"},
    {NULL, NULL, 0, NULL},
};
