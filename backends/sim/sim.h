/* SPDX-License-Identifier: MIT
 * What tests may do with the pretended device beyond the vtable of tandem/backend.h.
 *
 * Settings: latency_us=F gflops=F upload_gbps=F download_gbps=F (0: takes no time), sync=1
 * (submit waits for the end itself), wrong=1 (every result has a wrong value), fail_at=N with
 * fail=submit|memory|sync|timeout|lost (the N-th submit, counted from 1, or its sync fails;
 * after `lost` everything fails).
 *
 * memory=own: works read and write mirrors alone, whose bytes are garbage until they are uploaded
 * or written, and everything happens as late as it may: when something is synced. budget=BYTES of
 * weights. stall_at=N stall_us=F: the N-th submit takes so much longer. fail= may also be map,
 * upload, download, prepare (the N-th call of that kind) or any (the N-th call of all kinds, submit
 * and sync included); `lost` then counts all calls. */
#ifndef TND_SIM_H
#define TND_SIM_H

#include "base/clock.h"
#include "tandem/backend.h"

struct tnd_sim_statistics {
    uint64_t submits; /* accepted submissions */
    uint64_t syncs;
    uint64_t computed;       /* works whose results were written */
    uint64_t weight_uploads; /* weights transferred to the device, each once until forgotten */
    uint64_t upload_bytes;   /* weights and activations */
    uint64_t download_bytes;
    uint64_t busy_ns; /* time for which the device was busy */
    int in_flight;    /* submitted, not synced */
    /* with memory of its own */
    uint64_t calls; /* calls that could fail */
    uint64_t uploads, downloads;
    uint64_t streams; /* uploads that were streamed, concurrently with works */
    uint64_t maps;
    int mirrors;                /* mapped at present */
    int residents;              /* weights on the device at present */
    uint64_t unmapped_accesses; /* works and transfers outside of mirrors, which are refused */
};

/** More simulated devices with memory of their own, for tnd_registry_add: "simown", "simown2". */
extern const struct tandem_backend_api tnd_sim_own_api;
extern const struct tandem_backend_api tnd_sim_own2_api;

/** Uses this clock (borrowed) from now on; nothing may be in flight. */
void tnd_sim_set_clock(tandem_backend *backend, const struct tnd_clock *clock);
/** Makes the next submission take longer by this time; for a device with memory of its own. */
void tnd_sim_stall(tandem_backend *backend, double us);
void tnd_sim_statistics(tandem_backend *backend, struct tnd_sim_statistics *out);

#endif
