/* SPDX-License-Identifier: MIT
 * Filling struct tandem_error from outside the library: llama/ uses the public interface alone. */
#ifndef TND_LLAMA_ERROR_H
#define TND_LLAMA_ERROR_H

#include "tandem/status.h"

/** Fills `error` (NULL allowed) and returns `status`. */
enum tandem_status tnd_llama_fail(struct tandem_error *error, enum tandem_status status,
                                  const char *where, int64_t got, int64_t limit, const char *format,
                                  ...) __attribute__((format(printf, 6, 7)));

/** Hands a failure on. */
#define LLAMA_TRY(expression)                                                                      \
    do {                                                                                           \
        enum tandem_status llama_try_status_ = (expression);                                       \
        if (llama_try_status_ != TANDEM_OK) {                                                      \
            return llama_try_status_;                                                              \
        }                                                                                          \
    } while (0)

#endif
