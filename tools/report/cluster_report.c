/* SPDX-License-Identifier: MIT
 * Printing plans for ranks. To show the effect of changes to the cluster, plans are made again. */
#include "tools/report/cluster_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/emit.h"
#include "llama/model.h"

#define GIB     (1024.0 * 1024.0 * 1024.0)
#define FASTER  10.0 /* factor, for links */
#define NOTICED 0.01 /* share of the time that more memory must save to be reported */

void tnd_cluster_shape_of(const struct tandem_hparams *hparams,
                          const struct tnd_fit_weight *weights, int n_weights,
                          struct tnd_cluster_shape *out)
{
    *out = (struct tnd_cluster_shape){.dim = hparams->dim,
                                      .kv_heads = hparams->kv_heads,
                                      .q_dim = hparams->q_dim,
                                      .vocabulary = hparams->vocabulary,
                                      .hidden = hparams->hidden,
                                      .expert_hidden = hparams->expert_hidden,
                                      .experts = hparams->experts,
                                      .experts_used = hparams->experts_used,
                                      .micro_tokens = TANDEM_MICRO_BATCH_TOKENS,
                                      .n_micro = TND_LLAMA_MICRO_BATCHES,
                                      .is_whole = hparams->is_encoder};
    for (int i = 0; i < n_weights; i++) {
        const char *name = weights[i].name != NULL ? weights[i].name : "";
        const bool is_norm = strstr(name, ".attn_q_norm.weight") != NULL ||
                             strstr(name, ".attn_k_norm.weight") != NULL;
        if (is_norm && weights[i].k != hparams->head_size) {
            out->undivided = "norms all heads together";
        }
    }
    out->undivided = hparams->kv_latent > 0 ? "has latent attention" : out->undivided;
    out->undivided = hparams->is_encoder ? "is an encoder" : out->undivided;
}

/* ---- speeds ---- */

static double tokens_of(const struct tnd_cluster *cluster, int phase)
{
    return phase == TND_FIT_PROMPT ? (double)cluster->model.prompt_tokens
                                   : fmax((double)cluster->model.n_texts, 1);
}

static double speed(const struct tnd_cluster *cluster, int phase, double us)
{
    return us > 0 ? tokens_of(cluster, phase) * 1e6 / us : 0;
}

/* "12.3 (11.0 - 14.0)" */
static void add_speed(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                      int phase, struct tnd_text *out)
{
    const double us = plan->us[phase], error_us = plan->error_us[phase];
    const double tps = speed(cluster, phase, us);
    const int digits = tps < 10 ? 2 : 1;
    tnd_text_printf(out, " %8.*f (%.*f - %.*f)", digits, tps, digits,
                    speed(cluster, phase, us + error_us), digits,
                    speed(cluster, phase, fmax(us - error_us, 0.1 * us)));
}

static const char *name_of(const struct tnd_cluster *cluster, int rank)
{
    return cluster->ranks[rank].name;
}

static void add_names(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                      struct tnd_text *out)
{
    for (int i = 0; i < plan->n; i++) {
        tnd_text_printf(out, "%s%s", i > 0 ? ", " : "", name_of(cluster, plan->ranks[i]));
    }
}

static const char *division_of(const struct tnd_cluster_plan *plan)
{
    return plan->n < 2 ? "" : tnd_cluster_division_name(plan->division);
}

/* Layers per rank of a plan, {n}; NULL: it divides only by rows. */
static const int *layers_of(const struct tnd_cluster_plan *plan)
{
    return plan->division == TND_CLUSTER_LAYERS  ? plan->shares
           : plan->division == TND_CLUSTER_MIXED ? plan->layers
                                                 : NULL;
}

/* Adds a rank's share: "50 %", a number of layers, or both. */
static void add_share(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan, int i,
                      struct tnd_text *out)
{
    const bool has_rows = plan->division != TND_CLUSTER_LAYERS;
    if (has_rows) {
        tnd_text_printf(out, "%.0f %%",
                        100.0 * plan->shares[i] / tnd_cluster_shares(cluster, plan));
    }
    if (layers_of(plan) != NULL) {
        tnd_text_printf(out, "%s%d of %lld layers", has_rows ? " and " : "", layers_of(plan)[i],
                        (long long)cluster->model.n_layers);
    }
}

