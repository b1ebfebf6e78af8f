/* SPDX-License-Identifier: MIT
 * UTF-8 that is not trusted (well-formed as table 3-7 of the Unicode standard has it), and Unicode
 * normalization by utf8proc, which is optional. */
#include "formats/unicode.h"

#include <stdlib.h>

#ifdef TND_HAVE_UTF8PROC
#include <utf8proc.h>
#endif

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t tnd_utf8_length(const char *text, size_t n)
{
    const unsigned char first = n > 0 ? (unsigned char)text[0] : 0xff;
    if (first < 0x80) {
        return 1;
    }
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || n < length) {
        return 0;
    }
    /* The second byte rules out overlong forms, surrogates and what is above U+10FFFF. */
    const unsigned char second = (unsigned char)text[1];
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if (!is_continuation(text[i])) {
            return 0;
        }
    }
    return length;
}

size_t tnd_utf8_loose_length(const char *text, size_t n)
{
    const size_t length = tnd_utf8_length(text, n);
    return length > 0 ? length : 1;
}

size_t tnd_utf8_valid_run(const char *text, size_t n)
{
    size_t at = 0;
    for (size_t length; at < n && (length = tnd_utf8_length(text + at, n - at)) > 0;) {
        at += length;
    }
    return at;
}

static uint32_t code_point(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    if (length == 1) {
        return bytes[0];
    }
    uint32_t point = bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        point = point << 6 | (bytes[i] & 0x3f);
    }
    return point;
}

size_t tnd_utf8_space(const char *text, size_t n)
{
    const size_t length = tnd_utf8_length(text, n);
    if (length == 0) {
        return 0;
    }
    /* property White_Space of PropList.txt */
    const uint32_t point = code_point(text, length);
    const bool is_space = (point >= 0x09 && point <= 0x0d) || point == 0x20 || point == 0x85 ||
                          point == 0xa0 || point == 0x1680 ||
                          (point >= 0x2000 && point <= 0x200a) || point == 0x2028 ||
                          point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000;
    return is_space ? length : 0;
}

static bool is_within(uint32_t point, const uint32_t (*ranges)[2], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (point >= ranges[i][0] && point <= ranges[i][1]) {
            return true;
        }
    }
    return false;
}

/* Categories Cc and Co, and Cf as Rust's crate unicode_categories has it (Unicode 8), by which
 * huggingface/tokenizers goes; and U+FFFD. */
