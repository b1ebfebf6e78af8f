/* SPDX-License-Identifier: MIT
 * Which ranks compute a model together, and how much of it each (llama/shard.h). By rows every rank
 * has a part of every layer, and twice a layer all add up their results: a part's time on a rank is
 * a curve over the share, of fit_model.h's prices; what a sum takes follows from the links. By
 * layers each rank has whole ones, and states go from rank to rank. Mixed: prompts by layers, and
 * generated tokens by rows. Nothing here knows a model file or a transport. docs/cluster.md tells
 * what is priced and what is not. */
#ifndef TND_CLUSTER_H
#define TND_CLUSTER_H

#include "tune/fit_model.h"

enum {
    TND_CLUSTER_MOST = 64,   /* ranks */
    TND_CLUSTER_STEPS = 64,  /* shares of rows are whole numbers that add up to this many */
    TND_CLUSTER_POINTS = 17, /* of a curve over the share: 0, 1/16, ... 1 */
    TND_CLUSTER_SIZES = 8,   /* of messages: 8 bytes, each 8 times the one before */
    TND_CLUSTER_USED = 64,   /* experts of a token that are counted */
    TND_CLUSTER_BATCHES = 8, /* in flight */
    TND_CLUSTER_NAME = 80
};

enum tnd_cluster_division {
    TND_CLUSTER_ROWS,
    TND_CLUSTER_LAYERS,
    TND_CLUSTER_MIXED,
    TND_CLUSTER_DIVISIONS
};

/* Bits of `refused` above those of divisions: by rows, no rows of all experts; no whole experts. */
enum { TND_CLUSTER_NO_EXPERT_ROWS = 1 << 8, TND_CLUSTER_NO_WHOLE_EXPERTS = 1 << 9 };

/* Sizes of a model that its division among ranks depends on. */
struct tnd_cluster_model {
    int64_t n_layers, dim, vocabulary, prompt_tokens;
    int64_t n_texts;              /* texts that get a token in a step of generation */
    int64_t units[TND_FIT_PARTS]; /* indivisible units of a part; 0: the part is not divided */
    int64_t bytes[TND_FIT_PARTS]; /* keys and values too */
    int64_t cache_bytes;          /* part of `bytes`: keys and values */
    double kv_bytes;              /* keys and values of a token */
    int64_t n_micro;              /* micro-batches of a prompt, by layers */
    const char *undivided;        /* why it cannot be divided by rows, static; NULL: it can */
    bool is_whole;                /* nor by layers, for the same reason */
    int64_t n_experts, n_used;    /* of each layer, and by a token; 0: none */
};

/* {points} of a part's share. */
struct tnd_cluster_curve {
    double us[TND_CLUSTER_POINTS], error_us[TND_CLUSTER_POINTS];
};

/* Times of shares of a model on a rank; where ranks share a machine, while the others compute too.
 */
struct tnd_cluster_prices {
    struct tnd_cluster_curve curves[TND_FIT_PHASES][TND_FIT_PARTS]; /* by rows */
    /* Over the share of layers: the layers with a prompt in micro-batches, and the classifier */
    struct tnd_cluster_curve layers[TND_FIT_PHASES], head[TND_FIT_PHASES];
    /* The same for one token of each text, with the texts in 1, 2, ... batches */
    struct tnd_cluster_curve batch[TND_CLUSTER_BATCHES], batch_head[TND_CLUSTER_BATCHES];
    /* Bytes that devices hold, over the share of rows and of layers */
    double rows_placed[TND_CLUSTER_POINTS], layers_placed[TND_CLUSTER_POINTS];
};

struct tnd_cluster_rank {
    char name[TND_CLUSTER_NAME];
    int64_t memory;   /* for weights, keys and values; 0: unknown, not checked */
    bool is_left_out; /* its times are unknown */
    double beside;    /* factor on the time of products while messages are in flight */
    /* Index 0: its CPU alone; 1: with its devices, if any. For each share the devices hold what
     * gains most, host memory the rest. */
    struct tnd_cluster_prices prices[2];
    bool has_device;
    int64_t device_memory; /* for weights, keys and values */
    char device[32];
};

/* Time of a message of 8, 64, ... bytes; and while as many bytes go in the other direction (0:
 * unknown, counted as `us`). */
