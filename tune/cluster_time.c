/* SPDX-License-Identifier: MIT
 * Times and bytes of plans whose division and shares are given. By rows, all ranks wait for the
 * slowest one after every stretch between two sums. By layers, a token takes the sum of all ranks'
 * times, and a prompt's micro-batches are pipelined. Mixed, a prompt takes the time by layers, and
 * a generated token the time by rows. */
#include <math.h>
#include <string.h>

#include "tune/cluster.h"
#include "tune/policy.h"

enum {
    STEPS = TND_CLUSTER_STEPS,
    EXACT = 8 /* ranks; with more, moves of keys and values are priced once per search */
};

/* ---- rows ---- */

static double at_share(const double *values, double share)
{
    const double at = share * (TND_CLUSTER_POINTS - 1);
    int i = (int)at;
    i = i < TND_CLUSTER_POINTS - 2 ? i : TND_CLUSTER_POINTS - 2;
    return values[i] + (at - i) * (values[i + 1] - values[i]);
}

/* Prices of the i-th rank of a plan. */
static const struct tnd_cluster_prices *prices_of(const struct tnd_cluster *cluster,
                                                  const struct tnd_cluster_plan *plan, int i)
{
    const struct tnd_cluster_rank *rank = &cluster->ranks[plan->ranks[i]];
    return &rank->prices[rank->has_device && (plan->by_cpu >> i & 1) == 0];
}

/* First unit of a rank after `before` shares, rounded as in llama/shard.c. */
static double begin_of(int64_t units, int before)
{
    return floor((double)units * before / STEPS + 0.5);
}

/* The i-th rank's share of each part, 0 to 1. */
static void find_parts(const struct tnd_cluster_model *model, const struct tnd_cluster_plan *plan,
                       int i, double out[TND_FIT_PARTS])
{
    int before = 0;
    for (int r = 0; r < i; r++) {
        before += plan->shares[r];
    }
    for (int part = 0; part < TND_FIT_PARTS; part++) {
        const int64_t units = model->units[part];
        out[part] = units > 0
                        ? (begin_of(units, before + plan->shares[i]) - begin_of(units, before)) /
                              (double)units
                        : 1;
    }
}

/* The stretch between two sums that a part belongs to; ranks wait for the slowest one after each
 * stretch. */
static const int stretch_of[TND_FIT_PARTS] = {
    [TND_FIT_EMBEDDING] = 0, [TND_FIT_ATTENTION] = 1, [TND_FIT_FFN] = 2,
    [TND_FIT_EXPERTS] = 2,   [TND_FIT_OUTPUT] = 3,    [TND_FIT_OTHER] = 0};
enum { STRETCHES = 4 };

static double tokens_of(const struct tnd_cluster *cluster, enum tnd_fit_phase phase)
{
    return phase == TND_FIT_PROMPT ? (double)cluster->model.prompt_tokens
                                   : fmax((double)cluster->model.n_texts, 1);
}

/* Tokens whose logits are needed: a prompt's last one, and every generated one. */
static double outputs_of(const struct tnd_cluster *cluster, enum tnd_fit_phase phase)
{
    return phase == TND_FIT_PROMPT ? 1 : tokens_of(cluster, phase);
}

/* Bytes that a rank sends about its likeliest tokens, for top-k 40 (llama/best.c). */
static double first_bytes(const struct tnd_cluster_model *model)
{
    enum { HEAD = 24, FIRST = 8, K = 40 };
    return fmin(HEAD + FIRST * K, 4 * (double)model->vocabulary);
}

static double messages_us(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                          double tokens, double outputs)
{
    const struct tnd_cluster_model *model = &cluster->model;
    const double sums = 2 * (double)model->n_layers;
    return plan->n < 2 ? 0
                       : sums * tnd_cluster_sum_us(cluster, plan->ranks, plan->n,
                                                   4 * (double)model->dim * tokens) +
                             tnd_cluster_gather_us(cluster, plan->ranks, plan->n,
                                                   plan->n * outputs * first_bytes(model)) +
                             /* broadcast of tokens */
                             tnd_cluster_gather_us(cluster, plan->ranks, plan->n, 4 * tokens);
}

