/* SPDX-License-Identifier: MIT
 * Time and statistics of simulated devices. */
#include "backends/sim/sim_common.h"

void tnd_sim_common_init(struct tnd_sim_common *common, const struct tandem_backend_api *api,
                         const struct tnd_sim_script *script)
{
    common->base.api = api;
    common->script = *script;
    common->clock = tnd_clock_real();
    pthread_mutex_init(&common->lock, NULL);
}

uint64_t tnd_sim_occupy(struct tnd_sim_common *common, uint64_t ns)
{
    uint64_t now = common->clock->now_ns(common->clock);
    uint64_t begin = common->busy_until_ns > now ? common->busy_until_ns : now;
    common->busy_until_ns = begin + ns;
    common->statistics.busy_ns += ns;
    return common->busy_until_ns;
}

/* ---- for tests ---- */

void tnd_sim_set_clock(tandem_backend *backend, const struct tnd_clock *clock)
{
    struct tnd_sim_common *common = (struct tnd_sim_common *)backend;
    pthread_mutex_lock(&common->lock);
    common->clock = clock;
    common->busy_until_ns = 0;
    pthread_mutex_unlock(&common->lock);
}

void tnd_sim_stall(tandem_backend *backend, double us)
{
    struct tnd_sim_common *common = (struct tnd_sim_common *)backend;
    pthread_mutex_lock(&common->lock);
    common->script.stall_at = (double)common->statistics.submits + 1;
    common->script.stall_us = us;
    pthread_mutex_unlock(&common->lock);
}

void tnd_sim_statistics(tandem_backend *backend, struct tnd_sim_statistics *out)
{
    struct tnd_sim_common *common = (struct tnd_sim_common *)backend;
    pthread_mutex_lock(&common->lock);
    *out = common->statistics;
    pthread_mutex_unlock(&common->lock);
}
