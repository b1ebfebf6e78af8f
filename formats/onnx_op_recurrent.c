/* SPDX-License-Identifier: MIT
 * Recurrent layers of ONNX (RNN, GRU, LSTM), unrolled over the length of the sequence: a net has no
 * loops. The products with the inputs are one for all steps. Formulas:
 * https://github.com/onnx/onnx/blob/v1.18.0/docs/Operators.md#LSTM and the like. */
#include <string.h>

#include "base/alloc.h"
#include "formats/onnx_op.h"

#define MAX_OPERATIONS  100000 /* of a layer, all steps and directions */
#define MAX_EXTENT      (1 << 24)
#define MAX_ACTIVATIONS 3 /* of a direction */

/* LSTM_8_BIT: com.microsoft's DynamicQuantizeLSTM, whose weights are integers that are not
 * transposed, and whose inputs and states are quantised in front of each product. */
enum kind { RNN, GRU, LSTM, LSTM_8_BIT };

struct activation {
    const char *name;
    float alpha;
    float beta;
    int n_numbers; /* 0, alpha, or both */
};

struct layer {
    enum kind kind;
    int64_t steps;
    int64_t batch;
    int64_t inputs;
    int64_t hidden;
    int64_t directions;
    int64_t gates; /* blocks of `hidden` rows in the weights */
    double clip;   /* 0: none */
    bool is_linear_before_reset;
    bool is_coupled; /* LSTM: the forget gate is 1 - the input gate */
    bool is_batch_first;
    bool is_8_bit;
    struct activation activations[2 * MAX_ACTIVATIONS];
    int x;       /* {steps * batch, inputs} */
    int lengths; /* {batch, 1} of int64; TANDEM_NET_NONE: all steps count */
};

/* What a matrix is multiplied with; `scale` is TANDEM_NET_NONE where `values` are no integers. */
struct weights {
    int values; /* {k, n} */
    int scale;
    int zero;
};

/* One direction, which walks over the steps. */
struct walk {
    const struct activation *activations;
    int x;            /* {steps * batch, gates * hidden}: products with the inputs, and biases */
    struct weights r; /* {hidden, gates * hidden} */
    int r_bias;       /* {gates * hidden} where it is not in `x`; else TANDEM_NET_NONE */
    int peep[3];      /* {hidden}, of the input, output and forget gate; TANDEM_NET_NONE: none */
    int h;            /* {batch, hidden} */
    int c;            /* the same, of LSTM */
};

static int add(struct tnd_onnx_call *call, int a, int b)
{
    return tnd_net_binary(call->net, TANDEM_BINARY_ADD, a, b);
}

static int mul(struct tnd_onnx_call *call, int a, int b)
{
    return tnd_net_binary(call->net, TANDEM_BINARY_MUL, a, b);
}

static int one_minus(struct tnd_onnx_call *call, int x)
{
    return tnd_net_binary(call->net, TANDEM_BINARY_SUB, tnd_onnx_scalar(call, x, 1.0), x);
}

/* Blocks `first` to `first + n - 1` of `hidden` columns. */
static int blocks(struct tnd_onnx_call *call, const struct layer *layer, int value, int first,
                  int n)
{
    const int axis = tnd_onnx_shape_of(call, value)->n - 1;
    return value == TANDEM_NET_NONE
               ? value
               : tnd_net_slice(call->net, value, axis, first * layer->hidden, n * layer->hidden, 1);
}

static int product(struct tnd_onnx_call *call, int x, const struct weights *by)
{
    const int in[] = {x, by->values, by->scale, by->zero};
    int y = TANDEM_NET_NONE;
    if (by->scale == TANDEM_NET_NONE) {
        return tnd_net_matmul(call->net, x, by->values);
    }
    tnd_onnx_build_as(call, "com.microsoft.DynamicQuantizeMatMul", NULL, 0, in, 4, &y, 1);
    return y;
}

/* ---- activations ---- */

