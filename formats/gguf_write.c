/* SPDX-License-Identifier: MIT
 * Writer of GGUF files, version 3. The head (values, descriptions of tensors) is made in memory,
 * the data streams behind it, converted by several threads. Format: see gguf.h. */
#include <sched.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/file_stream.h"
#include "base/options.h"
#include "base/text.h"
#include "formats/gguf.h"
#include "formats/gguf_rows.h"
#include "formats/importance.h"
#include "formats/llama_tensors.h"
#include "formats/mix.h"

#define ALIGNMENT            TND_GGUF_DEFAULT_ALIGNMENT
#define BUFFER_BYTES         ((size_t)8 << 20) /* written at once */
#define QUANTIZATION_VERSION 2                 /* of the block layouts in tandem/type-list.h */

struct writer {
    const tandem_source *source;
    struct tandem_save_options options;
    struct tnd_gguf_rows *rows;    /* one a tensor */
    bool reorders;                 /* rotated rows from halves to adjacent pairs */
    struct tandem_hparams hparams; /* where rows are reordered: checked against all tensors */
    bool states_type;              /* whether general.file_type is written again */
    bool adds_quantization;        /* general.quantization_version is missing */
    struct tnd_mix mix;            /* where options.mix names one */
    tandem_source *importance;     /* or NULL */
    int64_t all_bytes;
    int64_t done_bytes;
};

/* ---- the head ---- */

static void add_number(struct tnd_text *head, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        tnd_text_add_char(head, (char)(value >> (8 * i) & 0xff));
    }
}

static void add_text(struct tnd_text *head, const char *text, size_t n)
{
    add_number(head, n, 8);
    tnd_text_add_bytes(head, text, n);
}

static void add_key(struct tnd_text *head, const char *key, uint32_t type)
{
    add_text(head, key, strlen(key));
    add_number(head, type, 4);
}

/* The type of a value that came from no GGUF file. */
static uint32_t type_for(const struct tnd_source_value *value)
{
    if (value->gguf_type >= 0) {
        return (uint32_t)value->gguf_type;
    }
    if (value->kind == TND_VALUE_INTEGER) {
        return value->integer >= 0 && value->integer <= UINT32_MAX ? TND_GGUF_U32 : TND_GGUF_I64;
    }
    return value->kind == TND_VALUE_NUMBER ? TND_GGUF_F32 : TND_GGUF_TEXT;
}

static void add_value(struct tnd_text *head, const struct tnd_source_value *value)
{
    const uint32_t type = type_for(value);
    add_key(head, value->key, type);
    if (value->kind == TND_VALUE_TEXT) {
        add_text(head, value->text, value->text_bytes);
    } else if (value->kind == TND_VALUE_ARRAY) {
        add_number(head, value->array->item_type, 4);
        add_number(head, (uint64_t)value->array->count, 8);
        tnd_text_add_bytes(head, (const char *)value->array->bytes, value->array->n_bytes);
    } else if (type == TND_GGUF_F32) {
        const float single = (float)value->number;
        uint32_t bits;
        memcpy(&bits, &single, sizeof(bits));
        add_number(head, bits, 4);
    } else if (type == TND_GGUF_F64) {
        uint64_t bits;
        memcpy(&bits, &value->number, sizeof(bits));
        add_number(head, bits, 8);
    } else {
        add_number(head, (uint64_t)value->integer, (int)tnd_gguf_type_bytes(type));
    }
}

/* Values that describe the file itself and not the model: they are not copied. */
static bool is_left_out(const struct writer *writer, const char *key)
{
    return strcmp(key, "general.alignment") == 0 || strncmp(key, "split.", 6) == 0 ||
           strcmp(key, "general.text_of") == 0 ||
           (writer->reorders && strcmp(key, "tandem.rope.pairs") == 0) ||
           (writer->options.converts && strcmp(key, "general.file_type") == 0);
}

