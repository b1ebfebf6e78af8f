/* SPDX-License-Identifier: MIT
 * Limits the size of the program cache. */
#ifndef TND_GPU_TRIM_H
#define TND_GPU_TRIM_H

#include <stdint.h>

/** Removes the least recently used binaries in this folder (by modification time, which loading
 * renews) until the others have at most `most_bytes`. Other files stay. A folder that is missing or
 * not writable is left as it is. */
void tnd_gpu_trim(const char *path, uint64_t most_bytes);

#endif
