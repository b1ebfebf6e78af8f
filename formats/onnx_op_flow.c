/* SPDX-License-Identifier: MIT
 * Operators of ONNX: branches and loops. A net has neither: a branch is selected and a loop
 * unrolled while the net is built; conditions and iteration counts must be known then. */
#include <string.h>

#include "base/alloc.h"
#include "formats/onnx_op.h"

#define MAX_ROUNDS  4096
#define MAX_CARRIED 64 /* operands and results of a body */

/* A known bool; -1: refused. */
static int known_truth(struct tnd_onnx_call *call, int value, const char *what)
{
    int64_t truth = 0;
    int n;
    tnd_onnx_known(call, value, what, &truth, 1, &n);
    if (n == 0) {
        (void)tnd_onnx_refuse(call, "%s is empty", what);
    }
    return n != 1 ? -1 : truth != 0;
}

static void build_if(struct tnd_onnx_call *call)
{
    const struct tnd_onnx_graph *yes = tnd_onnx_graph_of(call, "then_branch");
    const struct tnd_onnx_graph *no = tnd_onnx_graph_of(call, "else_branch");
    const int condition = known_truth(call, tnd_onnx_in(call, 0), "the condition");
    if (condition < 0) {
        return;
    }
    if (yes == NULL || no == NULL) {
        (void)tnd_onnx_refuse(call, "a branch is missing");
        return;
    }
    (void)tnd_onnx_inner(call, condition != 0 ? yes : no, NULL, 0, call->out, call->n_out);
}

/* ---- unrolled bodies ---- */

/* A loop body, the values carried to the next iteration, and the scan outputs of every
 * iteration. */
struct unrolled {
    const struct tnd_onnx_graph *body;
    int n_in;
    int n_out;
    int first_left; /* index of the first scan output among the results */
    int in[MAX_CARRIED];
    int out[MAX_CARRIED];
    int rounds;
    int *left; /* scan outputs by iteration and result */
};

static bool unrolled_begin(struct tnd_onnx_call *call, struct unrolled *loop, int rounds)
{
    const int n_left = loop->n_out - loop->first_left;
    if (loop->body == NULL || loop->n_in > MAX_CARRIED || loop->n_out > MAX_CARRIED || n_left < 0) {
        (void)tnd_onnx_refuse(call, "no body, or one with more than %d values", MAX_CARRIED);
        return false;
    }
    loop->left = tnd_calloc((size_t)rounds * (size_t)n_left + 1, sizeof(loop->left[0]));
    if (loop->left == NULL) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for %d rounds", rounds);
    }
    return loop->left != NULL;
}

static bool unrolled_round(struct tnd_onnx_call *call, struct unrolled *loop)
{
    const int n_left = loop->n_out - loop->first_left;
    if (!tnd_onnx_inner(call, loop->body, loop->in, loop->n_in, loop->out, loop->n_out)) {
        return false;
    }
    for (int i = 0; i < n_left; i++) {
        loop->left[loop->rounds * n_left + i] = loop->out[loop->first_left + i];
    }
    loop->rounds++;
    return true;
}

/* Scan output `i` of all iterations, joined along a new axis. */
static int join_rounds(struct tnd_onnx_call *call, const struct unrolled *loop, int i, int64_t axis,
                       bool is_reverse)
{
    const int n_left = loop->n_out - loop->first_left;
    int parts[MAX_ROUNDS];
    int at;
    if (loop->rounds == 0) {
        return tnd_onnx_refuse(call, "no round makes its output %d", loop->first_left + i);
    }
    const struct tnd_dims from = *tnd_onnx_shape_of(call, loop->left[i]);
    for (int k = 0; k < loop->rounds; k++) {
        if (loop->left[k * n_left + i] < 0) {
            return tnd_onnx_refuse(call, "a round leaves a sequence behind");
        }
    }
    if (from.n == TANDEM_NET_MAX_DIMS || !tnd_onnx_axis(call, axis, from.n + 1, &at)) {
        return tnd_onnx_refuse(call, "no axis to join %d dimensions along", from.n);
    }
    for (int k = 0; k < loop->rounds; k++) {
        const int part = loop->left[(is_reverse ? loop->rounds - 1 - k : k) * n_left + i];
        struct tnd_dims shape = *tnd_onnx_shape_of(call, part);
        if (shape.n != from.n) {
            return tnd_onnx_refuse(call, "rounds make values of different shapes");
        }
        memmove(shape.dims + at + 1, shape.dims + at, (size_t)(from.n - at) * sizeof(int64_t));
        shape.dims[at] = 1;
        shape.n++;
        parts[k] = tnd_net_reshape(call->net, part, &shape);
    }
    return tnd_net_concat(call->net, parts, loop->rounds, at);
}

