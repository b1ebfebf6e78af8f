/* SPDX-License-Identifier: MIT
 * Rank 0 announces size and digest of its file; a rank without the file looks for a matching copy
 * in its cache, and otherwise receives the file in pieces, each of which it confirms. A copy is
 * written under a temporary name, checked and renamed, so that a name never belongs to part of a
 * file. The name contains the digest, so files of the same name do not collide. */
#include "tools/report/ranks_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/tnd_status.h"
#include "tools/say.h"
#include "tools/terminal.h"

#define PART ".part-"
enum { PIECE = 4 << 20, WHY = 200, TELL_S = 5 /* between progress lines */ };

/* Whether a rank has the file. */
enum having { HAS, LACKS, CANNOT };
struct told {
    int64_t having;
    char why[WHY];
};

/* What rank 0 offers. */
struct offer {
    int64_t bytes;
    uint64_t digest;
};

struct sending {
    tandem_communicator *communicator;
    int rank, count;
    const char *path;
    char *out; /* path on this rank, {out_bytes} */
    size_t out_bytes;
    const char *cache;
    struct offer offer;
    struct told *told; /* {count} */
    int file;          /* open file of rank 0; -1: none */
    char *piece;       /* {PIECE} */
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct told cannot(const char *what, const char *path)
{
    struct told told = {.having = CANNOT};
    const int code = errno;
    snprintf(told.why, sizeof(told.why), "%.100s %s%s%s", path, what, code != 0 ? ": " : "",
             code != 0 ? strerror(code) : "");
    return told;
}

/* Exchanges the state of all ranks; the first rank that cannot continue makes all of them fail. */
static enum tandem_status agree(struct sending *s, const struct told *mine,
                                struct tandem_error *error)
{
    size_t *bytes = calloc((size_t)s->count, sizeof(bytes[0]));
    const double limit_s = tandem_communicator_limit(s->communicator);
    if (bytes == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cluster", s->count, 0, "cluster: no memory");
    }
    for (int i = 0; i < s->count; i++) {
        bytes[i] = sizeof(*mine);
    }
    /* Other ranks may be reading a large file meanwhile, so there is no time limit. */
    tandem_communicator_set_limit(s->communicator, -limit_s);
    enum tandem_status status =
        tandem_communicator_all_gather(s->communicator, mine, bytes, s->told, error);
    tandem_communicator_set_limit(s->communicator, limit_s);
    free(bytes);
    for (int i = 0; status == TANDEM_OK && i < s->count; i++) {
        s->told[i].why[WHY - 1] = '\0';
        if (s->told[i].having == CANNOT) {
            status =
                tnd_error_set(error, TANDEM_E_FILE, "cluster", i, s->count, "rank %d on %s: %s", i,
                              tandem_communicator_host(s->communicator, i), s->told[i].why);
        }
    }
    return status;
}

static bool has_all(const struct sending *s)
{
    bool has = true;
    for (int i = 0; i < s->count; i++) {
        has = has && s->told[i].having == HAS;
    }
    return has;
}

/* ---- contents ---- */

/* Reads `n` bytes at offset `at`; an early end of the file is a failure. */
static bool read_piece(int file, int64_t at, char *out, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = pread(file, out + done, n - done, (off_t)(at + (int64_t)done));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            errno = got == 0 ? 0 : errno;
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static size_t piece_bytes(int64_t bytes, int64_t at)
{
    return bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;
}

/* Digest of the first `bytes` bytes of an open file. */
static bool digest_file(const struct sending *s, int file, int64_t bytes, uint64_t *out)
{
    uint64_t digest = (uint64_t)bytes;
    for (int64_t at = 0; at < bytes; at += PIECE) {
        const size_t n = piece_bytes(bytes, at);
        if (!read_piece(file, at, s->piece, n)) {
            return false;
        }
        digest = tnd_digest_add(digest, tnd_digest(s->piece, n));
    }
    *out = digest;
    return true;
}

/* ---- the cache ---- */

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Path of the copy; false with the reason. (Keeps the file's extension, which tells the format.) */
static bool find_copy(const struct sending *s, char out[PATH_MAX], struct told *why)
{
    const char *cache = secure_getenv("XDG_CACHE_HOME"); /* XDG: ignore relative paths */
    const bool has_cache = cache != NULL && cache[0] == '/';
    const char *folder = s->cache != NULL ? s->cache : has_cache ? cache : secure_getenv("HOME");
    const char *rest = s->cache != NULL ? ""
                       : has_cache      ? "/tandem/models"
                                        : "/.cache/tandem/models";
    struct tandem_error error = {.text = ""};
    errno = 0;
    if (folder == NULL || folder[0] == '\0') {
        *why = cannot("is not there, and neither HOME nor XDG_CACHE_HOME says where a copy may be "
                      "kept",
                      s->path);
        return false;
    }
    const int n = snprintf(out, PATH_MAX, "%s%s/%016" PRIx64 "-%.160s", folder, rest,
                           s->offer.digest, name_of(s->path));
    if (n < 0 || n >= PATH_MAX - 32 || (size_t)n >= s->out_bytes) {
        *why = cannot("is not there, and the name of its copy is too long", s->path);
        return false;
    }
    if (s->cache == NULL && tnd_file_check_owner(out, &error) != TANDEM_OK) {
        *why = (struct told){.having = CANNOT};
        snprintf(why->why, sizeof(why->why), "%.180s", error.text);
        return false;
    }
    return true;
}

/* Whether the cache has a copy with the contents of rank 0's file. Any other copy is replaced by
 * what rank 0 sends. */
static struct told look_up(struct sending *s)
{
    char path[PATH_MAX];
    struct told told = {.having = LACKS};
    struct stat info;
    uint64_t digest = 0;
    if (!find_copy(s, path, &told)) {
        return told;
    }
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return errno == ENOENT || errno == ENOTDIR ? told : cannot("cannot be read", path);
    }
    const bool is_good = fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
                         info.st_size == (off_t)s->offer.bytes &&
                         digest_file(s, file, s->offer.bytes, &digest) && digest == s->offer.digest;
    close(file);
    if (is_good) {
        snprintf(s->out, s->out_bytes, "%s", path);
        told.having = HAS;
        return told;
    }
    fprintf(stderr,
            "rank %d on %s: note: %s does not hold what was written into it: fetched anew\n",
            s->rank, tandem_communicator_host(s->communicator, s->rank), path);
    return told;
}

/* Removes partial copies whose writers are gone: a writer holds a lock. */
static void remove_left_overs(const char *path)
{
    const size_t n_folder = tnd_file_folder_length(path);
    const char *name = path + n_folder;
    const size_t n_name = strlen(name);
    char one[PATH_MAX + 32];
    snprintf(one, sizeof(one), "%.*s.", (int)n_folder, path);
    DIR *folder = opendir(one);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, name, n_name) != 0 ||
            strncmp(entry->d_name + n_name, PART, strlen(PART)) != 0) {
            continue;
        }
        snprintf(one, sizeof(one), "%.*s%.255s", (int)n_folder, path, entry->d_name);
        const int file = open(one, O_WRONLY | O_CLOEXEC);
        if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0) {
            (void)unlink(one);
        }
        if (file >= 0) {
            close(file);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* A partial copy that this process writes. */
struct part {
    int file; /* -1: there is none */
    char path[PATH_MAX], temporary[PATH_MAX + 32];
    uint64_t digest;
};

/* Creates a new locked file. (Before it is locked, another process may remove it as stale.) */
static bool make_temporary(struct part *part)
{
    struct stat by_name, by_file;
    for (int i = 0; i < 8; i++) {
        snprintf(part->temporary, sizeof(part->temporary), "%s" PART "XXXXXX", part->path);
        part->file = mkostemp(part->temporary, O_CLOEXEC);
        if (part->file < 0 || flock(part->file, LOCK_EX) != 0) {
            return false;
        }
        if (fstat(part->file, &by_file) == 0 && stat(part->temporary, &by_name) == 0 &&
            by_file.st_ino == by_name.st_ino) {
            return true;
        }
        close(part->file);
        part->file = -1;
    }
    return false;
}

static struct told open_part(struct sending *s, struct part *part)
{
    struct told told = {.having = HAS};
    struct tandem_error error = {.text = ""};
    struct statvfs disk;
    if (!find_copy(s, part->path, &told)) {
        return told;
    }
    if (tnd_file_make_folders(part->path, &error) != TANDEM_OK) {
        told.having = CANNOT;
        snprintf(told.why, sizeof(told.why), "%.180s", error.text);
        return told;
    }
    remove_left_overs(part->path);
    if (!make_temporary(part)) {
        return cannot("cannot be written", part->path);
    }
    if (fstatvfs(part->file, &disk) == 0 &&
        (double)disk.f_bavail * (double)disk.f_frsize < (double)s->offer.bytes) {
        told.having = CANNOT;
        snprintf(told.why, sizeof(told.why),
                 "%.1f MiB are free for a copy of %.1f MiB in %.90s; --model-cache names another "
                 "folder",
                 (double)disk.f_bavail * (double)disk.f_frsize / 1048576,
                 (double)s->offer.bytes / 1048576, part->path);
    }
    part->digest = (uint64_t)s->offer.bytes;
    return told;
}

static struct told write_piece(struct sending *s, struct part *part, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t put = write(part->file, s->piece + done, n - done);
        if (put < 0 && errno != EINTR) {
            return cannot("cannot be written", part->path);
        }
        done += put > 0 ? (size_t)put : 0;
    }
    part->digest = tnd_digest_add(part->digest, tnd_digest(s->piece, n));
    return (struct told){.having = HAS};
}

