/* SPDX-License-Identifier: MIT
 * Divides the rows of a split node so that all sides end at the same time, by their curves; then
 * moves shares by steps as long as that helps, since curves have steps. */
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "base/tnd_assert.h"
#include "tune/policy.h"
#include "tune/schedule_internal.h"

enum { HOST = 0 };

double tnd_schedule_share_us(const struct tnd_schedule_split *split, int side, int64_t rows)
{
    if (rows <= 0) {
        return 0;
    }
    TND_ASSERT(rows <= split->rows);
    double at = (double)rows / (double)split->rows * (TND_SCHEDULE_CURVE_POINTS - 1);
    int i = (int)at;
    i = i < TND_SCHEDULE_CURVE_POINTS - 2 ? i : TND_SCHEDULE_CURVE_POINTS - 2;
    double below = (double)split->us[side][i];
    return below + (at - i) * ((double)split->us[side][i + 1] - below);
}

double tnd_schedule_join_us(const struct tnd_schedule_split *split, int n_sides,
                            const int64_t *rows)
{
    double joined = 0;
    for (int side = 1; side < n_sides; side++) {
        joined += split->is_sum ? rows[side] > 0 : (double)rows[side];
    }
    return joined * split->join_us_per_row;
}

/* Time of a share on idle lanes, with X in host memory. */
static double side_us(const struct tnd_schedule_problem *problem,
                      const struct tnd_schedule_split *split, int side, int64_t rows)
{
    double us = tnd_schedule_share_us(split, side, rows) + (double)rows * split->copy_us_per_row;
    if (rows > 0 && problem->sides[side].own_memory) {
        us += tnd_schedule_link_us(&problem->sides[side].upload, tnd_schedule_x_bytes(split, rows));
    }
    return us;
}

/* Factor on a side's time by the other sides with rows. */
static double slowed(const struct tnd_schedule_problem *problem, const int64_t *rows, int side)
{
    double worst = 1;
    for (int b = 0; b < problem->n_sides && problem->slowdown != NULL; b++) {
        if (b != side && rows[b] > 0) {
            worst = fmax(worst, (double)problem->slowdown[side * problem->n_sides + b]);
        }
    }
    return worst;
}

static double price(const struct tnd_schedule_problem *problem,
                    const struct tnd_schedule_split *split, const int64_t *rows)
{
    double us = 0;
    double fetch_us = 0;
    for (int side = 0; side < problem->n_sides; side++) {
        if (rows[side] > 0) {
            us = fmax(us, side_us(problem, split, side, rows[side]) * slowed(problem, rows, side));
        }
        if (rows[side] > 0 && problem->sides[side].own_memory) {
            fetch_us =
                fmax(fetch_us, tnd_schedule_link_us(&problem->sides[side].download,
                                                    tnd_schedule_y_bytes(split, rows[side])));
        }
    }
    return us + fetch_us + tnd_schedule_join_us(split, problem->n_sides, rows);
}

/* The most rows, in steps, that a side finishes within `us`. */
static int64_t rows_by(const struct tnd_schedule_problem *problem,
                       const struct tnd_schedule_split *split, int side, double us)
{
    int64_t low = 0;
    int64_t high = split->rows / split->step;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (side_us(problem, split, side, middle * split->step) <= us) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low * split->step;
}

/* Gives each device the rows that it finishes within `us`, and the host the rest. Returns whether
 * the host finishes its rows in time too. */
static bool divide_by(const struct tnd_schedule_problem *problem,
                      const struct tnd_schedule_split *split, uint32_t devices, double us,
                      int64_t *out_rows)
{
    int64_t left = split->rows;
    for (int side = problem->n_sides - 1; side > HOST; side--) {
        int64_t rows = (devices >> side & 1) != 0 ? rows_by(problem, split, side, us) : 0;
        int64_t most = left / split->step * split->step;
        out_rows[side] = rows < most ? rows : most;
        left -= out_rows[side];
        if (left < split->step && out_rows[side] > 0) { /* less than a step is not worth a side */
            out_rows[side] += left;
            left = 0;
        }
    }
    out_rows[HOST] = left;
    return side_us(problem, split, HOST, left) <= us;
}

/* Moves rows between the host and a device while that helps. */
static void polish(const struct tnd_schedule_problem *problem,
                   const struct tnd_schedule_split *split, uint32_t devices,
                   struct tnd_shares *shares)
{
    for (int64_t amount = split->rows / 16 / split->step * split->step; amount >= split->step;
         amount = amount / 4 / split->step * split->step) {
        for (int side = 1; side < problem->n_sides; side++) {
            for (int sign = -1; sign <= 1; sign += 2) {
                int64_t rows[TND_SCHEDULE_SIDES];
                for (int s = 0; s < problem->n_sides; s++) {
                    rows[s] = shares->rows[s];
                }
                rows[side] += sign * amount;
                rows[HOST] -= sign * amount;
                bool is_possible = (devices >> side & 1) != 0 && rows[side] >= 0 && rows[HOST] >= 0;
                double us = is_possible ? price(problem, split, rows) : INFINITY;
                if (us < shares->us) {
                    shares->us = us;
                    shares->rows[side] = rows[side];
                    shares->rows[HOST] = rows[HOST];
                }
            }
        }
    }
}

/* Divides the rows among the host and some or all of `devices` (bits). */
static void divide_among(const struct tnd_schedule_problem *problem,
                         const struct tnd_schedule_split *split, uint32_t devices,
                         struct tnd_shares *out)
{
    int64_t rows[TND_SCHEDULE_SIDES] = {split->rows};
    double high = price(problem, split, rows);
    double low = 0;
    while (high - low > high * (double)FLT_EPSILON + (double)FLT_MIN) { /* times are floats */
        double middle = (low + high) / 2;
        if (divide_by(problem, split, devices, middle, rows)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    (void)divide_by(problem, split, devices, high, out->rows);
    out->us = price(problem, split, out->rows);
    polish(problem, split, devices, out);
    int n_used = 0;
    for (int side = 0; side < problem->n_sides; side++) {
        n_used += out->rows[side] > 0;
    }
    out->is_useful = n_used > 1;
}

void tnd_schedule_divide(const struct tnd_schedule_problem *problem,
                         const struct tnd_schedule_split *split, struct tnd_shares *out)
{
    TND_ASSERT(split->step > 0 && split->rows > 0 && split->can[HOST]);
    uint32_t all = 0;
    for (int side = 1; side < problem->n_sides; side++) {
        all |= split->can[side] ? UINT32_C(1) << side : 0;
    }
    divide_among(problem, split, all, out);
    for (int side = 1; side < problem->n_sides && problem->n_sides > 2; side++) {
        struct tnd_shares one = {0};
        if ((all >> side & 1) != 0) {
            divide_among(problem, split, UINT32_C(1) << side, &one);
            *out = one.us < out->us ? one : *out;
        }
    }
    for (int side = 0; side < problem->n_sides; side++) {
        out->part_us[side] = (float)tnd_schedule_share_us(split, side, out->rows[side]);
    }
}
