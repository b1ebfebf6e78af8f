/* SPDX-License-Identifier: MIT
 * Digest of large amounts of bytes at the speed of memory: for files that must hold what was
 * written into them. Files keep these numbers: suite_base_digest.c pins them. Finds accidents, and
 * is no defence against somebody who wants two contents to look alike. */
#ifndef TND_DIGEST_H
#define TND_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/** Digest of `n` bytes, at any address; the same on every machine. Two contents of one length that
 *  differ within 8 bytes at a multiple of 8 never have the same; others with a probability of
 *  2^-64. */
uint64_t tnd_digest(const void *bytes, size_t n);
/** Digest of a list of numbers, such as digests of parts. */
uint64_t tnd_digest_add(uint64_t digest, uint64_t next);

#endif
