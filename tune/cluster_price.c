/* SPDX-License-Identifier: MIT
 * Prices shares of a model on a rank: builds the weights of the share, with fewer rows or columns,
 * and prices them as `fit` does. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "tune/cluster.h"
#include "tune/policy.h"

enum { ROWS = 32, TOKENS = 64, POINTS = TND_CLUSTER_POINTS }; /* as llama/shard.c */

/* ---- what is divided ---- */

enum cut { WHOLE, CUT_ROWS, CUT_COLUMNS };

/* How llama/shard.c divides a weight. */
static enum cut cut_of(const struct tnd_fit_weight *weight, enum tnd_fit_part part)
{
    static const char *const rows[] = {
        ".attn_q.", ".attn_k.",        ".attn_v.",      ".attn_qkv.",       ".ffn_gate.",
        ".ffn_up.", ".ffn_gate_exps.", ".ffn_up_exps.", ".ffn_gate_shexp.", ".ffn_up_shexp."};
    static const char *const columns[] = {".attn_output.", ".ffn_down.", ".ffn_down_exps.",
                                          ".ffn_down_shexp."};
    const char *name = weight->name != NULL ? weight->name : "";
    if (weight->n < 2) {
        return WHOLE;
    }
    if (part == TND_FIT_OUTPUT) {
        return CUT_ROWS;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strstr(name, rows[i]) != NULL) {
            return CUT_ROWS;
        }
    }
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        if (strstr(name, columns[i]) != NULL) {
            return CUT_COLUMNS;
        }
    }
    return WHOLE;
}

static int64_t share_of(int64_t n, double share)
{
    const int64_t part = (int64_t)((double)n * share + 0.5);
    return part > 0 ? part : 1;
}

/* Lists the weights of a share; `parts` {n_weights} are their parts in the whole model. A share of
 * 0 contains only weights that are not divided. Returns their number. */
static int cut_weights(const struct tnd_fit_weight *weights, int n_weights, const uint8_t *parts,
                       double share, struct tnd_fit_weight *out)
{
    int n = 0;
    for (int i = 0; i < n_weights; i++) {
        struct tnd_fit_weight one = weights[i];
        const enum cut cut = cut_of(&one, (enum tnd_fit_part)parts[i]);
        if (cut != WHOLE && share <= 0) {
            continue;
        }
        one.n = cut == CUT_ROWS ? share_of(one.n, share) : one.n;
        one.k = cut == CUT_COLUMNS ? share_of(one.k, share) : one.k;
        one.bytes = cut != WHOLE ? (int64_t)((double)one.bytes * share) : one.bytes;
        out[n++] = one;
    }
    return n;
}

/* ---- units ---- */

static int64_t least_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y != 0) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* Least number of columns of a weight that is not split in any layer; a multiple of `at_least`. */
static int64_t block_of(const struct tnd_fit_weight *weights, int n, const char *name,
                        int64_t at_least)
{
    for (int i = 0; i < n; i++) {
        const bool is_one = weights[i].name != NULL && strstr(weights[i].name, name) != NULL;
        at_least =
            is_one ? least_multiple(at_least, tandem_type_block_values(weights[i].type)) : at_least;
    }
    return at_least;
}

static int64_t count_units(int64_t n, int64_t unit)
{
    return n > 0 ? (n + unit - 1) / unit : 0;
}

static void find_units(const struct tnd_fit_weight *weights, int n,
                       const struct tnd_cluster_shape *shape, struct tnd_cluster_model *out)
{
    const int64_t columns = shape->kv_heads > 0 ? shape->q_dim / shape->kv_heads : 0;
    const int64_t block = block_of(weights, n, ".attn_output.", 1);
    const int64_t heads = columns > 0 ? least_multiple(block, columns) / columns : 1;
    out->units[TND_FIT_ATTENTION] = count_units(shape->kv_heads, heads);
    out->units[TND_FIT_FFN] = count_units(shape->hidden, block_of(weights, n, ".ffn_down.", ROWS));
    out->units[TND_FIT_EXPERTS] =
        count_units(shape->expert_hidden, block_of(weights, n, ".ffn_down_exps.", ROWS));
    out->units[TND_FIT_OUTPUT] = count_units(shape->vocabulary, TOKENS);
}

