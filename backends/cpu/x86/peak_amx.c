/* SPDX-License-Identifier: MIT
 * Peak of the int8 products of tiles (AMX). Linux gives a process tiles when it asks for them:
 * Documentation/arch/x86/xstate.rst. */
#if defined(__AMX_INT8__) && defined(__linux__)
#include <immintrin.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/cpu/kernels/peak.h"

enum {
    SUMS = 6, /* tiles 0..5; 6 and 7 are the operands */
    ROWS = 16,
    ROW_BYTES = 64,
    REQUEST_PERMISSION = 0x1023, /* ARCH_REQ_XCOMP_PERM */
    TILE_DATA = 18               /* XFEATURE_XTILEDATA */
};

/* Intel SDM volume 1, 18.2: what LDTILECFG reads. */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static double int8_peak(int64_t rounds)
{
    _Alignas(64) struct tile_config config = {.palette = 1};
    _Alignas(64) int8_t operand[ROWS * ROW_BYTES];
    _Alignas(64) int32_t sums[ROWS * ROWS];
    memset(operand, 3, sizeof(operand));
    for (int i = 0; i < SUMS + 2; i++) {
        config.row_bytes[i] = ROW_BYTES;
        config.rows[i] = ROWS;
    }
    _tile_loadconfig(&config);
    _tile_loadd(6, operand, ROW_BYTES);
    _tile_loadd(7, operand, ROW_BYTES);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    for (int64_t r = 0; r < rounds; r++) {
        _tile_dpbssd(0, 6, 7);
        _tile_dpbssd(1, 6, 7);
        _tile_dpbssd(2, 6, 7);
        _tile_dpbssd(3, 6, 7);
        _tile_dpbssd(4, 6, 7);
        _tile_dpbssd(5, 6, 7);
    }
    _tile_stored(0, sums, ROW_BYTES);
    _tile_release();
    volatile int32_t result = sums[0];
    (void)result;
    return (double)rounds * SUMS * ROWS * ROWS * ROW_BYTES * 2;
}

void tnd_peaks_fill_amx(struct tnd_peaks *out)
{
    if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0) {
        out->int8 = int8_peak;
        out->int8_unit = "int8 AMX";
    }
}
#elif defined(__x86_64__)
#include "backends/cpu/kernels/peak.h"

void tnd_peaks_fill_amx(struct tnd_peaks *out)
{
    (void)out; /* this compiler, or this system, has no tiles */
}
#else
typedef int tnd_no_amx;
#endif