static void print_counts(const struct tnd_cluster_report *r, struct tnd_text *out)
{
    const struct tnd_cluster *cluster = r->cluster;
    tnd_text_printf(out, "\n%-6s %-28s %-28s %-11s %-7s %s\n", "ranks", "prompt tokens/s (range)",
                    "generation tokens/s (range)", "on links", "by", "machines");
    for (int i = 0; i < cluster->n; i++) {
        const struct tnd_cluster_plan *plan = &r->plans[i];
        char mark = i == r->best ? '*' : ' ';
        if (plan->n == 0) {
            continue;
        }
        tnd_text_printf(out, "%c %-4d", mark, plan->n);
        if (!plan->fits) {
            tnd_text_add(out, "  does not fit into the memory of ");
            add_names(cluster, plan, out);
            tnd_text_add_char(out, '\n');
            continue;
        }
        for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
            const size_t begin = out->n;
            add_speed(cluster, plan, phase, out);
            while (!out->failed && out->n < begin + 29) {
                tnd_text_add_char(out, ' ');
            }
        }
        tnd_text_printf(out, "%3.0f %%, %2.0f %%  %-7s ",
                        100 * plan->link_us[TND_FIT_PROMPT] / plan->us[TND_FIT_PROMPT],
                        100 * plan->link_us[TND_FIT_GENERATION] / plan->us[TND_FIT_GENERATION],
                        division_of(plan));
        add_names(cluster, plan, out);
        tnd_text_add_char(out, '\n');
    }
}

/* ---- divisions ---- */

static const char *why_not_other(const struct tnd_cluster *cluster,
                                 const struct tnd_cluster_plan *plan,
                                 enum tnd_cluster_division division)
{
    if (tnd_cluster_may_divide(cluster, division, plan->n)) {
        return "does not fit";
    }
    return (cluster->refused >> division & 1) != 0 ? "not asked for"
                                                   : "not possible for this model";
}

/* Name of a division: "By rows"; "Mixed" for a mixed plan. */
static const char *by_division(enum tnd_cluster_division division, bool is_first)
{
    static const char *const names[TND_CLUSTER_DIVISIONS] = {"by rows", "by layers", "mixed"};
    static const char *const first[TND_CLUSTER_DIVISIONS] = {"By rows", "By layers", "Mixed"};
    return (is_first ? first : names)[division];
}

/* Prints one line per other division. */
static void print_others(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                         struct tnd_text *out)
{
    for (int d = 0; d < TND_CLUSTER_DIVISIONS; d++) {
        const enum tnd_cluster_division division = (enum tnd_cluster_division)d;
        const double *us = plan->other_us[d];
        if (division == plan->division) {
            continue;
        }
        if (us[TND_FIT_PROMPT] > 0) {
            tnd_text_printf(out, "%s, prompts %.2f times, generation %.2f times as fast.\n",
                            by_division(division, true),
                            plan->us[TND_FIT_PROMPT] / us[TND_FIT_PROMPT],
                            plan->us[TND_FIT_GENERATION] / us[TND_FIT_GENERATION]);
        } else {
            tnd_text_printf(out, "%s: %s.\n", by_division(division, true),
                            why_not_other(cluster, plan, division));
        }
    }
}

static void print_layers(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                         struct tnd_text *out)
{
    tnd_text_printf(out, "Of %lld layers, in this order:", (long long)cluster->model.n_layers);
    for (int i = 0; i < plan->n; i++) {
        tnd_text_printf(out, "%s %d", i > 0 ? "," : "", layers_of(plan)[i]);
    }
    tnd_text_add(out, "; the vocabulary is the first one's.\n");
}

