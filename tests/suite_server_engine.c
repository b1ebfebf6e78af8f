/* SPDX-License-Identifier: MIT
 * Requests and jobs without a network: what they are answered, texts in one batch, prefixes that
 * are shared, limits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite_server.h"
#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_saved.h"

enum { REPLY_BYTES = 1 << 16 };

static char reply_text[REPLY_BYTES];

#define ASK(served, path, body) tnd_ask_whole((served), (path), (body), reply_text, REPLY_BYTES)

/* A string or number of the last reply, by the path of its members: "choices/0/text". */
static const cJSON *find(const cJSON *at, const char *path)
{
    char name[64];
    while (at != NULL && path[0] != '\0') {
        const size_t n = strcspn(path, "/");
        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        at = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, atoi(name))
                               : cJSON_GetObjectItemCaseSensitive(at, name);
        path += n + (path[n] == '/');
    }
    return at;
}

static void check_member(const char *path, const char *want)
{
    cJSON *root = cJSON_Parse(reply_text);
    const cJSON *item = find(root, path);
    if (item == NULL) {
        printf("no %s in %s\n", path, reply_text);
    }
    CU_ASSERT_PTR_NOT_NULL(item);
    if (cJSON_IsNumber(item)) {
        check_int((int64_t)item->valuedouble, atoll(want));
    } else if (item != NULL) {
        check_string(item->valuestring, want);
    }
    cJSON_Delete(root);
}

/* The same for any text: "" when it is not there. Freed by the caller. */
static char *member(const char *path)
{
    cJSON *root = cJSON_Parse(reply_text);
    const cJSON *item = find(root, path);
    char *copy = strdup(cJSON_IsString(item) ? item->valuestring : "");
    cJSON_Delete(root);
    return copy;
}

/* ---- replies ---- */

static void texts_are_those_of_a_session_of_its_own(void)
{
    struct tnd_served s;
    int32_t ids[64];
    size_t n = 0, at = 0;
    char want[1024], prompt_tokens[16], cached_tokens[16];
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    tandem_session *session = NULL;
    check_ok(tandem_session_new(s.model, s.runtime, NULL, &session, NULL));
    check_ok(tandem_tokenizer_encode(s.tokenizer, "Once upon a time", 16, true, ids, 64, &n, NULL));
    snprintf(prompt_tokens, sizeof(prompt_tokens), "%zu", n);
    snprintf(cached_tokens, sizeof(cached_tokens), "%zu", n - 1); /* the last is computed again */
    struct tandem_token_stream stream = tandem_token_stream_begin(s.tokenizer, false);
    for (int i = 0; i < 20; i++) {
        check_ok(tandem_session_decode(session, ids, (int64_t)n, 0, NULL));
        const float *logits = tandem_session_logits(session, 0);
        ids[0] = 0;
        for (int32_t k = 1; k < 512; k++) {
            ids[0] = logits[k] > logits[ids[0]] ? k : ids[0];
        }
        n = 1;
        at += tandem_token_stream_next(&stream, ids[0], want + at, sizeof(want) - at);
    }
    want[at] = '\0';
    check_int(ASK(&s, "/v1/completions",
                  "{\"prompt\":\"Once upon a time\",\"max_tokens\":20,\"temperature\":0}"),
              200);
    check_member("choices/0/text", want);
    check_member("choices/0/finish_reason", "length");
    check_member("object", "text_completion");
    check_member("usage/prompt_tokens", prompt_tokens);
    check_member("usage/completion_tokens", "20");
    check_int(ASK(&s, "/completion",
                  "{\"prompt\":\"Once upon a time\",\"n_predict\":20,\"temperature\":0}"),
              200);
    check_member("content", want);
    check_member("stop_type", "limit");
    check_member("timings/cache_n", cached_tokens);
    check_int(ASK(&s, "/v1/chat/completions",
                  "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                  "\"text\":\"Once upon a time\"}]}],\"max_completion_tokens\":20,"
                  "\"temperature\":0}"),
              200);
    check_member("choices/0/message/content", want);
    check_member("choices/0/message/role", "assistant");
    tandem_session_free(session);
    tnd_served_close(&s);
}

