/* SPDX-License-Identifier: MIT
 * Reading lines with libedit (its own interface, not readline's), or getline. */
#include "tools/tandem-llama/line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/terminal.h"
#ifdef TND_HAVE_LIBEDIT
#include <histedit.h>
#endif

static const char prompt_text[] = "> ";

struct tnd_line {
    bool is_terminal;
    char *text; /* buffer of getline */
    size_t capacity;
#ifdef TND_HAVE_LIBEDIT
    EditLine *editor; /* NULL: not in use */
    History *history;
    const char *history_file;
#endif
};

#ifdef TND_HAVE_LIBEDIT
enum { HISTORY_LINES = 1000 };

static const char *prompt_of(EditLine *editor)
{
    (void)editor;
    return prompt_text;
}

static void open_editor(struct tnd_line *line, const char *history_file)
{
    HistEvent event;
    line->history_file = history_file;
    line->history = history_init();
    line->editor = el_init("tandem-llama", stdin, tnd_terminal_unfiltered(), stderr);
    if (line->editor == NULL || line->history == NULL) {
        return;
    }
    history(line->history, &event, H_SETSIZE, HISTORY_LINES);
    history(line->history, &event, H_SETUNIQUE, 1);
    if (history_file != NULL) {
        history(line->history, &event, H_LOAD, history_file); /* may not exist yet */
    }
    el_set(line->editor, EL_PROMPT, prompt_of);
    el_set(line->editor, EL_EDITOR, "emacs");
    el_set(line->editor, EL_HIST, history, line->history);
    el_set(line->editor, EL_SIGNAL, 0); /* we handle Ctrl-C ourselves */
}

static void close_editor(struct tnd_line *line)
{
    HistEvent event;
    if (line->history != NULL && line->history_file != NULL) {
        history(line->history, &event, H_SAVE, line->history_file);
    }
    if (line->editor != NULL) {
        el_end(line->editor);
    }
    if (line->history != NULL) {
        history_end(line->history);
    }
}

static enum tnd_line_result read_edited(struct tnd_line *line, const char **out_text, size_t *out_n)
{
    HistEvent event;
    int n = 0;
    errno = 0;
    const char *text = el_gets(line->editor, &n);
    if (text == NULL || n <= 0) {
        const bool was_interrupted = n < 0 && errno == EINTR;
        if (was_interrupted) {
            el_reset(line->editor);
            fputs("\n", stdout);
        }
        return was_interrupted ? TND_LINE_INTERRUPTED : TND_LINE_END;
    }
    *out_text = text;
    *out_n = (size_t)n - (text[n - 1] == '\n');
    if (*out_n > 0) {
        history(line->history, &event, H_ENTER, text);
    }
    return TND_LINE_READ;
}
#endif

struct tnd_line *tnd_line_open(const char *history_file)
{
    struct tnd_line *line = calloc(1, sizeof(*line));
    if (line == NULL) {
        return NULL;
    }
    line->is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
#ifdef TND_HAVE_LIBEDIT
    if (line->is_terminal) {
        open_editor(line, history_file);
    }
#else
    (void)history_file;
#endif
    return line;
}

void tnd_line_close(struct tnd_line *line)
{
    if (line != NULL) {
#ifdef TND_HAVE_LIBEDIT
        close_editor(line);
#endif
        free(line->text);
        free(line);
    }
}

enum tnd_line_result tnd_line_read(struct tnd_line *line, const char **out_text, size_t *out_n)
{
#ifdef TND_HAVE_LIBEDIT
    if (line->editor != NULL && line->history != NULL) {
        return read_edited(line, out_text, out_n);
    }
#endif
    if (line->is_terminal) {
        fputs(prompt_text, stdout);
        fflush(stdout);
    }
    errno = 0;
    const ssize_t n = getline(&line->text, &line->capacity, stdin);
    if (n < 0) {
        const bool was_interrupted = errno == EINTR;
        if (!was_interrupted && !feof(stdin)) {
            fprintf(stderr, "tandem-llama: standard input cannot be read: %s\n", strerror(errno));
        }
        clearerr(stdin);
        return was_interrupted ? TND_LINE_INTERRUPTED : TND_LINE_END;
    }
    *out_text = line->text;
    *out_n = (size_t)n - (n > 0 && line->text[n - 1] == '\n');
    return TND_LINE_READ;
}

bool tnd_line_is_terminal(const struct tnd_line *line)
{
    return line->is_terminal;
}
