/* SPDX-License-Identifier: MIT
 * What backends keep for the runs of one executor: mirrors of leaves and outputs on devices with
 * memory of their own, of which those of states stay from run to run; prepared weights, whole or a
 * range of their rows or columns; and which of them a device had no room for. Each hangs in the
 * buffer of its root, where it is found without a search. */
#ifndef TND_MIRRORS_H
#define TND_MIRRORS_H

#include "backends/registry.h"
#include "ggml-like/tnd_tensor.h"
#include "tandem/profile.h"

/** Bytes begin .. end-1 from the start of a region; empty when begin >= end. */
struct tnd_span {
    size_t begin, end;
};

enum tnd_mirror_kind {
    TND_MIRROR_INPUT,  /* goes when no run holds it */
    TND_MIRROR_STATE,  /* stays when no run holds it */
    TND_MIRROR_WEIGHT, /* prepared; stays */
    TND_MIRROR_COLUMNS /* of a weight, side by side in host memory; stays */
};

/** What one backend keeps. Members are guarded by the lock of tnd_mirrors; `handle` and `begin` do
 *  not change while a run holds it. */
struct tnd_mirror {
    _Atomic(void *) handle; /* of the backend; NULL: a weight without room or without need */
    const char *begin;      /* in host memory */
    size_t bytes;
    int64_t ne[2]; /* of the root, or of a range of it */
    uint8_t kind;  /* enum tnd_mirror_kind */
    uint8_t slot;
    int n_runs;                /* that hold it */
    uint64_t serial;           /* of the root's context */
    uint64_t refused_in;       /* round in which the device had no room; 0: it had */
    struct tnd_span stale;     /* of a state that no run holds */
    struct tnd_span debt;      /* of a lazy state: what the host does not have yet */
    int n_owed;                /* computations since it had all */
    struct tnd_handle *at;     /* in the root's buffer; NULL: an input */
    struct tnd_buffer *buffer; /* of the root, which may be gone; NULL: an input */
    struct tnd_mirror *next;
};

struct tnd_mirrors;

enum tandem_status tnd_mirrors_new(const struct tnd_registry *registry,
                                   struct tnd_mirrors **out_mirrors, struct tandem_error *error);
/** Gives everything up; the backends are still open. NULL is allowed. */
void tnd_mirrors_free(struct tnd_mirrors *mirrors);

/** Bit a slot: devices that hold states. Cheap. */
uint32_t tnd_mirrors_state_slots(const struct tnd_mirrors *mirrors);

/** Holds the mirror of a state, with what is not valid there, what the host does not have and since
 *  how many runs; NULL when the device has none. */
struct tnd_mirror *tnd_mirrors_hold_state(struct tnd_mirrors *mirrors, int slot,
                                          const struct tandem_tensor *root,
                                          struct tnd_span *out_stale, struct tnd_span *out_debt,
                                          int *out_n_owed);
/** Whether some bytes of a range have mirrors that stay, of whatever root. */
bool tnd_mirrors_has_state(struct tnd_mirrors *mirrors, const void *begin, size_t bytes);
/** Takes memory for a range that a run needs and holds it; `state` is its root when it is to stay,
 *  else NULL. Runs share the mirror of a range. Errors: BUSY (another run holds a mirror that
 *  overlaps), MEMORY, those of the backend. */
enum tandem_status tnd_mirrors_hold(struct tnd_mirrors *mirrors, int slot, const void *begin,
                                    size_t bytes, const struct tandem_tensor *state,
                                    struct tnd_mirror **out_mirror, struct tandem_error *error);
/** Has a constant weight prepared, unless it is, and holds it. On a device with memory of its own
 *  DEVICE_MEMORY is noted: see tnd_mirrors_is_refused. */
enum tandem_status tnd_mirrors_prepare(struct tnd_mirrors *mirrors, int slot,
                                       const struct tandem_tensor *weight,
                                       struct tnd_mirror **out_mirror, struct tandem_error *error);
/** Ends any of them; `stale` and `debt` are kept of a state. */
void tnd_mirrors_release(struct tnd_mirrors *mirrors, struct tnd_mirror *mirror,
                         struct tnd_span stale, struct tnd_span debt);
/** Has a backend of the host prepare a constant weight, unless it is, and returns what it made;
 *  NULL: nothing, or there was no room. Nothing holds it: who forgets a weight knows that no run
 *  uses it. */
void *tnd_mirrors_make(struct tnd_mirrors *mirrors, int slot, const struct tandem_tensor *weight);
/** What a backend of the host made of a weight that is in use, or NULL. Without a lock: workers ask
 *  in each product. */
void *tnd_mirrors_prepared(const struct tnd_mirrors *mirrors, int slot,
                           const struct tandem_tensor *weight);

/** Rows or columns begin .. end - 1 of a constant, dense weight as a weight of its own, for all
 *  functions here and until the whole is forgotten or its context is gone: a device keeps the bytes
 *  of its part only. Rows lie in the weight's memory; columns are copied once, if `copies`. False
 *  when they are not there. Any thread. `mirrors` NULL: columns are described, no more. */
bool tnd_mirrors_range(struct tnd_mirrors *mirrors, const struct tandem_tensor *weight,
                       enum tandem_split split, int64_t begin, int64_t end, bool copies,
                       struct tandem_tensor *out_range);

/** Whether the device had no room for the weight, and nothing was given up since. */
bool tnd_mirrors_is_refused(struct tnd_mirrors *mirrors, int slot,
                            const struct tandem_tensor *weight);
/** Whether any device had no room for any weight. Cheap. */
bool tnd_mirrors_has_refused(const struct tnd_mirrors *mirrors);

/* ---- debts: bytes of lazy states that a device alone has (debts.h) ---- */

/** Whether any device owes anything. Cheap. */
bool tnd_mirrors_owes(const struct tnd_mirrors *mirrors);
/** Holds one that owes bytes of a range (NULL: any) in a slot (0: any) and that no run holds; NULL:
 *  there is none. */
struct tnd_mirror *tnd_mirrors_take_debt(struct tnd_mirrors *mirrors, int slot, const void *begin,
                                         size_t bytes, struct tnd_span *out_debt);
/** Ends the debt and the hold of such a mirror. */
void tnd_mirrors_end_debt(struct tnd_mirrors *mirrors, struct tnd_mirror *mirror);
/** The device is lost with what the mirror, which is held, owes: its root says so from now on. */
void tnd_mirrors_note_lost(struct tnd_mirrors *mirrors, const struct tnd_mirror *mirror);
/** Whether anything was ever lost. Cheap. */
bool tnd_mirrors_has_lost(const struct tnd_mirrors *mirrors);

/** The host's bytes of a state are about to change: no mirror is valid. */
void tnd_mirrors_spoil(struct tnd_mirrors *mirrors, const struct tandem_tensor *root);
/** Gives up what is kept of the bytes of a root, unless a run holds it; there may be room again. */
void tnd_mirrors_forget(struct tnd_mirrors *mirrors, const struct tandem_tensor *root);
/** Gives up all states of a device (0: of all) that no run holds. */
void tnd_mirrors_drop_slot(struct tnd_mirrors *mirrors, int slot);
/** Mirrors of inputs and states, for tests. */
int tnd_mirrors_count(struct tnd_mirrors *mirrors);
/** Gives up what was prepared of weights whose context is gone, as each new weight does. */
void tnd_mirrors_drop_orphans(struct tnd_mirrors *mirrors);

#endif
