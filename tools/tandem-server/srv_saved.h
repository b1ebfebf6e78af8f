/* SPDX-License-Identifier: MIT
 * Storing the texts of the KV cache in a file, so that the next server need not compute them
 * again. */
#ifndef TANDEM_SERVER_SRV_SAVED_H
#define TANDEM_SERVER_SRV_SAVED_H

#include "tools/tandem-server/srv_engine.h"

/** Writes the tokens of all cached texts with their keys and values. The engine's thread must have
 * ended. Errors: MEMORY, FILE, those of tandem_session_state_write. */
enum tandem_status tnd_srv_save(const struct srv_engine *engine, const char *path,
                                struct tandem_error *error);
/** Loads what an engine with the same model, cache type and number of sequences has saved; call it
 * before the thread is started. The file is untrusted. After an error the cache is empty. Errors:
 * MEMORY, FILE, LIMIT, FORMAT, TRUNCATED. */
enum tandem_status tnd_srv_restore(struct srv_engine *engine, const char *path,
                                   struct tandem_error *error);
/** Like tnd_srv_save, in memory; the caller frees `out_bytes`. */
enum tandem_status tnd_srv_save_bytes(const struct srv_engine *engine, char **out_bytes,
                                      size_t *out_n, struct tandem_error *error);
enum tandem_status tnd_srv_restore_bytes(struct srv_engine *engine, const char *bytes, size_t n,
                                         struct tandem_error *error);

#endif
