/* SPDX-License-Identifier: MIT
 * What clients ask for beside texts: embeddings of one and of several texts, in both of their
 * forms; and which tokens a penalty concerns. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite_server.h"
#include "tools/tandem-server/srv_bias.h"

enum { REPLY_BYTES = 1 << 16, MOST_VALUES = 256 };

static char reply_text[REPLY_BYTES];

#define ASK(served, path, body) tnd_ask_whole((served), (path), (body), reply_text, REPLY_BYTES)

/* ---- embeddings ---- */

static const cJSON *entry_of(const cJSON *root, int i)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "data"), i);
}

/* Vector i of the last reply; returns how many values it has. */
static int read_vector(int i, float *out)
{
    cJSON *root = cJSON_Parse(reply_text);
    const cJSON *vector = cJSON_GetObjectItemCaseSensitive(entry_of(root, i), "embedding");
    const int n = cJSON_GetArraySize(vector);
    for (int k = 0; k < n && k < MOST_VALUES; k++) {
        out[k] = (float)cJSON_GetArrayItem(vector, k)->valuedouble;
    }
    cJSON_Delete(root);
    return n;
}

static int digit_of(char digit)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = digit != '\0' ? strchr(digits, digit) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* The bytes of a text in base64; returns how many there are. */
static size_t decode_base64(const char *text, unsigned char *out, size_t capacity)
{
    uint32_t bits = 0;
    int n_bits = 0;
    size_t n = 0;
    for (; digit_of(*text) >= 0; text++) {
        bits = bits << 6 | (uint32_t)digit_of(*text);
        n_bits += 6;
        if (n_bits >= 8 && n < capacity) {
            n_bits -= 8;
            out[n++] = (unsigned char)(bits >> n_bits);
        }
    }
    return n;
}

/* Different lengths leave different rests of three bytes. */
static void base64_is_that_of_its_definition(void)
{
    static const char *const cases[][2] = {{"", "\"\""},
                                           {"f", "\"Zg==\""},
                                           {"fo", "\"Zm8=\""},
                                           {"foo", "\"Zm9v\""},
                                           {"foob", "\"Zm9vYg==\""},
                                           {"fooba", "\"Zm9vYmE=\""},
                                           {"\xff\xfe", "\"//4=\""},
                                           {"foobar", "\"Zm9vYmFy\""}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct srv_text text = {0};
        tnd_srv_add_base64(&text, cases[i][0], strlen(cases[i][0]));
        check_string(text.bytes, cases[i][1]);
        tnd_srv_text_free(&text);
    }
}

static void embeddings_come_as_numbers_or_as_base64(void)
{
    struct tnd_served s;
    float numbers[MOST_VALUES], bytes[MOST_VALUES];
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    check_int(ASK(&s, "/v1/embeddings", "{\"input\":\"Once upon\",\"encoding_format\":\"float\"}"),
              200);
    const int n = read_vector(0, numbers);
    check_int(n, tandem_model_hparams(s.model)->dim);
    /* Behind a cached prefix fewer tokens are computed at once, which rounds differently. */
    tnd_served_close(&s);
    CU_ASSERT_TRUE_FATAL(tnd_served_open(&s, NULL));
    check_int(ASK(&s, "/v1/embeddings", "{\"input\":\"Once upon\",\"encoding_format\":\"base64\"}"),
              200);
    cJSON *root = cJSON_Parse(reply_text);
    const cJSON *vector = cJSON_GetObjectItemCaseSensitive(entry_of(root, 0), "embedding");
    CU_ASSERT_TRUE_FATAL(cJSON_IsString(vector));
    check_int((int64_t)decode_base64(vector->valuestring, (unsigned char *)bytes, sizeof(bytes)),
              n * (int64_t)sizeof(float));
    for (int i = 0; i < n; i++) {
        CU_ASSERT_EQUAL(bytes[i], numbers[i]);
    }
    cJSON_Delete(root);
    tnd_served_close(&s);
}

