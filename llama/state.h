/* SPDX-License-Identifier: MIT
 * A session's state as bytes and as a file: keys, values, positions and logits of all sequences, so
 * that a conversation goes on later without feeding it again. The layout is
 * described at the head of state.c. */
#ifndef TND_LLAMA_STATE_H
#define TND_LLAMA_STATE_H

#include "llama/session.h"

/** Bytes that tnd_llama_state_write needs now. */
size_t tnd_llama_state_bytes(const struct tnd_llama_session *session);
/** Writes tnd_llama_state_bytes bytes; behind tnd_llama_kv_cache_fetch. */
void tnd_llama_state_write(const struct tnd_llama_session *session, void *out);
/** Puts a session into a state that was written by one of the same model, cache type and number of
 *  sequences. After an error the session is as it was. `name` is for messages. Errors: FORMAT
 *  (also: another version, a wrong checksum), TRUNCATED, LIMIT (it has more tokens than this
 *  session has room for). */
enum tandem_status tnd_llama_state_read(struct tnd_llama_session *session, const void *bytes,
                                        size_t n, const char *name, struct tandem_error *error);

/** The same with a file, which appears at once when it is complete. Errors also: FILE, MEMORY. */
enum tandem_status tnd_llama_state_save(const struct tnd_llama_session *session, const char *path,
                                        struct tandem_error *error);
enum tandem_status tnd_llama_state_load(struct tnd_llama_session *session, const char *path,
                                        struct tandem_error *error);

#endif
