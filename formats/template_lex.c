/* SPDX-License-Identifier: MIT
 * Splits a template into text and the tokens of its tags. White space around tags goes by Jinja's
 * trim_blocks (a line end right behind a block or comment is dropped), lstrip_blocks (blanks in
 * front of a block or comment are dropped where nothing else stands before it in its line) and the
 * signs - and + inside of tags. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "formats/template.h"
#include "formats/unicode.h"

void tnd_lex_begin(struct tnd_lexer *lexer, struct tnd_render *render, const char *text, size_t n)
{
    memset(lexer, 0, sizeof(*lexer));
    lexer->render = render;
    lexer->at = text;
    lexer->end = text + n;
    lexer->line = 1;
    lexer->at_line_begin = true;
}

static void fail(struct tnd_lexer *lexer, const char *what)
{
    lexer->render->line = lexer->line;
    tnd_template_fail(lexer->render, TANDEM_E_FORMAT, "%s", what);
    lexer->token.kind = TND_LEX_END;
    lexer->at = lexer->end;
}

static void advance(struct tnd_lexer *lexer, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        lexer->line += lexer->at[i] == '\n';
    }
    lexer->at += n;
}

static bool stands_here(const struct tnd_lexer *lexer, const char *text)
{
    const size_t n = strlen(text);
    return (size_t)(lexer->end - lexer->at) >= n && memcmp(lexer->at, text, n) == 0;
}

static struct tnd_name keep(struct tnd_lexer *lexer, const char *bytes, size_t n)
{
    char *copy = tnd_template_alloc(lexer->render, n + 1, 1);
    if (copy == NULL) {
        return (struct tnd_name){"", 0};
    }
    memcpy(copy, bytes, n);
    return (struct tnd_name){copy, n};
}

static void skip_space(struct tnd_lexer *lexer)
{
    size_t n;
    while ((n = tnd_utf8_space(lexer->at, (size_t)(lexer->end - lexer->at))) > 0) {
        advance(lexer, n);
    }
}

/* ---- text between tags ---- */

/* The begin of the next tag, or the end of the template. */
static const char *find_tag(const struct tnd_lexer *lexer)
{
    const char *at = lexer->at;
    while ((at = memchr(at, '{', (size_t)(lexer->end - at))) != NULL) {
        if (lexer->end - at >= 2 && (at[1] == '%' || at[1] == '{' || at[1] == '#')) {
            return at;
        }
        at++;
    }
    return lexer->end;
}

/* How much of the text before a tag is kept. `sign`: the character after the tag's start. */
static size_t stripped(const struct tnd_lexer *lexer, const char *tag, char kind, char sign)
{
    size_t n = (size_t)(tag - lexer->at);
    if (sign == '-') {
        while (n > 0) { /* from the last character back: Unicode's white space, too */
            size_t last = 1;
            while (last < 4 && last < n && ((unsigned char)lexer->at[n - last] & 0xc0) == 0x80) {
                last++;
            }
            if (tnd_utf8_space(lexer->at + n - last, last) != last) {
                break;
            }
            n -= last;
        }
    } else if (sign != '+' && kind != '{') {
        size_t line = n;
        while (line > 0 && lexer->at[line - 1] != '\n' &&
               (lexer->at[line - 1] == ' ' || lexer->at[line - 1] == '\t' ||
                lexer->at[line - 1] == '\r' || lexer->at[line - 1] == '\f' ||
                lexer->at[line - 1] == '\v')) {
            line--;
        }
        if (line > 0 ? lexer->at[line - 1] == '\n' : lexer->at_line_begin) {
            n = line;
        }
    }
    return n;
}

/* After the end of a block or comment: `-` drops all white space, else one line end is dropped. */
static void end_block(struct tnd_lexer *lexer, char sign)
{
    lexer->at_line_begin = false;
    if (sign == '-') {
        const char *begin = lexer->at;
        skip_space(lexer);
        lexer->at_line_begin = lexer->at > begin && lexer->at[-1] == '\n';
    } else if (sign != '+' && lexer->at < lexer->end && lexer->at[0] == '\n') {
        advance(lexer, 1);
        lexer->at_line_begin = true;
    }
}

