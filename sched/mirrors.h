/* SPDX-License-Identifier: MIT
 * Mirrors of leaves and outputs on devices with memory of their own, and which of them stay from
 * run to run: those of states. Shared by all runs of an executor. */
#ifndef TND_MIRRORS_H
#define TND_MIRRORS_H

#include "backends/registry.h"
#include "ggml-like/tnd_tensor.h"

/** Bytes begin .. end-1 from the begin of a region; empty when begin >= end. */
struct tnd_span {
    size_t begin, end;
};

struct tnd_mirrors;

enum tandem_status tnd_mirrors_new(const struct tnd_registry *registry,
                                   struct tnd_mirrors **out_mirrors, struct tandem_error *error);
/** Gives all mirrors up; the backends are still open. NULL is allowed. */
void tnd_mirrors_free(struct tnd_mirrors *mirrors);

/** Bit a slot: devices that hold states. Cheap. */
uint32_t tnd_mirrors_state_slots(const struct tnd_mirrors *mirrors);

/** Holds the mirror of a state when the device has one; `out_stale` is what is not valid there. */
bool tnd_mirrors_hold_state(struct tnd_mirrors *mirrors, int slot, const struct tandem_tensor *root,
                            struct tnd_span *out_stale);
/** Maps a range that a run needs and holds it; `state` is its root when it is to stay, else NULL.
 *  Errors: BUSY (another run holds a mirror that overlaps), MEMORY, those of the backend. */
enum tandem_status tnd_mirrors_hold(struct tnd_mirrors *mirrors, int slot, void *begin,
                                    size_t bytes, const struct tandem_tensor *state,
                                    struct tandem_error *error);
/** Ends either; `stale` is remembered when it is a state. */
void tnd_mirrors_release(struct tnd_mirrors *mirrors, int slot, const void *begin,
                         struct tnd_span stale);

/** The host's bytes of a state are about to change: no mirror is valid. */
void tnd_mirrors_spoil(struct tnd_mirrors *mirrors, const struct tandem_tensor *root);
/** Gives up all mirrors of a root, unless a run holds them. */
void tnd_mirrors_forget(struct tnd_mirrors *mirrors, const struct tandem_tensor *root);
/** Gives up all states of a device that nobody holds. */
void tnd_mirrors_drop_slot(struct tnd_mirrors *mirrors, int slot);
/** Mirrors in all, for tests. */
int tnd_mirrors_count(struct tnd_mirrors *mirrors);

#endif
