/* SPDX-License-Identifier: MIT
 * Several processes may fill one copy: at the same offset all write the same bytes, and they update
 * its record in turn, under a lock on the copy. Bytes are flushed to disk before the record lists
 * them. A copy is ours if its record has our format and it belongs to this user; other files of the
 * same name are left alone. */
#include "tools/report/ranks_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "formats/cursor.h"

#define PART ".part"
enum { NAMES = 10, PAGE = 4096 /* bytes; usual allocation unit of file systems */ };

static bool cannot(char why[TND_RANKS_WHY], const char *path, const char *what)
{
    const int code = errno;
    snprintf(why, TND_RANKS_WHY, "%.100s %s%s%s", path, what, code != 0 ? ": " : "",
             code != 0 ? strerror(code) : "");
    return false;
}

static bool failed(char why[TND_RANKS_WHY], const struct tandem_error *error)
{
    snprintf(why, TND_RANKS_WHY, "%.180s", error->text);
    return false;
}

/* ---- contents ---- */

static struct tnd_file_span block_span(const struct tnd_ranks_copy *copy, size_t i)
{
    const uint64_t begin = (uint64_t)i * TND_PARTIAL_BLOCK;
    const uint64_t left = copy->offer.bytes - begin;
    return (struct tnd_file_span){begin,
                                  begin + (left < TND_PARTIAL_BLOCK ? left : TND_PARTIAL_BLOCK)};
}

static bool touches(const struct tnd_spans *spans, struct tnd_file_span span)
{
    const size_t i = tnd_spans_find(spans, span.begin);
    return i < spans->n && spans->list[i].begin < span.end;
}

/* Reads the bytes present and fills the rest with zeros. */
static void read_some(int file, uint64_t at, char *out, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t got = pread(file, out + done, n - done, (off_t)(at + done));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            memset(out + done, 0, n - done);
            return;
        }
        done += got > 0 ? (size_t)got : 0;
    }
}

/* Digest of the part of block i that is in `spans`; 0: none. `memory`: room for a block. */
static uint64_t digest_block(const struct tnd_ranks_copy *copy, const struct tnd_spans *spans,
                             size_t i, char *memory)
{
    const struct tnd_file_span block = block_span(copy, i);
    size_t n = 0;
    if (!touches(spans, block)) {
        return 0;
    }
    read_some(copy->file, block.begin, memory, (size_t)(block.end - block.begin));
    for (size_t s = tnd_spans_find(spans, block.begin);
         s < spans->n && spans->list[s].begin < block.end; s++) {
        const struct tnd_file_span span = spans->list[s];
        const uint64_t begin = span.begin > block.begin ? span.begin : block.begin;
        const uint64_t end = span.end < block.end ? span.end : block.end;
        memmove(memory + n, memory + (begin - block.begin), (size_t)(end - begin));
        n += (size_t)(end - begin);
    }
    return tnd_digest(memory, n);
}

/* Whether a block matches its digest in the record. */
static bool is_good(const struct tnd_ranks_copy *copy, const struct tnd_partial *partial, size_t i,
                    char *memory)
{
    return digest_block(copy, &partial->present, i, memory) == partial->blocks[i];
}

/* ---- the record ---- */

static bool read_record(const struct tnd_ranks_copy *copy, struct tnd_partial *out)
{
    if (tnd_partial_read(copy->path, out, NULL) != TANDEM_OK) {
        return false;
    }
    if (out->bytes != copy->offer.bytes || out->digest != copy->offer.digest) {
        tnd_partial_fini(out);
        return false;
    }
    return true;
}