/* ---- Loop ---- */

/* The maximum number of iterations; -1: refused. Exporters give the largest integer to a loop that
 * its condition ends. */
static int64_t most_rounds(struct tnd_onnx_call *call)
{
    int64_t count = INT64_MAX;
    int n = 1;
    if (tnd_onnx_in(call, 0) != TANDEM_NET_NONE) {
        tnd_onnx_known(call, tnd_onnx_in(call, 0), "the count of rounds", &count, 1, &n);
    }
    if (n == 1 && (count <= MAX_ROUNDS || tnd_onnx_in(call, 1) != TANDEM_NET_NONE)) {
        return count < 0 ? 0 : count;
    }
    (void)tnd_onnx_refuse(call, "%lld rounds, expected at most %d", (long long)count, MAX_ROUNDS);
    return -1;
}

/* Builds the iterations of a loop; the condition must be known before each. */
static bool run_rounds(struct tnd_onnx_call *call, struct unrolled *loop, int64_t most)
{
    const bool is_while = tnd_onnx_in(call, 1) != TANDEM_NET_NONE;
    loop->in[1] =
        is_while ? tnd_onnx_in(call, 1) : tnd_net_scalar(call->net, TANDEM_DTYPE_BOOL, 1.0);
    for (;;) {
        const int goes_on = is_while ? known_truth(call, loop->in[1], "the condition") : 1;
        loop->in[0] = tnd_net_scalar(call->net, TANDEM_DTYPE_I64, (double)loop->rounds);
        if (goes_on <= 0 || loop->rounds == most) {
            break;
        }
        if (loop->rounds == MAX_ROUNDS) {
            (void)tnd_onnx_refuse(call, "more than %d rounds", MAX_ROUNDS);
            return false;
        }
        if (!unrolled_round(call, loop)) {
            return false;
        }
        loop->in[1] = is_while ? loop->out[0] : loop->in[1];
        memcpy(loop->in + 2, loop->out + 1, (size_t)(loop->n_in - 2) * sizeof(loop->in[0]));
    }
    return call->net->status == TANDEM_OK;
}

/* Scan output `i` without iterations: an empty list. The body is built once with the first
 * iteration's operands to get an element's shape; nothing reads its values. */
static int join_nothing(struct tnd_onnx_call *call, struct unrolled *loop, int i)
{
    const int result = loop->first_left + i;
    if (!tnd_onnx_inner(call, loop->body, loop->in, loop->n_in, loop->out, loop->n_out)) {
        return TANDEM_NET_NONE;
    }
    const int one = loop->out[result];
    struct tnd_dims shape = one < 0 ? (struct tnd_dims){0} : *tnd_onnx_shape_of(call, one);
    if (one < 0 || shape.n == TANDEM_NET_MAX_DIMS) {
        return tnd_onnx_refuse(call, "no round makes its output %d", result);
    }
    memmove(shape.dims + 1, shape.dims, (size_t)shape.n * sizeof(shape.dims[0]));
    shape.dims[0] = 0;
    shape.n++;
    return tnd_net_expand(call->net, tnd_onnx_scalar(call, one, 0.0), &shape);
}

static void build_loop(struct tnd_onnx_call *call)
{
    const int n_carried = call->n_in > 2 ? call->n_in - 2 : 0;
    struct unrolled loop = {.body = tnd_onnx_graph_of(call, "body"),
                            .n_in = n_carried + 2,
                            .n_out = call->n_out + 1,
                            .first_left = n_carried + 1};
    const int64_t most = most_rounds(call);
    if (most < 0 || !unrolled_begin(call, &loop, (int)(most < MAX_ROUNDS ? most : MAX_ROUNDS))) {
        return;
    }
    for (int i = 0; i < n_carried; i++) {
        loop.in[i + 2] = tnd_onnx_in(call, i + 2);
    }
    if (run_rounds(call, &loop, most)) {
        for (int i = 0; i < call->n_out; i++) {
            call->out[i] = i < n_carried      ? loop.in[i + 2]
                           : loop.rounds == 0 ? join_nothing(call, &loop, i - n_carried)
                                              : join_rounds(call, &loop, i - n_carried, 0, false);
        }
    }
    tnd_free(loop.left);
}

/* ---- Scan ---- */

/* Element `i` of an attribute with one number per operand. */
static int64_t listed(const int64_t *list, int n, int i)
{
    return i < n ? list[i] : 0;
}