/* Texts that begin alike, are the same, grow and shrink. */
static void embeddings_of_several_texts_are_those_of_each_alone(void)
{
    static const char *const inputs[] = {"\"Tom\"",
                                         "\"Once upon a time there was\"",
                                         "\"Once upon a dog\"",
                                         "[1,5]",
                                         "\"Once upon a dog\"",
                                         "[1,5,9,7]"};
    enum { N = sizeof(inputs) / sizeof(inputs[0]) };
    struct tnd_served s;
    float alone[N][MOST_VALUES], beside[MOST_VALUES];
    char body[512] = "{\"input\":[";
    int64_t n_tokens = 0;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    for (int i = 0; i < N; i++) {
        char one[128];
        snprintf(one, sizeof(one), "{\"input\":%s}", inputs[i]);
        check_int(ASK(&s, "/v1/embeddings", one), 200);
        (void)read_vector(0, alone[i]);
        n_tokens += atoll(strstr(reply_text, "\"prompt_tokens\":") + 16);
        snprintf(body + strlen(body), sizeof(body) - strlen(body), "%s%s", i > 0 ? "," : "",
                 inputs[i]);
    }
    strcat(body, "]}");
    tnd_served_close(&s);
    CU_ASSERT_TRUE_FATAL(tnd_served_open(&s, NULL)); /* nothing is in the cache */
    check_int(ASK(&s, "/v1/embeddings", body), 200);
    check_int(atoll(strstr(reply_text, "\"prompt_tokens\":") + 16), n_tokens);
    for (int i = 0; i < N; i++) {
        check_int(read_vector(i, beside), tandem_model_hparams(s.model)->dim);
        for (int64_t k = 0; k < tandem_model_hparams(s.model)->dim; k++) {
            CU_ASSERT_TRUE(fabsf(beside[k] - alone[i][k]) < 1e-5f);
        }
    }
    cJSON *root = cJSON_Parse(reply_text);
    check_int(cJSON_GetObjectItemCaseSensitive(entry_of(root, N - 1), "index")->valueint, N - 1);
    cJSON_Delete(root);
    check_int(ASK(&s, "/completion", "{\"prompt\":[1],\"n_predict\":3}"), 200); /* all are idle */
    tnd_served_close(&s);
}

static void wrong_texts_of_embeddings_are_refused(void)
{
    static const char *const cases[][2] = {
        {"{\"input\":[\"a\",[]]}", "'input' must be"},
        {"{\"input\":[\"a\",7]}", "'input' must be"},
        {"{\"input\":[[1],[1,99999]]}", "token 1 must be"},
        {"{\"input\":[[[1]]]}", "'input' must be"},
        {"{\"input\":\"a\",\"encoding_format\":\"int8\"}", "float or base64"}};
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_int(ASK(&s, "/v1/embeddings", cases[i][0]), 400);
        check_contains(reply_text, cases[i][1]);
    }
    static char body[8192];
    strcpy(body, "{\"input\":[\"a\",[1");
    for (int i = 0; i < 256; i++) { /* the second one is too long */
        strcat(body, ",5");
    }
    strcat(body, "]]}");
    check_int(ASK(&s, "/v1/embeddings", body), 400);
    check_contains(reply_text, "257 tokens, at most 256");
    strcpy(body, "{\"input\":[[1]");
    for (int i = 0; i < 256; i++) {
        strcat(body, ",[1]");
    }
    strcat(body, "]}");
    check_int(ASK(&s, "/v1/embeddings", body), 400);
    check_contains(reply_text, "257 texts, at most 256");
    tnd_served_close(&s);
}

/* ---- penalties ---- */

/* What a session and a sampler of its own write, as "[1,2,..]". */
static void write_alone(const struct tnd_served *s, int32_t *ids, int64_t n, float penalty,
                        int64_t last, char *out)
{
    const struct tandem_sampler_options options = {.size = sizeof(options),
                                                   .vocabulary = 512,
                                                   .top_p = 1.0f,
                                                   .repeat_penalty = penalty,
                                                   .repeat_last = last};
    tandem_session *session = NULL;
    tandem_sampler *sampler = NULL;
    check_ok(tandem_session_new(s->model, s->runtime, NULL, &session, NULL));
    check_ok(tandem_sampler_new(&options, &sampler, NULL));
    check_ok(tandem_sampler_keep_utf8(sampler, s->tokenizer, NULL));
    for (int64_t i = 0; i < n; i++) {
        tandem_sampler_accept(sampler, ids[i], false);
    }
    out += sprintf(out, "\"tokens\":");
    for (int i = 0; i < 12; i++) {
        check_ok(tandem_session_decode(session, ids, n, 0, NULL));
        ids[0] = tandem_sampler_sample(sampler, tandem_session_logits(session, 0));
        tandem_sampler_accept(sampler, ids[0], true);
        n = 1;
        out += sprintf(out, "%s%d", i > 0 ? "," : "[", (int)ids[0]);
    }
    sprintf(out, "]");
    tandem_sampler_free(sampler);
    tandem_session_free(session);
}

