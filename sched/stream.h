/* SPDX-License-Identifier: MIT
 * Weights in flight: a node with TANDEM_TASK_NODE_STREAMED runs on a device that has no room for
 * its constant weights. The run holds two slots of device memory for each such device, used in
 * turns: while a node computes with what is in one of them, the weights of the next one travel into
 * the other. An upload is submitted as soon as its slot may be written behind works that were
 * submitted before; who waits for whom is the backend's business (`stream` of tandem/backend.h).
 * Only for sched/. */
#ifndef TND_STREAM_H
#define TND_STREAM_H

#include "sched/unfold.h"

struct tnd_run;

/** Whether item i is planned with weights in flight, and these are constant; others are uploaded
 *  like any operand. */
bool tnd_stream_has(const struct tnd_unfolding *unfolding, int i);

/** Before the work of such a node: sets the slot that it reads; uploads its weights unless an
 *  upload was already submitted. Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_stream_begin(struct tnd_unfolding *unfolding, struct tnd_step *step);
/** After that work: uploads the weights of the next such node on the device. Errors: MEMORY,
 *  OVERFLOW. */
enum tandem_status tnd_stream_ahead(struct tnd_unfolding *unfolding, int i, int slot);

/** Allocates the slots that the steps of the run use on a device, again if they must be larger.
 *  Errors: those of the backend. */
enum tandem_status tnd_stream_map(struct tnd_run *run, int slot, struct tandem_error *error);
void tnd_stream_unmap(struct tnd_run *run);
/** Slot that a step reads the weights from or uploads them to. */
struct tandem_place tnd_stream_place(const struct tnd_run *run, const struct tnd_step *step);

#endif