/* ---- times ---- */

/* Working memory of pricing. */
struct cutting {
    const struct tnd_fit_weight *weights;
    int n;
    uint8_t *parts;             /* {n} */
    struct tnd_fit_weight *cut; /* {n} */
    /* {TND_FIT_MAX_ITEMS}: groups to be priced, rising, and the side of each */
    int32_t *groups;
    struct tnd_fit_item *items;
    uint8_t *sides;
};

/* Finds each weight's part in the whole model. An embedding that is also the output matrix counts
 * as the output. */
static void find_parts(const struct cutting *c)
{
    int32_t layer;
    bool has_output = false;
    for (int i = 0; i < c->n; i++) {
        c->parts[i] = (uint8_t)tnd_fit_part_of(c->weights[i].name, &layer);
        has_output = has_output || (c->parts[i] == TND_FIT_OUTPUT && c->weights[i].n > 1);
    }
    for (int i = 0; i < c->n; i++) {
        const bool is_both = c->parts[i] == TND_FIT_EMBEDDING && !has_output;
        c->parts[i] = is_both ? TND_FIT_OUTPUT : c->parts[i];
    }
}

/* Places groups {n} for a prompt in `n_passes` passes and its answer, as a session does
 * (tandem_session_place). */
static enum tandem_status place(const struct cutting *c, const struct tnd_fit_model *model, int n,
                                int64_t n_passes, struct tandem_error *error)
{
    const double count[TND_FIT_PHASES] = {(double)n_passes, TND_FIT_ANSWER_TOKENS};
    struct tnd_fit_problem problem;
    memset(c->sides, 0, (size_t)n + 1);
    if (model->n_sides < 2) {
        return TANDEM_OK;
    }
    tnd_fit_model_problem(model, count, c->items, &problem);
    for (int i = 0; i < n; i++) {
        c->items[i] = c->items[c->groups[i]];
    }
    problem.n_items = n;
    return tnd_fit_choose(&problem, c->sides, error);
}

/* Time of the i-th group on its side, with the moves before and after it. If there are only layers,
 * the state goes to host memory before the classifier. */
static double group_us(const struct cutting *c, const struct tnd_fit_model *model, int i, int n,
                       bool is_layers, enum tnd_fit_phase phase, double *out_error_us)
{
    const struct tnd_fit_group *group = &model->groups[c->groups[i]];
    const int side = c->sides[i];
    const bool is_first = i == 0 || (is_layers && group->part == TND_FIT_OUTPUT);
    const bool is_last =
        i == n - 1 || (is_layers && model->groups[c->groups[i + 1]].part == TND_FIT_OUTPUT);
    if (model->n_sides < 2) {
        *out_error_us = group->cpu_error_us[phase];
        return group->cpu_us[phase];
    }
    *out_error_us = group->error_us[phase][side];
    return group->us[phase][side] +
           tnd_fit_moved_us(model, phase, is_first ? 0 : c->sides[i - 1], side) +
           (is_last && !model->returns_to_host ? model->move_us[phase][side][0] : 0);
}

static double placed_bytes(const struct cutting *c, const struct tnd_fit_model *model, int n,
                           bool is_layers)
{
    double bytes = 0;
    for (int i = 0; i < n; i++) {
        const struct tnd_fit_group *group = &model->groups[c->groups[i]];
        const bool is_counted = c->sides[i] > 0 && (group->part != TND_FIT_OUTPUT || !is_layers);
        bytes += is_counted ? (double)group->bytes : 0;
    }
    return bytes;
}

/* ---- by rows ---- */

