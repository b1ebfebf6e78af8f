/* SPDX-License-Identifier: MIT
 * The server's JSON: what is written, what is read from strangers, and what a model may write. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite_server.h"
#include "tools/tandem-server/srv_body.h"

static void strings_are_written_as_json(void)
{
    const struct {
        const char *given;
        size_t n;
        const char *want;
    } cases[] = {
        {NULL, 0, "\"\""},
        {"plain", 5, "\"plain\""},
        {"a\"b\\c\n\t\r\b\f", 10, "\"a\\\"b\\\\c\\n\\t\\r\\b\\f\""},
        {"\x01\x7f\0", 3, "\"\\u0001\\u007f\\u0000\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"a\xc3", 2, "\"a\\ufffd\""},
        {"\xed\xa0\x80!", 4, "\"\\ufffd\\ufffd\\ufffd!\""},
        {"\xc0\xaf\xff", 3, "\"\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct srv_text text = {0};
        tnd_srv_add_json(&text, cases[i].given, cases[i].n);
        check_string(text.bytes, cases[i].want);
        tnd_srv_text_free(&text);
    }
}

static void bodies_of_strangers_are_refused_with_a_reason(void)
{
    const struct {
        const char *body, *fault;
    } cases[] = {
        {"", "no JSON"},
        {"{", "no JSON"},
        {"[1]", "must be an object"},
        {"{} x", "more text behind"},
        {"{\"a\":\"\xff\"}", "byte 6 of the body is not UTF-8"},
        {"{\"a\":\"\\u0000\"}", "\\u0000 is not allowed"},
        {"{\"a\":\"\\\\u0000\"}", NULL},
        {"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "more than 32"},
        {"{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}", NULL},
        {" {\"a\": 1}\n", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct srv_body body;
        const bool is_good = tnd_srv_body_read(&body, cases[i].body, strlen(cases[i].body));
        CU_ASSERT_EQUAL(is_good, cases[i].fault == NULL);
        if (cases[i].fault != NULL) {
            check_contains(body.fault, cases[i].fault);
        }
        tnd_srv_body_free(&body);
    }
}

static void members_are_read_with_their_ranges(void)
{
    const char *text = "{\"i\":7,\"f\":0.5,\"s\":\"x\",\"b\":true,\"n\":null,\"huge\":1e300}";
    struct srv_body body;
    double number = 9.0;
    int64_t integer = 9;
    bool flag = false;
    const char *string = "";
    CU_ASSERT_TRUE_FATAL(tnd_srv_body_read(&body, text, strlen(text)));
    CU_ASSERT_TRUE(tnd_srv_body_integer(&body, "n", 0, 8, &integer));
    CU_ASSERT_TRUE(tnd_srv_body_integer(&body, "absent", 0, 8, &integer));
    check_int(integer, 9);
    CU_ASSERT_TRUE(tnd_srv_body_integer(&body, "i", 0, 7, &integer));
    CU_ASSERT_TRUE(tnd_srv_body_number(&body, "f", 0.0, 1.0, &number));
    CU_ASSERT_TRUE(tnd_srv_body_flag(&body, "b", &flag));
    CU_ASSERT_TRUE(tnd_srv_body_string(&body, "s", &string));
    check_int(integer, 7);
    CU_ASSERT_EQUAL(number, 0.5);
    CU_ASSERT_TRUE(flag);
    check_string(string, "x");
    const struct {
        const char *name, *fault;
    } wrong[] = {{"f", "'f' must be a whole number from 0 to 6"},
                 {"i", "'i' must be a whole number from 0 to 6"},
                 {"s", "'s' must be a whole number"},
                 {"huge", "'huge' must be a whole number"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        body.fault[0] = '\0';
        CU_ASSERT_FALSE(tnd_srv_body_integer(&body, wrong[i].name, 0, 6, &integer));
        check_contains(body.fault, wrong[i].fault);
    }
    CU_ASSERT_FALSE(tnd_srv_body_flag(&body, "i", &flag)); /* the first fault is kept */
    check_contains(body.fault, "huge");
    check_int(integer, 7);
    tnd_srv_body_free(&body);
}

/* ---- what a model may write ---- */

