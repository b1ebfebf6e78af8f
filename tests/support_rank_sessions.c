/* SPDX-License-Identifier: MIT
 * Sessions of ranks in tests. */
#include "tests/support_rank_sessions.h"

enum tandem_status tnd_rank_session_begin(struct tnd_rank_session *rank, const tandem_model *model,
                                          tandem_communicator *communicator,
                                          const struct tandem_session_options *options,
                                          struct tandem_error *error)
{
    struct tandem_runtime_options of_runtime = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_session_options own = *options;
    *rank = (struct tnd_rank_session){.communicator = communicator};
    of_runtime.n_threads = 1;
    of_runtime.table_path = "";
    enum tandem_status status = tandem_runtime_open(&of_runtime, &rank->runtime, error);
    if (status != TANDEM_OK) {
        return status;
    }
    if (tandem_communicator_rank(communicator) > 0) {
        return tandem_session_follow(model, rank->runtime, communicator, error);
    }
    own.size = sizeof(own);
    own.communicator = communicator;
    return tandem_session_new(model, rank->runtime, &own, &rank->session, error);
}

void tnd_rank_session_end(struct tnd_rank_session *rank)
{
    tandem_session_free(rank->session);
    if (rank->runtime != NULL && tandem_communicator_rank(rank->communicator) == 0) {
        (void)tandem_session_dismiss(rank->communicator, NULL);
    }
    tandem_runtime_close(rank->runtime);
}
