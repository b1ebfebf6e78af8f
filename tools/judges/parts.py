# SPDX-License-Identifier: MIT
# Multimodal models for models.py, used with text only: small random ones of transformers whose
# config.json has a text_config. Each row must agree with one of formats/hf_parts.c.
import os
import resource

import safetensors.torch
import transformers

# Members besides text_config can make transformers allocate all memory, too: report an error, do not die.
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
TINY = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
            image_size=28, patch_size=14)
# what it is called: the kind of its images, the model_types of its text
WHOLES = {
    "gemma3": ("siglip_vision_model", ("gemma3_text",)),
    "mistral3": ("pixtral", ("mistral", "llama")),
    "llava": ("clip_vision_model", ("llama", "mistral", "qwen2")),
    "llava_next": ("clip_vision_model", ("mistral", "llama")),
    "llava_onevision": ("siglip_vision_model", ("qwen2",)),
    "vipllava": ("clip_vision_model", ("llama",)),
    "internvl": ("internvl_vision", ("qwen2", "qwen3", "llama")),
    "got_ocr2": (None, ("qwen2",)),
    "idefics3": ("idefics3_vision", ("llama",)),
    "smolvlm": ("smolvlm_vision", ("llama",)),
}
FAMILIES = {name: transformers.CONFIG_MAPPING[name] for name in WHOLES
            if name in transformers.CONFIG_MAPPING}


# config.json as published: members at their usual values are left out, so the vocabulary is large
PUBLISHED = {
    "gemma3": {"Gemma 3 4B": dict(
        boi_token_index=255999, eoi_token_index=256000, eos_token_id=[1, 106], image_token_index=262144,
        initializer_range=0.02, mm_tokens_per_image=256, torch_dtype="bfloat16",
        transformers_version="4.50.0.dev0", text_config=dict(
            hidden_size=32, intermediate_size=24, model_type="gemma3_text", num_hidden_layers=7,
            rope_scaling={"factor": 8.0, "rope_type": "linear"}, sliding_window=8),
        vision_config=dict(TINY, model_type="siglip_vision_model", vision_use_head=False))},
    "mistral3": {"Mistral Small 3.1": dict(
        image_token_index=10, multimodal_projector_bias=False, projector_hidden_act="gelu",
        spatial_merge_size=2, torch_dtype="bfloat16", transformers_version="4.50.0.dev0",
        vision_feature_layer=-1, text_config=dict(
            attention_dropout=0.0, head_dim=16, hidden_act="silu", hidden_size=40,
            initializer_range=0.02, intermediate_size=24, max_position_embeddings=131072,
            model_type="mistral", num_attention_heads=4, num_hidden_layers=3, num_key_value_heads=2,
            rms_norm_eps=1e-05, rope_theta=1000000000.0, sliding_window=None, use_cache=True,
            vocab_size=131072),
        vision_config=dict(TINY, model_type="pixtral", head_dim=8, hidden_act="gelu", num_channels=3,
                           rope_theta=10000.0, attention_dropout=0.0, initializer_range=0.02))},
    "llava": {"LLaVA 1.5": dict(
        ignore_index=-100, image_token_index=32000, pad_token_id=32001, projector_hidden_act="gelu",
        tie_word_embeddings=False, torch_dtype="float16", transformers_version="4.36.0.dev0",
        vision_feature_layer=-2, vision_feature_select_strategy="default", vocab_size=32064,
        text_config=dict(_name_or_path="lmsys/vicuna-7b-v1.5", architectures=["LlamaForCausalLM"],
                         hidden_size=64, intermediate_size=24, num_hidden_layers=2,
                         max_position_embeddings=4096, model_type="llama", rms_norm_eps=1e-05,
                         torch_dtype="float16", vocab_size=32064),
        vision_config=dict(TINY, model_type="clip_vision_model", projection_dim=768, vocab_size=32000))},
}


def random_config(rng, family, random_text):
    """One that transformers takes."""
    while True:
        try:
            return try_config(rng, family, random_text)
        except Exception:
            pass


def try_config(rng, family, random_text):
    vision, texts = WHOLES[family]
    text = random_text(rng, rng.choice(texts))
    if (text.rope_parameters or {}).get("rope_type") == "longrope":
        raise ValueError("transformers goes by the text's length, we by the session's")
    options = {**text.to_dict(), "model_type": text.model_type}
    options.pop("final_logit_softcapping", None)  # passed over, so we refuse it
    images = {"hidden_size": 16, "mlp_dim": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
              "image_size": 28, "patch_size": 14, "output_channels": 8, "window_size": 2,
              "global_attn_indexes": []} if vision is None else {**TINY, "model_type": vision}
    if vision == "internvl_vision":
        images.update(image_size=[28, 28], patch_size=[14, 14])
    tied = {"tie_word_embeddings": text.tie_word_embeddings} if rng.random() < 0.7 else {}
    return FAMILIES[family](text_config=options, vision_config=images, **tied)


def is_absurd(config):
    """Without sizes of its parts it is as large as the largest published one."""
    if config.get("model_type") in FAMILIES:
        return not (config.get("text_config") and config.get("vision_config"))
    return "text_config" in config or "vision_config" in config


def is_of_images(name):
    """A tensor that a text needs not, whatever becomes of it."""
    return any(part in name for part in ("vision_", "multi_modal_projector", "connector", "image_newline"))


def auto(config):
    """Which of transformers' classes loads such a model."""
    return transformers.AutoModelForImageTextToText if config.get("model_type") in FAMILIES else \
        transformers.AutoModelForCausalLM


def rename(folder):
    """Names as version 5 of transformers has them inside, and some files have them, too."""
    path = os.path.join(folder, "model.safetensors")
    pairs = (("language_model.model.", "model.language_model."), ("language_model.lm_head", "lm_head"),
             ("vision_tower.", "model.vision_tower."),
             ("multi_modal_projector.", "model.multi_modal_projector."))
    renamed = {}
    for name, tensor in safetensors.torch.load_file(path).items():
        for begin, other in pairs:
            if name.startswith(begin):
                name = other + name[len(begin):]
                break
        renamed[name] = tensor
    safetensors.torch.save_file(renamed, path, {"format": "pt"})
