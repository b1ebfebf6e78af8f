/* SPDX-License-Identifier: MIT
 * Copies of model files of which a part is there, as a rank keeps them (docs/cluster.md): a file of
 * the same layout with holes, and beside it a record, which says what is there. The version that
 * such a GGUF file states has its highest bit set, so that nobody takes it for a whole one. */
#ifndef TND_PARTIAL_H
#define TND_PARTIAL_H

#include "base/spans.h"
#include "base/tnd_status.h"
#include "formats/source.h"

#define TND_PARTIAL_RECORD ".record" /* behind the name of the copy */
enum {
    TND_PARTIAL_BLOCK = 1 << 20, /* bytes that have a digest together */
    TND_PARTIAL_MARK = 0x80,     /* of byte TND_PARTIAL_MARK_AT */
    TND_PARTIAL_MARK_AT = 7
};

/** A record. All zero: none. */
struct tnd_partial {
    uint64_t bytes, digest; /* of the whole file */
    struct tnd_spans present;
    uint64_t *blocks; /* {n_blocks}: tnd_digest of what is present of each; 0 where nothing is */
    size_t n_blocks;
};

/** A record of nothing. Errors: MEMORY. */
enum tandem_status tnd_partial_new(uint64_t bytes, uint64_t digest, struct tnd_partial *out,
                                   struct tandem_error *error);
/** Whether bytes begin like a record, damaged or not. */
bool tnd_partial_is(const uint8_t *bytes, size_t n);
/** Reads the contents of a record. Errors: FORMAT, MEMORY. */
enum tandem_status tnd_partial_parse(const uint8_t *bytes, size_t n, const char *name,
                                     struct tnd_partial *out, struct tandem_error *error);
/** The contents of a record, which tnd_free frees; NULL: no memory. */
uint8_t *tnd_partial_write(const struct tnd_partial *partial, size_t *out_n);
/** Reads the record of the copy `path`. Errors: FILE, and as above. */
enum tandem_status tnd_partial_read(const char *path, struct tnd_partial *out,
                                    struct tandem_error *error);
void tnd_partial_fini(struct tnd_partial *partial);

/* ---- sources ---- */

/** Whether this process opens such copies; others refuse them. Set before there are threads. */
extern bool tnd_source_takes_parts;
/** Whether the bytes begin like a GGUF file of which a part is there. */
bool tnd_partial_is_gguf(const uint8_t *bytes, size_t n);
/** Reads the record of a source that was opened from `path`, once more after it has grown: from
 *  then on tandem_mapped_check knows what is there. While nobody else uses the source. Errors:
 *  those of tnd_partial_read, FILE, LIMIT. */
enum tandem_status tnd_source_see_parts(const tandem_source *source, const char *path,
                                        struct tandem_error *error);

#endif
