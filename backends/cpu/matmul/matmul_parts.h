/* SPDX-License-Identifier: MIT
 * Shared by matmul.c, matmul_q.c and matmul_f.c; also for tests and the bench, which choose the
 * instruction set themselves. */
#ifndef TND_MATMUL_PARTS_H
#define TND_MATMUL_PARTS_H

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/matmul/matmul.h"
#include "backends/cpu/packing/packed_weights.h"

/** Stride between tokens in blocks of quantised activations. */
size_t tnd_x_row_blocks(int64_t k);

/** Bytes of scratch memory of each family, multiples of 64. */
size_t tnd_matmul_q_scratch(void);
size_t tnd_matmul_f_scratch(int64_t m, int64_t k);

/** Tasks MUL_MAT_Q, and MUL_MAT_F32 or NODE; the caller has checked node and scratch. */
void tnd_matmul_q(const struct tnd_kernels_q *kernels, const struct tandem_work *work,
                  struct tandem_worker *worker);
void tnd_matmul_f(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                  struct tandem_worker *worker);

/** Task MUL_MAT_PACKED with a packed copy, quantised or of floats; as above. `packed` may be NULL
 * if the weights are F16 or BF16: then their rows are used. */
void tnd_matmul_packed(const struct tnd_cpu_kernels *kernels,
                       const struct tnd_packed_weight *packed, const struct tandem_work *work,
                       struct tandem_worker *worker);
void tnd_matmul_packed_f(const struct tnd_cpu_kernels *kernels,
                         const struct tnd_packed_weight *packed, const struct tandem_work *work,
                         struct tandem_worker *worker);
size_t tnd_matmul_packed_scratch(void);
size_t tnd_matmul_packed_f_scratch(int64_t m, int64_t k);

/** Driver for many tokens, called by tnd_matmul_f; whether it applies, and its scratch memory. */
bool tnd_matmul_wide_fits(int64_t m, int64_t k);
size_t tnd_matmul_wide_scratch(int64_t m, int64_t k);
void tnd_matmul_wide(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                     struct tandem_worker *worker);

/** Tasks TILE_X and MUL_MAT_TILES; `packed` may be NULL. */
void tnd_matmul_amx_tile_x(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                           struct tandem_worker *worker);
void tnd_matmul_amx(const struct tnd_cpu_kernels *kernels, const struct tnd_packed_weight *packed,
                    const struct tandem_work *work, struct tandem_worker *worker);
size_t tnd_matmul_amx_workspace(enum tandem_type type, int64_t m, int64_t k);
/** How TILE_X converts activations for weights of a type: 0: to bytes; else to this many parts of
 * bf16 numbers. */
int tnd_matmul_amx_x_parts(enum tandem_type type);
size_t tnd_matmul_amx_scratch(void);

/** Tokens per tile when `m` tokens are divided evenly into tiles of at most `most`. */
static inline int tnd_tile_tokens(int64_t m, int most)
{
    int64_t tiles = (m + most - 1) / most;
    return tiles > 0 ? (int)((m + tiles - 1) / tiles) : 1;
}

/** Chunk size of `n` items that gives each worker several chunks. More are not needed: `next`
 * makes the last chunks smaller, so that workers finish together. */
static inline int64_t tnd_chunk(int64_t n, int workers, int64_t most)
{
    int64_t chunk = n / ((int64_t)workers * 4);
    return chunk < 1 ? 1 : tnd_min(chunk, most);
}

#endif
