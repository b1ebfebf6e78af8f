/* SPDX-License-Identifier: MIT
 * Explains the choice for a plain matrix product: every candidate of the planner with its
 * prediction and error bar, the winner's margin, the M at which the next profile takes over, and
 * what would change the choice. Only reads the table; measures nothing. */
#ifndef TND_EXPLAIN_H
#define TND_EXPLAIN_H

#include "base/text.h"
#include "tune/candidates.h"

enum { TND_EXPLAIN_MAX_FLIPS = 10, TND_EXPLAIN_COMMAND = 320 };

struct tnd_explain_options {
    const struct tandem_table *table;    /* borrowed; NULL: none, the rule decides */
    const struct tnd_registry *registry; /* candidates of this machine; NULL: of the table's */
    const tandem_tensor *node;           /* NULL: any product of the problem's shape */
    struct tnd_problem problem;          /* threads and profile are ignored */
    int n_threads;                       /* the most */
    double error_bound;                  /* of results; 0: by the verdicts of checks */
    bool is_warm;                        /* the weights stay in the cache */
};

/* A change of the winner over M, between `from` (at m - 1) and `to` (at m). Within [low, high] the
 * error bars of both overlap. */
struct tnd_crossing {
    bool found;
    int64_t m, low, high;
    bool high_open; /* they still overlap at the largest M examined */
    char from[32], to[32];
};

/* A change that would make another profile win. */
struct tnd_flip {
    char backend[16]; /* "": a thread count; else this backend, its times multiplied by `factor` */
    double factor;
    int threads;
    char profile[32];
};

/* Range of the speed-up on a thread count that was never measured. */
struct tnd_scaling {
    int threads;      /* 0: not needed */
    double low, high; /* speed-up over one thread */
};

/* Reasons to distrust a prediction; bits. */
enum tnd_thin {
    TND_THIN_NO_TABLE = 1,
    TND_THIN_NO_CELL = 2,     /* the table predicts none of the candidates */
    TND_THIN_SHAPE = 4,       /* estimated from other shapes */
    TND_THIN_NOISY = 8,       /* wide error bar of one of the two best */
    TND_THIN_LEAD = 16,       /* the lead is within the error bars */
    TND_THIN_CANDIDATES = 32, /* candidates that were never measured */
    TND_THIN_BEYOND = 64,     /* M is outside of the measured range; without a winner: too far */
    TND_THIN_STALE = 128      /* one of the two best uses times that were found wrong */
};

struct tnd_explanation {
    struct tnd_problem problem;
    int n_threads;
    bool is_warm;
    int n_candidates;
    struct tnd_candidate candidates[TND_TABLE_MAX_PROFILES];
    int n_predictions;
    struct tnd_prediction *predictions; /* each candidate at each thread count, as compared */
    struct tnd_choice choice;           /* of tnd_choose, as in the planner */
    struct tnd_scaling scaling;         /* of the winner's profile on n_threads */
    /* second / best - 1, as compared; below 0 if the rule's first profile is kept though another
     * one looks faster; 0 without a second */
    double margin;
    int64_t m_limit;                  /* the largest M searched for crossovers */
    struct tnd_crossing below, above; /* nearest below and above the problem's M */
    char stream_profile[32]; /* with weights in flight, for devices without room; "": none */
    int64_t stream_m;        /* least M at which stream_profile beats the host; 0: none found */
    int n_flips;
    struct tnd_flip flips[TND_EXPLAIN_MAX_FLIPS];
    unsigned thin;                     /* enum tnd_thin */
    char command[TND_EXPLAIN_COMMAND]; /* command to measure what is missing; "" if `thin` is 0 */
};

/** Explains one problem. Free `out` with tnd_explanation_fini. Errors: MEMORY. */
enum tandem_status tnd_explain(const struct tnd_explain_options *options,
                               struct tnd_explanation *out, struct tandem_error *error);
void tnd_explanation_fini(struct tnd_explanation *explanation);

/** Name of a prediction's profile; "" for none. */
const char *tnd_explain_profile(const struct tnd_explanation *explanation,
                                const struct tnd_prediction *prediction);

/** Appends the scaling of an explanation, if any: "8 threads: 4.1 to 7.6 times one thread ...". */
void tnd_explain_scaling(const struct tnd_explanation *explanation, struct tnd_text *out);
/** Appends an explanation as text, or as a JSON object. */
void tnd_explain_text(const struct tnd_explanation *explanation, struct tnd_text *out);
void tnd_explain_json(const struct tnd_explanation *explanation, const char *indent,
                      struct tnd_text *out);

/** A machine whose backend takes `factor` times as long; "NAME.transfer": the transfers of a
 *  device do. False when the table has no times of it. */
bool tnd_table_scale(struct tandem_table *table, const char *backend, double factor);
/** Largest M that was measured for a type; 0: none. */
int64_t tnd_table_largest_m(const struct tandem_table *table, enum tandem_type type);

#endif
