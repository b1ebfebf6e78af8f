/* SPDX-License-Identifier: MIT
 * Answers taken apart: reasoning, content and calls of functions in the formats of templates, whole
 * and byte by byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite_server.h"
#include "tools/tandem-server/srv_calls.h"
#include "tools/tandem-server/srv_scan.h"

#define TOOL        "<\xef\xbd\x9ctool\xe2\x96\x81"
#define BLANK       "\xe2\x96\x81"
#define BAR         "\xef\xbd\x9c>"
#define D_CALLS     TOOL "calls" BLANK "begin" BAR
#define D_CALLS_END TOOL "calls" BLANK "end" BAR
#define D_CALL      TOOL "call" BLANK "begin" BAR
#define D_CALL_END  TOOL "call" BLANK "end" BAR
#define D_SEP       TOOL "sep" BAR

static const char tools_text[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"s\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"}}}}}]";

/* Pieces with '+' between them. */
static int add_spans(const struct srv_spans *spans, const char *text, char *out, size_t capacity)
{
    int at = 0;
    for (int i = 0; i < spans->n; i++) {
        const struct srv_span *span = &spans->items[i];
        at += snprintf(out + at, capacity - (size_t)at, "%s%.*s", i > 0 ? "+" : "",
                       (int)(span->end - span->begin), text + span->begin);
    }
    return at;
}

/* "reasoning#content|NAME:ID ARGUMENTS|.." */
static void describe(const struct srv_answer *a, const char *text, char *out, size_t capacity)
{
    out[0] = '\0';
    int at = add_spans(&a->reasoning, text, out, capacity);
    at += snprintf(out + at, capacity - (size_t)at, "#");
    at += add_spans(&a->content, text, out + at, capacity - (size_t)at);
    for (int i = 0; i < a->n_calls; i++) {
        at += snprintf(out + at, capacity - (size_t)at, "|%s:%s %s", a->calls[i].name,
                       a->calls[i].id, a->calls[i].arguments.bytes);
    }
}

struct example {
    enum srv_call_format format;
    const char *text, *want;
};