static bool is_control(uint32_t point)
{
    static const uint32_t ranges[][2] = {
        {0x0, 0x8},          {0xb, 0xc},         {0xe, 0x1f},        {0x7f, 0x9f},
        {0xad, 0xad},        {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
        {0x70f, 0x70f},      {0x180e, 0x180e},   {0x200b, 0x200f},   {0x202a, 0x202e},
        {0x2060, 0x2064},    {0x2066, 0x206f},   {0xe000, 0xf8ff},   {0xfeff, 0xfeff},
        {0xfff9, 0xfffb},    {0xfffd, 0xfffd},   {0x110bd, 0x110bd}, {0x1bca0, 0x1bca3},
        {0x1d173, 0x1d17a},  {0xe0001, 0xe0001}, {0xe0020, 0xe007f}, {0xf0000, 0xffffd},
        {0x100000, 0x10fffd}};
    return is_within(point, ranges, sizeof(ranges) / sizeof(ranges[0]));
}

/* Blocks that BERT takes for Chinese, as huggingface/tokenizers has them. */
static bool is_chinese(uint32_t point)
{
    static const uint32_t ranges[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                         {0x20000, 0x2a6df}, {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf},
                                         {0x2f800, 0x2fa1f}};
    return is_within(point, ranges, sizeof(ranges) / sizeof(ranges[0]));
}

void tnd_unicode_clean(bool drops, bool isolates, const char *text, size_t n, struct tnd_text *out)
{
    for (size_t at = 0; at < n;) {
        const size_t length = tnd_utf8_length(text + at, n - at);
        const uint32_t point = length > 0 ? code_point(text + at, length) : 0x20;
        if (length == 0) {
            tnd_text_add_char(out, text[at++]);
            continue;
        }
        const bool is_apart = isolates && is_chinese(point);
        if (drops && tnd_utf8_space(text + at, length) > 0 && !is_control(point)) {
            tnd_text_add_char(out, ' ');
        } else if (!drops || !is_control(point)) {
            tnd_text_add(out, is_apart ? " " : "");
            tnd_text_add_bytes(out, text + at, length);
            tnd_text_add(out, is_apart ? " " : "");
        }
        at += length;
    }
}

#ifdef TND_HAVE_UTF8PROC

size_t tnd_unicode_grapheme(const char *text, size_t n)
{
    utf8proc_int32_t state = 0;
    size_t at = tnd_utf8_length(text, n);
    if (at == 0) {
        return 1;
    }
    uint32_t last = code_point(text, at);
    while (at < n) {
        const size_t length = tnd_utf8_length(text + at, n - at);
        const uint32_t point = length > 0 ? code_point(text + at, length) : 0;
        if (length == 0 || utf8proc_grapheme_break_stateful((utf8proc_int32_t)last,
                                                            (utf8proc_int32_t)point, &state)) {
            break;
        }
        last = point;
        at += length;
    }
    return at;
}

/* Category Mn as unicode_categories has it: without what is newer. */
static bool is_mark(uint32_t point)
{
    static const uint32_t newer[][2] = {
        {0x7fd, 0x7fd},     {0x898, 0x8e1},     {0x9fe, 0x9fe},     {0xafa, 0xaff},
        {0xb55, 0xb55},     {0xc04, 0xc3c},     {0xd00, 0xd00},     {0xd3b, 0xd3c},
        {0xd81, 0xd81},     {0xeba, 0xeba},     {0xece, 0xece},     {0x180f, 0x1886},
        {0x1abf, 0x1ace},   {0x1df6, 0x1dfb},   {0xa82c, 0xa82c},   {0xa8c5, 0xa8c5},
        {0xa8ff, 0xa8ff},   {0xa9bd, 0xa9bd},   {0x10d24, 0x10f85}, {0x11070, 0x11074},
        {0x110c2, 0x110c2}, {0x111c9, 0x111c9}, {0x111cf, 0x111cf}, {0x1123e, 0x11241},
        {0x1133b, 0x1133b}, {0x11438, 0x1145e}, {0x1182f, 0x13455}, {0x16f4f, 0x16f4f},
        {0x16fe4, 0x16fe4}, {0x1cf00, 0x1cf46}, {0x1e000, 0x1e4ef}, {0x1e944, 0x1e94a}};
    const bool is_mn =
        utf8proc_category((utf8proc_int32_t)point) == UTF8PROC_CATEGORY_MN || point == 0x1734;
    return is_mn && !is_within(point, newer, sizeof(newer) / sizeof(newer[0]));
}

enum tandem_status tnd_unicode_drop_marks(const char *text, size_t n, struct tnd_text *out,
                                          struct tandem_error *error)
{
    (void)error;
    for (size_t at = 0; at < n;) {
        const size_t length = tnd_utf8_length(text + at, n - at);
        if (length == 0 || !is_mark(code_point(text + at, length))) {
            tnd_text_add_bytes(out, text + at, length > 0 ? length : 1);
        }
        at += length > 0 ? length : 1;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_unicode_check(struct tandem_error *error)
{
    (void)error;
    return TANDEM_OK;
}

static enum tandem_status normalize_run(enum tnd_unicode_form form, const char *text, size_t n,
                                        struct tnd_text *out, struct tandem_error *error)
{
    static const int options[] = {
        [TND_FORM_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
        [TND_FORM_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
        [TND_FORM_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [TND_FORM_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    utf8proc_uint8_t *made = NULL;
    const utf8proc_ssize_t length =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &made,
                     (utf8proc_option_t)options[form]);
    if (length < 0) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "unicode", length, 0,
                             "tokenizer: %zu bytes cannot be normalized: %s", n,
                             utf8proc_errmsg(length));
    }
    tnd_text_add_bytes(out, (const char *)made, (size_t)length);
    free(made); /* utf8proc uses malloc */
    return TANDEM_OK;
}

enum tandem_status tnd_unicode_normalize(enum tnd_unicode_form form, const char *text, size_t n,
                                         struct tnd_text *out, struct tandem_error *error)
{
    for (size_t at = 0; at < n;) {
        const size_t run = tnd_utf8_valid_run(text + at, n - at);
        if (run > 0) {
            TND_TRY(normalize_run(form, text + at, run, out, error));
        } else {
            tnd_text_add_char(out, text[at]);
        }
        at += run > 0 ? run : 1;
    }
    return TANDEM_OK;
}

/* Character by character; bytes that are no UTF-8 stay as they are. */
static void change_case(utf8proc_int32_t (*change)(utf8proc_int32_t), const char *text, size_t n,
                        struct tnd_text *out)
{
    for (size_t at = 0; at < n;) {
        const size_t length = tnd_utf8_length(text + at, n - at);
        if (length == 0) {
            tnd_text_add_char(out, text[at++]);
            continue;
        }
        utf8proc_uint8_t changed[4];
        const utf8proc_int32_t point = (utf8proc_int32_t)code_point(text + at, length);
        const utf8proc_ssize_t made = utf8proc_encode_char(change(point), changed);
        /* The entries of both tables of SpecialCasing.txt that hold for every language: i and a
         * dot above; SS. */
        if (point == 0x130 && change == utf8proc_tolower) {
            tnd_text_add(out, "i\xcc\x87");
        } else if (point == 0xdf && change == utf8proc_toupper) {
            tnd_text_add(out, "SS");
        } else {
            tnd_text_add_bytes(out, (const char *)changed, (size_t)made);
        }
        at += length;
    }
}

enum tandem_status tnd_unicode_lower(const char *text, size_t n, struct tnd_text *out,
                                     struct tandem_error *error)
{
    (void)error;
    change_case(utf8proc_tolower, text, n, out);
    return TANDEM_OK;
}

enum tandem_status tnd_unicode_upper(const char *text, size_t n, struct tnd_text *out,
                                     struct tandem_error *error)
{
    (void)error;
    change_case(utf8proc_toupper, text, n, out);
    return TANDEM_OK;
}

#else

size_t tnd_unicode_grapheme(const char *text, size_t n)
{
    return tnd_utf8_loose_length(text, n);
}

enum tandem_status tnd_unicode_check(struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, "utf8proc", 0, 0,
                         "tokenizer: this build has no utf8proc (libutf8proc-dev), which the "
                         "tokenizer's normalizer needs");
}

enum tandem_status tnd_unicode_normalize(enum tnd_unicode_form form, const char *text, size_t n,
                                         struct tnd_text *out, struct tandem_error *error)
{
    (void)form;
    (void)text;
    (void)n;
    (void)out;
    return tnd_unicode_check(error);
}

enum tandem_status tnd_unicode_lower(const char *text, size_t n, struct tnd_text *out,
                                     struct tandem_error *error)
{
    return tnd_unicode_normalize(TND_FORM_NFC, text, n, out, error);
}

enum tandem_status tnd_unicode_upper(const char *text, size_t n, struct tnd_text *out,
                                     struct tandem_error *error)
{
    return tnd_unicode_normalize(TND_FORM_NFC, text, n, out, error);
}

enum tandem_status tnd_unicode_drop_marks(const char *text, size_t n, struct tnd_text *out,
                                          struct tandem_error *error)
{
    return tnd_unicode_normalize(TND_FORM_NFC, text, n, out, error);
}

#endif
