/* SPDX-License-Identifier: MIT
 * Old files of the program cache. Other drivers, other versions of the library and other variants
 * leave files behind that nobody asks for again. */
#include "backends/gpu/gpu_trim.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/gpu/gpu_program.h"
#include "base/file_stream.h"

/* "<source>-<16 digits>.bin", as tnd_gpu_build_path names them: the folder is the user's, other
 * files in it are not ours to remove. */
static bool is_ours(const char *name)
{
    enum { DIGITS = 16 };
    const char *dash = strrchr(name, '-');
    if (tnd_file_is_temporary(name)) { /* left by a process that was killed, or soon renamed */
        return true;
    }
    if (dash == NULL || strspn(dash + 1, "0123456789abcdef") != DIGITS ||
        strcmp(dash + 1 + DIGITS, ".bin") != 0) {
        return false;
    }
    size_t n = (size_t)(dash - name);
    if (strlen(TND_GPU_GENERATED) == n && memcmp(TND_GPU_GENERATED, name, n) == 0) {
        return true;
    }
    for (int i = 0; i < TND_GPU_SOURCE_COUNT; i++) {
        if (strlen(tnd_gpu_sources[i].name) == n && memcmp(tnd_gpu_sources[i].name, name, n) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Bytes of all files of ours, and the name of the oldest one ("": none). */
static uint64_t look(DIR *folder, char *out_oldest, size_t bytes)
{
    struct timespec oldest = {0};
    uint64_t total = 0;
    struct stat status;
    out_oldest[0] = '\0';
    rewinddir(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (!is_ours(entry->d_name) ||
            fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode)) {
            continue;
        }
        total += (uint64_t)status.st_size;
        if (out_oldest[0] == '\0' || is_older(&status.st_mtim, &oldest)) {
            oldest = status.st_mtim;
            snprintf(out_oldest, bytes, "%s", entry->d_name);
        }
    }
    return total;
}

void tnd_gpu_trim(const char *path, uint64_t most_bytes)
{
    char oldest[256];
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    while (look(folder, oldest, sizeof(oldest)) > most_bytes &&
           unlinkat(dirfd(folder), oldest, 0) == 0) {
    }
    closedir(folder);
}
