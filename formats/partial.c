/* SPDX-License-Identifier: MIT
 * Format of a record: 64-bit little-endian words: magic; size and digest of the whole file; number
 * of ranges; begin and end of each range; digest of each block; tnd_digest of all words before. */
#include "formats/partial.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/digest.h"
#include "base/mapped_digest.h"
#include "base/tnd_mapped.h"
#include "formats/gguf.h"

enum { WORD = 8, HEADER = 4 /* words */ };
static const char magic[WORD + 1] = "TNDPART1";

bool tnd_source_takes_parts;

/* ---- records ---- */

static size_t blocks_of(uint64_t bytes)
{
    return (size_t)(bytes / TND_PARTIAL_BLOCK + (bytes % TND_PARTIAL_BLOCK != 0));
}

enum tandem_status tnd_partial_new(uint64_t bytes, uint64_t digest, struct tnd_partial *out,
                                   struct tandem_error *error)
{
    const size_t n = blocks_of(bytes);
    uint64_t *blocks = tnd_calloc(n + 1, sizeof(blocks[0]));
    if (blocks == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "partial", (int64_t)n, 0,
                             "no memory for the digests of %zu blocks", n);
    }
    *out = (struct tnd_partial){.bytes = bytes, .digest = digest, .blocks = blocks, .n_blocks = n};
    return TANDEM_OK;
}

bool tnd_partial_is(const uint8_t *bytes, size_t n)
{
    return n >= WORD && memcmp(bytes, magic, WORD) == 0;
}

/* Whether the length matches the header. */
static bool has_length(const uint8_t *bytes, size_t n)
{
    if (n < (HEADER + 1) * WORD || n % WORD != 0) {
        return false;
    }
    const uint64_t n_spans = tnd_le64(bytes + 3 * WORD);
    const size_t words = n / WORD - HEADER - 1;
    const uint64_t n_blocks = blocks_of(tnd_le64(bytes + WORD));
    return n_spans <= words / 2 && n_blocks == words - 2 * n_spans;
}

static bool read_spans(const uint8_t *words, size_t n, uint64_t bytes, struct tnd_spans *out)
{
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++, words += 2 * WORD) {
        const struct tnd_file_span span = {tnd_le64(words), tnd_le64(words + WORD)};
        if (span.begin >= span.end || span.end > bytes || (i > 0 && span.begin <= end)) {
            return false;
        }
        end = span.end;
        tnd_spans_add(out, span.begin, span.end);
    }
    return !out->failed;
}

enum tandem_status tnd_partial_parse(const uint8_t *bytes, size_t n, const char *name,
                                     struct tnd_partial *out, struct tandem_error *error)
{
    struct tnd_partial partial = {.bytes = 0};
    if (!tnd_partial_is(bytes, n) || !has_length(bytes, n) ||
        tnd_digest(bytes, n - WORD) != tnd_le64(bytes + n - WORD)) {
        return tnd_error_set(error, TANDEM_E_FORMAT, name, (int64_t)n, 0,
                             "%s: is no record of a copy, or a damaged one (%zu bytes)",
                             tnd_short_name(name), n);
    }
    const size_t n_spans = (size_t)tnd_le64(bytes + 3 * WORD);
    TND_TRY(tnd_partial_new(tnd_le64(bytes + WORD), tnd_le64(bytes + 2 * WORD), &partial, error));
    if (!read_spans(bytes + HEADER * WORD, n_spans, partial.bytes, &partial.present)) {
        tnd_partial_fini(&partial);
        return tnd_error_set(error, TANDEM_E_FORMAT, name, (int64_t)n_spans, 0,
                             "%s: the ranges of this record do not ascend within the file",
                             tnd_short_name(name));
    }
    for (size_t i = 0; i < partial.n_blocks; i++) {
        partial.blocks[i] = tnd_le64(bytes + (HEADER + 2 * n_spans + i) * WORD);
    }
    *out = partial;
    return TANDEM_OK;
}

static uint8_t *put(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < WORD; i++, value >>= 8) {
        *at++ = (uint8_t)value;
    }
    return at;
}

uint8_t *tnd_partial_write(const struct tnd_partial *partial, size_t *out_n)
{
    const size_t n = (HEADER + 2 * partial->present.n + partial->n_blocks + 1) * WORD;
    uint8_t *bytes = partial->present.failed ? NULL : tnd_alloc(n);
    if (bytes == NULL) {
        return NULL;
    }
    memcpy(bytes, magic, WORD);
    uint8_t *at = put(bytes + WORD, partial->bytes);
    at = put(at, partial->digest);
    at = put(at, partial->present.n);
    for (size_t i = 0; i < partial->present.n; i++) {
        at = put(at, partial->present.list[i].begin);
        at = put(at, partial->present.list[i].end);
    }
    for (size_t i = 0; i < partial->n_blocks; i++) {
        at = put(at, partial->blocks[i]);
    }
    (void)put(at, tnd_digest(bytes, n - WORD));
    *out_n = n;
    return bytes;
}

enum tandem_status tnd_partial_read(const char *path, struct tnd_partial *out,
                                    struct tandem_error *error)
{
    char name[PATH_MAX];
    struct tnd_file file;
    if (snprintf(name, sizeof(name), "%s" TND_PARTIAL_RECORD, path) >= (int)sizeof(name)) {
        return tnd_error_set(error, TANDEM_E_FILE, path, PATH_MAX, PATH_MAX,
                             "%s: its name is too long", tnd_short_name(path));
    }
    TND_TRY(tnd_file_read(name, 0, &file, error));
    const enum tandem_status status = tnd_partial_parse(file.data, file.bytes, name, out, error);
    tnd_file_close(&file);
    return status;
}

void tnd_partial_fini(struct tnd_partial *partial)
{
    tnd_spans_fini(&partial->present);
    tnd_free(partial->blocks);
    memset(partial, 0, sizeof(*partial));
}

/* ---- sources ---- */

bool tnd_partial_is_gguf(const uint8_t *bytes, size_t n)
{
    return tnd_gguf_is(bytes, n) && n > TND_PARTIAL_MARK_AT &&
           (bytes[TND_PARTIAL_MARK_AT] & TND_PARTIAL_MARK) != 0;
}

enum tandem_status tnd_source_see_parts(const tandem_source *source, const char *path,
                                        struct tandem_error *error)
{
    const struct tnd_file *file = &source->file;
    struct tnd_partial partial;
    struct stat info;
    TND_TRY(tnd_partial_read(path, &partial, error));
    const bool is_whole = tnd_spans_contain(&partial.present, 0, partial.bytes);
    if (partial.bytes != file->bytes || (!file->is_mapped && !is_whole) || stat(path, &info) != 0) {
        tnd_partial_fini(&partial);
        return tnd_error_set(error, TANDEM_E_FILE, path, (int64_t)file->bytes, 0,
                             "%s: its record does not belong to it", tnd_short_name(path));
    }
    tnd_partial_fini(source->partial);
    *source->partial = partial;
    if (!file->is_mapped) {
        return TANDEM_OK;
    }
    tnd_mapped_digests_leave(file->data); /* the copy was written since it was listed */
    tnd_mapped_leave(file->data);
    tnd_mapped_add(file->data, file->bytes, path, &info);
    return tnd_mapped_set_present(file->data, &source->partial->present)
               ? TANDEM_OK
               : tnd_error_set(error, TANDEM_E_LIMIT, path, 0, 0,
                               "%s: too many files are mapped to know what of it is there",
                               tnd_short_name(path));
}
