/* SPDX-License-Identifier: MIT
 * Lines that a person types: with editing and history where libedit is and a terminal is in use,
 * plainly else. */
#ifndef TANDEM_LLAMA_LINE_H
#define TANDEM_LLAMA_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct tnd_line;

/** `history`: file that lines are read from and added to, or NULL. NULL when there is no memory. */
struct tnd_line *tnd_line_open(const char *history);
/** NULL is allowed. Writes the history. */
void tnd_line_close(struct tnd_line *line);

enum tnd_line_result { TND_LINE_READ, TND_LINE_INTERRUPTED, TND_LINE_END };
/** One line without its end, valid until the next call. */
enum tnd_line_result tnd_line_read(struct tnd_line *line, const char **out_text, size_t *out_n);

/** Whether a terminal is at both ends. */
bool tnd_line_is_terminal(const struct tnd_line *line);

#endif
