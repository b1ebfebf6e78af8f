/* SPDX-License-Identifier: MIT
 * Functions of the route table that are in other files. */
#ifndef TANDEM_SERVER_SRV_ROUTES_H
#define TANDEM_SERVER_SRV_ROUTES_H

#include "tools/tandem-server/srv_server.h"

typedef void (*srv_route_fn)(const struct srv_server *server, const struct srv_request *request,
                             struct srv_reply *reply);

/* srv_texts.c: jobs */
void tnd_srv_chat_completions(const struct srv_server *server, const struct srv_request *request,
                              struct srv_reply *reply);
void tnd_srv_responses(const struct srv_server *server, const struct srv_request *request,
                       struct srv_reply *reply);
void tnd_srv_completions(const struct srv_server *server, const struct srv_request *request,
                         struct srv_reply *reply);
void tnd_srv_completion(const struct srv_server *server, const struct srv_request *request,
                        struct srv_reply *reply);
void tnd_srv_embeddings(const struct srv_server *server, const struct srv_request *request,
                        struct srv_reply *reply);
void tnd_srv_tokenize(const struct srv_server *server, const struct srv_request *request,
                      struct srv_reply *reply);
void tnd_srv_detokenize(const struct srv_server *server, const struct srv_request *request,
                        struct srv_reply *reply);
void tnd_srv_apply_template(const struct srv_server *server, const struct srv_request *request,
                            struct srv_reply *reply);

/* srv_about.c: description and state of the server */
void tnd_srv_health(const struct srv_server *server, const struct srv_request *request,
                    struct srv_reply *reply);
void tnd_srv_models(const struct srv_server *server, const struct srv_request *request,
                    struct srv_reply *reply);
void tnd_srv_model(const struct srv_server *server, const struct srv_request *request,
                   struct srv_reply *reply);
void tnd_srv_rerank(const struct srv_server *server, const struct srv_request *request,
                    struct srv_reply *reply);
void tnd_srv_infill(const struct srv_server *server, const struct srv_request *request,
                    struct srv_reply *reply);
void tnd_srv_props(const struct srv_server *server, const struct srv_request *request,
                   struct srv_reply *reply);
void tnd_srv_slots(const struct srv_server *server, const struct srv_request *request,
                   struct srv_reply *reply);
void tnd_srv_metrics(const struct srv_server *server, const struct srv_request *request,
                     struct srv_reply *reply);

/* srv_page.c: the chat page */
void tnd_srv_page(const struct srv_server *server, const struct srv_request *request,
                  struct srv_reply *reply);

#endif
