/* SPDX-License-Identifier: MIT
 * Grammars: what texts they take, which are refused, that strangers' ones end, and that masks of
 * tokens are those of their bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/grammar.h"
#include "tests/suite_llama.h"

/* ---- texts ---- */

enum verdict { WRONG, OPEN, MAY_END, COMPLETE, FAILED };

static tandem_grammar *grammar_of(enum tandem_grammar_kind kind, const char *text,
                                  struct tandem_error *error)
{
    const struct tandem_grammar_options options = {
        .size = sizeof(options), .kind = kind, .text = text, .n = strlen(text)};
    tandem_grammar *grammar = NULL;
    (void)tandem_grammar_new(&options, &grammar, error);
    return grammar;
}

static enum verdict judge(const tandem_grammar *grammar, const char *text)
{
    struct tnd_matcher *matcher = tnd_matcher_new(grammar);
    int32_t state = tnd_matcher_begin(matcher);
    for (const char *at = text; *at != '\0' && state > 0; at++) {
        state = tnd_matcher_next(matcher, state, (uint8_t)*at);
    }
    const enum verdict verdict = state == TND_MATCHER_FAILED            ? FAILED
                                 : state == TND_MATCHER_DEAD            ? WRONG
                                 : !tnd_matcher_accepts(matcher, state) ? OPEN
                                 : tnd_matcher_goes_on(matcher, state)  ? MAY_END
                                                                        : COMPLETE;
    tnd_matcher_free(matcher);
    return verdict;
}

struct text_case {
    const char *grammar, *text;
    enum verdict want;
};

static void check_texts(enum tandem_grammar_kind kind, const struct text_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct tandem_error error = {0};
        tandem_grammar *grammar = grammar_of(kind, cases[i].grammar, &error);
        if (grammar == NULL) {
            printf("%s: %s\n", cases[i].grammar, error.text);
            CU_FAIL("a grammar is not read");
            continue;
        }
        const enum verdict verdict = judge(grammar, cases[i].text);
        if (verdict != cases[i].want) {
            printf("%s: %s: %d, not %d\n", cases[i].grammar, cases[i].text, (int)verdict,
                   (int)cases[i].want);
            CU_FAIL("a grammar is wrong about a text");
        }
        tandem_grammar_free(grammar);
    }
}

struct fault_case {
    const char *grammar, *part;
};

static void check_faults(enum tandem_grammar_kind kind, const struct fault_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct tandem_error error = {0};
        tandem_grammar *grammar = grammar_of(kind, cases[i].grammar, &error);
        if (grammar != NULL) {
            printf("%s\n", cases[i].grammar);
            CU_FAIL("a wrong grammar is taken");
        }
        check_contains(error.text, cases[i].part);
        tandem_grammar_free(grammar);
    }
}

#define N(cases) (sizeof(cases) / sizeof((cases)[0]))

