/* SPDX-License-Identifier: MIT
 * Bytes put together in tests, and damage done to them: every truncation, every changed byte. */
#ifndef TND_TESTS_SUPPORT_BLOB_H
#define TND_TESTS_SUPPORT_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tnd_blob {
    unsigned char *bytes; /* malloc'ed */
    size_t n;
};

void tnd_blob_add(struct tnd_blob *blob, const void *bytes, size_t n);
/** Little-endian number of so many bytes. */
void tnd_blob_number(struct tnd_blob *blob, uint64_t value, int bytes);
void tnd_blob_string(struct tnd_blob *blob, const char *text);
/** Zero bytes up to a multiple of `alignment`. */
void tnd_blob_pad(struct tnd_blob *blob, size_t alignment);
void tnd_blob_free(struct tnd_blob *blob);

/** Calls `read` with every truncation of `n` bytes and with every byte changed in several ways.
 *  Each try stands in a buffer of exactly its size. `read` does its own checks. */
void tnd_blob_damage(const void *bytes, size_t n, void (*read)(const void *bytes, size_t n));

#endif
