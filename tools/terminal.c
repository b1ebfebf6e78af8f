/* SPDX-License-Identifier: MIT
 * A filter between stdio and descriptors 1 and 2. */
#include "tools/terminal.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/visible.h"

struct output {
    int fd;
    bool passes;   /* pass bytes unchanged */
    char begun[4]; /* of an incomplete UTF-8 character */
    size_t n_begun;
};

static struct output outputs[2] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};
static FILE *unfiltered;

static bool write_out(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR) {
            return false;
        }
        bytes += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* The visible form of the character at `text`; newlines and tabs stay. */
static size_t next(const char *text, size_t n, char out[TND_VISIBLE_MAX], size_t *out_n)
{
    if (text[0] != '\n' && text[0] != '\t') {
        return tnd_visible_next(text, n, out, out_n);
    }
    out[0] = text[0];
    *out_n = 1;
    return 1;
}

/* A write function of fopencookie: 0 is failure. */
static ssize_t put(void *cookie, const char *bytes, size_t n)
{
    struct output *output = cookie;
    if (output->passes) {
        return write_out(output->fd, bytes, n) ? (ssize_t)n : 0;
    }
    for (size_t done = 0; done < n;) {
        enum { PIECE = 1024 };
        char in[PIECE + sizeof(output->begun)];
        char out[sizeof(in) * TND_VISIBLE_MAX];
        size_t n_in = output->n_begun, n_out = 0, at = 0, taken = 1;
        const size_t piece = n - done < PIECE ? n - done : PIECE;
        memcpy(in, output->begun, output->n_begun);
        memcpy(in + n_in, bytes + done, piece);
        n_in += piece;
        done += piece;
        for (output->n_begun = 0; at < n_in && taken > 0; at += taken) {
            size_t n_shown = 0;
            taken = next(in + at, n_in - at, out + n_out, &n_shown);
            n_out += taken > 0 ? n_shown : 0;
        }
        if (at < n_in) { /* continued in the next piece */
            output->n_begun = n_in - at;
            memcpy(output->begun, in + at, output->n_begun);
        }
        if (!write_out(output->fd, out, n_out)) {
            return 0;
        }
    }
    return (ssize_t)n;
}

void tnd_terminal_begin(void)
{
    const cookie_io_functions_t functions = {.write = put};
    FILE *out = fopencookie(&outputs[0], "w", functions);
    FILE *err = fopencookie(&outputs[1], "w", functions);
    unfiltered = stdout;
    if (out != NULL) {
        setvbuf(out, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
        stdout = out;
    }
    if (err != NULL) {
        setvbuf(err, NULL, _IONBF, 0);
        stderr = err;
    }
}

void tnd_terminal_pass_text(void)
{
    fflush(stdout);
    outputs[0].passes = !isatty(STDOUT_FILENO);
}

void tnd_terminal_control(const char *text)
{
    fflush(stderr);
    (void)write_out(STDERR_FILENO, text, strlen(text));
}

FILE *tnd_terminal_unfiltered(void)
{
    return unfiltered;
}
