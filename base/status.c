/* SPDX-License-Identifier: MIT
 * Names and sentences of statuses, filling of error structs, and the library's version. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "tandem/log.h"

const char *tandem_version(void)
{
    return TANDEM_VERSION_STRING;
}

const char *tandem_status_name(enum tandem_status status)
{
    switch (status) {
#define STATUS_NAME(name, number, text)                                                            \
    case TANDEM_E_##name:                                                                          \
        return #name;
        TANDEM_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    }
    return "UNKNOWN";
}

const char *tandem_status_text(enum tandem_status status)
{
    switch (status) {
#define STATUS_TEXT(name, number, text)                                                            \
    case TANDEM_E_##name:                                                                          \
        return text;
        TANDEM_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "not a status of this library";
}

enum tandem_status tnd_error_set(struct tandem_error *error, enum tandem_status status,
                                 const char *where, int64_t got, int64_t limit, const char *format,
                                 ...)
{
    if (error == NULL) {
        return status;
    }
    /* An argument may point into *error (a caller that adds to a message), so fill a copy first. */
    struct tandem_error filled;
    memset(&filled, 0, sizeof(filled));
    filled.status = status;
    filled.got = got;
    filled.limit = limit;
    if (where != NULL) {
        (void)tandem_text_visible(where, strlen(where), filled.where, sizeof(filled.where));
    }
    char text[sizeof(filled.text)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    (void)tandem_text_visible(text, strlen(text), filled.text, sizeof(filled.text));
    *error = filled;
    return status;
}
