/* SPDX-License-Identifier: MIT
 * Changes of GGUF files that keep most of their structure: numbers, types, counts, extents and
 * offsets at their borders, keys that readers ask for, entries dropped and doubled. */
#ifndef TND_TESTS_FUZZ_MUTATE_GGUF_H
#define TND_TESTS_FUZZ_MUTATE_GGUF_H

#include "tests/fuzz/mutate.h"

#define GGUF_MOST_FIELDS  2048
#define GGUF_MOST_ENTRIES 512

enum gguf_field_kind { GGUF_NUMBER, GGUF_TYPE, GGUF_LENGTH, GGUF_TEXT };

struct gguf_map {
    struct {
        size_t at, n;
        enum gguf_field_kind kind;
    } fields[GGUF_MOST_FIELDS];
    size_t n_fields;
    size_t ends[GGUF_MOST_ENTRIES]; /* where each value or tensor ends; the first begins at 24 */
    size_t n_entries;
    size_t n_values;
};

static inline void gguf_field(struct gguf_map *map, size_t at, size_t n, enum gguf_field_kind kind)
{
    if (map->n_fields < GGUF_MOST_FIELDS) {
        map->fields[map->n_fields].at = at;
        map->fields[map->n_fields].n = n;
        map->fields[map->n_fields++].kind = kind;
    }
}

/* A length and its text; returns the place behind it, or 0 beyond the end. */
static inline size_t gguf_text(const struct mutation *m, struct gguf_map *map, size_t at)
{
    const uint64_t n = get_number(m, at, 8);
    if (at + 8 > m->n || n > m->n - at - 8) {
        return 0;
    }
    gguf_field(map, at, 8, GGUF_LENGTH);
    gguf_field(map, at + 8, (size_t)n, GGUF_TEXT);
    return at + 8 + (size_t)n;
}

static inline size_t gguf_value(const struct mutation *m, struct gguf_map *map, size_t at,
                                uint64_t type, int depth)
{
    static const uint8_t bytes_of[13] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) {
        return gguf_text(m, map, at);
    }
    if (type != 9) {
        gguf_field(map, at, type < 13 ? bytes_of[type] : 0, GGUF_NUMBER);
        return type < 13 && at + bytes_of[type] <= m->n ? at + bytes_of[type] : 0;
    }
    const uint64_t item = get_number(m, at, 4);
    const uint64_t count = get_number(m, at + 4, 8);
    gguf_field(map, at, 4, GGUF_TYPE);
    gguf_field(map, at + 4, 8, GGUF_NUMBER);
    at += 12;
    for (uint64_t i = 0; i < count && at != 0 && at < m->n && depth < 4; i++) {
        at = gguf_value(m, map, at, item, depth + 1);
    }
    return at <= m->n ? at : 0;
}

static inline size_t gguf_tensor(const struct mutation *m, struct gguf_map *map, size_t at)
{
    at = gguf_text(m, map, at);
    const uint64_t n_dims = get_number(m, at, 4);
    if (at == 0 || n_dims > 8 || at + 16 + 8 * n_dims > m->n) {
        return 0;
    }
    gguf_field(map, at, 4, GGUF_NUMBER);
    for (uint64_t i = 0; i < n_dims; i++) {
        gguf_field(map, at + 4 + 8 * i, 8, GGUF_NUMBER);
    }
    at += 4 + 8 * (size_t)n_dims;
    gguf_field(map, at, 4, GGUF_TYPE);
    gguf_field(map, at + 4, 8, GGUF_NUMBER);
    return at + 12;
}

static inline void gguf_read(const struct mutation *m, struct gguf_map *map)
{
    const uint64_t n_tensors = get_number(m, 8, 8);
    const uint64_t n_values = get_number(m, 16, 8);
    size_t at = 24;
    map->n_fields = map->n_entries = map->n_values = 0;
    gguf_field(map, 4, 4, GGUF_NUMBER);
    gguf_field(map, 8, 8, GGUF_NUMBER);
    gguf_field(map, 16, 8, GGUF_NUMBER);
    for (uint64_t i = 0; i < n_values + n_tensors && map->n_entries < GGUF_MOST_ENTRIES; i++) {
        if (i < n_values) {
            at = gguf_text(m, map, at);
            gguf_field(map, at, 4, GGUF_TYPE);
            at = at == 0 || at + 4 > m->n ? 0 : gguf_value(m, map, at + 4, get_number(m, at, 4), 0);
        } else {
            at = gguf_tensor(m, map, at);
        }
        if (at == 0) {
            break;
        }
        map->ends[map->n_entries++] = at;
        map->n_values += i < n_values;
    }
}

