/* SPDX-License-Identifier: MIT
 * The texts of the KV cache in a file, so that the next server need not compute them again. */
#ifndef TANDEM_SERVER_SRV_SAVED_H
#define TANDEM_SERVER_SRV_SAVED_H

#include "tools/tandem-server/srv_engine.h"

/** Writes the tokens of all texts in the cache with their keys and values. The engine's thread must
 *  have ended. Errors: MEMORY, FILE, those of tandem_session_state_write. */
enum tandem_status tnd_srv_save(const struct srv_engine *engine, const char *path,
                                struct tandem_error *error);
/** Takes over what an engine of the same model, cache type and number of texts has saved, before
 *  the thread is started. The file is not trusted. After an error the cache is empty. Errors:
 *  MEMORY, FILE, LIMIT, FORMAT, TRUNCATED. */
enum tandem_status tnd_srv_restore(struct srv_engine *engine, const char *path,
                                   struct tandem_error *error);
/** As tnd_srv_save, in memory; `out_bytes` is the caller's to free. */
enum tandem_status tnd_srv_save_bytes(const struct srv_engine *engine, char **out_bytes,
                                      size_t *out_n, struct tandem_error *error);
enum tandem_status tnd_srv_restore_bytes(struct srv_engine *engine, const char *bytes, size_t n,
                                         struct tandem_error *error);

#endif
