/* SPDX-License-Identifier: MIT
 * NumPy's .npy: a magic word, a version, a dictionary as Python writes it, then the values. */
#include "formats/npy.h"

#include <string.h>

#include "base/file.h"
#include "base/file_stream.h"
#include "formats/cursor.h"

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6
#define MAX_HEADER  65536
#define ALIGNMENT   64 /* of the values in a file that is written */

static const struct {
    const char *text;
    enum tandem_dtype type;
} descriptions[] = {
    {"<f4", TANDEM_DTYPE_F32}, {"<f8", TANDEM_DTYPE_F64}, {"<f2", TANDEM_DTYPE_F16},
    {"|i1", TANDEM_DTYPE_I8},  {"<i2", TANDEM_DTYPE_I16}, {"<i4", TANDEM_DTYPE_I32},
    {"<i8", TANDEM_DTYPE_I64}, {"|u1", TANDEM_DTYPE_U8},  {"<u2", TANDEM_DTYPE_U16},
    {"<u4", TANDEM_DTYPE_U32}, {"<u8", TANDEM_DTYPE_U64}, {"|b1", TANDEM_DTYPE_BOOL},
    {"<i1", TANDEM_DTYPE_I8},  {"<u1", TANDEM_DTYPE_U8},  {"<b1", TANDEM_DTYPE_BOOL}};
#define N_DESCRIPTIONS (sizeof(descriptions) / sizeof(descriptions[0]))

/* ---- reading ---- */

/* The dictionary, read from left to right. */
struct header {
    const char *at, *end;
    const char *name;
    struct tandem_error *error;
    bool has_type, has_order, has_shape;
    enum tandem_dtype type;
    bool is_fortran;
    struct tnd_dims shape;
};

static enum tandem_status wrong(const struct header *h, const char *expectation)
{
    const int left = (int)(h->end - h->at < 24 ? h->end - h->at : 24);
    char seen[25] = "";
    for (int i = 0; i < left; i++) {
        seen[i] = h->at[i] < ' ' || h->at[i] > '~' ? '?' : h->at[i];
    }
    return tnd_error_set(h->error, TANDEM_E_FORMAT, h->name, 0, 0,
                         "%s: the .npy header has '%s', expected %s", tnd_short_name(h->name), seen,
                         expectation);
}

static void skip_blanks(struct header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t')) {
        h->at++;
    }
}

/* Takes one character if it is the next behind blanks. */
static bool take(struct header *h, char c)
{
    skip_blanks(h);
    if (h->at < h->end && *h->at == c) {
        h->at++;
        return true;
    }
    return false;
}

static bool take_word(struct header *h, const char *word)
{
    const size_t n = strlen(word);
    skip_blanks(h);
    if ((size_t)(h->end - h->at) < n || memcmp(h->at, word, n) != 0) {
        return false;
    }
    h->at += n;
    return true;
}

/* A text between quotes, without escapes. */
static enum tandem_status take_text(struct header *h, char *out, size_t room)
{
    skip_blanks(h);
    const char *begin = h->at;
    const char quote = h->at < h->end ? *h->at : '\0';
    if (quote != '\'' && quote != '"') {
        return wrong(h, "a text in quotes");
    }
    const char *last = memchr(begin + 1, quote, (size_t)(h->end - begin - 1));
    if (last == NULL || (size_t)(last - begin) > room) {
        return wrong(h, "a short text in quotes");
    }
    memcpy(out, begin + 1, (size_t)(last - begin - 1));
    out[last - begin - 1] = '\0';
    h->at = last + 1;
    return TANDEM_OK;
}

