/* SPDX-License-Identifier: MIT
 * Micro-batches: if layers are in several places in sequence, a batch is cut so that one place
 * computes a part while the next place computes the previous part. Finds the stages, cuts batches,
 * and chooses the cut with the least predicted time. */
#include <string.h>

#include "llama/llama_error.h"
#include "llama/model.h"

enum {
    PRICED = 4,        /* most micro-batches for which a time is predicted */
    ALIGNED_FROM = 64, /* micro-batches of this many tokens begin at a multiple of */
    ALIGNED = 16       /* tokens that kernels process at once */
};
#define GAIN_ERRORS 2.0  /* error bars that a gain must exceed, */
#define GAIN_LEAST  0.02 /* and share of the time */

uint64_t tnd_llama_mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x100000001b3) ^ hash >> 29; /* FNV-1a, and high bits too */
}

/* ---- places ---- */

enum { KINDS = 2 /* one weight for a layer's attention and one for the rest */ };

static int find_place(const char *places[8], int *io_n, const char *place)
{
    int i = 0;
    while (i < *io_n && strcmp(places[i], place) != 0) {
        i++;
    }
    if (i == *io_n && i < 8) {
        places[(*io_n)++] = place;
    }
    return i;
}

uint64_t tnd_llama_find_stages(const tandem_model *model,
                               const char *(*place_of)(void *user, const void *data), void *user,
                               struct tnd_llama_stages *out)
{
    const char *known[8];
    int last[KINDS] = {-1, -1};
    uint64_t hash = 1;
    out->n_stages = out->n_places = 0;
    for (int64_t l = 0; l < model->hparams.layers; l++) {
        const struct tnd_llama_layer *w = &model->layers[l];
        const tandem_tensor *const weights[KINDS] = {w->wq,
                                                     w->down_exps != NULL ? w->down_exps : w->w2};
        int at[KINDS];
        bool is_new = false;
        for (int i = 0; i < KINDS; i++) {
            const char *place = place_of(user, tandem_tensor_data(weights[i]));
            if (place == NULL) {
                out->n_places = 0;
                return 0;
            }
            at[i] = find_place(known, &out->n_places, place);
            is_new = is_new || at[i] != last[i];
            hash = tnd_llama_mix(hash, (uint64_t)at[i]);
            last[i] = at[i];
        }
        out->n_stages += is_new || at[0] != at[1];
        out->of_layer[l] = out->n_stages - 1;
    }
    return out->n_places > 1 ? hash | 1 : 0;
}

/* ---- cuts ---- */

/* Where a micro-batch that `at` would cut off should begin: at the start of a text if one is
 * near. */
static int64_t begin_near(const struct tnd_llama_batch *batch, int64_t at, int64_t m)
{
    for (int64_t d = 0; d <= m / 4; d++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            const int64_t i = at + sign * d;
            if (i > 0 && i < batch->m && batch->sequences[i] != batch->sequences[i - 1]) {
                return i;
            }
        }
    }
    return m >= ALIGNED_FROM ? (at + ALIGNED / 2) / ALIGNED * ALIGNED : at;
}

void tnd_llama_cut(const struct tnd_llama_batch *batch, const struct tnd_llama_stages *stages,
                   int n, struct tnd_llama_split *out)
{
    *out = (struct tnd_llama_split){.n = 1, .stages = stages->of_layer, .n_stages = 1};
    for (int i = 1; i < n; i++) {
        const int64_t at = begin_near(batch, batch->m * i / n, batch->m / n);
        if (at > out->begin[out->n - 1] && at < batch->m) {
            out->begin[out->n++] = at;
        }
    }
    out->begin[out->n] = batch->m;
    out->n_stages = out->n > 1 ? stages->n_stages : 1;
}

/* ---- prices ---- */

enum tandem_status tnd_llama_choose_cut(int64_t m, tnd_llama_predict_fn predict, void *user,
                                        int *out_n, struct tandem_error *error)
{
    struct tandem_prediction whole, part;
    LLAMA_TRY(predict(user, 1, &whole, error));
    double best_us = whole.us;
    double least_us = whole.us;
    *out_n = 1;
    for (int n = 2; n <= PRICED && n <= m && whole.us > 0; n++) {
        LLAMA_TRY(predict(user, n, &part, error));
        const double gain_us = whole.us - part.us;
        if (part.is_at_once && part.us > 0 && part.us < best_us &&
            gain_us > GAIN_ERRORS * part.gain_error_us && gain_us > GAIN_LEAST * whole.us) {
            best_us = part.us;
            *out_n = n;
        }
        if (!(part.us < least_us)) {
            break; /* more micro-batches will not help */
        }
        least_us = part.us;
    }
    return TANDEM_OK;
}
