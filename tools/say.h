/* SPDX-License-Identifier: MIT
 * Notes and progress of the tools, on stderr: what --quiet leaves out and --verbose adds to. What
 * somebody asked for, and what went wrong, is printed as ever. */
#ifndef TND_TOOLS_SAY_H
#define TND_TOOLS_SAY_H

#include <stdbool.h>

#include "tandem/formats.h"
#include "tandem/log.h"

enum tnd_say_level { TND_SAY_QUIET = -1, TND_SAY_NOTES, TND_SAY_ALL };

/** What args_parse found; the command line of a process is read once. */
extern enum tnd_say_level tnd_say_level;

/** Prints a note or a part of it, unless the tool is quiet. */
void tnd_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** A tandem_log_fn: prints "TOOL: room: text". `user` is a bool, true while a runtime opens: what
 *  several runtimes of one command say at that is said once. */
void tnd_say_log(void *user, enum tandem_log_level level, const char *room, const char *text);
/** A note where the source is the text of a model of more. */
void tnd_say_text_of(const tandem_source *source);
/** What a runtime is to log: errors alone, what TANDEM_LOG says, or at least information. */
enum tandem_log_level tnd_say_log_level(void);

#endif