struct tnd_cluster_link {
    double us[TND_CLUSTER_SIZES], both_us[TND_CLUSTER_SIZES];
};

struct tnd_cluster {
    struct tnd_cluster_model model;
    int n; /* ranks, at most TND_CLUSTER_MOST */
    struct tnd_cluster_rank *ranks;
    struct tnd_cluster_link *links; /* {n, n}, at [from * n + to] */
    bool is_medium;                 /* all messages share one medium: one at a time */
    bool has_sum;                   /* sums of all ranks were measured */
    struct tnd_cluster_link sum;
    unsigned refused; /* bit d: division d must not be used by several ranks; and the bits above */
};

struct tnd_cluster_plan {
    int n; /* ranks that take part; 0: no plan */
    enum tnd_cluster_division division;
    bool has_whole_experts;       /* by rows: each rank has whole experts, not rows of each */
    int ranks[TND_CLUSTER_MOST];  /* indices into the cluster's ranks; the first one leads */
    int shares[TND_CLUSTER_MOST]; /* of ranks[i], out of tnd_cluster_shares; mixed: rows */
    int layers[TND_CLUSTER_MOST]; /* mixed: layers of ranks[i], for prompts */
    double us[TND_FIT_PHASES], error_us[TND_FIT_PHASES];
    double link_us[TND_FIT_PHASES];   /* part of `us`: messages */
    double sums_us[TND_FIT_PHASES];   /* messages by rows, in which all ranks take part */
    int in_flight;                    /* by layers: batches of texts at the same time; 0: one */
    double move_us;                   /* mixed: part of a prompt's time, moves keys and values */
    int64_t bytes[TND_CLUSTER_MOST];  /* of ranks[i] */
    int64_t placed[TND_CLUSTER_MOST]; /* part of `bytes`: held by devices */
    uint64_t by_cpu; /* mixed, bit i: ranks[i] uses its CPU, its device lacks room */
    bool fits;
    /* Best times of as many ranks by each other division; 0: not possible, refused, or does not
     * fit. */
    double other_us[TND_CLUSTER_DIVISIONS][TND_FIT_PHASES];
};

/* ---- prices (cluster_price.c) ---- */

/* The hyperparameters that determine how a model can be divided. */
struct tnd_cluster_shape {
    int64_t dim, kv_heads, q_dim, vocabulary, hidden, expert_hidden;
    int64_t experts, experts_used;
    int64_t micro_tokens;  /* least tokens of a micro-batch, and most micro-batches of a */
    int64_t n_micro;       /* prompt, as ranks divide prompts; 0: prompts are not divided */
    const char *undivided; /* as in struct tnd_cluster_model */
    bool is_whole;
};

/** Prices shares of a model on a rank, with the CPU of `options` alone and with its devices, which
 * ranks of one machine share. `out_model` gets the model's sizes, which do not depend on the table.
 * Of `n_beside` ranks on one machine (1: the rank has it alone) none is priced faster than all of
 * them together, by the same table with `threads_together`. Errors: those of tnd_fit_model_new. */
enum tandem_status tnd_cluster_price(const struct tnd_fit_weight *weights, int n_weights,
                                     const struct tnd_cluster_shape *shape,
                                     const struct tnd_fit_options *options, int n_beside,
                                     int threads_together, struct tnd_cluster_rank *io_rank,
                                     struct tnd_cluster_model *out_model,
                                     struct tandem_error *error);

/* ---- whole experts (cluster_experts.c) ---- */

/* A rank's share of the experts of one layer, or of all layers. */
struct tnd_cluster_duty {
    int64_t n;        /* experts of a layer */
    double all_us;    /* time for all experts that tokens use, if the rank had them all */
    double beside_us; /* time of everything else that the rank computes meanwhile */
};
/** Time of the slowest rank on average, where each token uses k of n experts. */
double tnd_cluster_slowest_us(const struct tnd_cluster_duty *duties, int n_ranks, int64_t n,
                              int64_t k, double tokens);

/* ---- links ---- */

/** A link with this latency and bandwidth. */
struct tnd_cluster_link tnd_cluster_link_of(double latency_us, double bytes_per_us);
/** Fills links {n, n} with the table's times of messages over a transport (record kind `link`), in
 * one direction and in both at once, by the names {n} of both ends. Missing links get the times of
 * the slowest one. Returns whether the table has any. */
