/* SPDX-License-Identifier: MIT
 * Schemas of strings and numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "llama/grammar_schema.h"

/* ---- strings ---- */

/* Formats as expressions. None accepts what the format's rules forbid, so special cases such as
 * leap days are left out. RFC 3339 (date, time, date-time), 4122 (uuid), 5321, 1123, 2673, 4291,
 * 3986. */
#define DATE                                                                                       \
    "[1-9]\\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|"                                  \
    "(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))"
#define TIME                                                                                       \
    "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?"                                         \
    "(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
#define HOST "[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?(?:\\.[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?){0,5}"
#define BYTE "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration", "^P(?:\\d{1,6}W|\\d{1,6}D(?:T\\d{1,6}[HMS])?|T\\d{1,6}[HMS])$"},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
    {"email", "^[A-Za-z0-9_-]{1,32}(?:\\.[A-Za-z0-9_-]{1,16}){0,3}@[a-z0-9]{1,32}\\.[a-z]{2,8}$"},
    {"hostname", "^" HOST "$"},
    {"ipv4", "^" BYTE "(?:\\." BYTE "){3}$"},
    {"ipv6", "^(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$"},
    {"uri", "^https?://[a-z0-9]{1,32}(?:\\.[a-z0-9]{1,32}){0,4}(?:/[A-Za-z0-9._~-]{0,64}){0,8}$"},
};

static int32_t patterned(struct tnd_schema *s, const char *pattern, size_t n)
{
    const int32_t list = tnd_tree_list(s->tree, TND_SEQUENCE);
    tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, "\""));
    tnd_tree_append(s->tree, list, tnd_regex_parse(s->tree, pattern, n, true));
    tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, "\""));
    return list;
}

static int32_t of_format(struct tnd_schema *s, const struct tnd_json_value *format)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (format->kind == TND_JSON_STRING && strcmp(format->text, formats[i].name) == 0) {
            return patterned(s, formats[i].pattern, strlen(formats[i].pattern));
        }
    }
    return tnd_tree_fail(s->tree, TANDEM_E_UNSUPPORTED_BUILD,
                         "schema: 'format' %.40s is not supported",
                         format->kind == TND_JSON_STRING ? format->text : "");
}

int32_t tnd_schema_string(struct tnd_schema *s, const struct tnd_schema_view *view)
{
    const struct tnd_json_value *pattern = tnd_schema_find(s, view, "pattern");
    const struct tnd_json_value *format = tnd_schema_find(s, view, "format");
    const int64_t min = tnd_schema_count(s, view, "minLength", 0);
    const int64_t max = tnd_schema_count(s, view, "maxLength", -1);
    const bool is_bounded = min > 0 || max >= 0;
    if ((pattern != NULL) + (format != NULL) + is_bounded > 1) {
        return tnd_schema_refuse(s, pattern != NULL ? "pattern" : "format",
                                 "beside a length or another of the two is not supported");
    }
    if (format != NULL) {
        return of_format(s, format);
    }
    if (pattern != NULL) {
        return pattern->kind == TND_JSON_STRING
                   ? patterned(s, pattern->text, pattern->n)
                   : tnd_schema_refuse(s, "pattern", "must be a string");
    }
    if (!is_bounded) {
        return tnd_schema_json(s, "json-string");
    }
    const int32_t list = tnd_tree_list(s->tree, TND_SEQUENCE);
    const int32_t one = tnd_schema_json(s, "json-char");
    tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, "\""));
    tnd_tree_append(s->tree, list, tnd_tree_repeat(s->tree, one, min, max));
    tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, "\""));
    return list;
}

/* ---- numbers ---- */

enum { MOST_DIGITS = 16 };

static int32_t digits(struct tnd_schema *s, char low, char high, int64_t min, int64_t max)
{
    const struct tnd_char_range range = {(uint32_t)low, (uint32_t)high};
    const int32_t one = tnd_tree_chars(s->tree, &range, 1, false);
    return min == 1 && max == 1 ? one : tnd_tree_repeat(s->tree, one, min, max);
}

