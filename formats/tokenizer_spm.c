/* SPDX-License-Identifier: MIT
 * The models of sentencepiece. BPE: characters, merged while two neighbours make a token, the best
 * score first. Unigram: the sequence of tokens with the highest sum of log probabilities (Viterbi;
 * Kudo 2018, "Subword regularization"). What has no token becomes bytes or <unk>. */
#include <float.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/tnd_tokenizer.h"

void tnd_ids_add_unknown(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                         struct tnd_ids *ids)
{
    bool has_bytes = tokenizer->has_byte_fallback;
    for (size_t i = 0; i < n && has_bytes; i++) {
        has_bytes = tokenizer->byte_ids[(unsigned char)text[i]] >= 0;
    }
    if (has_bytes) {
        for (size_t i = 0; i < n; i++) {
            tnd_ids_add(ids, tokenizer->byte_ids[(unsigned char)text[i]]);
        }
        return;
    }
    if (tokenizer->unknown >= 0 && !(tokenizer->fuses_unknown && ids->last_is_unknown)) {
        tnd_ids_add(ids, tokenizer->unknown);
        ids->last_is_unknown = true;
    }
}

static void add_symbol(const tandem_tokenizer *tokenizer, const char *text,
                       const struct tnd_symbol *symbol, struct tnd_ids *ids)
{
    if (symbol->length == 0) {
        return;
    }
    if (symbol->id >= 0) {
        tnd_ids_add(ids, symbol->id);
    } else {
        tnd_ids_add_unknown(tokenizer, text + symbol->start, symbol->length, ids);
    }
}

/* A text that merges with nothing around it. */
static void encode_run(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                       struct tnd_merger *merger, struct tnd_ids *ids)
{
    merger->n = 0;
    for (size_t at = 0; at < n;) {
        size_t length = tnd_utf8_loose_length(text + at, n - at);
        int32_t id = tokenizer->matches_inside
                         ? tnd_prefix_longest(&tokenizer->users, text + at, n - at, &length)
                         : -1;
        const bool is_fixed = id >= 0;
        if (!is_fixed) {
            id = tnd_tokenizer_find(tokenizer, text + at, length);
        }
        tnd_merger_add(
            merger, (struct tnd_symbol){
                        .start = at, .length = (uint32_t)length, .id = id, .is_fixed = is_fixed});
        at += length;
    }
    if (tnd_merger_run(merger, tokenizer, text)) {
        for (size_t i = 0; i < merger->n; i++) {
            add_symbol(tokenizer, text, &merger->symbols[i], ids);
        }
    }
}

void tnd_scores_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                       struct tnd_merger *merger, struct tnd_ids *ids)
{
    for (size_t at = 0, length; at < n && !merger->failed; at += length) {
        length = tnd_tokenizer_run(tokenizer, text + at, n - at);
        encode_run(tokenizer, text + at, length, merger, ids);
    }
}

/* ---- unigram ---- */

/* The best way to the end of a prefix of the text. */
struct best_path {
    double score;
    uint32_t from; /* where its last token begins */
    uint32_t next; /* on the best path of the whole text: where the token that follows ends */
    int32_t id;    /* the last token; -1: a character without token */
    bool is_reached;
};

/* As far below the least probable token as sentencepiece puts characters without token. */
#define UNKNOWN_PENALTY 10.0

/* Between two orders of the same tokens rounding alone decides: sentencepiece adds in single
 * precision (EncodeOptimized of unigram_model.cc, 0.2.3), the tokenizers library in double. */
static double sum(const tandem_tokenizer *tokenizer, double score, double base)
{
    return tokenizer->sums_in_float ? (double)(float)(score + base) : score + base;
}

void tnd_unigram_prepare(tandem_tokenizer *tokenizer)
{
    double lowest = (double)FLT_MAX;
    double highest =
        (double)FLT_MIN; /* as in sentencepiece: log probabilities are below, so it is 0 */
    for (int64_t id = 0; id < tokenizer->n_tokens; id++) {
        if (tokenizer->tokens[id].type == TND_TOKEN_NORMAL) {
            const double score = tokenizer->tokens[id].score;
            lowest = score < lowest ? score : lowest;
            highest = score > highest ? score : highest;
        }
    }
    tokenizer->unknown_score = sum(tokenizer, lowest, -UNKNOWN_PENALTY);
    tokenizer->highest_score = highest;
}

static void reach(struct best_path *path, double score, uint32_t from, int32_t id)
{
    if (!path->is_reached || score > path->score) {
        *path = (struct best_path){.score = score, .from = from, .id = id, .is_reached = true};
    }
}

/* Extends the path that ends at `at` by every token that begins there. */
static void extend(const tandem_tokenizer *tokenizer, const char *text, size_t n, size_t at,
                   struct best_path *paths)
{
    const size_t character = tnd_utf8_loose_length(text + at, n - at);
    const double base = paths[at].score;
    bool has_character = false;
    struct tnd_prefix_walk walk = tnd_prefix_begin(&tokenizer->pieces);
    for (size_t i = at; i < n && tnd_prefix_step(&walk, text[i]); i++) {
        const int32_t id = tnd_prefix_id(&walk);
        if (id < 0) {
            continue;
        }
        const size_t length = i + 1 - at;
        const struct tnd_token *token = &tokenizer->tokens[id];
        /* (a bonus by which a user-defined token wins, as in sentencepiece) */
        const double score = token->type == TND_TOKEN_USER && tokenizer->matches_inside
                                 ? (double)length * tokenizer->highest_score - 0.1
                                 : token->score;
        reach(&paths[i + 1], sum(tokenizer, score, base), (uint32_t)at, id);
        has_character = has_character || length == character;
    }
    if (!has_character) {
        reach(&paths[at + character], sum(tokenizer, tokenizer->unknown_score, base), (uint32_t)at,
              -1);
    }
}

void tnd_unigram_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                        struct tnd_ids *ids)
{
    struct best_path *paths = n == 0 ? NULL : tnd_calloc(n + 1, sizeof(paths[0]));
    if (paths == NULL) {
        ids->failed = ids->failed || n > 0;
        return;
    }
    paths[0].is_reached = true;
    for (size_t at = 0; at < n; at += tnd_utf8_loose_length(text + at, n - at)) {
        extend(tokenizer, text, n, at, paths);
    }
    /* The path is known from its end. */
    for (size_t at = n; at > 0; at = paths[at].from) {
        paths[paths[at].from].next = (uint32_t)at;
    }
    for (size_t at = 0; at < n; at = paths[at].next) {
        const size_t end = paths[at].next;
        if (paths[end].id >= 0) {
            tnd_ids_add(ids, paths[end].id);
        } else {
            tnd_ids_add_unknown(tokenizer, text + at, end - at, ids);
        }
    }
    tnd_free(paths);
}
