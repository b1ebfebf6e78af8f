/* SPDX-License-Identifier: MIT
 * The knapsack. Dantzig's rule (1957) takes first what saves most per byte. Here its items are runs
 * of consecutive items, since a run pays only once for moving its activations. Exchanges of single
 * items then use the memory that the rule leaves over. */
#include "tune/fit.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

enum { MOST_EXCHANGES = 64 };

/* State of a choice. */
struct choice {
    const struct tnd_fit_problem *problem;
    uint8_t *sides;
    int64_t room[TND_FIT_SIDES]; /* bytes left on each device */
};

struct run {
    int first, last; /* first < 0: none */
    int side;
    double saved_us;
    int64_t bytes; /* that it needs beside its items already on the device */
};

/* ---- prices ---- */

static int side_at(const struct tnd_fit_problem *problem, const uint8_t *sides, int i)
{
    return i < 0 || i >= problem->n_items ? 0 : sides[i];
}

/* Time of items first .. last and of the moves at both of their ends. */
static double range_us(const struct tnd_fit_problem *problem, const uint8_t *sides, int first,
                       int last)
{
    double us = 0;
    for (int i = first; i <= last; i++) {
        us += problem->items[i].us[sides[i]];
        us += problem->move_us[side_at(problem, sides, i - 1)][sides[i]];
    }
    return us + problem->move_us[side_at(problem, sides, last)][side_at(problem, sides, last + 1)];
}

double tnd_fit_us(const struct tnd_fit_problem *problem, const uint8_t *sides)
{
    return problem->n_items > 0 ? range_us(problem, sides, 0, problem->n_items - 1) : 0;
}

int64_t tnd_fit_bytes(const struct tnd_fit_problem *problem, const uint8_t *sides, int side)
{
    int64_t bytes = 0;
    for (int i = 0; i < problem->n_items; i++) {
        bytes += sides[i] == side ? problem->items[i].bytes : 0;
    }
    return bytes;
}

bool tnd_fit_holds(const struct tnd_fit_problem *problem, const uint8_t *sides)
{
    for (int side = 1; side < problem->n_sides; side++) {
        int64_t bytes = tnd_fit_bytes(problem, sides, side);
        if (bytes > 0 && bytes > problem->capacity[side]) {
            return false;
        }
    }
    return true;
}

/* ---- runs ---- */

/* Whether `a` is better: it saves more time per byte, or more time in total. */
static bool is_better(const struct run *a, const struct run *b, bool by_ratio)
{
    if (b->first < 0) {
        return true;
    }
    if (!by_ratio) {
        return a->saved_us > b->saved_us;
    }
    /* compares ratios without dividing by zero bytes */
    return a->saved_us * (double)b->bytes > b->saved_us * (double)a->bytes;
}

/* Tries runs that begin at `first`, each longer by one item. Items already on the device need no
 * more bytes; a run ends before an item of another device, which was placed there for a gain. */
static void try_runs(const struct choice *c, int first, int side, bool by_ratio, struct run *best)
{
    const struct tnd_fit_problem *problem = c->problem;
    const uint8_t *sides = c->sides;
    int64_t bytes = 0;
    int before = side_at(problem, sides, first - 1);
    double own_us = 0; /* time of the items now, less their time on the device */
    double now_us = problem->move_us[before][sides[first]];
    for (int i = first; i < problem->n_items && (sides[i] == 0 || sides[i] == side); i++) {
        const struct tnd_fit_item *item = &problem->items[i];
        bytes += sides[i] == 0 ? item->bytes : 0;
        own_us += item->us[sides[i]] - item->us[side];
        if (bytes > c->room[side] || !(own_us > -INFINITY)) {
            return;
        }
        int next = side_at(problem, sides, i + 1);
        now_us += problem->move_us[sides[i]][next];
        double then_us = problem->move_us[before][side] + problem->move_us[side][next];
        struct run one = {first, i, side, own_us + now_us - then_us, bytes};
        if (sides[i] == 0 && one.saved_us > 0 && is_better(&one, best, by_ratio)) {
            *best = one;
        }
    }
}

