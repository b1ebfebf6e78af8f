/* SPDX-License-Identifier: MIT
 * The contents of a cache file of packed weights: where the panels of each weight of a model file
 * are. The file is mapped and its panels are used in place. Knows no file system. docs/formats.md
 * has the layout. */
#ifndef TND_PACK_CACHE_H
#define TND_PACK_CACHE_H

#include <stdbool.h>

#include "base/tnd_status.h"
#include "tandem/tensor.h"

/** Increase it whenever the bytes of a panel change: suite_backends_pack_cache.c has a hash of
 * them. */
#define TND_PACK_LAYOUT 1

enum {
    TND_PACK_WORD = 8,
    TND_PACK_HEADER_BYTES = 8 * TND_PACK_WORD,
    TND_PACK_ENTRY_BYTES = 8 * TND_PACK_WORD,
    TND_PACK_ALIGNMENT = 4096, /* the panels of a weight begin at a page boundary */
    TND_PACK_MAX_ENTRIES = 1 << 17
};

/** What a cache is valid for. Samples of its contents identify the model; a digest of each
 * weight's rows proves that they are the ones that were packed. */
struct tnd_pack_key {
    uint64_t model_bytes;
    uint64_t model_hash; /* of samples of the model's contents */
    uint64_t layout;     /* tnd_pack_layout_of */
};

/** One packed weight. */
struct tnd_pack_entry {
    uint64_t offset; /* of its rows in the model file */
    enum tandem_type type;
    int64_t k, n, matrices;
    uint64_t rows; /* their tnd_digest */
    uint64_t at;   /* offset of its panels in the cache */
    size_t bytes;  /* size of its panels */
    size_t panels; /* number of its panels */
    size_t first;  /* index of its first panel in the cache */
};

/** Hash of the beginning of a model file and of samples throughout it. */
uint64_t tnd_pack_model_hash(const uint8_t *model, size_t bytes);
/** Number of a layout: decoders of some instruction sets order steps differently. */
uint64_t tnd_pack_layout_of(const char *isa);
/** Fills in size and number of a weight's panels. False: the weight cannot be packed. */
bool tnd_pack_weight_size(struct tnd_pack_entry *entry);

/** Whether the bytes begin like a cache of this or an older version. */
bool tnd_pack_cache_is_ours(const uint8_t *bytes, size_t n);
/** Validates header, index and list of digests, and returns the number of entries. Does not read
 * panels: whoever reads a panel first compares its digest. Errors: FORMAT, TRUNCATED, NOT_FOUND
 * (another version, model, or layout). */
enum tandem_status tnd_pack_cache_check(const uint8_t *bytes, size_t n,
                                        const struct tnd_pack_key *key, size_t *out_n_entries,
                                        struct tandem_error *error);
/** Entry i of a cache that was validated. */
struct tnd_pack_entry tnd_pack_cache_entry(const uint8_t *bytes, size_t i);

/** Digest of panel i of an entry, as of writing. */
uint64_t tnd_pack_cache_panel(const uint8_t *bytes, const struct tnd_pack_entry *entry, size_t i);

/** Bytes of header, index and digests. */
size_t tnd_pack_index_bytes(size_t n_entries, size_t n_panels);
/** Assigns offsets to the panels of all weights, in sequence after the index; returns the size of
 * the file. */
uint64_t tnd_pack_place(struct tnd_pack_entry *entries, size_t n_entries, size_t *out_n_panels);
/** Writes header and index of entries with offsets into tnd_pack_index_bytes() bytes, whose
 * digests were set by tnd_pack_set_panel. */
void tnd_pack_write_index(const struct tnd_pack_key *key, const struct tnd_pack_entry *entries,
                          size_t n_entries, uint64_t file_bytes, uint8_t *out);
void tnd_pack_set_panel(uint8_t *out, size_t n_entries, size_t i, uint64_t digest);

#endif
