/* SPDX-License-Identifier: MIT
 * Fuzzes whole requests to tandem-server, without a network: the first byte chooses the route, the
 * rest is the body, or a file of saved texts. Whatever is answered is well-formed: a status, and
 * JSON or events; a job ends, and its text in JSON mode is JSON as far as it goes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/mutate_json.h"
#include "tests/fuzz/small_runtime.h"
#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_saved.h"
#include "tools/tandem-server/srv_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Half of the bodies stay JSON. */
static void mutate_request(struct mutation *m)
{
    if (m->n > 1 && pick(m, 2) == 0) {
        mutate_json(m, 1, m->n);
    } else {
        mutate_bytes(m, 0, m->n);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_with(data, size, max_size, seed, mutate_request);
}

enum { RESTORES = 255 };
static const char *const paths[] = {"/v1/chat/completions",
                                    "/v1/completions",
                                    "/completion",
                                    "/v1/embeddings",
                                    "/tokenize",
                                    "/detokenize",
                                    "/apply-template",
                                    "/v1/responses",
                                    "/slots",
                                    "/metrics",
                                    "/props",
                                    "/v1/models",
                                    "/nowhere"};

/* A tokenizer of 256 bytes, as llama2.c writes them: score, length, bytes. */
static const char *write_tokenizer(void)
{
    static char path[] = "/tmp/fuzz-server-XXXXXX";
    const int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (file == NULL) {
        abort();
    }
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    const int32_t longest = 6;
    const float score = 0.0f;
    fwrite(&longest, 4, 1, file);
    for (int i = 0; i < 259; i++) {
        char word[8];
        const int32_t n = i < 3 ? snprintf(word, sizeof(word), "%s", special[i])
                                : snprintf(word, sizeof(word), "<0x%02X>", (unsigned)(i - 3));
        fwrite(&score, 4, 1, file);
        fwrite(&n, 4, 1, file);
        fwrite(word, 1, (size_t)n, file);
    }
    fclose(file);
    return path;
}

static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* A server of a tiny model, made once. */
static const struct srv_server *server_of_all(void)
{
    static struct srv_server server;
    static struct srv_vocabulary vocabulary;
    static tandem_source *source;
    static tandem_model *model;
    static tandem_tokenizer *tokenizer;
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 8,
                                             .hidden = 8,
                                             .layers = 1,
                                             .heads = 2,
                                             .kv_heads = 1,
                                             .vocabulary = 259,
                                             .context = 64};
    if (server.engine != NULL) {
        return &server;
    }
    const char *path = write_tokenizer();
    must(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, NULL) == TANDEM_OK &&
         tandem_model_new(source, &model, NULL) == TANDEM_OK &&
         tandem_tokenizer_open(path, 259, &tokenizer, NULL) == TANDEM_OK &&
         tnd_srv_vocabulary_init(&vocabulary, tokenizer, model, NULL) == TANDEM_OK);
    (void)remove(path);
    const struct srv_engine_options options = {.model = model,
                                               .runtime = small_runtime(),
                                               .tokenizer = tokenizer,
                                               .vocabulary = &vocabulary,
                                               .context = 64,
                                               .n_cells = 256,
                                               .n_parallel = 2,
                                               .max_queue = 2,
                                               .delay_ms = 1.0,
                                               .has_embeddings = true};
    tandem_chat_template *plain = NULL;
    must(tandem_chat_template_open("plain", &plain, NULL) == TANDEM_OK);
    server = (struct srv_server){.model = model,
                                 .tokenizer = tokenizer,
                                 .vocabulary = &vocabulary,
                                 .model_name = "fuzz",
                                 .chat_template = plain,
                                 .max_answer = 16,
                                 .n_cells = 256,
                                 .max_seconds = 600.0};
    must(tnd_srv_engine_new(&options, &server.engine, NULL) == TANDEM_OK);
    return &server;
}

static void check_json(const char *bytes, size_t n)
{
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithLengthOpts(bytes, n, &end, false);
    must(root != NULL && end == bytes + n);
    cJSON_Delete(root);
}

/* Each event is a line "data: JSON", maybe behind its name, and an empty one. */
static void check_events(const struct srv_text *text)
{
    const char *at = text->bytes;
    while (at != NULL && *at != '\0') {
        const char *end = strstr(at, "\n\n");
        if (strncmp(at, "event: ", 7) == 0) { /* of responses */
            at = strstr(at, "\n") + 1;
        }
        must(end != NULL && strncmp(at, "data: ", 6) == 0);
        if (strncmp(at, "data: [DONE]\n", 13) != 0) {
            check_json(at + 6, (size_t)(end - at) - 6);
        }
        at = end + 2;
    }
}

static void run(const struct srv_server *server, struct srv_job *job)
{
    struct srv_reader reader = {0};
    struct srv_text events = {0};
    struct srv_reply whole = {0};
    for (int i = 0; i < 1000 && job->finish == SRV_RUNNING; i++) {
        (void)tnd_srv_engine_step(server->engine);
        if (job->params.is_stream) {
            (void)tnd_srv_read_stream(server, job, &reader, &events);
        }
    }
    must(job->finish != SRV_RUNNING);
    if (job->params.is_stream) {
        (void)tnd_srv_read_stream(server, job, &reader, &events);
        must(reader.has_ended && reader.n_bytes <= job->text.n);
        check_events(&events);
    } else {
        must(tnd_srv_read_whole(server, job, &whole));
        check_json(whole.body.bytes, whole.body.n);
    }
    tnd_srv_text_free(&events);
    tnd_srv_reply_free(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct srv_server *server = server_of_all();
    const size_t n_paths = sizeof(paths) / sizeof(paths[0]);
    struct srv_reply reply;
    if (size == 0 || size > 1 << 16) {
        return 0;
    }
    if (data[0] == RESTORES) {
        (void)tnd_srv_restore_bytes(server->engine, (const char *)data + 1, size - 1, NULL);
        return 0;
    }
    const bool is_get = data[0] % n_paths > 7;
    const struct srv_request request = {.method = is_get ? "GET" : "POST",
                                        .path = paths[data[0] % n_paths],
                                        .host = "localhost",
                                        .body = (const char *)data + 1,
                                        .n = size - 1};
    tnd_srv_answer(server, &request, &reply);
    must(reply.status == 200 || reply.body.n > 0);
    if (reply.job != NULL) {
        run(server, reply.job);
    } else if (strstr(reply.type, "json") != NULL) {
        check_json(reply.body.bytes, reply.body.n);
    }
    tnd_srv_reply_free(&reply);
    return 0;
}
