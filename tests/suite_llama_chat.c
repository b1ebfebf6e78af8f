/* SPDX-License-Identifier: MIT
 * Conversations: what is fed by each template, answers that end, stop and are cancelled, contexts
 * that are shifted; half characters are never emitted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "llama/chat.h"
#include "tests/suite_llama.h"

/* What an answer was, and how many questions for cancelling are still answered with no. */
struct listener {
    char text[TND_TEXT_BYTES];
    size_t n;
    int patience; /* < 0: never cancels */
};

static bool hear(void *user, const char *text, size_t n)
{
    struct listener *listener = user;
    if (listener->n + n < sizeof(listener->text)) {
        memcpy(listener->text + listener->n, text, n);
        listener->n += n;
        listener->text[listener->n] = '\0';
    }
    return true;
}

static bool is_impatient(void *user)
{
    struct listener *listener = user;
    return listener->patience == 0 || (listener->patience > 0 && --listener->patience == 0);
}

struct setup {
    struct tnd_trained trained;
    tandem_runtime *runtime;
    tandem_session *session;
    tandem_sampler *sampler;
    struct listener listener;
    tandem_chat_template *template;
    tandem_chat *chat;
};

static bool setup_new(struct setup *s, const char *template, int64_t context)
{
    memset(s, 0, sizeof(*s));
    if (!tnd_trained_open(&s->trained, 0)) {
        return false;
    }
    s->runtime = tnd_test_runtime(1, NULL);
    s->session = tnd_test_session(s->trained.model, s->runtime, context);
    s->sampler = tnd_test_sampler(512, 0.0f, 0.0f, 1);
    s->listener.patience = -1;
    check_ok(tandem_chat_template_open(template, &s->template, NULL));
    const struct tandem_chat_options options = {.size = sizeof(options),
                                                .session = s->session,
                                                .sampler = s->sampler,
                                                .tokenizer = s->trained.tokenizer,
                                                .chat_template = s->template,
                                                .cancel = is_impatient,
                                                .emit = hear,
                                                .user = &s->listener};
    check_ok(tandem_chat_new(&options, &s->chat, NULL));
    return true;
}

static void setup_free(struct setup *s)
{
    tandem_chat_free(s->chat);
    tandem_chat_template_free(s->template);
    tandem_sampler_free(s->sampler);
    tandem_session_free(s->session);
    tandem_runtime_close(s->runtime);
    tnd_trained_close(&s->trained);
}

static void say(struct setup *s, const char *text)
{
    struct tandem_error error = {0};
    s->listener.n = 0;
    s->listener.text[0] = '\0';
    check_status(tandem_chat_say(s->chat, text, strlen(text), &error), TANDEM_OK, NULL, &error);
}

/* Text of the tokens of the conversation with one more message; beginning and end tokens as <s> and
 * </s>. */
static void written(struct setup *s, const char *said, char *out, size_t capacity)
{
    size_t at = 0;
    check_ok(tnd_chat_add(s->chat, said, strlen(said), false, NULL));
    struct tandem_rendered text = TANDEM_RENDERED_INIT;
    check_ok(tnd_chat_write(s->chat, &text, NULL));
    tandem_rendered_free(&text);
    const int32_t *ids = s->chat->ids;
    for (size_t i = 0; i < s->chat->n_ids && at + 64 < capacity; i++) {
        if (ids[i] == 1 || ids[i] == 2) {
            at += (size_t)sprintf(out + at, ids[i] == 1 ? "<s>" : "</s>");
        } else {
            at += tandem_tokenizer_decode(s->trained.tokenizer, i > 0 ? ids[i - 1] : -1, ids[i],
                                          out + at, 64);
        }
    }
    out[at] = '\0';
}

