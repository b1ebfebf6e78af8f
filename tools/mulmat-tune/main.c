/* SPDX-License-Identifier: MIT
 * mulmat-tune: measures what matrix products cost on this machine, and tells what the measurements
 * say. Each command is a file cmd_*.c; adding one takes a line in the list below. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tandem/mapped.h"
#include "tandem/version.h"
#include "tools/device_option.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/terminal.h"

static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} commands[] = {
    {"bench", tnd_cmd_bench, "measure this machine and keep the results"},
    {"analyze", tnd_cmd_analyze, "tell which profile wins at which M, from a timing table"},
    {"explain", tnd_cmd_explain, "tell why a way is chosen, and what would be if"},
    {"simulate", tnd_cmd_simulate, "run a model's plan by a virtual clock, for any table"},
    {"advise", tnd_cmd_advise, "tell what to set in llama.cpp for a model on this machine"},
    {"test", tnd_cmd_test, "check results, or with -oracle the quality of the choices"},
    {"table", tnd_cmd_table, "list, show, merge, check and prune timing tables"},
    {"devices", tnd_cmd_devices, "list the OpenCL devices of this machine"},
    {"tune-device", tnd_cmd_tune_device, "find the tile numbers of a device's kernels"},
    {"profiles", tnd_cmd_profiles, "list the ways of computing that this machine has"},
    {"help", cmd_help, "print this, or the options of a command"},
    {"version", cmd_version, "print the version"},
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static int find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static void print_usage(FILE *out)
{
    fprintf(out, "usage: mulmat-tune [COMMAND] [options]\n\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        fprintf(out, "  %-11s %s\n", commands[i].name, commands[i].what);
    }
    fprintf(
        out,
        "\n" TND_PLUGIN_OPTION_HELP
        ", in all commands.\n'mulmat-tune help COMMAND' lists the options of a command. Without a "
        "command: bench -model 7B -type q4_0.\n");
}

static int cmd_help(int argc, char **argv)
{
    int command = argc > 1 ? find_command(argv[1]) : -1;
    if (argc <= 1) {
        print_usage(stdout);
        return 0;
    }
    if (command < 0) {
        fprintf(stderr, "mulmat-tune: unknown command '%s'\n", argv[1]);
        print_usage(stderr);
        return 2;
    }
    if (commands[command].run == cmd_help || commands[command].run == cmd_version) {
        printf("%s: %s\n", commands[command].name, commands[command].what);
        return 0;
    }
    char flag[] = "--help";
    char *arguments[] = {argv[1], flag, NULL};
    return commands[command].run(2, arguments);
}

static int cmd_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("mulmat-tune %s\n", TANDEM_VERSION_STRING);
    return 0;
}

int main(int argc, char **argv)
{
    (void)signal(SIGXFSZ, SIG_IGN); /* a file over `ulimit -f` is an error of write, not the end */
    tnd_terminal_begin();
    argc = tnd_plugin_option_take(argc, argv);
    char bench[] = "bench";
    char *alone[] = {argv[0], bench, NULL};
    if (argc < 2) { /* as the published mulmat-tune */
        fprintf(
            stderr,
            "mulmat-tune: measuring model 7B with q4_0 weights. The times go to the screen, and "
            "to this machine's\nown table. Ctrl-C stops and keeps what is measured; "
            "'mulmat-tune --help' lists the commands.\n");
        argc = 2;
        argv = alone;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-help") == 0 || strcmp(name, "-h") == 0) {
        name = "help";
    } else if (strcmp(name, "--version") == 0 || strcmp(name, "-version") == 0) {
        name = "version";
    }
    int command = find_command(name);
    if (command < 0) {
        fprintf(stderr, "mulmat-tune: unknown command '%s'\n", name);
        print_usage(stderr);
        return 2;
    }
    (void)tandem_guard_mapped_files(NULL); /* without it a cut file ends the process, as ever */
    int result = commands[command].run(argc - 1, argv + 1);
    struct tandem_error error = {0};
    if (result == 0 && tandem_mapped_files_status(&error) != TANDEM_OK) {
        fprintf(stderr, "mulmat-tune: %s\n", error.text);
        result = 1;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "mulmat-tune: standard output could not be written\n");
        return result != 0 ? result : 1;
    }
    return result;
}
