/* SPDX-License-Identifier: MIT
 * ONNX tensors: values in the file as raw bytes or as lists of numbers, or in another file. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "formats/onnx_internal.h"

/* Field numbers of TensorProto. */
enum {
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_SEGMENT = 3,
    TENSOR_FLOATS = 4,
    TENSOR_INT32S = 5,
    TENSOR_STRINGS = 6,
    TENSOR_INT64S = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_DOUBLES = 10,
    TENSOR_UINT64S = 11,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14
};
enum { LOCATION_HERE = 0, LOCATION_EXTERNAL = 1 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
#define MAX_FILES 1024

const char *tnd_onnx_type_name(int32_t type)
{
    switch (type) {
    case TND_ONNX_UNDEFINED:
        return "undefined";
#define TYPE_TEXT(name, number, text, bits)                                                        \
    case number:                                                                                   \
        return text;
        TND_ONNX_TYPE_LIST(TYPE_TEXT)
#undef TYPE_TEXT
    default:
        return NULL;
    }
}

/* Bits per value; 0 for strings and unknown types. */
static unsigned type_bits(int32_t type)
{
    switch (type) {
#define TYPE_BITS(name, number, text, bits)                                                        \
    case number:                                                                                   \
        return bits;
        TND_ONNX_TYPE_LIST(TYPE_BITS)
#undef TYPE_BITS
    default:
        return 0;
    }
}

static enum tandem_status wrong(const struct tnd_onnx_memory *memory,
                                const struct tnd_onnx_tensor *tensor, const char *what, int64_t got,
                                int64_t expected, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, tensor->name, got, expected,
                         "%s: tensor '%.60s': %s is %lld, expected %lld",
                         tnd_short_name(memory->file.name), tensor->name, what, (long long)got,
                         (long long)expected);
}

/* ---- external data ---- */

/* Location of a tensor's external data. */
struct place {
    const char *location;
    int64_t offset;
    int64_t length; /* -1: not stated */
};

static enum tandem_status place_number(const struct tnd_onnx_memory *memory,
                                       const struct tnd_onnx_tensor *tensor, const char *key,
                                       const char *value, int64_t *out, struct tandem_error *error)
{
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, tensor->name, 0, 0,
                             "%s: tensor '%.60s': external data: %s is '%.40s', expected a number "
                             "of bytes",
                             tnd_short_name(memory->file.name), tensor->name, key, value);
    }
    *out = number;
    return TANDEM_OK;
}

static enum tandem_status read_entry(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                     const struct tnd_onnx_tensor *tensor, struct place *place,
                                     struct tandem_error *error)
{
    const char *key = "";
    const char *value = "";
    while (message.at < message.n) {
        struct tnd_wire_field field;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number == ENTRY_KEY || field.number == ENTRY_VALUE) {
            TND_TRY(tnd_onnx_text(memory, &message, &field, "external data",
                                  field.number == ENTRY_KEY ? &key : &value, error));
        }
    }
    if (strcmp(key, "location") == 0) {
        place->location = value;
    } else if (strcmp(key, "offset") == 0) {
        return place_number(memory, tensor, key, value, &place->offset, error);
    } else if (strcmp(key, "length") == 0) {
        return place_number(memory, tensor, key, value, &place->length, error);
    }
    return TANDEM_OK; /* checksums are not verified */
}

/* Whether a path stays below the model's folder. */
static bool stays_inside(const char *location)
{
    if (location[0] == '\0' || location[0] == '/' || strlen(location) >= PATH_MAX / 2) {
        return false;
    }
    for (const char *part = location; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0')) {
            return false;
        }
    }
    return true;
}

