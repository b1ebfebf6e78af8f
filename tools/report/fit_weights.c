/* SPDX-License-Identifier: MIT
 * Listing weights for the placement. */
#include "tools/report/fit_weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "tandem/profile.h"
#include "tune/policy.h"

#define GIB             (1024.0 * 1024.0 * 1024.0)
#define MOST_MEMORY_GIB 65536.0
#define MOST_EXPERTS    65536

/* Also used for files that llama/ cannot run, so their metadata is unchecked. */
static int64_t used_experts(const tandem_source *source)
{
    const char *architecture = NULL;
    char key[96];
    int64_t used = 0;
    if (tandem_source_text(source, "general.architecture", &architecture)) {
        snprintf(key, sizeof(key), "%.40s.expert_used_count", architecture);
        (void)tandem_source_integer(source, key, &used);
    }
    return used > 0 ? used : 0;
}

/* Sums of hostile files may overflow; they are refused where weights are priced. */
static void count_bytes(struct tnd_fit_weights *weights)
{
    double most = 0;
    double all = 0;
    double of_type[256] = {0};
    for (int i = 0; i < weights->n; i++) {
        const struct tnd_fit_weight *weight = &weights->list[i];
        double *sum = &of_type[(unsigned)weight->type % 256];
        *sum += (double)weight->bytes;
        all += (double)weight->bytes;
        if (*sum > most) {
            most = *sum;
            weights->type = weight->type;
        }
    }
    weights->bytes = all < 9e18 ? (int64_t)all : INT64_MAX;
}

enum tandem_status tnd_fit_weights_list(const tandem_source *source, struct tnd_fit_weights *out,
                                        struct tandem_error *error)
{
    const int n = tandem_source_tensor_count(source);
    struct tnd_fit_weights weights = {.list = tnd_calloc((size_t)n + 1, sizeof(weights.list[0]))};
    if (weights.list == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "fit", n, 0,
                             "fit: out of memory for a list of %d weights", n);
    }
    struct tandem_source_tensor tensor;
    for (int i = 0; i < n && tandem_source_tensor_at(source, i, &tensor); i++) {
        weights.list[weights.n++] =
            (struct tnd_fit_weight){tensor.name,
                                    tensor.type,
                                    tensor.ne[0],
                                    tensor.n_dims > 1 ? tensor.ne[1] : 1,
                                    tensor.n_dims > 2 ? tensor.ne[2] : 1,
                                    tensor.bytes <= INT64_MAX ? (int64_t)tensor.bytes : INT64_MAX};
    }
    for (int i = 0; i < weights.n; i++) {
        int32_t layer;
        const struct tnd_fit_weight *weight = &weights.list[i];
        (void)tnd_fit_part_of(weight->name, &layer);
        weights.n_layers = layer >= weights.n_layers ? layer + 1 : weights.n_layers;
        weights.n_experts =
            weight->n_experts > weights.n_experts ? weight->n_experts : weights.n_experts;
    }
    weights.n_used = used_experts(source);
    count_bytes(&weights);
    *out = weights;
    return TANDEM_OK;
}

void tnd_fit_weights_fini(struct tnd_fit_weights *weights)
{
    tnd_free(weights->list);
    memset(weights, 0, sizeof(*weights));
}

bool tnd_fit_read_memory(const char *text, int n_devices, int64_t out_bytes[TND_FIT_SIDES])
{
    for (int side = 1; side <= n_devices; side++) {
        char *end;
        const double gib = strtod(text, &end);
        const bool is_last = side == n_devices;
        if (end == text || !(gib >= 0 && gib <= MOST_MEMORY_GIB) ||
            *end != (is_last ? '\0' : ',')) {
            return false;
        }
        out_bytes[side] = (int64_t)(gib * GIB);
        text = end + (is_last ? 0 : 1);
    }
    return n_devices > 0;
}

/* The factor that makes shares, capped at 1, add up to `n_used`. */
static double scale_of(double skew, double n_used, int64_t experts)
{
    double factor = 0;
    int64_t n_full = 0; /* experts that every token uses */
    for (bool is_new = true; is_new && n_full < experts;) {
        double sum = 0;
        for (int64_t r = n_full; r < experts; r++) {
            sum += pow((double)(r + 1), -skew);
        }
        factor = (n_used - (double)n_full) / sum;
        is_new = factor * pow((double)(n_full + 1), -skew) > 1;
        n_full += is_new;
    }
    return factor;
}

double *tnd_fit_skewed_use(double skew, int64_t n_used, int64_t experts, int64_t layers)
{
    bool is_sane = skew >= 0 && skew <= 10 && experts > 1 && experts <= MOST_EXPERTS &&
                   layers > 0 && layers <= MOST_EXPERTS && n_used > 0 && n_used <= experts;
    double *use = is_sane ? tnd_calloc((size_t)(experts * layers), sizeof(use[0])) : NULL;
    if (use == NULL) {
        return NULL;
    }
    double factor = scale_of(skew, (double)n_used, experts);
    for (int64_t i = 0; i < experts * layers; i++) {
        use[i] = fmin(1, factor * pow((double)(i % experts + 1), -skew));
    }
    return use;
}

/* ---- placing ---- */