static void print_places(const struct tnd_cluster_report *r, struct tnd_text *out)
{
    const struct tnd_cluster *cluster = r->cluster;
    const struct tnd_cluster_plan *plan = &r->plans[r->best];
    tnd_text_printf(out, "\n%-16s %7s %30s %12s\n", "machine", "share", "weights, keys and values",
                    "of memory");
    for (int i = 0; i < plan->n; i++) {
        const struct tnd_cluster_rank *rank = &cluster->ranks[plan->ranks[i]];
        tnd_text_printf(out, "%-16.40s %5.1f %% %26.2f GiB", rank->name,
                        100.0 * plan->shares[i] / tnd_cluster_shares(cluster, plan),
                        (double)plan->bytes[i] / GIB);
        if (rank->memory > 0) {
            tnd_text_printf(out, " %8.2f GiB", (double)rank->memory / GIB);
        }
        if (plan->placed[i] > 0) {
            tnd_text_printf(out, "  %.2f GiB of it on %.31s", (double)plan->placed[i] / GIB,
                            rank->device);
        }
        tnd_text_add_char(out, '\n');
    }
    const bool is_alone = plan->shares[0] == tnd_cluster_shares(cluster, plan);
    if (plan->n > 1 && plan->division == TND_CLUSTER_MIXED) {
        tnd_text_printf(out, "Batches of %lld tokens and more go by layers; %s.\n",
                        (long long)tnd_cluster_prompt_batch(cluster, plan),
                        is_alone ? "the first one generates tokens alone"
                                 : "generated tokens go by rows");
    }
    if (plan->n > 1 && plan->division != TND_CLUSTER_LAYERS && !is_alone) {
        tnd_text_printf(out,
                        "Of each layer: heads of attention, rows of the feed-forward network and "
                        "%s; of the vocabulary: rows.\n",
                        plan->has_whole_experts ? "whole experts" : "of each expert");
    }
    if (plan->n > 1 && layers_of(plan) != NULL) {
        print_layers(cluster, plan, out);
    }
    if (plan->n > 1) {
        print_others(cluster, plan, out);
    }
}

static bool may_divide(const struct tnd_cluster *cluster)
{
    return tnd_cluster_may_divide(cluster, TND_CLUSTER_ROWS, cluster->n) ||
           tnd_cluster_may_divide(cluster, TND_CLUSTER_LAYERS, cluster->n);
}

static bool takes_part(const struct tnd_cluster_plan *plan, int rank)
{
    bool is_in = false;
    for (int i = 0; i < plan->n; i++) {
        is_in = is_in || plan->ranks[i] == rank;
    }
    return is_in;
}

/* Shares by the faster division. */
static void share(const struct tnd_cluster *cluster, const double *count, const int *ranks, int n,
                  struct tnd_cluster_plan *out)
{
    out->n = 0;
    for (int d = 0; d < TND_CLUSTER_DIVISIONS; d++) {
        const enum tnd_cluster_division division = (enum tnd_cluster_division)d;
        struct tnd_cluster_plan one;
        if (tnd_cluster_may_divide(cluster, division, n)) {
            tnd_cluster_share(cluster, count, division, ranks, n, &one);
            const bool is_new =
                out->n == 0 || tnd_cluster_plan_us(&one, count) < tnd_cluster_plan_us(out, count);
            *out = is_new ? one : *out;
        }
    }
}

/* Prints what the best plan would be with one more rank. */
static void print_left_out(const struct tnd_cluster_report *r, struct tnd_text *out)
{
    const struct tnd_cluster *cluster = r->cluster;
    const struct tnd_cluster_plan *best = &r->plans[r->best];
    for (int rank = 0; rank < cluster->n; rank++) {
        int ranks[TND_CLUSTER_MOST];
        struct tnd_cluster_plan with;
        if (takes_part(best, rank)) {
            continue;
        }
        tnd_text_printf(out, "Left out: %s", name_of(cluster, rank));
        if (cluster->ranks[rank].is_left_out) {
            tnd_text_add(out, ", which has no times for this model.\n");
            continue;
        }
        if (!may_divide(cluster) && cluster->model.undivided != NULL) {
            tnd_text_printf(out, ": the model %s, so one rank computes it.\n",
                            cluster->model.undivided);
            continue;
        }
        memcpy(ranks, best->ranks, (size_t)best->n * sizeof(ranks[0]));
        ranks[best->n] = rank;
        share(cluster, r->count, ranks, best->n + 1, &with);
        tnd_text_printf(out,
                        ". With it: prompts %.2f times, generation %.2f times as fast (links %.0f "
                        "%%, %.0f %%).\n",
                        best->us[TND_FIT_PROMPT] / with.us[TND_FIT_PROMPT],
                        best->us[TND_FIT_GENERATION] / with.us[TND_FIT_GENERATION],
                        100 * with.link_us[TND_FIT_PROMPT] / with.us[TND_FIT_PROMPT],
                        100 * with.link_us[TND_FIT_GENERATION] / with.us[TND_FIT_GENERATION]);
    }
}