bool tnd_cluster_is_alone(const struct tnd_cluster_plan *plan)
{
    return plan->division == TND_CLUSTER_MIXED && plan->shares[0] == STEPS;
}

/* Replaces the time of the stretch with experts by that of the slowest rank, if ranks have whole
 * experts. */
static void time_whole_experts(const struct tnd_cluster *cluster,
                               const struct tnd_cluster_plan *plan,
                               double io_us[TND_FIT_PHASES][STRETCHES])
{
    const struct tnd_cluster_model *model = &cluster->model;
    struct tnd_cluster_duty duties[TND_CLUSTER_MOST];
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        int before = 0;
        for (int i = 0; i < plan->n; i++) {
            const struct tnd_cluster_prices *prices = prices_of(cluster, plan, i);
            double parts[TND_FIT_PARTS];
            find_parts(model, plan, i, parts);
            const double begin = begin_of(model->n_experts, before);
            before += plan->shares[i];
            duties[i] = (struct tnd_cluster_duty){
                (int64_t)(begin_of(model->n_experts, before) - begin),
                prices->curves[phase][TND_FIT_EXPERTS].us[TND_CLUSTER_POINTS - 1],
                at_share(prices->curves[phase][TND_FIT_FFN].us, parts[TND_FIT_FFN])};
        }
        io_us[phase][stretch_of[TND_FIT_EXPERTS]] =
            tnd_cluster_slowest_us(duties, plan->n, model->n_experts, model->n_used,
                                   tokens_of(cluster, (enum tnd_fit_phase)phase));
    }
}

/* Fills in the i-th rank's bytes, and raises each stretch's time to the rank's if that is longer.
 */
static void time_rank(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan, int i,
                      double io_us[TND_FIT_PHASES][STRETCHES],
                      double io_error_us[TND_FIT_PHASES][STRETCHES])
{
    const struct tnd_cluster_prices *prices = prices_of(cluster, plan, i);
    double parts[TND_FIT_PARTS], bytes = 0;
    find_parts(&cluster->model, plan, i, parts);
    for (int part = 0; part < TND_FIT_PARTS; part++) {
        bytes += parts[part] * (double)cluster->model.bytes[part];
    }
    plan->bytes[i] = (int64_t)bytes;
    plan->placed[i] =
        (int64_t)at_share(prices->rows_placed, (double)plan->shares[i] / TND_CLUSTER_STEPS);
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        double us[STRETCHES] = {0}, error_us[STRETCHES] = {0};
        for (int part = 0; part < TND_FIT_PARTS; part++) {
            const struct tnd_cluster_curve *curve = &prices->curves[phase][part];
            us[stretch_of[part]] += at_share(curve->us, parts[part]);
            error_us[stretch_of[part]] += at_share(curve->error_us, parts[part]);
        }
        for (int s = 0; s < STRETCHES; s++) {
            if (us[s] > io_us[phase][s]) {
                io_us[phase][s] = us[s];
                io_error_us[phase][s] = error_us[s];
            }
        }
    }
}

