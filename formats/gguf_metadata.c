/* SPDX-License-Identifier: MIT
 * Keys and values of a GGUF file. Lists stay in the file; only the places of texts are noted. */
#include "base/alloc.h"
#include "base/checked.h"
#include "formats/gguf.h"

size_t tnd_gguf_type_bytes(uint32_t type)
{
    static const uint8_t bytes_of[TND_GGUF_TYPES] = {
#define TYPE_BYTES(name, number, bytes) [number] = bytes,
        TND_GGUF_TYPE_LIST(TYPE_BYTES)
#undef TYPE_BYTES
    };
    return type < TND_GGUF_TYPES ? bytes_of[type] : 0;
}

void tnd_gguf_scalar(uint32_t type, const uint8_t *bytes, struct tnd_source_value *out)
{
    float single;
    uint32_t bits;
    uint64_t wide;
    out->kind = TND_VALUE_INTEGER;
    switch (type) {
    case TND_GGUF_U8:
    case TND_GGUF_BOOL:
        out->integer = bytes[0];
        break;
    case TND_GGUF_I8:
        out->integer = (int8_t)bytes[0];
        break;
    case TND_GGUF_U16:
        out->integer = tnd_le16(bytes);
        break;
    case TND_GGUF_I16:
        out->integer = (int16_t)tnd_le16(bytes);
        break;
    case TND_GGUF_U32:
        out->integer = tnd_le32(bytes);
        break;
    case TND_GGUF_I32:
        out->integer = (int32_t)tnd_le32(bytes);
        break;
    case TND_GGUF_F32:
        bits = tnd_le32(bytes);
        memcpy(&single, &bits, sizeof(single));
        out->kind = TND_VALUE_NUMBER;
        out->number = (double)single;
        break;
    case TND_GGUF_F64:
        wide = tnd_le64(bytes);
        memcpy(&out->number, &wide, sizeof(out->number));
        out->kind = TND_VALUE_NUMBER;
        break;
    default: /* U64, I64 */
        wide = tnd_le64(bytes);
        out->integer = (int64_t)wide;
        if (type == TND_GGUF_U64 && wide > INT64_MAX) { /* `integer` keeps the bits */
            out->kind = TND_VALUE_NUMBER;
            out->number = (double)wide;
        }
        break;
    }
}

static enum tandem_status broken(const struct tnd_cursor *cursor, const char *key, const char *what,
                                 uint64_t got, uint64_t limit, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, cursor->name, (int64_t)got, (int64_t)limit,
                         "%s: at byte %zu: %.50s: %s is %llu, expected at most %llu",
                         tnd_short_name(cursor->name), cursor->at, key, what,
                         (unsigned long long)got, (unsigned long long)limit);
}

/* Takes a length and as many bytes. */
static enum tandem_status take_text(struct tnd_cursor *cursor, const char *what,
                                    const uint8_t **out_text, uint64_t *out_bytes,
                                    struct tandem_error *error)
{
    TND_TRY(tnd_cursor_u64(cursor, what, out_bytes, error));
    return tnd_cursor_take(cursor, *out_bytes, what, out_text, error);
}

static enum tandem_status check_bools(const struct tnd_cursor *cursor, const char *key,
                                      const uint8_t *bytes, size_t n, struct tandem_error *error)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] > 1) {
            return broken(cursor, key, "a truth value", bytes[i], 1, error);
        }
    }
    return TANDEM_OK;
}

/* Takes the head of a list: type and number of its items, of which this many can be there. */
static enum tandem_status take_list_head(struct tnd_cursor *cursor, const char *key,
                                         uint32_t *out_type, uint64_t *out_count,
                                         struct tandem_error *error)
{
    TND_TRY(tnd_cursor_u32(cursor, key, out_type, error));
    TND_TRY(tnd_cursor_u64(cursor, key, out_count, error));
    const size_t item_bytes = tnd_gguf_type_bytes(*out_type);
    if (item_bytes == 0) {
        return broken(cursor, key, "the type of a list's items", *out_type, TND_GGUF_TYPES - 1,
                      error);
    }
    if (*out_count > tnd_cursor_left(cursor) / item_bytes) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, cursor->name, (int64_t)*out_count,
                             (int64_t)(tnd_cursor_left(cursor) / item_bytes),
                             "%s: at byte %zu: %.50s: a list of %llu items of %zu bytes at least, "
                             "%zu bytes are left",
                             tnd_short_name(cursor->name), cursor->at, key,
                             (unsigned long long)*out_count, item_bytes, tnd_cursor_left(cursor));
    }
    return TANDEM_OK;
}

