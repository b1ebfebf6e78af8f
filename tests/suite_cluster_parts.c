/* SPDX-License-Identifier: MIT
 * What ranks read of a model's file is what tnd_llama_shard_reads tells, for every architecture and
 * way to divide it; what is not there is told and not read as zeros. */
#include <stdio.h>
#include <string.h>

#include "base/tnd_mapped.h"
#include "formats/source.h"
#include "llama/shard.h"
#include "tests/suite_llama.h"
#include "tests/support_golden.h"
#include "tests/support_rank_sessions.h"
#include "tests/support_ranks.h"

enum { N_TOKENS = TND_GOLDEN_TOKENS, VOCABULARY = TND_GOLDEN_VOCABULARY };

static const struct way {
    const char *name;
    enum tandem_division division;
    bool has_whole_experts;
} ways[] = {
    {"rows", TANDEM_DIVIDE_ROWS, false},
    {"whole experts", TANDEM_DIVIDE_ROWS, true},
    {"layers", TANDEM_DIVIDE_LAYERS, false},
    {"mixed", TANDEM_DIVIDE_MIXED, false},
};
enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

struct job {
    const char *path;
    const struct way *way; /* NULL: one rank, with all of the file */
    int lacking;           /* rank that lacks a byte of what it reads; -1: none */
    float logits[VOCABULARY];
    uint64_t bytes[TND_RANKS_MOST]; /* that each rank reads */
};

struct wish {
    const struct tnd_file *file;
    struct tnd_spans spans;
};

static void tell(void *user, const void *data, size_t bytes, size_t stride, int64_t times)
{
    struct wish *wish = user;
    const uintptr_t begin = (uintptr_t)wish->file->data, at = (uintptr_t)data;
    for (int64_t i = 0; i < times && at >= begin && at - begin < wish->file->bytes; i++) {
        const uint64_t offset = at - begin + (uint64_t)i * stride;
        tnd_spans_add(&wish->spans, offset, offset + bytes);
    }
}

/* The largest range loses a byte. */
static void lose(struct tnd_spans *spans)
{
    struct tnd_spans lost = TND_SPANS_INIT, rest = TND_SPANS_INIT;
    size_t largest = 0;
    for (size_t i = 1; i < spans->n; i++) {
        const struct tnd_file_span *span = &spans->list[i], *best = &spans->list[largest];
        largest = span->end - span->begin > best->end - best->begin ? i : largest;
    }
    const uint64_t at = (spans->list[largest].begin + spans->list[largest].end) / 2;
    tnd_spans_add(&lost, at, at + 1);
    tnd_spans_subtract(spans, &lost, &rest);
    tnd_spans_fini(spans);
    tnd_spans_fini(&lost);
    *spans = rest;
}

/* Of the file the rank has what it says that it reads. */
static enum tandem_status cut(const struct job *job, const tandem_model *model,
                              tandem_communicator *communicator,
                              const struct tandem_session_options *options, struct wish *wish,
                              struct tandem_error *error)
{
    struct tandem_session_options asked = *options;
    asked.communicator = communicator;
    const enum tandem_status status = tnd_llama_shard_reads(model, &asked, tell, wish, error);
    tnd_spans_tidy(&wish->spans);
    if (status == TANDEM_OK && job->lacking == tandem_communicator_rank(communicator)) {
        lose(&wish->spans);
    }
    tnd_mapped_set_present(wish->file->data, &wish->spans);
    return status;
}

/* A prompt, and a token behind it, which a mixed session computes by rows. */
static enum tandem_status decode(struct job *job, tandem_session *session,
                                 struct tandem_error *error)
{
    enum tandem_status status =
        tandem_session_decode(session, tnd_golden_tokens, N_TOKENS - 1, 0, error);
    if (status == TANDEM_OK) {
        status = tandem_session_decode(session, tnd_golden_tokens + N_TOKENS - 1, 1, 0, error);
    }
    const float *logits = tandem_session_logits(session, 0);
    if (status == TANDEM_OK && logits != NULL) {
        memcpy(job->logits, logits, sizeof(job->logits));
    }
    return status;
}

