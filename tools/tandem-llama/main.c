/* SPDX-License-Identifier: MIT
 * tandem-llama: runs llama-style models. The commands are listed in a table, one file each
 * (cmd_*.c). */
#include <string.h>

#include "tools/tool_main.h"
#include "tools/tandem-llama/cli.h"

static const struct tnd_command commands[] = {
    {"run", tnd_cmd_run, "continue a text with a model"},
    {"chat", tnd_cmd_chat, "talk with a model"},
    {"bench", tnd_cmd_bench, "measure prompt and generation speed"},
    {"compare", tnd_cmd_compare, "say what a type of weights, a cache or a profile changes"},
    {"embed", tnd_cmd_embed, "turn texts into vectors, or score them for a query"},
    {"tokenize", tnd_cmd_tokenize, "turn text into token ids, or back"},
    {"convert", tnd_cmd_convert, "write a GGUF file from another model file"},
    {"imatrix", tnd_cmd_imatrix, "say which columns of a model's matrices matter, from a text"},
    {"inspect", tnd_cmd_inspect, "print what is in a model file"},
    {"fit", tnd_cmd_fit, "say which weights should live on which device"},
    {"synth", tnd_cmd_synth, "write a GGUF file with random weights"},
    {"demo", tnd_cmd_demo, "compare what other programs do, the CPU kernels and the plan"},
};

int main(int argc, char **argv)
{
    static const struct tnd_tool tool = {
        .name = "tandem-llama",
        .what = "runs llama-style models with Tandem",
        .behind = "On a machine with a GPU or many cores run 'mulmat-tune bench' once: it measures "
                  "which\nprofile is fastest for each matrix product here.\n",
        .commands = commands,
        .n_commands = (int)(sizeof(commands) / sizeof(commands[0]))};
    static const char *const shared[] = {"run", "chat", "bench", "compare", "fit"};
    bool is_shared = false;
    for (size_t i = 0; argc > 1 && i < sizeof(shared) / sizeof(shared[0]); i++) {
        is_shared = is_shared || strcmp(argv[1], shared[i]) == 0;
    }
    args_program = tool.name;
    return !is_shared || tnd_ranks_begin() ? tnd_ranks_end(tnd_tool_main(&tool, argc, argv)) : 1;
}
