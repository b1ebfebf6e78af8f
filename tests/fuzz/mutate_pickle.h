/* SPDX-License-Identifier: MIT
 * Changes of pickles, bare or in a ZIP archive of PyTorch: arguments at their borders, operations
 * dropped, doubled, exchanged and put in. In an archive the length stays: what is dropped is filled
 * up behind the end. */
#ifndef TND_TESTS_FUZZ_MUTATE_PICKLE_H
#define TND_TESTS_FUZZ_MUTATE_PICKLE_H

#include "tests/fuzz/mutate.h"

#define PICKLE_MOST_OPS 4096

/* Bytes of the operation at `at`, or 0. (pickletools of CPython.) */
static inline size_t pickle_op_bytes(const struct mutation *m, size_t at, size_t end)
{
    const uint8_t op = m->data[at];
    const uint8_t *line;
    size_t lines = 0;
    switch (op) {
    case 0x80:
    case 'K':
    case 'q':
    case 'h':
    case 0x82:
        return 2;
    case 'M':
    case 0x83:
        return 3;
    case 'J':
    case 'j':
    case 'r':
    case 0x84:
        return 5;
    case 'G':
    case 0x95:
        return 9;
    case 0x8a:
    case 0x8c:
    case 'U':
    case 'C':
        return at + 1 < end ? 2 + (size_t)m->data[at + 1] : 0;
    case 'X':
    case 'T':
    case 'B':
    case 0x8b:
        return 5 + (size_t)get_number(m, at + 1, 4);
    case 0x8d:
    case 0x8e:
        return 9 + (size_t)(get_number(m, at + 1, 8) & 0xffffff);
    case 'c':
    case 'i':
        lines = 2;
        break;
    case 'I':
    case 'L':
    case 'F':
    case 'S':
    case 'V':
    case 'P':
    case 'g':
    case 'p':
        lines = 1;
        break;
    default:
        return 1;
    }
    size_t n = 1;
    for (; lines > 0; lines--) {
        line = at + n < end ? memchr(m->data + at + n, '\n', end - at - n) : NULL;
        if (line == NULL) {
            return 0;
        }
        n = (size_t)(line - m->data) + 1 - at;
    }
    return n;
}

/* The pickle within the data: all of it, or the entry data.pkl of an archive. */
static inline bool pickle_find(const struct mutation *m, size_t *begin, size_t *end)
{
    *begin = 0;
    *end = m->n;
    for (size_t at = 0; at + 30 <= m->n && memcmp(m->data + at, "PK\3\4", 4) == 0;) {
        const size_t n_name = (size_t)get_number(m, at + 26, 2);
        const size_t body = at + 30 + n_name + (size_t)get_number(m, at + 28, 2);
        const uint64_t n = get_number(m, at + 18, 4);
        if (body > m->n || n > m->n - body) {
            return false;
        }
        if (n_name >= 8 && memcmp(m->data + at + 30 + n_name - 8, "data.pkl", 8) == 0) {
            *begin = body;
            *end = body + (size_t)n;
            return true;
        }
        at = body + (size_t)n;
    }
    return m->n > 0 && m->data[0] == 0x80;
}

/* Splices within the pickle that ends at `end`; in an archive the bytes behind keep their place. */
static inline void pickle_splice(struct mutation *m, size_t end, size_t at, size_t remove,
                                 const void *bytes, size_t n)
{
    static const uint8_t zeros[4096];
    const bool is_fixed = m->data[0] == 'P';
    if (!is_fixed) {
        (void)splice(m, at, remove, bytes, n);
    } else if (n <= remove && remove - n <= sizeof(zeros)) {
        (void)splice(m, end, 0, zeros, remove - n);
        (void)splice(m, at, remove, bytes, n);
    } else if (n <= end - at) { /* over what lies before the end */
        (void)splice(m, end - (n - remove), n - remove, "", 0);
        (void)splice(m, at, remove, bytes, n);
    }
}

static inline void pickle_change_argument(struct mutation *m, size_t end, size_t at, size_t n)
{
    static const char *const globals[] = {"ctorch._utils\n_rebuild_tensor_v2\n",
                                          "ctorch._utils\n_rebuild_parameter\n",
                                          "ctorch\nFloatStorage\n",
                                          "ctorch\nHalfStorage\n",
                                          "ctorch\nBFloat16Storage\n",
                                          "ctorch\nLongStorage\n",
                                          "ctorch\nBoolStorage\n",
                                          "ctorch\nSize\n",
                                          "ccollections\nOrderedDict\n",
                                          "cos\nsystem\n"};
    const uint8_t op = m->data[at];
    if (op == 'c') {
        const char *text = globals[pick(m, sizeof(globals) / sizeof(globals[0]))];
        pickle_splice(m, end, at, n, text, strlen(text));
    } else if (op == 'X' || op == 'U' || op == 0x8c) {
        mutate_bytes(m, at + (op == 'X' ? 5 : 2), n - (op == 'X' ? 5 : 2));
    } else if (n > 1) {
        const size_t skipped = op == 0x8a ? 2 : 1;
        set_number(m, at + skipped, n - skipped < 8 ? n - skipped : 8,
                   odd_number(m, get_number(m, at + skipped, n - skipped)));
    } else {
        static const char plain[] = "()[]}{tuseaRQb0123.N\x85\x86\x87\x88\x89\x90\x91\x93\x94";
        m->data[at] = (uint8_t)plain[pick(m, sizeof(plain) - 1)];
    }
}

static inline void mutate_pickle(struct mutation *m)
{
    static size_t places[PICKLE_MOST_OPS + 1];
    size_t n_ops = 0;
    size_t begin;
    size_t end;
    if (!pickle_find(m, &begin, &end) || pick(m, 6) == 0) {
        m->n = LLVMFuzzerMutate(m->data, m->n, m->max);
        return;
    }
    size_t at = begin;
    for (size_t n = 1; at < end && n_ops < PICKLE_MOST_OPS; at += n) {
        n = pickle_op_bytes(m, at, end);
        if (n == 0 || n > end - at) {
            break;
        }
        places[n_ops++] = at;
    }
    places[n_ops] = at;
    if (n_ops == 0) {
        return;
    }
    const size_t op = pick(m, n_ops);
    const size_t n = places[op + 1] - places[op];
    uint8_t copy[256];
    switch (pick(m, 5)) {
    case 0:
        pickle_splice(m, end, places[op], n, "", 0);
        break;
    case 1:
        if (n <= sizeof(copy)) {
            memcpy(copy, m->data + places[op], n);
            pickle_splice(m, end, places[pick(m, n_ops)], 0, copy, n);
        }
        break;
    default:
        pickle_change_argument(m, end, places[op], n);
        break;
    }
}

#endif
