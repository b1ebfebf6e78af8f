/* SPDX-License-Identifier: MIT
 * Views of storages of other libraries, borrowed or copied into a source. */
#include "formats/foreign.h"

#include <string.h>

#include "base/checked.h"
#include "formats/cursor.h"

static const struct foreign_row {
    const char *name;
    const char *storage;
    size_t bytes;
    enum tandem_type type;
} rows[TND_FOREIGN_TYPES] = {
#define FOREIGN_ROW(name, safetensors, storage, bytes, type)                                       \
    [TND_FOREIGN_##name] = {safetensors, storage, bytes, TANDEM_TYPE_##type},
    TND_FOREIGN_TYPE_LIST(FOREIGN_ROW)
#undef FOREIGN_ROW
};

size_t tnd_foreign_bytes(enum tnd_foreign_type type)
{
    return rows[type].bytes;
}

bool tnd_foreign_from_name(const char *name, enum tnd_foreign_type *out)
{
    for (int i = 0; i < TND_FOREIGN_TYPES; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *out = (enum tnd_foreign_type)i;
            return true;
        }
    }
    return false;
}

bool tnd_foreign_from_storage(const char *name, enum tnd_foreign_type *out)
{
    for (int i = 0; i < TND_FOREIGN_TYPES; i++) {
        if (strcmp(rows[i].storage, name) == 0) {
            *out = (enum tnd_foreign_type)i;
            return true;
        }
    }
    return false;
}

bool tnd_foreign_dense(struct tnd_foreign_tensor *tensor)
{
    int64_t stride = 1;
    for (int i = tensor->n_dims - 1; i >= 0; i--) {
        const int64_t extent = tensor->shape[i] > 0 ? tensor->shape[i] : 1;
        tensor->strides[i] = stride;
        if (!tnd_mul_i64(stride, extent, &stride)) {
            return false;
        }
    }
    return true;
}

static enum tandem_status refuse(const struct tnd_foreign_tensor *tensor, int64_t got,
                                 int64_t limit, const char *what, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, tensor->name, got, limit,
                         "%s: tensor %.60s: %s is %lld, expected at most %lld",
                         tnd_short_name(tensor->path), tensor->name, what, (long long)got,
                         (long long)limit);
}

/* Checks extents and strides against the storage; counts values. */
static enum tandem_status check_view(const struct tnd_foreign_tensor *t, int64_t *out_values,
                                     struct tandem_error *error)
{
    const int64_t have = (int64_t)(t->storage_bytes / rows[t->type].bytes);
    int64_t values = 1;
    int64_t last = t->offset;
    bool is_empty = false;
    if (t->n_dims < 0 || t->n_dims > TANDEM_MAX_DIMS) {
        return refuse(t, t->n_dims, TANDEM_MAX_DIMS, "the number of dimensions", error);
    }
    for (int i = 0; i < t->n_dims; i++) {
        int64_t step = 0;
        if (t->shape[i] < 0 || t->strides[i] < 0) {
            return refuse(t, t->shape[i] < 0 ? t->shape[i] : t->strides[i], INT64_MAX,
                          "an extent or stride", error);
        }
        is_empty = is_empty || t->shape[i] == 0;
        if (!tnd_mul_i64(values, t->shape[i] > 0 ? t->shape[i] : 1, &values) ||
            !tnd_mul_i64(t->shape[i] > 0 ? t->shape[i] - 1 : 0, t->strides[i], &step) ||
            !tnd_add_i64(last, step, &last)) {
            return refuse(t, t->shape[i], INT64_MAX, "the product of extents and strides", error);
        }
    }
    *out_values = is_empty ? 0 : values;
    if (t->offset < 0 || (!is_empty && last >= have)) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, t->name, last, have,
                             "%s: tensor %.60s reaches from value %lld to %lld of its storage, "
                             "which has %lld",
                             tnd_short_name(t->path), t->name, (long long)t->offset,
                             (long long)last, (long long)have);
    }
    return TANDEM_OK;
}

static enum tandem_type type_here(const struct tnd_foreign_tensor *t)
{
    const bool is_half = t->type == TND_FOREIGN_F16 || t->type == TND_FOREIGN_BF16;
    return t->widens && is_half ? TANDEM_TYPE_F32 : rows[t->type].type;
}

static bool is_dense(const struct tnd_foreign_tensor *t)
{
    int64_t stride = 1;
    for (int i = t->n_dims - 1; i >= 0; i--) {
        if (t->shape[i] > 1 && t->strides[i] != stride) {
            return false;
        }
        stride *= t->shape[i] > 0 ? t->shape[i] : 1; /* fits: see check_view */
    }
    return true;
}

