/* SPDX-License-Identifier: MIT
 * The main function of a tool with commands: help, version, and the command that the first word
 * names. */
#ifndef TND_TOOLS_TOOL_MAIN_H
#define TND_TOOLS_TOOL_MAIN_H

struct tnd_command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
    const char *what;
};

struct tnd_tool {
    const char *name;   /* "tandem-llama" */
    const char *what;   /* "runs llama-style models with Tandem" */
    const char *behind; /* text after the list of commands */
    const struct tnd_command *commands;
    int n_commands;
};

/** Runs the command that argv[1] names. Without arguments, or with --help, -h or `help`, lists the
 * commands; --version, -V and `version` print the version; `help COMMAND` is COMMAND --help.
 * Removes --plugin from the arguments first. Returns the exit code: 2 for an unknown command, 1
 * when standard output could not be written or a mapped file was truncated while it was read. */
int tnd_tool_main(const struct tnd_tool *tool, int argc, char **argv);

#endif
