/* SPDX-License-Identifier: MIT
 * Chat templates as public objects: from names, files and models, to text and to tokens. */
#include "tandem/chat_template.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "formats/template.h"
#include "formats/tnd_tokenizer.h"

struct tandem_chat_template {
    struct tnd_arena arena; /* holds the tree */
    const struct tnd_template_node *tree;
    char *text;
    size_t n;
    char name[96];
};

/* ---- templates that come with the library ---- */

/* After the model cards of Llama 2, Llama 3 and Mistral 7B Instruct and OpenAI's description of
 * ChatML, in the words of this project. */
static const struct {
    const char *name;
    const char *text;
} own_templates[] = {
    {"llama-2", "{% set system = '' %}"
                "{% for message in messages %}"
                "{% if message.role == 'system' %}"
                "{% set system = '<<SYS>>\\n' + message.content + '\\n<</SYS>>\\n\\n' %}"
                "{% endif %}{% endfor %}"
                "{% set first = namespace(system=system) %}"
                "{% for message in messages %}"
                "{% if message.role == 'system' %}"
                "{% set first.system = '<<SYS>>\\n' + message.content + '\\n<</SYS>>\\n\\n' %}"
                "{% elif message.role == 'user' %}"
                "{{ bos_token + '[INST] ' + first.system + message.content + ' [/INST]' }}"
                "{% set first.system = '' %}"
                "{% else %}{{ message.content + eos_token }}{% endif %}{% endfor %}"},
    {"llama-3",
     "{{ bos_token }}{% for message in messages %}"
     "{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content + "
     "'<|eot_id|>' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
     "{% endif %}"},
    {"mistral-instruct",
     "{{ bos_token }}{% set first = namespace(system='') %}{% for message in messages %}"
     "{% if message.role == 'system' %}{% set first.system = message.content + '\\n\\n' %}"
     "{% elif message.role == 'user' %}"
     "{{ '[INST] ' + first.system + message.content + ' [/INST]' }}"
     "{% set first.system = '' %}"
     "{% else %}{{ message.content + eos_token }}{% endif %}{% endfor %}"},
    {"chatml",
     "{% for message in messages %}"
     "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"},
    {"plain", "{% for message in messages %}{{ message.content }}"
              "{% if message.role == 'system' %}{{ '\\n\\n' }}"
              "{% elif message.role == 'assistant' %}{{ '\\n' }}{% endif %}{% endfor %}"},
};
enum { N_OWN = sizeof(own_templates) / sizeof(own_templates[0]) };

const char *tandem_chat_template_name(int i)
{
    return i >= 0 && i < N_OWN ? own_templates[i].name : NULL;
}

/* ---- opening ---- */

static enum tandem_status parse(struct tandem_chat_template *made, struct tandem_error *error)
{
    struct tnd_render render = {
        .arena = &made->arena, .name = made->name, .error = error, .line = 1};
    /* One line end behind a template is none of it, as in Jinja. */
    size_t n = made->n;
    n -= n > 0 && made->text[n - 1] == '\n';
    made->tree = tnd_parse_template(&render, made->text, n);
    return render.status;
}

/* Jinja reads all line ends as \n. */
static size_t copy_lines(char *out, const char *text, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r') {
            out[kept++] = '\n';
            i += i + 1 < n && text[i + 1] == '\n';
        } else {
            out[kept++] = text[i];
        }
    }
    out[kept] = '\0';
    return kept;
}

enum tandem_status tandem_chat_template_parse(const char *text, size_t n, const char *name,
                                              tandem_chat_template **out_template,
                                              struct tandem_error *error)
{
    TND_REQUIRE(text, "tandem_chat_template_parse", error);
    TND_REQUIRE(out_template, "tandem_chat_template_parse", error);
    if (n > TND_TEMPLATE_MAX_BYTES) {
        return tnd_error_set(error, TANDEM_E_LIMIT, "template", (int64_t)n, TND_TEMPLATE_MAX_BYTES,
                             "chat template: %zu bytes, expected at most %d", n,
                             (int)TND_TEMPLATE_MAX_BYTES);
    }
    tandem_chat_template *made = tnd_calloc(1, sizeof(*made));
    char *copy = tnd_calloc(n + 1, 1);
    if (made == NULL || copy == NULL) {
        tnd_free(made);
        tnd_free(copy);
        return tnd_error_set(error, TANDEM_E_MEMORY, "template", (int64_t)n, 0,
                             "chat template: no memory for %zu bytes", n);
    }
    made->text = copy;
    made->n = copy_lines(copy, text, n);
    snprintf(made->name, sizeof(made->name), "%s", name != NULL ? name : "chat template");
    tnd_arena_init(&made->arena, 16384, TND_TEMPLATE_MAX_MEMORY);
    const enum tandem_status status = parse(made, error);
    if (status != TANDEM_OK) {
        tandem_chat_template_free(made);
        return status;
    }
    *out_template = made;
    return TANDEM_OK;
}

