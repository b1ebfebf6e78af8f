/* SPDX-License-Identifier: MIT
 * mulmat-tune: measures matrix products on this machine and reports on the measurements. Each
 * command is a file cmd_*.c; a new one needs a line in the list below. */
#include <stdio.h>

#include "tools/tool_main.h"
#include "tools/device_option.h"
#include "tools/mulmat-tune/commands.h"

static const struct tnd_command commands[] = {
    {"bench", tnd_cmd_bench, "measure this machine and keep the results"},
    {"analyze", tnd_cmd_analyze, "tell which profile wins at which M, from a timing table"},
    {"explain", tnd_cmd_explain, "tell why a profile is chosen, and what would change it"},
    {"simulate", tnd_cmd_simulate, "run a model's plan by a virtual clock, for any table"},
    {"advise", tnd_cmd_advise, "tell what to set in llama.cpp for a model on this machine"},
    {"test", tnd_cmd_test, "check results, or with --oracle the quality of the choices"},
    {"table", tnd_cmd_table, "list, show, merge, check and prune timing tables"},
    {"devices", tnd_cmd_devices, "list the OpenCL devices of this machine"},
    {"tune-device", tnd_cmd_tune_device, "find the tile numbers of a device's kernels"},
    {"profiles", tnd_cmd_profiles, "list the profiles that this machine has"},
};

int main(int argc, char **argv)
{
    static const struct tnd_tool tool = {
        .name = "mulmat-tune",
        .what = "measures this machine, so that matrix products take what is fastest",
        .behind = TND_PLUGIN_OPTION_HELP
        ", in all commands.\nWithout a command: bench --model 7B --type q4_0.\n",
        .commands = commands,
        .n_commands = (int)(sizeof(commands) / sizeof(commands[0]))};
    char bench[] = "bench";
    char *alone[] = {argc > 0 ? argv[0] : bench, bench, NULL};
    if (argc < 2) { /* like the published mulmat-tune */
        fprintf(
            stderr,
            "mulmat-tune: measuring model 7B with q4_0 weights. The times go to the screen, and "
            "to this machine's\nown table. Ctrl-C stops and keeps what is measured; "
            "'mulmat-tune --help' lists the commands.\n");
        return tnd_tool_main(&tool, 2, alone);
    }
    return tnd_tool_main(&tool, argc, argv);
}
