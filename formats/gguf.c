/* SPDX-License-Identifier: MIT
 * Reader of GGUF files, versions 2 and 3, little-endian: header, values (gguf_metadata.c), tensor
 * descriptions, and the files of a split model. Tensors are borrowed from the mapping, so nothing
 * of their data is read here. */
#include "formats/gguf.h"

#include <limits.h>
#include <stdio.h>

#include "base/checked.h"
#include "formats/partial.h"
#include "formats/places.h"

#define TENSOR_LEAST_BYTES 24 /* empty name, no dimension, type, offset */
#define VALUE_LEAST_BYTES  13 /* empty key, type, one byte */

struct header {
    uint32_t version;
    uint64_t n_tensors;
    uint64_t n_values;
};

static enum tandem_status broken(const struct tnd_cursor *cursor, const char *what, uint64_t got,
                                 const char *expected, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, cursor->name, (int64_t)got, 0,
                         "%s: at byte %zu: %.80s is %llu, expected %s",
                         tnd_short_name(cursor->name), cursor->at, what, (unsigned long long)got,
                         expected);
}

bool tnd_gguf_is(const uint8_t *bytes, size_t n)
{
    return n >= 4 && memcmp(bytes, "GGUF", 4) == 0;
}

static enum tandem_status check_count(const struct tnd_cursor *cursor, const char *what,
                                      uint64_t count, size_t least_bytes, size_t most,
                                      struct tandem_error *error)
{
    const size_t fit = tnd_cursor_left(cursor) / least_bytes;
    if (count <= fit && count <= most) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, count <= most ? TANDEM_E_TRUNCATED : TANDEM_E_FORMAT, cursor->name,
                         (int64_t)count, (int64_t)(fit < most ? fit : most),
                         "%s: its header promises %llu %s, the %zu bytes behind it hold %zu at "
                         "most, and this version reads %zu at most",
                         tnd_short_name(cursor->name), (unsigned long long)count, what,
                         tnd_cursor_left(cursor), fit, most);
}

/* (Of a model of several files ranks keep no parts.) */
static enum tandem_status check_part(const struct tnd_cursor *cursor, bool may_be_part,
                                     struct tandem_error *error)
{
    return may_be_part || !tnd_partial_is_gguf(cursor->data, cursor->n)
               ? TANDEM_OK
               : tnd_error_set(error, TANDEM_E_FORMAT, cursor->name, 0, 0,
                               "%s: is the part of a model that a rank of several keeps, expected "
                               "a whole one",
                               tnd_short_name(cursor->name));
}

static enum tandem_status read_header(struct tnd_cursor *cursor, struct header *out,
                                      struct tandem_error *error)
{
    uint32_t magic;
    TND_TRY(tnd_cursor_u32(cursor, "the magic number", &magic, error));
    if (magic != tnd_le32((const uint8_t *)"GGUF")) {
        return broken(cursor, "the magic number", magic, "GGUF", error);
    }
    TND_TRY(tnd_cursor_u32(cursor, "the version", &out->version, error));
    if (tnd_partial_is_gguf(cursor->data, cursor->n)) {
        out->version &= 0x7fffffff;
    }
    if (out->version != 2 && out->version != TND_GGUF_VERSION) {
        const bool is_big_endian = out->version != 0 && (out->version & 0xffff) == 0;
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, cursor->name, out->version,
                             TND_GGUF_VERSION,
                             "%s: GGUF of version %lu%s, expected 2 or 3, little-endian",
                             tnd_short_name(cursor->name), (unsigned long)out->version,
                             is_big_endian ? " (a big-endian file?)" : "");
    }
    TND_TRY(tnd_cursor_u64(cursor, "the number of tensors", &out->n_tensors, error));
    TND_TRY(tnd_cursor_u64(cursor, "the number of values", &out->n_values, error));
    TND_TRY(check_count(cursor, "tensors", out->n_tensors, TENSOR_LEAST_BYTES,
                        TND_SOURCE_MAX_TENSORS, error));
    return check_count(cursor, "values", out->n_values, VALUE_LEAST_BYTES, TND_SOURCE_MAX_VALUES,
                       error);
}

/* ---- tensors ---- */

struct description {
    char name[TND_GGUF_MAX_NAME + 1];
    enum tandem_type type;
    int n_dims;
    int64_t ne[TANDEM_MAX_DIMS];
    size_t bytes;
    uint64_t offset; /* from the start of all data */
};