static enum tandem_status open_file(const char *path, tandem_chat_template **out_template,
                                    struct tandem_error *error)
{
    struct tnd_file file;
    TND_TRY(tnd_file_read(path, TND_TEMPLATE_MAX_BYTES, &file, error));
    const enum tandem_status status =
        tandem_chat_template_parse((const char *)file.data, file.bytes, path, out_template, error);
    tnd_file_close(&file);
    return status;
}

enum tandem_status tandem_chat_template_open(const char *name_or_path,
                                             tandem_chat_template **out_template,
                                             struct tandem_error *error)
{
    TND_REQUIRE(name_or_path, "tandem_chat_template_open", error);
    TND_REQUIRE(out_template, "tandem_chat_template_open", error);
    for (int i = 0; i < N_OWN; i++) {
        if (strcmp(own_templates[i].name, name_or_path) == 0) {
            return tandem_chat_template_parse(own_templates[i].text, strlen(own_templates[i].text),
                                              name_or_path, out_template, error);
        }
    }
    return open_file(name_or_path, out_template, error);
}

enum tandem_status tandem_chat_template_of_source(const tandem_source *source, const char *which,
                                                  tandem_chat_template **out_template,
                                                  struct tandem_error *error)
{
    TND_REQUIRE(source, "tandem_chat_template_of_source", error);
    TND_REQUIRE(out_template, "tandem_chat_template_of_source", error);
    char key[128];
    const char *text;
    snprintf(key, sizeof(key), "tokenizer.chat_template%s%s", which != NULL ? "." : "",
             which != NULL ? which : "");
    if (!tandem_source_text(source, key, &text) || text[0] == '\0') {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, key, 0, 0,
                             "the model has no chat template%s%s; give one: a file, or llama-2, "
                             "llama-3, mistral-instruct, chatml or plain",
                             which != NULL ? " called " : "", which != NULL ? which : "");
    }
    return tandem_chat_template_parse(text, strlen(text), key, out_template, error);
}

void tandem_chat_template_free(tandem_chat_template *chat_template)
{
    if (chat_template != NULL) {
        tnd_arena_fini(&chat_template->arena);
        tnd_free(chat_template->text);
        tnd_free(chat_template);
    }
}

const char *tandem_chat_template_text(const tandem_chat_template *chat_template, size_t *out_n)
{
    if (out_n != NULL) {
        *out_n = chat_template != NULL ? chat_template->n : 0;
    }
    return chat_template != NULL ? chat_template->text : NULL;
}

/* ---- rendering ---- */

static void set_name(struct tnd_render *render, const char *name, struct tnd_value value)
{
    if (render->status == TANDEM_OK) {
        tnd_scope_set(render, render->globals, (struct tnd_name){name, strlen(name)}, value);
    }
}

static void set_token(struct tnd_render *render, const char *name,
                      const tandem_tokenizer *tokenizer, int32_t id)
{
    if (tokenizer != NULL && id >= 0 && id < tokenizer->n_tokens) {
        const struct tnd_token *token = &tokenizer->tokens[id];
        set_name(render, name, tnd_text_value(render, token->text, token->length, false));
    }
}