static void rules_take_the_texts_that_they_describe(void)
{
    static const struct text_case cases[] = {
        {"root ::= \"yes\" | \"no\"", "yes", COMPLETE},
        {"root ::= \"yes\" | \"no\"", "n", OPEN},
        {"root ::= \"yes\" | \"no\"", "nay", WRONG},
        {"root ::= [a-c]+ \"!\"?", "abc", MAY_END},
        {"root ::= [a-c]+ \"!\"?", "abc!", COMPLETE},
        {"root ::= [^a-c\\n]*", "xyz\xc3\xa9\xf0\x9f\x98\x80", MAY_END},
        {"root ::= [^a-c\\n]*", "xb", WRONG},
        {"root ::= [^x]", "\xed\xa0\x80", WRONG}, /* a surrogate */
        {"root ::= .", "\xe2\x82", OPEN},
        {"root ::= [\xc3\xa0-\xc3\xa9]", "\xc3\xa5", COMPLETE},
        {"root ::= [\xc3\xa0-\xc3\xa9]", "\xc3\xaa", WRONG},
        {"root ::= [\\u0900-\\u1fff]", "\xe1\xbf\xbf", COMPLETE},
        {"root ::= [\\u0900-\\u1fff]", "\xe0\xa3\xbf", WRONG},
        {"root ::= [\\U0001F600-\\U0001F64F]{2}", "\xf0\x9f\x98\x80\xf0\x9f\x99\x8f", COMPLETE},
        {"root ::= [\\U0001F600-\\U0001F64F]{2}", "\xf0\x9f\x99\x90", WRONG},
        {"root ::= \"a\"{3}", "aaa", COMPLETE},
        {"root ::= \"a\"{2,4}", "a", OPEN},
        {"root ::= \"a\"{2,4}", "aaaa", COMPLETE},
        {"root ::= \"a\"{2,}", "aaaaaaa", MAY_END},
        {"root ::= \"a\"{,2}", "", MAY_END},
        {"root ::= \"a\"{,2}", "aaa", WRONG},
        {"root ::= \"a\"{0,9}", "aaaaaaaaa", COMPLETE},
        {"root ::= \"a\"{0}", "", COMPLETE},
        {"root ::= (\"a\" | \"b\" x)* \"c\"\nx ::= \"d\" x | \"e\"", "abdddeac", COMPLETE},
        {"root ::= \"(\" root \")\" | \"x\"", "((x))", COMPLETE},
        {"root ::= \"(\" root \")\" | \"x\"", "((x)))", WRONG},
        {"# a list\nroot ::= # here\n  item (\",\" item)*\n\nitem ::= [0-9]+ # digits\n  | \"-\"",
         "1,-,22", MAY_END},
        {"root ::= (\n \"a\"\n |\n \"b\"\n)+", "ab", MAY_END},
        {"root ::= \"\\x41\\\"\\\\\\t\"", "A\"\\\t", COMPLETE},
        {"root ::= (\"\" | \"a\")*  \"b\"", "aab", COMPLETE},
        {"root-1 ::= \"x\"\nroot ::= root-1 root-1", "xx", COMPLETE},
        {"root ::= a b\na ::= \"x\"?\nb ::= \"y\"?", "", MAY_END},
    };
    check_texts(TANDEM_GRAMMAR_GBNF, cases, N(cases));
}

static void rules_that_are_wrong_are_refused_with_their_line(void)
{
    static const struct fault_case cases[] = {
        {"", "no rule 'root'"},
        {"rot ::= \"x\"", "no rule 'root'"},
        {"root ::= x", "rule 'x' is not defined"},
        {"root ::= \"x", "a literal has no end"},
        {"root ::= [a", "a class has no end"},
        {"root ::= [z-a]", "ends before it begins"},
        {"root ::= (\"x\"", "')' is expected"},
        {"root ::= \"x\")", "more text behind a rule"},
        {"root ::= \"\\q\"", "unknown escape"},
        {"root ::= \"\\ud800\"", "no character's"},
        {"root ::= \"x\"{3,2}", "is expected"},
        {"root ::= \"x\"{99999}", "99999 repetitions, at most 10000"},
        {"root = \"x\"", "'::=' is expected"},
        {"\n\nroot ::= %", "line 3"},
        {"root ::= \"x\"\nroot ::= \"y\"", "defined twice"},
        {"root ::= <think>", "not supported"},
        {"root ::= root \"x\" | \"y\"", "rule 'root' begins with itself"},
        {"root ::= a \"x\"\na ::= \"\" | b\nb ::= \"z\"* root", "begins with itself"},
        {"root ::= (root)?", "begins with itself"},
        {"root ::= \"\xff\"", "not UTF-8"},
    };
    check_faults(TANDEM_GRAMMAR_GBNF, cases, N(cases));
}

