/* SPDX-License-Identifier: MIT
 * Whether bytes can continue a UTF-8 text: the well-formed sequences of Unicode, table 3-7. */
#ifndef TND_LLAMA_UTF8_H
#define TND_LLAMA_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Position in a character. All zeros: between characters. */
struct tnd_utf8 {
    uint8_t left;      /* bytes that the character still needs */
    uint8_t low, high; /* range of the next byte */
};

/** Whether the bytes may follow; advances `state` if so, else leaves it unchanged. The last
 * character may be incomplete. */
bool tnd_utf8_accepts(struct tnd_utf8 *state, const char *bytes, size_t n);

#endif
