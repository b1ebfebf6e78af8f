/* SPDX-License-Identifier: MIT
 * Groups experts by use. An expert's part of its layer's time depends on how often it is read and
 * on how many tokens it gets. */
#include "tune/fit_experts.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "tune/policy.h"

/* ---- use ---- */

static bool has_use(const struct tnd_fit_options *options)
{
    return options->expert_use != NULL && options->use_experts > 1 && options->use_layers > 0;
}

bool tnd_fit_use_is_sane(const struct tnd_fit_options *options)
{
    if (!has_use(options)) {
        return true;
    }
    for (int64_t i = 0; i < options->use_experts * options->use_layers; i++) {
        if (!(options->expert_use[i] >= 0 && options->expert_use[i] <= 1)) {
            return false;
        }
    }
    return true;
}

static double share_of(const struct tnd_fit_options *options, int32_t layer, int64_t expert)
{
    return options->expert_use[layer * options->use_experts + expert];
}

static bool is_hot_now(const struct tnd_fit_options *options, int32_t layer, int64_t expert)
{
    return options->hot_now != NULL && options->hot_now[layer * options->use_experts + expert] != 0;
}

static double active_of(double share, int64_t tokens)
{
    return tokens == 1 ? share : 1.0 - pow(1.0 - share, (double)tokens);
}

double tnd_fit_active_experts(const struct tnd_fit_options *options, int32_t layer, int64_t tokens)
{
    double active = 0;
    for (int64_t e = 0; e < options->use_experts; e++) {
        active += active_of(share_of(options, layer, e), tokens);
    }
    return active;
}

/* Relative cost of an expert: reading it when it is active, and computing its tokens. */
static double weigh(const struct tnd_fit_options *options, int32_t layer, int64_t expert,
                    int64_t tokens)
{
    double share = share_of(options, layer, expert);
    return TND_WEIGHT_READ_TOKENS * active_of(share, tokens) + share * (double)tokens;
}

/* ---- ranks ---- */

/* Use of an expert for ranking; counts more if a device already keeps it (TND_FIT_HOT_STAYS). */
static double rank_value(const struct tnd_fit_options *options, int32_t layer, int64_t expert)
{
    double share = share_of(options, layer, expert);
    return is_hot_now(options, layer, expert) ? share * TND_FIT_HOT_STAYS : share;
}

/* Ranks the experts of a layer, the most used ones first; of equals the lower number. */
static void rank_layer(const struct tnd_fit_options *options, int32_t layer, int32_t *ranks)
{
    for (int32_t e = 0; e < (int32_t)options->use_experts; e++) {
        int32_t at = e;
        double value = rank_value(options, layer, e);
        while (at > 0 && rank_value(options, layer, ranks[at - 1]) < value) {
            ranks[at] = ranks[at - 1];
            at--;
        }
        ranks[at] = e;
    }
}

/* ---- groups ---- */

/* Whether all weights of the group have an entry for each expert. */
static bool can_split(const struct tnd_fit_weight *weights, int n_weights,
                      const struct tnd_fit_options *options, const struct tnd_fit_model *model,
                      int g)
{
    const struct tnd_fit_group *group = &model->groups[g];
    if (group->part != TND_FIT_EXPERTS || group->layer >= options->use_layers) {
        return false;
    }
    for (int i = 0; i < n_weights; i++) {
        if (model->group_of[i] == g && weights[i].n_experts != options->use_experts) {
            return false;
        }
    }
    return true;
}

static int slices_of(const struct tnd_fit_options *options)
{
    return options->use_experts < TND_FIT_SLICES ? (int)options->use_experts : TND_FIT_SLICES;
}

