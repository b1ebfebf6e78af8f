/* SPDX-License-Identifier: MIT
 * Regular expressions of pre-tokenizers by PCRE2 (optional), whose Perl syntax and Unicode classes
 * are those in which their authors write them. */
#include <string.h>

#include "base/alloc.h"
#include "formats/tokenizer_steps.h"

#ifdef TND_HAVE_PCRE2

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define HEAP_KIB (128u << 10) /* of one match */

/* A match first sees a window of the text and may go back this many times. Where that is not enough
 * it is tried again with more of what was short, and the new limit is charged to the text's budget:
 * PCRE2 does not tell what a match has cost, so its limits are what we count. Work that is not
 * charged is bounded by the first limits times the bytes of the text. */
#define FIRST_WINDOW 512u  /* bytes; pieces of real texts are shorter */
#define FIRST_STEPS  4096u /* times going back */
#define LIMIT_GROWTH 4u
/* The budget; 64 Mi units take about 0.1 to 1 s. */
#define SPARE_WORK   ((uint64_t)64 << 20)
#define WORK_A_BYTE  64u

struct tnd_pattern {
    pcre2_code *code;
    char *text; /* owned */
};

struct match {
    pcre2_match_data *data;
    pcre2_match_context *context;
};

static enum tandem_status compile(const char *pattern, pcre2_code **out, struct tandem_error *error)
{
    int number = 0;
    PCRE2_SIZE place = 0;
    char message[128] = "no memory";
    struct tnd_text text = TND_TEXT_INIT;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    enum tandem_status status = tnd_pattern_translate(pattern, &text, error);
    if (status == TANDEM_OK && context != NULL && !text.failed) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        *out = pcre2_compile((PCRE2_SPTR)tnd_text_string(&text), text.n,
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                             &number, &place, context);
        if (*out == NULL) {
            pcre2_get_error_message(number, (PCRE2_UCHAR *)message, sizeof(message));
        }
    }
    if (status == TANDEM_OK && *out == NULL) {
        status = tnd_error_set(error, number == 0 ? TANDEM_E_MEMORY : TANDEM_E_FORMAT, "pattern",
                               (int64_t)place, 0, "tokenizer: the pattern \"%.80s\" is wrong: %s",
                               pattern, message);
    }
    pcre2_compile_context_free(context);
    tnd_text_fini(&text);
    return status;
}

enum tandem_status tnd_pattern_new(const char *pattern, struct tnd_pattern **out_pattern,
                                   struct tandem_error *error)
{
    pcre2_code *code = NULL;
    TND_TRY(compile(pattern, &code, error));
    struct tnd_pattern *made = tnd_alloc(sizeof(*made));
    char *text = tnd_strdup(pattern);
    if (made == NULL || text == NULL) {
        tnd_free(made);
        tnd_free(text);
        pcre2_code_free(code);
        return tnd_error_set(error, TANDEM_E_MEMORY, "pattern", sizeof(*made), 0,
                             "tokenizer: no memory for a pattern");
    }
    (void)pcre2_jit_compile(code,
                            PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD); /* faster if available */
    made->code = code;
    made->text = text;
    *out_pattern = made;
    return TANDEM_OK;
}

void tnd_pattern_free(struct tnd_pattern *pattern)
{
    if (pattern != NULL) {
        pcre2_code_free(pattern->code);
        tnd_free(pattern->text);
        tnd_free(pattern);
    }
}

const char *tnd_pattern_text(const struct tnd_pattern *pattern)
{
    return pattern->text;
}

enum tandem_status tnd_pattern_search_begin(struct tnd_pattern_search *search,
                                            const struct tnd_pattern *pattern,
                                            struct tnd_pattern_work *work,
                                            struct tandem_error *error)
{
    struct match *match = tnd_calloc(1, sizeof(*match));
    if (match != NULL) {
        match->data = pcre2_match_data_create_from_pattern(pattern->code, NULL);
        match->context = pcre2_match_context_create(NULL);
    }
    if (match != NULL && match->context != NULL) {
        pcre2_set_heap_limit(match->context, HEAP_KIB);
    }
    *search = (struct tnd_pattern_search){.pattern = pattern, .work = work, .match = match};
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

/* One attempt within text[0, end); the text may continue after `end`. */
static int try_match(const struct tnd_pattern_search *search, size_t end, uint32_t steps)
{
    const struct match *match = search->match;
    /* The caller has checked the text once; checking at each match would be quadratic. */
    const uint32_t options =
        PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | (end < search->n ? PCRE2_PARTIAL_HARD : 0);
    PCRE2_SPTR text = (PCRE2_SPTR)search->text;
    pcre2_set_match_limit(match->context, steps);
    int found = pcre2_match(search->pattern->code, text, end, search->at, options, match->data,
                            match->context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) { /* compiled code has a small stack */
        found = pcre2_match(search->pattern->code, text, end, search->at, options | PCRE2_NO_JIT,
                            match->data, match->context);
    }
    return found;
}

/* Where a window ends: between two characters, or at the end of the text. */
static size_t window_end(const struct tnd_pattern_search *search, size_t window)
{
    size_t end = search->n - search->at > window ? search->at + window : search->n;
    while (end < search->n && ((unsigned char)search->text[end] & 0xc0) == 0x80) {
        end++;
    }
    return end;
}

/* PCRE2's result, with as much text and as many steps as it needs and the budget allows. */
static int match_in_budget(struct tnd_pattern_search *search)
{
    struct tnd_pattern_work *work = search->work;
    size_t window = FIRST_WINDOW;
    uint32_t steps = FIRST_STEPS;
    for (;;) {
        const size_t end = window_end(search, window);
        const int found = try_match(search, end, steps);
        const bool lacks_text =
            end < search->n && (found == PCRE2_ERROR_PARTIAL || found == PCRE2_ERROR_NOMATCH);
        if (!lacks_text && found != PCRE2_ERROR_MATCHLIMIT) {
            return found;
        }
        window *= lacks_text ? LIMIT_GROWTH : 1;
        steps *= lacks_text ? 1 : LIMIT_GROWTH;
        work->done += lacks_text ? window : steps;
        if (work->done > SPARE_WORK + WORK_A_BYTE * work->n_bytes || steps > UINT32_MAX / 8) {
            return PCRE2_ERROR_MATCHLIMIT;
        }
    }
}

enum tandem_status tnd_pattern_search_next(struct tnd_pattern_search *search, bool *out_found,
                                           struct tnd_piece *out_match, struct tandem_error *error)
{
    const struct match *match = search->match;
    const int found = match_in_budget(search);
    *out_found = found > 0;
    if (found == PCRE2_ERROR_NOMATCH) {
        return TANDEM_OK;
    }
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match->data);
    if (found < 0 || ends[0] < search->at || ends[1] <= ends[0] || ends[1] > search->n) {
        *out_found = false; /* (\K in a lookaround may turn the ends round) */
        return tnd_error_set(error, TANDEM_E_LIMIT, "pattern", found, (int64_t)search->work->done,
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

const char *tnd_pattern_text(const struct tnd_pattern *pattern)
{
    (void)pattern;
    return "";
}

enum tandem_status tnd_pattern_search_begin(struct tnd_pattern_search *search,
                                            const struct tnd_pattern *pattern,
                                            struct tnd_pattern_work *work,
                                            struct tandem_error *error)
{
    (void)search;
    (void)pattern;
    (void)work;
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
