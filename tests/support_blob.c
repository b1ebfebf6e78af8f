/* SPDX-License-Identifier: MIT
 * Bytes for tests of parsers. */
#include "tests/support_blob.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/support.h"

/* Bytes that are allocated for `n`: a power of two, so that growing is quick. */
static size_t capacity_for(size_t n)
{
    size_t capacity = 64;
    while (capacity < n) {
        capacity *= 2;
    }
    return capacity;
}

void tnd_blob_add(struct tnd_blob *blob, const void *bytes, size_t n)
{
    if (blob->bytes == NULL || capacity_for(blob->n + n) != capacity_for(blob->n)) {
        unsigned char *larger = realloc(blob->bytes, capacity_for(blob->n + n));
        if (larger == NULL) {
            abort();
        }
        blob->bytes = larger;
    }
    if (n > 0) {
        memcpy(blob->bytes + blob->n, bytes, n);
    }
    blob->n += n;
}

void tnd_blob_number(struct tnd_blob *blob, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)(i < 8 ? value >> (8 * i) : 0);
        tnd_blob_add(blob, &byte, 1);
    }
}

void tnd_blob_string(struct tnd_blob *blob, const char *text)
{
    tnd_blob_add(blob, text, strlen(text));
}

void tnd_blob_pad(struct tnd_blob *blob, size_t alignment)
{
    while (blob->n % alignment != 0) {
        tnd_blob_number(blob, 0, 1);
    }
}

void tnd_blob_free(struct tnd_blob *blob)
{
    free(blob->bytes);
    *blob = (struct tnd_blob){NULL, 0};
}

/* In a buffer of just this size, so that a sanitizer sees each step too far. */
static void try_copy(const unsigned char *bytes, size_t n, size_t change, unsigned char value,
                     void (*read)(const void *bytes, size_t n))
{
    unsigned char *copy = malloc(n > 0 ? n : 1);
    if (copy == NULL) {
        abort();
    }
    if (n > 0) {
        memcpy(copy, bytes, n);
    }
    if (change < n) {
        copy[change] = value;
    }
    const size_t live = tnd_alloc_live_bytes();
    tnd_alloc_peak_begin();
    read(copy, n);
    if (tnd_alloc_peak_bytes() - live > n + ((size_t)16 << 20)) {
        CU_FAIL("more memory than the file and 16 MiB");
    }
    free(copy);
}

void tnd_blob_damage(const void *bytes, size_t n, void (*read)(const void *bytes, size_t n))
{
    const unsigned char *good = bytes;
    const unsigned char fixed[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (size_t i = 0; i < n; i++) {
        try_copy(good, i, n, 0, read);
    }
    for (size_t i = 0; i < n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            try_copy(good, n, i, good[i] ^ (unsigned char)(1 << bit), read);
        }
        for (size_t f = 0; f < sizeof(fixed); f++) {
            try_copy(good, n, i, fixed[f], read);
        }
        if (tnd_effort() > 1) {
            for (int value = 2; value < 256; value += 3) {
                try_copy(good, n, i, (unsigned char)value, read);
            }
        }
    }
}
