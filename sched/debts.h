/* SPDX-License-Identifier: MIT
 * Debts: bytes of lazy states (TANDEM_ROLE_LAZY_STATE) whose newest values only a device has. They
 * are downloaded to the host here, outside of runs. If a download fails, the values are lost and
 * the root is marked: runs with it are refused until the program writes it again. */
#ifndef TND_DEBTS_H
#define TND_DEBTS_H

#include "sched/run.h"

/** Downloads the debts in bytes begin .. begin + bytes - 1 (NULL: all) of the device in a slot (0:
 *  all devices) that no run holds. Errors: the first one of a device. */
enum tandem_status tnd_debts_collect(struct tnd_mirrors *mirrors,
                                     const struct tnd_registry *registry,
                                     struct tnd_run_device *devices, int slot, const void *begin,
                                     size_t bytes, struct tandem_error *error);
/** After a failed run, before it releases its mirrors: downloads the debts from before the run. */
void tnd_debts_collect_failed(struct tnd_run *run);
/** Whether the newest values of a root were lost. Errors: DEVICE_LOST. */
enum tandem_status tnd_debts_check_root(const struct tandem_tensor *root,
                                        struct tandem_error *error);
/** tnd_debts_check_root for everything that a graph reads and writes. */
enum tandem_status tnd_debts_check(const struct tnd_mirrors *mirrors,
                                   const struct tandem_graph *graph, struct tandem_error *error);

#endif