static enum tandem_status take_type(struct header *h)
{
    char text[16];
    skip_blanks(h);
    if (h->at < h->end && *h->at == '[') {
        return tnd_error_set(h->error, TANDEM_E_UNSUPPORTED_BUILD, h->name, 0, 0,
                             "%s: the .npy values are records, expected numbers of one type",
                             tnd_short_name(h->name));
    }
    TND_TRY(take_text(h, text, sizeof(text)));
    for (size_t i = 0; i < N_DESCRIPTIONS; i++) {
        if (strcmp(descriptions[i].text, text) == 0) {
            h->type = descriptions[i].type;
            h->has_type = true;
            return TANDEM_OK;
        }
    }
    for (char *c = text; *c != '\0'; c++) {
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
    return tnd_error_set(h->error, TANDEM_E_UNSUPPORTED_BUILD, h->name, 0, 0,
                         "%s: the .npy type is '%s', expected <f2, <f4, <f8, integers of 1 to 8 "
                         "bytes in little-endian order, or |b1",
                         tnd_short_name(h->name), text);
}

static enum tandem_status take_extent(struct header *h, int64_t *out)
{
    int64_t value = 0;
    const char *begin = h->at;
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
        if (value > (INT64_MAX - 9) / 10) {
            return tnd_error_set(h->error, TANDEM_E_OVERFLOW, h->name, 0, INT64_MAX,
                                 "%s: an extent in the .npy header has %d digits and more, "
                                 "expected at most 9223372036854775807",
                                 tnd_short_name(h->name), (int)(h->at - begin));
        }
        value = 10 * value + (*h->at - '0');
    }
    *out = value;
    return h->at > begin ? TANDEM_OK : wrong(h, "an extent");
}

/* "()", "(3,)", "(3, 4)" */
static enum tandem_status take_shape(struct header *h)
{
    h->shape.n = 0;
    h->has_shape = true;
    if (!take(h, '(')) {
        return wrong(h, "the shape in parentheses");
    }
    while (!take(h, ')')) {
        if (h->shape.n == TANDEM_NET_MAX_DIMS) {
            return tnd_error_set(h->error, TANDEM_E_LIMIT, h->name, h->shape.n + 1,
                                 TANDEM_NET_MAX_DIMS,
                                 "%s: the .npy array has more than %d dimensions, expected at most "
                                 "that",
                                 tnd_short_name(h->name), TANDEM_NET_MAX_DIMS);
        }
        TND_TRY(take_extent(h, &h->shape.dims[h->shape.n]));
        h->shape.n++;
        skip_blanks(h);
        if (!take(h, ',') && (h->at == h->end || *h->at != ')')) {
            return wrong(h, "',' or ')'");
        }
    }
    return TANDEM_OK;
}

static enum tandem_status take_member(struct header *h)
{
    char key[32];
    TND_TRY(take_text(h, key, sizeof(key)));
    if (!take(h, ':')) {
        return wrong(h, "':'");
    }
    if (strcmp(key, "descr") == 0 && !h->has_type) {
        return take_type(h);
    }
    if (strcmp(key, "shape") == 0 && !h->has_shape) {
        return take_shape(h);
    }
    if (strcmp(key, "fortran_order") == 0 && !h->has_order) {
        h->has_order = true;
        h->is_fortran = take_word(h, "True");
        return h->is_fortran || take_word(h, "False") ? TANDEM_OK : wrong(h, "True or False");
    }
    return wrong(h, "descr, fortran_order and shape, once each");
}

static enum tandem_status read_dictionary(struct header *h)
{
    if (!take(h, '{')) {
        return wrong(h, "'{'");
    }
    while (!take(h, '}')) {
        TND_TRY(take_member(h));
        skip_blanks(h);
        if (!take(h, ',') && (h->at == h->end || *h->at != '}')) {
            return wrong(h, "',' or '}'");
        }
    }
    skip_blanks(h);
    if (h->at != h->end) {
        return wrong(h, "nothing behind '}'");
    }
    return h->has_type && h->has_order && h->has_shape
               ? TANDEM_OK
               : wrong(h, "descr, fortran_order and shape, once each");
}