static const struct example examples[] = {
    {SRV_CALLS_HERMES, "Hello there. ", "#Hello there. "},
    {SRV_CALLS_HERMES,
     "Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"}\"}}\n"
     "</tool_call>",
     "#Let me see.|f: {\"s\": \"}\"}"},
    {SRV_CALLS_HERMES,
     "<tool_call>{\"name\":\"f\",\"arguments\":{\"n\":12345678901234567890}}"
     "</tool_call>\n<tool_call>{\"name\":\"g\"}",
     "#|f: {\"n\":12345678901234567890}|g: {}"},
    {SRV_CALLS_HERMES,
     "<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}</tool_call> bye",
     "# bye|f: {\"a\":1}"},
    {SRV_CALLS_HERMES, "a <tool_call> that is none", "#a <tool_call> that is none"},
    {SRV_CALLS_HERMES, "<tool_call>{\"name\":\"f\",\"argu", "#<tool_call>{\"name\":\"f\",\"argu"},
    {SRV_CALLS_HERMES, "<think>\nadd it\n</think>\n\nfour", "add it#four"},
    {SRV_CALLS_HERMES, "<think>for ever", "for ever#"},
    {SRV_CALLS_HERMES,
     "<think>a <tool_call>x</tool_call></think><tool_call>{\"name\":\"f\"}</tool_call>",
     "a <tool_call>x</tool_call>#|f: {}"},
    {SRV_CALLS_TAGS,
     "Well\n<tool_call>\n<function=f>\n<parameter=s>\n12\n</parameter>\n<parameter=n>\n3\n"
     "</parameter>\n<parameter=x>\na \"b\"\nc\n</parameter>\n</function>\n</tool_call>",
     "#Well|f: {\"s\":\"12\",\"n\":3,\"x\":\"a \\\"b\\\"\\nc\"}"},
    {SRV_CALLS_TAGS, "<function=g></function>", "#|g: {}"},
    {SRV_CALLS_LLAMA3, "{\"name\": \"f\", \"parameters\": {\"n\": 1}}", "#|f: {\"n\": 1}"},
    {SRV_CALLS_LLAMA3,
     "<|python_tag|>{\"name\":\"f\",\"parameters\":{}};{\"name\":\"f\",\"parameters\":{\"n\":2}}",
     "#|f: {}|f: {\"n\":2}"},
    {SRV_CALLS_LLAMA3, "{\"name\": \"Bob\", \"parameters\": {}}",
     "#{\"name\": \"Bob\", \"parameters\": {}}"},
    {SRV_CALLS_LLAMA3, "so {\"name\": \"f\"}", "#so {\"name\": \"f\"}"},
    {SRV_CALLS_MISTRAL,
     "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"s\": \"a\"}, \"id\": \"abcdefghi\"}, "
     "{\"name\":\"g\",\"arguments\":{}}]",
     "#|f:abcdefghi {\"s\": \"a\"}|g: {}"},
    {SRV_CALLS_MISTRAL, "Yes.[TOOL_CALLS]f[ARGS]{\"n\":1}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{}",
     "#Yes.|f: {\"n\":1}|g:123456789 {}"},
    {SRV_CALLS_MISTRAL, "[TOOL_CALLS][1]", "#[TOOL_CALLS][1]"},
    {SRV_CALLS_DEEPSEEK,
     "I ask." D_CALLS D_CALL "function" D_SEP "f\n```json\n{\"s\":\"a\"}\n```" D_CALL_END
     "\n" D_CALL "function" D_SEP "g\n```json\n{}\n```" D_CALL_END D_CALLS_END,
     "#I ask.|f: {\"s\":\"a\"}|g: {}"},
    {SRV_CALLS_DEEPSEEK, D_CALLS D_CALL "f" D_SEP "{\"n\":1}" D_CALL_END D_CALLS_END,
     "#|f: {\"n\":1}"},
    {SRV_CALLS_FUNCTIONARY, "<function=f>{\"n\": 4}</function>", "#|f: {\"n\": 4}"},
    {SRV_CALLS_GENERIC,
     "{\"tool_calls\":[{\"name\":\"f\",\"arguments\":{\"n\":1}},"
     "{\"function\":{\"name\":\"f\",\"arguments\":{}}}]}",
     "#|f: {\"n\":1}|f: {}"},
    {SRV_CALLS_GENERIC, " {\"name\":\"f\",\"arguments\":{\"n\":1}}", "#|f: {\"n\":1}"},
    {SRV_CALLS_HERMES,
     "a <tool_call>{\"name\":\"f\"}</tool_call> b <tool_call>[{\"name\":\"g\"}] c",
     "#a+ b+c|f: {}|g: {}"},
    {SRV_CALLS_GLM, "<tool_call>f<arg_key>s</arg_key><arg_value>1",
     "#<tool_call>f<arg_key>s</arg_key><arg_value>1"},
    {SRV_CALLS_GLM, "<tool_call>f\n{}</tool_call>", "#<tool_call>f\n{}</tool_call>"},
    {SRV_CALLS_GLM4, "f\nis a function", "#f\nis a function"},
    {SRV_CALLS_GLM4, "g\n{}", "#g\n{}"},
    {SRV_CALLS_GLM4, "f\n{\"n\": 1", "#f\n{\"n\": 1"},
    {SRV_CALLS_GRANITE, "functools are", "#functools are"},
    {SRV_CALLS_GRANITE, "<|tool_call|>[{\"name\":\"f\"},]", "#<|tool_call|>[{\"name\":\"f\"},]"},
    {SRV_CALLS_COMMAND, "Action: none", "#Action: none"},
    {SRV_CALLS_COMMAND, "Action: ```json\n[{\"tool_name\":\"f\",\"parameters\":{}}]\n```",
     "#|f: {}"},
    {SRV_CALLS_HUNYUAN, "<tool_calls>[{\"name\":\"f\"}]</tool_calls>", "#|f: {}"},
    {SRV_CALLS_HUNYUAN, "<tool_calls><tool_call>f\n{}", "#<tool_calls><tool_call>f\n{}"},
    {SRV_CALLS_KIMI, "<|tool_calls_section_begin|><|tool_call_begin|>f",
     "#<|tool_calls_section_begin|><|tool_call_begin|>f"},
    {SRV_CALLS_HARMONY, "plain", "#plain"},
    {SRV_CALLS_HARMONY, "<|channel|>final<|message|>Hi", "#Hi"},
    {SRV_CALLS_HARMONY, "<|channel|>analysis<|message|>hm", "hm#"},
    {SRV_CALLS_HARMONY, "<|channel|>ana", "#"},
    {SRV_CALLS_HARMONY,
     "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>"
     "Wait.<|end|><|start|>assistant<|channel|>analysis<|message|>b<|start|>assistant<|channel|>"
     "final<|message|>c<|return|>",
     "a+b#Wait.+c"},
    {SRV_CALLS_HARMONY, " to=functions.f<|channel|>commentary json<|message|> {\"n\":1} <|call|>",
     "#|f: {\"n\":1}"},
    {SRV_CALLS_HARMONY,
     "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"n\":<|call|>",
     "#{\"n\":"},
    {SRV_CALLS_HARMONY, "<|channel|>commentary to=functions.f<|message|>{\"n\":1}x",
     "#x|f: {\"n\":1}"},
    {SRV_CALLS_HARMONY, "<|channel|>analysis to=python<|message|>1+1<|call|>", "1+1#"},
    {SRV_CALLS_HARMONY, "a <|end|> b", "#a+ b"},
    {SRV_CALLS_HERMES, "<answer>x</answer>", "#<answer>x</answer>"},
    {SRV_CALLS_HERMES, "a [THINK]b[/THINK]", "#a [THINK]b[/THINK]"},
    {SRV_CALLS_GENERIC, "{\"answer\": 42}", "#{\"answer\": 42}"},
};
/* Answers where the template has marks around them. */
static const struct {
    const char *of_template;
    struct example example;
} framed[] = {
    {"<response>",
     {SRV_CALLS_HERMES, "<response>\nhi <answer> \n</response>\n there", "#hi <answer>+there"}},
    {"<response>", {SRV_CALLS_HERMES, "<response>hi", "#hi"}},
    {"<response>", {SRV_CALLS_HERMES, "hi</response>", "#hi</response>"}},
    {"<response>", {SRV_CALLS_HERMES, "<answer>x</answer>", "#<answer>x</answer>"}},
    {"<answer>",
     {SRV_CALLS_HUNYUAN, "<answer>a <tool_calls> b </answer>", "#a+ <tool_calls> b </answer>"}},
    {"<answer>",
     {SRV_CALLS_HUNYUAN, "<answer><tool_calls>[{\"name\":\"f\"}]</tool_calls>\n</answer>c",
      "#c|f: {}"}},
};
enum { N_FRAMED = sizeof(framed) / sizeof(framed[0]) };

