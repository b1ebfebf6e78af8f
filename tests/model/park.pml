/* SPDX-License-Identifier: MIT
 * Promela model of sched/park.c and of the gather/release barrier of sched/barrier.c. `make model`
 * runs spin over all interleavings: no deadlock (a lost wake-up is one, since timed re-checks are
 * left out on purpose) and no worker out of step. Atomics are seq_cst here; park.c uses seq_cst for
 * exactly the four accesses whose order the proof needs (word and sleepers, both sides).
 *
 * -DLOST=1 lets the sleeper look at the word before it announces itself, -DLOST=2 lets the waker
 * look for sleepers before it writes the word, -DLOST=3 broadcasts without the mutex: spin must find
 * a deadlock in each, which shows that the model can see lost wake-ups. */
#ifndef LOST
#define LOST 0
#endif
#define WORKERS 2 /* beside worker 0 */
#define ROUNDS 2

/* ---- a park: mutex, condition variable (as a set of sleepers), count of sleepers ---- */
typedef park {
    bool locked;
    byte sleepers;
    bool asleep[3] /* in cond_wait, not woken yet; by worker */
};
park releases; /* the workers wait for `phase` here */
park arrivals; /* worker 0 waits for `arrived` here */
byte phase = 0;
byte arrived = 0;
byte work_done = 0; /* plain data: workers add, worker 0 looks when all have arrived */

inline lock(p) { atomic { !p.locked -> p.locked = true } }
inline unlock(p) { p.locked = false }
/* Releases the mutex and falls asleep in one step, as pthread_cond_wait does. */
inline cond_wait(p, me) {
    atomic { p.asleep[me] = true; p.locked = false };
    !p.asleep[me];
    lock(p)
}
inline broadcast(p) {
    atomic { p.asleep[0] = false; p.asleep[1] = false; p.asleep[2] = false }
}

/* A timed wait: a sleep that may end at any time, by the clock. */
inline sleep_timed(p, word, value, me) {
    lock(p);
    p.sleepers++;
    if
    :: word == value -> skip
    :: else ->
        atomic { p.asleep[me] = true; p.locked = false };
        if
        :: !p.asleep[me] -> skip
        :: p.asleep[me] = false /* the time has come */
        fi;
        lock(p)
    fi;
    p.sleepers--;
    unlock(p)
}

/* The spin before sleeping is one look: more looks add nothing to what can happen. One timed wait or none
 * comes before the sleep for good. */
inline park_until(p, word, value, me) { /* tnd_park_until */
    if
    :: word == value -> skip
    :: else ->
        if
        :: sleep_timed(p, word, value, me)
        :: skip
        fi
    fi;
    if
    :: word == value -> skip
    :: else ->
        lock(p);
#if LOST == 1
        do
        :: word == value -> break
        :: else ->
            p.sleepers++;
            cond_wait(p, me);
            p.sleepers--
        od;
#else
        p.sleepers++;
        do
        :: word == value -> break
        :: else -> cond_wait(p, me)
        od;
        p.sleepers--;
#endif
        unlock(p)
    fi
}

inline wake(p) { /* tnd_park_wake */
    if
    :: p.sleepers == 0 -> skip
    :: else ->
#if LOST == 3
        broadcast(p)
#else
        lock(p);
        broadcast(p);
        unlock(p)
#endif
    fi
}

active proctype caller() {
    byte round = 0;
    bool somebody;
    do
    :: round < ROUNDS ->
        /* tnd_barrier_release */
#if LOST == 2
        somebody = releases.sleepers > 0;
        phase = phase + 1;
        if
        :: somebody -> lock(releases); broadcast(releases); unlock(releases)
        :: else -> skip
        fi;
#else
        phase = phase + 1;
        wake(releases);
#endif
        /* tnd_barrier_gather */
        park_until(arrivals, arrived, WORKERS, 0);
        assert(work_done == WORKERS * (round + 1));
        arrived = 0;
        round++
    :: else -> break
    od
}

active [WORKERS] proctype worker() {
    byte ticket = 0;
    byte before;
    do
    :: ticket < ROUNDS ->
        ticket++;
        /* tnd_barrier_pass */
        park_until(releases, phase, ticket, _pid);
        assert(phase == ticket);
        atomic { work_done++ };
        /* tnd_barrier_arrive */
        atomic { arrived++; before = arrived };
        if
        :: before == WORKERS -> wake(arrivals)
        :: else -> skip
        fi
    :: else -> break
    od
}
