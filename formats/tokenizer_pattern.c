/* SPDX-License-Identifier: MIT
 * Regular expressions of pre-tokenizers by PCRE2 (optional), whose Perl syntax and Unicode classes
 * are those in which their authors write them. */
#include <string.h>

#include "base/alloc.h"
#include "formats/tokenizer_steps.h"

#ifdef TND_HAVE_PCRE2

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Memory and steps that one match may take: enough to go back over the longest run, and a bound for
 * patterns that explode. */
#define HEAP_KIB           (128u << 10)
#define LEAST_MATCH_STEPS  1000000u
#define MATCH_STEPS_A_BYTE 4u

struct tnd_pattern {
    pcre2_code *code;
};

struct match {
    pcre2_match_data *data;
    pcre2_match_context *context;
};

enum tandem_status tnd_pattern_new(const char *pattern, struct tnd_pattern **out_pattern,
                                   struct tandem_error *error)
{
    int number = 0;
    PCRE2_SIZE place = 0;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &number, &place, NULL);
    if (code == NULL) {
        char message[128] = "";
        pcre2_get_error_message(number, (PCRE2_UCHAR *)message, sizeof(message));
        return tnd_error_set(error, TANDEM_E_FORMAT, "pattern", (int64_t)place, 0,
                             "tokenizer: the pattern \"%.80s\" is wrong at byte %zu: %s", pattern,
                             (size_t)place, message);
    }
    struct tnd_pattern *made = tnd_alloc(sizeof(*made));
    if (made == NULL) {
        pcre2_code_free(code);
        return tnd_error_set(error, TANDEM_E_MEMORY, "pattern", sizeof(*made), 0,
                             "tokenizer: no memory for a pattern");
    }
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* faster where there is one */
    made->code = code;
    *out_pattern = made;
    return TANDEM_OK;
}

void tnd_pattern_free(struct tnd_pattern *pattern)
{
    if (pattern != NULL) {
        pcre2_code_free(pattern->code);
        tnd_free(pattern);
    }
}

enum tandem_status tnd_pattern_search_begin(struct tnd_pattern_search *search,
                                            const struct tnd_pattern *pattern,
                                            struct tandem_error *error)
{
    struct match *match = tnd_calloc(1, sizeof(*match));
    if (match != NULL) {
        match->data = pcre2_match_data_create_from_pattern(pattern->code, NULL);
        match->context = pcre2_match_context_create(NULL);
    }
    *search = (struct tnd_pattern_search){.pattern = pattern, .match = match};
    if (match == NULL || match->data == NULL || match->context == NULL) {
        tnd_pattern_search_end(search);
        return tnd_error_set(error, TANDEM_E_MEMORY, "pattern", sizeof(*match), 0,
                             "tokenizer: no memory to match a pattern");
    }
    return TANDEM_OK;
}

void tnd_pattern_search_end(struct tnd_pattern_search *search)
{
    struct match *match = search->match;
    if (match != NULL) {
        pcre2_match_data_free(match->data);
        pcre2_match_context_free(match->context);
        tnd_free(match);
        search->match = NULL;
    }
}

enum tandem_status tnd_pattern_search_next(struct tnd_pattern_search *search, bool *out_found,
                                           struct tnd_piece *out_match, struct tandem_error *error)
{
    const struct match *match = search->match;
    const size_t steps = search->n < (UINT32_MAX - LEAST_MATCH_STEPS) / MATCH_STEPS_A_BYTE
                             ? LEAST_MATCH_STEPS + search->n * MATCH_STEPS_A_BYTE
                             : UINT32_MAX;
    pcre2_set_match_limit(match->context, (uint32_t)steps);
    pcre2_set_heap_limit(match->context, HEAP_KIB);
    /* The caller has checked the text once; checking at each match would be quadratic. */
    const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int found = pcre2_match(search->pattern->code, (PCRE2_SPTR)search->text, search->n, search->at,
                            options, match->data, match->context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) { /* compiled code has a small stack */
        found = pcre2_match(search->pattern->code, (PCRE2_SPTR)search->text, search->n, search->at,
                            options | PCRE2_NO_JIT, match->data, match->context);
    }
    *out_found = found > 0;
    if (found == PCRE2_ERROR_NOMATCH) {
        return TANDEM_OK;
    }
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match->data);
    if (found < 0 || ends[0] < search->at || ends[1] <= ends[0] || ends[1] > search->n) {
        *out_found = false; /* (\K in a lookaround may turn the ends round) */
        return tnd_error_set(error, TANDEM_E_LIMIT, "pattern", found, (int64_t)steps,
                             "tokenizer: a pattern takes too long on a text of %zu bytes "
                             "(PCRE2 says %d)",
                             search->n, found);
    }
    *out_match = (struct tnd_piece){.start = ends[0], .end = ends[1]};
    search->at = ends[1];
    return TANDEM_OK;
}

#else

enum tandem_status tnd_pattern_new(const char *pattern, struct tnd_pattern **out_pattern,
                                   struct tandem_error *error)
{
    (void)out_pattern;
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, "pcre2", 0, 0,
                         "tokenizer: this build has no PCRE2 (libpcre2-dev), which the pattern "
                         "\"%.60s\" needs",
                         pattern);
}

void tnd_pattern_free(struct tnd_pattern *pattern)
{
    (void)pattern;
}

enum tandem_status tnd_pattern_search_begin(struct tnd_pattern_search *search,
                                            const struct tnd_pattern *pattern,
                                            struct tandem_error *error)
{
    (void)search;
    (void)pattern;
    return tnd_pattern_new("", NULL, error);
}

enum tandem_status tnd_pattern_search_next(struct tnd_pattern_search *search, bool *out_found,
                                           struct tnd_piece *out_match, struct tandem_error *error)
{
    (void)search;
    (void)out_match;
    *out_found = false;
    return tnd_pattern_new("", NULL, error);
}

void tnd_pattern_search_end(struct tnd_pattern_search *search)
{
    (void)search;
}

#endif
