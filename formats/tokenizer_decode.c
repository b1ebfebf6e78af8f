/* SPDX-License-Identifier: MIT
 * Token ids to text: the bytes of one token, and a stream that hands out whole characters only. */
#include <string.h>

#include "formats/tnd_tokenizer.h"

/* Appends to a buffer that may be too small; counts all. */
struct sink {
    char *out;
    size_t capacity;
    size_t n;
};

static void put(struct sink *sink, const char *bytes, size_t n)
{
    if (sink->n < sink->capacity) {
        const size_t left = sink->capacity - sink->n;
        memcpy(sink->out + sink->n, bytes, n < left ? n : left);
    }
    sink->n += n;
}

/* The text of a token, with blanks where it has U+2581. */
static void put_text(const tandem_tokenizer *tokenizer, int32_t id, enum tnd_strip strip,
                     struct sink *sink)
{
    const struct tnd_shown_text shown = tnd_token_text(tokenizer, id);
    const bool escapes_blanks = tokenizer->escapes_blanks;
    const char *text = shown.text;
    const size_t n = shown.length;
    for (size_t at = 0; at < n;) {
        const bool is_mark = escapes_blanks && n - at >= TND_BLANK_MARK_N &&
                             memcmp(text + at, TND_BLANK_MARK, TND_BLANK_MARK_N) == 0;
        const bool is_blank = is_mark || (!escapes_blanks && text[at] == ' ');
        const bool drops = strip == TND_STRIP_FIRST_TOKEN
                               ? is_mark
                               : at == 0 && strip != TND_STRIP_NONE && is_blank;
        if (!drops) {
            put(sink, is_mark ? " " : text + at, 1);
        }
        at += is_mark ? TND_BLANK_MARK_N : 1;
    }
}

static bool is_hidden(const tandem_tokenizer *tokenizer, const struct tnd_token *token,
                      bool shows_special)
{
    switch (token->type) {
    case TND_TOKEN_CONTROL:
        return !shows_special;
    case TND_TOKEN_UNKNOWN:
        return !shows_special && tokenizer->unknown_text == NULL;
    default:
        return token->length == 0;
    }
}

static bool goes_on_within_word(const tandem_tokenizer *tokenizer, const struct tnd_token *token)
{
    return tokenizer->model == TND_MODEL_WORDPIECE && token->type == TND_TOKEN_NORMAL &&
           tokenizer->n_continuation > 0 && token->length > tokenizer->n_continuation &&
           memcmp(token->text, tokenizer->continuation, tokenizer->n_continuation) == 0;
}

static size_t decode(const tandem_tokenizer *tokenizer, int32_t id, bool at_begin,
                     bool shows_special, char *out, size_t capacity)
{
    struct sink sink = {.out = out, .capacity = out == NULL ? 0 : capacity};
    const struct tnd_token *token = &tokenizer->tokens[id];
    const bool is_byte = token->type == TND_TOKEN_BYTE || tokenizer->names_bytes;
    const int value = is_byte ? tnd_token_byte(token) : -1;
    if (is_hidden(tokenizer, token, shows_special)) {
        return 0;
    }
    const bool goes_on = goes_on_within_word(tokenizer, token);
    if (tokenizer->joins_with_blank && !at_begin && !goes_on) {
        put(&sink, " ", 1);
    }
    if (goes_on) {
        put(&sink, token->text + tokenizer->n_continuation,
            token->length - tokenizer->n_continuation);
        return sink.n;
    }
    if (value >= 0) {
        const char byte = (char)value;
        put(&sink, &byte, 1);
    } else if (token->type == TND_TOKEN_UNKNOWN && !shows_special) {
        put(&sink, tokenizer->unknown_text, strlen(tokenizer->unknown_text));
    } else if (token->type != TND_TOKEN_BYTE) {
        put_text(tokenizer, id, at_begin ? tokenizer->strip : TND_STRIP_NONE, &sink);
    }
    return sink.n;
}

/* Whether the text still starts after a token that was decoded to `n` bytes. */
static bool stays_at_begin(const tandem_tokenizer *tokenizer, int32_t id, bool shows_special,
                           size_t n)
{
    const struct tnd_token *token = &tokenizer->tokens[id];
    return n == 0 &&
           (tokenizer->strip == TND_STRIP_EACH || is_hidden(tokenizer, token, shows_special));
}

size_t tandem_tokenizer_decode(const tandem_tokenizer *tokenizer, int32_t previous, int32_t id,
                               char *out, size_t capacity)
{
    if (tokenizer == NULL || id < 0 || id >= tokenizer->n_tokens) {
        return 0;
    }
    const bool is_begin = previous >= 0 && previous == tokenizer->bos;
    return decode(tokenizer, id, is_begin, false, out, capacity);
}

/* ---- streams ---- */

struct tandem_token_stream tandem_token_stream_begin(const tandem_tokenizer *tokenizer,
                                                     bool at_begin)
{
    return (struct tandem_token_stream){.tokenizer = tokenizer, .at_begin = at_begin};
}

/* Bytes at the end of `text` that begin a character which more bytes may complete. */
static size_t unfinished(const char *text, size_t n)
{
    for (size_t length = 1; length <= 3 && length <= n; length++) {
        const unsigned char byte = (unsigned char)text[n - length];
        if (byte >= 0xc0) {
            static const char continuations[] = "\x80\x80\x80";
            static const char others[] = "\xbf\xbf\xbf"; /* (for those with a narrower range) */
            char whole[6];
            memcpy(whole, text + n - length, length);
            for (size_t more = 1; length + more <= 4; more++) {
                memcpy(whole + length, continuations, more);
                bool fits = tnd_utf8_length(whole, length + more) == length + more;
                memcpy(whole + length, others, more);
                fits = fits || tnd_utf8_length(whole, length + more) == length + more;
                if (fits) {
                    return length;
                }
            }
            return 0;
        }
        if (byte < 0x80) {
            return 0;
        }
    }
    return 0;
}

size_t tandem_token_stream_next(struct tandem_token_stream *stream, int32_t id, char *out,
                                size_t capacity)
{
    const tandem_tokenizer *tokenizer = stream == NULL ? NULL : stream->tokenizer;
    if (tokenizer == NULL || id < 0 || id >= tokenizer->n_tokens) {
        return 0;
    }
    const bool at_begin = stream->at_begin;
    const size_t n_pending = stream->n_pending;
    const size_t n = decode(tokenizer, id, at_begin, stream->shows_special, NULL, 0);
    if (n_pending + n > capacity) {
        return n_pending + n; /* nothing has happened yet: the caller may try again */
    }
    memcpy(out, stream->pending, n_pending);
    (void)decode(tokenizer, id, at_begin, stream->shows_special, out + n_pending, n);
    const size_t all = n_pending + n;
    const size_t kept = unfinished(out, all);
    memcpy(stream->pending, out + all - kept, kept);
    stream->n_pending = (unsigned char)kept;
    stream->at_begin = (tokenizer->restarts_at_bos && id == tokenizer->bos) ||
                       (at_begin && stays_at_begin(tokenizer, id, stream->shows_special, n));
    return all - kept;
}

size_t tandem_token_stream_end(struct tandem_token_stream *stream, char *out, size_t capacity)
{
    const size_t n = stream == NULL ? 0 : stream->n_pending;
    if (n > 0 && n <= capacity) {
        memcpy(out, stream->pending, n);
        stream->n_pending = 0;
    }
    return n;
}
