/* SPDX-License-Identifier: MIT
 * A file of digests: 64-bit words, little-endian: magic; size, mtime, ctime, inode number and
 * device of the file; number of parts; tnd_digest of all that follows and of the words before. For
 * each part: offset, bytes, digest. */
#include "base/mapped_digest.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/vector.h"

enum {
    WORD = 8,
    DIGEST_AT = 7 * WORD,
    PART_BYTES = 3 * WORD,
    FILES = 64,                  /* for which a process keeps digests */
    LEAST_PART_BYTES = 64 << 10, /* below this, reading is faster than a lookup */
    USUAL_LEAST_BYTES = 64 << 20 /* smaller files are read in milliseconds */
};

/* The digests known of one file. */
struct known {
    struct tnd_mapped_file file; /* its `bytes` are 0: unused */
    struct tnd_part_digest *parts;
    size_t n, capacity;
    size_t n_kept; /* parts that are on disk already, or need not be */
};

static struct tnd_fork_lock lock = TND_FORK_LOCK_INIT; /* guards what follows */
static struct known files[FILES];
static int next_file; /* the next slot to be reused */
static char test_folder[PATH_MAX];
static size_t least_bytes = USUAL_LEAST_BYTES;

/* ---- contents ---- */

static void set_word(uint8_t *words, size_t i, uint64_t value)
{
    for (size_t b = 0; b < WORD; b++, value >>= 8) {
        words[i * WORD + b] = (uint8_t)value;
    }
}

static uint64_t get_word(const uint8_t *words, size_t i)
{
    uint64_t value = 0;
    for (int b = WORD - 1; b >= 0; b--) {
        value = value << 8 | words[i * WORD + (size_t)b];
    }
    return value;
}

static void write_header(const struct tnd_mapped_file *file, size_t n, uint8_t *out)
{
    memcpy(out, "TNDSUMS1", WORD);
    set_word(out, 1, file->bytes);
    set_word(out, 2, (uint64_t)file->changed_ns);
    set_word(out, 3, (uint64_t)file->facts_changed_ns);
    set_word(out, 4, (uint64_t)file->file);
    set_word(out, 5, (uint64_t)file->device);
    set_word(out, 6, n);
}

static uint64_t digest_of(const uint8_t *bytes, size_t n_parts)
{
    return tnd_digest_add(tnd_digest(bytes, DIGEST_AT),
                          tnd_digest(bytes + TND_DIGESTS_HEADER_BYTES, n_parts * PART_BYTES));
}

void tnd_digests_write(const struct tnd_mapped_file *file, const struct tnd_part_digest *parts,
                       size_t n, uint8_t *out)
{
    write_header(file, n, out);
    for (size_t i = 0; i < n; i++) {
        uint8_t *words = out + TND_DIGESTS_HEADER_BYTES + i * PART_BYTES;
        set_word(words, 0, parts[i].offset);
        set_word(words, 1, parts[i].bytes);
        set_word(words, 2, parts[i].digest);
    }
    set_word(out, DIGEST_AT / WORD, digest_of(out, n));
}

size_t tnd_digests_check(const uint8_t *bytes, size_t n, const struct tnd_mapped_file *file)
{
    uint8_t wanted[DIGEST_AT + WORD];
    if (n < TND_DIGESTS_HEADER_BYTES || n > TND_DIGESTS_MAX_BYTES ||
        (n - TND_DIGESTS_HEADER_BYTES) % PART_BYTES != 0) {
        return 0;
    }
    const size_t n_parts = (n - TND_DIGESTS_HEADER_BYTES) / PART_BYTES;
    write_header(file, n_parts, wanted);
    const bool is_good = memcmp(bytes, wanted, DIGEST_AT) == 0 &&
                         get_word(bytes, DIGEST_AT / WORD) == digest_of(bytes, n_parts);
    return is_good ? n_parts : 0;
}

struct tnd_part_digest tnd_digests_part(const uint8_t *bytes, size_t i)
{
    const uint8_t *words = bytes + TND_DIGESTS_HEADER_BYTES + i * PART_BYTES;
    return (struct tnd_part_digest){get_word(words, 0), get_word(words, 1), get_word(words, 2)};
}

/* ---- files ---- */

/* The path of the file that stores a file's digests; false: there is no folder for it. */
static bool find_path(const struct tnd_mapped_file *file, char *out, size_t n)
{
    const char *cache = secure_getenv("XDG_CACHE_HOME"); /* XDG: ignore relative paths */
    const bool has_cache = cache != NULL && cache[0] == '/';
    const char *folder = has_cache ? cache : secure_getenv("HOME");
    const char *rest = has_cache ? "/tandem/digests" : "/.cache/tandem/digests";
    if (test_folder[0] != '\0') {
        folder = test_folder;
        rest = "";
    }
    if (file->bytes < least_bytes || folder == NULL || folder[0] != '/') {
        return false;
    }
    const int length = snprintf(out, n, "%s%s/%s-%016" PRIx64, folder, rest, file->name,
                                tnd_digest_add((uint64_t)file->device, (uint64_t)file->file));
    return length > 0 && (size_t)length < n && tnd_file_check_owner(out, NULL) == TANDEM_OK;
}

