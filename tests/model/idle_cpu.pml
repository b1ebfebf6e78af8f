/* SPDX-License-Identifier: MIT
 * Promela model of workers that move to an idle CPU (sched/idle_cpu.c: tnd_cpu_claim and
 * tnd_cpu_move_to_idle) while an operator binds one of them to a CPU. In a round at most one worker
 * takes a CPU for its own; afterwards each may run where it might before, and a mask that the
 * operator has set stays. The system cannot look at a mask and change it in one call: what the
 * operator does in between (is_busy), or a mask of his that is the one that stands, is left out.
 *
 * -DLOST=1 restores the mask without looking at it, -DLOST=2 does not restore it, -DLOST=3 claims
 * with a load and a store: spin must find an error in each. */
#ifndef LOST
#define LOST 0
#endif
#define WORKERS 3
#define CPUS    3
#define ALL     7 /* a mask has a bit a CPU */

bool taken[CPUS];   /* in this round */
byte owners[CPUS];  /* workers that found the CPU free */
byte mask[WORKERS]; /* of CPUs that the system may run the worker on */
byte cpu[WORKERS];  /* where it runs */
bool is_busy;       /* worker 0 is between looking at its mask and changing it */
byte bound_to = 0;  /* the mask that the operator has set for worker 0 */
byte n_done = 0;

/* The system puts the worker on any CPU of its mask. */
inline place(w) {
    if
    :: (mask[w] & 1) != 0 -> cpu[w] = 0
    :: (mask[w] & 2) != 0 -> cpu[w] = 1
    :: (mask[w] & 4) != 0 -> cpu[w] = 2
    fi
}

inline claim(c, is_mine) {
#if LOST == 3
    is_mine = !taken[c];
    taken[c] = true;
#else
    atomic { is_mine = !taken[c]; taken[c] = true }
#endif
    if
    :: is_mine -> owners[c]++; assert(owners[c] == 1)
    :: else
    fi
}

inline restore(w, is_free, allowed) {
#if LOST == 0 || LOST == 3
    atomic { if :: mask[w] == is_free -> mask[w] = allowed :: else fi }
#elif LOST == 1
    mask[w] = allowed
#else
    skip
#endif
}

proctype worker(byte w) {
    byte c;
    byte allowed;
    byte is_free;
    bool is_mine;
    c = cpu[w];
    claim(c, is_mine);
    if
    :: !is_mine ->
        atomic { allowed = mask[w]; is_busy = is_busy || w == 0 }
        is_free = allowed;
        c = 0;
        do
        :: c < CPUS ->
            if :: taken[c] -> is_free = is_free & ~(1 << c) :: else fi;
            c++
        :: else -> break
        od;
        if
        :: is_free != 0 ->
            atomic { mask[w] = is_free; place(w); is_busy = is_busy && w != 0 }
            c = cpu[w];
            claim(c, is_mine);
            restore(w, is_free, allowed)
        :: else -> atomic { is_busy = is_busy && w != 0 }
        fi
    :: else
    fi;
    n_done++
}

proctype operator() {
    byte wanted;
    if :: wanted = 1 :: wanted = 2 :: wanted = 4 fi;
    atomic { !is_busy && wanted != mask[0] -> mask[0] = wanted; bound_to = wanted; place(0) }
}

init {
    byte w = 0;
    atomic {
        do
        :: w < WORKERS -> mask[w] = ALL; place(w); run worker(w); w++
        :: else -> break
        od;
        run operator()
    }
    n_done == WORKERS;
    assert(mask[1] == ALL && mask[2] == ALL);
    assert(mask[0] == ALL || mask[0] == bound_to);
    assert(bound_to == 0 || mask[0] == bound_to)
}
