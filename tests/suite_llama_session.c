/* SPDX-License-Identifier: MIT
 * Sessions: batches against single tokens, the limits of the context, memory that does not grow. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "llama/model.h"
#include "tests/suite_llama.h"

#define N_TOKENS 24

/* A model, a runtime and a session. */
struct setup {
    tandem_source *source;
    tandem_model *model;
    tandem_runtime *runtime;
    tandem_session *session;
};

static struct setup setup_new(enum tandem_type type, int64_t context)
{
    struct setup s = {.source = tnd_small_llama(type, context)};
    s.runtime = tnd_test_runtime(2, NULL);
    check_ok(tandem_model_new(s.source, &s.model, NULL));
    s.session = tnd_test_session(s.model, s.runtime, 0);
    return s;
}

static void setup_free(struct setup *s)
{
    tandem_session_free(s->session);
    tandem_runtime_close(s->runtime);
    tandem_model_free(s->model);
    tandem_source_close(s->source);
}

static void fill_tokens(int32_t *tokens, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        tokens[i] = (int32_t)(i * 53 + 7) % 300;
    }
}

static void batches_of_every_size_give_the_same_logits(void)
{
    struct setup s = setup_new(TANDEM_TYPE_F32, 32);
    int32_t tokens[N_TOKENS];
    float want[300];
    fill_tokens(tokens, N_TOKENS);
    check_ok(tandem_session_decode(s.session, tokens, N_TOKENS, 0, NULL));
    memcpy(want, tandem_session_logits(s.session, 0), sizeof(want));
    for (int64_t batch = 1; batch <= N_TOKENS; batch++) {
        tandem_session_rollback(s.session, 0, 0);
        check_ok(tandem_session_decode(s.session, tokens, N_TOKENS, batch, NULL));
        check_int(tandem_session_position(s.session, 0), N_TOKENS);
        check_nmse(tandem_session_logits(s.session, 0), want, 300, 1e-10, "batches");
    }
    setup_free(&s);
}

static void what_was_rolled_back_does_not_matter(void)
{
    struct setup s = setup_new(TANDEM_TYPE_Q8_0, 32);
    int32_t tokens[N_TOKENS];
    float want[300];
    fill_tokens(tokens, N_TOKENS);
    check_ok(tandem_session_decode(s.session, tokens, 8, 0, NULL));
    memcpy(want, tandem_session_logits(s.session, 0), sizeof(want));
    check_ok(tandem_session_decode(s.session, tokens, N_TOKENS, 0, NULL));
    tandem_session_rollback(s.session, 0, 5);
    check_ok(tandem_session_decode(s.session, tokens + 5, 3, 3, NULL));
    check_nmse(tandem_session_logits(s.session, 0), want, 300, 1e-3, "after a rewind");
    setup_free(&s);
}

static void a_full_context_and_a_foreign_token_are_refused(void)
{
    struct setup s = setup_new(TANDEM_TYPE_Q4_0, 16);
    int32_t tokens[N_TOKENS];
    struct tandem_error error = {0};
    fill_tokens(tokens, N_TOKENS);
    CU_ASSERT_PTR_NULL(tandem_session_logits(s.session, 0));
    check_status(tandem_session_decode(s.session, tokens, 17, 0, &error), TANDEM_E_LIMIT,
                 "17 more tokens do not fit: 0 of 16", &error);
    check_ok(tandem_session_decode(s.session, tokens, 16, 0, NULL));
    check_status(tandem_session_decode(s.session, tokens, 1, 0, &error), TANDEM_E_LIMIT, NULL,
                 &error);
    tandem_session_rollback(s.session, 0, 0);
    tokens[3] = 300;
    check_status(tandem_session_decode(s.session, tokens, 5, 0, &error), TANDEM_E_ARGUMENT,
                 "token 300", &error);
    tokens[3] = -1;
    check_status(tandem_session_decode(s.session, tokens, 5, 0, &error), TANDEM_E_ARGUMENT,
                 "token -1", &error);
    check_int(tandem_session_position(s.session, 0), 0);
    setup_free(&s);
}

