/* SPDX-License-Identifier: MIT
 * A plan for the running ranks: each rank prices its shares by its own table, rank 0 decides. */
#ifndef TND_RANKS_PLAN_H
#define TND_RANKS_PLAN_H

#include "tandem/llama.h"
#include "tools/report/cluster_report.h"

struct tnd_ranks_plan {
    struct tnd_cluster cluster;
    struct tnd_cluster_plan *plans; /* {cluster.n} */
    int best;                       /* index of the best plan; -1: none is possible */
    char why_not[240];              /* not "": why there is no plan, with rank and command */
    const char *undivided;          /* as in struct tnd_cluster_model; set without a plan too */
};

struct tnd_ranks_request {
    const tandem_model *model;
    tandem_runtime *runtime; /* has the table, devices and threads of this rank */
    int64_t context;         /* as in struct tandem_session_options */
    enum tandem_type cache_type;
    int64_t prompt_tokens; /* 0: default of fit_model.h */
    int64_t n_texts;       /* 0: default of fit_model.h */
    int leader;            /* -1: any */
    unsigned refused;      /* as in struct tnd_cluster */
    const double *count;   /* {TND_FIT_PHASES} */
};

/** Collective. `out` is the same on all ranks; end it with tnd_ranks_plan_fini. Errors: those of
 * communicators, MEMORY. */
enum tandem_status tnd_ranks_plan_new(tandem_communicator *communicator,
                                      const struct tnd_ranks_request *request,
                                      struct tnd_ranks_plan *out, struct tandem_error *error);
/** A zeroed one is allowed. */
void tnd_ranks_plan_fini(struct tnd_ranks_plan *plan);

#endif
