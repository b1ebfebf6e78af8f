/* SPDX-License-Identifier: MIT
 * tokenizer.model as Llama 3 has it: lines of a token in base64, a blank and its rank, which is the
 * id. Neighbours merge while they make a token, the lowest rank first (openai/tiktoken). The file
 * has neither pattern nor special tokens: they are those of Llama 3 (models/llama3/tokenizer.py of
 * meta-llama/llama-models, which names tokens that llama3 had reserved). */
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"

#define N_SPECIAL 256

static int digit_of(uint8_t c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c == '\0' ? NULL : strchr(digits, c);
    return found == NULL ? -1 : (int)(found - digits);
}

size_t tnd_take_base64(const uint8_t *bytes, size_t n, char *out, size_t capacity, size_t *out_n)
{
    size_t at = 0;
    size_t n_out = 0;
    uint32_t bits = 0;
    while (at < n && digit_of(bytes[at]) >= 0 && n_out < capacity) {
        bits = bits << 6 | (uint32_t)digit_of(bytes[at++]);
        if (at % 4 != 1) { /* each digit but the first of four completes a byte */
            out[n_out++] = (char)(bits >> (6 - 2 * ((at + 3) % 4)));
        }
    }
    const bool is_whole = at % 4 != 1;
    while (at < n && bytes[at] == '=' && at % 4 != 0) {
        at++;
    }
    *out_n = n_out;
    return is_whole && at % 4 == 0 ? at : 0;
}

/* Parses a line; false: invalid. */
static bool take_line(const uint8_t *bytes, size_t n, size_t *io_at, char *out, size_t *out_n,
                      int64_t *out_rank)
{
    size_t at =
        *io_at + tnd_take_base64(bytes + *io_at, n - *io_at, out, TND_MAX_TOKEN_BYTES, out_n);
    int64_t rank = 0;
    if (at == *io_at || at >= n || bytes[at] != ' ') {
        return false;
    }
    const size_t digits = ++at;
    while (at < n && bytes[at] >= '0' && bytes[at] <= '9' && at - digits < 9) {
        rank = rank * 10 + (bytes[at++] - '0');
    }
    at += at < n && bytes[at] == '\r';
    if (at == digits || (at < n && bytes[at] != '\n')) {
        return false;
    }
    *io_at = at + 1 < n ? at + 1 : n;
    *out_rank = rank;
    return true;
}

bool tnd_tokenizer_tiktoken_is(const uint8_t *bytes, size_t n)
{
    char token[TND_MAX_TOKEN_BYTES + 3];
    size_t at = 0;
    size_t length = 0;
    int64_t rank = 0;
    return take_line(bytes, n, &at, token, &length, &rank) && rank == 0;
}

static enum tandem_status bad_line(const char *name, int64_t line, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, name, line, 0,
                         "%.90s: line %lld is not a token in base64, a blank and its rank, each "
                         "rank once",
                         name, (long long)line);
}

static enum tandem_status count_lines(const uint8_t *bytes, size_t n, const char *name,
                                      int64_t *out_n, struct tandem_error *error)
{
    char token[TND_MAX_TOKEN_BYTES + 3];
    size_t length = 0;
    int64_t rank = 0;
    int64_t lines = 0;
    for (size_t at = 0; at < n; lines++) {
        if (!take_line(bytes, n, &at, token, &length, &rank)) {
            return bad_line(name, lines + 1, error);
        }
    }
    *out_n = lines;
    return TANDEM_OK;
}

