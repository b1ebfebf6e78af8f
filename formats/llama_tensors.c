/* SPDX-License-Identifier: MIT
 * Names, extents and values of a llama, from the list in llama_tensors.h. */
#include "formats/llama_tensors.h"

#include <stddef.h>
#include <stdio.h>

#include "base/tnd_status.h"

struct role_row {
    const char *name;
    bool layered;
    size_t ne0; /* offsets of the extents in struct tnd_llama_dims */
    size_t ne1;
};

static const struct role_row role_rows[TND_LLAMA_ROLES] = {
#define ROLE_ROW(role, name, layered, ne0, ne1)                                                    \
    [TND_LLAMA_##role] = {name, layered, offsetof(struct tnd_llama_dims, ne0),                     \
                          offsetof(struct tnd_llama_dims, ne1)},
    TND_LLAMA_TENSOR_LIST(ROLE_ROW)
#undef ROLE_ROW
};

static int64_t extent(const struct tnd_llama_dims *dims, size_t offset)
{
    return *(const int64_t *)((const char *)dims + offset);
}

static enum tandem_status check_positive(const char *name, enum tandem_status status,
                                         const char *what, int64_t value,
                                         struct tandem_error *error)
{
    if (value > 0 && value <= INT32_MAX) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, status, name, value, INT32_MAX,
                         "%s: %s is %lld, expected 1 to 2147483647", name, what, (long long)value);
}

static enum tandem_status check_divides(const char *name, enum tandem_status status,
                                        const char *what, int64_t value, const char *of_what,
                                        int64_t of, struct tandem_error *error)
{
    if (of % value == 0) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, status, name, value, of,
                         "%s: %s is %lld, expected a divisor of %s, which is %lld", name, what,
                         (long long)value, of_what, (long long)of);
}

enum tandem_status tnd_llama_dims_from(const struct tandem_llama_shape *shape, const char *name,
                                       enum tandem_status status, struct tnd_llama_dims *out_dims,
                                       struct tandem_error *error)
{
    TND_TRY(check_positive(name, status, "dim", shape->dim, error));
    TND_TRY(check_positive(name, status, "hidden dim", shape->hidden, error));
    TND_TRY(check_positive(name, status, "number of layers", shape->layers, error));
    TND_TRY(check_positive(name, status, "number of heads", shape->heads, error));
    TND_TRY(check_positive(name, status, "number of KV heads", shape->kv_heads, error));
    TND_TRY(check_positive(name, status, "vocabulary", shape->vocabulary, error));
    TND_TRY(check_positive(name, status, "context", shape->context, error));
    TND_TRY(check_divides(name, status, "number of heads", shape->heads, "dim", shape->dim, error));
    TND_TRY(check_divides(name, status, "number of KV heads", shape->kv_heads, "number of heads",
                          shape->heads, error));
    const int64_t head_size = shape->dim / shape->heads;
    if (head_size % 2 != 0) { /* rope rotates pairs */
        return tnd_error_set(error, status, name, head_size, 2,
                             "%s: head size is %lld, expected an even number", name,
                             (long long)head_size);
    }
    *out_dims = (struct tnd_llama_dims){.dim = shape->dim,
                                        .kv_dim = head_size * shape->kv_heads,
                                        .hidden = shape->hidden,
                                        .vocabulary = shape->vocabulary,
                                        .one = 1,
                                        .layers = shape->layers,
                                        .heads = shape->heads,
                                        .kv_heads = shape->kv_heads,
                                        .context = shape->context,
                                        .head_size = head_size};
    return TANDEM_OK;
}

int64_t tnd_llama_role_count(enum tnd_llama_role role, const struct tnd_llama_dims *dims)
{
    return role_rows[role].layered ? dims->layers : 1;
}

int tnd_llama_role_extents(enum tnd_llama_role role, const struct tnd_llama_dims *dims,
                           int64_t ne[2])
{
    ne[0] = extent(dims, role_rows[role].ne0);
    ne[1] = extent(dims, role_rows[role].ne1);
    return role_rows[role].ne1 == offsetof(struct tnd_llama_dims, one) ? 1 : 2;
}

enum tandem_status tnd_llama_add(tandem_source *source, enum tnd_llama_role role, int64_t layer,
                                 const struct tnd_llama_dims *dims, enum tandem_type type,
                                 const void *data, size_t bytes, struct tandem_error *error)
{
    char name[TANDEM_MAX_NAME];
    if (role_rows[role].layered) {
        snprintf(name, sizeof(name), "blk.%lld.%s", (long long)layer, role_rows[role].name);
    } else {
        snprintf(name, sizeof(name), "%s", role_rows[role].name);
    }
    int64_t ne[2];
    const int n_dims = tnd_llama_role_extents(role, dims, ne);
    return tnd_source_add(source, name, type, n_dims, ne, data, bytes, error);
}

enum tandem_status tnd_llama_set_values(tandem_source *source, const struct tnd_llama_dims *dims,
                                        struct tandem_error *error)
{
    const struct {
        const char *key;
        int64_t value;
    } integers[] = {
        {"llama.embedding_length", dims->dim},
        {"llama.block_count", dims->layers},
        {"llama.feed_forward_length", dims->hidden},
        {"llama.attention.head_count", dims->heads},
        {"llama.attention.head_count_kv", dims->kv_heads},
        {"llama.rope.dimension_count", dims->head_size},
        {"llama.context_length", dims->context},
        {"llama.vocab_size", dims->vocabulary},
    };
    TND_TRY(tnd_source_set_text(source, "general.architecture", "llama", error));
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++) {
        TND_TRY(tnd_source_set_integer(source, integers[i].key, integers[i].value, error));
    }
    TND_TRY(tnd_source_set_number(source, "llama.attention.layer_norm_rms_epsilon", 1e-5, error));
    return tnd_source_set_number(source, "llama.rope.freq_base", 10000.0, error);
}