static void streams_are_events_that_add_up_to_the_text(void)
{
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    const char *body = "{\"messages\":[{\"role\":\"user\",\"content\":\"Once\"}],\"max_tokens\":12,"
                       "\"seed\":3,\"stream\":true,\"stream_options\":{\"include_usage\":true}}";
    check_int(ASK(&s, "/v1/chat/completions", body), 200);
    char *events = strdup(reply_text);
    check_int(ASK(&s, "/v1/chat/completions",
                  "{\"messages\":[{\"role\":\"user\",\"content\":\"Once\"}],\"max_tokens\":12,"
                  "\"seed\":3}"),
              200);
    char *whole = member("choices/0/message/content");
    char text[4096] = "";
    int n_events = 0, n_usage = 0;
    bool has_end = false;
    for (char *at = strtok(events, "\n"); at != NULL; at = strtok(NULL, "\n"), n_events++) {
        CU_ASSERT_FALSE(has_end);
        CU_ASSERT_EQUAL(strncmp(at, "data: ", 6), 0);
        has_end = strcmp(at, "data: [DONE]") == 0;
        cJSON *event = has_end ? NULL : cJSON_Parse(at + 6);
        CU_ASSERT_TRUE(has_end || event != NULL);
        const cJSON *part = find(event, "choices/0/delta/content");
        CU_ASSERT_EQUAL(find(event, "choices/0/delta/role") != NULL, n_events == 0);
        strcat(text, cJSON_IsString(part) ? part->valuestring : "");
        n_usage += cJSON_IsNumber(find(event, "usage/total_tokens"));
        cJSON_Delete(event);
    }
    CU_ASSERT_TRUE(has_end);
    check_int(n_usage, 1);
    CU_ASSERT_TRUE(n_events > 5);
    check_string(text, whole);
    free(events);
    free(whole);
    tnd_served_close(&s);
}

static void stop_strings_end_texts_and_are_not_told(void)
{
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    const char *ask = "{\"prompt\":\"Once upon a time\",\"max_tokens\":40,\"temperature\":0%s}";
    char body[512];
    snprintf(body, sizeof(body), ask, "");
    check_int(ASK(&s, "/v1/completions", body), 200);
    char *text = member("choices/0/text");
    CU_ASSERT_TRUE_FATAL(strlen(text) > 30);
    for (size_t at = 1; at < 24; at += 5) { /* stop strings across tokens */
        char stop[8];
        char want[64];
        snprintf(stop, sizeof(stop), "%.6s", text + at);
        const size_t first = (size_t)(strstr(text, stop) - text);
        snprintf(want, sizeof(want), "%.*s", (int)first, text);
        snprintf(body, sizeof(body),
                 "{\"prompt\":\"Once upon a time\",\"n_predict\":40,\"temperature\":0,"
                 "\"stop\":[\"~~\",\"%s\"]}",
                 stop);
        check_int(ASK(&s, "/completion", body), 200);
        check_member("content", want);
        check_member("stop_type", "word");
        check_member("stopping_word", stop);
        /* a stream tells nothing of it either */
        snprintf(body, sizeof(body),
                 "{\"prompt\":\"Once upon a time\",\"max_tokens\":40,\"temperature\":0,"
                 "\"stop\":\"%s\",\"stream\":true}",
                 stop);
        check_int(ASK(&s, "/v1/completions", body), 200);
        char told[256] = "";
        for (const char *event = strstr(reply_text, "\"text\":\""); event != NULL;
             event = strstr(event + 1, "\"text\":\"")) {
            strncat(told, event + 8, strcspn(event + 8, "\""));
        }
        check_string(told, want);
    }
    free(text);
    tnd_served_close(&s);
}

