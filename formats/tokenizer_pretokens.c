/* SPDX-License-Identifier: MIT
 * How GGUF's tokenizer.ggml.pre splits a text before merging: each name stands for patterns that
 * are applied one after another, each within the pieces that the one before has left. The patterns
 * are those of the models' own tokenizer.json or tiktoken definitions, by the names that llama.cpp
 * gives them, and so are the rules where a file leaves them out
 * (src/llama-vocab.cpp of ggml-org/llama.cpp). */
#include <string.h>

#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"

/* GPT-2 (encoder.py of openai/gpt-2): runs of letters, digits, others, with a blank before them */
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)"
/* tiktoken's cl100k_base, and how many digits stand together */
#define CL100K(digits)                                                                             \
    "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"      \
    "|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* words by their letters' case: o200k_base and Mistral's tekken */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(ending)                                                                              \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ending "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER  \
    "*" ending "|"
#define CASED_REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* ideographs, kana and the scripts between them, hangul */
#define ASIAN      "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]"
#define BLOOM      " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

/* words with their marks, punctuation of one kind: DeepSeek V3 */
#define ASCII_PUNCTUATION "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
#define MARKED                                                                                     \
    ASCII_PUNCTUATION                                                                              \
    "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "                                      \
    "?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|"                                                     \
    "\\s+(?!\\S)|\\s+"
#define HAN_KANA "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"
#define SUFFIXES "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

enum {
    WHOLE_WORDS = 1, /* a piece that is a token is taken as it is */
    ADDS_BOS = 2     /* a text begins with the beginning token unless the file says otherwise */
};

static const struct pretokenizer {
    const char *names; /* separated by blanks */
    const char *patterns[TND_MAX_PRE_PATTERNS];
    unsigned rules;
} pretokenizers[] = {
    {"default", {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}, 0},
    {"gpt-2 phi-2 jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code gigachat "
     "roberta-bpe mpt olmo jais trillion granite-docling a.x-4.0 mellum modern-bert exaone4",
     {GPT2},
     0},
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     {CL100K("\\p{N}{1,3}")},
     WHOLE_WORDS | ADDS_BOS},
    {"dbrx smaug-bpe chatglm-bpe glm4", {CL100K("\\p{N}{1,3}")}, 0},
    {"qwen2 stablelm2 deepseek-r1-qwen megrez hunyuan kormo f2llmv2 grok-2 solar-open",
     {CL100K("\\p{N}")},
     0},
    {"qwen35",
     {SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|"
               "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
     0},
    {"bailingmoe bailingmoe2 llada-moe",
     {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
      "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"},
     0},
    {"seed-coder",
     {SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|"
               "\\s+(?!\\S)|\\s+"},
     0},
    {"exaone-moe",
     {SUFFIXES "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}|"
               " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"},
     0},
    {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}, 0},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b", {"\\p{N}", GPT2}, 0},
    {"deepseek-coder", {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", ASIAN "+", "\\p{N}"}, 0},
    {"deepseek-v3 hunyuan-dense joyai-llm", {"\\p{N}{1,3}", HAN_KANA, MARKED}, 0},
    {"youtu",
     {"[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+|"
      "[\\x{ff01}\\x{2026}\\x{201c}\\x{201d}\\x{2018}\\x{2019}\\x{2014}\\x{ff1a}\\x{ff1b}\\x{ff0c}"
      "\\x{3001}-\\x{303f}\\x{fe30}-\\x{fe4f}]+|[\\x{3105}-\\x{312f}]+|" HAN_KANA,
      CASED(SUFFIXES "?") "\\p{N}" CASED_REST},
     WHOLE_WORDS},
    {"bloom poro-chat gpt3-finnish", {BLOOM}, 0},
    {"viking", {BLOOM, "\\p{N}"}, 0},
    {"superbpe", {"\\p{N}+", "\\d{1,3}(?=(\\d{3})*(?!\\d))"}, 0}, /* threes from the right */
    {"chameleon",
     {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", "\\p{N}",
      "[\\p{P}!-/:-@\\[-`{-~]", GPT2},
     ADDS_BOS},
    {"tekken", {CASED("") "\\p{N}" CASED_REST}, WHOLE_WORDS | ADDS_BOS},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", {CASED(SUFFIXES "?") "\\p{N}{1,3}" CASED_REST}, 0},
};
#define N_PRETOKENIZERS (sizeof(pretokenizers) / sizeof(pretokenizers[0]))

static bool has_name(const char *names, const char *name)
{
    const size_t n = strlen(name);
    while (*names != '\0') {
        const size_t length = strcspn(names, " ");
        if (length == n && memcmp(names, name, n) == 0) {
            return true;
        }
        names += length;
        names += strspn(names, " ");
    }
    return false;
}

enum tandem_status tnd_tokenizer_add_pretokenizer(tandem_tokenizer *tokenizer, const char *pre,
                                                  struct tandem_error *error)
{
    for (size_t i = 0; i < N_PRETOKENIZERS; i++) {
        const struct pretokenizer *row = &pretokenizers[i];
        if (!has_name(row->names, pre)) {
            continue;
        }
        tokenizer->whole_words = (row->rules & WHOLE_WORDS) != 0;
        tokenizer->adds_bos = (row->rules & ADDS_BOS) != 0;
        for (int k = 0; k < TND_MAX_PRE_PATTERNS && row->patterns[k] != NULL; k++) {
            TND_TRY(tnd_tokenizer_add_split(tokenizer, row->patterns[k], error));
        }
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, "tokenizer.ggml.pre", 0, 0,
                         "tokenizer: the pre-tokenizer \"%.60s\" is not known; known are default, "
                         "gpt-2, llama-bpe, qwen2, falcon, starcoder and others",
                         pre);
}

/* Patterns published in tokenizer.json files, and the names that GGUF files use for them. */
#define LLAMA3_PATTERN(digits)                                                                     \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                           \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

const char *tnd_tokenizer_pre_name(const char *const *patterns, size_t n, bool whole_words,
                                   bool *io_is_all)
{
    static const struct {
        const char *name;
        const char *patterns[2];
        bool is_same; /* as what the name means here */
        bool whole_words;
    } published[] = {
        {"gpt-2", {GPT2 "|\\s+"}, true, false}, /* the rest is a piece of its own either way */
        {"starcoder", {"\\p{N}", GPT2 "|\\s+"}, true, false},
        {"llama-bpe", {LLAMA3_PATTERN("\\p{N}{1,3}")}, false, true},
        {"qwen2", {LLAMA3_PATTERN("\\p{N}")}, false, false},
    };
    for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
        const size_t n_wanted = published[i].patterns[1] == NULL ? 1 : 2;
        bool fits = n == n_wanted;
        for (size_t k = 0; fits && k < n; k++) {
            fits = strcmp(patterns[k], published[i].patterns[k]) == 0;
        }
        if (fits) {
            *io_is_all =
                *io_is_all && published[i].is_same && published[i].whole_words == whole_words;
            return published[i].name;
        }
    }
    return NULL;
}
