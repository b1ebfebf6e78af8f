/* SPDX-License-Identifier: MIT
 * Rank 0 sends size and digest of its file. A rank without the file looks for a copy in its cache,
 * sends the ranges that it lacks, and receives them in pieces, each of which it confirms. One rank
 * at a time, since ranks on one host share a cache: each first checks what the ranks before it have
 * added. */
#include "tools/report/ranks_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/tnd_status.h"
#include "tools/report/ranks_copy.h"
#include "tools/say.h"
#include "tools/terminal.h"

enum {
    PIECE = 4 << 20,
    KEEP = 64, /* pieces between updates of the record: the most that an interruption loses */
    MOST_RANGES = 1 << 26,
    TELL_S = 5 /* seconds between lines, without a terminal for a progress bar */
};

/* State of the file on a rank. */
enum having { HAS, LACKS, CANNOT };
struct told {
    int64_t having;
    uint64_t kept, disk; /* the copy's bytes present, and on disk */
    char why[TND_RANKS_WHY];
};

/* Header of a piece; n = 0: no more pieces. */
struct piece {
    int64_t n;
    uint64_t digest;
};

struct tnd_ranks_file {
    tandem_communicator *communicator;
    int rank, count;
    const char *path; /* the same on all ranks */
    char name[96];    /* file name for messages */
    struct tnd_ranks_offer offer;
    struct told mine;
    struct told *told;           /* {count} */
    bool *has_copy;              /* {count}: whether a rank needs one */
    int file;                    /* rank 0's, open; -1: none */
    struct stat facts;           /* rank 0's file when its digest was computed */
    char *piece;                 /* {PIECE} */
    struct tnd_ranks_copy *copy; /* this rank's; NULL: it has the file itself */
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / 1048576;
}

static void cannot(struct told *told, const char *what, const char *path)
{
    const int code = errno;
    told->having = CANNOT;
    snprintf(told->why, sizeof(told->why), "%.100s %s%s%s", path, what, code != 0 ? ": " : "",
             code != 0 ? strerror(code) : "");
}

/* Records whether a step of the copy has failed. */
static void note(struct told *told, bool is_done)
{
    told->having = is_done ? told->having : CANNOT;
}

/* Exchanges the states of all ranks; the first failure becomes that of all. */
static enum tandem_status agree(struct tnd_ranks_file *f, struct tandem_error *error)
{
    size_t *bytes = calloc((size_t)f->count, sizeof(bytes[0]));
    if (bytes == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cluster", f->count, 0, "cluster: no memory");
    }
    for (int i = 0; i < f->count; i++) {
        bytes[i] = sizeof(f->mine);
    }
    enum tandem_status status =
        tandem_communicator_all_gather(f->communicator, &f->mine, bytes, f->told, error);
    free(bytes);
    for (int i = 0; status == TANDEM_OK && i < f->count; i++) {
        f->told[i].why[TND_RANKS_WHY - 1] = '\0';
        if (f->told[i].having == CANNOT) {
            status =
                tnd_error_set(error, TANDEM_E_FILE, "cluster", i, f->count, "rank %d on %s: %s", i,
                              tandem_communicator_host(f->communicator, i), f->told[i].why);
        }
    }
    return status;
}

/* ---- rank 0's file ---- */

