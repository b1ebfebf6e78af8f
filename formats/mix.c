/* SPDX-License-Identifier: MIT
 * Mixes of types: the rules of mix-list.h for one tensor. */
#include "formats/mix.h"

#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "formats/mix-list.h"

enum mix_number {
#define MIX_NUMBER(MIX, name, file_type, most, output, embeddings) MIX_##MIX,
    TND_MIX_LIST(MIX_NUMBER)
#undef MIX_NUMBER
};

static const struct mix_row {
    const char *name;
    int file_type;
    enum tandem_type most, output, embeddings;
} mixes[] = {
#define MIX_ROW(MIX, name, file_type, most, output, embeddings)                                    \
    {name, file_type, TANDEM_TYPE_##most, TANDEM_TYPE_##output, TANDEM_TYPE_##embeddings},
    TND_MIX_LIST(MIX_ROW)
#undef MIX_ROW
};
enum { N_MIXES = sizeof(mixes) / sizeof(mixes[0]) };

enum part { PART_NONE, PART_V, PART_K, PART_Q, PART_OUT, PART_UP, PART_DOWN };
enum when {
    WHEN_ALWAYS,
    WHEN_PLAIN, /* no importance is known */
    WHEN_FIRST_2,
    WHEN_FIRST_4,
    WHEN_FIRST_EIGHTH, /* of the layers */
    WHEN_FIRST_SIXTEENTH,
    WHEN_PLAIN_FIRST_EIGHTH,
    WHEN_IMPORTANT_FIRST_EIGHTH,
    WHEN_MIDDLE,    /* neither the first nor the last eighth */
    WHEN_MORE_BITS, /* the first and the last eighth, and every third layer between */
    WHEN_GROUPS_OF_4,
    WHEN_FOUR_EXPERTS,
    WHEN_EIGHT_EXPERTS,
    WHEN_FEW_EXPERTS, /* any number but 8 */
    WHEN_EIGHT_EXPERTS_MORE_BITS
};

static const struct rule {
    enum mix_number mix;
    enum part part;
    enum when when;
    enum tandem_type type;
} rules[] = {
#define RULE(MIX, part, when, type) {MIX_##MIX, PART_##part, WHEN_##when, TANDEM_TYPE_##type},
    TND_MIX_RULES(RULE)
#undef RULE
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool names_match(const char *name, const char *given)
{
    while (*name != '\0' && *name == lower(*given)) {
        name++;
        given++;
    }
    return *name == '\0' && *given == '\0';
}

enum tandem_status tnd_mix_find(const tandem_source *source, const char *name, bool has_importance,
                                struct tnd_mix *out, struct tandem_error *error)
{
    struct tandem_hparams h;
    int number = 0;
    while (number < N_MIXES && !names_match(mixes[number].name, name)) {
        number++;
    }
    if (number == N_MIXES) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, "mix", 0, 0,
                             "'%.40s' is no mix of types, expected one of llama.cpp such as q4_k_m",
                             name);
    }
    TND_TRY(tandem_source_hparams(source, &h, error));
    *out = (struct tnd_mix){.number = number,
                            .file_type = mixes[number].file_type,
                            .layers = h.layers,
                            .experts = h.experts,
                            .group = h.kv_heads > 0 ? h.heads / h.kv_heads : 1,
                            .is_tied = tnd_source_find(source, "output.weight") < 0,
                            .has_importance = has_importance};
    out->is_70b = h.layers == 80 && out->group > 1 &&
                  (strcmp(h.architecture, "llama") == 0 || strcmp(h.architecture, "qwen2") == 0);
    return TANDEM_OK;
}

static bool has(const struct tandem_source_tensor *tensor, const char *part)
{
    return strstr(tensor->name, part) != NULL;
}

static enum part part_of(const struct tandem_source_tensor *tensor)
{
    static const struct {
        const char *text;
        enum part part;
    } names[] = {
        {"attn_qkv.weight", PART_V}, {"attn_kv_b.weight", PART_V}, {"attn_v.weight", PART_V},
        {"attn_k.weight", PART_K},   {"attn_q.weight", PART_Q},    {"attn_output.weight", PART_OUT},
        {"ffn_up", PART_UP},         {"ffn_gate", PART_UP},        {"ffn_down", PART_DOWN}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (has(tensor, names[i].text)) {
            return names[i].part;
        }
    }
    return PART_NONE;
}