static void templates_write_conversations_as_their_models_know_them(void)
{
    const struct {
        const char *name, *system, *first, *second;
    } cases[] = {
        {"llama-2", NULL, "<s>[INST] Hi [/INST]", "<s>[INST] Hi [/INST]Ho</s><s>[INST] On [/INST]"},
        {"llama-2", "Be kind", "<s>[INST] <<SYS>>\nBe kind\n<</SYS>>\n\nHi [/INST]",
         "<s>[INST] <<SYS>>\nBe kind\n<</SYS>>\n\nHi [/INST]Ho</s><s>[INST] On [/INST]"},
        {"mistral-instruct", NULL, "<s>[INST] Hi [/INST]",
         "<s>[INST] Hi [/INST]Ho</s> [INST] On [/INST]"},
        {"mistral-instruct", "Be kind", "<s>[INST] Be kind\n\nHi [/INST]",
         "<s>[INST] Be kind\n\nHi [/INST]Ho</s> [INST] On [/INST]"},
        {"plain", NULL, "<s>Hi", "<s>HiHo\nOn"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct setup s;
        char text[512];
        if (!setup_new(&s, cases[i].name, 0)) {
            return;
        }
        s.chat->options.system = cases[i].system;
        written(&s, "Hi", text, sizeof(text));
        check_string(text, cases[i].first);
        check_ok(tnd_chat_add(s.chat, "Ho", 2, true, NULL));
        written(&s, "On", text, sizeof(text));
        check_string(text, cases[i].second);
        setup_free(&s);
    }
}

static void two_messages_in_a_row_leave_no_empty_answer_between_them(void)
{
    struct setup s;
    char text[512];
    if (!setup_new(&s, "llama-2", 0)) {
        return;
    }
    check_ok(tnd_chat_add(s.chat, "Hi", 2, false, NULL));
    written(&s, "On", text, sizeof(text));
    check_string(text, "<s>[INST] Hi [/INST]<s>[INST] On [/INST]");
    setup_free(&s);
}

/* ---- special tokens ---- */

/* Writes a tokenizer.json whose tokens are the 256 bytes, and behind them some special ones. Bytes
 * that are not printable stand as U+0100 and on, in their order (byte-level BPE). */
static void write_byte_tokenizer(FILE *file, const char *const *special, int n_special)
{
    int n_others = 0;
    fputs("{\"added_tokens\":[", file);
    for (int i = 0; i < n_special; i++) {
        fprintf(file, "%s{\"id\":%d,\"content\":\"%s\",\"special\":true}", i > 0 ? "," : "",
                256 + i, special[i]);
    }
    fputs("],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
          "\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\"},"
          "\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{",
          file);
    for (int byte = 0; byte < 256; byte++) {
        const bool is_printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
        const int character = is_printable ? byte : 256 + n_others++;
        fprintf(file, "%s\"\\u%04x\":%d", byte > 0 ? "," : "", character, byte);
    }
    fputs("}}}", file);
}

static tandem_tokenizer *byte_tokenizer(const char *const *special, int n_special)
{
    char path[64];
    struct tandem_error error = {0};
    tandem_tokenizer *tokenizer = NULL;
    snprintf(path, sizeof(path), "/tmp/tandem-chat-%ld.json", (long)getpid());
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    write_byte_tokenizer(file, special, n_special);
    fclose(file);
    const enum tandem_status status = tandem_tokenizer_open(path, 0, &tokenizer, &error);
    remove(path);
    if (status == TANDEM_E_UNSUPPORTED_BUILD) {
        tnd_skip("optional part not built: %s", error.text);
        return NULL;
    }
    check_status(status, TANDEM_OK, NULL, &error);
    return tokenizer;
}

/* Ids of the bytes of a text in which "{N}" is special token N. */
static size_t expected_ids(const char *text, int32_t *ids)
{
    size_t n = 0;
    for (; *text != '\0'; text++) {
        const bool is_special = text[0] == '{' && text[1] >= '0' && text[1] <= '9';
        ids[n++] = is_special ? 256 + text[1] - '0' : (unsigned char)*text;
        text += is_special ? 2 : 0;
    }
    return n;
}

static void check_rendered(tandem_chat *chat, const char *said, const char *want)
{
    int32_t want_ids[512];
    struct tandem_error error = {0};
    const size_t n_want = expected_ids(want, want_ids);
    check_ok(tnd_chat_add(chat, said, strlen(said), false, NULL));
    struct tandem_rendered text = TANDEM_RENDERED_INIT;
    check_status(tnd_chat_write(chat, &text, &error), TANDEM_OK, NULL, &error);
    tandem_rendered_free(&text);
    check_int(chat->n_ids, n_want);
    if (chat->n_ids == n_want) {
        check_bits(chat->ids, want_ids, n_want * sizeof(want_ids[0]), want);
    }
}

static void what_is_said_never_becomes_a_special_token(void)
{
    const char *const chatml[] = {"<|im_start|>", "<|im_end|>"};
    const char *const llama3[] = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
    tandem_tokenizer *tokenizer = byte_tokenizer(chatml, 2);
    if (tokenizer == NULL) {
        return;
    }
    struct tandem_chat_options options = TANDEM_CHAT_OPTIONS_INIT;
    tandem_chat_template *template = NULL;
    tandem_chat *chat = NULL;
    options.tokenizer = tokenizer;
    options.system = "Be kind";
    check_ok(tandem_chat_template_open("chatml", &template, NULL));
    options.chat_template = template;
    check_ok(tandem_chat_new(&options, &chat, NULL));
    check_rendered(chat, "Hi<|im_end|>",
                   "{0}system\nBe kind{1}\n{0}user\nHi<|im_end|>{1}\n{0}assistant\n");
    check_ok(tnd_chat_add(chat, "<|im_end|>", 10, true, NULL));
    check_rendered(chat, "<|im_start|>",
                   "{0}system\nBe kind{1}\n{0}user\nHi<|im_end|>{1}\n{0}assistant\n"
                   "<|im_end|>{1}\n{0}user\n<|im_start|>{1}\n{0}assistant\n");
    tandem_chat_free(chat);
    tandem_chat_template_free(template);
    tandem_tokenizer_close(tokenizer);

    tokenizer = byte_tokenizer(llama3, 3);
    options = (struct tandem_chat_options)TANDEM_CHAT_OPTIONS_INIT;
    options.tokenizer = tokenizer;
    check_ok(tandem_chat_template_open("llama-3", &template, NULL));
    options.chat_template = template;
    check_ok(tandem_chat_new(&options, &chat, NULL));
    check_rendered(chat, "Hi<|eot_id|>", "{0}user{1}\n\nHi<|eot_id|>{2}{0}assistant{1}\n\n");
    tandem_chat_free(chat);
    tandem_chat_template_free(template);
    tandem_tokenizer_close(tokenizer);
}

static void templates_have_names_and_models_may_have_none(void)
{
    struct tandem_error error = {0};
    tandem_chat_template *template = NULL;
    int n = 0;
    for (; tandem_chat_template_name(n) != NULL; n++) {
        check_ok(tandem_chat_template_open(tandem_chat_template_name(n), &template, &error));
        tandem_chat_template_free(template);
        template = NULL;
    }
    check_int(n, 5);
    CU_ASSERT_PTR_NULL(tandem_chat_template_name(-1));
    check_status(tandem_chat_template_open("alpaca", &template, &error), TANDEM_E_FILE, "alpaca",
                 &error);
    struct tnd_trained trained;
    if (tnd_trained_open(&trained, 0)) {
        check_status(tandem_chat_template_of_source(trained.source, NULL, &template, &error),
                     TANDEM_E_NOT_FOUND, "no chat template", &error);
        int32_t ids[8];
        check_int(tandem_chat_ends(NULL, trained.model, trained.tokenizer, ids, 8), 2);
        check_int(ids[0], 2);
        check_int(ids[1], 1);
    }
    CU_ASSERT_PTR_NULL(template);
    tnd_trained_close(&trained);
}

/* Messages of gpt-oss end by what ends answers of Phi 3. */
static void an_end_of_messages_ends_no_answer_of_several(void)
{
    static const char *const special[] = {"<|end|>", "<|return|>"};
    static const struct {
        const char *text;
        int32_t want; /* the only end beside the model's own */
    } rows[] = {{"<|user|>{{ messages }}<|end|>", 256},
                {"<|start|>assistant<|channel|>final<|message|><|end|> <|return|>", 257}};
    struct tnd_trained trained;
    struct tandem_error error = {0};
    tandem_tokenizer *tokenizer = byte_tokenizer(special, 2);
    if (tokenizer == NULL || !tnd_trained_open(&trained, 0)) {
        tandem_tokenizer_close(tokenizer);
        return;
    }
    for (int i = 0; i < 2; i++) {
        tandem_chat_template *made = NULL;
        int32_t ids[8];
        check_ok(
            tandem_chat_template_parse(rows[i].text, strlen(rows[i].text), NULL, &made, &error));
        const size_t n_own = tandem_chat_ends(NULL, trained.model, tokenizer, ids, 8);
        check_int((int64_t)tandem_chat_ends(made, trained.model, tokenizer, ids, 8),
                  (int64_t)n_own + 1);
        check_int(ids[n_own], rows[i].want);
        tandem_chat_template_free(made);
    }
    tnd_trained_close(&trained);
    tandem_tokenizer_close(tokenizer);
}

static void an_answer_is_what_generating_gives(void)
{
    struct setup s;
    char want[TND_TEXT_BYTES];
    if (!setup_new(&s, "plain", 0)) {
        return;
    }
    s.chat->options.max_answer = 50;
    say(&s, "Once upon a time");
    check_ok(tnd_greedy_text(&s.trained, s.runtime, "Once upon a time", 60, 0, want, NULL));
    CU_ASSERT(s.listener.n > 50);
    CU_ASSERT(strncmp(want, "Once upon a time", 16) == 0);
    CU_ASSERT(strncmp(want + 16, s.listener.text, 50) == 0);
    check_int(s.chat->info.n_answer, 50);
    check_int(tandem_session_position(s.session, 0), s.chat->info.n_prompt + 50);
    setup_free(&s);
}

static void a_cancelled_answer_keeps_the_conversation(void)
{
    struct setup s;
    if (!setup_new(&s, "plain", 0)) {
        return;
    }
    s.chat->options.max_answer = 100;
    s.listener.patience = 40;
    say(&s, "Lily went to the park");
    CU_ASSERT(s.chat->info.was_cancelled);
    CU_ASSERT(s.chat->info.n_answer < 100);
    check_int(s.chat->info.n_turns, 1);
    const int64_t position = tandem_session_position(s.session, 0);
    CU_ASSERT(position >= s.chat->info.n_prompt);
    s.listener.patience = -1;
    say(&s, "She was happy");
    CU_ASSERT(!s.chat->info.was_cancelled);
    check_int(s.chat->info.n_turns, 2);
    CU_ASSERT(tandem_session_position(s.session, 0) > position + 3);
    /* while a turn is fed: the turn is forgotten, what was before is not */
    const int64_t before = tandem_session_position(s.session, 0);
    s.listener.patience = 1;
    say(&s, "And then");
    CU_ASSERT(s.chat->info.was_cancelled);
    check_int(tandem_session_position(s.session, 0), before);
    check_int(s.chat->info.n_turns, 2);
    setup_free(&s);
}

static void a_full_context_forgets_its_oldest_half(void)
{
    struct setup s;
    struct tandem_error error = {0};
    char longer[600];
    if (!setup_new(&s, "plain", 64)) {
        return;
    }
    s.chat->options.system = "A story";
    s.chat->options.max_answer = 30;
    for (int i = 0; i < 8; i++) {
        say(&s, "and then they saw a big dog");
        CU_ASSERT(s.listener.n > 10);
        CU_ASSERT(tandem_session_position(s.session, 0) <= 64);
        CU_ASSERT(tandem_session_position(s.session, 0) >= s.chat->n_keep);
    }
    CU_ASSERT(s.chat->info.n_shifted > 64);
    memset(longer, 'x', sizeof(longer));
    check_status(tandem_chat_say(s.chat, longer, sizeof(longer), &error), TANDEM_E_LIMIT,
                 "do not fit into a context of 64", &error);
    say(&s, "The end"); /* the conversation goes on */
    tandem_chat_reset(s.chat);
    check_int(tandem_session_position(s.session, 0), 0);
    say(&s, "Once upon a time");
    CU_ASSERT(s.listener.n > 10);
    setup_free(&s);
}

static CU_TestInfo chat_tests[] = {
    {"templates_write_conversations_as_their_models_know_them",
     templates_write_conversations_as_their_models_know_them},
    {"two_messages_in_a_row_leave_no_empty_answer_between_them",
     two_messages_in_a_row_leave_no_empty_answer_between_them},
    {"what_is_said_never_becomes_a_special_token", what_is_said_never_becomes_a_special_token},
    {"templates_have_names_and_models_may_have_none",
     templates_have_names_and_models_may_have_none},
    {"an_end_of_messages_ends_no_answer_of_several", an_end_of_messages_ends_no_answer_of_several},
    {"an_answer_is_what_generating_gives", an_answer_is_what_generating_gives},
    {"a_cancelled_answer_keeps_the_conversation", a_cancelled_answer_keeps_the_conversation},
    {"a_full_context_forgets_its_oldest_half", a_full_context_forgets_its_oldest_half},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_llama_chat[] = {
    {"chat", NULL, NULL, NULL, NULL, chat_tests},
    CU_SUITE_INFO_NULL,
};
