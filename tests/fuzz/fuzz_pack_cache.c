/* SPDX-License-Identifier: MIT
 * Files of packed weights: whatever they hold, entries that come out lie in the file and have the
 * bytes that their shape needs. Input as it is, and with a right digest of its index, so that
 * entries are looked at; and what is written is read back. Files of digests of models too. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/packing/pack_cache.h"
#include "base/digest.h"
#include "base/mapped_digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tnd_pack_key key = {.model_bytes = 100, .model_hash = 300, .layout = 400};

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
    uint64_t sum = 0;
    for (size_t i = 0; i < n_entries; i++) {
        struct tnd_pack_entry entry = tnd_pack_cache_entry(bytes, i);
        must(entry.bytes > 0 && entry.at <= n && entry.bytes <= n - entry.at);
        must(entry.at % TND_PACK_ALIGNMENT == 0 && entry.panels > 0);
        must(entry.at >= tnd_pack_index_bytes(n_entries, entry.first + entry.panels));
        sum += tnd_pack_cache_panel(bytes, &entry, 0); /* both are read within the file */
        sum += tnd_pack_cache_panel(bytes, &entry, entry.panels - 1);
    }
    must(sum != 1 || n > 0); /* so that it is computed */
}

/* What is known of a file: what is accepted is written again as it was. */
static void check_digests(const uint8_t *data, size_t size)
{
    struct tnd_part_digest parts[8];
    const struct tnd_mapped_file file = {
        .bytes = 1000, .device = 1, .file = 2, .changed_ns = 3, .facts_changed_ns = 4};
    const size_t n = size / sizeof(parts[0]) < 8 ? size / sizeof(parts[0]) : 8;
    uint8_t bytes[TND_DIGESTS_HEADER_BYTES + sizeof(parts)];
    must(tnd_digests_check(data, size, &file) <= size / 24);
    memcpy(parts, data, n * sizeof(parts[0]));
    tnd_digests_write(&file, parts, n, bytes);
    must(tnd_digests_check(bytes, TND_DIGESTS_HEADER_BYTES + 24 * n, &file) == n);
    for (size_t i = 0; i < n; i++) {
        const struct tnd_part_digest part = tnd_digests_part(bytes, i);
        must(memcmp(&part, &parts[i], sizeof(part)) == 0);
    }
}

/* The input behind a header that fits it, so that only entries can be wrong. */
static void check_entries(const uint8_t *data, size_t size)
{
    enum { N_PANELS = 40 };
    const size_t n_entries = size / TND_PACK_ENTRY_BYTES % 16;
    const size_t index = tnd_pack_index_bytes(n_entries, N_PANELS);
    const size_t room = index + 4 * TND_PACK_ALIGNMENT;
    uint8_t *file = calloc(1, room);
    if (file == NULL) {
        return;
    }
    tnd_pack_write_index(&key, NULL, 0, room, file);
    file[2 * TND_PACK_WORD] = (uint8_t)n_entries;
    file[3 * TND_PACK_WORD] = N_PANELS;
    memcpy(file + TND_PACK_HEADER_BYTES, data, n_entries * TND_PACK_ENTRY_BYTES);
    const uint64_t digest =
        tnd_digest_add(tnd_digest(file, 7 * TND_PACK_WORD),
                       tnd_digest(file + TND_PACK_HEADER_BYTES, index - TND_PACK_HEADER_BYTES));
    for (int b = 0; b < TND_PACK_WORD; b++) {
        file[7 * TND_PACK_WORD + b] = (uint8_t)(digest >> 8 * b);
    }
    check(file, room);
    free(file);
}

/* Weights of shapes that the input chooses are written, read, and found in their places. */
static void check_written(const uint8_t *data, size_t size)
{
    struct tnd_pack_entry entries[8];
    size_t n = 0, n_panels = 0;
    for (; size >= 3 && n < 8; data += 3, size -= 3) {
        struct tnd_pack_entry entry = {.offset = n,
                                       .type = (enum tandem_type)(data[0] % 31),
                                       .k = 32 * (data[1] % 16),
                                       .n = data[2] % 64,
                                       .matrices = data[2] / 64};
        if (tandem_type_name(entry.type) != NULL && tandem_type_block_values(entry.type) > 0 &&
            tnd_pack_weight_size(&entry)) {
            entries[n++] = entry;
        }
    }
    const uint64_t file_bytes = tnd_pack_place(entries, n, &n_panels);
    uint8_t *file = calloc(1, (size_t)file_bytes);
    if (file == NULL) {
        return;
    }
    size_t n_read = 0;
    for (size_t i = 0; i < n_panels; i++) {
        tnd_pack_set_panel(file, n, i, i);
    }
    tnd_pack_write_index(&key, entries, n, file_bytes, file);
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
    check_digests(data, size);
    check_entries(data, size);
    check_written(data, size);
    return 0;
}