static void expressions_take_the_texts_that_they_describe(void)
{
    static const struct text_case cases[] = {
        {"[0-9]{3}-[0-9]{4}", "555-1234", COMPLETE},
        {"^(?:yes|no)$", "no", COMPLETE},
        {"\\d+(\\.\\d+)?", "3.14", MAY_END},
        {"\\w+@\\w+\\.com", "a_1@b.com", COMPLETE},
        {"[\\w.-]+", "a.b-c", MAY_END},
        {"[^\\s]+", "a b", WRONG},
        {"a.c", "a\nc", WRONG},
        {"a.c",
         "a\xc3\xa9"
         "c",
         COMPLETE},
        {"\\x41\\u0042\\.", "AB.", COMPLETE},
        {"(a+?b)*", "aabab", MAY_END},
        {"a|^b$|c", "b", COMPLETE},
        {"[]", "x", WRONG},
        {"[a\\]b]+", "a]b", MAY_END},
    };
    static const struct fault_case faults[] = {
        {"(a", "')' is expected"},    {"a)", "')' has no begin"},
        {"a**", "nothing to repeat"}, {"[a", "no end"},
        {"(?=a)", "not supported"},   {"\\bword", "not supported"},
        {"(a)\\1", "not supported"},  {"a$b", "anchors within"},
        {"\\p{L}", "not supported"},  {"a{2", "is expected"},
    };
    check_texts(TANDEM_GRAMMAR_REGEX, cases, N(cases));
    check_faults(TANDEM_GRAMMAR_REGEX, faults, N(faults));
}

static void choices_take_their_texts(void)
{
    static const struct text_case cases[] = {
        {"[\"yes\",\"no\",\"yes, but\"]", "yes", MAY_END},
        {"[\"yes\",\"no\",\"yes, but\"]", "yes, but", COMPLETE},
        {"[\"a\\n\\u00e9\\ud83d\\ude00\"]", "a\n\xc3\xa9\xf0\x9f\x98\x80", COMPLETE},
    };
    static const struct fault_case faults[] = {
        {"[]", "array of strings"}, {"[1]", "empty string, or none"}, {"[\"a\"", "no JSON"}};
    check_texts(TANDEM_GRAMMAR_CHOICE, cases, N(cases));
    check_faults(TANDEM_GRAMMAR_CHOICE, faults, N(faults));
}

/* ---- schemas ---- */

#define OBJECT(rest) "{\"type\":\"object\"," rest "}"
#define PERSON                                                                                     \
    OBJECT("\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\"},"        \
           "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"                       \
           "\"required\":[\"name\"]")
#define TREE                                                                                       \
    "{\"$ref\":\"#/$defs/node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{"         \
    "\"v\":{\"type\":\"integer\"},\"c\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/"        \
    "node\"}}},"                                                                                   \
    "\"required\":[\"v\"],\"additionalProperties\":false}}}"
#define DICT OBJECT("\"additionalProperties\":{\"type\":\"integer\"}")
#define LISTED                                                                                     \
    OBJECT("\"properties\":{\"ab\":{\"type\":\"null\"},\"ac\":{\"type\":\"null\"}},"               \
           "\"additionalProperties\":{\"type\":\"integer\"}")

