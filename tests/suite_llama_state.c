/* SPDX-License-Identifier: MIT
 * State files: a conversation goes on where it was, and nothing but a state of the same model is
 * read: every truncation, every changed byte, contradictions under a right checksum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "llama/kv_cache.h"
#include "tandem/files.h"
#include "tests/suite_llama_naive.h"

struct setup {
    tandem_source *source;
    tandem_model *model;
    tandem_runtime *runtime;
    tandem_session *session;
    int32_t tokens[NAIVE_TOKENS];
};

static struct setup setup_new(const struct naive_spec *spec,
                              const struct tandem_session_options *options)
{
    struct setup s = {.source = naive_source(spec)};
    s.runtime = tnd_test_runtime(1, NULL);
    naive_tokens(s.tokens, NAIVE_TOKENS);
    check_ok(tandem_model_new(s.source, &s.model, NULL));
    check_ok(tandem_session_new(s.model, s.runtime, options, &s.session, NULL));
    return s;
}

static void setup_free(struct setup *s)
{
    tandem_session_free(s->session);
    tandem_runtime_close(s->runtime);
    tandem_model_free(s->model);
    tandem_source_close(s->source);
}

/* The state as bytes, to be freed. */
static unsigned char *state_of(const tandem_session *session, size_t *out_n)
{
    *out_n = tandem_session_state_bytes(session);
    unsigned char *bytes = malloc(*out_n);
    check_ok(tandem_session_state_write(session, bytes, NULL));
    return bytes;
}

static void a_conversation_goes_on_in_another_session(void)
{
    const struct {
        struct naive_spec spec;
        struct tandem_session_options options;
    } cases[] = {
        {{0}, {.size = sizeof(struct tandem_session_options)}},
        {{0}, {.size = sizeof(struct tandem_session_options), .is_unfused = true}},
        {{0},
         {.size = sizeof(struct tandem_session_options),
          .cache_type = TANDEM_TYPE_Q8_0,
          .n_sequences = 3}},
        {{0}, {.size = sizeof(struct tandem_session_options), .cache_type = TANDEM_TYPE_Q4_0}},
        {{0},
         {.size = sizeof(struct tandem_session_options),
          .cache_type = TANDEM_TYPE_F16,
          .is_unfused = true}},
        {{.architecture = "mistral", .window = 9},
         {.size = sizeof(struct tandem_session_options), .n_cells = 14}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct setup s = setup_new(&cases[i].spec, &cases[i].options);
        tandem_session *other = NULL;
        char path[64];
        float want[NAIVE_VOCABULARY];
        snprintf(path, sizeof(path), "/tmp/tandem-state-%ld-%zu", (long)getpid(), i);
        check_ok(tandem_session_new(s.model, s.runtime, &cases[i].options, &other, NULL));
        check_ok(tandem_session_decode(s.session, s.tokens, 25, 5, NULL));
        check_ok(tandem_session_save(s.session, path, NULL));
        check_ok(tandem_session_decode(other, s.tokens + 3, 4, 0, NULL)); /* is forgotten */
        struct tandem_error error = {0};
        check_status(tandem_session_load(other, path, &error), TANDEM_OK, NULL, &error);
        check_int(tandem_session_position(other, 0), 25);
        check_bits(tandem_session_logits(other, 0), tandem_session_logits(s.session, 0),
                   sizeof(want), "logits of the state");
        check_ok(tandem_session_decode(s.session, s.tokens + 25, 3, 1, NULL));
        memcpy(want, tandem_session_logits(s.session, 0), sizeof(want));
        check_ok(tandem_session_decode(other, s.tokens + 25, 3, 1, NULL));
        check_nmse(tandem_session_logits(other, 0), want, NAIVE_VOCABULARY, 1e-10, "going on");
        remove(path);
        tandem_session_free(other);
        setup_free(&s);
    }
}

static void a_state_of_another_session_is_refused(void)
{
    const struct naive_spec plain = {0}, window = {.architecture = "mistral", .window = 9};
    const struct tandem_session_options none = {.size = sizeof(none)},
                                        halves = {.size = sizeof(halves),
                                                  .cache_type = TANDEM_TYPE_F16},
                                        small = {.size = sizeof(small), .n_cells = 10};
    struct setup s = setup_new(&plain, &none);
    struct setup others[] = {setup_new(&window, &none), setup_new(&plain, &halves),
                             setup_new(&plain, &small)};
    const char *const parts[] = {"window is 0, expected 9", "type of the cache is 0, expected 1",
                                 "holds 12 tokens, the session has room for 10"};
    size_t n;
    struct tandem_error error = {0};
    check_ok(tandem_session_decode(s.session, s.tokens, 12, 0, NULL));
    unsigned char *bytes = state_of(s.session, &n);
    for (int i = 0; i < 3; i++) {
        check_status(tandem_session_state_read(others[i].session, bytes, n, "state", &error),
                     i == 2 ? TANDEM_E_LIMIT : TANDEM_E_FORMAT, parts[i], &error);
        setup_free(&others[i]);
    }
    check_status(tandem_session_load(s.session, "/no/such/file", &error), TANDEM_E_FILE,
                 "/no/such/file: cannot open", &error);
    check_status(tandem_session_save(s.session, "/no/such/file", &error), TANDEM_E_FILE,
                 "/no/such/file: cannot make", &error);
    check_status(tandem_session_load(s.session, "/tmp", &error), TANDEM_E_FILE, NULL, &error);
    free(bytes);
    setup_free(&s);
}

/* Fills in a weight that the embedding says nothing of, as a merge would. */
static void change_weight(const tandem_source *source, const char *name)
{
    struct tandem_source_tensor tensor;
    CU_ASSERT_TRUE_FATAL(tandem_source_find(source, name, &tensor));
    ((unsigned char *)(uintptr_t)tensor.data)[tensor.bytes / 2] ^= 1;
}

static void a_state_of_a_merge_with_the_same_embedding_is_refused(void)
{
    static const char *const names[] = {"blk.0.attn_q.weight", "blk.1.ffn_down.weight",
                                        "output_norm.weight"};
    const struct naive_spec spec = {0};
    const struct tandem_session_options options = {.size = sizeof(options)};
    struct setup s = setup_new(&spec, &options);
    struct setup same = setup_new(&spec, &options);
    struct tandem_error error = {0};
    size_t n;
    check_ok(tandem_session_decode(s.session, s.tokens, 5, 0, NULL));
    unsigned char *bytes = state_of(s.session, &n);
    check_ok(tandem_session_state_read(same.session, bytes, n, "state", NULL));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct setup merge = {.source = naive_source(&spec)};
        change_weight(merge.source, names[i]);
        merge.runtime = tnd_test_runtime(1, NULL);
        check_ok(tandem_model_new(merge.source, &merge.model, NULL));
        check_ok(tandem_session_new(merge.model, merge.runtime, &options, &merge.session, NULL));
        check_status(tandem_session_state_read(merge.session, bytes, n, "state", &error),
                     TANDEM_E_FORMAT, "state: is of another model", &error);
        check_int(tandem_session_position(merge.session, 0), 0);
        setup_free(&merge);
    }
    bytes[8] = 1; /* the version */
    check_status(tandem_session_state_read(same.session, bytes, n, "state", &error),
                 TANDEM_E_FORMAT, "made by an older version", &error);
    free(bytes);
    setup_free(&same);
    setup_free(&s);
}

