/* SPDX-License-Identifier: MIT
 * Which weights devices keep: asks the devices for their memory, lets tune/ decide, and hands the
 * result to the planner. */
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/tnd_status.h"
#include "runtime/runtime_internal.h"
#include "tune/fit_model.h"
#include "tune/place.h"
#include "tune/placement.h"
#include "tune/policy.h"

enum { MOST_WEIGHTS = 1 << 20, MOST_LISTED = 16 };

/* One call. */
struct placing {
    const struct tandem_place_weight *given;
    int n;
    struct tandem_place_options options;
    struct tnd_runtime_parts parts;
    uint8_t slots[TND_MAX_SLOTS]; /* of devices, side 1 at 0 */
    struct tnd_fit_options fit;
    struct tnd_fit_model model;
    tandem_table *table;
    struct tnd_fit_weight *weights;
    struct tnd_fit_item *items;
    struct tnd_placed *placed;
    uint8_t *sides;
};

/* ---- what is given ---- */

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

/* The device that the backend in a slot has opened, by its name; 0: nobody knows its memory. */
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

static enum tandem_status find_devices(struct placing *p, struct tandem_error *error)
{
    const struct tnd_registry *registry = p->parts.registry;
    int n = tnd_place_devices(registry, p->slots);
    p->fit.n_devices = n < TND_FIT_SIDES ? n : TND_FIT_SIDES - 1;
    for (int side = 1; side <= p->fit.n_devices; side++) {
        int slot = p->slots[side - 1];
        bool is_given = side <= p->options.n_device_memory;
        int64_t bytes = is_given ? p->options.device_memory[side - 1] : 0;
        uint64_t budget = tnd_backend_weight_budget(tnd_registry_backend(registry, slot));
        p->fit.budget[side] = budget < INT64_MAX ? (int64_t)budget : INT64_MAX;
        bytes = bytes > 0 ? bytes : ask_memory(&p->parts, slot);
        bytes = bytes > 0 || budget == 0 ? bytes : INT64_MAX; /* the budget alone is known */
        p->fit.devices[side] = tnd_registry_name(registry, slot);
        p->fit.memory[side] = bytes;
        if (bytes <= 0 && p->options.only_if_needed) {
            p->fit.n_devices = 0; /* nobody can say whether it is */
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
    for (int i = 0; i < p->n; i++) {
        int side = p->sides[p->model.group_of[i]];
        p->placed[i] = (struct tnd_placed){p->given[i].data,
                                           side > 0 ? p->slots[side - 1] : TANDEM_BACKEND_CPU};
        info.n_placed += side > 0;
        info.placed_bytes += side > 0 ? p->weights[i].bytes : 0;
    }
    info.prompt_us = tnd_fit_model_us(&p->model, p->sides, TND_FIT_PROMPT, &info.prompt_error_us);
    info.generation_us =
        tnd_fit_model_us(&p->model, p->sides, TND_FIT_GENERATION, &info.generation_error_us);
    TND_TRY(tnd_placement_new(p->placed, p->n, out_placement, error));
    *out_info = info;
    return TANDEM_OK;
}

/* `*out_placement` stays NULL where nothing is placed. */
static enum tandem_status decide(tandem_runtime *runtime, struct placing *p,
                                 struct tandem_place_info *out_info,
                                 struct tnd_placement **out_placement, struct tandem_error *error)
{
    size_t n = (size_t)p->n;
    p->weights = tnd_alloc(n * sizeof(p->weights[0]));
    p->placed = tnd_alloc(n * sizeof(p->placed[0]));
    p->sides = tnd_alloc(n);
    p->items = tnd_alloc(n * sizeof(p->items[0]));
    if (p->weights == NULL || p->placed == NULL || p->sides == NULL || p->items == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "place", p->n, 0,
                             "place: out of memory for %d weights", p->n);
    }
    TND_TRY(read_weights(p, error));
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
    p->fit.prompt_tokens = p->options.prompt_tokens;
    p->fit.context = p->options.context;
    p->fit.cache_type = p->options.cache_type;
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
    tnd_free(p->items);
}

/* ---- the calls ---- */

static enum tandem_status check(const struct placing *p, struct tandem_error *error)
{
    const struct tandem_place_options *o = &p->options;
    bool is_sane = p->n >= 0 && p->n <= MOST_WEIGHTS && (p->n == 0 || p->given != NULL) &&
                   (unsigned)o->objective <= TANDEM_PLACE_GENERATION &&
                   tandem_type_is_valid(o->cache_type) && o->n_device_memory >= 0 &&
                   (o->n_device_memory == 0 || o->device_memory != NULL);
    return is_sane ? TANDEM_OK
                   : tnd_error_set(error, TANDEM_E_ARGUMENT, "place", p->n, MOST_WEIGHTS,
                                   "place: %d weights, objective %d, memory of %d devices; "
                                   "expected up to %d weights, an objective from 0 to 2, a type "
                                   "of keys and values, and what is pointed to",
                                   p->n, (int)o->objective, o->n_device_memory, MOST_WEIGHTS);
}

enum tandem_status tandem_runtime_place(tandem_runtime *runtime,
                                        const struct tandem_place_weight *weights, int n_weights,
                                        const struct tandem_place_options *options,
                                        struct tandem_error *error)
{
    struct placing p = {.given = weights, .n = n_weights, .options = TANDEM_PLACE_OPTIONS_INIT};
    struct tandem_place_info info = TANDEM_PLACE_INFO_INIT;
    struct tnd_placement *placement = NULL;
    TND_TRY(tnd_runtime_check(runtime, "place", error));
    TND_TRY(
        tnd_options_read(options, "tandem_place_options", &p.options, sizeof(p.options), error));
    TND_TRY(check(&p, error));
    tnd_runtime_parts(runtime, &p.parts);
    enum tandem_status status =
        n_weights > 0 ? decide(runtime, &p, &info, &placement, error) : TANDEM_OK;
    end(&p);
    TND_TRY(status);
    tnd_planner_set_placement(p.parts.planner, placement);
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