/* Adds the times of groups by part; if a share is priced twice, the slower time is kept. */
static enum tandem_status add_groups(const struct cutting *c, const struct tnd_fit_model *model,
                                     int point, struct tnd_cluster_prices *io_prices,
                                     struct tandem_error *error)
{
    double us[TND_FIT_PHASES][TND_FIT_PARTS] = {{0}};
    double error_us[TND_FIT_PHASES][TND_FIT_PARTS] = {{0}};
    for (int g = 0; g < model->n_groups; g++) {
        c->groups[g] = g;
    }
    TND_TRY(place(c, model, model->n_groups, 1, error));
    for (int g = 0; g < model->n_groups; g++) {
        const enum tnd_fit_part part = model->groups[g].part;
        for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
            double one_us;
            us[phase][part] +=
                group_us(c, model, g, model->n_groups, false, (enum tnd_fit_phase)phase, &one_us);
            error_us[phase][part] += one_us;
        }
    }
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        for (int part = 0; part < TND_FIT_PARTS; part++) {
            struct tnd_cluster_curve *curve = &io_prices->curves[phase][part];
            if (us[phase][part] > curve->us[point]) {
                curve->us[point] = us[phase][part];
                curve->error_us[point] = error_us[phase][part];
            }
        }
    }
    io_prices->rows_placed[point] = placed_bytes(c, model, model->n_groups, false);
    return TANDEM_OK;
}

/* Fills in the sizes of the whole model. */
static void describe(const struct tnd_fit_model *model, const struct tnd_fit_options *options,
                     struct tnd_cluster_model *io_model)
{
    io_model->n_layers = model->n_layers;
    io_model->prompt_tokens = model->prompt_tokens;
    io_model->cache_bytes = 0;
    memset(io_model->bytes, 0, sizeof(io_model->bytes));
    for (int g = 0; g < model->n_groups; g++) {
        const struct tnd_fit_group *group = &model->groups[g];
        const bool is_looked_up = group->part == TND_FIT_EMBEDDING; /* some rows of a mapped file */
        io_model->bytes[group->part] += is_looked_up ? 0 : group->bytes + group->cache_bytes;
        io_model->cache_bytes += group->cache_bytes;
    }
    io_model->kv_bytes =
        options->context > 0 ? (double)io_model->cache_bytes / (double)options->context : 0;
}

/* (Without sums, a rank with all rows leaves results on its device.) */
static enum tandem_status price_share(const struct cutting *c, double share,
                                      const struct tnd_fit_options *options, int point,
                                      struct tnd_cluster_prices *io_prices,
                                      struct tnd_cluster_model *io_model,
                                      struct tandem_error *error)
{
    struct tnd_fit_model model;
    struct tnd_fit_options own = *options;
    const int n = cut_weights(c->weights, c->n, c->parts, share, c->cut);
    own.returns_to_host = point < POINTS - 1;
    TND_TRY(tnd_fit_model_new(c->cut, n, &own, &model, error));
    const enum tandem_status status = add_groups(c, &model, point, io_prices, error);
    if (io_model != NULL) {
        describe(&model, options, io_model);
    }
    tnd_fit_model_fini(&model);
    return status;
}

/* Prices a share whose products are too small for the table in proportion to the next larger share.
 */
static void guess_share(int point, struct tnd_cluster_prices *io_prices)
{
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        for (int part = 0; part < TND_FIT_PARTS; part++) {
            struct tnd_cluster_curve *curve = &io_prices->curves[phase][part];
            const double more_us = curve->us[point + 1] - curve->us[0];
            const double us = curve->us[0] + more_us * point / (point + 1);
            curve->us[point] = us;
            curve->error_us[point] = TND_FIT_GUESS_ERROR * us;
        }
    }
    io_prices->rows_placed[point] = io_prices->rows_placed[point + 1] * point / (point + 1);
}

/* Threads and devices of one rank, and of all ranks of a machine together. */
struct using
{
    struct tnd_fit_options alone, together;
    int n_beside;
};

/* Prices all shares of rows. The whole model must have times; its sizes go to `io_model`. */
static enum tandem_status price_rows(const struct cutting *c, const struct using *u,
                                     struct tnd_cluster_prices *io_prices,
                                     struct tnd_cluster_model *io_model, struct tandem_error *error)
{
    enum tandem_status status = price_share(c, 0, &u->alone, 0, io_prices, NULL, error);
    for (int p = POINTS - 1; p > 0 && (status == TANDEM_OK || status == TANDEM_E_NOT_FOUND); p--) {
        const double share = (double)p / (POINTS - 1);
        status = u->n_beside < 2 ? TANDEM_OK
                                 : price_share(c, fmin(1, share * u->n_beside), &u->together, p,
                                               io_prices, NULL, error);
        status = status == TANDEM_OK ? price_share(c, share, &u->alone, p, io_prices,
                                                   p == POINTS - 1 ? io_model : NULL, error)
                                     : status;
        if (status == TANDEM_E_NOT_FOUND && p == POINTS - 1) {
            return status;
        }
        if (status == TANDEM_E_NOT_FOUND) {
            guess_share(p, io_prices);
        }
    }
    return status == TANDEM_E_NOT_FOUND ? TANDEM_OK : status;
}

