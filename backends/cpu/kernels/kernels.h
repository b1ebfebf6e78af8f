/* SPDX-License-Identifier: MIT
 * The table of all kernels of the CPU backend: chosen once for a set of CPU features; all drivers
 * call through it. Filled from base/isa-list.h, scalar kernels first; each instruction set
 * overwrites what it implements. */
#ifndef TND_KERNELS_H
#define TND_KERNELS_H

#include "backends/cpu/kernels/amx.h"
#include "backends/cpu/kernels/attention_few.h"
#include "backends/cpu/kernels/attention_panel.h"
#include "backends/cpu/kernels/conv_tile.h"
#include "backends/cpu/kernels/int8.h"
#include "backends/cpu/kernels/packed.h"
#include "backends/cpu/kernels/packed_float.h"
#include "backends/cpu/kernels/strip.h"
#include "backends/cpu/kernels/tiles.h"
#include "backends/cpu/kernels/tuning.h"
#include "backends/cpu/kernels/vec.h"
#include "base/isa-list.h"

/* Products of quantised weights and quantised activations. */
struct tnd_kernels_q {
    int lanes, panels, tokens; /* of a tile; `tokens` is the maximum */
    tnd_decode_q_fn *decode[TANDEM_TYPE_NUMBERS];
    tnd_gemm_q_fn *gemm[TANDEM_TYPE_NUMBERS];
    tnd_gemv_q_fn *gemv[TANDEM_TYPE_NUMBERS]; /* or NULL: for one token, bit-identical to gemm */
    tnd_quantize_x_fn *quantize_x;
    tnd_pick_bits_fn *pick_bits; /* or NULL: packing uses its own */
};

struct tnd_kernels_f {
    int lanes, panels, tokens;
    tnd_decode_f_fn *decode[TANDEM_TYPE_NUMBERS]; /* F32, F16, BF16 */
    tnd_gemm_f_fn *gemm;
    tnd_gemm_f_fn *gemm_panel; /* or NULL: a single panel instead of a tile, bit-identical */
};

struct tnd_cpu_kernels {
    const char *isa_q, *isa_f; /* for reports: instruction sets of the two families */
    struct tnd_kernels_q q;
    struct tnd_kernels_f f;
    struct tnd_packed_kernels packed[TANDEM_TYPE_NUMBERS]; /* multiply is NULL: no packed form */
    tnd_packed_f_fn *packed_f[TANDEM_TYPE_NUMBERS];        /* or NULL */
    struct tnd_packed_bf16_kernels packed_bf16;
    struct tnd_amx_kernels amx; /* name NULL: none */
    tnd_dequantize_fn *dequantize[TANDEM_TYPE_NUMBERS];
    tnd_quantize_fn *quantize[TANDEM_TYPE_NUMBERS];
    struct tnd_vec vec;
    struct tnd_attention_kernels attention;
    struct tnd_few_kernels few;
    struct tnd_int8_kernels int8;
    struct tnd_conv_kernel conv;
    const struct tnd_strip_kernel *strip; /* for fused programs and rows of nets */
    struct tnd_tuning tuning;             /* of this CPU model, whatever the instruction set */
};

/** The kernels for a set of CPU features (tnd_cpu_features or a subset). */
void tnd_cpu_kernels_for(uint32_t features, struct tnd_cpu_kernels *out);

/** The kernels of this machine, chosen at the first call. Any thread. */
const struct tnd_cpu_kernels *tnd_cpu_kernels(void);

/* How the values of a quantised type are coded; see kernel-list.h. */
struct tnd_quant_code {
    int form, offset, bits;
    bool is_super;
};

/** NULL: the type has no integer kernel. */
const struct tnd_quant_code *tnd_quant_code(enum tandem_type type);

/** AMX kernels on emulated instructions, for any machine. */
void tnd_fill_tiles_emulated(struct tnd_cpu_kernels *out);

/* Each overwrites the kernels that its file implements. */
#define TND_FILL_FUNCTION(file)                  void tnd_fill_##file(struct tnd_cpu_kernels *out);
#define TND_FILL_FUNCTIONS(isa, features, files) files
TND_ISA_LIST(TND_FILL_FUNCTIONS, TND_FILL_FUNCTION)
#undef TND_FILL_FUNCTIONS
#undef TND_FILL_FUNCTION

#endif
