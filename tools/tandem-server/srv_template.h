/* SPDX-License-Identifier: MIT
 * Conversations as variables of the model's chat template, and rendering them. */
#ifndef TANDEM_SERVER_SRV_TEMPLATE_H
#define TANDEM_SERVER_SRV_TEMPLATE_H

#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_server.h"

/** The messages of a request as templates expect them: text parts concatenated, arguments of calls
 * as objects. An assistant's message at the end is removed and becomes `out_begun`, with which the
 * answer begins (NULL: none). The caller owns both. NULL: the fault is in the body. */
cJSON *tnd_srv_template_messages(struct srv_body *body, const cJSON *messages, char **out_begun);
/** Renders messages and tools (NULL: none; both borrowed) with the other variables of the request,
 * appends `begun` and encodes the result. False: the fault is in the body. */
bool tnd_srv_template_encode(const struct srv_server *server, struct srv_body *body,
                             const cJSON *messages, const cJSON *tools, const char *begun,
                             struct srv_ids *out);

#endif
