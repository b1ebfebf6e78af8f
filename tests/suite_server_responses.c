/* SPDX-License-Identifier: MIT
 * /v1/responses: requests in its form, responses whole and as events. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite_server.h"

enum { REPLY_BYTES = 1 << 18 };

static char reply_text[REPLY_BYTES];

#define ASK(served, body) tnd_ask_whole((served), "/v1/responses", (body), reply_text, REPLY_BYTES)

static const char *member_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static const char *text_of(const cJSON *response)
{
    const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItem(response, "output"), 0);
    return member_of(cJSON_GetArrayItem(cJSON_GetObjectItem(item, "content"), 0), "text");
}

static void a_response_is_that_of_the_same_chat(void)
{
    static char chat[REPLY_BYTES];
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    check_int(
        tnd_ask_whole(&s, "/v1/chat/completions",
                      "{\"messages\":[{\"role\":\"system\",\"content\":\"Be kind.\"},{\"role\":"
                      "\"user\",\"content\":\"Once\"}],\"max_tokens\":9,\"temperature\":0}",
                      chat, sizeof(chat)),
        200);
    check_int(ASK(&s, "{\"model\":\"m\",\"instructions\":\"Be kind.\",\"input\":\"Once\","
                      "\"max_output_tokens\":9,\"temperature\":0,\"store\":false}"),
              200);
    cJSON *want = cJSON_Parse(chat), *got = cJSON_Parse(reply_text);
    const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItem(want, "choices"), 0);
    check_string(text_of(got), member_of(cJSON_GetObjectItem(choice, "message"), "content"));
    check_string(member_of(got, "object"), "response");
    check_string(member_of(got, "status"), "incomplete");
    check_int(cJSON_GetObjectItem(cJSON_GetObjectItem(got, "usage"), "output_tokens")->valueint, 9);
    check_int(ASK(&s,
                  "{\"input\":[{\"role\":\"developer\",\"content\":\"Be kind.\"},{\"type\":"
                  "\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":"
                  "\"Once\"}]}],\"max_output_tokens\":9,\"temperature\":0}"),
              200);
    cJSON *items = cJSON_Parse(reply_text);
    check_string(text_of(items), text_of(got));
    check_int(ASK(&s,
                  "{\"instructions\":\"Be kind.\",\"input\":\"Once\",\"max_output_tokens\":9,"
                  "\"temperature\":0,\"background\":false,\"truncation\":\"disabled\",\"include\":"
                  "[],\"reasoning\":{\"effort\":\"low\",\"summary\":\"auto\"},\"text\":{"
                  "\"format\":{\"type\":\"text\"},\"verbosity\":\"low\"}}"),
              200);
    cJSON *full = cJSON_Parse(reply_text); /* as OpenAI's clients send it */
    check_string(text_of(full), text_of(got));
    cJSON_Delete(full);
    cJSON_Delete(items);
    cJSON_Delete(want);
    cJSON_Delete(got);
    tnd_served_close(&s);
}

/* Events in their order, numbered, with the text in pieces. */
static void events_tell_the_same_in_their_order(void)
{
    static const char *const order[] = {"response.created",           "response.in_progress",
                                        "response.output_item.added", "response.content_part.added",
                                        "response.output_text.delta", "response.output_text.done",
                                        "response.content_part.done", "response.output_item.done",
                                        "response.incomplete"};
    struct tnd_served s;
    char text[4096] = "", final[4096] = "";
    size_t at_order = 0;
    int n = 0;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    check_int(ASK(&s, "{\"input\":\"Once\",\"max_output_tokens\":20,\"temperature\":0,"
                      "\"stream\":true}"),
              200);
    for (char *at = reply_text, *end; (end = strstr(at, "\n\n")) != NULL; at = end + 2, n++) {
        *end = '\0';
        cJSON *event = cJSON_Parse(strstr(at, "data: ") + 6);
        const char *type = member_of(event, "type");
        check_int(cJSON_GetObjectItem(event, "sequence_number")->valueint, n);
        at_order += strcmp(type, order[at_order]) != 0;
        CU_ASSERT_TRUE_FATAL(at_order < sizeof(order) / sizeof(order[0]));
        check_string(type, order[at_order]);
        if (strcmp(type, "response.output_text.delta") == 0) {
            strcat(text, member_of(event, "delta"));
        }
        if (strcmp(type, "response.incomplete") == 0) {
            strcat(final, text_of(cJSON_GetObjectItem(event, "response")));
        }
        cJSON_Delete(event);
    }
    check_string(text, final);
    CU_ASSERT_TRUE(text[0] != '\0' && at_order == 8);
    tnd_served_close(&s);
}

