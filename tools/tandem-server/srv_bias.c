/* SPDX-License-Identifier: MIT
 * Additions to logits. OpenAI's API reference, "logit_bias", and its guide to parameters: a token
 * that was generated c times gets frequency_penalty * c less, and presence_penalty less once. */
#include "tools/tandem-server/srv_bias.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static bool add(struct srv_body *body, struct srv_bias *out, int64_t vocabulary, double id,
                const cJSON *value)
{
    const bool is_ban = cJSON_IsFalse(value); /* as in llama.cpp's server */
    if (!(id >= 0 && id < (double)vocabulary) || id != (double)(int32_t)id) {
        return tnd_srv_body_fault(body, "'logit_bias' needs token ids from 0 to %lld",
                                  (long long)vocabulary - 1);
    }
    if (!is_ban && !(cJSON_IsNumber(value) && fabs(value->valuedouble) <= 100)) {
        return tnd_srv_body_fault(body,
                                  "'logit_bias' of token %d must be a number from -100 to "
                                  "100, or false",
                                  (int)id);
    }
    out->rows[out->n++] =
        (struct srv_bias_row){(int32_t)id, is_ban ? -INFINITY : (float)value->valuedouble};
    return true;
}

/* {"50256": -100} as OpenAI, [[50256, -100], [7, false]] as llama.cpp's server. */
static bool read_rows(struct srv_body *body, int64_t vocabulary, struct srv_bias *out)
{
    const cJSON *member = tnd_srv_body_member(body, "logit_bias");
    const int n = member != NULL ? cJSON_GetArraySize(member) : 0;
    if (member != NULL && !cJSON_IsObject(member) && !cJSON_IsArray(member)) {
        return tnd_srv_body_fault(body, "'logit_bias' must be an object of token ids");
    }
    if (n > SRV_MAX_BIAS) {
        return tnd_srv_body_fault(body, "'logit_bias' has %d tokens, at most %d", n, SRV_MAX_BIAS);
    }
    if (n == 0) {
        return true;
    }
    out->rows = calloc((size_t)n, sizeof(out->rows[0]));
    if (out->rows == NULL) {
        return tnd_srv_body_fault(body, "no memory");
    }
    for (const cJSON *one = member->child; one != NULL; one = one->next) {
        int64_t id = -1;
        const cJSON *value = one;
        if (cJSON_IsObject(member)) {
            if (!tnd_text_to_i64(one->string, strlen(one->string), &id)) {
                id = -1;
            }
        } else {
            const bool is_pair = cJSON_IsArray(one) && cJSON_IsNumber(one->child);
            const double number = is_pair ? one->child->valuedouble : -1;
            id = number >= 0 && number < 0x1p31 && number == floor(number) ? (int64_t)number : -1;
            value = is_pair ? one->child->next : NULL;
        }
        if (!add(body, out, vocabulary, (double)id, value)) {
            return false;
        }
    }
    return true;
}

bool tnd_srv_bias_read(struct srv_body *body, int64_t vocabulary, struct srv_bias *out)
{
    double presence = 0;
    double frequency = 0;
    if (!tnd_srv_body_number(body, "presence_penalty", -2, 2, &presence) ||
        !tnd_srv_body_number(body, "frequency_penalty", -2, 2, &frequency) ||
        !tnd_srv_body_flag(body, "ignore_eos", &out->ignores_ends)) {
        return false;
    }
    out->presence = (float)presence;
    out->frequency = (float)frequency;
    return read_rows(body, vocabulary, out);
}

void tnd_srv_bias_free(struct srv_bias *bias)
{
    free(bias->rows);
    *bias = (struct srv_bias){.rows = NULL};
}

/* Whether the token occurs among the first n. */
static bool was_written(const int32_t *written, int64_t n, int32_t id)
{
    for (int64_t i = 0; i < n; i++) {
        if (written[i] == id) {
            return true;
        }
    }
    return false;
}

bool tnd_srv_bias_is_empty(const struct srv_bias *bias)
{
    return bias->n == 0 && !bias->ignores_ends && bias->presence == 0 && bias->frequency == 0;
}

const float *tnd_srv_bias_apply(const struct srv_bias *bias,
                                const struct srv_vocabulary *vocabulary, const int32_t *written,
                                int64_t n, const float *logits, float *scratch)
{
    const bool has_penalty = bias->presence != 0 || bias->frequency != 0;
    if (tnd_srv_bias_is_empty(bias)) {
        return logits;
    }
    memcpy(scratch, logits, (size_t)vocabulary->n * sizeof(scratch[0]));
    for (int64_t i = 0; has_penalty && i < n; i++) {
        if (written[i] >= 0 && written[i] < vocabulary->n) {
            scratch[written[i]] -= bias->frequency;
            if (bias->presence != 0 && !was_written(written, i, written[i])) {
                scratch[written[i]] -= bias->presence;
            }
        }
    }
    for (int i = 0; i < bias->n; i++) {
        scratch[bias->rows[i].id] += bias->rows[i].value;
    }
    for (size_t i = 0; bias->ignores_ends && i < vocabulary->n_ends; i++) {
        if (vocabulary->ends[i] >= 0 && vocabulary->ends[i] < vocabulary->n) {
            scratch[vocabulary->ends[i]] = -INFINITY;
        }
    }
    return scratch;
}
