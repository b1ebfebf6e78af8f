/* SPDX-License-Identifier: MIT
 * The assistant's message of a chat: whole, or as deltas. */
#ifndef TANDEM_SERVER_SRV_MESSAGE_H
#define TANDEM_SERVER_SRV_MESSAGE_H

#include "tools/tandem-server/srv_server.h"

/** Options for splitting a job's text. */
struct srv_answer_options tnd_srv_message_options(const struct srv_job *job);
/** Adds {"role":"assistant","content":..} and further members. Returns the number of calls. */
int tnd_srv_message_add(const struct srv_job *job, struct srv_text *out);
/** Adds what is new in the first `n` bytes of the job's text, as the members of a delta without
 * braces; nothing if nothing is new. */
void tnd_srv_message_add_delta(const struct srv_job *job, struct srv_reader *reader, size_t n,
                               bool is_final, struct srv_text *out);
/** Adds the pieces of `text` from byte `begin` on, concatenated, as a JSON string. Returns the end
 * of the last one. */
size_t tnd_srv_message_add_spans(const char *text, const struct srv_spans *spans, size_t begin,
                                 struct srv_text *out);
/** The id of call i: from the model, or derived from the job's. `out` has 41 bytes. */
void tnd_srv_call_id(const struct srv_job *job, const struct srv_call *call, int i, char *out);

#endif