static void wrong_requests_get_the_right_codes(void)
{
    struct tnd_served s;
    const struct {
        const char *path, *body;
        int status;
        const char *part;
    } cases[] = {
        {"/nowhere", NULL, 404, "there is no /nowhere"},
        {"/completion", NULL, 405, "takes POST"},
        {"/health", "{}", 405, "takes GET"},
        {"/completion", "{", 400, "no JSON"},
        {"/completion", "{}", 400, "'prompt' must be"},
        {"/completion", "{\"prompt\":7}", 400, "'prompt' must be"},
        {"/completion", "{\"prompt\":[1,512]}", 400,
         "token 1 must be a whole number from 0 to 511"},
        {"/completion", "{\"prompt\":[1,-1]}", 400, "token 1 must"},
        {"/completion", "{\"prompt\":[1.5]}", 400, "token 0 must"},
        {"/completion", "{\"prompt\":[1],\"temperature\":-1}", 400, "'temperature'"},
        {"/completion", "{\"prompt\":[1],\"top_p\":\"x\"}", 400, "'top_p'"},
        {"/completion", "{\"prompt\":[1],\"n_predict\":0}", 400, "'max_tokens'"},
        {"/completion", "{\"prompt\":[1],\"stop\":[1]}", 400, "'stop'"},
        {"/completion", "{\"prompt\":[1],\"stop\":\"\"}", 400, "'stop'"},
        {"/completion", "{\"prompt\":[1],\"stream\":1}", 400, "'stream' must be true or false"},
        {"/completion", "{\"prompt\":[1],\"stream_options\":{\"include_usage\":3}}", 400,
         "include_usage"},
        {"/v1/chat/completions", "{\"messages\":[]}", 400, "'messages'"},
        {"/v1/chat/completions", "{\"messages\":[{\"role\":\"user\"}]}", 400, "'content'"},
        {"/v1/chat/completions", "{\"messages\":[{\"content\":\"x\"}]}", 400, "'role'"},
        {"/v1/chat/completions", "{\"messages\":[{\"role\":\"odd\",\"content\":\"x\"}]}", 400,
         "message 0 is of 'odd'"},
        {"/v1/chat/completions", "{\"messages\":[7]}", 400, "'role'"},
        {"/v1/chat/completions",
         "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}", 400,
         "only parts of type text"},
        {"/v1/completions", "{\"prompt\":\"x\",\"best_of\":2}", 400, "'best_of' is not"},
        {"/v1/completions", "{\"prompt\":\"x\",\"tools\":[{}]}", 400, "'tools' is not supported"},
        {"/v1/completions", "{\"prompt\":\"x\",\"response_format\":{\"type\":\"xml\"}}", 400,
         "not 'xml'"},
        {"/v1/completions", "{\"prompt\":\"x\",\"logprobs\":99}", 400, "'logprobs'"},
        {"/v1/embeddings", "{\"input\":[]}", 400, "'input' must be"},
        {"/tokenize", "{}", 400, "'content' is missing"},
        {"/detokenize", "{\"tokens\":{}}", 400, "'tokens' must be an array"},
        {"/apply-template", "{}", 400, "'messages'"},
    };
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_int(ASK(&s, cases[i].path, cases[i].body), cases[i].status);
        char *message = member("error/message");
        check_contains(message, cases[i].part);
        free(message);
    }
    char body[4096];
    size_t at = (size_t)sprintf(body, "{\"prompt\":[1");
    for (int i = 0; i < 256; i++) {
        at += (size_t)sprintf(body + at, ",5");
    }
    sprintf(body + at, "]}");
    check_int(ASK(&s, "/completion", body), 400);
    check_member("error/message", "the prompt has 257 tokens, at most 255");
    tnd_served_close(&s);
}

static void only_who_may_ask_is_answered(void)
{
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    s.server.api_key = "secret";
    const struct {
        const char *path, *authorization, *host, *origin;
        int status;
    } cases[] = {
        {"/health", NULL, "localhost", NULL, 200},
        {"/", NULL, "127.0.0.1:80", NULL, 200},
        {"/props", NULL, "localhost", NULL, 401},
        {"/nowhere", NULL, "localhost", NULL, 401},
        {"/props", "secret", "localhost", NULL, 401},
        {"/props", "Bearer secre", "localhost", NULL, 401},
        {"/props", "Bearer secrets", "localhost", NULL, 401},
        {"/props", "Bearer ", "localhost", NULL, 401},
        {"/props", "Bearer secret", "localhost", NULL, 200},
        {"/props", "Bearer secret", "[::1]:80", NULL, 200},
        {"/props", "Bearer secret", "localhost:80", "http://localhost:80", 200},
        {"/props", "Bearer secret", "localhost:80", "http://evil.example", 403},
        {"/props", "Bearer secret", "localhost:80", "null", 403},
        {"/health", NULL, "evil.example", NULL, 403},
        {"/health", NULL, "localhost.evil.example", NULL, 403},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct srv_reply reply;
        const struct srv_request request = {.method = "GET",
                                            .path = cases[i].path,
                                            .authorization = cases[i].authorization,
                                            .host = cases[i].host,
                                            .origin = cases[i].origin,
                                            .body = ""};
        tnd_srv_answer(&s.server, &request, &reply);
        check_int(reply.status, cases[i].status);
        tnd_srv_reply_free(&reply);
    }
    tnd_served_close(&s);
}