/* `plan->sums_us` is already set. */
static void time_shares(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan)
{
    double us[TND_FIT_PHASES][STRETCHES] = {{0}};
    double error_us[TND_FIT_PHASES][STRETCHES] = {{0}};
    plan->fits = true;
    for (int i = 0; i < (tnd_cluster_is_alone(plan) ? 1 : plan->n); i++) {
        const int64_t memory = cluster->ranks[plan->ranks[i]].memory;
        time_rank(cluster, plan, i, us, error_us);
        const int64_t elsewhere =
            /* ranks with a part of the rows copy it to host memory */
            plan->n < 2 ? plan->placed[i] : 0;
        plan->fits = plan->fits && (memory == 0 || plan->bytes[i] - elsewhere <= memory);
    }
    if (plan->has_whole_experts) {
        time_whole_experts(cluster, plan, us);
    }
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        plan->link_us[phase] = tnd_cluster_is_alone(plan) ? 0 : plan->sums_us[phase];
        plan->us[phase] = plan->link_us[phase];
        plan->error_us[phase] = TND_CLUSTER_LINK_ERROR * plan->link_us[phase];
        for (int s = 0; s < STRETCHES; s++) {
            plan->us[phase] += us[phase][s];
            plan->error_us[phase] += error_us[phase][s];
        }
    }
}

/* ---- layers in sequence ---- */

bool tnd_cluster_is_idle(const struct tnd_cluster_plan *plan, int i)
{
    return plan->division != TND_CLUSTER_ROWS && plan->shares[i] == 0 &&
           (plan->division == TND_CLUSTER_LAYERS || plan->layers[i] == 0);
}

/* Bytes of all layers. */
static double layer_bytes(const struct tnd_cluster_model *model)
{
    double bytes = 0;
    for (int part = 0; part < TND_FIT_PARTS; part++) {
        bytes += part != TND_FIT_OUTPUT ? (double)model->bytes[part] : 0;
    }
    return bytes;
}

/* The i-th rank's share of all layers, 0 to 1. */
static double layers_at(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                        int i)
{
    return (double)plan->shares[i] / (double)cluster->model.n_layers;
}

/* Adds the embedding on the first rank with layers, and the classifier on rank `head`. */
static void add_ends(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan, int first,
                     int head)
{
    const struct tnd_cluster_prices *begin = prices_of(cluster, plan, first);
    const struct tnd_cluster_prices *end = prices_of(cluster, plan, head);
    const double share = layers_at(cluster, plan, head);
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        const struct tnd_cluster_curve *curve = &begin->curves[phase][TND_FIT_EMBEDDING];
        plan->us[phase] += curve->us[TND_CLUSTER_POINTS - 1] + at_share(end->head[phase].us, share);
        plan->error_us[phase] +=
            curve->error_us[TND_CLUSTER_POINTS - 1] + at_share(end->head[phase].error_us, share);
    }
}

/* The next rank after i with layers; n: none. */
static int next_stage(const struct tnd_cluster_plan *plan, int i)
{
    do {
        i++;
    } while (i < plan->n && plan->shares[i] == 0);
    return i;
}

static double hop_us(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                     int from, int to, double bytes)
{
    return from == to
               ? 0
               : tnd_cluster_link_us(
                     &cluster->links[plan->ranks[from] * cluster->n + plan->ranks[to]], bytes);
}

/* Time of messages at both ends of the pipeline. After the last rank with layers, a state goes to
 * rank 0 if that has the classifier, or else logits do (llama/shard_layers.c). Rank 0 sends the
 * tokens to all ranks and continues; that is waited for if it has no layers itself. */
static double ends_us(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                      int first, int last, double tokens, double outputs)
{
    const struct tnd_cluster_model *model = &cluster->model;
    const int64_t back = plan->shares[0] > 0 ? model->dim : model->vocabulary;
    return hop_us(cluster, plan, 0, first, 4 * tokens) +
           hop_us(cluster, plan, last, 0, 4 * outputs * (double)back);
}

/* Time of a rank's work beside messages that take `messages_us`. */
static double beside_us(const struct tnd_cluster_rank *rank, double own_us, double messages_us)
{
    return own_us + fmax(rank->beside - 1, 0) * fmin(own_us, messages_us);
}

