/* SPDX-License-Identifier: MIT
 * Products that can be split over the host and devices: the times of each share, and whether any
 * share can gain more than the error bars. */
#include <math.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"
#include "tune/place_problem.h"
#include "tune/policy.h"
#include "tune/schedule_internal.h"

enum { NONE = -1, HOST = 0, LAST = TND_SCHEDULE_CURVE_POINTS - 1 };
enum { ROWS, COLUMNS, BOTH }; /* dimensions to split a product by */

/* Whether a side can take a share: it has to compute from X to Y by itself. */
static bool is_alone(const struct tnd_place_options *options, const struct tnd_place_choice *choice,
                     int side)
{
    const struct tandem_task_config *init = &choice->node.stage[TANDEM_STAGE_INIT];
    int slot = options->slots[side - 1];
    return choice->node.stage[TANDEM_STAGE_COMPUTE].backend == slot &&
           (init->backend == TANDEM_BACKEND_NONE || init->backend == slot);
}

static bool can_split(const tandem_tensor *tensor, const struct tnd_place_node *node)
{
    const tandem_tensor *w = tensor->src[0];
    return tensor->op == TANDEM_OP_MUL_MAT && node->is_product && node->choice[HOST].us > 0 &&
           w->root == w && (w->flags & TND_TENSOR_CONSTANT) != 0 &&
           tandem_tensor_is_contiguous(tensor) && tandem_tensor_is_contiguous(tensor->src[1]);
}

/* Describes a split by rows without requesting more times; false: no device can take a share. */
static bool describe(const struct tnd_place_options *options, int n_sides,
                     const tandem_tensor *tensor, const struct tnd_place_node *node,
                     struct tnd_schedule_split *out)
{
    bool any = false;
    memset(out, 0, sizeof(*out));
    out->rows = tensor->ne[0];
    out->step = TND_SCHEDULE_ROWS;
    out->x_bytes = (double)tandem_tensor_bytes(tensor->src[1]);
    out->bytes_per_row = (double)tensor->ne[1] * sizeof(float);
    out->join_us_per_row = out->bytes_per_row / TND_SCHEDULE_JOIN_BYTES;
    for (int side = 0; side < n_sides; side++) {
        const struct tnd_place_choice *choice = &node->choice[side];
        out->can[side] = (node->supported >> side & 1) != 0 && choice->us > 0 &&
                         (side == HOST || is_alone(options, choice, side));
        if (out->can[side]) {
            out->us[side][LAST] = (float)choice->us;
            out->error_frac[side] =
                (float)(choice->error_us / choice->us + TND_SCHEDULE_SHARE_ERROR);
            any = any || side != HOST;
        }
    }
    return any;
}

/* Turns a split into one by columns of W. The host packs the columns of X for each side, and adds
 * the sides' results. */
static void turn_to_columns(const tandem_tensor *tensor, const struct tnd_place_node *node,
                            struct tnd_schedule_split *split)
{
    const tandem_tensor *w = tensor->src[0];
    int64_t block = tandem_type_block_values(w->type);
    int threads = node->choice[HOST].node.n_threads;
    double copies = fmin(fmax(threads, 1), TND_SCHEDULE_COPY_THREADS);
    split->is_sum = true;
    split->bytes_per_row *= (double)split->rows;
    split->join_us_per_row = split->bytes_per_row / TND_SCHEDULE_JOIN_BYTES;
    split->rows = w->ne[0];
    split->copy_us_per_row =
        split->x_bytes / (double)split->rows / copies / TND_SCHEDULE_JOIN_BYTES;
    split->step = block > TND_SCHEDULE_ROWS ? block : TND_SCHEDULE_ROWS;
}

static bool is_alike(const struct tnd_schedule_split *a, const struct tnd_schedule_split *b,
                     int n_sides)
{
    bool alike = a->is_sum == b->is_sum && a->rows == b->rows && !(a->x_bytes > b->x_bytes) &&
                 !(a->x_bytes < b->x_bytes) && !(a->bytes_per_row > b->bytes_per_row) &&
                 !(a->bytes_per_row < b->bytes_per_row);
    for (int side = 0; side < n_sides && alike; side++) {
        float x = a->us[side][LAST];
        float y = b->us[side][LAST];
        alike = a->can[side] == b->can[side] && !(x > y) && !(x < y);
    }
    return alike;
}

/* ---- whether a split can pay ---- */

