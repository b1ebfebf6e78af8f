/* SPDX-License-Identifier: MIT
 * tandem-llama chat: a conversation in a terminal, or with lines of standard input. Ctrl-C stops
 * the answer and keeps the session. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tandem-llama/kit.h"
#include "tools/tandem-llama/line.h"
#include "tools/tandem-llama/offer_tune.h"
#include "tools/say.h"

struct talk {
    struct tnd_kit kit;
    const char *template;  /* a file or a name; NULL: the model's own */
    const char *variables; /* members of a JSON object */
    tandem_chat_template *chat_template;
    const char *system;
    const char *history;
    int64_t max_answer;
    tandem_chat *chat;
    struct tnd_line *line;
    double begin; /* time of the current answer's beginning */
    double first; /* seconds until its first text; 0: none yet */
};

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t was_interrupted;

static void on_interrupt(int number)
{
    (void)number;
    was_interrupted = 1;
}

static bool is_interrupted(void *user)
{
    (void)user;
    return was_interrupted != 0;
}

/* Without SA_RESTART, so that reading a line is interrupted. */
static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
}

/* ---- answers ---- */

static bool print_part(void *user, const char *text, size_t n)
{
    struct talk *talk = user;
    if (talk->first == 0.0) {
        talk->first = tnd_cli_seconds() - talk->begin;
    }
    tnd_kit_print_text(text, n);
    return !ferror(stdout);
}

static enum tandem_status answer(struct talk *talk, const char *text, size_t n,
                                 struct tandem_error *error)
{
    was_interrupted = 0;
    talk->begin = tnd_cli_seconds();
    talk->first = 0.0;
    const enum tandem_status status = tandem_chat_say(talk->chat, text, n, error);
    const double seconds = tnd_cli_seconds() - talk->begin;
    const struct tandem_chat_info *info = tandem_chat_info(talk->chat);
    printf("%s\n", info->was_cancelled ? " ..." : "");
    fflush(stdout);
    if (status == TANDEM_OK && talk->kit.options.print_stats) {
        tnd_kit_print_speed("prompt", info->n_prompt, talk->first);
        tnd_kit_print_speed("answer", info->n_answer, seconds - talk->first);
    }
    return status;
}

/* ---- commands ---- */

static void print_commands(void)
{
    printf("/reset       forgets the conversation\n"
           "/save FILE   writes the conversation's state\n"
           "/load FILE   goes on with a state that was written\n"
           "/stats       prints machine, table and memory\n"
           "/quit        ends; so does Ctrl-D\n"
           "Ctrl-C       stops an answer and keeps the conversation\n");
}

/* Runs a command; true when the conversation continues. */
static bool run_command(struct talk *talk, const char *text)
{
    struct tandem_error error = {0};
    enum tandem_status status = TANDEM_OK;
    if (strcmp(text, "/quit") == 0 || strcmp(text, "/exit") == 0) {
        return false;
    }
    if (strcmp(text, "/reset") == 0) {
        tandem_chat_reset(talk->chat);
    } else if (strncmp(text, "/save ", 6) == 0) {
        status = tandem_session_save(talk->kit.session, text + 6, &error);
    } else if (strncmp(text, "/load ", 6) == 0) {
        status = tandem_session_load(talk->kit.session, text + 6, &error);
        if (status == TANDEM_OK) {
            tandem_chat_resume(talk->chat);
        }
    } else if (strcmp(text, "/stats") == 0) {
        tnd_kit_print_stats(&talk->kit);
    } else {
        print_commands();
    }
    if (status != TANDEM_OK) {
        (void)tnd_cli_fail(&error);
    }
    return true;
}

/* ---- the conversation ---- */

static int converse(struct talk *talk)
{
    const char *text;
    size_t n;
    for (;;) {
        was_interrupted = 0;
        const enum tnd_line_result result = tnd_line_read(talk->line, &text, &n);
        if (result == TND_LINE_INTERRUPTED) {
            fprintf(stderr, "(Ctrl-D or /quit ends)\n");
            continue;
        }
        if (result == TND_LINE_END || ferror(stdout)) {
            return 0;
        }
        char *said = malloc(n + 1);
        if (said == NULL) {
            fprintf(stderr, "tandem-llama: no memory for a line of %zu bytes\n", n);
            return 1;
        }
        memcpy(said, text, n);
        said[n] = '\0';
        struct tandem_error error = {0};
        bool more = true;
        if (said[0] == '/') {
            more = run_command(talk, said);
        } else if (n > 0 && answer(talk, said, n, &error) != TANDEM_OK) {
            (void)tnd_cli_fail(&error); /* drops this message; the conversation so far is kept */
        }
        free(said);
        if (!more) {
            return 0;
        }
    }
}

