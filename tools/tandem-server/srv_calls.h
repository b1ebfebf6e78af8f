/* SPDX-License-Identifier: MIT
 * What a model has written, taken apart: its reasoning, its answer, and the functions that it
 * calls, in the formats of templates. Nobody trusts the text: what is not whole is text as it
 * stands. */
#ifndef TANDEM_SERVER_SRV_CALLS_H
#define TANDEM_SERVER_SRV_CALLS_H

#include <cjson/cJSON.h>

#include "tools/tandem-server/srv_text.h"

/** How functions are called; by the texts in a template that say so. */
enum srv_call_format {
    SRV_CALLS_HERMES,      /* <tool_call>{"name":..,"arguments":{..}}</tool_call> (Hermes, Qwen) */
    SRV_CALLS_TAGS,        /* <function=NAME><parameter=KEY>VALUE</parameter>.. (Qwen3-Coder) */
    SRV_CALLS_LLAMA3,      /* {"name":..,"parameters":{..}}, <|python_tag|> in front or not */
    SRV_CALLS_MISTRAL,     /* [TOOL_CALLS][{"name":..},..] or [TOOL_CALLS]NAME[ARGS]{..} */
    SRV_CALLS_DEEPSEEK,    /* <|tool_call_begin|>..<|tool_sep|>.., with its own bars and blanks */
    SRV_CALLS_FUNCTIONARY, /* <function=NAME>{..}</function> */
    SRV_CALLS_GENERIC,     /* {"name":..,"arguments":{..}}, or {"tool_calls":[..]} */
    SRV_N_CALL_FORMATS
};

enum { SRV_MAX_CALLS = 32 };

/** A function that is called. */
struct srv_call {
    char name[65];
    char id[41];               /* that the model gave; "" */
    struct srv_text arguments; /* JSON */
};

struct srv_span {
    size_t begin, end; /* of the text; equal: nothing */
};

struct srv_answer {
    struct srv_span reasoning; /* within <think> */
    struct srv_span content;   /* in front of the calls */
    struct srv_span rest;      /* behind them */
    struct srv_call calls[SRV_MAX_CALLS];
    int n_calls;
    bool is_thinking; /* the reasoning is not done */
    bool failed;      /* no memory */
};

struct srv_answer_options {
    bool has_calls; /* functions may be called, in `format` */
    enum srv_call_format format;
    const cJSON *tools;   /* of the request; NULL: any name is one, values have no types */
    bool takes_reasoning; /* <think> is told apart */
    bool is_thinking;     /* the prompt ends within it */
    size_t n_decided;     /* bytes that an earlier reading has found to be reasoning and content */
};

/** Reads the text so far. Until it `is_final` what may become a call, or the end of a mark, belongs
 *  to nothing. tnd_srv_answer_free in any case. */
void tnd_srv_answer_read(const struct srv_answer_options *options, const char *text, size_t n,
                         bool is_final, struct srv_answer *out);
void tnd_srv_answer_free(struct srv_answer *answer);

/** hermes, tags, llama-3, mistral, deepseek, functionary, generic. False: none of them. */
bool tnd_srv_call_format_from_name(const char *name, enum srv_call_format *out);
const char *tnd_srv_call_format_name(enum srv_call_format format);
/** The format that the text of a template shows; generic where it shows none. */
enum srv_call_format tnd_srv_call_format_of(const char *template_text);
/** Texts that belong to the format, which the model writes as special tokens; ends with NULL. */
const char *const *tnd_srv_call_marks(void);

/** The definition of a function of the request; NULL: there is none of this name. */
const cJSON *tnd_srv_tool_find(const cJSON *tools, const char *name);

#endif
