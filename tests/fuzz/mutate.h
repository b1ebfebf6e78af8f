/* SPDX-License-Identifier: MIT
 * What the structure-aware mutators share: random choices from libFuzzer's seed, numbers that break
 * parsers, and edits that keep the rest of a file in place. */
#ifndef TND_TESTS_FUZZ_MUTATE_H
#define TND_TESTS_FUZZ_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* libFuzzer's. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* The bytes being mutated, and the random state. */
struct mutation {
    uint8_t *data;
    size_t n;
    size_t max;
    uint64_t random;
};

static inline struct mutation mutation_of(uint8_t *data, size_t n, size_t max, unsigned seed)
{
    return (struct mutation){data, n, max, seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du};
}

/* Below `n`; xorshift. */
static inline uint64_t pick(struct mutation *m, uint64_t n)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return n == 0 ? 0 : m->random % n;
}

/* Numbers have 8 bytes at most; of a longer stretch the first 8 count. */
static inline uint64_t get_number(const struct mutation *m, size_t at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && i < 8 && at + i < m->n; i++) {
        value |= (uint64_t)m->data[at + i] << (8 * i);
    }
    return value;
}

static inline void set_number(struct mutation *m, size_t at, size_t bytes, uint64_t value)
{
    for (size_t i = 0; i < bytes && i < 8 && at + i < m->n; i++) {
        m->data[at + i] = (uint8_t)(value >> (8 * i));
    }
}

/* A number at a border of something, or near the old one. */
static inline uint64_t odd_number(struct mutation *m, uint64_t old)
{
    const unsigned bit = (unsigned)pick(m, 64);
    switch (pick(m, 10)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX - pick(m, 3);
    case 2:
        return (uint64_t)1 << bit;
    case 3:
        return ((uint64_t)1 << bit) - 1;
    case 4:
        return (uint64_t)0 - ((uint64_t)1 << bit);
    case 5:
        return old + 1 + pick(m, 4);
    case 6:
        return old - 1 - pick(m, 4);
    case 7:
        return old * (2 + pick(m, 7));
    case 8:
        return old / (2 + pick(m, 7));
    default:
        return pick(m, 64);
    }
}

/* Replaces `remove` bytes at `at` by `n` others; false when that does not fit. */
static inline bool splice(struct mutation *m, size_t at, size_t remove, const void *bytes, size_t n)
{
    if (at > m->n || remove > m->n - at || m->n - remove > m->max || n > m->max - (m->n - remove)) {
        return false;
    }
    memmove(m->data + at + n, m->data + at + remove, m->n - at - remove);
    memcpy(m->data + at, bytes, n);
    m->n += n;
    m->n -= remove;
    return true;
}

/* Copies a stretch of at most 4096 bytes to `to`. */
static inline bool copy_stretch(struct mutation *m, size_t from, size_t n, size_t to)
{
    uint8_t copy[4096];
    if (n > sizeof(copy) || from > m->n || n > m->n - from) {
        return false;
    }
    memcpy(copy, m->data + from, n);
    return splice(m, to, 0, copy, n);
}

/* libFuzzer's own changes within a stretch, whose length stays. */
static inline void mutate_bytes(struct mutation *m, size_t at, size_t n)
{
    if (n > 0 && at < m->n && n <= m->n - at) {
        (void)LLVMFuzzerMutate(m->data + at, n, n);
    }
}

/* LLVMFuzzerCustomMutator of a target: one change or some by `change`, at times libFuzzer's own. */
static inline size_t mutate_with(uint8_t *data, size_t n, size_t max, unsigned seed,
                                 void (*change)(struct mutation *m))
{
    struct mutation m = mutation_of(data, n, max, seed);
    if (n == 0 || pick(&m, 6) == 0) {
        return LLVMFuzzerMutate(data, n, max);
    }
    do {
        change(&m);
    } while (m.n > 0 && pick(&m, 3) == 0);
    return m.n > 0 ? m.n : LLVMFuzzerMutate(data, 0, max);
}

#endif
