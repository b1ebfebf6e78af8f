/* SPDX-License-Identifier: MIT
 * Files of the cache of packed weights: whatever they hold, entries that come out lie in the file
 * and have the bytes that their shape needs. Input as it is, and with a right hash of its index,
 * so that entries are looked at; and what is written is read back. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/packing/pack_cache.h"
#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tnd_pack_key key = {100, 200, 300, 400, 0};

/* Ends the process: libFuzzer reports it. */
static void must(bool good)
{
    if (!good) {
        abort();
    }
}

static void check(const uint8_t *bytes, size_t n)
{
    size_t n_entries = 0;
    struct tandem_error error = {0};
    enum tandem_status status = tnd_pack_cache_check(bytes, n, &key, &n_entries, &error);
    must((status == TANDEM_OK) == (error.text[0] == '\0'));
    must(status == TANDEM_OK || n_entries == 0);
    must(status != TANDEM_OK || tnd_pack_cache_is_ours(bytes, n));
    for (size_t i = 0; i < n_entries; i++) {
        struct tnd_pack_entry entry = tnd_pack_cache_entry(bytes, i);
        size_t wanted = 0;
        must(tnd_pack_weight_bytes(entry.type, entry.k, entry.n, entry.matrices, &wanted));
        must(wanted == entry.bytes && entry.at <= n && entry.bytes <= n - entry.at);
        must(entry.at % TND_PACK_ALIGNMENT == 0 && entry.at >= tnd_pack_index_bytes(n_entries));
    }
}

/* The input behind a header that fits it, so that only entries can be wrong. */
static void check_entries(const uint8_t *data, size_t size)
{
    const size_t n_entries = size / TND_PACK_ENTRY_BYTES % 16;
    const size_t index = tnd_pack_index_bytes(n_entries);
    const size_t room = index + 4 * TND_PACK_ALIGNMENT;
    uint8_t *file = calloc(1, room);
    if (file == NULL) {
        return;
    }
    tnd_pack_write_index(&key, NULL, 0, room, file);
    file[2 * TND_PACK_WORD] = (uint8_t)n_entries;
    memcpy(file + TND_PACK_HEADER_BYTES, data, n_entries * TND_PACK_ENTRY_BYTES);
    uint64_t hash = tnd_hash_bytes(file, 7 * TND_PACK_WORD, 0);
    hash = tnd_hash_bytes(file + TND_PACK_HEADER_BYTES, n_entries * TND_PACK_ENTRY_BYTES, hash);
    for (int b = 0; b < TND_PACK_WORD; b++) {
        file[7 * TND_PACK_WORD + b] = (uint8_t)(hash >> 8 * b);
    }
    check(file, room);
    free(file);
}

/* Weights of shapes that the input chooses are written, read, and found in their places. */
static void check_written(const uint8_t *data, size_t size)
{
    struct tnd_pack_entry entries[8];
    uint8_t index[TND_PACK_HEADER_BYTES + 8 * TND_PACK_ENTRY_BYTES];
    size_t n = 0;
    for (; size >= 3 && n < 8; data += 3, size -= 3) {
        size_t bytes = 0;
        struct tnd_pack_entry entry = {.offset = n,
                                       .type = (enum tandem_type)(data[0] % 31),
                                       .k = 32 * (data[1] % 16),
                                       .n = data[2] % 64,
                                       .matrices = data[2] / 64};
        if (tandem_type_name(entry.type) != NULL && tandem_type_block_values(entry.type) > 0 &&
            tnd_pack_weight_bytes(entry.type, entry.k, entry.n, entry.matrices, &bytes)) {
            entry.bytes = bytes;
            entries[n++] = entry;
        }
    }
    const uint64_t file_bytes = tnd_pack_place(entries, n);
    uint8_t *file = calloc(1, (size_t)file_bytes);
    if (file == NULL) {
        return;
    }
    size_t n_read = 0;
    tnd_pack_write_index(&key, entries, n, file_bytes, index);
    memcpy(file, index, tnd_pack_index_bytes(n));
    must(tnd_pack_cache_check(file, (size_t)file_bytes, &key, &n_read, NULL) == TANDEM_OK);
    must(n_read == n);
    for (size_t i = 0; i < n; i++) {
        struct tnd_pack_entry entry = tnd_pack_cache_entry(file, i);
        must(entry.offset == i && entry.at == entries[i].at && entry.k == entries[i].k);
    }
    must(tnd_pack_cache_check(file, (size_t)file_bytes - 1, &key, &n_read, NULL) != TANDEM_OK);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size);
    check_entries(data, size);
    check_written(data, size);
    return 0;
}
