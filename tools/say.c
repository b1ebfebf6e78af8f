/* SPDX-License-Identifier: MIT
 * Notes and progress of the tools. */
#include "tools/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/args.h"

enum { MAX_SAID = 8, SAID_BYTES = 256 };

enum tnd_say_level tnd_say_level = TND_SAY_NOTES;

void tnd_say(const char *format, ...)
{
    if (tnd_say_level > TND_SAY_QUIET) {
        va_list arguments;
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
    }
}

/* Stores a note; true if it was printed before. */
static bool is_said(const char *text)
{
    static char said[MAX_SAID][SAID_BYTES];
    static int n_said;
    for (int i = 0; i < n_said; i++) {
        if (strncmp(said[i], text, SAID_BYTES - 1) == 0) {
            return true;
        }
    }
    if (n_said < MAX_SAID) {
        snprintf(said[n_said++], SAID_BYTES, "%s", text);
    }
    return false;
}

void tnd_say_log(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    const bool *is_opening = user;
    if (*is_opening && is_said(text)) {
        return;
    }
    if (level <= TANDEM_LOG_ERROR) {
        fprintf(stderr, "%s: error: %s: %s\n", args_program, room, text);
    } else {
        tnd_say("%s: note: %s: %s\n", args_program, room, text);
    }
}

void tnd_say_text_of(const tandem_source *source)
{
    const char *whole = NULL;
    if (tandem_source_text(source, "general.text_of", &whole)) {
        tnd_say(
            "%s: note: of this %.60s model the text is read, and its tensors of images are left "
            "out\n",
            args_program, whole);
    }
}

enum tandem_log_level tnd_say_log_level(void)
{
    static const enum tandem_log_level levels[] = {TANDEM_LOG_ERROR, (enum tandem_log_level)0,
                                                   TANDEM_LOG_INFO};
    return levels[tnd_say_level - TND_SAY_QUIET];
}
