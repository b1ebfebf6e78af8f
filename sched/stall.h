/* SPDX-License-Identifier: MIT
 * Giving up a wait for a device: it may still write to what it was told to, so that results of runs
 * that have a limit come to memory of this file's before they come to the program's. */
#ifndef TND_STALL_H
#define TND_STALL_H

#include "sched/run.h"

/** Where a download shall go: `to`, or memory in between that is copied by tnd_stall_deliver. */
void *tnd_stall_target(struct tnd_run *run, const struct tnd_step *step, void *to, size_t bytes);
/** The download was refused: takes back what tnd_stall_target did last. */
void tnd_stall_untarget(struct tnd_run *run, const struct tnd_step *step);
/** The device has been synced up to step `last`: what is in between comes to its place, unless the
 *  sync has failed. */
void tnd_stall_deliver(struct tnd_run *run, int slot, int last, bool is_good);
/** Waits until a sync of the ticket ends at once, or cannot tell. False: the run's time is over and
 *  the device has not ended; it is left as it is, and the run has failed. */
bool tnd_stall_await(struct tnd_run *run, int slot, uint64_t ticket, const struct tnd_step *step);
/** Before a run hands something to devices. Errors: DEVICE_TIMEOUT (one of them has not ended what
 *  an earlier run gave up), those of devices. */
enum tandem_status tnd_stall_check(struct tnd_run *run, struct tnd_exec_failure *out_failure,
                                   struct tandem_error *error);
/** Ends a device of an executor, of which no run is in progress. False: it still has not ended, and
 *  what it may write to stays for good. */
bool tnd_stall_fini(struct tnd_run_device *device, tandem_backend *backend);

#endif