/* ---- by layers ---- */

static bool is_of_layers(int part)
{
    return part != TND_FIT_EMBEDDING && part != TND_FIT_OUTPUT;
}

/* Lists the first `n_layers` layers, and the classifier after them. Returns the number of groups.
 */
static int list_layers(const struct cutting *c, const struct tnd_fit_model *model, int64_t n_layers)
{
    int n = 0;
    for (int g = 0; g < model->n_groups; g++) {
        const struct tnd_fit_group *group = &model->groups[g];
        if (group->part == TND_FIT_OUTPUT ||
            (group->part != TND_FIT_EMBEDDING && group->layer < n_layers)) {
            c->groups[n++] = g;
        }
    }
    return n;
}

/* Adds the time of a point's layers in `n_passes` passes; they are `scale` times the listed ones.
 */
static void add_layers(const struct cutting *c, const struct tnd_fit_model *model, int n,
                       enum tnd_fit_phase phase, double n_passes, double scale, int point,
                       struct tnd_cluster_curve *out_layers, struct tnd_cluster_curve *out_head)
{
    for (int i = 0; i < n; i++) {
        const bool is_head = model->groups[c->groups[i]].part == TND_FIT_OUTPUT;
        struct tnd_cluster_curve *curve = is_head ? out_head : out_layers;
        double error_us;
        const double times = is_head ? 1 : n_passes * scale;
        curve->us[point] += times * group_us(c, model, i, n, true, phase, &error_us);
        curve->error_us[point] += times * error_us;
    }
}

/* Prices shares of layers. A device holds as many of them as fit; on a CPU each layer takes the
 * mean time. `batch`: only generated tokens, in this many batches less 1; -1: both phases. */
static enum tandem_status price_shares(const struct cutting *c,
                                       const struct tnd_fit_options *options, int64_t n_passes,
                                       int batch, struct tnd_cluster_prices *io_prices,
                                       struct tandem_error *error)
{
    struct tnd_fit_model model;
    enum tandem_status status = tnd_fit_model_new(c->weights, c->n, options, &model, error);
    TND_TRY(status);
    const double all = fmax((double)model.n_layers, 1);
    for (int p = 0; p < POINTS && status == TANDEM_OK; p++) {
        const double wanted = all * p / (POINTS - 1);
        const double listed = model.n_sides < 2 ? all : fmax(ceil(wanted), 1);
        const int n = list_layers(c, &model, (int64_t)listed);
        const double scale = wanted / listed;
        status = place(c, &model, n, n_passes, error);
        for (int phase = 0; phase < TND_FIT_PHASES && status == TANDEM_OK && batch < 0; phase++) {
            add_layers(c, &model, n, (enum tnd_fit_phase)phase,
                       phase == TND_FIT_PROMPT ? (double)n_passes : 1, scale, p,
                       &io_prices->layers[phase], &io_prices->head[phase]);
        }
        if (status == TANDEM_OK && batch >= 0) {
            add_layers(c, &model, n, TND_FIT_GENERATION, 1, scale, p, &io_prices->batch[batch],
                       &io_prices->batch_head[batch]);
        } else if (status == TANDEM_OK) {
            io_prices->layers_placed[p] = scale * placed_bytes(c, &model, n, true);
        }
    }
    tnd_fit_model_fini(&model);
    return status;
}

/* Time of all layers by rows, at a point. */
static double layers_of(const struct tnd_cluster_prices *prices, enum tnd_fit_phase phase,
                        int point)
{
    double us = 0;
    for (int i = 0; i < TND_FIT_PARTS; i++) {
        us += is_of_layers(i) ? prices->curves[phase][i].us[point] : 0;
    }
    return us;
}

