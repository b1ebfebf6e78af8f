/* SPDX-License-Identifier: MIT
 * Memory of the device. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fake_cuda/fake_state.h"

enum { PAGE = 4096, ALIGN = 256, GUARD = 0xfd, FRESH = 0xff };

struct block {
    struct block *next;
    char *reserved; /* a page, `pages` bytes, a page */
    size_t pages;
    char *view;    /* the pages once more */
    size_t offset; /* of the allocation in the pages */
    uint64_t bytes;
    struct tnd_fake_touch *touches; /* zero pages until a checked kernel comes */
    unsigned char *written;
    struct tnd_fake_order *orders;
};
struct pinned {
    struct pinned *next;
    char *at;
    uint64_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct block *blocks;
static struct pinned *all_pinned;
static uint64_t total = 256u << 20, used;
static int n_running; /* launches */

static uint64_t address_of(const struct block *block)
{
    return (uint64_t)(uintptr_t)(block->reserved + PAGE + block->offset);
}

void tnd_fake_set_memory(uint64_t bytes);
__attribute__((visibility("default"))) void tnd_fake_set_memory(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    total = bytes;
    pthread_mutex_unlock(&lock);
}

static bool map_pages(struct block *block)
{
    const int file = memfd_create("tandem-fake-gpu", MFD_CLOEXEC);
    const int both = PROT_READ | PROT_WRITE;
    bool good = file >= 0 && ftruncate(file, (off_t)block->pages) == 0;
    block->reserved = good ? mmap(NULL, block->pages + 2 * PAGE, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                           : MAP_FAILED;
    block->view = good ? mmap(NULL, block->pages, both, MAP_SHARED, file, 0) : (char *)MAP_FAILED;
    good = block->reserved != MAP_FAILED && block->view != MAP_FAILED &&
           mmap(block->reserved + PAGE, block->pages, n_running > 0 ? both : PROT_NONE,
                MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    if (file >= 0) {
        close(file);
    }
    return good;
}

static void unmap(struct block *block)
{
    if (block->reserved != NULL && block->reserved != MAP_FAILED) {
        munmap(block->reserved, block->pages + 2 * PAGE);
    }
    if (block->view != NULL && block->view != MAP_FAILED) {
        munmap(block->view, block->pages);
    }
    free(block->touches);
    free(block->written);
    free(block->orders);
    free(block);
}

int tnd_fake_allocate(uint64_t bytes, uint64_t *out_address)
{
    const uint64_t rounded = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    struct block *block = NULL;
    int result = CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes == 0 || bytes > UINT64_MAX / 4) {
        return bytes == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    if (used + rounded <= total && (block = calloc(1, sizeof(*block))) != NULL) {
        block->pages = (size_t)((rounded + PAGE - 1) / PAGE * PAGE);
        block->offset = block->pages - (size_t)rounded;
        block->bytes = bytes;
        block->touches = calloc((size_t)bytes, sizeof(*block->touches));
        block->written = calloc((size_t)bytes, 1);
        block->orders = calloc((size_t)bytes, sizeof(*block->orders));
        if (block->touches != NULL && block->written != NULL && block->orders != NULL &&
            map_pages(block)) {
            memset(block->view, GUARD, block->pages);
            memset(block->view + block->offset, FRESH, (size_t)bytes);
            block->next = blocks;
            blocks = block;
            used += rounded;
            *out_address = address_of(block);
            result = CUDA_SUCCESS;
        } else {
            unmap(block);
        }
    }
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS) {
        tnd_fake_live(TND_FAKE_MEMORY, 1);
    }
    return result;
}

/* Under the lock. */
static bool is_whole(const struct block *block)
{
    for (size_t i = 0; i < block->pages; i++) {
        const bool is_ours = i >= block->offset && i < block->offset + block->bytes;
        if (is_ours) {
            i = block->offset + (size_t)block->bytes - 1;
        } else if ((unsigned char)block->view[i] != GUARD) {
            return false;
        }
    }
    return true;
}

int tnd_fake_free(uint64_t address)
{
    int result = CUDA_ERROR_INVALID_VALUE;
    bool whole = true;
    pthread_mutex_lock(&lock);
    for (struct block **at = &blocks; *at != NULL; at = &(*at)->next) {
        struct block *block = *at;
        if (address_of(block) == address) {
            whole = is_whole(block);
            *at = block->next;
            used -= (block->bytes + ALIGN - 1) / ALIGN * ALIGN;
            unmap(block);
            result = CUDA_SUCCESS;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    if (!whole) {
        tnd_fake_wrong("bytes beside an allocation were overwritten", 0);
    }
    if (result == CUDA_SUCCESS) {
        tnd_fake_live(TND_FAKE_MEMORY, -1);
    } else {
        tnd_fake_wrong("memory is freed that was not allocated", 0);
    }
    return result;
}

char *tnd_fake_view(uint64_t address, uint64_t bytes, bool is_written)
{
    char *view = NULL;
    pthread_mutex_lock(&lock);
    for (const struct block *block = blocks; block != NULL && view == NULL; block = block->next) {
        const uint64_t offset = address - address_of(block);
        if (offset <= block->bytes && bytes <= block->bytes - offset) {
            view = block->view + block->offset + offset;
            if (is_written) {
                memset(block->written + offset, 1, (size_t)bytes);
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return view;
}

const char *tnd_fake_copy_touches(uint64_t address, uint64_t bytes, bool is_write)
{
    const struct tnd_fake_command *command = tnd_fake_command();
    const char *wrong = NULL;
    pthread_mutex_lock(&lock);
    for (const struct block *block = command->is_checked ? blocks : NULL; block != NULL;
         block = block->next) {
        const uint64_t offset = address - address_of(block);
        if (offset <= block->bytes && bytes <= block->bytes - offset) {
            wrong = tnd_fake_follow(block->orders + offset, (size_t)bytes, is_write, true, command);
        }
    }
    pthread_mutex_unlock(&lock);
    return wrong;
}

bool tnd_fake_range_of(const void *address, size_t bytes, struct tnd_fake_range *out)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct block *block = blocks; block != NULL && !found; block = block->next) {
        const uint64_t begin = address_of(block);
        const uint64_t offset = (uint64_t)(uintptr_t)address - begin;
        if (offset <= block->bytes && bytes <= block->bytes - offset) {
            const char *at = (const char *)(uintptr_t)begin;
            *out = (struct tnd_fake_range){at, at + block->bytes, block->touches, block->written,
                                           block->orders};
            found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool tnd_fake_is_device(const void *address)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct block *block = blocks; block != NULL && !found; block = block->next) {
        found = (const char *)address >= block->reserved &&
                (const char *)address < block->reserved + block->pages + 2 * PAGE;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* Under the lock. */
static void protect(int protection)
{
    for (const struct block *block = blocks; block != NULL; block = block->next) {
        mprotect(block->reserved + PAGE, block->pages, protection);
    }
}

void tnd_fake_enter(void)
{
    pthread_mutex_lock(&lock);
    if (n_running++ == 0) {
        protect(PROT_READ | PROT_WRITE);
    }
    pthread_mutex_unlock(&lock);
}

const char *tnd_fake_leave(void)
{
    const char *wrong = NULL;
    pthread_mutex_lock(&lock);
    if (--n_running == 0) {
        protect(PROT_NONE);
    }
    for (const struct block *block = blocks; block != NULL; block = block->next) {
        if (!is_whole(block)) {
            wrong = "a kernel wrote beside an allocation";
        }
    }
    pthread_mutex_unlock(&lock);
    return wrong;
}

void tnd_fake_memory_info(uint64_t *out_free, uint64_t *out_total)
{
    pthread_mutex_lock(&lock);
    *out_total = total;
    *out_free = total > used ? total - used : 0;
    pthread_mutex_unlock(&lock);
}

/* ---- pinned memory of the host ---- */

int tnd_fake_allocate_pinned(uint64_t bytes, void **out)
{
    struct pinned *pinned = calloc(1, sizeof(*pinned));
    void *at = NULL;
    if (bytes == 0 || pinned == NULL || bytes > SIZE_MAX / 2 ||
        posix_memalign(&at, PAGE, (size_t)bytes) != 0) {
        free(pinned);
        return bytes == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    *pinned = (struct pinned){all_pinned, at, bytes};
    all_pinned = pinned;
    pthread_mutex_unlock(&lock);
    memset(at, FRESH, (size_t)bytes);
    tnd_fake_live(TND_FAKE_PINNED, 1);
    *out = at;
    return CUDA_SUCCESS;
}

int tnd_fake_free_pinned(void *address)
{
    struct pinned *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct pinned **at = &all_pinned; *at != NULL && found == NULL;) {
        if ((*at)->at == address) {
            found = *at;
            *at = found->next;
        } else {
            at = &(*at)->next;
        }
    }
    pthread_mutex_unlock(&lock);
    if (found == NULL) {
        tnd_fake_wrong("pinned memory is freed that was not allocated", 0);
        return CUDA_ERROR_INVALID_VALUE;
    }
    free(found->at);
    free(found);
    tnd_fake_live(TND_FAKE_PINNED, -1);
    return CUDA_SUCCESS;
}

bool tnd_fake_is_pinned(const void *address)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct pinned *at = all_pinned; at != NULL && !found; at = at->next) {
        found = (const char *)address >= at->at && (const char *)address < at->at + at->bytes;
    }
    pthread_mutex_unlock(&lock);
    return found;
}
