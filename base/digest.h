/* SPDX-License-Identifier: MIT
 * Digest of large amounts of bytes at the speed of memory, to verify that a file still holds what
 * was written. Digests are stored in files: suite_base_digest.c pins their values. Detects
 * accidental damage; no defence against deliberate collisions. */
#ifndef TND_DIGEST_H
#define TND_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/** Digest of `n` bytes at any alignment; the same on every machine. Two inputs of one length that
 * differ only within one aligned group of 8 bytes never have the same digest; others do with a
 * probability of 2^-64. */
uint64_t tnd_digest(const void *bytes, size_t n);
/** Digest of a list of numbers, such as digests of parts. */
uint64_t tnd_digest_add(uint64_t digest, uint64_t next);

#endif