static void memory_does_not_grow_from_token_to_token(void)
{
    struct setup s = setup_new(TANDEM_TYPE_Q4_0, 600);
    const int32_t token = 5;
    check_ok(tandem_session_decode(s.session, &token, 1, 0, NULL));
    const size_t bytes = tandem_session_graph_bytes(s.session);
    long live =
        0; /* heap blocks of the library: the cache of plans has settled after some tokens */
    for (int i = 1; i < 600; i++) {
        check_ok(tandem_session_decode(s.session, &token, 1, 0, NULL));
        /* from some 400 tokens on attention is shared by the threads: another plan */
        live = i == 450 ? tnd_alloc_live() : live;
    }
    check_int(tnd_alloc_live(), live);
    check_int(tandem_session_graph_bytes(s.session), bytes);
    setup_free(&s);
}

static void two_sessions_share_a_model_without_mixing(void)
{
    struct setup s = setup_new(TANDEM_TYPE_F32, 32);
    tandem_session *other = NULL;
    int32_t tokens[N_TOKENS];
    float want[300];
    fill_tokens(tokens, N_TOKENS);
    other = tnd_test_session(s.model, s.runtime, 32);
    check_ok(tandem_session_decode(s.session, tokens, 10, 0, NULL));
    memcpy(want, tandem_session_logits(s.session, 0), sizeof(want));
    tandem_session_rollback(s.session, 0, 0);
    for (int i = 0; i < 10; i++) {
        check_ok(tandem_session_decode(s.session, &tokens[i], 1, 0, NULL));
        check_ok(tandem_session_decode(other, &tokens[9 - i], 1, 0, NULL));
    }
    check_nmse(tandem_session_logits(s.session, 0), want, 300, 1e-10, "first session");
    tandem_session_free(other);
    setup_free(&s);
}

static int append(void *user, const char *bytes, unsigned long n)
{
    char *text = user;
    const size_t used = strlen(text);
    if (used + n < 16384) {
        memcpy(text + used, bytes, n);
        text[used + n] = '\0';
    }
    return 0;
}

static void plans_are_printed_with_the_problem_of_each_product(void)
{
    struct setup s = setup_new(TANDEM_TYPE_Q4_0, 32);
    int32_t tokens[N_TOKENS];
    static char text[16384];
    text[0] = '\0';
    fill_tokens(tokens, N_TOKENS);
    tandem_session_print_plans(s.session, append, text);
    check_ok(tandem_session_decode(s.session, tokens, 7, 0, NULL));
    check_contains(text, "plan for 7 tokens from position 0");
    check_contains(text, "mul_mat:q4_0:n512:k256:m7");
    tandem_graph *graph = NULL;
    tandem_plan *plan = NULL;
    check_ok(tandem_session_plan(s.session, 3, &graph, &plan, NULL));
    check_int(tandem_plan_node_count(plan), tandem_graph_node_count(graph));
    check_int(tandem_session_position(s.session, 0), 7);
    tandem_plan_free(plan);
    setup_free(&s);
}

static void a_model_without_shared_classifier_has_its_own_output(void)
{
    struct tandem_error error = {0};
    tandem_model *model = NULL;
    struct tandem_llama_shape shape = {.size = sizeof(shape),
                                       .dim = 64,
                                       .hidden = 64,
                                       .layers = 1,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .vocabulary = 40,
                                       .context = 8};
    tandem_source *source = NULL;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, NULL));
    check_ok(tandem_model_new(source, &model, &error));
    check_int(tandem_model_hparams(model)->kv_dim, 32);
    CU_ASSERT_PTR_NOT_EQUAL(model->output, model->token_embedding);
    tandem_model_free(model);
    tandem_source_close(source);
    tandem_model_free(NULL);
    tandem_session_free(NULL);
}