/* Reads `n` bytes at `at`; fails at the end of the file. */
static bool read_piece(int file, uint64_t at, char *out, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = pread(file, out + done, n - done, (off_t)(at + done));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            errno = got == 0 ? 0 : errno;
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool digest_file(struct tnd_ranks_file *f)
{
    f->offer.digest = f->offer.bytes;
    for (uint64_t at = 0; at < f->offer.bytes; at += PIECE) {
        const uint64_t left = f->offer.bytes - at;
        const size_t n = left < PIECE ? (size_t)left : PIECE;
        if (!read_piece(f->file, at, f->piece, n)) {
            return false;
        }
        f->offer.digest = tnd_digest_add(f->offer.digest, tnd_digest(f->piece, n));
    }
    return true;
}

static bool is_unchanged(const struct tnd_ranks_file *f)
{
    struct stat now, by_name;
    return fstat(f->file, &now) == 0 && stat(f->path, &by_name) == 0 &&
           by_name.st_ino == now.st_ino && by_name.st_dev == now.st_dev &&
           now.st_size == f->facts.st_size && now.st_mtim.tv_sec == f->facts.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == f->facts.st_mtim.tv_nsec;
}

/* Finds the bytes before the weights of a GGUF file. For a file that cannot be parsed, opening it
 * later reports why. */
static bool find_head(struct tnd_ranks_file *f)
{
    tandem_source *source;
    uint64_t head = f->offer.bytes;
    if (tandem_source_open(f->path, &source, NULL) != TANDEM_OK) {
        return true;
    }
    const struct tnd_file *file = &source->file;
    const bool is_gguf = strncmp(tandem_source_format(source), "GGUF", 4) == 0;
    const bool is_single = source->n_more_files == 0;
    for (size_t i = 0; i < source->n_tensors && is_gguf && is_single; i++) {
        const uint64_t at = (uint64_t)((const uint8_t *)source->tensors[i].data - file->data);
        head = at < head ? at : head;
    }
    f->offer.head = is_gguf ? head : 0;
    tandem_source_close(source);
    return is_single;
}

static void make_offer(struct tnd_ranks_file *f)
{
    errno = 0;
    if (stat(f->path, &f->facts) == 0 && S_ISDIR(f->facts.st_mode)) {
        cannot(&f->mine, "is a folder, which is not sent to ranks that lack it: copy it to them",
               f->path);
        return;
    }
    f->file = open(f->path, O_RDONLY | O_CLOEXEC);
    if (f->file < 0 || fstat(f->file, &f->facts) != 0 || !S_ISREG(f->facts.st_mode)) {
        cannot(&f->mine, "cannot be read", f->path);
        return;
    }
    f->offer.bytes = (uint64_t)f->facts.st_size;
    if (!digest_file(f)) {
        cannot(&f->mine, "cannot be read to its end", f->path);
        return;
    }
    errno = 0;
    if (!find_head(f)) {
        cannot(&f->mine,
               "is one of several files, which are not sent to ranks that lack them: copy them",
               f->path);
    } else if (!is_unchanged(f)) {
        cannot(&f->mine, "is being changed", f->path);
    }
}

/* ---- sending: rank 0 ---- */

struct progress {
    uint64_t done, all;
    double shown_s;
};

static void say_progress(const struct tnd_ranks_file *f, struct progress *p)
{
    const bool has_bar = isatty(STDERR_FILENO) != 0;
    const double now = seconds();
    if (now - p->shown_s < (has_bar ? 0.2 : TELL_S) || tnd_say_level == TND_SAY_QUIET) {
        return;
    }
    p->shown_s = now;
    if (has_bar) {
        tnd_terminal_control("\r");
    }
    fprintf(stderr, "%s: sent %3.0f %% of %.1f MiB%s", f->name,
            100.0 * (double)p->done / (double)p->all, mib(p->all), has_bar ? "" : "\n");
}

/* Position in a list of ranges. */
struct walk {
    size_t i;
    uint64_t at; /* offset in range i */
};

/* Next adjacent bytes in the ranges, at most `most`; 0: the end. */
static size_t next_run(const struct tnd_spans *spans, struct walk *io, size_t most,
                       uint64_t *out_at)
{
    if (io->i == spans->n) {
        return 0;
    }
    const struct tnd_file_span span = spans->list[io->i];
    const uint64_t left = span.end - span.begin - io->at;
    const size_t n = left < most ? (size_t)left : most;
    *out_at = span.begin + io->at;
    io->at += n;
    if (io->at == span.end - span.begin) {
        *io = (struct walk){io->i + 1, 0};
    }
    return n;
}

/* Fills the piece. False: rank 0 cannot read its file. */
static bool fill_piece(struct tnd_ranks_file *f, const struct tnd_spans *spans, struct walk *io,
                       size_t *out_n)
{
    size_t n = 0, run;
    uint64_t at;
    while (n < PIECE && (run = next_run(spans, io, PIECE - n, &at)) > 0) {
        if (!read_piece(f->file, at, f->piece + n, run)) {
            cannot(&f->mine, "cannot be read to its end", f->path);
            return false;
        }
        n += run;
    }
    errno = 0;
    if (!is_unchanged(f)) {
        cannot(&f->mine, "is being changed", f->path);
        return false;
    }
    *out_n = n;
    return true;
}

/* Receives the ranges that a rank lacks, and checks that they ascend within the file. */
static enum tandem_status receive_wish(const struct tnd_ranks_file *f, int rank, int64_t n,
                                       struct tnd_spans *out, struct tandem_error *error)
{
    const size_t bytes = (size_t)n * sizeof(struct tnd_file_span);
    struct tnd_file_span *list = n <= MOST_RANGES ? malloc(bytes) : NULL;
    if (list == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cluster", n, MOST_RANGES,
                             "rank %d on %s wants %lld ranges of %s, for which there is no memory",
                             rank, tandem_communicator_host(f->communicator, rank), (long long)n,
                             f->name);
    }
    enum tandem_status status =
        tandem_communicator_receive(f->communicator, rank, list, bytes, error);
    for (int64_t i = 0; status == TANDEM_OK && i < n; i++) {
        if (list[i].begin >= list[i].end || list[i].end > f->offer.bytes ||
            (i > 0 && list[i].begin < list[i - 1].end)) {
            status = tnd_error_set(error, TANDEM_E_FORMAT, "cluster", i, n,
                                   "rank %d on %s wants a range that %s does not have", rank,
                                   tandem_communicator_host(f->communicator, rank), f->name);
        } else {
            tnd_spans_add(out, list[i].begin, list[i].end);
        }
    }
    free(list);
    return status;
}

