/* SPDX-License-Identifier: MIT
 * The environment variables, all of them, for diagnosis only. docs/environment.md is made from this
 * list. */
#ifndef TND_ENVIRONMENT_H
#define TND_ENVIRONMENT_H

/** X(NAME, "variable", "sentence"). */
#define TND_ENVIRONMENT_LIST(X)                                                                    \
    X(LOG, "TANDEM_LOG",                                                                           \
      "What is logged: 1 or error, 2 or warn, 3 or info, 4 or debug; 0 or off: nothing.")          \
    X(CPU, "TANDEM_CPU",                                                                           \
      "Highest instruction set that kernels may use: scalar, avx2, avxvnni, avx512, vnni on "      \
      "x86; scalar, neon, dotprod, i8mm on ARM.")                                                  \
    X(DEVICE, "TANDEM_DEVICE",                                                                     \
      "OpenCL device to use: its number in the list, or a part of its name; two of them with a "   \
      "comma between for the second device; `none`: use none.")                                    \
    X(MAP, "TANDEM_MAP",                                                                           \
      "`copy`: read model files instead of mapping them, so that they may change meanwhile.")      \
    X(NUMA, "TANDEM_NUMA",                                                                         \
      "Number of NUMA nodes to pretend, at most one a core: workers and rows are shared out as "   \
      "on "                                                                                        \
      "such a machine.")                                                                           \
    X(TABLE, "TANDEM_TABLE", "File with this machine's timing table; `none`: use none.")           \
    X(TUNE, "TANDEM_TUNE",                                                                         \
      "`on-first-use`: the first plan of a graph with weight shapes that the table does not know " \
      "measures them, once a process, and adds them to this machine's table.")                     \
    X(TUNE_BUDGET, "TANDEM_TUNE_BUDGET",                                                           \
      "Seconds that this measuring takes; 3 where it is not set.")                                 \
    X(THREADS, "TANDEM_THREADS", "Number of threads, where the program asks for the default.")     \
    X(TRACE, "TANDEM_TRACE", "File that receives a trace of every step, for trace viewers.")

enum tnd_environment_variable {
#define TND_ENVIRONMENT_ENUM(name, variable, text) TND_ENVIRONMENT_##name,
    TND_ENVIRONMENT_LIST(TND_ENVIRONMENT_ENUM)
#undef TND_ENVIRONMENT_ENUM
        TND_ENVIRONMENT_COUNT
};

/** Value of a variable; NULL when unset or empty. Any thread that does not change the
 * environment. */
const char *tnd_environment(enum tnd_environment_variable variable);

/** "TANDEM_LOG" and the sentence about it. Static. */
const char *tnd_environment_name(enum tnd_environment_variable variable);
const char *tnd_environment_text(enum tnd_environment_variable variable);

#endif
