/* SPDX-License-Identifier: MIT
 * Header and index are 64-bit words, little-endian. Header: magic, file size, number of entries,
 * number of panels, size and hash of the model, layout, digest of all other words. Entry: offset,
 * type, k, n, matrices, digest of the rows, offset of the panels, index of the first panel. Then
 * the digest of each panel. Then the panels; those of each weight begin at a page boundary. */
#include "backends/cpu/packing/pack_cache.h"

#include <string.h>

#include "backends/cpu/packing/packing.h"
#include "base/checked.h"
#include "base/digest.h"
#include "base/hash.h"
#include "ggml-like/tnd_type.h"

enum { MAGIC, FILE_BYTES, N_ENTRIES, N_PANELS, MODEL_BYTES, MODEL_HASH, LAYOUT, INDEX_DIGEST };
enum { OFFSET, TYPE, K, N, MATRICES, ROWS, AT, FIRST };
enum { HEAD_BYTES = 64 << 10, SAMPLES = 64, SAMPLE_BYTES = 4096 };

static const char magic[TND_PACK_WORD + 1] = "TNDPACK2";
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

/* ---- key ---- */

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

bool tnd_pack_weight_size(struct tnd_pack_entry *entry)
{
    const enum tandem_type type = entry->type;
    if (entry->k <= 0 || entry->n <= 0 || entry->matrices <= 0 || entry->k > INT32_MAX ||
        entry->n > INT32_MAX || entry->matrices > INT32_MAX ||
        entry->k % tnd_type_traits(type)->block_values != 0) {
        return false;
    }
    bool quantized = tandem_type_is_quantized(type);
    int rows = quantized ? TND_PANEL_ROWS : TND_PANEL_F_ROWS;
    size_t panel = quantized ? tnd_packed_panel_bytes(type, entry->k)
                             : tandem_type_row_bytes(type, entry->k) * (size_t)rows;
    size_t panels = (size_t)((entry->n + rows - 1) / rows);
    size_t bytes = 0;
    if (panel == 0 || !tnd_mul_size(panels, (size_t)entry->matrices, &panels) ||
        !tnd_mul_size(panels, panel, &bytes)) {
        return false;
    }
    entry->bytes = bytes;
    entry->panels = panels;
    return true;
}

/* ---- reading ---- */

bool tnd_pack_cache_is_ours(const uint8_t *bytes, size_t n)
{
    return n >= TND_PACK_WORD && memcmp(bytes, magic, TND_PACK_WORD - 1) == 0 &&
           bytes[TND_PACK_WORD - 1] >= '1' &&
           bytes[TND_PACK_WORD - 1] <= (uint8_t)magic[TND_PACK_WORD - 1];
}

static size_t entry_at(size_t i)
{
    return TND_PACK_HEADER_BYTES + i * TND_PACK_ENTRY_BYTES;
}

size_t tnd_pack_index_bytes(size_t n_entries, size_t n_panels)
{
    return entry_at(n_entries) + n_panels * TND_PACK_WORD;
}

static uint64_t digest_of_index(const uint8_t *bytes, size_t index_bytes)
{
    return tnd_digest_add(
        tnd_digest(bytes, INDEX_DIGEST * TND_PACK_WORD),
        tnd_digest(bytes + TND_PACK_HEADER_BYTES, index_bytes - TND_PACK_HEADER_BYTES));
}

static struct tnd_pack_entry read_entry(const uint8_t *bytes, size_t i)
{
    const uint8_t *words = bytes + entry_at(i);
    return (struct tnd_pack_entry){.offset = get_word(words, OFFSET),
                                   .type = (enum tandem_type)get_word(words, TYPE),
                                   .k = (int64_t)get_word(words, K),
                                   .n = (int64_t)get_word(words, N),
                                   .matrices = (int64_t)get_word(words, MATRICES),
                                   .rows = get_word(words, ROWS),
                                   .at = get_word(words, AT),
                                   .first = (size_t)get_word(words, FIRST)};
}

struct tnd_pack_entry tnd_pack_cache_entry(const uint8_t *bytes, size_t i)
{
    struct tnd_pack_entry entry = read_entry(bytes, i);
    (void)tnd_pack_weight_size(&entry);
    return entry;
}

uint64_t tnd_pack_cache_panel(const uint8_t *bytes, const struct tnd_pack_entry *entry, size_t i)
{
    const size_t n_entries = (size_t)get_word(bytes, N_ENTRIES);
    return get_word(bytes + entry_at(n_entries), entry->first + i);
}

static enum tandem_status check_entry(const uint8_t *bytes, size_t n, size_t i,
                                      struct tandem_error *error)
{
    const size_t n_entries = (size_t)get_word(bytes, N_ENTRIES);
    const size_t n_panels = (size_t)get_word(bytes, N_PANELS);
    struct tnd_pack_entry entry = read_entry(bytes, i);
    uint64_t type = get_word(bytes + entry_at(i), TYPE);
    if (type >= TANDEM_TYPE_NUMBERS || tnd_type_traits(entry.type) == NULL ||
        !tnd_pack_weight_size(&entry) || entry.at % TND_PACK_ALIGNMENT != 0 ||
        entry.first > n_panels || entry.panels > n_panels - entry.first) {
        return tnd_error_set(error, TANDEM_E_FORMAT, file, (int64_t)entry.bytes, (int64_t)n_panels,
                             "%s: entry %zu: no packed weight has this type, shape and place", file,
                             i);
    }
    if (entry.at < tnd_pack_index_bytes(n_entries, n_panels) || entry.at > n ||
        entry.bytes > n - entry.at) {
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
    if (is_layout && get_word(bytes, MODEL_BYTES) == key->model_bytes &&
        get_word(bytes, MODEL_HASH) == key->model_hash) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_NOT_FOUND, file, 0, 0, "%s: was made for %s", file,
                         is_layout ? "another model file, or for this one before it was changed"
                                   : "another version of the library or another instruction set");
}

