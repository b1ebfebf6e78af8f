/* SPDX-License-Identifier: MIT
 * Drafts of a session: the text of each sequence, what is drafted after it, and what was accepted.
 * Start at tnd_llama_decode_ahead. */
#include "llama/draft.h"

#include <stdlib.h>
#include <string.h>

#include "llama/draft_heads.h"
#include "llama/llama_error.h"
#include "llama/ranks.h"

enum {
    PROBE = 4,           /* tokens of a draft that only tests whether drafting pays again */
    FIRST_WAIT = 64,     /* tokens until the first test, doubled */
    LONGEST_WAIT = 1024, /* each time up to this */
    CHUNK = 512,         /* prompt tokens that the draft model decodes per batch */
    MOST_FAILURES = 4    /* consecutive failures of the draft model after which it is not used any
                          * more */
};

static const double FIRST_HOPE = 0.6; /* assumed acceptance of a draft before any was seen */

/* A list of tokens. */
struct text {
    int32_t *tokens;
    int64_t n, capacity;
};

/* Drafts for one sequence. */
struct ahead {
    struct text text;               /* all tokens of the sequence; -1: lost to a window */
    struct text held;               /* those tokens and drafts that the draft model has decoded */
    int32_t tokens[TND_DRAFT_MOST]; /* drafted tokens that follow the text, */
    int n_drafted;                  /* of which this many have cells and logits; */
    int next;                       /* the first one that the caller has not asked for */
    bool has_guess;                 /* tokens[0] is a guess that was not decoded */
    bool is_asked;                  /* the caller wants the next drafted token */
    struct tnd_draft_hope hope;
    float *results; /* {room, vocabulary, and dim for a session with embeddings} */
    int room;
};

struct tnd_llama_draft {
    tandem_session *model;         /* session of a smaller model, or */
    struct tnd_draft_heads *heads; /* a layer of the model; both NULL: look-up in the text */
    int most, n_sequences;
    bool is_fixed;
    struct ahead *texts;                /* {n_sequences} */
    struct tandem_batch_entry *entries; /* {n_sequences}: entries to compute, and how many */
    int64_t *drafted;                   /* of their last tokens are drafts */
    int32_t *tokens;                    /* {n_sequences, 1 + TND_DRAFT_MOST} */
    int n_failed;                       /* consecutive failures of the draft model */
    struct tandem_draft_info info;
};

/* The session that computes drafts; NULL: they are looked up in the text. */
static tandem_session *asked(const struct tnd_llama_draft *draft)
{
    return draft->heads != NULL ? tnd_draft_heads_session(draft->heads) : draft->model;
}

bool tnd_llama_draft_wants_hidden(const tandem_session *session)
{
    return session->draft != NULL && session->draft->heads != NULL &&
           !session->draft->info.has_failed;
}

void tnd_llama_draft_note(tandem_session *session, int32_t sequence, int64_t position,
                          const float *state)
{
    tnd_draft_heads_note(session->draft->heads, sequence, position, state);
}

/* ---- texts ---- */

/* False: no memory; the text is empty then. */
static bool append(struct text *text, const int32_t *tokens, int64_t n)
{
    if (text->n + n > text->capacity) {
        const int64_t capacity = 2 * (text->n + n) + 64;
        int32_t *grown = realloc(text->tokens, (size_t)capacity * sizeof(grown[0]));
        if (grown == NULL) {
            text->n = 0;
            return false;
        }
        text->tokens = grown;
        text->capacity = capacity;
    }
    memcpy(text->tokens + text->n, tokens, (size_t)n * sizeof(tokens[0]));
    text->n += n;
    return true;
}

/* Rebuilds a text from the tokens in the cache: after a state was read, or after memory was
 * short. */
static bool gather(const tandem_session *session, int32_t sequence, struct text *text)
{
    const struct tnd_llama_kv_cache *cache = &session->cache;
    const int64_t n = session->sequences[sequence].n_past;
    const int32_t none = -1;
    text->n = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!append(text, &none, 1)) {
            return false;
        }
    }
    for (int64_t i = 0; i < cache->n_used; i++) {
        const int64_t position = (int64_t)cache->orders[i] - (int64_t)sequence * TND_LLAMA_SPAN;
        if (position >= 0 && position < n) {
            text->tokens[position] = cache->tokens[i];
        }
    }
    return true;
}

/* Completes the text of a sequence up to its position. */
static bool keep_text(const tandem_session *session, int32_t sequence)
{
    struct text *text = &session->draft->texts[sequence].text;
    return text->n == session->sequences[sequence].n_past || gather(session, sequence, text);
}