static uint64_t fnv(const unsigned char *bytes, size_t n)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ bytes[i]) * 1099511628211u;
    }
    return hash;
}

static void every_truncation_and_changed_byte_is_refused(void)
{
    const struct naive_spec spec = {0};
    const struct tandem_session_options options = {.size = sizeof(options), .n_sequences = 2};
    struct setup s = setup_new(&spec, &options);
    size_t n;
    check_ok(tandem_session_decode(s.session, s.tokens, 2, 0, NULL));
    unsigned char *bytes = state_of(s.session, &n);
    int accepted = 0;
    const size_t step = tnd_effort() >= 2 ? 1 : 7;
    for (size_t length = 0; length < n; length += step) {
        unsigned char *part = malloc(length + 1); /* ends where the state ends: ASan looks */
        memcpy(part, bytes, length);
        accepted += tandem_session_state_read(s.session, part, length, "part", NULL) == TANDEM_OK;
        free(part);
    }
    for (size_t i = 0; i < n; i += step) {
        bytes[i] ^= 0x40;
        accepted += tandem_session_state_read(s.session, bytes, n, "changed", NULL) == TANDEM_OK;
        bytes[i] ^= 0x40;
    }
    check_int(accepted, 0);
    check_int(tandem_session_position(s.session, 0), 2);
    check_ok(tandem_session_state_read(s.session, bytes, n, "whole", NULL));
    free(bytes);
    setup_free(&s);
}

static void contradictions_under_a_right_checksum_are_refused(void)
{
    enum { HEADER = 16 + 9 * 8, ORDERS = HEADER + 16 };
    const struct {
        size_t at;
        int64_t value;
        size_t bytes;
    } changes[] = {
        {HEADER, 4, 8},                   /* a position more than there are tokens */
        {HEADER, 2, 8},                   /* one less */
        {HEADER, -1, 8},                  /* below 0 */
        {HEADER, INT64_MAX, 8},           /* far behind the context */
        {HEADER + 8, 2, 8},               /* no flag */
        {HEADER - 8, INT64_MAX, 8},       /* cells */
        {HEADER - 8, -1, 8},              /* cells */
        {ORDERS, 1, 4},                   /* a position twice */
        {ORDERS, -5, 4},                  /* of no sequence */
        {ORDERS, TND_LLAMA_SPAN, 4},      /* of another one */
        {ORDERS, TND_LLAMA_FREE_CELL, 4}, /* of none */
    };
    const struct naive_spec spec = {0};
    const struct tandem_session_options options = {.size = sizeof(options)};
    struct setup s = setup_new(&spec, &options);
    size_t n;
    check_ok(tandem_session_decode(s.session, s.tokens, 3, 0, NULL));
    unsigned char *bytes = state_of(s.session, &n);
    unsigned char *changed = malloc(n);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        memcpy(changed, bytes, n);
        memcpy(changed + changes[i].at, &changes[i].value, changes[i].bytes);
        const uint64_t check = fnv(changed, n - 8);
        memcpy(changed + n - 8, &check, 8);
        CU_ASSERT(tandem_session_state_read(s.session, changed, n, "made", NULL) != TANDEM_OK);
    }
    free(changed);
    free(bytes);
    setup_free(&s);
}

