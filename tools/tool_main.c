/* SPDX-License-Identifier: MIT
 * Finds and runs a tool's command. */
#include "tools/tool_main.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tandem/mapped.h"
#include "tandem/version.h"
#include "tools/args.h"
#include "tools/device_option.h"
#include "tools/terminal.h"

/* Turns success into failure if the output could not be written, or if zeros were read in place of
 * a damaged file. */
static int finish(const struct tnd_tool *tool, int code)
{
    struct tandem_error error = {0};
    if (code == 0 && tandem_mapped_files_status(&error) != TANDEM_OK) {
        fprintf(stderr, "%s: %s\n", tool->name, error.text);
        code = 1;
    }
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return code;
    }
    fprintf(stderr, "%s: standard output cannot be written\n", tool->name);
    return code == 0 ? 1 : code;
}

static int list_commands(const struct tnd_tool *tool)
{
    printf("%s %s: %s\n\nusage: %s COMMAND [ARGUMENTS]\n\n", tool->name, TANDEM_VERSION_STRING,
           tool->what, tool->name);
    for (int i = 0; i < tool->n_commands; i++) {
        printf("  %-11s %s\n", tool->commands[i].name, tool->commands[i].what);
    }
    printf("  %-11s %s\n", "help", "this text; help COMMAND: the options of a command");
    printf("  %-11s %s\n\n%s", "version", "print the version", tool->behind);
    return 0;
}

/* Whether a word is `name`, an option of that name, or `letter` after one dash. */
static bool asks_for(const char *word, const char *name, char letter)
{
    const bool is_option = word[0] == '-';
    const char *bare = word + is_option + (is_option && word[1] == '-');
    return strcmp(bare, name) == 0 || (is_option && word[1] == letter && word[2] == '\0');
}

static int run_command(const struct tnd_tool *tool, int argc, char **argv)
{
    const bool wants_help = argc < 2 || asks_for(argv[1], "help", 'h');
    if (wants_help && argc < 3) {
        return list_commands(tool);
    }
    if (asks_for(argv[1], "version", 'V')) {
        printf("%s %s\n", tool->name, TANDEM_VERSION_STRING);
        return 0;
    }
    char *name = wants_help ? argv[2] : argv[1];
    for (int i = 0; i < tool->n_commands; i++) {
        if (strcmp(tool->commands[i].name, name) == 0) {
            char flag[] = "--help";
            char *help[] = {name, flag, NULL};
            return wants_help ? tool->commands[i].run(2, help)
                              : tool->commands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr,
            access(name, F_OK) == 0 ? "%s: '%s' is a file, expected a command before it; see '%s "
                                      "--help'\n"
            : name[0] == '-' ? "%s: '%s' is an option, expected a command before it; see '%s "
                               "--help'\n"
                             : "%s: unknown command '%s'; see '%s --help'\n",
            tool->name, name, tool->name);
    return 2;
}

int tnd_tool_main(const struct tnd_tool *tool, int argc, char **argv)
{
    (void)signal(SIGXFSZ, SIG_IGN); /* exceeding `ulimit -f` is then a write error */
    tnd_terminal_begin();
    args_program = tool->name;
    (void)tandem_guard_mapped_files(NULL); /* else a truncated file kills the process */
    argc = tnd_plugin_option_take(argc, argv);
    return finish(tool, run_command(tool, argc, argv));
}