enum { N_EXAMPLES = sizeof(examples) / sizeof(examples[0]) };

static struct srv_answer_options options_of(const struct example *example, const char *of_template,
                                            const cJSON *tools)
{
    return (struct srv_answer_options){.has_calls = true,
                                       .format = example->format,
                                       .tools = tools,
                                       .takes_reasoning = true,
                                       .frame = tnd_srv_frame_of(of_template)};
}

static void check_whole(const struct example *example, const char *of_template, const cJSON *tools)
{
    const struct srv_answer_options options = options_of(example, of_template, tools);
    struct srv_answer answer;
    char got[1024];
    tnd_srv_answer_read(&options, example->text, strlen(example->text), true, &answer);
    describe(&answer, example->text, got, sizeof(got));
    check_string(got, example->want);
    tnd_srv_answer_free(&answer);
}

/* What a reader is told of a text that grows by `step` bytes, and where it was. */
struct told {
    char reasoning[512], content[512], calls[512];
    size_t n_reasoning, n_content, n_decided;
    bool in_frame;
    int n_calls;
};

static void tell_spans(const struct srv_spans *spans, const char *text, size_t *io_told, char *out)
{
    for (int i = 0; i < spans->n; i++) {
        const struct srv_span *span = &spans->items[i];
        const size_t begin = *io_told > span->begin ? *io_told : span->begin;
        if (span->end > begin) {
            strncat(out, text + begin, span->end - begin);
            *io_told = span->end;
        }
    }
}

static void tell(const struct example *example, const char *of_template, const cJSON *tools,
                 size_t n, bool is_final, struct told *told)
{
    struct srv_answer_options options = options_of(example, of_template, tools);
    struct srv_answer answer;
    options.n_decided = told->n_decided;
    options.in_frame = told->in_frame;
    tnd_srv_answer_read(&options, example->text, n, is_final, &answer);
    tell_spans(&answer.reasoning, example->text, &told->n_reasoning, told->reasoning);
    tell_spans(&answer.content, example->text, &told->n_content, told->content);
    for (; told->n_calls < answer.n_calls; told->n_calls++) {
        const struct srv_call *call = &answer.calls[told->n_calls];
        strcat(strcat(told->calls, call->name), call->arguments.bytes);
    }
    told->n_decided = answer.n_decided;
    told->in_frame = answer.in_frame;
    tnd_srv_answer_free(&answer);
}

/* However a text comes, the same is told of it. */
static void check_pieces(const struct example *example, const char *of_template, const cJSON *tools)
{
    const size_t n = strlen(example->text);
    struct told whole = {.n_calls = 0};
    tell(example, of_template, tools, n, true, &whole);
    for (size_t step = 1; step < n; step++) {
        struct told told = {.n_calls = 0};
        for (size_t k = 0; k < n; k += step) {
            tell(example, of_template, tools, k, false, &told);
        }
        tell(example, of_template, tools, n, true, &told);
        check_string(told.reasoning, whole.reasoning);
        check_string(told.content, whole.content);
        check_string(told.calls, whole.calls);
    }
}

