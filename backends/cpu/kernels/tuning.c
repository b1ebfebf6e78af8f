/* SPDX-License-Identifier: MIT
 * Default kernel numbers of each CPU family, without a table; see tuning.h. */
#include "backends/cpu/kernels/tuning.h"

#include <string.h>

#define VALUE(name, value, ...) .name = (value),
static const struct {
    const char *family; /* prefix of tnd_cpu_id */
    struct tnd_tuning tuning;
} families[] = {
    {"", {TND_TUNING_LIST(VALUE)}},
    {"AuthenticAMD 25 17", /* Zen 4, 2026-11-23 */
     {.packed_ahead_1 = 0,
      .packed_ahead = 8192,
      .packed_into_l1 = 4096,
      .packed_skinny = 128,
      .unpack_part = 512,
      .float_ahead = 4096,
      .float_ahead_many = 4096}},
    {"AuthenticAMD 26", /* Zen 5, 2026-11-28 */
     {.packed_ahead_1 = 8192,
      .packed_ahead = 10240,
      .packed_into_l1 = 16384,
      .packed_skinny = 48,
      .unpack_part = 512,
      .float_ahead = 4096,
      .float_ahead_many = 16384}},
    {"GenuineIntel 6 207", /* Emerald Rapids without AMX, two shared cores, 2026-11-27 */
     {.packed_ahead_1 = 8192,
      .packed_ahead = 8192,
      .packed_into_l1 = 4096,
      .packed_skinny = 24,
      .unpack_part = 512,
      .float_ahead = 4096,
      .float_ahead_many = 4096}},
};
#undef VALUE

struct tnd_tuning tnd_tuning_of(const char *cpu_id)
{
    size_t best = 0;
    for (size_t i = 1; i < sizeof(families) / sizeof(families[0]); i++) {
        if (strncmp(cpu_id, families[i].family, strlen(families[i].family)) == 0) {
            best = i;
        }
    }
    return families[best].tuning;
}
