/* SPDX-License-Identifier: MIT
 * Grammars of strangers: the first byte says of which kind; behind a zero byte stands a text that
 * is matched. Whatever is taken must match within its bounds, and a mask must be right. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "llama/grammar.h"

static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void match(const tandem_grammar *grammar, const uint8_t *text, size_t n)
{
    struct tnd_matcher *matcher = tnd_matcher_new(grammar);
    must(matcher != NULL);
    int32_t state = tnd_matcher_begin(matcher);
    for (size_t i = 0; i < n && state > 0; i++) {
        bool has_changed = false;
        const int32_t next = tnd_matcher_next(matcher, state, text[i]);
        must(next == tnd_matcher_next(matcher, state, text[i]) || next == TND_MATCHER_FAILED);
        state = tnd_matcher_tidy(matcher, next, &has_changed);
        must(state <= 0 || tnd_matcher_accepts(matcher, state) ||
             tnd_matcher_goes_on(matcher, state));
    }
    tnd_matcher_free(matcher);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char any[] = "{\"a\": [1, \"x\"]} aab((x)) 2024-01-31";
    if (size == 0 || size > 1 << 14) {
        return 0;
    }
    const uint8_t *end = memchr(data + 1, 0, size - 1);
    const size_t n = end != NULL ? (size_t)(end - data) - 1 : size - 1;
    const struct tandem_grammar_options options = {.size = sizeof(options),
                                                   .kind = (enum tandem_grammar_kind)(data[0] % 4),
                                                   .text = (const char *)data + 1,
                                                   .n = n};
    struct tandem_error error = {0};
    tandem_grammar *grammar = NULL;
    const enum tandem_status status = tandem_grammar_new(&options, &grammar, &error);
    must((status == TANDEM_OK) == (grammar != NULL));
    must(status == TANDEM_OK || error.text[0] != '\0');
    if (grammar != NULL) {
        match(grammar, (const uint8_t *)any, sizeof(any) - 1);
        if (end != NULL) {
            match(grammar, end + 1, size - n - 2);
        }
    }
    tandem_grammar_free(grammar);
    return 0;
}
