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

/* Bits of `refused`: by rows, rows of all experts; some experts, whole. */
enum { TND_CLUSTER_NO_EXPERT_ROWS = 1 << 8, TND_CLUSTER_NO_WHOLE_EXPERTS = 1 << 9 };

/* What a model needs of ranks. */
struct tnd_cluster_model {
    int64_t n_layers, dim, vocabulary, prompt_tokens;
    int64_t n_texts;              /* that get a token in a step of generation */
    int64_t units[TND_FIT_PARTS]; /* a rank has whole ones; 0: the part is not divided */
    int64_t bytes[TND_FIT_PARTS]; /* keys and values too */
    int64_t cache_bytes;          /* of them, keys and values */
    double kv_bytes;              /* keys and values of a token */
    int64_t n_micro;              /* micro-batches of a prompt, by layers */
    const char *undivided;        /* why it has no rows for several ranks, static; NULL: it has */
    bool is_whole;                /* and no layers, for the same reason */
    int64_t n_experts, n_used;    /* of each layer, and by a token; 0: none */
};

/* {points} of a part's share. */
struct tnd_cluster_curve {
    double us[TND_CLUSTER_POINTS], error_us[TND_CLUSTER_POINTS];
};

/* What shares of a model take on a rank; where ranks share a machine, beside the others. */
struct tnd_cluster_prices {
    struct tnd_cluster_curve curves[TND_FIT_PHASES][TND_FIT_PARTS]; /* by rows */
    /* Over the share of layers: these, a prompt in micro-batches, and the classifier beside them */
    struct tnd_cluster_curve layers[TND_FIT_PHASES], head[TND_FIT_PHASES];
    /* The same for a token of each text, where the texts are in 1, 2, ... batches */
    struct tnd_cluster_curve batch[TND_CLUSTER_BATCHES], batch_head[TND_CLUSTER_BATCHES];
    /* Bytes that devices hold of a share of rows, and of layers */
    double rows_placed[TND_CLUSTER_POINTS], layers_placed[TND_CLUSTER_POINTS];
};

struct tnd_cluster_rank {
    char name[TND_CLUSTER_NAME];
    int64_t memory;   /* for weights, keys and values; 0: not known, and not asked for */
    bool is_left_out; /* its times are not known */
    double beside;    /* products take this many times as long while messages come and go */
    /* By its CPU alone, and with its devices, where it has any: what they hold is there, the rest
     * in host memory, as is best for each share. */
    struct tnd_cluster_prices prices[2];
    bool has_device;
    int64_t device_memory; /* for weights, keys and values */
    char device[32];
};

/* Time of a message over its bytes, at 8, 64, ...; and while as many bytes go the other way (0: not
 * known, and counted as the same). */
struct tnd_cluster_link {
    double us[TND_CLUSTER_SIZES], both_us[TND_CLUSTER_SIZES];
};

struct tnd_cluster {
    struct tnd_cluster_model model;
    int n; /* ranks, at most TND_CLUSTER_MOST */
    struct tnd_cluster_rank *ranks;
    struct tnd_cluster_link *links; /* {n, n}, at [from * n + to] */
    bool is_medium;                 /* all messages share one medium: they follow each other */
    bool has_sum;                   /* sums of all ranks were measured */
    struct tnd_cluster_link sum;
    unsigned refused; /* bit d: division d is not wanted for several ranks; and those below */
};

struct tnd_cluster_plan {
    int n; /* ranks that take part; 0: there is no plan */
    enum tnd_cluster_division division;
    bool has_whole_experts;       /* by rows: a rank has some experts, not rows of each */
    int ranks[TND_CLUSTER_MOST];  /* of the cluster; the first one leads */
    int shares[TND_CLUSTER_MOST]; /* of tnd_cluster_shares, of ranks[i]; mixed: of rows */
    int layers[TND_CLUSTER_MOST]; /* mixed: of ranks[i], for prompts */
    double us[TND_FIT_PHASES], error_us[TND_FIT_PHASES];
    double link_us[TND_FIT_PHASES];   /* of them, what messages take */
    double sums_us[TND_FIT_PHASES];   /* what those of rows take, which all ranks make */
    int in_flight;                    /* by layers: batches of texts at the same time; 0: one */
    double move_us;                   /* mixed: of a prompt's, to bring keys and values to heads */
    int64_t bytes[TND_CLUSTER_MOST];  /* of ranks[i] */
    int64_t placed[TND_CLUSTER_MOST]; /* of them, what devices hold */
    uint64_t by_cpu;                  /* mixed, bit i: ranks[i], whose device does not hold both */
    bool fits;
    /* Times of as many ranks by each other division, at best; 0: that is not possible, not wanted,
     * or does not fit. */
    double other_us[TND_CLUSTER_DIVISIONS][TND_FIT_PHASES];
};

/* ---- prices (cluster_price.c) ---- */

