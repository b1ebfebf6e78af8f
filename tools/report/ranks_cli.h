/* SPDX-License-Identifier: MIT
 * A tool started several times by an MPI launcher: one rank is the program that people see, the
 * others compute their parts of its sessions. */
#ifndef TND_RANKS_CLI_H
#define TND_RANKS_CLI_H

#include "tandem/llama.h"
#include "tools/args.h"

/** Options of several ranks. */
struct tnd_ranks_options {
    const char *shares;  /* "2,1": NULL: planned, where tables and links are measured */
    const char *layers;  /* of layers, mixed: the same; NULL: as `shares` */
    const char *divide;  /* "rows", "layers" or "mixed"; NULL: planned too, or rows */
    const char *experts; /* by rows: "rows" or "whole"; NULL: likewise */
    int64_t in_flight;   /* batches; 0: planned, or one for each rank with layers */
    int64_t n_texts;     /* that tokens are generated for at the same time; 0: one */
    double limit_s;      /* 0: the communicator's own */
    bool leads_here;     /* standard input is read, which rank 0 alone has */
    const char *cache;   /* folder for copies of rank 0's files; NULL: the user's own */
};
#define TND_RANKS_ROWS(r)                                                                          \
    {"shares",                                                                                     \
     ARGS_STRING,                                                                                  \
     &(r)->shares,                                                                                 \
     0,                                                                                            \
     0,                                                                                            \
     "N,N",                                                                                        \
     "of the ranks of mpirun in proportion; default: planned"},                                    \
        {"layer-shares",                                                                           \
         ARGS_STRING,                                                                              \
         &(r)->layers,                                                                             \
         0,                                                                                        \
         0,                                                                                        \
         "N,N",                                                                                    \
         "mixed, with --shares: of layers; default: as --shares"},                                 \
        {"divide",                                                                                 \
         ARGS_STRING,                                                                              \
         &(r)->divide,                                                                             \
         0,                                                                                        \
         0,                                                                                        \
         "WHAT",                                                                                   \
         "what ranks share: rows of all layers, layers, or mixed (layers of prompts, rows of "     \
         "generated tokens); default: planned"},                                                   \
        {"experts",                                                                                \
         ARGS_STRING,                                                                              \
         &(r)->experts,                                                                            \
         0,                                                                                        \
         0,                                                                                        \
         "WHAT",                                                                                   \
         "by rows, ranks have rows of all experts, or some experts whole; default: planned"},      \
        {"in-flight",                                                                              \
         ARGS_INT,                                                                                 \
         &(r)->in_flight,                                                                          \
         0,                                                                                        \
         TANDEM_BATCHES_IN_FLIGHT,                                                                 \
         "N",                                                                                      \
         "by layers: batches of different texts that ranks compute at the same time; default: "    \
         "planned"},                                                                               \
        {"model-cache",                                                                            \
         ARGS_STRING,                                                                              \
         &(r)->cache,                                                                              \
         0,                                                                                        \
         0,                                                                                        \
         "DIR",                                                                                    \
         "where ranks without the model file keep their part of it; default: "                     \
         "~/.cache/tandem/models"},                                                                \
    {                                                                                              \
        "rank-limit", ARGS_NUMBER, &(r)->limit_s, 0, 1e6, "S",                                     \
            "seconds that a rank waits for another one; 60"                                        \
    }

/** Joins the ranks of an MPI launcher, where there are any. False after a message. */
bool tnd_ranks_begin(void);
/** Where this rank has the model file of rank 0: at `path`, or in its cache, to which rank 0 sends
 *  what the rank needs once there is a plan (ranks_file.h); all of it if the model `is_converted`.
 *  Collective. Without ranks, for NULL, and after the first session `path`. The result lives as
 *  long as the process. NULL on failure. */
const char *tnd_ranks_model_path(const struct tnd_ranks_options *ranks, const char *path,
                                 bool is_converted, struct tandem_error *error);
/** The same for a tokenizer's file. */
const char *tnd_ranks_tokenizer_path(const struct tnd_ranks_options *ranks, const char *path,
                                     struct tandem_error *error);
/** tandem_session_new with the ranks that the first call plans, or one alone. On the rank that
 *  leads (0, or with `leads_here` not set the best one) it returns as that does; on others it
 *  follows that one until the end, and ends the process then. */
enum tandem_status tnd_ranks_session_new(const tandem_model *model, tandem_runtime *runtime,
                                         struct tandem_session_options *options,
                                         const struct tnd_ranks_options *ranks,
                                         tandem_session **out_session, struct tandem_error *error);
/** Which ways `divide` and `experts` do not want, as struct tnd_cluster's refused; NULL: none of
 *  them. Errors: ARGUMENT. */
enum tandem_status tnd_ranks_refused(const char *divide, const char *experts, unsigned *out_refused,
                                     struct tandem_error *error);
/** The ranks of this process; NULL: there are none. */
tandem_communicator *tnd_ranks_joined(void);
/** Leaves the ranks, with the exit code of the command: other than 0, it ends them all. Returns
 *  it. */
int tnd_ranks_end(int code);

#endif
