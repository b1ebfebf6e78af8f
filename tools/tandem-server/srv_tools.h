/* SPDX-License-Identifier: MIT
 * Functions that a model may call: reading them from a request, and describing them in a prompt
 * whose template has no functions. */
#ifndef TANDEM_SERVER_SRV_TOOLS_H
#define TANDEM_SERVER_SRV_TOOLS_H

#include "tools/tandem-server/srv_body.h"
#include "tools/tandem-server/srv_calls.h"

enum { SRV_MAX_TOOLS = 128 };

struct srv_tools {
    cJSON *list; /* owned; NULL: no calls */
    enum srv_call_format format;
    bool must_call;
    bool is_parallel; /* several calls at once */
    char name[65];    /* the one that must be called; "": any */
};

/** Reads tools, tool_choice and parallel_tool_calls. False: the fault is in the body. Call
 * tnd_srv_tools_free in any case. */
bool tnd_srv_tools_read(struct srv_body *body, enum srv_call_format format, struct srv_tools *out);
void tnd_srv_tools_free(struct srv_tools *tools);

/** Appends the description of the functions for the system message. */
void tnd_srv_tools_describe(const struct srv_tools *tools, struct srv_text *out);
/** Appends the calls of an assistant's message as the model would have written them. False: a
 * fault. */
bool tnd_srv_tools_add_calls(struct srv_body *body, enum srv_call_format format,
                             const cJSON *message, struct srv_text *out);
/** Appends the marks before (`is_end` false) or after the result of a call. */
void tnd_srv_tools_add_result(enum srv_call_format format, bool is_end, struct srv_text *out);

#endif
