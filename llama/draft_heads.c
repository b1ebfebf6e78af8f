/* SPDX-License-Identifier: MIT
 * Drafts by a layer that predicts ahead. Its session holds, in sequence, the keys and values that
 * the layer computed from the states it was given. Their positions need not match the model's,
 * because rope depends on distances only; states that were lost (a loaded text, a rollback) leave a
 * gap, which only costs the quality of drafts. */
#include "llama/draft_heads.h"

#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"

enum {
    MANY = 64,  /* pending states from which on the layer decodes them even if nothing is drafted */
    CHUNK = 512 /* states that it decodes per batch */
};

/* What the draft layer has decoded of a sequence. */
struct shown {
    int64_t n_held; /* states that the layer has decoded */
    int64_t next;   /* position of the first pending one */
    float *states;  /* {dim, capacity}: pending states */
    int64_t n, capacity;
};

struct tnd_draft_heads {
    tandem_session *session;
    int64_t dim;
    int n_sequences;
    struct shown *texts; /* {n_sequences} */
    float *own;          /* {dim}: the layer's own output state */
};

enum tandem_status tnd_draft_heads_new(const tandem_session *session,
                                       struct tnd_draft_heads **out_heads,
                                       struct tandem_error *error)
{
    const tandem_model *model = session->model;
    const struct tandem_session_options options = {.size = sizeof(options),
                                                   .context = session->n_positions,
                                                   .n_cells = session->cache.n_cells,
                                                   .n_sequences = session->n_sequences,
                                                   .cache_type = session->cache.type,
                                                   .is_unfused = session->cache.is_transposed,
                                                   .has_embeddings = true,
                                                   .micro_batches = 1};
    if (model->nextn == NULL) {
        return tnd_llama_fail(error, TANDEM_E_NOT_FOUND, "draft", 0, 0,
                              "llama: the model's file has no layers that predict ahead (nextn)");
    }
    struct tnd_draft_heads *heads = calloc(1, sizeof(*heads));
    if (heads == NULL) {
        return tnd_llama_no_memory(error);
    }
    heads->dim = model->hparams.dim;
    heads->n_sequences = session->n_sequences;
    heads->texts = calloc((size_t)session->n_sequences, sizeof(heads->texts[0]));
    heads->own = malloc((size_t)heads->dim * sizeof(heads->own[0]));
    enum tandem_status status =
        heads->texts != NULL && heads->own != NULL ? TANDEM_OK : tnd_llama_no_memory(error);
    if (status == TANDEM_OK) {
        status =
            tandem_session_new(model->nextn, session->runtime, &options, &heads->session, error);
    }
    if (status != TANDEM_OK) {
        tnd_draft_heads_free(heads);
        return status;
    }
    *out_heads = heads;
    return TANDEM_OK;
}

void tnd_draft_heads_free(struct tnd_draft_heads *heads)
{
    if (heads == NULL) {
        return;
    }
    for (int i = 0; heads->texts != NULL && i < heads->n_sequences; i++) {
        free(heads->texts[i].states);
    }
    tandem_session_free(heads->session);
    free(heads->texts);
    free(heads->own);
    free(heads);
}

tandem_session *tnd_draft_heads_session(const struct tnd_draft_heads *heads)
{
    return heads->session;
}

/* Drops all but the first n states of the layer's session. */
static void cut(struct tnd_draft_heads *heads, int32_t sequence, int64_t n)
{
    struct shown *shown = &heads->texts[sequence];
    shown->n_held = tandem_session_rollback(heads->session, sequence, n);
    if (shown->n_held != n) {
        shown->n_held = tandem_session_rollback(heads->session, sequence, 0);
    }
}

/* ---- states ---- */

static bool reserve(struct shown *shown, int64_t dim)
{
    if (shown->n < shown->capacity) {
        return true;
    }
    const int64_t capacity = 2 * shown->capacity + 16;
    float *grown = realloc(shown->states, (size_t)(capacity * dim) * sizeof(grown[0]));
    if (grown == NULL) {
        return false;
    }
    shown->states = grown;
    shown->capacity = capacity;
    return true;
}

