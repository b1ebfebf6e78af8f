/* SPDX-License-Identifier: MIT
 * Tile instructions of the CPU, for comparing with emulated ones: suite_backends_amx_cpu.c, which
 * includes them without the emulation. Only where the features have AMX. */
#ifndef TND_TESTS_SUITE_BACKENDS_AMX_H
#define TND_TESTS_SUITE_BACKENDS_AMX_H

#include <stdbool.h>

struct tile_config;

/** Configures tiles and reads the configuration back. */
void tnd_test_cpu_tiles_config(const struct tile_config *config, struct tile_config *out);
/** c += a * b, all 1024 bytes; tiles 0, 1 and 2 of the configuration have their shapes. */
void tnd_test_cpu_tiles_dot(const struct tile_config *config, bool is_bf16, void *c, const void *a,
                            const void *b);

#endif
