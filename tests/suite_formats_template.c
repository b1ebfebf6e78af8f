/* SPDX-License-Identifier: MIT
 * Chat templates: the language, what is refused, who wrote what; published templates against the
 * renderings of Jinja 3.1 where they are there. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "formats/template.h"
#include "tandem/chat_template.h"
#include "tests/support.h"

/* What a template makes of variables; the message of the failure behind "! ". */
static void render(const char *text, const char *variables, char *out, size_t capacity)
{
    struct tandem_error error = {0};
    struct tandem_rendered rendered = TANDEM_RENDERED_INIT;
    tandem_chat_template *made = NULL;
    enum tandem_status status = tandem_chat_template_parse(text, strlen(text), "t", &made, &error);
    if (status == TANDEM_OK) {
        status = tandem_chat_template_render(made, variables, strlen(variables), NULL, 86400,
                                             &rendered, &error);
    }
    snprintf(out, capacity, "%s%s", status == TANDEM_OK ? "" : "! ",
             status == TANDEM_OK ? rendered.text : error.text);
    tandem_rendered_free(&rendered);
    tandem_chat_template_free(made);
}

#define VARIABLES                                                                                  \
    "{\"messages\":[{\"role\":\"user\",\"content\":\" a \"},{\"role\":\"assistant\",\"content\":"  \
    "\"b\",\"n\":3},{\"role\":\"user\",\"content\":\"\\u00e9<\"}],\"x\":\"Hello World\",\"d\":"    \
    "{\"b\":[1,2.0,null,true],\"a\":\"q'\"},\"e\":[],\"big\":1e16}"

struct example {
    const char *text, *want; /* behind "! ": a part of the message */
};

static void check_examples(const struct example *examples, size_t n)
{
    char out[4096];
    for (size_t i = 0; i < n; i++) {
        render(examples[i].text, VARIABLES, out, sizeof(out));
        if (strncmp(examples[i].want, "! ", 2) == 0) {
            CU_ASSERT_EQUAL(out[0], '!');
            check_contains(out, examples[i].want + 2);
        } else {
            check_string(out, examples[i].want);
        }
    }
}
#define CHECK_EXAMPLES(examples) check_examples(examples, sizeof(examples) / sizeof(examples[0]))

static void white_space_goes_as_trim_and_lstrip_blocks_say(void)
{
    static const struct example examples[] = {
        {"a\n  {% if true %}\n b\n  {% endif %}\nc\n", "a\n b\nc"},
        {"a {%- if true -%} b {%- endif %} c", "ab c"},
        {"  {# gone #}\nx {{ 1 }}\n", "x 1"},
        {"a\n  {%+ if true %}b{% endif +%}\nc", "a\n  b\nc"},
        {"{{- 'a' -}}  \n b", "ab"},
        {"{% raw %}{{ x }}{% endraw %}", "{{ x }}"},
        {"a\r\nb\r\n", "a\nb"},
    };
    CHECK_EXAMPLES(examples);
}

static void names_live_in_their_scopes(void)
{
    static const struct example examples[] = {
        {"{% set a = 1 %}{% for i in [2] %}{% set a = i %}{{ a }}{% endfor %}{{ a }}", "21"},
        {"{% set a = 1 %}{% if true %}{% set a = 2 %}{% endif %}{{ a }}", "2"},
        {"{% set n = namespace(a=1) %}{% for i in [5] %}{% set n.a = i %}{% endfor %}{{ n.a }}",
         "5"},
        {"{% macro f(a, b='z') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{% set c = 3 %}{{ f(1) }}"
         "{{ f(1, b=2) }}",
         "1z3123"},
        {"{% macro f() %}[{{ caller(1) }}]{% endmacro %}{% call(i) f() %}{{ i + 1 }}{% endcall %}",
         "[2]"},
        {"{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}", "3False"},
        {"{% set t %}x{{ 1 }}{% endset %}{{ t * 2 }}", "x1x1"},
        {"{% filter upper %}ab{% endfilter %}", "AB"},
        {"{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}",
         "a=q';b=[1, 2.0, None, True];"},
        {"{% for i in [1,2,3,4] if i % 2 == 0 %}{{ loop.index }}{{ loop.last }}{% else %}-"
         "{% endfor %}",
         "1False2True"},
        {"{% for i in e %}x{% else %}none{% endfor %}", "none"},
        {"{% for i in range(9) %}{% if i == 2 %}{% continue %}{% elif i == 4 %}{% break %}"
         "{% endif %}{{ i }}{{ loop.previtem }}{% endfor %}",
         "01032"},
    };
    CHECK_EXAMPLES(examples);
}

