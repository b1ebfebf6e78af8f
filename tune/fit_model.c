/* SPDX-License-Identifier: MIT
 * Builds priced groups from names and shapes of weights: first the groups, then products that have
 * times, then weights priced by bytes, then keys, values and moves. */
#include "tune/fit_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_status.h"
#include "tune/fit_experts.h"
#include "tune/fit_price.h"
#include "tune/moves.h"
#include "tune/policy.h"

/* ---- names ---- */

static bool begins(const char *text, const char *part)
{
    return strncmp(text, part, strlen(part)) == 0;
}

enum tnd_fit_part tnd_fit_part_of(const char *name, int32_t *out_layer)
{
    int layer = -1;
    int length = 0;
    *out_layer = -1;
    if (name == NULL) {
        return TND_FIT_OTHER;
    }
    if (begins(name, "token_embd.")) {
        return TND_FIT_EMBEDDING;
    }
    if (begins(name, "output.") || begins(name, "output_norm.")) {
        return TND_FIT_OUTPUT;
    }
    if (sscanf(name, "blk.%6d.%n", &layer, &length) != 1 || length == 0 || layer < 0) {
        return TND_FIT_OTHER;
    }
    const char *rest = name + length;
    *out_layer = layer;
    if (begins(rest, "attn_")) {
        return TND_FIT_ATTENTION;
    }
    return strstr(rest, "_exps.") != NULL ? TND_FIT_EXPERTS : TND_FIT_FFN;
}

const char *tnd_fit_part_name(enum tnd_fit_part part)
{
    static const char *const names[] = {"embedding", "attention", "feed-forward",
                                        "experts",   "output",    "other"};
    return (unsigned)part < TND_FIT_PARTS ? names[part] : "?";
}

/* ---- groups ---- */

struct place {
    int32_t weight;
    int32_t layer;
    enum tnd_fit_part part;
};

/* Orders weights as they are computed; those with unknown names come first, each in its own group.
 */
static int compare_places(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    if (x->layer != y->layer) {
        return x->layer < y->layer ? -1 : 1;
    }
    if (x->part != y->part) {
        return x->part < y->part ? -1 : 1;
    }
    return x->weight < y->weight ? -1 : x->weight > y->weight;
}

static int32_t place_weights(const struct tnd_fit_weight *weights, int n, struct place *places)
{
    int32_t n_layers = 0;
    bool has_output = false;
    for (int i = 0; i < n; i++) {
        places[i].weight = i;
        places[i].part = tnd_fit_part_of(weights[i].name, &places[i].layer);
        n_layers = places[i].layer >= n_layers ? places[i].layer + 1 : n_layers;
        has_output = has_output || (places[i].part == TND_FIT_OUTPUT && weights[i].n > 1);
    }
    for (int i = 0; i < n; i++) {
        bool is_both = places[i].part == TND_FIT_EMBEDDING && !has_output;
        places[i].part = is_both ? TND_FIT_OUTPUT : places[i].part;
        places[i].layer = places[i].part == TND_FIT_OUTPUT ? n_layers : places[i].layer;
    }
    qsort(places, (size_t)n, sizeof(places[0]), compare_places);
    return n_layers;
}

/* Query values of a layer whose matrix also computes keys and values: as many as attention's output
 * reads. */
static int64_t queries_of(const struct tnd_fit_weight *weights, int n, const char *qkv)
{
    const size_t stem = (size_t)(strstr(qkv, ".attn_qkv") - qkv);
    for (int i = 0; i < n; i++) {
        const char *name = weights[i].name != NULL ? weights[i].name : "";
        if (strncmp(name, qkv, stem) == 0 && strcmp(name + stem, ".attn_output.weight") == 0) {
            return weights[i].k;
        }
    }
    return 0;
}

/* Values per token that a layer caches of a weight's results: keys and values. In latent attention
 * one matrix computes both (llama/forward_attention.c). */
