/* SPDX-License-Identifier: MIT
 * Steps that rewrite a text or split it into pieces. Rewriting steps make a new text piece by
 * piece; splitting steps make a new list of pieces of the same text. */
#include "formats/tokenizer_steps.h"

#include <string.h>

#include "base/alloc.h"
#include "base/vector.h"
#include "formats/tnd_tokenizer.h"

/* How much steps may lengthen a text: compatibility decomposition makes at most 18 characters of
 * one, so longer growth is an attack. */
#define GROWTH       64
#define GROWTH_SPARE ((size_t)1 << 20)

/* ---- pieces ---- */

void tnd_pieces_fini(struct tnd_pieces *pieces)
{
    tnd_text_fini(&pieces->text);
    tnd_text_fini(&pieces->other);
    tnd_free(pieces->items);
    tnd_free(pieces->other_items);
    *pieces = (struct tnd_pieces){0};
}

static void add_piece(struct tnd_pieces *pieces, struct tnd_piece piece)
{
    if (!tnd_grow(&pieces->items, pieces->n, &pieces->capacity, sizeof(piece))) {
        pieces->failed = true;
        return;
    }
    if (piece.end > piece.start) {
        pieces->items[pieces->n++] = piece;
    }
}

void tnd_pieces_set(struct tnd_pieces *pieces, const char *text, size_t n)
{
    tnd_text_clear(&pieces->text);
    tnd_text_add_bytes(&pieces->text, text, n);
    pieces->limit = n * GROWTH + GROWTH_SPARE;
    pieces->work.n_bytes += n;
    pieces->n = 0;
    pieces->failed = pieces->failed || pieces->text.failed;
    if (!pieces->failed) {
        add_piece(pieces, (struct tnd_piece){.start = 0, .end = n});
    }
}

/* Swaps the list of pieces with the other one, which gets the new pieces; returns how many there
 * were. */
static size_t take_pieces(struct tnd_pieces *pieces)
{
    struct tnd_piece *items = pieces->items;
    const size_t capacity = pieces->capacity;
    const size_t n = pieces->n;
    pieces->items = pieces->other_items;
    pieces->capacity = pieces->other_capacity;
    pieces->other_items = items;
    pieces->other_capacity = capacity;
    pieces->n = 0;
    return n;
}

/* ---- separators: matches of a pattern, or of a literal text ---- */

struct finder {
    const struct tnd_token_step *step;
    const char *text;
    size_t n;
    size_t at;
    size_t valid_end; /* of the run of UTF-8 that `search` looks at */
    struct tnd_pattern_search search;
};

static enum tandem_status finder_begin(struct finder *finder, const struct tnd_token_step *step,
                                       struct tnd_pattern_work *work, struct tandem_error *error)
{
    *finder = (struct finder){.step = step};
    return step->pattern == NULL
               ? TANDEM_OK
               : tnd_pattern_search_begin(&finder->search, step->pattern, work, error);
}

static void finder_set(struct finder *finder, const char *text, size_t n)
{
    finder->text = text;
    finder->n = n;
    finder->at = 0;
    finder->valid_end = 0;
    finder->search.n = 0;
}

static bool find_literal(struct finder *finder, struct tnd_piece *out)
{
    const struct tnd_token_step *step = finder->step;
    const char *found =
        step->n_from == 0 || finder->at >= finder->n
            ? NULL
            : memmem(finder->text + finder->at, finder->n - finder->at, step->from, step->n_from);
    if (found == NULL) {
        return false;
    }
    *out = (struct tnd_piece){.start = (size_t)(found - finder->text),
                              .end = (size_t)(found - finder->text) + step->n_from};
    finder->at = out->end;
    return true;
}

/* Finds the next match. Ill-formed bytes match nothing and end the searched text. */
static enum tandem_status find_next(struct finder *finder, bool *out_found, struct tnd_piece *out,
                                    struct tandem_error *error)
{
    if (finder->step->pattern == NULL) {
        *out_found = find_literal(finder, out);
        return TANDEM_OK;
    }
    for (;;) {
        const size_t start = finder->valid_end - finder->search.n;
        if (finder->search.at < finder->search.n) {
            TND_TRY(tnd_pattern_search_next(&finder->search, out_found, out, error));
            if (*out_found) {
                out->start += start;
                out->end += start;
                return TANDEM_OK;
            }
        }
        size_t at = finder->valid_end;
        while (at < finder->n && tnd_utf8_length(finder->text + at, finder->n - at) == 0) {
            at++;
        }
        if (at >= finder->n) {
            *out_found = false;
            finder->search.n = 0;
            return TANDEM_OK;
        }
        finder->search.text = finder->text + at;
        finder->search.n = tnd_utf8_valid_run(finder->text + at, finder->n - at);
        finder->search.at = 0;
        finder->valid_end = at + finder->search.n;
    }
}