/* State of one placement. */
struct placing {
    const struct tnd_fit_skew *skew;
    const uint8_t *slots;
    struct tnd_fit_weights weights;
    struct tnd_fit_model model;
    struct tnd_fit_item *items;
    struct tnd_placed *placed;
    int n_placed;
    uint8_t *sides;
    double *use;     /* use of experts, by rank; NULL: they stay together */
    float *shares;   /* {experts}: use in one layer */
    float *cold;     /* one row per weight; 0 for hot experts */
    int32_t *ranked; /* {experts} */
};

static enum tandem_status out_of_memory(const struct placing *p, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, "fit", p->weights.n, 0,
                         "fit: out of memory for %d weights", p->weights.n);
}

static enum tandem_status price(struct placing *p, const tandem_source *source,
                                struct tnd_fit_options *options, struct tandem_error *error)
{
    TND_TRY(tnd_fit_weights_list(source, &p->weights, error));
    options->n_used = p->weights.n_used;
    if (p->skew->skew >= 0 && p->weights.n_experts > 1) {
        p->use = tnd_fit_skewed_use(p->skew->skew, p->weights.n_used, p->weights.n_experts,
                                    p->weights.n_layers);
        options->expert_use = p->use;
        options->use_experts = p->weights.n_experts;
        options->use_layers = p->weights.n_layers;
    }
    TND_TRY(tnd_fit_model_new(p->weights.list, p->weights.n, options, &p->model, error));
    const size_t experts = (size_t)p->weights.n_experts + 1;
    p->items = tnd_calloc((size_t)p->model.n_groups + 1, sizeof(p->items[0]));
    p->sides = tnd_calloc((size_t)p->model.n_groups + 1, 1);
    p->placed = tnd_calloc(2 * (size_t)p->weights.n + 1, sizeof(p->placed[0]));
    p->shares = tnd_calloc(experts, sizeof(p->shares[0]));
    p->cold = tnd_calloc(experts * (size_t)p->weights.n + 1, sizeof(p->cold[0]));
    p->ranked = tnd_calloc(experts, sizeof(p->ranked[0]));
    bool has_memory = p->items != NULL && p->sides != NULL && p->placed != NULL &&
                      p->shares != NULL && p->cold != NULL && p->ranked != NULL;
    for (int64_t e = 0; has_memory && p->use != NULL && e < p->weights.n_experts; e++) {
        p->shares[e] = (float)p->use[e];
    }
    return has_memory ? TANDEM_OK : out_of_memory(p, error);
}

static int slot_of(const struct placing *p, int side)
{
    return side > 0 ? p->slots[side - 1] : TANDEM_BACKEND_CPU;
}

/* Lists a weight and the copy of its hot experts. */
static void list_weight(struct placing *p, int i, const void *data)
{
    const int g = p->model.group_of[i];
    const int64_t experts = p->weights.n_experts;
    int side = p->sides[g];
    struct tnd_placed whole = {.data = data};
    if (p->use != NULL && p->model.groups[g].n_ranks > 0) {
        float *cold = p->cold + experts * i;
        int64_t n =
            tnd_fit_hot_experts(&p->model, p->sides, p->model.groups[g].layer, p->ranked, &side);
        const void *hot = n > 0 ? p->skew->add_hot(p->skew->user, data, n) : NULL;
        memcpy(cold, p->shares, (size_t)experts * sizeof(cold[0]));
        if (hot != NULL) { /* experts are numbered by rank here */
            memset(cold, 0, (size_t)n * sizeof(cold[0]));
            p->placed[p->n_placed++] = (struct tnd_placed){
                .data = hot, .slot = slot_of(p, side), .shares = p->shares, .n_shares = n};
            side = 0;
        }
        whole.shares = cold;
        whole.n_shares = experts;
    }
    whole.slot = slot_of(p, side);
    p->placed[p->n_placed++] = whole;
}

static enum tandem_status place(struct placing *p, const tandem_source *source,
                                struct tnd_fit_options *options,
                                struct tnd_placement **out_placement, struct tandem_error *error)
{
    static const double count[TND_FIT_PHASES] = {1, TND_FIT_ANSWER_TOKENS};
    struct tnd_fit_problem problem;
    struct tandem_source_tensor tensor;
    TND_TRY(price(p, source, options, error));
    tnd_fit_model_problem(&p->model, count, p->items, &problem);
    TND_TRY(tnd_fit_choose(&problem, p->sides, error));
    for (int i = 0; i < p->weights.n && tandem_source_tensor_at(source, i, &tensor); i++) {
        list_weight(p, i, tensor.data);
    }
    return tnd_placement_new(p->placed, p->n_placed, out_placement, error);
}

enum tandem_status tnd_fit_place(const tandem_source *source, struct tnd_fit_options *options,
                                 const uint8_t *slots, const struct tnd_fit_skew *skew,
                                 struct tnd_placement **out_placement, struct tandem_error *error)
{
    struct placing p = {.skew = skew, .slots = slots};
    enum tandem_status status = place(&p, source, options, out_placement, error);
    options->expert_use = NULL;
    tnd_fit_model_fini(&p.model);
    tnd_fit_weights_fini(&p.weights);
    tnd_free(p.items);
    tnd_free(p.placed);
    tnd_free(p.sides);
    tnd_free(p.use);
    tnd_free(p.shares);
    tnd_free(p.cold);
    tnd_free(p.ranked);
    return status;
}
