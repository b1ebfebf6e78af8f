/* SPDX-License-Identifier: MIT
 * usage: replay_TARGET FOLDER...
 * Runs a fuzz target over the files of folders, without libFuzzer: for the coverage of seeds and
 * corpus (make cover), and where there is no Clang. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* The mutators of the targets ask for it; nothing is mutated here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data;
    return size < max_size ? size : max_size;
}

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        return 0; /* not there, or a folder */
    }
    const long n = ftell(file);
    uint8_t *bytes = n < 0 ? NULL : malloc((size_t)n + 1);
    rewind(file);
    const int is_read = bytes != NULL && fread(bytes, 1, (size_t)n, file) == (size_t)n;
    (void)fclose(file);
    if (is_read) {
        (void)LLVMFuzzerTestOneInput(bytes, (size_t)n);
    }
    free(bytes);
    return is_read;
}

int main(int argc, char **argv)
{
    int n = 0;
    if (LLVMFuzzerInitialize != NULL) {
        (void)LLVMFuzzerInitialize(&argc, &argv);
    }
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        const struct dirent *entry;
        while (folder != NULL && (entry = readdir(folder)) != NULL) {
            char path[4096];
            snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
            n += entry->d_name[0] != '.' && replay_file(path);
        }
        if (folder != NULL) {
            (void)closedir(folder);
        }
    }
    printf("%s: %d files\n", argv[0], n);
    return 0;
}