static void schemas_take_the_values_that_they_describe(void)
{
    static const struct text_case cases[] = {
        {"{\"type\":\"object\"}", "{\"a\":[1,{\"b\":null}],\"c\":\"\\u00e9\"}", COMPLETE},
        {"{\"type\":\"object\"}", "[", WRONG},
        {"true", "[1, 2.5e3, true]", COMPLETE},
        {"{}", "\"x\"", COMPLETE},
        {PERSON, "{\"name\": \"Ann\", \"age\": 7, \"tags\": [\"a\", \"b\"]}", COMPLETE},
        {PERSON, "{\"name\":\"Ann\",\"tags\":[]}", COMPLETE},
        {PERSON, "{\"name\":\"Ann\"}", COMPLETE},
        {PERSON, "{\"age\"", WRONG},
        {PERSON, "{}", WRONG},
        {PERSON, "{\"name\":\"Ann\",\"other\"", WRONG},
        {PERSON, "{\"name\":\"Ann\",\"age\":7,\"age\"", WRONG},
        {PERSON, "{\"name\":\"Ann\",}", WRONG},
        {PERSON, "{\"name\":7", WRONG},
        {TREE, "{\"v\":1,\"c\":[{\"v\":2},{\"v\":3,\"c\":[]}]}", COMPLETE},
        {TREE, "{\"v\":1,\"c\":[{\"c\"", WRONG},
        {DICT, "{}", COMPLETE},
        {DICT, "{\"x\":1,\"y\":2}", COMPLETE},
        {DICT, "{\"x\":\"", WRONG},
        {LISTED, "{\"ab\":null,\"ad\":1,\"a\":2,\"abc\":3}", COMPLETE},
        {LISTED, "{\"ab\":1", WRONG},
        {LISTED, "{\"x\":1,\"ac\"", WRONG},
        {LISTED, "{\"\\u0061", WRONG},
        {OBJECT("\"additionalProperties\":false"), "{}", COMPLETE},
        {OBJECT("\"additionalProperties\":false"), "{\"", WRONG},
        {OBJECT("\"minProperties\":1,\"maxProperties\":2"), "{}", WRONG},
        {OBJECT("\"minProperties\":1,\"maxProperties\":2"), "{\"a\":1,\"b\":2,", WRONG},
        {"{\"enum\":[\"a\",1,null,[1,{\"x\":\"\\n\"}]]}", "[1,{\"x\":\"\\n\"}]", COMPLETE},
        {"{\"enum\":[\"a\",1,null],\"type\":\"string\"}", "1", WRONG},
        {"{\"const\":\"a\\\"b\"}", "\"a\\\"b\"", COMPLETE},
        {"{\"type\":[\"string\",\"null\"]}", "null", COMPLETE},
        {"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", "-12", MAY_END},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"boolean\"}]}", "true", COMPLETE},
        {OBJECT("\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}},\"anyOf\":["
                "{\"required\":[\"a\"]},{\"required\":[\"b\"]}]"),
         "{}", WRONG},
        {OBJECT("\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}},\"anyOf\":["
                "{\"required\":[\"a\"]},{\"required\":[\"b\"]}]"),
         "{\"b\":null}", COMPLETE},
        {"{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"}},"
         "\"required\":[\"a\"]},{\"properties\":{\"b\":{\"type\":\"null\"}},\"required\":[\"b\"]}]"
         "}",
         "{\"a\":null,\"b\":null}", COMPLETE},
        {"{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"minItems\":2,\"maxItems\":3}",
         "[null]", WRONG},
        {"{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"minItems\":2,\"maxItems\":3}",
         "[null, null, null]", COMPLETE},
        {"{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"minItems\":2,\"maxItems\":3}",
         "[null,null,null,", WRONG},
        {"{\"type\":\"array\",\"maxItems\":0}", "[]", COMPLETE},
        {"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"},{\"type\":\"boolean\"}],"
         "\"items\":{\"type\":\"integer\"}}",
         "[null,true,7,8]", COMPLETE},
        {"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"},{\"type\":\"boolean\"}],"
         "\"items\":false,\"minItems\":2}",
         "[null]", WRONG},
        {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}", "\"a\"", WRONG},
        {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}", "\"a\\n\xc3\xa9\"", COMPLETE},
        {"{\"type\":\"string\",\"pattern\":\"^[a-z]+$\"}", "\"abc\"", COMPLETE},
        {"{\"type\":\"string\",\"pattern\":\"^[a-z]+$\"}", "\"aB", WRONG},
        {"{\"type\":\"string\",\"pattern\":\"[0-9]\"}", "\"ab\\\"1c\"", COMPLETE},
        {"{\"type\":\"string\",\"pattern\":\"[0-9]\"}", "\"ab\"", WRONG},
        {"{\"type\":\"string\",\"pattern\":\"^\\\\\\\\\\\"$\"}", "\"\\\\\\\"\"", COMPLETE},
        {"{\"type\":\"string\",\"format\":\"date\"}", "\"2024-02-28\"", COMPLETE},
        {"{\"type\":\"string\",\"format\":\"date\"}", "\"2023-02-29", WRONG},
        {"{\"type\":\"string\",\"format\":\"date-time\"}", "\"2024-12-31T23:59:59.5Z\"", COMPLETE},
        {"{\"type\":\"string\",\"format\":\"uuid\"}", "\"123e4567-e89b-12d3-a456-426614174000\"",
         COMPLETE},
        {"{\"type\":\"string\",\"format\":\"ipv4\"}", "\"192.168.0.256", WRONG},
        {"{\"type\":\"string\",\"format\":\"email\"}", "\"a.b@example.org\"", COMPLETE},
    };
    check_texts(TANDEM_GRAMMAR_JSON_SCHEMA, cases, N(cases));
}

