/* SPDX-License-Identifier: MIT
 * Checkpoints of llama2.c: a header of seven 32-bit integers, then all weights in F32 without
 * names, in an order that the version fixes. Layouts after export.py and run.c of karpathy/llama2.c
 * (commits 09db52c6 and 00401b62); docs/formats.md describes them. */
#include "formats/llama2c.h"

#include <stdio.h>

#include "base/checked.h"
#include "base/tnd_status.h"
#include "formats/llama_tensors.h"
#include "formats/mistaken.h"

#define LLAMA2C_MAGIC    0x616b3432u /* "ak42" */
#define V0_HEADER_BYTES  28
#define V1_HEADER_BYTES  256
#define MAX_SIZE         (1 << 24) /* larger sizes: not a version 0 header */
#define V1_SHARED_OFFSET 36        /* byte: the classifier is the token embedding */

struct layout {
    const char *format;
    size_t header_bytes;
    /* two unused tables of context x head_size / 2 precede the output */
    bool has_rope_tables;
    enum tnd_llama_role order[TND_LLAMA_ROLES];
};

static const struct layout layout_v0 = {
    "llama2.c version 0",
    V0_HEADER_BYTES,
    true,
    {TND_LLAMA_TOKEN_EMBD, TND_LLAMA_ATTN_NORM, TND_LLAMA_ATTN_Q, TND_LLAMA_ATTN_K,
     TND_LLAMA_ATTN_V, TND_LLAMA_ATTN_OUTPUT, TND_LLAMA_FFN_NORM, TND_LLAMA_FFN_GATE,
     TND_LLAMA_FFN_DOWN, TND_LLAMA_FFN_UP, TND_LLAMA_OUTPUT_NORM, TND_LLAMA_OUTPUT},
};

static const struct layout layout_v1 = {
    "llama2.c version 1",
    V1_HEADER_BYTES,
    false,
    {TND_LLAMA_ATTN_NORM, TND_LLAMA_FFN_NORM, TND_LLAMA_OUTPUT_NORM, TND_LLAMA_TOKEN_EMBD,
     TND_LLAMA_ATTN_Q, TND_LLAMA_ATTN_K, TND_LLAMA_ATTN_V, TND_LLAMA_ATTN_OUTPUT,
     TND_LLAMA_FFN_GATE, TND_LLAMA_FFN_DOWN, TND_LLAMA_FFN_UP, TND_LLAMA_OUTPUT},
};

struct header {
    const struct layout *layout;
    struct tnd_llama_dims dims;
    bool shared_classifier; /* the file ends without output.weight */
};

/* Little-endian on any machine. */
static uint32_t read_u32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static int64_t read_i32(const unsigned char *bytes)
{
    return (int32_t)read_u32(bytes);
}

static enum tandem_status no_model(const unsigned char *bytes, size_t n, const char *name,
                                   struct tandem_error *error)
{
    const char *what = tnd_mistaken_onnx(bytes, n) ? "an ONNX model, which tandem-graph runs"
                                                   : tnd_mistaken_for(bytes, n);
    return tnd_error_set(error, n == 0 ? TANDEM_E_TRUNCATED : TANDEM_E_FORMAT, name, 0, 0,
                         "%s: not a model file%s%s", name, what != NULL ? ", but " : "; ",
                         what != NULL ? what
                                      : "GGUF, safetensors, PyTorch and llama2.c checkpoints are "
                                        "known");
}

static enum tandem_status check_header_bytes(const unsigned char *bytes, size_t n, size_t wanted,
                                             const char *name, struct tandem_error *error)
{
    if (n >= wanted) {
        return TANDEM_OK;
    }
    if (tnd_mistaken_onnx(bytes, n) || tnd_mistaken_for(bytes, n) != NULL) {
        return no_model(bytes, n, name, error);
    }
    return tnd_error_set(error, TANDEM_E_TRUNCATED, name, (int64_t)n, (int64_t)wanted,
                         "%s: not a model file, or a cut one: it has %zu bytes, the header of a "
                         "llama2.c checkpoint has %zu",
                         name, n, wanted);
}

/* Whether seven integers can be a version 0 header, which has no magic number: every file of an
 * unknown format gets here. */
static bool could_be_sizes(const unsigned char *sizes)
{
    for (int i = 0; i < 7; i++) {
        const int64_t size = read_i32(sizes + 4 * i);
        if (size == 0 || size > MAX_SIZE || size < (i == 5 ? -MAX_SIZE : 1)) {
            return false;
        }
    }
    return true;
}

