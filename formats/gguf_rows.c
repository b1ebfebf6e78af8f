/* SPDX-License-Identifier: MIT
 * Rows of a tensor, converted via F32 and reordered. The order of rotated rows is that of the GGUF
 * convention (docs/gguf.md of ggml-org/ggml, "llama.tensor_data_layout"): in a head of d rows, row
 * 2 j + p is taken from row p d / 2 + j. */
#include "formats/gguf_rows.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_type.h"

#define MAX_THREADS 64

enum tandem_status tnd_gguf_rows_plan(const struct tandem_source_tensor *tensor, bool converts,
                                      enum tandem_type type, int64_t heads,
                                      struct tnd_gguf_rows *out, struct tandem_error *error)
{
    const bool is_matrix = tensor->n_dims >= 2 && tensor->type != TANDEM_TYPE_I32;
    struct tnd_gguf_rows rows = {.tensor = tensor, .type = tensor->type, .heads = heads};
    rows.row_values = tensor->ne[0];
    rows.n_rows = 1;
    for (int i = 1; i < TANDEM_MAX_DIMS; i++) {
        rows.n_rows *= tensor->ne[i];
    }
    if (heads != 0 && !is_matrix) { /* a bias has one value per row of the matrix */
        rows.n_rows = rows.row_values;
        rows.row_values = 1;
    }
    if (tensor->ne[0] == 0 || rows.n_rows == 0) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, tensor->name, 0, 1,
                             "%.80s: has no values, and GGUF has no empty tensors", tensor->name);
    }
    TND_ASSERT(heads == 0 || rows.n_rows % (2 * heads) == 0); /* checked by tandem_source_hparams */
    if (converts && tnd_source_converts(tensor) &&
        rows.row_values % tandem_type_block_values(type) == 0) {
        rows.type = type;
    }
    size_t all;
    rows.from_bytes = tandem_type_row_bytes(tensor->type, rows.row_values);
    rows.to_bytes = tandem_type_row_bytes(rows.type, rows.row_values);
    if (rows.from_bytes == 0 || !tnd_mul_size(rows.to_bytes, (size_t)rows.n_rows, &all)) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, tensor->name, rows.row_values, 0,
                             "%.80s: the bytes of its rows do not fit into the machine's integers",
                             tensor->name);
    }
    *out = rows;
    return TANDEM_OK;
}

static int64_t row_before(const struct tnd_gguf_rows *rows, int64_t row)
{
    if (rows->heads == 0) {
        return row;
    }
    const int64_t d = rows->n_rows / rows->heads;
    TND_ASSERT(d > 0 && d % 2 == 0 && row >= 0 && row < rows->n_rows);
    const int64_t within = row % d;
    return row - within + within % 2 * (d / 2) + within / 2;
}

/* The rows of one thread. */
struct share {
    const struct tnd_gguf_rows *rows;
    int64_t first;
    int64_t count;
    unsigned char *to;
    float *values; /* a row in F32; NULL: no conversion */
    enum tandem_status status;
    pthread_t thread;
    bool is_started;
};

static enum tandem_status quantize_row(const struct tnd_gguf_rows *rows, int64_t row,
                                       const float *values, void *to)
{
    tnd_quantize_weighted_fn *weighted = tnd_type_quantize_weighted(rows->type);
    if (rows->importance == NULL || weighted == NULL) {
        return tandem_quantize(rows->type, values, to, rows->row_values);
    }
    const int64_t matrix = row / rows->tensor->ne[1];
    weighted(values, rows->importance + matrix * rows->row_values, to, rows->row_values);
    return TANDEM_OK;
}

static void *make_share(void *given)
{
    struct share *share = given;
    const struct tnd_gguf_rows *rows = share->rows;
    unsigned char *to = share->to;
    for (int64_t i = 0; i < share->count && share->status == TANDEM_OK; i++) {
        const unsigned char *from = (const unsigned char *)rows->tensor->data +
                                    (size_t)row_before(rows, share->first + i) * rows->from_bytes;
        if (share->values == NULL) {
            memcpy(to, from, rows->to_bytes);
        } else {
            share->status =
                tandem_dequantize(rows->tensor->type, from, share->values, rows->row_values);
            if (share->status == TANDEM_OK) {
                share->status = quantize_row(rows, share->first + i, share->values, to);
            }
        }
        to += rows->to_bytes;
    }
    return NULL;
}

/* Starts a thread for each share but the first, does the first here, and waits for the others. A
 * share whose thread cannot be started is done here, too. */
static void make_shares(struct share *shares, int n)
{
    for (int i = 1; i < n; i++) {
        shares[i].is_started = pthread_create(&shares[i].thread, NULL, make_share, &shares[i]) == 0;
    }
    for (int i = 0; i < n; i++) {
        if (!shares[i].is_started) {
            (void)make_share(&shares[i]);
        }
    }
    for (int i = 1; i < n; i++) {
        if (shares[i].is_started) {
            (void)pthread_join(shares[i].thread, NULL);
        }
    }
}

enum tandem_status tnd_gguf_rows_make(const struct tnd_gguf_rows *rows, int64_t first,
                                      int64_t count, int threads, void *to,
                                      struct tandem_error *error)
{
    struct share shares[MAX_THREADS] = {{.count = 0}};
    const bool converts = rows->type != rows->tensor->type;
    int n = threads > MAX_THREADS ? MAX_THREADS : threads;
    n = !converts || n < 1 ? 1 : n;
    n = n > count ? (int)count : n;
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < n; i++) {
        const int64_t begin = count * i / n;
        shares[i] = (struct share){.rows = rows,
                                   .first = first + begin,
                                   .count = count * (i + 1) / n - begin,
                                   .to = (unsigned char *)to + (size_t)begin * rows->to_bytes};
        if (converts) {
            shares[i].values = tnd_calloc((size_t)rows->row_values, sizeof(float));
            status = shares[i].values == NULL ? TANDEM_E_MEMORY : status;
        }
    }
    if (status == TANDEM_OK) {
        make_shares(shares, n);
    }
    for (int i = 0; i < n; i++) {
        status = status == TANDEM_OK ? shares[i].status : status;
        tnd_free(shares[i].values);
    }
    if (status != TANDEM_OK) {
        return tnd_error_set(error, status, rows->tensor->name, rows->type, rows->tensor->type,
                             "%.80s: cannot make %s of %s", rows->tensor->name,
                             tandem_type_name(rows->type), tandem_type_name(rows->tensor->type));
    }
    return TANDEM_OK;
}
