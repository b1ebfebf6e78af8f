/* SPDX-License-Identifier: MIT
 * The file format of cached program binaries, as pure functions over bytes. A file that is damaged
 * or of another device, driver or source is detected and not used. */
#ifndef TND_GPU_CACHE_H
#define TND_GPU_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "base/tnd_status.h"

/** Finds the payload in a file's bytes. `key`: what the file must have been written for. The
 * payload is borrowed from `bytes`. Errors: FORMAT (not such a file, or damaged), TRUNCATED,
 * NOT_FOUND (another key). */
enum tandem_status tnd_gpu_cache_read(const void *bytes, size_t n, const char *key,
                                      const void **out_payload, size_t *out_payload_n,
                                      struct tandem_error *error);

/** Appends the bytes of such a file to `out`, which keeps a failure. */
void tnd_gpu_cache_write(const char *key, const void *payload, size_t payload_n,
                         struct tnd_text *out);

#endif
