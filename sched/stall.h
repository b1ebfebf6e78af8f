/* SPDX-License-Identifier: MIT
 * Abandoning a wait for a device. The device may still write to the targets of its downloads, so in
 * runs with a time limit results go to bounce buffers first, then to the program's memory. */
#ifndef TND_STALL_H
#define TND_STALL_H

#include "sched/run.h"

/** Target of a download: `to`, or a bounce buffer that tnd_stall_deliver copies. */
void *tnd_stall_target(struct tnd_run *run, const struct tnd_step *step, void *to, size_t bytes);
/** The download was refused: undoes the last tnd_stall_target. */
void tnd_stall_untarget(struct tnd_run *run, const struct tnd_step *step);
/** The device has been synced up to step `last`: copies bounce buffers to their targets, unless the
 *  sync has failed. */
void tnd_stall_deliver(struct tnd_run *run, int slot, int last, bool is_good);
/** Waits until a sync of the ticket would return at once, or the device cannot be polled. False:
 *  the time limit of the run has passed before the device was done; the device is left running, and
 *  the run has failed. */
bool tnd_stall_await(struct tnd_run *run, int slot, uint64_t ticket, const struct tnd_step *step);
/** Before a run submits anything to devices. Errors: DEVICE_TIMEOUT (a device still runs what an
 *  earlier run abandoned), those of devices. */
enum tandem_status tnd_stall_check(struct tnd_run *run, struct tnd_exec_failure *out_failure,
                                   struct tandem_error *error);
/** Closes a device of an executor without a run in progress. False: it still runs abandoned work,
 *  and the memory that it may write to is never freed. */
bool tnd_stall_fini(struct tnd_run_device *device, tandem_backend *backend);

#endif