static int64_t cached_values(const struct tnd_fit_weight *weights, int n,
                             const struct tnd_fit_weight *weight)
{
    const char *name = weight->name != NULL ? weight->name : "";
    if (weight->n <= 1 || !begins(name, "blk.")) {
        return 0;
    }
    if (strstr(name, ".attn_k.weight") != NULL || strstr(name, ".attn_v.weight") != NULL) {
        return weight->n;
    }
    if (strstr(name, ".attn_kv_a_mqa.weight") != NULL) {
        return 2 * weight->n;
    }
    if (strstr(name, ".attn_qkv.weight") != NULL) {
        const int64_t queries = queries_of(weights, n, name);
        return queries < weight->n ? weight->n - queries : 0;
    }
    return 0;
}

static enum tandem_status make_groups(const struct tnd_fit_weight *weights, int n,
                                      const struct place *places, struct tnd_fit_model *model,
                                      struct tandem_error *error)
{
    int64_t all = 0;
    struct tnd_fit_group *group = NULL;
    for (int i = 0; i < n; i++) {
        const struct tnd_fit_weight *weight = &weights[places[i].weight];
        bool is_new = group == NULL || places[i].part == TND_FIT_OTHER ||
                      group->part != places[i].part || group->layer != places[i].layer;
        if (is_new && model->n_groups == TND_FIT_MAX_ITEMS) {
            return tnd_error_set(error, TANDEM_E_LIMIT, "fit", n, TND_FIT_MAX_ITEMS,
                                 "fit: more than %d groups of weights", TND_FIT_MAX_ITEMS);
        }
        if (is_new) {
            group = &model->groups[model->n_groups++];
            *group = (struct tnd_fit_group){.part = places[i].part, .layer = places[i].layer};
        }
        if (weight->bytes < 0 || !tnd_add_i64(all, weight->bytes, &all) || weight->n < 1 ||
            weight->k < 1 || weight->n_experts < 1) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, "fit", weight->bytes, 0,
                                 "fit: weight '%.64s' has a size that cannot be",
                                 weight->name != NULL ? weight->name : "");
        }
        /* values per token, until size_caches */
        group->cache_bytes += cached_values(weights, n, weight);
        group->n_weights++;
        group->bytes += weight->bytes;
        model->group_of[places[i].weight] = model->n_groups - 1;
    }
    return TANDEM_OK;
}

/* ---- memory beside the weights ---- */

/* Turns cached values per token into bytes of the whole cache. */
static enum tandem_status size_caches(const struct tnd_fit_options *options,
                                      struct tnd_fit_model *model, struct tandem_error *error)
{
    for (int g = 0; g < model->n_groups; g++) {
        struct tnd_fit_group *group = &model->groups[g];
        size_t row = tandem_type_row_bytes(options->cache_type, group->cache_bytes);
        if (!tnd_mul_i64((int64_t)row, options->context, &group->cache_bytes)) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, "fit", options->context, 0,
                                 "fit: keys and values of %lld tokens are too large",
                                 (long long)options->context);
        }
    }
    return TANDEM_OK;
}

/* Subtracts fixed memory from the devices: the reserve; results of a pass, a few rows as wide as a
 * layer's widest matrix; and its largest matrix in F32, which some profiles create. */
static void take_off_fixed(const struct tnd_fit_weight *weights, int n,
                           const struct tnd_fit_options *options, struct tnd_fit_model *model)
{
    double widest = 0;
    double largest = 0;
    for (int i = 0; i < n; i++) {
        int32_t layer;
        (void)tnd_fit_part_of(weights[i].name, &layer);
        bool is_inside = layer >= 0 && weights[i].n > 1;
        widest = is_inside ? fmax(widest, (double)weights[i].n) : widest;
        largest = is_inside ? fmax(largest, (double)weights[i].n * (double)weights[i].k) : largest;
    }
    double bytes =
        (double)TND_FIT_RESERVE_BYTES + 4 * (4 * widest * (double)model->prompt_tokens + largest);
    model->fixed_bytes = bytes < 1e18 ? (int64_t)bytes : INT64_C(1000000000000000000);
    for (int side = 1; side < model->n_sides; side++) {
        int64_t left = options->memory[side] > 0 ? options->memory[side] : 0;
        left = left > model->fixed_bytes ? left - model->fixed_bytes : 0;
        bool is_limited = options->budget[side] > 0 && options->budget[side] < left;
        model->capacity[side] = is_limited ? options->budget[side] : left;
    }
}

