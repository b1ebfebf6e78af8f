/* SPDX-License-Identifier: MIT
 * The main of a tool with commands: help, version, and the command that the first word names. */
#ifndef TND_TOOLS_TOOL_MAIN_H
#define TND_TOOLS_TOOL_MAIN_H

struct tnd_command {
    const char *name;
    int (*run)(int argc, char **argv); /* from its own name on; gives the exit code */
    const char *what;
};

struct tnd_tool {
    const char *name;   /* "tandem-llama" */
    const char *what;   /* "runs llama-style models with Tandem" */
    const char *behind; /* text behind the list of commands */
    const struct tnd_command *commands;
    int n_commands;
};

/** Runs the command that argv[1] names. No word at all, --help, -h and `help` list the commands;
 *  --version, -V and `version` tell the version; `help COMMAND` is COMMAND --help. Takes --plugin
 *  out of the arguments first. Gives the exit code: 2 for a command that there is not, 1 when
 *  standard output could not be written or a mapped file was cut while it was read. */
int tnd_tool_main(const struct tnd_tool *tool, int argc, char **argv);

#endif