static int activate(struct tnd_onnx_call *call, const struct layer *layer,
                    const struct activation *by, int x)
{
    if (layer->clip > 0.0) {
        x = tnd_onnx_with(call, TANDEM_BINARY_MAX, x, -layer->clip);
        x = tnd_onnx_with(call, TANDEM_BINARY_MIN, x, layer->clip);
    }
    if (strcmp(by->name, "ScaledTanh") == 0) {
        x = tnd_onnx_with(call, TANDEM_BINARY_MUL, x, (double)by->beta);
        return tnd_onnx_with(call, TANDEM_BINARY_MUL,
                             tnd_net_unary(call->net, TANDEM_UNARY_TANH, x), (double)by->alpha);
    }
    if (strcmp(by->name, "Affine") == 0) {
        x = tnd_onnx_with(call, TANDEM_BINARY_MUL, x, (double)by->alpha);
        return tnd_onnx_with(call, TANDEM_BINARY_ADD, x, (double)by->beta);
    }
    const struct tnd_onnx_attribute numbers[] = {
        {.name = "alpha", .type = TND_ONNX_ATTRIBUTE_F32, .reference = "", .f = by->alpha},
        {.name = "beta", .type = TND_ONNX_ATTRIBUTE_F32, .reference = "", .f = by->beta}};
    return tnd_onnx_apply(call, by->name, numbers, by->n_numbers, x);
}

/* Numbers of an activation where the node gives none. The two of ScaledTanh have no such value. */
static bool known_activation(struct tnd_onnx_call *call, const char *name, struct activation *out)
{
    static const struct activation all[] = {
        {"Relu", 0, 0, 0},       {"Tanh", 0, 0, 0},           {"Sigmoid", 0, 0, 0},
        {"Softsign", 0, 0, 0},   {"Softplus", 0, 0, 0},       {"LeakyRelu", 0.01F, 0, 1},
        {"Elu", 1, 0, 1},        {"Affine", 1, 0, 2},         {"HardSigmoid", 0.2F, 0.5F, 2},
        {"ScaledTanh", 1, 1, 2}, {"ThresholdedRelu", 1, 0, 1}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i];
            return true;
        }
    }
    (void)tnd_onnx_refuse(call, "the activation '%.40s' is not known", name);
    return false;
}

/* Activations of all directions: as the node says, or the layer's usual ones. Lists of numbers
 * have one for each activation that takes one, in their order. */
