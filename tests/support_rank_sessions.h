/* SPDX-License-Identifier: MIT
 * What each rank of a test opens: a runtime of one thread without a table, on rank 0 a session. */
#ifndef TND_TESTS_SUPPORT_RANK_SESSIONS_H
#define TND_TESTS_SUPPORT_RANK_SESSIONS_H

#include "tandem/llama.h"

struct tnd_rank_session {
    tandem_communicator *communicator; /* borrowed */
    tandem_runtime *runtime;
    tandem_session *session; /* NULL: another rank than 0, or an error */
};

/** On rank 0 a session of all ranks, with `options` (their communicator does not count); on others
 *  returns when rank 0 has ended. tnd_rank_session_end follows in any case. */
enum tandem_status tnd_rank_session_begin(struct tnd_rank_session *rank, const tandem_model *model,
                                          tandem_communicator *communicator,
                                          const struct tandem_session_options *options,
                                          struct tandem_error *error);
/** Frees all; rank 0 dismisses the others. */
void tnd_rank_session_end(struct tnd_rank_session *rank);

#endif
