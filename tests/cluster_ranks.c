/* SPDX-License-Identifier: MIT
 * usage: cluster-ranks MODEL RANKS|mpi [layers|mixed|whole|flights] [SHARE...]
 * Decodes a few tokens on so many ranks, which are threads of this process, or on those of an MPI
 * launcher, and prints a digest of all logits: for tests/cluster.sh, which compares them.
 *        cluster-ranks unreceived mpi
 * Rank 0 posts a message that rank 1 never receives, and both close: the launcher must end both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tandem/llama.h"
#include "tests/support_ranks.h"

struct job {
    const tandem_model *model;
    double shares[TND_RANKS_MOST];
    bool has_shares;
    enum tandem_division division;
    bool has_whole_experts;
    bool is_in_flight; /* several texts, by layers */
};

static uint64_t add_logits(uint64_t digest, const float *logits, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[i], sizeof(bits));
        digest = (digest ^ bits) * UINT64_C(0x100000001b3);
    }
    return digest;
}

static int32_t likeliest(const float *logits, int64_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* Texts that go on by their likeliest tokens, in batches that are begun before others end. */
static enum tandem_status lead_flights(const struct job *job, tandem_session *session,
                                       struct tandem_error *error)
{
    enum { TEXTS = 5, BATCHES = 3, STEPS = 6, LONGEST = 16 };
    const int64_t vocabulary = tandem_model_hparams(job->model)->vocabulary;
    int32_t tokens[TEXTS][LONGEST];
    uint64_t digest = 1;
    for (int i = 0; i < TEXTS * LONGEST; i++) {
        tokens[i / LONGEST][i % LONGEST] = (int32_t)((i * 37 + 5) % vocabulary);
    }
    for (int k = 0; k < BATCHES * (STEPS + 1); k++) {
        struct tandem_batch_entry entries[TEXTS];
        int64_t n = 0;
        enum tandem_status status =
            k < BATCHES ? TANDEM_OK : tandem_session_end_batch(session, error);
        for (int t = k % BATCHES; t < TEXTS && status == TANDEM_OK; t += BATCHES) {
            if (k >= BATCHES) {
                const float *logits = tandem_session_logits(session, t);
                digest = add_logits(digest, logits, vocabulary);
                tokens[t][0] = likeliest(logits, vocabulary);
            }
            entries[n++] =
                (struct tandem_batch_entry){tokens[t], k < BATCHES ? LONGEST - t : 1, t, true};
        }
        if (status == TANDEM_OK && k < BATCHES * STEPS) {
            status = tandem_session_begin_batch(session, entries, n, error);
        }
        if (status != TANDEM_OK) {
            return status;
        }
    }
    printf("%016llx\n", (unsigned long long)digest);
    return TANDEM_OK;
}

/* A batch, and the likeliest tokens behind it. */
static enum tandem_status lead(const struct job *job, tandem_session *session,
                               struct tandem_error *error)
{
    enum { PROMPT = 19, ALL = 27 };
    const int64_t vocabulary = tandem_model_hparams(job->model)->vocabulary;
    int32_t tokens[PROMPT];
    uint64_t digest = 1;
    for (int i = 0; i < PROMPT; i++) {
        tokens[i] = (int32_t)((i * 37 + 5) % vocabulary);
    }
    for (int n = PROMPT; n < ALL; n++) {
        const bool is_first = n == PROMPT;
        const enum tandem_status status =
            tandem_session_decode(session, tokens, is_first ? PROMPT : 1, 0, error);
        if (status != TANDEM_OK) {
            return status;
        }
        const float *logits = tandem_session_logits(session, 0);
        digest = add_logits(digest, logits, vocabulary);
        tokens[0] = likeliest(logits, vocabulary);
    }
    printf("%016llx\n", (unsigned long long)digest);
    return TANDEM_OK;
}

static enum tandem_status be_rank(tandem_communicator *communicator, void *user,
                                  struct tandem_error *error)
{
    const struct job *job = user;
    struct tandem_runtime_options of_runtime = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_session_options options = TANDEM_SESSION_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    tandem_session *session = NULL;
    of_runtime.n_threads = 1;
    of_runtime.table_path = "";
    enum tandem_status status = tandem_runtime_open(&of_runtime, &runtime, error);
    if (status == TANDEM_OK && tandem_communicator_rank(communicator) > 0) {
        status = tandem_session_follow(job->model, runtime, communicator, error);
    } else if (status == TANDEM_OK) {
        options.context = 64;
        options.communicator = communicator;
        options.shares = job->has_shares ? job->shares : NULL;
        options.division = job->division;
        options.has_whole_experts = job->has_whole_experts;
        options.n_sequences = job->is_in_flight ? 5 : 1;
        options.batches_in_flight = job->is_in_flight ? 3 : 0;
        options.micro_batches = job->is_in_flight ? 1 : job->division != TANDEM_DIVIDE_ROWS ? 3 : 0;
        options.prompt_batch = 2;
        status = tandem_session_new(job->model, runtime, &options, &session, error);
        status = status == TANDEM_OK
                     ? (job->is_in_flight ? lead_flights : lead)(job, session, error)
                     : status;
        tandem_session_free(session);
        if (tandem_communicator_error(communicator) == NULL) {
            (void)tandem_session_dismiss(communicator, NULL);
        }
    }
    tandem_runtime_close(runtime);
    return status;
}

static int fail(const struct tandem_error *error)
{
    fprintf(stderr, "cluster-ranks: %s\n", error->text);
    return 1;
}

static int run_threads(struct job *job, int count)
{
    struct tnd_rank_result results[TND_RANKS_MOST];
    tnd_ranks_run(count, be_rank, job, results);
    for (int i = 0; i < count; i++) {
        if (results[i].status != TANDEM_OK) {
            return fail(&results[i].error);
        }
    }
    return 0;
}

static int run_mpi(struct job *job)
{
    struct tandem_error error = {.text = ""};
    tandem_communicator *communicator = NULL;
    enum tandem_status status = tandem_communicator_open(&communicator, &error);
    status = status == TANDEM_OK ? be_rank(communicator, job, &error) : status;
    const int code = status == TANDEM_OK ? 0 : fail(&error);
    tandem_communicator_close(communicator);
    return code;
}

static int run_unreceived(void)
{
    static const char data[4 << 20];
    struct tandem_error error = {.text = ""};
    tandem_communicator *communicator = NULL;
    enum tandem_status status = tandem_communicator_open(&communicator, &error);
    tandem_communicator_set_limit(communicator, 1);
    if (status == TANDEM_OK && tandem_communicator_rank(communicator) == 0) {
        status = tandem_communicator_post(communicator, 1, data, sizeof(data), &error);
    }
    tandem_communicator_close(communicator);
    return status == TANDEM_OK ? 0 : fail(&error);
}

int main(int argc, char **argv)
{
    struct tandem_error error = {.text = ""};
    const bool by_layers = argc > 3 && strcmp(argv[3], "layers") == 0;
    const bool is_mixed = argc > 3 && strcmp(argv[3], "mixed") == 0;
    const bool is_whole = argc > 3 && strcmp(argv[3], "whole") == 0; /* experts */
    const bool is_in_flight = argc > 3 && strcmp(argv[3], "flights") == 0;
    const int first = by_layers || is_mixed || is_whole || is_in_flight ? 4 : 3;
    struct job job = {.has_shares = argc > first,
                      .division = by_layers || is_in_flight ? TANDEM_DIVIDE_LAYERS
                                  : is_mixed                ? TANDEM_DIVIDE_MIXED
                                                            : TANDEM_DIVIDE_ROWS,
                      .has_whole_experts = is_whole,
                      .is_in_flight = is_in_flight};
    tandem_model *model = NULL;
    if (argc == 3 && strcmp(argv[1], "unreceived") == 0) {
        return run_unreceived();
    }
    const int count = argc > 2 ? atoi(argv[2]) : 0;
    const bool is_mpi = argc > 2 && strcmp(argv[2], "mpi") == 0;
    if (argc < 3 || argc > first + TND_RANKS_MOST || (!is_mpi && (count < 1 || count > 16))) {
        fprintf(stderr, "usage: cluster-ranks MODEL RANKS|mpi [layers|mixed|whole|flights] "
                        "[SHARE...]\n");
        return 2;
    }
    for (int i = first; i < argc; i++) {
        job.shares[i - first] = strtod(argv[i], NULL);
    }
    if (tandem_model_load(argv[1], &model, &error) != TANDEM_OK) {
        return fail(&error);
    }
    job.model = model;
    const int code = is_mpi ? run_mpi(&job) : run_threads(&job, count);
    tandem_model_free(model);
    return code;
}
