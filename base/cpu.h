/* SPDX-License-Identifier: MIT
 * What the CPU is and can do. Detected once; does not change. Any thread. */
#ifndef TND_CPU_H
#define TND_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Features that the CPU has and whose registers the operating system saves. */
enum tnd_cpu_feature {
    TND_CPU_AVX2 = 1 << 0,
    TND_CPU_FMA = 1 << 1,
    TND_CPU_F16C = 1 << 2,
    TND_CPU_AVX512F = 1 << 3,
    TND_CPU_AVX512BW = 1 << 4,
    TND_CPU_AVX512VL = 1 << 5,
    TND_CPU_AVX512DQ = 1 << 6,
    TND_CPU_AVX512_VNNI = 1 << 7,
    TND_CPU_AVX512_BF16 = 1 << 8,
    TND_CPU_AVX_VNNI = 1 << 9,
    TND_CPU_AMX_INT8 = 1 << 10,
    TND_CPU_NEON = 1 << 11,
    TND_CPU_DOTPROD = 1 << 12,
    TND_CPU_I8MM = 1 << 13,
    TND_CPU_BMI2 = 1 << 14,
    TND_CPU_AMX_BF16 = 1 << 15,
    TND_CPU_AVX512_VBMI = 1 << 16,
    TND_CPU_GFNI = 1 << 17
};

/** Features that files *_avx2.c and *_avx512.c are compiled for (see the Makefile). */
#define TND_CPU_SET_AVX2                                                                           \
    ((uint32_t)TND_CPU_AVX2 | (uint32_t)TND_CPU_FMA | (uint32_t)TND_CPU_F16C |                     \
     (uint32_t)TND_CPU_BMI2)
#define TND_CPU_SET_AVX512                                                                         \
    (TND_CPU_SET_AVX2 | (uint32_t)TND_CPU_AVX512F | (uint32_t)TND_CPU_AVX512BW |                   \
     (uint32_t)TND_CPU_AVX512VL | (uint32_t)TND_CPU_AVX512DQ)

/** Features that files *_gfni.c are compiled for. */
#define TND_CPU_SET_GFNI                                                                           \
    (TND_CPU_SET_AVX512 | (uint32_t)TND_CPU_AVX512_VNNI | (uint32_t)TND_CPU_AVX512_VBMI |          \
     (uint32_t)TND_CPU_GFNI)

/** Features that files *_amx.c are compiled for. */
#define TND_CPU_SET_AMX                                                                            \
    (TND_CPU_SET_AVX512 | (uint32_t)TND_CPU_AVX512_VNNI | (uint32_t)TND_CPU_AMX_INT8 |             \
     (uint32_t)TND_CPU_AMX_BF16)

/** Features that files *_dotprod.c and *_i8mm.c are compiled for. */
#define TND_CPU_SET_DOTPROD ((uint32_t)TND_CPU_NEON | (uint32_t)TND_CPU_DOTPROD)
#define TND_CPU_SET_I8MM    (TND_CPU_SET_DOTPROD | (uint32_t)TND_CPU_I8MM)

/** Features that kernels may use: those of the machine, limited by the level in TANDEM_CPU (a name
 * of base/isa-list.h). */
uint32_t tnd_cpu_features(void);

/** Features of the machine, whatever TANDEM_CPU says. AMX is included if the system grants this
 * process the tile registers; it is asked once. */
uint32_t tnd_cpu_features_all(void);

/** `features`, without AMX if `ask` returns anything but 0. `ask` is called only if AMX is in
 * `features`. */
uint32_t tnd_cpu_permit_tiles(uint32_t features, int (*ask)(void));

/** Whether TANDEM_CPU asks for the AMX kernels on emulated instructions. */
bool tnd_cpu_emulates_tiles(void);

/** The subset of `features` that the level `text` allows; all when `text` is NULL, empty or
 * unknown. */
uint32_t tnd_cpu_mask(uint32_t features, const char *text);

/** The value of TANDEM_CPU if it names no level (it is then ignored), else NULL. */
const char *tnd_cpu_unknown_level(void);

/** "scalar", "avx2", "avx2+vnni", "avx512", "avx512+vnni+bf16", "neon+dotprod", ... Static. */
const char *tnd_cpu_isa_name(uint32_t features);

/** The subset of `features` that kernels use: the union of what the levels of base/isa-list.h need,
 * as far as the CPU reaches them. Features without a kernel are not included. */
uint32_t tnd_cpu_used(uint32_t features);

/** Model name of the CPU as the system reports it; "unknown CPU" without one. Static. */
const char *tnd_cpu_model(void);
/** Tells apart CPUs to which a hypervisor gives the same name: "AuthenticAMD 25 17" (vendor,
 * family, model), on ARM "0x41 0xd40" (implementer, part); "" when unknown. Static. */
const char *tnd_cpu_id(void);

/** Sizes in bytes of the caches that one core can use; 0 when unknown. */
struct tnd_cpu_caches {
    size_t l1d_bytes;
    size_t l2_bytes;
    size_t l3_bytes;
};
struct tnd_cpu_caches tnd_cpu_caches(void);

/** Main memory of the machine in bytes; 0 when unknown. */
uint64_t tnd_cpu_ram_bytes(void);

#endif
