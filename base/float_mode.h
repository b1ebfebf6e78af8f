/* SPDX-License-Identifier: MIT
 * How the CPU treats subnormal floats in a thread. Some cores handle them in microcode: a row of
 * them takes 30 to 60 times as long (Sapphire Rapids; not Zen 4). */
#ifndef TND_FLOAT_MODE_H
#define TND_FLOAT_MODE_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* The mode of this thread, for tnd_float_mode_restore. */
static inline uint64_t tnd_float_mode_read(void)
{
#if defined(__x86_64__)
    return _mm_getcsr();
#elif defined(__aarch64__)
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
#else
    return 0;
#endif
}

static inline void tnd_float_mode_restore(uint64_t mode)
{
#if defined(__x86_64__)
    _mm_setcsr((unsigned)mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(mode));
#else
    (void)mode;
#endif
}

/* The mode bits that make subnormal numbers count as zero; 0 where the architecture has none
 * (32-bit ARM's vector unit always treats them as zero). */
static inline uint64_t tnd_float_mode_bits(void)
{
#if defined(__x86_64__)
    enum { DENORMALS_ARE_ZERO = 0x0040, FLUSH_TO_ZERO = 0x8000 }; /* Intel SDM, vol. 1, 10.2.3 */
    return DENORMALS_ARE_ZERO | FLUSH_TO_ZERO;
#elif defined(__aarch64__)
    return UINT64_C(1) << 24; /* FZ: Arm ARM, register FPCR */
#else
    return 0;
#endif
}

/* From now on, this thread treats subnormal operands as zero and flushes subnormal results to zero.
 * Returns the previous mode, for tnd_float_mode_restore. */
static inline uint64_t tnd_float_mode_flush(void)
{
    const uint64_t before = tnd_float_mode_read();
    tnd_float_mode_restore(before | tnd_float_mode_bits());
    return before;
}

/* From now on, this thread computes with subnormal numbers. Returns the previous mode, for
 * tnd_float_mode_restore. */
static inline uint64_t tnd_float_mode_keep(void)
{
    const uint64_t before = tnd_float_mode_read();
    tnd_float_mode_restore(before & ~tnd_float_mode_bits());
    return before;
}

#endif