/* ---- what would bring more ---- */

/* Prints nothing if the changed plan saves too little: more than `least` of the best plan's time
 * remains. */
static void print_changed(const struct tnd_cluster_report *r, const struct tnd_cluster *changed,
                          const char *what, double least, struct tnd_text *out)
{
    struct tnd_cluster_plan *plans = calloc((size_t)changed->n, sizeof(plans[0]));
    const int best = plans != NULL ? tnd_cluster_best(changed, r->count, r->leader, plans) : -1;
    const double now_us =
        r->best >= 0 ? tnd_cluster_plan_us(&r->plans[r->best], r->count) : (double)INFINITY;
    if (best >= 0 && tnd_cluster_plan_us(&plans[best], r->count) <= least * now_us) {
        tnd_text_printf(out, "%-44.80s %9.2f %11.2f  ", what,
                        speed(changed, TND_FIT_PROMPT, plans[best].us[TND_FIT_PROMPT]),
                        speed(changed, TND_FIT_GENERATION, plans[best].us[TND_FIT_GENERATION]));
        add_names(changed, &plans[best], out);
        tnd_text_add_char(out, '\n');
    }
    free(plans);
}

/* Links {n, n} with latency and time per byte multiplied by these factors. */
static struct tnd_cluster_link faster_link(const struct tnd_cluster_link *link, double latency,
                                           double moving)
{
    struct tnd_cluster_link faster;
    for (int i = 0; i < TND_CLUSTER_SIZES; i++) {
        faster.us[i] = latency * link->us[0] + moving * (link->us[i] - link->us[0]);
        faster.both_us[i] =
            latency * link->both_us[0] + moving * (link->both_us[i] - link->both_us[0]);
    }
    return faster;
}

static void print_faster(const struct tnd_cluster_report *r, double latency, double moving,
                         const char *what, struct tnd_text *out)
{
    struct tnd_cluster changed = *r->cluster;
    const size_t n = (size_t)changed.n * (size_t)changed.n;
    changed.links = calloc(n, sizeof(changed.links[0]));
    for (size_t i = 0; changed.links != NULL && i < n; i++) {
        changed.links[i] = faster_link(&r->cluster->links[i], latency, moving);
    }
    changed.sum = faster_link(&r->cluster->sum, latency, moving);
    if (changed.links != NULL) {
        print_changed(r, &changed, what, INFINITY, out);
    }
    free(changed.links);
}

/* Prints, for each machine whose device the plan uses, the plan with its CPU alone. */
static void print_without_devices(const struct tnd_cluster_report *r, struct tnd_text *out)
{
    const struct tnd_cluster_plan *plan = r->best >= 0 ? &r->plans[r->best] : NULL;
    for (int i = 0; plan != NULL && i < plan->n; i++) {
        struct tnd_cluster changed = *r->cluster;
        const struct tnd_cluster_rank *rank = &changed.ranks[plan->ranks[i]];
        if (plan->placed[i] == 0) {
            continue;
        }
        changed.ranks = calloc((size_t)changed.n, sizeof(changed.ranks[0]));
        if (changed.ranks != NULL) {
            char what[128];
            memcpy(changed.ranks, r->cluster->ranks, (size_t)changed.n * sizeof(changed.ranks[0]));
            changed.ranks[plan->ranks[i]].has_device = false;
            snprintf(what, sizeof(what), "%.60s without its %.31s", rank->name, rank->device);
            print_changed(r, &changed, what, INFINITY, out);
        }
        free(changed.ranks);
    }
}

/* Prints the plan with twice the memory, for each machine that is full or holds less than the whole
 * model. */
static void print_memory(const struct tnd_cluster_report *r, struct tnd_text *out)
{
    int64_t all = 0;
    for (int part = 0; part < TND_FIT_PARTS; part++) {
        all += r->cluster->model.bytes[part];
    }
    for (int rank = 0; rank < r->cluster->n; rank++) {
        struct tnd_cluster changed = *r->cluster;
        const int64_t memory = changed.ranks[rank].memory;
        if (memory == 0 || memory >= all || changed.ranks[rank].is_left_out) {
            continue;
        }
        changed.ranks = calloc((size_t)changed.n, sizeof(changed.ranks[0]));
        if (changed.ranks != NULL) {
            char what[128];
            memcpy(changed.ranks, r->cluster->ranks, (size_t)changed.n * sizeof(changed.ranks[0]));
            changed.ranks[rank].memory = memory < INT64_MAX / 2 ? 2 * memory : memory;
            snprintf(what, sizeof(what), "%.1f GiB for %.60s", 2 * (double)memory / GIB,
                     name_of(r->cluster, rank));
            print_changed(r, &changed, what, 1 - NOTICED, out);
        }
        free(changed.ranks);
    }
}

