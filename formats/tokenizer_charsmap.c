/* SPDX-License-Identifier: MIT
 * The normalizer of sentencepiece: rules "longest text that begins here -> other text" and rules
 * for blanks. The rules are stored as a double array (Aoe 1989; units as the Darts-clone library
 * packs them: bits 0-7 label and bit 31, bit 8 has a value, bits 10-30 offset, times 256 when bit 9
 * is set), behind it the texts (normalizer.cc of google/sentencepiece: the length of the double
 * array in bytes, the array, texts ending with a zero byte). */
#include <string.h>

#include "formats/cursor.h"
#include "formats/tnd_tokenizer.h"

#define UNIT_BYTES         4
#define LABEL_MASK         0x800000ffu
#define VALUE_MASK         0x7fffffffu
#define HAS_VALUE          0x100u
#define OFFSET_IS_FAR      0x200u
#define MAX_GRAPHEME_BYTES 6              /* longer ones have no rule as a whole */
#define REPLACEMENT        "\xef\xbf\xbd" /* U+FFFD for a byte that is no UTF-8 */

enum tandem_status tnd_charsmap_read(const uint8_t *bytes, size_t n, const char *name,
                                     struct tnd_charsmap *out, struct tandem_error *error)
{
    struct tnd_cursor cursor = {.data = bytes, .n = n, .name = name};
    const uint8_t *trie = NULL;
    uint32_t trie_bytes = 0;
    out->n_units = 0;
    out->n_texts = 0;
    if (n == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_cursor_u32(&cursor, "the size of the charsmap's trie", &trie_bytes, error));
    TND_TRY(tnd_cursor_take(&cursor, trie_bytes, "the charsmap's trie", &trie, error));
    const size_t n_texts = tnd_cursor_left(&cursor);
    if (trie_bytes % UNIT_BYTES != 0 || n_texts == 0 || bytes[n - 1] != 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, name, trie_bytes, (int64_t)n,
                             "%s: a charsmap of %zu bytes with a trie of %u, expected whole units "
                             "and texts that end with a zero byte",
                             tnd_short_name(name), n, trie_bytes);
    }
    out->trie = trie;
    out->n_units = trie_bytes / UNIT_BYTES;
    out->texts = (const char *)bytes + cursor.at;
    out->n_texts = n_texts;
    return TANDEM_OK;
}

static uint32_t unit_at(const struct tnd_charsmap *charsmap, size_t at)
{
    return tnd_le32(charsmap->trie + at * UNIT_BYTES);
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & OFFSET_IS_FAR) >> 6);
}

/* Bytes of the longest rule that fits `text`, or of the shortest, and its value; 0: none. */
static size_t find_rule(const struct tnd_charsmap *charsmap, const char *text, size_t n,
                        bool is_shortest, uint32_t *out_value)
{
    size_t longest = 0;
    size_t at = charsmap->n_units > 0 ? offset_of(unit_at(charsmap, 0)) : 0;
    for (size_t i = 0; i < n; i++) {
        at ^= (unsigned char)text[i];
        if (at >= charsmap->n_units) {
            break;
        }
        const uint32_t unit = unit_at(charsmap, at);
        if ((unit & LABEL_MASK) != (unsigned char)text[i]) {
            break;
        }
        at ^= offset_of(unit);
        if ((unit & HAS_VALUE) != 0 && at < charsmap->n_units) {
            longest = i + 1;
            *out_value = unit_at(charsmap, at) & VALUE_MASK;
            if (is_shortest) {
                break;
            }
        }
    }
    return longest;
}

