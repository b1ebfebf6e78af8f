/* SPDX-License-Identifier: MIT
 * Main of the server's suites, and what they share. */
#include "tests/suite_server.h"

#include <stdio.h>
#include <string.h>

extern CU_SuiteInfo suites_server_rerank[];
extern CU_SuiteInfo suites_server_text[];
extern CU_SuiteInfo suites_server_engine[];
extern CU_SuiteInfo suites_server_flights[];
extern CU_SuiteInfo suites_server_requests[];
extern CU_SuiteInfo suites_server_http[];
extern CU_SuiteInfo suites_server_limits[];
extern CU_SuiteInfo suites_server_calls[];
extern CU_SuiteInfo suites_server_template[];
extern CU_SuiteInfo suites_server_responses[];

int main(int argc, char **argv)
{
    return tnd_suites_run(argc, argv, suites_server_text, suites_server_engine,
                          suites_server_flights, suites_server_requests, suites_server_rerank,
                          suites_server_calls, suites_server_template, suites_server_responses,
                          suites_server_limits, suites_server_http, NULL);
}

static bool open_model(struct tnd_served *served, const struct tnd_served_options *o)
{
    const char *checkpoint = o->model != NULL ? o->model : tnd_test_data("llama/stories260K.bin");
    const char *tokenizer = o->tokenizer != NULL ? o->tokenizer : tnd_test_data("llama/tok512.bin");
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu";
    return checkpoint != NULL && tokenizer != NULL &&
           check_ok(tandem_source_open(checkpoint, &served->source, NULL)) &&
           check_ok(tandem_model_new(served->source, &served->model, NULL)) &&
           check_ok(tandem_tokenizer_open(tokenizer, o->model != NULL ? 0 : 512, &served->tokenizer,
                                          NULL)) &&
           check_ok(tandem_runtime_open(&options, &served->runtime, NULL)) &&
           check_ok(tnd_srv_vocabulary_init(&served->vocabulary, served->tokenizer, served->model,
                                            NULL));
}

bool tnd_served_open(struct tnd_served *served, const struct tnd_served_options *given)
{
    const struct tnd_served_options none = {0};
    const struct tnd_served_options *o = given != NULL ? given : &none;
    memset(served, 0, sizeof(*served));
    if (!open_model(served, o)) {
        return false;
    }
    const struct srv_engine_options options = {
        .model = served->model,
        .runtime = served->runtime,
        .tokenizer = served->tokenizer,
        .vocabulary = &served->vocabulary,
        .context = o->context > 0 ? o->context : 256,
        .n_cells = o->n_cells > 0 ? o->n_cells : 1024,
        .n_parallel = o->n_parallel > 0 ? o->n_parallel : 4,
        .max_queue = o->max_queue > 0 ? o->max_queue : 8,
        .delay_ms = o->delay_ms > 0.0 ? o->delay_ms : 100.0,
        .has_embeddings = true,
    };
    check_ok(tandem_chat_template_open("plain", &served->chat_template, NULL));
    served->server = (struct srv_server){.model = served->model,
                                         .tokenizer = served->tokenizer,
                                         .vocabulary = &served->vocabulary,
                                         .model_name = "small",
                                         .chat_template = served->chat_template,
                                         .max_answer = 32,
                                         .n_cells = options.n_cells,
                                         .max_seconds = 600.0,
                                         .is_local = true};
    return check_ok(tnd_srv_engine_new(&options, &served->server.engine, NULL));
}

void tnd_served_close(struct tnd_served *served)
{
    if (served->server.engine != NULL) {
        tnd_srv_engine_stop(served->server.engine, 0.0);
        tnd_srv_engine_free(served->server.engine);
    }
    tandem_chat_template_free(served->chat_template);
    tnd_srv_vocabulary_free(&served->vocabulary);
    tandem_runtime_close(served->runtime);
    tandem_tokenizer_close(served->tokenizer);
    tandem_model_free(served->model);
    tandem_source_close(served->source);
}

void tnd_ask(const struct tnd_served *served, const char *path, const char *body,
             struct srv_reply *reply)
{
    const struct srv_request request = {.method = body != NULL ? "POST" : "GET",
                                        .path = path,
                                        .host = "localhost:8080",
                                        .body = body != NULL ? body : "",
                                        .n = body != NULL ? strlen(body) : 0};
    tnd_srv_answer(&served->server, &request, reply);
}

void tnd_run_job(const struct tnd_served *served, const struct srv_job *job)
{
    for (int i = 0; i < 100000 && job->finish == SRV_RUNNING; i++) {
        (void)tnd_srv_engine_step(served->server.engine);
    }
    CU_ASSERT_TRUE(job->finish != SRV_RUNNING);
}

static int keep(struct srv_reply *reply, char *out, size_t capacity)
{
    const int status = reply->status;
    snprintf(out, capacity, "%s", reply->body.bytes != NULL ? reply->body.bytes : "");
    tnd_srv_reply_free(reply);
    return status;
}

int tnd_ask_whole(const struct tnd_served *served, const char *path, const char *body, char *out,
                  size_t capacity)
{
    struct srv_reply reply;
    struct srv_reply whole = {0};
    tnd_ask(served, path, body, &reply);
    if (reply.job == NULL) {
        return keep(&reply, out, capacity);
    }
    const bool is_stream = reply.job->params.is_stream;
    for (struct srv_job *job = reply.job; job != NULL; job = job->sibling) {
        struct srv_reader reader = {0};
        for (int i = 0; is_stream && i < 100000 &&
                        !tnd_srv_read_stream(&served->server, job, &reader, &whole.body);
             i++) {
            (void)tnd_srv_engine_step(served->server.engine);
        }
        if (!is_stream) {
            tnd_run_job(served, job);
        }
        CU_ASSERT_TRUE(reader.has_ended == is_stream);
    }
    whole.status = 200;
    CU_ASSERT_TRUE(is_stream || tnd_srv_read_whole(&served->server, reply.job, &whole));
    tnd_srv_reply_free(&reply);
    return keep(&whole, out, capacity);
}
