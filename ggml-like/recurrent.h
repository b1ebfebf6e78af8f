/* SPDX-License-Identifier: MIT
 * Recurrent layers (RNN, GRU, LSTM) as one operation over all steps and directions. The products
 * with the inputs come before it. Formulas:
 * https://github.com/onnx/onnx/blob/v1.18.0/docs/Operators.md#LSTM and the like.
 *
 * Operands, of F32 or F64, for D directions, G gates, H values of the state:
 *   0: x {steps, batch, D * G * H}, products with the inputs, and biases
 *   1: r {D, G * H, H}, what the state is multiplied with; of is_8_bit int32, at most 255 apart in
 *      a row
 *   2: {D, 3 * H} weights of an LSTM's view of its cells (of the input, output, forget gate);
 *      {D, H} what a GRU adds to the third product in front of the reset gate; or {D, 0}. Of
 *      is_8_bit {D, G * H} scales of r's rows stand behind them
 *   3: {S, D, batch, H}, the state of before the first step, and the cells of an LSTM (S = 2)
 *   4: int64 {batch}, steps that count of each text; may be left out
 * Result {steps + S, D, batch, H}: of each step, then the last state, then the last cells. */
#ifndef TND_RECURRENT_H
#define TND_RECURRENT_H

#include "ggml-like/array.h"

/** X(NAME, "ONNX's name", alpha, beta, n): activation functions, their default parameters, and how
 * many parameters they have. */
#define TND_ACTIVATION_LIST(X)                                                                     \
    X(RELU, "Relu", 0, 0, 0)                                                                       \
    X(TANH, "Tanh", 0, 0, 0)                                                                       \
    X(SIGMOID, "Sigmoid", 0, 0, 0)                                                                 \
    X(SOFTSIGN, "Softsign", 0, 0, 0)                                                               \
    X(SOFTPLUS, "Softplus", 0, 0, 0)                                                               \
    X(LEAKY_RELU, "LeakyRelu", 0.01F, 0, 1)                                                        \
    X(ELU, "Elu", 1, 0, 1)                                                                         \
    X(AFFINE, "Affine", 1, 0, 2)                                                                   \
    X(HARD_SIGMOID, "HardSigmoid", 0.2F, 0.5F, 2)                                                  \
    X(SCALED_TANH, "ScaledTanh", 1, 1, 2)                                                          \
    X(THRESHOLDED_RELU, "ThresholdedRelu", 1, 0, 1)

#define TND_ACTIVATION_ENUM(name, text, alpha, beta, numbers) TND_ACTIVATION_##name,
enum tnd_activation_kind { TND_ACTIVATION_LIST(TND_ACTIVATION_ENUM) };
#undef TND_ACTIVATION_ENUM

struct tnd_activation {
    int kind; /* enum tnd_activation_kind */
    float alpha, beta;
};

enum tnd_cell { TND_CELL_RNN, TND_CELL_GRU, TND_CELL_LSTM };

/* Order of gates: GRU: update, reset, hidden; LSTM: input, output, forget, cell. (All members have
 * 4 bytes, no padding: structs are compared as bytes.) */
struct tnd_recurrent {
    int cell; /* enum tnd_cell */
    int directions;
    unsigned reverse; /* bit d: direction d begins at the end */
    int is_linear;    /* GRU: the product comes before the reset gate */
    int is_coupled;   /* LSTM: the forget gate is 1 - the input gate */
    int is_8_bit;     /* LSTM: states go through DynamicQuantizeLinear in front of products */
    float clip;       /* of what gates' functions get; 0: none */
    struct tnd_activation activations[2][3];
};

enum { TND_RECURRENT_PANEL = 32 }; /* rows of r per packed panel */

static inline int tnd_cell_gates(int cell)
{
    return cell == TND_CELL_RNN ? 1 : cell == TND_CELL_GRU ? 3 : 4;
}

static inline int tnd_cell_states(int cell)
{
    return cell == TND_CELL_LSTM ? 2 : 1;
}

/** Values of a direction in operand 2 that are no scales. */
static inline int64_t tnd_recurrent_extra(const struct tnd_recurrent *layer,
                                          const struct tnd_dims *of_operand, int64_t hidden)
{
    return of_operand->dims[1] - (layer->is_8_bit ? tnd_cell_gates(layer->cell) * hidden : 0);
}

/** What a function of a gate makes of a number; nothing is clipped. */
double tnd_activation_of(const struct tnd_activation *by, double x);

/** Length of sequence `i` by operand 4 (NULL: all steps). */
int64_t tnd_recurrent_length(const struct tnd_view *lengths, int64_t i, int64_t steps);

/** The grid of DynamicQuantizeLinear: from `low` to `high`, with 0 inside. */
struct tnd_recurrent_grid {
    float scale, zero;
};
struct tnd_recurrent_grid tnd_recurrent_grid(float low, float high);
float tnd_recurrent_round(const struct tnd_recurrent_grid *grid, float x);
/** The levels of n values, of which tnd_recurrent_round is (level - zero) * scale. */
void tnd_recurrent_levels(const struct tnd_recurrent_grid *grid, const float *x, int64_t n,
                          uint8_t *out);

/** r as an operand {D, G, panels, 32, H}, packed or as it is. Packed, each panel of a direction
 * has one run of floats per gate: for each of the H values of the state, the weights of 32 rows. */
struct tnd_view tnd_recurrent_panels(const struct tnd_view *r, int64_t gates, bool is_packed);
/** Packs one panel of all gates; missing rows become 0. */
void tnd_recurrent_pack(const struct tnd_view *panels, int64_t hidden, int64_t direction,
                        int64_t panel, float *out);
/** r of is_8_bit as the operation of tensors has it: for each panel of a direction and each of its
 *  gates the bytes of 32 rows as conv_int8.h packs them; behind all of them one number a row: the
 *  sum of its weights as they are packed, then what was added to each. */
struct tnd_recurrent_bytes {
    int64_t rows; /* of all panels */
    int64_t row_bytes;
    const int8_t *bytes;
    const int32_t *sum_w, *zero_w;
};
/** Where they are in memory of `*size` bytes. */
struct tnd_recurrent_bytes tnd_recurrent_bytes_in(const void *memory, int directions, int64_t gates,
                                                  int64_t hidden, size_t *size);
/** Packs r, {D, gates * hidden, hidden} of int32, into such memory, which is 0. False: there is no
 *  memory, or weights of a row are more than 255 apart. */
bool tnd_recurrent_pack_bytes(const struct tnd_view *r, int64_t gates, void *out);

/** Bytes of scratch memory behind the result, with those to align it: a line that workers share,
 *  weights that are packed each time (`packs`), then the states of a GRU times its reset gate,
 *  which a product takes. */
size_t tnd_recurrent_bytes(const struct tnd_recurrent *layer, int64_t batch, int64_t hidden,
                           bool packs);

#endif
