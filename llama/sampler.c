/* SPDX-License-Identifier: MIT
 * The steps of a choice. Computing weights, selecting and drawing are in ggml-like/sample.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llama/grammar.h"
#include "llama/grammar_guard.h"
#include "llama/sampler.h"
#include "tandem/sample.h"
#include "llama/utf8.h"

/* The vocabulary's bytes, for the mask of valid UTF-8. */
struct token_bytes {
    const void *of;    /* the tokenizer that they are of */
    char *bytes;       /* of all tokens, one after the other */
    size_t *starts;    /* {vocabulary + 1} */
    bool *begins_well; /* {vocabulary}: may follow a complete character */
    uint32_t *bits;    /* {(vocabulary + 31) / 32}: the same as bits, for the operation `sample` */
    bool *goes_on;     /* {vocabulary}: may follow the current, incomplete character */
};

struct tandem_sampler {
    struct tandem_sampler_options options;
    uint64_t state;  /* of the random number generator */
    float *logits;   /* {vocabulary}: logits after the penalty, if it applies */
    void *memory;    /* scratch memory of tandem_sample_row */
    int32_t *recent; /* {repeat_last}: ring of tokens */
    int64_t n_recent, next_recent;
    struct token_bytes tokens; /* bytes NULL: no mask */
    struct tnd_utf8 utf8;
    struct tnd_grammar_guard *guard; /* NULL: no grammar */
};

/* ---- opening ---- */

static enum tandem_status check_options(const struct tandem_sampler_options *o,
                                        struct tandem_error *error)
{
    if (o->vocabulary >= 1 && o->vocabulary <= INT32_MAX && o->temperature >= 0.0f &&
        isfinite(o->temperature) && o->top_p >= 0.0f && o->top_p <= 1.0f && o->min_p >= 0.0f &&
        o->min_p <= 1.0f && o->top_k >= 0 && o->repeat_penalty >= 0.0f &&
        isfinite(o->repeat_penalty) && o->repeat_last >= 0 && o->repeat_last <= 1 << 20) {
        return TANDEM_OK;
    }
    return tnd_llama_fail(
        error, TANDEM_E_ARGUMENT, "sampler", o->vocabulary, INT32_MAX,
        "sampler: vocabulary %lld, temperature %g, top-k %lld, top-p %g, min-p %g, penalty %g of "
        "the last %lld; expected 1 or more, 0 or more, 0 or more, 0 to 1, 0 to 1, 0 or more, 0 or "
        "more",
        (long long)o->vocabulary, (double)o->temperature, (long long)o->top_k, (double)o->top_p,
        (double)o->min_p, (double)o->repeat_penalty, (long long)o->repeat_last);
}

static enum tandem_status no_memory(const struct tandem_sampler_options *o,
                                    struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_MEMORY, "sampler", o->vocabulary, 0,
                          "sampler: no memory for %lld candidates", (long long)o->vocabulary);
}

static void set_options(tandem_sampler *sampler, const struct tandem_sampler_options *o)
{
    sampler->options = *o;
    sampler->options.repeat_last = o->repeat_last > 0 ? o->repeat_last : 64;
    sampler->state = o->seed;
}

enum tandem_status tandem_sampler_new(const struct tandem_sampler_options *given,
                                      tandem_sampler **out_sampler, struct tandem_error *error)
{
    LLAMA_REQUIRE(out_sampler, error);
    struct tandem_sampler_options o = TANDEM_SAMPLER_OPTIONS_INIT;
    LLAMA_TRY(tnd_llama_options_read(given, "sampler options", &o, sizeof(o), error));
    LLAMA_TRY(check_options(&o, error));
    const size_t n = (size_t)o.vocabulary;
    tandem_sampler *sampler = calloc(1, sizeof(*sampler));
    if (sampler == NULL) {
        return no_memory(&o, error);
    }
    set_options(sampler, &o);
    sampler->logits = calloc(n, sizeof(float));
    sampler->recent = calloc((size_t)sampler->options.repeat_last, sizeof(int32_t));
    sampler->memory = calloc(1, tandem_sample_memory(o.vocabulary));
    if (sampler->logits == NULL || sampler->recent == NULL || sampler->memory == NULL) {
        tandem_sampler_free(sampler);
        return no_memory(&o, error);
    }
    *out_sampler = sampler;
    return TANDEM_OK;
}

