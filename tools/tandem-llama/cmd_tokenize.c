/* SPDX-License-Identifier: MIT
 * tandem-llama tokenize: text to ids, or ids to text; one text or many. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tandem/tokenizer.h"
#include "tools/report/encoded.h"
#include "tools/tandem-llama/cli.h"
#include "tools/terminal.h"

struct tokenize_options {
    const char *tokenizer;
    const char *text;
    bool bos;
    bool prompt;
    bool special;
    bool detokenize;
    bool many;
};

static int tokenize(const tandem_tokenizer *tokenizer, const struct tokenize_options *options,
                    const char *text, size_t n)
{
    struct tandem_encode_options how = TANDEM_ENCODE_OPTIONS_INIT;
    const struct tnd_encoded_text all = {.text = text, .n = n, .options = &how};
    struct tandem_error error = {0};
    int32_t *ids = NULL;
    size_t n_ids = 0;
    how.add_bos = options->bos || (options->prompt && tandem_tokenizer_adds_bos(tokenizer));
    how.special_tokens = options->special;
    const enum tandem_status status = tnd_encoded(tokenizer, &all, &ids, &n_ids, NULL, &error);
    if (status == TANDEM_OK) {
        for (size_t i = 0; i < n_ids; i++) {
            printf("%s%d", i > 0 ? " " : "", (int)ids[i]);
        }
        printf("\n");
    }
    free(ids);
    return status == TANDEM_OK ? 0 : tnd_cli_fail(&error);
}

/* Writes the text that an id completes (-1: the rest). */
static void write_token(struct tandem_token_stream *stream, int32_t id)
{
    char out[8192];
    const size_t n = id < 0 ? tandem_token_stream_end(stream, out, sizeof(out))
                            : tandem_token_stream_next(stream, id, out, sizeof(out));
    fwrite(out, 1, n < sizeof(out) ? n : 0, stdout);
}

/* `text` ends with a zero byte. */
static int detokenize(const tandem_tokenizer *tokenizer, const struct tokenize_options *options,
                      const char *text)
{
    struct tandem_token_stream stream = tandem_token_stream_begin(tokenizer, true);
    const char *at = text;
    stream.shows_special = options->special;
    tnd_terminal_pass_text();
    for (;;) {
        while (isspace((unsigned char)*at)) {
            at++;
        }
        if (*at == '\0') {
            break;
        }
        char *end = NULL;
        errno = 0;
        const long long id = strtoll(at, &end, 10);
        if (end == at || errno != 0 || id < 0 || id >= tandem_tokenizer_vocabulary(tokenizer)) {
            return tnd_cli_usage("'%.20s' is no id of this tokenizer, which has 0 to %lld", at,
                                 (long long)tandem_tokenizer_vocabulary(tokenizer) - 1);
        }
        write_token(&stream, (int32_t)id);
        at = end;
    }
    write_token(&stream, -1);
    if (options->many) {
        putchar('\0');
    }
    return 0;
}

/* Processes the whole text, or each part of it: lines of ids, or texts that end with a zero
 * byte. */
static int work(const tandem_tokenizer *tokenizer, const struct tokenize_options *options,
                char *text, size_t n)
{
    const char end = options->detokenize ? '\n' : '\0';
    size_t at = 0;
    int code = 0;
    if (options->many && n == 0) {
        return 0;
    }
    do {
        const char *found = options->many ? memchr(text + at, end, n - at) : NULL;
        const size_t length = found == NULL ? n - at : (size_t)(found - (text + at));
        text[at + length] = '\0'; /* (in bounds: reading stops one byte early) */
        code = options->detokenize ? detokenize(tokenizer, options, text + at)
                                   : tokenize(tokenizer, options, text + at, length);
        at += length + 1;
    } while (code == 0 && at < n);
    return code;
}

int tnd_cmd_tokenize(int argc, char **argv)
{
    struct tokenize_options o = {0};
    const char *file = NULL;
    const struct args_option rows[] = {
        {"t", ARGS_STRING, &o.tokenizer, 0, 0, "FILE", "the same as FILE"},
        {"p", ARGS_STRING, &o.text, 0, 0, "TEXT", "in place of standard input"},
        {"bos", ARGS_FLAG, &o.bos, 0, 0, NULL, "put the beginning token in front"},
        {"prompt", ARGS_FLAG, &o.prompt, 0, 0, NULL,
         "put it in front if the tokenizer wants it, as run does"},
        {"special", ARGS_FLAG, &o.special, 0, 0, NULL,
         "recognise and show special tokens such as <s>"},
        {"detokenize", ARGS_FLAG, &o.detokenize, 0, 0, NULL, "read ids and write their text"},
        {"null", ARGS_FLAG, &o.many, 0, 0, NULL,
         "many texts, each ends with a zero byte; their ids, a line each"},
    };
    const struct args_command command = {"tokenize",
                                         "[FILE]",
                                         "Text on stdin becomes ids, separated by blanks; or ids "
                                         "become text. FILE: tokenizer.model, "
                                         "tokenizer.json, tokenizer.bin or GGUF.",
                                         CLI_ROWS(rows),
                                         0,
                                         1};
    int code = args_parse(&command, argc, argv, &file, NULL);
    if (code != ARGS_OK) {
        return args_code(code);
    }
    if (file != NULL && o.tokenizer != NULL) {
        return tnd_cli_usage("unexpected '%s': -t has named a tokenizer", file);
    }
    o.tokenizer = file != NULL ? file : o.tokenizer;
    if (o.tokenizer == NULL) {
        return tnd_cli_usage("tokenize needs a tokenizer: FILE");
    }
    struct tandem_error error = {0};
    tandem_tokenizer *tokenizer = NULL;
    if (tandem_tokenizer_open(o.tokenizer, 0, &tokenizer, &error) != TANDEM_OK) {
        return tnd_cli_fail(&error);
    }
    size_t n = 0;
    char *text = NULL;
    if (tnd_cli_take_text(o.text, &text, &n, &error) != TANDEM_OK) {
        code = tnd_cli_fail(&error);
    } else {
        code = work(tokenizer, &o, text, n);
    }
    free(text);
    tandem_tokenizer_close(tokenizer);
    return code;
}
