/* SPDX-License-Identifier: MIT
 * Which tokens begin and end a text, and whether they are added: what tokenizer.json's
 * post_processor says (docs of huggingface/tokenizers, "Post-processors"), names that are common
 * where it says nothing, and tokenizer_config.json, which counts before both, as in transformers'
 * tokenizers of Llama and in llama.cpp's converter. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "formats/tnd_tokenizer.h"
#include "formats/tokenizer_json.h"

#ifdef TND_HAVE_CJSON

#define MAX_CONFIG_BYTES ((size_t)16 << 20)
#define MAX_DEPTH        8 /* of processors within processors */

struct frame {
    const char *first; /* tokens around the text, or NULL */
    const char *last;
    int n_between; /* end tokens between two texts */
    bool tells_pairs;
};

static const cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* Number of end tokens between two texts in a template for pairs, with nothing else between; 0:
 * another template. */
static int count_between(const cJSON *pair, const char *last, bool *out_tells)
{
    const cJSON *item = NULL;
    int n = 0;
    bool is_behind = false;
    cJSON_ArrayForEach(item, pair)
    {
        const cJSON *text = member(item, "Sequence");
        const char *token = tnd_hf_text(member(item, "SpecialToken"), "id");
        if (text != NULL && is_behind) {
            *out_tells = cJSON_GetNumberValue(member(text, "type_id")) == 1.0;
            return n;
        }
        if (is_behind && (token == NULL || last == NULL || strcmp(token, last) != 0)) {
            return 0;
        }
        n += is_behind;
        is_behind = is_behind || text != NULL;
    }
    return 0;
}

/* Looks for a template like "<s> $A </s>", or the pairs of BERT and RoBERTa. */
static bool find_frame(const cJSON *processor, int depth, struct frame *out)
{
    const cJSON *item = NULL;
    const cJSON *single = member(processor, "single");
    const cJSON *cls = member(processor, "cls");
    const cJSON *sep = member(processor, "sep");
    if (cJSON_IsArray(single) && single->child != NULL) {
        out->first = tnd_hf_text(member(single->child, "SpecialToken"), "id");
        item = cJSON_GetArrayItem(single, cJSON_GetArraySize(single) - 1);
        out->last = tnd_hf_text(member(item, "SpecialToken"), "id");
        out->n_between = count_between(member(processor, "pair"), out->last, &out->tells_pairs);
        return true;
    }
    if (cJSON_IsArray(cls) && cJSON_IsArray(sep)) {
        out->first = cJSON_GetStringValue(cls->child);
        out->last = cJSON_GetStringValue(sep->child);
        const char *type = tnd_hf_text(processor, "type");
        out->tells_pairs = type != NULL && strcmp(type, "BertProcessing") == 0;
        out->n_between = out->tells_pairs ? 1 : 2; /* RobertaProcessing */
        return true;
    }
    cJSON_ArrayForEach(item, member(processor, "processors"))
    {
        if (depth < MAX_DEPTH && find_frame(item, depth + 1, out)) {
            return true;
        }
    }
    return false;
}

static int32_t first_known(const tandem_tokenizer *tokenizer, const char *const *names)
{
    int32_t id = -1;
    while (id < 0 && *names != NULL) {
        id = tandem_tokenizer_find(tokenizer, *names++);
    }
    return id;
}

void tnd_hf_find_roles(const cJSON *root, tandem_tokenizer *tokenizer)
{
    static const char *const begins[] = {"<s>",   "<|begin_of_text|>", "<|startoftext|>",
                                         "<bos>", "<|endoftext|>",     NULL};
    static const char *const ends[] = {"</s>",       "<|end_of_text|>", "<eos>", "<|im_end|>",
                                       "<|eot_id|>", "<|endoftext|>",   NULL};
    struct frame frame = {.first = NULL};
    (void)find_frame(member(root, "post_processor"), 0, &frame);
    tokenizer->bos = tandem_tokenizer_find(tokenizer, frame.first);
    tokenizer->eos = tandem_tokenizer_find(tokenizer, frame.last);
    tokenizer->adds_bos = tokenizer->bos >= 0;
    tokenizer->adds_eos = tokenizer->eos >= 0;
    tokenizer->n_between = frame.n_between;
    tokenizer->tells_pairs = frame.tells_pairs;
    tokenizer->bos = tokenizer->adds_bos ? tokenizer->bos : first_known(tokenizer, begins);
    tokenizer->eos = tokenizer->adds_eos ? tokenizer->eos : first_known(tokenizer, ends);
}

const char *tnd_hf_role(const cJSON *config, const char *role)
{
    const char *text = tnd_hf_text(config, role);
    return text != NULL ? text : tnd_hf_text(member(config, role), "content");
}

enum tandem_status tnd_hf_read_config(const void *bytes, size_t n, const char *name,
                                      tandem_tokenizer *tokenizer, struct tandem_error *error)
{
    const struct tnd_hf_reader reader = {.name = name, .n_bytes = n};
    cJSON *config = NULL;
    TND_TRY(tnd_hf_parse(&reader, bytes, &config, error));
    const int32_t bos = tandem_tokenizer_find(tokenizer, tnd_hf_role(config, "bos_token"));
    const int32_t eos = tandem_tokenizer_find(tokenizer, tnd_hf_role(config, "eos_token"));
    tokenizer->bos = bos >= 0 ? bos : tokenizer->bos;
    tokenizer->eos = eos >= 0 ? eos : tokenizer->eos;
    tokenizer->adds_bos = tnd_hf_flag(config, "add_bos_token", tokenizer->adds_bos);
    tokenizer->adds_eos = tnd_hf_flag(config, "add_eos_token", tokenizer->adds_eos);
    cJSON_Delete(config);
    return TANDEM_OK;
}

/* The tokenizer_config.json that belongs to a file of one of the names that models have. */
static bool config_path(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const int folder = (int)(name - path);
    return (strcmp(name, "tokenizer.json") == 0 || strcmp(name, "tokenizer.model") == 0 ||
            strcmp(name, "vocab.json") == 0) &&
           snprintf(out, PATH_MAX, "%.*stokenizer_config.json", folder, path) < PATH_MAX &&
           tnd_file_exists(out);
}

enum tandem_status tnd_tokenizer_read_config(const char *path, tandem_tokenizer *tokenizer,
                                             struct tandem_error *error)
{
    char config[PATH_MAX];
    struct tnd_file file = {0};
    if (!config_path(path, config)) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_file_read(config, MAX_CONFIG_BYTES, &file, error));
    const enum tandem_status status =
        tnd_hf_read_config(file.data, file.bytes, config, tokenizer, error);
    tnd_file_close(&file);
    return status;
}

#else

enum tandem_status tnd_tokenizer_read_config(const char *path, tandem_tokenizer *tokenizer,
                                             struct tandem_error *error)
{
    (void)path; /* (sentencepiece's models have defaults that are those of Llama) */
    (void)tokenizer;
    (void)error;
    return TANDEM_OK;
}

#endif