/* Numbers from `low` to `high`, which have n digits each. NULL: unbounded on that side. */
static int32_t between(struct tnd_schema *s, const char *low, const char *high, size_t n)
{
    const int32_t list = tnd_tree_list(s->tree, TND_CHOICE);
    const char a = low != NULL ? low[0] : '0';
    const char z = high != NULL ? high[0] : '9';
    if (n == 0) {
        return tnd_tree_text(s->tree, "");
    }
    if (low == NULL && high == NULL) {
        return digits(s, '0', '9', (int64_t)n, (int64_t)n);
    }
    if (a == z) {
        return tnd_tree_pair(
            s->tree, digits(s, a, a, 1, 1),
            between(s, low != NULL ? low + 1 : NULL, high != NULL ? high + 1 : NULL, n - 1));
    }
    if (low != NULL) {
        tnd_tree_append(
            s->tree, list,
            tnd_tree_pair(s->tree, digits(s, a, a, 1, 1), between(s, low + 1, NULL, n - 1)));
    }
    if (high != NULL) {
        tnd_tree_append(
            s->tree, list,
            tnd_tree_pair(s->tree, digits(s, z, z, 1, 1), between(s, NULL, high + 1, n - 1)));
    }
    const char from = (char)(a + (low != NULL));
    const char to = (char)(z - (high != NULL));
    if (from <= to) {
        tnd_tree_append(s->tree, list,
                        tnd_tree_pair(s->tree, digits(s, from, to, 1, 1),
                                      digits(s, '0', '9', (int64_t)n - 1, (int64_t)n - 1)));
    }
    return list;
}

/* Integers from `low` to `high` (negative: unbounded), both of at most 16 digits. */
static int32_t whole(struct tnd_schema *s, int64_t low, int64_t high)
{
    const int32_t list = tnd_tree_list(s->tree, TND_CHOICE);
    char first[24], last[24];
    snprintf(first, sizeof(first), "%lld", (long long)low);
    snprintf(last, sizeof(last), "%lld", (long long)high);
    const size_t n_first = strlen(first);
    const size_t n_last = high < 0 ? MOST_DIGITS : strlen(last);
    for (size_t n = n_first; (high < 0 || low <= high) && n <= n_last; n++) {
        const char *from = n == n_first ? first : NULL;
        const char *to = n == n_last && high >= 0 ? last : NULL;
        static const char one[] = "1000000000000000"; /* no leading zero */
        tnd_tree_append(s->tree, list, between(s, from != NULL ? from : one, to, n));
    }
    return list;
}

struct bounds {
    double low, high; /* infinite: unbounded */
    bool low_is_out, high_is_out;
};

static void bound(struct tnd_schema *s, const struct tnd_schema_view *view, const char *keyword,
                  double *out, bool *out_excluded, bool excludes)
{
    const struct tnd_json_value *value = tnd_schema_find(s, view, keyword);
    if (value == NULL) {
        return;
    }
    if (value->kind == TND_JSON_FALSE || value->kind == TND_JSON_TRUE) { /* as in draft 4 */
        *out_excluded = *out_excluded || value->kind == TND_JSON_TRUE;
        return;
    }
    if (value->kind != TND_JSON_NUMBER || fabs(value->number) > 1e15) {
        (void)tnd_schema_refuse(s, keyword, "must be a number of at most 15 digits");
        return;
    }
    const bool is_lower =
        keyword[0] == 'm' ? keyword[1] == 'i' : keyword[9] == 'M' && keyword[10] == 'i';
    const bool is_tighter = is_lower ? value->number >= *out : value->number <= *out;
    if (is_tighter) {
        *out_excluded = excludes || (*out_excluded && value->number == *out);
        *out = value->number;
    }
}

static struct bounds bounds_of(struct tnd_schema *s, const struct tnd_schema_view *view)
{
    struct bounds b = {.low = -INFINITY, .high = INFINITY};
    bound(s, view, "minimum", &b.low, &b.low_is_out, false);
    bound(s, view, "maximum", &b.high, &b.high_is_out, false);
    bound(s, view, "exclusiveMinimum", &b.low, &b.low_is_out, true);
    bound(s, view, "exclusiveMaximum", &b.high, &b.high_is_out, true);
    return b;
}

static int32_t negative(struct tnd_schema *s, int32_t node)
{
    return tnd_tree_pair(s->tree, tnd_tree_text(s->tree, "-"), node);
}