/* The numbers that say how a model is divided. */
struct tnd_cluster_shape {
    int64_t dim, kv_heads, q_dim, vocabulary, hidden, expert_hidden;
    int64_t experts, experts_used;
    int64_t micro_tokens;  /* of a micro-batch, at least, and how many of these at most: as */
    int64_t n_micro;       /* ranks cut a prompt; 0: never */
    const char *undivided; /* as in struct tnd_cluster_model */
    bool is_whole;
};

/** Prices of a rank, by options' CPU alone and with options' devices, which ranks of one machine
 *  share; and what the model needs, the same by any table.
 *  Of `n_beside` ranks on one machine (1: it is alone) none is faster than all of them together by
 *  the same table with `threads_together`. Errors: those of tnd_fit_model_new. */
enum tandem_status tnd_cluster_price(const struct tnd_fit_weight *weights, int n_weights,
                                     const struct tnd_cluster_shape *shape,
                                     const struct tnd_fit_options *options, int n_beside,
                                     int threads_together, struct tnd_cluster_rank *io_rank,
                                     struct tnd_cluster_model *out_model,
                                     struct tandem_error *error);

/* ---- whole experts (cluster_experts.c) ---- */

/* What a rank has of a layer's experts, or of all layers'. */
struct tnd_cluster_duty {
    int64_t n;        /* of the experts of a layer */
    double all_us;    /* for all that tokens use, if it had them all */
    double beside_us; /* for what it computes with them */
};
/** Time of the slowest rank on average, where each token uses k of n experts. */
double tnd_cluster_slowest_us(const struct tnd_cluster_duty *duties, int n_ranks, int64_t n,
                              int64_t k, double tokens);

/* ---- links ---- */

/** A link of so much latency and bandwidth. */
struct tnd_cluster_link tnd_cluster_link_of(double latency_us, double bytes_per_us);
/** Fills links {n, n} with the messages of a transport that the table has, in one direction and
 *  in both at once, by the names of both ends {n} (record kind `link`); the slowest one of all
 *  stands for those that are missing. Returns whether there are any. */
bool tnd_cluster_links_of(const struct tandem_table *table, const char *transport,
                          const char *const *ends, int n, struct tnd_cluster_link *out_links);
/** The all-reduce of n ranks that was measured. Returns whether it was. */
bool tnd_cluster_sum_of(const struct tandem_table *table, const char *transport, const char *end,
                        int n, struct tnd_cluster_link *out);
/** What products take beside messages by the table, as in struct tnd_cluster_rank; 1: not known. */
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

/** Whether n ranks may compute the model so; one rank alone has all rows. */
bool tnd_cluster_may_divide(const struct tnd_cluster *cluster, enum tnd_cluster_division division,
                            int n);
/** "rows" and so on; static. */
const char *tnd_cluster_division_name(enum tnd_cluster_division division);
/** What the shares of a plan add up to: steps of rows, or layers; of a mixed plan of rows. */
int tnd_cluster_shares(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan);
/** Mixed: tokens of a batch from which on it is predicted to be faster by layers. */
int64_t tnd_cluster_prompt_batch(const struct tnd_cluster *cluster,
                                 const struct tnd_cluster_plan *plan);
/** Times and bytes of a plan whose n, division, ranks and shares are given. */
void tnd_cluster_time(const struct tnd_cluster *cluster, struct tnd_cluster_plan *io_plan);
/** The same after other shares of the same ranks: what messages of rows take stays. */
void tnd_cluster_time_again(const struct tnd_cluster *cluster, struct tnd_cluster_plan *io_plan);
/** Time of a plan for this many prompts and generated tokens. */
double tnd_cluster_plan_us(const struct tnd_cluster_plan *plan, const double count[TND_FIT_PHASES]);
/** Mixed: the first rank generates, without a message that anybody waits for. */
bool tnd_cluster_is_alone(const struct tnd_cluster_plan *plan);
/** Whether the i-th rank of a plan that has layers has none of them, nor rows of a mixed plan. */
bool tnd_cluster_is_idle(const struct tnd_cluster_plan *plan, int i);

/* ---- plans (cluster_plan.c) ---- */

/** Shares of ranks {n} that take the least time for this many prompts and generated tokens, within
 *  their memory if that is possible. */
void tnd_cluster_share(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                       enum tnd_cluster_division division, const int *ranks, int n,
                       struct tnd_cluster_plan *out);
/** The best `n` ranks with their division and shares. `leader`: a rank that must take part, and
 *  leads; -1: any. A plan of 0 ranks: there are no such n. */
void tnd_cluster_choose(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                        int leader, int n, struct tnd_cluster_plan *out);
/** The best number of ranks: `plans` {cluster->n}, of 1, 2, ... ranks, is filled (above 8: of
 *  powers of 2, and of all), and the index of the one to use returned; -1: none is possible. Where
 *  tokens are generated, no plan that generates them more slowly than the best single rank that
 *  holds the model. */
int tnd_cluster_best(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                     int leader, struct tnd_cluster_plan *plans);

#endif