/* ---- splitting ---- */

/* Collects the pieces of one text: the text between separators, and separators. */
struct splitter {
    struct tnd_pieces *pieces;
    enum tnd_split split;
    struct tnd_piece held; /* piece to which a separator may still be joined */
    bool held_is_separator;
};

static void flush(struct splitter *splitter)
{
    add_piece(splitter->pieces, splitter->held);
    splitter->held.start = splitter->held.end;
    splitter->held_is_separator = false;
}

static void put(struct splitter *splitter, struct tnd_piece piece, bool is_separator)
{
    if (piece.start == piece.end) {
        return;
    }
    const bool holds = splitter->held.end > splitter->held.start;
    bool joins = false;
    switch (splitter->split) {
    case TND_SPLIT_REMOVED:
        if (is_separator) {
            return;
        }
        break;
    case TND_SPLIT_PREVIOUS: /* a separator joins the piece before it */
        joins = holds && is_separator && !splitter->held_is_separator;
        break;
    case TND_SPLIT_NEXT:
        joins = holds && !is_separator && splitter->held_is_separator;
        break;
    case TND_SPLIT_CONTIGUOUS:
        joins = holds && is_separator == splitter->held_is_separator;
        break;
    case TND_SPLIT_ISOLATED:
        break;
    }
    if (joins) {
        splitter->held.end = piece.end;
    } else {
        flush(splitter);
        splitter->held = piece;
    }
    splitter->held_is_separator = is_separator;
}

static enum tandem_status split_piece(struct finder *finder, struct splitter *splitter,
                                      struct tnd_piece piece, struct tandem_error *error)
{
    const bool inverts = finder->step->inverts;
    size_t at = piece.start;
    finder_set(finder, splitter->pieces->text.bytes + piece.start, piece.end - piece.start);
    for (;;) {
        bool found = false;
        struct tnd_piece match = {0, 0};
        TND_TRY(find_next(finder, &found, &match, error));
        if (!found) {
            break;
        }
        match.start += piece.start;
        match.end += piece.start;
        put(splitter, (struct tnd_piece){.start = at, .end = match.start}, inverts);
        put(splitter, match, !inverts);
        at = match.end;
    }
    put(splitter, (struct tnd_piece){.start = at, .end = piece.end}, inverts);
    flush(splitter);
    return TANDEM_OK;
}

static enum tandem_status split(const struct tnd_token_step *step, struct tnd_pieces *pieces,
                                struct tandem_error *error)
{
    struct finder finder;
    struct splitter splitter = {.pieces = pieces, .split = step->split};
    TND_TRY(finder_begin(&finder, step, &pieces->work, error));
    const size_t n = take_pieces(pieces);
    enum tandem_status status = TANDEM_OK;
    for (size_t i = 0; i < n && status == TANDEM_OK; i++) {
        status = split_piece(&finder, &splitter, pieces->other_items[i], error);
    }
    tnd_pattern_search_end(&finder.search);
    return status;
}

/* ---- rewriting ---- */

static enum tandem_status grows_too_much(size_t limit, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_LIMIT, "tokenizer", (int64_t)limit, (int64_t)limit,
                         "tokenizer: its normalizer blows the text up to more than %zu bytes",
                         limit);
}

static enum tandem_status replace(struct finder *finder, const char *text, size_t n, size_t limit,
                                  struct tnd_text *out, struct tandem_error *error)
{
    const struct tnd_token_step *step = finder->step;
    size_t at = 0;
    finder_set(finder, text, n);
    for (;;) {
        bool found = false;
        struct tnd_piece match = {0, 0};
        if (out->n > limit) {
            return grows_too_much(limit, error);
        }
        TND_TRY(find_next(finder, &found, &match, error));
        if (!found) {
            tnd_text_add_bytes(out, text + at, n - at);
            return TANDEM_OK;
        }
        tnd_text_add_bytes(out, text + at, match.start - at);
        tnd_text_add_bytes(out, step->to, step->n_to);
        at = match.end;
    }
}