void tnd_draft_heads_note(struct tnd_draft_heads *heads, int32_t sequence, int64_t position,
                          const float *state)
{
    struct shown *shown = &heads->texts[sequence];
    if (position < shown->next) { /* the previous state was decoded with a token that was dropped */
        const int64_t first = shown->next - shown->n_held;
        const int64_t keep = position - 1 - first;
        cut(heads, sequence, keep > 0 ? keep : 0);
        shown->n = 0;
        shown->next = position;
    } else if (position <= shown->next + shown->n) {
        shown->n = position - shown->next;
    } else {
        shown->n = 0;
        shown->next = position;
    }
    if (!reserve(shown, heads->dim)) {
        shown->n = 0;
        shown->next = position + 1;
        return;
    }
    memcpy(shown->states + shown->n++ * heads->dim, state, (size_t)heads->dim * sizeof(state[0]));
}

static enum tandem_status decode(struct tnd_draft_heads *heads, int32_t sequence,
                                 const int32_t *tokens, const float *states, int64_t n,
                                 bool wants_logits)
{
    const struct tandem_batch_entry entry = {tokens, n, sequence, wants_logits};
    heads->session->hidden = states;
    const enum tandem_status status = tandem_session_decode_batch(heads->session, &entry, 1, NULL);
    heads->session->hidden = NULL;
    return status;
}

/* Decodes the pending states whose next token is known. Returns how many; 0 also if states are
 * missing; -1: failure. */
static int64_t show(struct tnd_draft_heads *heads, int32_t sequence, const int32_t *text,
                    int64_t n_text, bool wants_logits)
{
    struct shown *shown = &heads->texts[sequence];
    const int64_t n = n_text - 1 - shown->next;
    if (n < 1 || n > shown->n) {
        return 0;
    }
    for (int64_t i = 0; i < n; i++) {
        if (text[shown->next + 1 + i] < 0) {
            return 0;
        }
    }
    if (tandem_session_context(heads->session) < shown->n_held + n) {
        cut(heads, sequence, 0);
    }
    for (int64_t at = 0; at < n;) {
        const int64_t m = n - at < CHUNK ? n - at : CHUNK;
        if (decode(heads, sequence, text + shown->next + 1 + at, shown->states + at * heads->dim, m,
                   wants_logits && at + m == n) != TANDEM_OK) {
            cut(heads, sequence, 0);
            shown->next += shown->n;
            shown->n = 0;
            return -1;
        }
        at += m;
    }
    shown->n_held += n;
    shown->next += n;
    shown->n -= n;
    memmove(shown->states, shown->states + n * heads->dim,
            (size_t)(shown->n * heads->dim) * sizeof(shown->states[0]));
    return n;
}

void tnd_draft_heads_catch_up(struct tnd_draft_heads *heads, int32_t sequence, const int32_t *text,
                              int64_t n)
{
    if (heads->texts[sequence].n >= MANY) {
        (void)show(heads, sequence, text, n, false);
    }
}

/* ---- drafts ---- */

static int32_t likeliest(const float *logits, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return (int32_t)best;
}

int tnd_draft_heads_ask(struct tnd_draft_heads *heads, int32_t sequence, const int32_t *text,
                        int64_t n, int k, int32_t *out)
{
    struct shown *shown = &heads->texts[sequence];
    const int64_t n_shown = show(heads, sequence, text, n, true);
    int n_drafted = 0;
    if (n_shown < 1) {
        return (int)n_shown;
    }
    while (n_drafted < k) {
        out[n_drafted] = likeliest(tandem_session_logits(heads->session, sequence),
                                   heads->session->model->hparams.vocabulary);
        n_drafted++;
        if (n_drafted == k || tandem_session_context(heads->session) < shown->n_held + n_drafted) {
            break;
        }
        memcpy(heads->own, tandem_session_embedding(heads->session, sequence),
               (size_t)heads->dim * sizeof(heads->own[0]));
        if (decode(heads, sequence, &out[n_drafted - 1], heads->own, 1, true) != TANDEM_OK) {
            break;
        }
    }
    cut(heads, sequence, shown->n_held); /* states of its own are not the model's */
    return n_drafted;
}