/* Checks the copy and renames it. */
static struct told end_part(struct sending *s, struct part *part)
{
    struct told told = {.having = HAS};
    errno = 0;
    if (part->digest != s->offer.digest) {
        return cannot("came with other contents than rank 0 had told: is its file being changed?",
                      s->path);
    }
    if (fsync(part->file) != 0 || rename(part->temporary, part->path) != 0) {
        return cannot("cannot be written", part->path);
    }
    part->temporary[0] = '\0';
    snprintf(s->out, s->out_bytes, "%s", part->path);
    return told;
}

static void close_part(struct part *part)
{
    if (part->file >= 0 && part->temporary[0] != '\0') {
        (void)unlink(part->temporary);
    }
    if (part->file >= 0) {
        close(part->file);
    }
}

/* ---- sending ---- */

static void say_progress(const struct sending *s, int64_t done, double *io_shown_s)
{
    const bool has_bar = isatty(STDERR_FILENO) != 0;
    const double now = seconds();
    if (now - *io_shown_s < (has_bar ? 0.2 : TELL_S) || tnd_say_level == TND_SAY_QUIET) {
        return;
    }
    *io_shown_s = now;
    if (has_bar) {
        tnd_terminal_control("\r");
    }
    fprintf(stderr, "%s: sent %3.0f %% of %.1f MiB%s", name_of(s->path),
            100.0 * (double)done / (double)s->offer.bytes, (double)s->offer.bytes / 1048576,
            has_bar ? "" : "\n");
}