/* Fills the header; a negative vocabulary of version 0 means that the classifier is not shared. */
static enum tandem_status read_header(const unsigned char *bytes, size_t n, const char *name,
                                      struct header *out, struct tandem_error *error)
{
    const unsigned char *sizes = bytes;
    TND_TRY(check_header_bytes(bytes, n, V0_HEADER_BYTES, name, error));
    out->layout = &layout_v0;
    if (read_u32(bytes) == LLAMA2C_MAGIC) {
        const int64_t version = read_i32(bytes + 4);
        if (version != 1) {
            return tnd_error_set(
                error, TANDEM_E_UNSUPPORTED_BUILD, name, version, 1,
                "%s: llama2.c checkpoint of version %lld%s, expected 0 or 1: export "
                "it again with --version 1",
                name, (long long)version, version == 2 ? " (weights in groups of int8)" : "");
        }
        TND_TRY(check_header_bytes(bytes, n, V1_HEADER_BYTES, name, error));
        out->layout = &layout_v1;
        sizes = bytes + 8;
    } else if (!could_be_sizes(bytes)) {
        return no_model(bytes, n, name, error);
    }
    int64_t vocabulary = read_i32(sizes + 20);
    if (out->layout == &layout_v1) {
        out->shared_classifier = bytes[V1_SHARED_OFFSET] != 0;
    } else {
        out->shared_classifier = vocabulary > 0;
        vocabulary = vocabulary < 0 ? -vocabulary : vocabulary;
    }
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = read_i32(sizes),
                                             .hidden = read_i32(sizes + 4),
                                             .layers = read_i32(sizes + 8),
                                             .heads = read_i32(sizes + 12),
                                             .kv_heads = read_i32(sizes + 16),
                                             .vocabulary = vocabulary,
                                             .context = read_i32(sizes + 24)};
    char read_as[256]; /* any unknown file gets here: say what it was read as */
    snprintf(read_as, sizeof(read_as), "%s, read as %s", name, out->layout->format);
    return tnd_llama_dims_from(&shape, read_as, TANDEM_E_FORMAT, &out->dims, error);
}

/* Total bytes of all tensors of a role; false on overflow. */
static bool role_bytes(const struct header *header, enum tnd_llama_role role, size_t *out_bytes)
{
    int64_t ne[3];
    size_t bytes = sizeof(float);
    tnd_llama_role_extents(role, &header->dims, ne);
    if (role == TND_LLAMA_OUTPUT && header->shared_classifier) {
        *out_bytes = 0;
        return true;
    }
    return tnd_mul_size(bytes, (size_t)ne[0], &bytes) &&
           tnd_mul_size(bytes, (size_t)ne[1], &bytes) &&
           tnd_mul_size(bytes, (size_t)tnd_llama_role_count(role, &header->dims), out_bytes);
}

static bool rope_table_bytes(const struct header *header, size_t *out_bytes)
{
    if (!header->layout->has_rope_tables) {
        *out_bytes = 0;
        return true;
    }
    /* two tables of context x head_size / 2 */
    return tnd_mul_size((size_t)header->dims.context * sizeof(float),
                        (size_t)header->dims.head_size, out_bytes);
}

/* Compares the size that the header implies with the file's, before any tensor is read. */
static enum tandem_status check_file_bytes(const struct header *header, size_t n, const char *name,
                                           struct tandem_error *error)
{
    size_t wanted;
    bool fits = rope_table_bytes(header, &wanted) &&
                tnd_add_size(wanted, header->layout->header_bytes, &wanted);
    for (int i = 0; fits && i < TND_LLAMA_ROLES; i++) {
        size_t bytes;
        fits = role_bytes(header, header->layout->order[i], &bytes) &&
               tnd_add_size(wanted, bytes, &wanted);
    }
    if (!fits) {
        return tnd_error_set(error, TANDEM_E_FORMAT, name, (int64_t)n, INT64_MAX,
                             "%s: the sizes in its header do not fit into 64 bits", name);
    }
    if (n < wanted) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, name, (int64_t)n, (int64_t)wanted,
                             "%s: the file has %zu bytes, by its header (%s) %zu", name, n,
                             header->layout->format, wanted);
    }
    if (n > wanted) {
        return tnd_error_set(error, TANDEM_E_FORMAT, name, (int64_t)n, (int64_t)wanted,
                             "%s: the file has %zu bytes, by its header (%s) %zu: no llama2.c "
                             "checkpoint, or a damaged one",
                             name, n, header->layout->format, wanted);
    }
    return TANDEM_OK;
}

/* Adds all tensors in the file's order, after all sizes have been checked. */
static enum tandem_status add_tensors(tandem_source *source, const struct header *header,
                                      const unsigned char *bytes, struct tandem_error *error)
{
    const unsigned char *at = bytes + header->layout->header_bytes;
    for (int i = 0; i < TND_LLAMA_ROLES; i++) {
        const enum tnd_llama_role role = header->layout->order[i];
        size_t all_bytes = 0;
        if (role == TND_LLAMA_OUTPUT) {
            size_t skipped = 0;
            (void)rope_table_bytes(header, &skipped);
            at += skipped;
        }
        (void)role_bytes(header, role, &all_bytes);
        if (all_bytes == 0) {
            continue;
        }
        const int64_t count = tnd_llama_role_count(role, &header->dims);
        const size_t each_bytes = all_bytes / (size_t)count;
        for (int64_t layer = 0; layer < count; layer++) {
            TND_TRY(tnd_llama_add(source, role, layer, &header->dims, TANDEM_TYPE_F32, at,
                                  each_bytes, error));
            at += each_bytes;
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_llama2c_read(const void *bytes, size_t n, const char *name,
                                    tandem_source **out_source, struct tandem_error *error)
{
    struct header header;
    TND_TRY(read_header(bytes, n, name, &header, error));
    TND_TRY(check_file_bytes(&header, n, name, error));
    tandem_source *source;
    TND_TRY(tnd_source_new(header.layout->format, &source, error));
    enum tandem_status status = add_tensors(source, &header, bytes, error);
    if (status == TANDEM_OK) {
        status = tnd_llama_set_values(source, &header.dims, error);
    }
    return tnd_source_end(status, source, out_source);
}