static void keywords_that_are_not_understood_are_named(void)
{
    static const struct fault_case cases[] = {
        {"{", "no JSON"},
        {"{\"type\":\"objekt\"}", "unknown 'type' objekt"},
        {"{\"not\":{}}", "'not' is not supported"},
        {"[\"sye\"]", "schema"}, /* (the names of a list's items were read) */
        {"{\"type\":\"array\",\"contains\":{}}", "'contains'"},
        {"{\"type\":\"array\",\"uniqueItems\":true}", "'uniqueItems'"},
        {"{\"type\":\"number\",\"multipleOf\":3}", "'multipleOf'"},
        {"{\"type\":\"string\",\"format\":\"iri\"}", "'format' iri"},
        {"{\"type\":\"string\",\"pattern\":\"(?=x)\"}", "not supported"},
        {"{\"type\":\"string\",\"pattern\":\"x\",\"minLength\":2}", "'pattern'"},
        {"{\"type\":\"object\",\"patternProperties\":{}}", "'patternProperties'"},
        {"{\"type\":\"object\",\"dependentRequired\":{}}", "'dependentRequired'"},
        {"{\"if\":{},\"then\":{}}", "'if'"},
        {"{\"type\":\"object\",\"required\":[\"a\"]}", "'required'"},
        {"{\"properties\":{\"a\":{\"not\":{}}}}", "'not'"},
        {"{\"$ref\":\"http://example.org\"}", "'$ref'"},
        {"{\"$ref\":\"#/$defs/a\"}", "leads nowhere"},
        {"{\"$ref\":\"#\"}", "themselves"},
        {"{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", "begins with itself"},
        {"false", "allows no value"},
        {"{\"enum\":[1],\"type\":\"string\"}", "allows no value"},
        {"{\"type\":\"integer\",\"minimum\":2,\"maximum\":1}", "within its bounds"},
        {"{\"type\":\"number\",\"minimum\":0.5}", "must be whole"},
        {"{\"allOf\":[{\"type\":\"string\",\"minLength\":1},{\"minLength\":2}]}", "'minLength'"},
        {"{\"type\":\"array\",\"minItems\":2,\"maxItems\":1}", "below 'minItems'"},
        {"7", "an object or true"},
    };
    check_faults(TANDEM_GRAMMAR_JSON_SCHEMA, cases, N(cases));
}

