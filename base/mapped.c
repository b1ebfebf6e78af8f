/* SPDX-License-Identifier: MIT
 * The list of mappings and the handler of SIGBUS. The handler may interrupt any code, so it only
 * reads the list through atomics (slots are never freed) and calls nothing but sigaction, raise and
 * mmap, which are plain system calls. */
#include "base/tnd_mapped.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/tnd_assert.h"

enum { MOST = 1024, PATH_BYTES = 512 };

/* A mapped file, or a free slot. `begin` is written last when the slot is taken and first when it
 * is released, so a reader that finds it the same twice has the matching `end`. */
static struct mapping {
    _Atomic uintptr_t begin; /* 0: free */
    _Atomic uintptr_t end;
    _Atomic uintptr_t damage; /* from here to `end` zeros replaced the contents; `end`: no damage */
    dev_t device;
    ino_t file;
    int64_t changed_ns, facts_changed_ns;
    const struct tnd_spans *present; /* NULL: the whole file */
    char path[PATH_BYTES];           /* truncated */
} mappings[MOST];

static struct tnd_fork_lock lock = TND_FORK_LOCK_INIT; /* guards adding and the handler's change */
static atomic_int n_used;                              /* slots from here on were never used */
static atomic_uint n_faults;                           /* faults in mapped files since the start */
static atomic_int n_partial;                           /* incomplete copies (`present` is set) */
static char last_damaged[PATH_BYTES]; /* path of the last damaged file; under `lock` */
static atomic_bool is_guarded;        /* our handler is installed */
static struct sigaction before;       /* handler before ours; written before ours is installed */
static uintptr_t page_bytes;          /* written at the same time */

int64_t tnd_mapped_changed_ns(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* ---- the list ---- */

static struct mapping *find(uintptr_t at)
{
    int n = atomic_load_explicit(&n_used, memory_order_acquire);
    for (int i = 0; i < n; i++) {
        uintptr_t begin = atomic_load(&mappings[i].begin);
        uintptr_t end = atomic_load(&mappings[i].end);
        if (begin != 0 && at >= begin && at < end && atomic_load(&mappings[i].begin) == begin) {
            return &mappings[i];
        }
    }
    return NULL;
}

void tnd_mapped_add(const void *data, size_t bytes, const char *path, const struct stat *info)
{
    tnd_fork_lock_take(&lock);
    int i = 0;
    while (i < MOST && atomic_load_explicit(&mappings[i].begin, memory_order_relaxed) != 0) {
        i++;
    }
    if (i < MOST) {
        struct mapping *mapping = &mappings[i];
        atomic_store(&mapping->end, (uintptr_t)data + bytes);
        atomic_store(&mapping->damage, (uintptr_t)data + bytes);
        mapping->device = info->st_dev;
        mapping->file = info->st_ino;
        mapping->changed_ns = tnd_mapped_changed_ns(info);
        mapping->facts_changed_ns =
            (int64_t)info->st_ctim.tv_sec * 1000000000 + info->st_ctim.tv_nsec;
        mapping->present = NULL;
        snprintf(mapping->path, sizeof(mapping->path), "%s", path);
        atomic_store(&mapping->begin, (uintptr_t)data);
        if (i >= atomic_load_explicit(&n_used, memory_order_relaxed)) {
            atomic_store_explicit(&n_used, i + 1, memory_order_release);
        }
    }
    tnd_fork_lock_give(&lock);
}

static bool is_damaged(const struct mapping *mapping)
{
    return atomic_load(&mapping->damage) < atomic_load(&mapping->end);
}

void tnd_mapped_leave(const void *data)
{
    tnd_fork_lock_take(&lock);
    struct mapping *mapping = find((uintptr_t)data);
    if (mapping != NULL) {
        if (is_damaged(mapping)) {
            snprintf(last_damaged, sizeof(last_damaged), "%s", mapping->path);
        }
        atomic_fetch_sub(&n_partial, mapping->present != NULL);
        atomic_store(&mapping->begin, 0);
    }
    tnd_fork_lock_give(&lock);
}

bool tnd_mapped_set_present(const void *data, const struct tnd_spans *present)
{
    tnd_fork_lock_take(&lock);
    struct mapping *mapping = find((uintptr_t)data);
    if (mapping != NULL) {
        atomic_fetch_add(&n_partial, (present != NULL) - (mapping->present != NULL));
        mapping->present = present;
    }
    tnd_fork_lock_give(&lock);
    return mapping != NULL;
}

bool tnd_mapped_find(const void *data, size_t bytes, struct tnd_mapped_file *out)
{
    const struct mapping *mapping = find((uintptr_t)data);
    if (mapping == NULL || bytes > atomic_load(&mapping->end) - (uintptr_t)data ||
        is_damaged(mapping)) {
        return false;
    }
    const char *slash = strrchr(mapping->path, '/');
    out->data = (const uint8_t *)atomic_load(&mapping->begin);
    out->bytes = atomic_load(&mapping->end) - (uintptr_t)out->data;
    out->device = mapping->device;
    out->file = mapping->file;
    out->changed_ns = mapping->changed_ns;
    out->facts_changed_ns = mapping->facts_changed_ns;
    out->path = strlen(mapping->path) < sizeof(mapping->path) - 1 ? mapping->path : "";
    snprintf(out->name, sizeof(out->name), "%s", slash != NULL ? slash + 1 : mapping->path);
    return true;
}

/* ---- the handler ---- */

/* Does what would happen without our handler. After the default action is restored, the instruction
 * faults again, or the signal that somebody sent is delivered. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    bool is_sent = info->si_code <= 0; /* sent by kill or similar, not by a fault */
    if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else if (before.sa_handler == SIG_DFL || !is_sent) { /* a fault cannot be ignored */
        struct sigaction plain = {.sa_handler = SIG_DFL};
        sigaction(SIGBUS, &plain, NULL);
        if (is_sent) {
            raise(SIGBUS);
        }
    }
}

