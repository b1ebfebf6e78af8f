/* SPDX-License-Identifier: MIT
 * tandem-llama imatrix: measures from a text which columns of a model's matrices matter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/report/encoded.h"
#include "tools/new_file.h"
#include "tools/say.h"
#include "tools/tandem-llama/collect.h"
#include "tools/tandem-llama/kit.h"
#include "tools/terminal.h"

struct request {
    struct tnd_kit kit;
    const char *text_path, *path;
    int64_t chunk, most; /* tokens per chunk; number of chunks, 0: all */
};

/* Reads the tokens of the text; `out_begins`: whether each chunk is preceded by the beginning
 * token. */
static enum tandem_status read_tokens(const struct request *r, int32_t **out, int64_t *out_n,
                                      bool *out_begins, struct tandem_error *error)
{
    const struct tandem_encode_options how = {.size = sizeof(how), .add_bos = true};
    struct tnd_encoded_text all = {.options = &how};
    char *text = NULL;
    size_t n = 0;
    CLI_TRY(tnd_cli_read_text(r->text_path, 0, &text, &all.n, error));
    all.text = text;
    const enum tandem_status status = tnd_encoded(r->kit.tokenizer, &all, out, &n, NULL, error);
    free(text);
    *out_n = (int64_t)n;
    *out_begins = tandem_tokenizer_bos(r->kit.tokenizer) >= 0;
    return status;
}

/* Each chunk is a text of its own; a shorter rest is dropped, as by llama-imatrix. */
static enum tandem_status decode(struct request *r, int32_t *tokens, int64_t n, bool begins,
                                 int64_t *out_chunks, struct tandem_error *error)
{
    const int64_t all = n / r->chunk;
    const int64_t chunks = r->most > 0 && r->most < all ? r->most : all;
    if (chunks == 0) {
        return tnd_cli_error(error, TANDEM_E_ARGUMENT, "the text has too few tokens for one chunk",
                             r->text_path);
    }
    for (int64_t i = 0; i < chunks; i++) {
        int32_t *chunk = tokens + i * r->chunk;
        if (begins) {
            chunk[0] = tokens[0];
        }
        (void)tandem_session_rollback(r->kit.session, 0, 0);
        CLI_TRY(tandem_session_decode(r->kit.session, chunk, r->chunk, 0, error));
        if (isatty(STDERR_FILENO)) {
            tnd_terminal_control("\r");
            tnd_say("chunk %lld of %lld", (long long)(i + 1), (long long)chunks);
        }
    }
    if (isatty(STDERR_FILENO)) {
        tnd_terminal_control("\r\033[K");
    }
    *out_chunks = chunks;
    return TANDEM_OK;
}

static enum tandem_status open_kit(struct request *r, const char *model, struct tandem_error *error)
{
    struct tnd_kit *kit = &r->kit;
    const struct tandem_session_options options = {.size = sizeof(options), .context = r->chunk};
    CLI_TRY(tandem_source_open(model, &kit->source, error));
    CLI_TRY(tandem_model_new(kit->source, &kit->model, error));
    CLI_TRY(tnd_kit_open_tokenizer(kit, model, error));
    CLI_TRY(tnd_cli_open_runtime(&kit->options.runtime, &kit->runtime, error));
    CLI_TRY(tnd_collect_begin(kit->runtime, error));
    return tandem_session_new(kit->model, kit->runtime, &options, &kit->session, error);
}

static enum tandem_status collect(struct request *r, const char *model, struct tandem_error *error)
{
    const struct tnd_importance_sums *sums = NULL;
    int32_t *tokens = NULL;
    int64_t n = 0;
    int64_t chunks = 0;
    int n_sums = 0;
    bool begins = false;
    CLI_TRY(open_kit(r, model, error));
    CLI_TRY(read_tokens(r, &tokens, &n, &begins, error));
    enum tandem_status status = decode(r, tokens, n, begins, &chunks, error);
    free(tokens);
    CLI_TRY(status);
    if (!tnd_collect_sums(&sums, &n_sums) || n_sums == 0) {
        return tnd_cli_error(error, TANDEM_E_MEMORY, "nothing could be collected for", model);
    }
    CLI_TRY(tnd_importance_write(r->path, sums, n_sums, r->text_path, chunks, r->chunk, error));
    printf("%s: %d matrices, %lld chunks of %lld tokens\n", r->path, n_sums, (long long)chunks,
           (long long)r->chunk);
    return TANDEM_OK;
}

int tnd_cmd_imatrix(int argc, char **argv)
{
    struct request r = {.kit = {.options = TND_KIT_DEFAULTS}, .path = "imatrix.gguf", .chunk = 512};
    bool replaces = false;
    const struct args_option rows[] = {
        {"o", ARGS_STRING, &r.path, 0, 0, "FILE",
         "to write: GGUF where it ends in .gguf, else llama.cpp's older form; imatrix.gguf"},
        {"chunk", ARGS_INT, &r.chunk, 2, 1e6, "N", "tokens that are a text of their own; 512"},
        {"chunks", ARGS_INT, &r.most, 0, 1e9, "N", "of the text at most; 0: all"},
        {"t", ARGS_STRING, &r.kit.options.tokenizer, 0, 0, "FILE",
         "tokenizer; default: the model file's own"},
        TND_NEW_FILE_OPTION(replaces),
        TND_RUNTIME_ROWS(&r.kit.options.runtime),
    };
    const struct args_command command = {
        "imatrix",
        "MODEL TEXT",
        "Decodes a text and writes, for each matrix, the mean square of what its columns\n"
        "meet: an importance matrix for convert --imatrix and for llama-quantize.",
        CLI_ROWS(rows),
        2,
        2};
    const char *paths[2] = {NULL, NULL};
    struct tandem_error error = {.text = ""};
    const int result = args_parse(&command, argc, argv, paths, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    r.text_path = paths[1];
    enum tandem_status status = tnd_new_file_check(r.path, replaces, &error);
    if (status == TANDEM_OK) {
        status = collect(&r, paths[0], &error);
    }
    tnd_kit_close(&r.kit);
    tnd_collect_end();
    return status == TANDEM_OK ? 0 : tnd_cli_fail(&error);
}