/* Splits the group of a layer into consecutive ones; returns their number. */
static int add_slices(const struct tnd_fit_options *options, const struct tnd_fit_group *whole,
                      struct tnd_fit_group *out)
{
    const int n = slices_of(options);
    const int64_t experts = options->use_experts;
    for (int i = 0; i < n; i++) {
        int64_t first = experts * i / n;
        int64_t end = experts * (i + 1) / n;
        int64_t one = whole->bytes / experts;
        out[i] = *whole;
        out[i].first_rank = (int32_t)first;
        out[i].n_ranks = (int32_t)(end - first);
        out[i].bytes = one * (end - first) + (i == n - 1 ? whole->bytes - one * experts : 0);
    }
    return n;
}

enum tandem_status tnd_fit_split_experts(const struct tnd_fit_weight *weights, int n_weights,
                                         const struct tnd_fit_options *options,
                                         struct tnd_fit_model *model, struct tandem_error *error)
{
    if (!has_use(options)) {
        return TANDEM_OK;
    }
    const size_t n_most = (size_t)model->n_groups * (size_t)slices_of(options);
    struct tnd_fit_group *groups = tnd_calloc(n_most + 1, sizeof(groups[0]));
    int32_t *now_at = tnd_calloc((size_t)model->n_groups + 1, sizeof(now_at[0]));
    model->n_ranked = options->use_experts;
    model->ranks =
        tnd_calloc((size_t)(options->use_experts * options->use_layers), sizeof(model->ranks[0]));
    bool has_memory = groups != NULL && now_at != NULL && model->ranks != NULL;
    int n = 0;
    for (int g = 0; g < model->n_groups && has_memory; g++) {
        now_at[g] = n;
        if (can_split(weights, n_weights, options, model, g)) {
            int32_t layer = model->groups[g].layer;
            rank_layer(options, layer, model->ranks + layer * options->use_experts);
            n += add_slices(options, &model->groups[g], &groups[n]);
        } else {
            groups[n++] = model->groups[g];
        }
    }
    for (int i = 0; i < n_weights && has_memory; i++) {
        model->group_of[i] = now_at[model->group_of[i]];
    }
    tnd_free(now_at);
    if (!has_memory || n > TND_FIT_MAX_ITEMS) {
        tnd_free(groups);
        return tnd_error_set(error, has_memory ? TANDEM_E_LIMIT : TANDEM_E_MEMORY, "fit", n,
                             TND_FIT_MAX_ITEMS, "fit: %d groups of weights, expected up to %d", n,
                             TND_FIT_MAX_ITEMS);
    }
    tnd_free(model->groups);
    model->groups = groups;
    model->n_groups = n;
    return TANDEM_OK;
}

/* ---- prices ---- */

static int64_t tokens_of(const struct tnd_fit_model *model, int phase)
{
    return phase == TND_FIT_PROMPT ? model->prompt_tokens : model->n_texts;
}

/* Relative cost (see `weigh`) of a group, or of those of its experts that are hot now. */
static double weigh_group(const struct tnd_fit_model *model, const struct tnd_fit_options *options,
                          const struct tnd_fit_group *group, int phase, bool only_hot)
{
    const int32_t *ranks = model->ranks + group->layer * model->n_ranked;
    double sum = 0;
    for (int32_t r = group->first_rank; r < group->first_rank + group->n_ranks; r++) {
        if (!only_hot || is_hot_now(options, group->layer, ranks[r])) {
            sum += weigh(options, group->layer, ranks[r], tokens_of(model, phase));
        }
    }
    return sum;
}

static void scale(struct tnd_fit_group *group, const struct tnd_fit_group *whole, int n_sides,
                  int phase, double share)
{
    for (int side = 0; side < n_sides; side++) {
        double us = whole->us[phase][side];
        group->us[phase][side] = isfinite(us) ? us * share : us;
        group->error_us[phase][side] = whole->error_us[phase][side] * share;
    }
    group->cpu_us[phase] = whole->cpu_us[phase] * share;
    group->cpu_error_us[phase] = whole->cpu_error_us[phase] * share;
}