static int32_t integers(struct tnd_schema *s, const struct bounds *b)
{
    const int32_t list = tnd_tree_list(s->tree, TND_CHOICE);
    const double low = b->low_is_out ? floor(b->low) + 1 : ceil(b->low);
    const double high = b->high_is_out ? ceil(b->high) - 1 : floor(b->high);
    if (low > high) {
        return tnd_tree_fail(s->tree, TANDEM_E_FORMAT, "schema: no integer is within its bounds");
    }
    if (high >= 0) {
        tnd_tree_append(s->tree, list,
                        whole(s, low > 0 ? (int64_t)low : 0, isinf(high) ? -1 : (int64_t)high));
    }
    if (low < 0) {
        tnd_tree_append(
            s->tree, list,
            negative(s, whole(s, high < 0 ? (int64_t)-high : 1, isinf(low) ? -1 : (int64_t)-low)));
    }
    return list;
}

/* Numbers from `low` to `high`, both non-negative integers; `high` may be infinite. */
static int32_t decimals(struct tnd_schema *s, double low, bool low_is_out, double high,
                        bool high_is_out)
{
    struct tnd_tree *tree = s->tree;
    const int32_t list = tnd_tree_list(tree, TND_CHOICE);
    const int64_t first = (int64_t)low;
    const int64_t below = isinf(high) ? -1 : (int64_t)high - 1; /* whole part of what is less */
    if (low < high) {
        const int32_t some =
            tnd_tree_pair(tree, tnd_tree_text(tree, "."), digits(s, '0', '9', 1, MOST_DIGITS));
        if (low_is_out) { /* low itself with a nonzero fraction */
            const int32_t more =
                tnd_tree_pair(tree, digits(s, '1', '9', 1, 1), digits(s, '0', '9', 0, MOST_DIGITS));
            const int32_t fraction =
                tnd_tree_pair(tree, tnd_tree_text(tree, "."),
                              tnd_tree_pair(tree, digits(s, '0', '0', 0, MOST_DIGITS), more));
            tnd_tree_append(tree, list, tnd_tree_pair(tree, whole(s, first, first), fraction));
        }
        if (isinf(high) || first + low_is_out <= below) {
            tnd_tree_append(tree, list,
                            tnd_tree_pair(tree, whole(s, first + low_is_out, below),
                                          tnd_tree_repeat(tree, some, 0, 1)));
        }
    }
    if (!isinf(high) && !high_is_out && !(low == high && low_is_out)) {
        const int32_t zeros =
            tnd_tree_pair(tree, tnd_tree_text(tree, "."), digits(s, '0', '0', 1, MOST_DIGITS));
        tnd_tree_append(tree, list,
                        tnd_tree_pair(tree, whole(s, (int64_t)high, (int64_t)high),
                                      tnd_tree_repeat(tree, zeros, 0, 1)));
    }
    return list;
}

static int32_t numbers(struct tnd_schema *s, const struct bounds *b)
{
    const int32_t list = tnd_tree_list(s->tree, TND_CHOICE);
    if ((isfinite(b->low) && b->low != floor(b->low)) ||
        (isfinite(b->high) && b->high != floor(b->high))) {
        return tnd_schema_refuse(s, "minimum", "and 'maximum' of a number must be whole");
    }
    if (b->low > b->high || (b->low == b->high && (b->low_is_out || b->high_is_out))) {
        return tnd_tree_fail(s->tree, TANDEM_E_FORMAT, "schema: no number is within its bounds");
    }
    if (b->high > 0 || (b->high == 0 && !b->high_is_out)) {
        const bool is_cut = b->low >= 0;
        tnd_tree_append(
            s->tree, list,
            decimals(s, is_cut ? b->low : 0, is_cut && b->low_is_out, b->high, b->high_is_out));
    }
    if (b->low < 0) {
        const bool is_cut = b->high <= 0;
        tnd_tree_append(s->tree, list,
                        negative(s, decimals(s, is_cut ? -b->high : 0,
                                             !is_cut || b->high == 0 || b->high_is_out, -b->low,
                                             b->low_is_out)));
    }
    return list;
}

int32_t tnd_schema_number(struct tnd_schema *s, const struct tnd_schema_view *view, bool is_integer)
{
    const struct tnd_json_value *multiple = tnd_schema_find(s, view, "multipleOf");
    const struct bounds b = bounds_of(s, view);
    if (multiple != NULL && !(is_integer && multiple->number == 1.0)) {
        return tnd_schema_refuse(s, "multipleOf", "is not supported");
    }
    if (isinf(b.low) && isinf(b.high)) {
        return tnd_schema_json(s, is_integer ? "json-integer" : "json-number");
    }
    return is_integer ? integers(s, &b) : numbers(s, &b);
}