static void add_in_flight(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                          struct tnd_text *out)
{
    if (cluster->model.n_texts > 1) {
        tnd_text_printf(out, "; %lld texts", (long long)cluster->model.n_texts);
    }
    if (plan->in_flight > 1) {
        tnd_text_printf(out, " in %d batches in flight", plan->in_flight);
    }
}

/* If the plan leaves ranks out, prints the speed of all ranks together, or why they cannot run. */
static void print_all_of_them(const struct tnd_cluster_report *r, struct tnd_text *out)
{
    const struct tnd_cluster *cluster = r->cluster;
    const struct tnd_cluster_plan *all = &r->plans[cluster->n - 1];
    if (!may_divide(cluster) && cluster->model.undivided != NULL) {
        tnd_text_printf(out, "; the model %s", cluster->model.undivided);
    } else if (all->n == cluster->n) {
        tnd_text_printf(out,
                        "; by all of them, %s, %.4g and %.4g, %.0f %% and %.0f %% of it on links",
                        by_division(all->division, false),
                        speed(cluster, TND_FIT_PROMPT, all->us[TND_FIT_PROMPT]),
                        speed(cluster, TND_FIT_GENERATION, all->us[TND_FIT_GENERATION]),
                        100 * all->link_us[TND_FIT_PROMPT] / all->us[TND_FIT_PROMPT],
                        100 * all->link_us[TND_FIT_GENERATION] / all->us[TND_FIT_GENERATION]);
    }
}

void tnd_cluster_print_choice(const struct tnd_cluster_report *r, struct tnd_text *out)
{
    const struct tnd_cluster *cluster = r->cluster;
    if (r->best < 0) {
        tnd_text_add(out, "no plan: the model does not fit into the memory of these machines\n");
        return;
    }
    const struct tnd_cluster_plan *plan = &r->plans[r->best];
    tnd_text_printf(out, "plan: %d of %d ranks%s%s (", plan->n, cluster->n, plan->n > 1 ? " " : "",
                    plan->n > 1 ? by_division(plan->division, false) : "");
    for (int i = 0; i < plan->n; i++) {
        tnd_text_printf(out, "%s%s ", i > 0 ? ", " : "", name_of(cluster, plan->ranks[i]));
        add_share(cluster, plan, i, out);
        if (plan->placed[i] > 0) {
            tnd_text_printf(out, " with %.31s", cluster->ranks[plan->ranks[i]].device);
        }
    }
    tnd_text_add(out, plan->has_whole_experts ? "; experts whole" : "");
    add_in_flight(cluster, plan, out);
    tnd_text_printf(out, "), predicted %.4g tokens/s of prompts, %.4g generated",
                    speed(cluster, TND_FIT_PROMPT, plan->us[TND_FIT_PROMPT]),
                    speed(cluster, TND_FIT_GENERATION, plan->us[TND_FIT_GENERATION]));
    for (int d = 0; plan->n > 1 && d < TND_CLUSTER_DIVISIONS; d++) {
        const enum tnd_cluster_division division = (enum tnd_cluster_division)d;
        const double *us = plan->other_us[d];
        if (us[TND_FIT_PROMPT] > 0) {
            tnd_text_printf(out, "; %s %.4g and %.4g", by_division(division, false),
                            speed(cluster, TND_FIT_PROMPT, us[TND_FIT_PROMPT]),
                            speed(cluster, TND_FIT_GENERATION, us[TND_FIT_GENERATION]));
        } else if (division != plan->division) {
            tnd_text_printf(out, "; %s: %s", by_division(division, false),
                            why_not_other(cluster, plan, division));
        }
    }
    if (plan->n < cluster->n) {
        print_all_of_them(r, out);
    }
    tnd_text_add_char(out, '\n');
}