/* A folder that others may write to: PATH.part, a link there, was written through before. */
static void a_saved_state_is_private_and_goes_through_no_link(void)
{
    const struct naive_spec spec = {0};
    const struct tandem_session_options options = {.size = sizeof(options)};
    struct setup s = setup_new(&spec, &options);
    char path[600], part[620], victim[600];
    struct stat facts;
    struct tandem_error error;
    size_t n = 0;
    snprintf(path, sizeof(path), "%s", tnd_test_temp("talk.state"));
    snprintf(part, sizeof(part), "%s.part", path);
    snprintf(victim, sizeof(victim), "%s", tnd_test_temp("victim"));
    CU_ASSERT_TRUE(tnd_test_write_file(victim, "victim", 6));
    CU_ASSERT_EQUAL(symlink(victim, part), 0);
    CU_ASSERT_EQUAL(symlink(victim, path), 0);
    check_ok(tandem_session_decode(s.session, s.tokens, 2, 0, NULL));
    check_ok(tandem_session_save(s.session, path, NULL));
    char *kept = tnd_test_read_file(victim, &n);
    check_string(kept, "victim");
    free(kept);
    CU_ASSERT_TRUE(lstat(path, &facts) == 0 && S_ISREG(facts.st_mode));
    check_int(facts.st_mode & 0777, 0600);
    check_ok(tandem_session_load(s.session, path, NULL));
    check_int(tandem_session_position(s.session, 0), 2);
    unlink(part);
    unlink(path);
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0666), 0);
    check_status(tandem_session_load(s.session, path, &error), TANDEM_E_FILE, "a pipe", &error);
    check_status(tandem_session_save(s.session, path, &error), TANDEM_E_FILE, "regular", &error);
    unlink(path);
    setup_free(&s);
}

enum { N_SAVERS = 3, N_SAVES = 30 };

/* Two programs that keep one conversation: the last one wins, and what is there is always whole. */
static void savers_beside_each_other_leave_whole_states(void)
{
    const struct naive_spec spec = {0};
    const struct tandem_session_options options = {.size = sizeof(options)};
    struct setup s = setup_new(&spec, &options);
    char path[600];
    size_t n = 0;
    pid_t savers[N_SAVERS];
    snprintf(path, sizeof(path), "%s", tnd_test_temp("shared.state"));
    check_ok(tandem_session_decode(s.session, s.tokens, 2, 0, NULL));
    unsigned char *bytes = state_of(s.session, &n);
    check_ok(tandem_file_write(path, bytes, n, true, NULL));
    for (int w = 0; w < N_SAVERS; w++) {
        savers[w] = fork();
        if (savers[w] == 0) {
            int failed = 0;
            for (int i = 0; i < N_SAVES; i++) {
                failed += tandem_file_write(path, bytes, n, true, NULL) != TANDEM_OK;
            }
            _exit(failed > 0);
        }
    }
    for (int i = 0; i < N_SAVES; i++) {
        check_ok(tandem_session_load(s.session, path, NULL));
    }
    for (int w = 0; w < N_SAVERS; w++) {
        int result = -1;
        waitpid(savers[w], &result, 0);
        check_int(result, 0);
    }
    free(bytes);
    setup_free(&s);
}

static CU_TestInfo state_tests[] = {
    {"a_saved_state_is_private_and_goes_through_no_link",
     a_saved_state_is_private_and_goes_through_no_link},
    {"savers_beside_each_other_leave_whole_states", savers_beside_each_other_leave_whole_states},
    {"a_conversation_goes_on_in_another_session", a_conversation_goes_on_in_another_session},
    {"a_state_of_another_session_is_refused", a_state_of_another_session_is_refused},
    {"a_state_of_a_merge_with_the_same_embedding_is_refused",
     a_state_of_a_merge_with_the_same_embedding_is_refused},
    {"every_truncation_and_changed_byte_is_refused", every_truncation_and_changed_byte_is_refused},
    {"contradictions_under_a_right_checksum_are_refused",
     contradictions_under_a_right_checksum_are_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_state[] = {
    {"state", NULL, NULL, NULL, NULL, state_tests},
    CU_SUITE_INFO_NULL,
};