/* Everything in front of the values. */
static enum tandem_status read_header(struct tnd_cursor *cursor, struct header *h)
{
    const uint8_t *bytes;
    TND_TRY(tnd_cursor_take(cursor, MAGIC_BYTES + 2, "the .npy magic word", &bytes, h->error));
    if (memcmp(bytes, MAGIC, MAGIC_BYTES) != 0) {
        return tnd_error_set(h->error, TANDEM_E_FORMAT, h->name, bytes[0], MAGIC[0],
                             "%s: the first bytes are not those of a .npy file, expected "
                             "\\x93NUMPY",
                             tnd_short_name(h->name));
    }
    const int major = bytes[MAGIC_BYTES];
    if (major < 1 || major > 3 || bytes[MAGIC_BYTES + 1] != 0) {
        return tnd_error_set(h->error, TANDEM_E_FORMAT, h->name, major, 3,
                             "%s: the .npy version is %d.%d, expected 1.0, 2.0 or 3.0",
                             tnd_short_name(h->name), major, bytes[MAGIC_BYTES + 1]);
    }
    TND_TRY(tnd_cursor_take(cursor, major == 1 ? 2 : 4, "the length of the .npy header", &bytes,
                            h->error));
    const uint32_t n = major == 1 ? tnd_le16(bytes) : tnd_le32(bytes);
    if (n > MAX_HEADER) {
        return tnd_error_set(h->error, TANDEM_E_FORMAT, h->name, n, MAX_HEADER,
                             "%s: the .npy header has %u bytes, expected at most %d",
                             tnd_short_name(h->name), n, MAX_HEADER);
    }
    TND_TRY(tnd_cursor_take(cursor, n, "the .npy header", &bytes, h->error));
    h->at = (const char *)bytes;
    h->end = h->at + n;
    return read_dictionary(h);
}

/* Values whose first extent runs fastest, into C order. */
static void reorder(const struct tnd_array *array, const uint8_t *bytes)
{
    const size_t size = tandem_dtype_bytes(array->type);
    int64_t at[TANDEM_NET_MAX_DIMS] = {0};
    for (int64_t i = 0; i < array->n; i++) {
        int64_t from = 0;
        for (int k = array->shape.n - 1; k >= 0; k--) {
            from = from * array->shape.dims[k] + at[k];
        }
        memcpy((char *)array->data + (size_t)i * size, bytes + (size_t)from * size, size);
        for (int k = array->shape.n - 1; k >= 0 && ++at[k] == array->shape.dims[k]; k--) {
            at[k] = 0;
        }
    }
}

enum tandem_status tnd_npy_read(const void *bytes, size_t n, const char *name,
                                struct tnd_array **out, struct tandem_error *error)
{
    struct tnd_cursor cursor = {.data = bytes, .n = n, .name = name};
    struct header h = {.name = name, .error = error};
    const uint8_t *values;
    TND_TRY(read_header(&cursor, &h));
    const int64_t count = tnd_dims_values(&h.shape);
    const size_t size = tandem_dtype_bytes(h.type);
    if (count < 0 || count > INT64_MAX / 8) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, name, 0, INT64_MAX / 8,
                             "%s: the .npy array has 2^60 values and more, expected fewer",
                             tnd_short_name(name));
    }
    /* Before there is memory for them: a header of a few bytes may ask for all that there is. */
    TND_TRY(tnd_cursor_take(&cursor, (uint64_t)count * size, "the .npy values", &values, error));
    if (tnd_cursor_left(&cursor) != 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, name, (int64_t)tnd_cursor_left(&cursor), 0,
                             "%s: %zu bytes stand behind the .npy values, expected none",
                             tnd_short_name(name), tnd_cursor_left(&cursor));
    }
    struct tnd_array *array = tnd_array_new(h.type, &h.shape);
    if (array == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, name, count, 0,
                             "%s: no memory for %lld values", tnd_short_name(name),
                             (long long)count);
    }
    if (h.is_fortran && h.shape.n > 1) {
        reorder(array, values);
    } else if (count > 0) {
        memcpy(array->data, values, (size_t)count * size);
    }
    for (int64_t i = 0; h.type == TANDEM_DTYPE_BOOL && i < count; i++) {
        ((uint8_t *)array->data)[i] = ((uint8_t *)array->data)[i] != 0;
    }
    *out = array;
    return TANDEM_OK;
}

