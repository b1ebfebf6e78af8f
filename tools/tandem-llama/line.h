/* SPDX-License-Identifier: MIT
 * Reading lines that a user types: with editing and history if libedit and a terminal are
 * available, plainly otherwise. */
#ifndef TANDEM_LLAMA_LINE_H
#define TANDEM_LLAMA_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct tnd_line;

/** `history`: file that lines are loaded from and saved to, or NULL. NULL when out of memory. */
struct tnd_line *tnd_line_open(const char *history);
/** Saves the history. NULL is allowed. */
void tnd_line_close(struct tnd_line *line);

enum tnd_line_result { TND_LINE_READ, TND_LINE_INTERRUPTED, TND_LINE_END };
/** Reads one line, without its newline; valid until the next call. */
enum tnd_line_result tnd_line_read(struct tnd_line *line, const char **out_text, size_t *out_n);

/** Whether both ends are terminals. */
bool tnd_line_is_terminal(const struct tnd_line *line);

#endif
