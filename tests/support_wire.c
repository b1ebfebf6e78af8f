/* SPDX-License-Identifier: MIT
 * Messages in the wire format of Protocol Buffers, from text. */
#include "tests/support_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_varint(struct tnd_blob *to, uint64_t value)
{
    for (; value > 127; value >>= 7) {
        tnd_blob_number(to, (value & 127) | 128, 1);
    }
    tnd_blob_number(to, value, 1);
}

static const char *put_hex(struct tnd_blob *to, const char *at)
{
    unsigned byte;
    for (; sscanf(at, "%2x", &byte) == 1 && *at != ' '; at += 2) {
        tnd_blob_number(to, byte, 1);
    }
    return at;
}

static const char *put_fields(struct tnd_blob *to, const char *at);

/* What follows "N:" or "N=": a field of a length. */
static const char *put_sized(struct tnd_blob *to, const char *at)
{
    struct tnd_blob inside = {NULL, 0};
    if (*at == '{') {
        at = put_fields(&inside, at + 1) + 1;
    } else if (*at == '\'') {
        const size_t n = strcspn(at + 1, "'");
        tnd_blob_add(&inside, at + 1, n);
        at += n + 2;
    } else {
        at = put_hex(&inside, at);
    }
    put_varint(to, inside.n);
    tnd_blob_add(to, inside.bytes, inside.n);
    tnd_blob_free(&inside);
    return at;
}

static const char *put_fields(struct tnd_blob *to, const char *at)
{
    for (at += strspn(at, " "); *at != '\0' && *at != '}'; at += strspn(at, " ")) {
        if (*at == '!') {
            at = put_hex(to, at + 1);
            continue;
        }
        char *end = NULL;
        const uint64_t number = strtoull(at, &end, 10);
        at = end + 1;
        if (*end == '~') {
            put_varint(to, number << 3 | 5);
            at = put_hex(to, at);
        } else if (*end == '=' || *at == '{' || *at == '\'') {
            put_varint(to, number << 3 | 2);
            at = put_sized(to, at);
        } else {
            put_varint(to, number << 3);
            put_varint(to, (uint64_t)strtoll(at, &end, 10));
            at = end;
        }
    }
    return at;
}

void tnd_blob_fields(struct tnd_blob *blob, const char *text)
{
    (void)put_fields(blob, text);
}