/* Scan's attributes of the operands that it iterates over. */
struct scanned {
    int n;
    int axes[MAX_CARRIED];
    bool is_reverse[MAX_CARRIED];
    int64_t extent;
};

static bool read_scanned(struct tnd_onnx_call *call, int n_state, struct scanned *scanned)
{
    int n_axes;
    int n_directions;
    const int64_t *axes = tnd_onnx_ints(call, "scan_input_axes", &n_axes);
    const int64_t *directions = tnd_onnx_ints(call, "scan_input_directions", &n_directions);
    for (int i = 0; i < scanned->n; i++) {
        const struct tnd_dims *shape = tnd_onnx_shape_of(call, tnd_onnx_in(call, n_state + i));
        if (!tnd_onnx_axis(call, listed(axes, n_axes, i), shape->n, &scanned->axes[i])) {
            return false;
        }
        scanned->is_reverse[i] = listed(directions, n_directions, i) != 0;
        const int64_t extent = shape->dims[scanned->axes[i]];
        if ((i > 0 && extent != scanned->extent) || extent > MAX_ROUNDS) {
            (void)tnd_onnx_refuse(call,
                                  "%lld rounds of operand %d, expected as many of each and "
                                  "at most %d",
                                  (long long)extent, n_state + i, MAX_ROUNDS);
            return false;
        }
        scanned->extent = extent;
    }
    return true;
}

/* Slice `at` of an operand along an axis, which is removed. */
static int place_of(struct tnd_onnx_call *call, int value, int axis, int64_t at)
{
    struct tnd_dims shape = *tnd_onnx_shape_of(call, value);
    shape.n--;
    memmove(shape.dims + axis, shape.dims + axis + 1, (size_t)(shape.n - axis) * sizeof(int64_t));
    return tnd_net_reshape(call->net, tnd_net_slice(call->net, value, axis, at, 1, 1), &shape);
}

static bool scan_rounds(struct tnd_onnx_call *call, struct unrolled *loop,
                        const struct scanned *scanned)
{
    const int n_state = loop->first_left;
    for (int i = 0; i < n_state; i++) {
        loop->in[i] = tnd_onnx_in(call, i);
    }
    for (int64_t round = 0; round < scanned->extent; round++) {
        for (int i = 0; i < scanned->n; i++) {
            const int64_t at = scanned->is_reverse[i] ? scanned->extent - 1 - round : round;
            loop->in[n_state + i] =
                place_of(call, tnd_onnx_in(call, n_state + i), scanned->axes[i], at);
        }
        if (!unrolled_round(call, loop)) {
            return false;
        }
        memcpy(loop->in, loop->out, (size_t)n_state * sizeof(loop->in[0]));
    }
    return true;
}

static void build_scan(struct tnd_onnx_call *call)
{
    struct scanned scanned = {.n = (int)tnd_onnx_int(call, "num_scan_inputs", 0)};
    const int n_state = call->n_in - scanned.n;
    struct unrolled loop = {.body = tnd_onnx_graph_of(call, "body"),
                            .n_in = call->n_in,
                            .n_out = call->n_out,
                            .first_left = n_state};
    int n_axes;
    int n_directions;
    const int64_t *axes = tnd_onnx_ints(call, "scan_output_axes", &n_axes);
    const int64_t *directions = tnd_onnx_ints(call, "scan_output_directions", &n_directions);
    if (call->opset < 9 || scanned.n < 1 || scanned.n > MAX_CARRIED || n_state < 0) {
        (void)tnd_onnx_refuse(call, "batches (before opset 9), or %d operands to walk along",
                              scanned.n);
        return;
    }
    if (!read_scanned(call, n_state, &scanned) ||
        !unrolled_begin(call, &loop, (int)scanned.extent)) {
        return;
    }
    if (scan_rounds(call, &loop, &scanned)) {
        for (int i = 0; i < call->n_out; i++) {
            const int k = i - n_state;
            call->out[i] = k < 0 ? loop.in[i]
                                 : join_rounds(call, &loop, k, listed(axes, n_axes, k),
                                               listed(directions, n_directions, k) != 0);
        }
    }
    tnd_free(loop.left);
}

const struct tnd_onnx_op tnd_onnx_flow[] = {
    {"If", build_if, 0, "1>1-*"},
    {"Loop", build_loop, 0, "3-*>1-* 11:2-*>1-*"},
    {"Scan", build_scan, 0, "2-*>1-* 9:1-*>1-*"},
    {NULL, NULL, 0, NULL},
};