/* The replacement of the start of `text`. Returns how many bytes it replaces. */
static size_t next_normalized(const struct tnd_charsmap *charsmap, const char *text, size_t n,
                              const char **out, size_t *out_n)
{
    const struct tnd_prefix_index *users = charsmap->users;
    struct tnd_prefix_walk walk = {0};
    size_t user = 0;
    if (users != NULL && users->n > 0) {
        walk = tnd_prefix_begin(users);
        for (size_t i = 0; i < n && tnd_prefix_step(&walk, text[i]); i++) {
            user = tnd_prefix_id(&walk) >= 0 ? i + 1 : user;
        }
    }
    *out = text;
    if (user > 0) {
        *out_n = user;
        return user;
    }
    uint32_t value = 0;
    const size_t rule = find_rule(charsmap, text, n, false, &value);
    if (rule > 0) {
        /* out of range in a damaged file: empty */
        *out = value < charsmap->n_texts ? charsmap->texts + value : "";
        *out_n = strlen(*out);
        return rule;
    }
    const size_t length = tnd_utf8_length(text, n);
    if (length == 0) {
        *out = REPLACEMENT;
        *out_n = strlen(REPLACEMENT);
        return 1;
    }
    *out_n = length;
    return length;
}

static void add_blank(const struct tnd_charsmap *charsmap, struct tnd_text *out)
{
    if (charsmap->escapes_blanks) {
        tnd_text_add_bytes(out, TND_BLANK_MARK, TND_BLANK_MARK_N);
    } else {
        tnd_text_add_char(out, ' ');
    }
}

/* Drops blanks at the end of the text appended since `start`. */
static void drop_blanks(const struct tnd_charsmap *charsmap, size_t start, struct tnd_text *out)
{
    const char *blank = charsmap->escapes_blanks ? TND_BLANK_MARK : " ";
    const size_t n = strlen(blank);
    while (out->n >= start + n && memcmp(out->bytes + out->n - n, blank, n) == 0) {
        out->n -= n;
        out->bytes[out->n] = '\0';
    }
}

/* Replaces all of `text` by a rule for its start (precompiled.rs of huggingface/tokenizers). */
static bool replace_all(const struct tnd_charsmap *charsmap, const char *text, size_t n,
                        struct tnd_text *out)
{
    uint32_t value = 0;
    if (find_rule(charsmap, text, n, true, &value) == 0) {
        return false;
    }
    tnd_text_add(out, value < charsmap->n_texts ? charsmap->texts + value : "");
    return true;
}

static void apply_graphemes(const struct tnd_charsmap *charsmap, const char *text, size_t n,
                            struct tnd_text *out)
{
    for (size_t at = 0; at < n;) {
        const size_t end = at + tnd_unicode_grapheme(text + at, n - at);
        if (end - at < MAX_GRAPHEME_BYTES && replace_all(charsmap, text + at, end - at, out)) {
            at = end;
        }
        while (at < end) {
            const size_t length = tnd_utf8_loose_length(text + at, n - at);
            if (!replace_all(charsmap, text + at, length, out)) {
                tnd_text_add_bytes(out, text + at, length);
            }
            at += length;
        }
    }
}

void tnd_charsmap_apply(const struct tnd_charsmap *charsmap, const char *text, size_t n,
                        struct tnd_text *out)
{
    if (charsmap->by_grapheme) {
        apply_graphemes(charsmap, text, n, out);
        return;
    }
    const size_t start = out->n;
    const char *made = NULL;
    size_t n_made = 0;
    size_t at = 0;
    while (charsmap->removes_blanks && at < n) {
        const size_t taken = next_normalized(charsmap, text + at, n - at, &made, &n_made);
        if (n_made != 1 || made[0] != ' ') {
            break;
        }
        at += taken;
    }
    if (at == n) {
        return;
    }
    if (charsmap->adds_prefix && !charsmap->is_suffix) {
        add_blank(charsmap, out);
    }
    bool follows_blank = charsmap->removes_blanks;
    while (at < n) {
        at += next_normalized(charsmap, text + at, n - at, &made, &n_made);
        for (; follows_blank && n_made > 0 && made[0] == ' '; n_made--) {
            made++;
        }
        for (size_t i = 0; i < n_made; i++) {
            if (made[i] == ' ') {
                add_blank(charsmap, out);
            } else {
                tnd_text_add_char(out, made[i]);
            }
        }
        if (n_made > 0) {
            follows_blank = charsmap->removes_blanks && made[n_made - 1] == ' ';
        }
    }
    if (charsmap->removes_blanks) {
        drop_blanks(charsmap, start, out);
    }
    if (charsmap->adds_prefix && charsmap->is_suffix) {
        add_blank(charsmap, out);
    }
}
