/* SPDX-License-Identifier: MIT
 * Fills struct tandem_error; reads options. */
#include "llama/llama_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tandem/log.h"

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
    where = where == NULL ? "" : where;
    (void)tandem_text_visible(where, strlen(where), error->where, sizeof(error->where));
    char text[sizeof(error->text)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    (void)tandem_text_visible(text, strlen(text), error->text, sizeof(error->text));
    return status;
}

enum tandem_status tnd_llama_options_read(const void *options, const char *name, void *out,
                                          size_t out_bytes, struct tandem_error *error)
{
    size_t bytes = sizeof(size_t);
    size_t used = out_bytes;
    if (options != NULL) {
        memcpy(&bytes, options, sizeof(bytes));
        for (used = bytes; used > out_bytes && ((const char *)options)[used - 1] == 0; used--) {
        }
    }
    if (bytes < sizeof(size_t) || used > out_bytes) {
        return tnd_llama_fail(error, TANDEM_E_ABI, name, (int64_t)bytes, (int64_t)out_bytes,
                              "%s: size is %zu, this library (%s) knows %zu bytes; initialise the "
                              "struct with its _INIT macro",
                              name, bytes, TANDEM_VERSION_STRING, out_bytes);
    }
    if (options != NULL) {
        memcpy(out, options, used);
    }
    return TANDEM_OK;
}
