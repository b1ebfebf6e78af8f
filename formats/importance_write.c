/* SPDX-License-Identifier: MIT
 * Writer of importance matrices, in both forms that importance.c reads. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file_stream.h"
#include "base/text.h"
#include "base/tnd_status.h"
#include "formats/gguf.h"
#include "formats/importance.h"

static enum tandem_status no_memory(const char *path, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, path, 0, 0, "no memory for an importance matrix");
}

static void add_number(struct tnd_text *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        tnd_text_add_char(out, (char)(value >> (8 * i) & 0xff));
    }
}

static void add_float(struct tnd_text *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    add_number(out, bits, 4);
}

static int64_t chunks_of(const struct tnd_importance_sums *sums, int64_t chunk)
{
    int64_t most = 0;
    for (int64_t m = 0; m < sums->matrices; m++) {
        most = sums->tokens[m] > most ? sums->tokens[m] : most;
    }
    return (most + chunk - 1) / chunk;
}

/* ---- the older form: means, times the number of chunks ---- */

static void add_entry(struct tnd_text *out, const struct tnd_importance_sums *sums, int64_t chunk)
{
    const int64_t calls = chunks_of(sums, chunk);
    add_number(out, strlen(sums->name), 4);
    tnd_text_add(out, sums->name);
    add_number(out, (uint64_t)calls, 4);
    add_number(out, (uint64_t)(sums->columns * sums->matrices), 4);
    for (int64_t i = 0; i < sums->columns * sums->matrices; i++) {
        const int64_t tokens = sums->tokens[i / sums->columns];
        const double mean = tokens > 0 ? sums->squares[i] / (double)tokens : 1.0;
        add_float(out, (float)(mean * (double)calls));
    }
}

static enum tandem_status write_older(const char *path, const struct tnd_importance_sums *sums,
                                      int n, const char *text, int64_t chunks, int64_t chunk,
                                      struct tandem_error *error)
{
    struct tnd_text out = TND_TEXT_INIT;
    struct tnd_file_stream stream;
    add_number(&out, (uint64_t)n, 4);
    for (int i = 0; i < n; i++) {
        add_entry(&out, &sums[i], chunk);
    }
    add_number(&out, (uint64_t)chunks, 4);
    add_number(&out, strlen(text), 4);
    tnd_text_add(&out, text);
    enum tandem_status status = out.failed ? no_memory(path, error) : TANDEM_OK;
    if (status == TANDEM_OK) {
        status = tnd_file_stream_open(path, false, &stream, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_file_stream_write(&stream, out.bytes, out.n, error);
        if (status == TANDEM_OK) {
            status = tnd_file_stream_commit(&stream, error);
        } else {
            tnd_file_stream_abandon(&stream);
        }
    }
    tnd_text_fini(&out);
    return status;
}

/* ---- GGUF ---- */

/* Two tensors of a matrix, in memory that `source` frees. */
static enum tandem_status add_tensors(tandem_source *source, const struct tnd_importance_sums *sums,
                                      float *memory, struct tandem_error *error)
{
    char name[256];
    const int64_t n = sums->columns * sums->matrices;
    for (int64_t i = 0; i < n; i++) {
        memory[i] = (float)sums->squares[i];
    }
    for (int64_t m = 0; m < sums->matrices; m++) {
        memory[n + m] = (float)sums->tokens[m];
    }
    snprintf(name, sizeof(name), "%s.in_sum2", sums->name);
    TND_TRY(tnd_source_add(source, name, TANDEM_TYPE_F32, 2,
                           (const int64_t[]){sums->columns, sums->matrices, 1, 1}, memory,
                           (size_t)n * sizeof(float), error));
    snprintf(name, sizeof(name), "%s.counts", sums->name);
    return tnd_source_add(source, name, TANDEM_TYPE_F32, 2,
                          (const int64_t[]){1, sums->matrices, 1, 1}, memory + n,
                          (size_t)sums->matrices * sizeof(float), error);
}

static enum tandem_status fill_source(tandem_source *source, const struct tnd_importance_sums *sums,
                                      int n, const char *text, int64_t chunks, int64_t chunk,
                                      struct tandem_error *error)
{
    struct tnd_text name = TND_TEXT_INIT;
    add_number(&name, strlen(text), 8);
    tnd_text_add(&name, text);
    enum tandem_status status = name.failed ? no_memory("GGUF", error) : TANDEM_OK;
    if (status == TANDEM_OK) {
        status = tnd_source_set_array(source, "imatrix.datasets", TND_GGUF_TEXT, 1,
                                      (const uint8_t *)name.bytes, name.n, true, error);
    }
    tnd_text_fini(&name);
    TND_TRY(status);
    TND_TRY(tnd_source_set_text(source, "general.type", "imatrix", error));
    TND_TRY(tnd_source_set_integer(source, "imatrix.chunk_count", chunks, error));
    TND_TRY(tnd_source_set_integer(source, "imatrix.chunk_size", chunk, error));
    size_t values = 0;
    for (int i = 0; i < n; i++) {
        values += (size_t)((sums[i].columns + 1) * sums[i].matrices);
    }
    float *memory = tnd_alloc(values * sizeof(float));
    if (memory == NULL) {
        return no_memory("GGUF", error);
    }
    source->memory = memory;
    for (int i = 0; i < n; i++) {
        TND_TRY(add_tensors(source, &sums[i], memory, error));
        memory += (sums[i].columns + 1) * sums[i].matrices;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_importance_write(const char *path, const struct tnd_importance_sums *sums,
                                        int n, const char *text, int64_t chunks, int64_t chunk,
                                        struct tandem_error *error)
{
    const size_t length = strlen(path);
    tandem_source *source;
    if (length < 5 || strcmp(path + length - 5, ".gguf") != 0) {
        return write_older(path, sums, n, text, chunks, chunk, error);
    }
    TND_TRY(tnd_source_new("importance matrix", &source, error));
    enum tandem_status status = fill_source(source, sums, n, text, chunks, chunk, error);
    if (status == TANDEM_OK) {
        status = tandem_source_save_gguf(source, path, NULL, error);
    }
    tandem_source_close(source);
    return status;
}