enum tandem_status tandem_sampler_renew(tandem_sampler *sampler,
                                        const struct tandem_sampler_options *given,
                                        struct tandem_error *error)
{
    LLAMA_REQUIRE(sampler, error);
    struct tandem_sampler_options o = TANDEM_SAMPLER_OPTIONS_INIT;
    LLAMA_TRY(tnd_llama_options_read(given, "sampler options", &o, sizeof(o), error));
    LLAMA_TRY(check_options(&o, error));
    if (o.vocabulary != sampler->options.vocabulary) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "sampler", o.vocabulary,
                              sampler->options.vocabulary,
                              "sampler: a vocabulary of %lld tokens, expected %lld as before",
                              (long long)o.vocabulary, (long long)sampler->options.vocabulary);
    }
    const int64_t repeat_last = o.repeat_last > 0 ? o.repeat_last : 64;
    if (repeat_last > sampler->options.repeat_last) {
        int32_t *recent = calloc((size_t)repeat_last, sizeof(recent[0]));
        if (recent == NULL) {
            return no_memory(&o, error);
        }
        free(sampler->recent);
        sampler->recent = recent;
    }
    set_options(sampler, &o);
    tnd_grammar_guard_free(sampler->guard);
    sampler->guard = NULL;
    tandem_sampler_reset(sampler);
    return TANDEM_OK;
}

static void free_tokens(struct token_bytes *tokens)
{
    free(tokens->bytes);
    free(tokens->starts);
    free(tokens->begins_well);
    free(tokens->bits);
    free(tokens->goes_on);
}

void tandem_sampler_free(tandem_sampler *sampler)
{
    if (sampler != NULL) {
        free(sampler->memory);
        free(sampler->logits);
        free(sampler->recent);
        free_tokens(&sampler->tokens);
        tnd_grammar_guard_free(sampler->guard);
        free(sampler);
    }
}

/* ---- the mask of valid UTF-8 ---- */

/* Bytes of all tokens: only counted if `bytes` is NULL, else written. */
static void fill_tokens(const tandem_tokenizer *tokenizer, int64_t vocabulary,
                        struct token_bytes *tokens)
{
    size_t at = 0;
    for (int64_t i = 0; i < vocabulary; i++) {
        char nowhere[1];
        char *place = tokens->bytes == NULL ? nowhere : tokens->bytes + at;
        const size_t capacity = tokens->bytes == NULL ? 0 : tokens->starts[i + 1] - at;
        const size_t n = i < tandem_tokenizer_vocabulary(tokenizer)
                             ? tandem_tokenizer_decode(tokenizer, -1, (int32_t)i, place, capacity)
                             : 0;
        tokens->starts[i] = at;
        at += n;
        tokens->starts[i + 1] = tokens->bytes == NULL ? at : tokens->starts[i + 1];
    }
}