static void penalties_concern_as_many_tokens_as_were_asked_for(void)
{
    static const struct {
        int asked;
        int64_t last;
        float penalty;
    } cases[] = {{150, 150, 8.0f}, {-1, 4096, 8.0f}, {0, 64, 1.0f}, {32, 32, 8.0f}};
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int32_t ids[128] = {1};
        char body[2048], want[256];
        int at = sprintf(body, "{\"prompt\":[1");
        for (int k = 1; k < 128;
             k++) { /* frequent ones first, which a short memory has forgotten */
            ids[k] = k < 60 ? 259 + k * 4 : 403 + k % 7;
            at += sprintf(body + at, ",%d", (int)ids[k]);
        }
        sprintf(body + at,
                "],\"n_predict\":12,\"temperature\":0,\"repeat_penalty\":8,\"repeat_last_n\":%d}",
                cases[i].asked);
        write_alone(&s, ids, 128, cases[i].penalty, cases[i].last, want);
        check_int(ASK(&s, "/completion", body), 200);
        check_contains(reply_text, want);
    }
    tnd_served_close(&s);
}

/* ---- members ---- */

/* Each of them restricts or shapes what is written. */
static void members_that_ask_for_what_is_not_there_are_refused(void)
{
    static const char *const cases[][2] = {
        {"grammar", "\"root ::= \\\"x\""},
        {"json_schema", "{\"not\":{}}"},
        {"guided_json", "{\"type\":\"objekt\"}"},
        {"guided_regex", "\"(\""},
        {"guided_choice", "[1]"},
        {"structured_outputs", "{\"choices\":[\"a\"]}"},
        {"response_format", "{\"type\":\"json_object\",\"schema\":{\"if\":{}}}"},
        {"response_format", "{\"type\":\"json_schema\",\"json_schema\":{}}"},
        {"functions", "[{\"name\":\"f\"}]"},
        {"typical_p", "0.5"},
        {"mirostat", "2"},
        {"xtc_probability", "0.5"},
        {"dry_multiplier", "0.8"},
        {"dynatemp_range", "0.5"},
        {"samplers", "[\"top_k\"]"},
        {"t_max_predict_ms", "1"},
        {"min_keep", "3"},
        {"top_n_sigma", "1"},
        {"presence_penalty", "3"},
        {"frequency_penalty", "\"1\""},
        {"logit_bias", "{\"5\":-101}"},
        {"logit_bias", "{\"x\":1}"},
        {"logit_bias", "[[100000000,1]]"},
        {"logit_bias", "[[1,true]]"},
        {"logit_bias", "5"},
        {"n", "65"},
        {"n", "0"},
        {"best_of", "2"},
        {"echo", "true"},
        {"suffix", "\"x\""},
        {"lora", "[{\"id\":0,\"scale\":1}]"},
        {"modalities", "[\"audio\"]"},
        {"audio", "{\"voice\":\"x\"}"},
        {"stop_token_ids", "[5]"},
        {"min_tokens", "9"},
        {"max_token", "9"}, /* nobody's: a slip of the pen */
    };
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char body[512];
        char name[64];
        snprintf(name, sizeof(name), "'%s'", cases[i][0]);
        snprintf(
            body, sizeof(body),
            "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":2,\"%s\":%s}",
            cases[i][0], cases[i][1]);
        check_int(ASK(&s, "/v1/chat/completions", body), 400);
        check_contains(reply_text, name);
    }
    check_int(ASK(&s, "/v1/embeddings", "{\"input\":\"a\",\"dimensions\":8}"), 400);
    check_contains(reply_text, "'dimensions'");
    check_int(ASK(&s, "/v1/embeddings", "{\"input\":\"a\",\"top_k\":8}"), 400);
    check_contains(reply_text, "'top_k' is not a member of this request");
    check_int(ASK(&s, "/completion", "{\"prompt\":[1],\"top_k\":8,\"top_k\":9}"), 400);
    check_contains(reply_text, "'top_k' is there twice");
    tnd_served_close(&s);
}

static bool read_bias(const char *text, struct srv_bias *out)
{
    struct srv_body body;
    *out = (struct srv_bias){.rows = NULL};
    CU_ASSERT_TRUE(tnd_srv_body_read(&body, text, strlen(text)));
    const bool is_good = tnd_srv_bias_read(&body, 8, out);
    CU_ASSERT_TRUE(is_good == (body.fault[0] == '\0'));
    tnd_srv_body_free(&body);
    return is_good;
}

