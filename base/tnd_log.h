/* SPDX-License-Identifier: MIT
 * Calls the application's log callback. Internal twin of tandem/log.h. */
#ifndef TND_LOG_H
#define TND_LOG_H

#include "tandem/log.h"

/** Where log lines go and which ones; zeroed: silent. May be copied. */
struct tnd_log {
    tandem_log_fn fn; /* NULL: silent */
    void *user;
    enum tandem_log_level level; /* lines above it are dropped */
};

/** Logs one line (truncated at 511 bytes). `log` may be NULL. Never allocates; not under a lock,
 * not in a kernel. Any thread. */
void tnd_log_line(const struct tnd_log *log, enum tandem_log_level level, const char *room,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
