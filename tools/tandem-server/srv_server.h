/* SPDX-License-Identifier: MIT
 * A server without a network: requests go in, replies or jobs come out. What speaks HTTP is
 * srv_http.c; tests and fuzzers call what is here. */
#ifndef TANDEM_SERVER_SRV_SERVER_H
#define TANDEM_SERVER_SRV_SERVER_H

#include "tools/tandem-server/srv_engine.h"
#include "tools/tandem-server/srv_text.h"

struct srv_server {
    struct srv_engine *engine;
    const tandem_model *model;
    const tandem_tokenizer *tokenizer;
    const struct srv_vocabulary *vocabulary;
    const char *model_name;
    const tandem_chat_template *chat_template; /* NULL: the model has none */
    enum srv_call_format call_format;
    const struct srv_marks *frame; /* around answers, by the template; NULL: none */
    const char *api_key;           /* NULL: none is asked for */
    int64_t max_answer;            /* tokens of an answer where the request says nothing */
    int64_t n_cells;
    double max_seconds; /* of a job */
    int64_t started;    /* seconds since 1970 */
    bool is_local;      /* bound to this machine alone */
};

struct srv_request {
    const char *method, *path;
    const char *authorization, *host, *origin; /* headers; NULL: absent */
    const char *body;                          /* {n} */
    size_t n;
};

/** What comes of a request: a body, or a job whose output is the body. */
struct srv_reply {
    int status; /* of HTTP */
    const char *type;
    const char *allow; /* methods, with 405 */
    struct srv_text body;
    struct srv_job *job; /* NULL: the body is complete */
};

/** Answers a request. `reply` is the caller's (tnd_srv_reply_free). */
void tnd_srv_answer(const struct srv_server *server, const struct srv_request *request,
                    struct srv_reply *reply);
void tnd_srv_reply_free(struct srv_reply *reply);
/** Makes an error of the reply, as clients of OpenAI's interface read it. */
void tnd_srv_reply_error(struct srv_reply *reply, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- the output of a job ---- */

/** How far a reader is. All zeros: at the start. */
struct srv_reader {
    size_t n_bytes, n_tokens;                 /* that were told */
    size_t n_reasoning, n_content, n_decided; /* of chats: where what was told ends */
    int n_calls;
    bool in_frame;
    int n_events, n_items; /* of responses */
    bool has_message;
    bool has_begun, has_ended;
};

/** Appends to `out` what there is new of a streamed job, as server-sent events. True: this was the
 *  last. Any thread. */
bool tnd_srv_read_stream(const struct srv_server *server, struct srv_job *job,
                         struct srv_reader *reader, struct srv_text *out);
/** Fills the reply of a job that is not streamed. False: it is not done yet. Any thread. */
bool tnd_srv_read_whole(const struct srv_server *server, struct srv_job *job,
                        struct srv_reply *reply);

#endif
