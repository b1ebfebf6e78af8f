/* SPDX-License-Identifier: MIT
 * A server of a reranker: documents by their scores, each as when it is scored alone; and what an
 * encoder refuses. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/encoders-golden-list.h"
#include "tests/suite_server.h"
#include "tests/support_golden.h"

enum { N_DOCUMENTS = 4 };

static char reply_text[8192];

#define ASK(served, path, body)                                                                    \
    tnd_ask_whole((served), (path), (body), reply_text, sizeof(reply_text))

static const char words[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\n##e\n##f\ng\nh\n";
static const char *const documents[N_DOCUMENTS] = {"a b", "c", "d def ge h", "h h h h h a"};

/* A BERT whose classifier has one score. */
static bool open_reranker(struct tnd_served *s)
{
    static const struct {
        const char *config, *tensors;
    } models[] = {
#define MODEL(name, config, tensors, a, b, c, d, is_ranked) {config, tensors},
        TND_GOLDEN_ENCODERS(MODEL)
#undef MODEL
    };
    char tensors[4096];
    char *at;
    snprintf(tensors, sizeof(tensors), "%s", models[0].tensors);
    for (int i = 0; i < 2 && (at = strstr(tensors, i == 0 ? "classifier.bias 4"
                                                          : "classifier.weight 4")) != NULL;
         i++) {
        *strchr(at, '4') = '1';
    }
    tnd_golden_write(models[0].config, tensors, -1, NULL);
    CU_ASSERT_TRUE(tnd_test_write_file(tnd_test_temp("vocab.txt"), words, strlen(words)));
    char model[4096], tokenizer[4096];
    snprintf(model, sizeof(model), "%s", tnd_test_temp("model.safetensors"));
    snprintf(tokenizer, sizeof(tokenizer), "%s", tnd_test_temp("vocab.txt"));
    return tnd_served_open(
        s, &(struct tnd_served_options){.model = model, .tokenizer = tokenizer, .context = 32});
}

static double score_alone(const struct tnd_served *s, const char *document)
{
    int32_t ids[32];
    size_t n = 0, second = 0;
    tandem_session *session = NULL;
    check_ok(tandem_tokenizer_encode_pair(s->tokenizer, "g a", 3, document, strlen(document), ids,
                                          32, &n, &second, NULL));
    check_ok(tandem_session_new(s->model, s->runtime, NULL, &session, NULL));
    tandem_session_set_second(session, 0, (int64_t)second);
    check_ok(tandem_session_decode(session, ids, (int64_t)n, 0, NULL));
    const float *score = tandem_session_embedding(session, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(score);
    const double value = 1.0 / (1.0 + exp(-(double)score[0]));
    tandem_session_free(session);
    return value;
}

static void documents_come_by_their_scores(void)
{
    struct tnd_served s;
    double last = 2.0;
    if (!open_reranker(&s)) {
        tnd_served_close(&s);
        return;
    }
    check_int(ASK(&s, "/v1/rerank",
                  "{\"query\":\"g a\",\"documents\":[\"a b\",{\"text\":\"c\"},\"d def ge h\","
                  "\"h h h h h a\"]}"),
              200);
    cJSON *root = cJSON_Parse(reply_text);
    const cJSON *results = cJSON_GetObjectItemCaseSensitive(root, "results");
    const cJSON *one;
    check_int(cJSON_GetArraySize(results), N_DOCUMENTS);
    cJSON_ArrayForEach(one, results)
    {
        const int i = (int)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(one, "index"));
        const double score =
            cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(one, "relevance_score"));
        CU_ASSERT_TRUE_FATAL(i >= 0 && i < N_DOCUMENTS);
        CU_ASSERT_DOUBLE_EQUAL(score, score_alone(&s, documents[i]), 1e-5);
        CU_ASSERT_TRUE(score <= last);
        last = score;
    }
    cJSON_Delete(root);
    check_int(ASK(&s, "/rerank", "{\"query\":\"g\",\"documents\":[\"a\",\"b\",\"c\"],\"top_n\":2}"),
              200);
    root = cJSON_Parse(reply_text);
    check_int(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "results")), 2);
    cJSON_Delete(root);
    tnd_served_close(&s);
}

static void what_a_reranker_cannot_do_is_refused(void)
{
    static const struct {
        const char *path, *body;
        int status;
        const char *said;
    } cases[] = {
        {"/v1/embeddings", "{\"input\":\"a\"}", 501, "scores, not vectors"},
        {"/v1/completions", "{\"prompt\":\"a\"}", 501, "writes no texts"},
        {"/v1/chat/completions", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", 501,
         "writes no texts"},
        {"/v1/rerank", "{\"documents\":[\"a\"]}", 400, "'query'"},
        {"/v1/rerank", "{\"query\":\"a\",\"documents\":\"b\"}", 400, "'documents'"},
        {"/v1/rerank", "{\"query\":\"a\",\"documents\":[]}", 400, "'documents'"},
        {"/v1/rerank", "{\"query\":\"a\",\"documents\":[7]}", 400, "array of texts"},
        {"/v1/rerank", "{\"query\":\"a\",\"documents\":[\"a\"],\"top_n\":0}", 400, "top_n"},
        {"/v1/rerank", "{\"query\":\"a\",\"documents\":[\"a\"],\"return_documents\":true}", 400,
         "return_documents"},
        {"/v1/rerank", "{\"query\":\"a\",\"documents\":[\"a\"],\"odd\":true}", 400, "odd"},
        {"/v1/rerank",
         "{\"query\":\"a\",\"documents\":[\"a a a a a a a a a a a a a a a a a a a a a a a a a a a "
         "a "
         "a a a a\"]}",
         400, "at most 32"},
    };
    struct tnd_served s;
    if (open_reranker(&s)) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            check_int(ASK(&s, cases[i].path, cases[i].body), cases[i].status);
            check_contains(reply_text, cases[i].said);
        }
    }
    tnd_served_close(&s);
}

static CU_TestInfo rerank_tests[] = {
    {"documents_come_by_their_scores", documents_come_by_their_scores},
    {"what_a_reranker_cannot_do_is_refused", what_a_reranker_cannot_do_is_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_server_rerank[] = {
    {"rerank", NULL, NULL, NULL, NULL, rerank_tests},
    CU_SUITE_INFO_NULL,
};