static void answers_in_json_mode_are_json(void)
{
    struct tnd_served s;
    int n_complete = 0;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    for (int seed = 0; seed < 12; seed++) {
        char body[256];
        snprintf(body, sizeof(body),
                 "{\"prompt\":\"Once upon a time\",\"max_tokens\":200,\"seed\":%d,\"temperature\":"
                 "9,\"response_format\":{\"type\":\"json_object\"}}",
                 seed);
        check_int(ASK(&s, "/v1/completions", body), 200);
        char *text = member("choices/0/text");
        char *reason = member("choices/0/finish_reason");
        CU_ASSERT_TRUE(text[strspn(text, " \t\n\r")] == '{' ||
                       text[strspn(text, " \t\n\r")] == '\0');
        if (strcmp(reason, "stop") == 0) {
            cJSON *root = cJSON_Parse(text);
            CU_ASSERT_TRUE(cJSON_IsObject(root));
            cJSON_Delete(root);
            n_complete++;
        }
        free(text);
        free(reason);
    }
    CU_ASSERT_TRUE(n_complete > 0);
    tnd_served_close(&s);
}

static void log_probabilities_are_told_with_their_tokens(void)
{
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    check_int(ASK(&s, "/v1/chat/completions",
                  "{\"messages\":[{\"role\":\"user\",\"content\":\"Once upon a time\"}],"
                  "\"max_tokens\":6,\"temperature\":0,\"logprobs\":true,\"top_logprobs\":3}"),
              200);
    cJSON *root = cJSON_Parse(reply_text);
    const cJSON *content = find(root, "choices/0/logprobs/content");
    check_int(cJSON_GetArraySize(content), 6);
    for (int i = 0; i < 6; i++) {
        const cJSON *one = cJSON_GetArrayItem(content, i);
        const cJSON *top = find(one, "top_logprobs");
        double sum = 0.0;
        check_int(cJSON_GetArraySize(top), 3);
        check_string(find(one, "token")->valuestring, find(top, "0/token")->valuestring);
        for (int k = 0; k < 3; k++) {
            const double logprob = find(cJSON_GetArrayItem(top, k), "logprob")->valuedouble;
            CU_ASSERT_TRUE(
                logprob <=
                (k > 0 ? find(cJSON_GetArrayItem(top, k - 1), "logprob")->valuedouble : 0.0));
            sum += exp(logprob);
        }
        CU_ASSERT_TRUE(sum > 0.0 && sum <= 1.0001);
    }
    cJSON_Delete(root);
    tnd_served_close(&s);
}

