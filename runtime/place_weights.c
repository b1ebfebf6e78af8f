/* SPDX-License-Identifier: MIT
 * Decides which weights devices keep: asks the devices for their memory, lets tune/ decide, and
 * passes the result to the planner. */
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/tnd_status.h"
#include "runtime/runtime_internal.h"
#include "tune/fit_model.h"
#include "tune/place.h"
#include "tune/placement.h"
#include "tune/policy.h"

enum { MOST_WEIGHTS = 1 << 20, MOST_LISTED = 16, MOST_EXPERTS = 1 << 14 };

/* State of one call. */
struct placing {
    const struct tandem_place_weight *given;
    int n;
    struct tandem_place_options options;
    struct tnd_runtime_parts parts;
    uint8_t slots[TND_MAX_SLOTS]; /* slots of devices; index 0: side 1 */
    struct tnd_fit_options fit;
    struct tnd_fit_model model;
    tandem_table *table;
    struct tnd_fit_weight *weights;
    struct tnd_fit_item *items;
    struct tnd_placed *placed;
    int n_placed;
    uint8_t *sides;
    uint8_t *sides_now; /* placement before the call */
    uint8_t *hot_now;   /* {use_experts, use_layers}: slots; those of whole layers too */
    float *shares;      /* of experts, for `placed` */
    int32_t *experts;   /* {use_experts}, hot ones of a layer */
    int32_t hot_layer;  /* layer whose experts were counted last */
    struct tandem_place_info before;
    float *all_shares;
};

/* ---- inputs ---- */

static enum tandem_status read_weights(struct placing *p, struct tandem_error *error)
{
    for (int i = 0; i < p->n; i++) {
        const struct tandem_place_weight *weight = &p->given[i];
        bool is_sane = weight->data != NULL && tandem_type_is_valid(weight->type) &&
                       weight->bytes <= INT64_MAX;
        if (!is_sane) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, "place", i, p->n,
                                 "place: weight %d has no data, or no type that exists", i);
        }
        p->weights[i] =
            (struct tnd_fit_weight){weight->name, weight->type,      weight->k,
                                    weight->n,    weight->n_experts, (int64_t)weight->bytes};
    }
    return TANDEM_OK;
}

/* Memory of the device that the backend in a slot has opened, by its name; 0: unknown. */
static int64_t ask_memory(const struct tnd_runtime_parts *parts, int slot)
{
    tandem_backend *backend = tnd_registry_backend(parts->registry, slot);
    struct tandem_device_info devices[MOST_LISTED];
    struct tandem_backend_fact fact;
    struct tandem_error error;
    int i = 0;
    memset(devices, 0, sizeof(devices));
    devices[0].size = sizeof(devices[0]);
    while (tnd_backend_identity(backend, i, &fact) && strcmp(fact.key, "device") != 0) {
        i++;
    }
    if (!tnd_backend_identity(backend, i, &fact) || backend->api->devices == NULL) {
        return 0;
    }
    int n = backend->api->devices(devices, MOST_LISTED, &error);
    for (int d = 0; d < n && d < MOST_LISTED; d++) {
        if (strcmp(devices[d].name, fact.value) == 0) {
            return (int64_t)devices[d].memory_bytes;
        }
    }
    return 0;
}

void tnd_runtime_fit_devices(const struct tnd_runtime_parts *parts,
                             struct tnd_fit_options *io_options, uint8_t out_slots[TND_MAX_SLOTS])
{
    const struct tnd_registry *registry = parts->registry;
    const int n = tnd_place_devices(registry, out_slots);
    io_options->n_devices = n < TND_FIT_SIDES ? n : TND_FIT_SIDES - 1;
    for (int side = 1; side <= io_options->n_devices; side++) {
        const int slot = out_slots[side - 1];
        const uint64_t budget = tnd_backend_weight_budget(tnd_registry_backend(registry, slot));
        int64_t bytes = io_options->memory[side];
        io_options->budget[side] = budget < INT64_MAX ? (int64_t)budget : INT64_MAX;
        bytes = bytes > 0 ? bytes : ask_memory(parts, slot);
        io_options->memory[side] = bytes > 0 || budget == 0 ? bytes : INT64_MAX;
        io_options->devices[side] = tnd_registry_name(registry, slot);
    }
}