static void functions_and_schemas_go_through(void)
{
    struct tnd_served s;
    if (!tnd_served_open(&s, &(struct tnd_served_options){.context = 512, .n_cells = 1024})) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        check_int(ASK(&s, i == 0
                              ? "{\"input\":[{\"role\":\"user\",\"content\":\"a\"},{\"type\":"
                                "\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":"
                                "\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"1\","
                                "\"output\":\"b\"}],\"max_output_tokens\":3}"
                              : "{\"input\":\"a\",\"max_output_tokens\":3,\"text\":{\"format\":{"
                                "\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{\"type\":"
                                "\"integer\"}}}}"),
                  200);
    }
    bool is_called = false; /* the small model likes blanks: some answers are cut off */
    for (int seed = 0; seed < 40 && !is_called; seed++) {
        char body[512];
        snprintf(
            body, sizeof(body),
            "{\"input\":\"a\",\"max_output_tokens\":200,\"temperature\":3,\"seed\":%d,\"stream\":"
            "%s,\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{\"type\":"
            "\"object\",\"properties\":{},\"additionalProperties\":false}}],\"tool_choice\":{"
            "\"type\":\"function\",\"name\":\"f\"}}",
            seed, seed % 2 == 0 ? "true" : "false");
        check_int(ASK(&s, body), 200);
        is_called = strstr(reply_text, "\"type\":\"function_call\"") != NULL &&
                    strstr(reply_text, "\"name\":\"f\"") != NULL;
    }
    CU_ASSERT_TRUE(is_called);
    tnd_served_close(&s);
}

static void what_responses_cannot_do_is_refused(void)
{
    static const char *const rows[][2] = {
        {"{}", "'input' must be a string or an array"},
        {"{\"input\":\"a\",\"previous_response_id\":\"resp_1\"}", "'previous_response_id' is not"},
        {"{\"input\":\"a\",\"background\":true}", "'background' is not supported"},
        {"{\"input\":[{\"type\":\"item_reference\",\"id\":\"1\"}]}", "type 'item_reference'"},
        {"{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\"}]}]}",
         "input_text"},
        {"{\"input\":[1]}", "'input' 0"},
        {"{\"input\":\"a\",\"tools\":[{\"type\":\"web_search\"}]}", "only type function"},
        {"{\"input\":\"a\",\"instructions\":1}", "'instructions' must be a string"},
        {"{\"input\":\"a\",\"truncation\":\"auto\"}", "'truncation' is not supported"},
        {"{\"input\":\"a\",\"reasoning\":\"low\"}", "'reasoning' must be an object"},
        /* the chat reads it */
        {"{\"input\":\"a\",\"reasoning\":{\"effort\":3}}", "'reasoning_effort' must be a"},
    };
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_int(ASK(&s, rows[i][0]), 400);
        check_contains(reply_text, rows[i][1]);
    }
    tnd_served_close(&s);
}

static CU_TestInfo tests[] = {
    {"a_response_is_that_of_the_same_chat", a_response_is_that_of_the_same_chat},
    {"events_tell_the_same_in_their_order", events_tell_the_same_in_their_order},
    {"functions_and_schemas_go_through", functions_and_schemas_go_through},
    {"what_responses_cannot_do_is_refused", what_responses_cannot_do_is_refused},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_server_responses[];
CU_SuiteInfo suites_server_responses[] = {
    {"responses", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
