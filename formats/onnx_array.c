/* SPDX-License-Identifier: MIT
 * Types and tensors of ONNX as those of a net. */
#include <string.h>

#include "base/tnd_assert.h"
#include "formats/onnx_build.h"

bool tnd_onnx_dtype(enum tnd_onnx_type type, enum tandem_dtype *out)
{
    switch (type) {
#define DTYPE_CASE(name, store, text, kind)                                                        \
    case TND_ONNX_##name:                                                                          \
        *out = TANDEM_DTYPE_##name;                                                                \
        return true;
        TND_DTYPE_LIST(DTYPE_CASE)
#undef DTYPE_CASE
    case TND_ONNX_I4:
    case TND_ONNX_I2:
        *out = TANDEM_DTYPE_I8;
        return true;
    case TND_ONNX_U4:
    case TND_ONNX_U2:
        *out = TANDEM_DTYPE_U8;
        return true;
    default:
        return false;
    }
}

int tnd_onnx_narrow_bits(enum tnd_onnx_type type)
{
    return type == TND_ONNX_I4 || type == TND_ONNX_U4   ? 4
           : type == TND_ONNX_I2 || type == TND_ONNX_U2 ? 2
                                                        : 0;
}

/* Bits per value of types that pack several in a byte; 0: other types. */
static int packed_bits(enum tnd_onnx_type type)
{
    return type == TND_ONNX_F4E2M1                              ? 4
           : type == TND_ONNX_F6E2M3 || type == TND_ONNX_F6E3M2 ? 6
                                                                : tnd_onnx_narrow_bits(type);
}

/* Unpacks values of fewer than 8 bits to bytes. Values of 6 bits may span two bytes. */
static void unpack_narrow(const struct tnd_onnx_tensor *tensor, uint8_t *out)
{
    const int bits = packed_bits(tensor->type);
    const bool is_signed = tensor->type == TND_ONNX_I4 || tensor->type == TND_ONNX_I2;
    for (int64_t i = 0; i < tensor->n_values; i++) {
        const uint8_t *at = tensor->data + i * bits / 8;
        const int from = (int)(i * bits % 8);
        const int both = from + bits > 8 ? at[0] | at[1] << 8 : at[0];
        const int low = both >> from & ((1 << bits) - 1);
        const int sign = is_signed ? low & 1 << (bits - 1) : 0;
        out[i] = (uint8_t)(low - 2 * sign);
    }
}

static enum tandem_status shape_of(const struct tnd_onnx_tensor *tensor, enum tandem_dtype *type,
                                   struct tnd_dims *shape, struct tandem_error *error)
{
    *shape = (struct tnd_dims){.n = tensor->n_dims};
    if (!tnd_onnx_dtype(tensor->type, type) || tensor->n_dims > TANDEM_NET_MAX_DIMS) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, tensor->name, tensor->n_dims,
                             TANDEM_NET_MAX_DIMS,
                             "tensor '%.80s': type %s, %d dimensions; expected real numbers and at "
                             "most %d dimensions",
                             tensor->name, tnd_onnx_type_name((int32_t)tensor->type),
                             tensor->n_dims, TANDEM_NET_MAX_DIMS);
    }
    if (tensor->n_dims > 0) {
        memcpy(shape->dims, tensor->dims, (size_t)tensor->n_dims * sizeof(shape->dims[0]));
    }
    return TANDEM_OK;
}

static void read_values(const struct tnd_onnx_tensor *tensor, struct tnd_array *array)
{
    if (packed_bits(tensor->type) != 0) {
        unpack_narrow(tensor, array->data);
        return;
    }
    TND_ASSERT((size_t)array->n * tandem_dtype_bytes(array->type) == tensor->bytes);
    if (tensor->bytes > 0) {
        memcpy(array->data, tensor->data, tensor->bytes);
    }
    for (int64_t i = 0; array->type == TANDEM_DTYPE_BOOL && i < array->n; i++) {
        ((uint8_t *)array->data)[i] = ((uint8_t *)array->data)[i] != 0;
    }
}

enum tandem_status tnd_onnx_array(const struct tnd_onnx_tensor *tensor, struct tnd_array **out,
                                  struct tandem_error *error)
{
    struct tnd_dims shape;
    enum tandem_dtype type = TANDEM_DTYPE_F32;
    TND_TRY(shape_of(tensor, &type, &shape, error));
    struct tnd_array *array = tnd_array_new(type, &shape);
    if (array == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, tensor->name, tensor->n_values, 0,
                             "tensor '%.80s': no memory for %lld values", tensor->name,
                             (long long)tensor->n_values);
    }
    read_values(tensor, array);
    *out = array;
    return TANDEM_OK;
}

static enum tandem_status make_values(const void *how, const struct tnd_view *in, int n_in,
                                      struct tnd_array *out, struct tandem_error *error)
{
    const struct tnd_onnx_tensor *tensor;
    (void)in;
    (void)n_in;
    (void)error;
    memcpy(&tensor, how, sizeof(tensor));
    read_values(tensor, out);
    return TANDEM_OK;
}

enum tandem_status tnd_onnx_shared_array(const struct tnd_onnx_tensor *tensor,
                                         struct tnd_store *store, struct tnd_array **out,
                                         struct tandem_error *error)
{
    struct tnd_store_recipe recipe = {.make = make_values, .how = &tensor, .n_how = sizeof(tensor)};
    if (store == NULL) {
        return tnd_onnx_array(tensor, out, error);
    }
    TND_TRY(shape_of(tensor, &recipe.type, &recipe.shape, error));
    return tnd_store_derive(store, &recipe, out, error);
}
