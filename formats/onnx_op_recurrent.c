/* SPDX-License-Identifier: MIT
 * Recurrent layers of ONNX (RNN, GRU, LSTM): one product with the inputs for all steps and
 * directions, and one operation for all that follows (ggml-like/recurrent.h). */
#include <string.h>

#include "formats/onnx_op.h"

#define MAX_EXTENT (1 << 24)

/* LSTM_8_BIT: com.microsoft's DynamicQuantizeLSTM, whose weights are integers that are not
 * transposed, and whose inputs and states are quantised in front of each product. */
enum { LSTM_8_BIT = TND_CELL_LSTM + 1 };

struct layer {
    struct tnd_recurrent is;
    int64_t steps;
    int64_t batch;
    int64_t inputs;
    int64_t hidden;
    int64_t gates; /* blocks of `hidden` rows in the weights */
    bool is_batch_first;
    int x;       /* {steps * batch, inputs} */
    int lengths; /* {batch} of int64; TANDEM_NET_NONE: all steps count */
};

static int add(struct tnd_onnx_call *call, int a, int b)
{
    return tnd_net_binary(call->net, TANDEM_BINARY_ADD, a, b);
}

/* ---- activations ---- */

/* By its name, with the numbers that stand where the node gives none. */
static bool known_activation(struct tnd_onnx_call *call, const char *name,
                             struct tnd_activation *out, int *n_numbers)
{
    static const struct {
        const char *name;
        struct tnd_activation is;
        int n_numbers;
    } all[] = {
#define ROW(name, text, alpha, beta, numbers) {text, {TND_ACTIVATION_##name, alpha, beta}, numbers},
        TND_ACTIVATION_LIST(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i].is;
            *n_numbers = all[i].n_numbers;
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
    static const char *const usual[][3] = {
        {"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const int each = 1 + layer->is.cell;
    const int n = each * layer->is.directions;
    int n_words, n_alpha, n_beta;
    const struct tnd_onnx_string *words = tnd_onnx_strings(call, "activations", &n_words);
    const float *alpha = tnd_onnx_floats(call, "activation_alpha", &n_alpha);
    const float *beta = tnd_onnx_floats(call, "activation_beta", &n_beta);
    if (words != NULL && n_words != n) {
        (void)tnd_onnx_refuse(call, "%d activations, expected %d", n_words, n);
        return false;
    }
    for (int i = 0, at_alpha = 0, at_beta = 0; i < n; i++) {
        struct tnd_activation *it = &layer->is.activations[i / each][i % each];
        char word[32] = {0};
        int n_numbers;
        if (words != NULL && words[i].n > 0 && words[i].n < sizeof(word)) {
            memcpy(word, words[i].bytes, words[i].n);
        }
        if (!known_activation(call, words != NULL ? word : usual[layer->is.cell][i % each], it,
                              &n_numbers)) {
            return false;
        }
        if (n_numbers > 0 && at_alpha < n_alpha) {
            it->alpha = alpha[at_alpha++];
        }
        if (n_numbers > 1 && at_beta < n_beta) {
            it->beta = beta[at_beta++];
        }
    }
    return true;
}

/* ---- operands ---- */

/* Operand `i`, a list of each direction, from block `first` on `n` blocks of `hidden` values. */
static int blocks(struct tnd_onnx_call *call, const struct layer *layer, int i, int64_t first,
                  int64_t n)
{
    return tnd_net_slice(call->net, tnd_onnx_wide(call, tnd_onnx_in(call, i)), 1,
                         first * layer->hidden, n * layer->hidden, 1);
}

static int zeros(struct tnd_onnx_call *call, const struct layer *layer,
                 const struct tnd_dims *shape)
{
    return tnd_net_expand(call->net, tnd_onnx_scalar(call, layer->x, 0.0), shape);
}

/* Operand `i`, {D} or {D, columns}, as {D, 1} or {D, columns}. */
static int by_column(struct tnd_onnx_call *call, int i)
{
    const struct tnd_dims from = *tnd_onnx_shape_of(call, tnd_onnx_in(call, i));
    const struct tnd_dims to = {2, {from.dims[0], from.n == 1 ? 1 : from.dims[1]}};
    return tnd_net_reshape(call->net, tnd_onnx_in(call, i), &to);
}

/* R {D, gates * hidden, hidden}: numbers, or integers without their zero points. */
static int weights(struct tnd_onnx_call *call, const struct layer *layer)
{
    static const int swap[] = {0, 2, 1};
    struct tnd_net *net = call->net;
    if (!layer->is.is_8_bit) {
        return tnd_onnx_wide(call, tnd_onnx_in(call, 2));
    }
    const int zeros = by_column(call, 11);
    const struct tnd_dims *from = tnd_onnx_shape_of(call, zeros);
    const struct tnd_dims row = {3, {from->dims[0], 1, from->dims[1]}};
    return tnd_net_permute(net,
                           tnd_net_formula(net, "levels, zero: int32(levels) - int32(zero)",
                                           tnd_onnx_in(call, 2), tnd_net_reshape(net, zeros, &row)),
                           swap);
}

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

/* Products of the inputs with the integers of all directions, side by side. */
static int products_8_bit(struct tnd_onnx_call *call, const struct layer *layer)
{
    int y[2] = {TANDEM_NET_NONE, TANDEM_NET_NONE};
    for (int d = 0; d < layer->is.directions; d++) {
        const int in[] = {layer->x, part(call, tnd_onnx_in(call, 1), d),
                          part(call, tnd_onnx_in(call, 8), d), part(call, tnd_onnx_in(call, 9), d)};
        tnd_onnx_build_as(call, "com.microsoft.DynamicQuantizeMatMul", NULL, 0, in, 4, &y[d], 1);
    }
    return tnd_net_concat(call->net, y, layer->is.directions, 1);
}

/* {steps, batch, D * gates * hidden}: products with the inputs, and biases. Of a GRU whose product
 * comes before the reset gate, the last bias of R is not among them. */
static int inputs_of(struct tnd_onnx_call *call, const struct layer *layer)
{
    static const int swap[] = {1, 0};
    struct tnd_net *net = call->net;
    const int64_t columns = layer->is.directions * layer->gates * layer->hidden;
    const struct tnd_dims matrix = {2, {columns, layer->inputs}};
    int y;
    if (layer->is.is_8_bit) {
        y = products_8_bit(call, layer);
    } else {
        const int w = tnd_net_reshape(net, tnd_onnx_wide(call, tnd_onnx_in(call, 1)), &matrix);
        y = tnd_net_matmul(net, layer->x, tnd_net_permute(net, w, swap));
    }
    if (tnd_onnx_in(call, 3) != TANDEM_NET_NONE) {
        int of_r = blocks(call, layer, 3, layer->gates, layer->gates);
        if (layer->is.is_linear) {
            const struct tnd_dims last = {2, {layer->is.directions, layer->hidden}};
            const int both[] = {blocks(call, layer, 3, layer->gates, 2), zeros(call, layer, &last)};
            of_r = tnd_net_concat(net, both, 2, 1);
        }
        of_r = add(call, blocks(call, layer, 3, 0, layer->gates), of_r);
        y = add(call, y, tnd_net_reshape(net, of_r, &TND_DIMS(columns)));
    }
    return tnd_net_reshape(net, y, &TND_DIMS(layer->steps, layer->batch, columns));
}

/* What an LSTM sees of its cells, behind it the scales of integers; or what a GRU adds in front of
 * its reset gate. */
static int extra_of(struct tnd_onnx_call *call, const struct layer *layer)
{
    if (layer->is.is_8_bit) {
        const struct tnd_dims all = {2, {layer->is.directions, layer->gates * layer->hidden}};
        const int both[] = {tnd_onnx_in(call, 7),
                            tnd_net_expand(call->net, by_column(call, 10), &all)};
        return both[0] == TANDEM_NET_NONE ? both[1] : tnd_net_concat(call->net, both, 2, 1);
    }
    if (layer->is.cell == TND_CELL_LSTM && tnd_onnx_in(call, 7) != TANDEM_NET_NONE) {
        return tnd_onnx_wide(call, tnd_onnx_in(call, 7));
    }
    return layer->is.is_linear && tnd_onnx_in(call, 3) != TANDEM_NET_NONE
               ? blocks(call, layer, 3, layer->gates + 2, 1)
               : zeros(call, layer, &TND_DIMS(layer->is.directions, 0));
}

/* The state of before the first step: operands 5 and 6, or zeros. */
static int state_of(struct tnd_onnx_call *call, const struct layer *layer)
{
    static const int swap[] = {1, 0, 2};
    const struct tnd_dims shape = {4, {1, layer->is.directions, layer->batch, layer->hidden}};
    int states[2];
    const int n = tnd_cell_states(layer->is.cell);
    for (int i = 0; i < n; i++) {
        int state = tnd_onnx_wide(call, tnd_onnx_in(call, 5 + i));
        if (state == TANDEM_NET_NONE) {
            states[i] = zeros(call, layer, &shape);
            continue;
        }
        state = layer->is_batch_first ? tnd_net_permute(call->net, state, swap) : state;
        states[i] = tnd_net_reshape(call->net, state, &shape);
    }
    return tnd_net_concat(call->net, states, n, 0);
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

static bool is_8_bit(const struct tnd_onnx_call *call, int i)
{
    if (tnd_onnx_in(call, i) == TANDEM_NET_NONE) { /* (told with the shapes) */
        return true;
    }
    const enum tandem_dtype type = tnd_onnx_type_of(call, tnd_onnx_in(call, i));
    return type == TANDEM_DTYPE_I8 || type == TANDEM_DTYPE_U8;
}

/* Scales and zero points of integers: one a direction, or one a column. */
static bool check_scales(struct tnd_onnx_call *call, const struct layer *layer)
{
    for (int i = 1; layer->is.is_8_bit && i < 3; i++) {
        if (!is_8_bit(call, i) || !is_8_bit(call, 7 + 2 * i)) {
            (void)tnd_onnx_refuse(call, "weights or zero points that are not of 8 bits");
            return false;
        }
    }
    for (int i = 8; layer->is.is_8_bit && i < 12; i++) {
        const struct tnd_dims *got = tnd_onnx_shape_of(call, tnd_onnx_in(call, i));
        if (tnd_onnx_in(call, i) == TANDEM_NET_NONE ||
            (got->n != 1 && (got->n != 2 || got->dims[1] != layer->gates * layer->hidden)) ||
            got->dims[0] != layer->is.directions) {
            char text[160];
            (void)tnd_onnx_refuse(call, "operand %d has the shape %s, expected %lld or %lldx%lld",
                                  i, tnd_dims_text(got, text), (long long)layer->is.directions,
                                  (long long)layer->is.directions,
                                  (long long)(layer->gates * layer->hidden));
            return false;
        }
    }
    return true;
}

static bool check_operands(struct tnd_onnx_call *call, const struct layer *layer)
{
    const int64_t rows = layer->gates * layer->hidden;
    const int64_t a = layer->is_batch_first ? layer->batch : layer->is.directions;
    const int64_t b = layer->is_batch_first ? layer->is.directions : layer->batch;
    const bool is_turned = layer->is.is_8_bit;
    return check_operand(call, 1, "W", layer->is.directions, is_turned ? layer->inputs : rows,
                         is_turned ? rows : layer->inputs) &&
           check_operand(call, 2, "R", layer->is.directions, is_turned ? layer->hidden : rows,
                         is_turned ? rows : layer->hidden) &&
           check_scales(call, layer) &&
           check_operand(call, 3, "B", layer->is.directions, 2 * rows, -1) &&
           check_operand(call, 5, "initial_h", a, b, layer->hidden) &&
           (layer->is.cell != TND_CELL_LSTM ||
            (check_operand(call, 6, "initial_c", a, b, layer->hidden) &&
             check_operand(call, 7, "P", layer->is.directions, 3 * layer->hidden, -1)));
}

/* The steps that count of each text, where they are not all of them. */
static bool read_lengths(struct tnd_onnx_call *call, struct layer *layer)
{
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
        layer->lengths = tnd_net_cast(call->net, lengths, TANDEM_DTYPE_I64);
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
    *layer = (struct layer){.gates = gates[call->kind]};
    layer->is.is_8_bit = call->kind == LSTM_8_BIT;
    layer->is.cell = layer->is.is_8_bit ? TND_CELL_LSTM : call->kind;
    layer->is_batch_first = tnd_onnx_int(call, "layout", 0) != 0;
    layer->is.clip = tnd_onnx_float(call, "clip", 0.0F);
    layer->is.directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    layer->is.reverse = strcmp(direction, "reverse") == 0 ? 1 : 2; /* (bits by direction) */
    layer->is.is_linear =
        call->kind == TND_CELL_GRU && tnd_onnx_int(call, "linear_before_reset", 0) != 0;
    layer->is.is_coupled =
        call->kind >= TND_CELL_LSTM && tnd_onnx_int(call, "input_forget", 0) != 0;
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
    layer->hidden = r->dims[layer->is.is_8_bit ? 1 : 2];
    x = layer->is_batch_first ? tnd_net_permute(call->net, x, swap) : x;
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    layer->steps = shape.dims[0];
    layer->batch = shape.dims[1];
    layer->inputs = shape.dims[2];
    if (layer->hidden < 1 || layer->batch > MAX_EXTENT || layer->hidden > MAX_EXTENT ||
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

/* Result `i`, which begins at row `first` of what the operation gave, in the type of the inputs. */
static void give(struct tnd_onnx_call *call, const struct layer *layer, int i, int all,
                 int64_t first)
{
    static const int states_order[] = {1, 0, 2};
    static const int steps_order[] = {2, 0, 1, 3};
    if (i >= call->n_out) {
        return;
    }
    int y =
        i > 0 ? part(call, all, first) : tnd_net_slice(call->net, all, 0, first, layer->steps, 1);
    if (layer->is_batch_first) {
        y = tnd_net_permute(call->net, y, i > 0 ? states_order : steps_order);
    }
    call->out[i] = tnd_onnx_narrow(call, y, tnd_onnx_in(call, 0));
}

/* Without steps, or without texts, the states are those of the beginning. */
static void give_nothing(struct tnd_onnx_call *call, const struct layer *layer)
{
    const bool is_batch_first = layer->is_batch_first;
    const int64_t a = is_batch_first ? layer->batch : layer->is.directions;
    const int64_t b = is_batch_first ? layer->is.directions : layer->batch;
    const struct tnd_dims state = {3, {a, b, layer->hidden}};
    struct tnd_dims all = {4, {layer->steps, layer->is.directions, layer->batch, layer->hidden}};
    if (is_batch_first) {
        all =
            (struct tnd_dims){4, {layer->batch, layer->steps, layer->is.directions, layer->hidden}};
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
    struct layer layer;
    if (!read_layer(call, &layer)) {
        return;
    }
    if (layer.steps == 0 || layer.batch == 0) {
        give_nothing(call, &layer);
        return;
    }
    const int all =
        tnd_net_recurrent(call->net, &layer.is, inputs_of(call, &layer), weights(call, &layer),
                          extra_of(call, &layer), state_of(call, &layer), layer.lengths);
    give(call, &layer, 0, all, 0);
    give(call, &layer, 1, all, layer.steps);
    if (layer.is.cell == TND_CELL_LSTM) {
        give(call, &layer, 2, all, layer.steps + 1);
    }
}

const struct tnd_onnx_op tnd_onnx_recurrent[] = {
    {"GRU", build_recurrent, TND_CELL_GRU, "3-6>0-2"},
    {"LSTM", build_recurrent, TND_CELL_LSTM, "3-8>0-3"},
    {"RNN", build_recurrent, TND_CELL_RNN, "3-6>0-2"},
    {NULL, NULL, 0, NULL},
};

const struct tnd_onnx_op tnd_onnx_microsoft_recurrent[] = {
    {"DynamicQuantizeLSTM", build_recurrent, LSTM_8_BIT, "12>0-3"},
    {NULL, NULL, 0, NULL},
};
