/* SPDX-License-Identifier: MIT
 * The candidates for a plain matrix product, each at each thread count, with what the table
 * predicts. The planner chooses from them and the explanation prints them, so that both see the
 * same list and comparison. No allocation. */
#ifndef TND_CANDIDATES_H
#define TND_CANDIDATES_H

#include "tune/moves.h"
#include "table/problem.h"

/* A profile with the table's verdict on its results. */
struct tnd_candidate {
    struct tnd_table_profile profile;
    struct tandem_plan_node node; /* resolved to slots; unset if not on this machine */
    enum tnd_verdict verdict;     /* the table's verdict on its results */
    double nmse;                  /* the largest one found by checks, if any ran */
    bool is_excluded;             /* never chosen, because of its results */
};

struct tnd_prediction {
    int candidate; /* index; -1: none */
    int threads;
    struct tnd_estimate total;
    struct tnd_estimate stage[TANDEM_STAGES]; /* zeros if the stage does not exist */
    struct tnd_estimate moving; /* part of `total` outside the stages: transfers, waking */
    struct tnd_moves moves;     /* each transfer, whether in `total` or not */
    double joules;              /* energy of the machine; 0: unknown, or the objective is time */
    double weight;              /* tnd_objective_weight */
    double sharing_us;          /* cost to neighbouring nodes of several threads; not in `total` */
    double cautious_us;         /* compared by: weight * (tnd_cautious_us(total) + sharing_us) */
};

/** The time that candidates are compared by: the prediction plus a part of its error bar
 * (TND_CAUTION), or plus the whole range for a thread count beyond the measured ones if that is
 * more. If `noisy`, also plus the spread of the samples, so that a noisy candidate wins only with a
 * lead above its noise. For one stage, pass the total's `noisy`. */
double tnd_cautious_us(const struct tnd_estimate *estimate, bool noisy);

/** Lists what this machine can run: profiles whose backends are open and support the node (NULL:
 * any product of `type`). A candidate is excluded if the table says that its results are wrong, or,
 * with a bound > 0, if its error is above the bound or was never checked. Fills at most
 * TND_TABLE_MAX_PROFILES entries; returns their number. */
int tnd_candidates_here(const struct tnd_registry *registry, const struct tandem_table *table,
                        const tandem_tensor *node, enum tandem_type type, double error_bound,
                        struct tnd_candidate *out);
/** Lists what the table's machine can run: the profiles that were measured on it. */
int tnd_candidates_of_table(const struct tandem_table *table, enum tandem_type type,
                            double error_bound, struct tnd_candidate *out);

/** Whether every backend of a candidate supports this node. */
bool tnd_node_is_supported(const struct tnd_registry *registry,
                           const struct tandem_plan_node *candidate, const tandem_tensor *node);

/** What a product's prediction depends on beside its shape. */
struct tnd_neighbours {
    bool is_on_side;       /* X and Y are on `side`: only candidates that work there count */
    const char *side;      /* device, or "" for host memory */
    int neighbour_threads; /* of the next node, which wakes workers that this one lets sleep */
    bool is_warm;          /* the weights stay in the cache: use times measured so, if any */
};

/** Predicts one candidate on exactly this many threads. False if the table has no prediction, or
 * the candidate works on another side. `neighbours` NULL: operands in host memory, no workers to
 * wake. */
bool tnd_predict(const struct tandem_table *table, const struct tnd_candidate *candidates,
                 int candidate, const struct tnd_problem *problem, int threads,
                 const struct tnd_neighbours *neighbours, struct tnd_prediction *out);

struct tnd_choice {
    struct tnd_prediction best;   /* candidate -1: the table covers no candidate */
    struct tnd_prediction second; /* of another candidate than the best */
    bool is_beyond; /* a candidate was skipped because M is too far from its measured range */
};

/** Whether an estimate is too far out to decide by: M is outside of the measured range by more than
 * a factor of four. */
bool tnd_is_beyond(const struct tnd_estimate *estimate);

/** Whether a challenger is faster than the incumbent by more than noise explains: three standard
 *  deviations of the difference (error bars are median deviations, of which 1.48 are a standard
 *  one), and a tenth of the incumbent's time. */
bool tnd_lead_is_clear(const struct tnd_estimate *challenger, const struct tnd_estimate *incumbent);

/** Like tnd_lead_is_clear for two candidates, compared by the table's objective. */
bool tnd_prediction_leads(const struct tnd_prediction *challenger,
                          const struct tnd_prediction *incumbent);

/** Chooses the candidate with the least cautious_us among those neither excluded nor beyond, on 1,
 * 2, 4, .. n_threads threads; the first of equals. The rule's first profile, packed weights, is
 * kept unless another one leads by 2 %, by three standard errors of the difference, and by half of
 * the rest of both error bars; the rule's thread count is kept over other counts of the winner by
 * the same measure. `neighbours` NULL: operands in host memory, neighbours on n_threads. `each`
 * (may be NULL) is called with every prediction. */
void tnd_choose(const struct tandem_table *table, const struct tnd_candidate *candidates,
                int n_candidates, const struct tnd_problem *problem, int n_threads,
                const struct tnd_neighbours *neighbours,
                void (*each)(void *user, const struct tnd_prediction *prediction), void *user,
                struct tnd_choice *out);

/** The next thread count after `threads` to predict, up to the limit: twice as many, or a measured
 * count in between. `table` may be NULL. */
int tnd_next_thread_count(const struct tandem_table *table, int threads, int limit);

#endif
