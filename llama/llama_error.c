/* SPDX-License-Identifier: MIT
 * Filling struct tandem_error. */
#include "llama/llama_error.h"

#include <stdarg.h>
#include <stdio.h>

enum tandem_status tnd_llama_fail(struct tandem_error *error, enum tandem_status status,
                                  const char *where, int64_t got, int64_t limit, const char *format,
                                  ...)
{
    if (error == NULL) {
        return status;
    }
    error->status = status;
    error->got = got;
    error->limit = limit;
    snprintf(error->where, sizeof(error->where), "%s", where == NULL ? "" : where);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return status;
}
