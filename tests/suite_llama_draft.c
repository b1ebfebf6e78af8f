/* SPDX-License-Identifier: MIT
 * Drafts: how many pay, what is looked up, and that sessions with them give what sessions without
 * them give, whatever is done to a text meanwhile. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llama/draft.h"
#include "tests/suite_llama.h"
#include "tests/suite_llama_nextn.h"

#define CONTEXT    96
#define VOCABULARY 300

/* What drafts: the text itself, a model that is the same one, a layer of the model that always
 * agrees with it, one with numbers of its own. */
enum drafter { BY_TEXT, BY_MODEL, BY_GOOD_HEAD, BY_HEAD };

/* Two sessions of one model: `plain` drafts nothing. */
struct pair {
    tandem_source *source;
    tandem_model *model;
    tandem_runtime *runtime;
    tandem_session *plain, *drafting, *by; /* by: of the draft model; NULL: the text is looked up */
};

static tandem_session *session_of(const struct pair *pair, int n_sequences, int64_t n_cells)
{
    const struct tandem_session_options options = {.size = sizeof(options),
                                                   .context = CONTEXT,
                                                   .n_cells = n_cells,
                                                   .n_sequences = n_sequences,
                                                   .has_embeddings = true};
    tandem_session *session = NULL;
    check_ok(tandem_session_new(pair->model, pair->runtime, &options, &session, NULL));
    return session;
}

static struct pair pair_new(enum drafter drafter, int n_sequences, int64_t n_cells, int most)
{
    const struct nextn_spec spec = {
        .vocabulary = VOCABULARY, .context = CONTEXT, .agrees = drafter == BY_GOOD_HEAD};
    struct pair p = {.source = drafter >= BY_GOOD_HEAD ? nextn_source(&spec)
                                                       : tnd_small_llama(TANDEM_TYPE_F32, CONTEXT)};
    p.runtime = tnd_test_runtime(2, NULL);
    check_ok(tandem_model_new(p.source, &p.model, NULL));
    p.plain = session_of(&p, n_sequences, n_cells);
    p.drafting = session_of(&p, n_sequences, n_cells);
    p.by = drafter == BY_MODEL ? session_of(&p, n_sequences, 0) : NULL;
    const struct tandem_draft_options options = {.size = sizeof(options),
                                                 .model = p.by,
                                                 .most = most,
                                                 .is_fixed = true,
                                                 .by_heads = drafter >= BY_GOOD_HEAD};
    check_ok(tandem_session_set_draft(p.drafting, &options, NULL));
    return p;
}

static void pair_free(struct pair *p)
{
    tandem_session_free(p->plain);
    tandem_session_free(p->drafting);
    tandem_session_free(p->by);
    tandem_runtime_close(p->runtime);
    tandem_model_free(p->model);
    tandem_source_close(p->source);
}

