/* SPDX-License-Identifier: MIT
 * From the command line to a server that is ready to listen. */
#ifndef TANDEM_SERVER_SRV_OPEN_H
#define TANDEM_SERVER_SRV_OPEN_H

#include "tools/device_option.h"
#include "tools/draft_option.h"
#include "tools/pack_option.h"
#include "tools/report/ranks_cli.h"
#include "tools/tandem-server/srv_http.h"

struct srv_settings {
    const char *model; /* file or folder */
    const char *tokenizer, *type, *cache_type, *chat_template, *call_format, *alias, *key_file,
        *table, *profile, *device, *settings, *saved, *pack_cache, *draft, *pooling;
    struct tnd_ranks_options ranks;
    int64_t threads, context, cells, parallel, queue, answer, delay_ms;
};

/** All objects of a server, closed in reverse order. */
struct srv_kit {
    tandem_source *source;
    tandem_model *model;
    tandem_tokenizer *tokenizer;
    tandem_runtime *runtime;
    tandem_chat_template *chat_template; /* NULL: the model has none */
    struct srv_vocabulary vocabulary;
    struct srv_engine *engine;
    struct tnd_draft_option draft;
    char api_key[256];
    struct srv_server server;
};

/** Opens everything as the settings say; does not start the engine's thread. Call tnd_srv_close in
 * any case. */
enum tandem_status tnd_srv_open(struct srv_kit *kit, const struct srv_settings *settings,
                                struct tandem_error *error);
/** A zeroed kit is allowed. */
void tnd_srv_close(struct srv_kit *kit);

#endif