/* Slows down a curve of ranks that share a machine: none is faster than its share of all ranks
 * together. */
static void slow_down(const struct using *u, const struct tnd_cluster_prices *prices,
                      enum tnd_fit_phase phase, double all_us, struct tnd_cluster_curve *io_curve)
{
    /* point of one rank's share */
    const int beside = (POINTS - 1) / (u->n_beside > 1 ? u->n_beside : 1);
    const double together_us = u->n_beside * layers_of(prices, phase, beside);
    const double slower = u->n_beside > 1 && all_us > 0 ? fmax(1, together_us / all_us) : 1;
    for (int p = 0; p < POINTS; p++) {
        io_curve->us[p] *= slower;
    }
}

/* Prices shares of layers with a prompt in micro-batches, whose products have fewer rows; with the
 * prompt as a whole if the table has no times for those. */
static enum tandem_status price_layers(const struct cutting *c,
                                       const struct tnd_cluster_shape *shape, const struct using *u,
                                       struct tnd_cluster_prices *io_prices,
                                       struct tnd_cluster_model *io_model,
                                       struct tandem_error *error)
{
    struct tnd_fit_options cut = u->alone;
    int64_t n = shape->micro_tokens > 0 ? io_model->prompt_tokens / shape->micro_tokens : 1;
    n = n > shape->n_micro ? shape->n_micro : n;
    io_model->n_micro = n > 1 ? n : 1;
    cut.prompt_tokens = (io_model->prompt_tokens + io_model->n_micro - 1) / io_model->n_micro;
    enum tandem_status status = price_shares(c, &cut, io_model->n_micro, -1, io_prices, error);
    if (status == TANDEM_E_NOT_FOUND) {
        status = price_shares(c, &u->alone, 1, -1, io_prices, error);
    }
    struct tnd_cluster_curve *prompt = &io_prices->layers[TND_FIT_PROMPT];
    slow_down(u, io_prices, TND_FIT_PROMPT, prompt->us[POINTS - 1], prompt);
    return status;
}

/* Prices texts in several batches, whose products have fewer rows. A batch without times in the
 * table is priced like a batch of all texts. */
static enum tandem_status price_batches(const struct cutting *c, const struct using *u,
                                        struct tnd_cluster_prices *io_prices,
                                        const struct tnd_cluster_model *model,
                                        struct tandem_error *error)
{
    const double all_us = layers_of(io_prices, TND_FIT_GENERATION, POINTS - 1);
    io_prices->batch[0] = io_prices->layers[TND_FIT_GENERATION];
    io_prices->batch_head[0] = io_prices->head[TND_FIT_GENERATION];
    for (int g = 1; g < TND_CLUSTER_BATCHES; g++) {
        struct tnd_fit_options cut = u->alone;
        cut.n_texts = (model->n_texts + g) / (g + 1);
        const enum tandem_status status =
            g < model->n_texts ? price_shares(c, &cut, 1, g, io_prices, error) : TANDEM_E_NOT_FOUND;
        if (status == TANDEM_E_NOT_FOUND) {
            io_prices->batch[g] = io_prices->batch[0];
            io_prices->batch_head[g] = io_prices->batch_head[0];
        } else if (status != TANDEM_OK) {
            return status;
        }
        slow_down(u, io_prices, TND_FIT_GENERATION, all_us, &io_prices->batch[g]);
    }
    return TANDEM_OK;
}

/* ---- all prices ---- */

static enum tandem_status price_all(const struct cutting *c, const struct tnd_cluster_shape *shape,
                                    const struct using *u, struct tnd_cluster_prices *out,
                                    struct tnd_cluster_model *io_model, struct tandem_error *error)
{
    memset(out, 0, sizeof(*out));
    TND_TRY(price_rows(c, u, out, io_model, error));
    TND_TRY(price_layers(c, shape, u, out, io_model, error));
    return price_batches(c, u, out, io_model, error);
}

