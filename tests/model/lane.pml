/* SPDX-License-Identifier: MIT
 * Promela model of a device's lane that several runs share (sched/run_steps.c: tnd_run_failures_of
 * before the first work, then sync under the device's lock). A device tells a failure to one of
 * those that wait for it, whosever work it was: yet no run may take results of a work that failed.
 *
 * -DLOST=1 forgets to count what was told, -DLOST=2 asks for the count after the works were handed
 * in, -DLOST=3 waits without the lock: spin must find a run that takes wrong results in each. */
#ifndef LOST
#define LOST 0
#endif
#define RUNS 3

bool locked = false;
bool untold = false; /* the device has a failure that nobody was told of */
byte n_failures = 0;

inline take_lock() { atomic { !locked -> locked = true } }
inline give_lock() { locked = false }

active [RUNS] proctype runner() {
    byte before = 0;
    bool is_wrong = false; /* of this run's own works */
    bool status;
    bool others;
#if LOST != 2
    take_lock();
    before = n_failures;
    give_lock();
#endif
    /* tnd_run_submit: the device fails at this work, or not */
    if
    :: atomic { is_wrong = true; untold = true }
    :: skip
    fi;
#if LOST == 2
    take_lock();
    before = n_failures;
    give_lock();
#endif
    /* the sync of tnd_run_sync_flights and tnd_run_sync_all */
#if LOST != 3
    take_lock();
#endif
    atomic { status = untold; untold = false };
    others = n_failures != before;
#if LOST != 1
    n_failures = n_failures + status;
#endif
#if LOST != 3
    give_lock();
#endif
    assert(!is_wrong || status || others)
}