static void calls_are_read_in_the_formats_of_templates(void)
{
    cJSON *tools = cJSON_Parse(tools_text);
    for (int i = 0; i < N_EXAMPLES; i++) {
        check_whole(&examples[i], NULL, tools);
        check_pieces(&examples[i], NULL, tools);
    }
    for (int i = 0; i < N_FRAMED; i++) {
        check_whole(&framed[i].example, framed[i].of_template, tools);
        check_pieces(&framed[i].example, framed[i].of_template, tools);
    }
    cJSON_Delete(tools);
}

/* ---- families ---- */

/* What models of each family write, and the sign of their templates. */
static const struct {
    const char *name, *sign, *frame, *reasoning, *calls;
    struct example example;
} families[] = {
#define X(name, format, sign, frame, reasoning, calls, text, want)                                 \
    {name, sign, frame, reasoning, calls, {format, text, want}},
#include "tests/server-families-list.h"
#undef X
};
enum { N_FAMILIES = sizeof(families) / sizeof(families[0]) };

static void each_family_has_its_reasoning_and_calls_read(void)
{
    cJSON *tools = cJSON_Parse(tools_text);
    for (int i = 0; i < N_FAMILIES; i++) {
        check_int(tnd_srv_call_format_of(families[i].sign), families[i].example.format);
        check_whole(&families[i].example, families[i].frame, tools);
        check_pieces(&families[i].example, families[i].frame, tools);
    }
    cJSON_Delete(tools);
}

/* The table of docs/server.md is made of the families; TANDEM_TEST_UPDATE=1 writes it anew. */
static void the_table_of_families_in_the_docs_is_that_of_the_test(void)
{
    static const char path[] = "docs/server.md";
    static const char head[] =
        "| family | `--tool-format` | reasoning | around the answer | calls |\n"
        "|---|---|---|---|---|\n";
    const char *update = getenv("TANDEM_TEST_UPDATE");
    struct srv_text table = {0};
    char *page = tnd_test_read_file(path, NULL);
    char *begin = page != NULL ? strstr(page, head) : NULL;
    char *end = begin != NULL ? strstr(begin, "\n\n") : NULL;
    tnd_srv_add(&table, head, sizeof(head) - 1);
    for (int i = 0; i < N_FAMILIES; i++) {
        tnd_srv_print(&table, "| %s | `%s` | %s | ", families[i].name,
                      tnd_srv_call_format_name(families[i].example.format), families[i].reasoning);
        for (const char *at = families[i].frame; at != NULL && *at != '\0'; at++) {
            tnd_srv_print(&table, "%s%s%c%s", at == families[i].frame ? "`" : "",
                          *at == '|' ? "\\" : "", *at, at[1] == '\0' ? "`" : "");
        }
        tnd_srv_print(&table, " | %s |\n", families[i].calls);
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    if (update != NULL && strcmp(update, "1") == 0) {
        struct srv_text whole = {0};
        tnd_srv_add(&whole, page, (size_t)(begin - page));
        tnd_srv_add(&whole, table.bytes, table.n);
        tnd_srv_add(&whole, end + 1, strlen(end + 1));
        CU_ASSERT_TRUE(tnd_test_write_file(path, whole.bytes, whole.n));
        tnd_srv_text_free(&whole);
    } else {
        end[1] = '\0';
        check_string(begin, table.bytes);
    }
    tnd_srv_text_free(&table);
    free(page);
}

static void formats_are_known_by_their_templates(void)
{
    static const struct {
        const char *text;
        enum srv_call_format want;
    } rows[] = {
        {"{{ '<tool_call>' }}", SRV_CALLS_HERMES},
        {"<tool_call>\n<function=a>\n<parameter=b>", SRV_CALLS_TAGS},
        {"{{ '[TOOL_CALLS] [' }}", SRV_CALLS_MISTRAL},
        {"<|python_tag|> \"parameters\"", SRV_CALLS_LLAMA3},
        {"<function=example_function_name> <|python_tag|>", SRV_CALLS_FUNCTIONARY},
        {"{{ '" D_CALLS "' }} <|python_tag|>", SRV_CALLS_DEEPSEEK},
        {"{{ messages }}", SRV_CALLS_GENERIC},
        {NULL, SRV_CALLS_GENERIC},
    };
    enum srv_call_format format = SRV_CALLS_HERMES;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_int(tnd_srv_call_format_of(rows[i].text), rows[i].want);
    }
    for (int i = 0; i < SRV_N_CALL_FORMATS; i++) {
        CU_ASSERT_TRUE(tnd_srv_call_format_from_name(
            tnd_srv_call_format_name((enum srv_call_format)i), &format));
        check_int(format, i);
    }
    CU_ASSERT_FALSE(tnd_srv_call_format_from_name("odd", &format));
}

