/* SPDX-License-Identifier: MIT
 * /v1/responses, OpenAI's newer API: a chat with other names. Nothing is stored. */
#ifndef TANDEM_SERVER_SRV_RESPONSES_H
#define TANDEM_SERVER_SRV_RESPONSES_H

#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_server.h"

/** Replaces the body by the equivalent chat request. False: the fault is in `body`. */
bool tnd_srv_responses_read(struct srv_body *body);
/** Adds the response of a job that has ended. */
void tnd_srv_response_add(const struct srv_server *server, const struct srv_job *job,
                          struct srv_text *out);
/** Adds the events that are new in the first `n` bytes of the job's text; at the end, all that are
 * left. */
void tnd_srv_response_add_events(const struct srv_server *server, const struct srv_job *job,
                                 struct srv_reader *reader, size_t n, bool is_final,
                                 struct srv_text *out);

#endif
