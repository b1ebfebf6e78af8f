/* SPDX-License-Identifier: MIT
 * room: formats
 *
 * Chat templates: how a conversation is written for a model that was trained on it. The template
 * comes with the model and is a program in the language of Jinja; it is evaluated as transformers'
 * apply_chat_template does it, bounded in steps, depth, memory and output. */
#ifndef TANDEM_CHAT_TEMPLATE_H
#define TANDEM_CHAT_TEMPLATE_H

#include "tandem/tokenizer.h"

TANDEM_BEGIN_C

/** Opaque. A parsed template. Never changed, so that any number of threads may use it. */
typedef struct tandem_chat_template tandem_chat_template;

/** Parses `n` bytes of a template; `name` (may be NULL) is for messages. Unsupported parts of the
 * language are refused here, with their line: including other templates, unpacking arguments,
 * unknown filters and tests (inside a condition these fail when they are reached). The caller owns
 * the template. Any thread. Errors: ARGUMENT, FORMAT, UNSUPPORTED_BUILD, LIMIT (more than 1 MiB,
 * nested too deep), MEMORY. */
TANDEM_API enum tandem_status tandem_chat_template_parse(const char *text, size_t n,
                                                         const char *name,
                                                         tandem_chat_template **out_template,
                                                         struct tandem_error *error);
/** A template by its name (tandem_chat_template_name), else from the file of that path. Any thread.
 *  Errors: as above, and FILE. */
TANDEM_API enum tandem_status tandem_chat_template_open(const char *name_or_path,
                                                        tandem_chat_template **out_template,
                                                        struct tandem_error *error);
/** The template of a model file: its value `tokenizer.chat_template`, or for a `which` that is not
 *  NULL ("tool_use", "rag") `tokenizer.chat_template.WHICH`. A folder of Hugging Face has them in
 *  chat_template.jinja, chat_template.json or tokenizer_config.json. Any thread. Errors: NOT_FOUND
 *  (the model has none), those of tandem_chat_template_parse. */
TANDEM_API enum tandem_status tandem_chat_template_of_source(const tandem_source *source,
                                                             const char *which,
                                                             tandem_chat_template **out_template,
                                                             struct tandem_error *error);
/** NULL is allowed. Never fails. One thread at a time. */
TANDEM_API void tandem_chat_template_free(tandem_chat_template *chat_template);

/** Name of the i-th template that comes with the library ("llama-2", "llama-3", "mistral-instruct",
 * "chatml", "plain"); NULL after the last. Never fails. Any thread. */
TANDEM_API const char *tandem_chat_template_name(int i);
/** The template's text, borrowed, and its length in bytes (`out_n` may be NULL). Never fails. Any
 *  thread. */
TANDEM_API const char *tandem_chat_template_text(const tandem_chat_template *chat_template,
                                                 size_t *out_n);

/** A conversation as text. Free it with tandem_rendered_free. */
struct tandem_rendered {
    size_t size; /**< sizeof(struct tandem_rendered); 0 is an error */
    char *text;  /**< UTF-8, terminated */
    size_t n;    /**< bytes, without the zero */
    /** {n}: 0 where the byte is from the template, 1 where it is from the variables. A control
     * token counts only if all of its bytes are from the template. */
    unsigned char *from_variables;
};
#define TANDEM_RENDERED_INIT                                                                       \
    {                                                                                              \
        sizeof(struct tandem_rendered), NULL, 0, NULL                                              \
    }
/** Evaluates the template. `variables` is a JSON object of n bytes, whose members are the
 * template's variables: "messages" (a list of objects with "role" and "content"), "tools",
 * "add_generation_prompt" (true: the answer of the assistant follows), "enable_thinking",
 * "documents" and whatever else the template uses; the order of members is kept. "tools" and
 * "documents" are none unless they are given. `tokenizer` (may be NULL) defines bos_token,
 * eos_token and the like. `now`: seconds since 1970 for strftime_now; 0: the clock. Any thread.
 * Errors: ARGUMENT (also: the template refuses the conversation by raise_exception; the message has
 * its words), ABI, FORMAT (not JSON; also an operation that Python refuses), UNSUPPORTED_BUILD,
 * LIMIT (steps, depth, 64 MiB of text), MEMORY. */
TANDEM_API enum tandem_status
tandem_chat_template_render(const tandem_chat_template *chat_template, const char *variables,
                            size_t n, const tandem_tokenizer *tokenizer, int64_t now,
                            struct tandem_rendered *out_rendered, struct tandem_error *error);
/** Frees text and marks; the structure can be used again. NULL is allowed. Never fails. One thread
 *  at a time. */
TANDEM_API void tandem_rendered_free(struct tandem_rendered *rendered);
/** The tokens of a rendered conversation. Control tokens from the template become single tokens;
 * text from the variables stays text, whatever it spells. The beginning token is prepended if the
 * tokenizer wants it and the template has not written it. Writes at most `capacity` ids and stores
 * the number of all in `out_n`. Any thread. Errors: as tandem_tokenizer_encode, and ABI. */
TANDEM_API enum tandem_status tandem_rendered_encode(const tandem_tokenizer *tokenizer,
                                                     const struct tandem_rendered *rendered,
                                                     int32_t *out_ids, size_t capacity,
                                                     size_t *out_n, struct tandem_error *error);

TANDEM_END_C
#endif