/* Sends one piece to all ranks that receive in this round; *io_goes_on: whether all of them
 * continue. */
static enum tandem_status send_piece(struct sending *s, const bool *receives, int64_t n,
                                     bool *io_goes_on, struct tandem_error *error)
{
    bool goes_on = true;
    for (int i = 1; i < s->count; i++) {
        if (receives[i]) {
            TND_TRY(tandem_communicator_send(s->communicator, i, &n, sizeof(n), error));
            if (n > 0) {
                TND_TRY(tandem_communicator_send(s->communicator, i, s->piece, (size_t)n, error));
            }
        }
    }
    for (int i = 1; n > 0 && i < s->count; i++) {
        int64_t is_good = 0;
        if (receives[i]) {
            TND_TRY(
                tandem_communicator_receive(s->communicator, i, &is_good, sizeof(is_good), error));
            goes_on = goes_on && is_good != 0;
        }
    }
    *io_goes_on = *io_goes_on && goes_on;
    return TANDEM_OK;
}

static enum tandem_status send_all(struct sending *s, const bool *receives, struct told *out,
                                   struct tandem_error *error)
{
    double shown_s = seconds();
    bool goes_on = true;
    for (int i = 1; i < s->count; i++) {
        if (receives[i]) {
            tnd_say("%s: %.1f MiB go to rank %d on %s, which has no such file\n", name_of(s->path),
                    (double)s->offer.bytes / 1048576, i,
                    tandem_communicator_host(s->communicator, i));
        }
    }
    for (int64_t at = 0; goes_on && at < s->offer.bytes; at += PIECE) {
        const size_t n = piece_bytes(s->offer.bytes, at);
        if (!read_piece(s->file, at, s->piece, n)) {
            *out = cannot("cannot be read to its end", s->path);
            break;
        }
        TND_TRY(send_piece(s, receives, (int64_t)n, &goes_on, error));
        say_progress(s, at + (int64_t)n, &shown_s);
    }
    if (isatty(STDERR_FILENO) && tnd_say_level != TND_SAY_QUIET) {
        tnd_terminal_control("\r\033[K");
    }
    return send_piece(s, receives, 0, &goes_on, error); /* an empty piece marks the end */
}

