/* SPDX-License-Identifier: MIT
 * Numbers of matrix products that belong to a CPU, not to an instruction set: how far ahead weights
 * are fetched, and what is taken at once. They change times, never bits. What stands here and in
 * tuning.c serves until a timing table knows better ones (tune/kernel_numbers.h); `mulmat-tune
 * tune-device --backend cpu` measures them. */
#ifndef TND_TUNING_H
#define TND_TUNING_H

#include <stdint.h>

enum { TND_UNPACK_PART_MOST = 1024 /* that there is room for */ };

/* X(member, value where a CPU has no row, least, most, step). Up to packed_skinny tokens, codes are
 * unpacked in registers for every 8 of them; always, where kernels cannot unpack for those of
 * kernels.h. */
#define TND_TUNING_LIST(X)                                                                         \
    /* bytes of packed codes fetched ahead (packed.h), with one token */                           \
    X(packed_ahead_1, 4096, 0, 1 << 20, 1)                                                         \
    /* with several */                                                                             \
    X(packed_ahead, 8192, 0, 1 << 20, 1)                                                           \
    /* up to where both go into L1; what is fetched from further ahead goes into L2 */             \
    X(packed_into_l1, 4096, 0, 1 << 20, 1)                                                         \
    /* tokens; see above */                                                                        \
    X(packed_skinny, 48, 0, 4096, 1)                                                               \
    /* values of K of a tile that is unpacked, for more tokens */                                  \
    X(unpack_part, 512, 256, TND_UNPACK_PART_MOST, 256)                                            \
    /* bytes of packed floats fetched ahead, where the memory limits */                            \
    X(float_ahead, 4096, 0, 1 << 20, 1)                                                            \
    /* where arithmetic does */                                                                    \
    X(float_ahead_many, 16384, 0, 1 << 20, 1)

struct tnd_tuning {
#define TND_TUNING_MEMBER(name, ...) int32_t name;
    TND_TUNING_LIST(TND_TUNING_MEMBER)
#undef TND_TUNING_MEMBER
};

/** The row of a CPU (as by tnd_cpu_id), else the values above. */
struct tnd_tuning tnd_tuning_of(const char *cpu_id);

#endif
