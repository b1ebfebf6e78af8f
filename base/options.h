/* SPDX-License-Identifier: MIT
 * Options structs begin with their own size, so that a program built with an older or newer header
 * than the library's still works. */
#ifndef TND_OPTIONS_H
#define TND_OPTIONS_H

#include <stddef.h>

#include "base/tnd_status.h"

/** Copies a caller's options struct (first member: size_t size; NULL allowed) over `out`, which
 * holds the defaults and is `out_bytes` long. A shorter struct leaves the rest as it is; a longer
 * one is accepted while its unknown tail is zero. Errors: ABI. */
enum tandem_status tnd_options_read(const void *options, const char *name, void *out,
                                    size_t out_bytes, struct tandem_error *error);

/** The other direction: copies `results` (`bytes` long, first member: size_t size) into a caller's
 * struct `out`, whose size the caller has set. A shorter struct gets the beginning, the tail of a
 * longer one becomes zero; its size stays. Errors: ARGUMENT (NULL), ABI (no size). */
enum tandem_status tnd_results_write(const void *results, size_t bytes, const char *name, void *out,
                                     struct tandem_error *error);

#endif