/* A penalty counts what was written, a presence once, and bans are for good. */
static void additions_to_logits_are_those_of_the_definitions(void)
{
    static const float logits[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const int32_t written[] = {1, 2, 1, 1, 900, -1};
    const struct srv_vocabulary vocabulary = {.n = 8, .ends = {7, 900}, .n_ends = 2};
    float scratch[9] = {[8] = 42};
    struct srv_bias bias;
    CU_ASSERT_TRUE(read_bias("{}", &bias));
    CU_ASSERT_PTR_EQUAL(tnd_srv_bias_apply(&bias, &vocabulary, written, 6, logits, scratch),
                        logits);
    CU_ASSERT_TRUE(read_bias("{\"presence_penalty\":0.5,\"frequency_penalty\":-0.25,"
                             "\"logit_bias\":{\"0\":100,\"2\":-1.5},\"ignore_eos\":true}",
                             &bias));
    CU_ASSERT_PTR_EQUAL(tnd_srv_bias_apply(&bias, &vocabulary, written, 6, logits, scratch),
                        scratch);
    CU_ASSERT_EQUAL(scratch[0], 100);
    CU_ASSERT_EQUAL(scratch[1], 1 + 3 * 0.25F - 0.5F);
    CU_ASSERT_EQUAL(scratch[2], 2 + 0.25F - 0.5F - 1.5F);
    CU_ASSERT_EQUAL(scratch[3], 3);
    CU_ASSERT_TRUE(isinf(scratch[7]) && scratch[7] < 0);
    CU_ASSERT_EQUAL(scratch[8], 42);
    tnd_srv_bias_free(&bias);
    CU_ASSERT_TRUE(read_bias("{\"logit_bias\":[[3,false],[4,2]]}", &bias));
    (void)tnd_srv_bias_apply(&bias, &vocabulary, NULL, 0, logits, scratch);
    CU_ASSERT_TRUE(isinf(scratch[3]) && scratch[4] == 6);
    tnd_srv_bias_free(&bias);
    CU_ASSERT_FALSE(read_bias("{\"logit_bias\":{\"8\":1}}", &bias));
    tnd_srv_bias_free(&bias);
    CU_ASSERT_FALSE(read_bias("{\"logit_bias\":[[1]]}", &bias));
    tnd_srv_bias_free(&bias);
}

/* Text `i` of the last reply's choices, which are in order. */
static const char *choice_text(const cJSON *root, int i)
{
    const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "choices"), i);
    check_int(cJSON_GetObjectItemCaseSensitive(choice, "index")->valueint, i);
    return cJSON_GetObjectItemCaseSensitive(choice, "text")->valuestring;
}

/* Several prompts, several choices of each: as if each had been asked for alone. */
static void choices_are_those_of_requests_of_their_own(void)
{
    char alone[2][256];
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        check_int(ASK(&s, "/v1/completions",
                      i == 0 ? "{\"prompt\":[1,2],\"max_tokens\":5,\"temperature\":0}"
                             : "{\"prompt\":[1,3],\"max_tokens\":5,\"temperature\":0}"),
                  200);
        cJSON *root = cJSON_Parse(reply_text);
        snprintf(alone[i], sizeof(alone[i]), "%s", choice_text(root, 0));
        cJSON_Delete(root);
    }
    check_int(ASK(&s, "/v1/completions",
                  "{\"prompt\":[[1,2],[1,3]],\"n\":2,\"max_tokens\":5,\"temperature\":0}"),
              200);
    cJSON *root = cJSON_Parse(reply_text);
    for (int i = 0; i < 4; i++) {
        check_string(choice_text(root, i), alone[i / 2]);
    }
    const cJSON *usage = cJSON_GetObjectItemCaseSensitive(root, "usage");
    check_int(cJSON_GetObjectItemCaseSensitive(usage, "prompt_tokens")->valueint, 4);
    check_int(cJSON_GetObjectItemCaseSensitive(usage, "completion_tokens")->valueint, 20);
    cJSON_Delete(root);
    check_int(ASK(&s, "/v1/completions",
                  "{\"prompt\":\"a b\",\"echo\":true,\"max_tokens\":3,\"temperature\":0}"),
              200);
    check_contains(reply_text, "\"text\":\"a b");
    check_int(ASK(&s, "/v1/completions",
                  "{\"prompt\":[[1,2],[1,3]],\"n\":2,\"max_tokens\":2,\"ignore_eos\":true,"
                  "\"stream\":true,"
                  "\"stream_options\":{\"include_usage\":true}}"),
              200);
    check_contains(reply_text, "\"index\":3,");
    check_contains(reply_text, "\"completion_tokens\":8");
    const char *done = strstr(reply_text, "[DONE]");
    CU_ASSERT_TRUE(done != NULL && strstr(done + 1, "[DONE]") == NULL);
    check_int(ASK(&s, "/v1/completions", "{\"prompt\":[1],\"echo\":true,\"logprobs\":1}"), 400);
    check_contains(reply_text, "'echo' with 'logprobs'");
    check_int(ASK(&s, "/v1/completions", "{\"prompt\":[[1],[1]],\"n\":64}"), 400);
    check_contains(reply_text, "128 choices");
    check_int(ASK(&s, "/v1/completions", "{\"prompt\":[[1],[]]}"), 400);
    check_int(ASK(&s, "/v1/chat/completions",
                  "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"n\":3,"
                  "\"max_tokens\":2}"),
              200);
    check_contains(reply_text, "\"index\":2,\"message\"");
    tnd_served_close(&s);
}

