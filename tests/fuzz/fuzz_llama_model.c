/* SPDX-License-Identifier: MIT
 * Any model file as a llama: an error with a message, or hyper-parameters and two tokens run
 * through the model, in 96 MiB of memory. */
#include "llama/session.h"
#include "tandem/allocator.h"
#include "tests/fuzz/consume.h"
#include "tests/fuzz/small_runtime.h"

#define MOST_BYTES ((size_t)96 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return consume_mutate(data, size, max_size, seed);
}

/* An allocator with little memory; each block begins with its size. */
static size_t live_bytes;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    must(alignment <= 64);
    if (bytes > MOST_BYTES || live_bytes + bytes > MOST_BYTES) {
        return NULL;
    }
    char *memory = aligned_alloc(64, (bytes + 64 + 63) / 64 * 64);
    if (memory == NULL) {
        return NULL;
    }
    memcpy(memory, &bytes, sizeof(bytes));
    live_bytes += bytes;
    return memory + 64;
}

static void release(void *user, void *memory)
{
    size_t bytes;
    (void)user;
    memcpy(&bytes, (char *)memory - 64, sizeof(bytes));
    live_bytes -= bytes;
    free((char *)memory - 64);
}

static void run(const tandem_model *model)
{
    tandem_session *session = NULL;
    struct tandem_error error = {.text = ""};
    const struct tandem_session_options options = {.size = sizeof(options), .context = 4};
    const int32_t tokens[2] = {0, (int32_t)(tandem_model_hparams(model)->vocabulary - 1)};
    enum tandem_status status =
        tandem_session_new(model, small_runtime(), &options, &session, &error);
    if (status == TANDEM_OK) {
        status = tandem_session_decode(session, tokens, 2, 0, &error);
    }
    must(status == TANDEM_OK || error.text[0] != '\0');
    tandem_session_free(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct consumed parts = consume_parts(data, size);
    struct tandem_error error = {.text = ""};
    tandem_source *source = parts.n_file == 0 ? NULL : consume_open(data, &parts);
    tandem_model *model = NULL;
    struct tandem_hparams hparams = {.size = sizeof(hparams)};
    if (source == NULL) {
        return 0;
    }
    const enum tandem_status status = tandem_source_hparams(source, &hparams, &error);
    must(status == TANDEM_OK || error.text[0] != '\0');
    if (tandem_model_new(source, &model, &error) == TANDEM_OK) {
        must(status == TANDEM_OK);
        run(model);
    } else {
        must(error.text[0] != '\0');
    }
    tandem_model_free(model);
    tandem_source_close(source);
    return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const struct tandem_allocator allocator = {
        .size = sizeof(allocator), .allocate = allocate, .release = release};
    (void)argc;
    (void)argv;
    must(tandem_set_allocator(&allocator, NULL) == TANDEM_OK);
    return 0;
}