void tnd_cluster_print(const struct tnd_cluster_report *r, struct tnd_text *out)
{
    print_counts(r, out);
    if (r->best < 0) {
        tnd_cluster_print_choice(r, out);
    } else {
        print_places(r, out);
        print_left_out(r, out);
    }
    if (r->cluster->n > 1) {
        tnd_text_printf(out, "\n%-44s %9s %11s\n", "With", "prompt", "generation");
        print_without_devices(r, out);
        print_faster(r, 1, 1 / FASTER, "links of 10 times the bandwidth", out);
        print_faster(r, 1 / FASTER, 1, "links of a tenth of the latency", out);
        print_memory(r, out);
    }
}

/* ---- JSON ---- */

static void json_plan(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                      struct tnd_text *out)
{
    static const char *const phases[] = {"prompt", "generation"};
    tnd_text_printf(out, "    {\"ranks\": %d, \"fits\": %s", plan->n,
                    plan->fits ? "true" : "false");
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        const double us = plan->us[phase], error_us = plan->error_us[phase];
        tnd_text_printf(out, ", \"%s_tps\": %.3f, \"%s_range\": [%.3f, %.3f], \"%s_link_us\": %.1f",
                        phases[phase], speed(cluster, phase, us), phases[phase],
                        speed(cluster, phase, us + error_us),
                        speed(cluster, phase, fmax(us - error_us, 0.1 * us)), phases[phase],
                        plan->link_us[phase]);
    }
    tnd_text_add(out, ", \"machines\": [");
    for (int i = 0; i < plan->n; i++) {
        tnd_text_add(out, i > 0 ? ", {\"name\": " : "{\"name\": ");
        tnd_emit_json_string(out, name_of(cluster, plan->ranks[i]));
        tnd_text_printf(out, ", \"share\": %.4f, ",
                        (double)plan->shares[i] / tnd_cluster_shares(cluster, plan));
        if (plan->n > 1 && layers_of(plan) != NULL) {
            tnd_text_printf(out, "\"layers\": %d, ", layers_of(plan)[i]);
        }
        tnd_text_printf(out, "\"bytes\": %lld", (long long)plan->bytes[i]);
        if (plan->placed[i] > 0) {
            tnd_text_printf(out, ", \"device_bytes\": %lld", (long long)plan->placed[i]);
        }
        tnd_text_add_char(out, '}');
    }
    tnd_text_add(out, "]");
    if (plan->n > 1) {
        tnd_text_printf(out, ", \"division\": \"%s\"", division_of(plan));
        tnd_text_add(out, plan->has_whole_experts ? ", \"experts\": \"whole\"" : "");
    }
    if (plan->in_flight > 1) {
        tnd_text_printf(out, ", \"batches_in_flight\": %d", plan->in_flight);
    }
    if (plan->n > 1 && plan->division == TND_CLUSTER_MIXED) {
        tnd_text_printf(out, ", \"prompt_batch\": %lld",
                        (long long)tnd_cluster_prompt_batch(cluster, plan));
    }
    for (int i = 0; plan->n > 1 && i < TND_CLUSTER_DIVISIONS * TND_FIT_PHASES; i++) {
        const int d = i / TND_FIT_PHASES, phase = i % TND_FIT_PHASES;
        if (plan->other_us[d][phase] > 0) {
            tnd_text_printf(out, ", \"%s%s_%s_tps\": %.3f", d == TND_CLUSTER_MIXED ? "" : "by_",
                            tnd_cluster_division_name((enum tnd_cluster_division)d), phases[phase],
                            speed(cluster, phase, plan->other_us[d][phase]));
        }
    }
    tnd_text_add(out, "}");
}

void tnd_cluster_print_json(const struct tnd_cluster_report *r, struct tnd_text *out)
{
    tnd_text_printf(out, "{\n  \"best\": %d,\n  \"plans\": [\n",
                    r->best >= 0 ? r->plans[r->best].n : 0);
    bool has_any = false;
    for (int i = 0; i < r->cluster->n; i++) {
        if (r->plans[i].n > 0) {
            tnd_text_add(out, has_any ? ",\n" : "");
            json_plan(r->cluster, &r->plans[i], out);
            has_any = true;
        }
    }
    tnd_text_add(out, "\n  ]\n}\n");
}