static enum tandem_status be_rank(tandem_communicator *communicator, void *user,
                                  struct tandem_error *error)
{
    struct job *job = user;
    const int rank = tandem_communicator_rank(communicator);
    struct tandem_session_options options = TANDEM_SESSION_OPTIONS_INIT;
    struct tnd_rank_session session = {.session = NULL};
    tandem_source *source = NULL;
    tandem_model *model = NULL;
    struct wish wish = {.file = NULL};
    enum tandem_status status = tandem_source_open(job->path, &source, error);
    status = status == TANDEM_OK ? tandem_model_new(source, &model, error) : status;
    if (status == TANDEM_OK && job->way != NULL) {
        wish.file = &source->file;
        options.division = job->way->division;
        options.has_whole_experts = job->way->has_whole_experts;
        options.prompt_batch = 4;
        status = cut(job, model, communicator, &options, &wish, error);
        job->bytes[rank] = tnd_spans_bytes(&wish.spans);
    }
    if (status == TANDEM_OK) {
        status = tnd_rank_session_begin(&session, model, communicator, &options, error);
        if (session.session != NULL) {
            status = decode(job, session.session, error);
        }
        tnd_rank_session_end(&session);
    }
    tandem_model_free(model);
    tandem_source_close(source);
    tnd_spans_fini(&wish.spans);
    return status;
}

static bool write_gguf(const struct tnd_golden_model *golden, const char *path)
{
    tandem_source *source = NULL;
    tnd_golden_write(golden->config, golden->tensors, -1, NULL);
    const bool is_written =
        check_ok(tandem_source_open(tnd_test_temp("model.safetensors"), &source, NULL)) &&
        check_ok(tandem_source_save_gguf(source, path, NULL, NULL));
    tandem_source_close(source);
    return is_written;
}

static void ranks_read_what_they_say(void)
{
    char path[512];
    int n_compared[N_WAYS] = {0};
    for (int i = 0; i < tnd_n_golden_models; i++) {
        struct tnd_rank_result results[TND_RANKS_MOST];
        struct job whole = {.path = path, .lacking = -1};
        snprintf(path, sizeof(path), "%s", tnd_test_temp("parts.gguf"));
        if (!write_gguf(&tnd_golden_models[i], path)) {
            continue;
        }
        tnd_ranks_run(1, be_rank, &whole, results);
        for (int w = 0; results[0].status == TANDEM_OK && w < N_WAYS; w++) {
            const int count = 2 + (i + w) % 2;
            struct job job = {.path = path, .way = &ways[w], .lacking = -1};
            tnd_ranks_run(count, be_rank, &job, results);
            if (results[0].status == TANDEM_E_UNSUPPORTED_BUILD) {
                results[0].status = TANDEM_OK;
                continue;
            }
            for (int r = 0; r < count; r++) {
                if (!check_status(results[r].status, TANDEM_OK, NULL, &results[r].error)) {
                    printf("  %s by %s, rank %d of %d\n", tnd_golden_models[i].name, ways[w].name,
                           r, count);
                }
            }
            check_nmse(job.logits, whole.logits, VOCABULARY, 1e-9, tnd_golden_models[i].name);
            n_compared[w]++;
        }
    }
    for (int w = 0; w < N_WAYS; w++) {
        CU_ASSERT_TRUE(n_compared[w] >= 8);
    }
}

static void a_rank_that_lacks_a_byte_says_where(void)
{
    char path[512];
    snprintf(path, sizeof(path), "%s", tnd_test_temp("parts.gguf"));
    if (!write_gguf(&tnd_golden_models[0], path)) {
        return;
    }
    for (int w = 0; w < N_WAYS; w++) {
        for (int lacking = 0; lacking < 2; lacking++) {
            struct tnd_rank_result results[TND_RANKS_MOST];
            struct job job = {.path = path, .way = &ways[w], .lacking = lacking};
            tnd_ranks_run(2, be_rank, &job, results);
            CU_ASSERT_TRUE(results[0].status != TANDEM_OK);
            CU_ASSERT_TRUE(strstr(results[lacking].error.text, ".weight' in ") != NULL ||
                           strstr(results[0].error.text, ".weight' in ") != NULL);
        }
    }
}

static CU_TestInfo tests[] = {
    {"ranks read what they say", ranks_read_what_they_say},
    {"a rank that lacks a byte says where", a_rank_that_lacks_a_byte_says_where},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_cluster_parts[];
CU_SuiteInfo suites_cluster_parts[] = {
    {"parts of files", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