static enum tandem_status find_devices(struct placing *p, struct tandem_error *error)
{
    for (int side = 1; side < TND_FIT_SIDES && side <= p->options.n_device_memory; side++) {
        p->fit.memory[side] = p->options.device_memory[side - 1];
    }
    tnd_runtime_fit_devices(&p->parts, &p->fit, p->slots);
    for (int side = 1; side <= p->fit.n_devices; side++) {
        const int64_t bytes = p->fit.memory[side];
        if (bytes <= 0 && p->options.only_if_needed) {
            p->fit.n_devices = 0; /* unknown whether it is */
            return TANDEM_OK;
        }
        if (bytes <= 0) {
            return tnd_error_set(error, TANDEM_E_ARGUMENT, p->fit.devices[side], side, 0,
                                 "place: the memory of %s is not known; device_memory says it",
                                 p->fit.devices[side]);
        }
    }
    return TANDEM_OK;
}

/* ---- deciding ---- */

static bool is_needed(const struct placing *p)
{
    int64_t all = 0;
    for (int g = 0; g < p->model.n_groups; g++) {
        all += p->model.groups[g].bytes + p->model.groups[g].cache_bytes;
    }
    return p->model.n_sides > 1 && !(p->options.only_if_needed && all <= p->model.capacity[1]);
}

static int slot_of(const struct placing *p, int side)
{
    return side > 0 ? p->slots[side - 1] : TANDEM_BACKEND_CPU;
}

/* ---- experts apart ---- */

/* Layer of an expert weight with known use; -1: another weight. */
static int32_t used_layer(const struct placing *p, int i)
{
    const struct tandem_place_options *o = &p->options;
    int32_t layer = -1;
    bool is_used = o->expert_use != NULL && p->weights[i].n_experts == o->use_experts &&
                   tnd_fit_part_of(p->weights[i].name, &layer) == TND_FIT_EXPERTS;
    return is_used && layer < o->use_layers ? layer : -1;
}

/* Reads the previous placement. */
static void read_now(struct placing *p)
{
    const int64_t experts = p->options.use_experts;
    for (int i = 0; i < p->n; i++) {
        int slot = tnd_planner_placed_slot(p->parts.planner, p->given[i].data);
        int32_t layer = used_layer(p, i);
        uint8_t *hot = layer >= 0 ? p->hot_now + layer * experts : NULL;
        for (int64_t e = 0; hot != NULL && e < experts && slot > TANDEM_BACKEND_CPU; e++) {
            hot[e] = (uint8_t)slot;
        }
        for (int64_t e = 0; hot != NULL && e < experts; e++) {
            slot = hot[e] > TANDEM_BACKEND_CPU ? hot[e] : slot;
        }
        int side = p->fit.n_devices;
        while (side > 0 && p->slots[side - 1] != slot) {
            side--;
        }
        for (int g = p->model.group_of[i];
             g == p->model.group_of[i] ||
             (g < p->model.n_groups && p->model.groups[g].first_rank > 0);
             g++) {
            p->sides_now[g] = (uint8_t)side;
        }
    }
}

/* Bytes of a weight to be uploaded to its device; counts the experts of a layer with its first
 * weight. */
static double new_bytes(const struct placing *p, int i, int *out_side, int *io_experts)
{
    const int32_t layer = used_layer(p, i);
    const int64_t experts = p->options.use_experts;
    int side = p->sides[p->model.group_of[i]];
    int64_t n_hot = p->model.ranks != NULL && layer >= 0
                        ? tnd_fit_hot_experts(&p->model, p->sides, layer, p->experts, &side)
                        : 0;
    const uint8_t *now = layer >= 0 ? p->hot_now + layer * experts : NULL;
    int64_t n_new = 0;
    int64_t n_before = 0;
    *out_side = side;
    for (int64_t e = 0; now != NULL && e < experts; e++) {
        n_before += now[e] == slot_of(p, side);
    }
    for (int64_t h = 0; h < (n_hot > 0 ? n_hot : experts) && now != NULL && side > 0; h++) {
        n_new += now[n_hot > 0 ? p->experts[h] : h] != slot_of(p, side);
    }
    *io_experts += (int)n_new;
    if (n_hot > 0) {
        bool is_same = n_new == 0 && n_before == n_hot;
        return is_same ? 0 : (double)p->weights[i].bytes / (double)experts * (double)n_hot;
    }
    bool is_there = tnd_planner_placed_slot(p->parts.planner, p->given[i].data) == slot_of(p, side);
    return side > 0 && !is_there ? (double)p->weights[i].bytes : 0;
}

