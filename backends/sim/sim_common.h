/* SPDX-License-Identifier: MIT
 * Shared by the two simulated devices: one works in host memory, the other has memory of its
 * own. */
#ifndef TND_SIM_COMMON_H
#define TND_SIM_COMMON_H

#include <pthread.h>

#include "backends/sim/sim.h"
#include "backends/sim/sim_script.h"

/** First member of both devices. */
struct tnd_sim_common {
    tandem_backend base;
    struct tnd_sim_script script;
    pthread_mutex_t
        lock; /* guards everything below; held while results are computed, not while waiting */
    const struct tnd_clock *clock;
    uint64_t busy_until_ns;
    struct tnd_sim_statistics statistics;
};

extern const struct tandem_backend_api tnd_backend_sim_own; /* "sim" with memory=own */

void tnd_sim_common_init(struct tnd_sim_common *common, const struct tandem_backend_api *api,
                         const struct tnd_sim_script *script);
/** Adds `ns` of work to the end of the device's busy time; returns when it ends. Called under the
 * lock. */
uint64_t tnd_sim_occupy(struct tnd_sim_common *common, uint64_t ns);
/** Opens the device with memory of its own, with the vtable `api`. */
enum tandem_status tnd_sim_own_open(const struct tandem_backend_api *api,
                                    const struct tnd_sim_script *script,
                                    tandem_backend **out_backend, struct tandem_error *error);

#endif
