/* SPDX-License-Identifier: MIT
 * Layout, all numbers little-endian: 8 bytes of magic with the format's version; u64 bytes of the
 * key; u64 bytes of the payload; u64 hash of key and payload; key; payload; nothing behind. */
#include "backends/gpu/gpu_cache.h"

#include <string.h>

#include "base/hash.h"

enum { MAGIC_BYTES = 8, HEADER_BYTES = MAGIC_BYTES + 3 * 8 };
static const char magic[MAGIC_BYTES + 1] = "TNDCLB1\n";
static const char file[] = "program cache";

static uint64_t get_u64(const unsigned char *at)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) {
        value = value << 8 | at[i];
    }
    return value;
}

static void add_u64(struct tnd_text *out, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        tnd_text_add_char(out, (char)(value >> 8 * i & 0xff));
    }
}

static uint64_t hash_of(const void *key, size_t key_n, const void *payload, size_t payload_n)
{
    return tnd_hash_bytes(payload, payload_n, tnd_hash_bytes(key, key_n, 0));
}

enum tandem_status tnd_gpu_cache_read(const void *bytes, size_t n, const char *key,
                                      const void **out_payload, size_t *out_payload_n,
                                      struct tandem_error *error)
{
    const unsigned char *at = bytes;
    if (n < HEADER_BYTES || memcmp(at, magic, MAGIC_BYTES) != 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, file, (int64_t)n, HEADER_BYTES,
                             "%s: offset 0: no header of version 1 in %zu bytes", file, n);
    }
    uint64_t key_n = get_u64(at + MAGIC_BYTES);
    uint64_t payload_n = get_u64(at + MAGIC_BYTES + 8);
    uint64_t hash = get_u64(at + MAGIC_BYTES + 16);
    size_t left = n - HEADER_BYTES;
    if (key_n > left || payload_n != left - key_n) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, file, (int64_t)left, 0,
                             "%s: offset %d: key of %llu and payload of %llu bytes, the file has "
                             "%zu left",
                             file, HEADER_BYTES, (unsigned long long)key_n,
                             (unsigned long long)payload_n, left);
    }
    const unsigned char *payload = at + HEADER_BYTES + key_n;
    if (hash_of(at + HEADER_BYTES, (size_t)key_n, payload, (size_t)payload_n) != hash) {
        return tnd_error_set(error, TANDEM_E_FORMAT, file, 0, 0,
                             "%s: offset %d: the contents do not have the hash of the header", file,
                             MAGIC_BYTES + 16);
    }
    if (key_n != strlen(key) || memcmp(at + HEADER_BYTES, key, (size_t)key_n) != 0) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, file, 0, 0,
                             "%s: offset %d: belongs to another device, driver or source", file,
                             HEADER_BYTES);
    }
    *out_payload = payload;
    *out_payload_n = (size_t)payload_n;
    return TANDEM_OK;
}

void tnd_gpu_cache_write(const char *key, const void *payload, size_t payload_n,
                         struct tnd_text *out)
{
    size_t key_n = strlen(key);
    tnd_text_add_bytes(out, magic, MAGIC_BYTES);
    add_u64(out, key_n);
    add_u64(out, payload_n);
    add_u64(out, hash_of(key, key_n, payload, payload_n));
    tnd_text_add_bytes(out, key, key_n);
    tnd_text_add_bytes(out, payload, payload_n);
}
