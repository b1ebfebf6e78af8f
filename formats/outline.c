/* SPDX-License-Identifier: MIT
 * A llama's outline: its tensors without weights, for graphs that are planned and never run. They
 * have addresses, which tell them apart, and no memory behind them. */
#include "base/checked.h"
#include "base/tnd_status.h"
#include "formats/llama_tensors.h"

#define ALIGNMENT 64

/* As those that are made with weights (synth.c): vectors, and rows that blocks do not fill, are
 * F32. */
static bool layout_of(enum tnd_llama_role role, const struct tnd_llama_dims *dims,
                      enum tandem_type wanted, enum tandem_type *out_type, size_t *out_bytes)
{
    int64_t ne[3];
    const int n_dims = tnd_llama_role_extents(role, dims, ne);
    const bool fits =
        n_dims > 1 && role != TND_LLAMA_FFN_ROUTER && ne[0] % tandem_type_block_values(wanted) == 0;
    *out_type = fits ? wanted : TANDEM_TYPE_F32;
    return tnd_mul_size(tandem_type_row_bytes(*out_type, ne[0]), (size_t)ne[1], out_bytes) &&
           tnd_mul_size(*out_bytes, (size_t)ne[2], out_bytes);
}

/* Where a tensor ends that begins at `at`; tensors lie apart as those with weights do. */
static bool step_over(enum tnd_llama_role role, const struct tnd_llama_dims *dims,
                      enum tandem_type wanted, size_t *io_at)
{
    enum tandem_type type;
    size_t bytes;
    return layout_of(role, dims, wanted, &type, &bytes) && tnd_add_size(*io_at, bytes, io_at) &&
           tnd_align_up(*io_at, ALIGNMENT, io_at);
}

static enum tandem_status add_tensors(tandem_source *source, const struct tnd_llama_dims *dims,
                                      enum tandem_type wanted, struct tandem_error *error)
{
    size_t at = 0;
    for (int r = 0; r < TND_LLAMA_ALL_ROLES; r++) {
        const enum tnd_llama_role role = (enum tnd_llama_role)r;
        enum tandem_type type = wanted;
        size_t bytes = 0;
        (void)layout_of(role, dims, wanted, &type, &bytes);
        for (int64_t layer = 0; layer < tnd_llama_role_count(role, dims); layer++) {
            TND_TRY(tnd_llama_add(source, role, layer, dims, type, source->file.data + at, bytes,
                                  error));
            (void)step_over(role, dims, wanted, &at);
        }
    }
    return tnd_llama_set_values(source, dims, error);
}

static enum tandem_status reserve(tandem_source *source, const struct tnd_llama_dims *dims,
                                  enum tandem_type wanted, struct tandem_error *error)
{
    size_t all = 0;
    for (int r = 0; r < TND_LLAMA_ALL_ROLES; r++) {
        const enum tnd_llama_role role = (enum tnd_llama_role)r;
        for (int64_t layer = 0; layer < tnd_llama_role_count(role, dims); layer++) {
            if (!step_over(role, dims, wanted, &all)) {
                return tnd_error_set(error, TANDEM_E_OVERFLOW, "outline", 0, 0,
                                     "outline of a llama: its bytes do not fit into the machine's "
                                     "integers");
            }
        }
    }
    return tnd_file_reserve(all, &source->file, error);
}

enum tandem_status tnd_source_outline(const struct tandem_llama_shape *shape, enum tandem_type type,
                                      tandem_source **out_source, struct tandem_error *error)
{
    struct tnd_llama_dims dims;
    tandem_source *source = NULL;
    TND_TRY(tnd_llama_dims_from(shape, "outline", TANDEM_E_ARGUMENT, &dims, error));
    TND_TRY(tnd_source_new("outline", &source, error));
    source->is_outline = true;
    enum tandem_status status = reserve(source, &dims, type, error);
    if (status == TANDEM_OK) {
        status = add_tensors(source, &dims, type, error);
    }
    return tnd_source_end(status, source, out_source);
}
