/* SPDX-License-Identifier: MIT
 * tandem-server: serves a model's texts over HTTP. docs/server.md describes the interface. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tandem/mapped.h"
#include "tools/args.h"
#include "tools/cache_option.h"
#include "tools/pooling_option.h"
#include "tools/tandem-server/srv_open.h"
#include "tools/tandem-server/srv_saved.h"
#include "tools/say.h"

enum { RESTART = 75 }; /* EX_TEMPFAIL: try again */

struct options {
    struct srv_settings settings;
    struct srv_http_options http;
    int64_t port, max_body, connections, idle, receive, per_address, timeout, grace;
};

static int fail(const struct tandem_error *error)
{
    fprintf(stderr, "tandem-server: %s\n", error->text);
    return 1;
}

/* Signals that end the server are received with sigwait. They are blocked before any thread exists,
 * MPI's included, since threads inherit the mask. */
static void hold_signals(sigset_t *set)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, set, NULL);
}

/* A second signal ends the server at once. (Launchers of ranks send several, and kill processes
 * that do not end.) */
static void wait_for_end(const sigset_t *set)
{
    int which = 0;
    while (sigwait(set, &which) != 0) {
    }
    if (tandem_communicator_launched() < 2) {
        (void)pthread_sigmask(SIG_UNBLOCK, set, NULL);
        tnd_say("tandem-server: ends; again: at once\n");
    } else {
        tnd_say("tandem-server: ends\n");
    }
}

/* Saves the texts in the cache, those of unfinished requests too. */
static void save_texts(const struct options *options, const struct srv_kit *kit)
{
    struct tandem_error error = {0};
    if (options->settings.saved != NULL &&
        tnd_srv_save(kit->engine, options->settings.saved, &error) != TANDEM_OK) {
        (void)fail(&error);
    }
}

static void say_where(const struct options *options, const struct srv_kit *kit,
                      const struct srv_http *http)
{
    const char *host = options->http.host;
    const bool is_v6 = strchr(host, ':') != NULL;
    tnd_say("tandem-server: %s: ", kit->server.model_name);
    if (tnd_srv_http_port(http) == 0) {
        tnd_say("%s\n", host);
    } else {
        tnd_say("http://%s%s%s:%d\n", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
                tnd_srv_http_port(http));
    }
}

static int serve(struct options *options, struct srv_kit *kit, const sigset_t *signals)
{
    struct tandem_error error = {0};
    options->http.port = (int)options->port;
    options->http.max_body = (size_t)options->max_body << 10;
    options->http.max_connections = (int)options->connections;
    options->http.idle_seconds = (double)options->idle;
    options->http.receive_seconds = (double)options->receive;
    options->http.max_of_address =
        (int)(options->per_address > 0
                  ? options->per_address
                  : (options->settings.parallel + options->settings.queue + 1) / 2);
    kit->server.max_seconds = (double)options->timeout;
    struct srv_http *http = tnd_srv_http_start(&kit->server, &options->http, &error);
    if (http == NULL) {
        return fail(&error);
    }
    if (!kit->server.is_local && tnd_srv_http_port(http) != 0 && kit->server.api_key == NULL) {
        tnd_say("tandem-server: note: other machines may ask without a key "
                "(--api-key-file)\n");
    }
    const bool is_started = tnd_srv_engine_start(kit->engine, &error) == TANDEM_OK;
    if (is_started) {
        say_where(options, kit, http);
        wait_for_end(signals);
    }
    tnd_srv_http_close(http);
    tnd_srv_engine_stop(kit->engine, (double)options->grace);
    tnd_srv_http_stop(http, 5.0);
    if (tnd_srv_engine_is_lost(kit->engine)) {
        return RESTART; /* a launcher may restart all ranks */
    }
    save_texts(options, kit);
    return is_started ? 0 : fail(&error);
}

static int run(struct options *options, const sigset_t *signals)
{
    struct srv_kit kit = {0};
    struct tandem_error error = {0};
    (void)tandem_guard_mapped_files(NULL);
    const enum tandem_status status = tnd_srv_open(&kit, &options->settings, &error);
    const int code = status == TANDEM_OK ? serve(options, &kit, signals) : fail(&error);
    tnd_srv_close(&kit);
    return code;
}