static void read_file(struct known *known)
{
    char path[PATH_MAX];
    struct tnd_file kept = {0};
    if (!find_path(&known->file, path, sizeof(path)) || !tnd_file_exists(path) ||
        tnd_file_read(path, TND_DIGESTS_MAX_BYTES, &kept, NULL) != TANDEM_OK) {
        return;
    }
    const size_t n = tnd_digests_check(kept.data, kept.bytes, &known->file);
    struct tnd_part_digest *parts = n > 0 ? tnd_calloc(n, sizeof(*parts)) : NULL;
    for (size_t i = 0; parts != NULL && i < n; i++) {
        parts[i] = tnd_digests_part(kept.data, i);
    }
    known->parts = parts;
    known->n = known->n_kept = known->capacity = parts != NULL ? n : 0;
    tnd_file_close(&kept);
}

static void forget(struct known *known)
{
    tnd_free(known->parts);
    *known = (struct known){.n = 0};
}

static struct known *find_file(const struct tnd_mapped_file *file)
{
    for (int i = 0; i < FILES; i++) {
        const struct tnd_mapped_file *one = &files[i].file;
        if (one->bytes > 0 && one->bytes == file->bytes && one->device == file->device &&
            one->file == file->file && one->changed_ns == file->changed_ns &&
            one->facts_changed_ns == file->facts_changed_ns) {
            return &files[i];
        }
    }
    return NULL;
}

/* The entry of a file, or a reused one. Under the lock. */
static struct known *take_file(const struct tnd_mapped_file *file)
{
    struct known *known = find_file(file);
    if (known == NULL) {
        known = &files[next_file];
        next_file = (next_file + 1) % FILES;
        forget(known);
        known->file = *file;
        known->file.path = ""; /* the name belongs to the mapping */
        read_file(known);
    }
    return known;
}

static struct tnd_part_digest *find_part(const struct known *known, uint64_t offset, size_t bytes)
{
    for (size_t i = 0; i < known->n; i++) {
        if (known->parts[i].offset == offset && known->parts[i].bytes == bytes) {
            return &known->parts[i];
        }
    }
    return NULL;
}

uint64_t tnd_mapped_digest(const void *data, size_t bytes)
{
    struct tnd_mapped_file file;
    if (bytes < LEAST_PART_BYTES || !tnd_mapped_find(data, bytes, &file)) {
        return tnd_digest(data, bytes);
    }
    const uint64_t offset = (uint64_t)((const uint8_t *)data - file.data);
    tnd_fork_lock_take(&lock);
    const struct tnd_part_digest *found = find_part(take_file(&file), offset, bytes);
    const bool is_found = found != NULL;
    uint64_t digest = is_found ? found->digest : 0;
    tnd_fork_lock_give(&lock);
    if (is_found) {
        return digest;
    }
    digest = tnd_digest(data, bytes);
    if (tandem_mapped_check(data, bytes, NULL) != TANDEM_OK) {
        return digest; /* of zeros, in part */
    }
    tnd_fork_lock_take(&lock);
    struct known *known = take_file(&file);
    if (known->n < TND_DIGESTS_MAX_PARTS && find_part(known, offset, bytes) == NULL &&
        tnd_grow(&known->parts, known->n, &known->capacity, sizeof(known->parts[0]))) {
        known->parts[known->n++] = (struct tnd_part_digest){offset, bytes, digest};
    }
    tnd_fork_lock_give(&lock);
    return digest;
}

void tnd_mapped_digests_keep(const void *data)
{
    struct tnd_mapped_file file;
    char path[PATH_MAX];
    uint8_t *bytes = NULL;
    size_t n = 0;
    if (!tnd_mapped_find(data, 1, &file)) {
        return;
    }
    tnd_fork_lock_take(&lock);
    struct known *known = find_file(&file);
    if (known != NULL && known->n > known->n_kept && find_path(&file, path, sizeof(path))) {
        n = TND_DIGESTS_HEADER_BYTES + known->n * PART_BYTES;
        bytes = tnd_alloc(n);
        if (bytes != NULL) {
            tnd_digests_write(&file, known->parts, known->n, bytes);
            known->n_kept = known->n;
        }
    }
    tnd_fork_lock_give(&lock);
    if (bytes != NULL && tnd_file_make_folders(path, NULL) == TANDEM_OK) {
        (void)tnd_file_write_atomic(path, bytes, n, NULL);
    }
    tnd_free(bytes);
}

void tnd_mapped_digests_leave(const void *data)
{
    struct tnd_mapped_file file;
    if (!tnd_mapped_find(data, 1, &file)) {
        return;
    }
    tnd_fork_lock_take(&lock);
    struct known *known = find_file(&file);
    if (known != NULL) {
        forget(known);
    }
    tnd_fork_lock_give(&lock);
}

void tnd_mapped_digests_set(const char *folder, size_t least)
{
    tnd_fork_lock_take(&lock);
    for (int i = 0; i < FILES; i++) {
        forget(&files[i]);
    }
    snprintf(test_folder, sizeof(test_folder), "%s", folder != NULL ? folder : "");
    least_bytes = folder != NULL ? least : USUAL_LEAST_BYTES;
    tnd_fork_lock_give(&lock);
}