static void strip(const struct tnd_token_step *step, const char *text, size_t n,
                  struct tnd_text *out)
{
    size_t space;
    while (step->left && (space = tnd_utf8_space(text, n)) > 0) {
        text += space;
        n -= space;
    }
    size_t kept = 0; /* up to the end of the last character that is no space */
    for (size_t at = 0; at < n;) {
        space = tnd_utf8_space(text + at, n - at);
        at += space > 0 ? space : 1;
        kept = space > 0 ? kept : at;
    }
    tnd_text_add_bytes(out, text, step->right ? kept : n);
}

static void prepend(const struct tnd_token_step *step, const char *text, size_t n, bool is_first,
                    struct tnd_text *out)
{
    const bool is_there =
        step->unless_there && n > 0 &&
        (text[0] == ' ' || (n >= step->n_to && memcmp(text, step->to, step->n_to) == 0));
    if (n > 0 && !is_there && (is_first || !step->only_first)) {
        tnd_text_add_bytes(out, step->to, step->n_to);
    }
    tnd_text_add_bytes(out, text, n);
}

static enum tandem_status rewrite_piece(struct finder *finder, const char *text, size_t n,
                                        const struct tnd_pieces *pieces, bool is_first,
                                        struct tnd_text *out, struct tandem_error *error)
{
    const struct tnd_token_step *step = finder->step;
    switch (step->kind) {
    case TND_TOKEN_STEP_PREPEND:
        prepend(step, text, n, is_first, out);
        return TANDEM_OK;
    case TND_TOKEN_STEP_REPLACE:
        return replace(finder, text, n, pieces->limit, out, error);
    case TND_TOKEN_STEP_FORM:
        return tnd_unicode_normalize(step->form, text, n, out, error);
    case TND_TOKEN_STEP_LOWER:
        return tnd_unicode_lower(text, n, out, error);
    case TND_TOKEN_STEP_STRIP:
        strip(step, text, n, out);
        return TANDEM_OK;
    case TND_TOKEN_STEP_CLEAN:
        tnd_unicode_clean(step->left, step->right, text, n, out);
        return TANDEM_OK;
    case TND_TOKEN_STEP_MARKS:
        return tnd_unicode_drop_marks(text, n, out, error);
    case TND_TOKEN_STEP_CHARSMAP:
        tnd_charsmap_apply(step->charsmap, text, n, out);
        return TANDEM_OK;
    case TND_TOKEN_STEP_TO_BYTES:
        tnd_byte_level_encode(text, n, out);
        return TANDEM_OK;
    case TND_TOKEN_STEP_OF_BYTES: {
        tnd_text_add_bytes(out, text, n);
        out->n -= out->failed ? 0 : n - tnd_byte_level_decode(text, n, out->bytes + out->n - n);
        return TANDEM_OK;
    }
    case TND_TOKEN_STEP_SPLIT:
        break;
    }
    return TANDEM_OK;
}

static enum tandem_status rewrite(const struct tnd_token_step *step, struct tnd_pieces *pieces,
                                  struct tandem_error *error)
{
    struct finder finder;
    TND_TRY(finder_begin(&finder, step, &pieces->work, error));
    const size_t n = take_pieces(pieces);
    enum tandem_status status = TANDEM_OK;
    tnd_text_clear(&pieces->other);
    for (size_t i = 0; i < n && status == TANDEM_OK; i++) {
        const struct tnd_piece piece = pieces->other_items[i];
        const size_t start = pieces->other.n;
        status = rewrite_piece(&finder, pieces->text.bytes + piece.start, piece.end - piece.start,
                               pieces, pieces->is_first && i == 0, &pieces->other, error);
        add_piece(pieces, (struct tnd_piece){.start = start, .end = pieces->other.n});
    }
    tnd_pattern_search_end(&finder.search);
    const struct tnd_text text = pieces->text;
    pieces->text = pieces->other;
    pieces->other = text;
    return status;
}

enum tandem_status tnd_steps_run(const struct tnd_token_step *steps, size_t n,
                                 struct tnd_pieces *pieces, struct tandem_error *error)
{
    for (size_t i = 0; i < n && !pieces->failed; i++) {
        TND_TRY(steps[i].kind == TND_TOKEN_STEP_SPLIT ? split(&steps[i], pieces, error)
                                                      : rewrite(&steps[i], pieces, error));
        if (pieces->failed || pieces->text.failed || pieces->other.failed) {
            return tnd_error_set(error, TANDEM_E_MEMORY, "tokenizer", (int64_t)pieces->text.n, 0,
                                 "tokenizer: no memory to prepare a text");
        }
        if (pieces->text.n > pieces->limit) {
            return grows_too_much(pieces->limit, error);
        }
    }
    return TANDEM_OK;
}
