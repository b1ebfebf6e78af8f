/* SPDX-License-Identifier: MIT
 * Header and index: words of 64 bits, little-endian. The header: magic, bytes of the file, number
 * of entries, bytes, time and hash of the model, layout, hash of all words but this one. An entry:
 * offset, type, k, n, matrices, place, bytes, 0. Panels follow, those of a
 * weight from a page of their own on. */
#include "backends/cpu/packing/pack_cache.h"

#include <string.h>

#include "backends/cpu/packing/packing.h"
#include "base/checked.h"
#include "base/hash.h"
#include "ggml-like/tnd_type.h"

enum { MAGIC, FILE_BYTES, N_ENTRIES, MODEL_BYTES, MODEL_TIME, MODEL_HASH, LAYOUT, INDEX_HASH };
enum { OFFSET, TYPE, K, N, MATRICES, AT, BYTES, ZERO };
enum { HEAD_BYTES = 64 << 10, SAMPLES = 64, SAMPLE_BYTES = 4096 };

static const char magic[TND_PACK_WORD + 1] = "TNDPACK1";
static const char file[] = "pack cache";

static uint64_t get_word(const uint8_t *words, size_t i)
{
    uint64_t value = 0;
    for (int b = TND_PACK_WORD - 1; b >= 0; b--) {
        value = value << 8 | words[i * TND_PACK_WORD + (size_t)b];
    }
    return value;
}

static void set_word(uint8_t *words, size_t i, uint64_t value)
{
    for (size_t b = 0; b < TND_PACK_WORD; b++, value >>= 8) {
        words[i * TND_PACK_WORD + b] = (uint8_t)value;
    }
}

/* ---- what a cache belongs to ---- */

uint64_t tnd_pack_model_hash(const uint8_t *model, size_t bytes)
{
    size_t head = bytes < HEAD_BYTES ? bytes : HEAD_BYTES;
    uint64_t hash = tnd_hash_bytes(model, head, 0);
    for (size_t i = 0; i < SAMPLES && bytes >= HEAD_BYTES + SAMPLE_BYTES; i++) {
        size_t at = HEAD_BYTES + (bytes - HEAD_BYTES - SAMPLE_BYTES) / SAMPLES * (i + 1);
        hash = tnd_hash_bytes(model + at, SAMPLE_BYTES, hash);
    }
    return hash;
}

uint64_t tnd_pack_layout_of(const char *isa)
{
    return tnd_hash_string(isa, TND_PACK_LAYOUT);
}

bool tnd_pack_weight_bytes(enum tandem_type type, int64_t k, int64_t n, int64_t matrices,
                           size_t *out)
{
    if (k <= 0 || n <= 0 || matrices <= 0 || k > INT32_MAX || n > INT32_MAX ||
        matrices > INT32_MAX || k % tnd_type_traits(type)->block_values != 0) {
        return false;
    }
    bool quantized = tandem_type_is_quantized(type);
    int rows = quantized ? TND_PANEL_ROWS : TND_PANEL_F_ROWS;
    size_t panel =
        quantized ? tnd_packed_panel_bytes(type, k) : tandem_type_row_bytes(type, k) * (size_t)rows;
    size_t panels = (size_t)((n + rows - 1) / rows);
    size_t bytes = 0;
    if (panel == 0 || !tnd_mul_size(panels, (size_t)matrices, &panels) ||
        !tnd_mul_size(panels, panel, &bytes)) {
        return false;
    }
    *out = bytes;
    return true;
}

/* ---- reading ---- */

bool tnd_pack_cache_is_ours(const uint8_t *bytes, size_t n)
{
    return n >= TND_PACK_WORD && memcmp(bytes, magic, TND_PACK_WORD - 1) == 0;
}

size_t tnd_pack_index_bytes(size_t n_entries)
{
    return TND_PACK_HEADER_BYTES + n_entries * TND_PACK_ENTRY_BYTES;
}

static uint64_t hash_of_index(const uint8_t *bytes, size_t n_entries)
{
    uint64_t hash = tnd_hash_bytes(bytes, INDEX_HASH * TND_PACK_WORD, 0);
    return tnd_hash_bytes(bytes + TND_PACK_HEADER_BYTES, n_entries * TND_PACK_ENTRY_BYTES, hash);
}

struct tnd_pack_entry tnd_pack_cache_entry(const uint8_t *bytes, size_t i)
{
    const uint8_t *words = bytes + tnd_pack_index_bytes(i);
    return (struct tnd_pack_entry){.offset = get_word(words, OFFSET),
                                   .type = (enum tandem_type)get_word(words, TYPE),
                                   .k = (int64_t)get_word(words, K),
                                   .n = (int64_t)get_word(words, N),
                                   .matrices = (int64_t)get_word(words, MATRICES),
                                   .at = get_word(words, AT),
                                   .bytes = get_word(words, BYTES)};
}