static enum tandem_status send_pieces(struct tnd_ranks_file *f, int rank,
                                      const struct tnd_spans *spans, bool *io_goes_on,
                                      struct tandem_error *error)
{
    struct progress progress = {.all = tnd_spans_bytes(spans), .shown_s = seconds()};
    struct walk walk = {0, 0};
    while (progress.done < progress.all && *io_goes_on) {
        size_t n = 0;
        int64_t is_good = 0;
        *io_goes_on = fill_piece(f, spans, &walk, &n);
        const struct piece piece = {(int64_t)n, tnd_digest(f->piece, n)};
        TND_TRY(tandem_communicator_send(f->communicator, rank, &piece, sizeof(piece), error));
        if (n > 0) {
            TND_TRY(tandem_communicator_send(f->communicator, rank, f->piece, n, error));
            TND_TRY(tandem_communicator_receive(f->communicator, rank, &is_good, sizeof(is_good),
                                                error));
            *io_goes_on = is_good != 0;
        }
        progress.done += n;
        say_progress(f, &progress);
    }
    if (isatty(STDERR_FILENO) && tnd_say_level != TND_SAY_QUIET) {
        tnd_terminal_control("\r\033[K");
    }
    return TANDEM_OK;
}

/* Serves a rank, which first sends the number of ranges that it lacks, or -1: it has failed. */
static enum tandem_status serve(struct tnd_ranks_file *f, int rank, bool *io_goes_on,
                                struct tandem_error *error)
{
    const int64_t turn = *io_goes_on;
    int64_t n = 0;
    TND_TRY(tandem_communicator_send(f->communicator, rank, &turn, sizeof(turn), error));
    if (turn == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tandem_communicator_receive(f->communicator, rank, &n, sizeof(n), error));
    if (n <= 0) {
        *io_goes_on = n == 0;
        return TANDEM_OK;
    }
    struct tnd_spans spans = TND_SPANS_INIT;
    enum tandem_status status = receive_wish(f, rank, n, &spans, error);
    if (status == TANDEM_OK && spans.failed) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, "cluster", n, 0, "cluster: no memory");
    }
    if (status == TANDEM_OK) {
        const double part = mib(tnd_spans_bytes(&spans));
        tnd_say("%s: %.*f of %.1f MiB go to rank %d on %s, which has no such file\n", f->name,
                part < 0.1 ? 3 : 1, part, mib(f->offer.bytes), rank,
                tandem_communicator_host(f->communicator, rank));
        status = send_pieces(f, rank, &spans, io_goes_on, error);
    }
    tnd_spans_fini(&spans);
    return status;
}

/* ---- receiving: the others ---- */

static bool put_piece(struct tnd_ranks_file *f, const struct tnd_spans *spans, struct walk *io,
                      const struct piece *piece)
{
    size_t done = 0, run;
    uint64_t at;
    errno = 0;
    if (tnd_digest(f->piece, (size_t)piece->n) != piece->digest) {
        cannot(&f->mine, "came with other contents than rank 0 had read", f->path);
        return false;
    }
    while (done < (size_t)piece->n &&
           (run = next_run(spans, io, (size_t)piece->n - done, &at)) > 0) {
        if (!tnd_ranks_copy_put(f->copy, at, f->piece + done, run, f->mine.why)) {
            f->mine.having = CANNOT;
            return false;
        }
        done += run;
    }
    return true;
}