/* Whether the previous placement stays: a change would not save twice the time of its uploads. */
static bool stays(struct placing *p, struct tandem_place_info *io_info)
{
    double moved_us = 0;
    double moved = 0;
    const struct tnd_fit_options *fit = &p->fit;
    enum tnd_fit_phase phase =
        p->options.objective == TANDEM_PLACE_PROMPT ? TND_FIT_PROMPT : TND_FIT_GENERATION;
    int32_t last = -1; /* layer whose experts were counted */
    for (int i = 0; i < p->n; i++) {
        int side = 0;
        int n_new = 0;
        double bytes = new_bytes(p, i, &side, &n_new);
        int32_t layer = used_layer(p, i);
        io_info->n_moved += layer >= 0 && layer != last ? n_new : 0;
        last = layer >= 0 ? layer : last;
        moved += bytes;
        moved_us += bytes > 0 ? tnd_estimate_transfer(fit->table, fit->devices[side], TND_UPLOAD,
                                                      (int64_t)bytes)
                                    .us
                              : 0;
    }
    if (!(p->options.keep_tokens > 0) || p->before.n_weights == 0 || moved == 0) {
        return false;
    }
    double now_us = tnd_fit_now_us(&p->model, fit, p->sides_now, phase);
    double then_us = phase == TND_FIT_PROMPT ? io_info->prompt_us : io_info->generation_us;
    double tokens = phase == TND_FIT_PROMPT ? (double)p->model.prompt_tokens : 1;
    return !((now_us - then_us) / tokens * p->options.keep_tokens >= 2 * moved_us);
}

/* Adds shares of experts of a layer: the hot ones in their order, or all, with 0 for the hot ones.
 */
static const float *add_shares(struct placing *p, int32_t layer, int64_t n_hot, bool only_hot)
{
    const int64_t experts = p->options.use_experts;
    const double *use = p->options.expert_use + layer * experts;
    float *out = p->shares;
    for (int64_t e = 0; e < (only_hot ? n_hot : experts); e++) {
        out[e] = (float)use[only_hot ? p->experts[e] : e];
    }
    for (int64_t h = 0; h < n_hot && !only_hot; h++) {
        out[p->experts[h]] = 0;
    }
    p->shares += only_hot ? n_hot : experts;
    return out;
}

static void list_weight(struct placing *p, int i, struct tandem_place_info *io_info)
{
    const struct tandem_place_options *o = &p->options;
    const int32_t layer = used_layer(p, i);
    int side = p->sides[p->model.group_of[i]];
    const void *hot = NULL;
    int64_t n_hot = 0;
    if (layer >= 0 && p->model.ranks != NULL) {
        n_hot = tnd_fit_hot_experts(&p->model, p->sides, layer, p->experts, &side);
    }
    if (n_hot > 0) {
        hot = o->gather(o->gather_user, i, p->experts, n_hot, slot_of(p, side));
        n_hot = hot != NULL ? n_hot : 0;
    }
    if (hot != NULL) {
        p->placed[p->n_placed++] = (struct tnd_placed){.data = hot,
                                                       .slot = slot_of(p, side),
                                                       .shares = add_shares(p, layer, n_hot, true),
                                                       .n_shares = n_hot};
        io_info->placed_bytes += p->weights[i].bytes / o->use_experts * n_hot;
        side = 0;
        io_info->n_hot += layer != p->hot_layer ? (int)n_hot : 0;
        p->hot_layer = layer;
    }
    struct tnd_placed whole = {.data = p->given[i].data, .slot = slot_of(p, side)};
    if (layer >= 0) {
        whole.shares = add_shares(p, layer, n_hot, false);
        whole.n_shares = o->use_experts;
    }
    p->placed[p->n_placed++] = whole;
    io_info->n_placed += side > 0;
    io_info->placed_bytes += side > 0 ? p->weights[i].bytes : 0;
}

/* ---- the decision ---- */