/* Drops an entry, or doubles it. The data moves along to its next aligned place. */
static inline void gguf_change_entry(struct mutation *m, const struct gguf_map *map)
{
    const size_t entry = pick(m, map->n_entries);
    const size_t begin = entry == 0 ? 24 : map->ends[entry - 1];
    const size_t n = map->ends[entry] - begin;
    const size_t count_at = entry < map->n_values ? 16 : 8;
    const bool is_doubled = pick(m, 2) != 0;
    const size_t end = map->ends[map->n_entries - 1];
    if (is_doubled ? !copy_stretch(m, begin, n, map->ends[entry]) : !splice(m, begin, n, "", 0)) {
        return;
    }
    set_number(m, count_at, 8, get_number(m, count_at, 8) + (is_doubled ? 1 : (uint64_t)-1));
    const size_t now = is_doubled ? end + n : end - n;
    const size_t padding = (32 - now % 32) % 32;
    const size_t before = (32 - end % 32) % 32;
    static const uint8_t zeros[32];
    if (now <= m->n && before <= m->n - now) {
        (void)splice(m, now, before, zeros, padding);
    }
}

static inline void gguf_change_text(struct mutation *m, size_t at, size_t n)
{
    static const char *const texts[] = {"llama",
                                        "mistral",
                                        "qwen2",
                                        "qwen3",
                                        "gpt2",
                                        "general.architecture",
                                        "general.alignment",
                                        "general.file_type",
                                        "split.no",
                                        "split.count",
                                        "split.tensors.count",
                                        "llama.embedding_length",
                                        "llama.feed_forward_length",
                                        "llama.block_count",
                                        "llama.attention.head_count",
                                        "llama.attention.head_count_kv",
                                        "llama.attention.key_length",
                                        "llama.attention.layer_norm_rms_epsilon",
                                        "llama.attention.sliding_window",
                                        "llama.context_length",
                                        "llama.vocab_size",
                                        "llama.rope.dimension_count",
                                        "llama.rope.freq_base",
                                        "llama.rope.scaling.type",
                                        "llama.rope.scaling.factor",
                                        "linear",
                                        "yarn",
                                        "none",
                                        "tandem.rope.pairs",
                                        "halves",
                                        "adjacent",
                                        "rope_freqs.weight",
                                        "tokenizer.ggml.tokens",
                                        "tokenizer.ggml.scores",
                                        "tokenizer.ggml.merges",
                                        "tokenizer.ggml.model",
                                        "token_embd.weight",
                                        "output.weight",
                                        "output_norm.weight",
                                        "blk.0.attn_q.weight",
                                        "blk.0.attn_k.weight",
                                        "blk.0.attn_v.weight",
                                        "blk.0.attn_q.bias",
                                        "blk.0.attn_k.bias",
                                        "blk.0.attn_output.weight",
                                        "blk.0.attn_norm.weight",
                                        "blk.0.ffn_gate.weight",
                                        "blk.0.ffn_up.weight",
                                        "blk.0.ffn_down.weight",
                                        "blk.0.attn_q_norm.weight",
                                        "blk.1.attn_q.weight",
                                        "blk.99.attn_q.weight",
                                        ""};
    const char *text = texts[pick(m, sizeof(texts) / sizeof(texts[0]))];
    if (splice(m, at, n, text, strlen(text))) {
        set_number(m, at - 8, 8, strlen(text));
    }
}

static inline void mutate_gguf(struct mutation *m)
{
    static struct gguf_map map;
    gguf_read(m, &map);
    const size_t field = pick(m, map.n_fields);
    const size_t at = map.fields[field].at;
    const size_t n = map.fields[field].n;
    if (pick(m, 5) == 0 && map.n_entries > 0) {
        gguf_change_entry(m, &map);
    } else if (map.fields[field].kind == GGUF_TYPE) {
        set_number(m, at, 4, pick(m, 8) == 0 ? odd_number(m, 0) : pick(m, 42));
    } else if (map.fields[field].kind == GGUF_TEXT) {
        if (pick(m, 3) == 0) {
            mutate_bytes(m, at, n);
        } else {
            gguf_change_text(m, at, n);
        }
    } else if (map.fields[field].kind == GGUF_NUMBER || pick(m, 8) == 0) {
        set_number(m, at, n, odd_number(m, get_number(m, at, n)));
    } else {
        m->n = LLVMFuzzerMutate(m->data, m->n, m->max);
    }
}

#endif
