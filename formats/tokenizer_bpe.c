/* SPDX-License-Identifier: MIT
 * Byte pair encoding with a merge list (Sennrich et al. 2016), over bytes as GPT-2 has it or over
 * characters. Files of the first kind write each byte as a printable character: printable Latin-1
 * for itself, the other 68 bytes from U+0100 on in their order (bytes_to_unicode of GPT-2's
 * encoder.py). Here tokens are the bytes that are meant. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"

#define FREE_PAIR UINT64_MAX

/* ---- the alphabet of bytes ---- */

/* The bytes that are not written as themselves, in their order. */
static const struct {
    unsigned first, last, point; /* U+0100 and on for the first one */
} moved[] = {{0x00, 0x20, 0x100}, {0x7f, 0xa0, 0x121}, {0xad, 0xad, 0x143}};
#define N_MOVED (sizeof(moved) / sizeof(moved[0]))

/* The byte that a character of the alphabet means, or -1. */
static int byte_of_character(unsigned point)
{
    for (size_t i = 0; i < N_MOVED; i++) {
        if (point >= moved[i].first && point <= moved[i].last) {
            return -1;
        }
        if (point >= moved[i].point && point - moved[i].point <= moved[i].last - moved[i].first) {
            return (int)(moved[i].first + point - moved[i].point);
        }
    }
    return point < 0x100 ? (int)point : -1;
}

void tnd_byte_level_encode(const char *text, size_t n, struct tnd_text *out)
{
    for (size_t at = 0; at < n; at++) {
        const unsigned byte = (unsigned char)text[at];
        unsigned point = byte;
        for (size_t i = 0; i < N_MOVED; i++) {
            if (byte >= moved[i].first && byte <= moved[i].last) {
                point = moved[i].point + byte - moved[i].first;
            }
        }
        if (point >= 0x80) {
            tnd_text_add_char(out, (char)(0xc0 | point >> 6));
        }
        tnd_text_add_char(out, (char)(point >= 0x80 ? 0x80 | (point & 0x3f) : point));
    }
}

size_t tnd_byte_level_decode(const char *text, size_t n, char *out)
{
    size_t n_out = 0;
    for (size_t at = 0; at < n;) {
        const unsigned char *bytes = (const unsigned char *)text + at;
        const size_t length = tnd_utf8_length(text + at, n - at);
        const unsigned point = length == 1   ? bytes[0]
                               : length == 2 ? (bytes[0] & 0x1fu) << 6 | (bytes[1] & 0x3fu)
                                             : 0;
        const int byte = length == 0 ? -1 : byte_of_character(point);
        if (byte < 0) {
            memcpy(out, text, n); /* an added token, which is written as it is */
            return n;
        }
        out[n_out++] = (char)byte;
        at += length;
    }
    return n_out;
}

void tnd_byte_level_find_bytes(tandem_tokenizer *tokenizer)
{
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        tokenizer->byte_ids[i] = tnd_tokenizer_find(tokenizer, &byte, 1);
    }
}

/* ---- the merge list ---- */

enum tandem_status tnd_merges_reserve(tandem_tokenizer *tokenizer, size_t n, const char *name,
                                      struct tandem_error *error)
{
    size_t n_slots = 16;
    while (n_slots < n * 2) {
        n_slots *= 2;
    }
    tokenizer->merges = tnd_alloc(n_slots * sizeof(tokenizer->merges[0]));
    if (tokenizer->merges == NULL) {
        return tnd_tokenizer_no_memory(name, n_slots * sizeof(tokenizer->merges[0]), error);
    }
    tokenizer->n_merge_slots = n_slots;
    memset(tokenizer->merges, 0xff, n_slots * sizeof(tokenizer->merges[0]));
    return TANDEM_OK;
}

