/* SPDX-License-Identifier: MIT
 * Additions to logits before a token is chosen: logit_bias, presence_penalty, frequency_penalty
 * (OpenAI's definitions) and ignore_eos. */
#ifndef TANDEM_SERVER_SRV_BIAS_H
#define TANDEM_SERVER_SRV_BIAS_H

#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_job.h"
#include "tools/tandem-server/srv_vocabulary.h"

/** Reads these members of a request. False: body->fault has the reason. */
bool tnd_srv_bias_read(struct srv_body *body, int64_t vocabulary, struct srv_bias *out);
void tnd_srv_bias_free(struct srv_bias *bias);
/** Whether nothing is added. */
bool tnd_srv_bias_is_empty(const struct srv_bias *bias);
/** The modified logits: `logits` itself if nothing is added, else `scratch`, filled with
 * {vocabulary->n} values. `written`: the `n` tokens generated so far. */
const float *tnd_srv_bias_apply(const struct srv_bias *bias,
                                const struct srv_vocabulary *vocabulary, const int32_t *written,
                                int64_t n, const float *logits, float *scratch);

#endif
