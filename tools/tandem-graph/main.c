/* SPDX-License-Identifier: MIT
 * tandem-graph: runs ONNX models. The commands are listed in a table, one file each
 * (cmd_graph_*.c). */
#include "tools/tandem-graph/graph_cli.h"
#include "tools/tool_main.h"

static const struct tnd_command commands[] = {
    {"run", tnd_cmd_graph_run, "compute a model's outputs from .npy files"},
    {"bench", tnd_cmd_graph_bench, "measure how long a model takes"},
    {"inspect", tnd_cmd_graph_inspect, "print what is in a model, and what it becomes"},
    {"optimize", tnd_cmd_graph_optimize, "say what the passes make of a model's net"},
    {"svg", tnd_cmd_graph_svg, "draw a model's net before and after the passes"},
    {"mel", tnd_cmd_graph_mel, "make the spectrogram of a sound that Whisper reads"},
    {"transcribe", tnd_cmd_graph_transcribe, "write down a sound as tokens"},
    {"test", tnd_cmd_graph_test, "run test cases as the ONNX project lays them out"},
};

int main(int argc, char **argv)
{
    static const struct tnd_tool tool = {.name = "tandem-graph",
                                         .what = "runs ONNX models with Tandem",
                                         .behind = "",
                                         .commands = commands,
                                         .n_commands =
                                             (int)(sizeof(commands) / sizeof(commands[0]))};
    return tnd_tool_main(&tool, argc, argv);
}