bool tnd_llama_draft_is_ahead(const tandem_session *session)
{
    return session->draft != NULL &&
           session->draft->texts[0].next < session->draft->texts[0].n_drafted;
}

void tnd_llama_draft_drop(tandem_session *session, int32_t sequence)
{
    if (session->draft == NULL) {
        return;
    }
    struct ahead *ahead = &session->draft->texts[sequence];
    if (ahead->next < ahead->n_drafted) {
        tnd_llama_kv_cache_forget(&session->cache, sequence, session->sequences[sequence].n_past,
                                  TND_LLAMA_POSITIONS);
    }
    ahead->n_drafted = ahead->next = 0;
    ahead->has_guess = false;
}

void tnd_llama_draft_forget(tandem_session *session, int32_t sequence, int64_t n)
{
    if (session->draft != NULL) {
        struct ahead *ahead = &session->draft->texts[sequence];
        tnd_llama_draft_drop(session, sequence);
        ahead->text.n = n < ahead->text.n ? n : ahead->text.n;
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

static bool decode_draft(struct tnd_llama_draft *draft, struct ahead *ahead, int32_t sequence,
                         const int32_t *tokens, int64_t n)
{
    for (int64_t at = 0; at < n;) {
        const int64_t m = n - at < CHUNK ? n - at : CHUNK;
        const struct tandem_batch_entry entry = {tokens + at, m, sequence, at + m == n};
        if (tandem_session_decode_batch(draft->model, &entry, 1, NULL) != TANDEM_OK ||
            !append(&ahead->held, tokens + at, m)) {
            return false;
        }
        at += m;
    }
    return true;
}

/* Drops all cells of the draft model's session, which may have too few for all texts; they are
 * decoded again when needed. */
static void note_failure(struct tnd_llama_draft *draft)
{
    for (int i = 0; i < draft->model->n_sequences; i++) {
        (void)tandem_session_rollback(draft->model, i, 0);
    }
    for (int i = 0; i < draft->n_sequences; i++) {
        draft->texts[i].held.n = 0;
    }
    draft->info.has_failed = ++draft->n_failed >= MOST_FAILURES;
}

/* Drafts with the draft model. Its session keeps the prefix that it shares with this text. */
static int ask_model(struct tnd_llama_draft *draft, int32_t sequence, int n, int32_t *out)
{
    struct ahead *ahead = &draft->texts[sequence];
    const struct text *text = &ahead->text;
    int64_t common = 0;
    while (common < ahead->held.n && common + 1 < text->n &&
           ahead->held.tokens[common] == text->tokens[common]) {
        common++;
    }
    if (tandem_session_context(draft->model) < text->n + n) {
        return 0;
    }
    ahead->held.n = tandem_session_rollback(draft->model, sequence, common);
    if (ahead->held.n != common) {
        ahead->held.n = tandem_session_rollback(draft->model, sequence, 0);
    }
    const int64_t n_new = text->n - ahead->held.n;
    for (int64_t i = ahead->held.n; i < text->n; i++) {
        if (text->tokens[i] < 0) {
            return 0;
        }
    }
    if (!decode_draft(draft, ahead, sequence, text->tokens + ahead->held.n, n_new)) {
        note_failure(draft);
        return 0;
    }
    for (int k = 0; k < n; k++) {
        out[k] = likeliest(tandem_session_logits(draft->model, sequence),
                           draft->model->model->hparams.vocabulary);
        if (k + 1 < n && !decode_draft(draft, ahead, sequence, &out[k], 1)) {
            note_failure(draft);
            return k + 1;
        }
    }
    draft->n_failed = 0;
    return n;
}

static int ask_heads(struct tnd_llama_draft *draft, int32_t sequence, int n, int32_t *out)
{
    const struct text *text = &draft->texts[sequence].text;
    const int k = tnd_draft_heads_ask(draft->heads, sequence, text->tokens, text->n, n, out);
    draft->n_failed = k >= 0 ? 0 : draft->n_failed + 1;
    draft->info.has_failed = draft->n_failed >= MOST_FAILURES;
    return k > 0 ? k : 0;
}

/* Maximum number of tokens to draft after an entry; 0 if none can be. Drafts from the text itself
 * are written to `out`. */
static int room_of(const tandem_session *session, const struct tandem_batch_entry *entry,
                   int32_t *out)
{
    struct tnd_llama_draft *draft = session->draft;
    struct ahead *ahead = &draft->texts[entry->sequence];
    const int64_t left = session->n_positions - session->sequences[entry->sequence].n_past - 1;
    const int most = left < draft->most ? (int)left : draft->most;
    if (entry->n != 1 || !entry->wants_logits || most < 1) {
        return 0;
    }
    return asked(draft) != NULL ? (draft->info.has_failed ? 0 : most)
                                : tnd_draft_look_up(ahead->text.tokens, ahead->text.n, most, out);
}

/* Number of floats in the results of a drafted token. */
static size_t results_of(const tandem_session *session)
{
    const struct tandem_hparams *h = &session->model->hparams;
    return (size_t)h->vocabulary + (session->has_embeddings ? (size_t)h->dim : 0);
}

/* Allocates memory for the results of n drafted tokens. */
static bool reserve_results(const tandem_session *session, struct ahead *ahead, int n)
{
    if (n > ahead->room) {
        float *grown = realloc(ahead->results, (size_t)n * results_of(session) * sizeof(grown[0]));
        if (grown == NULL) {
            return false;
        }
        ahead->results = grown;
        ahead->room = n;
    }
    return true;
}

/* Retries a draft model that did not pay, at growing intervals. */
static int probe(struct ahead *ahead, int room, int chosen)
{
    struct tnd_draft_hope *hope = &ahead->hope;
    if (chosen > 0) {
        hope->period = FIRST_WAIT;
        hope->wait = FIRST_WAIT;
        return chosen;
    }
    if (--hope->wait > 0) {
        return 0;
    }
    hope->period = 2 * hope->period < LONGEST_WAIT ? 2 * hope->period : LONGEST_WAIT;
    hope->wait = hope->period;
    return room < PROBE ? room : PROBE;
}

/* Time per token of the draft model; 0: there is none, or its time is unknown. */
static double draft_token_us(const struct tnd_llama_draft *draft)
{
    const tandem_session *by = asked(draft);
    return by != NULL ? tnd_batch_times_expect(&by->times, 1, true).us : 0;
}

/* Adds drafts to the entries to compute. */
static void add_drafts(tandem_session *session, int64_t n)
{
    struct tnd_llama_draft *draft = session->draft;
    const struct tnd_draft_hope *hopes[TND_LLAMA_MAX_SEQUENCES];
    int room[TND_LLAMA_MAX_SEQUENCES], chosen[TND_LLAMA_MAX_SEQUENCES];
    int64_t m = 0;
    tnd_llama_predict_times(session);
    for (int64_t i = 0; i < n; i++) {
        const struct tandem_batch_entry *entry = &draft->entries[i];
        hopes[i] = &draft->texts[entry->sequence].hope;
        room[i] = room_of(session, entry, draft->texts[entry->sequence].tokens);
        m += entry->n;
    }
    if (draft->is_fixed) {
        memcpy(chosen, room, (size_t)n * sizeof(room[0]));
    } else {
        tnd_draft_choose(&session->times, draft_token_us(draft), hopes, room, (int)n, m, chosen);
    }
    for (int64_t i = 0; i < n; i++) {
        struct tandem_batch_entry *entry = &draft->entries[i];
        struct ahead *ahead = &draft->texts[entry->sequence];
        int k = asked(draft) != NULL && room[i] > 0 ? probe(ahead, room[i], chosen[i]) : chosen[i];
        if (k > 0 && asked(draft) != NULL) {
            k = draft->heads != NULL ? ask_heads(draft, entry->sequence, k, ahead->tokens)
                                     : ask_model(draft, entry->sequence, k, ahead->tokens);
        }
        ahead->has_guess = k == 0 && asked(draft) == NULL && room[i] > 0;
        if (k == 0 || !reserve_results(session, ahead, k)) {
            continue;
        }
        int32_t *tokens = draft->tokens + (int64_t)entry->sequence * (1 + TND_DRAFT_MOST);
        tokens[0] = entry->tokens[0];
        memcpy(tokens + 1, ahead->tokens, (size_t)k * sizeof(tokens[0]));
        entry->tokens = tokens;
        entry->n = 1 + k;
        draft->drafted[i] = k;
    }
}

float *tnd_llama_draft_results(const tandem_session *session, int32_t sequence, int64_t i)
{
    return session->draft->texts[sequence].results + (size_t)i * results_of(session);
}

/* ---- decoding ---- */

/* Whether the token was drafted and decoded already. */
static bool is_ahead(const struct tnd_llama_draft *draft, const struct tandem_batch_entry *entry)
{
    const struct ahead *ahead = &draft->texts[entry->sequence];
    return entry->n == 1 && entry->wants_logits && ahead->next < ahead->n_drafted &&
           ahead->tokens[ahead->next] == entry->tokens[0];
}

/* The caller's choice shows whether the draft, or the guess, was right. */
static void learn(struct tnd_llama_draft *draft, const struct tandem_batch_entry *entry)
{
    struct ahead *ahead = &draft->texts[entry->sequence];
    if (entry->n != 1) {
        return;
    }
    if (ahead->next < ahead->n_drafted) {
        tnd_draft_learn(&ahead->hope, ahead->tokens[ahead->next] == entry->tokens[0]);
    } else if (ahead->has_guess) {
        tnd_draft_learn(&ahead->hope, ahead->tokens[0] == entry->tokens[0]);
    }
}

static void take(tandem_session *session, const struct tandem_batch_entry *entry)
{
    struct tnd_llama_sequence *sequence = &session->sequences[entry->sequence];
    struct ahead *ahead = &session->draft->texts[entry->sequence];
    const float *results = tnd_llama_draft_results(session, entry->sequence, ahead->next);
    const size_t vocabulary = (size_t)session->model->hparams.vocabulary;
    memcpy(sequence->logits, results, vocabulary * sizeof(results[0]));
    if (sequence->embedding != NULL) {
        memcpy(sequence->embedding, results + vocabulary,
               (size_t)session->model->hparams.dim * sizeof(results[0]));
        sequence->has_embedding = true;
    }
    sequence->n_past++;
    sequence->has_logits = true;
    ahead->next++;
    session->draft->info.accepted++;
    (void)append(&ahead->text, entry->tokens, 1);
}

/* Computes the entries that were not drafted, with drafts after them. After a failure nothing was
 * appended. Without enough cells there are no drafts, which is no failure. */
static enum tandem_status compute(tandem_session *session, int64_t n, struct tandem_error *error)
{
    struct tnd_llama_draft *draft = session->draft;
    for (int64_t i = 0; i < n; i++) {
        struct text *text = &draft->texts[draft->entries[i].sequence].text;
        const bool is_kept = keep_text(session, draft->entries[i].sequence);
        draft->drafted[i] = 0;
        if (!is_kept || !append(text, draft->entries[i].tokens, draft->entries[i].n)) {
            return tnd_llama_no_memory(error);
        }
    }
    add_drafts(session, n);
    enum tandem_status status = tnd_llama_decode(session, draft->entries, draft->drafted, n, error);
    draft->info.batches += status == TANDEM_OK;
    for (int64_t i = 0; i < n; i++) {
        struct ahead *ahead = &draft->texts[draft->entries[i].sequence];
        const int drafted = status == TANDEM_OK ? (int)draft->drafted[i] : 0;
        ahead->n_drafted = drafted;
        ahead->next = 0;
        draft->info.drafted += drafted;
        draft->info.last = drafted;
        if (draft->heads != NULL && status == TANDEM_OK) {
            tnd_draft_heads_catch_up(draft->heads, draft->entries[i].sequence, ahead->text.tokens,
                                     ahead->text.n);
        }
    }
    return status;
}

static void drop_all(tandem_session *session)
{
    for (int i = 0; i < session->n_sequences; i++) {
        tnd_llama_draft_drop(session, i);
    }
}

enum tandem_status tnd_llama_decode_ahead(tandem_session *session,
                                          const struct tandem_batch_entry *entries,
                                          int64_t n_entries, struct tandem_error *error)
{
    struct tnd_llama_draft *draft = session->draft;
    int64_t n = 0;
    for (int64_t i = 0; i < n_entries; i++) {
        learn(draft, &entries[i]);
        draft->texts[entries[i].sequence].is_asked = is_ahead(draft, &entries[i]);
        if (!draft->texts[entries[i].sequence].is_asked) {
            tnd_llama_draft_drop(session, entries[i].sequence);
            draft->entries[n++] = entries[i];
        }
    }
    enum tandem_status status = n > 0 ? compute(session, n, error) : TANDEM_OK;
    if (status == TANDEM_E_LIMIT) { /* drafts may hold the cells that are missing */
        drop_all(session);
        memset(draft->drafted, 0, (size_t)n_entries * sizeof(draft->drafted[0]));
        status = tnd_llama_decode(session, entries, draft->drafted, n_entries, error);
        n = n_entries;
    }
    for (int64_t i = 0; i < n_entries && status != TANDEM_OK; i++) {
        tnd_llama_draft_forget(session, entries[i].sequence,
                               session->sequences[entries[i].sequence].n_past);
    }
    LLAMA_TRY(status);
    for (int64_t i = 0; n < n_entries && i < n_entries; i++) {
        if (draft->texts[entries[i].sequence].is_asked) {
            take(session, &entries[i]);
        }
    }
    draft->info.tokens += n_entries;
    return TANDEM_OK;
}

/* ---- public interface ---- */

static void free_draft(struct tnd_llama_draft *draft, int n)
{
    for (int i = 0; draft != NULL && draft->texts != NULL && i < n; i++) {
        free(draft->texts[i].text.tokens);
        free(draft->texts[i].held.tokens);
        free(draft->texts[i].results);
    }
    if (draft != NULL) {
        tnd_draft_heads_free(draft->heads);
        free(draft->texts);
        free(draft->entries);
        free(draft->drafted);
        free(draft->tokens);
        free(draft);
    }
}

void tnd_llama_draft_fini(tandem_session *session)
{
    free_draft(session->draft, session->n_sequences);
    session->draft = NULL;
}

static enum tandem_status check(const tandem_session *session,
                                const struct tandem_draft_options *options,
                                struct tandem_error *error)
{
    const tandem_session *draft = options->model;
    const int64_t vocabulary = session->model->hparams.vocabulary;
    if (options->most < 0 || options->most > TND_DRAFT_MOST) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "draft", options->most, TND_DRAFT_MOST,
                              "llama: drafts of %d tokens, expected 1 to %d, or 0: %d",
                              options->most, (int)TND_DRAFT_MOST, (int)TND_DRAFT_MOST);
    }
    if (options->by_heads && draft != NULL) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "draft", 0, 0,
                              "llama: drafts by a model and by layers of its own, expected one");
    }
    LLAMA_TRY(tnd_llama_refuse_ranks(session, "drafts", error));
    LLAMA_TRY(tnd_llama_check_writer(session, error));
    LLAMA_TRY(draft != NULL ? tnd_llama_check_writer(draft, error) : TANDEM_OK);
    if (draft != NULL && draft->model->hparams.vocabulary != vocabulary) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "draft", draft->model->hparams.vocabulary,
                              vocabulary,
                              "llama: the draft model has %lld tokens, the model %lld: expected "
                              "the same vocabulary",
                              (long long)draft->model->hparams.vocabulary, (long long)vocabulary);
    }
    if (draft == session || (draft != NULL && draft->n_sequences < session->n_sequences)) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "draft",
                              draft == session ? 0 : draft->n_sequences, session->n_sequences,
                              "llama: the draft model needs a session of its own with at least %d "
                              "sequences",
                              session->n_sequences);
    }
    return TANDEM_OK;
}