/* Numbers of general.file_type for "mostly this type"; -1: none is fixed, the value is left out. */
static int file_type_of(enum tandem_type type)
{
    static const struct {
        enum tandem_type type;
        int number;
    } rows[] = {
        {TANDEM_TYPE_F32, 0},      {TANDEM_TYPE_F16, 1},      {TANDEM_TYPE_Q4_0, 2},
        {TANDEM_TYPE_Q4_1, 3},     {TANDEM_TYPE_Q8_0, 7},     {TANDEM_TYPE_Q5_0, 8},
        {TANDEM_TYPE_Q5_1, 9},     {TANDEM_TYPE_Q2_K, 10},    {TANDEM_TYPE_Q3_K, 11},
        {TANDEM_TYPE_Q4_K, 14},    {TANDEM_TYPE_Q5_K, 16},    {TANDEM_TYPE_Q6_K, 18},
        {TANDEM_TYPE_BF16, 32},    {TANDEM_TYPE_IQ4_NL, 25},  {TANDEM_TYPE_IQ4_XS, 30},
        {TANDEM_TYPE_MXFP4, 38},   {TANDEM_TYPE_IQ2_XXS, 19}, {TANDEM_TYPE_IQ2_XS, 20},
        {TANDEM_TYPE_IQ3_XXS, 23}, {TANDEM_TYPE_IQ1_S, 24},   {TANDEM_TYPE_IQ3_S, 26},
        {TANDEM_TYPE_IQ2_S, 28},   {TANDEM_TYPE_IQ1_M, 31},   {TANDEM_TYPE_TQ1_0, 36},
        {TANDEM_TYPE_TQ2_0, 37},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].type == type) {
            return rows[i].number;
        }
    }
    return -1;
}

static void add_values(struct tnd_text *head, const struct writer *writer)
{
    for (size_t i = 0; i < writer->source->n_values; i++) {
        if (!is_left_out(writer, writer->source->values[i].key)) {
            add_value(head, &writer->source->values[i]);
        }
    }
    if (writer->states_type) {
        add_key(head, "general.file_type", TND_GGUF_U32);
        const int number = writer->options.mix != NULL ? writer->mix.file_type
                                                       : file_type_of(writer->options.type);
        add_number(head, (uint64_t)number, 4);
    }
    if (writer->adds_quantization) {
        add_key(head, "general.quantization_version", TND_GGUF_U32);
        add_number(head, QUANTIZATION_VERSION, 4);
    }
}

static uint64_t count_values(const struct writer *writer)
{
    uint64_t n = (writer->states_type ? 1 : 0) + (writer->adds_quantization ? 1 : 0);
    for (size_t i = 0; i < writer->source->n_values; i++) {
        n += is_left_out(writer, writer->source->values[i].key) ? 0 : 1;
    }
    return n;
}

static size_t data_bytes(const struct tnd_gguf_rows *rows)
{
    return rows->to_bytes * (size_t)rows->n_rows;
}

static size_t padding(size_t bytes)
{
    return (ALIGNMENT - bytes % ALIGNMENT) % ALIGNMENT;
}

static enum tandem_status make_head(const struct writer *writer, struct tnd_text *head,
                                    struct tandem_error *error)
{
    uint64_t offset = 0;
    tnd_text_add(head, "GGUF");
    add_number(head, TND_GGUF_VERSION, 4);
    add_number(head, writer->source->n_tensors, 8);
    add_number(head, count_values(writer), 8);
    add_values(head, writer);
    for (size_t i = 0; i < writer->source->n_tensors; i++) {
        const struct tandem_source_tensor *tensor = &writer->source->tensors[i];
        add_text(head, tensor->name, strlen(tensor->name));
        add_number(head, (uint64_t)tensor->n_dims, 4);
        for (int d = 0; d < tensor->n_dims; d++) {
            add_number(head, (uint64_t)tensor->ne[d], 8);
        }
        add_number(head, writer->rows[i].type, 4);
        add_number(head, offset, 8);
        offset += data_bytes(&writer->rows[i]);
        offset += padding((size_t)offset);
    }
    tnd_text_add_repeat(head, '\0', padding(head->n));
    if (head->failed) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "GGUF", (int64_t)head->n, 0,
                             "GGUF: no memory for a head of more than %zu bytes", head->n);
    }
    return TANDEM_OK;
}

/* ---- what to write ---- */

static bool text_is(const tandem_source *source, const char *key, const char *wanted)
{
    const char *text;
    return tandem_source_text(source, key, &text) && strcmp(text, wanted) == 0;
}

static bool has_part(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

/* Heads of a tensor whose rows must be reordered; 0: it stays. */
static int64_t heads_of(const struct writer *writer, const char *name)
{
    return !writer->reorders            ? 0
           : has_part(name, ".attn_q.") ? writer->hparams.heads
           : has_part(name, ".attn_k.") ? writer->hparams.kv_heads
                                        : 0;
}

/* Types that lose too much of what matters without an importance matrix, as llama-quantize has it.
 * IQ3_XXS is searched well enough here. */
static bool needs_importance(const struct tnd_gguf_rows *rows)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_IQ2_XXS, TANDEM_TYPE_IQ2_XS,
                                             TANDEM_TYPE_IQ2_S, TANDEM_TYPE_IQ1_S,
                                             TANDEM_TYPE_IQ1_M};
    bool is_coarse = false;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        is_coarse = is_coarse || rows->type == types[i];
    }
    return is_coarse && rows->type != rows->tensor->type &&
           !has_part(rows->tensor->name, "token_embd.weight") &&
           strcmp(rows->tensor->name, "output.weight") != 0;
}