static bool takes_more_bits(int64_t layer, int64_t layers)
{
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

static bool holds(const struct tnd_mix *mix, enum when when, int64_t layer)
{
    const int64_t layers = mix->layers;
    switch (when) {
    case WHEN_PLAIN:
        return !mix->has_importance;
    case WHEN_FIRST_2:
        return layer < 2;
    case WHEN_FIRST_4:
        return layer < 4;
    case WHEN_FIRST_EIGHTH:
        return layer < layers / 8;
    case WHEN_FIRST_SIXTEENTH:
        return layer < layers / 16;
    case WHEN_PLAIN_FIRST_EIGHTH:
        return layer < layers / 8 && !mix->has_importance;
    case WHEN_IMPORTANT_FIRST_EIGHTH:
        return layer < layers / 8 && mix->has_importance;
    case WHEN_MIDDLE:
        return layer >= layers / 8 && layer < 7 * layers / 8;
    case WHEN_MORE_BITS:
        return takes_more_bits(layer, layers);
    case WHEN_GROUPS_OF_4:
        return mix->group >= 4;
    case WHEN_FOUR_EXPERTS:
        return mix->experts >= 4;
    case WHEN_EIGHT_EXPERTS:
        return mix->experts == 8;
    case WHEN_FEW_EXPERTS:
        return mix->experts != 8;
    case WHEN_EIGHT_EXPERTS_MORE_BITS:
        return mix->experts == 8 && takes_more_bits(layer, layers);
    default:
        return true;
    }
}

/* Type that the rules of a mix give a tensor of a block. */
static enum tandem_type type_by_rules(const struct tnd_mix *mix,
                                      const struct tandem_source_tensor *tensor)
{
    const struct mix_row *row = &mixes[mix->number];
    const enum part part = part_of(tensor);
    enum tandem_type type = row->most;
    int layer = 0;
    (void)sscanf(tensor->name, "blk.%d.", &layer);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if ((int)rules[i].mix == mix->number && rules[i].part == part &&
            holds(mix, rules[i].when, layer)) {
            type = rules[i].type;
            break;
        }
    }
    /* Mixes below 3 bits and MXFP4_MOE have no further rules. */
    if (row->output == TANDEM_TYPE_Q5_K && mix->number != MIX_IQ3_XXS) {
        return type;
    }
    if (mix->number == MIX_MXFP4_MOE) {
        return tensor->ne[2] > 1 ? TANDEM_TYPE_MXFP4 : type;
    }
    if (part == PART_V && mix->is_70b && (type == TANDEM_TYPE_Q3_K || type == TANDEM_TYPE_Q4_K)) {
        type = TANDEM_TYPE_Q5_K;
    }
    return (part == PART_V || part == PART_K) && mix->experts == 8 ? TANDEM_TYPE_Q8_0 : type;
}

/* Where rows are no whole blocks: a type of blocks of 32, or halves. */
static enum tandem_type fitting_type(enum tandem_type type, int64_t row_values)
{
    enum tandem_type fits = type;
    if (row_values % tandem_type_block_values(type) != 0) {
        switch (type) {
        case TANDEM_TYPE_Q2_K:
        case TANDEM_TYPE_Q3_K:
        case TANDEM_TYPE_TQ1_0:
        case TANDEM_TYPE_TQ2_0:
            fits = TANDEM_TYPE_Q4_0;
            break;
        case TANDEM_TYPE_Q4_K:
            fits = TANDEM_TYPE_Q5_0;
            break;
        case TANDEM_TYPE_Q5_K:
            fits = TANDEM_TYPE_Q5_1;
            break;
        case TANDEM_TYPE_Q6_K:
            fits = TANDEM_TYPE_Q8_0;
            break;
        default:
            fits = TANDEM_TYPE_IQ4_NL;
            break;
        }
    }
    return row_values % tandem_type_block_values(fits) == 0 ? fits : TANDEM_TYPE_F16;
}

/* Small tensors and those that are no factors of products stay. */
static bool is_converted(const struct tandem_source_tensor *tensor)
{
    static const char *const stay[] = {"_norm.weight", "ssm_conv1d",    "shortconv.conv.weight",
                                       "altup",        "laurel",        "per_layer_model_proj",
                                       "time_mix_",    "position_embd", "token_types"};
    const size_t n = strlen(tensor->name);
    for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++) {
        if (has(tensor, stay[i])) {
            return false;
        }
    }
    return tnd_source_converts(tensor) && n >= 6 && strcmp(tensor->name + n - 6, "weight") == 0;
}

enum tandem_type tnd_mix_type(const struct tnd_mix *mix, const struct tandem_source_tensor *tensor)
{
    const struct mix_row *row = &mixes[mix->number];
    const bool is_output = strcmp(tensor->name, "output.weight") == 0;
    const bool is_embedding = strcmp(tensor->name, "token_embd.weight") == 0 ||
                              strcmp(tensor->name, "per_layer_token_embd.weight") == 0;
    if (!is_converted(tensor)) {
        return tensor->type;
    }
    enum tandem_type type;
    if (is_output || (is_embedding && mix->is_tied)) {
        type = tensor->ne[0] % tandem_type_block_values(row->most) != 0 ? TANDEM_TYPE_Q8_0
                                                                        : row->output;
    } else {
        type = is_embedding ? row->embeddings : type_by_rules(mix, tensor);
    }
    return fitting_type(type, tensor->ne[0]);
}