/* Passes over the items of a list. Lists in lists are bounded in depth, all else by the file. */
static enum tandem_status pass_items(struct tnd_cursor *cursor, const char *key, uint32_t type,
                                     uint64_t count, int depth, struct tandem_error *error)
{
    const uint8_t *bytes = NULL;
    uint64_t n;
    if (type != TND_GGUF_TEXT && type != TND_GGUF_ARRAY) {
        const uint64_t all = count * tnd_gguf_type_bytes(type); /* fits: see take_list_head */
        TND_TRY(tnd_cursor_take(cursor, all, key, &bytes, error));
        return type == TND_GGUF_BOOL ? check_bools(cursor, key, bytes, (size_t)all, error)
                                     : TANDEM_OK;
    }
    if (type == TND_GGUF_ARRAY && depth == TND_GGUF_MAX_DEPTH) {
        return broken(cursor, key, "the depth of lists in lists", (uint64_t)depth + 1,
                      TND_GGUF_MAX_DEPTH, error);
    }
    for (uint64_t i = 0; i < count; i++) {
        if (type == TND_GGUF_TEXT) {
            TND_TRY(take_text(cursor, key, &bytes, &n, error));
        } else {
            uint32_t inner_type;
            TND_TRY(take_list_head(cursor, key, &inner_type, &n, error));
            TND_TRY(pass_items(cursor, key, inner_type, n, depth + 1, error));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_list(struct tnd_cursor *cursor, const char *key,
                                    tandem_source *source, struct tandem_error *error)
{
    uint32_t type;
    uint64_t count;
    TND_TRY(take_list_head(cursor, key, &type, &count, error));
    const size_t begin = cursor->at;
    TND_TRY(pass_items(cursor, key, type, count, 1, error));
    if (source == NULL) {
        return TANDEM_OK;
    }
    return tnd_source_set_array(source, key, type, (int64_t)count, cursor->data + begin,
                                cursor->at - begin, false, error);
}

static enum tandem_status read_value(struct tnd_cursor *cursor, const char *key, uint32_t type,
                                     tandem_source *source, struct tandem_error *error)
{
    const uint8_t *bytes = NULL;
    uint64_t n;
    if (type == TND_GGUF_ARRAY) {
        return read_list(cursor, key, source, error);
    }
    if (type == TND_GGUF_TEXT) {
        TND_TRY(take_text(cursor, key, &bytes, &n, error));
        return source == NULL
                   ? TANDEM_OK
                   : tnd_source_set_text_bytes(source, key, (const char *)bytes, (size_t)n, error);
    }
    const size_t size = tnd_gguf_type_bytes(type);
    if (size == 0) {
        return broken(cursor, key, "the type of the value", type, TND_GGUF_TYPES - 1, error);
    }
    TND_TRY(tnd_cursor_take(cursor, size, key, &bytes, error));
    if (type == TND_GGUF_BOOL) {
        TND_TRY(check_bools(cursor, key, bytes, 1, error));
    }
    struct tnd_source_value value = {.gguf_type = (int)type};
    tnd_gguf_scalar(type, bytes, &value);
    return source == NULL ? TANDEM_OK : tnd_source_add_value(source, key, value, error);
}

/* Takes a key into `out_key`. */
static enum tandem_status take_key(struct tnd_cursor *cursor, char out_key[TND_GGUF_MAX_KEY + 1],
                                   struct tandem_error *error)
{
    uint64_t n;
    const uint8_t *bytes = NULL;
    TND_TRY(tnd_cursor_u64(cursor, "the length of a key", &n, error));
    if (n == 0 || n > TND_GGUF_MAX_KEY) {
        return broken(cursor, "a key", "its length", n, TND_GGUF_MAX_KEY, error);
    }
    TND_TRY(tnd_cursor_take(cursor, n, "a key", &bytes, error));
    if (memchr(bytes, 0, (size_t)n) != NULL) {
        return broken(cursor, "a key", "the number of its zero bytes", 1, 0, error);
    }
    memcpy(out_key, bytes, (size_t)n);
    out_key[n] = '\0';
    return TANDEM_OK;
}

static enum tandem_status read_pair(struct tnd_cursor *cursor, char *key, tandem_source *source,
                                    struct tandem_error *error)
{
    uint32_t type;
    TND_TRY(take_key(cursor, key, error));
    TND_TRY(tnd_cursor_u32(cursor, key, &type, error));
    return read_value(cursor, key, type, source, error);
}

enum tandem_status tnd_gguf_read_values(struct tnd_cursor *cursor, uint64_t count,
                                        tandem_source *source, struct tandem_error *error)
{
    char *key = tnd_alloc(TND_GGUF_MAX_KEY + 1); /* too long for small stacks */
    if (key == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "GGUF", TND_GGUF_MAX_KEY, 0,
                             "GGUF: no memory for a key");
    }
    enum tandem_status status = TANDEM_OK;
    for (uint64_t i = 0; i < count && status == TANDEM_OK; i++) {
        status = read_pair(cursor, key, source, error);
    }
    tnd_free(key);
    return status;
}