static void skip_comment(struct tnd_lexer *lexer)
{
    const char *end = memmem(lexer->at, (size_t)(lexer->end - lexer->at), "#}", 2);
    if (end == NULL) {
        fail(lexer, "a comment '{#' has no end '#}'");
        return;
    }
    const char sign = end > lexer->at ? end[-1] : 0;
    advance(lexer, (size_t)(end + 2 - lexer->at));
    end_block(lexer, sign);
}

static void give_text(struct tnd_lexer *lexer, size_t n, const char *resume)
{
    lexer->token.kind = TND_LEX_DATA;
    lexer->token.text = keep(lexer, lexer->at, n);
    advance(lexer, (size_t)(resume - lexer->at));
}

/* After `{% raw %}`: text up to `{% endraw %}`. */
static void give_raw(struct tnd_lexer *lexer)
{
    struct tnd_lexer ahead = *lexer;
    lexer->is_raw = false;
    for (const char *tag; (tag = find_tag(&ahead)) < lexer->end; ahead.at = tag + 1) {
        const char *at = tag + 2;
        const char sign = at < lexer->end ? at[0] : 0;
        at += sign == '-' || sign == '+';
        while (at < lexer->end && isspace((unsigned char)at[0])) {
            at++;
        }
        if (tag[1] != '%' || lexer->end - at < 6 || memcmp(at, "endraw", 6) != 0) {
            continue;
        }
        at += 6;
        while (at < lexer->end && isspace((unsigned char)at[0])) {
            at++;
        }
        const char end_sign = at < lexer->end ? at[0] : 0;
        at += end_sign == '-' || end_sign == '+';
        if (lexer->end - at >= 2 && memcmp(at, "%}", 2) == 0) {
            give_text(lexer, stripped(lexer, tag, '%', sign), at + 2);
            end_block(lexer, end_sign);
            return;
        }
    }
    fail(lexer, "a block 'raw' has no 'endraw'");
}

/* In front of a tag or text, outside of tags. */
static void next_outside(struct tnd_lexer *lexer)
{
    while (lexer->at < lexer->end) {
        const char *tag = find_tag(lexer);
        const char kind = tag < lexer->end ? tag[1] : 0;
        const char sign = lexer->end - tag > 2 ? tag[2] : 0;
        if (tag > lexer->at) {
            const size_t n =
                kind != 0 ? stripped(lexer, tag, kind, sign) : (size_t)(tag - lexer->at);
            give_text(lexer, n, tag);
            lexer->at_line_begin = false; /* the tag follows it */
            if (n > 0) {
                return;
            }
            continue;
        }
        advance(lexer, 2);
        if (kind == '#') {
            skip_comment(lexer);
            continue;
        }
        if (sign == '-' || (sign == '+' && kind == '%')) {
            advance(lexer, 1);
        }
        lexer->in_tag = true;
        lexer->tag_end = kind == '%' ? '%' : '}';
        lexer->token.kind = kind == '%' ? TND_LEX_BLOCK_BEGIN : TND_LEX_PRINT_BEGIN;
        return;
    }
    lexer->token.kind = TND_LEX_END;
}

/* ---- inside of a tag ---- */

static bool give_end(struct tnd_lexer *lexer)
{
    const char closing[2] = {lexer->tag_end, '}'};
    const size_t left = (size_t)(lexer->end - lexer->at);
    const char sign = left > 0 && (lexer->at[0] == '-' || lexer->at[0] == '+') ? lexer->at[0] : 0;
    const size_t skip = sign != 0;
    if (lexer->braces > 0 || left < skip + 2 || memcmp(lexer->at + skip, closing, 2) != 0) {
        return false;
    }
    lexer->token.kind = lexer->tag_end == '%' ? TND_LEX_BLOCK_END : TND_LEX_PRINT_END;
    advance(lexer, skip + 2);
    lexer->in_tag = false;
    if (lexer->tag_end == '%' || sign == '-') {
        end_block(lexer, sign != 0 ? sign : lexer->tag_end == '%' ? 0 : '+');
    } else {
        lexer->at_line_begin = false;
    }
    return true;
}

