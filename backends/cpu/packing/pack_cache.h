/* SPDX-License-Identifier: MIT
 * The contents of a cache of packed weights: which weights of a model file lie where in it. The
 * file is mapped and its panels are used as they are. Knows no file system. docs/formats.md has the
 * layout. */
#ifndef TND_PACK_CACHE_H
#define TND_PACK_CACHE_H

#include <stdbool.h>

#include "base/tnd_status.h"
#include "tandem/tensor.h"

/** Raised whenever the bytes of a panel change: suite_backends_pack_cache.c has a hash of them. */
#define TND_PACK_LAYOUT 1

enum {
    TND_PACK_WORD = 8,
    TND_PACK_HEADER_BYTES = 8 * TND_PACK_WORD,
    TND_PACK_ENTRY_BYTES = 8 * TND_PACK_WORD,
    TND_PACK_ALIGNMENT = 4096, /* panels begin at pages of their own */
    TND_PACK_MAX_ENTRIES = 1 << 17
};

/** What a cache belongs to. That the rows of a weight are those that were packed is known by their
 *  digest: samples tell models apart. */
struct tnd_pack_key {
    uint64_t model_bytes;
    uint64_t model_hash; /* of samples of the contents */
    uint64_t layout;     /* tnd_pack_layout_of */
};

/** One packed weight. */
struct tnd_pack_entry {
    uint64_t offset; /* of its rows in the model file */
    enum tandem_type type;
    int64_t k, n, matrices;
    uint64_t rows; /* tnd_digest of them */
    uint64_t at;   /* of its panels in the cache */
    size_t bytes;  /* of its panels */
    size_t panels; /* their number */
    size_t first;  /* of its panels among all of the cache */
};

/** Hash of the beginning of a model file and of samples all over it. */
uint64_t tnd_pack_model_hash(const uint8_t *model, size_t bytes);
/** Number of a layout: decoders of some instruction sets order steps in their own way. */
uint64_t tnd_pack_layout_of(const char *isa);
/** Fills in bytes and number of the panels of a weight. False: no such weight can be packed. */
bool tnd_pack_weight_size(struct tnd_pack_entry *entry);

/** Whether bytes begin as a cache of this version, or of an older one, does. */
bool tnd_pack_cache_is_ours(const uint8_t *bytes, size_t n);
/** Checks header, index and the list of digests, and counts the entries. Panels are not read: each
 *  has a digest, to be compared by who reads it first. Errors: FORMAT, TRUNCATED, NOT_FOUND (of
 *  another version, model, or layout). */
enum tandem_status tnd_pack_cache_check(const uint8_t *bytes, size_t n,
                                        const struct tnd_pack_key *key, size_t *out_n_entries,
                                        struct tandem_error *error);
/** Entry i of a cache that was checked. */
struct tnd_pack_entry tnd_pack_cache_entry(const uint8_t *bytes, size_t i);

/** The digest that panel i of an entry had when it was written. */
uint64_t tnd_pack_cache_panel(const uint8_t *bytes, const struct tnd_pack_entry *entry, size_t i);

/** Bytes of header, index and digests. */
size_t tnd_pack_index_bytes(size_t n_entries, size_t n_panels);
/** Places panels behind the index, one weight behind the other; returns the bytes of the file. */
uint64_t tnd_pack_place(struct tnd_pack_entry *entries, size_t n_entries, size_t *out_n_panels);
/** Writes header and index of placed entries into tnd_pack_index_bytes() bytes, whose digests are
 *  there: tnd_pack_set_panel. */
void tnd_pack_write_index(const struct tnd_pack_key *key, const struct tnd_pack_entry *entries,
                          size_t n_entries, uint64_t file_bytes, uint8_t *out);
void tnd_pack_set_panel(uint8_t *out, size_t n_entries, size_t i, uint64_t digest);

#endif
