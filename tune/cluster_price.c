/* SPDX-License-Identifier: MIT
 * What a share of a model takes on a rank: the weights with as many rows or columns as the share
 * leaves, priced as `fit` prices them. */
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

/* As llama/shard.c divides weights. */
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

/* The weights of a share; `parts` {n_weights} are those that they have in the whole model. Of no
 * share only what is not divided stays. Returns their number. */
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

/* Columns of a weight that stay together in all layers, beside `at_least`. */
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

/* What one price list needs. */
struct cutting {
    const struct tnd_fit_weight *weights;
    int n;
    uint8_t *parts;             /* {n} */
    struct tnd_fit_weight *cut; /* {n} */
};

/* In the place where it stands in the whole model: an embedding that is the output matrix too. */
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

/* Groups by their part; of two price lists of one share the slower one stays. */
static void add_groups(const struct tnd_fit_model *model, int point,
                       struct tnd_cluster_rank *io_rank)
{
    double us[TND_FIT_PHASES][TND_FIT_PARTS] = {{0}};
    double error_us[TND_FIT_PHASES][TND_FIT_PARTS] = {{0}};
    for (int g = 0; g < model->n_groups; g++) {
        const struct tnd_fit_group *group = &model->groups[g];
        for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
            us[phase][group->part] += group->cpu_us[phase];
            error_us[phase][group->part] += group->cpu_error_us[phase];
        }
    }
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        for (int part = 0; part < TND_FIT_PARTS; part++) {
            struct tnd_cluster_curve *curve = &io_rank->curves[phase][part];
            if (us[phase][part] > curve->us[point]) {
                curve->us[point] = us[phase][part];
                curve->error_us[point] = error_us[phase][part];
            }
        }
    }
}

static enum tandem_status price_share(const struct cutting *c, double share,
                                      const struct tnd_fit_options *options, int point,
                                      struct tnd_cluster_rank *io_rank,
                                      struct tnd_cluster_model *io_model,
                                      struct tandem_error *error)
{
    struct tnd_fit_model model;
    const int n = cut_weights(c->weights, c->n, c->parts, share, c->cut);
    TND_TRY(tnd_fit_model_new(c->cut, n, options, &model, error));
    add_groups(&model, point, io_rank);
    io_model->n_layers = model.n_layers;
    io_model->prompt_tokens = model.prompt_tokens;
    io_model->cache_bytes = 0;
    memset(io_model->bytes, 0, sizeof(io_model->bytes));
    for (int g = 0; g < model.n_groups; g++) {
        const struct tnd_fit_group *group = &model.groups[g];
        const bool is_looked_up = group->part == TND_FIT_EMBEDDING; /* some rows of a mapped file */
        io_model->bytes[group->part] += is_looked_up ? 0 : group->bytes + group->cache_bytes;
        io_model->cache_bytes += group->cache_bytes;
    }
    io_model->kv_bytes =
        options->context > 0 ? (double)io_model->cache_bytes / (double)options->context : 0;
    tnd_fit_model_fini(&model);
    return TANDEM_OK;
}

/* A share whose products are too small for the table: in proportion to the next larger one. */
static void guess_share(int point, struct tnd_cluster_rank *io_rank)
{
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        for (int part = 0; part < TND_FIT_PARTS; part++) {
            struct tnd_cluster_curve *curve = &io_rank->curves[phase][part];
            const double more_us = curve->us[point + 1] - curve->us[0];
            const double us = curve->us[0] + more_us * point / (point + 1);
            curve->us[point] = us;
            curve->error_us[point] = TND_FIT_GUESS_ERROR * us;
        }
    }
}

