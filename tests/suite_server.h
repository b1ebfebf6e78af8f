/* SPDX-License-Identifier: MIT
 * What the suites of tandem-server share: a server of the trained model, without a network. */
#ifndef TND_TESTS_SUITE_SERVER_H
#define TND_TESTS_SUITE_SERVER_H

#include "tests/support.h"
#include "tools/tandem-server/srv_server.h"

struct tnd_served {
    tandem_source *source;
    tandem_model *model;
    tandem_tokenizer *tokenizer;
    tandem_runtime *runtime;
    tandem_chat_template *chat_template; /* plain text */
    struct srv_vocabulary vocabulary;
    struct srv_server server;
};

/** Options that matter to tests; zeros: those of tnd_served_open. */
struct tnd_served_options {
    const char *model, *tokenizer; /* NULL: those of the test data */
    int64_t context, n_cells;
    int n_parallel, max_queue;
    double delay_ms;
};

/** False after a skip when there is no model. */
bool tnd_served_open(struct tnd_served *served, const struct tnd_served_options *options);
/** Cancels what is left. */
void tnd_served_close(struct tnd_served *served);

/** Asks POST `path` with `body` (GET without one). `reply` is the caller's. */
void tnd_ask(const struct tnd_served *served, const char *path, const char *body,
             struct srv_reply *reply);
/** The same, steps until there is a whole reply, and returns its status; its body goes to `out`
 *  (terminated, cut to `capacity`). Streams are read as they come. */
int tnd_ask_whole(const struct tnd_served *served, const char *path, const char *body, char *out,
                  size_t capacity);
/** Steps until a job has ended. */
void tnd_run_job(const struct tnd_served *served, const struct srv_job *job);

#endif