static enum tandem_status take_name(struct tnd_cursor *cursor, char out[TND_GGUF_MAX_NAME + 1],
                                    struct tandem_error *error)
{
    uint64_t n;
    const uint8_t *bytes = NULL;
    TND_TRY(tnd_cursor_u64(cursor, "the length of a tensor's name", &n, error));
    if (n == 0 || n > TND_GGUF_MAX_NAME) {
        return broken(cursor, "the length of a tensor's name", n, "1 to 64", error);
    }
    TND_TRY(tnd_cursor_take(cursor, n, "a tensor's name", &bytes, error));
    if (memchr(bytes, 0, (size_t)n) != NULL) {
        return broken(cursor, "a byte of a tensor's name", 0, "none that is zero", error);
    }
    memcpy(out, bytes, (size_t)n);
    out[n] = '\0';
    return TANDEM_OK;
}

static enum tandem_status take_extents(struct tnd_cursor *cursor, struct description *d,
                                       struct tandem_error *error)
{
    uint32_t n_dims;
    TND_TRY(tnd_cursor_u32(cursor, d->name, &n_dims, error));
    if (n_dims > TANDEM_MAX_DIMS) {
        char what[128];
        snprintf(what, sizeof(what), "number of dimensions of %s", d->name);
        return broken(cursor, what, n_dims, "at most 4", error);
    }
    d->n_dims = (int)n_dims;
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        uint64_t extent = 1;
        if (i < d->n_dims) {
            TND_TRY(tnd_cursor_u64(cursor, d->name, &extent, error));
        }
        if (extent == 0 || extent > INT64_MAX) {
            char what[128];
            snprintf(what, sizeof(what), "dimension %d of %s", i, d->name);
            return broken(cursor, what, extent, "1 to 2^63 - 1", error);
        }
        d->ne[i] = (int64_t)extent;
    }
    return TANDEM_OK;
}

/* Bytes of the tensor by type and extents. */
static enum tandem_status count_bytes(const struct tnd_cursor *cursor, struct description *d,
                                      struct tandem_error *error)
{
    char what[128];
    snprintf(what, sizeof(what), "first dimension of %s", d->name);
    if (d->ne[0] % tandem_type_block_values(d->type) != 0) {
        return broken(cursor, what, (uint64_t)d->ne[0], "a multiple of its type's block", error);
    }
    d->bytes = tandem_type_row_bytes(d->type, d->ne[0]);
    bool fits = d->bytes != 0;
    for (int i = 1; fits && i < TANDEM_MAX_DIMS; i++) {
        fits = tnd_mul_size(d->bytes, (size_t)d->ne[i], &d->bytes);
    }
    return fits ? TANDEM_OK
                : broken(cursor, what, (uint64_t)d->ne[0],
                         "extents whose product fits into 64 bits", error);
}

/* Names of ggml's types that we lack (enum ggml_type in ggml.h); "" for a number without a name. */
static const char *ggml_type_name(uint32_t type)
{
    static const char *const names[] = {
        [4] = "Q4_2",        [5] = "Q4_3",        [9] = "Q8_1",      [15] = "Q8_K",
        [24] = "I8",         [25] = "I16",        [27] = "I64",      [28] = "F64",
        [31] = "Q4_0_4_4",   [32] = "Q4_0_4_8",   [33] = "Q4_0_8_8", [36] = "IQ4_NL_4_4",
        [37] = "IQ4_NL_4_8", [38] = "IQ4_NL_8_8", [40] = "NVFP4",    [41] = "Q1_0",
    };
    const bool is_known = type < sizeof(names) / sizeof(names[0]) && names[type] != NULL;
    return is_known ? names[type] : "";
}

static enum tandem_status take_description(struct tnd_cursor *cursor, struct description *d,
                                           struct tandem_error *error)
{
    uint32_t type;
    TND_TRY(take_name(cursor, d->name, error));
    TND_TRY(take_extents(cursor, d, error));
    TND_TRY(tnd_cursor_u32(cursor, d->name, &type, error));
    TND_TRY(tnd_cursor_u64(cursor, d->name, &d->offset, error));
    /* BCML1 of before: the bits of Q4_1, only chosen better. */
    d->type = type == TND_GGUF_BCML1_BEFORE ? TANDEM_TYPE_Q4_1 : (enum tandem_type)type;
    if (!tandem_type_is_valid(d->type)) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, d->name, type, 0,
                             "%s: tensor %s has type %s%snumber %lu of ggml, which this version "
                             "does not have",
                             tnd_short_name(cursor->name), d->name, ggml_type_name(type),
                             ggml_type_name(type)[0] != '\0' ? ", " : "", (unsigned long)type);
    }
    return count_bytes(cursor, d, error);
}