enum tandem_status tandem_sampler_keep_utf8(tandem_sampler *sampler,
                                            const tandem_tokenizer *tokenizer,
                                            struct tandem_error *error)
{
    LLAMA_REQUIRE(sampler, error);
    LLAMA_REQUIRE(tokenizer, error);
    const int64_t n = sampler->options.vocabulary;
    struct token_bytes tokens = {.of = tokenizer,
                                 .starts = calloc((size_t)n + 1, sizeof(size_t)),
                                 .begins_well = calloc((size_t)n, sizeof(bool)),
                                 .bits = calloc((size_t)(n + 31) / 32, sizeof(uint32_t)),
                                 .goes_on = calloc((size_t)n, sizeof(bool))};
    if (tokens.starts != NULL) {
        fill_tokens(tokenizer, n, &tokens);
        tokens.bytes = calloc(tokens.starts[n] + 1, 1);
    }
    if (tokens.bytes == NULL || tokens.begins_well == NULL || tokens.bits == NULL ||
        tokens.goes_on == NULL) {
        free_tokens(&tokens);
        return no_memory(&sampler->options, error);
    }
    fill_tokens(tokenizer, n, &tokens);
    for (int64_t i = 0; i < n; i++) {
        struct tnd_utf8 state = {0};
        tokens.begins_well[i] = tnd_utf8_accepts(&state, tokens.bytes + tokens.starts[i],
                                                 tokens.starts[i + 1] - tokens.starts[i]);
        tokens.bits[i / 32] |= (uint32_t)tokens.begins_well[i] << i % 32;
    }
    free_tokens(&sampler->tokens);
    sampler->tokens = tokens;
    sampler->utf8 = (struct tnd_utf8){0};
    return TANDEM_OK;
}

/* ---- grammars ---- */

enum tandem_status tandem_sampler_set_grammar(tandem_sampler *sampler,
                                              const tandem_grammar *grammar,
                                              const tandem_token_trie *trie,
                                              struct tandem_error *error)
{
    LLAMA_REQUIRE(sampler, error);
    struct tnd_grammar_guard *guard = NULL;
    if (grammar != NULL) {
        LLAMA_REQUIRE(trie, error);
        if (tnd_token_trie_vocabulary(trie) != sampler->options.vocabulary) {
            return tnd_llama_fail(
                error, TANDEM_E_ARGUMENT, "sampler", tnd_token_trie_vocabulary(trie),
                sampler->options.vocabulary, "sampler: a token trie of %lld tokens, expected %lld",
                (long long)tnd_token_trie_vocabulary(trie), (long long)sampler->options.vocabulary);
        }
        guard = tnd_grammar_guard_new(grammar, trie);
        if (guard == NULL) {
            return no_memory(&sampler->options, error);
        }
    }
    tnd_grammar_guard_free(sampler->guard);
    sampler->guard = guard;
    return TANDEM_OK;
}

enum tandem_grammar_state tandem_sampler_grammar_state(const tandem_sampler *sampler)
{
    return sampler != NULL && sampler->guard != NULL ? tnd_grammar_guard_state(sampler->guard)
                                                     : TANDEM_GRAMMAR_NONE;
}

enum tandem_status tnd_sampler_check(const tandem_sampler *sampler, int32_t token,
                                     struct tandem_error *error)
{
    const enum tandem_grammar_state state = tandem_sampler_grammar_state(sampler);
    if (token >= 0 || state == TANDEM_GRAMMAR_NONE || state == TANDEM_GRAMMAR_COMPLETE ||
        state == TANDEM_GRAMMAR_MAY_END) {
        return TANDEM_OK;
    }
    return tnd_llama_fail(error, TANDEM_E_FORMAT, "grammar", token, 0,
                          state == TANDEM_GRAMMAR_BROKEN
                              ? "grammar: too ambiguous for this text, or out of memory"
                              : "grammar: no token of the model can go on the text");
}

/* {vocabulary}: which tokens may come next; NULL: all. */
static const bool *mask_of(const tandem_sampler *sampler)
{
    const struct token_bytes *t = &sampler->tokens;
    if (t->bytes == NULL || sampler->utf8.left == 0) {
        return t->begins_well;
    }
    for (int64_t i = 0; i < sampler->options.vocabulary; i++) {
        struct tnd_utf8 state = sampler->utf8;
        const size_t n = t->starts[i + 1] - t->starts[i];
        t->goes_on[i] = n > 0 && tnd_utf8_accepts(&state, t->bytes + t->starts[i], n);
    }
    return t->goes_on;
}