static enum tandem_status receive_all(struct sending *s, struct told *out,
                                      struct tandem_error *error)
{
    struct part part = {.file = -1};
    int64_t n = 0, done = 0;
    *out = open_part(s, &part);
    enum tandem_status status =
        tandem_communicator_receive(s->communicator, 0, &n, sizeof(n), error);
    while (status == TANDEM_OK && n > 0 && n <= PIECE) {
        status = tandem_communicator_receive(s->communicator, 0, s->piece, (size_t)n, error);
        *out = status == TANDEM_OK && out->having == HAS ? write_piece(s, &part, (size_t)n) : *out;
        const int64_t is_good = out->having == HAS;
        done += n;
        if (status == TANDEM_OK) {
            status = tandem_communicator_send(s->communicator, 0, &is_good, sizeof(is_good), error);
        }
        if (status == TANDEM_OK) {
            status = tandem_communicator_receive(s->communicator, 0, &n, sizeof(n), error);
        }
    }
    if (status == TANDEM_OK && out->having == HAS) {
        if (done < s->offer.bytes) { /* stopped by another rank */
            *out = (struct told){.having = LACKS};
        } else {
            *out = end_part(s, &part);
        }
    }
    close_part(&part);
    return status;
}

/* In the first round, only the first rank on each host receives, since ranks may share their cache;
 * ranks that still lack the file receive in the second round. */
static bool is_turn(const struct sending *s, int rank, bool is_first_round)
{
    const char *own = tandem_communicator_host(s->communicator, rank);
    for (int i = 0; is_first_round && i < rank; i++) {
        if (s->told[i].having == LACKS &&
            strcmp(tandem_communicator_host(s->communicator, i), own) == 0) {
            return false;
        }
    }
    return s->told[rank].having == LACKS;
}

