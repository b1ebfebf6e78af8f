/* SPDX-License-Identifier: MIT
 * Formats log lines on the stack and passes them to the application's callback. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_log.h"

void tnd_log_line(const struct tnd_log *log, enum tandem_log_level level, const char *room,
                  const char *format, ...)
{
    if (log == NULL || log->fn == NULL || level > log->level) {
        return;
    }
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    char shown[sizeof(text)];
    (void)tandem_text_visible(text, strlen(text), shown, sizeof(shown));
    log->fn(log->user, level, room, shown);
}
