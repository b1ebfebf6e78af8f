/* SPDX-License-Identifier: MIT
 * Conversations as variables of the model's chat template, and what the template makes of them. */
#ifndef TANDEM_SERVER_SRV_TEMPLATE_H
#define TANDEM_SERVER_SRV_TEMPLATE_H

#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_server.h"

/** The messages of a request as the template wants them: parts of text joined, the arguments of
 *  calls as objects. An assistant's message at the end is left out and becomes `out_begun`, with
 *  which the answer begins (NULL: none). The caller owns both. NULL: the body has the fault. */
cJSON *tnd_srv_template_messages(struct srv_body *body, const cJSON *messages, char **out_begun);
/** Renders messages and tools (NULL: none; both borrowed) with the other variables of the request,
 *  and encodes the result with `begun` behind it. False: the body has the fault. */
bool tnd_srv_template_encode(const struct srv_server *server, struct srv_body *body,
                             const cJSON *messages, const cJSON *tools, const char *begun,
                             struct srv_ids *out);

#endif
