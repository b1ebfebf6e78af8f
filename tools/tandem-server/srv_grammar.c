/* SPDX-License-Identifier: MIT
 * The grammar of JSON as an automaton with a stack of bits. */
#include "tools/tandem-server/srv_grammar.h"

#include <string.h>

enum state {
    BEGIN,        /* of the text: an object is needed */
    VALUE,        /* a value is needed */
    VALUE_OR_END, /* or the end of an array */
    NAME,         /* the name of a member is needed */
    NAME_OR_END,  /* or the end of an object */
    COLON,
    NEXT, /* a comma, or the end of what is open */
    STRING,
    CHARACTER,     /* within one of several bytes */
    ESCAPE,        /* behind the backslash */
    HEX,           /* digits of \u */
    LOW_BACKSLASH, /* behind a high surrogate: the low one must follow */
    LOW_U,
    WORD,
    MINUS,
    ZERO,
    DIGITS,
    POINT, /* a digit is needed */
    FRACTION,
    EXPONENT,      /* a sign or a digit is needed */
    EXPONENT_SIGN, /* a digit is needed */
    EXPONENT_DIGITS,
    COMPLETE
};

/* What stands in `word` while hex digits are read: 1 + the part of the surrogate in hand. */
enum { HEX_PLAIN, HEX_LOW = 8, HEX_HIGH };

static const char *const words[] = {"true", "false", "null"};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool open_one(struct srv_grammar *g, bool is_array)
{
    if (g->depth == SRV_GRAMMAR_DEPTH) {
        return false;
    }
    const uint64_t bit = (uint64_t)1 << g->depth;
    g->is_array = is_array ? g->is_array | bit : g->is_array & ~bit;
    g->depth++;
    g->state = is_array ? VALUE_OR_END : NAME_OR_END;
    return true;
}

static bool in_array(const struct srv_grammar *g)
{
    return g->depth > 0 && (g->is_array >> (g->depth - 1) & 1) != 0;
}

static bool close_one(struct srv_grammar *g, bool is_array)
{
    if (g->depth == 0 || in_array(g) != is_array) {
        return false;
    }
    g->depth--;
    g->state = g->depth == 0 ? COMPLETE : NEXT;
    return true;
}

static bool begin_value(struct srv_grammar *g, char byte)
{
    if (byte == '{' || byte == '[') {
        return open_one(g, byte == '[');
    }
    if (byte == '"') {
        g->state = STRING;
        g->is_name = false;
        return true;
    }
    for (uint8_t i = 0; i < 3; i++) {
        if (byte == words[i][0]) {
            g->state = WORD;
            g->word = i;
            g->left = (uint8_t)(strlen(words[i]) - 1);
            return true;
        }
    }
    g->state = byte == '-' ? MINUS : byte == '0' ? ZERO : DIGITS;
    return byte == '-' || is_digit(byte);
}

/* A comma, or the end of what is open. */
static bool go_on(struct srv_grammar *g, char byte)
{
    if (byte == ',') {
        g->state = in_array(g) ? VALUE : NAME;
        return true;
    }
    return (byte == ']' || byte == '}') && close_one(g, byte == ']');
}

/* The first byte of a character (Unicode, table 3-7). */
static bool begin_character(struct srv_grammar *g, uint8_t byte)
{
    if (byte < 0x80) {
        return byte >= 0x20;
    }
    if (byte < 0xc2 || byte > 0xf4) {
        return false;
    }
    g->state = CHARACTER;
    g->left = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    g->low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    g->high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    return true;
}

static bool in_string(struct srv_grammar *g, char byte)
{
    if (byte == '"') {
        g->state = g->is_name ? COLON : NEXT;
        return true;
    }
    if (byte == '\\') {
        g->state = ESCAPE;
        return true;
    }
    return begin_character(g, (uint8_t)byte);
}

static bool in_character(struct srv_grammar *g, uint8_t byte)
{
    const bool is_good = byte >= g->low && byte <= g->high;
    g->low = 0x80;
    g->high = 0xbf;
    g->state = --g->left == 0 ? STRING : CHARACTER;
    return is_good;
}

static bool in_escape(struct srv_grammar *g, char byte)
{
    if (byte == 'u') {
        g->state = HEX;
        g->left = 4;
        g->word = HEX_PLAIN;
        return true;
    }
    g->state = STRING;
    return byte != '\0' && strchr("\"\\/bfnrt", byte) != NULL;
}