/* Time for a number of tokens, interpolated linearly between a step of generation and a prompt. */
static double at_tokens(const struct tnd_cluster *cluster, const double us[TND_FIT_PHASES],
                        double tokens)
{
    const double most = (double)cluster->model.prompt_tokens;
    const double least = tokens_of(cluster, TND_FIT_GENERATION);
    const double part = tokens <= least  ? 0
                        : tokens >= most ? 1
                                         : (tokens - least) / (most - least);
    return us[TND_FIT_GENERATION] + part * (us[TND_FIT_PROMPT] - us[TND_FIT_GENERATION]);
}

/* Number of micro-batches for this many tokens. */
static double micro_batches(const struct tnd_cluster *cluster, double tokens)
{
    const struct tnd_cluster_model *model = &cluster->model;
    const double n = floor(tokens * (double)model->n_micro / fmax((double)model->prompt_tokens, 1));
    return fmax(n, 1);
}

/* Prices a phase by layers. A generated token goes through all ranks one after the other. Of a
 * prompt's micro-batches the first one does too; each further one leaves one turn of the slowest
 * rank later, in which the rank receives a state, computes, and sends one. */
static void time_phase(const struct tnd_cluster *cluster, enum tnd_fit_phase phase,
                       struct tnd_cluster_plan *plan, double tokens, int *out_first, int *out_last)
{
    const struct tnd_cluster_model *model = &cluster->model;
    const double n = phase == TND_FIT_PROMPT ? micro_batches(cluster, tokens) : 1;
    const double bytes = 4 * (double)model->dim * tokens / n;
    double us = 0, error_us = 0, turn_us = 0, before_us = 0, all_us = 0;
    *out_first = *out_last = next_stage(plan, -1);
    for (int i = *out_first; i < plan->n; i = next_stage(plan, i)) {
        const struct tnd_cluster_rank *rank = &cluster->ranks[plan->ranks[i]];
        const struct tnd_cluster_prices *prices = prices_of(cluster, plan, i);
        const double share = layers_at(cluster, plan, i);
        const double layers_us[TND_FIT_PHASES] = {
            at_share(prices->layers[TND_FIT_PROMPT].us, share),
            at_share(prices->layers[TND_FIT_GENERATION].us, share)};
        const int next = next_stage(plan, i);
        const double behind_us = next < plan->n ? hop_us(cluster, plan, i, next, bytes) : 0;
        const double own_us = at_tokens(cluster, layers_us, tokens) / n;
        const double turn_own_us = beside_us(rank, own_us, before_us + behind_us);
        us += own_us;
        all_us += behind_us;
        turn_us = fmax(turn_us, before_us + turn_own_us + behind_us);
        error_us += at_share(prices->layers[phase].error_us, share);
        before_us = behind_us;
        *out_last = i;
    }
    turn_us = cluster->is_medium ? fmax(turn_us, all_us) : turn_us; /* messages follow each other */
    plan->link_us[phase] =
        all_us + ends_us(cluster, plan, *out_first, *out_last, tokens, outputs_of(cluster, phase));
    plan->us[phase] = us + (n - 1) * turn_us + plan->link_us[phase];
    plan->error_us[phase] = error_us + TND_CLUSTER_LINK_ERROR * plan->link_us[phase];
}

/* Time for which a message occupies a link: other messages do not wait for its latency. */
static double busy_us(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                      int from, int to, double bytes)
{
    return hop_us(cluster, plan, from, to, bytes) - hop_us(cluster, plan, from, to, 1);
}

/* Prices texts in n batches: each batch goes through all ranks and the classifier before its next
 * tokens can start. A step of all texts takes the time of one batch, or the total work of the
 * busiest rank or link if that is longer. */
