/* SPDX-License-Identifier: MIT
 * Changes of protocol buffers with fields in fields (sentencepiece's tokenizer.model): values at
 * their borders, fields dropped, doubled and exchanged. Lengths of the outer fields stay true. */
#ifndef TND_TESTS_FUZZ_MUTATE_PROTOBUF_H
#define TND_TESTS_FUZZ_MUTATE_PROTOBUF_H

#include "tests/fuzz/mutate.h"

#define PROTOBUF_MOST_FIELDS 4096

struct protobuf_field {
    size_t at;   /* of the tag */
    size_t body; /* of the value; behind the length of a text */
    size_t end;
    unsigned wire;
};

static inline size_t protobuf_varint(const struct mutation *m, size_t at, size_t end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
        const uint8_t byte = m->data[at++];
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            return at;
        }
    }
    return 0;
}

static inline size_t protobuf_put_varint(uint64_t value, uint8_t out[10])
{
    size_t n = 0;
    do {
        out[n++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value != 0);
    return n;
}

/* The fields from `at` to `end`. */
static inline size_t protobuf_read(const struct mutation *m, size_t at, size_t end,
                                   struct protobuf_field *fields)
{
    size_t n = 0;
    while (at < end && n < PROTOBUF_MOST_FIELDS) {
        struct protobuf_field field = {.at = at};
        uint64_t tag;
        uint64_t value = 0;
        at = protobuf_varint(m, at, end, &tag);
        if (at == 0) {
            break;
        }
        field.wire = (unsigned)(tag & 7);
        field.body = at;
        if (field.wire == 0) {
            at = protobuf_varint(m, at, end, &value);
        } else if (field.wire == 2) {
            field.body = at = protobuf_varint(m, at, end, &value);
            at = at != 0 && value <= end - at ? at + (size_t)value : 0;
        } else {
            at = field.wire == 1 || field.wire == 5 ? at + (field.wire == 1 ? 8 : 4) : 0;
        }
        if (at == 0 || at > end) {
            break;
        }
        field.end = at;
        fields[n++] = field;
    }
    return n;
}

static inline void protobuf_change_value(struct mutation *m, const struct protobuf_field *field)
{
    static const char *const texts[] = {"<unk>",    "<s>",          "</s>", "<0x00>", "<0xFF>",
                                        "<0x0A>",   "\xe2\x96\x81", "a",    "ab",     "\xff",
                                        "nmt_nfkc", "identity",     "",     "<0x100>"};
    static const uint32_t floats[] = {0,           0x80000000u, 0x7f800000u, 0xff800000u,
                                      0x7fc00000u, 0x7f7fffffu, 1,           0xc1200000u};
    uint8_t bytes[10];
    uint64_t old = 0;
    const char *text = texts[pick(m, sizeof(texts) / sizeof(texts[0]))];
    switch (field->wire) {
    case 0:
        (void)protobuf_varint(m, field->body, field->end, &old);
        (void)splice(m, field->body, field->end - field->body, bytes,
                     protobuf_put_varint(odd_number(m, old), bytes));
        break;
    case 2:
        (void)splice(m, field->body, field->end - field->body, text, strlen(text));
        (void)splice(m, field->body - 1, 1, bytes, protobuf_put_varint(strlen(text), bytes));
        break;
    default:
        set_number(m, field->body, 4, floats[pick(m, 8)]);
        break;
    }
}

static inline void protobuf_change_field(struct mutation *m, const struct protobuf_field *fields,
                                         size_t n)
{
    const struct protobuf_field *field = &fields[pick(m, n)];
    switch (pick(m, 6)) {
    case 0:
        (void)splice(m, field->at, field->end - field->at, "", 0);
        break;
    case 1:
        (void)copy_stretch(m, field->at, field->end - field->at, fields[pick(m, n)].at);
        break;
    case 2: /* another field, or another kind of value */
        m->data[field->at] = (uint8_t)(m->data[field->at] + 8 * pick(m, 8) + pick(m, 2));
        break;
    default:
        protobuf_change_value(m, field);
        break;
    }
}

static inline void mutate_protobuf(struct mutation *m)
{
    static struct protobuf_field outer[PROTOBUF_MOST_FIELDS];
    static struct protobuf_field inner[PROTOBUF_MOST_FIELDS];
    const size_t n_outer = protobuf_read(m, 0, m->n, outer);
    if (n_outer == 0 || pick(m, 8) == 0) {
        m->n = LLVMFuzzerMutate(m->data, m->n, m->max);
        return;
    }
    const struct protobuf_field field = outer[pick(m, n_outer)];
    const size_t n_inner = field.wire == 2 ? protobuf_read(m, field.body, field.end, inner) : 0;
    if (n_inner == 0 || pick(m, 4) == 0) {
        protobuf_change_field(m, outer, n_outer);
        return;
    }
    uint8_t length[10];
    uint64_t tag;
    const size_t before = m->n;
    protobuf_change_field(m, inner, n_inner);
    const size_t at = protobuf_varint(m, field.at, m->n, &tag);
    const size_t n = protobuf_put_varint(field.end - field.body + m->n - before, length);
    (void)splice(m, at, field.body - at, length, n);
}

#endif
