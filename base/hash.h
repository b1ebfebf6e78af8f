/* SPDX-License-Identifier: MIT
 * 64-bit hashes of bytes, for tables in memory and fingerprints. The same on every machine; not for
 * secrets. FNV-1a (Fowler, Noll, Vo) with a final mix. */
#ifndef TND_HASH_H
#define TND_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Hash of `n` bytes; `seed` is 0 or the hash of the preceding bytes. */
static inline uint64_t tnd_hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *at = bytes;
    uint64_t hash = seed ^ 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ at[i]) * 0x100000001b3u;
    }
    /* FNV leaves the low bits weak, and tables index by them. */
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

/** Hash of `n` bytes, a multiple of 8, one word at a time: for frequent lookups in memory. Depends
 * on the byte order. */
static inline uint64_t tnd_hash_words(const void *words, size_t n)
{
    const unsigned char *at = words;
    uint64_t hash = 0;
    for (size_t i = 0; i + sizeof(hash) <= n; i += sizeof(hash)) {
        uint64_t word;
        memcpy(&word, at + i, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */
        hash ^= hash >> 32;
    }
    return hash;
}

/** Hash of a string, its terminating zero byte included. */
static inline uint64_t tnd_hash_string(const char *string, uint64_t seed)
{
    size_t n = 0;
    while (string[n] != '\0') {
        n++;
    }
    return tnd_hash_bytes(string, n + 1, seed);
}

#endif
