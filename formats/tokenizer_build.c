/* SPDX-License-Identifier: MIT
 * Building a tokenizer: shared by the loaders of all formats. */
#include <string.h>

#include "base/alloc.h"
#include "base/vector.h"
#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"

enum tandem_status tnd_tokenizer_no_memory(const char *name, size_t bytes,
                                           struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, name, (int64_t)bytes, 0,
                         "%.90s: no memory for %zu bytes of a tokenizer", name, bytes);
}

enum tandem_status tnd_tokenizer_new(const char *name, tandem_tokenizer **out_tokenizer,
                                     struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = tnd_calloc(1, sizeof(*tokenizer));
    if (tokenizer == NULL) {
        return tnd_tokenizer_no_memory(name, sizeof(*tokenizer), error);
    }
    tokenizer->bos = -1;
    tokenizer->eos = -1;
    tokenizer->unknown = -1;
    for (int i = 0; i < 256; i++) {
        tokenizer->byte_ids[i] = -1;
    }
    tnd_arena_init(&tokenizer->memory, (size_t)64 << 10, 0);
    *out_tokenizer = tokenizer;
    return TANDEM_OK;
}

void tnd_tokenizer_free(tandem_tokenizer *tokenizer)
{
    if (tokenizer == NULL) {
        return;
    }
    for (size_t i = 0; i < tokenizer->n_steps; i++) {
        tnd_pattern_free(tokenizer->steps[i].pattern);
    }
    tnd_free(tokenizer->steps);
    tnd_free(tokenizer->tokens);
    tnd_free(tokenizer->slots);
    tnd_free(tokenizer->merges);
    tnd_free(tokenizer->added);
    tnd_free(tokenizer->pieces.items);
    tnd_free(tokenizer->users.items);
    tnd_free(tokenizer->specials.items);
    tnd_free(tokenizer->normalized.items);
    tnd_arena_fini(&tokenizer->memory);
    tnd_free(tokenizer);
}

enum tandem_status tnd_tokenizer_end(enum tandem_status status, tandem_tokenizer *tokenizer,
                                     tandem_tokenizer **out_tokenizer)
{
    if (status == TANDEM_OK) {
        *out_tokenizer = tokenizer;
    } else {
        tnd_tokenizer_free(tokenizer);
    }
    return status;
}

enum tandem_status tnd_tokenizer_reserve(tandem_tokenizer *tokenizer, int64_t n, const char *name,
                                         struct tandem_error *error)
{
    if (n > TND_MAX_TOKENS) {
        return tnd_error_set(error, TANDEM_E_LIMIT, name, n, TND_MAX_TOKENS,
                             "%s: %lld tokens, expected at most %lld", name, (long long)n,
                             (long long)TND_MAX_TOKENS);
    }
    tokenizer->tokens = tnd_calloc((size_t)n, sizeof(tokenizer->tokens[0]));
    if (tokenizer->tokens == NULL) {
        return tnd_tokenizer_no_memory(name, (size_t)n * sizeof(tokenizer->tokens[0]), error);
    }
    for (int64_t id = 0; id < n; id++) {
        tokenizer->tokens[id] = (struct tnd_token){.text = "", .type = TND_TOKEN_UNUSED};
    }
    tokenizer->n_tokens = n;
    return TANDEM_OK;
}

char *tnd_tokenizer_keep(tandem_tokenizer *tokenizer, const char *bytes, size_t n)
{
    char *copy = tnd_arena_alloc(&tokenizer->memory, n + 1, 1); /* ends with a zero byte */
    if (copy != NULL && n > 0) {
        memcpy(copy, bytes, n);
    }
    return copy;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int tnd_token_byte(const struct tnd_token *token)
{
    if (token->length != 6 || memcmp(token->text, "<0x", 3) != 0 || token->text[5] != '>') {
        return -1;
    }
    const int high = hex_digit(token->text[3]);
    const int low = hex_digit(token->text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void tnd_tokenizer_find_byte_tokens(tandem_tokenizer *tokenizer, bool by_name)
{
    for (int64_t id = tokenizer->n_tokens - 1; id >= 0; id--) {
        const struct tnd_token *token = &tokenizer->tokens[id];
        const int byte = by_name || token->type == TND_TOKEN_BYTE ? tnd_token_byte(token) : -1;
        if (byte >= 0) {
            tokenizer->byte_ids[byte] = (int32_t)id;
        }
    }
}

enum tandem_status tnd_tokenizer_add_step(tandem_tokenizer *tokenizer, struct tnd_token_step step,
                                          struct tandem_error *error)
{
    const size_t n = tokenizer->n_steps;
    struct tnd_token_step *larger =
        tnd_realloc(tokenizer->steps, n * sizeof(step), (n + 1) * sizeof(step));
    if (larger == NULL) {
        tnd_pattern_free(step.pattern);
        return tnd_tokenizer_no_memory("tokenizer", (n + 1) * sizeof(step), error);
    }
    tokenizer->steps = larger;
    tokenizer->steps[tokenizer->n_steps++] = step;
    return TANDEM_OK;
}

enum tandem_status tnd_tokenizer_add_split(tandem_tokenizer *tokenizer, const char *pattern,
                                           struct tandem_error *error)
{
    struct tnd_token_step step = {.kind = TND_TOKEN_STEP_SPLIT, .split = TND_SPLIT_ISOLATED};
    TND_TRY(tnd_pattern_new(pattern, &step.pattern, error));
    return tnd_tokenizer_add_step(tokenizer, step, error);
}

void tnd_ids_add(struct tnd_ids *ids, int32_t id)
{
    if (!tnd_grow(&ids->items, ids->n, &ids->capacity, sizeof(id))) {
        ids->failed = true;
        return;
    }
    ids->items[ids->n++] = id;
    ids->last_is_unknown = false;
}
