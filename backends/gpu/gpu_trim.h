/* SPDX-License-Identifier: MIT
 * Keeps the program cache from growing without end. */
#ifndef TND_GPU_TRIM_H
#define TND_GPU_TRIM_H

#include <stdint.h>

/** Removes the binaries in this folder that were used least recently (by the time of their last
 *  change, which loading renews), until the others have `most_bytes` at most. Other files stay. A
 *  folder that is missing or may not be changed is left as it is. */
void tnd_gpu_trim(const char *path, uint64_t most_bytes);

#endif