static void published_templates_show_their_formats(void)
{
    static const struct {
        const char *file;
        enum srv_call_format want;
        bool has_frame;
    } rows[] = {
        {"Qwen-Qwen2.5-7B-Instruct", SRV_CALLS_HERMES, false},
        {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", SRV_CALLS_HERMES, false},
        {"Qwen3-Coder", SRV_CALLS_TAGS, false},
        {"GLM-4.7-Flash", SRV_CALLS_GLM, false},
        {"moonshotai-Kimi-K2", SRV_CALLS_KIMI, false},
        {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", SRV_CALLS_DEEPSEEK, false},
        {"deepseek-ai-DeepSeek-V3.1", SRV_CALLS_DEEPSEEK, false},
        {"mistralai-Ministral-3-14B-Reasoning-2512", SRV_CALLS_MISTRAL, false},
        {"meta-llama-Llama-3.3-70B-Instruct", SRV_CALLS_LLAMA3, false},
        {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", SRV_CALLS_COMMAND, true},
        {"meetkai-functionary-medium-v3.1", SRV_CALLS_FUNCTIONARY, false},
        {"Kimi-K2-Thinking", SRV_CALLS_KIMI, false},
        {"llama-cpp-deepseek-r1", SRV_CALLS_DEEPSEEK, false},
        {"meta-llama-Llama-3.1-8B-Instruct", SRV_CALLS_LLAMA3, false},
        {"unsloth-mistral-Devstral-Small-2507", SRV_CALLS_MISTRAL, false},
        {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", SRV_CALLS_TAGS, false},
        {"stepfun-ai-Step-3.5-Flash", SRV_CALLS_TAGS, false},
        {"Bielik-11B-v3.0-Instruct", SRV_CALLS_HERMES, false},
        {"Reka-Edge", SRV_CALLS_HERMES, false},
        {"Apertus-8B-Instruct", SRV_CALLS_GENERIC, false},
        {"Cohere2MoE", SRV_CALLS_COMMAND, false},
        {"GigaChat3-10B-A1.8B", SRV_CALLS_GENERIC, false},
        {"LFM2.5-Instruct", SRV_CALLS_GENERIC, false},
        {"MiroThinker", SRV_CALLS_HERMES, false},
        {"deepseek-ai-DeepSeek-V4", SRV_CALLS_GENERIC, false},
        {"google-gemma-4-31B-it", SRV_CALLS_GENERIC, false},
        {"google-gemma-2-2b-it", SRV_CALLS_GENERIC, false},
        {"HuggingFaceTB-SmolLM3-3B", SRV_CALLS_GENERIC, false}, /* (an edition without tools) */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[128];
        snprintf(name, sizeof(name), "templates/%s.jinja", rows[i].file);
        const char *path = tnd_test_data(name);
        if (path == NULL) {
            return;
        }
        char *text = tnd_test_read_file(path, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(text);
        check_int(tnd_srv_call_format_of(text), rows[i].want);
        CU_ASSERT_EQUAL(tnd_srv_frame_of(text) != NULL, rows[i].has_frame);
        free(text);
    }
}

/* A model, or who steers it, may write marks without end. */
static void marks_without_end_take_little_time(void)
{
    enum { N = 200000 };
    static char text[N + 1];
    static const char *const marks[] = {"<tool_call>",
                                        "<tool_call>{\"a\":[",
                                        "[TOOL_CALLS]",
                                        D_CALLS D_CALL D_SEP,
                                        "<function=",
                                        "{{{{",
                                        "<tool_call>f<arg_key>",
                                        "<|tool_call|>[",
                                        "<tool_calls><tool_call>",
                                        "<|channel|>",
                                        "<|channel|>commentary to=functions.f<|message|>{",
                                        "<|channel|>final<|message|>a<|end|>",
                                        "<|"};
    for (int format = 0; format < SRV_N_CALL_FORMATS; format++) {
        const struct srv_answer_options options = {.has_calls = true,
                                                   .format = (enum srv_call_format)format};
        for (size_t m = 0; m < sizeof(marks) / sizeof(marks[0]); m++) {
            struct srv_answer answer;
            const size_t length = strlen(marks[m]);
            for (size_t at = 0; at < N; at++) {
                text[at] = marks[m][at % length];
            }
            tnd_srv_answer_read(&options, text, N, true, &answer);
            CU_ASSERT_TRUE(answer.n_calls <= SRV_MAX_CALLS);
            tnd_srv_answer_free(&answer);
        }
    }
}

/* ---- replies ---- */

/* A chat's job with a text that the test writes, some bytes at a time. */
static struct srv_job *job_new(const char *body_text, enum srv_call_format format, bool is_stream)
{
    struct srv_params params = {
        .style = SRV_CHAT, .is_stream = is_stream, .max_tokens = 100, .takes_reasoning = true};
    const struct srv_ids ids = {.ids = calloc(1, sizeof(int32_t)), .n = 1};
    struct srv_body body;
    CU_ASSERT_TRUE(tnd_srv_body_read(&body, body_text, strlen(body_text)));
    CU_ASSERT_TRUE(tnd_srv_tools_read(&body, format, &params.tools));
    tnd_srv_body_free(&body);
    return tnd_srv_job_new(&params, &ids);
}

static void job_write(struct srv_job *job, const char *text, size_t n)
{
    const struct srv_token token = {.id = 1};
    CU_ASSERT_TRUE(tnd_srv_job_add(job, &token, text, n));
    (void)tnd_srv_job_stops(job);
}

static const char *member_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static const char request[] = "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}";
static const char two_calls[] = "<think>hm</think>Wait.\n<tool_call>{\"name\":\"f\","
                                "\"arguments\":{\"a\":1}}</tool_call><tool_call>"
                                "{\"name\":\"f\",\"arguments\":{}}</tool_call>";

static void a_whole_reply_has_calls_beside_its_content(void)
{
    const struct srv_server server = {.model_name = "m"};
    struct srv_job *job = job_new(request, SRV_CALLS_HERMES, false);
    struct srv_reply reply = {0};
    job_write(job, two_calls, strlen(two_calls));
    tnd_srv_job_finish(job, SRV_ENDED, NULL);
    CU_ASSERT_TRUE(tnd_srv_read_whole(&server, job, &reply));
    cJSON *root = cJSON_Parse(reply.body.bytes);
    const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "choices"), 0);
    const cJSON *message = cJSON_GetObjectItem(choice, "message");
    const cJSON *calls = cJSON_GetObjectItem(message, "tool_calls");
    check_string(member_of(choice, "finish_reason"), "tool_calls");
    check_string(member_of(message, "content"), "Wait.");
    check_string(member_of(message, "reasoning_content"), "hm");
    CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(calls), 2);
    const cJSON *first = cJSON_GetArrayItem(calls, 0), *second = cJSON_GetArrayItem(calls, 1);
    check_string(member_of(cJSON_GetObjectItem(first, "function"), "arguments"), "{\"a\":1}");
    CU_ASSERT_STRING_NOT_EQUAL(member_of(first, "id"), member_of(second, "id"));
    cJSON_Delete(root);
    tnd_srv_reply_free(&reply);
    tnd_srv_job_unref(job);
}

/* Takes an event's deltas together. */
static void take_delta(const cJSON *event, char *content, char *reasoning, char *arguments,
                       char *reason)
{
    const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItem(event, "choices"), 0);
    const cJSON *delta = cJSON_GetObjectItem(choice, "delta");
    const cJSON *call = NULL;
    strcat(content, member_of(delta, "content") != NULL ? member_of(delta, "content") : "");
    strcat(reasoning,
           member_of(delta, "reasoning_content") ? member_of(delta, "reasoning_content") : "");
    cJSON_ArrayForEach(call, cJSON_GetObjectItem(delta, "tool_calls"))
    {
        strcat(arguments, member_of(cJSON_GetObjectItem(call, "function"), "arguments"));
    }
    if (member_of(choice, "finish_reason") != NULL) {
        strcat(reason, member_of(choice, "finish_reason"));
    }
}

static void a_stream_of_any_pieces_tells_the_same(void)
{
    const struct srv_server server = {.model_name = "m"};
    for (size_t step = 1; step <= sizeof(two_calls); step += step < 20 ? 1 : 13) {
        struct srv_job *job = job_new(request, SRV_CALLS_HERMES, true);
        struct srv_reader reader = {0};
        struct srv_text out = {0};
        char content[256] = "", reasoning[256] = "", arguments[256] = "", reason[64] = "";
        for (size_t at = 0; at < strlen(two_calls); at += step) {
            const size_t left = strlen(two_calls) - at;
            job_write(job, two_calls + at, left < step ? left : step);
            CU_ASSERT_FALSE(tnd_srv_read_stream(&server, job, &reader, &out));
        }
        tnd_srv_job_finish(job, SRV_ENDED, NULL);
        CU_ASSERT_TRUE(tnd_srv_read_stream(&server, job, &reader, &out));
        for (char *at = out.bytes, *end; (end = strstr(at, "\n\n")) != NULL; at = end + 2) {
            *end = '\0';
            cJSON *event = cJSON_Parse(at + strlen("data: "));
            take_delta(event, content, reasoning, arguments, reason);
            cJSON_Delete(event);
        }
        check_string(content, "Wait.");
        check_string(reasoning, "hm");
        check_string(arguments, "{\"a\":1}{}");
        check_string(reason, "tool_calls");
        tnd_srv_text_free(&out);
        tnd_srv_job_unref(job);
    }
}

/* What has gathered for a slow reader comes in several readings, and is the same. */
static void a_slow_reader_is_told_a_part_at_a_time(void)
{
    static struct srv_vocabulary vocabulary;
    const struct srv_server server = {.model_name = "m", .vocabulary = &vocabulary};
    struct srv_job *job = job_new("{}", SRV_CALLS_HERMES, true);
    struct srv_reader reader = {0};
    size_t n_readings = 0;
    job->params.wants_logprobs = true;
    for (int i = 0; i < 1000; i++) {
        job_write(job, "ab", 2);
    }
    tnd_srv_job_finish(job, SRV_ENDED, NULL);
    for (bool is_last = false; !is_last && n_readings < 100; n_readings++) {
        struct srv_text out = {0};
        is_last = tnd_srv_read_stream(&server, job, &reader, &out);
        CU_ASSERT_TRUE(out.n < 16384);
        tnd_srv_text_free(&out);
    }
    CU_ASSERT_TRUE(reader.has_ended);
    check_int((int64_t)n_readings, 16);
    check_int((int64_t)reader.n_content, 2000);
    tnd_srv_job_unref(job);
}

static void one_call_at_a_time_is_honoured(void)
{
    const struct srv_server server = {.model_name = "m"};
    struct srv_job *job =
        job_new("{\"parallel_tool_calls\":false,\"tools\":[{\"type\":\"function\","
                "\"function\":{\"name\":\"f\"}}]}",
                SRV_CALLS_HERMES, false);
    struct srv_reply reply = {0};
    job_write(job, two_calls, strlen(two_calls));
    tnd_srv_job_finish(job, SRV_ENDED, NULL);
    CU_ASSERT_TRUE(tnd_srv_read_whole(&server, job, &reply));
    CU_ASSERT_PTR_NULL(strstr(reply.body.bytes, "\"arguments\":\"{}\""));
    tnd_srv_reply_free(&reply);
    tnd_srv_job_unref(job);
}

/* ---- requests ---- */

#define ADD                                                                                        \
    "{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{\"type\":\"object\","   \
    "\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"$ref\":\"#/$defs/B\"}},\"required\":["  \
    "\"a\",\"b\"],\"additionalProperties\":false,\"$defs\":{\"B\":{\"type\":\"boolean\"}}}}}"
#define STOP "{\"type\":\"function\",\"function\":{\"name\":\"stop\"}}"

/* A model of random manners, hot, calls what it must, in each format. */
static void a_required_function_is_called(void)
{
    static const char *const choices[][2] = {
        {"\"required\"", NULL},
        {"{\"type\":\"function\",\"function\":{\"name\":\"add\"}}", "add"},
        {"{\"type\":\"function\",\"function\":{\"name\":\"stop\"}}", "stop"}};
    static char out[1 << 16];
    struct tnd_served s;
    if (!tnd_served_open(&s, &(struct tnd_served_options){.context = 1024, .n_cells = 2048})) {
        return;
    }
    for (int i = 0; i < 3 * SRV_N_CALL_FORMATS; i++) {
        char body[2048];
        s.server.call_format = (enum srv_call_format)(i / 3);
        snprintf(body, sizeof(body),
                 "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"temperature\":1.5,"
                 "\"seed\":%d,\"max_tokens\":300,\"tools\":[" ADD "," STOP "],\"tool_choice\":%s}",
                 i, choices[i % 3][0]);
        check_int(tnd_ask_whole(&s, "/v1/chat/completions", body, out, sizeof(out)), 200);
        cJSON *root = cJSON_Parse(out);
        const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "choices"), 0);
        const cJSON *call = cJSON_GetArrayItem(
            cJSON_GetObjectItem(cJSON_GetObjectItem(choice, "message"), "tool_calls"), 0);
        const cJSON *function = cJSON_GetObjectItem(call, "function");
        const bool is_cut = strcmp(member_of(choice, "finish_reason"), "length") == 0;
        CU_ASSERT_TRUE(is_cut || function != NULL);
        if (function != NULL) {
            cJSON *arguments = cJSON_Parse(member_of(function, "arguments"));
            const bool is_add = strcmp(member_of(function, "name"), "add") == 0;
            CU_ASSERT_TRUE(choices[i % 3][1] == NULL || is_add == (choices[i % 3][1][0] == 'a'));
            CU_ASSERT_TRUE(!is_add || (cJSON_IsNumber(cJSON_GetObjectItem(arguments, "a")) &&
                                       cJSON_IsBool(cJSON_GetObjectItem(arguments, "b"))));
            check_string(member_of(choice, "finish_reason"), "tool_calls");
            cJSON_Delete(arguments);
        }
        cJSON_Delete(root);
    }
    tnd_served_close(&s);
}