static void small_routes_answer(void)
{
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    check_int(ASK(&s, "/tokenize", "{\"content\":\"Once upon a time\",\"add_special\":true}"), 200);
    char back[512];
    snprintf(back, sizeof(back), "%s", reply_text);
    check_int(ASK(&s, "/detokenize", back), 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(reply_text, "Once upon a time\"}"));
    check_int(ASK(&s, "/apply-template",
                  "{\"messages\":[{\"role\":\"system\",\"content\":\"Be kind\"},{\"role\":\"user\","
                  "\"content\":\"Hi\"}]}"),
              200);
    CU_ASSERT_PTR_NOT_NULL(strstr(reply_text, "Be kind\\n\\nHi\"}"));
    check_int(ASK(&s, "/v1/models", NULL), 200);
    check_member("data/0/id", "small");
    check_int(ASK(&s, "/props", NULL), 200);
    check_member("default_generation_settings/n_ctx", "256");
    check_int(ASK(&s, "/v1/embeddings", "{\"input\":\"Once upon\"}"), 200);
    cJSON *root = cJSON_Parse(reply_text);
    const cJSON *values = find(root, "data/0/embedding");
    double sum = 0.0;
    for (const cJSON *value = values->child; value != NULL; value = value->next) {
        sum += value->valuedouble * value->valuedouble;
    }
    check_int(cJSON_GetArraySize(values), tandem_model_hparams(s.model)->dim);
    CU_ASSERT_TRUE(fabs(sum - 1.0) < 1e-4);
    cJSON_Delete(root);
    check_int(ASK(&s, "/metrics", NULL), 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(reply_text, "\ntandem_requests_total 1\n"));
    check_int(ASK(&s, "/slots", NULL), 200);
    check_member("0/n_decoded", "0");
    check_int(ASK(&s, "/", NULL), 200);
    CU_ASSERT_PTR_NULL(strstr(reply_text, "//")); /* nothing from elsewhere */
    check_int(ASK(&s, "/health", NULL), 200);
    check_member("status", "ok");
    tnd_srv_engine_stop(s.server.engine, 0.0);
    check_int(ASK(&s, "/health", NULL), 503);
    check_int(ASK(&s, "/completion", "{\"prompt\":[1]}"), 503);
    check_member("error/message", "the server ends");
    tnd_served_close(&s);
}

/* ---- jobs beside each other ---- */

static void ask_text(const struct tnd_served *s, int i, struct srv_reply *reply)
{
    static const char *const begins[] = {"Once upon a time", "Tom had a dog", "The sun",
                                         "One day, Lily"};
    char body[512];
    snprintf(body, sizeof(body),
             "{\"prompt\":\"%s, %d\",\"n_predict\":%d,\"seed\":%d,\"temperature\":%d}",
             begins[i % 4], i, 10 + i, i, i % 2);
    tnd_ask(s, "/completion", body, reply);
}

/* Texts that run beside each other, join and leave, are those that run alone. */
static void texts_beside_each_other_are_those_alone(void)
{
    enum { N = 12 };
    struct tnd_served s;
    struct srv_reply alone[N], beside[N];
    const struct tnd_served_options options = {.max_queue = N};
    for (int is_beside = 0; is_beside < 2; is_beside++) {
        if (!tnd_served_open(&s, &options)) {
            return;
        }
        for (int i = 0; i < N; i++) {
            struct srv_reply *reply = is_beside ? &beside[i] : &alone[i];
            ask_text(&s, i, reply);
            CU_ASSERT_PTR_NOT_NULL_FATAL(reply->job);
            if (is_beside) {
                (void)tnd_srv_engine_step(s.server.engine);
            } else {
                tnd_run_job(&s, reply->job);
            }
        }
        for (int i = 0; i < N && is_beside; i++) {
            tnd_run_job(&s, beside[i].job);
        }
        tnd_served_close(&s);
    }
    for (int i = 0; i < N; i++) {
        check_string(beside[i].job->text.bytes, alone[i].job->text.bytes);
        check_int(beside[i].job->finish, alone[i].job->finish);
        tnd_srv_reply_free(&alone[i]);
        tnd_srv_reply_free(&beside[i]);
    }
}

static void ask_ids(const struct tnd_served *s, int first, int n, int last, struct srv_reply *reply)
{
    char body[4096];
    size_t at = (size_t)sprintf(body, "{\"n_predict\":4,\"temperature\":0,\"prompt\":[1");
    for (int i = 1; i < n; i++) {
        at += (size_t)sprintf(body + at, ",%d", 259 + (i * 7 + first) % 200);
    }
    sprintf(body + at, ",%d]}", last);
    tnd_ask(s, "/completion", body, reply);
    CU_ASSERT_PTR_NOT_NULL_FATAL(reply->job);
}