/* (Ranks of one machine share its devices equally.) */
static struct using use(const struct tnd_fit_options *options, int n_devices, int n_beside,
                        int threads_together)
{
    struct using u = {*options, *options, n_beside};
    u.alone.n_devices = u.together.n_devices = n_devices;
    u.together.n_threads = threads_together;
    for (int side = 1; side <= n_devices && n_beside > 1; side++) {
        u.alone.memory[side] /= n_beside;
        u.alone.budget[side] /= n_beside;
    }
    return u;
}

/* Capacity of the devices for weights, keys and values. */
static int64_t device_memory(const struct cutting *c, const struct tnd_fit_options *options)
{
    struct tnd_fit_model model;
    int64_t bytes = 0;
    if (tnd_fit_model_new(c->weights, c->n, options, &model, NULL) == TANDEM_OK) {
        for (int side = 1; side < model.n_sides; side++) {
            bytes += model.capacity[side] < INT64_MAX - bytes ? model.capacity[side] : 0;
        }
        tnd_fit_model_fini(&model);
    }
    return bytes;
}

static enum tandem_status price_device(const struct cutting *c,
                                       const struct tnd_cluster_shape *shape, const struct using *u,
                                       struct tnd_cluster_rank *io_rank,
                                       struct tnd_cluster_model *io_model,
                                       struct tandem_error *error)
{
    struct tnd_cluster_prices *prices = &io_rank->prices[1];
    TND_TRY(price_all(c, shape, u, prices, io_model, error));
    for (int p = 0; p < POINTS; p++) {
        io_rank->has_device =
            io_rank->has_device || prices->rows_placed[p] > 0 || prices->layers_placed[p] > 0;
    }
    io_rank->device_memory = device_memory(c, &u->alone);
    snprintf(io_rank->device, sizeof(io_rank->device), "%s", u->alone.devices[1]);
    return TANDEM_OK;
}

enum tandem_status tnd_cluster_price(const struct tnd_fit_weight *weights, int n_weights,
                                     const struct tnd_cluster_shape *shape,
                                     const struct tnd_fit_options *options, int n_beside,
                                     int threads_together, struct tnd_cluster_rank *io_rank,
                                     struct tnd_cluster_model *out_model,
                                     struct tandem_error *error)
{
    struct cutting c = {.weights = weights, .n = n_weights};
    struct tnd_cluster_model model = {.dim = shape->dim,
                                      .vocabulary = shape->vocabulary,
                                      .n_texts = options->n_texts > 0 ? options->n_texts : 1,
                                      .undivided = shape->undivided,
                                      .n_experts = shape->experts,
                                      .n_used = shape->experts_used,
                                      .is_whole = shape->is_whole};
    enum tandem_status status = TANDEM_E_MEMORY;
    const struct using cpu = use(options, 0, n_beside, threads_together);
    const struct using devices = use(options, options->n_devices, n_beside, threads_together);
    io_rank->has_device = false;
    io_rank->beside = tnd_cluster_beside_of(options->table);
    c.parts = tnd_calloc((size_t)n_weights + 1, 1);
    c.cut = tnd_calloc((size_t)n_weights + 1, sizeof(c.cut[0]));
    c.groups = tnd_alloc(TND_FIT_MAX_ITEMS * sizeof(c.groups[0]));
    c.items = tnd_alloc(TND_FIT_MAX_ITEMS * sizeof(c.items[0]));
    c.sides = tnd_alloc(TND_FIT_MAX_ITEMS + 1);
    if (c.parts == NULL || c.cut == NULL || c.groups == NULL || c.items == NULL ||
        c.sides == NULL) {
        tnd_error_set(error, status, "cluster", n_weights, 0,
                      "cluster: out of memory for %d weights", n_weights);
    } else {
        find_parts(&c);
        find_units(weights, n_weights, shape, &model);
        status = price_all(&c, shape, &cpu, &io_rank->prices[0], &model, error);
        if (status == TANDEM_OK && options->n_devices > 0) {
            status = price_device(&c, shape, &devices, io_rank, &model, error);
        }
    }
    if (status == TANDEM_OK) {
        *out_model = model;
    }
    tnd_free(c.parts);
    tnd_free(c.cut);
    tnd_free(c.groups);
    tnd_free(c.items);
    tnd_free(c.sides);
    return status;
}