static int32_t likeliest(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < VOCABULARY; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* Both have the same logits, or none. */
static void check_same(const struct pair *p, int32_t sequence)
{
    const float *want = tandem_session_logits(p->plain, sequence);
    const float *got = tandem_session_logits(p->drafting, sequence);
    check_int(tandem_session_position(p->drafting, sequence),
              tandem_session_position(p->plain, sequence));
    check_int(got != NULL, want != NULL);
    if (want != NULL && got != NULL) {
        check_nmse(got, want, VOCABULARY, 1e-9, "with drafts");
    }
    want = tandem_session_embedding(p->plain, sequence);
    got = tandem_session_embedding(p->drafting, sequence);
    check_int(got != NULL, want != NULL); /* a state that was read has none */
    if (want != NULL && got != NULL) {
        check_nmse(got, want, tandem_model_hparams(p->model)->dim, 1e-9, "embeddings");
    }
}

static void a_text_is_the_same_by(enum drafter drafter)
{
    struct pair p = pair_new(drafter, 1, 0, 5);
    struct tandem_draft_info info;
    const int32_t prompt[] = {7, 60, 113, 166};
    check_ok(tandem_session_decode(p.plain, prompt, 4, 0, NULL));
    check_ok(tandem_session_decode(p.drafting, prompt, 4, 0, NULL));
    for (int i = 0; i < CONTEXT - 4; i++) {
        check_same(&p, 0);
        const int32_t token = likeliest(tandem_session_logits(p.plain, 0));
        check_ok(tandem_session_decode(p.plain, &token, 1, 0, NULL));
        check_ok(tandem_session_decode(p.drafting, &token, 1, 0, NULL));
    }
    check_same(&p, 0);
    CU_ASSERT(tandem_session_draft_info(p.drafting, &info));
    check_int(info.tokens, CONTEXT - 3);
    CU_ASSERT(info.batches + info.accepted == info.tokens && info.drafted > 0);
    CU_ASSERT(info.accepted > 0 || drafter == BY_HEAD);
    if (drafter == BY_MODEL || drafter == BY_GOOD_HEAD) { /* all are right */
        check_int(info.batches, 1 + (CONTEXT - 4 + 5) / 6);
    }
    CU_ASSERT(!tandem_session_draft_info(p.plain, &info));
    check_ok(tandem_session_set_draft(p.drafting, NULL, NULL));
    CU_ASSERT(!tandem_session_draft_info(p.drafting, &info));
    pair_free(&p);
}

static void a_text_is_the_same_with_drafts_from_itself(void)
{
    a_text_is_the_same_by(BY_TEXT);
}

static void a_text_is_the_same_with_drafts_of_a_model(void)
{
    a_text_is_the_same_by(BY_MODEL);
}

static void a_text_is_the_same_with_drafts_of_a_layer(void)
{
    a_text_is_the_same_by(BY_GOOD_HEAD);
    a_text_is_the_same_by(BY_HEAD);
}

/* ---- whatever is done to texts ---- */

enum { SEQUENCES = 3 };

/* 0 to n - 1. */
static int64_t below(struct tnd_test_rng *random, int64_t n)
{
    return tnd_test_rng_int(random, 0, n - 1);
}

/* The next token: mostly what a draft would be, else any. */
static int32_t next_token(const struct pair *p, int32_t sequence, struct tnd_test_rng *random)
{
    const float *logits = tandem_session_logits(p->plain, sequence);
    return logits != NULL && below(random, 4) != 0 ? likeliest(logits)
                                                   : (int32_t)below(random, VOCABULARY);
}

static void step(const struct pair *p, struct tnd_test_rng *random)
{
    int32_t tokens[SEQUENCES][6];
    struct tandem_batch_entry entries[SEQUENCES];
    int64_t n = 0;
    for (int32_t s = 0; s < SEQUENCES; s++) {
        const int64_t left = CONTEXT - tandem_session_position(p->plain, s);
        int64_t m = below(random, 8) == 0 ? 1 + below(random, 6) : 1;
        m = m < left ? m : left;
        if (m < 1 || below(random, 4) == 0) {
            continue;
        }
        for (int64_t i = 0; i < m; i++) {
            tokens[s][i] = next_token(p, s, random);
        }
        entries[n++] = (struct tandem_batch_entry){tokens[s], m, s, below(random, 8) != 0};
    }
    if (n > 0) {
        const enum tandem_status want = tandem_session_decode_batch(p->plain, entries, n, NULL);
        check_int(tandem_session_decode_batch(p->drafting, entries, n, NULL), want);
    }
}

static void change(const struct pair *p, struct tnd_test_rng *random)
{
    const int32_t s = (int32_t)below(random, SEQUENCES);
    const int32_t t = (s + 1) % SEQUENCES;
    const int64_t n = tandem_session_position(p->plain, s);
    const int64_t at = n > 0 ? below(random, n) : 0;
    size_t bytes;
    void *state;
    tandem_graph *graph;
    tandem_plan *plan = NULL;
    switch (below(random, 5)) {
    case 0:
        check_int(tandem_session_rollback(p->drafting, s, at),
                  tandem_session_rollback(p->plain, s, at));
        break;
    case 1:
        check_int(tandem_session_shift(p->drafting, s, at / 2, 1 + at / 3, NULL),
                  tandem_session_shift(p->plain, s, at / 2, 1 + at / 3, NULL));
        break;
    case 2:
        tandem_session_rollback(p->plain, t, 0);
        tandem_session_rollback(p->drafting, t, 0);
        check_int(tandem_session_copy(p->drafting, s, t, at, NULL),
                  tandem_session_copy(p->plain, s, t, at, NULL));
        break;
    case 3: /* a state that was written in the middle of a draft */
        bytes = tandem_session_state_bytes(p->drafting);
        check_int((int64_t)bytes, (int64_t)tandem_session_state_bytes(p->plain));
        state = malloc(bytes);
        check_ok(tandem_session_state_write(p->drafting, state, NULL));
        check_ok(tandem_session_state_read(p->plain, state, bytes, "state", NULL));
        check_ok(tandem_session_state_read(p->drafting, state, bytes, "state", NULL));
        free(state);
        break;
    default:
        if (tandem_session_plan(p->drafting, 1, &graph, &plan, NULL) == TANDEM_OK) {
            tandem_plan_free(plan);
        }
    }
}

static void texts_are_the_same_with(enum drafter drafter, int64_t n_cells)
{
    struct pair p = pair_new(drafter, SEQUENCES, n_cells, 4);
    struct tnd_test_rng random =
        tnd_test_rng_new(tnd_test_seed() + (uint64_t)n_cells + (uint64_t)drafter);
    struct tandem_draft_info info;
    for (int i = 0; i < 300; i++) {
        if (below(&random, 12) == 0) {
            change(&p, &random);
        } else {
            step(&p, &random);
        }
        for (int32_t s = 0; s < SEQUENCES; s++) {
            check_same(&p, s);
        }
    }
    CU_ASSERT(tandem_session_draft_info(p.drafting, &info));
    /* texts need not repeat themselves, nor a layer be right */
    CU_ASSERT(drafter == BY_TEXT || drafter == BY_HEAD || info.accepted > 0);
    pair_free(&p);
}

static void texts_that_are_changed_are_the_same_with_drafts(void)
{
    for (int drafter = BY_TEXT; drafter <= BY_HEAD; drafter++) {
        texts_are_the_same_with((enum drafter)drafter, 0);
    }
}

static void drafts_take_no_cells_from_texts(void)
{
    texts_are_the_same_with(BY_TEXT, 128);
    texts_are_the_same_with(BY_MODEL, 64);
    texts_are_the_same_with(BY_GOOD_HEAD, 64);
}

/* ---- how many ---- */

static void note_steps(struct tnd_batch_times *times, int m, double us, int n)
{
    for (int k = 0; k < n; k++) {
        tnd_batch_times_note(times, m, true, us);
    }
}

static struct tnd_batch_times times_of(double first, double each)
{
    struct tnd_batch_times times = {.n = 0};
    for (int m = 1; m <= TND_DRAFT_BATCH; m++) {
        note_steps(&times, m, first + each * m, 2);
    }
    return times;
}

static int chosen_with(const struct tnd_batch_times *times, double draft_us, double acceptance)
{
    const struct tnd_draft_hope hope = {.acceptance = acceptance};
    const struct tnd_draft_hope *hopes = &hope;
    const int room = TND_DRAFT_MOST;
    int out = -1;
    tnd_draft_choose(times, draft_us, &hopes, &room, 1, 1, &out);
    return out;
}

static int chosen(const struct tnd_batch_times *times, double acceptance)
{
    return chosen_with(times, 0, acceptance);
}

static void as_many_are_drafted_as_pay(void)
{
    const struct tnd_batch_times flat = times_of(100, 0);
    const struct tnd_batch_times steep = times_of(0, 100);
    const struct tnd_batch_times usual = times_of(100, 10);
    check_int(chosen(&flat, 0.9), TND_DRAFT_MOST);
    check_int(chosen(&steep, 0.9), 0);
    check_int(chosen(&usual, 0.02), 0);
    const int few = chosen(&usual, 0.3);
    const int many = chosen(&usual, 0.9);
    CU_ASSERT(few > 0 && few < many && many < TND_DRAFT_MOST);
    struct tnd_batch_times stairs = times_of(100, 10); /* eight tokens as fast as two */
    for (int m = 3; m <= 8; m++) {
        note_steps(&stairs, m, 120, TND_BATCH_RING);
    }
    check_int(chosen(&stairs, 0.7), 7);
    check_int(chosen_with(&flat, 200, 0.9), 0);
    const struct tnd_batch_times unknown = {.n = 0};
    check_int(chosen(&unknown, 0.9), 0);
}

static void texts_share_what_a_batch_takes(void)
{
    const struct tnd_batch_times times = times_of(100, 10);
    const struct tnd_draft_hope good = {.acceptance = 0.9}, bad = {.acceptance = 0.1};
    const struct tnd_draft_hope *hopes[] = {&good, &bad, &good};
    const int room[] = {3, 16, 0};
    int out[3];
    tnd_draft_choose(&times, 0, hopes, room, 3, 3, out);
    check_int(out[0], 3);
    check_int(out[1], 0);
    check_int(out[2], 0);
}

static double step_us(const struct tnd_batch_times *times, int m)
{
    return tnd_batch_times_expect(times, m, true).us;
}

static void times_are_estimated_and_forgotten(void)
{
    struct tnd_batch_times times = {.n = 0};
    CU_ASSERT_EQUAL(step_us(&times, 4), 0);
    note_steps(&times, 1, 500, 1);
    note_steps(&times, 1, 100, 1);
    check_int((int)step_us(&times, 1), 100); /* the first use prepared something */
    CU_ASSERT(step_us(&times, 4) > 100 && step_us(&times, 4) < 200);
    note_steps(&times, 4, 160, 2);
    CU_ASSERT(fabs(step_us(&times, 4) - 160) < 5);
    CU_ASSERT(step_us(&times, 3) <= 160);
    note_steps(&times, 4, 1e9, 1);
    CU_ASSERT(step_us(&times, 4) < 200); /* a disturbance */
    note_steps(&times, 1, 100, 600);
    CU_ASSERT(step_us(&times, 4) < 150); /* old: an estimate again */
}

static double prompt_us(const struct tnd_batch_times *times, int64_t m)
{
    return tnd_batch_times_expect(times, m, false).us;
}

static void times_of_prompts_err_on_the_safe_side(void)
{
    struct tnd_batch_times times = {.n = 0};
    for (int i = 0; i < 9; i++) {
        tnd_batch_times_note(&times, 64, false, 64e3);
    }
    CU_ASSERT(fabs(prompt_us(&times, 64) - 64e3) < 1);
    CU_ASSERT(fabs(prompt_us(&times, 128) - 128e3) < 1); /* all of the time grows */
    CU_ASSERT(fabs(prompt_us(&times, 8) - 64e3) < 1);    /* none of it does */
    CU_ASSERT_EQUAL(step_us(&times, 64), 0);
    for (int i = 0; i < 9; i++) {
        tnd_batch_times_note(&times, 64, false, 640e3); /* the machine has slowed down */
    }
    CU_ASSERT(prompt_us(&times, 64) > 600e3);
    for (int i = 0; i < TND_BATCH_POWERS; i++) {
        times.predicted_us[i] = 100 + (1 << i); /* a table says how it grows */
    }
    CU_ASSERT(fabs(prompt_us(&times, 512) / prompt_us(&times, 64) - 612.0 / 164.0) < 0.1);
    CU_ASSERT(prompt_us(&times, 1 << 20) > 0 && prompt_us(&times, 1) > 0);
}

static void errors_tell_what_is_known(void)
{
    struct tnd_batch_times times = {.n = 0};
    times.predicted_us[0] = 100;
    const double before = tnd_batch_times_expect(&times, 1, true).error_us;
    note_steps(&times, 1, 100, 2);
    const double once = tnd_batch_times_expect(&times, 1, true).error_us;
    note_steps(&times, 1, 100, 9);
    const double often = tnd_batch_times_expect(&times, 1, true).error_us;
    CU_ASSERT(before > once && once > often && often > 0);
    CU_ASSERT(tnd_batch_times_expect(&times, 2, true).error_us > often);
}

static void the_first_drafts_tell_most(void)
{
    struct tnd_draft_hope hope = {.acceptance = 0.6};
    tnd_draft_learn(&hope, false);
    tnd_draft_learn(&hope, false);
    CU_ASSERT(hope.acceptance < 0.25);
    for (int i = 0; i < 40; i++) {
        tnd_draft_learn(&hope, true);
    }
    CU_ASSERT(hope.acceptance > 0.9);
    for (int i = 0; i < 100; i++) {
        tnd_draft_learn(&hope, false);
    }
    CU_ASSERT(hope.acceptance > 0); /* it can come back */
}

static void the_longest_stretch_is_looked_up(void)
{
    const int32_t text[] = {1, 2, 3, 4, 9, 2, 3, 5, 9, 1, 2, 3};
    int32_t out[8];
    check_int(tnd_draft_look_up(text, 12, 3, out), 3);
    check_int(out[0], 4);
    check_int(out[1], 9);
    check_int(out[2], 2);
    check_int(tnd_draft_look_up(text, 4, 3, out), 0);
    const int32_t same[] = {8, 8, 8};
    check_int(tnd_draft_look_up(same, 3, 5, out), 5);
    check_int(out[4], 8);
    const int32_t lost[] = {-1, -1, -1, -1};
    check_int(tnd_draft_look_up(lost, 4, 5, out), 0);
    check_int(tnd_draft_look_up(text, 0, 5, out), 0);
}

static void drafts_that_cannot_be_are_refused(void)
{
    struct pair p = pair_new(BY_TEXT, 2, 0, 4);
    struct tandem_error error;
    struct tandem_draft_options options = {.size = sizeof(options), .most = 17};
    check_status(tandem_session_set_draft(p.plain, &options, &error), TANDEM_E_ARGUMENT,
                 "drafts of 17 tokens", &error);
    options = (struct tandem_draft_options){.size = sizeof(options), .model = p.plain};
    check_status(tandem_session_set_draft(p.plain, &options, &error), TANDEM_E_ARGUMENT,
                 "a session of its own", &error);
    tandem_session *one = session_of(&p, 1, 0);
    options.model = one;
    check_status(tandem_session_set_draft(p.plain, &options, &error), TANDEM_E_ARGUMENT,
                 "at least 2 sequences", &error);
    check_status(tandem_session_set_draft(NULL, &options, &error), TANDEM_E_ARGUMENT, "NULL",
                 &error);
    tandem_session_free(one);
    pair_free(&p);
}

static CU_TestInfo tests_draft[] = {
    {"a_text_is_the_same_with_drafts_from_itself", a_text_is_the_same_with_drafts_from_itself},
    {"a_text_is_the_same_with_drafts_of_a_model", a_text_is_the_same_with_drafts_of_a_model},
    {"a_text_is_the_same_with_drafts_of_a_layer", a_text_is_the_same_with_drafts_of_a_layer},
    {"texts_that_are_changed_are_the_same_with_drafts",
     texts_that_are_changed_are_the_same_with_drafts},
    {"drafts_take_no_cells_from_texts", drafts_take_no_cells_from_texts},
    {"as_many_are_drafted_as_pay", as_many_are_drafted_as_pay},
    {"texts_share_what_a_batch_takes", texts_share_what_a_batch_takes},
    {"times_are_estimated_and_forgotten", times_are_estimated_and_forgotten},
    {"times_of_prompts_err_on_the_safe_side", times_of_prompts_err_on_the_safe_side},
    {"errors_tell_what_is_known", errors_tell_what_is_known},
    {"the_first_drafts_tell_most", the_first_drafts_tell_most},
    {"the_longest_stretch_is_looked_up", the_longest_stretch_is_looked_up},
    {"drafts_that_cannot_be_are_refused", drafts_that_cannot_be_are_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_draft[] = {
    {"draft", NULL, NULL, NULL, NULL, tests_draft},
    CU_SUITE_INFO_NULL,
};
