/* SPDX-License-Identifier: MIT
 * Patterns of tokenizers: classes of characters as Oniguruma has them, what is refused by name, and
 * the budget of work for a text. */
#include <stdlib.h>
#include <string.h>

#include "formats/tokenizer_steps.h"
#include "tests/support.h"

/* A pattern, or NULL in a build without PCRE2 (the test skips). */
static struct tnd_pattern *new_pattern(const char *text)
{
    struct tandem_error error = {0};
    struct tnd_pattern *pattern = NULL;
    const enum tandem_status status = tnd_pattern_new(text, &pattern, &error);
    if (status == TANDEM_E_UNSUPPORTED_BUILD) {
        tnd_skip("optional part not built: %s", error.text);
        return NULL;
    }
    check_status(status, TANDEM_OK, NULL, &error);
    return pattern;
}

/* Number of matches in a text, or -1 after an error, which has to be LIMIT. */
static int count_matches(const struct tnd_pattern *pattern, const char *text, size_t n,
                         struct tnd_pattern_work *work)
{
    struct tnd_pattern_search search = {0};
    struct tandem_error error = {0};
    struct tnd_piece match;
    bool found = true;
    int count = -1;
    enum tandem_status status = tnd_pattern_search_begin(&search, pattern, work, &error);
    search.text = text;
    search.n = n;
    while (status == TANDEM_OK && found) {
        count++;
        status = tnd_pattern_search_next(&search, &found, &match, &error);
    }
    tnd_pattern_search_end(&search);
    if (status != TANDEM_OK) {
        check_status(status, TANDEM_E_LIMIT, "takes too long", &error);
        return -1;
    }
    return count;
}

static void classes_of_characters_are_those_of_oniguruma(void)
{
    static const struct {
        const char *pattern;
        const char *text;
        int matches;
    } cases[] = {
        {"\\w+", "\xe0\xbd\x96\xe0\xbd\xbc\xe0\xbd\x91", 1}, /* Tibetan, with a vowel sign */
        {"\\w+", "\xf0\x91\x80\x93\xf0\x91\x80\xb8", 1},     /* Brahmi, with a vowel sign */
        {"[\\w-]+", "a\xcc\x81-b", 1},                       /* combining acute */
        {"\\w", "\xc2\xb2\xe2\x91\xa0_", 2},                 /* superscript two; not circled one */
        {"\\s", "\xe1\xa0\x8e", 0},                          /* U+180E */
        {"[^\\s]", "\xe1\xa0\x8e", 1},
        {"\\S", " \xe1\xa0\x8e", 1},
        {"[\\S]", " \xe1\xa0\x8e\xc2\x85", 1},
        {"\\s", "\xc2\x85\xc2\xa0\xe3\x80\x80\v", 4},
        {"^a", "b\na", 1}, /* ^ and $ are those of lines */
        {"a$", "a\nb", 1},
        {"\\ba\\b", "a ba a\xcc\x81", 1},
        {"\\p{Han}", "\xe4\xb8\x80\xe3\x80\x82", 1}, /* not U+3002, which extends it */
        {"[a[.,]b]+", "a.,b]", 1},                   /* a class in a class */
        {"\\u0041\\x{42}", "AB", 1},
        {"\\v", "\n\v", 1},
        {"a{2}{", "aa{", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_pattern_work work = {0};
        struct tnd_pattern *pattern = new_pattern(cases[i].pattern);
        if (pattern != NULL) {
            check_int(count_matches(pattern, cases[i].text, strlen(cases[i].text), &work),
                      cases[i].matches);
        }
        tnd_pattern_free(pattern);
    }
}

static void patterns_that_would_mean_something_else_are_refused(void)
{
    static const char *const cases[] = {
        "\\h",      "\\R",    "[\\W_]", "[a&&b]",    "[a[^b]]", "[[:alpha:]]", "(*ANY)a",
        "a(?i)b|c", "(?s:.)", "(?R)",   "\\d{1,3}+", "a{,3}",   "a{3}?",       "\\pL",
    };
    struct tnd_pattern *pattern = new_pattern("a");
    const bool is_built = pattern != NULL;
    tnd_pattern_free(pattern);
    for (size_t i = 0; is_built && i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tandem_error error = {0};
        check_status(tnd_pattern_new(cases[i], &pattern, &error), TANDEM_E_UNSUPPORTED_BUILD,
                     "is not supported", &error);
    }
}

/* Each match looks at all that follows, and all matches together may not. */
static void a_text_has_a_budget_of_matching_work(void)
{
    static const char *const cases[] = {"x*y|x", "(?:x|x)*y|x", "x(?=x*y)|x", "x(?=(?:x?){30}y)|x"};
    const size_t n = (size_t)1 << 20;
    char *text = malloc(n);
    struct tnd_pattern *pattern = text == NULL ? NULL : new_pattern("x+");
    const bool is_built = pattern != NULL;
    if (is_built) {
        struct tnd_pattern_work work = {.n_bytes = n};
        memset(text, 'x', n);
        check_int(count_matches(pattern, text, n, &work), 1); /* one long match is no harm */
    }
    tnd_pattern_free(pattern);
    for (size_t i = 0; is_built && i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tnd_pattern_work work = {.n_bytes = n};
        pattern = new_pattern(cases[i]);
        if (pattern != NULL) {
            check_int(count_matches(pattern, text, n, &work), -1);
        }
        tnd_pattern_free(pattern);
    }
    free(text);
}

/* A match that reaches over the first window is the one that the whole text has. */
static void long_matches_are_whole(void)
{
    struct tnd_pattern *pattern = new_pattern("\\s+(?!\\S)|\\s+|[^\\s]+");
    char *text = malloc(10000);
    if (pattern != NULL && text != NULL) {
        struct tnd_pattern_work work = {.n_bytes = 10000};
        memset(text, ' ', 10000);
        memset(text + 600, 'a', 3000);
        memset(text + 9999, 'b', 1);
        check_int(count_matches(pattern, text, 10000, &work), 6); /* 599 + 1, a, 6398 + 1, b */
    }
    free(text);
    tnd_pattern_free(pattern);
}

static CU_TestInfo tests[] = {
    {"classes_of_characters_are_those_of_oniguruma", classes_of_characters_are_those_of_oniguruma},
    {"patterns_that_would_mean_something_else_are_refused",
     patterns_that_would_mean_something_else_are_refused},
    {"a_text_has_a_budget_of_matching_work", a_text_has_a_budget_of_matching_work},
    {"long_matches_are_whole", long_matches_are_whole},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_tokenizer_patterns[] = {
    {"tokenizer_patterns", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
