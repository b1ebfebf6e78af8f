/* SPDX-License-Identifier: MIT
 * Chooses into how many micro-batches a session cuts a batch. Predicted times decide once for each
 * kind of batch; then whole and cut batches alternate until measured times decide, and again after
 * a while. Start at tnd_llama_micro_choose. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/phases.h"
#include "llama/session.h"
#include "llama/shard.h"

enum {
    USES = 8,       /* uses of a choice, whole and cut together, that decide */
    MOST_ALONE = 5, /* uses of a cut batch that ran nothing at once: more than observer's turns */
    AGAIN = 512     /* uses until the next trial */
};
static const double CLEAR_SIGMAS = 3; /* standard errors */

enum tandem_status tnd_llama_micro_init(struct tnd_llama_micro *micro, const tandem_model *model,
                                        struct tandem_error *error)
{
    micro->stages.of_layer =
        calloc((size_t)model->hparams.layers + 1, sizeof(micro->stages.of_layer[0]));
    return micro->stages.of_layer != NULL ? TANDEM_OK : tnd_llama_no_memory(error);
}

void tnd_llama_micro_fini(struct tnd_llama_micro *micro)
{
    free(micro->stages.of_layer);
}

static const char *place_of(void *user, const void *data)
{
    const tandem_session *session = user;
    return tandem_runtime_placed_on(session->runtime, data);
}

/* ---- prices ---- */

struct pricing {
    tandem_session *session;
    struct tnd_llama_batch *batch;
};

static enum tandem_status predict(void *user, int n, struct tandem_prediction *out,
                                  struct tandem_error *error)
{
    const struct pricing *pricing = user;
    tandem_session *session = pricing->session;
    struct tnd_llama_forward forward;
    tnd_llama_cut(pricing->batch, &session->micro.stages, n, &session->micro.split);
    pricing->batch->split = &session->micro.split;
    tandem_context_reset(session->context);
    LLAMA_TRY(tnd_llama_forward(session->model, &session->cache, pricing->batch, session->context,
                                &forward, error));
    return tandem_runtime_predict(session->runtime, forward.graph, out, error);
}

/* ---- choices ---- */

static int64_t power_from(int64_t n)
{
    int64_t power = 1;
    while (power < n) {
        power *= 2;
    }
    return power;
}

/* Batches with the same number of texts, of the same lengths, have the same shape. */
static uint64_t shape_of(const struct tnd_llama_batch *batch, uint64_t places)
{
    uint64_t hash = tnd_llama_mix(places, (uint64_t)batch->m);
    for (int64_t i = 1; i < batch->m; i++) {
        if (batch->sequences[i] != batch->sequences[i - 1]) {
            hash = tnd_llama_mix(hash, (uint64_t)i);
        }
    }
    return hash | 1;
}

static struct tnd_llama_micro_choice *find_choice(struct tnd_llama_micro *micro, uint64_t shape)
{
    const int n = sizeof(micro->choices) / sizeof(micro->choices[0]);
    for (int i = 0; i < n; i++) {
        if (micro->choices[i].shape == shape) {
            return &micro->choices[i];
        }
    }
    struct tnd_llama_micro_choice *choice = &micro->choices[micro->next++ % n];
    *choice = (struct tnd_llama_micro_choice){.shape = shape};
    return choice;
}

/* The variant for this batch: during a trial, cut and whole batches alternate. */
static int turn_of(const struct tnd_llama_micro_choice *choice)
{
    const bool is_cut = choice->state == TND_LLAMA_MICRO_KEPT ||
                        (choice->state == TND_LLAMA_MICRO_TRIAL && choice->n_turns % 2 == 0);
    return is_cut ? choice->n : 1;
}