static enum tandem_status send_round(struct sending *s, bool is_first_round,
                                     struct tandem_error *error)
{
    struct told mine = s->told[s->rank];
    bool *receives = calloc((size_t)s->count, sizeof(receives[0]));
    if (receives == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cluster", s->count, 0, "cluster: no memory");
    }
    for (int i = 1; i < s->count; i++) {
        receives[i] = is_turn(s, i, is_first_round);
    }
    enum tandem_status status = TANDEM_OK;
    if (s->rank == 0) {
        status = send_all(s, receives, &mine, error);
    } else if (receives[s->rank]) {
        status = receive_all(s, &mine, error);
    }
    free(receives);
    if (status == TANDEM_OK) {
        status = agree(s, &mine, error);
    }
    if (status == TANDEM_OK && !has_all(s)) {
        mine = s->told[s->rank].having == HAS ? s->told[s->rank] : look_up(s);
        status = agree(s, &mine, error);
    }
    return status;
}

/* ---- all of it ---- */

/* Whether the file exists. If it exists but is unusable, opening it reports the error. */
static struct told look(struct sending *s)
{
    struct told told = {.having = HAS};
    struct stat info;
    if (stat(s->path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
        return told;
    }
    told.having = LACKS;
    return s->rank > 0 ? told : cannot("cannot be opened", s->path);
}

static struct told make_offer(struct sending *s)
{
    struct stat info;
    errno = 0;
    if (stat(s->path, &info) == 0 && S_ISDIR(info.st_mode)) {
        return cannot("is a folder, which is not sent to ranks that lack it: copy it to them",
                      s->path);
    }
    s->file = open(s->path, O_RDONLY | O_CLOEXEC);
    if (s->file < 0 || fstat(s->file, &info) != 0 || !S_ISREG(info.st_mode)) {
        return cannot("cannot be read", s->path);
    }
    s->offer.bytes = (int64_t)info.st_size;
    return digest_file(s, s->file, s->offer.bytes, &s->offer.digest)
               ? (struct told){.having = HAS}
               : cannot("cannot be read to its end", s->path);
}

static enum tandem_status share(struct sending *s, struct tandem_error *error)
{
    struct told mine = look(s);
    TND_TRY(agree(s, &mine, error));
    if (has_all(s)) {
        return TANDEM_OK;
    }
    const bool has_own = mine.having == HAS;
    if (s->rank == 0) {
        mine = make_offer(s);
    }
    TND_TRY(agree(s, &mine, error));
    TND_TRY(tandem_communicator_broadcast(s->communicator, &s->offer, sizeof(s->offer), error));
    mine = has_own ? (struct told){.having = HAS} : look_up(s);
    TND_TRY(agree(s, &mine, error));
    for (int round = 0; round < 2 && !has_all(s); round++) {
        TND_TRY(send_round(s, round == 0, error));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_ranks_file(tandem_communicator *communicator, const char *path,
                                  const char *cache, char *out, size_t out_bytes,
                                  struct tandem_error *error)
{
    struct sending s = {.communicator = communicator,
                        .rank = tandem_communicator_rank(communicator),
                        .count = tandem_communicator_count(communicator),
                        .path = path,
                        .out = out,
                        .out_bytes = out_bytes,
                        .cache = cache,
                        .file = -1};
    if (snprintf(out, out_bytes, "%s", path) >= (int)out_bytes) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "cluster", (int64_t)strlen(path),
                             (int64_t)out_bytes,
                             "the path of the model has %zu bytes, expected "
                             "fewer than %zu",
                             strlen(path), out_bytes);
    }
    if (s.count < 2) {
        return TANDEM_OK;
    }
    s.told = calloc((size_t)s.count, sizeof(s.told[0]));
    s.piece = malloc(PIECE);
    enum tandem_status status = TANDEM_E_MEMORY;
    if (s.told == NULL || s.piece == NULL) {
        (void)tnd_error_set(error, status, "cluster", PIECE, 0, "cluster: no memory for files");
    } else {
        status = share(&s, error);
    }
    if (s.file >= 0) {
        close(s.file);
    }
    free(s.told);
    free(s.piece);
    return status;
}
