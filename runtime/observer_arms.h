/* SPDX-License-Identifier: MIT
 * Which of a graph's plans serves: by the table with work at once, the best one without, the CPU
 * alone, a device alone. Predictions say where to begin; whole computations, timed, say what stays.
 * A plan that does not serve is looked at now and then: looks are paid from a small share of the
 * computing time, so a plan that is slow by prediction or by an earlier look waits longer, and none
 * is given up for good. First uses (weights are packed, moved, kernels built) do not count. Knows
 * times alone, no tensors: tests run it against made-up machines. */
#ifndef TND_OBSERVER_ARMS_H
#define TND_OBSERVER_ARMS_H

#include <pthread.h>

#include "tune/planner.h"

enum { TND_ARM_CLASSES = 256, TND_ARM_RING = 7 };

/** One plan of a class. All times are of one token, in nanoseconds. */
struct tnd_arm {
    bool is_open;        /* a plan of its own */
    bool on_device;      /* it uses a device: what makes one slow makes the others slow */
    double predicted_ns; /* 0: unknown */
    double expected_ns;  /* by its last look, else as predicted */
    double beside_ns;    /* what the serving one took at its last look; 0: none yet */
    double entry_ns;     /* what a first use takes beside (not of one token) */
    double credit_ns;    /* what a look at it may cost now (not of one token) */
    uint64_t used_ns;    /* clock of its last use; 0: never */
    uint8_t n_tries;     /* first uses that were given up */
    uint32_t n_uses;     /* since it began to serve or its look began */
    uint32_t n_counted;  /* of those; the newest are in `times` */
    float times[TND_ARM_RING];
};

/** Graphs with the same products, whose M are close. */
struct tnd_arm_class {
    uint64_t key;               /* 0: none */
    uint64_t tick;              /* of its last use, for giving up the one unused for longest */
    uint32_t round;             /* of tables and devices that the predictions are about */
    uint64_t n_uses, looked_at; /* uses, and that of the last look's end */
    uint32_t rest;              /* uses until the next one */
    uint8_t left;               /* the plan that served before */
    bool is_granted, is_slow;   /* is_slow: the look began when the serving plan had become slow */
    uint8_t serving, looked;    /* enum tnd_plan_kind; looked: TND_PLAN_KINDS: none */
    uint8_t n_beside, n_handed; /* in a look: uses of the serving plan, plans handed out for it */
    double before_ns;           /* that the looked at plan was expected to take */
    struct tnd_arm arms[TND_PLAN_KINDS];
};

enum tnd_arm_news { TND_ARM_NOTHING, TND_ARM_STAYS, TND_ARM_CHANGES };

/** What is predicted of a class's plans. */
struct tnd_arm_offer {
    bool is_open, on_device;
    double us, entry_us; /* 0: unknown; entry_us: of a first use beside */
};

struct tnd_arms {
    pthread_mutex_t lock;          /* guards everything below; no other lock is taken inside */
    struct tnd_arm_class *classes; /* NULL until the first one */
    int n_classes;
    uint64_t tick;
    uint32_t round;
    double granted_ns; /* to first looks, by all classes */
    double scale;      /* of what looks may cost, beside a runtime's */
};

void tnd_arms_init(struct tnd_arms *arms);
void tnd_arms_fini(struct tnd_arms *arms);
/** Tables, devices or weights' places have changed: predictions are asked for again. */
void tnd_arms_begin_round(struct tnd_arms *arms);

/** Which plan is to be made now. False: predictions are wanted first (tnd_arms_offer). */
bool tnd_arms_choose(struct tnd_arms *arms, uint64_t key, int64_t tokens, uint64_t now_ns,
                     enum tnd_plan_kind *out_kind);
/** After which a computation by such a plan is better given up (tnd_arms_note with `is_cut`) and
 *  done by the CPU alone; 0: never. */
uint64_t tnd_arms_limit(struct tnd_arms *arms, uint64_t key, enum tnd_plan_kind kind,
                        int64_t tokens);
/** Predictions of a class for `tokens`, one a kind; TND_PLAN_BEST is open. Errors: MEMORY. */
enum tandem_status tnd_arms_offer(struct tnd_arms *arms, uint64_t key, int64_t tokens,
                                  const struct tnd_arm_offer *offers);
/** A computation by such a plan took `ns`, or was given up after them. With news `out` has the
 *  class, and `out->looked` is the plan that it is about. */
enum tnd_arm_news tnd_arms_note(struct tnd_arms *arms, uint64_t key, enum tnd_plan_kind kind,
                                int64_t tokens, uint64_t ns, bool is_cut, uint64_t now_ns,
                                struct tnd_arm_class *out);
/** A copy of what is known of a class. */
bool tnd_arms_get(struct tnd_arms *arms, uint64_t key, struct tnd_arm_class *out);

#endif