static int64_t width_of(const struct tnd_fit_weight *weights, int n)
{
    for (int i = 0; i < n; i++) {
        int32_t layer;
        if (weights[i].n > 1 && tnd_fit_part_of(weights[i].name, &layer) == TND_FIT_EMBEDDING) {
            return weights[i].k;
        }
    }
    int i = 0;
    while (i < n && weights[i].n == 1) {
        i++;
    }
    return i < n ? weights[i].k : 0;
}

/* Cost of waking the CPU's threads, which sleep while a device computes a product that takes longer
 * than waking them, as in the planner; else they spin. */
static double wake_us(const struct tnd_fit_options *options, const struct tnd_fit_model *model,
                      int phase, int from)
{
    double us = tnd_estimate_wake(options->table, options->n_threads);
    return model->largest_us[phase][from] >= us ? us : 0;
}

/* Prices moves of one row of activations per token; between two devices they go through host
 * memory. */
static void price_moves(const struct tnd_fit_weight *weights, int n,
                        const struct tnd_fit_options *options, struct tnd_fit_model *model)
{
    int64_t row = 4 * width_of(weights, n);
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        int64_t bytes = 0;
        if (!tnd_mul_i64(row, phase == TND_FIT_PROMPT ? model->prompt_tokens : model->n_texts,
                         &bytes)) {
            bytes = INT64_MAX;
        }
        for (int from = 0; from < model->n_sides; from++) {
            for (int to = 0; to < model->n_sides; to++) {
                double us = 0;
                if (from != to && from > 0) {
                    us += tnd_estimate_transfer(options->table, options->devices[from],
                                                TND_DOWNLOAD, bytes)
                              .us;
                    us += to == 0 ? wake_us(options, model, phase, from) : 0;
                }
                if (from != to && to > 0) {
                    us += tnd_estimate_transfer(options->table, options->devices[to], TND_UPLOAD,
                                                bytes)
                              .us;
                }
                model->move_us[phase][from][to] = us;
            }
        }
    }
}

/* ---- the model ---- */

static enum tandem_status fill(const struct tnd_fit_weight *weights, int n_weights,
                               const struct tnd_fit_options *options, struct tnd_fit_model *model,
                               struct tandem_error *error)
{
    struct place *places = tnd_alloc((size_t)n_weights * sizeof(places[0]) + 1);
    int n_most = n_weights < TND_FIT_MAX_ITEMS ? n_weights : TND_FIT_MAX_ITEMS;
    model->groups = tnd_calloc((size_t)n_most + 1, sizeof(model->groups[0]));
    model->group_of = tnd_calloc((size_t)n_weights + 1, sizeof(model->group_of[0]));
    enum tandem_status status = TANDEM_OK;
    if (places == NULL || model->groups == NULL || model->group_of == NULL) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, "fit", n_weights, 0,
                               "fit: out of memory for %d weights", n_weights);
    }
    if (status == TANDEM_OK) {
        model->n_layers = place_weights(weights, n_weights, places);
        status = make_groups(weights, n_weights, places, model, error);
    }
    tnd_free(places);
    TND_TRY(status);
    TND_TRY(tnd_fit_split_experts(weights, n_weights, options, model, error));
    TND_TRY(size_caches(options, model, error));
    take_off_fixed(weights, n_weights, options, model);
    TND_TRY(tnd_fit_price(weights, n_weights, options, model, error));
    tnd_fit_share_experts(options, model);
    price_moves(weights, n_weights, options, model);
    return TANDEM_OK;
}

