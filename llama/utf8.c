/* SPDX-License-Identifier: MIT
 * Validates UTF-8 byte by byte. */
#include "llama/utf8.h"

/* Starts a character with its first byte: how many bytes follow, and the range of the second one,
 * which excludes overlong forms, surrogates and numbers above U+10FFFF. */
static bool begin(struct tnd_utf8 *state, uint8_t byte)
{
    struct tnd_utf8 next = {.left = 0, .low = 0x80, .high = 0xbf};
    if (byte >= 0x80) {
        if (byte < 0xc2 || byte > 0xf4) {
            return false;
        }
        next.left = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
        next.low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
        next.high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    }
    *state = next;
    return true;
}

bool tnd_utf8_accepts(struct tnd_utf8 *state, const char *bytes, size_t n)
{
    struct tnd_utf8 now = *state;
    for (size_t i = 0; i < n; i++) {
        const uint8_t byte = (uint8_t)bytes[i];
        if (now.left == 0) {
            if (!begin(&now, byte)) {
                return false;
            }
        } else if (byte < now.low || byte > now.high) {
            return false;
        } else {
            now = (struct tnd_utf8){.left = (uint8_t)(now.left - 1), .low = 0x80, .high = 0xbf};
        }
    }
    *state = now;
    return true;
}
