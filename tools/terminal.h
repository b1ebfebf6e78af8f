/* SPDX-License-Identifier: MIT
 * Filters the tools' output to a terminal: makes control characters and invalid UTF-8 in names of
 * files, devices and tables visible. No other code does this. */
#ifndef TND_TERMINAL_H
#define TND_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/** Puts the filter behind stdout and stderr; newlines and tabs pass. Call it first in main. When
 * out of memory, nothing is filtered. */
void tnd_terminal_begin(void);
/** Text of a model or a tokenizer follows on stdout: unless stdout is a terminal, its bytes pass
 * unchanged. */
void tnd_terminal_pass_text(void);
/** Writes our own control characters to stderr. */
void tnd_terminal_control(const char *text);
/** The unfiltered stream, for a line editor. */
FILE *tnd_terminal_unfiltered(void);

#endif
