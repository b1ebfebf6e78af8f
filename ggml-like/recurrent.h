/* SPDX-License-Identifier: MIT
 * Recurrent layers (RNN, GRU, LSTM) as one operation over all steps and directions. The products
 * with the inputs come before it. Formulas:
 * https://github.com/onnx/onnx/blob/v1.18.0/docs/Operators.md#LSTM and the like.
 *
 * Operands, of F32 or F64, for D directions, G gates, H values of the state:
 *   0: x {steps, batch, D * G * H}, products with the inputs, and biases
 *   1: r {D, G * H, H}, weights of the state; with is_8_bit int32, at most 255 apart in a row
 *   2: {D, 3 * H} peephole weights of an LSTM (input, output, forget gate);
 *      {D, H} what a GRU adds to the third product before the reset gate; or {D, 0}. With
 *      is_8_bit {D, G * H} scales of r's rows follow
 *   3: {S, D, batch, H}, the initial state, and the initial cells of an LSTM (S = 2)
 *   4: int64 {batch}, length of each sequence in steps; optional
 * Result {steps + S, D, batch, H}: the state after each step, then the last state, then the last
 * cells. */
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
    unsigned reverse; /* bit d: direction d runs backwards */
    int is_linear;    /* GRU: the product comes before the reset gate */
    int is_coupled;   /* LSTM: the forget gate is 1 - the input gate */
    int is_8_bit;     /* LSTM: states go through DynamicQuantizeLinear before products */
    float clip;       /* limit of the activations' inputs; 0: none */
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

/** Values per direction in operand 2, without the scales. */
static inline int64_t tnd_recurrent_extra(const struct tnd_recurrent *layer,
                                          const struct tnd_dims *of_operand, int64_t hidden)
{
    return of_operand->dims[1] - (layer->is_8_bit ? tnd_cell_gates(layer->cell) * hidden : 0);
}

/** Applies an activation function to a number, without clipping. */
double tnd_activation_of(const struct tnd_activation *by, double x);

/** Length of sequence `i` by operand 4 (NULL: all steps). */
int64_t tnd_recurrent_length(const struct tnd_view *lengths, int64_t i, int64_t steps);

/** The grid of DynamicQuantizeLinear: from `low` to `high`, with 0 inside. */
struct tnd_recurrent_grid {
    float scale, zero;
};
struct tnd_recurrent_grid tnd_recurrent_grid(float low, float high);
/** Quantises n values to levels; a level stands for (level - zero) * scale. */
void tnd_recurrent_levels(const struct tnd_recurrent_grid *grid, const float *x, int64_t n,
                          uint8_t *out);

/** View of r as {D, G, panels, 32, H}, packed or not. Packed, each panel of a direction has one run
 * of floats per gate: for each of the H values of the state, the weights of 32 rows. */
struct tnd_view tnd_recurrent_panels(const struct tnd_view *r, int64_t gates, bool is_packed);
/** Packs one panel of all gates; missing rows become 0. */
void tnd_recurrent_pack(const struct tnd_view *panels, int64_t hidden, int64_t direction,
                        int64_t panel, float *out);
/** r with is_8_bit, as the operation on tensors stores it: for each panel of a direction and each
 * of its gates the bytes of 32 rows, packed as in conv_int8.h; after all panels, for each row the
 * sum of its packed weights, then the offset added to each weight. */
struct tnd_recurrent_bytes {
    int64_t rows; /* in all panels */
    int64_t row_bytes;
    const int8_t *bytes;
    const int32_t *sum_w, *zero_w;
};
/** Locates them in `memory`; *size: its bytes. */
struct tnd_recurrent_bytes tnd_recurrent_bytes_in(const void *memory, int directions, int64_t gates,
                                                  int64_t hidden, size_t *size);
/** Packs r {D, gates * hidden, hidden} of int32 into `out`, which is zeroed and of that size.
 * False: out of memory, or weights of a row are more than 255 apart. */
bool tnd_recurrent_pack_bytes(const struct tnd_view *r, int64_t gates, void *out);

/** Bytes of scratch memory after the result, including alignment: a cache line shared by workers,
 * weights packed on each call (`packs`), then the states of a GRU multiplied by its reset gate,
 * input of a product. */
size_t tnd_recurrent_bytes(const struct tnd_recurrent *layer, int64_t batch, int64_t hidden,
                           bool packs);

#endif