bool tnd_cluster_links_of(const struct tandem_table *table, const char *transport,
                          const char *const *ends, int n, struct tnd_cluster_link *out_links);
/** Reads the measured times of an all-reduce of n ranks. Returns false if there are none. */
bool tnd_cluster_sum_of(const struct tandem_table *table, const char *transport, const char *end,
                        int n, struct tnd_cluster_link *out);
/** The table's factor on products during messages (`beside` of struct tnd_cluster_rank); 1:
 * unknown. */
double tnd_cluster_beside_of(const struct tandem_table *table);
/** Time of `bytes` on a link. */
double tnd_cluster_link_us(const struct tnd_cluster_link *link, double bytes);
/** Time of an all-reduce of `bytes` between ranks {n} by their messages, additions included, as
 *  cluster/communicator.c makes it. Whole: every rank gets the vectors of all; in segments: one
 *  segment of each, and then the sums of the others. */
double tnd_cluster_reduce_us(const struct tnd_cluster *cluster, const int *ranks, int n,
                             double bytes, bool in_segments);
/** Time of an all-reduce: as it was measured, or of the way that cluster/communicator.c takes. */
double tnd_cluster_sum_us(const struct tnd_cluster *cluster, const int *ranks, int n, double bytes);
/** Time in which each of ranks {n} gets what all have, `bytes` in all. */
double tnd_cluster_gather_us(const struct tnd_cluster *cluster, const int *ranks, int n,
                             double bytes);

/* ---- what a plan takes (cluster_time.c) ---- */

/** Whether n ranks may use this division; a single rank always counts as by rows. */
bool tnd_cluster_may_divide(const struct tnd_cluster *cluster, enum tnd_cluster_division division,
                            int n);
/** "rows" and so on; static. */
const char *tnd_cluster_division_name(enum tnd_cluster_division division);
/** The sum of a plan's shares: TND_CLUSTER_STEPS for rows and mixed plans, or the number of layers.
 */
int tnd_cluster_shares(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan);
/** Mixed: the least number of tokens in a batch that is predicted to be faster by layers. */
int64_t tnd_cluster_prompt_batch(const struct tnd_cluster *cluster,
                                 const struct tnd_cluster_plan *plan);
/** Fills in times and bytes of a plan; n, division, ranks and shares are given. */
void tnd_cluster_time(const struct tnd_cluster *cluster, struct tnd_cluster_plan *io_plan);
/** Like tnd_cluster_time, after a change of shares alone: reuses the times of messages by rows. */
void tnd_cluster_time_again(const struct tnd_cluster *cluster, struct tnd_cluster_plan *io_plan);
/** Time of a plan for this many prompts and generated tokens. */
double tnd_cluster_plan_us(const struct tnd_cluster_plan *plan, const double count[TND_FIT_PHASES]);
/** Mixed: whether the first rank generates alone, so that no rank waits for messages. */
bool tnd_cluster_is_alone(const struct tnd_cluster_plan *plan);
/** Whether the i-th rank of a plan by layers has no layers, and in a mixed plan no rows either. */
bool tnd_cluster_is_idle(const struct tnd_cluster_plan *plan, int i);

/* ---- plans (cluster_plan.c) ---- */

/** Finds the shares of ranks {n} with the least time for this many prompts and generated tokens,
 * within the ranks' memory if that is possible. */
void tnd_cluster_share(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                       enum tnd_cluster_division division, const int *ranks, int n,
                       struct tnd_cluster_plan *out);
/** Finds the best `n` ranks with their division and shares. `leader`: a rank that must take part
 * and lead; -1: any. `out->n` is 0 if no n ranks are possible. */
void tnd_cluster_choose(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                        int leader, int n, struct tnd_cluster_plan *out);
/** Finds the best number of ranks. Fills `plans` {cluster->n} with plans of 1, 2, ... ranks (above
 * 8: of powers of 2 and of all) and returns the index of the one to use; -1: none is possible. If
 * tokens are generated, excludes plans that generate them more slowly than the best single rank
 * that holds the model. */
int tnd_cluster_best(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                     int leader, struct tnd_cluster_plan *plans);

#endif
