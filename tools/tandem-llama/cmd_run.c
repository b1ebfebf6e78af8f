/* SPDX-License-Identifier: MIT
 * tandem-llama run: text goes to stdout while it is generated, everything else to stderr. Steps are
 * counted as in llama2.c: one per position, the beginning token at position 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tandem-llama/kit.h"
#include "tools/tandem-llama/offer_tune.h"
#include "tools/report/encoded.h"
#include "tools/say.h"

/* A run; its kit owns the objects. */
struct run {
    struct tnd_kit kit;
    const char *text; /* "-": standard input */
    const char *file; /* file with the text, or NULL */
    char *read;       /* the text, if it was read from a file or standard input */
    size_t n_bytes;
    int64_t steps;
    int64_t batch;
    int32_t *prompt; /* ids, beginning with the beginning token if the tokenizer wants one */
    int64_t n_prompt;
    int64_t n_decoded; /* number of ids, up to the number of steps */
    double prompt_seconds;
    double generation_seconds;
    struct tnd_op_times times;
};

enum { PROMPT_BYTES_MAX = 64 << 20 }; /* no context holds the tokens of more */

/* Sets `text` to the prompt's bytes, reading standard input or a file if necessary. Drops one
 * newline at the end, which editors and echo add and which a model would take for part of the
 * text. */
static enum tandem_status read_prompt(struct run *run, struct tandem_error *error)
{
    const char *path = run->file != NULL ? run->file : run->text;
    run->n_bytes = strlen(run->text);
    if (run->file == NULL && strcmp(run->text, "-") != 0) {
        return TANDEM_OK;
    }
    CLI_TRY(tnd_cli_read_text(path, PROMPT_BYTES_MAX, &run->read, &run->n_bytes, error));
    run->text = run->read;
    if (run->n_bytes > 0 && run->text[run->n_bytes - 1] == '\n') {
        run->n_bytes--;
        run->n_bytes -= run->n_bytes > 0 && run->text[run->n_bytes - 1] == '\r' ? 1 : 0;
    }
    return TANDEM_OK;
}

static enum tandem_status encode_prompt(struct run *run, struct tandem_error *error)
{
    const tandem_tokenizer *tokenizer = run->kit.tokenizer;
    /* an empty prompt always begins with the beginning token */
    const bool add_bos = tandem_tokenizer_adds_bos(tokenizer) || run->n_bytes == 0;
    const struct tandem_encode_options how = {.size = sizeof(how), .add_bos = add_bos};
    const struct tnd_encoded_text text = {.text = run->text, .n = run->n_bytes, .options = &how};
    size_t n = 0;
    const enum tandem_status status = tnd_encoded(tokenizer, &text, &run->prompt, &n, NULL, error);
    run->n_prompt = (int64_t)n;
    return status;
}

static enum tandem_status generate(struct run *run, struct tandem_error *error)
{
    struct tnd_kit *kit = &run->kit;
    const struct tandem_generator_options options = {.size = sizeof(options),
                                                     .session = kit->session,
                                                     .sampler = kit->sampler,
                                                     .tokenizer = kit->tokenizer,
                                                     .prompt = run->prompt,
                                                     .n_prompt = run->n_prompt,
                                                     .steps = run->steps,
                                                     .batch = run->batch};
    tandem_generator *generator = NULL;
    char text[4096];
    size_t n = 0;
    bool more = true;
    double begin = tnd_cli_seconds();
    enum tandem_status status = tandem_generator_new(&options, &generator, error);
    run->n_decoded = tandem_session_position(kit->session, 0);
    run->prompt_seconds = tnd_cli_seconds() - begin;
    if (status == TANDEM_OK && run->n_decoded < run->n_prompt) {
        tnd_say("tandem-llama: note: the prompt has %lld tokens, %lld steps end inside it\n",
                (long long)run->n_prompt, (long long)run->n_decoded);
    }
    begin = tnd_cli_seconds();
    while (status == TANDEM_OK && more && !ferror(stdout)) { /* stops when stdout is closed */
        status = tandem_generator_next(generator, text, sizeof(text), &n, &more, error);
        if (status == TANDEM_OK) {
            tnd_kit_print_text(text, n);
        }
        if (tandem_session_position(kit->session, 0) > run->n_decoded) { /* one of each kind */
            tandem_session_print_plans(kit->session, NULL, NULL);
        }
    }
    run->generation_seconds = tnd_cli_seconds() - begin;
    tandem_generator_free(generator);
    return status;
}

