/* SPDX-License-Identifier: MIT
 * Members of requests that restrict the output: grammar, json_schema, response_format, and vLLM's
 * guided_json and structured_outputs. */
#ifndef TANDEM_SERVER_SRV_GRAMMAR_H
#define TANDEM_SERVER_SRV_GRAMMAR_H

#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_job.h"

/** Makes the grammar of a request, if it asks for one. False: the fault is in `body`. */
bool tnd_srv_grammar_read(struct srv_body *body, struct srv_params *out);
/** Makes a grammar from a text on behalf of a member, unless there is one; `before` and `after`
 * (may be NULL) are texts around the restricted part. */
bool tnd_srv_grammar_set(struct srv_body *body, const char *member, enum tandem_grammar_kind kind,
                         const char *text, const char *before, const char *after,
                         struct srv_params *out);
/** Like tnd_srv_grammar_set, from a JSON value: a schema, or an array of choices. */
bool tnd_srv_grammar_set_json(struct srv_body *body, const char *member,
                              enum tandem_grammar_kind kind, const cJSON *value, const char *before,
                              const char *after, struct srv_params *out);

#endif