/* Adds one tensor, whose data lies in the bytes from `data` to the end of the file. */
static enum tandem_status add_tensor(const struct tnd_cursor *cursor, const struct description *d,
                                     size_t data, size_t alignment, tandem_source *source,
                                     struct tandem_error *error)
{
    if (d->offset % alignment != 0) {
        char what[128];
        snprintf(what, sizeof(what), "offset of %s", d->name);
        return broken(cursor, what, d->offset, "a multiple of the file's alignment", error);
    }
    const size_t have = cursor->n > data ? cursor->n - data : 0;
    if (d->offset > have || d->bytes > have - (size_t)d->offset) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, d->name, (int64_t)have, (int64_t)d->bytes,
                             "%s: tensor %s needs %zu bytes at offset %llu, the file has %zu "
                             "bytes of data",
                             tnd_short_name(cursor->name), d->name, d->bytes,
                             (unsigned long long)d->offset, have);
    }
    return tnd_source_add(source, d->name, d->type, d->n_dims, d->ne,
                          cursor->data + data + d->offset, d->bytes, error);
}

static enum tandem_status add_tensors(struct tnd_cursor *cursor, uint64_t count, size_t data,
                                      size_t alignment, tandem_source *source,
                                      struct tnd_places *places, struct tandem_error *error)
{
    for (uint64_t i = 0; i < count; i++) {
        struct description d = {.n_dims = 0};
        TND_TRY(take_description(cursor, &d, error));
        TND_TRY(add_tensor(cursor, &d, data, alignment, source, error));
        const char *name = source->tensors[source->n_tensors - 1].name;
        const struct tnd_place place = {(int64_t)d.offset, (int64_t)(d.offset + d.bytes), name,
                                        (int)strlen(name)};
        TND_TRY(tnd_places_add(places, place, cursor->name, error));
    }
    return tnd_places_check(places, cursor->name, error);
}

/* Where the data begins: behind the descriptions, rounded up. Descriptions are passed over once to
 * know that. */
static enum tandem_status find_data(struct tnd_cursor cursor, uint64_t count, size_t alignment,
                                    size_t *out_data, struct tandem_error *error)
{
    for (uint64_t i = 0; i < count; i++) {
        struct description d = {.n_dims = 0};
        TND_TRY(take_description(&cursor, &d, error));
    }
    if (!tnd_align_up(cursor.at, alignment, out_data)) {
        return broken(&cursor, "the begin of the data", cursor.at, "a number of 64 bits", error);
    }
    return TANDEM_OK;
}

static enum tandem_status read_alignment(const struct tnd_cursor *cursor,
                                         const tandem_source *values, size_t *out,
                                         struct tandem_error *error)
{
    int64_t alignment = TND_GGUF_DEFAULT_ALIGNMENT;
    (void)tandem_source_integer(values, "general.alignment", &alignment);
    if (alignment < 8 || alignment > TND_GGUF_MAX_ALIGNMENT || (alignment & (alignment - 1)) != 0) {
        return broken(cursor, "general.alignment", (uint64_t)alignment,
                      "a power of two from 8 to 65536", error);
    }
    *out = (size_t)alignment;
    return TANDEM_OK;
}

/* Reads one file: values go to `values`, tensors to `source` (the same for the first file). */
static enum tandem_status read_file(struct tnd_cursor *cursor, tandem_source *values,
                                    tandem_source *source, struct tandem_error *error)
{
    struct header header;
    size_t alignment = TND_GGUF_DEFAULT_ALIGNMENT;
    size_t data = 0;
    TND_TRY(read_header(cursor, &header, error));
    source->format = header.version == 2 ? "GGUF version 2" : "GGUF version 3";
    TND_TRY(tnd_gguf_read_values(cursor, header.n_values, values, error));
    TND_TRY(read_alignment(cursor, values, &alignment, error));
    TND_TRY(find_data(*cursor, header.n_tensors, alignment, &data, error));
    struct tnd_places places = {NULL, 0, 0};
    const enum tandem_status status =
        add_tensors(cursor, header.n_tensors, data, alignment, source, &places, error);
    tnd_places_fini(&places);
    return status;
}

/* ---- split models ---- */

#define SPLIT_SUFFIX_LENGTH 20 /* -00001-of-00003.gguf */
#define SPLIT_MAX           99999

/* Path of part `i` (from 0) of `count`, beside `path`, whose name must have the form that says
 * which part it is. */
