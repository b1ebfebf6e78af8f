/* SPDX-License-Identifier: MIT
 * Fuzzes what ranks tell each other of choices: to a rank that follows, what samplers ask for; to
 * rank 0, likeliest tokens of the other rank. Sums and sizes come back as this rank sent them.
 *
 * An input is a byte for the rank (bit 0) and for verdicts (bit 1), one for columns or settings,
 * and the message. */
#include <stdlib.h>
#include <string.h>

#include "llama/best.h"
#include "llama/session.h"
#include "llama/shard.h"
#include "tests/fuzz/small_rank.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VOCABULARY = 1024, TEXTS = 2 };
/* The seeds in corpus/choices are laid out so: make them anew where these change. */
_Static_assert(sizeof(struct tandem_sample_settings) == 32 &&
                   sizeof(struct tandem_sample_first) == 8,
               "seeds of fuzz_choices");

static struct {
    const uint8_t *data;
    size_t left;
    bool verdict;
} input;

/* A broadcast of a follower is a verdict; what rank 0 receives is the other rank's message. */
static bool exchange(void *self, const struct tandem_message *sends, int n_sends,
                     const struct tandem_message *receives, int n_receives, double limit_s,
                     int *out_rank, char *why, size_t why_bytes)
{
    const bool *is_follower = self;
    (void)limit_s, (void)why, (void)why_bytes;
    *out_rank = 0;
    if (small_rank_echoes(sends, n_sends, receives, n_receives)) {
        return true;
    }
    for (int i = 0; i < n_receives; i++) {
        const struct tandem_message *message = &receives[i];
        if (*is_follower) {
            memset(message->data, input.verdict, message->bytes);
        } else if (message->bytes <= input.left) {
            memcpy(message->data, input.data, message->bytes);
            input.data += message->bytes;
            input.left -= message->bytes;
        } else {
            return false;
        }
    }
    return true;
}

static void require(bool good)
{
    if (!good) {
        __builtin_trap();
    }
}

/* What is taken over is also computed. */
static void follow(tandem_session *session, int64_t n_columns)
{
    static const int32_t tokens[TEXTS] = {1, 2};
    struct tandem_batch_entry entries[TEXTS];
    struct tandem_error error = {.text = ""};
    void *told = malloc(input.left + 1); /* aligned, as tokens are; choices point to it */
    require(told != NULL);
    memcpy(told, input.data, input.left);
    if (tnd_llama_best_take(session, told, input.left, n_columns, &error) != TANDEM_OK) {
        require(error.text[0] != '\0' && session->best.n == 0);
        free(told);
        return;
    }
    for (int i = 0; i < TEXTS; i++) {
        entries[i] = (struct tandem_batch_entry){&tokens[i], 1, i, true};
    }
    if (n_columns > 0 && n_columns <= TEXTS) {
        require(tandem_session_decode_batch(session, entries, n_columns, &error) == TANDEM_OK);
    }
    free(told);
}

static void lead(tandem_session *session, unsigned ask)
{
    static const struct tandem_sampler_options asks[] = {
        {.temperature = 0},
        {.temperature = 1, .top_k = 3},
        {.temperature = 0.3f, .top_p = 0.9f},
        {.temperature = 0.3f, .min_p = 0.2f, .repeat_penalty = 1.3f}};
    struct tandem_sampler_options options = asks[ask % (sizeof(asks) / sizeof(asks[0]))];
    const int32_t token = 1;
    struct tandem_error error = {.text = ""};
    tandem_sampler *sampler = NULL;
    options.size = sizeof(options);
    options.vocabulary = VOCABULARY;
    require(tandem_sampler_new(&options, &sampler, NULL) == TANDEM_OK);
    tandem_sampler_accept(sampler, 700, false);
    require(tandem_session_sample_with(session, 0, sampler, NULL) == TANDEM_OK);
    if (tandem_session_decode(session, &token, 1, 1, &error) == TANDEM_OK) {
        const int32_t chosen = tandem_session_sample(session, 0, sampler, NULL);
        require(chosen >= 0 && chosen < VOCABULARY);
    } else {
        require(error.text[0] != '\0');
    }
    tandem_sampler_free(sampler);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    bool is_follower = (data[0] & 1) != 0;
    const struct tandem_transport transport = {.size = sizeof(transport),
                                               .self = &is_follower,
                                               .rank = is_follower,
                                               .count = 2,
                                               .exchange = exchange,
                                               .close = small_rank_end};
    struct tandem_session_options options = TANDEM_SESSION_OPTIONS_INIT;
    tandem_communicator *communicator = NULL;
    tandem_session *session = NULL;
    tandem_model *part = NULL;
    input.verdict = (data[0] >> 1 & 1) != 0;
    input.data = data + 2;
    input.left = size - 2;
    require(tandem_communicator_new(&transport, &communicator, NULL) == TANDEM_OK);
    options.n_sequences = TEXTS;
    if (is_follower) {
        require(tnd_llama_shard_new(small_rank_model(VOCABULARY), communicator, TANDEM_DIVIDE_ROWS,
                                    false, NULL, &part, NULL) == TANDEM_OK &&
                tnd_llama_session_of_part(part, NULL, small_runtime(), &options, &session, NULL) ==
                    TANDEM_OK);
        follow(session, data[1] % (TEXTS + 2));
    } else {
        options.communicator = communicator;
        require(tandem_session_new(small_rank_model(VOCABULARY), small_runtime(), &options,
                                   &session, NULL) == TANDEM_OK);
        lead(session, data[1]);
    }
    tandem_session_free(session);
    tandem_communicator_close(communicator);
    return 0;
}
