/* SPDX-License-Identifier: MIT
 * Files of cached texts. Little-endian, no padding: "TNDTEXTS", uint32 version (1), uint32 number
 * of sequences; for each sequence int64 n and n int32 tokens; uint64 FNV-1a of all this; then a
 * session state (llama/state.c) with a checksum of its own. */
#include "tools/tandem-server/srv_saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tandem/files.h"
#include "tools/tandem-server/srv_engine_parts.h"

static const char MAGIC[8] = {'T', 'N', 'D', 'T', 'E', 'X', 'T', 'S'};
enum { VERSION = 1, HEAD_BYTES = 16 };

static enum tandem_status fail(struct tandem_error *error, enum tandem_status status,
                               const char *text)
{
    if (error != NULL) {
        snprintf(error->text, sizeof(error->text), "saved texts: %s", text);
    }
    return status;
}

static uint64_t fnv(const char *bytes, size_t n)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

/* ---- writing ---- */

static size_t texts_bytes(const struct srv_engine *engine)
{
    size_t n = HEAD_BYTES + sizeof(uint64_t);
    for (int i = 0; i < engine->n_sequences; i++) {
        n += sizeof(int64_t) + (size_t)engine->sequences[i].n * sizeof(int32_t);
    }
    return n;
}

static char *put(char *at, const void *bytes, size_t n)
{
    memcpy(at, bytes, n);
    return at + n;
}

enum tandem_status tnd_srv_save_bytes(const struct srv_engine *engine, char **out_bytes,
                                      size_t *out_n, struct tandem_error *error)
{
    const uint32_t head[] = {VERSION, (uint32_t)engine->n_sequences};
    const size_t n_texts = texts_bytes(engine);
    const size_t n = n_texts + tandem_session_state_bytes(engine->session);
    char *bytes = malloc(n);
    if (bytes == NULL) {
        return fail(error, TANDEM_E_MEMORY, "no memory");
    }
    char *at = put(put(bytes, MAGIC, sizeof(MAGIC)), head, sizeof(head));
    for (int i = 0; i < engine->n_sequences; i++) {
        const struct srv_sequence *s = &engine->sequences[i];
        at = put(at, &s->n, sizeof(s->n));
        at = put(at, s->tokens, (size_t)s->n * sizeof(s->tokens[0]));
    }
    const uint64_t check = fnv(bytes, (size_t)(at - bytes));
    at = put(at, &check, sizeof(check));
    const enum tandem_status status = tandem_session_state_write(engine->session, at, error);
    if (status != TANDEM_OK) {
        free(bytes);
        return status;
    }
    *out_bytes = bytes;
    *out_n = n;
    return TANDEM_OK;
}

/* Whether the path is a file that no server has written: it is not replaced. */
static bool is_foreign(const char *path)
{
    char magic[sizeof(MAGIC)];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return false; /* writing reports the error */
    }
    const size_t n = fread(magic, 1, sizeof(magic), file);
    fclose(file);
    return n > 0 && (n < sizeof(magic) || memcmp(magic, MAGIC, sizeof(MAGIC)) != 0);
}

enum tandem_status tnd_srv_save(const struct srv_engine *engine, const char *path,
                                struct tandem_error *error)
{
    char *bytes;
    size_t n;
    if (is_foreign(path)) {
        return fail(error, TANDEM_E_FILE, "the file of --save holds something else: left alone");
    }
    enum tandem_status status = tnd_srv_save_bytes(engine, &bytes, &n, error);
    if (status == TANDEM_OK) {
        status = tandem_file_write(path, bytes, n, true, error);
        free(bytes);
    }
    return status;
}

/* ---- reading ---- */

struct reader {
    const char *at;
    size_t left;
};

static bool take(struct reader *reader, void *out, size_t n)
{
    if (reader->left < n) {
        return false;
    }
    memcpy(out, reader->at, n);
    reader->at += n;
    reader->left -= n;
    return true;
}

/* Reads the tokens of all sequences into the engine. */
static enum tandem_status read_texts(struct srv_engine *engine, struct reader *reader,
                                     struct tandem_error *error)
{
    const char *begin = reader->at;
    char magic[sizeof(MAGIC)];
    uint32_t head[2];
    uint64_t check;
    if (!take(reader, magic, sizeof(magic)) || !take(reader, head, sizeof(head))) {
        return fail(error, TANDEM_E_TRUNCATED, "the file ends early");
    }
    if (memcmp(magic, MAGIC, sizeof(MAGIC)) != 0 || head[0] != VERSION) {
        return fail(error, TANDEM_E_FORMAT, "no such file, or of another version");
    }
    if (head[1] != (uint32_t)engine->n_sequences) {
        return fail(error, TANDEM_E_FORMAT, "of a server with another --parallel");
    }
    for (int i = 0; i < engine->n_sequences; i++) {
        struct srv_sequence *s = &engine->sequences[i];
        int64_t n;
        if (!take(reader, &n, sizeof(n))) {
            return fail(error, TANDEM_E_TRUNCATED, "the file ends early");
        }
        if (n < 0 || n > engine->options.context) {
            return fail(error, TANDEM_E_LIMIT, "a text is longer than --context");
        }
        if (!take(reader, s->tokens, (size_t)n * sizeof(s->tokens[0]))) {
            return fail(error, TANDEM_E_TRUNCATED, "the file ends early");
        }
        s->n = n;
    }
    const uint64_t want = fnv(begin, (size_t)(reader->at - begin));
    return !take(reader, &check, sizeof(check))
               ? fail(error, TANDEM_E_TRUNCATED, "the file ends early")
           : check != want ? fail(error, TANDEM_E_FORMAT, "wrong checksum of the tokens")
                           : TANDEM_OK;
}

/* Checks that the state belongs to these texts and leaves the free cells that admission assumes. */
static enum tandem_status check_texts(const struct srv_engine *engine, struct tandem_error *error)
{
    int64_t cells = 0;
    for (int i = 0; i < engine->n_sequences; i++) {
        const struct srv_sequence *s = &engine->sequences[i];
        cells += (s->n + SRV_BLOCK - 1) / SRV_BLOCK * SRV_BLOCK;
        if (tandem_session_position(engine->session, i) != s->n) {
            return fail(error, TANDEM_E_FORMAT, "keys and values are of other texts");
        }
    }
    return cells > engine->options.n_cells
               ? fail(error, TANDEM_E_LIMIT, "more tokens than --cells has room for")
               : TANDEM_OK;
}

enum tandem_status tnd_srv_restore_bytes(struct srv_engine *engine, const char *bytes, size_t n,
                                         struct tandem_error *error)
{
    struct reader reader = {bytes, n};
    enum tandem_status status = read_texts(engine, &reader, error);
    if (status == TANDEM_OK) {
        status = tandem_session_state_read(engine->session, reader.at, reader.left, "saved texts",
                                           error);
    }
    if (status == TANDEM_OK) {
        status = check_texts(engine, error);
    }
    for (int i = 0; status != TANDEM_OK && i < engine->n_sequences; i++) {
        engine->sequences[i].n = 0;
        (void)tandem_session_rollback(engine->session, i, 0);
    }
    return status;
}

enum tandem_status tnd_srv_restore(struct srv_engine *engine, const char *path,
                                   struct tandem_error *error)
{
    void *bytes;
    size_t n;
    enum tandem_status status = tandem_file_read(path, 0, &bytes, &n, error);
    if (status == TANDEM_OK) {
        status = tnd_srv_restore_bytes(engine, bytes, n, error);
        tandem_file_free(bytes);
    }
    return status;
}