/* Checks the sizes in the header against the file. */
static enum tandem_status check_header(const uint8_t *bytes, size_t n, struct tandem_error *error)
{
    if (n >= TND_PACK_HEADER_BYTES && tnd_pack_cache_is_ours(bytes, n) &&
        memcmp(bytes, magic, TND_PACK_WORD) != 0) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, file, bytes[TND_PACK_WORD - 1] - '0',
                             magic[TND_PACK_WORD - 1] - '0',
                             "%s: was made by an older version of the library, without digests; "
                             "weights are packed anew",
                             file);
    }
    if (n < TND_PACK_HEADER_BYTES || memcmp(bytes, magic, TND_PACK_WORD) != 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, file, (int64_t)n, TND_PACK_HEADER_BYTES,
                             "%s: offset 0: no header of version %c in %zu bytes", file,
                             magic[TND_PACK_WORD - 1], n);
    }
    const uint64_t n_entries = get_word(bytes, N_ENTRIES), n_panels = get_word(bytes, N_PANELS);
    const uint64_t file_bytes = get_word(bytes, FILE_BYTES);
    if (file_bytes != n || n_entries > TND_PACK_MAX_ENTRIES || n_panels > n / TND_PACK_WORD ||
        tnd_pack_index_bytes((size_t)n_entries, (size_t)n_panels) > n) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, file, (int64_t)n, (int64_t)file_bytes,
                             "%s: a file of %llu bytes with %llu entries has %zu bytes", file,
                             (unsigned long long)file_bytes, (unsigned long long)n_entries, n);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_pack_cache_check(const uint8_t *bytes, size_t n,
                                        const struct tnd_pack_key *key, size_t *out_n_entries,
                                        struct tandem_error *error)
{
    TND_TRY(check_header(bytes, n, error));
    const size_t n_entries = (size_t)get_word(bytes, N_ENTRIES);
    const size_t n_panels = (size_t)get_word(bytes, N_PANELS);
    if (digest_of_index(bytes, tnd_pack_index_bytes(n_entries, n_panels)) !=
        get_word(bytes, INDEX_DIGEST)) {
        return tnd_error_set(error, TANDEM_E_FORMAT, file, 0, 0,
                             "%s: the index is damaged: it does not have the digest of the header",
                             file);
    }
    TND_TRY(check_key(bytes, key, error));
    for (size_t i = 0; i < n_entries; i++) {
        TND_TRY(check_entry(bytes, n, i, error));
    }
    *out_n_entries = n_entries;
    return TANDEM_OK;
}

/* ---- writing ---- */

static uint64_t to_next_page(uint64_t at)
{
    return (at + TND_PACK_ALIGNMENT - 1) / TND_PACK_ALIGNMENT * TND_PACK_ALIGNMENT;
}

uint64_t tnd_pack_place(struct tnd_pack_entry *entries, size_t n_entries, size_t *out_n_panels)
{
    size_t n_panels = 0;
    for (size_t i = 0; i < n_entries; i++) {
        entries[i].first = n_panels;
        n_panels += entries[i].panels;
    }
    uint64_t end = tnd_pack_index_bytes(n_entries, n_panels);
    for (size_t i = 0; i < n_entries; i++) {
        entries[i].at = to_next_page(end);
        end = entries[i].at + entries[i].bytes;
    }
    *out_n_panels = n_panels;
    return end;
}

void tnd_pack_set_panel(uint8_t *out, size_t n_entries, size_t i, uint64_t digest)
{
    set_word(out + entry_at(n_entries), i, digest);
}

void tnd_pack_write_index(const struct tnd_pack_key *key, const struct tnd_pack_entry *entries,
                          size_t n_entries, uint64_t file_bytes, uint8_t *out)
{
    size_t n_panels = 0;
    for (size_t i = 0; i < n_entries; i++) {
        uint8_t *words = out + entry_at(i);
        set_word(words, OFFSET, entries[i].offset);
        set_word(words, TYPE, (uint64_t)entries[i].type);
        set_word(words, K, (uint64_t)entries[i].k);
        set_word(words, N, (uint64_t)entries[i].n);
        set_word(words, MATRICES, (uint64_t)entries[i].matrices);
        set_word(words, ROWS, entries[i].rows);
        set_word(words, AT, entries[i].at);
        set_word(words, FIRST, entries[i].first);
        n_panels += entries[i].panels;
    }
    memcpy(out, magic, TND_PACK_WORD);
    set_word(out, FILE_BYTES, file_bytes);
    set_word(out, N_ENTRIES, n_entries);
    set_word(out, N_PANELS, n_panels);
    set_word(out, MODEL_BYTES, key->model_bytes);
    set_word(out, MODEL_HASH, key->model_hash);
    set_word(out, LAYOUT, key->layout);
    set_word(out, INDEX_DIGEST, digest_of_index(out, tnd_pack_index_bytes(n_entries, n_panels)));
}
