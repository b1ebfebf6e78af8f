/* SPDX-License-Identifier: MIT
 * The assistant's message of a chat: as a whole, and as it comes. */
#ifndef TANDEM_SERVER_SRV_MESSAGE_H
#define TANDEM_SERVER_SRV_MESSAGE_H

#include "tools/tandem-server/srv_server.h"

/** Options by which a job's text is taken apart. */
struct srv_answer_options tnd_srv_message_options(const struct srv_job *job);
/** {"role":"assistant","content":..} with what else there is. Returns the number of calls. */
int tnd_srv_message_add(const struct srv_job *job, struct srv_text *out);
/** What is new in the first `n` bytes of the job's text, as the members of a delta without braces;
 *  nothing: there is nothing to tell yet. */
void tnd_srv_message_add_delta(const struct srv_job *job, struct srv_reader *reader, size_t n,
                               bool is_final, struct srv_text *out);
/** The pieces of `text` from byte `begin` on, joined, as a JSON string. Returns where the last one
 *  ends. */
size_t tnd_srv_message_add_spans(const char *text, const struct srv_spans *spans, size_t begin,
                                 struct srv_text *out);
/** The name of call i: as the model gave it, or made of the job's. `out` has 41 bytes. */
void tnd_srv_call_id(const struct srv_job *job, const struct srv_call *call, int i, char *out);

#endif
