/* SPDX-License-Identifier: MIT
 * Checkpoints of llama2.c, versions 0 (without a magic number) and 1. */
#ifndef TND_LLAMA2C_H
#define TND_LLAMA2C_H

#include "formats/source.h"

/** Reads a checkpoint from memory, which the source borrows; `name` is used in messages. Errors:
 * FORMAT, TRUNCATED, UNSUPPORTED_BUILD (version 2 and later), MEMORY. */
enum tandem_status tnd_llama2c_read(const void *bytes, size_t n, const char *name,
                                    tandem_source **out_source, struct tandem_error *error);

#endif