static void options_of_older_and_newer_programs_are_understood(void)
{
    struct setup s = setup_new(TANDEM_TYPE_F32, 32);
    struct {
        struct tandem_session_options known;
        char unknown[16];
    } newer = {TANDEM_SESSION_OPTIONS_INIT, {0}};
    struct tandem_error error = {0};
    tandem_session *session = NULL;
    newer.known.size = sizeof(newer);
    newer.known.context = 16;
    check_ok(tandem_session_new(s.model, s.runtime, &newer.known, &session, NULL));
    check_int(tandem_session_context(session), 16);
    tandem_session_free(session);
    session = NULL;
    newer.unknown[3] = 1;
    check_status(tandem_session_new(s.model, s.runtime, &newer.known, &session, &error),
                 TANDEM_E_ABI, "knows", &error);
    CU_ASSERT_PTR_NULL(session);
    newer.known.size = offsetof(struct tandem_session_options, n_sequences);
    newer.known.n_sequences = -5; /* not there for an older program */
    check_ok(tandem_session_new(s.model, s.runtime, &newer.known, &session, NULL));
    tandem_session_free(session);
    setup_free(&s);
}

/* What an installed program was compiled with must not move; on machines of 64 bits. */
static void public_structures_keep_their_layout(void)
{
    if (sizeof(void *) != 8) {
        return;
    }
    check_int(sizeof(struct tandem_batch_entry), 24);
    check_int(offsetof(struct tandem_batch_entry, n), 8);
    check_int(offsetof(struct tandem_batch_entry, sequence), 16);
    check_int(offsetof(struct tandem_batch_entry, wants_logits), 20);
    check_int(sizeof(struct tandem_session_options), 128);
    check_int(offsetof(struct tandem_session_options, cache_type), 28);
    check_int(offsetof(struct tandem_session_options, adjust_user), 48);
    check_int(offsetof(struct tandem_session_options, micro_batches), 60);
    check_int(offsetof(struct tandem_session_options, communicator), 64);
    check_int(offsetof(struct tandem_session_options, pooling), 80);
    check_int(offsetof(struct tandem_session_options, division), 96);
    check_int(offsetof(struct tandem_session_options, layer_shares), 104);
    check_int(offsetof(struct tandem_session_options, has_whole_experts), 120);
    check_int(sizeof(struct tandem_message), 24);
    check_int(offsetof(struct tandem_transport, exchange), 24);
    check_int(offsetof(struct tandem_transport, name), 40);
    check_int(sizeof(struct tandem_sampler_options), 64);
    check_int(offsetof(struct tandem_sampler_options, seed), 48);
    check_int(offsetof(struct tandem_sampler_options, any_bytes), 56);
    check_int(sizeof(struct tandem_chat_options), 88);
    check_int(offsetof(struct tandem_chat_options, user), 72);
    check_int(sizeof(struct tandem_generator_options), 64);
    check_int(offsetof(struct tandem_generator_options, batch), 56);
    check_int(offsetof(struct tandem_hparams, weight_type), 112);
    check_int(offsetof(struct tandem_chat_info, was_cancelled), 40);
}

static CU_TestInfo session_tests[] = {
    {"options_of_older_and_newer_programs_are_understood",
     options_of_older_and_newer_programs_are_understood},
    {"public_structures_keep_their_layout", public_structures_keep_their_layout},
    {"batches_of_every_size_give_the_same_logits", batches_of_every_size_give_the_same_logits},
    {"what_was_rolled_back_does_not_matter", what_was_rolled_back_does_not_matter},
    {"a_full_context_and_a_foreign_token_are_refused",
     a_full_context_and_a_foreign_token_are_refused},
    {"memory_does_not_grow_from_token_to_token", memory_does_not_grow_from_token_to_token},
    {"two_sessions_share_a_model_without_mixing", two_sessions_share_a_model_without_mixing},
    {"plans_are_printed_with_the_problem_of_each_product",
     plans_are_printed_with_the_problem_of_each_product},
    {"a_model_without_shared_classifier_has_its_own_output",
     a_model_without_shared_classifier_has_its_own_output},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_session[] = {
    {"session", NULL, NULL, NULL, NULL, session_tests},
    CU_SUITE_INFO_NULL,
};
