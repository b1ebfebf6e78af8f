/* SPDX-License-Identifier: MIT
 * tandem-llama started several times by an MPI launcher: rank 0 is the program that people see, the
 * others compute their parts of its sessions. */
#ifndef TANDEM_LLAMA_RANKS_CLI_H
#define TANDEM_LLAMA_RANKS_CLI_H

#include "tandem/llama.h"

/** Options of several ranks. */
struct tnd_ranks_options {
    const char *shares; /* "2,1": NULL: the same for all */
    double limit_s;     /* 0: the communicator's own */
};
#define TND_RANKS_ROWS(r)                                                                          \
    {"shares",                                                                                     \
     ARGS_STRING,                                                                                  \
     &(r)->shares,                                                                                 \
     0,                                                                                            \
     0,                                                                                            \
     "N,N",                                                                                        \
     "of the ranks of mpirun in proportion; default: the same"},                                   \
    {                                                                                              \
        "rank-limit", ARGS_NUMBER, &(r)->limit_s, 0, 1e6, "S",                                     \
            "seconds that a rank waits for another one; 60"                                        \
    }

/** Before the command that argv[1] names: joins the ranks of an MPI launcher, where there are any
 *  and the command is one for several. False after a message. */
bool tnd_ranks_begin(int argc, char **argv);
/** tandem_session_new with all ranks. On rank 0 it returns as that does; on others it follows rank
 *  0 until the end, and ends the process then. */
enum tandem_status tnd_ranks_session_new(const tandem_model *model, tandem_runtime *runtime,
                                         struct tandem_session_options *options,
                                         const struct tnd_ranks_options *ranks,
                                         tandem_session **out_session, struct tandem_error *error);
/** Leaves the ranks, with the exit code of the command: other than 0, it ends them all. Returns
 *  it. */
int tnd_ranks_end(int code);

#endif
