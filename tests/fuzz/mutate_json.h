/* SPDX-License-Identifier: MIT
 * Changes of JSON texts that keep them JSON: numbers at their borders, words that readers ask for,
 * members dropped and doubled. With a length in front it is the header of a safetensors file. */
#ifndef TND_TESTS_FUZZ_MUTATE_JSON_H
#define TND_TESTS_FUZZ_MUTATE_JSON_H

#include <stdio.h>

#include "tests/fuzz/mutate.h"

/* One of the values, strings or members of the text from `begin` to `end`, chosen by chance: the
 * stretch from *at to *out_end. `first` are the bytes that begin one. */
static inline bool json_choose(struct mutation *m, size_t begin, size_t end, const char *first,
                               size_t *at, size_t *out_end)
{
    size_t seen = 0;
    bool in_text = false;
    for (size_t i = begin; i < end; i++) {
        const uint8_t byte = m->data[i];
        const bool begins = !in_text && byte != '\0' && strchr(first, byte) != NULL;
        if (begins && pick(m, ++seen) == 0) {
            *at = i;
        }
        if (in_text && byte == '\\') {
            i++;
        } else if (byte == '"') {
            in_text = !in_text;
        } else if (begins && byte != ',') { /* a number: not once more at its next digit */
            while (i + 1 < end &&
                   strchr("0123456789.eE+-", m->data[i + 1] ? m->data[i + 1] : 'x')) {
                i++;
            }
        }
    }
    if (seen == 0) {
        return false;
    }
    size_t stop = *at + 1;
    int depth = 0;
    in_text = m->data[*at] == '"';
    for (; stop < end; stop++) {
        const uint8_t byte = m->data[stop];
        if (in_text) {
            if (byte == '\\') {
                stop++;
            } else if (byte == '"') {
                in_text = false;
                if (m->data[*at] == '"') {
                    stop++;
                    break;
                }
            }
            continue;
        }
        in_text = byte == '"';
        if (m->data[*at] != ',' && strchr("0123456789.eE+-", byte ? byte : 'x') == NULL) {
            break;
        }
        depth += (byte == '{' || byte == '[') - (byte == '}' || byte == ']');
        if (m->data[*at] == ',' && (depth < 0 || (byte == ',' && depth == 0))) {
            break;
        }
    }
    *out_end = stop < end ? stop : end;
    return true;
}

static inline void json_change_number(struct mutation *m, size_t at, size_t end)
{
    static const char *const texts[] = {
        "1e999", "-0", "1e-320", "0.5", "1.0", "null", "true", "9223372036854775808", "[1, 2, 3]"};
    char text[40];
    uint64_t old = 0;
    for (size_t i = at; i < end && m->data[i] >= '0' && m->data[i] <= '9'; i++) {
        old = old * 10 + (uint64_t)(m->data[i] - '0');
    }
    if (pick(m, 5) == 0) {
        snprintf(text, sizeof(text), "%s", texts[pick(m, sizeof(texts) / sizeof(texts[0]))]);
    } else {
        snprintf(text, sizeof(text), "%lld", (long long)odd_number(m, old));
    }
    (void)splice(m, at, end - at, text, strlen(text));
}

static inline void json_change_text(struct mutation *m, size_t at, size_t end)
{
    static const char *const texts[] = {"F32",
                                        "F16",
                                        "BF16",
                                        "F64",
                                        "I8",
                                        "I64",
                                        "U8",
                                        "BOOL",
                                        "F8_E4M3",
                                        "dtype",
                                        "shape",
                                        "data_offsets",
                                        "__metadata__",
                                        "weight_map",
                                        "model_type",
                                        "llama",
                                        "mistral",
                                        "qwen2",
                                        "hidden_size",
                                        "intermediate_size",
                                        "num_attention_heads",
                                        "num_key_value_heads",
                                        "num_hidden_layers",
                                        "vocab_size",
                                        "head_dim",
                                        "rms_norm_eps",
                                        "rope_theta",
                                        "rope_scaling",
                                        "rope_type",
                                        "factor",
                                        "llama3",
                                        "linear",
                                        "low_freq_factor",
                                        "high_freq_factor",
                                        "original_max_position_embeddings",
                                        "max_position_embeddings",
                                        "tie_word_embeddings",
                                        "sliding_window",
                                        "use_sliding_window",
                                        "max_window_layers",
                                        "layer_types",
                                        "hidden_act",
                                        "attention_bias",
                                        "mlp_bias",
                                        "quantization_config",
                                        "eos_token_id",
                                        "torch_dtype",
                                        "model.embed_tokens.weight",
                                        "lm_head.weight",
                                        "model.norm.weight",
                                        "model.layers.0.self_attn.q_proj.weight",
                                        "model.layers.0.self_attn.k_proj.weight",
                                        "model.layers.0.self_attn.q_proj.bias",
                                        "model.layers.0.mlp.up_proj.weight",
                                        "\\u0000",
                                        ""};
    char text[80];
    if (pick(m, 4) == 0 && end - at > 2) {
        mutate_bytes(m, at + 1, end - at - 2);
        return;
    }
    snprintf(text, sizeof(text), "\"%s\"", texts[pick(m, sizeof(texts) / sizeof(texts[0]))]);
    (void)splice(m, at, end - at, text, strlen(text));
}

/* Changes the text from `begin` to `end` of the data; what lies behind moves along. */
static inline void mutate_json(struct mutation *m, size_t begin, size_t end)
{
    size_t at = 0;
    size_t stop = 0;
    const unsigned what = (unsigned)pick(m, 8);
    if (what < 4 && json_choose(m, begin, end, "-0123456789", &at, &stop)) {
        json_change_number(m, at, stop);
    } else if (what < 6 && json_choose(m, begin, end, "\"", &at, &stop)) {
        json_change_text(m, at, stop);
    } else if (json_choose(m, begin, end, ",", &at, &stop)) {
        if (pick(m, 2) == 0) {
            (void)splice(m, at, stop - at, "", 0);
        } else {
            (void)copy_stretch(m, at, stop - at, stop);
        }
    } else {
        mutate_bytes(m, begin, end - begin);
    }
}

/* A safetensors file: its header, whose length stays true mostly; or an index. */
static inline void mutate_safetensors(struct mutation *m)
{
    if (m->n > 0 && m->data[0] == '{') {
        mutate_json(m, 0, m->n);
        return;
    }
    const uint64_t header = get_number(m, 0, 8);
    if (m->n < 10 || header > m->n - 8) {
        m->n = LLVMFuzzerMutate(m->data, m->n, m->max);
    } else if (pick(m, 16) == 0) {
        set_number(m, 0, 8, odd_number(m, header));
    } else {
        const size_t before = m->n;
        mutate_json(m, 8, 8 + (size_t)header);
        set_number(m, 0, 8, header + m->n - before);
    }
}

#endif
