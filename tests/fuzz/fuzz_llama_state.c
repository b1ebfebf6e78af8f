/* SPDX-License-Identifier: MIT
 * Fuzzes state files: whatever is accepted is a state that can be written again, and the checksum
 * is put right first, so that the checks behind it are reached. */
#include <stdlib.h>
#include <string.h>

#include "tandem/llama.h"
#include "tests/fuzz/small_runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER_BYTES = 16 + 9 * 8 };

static tandem_model *model; /* of the session */

/* A session of a tiny model, made once. */
static tandem_session *session_of_all(void)
{
    static tandem_session *session;
    const struct tandem_session_options options = {
        .size = sizeof(options), .n_sequences = 2, .n_cells = 8};
    struct tandem_llama_shape shape = {.size = sizeof(shape),
                                       .dim = 8,
                                       .hidden = 8,
                                       .layers = 1,
                                       .heads = 2,
                                       .kv_heads = 1,
                                       .vocabulary = 4,
                                       .context = 16};
    static tandem_source *source; /* borrowed from as long as the process lives */
    if (session == NULL &&
        (tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, NULL) != TANDEM_OK ||
         tandem_model_new(source, &model, NULL) != TANDEM_OK ||
         tandem_session_new(model, small_runtime(), &options, &session, NULL) != TANDEM_OK)) {
        abort();
    }
    return session;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tandem_session *session = session_of_all();
    uint8_t *bytes = malloc(size + 1);
    if (bytes == NULL) {
        return 0;
    }
    memcpy(bytes, data, size);
    if (size >= HEADER_BYTES) { /* nobody guesses the identity; seeds are of version 1 too */
        uint64_t identity = 0;
        bytes[8] = bytes[8] == 1 ? 2 : bytes[8];
        (void)tandem_source_identity(tandem_model_source(model), &identity, NULL);
        memcpy(bytes + 16 + 7 * 8, &identity, sizeof(identity));
    }
    if (size >= 8) {
        uint64_t hash = 0xcbf29ce484222325u;
        for (size_t i = 0; i + 8 < size; i++) {
            hash = (hash ^ bytes[i]) * 0x100000001b3u;
        }
        memcpy(bytes + size - 8, &hash, sizeof(hash));
    }
    struct tandem_error error = {0};
    if (tandem_session_state_read(session, bytes, size, "fuzz", &error) == TANDEM_OK) {
        if (tandem_session_state_bytes(session) != size) {
            __builtin_trap(); /* what was read is not what would be written */
        }
    } else if (error.text[0] == '\0') {
        __builtin_trap(); /* a failure without a reason */
    }
    free(bytes);
    return 0;
}
