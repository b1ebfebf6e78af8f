/* SPDX-License-Identifier: MIT
 * What the tools print, on its way to a terminal: the one place that makes control characters and
 * invalid UTF-8 in names of files, devices and tables visible. */
#ifndef TND_TERMINAL_H
#define TND_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/** Puts the filter behind stdout and stderr; newlines and tabs pass. First thing in main. Without
 *  memory everything stays as it is. */
void tnd_terminal_begin(void);
/** Text of a model or a tokenizer follows on stdout: its bytes pass as they are, unless stdout is a
 *  terminal. */
void tnd_terminal_pass_text(void);
/** Writes control characters of our own to stderr. */
void tnd_terminal_control(const char *text);
/** The stream before the filter, for a line editor. */
FILE *tnd_terminal_unfiltered(void);

#endif
