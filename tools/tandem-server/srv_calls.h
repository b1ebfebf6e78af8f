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
    SRV_CALLS_KIMI,        /* <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{..} */
    SRV_CALLS_GLM,         /* <tool_call>NAME<arg_key>..</arg_key><arg_value>..</arg_value>.. */
    SRV_CALLS_GLM4,        /* NAME, a line's end, {..} (GLM-4-0414) */
    SRV_CALLS_GRANITE,     /* <|tool_call|>[{..}] (Granite 3), functools[{..}] (Phi-4-mini) */
    SRV_CALLS_COMMAND,     /* <|START_ACTION|>[{"tool_name":..,"parameters":{..}}]<|END_ACTION|> */
    SRV_CALLS_HUNYUAN,     /* <tool_calls>[{..}]</tool_calls> */
    SRV_CALLS_HARMONY,     /* <|channel|>commentary to=functions.NAME..<|message|>{..} (gpt-oss) */
    SRV_CALLS_FUNCTIONARY, /* <function=NAME>{..}</function> */
    SRV_CALLS_GENERIC,     /* {"name":..,"arguments":{..}}, or {"tool_calls":[..]} */
    SRV_N_CALL_FORMATS
};

enum { SRV_MAX_CALLS = 32, SRV_MAX_SPANS = 32 };

/** A function that is called. */
struct srv_call {
    char name[65];
    char id[41];               /* that the model gave; "" */
    struct srv_text arguments; /* JSON */
};

struct srv_span {
    size_t begin, end; /* of the text; equal: nothing */
};

/** Pieces of the text in its order. When there is room for no more, the last one goes on to the end
 *  of what would have been the next. */
struct srv_spans {
    struct srv_span items[SRV_MAX_SPANS];
    int n;
};

/** Marks around a part of an answer. */
struct srv_marks {
    const char *begin, *end;
};

struct srv_answer {
    struct srv_spans reasoning;
    struct srv_spans content; /* in front of the calls, between and behind them */
    struct srv_call calls[SRV_MAX_CALLS];
    int n_calls;
    size_t n_decided; /* of the text: a later reading may begin there, see the options */
    bool in_frame;    /* ..which is within the frame */
    bool is_thinking; /* the reasoning is not done */
    bool failed;      /* no memory */
};

struct srv_answer_options {
    bool has_calls; /* functions may be called, in `format` */
    enum srv_call_format format;
    const cJSON *tools;   /* of the request; NULL: any name is one, values have no types */
    bool takes_reasoning; /* reasoning is told apart */
    const struct srv_marks *thinking; /* the prompt ends within these marks; NULL: it does not */
    const struct srv_marks *frame; /* around the answer itself, which may lack them; NULL: none */
    size_t n_decided; /* of an earlier reading, which has told all content up to there */
    bool in_frame;
};

/** Reads the text so far. Until it `is_final` what may become a call, or the end of a mark, belongs
 *  to nothing. tnd_srv_answer_free in any case. */
void tnd_srv_answer_read(const struct srv_answer_options *options, const char *text, size_t n,
                         bool is_final, struct srv_answer *out);
void tnd_srv_answer_free(struct srv_answer *answer);

/** False: no format has this name. */
bool tnd_srv_call_format_from_name(const char *name, enum srv_call_format *out);
const char *tnd_srv_call_format_name(enum srv_call_format format);
/** The format that the text of a template shows; generic where it shows none. */
enum srv_call_format tnd_srv_call_format_of(const char *template_text);
/** The marks around answers that a template writes; NULL: none. */
const struct srv_marks *tnd_srv_frame_of(const char *template_text);
/** The marks around reasoning, numbered from 0; NULL: there are no more. */
const struct srv_marks *tnd_srv_reasoning_at(int i);
/** Texts that belong to the format, which the model writes as special tokens; ends with NULL. */
const char *const *tnd_srv_call_marks(void);

/** The definition of a function of the request; NULL: there is none of this name. */
const cJSON *tnd_srv_tool_find(const cJSON *tools, const char *name);

#endif
