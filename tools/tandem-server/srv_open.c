/* SPDX-License-Identifier: MIT
 * Opening a model, a runtime and an engine. */
#include "tools/tandem-server/srv_open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/cache_option.h"
#include "tools/pooling_option.h"
#include "tools/runtime_option.h"
#include "tools/tandem-server/srv_saved.h"
#include "tools/say.h"

/* Returns a failure to the caller. */
#define SRV_TRY(expression)                                                                        \
    do {                                                                                           \
        const enum tandem_status srv_try_status_ = (expression);                                   \
        if (srv_try_status_ != TANDEM_OK) {                                                        \
            return srv_try_status_;                                                                \
        }                                                                                          \
    } while (0)

static enum tandem_status fail(struct tandem_error *error, enum tandem_status status,
                               const char *what, const char *text)
{
    snprintf(error->text, sizeof(error->text), "%s '%.100s'", what, text);
    return status;
}

static enum tandem_status read_type(const char *name, enum tandem_type *out,
                                    struct tandem_error *error)
{
    if (name != NULL && !tandem_type_from_name(name, out)) {
        return fail(error, TANDEM_E_ARGUMENT, "unknown type", name);
    }
    return TANDEM_OK;
}

/* Reads the first line of a file. */
static enum tandem_status read_key(struct srv_kit *kit, const char *path,
                                   struct tandem_error *error)
{
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    if (path == NULL) {
        return TANDEM_OK;
    }
    if (file == NULL) {
        return fail(error, TANDEM_E_FILE, strerror(errno), path);
    }
    const bool is_read = fgets(kit->api_key, sizeof(kit->api_key), file) != NULL;
    (void)fclose(file);
    kit->api_key[strcspn(kit->api_key, "\r\n")] = '\0';
    if (!is_read || kit->api_key[0] == '\0' || strlen(kit->api_key) > 250) {
        return fail(error, TANDEM_E_FORMAT, "expected a key of 1 to 250 bytes in", path);
    }
    kit->server.api_key = kit->api_key;
    return TANDEM_OK;
}

static enum tandem_status open_model(struct srv_kit *kit, const struct srv_settings *settings,
                                     struct tandem_error *error)
{
    enum tandem_type target = TANDEM_TYPE_F32;
    tandem_source *source;
    SRV_TRY(read_type(settings->type, &target, error));
    const char *path =
        tnd_ranks_model_path(&settings->ranks, settings->model, settings->type != NULL, error);
    if (path == NULL) {
        return error->status;
    }
    SRV_TRY(tandem_source_open(path, &source, error));
    tnd_say_text_of(source);
    if (settings->type == NULL) {
        kit->source = source;
    } else {
        const enum tandem_status status =
            tandem_source_convert(source, target, &kit->source, error);
        tandem_source_close(source);
        SRV_TRY(status);
    }
    return tandem_model_new(kit->source, &kit->model, error);
}

static enum tandem_status open_tokenizer(struct srv_kit *kit, const struct srv_settings *settings,
                                         struct tandem_error *error)
{
    const int64_t n = tandem_model_hparams(kit->model)->vocabulary;
    struct stat info;
    if (settings->tokenizer != NULL) {
        const char *path = tnd_ranks_tokenizer_path(&settings->ranks, settings->tokenizer, error);
        return path == NULL ? error->status
                            : tandem_tokenizer_open(path, n, &kit->tokenizer, error);
    }
    const enum tandem_status status =
        tandem_tokenizer_from_source(kit->source, &kit->tokenizer, error);
    return status == TANDEM_E_FORMAT && stat(settings->model, &info) == 0 && S_ISDIR(info.st_mode)
               ? tandem_tokenizer_open(settings->model, n, &kit->tokenizer, error)
               : status;
}

static enum tandem_status open_runtime(struct srv_kit *kit, const struct srv_settings *settings,
                                       struct tandem_error *error)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tnd_pack_option memory;
    options.n_threads = (int)settings->threads;
    options.profile = settings->profile;
    options.settings = settings->settings;
    SRV_TRY(tnd_pack_option_apply(settings->pack_cache, &memory, &options, error));
    return tnd_runtime_option_open(&options, settings->table, settings->device, &kit->runtime,
                                   error);
}

