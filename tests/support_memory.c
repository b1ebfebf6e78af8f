/* SPDX-License-Identifier: MIT
 * Buffers with guards, and the files that tests read and write. Start at support.h. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support.h"

/* ---- buffers with guards ---- */

enum { GUARD_BYTES = 64, GUARD_FILL = 0xC3, FRESH_FILL = 0xA5 };

/** One mapping: [header ... guard][buffer][gap][unreadable page]. */
struct guarded {
    struct guarded *next;
    unsigned char *map;
    size_t map_bytes;
    unsigned char *buffer;
    size_t bytes;
    size_t gap; /**< guard bytes between the end of the buffer and the unreadable page */
};

static struct guarded *all_guarded;

static struct guarded *find_guarded(const void *buffer)
{
    struct guarded *one = all_guarded;
    while (one != NULL && one->buffer != buffer) {
        one = one->next;
    }
    return one;
}

/** A test without memory cannot go on. */
static void out_of_memory(void)
{
    fprintf(stderr, "tests: out of memory\n");
    abort();
}

void *tnd_guarded_alloc(size_t bytes, size_t alignment)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t align = alignment == 0 ? 1 : alignment;
    size_t gap = (align - bytes % align) % align;
    size_t body = (GUARD_BYTES + bytes + gap + page - 1) / page * page;
    struct guarded *one = malloc(sizeof *one);
    void *map = mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (one == NULL || map == MAP_FAILED) {
        out_of_memory();
    }
    one->map = map;
    one->map_bytes = body + page;
    one->bytes = bytes;
    one->gap = gap;
    one->buffer = one->map + body - gap - bytes;
    memset(one->buffer - GUARD_BYTES, GUARD_FILL, GUARD_BYTES + bytes + gap);
    memset(one->buffer, FRESH_FILL, bytes);
    if (mprotect(one->map + body, page, PROT_NONE) != 0) {
        out_of_memory();
    }
    one->next = all_guarded;
    all_guarded = one;
    return one->buffer;
}

/** Index of the first byte that is not the fill, or `n`. */
static size_t first_changed(const unsigned char *bytes, size_t n)
{
    size_t i = 0;
    while (i < n && bytes[i] == GUARD_FILL) {
        i++;
    }
    return i;
}

bool tnd_guarded_intact(const void *buffer)
{
    const struct guarded *one = find_guarded(buffer);
    if (one == NULL) {
        printf("\n    not a guarded buffer: %p\n", buffer);
        return false;
    }
    size_t before = first_changed(one->buffer - GUARD_BYTES, GUARD_BYTES);
    size_t behind = first_changed(one->buffer + one->bytes, one->gap);
    if (before < GUARD_BYTES) {
        printf("\n    written %zu bytes before a buffer of %zu\n", GUARD_BYTES - before,
               one->bytes);
    }
    if (behind < one->gap) {
        printf("\n    written %zu bytes behind a buffer of %zu\n", behind, one->bytes);
    }
    return before == GUARD_BYTES && behind == one->gap;
}

void tnd_guarded_free(void *buffer)
{
    if (buffer == NULL) {
        return;
    }
    CU_ASSERT(tnd_guarded_intact(buffer));
    struct guarded **link = &all_guarded;
    while (*link != NULL && (*link)->buffer != buffer) {
        link = &(*link)->next;
    }
    struct guarded *one = *link;
    if (one != NULL) {
        *link = one->next;
        munmap(one->map, one->map_bytes);
        free(one);
    }
}

/* ---- files ---- */

/** The fourth call from now re-uses this path. */
static char *next_path(void)
{
    static char paths[4][1024];
    static unsigned turn;
    return paths[turn++ % 4];
}

/* The real data's folder of this kind of files, for example ".../llama". */
static void kind_folder(const char *name, char out[1024])
{
    const char *folder = getenv("TANDEM_TEST_DATA");
    snprintf(out, sizeof(char[1024]), "%s/%.*s", folder != NULL ? folder : "../shared/data",
             (int)strcspn(name, "/"), name);
}

bool tnd_test_stands_in(const char *name)
{
    char folder[1024];
    kind_folder(name, folder);
    return access(folder, R_OK) != 0;
}

const char *tnd_test_data(const char *name)
{
    char *path = next_path();
    if (tnd_test_stands_in(name)) {
        char beside[512];
        snprintf(beside, sizeof(beside), "stand-ins/%s", name);
        snprintf(path, sizeof(char[1024]), "%s", tnd_test_beside(beside));
    } else {
        kind_folder(name, path);
        strncat(path, name + strcspn(name, "/"), sizeof(char[1024]) - strlen(path) - 1);
    }
    if (access(path, R_OK) != 0) {
        tnd_skip("no test data: %s", name);
        return NULL;
    }
    return path;
}

static char temp_folder[512];

static void remove_temp_folder(void)
{
    DIR *folder = opendir(temp_folder);
    if (folder == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", temp_folder, entry->d_name);
        unlink(path);
    }
    closedir(folder);
    rmdir(temp_folder);
}

const char *tnd_test_temp(const char *name)
{
    if (temp_folder[0] == '\0') {
        const char *parent = getenv("TMPDIR");
        snprintf(temp_folder, sizeof temp_folder, "%s/tandem-test-XXXXXX",
                 parent != NULL ? parent : "/tmp");
        if (mkdtemp(temp_folder) == NULL) {
            perror(temp_folder);
            abort();
        }
        atexit(remove_temp_folder);
    }
    char *path = next_path();
    snprintf(path, sizeof(char[1024]), "%s/%s", temp_folder, name);
    return path;
}

void *tnd_test_read_file(const char *path, size_t *out_bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    struct stat info;
    char *data = NULL;
    if (fstat(fileno(file), &info) == 0 && (data = malloc((size_t)info.st_size + 1)) != NULL) {
        size_t n = fread(data, 1, (size_t)info.st_size, file);
        data[n] = '\0';
        if (out_bytes != NULL) {
            *out_bytes = n;
        }
    }
    fclose(file);
    return data;
}

bool tnd_test_write_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        return false;
    }
    bool written = fwrite(data, 1, bytes, file) == bytes;
    return fclose(file) == 0 && written;
}
