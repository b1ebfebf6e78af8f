/* SPDX-License-Identifier: MIT
 * The server's JSON: what is written, and what is read from strangers. */
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

/* ---- chunks of prompts ---- */

static double expect_tokens(void *user, int64_t m)
{
    const double *token_us = user;
    return *token_us * (double)m;
}

static void chunks_keep_the_delay_of_others(void)
{
    double token_us = 0.0; /* not known */
    check_int(tnd_srv_pace_chunk(expect_tokens, &token_us, 100e3, 0), SRV_PACE_MOST);
    check_int(tnd_srv_pace_chunk(expect_tokens, &token_us, 100e3, 3), 64);
    token_us = 1e3;
    check_int(tnd_srv_pace_chunk(expect_tokens, &token_us, 100e3, 3), 64);
    check_int(tnd_srv_pace_chunk(expect_tokens, &token_us, 100e3, 70), 16);
    token_us = 10e3;
    check_int(tnd_srv_pace_chunk(expect_tokens, &token_us, 100e3, 3), 8);
    token_us = 100.0;
    check_int(tnd_srv_pace_chunk(expect_tokens, &token_us, 100e3, 8), 512);
}

static CU_TestInfo tests[] = {
    {"strings_are_written_as_json", strings_are_written_as_json},
    {"bodies_of_strangers_are_refused_with_a_reason",
     bodies_of_strangers_are_refused_with_a_reason},
    {"members_are_read_with_their_ranges", members_are_read_with_their_ranges},
    {"chunks_keep_the_delay_of_others", chunks_keep_the_delay_of_others},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_server_text[];
CU_SuiteInfo suites_server_text[] = {
    {"text", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