static enum tandem_status check_entry(const uint8_t *bytes, size_t n, size_t n_entries, size_t i,
                                      struct tandem_error *error)
{
    struct tnd_pack_entry entry = tnd_pack_cache_entry(bytes, i);
    uint64_t type = get_word(bytes + tnd_pack_index_bytes(i), TYPE);
    size_t wanted = 0;
    if (type >= TANDEM_TYPE_NUMBERS || tnd_type_traits(entry.type) == NULL ||
        !tnd_pack_weight_bytes(entry.type, entry.k, entry.n, entry.matrices, &wanted) ||
        wanted != entry.bytes || entry.at % TND_PACK_ALIGNMENT != 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, file, (int64_t)entry.bytes, (int64_t)wanted,
                             "%s: entry %zu: no packed weight has this type, shape and place", file,
                             i);
    }
    if (entry.at < tnd_pack_index_bytes(n_entries) || entry.at > n || entry.bytes > n - entry.at) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, file, (int64_t)entry.bytes, (int64_t)n,
                             "%s: entry %zu: %llu bytes at %llu are not in a file of %zu bytes",
                             file, i, (unsigned long long)entry.bytes, (unsigned long long)entry.at,
                             n);
    }
    return TANDEM_OK;
}

static enum tandem_status check_key(const uint8_t *bytes, const struct tnd_pack_key *key,
                                    struct tandem_error *error)
{
    const bool is_layout = get_word(bytes, LAYOUT) == key->layout;
    const uint64_t time = get_word(bytes, MODEL_TIME);
    const bool is_time = time == 0 ? key->packed_changed_ns >= key->model_changed_ns
                                   : time == (uint64_t)key->model_changed_ns;
    if (is_layout && get_word(bytes, MODEL_BYTES) == key->model_bytes && is_time &&
        get_word(bytes, MODEL_HASH) == key->model_hash) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_NOT_FOUND, file, 0, 0, "%s: was made for %s", file,
                         is_layout ? "another model file, or for this one before it was changed"
                                   : "another version of the library or another instruction set");
}

enum tandem_status tnd_pack_cache_check(const uint8_t *bytes, size_t n,
                                        const struct tnd_pack_key *key, size_t *out_n_entries,
                                        struct tandem_error *error)
{
    if (n < TND_PACK_HEADER_BYTES || memcmp(bytes, magic, TND_PACK_WORD) != 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, file, (int64_t)n, TND_PACK_HEADER_BYTES,
                             "%s: offset 0: no header of version 1 in %zu bytes", file, n);
    }
    uint64_t n_entries = get_word(bytes, N_ENTRIES);
    uint64_t file_bytes = get_word(bytes, FILE_BYTES);
    if (file_bytes != n || n_entries > TND_PACK_MAX_ENTRIES ||
        tnd_pack_index_bytes((size_t)n_entries) > n) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, file, (int64_t)n, (int64_t)file_bytes,
                             "%s: a file of %llu bytes with %llu entries has %zu bytes", file,
                             (unsigned long long)file_bytes, (unsigned long long)n_entries, n);
    }
    if (hash_of_index(bytes, (size_t)n_entries) != get_word(bytes, INDEX_HASH)) {
        return tnd_error_set(error, TANDEM_E_FORMAT, file, 0, 0,
                             "%s: the index does not have the hash of the header", file);
    }
    TND_TRY(check_key(bytes, key, error));
    for (size_t i = 0; i < n_entries; i++) {
        TND_TRY(check_entry(bytes, n, (size_t)n_entries, i, error));
    }
    *out_n_entries = (size_t)n_entries;
    return TANDEM_OK;
}

/* ---- writing ---- */

static uint64_t to_next_page(uint64_t at)
{
    return (at + TND_PACK_ALIGNMENT - 1) / TND_PACK_ALIGNMENT * TND_PACK_ALIGNMENT;
}

uint64_t tnd_pack_place(struct tnd_pack_entry *entries, size_t n_entries)
{
    uint64_t end = tnd_pack_index_bytes(n_entries);
    for (size_t i = 0; i < n_entries; i++) {
        entries[i].at = to_next_page(end);
        end = entries[i].at + entries[i].bytes;
    }
    return end;
}

void tnd_pack_write_index(const struct tnd_pack_key *key, const struct tnd_pack_entry *entries,
                          size_t n_entries, uint64_t file_bytes, uint8_t *out)
{
    memcpy(out, magic, TND_PACK_WORD);
    set_word(out, FILE_BYTES, file_bytes);
    set_word(out, N_ENTRIES, n_entries);
    set_word(out, MODEL_BYTES, key->model_bytes);
    set_word(out, MODEL_TIME, (uint64_t)key->model_changed_ns);
    set_word(out, MODEL_HASH, key->model_hash);
    set_word(out, LAYOUT, key->layout);
    for (size_t i = 0; i < n_entries; i++) {
        uint8_t *words = out + tnd_pack_index_bytes(i);
        set_word(words, OFFSET, entries[i].offset);
        set_word(words, TYPE, (uint64_t)entries[i].type);
        set_word(words, K, (uint64_t)entries[i].k);
        set_word(words, N, (uint64_t)entries[i].n);
        set_word(words, MATRICES, (uint64_t)entries[i].matrices);
        set_word(words, AT, entries[i].at);
        set_word(words, BYTES, entries[i].bytes);
        set_word(words, ZERO, 0);
    }
    set_word(out, INDEX_HASH, hash_of_index(out, n_entries));
}
