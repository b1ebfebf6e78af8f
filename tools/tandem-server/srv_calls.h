/* SPDX-License-Identifier: MIT
 * Splits a model's output into its reasoning, its answer, and function calls, in the formats of
 * chat templates. The output is untrusted: an incomplete call stays text. */
#ifndef TANDEM_SERVER_SRV_CALLS_H
#define TANDEM_SERVER_SRV_CALLS_H

#include <cjson/cJSON.h>

#include "tools/tandem-server/srv_text.h"

/** Formats of function calls, recognised by texts in the template. */
enum srv_call_format {
    SRV_CALLS_HERMES,      /* <tool_call>{"name":..,"arguments":{..}}</tool_call> (Hermes, Qwen) */
    SRV_CALLS_TAGS,        /* <function=NAME><parameter=KEY>VALUE</parameter>.. (Qwen3-Coder) */
    SRV_CALLS_LLAMA3,      /* {"name":..,"parameters":{..}}, maybe after <|python_tag|> */
    SRV_CALLS_MISTRAL,     /* [TOOL_CALLS][{"name":..},..] or [TOOL_CALLS]NAME[ARGS]{..} */
    SRV_CALLS_DEEPSEEK,    /* <|tool_call_begin|>..<|tool_sep|>.., with special bars and blanks */
    SRV_CALLS_KIMI,        /* <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{..} */
    SRV_CALLS_GLM,         /* <tool_call>NAME<arg_key>..</arg_key><arg_value>..</arg_value>.. */
    SRV_CALLS_GLM4,        /* NAME, a newline, {..} (GLM-4-0414) */
    SRV_CALLS_GRANITE,     /* <|tool_call|>[{..}] (Granite 3), functools[{..}] (Phi-4-mini) */
    SRV_CALLS_COMMAND,     /* <|START_ACTION|>[{"tool_name":..,"parameters":{..}}]<|END_ACTION|> */
    SRV_CALLS_HUNYUAN,     /* <tool_calls>[{..}]</tool_calls> */
    SRV_CALLS_HARMONY,     /* <|channel|>commentary to=functions.NAME..<|message|>{..} (gpt-oss) */
    SRV_CALLS_FUNCTIONARY, /* <function=NAME>{..}</function> */
    SRV_CALLS_GENERIC,     /* {"name":..,"arguments":{..}}, or {"tool_calls":[..]} */
    SRV_N_CALL_FORMATS
};

enum { SRV_MAX_CALLS = 32, SRV_MAX_SPANS = 32 };

/** A function call. */
struct srv_call {
    char name[65];
    char id[41];               /* given by the model; "" */
    struct srv_text arguments; /* JSON */
};

struct srv_span {
    size_t begin, end; /* bytes of the text; equal: empty */
};

/** Pieces of the text in order. When the list is full, the last one is extended to the end of each
 * further piece. */
struct srv_spans {
    struct srv_span items[SRV_MAX_SPANS];
    int n;
};

/** Marks around a part of the output. */
struct srv_marks {
    const char *begin, *end;
};

struct srv_answer {
    struct srv_spans reasoning;
    struct srv_spans content; /* before, between and after the calls */
    struct srv_call calls[SRV_MAX_CALLS];
    int n_calls;
    size_t n_decided; /* bytes of the text that the next reading may skip, see the options */
    bool in_frame;    /* n_decided lies within the frame */
    bool is_thinking; /* the reasoning is incomplete */
    bool failed;      /* out of memory */
};

struct srv_answer_options {
    bool has_calls; /* functions may be called, in `format` */
    enum srv_call_format format;
    const cJSON *tools;   /* of the request; NULL: accept any name, values have no types */
    bool takes_reasoning; /* reasoning is split off */
    const struct srv_marks *thinking; /* the prompt ends within these marks; NULL: within none */
    const struct srv_marks *frame;    /* around the answer, which may lack them; NULL: none */
    size_t n_decided; /* of the previous reading, which reported all content up to there */
    bool in_frame;
};

/** Reads the text so far. Unless `is_final`, text that may become a call, or the end of a mark,
 * belongs to no part. Call tnd_srv_answer_free in any case. */
void tnd_srv_answer_read(const struct srv_answer_options *options, const char *text, size_t n,
                         bool is_final, struct srv_answer *out);
void tnd_srv_answer_free(struct srv_answer *answer);

/** False: unknown name. */
bool tnd_srv_call_format_from_name(const char *name, enum srv_call_format *out);
const char *tnd_srv_call_format_name(enum srv_call_format format);
/** The format that a template's text indicates; generic if none. */
enum srv_call_format tnd_srv_call_format_of(const char *template_text);
/** The marks that a template puts around answers; NULL: none. */
const struct srv_marks *tnd_srv_frame_of(const char *template_text);
/** The i-th marks around reasoning, from 0; NULL: no more. */
const struct srv_marks *tnd_srv_reasoning_at(int i);
/** Strings of the formats that models write as special tokens; NULL ends the list. */
const char *const *tnd_srv_call_marks(void);

/** The definition of a function in the request; NULL: no function of this name. */
const cJSON *tnd_srv_tool_find(const cJSON *tools, const char *name);

#endif