/* Bytes of one value, swapped to little-endian. */
static uint64_t value_bits(const struct tnd_foreign_tensor *t, int64_t index)
{
    const size_t n = rows[t->type].bytes;
    const uint8_t *at = t->storage + (size_t)index * n;
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        bits |= (uint64_t)at[t->is_big_endian ? n - 1 - i : i] << (8 * i);
    }
    return bits;
}

/* Stores one value in the type that it has here; false for an integer beyond I32. */
static bool store_value(const struct tnd_foreign_tensor *t, uint64_t bits, uint8_t *to)
{
    int64_t integer = 0;
    double wide;
    float single;
    switch (t->type) {
    case TND_FOREIGN_F64:
        memcpy(&wide, &bits, sizeof(wide));
        single = (float)wide;
        memcpy(to, &single, sizeof(single));
        return true;
    case TND_FOREIGN_I64:
        integer = (int64_t)bits;
        break;
    case TND_FOREIGN_I16:
        integer = (int16_t)bits;
        break;
    case TND_FOREIGN_I8:
        integer = (int8_t)bits;
        break;
    case TND_FOREIGN_U8:
        integer = (int64_t)bits;
        break;
    case TND_FOREIGN_BOOL:
        integer = bits != 0;
        break;
    case TND_FOREIGN_F16:
    case TND_FOREIGN_BF16:
        if (t->widens) {
            const uint16_t half = (uint16_t)bits;
            return tandem_dequantize(rows[t->type].type, &half, (float *)(void *)to, 1) ==
                   TANDEM_OK;
        }
        memcpy(to, &bits, 2);
        return true;
    default:                                    /* the same type here: its bytes */
        memcpy(to, &bits, rows[t->type].bytes); /* little-endian machines only, as all of Tandem */
        return true;
    }
    const int32_t narrow = (int32_t)integer;
    memcpy(to, &narrow, sizeof(narrow));
    return integer >= INT32_MIN && integer <= INT32_MAX;
}

static enum tandem_status copy_values(const struct tnd_foreign_tensor *t, int64_t values,
                                      uint8_t *to, struct tandem_error *error)
{
    int64_t at[TANDEM_MAX_DIMS] = {0};
    const size_t to_bytes = tandem_type_block_bytes(type_here(t));
    for (int64_t v = 0; v < values; v++) {
        int64_t index = t->offset;
        for (int i = 0; i < t->n_dims; i++) {
            index += at[i] * t->strides[i];
        }
        const uint64_t bits = value_bits(t, index);
        if (!store_value(t, bits, to)) {
            return tnd_error_set(error, TANDEM_E_LIMIT, t->name, (int64_t)bits, INT32_MAX,
                                 "%s: tensor %.60s: value %lld is %lld, which does not fit into "
                                 "32 bits",
                                 tnd_short_name(t->path), t->name, (long long)v, (long long)bits);
        }
        to += to_bytes;
        for (int i = t->n_dims - 1; i >= 0 && ++at[i] == t->shape[i]; i--) {
            at[i] = 0;
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_foreign_add(tandem_source *source, const struct tnd_foreign_tensor *t,
                                   struct tandem_error *error)
{
    const struct foreign_row *row = &rows[t->type];
    const enum tandem_type type = type_here(t);
    int64_t values = 0;
    size_t bytes = 0;
    int64_t ne[TANDEM_MAX_DIMS] = {1, 1, 1, 1};
    TND_TRY(check_view(t, &values, error));
    if (!tnd_mul_size((size_t)values, tandem_type_block_bytes(type), &bytes)) {
        return refuse(t, values, INT64_MAX, "the number of values", error);
    }
    for (int i = 0; i < t->n_dims; i++) {
        ne[i] = t->shape[t->n_dims - 1 - i];
    }
    const size_t offset_bytes = values == 0 ? 0 : (size_t)t->offset * row->bytes;
    const uint8_t *data = t->storage + offset_bytes;
    const bool is_same = row->bytes == tandem_type_block_bytes(type) && !t->is_big_endian;
    if (values > 0 && (!is_same || !is_dense(t) || (uintptr_t)data % row->bytes != 0)) {
        void *copy = NULL;
        TND_TRY(tnd_source_alloc(source, t->name, bytes, t->file_bytes, &copy, error));
        TND_TRY(copy_values(t, values, copy, error));
        data = copy;
    }
    return tnd_source_add(source, t->name, type, t->n_dims, ne, data, bytes, error);
}