enum tandem_status tnd_sampler_mask(tandem_sampler *sampler, const tandem_tokenizer *tokenizer,
                                    struct tandem_error *error)
{
    if (sampler->options.any_bytes || sampler->tokens.of == tokenizer) {
        return TANDEM_OK;
    }
    return tandem_sampler_keep_utf8(sampler, tokenizer, error);
}

/* ---- the penalty ---- */

void tandem_sampler_accept(tandem_sampler *sampler, int32_t token, bool is_output)
{
    if (sampler == NULL || token < 0 || token >= sampler->options.vocabulary) {
        return;
    }
    sampler->recent[sampler->next_recent] = token;
    sampler->next_recent = (sampler->next_recent + 1) % sampler->options.repeat_last;
    if (sampler->n_recent < sampler->options.repeat_last) {
        sampler->n_recent++;
    }
    const struct token_bytes *t = &sampler->tokens;
    if (t->bytes != NULL &&
        (!is_output || !tnd_utf8_accepts(&sampler->utf8, t->bytes + t->starts[token],
                                         t->starts[token + 1] - t->starts[token]))) {
        /* a prompt, or broken text: the output starts anew */
        sampler->utf8 = (struct tnd_utf8){0};
    }
    if (sampler->guard != NULL && is_output) {
        tnd_grammar_guard_accept(sampler->guard, token);
    } else if (sampler->guard != NULL) {
        tnd_grammar_guard_reset(sampler->guard);
    }
}

void tandem_sampler_reset(tandem_sampler *sampler)
{
    if (sampler == NULL) {
        return;
    }
    sampler->n_recent = 0;
    sampler->next_recent = 0;
    sampler->utf8 = (struct tnd_utf8){0};
    if (sampler->guard != NULL) {
        tnd_grammar_guard_reset(sampler->guard);
    }
}

float tnd_sampler_weaken(float logit, float penalty)
{
    return logit > 0.0f ? logit / penalty : logit * penalty;
}

/* Applies the penalty once to each recent token, no matter how often it occurs. */
static void apply_penalty(const tandem_sampler *sampler, const float *original, float *logits)
{
    const float penalty = sampler->options.repeat_penalty;
    for (int64_t i = 0; i < sampler->n_recent; i++) {
        const int32_t token = sampler->recent[i];
        LLAMA_ASSERT(token >= 0 && token < sampler->options.vocabulary);
        logits[token] = tnd_sampler_weaken(original[token], penalty);
    }
}

/* Number of tokens to which the penalty applies. */
static int64_t n_weakened(const tandem_sampler *sampler)
{
    const float penalty = sampler->options.repeat_penalty;
    return penalty == 0.0f || penalty == 1.0f ? 0 : sampler->n_recent;
}

/* The logits after the penalty; `logits` itself if it does not apply. */
static const float *change_logits(tandem_sampler *sampler, const float *logits)
{
    if (n_weakened(sampler) == 0) {
        return logits;
    }
    memcpy(sampler->logits, logits, (size_t)sampler->options.vocabulary * sizeof(float));
    apply_penalty(sampler, logits, sampler->logits);
    return sampler->logits;
}

/* ---- the choice ---- */

/* splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The mask of the next token; `out_is_broken`: the grammar allows no token. */
static const bool *current_mask(tandem_sampler *sampler, bool *out_is_broken)
{
    const bool *mask =
        sampler->guard != NULL ? tnd_grammar_guard_mask(sampler->guard) : mask_of(sampler);
    *out_is_broken = sampler->guard != NULL && mask == NULL;
    return mask;
}

/* Chooses a token from the original logits. A UTF-8 mask that leaves no token is ignored; a
 * grammar's is not: -1. `out_kept`, `out_n`: NULL, or receive the tokens that were kept;
 * `out_probability`: NULL, or receives the token's. */