static enum tandem_status check_importance(const struct writer *writer,
                                           const struct tnd_gguf_rows *rows,
                                           struct tandem_error *error)
{
    float *values = NULL;
    if (writer->importance != NULL) {
        TND_TRY(tnd_importance_of(writer->importance, rows->tensor, &values, error));
    }
    const bool is_missing = values == NULL && needs_importance(rows);
    tnd_free(values);
    return !is_missing ? TANDEM_OK
                       : tnd_error_set(error, TANDEM_E_ARGUMENT, rows->tensor->name, rows->type, 0,
                                       "%.80s: %s needs an importance matrix of this tensor "
                                       "(tandem-llama convert --imatrix)",
                                       rows->tensor->name, tandem_type_name(rows->type));
}

static enum tandem_status plan_tensors(struct writer *writer, struct tandem_error *error)
{
    bool is_quantized = false;
    bool has_type = false;
    for (size_t i = 0; i < writer->source->n_tensors; i++) {
        const struct tandem_source_tensor *tensor = &writer->source->tensors[i];
        const size_t n = strlen(tensor->name);
        if (n < 1 || n >= TND_GGUF_MAX_NAME) { /* other readers want space for a zero byte */
            return tnd_error_set(error, TANDEM_E_ARGUMENT, tensor->name, (int64_t)n,
                                 TND_GGUF_MAX_NAME - 1,
                                 "%.100s: the name has %zu bytes, GGUF allows 1 to %d",
                                 tensor->name, n, TND_GGUF_MAX_NAME - 1);
        }
        const enum tandem_type type =
            writer->options.mix != NULL ? tnd_mix_type(&writer->mix, tensor) : writer->options.type;
        TND_TRY(tnd_gguf_rows_plan(tensor, writer->options.converts, type,
                                   heads_of(writer, tensor->name), &writer->rows[i], error));
        TND_TRY(check_importance(writer, &writer->rows[i], error));
        int64_t bytes = (int64_t)data_bytes(&writer->rows[i]);
        if (bytes < 0 || !tnd_add_i64(writer->all_bytes, bytes, &writer->all_bytes)) {
            return tnd_error_set(error, TANDEM_E_OVERFLOW, tensor->name, 0, 0,
                                 "%.100s: the bytes of all tensors do not fit into 63 bits",
                                 tensor->name);
        }
        is_quantized = is_quantized || tandem_type_is_quantized(writer->rows[i].type);
        has_type = has_type || writer->rows[i].type == writer->options.type;
    }
    writer->states_type =
        writer->options.converts &&
        (writer->options.mix != NULL || (has_type && file_type_of(writer->options.type) >= 0));
    writer->adds_quantization =
        is_quantized && tnd_source_value_of(writer->source, "general.quantization_version",
                                            TND_VALUE_INTEGER) == NULL;
    return TANDEM_OK;
}

/* ---- the data ---- */

static enum tandem_status report(struct writer *writer, const char *name, size_t bytes,
                                 struct tandem_error *error)
{
    writer->done_bytes += (int64_t)bytes;
    if (writer->options.progress == NULL ||
        writer->options.progress(writer->options.user, name, writer->done_bytes,
                                 writer->all_bytes)) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_CANCELLED, name, writer->done_bytes, writer->all_bytes,
                         "GGUF: writing was cancelled at %.80s", name);
}

static enum tandem_status write_rows(struct writer *writer, const struct tnd_gguf_rows *rows,
                                     unsigned char *buffer, struct tnd_file_stream *stream,
                                     struct tandem_error *error)
{
    const char zeros[ALIGNMENT] = {0};
    float *importance = NULL;
    if (writer->importance != NULL) {
        TND_TRY(tnd_importance_of(writer->importance, rows->tensor, &importance, error));
    }
    struct tnd_gguf_rows weighted = *rows;
    weighted.importance = importance;
    enum tandem_status status = TANDEM_OK;
    int64_t rows_in_piece = (int64_t)(BUFFER_BYTES / rows->to_bytes);
    rows_in_piece = rows_in_piece < 1 ? 1 : rows_in_piece;
    for (int64_t first = 0; first < rows->n_rows && status == TANDEM_OK; first += rows_in_piece) {
        const int64_t left = rows->n_rows - first;
        const int64_t count = left < rows_in_piece ? left : rows_in_piece;
        const size_t bytes = rows->to_bytes * (size_t)count;
        status =
            tnd_gguf_rows_make(&weighted, first, count, writer->options.threads, buffer, error);
        if (status == TANDEM_OK) {
            status = tnd_file_stream_write(stream, buffer, bytes, error);
        }
        if (status == TANDEM_OK) {
            status = report(writer, rows->tensor->name, bytes, error);
        }
    }
    tnd_free(importance);
    TND_TRY(status);
    return tnd_file_stream_write(stream, zeros, padding(data_bytes(rows)), error);
}