static double time_batches(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                           int n, int first, int last, int head)
{
    const struct tnd_cluster_model *model = &cluster->model;
    const double tokens = ceil((double)model->n_texts / n), bytes = 4 * (double)model->dim * tokens;
    const int64_t back = plan->shares[0] > 0 ? model->dim : model->vocabulary;
    const double head_us = at_share(prices_of(cluster, plan, head)->batch_head[n - 1].us,
                                    layers_at(cluster, plan, head));
    const double back_us = busy_us(cluster, plan, last, 0, 4 * tokens * (double)back);
    double round_us = head_us + ends_us(cluster, plan, first, last, tokens, tokens);
    double most_us = back_us, medium_us = back_us, came_us = 0;
    for (int i = first; i < plan->n; i = next_stage(plan, i)) {
        const int next = next_stage(plan, i);
        const struct tnd_cluster_rank *rank = &cluster->ranks[plan->ranks[i]];
        const double sent_us = next < plan->n ? busy_us(cluster, plan, i, next, bytes) : 0;
        const double layers_us =
            at_share(prices_of(cluster, plan, i)->batch[n - 1].us, layers_at(cluster, plan, i));
        const double own_us = beside_us(rank, layers_us, came_us + sent_us);
        round_us += own_us + (next < plan->n ? hop_us(cluster, plan, i, next, bytes) : 0);
        most_us = fmax(most_us, fmax(sent_us, own_us + (i == head ? head_us : 0)));
        medium_us += sent_us;
        came_us = sent_us;
    }
    most_us = fmax(most_us, plan->shares[head] > 0 ? 0 : head_us);
    return fmax(round_us, n * (cluster->is_medium ? fmax(most_us, medium_us) : most_us));
}

/* Chooses the number of batches with the least time; the error bar stays. */
static void choose_batches(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan,
                           int first, int last, int head)
{
    plan->in_flight = 1;
    for (int n = 2; n <= TND_CLUSTER_BATCHES && n <= cluster->model.n_texts && last > 0; n++) {
        const double us = time_batches(cluster, plan, n, first, last, head);
        if (us < plan->us[TND_FIT_GENERATION]) {
            plan->us[TND_FIT_GENERATION] = us;
            plan->in_flight = n;
        }
    }
}

static void time_layers(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan)
{
    const struct tnd_cluster_model *model = &cluster->model;
    int first = 0, last = 0;
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        time_phase(cluster, (enum tnd_fit_phase)phase, plan,
                   tokens_of(cluster, (enum tnd_fit_phase)phase), &first, &last);
    }
    const int head = plan->shares[0] > 0 ? 0 : last;
    add_ends(cluster, plan, first, head);
    choose_batches(cluster, plan, first, last, head);
    plan->fits = true;
    for (int i = 0; i < plan->n; i++) {
        const int64_t memory = cluster->ranks[plan->ranks[i]].memory;
        const double share = layers_at(cluster, plan, i);
        plan->bytes[i] =
            (int64_t)(share * layer_bytes(model)) + (i == head ? model->bytes[TND_FIT_OUTPUT] : 0);
        const int64_t placed = (int64_t)at_share(prices_of(cluster, plan, i)->layers_placed, share);
        plan->placed[i] = placed < plan->bytes[i] ? placed : plan->bytes[i];
        plan->fits = plan->fits && !tnd_cluster_is_idle(plan, i) &&
                     (memory == 0 || plan->bytes[i] - plan->placed[i] <= memory);
    }
}

/* ---- mixed ---- */

/* The part of a mixed plan for prompts, by layers. */
static struct tnd_cluster_plan prompts_of(const struct tnd_cluster_plan *plan)
{
    struct tnd_cluster_plan half = *plan;
    half.division = TND_CLUSTER_LAYERS;
    memcpy(half.shares, plan->layers, sizeof(half.shares));
    return half;
}

/* Time of moving a prompt's keys and values from the ranks of the layers to those of the heads.
 * Each rank sends its messages one after the other, and receives them so. */