static void members_that_say_nothing_are_taken(void)
{
    static const char body[] =
        "{\"prompt\":[1],\"max_tokens\":2,\"grammar\":\"\",\"json_schema\":null,\"tools\":[],"
        "\"tool_choice\":\"auto\",\"ignore_eos\":false,\"typical_p\":1.0,\"mirostat\":0,"
        "\"mirostat_tau\":5,\"xtc_probability\":0,\"xtc_threshold\":0.1,\"samplers\":[],"
        "\"presence_penalty\":0,\"n\":1,\"best_of\":1,\"echo\":false,\"suffix\":\"\",\"lora\":[],"
        "\"cache_prompt\":true,\"user\":\"me\",\"logit_bias\":{},\"top_k\":-1,\"seed\":5,"
        "\"t_max_predict_ms\":0,\"id_slot\":-1,\"metadata\":{\"a\":1}}";
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    check_int(ASK(&s, "/v1/completions", body), 200);
    check_int(
        ASK(&s, "/v1/chat/completions",
            "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":2,"
            "\"modalities\":[\"text\"],\"verbosity\":\"medium\",\"parallel_tool_calls\":true}"),
        200);
    tnd_served_close(&s);
}

/* ---- grammars ---- */

/* The text of the only choice, cut to `capacity`, and why it ended. */
static void read_choice(char *out, size_t capacity, char *out_reason)
{
    cJSON *root = cJSON_Parse(reply_text);
    const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "choices"), 0);
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(choice, "text");
    const cJSON *reason = cJSON_GetObjectItemCaseSensitive(choice, "finish_reason");
    snprintf(out, capacity, "%s", cJSON_IsString(text) ? text->valuestring : "");
    snprintf(out_reason, 16, "%s", cJSON_IsString(reason) ? reason->valuestring : "");
    cJSON_Delete(root);
}

#define SMALL_SCHEMA                                                                               \
    "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":3,\"maximum\":"  \
    "99},"                                                                                         \
    "\"ok\":{\"type\":\"boolean\"}},\"required\":[\"n\",\"ok\"],\"additionalProperties\":false}"

static bool is_of_schema(const char *text)
{
    cJSON *root = cJSON_Parse(text);
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(root, "n");
    const bool is_good = cJSON_IsObject(root) && cJSON_GetArraySize(root) == 2 &&
                         cJSON_IsNumber(n) && n->valueint >= 3 && n->valueint <= 99 &&
                         cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(root, "ok"));
    cJSON_Delete(root);
    return is_good;
}

static bool is_of_digits(const char *text)
{
    return strlen(text) == 4 && strspn(text, "0123456789") == 4;
}

static bool is_choice(const char *text)
{
    return strcmp(text, "yes") == 0 || strcmp(text, "never") == 0;
}

