/* SPDX-License-Identifier: MIT
 * See suite_backends_amx.h. */
#include "tests/suite_backends_amx.h"

#if defined(__x86_64__)
#include "backends/cpu/x86/amx_tiles.h"

void tnd_test_cpu_tiles_config(const struct tile_config *config, struct tile_config *out)
{
    tiles_configure(config);
    tiles_read_config(out);
    tiles_release();
}

void tnd_test_cpu_tiles_dot(const struct tile_config *config, bool is_bf16, void *c, const void *a,
                            const void *b)
{
    tiles_configure(config);
    TILE_LOAD(0, c, TILE_ROW_BYTES);
    TILE_LOAD(1, a, TILE_ROW_BYTES);
    TILE_STREAM(2, b, TILE_ROW_BYTES);
    if (is_bf16) {
        TILE_DOT_BF16(0, 1, 2);
    } else {
        TILE_DOT_S8(0, 1, 2);
    }
    TILE_STORE(0, c, TILE_ROW_BYTES);
    tiles_release();
}
#else
void tnd_test_cpu_tiles_config(const struct tile_config *config, struct tile_config *out)
{
    (void)config;
    (void)out;
}

void tnd_test_cpu_tiles_dot(const struct tile_config *config, bool is_bf16, void *c, const void *a,
                            const void *b)
{
    (void)config;
    (void)is_bf16;
    (void)c;
    (void)a;
    (void)b;
}
#endif