static double find_move_us(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan)
{
    const struct tnd_cluster_model *model = &cluster->model;
    const double all = model->kv_bytes * (double)model->prompt_tokens;
    double out_us[TND_CLUSTER_MOST] = {0}, most_us = 0, all_us = 0;
    for (int to = 0; to < plan->n; to++) {
        double parts[TND_FIT_PARTS], in_us = 0;
        find_parts(model, plan, to, parts);
        for (int from = 0; from < plan->n; from++) {
            const double share = (double)plan->layers[from] / (double)model->n_layers;
            const double bytes = all * share * parts[TND_FIT_ATTENTION];
            const double us = bytes > 0 ? hop_us(cluster, plan, from, to, bytes) : 0;
            in_us += us;
            out_us[from] += us;
        }
        most_us = fmax(most_us, in_us);
        all_us += in_us;
    }
    for (int from = 0; from < plan->n; from++) {
        most_us = fmax(most_us, out_us[from]);
    }
    return cluster->is_medium ? all_us : most_us;
}

/* Bytes of the i-th rank: the weights of its layers and those of its rows, since both are packed
 * even if they are the same. Keys and values that belong to both are kept once, and so is what is
 * not divided. */
static double mixed_bytes(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                          int i, bool has_classifier)
{
    const struct tnd_cluster_model *model = &cluster->model;
    const double share = (double)plan->layers[i] / (double)model->n_layers;
    double parts[TND_FIT_PARTS], bytes = 0;
    find_parts(model, plan, i, parts);
    for (int part = 0; part < TND_FIT_PARTS; part++) {
        const double whole = part == TND_FIT_OUTPUT ? has_classifier : share;
        bytes += (model->units[part] > 0 ? whole + parts[part] : 1) * (double)model->bytes[part];
    }
    return bytes - share * parts[TND_FIT_ATTENTION] * (double)model->cache_bytes;
}

/* Fills in the bytes of all ranks, and `by_cpu`: ranks whose device cannot hold both rows and
 * layers use their CPU alone, as sessions do (llama/place_session.c). */
static void find_mixed_bytes(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan)
{
    int head = plan->n - 1;
    while (head > 0 && plan->layers[head] == 0) {
        head--;
    }
    head = plan->layers[0] > 0 ? 0 : head;
    plan->by_cpu = 0;
    for (int i = 0; i < plan->n; i++) {
        const struct tnd_cluster_rank *rank = &cluster->ranks[plan->ranks[i]];
        plan->bytes[i] = (int64_t)mixed_bytes(cluster, plan, i, i == head);
        plan->by_cpu |= (uint64_t)(rank->device_memory < plan->bytes[i]) << i;
    }
}

/* `plan->sums_us` is already set, and `plan->move_us` for more than EXACT ranks. */
static void time_mixed(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan)
{
    find_mixed_bytes(cluster, plan);
    struct tnd_cluster_plan by_layers = prompts_of(plan), by_rows = *plan;
    plan->move_us = plan->n <= EXACT ? find_move_us(cluster, plan) : plan->move_us;
    time_shares(cluster, &by_rows);
    time_layers(cluster, &by_layers);
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        plan->us[phase] = by_rows.us[phase];
        plan->error_us[phase] = by_rows.error_us[phase];
        plan->link_us[phase] = by_rows.link_us[phase];
    }
    plan->us[TND_FIT_PROMPT] = by_layers.us[TND_FIT_PROMPT] + plan->move_us;
    plan->error_us[TND_FIT_PROMPT] =
        by_layers.error_us[TND_FIT_PROMPT] + TND_CLUSTER_LINK_ERROR * plan->move_us;
    plan->link_us[TND_FIT_PROMPT] = by_layers.link_us[TND_FIT_PROMPT] + plan->move_us;
    plan->fits = true;
    for (int i = 0; i < plan->n; i++) {
        const struct tnd_cluster_rank *rank = &cluster->ranks[plan->ranks[i]];
        const bool is_held = rank->has_device && (plan->by_cpu >> i & 1) == 0;
        plan->placed[i] = is_held ? plan->bytes[i] : 0;
        plan->fits = plan->fits && !tnd_cluster_is_idle(plan, i) &&
                     (rank->memory == 0 || plan->bytes[i] <= rank->memory);
    }
}