static void give_number(struct tnd_lexer *lexer)
{
    char text[64];
    size_t n = 0;
    bool is_float = false;
    const char *at = lexer->at;
    int base = 10;
    if (at + 1 < lexer->end && at[0] == '0' && strchr("xXoObB", at[1]) != NULL && at[1] != 0) {
        base = tolower((unsigned char)at[1]) == 'x'   ? 16
               : tolower((unsigned char)at[1]) == 'o' ? 8
                                                      : 2;
        at += 2;
    }
    for (; at < lexer->end && n + 1 < sizeof(text); at++) {
        const bool is_point = base == 10 && at[0] == '.' && at + 1 < lexer->end &&
                              isdigit((unsigned char)at[1]) && !is_float;
        const bool is_exponent = base == 10 && (at[0] == 'e' || at[0] == 'E') &&
                                 at + 1 < lexer->end &&
                                 (isdigit((unsigned char)at[1]) ||
                                  ((at[1] == '+' || at[1] == '-') && at + 2 < lexer->end &&
                                   isdigit((unsigned char)at[2])));
        if (at[0] == '_') {
            continue;
        }
        if (!(base == 16 ? isxdigit((unsigned char)at[0]) : isdigit((unsigned char)at[0])) &&
            !is_point && !is_exponent) {
            break;
        }
        is_float = is_float || is_point || is_exponent;
        text[n++] = at[0];
        if (is_exponent && !isdigit((unsigned char)at[1])) {
            text[n++] = *++at;
        }
    }
    text[n] = 0;
    double number = 0;
    int64_t integer = 0;
    bool is_right = n > 0;
    if (is_float || base == 10) {
        is_right = is_right && (is_float ? tnd_text_to_double(text, n, &number)
                                         : tnd_text_to_i64(text, n, &integer));
    } else {
        char *end;
        const unsigned long long parsed = strtoull(text, &end, base);
        is_right = is_right && *end == 0 && parsed <= (unsigned long long)INT64_MAX && n < 60;
        integer = (int64_t)parsed;
    }
    if (!is_right) {
        fail(lexer, "a number cannot be read, or is beyond 64 bits");
        return;
    }
    advance(lexer, (size_t)(at - lexer->at));
    lexer->token.kind = is_float ? TND_LEX_FLOAT : TND_LEX_INT;
    lexer->token.integer = integer;
    lexer->token.number = number;
}

static size_t put_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 0; code >>= 6) {
        out[i] = (char)(i > 0 ? 0x80 | (code & 0x3f) : heads[n] | code);
    }
    return n;
}

/* Decodes an escape after its backslash, as in Python. Returns the bytes consumed; 0: invalid. */
static size_t decode_escape(const char *at, const char *end, char *out, size_t *out_n)
{
    static const char names[] = "n\nt\tr\ra\ab\bf\fv\v\\\\''\"\"";
    const char *named = at[0] != 0 ? strchr(names, at[0]) : NULL;
    if (at[0] == '\n') {
        *out_n = 0;
        return 1;
    }
    if (named != NULL && (named - names) % 2 == 0) {
        out[0] = named[1];
        *out_n = 1;
        return 1;
    }
    const int hex = at[0] == 'x' ? 2 : at[0] == 'u' ? 4 : at[0] == 'U' ? 8 : 0;
    const int base = hex > 0 ? 16 : 8;
    const int most = hex > 0 ? hex : 3;
    uint32_t code = 0;
    int n = 0;
    const char *digit = at + (hex > 0);
    for (; n < most && digit < end && isxdigit((unsigned char)digit[0]); n++, digit++) {
        const int value = isdigit((unsigned char)digit[0])
                              ? digit[0] - '0'
                              : tolower((unsigned char)digit[0]) - 'a' + 10;
        if (value >= base) {
            break;
        }
        code = code * (uint32_t)base + (uint32_t)value;
    }
    if (hex > 0 ? n < hex || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) : n == 0) {
        out[0] = '\\'; /* no escape: Python keeps the backslash */
        out[1] = at[0];
        *out_n = 2;
        return hex > 0 || at[0] == 'N' ? 0 : 1;
    }
    *out_n = put_utf8(out, code);
    return (size_t)(digit - at);
}

