/* SPDX-License-Identifier: MIT
 * A tool started several times by an MPI launcher: one rank is the program that the user sees, the
 * others compute their parts of its sessions. */
#ifndef TND_RANKS_CLI_H
#define TND_RANKS_CLI_H

#include "tandem/llama.h"
#include "tools/args.h"

/** Options for several ranks. */
struct tnd_ranks_options {
    const char *shares;  /* "2,1"; NULL: planned if tables and links were measured */
    const char *layers;  /* shares of layers in a mixed division; NULL: equal to `shares` */
    const char *divide;  /* "rows", "layers" or "mixed"; NULL: planned, or rows */
    const char *experts; /* when dividing by rows: "rows" or "whole"; NULL: planned, or rows */
    int64_t in_flight;   /* batches in flight; 0: planned, or one per rank with layers */
    int64_t n_texts;     /* sequences generated at the same time; 0: one */
    double limit_s;      /* 0: the communicator's default */
    bool leads_here;     /* reads standard input, which only rank 0 has */
    const char *cache;   /* folder for copies of rank 0's files; NULL: the default */
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

/** Joins the ranks of an MPI launcher, if there is one. False after printing an error. */
bool tnd_ranks_begin(void);
/** Path of this rank's copy of rank 0's model file: `path` itself, or a file in its cache, to which
 * rank 0 sends what the rank needs once there is a plan (ranks_file.h); the whole file if the model
 * `is_converted`. Collective. Returns `path` without ranks, if it is NULL, and after the first
 * session. The result lives as long as the process. NULL on failure. */
const char *tnd_ranks_model_path(const struct tnd_ranks_options *ranks, const char *path,
                                 bool is_converted, struct tandem_error *error);
/** Like tnd_ranks_model_path, for a tokenizer's file. */
const char *tnd_ranks_tokenizer_path(const struct tnd_ranks_options *ranks, const char *path,
                                     struct tandem_error *error);
/** tandem_session_new with the ranks that the first call plans, or with one alone. Returns normally
 * on the leading rank (rank 0, or the best one unless `leads_here`). The other ranks follow its
 * orders and exit when it ends. */
enum tandem_status tnd_ranks_session_new(const tandem_model *model, tandem_runtime *runtime,
                                         struct tandem_session_options *options,
                                         const struct tnd_ranks_options *ranks,
                                         tandem_session **out_session, struct tandem_error *error);
/** The divisions that `divide` and `experts` exclude, as `refused` of struct tnd_cluster; NULL
 * excludes none. Errors: ARGUMENT. */
enum tandem_status tnd_ranks_refused(const char *divide, const char *experts, unsigned *out_refused,
                                     struct tandem_error *error);
/** The communicator of all ranks; NULL: there is only one. */
tandem_communicator *tnd_ranks_joined(void);
/** Leaves the ranks; an exit code other than 0 ends them all. Returns `code`. */
int tnd_ranks_end(int code);

#endif