static struct run best_run(const struct choice *c, bool by_ratio)
{
    struct run best = {.first = -1};
    for (int side = 1; side < c->problem->n_sides; side++) {
        for (int first = 0; first < c->problem->n_items; first++) {
            if (c->sides[first] == 0) {
                try_runs(c, first, side, by_ratio, &best);
            }
        }
    }
    return best;
}

static bool take(struct choice *c, const struct run *run)
{
    for (int i = run->first; run->first >= 0 && i <= run->last; i++) {
        c->sides[i] = (uint8_t)run->side;
    }
    c->room[run->side] -= run->first >= 0 ? run->bytes : 0;
    return run->first >= 0;
}

static void fill(struct choice *c)
{
    struct run run;
    do {
        run = best_run(c, true);
    } while (take(c, &run));
}

/* ---- exchanges ---- */

static bool fits_after(const struct choice *c, int i, int side, int64_t freed)
{
    return side == 0 || c->problem->items[i].bytes <= c->room[side] + freed;
}

/* Time saved by putting i on side `to_i` and j (which may be i) on side `to_j`. */
static double saved_by(const struct choice *c, int i, int to_i, int j, int to_j)
{
    uint8_t *sides = c->sides;
    int first = i < j ? i : j;
    int last = i < j ? j : i;
    uint8_t was_i = sides[i];
    uint8_t was_j = sides[j];
    bool is_apart = last - first > 1;
    double before = is_apart ? range_us(c->problem, sides, first, first) +
                                   range_us(c->problem, sides, last, last)
                             : range_us(c->problem, sides, first, last);
    sides[i] = (uint8_t)to_i;
    sides[j] = (uint8_t)to_j;
    double after = is_apart ? range_us(c->problem, sides, first, first) +
                                  range_us(c->problem, sides, last, last)
                            : range_us(c->problem, sides, first, last);
    sides[i] = was_i;
    sides[j] = was_j;
    return before - after;
}

static void move_item(struct choice *c, int i, int side)
{
    int64_t bytes = c->problem->items[i].bytes;
    c->room[c->sides[i]] += c->sides[i] > 0 ? bytes : 0;
    c->room[side] -= side > 0 ? bytes : 0;
    c->sides[i] = (uint8_t)side;
}

/* Makes the best exchange: moves one item to another side, or swaps two items. False: nothing is
 * saved. */
static bool exchange(struct choice *c, double least_us)
{
    const struct tnd_fit_problem *problem = c->problem;
    double best_us = least_us;
    int best_i = -1;
    int best_j = -1;
    int best_to = 0;
    for (int i = 0; i < problem->n_items; i++) {
        for (int to = 0; to < problem->n_sides; to++) {
            if (to != c->sides[i] && fits_after(c, i, to, 0) &&
                saved_by(c, i, to, i, to) > best_us) {
                best_us = saved_by(c, i, to, i, to);
                best_i = best_j = i;
                best_to = to;
            }
        }
        for (int j = i + 1; j < problem->n_items; j++) {
            int a = c->sides[i];
            int b = c->sides[j];
            if (a != b && fits_after(c, i, b, problem->items[j].bytes) &&
                fits_after(c, j, a, problem->items[i].bytes) && saved_by(c, i, b, j, a) > best_us) {
                best_us = saved_by(c, i, b, j, a);
                best_i = i;
                best_j = j;
                best_to = b;
            }
        }
    }
    if (best_i < 0) {
        return false;
    }
    int from = c->sides[best_i];
    move_item(c, best_i, best_to);
    if (best_j != best_i) {
        move_item(c, best_j, from);
    }
    return true;
}

/* ---- choosing ---- */

static void start(struct choice *c)
{
    memset(c->sides, 0, (size_t)c->problem->n_items);
    for (int side = 0; side < c->problem->n_sides; side++) {
        int64_t capacity = c->problem->capacity[side];
        c->room[side] = side > 0 && capacity > 0 ? capacity : 0;
    }
}

static void finish(struct choice *c)
{
    fill(c);
    /* Gains by rounding alone could repeat for ever. */
    double least_us = 1e-9 * tnd_fit_us(c->problem, c->sides);
    for (int n = 0; n < MOST_EXCHANGES && exchange(c, least_us); n++) {
        fill(c);
    }
}