enum tandem_status tnd_npy_open(const char *path, struct tnd_array **out,
                                struct tandem_error *error)
{
    struct tnd_file file;
    struct tnd_array *array = NULL;
    TND_TRY(tnd_file_map(path, false, &file, error));
    enum tandem_status status = tnd_npy_read(file.data, file.bytes, path, &array, error);
    if (status == TANDEM_OK) {
        status = tnd_file_check(&file, error);
    }
    tnd_file_close(&file);
    if (status != TANDEM_OK) {
        tnd_array_free(array);
        return status;
    }
    *out = array;
    return TANDEM_OK;
}

/* ---- writing ---- */

static const char *description(enum tandem_dtype type)
{
    for (size_t i = 0; i < N_DESCRIPTIONS; i++) {
        if (descriptions[i].type == type) {
            return descriptions[i].text;
        }
    }
    return NULL;
}

/* The dictionary, filled with blanks so that the values begin at a multiple of ALIGNMENT. */
static void write_header(const struct tnd_array *array, struct tnd_text *out)
{
    struct tnd_text text = TND_TEXT_INIT;
    tnd_text_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                    description(array->type));
    for (int i = 0; i < array->shape.n; i++) {
        tnd_text_printf(&text, "%s%lld%s", i > 0 ? " " : "", (long long)array->shape.dims[i],
                        i + 1 < array->shape.n || i == 0 ? "," : "");
    }
    tnd_text_add(&text, "), }");
    const size_t used = MAGIC_BYTES + 4 + text.n + 1;
    tnd_text_add_repeat(&text, ' ', (ALIGNMENT - used % ALIGNMENT) % ALIGNMENT);
    tnd_text_add_char(&text, '\n');
    const char lead[] = {1, 0, (char)(text.n & 255), (char)(text.n >> 8)};
    tnd_text_add_bytes(out, MAGIC, MAGIC_BYTES);
    tnd_text_add_bytes(out, lead, sizeof(lead));
    tnd_text_add_bytes(out, tnd_text_string(&text), text.n);
    out->failed = out->failed || text.failed;
    tnd_text_fini(&text);
}

enum tandem_status tnd_npy_header(const char *path, const struct tnd_array *array,
                                  struct tnd_text *out, struct tandem_error *error)
{
    if (description(array->type) == NULL) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, path, 0, 0,
                             "%s: the values are %s, expected a type that NumPy has",
                             tnd_short_name(path), tandem_dtype_name(array->type));
    }
    write_header(array, out);
    return !out->failed ? TANDEM_OK
                        : tnd_error_set(error, TANDEM_E_MEMORY, path, 0, 0,
                                        "%s: no memory for the header", tnd_short_name(path));
}

enum tandem_status tnd_npy_save(const char *path, const struct tnd_array *array,
                                struct tandem_error *error)
{
    struct tnd_text header = TND_TEXT_INIT;
    struct tnd_file_stream stream;
    enum tandem_status status = tnd_npy_header(path, array, &header, error);
    if (status == TANDEM_OK) {
        status = tnd_file_stream_open(path, false, &stream, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_file_stream_write(&stream, header.bytes, header.n, error);
        if (status == TANDEM_OK) {
            status = tnd_file_stream_write(
                &stream, array->data, (size_t)array->n * tandem_dtype_bytes(array->type), error);
        }
        if (status == TANDEM_OK) {
            status = tnd_file_stream_commit(&stream, error);
        } else {
            tnd_file_stream_abandon(&stream);
        }
    }
    tnd_text_fini(&header);
    return status;
}
