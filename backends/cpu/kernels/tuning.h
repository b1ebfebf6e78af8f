/* SPDX-License-Identifier: MIT
 * Kernel numbers of matrix products that depend on the CPU model, not on the instruction set:
 * prefetch distances and block sizes. They change times, never bits. The defaults here and in
 * tuning.c apply until a timing table has better ones (tune/kernel_numbers.h); `mulmat-tune
 * tune-device --backend cpu` measures them. */
#ifndef TND_TUNING_H
#define TND_TUNING_H

#include <stdint.h>

enum { TND_UNPACK_PART_MOST = 1024 /* size of the buffer for unpack_part */ };

/* X(member, default of CPUs without a row, least, most, step). Up to packed_skinny tokens, codes
 * are unpacked in registers for every 8 tokens; so are they for any number if there is no `unpack`
 * kernel. */
#define TND_TUNING_LIST(X)                                                                         \
    /* prefetch distance of packed codes (packed.h), in bytes, for one token */                    \
    X(packed_ahead_1, 4096, 0, 1 << 20, 1)                                                         \
    /* for several tokens */                                                                       \
    X(packed_ahead, 8192, 0, 1 << 20, 1)                                                           \
    /* distances up to this prefetch into L1, longer ones into L2 */                               \
    X(packed_into_l1, 4096, 0, 1 << 20, 1)                                                         \
    /* tokens; see above */                                                                        \
    X(packed_skinny, 48, 0, 4096, 1)                                                               \
    /* values of K that are unpacked at a time, for more tokens */                                 \
    X(unpack_part, 512, 256, TND_UNPACK_PART_MOST, 256)                                            \
    /* prefetch distance of packed floats, in bytes, if memory is the limit */                     \
    X(float_ahead, 4096, 0, 1 << 20, 1)                                                            \
    /* if arithmetic is the limit */                                                               \
    X(float_ahead_many, 16384, 0, 1 << 20, 1)

struct tnd_tuning {
#define TND_TUNING_MEMBER(name, ...) int32_t name;
    TND_TUNING_LIST(TND_TUNING_MEMBER)
#undef TND_TUNING_MEMBER
};

/** The row of a CPU (by its tnd_cpu_id), or else the defaults above. */
struct tnd_tuning tnd_tuning_of(const char *cpu_id);

#endif
