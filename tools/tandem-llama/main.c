/* SPDX-License-Identifier: MIT
 * tandem-llama: runs llama-style models. Commands stand in a table, one file each (cmd_*.c). */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tandem/mapped.h"
#include "tools/device_option.h"
#include "tools/tandem-llama/cli.h"
#include "tools/terminal.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* from its own name on; returns the exit code */
    const char *what;
};

static const struct command commands[] = {
    {"run", tnd_cmd_run, "continue a text with a model"},
    {"chat", tnd_cmd_chat, "talk with a model"},
    {"bench", tnd_cmd_bench, "measure prompt and generation speed"},
    {"compare", tnd_cmd_compare, "say what a type of weights, a cache or a profile changes"},
    {"tokenize", tnd_cmd_tokenize, "turn text into token ids, or back"},
    {"convert", tnd_cmd_convert, "write a GGUF file from another model file"},
    {"inspect", tnd_cmd_inspect, "print what is in a model file"},
    {"fit", tnd_cmd_fit, "say which weights should live on which device"},
    {"synth", tnd_cmd_synth, "write a GGUF file with random weights"},
    {"demo", tnd_cmd_demo, "compare what other programs do, the CPU kernels and the plan"},
};
#define N_COMMANDS ((int)(sizeof(commands) / sizeof(commands[0])))

/* A result that could not be written is none, and so is one of zeros in place of weights. */
static int finish(int code)
{
    struct tandem_error error = {0};
    if (code == 0 && tandem_mapped_files_status(&error) != TANDEM_OK) {
        fprintf(stderr, "tandem-llama: %s\n", error.text);
        code = 1;
    }
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return code;
    }
    fprintf(stderr, "tandem-llama: standard output cannot be written\n");
    return code == 0 ? 1 : code;
}

static int help(void)
{
    printf("tandem-llama %s: runs llama-style models with Tandem\n\n", tandem_version());
    printf("usage: tandem-llama COMMAND [ARGUMENTS]\n\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        printf("  %-8s %s\n", commands[i].name, commands[i].what);
    }
    printf("  %-8s %s\n", "help", "this text; help COMMAND: the options of a command");
    printf("\nFirst run 'mulmat-tune bench', which measures this machine, so that each matrix "
           "product\n"
           "takes the profile that is fastest here.\n");
    return 0;
}

int main(int argc, char **argv)
{
    (void)signal(SIGXFSZ, SIG_IGN); /* a file over `ulimit -f` is an error of write, not the end */
    tnd_terminal_begin();
    args_program = "tandem-llama";
    (void)tandem_guard_mapped_files(NULL); /* without it a cut file ends the process, as ever */
    args_dashes = "--";
    argc = tnd_plugin_option_take(argc, argv);
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        return finish(help());
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tandem-llama %s\n", tandem_version());
        return 0;
    }
    const bool wants_help = strcmp(argv[1], "help") == 0;
    if (wants_help && argc < 3) {
        return finish(help());
    }
    const char *name = wants_help ? argv[2] : argv[1];
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            char *help_arguments[] = {argv[2], "--help"};
            const int code = wants_help ? commands[i].run(2, help_arguments)
                                        : commands[i].run(argc - 1, argv + 1);
            return finish(code);
        }
    }
    return tnd_cli_usage("unknown command '%s'", name);
}
