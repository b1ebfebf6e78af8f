/* SPDX-License-Identifier: MIT
 * Which function handles which path, and who may call it. */
#include "tools/tandem-server/srv_routes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct route {
    const char *method, *path; /* a path that ends with '/' matches all that begin with it */
    srv_route_fn fn;
    bool is_open; /* needs no key */
};

static const struct route routes[] = {
    {"GET", "/", tnd_srv_page, true},
    {"GET", "/health", tnd_srv_health, true},
    {"GET", "/v1/health", tnd_srv_health, true},
    {"GET", "/v1/models", tnd_srv_models, false},
    {"GET", "/models", tnd_srv_models, false},
    {"GET", "/v1/models/", tnd_srv_model, false},
    {"GET", "/models/", tnd_srv_model, false},
    {"POST", "/v1/rerank", tnd_srv_rerank, false},
    {"POST", "/rerank", tnd_srv_rerank, false},
    {"POST", "/infill", tnd_srv_infill, false},
    {"POST", "/v1/chat/completions", tnd_srv_chat_completions, false},
    {"POST", "/chat/completions", tnd_srv_chat_completions, false},
    {"POST", "/v1/responses", tnd_srv_responses, false},
    {"POST", "/v1/completions", tnd_srv_completions, false},
    {"POST", "/completion", tnd_srv_completion, false},
    {"POST", "/v1/embeddings", tnd_srv_embeddings, false},
    {"POST", "/tokenize", tnd_srv_tokenize, false},
    {"POST", "/detokenize", tnd_srv_detokenize, false},
    {"POST", "/apply-template", tnd_srv_apply_template, false},
    {"GET", "/slots", tnd_srv_slots, false},
    {"GET", "/props", tnd_srv_props, false},
    {"GET", "/metrics", tnd_srv_metrics, false},
};
enum { N_ROUTES = sizeof(routes) / sizeof(routes[0]) };

static const char *kind_of(int status)
{
    return status == 401   ? "authentication_error"
           : status == 403 ? "permission_error"
           : status == 404 ? "not_found_error"
           : status == 503 ? "unavailable_error"
           : status == 501 ? "not_supported_error"
           : status >= 500 ? "server_error"
                           : "invalid_request_error";
}

void tnd_srv_reply_error(struct srv_reply *reply, int status, const char *format, ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    tnd_srv_text_free(&reply->body);
    reply->status = status;
    reply->type = "application/json";
    tnd_srv_print(&reply->body,
                  "{\"error\":{\"code\":%d,\"type\":\"%s\",\"param\":null,"
                  "\"message\":",
                  status, kind_of(status));
    tnd_srv_add_json_text(&reply->body, message);
    tnd_srv_print(&reply->body, "}}");
}

void tnd_srv_reply_free(struct srv_reply *reply)
{
    tnd_srv_text_free(&reply->body);
    tnd_srv_job_unref(reply->job);
    reply->job = NULL;
}

/* Constant time, so that timing does not reveal the first wrong byte. */
static bool is_key(const char *given, const char *key)
{
    const char *head = "Bearer ";
    if (given == NULL || strncmp(given, head, strlen(head)) != 0) {
        return false;
    }
    given += strlen(head);
    const size_t n = strlen(given);
    const size_t n_key = strlen(key);
    unsigned different = n != n_key;
    for (size_t i = 0; i < n; i++) {
        different |= (unsigned char)given[i] ^ (unsigned char)key[n_key > 0 ? i % n_key : 0];
    }
    return different == 0;
}

/* Whether a header's host is `name`, with or without a port. */
static bool is_host(const char *host, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(host, name, n) == 0 && (host[n] == '\0' || host[n] == ':');
}

/* A foreign web page in a browser on this machine must not reach the server: neither by its own
 * origin nor by a host name that resolves to this machine (DNS rebinding). */
static bool is_trusted(const struct srv_server *server, const struct srv_request *request)
{
    const char *host = request->host != NULL ? request->host : "";
    const char *origin = request->origin;
    if (server->is_local && !is_host(host, "localhost") && !is_host(host, "127.0.0.1") &&
        !is_host(host, "[::1]") && host[0] != '\0') {
        return false;
    }
    const char *rest = origin != NULL ? strstr(origin, "://") : NULL;
    return origin == NULL || (rest != NULL && strcmp(rest + 3, host) == 0);
}

static const struct route *find_route(const struct srv_request *request, const char **out_allow)
{
    const bool is_head = strcmp(request->method, "HEAD") == 0;
    const char *method = is_head ? "GET" : request->method;
    *out_allow = NULL;
    for (int i = 0; i < N_ROUTES; i++) {
        const size_t n = strlen(routes[i].path);
        const bool is_folder = n > 1 && routes[i].path[n - 1] == '/';
        if (is_folder ? strncmp(routes[i].path, request->path, n) == 0
                      : strcmp(routes[i].path, request->path) == 0) {
            if (strcmp(routes[i].method, method) == 0) {
                return &routes[i];
            }
            *out_allow = routes[i].method;
        }
    }
    return NULL;
}

void tnd_srv_answer(const struct srv_server *server, const struct srv_request *request,
                    struct srv_reply *reply)
{
    const char *allow;
    const struct route *route = find_route(request, &allow);
    *reply = (struct srv_reply){.status = 200, .type = "application/json"};
    if (!is_trusted(server, request)) {
        tnd_srv_reply_error(reply, 403, "requests of other sites are not served");
    } else if (server->api_key != NULL && (route == NULL || !route->is_open) &&
               !is_key(request->authorization, server->api_key)) {
        tnd_srv_reply_error(reply, 401, "the API key is missing or wrong");
    } else if (route == NULL && allow != NULL) {
        tnd_srv_reply_error(reply, 405, "%.60s takes %s", request->path, allow);
        reply->allow = allow;
    } else if (route == NULL) {
        tnd_srv_reply_error(reply, 404, "there is no %.60s", request->path);
    } else {
        route->fn(server, request, reply);
    }
    if (reply->body.failed) {
        tnd_srv_reply_error(reply, 500, "no memory for the reply");
    }
}