static void same_beginnings_are_computed_once(void)
{
    struct tnd_served s;
    struct srv_reply first, second, third, fourth;
    struct srv_counts counts;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    ask_ids(&s, 3, 150, 300, &first);
    ask_ids(&s, 3, 150, 301, &second); /* waits for the first one's prompt */
    ask_ids(&s, 3, 150, 300, &third);
    tnd_run_job(&s, third.job);
    tnd_run_job(&s, second.job);
    check_int(first.job->times.n_cached, 0);
    check_int(second.job->times.n_cached, 150);
    check_int(third.job->times.n_cached, 150);
    check_string(third.job->text.bytes, first.job->text.bytes);
    ask_ids(&s, 4, 150, 300, &fourth); /* another text */
    tnd_run_job(&s, fourth.job);
    check_int(fourth.job->times.n_cached, 1);
    tnd_srv_engine_count(s.server.engine, &counts);
    check_int(counts.cached_tokens, 301);
    check_int(counts.prompt_tokens, 151 + 1 + 1 + 150);
    tnd_srv_reply_free(&first);
    tnd_srv_reply_free(&second);
    tnd_srv_reply_free(&third);
    tnd_srv_reply_free(&fourth);
    tnd_served_close(&s);
}

static void the_least_recently_used_text_gives_way(void)
{
    const struct tnd_served_options options = {.n_cells = 448}; /* of three texts of 128 cells */
    const int order[] = {1, 2, 3, 1, 4, 1, 3, 2};               /* 4 takes the place of 2 */
    const int cached[] = {0, 1, 1, 99, 1, 99, 99, 1};
    struct tnd_served s;
    if (!tnd_served_open(&s, &options)) {
        return;
    }
    for (int i = 0; i < 8; i++) {
        struct srv_reply reply;
        ask_ids(&s, order[i], 99, 300 + i, &reply);
        tnd_run_job(&s, reply.job);
        check_int(reply.job->finish, SRV_LENGTH);
        check_int(reply.job->times.n_cached, cached[i]);
        tnd_srv_reply_free(&reply);
    }
    tnd_served_close(&s);
}

/* ---- counters ---- */

/* What `promtool check metrics` asks for: each metric has its help, its kind and one number in this
 * order, is named in lower case and once; counters alone end in _total. */
static void counters_are_in_the_format_of_prometheus(void)
{
    struct tnd_served s;
    char names[64][64];
    int n = 0;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    check_int(ASK(&s, "/completion", "{\"prompt\":\"Once\",\"n_predict\":3}"), 200);
    check_int(ASK(&s, "/metrics", NULL), 200);
    CU_ASSERT_EQUAL(reply_text[strlen(reply_text) - 1], '\n');
    for (char *line = strtok(reply_text, "\n"); line != NULL && n < 64; line = strtok(NULL, "\n")) {
        char kind[16] = "", name[64] = "", end = 0;
        double value = -1.0;
        CU_ASSERT_EQUAL(sscanf(line, "# HELP %63[a-z_] %c", names[n], &end), 2);
        line = strtok(NULL, "\n");
        CU_ASSERT_PTR_NOT_NULL_FATAL(line);
        CU_ASSERT_EQUAL(sscanf(line, "# TYPE %63[a-z_] %15[a-z]%c", name, kind, &end), 2);
        check_string(name, names[n]);
        line = strtok(NULL, "\n");
        CU_ASSERT_PTR_NOT_NULL_FATAL(line);
        CU_ASSERT_EQUAL(sscanf(line, "%63[a-z_] %lf%c", name, &value, &end), 2);
        check_string(name, names[n]);
        CU_ASSERT_TRUE(value >= 0.0 && isfinite(value));
        const size_t length = strlen(name);
        const bool is_total = length > 6 && strcmp(name + length - 6, "_total") == 0;
        check_string(kind, is_total ? "counter" : "gauge");
        for (int i = 0; i < n; i++) {
            CU_ASSERT_NOT_EQUAL(strcmp(names[i], names[n]), 0);
        }
        n++;
    }
    CU_ASSERT_TRUE(n > 10);
    tnd_served_close(&s);
}

/* ---- from one server to the next ---- */