enum tandem_status tandem_session_set_draft(tandem_session *session,
                                            const struct tandem_draft_options *given,
                                            struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    struct tandem_draft_options options = TANDEM_DRAFT_OPTIONS_INIT;
    if (given == NULL) {
        drop_all(session);
        tnd_llama_draft_fini(session);
        return TANDEM_OK;
    }
    LLAMA_TRY(tnd_llama_options_read(given, "draft options", &options, sizeof(options), error));
    LLAMA_TRY(check(session, &options, error));
    const size_t n = (size_t)session->n_sequences;
    struct tnd_llama_draft *draft = calloc(1, sizeof(*draft));
    if (draft != NULL) {
        draft->texts = calloc(n, sizeof(draft->texts[0]));
        draft->entries = calloc(n, sizeof(draft->entries[0]));
        draft->drafted = calloc(n, sizeof(draft->drafted[0]));
        draft->tokens = calloc(n * (1 + TND_DRAFT_MOST), sizeof(draft->tokens[0]));
    }
    if (draft == NULL || draft->texts == NULL || draft->entries == NULL || draft->drafted == NULL ||
        draft->tokens == NULL) {
        free_draft(draft, (int)n);
        return tnd_llama_no_memory(error);
    }
    const enum tandem_status status =
        options.by_heads ? tnd_draft_heads_new(session, &draft->heads, error) : TANDEM_OK;
    if (status != TANDEM_OK) {
        free_draft(draft, (int)n);
        return status;
    }
    draft->model = options.model;
    draft->n_sequences = session->n_sequences;
    draft->is_fixed = options.is_fixed;
    draft->most = options.most > 0 ? options.most : TND_DRAFT_MOST;
    for (size_t i = 0; i < n; i++) {
        draft->texts[i].hope = (struct tnd_draft_hope){
            .acceptance = FIRST_HOPE, .wait = FIRST_WAIT, .period = FIRST_WAIT / 2};
    }
    drop_all(session);
    tnd_llama_draft_fini(session);
    session->draft = draft;
    return TANDEM_OK;
}

bool tandem_session_draft_info(const tandem_session *session, struct tandem_draft_info *out)
{
    if (session == NULL || session->draft == NULL || out == NULL) {
        return false;
    }
    *out = session->draft->info;
    return true;
}
