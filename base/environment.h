/* SPDX-License-Identifier: MIT
 * All environment variables of the library, for diagnosis only. docs/environment.md is made from
 * this list. */
#ifndef TND_ENVIRONMENT_H
#define TND_ENVIRONMENT_H

#include "base/tnd_log.h"

/** X(NAME, "variable", "valid values, each followed by a space", largest valid number, "sentence").
 * Without words and number every value is accepted and its reader validates it. */
#define TND_ENVIRONMENT_LIST(X)                                                                    \
    X(LOG, "TANDEM_LOG", "off error warn info debug 0 1 2 3 4 ", 0,                                \
      "What is logged: 1 or error, 2 or warn, 3 or info, 4 or debug; 0 or off: nothing.")          \
    X(CPU, "TANDEM_CPU", "", 0,                                                                    \
      "Highest instruction set that kernels may use: scalar, avx2, avxvnni, avx512, vnni, gfni, "  \
      "bf16, amx on x86; scalar, neon, dotprod, i8mm on ARM. `amx-emulated`, for tests: no "       \
      "limit, and the kernels of AMX on a slow emulation of its instructions.")                    \
    X(DEVICE, "TANDEM_DEVICE", "", 0,                                                              \
      "OpenCL device to use: its number in the list, or a part of its name; two of them with a "   \
      "comma between for the second device; `none`: use none.")                                    \
    X(MAP, "TANDEM_MAP", "copy ", 0,                                                               \
      "`copy`: read model files instead of mapping them, so that they may change meanwhile.")      \
    X(NUMA, "TANDEM_NUMA", "", 1024,                                                               \
      "Number of NUMA nodes to pretend, at most one a core: workers and rows are shared out as "   \
      "on such a machine.")                                                                        \
    X(TABLE, "TANDEM_TABLE", "", 0, "File with this machine's timing table; `none`: use none.")    \
    X(TUNE, "TANDEM_TUNE", "on-first-use ", 0,                                                     \
      "`on-first-use`: the first plan of a graph with weight shapes that the table does not know " \
      "measures them, once a process, and adds them to this machine's table. So does the first "   \
      "net with unknown convolutions that is lowered with the runtime's chooser.")                 \
    X(TUNE_BUDGET, "TANDEM_TUNE_BUDGET", "", 1e6,                                                  \
      "Seconds that this measuring takes; 3 where it is not set.")                                 \
    X(THREADS, "TANDEM_THREADS", "", 1024,                                                         \
      "Number of threads, where the program asks for the default; it stays so [beside other "      \
      "programs](planning.md#the-observer).")                                                      \
    X(TRACE, "TANDEM_TRACE", "", 0, "File that receives a trace of every step, for trace viewers.")

enum tnd_environment_variable {
#define TND_ENVIRONMENT_ENUM(name, variable, words, most, text) TND_ENVIRONMENT_##name,
    TND_ENVIRONMENT_LIST(TND_ENVIRONMENT_ENUM)
#undef TND_ENVIRONMENT_ENUM
        TND_ENVIRONMENT_COUNT
};

/** Value of a variable; NULL when unset, empty or invalid. Any thread, while none changes the
 * environment. */
const char *tnd_environment(enum tnd_environment_variable variable);
/** Value of a numeric variable, above 0; 0 where tnd_environment returns NULL. */
double tnd_environment_number(enum tnd_environment_variable variable);
/** Logs each variable with an invalid value, once per process. */
void tnd_environment_check(const struct tnd_log *log);

/** Name ("TANDEM_LOG") and description of a variable. Static. */
const char *tnd_environment_name(enum tnd_environment_variable variable);
const char *tnd_environment_text(enum tnd_environment_variable variable);

#endif