/* Whether a batch of this many tokens is faster by layers than by rows. */
static bool is_prompt(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                      double tokens)
{
    struct tnd_cluster_plan by_rows = *plan, by_layers = prompts_of(plan);
    const double most = (double)cluster->model.prompt_tokens;
    int first, last;
    memset(by_rows.sums_us, 0, sizeof(by_rows.sums_us));
    time_shares(cluster, &by_rows);
    const double rows_us = at_tokens(cluster, by_rows.us, tokens) +
                           (tnd_cluster_is_alone(plan) ? 0 : messages_us(cluster, plan, tokens, 1));
    time_phase(cluster, TND_FIT_PROMPT, &by_layers, tokens, &first, &last);
    add_ends(cluster, &by_layers, first, by_layers.shares[0] > 0 ? 0 : last);
    return by_layers.us[TND_FIT_PROMPT] + plan->move_us * tokens / fmax(most, 1) <= rows_us;
}

int64_t tnd_cluster_prompt_batch(const struct tnd_cluster *cluster,
                                 const struct tnd_cluster_plan *plan)
{
    int64_t batch = cluster->model.prompt_tokens > 2 ? cluster->model.prompt_tokens : 2;
    while (batch / 2 >= 2 && is_prompt(cluster, plan, (double)(batch / 2))) {
        batch /= 2;
    }
    return batch;
}

/* ---- all divisions ---- */

const char *tnd_cluster_division_name(enum tnd_cluster_division division)
{
    static const char *const names[TND_CLUSTER_DIVISIONS] = {"rows", "layers", "mixed"};
    return names[division];
}

bool tnd_cluster_may_divide(const struct tnd_cluster *cluster, enum tnd_cluster_division division,
                            int n)
{
    const struct tnd_cluster_model *model = &cluster->model;
    if (n < 2) {
        return division == TND_CLUSTER_ROWS;
    }
    return (cluster->refused >> division & 1) == 0 && !model->is_whole &&
           (division == TND_CLUSTER_LAYERS || model->undivided == NULL) &&
           (division == TND_CLUSTER_ROWS || (model->n_micro > 0 && model->n_layers >= n));
}

int tnd_cluster_shares(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan)
{
    return plan->division == TND_CLUSTER_LAYERS ? (int)cluster->model.n_layers : STEPS;
}

void tnd_cluster_time_again(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan)
{
    plan->in_flight = 0;
    plan->by_cpu = 0;
    if (plan->division == TND_CLUSTER_MIXED) {
        time_mixed(cluster, plan);
    } else if (plan->division == TND_CLUSTER_LAYERS) {
        time_layers(cluster, plan);
    } else {
        time_shares(cluster, plan);
    }
}

void tnd_cluster_time(const struct tnd_cluster *cluster, struct tnd_cluster_plan *io_plan)
{
    for (int phase = 0; phase < TND_FIT_PHASES && io_plan->division != TND_CLUSTER_LAYERS;
         phase++) {
        io_plan->sums_us[phase] =
            messages_us(cluster, io_plan, tokens_of(cluster, (enum tnd_fit_phase)phase),
                        outputs_of(cluster, (enum tnd_fit_phase)phase));
    }
    io_plan->move_us = io_plan->division == TND_CLUSTER_MIXED ? find_move_us(cluster, io_plan) : 0;
    tnd_cluster_time_again(cluster, io_plan);
}

double tnd_cluster_plan_us(const struct tnd_cluster_plan *plan, const double count[TND_FIT_PHASES])
{
    return count[TND_FIT_PROMPT] * plan->us[TND_FIT_PROMPT] +
           count[TND_FIT_GENERATION] * plan->us[TND_FIT_GENERATION];
}