static enum tandem_status open_file(struct tnd_onnx_memory *memory, const char *location,
                                    struct tnd_onnx_file *out, struct tandem_error *error)
{
    char wanted[2 * PATH_MAX];
    char real[PATH_MAX];
    const size_t n_folder = strlen(memory->folder);
    (void)snprintf(wanted, sizeof(wanted), "%s/%s", memory->folder, location);
    if (realpath(wanted, real) == NULL) {
        return tnd_error_set(error, TANDEM_E_FILE, memory->file.name, errno, 0,
                             "%s: external data: %.200s: %s", tnd_short_name(memory->file.name),
                             wanted, strerror(errno));
    }
    if (strncmp(real, memory->folder, n_folder) != 0 || real[n_folder] != '/') {
        return tnd_error_set(error, TANDEM_E_FILE, memory->file.name, 0, 0,
                             "%s: external data: '%.60s' is a link that leads out of the model's "
                             "folder",
                             tnd_short_name(memory->file.name), location);
    }
    struct tnd_file file;
    TND_TRY(tnd_file_map(real, false, &file, error));
    *out = (struct tnd_onnx_file){.location = tnd_strdup(location), .file = file};
    return TANDEM_OK;
}

static enum tandem_status find_file(struct tnd_onnx_memory *memory,
                                    const struct tnd_onnx_tensor *tensor, const char *location,
                                    const struct tnd_file **out, struct tandem_error *error)
{
    if (memory->folder == NULL || !stays_inside(location)) {
        return tnd_error_set(
            error, TANDEM_E_FORMAT, tensor->name, 0, 0,
            "%s: tensor '%.60s': its data is in another file, '%.60s': expected %s",
            tnd_short_name(memory->file.name), tensor->name, location,
            memory->folder == NULL ? "all data in this one" : "a name inside the model's folder");
    }
    for (int i = 0; i < memory->n_files; i++) {
        if (strcmp(memory->files[i].location, location) == 0) {
            *out = &memory->files[i].file;
            return TANDEM_OK;
        }
    }
    struct tnd_onnx_file file;
    TND_TRY(open_file(memory, location, &file, error));
    const enum tandem_status status =
        file.location == NULL
            ? TANDEM_E_MEMORY
            : tnd_vector_insert(&memory->files_vector, sizeof(file), MAX_FILES, memory->n_files);
    if (status != TANDEM_OK) {
        tnd_file_close(&file.file);
        tnd_free(file.location);
        return tnd_error_set(error, status, memory->file.name, memory->n_files, MAX_FILES,
                             "%s: external data in more than %d files, or no memory",
                             tnd_short_name(memory->file.name), MAX_FILES);
    }
    memory->files[memory->n_files - 1] = file;
    *out = &memory->files[memory->n_files - 1].file;
    return TANDEM_OK;
}

static enum tandem_status read_external(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                        struct tnd_onnx_tensor *tensor, struct tandem_error *error)
{
    struct place place = {.location = "", .length = -1};
    while (message.at < message.n) {
        struct tnd_wire_field field;
        struct tnd_cursor entry;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number == TENSOR_EXTERNAL) {
            TND_TRY(tnd_onnx_inside(memory, &message, &field, "a tensor", &entry, error));
            TND_TRY(read_entry(memory, entry, tensor, &place, error));
        }
    }
    const struct tnd_file *file = NULL;
    TND_TRY(find_file(memory, tensor, place.location, &file, error));
    if (place.length >= 0 && (uint64_t)place.length != tensor->bytes) {
        return wrong(memory, tensor, "the length of its external data, in bytes,", place.length,
                     (int64_t)tensor->bytes, error);
    }
    if ((uint64_t)place.offset > file->bytes ||
        tensor->bytes > file->bytes - (size_t)place.offset) {
        return tnd_error_set(
            error, TANDEM_E_TRUNCATED, tensor->name, place.offset, (int64_t)file->bytes,
            "%s: tensor '%.60s': %zu bytes at %lld of '%.60s', which has %zu bytes",
            tnd_short_name(memory->file.name), tensor->name, tensor->bytes, (long long)place.offset,
            place.location, file->bytes);
    }
    tensor->data = file->data + place.offset;
    return TANDEM_OK;
}

/* ---- data in the file ---- */

/* The field that holds values of a type if they are not raw, by onnx.proto. */
struct typed_field {
    uint32_t number;
    uint32_t wire;
    size_t width; /* used low bytes of each number */
};