enum tandem_status tnd_llama_micro_choose(tandem_session *session, struct tnd_llama_batch *batch,
                                          struct tandem_error *error)
{
    struct tnd_llama_micro *micro = &session->micro;
    int n = 1;
    micro->choice = NULL;
    const tandem_model *part = tnd_llama_part_for(session, batch->m);
    const bool is_in_sequence = tnd_llama_by_layers(part);
    const bool may_cut = batch->m > 1 && micro->wanted != 1 && !is_in_sequence;
    const uint64_t places =
        may_cut ? tnd_llama_find_stages(session->model, place_of, session, &micro->stages) : 0;
    if (is_in_sequence) {
        n = tnd_llama_layers_cut(part->shard, batch->m, micro->wanted);
    } else if (places != 0 && micro->wanted > 1) {
        n = micro->is_off ? 1 : micro->wanted;
    } else if (places != 0 && !micro->is_off) {
        struct tnd_llama_micro_choice *choice = find_choice(micro, shape_of(batch, places));
        const int64_t cells = power_from(session->cache.n_used);
        if (choice->cells != cells) {
            struct pricing pricing = {session, batch};
            int chosen = 1;
            LLAMA_TRY(tnd_llama_choose_cut(batch->m, predict, &pricing, &chosen, error));
            if (chosen != choice->n) {
                *choice = (struct tnd_llama_micro_choice){.shape = choice->shape, .n = chosen};
            }
            choice->cells = cells;
        }
        micro->choice = choice->n > 1 ? choice : NULL;
        n = turn_of(choice);
    }
    micro->stages.n_stages = is_in_sequence ? 1 : micro->stages.n_stages;
    tnd_llama_cut(batch, &micro->stages, n, &micro->split);
    batch->split = &micro->split;
    return TANDEM_OK;
}

/* ---- trials ---- */

/* Ends a trial early if the difference is significant. */
static void judge(struct tnd_llama_micro_choice *choice)
{
    const struct tnd_batch_expected whole = tnd_batch_time_judge(&choice->time[0]);
    const struct tnd_batch_expected cut = tnd_batch_time_judge(&choice->time[1]);
    const int64_t n = choice->time[0].n < choice->time[1].n ? choice->time[0].n : choice->time[1].n;
    const bool is_clear =
        fabs(whole.us - cut.us) > CLEAR_SIGMAS * hypot(whole.error_us, cut.error_us);
    if (2 * n >= USES || (n >= 2 && is_clear)) {
        choice->state = cut.us < whole.us ? TND_LLAMA_MICRO_KEPT : TND_LLAMA_MICRO_DROPPED;
    }
}

void tnd_llama_micro_note(tandem_session *session, const struct tnd_llama_split *split, double us)
{
    struct tnd_llama_micro *micro = &session->micro;
    struct tnd_llama_micro_choice *choice = micro->choice;
    const bool is_cut = split->n > 1;
    const bool is_alone = is_cut && !micro->was_at_once;
    micro->n_last = split->n;
    micro->n_batches += micro->stages.n_places > 1 && split->begin[split->n] > 1;
    micro->n_split += is_cut;
    if (choice == NULL) {
        return;
    }
    choice->n_alone = is_cut ? (is_alone ? choice->n_alone + 1 : 0) : choice->n_alone;
    if (++choice->n_turns > AGAIN) { /* repeats the trial: conditions may have changed */
        choice->state = TND_LLAMA_MICRO_TRIAL;
        choice->n_turns = choice->n_alone = 0;
        memset(choice->time, 0, sizeof(choice->time));
    } else if (choice->n_alone > MOST_ALONE) {
        choice->state = TND_LLAMA_MICRO_DROPPED; /* the runtime does not overlap them any more */
    } else if (choice->state == TND_LLAMA_MICRO_TRIAL && !is_alone) {
        tnd_batch_time_note(&choice->time[is_cut], us, choice->n_turns);
        judge(choice);
    }
}

bool tandem_session_micro_batches(const tandem_session *session, struct tandem_micro_batches *out)
{
    if (session == NULL || out == NULL || session->micro.n_batches == 0) {
        return false;
    }
    const struct tnd_llama_micro *micro = &session->micro;
    *out = (struct tandem_micro_batches){micro->stages.n_places, micro->n_last, micro->n_batches,
                                         micro->n_split};
    return true;
}
