/* SPDX-License-Identifier: MIT
 * Batches in flight: if layers are divided among ranks, rank 0 computes its own layers of a batch
 * and goes on to the next one, while the other ranks compute theirs. Batches of different sequences
 * are independent, so all ranks compute at the same time. Batches pass through the ranks in the
 * order in which they were begun, as messages between two ranks do; so results come in that order
 * on every rank. In other sessions, beginning a batch decodes it at once; only its results wait for
 * the caller. */
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/session.h"
#include "llama/shard.h"

/* Whether other ranks can compute a batch while this one goes on to the next. */
static bool can_be_in_flight(const tandem_session *session)
{
    const struct tnd_llama_shard *shard = session->model->shard;
    return session->leads != NULL && session->prompt_part == NULL &&
           tnd_llama_by_layers(session->model) && shard->last != 0 &&
           session->flights.wanted != 1 && tandem_communicator_can_post(session->leads);
}

int tandem_session_batches_in_flight(const tandem_session *session, int n_texts)
{
    if (session == NULL || !can_be_in_flight(session)) {
        return 1;
    }
    int n = session->flights.wanted > 0 ? session->flights.wanted
                                        : tnd_llama_layer_ranks(session->model->shard);
    n = n < TANDEM_BATCHES_IN_FLIGHT ? n : TANDEM_BATCHES_IN_FLIGHT;
    n = n < n_texts ? n : n_texts;
    return n > 1 ? n : 1;
}

static bool has(const struct tnd_llama_flight *flight, int32_t sequence)
{
    bool is_there = sequence < 0;
    for (int64_t i = 0; i < flight->n_entries; i++) {
        is_there = is_there || flight->entries[i].sequence == sequence;
    }
    return is_there;
}

/* Waits for the results of the oldest n batches. Stops at the first failure. */
static enum tandem_status finish_first(tandem_session *session, int n, struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < n; i++) {
        struct tnd_llama_flight *flight = &session->flights.list[i];
        if (!flight->is_done && status == TANDEM_OK) {
            status = tnd_llama_decode_end(session, flight, error);
            flight->is_done = status == TANDEM_OK;
        }
    }
    return status;
}

enum tandem_status tnd_llama_flights_finish(tandem_session *session, int32_t sequence,
                                            struct tandem_error *error)
{
    int n = 0;
    for (int i = 0; i < session->flights.n; i++) {
        n = has(&session->flights.list[i], sequence) ? i + 1 : n;
    }
    return finish_first(session, n, error);
}

enum tandem_status tnd_llama_flights_refuse(const tandem_session *session, const char *what,
                                            struct tandem_error *error)
{
    return session->flights.n == 0
               ? TANDEM_OK
               : tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", session->flights.n, 0,
                                "llama: %s while %d batches that were begun have not ended", what,
                                session->flights.n);
}

void tnd_llama_flights_fini(struct tnd_llama_flights *flights)
{
    for (int i = 0; i < TANDEM_BATCHES_IN_FLIGHT; i++) {
        free(flights->list[i].entries);
    }
}

static enum tandem_status begin_batch(tandem_session *session,
                                      const struct tandem_batch_entry *entries, int64_t n_entries,
                                      struct tandem_error *error)
{
    struct tnd_llama_flights *flights = &session->flights;
    struct tnd_llama_flight *flight = &flights->list[flights->n];
    if (flight->entries == NULL) {
        flight->entries = calloc((size_t)session->n_sequences, sizeof(flight->entries[0]));
    }
    if (flight->entries == NULL) {
        return tnd_llama_no_memory(error);
    }
    LLAMA_TRY(tnd_llama_check_entries(session, entries, n_entries, error));
    if (can_be_in_flight(session)) {
        LLAMA_TRY(tnd_llama_decode_begin(session, entries, n_entries, flight, error));
    } else {
        LLAMA_TRY(tandem_session_decode_batch(session, entries, n_entries, error));
        memcpy(flight->entries, entries, (size_t)n_entries * sizeof(entries[0]));
        flight->n_entries = n_entries;
        flight->is_done = true;
    }
    flights->n++;
    for (int64_t i = 0; i < n_entries; i++) {
        session->sequences[entries[i].sequence].is_in_flight = true;
    }
    return TANDEM_OK;
}

enum tandem_status tandem_session_begin_batch(tandem_session *session,
                                              const struct tandem_batch_entry *entries,
                                              int64_t n_entries, struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    LLAMA_REQUIRE(entries, error);
    if (session->flights.n == TANDEM_BATCHES_IN_FLIGHT) {
        return tnd_llama_fail(
            error, TANDEM_E_ARGUMENT, "llama", session->flights.n + 1, TANDEM_BATCHES_IN_FLIGHT,
            "llama: %d batches were begun; expected an end of one before the next",
            session->flights.n);
    }
    return tnd_llama_forget_samplers(session, begin_batch(session, entries, n_entries, error));
}

enum tandem_status tandem_session_end_batch(tandem_session *session, struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    struct tnd_llama_flights *flights = &session->flights;
    if (flights->n == 0) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", 0, 1,
                              "llama: the end of a batch, and none was begun");
    }
    const enum tandem_status status = finish_first(session, 1, error);
    const struct tnd_llama_flight first = flights->list[0];
    for (int64_t i = 0; i < first.n_entries; i++) {
        session->sequences[first.entries[i].sequence].is_in_flight = false;
    }
    flights->n--;
    memmove(flights->list, flights->list + 1, (size_t)flights->n * sizeof(first));
    flights->list[flights->n] = (struct tnd_llama_flight){.entries = first.entries};
    return status;
}