/* File name without folder. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static enum tandem_status open_engine(struct srv_kit *kit, const struct srv_settings *settings,
                                      struct tandem_error *error)
{
    const int64_t context = tandem_model_hparams(kit->model)->context;
    struct srv_engine_options options = {
        .model = kit->model,
        .runtime = kit->runtime,
        .tokenizer = kit->tokenizer,
        .vocabulary = &kit->vocabulary,
        .context = settings->context < context ? settings->context : context,
        .n_parallel = (int)settings->parallel,
        .max_queue = (int)settings->queue,
        .delay_ms = (double)settings->delay_ms,
        .session = {.size = sizeof(options.session), .cache_type = TANDEM_TYPE_F16},
        .has_embeddings = true,
        .open_session = tnd_ranks_session_new,
        .ranks = settings->ranks,
    };
    options.ranks.leads_here = true;
    options.ranks.n_texts = settings->parallel;
    options.n_cells = settings->cells > 0 ? settings->cells : 2 * options.context;
    options.n_cells = options.n_cells > options.context ? options.n_cells : options.context;
    options.n_cells = (options.n_cells + SRV_BLOCK - 1) / SRV_BLOCK * SRV_BLOCK;
    kit->server.n_cells = options.n_cells;
    SRV_TRY(tnd_pooling_option_read(settings->pooling, &options.session.pooling, error));
    SRV_TRY(tnd_cache_option_read(settings->cache_type, kit->model, &options.session, error));
    return tnd_srv_engine_new(&options, &kit->engine, error);
}

/* If the file is missing or does not fit, the cache just starts empty. */
static void restore(struct srv_kit *kit, const char *path)
{
    struct tandem_error error = {0};
    if (path != NULL && access(path, F_OK) == 0 &&
        tnd_srv_restore(kit->engine, path, &error) != TANDEM_OK) {
        tnd_say("tandem-server: note: begins with an empty cache: %s\n", error.text);
    }
}

/* Opens the requested template, or the model's own. Without either, only completions are served. */
static enum tandem_status open_template(struct srv_kit *kit, const struct srv_settings *settings,
                                        struct tandem_error *error)
{
    const enum tandem_status status =
        settings->chat_template != NULL
            ? tandem_chat_template_open(settings->chat_template, &kit->chat_template, error)
            : tandem_chat_template_of_source(kit->source, NULL, &kit->chat_template, error);
    if (status == TANDEM_E_NOT_FOUND && settings->chat_template == NULL) {
        tnd_say("tandem-server: note: the model has no chat template, so that conversations are "
                "refused; --chat-template gives one\n");
        return TANDEM_OK;
    }
    return status;
}

enum tandem_status tnd_srv_open(struct srv_kit *kit, const struct srv_settings *settings,
                                struct tandem_error *error)
{
    struct srv_server *server = &kit->server;
    SRV_TRY(read_key(kit, settings->key_file, error));
    SRV_TRY(open_model(kit, settings, error));
    SRV_TRY(open_tokenizer(kit, settings, error));
    SRV_TRY(open_runtime(kit, settings, error));
    SRV_TRY(open_template(kit, settings, error));
    server->chat_template = kit->chat_template;
    server->call_format =
        tnd_srv_call_format_of(tandem_chat_template_text(kit->chat_template, NULL));
    server->frame = tnd_srv_frame_of(tandem_chat_template_text(kit->chat_template, NULL));
    if (settings->call_format != NULL &&
        !tnd_srv_call_format_from_name(settings->call_format, &server->call_format)) {
        return fail(error, TANDEM_E_ARGUMENT, "unknown tool format", settings->call_format);
    }
    if (tnd_srv_vocabulary_init(&kit->vocabulary, kit->tokenizer, kit->model,
                                server->chat_template) != TANDEM_OK) {
        return fail(error, TANDEM_E_MEMORY, "no memory for the vocabulary of", settings->model);
    }
    SRV_TRY(open_engine(kit, settings, error));
    SRV_TRY(tnd_draft_option_open(settings->draft, tnd_srv_engine_session(kit->engine),
                                  kit->runtime, tnd_srv_engine_sequences(kit->engine),
                                  server->n_cells, &kit->draft, error));
    tnd_pack_option_prepare(settings->pack_cache, tnd_srv_engine_session(kit->engine),
                            kit->runtime);
    restore(kit, settings->saved);
    server->engine = kit->engine;
    server->model = kit->model;
    server->tokenizer = kit->tokenizer;
    server->vocabulary = &kit->vocabulary;
    server->model_name = settings->alias != NULL ? settings->alias : name_of(settings->model);
    server->max_answer = settings->answer;
    server->started = (int64_t)time(NULL);
    return TANDEM_OK;
}

void tnd_srv_close(struct srv_kit *kit)
{
    tnd_srv_engine_free(kit->engine);
    tnd_draft_option_close(&kit->draft);
    tnd_srv_vocabulary_free(&kit->vocabulary);
    tandem_runtime_close(kit->runtime);
    tandem_chat_template_free(kit->chat_template);
    tandem_tokenizer_close(kit->tokenizer);
    tandem_model_free(kit->model);
    tandem_source_close(kit->source);
}
