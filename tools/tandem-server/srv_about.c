/* SPDX-License-Identifier: MIT
 * Routes that describe the server and its state. */
#include "tools/tandem-server/srv_routes.h"

#include <string.h>

void tnd_srv_health(const struct srv_server *server, const struct srv_request *request,
                    struct srv_reply *reply)
{
    (void)request;
    if (tnd_srv_engine_is_open(server->engine)) {
        tnd_srv_print(&reply->body, "{\"status\":\"ok\"}");
    } else {
        tnd_srv_reply_error(reply, 503, "the server ends");
    }
}

static void add_model(const struct srv_server *server, struct srv_text *out)
{
    tnd_srv_print(out, "{\"id\":");
    tnd_srv_add_json_text(out, server->model_name);
    tnd_srv_print(out, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"tandem\"}",
                  (long long)server->started);
}

void tnd_srv_models(const struct srv_server *server, const struct srv_request *request,
                    struct srv_reply *reply)
{
    (void)request;
    tnd_srv_print(&reply->body, "{\"object\":\"list\",\"data\":[");
    add_model(server, &reply->body);
    tnd_srv_print(&reply->body, "]}");
}

void tnd_srv_model(const struct srv_server *server, const struct srv_request *request,
                   struct srv_reply *reply)
{
    const char *name = strstr(request->path, "/models/") + strlen("/models/");
    if (strcmp(name, server->model_name) != 0) {
        tnd_srv_reply_error(reply, 404, "there is no model '%.100s', only '%.100s'", name,
                            server->model_name);
        return;
    }
    add_model(server, &reply->body);
}

/* Reranking needs a model with a scoring head, infilling one with tokens that mark gaps. */
void tnd_srv_infill(const struct srv_server *server, const struct srv_request *request,
                    struct srv_reply *reply)
{
    (void)request;
    tnd_srv_reply_error(reply, 501, "'%.100s' is not asked to fill gaps: use /completion",
                        server->model_name);
}

void tnd_srv_props(const struct srv_server *server, const struct srv_request *request,
                   struct srv_reply *reply)
{
    const struct tandem_hparams *h = tandem_model_hparams(server->model);
    struct srv_text *out = &reply->body;
    (void)request;
    tnd_srv_print(out, "{\"version\":");
    tnd_srv_add_json_text(out, tandem_version());
    tnd_srv_print(out, ",\"model\":");
    tnd_srv_add_json_text(out, server->model_name);
    tnd_srv_print(out, ",\"architecture\":");
    tnd_srv_add_json_text(out, h->architecture);
    tnd_srv_print(out, ",\"chat_template\":");
    const char *text = tandem_chat_template_text(server->chat_template, NULL);
    tnd_srv_add_json_text(out, text != NULL ? text : "");
    tnd_srv_print(out,
                  ",\"total_slots\":%d,\"default_generation_settings\":{\"n_ctx\":%lld,"
                  "\"n_predict\":%lld},\"vocabulary\":%lld,\"dim\":%lld,\"layers\":%lld}",
                  tnd_srv_engine_slots(server->engine, NULL, 0),
                  (long long)tnd_srv_engine_context(server->engine), (long long)server->max_answer,
                  (long long)h->vocabulary, (long long)h->dim, (long long)h->layers);
}

void tnd_srv_slots(const struct srv_server *server, const struct srv_request *request,
                   struct srv_reply *reply)
{
    struct srv_slot slots[2 * SRV_MAX_PARALLEL];
    const int n = tnd_srv_engine_slots(server->engine, slots, 2 * SRV_MAX_PARALLEL);
    (void)request;
    tnd_srv_print(&reply->body, "[");
    for (int i = 0; i < n && i < 2 * SRV_MAX_PARALLEL; i++) {
        tnd_srv_print(&reply->body,
                      "%s{\"id\":%d,\"is_processing\":%s,\"task\":\"%s\",\"n_past\":%lld,"
                      "\"n_prompt\":%lld,\"n_decoded\":%lld}",
                      i > 0 ? "," : "", i, slots[i].is_running ? "true" : "false", slots[i].id,
                      (long long)slots[i].n_tokens, (long long)slots[i].n_prompt,
                      (long long)slots[i].n_generated);
    }
    tnd_srv_print(&reply->body, "]");
}

/* The text format of Prometheus, version 0.0.4. */
void tnd_srv_metrics(const struct srv_server *server, const struct srv_request *request,
                     struct srv_reply *reply)
{
    struct srv_counts c;
    tnd_srv_engine_count(server->engine, &c);
    const struct {
        const char *name, *kind, *what;
        double value;
    } rows[] = {
        {"prompt_tokens_total", "counter", "Tokens of prompts that were computed.",
         (double)c.prompt_tokens},
        {"cached_tokens_total", "counter", "Tokens of prompts that were in the cache.",
         (double)c.cached_tokens},
        {"generated_tokens_total", "counter", "Tokens that were generated.",
         (double)c.generated_tokens},
        {"drafted_tokens_total", "counter", "Tokens that were decoded as drafts.",
         (double)c.drafted_tokens},
        {"accepted_tokens_total", "counter", "Drafted tokens that were right.",
         (double)c.accepted_tokens},
        {"steps_total", "counter", "Batches.", (double)c.n_steps},
        {"requests_total", "counter", "Requests for texts that were taken.", (double)c.n_jobs},
        {"requests_refused_total", "counter", "Requests for which there was no place.",
         (double)c.n_refused},
        {"requests_failed_total", "counter", "Requests that failed here.", (double)c.n_failed},
        {"prompt_seconds_total", "counter", "Time of batches with prompts.", c.prompt_seconds},
        {"generate_seconds_total", "counter", "Time of batches without.", c.generate_seconds},
        {"busy_seconds_total", "counter", "Time of all batches.", c.busy_seconds},
        {"requests_running", "gauge", "Texts in hand.", (double)c.n_running},
        {"requests_waiting", "gauge", "Requests in the queue.", (double)c.n_waiting},
        {"cache_cells_used", "gauge", "Tokens in the KV cache.", (double)c.cells_used},
        {"cache_cells", "gauge", "Tokens that the KV cache holds.", (double)c.n_cells},
    };
    (void)request;
    reply->type = "text/plain; version=0.0.4";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tnd_srv_print(&reply->body, "# HELP tandem_%s %s\n# TYPE tandem_%s %s\ntandem_%s %.10g\n",
                      rows[i].name, rows[i].what, rows[i].name, rows[i].kind, rows[i].name,
                      rows[i].value);
    }
}