static struct tnd_merge *merge_slot(const tandem_tokenizer *tokenizer, uint64_t pair)
{
    uint64_t hash = pair * 0x9e3779b97f4a7c15u; /* Fibonacci hashing */
    size_t at = (size_t)(hash ^ hash >> 32) & (tokenizer->n_merge_slots - 1);
    while (tokenizer->merges[at].pair != FREE_PAIR && tokenizer->merges[at].pair != pair) {
        at = (at + 1) & (tokenizer->n_merge_slots - 1);
    }
    return &tokenizer->merges[at];
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static void add_merge(tandem_tokenizer *tokenizer, int32_t left, int32_t right, uint32_t rank,
                      int32_t merged)
{
    struct tnd_merge *slot = merge_slot(tokenizer, pair_of(left, right));
    if (slot->pair == FREE_PAIR) {
        *slot = (struct tnd_merge){.pair = pair_of(left, right), .rank = rank, .merged = merged};
    }
}

const struct tnd_merge *tnd_merges_find(const tandem_tokenizer *tokenizer, int32_t left,
                                        int32_t right)
{
    const struct tnd_merge *slot = merge_slot(tokenizer, pair_of(left, right));
    return slot->pair == FREE_PAIR ? NULL : slot;
}

bool tnd_merges_add_texts(tandem_tokenizer *tokenizer, const char *left, size_t n_left,
                          const char *right, size_t n_right, uint32_t rank)
{
    char both[2 * TND_MAX_TOKEN_BYTES];
    if (n_left > TND_MAX_TOKEN_BYTES || n_right > TND_MAX_TOKEN_BYTES) {
        return false;
    }
    if (tokenizer->is_byte_level) {
        n_left = tnd_byte_level_decode(left, n_left, both);
        n_right = tnd_byte_level_decode(right, n_right, both + n_left);
    } else {
        memcpy(both, left, n_left);
        memcpy(both + n_left, right, n_right);
    }
    const int32_t a = tnd_tokenizer_find(tokenizer, both, n_left);
    const int32_t b = tnd_tokenizer_find(tokenizer, both + n_left, n_right);
    const int32_t merged = tnd_tokenizer_find(tokenizer, both, n_left + n_right);
    if (a < 0 || b < 0 || merged < 0) {
        return false;
    }
    add_merge(tokenizer, a, b, rank, merged);
    return true;
}

/* ---- encoding ---- */

/* A text that merges with nothing around it. */
static void encode_run(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                       struct tnd_merger *merger, struct tnd_ids *ids)
{
    merger->n = 0;
    for (size_t at = 0; at < n;) {
        const size_t length =
            tokenizer->is_byte_level ? 1 : tnd_utf8_loose_length(text + at, n - at);
        const int32_t id = tokenizer->is_byte_level
                               ? tokenizer->byte_ids[(unsigned char)text[at]]
                               : tnd_tokenizer_find(tokenizer, text + at, length);
        /* What gives no token at all is not there: its neighbours may merge (as in tokenizers). */
        if (id >= 0 || tokenizer->unknown >= 0 || tokenizer->has_byte_fallback) {
            tnd_merger_add(merger,
                           (struct tnd_symbol){.start = at, .length = (uint32_t)length, .id = id});
        }
        at += length;
    }
    if (!tnd_merger_run(merger, tokenizer, text)) {
        return;
    }
    for (size_t i = 0; i < merger->n; i++) {
        const struct tnd_symbol *symbol = &merger->symbols[i];
        if (symbol->length > 0 && symbol->id >= 0) {
            tnd_ids_add(ids, symbol->id);
        } else if (symbol->length > 0) {
            tnd_ids_add_unknown(tokenizer, text + symbol->start, symbol->length, ids);
        }
    }
}

void tnd_ranks_encode(const tandem_tokenizer *tokenizer, const char *text, size_t n,
                      struct tnd_merger *merger, struct tnd_ids *ids)
{
    const int32_t whole = tokenizer->whole_words ? tnd_tokenizer_find(tokenizer, text, n) : -1;
    if (whole >= 0) {
        tnd_ids_add(ids, whole);
        return;
    }
    for (size_t at = 0, length; at < n && !merger->failed; at += length) {
        length = tnd_tokenizer_run(tokenizer, text + at, n - at);
        encode_run(tokenizer, text + at, length, merger, ids);
    }
}