/* ---- times of operations: for devices that measure them (profile=on) ---- */

static bool wants_times(const struct run *run)
{
    const char *settings = run->kit.options.runtime.settings;
    return run->kit.options.print_stats && settings != NULL &&
           strstr(settings, "profile=on") != NULL;
}

static void print_timing(const struct run *run)
{
    tnd_kit_print_speed("prompt", run->n_decoded, run->prompt_seconds);
    tnd_kit_print_speed("generation", tandem_session_position(run->kit.session, 0) - run->n_decoded,
                        run->generation_seconds);
    if (run->kit.options.print_stats) {
        tnd_kit_print_stats(&run->kit);
        tnd_op_times_print(&run->times, stderr);
    }
}

/* The runtime has logged that there is no table; prints which command makes one for this model. */
static void say_table(const struct run *run)
{
    char arguments[512];
    if (run->kit.options.runtime.table == NULL && !tnd_kit_say_table(run->kit.runtime) &&
        tnd_tune_pays(run->kit.runtime)) {
        tnd_tune_arguments(run->kit.model, arguments, sizeof(arguments));
        tnd_say("to measure this machine for this model: mulmat-tune %s\n", arguments);
    }
}

static int run_all(struct run *run, const char *checkpoint)
{
    struct tandem_error error = {0};
    enum tandem_status status = TANDEM_OK;
    if (run->steps > 0 && run->kit.options.context == 0) {
        run->kit.options.context = run->steps;
    }
    run->kit.options.times = wants_times(run) ? &run->times : NULL;
    run->kit.options.ranks.leads_here = run->file == NULL && strcmp(run->text, "-") == 0;
    status = read_prompt(run, &error);
    if (status == TANDEM_OK) {
        status = tnd_kit_open(&run->kit, checkpoint, &error);
    }
    if (status == TANDEM_OK) {
        status = encode_prompt(run, &error);
    }
    if (status == TANDEM_OK) {
        say_table(run);
        if (wants_times(run)) {
            tandem_session_set_timed(run->kit.session, tnd_op_times_add, &run->times);
        }
        status = generate(run, &error);
        printf("\n");
        fflush(stdout);
    }
    if (status == TANDEM_OK) {
        print_timing(run);
    }
    free(run->prompt);
    free(run->read);
    tnd_kit_close(&run->kit);
    return status == TANDEM_OK ? 0 : tnd_cli_fail(&error);
}

int tnd_cmd_run(int argc, char **argv)
{
    struct run run = {.kit = {.options = TND_KIT_DEFAULTS}, .text = "", .steps = 256};
    const struct args_option rows[] = {
        {"p", ARGS_STRING, &run.text, 0, 0, "TEXT",
         "text to continue; -: from standard input; default: none"},
        {"file|f", ARGS_STRING, &run.file, 0, 0, "FILE", "continue the text in FILE"},
        {"n", ARGS_INT, &run.steps, 0, 1e9, "N",
         "steps, the beginning token counted; 256; 0: as many as fit"},
        {"batch", ARGS_INT, &run.batch, 0, 1e9, "N",
         "prompt tokens at a time; default: all; 1: one by one"},
        TND_KIT_ROWS(&run.kit.options),
    };
    const struct args_command command = {"run", "MODEL", "Continues a text.", CLI_ROWS(rows), 1, 1};
    const char *checkpoint = NULL;
    const int result = args_parse(&command, argc, argv, &checkpoint, NULL);
    if (result == ARGS_OK && run.file != NULL && run.text[0] != '\0') {
        return tnd_cli_usage("-p and --file: expected one of them");
    }
    return result == ARGS_OK ? run_all(&run, checkpoint) : args_code(result);
}