static void saved_texts_are_there_in_the_next_server(void)
{
    struct tnd_served s, next;
    struct srv_reply first, half, again, more;
    char *bytes = NULL;
    size_t n = 0;
    if (!tnd_served_open(&s, NULL) || !tnd_served_open(&next, NULL)) {
        return;
    }
    ask_ids(&s, 3, 150, 300, &first);
    tnd_run_job(&s, first.job);
    ask_ids(&s, 5, 90, 300, &half);
    while (half.job->n_generated < 2) {
        (void)tnd_srv_engine_step(s.server.engine);
    }
    tnd_srv_engine_stop(s.server.engine, 0.0); /* no time to finish */
    check_int(half.job->finish, SRV_CANCELLED);
    check_ok(tnd_srv_save_bytes(s.server.engine, &bytes, &n, NULL));
    check_ok(tnd_srv_restore_bytes(next.server.engine, bytes, n, NULL));
    ask_ids(&next, 3, 150, 300, &again);
    ask_ids(&next, 5, 90, 300, &more);
    tnd_run_job(&next, again.job);
    tnd_run_job(&next, more.job);
    check_int(again.job->times.n_cached, 150);
    check_int(more.job->times.n_cached, 90);
    check_string(again.job->text.bytes, first.job->text.bytes);
    CU_ASSERT_EQUAL(strncmp(more.job->text.bytes, half.job->text.bytes, half.job->text.n), 0);
    free(bytes);
    tnd_srv_reply_free(&first);
    tnd_srv_reply_free(&half);
    tnd_srv_reply_free(&again);
    tnd_srv_reply_free(&more);
    tnd_served_close(&s);
    tnd_served_close(&next);
}

static void damaged_texts_leave_an_empty_cache(void)
{
    const struct tnd_served_options other = {.n_parallel = 3};
    struct tnd_served s, wider;
    struct srv_reply reply;
    struct srv_counts counts;
    struct tandem_error error;
    char *bytes = NULL;
    size_t n = 0;
    if (!tnd_served_open(&s, NULL) || !tnd_served_open(&wider, &other)) {
        return;
    }
    ask_ids(&s, 3, 20, 300, &reply);
    tnd_run_job(&s, reply.job);
    check_ok(tnd_srv_save_bytes(s.server.engine, &bytes, &n, NULL));
    CU_ASSERT_NOT_EQUAL(tnd_srv_restore_bytes(wider.server.engine, bytes, n, &error), TANDEM_OK);
    check_contains(error.text, "--parallel");
    for (size_t i = 0; i < n; i += i < 200 ? 1 : 977) {
        char *copy = malloc(i > 0 ? i : 1); /* so that reading behind the end is noticed */
        CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
        memcpy(copy, bytes, i);
        CU_ASSERT_NOT_EQUAL(tnd_srv_restore_bytes(s.server.engine, copy, i, NULL), TANDEM_OK);
        free(copy);
        bytes[i] ^= 0x40;
        CU_ASSERT_NOT_EQUAL(tnd_srv_restore_bytes(s.server.engine, bytes, n, NULL), TANDEM_OK);
        bytes[i] ^= 0x40;
        (void)tnd_srv_engine_step(s.server.engine);
        tnd_srv_engine_count(s.server.engine, &counts);
        check_int(counts.cells_used, 0);
    }
    free(bytes);
    tnd_srv_reply_free(&reply);
    tnd_served_close(&s);
    tnd_served_close(&wider);
}

/* ---- limits ---- */

static void a_full_queue_refuses_and_goes_on(void)
{
    const struct tnd_served_options options = {.n_parallel = 1, .max_queue = 2};
    struct tnd_served s;
    struct srv_reply replies[4];
    if (!tnd_served_open(&s, &options)) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        ask_text(&s, i, &replies[i]);
        check_int(replies[i].job != NULL, i < 3);
        if (i == 0) {
            (void)tnd_srv_engine_step(s.server.engine);
        }
    }
    check_int(replies[3].status, 503);
    check_contains(replies[3].body.bytes, "too many requests wait");
    for (int i = 0; i < 3; i++) {
        tnd_run_job(&s, replies[i].job);
        check_int(replies[i].job->n_generated, 10 + i);
    }
    for (int i = 0; i < 4; i++) {
        tnd_srv_reply_free(&replies[i]);
    }
    tnd_served_close(&s);
}

static bool yes(void *user)
{
    (void)user;
    return true;
}