/* Each way to say what a text may be, hot enough that it would not come by itself. */
static void texts_keep_the_form_that_is_asked_for(void)
{
    static const struct {
        const char *member;
        bool (*is_good)(const char *text);
    } cases[] = {
        {"\"json_schema\":" SMALL_SCHEMA, is_of_schema},
        {"\"guided_json\":" SMALL_SCHEMA, is_of_schema},
        {"\"structured_outputs\":{\"json\":" SMALL_SCHEMA "}", is_of_schema},
        {"\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"x\","
         "\"strict\":true,\"schema\":" SMALL_SCHEMA "}}",
         is_of_schema},
        {"\"response_format\":{\"type\":\"json_object\",\"schema\":" SMALL_SCHEMA "}",
         is_of_schema},
        {"\"grammar\":\"root ::= [0-9]{4}\"", is_of_digits},
        {"\"guided_regex\":\"\\\\d{4}\"", is_of_digits},
        {"\"structured_outputs\":{\"regex\":\"[0-9]{4}\"}", is_of_digits},
        {"\"guided_choice\":[\"yes\",\"never\"]", is_choice},
    };
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int seed = 0; seed < 4; seed++) {
            char body[1024], text[512], reason[16];
            snprintf(body, sizeof(body),
                     "{\"prompt\":\"Once\",\"max_tokens\":240,\"temperature\":1.5,\"seed\":%d,%s}",
                     seed, cases[i].member);
            check_int(ASK(&s, "/v1/completions", body), 200);
            read_choice(text, sizeof(text), reason);
            check_string(reason, "stop");
            if (!cases[i].is_good(text)) {
                printf("%s: %s\n", cases[i].member, text);
                CU_FAIL("a text is not of its form");
            }
        }
    }
    check_int(ASK(&s, "/completion",
                  "{\"prompt\":[1],\"grammar\":\"root ::= [a]\",\"guided_choice\":[\"a\"]}"),
              400);
    check_contains(reply_text, "beside another grammar");
    check_int(ASK(&s, "/completion",
                  "{\"prompt\":[1],\"grammar\":\"root ::= \\\"a\\\" []\",\"n_predict\":9}"),
              500);
    check_contains(reply_text, "no token of the model can go on");
    tnd_served_close(&s);
}

/* ---- what the server is ---- */

static void a_model_is_found_by_its_name(void)
{
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    s.server.model_name = "org/small.gguf";
    check_int(ASK(&s, "/v1/models/org/small.gguf", NULL), 200);
    check_contains(reply_text, "{\"id\":\"org/small.gguf\",\"object\":\"model\"");
    check_int(ASK(&s, "/models/org/small.gguf", NULL), 200);
    check_int(ASK(&s, "/v1/models/other", NULL), 404);
    check_contains(reply_text, "there is no model 'other', only 'org/small.gguf'");
    check_int(ASK(&s, "/v1/models/", NULL), 404);
    check_int(ASK(&s, "/v1/models", NULL), 200);
    check_int(ASK(&s, "/v1/models/other", "{}"), 405);
    tnd_served_close(&s);
}

static void what_the_model_cannot_do_is_told_with_its_reason(void)
{
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    check_int(ASK(&s, "/v1/rerank", "{\"query\":\"a\",\"documents\":[\"b\"]}"), 501);
    check_contains(reply_text, "no head that ranks");
    check_int(ASK(&s, "/rerank", "{}"), 501);
    check_int(ASK(&s, "/infill", "{}"), 501);
    tnd_served_close(&s);
}

static CU_TestInfo tests[] = {
    {"base64_is_that_of_its_definition", base64_is_that_of_its_definition},
    {"embeddings_come_as_numbers_or_as_base64", embeddings_come_as_numbers_or_as_base64},
    {"embeddings_of_several_texts_are_those_of_each_alone",
     embeddings_of_several_texts_are_those_of_each_alone},
    {"wrong_texts_of_embeddings_are_refused", wrong_texts_of_embeddings_are_refused},
    {"penalties_concern_as_many_tokens_as_were_asked_for",
     penalties_concern_as_many_tokens_as_were_asked_for},
    {"members_that_ask_for_what_is_not_there_are_refused",
     members_that_ask_for_what_is_not_there_are_refused},
    {"additions_to_logits_are_those_of_the_definitions",
     additions_to_logits_are_those_of_the_definitions},
    {"choices_are_those_of_requests_of_their_own", choices_are_those_of_requests_of_their_own},
    {"members_that_say_nothing_are_taken", members_that_say_nothing_are_taken},
    {"texts_keep_the_form_that_is_asked_for", texts_keep_the_form_that_is_asked_for},
    {"a_model_is_found_by_its_name", a_model_is_found_by_its_name},
    {"what_the_model_cannot_do_is_told_with_its_reason",
     what_the_model_cannot_do_is_told_with_its_reason},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_server_requests[];
CU_SuiteInfo suites_server_requests[] = {
    {"requests", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