static void the_grammar_takes_json_objects_and_nothing_else(void)
{
    const struct {
        const char *text;
        bool is_complete;
    } good[] = {
        {"", false},
        {" {", false},
        {"{}", true},
        {"{ } \n", true},
        {"{\"a\":1}", true},
        {"{\"a\":-0.5e+10,\"b\":[true,false,null,[],{}],\"c\":\"\\n\\u00e9\\ud83d\\ude00\"}", true},
        {"{\"a\":[1,2", false},
        {"{\"a\":0}", true},
        {"{\"a\":10.25E3 , \"b\":\"\xe2\x82\xac\"}", true},
        {"{\"\":\"\"}", true},
        {"{\"a\":\"\\u00", false},
    };
    const char *wrong[] = {"[",
                           "1",
                           "{]",
                           "{a",
                           "{\"a\"1",
                           "{\"a\":01",
                           "{\"a\":1.}",
                           "{\"a\":+",
                           "{\"a\":1,}",
                           "{\"a\":[1,]",
                           "{\"a\":tru}",
                           "{\"a\":\"\n",
                           "{\"a\":\"\\x",
                           "{\"a\":\"\\u00g",
                           "{\"a\":\"\\ud83d\"",
                           "{\"a\":\"\\ude00",
                           "{\"a\":\"\\ud83d\\u0041",
                           "{\"a\":\"\\u0000",
                           "{}x",
                           "{\"a\":\"\xc0",
                           "{\"a\":\"\xe2\x82\"",
                           "{\"a\":-}",
                           "{\"a\":1e}",
                           "{,",
                           "{\"a\":1 2",
                           "{\"a\":.5",
                           "{\"a\":nan"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct srv_grammar grammar = {0};
        if (!tnd_srv_grammar_accepts(&grammar, good[i].text, strlen(good[i].text)) ||
            tnd_srv_grammar_is_complete(&grammar) != good[i].is_complete) {
            printf("%s\n", good[i].text);
            CU_FAIL("the grammar is wrong about a good text");
        }
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct srv_grammar grammar = {0};
        if (tnd_srv_grammar_accepts(&grammar, wrong[i], strlen(wrong[i]))) {
            printf("%s\n", wrong[i]);
            CU_FAIL("the grammar takes what is no JSON");
        }
        CU_ASSERT_EQUAL(grammar.state, 0); /* untouched */
    }
}

/* Random walks over bytes that the grammar allows end in what cJSON reads. */
static void whatever_the_grammar_completes_is_json(void)
{
    static const char bytes[] = "{}[]\",:\\ \n0123456789-+.eEtruefalsnbd/\xc3\xa9\xf0\x9f\x98\x80";
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    int n_complete = 0;
    for (int round = 0; round < 4000; round++) {
        struct srv_grammar grammar = {0};
        char text[400];
        size_t n = 0;
        for (int i = 0; i < 4000 && n < sizeof(text) && !tnd_srv_grammar_is_complete(&grammar);
             i++) {
            text[n] = bytes[tnd_test_rng_int(&rng, 0, (int64_t)sizeof(bytes) - 2)];
            n += tnd_srv_grammar_accepts(&grammar, text + n, 1);
        }
        if (tnd_srv_grammar_is_complete(&grammar)) {
            cJSON *root = cJSON_ParseWithLengthOpts(text, n, NULL, false);
            CU_ASSERT_TRUE(cJSON_IsObject(root));
            cJSON_Delete(root);
            n_complete++;
        }
    }
    CU_ASSERT_TRUE(n_complete > 100);
}

static void blanks_and_depth_have_an_end(void)
{
    struct srv_grammar grammar = {0};
    int n = 0;
    while (n < 1000 && tnd_srv_grammar_accepts(&grammar, " ", 1)) {
        n++;
    }
    check_int(n, SRV_GRAMMAR_BLANKS);
    CU_ASSERT_TRUE(tnd_srv_grammar_accepts(&grammar, "{\"a\":", 5));
    for (n = 1; n < 1000 && tnd_srv_grammar_accepts(&grammar, "[", 1);) {
        n++;
    }
    check_int(n, SRV_GRAMMAR_DEPTH);
}

/* ---- chunks of prompts ---- */

static void chunks_keep_the_delay_of_others(void)
{
    struct srv_pace pace;
    tnd_srv_pace_init(&pace, NULL, 100.0);
    check_int(tnd_srv_pace_chunk(&pace, 0), SRV_PACE_MOST);
    check_int(tnd_srv_pace_chunk(&pace, 3), 64); /* nothing is known */
    for (int i = 0; i < 40; i++) {
        tnd_srv_pace_note(&pace, 64, 64e3); /* a millisecond a token */
    }
    check_int(tnd_srv_pace_chunk(&pace, 3), 64);
    check_int(tnd_srv_pace_chunk(&pace, 70), 16);
    for (int i = 0; i < 40; i++) {
        tnd_srv_pace_note(&pace, 64, 640e3); /* the machine has slowed down */
    }
    check_int(tnd_srv_pace_chunk(&pace, 3), 8);
    for (int i = 0; i < 40; i++) {
        tnd_srv_pace_note(&pace, 64, 1e3);
        tnd_srv_pace_note(&pace, 512, 80e3);
    }
    check_int(tnd_srv_pace_chunk(&pace, 8), 512);
}

static CU_TestInfo tests[] = {
    {"strings_are_written_as_json", strings_are_written_as_json},
    {"bodies_of_strangers_are_refused_with_a_reason",
     bodies_of_strangers_are_refused_with_a_reason},
    {"members_are_read_with_their_ranges", members_are_read_with_their_ranges},
    {"the_grammar_takes_json_objects_and_nothing_else",
     the_grammar_takes_json_objects_and_nothing_else},
    {"whatever_the_grammar_completes_is_json", whatever_the_grammar_completes_is_json},
    {"blanks_and_depth_have_an_end", blanks_and_depth_have_an_end},
    {"chunks_keep_the_delay_of_others", chunks_keep_the_delay_of_others},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_server_text[];
CU_SuiteInfo suites_server_text[] = {
    {"text", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
