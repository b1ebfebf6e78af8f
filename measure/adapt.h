/* SPDX-License-Identifier: MIT
 * What to measure next: of all cells (a line at some M), the one that removes the most uncertainty
 * per second. Uses neither clocks nor backends: the caller reports the time of each cell. A line is
 * one profile on one thread count for one (type, N, K); lines of one group compete. */
#ifndef TND_ADAPT_H
#define TND_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/status.h"
#include "measure/measure.h"

struct tnd_adapt;

struct tnd_adapt_line {
    int group;   /* number of its (type, N, K) */
    int profile; /* number of its profile */
    int threads;
    bool is_of_rule; /* the profile of the rule: others must be faster by a margin to be chosen, so
                      * it is measured first */
    enum tandem_type type;
    double calls;        /* of the product in the user's graph, above 0 */
    double work;         /* N * K */
    double fixed_tokens; /* time for few tokens does not fall below that for this many */
};

struct tnd_adapt_options {
    const int64_t *m; /* ascending: the M that every line begins with. Copied */
    int n_m;
    bool is_fixed; /* only these M, each of them twice */
    int most_threads;
    double tolerance; /* uncertainty, as a fraction of a time, at which a cell needs no more
                       * trials */
    int max_trials;   /* of one cell */
    /** Predicted seconds of a trial of a cell whose product takes `expected_us`, including its
     *  preparation. */
    double (*cost_s)(void *user, int line, int64_t m, double expected_us);
    void *user;
};

struct tnd_adapt_cell {
    int line;
    int64_t m;
    double expected_us; /* of one product, an upper estimate */
    double cost_s;
    double uncertainty; /* fraction of the time */
    bool is_new;        /* else a repetition of a cell that was measured before */
    int rank;     /* 3, 2: must not stay unmeasured, 1: is to be repeated once; higher ranks come
                   * first */
    double score; /* benefit per second, compared among cells of one rank */
};

/** Errors: MEMORY. */
enum tandem_status tnd_adapt_new(const struct tnd_adapt_options *options,
                                 struct tnd_adapt **out_adapt, struct tandem_error *error);
/** NULL allowed. */
void tnd_adapt_free(struct tnd_adapt *adapt);

/** Lines are numbered from 0 in the order of adding, which is group by group. Errors: MEMORY. */
enum tandem_status tnd_adapt_add_line(struct tnd_adapt *adapt, const struct tnd_adapt_line *line);

/** The most valuable of the cells whose trials end within `left_s` and take at most `longest_s`
 *  each; false when there is none, or everything is certain. */
bool tnd_adapt_next(struct tnd_adapt *adapt, double left_s, double longest_s,
                    struct tnd_adapt_cell *out);

/** Records a trial of the cell. Errors: MEMORY. */
enum tandem_status tnd_adapt_done(struct tnd_adapt *adapt, const struct tnd_adapt_cell *cell,
                                  const struct tnd_stage_time *total);
/** The line is not measured at this M or more: the machine cannot compute it. */
void tnd_adapt_stop_at(struct tnd_adapt *adapt, int line, int64_t m);
/** The cost of trials of this line's group has changed. */
void tnd_adapt_touch(struct tnd_adapt *adapt, int line);

/** Time of one product on a line, estimated from the measured cells; `safely`: an upper
 * estimate. */
double tnd_adapt_expect_us(const struct tnd_adapt *adapt, int line, int64_t m, bool safely);

struct tnd_adapt_state {
    int cells, trials;         /* measured */
    int unmeasured;            /* cells of the grid that were not measured */
    int unknown_lines;         /* lines without any cell */
    double pending_s;          /* to measure the rest of the grid, and each of its cells twice */
    double median_uncertainty; /* over the measured cells and the gaps between them */
};
/** Errors: MEMORY. */
enum tandem_status tnd_adapt_state(const struct tnd_adapt *adapt, struct tnd_adapt_state *out);

#endif
