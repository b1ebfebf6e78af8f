/* SPDX-License-Identifier: MIT
 * Conversations go through the model's chat template: messages, tools, results, further variables;
 * without a template they are refused. */
#include <cjson/cJSON.h>
#include <string.h>

#include "tests/suite_server.h"

/* The server speaks by this template from now on. */
static void set_template(struct tnd_served *s, const char *text)
{
    tandem_chat_template_free(s->chat_template);
    s->chat_template = NULL;
    struct tandem_error error = {0};
    check_status(tandem_chat_template_parse(text, strlen(text), NULL, &s->chat_template, &error),
                 TANDEM_OK, NULL, &error);
    s->server.chat_template = s->chat_template;
}

/* What a conversation becomes, without the beginning token and blanks. */
static void check_prompt(struct tnd_served *s, const char *body, const char *want)
{
    static char out[1 << 16];
    char bare[4096];
    size_t n = 0;
    check_int(tnd_ask_whole(s, "/apply-template", body, out, sizeof(out)), 200);
    cJSON *root = cJSON_Parse(out);
    const cJSON *prompt = cJSON_GetObjectItemCaseSensitive(root, "prompt");
    const char *text = cJSON_IsString(prompt) ? prompt->valuestring : "";
    const char *begin = strstr(text, "(");
    for (const char *at = begin != NULL ? begin : text; *at != '\0' && n + 1 < sizeof(bare); at++) {
        if (*at != ' ') {
            bare[n++] = *at;
        }
    }
    bare[n] = '\0';
    check_string(bare, want);
    cJSON_Delete(root);
}

static void messages_tools_and_variables_reach_the_template(void)
{
    struct tnd_served s;
    if (!tnd_served_open(&s, &(struct tnd_served_options){0})) {
        return;
    }
    set_template(&s, "({% for m in messages %}{{ m.role[0] }}={{ m.content }};"
                     "{% for c in m.tool_calls or [] %}{{ c.function.name }}"
                     "[{{ c.function.arguments.a + 1 }}];{% endfor %}{% endfor %})"
                     "{% if tools %}{{ tools[0].function.name }}{% endif %}"
                     "{% if think is defined %}{{ think }}{% endif %}"
                     "{% if add_generation_prompt %}>{% endif %}");
    check_prompt(&s, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", "(u=a;)>");
    check_prompt(&s,
                 "{\"messages\":[{\"role\":\"developer\",\"content\":\"d\"},{\"role\":\"user\","
                 "\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":"
                 "\"b\"}]}]}",
                 "(s=d;u=ab;)>");
    check_prompt(&s,
                 "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
                 "\"content\":null,\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\","
                 "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]},"
                 "{\"role\":\"tool\",\"content\":\"r\"}],\"tools\":[{\"type\":\"function\","
                 "\"function\":{\"name\":\"f\"}}]}",
                 "(u=a;a=None;f[2];t=r;)f>");
    check_prompt(&s,
                 "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
                 "\"chat_template_kwargs\":{\"think\":\"on\",\"messages\":[]}}",
                 "(u=a;)on>");
    /* an assistant's message at the end is continued */
    check_prompt(&s,
                 "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
                 "\"content\":\"so\"}]}",
                 "(u=a;)>so");
    tnd_served_close(&s);
}

static void conversations_that_a_template_refuses_are_wrong_requests(void)
{
    static const char body[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}";
    char out[4096];
    struct tnd_served s;
    if (!tnd_served_open(&s, &(struct tnd_served_options){0})) {
        return;
    }
    set_template(&s, "{{ raise_exception('a system comes first') }}");
    check_int(tnd_ask_whole(&s, "/v1/chat/completions", body, out, sizeof(out)), 400);
    check_contains(out, "a system comes first");
    check_int(tnd_ask_whole(&s, "/v1/chat/completions",
                            "{\"messages\":[{\"role\":\"nobody\",\"content\":\"a\"}]}", out,
                            sizeof(out)),
              400);
    check_contains(out, "message 0 is of 'nobody'");
    s.server.chat_template = NULL;
    check_int(tnd_ask_whole(&s, "/v1/chat/completions", body, out, sizeof(out)), 400);
    check_contains(out, "the model has no chat template");
    check_int(
        tnd_ask_whole(&s, "/completion", "{\"prompt\":\"a\",\"n_predict\":1}", out, sizeof(out)),
        200);
    tnd_served_close(&s);
}

static void a_prompt_that_ends_within_reasoning_begins_with_reasoning(void)
{
    static char out[1 << 16];
    struct tnd_served s;
    if (!tnd_served_open(&s, &(struct tnd_served_options){0})) {
        return;
    }
    set_template(&s, "{{ messages[0].content }}<think>\n");
    check_int(tnd_ask_whole(&s, "/v1/chat/completions",
                            "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
                            "\"max_tokens\":3,\"temperature\":0}",
                            out, sizeof(out)),
              200);
    check_contains(out, "\"reasoning_content\"");
    tnd_served_close(&s);
}

static CU_TestInfo tests[] = {
    {"messages_tools_and_variables_reach_the_template",
     messages_tools_and_variables_reach_the_template},
    {"conversations_that_a_template_refuses_are_wrong_requests",
     conversations_that_a_template_refuses_are_wrong_requests},
    {"a_prompt_that_ends_within_reasoning_begins_with_reasoning",
     a_prompt_that_ends_within_reasoning_begins_with_reasoning},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_server_template[];
CU_SuiteInfo suites_server_template[] = {
    {"template", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