static bool write_record(const struct tnd_ranks_copy *copy, const struct tnd_partial *partial,
                         char why[TND_RANKS_WHY])
{
    char name[PATH_MAX + sizeof(TND_PARTIAL_RECORD)];
    struct tandem_error error = {.text = ""};
    size_t n = 0;
    uint8_t *bytes = tnd_partial_write(partial, &n);
    snprintf(name, sizeof(name), "%s" TND_PARTIAL_RECORD, copy->path);
    errno = ENOMEM;
    const bool is_written =
        bytes != NULL
            ? tnd_file_write_atomic(name, bytes, n, &error) == TANDEM_OK || failed(why, &error)
            : cannot(why, name, "cannot be written");
    tnd_free(bytes);
    return is_written;
}

static void add_all(const struct tnd_spans *spans, struct tnd_spans *io_all)
{
    for (size_t i = 0; i < spans->n; i++) {
        tnd_spans_add(io_all, spans->list[i].begin, spans->list[i].end);
    }
}

/* Adds the bytes received to the record's ranges, removes the blocks in `bad` and those whose
 * digest is wrong, and updates the digests. */
static bool join(struct tnd_ranks_copy *copy, struct tnd_partial *partial,
                 const struct tnd_spans *bad, char *memory)
{
    struct tnd_spans lost = TND_SPANS_INIT, kept = TND_SPANS_INIT;
    for (size_t i = 0; i < partial->n_blocks; i++) {
        const struct tnd_file_span block = block_span(copy, i);
        const bool is_lost = touches(bad, block) ||
                             (touches(&copy->came, block) && !is_good(copy, partial, i, memory));
        tnd_spans_add(&lost, block.begin, is_lost ? block.end : block.begin);
    }
    tnd_spans_subtract(&partial->present, &lost, &kept);
    add_all(&copy->came, &kept);
    tnd_spans_tidy(&kept);
    for (size_t i = 0; i < partial->n_blocks; i++) {
        const struct tnd_file_span block = block_span(copy, i);
        if (touches(&lost, block) || touches(&copy->came, block)) {
            partial->blocks[i] = digest_block(copy, &kept, i, memory);
        }
    }
    tnd_spans_fini(&partial->present);
    partial->present = kept;
    const bool is_done = !kept.failed && !lost.failed && !copy->came.failed;
    tnd_spans_fini(&lost);
    return is_done;
}

/* Rewrites the record under the lock: rereads it, removes `bad` and adds the bytes received. */
static bool update(struct tnd_ranks_copy *copy, const struct tnd_spans *bad,
                   char why[TND_RANKS_WHY])
{
    struct tnd_partial partial = {.bytes = 0};
    struct tandem_error error = {.text = ""};
    char *memory = tnd_alloc(TND_PARTIAL_BLOCK);
    tnd_spans_tidy(&copy->came);
    bool is_done =
        memory != NULL && (fdatasync(copy->file) == 0) && flock(copy->file, LOCK_EX) == 0;
    if (!is_done) {
        (void)cannot(why, copy->path, "cannot be kept");
    } else if (!read_record(copy, &partial) &&
               tnd_partial_new(copy->offer.bytes, copy->offer.digest, &partial, &error) !=
                   TANDEM_OK) {
        is_done = failed(why, &error);
    } else if (!join(copy, &partial, bad, memory)) {
        errno = ENOMEM;
        is_done = cannot(why, copy->path, "cannot be kept");
    } else {
        is_done = write_record(copy, &partial, why);
    }
    (void)flock(copy->file, LOCK_UN);
    tnd_free(memory);
    if (!is_done) {
        tnd_partial_fini(&partial);
        return false;
    }
    tnd_partial_fini(&copy->partial);
    copy->partial = partial;
    tnd_spans_fini(&copy->came);
    return true;
}

bool tnd_ranks_copy_keep(struct tnd_ranks_copy *copy, char why[TND_RANKS_WHY])
{
    const struct tnd_spans none = TND_SPANS_INIT;
    return copy->came.n == 0 || update(copy, &none, why);
}

/* ---- finding it ---- */

enum owner { NOBODY, OURS, FOREIGN };

