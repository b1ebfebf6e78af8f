/* SPDX-License-Identifier: MIT
 * The script of the simulated device, parsed from its settings: how long things take and what
 * fails. */
#ifndef TND_SIM_SCRIPT_H
#define TND_SIM_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tnd_status.h"

enum tnd_sim_fault {
    TND_SIM_FAULT_NONE,
    TND_SIM_FAULT_SUBMIT,
    TND_SIM_FAULT_MEMORY,
    TND_SIM_FAULT_SYNC,
    TND_SIM_FAULT_TIMEOUT,
    TND_SIM_FAULT_LOST,
    /* with memory of its own */
    TND_SIM_FAULT_MAP,
    TND_SIM_FAULT_UPLOAD,
    TND_SIM_FAULT_DOWNLOAD,
    TND_SIM_FAULT_PREPARE,
    TND_SIM_FAULT_ANY
};

/** Functions of a device with memory of its own. */
enum tnd_sim_call {
    TND_SIM_CALL_SUBMIT,
    TND_SIM_CALL_SYNC,
    TND_SIM_CALL_MAP,
    TND_SIM_CALL_UPLOAD,
    TND_SIM_CALL_DOWNLOAD,
    TND_SIM_CALL_PREPARE,
    TND_SIM_CALLS
};

struct tnd_sim_script {
    double latency_us;
    double gflops;      /* 0: arithmetic takes no time */
    double upload_gbps; /* GB/s; 0: transfers take no time */
    double download_gbps;
    bool submit_waits;
    bool spoils_results;
    bool is_own;   /* memory of its own */
    double budget; /* bytes of weights; 0: no limit */
    double stall_at,
        stall_us; /* with memory of its own: submission that takes so much longer, from 1 */
    enum tnd_sim_fault fault;
    uint64_t fault_at; /* submission (or call of the kind) that fails, from 1; 0: none */
};

/** Parses "key=value,..."; NULL: empty. Errors: ARGUMENT. */
enum tandem_status tnd_sim_script_read(const char *settings, struct tnd_sim_script *out,
                                       struct tandem_error *error);

/** Nanoseconds that the device needs for a work of this size. */
uint64_t tnd_sim_script_ns(const struct tnd_sim_script *script, double flops, double upload_bytes,
                           double download_bytes);

/** Whether the `n`-th submission fails at once, and how. */
enum tandem_status tnd_sim_script_submit_fault(const struct tnd_sim_script *script, uint64_t n,
                                               struct tandem_error *error);
/** Whether the sync of the `n`-th submission fails, and how. */
enum tandem_status tnd_sim_script_sync_fault(const struct tnd_sim_script *script, uint64_t n,
                                             struct tandem_error *error);

/** Whether a call to a device with memory of its own fails: the `n`-th of its kind, the `n_all`-th
 * of any kind. Works that fail later are decided by tnd_sim_script_sync_fault. */
enum tandem_status tnd_sim_script_call_fault(const struct tnd_sim_script *script,
                                             enum tnd_sim_call call, uint64_t n, uint64_t n_all,
                                             struct tandem_error *error);

#endif