/* The whole model must have times; its bytes are what stays in `io_model`. */
static enum tandem_status price_all(struct cutting *c, const struct tnd_fit_options *alone,
                                    const struct tnd_fit_options *together, int n_beside,
                                    struct tnd_cluster_rank *io_rank,
                                    struct tnd_cluster_model *io_model, struct tandem_error *error)
{
    struct tnd_cluster_model part = *io_model;
    enum tandem_status status = price_share(c, 0, alone, 0, io_rank, &part, error);
    for (int p = POINTS - 1; p > 0 && (status == TANDEM_OK || status == TANDEM_E_NOT_FOUND); p--) {
        const double share = (double)p / (POINTS - 1);
        struct tnd_cluster_model *model = p == POINTS - 1 ? io_model : &part;
        status = n_beside < 2 ? TANDEM_OK
                              : price_share(c, fmin(1, share * n_beside), together, p, io_rank,
                                            &part, error);
        status =
            status == TANDEM_OK ? price_share(c, share, alone, p, io_rank, model, error) : status;
        if (status == TANDEM_E_NOT_FOUND && p == POINTS - 1) {
            return status;
        }
        if (status == TANDEM_E_NOT_FOUND) {
            guess_share(p, io_rank);
        }
    }
    return status == TANDEM_E_NOT_FOUND ? TANDEM_OK : status;
}

static bool is_of_layers(int part)
{
    return part != TND_FIT_EMBEDDING && part != TND_FIT_OUTPUT;
}

/* Prices all layers for a prompt in micro-batches, whose products have fewer rows. A share of all
 * ranks of a machine together is a lower bound: in a pipeline they compute at the same time. */
static enum tandem_status
price_layers(const struct cutting *c, const struct tnd_cluster_shape *shape,
             const struct tnd_fit_options *options, int n_beside, struct tnd_cluster_rank *io_rank,
             struct tnd_cluster_model *io_model, struct tandem_error *error)
{
    struct tnd_cluster_rank *micro = tnd_calloc(1, sizeof(*micro));
    struct tnd_cluster_model part = *io_model;
    struct tnd_fit_options cut = *options;
    int64_t n = shape->micro_tokens > 0 ? io_model->prompt_tokens / shape->micro_tokens : 1;
    n = n > shape->n_micro ? shape->n_micro : n;
    io_model->n_micro = n > 1 ? n : 1;
    if (micro == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cluster", c->n, 0,
                             "cluster: out of memory for %d weights", c->n);
    }
    cut.prompt_tokens = (io_model->prompt_tokens + io_model->n_micro - 1) / io_model->n_micro;
    const enum tandem_status status = price_share(c, 1, &cut, POINTS - 1, micro, &part, error);
    const int beside = (POINTS - 1) / (n_beside > 1 ? n_beside : 1); /* point of such a share */
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        double together_us = 0;
        io_rank->layers_us[phase] = io_rank->layers_error_us[phase] = 0;
        for (int i = 0; i < TND_FIT_PARTS; i++) {
            const struct tnd_cluster_curve *whole = &io_rank->curves[phase][i];
            const bool is_cut = phase == TND_FIT_PROMPT && status == TANDEM_OK;
            const struct tnd_cluster_curve *one = is_cut ? &micro->curves[phase][i] : whole;
            const double times = is_cut ? (double)io_model->n_micro : 1;
            if (is_of_layers(i)) {
                io_rank->layers_us[phase] += times * one->us[POINTS - 1];
                io_rank->layers_error_us[phase] += times * one->error_us[POINTS - 1];
                together_us += n_beside * whole->us[beside];
            }
        }
        if (phase == TND_FIT_PROMPT && n_beside > 1 && together_us > io_rank->layers_us[phase]) {
            io_rank->layers_us[phase] = together_us;
        }
    }
    tnd_free(micro);
    return status == TANDEM_E_NOT_FOUND ? TANDEM_OK : status; /* priced as a whole then */
}

/* Time of all layers, or of the classifier, of a list of prices. */
static double layers_of(const struct tnd_cluster_rank *rank, enum tnd_fit_phase phase, int point)
{
    double us = 0;
    for (int i = 0; i < TND_FIT_PARTS; i++) {
        us += is_of_layers(i) ? rank->curves[phase][i].us[point] : 0;
    }
    return us;
}

/* Prices all layers for texts in several batches, whose products have fewer rows. Ranks of one
 * machine compute them at the same time. What the table does not know takes as long as a batch of
 * all texts. */