static void jobs_of_nobody_and_late_ones_end(void)
{
    const struct tnd_served_options options = {.n_parallel = 2};
    const struct srv_listener nobody = {.is_gone = yes};
    struct tnd_served s;
    struct srv_reply replies[5], whole = {0};
    if (!tnd_served_open(&s, &options)) {
        return;
    }
    for (int i = 0; i < 5; i++) {
        ask_text(&s, i, &replies[i]);
    }
    (void)tnd_srv_engine_step(s.server.engine);
    atomic_store(&replies[0].job->is_cancelled, true); /* one that runs, and one that waits */
    tnd_srv_job_listen(replies[2].job, &nobody);
    replies[1].job->deadline = 1.0;
    replies[3].job->deadline = 1.0;
    tnd_run_job(&s, replies[4].job);
    for (int i = 0; i < 2000 && replies[2].job->finish == SRV_RUNNING; i++) {
        (void)tnd_srv_engine_step(s.server.engine);
    }
    const enum srv_finish wanted[] = {SRV_CANCELLED, SRV_TIMEOUT, SRV_CANCELLED, SRV_TIMEOUT,
                                      SRV_LENGTH};
    for (int i = 0; i < 5; i++) {
        if (i != 2 || replies[i].job->finish != SRV_LENGTH) { /* it may have been quicker */
            check_int(replies[i].job->finish, wanted[i]);
        }
    }
    CU_ASSERT_TRUE(tnd_srv_read_whole(&s.server, replies[1].job, &whole));
    check_int(whole.status, 504);
    check_contains(whole.body.bytes, "longer than it may");
    tnd_srv_reply_free(&whole);
    for (int i = 0; i < 5; i++) {
        tnd_srv_reply_free(&replies[i]);
    }
    tnd_served_close(&s);
}

/* While others write, a long prompt comes in chunks; each of them gets a token with every step. */
static void long_prompts_do_not_stop_others(void)
{
    const struct tnd_served_options options = {.delay_ms = 1e-6};
    struct tnd_served s;
    struct srv_reply writer, reader;
    if (!tnd_served_open(&s, &options)) {
        return;
    }
    ask_text(&s, 30, &writer); /* 40 tokens */
    while (writer.job->n_generated < 3) {
        (void)tnd_srv_engine_step(s.server.engine);
    }
    ask_ids(&s, 5, 200, 300, &reader);
    for (int i = 0; i < 20; i++) { /* 8 tokens of the prompt at a time */
        const int64_t before = writer.job->n_generated;
        CU_ASSERT_TRUE(tnd_srv_engine_step(s.server.engine));
        check_int(writer.job->n_generated, before + 1);
        check_int(reader.job->n_generated, 0);
    }
    tnd_run_job(&s, reader.job);
    check_int(reader.job->n_generated, 4);
    tnd_srv_reply_free(&writer);
    tnd_srv_reply_free(&reader);
    tnd_served_close(&s);
}

static CU_TestInfo tests[] = {
    {"texts_are_those_of_a_session_of_its_own", texts_are_those_of_a_session_of_its_own},
    {"streams_are_events_that_add_up_to_the_text", streams_are_events_that_add_up_to_the_text},
    {"stop_strings_end_texts_and_are_not_told", stop_strings_end_texts_and_are_not_told},
    {"wrong_requests_get_the_right_codes", wrong_requests_get_the_right_codes},
    {"only_who_may_ask_is_answered", only_who_may_ask_is_answered},
    {"answers_in_json_mode_are_json", answers_in_json_mode_are_json},
    {"log_probabilities_are_told_with_their_tokens", log_probabilities_are_told_with_their_tokens},
    {"small_routes_answer", small_routes_answer},
    {"texts_beside_each_other_are_those_alone", texts_beside_each_other_are_those_alone},
    {"same_beginnings_are_computed_once", same_beginnings_are_computed_once},
    {"the_least_recently_used_text_gives_way", the_least_recently_used_text_gives_way},
    {"counters_are_in_the_format_of_prometheus", counters_are_in_the_format_of_prometheus},
    {"saved_texts_are_there_in_the_next_server", saved_texts_are_there_in_the_next_server},
    {"damaged_texts_leave_an_empty_cache", damaged_texts_leave_an_empty_cache},
    {"a_full_queue_refuses_and_goes_on", a_full_queue_refuses_and_goes_on},
    {"jobs_of_nobody_and_late_ones_end", jobs_of_nobody_and_late_ones_end},
    {"long_prompts_do_not_stop_others", long_prompts_do_not_stop_others},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_server_engine[];
CU_SuiteInfo suites_server_engine[] = {
    {"engine", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