static enum tandem_status choose(struct placing *p, struct tandem_place_info *out_info,
                                 struct tnd_placement **out_placement, struct tandem_error *error)
{
    enum tandem_place_objective objective = p->options.objective;
    const double count[TND_FIT_PHASES] = {objective == TANDEM_PLACE_GENERATION ? 0 : 1,
                                          objective == TANDEM_PLACE_PROMPT  ? 0
                                          : objective == TANDEM_PLACE_MIXED ? TND_FIT_ANSWER_TOKENS
                                                                            : 1};
    struct tnd_fit_problem problem;
    tnd_fit_model_problem(&p->model, count, p->items, &problem);
    TND_TRY(tnd_fit_choose(&problem, p->sides, error));
    struct tandem_place_info info = TANDEM_PLACE_INFO_INIT;
    info.n_weights = p->n;
    info.prompt_us = tnd_fit_model_us(&p->model, p->sides, TND_FIT_PROMPT, &info.prompt_error_us);
    info.generation_us =
        tnd_fit_model_us(&p->model, p->sides, TND_FIT_GENERATION, &info.generation_error_us);
    read_now(p);
    info.is_kept = stays(p, &info);
    for (int i = 0; i < p->n && !info.is_kept; i++) {
        list_weight(p, i, &info);
    }
    if (!info.is_kept) {
        TND_TRY(tnd_placement_new(p->placed, p->n_placed, out_placement, error));
    }
    *out_info = info;
    return TANDEM_OK;
}

static enum tandem_status out_of_memory(const struct placing *p, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, "place", p->n, 0,
                         "place: out of memory for %d weights", p->n);
}

/* Allocates for at most two lists of shares per layer: hot experts and the others. */
static enum tandem_status reserve_shares(struct placing *p, struct tandem_error *error)
{
    size_t n = 0;
    for (int i = 0; i < p->n; i++) {
        n += used_layer(p, i) >= 0 ? 2 * (size_t)p->options.use_experts : 0;
    }
    p->all_shares = tnd_alloc(n * sizeof(p->all_shares[0]) + 1);
    p->shares = p->all_shares;
    return p->all_shares != NULL ? TANDEM_OK : out_of_memory(p, error);
}

/* `*out_placement` stays NULL if nothing is placed. */
static enum tandem_status decide(tandem_runtime *runtime, struct placing *p,
                                 struct tandem_place_info *out_info,
                                 struct tnd_placement **out_placement, struct tandem_error *error)
{
    size_t n = (size_t)p->n;
    size_t n_experts = (size_t)(p->options.use_experts * p->options.use_layers);
    size_t n_groups = TND_FIT_MAX_ITEMS;
    p->weights = tnd_alloc(n * sizeof(p->weights[0]));
    p->placed = tnd_alloc(2 * n * sizeof(p->placed[0]));
    p->sides = tnd_calloc(n_groups, 1);
    p->sides_now = tnd_calloc(n_groups, 1);
    p->items = tnd_alloc(n_groups * sizeof(p->items[0]));
    p->hot_now = tnd_calloc(n_experts + 1, 1);
    p->experts = tnd_calloc((size_t)p->options.use_experts + 1, sizeof(p->experts[0]));
    if (p->weights == NULL || p->placed == NULL || p->sides == NULL || p->sides_now == NULL ||
        p->items == NULL || p->hot_now == NULL || p->experts == NULL) {
        return out_of_memory(p, error);
    }
    if (p->options.hot_now != NULL) {
        memcpy(p->hot_now, p->options.hot_now, n_experts);
    }
    TND_TRY(read_weights(p, error));
    TND_TRY(reserve_shares(p, error));
    TND_TRY(find_devices(p, error));
    if (p->fit.n_devices == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_runtime_copy_table(runtime, &p->table, error));
    p->fit.table = p->table;
    p->fit.registry = p->parts.registry;
    p->fit.error_bound = p->parts.error_bound;
    p->fit.n_threads = tnd_planner_limit(p->parts.planner, tandem_runtime_threads(runtime));
    p->fit.n_used = p->options.n_used;
    p->fit.returns_to_host = p->options.returns_to_host;
    p->fit.prompt_tokens = p->options.prompt_tokens;
    p->fit.context = p->options.context;
    p->fit.cache_type = p->options.cache_type;
    p->fit.expert_use = p->options.gather != NULL ? p->options.expert_use : NULL;
    p->fit.use_experts = p->options.use_experts;
    p->fit.use_layers = p->options.use_layers;
    p->fit.hot_now = p->hot_now;
    TND_TRY(tnd_fit_model_new(p->weights, p->n, &p->fit, &p->model, error));
    return is_needed(p) ? choose(p, out_info, out_placement, error) : TANDEM_OK;
}

static void end(struct placing *p)
{
    tnd_fit_model_fini(&p->model);
    tandem_table_free(p->table);
    tnd_free(p->weights);
    tnd_free(p->placed);
    tnd_free(p->sides);
    tnd_free(p->sides_now);
    tnd_free(p->items);
    tnd_free(p->hot_now);
    tnd_free(p->experts);
    tnd_free(p->all_shares);
}

/* ---- public calls ---- */