/* A memory that holds X, and the lower bound of a split from there if the host needs Y. */
struct context {
    const struct tnd_schedule_problem *problem;
    const struct tnd_schedule_split *split;
    int x_at;
    double lead_us[TND_SCHEDULE_SIDES]; /* fixed time of a side for any share */
    double all_us[TND_SCHEDULE_SIDES];  /* additional time of a side for the whole product */
};

static double upload_us(const struct context *c, int side, double bytes)
{
    const struct tnd_schedule_side *one = &c->problem->sides[side];
    return one->own_memory ? tnd_schedule_link_us(&one->upload, bytes) : 0;
}

static double download_us(const struct context *c, int side, double bytes)
{
    const struct tnd_schedule_side *one = &c->problem->sides[side];
    return one->own_memory ? tnd_schedule_link_us(&one->download, bytes) : 0;
}

/* Time until X arrives, or, by columns, the smallest share of it. */
static double x_us(const struct context *c, int side, bool is_shared)
{
    const struct tnd_schedule_split *split = c->split;
    double bytes = is_shared ? tnd_schedule_x_bytes(split, split->step) : split->x_bytes;
    bool is_there = side == c->x_at && !(is_shared && split->is_sum);
    return is_there ? 0 : download_us(c, c->x_at, split->x_bytes) + upload_us(c, side, bytes);
}

static void find_leads(struct context *c)
{
    const struct tnd_schedule_split *split = c->split;
    for (int side = 0; side < c->problem->n_sides; side++) {
        double y_bytes = tnd_schedule_y_bytes(split, split->step);
        double least_us = download_us(c, side, y_bytes);
        c->lead_us[side] = x_us(c, side, true) + least_us;
        c->all_us[side] = (double)split->us[side][LAST] +
                          (double)split->rows * split->copy_us_per_row +
                          download_us(c, side, tnd_schedule_y_bytes(split, split->rows)) -
                          least_us + upload_us(c, side, split->x_bytes) -
                          upload_us(c, side, tnd_schedule_x_bytes(split, split->step));
    }
}

/* Time at which all shares end together, without fixed parts of times and slow-downs. A side that
 * is ready later than that takes no part: the least over all prefixes of the sorted sides. */
static double together_us(const struct context *c)
{
    double least_us = INFINITY;
    for (int last = 0; last < c->problem->n_sides; last++) {
        double rate = 0;
        double work = 1;
        for (int side = 0; side < c->problem->n_sides; side++) {
            if (c->split->can[side] && c->lead_us[side] <= c->lead_us[last]) {
                rate += 1 / c->all_us[side];
                work += c->lead_us[side] / c->all_us[side];
            }
        }
        least_us = rate > 0 ? fmin(least_us, work / rate) : least_us;
    }
    return least_us;
}

/* The best single side, transfers of X and Y included. */
static int find_single(const struct context *c, double *out_us)
{
    const struct tnd_schedule_split *split = c->split;
    double y_bytes = tnd_schedule_y_bytes(split, split->rows);
    int single = HOST;
    *out_us = INFINITY;
    for (int side = 0; side < c->problem->n_sides; side++) {
        double us =
            x_us(c, side, false) + (double)split->us[side][LAST] + download_us(c, side, y_bytes);
        if (split->can[side] && us < *out_us) {
            *out_us = us;
            single = side;
        }
    }
    return single;
}

/* Whether shares on several sides can gain more than twice the error bars, and more than the least
 * gain, over the best single side. *out_us: their lower bound. */
static bool may_gain(struct context *c, double *out_us)
{
    const struct tnd_schedule_split *split = c->split;
    double single_us;
    int single = find_single(c, &single_us);
    double squares = 0;
    double devices = 0;
    find_leads(c);
    double parts_us = together_us(c);
    for (int side = 0; side < c->problem->n_sides; side++) {
        if (split->can[side]) {
            double share = fmax(parts_us - c->lead_us[side], 0) / c->all_us[side];
            double all_us = (double)split->us[side][LAST];
            double error_us = (double)split->error_frac[side] * share * all_us;
            if (side == single) {
                error_us -= ((double)split->error_frac[side] - TND_SCHEDULE_SHARE_ERROR) * all_us;
            }
            squares += error_us * error_us;
            devices += side != HOST ? share : 0;
        }
    }
    double joined = split->is_sum ? 1 : devices * (double)split->rows;
    *out_us = parts_us + joined * split->join_us_per_row;
    return single_us - *out_us > fmax(TND_SCHEDULE_GAIN * sqrt(squares), TND_RULE_LEAD * single_us);
}