static enum tandem_status split_path(const char *path, int64_t no, int64_t count, int64_t i,
                                     char out[PATH_MAX], struct tandem_error *error)
{
    char suffix[SPLIT_SUFFIX_LENGTH + 16];
    const size_t n = strlen(path);
    snprintf(suffix, sizeof(suffix), "-%05d-of-%05d.gguf", (int)no + 1, (int)count);
    if (n < SPLIT_SUFFIX_LENGTH || n >= PATH_MAX ||
        strcmp(path + n - SPLIT_SUFFIX_LENGTH, suffix) != 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, path, no, count,
                             "%s: is part %lld of %lld of a model, so its name must end in %s",
                             tnd_short_name(path), (long long)no + 1, (long long)count, suffix);
    }
    snprintf(out, PATH_MAX, "%.*s-%05d-of-%05d.gguf", (int)(n - SPLIT_SUFFIX_LENGTH), path,
             (int)i + 1, (int)count);
    return TANDEM_OK;
}

/* What a file says about its place in a split model; count is 1 for a whole one. */
static enum tandem_status split_place(const struct tnd_cursor *cursor, const tandem_source *values,
                                      int64_t *out_no, int64_t *out_count,
                                      struct tandem_error *error)
{
    int64_t no = 0;
    int64_t count = 1;
    (void)tandem_source_integer(values, "split.no", &no);
    (void)tandem_source_integer(values, "split.count", &count);
    count = count == 0 ? 1 : count;
    if (count < 1 || count > SPLIT_MAX) {
        return broken(cursor, "split.count", (uint64_t)count, "1 to 99999", error);
    }
    if (no < 0 || no >= count) {
        return broken(cursor, "split.no", (uint64_t)no, "less than split.count", error);
    }
    *out_no = no;
    *out_count = count;
    return TANDEM_OK;
}

/* Reads another part, which must say that it is part `i` of `count`. */
static enum tandem_status read_part(const char *path, int64_t i, int64_t count,
                                    tandem_source *source, struct tandem_error *error)
{
    struct tnd_file file;
    int64_t got_no = 0;
    int64_t got_count = 1;
    tandem_source *values;
    TND_TRY(tnd_source_map(source, path, &file, error));
    TND_TRY(tnd_source_new("GGUF part", &values, error));
    struct tnd_cursor cursor = {file.data, file.bytes, 0, path};
    enum tandem_status status = check_part(&cursor, false, error);
    if (status == TANDEM_OK) {
        status = read_file(&cursor, values, source, error);
    }
    if (status == TANDEM_OK) {
        status = split_place(&cursor, values, &got_no, &got_count, error);
    }
    tandem_source_close(values);
    if (status == TANDEM_OK && (got_no != i || got_count != count)) {
        return tnd_error_set(error, TANDEM_E_FORMAT, path, got_no, i,
                             "%s: says that it is part %lld of %lld, expected %lld of %lld",
                             tnd_short_name(path), (long long)got_no + 1, (long long)got_count,
                             (long long)i + 1, (long long)count);
    }
    return status;
}

static enum tandem_status read_other_parts(const struct tnd_cursor *cursor, tandem_source *source,
                                           struct tandem_error *error)
{
    int64_t no;
    int64_t count;
    int64_t n_tensors;
    char path[PATH_MAX];
    TND_TRY(split_place(cursor, source, &no, &count, error));
    if (count == 1) {
        return TANDEM_OK;
    }
    if (no != 0) { /* the values of the whole model stand in the first part */
        TND_TRY(split_path(cursor->name, no, count, 0, path, error));
        return tnd_error_set(error, TANDEM_E_FORMAT, cursor->name, no, 0,
                             "%s: is part %lld of %lld of a model, open the first: %s",
                             tnd_short_name(cursor->name), (long long)no + 1, (long long)count,
                             tnd_short_name(path));
    }
    for (int64_t i = 1; i < count; i++) {
        TND_TRY(split_path(cursor->name, no, count, i, path, error));
        TND_TRY(read_part(path, i, count, source, error));
    }
    if (tandem_source_integer(source, "split.tensors.count", &n_tensors) &&
        n_tensors != (int64_t)source->n_tensors) {
        return tnd_error_set(error, TANDEM_E_FORMAT, cursor->name, (int64_t)source->n_tensors,
                             n_tensors, "%s: its %lld parts have %zu tensors, expected %lld",
                             tnd_short_name(cursor->name), (long long)count, source->n_tensors,
                             (long long)n_tensors);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_gguf_read(const void *bytes, size_t n, const char *path,
                                 tandem_source **out_source, struct tandem_error *error)
{
    struct tnd_cursor cursor = {bytes, n, 0, path};
    tandem_source *source;
    TND_TRY(check_part(&cursor, tnd_source_takes_parts, error));
    TND_TRY(tnd_source_new("GGUF", &source, error));
    enum tandem_status status = read_file(&cursor, source, source, error);
    if (status == TANDEM_OK) {
        status = read_other_parts(&cursor, source, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_source_check_names(source, path, error);
    }
    return tnd_source_end(status, source, out_source);
}
