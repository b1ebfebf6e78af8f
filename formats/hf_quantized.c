/* SPDX-License-Identifier: MIT
 * Reads how weights of Hugging Face's models are quantised, from config.json. FP8 in blocks and
 * GPTQ and AWQ with 4 bits can be read (hf_unpack.c); everything else is refused by name. */
#include <stdio.h>
#include <string.h>

#include "formats/cursor.h"
#include "formats/json_pull.h"
#include "formats/safetensors.h"

/* Members of quantization_config. */
struct said {
    char method[32], format[32], version[32], scheme[32], width[32];
    int64_t bits, group, block[2];
    int n_block;
};

static enum tandem_status take_whole(struct tnd_json *json, int64_t *out,
                                     struct tandem_error *error)
{
    double number = 0.0;
    bool is_whole = false;
    TND_TRY(tnd_json_number(json, &number, out, &is_whole, error));
    *out = is_whole ? *out : -2; /* -2: not an integer; refused later */
    return TANDEM_OK;
}

static enum tandem_status take_block(struct tnd_json *json, struct said *said,
                                     struct tandem_error *error)
{
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_item(&walk)) {
        int64_t value = 0;
        TND_TRY(take_whole(json, &value, error));
        if (walk.i < 2) {
            said->block[walk.i] = value;
        }
        said->n_block = walk.i < 3 ? (int)walk.i + 1 : 3;
    }
    return walk.status;
}

static enum tandem_status take_member(struct tnd_json *json, const char *key, struct said *said,
                                      struct tandem_error *error)
{
    const struct {
        const char *key;
        char *text;
    } texts[] = {{"quant_method", said->method},
                 {"fmt", said->format},
                 {"checkpoint_format", said->format},
                 {"version", said->version},
                 {"activation_scheme", said->scheme}};
    const char c = tnd_json_peek(json);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && c == '"'; i++) {
        if (strcmp(key, texts[i].key) == 0) {
            return tnd_json_pull_string(json, texts[i].text, sizeof(said->method), error);
        }
    }
    const bool is_number = c == '-' || (c >= '0' && c <= '9');
    if (is_number && (strcmp(key, "bits") == 0 || strcmp(key, "w_bit") == 0)) {
        TND_TRY(take_whole(json, &said->bits, error));
        snprintf(said->width, sizeof(said->width), " in %lld bits", (long long)said->bits);
        return TANDEM_OK;
    }
    if (is_number && (strcmp(key, "group_size") == 0 || strcmp(key, "q_group_size") == 0)) {
        return take_whole(json, &said->group, error);
    }
    if (c == '[' && strcmp(key, "weight_block_size") == 0) {
        return take_block(json, said, error);
    }
    if (c == 't' && strncmp(key, "load_in_", 8) == 0) { /* of bitsandbytes */
        snprintf(said->width, sizeof(said->width), ", %.12s", key);
    }
    return tnd_json_skip(json, error);
}

/* Whether `text` is empty, `a` or `b`. */
static bool is_either(const char *text, const char *a, const char *b)
{
    return text[0] == '\0' || strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

/* Returns NULL and fills `out` if the weights can be read; else the reason. */
static const char *judge(const struct said *said, struct tnd_hf_quantized *out)
{
    const bool has_group = said->group == -1 || (said->group > 0 && said->group <= 1 << 20);
    *out = (struct tnd_hf_quantized){.group = said->group};
    if (strcmp(said->method, "fp8") == 0) {
        const bool has_block =
            said->n_block == 0 || (said->n_block == 2 && said->block[0] > 0 && said->block[1] > 0);
        out->method = TND_HF_FP8;
        out->block[0] = said->n_block == 0 ? INT64_MAX : said->block[0];
        out->block[1] = said->n_block == 0 ? INT64_MAX : said->block[1];
        return !is_either(said->format, "e4m3", "float8_e4m3fn") ? "expected fmt e4m3"
               : strcmp(said->scheme, "static") == 0 ? "expected activation_scheme dynamic"
               : !has_block                          ? "expected weight_block_size [rows, columns]"
                                                     : NULL;
    }
    if (strcmp(said->method, "gptq") == 0 && said->bits == 4) {
        out->method = TND_HF_GPTQ;
        out->zero_step = strcmp(said->format, "gptq_v2") == 0 ? 0 : 1;
        return !is_either(said->format, "gptq", "gptq_v2") ? "expected checkpoint_format gptq"
               : !has_group                                ? "expected a group_size"
                                                           : NULL;
    }
    if (strcmp(said->method, "awq") == 0 && said->bits == 4) {
        out->method = TND_HF_AWQ;
        return !is_either(said->version, "gemm", "GEMM") ? "expected version gemm"
               : !has_group                              ? "expected a group_size"
                                                         : NULL;
    }
    return "expected plain weights, fp8, or gptq or awq in 4 bits";
}

enum tandem_status tnd_hf_read_quantized(struct tnd_json *json, const char *member,
                                         struct tnd_hf_quantized *out, struct tandem_error *error)
{
    char key[128], why[192];
    struct said said = {.bits = 0};
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        TND_TRY(take_member(json, key, &said, error));
    }
    TND_TRY(walk.status);
    const char *wanted = judge(&said, out);
    if (wanted == NULL) {
        return TANDEM_OK;
    }
    out->method = TND_HF_PLAIN;
    snprintf(why, sizeof(why), "says that the weights are quantised by %s%s; %s",
             said.method[0] != '\0' ? said.method : "a method that it does not name", said.width,
             wanted);
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, member, 0, 0,
                         "%s: member \"%.60s\" %.150s", tnd_short_name(json->name), member, why);
}
