/* SPDX-License-Identifier: MIT
 * Traits of tensor types, generated from tandem/type-list.h. Knows no tensor. A new type is one
 * row in that list and one pair of functions in a quant_*.c file. */
#include <string.h>

#include "ggml-like/quant.h"
#include "ggml-like/tnd_type.h"

static const struct tnd_type_traits traits[TANDEM_TYPE_NUMBERS] = {
#define TRAITS_ROW(NAME, number, text, values, bytes)                                              \
    [number] = {text, values, bytes, tnd_dequantize_##NAME, tnd_quantize_##NAME},
    TANDEM_TYPE_LIST(TRAITS_ROW)
#undef TRAITS_ROW
};

tnd_quantize_weighted_fn *tnd_type_quantize_weighted(enum tandem_type type)
{
#define WEIGHTED_ROW(NAME) [TANDEM_TYPE_##NAME] = tnd_quantize_weighted_##NAME,
    static tnd_quantize_weighted_fn *const weighted[TANDEM_TYPE_NUMBERS] = {
        TND_WEIGHTED_TYPES(WEIGHTED_ROW)};
#undef WEIGHTED_ROW
    return tnd_type_traits(type) != NULL ? weighted[type] : NULL;
}

const struct tnd_type_traits *tnd_type_traits(enum tandem_type type)
{
    unsigned number = (unsigned)type;
    return number < TANDEM_TYPE_NUMBERS && traits[number].name != NULL ? &traits[number] : NULL;
}

const char *tandem_type_name(enum tandem_type type)
{
    const struct tnd_type_traits *row = tnd_type_traits(type);
    return row != NULL ? row->name : "unknown";
}

/* ASCII only: type names do not follow the locale. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool names_match(const char *a, const char *b)
{
    while (*a != '\0' && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return *a == '\0' && *b == '\0';
}

bool tandem_type_from_name(const char *name, enum tandem_type *out)
{
    if (name == NULL || out == NULL) {
        return false;
    }
    for (int i = 0; i < TANDEM_TYPE_NUMBERS; i++) {
        if (traits[i].name != NULL && names_match(traits[i].name, name)) {
            *out = (enum tandem_type)i;
            return true;
        }
    }
    return false;
}

bool tandem_type_is_valid(enum tandem_type type)
{
    return tnd_type_traits(type) != NULL;
}

bool tandem_type_is_quantized(enum tandem_type type)
{
    return tandem_type_block_values(type) > 1;
}

int64_t tandem_type_block_values(enum tandem_type type)
{
    const struct tnd_type_traits *row = tnd_type_traits(type);
    return row != NULL ? row->block_values : 0;
}

size_t tandem_type_block_bytes(enum tandem_type type)
{
    const struct tnd_type_traits *row = tnd_type_traits(type);
    return row != NULL ? row->block_bytes : 0;
}

size_t tandem_type_row_bytes(enum tandem_type type, int64_t n)
{
    const struct tnd_type_traits *row = tnd_type_traits(type);
    if (row == NULL || n < 0 || n % row->block_values != 0) {
        return 0;
    }
    uint64_t blocks = (uint64_t)(n / row->block_values);
    return blocks <= SIZE_MAX / row->block_bytes ? (size_t)blocks * row->block_bytes : 0;
}

/* Checks of arguments that both conversions share. */
static enum tandem_status check_conversion(const struct tnd_type_traits *row, const void *src,
                                           const void *dst, int64_t n)
{
    if (row == NULL || n < 0 || n % row->block_values != 0) {
        return TANDEM_E_ARGUMENT;
    }
    if (row->dequantize == NULL) {
        return TANDEM_E_TYPE;
    }
    return n > 0 && (src == NULL || dst == NULL) ? TANDEM_E_ARGUMENT : TANDEM_OK;
}

enum tandem_status tandem_dequantize(enum tandem_type type, const void *src, float *dst, int64_t n)
{
    const struct tnd_type_traits *row = tnd_type_traits(type);
    enum tandem_status status = check_conversion(row, src, dst, n);
    if (status == TANDEM_OK && n > 0) {
        row->dequantize(src, dst, n);
    }
    return status;
}

enum tandem_status tandem_quantize(enum tandem_type type, const float *src, void *dst, int64_t n)
{
    const struct tnd_type_traits *row = tnd_type_traits(type);
    enum tandem_status status = check_conversion(row, src, dst, n);
    if (status == TANDEM_OK && n > 0) {
        row->quantize(src, dst, n);
    }
    return status;
}