static void expressions_mean_what_python_means(void)
{
    static const struct example examples[] = {
        {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 1 / 4 * 8 }}",
         "3 -4 2 3.5 1024 2.0"},
        {"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ not 0 }} {{ 0 or 'a' }} {{ '' and 1 }}|",
         "True False True a |"},
        {"{{ x[0] }}{{ x[-1] }}{{ x[1:4] }}{{ x[::-2] }}{{ messages[-1].content[0] }}",
         "HdelldrWolH\xc3\xa9"},
        {"{{ 'a' if false }}|{{ 'a' if true else 'b' }}", "|a"},
        {"{{ d }} {{ [1, 'a\\n'] }} {{ (1,) }} {{ none }} {{ big }} {{ 1e-5 }}",
         "{'b': [1, 2.0, None, True], 'a': \"q'\"} [1, 'a\\n'] (1,) None 1e+16 1e-05"},
        {"{{ 'ell' in x }}{{ 'a' in d }}{{ 3 not in [1, 2] }}{{ 'z' in e }}", "TrueTrueTrueFalse"},
        {"{{ 1 ~ 'a' ~ none ~ undefined }}", "1aNone"},
        {"{{ x.split(' ', 1)[1].lower().replace('o', '0') }}{{ ' a '.strip() }}{{ 'a'.join(['1', "
         "'2']) }}",
         "w0rlda1a2"},
        {"{{ '%s-%03d-%.2f%%' % ('a', 7, 1.5) }} {{ '{} {1}'.format(1, 2) }}", "a-007-1.50% 1 2"},
        {"{{ messages|map(attribute='role')|unique|join(',') }} "
         "{{ messages|selectattr('role', 'equalto', 'user')|list|length }} "
         "{{ messages|rejectattr('n', 'defined')|map(attribute='content')|map('trim')|list }}",
         "user,assistant 2 ['a', '\xc3\xa9<']"},
        {"{{ d|tojson }} {{ d.b|tojson(indent=1) }}",
         "{\"b\": [1, 2.0, null, true], \"a\": \"q'\"} [\n 1,\n 2.0,\n null,\n true\n]"},
        {"{{ '<' + '\"a\"'|safe }}{{ 'a\nb'|indent(2) }}{{ 'ab cd'|title }}{{ [3,1,2]|sort|first "
         "}}",
         "&lt;\"a\"a\n  bAb Cd1"},
        {"{{ strftime_now('%Y') }}", "1970"},
    };
    CHECK_EXAMPLES(examples);
}

static void what_is_not_understood_is_refused_with_its_line(void)
{
    static const struct example examples[] = {
        {"a\n{% include 'b' %}", "! t: line 2: the statement 'include'"},
        {"{{ x|frobnicate }}", "! t: line 1: there is no filter 'frobnicate'"},
        {"{% if false %}{{ x|frobnicate }}{% endif %}ok", "ok"},
        {"{% if true %}\n{{ x|frobnicate }}{% endif %}", "! line 2: there is no filter"},
        {"{% for i in x %}", "! the block 'for' has no end"},
        {"{{ (1 }}", "! stands where ')' is expected"},
        {"{{ 'a }}", "! a text has no closing quote"},
        {"{{ nothing.a }}", "! 'nothing' is undefined"},
        {"{{ 1 + 'a' }}", "! '+' does not take int and str"},
        {"{{ raise_exception('so it is') }}", "! the template refuses: so it is"},
        {"{{ messages.append(1) }}", "! would change a list"},
        {"{{ f(*x) }}", "! unpacked"},
        {"{{ 9223372036854775807 + 1 }}", "! beyond 64 bits"},
        {"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
         "! t: line 1"},
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "! too deep"},
        {"{% set n = namespace(a='aaaaaaaaaaaaaaaa') %}{% for i in range(60) %}"
         "{% set n.a = n.a ~ n.a %}{% endfor %}",
         "! "},
        {"{{ messages|map('upper')|tojson }}", "! generator has no JSON"},
    };
    CHECK_EXAMPLES(examples);
}

static void each_byte_knows_who_wrote_it(void)
{
    static const char text[] =
        "A{{ x|upper|replace('L', 'l') }}{{ x[1:3] ~ 'T' }}{{ d|tojson }}{{ 'x' if x else '' }}";
    static const char variables[] = "{\"x\":\"hall\",\"d\":{\"k\":\"v\\n\"}}";
    static const char want[] = "AHAllalT{\"k\": \"v\\n\"}x";
    struct tandem_rendered rendered = TANDEM_RENDERED_INIT;
    tandem_chat_template *made = NULL;
    check_ok(tandem_chat_template_parse(text, strlen(text), NULL, &made, NULL));
    check_ok(
        tandem_chat_template_render(made, variables, strlen(variables), NULL, 0, &rendered, NULL));
    check_string(rendered.text, want);
    /* the template's are A, the letters that replace gave, T, the JSON's signs and the last x */
    for (size_t i = 0; i < rendered.n && i < sizeof(want) - 1; i++) {
        const char c = want[i];
        const bool is_users = (i >= 1 && i <= 2) || (i >= 5 && i <= 6) || c == 'k' || c == 'v' ||
                              (i > 8 && (c == '\\' || c == 'n'));
        CU_ASSERT_EQUAL(rendered.from_variables[i], is_users);
    }
    tandem_rendered_free(&rendered);
    tandem_chat_template_free(made);
}