static void handle(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    uintptr_t at = (uintptr_t)info->si_addr;
    struct mapping *mapping = info->si_code > 0 ? find(at) : NULL;
    if (mapping != NULL) {
        uintptr_t page = at - at % page_bytes;
        uintptr_t damage = atomic_load(&mapping->damage);
        /* Recorded before the zeros are mapped: a reader of zeros that checks afterwards finds the
         * record. */
        while (page < damage && !atomic_compare_exchange_weak(&mapping->damage, &damage, page)) {
        }
        atomic_fetch_add(&n_faults, 1);
        if (mmap((void *)page, atomic_load(&mapping->end) - page, PROT_READ,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED) {
            errno = kept;
            return;
        }
    }
    pass_on(number, info, context);
    errno = kept;
}

enum tandem_status tandem_guard_mapped_files(struct tandem_error *error)
{
    struct sigaction found;
    struct sigaction ours = {.sa_sigaction = handle,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    long page = sysconf(_SC_PAGESIZE);
    sigemptyset(&ours.sa_mask);
    tnd_fork_lock_take(&lock);
    int failed = sigaction(SIGBUS, NULL, &found);
    bool is_there = (found.sa_flags & SA_SIGINFO) != 0 && found.sa_sigaction == handle;
    if (failed == 0 && !is_there) {
        before = found;
        page_bytes = page > 0 ? (uintptr_t)page : 4096;
        failed = sigaction(SIGBUS, &ours, NULL);
    }
    int reason = errno;
    atomic_store(&is_guarded, failed == 0);
    tnd_fork_lock_give(&lock);
    if (failed != 0) {
        return tnd_error_set(error, TANDEM_E_FILE, "SIGBUS", reason, 0,
                             "the handler that guards mapped files cannot be installed: error %d",
                             reason);
    }
    return TANDEM_OK;
}

/* ---- faults so far ---- */

static enum tandem_status tell(const char *path, const char *what, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FILE, path, 0, 0,
                         "%.160s: %s; TANDEM_MAP=copy reads model files in place of mapping them",
                         path, what);
}

static const char is_gone[] = "a part of the file was gone when it was read: it was cut short or "
                              "written over since it was opened";

bool tnd_mapped_has_faults(void)
{
    return atomic_load(&n_faults) != 0 || atomic_load(&n_partial) != 0;
}

static enum tandem_status check_present(const struct mapping *mapping, const void *data,
                                        size_t bytes, struct tandem_error *error)
{
    const uint64_t at = (uintptr_t)data - atomic_load(&mapping->begin);
    if (mapping->present == NULL || tnd_spans_contain(mapping->present, at, at + bytes)) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_FILE, mapping->path, (int64_t)at, (int64_t)bytes,
                         "%.120s: not all of the %zu bytes from %llu on are in the part that this "
                         "rank keeps",
                         mapping->path, bytes, (unsigned long long)at);
}

enum tandem_status tandem_mapped_check(const void *data, size_t bytes, struct tandem_error *error)
{
    const struct mapping *mapping = find((uintptr_t)data);
    if (mapping == NULL) {
        return TANDEM_OK;
    }
    const uintptr_t damage = atomic_load(&mapping->damage);
    return (uintptr_t)data <= damage && bytes <= damage - (uintptr_t)data
               ? check_present(mapping, data, bytes, error)
               : tell(mapping->path, is_gone, error);
}

enum tandem_status tnd_mapped_check_file(const void *data, struct tandem_error *error)
{
    struct stat now;
    const struct mapping *mapping = find((uintptr_t)data);
    if (mapping == NULL) {
        return TANDEM_OK;
    }
    if (atomic_load(&is_guarded)) {
        (void)*((const volatile char *)atomic_load(&mapping->end) - 1);
    }
    if (is_damaged(mapping)) {
        return tell(mapping->path, is_gone, error);
    }
    if (mapping->present == NULL && stat(mapping->path, &now) == 0 &&
        (now.st_dev != mapping->device || now.st_ino != mapping->file ||
         tnd_mapped_changed_ns(&now) != mapping->changed_ns)) {
        return tell(mapping->path, "the file was changed or replaced while it was read", error);
    }
    return TANDEM_OK;
}

enum tandem_status tandem_mapped_files_status(struct tandem_error *error)
{
    char path[PATH_BYTES];
    if (atomic_load(&n_faults) == 0) {
        return TANDEM_OK;
    }
    tnd_fork_lock_take(&lock);
    for (int i = 0; i < atomic_load(&n_used); i++) {
        if (atomic_load(&mappings[i].begin) != 0 && is_damaged(&mappings[i])) {
            snprintf(last_damaged, sizeof(last_damaged), "%s", mappings[i].path);
        }
    }
    snprintf(path, sizeof(path), "%s", last_damaged);
    tnd_fork_lock_give(&lock);
    return tell(path, is_gone, error);
}
