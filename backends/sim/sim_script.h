/* SPDX-License-Identifier: MIT
 * The script of the pretended device: how long things take and what goes wrong. Read from its
 * settings. */
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
    TND_SIM_FAULT_LOST
};

struct tnd_sim_script {
    double latency_us;
    double gflops;      /* 0: arithmetic takes no time */
    double upload_gbps; /* GB/s; 0: transfers take no time */
    double download_gbps;
    bool submit_waits;
    bool spoils_results;
    enum tnd_sim_fault fault;
    uint64_t fault_at; /* submit that meets the fault, from 1; 0: none */
};

/** Reads "key=value,...", NULL for none. Errors: ARGUMENT. */
enum tandem_status tnd_sim_script_read(const char *settings, struct tnd_sim_script *out,
                                       struct tandem_error *error);

/** Nanoseconds that the device needs for a work of this size. */
uint64_t tnd_sim_script_ns(const struct tnd_sim_script *script, double flops, double upload_bytes,
                           double download_bytes);

/** Whether the `n`-th submit fails at once, and how. */
enum tandem_status tnd_sim_script_submit_fault(const struct tnd_sim_script *script, uint64_t n,
                                               struct tandem_error *error);
/** Whether the sync of the `n`-th submit fails, and how. */
enum tandem_status tnd_sim_script_sync_fault(const struct tnd_sim_script *script, uint64_t n,
                                             struct tandem_error *error);

#endif
