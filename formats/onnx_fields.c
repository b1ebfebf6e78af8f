/* SPDX-License-Identifier: MIT
 * Fields of ONNX messages: counting, texts, numbers. Lists are read twice, first to count their
 * items. */
#include <limits.h>
#include <string.h>

#include "base/checked.h"
#include "formats/onnx_internal.h"

enum tandem_status tnd_onnx_broken(const struct tnd_onnx_memory *memory,
                                   const struct tnd_cursor *at, const char *what, int64_t got,
                                   const char *expected, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, memory->file.name, got, 0,
                         "%s: before byte %zu: %s is %lld, expected %s",
                         tnd_short_name(memory->file.name), at->at, what, (long long)got, expected);
}

enum tandem_status tnd_onnx_count(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                  struct tnd_onnx_counts *out, struct tandem_error *error)
{
    *out = (struct tnd_onnx_counts){{0}};
    while (message.at < message.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number >= TND_ONNX_MAX_FIELD) {
            continue;
        }
        if (out->of[field.number] == INT_MAX / 2) {
            return tnd_error_set(error, TANDEM_E_LIMIT, memory->file.name, INT_MAX / 2, INT_MAX / 2,
                                 "%s: a list of more than %d items",
                                 tnd_short_name(memory->file.name), INT_MAX / 2);
        }
        out->of[field.number]++;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_onnx_new(struct tnd_onnx_memory *memory, int64_t n, size_t item_bytes,
                                void *out, struct tandem_error *error)
{
    void *items = NULL;
    size_t bytes = 0;
    if (n > 0) {
        items = tnd_mul_size((size_t)n, item_bytes, &bytes)
                    ? tnd_arena_alloc(&memory->arena, bytes, item_bytes == 1 ? 1 : 8)
                    : NULL;
        if (items == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, memory->file.name, n, 0,
                                 "%s: no memory for %lld items of %zu bytes",
                                 tnd_short_name(memory->file.name), (long long)n, item_bytes);
        }
    }
    memcpy(out, &items, sizeof(items));
    return TANDEM_OK;
}

static enum tandem_status expect_wire(const struct tnd_onnx_memory *memory,
                                      const struct tnd_cursor *at,
                                      const struct tnd_wire_field *field, uint32_t wire,
                                      const char *what, struct tandem_error *error)
{
    if (field->wire == wire) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_FORMAT, memory->file.name, field->wire, wire,
                         "%s: before byte %zu: field %u of %s has the wire type %u, expected %u",
                         tnd_short_name(memory->file.name), at->at, field->number, what,
                         field->wire, wire);
}

enum tandem_status tnd_onnx_inside(const struct tnd_onnx_memory *memory,
                                   const struct tnd_cursor *at, const struct tnd_wire_field *field,
                                   const char *what, struct tnd_cursor *out,
                                   struct tandem_error *error)
{
    TND_TRY(expect_wire(memory, at, field, TND_WIRE_BYTES, what, error));
    *out = tnd_wire_inside(&memory->file, field);
    return TANDEM_OK;
}

enum tandem_status tnd_onnx_remark(struct tnd_onnx_memory *memory, const struct tnd_cursor *at,
                                   const struct tnd_wire_field *field, const char *what,
                                   const char **out, struct tandem_error *error)
{
    char *text = NULL;
    TND_TRY(expect_wire(memory, at, field, TND_WIRE_BYTES, what, error));
    TND_TRY(tnd_onnx_new(memory, (int64_t)field->n + 1, 1, &text, error));
    if (field->n > 0) {
        memcpy(text, field->bytes, field->n);
    }
    *out = text;
    return TANDEM_OK;
}

enum tandem_status tnd_onnx_text(struct tnd_onnx_memory *memory, const struct tnd_cursor *at,
                                 const struct tnd_wire_field *field, const char *what,
                                 const char **out, struct tandem_error *error)
{
    TND_TRY(expect_wire(memory, at, field, TND_WIRE_BYTES, what, error));
    if (field->n > 0 && memchr(field->bytes, '\0', field->n) != NULL) {
        return tnd_error_set(error, TANDEM_E_FORMAT, memory->file.name, field->number, 0,
                             "%s: before byte %zu: field %u of %s holds a zero byte, expected a "
                             "text",
                             tnd_short_name(memory->file.name), at->at, field->number, what);
    }
    return tnd_onnx_remark(memory, at, field, what, out, error);
}

enum tandem_status tnd_onnx_number(const struct tnd_onnx_memory *memory,
                                   const struct tnd_cursor *at, const struct tnd_wire_field *field,
                                   const char *what, int64_t *out, struct tandem_error *error)
{
    TND_TRY(expect_wire(memory, at, field, TND_WIRE_VARINT, what, error));
    *out = (int64_t)field->value;
    return TANDEM_OK;
}

/* ---- lists of numbers ---- */

/* Output of numbers; without `out` they are only counted. */
struct numbers {
    uint8_t *out;
    size_t width;
    int64_t n;
};

static void put_number(struct numbers *numbers, uint64_t value)
{
    if (numbers->out != NULL) {
        uint8_t *to = numbers->out + (size_t)numbers->n * numbers->width;
        for (size_t i = 0; i < numbers->width; i++) {
            to[i] = (uint8_t)(value >> (8 * i));
        }
    }
    numbers->n++;
}

static enum tandem_status put_packed(const struct tnd_onnx_memory *memory,
                                     const struct tnd_wire_field *field, uint32_t wire,
                                     struct numbers *numbers, struct tandem_error *error)
{
    struct tnd_cursor list = tnd_wire_inside(&memory->file, field);
    while (list.at < list.n) {
        const uint8_t *bytes = NULL;
        uint64_t value = 0;
        if (wire == TND_WIRE_VARINT) {
            TND_TRY(tnd_wire_varint(&list, "a number of a list", &value, error));
        } else if (wire == TND_WIRE_4_BYTES) {
            TND_TRY(tnd_cursor_take(&list, 4, "a number of 4 bytes in a list", &bytes, error));
            value = tnd_le32(bytes);
        } else {
            TND_TRY(tnd_cursor_take(&list, 8, "a number of 8 bytes in a list", &bytes, error));
            value = tnd_le64(bytes);
        }
        put_number(numbers, value);
    }
    return TANDEM_OK;
}

static enum tandem_status put_all(const struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                  uint32_t number, uint32_t wire, struct numbers *numbers,
                                  struct tandem_error *error)
{
    while (message.at < message.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number != number) {
            continue;
        }
        if (field.wire == TND_WIRE_BYTES) {
            TND_TRY(put_packed(memory, &field, wire, numbers, error));
        } else {
            TND_TRY(expect_wire(memory, &message, &field, wire, "a list of numbers", error));
            put_number(numbers, field.value);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_onnx_numbers(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                    uint32_t number, uint32_t wire, size_t width,
                                    const uint8_t **out, int64_t *out_n, struct tandem_error *error)
{
    struct numbers numbers = {.width = width};
    uint8_t *bytes = NULL;
    TND_TRY(put_all(memory, message, number, wire, &numbers, error));
    TND_TRY(tnd_onnx_new(memory, numbers.n, width, &bytes, error));
    if (bytes != NULL) {
        numbers = (struct numbers){.out = bytes, .width = width};
        TND_TRY(put_all(memory, message, number, wire, &numbers, error));
    }
    *out = bytes;
    *out_n = numbers.n;
    return TANDEM_OK;
}