static enum tandem_status write_data(struct writer *writer, struct tnd_file_stream *stream,
                                     struct tandem_error *error)
{
    size_t buffer_bytes = BUFFER_BYTES; /* a row may be longer */
    for (size_t i = 0; i < writer->source->n_tensors; i++) {
        const size_t row = writer->rows[i].to_bytes;
        buffer_bytes = row > buffer_bytes ? row : buffer_bytes;
    }
    unsigned char *buffer = tnd_alloc(buffer_bytes);
    if (buffer == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "GGUF", (int64_t)buffer_bytes, 0,
                             "GGUF: no memory for %zu bytes of rows", buffer_bytes);
    }
    enum tandem_status status = TANDEM_OK;
    for (size_t i = 0; i < writer->source->n_tensors && status == TANDEM_OK; i++) {
        status = write_rows(writer, &writer->rows[i], buffer, stream, error);
    }
    tnd_free(buffer);
    return status;
}

static enum tandem_status write_file(struct writer *writer, const char *path,
                                     struct tandem_error *error)
{
    struct tnd_text head = TND_TEXT_INIT;
    struct tnd_file_stream stream;
    TND_TRY(plan_tensors(writer, error));
    enum tandem_status status = make_head(writer, &head, error);
    if (status == TANDEM_OK) {
        status = tnd_file_stream_open(path, false, &stream, error);
        if (status == TANDEM_OK) {
            status = tnd_file_stream_write(&stream, head.bytes, head.n, error);
            if (status == TANDEM_OK) {
                status = write_data(writer, &stream, error);
                const enum tandem_status whole = tnd_source_check(writer->source, error);
                status = whole != TANDEM_OK ? whole : status;
            }
            if (status == TANDEM_OK) {
                status = tnd_file_stream_commit(&stream, error);
            } else {
                tnd_file_stream_abandon(&stream);
            }
        }
    }
    tnd_text_fini(&head);
    return status;
}

static int usable_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

enum tandem_status tandem_source_save_gguf(const tandem_source *source, const char *path,
                                           const struct tandem_save_options *options,
                                           struct tandem_error *error)
{
    struct writer writer = {.source = source, .options = TANDEM_SAVE_OPTIONS_INIT};
    if (source == NULL || path == NULL) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "GGUF", 0, 0,
                             "tandem_source_save_gguf: source and path must not be NULL");
    }
    if (options != NULL) {
        TND_TRY(tnd_options_read(options, "tandem_save_options", &writer.options,
                                 sizeof(writer.options), error));
    }
    if (writer.options.converts &&
        (!tandem_type_is_valid(writer.options.type) || writer.options.type == TANDEM_TYPE_I32)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "GGUF", writer.options.type, 0,
                             "tandem_source_save_gguf: expected a type of weights, got %s",
                             tandem_type_name(writer.options.type));
    }
    writer.options.converts = writer.options.converts || writer.options.mix != NULL;
    if (writer.options.threads <= 0) {
        writer.options.threads = usable_cpus();
    }
    const char *architecture = "";
    (void)tandem_source_text(source, "general.architecture", &architecture);
    const struct tnd_llama_architecture *a = tnd_llama_architecture_of(architecture);
    writer.reorders = text_is(source, "tandem.rope.pairs", "halves") && a != NULL &&
                      a->pairs == TANDEM_ROPE_ADJACENT;
    if (writer.reorders) {
        TND_TRY(tandem_source_hparams(source, &writer.hparams, error));
        writer.reorders = writer.hparams.n_rot == writer.hparams.head_size; /* else they stay */
    }
    writer.rows = tnd_calloc(source->n_tensors, sizeof(writer.rows[0]));
    if (writer.rows == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "GGUF", (int64_t)source->n_tensors, 0,
                             "GGUF: no memory for a plan of %zu tensors", source->n_tensors);
    }
    enum tandem_status status = TANDEM_OK;
    if (writer.options.importance != NULL) {
        status = tnd_importance_open(writer.options.importance, &writer.importance, error);
    }
    if (status == TANDEM_OK && writer.options.mix != NULL) {
        status =
            tnd_mix_find(source, writer.options.mix, writer.importance != NULL, &writer.mix, error);
    }
    if (status == TANDEM_OK) {
        status = write_file(&writer, path, error);
    }
    tandem_source_close(writer.importance);
    tnd_free(writer.rows);
    return status;
}