static enum tandem_status check(const struct placing *p, struct tandem_error *error)
{
    const struct tandem_place_options *o = &p->options;
    bool is_sane = p->n >= 0 && p->n <= MOST_WEIGHTS && (p->n == 0 || p->given != NULL) &&
                   (unsigned)o->objective <= TANDEM_PLACE_GENERATION &&
                   tandem_type_is_valid(o->cache_type) && o->n_device_memory >= 0 &&
                   (o->n_device_memory == 0 || o->device_memory != NULL) && o->use_experts >= 0 &&
                   o->use_experts <= MOST_EXPERTS && o->use_layers >= 0 &&
                   o->use_layers <= MOST_EXPERTS && o->keep_tokens >= 0;
    return is_sane ? TANDEM_OK
                   : tnd_error_set(error, TANDEM_E_ARGUMENT, "place", p->n, MOST_WEIGHTS,
                                   "place: %d weights, objective %d, memory of %d devices, use of "
                                   "%lld experts in %lld layers; expected up to %d weights, an "
                                   "objective from 0 to 2, a type of keys and values, up to %d "
                                   "experts and layers, and what is pointed to",
                                   p->n, (int)o->objective, o->n_device_memory,
                                   (long long)o->use_experts, (long long)o->use_layers,
                                   MOST_WEIGHTS, MOST_EXPERTS);
}

/* Logs which experts have moved. */
static void tell(tandem_runtime *runtime, const struct tandem_place_info *before,
                 const struct tandem_place_info *now)
{
    if (before->n_weights > 0 && (now->n_hot > 0 || before->n_hot > 0) &&
        (now->n_moved > 0 || now->n_hot != before->n_hot)) {
        tnd_log_line(&runtime->log, TANDEM_LOG_INFO, "place",
                     "%d experts moved to devices, which keep %d apart from others of their layer "
                     "now (%d before); predicted %.0f us for a generated token",
                     now->n_moved, now->n_hot, before->n_hot, now->generation_us);
    }
}

enum tandem_status tandem_runtime_place(tandem_runtime *runtime,
                                        const struct tandem_place_weight *weights, int n_weights,
                                        const struct tandem_place_options *options,
                                        struct tandem_error *error)
{
    struct placing p = {
        .given = weights, .n = n_weights, .options = TANDEM_PLACE_OPTIONS_INIT, .hot_layer = -1};
    struct tandem_place_info info = TANDEM_PLACE_INFO_INIT;
    struct tnd_placement *placement = NULL;
    TND_TRY(tnd_runtime_check(runtime, "place", error));
    TND_TRY(
        tnd_options_read(options, "tandem_place_options", &p.options, sizeof(p.options), error));
    TND_TRY(check(&p, error));
    tnd_runtime_parts(runtime, &p.parts);
    pthread_mutex_lock(&runtime->lock);
    p.before = runtime->placed;
    pthread_mutex_unlock(&runtime->lock);
    enum tandem_status status =
        n_weights > 0 ? decide(runtime, &p, &info, &placement, error) : TANDEM_OK;
    end(&p);
    TND_TRY(status);
    if (info.is_kept) {
        info.n_placed = p.before.n_placed;
        info.placed_bytes = p.before.placed_bytes;
        info.n_hot = p.before.n_hot;
        info.n_moved = 0;
    } else {
        tnd_planner_set_placement(p.parts.planner, placement);
        tell(runtime, &p.before, &info);
    }
    pthread_mutex_lock(&runtime->lock);
    runtime->placed = info;
    pthread_mutex_unlock(&runtime->lock);
    return TANDEM_OK;
}

enum tandem_status tandem_runtime_placement(const tandem_runtime *runtime,
                                            struct tandem_place_info *out_info)
{
    tandem_runtime *unlocked = (tandem_runtime *)runtime; /* the mutex is no part of the value */
    TND_TRY(tnd_runtime_check(runtime, "placement", NULL));
    pthread_mutex_lock(&unlocked->lock);
    struct tandem_place_info info = runtime->placed;
    pthread_mutex_unlock(&unlocked->lock);
    return tnd_results_write(&info, sizeof(info), "tandem_place_info", out_info, NULL);
}

const char *tandem_runtime_placed_on(const tandem_runtime *runtime, const void *data)
{
    if (tnd_runtime_check(runtime, "placed_on", NULL) != TANDEM_OK) {
        return NULL;
    }
    int slot = tnd_planner_placed_slot(runtime->planner, data);
    return slot >= 0 ? tnd_registry_name(runtime->registry, slot) : NULL;
}
