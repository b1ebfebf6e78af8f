/* SPDX-License-Identifier: MIT
 * Collecting what devices owe: bytes of lazy states (TANDEM_ROLE_LAZY_STATE) that they alone have
 * are brought to the host, outside of runs. What cannot be brought is lost, and its root says so:
 * runs with it are refused until the program writes it anew. */
#ifndef TND_DEBTS_H
#define TND_DEBTS_H

#include "sched/run.h"

/** Collects debts in bytes begin .. begin + bytes - 1 (NULL: any) of the device in a slot (0: any)
 *  that no run holds. Errors: the first one of a device. */
enum tandem_status tnd_debts_collect(struct tnd_mirrors *mirrors,
                                     const struct tnd_registry *registry,
                                     struct tnd_run_device *devices, int slot, const void *begin,
                                     size_t bytes, struct tandem_error *error);
/** After a run has failed, before it lets go of its mirrors: collects what was owed before it. */
void tnd_debts_collect_failed(struct tnd_run *run);
/** Whether the newest values of a root were lost. Errors: DEVICE_LOST. */
enum tandem_status tnd_debts_check_root(const struct tandem_tensor *root,
                                        struct tandem_error *error);
/** The same of all that a graph reads and writes. */
enum tandem_status tnd_debts_check(const struct tnd_mirrors *mirrors,
                                   const struct tandem_graph *graph, struct tandem_error *error);

#endif