static enum tandem_status receive_pieces(struct tnd_ranks_file *f, const struct tnd_spans *spans,
                                         struct tandem_error *error)
{
    const uint64_t all = tnd_spans_bytes(spans);
    struct walk walk = {0, 0};
    uint64_t done = 0;
    for (int i = 1; done < all && f->mine.having == HAS; i++) {
        struct piece piece;
        TND_TRY(tandem_communicator_receive(f->communicator, 0, &piece, sizeof(piece), error));
        if (piece.n <= 0 || piece.n > PIECE || (uint64_t)piece.n > all - done) {
            f->mine.having = LACKS; /* rank 0 reports why */
            break;
        }
        TND_TRY(tandem_communicator_receive(f->communicator, 0, f->piece, (size_t)piece.n, error));
        done += (uint64_t)piece.n;
        bool is_good = put_piece(f, spans, &walk, &piece);
        if (is_good && (i % KEEP == 0 || done == all)) {
            is_good = tnd_ranks_copy_keep(f->copy, f->mine.why);
            note(&f->mine, is_good);
        }
        const int64_t answer = is_good;
        TND_TRY(tandem_communicator_send(f->communicator, 0, &answer, sizeof(answer), error));
    }
    if (f->mine.having != HAS) { /* keeps the bytes received; the first reason stays */
        char why[TND_RANKS_WHY];
        (void)tnd_ranks_copy_keep(f->copy, why);
    }
    return TANDEM_OK;
}

static enum tandem_status take(struct tnd_ranks_file *f, const struct tnd_spans *wanted,
                               struct tandem_error *error)
{
    int64_t turn = 0;
    struct tnd_spans missing = TND_SPANS_INIT;
    TND_TRY(tandem_communicator_receive(f->communicator, 0, &turn, sizeof(turn), error));
    if (turn == 0) {
        f->mine.having = LACKS;
        return TANDEM_OK;
    }
    tnd_ranks_copy_look(f->copy);
    tnd_spans_subtract(wanted, &f->copy->partial.present, &missing);
    if (missing.failed) {
        errno = ENOMEM;
        cannot(&f->mine, "cannot be looked for", f->path);
    } else if (missing.n > 0) {
        note(&f->mine, tnd_ranks_copy_begin(f->copy, &missing, f->mine.why));
    }
    const bool can = f->mine.having == HAS;
    const int64_t n = can ? (int64_t)missing.n : -1;
    enum tandem_status status = tandem_communicator_send(f->communicator, 0, &n, sizeof(n), error);
    if (status == TANDEM_OK && n > 0) {
        status = tandem_communicator_send(f->communicator, 0, missing.list,
                                          missing.n * sizeof(missing.list[0]), error);
    }
    if (status == TANDEM_OK && n > 0) {
        status = receive_pieces(f, &missing, error);
    }
    tnd_spans_fini(&missing);
    f->mine.kept = tnd_spans_bytes(&f->copy->partial.present);
    f->mine.disk = tnd_ranks_copy_disk(f->copy);
    return status;
}

/* ---- all of it ---- */

static enum tandem_status take_turns(struct tnd_ranks_file *f, const struct tnd_spans *wanted,
                                     struct tandem_error *error)
{
    bool goes_on = true;
    f->mine.having = HAS;
    for (int i = 1; i < f->count; i++) {
        if (f->rank == 0 && f->has_copy[i]) {
            TND_TRY(serve(f, i, &goes_on, error));
        } else if (f->rank == i && f->has_copy[i]) {
            TND_TRY(take(f, wanted, error));
        }
    }
    return agree(f, error);
}

static void say_copies(const struct tnd_ranks_file *f)
{
    for (int i = 1; i < f->count && f->rank == 0; i++) {
        if (f->has_copy[i]) {
            tnd_say("%s: the copy of rank %d on %s has %.1f of %.1f MiB, and %.1f on its disk\n",
                    f->name, i, tandem_communicator_host(f->communicator, i), mib(f->told[i].kept),
                    mib(f->offer.bytes), mib(f->told[i].disk));
        }
    }
}

enum tandem_status tnd_ranks_file_fetch(struct tnd_ranks_file *f, const struct tnd_spans *wanted,
                                        struct tandem_error *error)
{
    bool any = false;
    for (int i = 0; i < f->count; i++) {
        any = any || f->has_copy[i];
    }
    if (!any) {
        return TANDEM_OK;
    }
    const double limit_s = tandem_communicator_limit(f->communicator);
    tandem_communicator_set_limit(f->communicator, -limit_s); /* others may read a large file */
    const enum tandem_status status = take_turns(f, wanted, error);
    tandem_communicator_set_limit(f->communicator, limit_s);
    if (status == TANDEM_OK) {
        say_copies(f);
    }
    return status;
}