static bool read_activations(struct tnd_onnx_call *call, struct layer *layer)
{
    static const char *const usual[][MAX_ACTIVATIONS] = {
        {"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const int each = 1 + (int)layer->kind;
    const int n = each * (int)layer->directions;
    int n_words, n_alpha, n_beta;
    const struct tnd_onnx_string *words = tnd_onnx_strings(call, "activations", &n_words);
    const float *alpha = tnd_onnx_floats(call, "activation_alpha", &n_alpha);
    const float *beta = tnd_onnx_floats(call, "activation_beta", &n_beta);
    if (words != NULL && n_words != n) {
        (void)tnd_onnx_refuse(call, "%d activations, expected %d", n_words, n);
        return false;
    }
    for (int i = 0, at_alpha = 0, at_beta = 0; i < n; i++) {
        struct activation *it = &layer->activations[i];
        char word[32] = {0};
        if (words != NULL && words[i].n > 0 && words[i].n < sizeof(word)) {
            memcpy(word, words[i].bytes, words[i].n);
        }
        if (!known_activation(call, words != NULL ? word : usual[layer->kind][i % each], it)) {
            return false;
        }
        if (it->n_numbers > 0 && at_alpha < n_alpha) {
            it->alpha = alpha[at_alpha++];
        }
        if (it->n_numbers > 1 && at_beta < n_beta) {
            it->beta = beta[at_beta++];
        }
    }
    return true;
}

/* ---- steps ---- */

/* What the products of this step's input and of the last state give. */
static int step_sum(struct tnd_onnx_call *call, const struct layer *layer, const struct walk *walk,
                    int64_t step)
{
    const int x = tnd_net_slice(call->net, walk->x, 0, step * layer->batch, layer->batch, 1);
    return add(call, x, product(call, walk->h, &walk->r));
}

static void rnn_step(struct tnd_onnx_call *call, const struct layer *layer, struct walk *walk,
                     int64_t step)
{
    walk->h = activate(call, layer, &walk->activations[0], step_sum(call, layer, walk, step));
}

/* Gates: update, reset, hidden. */
static void gru_step(struct tnd_onnx_call *call, const struct layer *layer, struct walk *walk,
                     int64_t step)
{
    struct tnd_net *net = call->net;
    const int x = tnd_net_slice(net, walk->x, 0, step * layer->batch, layer->batch, 1);
    const bool is_linear = layer->is_linear_before_reset;
    const int r = walk->r.values;
    int of_h = tnd_net_matmul(net, walk->h, is_linear ? r : blocks(call, layer, r, 0, 2));
    of_h = walk->r_bias == TANDEM_NET_NONE ? of_h : add(call, of_h, walk->r_bias);
    const int both =
        activate(call, layer, &walk->activations[0],
                 add(call, blocks(call, layer, x, 0, 2), blocks(call, layer, of_h, 0, 2)));
    const int update = blocks(call, layer, both, 0, 1);
    const int reset = blocks(call, layer, both, 1, 1);
    const int rest =
        is_linear ? mul(call, reset, blocks(call, layer, of_h, 2, 1))
                  : tnd_net_matmul(net, mul(call, reset, walk->h), blocks(call, layer, r, 2, 1));
    const int fresh =
        activate(call, layer, &walk->activations[1], add(call, blocks(call, layer, x, 2, 1), rest));
    walk->h = add(call, mul(call, one_minus(call, update), fresh), mul(call, update, walk->h));
}

/* Gate `i` of an LSTM: 0 input, 1 output, 2 forget, with its view of the cells. */
static int lstm_gate(struct tnd_onnx_call *call, const struct layer *layer, const struct walk *walk,
                     int sum, int i, int cells)
{
    int x = blocks(call, layer, sum, i, 1);
    if (walk->peep[i] != TANDEM_NET_NONE) {
        x = add(call, x, mul(call, walk->peep[i], cells));
    }
    return activate(call, layer, &walk->activations[0], x);
}

static void lstm_step(struct tnd_onnx_call *call, const struct layer *layer, struct walk *walk,
                      int64_t step)
{
    const int sum = step_sum(call, layer, walk, step);
    const int in = lstm_gate(call, layer, walk, sum, 0, walk->c);
    const int forget =
        layer->is_coupled ? one_minus(call, in) : lstm_gate(call, layer, walk, sum, 2, walk->c);
    const int fresh = activate(call, layer, &walk->activations[1], blocks(call, layer, sum, 3, 1));
    walk->c = add(call, mul(call, forget, walk->c), mul(call, in, fresh));
    const int out = lstm_gate(call, layer, walk, sum, 1, walk->c);
    walk->h = mul(call, out, tnd_onnx_apply(call, walk->activations[2].name, NULL, 0, walk->c));
}

/* One step. A text that has ended keeps its state, and gives 0. */
static int take_step(struct tnd_onnx_call *call, const struct layer *layer, struct walk *walk,
                     int64_t step)
{
    static void (*const steps[])(struct tnd_onnx_call *, const struct layer *, struct walk *,
                                 int64_t) = {rnn_step, gru_step, lstm_step};
    const int h = walk->h;
    const int c = walk->c;
    steps[layer->kind](call, layer, walk, step);
    if (layer->lengths == TANDEM_NET_NONE || walk->h == TANDEM_NET_NONE) {
        return walk->h;
    }
    const int at = tnd_net_scalar(call->net, TANDEM_DTYPE_I64, (double)step);
    const int goes_on = tnd_net_binary(call->net, TANDEM_BINARY_LESS, at, layer->lengths);
    const int y = tnd_net_select(call->net, goes_on, walk->h, tnd_onnx_scalar(call, h, 0.0));
    walk->h = tnd_net_select(call->net, goes_on, walk->h, h);
    walk->c = c == TANDEM_NET_NONE ? c : tnd_net_select(call->net, goes_on, walk->c, c);
    return y;
}

/* ---- directions ---- */

/* Part `i` along the first axis, which goes. */
static int part(struct tnd_onnx_call *call, int value, int64_t i)
{
    const struct tnd_dims from = *tnd_onnx_shape_of(call, value);
    struct tnd_dims to = {.n = from.n - 1};
    if (value == TANDEM_NET_NONE) {
        return value;
    }
    memcpy(to.dims, from.dims + 1, (size_t)to.n * sizeof(to.dims[0]));
    return tnd_net_reshape(call->net, tnd_net_slice(call->net, value, 0, i, 1, 1), &to);
}

/* Operand `i` of direction `at`, as the right side of a product: W or R, of which the scale is
 * operand `scale` where they are integers. */
static struct weights weights_of(struct tnd_onnx_call *call, const struct layer *layer, int i,
                                 int scale, int64_t at)
{
    static const int swap[] = {1, 0};
    struct weights out = {.scale = TANDEM_NET_NONE, .zero = TANDEM_NET_NONE};
    if (layer->is_8_bit) {
        out.values = part(call, tnd_onnx_in(call, i), at);
        out.scale = part(call, tnd_onnx_in(call, scale), at);
        out.zero = part(call, tnd_onnx_in(call, scale + 1), at);
    } else {
        out.values = tnd_net_permute(
            call->net, part(call, tnd_onnx_wide(call, tnd_onnx_in(call, i)), at), swap);
    }
    return out;
}

/* State of before the first step: operand `i`, or zeros. */
static int first_state(struct tnd_onnx_call *call, const struct layer *layer, int i, int64_t at)
{
    static const int swap[] = {1, 0, 2};
    const struct tnd_dims shape = {2, {layer->batch, layer->hidden}};
    int state = tnd_onnx_wide(call, tnd_onnx_in(call, i));
    if (state == TANDEM_NET_NONE) {
        return tnd_net_expand(call->net, tnd_onnx_scalar(call, layer->x, 0.0), &shape);
    }
    state = layer->is_batch_first ? tnd_net_permute(call->net, state, swap) : state;
    return part(call, state, at);
}

static void begin_walk(struct tnd_onnx_call *call, const struct layer *layer, int64_t at,
                       struct walk *walk)
{
    const struct weights w = weights_of(call, layer, 1, 8, at);
    const int bias = part(call, tnd_onnx_wide(call, tnd_onnx_in(call, 3)), at);
    const int peep = layer->kind != LSTM || tnd_onnx_in(call, 7) == TANDEM_NET_NONE
                         ? TANDEM_NET_NONE
                         : part(call, tnd_onnx_wide(call, tnd_onnx_in(call, 7)), at);
    *walk =
        (struct walk){.activations = layer->activations + at * (1 + (int)layer->kind),
                      .x = product(call, layer->x, &w),
                      .r = weights_of(call, layer, 2, 10, at),
                      .r_bias = TANDEM_NET_NONE,
                      .peep = {blocks(call, layer, peep, 0, 1), blocks(call, layer, peep, 1, 1),
                               blocks(call, layer, peep, 2, 1)},
                      .h = first_state(call, layer, 5, at),
                      .c = layer->kind == LSTM ? first_state(call, layer, 6, at) : TANDEM_NET_NONE};
    if (bias != TANDEM_NET_NONE) {
        const int gates = (int)layer->gates;
        const int of_r = blocks(call, layer, bias, gates, gates);
        walk->x = add(call, walk->x, blocks(call, layer, bias, 0, gates));
        if (layer->kind == GRU && layer->is_linear_before_reset) {
            walk->r_bias = of_r;
        } else {
            walk->x = add(call, walk->x, of_r);
        }
    }
}

/* Walks over all steps and gives their results, {steps, 1, batch, hidden}. */
static int walk_along(struct tnd_onnx_call *call, const struct layer *layer, bool is_reverse,
                      struct walk *walk, int *parts)
{
    const struct tnd_dims shape = {4, {1, 1, layer->batch, layer->hidden}};
    const int before = call->net->n_nodes;
    for (int64_t i = 0; i < layer->steps; i++) {
        const int64_t step = is_reverse ? layer->steps - 1 - i : i;
        parts[step] = tnd_net_reshape(call->net, take_step(call, layer, walk, step), &shape);
        if (call->net->status != TANDEM_OK) {
            return TANDEM_NET_NONE;
        }
        const int64_t each = call->net->n_nodes - before;
        if (i == 0 && each > MAX_OPERATIONS / layer->directions / layer->steps) {
            return tnd_onnx_refuse(call,
                                   "%lld steps of %lld operations in %lld directions, expected at "
                                   "most %d operations",
                                   (long long)layer->steps, (long long)each,
                                   (long long)layer->directions, MAX_OPERATIONS);
        }
    }
    return tnd_net_concat(call->net, parts, (int)layer->steps, 0);
}

/* ---- the layer ---- */

static bool check_operand(struct tnd_onnx_call *call, int i, const char *what, int64_t a, int64_t b,
                          int64_t c)
{
    const struct tnd_dims want = {c < 0 ? 2 : 3, {a, b, c < 0 ? 0 : c}};
    const struct tnd_dims *got = tnd_onnx_shape_of(call, tnd_onnx_in(call, i));
    char texts[2][160];
    if (tnd_onnx_in(call, i) == TANDEM_NET_NONE || tnd_dims_is_equal(got, &want)) {
        return true;
    }
    (void)tnd_onnx_refuse(call, "%s has the shape %s, expected %s", what,
                          tnd_dims_text(got, texts[0]), tnd_dims_text(&want, texts[1]));
    return false;
}

/* Scales and zero points of integers: one a direction, or one a column. */
static bool check_scales(struct tnd_onnx_call *call, const struct layer *layer)
{
    for (int i = 8; layer->is_8_bit && i < 12; i++) {
        const struct tnd_dims *got = tnd_onnx_shape_of(call, tnd_onnx_in(call, i));
        if (tnd_onnx_in(call, i) == TANDEM_NET_NONE ||
            (got->n != 1 && (got->n != 2 || got->dims[1] != layer->gates * layer->hidden)) ||
            got->dims[0] != layer->directions) {
            char text[160];
            (void)tnd_onnx_refuse(call, "operand %d has the shape %s, expected %lld or %lldx%lld",
                                  i, tnd_dims_text(got, text), (long long)layer->directions,
                                  (long long)layer->directions,
                                  (long long)(layer->gates * layer->hidden));
            return false;
        }
    }
    return true;
}

static bool check_operands(struct tnd_onnx_call *call, const struct layer *layer)
{
    const int64_t rows = layer->gates * layer->hidden;
    const int64_t a = layer->is_batch_first ? layer->batch : layer->directions;
    const int64_t b = layer->is_batch_first ? layer->directions : layer->batch;
    const bool is_turned = layer->is_8_bit;
    return check_operand(call, 1, "W", layer->directions, is_turned ? layer->inputs : rows,
                         is_turned ? rows : layer->inputs) &&
           check_operand(call, 2, "R", layer->directions, is_turned ? layer->hidden : rows,
                         is_turned ? rows : layer->hidden) &&
           check_scales(call, layer) &&
           check_operand(call, 3, "B", layer->directions, 2 * rows, -1) &&
           check_operand(call, 5, "initial_h", a, b, layer->hidden) &&
           (layer->kind != LSTM ||
            (check_operand(call, 6, "initial_c", a, b, layer->hidden) &&
             check_operand(call, 7, "P", layer->directions, 3 * layer->hidden, -1)));
}

/* The steps that count of each text, where they are not all of them. */
static bool read_lengths(struct tnd_onnx_call *call, struct layer *layer)
{
    const struct tnd_dims column = {2, {layer->batch, 1}};
    const int lengths = tnd_onnx_in(call, 4);
    layer->lengths = TANDEM_NET_NONE;
    if (lengths == TANDEM_NET_NONE) {
        return true;
    }
    if (tnd_onnx_shape_of(call, lengths)->n != 1 ||
        tnd_onnx_shape_of(call, lengths)->dims[0] != layer->batch) {
        (void)tnd_onnx_refuse(call, "sequence_lens is no list of %lld numbers",
                              (long long)layer->batch);
        return false;
    }
    const struct tnd_array *known = tnd_net_known(call->net, lengths);
    bool is_full = known != NULL;
    for (int64_t i = 0; is_full && i < known->n; i++) {
        is_full = tnd_array_integer(known, i) == layer->steps;
    }
    if (!is_full) {
        layer->lengths =
            tnd_net_reshape(call->net, tnd_net_cast(call->net, lengths, TANDEM_DTYPE_I64), &column);
    }
    return true;
}

static bool read_layer(struct tnd_onnx_call *call, struct layer *layer)
{
    static const int swap[] = {1, 0, 2};
    static const int64_t gates[] = {1, 3, 4, 4};
    int x = tnd_onnx_wide(call, tnd_onnx_in(call, 0));
    const struct tnd_dims *r = tnd_onnx_shape_of(call, tnd_onnx_in(call, 2));
    const char *direction = tnd_onnx_word(call, "direction", "forward");
    *layer = (struct layer){.kind = (enum kind)call->kind, .gates = gates[call->kind]};
    layer->is_8_bit = layer->kind == LSTM_8_BIT;
    layer->kind = layer->is_8_bit ? LSTM : layer->kind;
    layer->is_batch_first = tnd_onnx_int(call, "layout", 0) != 0;
    layer->clip = (double)tnd_onnx_float(call, "clip", 0.0F);
    layer->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    layer->is_linear_before_reset = tnd_onnx_int(call, "linear_before_reset", 0) != 0;
    layer->is_coupled = tnd_onnx_int(call, "input_forget", 0) != 0;
    (void)tnd_onnx_int(call, "output_sequence", 0); /* (before opset 7: the outputs say it) */
    if (strcmp(direction, "bidirectional") != 0 && strcmp(direction, "forward") != 0 &&
        strcmp(direction, "reverse") != 0) {
        (void)tnd_onnx_refuse(call, "direction '%.40s' is not known", direction);
        return false;
    }
    if (tnd_onnx_shape_of(call, x)->n != 3 || r->n != 3) {
        (void)tnd_onnx_refuse(call, "X of %d dimensions and R of %d, expected 3",
                              tnd_onnx_shape_of(call, x)->n, r->n);
        return false;
    }
    layer->hidden = r->dims[layer->is_8_bit ? 1 : 2];
    x = layer->is_batch_first ? tnd_net_permute(call->net, x, swap) : x;
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    layer->steps = shape.dims[0];
    layer->batch = shape.dims[1];
    layer->inputs = shape.dims[2];
    if (layer->hidden < 1 || layer->steps > MAX_OPERATIONS || layer->batch > MAX_EXTENT ||
        layer->hidden > MAX_EXTENT ||
        tnd_onnx_int(call, "hidden_size", layer->hidden) != layer->hidden) {
        (void)tnd_onnx_refuse(call, "%lld steps of %lld texts with %lld hidden values",
                              (long long)layer->steps, (long long)layer->batch,
                              (long long)layer->hidden);
        return false;
    }
    const struct tnd_dims rows = {2, {layer->steps * layer->batch, layer->inputs}};
    layer->x = tnd_net_reshape(call->net, x, &rows);
    return check_operands(call, layer) && read_lengths(call, layer) &&
           read_activations(call, layer);
}

/* Joins the directions of a result along an axis, in the type of the inputs. */
static void give(struct tnd_onnx_call *call, int i, const int *values, int n, int axis,
                 const int *order)
{
    if (i < call->n_out) {
        int y = tnd_net_concat(call->net, values, n, axis);
        y = order != NULL && y != TANDEM_NET_NONE ? tnd_net_permute(call->net, y, order) : y;
        call->out[i] = tnd_onnx_narrow(call, y, tnd_onnx_in(call, 0));
    }
}

/* Without steps, or without texts, the states are those of the beginning. */
static void give_nothing(struct tnd_onnx_call *call, const struct layer *layer)
{
    const bool is_batch_first = layer->is_batch_first;
    const int64_t a = is_batch_first ? layer->batch : layer->directions;
    const int64_t b = is_batch_first ? layer->directions : layer->batch;
    const struct tnd_dims state = {3, {a, b, layer->hidden}};
    struct tnd_dims all = {4, {layer->steps, layer->directions, layer->batch, layer->hidden}};
    if (is_batch_first) {
        all = (struct tnd_dims){4, {layer->batch, layer->steps, layer->directions, layer->hidden}};
    }
    const int zero = tnd_net_scalar(call->net, tnd_onnx_type_of(call, tnd_onnx_in(call, 0)), 0);
    for (int i = 0; i < call->n_out; i++) {
        const int first = i > 0 ? tnd_onnx_in(call, 4 + i) : TANDEM_NET_NONE;
        call->out[i] = first != TANDEM_NET_NONE
                           ? first
                           : tnd_net_expand(call->net, zero, i > 0 ? &state : &all);
    }
}

static void build_recurrent(struct tnd_onnx_call *call)
{
    static const int states_order[] = {1, 0, 2};
    static const int steps_order[] = {2, 0, 1, 3};
    struct layer layer;
    int all[2], h[2], c[2];
    if (!read_layer(call, &layer)) {
        return;
    }
    if (layer.steps == 0 || layer.batch == 0) {
        give_nothing(call, &layer);
        return;
    }
    const struct tnd_dims state = {3, {1, layer.batch, layer.hidden}};
    const bool is_reverse = strcmp(tnd_onnx_word(call, "direction", ""), "reverse") == 0;
    int *parts = tnd_calloc((size_t)layer.steps, sizeof(parts[0]));
    for (int i = 0; parts != NULL && i < (int)layer.directions; i++) {
        struct walk walk;
        begin_walk(call, &layer, i, &walk);
        all[i] = walk_along(call, &layer, i == 1 || is_reverse, &walk, parts);
        h[i] = tnd_net_reshape(call->net, walk.h, &state);
        c[i] = tnd_net_reshape(call->net, walk.c, &state);
    }
    if (parts == NULL) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for %lld steps",
                           (long long)layer.steps);
        return;
    }
    tnd_free(parts);
    const int n = (int)layer.directions;
    give(call, 0, all, n, 1, layer.is_batch_first ? steps_order : NULL);
    give(call, 1, h, n, 0, layer.is_batch_first ? states_order : NULL);
    if (layer.kind == LSTM) {
        give(call, 2, c, n, 0, layer.is_batch_first ? states_order : NULL);
    }
}

const struct tnd_onnx_op tnd_onnx_recurrent[] = {
    {"GRU", build_recurrent, GRU, "3-6>0-2"},
    {"LSTM", build_recurrent, LSTM, "3-8>0-3"},
    {"RNN", build_recurrent, RNN, "3-6>0-2"},
    {NULL, NULL, 0, NULL},
};

const struct tnd_onnx_op tnd_onnx_microsoft_recurrent[] = {
    {"DynamicQuantizeLSTM", build_recurrent, LSTM_8_BIT, "12>0-3"},
    {NULL, NULL, 0, NULL},
};
