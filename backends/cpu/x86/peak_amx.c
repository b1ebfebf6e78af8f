/* SPDX-License-Identifier: MIT
 * Peaks of tile products (AMX). CPU features include AMX only if the system permits it. */
#if defined(__AMX_INT8__) && defined(__linux__)
#include "backends/cpu/kernels/peak.h"
#include "backends/cpu/x86/amx_tiles.h"

enum { SUMS = 6 }; /* tiles 0..5; 6 and 7 are the operands */

/* `DOT` multiplies tiles of rows with `values` values. */
#define PEAK(name, DOT, values)                                                                    \
    static double name(int64_t rounds)                                                             \
    {                                                                                              \
        const struct tile_config config = tiles_all();                                             \
        _Alignas(64) uint8_t operand[TILE_BYTES];                                                  \
        _Alignas(64) uint8_t sums[TILE_BYTES];                                                     \
        memset(operand, 0x3f, sizeof(operand)); /* 63, or 0.75 */                                  \
        tiles_configure(&config);                                                                  \
        TILE_LOAD(6, operand, TILE_ROW_BYTES);                                                     \
        TILE_LOAD(7, operand, TILE_ROW_BYTES);                                                     \
        TILE_ZERO(0);                                                                              \
        TILE_ZERO(1);                                                                              \
        TILE_ZERO(2);                                                                              \
        TILE_ZERO(3);                                                                              \
        TILE_ZERO(4);                                                                              \
        TILE_ZERO(5);                                                                              \
        for (int64_t r = 0; r < rounds; r++) {                                                     \
            DOT(0, 6, 7);                                                                          \
            DOT(1, 6, 7);                                                                          \
            DOT(2, 6, 7);                                                                          \
            DOT(3, 6, 7);                                                                          \
            DOT(4, 6, 7);                                                                          \
            DOT(5, 6, 7);                                                                          \
        }                                                                                          \
        TILE_STORE(0, sums, TILE_ROW_BYTES);                                                       \
        tiles_release();                                                                           \
        volatile uint8_t result = sums[0];                                                         \
        (void)result;                                                                              \
        return (double)rounds * SUMS * TILE_ROWS * TILE_ROWS * (values)*2;                         \
    }
PEAK(int8_peak, TILE_DOT_S8, 64)
PEAK(bf16_peak, TILE_DOT_BF16, 32)

void tnd_peaks_fill_amx(struct tnd_peaks *out)
{
    out->int8 = int8_peak;
    out->int8_unit = "int8 AMX";
    out->bf16 = bf16_peak;
}
#elif defined(__x86_64__)
#include "backends/cpu/kernels/peak.h"

void tnd_peaks_fill_amx(struct tnd_peaks *out)
{
    (void)out; /* no tiles in this compiler or on this system */
}
#else
typedef int tnd_no_amx;
#endif