static struct typed_field typed_field_of(enum tnd_onnx_type type)
{
    switch (type) {
    case TND_ONNX_F32:
    case TND_ONNX_COMPLEX64:
        return (struct typed_field){TENSOR_FLOATS, TND_WIRE_4_BYTES, 4};
    case TND_ONNX_F64:
    case TND_ONNX_COMPLEX128:
        return (struct typed_field){TENSOR_DOUBLES, TND_WIRE_8_BYTES, 8};
    case TND_ONNX_I64:
        return (struct typed_field){TENSOR_INT64S, TND_WIRE_VARINT, 8};
    case TND_ONNX_U32:
    case TND_ONNX_U64:
        return (struct typed_field){TENSOR_UINT64S, TND_WIRE_VARINT, type_bits(type) / 8};
    default: {
        const unsigned bits = type_bits(type);
        return (struct typed_field){TENSOR_INT32S, TND_WIRE_VARINT, bits < 8 ? 1 : bits / 8};
    }
    }
}

static enum tandem_status read_strings(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                       struct tnd_onnx_tensor *tensor, int n,
                                       struct tandem_error *error)
{
    struct tnd_onnx_string *strings = NULL;
    if (n != tensor->n_values) {
        return wrong(memory, tensor, "the number of its texts", n, tensor->n_values, error);
    }
    TND_TRY(tnd_onnx_new(memory, n, sizeof(strings[0]), &strings, error));
    for (int i = 0; message.at < message.n;) {
        struct tnd_wire_field field;
        struct tnd_cursor inside;
        TND_TRY(tnd_wire_next(&message, &field, error));
        if (field.number == TENSOR_STRINGS) {
            TND_TRY(tnd_onnx_inside(memory, &message, &field, "a tensor", &inside, error));
            TND_ASSERT(i < n);
            strings[i++] = (struct tnd_onnx_string){field.bytes, field.n};
        }
    }
    tensor->strings = strings;
    return TANDEM_OK;
}

static enum tandem_status read_numbers(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                       struct tnd_onnx_tensor *tensor, struct tandem_error *error)
{
    const struct typed_field typed = typed_field_of(tensor->type);
    int64_t n = 0;
    if (tensor->type == TND_ONNX_F6E2M3 || tensor->type == TND_ONNX_F6E3M2) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, tensor->name, 0, 0,
                             "%s: tensor '%.60s': a list of %s, expected raw bytes",
                             tnd_short_name(memory->file.name), tensor->name,
                             tnd_onnx_type_name((int32_t)tensor->type));
    }
    TND_TRY(tnd_onnx_numbers(memory, message, typed.number, typed.wire, typed.width, &tensor->data,
                             &n, error));
    const int64_t expected = (int64_t)(tensor->bytes / typed.width);
    return n == expected ? TANDEM_OK
                         : wrong(memory, tensor, "the count of its numbers", n, expected, error);
}

/* ---- the message ---- */

static enum tandem_status count_values(const struct tnd_onnx_memory *memory,
                                       struct tnd_onnx_tensor *tensor, struct tandem_error *error)
{
    int64_t n = 1;
    for (int i = 0; i < tensor->n_dims; i++) {
        if (tensor->dims[i] < 0) {
            return wrong(memory, tensor, "an extent", tensor->dims[i], 0, error);
        }
        if (!tnd_mul_i64(n, tensor->dims[i], &n)) {
            n = -1;
            break;
        }
    }
    const unsigned bits = type_bits(tensor->type);
    if (n < 0 || n > INT64_MAX / 256) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, tensor->name, n, INT64_MAX / 256,
                             "%s: tensor '%.60s': its number of values does not fit",
                             tnd_short_name(memory->file.name), tensor->name);
    }
    tensor->n_values = n;
    tensor->bytes = ((size_t)n * bits + 7) / 8;
    return TANDEM_OK;
}

static enum tandem_status check_type(const struct tnd_onnx_memory *memory,
                                     const struct tnd_onnx_tensor *tensor, int64_t type,
                                     struct tandem_error *error)
{
    const bool is_known = type > TND_ONNX_UNDEFINED && type <= TND_ONNX_LAST_TYPE;
    return is_known ? TANDEM_OK
                    : tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, tensor->name, type,
                                    TND_ONNX_LAST_TYPE,
                                    "%s: tensor '%.60s' has the type number %lld, expected 1 to %d",
                                    tnd_short_name(memory->file.name), tensor->name,
                                    (long long)type, TND_ONNX_LAST_TYPE);
}