static int hex_value(char byte)
{
    const char *digits = "0123456789abcdef";
    const char lower = byte >= 'A' && byte <= 'F' ? (char)(byte - 'A' + 'a') : byte;
    const char *at = lower != '\0' ? strchr(digits, lower) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Four digits; surrogates only as pairs, and no zero, at which C would end the text. */
static bool in_hex(struct srv_grammar *g, char byte)
{
    const int value = hex_value(byte);
    if (value < 0) {
        return false;
    }
    if (g->left == 4) {
        g->low = (uint8_t)value; /* the first digits are kept here */
    } else if (g->left == 3) {
        const bool is_surrogate = g->low == 0xd && value >= 8;
        const bool wants_low = g->word == HEX_LOW;
        if (wants_low ? !is_surrogate || value < 0xc : is_surrogate && value >= 0xc) {
            return false;
        }
        g->word = is_surrogate && !wants_low ? HEX_HIGH : HEX_PLAIN;
    }
    g->high = g->left == 4 ? (uint8_t)value : (uint8_t)(g->high | value);
    g->left--;
    if (g->left == 0) {
        g->state = g->word == HEX_HIGH ? LOW_BACKSLASH : STRING;
    }
    return g->left > 0 || g->high != 0 || g->word == HEX_HIGH;
}

static bool in_word(struct srv_grammar *g, char byte)
{
    const char *word = words[g->word];
    const bool is_good = byte == word[strlen(word) - g->left];
    g->state = --g->left == 0 ? NEXT : WORD;
    return is_good;
}

/* A number goes on with `byte`: its next state; NEXT: it does not, and what follows it does. */
static enum state number_goes_on(enum state state, char byte)
{
    const bool is_exponent = byte == 'e' || byte == 'E';
    switch (state) {
    case ZERO:
        return byte == '.' ? POINT : is_exponent ? EXPONENT : NEXT;
    case DIGITS:
        return is_digit(byte) ? DIGITS : number_goes_on(ZERO, byte);
    case FRACTION:
        return is_digit(byte) ? FRACTION : is_exponent ? EXPONENT : NEXT;
    default:
        return is_digit(byte) ? EXPONENT_DIGITS : NEXT;
    }
}

/* Where digits are needed, or a sign may stand. */
static bool number_needs(struct srv_grammar *g, char byte)
{
    switch ((enum state)g->state) {
    case MINUS:
        g->state = byte == '0' ? ZERO : DIGITS;
        return is_digit(byte);
    case POINT:
        g->state = FRACTION;
        return is_digit(byte);
    case EXPONENT:
        g->state = is_digit(byte) ? EXPONENT_DIGITS : EXPONENT_SIGN;
        return is_digit(byte) || byte == '+' || byte == '-';
    default:
        g->state = EXPONENT_DIGITS;
        return is_digit(byte);
    }
}

static bool begin_name(struct srv_grammar *g, char byte)
{
    g->state = STRING;
    g->is_name = true;
    return byte == '"';
}

static bool is_between(enum state state)
{
    return state <= NEXT || state == COMPLETE;
}

static bool expect(struct srv_grammar *g, char byte, char wanted, enum state next)
{
    g->state = (uint8_t)next;
    return byte == wanted;
}

/* Where something begins: between strings and numbers. */
static bool between(struct srv_grammar *g, char byte)
{
    switch ((enum state)g->state) {
    case BEGIN:
        return byte == '{' && open_one(g, false);
    case VALUE:
        return begin_value(g, byte);
    case VALUE_OR_END:
        return byte == ']' ? close_one(g, true) : begin_value(g, byte);
    case NAME:
        return begin_name(g, byte);
    case NAME_OR_END:
        return byte == '}' ? close_one(g, false) : begin_name(g, byte);
    case COLON:
        return expect(g, byte, ':', VALUE);
    case NEXT:
        return go_on(g, byte);
    default:
        return false; /* behind the object */
    }
}

static bool step(struct srv_grammar *g, char byte)
{
    const enum state state = (enum state)g->state;
    if (state == ZERO || state == DIGITS || state == FRACTION || state == EXPONENT_DIGITS) {
        g->state = (uint8_t)number_goes_on(state, byte);
        if (g->state != NEXT) {
            return true;
        }
    }
    if (is_between((enum state)g->state)) {
        const bool is_blank = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
        g->blanks = is_blank ? (uint8_t)(g->blanks + 1) : 0;
        return is_blank ? g->blanks <= SRV_GRAMMAR_BLANKS : between(g, byte);
    }
    switch ((enum state)g->state) {
    case STRING:
        return in_string(g, byte);
    case CHARACTER:
        return in_character(g, (uint8_t)byte);
    case ESCAPE:
        return in_escape(g, byte);
    case HEX:
        return in_hex(g, byte);
    case LOW_BACKSLASH:
        return expect(g, byte, '\\', LOW_U);
    case LOW_U:
        g->left = 4;
        g->word = HEX_LOW;
        return expect(g, byte, 'u', HEX);
    case WORD:
        return in_word(g, byte);
    default:
        return number_needs(g, byte);
    }
}

bool tnd_srv_grammar_accepts(struct srv_grammar *grammar, const char *bytes, size_t n)
{
    struct srv_grammar now = *grammar;
    for (size_t i = 0; i < n; i++) {
        if (!step(&now, bytes[i])) {
            return false;
        }
    }
    *grammar = now;
    return true;
}

bool tnd_srv_grammar_is_complete(const struct srv_grammar *grammar)
{
    return grammar->state == COMPLETE;
}
