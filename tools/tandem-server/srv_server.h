/* SPDX-License-Identifier: MIT
 * A server without a network: requests in, replies or jobs out. srv_http.c implements HTTP; tests
 * and fuzzers call these functions directly. */
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
    const struct srv_marks *frame; /* marks of the template around answers; NULL: none */
    const char *api_key;           /* NULL: no key required */
    int64_t max_answer;            /* default number of tokens of an answer */
    int64_t n_cells;
    double max_seconds; /* time limit of a job */
    int64_t started;    /* seconds since 1970 */
    bool is_local;      /* only reachable from this machine */
};

struct srv_request {
    const char *method, *path;
    const char *authorization, *host, *origin; /* headers; NULL: absent */
    const char *body;                          /* {n} */
    size_t n;
};

/** The outcome of a request: a body, or a job whose output is the body. */
struct srv_reply {
    int status; /* HTTP status */
    const char *type;
    const char *allow; /* allowed methods, for 405 */
    struct srv_text body;
    struct srv_job *job; /* NULL: the body is complete */
};

/** Handles a request. The caller frees `reply` (tnd_srv_reply_free). */
void tnd_srv_answer(const struct srv_server *server, const struct srv_request *request,
                    struct srv_reply *reply);
void tnd_srv_reply_free(struct srv_reply *reply);
/** Makes the reply an error in OpenAI's format. */
void tnd_srv_reply_error(struct srv_reply *reply, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- the output of a job ---- */

/** What a reader has received. All zeros: nothing. */
struct srv_reader {
    size_t n_bytes, n_tokens;                 /* sent so far */
    size_t n_reasoning, n_content, n_decided; /* of chats: ends of what was sent */
    int n_calls;
    bool in_frame;
    int n_events, n_items; /* of /v1/responses */
    bool has_message;
    bool has_begun, has_ended;
};

/** Appends the new output of a streamed job to `out`, as server-sent events. True: this was the
 * last. Any thread. */
bool tnd_srv_read_stream(const struct srv_server *server, struct srv_job *job,
                         struct srv_reader *reader, struct srv_text *out);
/** Fills in the reply of a job that is not streamed. False: the job has not ended yet. Any
 * thread. */
bool tnd_srv_read_whole(const struct srv_server *server, struct srv_job *job,
                        struct srv_reply *reply);

#endif