static bool is_valid(const struct tnd_fit_problem *problem)
{
    if (problem->n_sides < 1 || problem->n_sides > TND_FIT_SIDES || problem->n_items < 0 ||
        problem->n_items > TND_FIT_MAX_ITEMS) {
        return false;
    }
    int64_t all = 0;
    for (int i = 0; i < problem->n_items; i++) {
        const struct tnd_fit_item *item = &problem->items[i];
        bool is_sane = item->bytes >= 0 && tnd_add_i64(all, item->bytes, &all) &&
                       item->us[0] >= 0 && isfinite(item->us[0]);
        for (int side = 1; side < problem->n_sides && is_sane; side++) {
            is_sane = item->us[side] >= 0; /* no NaN */
        }
        if (!is_sane) {
            return false;
        }
    }
    bool is_sane = true;
    for (int from = 0; from < problem->n_sides; from++) {
        for (int to = 0; to < problem->n_sides; to++) {
            double us = problem->move_us[from][to];
            is_sane = is_sane && us >= 0 && isfinite(us);
        }
    }
    return is_sane;
}

enum tandem_status tnd_fit_choose(const struct tnd_fit_problem *problem, uint8_t *out_sides,
                                  struct tandem_error *error)
{
    if (!is_valid(problem)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "fit", problem->n_items, TND_FIT_MAX_ITEMS,
                             "fit: %d items on %d sides with a size, a time or a price that cannot "
                             "be; expected 0 or more",
                             problem->n_items, problem->n_sides);
    }
    size_t n = (size_t)problem->n_items;
    uint8_t *sides = tnd_alloc(n + 1);
    if (sides == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "fit", problem->n_items, 0,
                             "fit: out of memory for %d items", problem->n_items);
    }
    struct choice c = {.problem = problem, .sides = sides};
    start(&c);
    finish(&c);
    memcpy(out_sides, sides, n);
    double by_ratio_us = tnd_fit_us(problem, sides);
    /* Tries again, starting with the run that saves most time in total, which the rule by ratio may
     * miss. */
    start(&c);
    struct run run = best_run(&c, false);
    if (take(&c, &run)) {
        finish(&c);
        if (tnd_fit_us(problem, sides) < by_ratio_us) {
            memcpy(out_sides, sides, n);
        }
    }
    tnd_free(sides);
    TND_ASSERT(tnd_fit_holds(problem, out_sides));
    return TANDEM_OK;
}

/* ---- whole layers ---- */

/* Puts items first .. last on a device if it has room for all of them; false: it has not. */
static bool place_layer(const struct tnd_fit_problem *problem, int first, int last, int side,
                        int64_t *io_room, uint8_t *sides)
{
    int64_t bytes = 0;
    for (int i = first; i <= last; i++) {
        bytes += problem->items[i].bytes;
        if (!isfinite(problem->items[i].us[side])) {
            return false;
        }
    }
    if (bytes > *io_room) {
        return false;
    }
    *io_room -= bytes;
    memset(sides + first, side, (size_t)(last - first + 1));
    return true;
}

void tnd_fit_whole_layers(const struct tnd_fit_problem *problem, const int32_t *layer_of,
                          int32_t n_layers, uint8_t *out_sides)
{
    int behind = problem->n_items; /* the first item after the layers */
    memset(out_sides, 0, (size_t)problem->n_items);
    while (behind > 0 && layer_of[behind - 1] >= n_layers) {
        behind--;
    }
    int last = behind - 1;
    int side = 1;
    int64_t room = problem->n_sides > 1 ? problem->capacity[1] : 0;
    while (last >= 0 && layer_of[last] >= 0 && side < problem->n_sides) {
        int first = last;
        while (first > 0 && layer_of[first - 1] == layer_of[last]) {
            first--;
        }
        if (place_layer(problem, first, last, side, &room, out_sides)) {
            last = first - 1;
        } else if (++side < problem->n_sides) {
            room = problem->capacity[side];
        }
    }
    bool has_all = last < 0 || layer_of[last] < 0;
    if (has_all && side < problem->n_sides && behind < problem->n_items) {
        (void)place_layer(problem, behind, problem->n_items - 1, side, &room, out_sides);
    }
}
