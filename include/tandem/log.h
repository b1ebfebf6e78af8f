/* SPDX-License-Identifier: MIT
 * room: base
 *
 * Log lines go to a callback of the application. Without one the library is silent. */
#ifndef TANDEM_LOG_H
#define TANDEM_LOG_H

#include <stddef.h>

#include "tandem/version.h"

TANDEM_BEGIN_C

/** Importance of a line. A runtime logs lines up to its own level; numbers are pinned. */
enum tandem_log_level {
    TANDEM_LOG_ERROR = 1, /**< something that was requested did not happen */
    TANDEM_LOG_WARN = 2,  /**< it happened differently, or more slowly, than it could */
    TANDEM_LOG_INFO = 3,  /**< what was found and chosen */
    TANDEM_LOG_DEBUG = 4  /**< for people who work on Tandem */
};

/** Receives one line without newline. `room` names the part of the library ("tune", "sched", ...).
 * Both strings are borrowed during the call. May be called from any thread, several at once, never
 * under a lock of the library and never inside a kernel. */
typedef void (*tandem_log_fn)(void *user, enum tandem_log_level level, const char *room,
                              const char *text);

/** Writes `n` bytes of untrusted text to `out` (room for `out_bytes`) so that a terminal can show
 * them: control characters and invalid UTF-8 become "\x1b", "\u009b", "\n", "\t"; what does not
 * fit, and half a character at the end, is left out. Always terminated. Returns the length. The
 * library returns names in model files and tables and of devices unchanged, but applies this to its
 * messages and log lines. Never fails. Any thread. */
TANDEM_API size_t tandem_text_visible(const char *text, size_t n, char *out, size_t out_bytes);

/** Receives `n` bytes of text from a print function; returns 0 to continue, anything else to stop
 * (the print function then returns TANDEM_E_FILE). The library itself never prints. */
typedef int (*tandem_write_fn)(void *user, const char *bytes, unsigned long n);

TANDEM_END_C
#endif
