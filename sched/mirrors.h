/* SPDX-License-Identifier: MIT
 * What backends keep for the runs of one executor: mirrors of leaves and outputs on devices with
 * memory of their own (mirrors of states stay from run to run); prepared weights, whole or a range
 * of their rows or columns; and which weights a device had no memory for. Each is registered in the
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
    TND_MIRROR_INPUT,  /* freed when no run holds it */
    TND_MIRROR_STATE,  /* stays when no run holds it */
    TND_MIRROR_WEIGHT, /* prepared; stays */
    TND_MIRROR_COLUMNS /* of a weight, side by side in host memory; stays */
};

/** What one backend keeps of one root. Members are guarded by the lock of tnd_mirrors; `handle` and
 *  `begin` do not change while a run holds it. */
struct tnd_mirror {
    _Atomic(void *) handle; /* of the backend; NULL: a weight that has no memory or needs none */
    const char *begin;      /* in host memory */
    size_t bytes;
    int64_t ne[2]; /* of the root, or of a range of it */
    uint8_t kind;  /* enum tnd_mirror_kind */
    uint8_t slot;
    int n_runs;                /* number of runs that hold it */
    uint64_t serial;           /* of the root's context */
    uint64_t refused_in;       /* round in which the device had no memory; 0: not refused */
    struct tnd_span stale;     /* of a state that no run holds */
    struct tnd_span debt;      /* of a lazy state: what the host does not have yet */
    int n_owed;                /* computations since the host was up to date */
    struct tnd_handle *at;     /* in the root's buffer; NULL: an input */
    struct tnd_buffer *buffer; /* of the root; stays valid when the root is gone; NULL: an input */
    struct tnd_mirror *next;
};

struct tnd_mirrors;

enum tandem_status tnd_mirrors_new(const struct tnd_registry *registry,
                                   struct tnd_mirrors **out_mirrors, struct tandem_error *error);
/** Frees everything; must come before the backends are closed. NULL is allowed. */
void tnd_mirrors_free(struct tnd_mirrors *mirrors);

/** Bit mask of slots: devices that hold states. Cheap. */
uint32_t tnd_mirrors_state_slots(const struct tnd_mirrors *mirrors);

/** Holds the mirror of a state and returns its stale bytes, its debt, and for how many runs the
 *  host has been behind; NULL when the device has none. */
struct tnd_mirror *tnd_mirrors_hold_state(struct tnd_mirrors *mirrors, int slot,
                                          const struct tandem_tensor *root,
                                          struct tnd_span *out_stale, struct tnd_span *out_debt,
                                          int *out_n_owed);
/** Whether a mirror of a state overlaps the range, whatever its root. */
bool tnd_mirrors_has_state(struct tnd_mirrors *mirrors, const void *begin, size_t bytes);
/** Allocates and holds a mirror of a range that a run needs; `state` is its root if the mirror is
 *  to stay, else NULL. Runs share the mirror of a range. Errors: BUSY (another run holds a mirror
 *  that overlaps), MEMORY, those of the backend. */
enum tandem_status tnd_mirrors_hold(struct tnd_mirrors *mirrors, int slot, const void *begin,
                                    size_t bytes, const struct tandem_tensor *state,
                                    struct tnd_mirror **out_mirror, struct tandem_error *error);
/** Has a constant weight prepared, unless it already is, and holds it. DEVICE_MEMORY from a device
 *  with memory of its own is recorded: see tnd_mirrors_is_refused. */
enum tandem_status tnd_mirrors_prepare(struct tnd_mirrors *mirrors, int slot,
                                       const struct tandem_tensor *weight,
                                       struct tnd_mirror **out_mirror, struct tandem_error *error);
/** Releases a mirror of any kind; `stale` and `debt` are stored for a state. */
void tnd_mirrors_release(struct tnd_mirrors *mirrors, struct tnd_mirror *mirror,
                         struct tnd_span stale, struct tnd_span debt);
/** Has a backend of the host prepare a constant weight, unless it already is, and returns the
 *  prepared copy; NULL: none is needed, or out of memory. It is not held: who calls
 *  tnd_mirrors_forget must know that no run uses the weight. */
void *tnd_mirrors_make(struct tnd_mirrors *mirrors, int slot, const struct tandem_tensor *weight);
/** The copy that a backend of the host prepared of a weight in use, or NULL. Takes no lock: workers
 *  call it for each product. */
void *tnd_mirrors_prepared(const struct tnd_mirrors *mirrors, int slot,
                           const struct tandem_tensor *weight);

/** Describes rows or columns begin .. end - 1 of a constant, dense weight as a weight, valid in all
 *  functions here until the whole weight is forgotten or its context is gone; so a device keeps
 *  only the bytes of its part. Rows are read in place; columns are copied once, if `copies`. False
 *  when there is no copy. Any thread. `mirrors` NULL: columns are only described. */
bool tnd_mirrors_range(struct tnd_mirrors *mirrors, const struct tandem_tensor *weight,
                       enum tandem_split split, int64_t begin, int64_t end, bool copies,
                       struct tandem_tensor *out_range);

/** Whether the device had no memory for the weight, and nothing was freed since. */
bool tnd_mirrors_is_refused(struct tnd_mirrors *mirrors, int slot,
                            const struct tandem_tensor *weight);
/** Whether any device had no memory for any weight. Cheap. */
bool tnd_mirrors_has_refused(const struct tnd_mirrors *mirrors);

/* ---- debts: bytes of lazy states whose newest values only a device has (debts.h) ---- */

/** Whether any device has a debt. Cheap. */
bool tnd_mirrors_owes(const struct tnd_mirrors *mirrors);
/** Holds a mirror that has a debt in a range (NULL: anywhere) in a slot (0: any) and that no run
 *  holds; NULL: there is none. */
struct tnd_mirror *tnd_mirrors_take_debt(struct tnd_mirrors *mirrors, int slot, const void *begin,
                                         size_t bytes, struct tnd_span *out_debt);
/** Ends the debt of such a mirror and releases it. */
void tnd_mirrors_end_debt(struct tnd_mirrors *mirrors, struct tnd_mirror *mirror);
/** The device failed, and the debt of the mirror, which is held, is lost: marks its root. */
void tnd_mirrors_note_lost(struct tnd_mirrors *mirrors, const struct tnd_mirror *mirror);
/** Whether anything was ever lost. Cheap. */
bool tnd_mirrors_has_lost(const struct tnd_mirrors *mirrors);

/** The host's bytes of a state are about to change: invalidates all mirrors. */
void tnd_mirrors_spoil(struct tnd_mirrors *mirrors, const struct tandem_tensor *root);
/** Frees what is kept of the bytes of a root, unless a run holds it; refused weights may fit
 * again. */
void tnd_mirrors_forget(struct tnd_mirrors *mirrors, const struct tandem_tensor *root);
/** Drops all states of a device (0: of all) that no run holds. */
void tnd_mirrors_drop_slot(struct tnd_mirrors *mirrors, int slot);
/** Mirrors of inputs and states, for tests. */
int tnd_mirrors_count(struct tnd_mirrors *mirrors);
/** Frees what was prepared of weights whose context is gone; preparing a new weight does so too. */
void tnd_mirrors_drop_orphans(struct tnd_mirrors *mirrors);

#endif
