/* SPDX-License-Identifier: MIT
 * The candidates for a plain matrix product, each at each thread count, with what the table
 * predicts. The planner chooses from them and the explanation prints them: there is one list and
 * one comparison. No allocation. */
#ifndef TND_CANDIDATES_H
#define TND_CANDIDATES_H

#include "tune/moves.h"
#include "table/problem.h"

/* A profile in the terms of the table. */
struct tnd_candidate {
    struct tnd_table_profile profile;
    struct tandem_plan_node node; /* resolved to slots; only of candidates on this machine */
    enum tnd_verdict verdict;     /* on its results, by the table */
    double nmse;                  /* the largest that was found, unless nobody looked */
    bool is_excluded;             /* may not win for that */
};

struct tnd_prediction {
    int candidate; /* index; -1: none */
    int threads;
    struct tnd_estimate total;
    struct tnd_estimate stage[TANDEM_STAGES]; /* all zero where the stage does not exist */
    struct tnd_estimate moving; /* what `total` holds beside the stages: transfers, waking */
    struct tnd_moves moves;     /* each transfer, counted or not */
    double joules;      /* that the machine takes meanwhile; 0: unknown, or time is aimed at */
    double weight;      /* tnd_objective_weight */
    double sharing_us;  /* what several threads cost the neighbours; not in `total` */
    double cautious_us; /* what is compared: tnd_cautious_us of the total, the sharing, weighed */
};

/** Prediction and a part of its error bar, or all of the range of a thread count beyond the
 *  measured ones where that is more; where it is noisy the spread of the samples too, so that it
 *  wins only with a lead above its noise. Of a stage: `noisy` as for the total. */
double tnd_cautious_us(const struct tnd_estimate *estimate, bool noisy);

/** What this machine can run: profiles whose backends are open and take the node (NULL: any
 *  product of `type`). A candidate is excluded when the table says that its results are wrong,
 *  or with a bound > 0 when its error is above it or was never looked at. Fills at most
 *  TND_TABLE_MAX_PROFILES; returns how many. */
int tnd_candidates_here(const struct tnd_registry *registry, const struct tandem_table *table,
                        const tandem_tensor *node, enum tandem_type type, double error_bound,
                        struct tnd_candidate *out);
/** What the machine of the table can run: the profiles that were measured on it. */
int tnd_candidates_of_table(const struct tandem_table *table, enum tandem_type type,
                            double error_bound, struct tnd_candidate *out);

/** Whether every backend of a choice takes this very node. */
bool tnd_node_is_supported(const struct tnd_registry *registry,
                           const struct tandem_plan_node *candidate, const tandem_tensor *node);

/** Where a product's neighbours are. */
struct tnd_neighbours {
    bool is_on_side;       /* X and Y are on one side: only candidates that work there count */
    const char *side;      /* device, or "" for host memory */
    int neighbour_threads; /* they pay the wake-up if this node lets them sleep */
    bool is_warm;          /* the weights stay in the cache: such times where there are some */
};

/** The prediction of one candidate on exactly this many threads; false where the table has no
 *  prediction, or when it works on another side. `neighbours` NULL: in host memory, nobody to
 *  wake. */
bool tnd_predict(const struct tandem_table *table, const struct tnd_candidate *candidates,
                 int candidate, const struct tnd_problem *problem, int threads,
                 const struct tnd_neighbours *neighbours, struct tnd_prediction *out);

struct tnd_choice {
    struct tnd_prediction best;   /* candidate -1: the table covers none of them */
    struct tnd_prediction second; /* of another candidate than the best */
    bool is_beyond; /* a candidate was left out: M is too far from what was measured of it */
};

/** Whether the table may not decide by an estimate: M is more than four times outside of what was
 *  measured. */
bool tnd_is_beyond(const struct tnd_estimate *estimate);

/** Whether a challenger is faster than the incumbent by more than noise explains: three standard
 *  deviations of the difference (error bars are median deviations, of which 1.48 are a standard
 *  one), and a tenth of the incumbent's time. */
bool tnd_lead_is_clear(const struct tnd_estimate *challenger, const struct tnd_estimate *incumbent);

/** As tnd_lead_is_clear, of two candidates, by what the table aims at. */
bool tnd_prediction_leads(const struct tnd_prediction *challenger,
                          const struct tnd_prediction *incumbent);

/** The cheapest by cautious_us over candidates that are neither excluded nor beyond and thread
 *  counts 1, 2, 4, .. n_threads; of equals the first. The rule's first way, packed weights, serves
 *  unless another leads for certain: by 2 %, by three standard errors of the difference, and by
 *  half of what else both error bars hold; of the winner's thread counts the rule's serves by the
 *  same measure. `neighbours` NULL: in host memory, running on n_threads. `each` (may be NULL) sees
 *  every candidate that has a prediction. */
void tnd_choose(const struct tandem_table *table, const struct tnd_candidate *candidates,
                int n_candidates, const struct tnd_problem *problem, int n_threads,
                const struct tnd_neighbours *neighbours,
                void (*each)(void *user, const struct tnd_prediction *prediction), void *user,
                struct tnd_choice *out);

/** The next thread count behind `threads` that is worth predicting, up to the limit: the double, or
 *  one between that the table was measured with. NULL: no table. */
int tnd_next_thread_count(const struct tandem_table *table, int threads, int limit);

#endif