/* ---- published templates ---- */

static int64_t moment(void)
{
    struct tm when = {.tm_year = 126, .tm_mon = 6, .tm_mday = 4, .tm_hour = 12, .tm_min = 30};
    when.tm_isdst = -1;
    return (int64_t)mktime(&when);
}

static const struct tnd_value *member(struct tnd_render *render_state, struct tnd_value dict,
                                      const char *name)
{
    return dict.kind == TND_KIND_DICT
               ? tnd_dict_find(render_state, dict.as.dict, name, strlen(name))
               : NULL;
}

/* The variables of a case as JSON, with what all of them share. */
static void write_case(struct tnd_builder *json, struct tnd_value variables)
{
    static const struct tnd_tojson plain = {.indent = -1, .between = ", ", .colon = ": "};
    static const char shared[] = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\","
                                 "\"add_generation_prompt\":true,";
    struct tnd_builder own = {.render = json->render};
    tnd_build_json(&own, variables, &plain, 0);
    tnd_build(json, shared, sizeof(shared) - 1, false);
    tnd_build(json, own.bytes + 1, own.n - 1, false); /* later members count */
}

static void check_case(const tandem_chat_template *made, struct tnd_render *state,
                       struct tnd_value variables, struct tnd_value want, const char *what)
{
    struct tandem_rendered rendered = TANDEM_RENDERED_INIT;
    struct tandem_error error = {0};
    struct tnd_builder json = {.render = state};
    write_case(&json, variables);
    const enum tandem_status status =
        tandem_chat_template_render(made, json.bytes, json.n, NULL, moment(), &rendered, &error);
    const struct tnd_value *text = member(state, want, "text");
    const bool is_right = text != NULL
                              ? status == TANDEM_OK && rendered.n == text->as.string->n &&
                                    memcmp(rendered.text, text->as.string->bytes, rendered.n) == 0
                              : status != TANDEM_OK;
    if (!is_right) {
        printf("    %s: %s\n", what, status == TANDEM_OK ? "another text" : error.text);
    }
    CU_ASSERT_TRUE(is_right);
    tandem_rendered_free(&rendered);
}

static void published_templates_render_as_jinja_does(void)
{
    const char *path = tnd_test_data("templates/expected.json");
    struct tnd_file file;
    struct tnd_arena arena;
    struct tandem_error error = {0};
    int n = 0;
    if (path == NULL) {
        return;
    }
    check_ok(tnd_file_read(path, 0, &file, NULL));
    tnd_arena_init(&arena, 0, 0);
    struct tnd_render state = {.arena = &arena, .name = "expected.json", .error = &error};
    const struct tnd_value all =
        tnd_template_read_json(&state, (const char *)file.data, file.bytes);
    const struct tnd_value *cases = member(&state, all, "cases");
    const struct tnd_value *results = member(&state, all, "results");
    CU_ASSERT_TRUE_FATAL(cases != NULL && results != NULL);
    for (size_t t = 0; t < results->as.dict->n; t++) {
        const struct tnd_member *of = &results->as.dict->members[t];
        char name[160];
        tandem_chat_template *made = NULL;
        snprintf(name, sizeof(name), "templates/%.*s", (int)of->key.as.string->n,
                 of->key.as.string->bytes);
        check_status(tandem_chat_template_open(tnd_test_data(name), &made, &error), TANDEM_OK, NULL,
                     &error);
        for (size_t c = 0; made != NULL && c < cases->as.dict->n; c++) {
            const struct tnd_member *one = &cases->as.dict->members[c];
            const struct tnd_value *want = tnd_dict_get(&state, of->value.as.dict, one->key);
            CU_ASSERT_PTR_NOT_NULL_FATAL(want);
            state.steps = 0;
            check_case(made, &state, one->value, *want, name);
            n++;
        }
        tandem_chat_template_free(made);
    }
    check_int(n, 28 * 12);
    tnd_arena_fini(&arena);
    tnd_file_close(&file);
}

static CU_TestInfo template_tests[] = {
    {"white_space_goes_as_trim_and_lstrip_blocks_say",
     white_space_goes_as_trim_and_lstrip_blocks_say},
    {"names_live_in_their_scopes", names_live_in_their_scopes},
    {"expressions_mean_what_python_means", expressions_mean_what_python_means},
    {"what_is_not_understood_is_refused_with_its_line",
     what_is_not_understood_is_refused_with_its_line},
    {"each_byte_knows_who_wrote_it", each_byte_knows_who_wrote_it},
    {"published_templates_render_as_jinja_does", published_templates_render_as_jinja_does},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_formats_template[];
CU_SuiteInfo suites_formats_template[] = {
    {"template", NULL, NULL, NULL, NULL, template_tests},
    CU_SUITE_INFO_NULL,
};