/* Owner of a file. Links are FOREIGN; an empty file counts as none. */
static enum owner owner_of(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0) {
        return errno == ENOENT || errno == ENOTDIR ? NOBODY : FOREIGN;
    }
    const bool is_ours = S_ISREG(info.st_mode) && info.st_uid == geteuid();
    return !is_ours ? FOREIGN : info.st_size > 0 ? OURS : NOBODY;
}

/* Owner of the record: OURS if it starts with our magic, damaged or not. */
static enum owner owner_of_record(const char *path)
{
    char name[PATH_MAX + sizeof(TND_PARTIAL_RECORD)];
    uint8_t first[8];
    snprintf(name, sizeof(name), "%s" TND_PARTIAL_RECORD, path);
    enum owner owner = owner_of(name);
    const int file = owner == OURS ? open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (owner == OURS) {
        const ssize_t n = file >= 0 ? read(file, first, sizeof(first)) : -1;
        owner = n >= 0 && tnd_partial_is(first, (size_t)n) ? OURS : FOREIGN;
    }
    if (file >= 0) {
        close(file);
    }
    return owner;
}

/* Whether the names are unused, or belong to a copy of ours. */
static bool may_use(const struct tnd_ranks_copy *copy)
{
    const enum owner record = owner_of_record(copy->path);
    const enum owner part = owner_of(copy->path), whole = owner_of(copy->whole);
    return record == OURS ? part != FOREIGN && whole != FOREIGN
                          : record == NOBODY && part == NOBODY && whole == NOBODY;
}

static bool folder_of(const char *folder, const char *name, char out[PATH_MAX],
                      char why[TND_RANKS_WHY])
{
    const char *cache = secure_getenv("XDG_CACHE_HOME"); /* XDG: relative paths are invalid */
    const bool has_cache = cache != NULL && cache[0] == '/';
    const char *of_user = has_cache ? cache : secure_getenv("HOME");
    errno = 0;
    if (folder == NULL && (of_user == NULL || of_user[0] == '\0')) {
        return cannot(why, name,
                      "is not there, and neither HOME nor XDG_CACHE_HOME says where a copy may be "
                      "kept");
    }
    const int n = folder != NULL ? snprintf(out, PATH_MAX, "%s", folder)
                                 : snprintf(out, PATH_MAX, "%s%s", of_user,
                                            has_cache ? "/tandem/models" : "/.cache/tandem/models");
    return (n > 0 && n < PATH_MAX - 256) ||
           cannot(why, name, "is not there, and the name of its copy is too long");
}

/* The original name comes last, since its extension gives the format. */
static bool choose_name(struct tnd_ranks_copy *copy, const char *folder, const char *name,
                        const char *who, char why[TND_RANKS_WHY])
{
    char in[PATH_MAX];
    struct tandem_error error = {.text = ""};
    const char *slash = strrchr(name, '/');
    if (!folder_of(folder, name, in, why)) {
        return false;
    }
    for (int i = 0; i < NAMES; i++) {
        char number[8] = "";
        if (i > 0) {
            snprintf(number, sizeof(number), ".%d", i);
        }
        snprintf(copy->whole, sizeof(copy->whole), "%.*s/%016" PRIx64 "%s-%.160s", PATH_MAX - 256,
                 in, copy->offer.digest, number, slash != NULL ? slash + 1 : name);
        snprintf(copy->path, sizeof(copy->path), "%.*s" PART, PATH_MAX - 32, copy->whole);
        if (folder == NULL && tnd_file_check_owner(copy->path, &error) != TANDEM_OK) {
            return failed(why, &error);
        }
        if (may_use(copy)) {
            return true;
        }
        fprintf(stderr, "%s: note: %s is not a copy of ours, and is left as it is\n", who,
                copy->path);
    }
    errno = 0;
    return cannot(why, copy->path, "and the names before it belong to other files");
}

static const char *name_now(const struct tnd_ranks_copy *copy)
{
    return copy->is_complete ? copy->whole : copy->path;
}