int main(int argc, char **argv)
{
    struct options o = {
        .settings = {.context = 4096, .parallel = 8, .queue = 64, .answer = 1024, .delay_ms = 200},
        .http = {.host = "127.0.0.1"},
        .port = 8080,
        .max_body = 4096,
        .connections = 256,
        .idle = 60,
        .receive = 20,
        .timeout = 600,
        .grace = 30};
    const struct args_option rows[] = {
        {"host", ARGS_STRING, &o.http.host, 0, 0, "ADDRESS",
         "where to listen; 127.0.0.1: this machine alone; unix:PATH: a Unix socket"},
        {"port", ARGS_INT, &o.port, 0, 65535, "N", "0: a free one; 8080"},
        {"api-key-file", ARGS_STRING, &o.settings.key_file, 0, 0, "FILE",
         "its first line is the key that requests need"},
        {"alias", ARGS_STRING, &o.settings.alias, 0, 0, "NAME", "of the model; the file's name"},
        {"chat-template", ARGS_STRING, &o.settings.chat_template, 0, 0, "FILE|NAME",
         "a file, or llama-2, llama-3, mistral-instruct, chatml, plain; the model's own"},
        {"tool-format", ARGS_STRING, &o.settings.call_format, 0, 0, "NAME",
         "how functions are called: hermes, tags, llama-3, mistral, deepseek, kimi, glm, glm-4, "
         "granite, command-r, hunyuan, harmony, functionary, generic; by the template"},
        {"t", ARGS_STRING, &o.settings.tokenizer, 0, 0, "FILE",
         "tokenizer; default: the model file's own"},
        {"type", ARGS_STRING, &o.settings.type, 0, 0, "TYPE",
         "convert the weights first (q4_0, f16, ...)"},
        {"cache", ARGS_STRING, &o.settings.cache_type, 0, 0, "TYPE",
         "of keys and values: " TND_CACHE_OPTION_TYPES "; f16"},
        {"pooling", ARGS_STRING, &o.settings.pooling, 0, 0, "HOW",
         "of embeddings: " TND_POOLING_OPTION_HELP},
        {"context", ARGS_INT, &o.settings.context, 64, 1e7, "N", "tokens of a text; 4096"},
        {"cells", ARGS_INT, &o.settings.cells, 0, 1e8, "N",
         "tokens of all texts; 0: twice the context"},
        {"parallel", ARGS_INT, &o.settings.parallel, 1, SRV_MAX_PARALLEL, "N", "texts at once; 8"},
        {"queue", ARGS_INT, &o.settings.queue, 0, 1e6, "N", "requests that may wait; 64"},
        {"answer", ARGS_INT, &o.settings.answer, 1, 1e7, "N",
         "tokens of an answer if the request does not say; 1024"},
        {"delay", ARGS_INT, &o.settings.delay_ms, 1, 1e6, "MS",
         "that prompts may keep running texts waiting; 200"},
        {"timeout", ARGS_INT, &o.timeout, 1, 1e7, "S", "of a request, with waiting; 600"},
        {"grace", ARGS_INT, &o.grace, 0, 1e6, "S", "after SIGTERM requests in hand may take; 30"},
        {"max-body", ARGS_INT, &o.max_body, 1, 1e6, "KIB", "of a request; 4096"},
        {"connections", ARGS_INT, &o.connections, 1, 60000, "N", "at once; 256"},
        {"per-address", ARGS_INT, &o.per_address, 0, 1e6, "N",
         "requests of another machine at once; 0: half of --parallel and --queue"},
        {"idle", ARGS_INT, &o.idle, 1, 1e6, "S",
         "between requests of a connection, and for a client to read on; 60"},
        {"receive", ARGS_INT, &o.receive, 1, 1e6, "S",
         "for the headers of a request to come, and again for its body; 20"},
        {"save", ARGS_STRING, &o.settings.saved, 0, 0, "FILE",
         "keep texts with their keys and values here from one run to the next"},
        {"threads", ARGS_INT, &o.settings.threads, 0, 1024, "N", "threads; one a core"},
        {"table", ARGS_STRING, &o.settings.table, 0, 0, "FILE",
         "timing table; none: the rule; default: this machine's"},
        {"profile", ARGS_STRING, &o.settings.profile, 0, 0, "NAME",
         "force a profile wherever it applies"},
        {"device", ARGS_STRING, &o.settings.device, 0, 0, "SEL", TND_DEVICE_OPTION_HELP},
        {"settings", ARGS_STRING, &o.settings.settings, 0, 0, "TEXT",
         "of backends, as cpu:packed=4096,rows=release"},
        {"draft", ARGS_STRING, &o.settings.draft, 0, 0, "lookup|FILE", TND_DRAFT_OPTION_HELP},
        {"pack-cache", ARGS_STRING, &o.settings.pack_cache, 0, 0, "DIR", TND_PACK_OPTION_HELP},
        TND_RANKS_ROWS(&o.settings.ranks),
    };
    const struct args_command command = {"",
                                         "MODEL",
                                         "Serves texts of a model over HTTP (docs/server.md).",
                                         rows,
                                         (int)(sizeof(rows) / sizeof(rows[0])),
                                         1,
                                         1};
    args_program = "tandem-server";
    if (argc == 2 && strcmp(argv[1], "help") == 0) {
        args_help(&command);
        return 0;
    }
    argc = tnd_plugin_option_take(argc, argv);
    const int result = args_parse(&command, argc, argv, &o.settings.model, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    sigset_t signals;
    hold_signals(&signals);
    return tnd_ranks_begin() ? tnd_ranks_end(run(&o, &signals)) : 1;
}