/* Checks whether the file exists. If it cannot be used, opening it later reports why. */
static void look(struct tnd_ranks_file *f)
{
    struct stat info;
    f->mine.having = HAS;
    if (stat(f->path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
        return;
    }
    if (f->rank == 0) {
        cannot(&f->mine, "cannot be opened", f->path);
    } else {
        f->mine.having = LACKS;
    }
}

static void find_copy(struct tnd_ranks_file *f, const char *cache)
{
    char who[160];
    snprintf(who, sizeof(who), "rank %d on %.120s", f->rank,
             tandem_communicator_host(f->communicator, f->rank));
    errno = ENOMEM;
    f->copy = calloc(1, sizeof(*f->copy));
    if (f->copy == NULL) {
        cannot(&f->mine, "has no copy", f->path);
        return;
    }
    f->copy->file = -1;
    f->copy->offer = f->offer;
    note(&f->mine, tnd_ranks_copy_find(f->copy, cache, f->path, who, f->mine.why));
}

static enum tandem_status share(struct tnd_ranks_file *f, const char *cache, bool needs_all,
                                struct tandem_error *error)
{
    bool any = false;
    look(f);
    TND_TRY(agree(f, error));
    for (int i = 0; i < f->count; i++) {
        f->has_copy[i] = f->told[i].having == LACKS;
        any = any || f->has_copy[i];
    }
    if (!any) {
        return TANDEM_OK;
    }
    f->mine.having = HAS;
    if (f->rank == 0) {
        make_offer(f);
    }
    TND_TRY(agree(f, error));
    TND_TRY(tandem_communicator_broadcast(f->communicator, &f->offer, sizeof(f->offer), error));
    if (f->has_copy[f->rank]) {
        find_copy(f, cache);
    }
    TND_TRY(agree(f, error));
    struct tnd_spans wanted = TND_SPANS_INIT;
    tnd_spans_add(&wanted, 0, needs_all || f->offer.head == 0 ? f->offer.bytes : f->offer.head);
    const enum tandem_status status =
        wanted.failed
            ? tnd_error_set(error, TANDEM_E_MEMORY, "cluster", 1, 0, "cluster: no memory for files")
            : take_turns(f, &wanted, error);
    tnd_spans_fini(&wanted);
    return status;
}

static enum tandem_status begin(struct tnd_ranks_file *f, const char *cache, bool needs_all,
                                struct tandem_error *error)
{
    const size_t n = (size_t)f->count;
    f->told = calloc(n, sizeof(f->told[0]));
    f->has_copy = calloc(n, sizeof(f->has_copy[0]));
    f->piece = f->count > 1 ? malloc(PIECE) : NULL;
    if (f->told == NULL || f->has_copy == NULL || (f->count > 1 && f->piece == NULL)) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cluster", PIECE, 0,
                             "cluster: no memory for files");
    }
    if (f->count < 2) {
        return TANDEM_OK;
    }
    const double limit_s = tandem_communicator_limit(f->communicator);
    tandem_communicator_set_limit(f->communicator, -limit_s); /* others may read a large file */
    const enum tandem_status status = share(f, cache, needs_all, error);
    tandem_communicator_set_limit(f->communicator, limit_s);
    return status;
}

enum tandem_status tnd_ranks_file_open(tandem_communicator *communicator, const char *path,
                                       const char *cache, bool needs_all,
                                       struct tnd_ranks_file **out_file, struct tandem_error *error)
{
    struct tnd_ranks_file *f = calloc(1, sizeof(*f));
    const char *slash = strrchr(path, '/');
    if (f == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "cluster", (int64_t)sizeof(*f), 0,
                             "cluster: no memory for files");
    }
    f->communicator = communicator;
    f->rank = tandem_communicator_rank(communicator);
    f->count = tandem_communicator_count(communicator);
    f->path = path;
    f->file = -1;
    snprintf(f->name, sizeof(f->name), "%.90s", slash != NULL ? slash + 1 : path);
    const enum tandem_status status = begin(f, cache, needs_all, error);
    if (status != TANDEM_OK) {
        tnd_ranks_file_close(f);
        return status;
    }
    *out_file = f;
    return TANDEM_OK;
}

const char *tnd_ranks_file_path(struct tnd_ranks_file *f)
{
    return f->copy != NULL ? tnd_ranks_copy_path(f->copy) : f->path;
}

bool tnd_ranks_file_is_copy(const struct tnd_ranks_file *f)
{
    return f->copy != NULL;
}

void tnd_ranks_file_close(struct tnd_ranks_file *f)
{
    if (f == NULL) {
        return;
    }
    if (f->copy != NULL) {
        tnd_ranks_copy_close(f->copy);
        free(f->copy);
    }
    if (f->file >= 0) {
        close(f->file);
    }
    free(f->told);
    free(f->has_copy);
    free(f->piece);
    free(f);
}
