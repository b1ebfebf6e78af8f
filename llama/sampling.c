/* SPDX-License-Identifier: MIT
 * Chooses next tokens where the logits are: a batch's graph ends with an operation that chooses,
 * and only the choices leave the device. What the operation does not support (penalties, grammars,
 * incomplete characters, drafts) the sampler does from the logits, as on a CPU. Several ranks:
 * llama/best.c. */
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/sampler.h"
#include "llama/session.h"

/* ---- the mask, shared by all texts of a tokenizer ---- */

static bool is_known_mask(const struct tnd_llama_sampling *sampling, const uint32_t *mask, size_t n)
{
    return sampling->mask != NULL &&
           memcmp(tandem_tensor_data(sampling->mask), mask, n * sizeof(mask[0])) == 0;
}

/* Keeps a copy for the session's lifetime, so that devices may keep it, too; false: no memory. */
static bool keep_mask(struct tnd_llama_sampling *sampling, const uint32_t *mask, size_t n)
{
    const int64_t ne = (int64_t)n;
    tandem_context_free(sampling->context);
    sampling->context = NULL;
    sampling->mask = NULL;
    if (tandem_context_new(NULL, &sampling->context, NULL) != TANDEM_OK) {
        return false;
    }
    tandem_tensor *tensor = tandem_tensor_new(sampling->context, TANDEM_TYPE_I32, 1, &ne);
    if (tensor == NULL) {
        return false;
    }
    memcpy(tandem_tensor_data(tensor), mask, n * sizeof(mask[0]));
    tandem_tensor_set_role(tandem_tensor_set_name(tensor, "mask"), TANDEM_ROLE_CONSTANT);
    sampling->mask = tensor;
    return true;
}

void tnd_llama_sampling_fini(struct tnd_llama_sampling *sampling)
{
    tandem_context_free(sampling->context);
    free(sampling->settings);
    *sampling = (struct tnd_llama_sampling){0};
}

/* ---- a batch ---- */

/* Whether every text that wants logits has a sampler that the operation can replace, all with the
 * same mask; fills in their settings. */
static bool ask(tandem_session *session, const struct tandem_batch_entry *entries,
                int64_t n_entries, const uint32_t **out_mask, int *out_steps)
{
    struct tnd_llama_sampling *sampling = &session->sampling;
    const size_t n_words = (size_t)(session->model->hparams.vocabulary + 31) / 32;
    int64_t n = 0;
    *out_steps = 0;
    for (int64_t i = 0; i < n_entries; i++) {
        const uint32_t *mask = NULL;
        if (!entries[i].wants_logits) {
            continue;
        }
        tandem_sampler *sampler = session->sequences[entries[i].sequence].sampler;
        if (sampler == NULL || !tnd_sampler_ask(sampler, session->model->hparams.vocabulary,
                                                &sampling->settings[n], &mask, out_steps)) {
            return false;
        }
        if (n > 0 && (mask == NULL) != (*out_mask == NULL)) {
            return false;
        }
        if (n > 0 && mask != NULL && memcmp(mask, *out_mask, n_words * sizeof(mask[0])) != 0) {
            return false;
        }
        *out_mask = mask;
        n++;
    }
    return n > 0;
}

void tnd_llama_sampling_ask(tandem_session *session, const struct tandem_batch_entry *entries,
                            int64_t n_entries, struct tnd_llama_batch *batch)
{
    struct tnd_llama_sampling *sampling = &session->sampling;
    const size_t n_words = (size_t)(session->model->hparams.vocabulary + 31) / 32;
    const uint32_t *mask = NULL;
    int steps = 0;
    if (batch->is_on_cpu || session->model->shard != NULL || session->draft != NULL ||
        session->has_embeddings || session->model->hparams.is_encoder) {
        return;
    }
    if (sampling->settings == NULL) {
        sampling->settings = calloc((size_t)session->n_sequences, sizeof(sampling->settings[0]));
    }
    if (sampling->settings == NULL || !ask(session, entries, n_entries, &mask, &steps) ||
        (mask != NULL && !is_known_mask(sampling, mask, n_words) &&
         !keep_mask(sampling, mask, n_words))) {
        return;
    }
    batch->settings = sampling->settings;
    batch->sample_mask = mask != NULL ? sampling->mask : NULL;
    batch->sample_steps = steps;
}

/* ---- public interface ---- */

enum tandem_status tandem_session_sample_with(tandem_session *session, int32_t sequence,
                                              tandem_sampler *sampler, struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    if (sequence < 0 || sequence >= session->n_sequences) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", sequence, session->n_sequences,
                              "llama: sequence %d, expected 0 to %d", (int)sequence,
                              session->n_sequences - 1);
    }
    session->sequences[sequence].sampler = sampler;
    return TANDEM_OK;
}

int32_t tandem_session_sample(tandem_session *session, int32_t sequence, tandem_sampler *sampler,
                              float *out_probability)
{
    if (session == NULL || sampler == NULL || sequence < 0 || sequence >= session->n_sequences) {
        return -1;
    }
    struct tnd_llama_sequence *s = &session->sequences[sequence];
    if (s->chosen_for != sampler) {
        return tnd_sampler_choose(sampler, tandem_session_logits(session, sequence),
                                  out_probability);
    }
    if (out_probability != NULL) {
        *out_probability = tnd_sampler_probability(&s->choice);
    }
    tnd_sampler_took(sampler);
    s->chosen_for = NULL; /* a second choice would need another random number */
    return s->choice.index;
}
