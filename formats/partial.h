/* SPDX-License-Identifier: MIT
 * Incomplete copies of model files, as ranks keep them (docs/cluster.md): a sparse file of the same
 * layout, and next to it a record of the bytes present. In an incomplete GGUF file the version's
 * highest bit is set, so that other programs refuse it. */
#ifndef TND_PARTIAL_H
#define TND_PARTIAL_H

#include "base/spans.h"
#include "base/tnd_status.h"
#include "formats/source.h"

#define TND_PARTIAL_RECORD ".record" /* appended to the name of the copy */
enum {
    TND_PARTIAL_BLOCK = 1 << 20, /* bytes per digest */
    TND_PARTIAL_MARK = 0x80,     /* bit of byte TND_PARTIAL_MARK_AT */
    TND_PARTIAL_MARK_AT = 7
};

/** A record. All zero: none. */
struct tnd_partial {
    uint64_t bytes, digest; /* of the whole file */
    struct tnd_spans present;
    uint64_t *blocks; /* {n_blocks}: tnd_digest of each block's bytes present; 0: none */
    size_t n_blocks;
};

/** Makes a record without ranges. Errors: MEMORY. */
enum tandem_status tnd_partial_new(uint64_t bytes, uint64_t digest, struct tnd_partial *out,
                                   struct tandem_error *error);
/** Whether the bytes start with a record's magic; the record may be damaged. */
bool tnd_partial_is(const uint8_t *bytes, size_t n);
/** Parses a record. `name` is used in messages. Errors: FORMAT, MEMORY. */
enum tandem_status tnd_partial_parse(const uint8_t *bytes, size_t n, const char *name,
                                     struct tnd_partial *out, struct tandem_error *error);
/** Serialises a record; free the result with tnd_free. NULL: out of memory. */
uint8_t *tnd_partial_write(const struct tnd_partial *partial, size_t *out_n);
/** Reads the record of the copy `path`. Errors: FILE, and those of tnd_partial_parse. */
enum tandem_status tnd_partial_read(const char *path, struct tnd_partial *out,
                                    struct tandem_error *error);
void tnd_partial_fini(struct tnd_partial *partial);

/* ---- sources ---- */

/** Whether this process opens incomplete copies; others refuse them. Set before threads are
 * started. */
extern bool tnd_source_takes_parts;
/** Whether the bytes start like an incomplete GGUF file. */
bool tnd_partial_is_gguf(const uint8_t *bytes, size_t n);
/** Rereads the record of a source opened from `path`, after the copy has grown; tandem_mapped_check
 * then knows the bytes present. Not while others use the source. Errors: those of tnd_partial_read,
 * FILE, LIMIT. */
enum tandem_status tnd_source_see_parts(const tandem_source *source, const char *path,
                                        struct tandem_error *error);

#endif
