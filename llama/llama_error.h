/* SPDX-License-Identifier: MIT
 * Errors, asserts and options of llama/, which uses only the public interface of Tandem. */
#ifndef TND_LLAMA_ERROR_H
#define TND_LLAMA_ERROR_H

#include <stddef.h>

#include "tandem/status.h"

/** Fills `error` (NULL allowed) and returns `status`. */
enum tandem_status tnd_llama_fail(struct tandem_error *error, enum tandem_status status,
                                  const char *where, int64_t got, int64_t limit, const char *format,
                                  ...) __attribute__((format(printf, 6, 7)));

/** Copies a caller's options struct (first member: size_t size; NULL allowed) over `out`, which
 * holds the defaults. A longer struct is accepted if its unknown tail is zero. Errors: ABI. */
enum tandem_status tnd_llama_options_read(const void *options, const char *name, void *out,
                                          size_t out_bytes, struct tandem_error *error);

/** Asserts an invariant of llama/; active in every build of `make check`. */
#ifdef TND_ASSERTIONS
#include <assert.h>
#define LLAMA_ASSERT(condition) assert(condition)
#else
#define LLAMA_ASSERT(condition) ((void)sizeof(!(condition)))
#endif

/** Returns ARGUMENT from a public function if a required pointer is NULL. */
#define LLAMA_REQUIRE(pointer, error)                                                              \
    do {                                                                                           \
        if ((pointer) == NULL) {                                                                   \
            return tnd_llama_fail(error, TANDEM_E_ARGUMENT, #pointer, 0, 0, "%s: %s is NULL",      \
                                  __func__, #pointer);                                             \
        }                                                                                          \
    } while (0)

/** Returns a failure to the caller. */
#define LLAMA_TRY(expression)                                                                      \
    do {                                                                                           \
        enum tandem_status llama_try_status_ = (expression);                                       \
        if (llama_try_status_ != TANDEM_OK) {                                                      \
            return llama_try_status_;                                                              \
        }                                                                                          \
    } while (0)

#endif
