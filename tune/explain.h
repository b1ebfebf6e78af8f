/* SPDX-License-Identifier: MIT
 * Why a plain matrix product runs as it does: every candidate of the planner with its prediction
 * and error bar, the winner's margin, where the next profile takes over, and what would change the
 * choice. Only reads the table; measures nothing. */
#ifndef TND_EXPLAIN_H
#define TND_EXPLAIN_H

#include "base/text.h"
#include "tune/candidates.h"

enum { TND_EXPLAIN_MAX_FLIPS = 10, TND_EXPLAIN_COMMAND = 320 };

struct tnd_explain_options {
    const struct tandem_table *table; /* borrowed; NULL: none, the rule serves */
    const struct tnd_registry
        *registry;              /* candidates of this machine; NULL: those of the table's */
    const tandem_tensor *node;  /* NULL: any product like the problem */
    struct tnd_problem problem; /* threads and profile are not looked at */
    int n_threads;              /* the most */
    double error_bound;         /* of results; 0: what the checks say */
    bool is_warm;               /* the weights stay in the cache */
};

/* A change of the winner over M, between `from` (at m - 1) and `to` (at m). Inside of [low, high]
 * the error bars of both overlap. */
struct tnd_crossing {
    bool found;
    int64_t m, low, high;
    bool high_open; /* they still overlap at the largest M looked at */
    char from[32], to[32];
};

/* A change that would make another profile win. */
struct tnd_flip {
    char backend[16]; /* "": a thread count, else this backend at `factor` times its times */
    double factor;
    int threads;
    char profile[32];
};

/* What all threads gain where this many were never measured: a range. */
struct tnd_scaling {
    int threads;      /* 0: nothing to tell */
    double low, high; /* times as fast as one thread */
};

/* Why a prediction is not to be trusted; bits. */
enum tnd_thin {
    TND_THIN_NO_TABLE = 1,
    TND_THIN_NO_CELL = 2,     /* the table predicts none of the candidates */
    TND_THIN_SHAPE = 4,       /* told from other shapes */
    TND_THIN_NOISY = 8,       /* wide error bar of one of the two best */
    TND_THIN_LEAD = 16,       /* the lead is within the error bars */
    TND_THIN_CANDIDATES = 32, /* candidates that were never measured */
    TND_THIN_BEYOND = 64,     /* M is outside of what was measured; without a winner: too far */
    TND_THIN_STALE = 128      /* one of the two best rests on times that were found wrong */
};

struct tnd_explanation {
    struct tnd_problem problem;
    int n_threads;
    bool is_warm;
    int n_candidates;
    struct tnd_candidate candidates[TND_TABLE_MAX_PROFILES];
    int n_predictions;
    struct tnd_prediction *predictions; /* each candidate at each thread count, as compared */
    struct tnd_choice choice;           /* what tnd_choose says, as in the planner */
    struct tnd_scaling scaling;         /* of the winner's profile on n_threads */
    double margin;   /* second / best - 1, as compared; below 0 where the rule's first way serves
                      though rows look faster; 0 without a second */
    int64_t m_limit; /* the largest M looked at for turns */
    struct tnd_crossing below, above; /* before and behind the problem's M */
    char stream_profile[32]; /* where weights without room on a device may travel; "": nowhere */
    int64_t stream_m;        /* from this M on that beats the host; 0: at no M that was looked at */
    int n_flips;
    struct tnd_flip flips[TND_EXPLAIN_MAX_FLIPS];
    unsigned thin;                     /* enum tnd_thin */
    char command[TND_EXPLAIN_COMMAND]; /* what to measure; "" when nothing is thin */
};

/** Explains one problem. `out` is ended with tnd_explanation_fini. Errors: MEMORY. */
enum tandem_status tnd_explain(const struct tnd_explain_options *options,
                               struct tnd_explanation *out, struct tandem_error *error);
void tnd_explanation_fini(struct tnd_explanation *explanation);

/** Name of the profile of a prediction, "" for none. */
const char *tnd_explain_profile(const struct tnd_explanation *explanation,
                                const struct tnd_prediction *prediction);

/** Appends the scaling of an explanation that has one: "8 threads: 4.1 to 7.6 times one thread
 *  ...". */
void tnd_explain_scaling(const struct tnd_explanation *explanation, struct tnd_text *out);
/** Appends an explanation for people, or as a JSON object. */
void tnd_explain_text(const struct tnd_explanation *explanation, struct tnd_text *out);
void tnd_explain_json(const struct tnd_explanation *explanation, const char *indent,
                      struct tnd_text *out);

/** A machine whose backend takes `factor` times as long; "NAME.transfer": the transfers of a
 *  device do. False when the table has no times of it. */
bool tnd_table_scale(struct tandem_table *table, const char *backend, double factor);
/** Largest M that was measured for a type; 0: none. */
int64_t tnd_table_largest_m(const struct tandem_table *table, enum tandem_type type);

#endif