static void tools_that_are_none_are_refused(void)
{
    static const char *const rows[][2] = {
        {"{\"tools\":1}", "'tools' must be an array"},
        {"{\"tools\":[{}]}", "only type function"},
        {"{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"a b\"}}]}", "function.name"},
        {"{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"a\",\"parameters\":1}}]}",
         "must be an object"},
        {"{\"tool_choice\":\"required\"}", "there are no 'tools'"},
        {"{\"tool_choice\":\"odd\"}", "'tool_choice' must be"},
        {"{\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"g\"}}}",
         "there is no function 'g'"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct srv_body body;
        struct srv_tools tools;
        CU_ASSERT_TRUE(tnd_srv_body_read(&body, rows[i][0], strlen(rows[i][0])));
        CU_ASSERT_FALSE(tnd_srv_tools_read(&body, SRV_CALLS_HERMES, &tools));
        check_contains(body.fault, rows[i][1]);
        tnd_srv_tools_free(&tools);
        tnd_srv_body_free(&body);
    }
}

/* A conversation with calls and results goes through a template that knows none of them. */
static void calls_and_results_stand_in_the_prompt(void)
{
    static const char body[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Weather?\"},"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"1\",\"type\":"
        "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"sun\"},"
        "{\"role\":\"tool\",\"tool_call_id\":\"2\",\"content\":\"rain\"}],"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}";
    static char out[8192];
    struct tnd_served s;
    if (!tnd_served_open(&s, NULL)) {
        return;
    }
    s.server.call_format = SRV_CALLS_HERMES;
    check_int(tnd_ask_whole(&s, "/apply-template", body, out, sizeof(out)), 200);
    check_contains(out, "\\\"name\\\":\\\"f\\\"");
    check_contains(out,
                   "<tool_call>\\n{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {\\\"a\\\":1}}");
    check_contains(out, "<tool_response>\\nsun\\n</tool_response>\\n<tool_response>\\nrain");
    check_int(tnd_ask_whole(&s, "/apply-template",
                            "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{}]}]}", out,
                            sizeof(out)),
              400);
    tnd_served_close(&s);
}

static CU_TestInfo tests[] = {
    {"calls_are_read_in_the_formats_of_templates", calls_are_read_in_the_formats_of_templates},
    {"each_family_has_its_reasoning_and_calls_read", each_family_has_its_reasoning_and_calls_read},
    {"the_table_of_families_in_the_docs_is_that_of_the_test",
     the_table_of_families_in_the_docs_is_that_of_the_test},
    {"formats_are_known_by_their_templates", formats_are_known_by_their_templates},
    {"published_templates_show_their_formats", published_templates_show_their_formats},
    {"marks_without_end_take_little_time", marks_without_end_take_little_time},
    {"a_whole_reply_has_calls_beside_its_content", a_whole_reply_has_calls_beside_its_content},
    {"a_stream_of_any_pieces_tells_the_same", a_stream_of_any_pieces_tells_the_same},
    {"a_slow_reader_is_told_a_part_at_a_time", a_slow_reader_is_told_a_part_at_a_time},
    {"one_call_at_a_time_is_honoured", one_call_at_a_time_is_honoured},
    {"a_required_function_is_called", a_required_function_is_called},
    {"tools_that_are_none_are_refused", tools_that_are_none_are_refused},
    {"calls_and_results_stand_in_the_prompt", calls_and_results_stand_in_the_prompt},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_server_calls[];
CU_SuiteInfo suites_server_calls[] = {
    {"calls", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
