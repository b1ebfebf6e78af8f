/* SPDX-License-Identifier: MIT
 * usage: kernel-pack FOLDER FILE.cl...
 * Writes FOLDER/gpu_kernels.h and FOLDER/gpu_kernels.c: all OpenCL sources as one compressed blob,
 * enums of sources and kernels, and a typed function for each kernel that binds its arguments. The
 * rules for the sources are in backends/gpu/gpu_launch.h. A file whose contents would not change is
 * not written, so that files that include it are not compiled again. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pack.h"

void pack_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (line > 0) {
        fprintf(stderr, "%s:%d: ", file, line);
    } else {
        fprintf(stderr, "%s: ", file);
    }
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void pack_add(struct pack_text *text, const char *bytes, size_t n)
{
    if (n >= (size_t)-1 / 4 - text->n) {
        pack_fail("kernel-pack", 0, "a text is too long");
    }
    if (text->n + n + 1 > text->capacity) {
        size_t capacity = (text->n + n + 1) * 2;
        char *grown = realloc(text->bytes, capacity);
        if (grown == NULL) {
            pack_fail("kernel-pack", 0, "no memory for %zu bytes", capacity);
        }
        text->bytes = grown;
        text->capacity = capacity;
    }
    memcpy(text->bytes + text->n, bytes, n);
    text->n += n;
    text->bytes[text->n] = '\0';
}

void pack_printf(struct pack_text *text, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(line)) {
        pack_fail("kernel-pack", 0, "a line of the result is too long: %.60s...", line);
    }
    pack_add(text, line, (size_t)n);
}

static bool is_unchanged(const char *path, const struct pack_text *text)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return false;
    }
    char *old = malloc(text->n + 1);
    bool same = old != NULL && fread(old, 1, text->n + 1, file) == text->n &&
                memcmp(old, text->bytes, text->n) == 0;
    free(old);
    fclose(file);
    return same;
}

static void write_file(const char *folder, const char *name, const struct pack_text *text)
{
    char path[4096];
    char temporary[4096 + 4];
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path)) {
        pack_fail(folder, 0, "the name of this folder is too long");
    }
    if (is_unchanged(path, text)) {
        return;
    }
    snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    FILE *file = fopen(temporary, "wb");
    bool written = file != NULL && fwrite(text->bytes, 1, text->n, file) == text->n;
    written = (file == NULL || fclose(file) == 0) && written;
    if (!written || rename(temporary, path) != 0) {
        pack_fail(path, 0, "cannot be written: %s", strerror(errno));
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: kernel-pack FOLDER FILE.cl...\n");
        return 2;
    }
    static struct pack pack;
    for (int i = 2; i < argc; i++) {
        pack_read_source(&pack, argv[i]);
    }
    struct pack_text header = {0};
    struct pack_text source = {0};
    pack_write_header(&pack, &header);
    pack_write_source(&pack, &source);
    write_file(argv[1], "gpu_kernels.h", &header);
    write_file(argv[1], "gpu_kernels.c", &source);
    free(header.bytes);
    free(source.bytes);
    for (int i = 0; i < pack.n_sources; i++) {
        free(pack.sources[i].text.bytes);
    }
    return 0;
}
