/* SPDX-License-Identifier: MIT
 * Decides which of a graph's plans serves: the table's with work at once, the best one without, the
 * CPU alone, or a device alone. Predictions decide where to start; times of whole computations
 * decide what stays. A plan that does not serve gets a look now and then, paid from a small share
 * of the computing time, so a plan that is slow by prediction or by an earlier look waits longer,
 * and none is given up for good. First uses (packing and moving weights, building kernels) do not
 * count. Knows only times, no tensors: tests run it on simulated machines. */
#ifndef TND_OBSERVER_ARMS_H
#define TND_OBSERVER_ARMS_H

#include <pthread.h>

#include "tune/planner.h"

enum { TND_ARM_CLASSES = 256, TND_ARM_RING = 7 };

/** One plan of a class. All times are per token, in nanoseconds. */
struct tnd_arm {
    bool is_open;        /* differs from the other plans */
    bool on_device;      /* uses a device; if one such plan is slow, so are the others */
    double predicted_ns; /* 0: unknown */
    double expected_ns;  /* by its last look, else as predicted */
    double beside_ns;    /* time of the serving plan at its last look; 0: none yet */
    double entry_ns;     /* extra time of a first use (in total) */
    double credit_ns;    /* what a look may cost now (in total) */
    uint64_t used_ns;    /* clock of its last use; 0: never */
    uint8_t n_tries;     /* first uses that were given up */
    uint32_t n_uses;     /* uses since it began to serve or its look began */
    uint32_t n_counted;  /* uses that count; the newest are in `times` */
    float times[TND_ARM_RING];
};

/** Graphs with the same products, whose M are close. */
struct tnd_arm_class {
    uint64_t key;               /* 0: none */
    uint64_t tick;              /* of its last use, to replace the class unused for longest */
    uint32_t round;             /* round of tables and devices of the predictions */
    uint64_t n_uses, looked_at; /* uses, and their number when the last look ended */
    uint32_t rest;              /* uses until the next look */
    uint8_t left;               /* the plan that served before */
    bool is_granted, is_slow;   /* is_slow: the look began when the serving plan had become slow */
    uint8_t serving, looked;    /* enum tnd_plan_kind; looked: TND_PLAN_KINDS: none */
    uint8_t n_beside, n_handed; /* in a look: uses of the serving plan, plans handed out for it */
    double before_ns;           /* expected time of the plan in the look */
    struct tnd_arm arms[TND_PLAN_KINDS];
};

enum tnd_arm_news { TND_ARM_NOTHING, TND_ARM_STAYS, TND_ARM_CHANGES };

/** Predictions for one plan of a class. */
struct tnd_arm_offer {
    bool is_open, on_device;
    double us, entry_us; /* 0: unknown; entry_us: extra time of a first use */
};

struct tnd_arms {
    pthread_mutex_t lock;          /* guards everything below; no other lock is taken inside */
    struct tnd_arm_class *classes; /* NULL until the first one */
    int n_classes;
    uint64_t tick;
    uint32_t round;
    double granted_ns; /* credit for first looks of all classes */
    double scale;      /* factor of the credit; 1 in a runtime */
};

void tnd_arms_init(struct tnd_arms *arms);
void tnd_arms_fini(struct tnd_arms *arms);
/** Starts a new round after a change of tables, devices or placement: predictions are requested
 * again. */
void tnd_arms_begin_round(struct tnd_arms *arms);

/** Chooses the kind of plan to make now. False: needs predictions first (tnd_arms_offer). */
bool tnd_arms_choose(struct tnd_arms *arms, uint64_t key, int64_t tokens, uint64_t now_ns,
                     enum tnd_plan_kind *out_kind);
/** Time after which a computation by such a plan should be given up (tnd_arms_note with `is_cut`)
 * and repeated by the CPU alone; 0: never. */
uint64_t tnd_arms_limit(struct tnd_arms *arms, uint64_t key, enum tnd_plan_kind kind,
                        int64_t tokens);
/** Stores predictions of a class for `tokens`, one per kind; TND_PLAN_BEST is open. Errors: MEMORY.
 */
enum tandem_status tnd_arms_offer(struct tnd_arms *arms, uint64_t key, int64_t tokens,
                                  const struct tnd_arm_offer *offers);
/** Records that a computation by such a plan took `ns`, or was given up after it. With news, `out`
 * is the class, and `out->looked` the plan concerned. */
enum tnd_arm_news tnd_arms_note(struct tnd_arms *arms, uint64_t key, enum tnd_plan_kind kind,
                                int64_t tokens, uint64_t ns, bool is_cut, uint64_t now_ns,
                                struct tnd_arm_class *out);
/** Copies the state of a class. False: unknown. */
bool tnd_arms_get(struct tnd_arms *arms, uint64_t key, struct tnd_arm_class *out);

#endif