static int32_t choose(tandem_sampler *sampler, const float *given, uint64_t random,
                      int32_t *out_kept, int64_t *out_n, float *out_probability)
{
    const struct tandem_sampler_options *o = &sampler->options;
    const float *logits = change_logits(sampler, given);
    struct tandem_sample_settings settings;
    struct tandem_sample_choice choice = {0, 0, 0};
    tandem_sample_settings_fill(&settings, o->temperature, o->top_k, o->top_p, o->min_p, random);
    bool is_broken;
    const bool *mask = current_mask(sampler, &is_broken);
    int64_t n = is_broken ? 0
                          : tandem_sample_row(&settings, logits, o->vocabulary, mask,
                                              sampler->memory, out_kept, &choice);
    if (n == 0 && sampler->guard == NULL && mask != NULL) {
        n = tandem_sample_row(&settings, logits, o->vocabulary, NULL, sampler->memory, out_kept,
                              &choice);
    }
    if (out_n != NULL) {
        *out_n = n;
    }
    if (out_probability != NULL) {
        *out_probability = tnd_sampler_probability(&choice);
    }
    return n == 0 && sampler->guard != NULL ? -1 : choice.index;
}

float tnd_sampler_probability(const struct tandem_sample_choice *choice)
{
    return choice->total > 0 ? (float)((double)choice->weight / (double)choice->total) : 0.0f;
}

int32_t tnd_sampler_choose(tandem_sampler *sampler, const float *logits, float *out_probability)
{
    if (sampler == NULL || logits == NULL) {
        return -1;
    }
    const uint64_t random = sampler->options.temperature > 0.0f ? draw(&sampler->state) : 0;
    return choose(sampler, logits, random, NULL, NULL, out_probability);
}

int32_t tandem_sampler_sample(tandem_sampler *sampler, const float *logits)
{
    return tnd_sampler_choose(sampler, logits, NULL);
}

int64_t tnd_sampler_keep(tandem_sampler *sampler, const float *logits, int32_t *out_tokens)
{
    int64_t n = 0;
    (void)choose(sampler, logits, 0, out_tokens, &n, NULL);
    return n;
}

/* ---- with the operation `sample` ---- */

bool tnd_sampler_ask(const tandem_sampler *sampler, int64_t vocabulary,
                     struct tandem_sample_settings *out_settings, const uint32_t **out_mask,
                     int *steps)
{
    const struct tandem_sampler_options *o = &sampler->options;
    const bool has_penalty = o->repeat_penalty != 0.0f && o->repeat_penalty != 1.0f;
    const bool has_mask = sampler->tokens.bytes != NULL;
    if (has_penalty || sampler->guard != NULL || (has_mask && sampler->utf8.left > 0) ||
        o->vocabulary != vocabulary) {
        return false;
    }
    uint64_t state = sampler->state;
    struct tandem_sample_settings s;
    tandem_sample_settings_fill(&s, o->temperature, o->top_k, o->top_p, o->min_p, draw(&state));
    *steps |= (s.scale != 0 ? TANDEM_SAMPLE_DRAWS : 0) | (s.k != 0 ? TANDEM_SAMPLE_K : 0) |
              (s.share != 0 ? TANDEM_SAMPLE_SHARE : 0);
    *out_settings = s;
    *out_mask = has_mask ? sampler->tokens.bits : NULL;
    return true;
}

bool tnd_sampler_request(tandem_sampler *sampler, int64_t vocabulary,
                         struct tnd_sampler_request *out)
{
    const struct tandem_sampler_options *o = &sampler->options;
    uint64_t state = sampler->state;
    bool is_broken;
    *out = (struct tnd_sampler_request){.penalty = o->repeat_penalty,
                                        .recent = sampler->recent,
                                        .n_recent = n_weakened(sampler),
                                        .mask = current_mask(sampler, &is_broken)};
    tandem_sample_settings_fill(&out->settings, o->temperature, o->top_k, o->top_p, o->min_p,
                                draw(&state));
    return !is_broken && o->vocabulary == vocabulary;
}

void tnd_sampler_took(tandem_sampler *sampler)
{
    if (sampler->options.temperature > 0.0f) {
        (void)draw(&sampler->state);
    }
}
