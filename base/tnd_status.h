/* SPDX-License-Identifier: MIT
 * Filling struct tandem_error. Internal twin of tandem/status.h (headers named tnd_* belong to the
 * library alone and may be included by their own room and the rooms above). */
#ifndef TND_STATUS_H
#define TND_STATUS_H

#include <stddef.h>

#include "tandem/status.h"

/** Fills `error` (NULL allowed) and returns `status`, so that a failing function can end with
 * `return tnd_error_set(error, TANDEM_E_SHAPE, "blk.0.wq", 3, 4, "mul_mat: K is %d ...", ...)`.
 * `where` may be NULL. Never allocates; long texts are truncated. Any thread. */
enum tandem_status tnd_error_set(struct tandem_error *error, enum tandem_status status,
                                 const char *where, int64_t got, int64_t limit, const char *format,
                                 ...) __attribute__((format(printf, 6, 7)));

/** Returns ARGUMENT from a public function when a required pointer is NULL; `call` is its name
 * without the prefix. */
#define TND_REQUIRE(pointer, call, error)                                                          \
    do {                                                                                           \
        if ((pointer) == NULL) {                                                                   \
            return tnd_error_set(error, TANDEM_E_ARGUMENT, #pointer, 0, 0, "%s: %s is NULL", call, \
                                 #pointer);                                                        \
        }                                                                                          \
    } while (0)

/** Returns a failure to the caller: `TND_TRY(step(...));` */
#define TND_TRY(expression)                                                                        \
    do {                                                                                           \
        enum tandem_status tnd_try_status_ = (expression);                                         \
        if (tnd_try_status_ != TANDEM_OK) {                                                        \
            return tnd_try_status_;                                                                \
        }                                                                                          \
    } while (0)

#endif