static enum tandem_status price_batches(const struct cutting *c,
                                        const struct tnd_fit_options *options, int n_beside,
                                        struct tnd_cluster_rank *io_rank,
                                        const struct tnd_cluster_model *model,
                                        struct tandem_error *error)
{
    const int last = POINTS - 1, beside = last / (n_beside > 1 ? n_beside : 1);
    const double all_us = layers_of(io_rank, TND_FIT_GENERATION, last);
    const double together_us = n_beside * layers_of(io_rank, TND_FIT_GENERATION, beside);
    struct tnd_cluster_rank *part = tnd_alloc(sizeof(*part));
    if (part == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cluster", c->n, 0,
                             "cluster: out of memory for %d weights", c->n);
    }
    enum tandem_status status = TANDEM_OK;
    for (int g = 0; g < TND_CLUSTER_BATCHES && status == TANDEM_OK; g++) {
        struct tnd_fit_options cut = *options;
        struct tnd_cluster_model unused = *model;
        memset(part, 0, sizeof(*part));
        cut.n_texts = (model->n_texts + g) / (g + 1);
        status = g < model->n_texts && g > 0 ? price_share(c, 1, &cut, last, part, &unused, error)
                                             : TANDEM_E_NOT_FOUND;
        const struct tnd_cluster_rank *from = status == TANDEM_OK ? part : io_rank;
        const double us = layers_of(from, TND_FIT_GENERATION, last);
        const bool is_shared = n_beside > 1 && g > 0 && all_us > 0;
        io_rank->batch_us[g] = is_shared ? fmax(us, together_us * us / all_us) : us;
        io_rank->batch_head_us[g] = from->curves[TND_FIT_GENERATION][TND_FIT_OUTPUT].us[last];
        status = status == TANDEM_E_NOT_FOUND ? TANDEM_OK : status;
    }
    tnd_free(part);
    return status;
}

enum tandem_status tnd_cluster_price(const struct tnd_fit_weight *weights, int n_weights,
                                     const struct tnd_cluster_shape *shape,
                                     const struct tnd_fit_options *options, int n_beside,
                                     int threads_together, struct tnd_cluster_rank *io_rank,
                                     struct tnd_cluster_model *out_model,
                                     struct tandem_error *error)
{
    struct tnd_fit_options alone = *options;
    struct cutting c = {.weights = weights, .n = n_weights};
    struct tnd_cluster_model model = {.dim = shape->dim,
                                      .vocabulary = shape->vocabulary,
                                      .n_texts = options->n_texts > 0 ? options->n_texts : 1,
                                      .undivided = shape->undivided,
                                      .n_experts = shape->experts,
                                      .n_used = shape->experts_used,
                                      .is_whole = shape->is_whole};
    enum tandem_status status = TANDEM_E_MEMORY;
    alone.n_devices = 0;
    struct tnd_fit_options together = alone;
    together.n_threads = threads_together;
    memset(io_rank->curves, 0, sizeof(io_rank->curves));
    io_rank->beside = tnd_cluster_beside_of(options->table);
    c.parts = tnd_calloc((size_t)n_weights + 1, 1);
    c.cut = tnd_calloc((size_t)n_weights + 1, sizeof(c.cut[0]));
    if (c.parts == NULL || c.cut == NULL) {
        tnd_error_set(error, status, "cluster", n_weights, 0,
                      "cluster: out of memory for %d weights", n_weights);
    } else {
        find_parts(&c);
        find_units(weights, n_weights, shape, &model);
        status = price_all(&c, &alone, &together, n_beside, io_rank, &model, error);
        status = status == TANDEM_OK
                     ? price_layers(&c, shape, &alone, n_beside, io_rank, &model, error)
                     : status;
        status = status == TANDEM_OK ? price_batches(&c, &alone, n_beside, io_rank, &model, error)
                                     : status;
    }
    if (status == TANDEM_OK) {
        *out_model = model;
    }
    tnd_free(c.parts);
    tnd_free(c.cut);
    return status;
}