static void set_variables(struct tnd_render *render, const char *variables, size_t n,
                          const tandem_tokenizer *tokenizer)
{
    tnd_add_globals(render);
    set_name(render, "tools", tnd_none());
    set_name(render, "documents", tnd_none());
    set_token(render, "bos_token", tokenizer, tandem_tokenizer_bos(tokenizer));
    set_token(render, "eos_token", tokenizer, tandem_tokenizer_eos(tokenizer));
    const struct tnd_value given = tnd_template_read_json(render, variables, n);
    if (render->status == TANDEM_OK && given.kind != TND_KIND_DICT) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "the variables are a %s, expected an object",
                          tnd_kind_name(given));
    }
    for (size_t i = 0; render->status == TANDEM_OK && i < given.as.dict->n; i++) {
        tnd_dict_set(render, &render->globals->names, given.as.dict->members[i].key,
                     given.as.dict->members[i].value);
    }
}

static enum tandem_status hand_out(struct tnd_render *render, const struct tnd_builder *text,
                                   struct tandem_rendered *out)
{
    char *bytes = tnd_calloc(text->n + 1, 1);
    unsigned char *marks = tnd_calloc(text->n + 1, 1);
    if (bytes == NULL || marks == NULL) {
        tnd_free(bytes);
        tnd_free(marks);
        tnd_template_fail(render, TANDEM_E_MEMORY, "no memory for %zu bytes of text", text->n);
        return render->status;
    }
    if (text->n > 0) {
        memcpy(bytes, text->bytes, text->n);
        memcpy(marks, text->origin, text->n);
    }
    out->text = bytes;
    out->n = text->n;
    out->from_variables = marks;
    return TANDEM_OK;
}

enum tandem_status tandem_chat_template_render(const tandem_chat_template *chat_template,
                                               const char *variables, size_t n,
                                               const tandem_tokenizer *tokenizer, int64_t now,
                                               struct tandem_rendered *out_rendered,
                                               struct tandem_error *error)
{
    TND_REQUIRE(chat_template, "tandem_chat_template_render", error);
    TND_REQUIRE(variables, "tandem_chat_template_render", error);
    TND_REQUIRE(out_rendered, "tandem_chat_template_render", error);
    if (out_rendered->size != sizeof(*out_rendered)) {
        return tnd_error_set(error, TANDEM_E_ABI, "tandem_rendered", (int64_t)out_rendered->size,
                             (int64_t)sizeof(*out_rendered),
                             "tandem_chat_template_render: size is %zu, expected that "
                             "of TANDEM_RENDERED_INIT",
                             out_rendered->size);
    }
    struct tnd_arena arena;
    struct tnd_scope globals = {0};
    struct tnd_render render = {.arena = &arena,
                                .name = chat_template->name,
                                .error = error,
                                .globals = &globals,
                                .now = now != 0 ? now : (int64_t)time(NULL)};
    tnd_arena_init(&arena, 65536, TND_TEMPLATE_MAX_MEMORY);
    set_variables(&render, variables, n, tokenizer);
    struct tnd_scope scope = {.parent = &globals};
    struct tnd_builder text = {.render = &render};
    if (render.status == TANDEM_OK) {
        tnd_render_block(&render, chat_template->tree, &scope, &text);
    }
    if (render.status == TANDEM_OK) {
        (void)hand_out(&render, &text, out_rendered);
    }
    tnd_arena_fini(&arena);
    return render.status;
}

void tandem_rendered_free(struct tandem_rendered *rendered)
{
    if (rendered != NULL) {
        tnd_free(rendered->text);
        tnd_free(rendered->from_variables);
        *rendered = (struct tandem_rendered)TANDEM_RENDERED_INIT;
    }
}

enum tandem_status tandem_rendered_encode(const tandem_tokenizer *tokenizer,
                                          const struct tandem_rendered *rendered, int32_t *out_ids,
                                          size_t capacity, size_t *out_n,
                                          struct tandem_error *error)
{
    TND_REQUIRE(rendered, "tandem_rendered_encode", error);
    if (rendered->size != sizeof(*rendered)) {
        return tnd_error_set(error, TANDEM_E_ABI, "tandem_rendered", (int64_t)rendered->size,
                             (int64_t)sizeof(*rendered),
                             "tandem_rendered_encode: size is %zu, expected that "
                             "of TANDEM_RENDERED_INIT",
                             rendered->size);
    }
    return tnd_tokenizer_encode_marked(tokenizer, rendered->text, rendered->n,
                                       rendered->from_variables, out_ids, capacity, out_n, error);
}