void tnd_fit_share_experts(const struct tnd_fit_options *options, struct tnd_fit_model *model)
{
    for (int first = 0; first < model->n_groups; first++) {
        struct tnd_fit_group whole = model->groups[first];
        if (whole.n_ranks == 0 || whole.first_rank != 0) {
            continue;
        }
        const int n = slices_of(options);
        for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
            double all = 0;
            for (int i = 0; i < n; i++) {
                all += weigh_group(model, options, &model->groups[first + i], phase, false);
            }
            for (int i = 0; i < n; i++) {
                struct tnd_fit_group *group = &model->groups[first + i];
                double own = weigh_group(model, options, group, phase, false);
                scale(group, &whole, model->n_sides, phase, all > 0 ? own / all : 1.0 / n);
            }
        }
    }
}

/* ---- hot experts ---- */

/* First group of a layer's experts if they are split; -1: they are not. */
static int find_layer(const struct tnd_fit_model *model, int32_t layer)
{
    for (int g = 0; g < model->n_groups; g++) {
        if (model->groups[g].n_ranks > 0 && model->groups[g].layer == layer) {
            return g;
        }
    }
    return -1;
}

static bool is_slice_of(const struct tnd_fit_model *model, int g, int32_t layer)
{
    return g < model->n_groups && model->groups[g].n_ranks > 0 && model->groups[g].layer == layer;
}

int64_t tnd_fit_hot_experts(const struct tnd_fit_model *model, const uint8_t *sides, int32_t layer,
                            int32_t *out_experts, int *out_side)
{
    int64_t n = 0;
    int side = 0;
    for (int g = find_layer(model, layer); g >= 0 && is_slice_of(model, g, layer); g++) {
        const struct tnd_fit_group *group = &model->groups[g];
        side = side == 0 ? sides[g] : side;
        if (side > 0 && sides[g] == side) {
            memcpy(out_experts + n, model->ranks + layer * model->n_ranked + group->first_rank,
                   (size_t)group->n_ranks * sizeof(out_experts[0]));
            n += group->n_ranks;
        }
    }
    *out_side = side;
    return n < model->n_ranked ? n : 0;
}

/* Prices hot and cold experts of a group on their sides. The last group of a layer stands for all
 * cold experts, so that a layer with both moves its activations only once in each direction. */
static void blend(const struct tnd_fit_model *model, const struct tnd_fit_options *options,
                  int first, int phase, struct tnd_fit_group *groups, uint8_t *sides)
{
    const int32_t layer = model->groups[first].layer;
    const int side = sides[first];
    double cold_us = 0;
    int last = first;
    for (int g = first; is_slice_of(model, g, layer); g++) {
        const struct tnd_fit_group *group = &model->groups[g];
        double all = weigh_group(model, options, group, phase, false);
        double hot = weigh_group(model, options, group, phase, true);
        double share = all > 0 ? hot / all : 0;
        sides[g] = (uint8_t)side;
        groups[g].us[phase][side] = share > 0 ? group->us[phase][side] * share : 0;
        cold_us += group->us[phase][0] * (1 - share);
        last = g;
    }
    if (cold_us > 0) {
        groups[last].us[phase][0] = groups[last].us[phase][side] + cold_us;
        sides[last] = 0;
    }
}

double tnd_fit_now_us(const struct tnd_fit_model *model, const struct tnd_fit_options *options,
                      uint8_t *sides, enum tnd_fit_phase phase)
{
    struct tnd_fit_model blended = *model;
    double error_us;
    blended.groups = tnd_alloc((size_t)model->n_groups * sizeof(model->groups[0]) + 1);
    if (blended.groups == NULL) {
        return INFINITY; /* the present placement counts as slow, so that it is replaced */
    }
    memcpy(blended.groups, model->groups, (size_t)model->n_groups * sizeof(model->groups[0]));
    for (int g = 0; g < model->n_groups; g++) {
        if (model->groups[g].n_ranks > 0 && model->groups[g].first_rank == 0 && sides[g] > 0) {
            blend(model, options, g, phase, blended.groups, sides);
        }
    }
    double us = tnd_fit_model_us(&blended, sides, phase, &error_us);
    tnd_free(blended.groups);
    return us;
}