void tnd_ranks_copy_look(struct tnd_ranks_copy *copy)
{
    struct tnd_partial partial;
    struct stat info;
    if (read_record(copy, &partial)) {
        tnd_partial_fini(&copy->partial);
        copy->partial = partial;
    }
    if (copy->file >= 0 && stat(name_now(copy), &info) != 0) { /* it was renamed */
        close(copy->file);
        copy->file = -1;
    }
    if (copy->file < 0) {
        copy->is_complete = owner_of(copy->whole) == OURS;
        copy->file = open(name_now(copy), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    }
    if (copy->file < 0) {
        tnd_spans_fini(&copy->partial.present);
    }
}

/* Finds the blocks that do not match the record. */
static void find_bad(const struct tnd_ranks_copy *copy, struct tnd_spans *out)
{
    char *memory = tnd_alloc(TND_PARTIAL_BLOCK);
    for (size_t i = 0; i < copy->partial.n_blocks; i++) {
        const struct tnd_file_span block = block_span(copy, i);
        if (memory == NULL || !is_good(copy, &copy->partial, i, memory)) {
            tnd_spans_add(out, block.begin, block.end);
        }
    }
    tnd_free(memory);
}

bool tnd_ranks_copy_find(struct tnd_ranks_copy *copy, const char *folder, const char *name,
                         const char *who, char why[TND_RANKS_WHY])
{
    struct tandem_error error = {.text = ""};
    struct tnd_spans bad = TND_SPANS_INIT;
    if (!choose_name(copy, folder, name, who, why)) {
        return false;
    }
    const bool has_record = owner_of_record(copy->path) == OURS;
    if (tnd_partial_new(copy->offer.bytes, copy->offer.digest, &copy->partial, &error) !=
        TANDEM_OK) {
        return failed(why, &error);
    }
    struct tnd_partial partial;
    if (has_record && !read_record(copy, &partial)) {
        fprintf(stderr, "%s: note: the record of %s is damaged: the copy is fetched anew\n", who,
                copy->path);
    } else if (has_record) {
        tnd_partial_fini(&partial);
        tnd_ranks_copy_look(copy);
    }
    bool is_done = true;
    if (copy->file >= 0) {
        find_bad(copy, &bad);
        is_done = ftruncate(copy->file, (off_t)copy->offer.bytes) == 0 ||
                  cannot(why, copy->path, "cannot be written");
    }
    if (bad.n > 0) {
        fprintf(stderr,
                "%s: note: %.1f MiB of %s do not hold what was written into them: fetched anew "
                "where they are needed\n",
                who, (double)tnd_spans_bytes(&bad) / 1048576, name_now(copy));
        is_done = is_done && update(copy, &bad, why);
    }
    tnd_spans_fini(&bad);
    return is_done;
}

/* ---- filling it ---- */

/* Approximate space on disk for these ranges. */
static double disk_bytes(const struct tnd_spans *spans)
{
    double bytes = 0;
    uint64_t end = 0; /* end of the last page counted */
    for (size_t i = 0; i < spans->n; i++) {
        const uint64_t first = spans->list[i].begin / PAGE * PAGE;
        const uint64_t last = (spans->list[i].end + PAGE - 1) / PAGE * PAGE;
        const uint64_t begin = first > end ? first : end;
        bytes += last > begin ? (double)(last - begin) : 0;
        end = last;
    }
    return bytes;
}

static bool has_room(const struct tnd_ranks_copy *copy, const struct tnd_spans *missing,
                     char why[TND_RANKS_WHY])
{
    struct statvfs disk;
    const struct tnd_spans *present = &copy->partial.present;
    struct tnd_spans all = TND_SPANS_INIT;
    add_all(missing, &all);
    add_all(present, &all);
    tnd_spans_tidy(&all);
    const double need = disk_bytes(&all) - disk_bytes(present); /* some pages may exist already */
    tnd_spans_fini(&all);
    if (fstatvfs(copy->file, &disk) != 0 || (double)disk.f_bavail * (double)disk.f_frsize >= need) {
        return true;
    }
    snprintf(why, TND_RANKS_WHY,
             "%.1f MiB are free for %.1f MiB more of %.90s; --model-cache names another folder",
             (double)disk.f_bavail * (double)disk.f_frsize / 1048576, need / 1048576, copy->path);
    return false;
}

/* Starts with an empty record if the file is new or its record is lost. Call under the lock. */
static bool begin_record(struct tnd_ranks_copy *copy, char why[TND_RANKS_WHY])
{
    struct tnd_partial partial;
    struct stat info;
    if (fstat(copy->file, &info) != 0) {
        return cannot(why, copy->path, "cannot be looked at");
    }
    if (info.st_size > 0 && read_record(copy, &partial)) {
        tnd_partial_fini(&copy->partial);
        copy->partial = partial;
    } else {
        tnd_spans_fini(&copy->partial.present);
        memset(copy->partial.blocks, 0, copy->partial.n_blocks * sizeof(copy->partial.blocks[0]));
        if (!write_record(copy, &copy->partial, why)) {
            return false;
        }
    }
    return ftruncate(copy->file, (off_t)copy->offer.bytes) == 0 ||
           cannot(why, copy->path, "cannot be written");
}

bool tnd_ranks_copy_begin(struct tnd_ranks_copy *copy, const struct tnd_spans *missing,
                          char why[TND_RANKS_WHY])
{
    struct tandem_error error = {.text = ""};
    if (copy->file < 0 && tnd_file_make_folders(copy->path, &error) != TANDEM_OK) {
        return failed(why, &error);
    }
    if (copy->is_complete && rename(copy->whole, copy->path) != 0) { /* it is damaged */
        return cannot(why, copy->whole, "cannot be renamed");
    }
    copy->is_complete = false;
    if (copy->file < 0) {
        copy->file = open(copy->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (copy->file < 0 || flock(copy->file, LOCK_EX) != 0) {
        return cannot(why, copy->path, "cannot be written");
    }
    const bool is_begun = begin_record(copy, why);
    (void)flock(copy->file, LOCK_UN);
    return is_begun && has_room(copy, missing, why);
}

bool tnd_ranks_copy_put(struct tnd_ranks_copy *copy, uint64_t at, char *bytes, size_t n,
                        char why[TND_RANKS_WHY])
{
    if (copy->offer.head > 0 && at <= TND_PARTIAL_MARK_AT && at + n > TND_PARTIAL_MARK_AT) {
        bytes[TND_PARTIAL_MARK_AT - at] |= (char)TND_PARTIAL_MARK;
    }
    for (size_t done = 0; done < n;) {
        const ssize_t put = pwrite(copy->file, bytes + done, n - done, (off_t)(at + done));
        if (put < 0 && errno != EINTR) {
            return cannot(why, copy->path, "cannot be written");
        }
        done += put > 0 ? (size_t)put : 0;
    }
    tnd_spans_add(&copy->came, at, at + n);
    errno = ENOMEM;
    return !copy->came.failed || cannot(why, copy->path, "cannot be kept");
}

const char *tnd_ranks_copy_path(struct tnd_ranks_copy *copy)
{
    if (copy->offer.head > 0) {
        return copy->path;
    }
    if (!copy->is_complete &&
        (rename(copy->path, copy->whole) == 0 || owner_of(copy->whole) == OURS)) {
        copy->is_complete = true;
    }
    return name_now(copy);
}

uint64_t tnd_ranks_copy_disk(const struct tnd_ranks_copy *copy)
{
    struct stat info;
    return copy->file >= 0 && fstat(copy->file, &info) == 0 ? (uint64_t)info.st_blocks * 512 : 0;
}

void tnd_ranks_copy_close(struct tnd_ranks_copy *copy)
{
    if (copy->file >= 0) {
        close(copy->file);
    }
    copy->file = -1;
    tnd_partial_fini(&copy->partial);
    tnd_spans_fini(&copy->came);
}