static void give_string(struct tnd_lexer *lexer)
{
    const char quote = lexer->at[0];
    const char *at = lexer->at + 1;
    const char *close = at;
    while (close < lexer->end && close[0] != quote) {
        close += close[0] == '\\' ? 2 : 1;
    }
    if (close >= lexer->end) {
        fail(lexer, "a text has no closing quote");
        return;
    }
    char *out = tnd_template_alloc(lexer->render, (size_t)(close - at) + 8, 1);
    size_t n = 0;
    while (out != NULL && at < close) {
        if (at[0] != '\\') {
            out[n++] = *at++;
            continue;
        }
        size_t written;
        const size_t taken = decode_escape(at + 1, close, out + n, &written);
        if (taken == 0) {
            fail(lexer, "an escape in a text is not understood");
            return;
        }
        n += written;
        at += 1 + taken;
    }
    advance(lexer, (size_t)(close + 1 - lexer->at));
    lexer->token.kind = TND_LEX_STRING;
    lexer->token.text = (struct tnd_name){out != NULL ? out : "", n};
}

static void give_operator(struct tnd_lexer *lexer)
{
    static const char *const pairs[] = {"==", "!=", "<=", ">=", "//", "**"};
    const char c = lexer->at[0];
    int op = c;
    size_t n = 1;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]) && n == 1; i++) {
        if (stands_here(lexer, pairs[i])) {
            op = TND_OP2(pairs[i][0], pairs[i][1]);
            n = 2;
        }
    }
    if (c == 0 || strchr("+-*/%~<>=.,:|()[]{}", c) == NULL) {
        if (n == 1) {
            fail(lexer, "a character stands in a tag that has no meaning there");
            return;
        }
    }
    lexer->braces += c == '(' || c == '[' || c == '{';
    lexer->braces -= (c == ')' || c == ']' || c == '}') && lexer->braces > 0;
    lexer->token.kind = TND_LEX_OPERATOR;
    lexer->token.op = op;
    advance(lexer, n);
}

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static void next_inside(struct tnd_lexer *lexer)
{
    skip_space(lexer);
    lexer->token.line = lexer->line;
    if (lexer->at >= lexer->end) {
        fail(lexer, "the template ends inside of a tag");
        return;
    }
    const char c = lexer->at[0];
    if (give_end(lexer)) {
        return;
    }
    if (isdigit((unsigned char)c)) {
        give_number(lexer);
    } else if (c == '"' || c == '\'') {
        give_string(lexer);
    } else if (is_name_byte(c)) {
        size_t n = 1;
        while (lexer->at + n < lexer->end && is_name_byte(lexer->at[n])) {
            n++;
        }
        lexer->token.kind = TND_LEX_NAME;
        lexer->token.text = keep(lexer, lexer->at, n);
        advance(lexer, n);
    } else {
        give_operator(lexer);
    }
}

void tnd_lex_next(struct tnd_lexer *lexer)
{
    memset(&lexer->token, 0, sizeof(lexer->token));
    lexer->token.line = lexer->line;
    if (!tnd_template_step(lexer->render, 1)) {
        lexer->at = lexer->end;
        lexer->in_tag = false;
    }
    if (lexer->is_raw) {
        give_raw(lexer);
    } else if (lexer->in_tag) {
        next_inside(lexer);
    } else {
        next_outside(lexer);
    }
}
