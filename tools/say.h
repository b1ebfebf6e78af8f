/* SPDX-License-Identifier: MIT
 * Notes and progress of the tools, on stderr; --quiet suppresses them, --verbose adds to them.
 * Requested output and errors are always printed. */
#ifndef TND_TOOLS_SAY_H
#define TND_TOOLS_SAY_H

#include <stdbool.h>

#include "tandem/formats.h"
#include "tandem/log.h"

enum tnd_say_level { TND_SAY_QUIET = -1, TND_SAY_NOTES, TND_SAY_ALL };

/** Set by args_parse. */
extern enum tnd_say_level tnd_say_level;

/** Prints a note or part of one, unless --quiet was given. */
void tnd_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** A tandem_log_fn: prints "TOOL: room: text". `user` is a bool, true while a runtime opens: a
 * message that several runtimes of one command log then is printed once. */
void tnd_say_log(void *user, enum tandem_log_level level, const char *room, const char *text);
/** Prints a note if the source is only the text part of a multimodal model. */
void tnd_say_text_of(const tandem_source *source);
/** Log level for runtimes: errors only, the level of TANDEM_LOG, or at least info. */
enum tandem_log_level tnd_say_log_level(void);

#endif
