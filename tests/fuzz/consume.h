/* SPDX-License-Identifier: MIT
 * What the targets of consumers share: an input is a model file of any format, behind it the
 * config.json beside it, the length of that in 2 bytes, a tensor type and a choice in a byte each.
 * Both files are written and opened as a program would. */
#ifndef TND_TESTS_FUZZ_CONSUME_H
#define TND_TESTS_FUZZ_CONSUME_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "formats/source.h"
#include "tests/fuzz/mutate_gguf.h"
#include "tests/fuzz/mutate_json.h"
#include "tests/fuzz/mutate_pickle.h"

#define CONSUME_TRAILER 4

struct consumed {
    size_t n_file;
    size_t n_config;
    enum tandem_type type;
    unsigned choice;
};

/* Ends the process, which libFuzzer reports. */
static inline void must(bool good)
{
    if (!good) {
        abort();
    }
}

static inline struct consumed consume_parts(const uint8_t *data, size_t size)
{
    struct consumed parts = {.n_file = 0};
    if (size >= CONSUME_TRAILER) {
        const size_t n = size - CONSUME_TRAILER;
        const size_t config = (size_t)data[n] | (size_t)data[n + 1] << 8;
        parts.n_config = config < n ? config : 0;
        parts.n_file = n - parts.n_config;
        parts.type = (enum tandem_type)data[n + 2];
        parts.choice = data[n + 3];
    }
    return parts;
}

/* Path of a file in the folder of this process, which is removed at its end. */
static char consume_folder[64];

static inline void consume_remove(void)
{
    static const char *const names[] = {"model", "config.json", "out.gguf"};
    char path[128];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", consume_folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(consume_folder);
}

static inline const char *consume_path(const char *name)
{
    static char path[128];
    if (consume_folder[0] == '\0') {
        snprintf(consume_folder, sizeof(consume_folder), "%s/tandem-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        must(mkdtemp(consume_folder) != NULL);
        (void)atexit(consume_remove);
    }
    snprintf(path, sizeof(path), "%s/%s", consume_folder, name);
    return path;
}

static inline void consume_write(const char *name, const uint8_t *bytes, size_t n)
{
    FILE *file = fopen(consume_path(name), "wb");
    must(file != NULL && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
}

/* Opens the input; NULL when it is refused. What the library holds from now on is counted. */
static inline tandem_source *consume_open(const uint8_t *data, const struct consumed *parts)
{
    tandem_source *source = NULL;
    struct tandem_error error = {.text = ""};
    consume_write("model", data, parts->n_file);
    if (parts->n_config > 0) {
        consume_write("config.json", data + parts->n_file, parts->n_config);
    } else {
        (void)unlink(consume_path("config.json"));
    }
    tnd_alloc_peak_begin();
    must(tandem_source_open(consume_path("model"), &source, &error) == TANDEM_OK ||
         (error.text[0] != '\0' && source == NULL));
    return source;
}

/* Bytes that an input may have become in memory or in a file: tensors may share bytes, and F32
 * takes 13 times as many as Q2_K. */
static inline size_t consume_bound(const struct consumed *parts)
{
    return 13 * (4 * parts->n_file + TND_SOURCE_SPARE_BYTES) + 4 * TND_SOURCE_SPARE_BYTES;
}

static inline void mutate_model(struct mutation *m)
{
    if (m->n >= 4 && memcmp(m->data, "GGUF", 4) == 0) {
        mutate_gguf(m);
    } else if (m->n >= 2 && (m->data[0] == 'P' || m->data[0] == 0x80)) {
        mutate_pickle(m);
    } else if (m->n >= 10 && (m->data[8] == '{' || m->data[0] == '{')) {
        mutate_safetensors(m);
    } else {
        m->n = LLVMFuzzerMutate(m->data, m->n, m->max);
    }
}

/* LLVMFuzzerCustomMutator of these targets. */
static inline size_t consume_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct mutation m = mutation_of(data, size, max_size, seed);
    struct consumed parts = consume_parts(data, size);
    uint8_t trailer[CONSUME_TRAILER];
    if (parts.n_file == 0 || max_size < size) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    const unsigned what = (unsigned)pick(&m, 12);
    memcpy(trailer, data + size - CONSUME_TRAILER, CONSUME_TRAILER);
    if (what == 0) {
        trailer[2] = (uint8_t)pick(&m, 42);
        trailer[3] = (uint8_t)pick(&m, 256);
    } else if (what < 4 && parts.n_config > 0) {
        m.n -= CONSUME_TRAILER;
        m.max -= CONSUME_TRAILER;
        mutate_json(&m, parts.n_file, m.n);
        parts.n_config = m.n > parts.n_file ? m.n - parts.n_file : 0;
        m.max += CONSUME_TRAILER;
    } else {
        uint8_t *config = malloc(parts.n_config + 1);
        must(config != NULL);
        memcpy(config, data + parts.n_file, parts.n_config);
        m.n = parts.n_file;
        m.max = max_size - CONSUME_TRAILER - parts.n_config;
        mutate_model(&m);
        m.max = max_size;
        (void)splice(&m, m.n, 0, config, parts.n_config);
        free(config);
    }
    parts.n_config = parts.n_config < 65535 ? parts.n_config : 0;
    trailer[0] = (uint8_t)parts.n_config;
    trailer[1] = (uint8_t)(parts.n_config >> 8);
    memcpy(m.data + m.n - (what == 0 ? CONSUME_TRAILER : 0), trailer, CONSUME_TRAILER);
    return m.n + (what == 0 ? 0 : CONSUME_TRAILER);
}

#endif
