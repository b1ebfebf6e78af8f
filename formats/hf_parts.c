/* SPDX-License-Identifier: MIT
 * Multimodal models, of which the text part is read. Facts: the configurations of
 * huggingface/transformers 5.24, and the names in files that versions 4 and 5 write. */
#include "formats/hf_parts.h"

#include <string.h>

#include "formats/llama_tensors.h"
#include "formats/safetensors.h"

static const struct tnd_hf_whole wholes[] = {
    {.model_type = "gemma3", .text = "gemma3_text", .has_one_text = true, .is_tied = true},
    {.model_type = "mistral3", .text = "mistral", .is_tied = true},
    {.model_type = "llava", .text = "llama", .is_tied_by_text = true},
    {.model_type = "llava_next", .text = "llama"},
    {.model_type = "llava_onevision", .text = "qwen2", .is_tied_by_text = true},
    {.model_type = "vipllava", .text = "llama"},
    {.model_type = "internvl", .text = "qwen2", .is_tied = true},
    {.model_type = "got_ocr2", .text = "qwen2", .is_tied = true},
    {.model_type = "idefics3", .text = "llama"},
    {.model_type = "smolvlm", .text = "llama"},
};

const struct tnd_hf_whole *tnd_hf_whole_of(const char *model_type)
{
    for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++) {
        if (strcmp(model_type, wholes[i].model_type) == 0) {
            return &wholes[i];
        }
    }
    return NULL;
}

const struct tnd_hf_whole *tnd_hf_whole_at(int i)
{
    const int n = sizeof(wholes) / sizeof(wholes[0]);
    return i >= 0 && i < n ? &wholes[i] : NULL;
}

const char *tnd_hf_text_defaults(const char *model_type)
{
    static const char *const rows[][2] = {
        {"gemma3_text", "{\"hidden_size\":2304,\"intermediate_size\":9216,\"num_hidden_layers\":26,"
                        "\"num_attention_heads\":8,\"vocab_size\":262208}"},
        {"llama", "{\"hidden_size\":4096,\"intermediate_size\":11008,\"num_hidden_layers\":32,"
                  "\"num_attention_heads\":32,\"vocab_size\":32000}"},
        {"mistral", "{\"hidden_size\":4096,\"intermediate_size\":14336,\"num_hidden_layers\":32,"
                    "\"num_attention_heads\":32,\"vocab_size\":32000}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(model_type, rows[i][0]) == 0) {
            return rows[i][1];
        }
    }
    return NULL;
}

bool tnd_hf_is_of_other_parts(const char *member)
{
    return tnd_llama_lists(
        "text_config vision_config image_token_index image_token_id video_token_index "
        "video_token_id boi_token_index eoi_token_index mm_tokens_per_image image_seq_length "
        "image_grid_pinpoints projector_hidden_act projector_layernorm_eps vision_feature_layer "
        "vision_feature_select_strategy vision_aspect_ratio multimodal_projector_bias "
        "spatial_merge_size downsample_ratio "
        "scale_factor ignore_index vocab_size _pad_token_id",
        member);
}

/* The rest of `name` after the first of n prefixes that matches; NULL: none does. */
static const char *behind(const char *name, const char *const beginnings[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t length = strlen(beginnings[i]);
        if (strncmp(name, beginnings[i], length) == 0) {
            return name + length;
        }
    }
    return NULL;
}

/* Maps a tensor name of the text part to that in a text-only model's file. */
static bool map_part(const char *name, char *out, size_t capacity)
{
    static const char *const texts[] = {"language_model.model.", "language_model.",
                                        "model.language_model.", "model.text_model."};
    static const char *const others[] = {"vision_tower.",          "model.vision_tower.",
                                         "multi_modal_projector.", "model.multi_modal_projector.",
                                         "model.vision_model.",    "model.connector.",
                                         "image_newline",          "model.image_newline"};
    const char *text = behind(name, texts, sizeof(texts) / sizeof(texts[0]));
    if (text != NULL || strcmp(name, "lm_head.weight") == 0) {
        return tnd_safetensors_map_name(text != NULL ? text : name, out, capacity);
    }
    if (behind(name, others, sizeof(others) / sizeof(others[0])) != NULL) {
        return false;
    }
    (void)strncpy(out, name, capacity - 1); /* refused later as unknown */
    out[capacity - 1] = '\0';
    return true;
}

tnd_hf_name_map *tnd_hf_names_of(const struct tnd_hf_whole *whole)
{
    return whole != NULL ? map_part : tnd_safetensors_map_name;
}