enum tandem_status tnd_fit_model_new(const struct tnd_fit_weight *weights, int n_weights,
                                     const struct tnd_fit_options *options,
                                     struct tnd_fit_model *out, struct tandem_error *error)
{
    bool is_sane = n_weights >= 0 && options->n_devices >= 0 &&
                   options->n_devices < TND_FIT_SIDES && options->context >= 0 &&
                   options->prompt_tokens >= 0 && options->prompt_tokens <= INT32_MAX &&
                   options->n_texts >= 0 && options->n_texts <= INT32_MAX && options->n_used >= 0 &&
                   options->n_threads >= 1 && tnd_fit_use_is_sane(options);
    if (!is_sane) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "fit", n_weights, 0,
                             "fit: %d weights, %d devices, %lld tokens of context, %lld of a "
                             "prompt, %lld experts; expected 0 or more, at most %d devices, and "
                             "experts that 0 to 1 of the tokens use",
                             n_weights, options->n_devices, (long long)options->context,
                             (long long)options->prompt_tokens, (long long)options->n_used,
                             TND_FIT_SIDES - 1);
    }
    if (options->table == NULL) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, "fit", 0, 0,
                             "fit: no timing table; mulmat-tune bench makes one");
    }
    struct tnd_fit_model model = {.n_sides = options->n_devices + 1,
                                  .prompt_tokens = options->prompt_tokens > 0
                                                       ? options->prompt_tokens
                                                       : TND_FIT_PROMPT_TOKENS,
                                  .n_texts = options->n_texts > 0 ? options->n_texts : 1,
                                  .returns_to_host = options->returns_to_host};
    enum tandem_status status = fill(weights, n_weights, options, &model, error);
    if (status != TANDEM_OK) {
        tnd_fit_model_fini(&model);
        return status;
    }
    *out = model;
    return TANDEM_OK;
}

void tnd_fit_model_fini(struct tnd_fit_model *model)
{
    tnd_free(model->groups);
    tnd_free(model->group_of);
    tnd_free(model->ranks);
    memset(model, 0, sizeof(*model));
}

void tnd_fit_model_problem(const struct tnd_fit_model *model, const double count[TND_FIT_PHASES],
                           struct tnd_fit_item *items, struct tnd_fit_problem *out)
{
    struct tnd_fit_problem problem = {
        .n_sides = model->n_sides, .n_items = model->n_groups, .items = items};
    memcpy(problem.capacity, model->capacity, sizeof(problem.capacity));
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        for (int from = 0; from < model->n_sides; from++) {
            for (int to = 0; to < model->n_sides && !model->returns_to_host; to++) {
                problem.move_us[from][to] += count[phase] * model->move_us[phase][from][to];
            }
        }
    }
    for (int i = 0; i < model->n_groups; i++) {
        const struct tnd_fit_group *group = &model->groups[i];
        memset(&items[i], 0, sizeof(items[i]));
        items[i].bytes = group->bytes + group->cache_bytes;
        for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
            for (int side = 0; side < model->n_sides; side++) {
                bool is_counted = count[phase] > 0; /* 0 times infinity is NaN */
                const double us = group->us[phase][side] +
                                  (model->returns_to_host
                                       ? tnd_fit_moved_us(model, (enum tnd_fit_phase)phase, 0, side)
                                       : 0);
                items[i].us[side] += is_counted ? count[phase] * us : 0;
            }
        }
    }
    *out = problem;
}

double tnd_fit_moved_us(const struct tnd_fit_model *model, enum tnd_fit_phase phase, int before,
                        int side)
{
    return model->returns_to_host ? model->move_us[phase][0][side] + model->move_us[phase][side][0]
                                  : model->move_us[phase][before][side];
}

double tnd_fit_model_us(const struct tnd_fit_model *model, const uint8_t *sides,
                        enum tnd_fit_phase phase, double *out_error_us)
{
    double us = 0;
    double error_us = 0;
    int before = 0;
    for (int i = 0; i < model->n_groups; i++) {
        us +=
            model->groups[i].us[phase][sides[i]] + tnd_fit_moved_us(model, phase, before, sides[i]);
        error_us += model->groups[i].error_us[phase][sides[i]];
        before = sides[i];
    }
    *out_error_us = error_us;
    return us + (model->returns_to_host ? 0 : model->move_us[phase][before][0]);
}

double tnd_fit_model_cpu_us(const struct tnd_fit_model *model, enum tnd_fit_phase phase,
                            double *out_error_us)
{
    double us = 0;
    double error_us = 0;
    for (int i = 0; i < model->n_groups; i++) {
        us += model->groups[i].cpu_us[phase];
        error_us += model->groups[i].cpu_error_us[phase];
    }
    *out_error_us = error_us;
    return us;
}