/* Refuses known files of the same format with other patterns and special tokens. */
static enum tandem_status check_family(int64_t n, const char *name, struct tandem_error *error)
{
    static const struct {
        int64_t n;
        const char *family;
    } others[] = {{50256, "gpt2"},        {50280, "p50k_base"}, {100256, "cl100k_base"},
                  {199998, "o200k_base"}, {151643, "Qwen"},     {163584, "Kimi"}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i].n == n) {
            return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, name, n, 128000,
                                 "%.90s: %lld tokens are those of %s, which is not supported in "
                                 "this form; expected Llama 3",
                                 name, (long long)n, others[i].family);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_lines(tandem_tokenizer *tokenizer, const uint8_t *bytes, size_t n,
                                     int64_t n_lines, const char *name, struct tandem_error *error)
{
    char token[TND_MAX_TOKEN_BYTES + 3];
    size_t at = 0;
    for (int64_t line = 0; line < n_lines; line++) {
        size_t length = 0;
        int64_t rank = -1;
        if (!take_line(bytes, n, &at, token, &length, &rank) || rank >= n_lines || length == 0 ||
            tokenizer->tokens[rank].type != TND_TOKEN_UNUSED) {
            return bad_line(name, line + 1, error);
        }
        char *copy = tnd_tokenizer_keep(tokenizer, token, length);
        if (copy == NULL) {
            return tnd_tokenizer_no_memory(name, length, error);
        }
        tokenizer->tokens[rank] = (struct tnd_token){.text = copy,
                                                     .length = (uint32_t)length,
                                                     .type = TND_TOKEN_NORMAL,
                                                     .score = -(double)rank};
    }
    return TANDEM_OK;
}

static enum tandem_status add_specials(tandem_tokenizer *tokenizer, int64_t first, const char *name,
                                       struct tandem_error *error)
{
    static const char *const named[] = {"<|begin_of_text|>",
                                        "<|end_of_text|>",
                                        "<|reserved_special_token_0|>",
                                        "<|reserved_special_token_1|>",
                                        "<|finetune_right_pad_id|>",
                                        "<|step_id|>",
                                        "<|start_header_id|>",
                                        "<|end_header_id|>",
                                        "<|eom_id|>",
                                        "<|eot_id|>",
                                        "<|python_tag|>"};
    const int n_named = sizeof(named) / sizeof(named[0]);
    for (int i = 0; i < N_SPECIAL; i++) {
        char text[48];
        snprintf(text, sizeof(text), "<|reserved_special_token_%d|>", i - n_named + 2);
        const char *wanted = i < n_named ? named[i] : text;
        const char *copy = tnd_tokenizer_keep(tokenizer, wanted, strlen(wanted));
        if (copy == NULL) {
            return tnd_tokenizer_no_memory(name, strlen(wanted), error);
        }
        tokenizer->tokens[first + i] = (struct tnd_token){
            .text = copy, .length = (uint32_t)strlen(wanted), .type = TND_TOKEN_CONTROL};
    }
    tokenizer->bos = (int32_t)first;
    tokenizer->eos = (int32_t)first + 1;
    tokenizer->adds_bos = true;
    return TANDEM_OK;
}

static enum tandem_status fill(tandem_tokenizer *tokenizer, const uint8_t *bytes, size_t n,
                               const char *name, struct tandem_error *error)
{
    int64_t n_lines = 0;
    tokenizer->model = TND_MODEL_RANKS;
    tokenizer->is_byte_level = true;
    tokenizer->joins_texts = true;
    TND_TRY(count_lines(bytes, n, name, &n_lines, error));
    TND_TRY(check_family(n_lines, name, error));
    TND_TRY(tnd_tokenizer_reserve(tokenizer, n_lines + N_SPECIAL, name, error));
    TND_TRY(read_lines(tokenizer, bytes, n, n_lines, name, error));
    TND_TRY(add_specials(tokenizer, n_lines, name, error));
    TND_TRY(tnd_tokenizer_add_split(
        tokenizer,
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
        " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
        error));
    tokenizer->whole_words = true;
    TND_TRY(tnd_tokenizer_index(tokenizer, error));
    tnd_byte_level_find_bytes(tokenizer);
    return tnd_tokenizer_index_prefixes(tokenizer, name, error);
}

enum tandem_status tnd_tokenizer_tiktoken_read(const void *bytes, size_t n, const char *name,
                                               tandem_tokenizer **out_tokenizer,
                                               struct tandem_error *error)
{
    tandem_tokenizer *tokenizer = NULL;
    TND_TRY(tnd_tokenizer_new(name, &tokenizer, error));
    return tnd_tokenizer_end(fill(tokenizer, bytes, n, name, error), tokenizer, out_tokenizer);
}