/* Lower bound of the time from X in host memory; INFINITY if a split cannot pay. */
static double may_pay(const struct tnd_schedule_problem *problem,
                      const struct tnd_schedule_split *split)
{
    double host_us = INFINITY;
    bool pays = false;
    for (int side = 0; side < problem->n_sides && !pays; side++) {
        struct context context = {.problem = problem, .split = split, .x_at = side};
        double us;
        pays = (side == HOST || split->can[side]) && may_gain(&context, &us);
        host_us = side == HOST ? us : host_us;
    }
    return pays ? host_us : INFINITY;
}

/* ---- kinds ---- */

/* Fills in the curves of shares, through the times of the whole and of half of it. */
static void draw_curves(const struct tnd_place_options *options, int i,
                        const struct tnd_place_node *node, int n_sides,
                        struct tnd_schedule_split *split)
{
    enum tandem_split by = split->is_sum ? TANDEM_SPLIT_COLUMNS : TANDEM_SPLIT_ROWS;
    for (int side = 0; side < n_sides; side++) {
        double us = node->choice[side].us;
        if (!split->can[side]) {
            continue;
        }
        double half_us = options->half_us != NULL
                             ? options->half_us(options->user, options->graph->nodes[i], side, by)
                             : us / 2;
        double fixed_us = fmin(fmax(2 * half_us - us, 0), us / 2);
        for (int p = 1; p <= LAST; p++) {
            split->us[side][p] = (float)(fixed_us + (us - fixed_us) * p / LAST);
        }
    }
}

/* Whether the kind is known; *out: its index, NONE if no split pays. */
static bool find_kind(const struct tnd_place_problem *problem,
                      const struct tnd_schedule_split by[BOTH], int *out)
{
    int n = problem->problem.n_splits;
    for (int k = 0; k < TND_PLACE_SPLITS; k++) {
        const struct tnd_schedule_split *one = &problem->splits[k];
        bool is_set = k < n || k >= TND_PLACE_SPLITS - problem->n_refused;
        if (is_set && is_alike(one, &by[one->is_sum], problem->problem.n_sides)) {
            *out = k < n ? k : NONE;
            return true;
        }
    }
    return false;
}

/* Chooses a split by rows, or by columns if that is clearly faster on idle lanes, since it copies
 * weights and changes the bits of results. NULL: neither pays. */
static struct tnd_schedule_split *choose(const struct tnd_place_options *options, int i,
                                         const struct tnd_place_node *node,
                                         const struct tnd_schedule_problem *problem,
                                         struct tnd_schedule_split by[BOTH])
{
    struct tnd_schedule_split *chosen = NULL;
    double chosen_us = INFINITY;
    for (int s = 0; s < BOTH; s++) {
        struct tnd_shares shares;
        double enough_us = s == ROWS ? chosen_us : chosen_us * (1 - TND_SCHEDULE_NEAR);
        if (by[s].rows < 2 * by[s].step || !(may_pay(problem, &by[s]) < enough_us)) {
            continue;
        }
        draw_curves(options, i, node, problem->n_sides, &by[s]);
        memset(&shares, 0, sizeof(shares));
        tnd_schedule_divide(problem, &by[s], &shares);
        if (shares.is_useful && shares.us < enough_us) {
            chosen = &by[s];
            chosen_us = shares.us;
        }
    }
    return chosen;
}

int tnd_place_split(const struct tnd_place_options *options, int i,
                    const struct tnd_place_node *node, struct tnd_place_problem *problem)
{
    struct tnd_schedule_problem *all = &problem->problem;
    const tandem_tensor *tensor = options->graph->nodes[i];
    struct tnd_schedule_split by[BOTH];
    int kind = NONE;
    if (!can_split(tensor, node) || !describe(options, all->n_sides, tensor, node, &by[ROWS])) {
        return NONE;
    }
    by[COLUMNS] = by[ROWS];
    turn_to_columns(tensor, node, &by[COLUMNS]);
    if (find_kind(problem, by, &kind) || all->n_splits + problem->n_refused == TND_PLACE_SPLITS) {
        return kind;
    }
    const struct tnd_schedule_split *chosen = choose(options, i, node, all, by);
    if (chosen == NULL) {
        problem->splits[TND_PLACE_SPLITS - ++problem->n_refused] = by[ROWS];
        return NONE;
    }
    problem->splits[all->n_splits] = *chosen;
    return all->n_splits++;
}