/* Every number near the bounds, written in some ways. */
static void bounds_of_numbers_are_kept(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    for (int round = 0; round < 300; round++) {
        const long long reach = tnd_test_rng_int(&rng, 1, round % 3 == 0 ? 2000 : 120);
        const long long low = tnd_test_rng_int(&rng, -reach, reach);
        const long long high = low + tnd_test_rng_int(&rng, 0, reach);
        const bool is_integer = round % 2 == 0, has_low = round % 5 != 0, has_high = round % 7 != 0;
        const bool excludes = round % 4 == 3 && high > low + 1;
        char schema[256], bounds[2][64] = {"", ""};
        if (has_low) {
            snprintf(bounds[0], 64, ",\"%s\":%lld", excludes ? "exclusiveMinimum" : "minimum", low);
        }
        if (has_high) {
            snprintf(bounds[1], 64, ",\"%s\":%lld", excludes ? "exclusiveMaximum" : "maximum",
                     high);
        }
        snprintf(schema, sizeof(schema), "{\"type\":\"%s\"%s%s}", is_integer ? "integer" : "number",
                 bounds[0], bounds[1]);
        tandem_grammar *grammar = grammar_of(TANDEM_GRAMMAR_JSON_SCHEMA, schema, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(grammar);
        for (int i = 0; i < 200; i++) {
            char text[64];
            const int cents = is_integer ? 0 : (int)tnd_test_rng_int(&rng, -3, 3);
            const double value = (double)tnd_test_rng_int(&rng, low - 12, high + 12) + cents / 4.0;
            snprintf(text, sizeof(text), cents != 0 ? "%.2f" : "%.0f", value);
            const bool is_in =
                (!has_low || (excludes ? value > (double)low : value >= (double)low)) &&
                (!has_high || (excludes ? value < (double)high : value <= (double)high));
            const enum verdict verdict = judge(grammar, text);
            if ((verdict == MAY_END || verdict == COMPLETE) != is_in) {
                printf("%s: %s\n", schema, text);
                CU_FAIL("a number is judged wrongly");
            }
        }
        tandem_grammar_free(grammar);
    }
}

/* ---- JSON ---- */

static const char any_object[] = "{\"type\":\"object\"}";

static void any_object_is_json_and_nothing_else(void)
{
    static const char *const good[] = {
        "{}", " {\"a\":-0.5e+10,\"b\":[true,false,null,[],{}],\"c\":\"\\n\\u00e9\\ud83d\\ude00\"}",
        "{\"a\":10.25E3 , \"b\":\"\xe2\x82\xac\"}", "{\"\":\"\"}"};
    static const char *const wrong[] = {"1",
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
                                        "{\"a\":nan",
                                        "{\"a\":\"\\ud83d\"",
                                        "{\"a\":\"\\ude00",
                                        "{,",
                                        "{}x",
                                        "{\"a\":-}",
                                        "{\"a\":\"\xc0",
                                        "{\"a\":\"\xe2\x82\"",
                                        "{\"a\":.5",
                                        "{\"a\":1 2",
                                        "{\"a\":1e}",
                                        "{\"a\":\"\\u00g",
                                        "{\"a\":\"\\ud83d\\u0041",
                                        "{\"a\":\"\\u0000"};
    tandem_grammar *grammar = grammar_of(TANDEM_GRAMMAR_JSON_SCHEMA, any_object, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(grammar);
    for (size_t i = 0; i < N(good); i++) {
        check_int(judge(grammar, good[i]), COMPLETE);
    }
    for (size_t i = 0; i < N(wrong); i++) {
        check_int(judge(grammar, wrong[i]), WRONG);
    }
    tandem_grammar_free(grammar);
}

/* ---- masks of tokens ---- */

/* A mask is what each token's bytes say, in every state of random walks. */
static void masks_are_those_of_the_bytes_of_each_token(void)
{
    static const char *const schemas[] = {any_object, PERSON, TREE, LISTED, "true"};
    const char *path = tnd_test_data("llama/tok512.bin");
    tandem_tokenizer *tokenizer = NULL;
    tandem_token_trie *trie = NULL;
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    const int32_t ends[] = {2};
    bool mask[512];
    if (path == NULL) {
        return;
    }
    check_ok(tandem_tokenizer_open(path, 512, &tokenizer, NULL));
    check_ok(tandem_token_trie_new(tokenizer, 512, ends, 1, &trie, NULL));
    for (size_t i = 0; i < N(schemas); i++) {
        tandem_grammar *grammar = grammar_of(TANDEM_GRAMMAR_JSON_SCHEMA, schemas[i], NULL);
        struct tnd_matcher *matcher = tnd_matcher_new(grammar);
        int32_t state = tnd_matcher_begin(matcher);
        for (int step = 0; step < 60 && tnd_matcher_goes_on(matcher, state); step++) {
            const int64_t n = tnd_token_trie_mask(trie, matcher, state, mask);
            int64_t n_set = 0, nth = tnd_test_rng_int(&rng, 0, n > 0 ? n - 1 : 0);
            int32_t chosen = -1;
            for (int32_t token = 0; token < 512; token++) {
                const int32_t next = tnd_token_trie_next(trie, matcher, state, token);
                const bool is_end = token == 2;
                const bool is_empty = !is_end && next == state && !mask[token];
                CU_ASSERT_EQUAL(mask[token], is_end ? tnd_matcher_accepts(matcher, state)
                                                    : next > 0 && !is_empty);
                n_set += mask[token];
                chosen = mask[token] && !is_end && nth-- <= 0 && chosen < 0 ? token : chosen;
            }
            check_int(n_set, n);
            if (chosen < 0) {
                break;
            }
            state = tnd_token_trie_next(trie, matcher, state, chosen);
        }
        tnd_matcher_free(matcher);
        tandem_grammar_free(grammar);
    }
    tandem_token_trie_free(trie);
    tandem_tokenizer_close(tokenizer);
}

/* ---- strangers' grammars ---- */

/* Deep, long and ambiguous ones are refused, or judged within bounds. */
static void hostile_grammars_have_an_end(void)
{
    static const struct text_case cases[] = {
        {"root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"\"",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", FAILED},
        {"root ::= s\ns ::= s2 s2 s2 s2\ns2 ::= (\"a\" | \"a\" \"a\")*",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", MAY_END},
        {"root ::= ((((\"a\"*)*)*)*)*", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", MAY_END},
    };
    static char text[1 << 17];
    check_texts(TANDEM_GRAMMAR_GBNF, cases, N(cases));
    size_t at = (size_t)sprintf(text, "root ::= ");
    memset(text + at, '(', 1000);
    strcpy(text + at + 1000, "\"a\"");
    const struct fault_case deep[] = {{text, "too many groups"}};
    check_faults(TANDEM_GRAMMAR_GBNF, deep, 1);
    at = (size_t)sprintf(text, "root ::= r0\n");
    for (int i = 0; i < 2000; i++) {
        at += (size_t)sprintf(text + at, "r%d ::= r%d \"a\"\n", i, i + 1);
    }
    sprintf(text + at, "r2000 ::= \"b\"");
    const struct fault_case chain[] = {{text, "begin with each other"}};
    check_faults(TANDEM_GRAMMAR_GBNF, chain, 1);
    at = (size_t)sprintf(text, "root ::= \"a\"{3}");
    for (int i = 0; i < 30; i++) {
        memmove(text + 10, text + 9, at - 8);
        text[9] = '(';
        at += 1 + (size_t)sprintf(text + at + 1, "){3}");
    }
    const struct fault_case wide[] = {{text, "more than"}};
    check_faults(TANDEM_GRAMMAR_GBNF, wide, 1);
}

/* A text so long that states are forgotten on the way. */
static void long_texts_are_judged_after_states_are_forgotten(void)
{
    tandem_grammar *grammar =
        grammar_of(TANDEM_GRAMMAR_GBNF, "root ::= \"(\" root \")\" | [a-z]{0,5000} \"!\"", NULL);
    struct tnd_matcher *matcher = tnd_matcher_new(grammar);
    int32_t state = tnd_matcher_begin(matcher);
    int n_forgotten = 0;
    for (int i = 0; i < 20 + 5000 + 1 + 20; i++) {
        const char byte = i < 20 ? '(' : i < 5020 ? 'x' : i == 5020 ? '!' : ')';
        bool has_changed = false;
        state = tnd_matcher_next(matcher, state, (uint8_t)byte);
        CU_ASSERT_FALSE(tnd_matcher_accepts(matcher, state) != (i == 5040));
        state = tnd_matcher_tidy(matcher, state, &has_changed);
        n_forgotten += has_changed;
    }
    CU_ASSERT_TRUE(n_forgotten > 0);
    CU_ASSERT_TRUE(tnd_matcher_accepts(matcher, state));
    CU_ASSERT_FALSE(tnd_matcher_goes_on(matcher, state));
    tnd_matcher_free(matcher);
    tandem_grammar_free(grammar);
}

static CU_TestInfo tests[] = {
    {"rules_take_the_texts_that_they_describe", rules_take_the_texts_that_they_describe},
    {"rules_that_are_wrong_are_refused_with_their_line",
     rules_that_are_wrong_are_refused_with_their_line},
    {"expressions_take_the_texts_that_they_describe",
     expressions_take_the_texts_that_they_describe},
    {"choices_take_their_texts", choices_take_their_texts},
    {"schemas_take_the_values_that_they_describe", schemas_take_the_values_that_they_describe},
    {"keywords_that_are_not_understood_are_named", keywords_that_are_not_understood_are_named},
    {"bounds_of_numbers_are_kept", bounds_of_numbers_are_kept},
    {"any_object_is_json_and_nothing_else", any_object_is_json_and_nothing_else},
    {"masks_are_those_of_the_bytes_of_each_token", masks_are_those_of_the_bytes_of_each_token},
    {"hostile_grammars_have_an_end", hostile_grammars_have_an_end},
    {"long_texts_are_judged_after_states_are_forgotten",
     long_texts_are_judged_after_states_are_forgotten},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_llama_grammar[];
CU_SuiteInfo suites_llama_grammar[] = {
    {"grammar", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
