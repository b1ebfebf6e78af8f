/* SPDX-License-Identifier: MIT
 * Requests for texts: from JSON to a job's parameters and prompt. */
#ifndef TANDEM_SERVER_SRV_PARAMS_H
#define TANDEM_SERVER_SRV_PARAMS_H

#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_server.h"

/** Reads the parameters of a chat, a completion or llama.cpp's /completion. False: body->fault has
 * the reason; call tnd_srv_params_free in any case. */
bool tnd_srv_params_read(const struct srv_server *server, struct srv_body *body,
                         enum srv_style style, struct srv_params *out);
/** Encodes a 'query' with each of the 'documents'. False: the fault is in `body`. */
bool tnd_srv_pairs_read(const struct srv_server *server, struct srv_body *body,
                        struct srv_ids *out);
/** Reads the prompt of a request of this style: messages, "prompt" or "input". */
bool tnd_srv_prompt_read(const struct srv_server *server, struct srv_body *body,
                         enum srv_style style, struct srv_ids *out);
/** Encodes messages with the server's template. */
bool tnd_srv_messages_read(const struct srv_server *server, struct srv_body *body,
                           struct srv_ids *out);
/** Encodes a text; `special`: recognise special tokens in it. */
bool tnd_srv_text_encode(const struct srv_server *server, struct srv_body *body, const char *text,
                         bool adds_bos, bool adds_eos, bool special, struct srv_ids *out);
/** Reads an array of token ids. */
bool tnd_srv_ids_read(const struct srv_server *server, struct srv_body *body, const cJSON *array,
                      struct srv_ids *out);

/** tool_choice: restricts the output to a call. False: the fault is in `body`. */
bool tnd_srv_tools_force(struct srv_body *body, struct srv_params *params);

#endif