/* A TensorProto without its values. */
struct header {
    int64_t type;
    int64_t location;
    const uint8_t *raw; /* NULL: no field of that name */
    size_t n_raw;
};

static enum tandem_status read_header(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                      struct tnd_onnx_tensor *tensor, struct header *header,
                                      struct tandem_error *error)
{
    while (message.at < message.n) {
        struct tnd_wire_field field;
        struct tnd_cursor inside;
        TND_TRY(tnd_wire_next(&message, &field, error));
        switch (field.number) {
        case TENSOR_NAME:
            TND_TRY(tnd_onnx_text(memory, &message, &field, "a tensor", &tensor->name, error));
            break;
        case TENSOR_TYPE:
            TND_TRY(tnd_onnx_number(memory, &message, &field, "a tensor", &header->type, error));
            break;
        case TENSOR_LOCATION:
            TND_TRY(
                tnd_onnx_number(memory, &message, &field, "a tensor", &header->location, error));
            break;
        case TENSOR_RAW:
            TND_TRY(tnd_onnx_inside(memory, &message, &field, "a tensor", &inside, error));
            header->raw = field.bytes;
            header->n_raw = field.n;
            break;
        case TENSOR_SEGMENT:
            return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, tensor->name, 0, 0,
                                 "%s: a tensor in segments is not supported",
                                 tnd_short_name(memory->file.name));
        default:
            break;
        }
    }
    return TANDEM_OK;
}

static enum tandem_status read_dims(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                    struct tnd_onnx_tensor *tensor, struct tandem_error *error)
{
    const uint8_t *bytes = NULL;
    int64_t *dims = NULL;
    int64_t n = 0;
    TND_TRY(tnd_onnx_numbers(memory, message, TENSOR_DIMS, TND_WIRE_VARINT, 8, &bytes, &n, error));
    if (n > TND_ONNX_MAX_DIMS) {
        return wrong(memory, tensor, "its number of dimensions", n, TND_ONNX_MAX_DIMS, error);
    }
    TND_TRY(tnd_onnx_new(memory, n, sizeof(dims[0]), &dims, error));
    for (int64_t i = 0; i < n; i++) {
        dims[i] = (int64_t)tnd_le64(bytes + 8 * i);
    }
    tensor->dims = dims;
    tensor->n_dims = (int)n;
    return TANDEM_OK;
}

enum tandem_status tnd_onnx_tensor(struct tnd_onnx_memory *memory, struct tnd_cursor message,
                                   struct tnd_onnx_tensor *out, struct tandem_error *error)
{
    struct tnd_onnx_tensor tensor = {.name = ""};
    struct header header = {0};
    struct tnd_onnx_counts counts;
    TND_TRY(read_header(memory, message, &tensor, &header, error));
    TND_TRY(check_type(memory, &tensor, header.type, error));
    tensor.type = (enum tnd_onnx_type)header.type;
    TND_TRY(read_dims(memory, message, &tensor, error));
    TND_TRY(count_values(memory, &tensor, error));
    TND_TRY(tnd_onnx_count(memory, message, &counts, error));
    if (header.location != LOCATION_HERE && header.location != LOCATION_EXTERNAL) {
        return wrong(memory, &tensor, "the location of its data", header.location,
                     LOCATION_EXTERNAL, error);
    }
    if (tensor.type == TND_ONNX_STRING) {
        TND_TRY(read_strings(memory, message, &tensor, counts.of[TENSOR_STRINGS], error));
    } else if (header.location == LOCATION_EXTERNAL) {
        TND_TRY(read_external(memory, message, &tensor, error));
    } else if (header.raw != NULL) {
        if (header.n_raw != tensor.bytes) {
            return wrong(memory, &tensor, "the number of its raw bytes", (int64_t)header.n_raw,
                         (int64_t)tensor.bytes, error);
        }
        tensor.data = header.raw;
    } else {
        TND_TRY(read_numbers(memory, message, &tensor, error));
    }
    *out = tensor;
    return TANDEM_OK;
}
