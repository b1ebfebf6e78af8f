/* SPDX-License-Identifier: MIT
 * Layers in sequence of every architecture: the bits of one rank, those too that have no rows for
 * several ranks. */
#include <stdio.h>
#include <string.h>

#include "tests/suite_llama.h"
#include "tests/support_golden.h"
#include "tests/support_rank_sessions.h"
#include "tests/support_ranks.h"

enum { N_TOKENS = TND_GOLDEN_TOKENS, VOCABULARY = TND_GOLDEN_VOCABULARY, CUT = 4 };

struct job {
    const tandem_model *model;
    int n_ranks;
    bool by_rows; /* with experts whole */
    float logits[VOCABULARY];
};

/* Three micro-batches, which one rank decodes one behind the other. */
static enum tandem_status be_rank(tandem_communicator *communicator, void *user,
                                  struct tandem_error *error)
{
    struct job *job = user;
    const bool by_rows = job->by_rows;
    const struct tandem_session_options options = {.division = by_rows ? TANDEM_DIVIDE_ROWS
                                                                       : TANDEM_DIVIDE_LAYERS,
                                                   .has_whole_experts = by_rows,
                                                   .micro_batches = by_rows ? 1 : N_TOKENS / CUT};
    struct tnd_rank_session rank;
    enum tandem_status status =
        tnd_rank_session_begin(&rank, job->model, communicator, &options, error);
    if (rank.session != NULL) {
        status = tandem_session_decode(rank.session, tnd_golden_tokens, N_TOKENS,
                                       job->n_ranks == 1 ? CUT : 0, error);
        const float *logits = tandem_session_logits(rank.session, 0);
        if (status == TANDEM_OK && logits != NULL) {
            memcpy(job->logits, logits, sizeof(job->logits));
        }
    }
    tnd_rank_session_end(&rank);
    return status;
}

static void every_architecture_goes_by_layers(void)
{
    for (int i = 0; i < tnd_n_golden_models; i++) {
        struct job jobs[2] = {{.n_ranks = 1}, {.n_ranks = 2}};
        struct tandem_error error = {.text = ""};
        tandem_model *model = NULL;
        tnd_golden_write(tnd_golden_models[i].config, tnd_golden_models[i].tensors, -1, NULL);
        check_status(tandem_model_load(tnd_test_temp("model.safetensors"), &model, &error),
                     TANDEM_OK, NULL, &error);
        for (int j = 0; model != NULL && j < 2; j++) {
            struct tnd_rank_result results[TND_RANKS_MOST];
            jobs[j].model = model;
            tnd_ranks_run(jobs[j].n_ranks, be_rank, &jobs[j], results);
            for (int r = 0; r < jobs[j].n_ranks; r++) {
                check_status(results[r].status, TANDEM_OK, NULL, &results[r].error);
            }
        }
        const struct tandem_hparams *h = tandem_model_hparams(model);
        if (h != NULL && h->window > 0 && h->windowed == NULL && h->window_period == 0) {
            /* one rank takes cells again that a micro-batch has left behind */
            check_nmse(jobs[1].logits, jobs[0].logits, VOCABULARY, 1e-9, tnd_golden_models[i].name);
        } else {
            check_bits(jobs[1].logits, jobs[0].logits, sizeof(jobs[0].logits),
                       tnd_golden_models[i].name);
        }
        CU_ASSERT_TRUE(jobs[0].logits[0] != 0 || jobs[0].logits[1] != 0);
        tandem_model_free(model);
    }
}

/* Biases of experts and shared experts too; those that have no rows for ranks are refused. */
static void experts_of_every_architecture_may_be_whole(void)
{
    int n_compared = 0;
    for (int i = 0; i < tnd_n_golden_models; i++) {
        struct job jobs[3] = {{.n_ranks = 1}, {.n_ranks = 2}, {.n_ranks = 3}};
        tandem_model *model = NULL;
        tnd_golden_write(tnd_golden_models[i].config, tnd_golden_models[i].tensors, -1, NULL);
        check_ok(tandem_model_load(tnd_test_temp("model.safetensors"), &model, NULL));
        const struct tandem_hparams *h = tandem_model_hparams(model);
        for (int j = 0; h != NULL && h->experts > 0 && j < 3; j++) {
            struct tnd_rank_result results[TND_RANKS_MOST];
            jobs[j].model = model;
            jobs[j].by_rows = true;
            tnd_ranks_run(jobs[j].n_ranks, be_rank, &jobs[j], results);
            if (results[0].status == TANDEM_E_UNSUPPORTED_BUILD) {
                break;
            }
            check_status(results[0].status, TANDEM_OK, NULL, &results[0].error);
            check_nmse(jobs[j].logits, jobs[0].logits, VOCABULARY, 1e-9, tnd_golden_models[i].name);
            n_compared += j > 0;
        }
        tandem_model_free(model);
    }
    CU_ASSERT_TRUE(n_compared >= 4);
}

static CU_TestInfo tests[] = {
    {"experts of every architecture may be whole", experts_of_every_architecture_may_be_whole},
    {"every architecture goes by layers", every_architecture_goes_by_layers},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_cluster_architectures[];
CU_SuiteInfo suites_cluster_architectures[] = {
    {"architectures on ranks", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