/* In a terminal without a table: offers to measure, and continues with the new table. */
static enum tandem_status offer_tune(struct talk *talk, struct tandem_error *error)
{
    const char *text;
    size_t n;
    if (talk->kit.options.runtime.table != NULL || tnd_kit_say_table(talk->kit.runtime) ||
        !tnd_tune_pays(talk->kit.runtime) || !tnd_line_is_terminal(talk->line)) {
        return TANDEM_OK;
    }
    fprintf(stderr, "Measure it now, in about a minute? y or n\n");
    if (tnd_line_read(talk->line, &text, &n) != TND_LINE_READ || n == 0 ||
        (text[0] != 'y' && text[0] != 'Y') || !tnd_tune_run(talk->kit.model)) {
        return TANDEM_OK;
    }
    tandem_runtime *tuned;
    const enum tandem_status status =
        tnd_cli_open_runtime(&talk->kit.options.runtime, &tuned, error);
    if (status == TANDEM_OK) {
        tandem_session_set_runtime(talk->kit.session, tuned);
        tandem_runtime_close(talk->kit.runtime);
        talk->kit.runtime = tuned;
        (void)tnd_kit_say_table(tuned);
    }
    return status;
}

static enum tandem_status open_chat(struct talk *talk, struct tandem_error *error)
{
    enum tandem_status status =
        talk->template != NULL
            ? tandem_chat_template_open(talk->template, &talk->chat_template, error)
            : tandem_chat_template_of_source(talk->kit.source, NULL, &talk->chat_template, error);
    if (status == TANDEM_E_NOT_FOUND && talk->template == NULL) {
        snprintf(error->text, sizeof(error->text),
                 "the model has no chat template: --chat-template FILE, or llama-2, llama-3, "
                 "mistral-instruct, chatml or plain; 'run' continues a text without one");
    }
    const struct tandem_chat_options options = {.size = sizeof(options),
                                                .session = talk->kit.session,
                                                .sampler = talk->kit.sampler,
                                                .tokenizer = talk->kit.tokenizer,
                                                .chat_template = talk->chat_template,
                                                .system = talk->system,
                                                .max_answer = talk->max_answer,
                                                .cancel = is_interrupted,
                                                .emit = print_part,
                                                .user = talk,
                                                .variables = talk->variables};
    if (status == TANDEM_OK) {
        tnd_say("chat template: %s\n", talk->template != NULL ? talk->template : "the model's own");
        return tandem_chat_new(&options, &talk->chat, error);
    }
    return status;
}

/* Models support far longer contexts than a conversation needs, and the whole cache is allocated at
 * the start. */
enum { DEFAULT_CONTEXT = 4096 };

static int talk_with(struct talk *talk, const char *checkpoint)
{
    struct tandem_error error = {0};
    int code = 1;
    if (talk->kit.options.context <= 0) {
        talk->kit.options.context = DEFAULT_CONTEXT;
    }
    talk->kit.options.ranks.leads_here = true;
    enum tandem_status status = tnd_kit_open(&talk->kit, checkpoint, &error);
    if (status == TANDEM_OK) {
        talk->line = tnd_line_open(talk->history);
        status = talk->line != NULL ? open_chat(talk, &error) : TANDEM_E_MEMORY;
    }
    if (status == TANDEM_OK) {
        catch_interrupts();
        status = offer_tune(talk, &error);
    }
    if (status == TANDEM_OK) {
        code = converse(talk);
    }
    tandem_chat_free(talk->chat);
    tandem_chat_template_free(talk->chat_template);
    tnd_line_close(talk->line);
    tnd_kit_close(&talk->kit);
    return status == TANDEM_OK ? code : tnd_cli_fail(&error);
}

int tnd_cmd_chat(int argc, char **argv)
{
    struct talk talk = {.kit = {.options = TND_KIT_DEFAULTS}};
    const struct args_option rows[] = {
        {"chat-template", ARGS_STRING, &talk.template, 0, 0, "FILE|NAME",
         "a file, or llama-2, llama-3, mistral-instruct, chatml, plain; the model's own"},
        {"variables", ARGS_STRING, &talk.variables, 0, 0, "JSON",
         "further variables of the template: '\"enable_thinking\":false'"},
        {"system", ARGS_STRING, &talk.system, 0, 0, "TEXT", "what the model is told first"},
        {"n", ARGS_INT, &talk.max_answer, 0, 1e9, "N", "tokens of an answer; half of the context"},
        {"history", ARGS_STRING, &talk.history, 0, 0, "FILE",
         "lines typed are kept there; default: not"},
        TND_KIT_ROWS(&talk.kit.options),
    };
    const struct args_command command = {"chat",         "MODEL", "Talks with a model.",
                                         CLI_ROWS(rows), 1,       1};
    const char *checkpoint = NULL;
    const int result = args_parse(&command, argc, argv, &checkpoint, NULL);
    return result == ARGS_OK ? talk_with(&talk, checkpoint) : args_code(result);
}
